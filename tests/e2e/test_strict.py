"""The suite's strict provider: it refuses and accepts the same requests as real ones, and an unexpected refusal fails the test."""
import json

import pytest
from support import strict
from support.provider import Provider, call

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
USER, CALLS = {"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [call("f", {})]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "x"}


def tool(**schema):
    return {"type": "function", "function": {"name": "f", "parameters": schema}}


CHAT = {
    "an empty answer": {"messages": [USER, {"role": "assistant", "content": ""}, USER]},
    "an empty part": {"messages": [USER, {"role": "assistant", "content": [{"type": "text", "text": ""}]}, USER]},
    "a result without its call": {"messages": [USER, RESULT]},
    "a call without its result": {"messages": [USER, CALLS, USER]},
    "a call without its result at the end": {"messages": [USER, CALLS]},
    "two results": {"messages": [USER, CALLS, RESULT, RESULT]},
    "arguments that are no object": {"messages": [USER, {**CALLS, "tool_calls": [call("f", "[1]")]}, RESULT]},
    "a bad name of a call": {"messages": [USER, {**CALLS, "tool_calls": [call("f!", {})]}, RESULT]},
    "a long id": {"messages": [USER, {**CALLS, "tool_calls": [call("f", {}, "x" * 41)]}, {**RESULT, "tool_call_id": "x" * 41}]},
    "no messages": {"messages": []}, "an empty list of tools": {"messages": [USER], "tools": []},
    "too many tools": {"messages": [USER], "tools": [{**TOOL, "function": {**TOOL["function"], "name": f"f{n}"}} for n in range(129)]},
    "a name twice": {"messages": [USER], "tools": [TOOL, TOOL]}, "a bad name": {"messages": [USER], "tools": [{**TOOL, "function": {**TOOL["function"], "name": "a.b"}}]},
    "anyOf at the top": {"messages": [USER], "tools": [tool(type="object", properties={}, anyOf=[{}])]},
    "an array without items": {"messages": [USER], "tools": [tool(type="object", properties={"a": {"type": "array"}})]},
    "properties that are null": {"messages": [USER], "tools": [tool(type="object", properties=None)]},
}
A_USER = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}
A_RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]}


def answer(*blocks):
    return {"role": "assistant", "content": list(blocks)}


MESSAGES = {
    "an empty text": [A_USER, answer({"type": "text", "text": ""})], "an empty message": [A_USER, answer(), A_USER], "an answer first": [answer({"type": "text", "text": "x"})],
    "two of one role": [A_USER, A_USER], "a result without its call": [A_USER, answer({"type": "text", "text": "x"}), A_RESULT], "a call without its result": [A_USER, USE, A_USER],
    "thinking without a signature": [A_USER, answer({"type": "thinking", "thinking": "x"})], "an id twice": [A_USER, USE, A_RESULT, USE, A_RESULT],
    "arguments that are no object": [A_USER, answer({"type": "tool_use", "id": "c", "name": "f", "input": []}), A_RESULT], "another role": [{"role": "system", "content": []}]}
INPUT = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
ITEM = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "x"}
RESPONSES = {"a result without its call": [INPUT, OUTPUT], "a call without its result": [INPUT, ITEM], "an id twice": [INPUT, ITEM, OUTPUT, ITEM, OUTPUT],
             "reasoning without what follows": [INPUT, {"type": "reasoning", "id": "r"}], "an empty message": [{**INPUT, "content": []}],
             "arguments that are no object": [INPUT, {**ITEM, "arguments": "1"}, OUTPUT], "a long id": [INPUT, {**ITEM, "call_id": "x" * 65}]}
ALL = [("/v1/chat/completions", name, body) for name, body in CHAT.items()] + [("/v1/messages", name, {"messages": body}) for name, body in MESSAGES.items()]
ALL += [("/v1/responses", name, {"input": body}) for name, body in RESPONSES.items()]


@pytest.mark.parametrize("path, name, body", ALL, ids=[f"{path} {name}" for path, name, _ in ALL])
def test_it_refuses_what_real_providers_refuse(path, name, body):
    reply = strict.refusal(path, body)
    assert reply.status == 400 and json.loads(reply.steps[0])["error"]["message"]


@pytest.mark.parametrize("path, body", [
    ("/v1/chat/completions", {"messages": [USER, CALLS, RESULT, {"role": "assistant", "content": "x"}, USER], "tools": [TOOL]}),
    ("/v1/messages", {"messages": [A_USER, USE, A_RESULT, answer({"type": "text", "text": "x"}), A_USER]}), ("/v1/responses", {"input": [INPUT, ITEM, OUTPUT, INPUT]})])
def test_it_takes_what_they_take(path, body):
    assert strict.refusal(path, body) is None


def test_all_of_the_tests_or_a_sample_of_each_commit():
    tests = [f"test {n}" for n in range(400)]
    chosen = {commit: {test for test in tests if strict.is_chosen(test, "", commit)} for commit in ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l")}
    assert all(50 < len(each) < 150 for each in chosen.values()) and len(set().union(*chosen.values())) > 350
    assert all(strict.is_chosen(test, "all") and not strict.is_chosen(test, "none") for test in tests)


def test_an_unexpected_refusal_fails_the_test(provider):
    Provider.strict = True
    provider.take(json.dumps({"messages": [USER], "tools": [tool(type="object", properties=None)]}).encode(), {"Content-Type": "application/json"}, "/v1/chat/completions")
    assert "missing properties" in Provider.refused.pop(), "popped, because the fixture would fail this test otherwise"
