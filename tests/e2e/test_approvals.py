"""Approvals: a person's answer decides, once, about exactly what was shown."""
import functools
import hashlib
import json
import time

import pytest
from support.provider import Gate, Reply, call, text, tools
from support.server import sandbox_works, without_bubblewrap
from support.timing import SLACK, SOON, at_once, median


def ask(client, provider, chat="c", tool="write_file", arguments=None, **more):
    """Starts a run that waits for an approval: (stream, approval_required event)."""
    provider.plan(tools(call(tool, arguments or {"path": "out.txt", "content": "text"}, more.pop("call_id", "call_1"))))
    stream = client.start(chat, "do it", **more)
    return stream, stream.until("approval_required")


def test_it_blocks_until_approved_then_runs(server, provider):
    client = server.client
    stream, asked = ask(client, provider)
    out = server.home.workspace / "out.txt"
    assert client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
    assert client.get("/chats").json["chats"][0]["head_status"] == "WAITING_APPROVAL"
    assert not out.exists() and len(provider.requests) == 1
    provider.plan(text("written"))
    answer = client.approve("c", "int_001", asked["approval_id"]).expect(200, "approve_response")
    assert answer.json == {"status": "processed", "approval_id": asked["approval_id"], "approved": True}
    stream.finish()
    names = stream.names(without=("usage", "text_delta", "tool_output_delta"))
    assert names == ["interaction_started", "approval_required", "approved", "tool_call", "files_changed", "tool_result", "answer", "interaction_complete"]
    assert out.read_text() == "text"
    assert stream.one("approved")["arguments_digest"] == asked["arguments_digest"]


def test_what_runs_is_byte_for_byte_what_was_shown(server, provider):
    raw = '{"content" :\t"a\\u00e9\\/\\n", \n "path":"./odd  name.txt" }'
    stream, asked = ask(server.client, provider, arguments=raw)
    assert asked["tool_input"] == raw
    assert asked["arguments_digest"] == "sha256:" + hashlib.sha256(raw.encode()).hexdigest()
    assert asked["tool_name"] == "write_file" and asked["call_id"] == "call_1"
    assert asked["reason"] and {"approve", "reject"} & set(asked["allowed_decisions"]) or asked["allowed_decisions"]
    assert asked["expires_at"] is None
    provider.plan(text("ok"))
    server.client.approve("c", "int_001", asked["approval_id"], arguments_digest=asked["arguments_digest"]).expect(200)
    stream.finish()
    assert stream.one("tool_call")["tool_input"] == raw
    assert (server.home.workspace / "odd  name.txt").read_text() == "aé/\n"
    assert provider.requests[1].conversation[1]["tool_calls"][0]["function"]["arguments"] == raw


def test_ids_are_unguessable(client, provider):
    ids = set()
    for chat in ("a", "b", "d"):
        stream, asked = ask(client, provider, chat)
        ids.add(asked["approval_id"])
        assert len(asked["approval_id"]) >= len("approval_") + 22  # 128 bits in base64url, or more in hex
        client.cancel(chat, stream.interaction).expect(200)
        stream.finish("CANCELLED")
    assert len(ids) == 3


def test_unknown_ids_are_404(client, provider):
    stream, asked = ask(client, provider)
    unknown = "approval_" + "0" * 32
    client.approve("c", "int_001", unknown).error(404)
    client.approve("c", "int_002", asked["approval_id"]).error(404)
    client.approve("other", "int_001", asked["approval_id"]).error(404)
    client.approve("c", "int_001", "../../x").error(404)
    client.post(f"/approvals/{unknown}", {"approved": True}).error(404)
    assert client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
    client.cancel("c", "int_001")
    stream.finish("CANCELLED")


def test_a_second_answer_is_400(client, provider):
    stream, asked = ask(client, provider)
    provider.plan(text("ok"))
    client.approve("c", "int_001", asked["approval_id"]).expect(200)
    for approved in (True, False):
        client.approve("c", "int_001", asked["approval_id"], approved).error(400)
        client.post(f"/approvals/{asked['approval_id']}", {"approved": approved}).error(400)
    stream.finish()
    client.approve("c", "int_001", asked["approval_id"]).error(400)


