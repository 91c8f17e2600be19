"""GET /events: one stream of the changes of all chats, and of all events of the chats that are followed."""
from support.feed import Feed, events_of
from support.provider import Gate, call, text, tools


def names(feed):
    return [(f.name, f["chat_id"]) for f in feed.frames if f.name != "open"]


def test_it_tells_what_becomes_of_a_chat(client, provider):
    feed = Feed(client)
    assert feed.next().name == "open"
    provider.plan(text("hello"))
    client.turn("c", "hi")
    assert feed.until("chat_created")["chat_id"] == "c"
    assert feed.until("interaction_started")["interaction_id"] == "int_001"
    ended = feed.until("interaction_ended")
    chat = ended["chat"]
    assert (chat["id"], chat["title"], chat["head"], chat["status"], chat["head_status"]) == ("c", "hi", "int_001", "idle", "COMPLETED")
    assert chat["waiting"] == 0 and chat["model"].endswith("scripted") and chat["tokens"] > 0
    client.request("PATCH", "/chats/c", {"title": "Other"}).expect(200)
    assert feed.until("chat_renamed")["chat"]["title"] == "Other"
    provider.plan(text("two"))
    client.turn("c", "more")
    feed.until("interaction_ended")
    client.post("/chats/c/undo").expect(200)
    assert feed.until("head_moved")["chat"]["head"] == "int_001"
    client.post("/chats/c/fork", {"interaction_id": "int_001", "chat_id": "d"}).expect(201)
    assert feed.until("chat_created")["chat_id"] == "d"
    client.request("DELETE", "/chats/c").expect(200)
    assert feed.until("chat_deleted").data == {"chat_id": "c", "chat": None}
    entry = client.get("/trash").json["entries"][0]["id"]
    client.post(f"/trash/{entry}/restore").expect(200)
    assert feed.until("chat_created")["chat"]["title"] == "Other"
    feed.close()


def test_what_waits_is_told_as_it_opens_and_closes(server, provider):
    client, feed = server.client, Feed(server.client)
    provider.plan(tools(call("run_shell", {"command": "true"}), call("ask_human", {"question": "Which?"})))
    stream = client.start("c", "do it")
    opened = feed.until("approval_opened")
    assert opened["approval"]["tool_name"] == "run_shell" and opened["approval"]["approval_id"] == opened["approval_id"]
    listed = client.get("/chats").expect(200, "chat_list").json["chats"][0]
    assert (listed["status"], listed["waiting"]) == ("waiting", 1)
    client.approve("c", "int_001", opened["approval_id"]).expect(200)
    assert feed.until("approval_closed")["approval_id"] == opened["approval_id"]
    asked = feed.until("input_opened")
    assert asked["request"]["question"] == "Which?"
    provider.plan(text("done"))
    client.respond("c", "int_001", asked["request_id"], "this")
    assert feed.until("input_closed")["request_id"] == asked["request_id"]
    assert feed.until("interaction_ended")["chat"]["waiting"] == 0
    stream.finish()
    # A stopped run no longer waits.
    provider.plan(tools(call("run_shell", {"command": "true"})))
    stream = client.start("c", "again")
    opened = feed.until("approval_opened")
    client.cancel("c", "int_002")
    assert feed.until("approval_closed")["approval_id"] == opened["approval_id"]
    stream.finish("CANCELLED")
    feed.close()


def test_the_queue(client, provider):
    gate, feed = Gate(), Feed(client)
    provider.plan(text("one", gate))
    first = client.start("c", "one")
    gate.wait_reached()
    second = client.start("c", "two", if_running="queue")
    second.next()
    assert feed.until("queue_changed")["chat"]["status"] == "running"
    provider.plan(text("two"))
    gate.release()
    first.finish()
    second.finish()
    feed.until("interaction_ended", interaction_id="int_001")
    feed.until("interaction_ended", interaction_id="int_002")
    assert "queue_changed" in [f.name for f in feed.frames]
    feed.close()


def test_a_followed_chat_has_the_same_events_as_its_own_stream(client, provider):
    feed = Feed(client, "c")
    provider.plan(tools(call("echo", {"text": "x"})), text("one two three"))
    own = client.start("c", "go")
    own.finish()
    feed.until_event("INTERACTION_COMPLETE")
    assert events_of(feed.frames, "c", "int_001") == [e.data for e in own.events]
    provider.plan(text("second"))
    again = client.turn("c", "next")
    feed.until_event("INTERACTION_COMPLETE", interaction_id="int_002")
    assert events_of(feed.frames, "c", "int_002") == [e.data for e in again.events]
    feed.close()


