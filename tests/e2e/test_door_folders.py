"""Clients of other protocols: their settings say in headers where a chat works and how its calls are approved."""
import http.client
import json
import urllib.parse

import pytest
from support import agui
from support.mcp_client import SESSIONS, McpClient
from support.provider import Gate, call, text, tools
from support.timing import SOON
from test_folders import World

WRITE = call("write_file", {"path": "made", "content": "1"})


@pytest.fixture
def world(make_server, provider):
    return World(make_server(provider, config={"approval_mode": "ask"}), provider)


def said_by(folder=None, mode="approve_all", **more):
    headers = {"Reprise-Workspace": urllib.parse.quote(str(folder))} if folder else {}
    return headers | ({"Reprise-Approval-Mode": mode} if mode else {}) | more


def chat_completion(world, headers, messages=None, chat=None):
    body = {"model": "reprise", "messages": messages or [{"role": "user", "content": "hi"}]} | ({"metadata": {"chat_id": chat}} if chat else {})
    return world.client.post("/v1/chat/completions", body, headers=headers)


def response(world, headers, chat=None):
    return world.client.post("/v1/responses", {"model": "reprise", "input": "hi"} | ({"metadata": {"chat_id": chat}} if chat else {}), headers=headers)


def ag_ui(world, headers, chat="thread"):
    run = agui.Run(world.server, {"threadId": chat, "runId": "r", "state": {}, "messages": [{"id": "1", "role": "user", "content": "hi"}], "tools": [],
                                  "context": [], "forwardedProps": {}}, headers)
    if run.status == 200:
        run.finish()
    return run


class WithHeaders(McpClient):
    def __init__(self, server, headers):
        self.more = headers
        super().__init__(server, SESSIONS)

    def headers(self, message):
        return super().headers(message) | self.more


def mcp(world, headers, **more):
    return WithHeaders(world.server, headers).call("ask", message="hi", **more)


DOORS = {"chat completions": chat_completion, "responses": response, "AG-UI": ag_ui, "MCP": mcp}


@pytest.mark.parametrize("name", ["plain", "with space and ü"])
@pytest.mark.parametrize("door", DOORS)
def test_a_client_of_each_protocol_says_its_folder_and_mode(world, door, name):
    folder = world.folder(name)
    world.provider.plan(tools(WRITE), text("done"))
    DOORS[door](world, said_by(folder))
    assert (folder / "made").read_text() == "1" and not (world.home.workspace / "made").exists()
    assert [each["workspace"] for each in world.client.get("/chats").json["chats"]] == [str(folder)]


@pytest.mark.parametrize("headers, why", [
    ({"Reprise-Workspace": "/not/there"}, "/not/there"), ({"Reprise-Workspace": "relative"}, "full path"), ({"Reprise-Workspace": ""}, "percent-encoding"),
    ({"Reprise-Workspace": "/%ff"}, "percent-encoding"), ({"Reprise-Workspace": "/%zz"}, "percent-encoding"), ({"Reprise-Workspace": "/proc"}, "/proc"),
    ({"Reprise-Workspace": "/%00"}, ""), ({"Reprise-Workspace": "/" + "a" * 8000}, ""), ({"Reprise-Approval-Mode": "everything"}, "approve_all"),
    ({"Reprise-Model": "no/such"}, "no model provider 'no'")])
def test_what_cannot_be_followed_is_refused_by_name(world, headers, why):
    for door in (chat_completion, response):
        refused = door(world, headers)
        assert 400 <= refused.status < 500 and why in refused.json["error"]["message"], refused.json
    run = ag_ui(world, headers)
    assert 400 <= run.status < 500 or run.checker.events[-1]["type"] == "RUN_ERROR"
    assert mcp(world, headers)["isError"]
    assert not world.provider.requests and world.client.get("/chats").json["chats"] == []


def test_a_chat_stays_in_its_folder(world):
    one, two = world.folder("one"), world.folder("two")
    world.provider.plan(text("a"), text("b"))
    chat_completion(world, said_by(one), chat="c").expect(200)
    for door in (chat_completion, response):
        refused = door(world, said_by(two), chat="c")
        assert refused.status == 409 and f"works in {one}, not in {two}" in refused.json["error"]["message"], refused.json
    chat_completion(world, said_by(None), chat="c", messages=[
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "more"}]).expect(200)
    assert {each["workspace"] for each in world.client.history("c")["interactions"]} == {str(one)}


