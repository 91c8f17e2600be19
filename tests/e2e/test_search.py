"""GET /search and GET /chats/{chat}/export."""
import json

from support.provider import Gate, call, text, tools


def found(client, query):
    return client.get(f"/search?{query}").expect(200, "search_matches").json


def test_what_was_said_is_found_wherever_it_was_said(client, provider):
    provider.plan(tools(call("echo", {"text": "the Needle in a call"})), text("An answer with a NEEDLE in it, and naïve Ünïcode"))
    client.turn("a", "where is the needle?")
    provider.plan(text("nothing here"))
    client.turn("b", "hello")
    result = found(client, "q=needle")
    assert result["truncated"] is False
    assert {(m["chat_id"], m["interaction_id"], m["where"]) for m in result["matches"]} == {
        ("a", "int_001", "user"), ("a", "int_001", "tool_call"), ("a", "int_001", "tool_result"), ("a", "int_001", "answer")}
    assert all("needle" in m["snippet"].lower() and m["title"] == "where is the needle?" and not m["superseded"] for m in result["matches"])
    assert [m["where"] for m in found(client, "q=%C3%BCn%C3%AFcode")["matches"]] == ["answer"]
    assert found(client, "q=needle&chat=b")["matches"] == []
    assert found(client, "q=needle&limit=2")["truncated"] is True and len(found(client, "q=needle&limit=2")["matches"]) == 2
    assert found(client, "q=.*")["matches"] == []  # plain text, not a pattern


def test_what_was_superseded_is_found_and_marked(client, provider):
    provider.plan(text("old words"))
    client.turn("c", "first")
    provider.plan(text("new words"))
    client.edit("c", "int_001", "other").finish()
    matches = found(client, "q=words")["matches"]
    assert {(m["interaction_id"], m["superseded"]) for m in matches} == {("int_001", True), ("int_002", False)}


def test_what_a_search_has_learnt_of_a_chat_hides_nothing_that_comes_later(client, provider):
    provider.answer_with(lambda request: text("said"))
    client.turn("c", "hay")
    chats = lambda: [m["chat_id"] for m in found(client, "q=needle")["matches"]]  # noqa: E731
    assert chats() == [] and chats() == [], "the second one knows that it is not there"
    client.turn("c", "a needle")
    assert chats() == ["c"]
    client.post("/chats/c/undo", {}).expect(200)
    client.edit("c", "int_001", "straw").finish()
    assert chats() == ["c"], "on another branch"
    gate = Gate()
    provider.answer_with(lambda request: text("say", gate, " needle"))
    stream = client.start("d", "hay")
    stream.until("text_delta")
    assert chats() == ["c"]
    gate.release()
    stream.finish()
    assert chats() == ["d", "c"]
    client.request("DELETE", "/chats/c").expect(200)
    provider.answer_with(lambda request: text("said"))
    client.turn("c", "hay")
    assert chats() == ["d"]
    client.turn("c", "needle")
    assert chats() == ["c", "d"]


def test_bad_searches(client):
    client.get("/search").error(400)
    client.get("/search?q=").error(400)
    client.get("/search?q=x&limit=0").error(400)
    client.get("/search?q=x&chat=../x").error(400)
    client.get("/search?q=x&chat=nobody").error(404)
    assert found(client, "q=%FF")["matches"] == []


def test_a_chat_is_exported_and_comes_back(client, provider):
    provider.plan(tools(call("echo", {"text": "x"})), text("**done**"))
    client.turn("c", "do it")
    document = client.get("/chats/c/export").expect(200, "chat_history").json
    assert [i["id"] for i in document["interactions"]] == ["int_001"] and document["interactions"][0]["final_agent_state"]["messages"]
    made = client.post("/import?as=copy", {k: v for k, v in document.items() if k != "usage"}).expect(201).json
    assert made["id"] == "copy"
    back = client.get("/chats/copy/export").json["interactions"][0]
    assert [m["content"] for m in back["final_agent_state"]["messages"]] == [m["content"] for m in document["interactions"][0]["final_agent_state"]["messages"]]
    line = client.get("/chats/c/export?format=jsonl").expect(200)
    assert line.headers["Content-Type"] == "application/jsonl" and line.body.count(b"\n") == 1
    assert [m["role"] for m in json.loads(line.body)["messages"]] == ["user", "assistant", "tool", "assistant"]
    pages = client.get("/chats/c/export?format=markdown").expect(200)
    assert pages.headers["Content-Type"].startswith("text/markdown") and b"**done**" in pages.body
    client.get("/chats/c/export?format=pdf").error(400)
    client.get("/chats/nobody/export").error(404)
