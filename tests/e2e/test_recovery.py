"""kill -9 in the middle of a turn: everything that a client has seen is kept, and no tool runs twice."""
import json
import os
import random
import subprocess
import time

import pytest
from support.provider import Gate, call, text, tools
from support.server import BINARY
from support.timing import SLACK, eventually


def raw(stream):
    return [(e.name, e.seq, e.data) for e in stream.events]


def journal(home, chat, interaction):
    return home.data / chat / "interactions" / f"{interaction}.journal"


def test_a_journal_is_there_only_while_it_runs(server, provider):
    gate = Gate()
    provider.plan(text("half canary-77", gate, " whole"))
    stream = server.client.start("c", "canary-77")
    stream.until("text_delta")
    file = journal(server.home, "c", "int_001")
    assert file.exists() and file.stat().st_mode & 0o777 == 0o600
    assert not server.home.find_text("canary-77")
    gate.release()
    stream.finish()
    assert not file.exists()


def test_what_was_chosen_for_the_chat_stays_on_record(make_server, make_home, provider):
    home = make_home()
    first = make_server(provider, home=home)
    first.client.post("/chats", {"id": "c", "effort": "high", "model": "test/other"}).expect(201)
    provider.plan(tools(call("write_file", {"path": "out.txt", "content": "text"})), text("written"))
    stream = first.client.start("c", "do it")
    asked = stream.until("approval_required")
    first.kill()
    stream.close()
    second = make_server(provider, home=home)
    second.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    second.client.attach("c", "int_001", after=0).finish()
    record = home.checkpoint("c", "int_001")["record"]
    assert (record["effort"], record["names_model"]) == ("high", True)
    assert [each.body["reasoning_effort"] for each in provider.requests] == ["high", "high"]


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_pending_approval_survives_and_is_answered_once(make_server, make_home, provider, end):
    home = make_home()
    first = make_server(provider, home=home)
    provider.plan(tools(call("write_file", {"path": "out.txt", "content": "text"}), say="I will write"))
    stream = first.client.start("c", "do it")
    asked = stream.until("approval_required")
    seen = raw(stream)
    getattr(first, end)()
    stream.close()
    told = json.loads(subprocess.run([str(BINARY), "ls", "--json", "--data-dir", str(home.data)], env=home.environment(), capture_output=True, check=True).stdout)

    second = make_server(provider, home=home)
    waiting = second.client.get("/approvals").expect(200).json["approvals"]
    assert [(w["chat_id"], w["interaction_id"], w["approval_id"]) for w in waiting] == [("c", "int_001", asked["approval_id"])]
    assert second.client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
    listed = second.client.get("/chats").expect(200, "chat_list").json["chats"]
    begun = second.client.interaction("c", "int_001")["created_at"]
    summary = {"id": "c", "title": "do it", "created_at": begun, "updated_at": begun, "head": None, "workspace": str(home.workspace)}
    entry = {**summary, "status": "waiting", "head_status": "WAITING_APPROVAL", "waiting": 1, "model": listed[0]["model"], "tokens": None}
    assert listed == [entry] and told["chats"] == [summary]
    assert [i["id"] for i in second.client.history("c")["interactions"]] == ["int_001"]
    again = second.client.attach("c", "int_001", after=0, gapless=True)
    again.until("approval_required")
    assert raw(again)[-len(seen):] == seen
    assert len(provider.requests) == 1 and not (home.workspace / "out.txt").exists()
    provider.plan(text("written"))
    second.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    again.finish()
    second.client.approve("c", "int_001", asked["approval_id"]).error(400)
    assert (home.workspace / "out.txt").read_text() == "text"
    assert len(provider.requests) == 2
    roles = [m["role"] for m in provider.requests[1].conversation]
    assert roles == ["user", "assistant", "tool"]
    assert home.checkpoint("c", "int_001")["status"] == "COMPLETED"


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_two_restarts_in_a_row_and_a_rejection(make_server, make_home, provider, end):
    home = make_home()
    server = make_server(provider, home=home)
    provider.plan(tools(call("write_file", {"path": "a", "content": "1"}, "call_1"), call("write_file", {"path": "b", "content": "2"}, "call_2")))
    stream = server.client.start("c", "do it")
    first = stream.until("approval_required")
    server.client.approve("c", "int_001", first["approval_id"]).expect(200)
    second = stream.until("approval_required")
    stream.until("tool_result")
    for _ in range(2):
        getattr(server, end)()
        stream.close()
        server = make_server(provider, home=home)
        stream = server.client.attach("c", "int_001", after=0, gapless=True)
        assert [a["approval_id"] for a in server.client.get("/approvals").json["approvals"]] == [second["approval_id"]]
    server.client.approve("c", "int_001", first["approval_id"]).error(400)
    provider.plan(text("half"))
    server.client.approve("c", "int_001", second["approval_id"], approved=False).expect(200)
    stream.finish()
    assert (home.workspace / "a").exists() and not (home.workspace / "b").exists()
    spent = stream.all("usage")
    assert [e["round_index"] for e in spent] == [0, 1], "the interrupted round tells what it has used, once"
    used = server.client.interaction("c", "int_001")["usage"]
    assert used["input_tokens"] == sum(e["input_tokens"] for e in spent), used
    server.stop()
    replayed = subprocess.run([str(BINARY), "replay", "c", "--data-dir", str(home.data)], env=home.environment(), capture_output=True, text=True, check=False)
    assert replayed.returncode == 0, replayed


