"""MCP servers: the reference servers of the npm registry, and a scripted one that misbehaves."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace

import pytest
from support.mcp import server_of
from support.npm import NEWER_NODE, install
from support.provider import call, text, tools
from support.server import API_KEY, BINARY, processes
from support.timing import SLACK, SOON, eventually

SCRIPTED = pathlib.Path(__file__).parents[1] / "mcp" / "scripted_server.py"
EVERYTHING = "@modelcontextprotocol/server-everything@2026.8.31"
SERVER_SDK = "@modelcontextprotocol/server@2.4.0"
FILESYSTEM = "@modelcontextprotocol/server-filesystem@2026.8.31"


def scripted(mode="plain", argument="", **more):
    return {"command": sys.executable, "args": [str(SCRIPTED), mode, argument], **more}


@pytest.fixture(scope="module")
def everything():
    return str(install(EVERYTHING) / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js")


@pytest.fixture(scope="module")
def filesystem():
    return str(install(FILESYSTEM) / "@modelcontextprotocol" / "server-filesystem" / "dist" / "index.js")


def test_a_servers_last_words_cannot_steer_the_terminal_that_shows_the_log(make_server):
    words = "a\x9b2Jb\x9dc\u202ed\u200b"
    dies = {"command": sys.executable, "args": ["-c", f"import sys; sys.stderr.buffer.write({words.encode()!r}); sys.exit(1)"]}
    server = make_server(config={"mcpServers": {"dies": dies}})
    eventually(lambda: "a<U+009B>2Jb<U+009D>c<U+202E>d<U+200B>" in server.log(), "the log has the server's last line")
    assert not set("\x9b\x9d\u202e\u200b") & set(server.log())


class Box:
    """A server with MCP servers, and a model that makes the calls that a test wants."""

    def __init__(self, make_server, provider, servers, home=None, mode="approve_all", **more):
        self.server = make_server(provider, home=home, config={"mcpServers": servers, "approval_mode": mode, **more})
        self.provider, self.client = provider, self.server.client
        self.turns = 0

    def state(self, name):
        listed = self.client.get("/tools").expect(200, "tools").json
        return next(server for server in listed["servers"] if server["name"] == name)

    def ready(self, name):
        return eventually(lambda: (s := self.state(name))["state"] == "ready" and s, f"{name} is ready", 30 * SLACK)

    def tools(self):
        return {tool["name"]: tool for tool in self.client.get("/tools").expect(200, "tools").json["tools"]}

    def start(self, tool, arguments=None, chat="c"):
        self.turns += 1
        self.provider.plan(tools(call(tool, arguments or {}, f"call_{self.turns}")), text("done"))
        return self.client.start(chat, f"turn {self.turns}")

    def run(self, tool, arguments=None, answer=None):
        """Runs a call to its end. Its questions get `answer`, or are declined."""
        stream = self.start(tool, arguments)
        while event := stream.next():
            if event.name == "input_required":
                self.client.respond("c", stream.interaction, event["request_id"], answer).expect(200, "respond_response")
        stream.finish()
        return stream

    def result(self, tool, arguments=None, answer=None):
        return self.run(tool, arguments, answer).one("tool_result")

    def ok(self, tool, arguments=None):
        result = self.result(tool, arguments)
        assert not result["is_error"], result
        return result["tool_output"]


@pytest.fixture
def box(make_server, provider):
    def make(servers, **more):
        return Box(make_server, provider, servers, **more)

    return make


# --- the reference servers ---------------------------------------------------------------------------------------------

ARGUMENTS = {
    "echo": {"message": "hällo"},
    "get-annotated-message": {"messageType": "success", "includeImage": True},
    "get-structured-content": {"location": "Chicago"},
    "get-sum": {"a": 2, "b": 40},
    "gzip-file-as-resource": {"data": "data:text/plain,hello", "outputType": "resource"},
    "trigger-long-running-operation": {"duration": 0.2, "steps": 2},
    "trigger-url-elicitation": {"url": "https://example.org/"},
    "simulate-research-query": {"topic": "tea"},
}
EXPECTED = {
    "echo": "hällo",
    "get-sum": "42",
    "get-structured-content": '"conditions"',
    "get-tiny-image": "get-tiny-image.png\", image/png",
    "get-resource-links": "demo://resource",
    "get-resource-reference": "[demo://resource",
    "gzip-file-as-resource": "application/gzip",
    "get-roots-list": "file://",
    "trigger-elicitation-request": "decline",
    "simulate-research-query": "tea",
}


def call_all(box, name):
    called = []
    for tool in box.tools():
        own = tool.removeprefix(f"{name}__")
        if own == tool or own in ("list_resources", "read_resource", "list_prompts", "get_prompt"):
            continue
        output = box.ok(tool, ARGUMENTS.get(own))
        assert EXPECTED.get(own, "") in output, (own, output)
        called.append(own)
    assert set(EXPECTED) <= set(called), called


@pytest.mark.limit(90)
def test_every_tool_of_the_everything_server(box, everything):
    it = box({"every": {"command": "node", "args": [everything]}})
    assert it.ready("every")["message"].startswith("mcp-servers/everything")
    eventually(lambda: "every__simulate-research-query" in it.tools(), "the tools it adds after the greeting", 10 * SLACK)
    call_all(it, "every")
    environment = it.ok("every__get-env")
    assert API_KEY not in environment and "XDG_CONFIG_HOME" not in environment and "REPRISE" not in environment
    assert '"PATH"' in environment


@pytest.mark.limit(90)
def test_a_question_of_the_everything_server_is_answered(box, everything):
    it = box({"every": {"command": "node", "args": [everything]}})
    it.ready("every")
    eventually(lambda: "every__trigger-elicitation-request" in it.tools(), "the tools it adds after the greeting", 10 * SLACK)
    stream = it.start("every__trigger-elicitation-request")
    asked = stream.until("input_required")
    assert "name" in json.loads(asked["schema"])["properties"]
    it.client.respond("c", stream.interaction, asked["request_id"], "no object").error(400, "invalid_answer")
    it.client.respond("c", stream.interaction, asked["request_id"], {"name": "Ada Lovelace"}).expect(200)
    stream.finish()
    assert json.loads(stream.one("input_received")["response"]) == {"name": "Ada Lovelace"}
    assert "Ada Lovelace" in stream.one("tool_result")["tool_output"]
    # A page to open, and a question in the middle of a task.
    stream = it.start("every__trigger-url-elicitation", {"url": "https://example.org/x", "message": "Open it"})
    asked = stream.until("input_required")
    assert (asked["url"], asked["question"]) == ("https://example.org/x", "Open it")
    it.client.respond("c", stream.interaction, asked["request_id"], "done").expect(200)
    stream.finish()
    assert "accept" in stream.one("tool_result")["tool_output"]
    assert "decline" in it.result("every__trigger-url-elicitation", {"url": "https://example.org/x"})["tool_output"]
    stream = it.run("every__simulate-research-query", {"topic": "python", "ambiguous": True}, {"interpretation": "programming"})
    assert "programming" in stream.one("tool_result")["tool_output"] and stream.one("input_required")["schema"]


@pytest.mark.limit(90)
def test_resources_and_prompts_of_the_everything_server(box, everything):
    it = box({"every": {"command": "node", "args": [everything]}})
    it.ready("every")
    listed = it.ok("every__list_resources")
    assert "demo://resource" in listed and "Templates:" in listed
    assert "Resource 1" in it.ok("every__read_resource", {"uri": "demo://resource/dynamic/text/1"})
    assert it.ok("every__read_resource", {"uri": "demo://resource/dynamic/blob/1"}).startswith("[file_")  # kept as a file
    documents = [line.split()[0].rstrip(":") for line in listed.splitlines() if "demo://resource/static" in line]
    assert len(documents) >= 7
    for uri in documents:
        assert len(it.ok("every__read_resource", {"uri": uri})) > 100, uri
    assert it.result("every__read_resource", {"uri": "demo://none"})["is_error"]
    prompts = it.ok("every__list_prompts")
    assert "args-prompt(city, state?)" in prompts
    assert "Berlin" in it.ok("every__get_prompt", {"name": "args-prompt", "arguments": {"city": "Berlin"}})
    assert "simple prompt" in it.ok("every__get_prompt", {"name": "simple-prompt"})
    assert "Sally" in it.ok("every__get_prompt", {"name": "completable-prompt", "arguments": {"department": "Marketing", "name": "Sally"}})
    assert "Resource 1" in it.ok("every__get_prompt", {"name": "resource-prompt", "arguments": {"resourceType": "Text", "resourceId": "1"}})
    assert it.result("every__get_prompt", {"name": "none"})["is_error"]


def await_port(process, port):
    """Waits until a server listens there. Returns whether this process still runs: it ends if the port is taken."""
    def answers():
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", int(port))) == 0 or process.poll() is not None

    eventually(answers, "the server listens", 20 * SLACK)
    return process.poll() is None


def start_everything(everything, port, transport="streamableHttp"):
    """Starts the reference server on this port. The process ends if the port is taken."""
    process = subprocess.Popen(["node", *NEWER_NODE, everything, transport], env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    await_port(process, port)
    return process


@pytest.fixture(params=["streamableHttp", "sse"])
def everything_http(request, everything):
    port = None
    for attempt in range(5):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        process = start_everything(everything, port, request.param)
        if process.poll() is None:
            break
    it = SimpleNamespace(url=f"http://127.0.0.1:{port}/{'mcp' if request.param == 'streamableHttp' else 'sse'}", port=port, process=process)
    yield it
    it.process.kill()
    it.process.wait()


@pytest.mark.limit(90)
def test_the_everything_server_over_http(box, everything_http):
    it = box({"web": {"url": everything_http.url}})
    it.ready("web")
    eventually(lambda: "web__simulate-research-query" in it.tools(), "the tools it adds after the greeting", 10 * SLACK)
    call_all(it, "web")
    stream = it.run("web__trigger-long-running-operation", {"duration": 0.4, "steps": 2})
    assert "2/2" in "".join(e["content"] for e in stream.all("tool_output_delta"))


@pytest.mark.limit(60)
def test_progress_and_cancellation_of_the_everything_server(box, everything):
    it = box({"every": {"command": "node", "args": [everything]}})
    it.ready("every")
    stream = it.start("every__trigger-long-running-operation", {"duration": 600, "steps": 6000})
    stream.until("tool_output_delta")
    assert stream.events[-1]["content"].startswith("1/6000")
    it.client.cancel("c", stream.interaction).expect(200)
    began = stream.until("cancelled").at
    stream.finish("CANCELLED")
    assert stream.events[-1].at - began < 5 * SLACK
    it.provider.forget_plan()
    assert it.ok("every__echo", {"message": "still there"})


@pytest.mark.limit(60)
def test_the_filesystem_server_works_in_the_workspace(box, filesystem, make_home):
    home = make_home()
    (home.workspace / "a.txt").write_text("from the workspace")
    it = box({"files": {"command": "node", "args": [filesystem], "trust_annotations": True}}, home=home)
    assert it.ready("files")["tools"] >= 10
    # It takes calls before it has taken in our answer to its roots/list.
    read = eventually(lambda: (r := it.result("files__read_text_file", {"path": str(home.workspace / "a.txt")})) and not r["is_error"] and r, "it has its roots", 20 * SLACK)
    assert read["tool_output"] == "from the workspace"
    it.ok("files__write_file", {"path": str(home.workspace / "b.txt"), "content": "written"})
    assert (home.workspace / "b.txt").read_text() == "written"
    assert it.result("files__read_text_file", {"path": "/etc/passwd"})["is_error"]
    listed = it.tools()
    assert listed["files__read_text_file"]["read_only"] and not listed["files__write_file"]["read_only"]


@pytest.mark.limit(60)
def test_the_filesystem_server_works_in_its_own_folders(box, filesystem, make_home):
    """The example of docs/mcp.md: folders in the arguments, with and without the same under roots."""
    home = make_home()
    notes = home.user / "notes"
    notes.mkdir(parents=True)
    (notes / "a.txt").write_text("a note")
    (home.workspace / "b.txt").write_text("of the workspace")
    servers = {name: {"command": "node", "args": [filesystem, "${HOME}/notes"], "roots": roots}
               for name, roots in (("named", ["${HOME}/notes"]), ("none", []))}
    it = box(servers, home=home)
    for name in servers:
        it.ready(name)
        assert it.ok(f"{name}__read_text_file", {"path": str(notes / "a.txt")}) == "a note"
        assert it.result(f"{name}__read_text_file", {"path": str(home.workspace / "b.txt")})["is_error"]


def test_a_servers_instructions_are_told_to_the_model(box):
    it = box({"scripted": scripted("instructions", "Greet first. {{date}} stays."), "long": scripted("instructions", "x" * 9000), "plain": scripted()})
    for name in ("scripted", "long", "plain"):
        it.ready(name)
    it.ok("plain__echo", {"text": "x"})
    told = json.dumps(it.provider.requests[-1].body, ensure_ascii=False)
    assert "The MCP server scripted says of its tools" in told and "Greet first. {{date}} stays." in told
    assert "x" * 4000 in told and "x" * 4001 not in told and "The MCP server plain" not in told


def test_an_optional_argument_that_is_null_is_one_that_is_not_given(box):
    it = box({"scripted": scripted()})
    it.ready("scripted")
    assert json.loads(it.ok("scripted__given", {"a": None, "b": 7, "c": None, "d": None})) == {"b": 7, "d": None}
    assert it.result("scripted__echo", {"text": None})["is_error"]  # `text` is required


def test_a_server_that_crashes_is_told_with_the_lines_that_say_why(box):
    it = box({"broken": {"command": "node", "args": ["-e", "throw new Error('no API key: set EXAMPLE_KEY')"]}})
    failed = eventually(lambda: (s := it.state("broken"))["state"] == "failed" and s, "it fails", 20 * SLACK)
    assert "Error: no API key: set EXAMPLE_KEY" in failed["message"] and "Node.js v" not in failed["message"]


# --- revision 2026-07-28, by the official SDK --------------------------------------------------------------------------

MODERN = pathlib.Path(__file__).parent / "support" / "mcp_modern_server.mjs"


@pytest.fixture(params=["stdio", "http"])
def modern(request):
    """The configuration of a server that supports no older revision."""
    command = [*NEWER_NODE, str(MODERN), str(install(SERVER_SDK, "zod@4.2.0") / "@modelcontextprotocol" / "server")]
    if request.param == "stdio":
        yield {"command": "node", "args": [*command, "stdio"]}
        return
    process = None
    for attempt in range(5):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        process = subprocess.Popen(["node", *command, "http", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        if await_port(process, port):
            break
    yield {"url": f"http://127.0.0.1:{port}/mcp"}
    process.kill()
    process.wait()


@pytest.mark.limit(90)
def test_a_server_of_the_newest_revision(box, modern):
    it = box({"m": modern})
    assert it.ready("m")["message"] == "modern 7"
    assert it.ok("m__route", {"region": "Zürich", "text": "x"}) == "Zürich: x"  # the region is also sent in a header
    assert it.result("m__greet", answer={"name": "Ada"})["tool_output"] == "hello Ada"
    assert it.result("m__greet")["tool_output"] == "hello nobody (decline)"
    stream = it.run("m__visit", answer="done")
    assert stream.one("input_required")["url"] == "https://example.org/x" and stream.one("tool_result")["tool_output"] == "page: accept"
    assert it.server.home.workspace.name in it.ok("m__where")
    assert len(it.result("m__picture")["files"]) == 1
    stream = it.run("m__slow")
    assert "half (1/2)" in "".join(e["content"] for e in stream.all("tool_output_delta"))
    assert it.ok("m__read_resource", {"uri": "note://one"}).endswith("a note")
    assert "say hi" in it.ok("m__get_prompt", {"name": "hi"})
    it.ok("m__grow")  # announced through the subscription
    eventually(lambda: "m__new" in it.tools(), "the tool that was added", 20 * SLACK)
    assert it.ok("m__new") == "I am new"


# --- approval ----------------------------------------------------------------------------------------------------------

def test_tools_ask_and_say_when_they_are_new(box):
    it = box({"scripted": scripted()}, mode="ask")
    it.ready("scripted")
    for reason in ("calls the MCP server scripted; this tool has not been approved before", "calls the MCP server scripted"):
        stream = it.start("scripted__echo", {"text": "x"})
        asked = stream.until("approval_required")
        assert asked["reason"] == reason
        it.client.approve("c", stream.interaction, asked["approval_id"]).expect(200)
        stream.finish()
        assert stream.one("tool_result")["tool_output"] == "x"


def test_a_rejected_call_gives_no_consent(box):
    it = box({"scripted": scripted()}, mode="ask")
    it.ready("scripted")
    for _ in range(2):
        stream = it.start("scripted__echo", {"text": "x"})
        asked = stream.until("approval_required")
        assert "has not been approved before" in asked["reason"]
        it.client.approve("c", stream.interaction, asked["approval_id"], approved=False).expect(200)
        stream.finish()
        assert stream.one("tool_result")["is_error"]


def test_a_swapped_server_needs_new_consent_in_spite_of_grants(box, make_home):
    home = make_home()

    def asked_for(it, scope="once"):
        it.ready("scripted")
        stream = it.start("scripted__echo", {"text": "x"})
        event = stream.next()
        while event.name not in ("approval_required", "tool_result"):
            event = stream.next()
        if event.name == "approval_required":
            it.client.approve("c", stream.interaction, event["approval_id"], scope=scope).expect(200)
        stream.finish()
        return event["reason"] if event.name == "approval_required" else None

    first = box({"scripted": scripted("described", "harmless", trust_annotations=True)}, mode="ask", home=home)
    assert "not been approved" in asked_for(first, "chat")
    assert asked_for(first) is None
    first.server.stop()
    again = box({"scripted": scripted("described", "harmless", trust_annotations=True)}, mode="ask", home=home)
    assert asked_for(again) is None
    again.server.stop()
    swapped = box({"scripted": scripted("described", "evil", trust_annotations=True)}, mode="ask", home=home)
    assert "COMMAND OR ADDRESS HAS CHANGED" in asked_for(swapped)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_pending_approval_survives_the_end(box, make_home, end):
    home = make_home()
    it = box({"scripted": scripted()}, mode="ask", home=home)
    it.ready("scripted")
    stream = it.start("scripted__echo", {"text": "late"})
    asked = stream.until("approval_required")
    interaction = stream.interaction
    getattr(it.server, end)()
    stream.close()
    again = box({"scripted": scripted()}, mode="ask", home=home)
    stream = again.client.attach("c", interaction)
    again.client.approve("c", interaction, asked["approval_id"]).expect(200)
    stream.finish()
    assert stream.one("tool_result")["tool_output"] == "late"


# --- failures ----------------------------------------------------------------------------------------------------------

def test_connecting_delays_no_request(box):
    it = box({"deaf": scripted("deaf"), "none": {"command": "no-such-program"}, "scripted": scripted()})
    assert it.server.start_seconds < 1 * SLACK
    assert it.state("deaf")["state"] == "connecting"
    it.ready("scripted")
    assert eventually(lambda: (s := it.state("none"))["state"] == "failed" and s, "it fails")["message"] == (
        "there is no program no-such-program")
    assert it.state("deaf")["state"] == "connecting"
    assert it.server.stop() < 2 * SLACK
    assert not processes(str(it.server.home.path) + "/none")


def test_a_killed_server_fails_the_call_at_once_and_comes_back(box):
    it = box({"scripted": scripted("plain", "killed-6311")})
    it.ready("scripted")
    stream = it.start("scripted__sleep")
    stream.until("tool_output_delta")  # so that the server has the call; otherwise the next server would get it
    (process,) = processes("killed-6311")
    os.kill(process, signal.SIGKILL)
    result = stream.until("tool_result", limit=3 * SLACK)
    assert result["is_error"] and "ended by signal 9" in result["tool_output"]
    stream.finish()
    assert it.ok("scripted__echo", {"text": "back"}) == "back"
    assert processes("killed-6311") != [process]


@pytest.mark.parametrize("everything_http", ["streamableHttp"], indirect=True)
@pytest.mark.limit(90)
def test_a_restarted_http_server_comes_back(box, everything_http, everything):
    """This server answers an unknown session with 400, not 404."""
    it = box({"web": {"url": everything_http.url}})
    it.ready("web")
    assert "hällo" in it.ok("web__echo", {"message": "hällo"})
    everything_http.process.kill()
    everything_http.process.wait()
    everything_http.process = start_everything(everything, everything_http.port)
    eventually(lambda: "hällo" in it.result("web__echo", {"message": "hällo"})["tool_output"], "a call reaches the new server", 30 * SLACK)


def test_a_form_that_does_not_fit_is_refused_and_asked_on(box):
    it = box({"scripted": scripted()})
    it.ready("scripted")
    stream = it.start("scripted__ask")
    asked = stream.until("input_required")

    def respond(response):
        return it.client.respond("c", stream.interaction, asked["request_id"], response)

    for wrong, field in [("{}", "name"), ('{"name":7}', "name"), ('{"name":"Ann","age":"old"}', "age"), ('{"name":"Ann","nmae":"x"}', "nmae")]:
        error = respond(wrong).error(400, "invalid_response")
        assert field in error["message"]
    respond("Ann").error(400)
    assert it.client.interaction("c", stream.interaction)["status"] == "WAITING_INPUT"
    respond('{"name":"Ann"}').expect(200, "respond_response")
    stream.finish()
    assert json.loads(stream.one("tool_result")["tool_output"]) == {"action": "accept", "content": {"name": "Ann", "age": 30}}


def test_a_page_that_must_be_opened_first_is_asked_for(box):
    it = box({"scripted": scripted()})
    it.ready("scripted")
    stream = it.start("scripted__open_first")
    asked = stream.until("input_required")
    assert asked["url"] == "https://login.example/x" and asked["question"] == "Log in"
    it.client.respond("c", stream.interaction, asked["request_id"], "done").expect(200)
    stream.finish()
    assert stream.one("tool_result")["tool_output"] == "opened, call 2"


def test_a_page_that_is_not_opened_is_named_to_the_model(box):
    it = box({"scripted": scripted()})
    it.ready("scripted")
    result = it.result("scripted__open_first")  # declined
    assert result["is_error"] and "https://login.example/x (Log in)" in result["tool_output"]


def test_an_answer_that_cannot_be_read_ends_its_call(box):
    it = box({"scripted": scripted()})
    it.ready("scripted")
    deep = b'{"jsonrpc":"2.0","id":ID,"result":{"x":' + b"[" * 600 + b"]" * 600 + b"}}"
    result = it.result("scripted__raw", {"hex": deep.hex()})
    assert result["is_error"] and "cannot be read: JSON nested deeper than 512 levels" in result["tool_output"]
    broken = b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"a\xc3"}]}}'
    assert it.ok("scripted__raw", {"hex": broken.hex()}) == "a\ufffd"


@pytest.mark.large
def test_a_long_text_is_told_by_its_ends_and_kept_as_a_whole(box):
    b = box({"s": scripted()})
    b.ready("s")
    told = b.ok("s__echo", {"text": "a word " * 50_000 + "the end "})
    assert len(told) < 34_000 and told.startswith("a word a") and "bytes cut" in told and "word the end \n(the whole" in told
    kept = re.search(r'the whole output, 350,008 bytes, is kept in this chat: .* path "(.*)"\)$', told)
    assert kept, told[-300:]
    assert "a word" in b.ok("read_file", {"path": kept[1]})
    files = b.client.get("/chats/c/files").expect(200).json["files"]
    assert [each["size_bytes"] for each in files] == [350_008]


def test_hostile_servers_do_no_harm(box):
    it = box({"flood": scripted("flood"), "notices": scripted("notices"), "endless": scripted("endless"), "garbage": scripted("garbage"),
              "strange": scripted("strange"), "scripted": scripted()})
    it.ready("scripted")
    it.ready("garbage")
    before = it.server.memory_kb()
    for name in ("flood", "notices", "endless"):
        message = eventually(lambda: (s := it.state(name))["state"] == "failed" and s["message"], f"{name} is ended", 40 * SLACK)
        # Under ThreadSanitizer a flood may pass so slowly that only the missing answer is noticed.
        assert "floods" in message or "without an end" in message or "does not read" in message or SLACK >= 10 and "did not answer" in message
        assert it.ok("scripted__echo", {"text": name}) == name
    assert it.server.memory_kb() - before < 64 * 1024 * SLACK
    names = [name for name in it.tools() if name.startswith("strange__")]
    assert len(names) == 3 and all(len(name) <= 64 and name.isascii() for name in names)


def test_wrong_arguments_do_not_reach_the_server(box):
    it = box({"scripted": scripted()})
    it.ready("scripted")
    result = it.result("scripted__echo", {"text": 7})
    assert result["is_error"] and "must be of type" in result["tool_output"]


def test_servers_end_with_ours(box):
    it = box({"scripted": scripted("plain", "ends-6312"), "deaf": scripted("deaf", "ends-6312")})
    it.ready("scripted")
    eventually(lambda: len(processes("ends-6312")) == 2, "both run")
    assert it.server.stop() < 2 * SLACK
    assert not processes("ends-6312")


def test_servers_die_with_a_killed_server(box):
    it = box({"scripted": scripted("plain", "dies-6313"), "deaf": scripted("deaf", "dies-6313")})
    it.ready("scripted")
    eventually(lambda: len(processes("dies-6313")) == 2, "both run")
    it.server.kill()
    eventually(lambda: not processes("dies-6313"), "they are gone", 3 * SLACK)


def test_doctor_looks_at_the_servers(make_home):
    home = make_home()
    file = home.path / "reprise.json"
    file.write_text(json.dumps({"mcpServers": {"good": scripted(), "bad": scripted("exit")}}))
    file.chmod(0o600)
    done = subprocess.run([str(BINARY), "doctor", "--json", "--config", str(file), "--workspace", str(home.workspace), "--port", "0"],
                          env=home.environment(), cwd=home.path, stdout=subprocess.PIPE, timeout=SOON * 3, check=False)
    checks = {c["check"]: c for c in json.loads(done.stdout)["checks"]}
    assert checks["MCP server good"]["verdict"] == "ok"
    assert checks["MCP server good"]["message"] == "scripted 1 answers (protocol 2025-11-25) and has 18 tools"
    assert checks["MCP server bad"]["verdict"] == "fail"
    assert checks["MCP server bad"]["message"] == "the server ended with exit status 3: no configuration"
    assert done.returncode == 1


def test_many_tools_are_deferred_until_they_are_looked_for(make_server, provider):
    many = ", ".join(f'{{"name": "t{n}", "description": "Number {n} " + "." * 300, "inputSchema": {{"type": "object"}}}}' for n in range(30))
    servers = {"big": server_of('{"name": "brew", "description": "Makes coffee.", "inputSchema": {"type": "object"}}, ' + many, '"hot"')}
    server = make_server(provider, config={"mcpServers": servers, "approval_mode": "approve_all", "models": {"test/scripted": {"context_window": 32768}}})
    eventually(lambda: any(s["state"] == "ready" for s in server.client.get("/tools").json["servers"]), "the server is ready")
    provider.plan(tools(call("search_tools", {"query": "coffee"}, "s")), tools(call("big__brew", {}, "b")), text("done"))
    stream = server.client.turn("c", "make coffee")
    search, brewed = stream.all("tool_result")
    assert search["tool_output"].startswith("big__brew: Makes coffee.") and brewed["tool_output"] == "hot" and not stream.all("approval_required")
    first, second, third = ([t["function"]["name"] for t in r.body["tools"]] for r in provider.requests)
    assert "search_tools" in first and not any(name.startswith("big__") for name in first)
    assert [name for name in second if name.startswith("big__")] == ["big__brew"] == [name for name in third if name.startswith("big__")]
    description = next(t["function"]["description"] for t in provider.requests[0].body["tools"] if t["function"]["name"] == "search_tools")
    assert "big__* (31)" in description
    assert server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]
    provider.plan(text("ok"))
    server.client.turn("c", "and now?")
    assert [t["function"]["name"] for t in provider.requests[-1].body["tools"]] == third, "the next turn knows what was found"
