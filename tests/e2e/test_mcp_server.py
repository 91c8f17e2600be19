"""The server's side of the Model Context Protocol: /mcp and `reprise mcp-server`, in both eras."""
import http.client
import json
import pathlib
import subprocess

import pytest
from support import schemas
from support.mcp_client import SESSIONS, STATELESS, McpClient, Refused, send_message
from support.npm import NEWER_NODE, install
from support.people import OPERATOR, api_token, token_file
from support.provider import Gate, call, failure, text, tools
from support.server import BINARY
from support.timing import SLACK, SOON, eventually

HERE = pathlib.Path(__file__).resolve().parent
WRITE = {"path": "a.txt", "content": "1"}
WAYS = {"http, sessions": (False, SESSIONS), "http, stateless": (False, STATELESS), "stdio, sessions": (True, SESSIONS), "stdio, stateless": (True, STATELESS)}


@pytest.fixture
def make_mcp(request):
    clients = []

    def make(server, way, **more):
        by_stdio, era = WAYS[way]
        clients.append(McpClient(server, era, home=server.home if by_stdio else None, **more))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture(params=WAYS)
def way(request):
    return request.param


@pytest.fixture
def mcp(server, way, make_mcp):
    return make_mcp(server, way)


def said(result):
    return result["content"][0]["text"]


def last(server, chat="c"):
    return server.client.history(chat)["interactions"][-1]


def kill(server):
    server.process.kill()
    server.process.wait()
    server.stopped = server.home.killed = True


def test_a_chat_with_tools(mcp, provider, server):
    provider.plan(tools(call("calculator", {"expression": "6*7"})), text("forty-", "two"))
    asked = mcp.start("ask", message="6*7?", chat_id="c")
    result = asked.result()
    assert said(result) == "forty-two" and not result.get("isError")
    assert result["structuredContent"] == {"chat_id": "c", "interaction_id": "int_001", "status": "COMPLETED", "answer": "forty-two"}
    assert [n["message"] for n in asked.notes] == ['calculator {"expression": "6*7"}']
    provider.plan(text("again"))
    assert said(mcp.ask("and?")) == "again" and [i["user_message"] for i in server.client.history("c")["interactions"]] == ["6*7?", "and?"]
    provider.plan(text("new"))
    other = mcp.call("ask", message="another chat")["structuredContent"]["chat_id"]
    assert other != "c" and said(mcp.call("read_chat", chat_id=other)).count("another chat") >= 1
    listed = mcp.call("list_chats")["structuredContent"]["chats"]
    assert [c["id"] for c in listed] == [other, "c"] and listed[0]["status"] == "idle"
    assert [m["chat_id"] for m in mcp.call("search", query="FORTY")["structuredContent"]["matches"]] == ["c"]


def test_tools_resources_and_prompts(mcp, provider):
    listed = mcp.request("tools/list")["tools"]
    assert [t["name"] for t in listed] == ["list_chats", "read_chat", "search", "ask", "approve"]
    assert [t["annotations"]["readOnlyHint"] for t in listed] == [True, True, True, False, False]
    assert all(t["inputSchema"]["additionalProperties"] is False for t in listed)
    provider.plan(text("hello"))
    mcp.ask("hi")
    resource, = mcp.request("resources/list")["resources"]
    assert resource["uri"] == "reprise://chats/c" and mcp.request("resources/templates/list")["resourceTemplates"][0]["uriTemplate"] == "reprise://chats/{chat_id}"
    assert "hello" in mcp.request("resources/read", uri=resource["uri"])["contents"][0]["text"]
    assert [p["name"] for p in mcp.request("prompts/list")["prompts"]] == ["chat"]
    assert "hello" in mcp.request("prompts/get", name="chat", arguments={"chat_id": "c"})["messages"][0]["content"]["text"]
    complete = {"ref": {"type": "ref/prompt", "name": "chat"}, "argument": {"name": "chat_id", "value": ""}}
    assert mcp.request("completion/complete", **complete)["completion"]["values"] == ["c"]
    for method, params in (("resources/read", {"uri": "reprise://chats/none"}), ("resources/read", {"uri": "file:///etc/passwd"}), ("prompts/get", {"name": "no"}),
                           ("tools/call", {"name": "no", "arguments": {}}), ("tools/call", {"name": "ask", "arguments": [1]})):
        with pytest.raises(Refused) as refused:
            mcp.request(method, **params)
        assert refused.value.code == (-32002 if method == "resources/read" and mcp.era == SESSIONS else -32602)
        assert str(refused.value).count("there is no such") <= 1
    for what in ("tools", "resources", "resources/templates", "prompts"):
        with pytest.raises(Refused) as refused:
            mcp.request(f"{what}/list", cursor="of another list")
        assert refused.value.code == -32602
    with pytest.raises(Refused) as refused:
        mcp.request("no/such")
    assert refused.value.code == -32601


