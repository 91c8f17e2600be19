"""Signals between servers with one database: through it, and through Redis, which may fail at any moment."""
import time

import pytest
from support import postgres as pg
from support import redis as rd
from support.feed import Feed
from support.provider import Gate, call, text, tools
from support.timing import SLACK, eventually

pytestmark = pytest.mark.skipif(pg.programs() is None or not rd.PROGRAM.exists(),
                                reason="PostgreSQL or Redis is NOT INSTALLED (scripts/deps test): nothing is tested against them")


@pytest.fixture
def redis():
    server = rd.Redis()
    yield server
    server.close()


@pytest.fixture(params=["database", "redis"])
def two(request, make_instance, redis):
    """Two servers that send signals through the database alone, or also through Redis."""
    config = {"redis": {"url": redis.url}} if request.param == "redis" else {}
    return make_instance(**config), make_instance(**config)


def raw(stream):
    return [(e.name, e.seq, e.data) for e in stream.events if e.seq is not None]


def test_a_followed_run_shows_each_event_as_it_comes(two, provider):
    a, b = two
    gates = [Gate() for _ in range(5)]
    provider.plan(text("0", *[part for n, gate in enumerate(gates, 1) for part in (gate, str(n))], " end"))
    stream = a.client.start("c", "hello", on_disconnect="continue")
    stream.until("text_delta")
    elsewhere = b.client.attach("c", "int_001", after=0, gapless=True)
    seen = elsewhere.until("text_delta")["content"]
    for n, gate in enumerate(gates, 1):
        gate.release()
        while str(n) not in seen:
            seen += elsewhere.until("text_delta")["content"]
    stream.finish()
    elsewhere.finish()
    assert raw(elsewhere) == raw(stream)


def test_the_feed_tells_what_happens_at_the_other_server(two, provider):
    a, b = two
    feed = Feed(b.client, "c")
    assert feed.next().name == "open"
    provider.plan(text("hello"))
    a.client.turn("c", "hi")
    assert feed.until("chat_created")["chat_id"] == "c"
    assert feed.until("interaction_started")["interaction_id"] == "int_001"
    steps, ended = [], None
    while not ended or steps[-1] != "INTERACTION_COMPLETE":
        frame = feed.next()
        if frame.name == "chat_event":
            steps.append(frame["event"]["type"])
        else:
            assert frame.name == "interaction_ended", frame
            ended = frame
    assert steps[0] == "INTERACTION_STARTED" and ended["chat"]["head"] == "int_001"
    a.client.request("PATCH", "/chats/c", {"title": "Other"}).expect(200)
    assert feed.until("chat_renamed")["chat"]["title"] == "Other"
    provider.plan(tools(call("write_file", {"path": "out.txt", "content": "text"})), text("written"))
    stream = a.client.start("c", "do it", on_disconnect="continue")
    asked = stream.until("approval_required")
    opened = feed.until("approval_opened")
    assert opened["approval_id"] == asked["approval_id"] and opened["approval"]["approval_id"] == asked["approval_id"]
    assert (opened["chat"]["status"], opened["chat"]["waiting"]) == ("waiting", 1)
    b.client.approve("c", "int_002", asked["approval_id"]).expect(200)
    assert feed.until("approval_closed")["approval_id"] == asked["approval_id"]
    stream.finish()
    assert feed.until("interaction_ended")["chat"]["status"] == "idle"
    a.client.request("DELETE", "/chats/c").expect(200)
    assert feed.until("chat_deleted").data == {"chat_id": "c", "chat": None}
    feed.close()


def test_a_run_continues_while_a_client_listens_at_the_other_server(make_instance, provider):
    a, b = make_instance(disconnect_grace_s=0.2), make_instance()
    gate, rest = Gate(), Gate()
    provider.plan(text("half", gate, " more", rest, " end"))
    stream = a.client.start("c", "hello", on_disconnect="cancel")
    stream.until("text_delta")
    elsewhere = b.client.attach("c", "int_001", after=0)
    elsewhere.until("text_delta")
    stream.close()
    begin = time.monotonic()
    while time.monotonic() < begin + 3:  # many times the grace period
        assert b.client.interaction("c", "int_001")["status"] == "RUNNING"
    gate.release()
    assert "more" in elsewhere.until("text_delta")["content"]
    elsewhere.close()
    eventually(lambda: b.client.interaction("c", "int_001")["status"] == "CANCELLED", "nobody listens any more", limit=20 * SLACK)
    rest.release()


def test_a_message_queued_here_is_next_when_the_run_there_has_ended(two, provider):
    a, b = two
    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    stream = a.client.start("c", "hello", on_disconnect="continue")
    stream.until("text_delta")
    provider.plan(text("next"))
    queued = b.client.start("c", "and then", if_running="queue", on_disconnect="continue")
    eventually(lambda: len(b.client.get("/chats/c/queue").json["queue"]) == 1, "it waits")
    gate.release()
    stream.finish()
    queued.finish()
    history = a.client.history("c")["interactions"]
    assert [(i["user_message"], i["parent_id"]) for i in history] == [("hello", None), ("and then", "int_001")]


def test_redis_may_go_and_come_back(make_instance, provider, redis):
    config = {"redis": {"url": redis.url}}
    a, b = make_instance(**config), make_instance(**config)
    gates = [Gate() for _ in range(6)]
    provider.plan(text("0", *[part for n, gate in enumerate(gates, 1) for part in (gate, str(n))], " end"))
    stream = a.client.start("c", "hello", on_disconnect="continue")
    stream.until("text_delta")
    elsewhere = b.client.attach("c", "int_001", after=0, gapless=True)
    seen = elsewhere.until("text_delta")["content"]
    for n, (gate, fault) in enumerate(zip(gates, [redis.kill, redis.start, lambda: redis.command("flushall"), redis.freeze, redis.thaw, redis.kill]), 1):
        fault()
        gate.release()
        while str(n) not in seen:
            seen += elsewhere.until("text_delta")["content"]
    stream.finish()
    elsewhere.finish()
    assert raw(elsewhere) == raw(stream)


def test_redis_hears_no_word_of_a_chat(make_instance, provider, redis):
    config = {"redis": {"url": redis.url}}
    a, b = make_instance(**config), make_instance(**config)
    monitor = redis.monitor()
    gate = Gate()
    provider.plan(tools(call("write_file", {"path": "canary-path.txt", "content": "canary-text"})), text("half canary-answer", gate, " whole"))
    stream = a.client.start("c", "canary-message", on_disconnect="continue")
    asked = stream.until("approval_required")
    elsewhere = b.client.attach("c", "int_001", after=0)
    elsewhere.until("approval_required")
    b.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    elsewhere.until("text_delta")
    gate.release()
    stream.finish()
    elsewhere.finish()
    heard = monitor.stop()
    assert b"PUBLISH" in heard and b"record " in heard, heard[:2000]
    assert b"canary" not in heard
    assert redis.command("dbsize").strip() == "0", "Redis stores nothing"
