"""What every door must do: OpenAI's two interfaces, ACP, AG-UI and MCP. A table has a cell for each demand and door. The tests after it are the same
for all doors, or for all whose protocol allows it."""
import json
import itertools

import pytest
from support.acp import Agent, Refused
from support.agui import Run as AgUiRun
from support.demands import Left, at, wanting
from support.mcp_client import STATELESS, McpClient
from support.provider import Gate, call, text, tools
from support.timing import eventually
from test_openai import Sse

HERE = "test_doors.py"
NUMBER = itertools.count(1)


def here(*names):
    return at(HERE, *names)


def openai(*names):
    return at("test_openai.py", *names)


def acp(*names):
    return at("test_acp.py", *names)


def agui(*names):
    return at("test_agui.py", *names)


def mcp(*names):
    return at("test_mcp_server.py", *names)


TEXT_ONLY = Left("OpenAI's interfaces have no message by which a client answers for its person: the question is text with a link, and is answered elsewhere")
NO_EDIT = Left("the protocol tells a new message alone: nothing in it names an earlier one, so that it could be changed")

# By demand: for each door, the test that shows it.
TABLE = {
    "a chat with tools": {
        "chat completions": openai("test_tools_run_here_and_thinking_is_reasoning", "test_the_official_client_chats"),
        "responses": openai("test_a_response_is_a_stream_of_typed_events", "test_the_official_client_asks_for_responses"),
        "acp": acp("test_a_turn_with_tools", "test_the_official_client"), "ag-ui": agui("test_a_chat_with_tools", "test_the_official_client"),
        "mcp": mcp("test_a_chat_with_tools", "test_the_official_client")},
    "an approval that the client answers": {
        "chat completions": TEXT_ONLY, "responses": TEXT_ONLY, "acp": acp("test_a_turn_with_tools", "test_always_is_a_grant"),
        "ag-ui": agui("test_an_approval_that_the_client_answers", "test_what_may_be_answered"),
        "mcp": mcp("test_an_approval_that_the_client_answers", "test_what_may_be_answered")},
    "an approval that is answered elsewhere meanwhile": {
        "chat completions": openai("test_an_approval_is_text_with_a_link_and_is_answered_elsewhere") + here("test_an_approval_is_answered_elsewhere"),
        "responses": here("test_an_approval_is_answered_elsewhere"), "acp": acp("test_an_approval_that_is_answered_elsewhere"),
        "ag-ui": agui("test_an_approval_that_is_answered_elsewhere"), "mcp": mcp("test_an_approval_that_is_answered_elsewhere")},
    "a cancel": {
        "chat completions": Left("the interface has no cancel: its client closes the connection, which is the row below, or somebody cancels elsewhere") ,
        "responses": openai("test_cancel", "test_the_official_client_leaves_and_cancels"), "acp": acp("test_a_cancel"),
        "ag-ui": agui("test_a_client_that_is_gone_in_mid_stream", "test_the_official_client"), "mcp": mcp("test_a_cancel")},
    "a cancel by somebody else": dict.fromkeys(("chat completions", "responses", "acp", "ag-ui", "mcp"), here("test_a_cancel_by_somebody_else")),
    "a client that is killed in mid-stream": {
        "chat completions": openai("test_a_client_that_is_killed_cancels_its_run_and_its_next_message_takes_its_place"),
        "responses": here("test_a_client_that_goes_in_mid_stream"), "acp": acp("test_a_client_that_is_killed_in_mid_stream"),
        "ag-ui": here("test_a_client_that_goes_in_mid_stream"), "mcp": mcp("test_a_client_that_is_gone_in_mid_stream")},
    "kill -9 of the server while an approval waits, and going on": {
        "chat completions": openai("test_after_kill_9_the_approval_waits_and_the_conversation_goes_on"), "responses": here("test_kill_9_while_an_approval_waits"),
        "acp": acp("test_kill_9_of_the_server_while_it_waits"), "ag-ui": agui("test_kill_9_while_it_waits"), "mcp": mcp("test_kill_9_while_it_waits")},
    "kill -9 of the server in mid-stream, and going on": {
        "chat completions": here("test_kill_9_in_mid_stream"), "responses": here("test_kill_9_in_mid_stream"), "acp": acp("test_kill_9_of_the_server_in_mid_stream"),
        "ag-ui": here("test_kill_9_in_mid_stream"), "mcp": here("test_kill_9_in_mid_stream")},
    "message 3 of 10, changed: a branch with the state before it": {
        "chat completions": here("test_message_3_of_10_is_changed"), "responses": here("test_message_3_of_10_is_changed"), "acp": NO_EDIT,
        "ag-ui": here("test_message_3_of_10_is_changed"), "mcp": NO_EDIT},
    "two doors on one chat at once": dict.fromkeys(("chat completions", "responses", "acp", "ag-ui", "mcp"), here("test_two_doors_on_one_chat")),
    "what a model says cannot break the stream": dict.fromkeys(("chat completions", "responses", "acp", "ag-ui", "mcp"), here("test_what_a_model_says_stays_what_it_says")),
}