def test_an_approval_that_the_client_answers(mcp, provider, server):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    asked = mcp.start("ask", message="go", chat_id="c")
    question, form = asked.question()
    assert question == server.client.get("/approvals").json["approvals"][0]["approval_id"] and "write_file" in form["message"]
    assert form["requestedSchema"]["properties"]["decision"]["enum"] == ["approve", "approve_for_chat", "approve_always", "reject"]
    assert not list(server.home.workspace.iterdir())
    asked.reply(question, decision="approve")
    assert said(asked.result()) == "done" and (server.home.workspace / "a.txt").read_text() == "1" and not asked.withdrawn


@pytest.mark.parametrize("action, content, file", [
    ("accept", {"decision": "approve", "arguments": '{"path":"b.txt","content":"2"}'}, "b.txt"), ("accept", {"decision": "reject", "feedback": "not now"}, None),
    ("decline", {}, None), ("cancel", {}, None)])
def test_what_may_be_answered(make_mcp, provider, server, action, content, file):
    for number, each in enumerate(("http, sessions", "http, stateless")):
        provider.plan(tools(call("write_file", WRITE)), text("done"))
        asked = make_mcp(server, each).start("ask", message="go", chat_id=f"c{number}")
        asked.reply(asked.question()[0], action, **content)
        assert said(asked.result()) == "done" and [p.name for p in server.home.workspace.iterdir()] == ([file] if file else [])
        if content.get("feedback"):
            assert "not now" in json.dumps(provider.requests[-1].body)


def test_a_question(mcp, provider):
    provider.plan(tools(call("ask_human", {"question": "Which?", "options": ["red", "blue"]})), text("fine"))
    asked = mcp.start("ask", message="q", chat_id="c")
    question, form = asked.question()
    assert form["message"] == "Which?" and "red, blue" in form["requestedSchema"]["properties"]["answer"]["description"]
    asked.reply(question, answer="blue")
    assert said(asked.result()) == "fine" and provider.requests[-1].conversation[-1]["content"] == "blue"


def test_an_invalid_answer_approves_nothing(make_mcp, provider, server):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    mcp = make_mcp(server, "http, stateless")
    asked = mcp.start("ask", message="go", chat_id="c")
    question, _ = asked.question()
    for wrong in ({"decision": "yes"}, {"decision": "edit"}, {"decision": "approve", "arguments": "[1]"}, {}):
        asked.reply(question, **wrong)
        assert asked.question()[0] == question, "the same question is asked again"
    asked.send(requestState="AAAA", inputResponses={question: {"action": "accept", "content": {"decision": "approve"}}})
    with pytest.raises(Refused):
        asked.result()
    other = mcp.start("ask", message="something else", chat_id="c")
    assert "approve" in said(other.result()), "the busy error says what to do"
    other.send(requestState=asked.state, inputResponses={question: {"action": "accept", "content": {"decision": "approve"}}})
    with pytest.raises(Refused):
        other.result()
    assert server.client.get("/approvals").json["approvals"] and not list(server.home.workspace.iterdir())
    asked.reply(question, "decline")
    assert said(asked.result()) == "done"