def test_another_digest_is_409_and_the_approval_stays(server, provider):
    stream, asked = ask(server.client, provider)
    other = "sha256:" + "0" * 64
    server.client.approve("c", "int_001", asked["approval_id"], arguments_digest=other).error(409)
    assert not (server.home.workspace / "out.txt").exists()
    provider.plan(text("ok"))
    server.client.approve("c", "int_001", asked["approval_id"], arguments_digest=asked["arguments_digest"]).expect(200)
    stream.finish()


@pytest.mark.parametrize("body", [{}, {"approved": True}, {"approval_id": "A"}, {"approval_id": "A", "approved": "yes"},
                                  {"approval_id": 7, "approved": True}, {"approval_id": "A", "approved": True, "unknown": 1},
                                  {"approval_id": "A", "approved": True, "scope": "forever"},
                                  {"approval_id": "A", "approved": True, "arguments": "{}"}, [], "text", None])
def test_malformed_answers_are_400_and_answer_nothing(client, provider, body):
    stream, asked = ask(client, provider)
    if isinstance(body, dict) and body.get("approval_id") == "A":
        body = {**body, "approval_id": asked["approval_id"]}
    client.post("/chats/c/interactions/int_001/approve", json.dumps(body)).error(400)
    assert client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
    client.cancel("c", "int_001")
    stream.finish("CANCELLED")


def test_a_rejection_reaches_the_model_with_the_feedback(server, provider):
    stream, asked = ask(server.client, provider)
    provider.plan(text("I see"))
    server.client.approve("c", "int_001", asked["approval_id"], False, feedback="use notes.md instead").expect(200)
    stream.finish()
    assert stream.names(without=("usage", "text_delta")) == [
        "interaction_started", "approval_required", "rejected", "tool_result", "answer", "interaction_complete"]
    assert stream.one("rejected")["feedback"] == "use notes.md instead"
    told = provider.requests[1].last
    assert told["role"] == "tool" and told["tool_call_id"] == "call_1" and "use notes.md instead" in told["content"]
    assert stream.one("tool_result")["is_error"] is True
    assert not (server.home.workspace / "out.txt").exists()


def test_replaced_arguments_run_and_are_recorded(server, provider):
    stream, asked = ask(server.client, provider)
    provider.plan(text("ok"))
    server.client.approve("c", "int_001", asked["approval_id"], arguments={"path": "other.txt", "content": "mine"}).expect(200)
    stream.finish()
    assert (server.home.workspace / "other.txt").read_text() == "mine"
    assert not (server.home.workspace / "out.txt").exists()
    approved, called = stream.one("approved"), stream.one("tool_call")
    assert json.loads(called["tool_input"]) == {"path": "other.txt", "content": "mine"}
    assert approved["tool_input"] == called["tool_input"]
    assert approved["arguments_digest"] == "sha256:" + hashlib.sha256(called["tool_input"].encode()).hexdigest()
    assert approved["arguments_digest"] != asked["arguments_digest"]


def test_replaced_arguments_that_violate_the_schema_do_not_run(server, provider):
    stream, asked = ask(server.client, provider)
    provider.plan(text("ok"))
    answer = server.client.approve("c", "int_001", asked["approval_id"], arguments={"path": 7})
    assert answer.status in (200, 400)
    if answer.status == 400:
        server.client.cancel("c", "int_001")
    stream.rest()
    assert not list(server.home.workspace.iterdir())


def test_scope_chat_grants_equal_calls_only_and_an_edit_takes_it_back(server, provider):
    client = server.client
    stream, asked = ask(client, provider, tool="run_shell", arguments={"command": "echo x >> log.txt"})
    provider.plan(text("ok"))
    client.approve("c", "int_001", asked["approval_id"], scope="chat").expect(200)
    stream.finish()
    assert stream.one("approved")["scope"] == "chat"
    log = server.home.workspace / "log.txt"

    provider.plan(tools(call("run_shell", {"command": "echo x >> log.txt"}, "call_2")), text("again"))
    assert "approval_required" not in client.turn("c", "equal call").names()
    assert log.read_text() == "x\nx\n"

    stream, asked = ask(client, provider, tool="run_shell", arguments={"command": "echo y >> log.txt"}, call_id="call_3")
    client.cancel("c", stream.interaction)
    stream.finish("CANCELLED")

    stream, asked = ask(client, provider, "elsewhere", tool="run_shell", arguments={"command": "echo x >> log.txt"})
    client.cancel("elsewhere", stream.interaction)
    stream.finish("CANCELLED")

    provider.plan(tools(call("run_shell", {"command": "echo x >> log.txt"}, "call_4")))
    stream = client.edit("c", "int_001", "before the grant")
    stream.until("approval_required")
    client.cancel("c", stream.interaction)
    stream.finish("CANCELLED")
    assert log.read_text() == "x\nx\n"


