"""The three kinds of replay. In addition, every chat of every end-to-end test is replayed at the end of the test."""
import json
import subprocess
import threading
import time

import pytest
from support.provider import CUT, Gate, Reply, call, delta, failure, text, tools
from support.server import BINARY
from support.timing import SLACK, eventually


def replay(client, mode, interaction="int_001", chat="c", **more):
    return client.post(f"/chats/{chat}/interactions/{interaction}/replay", {"mode": mode, **more})


def command(home, *arguments):
    """Runs `reprise replay`: (exit status, stdout, stderr)."""
    done = subprocess.run([str(BINARY), "replay", *map(str, arguments), "--data-dir", str(home.data)], env=home.environment(), cwd=home.path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10 * SLACK, check=False)
    return done.returncode, done.stdout, done.stderr


def answer(client, stream, approved=True, **more):
    asked = stream.until("approval_required")
    client.approve("c", stream.interaction, asked["approval_id"], approved, **more).expect(200)


def matches(client, home, interaction, status):
    stored = home.checkpoint("c", interaction)
    assert stored["status"] == status
    report = replay(client, "recorded", interaction).expect(200, "replay_report").json
    replayed = [e for e in stored["agent_events"] if e["type"] != "FILES_CHANGED"]  # a replay changes no files
    assert report == {"mode": "recorded", "match": True, "events": len(replayed), "divergence": None}


@pytest.fixture
def rich(make_server, provider):
    """A chat with nearly every kind of event."""
    server = make_server(provider, config={"max_retries": 2})
    client = server.client
    (server.home.workspace / "a.txt").write_text("alpha")
    provider.plan(tools(call("read_file", {"path": "a.txt"}, "r1"), call("calculator", {"expression": "6*7"}, "r2"), say="I look.", think="hm well"),
                  tools(call("nothing_like_it", {}, "r3"), call("read_file", {"pth": 1}, "r4")), text("it is 42"))
    client.turn("c", "look")  # 1: parallel calls, thinking, an unknown tool, wrong arguments
    provider.plan(tools(call("write_file", {"path": "o.txt", "content": "1"}, "w1"), call("write_file", {"path": "p.txt", "content": "2"}, "w2")),
                  tools(call("write_file", {"path": "q.txt", "content": "3"}, "w3")), tools(call("write_file", {"path": "q.txt", "content": "3"}, "w4")),
                  text("done"))
    stream = client.start("c", "write")  # 2: edited arguments, feedback, a grant
    answer(client, stream, arguments={"path": "o.txt", "content": "other"}, feedback="better so")
    answer(client, stream, False, feedback="not there")
    answer(client, stream, scope="chat")
    stream.finish()
    provider.plan(failure(503, "busy", headers={"Retry-After": "1"}), text("back again"))
    client.turn("c", "retry")  # 3
    provider.plan(Reply([delta({"reasoning_content": "so"}), delta({"content": "half an ans"}), CUT]))
    client.turn("c", "cut", "FAILED")  # 4
    gate = Gate()
    provider.plan(text("never ", gate, "said"))
    stream = client.start("c", "stop while it speaks")
    stream.until("text_delta")
    client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")  # 5
    gate.release()
    provider.plan(tools(call("run_shell", {"command": "sleep 30"}, "s1"), call("calculator", {"expression": "1"}, "s2")))
    stream = client.start("c", "stop while it works")
    answer(client, stream)
    stream.until("tool_call")
    client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")  # 6
    provider.plan(tools(call("calculator", {"expression": "1"}, "u0"), call("run_shell", {"command": "true"}, "u1"),
                        call("calculator", {"expression": "2"}, "u2")))
    stream = client.start("c", "stop while it asks")
    stream.until("approval_required")
    client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")  # 7
    provider.plan(failure(401, "no such key"))
    client.turn("c", "fail", "FAILED")  # 8
    provider.plan(text("this time it works"))
    client.stream("POST", "/chats/c/interactions/int_008/resume").finish()  # 9
    provider.plan(text("edited"))
    client.edit("c", "int_002", "instead").finish()  # 10
    return server


