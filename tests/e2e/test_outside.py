"""A command outside the sandbox: for one call, by a person's word alone."""
import http.server
import json
import threading

import pytest
from support.provider import call, text, tools
from support.server import processes, reprise, sandbox_works, without_bubblewrap
from support.timing import eventually
from test_tenants import person
from test_tenants import start as start_for_people

pytestmark = pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")
OUTSIDE = "approve_outside_sandbox"
NOTE = "(outside the sandbox, as the user has allowed for this one call)"
SEE = "cat ~/private.txt"
WHY = {"outside_sandbox": "the file is hidden in the sandbox"}


@pytest.fixture
def server(make_server, provider):
    return made(make_server, provider)


def made(make_server, provider, home=None, **config):
    server = make_server(provider, home, config=config)
    (server.home.user / "private.txt").write_text("the private text\n")
    return server


def ask(client, provider, command=SEE, chat="c", tool="run_shell", call_id="call_1", **arguments):
    """Starts a run that asks about a command: (stream, approval_required)."""
    arguments = {"command": command} | arguments if tool == "run_shell" else arguments
    provider.plan(tools(call(tool, arguments, call_id)), text("done"))
    stream = client.start(chat, "do it")
    return stream, stream.until("approval_required")


def answer(client, stream, asked, approved=True, chat="c", **more):
    return client.approve(chat, stream.interaction, asked["approval_id"], approved, **more)


def ran(client, stream, asked, **more):
    """The result of the call after this answer."""
    answer(client, stream, asked, **more).expect(200)
    stream.finish()
    return stream.all("tool_result")[-1]["tool_output"]


def lines(client, *events):
    return [e for e in client.get("/audit").expect(200, "audit").json["entries"] if e["event"] in events]


# --- a person's choice

@pytest.mark.parametrize("tool, arguments", [("run_shell", {}), ("run_code", {"language": "python", "code": "import os; print(open(os.path.expanduser('~/private.txt')).read())"}),
                                             ("run_code", {"language": "shell", "code": SEE})])
def test_a_hidden_file_is_seen_outside_only(server, provider, tool, arguments):
    client = server.client
    stream, asked = ask(client, provider, tool=tool, **arguments)
    assert asked["allowed_decisions"] == ["approve", "approve_for_chat", "approve_always", OUTSIDE, "edit", "reject"]
    inside = ran(client, stream, asked)
    assert "the private text" not in inside and "No such file" in inside and NOTE not in inside
    assert "outside_sandbox" not in stream.one("approved").data
    stream, asked = ask(client, provider, tool=tool, call_id="call_2", **arguments)
    outside = ran(client, stream, asked, outside_sandbox=True)
    assert "the private text" in outside and outside.endswith(NOTE)
    assert stream.one("approved")["outside_sandbox"] is True and stream.one("approved")["scope"] == "once"
    stored = client.interaction("c", stream.interaction)["agent_events"]
    assert [e.get("outside_sandbox") for e in stored if e["type"] == "APPROVED"] == [True]
    assert [(e["call_id"], e["event"], e.get("outside_sandbox")) for e in lines(client, "approved", "started", "ended")] == [
        ("call_1", "approved", None), ("call_1", "started", None), ("call_1", "ended", None),
        ("call_2", "approved", True), ("call_2", "started", True), ("call_2", "ended", None)]
    assert NOTE in provider.requests[-1].last["content"], "the model knows"


def test_the_network_is_reached_outside_only(server, provider):
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        command = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {web.server_port})); print('con' + 'nected')\""
        stream, asked = ask(server.client, provider, command)
        assert "connected" not in ran(server.client, stream, asked)
        stream, asked = ask(server.client, provider, command)
        assert "connected\n" in ran(server.client, stream, asked, outside_sandbox=True)
    finally:
        web.shutdown()
        web.server_close()


