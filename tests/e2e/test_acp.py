"""`reprise acp`: the Agent Client Protocol on standard input and output, through a running server."""
import base64
import json
import os
import pathlib
import signal
import subprocess

import pytest
from support.acp import SDK, Agent, Checker, Refused, schema
from support.npm import NEWER_NODE, install
from support.provider import Gate, call, text, tools, wav
from support.server import BINARY, Server
from support.timing import SLACK, SOON, eventually

HERE = pathlib.Path(__file__).resolve().parent


@pytest.fixture
def connect():
    """Starts agents for a server and closes them at the end."""
    agents = []

    def make(server, *arguments, **more):
        agents.append(Agent(server.home, "--url", f"http://127.0.0.1:{server.port}", *arguments, **more))
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()


@pytest.fixture
def agent(connect, server):
    return connect(server)


@pytest.fixture
def session(agent, server):
    return agent.new(server.home.workspace)


def waiting(server):
    return server.client.get("/approvals").json["approvals"]


# --- the official client ---------------------------------------------------------------------------------------------
@pytest.mark.limit(120)
def test_the_official_client(offline, tmp_path):
    package = install(SDK) / "@agentclientprotocol" / "sdk" / "dist" / "v1" / "stable" / "acp.js"
    record = tmp_path / "lines"
    done = subprocess.run(["node", *NEWER_NODE, str(HERE / "support" / "acp_client.mjs"), str(package), str(record), str(offline.home.workspace), str(BINARY), "acp",
                           "--url", f"http://127.0.0.1:{offline.port}"], env=offline.home.environment(), capture_output=True, text=True, timeout=30 * SLACK, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert seen["code"] == 0 and seen["initialized"]["protocolVersion"] == 1 and seen["initialized"]["agentInfo"]["name"] == "reprise"
    assert seen["stops"] == ["end_turn"] * 4 + ["cancelled", "end_turn"] and "ran\ntwice" in seen["text"][1] and "blue" in seen["text"][2]
    assert {"agent_thought_chunk", "agent_message_chunk", "tool_call", "tool_call_update", "plan"} <= set(seen["updates"])
    assert seen["permissions"] == ["write_file sdk.txt", "run_shell echo ran; echo twice", "write_file no.txt", "write_file cancelled.txt"]
    assert seen["forms"] == ["Which colour?"]
    assert sorted(p.name for p in offline.home.workspace.iterdir()) == ["free.txt", "sdk.txt"]
    assert seen["refused"] == -32602 and [s["sessionId"] for s in seen["list"]["sessions"]] == [seen["session"]] and seen["gone"] == 0
    assert seen["replayed"].count("user_message_chunk") == 6 and seen["loaded"]["modes"]["currentModeId"] == "approve_all"
    checker = Checker()
    for line in record.read_text().splitlines():
        sender, message = line.split(" ", 1)
        checker.check(json.loads(message), sender)
    assert checker.checked > 60, "messages of both sides are checked against the schema"


@pytest.mark.limit(120)
def test_acpx(make_home):
    """A command-line client in real use. It starts the server, too."""
    program = install("acpx@0.19.1") / "acpx" / "dist" / "cli.js"
    home = make_home()
    environment = home.environment()

    def acpx(*arguments):
        return subprocess.run(["node", *NEWER_NODE, str(program), *arguments], env=environment, cwd=home.path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=30 * SLACK, check=False)

    if acpx("--version").returncode != 0:
        pytest.skip("acpx needs a newer Node.js (22.13)")
    done = acpx("--cwd", str(home.workspace), "--agent", f"{BINARY} acp --data-dir {home.data}", "--approve-all", "exec", "write x.txt: by acpx")
    assert done.returncode == 0 and "[done] end_turn" in done.stdout, done.stdout + done.stderr
    assert (home.workspace / "x.txt").read_text() == "by acpx"
    eventually(lambda: not holder(home), "the server ends when nobody uses it")


# --- a turn ----------------------------------------------------------------------------------------------------------
def test_a_turn_with_tools(agent, session, server, provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "new\n"}, "w"), call("run_shell", {"command": "echo out"}, "r"), say="I write. ", think="let me see"),
                  text("all ", "done"))
    number = agent.prompt(session, "go")
    for _ in range(2):
        request = agent.asked()
        options = [o["optionId"] for o in request["params"]["options"]]
        assert [each for each in options if ":" not in each and each != "allow_outside"] == ["allow_once", "allow_chat", "allow_always", "reject_once"]
        assert options[3:5] == ["allow_chat:0", "allow_always:0"]  # a pattern proposed by the engine
        agent.choose(request, "allow_once")
    assert agent.answer(number) == {"stopReason": "end_turn"}
    assert agent.said() == "I write. all done" and agent.said("agent_thought_chunk").strip() == "let me see"
    write, run = agent.calls()
    path = str(server.home.workspace / "a.txt")
    assert (write["kind"], write["status"], write["locations"], write["rawInput"]) == ("edit", "completed", [{"path": path}], {"path": "a.txt", "content": "new\n"})
    assert write["content"][0] == {"type": "diff", "path": path, "oldText": None, "newText": "new\n"}
    assert (run["kind"], run["status"]) == ("execute", "completed") and "out" in run["content"][0]["content"]["text"]
    assert "session_info_update" in agent.kinds() and (server.home.workspace / "a.txt").read_text() == "new\n"