def test_killed_while_the_model_writes(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    provider.plan(text("a1"), text("half an ", Gate()))
    server.client.turn("c", "q1")
    stream = server.client.start("c", "q2")
    stream.until("text_delta")
    server.kill()
    stream.close()
    server = make_server(provider, home=home)
    stored = server.client.interaction("c", "int_002")
    assert stored["status"] == "FAILED" and stored["error"]["code"] == "interrupted" and stored["error"]["retryable"]
    assert [e["content"] for e in stored["agent_events"] if e["type"] == "MESSAGE"] == ["half an "]
    assert not journal(home, "c", "int_002").exists()
    provider.plan(text("whole"))
    resumed = server.client.stream("POST", "/chats/c/interactions/int_002/resume")
    resumed.finish()
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "q2"]
    history = server.client.history("c")["interactions"]
    assert [i["user_message"] for i in history] == ["q1", "q2"]
    assert history[-1]["edited_from"] == "int_002" and history[-1]["status"] == "COMPLETED"
    server.client.post(f"/chats/c/interactions/{resumed.interaction}/resume").error(409, "not_resumable")


def test_a_tool_whose_outcome_is_unknown_does_not_run_again(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home, config={"approval_mode": "approve_all"})
    provider.plan(tools(call("run_shell", {"command": "echo x >> count; sleep 4720", "timeout_s": 600})))
    stream = server.client.start("c", "go")
    stream.until("tool_call")
    eventually((home.workspace / "count").exists, "the tool runs")
    server.kill()
    stream.close()
    server = make_server(provider, home=home, config={"approval_mode": "approve_all"})
    stored = server.client.interaction("c", "int_001")
    assert stored["status"] == "FAILED"
    result = [e for e in stored["agent_events"] if e["type"] == "TOOL_RESULT"]
    assert len(result) == 1 and result[0]["is_error"] and "not known" in result[0]["tool_output"]
    provider.plan(text("I see"))
    server.client.stream("POST", "/chats/c/interactions/int_001/resume").finish()
    last = provider.requests[-1].conversation[-1]
    assert last["role"] == "tool" and "not known" in last["content"]
    assert (home.workspace / "count").read_text() == "x\n"