def test_what_a_command_has_there(make_server, provider, make_home):
    """A clean environment, its own umask, limits, and an end with all that it has started."""
    home = make_home()
    wrapper = ["/bin/sh", "-c", 'umask 027; exec "$0" "$@"']
    server = make_server(provider, home, config={"tools": {"limits": {"memory_mb": 1000, "file_size_mb": 1}}}, wrapper=wrapper)
    client = server.client
    stream, asked = ask(client, provider, "env; echo home=$HOME; umask; ulimit -f; pwd")
    output = ran(client, stream, asked, outside_sandbox=True)
    assert f"home={home.user}\n" in output and f"\n{home.workspace}\n" in output
    assert "sk-canary" not in output and "OPENAI" not in output and "REPRISE" not in output
    assert "\n0027\n" in output, output
    assert "unlimited" not in output
    stream, asked = ask(client, provider, "(setsid sleep 8121 &) ; sleep 8122", timeout_s=1)
    output = ran(client, stream, asked, outside_sandbox=True)
    assert "timed out after 1 s and was ended, with all it had started" in output
    assert not processes("sleep 8121") and not processes("sleep 8122")
    stream, asked = ask(client, provider, "head -c 3000000 /dev/zero | tr '\\0' x")
    assert len(ran(client, stream, asked, outside_sandbox=True)) < 100_000
    assert len(provider.requests[-1].last["content"]) < 40_000
    stream, asked = ask(client, provider, "(setsid sleep 8131 &) ; echo x > ~/begun; sleep 8132")
    answer(client, stream, asked, outside_sandbox=True).expect(200)
    eventually((home.user / "begun").exists, "it runs")
    client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")
    assert not processes("sleep 8131") and not processes("sleep 8132")


def test_a_background_job_may_run_there(server, provider):
    client = server.client
    stream, asked = ask(client, provider, SEE + "; exec sleep 8141", background=True)
    started = ran(client, stream, asked, outside_sandbox=True)
    assert started.endswith(NOTE)
    job = stream.one("job_started")["job_id"]
    eventually(lambda: "the private text" in client.get(f"/chats/c/jobs/{job}?after=0").json["output"], "it has read the file")
    client.post(f"/chats/c/jobs/{job}/stop").expect(200)
    assert not processes("sleep 8141")


WRONG = [{"outside_sandbox": 1}, {"outside_sandbox": "yes"}, {"outside_sandbox": None, "outside": True}, {"outside_sandbox": True, "scope": "chat"}, {"outside_sandbox": True, "scope": "always"},
         {"outside_sandbox": True, "scope": "chat", "pattern": "cat *"}, {"outside_sandbox": True, "approved": False},
         {"outside_sandbox": True, "arguments_digest": "sha256:" + "0" * 64}, {"arguments": {"command": "id", **WHY}}]


@pytest.mark.parametrize("wrong", WRONG, ids=json.dumps)
def test_wrong_answers_run_nothing(server, provider, wrong):
    client = server.client
    stream, asked = ask(client, provider)
    refused = client.post(f"/approvals/{asked['approval_id']}", {"approved": True} | wrong)
    assert refused.status in (400, 409) and refused.json["error"]["code"] in ("invalid_answer", "invalid_member", "unknown_member", "invalid_argument", "digest_mismatch"), refused.json
    assert client.get("/approvals").json["approvals"][0]["approval_id"] == asked["approval_id"]
    answer(client, stream, asked, False).expect(200)
    stream.finish()
    assert not lines(client, "started")


def test_other_tools_have_no_sandbox_to_leave(server, provider):
    stream, asked = ask(server.client, provider, tool="write_file", path="a.txt", content="x")
    assert OUTSIDE not in asked["allowed_decisions"]
    error = answer(server.client, stream, asked, outside_sandbox=True).error(400, "invalid_answer")
    assert "outside_sandbox" in error["message"]
    ran(server.client, stream, asked)


# --- the agent's wish

def test_the_agent_may_ask_for_it(server, provider):
    client = server.client
    stream, asked = ask(client, provider, **WHY)
    assert asked["allowed_decisions"] == [OUTSIDE, "edit", "reject"] and asked["risk"] == "high" and "patterns" not in asked.data
    assert "OUTSIDE" in asked["reason"] and "your secrets" in asked["reason"]
    assert "needs" in answer(client, stream, asked).error(400, "invalid_answer")["message"]
    for scope in ("chat", "always"):
        answer(client, stream, asked, scope=scope).error(400, "invalid_answer")
        answer(client, stream, asked, scope=scope, outside_sandbox=True).error(400, "invalid_answer")
    assert "the private text" in ran(client, stream, asked, outside_sandbox=True)
    assert stream.one("approved")["outside_sandbox"] is True
    # The same call asks again.
    stream, asked = ask(client, provider, call_id="call_2", **WHY)
    output = ran(client, stream, asked, arguments={"command": SEE})
    assert "the private text" not in output and NOTE not in output and "changed the arguments" in output


