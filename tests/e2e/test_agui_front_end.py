"""Real front ends of AG-UI in a real browser: assistant-ui's runtime and CopilotKit's, from the npm registry, on a site of their own."""
import contextlib
import http.server
import pathlib
import select
import shutil
import socket
import subprocess
import threading

import pytest
from support.npm import install
from support.provider import Gate, call, text, tools
from support.timing import SLACK, SOON, eventually

SOURCE = pathlib.Path(__file__).resolve().parent / "support" / "assistant_ui.jsx"
COPILOT = pathlib.Path(__file__).resolve().parent / "support" / "copilot_kit.jsx"
# Its sources use import attributes, which Debian 12's esbuild does not support.
COPILOT_PACKAGES = ("@copilotkit/react-core@1.74.0", "react@19.2.0", "react-dom@19.2.0", "zod@3.25.76", "esbuild@0.25.12")
PACKAGES = ("@assistant-ui/react-ag-ui@0.0.57", "@assistant-ui/react@0.15.22", "react@19.2.0", "react-dom@19.2.0")
INDEX = b'<!doctype html><html lang="en"><title>Front end</title><div id="app"></div><script src="/app.js"></script>'


def bundled(esbuild, source, modules, folder):
    out = folder / "app.js"
    subprocess.run([esbuild, str(source), "--bundle", "--format=iife", "--target=es2021", '--define:process.env.NODE_ENV="production"', "--log-level=warning",
                    "--loader:.css=empty", f"--outfile={out}"], env={"NODE_PATH": str(modules), "PATH": "/usr/bin:/bin"}, check=True, timeout=20 * SLACK)
    return out.read_bytes()


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    if not shutil.which("esbuild"):
        pytest.skip("esbuild is not installed")
    return bundled("esbuild", SOURCE, install(*PACKAGES), tmp_path_factory.mktemp("front"))


@pytest.fixture(scope="module")
def copilot_bundle(tmp_path_factory):
    modules = install(*COPILOT_PACKAGES)
    return bundled(next(modules.glob("@esbuild/*/bin/esbuild")), COPILOT, modules, tmp_path_factory.mktemp("copilot"))


@contextlib.contextmanager
def site(server, bundle):
    """A site that serves the front end and forwards /agui, so that both have one origin."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = bundle if self.path == "/app.js" else INDEX
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript" if self.path == "/app.js" else "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            head = f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            self.close_connection = True
            with socket.create_connection(("127.0.0.1", server.port), timeout=SOON) as to:
                to.sendall(head.encode() + body)
                # When one side closes, the loop ends, which closes the other.
                while to in (ready := select.select([to, self.connection], [], [], SOON)[0]) and (piece := to.recv(65536)):
                    self.connection.sendall(piece)
                assert ready, "the server is silent"

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as front:
        front.daemon_threads = True
        front.port = front.server_address[1]
        thread = threading.Thread(target=front.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield front
        finally:
            front.shutdown()
            thread.join()


@pytest.mark.limit(120)
def test_assistant_ui(server, provider, browse, bundle):
    with site(server, bundle) as front:
        page = browse(front)
        say = lambda words: (page.type("composer", words), page.press("send"))  # noqa: E731
        provider.plan(tools(call("manage_tasks", {"action": "add", "title": "later"})), text("Hello ", "there"))
        say("hi")
        page.until_text("assistant", "Hello there")
        page.until_text("state", "later")
        # An approval with edited arguments.
        provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"})), text("It is written."))
        say("write")
        page.until_text("interrupt", "write_file")
        assert not list(server.home.workspace.iterdir())
        page.press("change")
        page.until_text("assistant", "It is written.")
        assert [p.name for p in server.home.workspace.iterdir()] == ["changed.txt"]
        page.gone("interrupt")
        # Stop in the middle of an answer.
        gate = Gate()
        provider.plan(text("one ", gate, "two"))
        say("slow")
        gate.wait_reached()
        page.until_text("assistant", "one")
        page.press("stop")
        eventually(lambda: server.client.history("front")["interactions"][-1]["status"] == "CANCELLED", "a stop is a cancel")
        # An edit of the first message becomes a branch that starts from the state before it.
        provider.plan(text("Another answer"))
        page.all("edit")[0].click()
        page.type("edited", "hello", clear=True)
        page.press("send-edited")
        page.until_text("assistant", "Another answer")
        page.until(lambda: page.text("state") == '{"tasks":[],"plan":[]}', "the state before it")
        assert [i["user_message"] for i in server.client.history("front")["interactions"]] == ["hello"]
        assert len(server.client.get("/chats/front?branches=all").json["interactions"]) == 4
        assert len(server.client.get("/chats").json["chats"]) == 1 and not page.script("return document.body.dataset.error")


@pytest.mark.limit(180)
def test_copilotkit(server, provider, browse, copilot_bundle):
    with site(server, copilot_bundle) as front:
        page = browse(front)
        say = lambda words: (page.type("composer", words), page.press("send"))  # noqa: E731
        provider.plan(tools(call("manage_tasks", {"action": "add", "title": "later"})), text("Hello ", "there"))
        say("hi")
        page.until_text("assistant", "Hello there")
        page.until_text("state", "later")
        # An approval with edited arguments.
        provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"})), text("It is written."))
        say("write")
        page.until_text("interrupt", "write_file")
        assert not list(server.home.workspace.iterdir())
        page.press("change")
        page.until_text("assistant", "It is written.")
        assert [p.name for p in server.home.workspace.iterdir()] == ["changed.txt"]
        page.gone("interrupt")
        # Stop in the middle of an answer, then continue.
        gate = Gate()
        provider.plan(text("one ", gate, "two"), text("still here"))
        say("slow")
        gate.wait_reached()
        page.until_text("assistant", "one")
        page.press("stop")
        eventually(lambda: server.client.history("front")["interactions"][-1]["status"] == "CANCELLED", "a stop is a cancel")
        eventually(lambda: server.client.get("/chats").json["chats"][0]["status"] == "idle", "the chat is free")
        say("and?")
        page.until_text("assistant", "still here")
        assert [i["user_message"] for i in server.client.history("front")["interactions"]] == ["hi", "write", "slow", "and?"]
        assert len(server.client.get("/chats").json["chats"]) == 1 and not page.script("return document.body.dataset.error")