STATUSES = ["COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "CANCELLED", "CANCELLED", "CANCELLED", "FAILED", "COMPLETED", "COMPLETED"]


def test_every_interaction_matches_with_the_provider_unplugged(rich, provider):
    requests = len(provider.requests)

    def stored():  # without the index, which may lag or be written just now
        return {p: p.read_bytes() for p in rich.home.own_files() if p.is_file() and not p.name.lstrip(".").startswith("chat.json")}

    files = stored()
    (rich.home.workspace / "o.txt").unlink()
    (rich.home.workspace / "a.txt").write_text("changed since")
    provider.close()
    for number, status in enumerate(STATUSES, 1):
        matches(rich.client, rich.home, f"int_{number:03}", status)
    assert len(provider.requests) == requests  # no network, no tools, no writes
    assert not (rich.home.workspace / "o.txt").exists()
    assert stored() == files
    assert not rich.client.get("/approvals").json["approvals"]
    status, out, _ = command(rich.home, "c", "--json")
    reports = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and len(reports) == 10 and all(r["match"] for r in reports)
    status, out, _ = command(rich.home, "c/int_002")
    assert status == 0 and out.startswith("c/int_002: ") and out.endswith(" events match\n")


def changed(home, interaction, change):
    stored = home.checkpoint("c", interaction)
    change(stored)
    file = home.path / "changed.json"
    file.write_text(json.dumps(stored))
    return file


def test_a_changed_tool_result_is_reported_at_its_seq(rich):
    results = [e for e in rich.home.checkpoint("c", "int_002")["agent_events"] if e["type"] == "TOOL_RESULT"]
    for number, result in enumerate(results):
        def change(stored, seq=result["seq"]):
            next(e for e in stored["agent_events"] if e["seq"] == seq)["tool_output"] = "something else"
        status, out, _ = command(rich.home, changed(rich.home, "int_002", change), "--json")
        report = json.loads(out)
        assert status == 1 and report["match"] is False, number
        assert report["divergence"]["seq"] == result["seq"]
        assert report["divergence"]["expected"]["tool_output"] == "something else"
        assert report["divergence"]["actual"]["tool_output"] == result["tool_output"]


@pytest.mark.parametrize("kind,member", [("ANSWER", "content"), ("THINKING", None), ("TOOL_CALL", "tool_input"), ("MESSAGE", "content")])
def test_other_changes_are_reported_too(rich, kind, member):
    event = next(e for e in rich.home.checkpoint("c", "int_001")["agent_events"] if e["type"] == kind)

    def change(stored):
        one = next(e for e in stored["agent_events"] if e["seq"] == event["seq"])
        if member:
            one[member] = '{"x": 1}'
        else:
            stored["agent_events"].append(stored["agent_events"].pop(stored["agent_events"].index(one)) | {"seq": 10_000})
    status, out, _ = command(rich.home, changed(rich.home, "int_001", change), "--json")
    assert status == 1 and json.loads(out)["divergence"]["seq"] in (event["seq"], event["seq"] + 1), out


def test_what_the_record_does_not_hold_is_not_done(rich):
    def forget(stored):
        stored["final_agent_state"]["messages"] = [m for m in stored["final_agent_state"]["messages"] if m.get("tool_call_id") != "r2"]
    status, out, _ = command(rich.home, changed(rich.home, "int_001", forget), "--json")
    assert status == 1 and json.loads(out)["divergence"]["actual"] is None

    def cut(stored):
        stored["agent_events"] = stored["agent_events"][:-2]
    assert command(rich.home, changed(rich.home, "int_001", cut))[0] == 1


def test_usage_errors(rich):
    assert command(rich.home, "nobody")[0] == 1
    assert command(rich.home, "c/int_099")[0] == 1
    assert command(rich.home, rich.home.path / "nothing.json")[0] == 1
    assert command(rich.home, "c", "--mode", "live")[0] == 2
    file = rich.home.path / "odd.json"
    file.write_text("[1]")
    assert command(rich.home, file)[0] == 1  # not readable
    client = rich.client
    client.post("/chats/c/interactions/int_001/replay", {}).error(400, "invalid_member")
    replay(client, "backwards").error(400, "invalid_member")
    replay(client, "events", speed=-1).error(400, "invalid_member")
    replay(client, "recorded", speed=2).error(400, "invalid_member")
    replay(client, "recorded", "int_077").error(404)
    replay(client, "recorded", chat="nobody").error(404)


def test_a_running_one_is_409(server, provider):
    gate = Gate()
    provider.plan(text("a", gate, "b"))
    stream = server.client.start("c", "hello")
    stream.until("text_delta")
    for mode in ("recorded", "events"):
        replay(server.client, mode).error(409, "not_replayable")
    replay(server.client, "live").error(409, "busy")
    gate.release()
    stream.finish()


def test_events_at_once_and_with_their_pauses(server, provider):
    client = server.client
    client.get("/healthz")
    provider.plan(tools(call("run_shell", {"command": "sleep 1"})), text("slept"))
    stream = client.start("c", "sleep")
    answer(client, stream)
    stream.finish()
    path = "/chats/c/interactions/int_001/replay"
    started = time.monotonic()
    again = client.stream("POST", path, {"mode": "events"}, gapless=False)
    again.finish()
    assert time.monotonic() - started < 0.5 * SLACK
    stored = [e.data for e in stream.events if not e.name.endswith("_delta")]
    assert [e.data for e in again.events] == stored
    for speed, least in ((1, 0.95), (4, 0.2)):
        paced = client.stream("POST", path, {"mode": "events", "speed": speed}, gapless=False)
        call_at = paced.until("tool_call").at
        result_at = paced.until("tool_result").at
        paced.finish()
        assert [e.data for e in paced.events] == stored
        assert least <= result_at - call_at < least + 0.5 * SLACK
    status, out, _ = command(server.home, "c/int_001", "--mode", "events", "--json")
    assert status == 0 and [json.loads(line) for line in out.splitlines()] == stored
    started = time.monotonic()
    paced = command(server.home, "c/int_001", "--mode", "events", "--json", "--speed", "4")
    assert paced[1] == out and time.monotonic() - started >= 0.2
    assert command(server.home, "c/int_001", "--speed", "4")[0] == command(server.home, "c/int_001", "--mode", "events", "--speed", "-1")[0] == 2


def test_a_paced_replay_does_not_outlive_the_server(server, provider):
    client = server.client
    provider.plan(tools(call("run_shell", {"command": "sleep 1"})), text("slept"))
    stream = client.start("c", "sleep")
    answer(client, stream)
    stream.finish()
    paced = client.stream("POST", "/chats/c/interactions/int_001/replay", {"mode": "events", "speed": 0.01}, gapless=False)
    paced.until("approval_required")
    assert server.stop() < 2 * SLACK


def test_live_runs_as_a_sibling_and_asks_again(server, provider):
    client = server.client
    arguments = {"path": "o.txt", "content": "1"}
    provider.plan(tools(call("write_file", arguments, "w1")), text("done"))
    stream = client.start("c", "write")
    answer(client, stream, scope="chat")
    stream.finish()
    for last, match in (("done", True), ("done differently", False)):
        (server.home.workspace / "o.txt").unlink()  # the tool's output depends on it
        provider.plan(tools(call("write_file", arguments, "w9")), text(last))
        answers = []
        thread = threading.Thread(target=lambda: answers.append(replay(client, "live")))
        thread.start()
        deadline = time.monotonic() + 5 * SLACK
        while not (waiting := client.get("/approvals").json["approvals"]):
            assert time.monotonic() < deadline
        client.post(f"/approvals/{waiting[0]['approval_id']}", {"approved": True, "scope": "chat"}).expect(200)
        thread.join()
        report = answers[0].expect(200, "replay_report").json
        assert report["mode"] == "live" and report["match"] is match
        sibling = client.interaction("c", report["interaction_id"])
        assert sibling["edited_from"] == "int_001" and sibling["parent_id"] is None
    found = report["divergence"]
    assert found["expected"]["content"] == "done" and found["actual"]["content"] == "done differently"
    assert found["seq"] == next(e["seq"] for e in stream.events if e.name == "answer")


def live(client, answer_it):
    """The report of a live replay. `answer_it` answers its question, because earlier answers do not apply."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(replay(client, "live")))
    thread.start()
    waiting = []

    def asks():
        listed = client.get("/approvals").json
        waiting.extend(listed["approvals"] + listed["inputs"])
        return waiting

    eventually(asks, "it asks again")
    answer_it(waiting[0])
    thread.join()
    return answers[0].expect(200, "replay_report").json


def test_live_asks_a_person_again_and_compares_what_is_not_random(server, provider):
    client = server.client

    def plan(round_id, title="one"):
        provider.plan(tools(call("ask_human", {"question": "Which?"}, f"{round_id}_a"), call("manage_tasks", {"action": "add", "title": title}, f"{round_id}_b"),
                            call("update_plan", {"steps": [title]}, f"{round_id}_c")), text("noted"))

    plan("first")
    stream = client.start("c", "ask and keep")
    client.respond("c", "int_001", stream.until("input_required")["request_id"], "this").expect(200)
    stream.finish()

    def respond(with_this):
        return lambda asked: client.respond("c", asked["interaction_id"], asked["request_id"], with_this).expect(200)

    plan("second")
    report = live(client, respond("this"))
    assert report["match"] is True and report["divergence"] is None
    assert report["events"] == len([e for e in stream.events if e.name not in ("usage", "text_delta", "interaction_started", "interaction_complete")])
    plan("third")
    report = live(client, respond("that"))
    assert report["divergence"]["seq"] == stream.one("input_received")["seq"]
    plan("fourth", "two")
    report = live(client, respond("this"))
    call_b = [e for e in stream.all("tool_call") if e["id"] == "first_b"][0]
    assert report["divergence"]["seq"] == call_b["seq"] and "two" in report["divergence"]["actual"]["tool_input"]
    # Each replay is a sibling that starts from the state before; none has another's answers or tasks.
    siblings = client.history("c", branches="all")["interactions"]
    assert [(i["edited_from"], i["parent_id"]) for i in siblings[1:]] == [("int_001", None)] * 3
    for each in siblings:
        assert len(client.interaction("c", each["id"])["final_agent_state"]["tasks"]) == 1
    matches(client, server.home, "int_003", "COMPLETED")


def test_live_that_ends_early_or_goes_on(server, provider):
    client = server.client
    provider.plan(tools(call("calculator", {"expression": "1+1"})), text("2"))
    stream = client.turn("c", "count")
    provider.plan(text("2"))
    report = replay(client, "live").expect(200, "replay_report").json
    assert report["events"] == 0 and report["divergence"]["seq"] == stream.one("tool_call")["seq"]
    assert report["divergence"]["actual"]["type"] == "ANSWER"
    provider.plan(text("3"))
    client.turn("d", "short")
    provider.plan(failure(500, "no"))
    report = replay(client, "live", chat="d").expect(200, "replay_report").json
    assert report["divergence"]["expected"]["type"] == "ANSWER" and report["divergence"]["actual"]["type"] == "ERROR"
    provider.plan(tools(call("calculator", {"expression": "1+1"})), text("3"))
    report = replay(client, "live", "int_002", "d").expect(200, "replay_report").json
    assert report["match"] is False and report["divergence"]["actual"]["type"] == "TOOL_CALL"


def test_replays_do_not_disturb_a_run(server, provider):
    client = server.client
    provider.plan(tools(call("calculator", {"expression": "1+1"})), text("2"))
    first = client.turn("c", "count")
    provider.plan(tools(call("write_file", {"path": "a", "content": "1"})), text("written"))
    stream = client.start("c", "write")
    asked = stream.until("approval_required")
    assert replay(client, "recorded").expect(200).json["match"] is True
    again = client.stream("POST", "/chats/c/interactions/int_001/replay", {"mode": "events", "speed": 1000}, gapless=False)
    again.finish()
    assert [e.data for e in again.events] == [e.data for e in first.events if not e.name.endswith("_delta")]
    replay(client, "live").error(409, "busy")
    client.approve("c", "int_002", asked["approval_id"]).expect(200)
    stream.finish()
    assert client.interaction("c", "int_002")["parent_id"] == "int_001"


def test_a_change_by_hand_replays(server, provider):
    client = server.client
    provider.plan(text("hello"))
    client.turn("c", "hi")
    client.request("PATCH", "/chats/c/tasks", {"tasks": [{"title": "x"}], "plan": ["y"]}).expect(200)
    matches(client, server.home, "int_002", "COMPLETED")
    replay(client, "live", "int_002").error(409, "no_message")
    again = client.stream("POST", "/chats/c/interactions/int_002/replay", {"mode": "events"}, gapless=False)
    again.finish()
    assert again.names() == ["interaction_started", "task_updated", "plan_updated", "interaction_complete"]

    def change(stored):
        stored["agent_events"][0]["tasks"][0]["title"] = "z"
    status, out, _ = command(server.home, changed(server.home, "int_002", change), "--json")
    assert status == 1 and json.loads(out)["divergence"]["actual"]["tasks"][0]["title"] == "x"


def test_what_people_said_and_tools_kept_is_taken_from_the_record(server, provider):
    """Questions, tasks, a plan and a loop of calls, with the provider unplugged; and how changed records are detected."""
    client = server.client
    again = call("echo", {"text": "a"})
    provider.plan(tools(call("ask_human", {"question": "Which?"}, "q"), call("manage_tasks", {"action": "add", "title": "one"}, "t"),
                        call("update_plan", {"steps": ["a", "b"]}, "p"), say="Well,"),
                  tools(again), tools(again), tools(again), text("done"))
    stream = client.start("c", "go")
    client.respond("c", "int_001", stream.until("input_required")["request_id"], "that one").expect(200)
    stream.finish()
    stream.one("loop_detected")
    provider.plan(tools(call("ask_human", {"question": "Which?"}, "q")))
    stream = client.start("c", "stop while it asks")
    stream.until("input_required")
    client.cancel("c", "int_002").expect(200)
    stream.finish("CANCELLED")
    provider.close()
    matches(client, server.home, "int_001", "COMPLETED")
    matches(client, server.home, "int_002", "CANCELLED")
    events = server.home.checkpoint("c", "int_001")["agent_events"]
    for kind, member, value in (("INPUT_REQUIRED", "call_id", "t"), ("INPUT_RECEIVED", "request_id", "request_0"), ("TASK_UPDATED", "call_id", "q"),
                                ("PLAN_UPDATED", "call_id", "t"), ("LOOP_DETECTED", "count", 9)):
        seq = next(e for e in events if e["type"] == kind)["seq"]

        def change(stored, seq=seq, member=member, value=value):
            next(e for e in stored["agent_events"] if e["seq"] == seq)[member] = value
        status, out, _ = command(server.home, changed(server.home, "int_001", change), "--json")
        assert status == 1 and json.loads(out)["divergence"]["seq"] <= seq, (kind, out)

        def leave_out(stored, seq=seq):
            stored["agent_events"] = [e for e in stored["agent_events"] if e["seq"] != seq]
        if kind in ("INPUT_REQUIRED", "LOOP_DETECTED"):  # other events may be absent: a tool need not ask or change anything
            assert command(server.home, changed(server.home, "int_001", leave_out))[0] == 1, kind


def test_what_a_crash_cut_off_replays(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home)
    gate = Gate()
    provider.plan(tools(call("calculator", {"expression": "1+1"}, "k1")), text("half ", gate, "whole"))
    stream = server.client.start("c", "hello")
    stream.until("text_delta")
    server.kill()
    gate.release()
    provider.plan(tools(call("write_file", {"path": "x", "content": "y"}, "k2")))
    again = make_server(provider, home)
    stream = again.client.start("d", "ask")
    asked = stream.until("approval_required")
    again.kill()
    third = make_server(provider, home)
    matches(third.client, home, "int_001", "FAILED")
    provider.plan(text("written"))
    attached = third.client.attach("d", "int_001")
    third.client.approve("d", "int_001", asked["approval_id"]).expect(200)
    attached.finish()
    assert replay(third.client, "recorded", chat="d").json["match"] is True
    provider.plan(text("now whole"))
    third.client.stream("POST", "/chats/c/interactions/int_001/resume").finish()
    matches(third.client, home, "int_002", "COMPLETED")


def test_a_turn_that_runs_has_nothing_to_replay_yet(make_server, provider, tmp_path):
    gate = Gate()
    provider.plan(text("never ", gate, "said"))
    server = make_server(provider)
    stream = server.client.start("c", "go")
    stream.until("text_delta")
    assert command(server.home, "c") == (0, "", "reprise: the chat c has no finished interaction yet\n")
    assert command(server.home, "c", "--input", "current") == (0, "", "reprise: the chat c has no finished interaction yet\n")
    code, out, said = command(server.home, "c/int_001")
    assert code == 1 and not out and "there is no c/int_001 in" in said and "one that runs is there when it has ended" in said
    for arguments in (["test", "--record", "c", tmp_path / "suite"], ["what-if", "c", "--say", "x"]):
        done = subprocess.run([str(BINARY), *map(str, arguments), "--data-dir", str(server.home.data)], env=server.home.environment(), cwd=server.home.path,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10 * SLACK, check=False)
        assert done.returncode == 1 and "the chat c has no finished interaction yet" in done.stdout + done.stderr, (arguments, done)
    assert not (tmp_path / "suite").exists()
    gate.release()
    stream.finish()
    assert command(server.home, "c")[0] == 0