def test_a_client_that_joins_late_sees_the_run_from_its_beginning(client, provider):
    gate = Gate()
    provider.plan(text("begin", gate, "end"))
    own = client.start("c", "go")
    own.until("text_delta")
    gate.wait_reached()
    feed = Feed(client, "c")
    feed.until_event("TEXT_DELTA")
    gate.release()
    own.finish()
    feed.until_event("INTERACTION_COMPLETE")
    assert events_of(feed.frames, "c", "int_001") == [e.data for e in own.events]
    feed.close()


def test_after_every_frame_it_can_be_gone_on_from(client, provider):
    whole = Feed(client, "c")
    provider.plan(tools(call("echo", {"text": "x"})), text("one two three"))
    client.turn("c", "go")
    whole.until("interaction_ended")
    provider.plan(text("next"))
    client.turn("c", "more")
    whole.until("interaction_ended")
    client.post("/chats", {"id": "last"}).expect(201)
    whole.until("chat_created", chat_id="last")
    for number, frame in enumerate(whole.frames[:-1]):
        again = Feed(client, "c", after=frame.id)
        again.until("chat_created", chat_id="last")
        seen = [f.name for f in whole.frames[:number + 1]]
        assert again.frames[0].name == "open"
        for change in ("chat_created", "interaction_started", "interaction_ended"):
            there = sum(f.name == change for f in whole.frames)
            assert seen.count(change) + sum(f.name == change for f in again.frames) == there, (change, frame)
        again.close()
    # Ended interactions have no deltas any more; every other event comes once.
    middle = next(f for f in whole.frames if f.name == "chat_event" and f["event"]["type"] == "TOOL_CALL")
    again = Feed(client, "c", last_event_id=middle.id)
    again.until_event("INTERACTION_COMPLETE", interaction_id="int_002")
    before = [e for e in events_of(whole.frames, "c", "int_001") if e["seq"] <= middle["event"]["seq"]]
    kept = [e for e in events_of(whole.frames, "c", "int_001") if "DELTA" not in e["type"] and e["seq"] > middle["event"]["seq"]]
    assert events_of(again.frames, "c", "int_001") == kept and before
    again.close()


def test_ids_of_another_process_mean_a_new_beginning(make_server, provider):
    server = make_server(provider)
    feed = Feed(server.client)
    last = feed.next().id
    feed.close()
    server.stop()
    server = make_server(provider, home=server.home)
    again = Feed(server.client, last_event_id=last)
    assert again.next().name == "reset"
    again.close()
    for nonsense in ("x", "1.2.3", "~", "a.b~c", "0." + "9" * 30):
        other = Feed(server.client, last_event_id=nonsense)
        assert other.next().name == "reset", nonsense
        other.close()


def test_bad_questions(client):
    client.get("/events?chat=../x").error(400, "invalid_parameter")
    client.get("/events?" + "&".join(f"chat=c{n}" for n in range(17))).error(400, "invalid_parameter")
    feed = Feed(client, "nobody")  # the chat may be created later
    assert feed.next().name == "open"
    feed.close()


def test_a_follower_counts_as_a_listener(make_server, provider):
    server, gate = make_server(provider, arguments=("--disconnect-grace-s", "0.1")), Gate()
    client = server.client
    provider.plan(text("begin", gate, "end"))
    own = client.start("c", "go", on_disconnect="cancel")
    own.until("text_delta")
    feed = Feed(client, "c")
    feed.until_event("TEXT_DELTA")
    own.close()
    feed2 = Feed(client)
    client.post("/chats", {"id": "other"}).expect(201)
    feed2.until("chat_created", chat_id="other")
    gate.release()
    assert feed.until_event("INTERACTION_COMPLETE")["event"]["status"] == "COMPLETED"
    feed.close()
    feed2.close()


def test_many_clients_each_see_each_change_once(client, provider):
    feeds = [Feed(client, "c") for _ in range(20)]
    for feed in feeds:
        feed.next()
    provider.plan(text(*[f"word{n} " for n in range(50)]))
    own = client.turn("c", "go")
    for feed in feeds:
        feed.until("interaction_ended")
        while len(events_of(feed.frames, "c", "int_001")) < len(own.events):
            feed.next()
        assert events_of(feed.frames, "c", "int_001") == [e.data for e in own.events]
        assert [f.name for f in feed.frames if f.name != "chat_event"] == ["open", "chat_created", "interaction_started", "interaction_ended"]
        feed.close()


def test_a_long_answer_comes_whole(client, provider):
    feed = Feed(client, "c")
    long = "some words " * 100_000
    provider.plan(text(*[long[at:at + 16384] for at in range(0, len(long), 16384)]))
    own = client.turn("c", "go")
    feed.until_event("INTERACTION_COMPLETE")
    assert events_of(feed.frames, "c", "int_001") == [e.data for e in own.events]
    feed.close()
