"""Chats: created, listed, renamed, deleted."""
import json

from support.feed import Feed
from support.provider import Gate, text


def turn(client, provider, chat, message="hello"):
    provider.plan(text("x"))
    client.turn(chat, message)


def test_they_are_listed_newest_first_and_paged(client, provider):
    for chat in ("a", "b", "c", "d", "e"):
        turn(client, provider, chat, f"first of {chat}")
    turn(client, provider, "b")
    listed = client.get("/chats").expect(200, "chat_list").json
    assert [c["id"] for c in listed["chats"]] == ["b", "e", "d", "c", "a"] and listed["next"] is None
    assert listed["chats"][0]["title"] == "first of b" and listed["chats"][0]["head"] == "int_002"
    assert (listed["chats"][0]["status"], listed["chats"][0]["head_status"]) == ("idle", "COMPLETED")
    pages, cursor = [], ""
    while cursor is not None:
        page = client.get(f"/chats?limit=2{cursor}").expect(200, "chat_list").json
        pages.append([c["id"] for c in page["chats"]])
        cursor = page["next"] and f"&cursor={page['next']}"
    assert pages == [["b", "e"], ["d", "c"], ["a"]]
    client.get("/chats?cursor=nonsense!").error(400)


def test_an_empty_server_lists_none(client):
    assert client.get("/chats").expect(200, "chat_list").json == {"chats": [], "next": None}


def test_a_chat_can_be_created_first(client, provider):
    created = client.post("/chats", {"id": "mine", "title": "My title"}).expect(201, "chat_summary").json
    assert created["id"] == "mine" and created["title"] == "My title" and created["head"] is None
    client.post("/chats", {"id": "mine"}).error(409)
    turn(client, provider, "mine")
    assert client.history("mine")["title"] == "My title"
    named = client.post("/chats", {}).expect(201, "chat_summary").json["id"]
    assert client.history(named)["interactions"] == []
    client.post("/chats", {"id": "../x"}).error(400)
    client.post("/chats").expect(201, "chat_summary")


def test_rename(client, provider):
    turn(client, provider, "c")
    assert client.request("PATCH", "/chats/c", {"title": "Neu ü"}).expect(200, "chat_summary").json["title"] == "Neu ü"
    turn(client, provider, "c")
    assert client.history("c")["title"] == "Neu ü"
    client.request("PATCH", "/chats/nobody", {"title": "x"}).error(404)
    client.request("PATCH", "/chats/c", {"title": 7}).error(400)
    client.request("PATCH", "/chats/c", {"id": "x"}).error(400)


def change(client, chat, **settings):
    return client.request("PATCH", f"/chats/{chat}", settings)


def test_a_model_chosen_for_a_chat_answers_in_it(server, make_server, provider):
    client = server.client
    turn(client, provider, "c")
    feed = Feed(client)
    feed.next()
    assert change(client, "c", model="offline").expect(200, "chat_summary").json["chosen_model"] == "offline"
    told = feed.until("chat_renamed")["chat"]
    assert (told["chosen_model"], told["model"]) == ("offline", "test/scripted")
    feed.close()
    client.turn("c", "echo one")
    assert client.interaction("c", "int_002")["model"] == "offline"
    again = client.stream("POST", "/chats/c/interactions/int_001/regenerate", {})
    again.finish()
    assert again.one("interaction_started")["model"] == "offline"
    provider.plan(text("x"))
    client.turn("c", "hello", model="test/scripted")  # the model that is named
    assert client.interaction("c", "int_004")["model"] == "test/scripted"
    # A replay uses the model that answered originally.
    provider.plan(text("x"))
    again = client.post("/chats/c/interactions/int_001/replay", {"mode": "live"}).expect(200).json
    assert again["match"] and client.interaction("c", again["interaction_id"])["model"] == "test/scripted"
    client.post("/chats/c/fork", {"interaction_id": "int_001", "chat_id": "d"}).expect(201)
    client.turn("d", "echo two")
    server.stop()
    client = make_server(provider, server.home).client
    client.turn("c", "echo three")
    assert "chosen_model" not in change(client, "c", model=None).expect(200, "chat_summary").json
    provider.plan(text("x"))
    client.turn("c", "hello")
    assert client.history("c")["interactions"][-1]["model"] == "test/scripted"


