"""scripts/run: the arguments that it passes to the server."""
import shutil
import subprocess

import pytest

from support.server import ROOT


@pytest.fixture
def run(tmp_path):
    """Runs a copy of the script in a clone that installs and builds nothing. Its server prints its arguments."""
    clone, elsewhere = tmp_path / "clone", tmp_path / "else where"
    elsewhere.mkdir()
    for path, content in (("scripts/deps", "exit 0"), ("scripts/build", "exit 0"), ("build/release/reprise", 'pwd; printf "%s\\n" "$@"')):
        file = clone / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{content}\n")
        file.chmod(0o755)
    shutil.copy(ROOT / "scripts" / "run", clone / "scripts" / "run")

    def call(*arguments):
        out = subprocess.run([str(clone / "scripts" / "run"), *arguments], cwd=elsewhere, capture_output=True, text=True, check=True).stdout
        return out.splitlines()

    call.clone, call.elsewhere = clone, elsewhere
    return call


def test_without_options_it_serves_the_clone(run):
    assert run() == [str(run.clone), "serve"]


def test_paths_are_those_of_the_caller(run):
    at = str(run.elsewhere)
    assert run("--workspace", ".", "--config=x.json", "--port", "0", "--data-dir", "a b", "--plain", "--key-file", "/k", "--token-file=/t")[1:] == [
        "serve", "--workspace", f"{at}/.", f"--config={at}/x.json", "--port", "0", "--data-dir", f"{at}/a b", "--plain", "--key-file", "/k",
        "--token-file=/t"]
    assert run("--model", "x/y", "--log-level", "debug")[1:] == ["serve", "--model", "x/y", "--log-level", "debug"]
    assert run("--workspace")[1:] == ["serve", "--workspace"], "wrong arguments are left to the server"