def test_every_cell_has_a_test():
    assert {door for row in TABLE.values() for door in row} == set(BY_NAME) - {"native"}
    for demand, row in TABLE.items():
        assert set(row) == set(BY_NAME) - {"native"}, f"{demand}: a cell is missing"
    assert wanting([(f"{demand}, {door}", shown) for demand, row in TABLE.items() for door, shown in row.items()]) == []


# --- the doors, as those who come through them see them -----------------------------------------------------------------

class Door:
    """A client of the chat "c". It keeps the conversation, as such clients do."""

    def __init__(self, server):
        self.server = server

    def said(self):
        """The messages and answers of the chat's branch."""
        history = self.server.client.get("/chats/c")
        turns = []
        for interaction in history.json["interactions"] if history.status == 200 else []:
            turns.append((interaction["user_message"], "".join(e["content"] for e in interaction["agent_events"] if e["type"] == "ANSWER")))
        return turns

    def messages(self, turns):
        return [m for user, answer in turns for m in ({"role": "user", "content": user}, *([{"role": "assistant", "content": answer}] if answer else []))]

    def close(self):
        pass


class Native(Door):
    def begin(self, message):
        return self.server.client.start("c", message)

    def until(self, run, piece):
        while piece not in "".join(e["content"] for e in run.events if e.name == "text_delta"):
            assert run.next()

    def finish(self, run):
        run.rest()
        return "".join(e["content"] for e in run.events if e.name == "text_delta")

    def leave(self, run):
        run.close()

    def is_busy(self, message):
        return self.server.client.post("/chats/c/interactions", {"user_message": message}).error(409, "busy")


class Chat(Door):
    def begin(self, message, turns=None):
        body = {"model": "reprise", "stream": True, "messages": [*self.messages(self.said() if turns is None else turns), {"role": "user", "content": message}]}
        return Sse(self.server, "/v1/chat/completions", body, {"X-Chat-Id": "c"})

    def until(self, run, piece):
        run.until(piece)

    def finish(self, run):
        run.rest()
        return run.text

    def leave(self, run):
        run.close()

    def is_busy(self, message):
        run = self.begin(message)
        return run.response.status == 409 and json.loads(run.response.read())["error"]["code"] == "busy"


class Responses(Chat):
    def begin(self, message, turns=None):
        """`turns`: the turns to continue after; only their number counts."""
        body = {"model": "reprise", "stream": True, "input": message}
        interactions = self.server.client.get("/chats/c").json.get("interactions", [])
        before = interactions[:None if turns is None else len(turns)]
        if before:
            body["previous_response_id"] = f"resp_c_{before[-1]['id']}"
        return Sse(self.server, "/v1/responses", body, {"X-Chat-Id": "c"})


class AgUi(Door):
    def begin(self, message, turns=None):
        messages = self.messages(self.said() if turns is None else turns) + [{"role": "user", "content": message}]
        return AgUiRun(self.server, {"threadId": "c", "runId": f"run-{next(NUMBER)}", "protocolVersion": "1.0",
                                     "messages": [{"id": f"m{number}", **message} for number, message in enumerate(messages)]})

    def until(self, run, piece):
        while piece not in run.said():
            assert run.next()

    def finish(self, run):
        return run.finish().said()

    def leave(self, run):
        run.close()

    def is_busy(self, message):
        run = self.begin(message)
        return run.status == 409 and json.loads(run.response.read())["error"]["code"] == "busy"


class Mcp(Door):
    def __init__(self, server):
        super().__init__(server)
        self.client = McpClient(server, STATELESS)

    def begin(self, message):
        return self.client.start("ask", message=message, chat_id="c")

    def until(self, run, piece):
        """This protocol sends no pieces of an answer, so there is nothing to wait for."""

    def finish(self, run):
        return run.result()["content"][0]["text"]

    def leave(self, run):
        run.close()

    def is_busy(self, message):
        result = self.begin(message).result()
        return result["isError"] and "approve" in result["content"][0]["text"]


