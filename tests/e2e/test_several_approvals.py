"""Several calls of one round that need approval: asked about at once, answered in any order, run in their original order."""
import itertools
import time

import pytest
from support.provider import Gate, call, text, tools
from support.timing import SLACK, SOON, eventually

QUIET = ("usage", "text_delta", "tool_output_delta", "files_changed")


def command(number):
    return {"command": f"echo {number} >> log.txt"}


def ask(client, provider, count=3, chat="c", **more):
    provider.plan(tools(*[call("run_shell", command(n), f"call_{n}") for n in range(count)]))
    stream = client.start(chat, "do it", **more)
    return stream, [stream.until("approval_required") for _ in range(count)]


def log(server):
    file = server.home.workspace / "log.txt"
    return file.read_text().split() if file.exists() else []


def approve(client, asked, approved=True, chat="c", **more):
    return client.approve(chat, "int_001", asked["approval_id"], approved, **more).expect(200)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_all_are_asked_at_once_and_run_in_their_order_whatever_the_answers_order(server, provider, order):
    client = server.client
    stream, asked = ask(client, provider)
    assert [a["call_id"] for a in asked] == ["call_0", "call_1", "call_2"]
    waiting = client.get("/approvals").expect(200, "approvals").json["approvals"]
    assert [w["approval_id"] for w in waiting] == [a["approval_id"] for a in asked]
    provider.plan(text("ok"))
    for number in order:
        assert client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
        approve(client, asked[number])
    stream.finish()
    assert log(server) == ["0", "1", "2"]
    assert [e["id"] for e in stream.all("tool_result")] == ["call_0", "call_1", "call_2"]
    assert [m["tool_call_id"] for m in provider.requests[1].conversation[-3:]] == ["call_0", "call_1", "call_2"]
    assert stream.names(without=QUIET)[:4] == ["interaction_started", *["approval_required"] * 3]


def test_one_that_is_answered_first_waits_for_those_before_it(server, provider):
    stream, asked = ask(server.client, provider, 2)
    approve(server.client, asked[1])
    assert stream.until("approved")["call_id"] == "call_1"  # announced at once, run later
    assert log(server) == []
    provider.plan(text("ok"))
    approve(server.client, asked[0], False, feedback="no")
    stream.finish()
    assert log(server) == ["1"]
    assert stream.names(without=QUIET) == ["interaction_started", "approval_required", "approval_required", "approved", "rejected",
                                           "tool_result", "tool_call", "tool_result", "answer", "interaction_complete"]


def test_the_first_runs_while_the_second_still_waits(server, provider):
    stream, asked = ask(server.client, provider, 2, on_disconnect="cancel")
    approve(server.client, asked[0])
    stream.until("tool_result")
    assert log(server) == ["0"]
    assert server.client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
    stream.close()  # a run without listeners is kept while an approval waits
    again = server.client.attach("c", "int_001")
    opened = again.next()
    assert [p["call_id"] for p in opened["pending_approvals"]] == ["call_1"]
    provider.plan(text("ok"))
    approve(server.client, asked[1])
    again.finish()
    assert log(server) == ["0", "1"]


def test_calls_without_approval_run_in_their_order(server, provider):
    provider.plan(tools(call("echo", {"text": "a"}, "call_a"), call("run_shell", command(1), "call_b"), call("run_shell", command(2), "call_c"),
                        call("echo", {"text": "d"}, "call_d"), call("run_shell", command(3), "call_e")))
    stream = server.client.start("c", "do it")
    asked = [stream.until("approval_required") for _ in range(2)]
    assert stream.names(without=QUIET) == ["interaction_started", "tool_call", "tool_result", "approval_required", "approval_required"]
    for each in asked:
        approve(server.client, each)
    last = stream.until("approval_required")
    assert last["call_id"] == "call_e" and [e["id"] for e in stream.all("tool_result")] == ["call_a", "call_b", "call_c", "call_d"]
    provider.plan(text("ok"))
    approve(server.client, last)
    stream.finish()
    assert log(server) == ["1", "2", "3"]


def test_equal_calls_wait_for_what_the_first_ones_answer_grants(server, provider):
    provider.plan(tools(*[call("run_shell", command(0), f"call_{n}") for n in range(2)], call("run_shell", command(1), "call_2")))
    stream = server.client.start("c", "do it")
    approve(server.client, stream.until("approval_required"), scope="chat")
    other = stream.until("approval_required")
    assert other["call_id"] == "call_2" and len(stream.all("tool_result")) == 2
    provider.plan(text("ok"))
    approve(server.client, other)
    stream.finish()
    assert log(server) == ["0", "0", "1"]


