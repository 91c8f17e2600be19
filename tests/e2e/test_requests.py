"""What models were told is on record: each request's body, byte for byte, whatever the chat goes through."""
import hashlib
import json

import pytest
from support import anthropic, documents, responses
from support.editor import Editor
from support.mcp import server_of
from support.provider import Gate, call, failure, text, tools
from support.server import API_KEY, reprise
from support.timing import eventually
from test_editor import TOOL, offer


def serve(make_server, provider, kind, **config):
    base = provider.url.removesuffix("/v1") if kind == "anthropic" else provider.url
    one = {"type": kind, "base_url": base, "api_key": API_KEY}
    return make_server(config={"providers": {"one": one}, "model": "one/scripted", "models": {"one/scripted": {"abilities": {"images": True}}}, **config})


def said(kind, words):
    """An answer in the form of that provider."""
    if kind == "anthropic":
        return anthropic.message(anthropic.say(words))
    return responses.message(responses.say(words)) if kind == "openai_responses" else text(words)


def on_record(client, chat="c"):
    """All requests of the chat's branches, with their bodies, in the order of their interactions."""
    found = []
    for turn in client.history(chat, "all")["interactions"]:
        listed = client.get(f"/chats/{chat}/interactions/{turn['id']}/requests").expect(200, "requests").json
        assert listed["on_record"] is True and listed["interaction_id"] == turn["id"]
        for index, each in enumerate(listed["requests"]):
            body = client.get(f"/chats/{chat}/interactions/{turn['id']}/requests/{index}").expect(200).body
            assert len(body) == each["bytes"] and "sha256:" + hashlib.sha256(body).hexdigest() == each["digest"]
            found.append((each, body))
    return found


def check(client, provider, chat="c"):
    found = on_record(client, chat)
    assert sorted(body for _, body in found) == sorted(each.raw for each in provider.requests), "the bodies on record are those that the provider received"
    return found


@pytest.fixture
def server(make_server, provider):
    return make_server(provider, arguments=["--max-retries", "2"])


@pytest.fixture
def chat(server, provider):
    """A chat with calls, a retry, an edit and a summary."""
    client = server.client
    provider.plan(tools(call("write_file", {"path": "heron.txt", "content": "It said \"no\"\n\tand left \u2028 \U0001f986.\n" * 5}, "call_1")), text("Written."))
    client.turn("c", "Write about a heron, please: it said \"no\".", approval_mode="approve_all")
    provider.plan(failure(503, "busy"), text("It works now."))
    client.turn("c", "And now?")
    provider.plan(text("Of an otter then."))
    client.edit("c", "int_002", "And of an otter?").finish()
    provider.plan(text("THE SUMMARY"))
    client.stream("POST", "/chats/c/compact", {}).finish()
    provider.plan(text("goes on"))
    client.turn("c", "What was it about?")
    return client


def test_each_body_is_on_record_as_it_was_sent(chat, provider):
    found = check(chat, provider)
    assert [each["purpose"] for each, _ in found] == ["turn"] * 5 + ["summary", "turn"]
    assert [each["round_index"] for each, _ in found[:4]] == [0, 1, 0, 0]
    assert all(each["model"] == "scripted" for each, _ in found) and API_KEY not in "".join(body.decode() for _, body in found)


def test_sub_agents_beside_each_other(server, provider):
    """Each continues its own conversation, whatever another one has asked meanwhile."""
    def answer_of(request):
        messages = request.messages
        if messages[-1]["role"] == "user" and "first and second" in messages[-1]["content"]:
            return tools(call("research", {"question": "The first long question of them all"}, "r1"), call("research", {"question": "The second question, which is another one"}, "r2"))
        results = sum(m["role"] == "tool" for m in messages)
        own = next(m["content"] for m in messages if m["role"] == "user")
        if "first and second" in own:
            return text("Both have answered.")
        return text("I know it.") if results == 4 else tools(call("list_files", {"path": "."}, f"l{results}"))

    provider.answer_with(answer_of)
    server.client.turn("c", "Ask the first and second question", approval_mode="approve_all")
    check(server.client, provider)
    record = server.client.interaction("c", "int_001")["record"]["requests"]
    later = [each for each in record if each.get("purpose") == "sub_agent"][4:]
    assert later and all(len(json.dumps(each)) < 1500 for each in later), later


