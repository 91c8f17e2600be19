"""A provider that speaks Anthropic's Messages API: thinking that is sent back unchanged, tools, cache marks, failures."""
import json

import pytest
from support.anthropic import ending, event, failure, message, redacted, say, start, thinking, use
from support.provider import CUT, Gate, Reply, call, text, tools
from support.server import API_KEY
from support.timing import eventually

SIGNATURE = "EqQBCgIYAhIkM2Q+/w==" * 9
THOUGHTS = thinking("Let me see. \"Two\" é\n\t\\u2603 and \u2603 and \U0001f600", SIGNATURE)


@pytest.fixture
def anthropic(make_server, provider):
    def make(home=None, **config):
        providers = {"claude": {"type": "anthropic", "base_url": provider.url.removesuffix("/v1"), "api_key": "${TEST_API_KEY}"},
                     "other": {"type": "openai", "base_url": provider.url, "api_key": "${TEST_API_KEY}"}}
        return make_server(home=home, config={"providers": providers, "model": "claude/scripted", **config})

    return make


def unmarked(value):
    """The value without its cache marks, which move from request to request."""
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if isinstance(value, dict):
        return {k: unmarked(v) for k, v in value.items() if k != "cache_control"}
    return value


def test_an_answer(anthropic, provider):
    server = anthropic()
    provider.plan(message(THOUGHTS, say("Hello there")))
    stream = server.client.turn("c", "hi")
    assert "".join(e["content"] for e in stream.all("text_delta")) == stream.one("answer")["content"] == "Hello there"
    assert "".join(e["content"] for e in stream.all("thinking_delta")) == stream.one("thinking")["content"] == THOUGHTS["thinking"]
    request = provider.requests[0]
    assert request.path == "/v1/messages" and request.headers["x-api-key"] == API_KEY
    assert request.headers["anthropic-version"] == "2023-06-01" and "Authorization" not in request.headers
    assert request.body["model"] == "scripted" and request.body["stream"] is True and "thinking" not in request.body
    assert unmarked(request.body["messages"]) == [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]
    assert {t["name"] for t in request.body["tools"]} >= {"echo", "calculator", "run_shell"}


def test_thinking_comes_back_unchanged_with_the_tools_result_after_a_restart_and_after_an_edit(anthropic, provider, make_home):
    home = make_home()
    server = anthropic(home)
    hidden = redacted("EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpPkNRj2YfWXGmKDxH4mPnZ5sQ7vB9URj2")
    more = thinking("So it is 4.", "second" + SIGNATURE)
    first = [THOUGHTS, hidden, say("I calculate."), use("calculator", {"expression": "2+2"})]
    provider.plan(message(*first), message(more, say("It is "), say("4.")))
    stream = server.client.turn("c", "what is 2+2?")
    assert stream.names(("thinking_delta", "text_delta", "interaction_started")) == [
        "thinking", "message", "tool_call", "tool_result", "usage", "thinking", "answer", "usage", "interaction_complete"]
    assert stream.one("answer")["content"] == "It is 4."
    second = unmarked(provider.requests[1].body["messages"])
    assert second[1] == {"role": "assistant", "content": first}
    assert second[2] == {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "4"}]}

    stored = home.checkpoint("c", "int_001")["final_agent_state"]["messages"]
    assert stored[1]["provider_extras"]["claude"]["blocks"][:2] == [THOUGHTS, hidden]
    server.stop()
    server = anthropic(home)
    provider.plan(message(say("Welcome.")))
    server.client.turn("c", "thanks")
    third = unmarked(provider.requests[2].body["messages"])
    assert third[:3] == second
    assert third[3] == {"role": "assistant", "content": [more, say("It is "), say("4.")]}
    assert third[4] == {"role": "user", "content": [{"type": "text", "text": "thanks"}]}

    provider.plan(message(say("Really welcome.")))
    server.client.edit("c", "int_002", "thanks a lot").finish()
    fourth = unmarked(provider.requests[3].body["messages"])
    assert fourth[:4] == third[:4] and fourth[4]["content"] == [{"type": "text", "text": "thanks a lot"}]


