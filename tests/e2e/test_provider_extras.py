"""Provider extras: stored with the answers, and sent back only to the provider that wrote them."""
import json

import pytest
from support.provider import DONE, Reply, delta, ending, text
from support.server import API_KEY

CALL = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "echo", "arguments": '{"text":"a"}'},
        "extra_content": {"google": {"thought_signature": "c2ln"}}}
DETAILS = [{"type": "reasoning.text", "text": "I think", "signature": "S", "format": "f", "index": 0},
           {"type": "reasoning.encrypted", "data": "zz", "id": "1", "index": 1}]


def thoughtful():
    """An answer that calls a tool, with extras of DeepSeek, OpenRouter and Gemini in pieces."""
    part = lambda **members: {"type": "reasoning.text", "format": "f", "index": 0, **members}  # noqa: E731
    return Reply([delta({"role": "assistant", "content": None, "reasoning_content": "I "}),
                  delta({"reasoning_content": "think", "reasoning_details": [part(text="I ")]}),
                  delta({"reasoning_details": [part(text="think")]}), delta({"reasoning_details": [part(signature="S"), DETAILS[1]]}),
                  delta({"tool_calls": [CALL]}), *ending("tool_calls")])


def kept(request):
    """Whether the first answer in the request has all its extras."""
    answer = next(m for m in request.messages if m["role"] == "assistant")
    call, = answer["tool_calls"]
    return (answer.get("reasoning_content"), answer.get("reasoning_details"), call.get("extra_content")) == (
        "I think", DETAILS, CALL["extra_content"])


def clean(request):
    return all(set(m) <= {"role", "content", "tool_calls", "tool_call_id"} for m in request.messages)


def two_providers(provider, **config):
    one = {"type": "openai", "base_url": provider.url, "api_key": API_KEY}
    return {"config": {"providers": {"deep": one, "other": one}, "model": "deep/scripted", **config}}


def test_they_go_back_in_the_next_round_after_a_restart_an_edit_and_a_fork(make_server, make_home, provider):
    home = make_home()
    server = make_server(home=home, **two_providers(provider))
    provider.plan(thoughtful(), text("one"))
    stream = server.client.turn("c", "hi")
    assert stream.all("thinking")[0]["content"] == "I think" and kept(provider.requests[-1])
    stored = home.checkpoint("c", "int_001")["final_agent_state"]["messages"][1]
    assert stored["provider_extras"]["deep"]["message"]["reasoning_details"] == DETAILS
    server.stop()
    server = make_server(home=home, **two_providers(provider))
    provider.plan(text("two"))
    server.client.turn("c", "and?")
    assert kept(provider.requests[-1])
    provider.plan(text("three"))
    server.client.edit("c", "int_002", "and so?").finish()
    assert kept(provider.requests[-1])
    fork = server.client.post("/chats/c/fork", {"interaction_id": "int_001"}).expect(201).json
    provider.plan(text("four"))
    server.client.turn(fork["id"], "more")
    assert kept(provider.requests[-1])
    replay = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json
    assert replay["match"] is True


def test_they_go_to_no_other_provider(make_server, provider):
    server = make_server(**two_providers(provider))
    provider.plan(thoughtful(), text("one"))
    server.client.turn("c", "hi")
    provider.plan(text("two"))
    server.client.turn("c", "and?", model="other/scripted")
    assert clean(provider.requests[-1])
    provider.plan(text("three"))
    server.client.turn("c", "and you?", model="deep/another")  # another model of the same provider
    assert kept(provider.requests[-1])


def test_they_outlive_the_process(make_server, make_home, provider):
    home = make_home()
    server = make_server(home=home, **two_providers(provider, tools={"require_approval": ["echo"]}))
    provider.plan(thoughtful())
    stream = server.client.start("c", "hi", on_disconnect="continue")
    asked = stream.until("approval_required")
    server.kill()
    server = make_server(home=home, **two_providers(provider, tools={"require_approval": ["echo"]}))
    provider.plan(text("one"))
    again = server.client.attach("c", "int_001")
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    again.finish()
    assert kept(provider.requests[-1])