def listed(client, turn="int_001", chat="c"):
    return client.get(f"/chats/{chat}/interactions/{turn}/requests").expect(200, "requests").json["requests"]


def with_id(reply, name, value):
    reply.headers[name] = value
    return reply


def test_what_came_of_each_request(server, provider):
    provider.plan(with_id(failure(503, "busy"), "x-request-id", "req_1"), with_id(tools(call("research", {"question": "Which bird?"}, "r1")), "request-id", "req_2"),
                  with_id(text("A heron."), "x-request-id", "x" * 300), with_id(text("It is a heron.", usage=(1200, 34)), "x-request-id", "not visible"))
    server.client.turn("c", "Find out", approval_mode="approve_all")
    found = listed(server.client)
    assert [(each["purpose"], each["round_index"], each["attempt"], each.get("call_id")) for each in found] == [
        ("turn", 0, 0, None), ("turn", 0, 1, None), ("sub_agent", 0, 0, "r1"), ("turn", 1, 0, None)]
    ends = [each["response"] for each in found]
    assert all(each.pop("ms") >= each.pop("first_token_ms", 0) for each in ends)
    usage = {"input_tokens": 11, "output_tokens": 7}
    assert ends == [{"error": "provider_overloaded", "request_id": "req_1"}, {"finish": "tool_calls", "model": "scripted", "usage": usage, "request_id": "req_2"},
                    {"finish": "stop", "model": "scripted", "usage": usage, "request_id": "x" * 128},
                    {"finish": "stop", "model": "scripted", "usage": {"input_tokens": 1200, "output_tokens": 34}}]
    stored = server.client.interaction("c", "int_001")["record"]
    assert ["usage" in each["response"] for each in stored["requests"]] == [False, False, True, False], "a turn's usage is in its event"
    assert stored["program"] == server.client.get("/chats/c/interactions/int_001/requests").json["program"]


def test_what_came_of_a_summary(chat):
    found = [each for turn in chat.history("c", "all")["interactions"] for each in listed(chat, turn["id"]) if each["purpose"] == "summary"]
    assert [each["response"]["usage"] for each in found] == [{"input_tokens": 11, "output_tokens": 7}]


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic"])
def test_why_an_answer_ended(make_server, provider, kind):
    client = serve(make_server, provider, kind).client
    provider.plan(said(kind, "It is whole."))
    client.turn("c", "Say it")
    [only] = listed(client)
    assert only["response"]["finish"] == "stop" and only["response"]["usage"]["output_tokens"] > 0 and only["response"]["ms"] >= only["response"]["first_token_ms"]