def test_parallel_calls_and_failed_ones(anthropic, provider):
    server = anthropic()
    provider.plan(message(use("echo", {"text": "a"}, "toolu_a"), use("read_file", {"path": "missing"}, "toolu_b"), use("current_time", {}, "toolu_c")),
                  message(say("done")))
    stream = server.client.turn("c", "go")
    assert [e["id"] for e in stream.all("tool_result")] == ["toolu_a", "toolu_b", "toolu_c"]
    results = provider.requests[1].body["messages"][2]["content"]
    assert [r["tool_use_id"] for r in results] == ["toolu_a", "toolu_b", "toolu_c"]
    assert [r.get("is_error", False) for r in results] == [False, True, False]


def test_a_new_message_stands_behind_the_results_of_a_cancelled_turn(anthropic, provider):
    server = anthropic()
    provider.plan(message(use("run_shell", {"command": "true"})))
    stream = server.client.start("c", "go")
    stream.until("approval_required")
    server.client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")
    provider.plan(message(say("ok")))
    server.client.turn("c", "never mind")
    content = provider.requests[1].body["messages"][2]["content"]
    assert [b["type"] for b in content] == ["tool_result", "text"] and content[0]["is_error"] is True


def test_cache_marks(anthropic, provider):
    server = anthropic()
    provider.plan(message(use("echo", {"text": "a"})), message(say("one"), cache_read_input_tokens=100, cache_creation_input_tokens=20))
    stream = server.client.turn("c", "go")
    usage = stream.all("usage")[-1].data
    assert (usage["input_tokens"], usage["cache_read_tokens"], usage["cache_write_tokens"], usage["output_tokens"]) == (131, 100, 20, 7)
    assert "cache_read_tokens" not in stream.all("usage")[0].data
    body = provider.requests[1].body
    mark = {"type": "ephemeral"}
    assert body["tools"][-1]["cache_control"] == mark and "cache_control" not in body["tools"][0]
    assert body["messages"][0]["content"][-1]["cache_control"] == mark and body["messages"][2]["content"][-1]["cache_control"] == mark
    stored = server.client.interaction("c", stream.interaction)
    assert stored["usage"] == {"input_tokens": 142, "output_tokens": 14, "cache_read_tokens": 100, "cache_write_tokens": 20}


def test_thinking_is_asked_for(anthropic, provider):
    server = anthropic(models={"claude/scripted": {"thinking": 2000, "max_output_tokens": 1500}, "claude/b": {"thinking": "adaptive"}})
    provider.answer_with(lambda _: message(say("ok")))
    server.client.turn("c", "hi")
    assert provider.requests[0].body["thinking"] == {"type": "enabled", "budget_tokens": 2000}
    assert provider.requests[0].body["max_tokens"] > 2000
    server.client.turn("c", "hi", model="claude/b")
    assert provider.requests[1].body["thinking"] == {"type": "adaptive", "display": "summarized"}
    server.client.turn("c", "hi", model="claude/claude-sonnet-5")
    assert provider.requests[2].body["thinking"]["type"] == "adaptive"
    server.client.turn("c", "hi", model="claude/claude-haiku-4-5-20251001")
    assert "thinking" not in provider.requests[3].body


def test_a_chat_goes_from_one_kind_of_provider_to_the_other_and_back(anthropic, provider):
    server = anthropic()
    provider.plan(message(THOUGHTS, use("echo", {"text": "a"})), message(say("one")))
    server.client.turn("c", "first")
    provider.plan(tools(call("functions.echo:0", "not json", "functions.echo:0")), text("two"))
    server.client.turn("c", "second", model="other/scripted")
    assert "anthropic_blocks" not in json.dumps(provider.requests[2].body)
    provider.plan(message(say("three")))
    server.client.turn("c", "third")
    messages = provider.requests[4].body["messages"]
    assert THOUGHTS in messages[1]["content"]
    assert messages[5]["content"][0]["name"] == "functions_echo_0" and isinstance(messages[5]["content"][0]["input"], dict)