@pytest.mark.parametrize("messages", [
    [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"},
     {"role": "user", "content": "more"}],
    [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"},
     {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGk="}}]}]])
def test_a_refused_request_adds_nothing_to_a_chat_elsewhere(world, messages):
    one, two = world.folder("one"), world.folder("two")
    world.provider.plan(text("a"), text("b"))
    chat_completion(world, said_by(one), chat="c").expect(200)

    def what_it_has():
        return world.client.history("c")["interactions"], world.client.get("/chats/c/files").expect(200).json["files"]

    before = what_it_has()
    refused = chat_completion(world, said_by(two), messages, chat="c")
    assert refused.status == 409 and f"works in {one}, not in {two}" in refused.json["error"]["message"], refused.json
    assert what_it_has() == before
    chat_completion(world, said_by(one), messages, chat="c").expect(200)


def test_a_key_of_another_folder_is_no_repetition(world):
    one, two = world.folder("one"), world.folder("two")
    world.provider.plan(text("a"), text("b"))
    key = {"Idempotency-Key": "same"}
    first = chat_completion(world, said_by(one, **key), chat="c").expect(200).json
    assert chat_completion(world, said_by(one, **key), chat="c").expect(200).json["id"] == first["id"]
    refused = chat_completion(world, said_by(two, **key), chat="c")
    assert 400 <= refused.status < 500 and len(world.provider.requests) == 1, refused.json


def test_the_same_words_in_two_folders_are_two_chats(make_server, make_home, provider):
    """Also after a restart, when only the stored chats say what belongs together."""
    home = make_home()
    world = World(make_server(provider, home), provider)
    folders = [world.folder("one"), world.folder("two")]
    messages = [{"role": "user", "content": "hi"}]
    for words in ("first", "second", "third"):
        for folder in folders:
            world.provider.plan(text(words))
            chat_completion(world, said_by(folder), messages).expect(200)
        messages += [{"role": "assistant", "content": words}, {"role": "user", "content": "more of " + words}]
        if words == "second":
            world.server.stop()
            world = World(make_server(provider, home), provider)
    chats = world.client.get("/chats").json["chats"]
    assert sorted(each["workspace"] for each in chats) == sorted(map(str, folders))
    assert all(len(world.client.history(each["id"])["interactions"]) == 3 for each in chats)


def test_what_was_said_elsewhere_is_added_in_the_folder(world):
    folder = world.folder("one")
    world.provider.plan(tools(WRITE), text("done"))
    messages = [{"role": "user", "content": "before"}, {"role": "assistant", "content": "said"}, {"role": "user", "content": "go"}]
    chat_completion(world, said_by(folder), messages).expect(200)
    assert (folder / "made").exists()
    (chat,) = world.client.get("/chats").json["chats"]
    assert chat["workspace"] == str(folder) and len(world.client.history(chat["id"])["interactions"]) == 2


def test_a_repeated_request_of_another_folder_is_another(world):
    one, two = world.folder("one"), world.folder("two")
    gate = Gate()
    world.provider.plan(text(gate, "one"))
    first = http.client.HTTPConnection("127.0.0.1", world.server.port, timeout=SOON)
    body = {"model": "reprise", "messages": [{"role": "user", "content": "hi"}]}
    first.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json", **said_by(one)})
    gate.wait_reached()
    world.provider.plan(text("two"))
    assert chat_completion(world, said_by(two)).expect(200).json["choices"][0]["message"]["content"] == "two"
    gate.release()
    assert first.getresponse().status == 200


def test_a_chat_that_has_moved_is_continued_where_it_is(world):
    one, two = world.folder("one"), world.folder("two")
    world.provider.plan(text("first"))
    chat_completion(world, said_by(one)).expect(200)
    (moved,) = world.client.get("/chats").json["chats"]
    world.client.request("PATCH", f"/chats/{moved['id']}", {"workspace": str(two)}).expect(200)
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "first"}, {"role": "user", "content": "more"}]
    for folder in (one, two):
        world.provider.plan(tools(WRITE), text("done"))
        chat_completion(world, said_by(folder), messages).expect(200)
    assert (one / "made").exists() and (two / "made").exists()
    chats = {each["id"]: each["workspace"] for each in world.client.get("/chats").json["chats"]}
    assert sorted(chats.values()) == [str(one), str(two)] and chats[moved["id"]] == str(two)
    assert len(world.client.history(moved["id"])["interactions"]) == 2