def test_a_resumed_run_that_is_killed_keeps_what_it_started_from(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    said = []
    for turn, path in enumerate(("events", "int_001/resume", "int_002/resume")):
        provider.plan(tools(call("calculator", {"expression": f"{turn}+1"}, f"call_{turn}")), text(f"half of {turn}", Gate()))
        stream = server.client.stream("POST", f"/chats/c/interactions/{path}") if turn else server.client.start("c", "count")
        stream.until("text_delta")
        server.kill()
        stream.close()
        server = make_server(provider, home=home)
        said += ["assistant", "tool"]
        state = server.client.interaction("c", f"int_00{turn + 1}")["final_agent_state"]
        assert [m["role"] for m in state["messages"]] == ["user", *said, "assistant"]
        assert [m["content"] for m in state["messages"] if m["role"] == "tool"] == [str(n + 1) for n in range(turn + 1)]
        assert state["messages"][-1]["content"] == f"half of {turn}"
    provider.plan(text("whole"))
    server.client.stream("POST", "/chats/c/interactions/int_003/resume").finish()
    assert [m["role"] for m in provider.requests[-1].conversation] == ["user", *said]
    assert [i["user_message"] for i in server.client.history("c")["interactions"]] == ["count"]


def test_a_pending_approval_of_a_resumed_run_survives(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    provider.plan(tools(call("calculator", {"expression": "1+1"}, "call_1")), text("half", Gate()))
    stream = server.client.start("c", "write it")
    stream.until("text_delta")
    server.kill()
    stream.close()
    server = make_server(provider, home=home)
    provider.plan(tools(call("write_file", {"path": "a", "content": "1"}, "call_2")))
    stream = server.client.stream("POST", "/chats/c/interactions/int_001/resume")
    asked = stream.until("approval_required")
    for _ in range(2):
        server.kill()
        stream.close()
        server = make_server(provider, home=home)
        stream = server.client.attach("c", "int_002", after=0, gapless=True)
        assert stream.until("approval_required").data == asked.data
    provider.plan(text("written"))
    server.client.approve("c", "int_002", asked["approval_id"]).expect(200)
    stream.finish()
    assert (home.workspace / "a").read_text() == "1"
    conversation = provider.requests[-1].conversation
    assert [m["role"] for m in conversation] == ["user", "assistant", "tool", "assistant", "tool"]
    assert [m.get("tool_call_id") for m in conversation if m["role"] == "tool"] == ["call_1", "call_2"]
    state = server.client.interaction("c", "int_002")["final_agent_state"]
    assert [m["role"] for m in state["messages"]] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("kind", ["approve", "reject", "respond"])
def test_an_acknowledged_answer_is_never_asked_for_again(make_server, make_home, provider, kind):
    """The server is killed as soon as the 200 has arrived."""
    home = make_home()
    server = make_server(provider, home=home)
    tool = call("ask_human", {"question": "Which?"}) if kind == "respond" else call("write_file", {"path": "a", "content": "1"})
    for number in range(8):
        provider.plan(tools(tool))
        stream = server.client.start(f"c{number}", "go")
        if kind == "respond":
            asked = stream.until("input_required")["request_id"]
            server.client.respond(f"c{number}", "int_001", asked, "this").expect(200)
        else:
            asked = stream.until("approval_required")["approval_id"]
            server.client.approve(f"c{number}", "int_001", asked, kind == "approve").expect(200)
        server.kill()
        stream.close()
        provider.forget_plan()
        server = make_server(provider, home=home)
        waiting = server.client.get("/approvals").json
        assert waiting["approvals"] == waiting["inputs"] == []
        provider.plan(text("done"))

        def shown():
            events = [e["type"] for e in server.client.interaction(f"c{number}", "int_001")["agent_events"]]
            return {"approve": "APPROVED", "reject": "REJECTED", "respond": "INPUT_RECEIVED"}[kind] in events

        eventually(shown, "the answer counts")
        eventually(lambda: server.client.interaction(f"c{number}", "int_001")["status"] in ("COMPLETED", "FAILED"), "it comes to its end")
        provider.forget_plan()


def journal_of_the_killed(make_server, home, provider, reply, until):
    """The journal of an interaction whose server was killed at this event."""
    server = make_server(provider, home=home)
    server.check_files = False
    provider.plan(reply)
    stream = server.client.start("c", "x")
    stream.until(until)
    server.kill()
    stream.close()
    return journal(home, "c", "int_001")


def test_a_damaged_journal_is_named_and_left_alone(make_server, make_home, provider):
    home = make_home()
    file = journal_of_the_killed(make_server, home, provider, text("half", Gate()), "text_delta")
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged.split(b"\n")[0]) + 20] ^= 1
    file.write_bytes(damaged)
    server = make_server(provider, home=home)
    server.check_files = False
    assert "int_001" in server.log() and "integrity_auth" in server.log()
    assert file.read_bytes() == bytes(damaged)
    for go_on in (lambda: None, lambda: (provider.plan(text("on")), server.client.turn("c", "y"))):
        go_on()
        for method, path, body in (("GET", "/chats/c/interactions/int_001", None), ("GET", "/chats/c/interactions/int_001/events", None),
                                   ("POST", "/chats/c/interactions/int_001/resume", {})):
            error = server.client.request(method, path, body).error(422, "integrity_auth")
            assert error["details"] == {"file": "c/interactions/int_001.journal"}, path
        for path in ("/chats/c", "/chats/c?branches=all"):
            assert [each["interaction_id"] for each in server.client.get(path).json["damaged"]] == ["int_001"]
        (listed,) = server.client.get("/chats").expect(200, "chat_list").json["chats"]
        assert listed["damaged"]
    assert [each["id"] for each in server.client.get("/chats/c").json["interactions"]] == ["int_002"]
    assert file.read_bytes() == bytes(damaged)


