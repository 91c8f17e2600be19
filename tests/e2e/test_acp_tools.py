"""MCP servers that a client of `reprise acp` names for a session: their tools belong to that chat, and each call needs approval."""
import json
import os
import pathlib
import select
import signal
import subprocess
import time

import pytest
from support.acp import Agent, Refused
from support.mcp import ChangeableServer, server_of
from support.provider import call, text, tools
from support.timing import SLACK, SOON, eventually


@pytest.fixture
def connect():
    agents = []

    def make(server, **more):
        agents.append(Agent(server.home, "--url", f"http://127.0.0.1:{server.port}", **more))
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()


def named(name, configuration, **env):
    return {"name": name, "env": [{"name": key, "value": value} for key, value in env.items()], **configuration}


def told(request):
    """The tools offered to the model, by name."""
    return {tool["function"]["name"]: tool["function"] for tool in request.body["tools"]}


def results(provider):
    return [m["content"] for m in provider.requests[-1].conversation if m["role"] == "tool"]


ECHO = """{"name": "do", "description": "does it", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}"""
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="


def test_a_tool_of_the_client(connect, server, provider):
    agent = connect(server)
    session = agent.new(server.home.workspace, [named("my tools", server_of(ECHO, "__import__('os').environ['GREETING'] + str(request['params']['arguments']['n'])"), GREETING="hello ")])
    provider.plan(tools(call("my-tools__do", {"n": 3}), call("my-tools__do", {"n": "x"})), text("done"))
    number = agent.prompt(session, "go")
    request = agent.asked()
    assert "my-tools__do" in request["params"]["toolCall"]["title"]
    approval = server.client.get("/approvals").json["approvals"][0]
    assert approval["reason"] == "runs beside the editor, by the MCP server my-tools" and approval["risk"] == "high"
    agent.choose(request, "allow_once")
    assert agent.answer(number) == {"stopReason": "end_turn"}
    assert told(provider.requests[0])["my-tools__do"]["description"] == "does it"
    first, second = results(provider)
    assert first == "hello 3" and "integer" in second, "a call that violates the schema is not asked about"
    assert agent.calls()[0]["status"] == "completed"
    provider.plan(text("nothing"))
    server.client.start("other", "go").finish()
    assert "my-tools__do" not in told(provider.requests[-1]), "other chats do not have the tool"