@pytest.mark.parametrize("way", ["http, sessions", "stdio, sessions"])
def test_an_answer_that_cannot_be_used_is_asked_for_again(make_mcp, provider, server, way):
    provider.plan(tools(call("write_file", WRITE)), tools(call("ask_human", {"question": "Which?"}, "c2")), text("done"))
    mcp = make_mcp(server, way)
    asked = mcp.start("ask", message="go", chat_id="c")
    question, form = asked.question()
    seen = {question}
    for wrong, word in (({"decision": "yes"}, "decision"), ({"decision": "approve", "arguments": "nope"}, "arguments"), ({}, "decision"),
                        ({"decision": "approve", "arguments": '{"path":5}'}, "path")):
        asked.reply(question, **wrong)
        question, again = asked.question()
        assert question not in seen, "request ids are not reused"
        assert again["message"].startswith(form["message"]) and word in again["message"][len(form["message"]):]
        seen.add(question)
    mcp.way.send({"jsonrpc": "2.0", "id": question, "result": {"action": "accept"}})
    question, _ = asked.question()
    assert server.client.get("/approvals").json["approvals"] and not list(server.home.workspace.iterdir())
    asked.reply(question, decision="approve")
    question, _ = asked.question()
    asked.reply(question, answer=" ")
    question, _ = asked.question()
    server.client.post("/chats/c/interactions/int_001/respond", {"request_id": question.split(".")[0], "response": "red"}).expect(200)
    assert said(asked.result()) == "done" and (server.home.workspace / "a.txt").exists() and asked.withdrawn == [question]


@pytest.mark.parametrize("way", ["http, sessions", "stdio, sessions"])
def test_a_client_that_fails_to_ask_has_dismissed_the_form(make_mcp, provider, server, way):
    provider.plan(tools(call("write_file", WRITE)), tools(call("ask_human", {"question": "Which?"}, "c2")), text("done"))
    mcp = make_mcp(server, way)
    asked = mcp.start("ask", message="go", chat_id="c")
    for _ in range(2):
        mcp.way.send({"jsonrpc": "2.0", "id": asked.question()[0], "error": {"code": -32603, "message": "the dialog broke"}})
    result = asked.result()
    assert said(result) == "done" and not list(server.home.workspace.iterdir()) and not asked.withdrawn
    assert "was not asked" in result["content"][1]["text"] and "the dialog broke" in result["content"][1]["text"]
    # A client that always answers at once is stopped, too.
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    asked = mcp.start("ask", message="again", chat_id="c")
    for _ in range(11):
        mcp.way.send({"jsonrpc": "2.0", "id": asked.question()[0], "result": {"action": "accept"}})
    result = asked.result()
    assert said(result) == "done" and "could not be used" in result["content"][1]["text"] and not list(server.home.workspace.iterdir())


def test_several_at_once(make_mcp, provider, server):
    for number, each in enumerate(("http, sessions", "http, stateless")):
        provider.plan(tools(*[call("write_file", {"path": f"{n}.txt", "content": n}, n) for n in "ab"]), text("done"))
        mcp = make_mcp(server, each)
        asked = mcp.start("ask", message="go", chat_id=f"c{number}")
        questions = asked.questions()
        if mcp.era == SESSIONS:
            questions |= asked.questions()
        assert len(questions) == 2
        if mcp.era == STATELESS:
            asked.send(requestState=asked.state, inputResponses={q: {"action": "accept", "content": {"decision": "approve"}} for q in questions})
        else:
            for question in questions:
                asked.reply(question, decision="approve")
        assert said(asked.result()) == "done"
    assert sorted(p.name for p in server.home.workspace.iterdir()) == ["a.txt", "b.txt"]


def test_an_approval_that_is_answered_elsewhere(mcp, provider, server):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    asked = mcp.start("ask", message="go", chat_id="c")
    question, _ = asked.question()
    server.client.post(f"/approvals/{question}", {"approved": False}).expect(200)
    eventually(lambda: last(server)["status"] == "COMPLETED", "the run went on without this client")
    if mcp.era == STATELESS:
        asked.reply(question, decision="approve")
    assert said(asked.result()) == "done" and not list(server.home.workspace.iterdir()), "the first answer counts"
    assert asked.withdrawn == ([] if mcp.era == STATELESS else [question])
    if mcp.era == SESSIONS:
        asked.reply(question, decision="approve")  # too late, and harmless