class Acp(Door):
    """A client that has opened the chat's session."""

    def __init__(self, server):
        super().__init__(server)
        self.agent = Agent(server.home, "--url", f"http://127.0.0.1:{server.port}")
        self.agent.call("session/resume", sessionId="c", cwd=str(server.home.workspace), mcpServers=[])

    def begin(self, message):
        self.before = len(self.agent.updates)
        return self.agent.prompt("c", message)

    def until(self, run, piece):
        self.agent.until(lambda: piece in self.text())

    def text(self):
        return "".join(u["content"]["text"] for u in self.agent.updates[self.before:] if u["sessionUpdate"] == "agent_message_chunk")

    def finish(self, run):
        self.stopped = self.agent.answer(run)["stopReason"]
        return self.text()

    def is_busy(self, message):
        try:
            self.agent.answer(self.agent.prompt("c", message))
        except Refused as refused:
            return refused.reason == "busy"
        return False

    def close(self):
        self.agent.close()


BY_NAME = {"native": Native, "chat completions": Chat, "responses": Responses, "acp": Acp, "ag-ui": AgUi, "mcp": Mcp}


@pytest.fixture
def doors(server, provider):
    """Makes doors to a chat with one turn."""
    made = []
    provider.plan(text("before"))
    server.client.turn("c", "first")

    def make(name):
        made.append(BY_NAME[name](server))
        return made[-1]

    yield make
    for door in made:
        door.close()


def branch(server):
    return [i["user_message"] for i in server.client.history("c")["interactions"]]


# --- what is the same for all -------------------------------------------------------------------------------------------

@pytest.mark.parametrize("second", BY_NAME)
@pytest.mark.parametrize("first", BY_NAME)
def test_two_doors_on_one_chat(server, provider, doors, first, second):
    one, other = doors(first), doors(second)
    gate = Gate()
    provider.plan(text("one ", gate, "two"), text("three"))
    run = one.begin("go")
    gate.wait_reached()
    assert other.is_busy("me too")
    gate.release()
    assert one.finish(run) == "one two"
    eventually(lambda: server.client.get("/chats").json["chats"][0]["status"] == "idle", "the chat is free")
    assert other.finish(other.begin("then")) == "three"
    assert branch(server) == ["first", "go", "then"] and len(provider.requests) == 3
    assert [m["content"] for m in provider.requests[-1].conversation] == ["first", "before", "go", "one two", "then"]
    assert len(server.client.get("/chats").json["chats"]) == 1


@pytest.mark.parametrize("name", BY_NAME)
def test_a_cancel_by_somebody_else(server, provider, doors, name):
    door, gate = doors(name), Gate()
    provider.plan(text("half", gate), text("again"))
    run = door.begin("go")
    gate.wait_reached()
    door.until(run, "half")
    server.client.post("/chats/c/interactions/int_002/cancel", {}).expect(200)
    assert "half" in (door.finish(run) or "") or name == "mcp"
    gate.wait_left()
    assert server.client.interaction("c", "int_002")["status"] == "CANCELLED"
    eventually(lambda: server.client.get("/chats").json["chats"][0]["status"] == "idle", "the chat is free")
    assert door.finish(door.begin("and now?")) == "again"


@pytest.mark.parametrize("name", ["chat completions", "responses", "ag-ui", "mcp"])
def test_a_client_that_goes_in_mid_stream(make_server, provider, name):
    server = make_server(provider, config={"disconnect_grace_s": 0})
    provider.plan(text("before"))
    server.client.turn("c", "first")
    door, gate = BY_NAME[name](server), Gate()
    provider.plan(text("half", gate), text("again"))
    run = door.begin("go")
    gate.wait_reached()
    door.until(run, "half")
    door.leave(run)
    gate.wait_left()
    eventually(lambda: server.client.interaction("c", "int_002")["status"] == "CANCELLED", "the run is cancelled as after any disconnect")
    eventually(lambda: server.client.get("/chats").json["chats"][0]["status"] == "idle", "the chat is free")
    assert door.finish(door.begin("and now?")) == "again"


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("name", ["chat completions", "responses"])
def test_an_approval_is_answered_elsewhere(server, provider, doors, name, approved):
    door = doors(name)
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"})), text("so be it"), text("next"))
    run = door.begin("write")
    door.until(run, "Approval needed")
    pending, = server.client.get("/approvals").json["approvals"]
    server.client.post(f"/approvals/{pending['approval_id']}", {"approved": approved}).expect(200)
    shown = door.finish(run)
    assert shown.endswith("so be it") and (server.home.workspace / "a.txt").exists() == approved
    assert door.finish(door.begin("next?")) == "next" and branch(server) == ["first", "write", "next?"]


def restart(make_server, server, provider):
    server.kill()
    return make_server(provider, home=server.home)


