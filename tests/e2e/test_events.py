"""Attaching again: recorded events first, then live ones."""
import pytest
from support.provider import Gate, call, text, tools


@pytest.fixture
def finished(client, provider):
    provider.plan(tools(call("echo", {"text": "x"}), say="first"), text("done"))
    return client.turn("c", "hello")


def test_a_running_interaction_replays_then_goes_live(client, provider):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    stream = client.start("c", "hello")
    stream.until("text_delta")
    second = client.attach("c", "int_001", gapless=True)
    opened = second.next()
    assert opened.name == "stream_open" and opened["status"] == "RUNNING"
    assert (opened["first_seq"], opened["last_seq"]) == (1, stream.events[-1].seq)
    replayed = [second.next() for _ in stream.events]
    assert [e.data for e in replayed] == [e.data for e in stream.events]
    assert second.next().name == "stream_live"
    gate.release()
    stream.finish()
    second.finish()
    assert [e.data for e in second.events] == [e.data for e in stream.events]


def test_any_number_of_listeners_see_the_same(client, provider):
    gate = Gate()
    provider.plan(text("one ", gate, *["word "] * 500))
    stream = client.start("c", "hello")
    stream.until("text_delta")
    others = [client.attach("c", "int_001", gapless=True) for _ in range(20)]
    gate.release()
    stream.finish()
    for other in others:
        other.finish()
        assert [e.data for e in other.events] == [e.data for e in stream.events]


def test_a_finished_one_is_replayed_from_its_file_and_ends(client, finished):
    again = client.attach("c", "int_001")
    opened = again.next()
    assert opened.name == "stream_open" and opened["status"] == "COMPLETED" and opened["pending_approvals"] == []
    again.finish()
    durable = [e.data for e in finished.events if not e.name.endswith("_delta")]
    recorded = [e.data for e in again.events if not e.name.endswith("_delta")]
    assert [e for e in recorded if e["type"] not in ("INTERACTION_STARTED", "INTERACTION_COMPLETE")] == [
        e for e in durable if e["type"] not in ("INTERACTION_STARTED", "INTERACTION_COMPLETE")]
    assert recorded[-1]["type"] == "INTERACTION_COMPLETE"


def test_after_a_restart_it_is_replayed_too(make_server, provider, make_home):
    home = make_home()
    first = make_server(provider, home=home)
    provider.plan(tools(call("echo", {"text": "x"})), text("done"))
    live = first.client.turn("c", "hello")
    first.stop()
    second = make_server(provider, home=home)
    again = second.client.attach("c", "int_001")
    again.finish()
    kept = ("tool_call", "tool_result", "answer", "usage")
    assert [e.data for e in again.events if e.name in kept] == [e.data for e in live.events if e.name in kept]


@pytest.mark.parametrize("how", ["header", "query"])
def test_only_what_is_new_comes(client, finished, how):
    middle = finished.one("tool_result").seq
    again = client.attach("c", "int_001", **({"last_event_id": middle} if how == "header" else {"after": middle}))
    again.finish()
    assert again.events[0].seq > middle
    assert [e.name for e in again.events if not e.name.endswith("_delta")][-2:] == [
        e.name for e in finished.events if not e.name.endswith("_delta")][-2:]


def test_nothing_new_on_a_finished_one_is_204(client, finished):
    last = finished.events[-1].seq
    answer = client.get("/chats/c/interactions/int_001/events", headers={"Accept": "text/event-stream", "Last-Event-ID": str(last)})
    assert answer.status == 204 and answer.body == b""


@pytest.mark.parametrize("cursor", ["-1", "x", "1.5", "", "99999999999999999999", "0x1", " 1x"])
def test_malformed_cursors_are_400(client, finished, cursor):
    from urllib.parse import quote
    client.get(f"/chats/c/interactions/int_001/events?after_seq={quote(cursor)}").error(400)
    if cursor:
        client.get("/chats/c/interactions/int_001/events", headers={"Accept": "text/event-stream", "Last-Event-ID": cursor}).error(400)


def test_a_cursor_ahead_is_400(client, finished):
    ahead = finished.events[-1].seq + 1000
    client.get("/chats/c/interactions/int_001/events", headers={"Accept": "text/event-stream", "Last-Event-ID": str(ahead)}).error(400)
    client.get(f"/chats/c/interactions/int_001/events?after_seq={ahead}").error(400)


def test_unknown_ones_are_404(client, finished):
    client.get("/chats/c/interactions/int_002/events").error(404)
    client.get("/chats/nobody/interactions/int_001/events", headers={"Accept": "text/event-stream"}).error(404)


def test_without_the_accept_header_it_is_a_json_page(client, finished):
    page = client.get("/chats/c/interactions/int_001/events").expect(200, "events_page").json
    assert page["events"][-1]["type"] == "INTERACTION_COMPLETE" or page["events"][-1]["type"] == "ANSWER" or page["events"]
    numbers = [e["seq"] for e in page["events"]]
    assert numbers == sorted(numbers)
    assert page["next_seq"] >= numbers[-1]


def test_pages_cover_everything_once(client, finished):
    whole = client.get("/chats/c/interactions/int_001/events").json["events"]
    collected, after = [], 0
    for _ in range(100):
        page = client.get(f"/chats/c/interactions/int_001/events?after_seq={after}&limit=2").expect(200, "events_page").json
        if not page["events"]:
            break
        assert len(page["events"]) <= 2
        collected += page["events"]
        after = page["events"][-1]["seq"]
    assert collected == whole


def test_a_pending_approval_is_shown_on_attaching(client, provider):
    provider.plan(tools(call("run_shell", {"command": "true"})))
    stream = client.start("c", "go")
    asked = stream.until("approval_required")
    second = client.attach("c", "int_001")
    opened = second.next()
    assert opened["status"] == "WAITING_APPROVAL"
    assert [p["approval_id"] for p in opened["pending_approvals"]] == [asked["approval_id"]]
    client.cancel("c", "int_001")
    stream.finish("CANCELLED")
    second.finish("CANCELLED")


def test_the_content_location_is_where_to_attach(client, provider):
    provider.plan(text("x"))
    stream = client.start("c", "hello")
    location = stream.headers["Content-Location"]
    stream.finish()
    client.get(location).expect(200, "events_page")