def test_the_agent_knows_how_to_ask(server):
    offered = {tool["name"]: tool["parameters"] for tool in server.client.get("/tools").json["tools"]}
    for tool in ("run_shell", "run_code"):
        assert offered[tool]["properties"]["outside_sandbox"]["type"] == "string"
        assert "outside_sandbox" not in offered[tool]["required"]


@pytest.mark.parametrize("wish", ["", 1, True, None, {}, "x" * 1001])
def test_a_wish_needs_a_reason(server, provider, wish):
    provider.plan(tools(call("run_shell", {"command": SEE, "outside_sandbox": wish})), text("ok"))
    stream = server.client.turn("c", "go")
    assert "not accepted" in stream.one("tool_result")["tool_output"] and not stream.all("approval_required")


MODES = ["ask", "read_only", "auto", "approve_all"]


@pytest.mark.parametrize("mode", MODES)
def test_no_mode_and_no_rule_lets_it_through(make_server, provider, mode):
    rules = {"rules": [{"tool": "run_shell", "action": "allow"}, {"tool": "run_shell", "pattern": "cat *", "action": "allow"}, {"tool": "*", "action": "allow"}]}
    server = made(make_server, provider, approval_mode=mode, tools=rules)
    client = server.client
    provider.plan(tools(call("run_shell", {"command": SEE})), text("done"))
    assert "No such file" in client.turn("c", "go").one("tool_result")["tool_output"], "the rule lets it run, in the sandbox"
    stream, asked = ask(client, provider, call_id="call_2", **WHY)
    assert asked["allowed_decisions"] == [OUTSIDE, "edit", "reject"]
    assert "the private text" in ran(client, stream, asked, outside_sandbox=True)
    assert [e.get("outside_sandbox") for e in lines(client, "started")] == [None, True]


@pytest.mark.parametrize("mode, why", [("deny_all", "refuses"), ("plan", "plan")])
def test_modes_that_run_no_commands_refuse_it(make_server, provider, mode, why):
    server = made(make_server, provider, approval_mode=mode)
    provider.plan(tools(call("run_shell", {"command": SEE, **WHY})), text("done"))
    stream = server.client.turn("c", "go")
    assert why in stream.one("tool_result")["tool_output"] and not stream.all("approval_required") and not lines(server.client, "started")


def test_a_rule_that_denies_the_command_denies_it_there(make_server, provider):
    server = made(make_server, provider, tools={"rules": [{"tool": "run_shell", "pattern": "cat *", "action": "deny"}]})
    provider.plan(tools(call("run_shell", {"command": SEE, **WHY})), text("done"))
    assert "denies" in server.client.turn("c", "go").one("tool_result")["tool_output"]
    stream, asked = ask(server.client, provider, "id", call_id="call_2", **WHY)
    answer(server.client, stream, asked, outside_sandbox=True, arguments={"command": SEE, **WHY}).error(409, "denied_by_rule")
    answer(server.client, stream, asked, False).expect(200)
    stream.finish()


@pytest.mark.parametrize("scope, pattern", [("chat", None), ("always", None), ("chat", "cat *"), ("always", "cat *")])
def test_no_grant_covers_it(server, provider, scope, pattern):
    client = server.client
    (server.home.workspace / "a.txt").write_text("a")
    stream, asked = ask(client, provider, "cat a.txt")
    more = {"pattern": pattern} if pattern else {}
    if pattern:
        assert pattern in [p["pattern"] for p in asked["patterns"]]
    ran(client, stream, asked, scope=scope, **more)
    provider.plan(tools(call("run_shell", {"command": "cat a.txt"}, "call_2")), text("ok"))
    again = client.turn("c", "again")
    assert not again.all("approval_required") and NOTE not in again.one("tool_result")["tool_output"], "the grant holds, inside"
    stream, asked = ask(client, provider, "cat a.txt", call_id="call_3", **WHY)
    assert asked["allowed_decisions"] == [OUTSIDE, "edit", "reject"]
    assert NOTE in ran(client, stream, asked, outside_sandbox=True)
    stream, asked = ask(client, provider, "cat a.txt", call_id="call_4", **WHY)
    answer(client, stream, asked, False).expect(200)
    stream.finish()


