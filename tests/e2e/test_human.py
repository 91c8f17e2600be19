"""A tool asks a person: the run waits whatever happens, and one answer becomes the tool's result."""
import json
import time

import pytest
from support.provider import call, text, tools
from support.timing import SLACK, at_once

QUIET = ("usage", "text_delta")


def ask(client, provider, chat="c", options=None, **more):
    """Starts a run that waits for input: (stream, input_required event)."""
    arguments = {"question": "Which colour?", **({"options": options} if options else {})}
    provider.plan(tools(call("ask_human", arguments, "call_1")))
    stream = client.start(chat, "paint it", **more)
    return stream, stream.until("input_required")


def test_the_answer_is_the_tools_result(server, provider):
    client = server.client
    stream, asked = ask(client, provider, options=["red", "blue"])
    assert (asked["call_id"], asked["question"], asked["options"]) == ("call_1", "Which colour?", ["red", "blue"])
    assert client.interaction("c", "int_001")["status"] == "WAITING_INPUT"
    assert client.get("/chats").json["chats"][0]["head_status"] == "WAITING_INPUT"
    waiting = client.get("/approvals").expect(200, "approvals").json
    assert waiting["approvals"] == []
    assert [(w["chat_id"], w["interaction_id"], w["request_id"]) for w in waiting["inputs"]] == [("c", "int_001", asked["request_id"])]
    second = client.attach("c", "int_001")
    opened = second.next()
    assert opened["status"] == "WAITING_INPUT" and [p["request_id"] for p in opened["pending_inputs"]] == [asked["request_id"]]
    second.close()
    provider.plan(text("painted"))
    answer = client.respond("c", "int_001", asked["request_id"], "grün \u202e").expect(200, "respond_response").json
    assert answer == {"status": "processed", "request_id": asked["request_id"]}
    stream.finish()
    assert stream.names(without=QUIET) == ["interaction_started", "tool_call", "input_required", "input_received", "tool_result", "answer", "interaction_complete"]
    assert stream.one("input_received")["response"] == "grün \u202e"
    result = stream.one("tool_result")
    assert result["tool_output"] == "grün \u202e" and not result["is_error"]
    assert provider.requests[1].last["content"] == "grün \u202e"
    assert client.get("/approvals").json["inputs"] == []


def test_it_is_answered_once(client, provider):
    stream, asked = ask(client, provider)
    provider.plan(text("ok"))
    codes = at_once([lambda text=str(i): client.respond("c", "int_001", asked["request_id"], text).status for i in range(4)])
    assert sorted(codes) == [200, 400, 400, 400]
    stream.finish()
    client.respond("c", "int_001", asked["request_id"], "late").error(400, "already_processed")


def test_unknown_ids_are_404(client, provider):
    stream, asked = ask(client, provider)
    client.respond("c", "int_001", "request_" + "0" * 32, "x").error(404)
    client.respond("c", "int_002", asked["request_id"], "x").error(404)
    client.respond("other", "int_001", asked["request_id"], "x").error(404)
    client.approve("c", "int_001", asked["request_id"]).error(404)
    assert client.interaction("c", "int_001")["status"] == "WAITING_INPUT"
    client.cancel("c", "int_001")
    stream.finish("CANCELLED")


@pytest.mark.parametrize("body", [{}, {"response": "x"}, {"request_id": "A"}, {"request_id": "A", "response": ""},
                                  {"request_id": "A", "response": 7}, {"request_id": "A", "response": ["x"]},
                                  {"request_id": "A", "response": "x", "declined": True}, {"request_id": "A", "declined": False},
                                  {"request_id": "A", "response": "x", "more": 1}, [], "text"])
def test_malformed_answers_are_400_and_answer_nothing(client, provider, body):
    stream, asked = ask(client, provider)
    if isinstance(body, dict) and body.get("request_id") == "A":
        body = {**body, "request_id": asked["request_id"]}
    client.post("/chats/c/interactions/int_001/respond", json.dumps(body)).error(400)
    assert client.interaction("c", "int_001")["status"] == "WAITING_INPUT"
    client.cancel("c", "int_001")
    stream.finish("CANCELLED")


def test_declining_is_told_to_the_model(client, provider):
    stream, asked = ask(client, provider)
    provider.plan(text("never mind"))
    client.respond("c", "int_001", asked["request_id"]).expect(200)
    stream.finish()
    assert stream.one("input_received")["response"] is None
    assert stream.one("tool_result")["is_error"] and "declined" in provider.requests[1].last["content"]


