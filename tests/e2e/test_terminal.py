"""`reprise chat` at a real terminal: editing, pastes, questions, Ctrl-C."""
import json
import os
import signal
import sys

import pytest

from support.provider import Gate, call, text, tools
from support.timing import eventually

WRITE = {"path": "f.txt", "content": "1"}
UP, BACKSPACE, CTRL_C, CTRL_D, CLEAR = b"\x1b[A", b"\x7f", b"\x03", b"\x04", b"\x15"

ASKING_SERVER = r"""
import json, sys
QUESTION = json.loads(sys.argv[1])
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request.get("method") == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif request.get("method") == "tools/list":
        result = {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]}
    elif request.get("method") == "tools/call":
        say({"id": "q", "method": "elicitation/create", "params": QUESTION})
        result = {"content": [{"type": "text", "text": json.dumps(json.loads(sys.stdin.readline())["result"])}]}
    if "id" in request and "method" in request:
        say({"id": request["id"], "result": result})
"""


@pytest.fixture
def open_chat(server, open_terminal):
    return lambda name="c", at=server: open_terminal(at.home, "chat", name, "--url", f"http://127.0.0.1:{at.port}").opened()


@pytest.fixture
def chat(open_chat):
    return open_chat().ready()


def messages(server, name="c"):
    return [i["user_message"] for i in server.client.history(name)["interactions"]]


def waiting(server):
    return server.client.get("/approvals").json["approvals"]


def files(server):
    return sorted(p.name for p in server.home.workspace.iterdir())


def test_an_answer_keeps_its_line_breaks(chat, provider):
    provider.plan(text("Here is a list:\n", "- one\n", "- two\n", "\n", "```\n", "def f(x):\n", "    return x\n", "```"), text("b\n"))
    chat.say("list").shows("Here is a list:", "• one", "• two", "", "  def f(x):", "      return x")
    chat.say("more").shows("> more", "b")


def test_one_paste_is_one_message(chat, server, provider):
    provider.plan(text("fine"))
    pasted = "please fix this:\ndef f():\n\treturn 1\ny\na"
    chat.paste(pasted).until("return 1")
    assert provider.requests == [], "a paste is sent only when Enter is pressed"
    chat.type("\r").until("fine")
    assert messages(server) == [pasted]


def test_a_long_line_arrives_whole(chat, server, provider):
    provider.plan(text("one"), text("two"))
    typed, pasted = "x" * 6000 + "END", "y" * 20000 + "\n" + "z" * 6000
    chat.say(typed).until("one")
    chat.paste(pasted).type("\r").until("two")
    assert messages(server) == [typed, pasted]


def test_wide_characters_are_edited_as_they_are_seen(chat, server, provider):
    provider.plan(text("one"), text("two"))
    chat.type("日本語テスト").type(BACKSPACE * 2).type("\r").until("one")
    chat.type(UP).type("!\r").until("two")
    assert messages(server) == ["日本語テ", "日本語テ!"]


@pytest.mark.parametrize(("keys", "kept"), [(b"y\ry\ra\r", "yya"), (b"\x1b[200~y\na\n\x1b[201~\r", "ya"), (b"\x1b[200~y\n", "yyy")],
                         ids=["typed", "pasted", "half a paste"])
def test_what_was_typed_before_a_question_was_shown_does_not_answer_it(chat, server, provider, keys, kept):
    gate = Gate()
    reply = tools(call("write_file", WRITE, "w1"), say="thinking")
    reply.steps.insert(2, gate)
    provider.plan(reply, text("done"))
    for _ in range(4):  # complete lines among the keys are queued messages
        provider.plan(text("later"))
    chat.say("do it").until("thinking").type(keys)
    gate.release()
    chat.until("[e]dit the arguments, [1] more: ")
    if keys.rfind(b"\x1b[200~") > keys.rfind(b"\x1b[201~"):
        chat.type(b"y\ry\r\x1b[201~")  # the rest of the paste comes late
    chat.type("\r").answer("n").until("(cancelled)")
    eventually(lambda: not waiting(server), "the answer has come")
    assert files(server) == [] and len(provider.requests) == 1
    chat.shows(f"> {kept[0]}", *kept[1:])


def test_lines_pasted_without_marks_do_not_answer_either(chat, server, provider):
    provider.plan(tools(call("write_file", WRITE, "w1")), *[text("done")] * 4)
    chat.type("do it\ry\ra\ry\r").until("[e]dit the arguments, [1] more: ")
    assert len(waiting(server)) == 1 and files(server) == []
    chat.answer("y").until("done")
    assert files(server) == ["f.txt"] and messages(server)[0] == "do it"


def test_ctrl_c_at_an_approval_cancels_the_run(chat, server, provider):
    provider.plan(tools(call("write_file", WRITE, "w1")), text("never"), )
    chat.say("do it").until("[e]dit the arguments, [1] more: ").answer(CTRL_C).until("(cancelled)").ready()
    assert server.client.interaction("c", "int_001")["status"] == "CANCELLED" and len(provider.requests) == 1 and files(server) == []
    provider.forget_plan()
    provider.plan(text("still here"))
    chat.say("hello?").until("still here")