def test_a_sub_agent_asks_too(make_server, make_home, provider):
    from test_agents import HEAD, agent, delegate, trust
    home = make_home()
    trust(home, agent(home.workspace, "docs", HEAD.replace("---\n", "---\nmode: approve_all\ntools: [run_shell]\n", 1) + "Go."))
    server = made(make_server, provider, home)
    provider.plan(tools(delegate()), tools(call("run_shell", {"command": SEE, **WHY}, "inner")), text("over"), text("ok"))
    stream = server.client.start("c", "go")
    asked = stream.until("approval_required")
    assert asked["agent"] == "docs" and asked["allowed_decisions"] == [OUTSIDE, "edit", "reject"]
    answer(server.client, stream, asked, outside_sandbox=True).expect(200)
    stream.finish()
    result = [e["event"]["tool_output"] for e in stream.all("nested") if e["event"]["type"] == "TOOL_RESULT"]
    assert "the private text" in result[0]


# --- where there is no such choice

@pytest.mark.parametrize("wish", [{}, WHY])
def test_the_setting_takes_it_away(make_server, provider, wish):
    server = made(make_server, provider, tools={"allow_unsandboxed": False})
    provider.plan(tools(call("run_shell", {"command": SEE} | wish)), text("done"))
    stream = server.client.start("c", "go")
    assert "outside_sandbox" not in json.dumps(server.client.get("/tools").json["tools"])
    if wish:
        stream.finish()
        assert "not accepted" in stream.one("tool_result")["tool_output"]
        return
    asked = stream.until("approval_required")
    assert OUTSIDE not in asked["allowed_decisions"]
    answer(server.client, stream, asked, outside_sandbox=True).error(400, "invalid_answer")
    assert "the private text" not in ran(server.client, stream, asked)


@pytest.mark.parametrize("when", ["asked", "answered"])
def test_the_setting_counts_when_the_call_runs(make_server, provider, when):
    server = made(make_server, provider)
    stream, asked = ask(server.client, provider)
    if when == "answered":  # another call of the round keeps the run waiting
        answer(server.client, stream, asked, False).expect(200)
        stream.finish()
        provider.plan(tools(call("run_shell", {"command": "sleep 60"}, "a"), call("run_shell", {"command": SEE}, "b")), text("done"))
        stream = server.client.start("c", "go")
        first, asked = [stream.until("approval_required") for _ in range(2)]
        answer(server.client, stream, asked, outside_sandbox=True).expect(200)
    server.stop()
    again = made(make_server, provider, server.home, tools={"allow_unsandboxed": False})
    if when == "asked":
        error = again.client.approve("c", stream.interaction, asked["approval_id"], outside_sandbox=True)
        assert error.status in (400, 409), error.json
    else:
        provider.plan(text("over"))
    follow = again.client.attach("c", stream.interaction, after=0)
    for _ in range(2 if when == "answered" else 1):
        waiting, = eventually(lambda: again.client.get("/approvals").json["approvals"], "it asks again")
        assert waiting["approval_id"] != asked["approval_id"] and OUTSIDE not in waiting["allowed_decisions"]
        again.client.approve("c", stream.interaction, waiting["approval_id"], False).expect(200)
    follow.finish()
    assert not lines(again.client, "started")


def test_without_a_sandbox_there_is_none_to_leave(make_server, provider):
    wrapper = without_bubblewrap()
    if not wrapper:
        pytest.skip("bubblewrap cannot be hidden here")
    server = make_server(provider, wrapper=wrapper)
    stream, asked = ask(server.client, provider, "echo hi", **WHY)
    assert asked["allowed_decisions"] == ["approve", "edit", "reject"] and "WITHOUT a sandbox" in asked["reason"]
    answer(server.client, stream, asked, outside_sandbox=True).error(400, "invalid_answer")
    assert "no sandbox on this machine" in ran(server.client, stream, asked)


