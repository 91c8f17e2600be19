"""A model that goes round in a circle is told so, and stopped if it does not listen."""
import pytest
from support.provider import call, text, tools


def repeat(provider, *arguments):
    """The model makes these calls in turn, for ever."""
    count = iter(range(1000))

    def reply(_):
        number = next(count)
        return tools(call("echo", {"text": arguments[number % len(arguments)]}, f"call_{number}"))

    provider.answer_with(reply)


@pytest.mark.parametrize("arguments, rounds", [(["a"], 4), (["a", "b"], 7)])
def test_a_circle_ends_in_loop_detected(server, provider, arguments, rounds):
    repeat(provider, *arguments)
    stream = server.client.turn("c", "go", "FAILED")
    assert stream.one("error")["code"] == "loop_detected" and len(provider.requests) == rounds
    assert [(e["tool_name"], e["count"]) for e in stream.all("loop_detected")] == [("echo", 3), ("echo", 4)]
    assert len(stream.all("tool_call")) == rounds - 2 and len(stream.all("tool_result")) == rounds
    told = provider.requests[-1].conversation[-1]
    assert told["role"] == "tool" and "Do not make it again" in told["content"]
    stored = server.client.interaction("c", "int_001")
    assert stored["error"]["code"] == "loop_detected"
    assert [e["type"] for e in stored["agent_events"]].count("LOOP_DETECTED") == 2


def test_a_model_that_listens_goes_on_and_the_next_turn_begins_anew(server, provider):
    same = call("echo", {"text": "a"})
    provider.plan(tools(same), tools(same), tools(same), text("I see"))
    stream = server.client.turn("c", "go")
    assert stream.one("loop_detected")["count"] == 3 and len(stream.all("tool_call")) == 2
    provider.plan(tools(same), tools(same), text("fine"))
    assert not server.client.turn("c", "again").all("loop_detected")


def test_an_edit_restores_the_count(server, provider):
    same = call("echo", {"text": "a"})
    provider.plan(text("hello"), tools(same), tools(same), tools(same), text("I see"))
    server.client.turn("c", "hi")
    server.client.turn("c", "go").one("loop_detected")
    provider.plan(tools(same), tools(same), text("fine"))
    stream = server.client.edit("c", "int_002", "go once more")
    stream.finish()
    assert not stream.all("loop_detected") and len(stream.all("tool_call")) == 2
    assert [m["role"] for m in provider.requests[5].conversation] == ["user", "assistant", "user"]


def test_a_call_that_asks_is_not_asked_about_a_third_time(make_server, provider):
    server = make_server(provider)
    same = call("run_shell", {"command": "echo x >> ran"})
    provider.plan(tools(same), tools(same), tools(same), text("I see"))
    stream = server.client.start("c", "go")
    for _ in range(2):
        server.client.approve("c", stream.interaction, stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    assert len(stream.all("approval_required")) == 2 and (server.home.workspace / "ran").read_text() == "x\nx\n"
