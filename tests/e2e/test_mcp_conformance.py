"""The client scenarios of @modelcontextprotocol/conformance, run against the library's own client: those that each revision of the
protocol requires, including authorization. Scenarios of extensions run, too, but their results are ignored."""
import os
import pathlib
import re
import subprocess

import pytest
from support.npm import NEWER_NODE, install
from support.server import BINARY
from support.timing import SLACK

CLIENT = pathlib.Path(os.environ.get("REPRISE_MCP_CLIENT", BINARY.parent / "tests" / "mcp_conformance_client"))
PACKAGE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
REQUIRED = {"2025-11-25": 18, "2026-07-28": 32}  # scenarios


@pytest.fixture(scope="module")
def run():
    if not CLIENT.exists():
        pytest.skip(f"{CLIENT} is not built")
    program = install(PACKAGE) / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

    def run_it(*arguments):
        done = subprocess.run(["node", *NEWER_NODE, str(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=80 * SLACK, check=False)
        return done.stdout

    return run_it


@pytest.mark.limit(100)
@pytest.mark.parametrize("revision", REQUIRED)
def test_what_a_revision_requires(run, revision, tmp_path):
    output = run("client", "--command", str(CLIENT), "--requirements", revision, "-o", str(tmp_path), "--timeout", str(int(30_000 * SLACK)))
    results = {name: (mark, passed, failed) for mark, name, passed, failed in
               re.findall(r"^(\S) (\S+): (\d+) passed, (\d+) failed", output, re.MULTILINE)}
    unscored = set(re.findall(r"^\s+\S (\S+) \((?:extension|added-after-release)\)", output, re.MULTILINE))
    required = {name: result for name, result in results.items() if name not in unscored}
    assert len(required) >= REQUIRED[revision], output[-4000:]
    failing = {name: result for name, result in required.items() if result[0] != "✓" or result[2] != "0"}
    assert not failing, (failing, output[-8000:])