@pytest.mark.parametrize("allowed", [None, True])
def test_a_server_for_several_people_needs_the_setting(make_server, make_home, allowed):
    home = make_home()
    more = {"tools": {"allow_unsandboxed": True}} if allowed else {}
    server = start_for_people(make_server, home, workspace_mode="shared", **more)
    alice, bob = person(server, "alice"), person(server, "bob")
    stream = alice.start("c", "run: echo $HOME")
    asked = stream.until("approval_required")
    assert (OUTSIDE in asked["allowed_decisions"]) == bool(allowed)
    bob.post(f"/approvals/{asked['approval_id']}", {"approved": True, "outside_sandbox": True}).error(404)
    if not allowed:
        answer(alice, stream, asked, outside_sandbox=True).error(400, "invalid_answer")
        answer(alice, stream, asked, False).expect(200)
        stream.finish()
        return
    assert NOTE in ran(alice, stream, asked, outside_sandbox=True)
    assert stream.one("approved")["answered_by"] and stream.one("approved")["outside_sandbox"]
    line, = lines(alice, "approved")
    assert line["answered_by"] == stream.one("approved")["answered_by"] and line["outside_sandbox"]


# --- records, restarts, other servers

def test_a_replay_knows_it_and_an_edit_asks_again(server, provider):
    client = server.client
    stream, asked = ask(client, provider, SEE + "; echo x >> ~/count")
    ran(client, stream, asked, outside_sandbox=True)
    stream, asked = ask(client, provider, SEE + "; echo x >> ~/count", **WHY)
    ran(client, stream, asked, outside_sandbox=True)
    for number in ("int_001", "int_002"):
        report = client.post(f"/chats/c/interactions/{number}/replay", {"mode": "recorded"}).expect(200).json
        assert report["match"], report
    assert (server.home.user / "count").read_text() == "x\nx\n", "a replay runs nothing"
    provider.plan(tools(call("run_shell", {"command": SEE, **WHY}, "call_9")), text("done"))
    edited = client.edit("c", "int_002", "again")
    asked = edited.until("approval_required")
    assert asked["allowed_decisions"] == [OUTSIDE, "edit", "reject"]
    answer(client, edited, asked, False).expect(200)
    edited.finish()
    status, shown, why = reprise(server.home, "show", "c", "--data-dir", server.home.data)
    assert "once, outside the sandbox" in shown, (status, shown, why)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_call_that_ran_there_does_not_run_again(make_server, provider, end):
    server = made(make_server, provider)
    stream, asked = ask(server.client, provider, "echo x >> ~/count; sleep 8151", timeout_s=600)
    answer(server.client, stream, asked, outside_sandbox=True).expect(200)
    count = server.home.user / "count"
    eventually(count.exists, "it runs")
    getattr(server, end)()
    eventually(lambda: not processes("sleep 8151"), "it is gone with its server")
    server = made(make_server, provider, server.home)
    eventually(lambda: server.client.interaction("c", stream.interaction)["status"] in ("FAILED", "CANCELLED"), "it has ended")
    assert not server.client.get("/approvals").json["approvals"] and count.read_text() == "x\n"
    provider.plan(text("ok"))
    server.client.stream("POST", f"/chats/c/interactions/{stream.interaction}/resume").finish()
    assert count.read_text() == "x\n"


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_word_ends_with_the_server_that_took_it(make_server, provider, end):
    """Answered, but not begun, when the server ends: the call is asked about again."""
    server = made(make_server, provider)
    provider.plan(tools(call("run_shell", {"command": "echo 0 >> log.txt; sleep 8161", "timeout_s": 600}, "call_0"), call("run_shell", {"command": "echo 1 >> ~/count"}, "call_1"),
                        call("run_shell", {"command": "echo 2 >> log.txt"}, "call_2")))
    stream = server.client.start("c", "do it")
    asked = [stream.until("approval_required") for _ in range(3)]
    answer(server.client, stream, asked[0]).expect(200)
    eventually((server.home.workspace / "log.txt").exists, "the first runs")
    answer(server.client, stream, asked[1], outside_sandbox=True).expect(200)
    getattr(server, end)()
    stream.close()
    server = made(make_server, provider, server.home)
    client = server.client
    provider.plan(text("ok"))
    stream = client.attach("c", "int_001", after=0)
    client.approve("c", "int_001", asked[2]["approval_id"]).expect(200)
    again = eventually(lambda: next((a for a in client.get("/approvals").json["approvals"] if a["call_id"] == "call_1"), None), "it asks again")
    assert again["approval_id"] != asked[1]["approval_id"] and OUTSIDE in again["allowed_decisions"]
    assert not (server.home.user / "count").exists()
    client.approve("c", "int_001", asked[1]["approval_id"], outside_sandbox=True).error(400, "already_processed")
    client.approve("c", "int_001", again["approval_id"], outside_sandbox=True).expect(200)
    stream.finish()
    assert (server.home.user / "count").read_text() == "1\n"
    assert client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]