def test_ctrl_c_at_the_prompt_clears_the_line_first_and_leaves_second(chat, server, provider):
    provider.plan(text("fine"))
    chat.type("half a mess").until("half a mess").type(CTRL_C).ready()
    chat.say("whole").until("fine").ready()
    assert messages(server) == ["whole"]
    chat.type(CTRL_C).until("Ctrl-C once more leaves").ready().type(CTRL_C)
    assert chat.end() == 0


def test_ctrl_c_while_it_runs_cancels_and_the_client_stays(chat, server, provider):
    provider.plan(text("half", Gate()))
    chat.say("hi").until("half").type(CTRL_C).until("(cancelled)").ready().type(CTRL_D)
    assert chat.end() == 0 and server.client.interaction("c", "int_001")["status"] == "CANCELLED"


def test_leaving_at_a_question_leaves_it_open_and_the_chat_asks_it_again(chat, open_chat, server, provider):
    provider.plan(tools(call("write_file", WRITE, "w1")), text("done"))
    chat.say("do it").until("[e]dit the arguments, [1] more: ").answer(CTRL_D).until("stays open")
    chat.end()
    assert len(waiting(server)) == 1
    again = open_chat()
    again.until("a turn waits for you").until("do it").until("write_file f.txt").until("[e]dit the arguments, [1] more: ").answer("y").until("done").ready()
    assert files(server) == ["f.txt"]


def test_a_question_that_is_answered_elsewhere_goes_at_once(chat, server, provider):
    provider.plan(tools(call("write_file", WRITE, "w1")), text("done"))
    chat.say("do it").until("[e]dit the arguments, [1] more: ").answer("ye")
    server.client.approve("c", "int_001", waiting(server)[0]["approval_id"]).expect(200)
    chat.until("already answered").until("done").ready("ye")


def test_arguments_that_the_server_refuses_are_asked_for_again(chat, server, provider):
    provider.plan(tools(call("write_file", WRITE, "w1")), text("done"))
    chat.say("do it").until("[e]dit the arguments, [1] more: ").answer("e").until('arguments: {"path"').type(CLEAR).say('{"path":5}').until("as you have changed them").until("[e]dit the arguments: ").answer("y").until("reprise: ").until("[e]dit the arguments: ")
    chat.answer("e").until('arguments: {"path"').type(CLEAR).say('{"path":"g.txt","content":"2"}').until("content: 2").until("[e]dit the arguments: ").answer("y").until("done")
    assert files(server) == ["g.txt"]


def test_hidden_characters_of_an_approval_are_spelled_out(chat, server, provider):
    command = "echo a\u200bb \U000e0041 \u00ad \u2060 \u3164"
    provider.plan(tools(call("run_shell", {"command": command}, "r1")), text("done"))
    chat.say("do it").until("risk: ").until("command: echo a<U+200B>b <U+E0041> <U+00AD> <U+2060> <U+3164>\n").until("[e]dit the arguments").answer("n").until("(cancelled)").ready()


def test_all_that_waits_can_be_answered_from_any_chat(open_chat, server, provider):
    provider.plan(tools(call("write_file", WRITE, "w1")))
    server.client.start("other", "do it").until("approval_required")
    chat = open_chat("mine").ready()
    chat.say("/approvals").until("other/int_001").until("write_file f.txt").until("[l]ater: ").answer_line("l").ready()
    assert len(waiting(server)) == 1
    provider.plan(text("done"))
    chat.say("/approvals").until("[l]ater: ").answer_line("y").ready()
    eventually(lambda: files(server) == ["f.txt"], "the approved call has run")
    chat.say("/approvals").until("nothing waits")


def test_a_message_while_another_client_runs_one_says_what_to_do(chat, server, provider):
    gate = Gate()
    provider.plan(text("half", gate), text("after"))
    stream = server.client.start("c", "theirs")
    gate.wait_reached()
    chat.until("half").say("mine").until("queued")
    gate.release()
    chat.until("after").ready()
    stream.finish()
    assert messages(server) == ["theirs", "mine"]


def test_a_server_that_stops_is_named(chat, server, provider):
    provider.plan(text("half", Gate()))
    chat.say("hi").until("half")
    server.stop()
    chat.until("the server is stopping").ready().type(CTRL_D)
    assert chat.end() == 0


def form(make_server, provider, question):
    servers = {"asks": {"command": sys.executable, "args": ["-c", ASKING_SERVER, json.dumps(question)]}}
    server = make_server(provider, config={"mcpServers": servers, "approval_mode": "approve_all"})
    eventually(lambda: server.client.get("/tools").json["servers"][0]["state"] == "ready", "the MCP server is ready")
    provider.plan(tools(call("asks__ask", {}, "c1")), text("done"))
    return server


