"""Model requests that fail for a temporary reason are retried if no part of the answer was shown."""
import email.utils
import socket
import time

import pytest
from support.provider import CUT, Gate, Reply, call, delta, failure, sse, text, tools
from support.timing import SLACK


@pytest.fixture
def server(make_server, provider):
    return make_server(provider, config={"max_retries": 3})


def gaps(provider):
    times = [r.at for r in provider.requests]
    return [b - a for a, b in zip(times, times[1:])]


def test_a_retry_after_in_seconds_is_kept_to(server, provider):
    provider.plan(failure(429, "slow down", headers={"Retry-After": "2"}), text("fine"))
    stream = server.client.turn("c", "hello")
    retry = stream.one("retry")
    assert (retry["attempt"], retry["delay_ms"], retry["code"]) == (1, 2000, "provider_rate_limited") and "slow down" in retry["message"]
    assert stream.names(("text_delta",)) == ["interaction_started", "retry", "answer", "usage", "interaction_complete"]
    assert 2 <= gaps(provider)[0] < 2 + 0.5 * SLACK
    assert provider.requests[0].body == provider.requests[1].body
    stored = server.home.checkpoint("c", "int_001")
    assert [e["type"] for e in stored["agent_events"]] == ["RETRY", "ANSWER", "USAGE"] and stored["status"] == "COMPLETED"
    assert len(stored["final_agent_state"]["messages"]) == 2


def test_a_retry_after_as_a_date(server, provider):
    now = time.time()
    dates = {"Date": email.utils.formatdate(now - 3600, usegmt=True), "Retry-After": email.utils.formatdate(now - 3599, usegmt=True)}
    provider.plan(failure(503, "later", headers=dates), text("fine"))
    assert server.client.turn("c", "hello").one("retry")["delay_ms"] == 1000  # relative to the provider's own clock
    assert 1 <= gaps(provider)[0] < 1 + 0.5 * SLACK


def test_one_that_asks_for_too_long_a_pause_has_refused(server, provider):
    provider.plan(failure(429, "tomorrow", headers={"Retry-After": "121"}))
    stream = server.client.turn("c", "hello", "FAILED")
    assert not stream.all("retry") and stream.one("error")["code"] == "provider_rate_limited" and len(provider.requests) == 1
    assert "tomorrow; it asks to wait 3 min: try again after 20" in stream.one("error")["message"]


def test_pauses_double_and_the_last_failure_is_told(server, provider):
    server.client.get("/healthz")
    provider.plan(failure(503, "one"), failure(500, "two"), Reply([CUT]), failure(529, "four"))
    stream = server.client.turn("c", "hello", "FAILED")
    assert [e["attempt"] for e in stream.all("retry")] == [1, 2, 3]
    assert [e["code"] for e in stream.all("retry")] == ["provider_overloaded", "provider_error", "provider_protocol"]
    for retry, pause, gap in zip(stream.all("retry"), (1, 2, 4), gaps(provider)):
        assert 800 * pause <= retry["delay_ms"] <= 1200 * pause
        assert retry["delay_ms"] / 1000 - 0.002 <= gap < retry["delay_ms"] / 1000 + 0.5 * SLACK
    error = stream.one("error")
    assert error["code"] == "provider_overloaded" and error["retryable"] is True and "four" in error["message"]
    assert len(provider.requests) == 4


@pytest.mark.parametrize("name, reply", [
    ("reset", Reply([CUT])),
    ("cut in thin air", Reply([delta({"role": "assistant"}), CUT])),
    ("clean end", Reply([])),
    ("cut inside a tool's arguments", Reply(tools(call("run_shell", {"command": "touch ran"}), pieces=4).steps[:4] + [CUT])),
    ("error in the stream", Reply([sse({"error": {"message": "exploded", "code": 503}})])),
])
def test_what_had_not_begun_to_show_is_asked_for_again(make_server, provider, name, reply):
    server = make_server(provider, config={"max_retries": 3, "approval_mode": "approve_all"})
    provider.plan(reply, text("fine"))
    stream = server.client.turn("c", "hello")
    assert len(stream.all("retry")) == 1 and stream.one("answer")["content"] == "fine", name
    assert not list(server.home.workspace.iterdir())


def test_a_silent_provider_is_asked_again(make_server, provider):
    server = make_server(provider, config={"max_retries": 1, "provider_idle_timeout_s": 0.3})
    provider.plan(Reply([Gate()]), text("fine"))
    assert server.client.turn("c", "hello").one("retry")["code"] == "provider_timeout"