def test_a_client_that_cannot_ask(server, provider, way, make_mcp):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    mcp = make_mcp(server, way, elicits=False)
    result = mcp.ask("go")
    assert result["structuredContent"]["status"] == "WAITING" and "reprise approvals" in said(result) and "write_file" in said(result)
    server.client.post(f"/approvals/{server.client.get('/approvals').json['approvals'][0]['approval_id']}", {"approved": True}).expect(200)
    eventually(lambda: last(server)["status"] == "COMPLETED", "it goes on")
    assert "done" in said(mcp.call("read_chat", chat_id="c")) and mcp.call("approve", chat_id="c")["isError"]


def test_what_was_begun_elsewhere_is_approved_here(mcp, provider, server):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    stream = server.client.start("c", "go")
    stream.until("approval_required")
    asked = mcp.start("approve", chat_id="c")
    question, _ = asked.question()
    asked.reply(question, decision="approve")
    assert said(asked.result()) == "done" and (server.home.workspace / "a.txt").exists()
    stream.finish()


def test_a_cancel(mcp, provider, server):
    gate = Gate()
    provider.plan(tools(call("calculator", {"expression": "1"})), text("one ", gate, "two"))
    asked = mcp.start("ask", message="go", chat_id="c")
    asked.until_note()
    gate.wait_reached()
    asked.cancel()
    eventually(lambda: last(server)["status"] == "CANCELLED", "cancelled")
    provider.plan(text("back"))
    # The chat becomes free shortly after its run is shown as cancelled; until then it is busy.
    eventually(lambda: said(mcp.ask("still there?")) == "back", "the chat is free again")


def test_a_cancel_by_others(mcp, provider, server):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    asked = mcp.start("ask", message="go", chat_id="c")
    gate.wait_reached()
    server.client.post("/chats/c/interactions/int_001/cancel", {}).expect(200)
    result = asked.result()
    assert result["isError"] and result["structuredContent"]["status"] == "CANCELLED"


def test_a_client_that_is_gone_in_mid_stream(server, provider, way, make_mcp):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    mcp = make_mcp(server, way)
    asked = mcp.start("ask", message="go", chat_id="c")
    gate.wait_reached()
    if way.startswith("stdio"):
        mcp.way.process.kill()
        mcp.way.process.wait()
        mcp.way.reader.join()
        mcp.close = lambda: mcp.way.process.stdin.close()
    else:
        asked.close()
    eventually(lambda: last(server)["status"] == "CANCELLED", "the run is cancelled as after any disconnect")


def test_a_failure_is_told(mcp, provider):
    provider.plan(failure(400, "no credit"))
    result = mcp.ask("go")
    assert result["isError"] and result["structuredContent"]["status"] == "FAILED"
    for arguments, word in (({}, "message"), ({"message": " "}, "message"), ({"message": 7}, "message"), ({"message": "x", "chat_id": "../etc"}, "chat id"),
                            ({"message": "x", "model": "no/such"}, "no/such"[:2])):
        result = mcp.call("ask", **arguments)
        assert result["isError"] and word in said(result), result
    for tool, right, wrong in (("ask", {"message": "x"}, "chat"), ("approve", {"chat_id": "c"}, "id"), ("list_chats", {}, "chat_id"), ("read_chat", {"chat_id": "c"}, "Limit"), ("search", {"query": "x"}, "chat")):
        refused = mcp.call(tool, **right, **{wrong: "sums"})
        assert refused["isError"] and f'"{wrong}" is no argument of {tool}' in said(refused), refused
    assert mcp.call("read_chat", chat_id="none")["isError"] and mcp.call("search", query="")["isError"] and mcp.call("list_chats", limit=0)["isError"]


def counting(request):
    """A model that runs a command for "count", and whose provider then fails."""
    if request.conversation[-1]["role"] == "tool":
        return failure(500, "broken")
    return tools(call("run_shell", {"command": "echo x >> ran.txt"})) if "count" in request.conversation[-1]["content"] else failure(500, "broken")


