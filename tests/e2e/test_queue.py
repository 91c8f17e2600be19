"""if_running: a message that waits for its turn, or that interrupts the run."""
import json
import threading
import time

import pytest
from support import schemas
from support.provider import Gate, call, text, tools
from support.timing import SOON


def wait_until(condition, what):
    deadline = time.monotonic() + SOON
    while not (value := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return value


def queue(client, chat="c"):
    return client.get(f"/chats/{chat}/queue").expect(200, "queue").json["queue"]


def messages(client, chat="c"):
    return [(i["user_message"], i["status"]) for i in client.history(chat)["interactions"]]


def busy(client, provider):
    """Starts a run that continues until its gate is opened: (gate, stream)."""
    gate = Gate()
    provider.plan(text("a1", gate))
    stream = client.start("c", "q1")
    stream.until("text_delta")
    return gate, stream


def enqueue(client, message, **more):
    """Queues a message. Returns its stream and its id in the queue."""
    stream = client.start("c", message, if_running="queue", **more)
    assert "Content-Location" not in stream.headers
    waiting = wait_until(lambda: next((m for m in queue(client) if m["user_message"] == message), None), "it is not in the queue")
    return stream, waiting["id"]


def test_messages_wait_and_run_in_order(client, provider):
    gate, first = busy(client, provider)
    provider.plan(text("a2"), text("a3"))
    second, id2 = enqueue(client, "q2")
    third, id3 = enqueue(client, "q3")
    assert [m["id"] for m in queue(client)] == [id2, id3]
    gate.release()
    first.finish()
    second.finish()
    third.finish()
    assert second.frames[0].name == "queued" and second.frames[0]["id"] == id2
    assert messages(client) == [("q1", "COMPLETED"), ("q2", "COMPLETED"), ("q3", "COMPLETED")]
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "q2", "a2", "q3"]
    assert queue(client) == []


def test_without_a_stream_it_waits_likewise(client, provider):
    gate, first = busy(client, provider)
    provider.plan(text("a2"))
    answers = []
    body = {"user_message": "q2", "if_running": "queue", "stream": False}
    waiting = threading.Thread(target=lambda: answers.append(client.post("/chats/c/interactions", body)))
    waiting.start()
    wait_until(lambda: queue(client), "it is not in the queue")
    gate.release()
    first.finish()
    waiting.join()
    assert answers[0].expect(200, "interaction").json["id"] == "int_002"


def test_nothing_to_wait_for(client, provider):
    for choice in ("queue", "cancel"):
        provider.plan(text("a"))
        stream = client.turn("c", "q", if_running=choice)
        assert stream.headers["Content-Location"].endswith("/events") and not stream.frames


def test_a_waiting_message_can_be_changed_and_removed(server, provider):
    client = server.client
    gate, first = busy(client, provider)
    second, id2 = enqueue(client, "q2")
    third, id3 = enqueue(client, "q3")
    changed = client.request("PATCH", f"/chats/c/queue/{id3}", {"user_message": "better"}).expect(200, "queue_entry").json
    assert (changed["id"], changed["user_message"]) == (id3, "better")
    client.request("DELETE", f"/chats/c/queue/{id2}").expect(200, "queue_removed")
    while second.next():
        pass
    assert [(e.name, e["code"]) for e in second.events] == [("error", "dequeued")]
    client.request("DELETE", f"/chats/c/queue/{id2}").error(404)
    client.request("PATCH", f"/chats/c/queue/{id2}", {"user_message": "x"}).error(404)
    client.request("PATCH", f"/chats/c/queue/{id3}", {"user_message": ""}).error(400)
    client.get("/chats/nobody/queue").error(404)
    assert not server.home.find_text("better"), "queued messages are sealed"
    provider.plan(text("a2"))
    gate.release()
    first.finish()
    third.finish()
    assert [m for m, _ in messages(client)] == ["q1", "better"]
    client.request("DELETE", f"/chats/c/queue/{id3}").error(404)
    assert not (server.home.data / "c" / "queue.json").exists()


def test_removed_without_a_stream_is_410(client, provider):
    gate, first = busy(client, provider)
    answers = []
    body = {"user_message": "q2", "if_running": "queue", "stream": False}
    waiting = threading.Thread(target=lambda: answers.append(client.post("/chats/c/interactions", body)))
    waiting.start()
    entry = wait_until(lambda: queue(client), "it is not in the queue")[0]
    client.request("DELETE", f"/chats/c/queue/{entry['id']}").expect(200)
    waiting.join()
    answers[0].error(410, "dequeued")
    gate.release()
    first.finish()


def test_its_client_goes(client, provider):
    gate, first = busy(client, provider)
    second, _ = enqueue(client, "dropped")
    third, _ = enqueue(client, "kept", on_disconnect="continue")
    second.close()
    third.close()
    wait_until(lambda: [m["user_message"] for m in queue(client)] == ["kept"], "the first is still there")
    provider.plan(text("a2"))
    gate.release()
    first.finish()
    wait_until(lambda: messages(client) == [("q1", "COMPLETED"), ("kept", "COMPLETED")], "it did not run")


