"""Cancellation is quick, complete and saved, and the chat continues."""
import time

import pytest
from support.provider import Gate, call, text, tools
from support.server import processes
from support.timing import SLACK, eventually, median

REPETITIONS = 20


def cancelled_after(client, stream, chat, interaction):
    """Seconds from the cancel POST to the `cancelled` event."""
    began = time.monotonic()
    answer = client.cancel(chat, interaction).expect(200, "cancel_response")
    assert answer.json["status"] == "cancelling" and answer.json["interaction_id"] == interaction
    event = stream.until("cancelled")
    assert event["reason"] == "requested"
    return event.at - began


def check_saved(server, stream, chat, interaction):
    assert [e.name for e in stream.finish("CANCELLED")][-2:] == ["cancelled", "interaction_complete"]
    stored = server.home.checkpoint(chat, interaction)
    assert stored["status"] == "CANCELLED" and stored["final_agent_state"]["messages"]
    assert stored["agent_events"][-1]["type"] == "CANCELLED"


def goes_on(server, provider, chat):
    provider.plan(text("still here"))
    server.client.turn(chat, "and now?")
    assert provider.requests[-1].last == {"role": "user", "content": "and now?"}


def test_while_the_model_is_silent(server, provider, figure):
    times = []
    for number in range(REPETITIONS):
        chat, gate = f"c{number}", Gate()
        provider.plan(text("some ", gate))
        stream = server.client.start(chat, "hello")
        stream.until("text_delta")
        gate.wait_reached()
        times.append(cancelled_after(server.client, stream, chat, "int_001"))
        gate.wait_left()
        check_saved(server, stream, chat, "int_001")
    figure(f"cancel while the model is silent: median {median(times) * 1e3:.1f} ms, max {max(times) * 1e3:.1f} ms")
    assert median(times) < 0.05 * SLACK
    goes_on(server, provider, "c0")
    contents = [m.get("content") for m in provider.requests[-1].conversation]
    assert contents[0] == "hello" and any("some" in (c or "") for c in contents[1:-1]), "the text so far is kept"


def test_before_the_provider_has_answered_at_all(server, provider):
    gate = Gate()
    from support.provider import Reply
    provider.plan(Reply([gate]))
    stream = server.client.start("c", "hello")
    gate.wait_reached()
    assert cancelled_after(server.client, stream, "c", "int_001") < 1 * SLACK
    check_saved(server, stream, "c", "int_001")
    goes_on(server, provider, "c")


def test_while_an_approval_is_pending(server, provider, figure):
    times = []
    for number in range(REPETITIONS):
        provider.plan(tools(call("run_shell", {"command": "true"})))
        stream = server.client.start(f"c{number}", "go")
        stream.until("approval_required")
        times.append(cancelled_after(server.client, stream, f"c{number}", "int_001"))
        check_saved(server, stream, f"c{number}", "int_001")
    figure(f"cancel while an approval is pending: median {median(times) * 1e3:.1f} ms, max {max(times) * 1e3:.1f} ms")
    assert median(times) < 0.05 * SLACK
    assert server.client.get("/approvals").json == {"approvals": [], "inputs": []}
    goes_on(server, provider, "c0")


@pytest.mark.limit(60)
def test_while_a_tool_sleeps_and_nothing_of_it_is_left(make_server, provider, figure):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    times = []
    for number in range(REPETITIONS):
        marker = f"98765.{number:03}"
        # One child in its own session, one in the background, one in the foreground.
        command = f"setsid sleep {marker} & sleep {marker} & echo ready; sleep {marker}"
        provider.plan(tools(call("run_shell", {"command": command, "timeout_s": 600})))
        stream = server.client.start(f"c{number}", "go")
        stream.until("tool_call")
        eventually(lambda: len(processes(f"sleep\0{marker}")) >= 3, "the tool's three processes run")
        times.append(cancelled_after(server.client, stream, f"c{number}", "int_001"))
        check_saved(server, stream, f"c{number}", "int_001")
        eventually(lambda: not processes(marker), "the tool's processes are gone", 3 * SLACK)
    figure(f"cancel while a tool sleeps: median {median(times) * 1e3:.1f} ms, max {max(times) * 1e3:.1f} ms")
    assert median(times) < 0.05 * SLACK
    goes_on(server, provider, "c0")
    roles = [m["role"] for m in provider.requests[-1].conversation]
    assert roles[:3] == ["user", "assistant", "tool"] and roles[-1] == "user"


def test_with_several_calls_open_every_call_has_its_result(server, provider):
    provider.plan(tools(call("echo", {"text": "x"}, "a"), call("run_shell", {"command": "true"}, "b"), call("echo", {"text": "y"}, "d")))
    stream = server.client.start("c", "go")
    stream.until("approval_required")
    cancelled_after(server.client, stream, "c", "int_001")
    check_saved(server, stream, "c", "int_001")
    assert sorted(e["id"] for e in stream.all("tool_result")) == ["a", "b", "d"]
    goes_on(server, provider, "c")  # the provider checks that calls and results are paired


def test_it_is_idempotent_and_a_finished_one_reports_its_status(client, provider):
    gate = Gate()
    provider.plan(text("a", gate))
    stream = client.start("c", "hello")
    stream.until("text_delta")
    client.cancel("c", "int_001").expect(200, "cancel_response")
    client.cancel("c", "int_001").expect(200, "cancel_response")
    stream.finish("CANCELLED")
    assert len(stream.all("cancelled")) == 1
    assert client.cancel("c", "int_001").expect(200, "cancel_response").json["status"] == "CANCELLED"
    provider.plan(text("b"))
    client.turn("c", "more")
    assert client.cancel("c", "int_002").expect(200, "cancel_response").json["status"] == "COMPLETED"


def test_unknown_ones_are_404(client, provider):
    provider.plan(text("a"))
    client.turn("c", "hello")
    client.cancel("c", "int_002").error(404)
    client.cancel("nobody", "int_001").error(404)


def test_it_works_as_curl_sends_it_without_a_body_or_type(server, provider):
    from support.client import curl
    gate = Gate()
    provider.plan(text("a", gate))
    stream = server.client.start("c", "hello")
    stream.until("text_delta")
    code, out = curl("-X", "POST", f"http://localhost:{server.port}/chats/c/interactions/int_001/cancel")
    assert code == 0 and b'"cancelling"' in out
    stream.finish("CANCELLED")