@pytest.mark.parametrize("chat", [{"chat_id": "c"}, {}])
def test_what_a_failed_run_has_done_is_not_done_again(make_server, make_home, provider, way, make_mcp, chat):
    home = make_home()

    def begin():
        server = make_server(provider, home=home, config={"max_retries": 0, "approval_mode": "approve_all"})
        return server, make_mcp(server, way)

    def ran():
        return len((home.workspace / "ran.txt").read_text().splitlines())

    provider.answer_with(counting)
    server, mcp = begin()
    first, again = (mcp.call("ask", message="count", **chat) for _ in range(2))
    assert ran() == 1 and first["isError"] and again["isError"] and said(again).startswith(said(first)) and "has begun a run before" in said(again)
    assert again["structuredContent"] == first["structuredContent"]
    server.stop()
    server, mcp = begin()
    assert said(mcp.call("ask", message="count", **chat)) == said(again) and ran() == 1, "after a restart, too"
    mcp.call("ask", message="count more", **chat)
    assert ran() == 2, "another message starts a new run"
    asked = len(provider.requests)
    for _ in range(2):
        mcp.call("ask", message="nothing", **chat)
    assert len(provider.requests) == asked + 2, "a run without effects is repeated"


def test_all_chats_are_listed_and_completed(offline, make_mcp, way):
    for number in range(150):
        offline.client.post("/chats", {"id": f"{'even' if number % 2 == 0 else 'odd'}_{number}"}).expect(201)
    mcp = make_mcp(offline, way)

    def complete(value):
        return mcp.request("completion/complete", ref={"type": "ref/prompt", "name": "chat"}, argument={"name": "chat_id", "value": value})["completion"]

    assert complete("even_0") == {"values": ["even_0"], "total": 1, "hasMore": False}, "the oldest chat is found"
    assert len(complete("even_")["values"]) == 75 and complete("nothing") == {"values": [], "total": 0, "hasMore": False}
    whole = complete("")
    assert len(set(whole["values"])) == 100 and whole["total"] == 150 and whole["hasMore"]
    first = mcp.request("resources/list")
    rest = mcp.request("resources/list", cursor=first["nextCursor"])
    assert len({r["uri"] for r in first["resources"] + rest["resources"]}) == 150 and "nextCursor" not in rest


def test_kill_9_while_it_waits(server, provider, way, make_mcp, make_server):
    provider.plan(tools(call("write_file", WRITE)))
    mcp = make_mcp(server, way)
    asked = mcp.start("ask", message="go", chat_id="c")
    question, _ = asked.question()
    kill(server)
    provider.plan(text("done"))
    again = make_server(provider, home=server.home, arguments=("--port", server.port))
    mcp.server = again
    if mcp.era == STATELESS:
        asked.reply(question, decision="approve")  # the answer is still valid
    else:
        if not way.startswith("stdio"):
            with pytest.raises(Refused) as refused:
                mcp.call("approve", chat_id="c")
            assert refused.value.status == 404
            mcp.greet()
        asked = mcp.start("approve", chat_id="c")
        assert asked.question()[0] == question, "the question is the same"
        asked.reply(question, decision="approve")
    assert said(asked.result()) == "done" and (server.home.workspace / "a.txt").exists()


def test_two_doors_on_one_chat(mcp, provider, server):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    asked = mcp.start("ask", message="go", chat_id="c")
    gate.wait_reached()
    server.client.post("/chats/c/interactions", {"user_message": "me too"}).error(409, "busy")
    refused = mcp.ask("me too")
    assert refused["isError"] and "approve" in said(refused)
    gate.release()
    assert said(asked.result()) == "one two" and len(server.client.history("c")["interactions"]) == 1


# --- by HTTP alone -----------------------------------------------------------------------------------------------------

def post(server, body, method="POST", **headers):
    """Posts a message; returns the status and the JSON."""
    return send_message(server.port, body, {name.replace("_", "-"): value for name, value in headers.items()}, method)


