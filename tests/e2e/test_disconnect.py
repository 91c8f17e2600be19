"""Clients that disconnect."""
import subprocess

from support.provider import Gate, call, text, tools
from support.timing import SLACK, SOON, eventually


def status_of(client, chat, interaction="int_001"):
    return client.interaction(chat, interaction)["status"]


def start_curl(server, chat, body):
    return subprocess.Popen(["curl", "-sSN", "--noproxy", "*", f"http://127.0.0.1:{server.port}/chats/{chat}/interactions", "-H",
                             "Content-Type: application/json", "-d", body], stdout=subprocess.PIPE)


def read_until(process, text_seen):
    seen = b""
    while text_seen not in seen:
        data = process.stdout.read1(1)
        assert data, seen
        seen += data


def test_a_killed_curl_cancels_the_run_and_it_is_saved(server, provider):
    gate = Gate()
    provider.plan(text("half an ", gate))
    process = start_curl(server, "c", '{"user_message":"x"}')
    read_until(process, b"half an ")
    process.kill()
    process.wait()
    gate.wait_left(5 * SLACK)
    eventually(lambda: server.home.checkpoint_file("c", "int_001").exists(), "the checkpoint", 5 * SLACK)
    stored = server.home.checkpoint("c", "int_001")
    assert stored["status"] == "CANCELLED"
    assert [e["reason"] for e in stored["agent_events"] if e["type"] == "CANCELLED"] == ["client_disconnected"]
    assert "half an " in [e.get("content") for e in stored["agent_events"]]
    server.client.attach("c", "int_001").finish("CANCELLED")
    provider.plan(text("back"))
    server.client.turn("c", "again")


def test_the_default_grace_is_two_seconds(make_server, provider):
    server = make_server(provider, config={"disconnect_grace_s": 2})
    import time
    gate = Gate()
    provider.plan(text("half", gate))
    stream = server.client.start("c", "x")
    stream.until("text_delta")
    stream.close()
    gone = time.monotonic()
    gate.wait_left(10 * SLACK)
    assert 1.5 < time.monotonic() - gone < 4 * SLACK
    eventually(lambda: status_of(server.client, "c") == "CANCELLED", "it is cancelled")


def test_coming_back_within_the_grace_keeps_it_running(make_server, provider):
    server = make_server(provider, config={"disconnect_grace_s": 3600})
    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    stream = server.client.start("c", "x")
    seen = stream.until("text_delta").seq
    stream.close()
    again = server.client.attach("c", "int_001", last_event_id=seen, gapless=True)
    gate.release()
    again.finish()
    assert again.one("answer")["content"] == "half whole"


def test_another_listener_keeps_it_running(server, provider):
    gate, idle = Gate(), Gate()
    provider.plan(text("half", gate, " whole"))
    stream = server.client.start("c", "x")
    stream.until("text_delta")
    second = server.client.attach("c", "int_001")
    stream.close()
    # A run without listeners that was left later: when it is cancelled, the grace period of the first would be over, too.
    provider.plan(text("x", idle))
    other = server.client.start("other", "x")
    other.until("text_delta")
    other.close()
    idle.wait_left()
    assert status_of(server.client, "c") == "RUNNING"
    gate.release()
    second.finish()


def test_on_disconnect_continue_goes_on(server, provider):
    gate, idle = Gate(), Gate()
    provider.plan(text("half", gate, " whole"))
    stream = server.client.start("c", "x", on_disconnect="continue")
    stream.until("text_delta")
    stream.close()
    provider.plan(text("x", idle))
    other = server.client.start("other", "x")
    other.until("text_delta")
    other.close()
    idle.wait_left()
    assert status_of(server.client, "c") == "RUNNING"
    gate.release()
    eventually(lambda: status_of(server.client, "c") == "COMPLETED", "it completes")
    assert server.home.checkpoint("c", "int_001")["final_agent_state"]["messages"][-1]["content"] == "half whole"


def test_a_pending_approval_stays_and_is_answered_from_elsewhere(server, provider):
    provider.plan(tools(call("write_file", {"path": "late.txt", "content": "x"})))
    process = start_curl(server, "c", '{"user_message":"x"}')
    read_until(process, b"approval_required")
    process.kill()
    process.wait()
    idle = Gate()
    provider.plan(text("x", idle))
    other = server.client.start("other", "x")
    other.until("text_delta")
    other.close()
    idle.wait_left()
    listed = server.client.get("/approvals").expect(200, "approvals").json["approvals"]
    assert [a["chat_id"] for a in listed] == ["c"] and status_of(server.client, "c") == "WAITING_APPROVAL"
    # The client that answers can follow all later events.
    provider.plan(text("done"))
    follow = server.client.stream("POST", "/chats/c/interactions/int_001/approve", {"approval_id": listed[0]["approval_id"], "approved": True},
                                  headers={"Accept": "text/event-stream"}, first_seq=1, gapless=False)
    follow.finish()
    assert (server.home.workspace / "late.txt").exists()


