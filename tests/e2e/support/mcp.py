"""A small MCP server of our own, for tests that need a foreign tool but are not about the protocol."""
import json
import os
import signal
import sys

SERVER = r"""
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request.get("method") == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}, **WORDS}
    elif request.get("method") == "tools/list":
        result = {"tools": [TOOL]}
    elif request.get("method") == "tools/call":
        result = {"content": [{"type": "text", "text": ANSWER}]}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def server_of(tool, answer, instructions=None):
    """The configuration of a server with this tool. Both are Python expressions; `request` is the client's."""
    return {"command": sys.executable, "args": ["-c", SERVER.replace("TOOL", tool).replace("WORDS", repr({"instructions": instructions} if instructions else {})).replace("ANSWER", answer)]}


CHANGEABLE = r"""
import json, os, signal, sys
definition, calls, pid = sys.argv[1:4]
def say(message):
    os.write(1, (json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
signal.signal(signal.SIGHUP, lambda *_: say({"method": "notifications/tools/list_changed"}))
open(pid, "w").write(str(os.getpid()))
for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request.get("method") == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {"listChanged": True}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif request.get("method") == "tools/list":
        result = {"tools": json.load(open(definition))}
    elif request.get("method") == "tools/call":
        open(calls, "a").write(line)
        result = {"content": [{"type": "text", "text": "did it"}]}
    if "id" in request:
        say({"id": request["id"], "result": result})
"""


class ChangeableServer:
    """A server with one tool, `do`, which the test can change while it runs. It records the raw calls."""

    def __init__(self, folder):
        self.definition, self.calls_file, self.pid_file = folder / "tool.json", folder / "calls", folder / "pid"
        self.arguments = []
        self.offer()

    def offer(self, description="does it", properties=None, there=True):
        tool = {"name": "do", "description": description, "annotations": {"readOnlyHint": True},
                "inputSchema": {"type": "object", "properties": properties or {"n": {}}}}
        self.definition.write_text(json.dumps([tool] if there else []))

    def announce(self):
        os.kill(int(self.pid_file.read_text()), signal.SIGHUP)

    def configuration(self, **more):
        return {"command": sys.executable, "args": ["-c", CHANGEABLE, *map(str, (self.definition, self.calls_file, self.pid_file)), *self.arguments],
                **more}

    def calls(self):
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []
