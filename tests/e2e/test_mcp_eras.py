"""The era of an MCP server is detected once and remembered across restarts; a wrong entry is corrected by itself."""
import json
import sys

import pytest
from support.timing import SLACK, eventually

# A strict server of the era that its file names: "older" and "newer" answer unknown methods with an error, "older-ends" and "newer-ends" exit.
# It logs every start ("start") and every request.
SERVER = r"""
import json, os, sys
state, log = os.environ["STATE"], os.environ["ASKED"]  # an argument would be a file that the interpreter is given
def note(what):
    open(log, "a").write(what + "\n")
note("start")
mode, version = open(state).read().split()
newer = mode.startswith("newer")
TOOL = {"name": "where", "description": "Says it", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    note(request["method"])
    info = {"name": "s", "version": version}
    known = {"tools/list": {"tools": [TOOL]}, "tools/call": {"content": [{"type": "text", "text": mode}]}}
    if newer:
        known["server/discover"] = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": info}
        known = {method: {"resultType": "complete", **result} for method, result in known.items()}
    else:
        known["initialize"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if request["method"] in known:
        answer = {"result": known[request["method"]]}
    elif mode.endswith("-ends"):
        sys.exit(1)
    else:
        answer = {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
"""
OLDER, NEWER = ["initialize", "tools/list"], ["server/discover", "tools/list"]


class Restarted:
    """An MCP server that may be replaced by another between two starts of ours."""

    def __init__(self, make_server, home):
        self.make_server, self.home = make_server, home
        self.state, self.log, self.file = home.path / "era.txt", home.path / "asked.txt", home.data / ".mcp_servers"
        self.arguments = ["-c", SERVER]

    def start(self, mode, version="1", log=False):
        """Starts our server. Returns the requests that the MCP server got until its tool was ready, a list for each of its starts."""
        self.state.write_text(f"{mode} {version}")
        self.log.write_text("")
        command = {"command": sys.executable, "args": self.arguments, "env": {"STATE": str(self.state), "ASKED": str(self.log)}}
        config = {"mcpServers": {"s": command}, "approval_mode": "approve_all"}
        server = self.make_server(home=self.home, config=config)
        eventually(lambda: server.client.get("/tools").json["servers"][0]["state"] == "ready", "the server is ready", 30 * SLACK)
        asked = self.log.read_text()
        assert server.client.turn("c", "call s__where {}").one("tool_result")["tool_output"] == mode
        said = server.log()
        server.stop()
        starts = [part.split() for part in asked.split("start\n")[1:]]
        return (starts, said) if log else starts

    def known(self):
        return json.loads(self.file.read_text())["servers"]


@pytest.fixture
def it(make_server, make_home):
    return Restarted(make_server, make_home())


@pytest.mark.parametrize("mode, first, later, era", [
    ("older", [["server/discover", *OLDER]], [OLDER], "handshake"),
    ("older-ends", [["server/discover"], OLDER], [OLDER], "handshake"),
    ("newer", [NEWER], [NEWER], "stateless"),
    ("newer-ends", [NEWER], [NEWER], "stateless"),
])
def test_a_server_is_asked_once_what_it_speaks(it, mode, first, later, era):
    assert it.start(mode) == first
    assert it.known()["s"] | {"launch": ""} == {"launch": "", "era": era, "version": "s 1"}
    assert it.file.stat().st_mode & 0o777 == 0o600
    assert it.start(mode) == it.start(mode) == later


@pytest.mark.parametrize("before, now, starts", [
    ("older", "newer", [["initialize"], NEWER]),
    ("older", "newer-ends", [["initialize"], NEWER]),
    ("newer", "older", [["server/discover", *OLDER]]),
    ("newer", "older-ends", [["server/discover"], OLDER]),
])
def test_a_server_that_has_changed_era_meanwhile_is_understood_at_once(it, before, now, starts):
    it.start(before)
    assert it.start(now) == starts
    assert it.start(now) == [NEWER if now.startswith("newer") else OLDER]


def test_another_command_is_another_server(it):
    it.start("older")
    launch = it.known()["s"]["launch"]
    it.arguments.append("more")
    assert it.start("older") == [["server/discover", *OLDER]]
    assert it.known()["s"]["launch"] != launch


def test_another_version_is_probed_again_at_the_next_start(it):
    """The new version still accepts the older handshake, but may speak the newer protocol, too."""
    it.start("older")
    assert it.start("older", version="2") == [OLDER]
    assert it.start("older", version="2") == [["server/discover", *OLDER]]
    assert it.start("older", version="2") == [OLDER]


def test_a_damaged_memory_is_ignored(it):
    it.start("older")
    whole = it.file.read_text()
    it.file.write_text(whole[:-20])
    starts, said = it.start("older", log=True)
    assert starts == [["server/discover", *OLDER]]
    assert said.count("what was known of the MCP servers cannot be read") == 1
    assert it.file.read_text() == whole
    # A symbolic link is neither read nor written through.
    elsewhere = it.home.path / "elsewhere.json"
    elsewhere.write_text(whole)
    it.file.unlink()
    it.file.symlink_to(elsewhere)
    assert it.start("older") == [["server/discover", *OLDER]]
    assert not it.file.is_symlink() and elsewhere.read_text() == whole


def test_a_memory_that_lies_costs_one_attempt(it):
    it.start("older")
    lie = {"schema": 1, "servers": {"s": it.known()["s"] | {"era": "stateless"}}}
    it.file.write_text(json.dumps(lie))
    assert it.start("older-ends") == [["server/discover"], OLDER]
    assert it.known()["s"]["era"] == "handshake"