def test_settings_that_cannot_be_are_refused(client, provider):
    turn(client, provider, "c")
    unknown = change(client, "c", model="nobody/x").error(400, "unknown_model")
    assert "'nobody'" in unknown["message"] and "offline" in unknown["message"]
    change(client, "c", model=None).expect(200)
    assert "approval_mode" in change(client, "c", approval_mode="yes").error(400, "invalid_member")["message"]
    change(client, "c", approval_mode=1).error(400, "invalid_member")
    change(client, "c", model=1).error(400, "invalid_member")
    for name in ("model", "workspace", "approval_mode", "effort", "shelf"):  # an empty variable of a script is no wish for the server's
        assert name in change(client, "c", **{name: ""}).error(400, "invalid_member")["message"]
        assert name in client.post("/chats", {name: ""}).error(400, "invalid_member")["message"]
    for name in ("model", "workspace"):
        assert name in client.post("/chats/c/interactions", {"user_message": "hello", name: ""}).error(400, "invalid_member")["message"]
    assert "approval_mode" in change(client, "c").error(400, "invalid_member")["message"]
    change(client, "nobody", approval_mode="ask").error(404)
    kept = client.get("/chats").expect(200, "chat_list").json["chats"][0]
    assert "approval_mode" not in kept and "chosen_model" not in kept


def test_delete_goes_to_the_trash(server, provider):
    client = server.client
    turn(client, provider, "c")
    turn(client, provider, "other")
    sealed = server.home.checkpoint_file("c", "int_001").read_bytes()
    client.request("DELETE", "/chats/c").expect(200, "chat_deleted")
    client.get("/chats/c").error(404)
    client.request("DELETE", "/chats/c").error(404)
    assert [c["id"] for c in client.get("/chats").json["chats"]] == ["other"]
    kept = [p for p in server.home.data.rglob("int_001.json") if p.read_bytes() == sealed]
    assert len(kept) == 1, "it is kept under a name that a person can find"
    turn(client, provider, "c", "a new life")
    assert [i["user_message"] for i in client.history("c")["interactions"]] == ["a new life"]


def test_deleting_a_chat_ends_its_run(client, provider):
    gate = Gate()
    provider.plan(text("a", gate))
    stream = client.start("c", "x")
    stream.until("text_delta")
    client.request("DELETE", "/chats/c").expect(200, "chat_deleted")
    events = stream.finish("CANCELLED")
    assert events[-2]["reason"] == "chat_deleted"
    client.get("/chats/c").error(404)


def test_a_running_interaction_is_in_the_history(client, provider):
    gate = Gate()
    provider.plan(text("a", gate))
    stream = client.start("c", "x")
    stream.until("text_delta")
    running = client.history("c")["interactions"]
    assert [(i["id"], i["status"], i["final_agent_state"], i["completed_at"]) for i in running] == [("int_001", "RUNNING", None, None)]
    gate.release()
    stream.finish()
    finished = client.history("c")["interactions"][0]
    assert finished["status"] == "COMPLETED" and finished["completed_at"] >= finished["created_at"]


def test_chats_run_side_by_side_without_mixing(client, provider):
    provider.answer_with(lambda r: text(*[f"{r.last['content']} "] * 50))
    streams = {f"c{n}": client.start(f"c{n}", f"word{n}") for n in range(30)}
    for chat, stream in streams.items():
        stream.finish()
        assert set(stream.one("answer")["content"].split()) == {f"word{chat[1:]}"}


def test_numbers_go_beyond_three_digits_worth_of_care(client, provider):
    provider.answer_with(lambda _: text("x"))
    for _ in range(12):
        client.turn("c", "x")
    ids = [i["id"] for i in client.history("c")["interactions"]]
    assert ids == [f"int_{n:03}" for n in range(1, 13)]
    assert json.dumps(ids)
