"""The client scenarios of @modelcontextprotocol/conformance, played against the library's own client.

Those that are about OAuth are left out: tokens are configured.
"""
import os
import pathlib
import subprocess

import pytest
from support.npm import NEWER_NODE, install
from support.server import BINARY
from support.timing import SLACK

CLIENT = pathlib.Path(os.environ.get("REPRISE_MCP_CLIENT", BINARY.parent / "tests" / "mcp_conformance_client"))
PACKAGE = "@modelcontextprotocol/conformance@0.1.16"


@pytest.fixture(scope="module")
def run():
    if not CLIENT.exists():
        pytest.skip(f"{CLIENT} is not built")
    program = install(PACKAGE) / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

    def run_it(*arguments):
        done = subprocess.run(["node", *NEWER_NODE, str(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60 * SLACK, check=False)
        return done.returncode, done.stdout

    return run_it


SCENARIOS = ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"]


def test_these_are_all_scenarios_without_oauth(run):
    _, listed = run("list", "--client")
    names = [line.split()[1] for line in listed.splitlines() if line.strip().startswith("- ")]
    assert [name for name in names if not name.startswith("auth/")] == SCENARIOS


@pytest.mark.limit(90)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(run, scenario, tmp_path):
    status, output = run("client", "--command", str(CLIENT), "--scenario", scenario, "-o", str(tmp_path))
    assert status == 0 and "OVERALL: PASSED" in output, output[-4000:]