def test_scope_once_grants_nothing_further(client, provider):
    stream, asked = ask(client, provider)
    provider.plan(tools(call("write_file", {"path": "out.txt", "content": "text"}, "call_2")))
    client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.until("tool_result")
    second = stream.until("approval_required")
    assert second["approval_id"] != asked["approval_id"]
    provider.plan(text("ok"))
    client.approve("c", "int_001", second["approval_id"]).expect(200)
    stream.finish()


def test_the_list_of_all_that_waits(client, provider):
    waiting = {}
    for chat in ("a", "b"):
        waiting[chat] = ask(client, provider, chat)
    listed = client.get("/approvals").expect(200, "approvals").json["approvals"]
    assert [(x["chat_id"], x["approval_id"]) for x in listed] == [(c, waiting[c][1]["approval_id"]) for c in ("a", "b")]
    for entry in listed:
        shown = waiting[entry["chat_id"]][1].data
        assert all(entry[k] == shown[k] for k in ("call_id", "tool_name", "tool_input", "arguments_digest", "reason", "risk"))
    for chat in ("a", "b"):
        provider.plan(text("ok"))
        approval = waiting[chat][1]["approval_id"]
        answer = client.post(f"/approvals/{approval}", {"approved": True}).expect(200, "approve_response")
        assert answer.json["approval_id"] == approval
        waiting[chat][0].finish()
    assert client.get("/approvals").json == {"approvals": [], "inputs": []}


def test_an_approval_may_stream_what_follows(client, provider):
    stream, asked = ask(client, provider)
    provider.plan(text("ok"))
    follow = client.stream("POST", "/chats/c/interactions/int_001/approve", {"approval_id": asked["approval_id"], "approved": True},
                           headers={"Accept": "text/event-stream"}, first_seq=asked.seq + 1)
    follow.finish()
    assert follow.names()[0] == "approved"
    stream.finish()
    assert [e.data for e in stream.events[-len(follow.events):]] == [e.data for e in follow.events]


def test_fifty_parallel_answers_run_the_tool_once(server, provider):
    client = server.client
    stream, asked = ask(client, provider, tool="run_shell", arguments={"command": "echo ran >> count.txt"})
    provider.plan(text("ok"))

    def answer(number):
        path = f"/approvals/{asked['approval_id']}" if number % 2 else "/chats/c/interactions/int_001/approve"
        return client.post(path, {"approval_id": asked["approval_id"], "approved": True}).status

    statuses = at_once([functools.partial(answer, number) for number in range(50)])
    assert sorted(statuses) == [200] + [400] * 49
    stream.finish()
    assert (server.home.workspace / "count.txt").read_text() == "ran\n"
    assert len(stream.all("approved")) == len(stream.all("tool_call")) == 1


def test_an_approval_after_a_cancel_is_400(server, provider):
    client = server.client
    stream, asked = ask(client, provider)
    client.cancel("c", "int_001").expect(200)
    stream.finish("CANCELLED")
    client.approve("c", "int_001", asked["approval_id"]).error(400)
    client.post(f"/approvals/{asked['approval_id']}", {"approved": True}).error(400)
    assert not (server.home.workspace / "out.txt").exists()
    assert client.get("/approvals").json == {"approvals": [], "inputs": []}