def test_always_is_for_always(connect, server, provider):
    agent = connect(server)
    servers = [named("s", server_of(ECHO, "'it'"))]
    session = agent.new(server.home.workspace, servers)
    provider.plan(tools(call("s__do", {"n": 1})), text("done"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_always:0")
    assert agent.answer(number)["stopReason"] == "end_turn" and results(provider) == ["it"]
    other = agent.new(server.home.workspace, servers)
    provider.plan(tools(call("s__do", {"n": 2})), text("done"))
    assert agent.answer(agent.prompt(other, "go"))["stopReason"] == "end_turn" and results(provider) == ["it"] and not agent.requests


def test_an_answer_that_is_too_long_is_told_to_be(connect, server, provider):
    agent = connect(server)
    session = agent.new(server.home.workspace, [named("s", server_of(ECHO, "'x'}, {'type': 'image', 'mimeType': 'image/png', 'data': 'AAAA' * (16 << 20)"))])
    provider.plan(tools(call("s__do", {"n": 1})), text("done"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_once")
    assert agent.answer(number)["stopReason"] == "end_turn"
    assert results(provider)[0] != "", results(provider)


def test_what_is_granted_holds_for_what_it_was(connect, server, provider, tmp_path):
    it = ChangeableServer(tmp_path)
    agent = connect(server)
    session = agent.new(server.home.workspace, [named("s", it.configuration())])
    once = tools(call("s__do", {"n": 1}))
    provider.plan(once, once, text("done"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_chat")
    assert agent.answer(number)["stopReason"] == "end_turn" and len(it.calls()) == 2 and not agent.requests, "only one call is asked about"
    it.offer("does something else")
    it.announce()

    def is_told():
        provider.plan(text("now"))
        agent.answer(agent.prompt(session, "look"))
        return told(provider.requests[-1])["s__do"]["description"] == "does something else"
    eventually(is_told, "the model gets the changed tool")
    provider.plan(once, text("done"))
    number = agent.prompt(session, "again")
    agent.choose(agent.asked(), "reject_once")
    assert agent.answer(number)["stopReason"] == "end_turn" and len(it.calls()) == 2, "a changed tool is asked about"


def test_a_tool_that_comes_later_and_goes(connect, server, provider, tmp_path):
    it = ChangeableServer(tmp_path)
    it.offer(there=False)
    agent = connect(server)
    session = agent.new(server.home.workspace, [named("s", it.configuration())])
    provider.plan(text("nothing"))
    agent.answer(agent.prompt(session, "go"))
    assert "s__do" not in told(provider.requests[-1])
    for there in (True, False):
        it.offer(there=there)
        it.announce()

        def is_told():
            provider.plan(text("now"))
            agent.answer(agent.prompt(session, "go"))
            return ("s__do" in told(provider.requests[-1])) == there
        eventually(is_told, "the model gets the present tools")


def test_output_that_is_not_text_becomes_a_file(connect, server, provider):
    agent = connect(server)
    answer = f"'here'}}, {{'type': 'image', 'mimeType': 'image/png', 'data': '{PICTURE}'"
    session = agent.new(server.home.workspace, [named("s", server_of(ECHO, answer))])
    provider.plan(tools(call("s__do", {"n": 1})), text("done"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_once")
    assert agent.answer(number)["stopReason"] == "end_turn" and "here" in results(provider)[0]
    files = server.client.get(f"/chats/{session}/files").json["files"]
    assert [f["mime_type"] for f in files] == ["image/png"]


def test_a_server_over_http(connect, make_server, server, provider):
    other = make_server(provider)
    agent = connect(server)
    session = agent.new(server.home.workspace, [{"type": "http", "name": "web", "url": f"http://127.0.0.1:{other.port}/mcp", "headers": []}])
    provider.plan(tools(call("web__list_chats", {})), text("done"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_once")
    assert agent.answer(number)["stopReason"] == "end_turn"
    assert "chats" in results(provider)[0] or "no chat" in results(provider)[0].lower()


def test_a_server_that_does_not_come(connect, server, provider):
    agent = connect(server)
    session = agent.new(server.home.workspace, [named("gone", {"command": "/nonexistent/program", "args": []}), named("s", server_of(ECHO, "'it'"))])
    provider.plan(tools(call("s__do", {"n": 1})), text("done"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_once")
    assert agent.answer(number)["stopReason"] == "end_turn" and results(provider) == ["it"]
    assert "the MCP server gone of the client does not come" in (server.home.path / "acp.log").read_text()


def test_a_cancel_ends_the_call(connect, server, provider, tmp_path):
    begun = tmp_path / "begun"
    agent = connect(server)
    session = agent.new(server.home.workspace, [named("s", server_of(ECHO, f"(open({str(begun)!r}, 'w').close(), __import__('time').sleep(600))"))])
    provider.plan(tools(call("s__do", {"n": 1})), text("never"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_once")
    eventually(begun.exists, "the call has begun")
    begin = time.monotonic()
    agent.notify("session/cancel", sessionId=session)
    assert agent.answer(number) == {"stopReason": "cancelled"} and time.monotonic() - begin < 1 * SLACK


def test_a_client_that_ends_takes_its_servers_along(connect, server, provider, tmp_path):
    it = ChangeableServer(tmp_path)
    agent = connect(server)
    session = agent.new(server.home.workspace, [named("s", it.configuration())])
    provider.plan(tools(call("s__do", {"n": 1})), text("done"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_once")
    agent.answer(number)
    pid = int(it.pid_file.read_text())
    assert pathlib.Path(f"/proc/{pid}").exists()
    agent.process.kill()
    agent.process.wait()

    def is_gone():
        try:
            return (pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]) == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True
    eventually(is_gone, "the process is gone")
    provider.plan(text("alone"))
    server.client.start(session, "go on").finish()
    assert "s__do" not in told(provider.requests[-1])


def test_a_call_that_waits_for_an_answer_when_the_client_ends(connect, server, provider, tmp_path):
    """Another client of the session brings the same tool, and its answer counts."""
    it = ChangeableServer(tmp_path)
    agent = connect(server)
    session = agent.new(server.home.workspace, [named("s", it.configuration())])
    provider.plan(tools(call("s__do", {"n": 1})), text("done"))
    agent.prompt(session, "go")
    agent.asked()
    agent.process.kill()
    agent.process.wait()
    other = connect(server)
    other.call("session/resume", sessionId=session, cwd=str(server.home.workspace), mcpServers=[named("s", it.configuration())])
    other.choose(other.asked(), "allow_once")
    eventually(lambda: len(it.calls()) == 1, "it runs")
    eventually(lambda: server.client.get(f"/chats/{session}").json["interactions"][-1]["status"] == "COMPLETED", "the run completes")


@pytest.mark.parametrize("servers", ["x", [1], [{}], [{"name": "a"}], [{"name": "a", "command": 1}], [{"name": "a", "command": "x", "args": [1]}],
                                     [{"name": "a", "command": "x", "env": [{"name": "a"}]}], [{"type": "sse", "name": "a", "url": "http://127.0.0.1:1/"}],
                                     [{"type": "http", "name": "a", "url": "file:///etc/passwd"}], [{"name": "a", "command": "true"}] * 33])
def test_invalid_servers(connect, server, servers):
    agent = connect(server)
    with pytest.raises(Refused) as refused:
        agent.call("session/new", check=False, cwd=str(server.home.workspace), mcpServers=servers)
    assert refused.value.code == -32602 and "mcpServers" in str(refused.value)
    assert agent.call("session/list") == {"sessions": []}


def test_unusable_server_names(connect, server, provider):
    """Neither name leads out of the folder for MCP servers, and the two servers get distinct names."""
    agent = connect(server)
    where = "__import__('os').getcwd()"
    session = agent.new(server.home.workspace, [named("../../x", server_of(ECHO, where)), named("..-..-x", server_of(ECHO, where))])
    provider.plan(tools(call("------x__do", {"n": 1}), call("------x-2__do", {"n": 1})), text("done"))
    number = agent.prompt(session, "go")
    for _ in range(2):
        agent.choose(agent.asked(), "allow_once")
    assert agent.answer(number)["stopReason"] == "end_turn"
    names = [name for name in told(provider.requests[0]) if name.endswith("do")]
    assert len(names) == 2 and len(set(names)) == 2, names
    folders = [os.path.dirname(each) for each in results(provider)]
    assert folders[0] == folders[1] and folders[0].endswith("/reprise/mcp"), results(provider)


# --- the client's terminal -------------------------------------------------------------------------------------------
class Terminals:
    """The terminals of a client, which run commands as an editor would."""

    def __init__(self, agent, option="allow_once"):
        self.agent, self.option = agent, option
        self.processes, self.asked, self.waiting = {}, [], {}

    def serve(self, until):
        """Answers the agent's requests until `until` holds."""
        deadline = time.monotonic() + SOON
        while not until():
            assert time.monotonic() < deadline
            for request in [r for r in self.agent.requests if r["id"] not in self.waiting]:
                self.answer(request)
            for request, process in list(self.waiting.values()):
                if process.poll() is not None:
                    del self.waiting[request["id"]]
                    code = process.returncode
                    self.agent.reply(request, {"exitCode": code} if code >= 0 else {"signal": signal.Signals(-code).name})
            if b"\n" in self.agent.buffer or select.select([self.agent.process.stdout], [], [], 0.01)[0]:
                self.agent.receive()

    def answer(self, request):
        method, params = request["method"], request["params"]
        self.asked.append(method)
        if method == "session/request_permission":
            return self.agent.choose(request, self.option)
        if method == "terminal/create":
            name = f"term_{len(self.processes)}"
            self.processes[name] = subprocess.Popen([params["command"], *params["args"]], cwd=params["cwd"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                                    stdin=subprocess.DEVNULL, start_new_session=True)
            return self.agent.reply(request, {"terminalId": name})
        process = self.processes[params["terminalId"]]
        if method == "terminal/wait_for_exit":
            self.waiting[request["id"]] = request, process
            return None
        if method == "terminal/output":
            return self.agent.reply(request, {"output": process.stdout.read().decode(), "truncated": False})
        if method == "terminal/kill":
            os.killpg(process.pid, signal.SIGKILL)
        return self.agent.reply(request, {})

    def prompt(self, session, text):
        number = self.agent.prompt(session, text)
        self.serve(lambda: number in self.agent.answers)
        return self.agent.answer(number)


def test_a_command_in_the_clients_terminal(connect, server, provider):
    agent = connect(server, capabilities={"terminal": True})
    terminals = Terminals(agent)
    session = agent.new(server.home.workspace)
    provider.plan(tools(call("run_in_terminal", {"command": "pwd; echo out; echo err >&2"}, "a"), call("run_in_terminal", {"command": "exit 3"}, "b"),
                        call("run_in_terminal", {"command": "kill -9 $$"}, "c")), text("done"))
    assert terminals.prompt(session, "go") == {"stopReason": "end_turn"}
    first, second, third = results(provider)
    assert first == f"{server.home.workspace}\nout\nerr\n" and second == "(exit status 3)" and third == "(ended by SIGKILL)"
    assert [each for each in terminals.asked if each.startswith("terminal/")] == ["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"] * 3
    assert terminals.asked.count("session/request_permission") == 3
    shown = [u for u in agent.updates if any(c["type"] == "terminal" for c in u.get("content", []) if isinstance(c, dict))]
    assert {u["toolCallId"].rsplit("/", 1)[1] for u in shown} == {"a", "b", "c"} and [c["kind"] for c in agent.calls()] == ["execute"] * 3
    assert [c["status"] for c in agent.calls()] == ["completed", "failed", "failed"]
    provider.plan(text("nothing"))
    server.client.start("other", "go").finish()
    assert "run_in_terminal" not in told(provider.requests[-1])


def test_what_a_person_is_told_of_a_command_in_the_terminal(connect, server, provider):
    agent = connect(server, capabilities={"terminal": True})
    session = agent.new(server.home.workspace)
    provider.plan(tools(call("run_in_terminal", {"command": "true"})), text("done"))
    number = agent.prompt(session, "go")
    request = agent.asked()
    said = json.dumps(request["params"]["toolCall"]["content"])
    assert "runs beside the editor, by its terminal, outside the sandbox" in said and server.client.get("/approvals").json["approvals"][0]["risk"] == "high"
    agent.choose(request, "reject_once")
    assert agent.answer(number)["stopReason"] == "end_turn" and not [r for r in agent.requests if r["method"].startswith("terminal/")]


def test_a_cancel_kills_the_command(connect, server, provider):
    agent = connect(server, capabilities={"terminal": True})
    terminals = Terminals(agent)
    session = agent.new(server.home.workspace)
    provider.plan(tools(call("run_in_terminal", {"command": "sleep 600"})), text("never"))
    number = agent.prompt(session, "go")
    terminals.serve(lambda: terminals.waiting)
    agent.notify("session/cancel", sessionId=session)
    terminals.serve(lambda: number in agent.answers and "terminal/release" in terminals.asked)
    assert agent.answer(number) == {"stopReason": "cancelled"} and terminals.processes["term_0"].wait(SOON) == -signal.SIGKILL


def test_a_terminal_that_does_not_open(connect, server, provider):
    agent = connect(server, capabilities={"terminal": True})
    session = agent.new(server.home.workspace)
    provider.plan(tools(call("run_in_terminal", {"command": "true"})), text("done"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_once")
    request = agent.asked("terminal/create")
    agent.requests.remove(request)
    agent.send({"id": request["id"], "error": {"code": -32603, "message": "no more terminals"}})
    assert agent.answer(number)["stopReason"] == "end_turn" and "no more terminals" in results(provider)[0]


def test_a_client_without_a_terminal(connect, server, provider):
    agent = connect(server, capabilities={"fs": {"readTextFile": True}})
    provider.plan(text("nothing"))
    agent.answer(agent.prompt(agent.new(server.home.workspace), "go"))
    assert "run_in_terminal" not in told(provider.requests[-1])
