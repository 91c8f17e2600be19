"""How answers end, with the real binary: an unknown ending is no success. The table of all endings is tests/model/endings_test.cc."""
import gzip
import json

import pytest
from support import anthropic, responses
from support.provider import DONE, Reply, delta, ending, sse, text


def start(make_server, provider, kind="openai", **config):
    url = provider.url.removesuffix("/v1") if kind == "anthropic" else provider.url
    one = {"type": kind, "base_url": url, "api_key": "${TEST_API_KEY}"}
    return make_server(config={"providers": {"one": one}, "model": "one/scripted", **config}).client


@pytest.mark.parametrize("kind, reply, reason", [
    ("openai", Reply([delta({"content": "half"}), *ending("malformed_function_call")]), "malformed_function_call"),
    ("openai", Reply([delta({"content": "half"}), *ending("overheated")]), "overheated"),
    ("anthropic", anthropic.message(anthropic.say("half"), stop_reason="overheated"), "overheated"),
    ("openai_responses", responses.message(responses.say("half"), status="incomplete"), "incomplete"),
    ("openai_responses", responses.message(responses.say("half"), status="incomplete", incomplete_details={"reason": "sunset"}), "sunset"),
])
def test_an_end_that_is_not_known_is_told_in_its_own_word(make_server, provider, kind, reply, reason):
    client = start(make_server, provider, kind)
    provider.plan(reply)
    answer = client.turn("c", "hi").one("answer")
    assert (answer["content"], answer["truncated"], answer["reason"]) == ("half", True, reason)
    assert client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"] is True


@pytest.mark.parametrize("kind, reply", [
    ("openai", Reply([DONE])), ("openai", Reply([sse({"choices": [{}]}), DONE])), ("openai", Reply(ending("tool_calls"))),
    ("anthropic", Reply([anthropic.start(), *anthropic.ending("tool_use")])), ("openai_responses", Reply([responses.ending([])]))])
def test_an_answer_with_nothing_in_it_is_asked_for_again(make_server, provider, kind, reply):
    client = start(make_server, provider, kind, max_retries=1)
    whole = {"openai": text("yes"), "anthropic": anthropic.message(anthropic.say("yes")), "openai_responses": responses.message(responses.say("yes"))}[kind]
    provider.plan(reply, whole)
    stream = client.turn("c", "hi")
    assert stream.one("retry")["code"] == "provider_protocol" and stream.one("answer")["content"] == "yes"


@pytest.mark.parametrize("event", [
    sse({"object": "error", "message": "the pump broke"}), sse({"detail": "the pump broke"}), b'event: error\ndata: {"why": "the pump broke"}\n\n',
    b'{"error": {"message": "the pump broke"}}\n\n', sse({"fault": {"faultstring": "the pump broke"}})])
def test_an_error_in_any_form_behind_half_an_answer_is_one(make_server, provider, event):
    client = start(make_server, provider)
    provider.plan(Reply([delta({"content": "half"}), event, *ending()]))
    error = client.turn("c", "hi", "FAILED").one("error")
    assert "the pump broke" in error["message"] and error["retryable"] is True


def test_calls_behind_an_end_that_is_not_known_are_not_run(make_server, provider):
    client = start(make_server, provider, approval_mode="approve_all")
    call = {"index": 0, "id": "c", "function": {"name": "write_file", "arguments": '{"path":"f","content":"x"}'}}
    provider.plan(Reply([delta({"tool_calls": [call]}), *ending("network_error")]))
    stream = client.turn("c", "hi", "FAILED")
    assert "network_error" in stream.one("error")["message"] and not stream.all("tool_call")


WHOLE = b"".join(step for step in text("hi").steps)


LABELLED = {
    "a label in other letters": (WHOLE, {"Content-Type": "Text/Event-Stream"}), "a stream as JSON": (WHOLE, {"Content-Type": "application/json"}),
    "a stream as lines": (WHOLE, {"Content-Type": "application/x-ndjson"}), "compressed": (gzip.compress(WHOLE), {"Content-Encoding": "gzip"}),
    "a document as a stream": (json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).encode(), {}),
    "NaN": (WHOLE.replace(b'"index": 0', b'"index": 0, "logprobs": NaN'), {}), "a blank behind DONE": (WHOLE.replace(b"[DONE]", b"[DONE] "), {}),
    "a line that is none": (b"data: keep-alive\n\n" + WHOLE, {})}


@pytest.mark.parametrize("name", LABELLED)
def test_the_bytes_count_and_not_the_label(make_server, provider, name):
    body, headers = LABELLED[name]
    client = start(make_server, provider)
    provider.plan(Reply([body], headers=headers))
    assert client.turn("c", "hi").one("answer")["content"] == "hi"


def test_a_key_of_one_letter_does_not_hide_that_letter(make_server, provider):
    one = {"type": "openai", "base_url": provider.url, "api_key": "e"}
    client = make_server(config={"providers": {"one": one}, "model": "one/scripted"}).client
    provider.plan(Reply([json.dumps({"error": {"message": "the engine needs oil"}}).encode()], status=400, content_type="application/json"))
    assert "the engine needs oil" in client.turn("c", "hi", "FAILED").one("error")["message"]