def test_a_journal_whose_first_line_has_zeros_is_named_and_left_alone(make_server, make_home, provider):
    """Reported: it looked like one that was never written, and was deleted without a word."""
    home = make_home()
    file = journal_of_the_killed(make_server, home, provider, tools(call("write_file", {"path": "x", "content": "1"})), "approval_required")
    damaged = bytearray(file.read_bytes())
    damaged[100:130] = bytes(30)
    file.write_bytes(damaged)
    server = make_server(provider, home=home)
    server.check_files = False
    assert "integrity_auth" in server.log() and file.read_bytes() == bytes(damaged)
    assert server.client.get("/chats/c/interactions/int_001").error(422, "integrity_auth")["details"] == {"file": "c/interactions/int_001.journal"}


MINUTES = float(os.environ.get("REPRISE_TORTURE_MINUTES", "0"))


def kills():
    """Thirty kills; with scripts/torture a thousand, and as many as fit into REPRISE_TORTURE_MINUTES."""
    deadline = time.monotonic() + 60 * MINUTES
    number = 0
    while number < (1000 if MINUTES else 30) or time.monotonic() < deadline:
        number += 1
        yield number


def check_kept(stored, seen, context):
    """Asserts that the record has every event that a client has seen, with the same number and bytes."""
    kept = {e["seq"]: e for e in stored["agent_events"]}
    assert list(kept) == sorted(kept), context
    for name, seq, data in seen:
        if name not in ("interaction_started", "text_delta", "tool_output_delta", "interaction_complete"):
            assert kept[seq] == data, context
    text_seen = "".join(d["content"] for n, _, d in seen if n == "text_delta")
    said = "".join(e["content"] for e in stored["agent_events"] if e["type"] in ("MESSAGE", "ANSWER"))
    assert said.startswith(text_seen), context


