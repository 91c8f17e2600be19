"""Tokens and cost of a chat, budgets that stop a run, and the limit on tool calls per minute."""
import pytest
from support import schemas
from support.provider import Gate, call, text, tools

PRICES = {"models": {"test/scripted": {"input_price_per_mtok": 1000, "output_price_per_mtok": 2000}}}
TURN = {"input_tokens": 11, "output_tokens": 7}  # what the scripted provider counts
COST = 0.025  # per request


def usage(server, chat="c"):
    return server.client.get(f"/chats/{chat}/usage").expect(200, "chat_usage").json


def total(requests, cost=False):
    tokens = {name: count * requests for name, count in TURN.items()}
    amount = {"cost": round(COST * requests, 9) if cost else None}
    models = [{"model": "test/scripted", **tokens, **amount}] if requests else []
    return {**tokens, **(amount if requests else {"cost": 0}), "models": models}


def turn(server, provider, *replies, status="COMPLETED", chat="c"):
    provider.plan(*(replies or [text("ok")]))
    stream = server.client.turn(chat, "go", status)
    provider.forget_plan()
    return stream


def test_a_chat_tells_what_it_has_used_on_its_branch_and_in_all(make_server, provider):
    server = make_server(provider, config=PRICES)
    assert server.client.get("/chats/c/usage").error(404, "not_found")
    turn(server, provider, tools(call("echo", {"text": "a"})), text("ok"))
    turn(server, provider)
    provider.plan(text("edited"))
    server.client.edit("c", "int_002", "other").finish()
    assert usage(server) == {"chat_id": "c", "branch": total(3, True), "all": total(4, True)}
    assert server.client.history("c")["usage"] == total(3, True)
    assert server.client.history("c", "all")["usage"] == total(3, True)
    server.client.post("/chats", {"id": "empty"}).expect(201)
    assert usage(server, "empty")["all"] == total(0)


def test_models_have_their_prices(make_server, provider):
    cached = {"input_price_per_mtok": 3, "output_price_per_mtok": 15, "cache_read_price_per_mtok": 0.3, "cache_write_price_per_mtok": 3.75,
              "search_price_per_thousand": 10}
    server = make_server(provider, config={"models": {**PRICES["models"], "test/cached": cached, "test/free": {"context_window": 9}}})
    listed = {m["name"]: m.get("prices") for m in server.client.get("/models").expect(200, "models").json["models"]}
    assert listed == {"offline": None, "test/scripted": {"input": 1000, "output": 2000}, "test/free": None,
                      "test/cached": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75, "searches": 10}}


def test_without_a_price_there_is_no_cost_and_running_turns_count(make_server, provider):
    server = make_server(provider)
    gate = Gate()
    provider.plan(tools(call("echo", {"text": "a"})), text("begun", gate, "ended"))
    stream = server.client.start("c", "go")
    gate.wait_reached()
    stream.until("usage")
    assert usage(server)["all"] == total(1)
    gate.release()
    stream.finish()
    assert usage(server)["all"] == total(2)


def test_an_interaction_that_has_used_its_tokens_ends_between_two_rounds(make_server, provider):
    server = make_server(provider, config={"budget": {"max_tokens_per_interaction": 18}})
    stream = turn(server, provider, tools(call("echo", {"text": "a"})), status="FAILED")
    error = stream.one("error").data
    assert (error["code"], error["message"], error["retryable"]) == (
        "budget_exceeded", "this interaction has used 18 tokens, and may use 18", False)
    stored = server.client.interaction("c", "int_001")
    assert stored["error"]["code"] == "budget_exceeded" and stored["usage"] == TURN
    assert [m["role"] for m in stored["final_agent_state"]["messages"]] == ["user", "assistant", "tool"]
    assert len(provider.requests) == 1
    turn(server, provider)  # an answer is never cut off, and the next interaction has its own budget


@pytest.mark.parametrize("budget, message", [
    ({"max_tokens_per_chat": 50}, "this chat has used 54 tokens, and may use 50"),
    ({"max_cost_per_chat": 0.07}, "this chat has cost 0.075, and may cost 0.07")])
def test_a_chat_that_has_used_its_budget_sends_nothing_more(make_server, make_home, provider, budget, message):
    home = make_home()
    server = make_server(provider, home, config={**PRICES, "budget": budget})
    turn(server, provider)
    for text_of_edit in ("again", "and again"):  # superseded branches count, too
        provider.plan(text("ok"))
        server.client.edit("c", "int_001", text_of_edit).finish()
    for _ in range(2):
        stream = turn(server, provider, status="FAILED")
        assert stream.one("error")["message"] == message and len(provider.requests) == 3
        server.stop()
        server = make_server(provider, home, config={**PRICES, "budget": budget})
    turn(server, provider, chat="other")
    assert usage(server)["all"] == total(3, True)
    server.stop()
    server = make_server(provider, home, config=PRICES)
    provider.plan(text("at last"))
    again = server.client.stream("POST", "/chats/c/interactions/int_005/resume")
    again.finish()
    assert again.one("answer")["content"] == "at last"


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_was_used_before_the_end_of_a_process_counts(make_server, make_home, provider, end):
    home = make_home()
    config = {"budget": {"max_tokens_per_interaction": 60}}
    server = make_server(provider, home, config=config)
    provider.plan(tools(call("echo", {"text": "a"})), tools(call("write_file", {"path": "a", "content": "b"})))
    stream = server.client.start("c", "go", on_disconnect="continue")
    asked = stream.until("approval_required")
    getattr(server, end)()
    server = make_server(provider, home, config=config)
    provider.plan(tools(call("write_file", {"path": "c", "content": "d"}, "second")))
    attached = server.client.attach("c", "int_001", after=asked.seq)
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    asked = attached.until("approval_required")
    getattr(server, end)()
    attached.close()
    server = make_server(provider, home, config=config)
    provider.plan(text("fine"))
    attached = server.client.attach("c", "int_001", after=asked.seq)
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    attached.finish()
    # The rounds that were cut off emitted no usage event, because it comes only after a round's calls.
    assert server.client.interaction("c", "int_001")["usage"] == {"input_tokens": 44, "output_tokens": 28}


def test_tool_calls_beyond_the_rate_do_not_run(make_server, provider):
    server = make_server(provider, config={"max_tool_calls_per_minute": 2, "approval_mode": "approve_all"})
    calls = [call("write_file", {"path": f"f{n}", "content": "x"}, f"c{n}") for n in range(3)]
    stream = turn(server, provider, tools(*calls), text("ok"))
    results = [e.data for e in stream.all("tool_result")]
    assert [r["is_error"] for r in results] == [False, False, True]
    assert "2 tool calls in a minute. Wait " in results[2]["tool_output"]
    assert provider.requests[1].last["content"] == results[2]["tool_output"]
    assert sorted(f.name for f in server.home.workspace.iterdir()) == ["f0", "f1"]
    turn(server, provider, tools(call("write_file", {"path": "g", "content": "x"})), text("ok"), chat="other")
    assert (server.home.workspace / "g").exists()
    report = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200, "replay_report").json
    assert report["match"], report


def test_the_schema_knows_the_settings():
    schemas.check("config", {**PRICES, "budget": {"max_tokens_per_interaction": 1, "max_tokens_per_chat": 1, "max_cost_per_chat": 0.1},
                             "max_tool_calls_per_minute": 0, "system_prompt": False, "prompt_dir": "p"})