def test_where_tools_come_from(make_server, provider):
    bell = server_of('{"name": "ring", "description": "Rings.", "inputSchema": {"type": "object"}}', '"ding"')
    server = make_server(provider, config={"mcpServers": {"bell": bell}})
    eventually(lambda: [each["state"] for each in server.client.get("/tools").json["servers"]] == ["ready"], "the server is ready")
    editor = Editor(server)
    offer(server, TOOL).expect(200)
    provider.plan(text("one"), text("two"), text("three"))
    server.client.turn("c", "first")
    server.client.turn("c", "second")
    [first], [second] = listed(server.client), listed(server.client, "int_002")
    by_name = {name: of for of in first["tools"] for name in of["tools"]}
    assert by_name["tickets__find"]["client"] == "the MCP server tickets" and "server" not in by_name["tickets__find"]
    assert by_name["bell__ring"] == {"server": "bell", "version": "s 1", "revision": by_name["bell__ring"]["revision"], "tools": by_name["bell__ring"]["tools"]}
    assert second["tools"] == first["tools"]
    stored = server.client.interaction("c", "int_002")["record"]["requests"][0]
    assert "tools" not in stored and "modules" not in stored, "the lists are stored once"
    status, out, _ = reprise(server.home, "show", "c/int_002", "--requests", "--data-dir", server.home.data)
    assert status == 0 and "MCP server bell (s 1, protocol " in out and ": bell__ring" in out and "client: the MCP server tickets: tickets__find" in out
    editor.close()
    server.client.turn("c", "third")
    [third] = listed(server.client, "int_003")
    assert ["client" in of for of in third["tools"]] == [False]
    report = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded", "input": "current"}).expect(200, "replay_report").json
    assert report["requests"] == 1 and report["drift"] == [], "an editor's tools are not compared"


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic"])
def test_a_request_in_parts(make_server, provider, kind):
    client = serve(make_server, provider, kind).client
    for turn in range(3):
        provider.plan(said(kind, f"Answer {turn}."))
        client.turn("c", f"Question {turn}?")
    def parts(turn):
        return client.get(f"/chats/c/interactions/{turn}/requests/0?format=parts").expect(200, "request_parts").json
    first, last = parts("int_001"), parts("int_003")
    assert first["gone"] == 0 and all(each["new"] for name in ("system", "tools", "parameters", "messages") for each in first[name])
    record = client.interaction("c", "int_001")["record"]["requests"][0]
    assert [each["name"] for each in first["system"]] == [name for name, _ in record["modules"]] and len(first["system"]) > 2
    assert "\n\n".join(each["content"] for each in first["system"]) in json.dumps(provider.requests[0].body, ensure_ascii=False).replace("\\n", "\n").replace('\\"', '"')
    assert {"read_file", "edit_file"} <= {each["name"] for each in last["tools"]} and not any("new" in each for each in last["system"] + last["tools"])
    assert ["new" in each for each in last["messages"]] == [False] * 3 + [True] * 2
    body = provider.requests[-1].body
    assert [each["content"] for each in last["messages"]] == [each for each in body["input" if kind == "openai_responses" else "messages"] if each.get("role") not in ("system", "developer")]


def test_a_deleted_file_in_parts(make_server, provider):
    client = serve(make_server, provider, "openai").client
    picture = client.request("POST", "/chats/c/files?name=heron.png", documents.png(), headers={"Content-Type": "image/png"}).expect(201).json
    provider.plan(text("A heron."), text("Grey."))
    client.turn("c", "What is it?", attachments=[picture["id"]])
    client.turn("c", "And its colour?")
    client.request("DELETE", f"/chats/c/files/{picture['id']}").expect(200)
    for turn in ("int_001", "int_002"):
        client.get(f"/chats/c/interactions/{turn}/requests/0").error(404)
        found = client.get(f"/chats/c/interactions/{turn}/requests/0?format=parts").expect(200, "request_parts").json
        assert f"deleted: {picture['id']}" in json.dumps(found["messages"])
    assert sum(each.get("new", False) for each in found["messages"]) == 2


def test_what_is_new_in_a_request(chat, provider):
    address = "/chats/c/interactions/int_003/requests/0"
    patch = chat.get(address + "?format=diff").expect(200)
    assert patch.headers["Content-Type"] == "application/json-patch+json"
    assert [(each["op"], each["value"]["role"]) for each in patch.json if each["path"].startswith("/messages/")] == [("add", "assistant"), ("add", "user")]
    first = chat.get("/chats/c/interactions/int_001/requests/0?format=diff").json
    assert first == [{"op": "replace", "path": "", "value": provider.requests[0].body}]
    chat.get(address + "?format=words").error(400, "invalid_parameter")


