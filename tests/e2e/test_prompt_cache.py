"""The provider's cache: requests that begin with the same bytes, hints for the cache, and the savings."""
import json

import pytest
from support import anthropic, responses
from support.provider import DONE, Reply, call, delta, failure, sse, text, tools
from support.server import API_KEY

MARK = b',"cache_control":{"type":"ephemeral"}'


def configured(provider, kind, **more):
    url = provider.url.removesuffix("/v1") if kind == "anthropic" else provider.url
    return {"providers": {"one": {"type": kind, "base_url": url, "api_key": API_KEY}}, "model": "one/scripted", "tools": {"allow": ["read_file", "list_files"]}, **more}


def say(kind, words):
    return {"openai": lambda: text(words), "openai_responses": lambda: responses.message(responses.say(words)),
            "anthropic": lambda: anthropic.message(anthropic.say(words))}[kind]()


def read(kind, path, call_id):
    arguments = {"path": path}
    return {"openai": lambda: tools(call("read_file", arguments, call_id)),
            "openai_responses": lambda: responses.message(responses.reasoning("", "c2VhbGVk"), responses.use("read_file", arguments, call_id)),
            "anthropic": lambda: anthropic.message(anthropic.thinking("so", "c2ln"), anthropic.use("read_file", arguments, call_id))}[kind]()


def split(kind, request):
    """Splits a request's bytes into what surrounds the messages, and the messages."""
    raw = request.raw.replace(MARK, b"")
    begin, end = {"openai": (b'"messages":[', b'],"tools":'), "openai_responses": (b'"input":[', b'],"include":'),
                  "anthropic": (b'"messages":[', b'],"stream":')}[kind]
    start = raw.index(begin) + len(begin)
    stop = raw.rindex(end)
    return raw[:start] + b"..." + raw[stop:], raw[start:stop]


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic"])
def test_the_beginning_stays_the_same_from_turn_to_turn(make_server, make_home, provider, kind):
    home = make_home()
    for number in range(4):
        (home.workspace / f"notes{number}.txt").write_text(f"number {number}")
    server = make_server(home=home, config=configured(provider, kind))
    for turn in range(4):
        if turn == 2:  # also across a restart
            server.stop()
            server = make_server(home=home, config=configured(provider, kind))
        provider.plan(read(kind, f"notes{turn}.txt", f"call_{turn}"), say(kind, f"It says {turn}."))
        server.client.turn("c", f"read file {turn}")
    parts = [split(kind, request) for request in provider.requests]
    assert len(parts) == 8 and len({around for around, _ in parts}) == 1, "tools, system prompt and settings are the same"
    for (_, before), (_, after) in zip(parts, parts[1:]):
        assert after.startswith(before), "messages are only added"
    if kind == "anthropic":  # marks on the tools, the system prompt and the user's last two messages
        for request in provider.requests:
            marked = [message["role"] for message in request.body["messages"] if "cache_control" in message["content"][-1]]
            users = [message for message in request.body["messages"] if message["role"] == "user"]
            assert marked == ["user"] * min(2, len(users)) and "cache_control" in users[-1]["content"][-1]
            assert "cache_control" in request.body["tools"][-1] and "cache_control" in request.body["system"][-1]
    else:
        key, = {request.body["prompt_cache_key"] for request in provider.requests}
        provider.plan(say(kind, "hello"))
        server.client.turn("d", "another conversation")
        assert provider.requests[-1].body["prompt_cache_key"] not in ("", key)


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic"])
def test_how_long_it_lasts(make_server, provider, kind):
    models = {"one/scripted": {"cache": "long"}, "one/other": {"cache": "none"}}
    server = make_server(config=configured(provider, kind, models=models))
    provider.plan(say(kind, "a"), say(kind, "b"))
    server.client.turn("c", "hi")
    server.client.turn("c", "hi", model="one/other")
    long, none = (request.body for request in provider.requests)
    if kind == "anthropic":
        assert long["tools"][-1]["cache_control"] == long["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
        assert "cache_control" not in json.dumps(none)
    else:
        assert long["prompt_cache_retention"] == "24h" and long["prompt_cache_key"]
        assert "prompt_cache_key" not in none and "prompt_cache_retention" not in none


@pytest.mark.parametrize("kind", ["openai", "openai_responses"])
def test_a_server_that_knows_nothing_of_it_is_not_told_again(make_server, provider, kind):
    server = make_server(config=configured(provider, kind, max_retries=2, models={"one/scripted": {"cache": "long"}}))
    provider.plan(failure(422, "property 'prompt_cache_retention' is unsupported"), failure(400, "Unknown name \"prompt_cache_key\": Cannot find field."),
                  say(kind, "a"), say(kind, "b"))
    server.client.turn("c", "hi")
    server.client.turn("c", "again")
    assert [("prompt_cache_key" in r.body, "prompt_cache_retention" in r.body) for r in provider.requests] == [(True, True), (True, False), (False, False), (False, False)]


def usage_chunk(**usage):
    return sse({"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 10, **usage}})


PRICES = {"input_price_per_mtok": 10, "output_price_per_mtok": 100, "cache_read_price_per_mtok": 1, "cache_write_price_per_mtok": 20}


@pytest.mark.parametrize("usage, read, written", [
    ({"prompt_tokens_details": {"cached_tokens": 800, "cache_write_tokens": 100}}, 800, 100), ({"prompt_cache_hit_tokens": 600, "prompt_cache_miss_tokens": 400}, 600, 0),
    ({"cached_tokens": 500}, 500, 0), ({}, 0, 0)], ids=["openai", "deepseek", "kimi", "none"])
def test_what_it_saves_is_told_and_counted(make_server, provider, usage, read, written):
    server = make_server(config=configured(provider, "openai", models={"one/scripted": PRICES}))
    provider.plan(Reply([delta({"content": "hello"}), delta({}, "stop"), usage_chunk(**usage), DONE]))
    told = server.client.turn("c", "hi").one("usage")
    assert (told["input_tokens"], told.data.get("cache_read_tokens", 0), told.data.get("cache_write_tokens", 0)) == (1000, read, written)
    of_chat = server.client.get("/chats/c/usage").expect(200, "chat_usage").json["branch"]["models"][0]
    assert of_chat.get("cache_read_tokens", 0) == read
    assert of_chat["cost"] == pytest.approx(((1000 - read - written) * 10 + read * 1 + written * 20 + 10 * 100) / 1e6)