@pytest.mark.parametrize("answered", [[], [0], [2], [0, 1], [1, 2]])
def test_cancel_while_some_are_answered(server, provider, answered):
    client = server.client
    stream, asked = ask(client, provider)
    for number in answered:
        approve(client, asked[number])
    for number in answered:
        stream.until("approved")
    ran = [str(n) for n in answered if set(range(n)) <= set(answered)]
    eventually(lambda: log(server) == ran, "the calls in turn have run")
    client.cancel("c", "int_001").expect(200)
    stream.finish("CANCELLED")
    assert log(server) == ran
    for each in asked:
        client.approve("c", "int_001", each["approval_id"]).error(400)
        client.post(f"/approvals/{each['approval_id']}", {"approved": True}).error(400)
    assert client.get("/approvals").json["approvals"] == []
    assert [e["id"] for e in stream.all("tool_result")] == ["call_0", "call_1", "call_2"]
    provider.plan(text("still well-formed"))
    client.turn("c", "go on")
    assert log(server) == ran


def reopen(make_server, server, stream, provider, end="kill", **options):
    getattr(server, end)()
    stream.close()
    again = make_server(provider, server.home, **options)
    return again, again.client.attach("c", "int_001", after=0, gapless=True)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_ended_while_some_are_answered(make_server, provider, end):
    server = make_server(provider)
    stream, asked = ask(server.client, provider, 4)
    approve(server.client, asked[0])
    stream.until("tool_result")
    approve(server.client, asked[2], feedback="be quick")
    approve(server.client, asked[3], False, feedback="not that")
    stream.until("rejected")
    for _ in range(2):
        server, stream = reopen(make_server, server, stream, provider, end)
        waiting = server.client.get("/approvals").json["approvals"]
        assert [w["approval_id"] for w in waiting] == [asked[1]["approval_id"]]
        assert server.client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
        for number in (0, 2, 3):
            server.client.approve("c", "int_001", asked[number]["approval_id"]).error(400, "already_processed")
    assert log(server) == ["0"] and len(provider.requests) == 1
    provider.plan(text("ok"))
    approve(server.client, asked[1])
    stream.finish()
    assert log(server) == ["0", "1", "2"]
    account = [(e["event"], e["call_id"]) for e in server.client.get("/audit").json["entries"]]
    assert sorted(account) == sorted([(e, f"call_{n}") for n in range(3) for e in ("approved", "started", "ended")] + [("rejected", "call_3")])
    results = stream.all("tool_result")
    assert [e["id"] for e in results] == ["call_0", "call_1", "call_2", "call_3"]
    assert "be quick" in results[2]["tool_output"] and "not that" in results[3]["tool_output"]
    assert len(provider.requests) == 2


def test_killed_before_any_is_answered(make_server, provider):
    server = make_server(provider)
    stream, asked = ask(server.client, provider)
    server, stream = reopen(make_server, server, stream, provider)
    assert [w["approval_id"] for w in server.client.get("/approvals").json["approvals"]] == [a["approval_id"] for a in asked]
    provider.plan(text("ok"))
    for each in reversed(asked):
        approve(server.client, each)
    stream.finish()
    assert log(server) == ["0", "1", "2"]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_ended_while_one_runs_and_another_waits(make_server, provider, end):
    server = make_server(provider)
    provider.plan(tools(call("run_shell", {"command": "echo 0 >> log.txt; sleep 60"}, "call_0"), call("run_shell", command(1), "call_1")))
    stream = server.client.start("c", "do it")
    asked = [stream.until("approval_required") for _ in range(2)]
    approve(server.client, asked[0])
    eventually(lambda: log(server) == ["0"], "the first runs")
    server, stream = reopen(make_server, server, stream, provider, end)
    assert [w["approval_id"] for w in server.client.get("/approvals").json["approvals"]] == [asked[1]["approval_id"]]
    provider.plan(text("ok"))
    approve(server.client, asked[1])
    stream.finish()
    assert log(server) == ["0", "1"]  # the first does not run again: its outcome is unknown, or it was ended
    first, second = stream.all("tool_result")
    assert first["is_error"] and ("not known" in first["tool_output"]) == (end == "kill") and not second["is_error"]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_was_approved_behind_a_running_call_runs_in_the_next_process(make_server, provider, end):
    server = make_server(provider)
    provider.plan(tools(call("run_shell", {"command": "echo 0 >> log.txt; sleep 60"}, "call_0"), call("run_shell", command(1), "call_1"), call("run_shell", command(2), "call_2")))
    stream = server.client.start("c", "do it")
    asked = [stream.until("approval_required") for _ in range(3)]
    approve(server.client, asked[0])
    eventually(lambda: log(server) == ["0"], "the first runs")
    approve(server.client, asked[1])
    server, stream = reopen(make_server, server, stream, provider, end)
    assert server.client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
    provider.plan(text("ok"))
    approve(server.client, asked[2])
    stream.finish()
    assert log(server) == ["0", "1", "2"]