def test_a_provider_that_gives_an_id_twice(agent, session, provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"}, "call_1")), tools(call("write_file", {"path": "b.txt", "content": "2"}, "call_1")), text("ok"))
    number = agent.prompt(session, "go")
    for _ in range(2):
        agent.choose(agent.asked(), "allow_once")
    assert agent.answer(number)["stopReason"] == "end_turn"
    assert [(c["title"], c["status"]) for c in agent.calls()] == [("write_file a.txt", "completed"), ("write_file b.txt", "completed")]
    told = provider.requests[-1].conversation
    made, answered = [c["id"] for m in told for c in m.get("tool_calls", [])], [m["tool_call_id"] for m in told if m["role"] == "tool"]
    assert made == answered and made[0] == "call_1" and len(set(made)) == 2, "its calls and results match"


def test_a_diff_shows_the_file_as_it_is(agent, session, server, provider):
    (server.home.workspace / "a.txt").write_text("one\ntwo\n")
    provider.plan(tools(call("edit_file", {"path": "a.txt", "old_text": "two", "new_text": "three"})), text("ok"))
    number = agent.prompt(session, "go")
    request = agent.asked()
    diff = request["params"]["toolCall"]["content"][0]
    assert (diff["oldText"], diff["newText"]) == ("one\ntwo\n", "one\nthree\n")
    agent.choose(request, "reject_once")
    assert agent.answer(number)["stopReason"] == "end_turn"
    assert agent.calls()[0]["status"] == "failed" and (server.home.workspace / "a.txt").read_text() == "one\ntwo\n"


def test_always_is_a_grant(agent, session, server, provider):
    once = tools(call("run_shell", {"command": "true"}))
    provider.plan(once, once, text("ok"))
    number = agent.prompt(session, "go")
    agent.choose(agent.asked(), "allow_chat")
    assert agent.answer(number)["stopReason"] == "end_turn" and not agent.requests
    assert len(server.client.get(f"/chats/{session}/grants").json["grants"]) == 1


def test_what_cannot_be_seen_is_spelled_out(agent, session, provider):
    provider.plan(tools(call("run_shell", json.dumps({"command": "echo \u202e safe"}, ensure_ascii=False))), text("ok"))
    number = agent.prompt(session, "go")
    request = agent.asked()
    assert "\u202e" not in request["params"]["toolCall"]["title"] and "<U+202E>" in request["params"]["toolCall"]["title"]
    assert any("spelled out" in c["content"]["text"] for c in request["params"]["toolCall"]["content"])
    agent.choose(request, "reject_once")
    agent.answer(number)


def test_blocks_of_a_prompt(agent, session, server, provider):
    provider.plan(text("seen"))
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
    blocks = [{"type": "text", "text": "look at "},
              {"type": "resource_link", "name": "main.py", "uri": f"file://{server.home.workspace}/src/a%20b.py"},
              {"type": "resource", "resource": {"uri": "file:///elsewhere/notes.txt", "text": "the password is fish", "mimeType": "text/plain"}},
              {"type": "image", "mimeType": "image/png", "data": png},
              {"type": "audio", "mimeType": "audio/wav", "data": base64.b64encode(wav()).decode()}]
    assert agent.answer(agent.prompt(session, blocks))["stopReason"] == "end_turn"
    last = provider.requests[-1].conversation[-1]["content"]
    last = last if isinstance(last, str) else json.dumps(last)
    assert "look at [@main.py](src/a b.py)" in last and "the password is fish" in last
    files = server.client.get(f"/chats/{session}/files").json["files"]
    assert sorted(f["filename"] for f in files) == ["audio.wav", "image.png", "notes.txt"]
    for bad, word in (([], "empty"), ([{"type": "text", "text": " "}], "empty"), ([{"type": "image", "mimeType": "image/png", "data": "?"}], "base64"),
                      ([{"type": "audio", "mimeType": "audio/wav", "data": "?"}], "base64")):
        with pytest.raises(Refused, match=word.replace("[", r"\[").replace("]", r"\]")) as refused:
            agent.answer(agent.prompt(session, bad))
        assert refused.value.code == -32602


def test_commands(agent, session, provider, server):
    announced = agent.until(lambda: next((u for u in agent.updates if u["sessionUpdate"] == "available_commands_update"), None))
    assert [c["name"] for c in announced["availableCommands"]] == ["compact", "regenerate", "resume", "undo"]
    provider.plan(text("zero "), text("one "), text("two "))
    agent.answer(agent.prompt(session, "hi"))
    agent.answer(agent.prompt(session, "and?"))
    agent.answer(agent.prompt(session, "/regenerate"))
    assert agent.said() == "zero one two " and server.client.history(session)["head"] == "int_003"
    agent.answer(agent.prompt(session, "/undo"))
    assert server.client.history(session)["head"] == "int_001"
    with pytest.raises(Refused, match="no interaction before"):
        agent.answer(agent.prompt(session, "/undo"))


# --- questions -------------------------------------------------------------------------------------------------------
FORM = {"elicitation": {"form": {}, "url": {}}}


@pytest.mark.parametrize("result, heard", [({"action": "accept", "content": {"answer": "red"}}, "red"), ({"action": "accept", "content": {"answer": "red", "other": "teal"}}, "teal"),
                                           ({"action": "decline"}, "declined"), ({"action": "cancel"}, "declined")])
def test_a_question_as_a_form(connect, server, provider, result, heard):
    agent = connect(server, capabilities=FORM)
    session = agent.new(server.home.workspace)
    provider.plan(tools(call("ask_human", {"question": "Which?", "options": ["red", "blue"]})), text("fine"))
    number = agent.prompt(session, "q")
    request = agent.asked("elicitation/create")
    assert request["params"]["requestedSchema"]["properties"]["answer"]["enum"] == ["red", "blue"]
    agent.reply(request, result)
    assert agent.answer(number)["stopReason"] == "end_turn" and heard in provider.requests[-1].conversation[-1]["content"]


def test_a_question_as_a_choice_and_as_the_next_message(agent, session, provider):
    provider.plan(tools(call("ask_human", {"question": "Which?", "options": ["red", "blue"]}, "a")), tools(call("ask_human", {"question": "Why?"}, "b")), text("fine"))
    number = agent.prompt(session, "q")
    request = agent.asked()
    assert [o["name"] for o in request["params"]["options"]] == ["red", "blue", "No answer"]
    agent.choose(request, "option:1")
    assert agent.answer(number)["stopReason"] == "end_turn" and "Why?" in agent.said(), "it is the user's turn"
    assert agent.answer(agent.prompt(session, "because"))["stopReason"] == "end_turn"
    assert [m["content"] for m in provider.requests[-1].conversation if m["role"] == "tool"] == ["blue", "because"]


# --- others at the same chat, and cancelling -------------------------------------------------------------------------
def test_an_approval_that_is_answered_elsewhere(agent, session, server, provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"})), text("done"))
    number = agent.prompt(session, "go")
    request = agent.asked()
    server.client.post(f"/approvals/{waiting(server)[0]['approval_id']}", {"approved": True}).expect(200)
    assert agent.answer(number)["stopReason"] == "end_turn" and agent.withdrawn == [request["id"]]
    agent.choose(request, "reject_once")  # too late, so it is ignored
    provider.plan(text("still here"))
    agent.answer(agent.prompt(session, "and?"))
    assert "still here" in agent.said() and (server.home.workspace / "a.txt").exists()


def test_a_cancel(agent, session, server, provider):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    number = agent.prompt(session, "go")
    gate.wait_reached()
    agent.until(lambda: "one" in agent.said())
    agent.notify("session/cancel", sessionId=session)
    assert agent.answer(number) == {"stopReason": "cancelled"}
    assert server.client.get(f"/chats/{session}/interactions/int_001").json["status"] == "CANCELLED"
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"})))
    number = agent.prompt(session, "again")
    request = agent.asked()
    agent.notify("$/cancel_request", requestId=number)
    agent.reply(request, {"outcome": {"outcome": "cancelled"}})
    assert agent.answer(number) == {"stopReason": "cancelled"} and not waiting(server) and not list(server.home.workspace.iterdir())


def test_two_prompts_at_once_and_two_doors(agent, session, server, provider, connect):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    first = agent.prompt(session, "go")
    gate.wait_reached()
    with pytest.raises(Refused) as refused:
        agent.answer(agent.prompt(session, "me too"))
    assert (refused.value.code, refused.value.reason) == (-32600, "busy")
    other = connect(server)
    other.call("session/resume", sessionId=session, cwd=str(server.home.workspace), mcpServers=[])
    with pytest.raises(Refused) as refused:
        other.answer(other.prompt(session, "me too"))
    assert refused.value.reason == "busy"
    server.client.post(f"/chats/{session}/interactions", {"user_message": "and me"}).error(409, "busy")
    gate.release()
    assert agent.answer(first)["stopReason"] == "end_turn"
    other.until(lambda: other.said() == "one two")  # a client that opened the chat meanwhile sees the same run
    assert [i["user_message"] for i in server.client.history(session)["interactions"]] == ["go"]


def test_a_session_that_is_opened_while_it_waits(agent, session, server, provider, connect):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"}), say="I ask. "), text("done"))
    agent.prompt(session, "go")
    agent.asked()
    agent.close()  # the client is gone; the approval still waits
    other = connect(server)
    other.call("session/load", sessionId=session, cwd=str(server.home.workspace), mcpServers=[])
    assert other.said("user_message_chunk") == "go" and other.said() == "I ask. "
    other.choose(other.asked(), "allow_once")
    other.until(lambda: other.said() == "I ask. done")
    assert (server.home.workspace / "a.txt").exists()


def reopen(agent, method, session, server, **more):
    return agent.call(method, **{"sessionId": session, "cwd": str(server.home.workspace), "mcpServers": [], **more})


@pytest.mark.parametrize("method, said", [("session/load", "I ask. I ask. done"), ("session/resume", "I ask. done")])
def test_a_session_that_is_opened_again_while_it_waits(agent, session, server, provider, method, said):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"}), say="I ask. "), text("done"))
    number = agent.prompt(session, "go")
    first = agent.asked()
    reopen(agent, method, session, server)
    agent.until(lambda: agent.withdrawn == [first["id"]])
    assert number not in agent.answers and waiting(server), "the approval still waits, and so does the prompt"
    agent.choose(first, "reject_once")  # too late: this question is no longer open
    agent.choose(agent.asked(), "allow_once")
    assert agent.answer(number) == {"stopReason": "end_turn"} and agent.said() == said
    assert (server.home.workspace / "a.txt").exists() and not agent.requests
    provider.plan(text("!"))
    assert agent.answer(agent.prompt(session, "more")) == {"stopReason": "end_turn"} and number not in agent.answers


@pytest.mark.parametrize("method, said", [("session/load", "one one two"), ("session/resume", "one two")])
def test_a_session_that_is_opened_again_in_mid_stream(agent, session, server, provider, method, said):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    number = agent.prompt(session, "go")
    gate.wait_reached()
    agent.until(lambda: "one" in agent.said())
    reopen(agent, method, session, server)
    gate.release()
    assert agent.answer(number) == {"stopReason": "end_turn"} and agent.said() == said


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_session_that_could_not_be_opened_again(agent, session, server, provider, method):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"})), text("done"))
    number = agent.prompt(session, "go")
    request = agent.asked()
    for bad in ({"mcpServers": [{"name": "a"}]}, {"cwd": "/no/such/folder"}, {"cwd": "/usr"}):
        with pytest.raises(Refused) as refused:
            reopen(agent, method, session, server, check=False, **bad)
        assert refused.value.code == -32602
    assert number not in agent.answers and not agent.withdrawn, "nothing has changed"
    agent.choose(request, "allow_once")
    assert agent.answer(number) == {"stopReason": "end_turn"} and (server.home.workspace / "a.txt").exists()


@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_session_that_is_opened_again_before_its_first_prompt(agent, session, server, provider, method):
    assert "modes" in reopen(agent, method, session, server)
    provider.plan(text("hello"))
    assert agent.answer(agent.prompt(session, "hi")) == {"stopReason": "end_turn"} and agent.said() == "hello"


def test_a_prompt_as_soon_as_the_one_before_is_cancelled(agent, session, server, provider):
    for method in ("session/load", "session/resume"):
        provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"})))
        number = agent.prompt(session, "go")
        request = agent.asked()
        agent.call("session/close", sessionId=session)
        assert agent.answer(number) == {"stopReason": "cancelled"} and agent.withdrawn[-1] == request["id"]
        assert server.client.history(session)["interactions"][-1]["status"] == "CANCELLED", "the chat is free"
        agent.requests.clear()
        reopen(agent, method, session, server)
        provider.plan(text("again"))
        assert agent.answer(agent.prompt(session, "more")) == {"stopReason": "end_turn"}


def test_a_client_that_is_killed_in_mid_stream(agent, session, server, provider):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    agent.prompt(session, "go")
    gate.wait_reached()
    agent.until(lambda: "one" in agent.said())
    agent.process.kill()
    agent.process.wait()
    interaction = f"/chats/{session}/interactions/int_001"
    eventually(lambda: server.client.get(interaction).json["status"] == "CANCELLED", "the run is cancelled as after any disconnect")


def test_the_end_of_the_input_in_mid_prompt(agent, session, server, provider):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    agent.prompt(session, "go")
    gate.wait_reached()
    agent.close()
    eventually(lambda: server.client.get(f"/chats/{session}/interactions/int_001").json["status"] == "CANCELLED", "cancelled")


# --- the server ------------------------------------------------------------------------------------------------------
@pytest.fixture
def by_folder(connect_folder, server):
    return connect_folder(server.home)


@pytest.fixture
def connect_folder():
    agents = []

    def make(home, *arguments, **more):
        config = home.path / "server.json"  # the running server's configuration, so that the settings agree
        agents.append(Agent(home, "--data-dir", home.data, *(["--config", config] if config.exists() else []), *arguments, **more))
        return agents[-1]

    yield make
    for agent in agents:
        agent.close()


def test_kill_9_of_the_server_while_it_waits(by_folder, make_server, server, provider):
    agent, session = by_folder, by_folder.new(server.home.workspace)
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"}), say="I ask. "))
    number = agent.prompt(session, "go")
    request = agent.asked()
    server.process.kill()
    server.process.wait()
    server.stopped = server.home.killed = True
    provider.plan(text("done"))
    again = make_server(provider, home=server.home)
    assert waiting(again), "the same approval is asked again"
    agent.choose(request, "allow_once")
    assert agent.answer(number)["stopReason"] == "end_turn"
    assert agent.said() == "I ask. done" and (server.home.workspace / "a.txt").exists()
    provider.plan(text("!"))
    agent.answer(agent.prompt(session, "more"))
    assert len(again.client.history(session)["interactions"]) == 2


def test_kill_9_of_the_server_in_mid_stream(by_folder, make_server, server, provider):
    agent, session = by_folder, by_folder.new(server.home.workspace)
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    number = agent.prompt(session, "go")
    gate.wait_reached()
    agent.until(lambda: "one" in agent.said())
    server.process.kill()
    server.process.wait()
    server.stopped = server.home.killed = True
    provider.plan(text("went on"))
    again = make_server(provider, home=server.home)
    assert agent.answer(number)["stopReason"] == "end_turn" and agent.said().endswith("went on")
    assert [i["status"] for i in again.client.history(session)["interactions"]][-1] == "COMPLETED"


def test_a_cancel_while_the_server_is_away(by_folder, make_server, server, provider):
    agent, session = by_folder, by_folder.new(server.home.workspace)
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"}), say="I ask. "))
    number = agent.prompt(session, "go")
    agent.asked()
    server.process.kill()
    server.process.wait()
    server.stopped = server.home.killed = True
    agent.notify("session/cancel", sessionId=session)
    assert agent.answer(number) == {"stopReason": "cancelled"}
    with pytest.raises(Refused) as refused:
        agent.answer(agent.prompt(session, "more"))
    assert refused.value.reason == "connection_failed", "the run is over"
    again = make_server(provider, home=server.home)
    provider.plan(text("done"))
    assert agent.answer(agent.prompt(session, "more")) == {"stopReason": "end_turn"}
    assert [i["status"] for i in again.client.history(session)["interactions"]] == ["CANCELLED", "COMPLETED"]


@pytest.mark.limit(90)
def test_it_starts_a_server_and_another_one_when_that_is_killed(make_home, connect_folder):
    home = make_home()
    agent = connect_folder(home)
    session = agent.new(home.workspace)
    number = agent.prompt(session, "write a.txt: hi")
    request = agent.asked()
    os.kill(holder(home), signal.SIGKILL)
    agent.choose(request, "allow_once")
    # The answer may have reached the killed server only; then the new server asks again.
    while number not in agent.answers:
        agent.receive()
        for request in list(agent.requests):
            agent.choose(request, "allow_once")
    assert agent.answer(number)["stopReason"] == "end_turn"
    assert (home.workspace / "a.txt").read_text() == "hi", "the server works in the session's folder"
    agent.close()
    eventually(lambda: not holder(home), "the server ends when nobody uses it")


def holder(home):
    """The process that holds the data folder, or None."""
    for process in pathlib.Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"serve" in words[:2] and str(home.data).encode() in words:
            return int(process.name)
    return None


def test_sessions_work_in_their_folders(agent, server, provider, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    (tmp_path / "link").symlink_to(two)
    sessions = [agent.new(server.home.workspace), agent.new(one), agent.new(tmp_path / "link")]
    for session, content in zip(sessions, "012"):
        provider.plan(tools(call("write_file", {"path": "a.txt", "content": content})), text("done"))
        number = agent.prompt(session, "go")
        asked = agent.asked()
        agent.choose(asked, "allow_once")
        agent.answer(number)
    assert [(folder / "a.txt").read_text() for folder in (server.home.workspace, one, two)] == ["0", "1", "2"]
    assert server.client.history(sessions[2])["workspace"] == str(two)


def test_the_mode_and_model_of_the_command_line_are_those_of_its_sessions(connect_folder, make_home, tmp_path):
    home = make_home()
    (tmp_path / "one").mkdir()
    asks = connect_folder(home)
    number = asks.prompt(asks.new(home.workspace), "write a.txt: asked")
    asked = asks.asked()
    all_allowed = connect_folder(home, "--approval-mode", "approve_all")
    answer = all_allowed.call("session/new", cwd=str(tmp_path / "one"), mcpServers=[])
    assert answer["modes"]["currentModeId"] == "approve_all"
    all_allowed.answer(all_allowed.prompt(answer["sessionId"], "write a.txt: unasked"))
    assert (tmp_path / "one" / "a.txt").read_text() == "unasked" and not all_allowed.requests
    asks.choose(asked, "allow_once")
    asks.answer(number)
    assert (home.workspace / "a.txt").read_text() == "asked"


@pytest.mark.parametrize("bad", ["relative", "/no/such/folder"])
def test_a_folder_that_is_none(agent, bad):
    with pytest.raises(Refused, match="cwd"):
        agent.new(bad)


def test_a_folder_that_chats_may_not_work_in(agent, server):
    for bad in (server.home.data, "/"):
        with pytest.raises(Refused) as refused:
            agent.new(bad)
        assert refused.value.reason == "workspace_not_allowed"
    with pytest.raises(Refused, match="additionalDirectories"):
        agent.call("session/new", cwd=str(server.home.workspace), mcpServers=[], additionalDirectories=["/tmp"])


def test_sessions_of_several_folders_are_listed_and_loaded(agent, server, provider, connect):
    below = server.home.workspace / "below"
    below.mkdir()
    above, here = agent.new(server.home.workspace), agent.new(below)
    for session in (above, here):
        provider.plan(text("ok"))
        agent.answer(agent.prompt(session, "hi"))

    def listed(client, **of):
        return {s["sessionId"]: s["cwd"] for s in client.call("session/list", **of)["sessions"]}

    workspace, below = str(server.home.workspace), str(below)
    for client in (agent, connect(server)):
        assert listed(client) == {above: workspace, here: below}
        assert listed(client, cwd=below) == {here: below} and listed(client, cwd=workspace) == {above: workspace}
        assert listed(client, cwd="/no/such/folder") == {}
    for method in ("session/load", "session/resume"):
        with pytest.raises(Refused, match=f"works in {below}, not in {workspace}") as refused:
            client.call(method, sessionId=here, cwd=workspace, mcpServers=[])
        assert refused.value.reason == "works_elsewhere"
        client.call(method, sessionId=here, cwd=below, mcpServers=[])


# --- settings --------------------------------------------------------------------------------------------------------
def test_modes_and_models(agent, session, server, provider):
    options = agent.call("session/set_config_option", sessionId=session, configId="mode", value="approve_all")["configOptions"]
    assert {o["id"]: o["currentValue"] for o in options} == {"mode": "approve_all", "model": "test/scripted"}
    assert {"sessionUpdate": "current_mode_update", "currentModeId": "approve_all"} in agent.updates
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"})), text("unasked"))
    assert agent.answer(agent.prompt(session, "go"))["stopReason"] == "end_turn" and not agent.requests
    agent.call("session/set_mode", sessionId=session, modeId="deny_all")
    agent.call("session/set_config_option", sessionId=session, configId="model", value="offline")
    agent.answer(agent.prompt(session, "echo by the other one"))
    assert "by the other one" in agent.said()
    for params in ({"configId": "model", "value": "no/such"}, {"configId": "size", "value": "1"}, {"configId": "mode", "value": "never"}):
        with pytest.raises(Refused) as refused:
            agent.call("session/set_config_option", sessionId=session, **params)
        assert refused.value.code == -32602
    loaded = agent.call("session/load", sessionId=session, cwd=str(server.home.workspace), mcpServers=[])
    assert {o["id"]: o["currentValue"] for o in loaded["configOptions"]} == {"mode": "deny_all", "model": "offline"}


# --- files that the client has open ----------------------------------------------------------------------------------
class Buffers:
    """The buffers of an editor. They are not saved until the agent writes through the editor."""

    def __init__(self, agent, workspace, saves=True, **texts):
        self.agent, self.workspace, self.saves = agent, workspace, saves
        self.texts = {str(workspace / name): text for name, text in texts.items()}
        self.asked, self.diffs = [], []

    def serve(self, number, option="allow_once"):
        """Answers the agent's requests until the prompt has ended."""
        def ended():
            for request in list(self.agent.requests):
                self.answer(request, option)
            return number in self.agent.answers
        self.agent.until(ended)
        return self.agent.answer(number)

    def answer(self, request, option):
        path = request["params"].get("path")
        if request["method"] == "session/request_permission":
            self.diffs += [c for c in request["params"]["toolCall"].get("content", []) if c["type"] == "diff"]
            return self.agent.choose(request, option)
        self.asked.append((request["method"], path))
        if request["method"] == "fs/write_text_file":
            self.texts[path] = request["params"]["content"]
            if self.saves:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(self.texts[path])
            return self.agent.reply(request, {})
        if path in self.texts:
            return self.agent.reply(request, {"content": self.texts[path]})
        self.agent.requests.remove(request)
        return self.agent.send({"id": request["id"], "error": {"code": -32002, "message": "it is not open"}})


FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}


def results(provider):
    return [m["content"] for m in provider.requests[-1].conversation if m["role"] == "tool"]


@pytest.mark.parametrize("saves", [True, False])
def test_what_is_not_saved_counts(connect, server, provider, saves):
    file = server.home.workspace / "a.txt"
    file.write_text("one\non the disk\n")
    (server.home.workspace / "closed.txt").write_text("closed\n")
    agent = connect(server, capabilities=FILES)
    session, editor = agent.new(server.home.workspace), Buffers(agent, server.home.workspace, saves, **{"a.txt": "one\nin the editor\n"})
    provider.plan(tools(call("read_file", {"path": "a.txt"})), tools(call("edit_file", {"path": "a.txt", "old_text": "in the editor", "new_text": "by both"})),
                  tools(call("read_file", {"path": "a.txt"}, "r1"), call("read_file", {"path": "closed.txt"}, "r2")), text("done"))
    assert editor.serve(agent.prompt(session, "go"))["stopReason"] == "end_turn"
    first, edited, then, closed = results(provider)
    assert first == "one\nin the editor\n" and then == "one\nby both\n" and closed == "closed\n"
    assert "in the editor" in edited and ("not saved yet" in edited) != saves
    assert editor.diffs == [{"type": "diff", "path": str(file), "oldText": "one\nin the editor\n", "newText": "one\nby both\n"}]
    assert editor.texts[str(file)] == "one\nby both\n" and file.read_text() == ("one\nby both\n" if saves else "one\non the disk\n")
    assert ("fs/write_text_file", str(file)) in editor.asked


def test_what_is_saved_is_changed_on_the_disk(connect, server, provider):
    file = server.home.workspace / "a.txt"
    file.write_text("one\n")
    agent = connect(server, capabilities=FILES)
    session, editor = agent.new(server.home.workspace), Buffers(agent, server.home.workspace, **{"a.txt": "one\n"})
    provider.plan(tools(call("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "two"})), tools(call("write_file", {"path": "new.txt", "content": "new"})),
                  text("done"))
    assert editor.serve(agent.prompt(session, "go"))["stopReason"] == "end_turn"
    assert file.read_text() == "two\n" and (server.home.workspace / "new.txt").read_text() == "new"
    assert not [each for each in editor.asked if each[0] == "fs/write_text_file"]


def test_an_editor_that_only_shows_its_files(connect, server, provider):
    """A file with unsaved changes is not overwritten."""
    file = server.home.workspace / "a.txt"
    file.write_text("on the disk\n")
    agent = connect(server, capabilities={"fs": {"readTextFile": True, "writeTextFile": False}})
    session, editor = agent.new(server.home.workspace), Buffers(agent, server.home.workspace, **{"a.txt": "not saved\n"})
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"}, "w"), call("edit_file", {"path": "a.txt", "old_text": "not saved", "new_text": "y"}, "e")),
                  text("done"))
    assert editor.serve(agent.prompt(session, "go"))["stopReason"] == "end_turn"
    assert all("ask the user to save it" in each for each in results(provider)) and file.read_text() == "on the disk\n"


def test_what_the_workspace_refuses_is_not_asked_of_the_editor(connect, server, provider, tmp_path):
    (tmp_path / "outside.txt").write_text("outside")
    (server.home.workspace / "link.txt").symlink_to(tmp_path / "outside.txt")
    (server.home.workspace / "inside.txt").symlink_to("real.txt")
    (server.home.workspace / "real.txt").write_text("real")
    agent = connect(server, capabilities=FILES)
    session = agent.new(server.home.workspace)
    editor = Buffers(agent, server.home.workspace, **{name: "a secret of the editor" for name in ("link.txt", "../outside.txt", "inside.txt", "none.txt")})
    calls = [call("read_file", {"path": path}, f"r{n}") for n, path in enumerate(("link.txt", "../outside.txt", str(tmp_path / "outside.txt"), "none.txt", "/etc/passwd"))]
    writes = [call("write_file", {"path": path, "content": "x"}, f"w{n}") for n, path in enumerate(("link.txt", "inside.txt", "../outside.txt"))]
    provider.plan(tools(*calls, *writes), text("done"))
    assert editor.serve(agent.prompt(session, "go"))["stopReason"] == "end_turn"
    assert all(each.startswith("cannot ") for each in results(provider)), results(provider)
    assert "a secret of the editor" not in json.dumps(provider.requests[-1].body)
    assert not [each for each in editor.asked if each[0] == "fs/write_text_file"] and (tmp_path / "outside.txt").read_text() == "outside"


def test_an_approval_that_is_answered_while_the_editor_is_asked(connect, server, provider):
    (server.home.workspace / "a.txt").write_text("1")
    agent = connect(server, capabilities=FILES)
    session = agent.new(server.home.workspace)
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "2"})), text("done"))
    number = agent.prompt(session, "go")
    asked = agent.asked("fs/read_text_file")
    server.client.post(f"/approvals/{waiting(server)[0]['approval_id']}", {"approved": False}).expect(200)
    assert agent.answer(number)["stopReason"] == "end_turn" and asked["id"] in agent.withdrawn
    assert not [r for r in agent.requests if r["method"] == "session/request_permission"]


