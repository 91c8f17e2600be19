"""Providers of the type openai_responses, and models that get that interface because they refuse chat completions."""
import json

import pytest
from support import responses
from support.provider import Reply, call, failure, text, tools
from support.responses import message, reasoning, say, use
from support.server import API_KEY

THOUGHT = reasoning("I should call it", "c2VhbGVk")
CALL = use("echo", {"text": "a"})
REFUSES = ("Function tools with reasoning_effort are not supported for scripted in /v1/chat/completions. To use function tools, use "
           "/v1/responses or set reasoning_effort to 'none'.")


def speaks(provider, kind="openai_responses", **config):
    one = {"type": kind, "base_url": provider.url, "api_key": API_KEY}
    return {"config": {"providers": {"one": one, "other": one}, "model": "one/scripted", "max_retries": 1, **config}}


def items(request, kind=None):
    return [each for each in request.body["input"] if kind in (None, each["type"])]


def kept(request):
    """Whether the first answer in the request has all its extras."""
    return items(request, "reasoning")[:1] == [THOUGHT] and items(request, "function_call")[:1] == [CALL]


def test_a_turn_with_a_tool(make_server, provider):
    server = make_server(**speaks(provider))
    provider.plan(message(THOUGHT, CALL), message(say("It says a.", phase="final_answer")))
    stream = server.client.turn("c", "hi")
    assert stream.all("thinking")[0]["content"] == "I should call it"
    assert [e["content"] for e in stream.all("answer")] == ["It says a."]
    assert "".join(e["content"] for e in stream.all("text_delta")) == "It says a."
    first, second = provider.requests
    assert first.path == responses.PATH and first.headers["Authorization"] == f"Bearer {API_KEY}"
    assert first.body["include"] == ["reasoning.encrypted_content"] and first.body["store"] is False
    assert {t["type"] for t in first.body["tools"]} == {"function"} and "echo" in [t["name"] for t in first.body["tools"]]
    assert kept(second) and items(second, "function_call_output") == [{"type": "function_call_output", "call_id": "call_1", "output": "a"}]
    assert server.client.history("c")["interactions"][0]["usage"]["cache_read_tokens"] == 6
    provider.plan(message(say("again")))
    server.client.turn("c", "and?")
    third = provider.requests[-1]
    assert kept(third) and items(third, "message")[-2] == say("It says a.", phase="final_answer")
    assert third.body["prompt_cache_key"] == first.body["prompt_cache_key"]
    same = lambda request: json.dumps(request.body["input"])[:-1]  # noqa: E731
    assert same(third).startswith(same(second)) and same(second).startswith(same(first)), "the beginnings are the same bytes"


def test_after_a_restart_an_edit_and_with_another_provider(make_server, make_home, provider):
    home = make_home()
    server = make_server(home=home, **speaks(provider))
    provider.plan(message(THOUGHT, CALL), message(say("one")))
    server.client.turn("c", "hi")
    server.stop()
    server = make_server(home=home, **speaks(provider))
    provider.plan(message(say("two")), message(say("two, edited")), message(say("three")), message(say("four")))
    server.client.turn("c", "and?")
    assert kept(provider.requests[-1])
    server.client.edit("c", "int_002", "and so?").finish()
    assert kept(provider.requests[-1])
    server.client.turn("c", "and you?", model="other/scripted")
    foreign = provider.requests[-1]
    assert not items(foreign, "reasoning") and all(set(each) == {"type", "call_id", "name", "arguments"} for each in items(foreign, "function_call"))
    server.client.turn("c", "and now?", model="one/scripted")
    assert kept(provider.requests[-1])
    assert server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]


@pytest.mark.parametrize("status", [400, 404])
def test_a_model_that_refuses_chat_completions_is_asked_by_responses(make_server, provider, status):
    server = make_server(**speaks(provider, "openai"))
    provider.plan(failure(status, REFUSES, kind="invalid_request_error"), message(THOUGHT, CALL), message(say("done")))
    server.client.turn("c", "hi")
    assert [r.path for r in provider.requests] == ["/v1/chat/completions", responses.PATH, responses.PATH]
    provider.plan(message(say("again")), text("by another"))
    server.client.turn("c", "more")
    assert provider.requests[-1].path == responses.PATH and kept(provider.requests[-1])
    server.client.turn("c", "more", model="one/another")
    assert provider.requests[-1].path == "/v1/chat/completions"


def test_what_a_model_does_not_take_is_left_out(make_server, provider):
    server = make_server(**speaks(provider))
    provider.plan(failure(400, "Encrypted content is not supported with this model."), message(say("plain")))
    server.client.turn("c", "hi")
    assert "include" not in provider.requests[-1].body and "reasoning" not in provider.requests[-1].body
    provider.plan(message(THOUGHT, CALL), message(say("seen")))
    server.client.turn("d", "hi", model="one/thinker")
    provider.plan(failure(400, "The encrypted content c2Vh... could not be verified.", code="invalid_encrypted_content"), message(say("on")))
    server.client.turn("d", "and?", model="one/thinker")
    assert not items(provider.requests[-1], "reasoning") and items(provider.requests[-1], "function_call")