def test_a_pending_approval_is_waited_for(client, provider):
    provider.plan(tools(call("write_file", {"path": "x.txt", "content": "1"}, "w")), text("done"), text("a2"))
    first = client.start("c", "q1")
    asked = first.until("approval_required")
    second, _ = enqueue(client, "q2")
    client.approve("c", "int_001", asked["approval_id"]).expect(200)
    first.finish()
    second.finish()
    assert messages(client) == [("q1", "COMPLETED"), ("q2", "COMPLETED")]


def test_cancel_takes_the_place_of_what_runs(client, provider):
    gate, first = busy(client, provider)
    waiting, _ = enqueue(client, "later")
    provider.plan(text("a2"), text("a3"))
    now = client.start("c", "now", if_running="cancel")
    now.finish()
    first.finish("CANCELLED")
    assert first.one("cancelled")["reason"] == "replaced"
    waiting.finish()
    assert messages(client) == [("q1", "CANCELLED"), ("now", "COMPLETED"), ("later", "COMPLETED")]
    gate.wait_left()


def test_an_edit_may_cancel_and_not_queue(client, provider):
    gate, first = busy(client, provider)
    client.post("/chats/c/interactions/int_001/edit", {"new_user_message": "x", "if_running": "queue"}).error(400)
    client.post("/chats/c/interactions/int_009/edit", {"new_user_message": "x", "if_running": "cancel"}).error(404)
    provider.plan(text("b"))
    edit = client.edit("c", "int_001", "better", if_running="cancel")
    edit.finish()
    first.finish("CANCELLED")
    assert client.interaction("c", "int_002")["edited_from"] == "int_001"
    assert messages(client) == [("better", "COMPLETED")]


def test_there_is_a_limit(client, provider):
    gate, first = busy(client, provider)
    streams = [client.start("c", f"m{n}", if_running="queue", on_disconnect="continue") for n in range(100)]
    client.post("/chats/c/interactions", {"user_message": "one more", "if_running": "queue"}).error(429, "queue_full")
    assert len(queue(client)) == 100
    client.request("DELETE", "/chats/c").expect(200)
    for stream in streams:
        while stream.next():
            pass
        assert [(e.name, e["code"]) for e in stream.events] == [("error", "dequeued")]
    first.finish("CANCELLED")
    client.get("/chats/c/queue").error(404)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_what_waits_runs_after_a_restart(make_server, make_home, provider, end):
    home = make_home()
    server = make_server(provider, home=home)
    _, first = busy(server.client, provider)
    second, _ = enqueue(server.client, "q2")
    third, _ = enqueue(server.client, "q3", on_disconnect="continue")
    if end == "stop":
        server.stop()
        events = []
        while event := second.next():
            events.append(event)
        assert [e["code"] for e in events if e.name == "error"] == ["stopping"]
    else:
        server.kill()
    provider.plan(text("a2"), text("a3"))
    again = make_server(provider, home=home)
    status = {"stop": "CANCELLED", "kill": "FAILED"}[end]
    wait_until(lambda: messages(again.client) == [("q1", status), ("q2", "COMPLETED"), ("q3", "COMPLETED")], "they did not run")
    assert queue(again.client) == []
    for stream in (first, second, third):
        stream.close()


def test_what_has_begun_does_not_begin_again(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    gate, first = busy(server.client, provider)
    other = Gate()
    provider.plan(text("half", other))
    second, _ = enqueue(server.client, "q2")
    gate.release()
    first.finish()
    second.until("text_delta")
    server.kill()
    second.close()
    again = make_server(provider, home=home)
    assert messages(again.client) == [("q1", "COMPLETED"), ("q2", "FAILED")]
    provider.plan(text("a3"))
    again.client.turn("c", "q3")
    assert [m for m, _ in messages(again.client)] == ["q1", "q2", "q3"]


def test_the_file_is_sealed_and_verified(server, provider):
    from support.server import BINARY, open_sealed
    import subprocess
    client = server.client
    gate, first = busy(client, provider)
    _, id2 = enqueue(client, "q2")
    file = server.home.data / "c" / "queue.json"
    stored = open_sealed(file, server.home.keys)
    schemas.check("queue_file", stored)
    assert [m["id"] for m in stored["messages"]] == [id2]

    def verify():
        done = subprocess.run([str(BINARY), "verify", "--json", "--data-dir", str(server.home.data)], env=server.home.environment(), capture_output=True,
                              text=True, check=False)
        return [(p["file"], p["kind"]) for p in json.loads(done.stdout)["problems"]]

    assert verify() == []
    whole = file.read_bytes()
    damaged = bytearray(whole)
    damaged[-30] ^= 1
    file.write_bytes(damaged)
    assert verify() == [("c/queue.json", "auth")]
    file.write_bytes(whole)
    provider.plan(text("a2"))
    gate.release()
    first.finish()


def test_a_chat_that_cannot_be_deleted_keeps_its_queue(make_server, provider):
    server = make_server(provider)
    server.check_files = False
    client, gate = server.client, Gate()
    provider.plan(text("half", gate))
    first = client.start("c", "q1")
    first.until("text_delta")
    second, _ = enqueue(client, "q2")
    trash = server.home.data / ".trash"
    trash.write_text("in the way")
    provider.plan(text("a2"))
    refused = client.request("DELETE", "/chats/c")
    assert refused.status >= 400 and refused.json["error"]["code"] != "busy"
    first.finish("CANCELLED")
    second.finish()
    trash.unlink()
    client.request("DELETE", "/chats/c").expect(200)
    client.get("/chats/c").error(404)