def test_a_waiting_run_is_cancelled_at_once(client, provider):
    stream, asked = ask(client, provider)
    begun = time.monotonic()
    client.cancel("c", "int_001").expect(200)
    assert stream.until("cancelled").at - begun < 1 * SLACK  # test_cancel reports the figure
    stream.finish("CANCELLED")
    client.respond("c", "int_001", asked["request_id"], "late").error(400, "already_processed")
    roles = [m["role"] for m in client.interaction("c", "int_001")["final_agent_state"]["messages"]]
    assert roles == ["user", "assistant", "tool"]


def test_a_question_outlives_its_client(make_server, provider):
    client = make_server(provider, config={"disconnect_grace_s": 0.05}).client
    stream, asked = ask(client, provider)
    stream.close()
    time.sleep(0.3 * SLACK)  # several times the grace period
    assert client.interaction("c", "int_001")["status"] == "WAITING_INPUT"
    provider.plan(text("ok"))
    again = client.stream("POST", "/chats/c/interactions/int_001/respond", {"request_id": asked["request_id"], "response": "red"},
                          headers={"Accept": "text/event-stream"}, first_seq=asked.seq + 1)
    again.finish()
    assert again.one("tool_result")["tool_output"] == "red"


@pytest.mark.parametrize("ends", [["kill"], ["stop"], ["kill", "stop", "kill"]])
def test_a_question_survives(make_server, make_home, provider, ends):
    home = make_home()
    server = make_server(provider, home=home)
    stream, asked = ask(server.client, provider, options=["red"])
    seen = [(e.name, e.seq, e.data) for e in stream.events]
    for end in ends:
        getattr(server, end)()
        stream.close()
        server = make_server(provider, home=home)
        listed = server.client.get("/approvals").expect(200, "approvals").json["inputs"]
        assert [(w["request_id"], w["question"], w["options"]) for w in listed] == [(asked["request_id"], "Which colour?", ["red"])]
        assert server.client.interaction("c", "int_001")["status"] == "WAITING_INPUT"
        stream = server.client.attach("c", "int_001", after=0, gapless=True)
        stream.until("input_required")
        assert [(e.name, e.seq, e.data) for e in stream.events] == seen
    provider.plan(text("painted"))
    server.client.respond("c", "int_001", asked["request_id"], "red").expect(200)
    stream.finish()
    server.client.respond("c", "int_001", asked["request_id"], "blue").error(400, "already_processed")
    assert stream.names(without=QUIET) == ["interaction_started", "tool_call", "input_required", "input_received", "tool_result", "answer", "interaction_complete"]
    assert len(provider.requests) == 2 and provider.requests[1].last["content"] == "red"
    server.kill()
    server = make_server(provider, home=home)
    server.client.respond("c", "int_001", asked["request_id"], "blue").error(400, "already_processed")
    assert server.client.interaction("c", "int_001")["status"] == "COMPLETED"


def test_a_question_after_a_restart_can_be_cancelled(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    stream, asked = ask(server.client, provider)
    server.kill()
    stream.close()
    server = make_server(provider, home=home)
    server.client.cancel("c", "int_001").expect(200)
    server.client.attach("c", "int_001", after=0, gapless=True).finish("CANCELLED")
    server.client.respond("c", "int_001", asked["request_id"], "late").error(400, "already_processed")


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_approved_question_and_the_calls_after_it(make_server, make_home, provider, end):
    config = {"tools": {"require_approval": ["ask_human"]}}
    home = make_home()
    server = make_server(provider, home=home, config=config)
    provider.plan(tools(call("ask_human", {"question": "Which?"}, "a"), call("echo", {"text": "after"}, "b")))
    stream = server.client.start("c", "go")
    server.client.approve("c", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    asked = stream.until("input_required")
    getattr(server, end)()
    stream.close()
    server = make_server(provider, home=home, config=config)
    assert server.client.get("/approvals").json["approvals"] == []
    provider.plan(text("ok"))
    stream = server.client.attach("c", "int_001", after=0, gapless=True)
    server.client.respond("c", "int_001", asked["request_id"], "this").expect(200)
    stream.finish()
    assert [r["tool_output"] for r in stream.all("tool_result")] == ["this", "after"]


def test_the_offline_model_asks(make_server):
    client = make_server().client
    stream = client.start("c", "ask: What is your name?")
    asked = stream.until("input_required")
    client.respond("c", "int_001", asked["request_id"], "Ada").expect(200)
    stream.finish()
    assert asked["question"] == "What is your name?"
    assert stream.one("answer")["content"] == "You answered: Ada"