def test_ids_that_the_server_behind_an_address_refuses_do_not_break_the_chat(make_server, provider):
    """A router's servers differ: one makes ids that another refuses."""
    server = make_server(**speaks(provider))
    provider.plan(message(THOUGHT, use("echo", {"text": "a"}, item_id="call-7")), message(say("one", item_id="chatcmpl-77")))
    server.client.turn("c", "hi")
    provider.plan(message(say("two")))
    server.client.turn("c", "and?")
    sent = provider.requests[-1]
    assert [each.get("id") for each in items(sent) if each.get("role") != "user"] == ["rs_1", None, None, None]
    refusal = failure(400, "Invalid 'input[1].id': 'rs_1'. Expected an ID that begins with 'th'.")
    provider.plan(refusal, message(say("three")))
    server.client.turn("c", "and?")
    assert not any("id" in each for each in items(provider.requests[-1])) and not items(provider.requests[-1], "reasoning")


@pytest.mark.parametrize("effort", ["none", "low", "high"])
def test_effort(make_server, provider, effort):
    server = make_server(**speaks(provider, models={"one/scripted": {"effort": effort}}))
    provider.plan(message(say("yes")))
    server.client.turn("c", "hi")
    asked = provider.requests[-1].body["reasoning"]
    assert asked == ({"effort": "none"} if effort == "none" else {"effort": effort, "summary": "auto"})
    chat = make_server(**speaks(provider, "openai", models={"one/scripted": {"effort": effort}}))
    provider.plan(text("yes"))
    chat.client.turn("c", "hi")
    assert provider.requests[-1].body["reasoning_effort"] == effort


def test_cut_off_filtered_and_failed(make_server, provider):
    server = make_server(**speaks(provider, max_retries=0))
    provider.plan(message(say("half"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert server.client.turn("c", "hi").all("answer")[-1]["reason"] == "length"
    provider.plan(message(CALL, cut=True, status="incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert server.client.turn("d", "hi", status="FAILED").all("error")[-1]["code"] == "provider_output_limit"
    provider.plan(Reply([responses.ending([], "failed", error={"code": "server_error", "message": "it broke"})]))
    failed = server.client.turn("e", "hi", status="FAILED").all("error")[-1]
    assert "it broke" in failed["message"]
    provider.plan(Reply([responses.event("error", code="rate_limit_exceeded", message="slow down")]))
    assert server.client.turn("f", "hi", status="FAILED").all("error")[-1]["code"] == "provider_rate_limited"
    provider.plan(Reply(responses.item(0, say("half"))))
    assert server.client.turn("g", "hi", status="FAILED").all("error")[-1]["code"] == "provider_protocol"


def test_an_answer_that_was_cut_off_in_its_thoughts_does_not_end_the_chat(make_server, provider):
    """The API refuses reasoning that is not followed by its output."""
    server = make_server(**speaks(provider, max_retries=0))
    for thoughts in ([THOUGHT], [say("half"), THOUGHT]):
        provider.plan(message(*thoughts, status="incomplete", incomplete_details={"reason": "max_output_tokens"}), message(say("yes")))
        chat = f"c{len(thoughts)}"
        server.client.turn(chat, "hi")
        server.client.turn(chat, "go on")
        assert [each["type"] for each in items(provider.requests[-1])] == ["message"] * (len(thoughts) + 1)


def test_tokens_that_are_counted_below_nothing_are_not_taken(make_server, provider):
    server = make_server(**speaks(provider))
    provider.plan(message(say("yes"), usage=(-500, 7)))
    stream = server.client.turn("c", "hi")
    assert (stream.all("usage")[0]["input_tokens"], stream.all("usage")[0]["output_tokens"]) == (0, 7)


@pytest.mark.parametrize("kind", ["openai", "openai_responses"])
@pytest.mark.parametrize("wrong", ['{"text":"a', '["a"]', '"a"', "not json", "{}}"])
def test_arguments_that_are_not_an_object_do_not_break_the_chat(make_server, provider, kind, wrong):
    """Many servers parse the arguments of earlier calls, so unreadable arguments are sent as text."""
    server = make_server(**speaks(provider, kind))
    if kind == "openai":
        provider.plan(tools(call("echo", wrong)), text("sorry"), text("yes"))
    else:
        provider.plan(message(responses.use("echo", wrong)), message(say("sorry")), message(say("yes")))
    assert server.client.turn("c", "hi").all("tool_result")[0]["is_error"] is True
    server.client.turn("c", "go on")
    sent = [each["arguments"] for each in items(provider.requests[-1]) if each["type"] == "function_call"] if kind != "openai" else [
        one["function"]["arguments"] for each in provider.requests[-1].body["messages"] for one in each.get("tool_calls", [])]
    assert [json.loads(each) for each in sent] == [{"not_valid_json": wrong}]


def test_a_server_that_does_not_stream_it(make_server, provider):
    server = make_server(**speaks(provider))
    whole = {"id": "resp_1", "object": "response", "status": "completed", "output": [THOUGHT, say("as a whole")], "usage": {"input_tokens": 1}}
    provider.plan(Reply([json.dumps(whole).encode()], content_type="application/json"))
    stream = server.client.turn("c", "hi")
    assert stream.all("answer")[-1]["content"] == "as a whole" and stream.all("thinking")[0]["content"] == "I should call it"


def test_a_chat_goes_over_from_chat_completions(make_server, provider):
    server = make_server(**speaks(provider, "openai"))
    provider.plan(tools(call("echo", {"text": "a"})), text("one"), failure(400, REFUSES), message(say("two")))
    server.client.turn("c", "hi")
    server.client.turn("c", "and?")
    assert [each["type"] for each in items(provider.requests[-1])] == ["message", "function_call", "function_call_output", "message", "message"]
