"""OpenAI-compatible servers that differ: each yields the same turn."""
import json

import pytest
from support.provider import DONE, Reply, delta, ending, sse, text

CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "calculator", "arguments": '{"expression":"2+2"}'}}


def without(members, value=CALL):
    return {k: v for k, v in value.items() if k not in members}


def pieces(*arguments, **first):
    begin = {**CALL, "function": {"name": "calculator", "arguments": ""}, **first}
    return [delta({"tool_calls": [begin]})] + [delta({"tool_calls": [{"index": 0, "function": {"arguments": a}}]}) for a in arguments]


def document(message, finish="tool_calls", **more):
    body = {"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}
    return Reply([json.dumps(body).encode()], content_type="application/json")


CALLING = {
    "whole": Reply([delta({"tool_calls": [CALL]}), *ending("tool_calls")]),
    "in pieces": Reply([*pieces('{"expr', 'ession":', '"2+2"}'), *ending("tool_calls")]),
    "single characters": Reply([*pieces(*'{"expression":"2+2"}'), *ending("tool_calls")]),
    "no id": Reply([delta({"tool_calls": [without(["id"])]}), *ending("tool_calls")]),
    "empty id": Reply([delta({"tool_calls": [{**CALL, "id": ""}]}), *ending("tool_calls")]),
    "no index": Reply([delta({"tool_calls": [without(["index"])]}), *ending("tool_calls")]),
    "no type": Reply([delta({"tool_calls": [without(["type"])]}), *ending("tool_calls")]),
    "arguments as an object": Reply([delta({"tool_calls": [{**CALL, "function": {"name": "calculator", "arguments": {"expression": "2+2"}}}]}),
                                     *ending("tool_calls")]),
    "content null": Reply([delta({"role": "assistant", "content": None, "tool_calls": [CALL]}), *ending("tool_calls")]),
    "finish_reason stop": Reply([delta({"tool_calls": [CALL]}), *ending("stop")]),
    "finish_reason with the call": Reply([delta({"tool_calls": [CALL]}, "tool_calls"), DONE]),
    "an unknown finish_reason": Reply([delta({"tool_calls": [CALL]}), *ending("eos")]),
    "finish_reason empty until the end": Reply([delta({"tool_calls": [CALL]}, ""), *ending("tool_calls")]),
    "no finish_reason": Reply([delta({"tool_calls": [CALL]}), DONE]),
    "no [DONE]": Reply([delta({"tool_calls": [CALL]}), delta({}, "tool_calls")]),
    "no usage": Reply([delta({"tool_calls": [CALL]}), *ending("tool_calls", usage=None)]),
    "usage null in each event": Reply([sse({"choices": [{"delta": {"tool_calls": [CALL]}, "finish_reason": None}], "usage": None}), *ending("tool_calls")]),
    "no choice index": Reply([sse({"choices": [{"delta": {"tool_calls": [CALL]}}]}), *ending("tool_calls")]),
    "carriage returns": Reply([delta({"tool_calls": [CALL]}, newline="\r\n"), delta({}, "tool_calls", "\r\n"), DONE]),
    "no stream": document({"role": "assistant", "content": None, "tool_calls": [without(["index"])]}),
    "no stream, no id": document({"role": "assistant", "content": "", "tool_calls": [without(["index", "id"])]}, "stop"),
    "plain text as type": Reply([delta({"tool_calls": [CALL]}), *ending("tool_calls")], content_type="text/plain; charset=utf-8"),
}


@pytest.mark.parametrize("name", CALLING)
def test_a_call(client, provider, name):
    provider.plan(CALLING[name], text("four"))
    stream = client.turn("c", "what is 2+2?")
    assert stream.one("tool_result")["tool_output"] == "4" and stream.one("answer")["content"] == "four"
    assert json.loads(stream.one("tool_call")["tool_input"]) == {"expression": "2+2"}
    assistant, result = provider.requests[1].conversation[-2:]
    assert assistant["tool_calls"][0]["id"] == result["tool_call_id"] != ""


def test_two_calls_without_index_or_id(client, provider):
    both = [without(["index", "id"]), {"type": "function", "function": {"name": "echo", "arguments": '{"text":"b"}'}}]
    provider.plan(Reply([delta({"tool_calls": both}), *ending("tool_calls")]), text("done"))
    assert [e["tool_output"] for e in client.turn("c", "go").all("tool_result")] == ["4", "b"]


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
def test_thinking(client, provider, member):
    provider.plan(Reply([delta({member: "let me "}), delta({member: "see", "content": None}), delta({"content": "so", member: None}), *ending()]))
    stream = client.turn("c", "hello")
    assert stream.one("thinking")["content"] == "let me see" and stream.one("answer")["content"] == "so"


def test_cached_tokens_are_counted(client, provider):
    usage = {"prompt_tokens": 20, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 16}}
    provider.plan(Reply([delta({"content": "x"}, "stop"), sse({"choices": [], "usage": usage}), DONE]))
    event = client.turn("c", "hello").one("usage")
    assert (event["input_tokens"], event["output_tokens"], event["cache_read_tokens"]) == (20, 3, 16)