def outcome(provider):
    return json.loads(provider.requests[-1].conversation[-1]["content"])


def test_a_form_is_filled_in_member_by_member(make_server, open_chat, provider):
    server = form(make_server, provider, {"message": "Who?", "requestedSchema": {"type": "object", "required": ["name", "age"], "properties": {
        "name": {"type": "string", "title": "Your name"}, "age": {"type": "integer"}, "sure": {"type": "boolean"}}}})
    chat = open_chat(at=server).ready()
    chat.say("ask").until("Who?").until("fill in the form? ").answer_line("y").until("Your name").until("name> ").say("").until("cannot be left empty").until("name> ")
    chat.say("Ann").until("age> ").say("many").until("whole number").until("age> ").say("7").until("sure> ").say("").until("done")
    assert outcome(provider) == {"action": "accept", "content": {"name": "Ann", "age": 7}}


def test_a_form_that_its_server_refuses_is_there_again_with_what_was_entered(make_server, open_chat, provider):
    server = form(make_server, provider, {"message": "Who?", "requestedSchema": {"type": "object", "required": ["name", "day"], "properties": {
        "name": {"type": "string"}, "day": {"type": "string", "format": "date"}}}})
    chat = open_chat(at=server).ready()
    chat.say("ask").until("fill in the form? ").answer_line("perhaps").until("y or n").until("fill in the form? ").answer_line("y")
    chat.until("name> ").say("Ann").until("day> ").say("soon").until("a date like").until("day> ").say("2025-02-31")
    chat.until("reprise: ").until("fill in the form? ").answer_line("y").until("name> Ann").type("\r").until("day> 2025-02-31").type(BACKSPACE * 2).say("28").until("done")
    assert outcome(provider)["content"] == {"name": "Ann", "day": "2025-02-28"}


def test_a_form_can_be_declined(make_server, open_chat, provider):
    server = form(make_server, provider, {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}})
    open_chat(at=server).ready().say("ask").until("fill in the form? ").answer_line("n").until("done")
    assert outcome(provider)["action"] == "decline"


def test_an_address_to_open_is_shown(make_server, open_chat, provider):
    server = form(make_server, provider, {"mode": "url", "message": "Log in", "url": "https://example.org/login", "elicitationId": "e"})
    open_chat(at=server).ready().say("ask").until("Log in").until("open: https://example.org/login").until("have you done that? ").answer_line("y").until("accept").ready()
    assert outcome(provider)["action"] == "accept"


def test_messages_that_begin_with_a_slash(chat, server, provider):
    provider.plan(text("one"), text("two"))
    chat.say("/usr/bin/env is missing").until("one").ready().say("//help me").until("two").ready()
    assert messages(server) == ["/usr/bin/env is missing", "/help me"]
    chat.say("/hisotry").until("did you mean /history?")


def test_a_question_of_the_list_that_is_answered_elsewhere_goes(chat, server, provider):
    provider.plan(tools(call("write_file", {"path": "a", "content": "1"})), text("done"))
    stream = server.client.start("other", "do it", on_disconnect="continue")
    asked = stream.until("approval_required")
    chat.say("/approvals").until("allow?")
    server.client.approve("other", "int_001", asked["approval_id"]).expect(200)
    chat.until("(already answered)").ready()
    stream.finish()


def test_edit_takes_its_number_from_the_line(chat, server, provider):
    provider.plan(text("one"), text("two"), text("three"))
    chat.say("first").until("one").ready().say("second").until("two").ready()
    chat.say("/edit 0 x").until("there is no turn 0").ready()
    chat.type("/edit 1\nchanged").say("").until("three").ready()
    assert server.client.interaction("c", "int_003")["edited_from"] == "int_001"
    assert server.client.interaction("c", "int_003")["user_message"] == "changed"


def test_edit_and_undo_where_there_is_nothing_say_so(chat):
    chat.say("/edit x").until("there is no message to edit yet").say("/history").until("nothing was said")
    chat.say("/undo").until("there is nothing to undo yet").ready()


def test_undo_of_the_first_message_goes_to_a_new_chat_and_keeps_the_old_one(chat, server, provider):
    provider.plan(text("one"), text("two"), text("three"))
    chat.say("hi").until("one").ready().say("ho").until("two").ready()
    chat.say("/undo").until("turn 1 is the last one now: hi (/redo goes forward again)").ready("ho")
    chat.type(CLEAR).say("/undo").until("chat chat_").until("chat c is kept: /redo, or /resume c, goes back to it").ready("hi")
    chat.type(CLEAR).say("/undo").until("there is nothing to undo yet").ready()
    chat.say("hey").until("three").ready().say("/resume c").until("> hi").ready()
    assert messages(server) == ["hi"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_as_it_was_when_the_client_is_killed(chat, number):
    os.kill(chat.pid, number)
    assert chat.end() == -number


def test_the_terminal_is_as_it_was_after_the_end(chat):
    chat.type(CTRL_D)
    assert chat.end() == 0
