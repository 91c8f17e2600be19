"""Random misbehaving MCP servers: none ends our server, loses the result of a completed action, or fails another tool's call.

REPRISE_MANNERS is their number (40; 200 in the long form), REPRISE_MANNERS_SEED repeats a run."""
import http.server
import json
import os
import pathlib
import random
import sys
import threading

import pytest
from support import mcp_manners
from support.mcp import server_of
from support.mcp_manners import Manner, MannersWeb
from support.provider import call, text, tools
from support.timing import SLACK, eventually

COUNT = int(os.environ.get("REPRISE_MANNERS", "40"))
TOGETHER = 20
SEED = os.environ.get("REPRISE_MANNERS_SEED") or str(random.randrange(10**9))
CALM = server_of('{"name": "calm", "inputSchema": {"type": "object"}}', '"all is well"')


def configuration(manner, web):
    if manner.over_http:
        return {"url": web.address(manner)}
    return {"command": sys.executable, "args": ["-S", str(pathlib.Path(mcp_manners.__file__)), SEED, str(manner.index)]}


@pytest.mark.limit(240)
@pytest.mark.parametrize("first", range(0, COUNT, TOGETHER))
def test_servers_of_bad_manners_end_nothing_and_lose_nothing(first, make_server, provider):
    print(f"REPRISE_MANNERS_SEED={SEED}")
    manners = [Manner(SEED, index) for index in range(first, min(first + TOGETHER, COUNT))]
    web = MannersWeb([manner for manner in manners if manner.over_http])
    try:
        servers = {f"m{manner.index}": configuration(manner, web) for manner in manners} | {"good": CALM}
        server = make_server(provider, config={"approval_mode": "approve_all", "mcpServers": servers})
        client = server.client

        def states():
            return {each["name"]: each for each in client.get("/tools").expect(200, "tools").json["servers"]}

        eventually(lambda: all(each["state"] != "connecting" for each in states().values()), "all have answered", 60 * SLACK)
        assert all(each["state"] == "ready" for each in states().values()), states()
        counts = {}
        for n in (1, 2, 3):
            for manner in manners:
                counts[manner.index] = counts.get(manner.index, 0) + 1
                arguments = {"n": n, **({"note": None} if manner.null_note else {})}
                provider.plan(tools(call(f"m{manner.index}__act", arguments, f"a{manner.index}_{n}"), call("good__calm", {}, f"b{manner.index}_{n}")), text("done"))
                stream = client.start(f"c{manner.index}", f"turn {n}")
                stream.finish()
                results = {each["tool_name"]: each for each in stream.all("tool_result")}
                acted, calm = results[f"m{manner.index}__act"], results["good__calm"]
                assert calm["tool_output"] == "all is well" and not calm["is_error"], f"{manner}\n{calm}"
                # The server counts its calls, so a right count shows that it is the same process, or session, as before.
                assert manner.is_fine(n, counts[manner.index], acted), f"{manner}\n{acted['tool_output'][:500]}"
        assert all(each["state"] == "ready" for each in states().values()), states()
        assert server.process.poll() is None
    finally:
        web.close()


class ForgetfulWeb:
    """An HTTP server whose tool `forget` finds its session forgotten, and whose tool `wait` is done when `answers` is set."""

    def __init__(self):
        web = self
        self.waits, self.answers = threading.Event(), threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                method, tool = request["method"], request.get("params", {}).get("name")
                if "id" not in request:
                    return self.reply(202, "")
                if tool == "forget":
                    return self.reply(404, {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}})
                if tool == "wait":
                    web.waits.set()
                    assert web.answers.wait(60 * SLACK)
                results = {
                    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}},
                    "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("wait", "forget", "other")]},
                    "tools/call": {"content": [{"type": "text", "text": f"{tool} is done"}]}}
                answer = {"result": results[method]} if method in results else {"error": {"code": -32601, "message": "no such method"}}
                self.reply(200, {"jsonrpc": "2.0", "id": request["id"], **answer}, session="s" if method == "initialize" else None)

            def do_GET(self):
                self.reply(405, "")

            do_DELETE = do_GET

            def reply(self, status, body, session=None):
                body = json.dumps(body).encode() if body else b""
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Type", "application/json")
                if session:
                    self.send_header("Mcp-Session-Id", session)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.answers.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def test_a_forgotten_session_loses_no_result_of_another_chat(make_server, provider):
    web = ForgetfulWeb()
    try:
        config = {"approval_mode": "approve_all", "mcpServers": {"w": {"url": f"http://127.0.0.1:{web.server.server_port}/"}}}
        client = make_server(provider, config=config).client

        def start(chat, tool):
            provider.plan(tools(call(f"w__{tool}", {}, f"call_{chat}")))
            return client.start(chat, f"call {tool}")

        def result(stream):
            provider.plan(text("done"))
            stream.finish()
            return stream.one("tool_result")["tool_output"]

        eventually(lambda: client.get("/tools").json["servers"][0]["state"] == "ready", "the server is ready", 30 * SLACK)
        waiting = start("a", "wait")
        assert web.waits.wait(60 * SLACK)
        assert "the server has ended the session" in result(start("b", "forget"))
        assert result(start("c", "other")) == "other is done"  # in a new session
        web.answers.set()
        assert result(waiting) == "wait is done"
    finally:
        web.close()
