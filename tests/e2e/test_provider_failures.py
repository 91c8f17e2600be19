"""Providers that fail: there is an error event, the interaction is FAILED, its state is saved, and the next turn works."""
import json
import os
import signal
import socket
import time

import pytest
from support.provider import CUT, Gate, Reply, call, delta, ending, failure, sse, text, tools
from support.server import API_KEY
from support.timing import halt


def failing_turn(server, provider, *replies, chat="c", code=None):
    """Runs a turn that fails; checks the event, the file, and that the chat continues. Returns the error event."""
    provider.plan(*replies)
    stream = server.client.turn(chat, "hello", "FAILED")
    error = stream.one("error")
    assert stream.names()[-2:] == ["error", "interaction_complete"], stream.names()
    if code:
        codes = code if isinstance(code, tuple) else (code,)
        assert error["code"] in codes, error
    stored = server.home.checkpoint(chat, stream.interaction)
    assert stored["status"] == "FAILED" and stored["error"] == {k: error[k] for k in ("code", "message", "retryable")}
    assert stored["final_agent_state"] is not None
    assert API_KEY not in json.dumps(stored) and API_KEY not in server.log()
    with provider.lock:
        provider._replies.clear()
    provider.plan(text("recovered"))
    server.client.turn(chat, "again")
    assert provider.requests[-1].last == {"role": "user", "content": "again"}
    return error


@pytest.mark.parametrize("status, body, code, retryable", [
    (401, "bad key", "provider_auth", False), (403, "no", "provider_auth", False), (404, "no such model", "provider_not_found", False),
    (429, "slow down", "provider_rate_limited", True), (400, "bad", "provider_bad_request", False), (422, "bad", "provider_bad_request", False),
    (503, "busy", "provider_overloaded", True), (529, "busy", "provider_overloaded", True), (500, "oops", None, True), (302, "away", None, None)])
def test_status_codes(server, provider, status, body, code, retryable):
    error = failing_turn(server, provider, failure(status, body), code=code)
    assert error["code"].startswith("provider_")
    if retryable is not None:
        assert error["retryable"] is retryable


def test_too_long_a_context_is_told_apart(server, provider):
    failing_turn(server, provider, failure(400, "maximum context length is 4096", "context_length_exceeded"), code="provider_context_length")


def test_the_providers_words_are_passed_on_without_the_key(server, provider):
    error = failing_turn(server, provider, failure(401, f"Incorrect API key provided: {API_KEY}. Visit us"))
    assert "Incorrect API key" in error["message"] and API_KEY not in error["message"]


def test_a_huge_error_body_is_cut(server, provider):
    error = failing_turn(server, provider, Reply([b'{"error":{"message":"', *[b"x" * 65536] * 200, b'"}}'], 500, content_type="application/json"))
    assert len(error["message"]) < 2000


@pytest.mark.parametrize("name, reply", [
    ("html with 200", Reply([b"<html><body>Please log in</body></html>"], content_type="text/html")),
    ("html as sse", Reply([b"<html><body>Please log in</body></html>"])),
    ("bad json", Reply([sse("{not json"), *ending()])),
    ("not an object", Reply([sse("[1,2]"), *ending()])),
    ("wrong types", Reply([sse({"choices": "x"}), *ending()])),
    ("deep", Reply([sse('{"choices":' + "[" * 100_000 + "]" * 100_000 + "}")])),
    ("empty", Reply([])),
    ("binary", Reply([bytes(range(256)) * 100])),
    ("cut in text", Reply([delta({"content": "half"}), CUT])),
    ("clean end in text", Reply([delta({"content": "half"})])),
    ("endless line", Reply([b"data: " + b"x" * (1 << 20)] * 1 + [b"x" * (1 << 20)] * 17)),
    ("error object in the stream", Reply([delta({"content": "half"}), sse({"error": {"message": "exploded", "code": 500}})])),
])
def test_nonsense(server, provider, name, reply):
    error = failing_turn(server, provider, reply)
    assert error["code"] == "response_too_large" if name == "endless line" else error["code"].startswith("provider_"), name


def test_half_of_a_tool_call_never_runs(make_server, provider):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    whole = tools(call("run_shell", {"command": "touch ran"}), pieces=4)
    for cut in (CUT, None):
        steps = [s for s in whole.steps[:4]] + ([CUT] if cut else [])
        failing_turn(server, provider, Reply(steps), chat=f"c{bool(cut)}", code="provider_protocol")
    assert not list(server.home.workspace.iterdir())


def test_whole_tool_calls_of_an_answer_that_reached_its_length_run(make_server, provider):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    asked = [delta({"tool_calls": [{"index": 0, **call("echo", {"text": "whole"})}]})]
    provider.plan(Reply(asked + ending("length")), text("done"))
    assert server.client.turn("c", "hello").one("tool_result")["tool_output"] == "whole"
    half = delta({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "run_shell", "arguments": '{"command":"touch'}}]})
    failing_turn(server, provider, Reply(asked + [half] + ending("length")), chat="d", code="provider_output_limit")
    failing_turn(server, provider, Reply(asked + ending("content_filter")), chat="e", code="provider_bad_request")


def test_arguments_that_are_nested_too_deeply_do_not_break_the_chat(server, provider):
    deep = '{"text":' + "[" * 300 + "]" * 300 + "}"
    provider.plan(tools(call("echo", deep)), text("sorry"), text("fine"))
    assert server.client.turn("c", "hello").one("tool_result")["is_error"]
    server.client.turn("c", "again")
    sent = provider.requests[-1].conversation[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) == {"not_valid_json": deep}