def test_kill_9_while_an_approval_waits(make_server, server, provider, doors):
    """The client of a response has only its id afterwards."""
    door = doors("responses")
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"}), say="I write."), text("written"), text("more"))
    run = door.begin("write")
    door.until(run, "Approval needed")
    response = run.chunks[0]["response"]["id"]
    server.kill()
    run.rest()
    assert not run.done, "the stream has no end marker"
    again = make_server(provider, home=server.home)
    assert again.client.get(f"/v1/responses/{response}").expect(200, "openai_response").json["status"] == "in_progress"
    pending, = again.client.get("/approvals").json["approvals"]
    again.client.post(f"/approvals/{pending['approval_id']}", {"approved": True}).expect(200)
    eventually(lambda: again.client.get(f"/v1/responses/{response}").json["status"] == "completed", "it goes on")
    answer = again.client.post("/v1/responses", {"model": "reprise", "input": "more?", "previous_response_id": response}).expect(200, "openai_response").json
    assert answer["output"][-1]["content"][0]["text"] == "more" and (server.home.workspace / "a.txt").exists()


@pytest.mark.parametrize("name", ["chat completions", "responses", "ag-ui", "mcp"])
def test_kill_9_in_mid_stream(make_server, server, provider, doors, name):
    door, gate = doors(name), Gate()
    provider.plan(tools(call("manage_tasks", {"action": "add", "title": "kept"})), text("one ", gate, "two"))
    run = door.begin("go")
    gate.wait_reached()
    door.until(run, "one")
    server.kill()
    provider.plan(text("went on"), text("and on"))
    again = make_server(provider, home=server.home)
    assert again.client.interaction("c", "int_002")["status"] == "FAILED"
    door = BY_NAME[name](again)
    # The client sends the message again. If the protocol sends the earlier turns, this regenerates the turn.
    same = door.begin("go") if name == "mcp" else door.begin("go", [("first", "before")])
    assert door.finish(same) == "went on"
    assert door.finish(door.begin("more")) == "and on"
    assert branch(again) == (["first", "go", "go", "more"] if name == "mcp" else ["first", "go", "more"])
    assert again.client.history("c")["interactions"][-1]["status"] == "COMPLETED"


@pytest.mark.parametrize("name", ["chat completions", "responses", "ag-ui"])
def test_message_3_of_10_is_changed(server, provider, doors, name):
    door = doors(name)  # after the first message
    for number in range(2, 11):
        replies = [text(f"answer {number}")]
        if number in (2, 3, 7):
            replies.insert(0, tools(call("manage_tasks", {"action": "add", "title": f"task {number}"})))
        provider.plan(*replies)
        assert door.finish(door.begin(f"message {number}")) == f"answer {number}"
    turns = door.said()
    provider.plan(text("another"), text("and on"), text("eleven"))
    assert door.finish(door.begin("message 3, better", turns[:2])) == "another"
    assert [t["title"] for t in server.client.get("/chats/c/tasks").json["tasks"]] == ["task 2"], "the edit restores the state before it"
    assert branch(server) == ["first", "message 2", "message 3, better"]
    changed, = [i for i in server.client.history("c", "all")["interactions"] if i["user_message"] == "message 3, better"]
    assert changed["edited_from"] == "int_003" and changed["parent_id"] == "int_002"
    assert [m["content"] for m in provider.requests[-1].conversation if m["role"] == "user"] == ["first", "message 2", "message 3, better"]
    assert door.finish(door.begin("on")) == "and on" and len(server.client.history("c", "all")["interactions"]) == 12
    # Back to the branch that was left, with its state.
    if name != "responses":
        assert door.finish(door.begin("message 11", turns)) == "eleven"
        assert [t["title"] for t in server.client.get("/chats/c/tasks").json["tasks"]] == ["task 2", "task 3", "task 7"]
    assert len(server.client.get("/chats").json["chats"]) == 1


NASTY = "a\r\n\r\ndata: [DONE]\n\nevent: x\nid: 9\n\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\u2028\x00\x1b]0;x\x07\"}\\ \U0001f600"


@pytest.mark.parametrize("name", BY_NAME)
def test_what_a_model_says_stays_what_it_says(server, provider, doors, name):
    """Text of a model that looks like frames, lines or messages of a protocol stays text. The support modules refuse anything unexpected in a stream."""
    door = doors(name)
    provider.plan(tools(call("echo", {"text": NASTY}), think=NASTY.replace(" ", "")), text(NASTY))
    assert door.finish(door.begin("go")).endswith(NASTY if name != "acp" else NASTY)
    assert branch(server) == ["first", "go"] and server.client.history("c")["interactions"][-1]["status"] == "COMPLETED"
