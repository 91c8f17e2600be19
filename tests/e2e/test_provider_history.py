"""No stored record makes a chat unusable: the strict providers of the suite accept every request."""
import json

import pytest
from support import anthropic, responses
from support.provider import Provider, Reply, call, delta, ending, failure, text, tools


@pytest.fixture(autouse=True)
def always_strict(strict_provider):
    Provider.strict = True


def serve(make_server, provider, **config):
    base = provider.url.removesuffix("/v1")
    kinds = {"chat": ("openai", provider.url), "chat2": ("openai", provider.url), "messages": ("anthropic", base), "responses": ("openai_responses", provider.url)}
    providers = {name: {"type": kind, "base_url": url, "api_key": "${TEST_API_KEY}"} for name, (kind, url) in kinds.items()}
    return make_server(config={"providers": providers, "model": "chat/scripted", "approval_mode": "approve_all", **config})


def start(make_server, provider, **config):
    return serve(make_server, provider, **config).client


ANSWERS = {"chat": text, "messages": lambda words: anthropic.message(anthropic.say(words)), "responses": lambda words: responses.message(responses.say(words))}


def ask_each(client, provider, chat="c"):
    """Continues the chat with each of the three interfaces."""
    for name, answer in ANSWERS.items():
        provider.plan(answer("on"))
        client.turn(chat, f"and {name}?", model=f"{name}/scripted")


def test_an_empty_answer_of_an_older_version(make_server, provider):
    server = serve(make_server, provider)
    server.check_records = False  # the chat was recorded elsewhere
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}, {"role": "user", "content": "hello?"}, {"role": "assistant", "content": " \n"}]
    document = {"id": "old", "interactions": [{"user_message": "hello?", "status": "COMPLETED", "final_agent_state": {"messages": said}}]}
    imported = server.client.post("/import", document).expect(201).json
    ask_each(server.client, provider, imported["id"])
    assert [m["content"] for m in provider.requests[0].conversation] == ["hi", "hello?", "and chat?"]


def test_a_turn_in_which_only_was_thought(make_server, provider):
    client = start(make_server, provider)
    provider.plan(Reply([delta({"reasoning_content": "hm"}), *ending()]))
    client.turn("c", "hi")
    ask_each(client, provider)


def test_calls_with_the_same_ids_in_every_turn(make_server, provider):
    client = start(make_server, provider)
    for n in range(2):
        provider.plan(tools(call("echo", {"text": str(n)}, "call_0")), text("so"))
        client.turn("c", f"turn {n}")
    ask_each(client, provider)
    blocks = [block for message in provider.requests[-2].body["messages"] for block in message["content"]]
    assert [b["id"] for b in blocks if b["type"] == "tool_use"] == [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"] == ["call_0", "call_0_2"]


@pytest.mark.parametrize("name, call_id", [("say hello!", "call_1"), ("x" * 200, "call_1"), ("echo", "functions.echo:0" * 20)])
def test_names_and_ids_that_others_refuse(make_server, provider, name, call_id):
    client = start(make_server, provider)
    provider.plan(tools(call(name, {"text": "x"}, call_id)), text("so"))
    client.turn("c", "hi")
    ask_each(client, provider)


def test_thoughts_of_mistral_are_shown_and_come_back_to_it_alone(make_server, provider):
    client = start(make_server, provider)
    thought = lambda words: {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": words}]}]}  # noqa: E731
    one = {"index": 0, **call("echo", {"text": "a"})}
    provider.plan(Reply([delta(thought("let me ")), delta(thought("see")), delta({"content": "I "}), delta({"content": "look."}), delta({"tool_calls": [one]}), *ending("tool_calls")]),
                  text("so"))
    stream = client.turn("c", "hi")
    assert stream.all("thinking")[0]["content"] == "let me see" and stream.one("answer")["content"] == "so"
    sent = [{"type": "thinking", "thinking": [{"type": "text", "text": "let me see"}]}, {"type": "text", "text": "I look."}]
    assert provider.requests[-1].conversation[1]["content"] == sent
    provider.plan(text("on"))
    client.turn("c", "and?", model="chat2/scripted")
    assert provider.requests[-1].conversation[1]["content"] == "I look."
    ask_each(client, provider)


def test_refused_thoughts_are_left_out_from_then_on(make_server, provider):
    client = start(make_server, provider)
    provider.plan(Reply([delta({"content": "<think>hm</think>\n\nso"}), *ending()]))
    assert client.turn("c", "hi").one("answer")["content"] == "so"
    provider.plan(failure(400, "messages[2].content: thinking is not supported here"), text("on"), text("again"))
    client.turn("c", "and?")
    client.turn("c", "and so?")
    assert [r.conversation[1]["content"] for r in provider.requests[1:]] == ["<think>hm</think>\n\nso", "so", "so"]


def test_unsigned_thinking_goes_back_where_it_came_from(make_server, provider):
    client = start(make_server, provider, model="messages/scripted")
    Provider.strict = False  # a provider that does not sign
    thinking = {"type": "thinking", "thinking": "hm", "signature": ""}
    provider.plan(anthropic.message(thinking, anthropic.use("echo", {"text": "a"})), anthropic.message(anthropic.say("so")))
    client.turn("c", "hi")
    assert provider.requests[-1].body["messages"][1]["content"][0] == {"type": "thinking", "thinking": "hm"}
    Provider.strict = True  # a provider that requires signatures
    provider.plan(anthropic.message(anthropic.say("on")), anthropic.message(anthropic.say("again")))
    client.turn("c", "and?")
    client.turn("c", "and so?")
    assert len(Provider.refused) == 1 and "signature: Field required" in Provider.refused.pop()
    assert all(block["type"] != "thinking" for block in provider.requests[-1].body["messages"][1]["content"])


@pytest.mark.parametrize("words, holds", [
    ("Missing `reasoning_content` field in the assistant message at message index 2", lambda m: all(x.get("reasoning_content") for x in m if x["role"] == "assistant")),
    ("Conversation roles must alternate user/assistant/user/assistant/...", lambda m: all(a["role"] != b["role"] for a, b in zip(m, m[1:]))),
    ("Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", lambda m: all(len(c["id"]) == 9 for x in m for c in x.get("tool_calls", [])))])
def test_what_a_provider_wants_is_learned_from_its_refusal(make_server, provider, words, holds):
    client = start(make_server, provider)
    provider.plan(failure(500), tools(call("echo", {"text": "a"})), text("so"))
    client.turn("c", "hi", "FAILED")
    client.turn("c", "hi again")
    provider.plan(failure(400, words), text("on"), text("again"))
    client.turn("c", "and?")
    client.turn("c", "and so?")
    assert all(holds(request.conversation) for request in provider.requests[-2:]) and not holds(provider.requests[-3].conversation)


def test_documents_of_other_providers_are_read(make_server, provider):
    client = start(make_server, provider)
    provider.plan(Reply([delta({"function_call": {"name": "echo", "arguments": json.dumps({"text": "a"})}}), *ending("function_call")]), text("so"))
    assert client.turn("c", "hi").one("tool_result")["tool_output"] == "a"
    ask_each(client, provider)