def test_a_pending_approval_answered_without_listening_still_runs_the_tool(make_server, provider):
    server = make_server(provider, config={"disconnect_grace_s": 2})
    provider.plan(tools(call("write_file", {"path": "late.txt", "content": "x"})), text("done"))
    stream = server.client.start("c", "x")
    asked = stream.until("approval_required")
    stream.close()
    server.client.post(f"/approvals/{asked['approval_id']}", {"approved": True}).expect(200)
    eventually(lambda: status_of(server.client, "c") == "COMPLETED", "it completes")
    assert (server.home.workspace / "late.txt").exists()


def test_a_non_streaming_client_that_goes_away_counts_too(server, provider):
    import socket
    gate = Gate()
    provider.plan(text("half", gate))
    body = b'{"user_message":"x","stream":false}'
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST /chats/c/interactions HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                           % (server.port, len(body), body))
        gate.wait_reached()
    gate.wait_left(5 * SLACK)
    eventually(lambda: status_of(server.client, "c") == "CANCELLED", "it is cancelled")


def test_a_stalled_reader_does_not_hold_up_the_run_nor_memory(make_server, provider):
    """The run's log and text are in memory anyway, a few times over while it is saved. Bytes that a reader has not taken add little."""
    import socket
    size_kb = 6 * 1024
    big = ["y" * 4096] * (size_kb // 4)
    server = make_server(provider)
    before = server.memory_kb()
    provider.plan(text(*big))
    server.client.turn("c", "x", on_disconnect="continue")
    with_a_reader = server.peak_memory_kb() - before
    server = make_server(provider)
    before = server.memory_kb()
    provider.plan(text(*big))
    body = b'{"user_message":"x","on_disconnect":"continue"}'
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST /chats/c/interactions HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                           % (server.port, len(body), body))
        eventually(lambda: server.home.checkpoint_file("c", "int_001").exists(), "it completes although nobody reads", SOON * 2)
        assert server.peak_memory_kb() - before < with_a_reader + 4 * size_kb
    assert server.home.checkpoint("c", "int_001")["status"] == "COMPLETED"


def test_an_answer_within_the_grace_period_keeps_it_running(make_server, provider):
    """Nobody listens any more, but somebody has just answered, so the run continues."""
    server = make_server(provider, config={"disconnect_grace_s": 1})
    provider.plan(tools(call("run_shell", {"command": "sleep 2; echo done"})), text("slept"))
    stream = server.client.start("c", "x")
    asked = stream.until("approval_required")
    stream.close()
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    eventually(lambda: status_of(server.client, "c") == "COMPLETED", "it completes", 10 * SLACK)


def test_looking_is_not_listening(make_server, provider):
    """A run that continues without listeners is not cancelled after a client has read its events once."""
    server = make_server(provider, config={"disconnect_grace_s": 0.2})
    provider.plan(tools(call("run_shell", {"command": "sleep 1.5; echo done"})), text("slept"))
    stream = server.client.start("c", "x")
    asked = stream.until("approval_required")
    stream.close()
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    server.client.get("/chats/c/interactions/int_001/events").expect(200)
    server.client.get("/chats/c/interactions/int_001/events?after_seq=999", headers={"Accept": "text/event-stream"}).error(400)
    again = server.client.post("/chats/c/interactions/int_001/approve", {"approval_id": asked["approval_id"], "approved": True},
                               headers={"Accept": "text/event-stream"})
    again.error(400)
    eventually(lambda: status_of(server.client, "c") == "COMPLETED", "it completes", 10 * SLACK)


def test_an_interaction_that_could_not_be_saved_is_still_shown(server, provider):
    server.check_files = False
    provider.plan(tools(call("write_file", {"path": "a", "content": "1"})), text("written"))
    stream = server.client.start("c", "x")
    asked = stream.until("approval_required")
    away = server.home.data / "away"
    (server.home.data / "c").rename(away)
    (server.home.data / "c").write_text("in the way")
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.finish("FAILED")
    assert stream.all("error")[-1]["code"] in ("save_failed", "io")
    assert status_of(server.client, "c") == "FAILED"
    (server.home.data / "c").unlink()
    away.rename(server.home.data / "c")
    provider.plan(text("on"))
    server.client.turn("c", "y")


def test_a_chat_folder_that_was_removed_is_made_again(server, provider):
    import shutil
    server.check_files = False
    provider.plan(tools(call("write_file", {"path": "a", "content": "1"})), text("written"), text("on"))
    stream = server.client.start("c", "x")
    asked = stream.until("approval_required")
    shutil.rmtree(server.home.data / "c")
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.finish()
    server.client.turn("c", "y")
    assert server.home.checkpoint("c", "int_001")["status"] == "COMPLETED"
