"""A small MCP server of our own, for tests that need a tool from elsewhere and not the protocol."""
import sys

SERVER = r"""
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request.get("method") == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif request.get("method") == "tools/list":
        result = {"tools": [TOOL]}
    elif request.get("method") == "tools/call":
        result = {"content": [{"type": "text", "text": ANSWER}]}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


def server_of(tool, answer):
    """The configuration of a server with this tool. Both are Python expressions; `request` is the client's."""
    return {"command": sys.executable, "args": ["-c", SERVER.replace("TOOL", tool).replace("ANSWER", answer)]}