def test_an_editor_that_ends_while_it_is_asked(connect, server, provider):
    (server.home.workspace / "a.txt").write_text("on the disk")
    agent = connect(server, capabilities=FILES)
    session = agent.new(server.home.workspace)
    provider.plan(tools(call("read_file", {"path": "a.txt"})), text("done"))
    agent.prompt(session, "go")
    agent.asked("fs/read_text_file")
    watcher = server.client.attach(session, "int_001")  # another listener keeps the run alive
    agent.process.kill()
    agent.process.wait()
    watcher.finish()
    assert results(provider) == ["on the disk"]


# --- failures --------------------------------------------------------------------------------------------------------
def test_a_turn_that_fails(agent, session, provider, make_server, connect):
    provider.plan(*[tools(call("echo", {"text": str(i)}, f"c{i}")) for i in range(3)])
    with pytest.raises(Refused) as refused:
        agent.answer(agent.prompt(session, "echo" * 300_000))
    assert refused.value.reason == "too_large"
    limited = make_server(provider, config={"max_rounds": 2})
    other = connect(limited)
    assert other.answer(other.prompt(other.new(limited.home.workspace), "go"))["stopReason"] == "max_turn_requests"


def test_a_provider_that_fails(connect, offline):
    agent = connect(offline)
    session = agent.new(offline.home.workspace)
    with pytest.raises(Refused) as refused:
        agent.answer(agent.prompt(session, "fail: quota"))
    assert refused.value.code == -32603 and refused.value.reason
    assert agent.answer(agent.prompt(session, "echo fine"))["stopReason"] == "end_turn"