def test_a_provider_that_comes_back(make_server):
    """The provider refuses the first connections."""
    from support.provider import Provider
    from types import SimpleNamespace
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: no other program gets the port, and connections are refused
        port = taken.getsockname()[1]
        server = make_server(SimpleNamespace(url=f"http://127.0.0.1:{port}/v1"), config={"max_retries": 2})
        stream = server.client.start("c", "hello")
        retry = stream.until("retry")
        assert retry["code"] == "provider_unreachable"
    late = Provider(port)
    try:
        late.plan(text("here I am"))
        stream.finish()
        assert stream.one("answer")["content"] == "here I am"
    finally:
        late.close()


@pytest.mark.parametrize("name, reply", [
    ("text", Reply([delta({"content": "half"}), CUT])),
    ("thinking", Reply([delta({"reasoning_content": "hm"}), CUT])),
    ("error", Reply([delta({"content": "half"}), sse({"error": {"message": "exploded", "code": 500}})])),
])
def test_what_has_been_shown_is_not_asked_for_again(server, provider, name, reply):
    provider.plan(reply)
    stream = server.client.turn("c", "hello", "FAILED")
    assert not stream.all("retry") and len(provider.requests) == 1, name


@pytest.mark.parametrize("reply", [failure(400), failure(401), failure(404), failure(400, "maximum context length is 5"),
                                   failure(429, code="insufficient_quota"), Reply([b"<html>"], content_type="text/html"), Reply([sse("{garbage")])])
def test_what_will_not_pass_is_not_tried_again(server, provider, reply):
    provider.plan(reply)
    stream = server.client.turn("c", "hello", "FAILED")
    assert not stream.all("retry") and len(provider.requests) == 1 and stream.one("error")["retryable"] is False


def test_each_round_has_its_own_retries(make_server, provider):
    server = make_server(provider, config={"max_retries": 1})
    busy = failure(503, headers={"Retry-After": "0.05"})
    provider.plan(busy, tools(call("echo", {"text": "a"})), busy, text("done"))
    stream = server.client.turn("c", "hello")
    assert [(e["round_index"], e["attempt"]) for e in stream.all("retry")] == [(0, 1), (1, 1)]
    assert len(stream.all("tool_call")) == 1


def test_cancel_during_a_pause(server, provider, figure):
    seconds = []
    for number in range(5):
        provider.plan(failure(429, headers={"Retry-After": "60"}))
        stream = server.client.start(f"c{number}", "hello")
        assert stream.until("retry")["delay_ms"] == 60_000
        began = time.monotonic()
        server.client.cancel(f"c{number}", stream.interaction).expect(200)
        seconds.append(stream.until("cancelled").at - began)
        stream.finish("CANCELLED")
    figure(f"cancel during a pause: {1000 * sorted(seconds)[2]:.1f} ms")
    assert sorted(seconds)[2] < 0.05 * SLACK
    provider.plan(text("ok"))
    server.client.turn("c0", "again")
    assert [m["role"] for m in provider.requests[-1].conversation] == ["user", "user"]


def test_stopping_the_server_and_leaving_clients_end_a_pause(server, provider):
    provider.plan(*[failure(429, headers={"Retry-After": "100"})] * 2)
    left = server.client.start("left", "hello")
    left.until("retry")
    left.close()
    stays = server.client.start("stays", "hello")
    stays.until("retry")
    assert server.stop() < 3 * SLACK
    assert stays.finish("CANCELLED")[-2]["reason"] == "server_stopping"


def test_no_thread_waits(server, provider):
    def threads():
        for line in open(f"/proc/{server.process.pid}/status"):
            if line.startswith("Threads:"):
                return int(line.split()[1])

    provider.answer_with(lambda _: failure(429, headers={"Retry-After": "100"}))
    streams = [server.client.start(f"c{n}", "hello") for n in range(40)]
    for stream in streams:
        stream.until("retry")
    assert threads() < 25
    for stream in streams:
        server.client.cancel(f"c{streams.index(stream)}", stream.interaction)
        stream.finish("CANCELLED")


def test_a_pause_that_the_server_did_not_survive(make_server, provider, make_home):
    home = make_home()
    server = make_server(provider, home, config={"max_retries": 3})
    provider.plan(failure(429, headers={"Retry-After": "100"}))
    server.client.start("c", "hello", on_disconnect="continue").until("retry")
    server.kill()
    server = make_server(provider, home, config={"max_retries": 3})
    stored = server.client.interaction("c", "int_001")
    assert [e["type"] for e in stored["agent_events"]] == ["RETRY", "ERROR"] and stored["error"]["code"] == "interrupted"
    provider.plan(text("fine"))
    server.client.stream("POST", "/chats/c/interactions/int_001/resume").finish()
    assert provider.requests[1].body == provider.requests[0].body
