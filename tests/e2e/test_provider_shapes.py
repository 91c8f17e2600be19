"""Conversations of two rounds with a tool, in each form in which providers add extras to their answers. The extras are sent back
to that provider unchanged, whatever happens to the chat, and to no other."""
import json

import pytest
from support import anthropic, responses
from support.provider import Reply, delta, ending, text
from support.server import API_KEY

ARGUMENTS = {"text": "a"}


class Chat:
    """Chat completions; `own` are the extras of the answer, `of_call` those of the call."""
    kind = "openai"

    def __init__(self, name, own, of_call=None, pieces=None):
        self.name, self.own, self.of_call = name, own, of_call or {}
        self.pieces = pieces or [{"role": "assistant", "content": None, **own}]

    def thinks_and_calls(self, call_id="call_1"):
        call = {"index": 0, "id": call_id, "type": "function", "function": {"name": "echo", "arguments": json.dumps(ARGUMENTS)}, **self.of_call}
        return Reply([*(delta(piece) for piece in self.pieces), delta({"tool_calls": [call]}), *ending("tool_calls")])

    say = staticmethod(text)

    def opaque(self, request):
        """The extras of the first answer in the request."""
        answer = next((m for m in request.messages if m["role"] == "assistant" and m.get("tool_calls")), None)
        if answer is None:
            return None
        call, = answer["tool_calls"]
        return ({k: v for k, v in answer.items() if k not in ("role", "content", "tool_calls")},
                {k: v for k, v in call.items() if k not in ("id", "type", "function")})

    def whole(self, _="call_1"):
        return self.own, self.of_call

    nothing = ({}, {})


class Responses:
    kind, name = "openai_responses", "responses"
    nothing = [{"type": "function_call", "call_id": "call_1", "name": "echo", "arguments": json.dumps(ARGUMENTS)}]

    def whole(self, call_id="call_1"):
        return [responses.reasoning("I should call it", "c2VhbGVk"), responses.use("echo", ARGUMENTS, call_id)]

    def thinks_and_calls(self, call_id="call_1"):
        return responses.message(*self.whole(call_id))

    def say(self, words):
        return responses.message(responses.say(words))

    def opaque(self, request):
        return [each for each in request.body["input"] if each["type"] in ("reasoning", "function_call")] or None


class Anthropic:
    kind, name = "anthropic", "anthropic"
    thought, hidden = anthropic.thinking("I should call it", "c2ln"), anthropic.redacted("c2VhbGVk")
    nothing = [anthropic.use("echo", ARGUMENTS, "call_1")]

    def whole(self, call_id="call_1"):
        return [self.thought, self.hidden, anthropic.use("echo", ARGUMENTS, call_id)]

    def thinks_and_calls(self, call_id="call_1"):
        return anthropic.message(*self.whole(call_id))

    def say(self, words):
        return anthropic.message(anthropic.say(words))

    def opaque(self, request):
        for message in request.body["messages"]:
            if any(block["type"] == "tool_use" for block in message["content"]):
                return [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]]
        return None


PART = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
SHAPES = [
    Chat("gemini", {}, {"extra_content": {"google": {"thought_signature": "c2ln"}}}),
    Chat("openrouter", {"reasoning_details": [{**PART, "text": "I think", "signature": "S"}, {"type": "reasoning.encrypted", "data": "zz", "id": "1", "index": 1}]},
         pieces=[{"role": "assistant", "content": None, "reasoning_details": [{**PART, "text": "I "}]}, {"reasoning_details": [{**PART, "text": "think"}]},
                 {"reasoning_details": [{**PART, "signature": "S"}, {"type": "reasoning.encrypted", "data": "zz", "id": "1", "index": 1}]}]),
    Chat("deepseek", {"reasoning_content": "I think"}, pieces=[{"role": "assistant", "content": None, "reasoning_content": "I "}, {"reasoning_content": "think"}]),
    Responses(), Anthropic()]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_what_is_the_providers_own_goes_back_to_it_alone(make_server, make_home, provider, shape):
    home = make_home()
    url = provider.url.removesuffix("/v1") if shape.kind == "anthropic" else provider.url
    providers = {name: {"type": shape.kind, "base_url": url, "api_key": API_KEY} for name in ("own", "foreign")}
    providers["plain"] = {"type": "openai", "base_url": provider.url, "api_key": API_KEY}

    def start():
        return make_server(home=home, config={"providers": providers, "model": "own/scripted", "tools": {"allow": ["echo"]}})

    server = start()
    client = server.client
    provider.plan(shape.thinks_and_calls(), shape.say("one"))
    client.turn("c", "first")
    assert shape.opaque(provider.requests[-1]) == shape.whole(), "in the next round"

    server.stop()
    client = start().client
    provider.plan(shape.say("two"))
    client.turn("c", "second")
    assert shape.opaque(provider.requests[-1]) == shape.whole(), "after a restart"

    provider.plan(shape.say("two, edited"))
    client.edit("c", "int_002", "second, edited").finish()
    assert shape.opaque(provider.requests[-1]) == shape.whole(), "after an edit of what follows"

    provider.plan(shape.say("three"))
    client.turn("c", "third", model="foreign/scripted")
    assert shape.opaque(provider.requests[-1]) == shape.nothing, "not to another provider of the same type"

    provider.plan(text("four"))
    client.turn("c", "fourth", model="plain/scripted")
    assert Chat("", {}).opaque(provider.requests[-1]) == Chat.nothing, "not to another provider of chat completions"

    provider.plan(shape.say("five"))
    client.turn("c", "fifth", model="own/another")
    assert shape.opaque(provider.requests[-1]) == shape.whole(), "switched back"

    fork = client.post("/chats/c/fork", {"interaction_id": "int_001"}).expect(201).json
    provider.plan(shape.say("six"))
    client.turn(fork["id"], "sixth")
    assert shape.opaque(provider.requests[-1]) == shape.whole(), "in a fork"

    # Summarized messages are not sent; later ones are, with their extras.
    provider.plan(shape.thinks_and_calls("call_7"), shape.say("seven"), shape.say("THE SUMMARY"), shape.say("eight"))
    client.turn("c", "seventh", model="own/scripted")
    client.stream("POST", "/chats/c/compact", {}).finish()
    client.turn("c", "eighth", model="own/scripted")
    request = provider.requests[-1]
    sent = json.dumps(request.body)
    assert "THE SUMMARY" in sent and "second" not in sent and "seventh" in sent
    assert shape.opaque(request) == shape.whole("call_7"), "after a summary"
    for interaction in ("int_001", "int_003"):
        assert client.post(f"/chats/c/interactions/{interaction}/replay", {"mode": "recorded"}).expect(200).json["match"] is True
