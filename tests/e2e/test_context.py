"""A chat that is longer than the model's window: older messages are sent as a summary, and stay in the chat."""
import json

import pytest
from support.provider import Gate, call, text, tools

WINDOW, BUDGET = 8192, 6144
OPTIONS = {"tools": {"allow": ["echo", "read_file"]}, "models": {"test/scripted": {"context_window": WINDOW}}}


@pytest.fixture
def server(make_server, provider):
    return make_server(provider, config=OPTIONS)


def size(request):
    """Tokens of a request, at three bytes each; a model's template adds a few around each message."""
    texts = [m.get("content") or json.dumps(m["tool_calls"]) for m in request.messages] + [json.dumps(request.body.get("tools"))]
    return sum(len(t.encode()) / 3 + 4 for t in texts)


def question(number):
    return f"question {number} " + "q" * 60


def answer(number):
    return f"answer {number} " + "a" * 60


def talk(server, provider, turns):
    for number in turns:
        provider.answer_with(lambda _, number=number: text(answer(number)))
        server.client.turn("c", question(number))


def first_compaction(server):
    for interaction in server.client.history("c")["interactions"]:
        if any(e["type"] == "COMPACTED" for e in interaction["agent_events"]):
            return interaction["id"]


@pytest.mark.limit(120)
def test_400_turns_in_a_small_window(server, provider):
    talk(server, provider, range(400))
    assert len(provider.requests) >= 400
    assert all(size(request) <= BUDGET for request in provider.requests)
    for number, request in enumerate(r for r in provider.requests if r.last["content"].startswith("question")):
        assert size(request) <= BUDGET
        sent = [m["content"] for m in request.conversation]
        assert sent[0] == question(0)
        everything = [t for n in range(number) for t in (question(n), answer(n))] + [question(number)]
        assert sent[-5:] == everything[-5:]
    assert len(sent) < 801
    state = server.client.interaction("c", "int_400")["final_agent_state"]
    assert [m["content"] for m in state["messages"]] == [t for n in range(400) for t in (question(n), answer(n))]
    assert state["compaction"]["summary"] == answer(int(state["compaction"]["summary"].split()[1]))  # this model's answer to everything

    compacted = first_compaction(server)
    event = [e for e in server.client.interaction("c", compacted)["agent_events"] if e["type"] == "COMPACTED"][0]
    assert event["tokens_before"] > event["budget"] == BUDGET >= event["tokens_after"]
    number = int(compacted[4:]) - 1
    before = f"int_{number:03}"
    assert "compaction" not in server.client.interaction("c", before)["final_agent_state"]
    provider.answer_with(lambda _: text("short"))
    stream = server.client.edit("c", before, "something else")
    stream.finish()
    assert not stream.all("compacted")
    sent = [m["content"] for m in provider.requests[-1].conversation]
    assert sent == [t for n in range(number - 1) for t in (question(n), answer(n))] + ["something else"]
    edited = server.client.history("c")["interactions"][-1]
    assert "compaction" not in server.client.interaction("c", edited["id"])["final_agent_state"]


def test_a_tool_result_that_is_too_long_is_shortened_for_the_model(server, provider):
    (server.home.workspace / "long").write_text("line\n" * 9000)
    provider.plan(tools(call("read_file", {"path": "long"})), text("read"))
    stream = server.client.turn("c", "read it")
    sent = provider.requests[1]
    assert size(sent) <= BUDGET and "shortened" in sent.last["content"]
    assert len(stream.one("tool_result")["tool_output"]) > 3 * BUDGET
    stored = server.client.interaction("c", "int_001")["final_agent_state"]["messages"]
    assert stored[2]["content"] == stream.one("tool_result")["tool_output"]


def test_old_results_are_cleared_before_anything_is_summed_up(make_server, provider, make_home):
    home = make_home()
    for n in range(12):
        (home.workspace / f"part{n}").write_text(f"line of {n}\n" * 130)
    server = make_server(provider, home, config=OPTIONS)
    for n in range(12):
        provider.plan(tools(call("read_file", {"path": f"part{n}"}, f"c{n}")), text(f"read {n}"))
        server.client.turn("c", f"read part {n}")
    assert all(size(request) <= BUDGET for request in provider.requests)
    events = [(i["id"], e) for i in server.client.history("c")["interactions"] for e in i["agent_events"] if e["type"] == "COMPACTED"]
    first, event = events[0]
    assert event["results"] > 0 and event["messages"] == 0 and event["summary"] == "" and event["tokens_after"] < BUDGET * 3 / 4 < BUDGET < event["tokens_before"]
    assert all(e["results"] for _, e in events), "nothing had to be summed up"
    results = [m["content"] for m in provider.requests[-1].messages if m["role"] == "tool"]
    assert "cleared to save room" in results[0] and len(results) == 12 and all("line of" in r for r in results[-3:])
    whole = server.client.interaction("c", "int_012")["final_agent_state"]
    assert whole["cleared"] > 0 and "compaction" not in whole and all("line of" in m["content"] for m in whole["messages"] if m["role"] == "tool")
    assert server.client.post(f"/chats/c/interactions/{first}/replay", {"mode": "recorded"}).expect(200).json["match"]
    # A new process sends the same; an edit of what came before sends all again.
    server.stop()
    server = make_server(provider, home, config=OPTIONS)
    provider.plan(text("ok"))
    server.client.turn("c", "go on")
    assert [m["content"] for m in provider.requests[-1].messages if m["role"] == "tool"] == results
    before = f"int_{int(first[4:]) - 1:03}"
    provider.plan(text("ok"))
    server.client.edit("c", before, "something else").finish()
    assert not any("cleared" in m["content"] for m in provider.requests[-1].messages if m["role"] == "tool")