@pytest.mark.parametrize("name, reply, code, retryable", [
    ("overloaded", failure(529, "overloaded_error", "Overloaded"), "provider_overloaded", True),
    ("rate limit", failure(429, "rate_limit_error"), "provider_rate_limited", True),
    ("key", failure(401, "authentication_error", f"invalid x-api-key {API_KEY}"), "provider_auth", False),
    ("permission", failure(403, "permission_error"), "provider_auth", False),
    ("model", failure(404, "not_found_error", "model: scripted"), "provider_not_found", False),
    ("request", failure(400, "invalid_request_error", "messages: bad"), "provider_bad_request", False),
    ("billing", failure(402, "billing_error"), "provider_rate_limited", False),
    ("context", failure(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), "provider_context_length", False),
    ("context 2", failure(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2 > 3"), "provider_context_length", False),
    ("server", failure(500, "api_error"), "provider_error", True),
    ("in the stream", Reply([start(), event("error", error={"type": "overloaded_error", "message": "Overloaded"})]), "provider_overloaded", True),
    ("refusal", message(stop_reason="refusal"), "provider_bad_request", False),
    ("window", message(stop_reason="model_context_window_exceeded"), "provider_context_length", False),
    ("html", Reply([b"<html>Log in</html>"], content_type="text/html"), "provider_protocol", False),
    ("openai's form", text("hello"), "provider_protocol", False),
    ("garbage", Reply([start(), b"data: {nonsense\n\n"]), "provider_protocol", False),
    ("wrong types", Reply([start(), event("content_block_start", index=0, content_block=5)]), "provider_protocol", False),
    ("stray delta", Reply([start(), event("content_block_delta", index=3, delta={"type": "text_delta", "text": "x"})]), "provider_protocol", False),
    ("endless line", Reply([b"data: " + b"x" * (1 << 20)] + [b"x" * (1 << 20)] * 17), "response_too_large", False),
    ("empty", Reply([]), "provider_protocol", True),
    ("cut", Reply([start(), event("ping"), CUT]), "provider_protocol", True),
    ("clean end", Reply([start()]), "provider_protocol", True),
])
def test_failures(anthropic, provider, name, reply, code, retryable):
    server = anthropic()
    provider.plan(reply)
    error = server.client.turn("c", "hello", "FAILED").one("error")
    assert (error["code"], error["retryable"]) == (code, retryable), name
    assert API_KEY not in json.dumps(error.data)
    provider.plan(message(say("recovered")))
    server.client.turn("c", "again")


def test_half_of_a_tool_call_never_runs(anthropic, provider):
    server = anthropic(approval_mode="approve_all")
    whole = message(use("run_shell", {"command": "touch ran"})).steps
    stop = next(i for i, step in enumerate(whole) if b"content_block_stop" in step)
    for number, steps in enumerate([whole[:stop], [*whole[:stop], CUT], whole[:stop - 1] + ending("max_tokens"), whole[:stop - 1] + ending("tool_use"),
                                    whole[:stop - 1] + [event("message_stop")]]):
        provider.plan(Reply(steps))
        error = server.client.turn(f"c{number}", "go", "FAILED").one("error")
        assert error["code"] == ("provider_output_limit" if number == 2 else "provider_protocol")
        assert number != 2 or "models.NAME.max_output_tokens" in error["message"]
    assert not list(server.home.workspace.iterdir())


def test_a_silent_stream(anthropic, provider):
    server = anthropic(provider_idle_timeout_s=0.3)
    provider.plan(Reply([start(), Gate()]))
    assert server.client.turn("c", "hello", "FAILED").one("error")["code"] == "provider_timeout"


def test_pings_and_empty_pieces_do_not_hide_a_silent_model(anthropic, provider):
    server = anthropic(provider_idle_timeout_s=0.3)
    begin = event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    empty = event("content_block_delta", index=0, delta={"type": "text_delta", "text": ""})
    for number, pings in enumerate([event("ping"), empty]):
        gate = Gate(pings=pings)
        provider.plan(Reply([start(), begin, gate]))
        assert server.client.turn(f"c{number}", "hello", "FAILED").one("error")["code"] == "provider_timeout"
        gate.wait_left()


@pytest.mark.parametrize("stop_reason, reason", [("max_tokens", "length"), ("model_context_window_exceeded", "context_window"),
                                                 ("refusal", "refusal"), ("pause_turn", "pause")])
def test_an_answer_that_was_cut_off_says_so(anthropic, provider, stop_reason, reason):
    server = anthropic()
    provider.plan(message(say("Half a sen"), stop_reason=stop_reason))
    answer = server.client.turn("c", "hi").one("answer")
    assert (answer["truncated"], answer["reason"]) == (True, reason)


def test_the_limit_of_an_answer_is_learned_from_the_provider(anthropic, provider):
    server = anthropic(max_retries=1)
    refusal = "max_tokens: 32000 > 4096, which is the maximum allowed number of output tokens for scripted"
    provider.plan(failure(400, "invalid_request_error", refusal), message(say("ok")), message(say("ok")))
    assert not server.client.turn("c", "hi").all("retry"), "a changed request is no retry"
    server.client.turn("c", "again")
    assert [r.body["max_tokens"] for r in provider.requests] == [32000, 4096, 4096]
    provider.plan(failure(400, "invalid_request_error", refusal.replace("32000", "4096")))
    server.client.turn("c", "again", "FAILED")  # the same limit again: changing the request would not help


def test_cancel_while_it_writes(anthropic, provider):
    server = anthropic()
    gate = Gate()
    provider.plan(Reply([start(), event("content_block_start", index=0, content_block={"type": "text", "text": "half "}), gate]))
    stream = server.client.start("c", "hello")
    stream.until("text_delta")
    server.client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")
    gate.wait_left()
    provider.plan(message(say("ok")))
    server.client.turn("c", "again")
    assert provider.requests[-1].body["messages"][1]["content"] == [{"type": "text", "text": "half "}]


def test_models_are_listed(anthropic, provider):
    server = anthropic(models={"claude/known": {"context_window": 1234}})
    eventually(lambda: len(provider.listings) == 2, "each provider has been asked at the start")
    provider.listings.clear()
    provider.listing = Reply([json.dumps({"data": [{"type": "model", "id": "claude-sonnet-5"}, {"id": "known"}, {"id": "x", "max_input_tokens": 777}],
                                          "has_more": False}).encode()], content_type="application/json")
    models = {m["name"]: m.get("context_window") for m in server.client.get("/models").expect(200, "models").json["models"]}
    assert models["claude/claude-sonnet-5"] == 1_000_000 and models["claude/known"] == 1234 and models["claude/x"] == 777
    assert "claude/scripted" in models and models["offline"] is None
    assert models["other/x"] == 777
    server.client.get("/models").expect(200, "models")
    assert len(provider.listings) == 2  # one for each provider; the second GET is answered from the cache
    keys = {path: headers for path, headers in provider.listings}
    assert keys["/v1/models?limit=1000"]["x-api-key"] == API_KEY and keys["/v1/models"]["Authorization"] == f"Bearer {API_KEY}"


def test_a_provider_that_does_not_list_is_not_waited_for(anthropic, provider):
    server = anthropic()
    gate = Gate()
    provider.listing = lambda: Reply([gate], content_type="application/json")
    models = {m["name"] for m in server.client.get("/models", limit=20).expect(200, "models").json["models"]}
    assert models == {"offline", "claude/scripted"}
    provider.listing = failure(500, "api_error")
    server.client.turn("c", "hello", "FAILED")  # the server still works