def test_approve_and_cancel_race_has_one_winner(server, provider):
    client = server.client
    for number in range(30):
        chat, name = f"race{number}", f"race{number}.txt"
        stream, asked = ask(client, provider, chat, arguments={"path": name, "content": "x"})
        provider.plan(text("ok"))
        approved, cancelled = (response.status for response in at_once([lambda: client.approve(chat, "int_001", asked["approval_id"]),
                                                                        lambda: client.cancel(chat, "int_001")]))
        stream.rest()
        assert cancelled == 200 and approved in (200, 400)
        ran = (server.home.workspace / name).exists()
        assert ran <= (approved == 200), "the call ran although the answer was refused"
        assert len(stream.all("approved")) == (approved == 200) or stream.events[-1]["status"] == "CANCELLED"
        with provider.lock:
            provider._replies.clear()


@pytest.mark.limit(90)
def test_sixty_four_streams_wait_and_each_answer_is_fast(server, provider, figure):
    client = server.client
    provider.answer_with(lambda r: text("ok") if r.last["role"] == "tool" else tools(
        call("write_file", {"path": f"{r.last['content']}.txt", "content": "x"})))
    streams = []
    for number in range(64):
        stream = client.start(f"chat{number}", f"file{number}")
        streams.append((stream, f"chat{number}"))
    asked = [stream.until("approval_required") for stream, _ in streams]
    assert len(client.get("/approvals").json["approvals"]) == 64
    # Idle connections must not slow it down either.
    import socket
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
    for connection in slow:
        connection.sendall(b"POST /chats/x/interactions HTTP/1.1\r\nHo")
    times = []
    for (stream, chat), event in zip(streams, asked):
        began = time.monotonic()
        client.approve(chat, "int_001", event["approval_id"]).expect(200)
        times.append(time.monotonic() - began)
    for stream, _ in streams:
        stream.finish()
    for connection in slow:
        connection.close()
    figure(f"approve with 64 waiting streams and 200 slow sockets: median {median(times) * 1e3:.1f} ms, max {max(times) * 1e3:.1f} ms")
    assert max(times) < 0.1 * SLACK
    assert len(list(server.home.workspace.glob("file*.txt"))) == 64


def test_approve_to_next_event_is_fast(client, provider, figure):
    times = []
    for number in range(20):
        stream, asked = ask(client, provider, f"c{number}")
        provider.plan(text("ok"))
        began = time.monotonic()
        client.approve(f"c{number}", "int_001", asked["approval_id"]).expect(200)
        # `at` is when this test read the event, after the POST returned, so the figure includes both.
        times.append(stream.until("approved").at - began)
        stream.finish()
    figure(f"approve POST to `approved` event: median {median(times) * 1e3:.2f} ms (a Python client)")
    assert median(times) < 0.02 * SLACK


@pytest.mark.parametrize("mode, asks, runs", [("approve_all", False, True), ("deny_all", False, False)])
def test_approval_modes(make_server, provider, mode, asks, runs):
    server = make_server(provider, config={"approval_mode": mode})
    provider.plan(tools(call("write_file", {"path": "out.txt", "content": "text"})), text("ok"))
    stream = server.client.turn("c", "go")
    assert ("approval_required" in stream.names()) == asks
    assert (server.home.workspace / "out.txt").exists() == runs
    assert stream.one("tool_result")["is_error"] == (not runs)


# The mode "auto": (configuration, tool, arguments, whether the call asks).
AUTO = {
    "a new file": ({}, "write_file", {"path": "out.txt", "content": "x"}, False),
    "a patch": ({}, "apply_patch", {"input": "*** Begin Patch\n*** Add File: out.txt\n+x\n*** End Patch"}, False),
    "a patch of a file that git ignores": ({}, "apply_patch", {"input": "*** Begin Patch\n*** Add File: a\n+x\n*** Add File: ignored/out.txt\n+x\n*** End Patch"}, True),
    "a command": ({}, "run_shell", {"command": "echo x > out.txt"}, False),
    "a program": ({}, "run_code", {"language": "shell", "code": "echo x > out.txt"}, False),
    "a file that git ignores": ({}, "write_file", {"path": "ignored/out.txt", "content": "x"}, True),
    "a file that git runs": ({}, "write_file", {"path": ".git/config", "content": "x"}, True),
    "the network": ({}, "http_get", {"url": "http://127.0.0.1:9/"}, True),
    "a command without a sandbox": ({}, "run_shell", {"command": "echo x > out.txt"}, True),
    "a rule": ({"tools": {"rules": [{"tool": "run_shell", "action": "ask"}]}}, "run_shell", {"command": "true"}, True),
    "a mode of one message": ({"approval_mode": "ask"}, "write_file", {"path": "out.txt", "content": "x"}, False),
}


