"""Idempotency-Key: a repeated request has no further effect."""
import pytest
from support.provider import Gate, text
from support.timing import eventually

KEY = "8e03978e-40d5-43dd-bc93-6894a57f9324"


def send(client, message="hello", key=KEY, chat="c", **more):
    return client.stream("POST", f"/chats/{chat}/interactions", {"user_message": message, **more}, headers={"Idempotency-Key": key},
                         gapless=False)  # deltas are not stored


def raw(stream):
    return [(e.name, e.seq, e.data) for e in stream.events if e.seq is not None]


def ids(client, chat="c"):
    return [i["id"] for i in client.history(chat, "all")["interactions"]]


def test_sent_again_it_is_answered_with_what_it_began(client, provider):
    provider.plan(text("once"))
    first = send(client)
    first.finish()
    again = send(client, key=f'"{KEY}"')  # as a structured string
    again.finish()
    assert again.events[-1].data == first.events[-1].data
    assert ids(client) == ["int_001"] and len(provider.requests) == 1


def test_while_it_runs_both_hear_the_same(client, provider):
    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    first = send(client)
    first.until("text_delta")
    again = send(client)
    again.until("text_delta")
    first.close()  # the other client listens, so the run is not cancelled
    gate.release()
    again.finish("COMPLETED")
    assert ids(client) == ["int_001"]


def test_a_key_is_for_one_request(client, provider):
    provider.plan(text("one"), text("two"), text("three"))
    send(client).finish()
    client.post("/chats/c/interactions", {"user_message": "other"}, headers={"Idempotency-Key": KEY}).error(422, "idempotency_key_reused")
    send(client, "other", key="another").finish()
    send(client, chat="d").finish()  # the same key in another chat is another request
    assert ids(client) == ["int_001", "int_002"] and ids(client, "d") == ["int_001"]


def test_an_edit_too(client, provider):
    provider.plan(text("one"), text("edited"))
    send(client).finish()
    for _ in range(2):
        client.stream("POST", "/chats/c/interactions/int_001/edit", {"new_user_message": "changed"},
                      headers={"Idempotency-Key": "edit-1"}, gapless=False).finish()
    assert ids(client) == ["int_001", "int_002"]


def test_a_live_replay_too(client, provider):
    provider.plan(text("one"), text("again"))
    send(client).finish()
    replays = [client.post("/chats/c/interactions/int_001/replay", {"mode": "live"}, headers={"Idempotency-Key": "live-1"}) for _ in range(2)]
    assert [replay.json["interaction_id"] for replay in replays] == ["int_002"] * 2
    assert ids(client) == ["int_001", "int_002"] and len(provider.requests) == 2


@pytest.mark.parametrize("key", ["", '""', "x" * 256, "a b", "a\tb", 'a"b'])
def test_what_cannot_be_a_key(client, key):
    client.post("/chats/c/interactions", {"user_message": "hello"}, headers={"Idempotency-Key": key}).error(400, "invalid_argument")
    assert client.get("/chats/c").status == 404


def test_it_holds_after_kill_9_in_mid_answer_and_after_more_turns(make_server, provider):
    server = make_server(provider)
    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    send(server.client).until("text_delta")
    server.kill()
    gate.release()
    server = make_server(provider, home=server.home)
    send(server.client).finish("FAILED")  # an interrupted run does not restart by itself
    provider.plan(*[text(f"answer {n}") for n in range(5)])
    for n in range(5):
        send(server.client, f"more {n}", key=f"key-{n}").finish()
    server.stop()
    server = make_server(provider, home=server.home)
    send(server.client, "more 1", key="key-1").finish()
    send(server.client).finish("FAILED")
    assert len(ids(server.client)) == 6


def test_a_message_that_waits_is_not_queued_twice(client, provider):
    gate = Gate()
    provider.plan(text("first", gate), text("second"))
    running = client.start("c", "q1")
    running.until("text_delta")
    waiting = send(client, "q2", if_running="queue")
    eventually(lambda: len(client.get("/chats/c/queue").json["queue"]) == 1, "it is not in the queue")
    body, headers = {"user_message": "q2", "if_running": "queue"}, {"Idempotency-Key": KEY}
    assert client.post("/chats/c/interactions", body, headers=headers).error(409, "request_waits")["retryable"]
    assert "request" not in client.get("/chats/c/queue").json["queue"][0]
    gate.release()
    running.finish()
    waiting.finish()
    send(client, "q2", if_running="queue").finish()
    assert ids(client) == ["int_001", "int_002"]


def test_a_fork_knows_no_requests(client, provider):
    provider.plan(text("one"), text("two"))
    send(client).finish()
    client.post("/chats/c/fork", {"interaction_id": "int_001", "chat_id": "f"}).expect(201)
    send(client, chat="f").finish()
    assert ids(client, "f") == ["int_001", "int_002"]