def test_an_answer_at_another_server(make_instance, provider):
    a, b = make_instance(), make_instance()
    for each in (a, b):
        (each.home.user / "private.txt").write_text("the private text\n")
    stream, asked = ask(a.client, provider)
    waiting, = b.client.get("/approvals").expect(200).json["approvals"]
    assert OUTSIDE in waiting["allowed_decisions"]
    b.client.approve("c", "int_001", asked["approval_id"], outside_sandbox=True, scope="chat").error(400, "invalid_answer")
    b.client.approve("c", "int_001", asked["approval_id"], outside_sandbox=True).expect(200)
    stream.finish()
    assert "the private text" in stream.one("tool_result")["tool_output"] and stream.one("approved")["outside_sandbox"]
    assert [e.get("outside_sandbox") for e in b.client.get("/audit").json["entries"] if e["event"] in ("approved", "started")] == [True, True]
    stream, asked = ask(a.client, provider, call_id="call_2", **WHY)
    b.client.approve("c", "int_002", asked["approval_id"]).error(400, "invalid_answer")
    b.client.approve("c", "int_002", asked["approval_id"], outside_sandbox=True).expect(200)
    stream.finish()
    assert "the private text" in stream.one("tool_result")["tool_output"]


# --- clients

def test_at_a_terminal(server, provider, open_terminal):
    provider.plan(tools(call("run_shell", {"command": SEE}, "a")), tools(call("run_shell", {"command": SEE, **WHY}, "b")), text("end"), tools(call("run_shell", {"command": SEE, **WHY}, "d")), text("fine"))
    chat = open_terminal(server.home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}").opened()
    chat.say("work").until("allow?").until("[o]utside the sandbox").answer("?").until("lets this one call run outside the sandbox").until("allow?").answer("o")
    chat.until("allowed outside the sandbox").until("OUTSIDE").until("it reaches all your files, the network and your secrets").until("allow?")
    assert "[y]es" not in "\n".join(chat.screen[-4:])
    chat.answer_line("yes").until("which needs").until("allow?").answer("o").until("end").ready()
    assert len(lines(server.client, "started")) == 2 and all(e["outside_sandbox"] for e in lines(server.client, "started"))
    # What allows everything does not allow that.
    chat.say("/mode all").until("everything").ready().say("again").until("OUTSIDE").until("allow?").answer("n").until("(cancelled)").ready()
    assert len(lines(server.client, "started")) == 2


def test_in_a_pipe(server, provider):
    provider.plan(tools(call("run_shell", {"command": SEE, **WHY}, "a")), tools(call("run_shell", {"command": SEE}, "b")), text("the end"))
    _, output, messages = reprise(server.home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}", stdin=b"work\nyes\noutside\no\n")
    assert "the end" in output and "[o]utside the sandbox" in output + messages, output + messages
    assert [e.get("outside_sandbox") for e in lines(server.client, "approved")] == [True, True]


def test_by_the_command_line(server, provider):
    stream, asked = ask(server.client, provider, **WHY)
    at = ("--url", f"http://127.0.0.1:{server.port}")
    _, listed, _ = reprise(server.home, "approvals", *at)
    assert "yes|no|outside" in listed and "your secrets" in listed
    status, _, why = reprise(server.home, "approvals", asked["approval_id"], "yes", *at)
    assert status == 1 and "outside" in why
    assert reprise(server.home, "approvals", asked["approval_id"], "outside", "--scope", "chat", *at)[0] == 2
    status, output, _ = reprise(server.home, "approvals", asked["approval_id"], "outside", *at)
    assert status == 0 and "approved outside the sandbox" in output
    stream.finish()
    assert "the private text" in stream.one("tool_result")["tool_output"]