def test_a_document_has_them_too(make_server, provider):
    server = make_server(**two_providers(provider))
    message = {"role": "assistant", "content": None, "reasoning_content": "I think", "reasoning_details": DETAILS, "refusal": None,
               "tool_calls": [{k: v for k, v in CALL.items() if k != "index"}]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    provider.plan(Reply([json.dumps(body).encode()], content_type="application/json"), text("one"))
    server.client.turn("c", "hi")
    assert kept(provider.requests[-1])


ITEM = {"type": "extra_forbidden", "loc": ["body", "messages", 2, "assistant", "reasoning_content"], "msg": "Extra inputs are not permitted"}
GROQ = "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]"


@pytest.mark.parametrize("status, body", [
    (400, {"error": {"message": GROQ, "type": "invalid_request_error"}}),
    (422, {"object": "error", "message": {"detail": [ITEM]}}),
    (422, {"detail": [{"loc": ["body"], "msg": "x" * 400}, ITEM]}),
    (400, {"error": {"message": "Extra inputs are not permitted", "param": "messages.2.assistant.reasoning_content"}}),
], ids=["text", "detail below message", "detail, far behind", "param"])
def test_a_member_that_the_provider_does_not_take_back_is_left_out(make_server, provider, status, body):
    server = make_server(**two_providers(provider, max_retries=1))
    refusal = Reply([json.dumps(body).encode()], status=status, content_type="application/json")
    provider.plan(thoughtful(), refusal, text("one"), text("two"))
    server.client.turn("c", "hi")
    server.client.turn("c", "and?")
    assert len(provider.requests) == 4
    for request in provider.requests[2:]:
        assert "reasoning_content" not in request.messages[2] and request.messages[2]["reasoning_details"] == DETAILS


def test_an_answer_that_was_cut_off_says_so_everywhere(make_server, make_home, provider):
    home = make_home()
    server = make_server(home=home, **two_providers(provider))
    provider.plan(Reply([delta({"content": "half a sen"}), *ending("length")]), Reply([delta({"content": "x"}, "content_filter"), DONE]), text("whole"))
    answer = server.client.turn("c", "hi").one("answer")
    assert (answer["content"], answer["truncated"], answer["reason"]) == ("half a sen", True, "length")
    assert server.client.turn("c", "hi").one("answer")["reason"] == "content_filter"
    whole = server.client.turn("c", "hi").one("answer")
    assert "truncated" not in whole.data and "reason" not in whole.data
    stored = home.checkpoint("c", "int_001")
    assert stored["status"] == "COMPLETED" and [e["reason"] for e in stored["agent_events"] if e["type"] == "ANSWER"] == ["length"]
    events = server.client.get("/chats/c/interactions/int_001/events").expect(200, "events_page").json["events"]
    assert [e["truncated"] for e in events if e["type"] == "ANSWER"] == [True]
    replay = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json
    assert replay["match"] is True


def test_headers_and_query_of_a_provider(make_server, provider):
    one = {"type": "openai", "base_url": provider.url + "?api-version=1", "api_key": API_KEY,
           "headers": {"X-Route": "${TEST_API_KEY}", "authorization": "Bearer mine"}, "query": {"a b": "c&d"}}
    server = make_server(config={"providers": {"deep": one}, "model": "deep/scripted"})
    provider.answer_with(lambda request: text("ok"))
    server.client.turn("c", "hi")
    server.client.get("/models").expect(200)
    for path, headers in [(provider.requests[0].path, dict(provider.requests[0].headers)), provider.listings[0]]:
        assert path.endswith("?api-version=1&a%20b=c%26d")
        assert headers["X-Route"] == API_KEY and headers["authorization"] == "Bearer mine" and "Authorization" not in headers