def test_invalid_messages_are_refused(connect, server):
    agent = connect(server, initialize=False)

    def refusal(line):
        agent.write(line + b"\n")
        return agent.until(lambda: agent.answers.pop(None, None))["error"]["code"]

    assert refusal(b"{") == -32700 and refusal(b'"\xff"') == -32700 and refusal(b'{"a":1,"a":2}') == -32700
    assert refusal(b"[]") == -32600 and refusal(b'{"jsonrpc":"1.0","method":"x"}') == -32600 and refusal(b'{"jsonrpc":"2.0"}') == -32600
    assert refusal(b"[" * 100_000) == -32700
    agent.write(b"\n  \n")
    with pytest.raises(Refused, match="initialize"):
        agent.call("session/list")
    for params in ({}, {"protocolVersion": "1"}):
        with pytest.raises(Refused) as refused:
            agent.call("initialize", check=False, **params)
        assert refused.value.code == -32602
    assert agent.call("initialize", protocolVersion=77)["protocolVersion"] == 1
    number = agent.next_id = agent.next_id + 1
    agent.send({"id": number, "method": "no/such"}, check=False)
    with pytest.raises(Refused) as refused:
        agent.answer(number)
    assert refused.value.code == -32601
    agent.write(b'{"jsonrpc":"2.0","method":"no/such/notification"}\n{"jsonrpc":"2.0","id":999,"result":{}}\n')
    agent.write(b'{"jsonrpc":"2.0","id":3,"method":"session/list","params":[]}\n')
    with pytest.raises(Refused) as refused:
        agent.answer(3)
    assert refused.value.code == -32602
    for method in ("session/prompt", "session/close", "session/set_mode"):
        with pytest.raises(Refused) as refused:
            agent.call(method, check=False, sessionId="nosuch", prompt=[], modeId="ask")
        assert refused.value.code == -32002
    with pytest.raises(Refused) as refused:
        agent.call("session/load", sessionId="nosuch", cwd=str(server.home.workspace), mcpServers=[])
    assert refused.value.code == -32002
    with pytest.raises(Refused):
        agent.call("session/load", sessionId="../../etc", cwd=str(server.home.workspace), mcpServers=[])