def test_the_stream_of_one_answer_shows_the_rest(client, provider):
    stream, asked = ask(client, provider, 2)
    follow = client.stream("POST", f"/approvals/{asked[0]['approval_id']}", {"approved": True}, headers={"Accept": "text/event-stream"},
                           first_seq=asked[1].seq + 1)
    assert follow.until("approved")["call_id"] == "call_0"
    provider.plan(text("ok"))
    approve(client, asked[1])
    follow.finish()
    stream.finish()
    assert [e.data for e in stream.events[-len(follow.events):]] == [e.data for e in follow.events]


def test_a_refused_answer_is_not_streamed(client, provider):
    stream, asked = ask(client, provider, 1)
    accept = {"Accept": "text/event-stream"}
    unknown = "approval_" + "0" * 32
    client.post(f"/approvals/{unknown}", {"approved": True}, headers={"Content-Type": "application/json", **accept}).error(404)
    client.post(f"/approvals/{asked[0]['approval_id']}", {"approved": 1}, headers=accept).error(400)
    assert client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
    client.cancel("c", "int_001")
    stream.finish("CANCELLED")
    client.post(f"/approvals/{asked[0]['approval_id']}", {"approved": True}, headers=accept).error(400, "already_processed")


# --- expiry

def test_an_unanswered_approval_expires(make_server, provider):
    server = make_server(provider, config={"approval_expiry_s": 0.3})
    provider.plan(tools(call("run_shell", command(0), "call_0")), text("I see"))
    began = time.monotonic()
    stream = server.client.start("c", "do it")
    asked = stream.until("approval_required")
    assert asked["expires_at"] > asked["created_at"]
    stream.finish()
    assert 0.3 <= time.monotonic() - began < SOON
    rejected = stream.one("rejected")
    assert rejected["expired"] is True and rejected["approval_id"] == asked["approval_id"]
    assert "in time" in provider.requests[1].last["content"]
    assert log(server) == []
    server.client.approve("c", "int_001", asked["approval_id"]).error(400)
    server.client.post(f"/approvals/{asked['approval_id']}", {"approved": True}).error(400)


def test_an_answer_in_time_counts(make_server, provider):
    server = make_server(provider, config={"approval_expiry_s": 60})
    stream, asked = ask(server.client, provider, 1)
    provider.plan(text("ok"))
    approve(server.client, asked[0])
    stream.finish()
    assert log(server) == ["0"]


def test_one_that_expired_while_the_server_was_down_is_rejected_at_its_start(make_server, provider):
    options = {"config": {"approval_expiry_s": 3 * SLACK}}
    server = make_server(provider, **options)
    stream, asked = ask(server.client, provider, 2)
    approve(server.client, asked[0])
    stream.until("tool_result")
    server.kill()
    stream.close()
    attached = Gate()  # keeps the run unfinished, because a finished one is read without its deltas
    provider.plan(text(attached, "I see"))
    expires = time.mktime(time.strptime(asked[1]["expires_at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    eventually(lambda: time.time() > expires + 1, "the approval has expired", 10 * SLACK)
    again = make_server(provider, server.home, **options)
    stream = again.client.attach("c", "int_001", after=0, gapless=True)
    attached.release()
    stream.finish()
    assert stream.one("rejected")["expired"] is True
    again.client.approve("c", "int_001", asked[1]["approval_id"]).error(400)
    assert log(again) == ["0"]


def test_a_late_answer_is_refused_while_a_call_before_it_still_runs(make_server, provider):
    server = make_server(provider, config={"approval_expiry_s": 1})
    provider.plan(tools(call("run_shell", {"command": "until test -e go; do sleep 0.05; done"}, "call_0"), call("run_shell", command(1), "call_1")))
    stream = server.client.start("c", "do it")
    asked = [stream.until("approval_required") for _ in range(2)]
    approve(server.client, asked[0])
    stream.until("tool_call")
    eventually(lambda: server.client.get("/approvals").json["approvals"] == [], "the second has expired")
    server.client.approve("c", "int_001", asked[1]["approval_id"]).error(400, "expired")
    provider.plan(text("ok"))
    (server.home.workspace / "go").touch()
    stream.finish()
    assert log(server) == [] and stream.one("rejected")["expired"] is True