@pytest.mark.parametrize("case", AUTO)
def test_the_mode_auto_asks_about_what_cannot_be_taken_back(make_server, make_home, provider, case):
    config, tool, arguments, asks = AUTO[case]
    if tool in ("run_shell", "run_code") and not (sandbox_works() and without_bubblewrap()):
        pytest.skip("bubblewrap cannot be used, or not be hidden, on this machine")
    home = make_home()
    (home.workspace / ".git").mkdir()
    (home.workspace / ".gitignore").write_text("ignored\n")
    more = {"wrapper": without_bubblewrap()} if case == "a command without a sandbox" else {}
    server = make_server(provider, home=home, config={"approval_mode": "auto"} | config, **more)
    provider.plan(tools(call(tool, arguments)))
    if not asks:
        provider.plan(text("done"))
    of_message = {"approval_mode": "auto"} if "approval_mode" in config else {}
    stream = server.client.start("c", "do it", **of_message)
    if asks:
        stream.until("approval_required")
        assert not list(home.workspace.rglob("out.txt"))
        return
    stream.finish()
    assert "approval_required" not in stream.names() and not stream.one("tool_result")["is_error"], stream.one("tool_result")
    assert (home.workspace / "out.txt").read_text().strip() == "x"
    assert [line["reason"] for line in server.client.get("/audit").json["entries"] if line["event"] == "started"] == ["auto"]


def test_a_tool_can_be_made_to_ask_or_be_denied(make_server, provider):
    server = make_server(provider, config={"tools": {"require_approval": ["echo"], "deny": ["run_shell"]}})
    stream, asked = ask(server.client, provider, tool="echo", arguments={"text": "x"})
    provider.plan(text("ok"))
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.finish()
    provider.plan(tools(call("run_shell", {"command": "true"})), text("ok"))
    assert server.client.turn("c", "go").one("tool_result")["is_error"] is True
    assert "run_shell" not in {t["function"]["name"] for t in provider.requests[-1].body["tools"]}


def test_several_calls_of_one_round_are_asked_one_by_one(server, provider):
    provider.plan(tools(call("write_file", {"path": "1.txt", "content": "x"}, "a"), call("write_file", {"path": "2.txt", "content": "x"}, "b"),
                        call("write_file", {"path": "3.txt", "content": "x"}, "d")))
    stream = server.client.start("c", "go")
    for approved in (True, False, True):
        asked = stream.until("approval_required")
        if asked["call_id"] == "d":
            provider.plan(text("ok"))
        server.client.approve("c", "int_001", asked["approval_id"], approved).expect(200)
    stream.finish()
    assert sorted(p.name for p in server.home.workspace.iterdir()) == ["1.txt", "3.txt"]
    assert [e["is_error"] for e in stream.all("tool_result")] == [False, True, False]


def writes(client, provider, chat, number):
    provider.plan(tools(call("write_file", {"path": f"{number}.txt", "content": "x"}, f"call_{number}")), text("done"))
    return client.start(chat, f"write {number}")


def ended(stream):
    stream.finish()
    return stream


def set_mode(client, chat, mode):
    return client.request("PATCH", f"/chats/{chat}", {"approval_mode": mode})