@pytest.mark.limit(60 + (1800 + 60 * MINUTES if MINUTES else 0))
def test_nothing_seen_is_lost_over_many_kills(make_server, make_home, provider, figure):
    """Each turn asks, runs a tool that counts, and answers. The server is killed at some point of it, and once more while a
    question that survived is answered."""
    home = make_home()
    seed = int(os.environ.get("REPRISE_TORTURE_SEED", "4711"))
    dice = random.Random(seed)
    server = make_server(provider, home=home)
    slowest = 0.0
    turns = {}
    answered = 0

    def kill_and_restart(stream):
        nonlocal server, slowest
        # Right after an event or between two, because a step takes a millisecond or two.
        time.sleep(dice.choice((0, 0, dice.random() * 0.003)))
        server.kill()
        stream.close()
        server = make_server(provider, home=home)
        slowest = max(slowest, server.start_seconds)
        assert server.start_seconds < 2 * SLACK
        provider.forget_plan()  # replies that the killed server did not request

    def ended(chat, interaction):
        """Waits for the end of an interaction, which continues by itself if it was answered just before the kill."""
        eventually(lambda: server.client.interaction(chat, interaction)["status"] in ("FAILED", "COMPLETED"), "it comes to its end")
        return server.client.interaction(chat, interaction)

    for number in kills():
        chat = f"c{number // 100}"  # other tests cover long chats
        turns[chat] = turns.get(chat, 0) + 1
        interaction = f"int_{turns[chat]:03}"
        provider.plan(tools(call("run_shell", {"command": f"echo {number} >> count"}), say="on it"), text("all ", "done"))
        stream = server.client.start(chat, f"q{number}")
        processed = False
        for _ in range(dice.randint(1, 11)):  # a whole turn has ten events
            event = stream.next()
            if event is None or event.name == "interaction_complete":
                break
            if event.name == "approval_required" and dice.random() < 0.7:
                server.client.approve(chat, interaction, event["approval_id"]).expect(200)
                processed = True
            elif event.name == "approval_required":
                break
        seen = raw(stream)
        kill_and_restart(stream)
        waits = bool(server.client.get("/approvals").json["approvals"])
        assert not (processed and waits), (seed, number, "asked again")
        if waits:
            again = server.client.attach(chat, interaction, after=0, gapless=True)
            asked = again.until("approval_required")
            assert raw(again)[:len(seen)] == seen[:len(raw(again))], (seed, number, seen, raw(again))
            provider.plan(text("all ", "done"))
            server.client.approve(chat, interaction, asked["approval_id"]).expect(200)
            answered += 1
            for _ in range(dice.randint(0, 5)):
                if again.next() is None or again.events[-1].name == "interaction_complete":
                    break
            seen = max(raw(again), seen, key=len)
            kill_and_restart(again)
            server.client.approve(chat, interaction, asked["approval_id"]).error(400)
        stored = ended(chat, interaction)
        check_kept(stored, seen, (seed, number, seen, stored))
        # A client that returns with the last number it saw gets the later events, each once.
        rest = server.client.attach(chat, interaction, last_event_id=min(seen[-1][1], stored["agent_events"][-1]["seq"]))
        assert [e.seq for e in rest.rest()] == sorted({e.seq for e in rest.events})
    count = (home.workspace / "count").read_text().split() if (home.workspace / "count").exists() else []
    assert len(count) == len(set(count)), "a tool ran twice"
    assert answered > 0 and count
    figure(f"{number} kills: nothing seen was lost, {len(count)} tools ran, none twice; {answered} questions survived; slowest restart "
           f"{slowest:.2f} s; seed {seed}")
    # The next turn removes a chat's temporary files, the next blob those among its blobs.
    provider.plan(tools(call("run_shell", {"command": "echo one more >> lines"})), text("still here"))
    last = server.client.start("c0", "and now?")
    server.client.approve("c0", last.interaction, last.until("approval_required")["approval_id"]).expect(200)
    last.finish()
    assert not [path for path in (home.data / "c0").rglob("*.tmp")]