def test_what_was_said_before_a_cut_is_kept(server, provider):
    failing_turn(server, provider, Reply([delta({"content": "half a sentence"}), CUT]))
    stored = server.home.checkpoint("c", "int_001")
    assert "half a sentence" in json.dumps(stored["agent_events"])


def test_a_failure_in_a_later_round_keeps_the_tools_results(server, provider):
    provider.plan(tools(call("echo", {"text": "kept"})), failure(500))
    stream = server.client.turn("c", "hello", "FAILED")
    assert stream.one("tool_result")["tool_output"] == "kept"
    provider.plan(text("ok"))
    server.client.turn("c", "again")
    roles = [m["role"] for m in provider.requests[-1].conversation]
    assert roles[:3] == ["user", "assistant", "tool"] and roles[-1] == "user"
    assert provider.requests[-1].conversation[2]["content"] == "kept"


def test_a_provider_that_does_not_listen(make_server):
    from support.provider import Provider
    gone = Provider()
    gone.close()
    server = make_server(gone)
    stream = server.client.turn("c", "hello", "FAILED")
    assert stream.one("error")["code"] == "provider_unreachable" and stream.one("error")["retryable"] is True


def test_a_silent_provider_runs_into_the_idle_limit(make_server, provider):
    server = make_server(provider, config={"provider_idle_timeout_s": 0.3})
    failing_turn(server, provider, text("a", Gate()), code="provider_timeout")
    failing_turn(server, provider, Reply([Gate()]), code="provider_timeout", chat="d")


def test_pings_do_not_hide_a_silent_provider(make_server, provider):
    server = make_server(provider, config={"provider_idle_timeout_s": 0.5})
    failing_turn(server, provider, text("a", Gate(pings=b": ping\n\n")), code="provider_timeout")


def test_empty_pieces_do_not_hide_a_silent_provider(make_server, provider):
    server = make_server(provider, config={"provider_idle_timeout_s": 0.5})
    for number, pings in enumerate([delta({"content": ""}), delta({}), delta({"content": None, "reasoning_details": []})]):
        failing_turn(server, provider, text("a", Gate(pings=pings)), code="provider_timeout", chat=f"c{number}")


def test_what_follows_an_answer_is_not_waited_for_without_end(make_server, provider):
    server = make_server(provider, config={"provider_idle_timeout_s": 0.5})
    gate = Gate(pings=b": ping\n\n")
    provider.plan(Reply([delta({"content": "x"}, "stop"), gate]))
    assert server.client.turn("c", "hello").one("answer")["content"] == "x"
    gate.wait_left()


def test_an_answer_that_came_while_the_process_was_stopped_counts(make_server, provider):
    limit = 0.5
    server = make_server(provider, config={"provider_idle_timeout_s": limit})
    gate = Gate()
    provider.plan(text("a", gate, "b"))
    stream = server.client.start("c", "hello")
    stream.until("text_delta")
    gate.wait_reached()
    halt(server.process.pid)
    gate.release()
    time.sleep(3 * limit)  # on purpose: the limit passes while the process is stopped
    os.kill(server.process.pid, signal.SIGCONT)
    stream.finish()
    assert stream.one("answer")["content"] == "ab"


def test_headers_that_are_too_large(make_server, provider):
    server = make_server(provider, config={"max_retries": 0})
    for number, headers in enumerate([{"X-Long": "x" * 300_000}, {f"X-{i}": "x" * 3000 for i in range(100)}]):
        provider.plan(Reply([text("x").steps[0]], headers=headers))
        error = server.client.turn(f"c{number}", "hello", "FAILED").one("error")
        assert error["code"] == "provider_protocol" and error["message"] == "The model provider's response headers are too large"


@pytest.mark.large
def test_a_provider_that_says_too_much(make_server, provider):
    server = make_server(provider)
    megabyte = "x" * 1_000_000
    for number, piece in enumerate([{"content": megabyte}, {"reasoning_content": megabyte}, {"kept": [megabyte]}]):
        provider.plan(Reply([delta(piece)] * 9 + ending()))
        assert server.client.turn(f"c{number}", "hello", "FAILED").one("error")["code"] == "response_too_large"


@pytest.mark.large
def test_what_an_interaction_may_hold_is_limited(make_server, provider):
    server = make_server(provider)
    long = "x" * 3_500_000
    say = [delta({"content": long}), delta({"content": long})]
    provider.answer_with(lambda request: Reply([*say, delta({"tool_calls": [{"index": 0, **call("echo", {"text": str(len(request.messages))})}]}),
                                                *ending("tool_calls")]))
    stream = server.client.turn("c", "hello", "FAILED")
    # A second error may follow if 32 MiB are not written in time.
    assert stream.all("error")[0]["code"] == "response_too_large" and len(provider.requests) == 5
    server.client.get("/readyz").expect(200)


def test_a_provider_that_accepts_and_says_nothing(make_server):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        from types import SimpleNamespace
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/v1"
        server = make_server(SimpleNamespace(url=url), config={"provider_idle_timeout_s": 0.3})
        assert server.client.turn("c", "hello", "FAILED").one("error")["code"] == "provider_timeout"


def test_failures_of_one_chat_do_not_touch_another(client, provider):
    gate = Gate()
    provider.plan(text("a", gate, "b"))
    good = client.start("good", "hello")
    good.until("text_delta")
    provider.plan(failure(500))
    client.turn("bad", "hello", "FAILED")
    gate.release()
    good.finish()