def test_a_chat_has_a_mode_of_its_own(server, make_server, provider):
    client = server.client
    provider.plan(text("hello"))
    client.turn("c", "hi")
    assert set_mode(client, "c", "approve_all").expect(200, "chat_summary").json["approval_mode"] == "approve_all"
    stream = ended(writes(client, provider, "c", 1))
    assert not stream.all("approval_required") and (server.home.workspace / "1.txt").exists()
    assert client.history("c")["approval_mode"] == "approve_all"
    # Another chat asks, and so does a copy, because the mode is not copied.
    other = writes(client, provider, "d", 2)
    client.approve("d", "int_001", other.until("approval_required")["approval_id"], False).expect(200)
    other.finish()
    client.post("/chats/c/fork", {"interaction_id": "int_002", "chat_id": "copy"}).expect(201)
    document = client.get("/chats/c/export?format=json").json
    assert "approval_mode" not in client.post("/import?as=brought", document).expect(201).json
    for chat in ("copy", "brought"):
        stream = writes(client, provider, chat, 3)
        client.approve(chat, "int_003", stream.until("approval_required")["approval_id"], False).expect(200)
        stream.finish()
    set_mode(client, "c", "deny_all").expect(200)
    client.post("/chats/c/fork", {"interaction_id": "int_002", "chat_id": "strict"}).expect(201)
    server.stop()
    client = make_server(provider, server.home).client
    for chat in ("c", "strict"):
        stream = ended(writes(client, provider, chat, 4))
        assert stream.one("tool_result")["is_error"] and not stream.all("approval_required")
    set_mode(client, "c", None).expect(200, "chat_summary")
    stream = writes(client, provider, "c", 5)
    client.approve("c", "int_004", stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    lines = [e for e in client.get("/audit?limit=1000").expect(200, "audit").json["entries"] if e["event"] == "mode_changed"]
    assert [(e["chat_id"], e["reason"], e["interaction_id"], e["tool_name"]) for e in lines] == [
        ("c", "approve_all", "", ""), ("c", "deny_all", "", ""), ("c", "server", "", "")]


def test_a_mode_that_changes_while_a_run_is_under_way_decides_on_its_next_call(client, provider):
    def planned(number):
        return tools(call("write_file", {"path": f"{number}.txt", "content": "x"}, f"call_{number}"))

    gates = [Gate(), Gate()]
    provider.plan(planned(1), Reply([gates[0], *planned(2).steps]), Reply([gates[1], *planned(3).steps]), planned(4), text("done"))
    stream = client.start("c", "write them all")
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    gates[0].wait_reached()
    set_mode(client, "c", "deny_all").expect(200)
    gates[0].release()
    gates[1].wait_reached()
    set_mode(client, "c", "approve_all").expect(200)
    gates[1].release()
    stream.finish()
    assert [e["is_error"] for e in stream.all("tool_result")] == [False, True, False, False]
    assert len(stream.all("approval_required")) == 1
    reasons = [(e["call_id"], e["event"], e.get("reason")) for e in client.get("/audit").json["entries"] if e["event"] in ("started", "refused")]
    assert reasons == [("call_1", "started", "approval"), ("call_2", "refused", "mode"), ("call_3", "started", "mode"), ("call_4", "started", "mode")]
    # A replay uses the mode in force when each call was made, not the present one.
    set_mode(client, "c", "ask").expect(200)
    report = client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200, "replay_report").json
    assert report["match"], report


def test_what_waits_goes_on_waiting_when_the_mode_changes(client, provider):
    stream = writes(client, provider, "c", 1)
    asked = stream.until("approval_required")
    set_mode(client, "c", "deny_all").expect(200)
    client.approve("c", "int_001", asked["approval_id"]).expect(200)
    assert not ended(stream).one("tool_result")["is_error"]


def test_no_chat_is_looser_than_a_server_that_refuses(server, make_server, provider):
    provider.plan(text("hello"))
    server.client.turn("c", "hi")
    set_mode(server.client, "c", "approve_all").expect(200)
    server.stop()
    strict = make_server(provider, server.home, config={"approval_mode": "deny_all"}).client
    assert "deny_all" in set_mode(strict, "c", "ask").error(403, "mode_not_allowed")["message"]
    set_mode(strict, "c", "deny_all").expect(200)
    set_mode(strict, "c", None).expect(200)
    assert ended(writes(strict, provider, "c", 1)).one("tool_result")["is_error"]


def test_tools_that_are_not_to_be_used_stay_so_in_every_mode(make_server, provider):
    server = make_server(provider, config={"tools": {"deny": ["write_file"]}})
    provider.plan(text("hello"))
    server.client.turn("c", "hi")
    set_mode(server.client, "c", "approve_all").expect(200)
    assert ended(writes(server.client, provider, "c", 1)).one("tool_result")["is_error"]
    assert not (server.home.workspace / "1.txt").exists()