def test_they_survive_a_restart_a_fork_an_export_and_an_import(chat, server, make_server, provider, tmp_path):
    before = on_record(chat)
    server.close()
    server = make_server(provider, home=server.home)
    client = server.client
    assert on_record(client) == before == check(client, provider)
    client.post("/chats/c/fork", {"interaction_id": "int_005", "chat_id": "copy"}).expect(201)
    copied = on_record(client, "copy")
    assert len(copied) == 5 and [each for each in before if each in copied] == copied
    document = client.get("/chats/c/export").expect(200).json
    client.post("/import?as=again", document).expect(201)
    assert on_record(client, "again") == before
    other = make_server(provider)
    other.client.post("/import?as=again", document).expect(201)
    assert on_record(other.client, "again") == before
    provider.plan(text("And here."))
    other.client.turn("again", "Go on elsewhere")
    assert on_record(other.client, "again")[-1][1] == provider.requests[-1].raw


def test_a_killed_servers_requests_are_on_record(server, make_server, provider):
    gate = Gate()
    provider.plan(tools(call("list_files", {}, "l")), text(gate, "half"), text("Done."))
    stream = server.client.start("c", "List the files")
    stream.until("tool_result")
    gate.wait_reached()  # the model has the request, and has not begun to answer
    server.kill()
    gate.release()
    client = make_server(provider, home=server.home).client
    ends = [each.get("response", {}).get("finish") for each in listed(client)]
    assert ends == ["tool_calls", None], "what the first request led to was shown, and the second one had no answer"
    client.stream("POST", "/chats/c/interactions/int_001/resume", {}).finish()
    assert len(check(client, provider)) == 3
    # The interaction that was stopped is not in a fork, and none of its requests is needed there.
    client.post("/chats/c/fork", {"interaction_id": "int_002", "chat_id": "copy"}).expect(201)
    assert on_record(client, "copy")[-1][1] == provider.requests[-1].raw
    provider.plan(text("In the copy."))
    client.turn("copy", "And here?")
    assert on_record(client, "copy")[-1][1] == provider.requests[-1].raw


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic"])
def test_every_interface_is_recorded(make_server, provider, kind):
    client = serve(make_server, provider, kind).client
    picture = client.request("POST", "/chats/c/files?name=heron.png", documents.png(), headers={"Content-Type": "image/png"}).expect(201).json
    for turn in range(12):
        provider.plan(said(kind, f"The answer number {turn} is long enough to be found again."))
        client.turn("c", f"The question number {turn} is long enough, too.", attachments=[picture["id"]] if turn == 3 else [])
    check(client, provider)
    record = client.interaction("c", "int_004")["record"]
    assert {"file": picture["id"]} in record["requests"][0]["body"], "the picture is not stored again"
    assert len(json.dumps(client.interaction("c", "int_012")["record"])) < 1000
    client.request("DELETE", f"/chats/c/files/{picture['id']}").expect(200)
    provider.plan(said(kind, "It is gone."))
    client.turn("c", "And without the picture?")
    assert client.get("/chats/c/interactions/int_013/requests/0").expect(200).body == provider.requests[-1].raw
    assert picture["id"] in client.get("/chats/c/interactions/int_012/requests/0").error(404)["message"]
    assert client.get("/chats/c/interactions/int_003/requests/0").expect(200).body == provider.requests[2].raw


def test_sub_agents_and_their_rounds(server, provider):
    provider.plan(tools(call("research", {"question": "Which bird?"}, "r")), tools(call("list_files", {}, "l")), text("A heron."), text("It is a heron."))
    server.client.turn("c", "Find out", approval_mode="approve_all")
    assert [each["purpose"] for each, _ in check(server.client, provider)] == ["turn", "sub_agent", "sub_agent", "turn"]