def test_a_line_without_an_end(connect, server):
    agent = connect(server)
    agent.write(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (33 << 20) + b'"}\n')
    assert agent.until(lambda: agent.answers.pop(None, None))["error"]["code"] == -32600
    assert agent.call("session/list") == {"sessions": []}, "the messages after it are read"


def test_use_at_a_terminal_and_without_a_server(make_home):
    home = make_home()
    done = subprocess.run([str(BINARY), "acp", "--url", "nonsense"], env=home.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON, check=False)
    assert done.returncode == 2 and "--url must be" in done.stderr
    agent = Agent(home, "--url", "http://127.0.0.1:1")
    with pytest.raises(Refused, match="no Reprise server answers"):
        agent.new(home.workspace)
    agent.close()


def test_a_token(make_server, provider, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret-s3cret-s3cret-s3cret-s3cret")
    token.chmod(0o600)
    server = make_server(provider, arguments=["--token-file", token], token=token.read_text())
    url = f"http://127.0.0.1:{server.port}"
    bare, right = Agent(server.home, "--url", url), Agent(server.home, "--url", url, "--token-file", token)
    with pytest.raises(Refused) as refused:
        bare.new(server.home.workspace)
    assert refused.value.code == -32000
    provider.plan(text("hello"))
    assert right.answer(right.prompt(right.new(server.home.workspace), "hi"))["stopReason"] == "end_turn"
    bare.close()
    right.close()


def test_usage(connect, make_server, provider):
    server = make_server(provider, config={"models": {"test/scripted": {"context_window": 100_000}}})
    agent = connect(server)
    provider.plan(text("hello"))
    agent.answer(agent.prompt(agent.new(server.home.workspace), "hi"))
    assert {"sessionUpdate": "usage_update", "used": 18, "size": 100_000} in agent.updates


def test_that_the_schema_was_there():
    if schema() is None:
        pytest.skip("no npm, or no registry: messages were not held against the schema")