def test_one_question_does_not_answer_it(server, provider):
    """`reprise -p` with a mode that asks about nothing."""
    provider.plan(tools(call("run_shell", {"command": SEE, **WHY}, "a")), text("done"))
    status, _, said = reprise(server.home, "-p", "work", "--url", f"http://127.0.0.1:{server.port}", "--approval-mode", "approve_all")
    assert status != 0 and not lines(server.client, "started"), said


def test_on_the_page(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": SEE}, "a")), tools(call("run_shell", {"command": SEE, **WHY}, "b")), text("the end"))
    page = browse(server)
    page.say("work")
    page.one("approval-card")
    assert "your secrets" in page.one("outside-means").text and page.all("approve")
    page.press("approve-outside")
    page.until(lambda: "OUTSIDE" in page.one("terms").text, "the second call asks")
    assert not page.all("approve")
    card = page.one("approval-card")
    page.driver.execute_script("arguments[0].focus()", card)
    page.press("approve-outside")
    page.until_text("answer", "the end")
    assert [e.get("outside_sandbox") for e in lines(server.client, "started")] == [True, True]
    assert all(e.text == "Approved outside the sandbox" for e in page.all("decision"))


def test_approving_all_on_the_page_leaves_it_out(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "echo 1"}, "a"), call("run_shell", {"command": "echo 2"}, "b"), call("run_shell", {"command": SEE, **WHY}, "d")), text("the end"))
    page = browse(server)
    page.say("work")
    page.approve_all()
    page.until(lambda: len(lines(server.client, "approved")) == 2, "two are approved")
    assert [a["call_id"] for a in server.client.get("/approvals").json["approvals"]] == ["d"]
    page.press("deny")
    page.until_text("answer", "the end")


def test_in_an_editor(server, provider):
    from support.acp import Agent
    agent = Agent(server.home, "--url", f"http://127.0.0.1:{server.port}")
    try:
        session = agent.new(server.home.workspace)
        provider.plan(tools(call("run_shell", {"command": SEE}, "a")), tools(call("run_shell", {"command": SEE, **WHY}, "b")), tools(call("run_shell", {"command": SEE, **WHY}, "d")), text("done"))
        number = agent.prompt(session, "work")
        request = agent.asked()
        options = {o["optionId"]: o for o in request["params"]["options"]}
        assert list(options)[0] == "allow_once" and options["allow_outside"]["kind"] == "allow_once" and "secrets" in options["allow_outside"]["name"]
        agent.choose(request, "allow_outside")
        request = agent.asked()
        assert [o["optionId"] for o in request["params"]["options"]] == ["allow_once", "allow_outside", "reject_once"]
        assert request["params"]["options"][0]["name"] == "Allow once, in the sandbox"
        agent.choose(request, "allow_once")
        agent.choose(agent.asked(), "allow_outside")
        assert agent.answer(number)["stopReason"] == "end_turn"
        assert [e.get("outside_sandbox") for e in lines(server.client, "started")] == [True, None, True]
    finally:
        agent.close()


def test_over_ag_ui(server, provider):
    from support.agui import Thread, resolved
    thread = Thread(server)
    provider.plan(tools(call("run_shell", {"command": SEE, **WHY})), text("done"))
    run = thread.run("work")
    interrupt, = run.end["outcome"]["interrupts"]
    assert "outsideSandbox" in interrupt["responseSchema"]["properties"] and OUTSIDE in interrupt["metadata"]["reprise"]["allowedDecisions"]
    thread.resume(resolved(interrupt, approved=True, outsideSandbox=True))
    assert [e.get("outside_sandbox") for e in lines(server.client, "started")] == [True]


def test_over_mcp(server, provider):
    from support.mcp_client import McpClient
    from test_mcp_server import WAYS
    _, era = WAYS["http, sessions"]
    mcp = McpClient(server, era)
    try:
        provider.plan(tools(call("run_shell", {"command": SEE, **WHY})), text("done"))
        asked = mcp.start("ask", message="go", chat_id="c")
        question, form = asked.question()
        decision = form["requestedSchema"]["properties"]["decision"]
        assert decision["enum"] == [OUTSIDE, "reject"] and "secrets" in decision["description"]
        asked.reply(question, decision=OUTSIDE)
        assert asked.result()["content"][0]["text"] == "done"
        assert [e.get("outside_sandbox") for e in lines(server.client, "started")] == [True]
    finally:
        mcp.close()
