"""Three strengths of replay. Beside what is tested here, every chat of every end-to-end test is replayed at its end."""
import json
import subprocess
import threading
import time

import pytest
from support.provider import CUT, Gate, Reply, call, delta, failure, text, tools
from support.server import BINARY
from support.timing import SLACK


def replay(client, mode, interaction="int_001", chat="c", **more):
    return client.post(f"/chats/{chat}/interactions/{interaction}/replay", {"mode": mode, **more})


def command(home, *arguments):
    """`reprise replay`: (exit status, stdout, stderr)."""
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
    assert report == {"mode": "recorded", "match": True, "events": len(stored["agent_events"]), "divergence": None}


@pytest.fixture
def rich(make_server, provider):
    """A chat with about everything that an interaction can have."""
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

    def stored():  # but the index, which may be behind
        return {p: p.read_bytes() for p in rich.home.own_files() if p.is_file() and p.name != "chat.json"}

    files = stored()
    (rich.home.workspace / "o.txt").unlink()
    (rich.home.workspace / "a.txt").write_text("changed since")
    provider.close()
    for number, status in enumerate(STATUSES, 1):
        matches(rich.client, rich.home, f"int_{number:03}", status)
    assert len(provider.requests) == requests  # no network, no tool, no disk
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
    assert command(rich.home, "nobody")[0] == 2
    assert command(rich.home, "c/int_099")[0] == 2
    assert command(rich.home, rich.home.path / "nothing.json")[0] == 2
    assert command(rich.home, "c", "--mode", "live")[0] == 2
    file = rich.home.path / "odd.json"
    file.write_text("[1]")
    assert command(rich.home, file)[0] == 1  # cannot be read
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
        (server.home.workspace / "o.txt").unlink()  # what the tool says depends on it
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