def test_a_turn_costs_some_hundred_bytes(server, provider, figure):
    """What a request adds to a chat whose prompt, tools and settings stay the same."""
    for turn in range(100):
        provider.plan(text(f"Answer {turn}."))
        server.client.turn("c", f"Question {turn}?")
    check(server.client, provider)
    sizes = [len(json.dumps({name: each["record"][name] for name in ("requests", "program")}, separators=(",", ":"))) for each in server.client.history("c")["interactions"]]
    marks = len(json.dumps(server.client.interaction("c", "int_100")["final_agent_state"]["request"], separators=(",", ":")))
    average = sum(sizes[1:]) / (len(sizes) - 1)
    figure(f"a request on record: {average:.0f} bytes a turn and {marks} for its marks, the first {sizes[0]}")
    assert average < 400 and marks < 250, (sizes, marks)


def test_at_the_command_line(chat, server, provider):
    home = server.home
    status, out, _ = reprise(home, "show", "c/int_001", "--requests", "--data-dir", home.data)
    assert status == 0 and [line.split()[:2] for line in out.splitlines() if line[0] != " "] == [["0", "turn"], ["1", "turn"]]
    assert [line.split(",")[0] for line in out.splitlines() if line[0] == " "] == ["   tool_calls", "   stop"]
    status, out, _ = reprise(home, "cat", "c/int_001/requests/1", "--data-dir", home.data)
    assert status == 0 and out.encode() == provider.requests[1].raw
    status, _, err = reprise(home, "cat", "c/int_001/requests/2", "--data-dir", home.data)
    assert status == 1 and "no such request is on record" in err


def test_what_is_not_there_is_said(chat, server):
    for path in ("int_001/requests/9", "int_001/requests/x", "int_001/requests/-1", "int_001/requests/18446744073709551616", "int_099/requests", "int_099/requests/0"):
        chat.get(f"/chats/c/interactions/{path}").error(404)
    offline = chat.turn("d", "hello", model="offline")
    assert offline and chat.get("/chats/d/interactions/int_001/requests").json == {"interaction_id": "int_001", "on_record": True, "program": "0.1.0", "requests": []}


def test_a_record_that_does_not_add_up_is_named(make_server, provider):
    server = make_server(provider, plain=True)
    provider.plan(text("one"), text("two"))
    server.client.turn("c", "first")
    server.client.turn("c", "second")
    server.close()
    file = next(server.home.data.glob("c/interactions/int_001*"))
    record = json.loads(file.read_text())
    record["record"]["requests"][0]["body"].append("more")
    file.write_text(json.dumps(record))
    again = make_server(provider, home=server.home, plain=True)
    again.check_records = again.check_files = False
    again.client.get("/chats/c/interactions/int_001/requests/0").error(422)
    again.client.get("/chats/c/interactions/int_002/requests/0").error(422)
    for what in ("c", "c/int_001"):
        status, _, err = reprise(server.home, "replay", what, "--plain", "--data-dir", server.home.data)
        assert status == 1 and "c/int_001: request 0: " in err


def test_chats_of_an_earlier_version_say_that_nothing_is_on_record(make_server, provider):
    server = make_server(provider, plain=True)
    provider.plan(text("one"), text("two"))
    server.client.turn("c", "first")
    server.close()
    file = next(server.home.data.glob("c/interactions/int_001*"))
    record = json.loads(file.read_text())
    del record["record"]["requests"], record["record"]["program"], record["final_agent_state"]["request"]
    file.write_text(json.dumps(record))
    client = make_server(provider, home=server.home, plain=True).client
    assert client.get("/chats/c/interactions/int_001/requests").json == {"interaction_id": "int_001", "on_record": False, "requests": []}
    client.get("/chats/c/interactions/int_001/requests/0").error(404)
    client.turn("c", "second")
    assert client.get("/chats/c/interactions/int_002/requests/0").body == provider.requests[-1].raw
    status, _, err = reprise(server.home, "show", "c/int_001", "--requests", "--plain", "--data-dir", server.home.data)
    assert status == 1 and "not on record" in err
