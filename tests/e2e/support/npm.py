"""Installs npm packages that Reprise is tested against, in a cache outside of the repository."""
import fcntl
import os
import pathlib
import shutil
import subprocess

import pytest

CACHE = pathlib.Path(os.environ.get("REPRISE_TEST_CACHE") or pathlib.Path.home() / ".cache" / "reprise-tests")
LIMIT = 180  # seconds for an installation, which happens once per machine
UNREACHABLE = ("ENOTFOUND", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EAI_AGAIN", "ENETUNREACH", "EHOSTUNREACH", "network")


# Arguments of node before the program, because distributions have an older Node than the packages expect.
NEWER_NODE = ("--import", str(pathlib.Path(__file__).parent / "newer_node.mjs"))


def install(*packages):
    """The folder (node_modules) that holds exactly these packages, each NAME@VERSION. Skips the test without a registry."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("npm or node is not installed")
    folder = CACHE / "-".join(sorted(p.strip("@").replace("/", "_") for p in packages))
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts", "--no-save", *packages]
            try:
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, check=False)
            except subprocess.TimeoutExpired:
                pytest.skip(f"the npm registry did not deliver within {LIMIT} s")
            if done.returncode != 0 and any(word in done.stdout for word in UNREACHABLE):
                pytest.skip(f"the npm registry cannot be reached: {done.stdout.strip().splitlines()[0]}")
            assert done.returncode == 0, done.stdout[-3000:]
            (folder / ".complete").touch()
    return folder / "node_modules"