@pytest.mark.parametrize("body, code", [(b"{", -32700), (b"[]", -32600), (b"7", -32600), (b"{}", -32600), (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
                                        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
                                        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602), (b'{"jsonrpc":"2.0","id":1}', -32600),
                                        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', -32000), (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32000),
                                        (b'{"jsonrpc":"2.0","id":1,"method":"initialize"}', -32602),
                                        (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}', -32602)])
def test_invalid_messages_are_refused(offline, body, code):
    status, answer = post(offline, body)
    assert status == 400 and answer["error"]["code"] == code and answer["jsonrpc"] == "2.0"
    schemas.check("mcp_refusal", answer)


@pytest.mark.parametrize("body, code", [
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}', -32700), (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"message":"a","message":"b"}}}', -32700),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]', -32600), (b"[" * 100_000, -32700), (b'{"a":' * 100_000, -32700),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700), (b'{"jsonrpc":"2.0","result":{}}', -32600),
    (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}', -32700)])
def test_hostile_messages(offline, body, code):
    mcp = McpClient(offline, SESSIONS)
    for headers in ({}, {"Mcp_Session_Id": mcp.session}, {"MCP_Protocol_Version": STATELESS, "Mcp_Method": "ping"}):
        status, answer = post(offline, body, **headers)
        assert status == 400 and answer["error"]["code"] == code, answer
        schemas.check("mcp_refusal", answer)
    assert mcp.request("ping") == {}


def test_a_message_may_have_a_mebibyte(offline):
    mcp = McpClient(offline, SESSIONS)
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * (1 << 20) + b'"}}'
    status, _ = post(offline, body, Mcp_Session_Id=mcp.session)
    assert status == 413 and mcp.request("ping") == {}
    number = "9" * 400
    status, answer = post(offline, b'{"jsonrpc":"2.0","id":' + number.encode() + b',"method":"ping"}', Mcp_Session_Id=mcp.session)
    assert status == 400 and answer["error"]["code"] in (-32600, -32700)
    status, answer = post(offline, {"jsonrpc": "2.0", "id": "i" * 100_000, "method": "ping"}, Mcp_Session_Id=mcp.session)
    assert status == 200 and answer == {"jsonrpc": "2.0", "id": "i" * 100_000, "result": {}}


def test_headers_that_do_not_fit_the_message(offline):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_chats", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}}}
    right = {"MCP_Protocol_Version": STATELESS, "Mcp_Method": "tools/call", "Mcp_Name": "list_chats"}
    assert post(offline, body, **right)[0] == 200
    for wrong in ({"MCP_Protocol_Version": "1999-01-01"}, {"MCP_Protocol_Version": "x" * 1000}, {"MCP_Protocol_Version": ""}, {"Mcp_Method": "ping"}, {"Mcp_Method": ""},
                  {"Mcp_Name": "ask"}, {"Mcp_Name": "=?base64?YXNr?="}, {"Mcp_Name": "=?base64??="}, {"Mcp_Session_Id": "0" * 32}):
        status, answer = post(offline, body, **{**right, **wrong})
        assert status in (400, 404) and "error" in answer, (wrong, answer)
    assert post(offline, body, **{**right, "Mcp_Name": "=?base64?bGlzdF9jaGF0cw==?="})[0] == 200
    status, answer = post(offline, body, **{**right, "MCP_Protocol_Version": SESSIONS})
    assert status == 400 and answer["error"]["code"] == -32020, "the error is about the header, not about a missing session"


def test_the_session_of_another_user(make_server, make_home):
    home = make_home()
    server = make_server(home=home, config={"auth": {"type": "tokens"}, "model": "offline"}, arguments=["--token-file", token_file(home)], token=OPERATOR)
    alice, bob = (api_token(home, user)["token"] for user in ("alice", "bob"))
    greeting = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SOON)
    connection.request("POST", "/mcp", json.dumps(greeting), {"Content-Type": "application/json", "Authorization": f"Bearer {alice}"})
    response = connection.getresponse()
    session = response.headers["Mcp-Session-Id"]
    assert response.status == 200 and response.read()

    call_ask = {"method": "tools/call", "params": {"name": "ask", "arguments": {"message": "echo of alice", "chat_id": "mine"}}}
    assert post(server, {"jsonrpc": "2.0", "id": 2, **call_ask}, Authorization=f"Bearer {alice}", Mcp_Session_Id=session)[0] == 200
    assert post(server, {"jsonrpc": "2.0", "id": 3, "method": "ping"}, Authorization=f"Bearer {bob}", Mcp_Session_Id=session)[0] == 404
    assert post(server, None, "DELETE", Authorization=f"Bearer {bob}", Mcp_Session_Id=session)[0] == 404
    assert post(server, {"jsonrpc": "2.0", "id": 3, "method": "ping"}, Mcp_Session_Id=session)[0] == 401
    # Without a session none of her chats is found either.
    stateless = {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}
    for name, arguments in (("list_chats", {}), ("read_chat", {"chat_id": "mine"}), ("search", {"query": "alice"}), ("approve", {"chat_id": "mine"})):
        status, answer = post(server, {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": stateless}},
                              Authorization=f"Bearer {bob}", MCP_Protocol_Version=STATELESS, Mcp_Method="tools/call", Mcp_Name=name)
        assert status == 200 and "of alice" not in json.dumps(answer), answer
    assert post(server, {"jsonrpc": "2.0", "id": 5, "method": "ping"}, Authorization=f"Bearer {alice}", Mcp_Session_Id=session)[0] == 200


def test_hostile_lines_on_standard_input(offline):
    process = subprocess.Popen([str(BINARY), "mcp-server", "--url", f"http://127.0.0.1:{offline.port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=offline.home.environment(), cwd=offline.home.path)

    def answer(line):
        process.stdin.write(line + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    for line in (b"{", b"[]", b"7", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', b"[" * 100_000, b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', b'"\xff"',
                 b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (33 << 20) + b'"}', b'{"jsonrpc":"2.0","id":1,"method":7}', b'{"jsonrpc":"1.0","id":1,"method":"ping"}'):
        said = answer(line)
        assert said["jsonrpc"] == "2.0" and said["error"]["code"] in (-32700, -32600), (line[:60], said)
    process.stdin.write(b'\n  \n{"jsonrpc":"2.0","method":"no/such/notification"}\n{"jsonrpc":"2.0","id":"nobody asked","result":{}}\n')
    greeting = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    assert answer(json.dumps(greeting).encode())["result"]["protocolVersion"] == SESSIONS
    assert answer(b'{"jsonrpc":"2.0","id":2,"method":"ping"}') == {"jsonrpc": "2.0", "id": 2, "result": {}}
    process.stdin.close()
    assert process.wait(SOON) == 0
    process.stdout.close()


@pytest.mark.parametrize("version", [SESSIONS, "1999-01-01"])
def test_requests_that_come_before_the_greeting_is_answered_wait_for_it(offline, version):
    """Pipelined requests are written at once and answered in order. A cancelled one gets no answer."""
    messages = [{"id": 1, "method": "initialize", "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
                {"method": "notifications/initialized"}, {"id": 2, "method": "tools/list"}, {"id": 3, "method": "ping"},
                {"id": 4, "method": "tools/call", "params": {"name": "list_chats", "arguments": {}}}, {"method": "notifications/cancelled", "params": {"requestId": 4}}]
    process = subprocess.Popen([str(BINARY), "mcp-server", "--url", f"http://127.0.0.1:{offline.port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=offline.home.environment(), cwd=offline.home.path)
    process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in messages))
    process.stdin.flush()
    answers = {answer["id"]: answer for answer in (json.loads(process.stdout.readline()) for _ in range(3))}
    process.stdin.close()
    rest = process.stdout.read()
    assert process.wait(SOON) == 0 and rest == b""
    process.stdout.close()
    assert answers[1]["result"]["serverInfo"]["name"] == "reprise" and answers[2]["result"]["tools"] and answers[3]["result"] == {}, answers


def test_sessions(offline):
    mcp = McpClient(offline, SESSIONS)
    assert mcp.request("ping") == {} and mcp.request("logging/setLevel", level="info") == {}
    other = McpClient(offline, SESSIONS)
    assert other.session != mcp.session and len(mcp.session) == 32
    assert [post(offline, None, "DELETE", Mcp_Session_Id=mcp.session)[0] for _ in range(2)] == [204, 404] and post(offline, None, "DELETE")[0] == 400
    with pytest.raises(Refused) as refused:
        mcp.request("ping")
    assert refused.value.status == 404 and other.request("ping") == {}
    offline.client.get("/mcp").error(405)
    # An unknown version is answered with the newest known one.
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    assert post(offline, body)[1]["result"]["protocolVersion"] == SESSIONS
    assert post(offline, {"jsonrpc": "2.0", "id": 1, "method": "ping"}, Mcp_Session_Id=other.session, MCP_Protocol_Version="1999-01-01")[0] == 400


def test_an_answer_as_one_body(server, provider):
    """For clients without streams, such as curl and scripts."""
    mcp = McpClient(server, STATELESS)
    accepts = mcp.headers
    mcp.headers = lambda message: {**accepts(message), "Accept": "application/json"}
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    asked = mcp.start("ask", message="go", chat_id="c")
    assert not asked.answer.is_stream
    asked.reply(asked.question()[0], decision="approve")
    assert said(asked.result()) == "done"


# --- others' clients ---------------------------------------------------------------------------------------------------

CLIENT = "@modelcontextprotocol/client@2.4.0"
CONFORMANCE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
# The scenarios required by each revision that need only the protocol. The others use tools, resources and prompts of the package's own fixture
# server ("test_simple_text" and so on), or features that this server does not have: sampling, subscriptions, tasks.
PASSED = {
    SESSIONS: ["server-initialize", "logging-set-level", "ping", "tools-list", "server-sse-multiple-streams", "resources-list", "prompts-list",
               "dns-rebinding-protection", "server-session-lifecycle"],
    STATELESS: ["tools-list", "server-sse-multiple-streams", "resources-list", "sep-2164-resource-not-found", "prompts-list", "dns-rebinding-protection", "caching",
                "input-required-result-unsupported-methods", "http-header-validation"]}
# The checks of this scenario that call the fixture's tools are ignored.
UNTESTABLE = ["sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400", "sep-2575-http-server-no-independent-requests-on-stream",
              "sep-2575-server-no-log-without-loglevel"]


@pytest.mark.limit(120)
@pytest.mark.parametrize("era", [SESSIONS, STATELESS])
def test_the_conformance_package(offline, era, tmp_path):
    program = install(CONFORMANCE) / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    names = PASSED[era] + (["server-stateless"] if era == STATELESS else [])
    running = [subprocess.Popen(["node", *NEWER_NODE, str(program), "server", "--url", f"http://127.0.0.1:{offline.port}/mcp", "--scenario", name, "--spec-version", era,
                                 "-o", str(tmp_path / name)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=offline.home.environment()) for name in names]
    for each in running:
        each.wait(60 * SLACK)
    for name in names:
        checks = [c for file in (tmp_path / name).glob("**/checks.json") for c in json.loads(file.read_text())]
        wrong = [f"{c['id']}: {c.get('errorMessage')}" for c in checks if c["status"] in ("FAILURE", "WARNING") and c["id"] not in UNTESTABLE]
        assert not wrong, f"{name}: {wrong}"
        assert any(c["status"] == "SUCCESS" for c in checks), f"{name}: {checks}"


@pytest.mark.limit(90)
@pytest.mark.parametrize("by", ["http", "stdio"])
@pytest.mark.parametrize("era", [SESSIONS, STATELESS])
def test_the_official_client(offline, era, by):
    folder = install(CLIENT) / "@modelcontextprotocol" / "client" / "dist"
    arguments = [folder / "index.mjs", folder / "stdio.mjs", era, by, f"http://127.0.0.1:{offline.port}", BINARY]
    done = subprocess.run(["node", *NEWER_NODE, str(HERE / "support" / "mcp_client.mjs"), *map(str, arguments)], capture_output=True, text=True,
                          timeout=30 * SLACK, check=False, env=offline.home.environment())
    assert done.returncode == 0 and done.stdout, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert seen["version"] == era and seen["server"] == "reprise" and "ask" in seen["tools"]
    assert seen["answer"]["structuredContent"]["answer"] == "6*7 = 42" and seen["progress"] and seen["listed"] == ["sdk"]
    assert "write_file" in seen["asked"][0] and seen["written"]["structuredContent"]["status"] == "COMPLETED"
    assert (offline.home.workspace / "a.txt").read_text() == "hello" and "6*7" in seen["read"]
    eventually(lambda: offline.client.history("sdk")["interactions"][-1]["status"] == "CANCELLED", "an abort is a cancel", SOON)