def test_a_message_that_is_too_long_is_an_error_and_an_edit_helps(server, provider):
    stream = server.client.turn("c", "x" * 30_000, "FAILED")
    assert stream.one("error")["code"] == "context_length" and not provider.requests
    provider.plan(text("fine"))
    server.client.edit("c", "int_001", "short").finish()


def test_a_compaction_survives_the_process(make_server, provider, make_home):
    home = make_home()
    server = make_server(provider, home, config=OPTIONS)
    gate = Gate()
    provider.answer_with(lambda _: text("a" * 4000))
    for number in range(4):
        server.client.turn("c", question(number) + "q" * 2000)
    provider.answer_with(lambda request: text("a" * 4000) if "sum up" in request.messages[0]["content"] else text("begun", gate, "ended"))
    stream = server.client.start("c", question(4) + "q" * 2000, on_disconnect="continue")
    told = stream.until("compacted")
    gate.wait_reached()
    server.kill()
    gate.release()
    server = make_server(provider, home, config=OPTIONS)
    stored = server.client.interaction("c", "int_005")
    assert stored["final_agent_state"]["compaction"]["summary"] == told["summary"]
    assert [e["summary"] for e in stored["agent_events"] if e["type"] == "COMPACTED"] == [told["summary"]]
    assert "a" * 100 in told["summary"] and len(told["summary"].encode()) <= 3 * BUDGET / 10
    sent = provider.requests[-1].messages
    provider.answer_with(lambda _: text("again"))
    again = server.client.stream("POST", "/chats/c/interactions/int_005/resume")
    again.finish()
    assert not again.all("compacted") and provider.requests[-1].messages == sent


# --- a summary that somebody asks for ---------------------------------------------------------------------------------

def summed_up(request):
    return "sum up" in request.messages[0]["content"]


def answers(provider, summary="they spoke of numbers"):
    provider.answer_with(lambda request: text(summary if summed_up(request) else "fine"))


@pytest.mark.parametrize("config", [OPTIONS, {}], ids=["a known window", "no known window"])
def test_a_summary_that_is_asked_for_is_sent_from_then_on(make_server, provider, config):
    server = make_server(provider, config=config)
    answers(provider)
    for number in range(3):
        server.client.turn("c", f"question {number}")
    stream = server.client.turn("c", "question 3", compact=True)
    told = stream.one("compacted")
    assert told["summary"] == "they spoke of numbers" and told["messages"] == 5, "all messages after the first"
    for number in (4, 5):
        server.client.turn("c", f"question {number}")
    sent = [m["content"] for m in provider.requests[-1].conversation]
    assert sent[0] == "question 0" and "they spoke of numbers" in sent[1]
    assert sent[2:] == ["question 3", "fine", "question 4", "fine", "question 5"]
    state = server.client.interaction("c", "int_006")["final_agent_state"]
    assert len(state["messages"]) == 12, "the chat keeps all messages"
    assert state["compaction"] == {"first": 1, "end": 6, "summary": "they spoke of numbers", "requested": True}
    for number in range(1, 7):
        report = server.client.post(f"/chats/c/interactions/int_{number:03}/replay", {"mode": "recorded"}).expect(200).json
        assert report["match"] is True, report
    # An edit restores the state before it.
    server.client.edit("c", "int_004", "another question").finish()
    assert [m["content"] for m in provider.requests[-1].conversation][:4] == ["question 0", "fine", "question 1", "fine"]


def test_a_summary_that_is_asked_for_twice_tells_what_the_first_told(server, provider):
    answers(provider)
    for number in range(2):
        server.client.turn("c", f"question {number}")
    server.client.turn("c", "question 2", compact=True)
    answers(provider, "and then of letters")
    stream = server.client.turn("c", "question 3", compact=True)
    assert stream.one("compacted")["summary"] == "and then of letters"
    assert any("they spoke of numbers" in m["content"] for m in [r for r in provider.requests if summed_up(r)][-1].messages)


def test_there_may_be_nothing_to_sum_up(server, provider):
    answers(provider)
    assert not server.client.turn("c", "question 0", compact=True).all("compacted")
    assert server.client.turn("c", "question 1", compact=True).one("compacted")["messages"] == 1


def test_what_waits_cannot_ask_for_a_summary(server, provider):
    refused = server.client.post("/chats/c/interactions", {"user_message": "x", "compact": True, "if_running": "queue"}).expect(400)
    assert "compact" in refused.json["error"]["message"]
    server.client.post("/chats/c/interactions", {"user_message": "x", "compact": "yes"}).expect(400)
