"""`reprise what-if`: a recorded turn goes on from one of its events with something different, in a copy of the workspace."""
import hashlib
import json
import os
import signal
import subprocess

import pytest
from support import schemas
from support.mcp import server_of
from support.provider import Gate, call, failure, text, tools
from support.server import API_KEY, BINARY, reprise, sandbox_works, without_bubblewrap
from support.timing import SOON, eventually

READ = ("read_file", {"path": "notes.txt"})
WRITE = ("write_file", {"path": "out.txt", "content": "one\n"})


def digest(root, temporary=None):
    """Everything that can be seen of the files below a folder. The time of `temporary` does not count: ThreadSanitizer puts a file there, and removes it."""
    found = []
    for folder, names, files in os.walk(root):
        for name in sorted(names + files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            content = os.readlink(path) if os.path.islink(path) else ""
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    content = hashlib.sha256(file.read()).hexdigest()
            at = None if path == str(temporary) else status.st_mtime_ns
            found.append((os.path.relpath(path, root), status.st_mode, at, status.st_size, content))
    return sorted(found)


def results(request):
    return [each["content"] for each in request.body["messages"] if each["role"] == "tool"]


def last_result(request):
    return results(request)[-1]


class World:
    """A server with the chat c, and `reprise what-if` beside it."""

    def __init__(self, server, provider, tmp_path):
        self.server, self.client, self.home, self.provider = server, server.client, server.home, provider
        self.workspace, self.temporary = server.home.workspace, tmp_path / "temporary"
        self.temporary.mkdir()
        (self.workspace / "notes.txt").write_text("milk\n")

    def record(self, *calls, chat="c", answer="done", message="go", **more):
        """A turn in which each call is a round of its own. Returns its events."""
        self.provider.plan(*(tools(call(*each, f"r{number}")) for number, each in enumerate(calls)), text(answer))
        self.client.turn(chat, message, **more)
        return self.events(chat)

    def events(self, chat="c", interaction="int_001"):
        return self.client.interaction(chat, interaction)["agent_events"]

    def command(self, *arguments):
        return [str(each) for each in (BINARY, "what-if", *arguments, "--data-dir", self.home.data, "--config", "server.json", "--workspace", self.workspace)]

    def run(self, *arguments, status=0, wrapper=()):
        """Checks that the workspace stays as it is, and that no copy of it is left."""
        before = digest(self.workspace, self.temporary)
        done = subprocess.run([*wrapper, *self.command(*arguments)], cwd=self.home.path, env=self.home.environment(TMPDIR=str(self.temporary)),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=10 * SOON, check=False)
        assert done.returncode == status, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        assert digest(self.workspace, self.temporary) == before and not list(self.temporary.iterdir())
        return done.stdout.decode(), done.stderr.decode()

    def document(self, *arguments, **more):
        found = json.loads(self.run("--json", *arguments, **more)[0])
        schemas.check("what_if_report", found)
        return found

    def one(self, *arguments, **more):
        [turn] = self.document(*arguments, **more)["turns"]
        [run] = turn["runs"]
        return run

    def refused(self, *arguments, said):
        asked = len(self.provider.requests)
        output, messages = self.run(*arguments, status=2)
        assert output == "" and all(each in messages for each in ([said] if isinstance(said, str) else said)), messages
        assert len(self.provider.requests) == asked


@pytest.fixture
def world(make_server, provider, tmp_path):
    return World(make_server(provider, config={"approval_mode": "approve_all"}), provider, tmp_path)


def seq(events, kind, number=0):
    return [each["seq"] for each in events if each["type"] == kind][number]


# --- what comes from the record ----------------------------------------------------------------------------------------


def test_from_the_beginning_everything_runs_again_in_the_copy(world):
    world.record(READ, WRITE)
    (world.workspace / "out.txt").unlink()
    asked = len(world.provider.requests)
    world.provider.plan(tools(call(*READ, "x0")), tools(call("write_file", {"path": "out.txt", "content": "two\n"}, "x1")), text("other"))
    run = world.one("c/int_001")
    assert len(world.provider.requests) == asked + 3
    assert run["answer"] == "other" and [each.split()[0] for each in run["calls"]] == ["read_file", "write_file"]
    assert run["files"] == ["out.txt"] and "+two" in run["diff"]
    assert run["first_difference"]["recorded"]["type"] == "TOOL_CALL" and run["was_made"] and run["passed"] is None
    assert not (world.workspace / "out.txt").exists()


@pytest.mark.parametrize("kind", ["TOOL_CALL", "TOOL_RESULT"])
def test_nothing_of_what_came_before_is_asked_or_run(world, kind):
    """The second call of the turn is the first thing that happens again. The file is as it was then."""
    events = world.record(READ, WRITE, ("read_file", {"path": "out.txt"}))
    (world.workspace / "notes.txt").write_text("changed by a person\n")
    asked = len(world.provider.requests)
    world.provider.plan(tools(call("run_shell", {"command": "cat out.txt || true"}, "x1")), text("stopped here"))
    run = world.one(f"c/int_001@{seq(events, kind, 1)}")
    requests = world.provider.requests[asked:]
    assert len(requests) == 2, "the model was asked for what is on record"
    told = results(requests[0])
    assert len(told) == 2 and "milk" in told[0], "the record answers, although the file is another now"
    if sandbox_works():
        assert last_result(requests[1]).startswith("one")
    assert run["answer"] == "stopped here"
    assert [each.split()[0] for each in run["calls"]] == ["read_file", "write_file", "run_shell"]


def test_files_are_as_they_were(world):
    """Also those that a later turn, another chat or a person changed, made or removed since."""
    (world.workspace / "mine.txt").write_text("mine\n")
    world.record(("write_file", {"path": "a.txt", "content": "first\n"}))
    events = world.record(READ, chat="d")
    world.record(("write_file", {"path": "a.txt", "content": "second\n"}), ("write_file", {"path": "new/b.txt", "content": "b\n"}), message="again")
    world.record(("delete_file", {"path": "a.txt"}), ("delete_file", {"path": "mine.txt"}), chat="e")
    world.provider.plan(tools(call("find_files", {"pattern": "**/*"}, "x0"), call("read_file", {"path": "a.txt"}, "x1"), call("read_file", {"path": "mine.txt"}, "x2")), text("seen"))
    run = world.one(f"d/int_001@{seq(events, 'TOOL_RESULT')}")
    found, first, mine = results(world.provider.requests[-1])[-3:]
    assert "first" in first and "mine" in mine and "b.txt" not in found and run["answer"] == "seen"


def test_a_turn_of_a_replay_ends_as_on_record_if_the_model_says_the_same(world):
    world.record(READ, WRITE)
    world.provider.plan(tools(call(*READ, "r0")), tools(call(*WRITE, "r1")), text("done"))
    run = world.one("c/int_001")
    assert run["first_difference"] is None and run["status"] == "COMPLETED", run


def test_a_turn_that_failed_or_was_cancelled_goes_on(world):
    world.provider.plan(tools(call(*READ, "r0")), failure(400, "no such thing"))
    world.client.turn("c", "go", status="FAILED")
    gate = Gate()
    world.provider.plan(tools(call(*READ, "r0")), text("An ", gate, "otter."))
    cancelled = world.client.start("d", "go")
    gate.wait_reached()
    world.client.cancel("d", "int_001")
    cancelled.finish("CANCELLED")
    for chat, kind in (("c", "ERROR"), ("d", "CANCELLED")):
        world.provider.plan(text("now it works"))
        asked = len(world.provider.requests)
        run = world.one(f"{chat}/int_001@{seq(world.events(chat), kind)}")
        assert run["answer"] == "now it works" and run["status"] == "COMPLETED" and len(world.provider.requests) == asked + 1
        assert len(results(world.provider.requests[-1])) == 1


def test_a_call_of_a_sub_agent_is_no_place_to_go_on_from_inside(world):
    """The call that started it begins again, and is refused, because sub-agents do not run in a copy."""
    world.provider.plan(tools(call("research", {"question": "what?"}, "r0")), tools(call(*READ, "n0")), text("milk"), text("done"))
    world.client.turn("c", "go")
    inside = seq(world.events(), "NESTED")
    world.provider.plan(text("ok"))
    asked = len(world.provider.requests)
    assert world.one(f"c/int_001@{inside}")["answer"] == "ok"
    assert len(world.provider.requests) == asked + 1 and "Not run" in last_result(world.provider.requests[-1])


def test_the_second_turn_knows_the_first(world):
    world.record(READ, answer="first")
    events = world.record(WRITE, message="second")
    assert events
    events = world.events(interaction="int_002")
    world.provider.plan(text("ok"))
    world.one(f"c/int_002@{seq(events, 'TOOL_RESULT')}", "--result", "eggs")
    told = [each.get("content") for each in world.provider.requests[-1].body["messages"][1:]]
    assert told[0] == "go" and told[3] == "first" and told[4] == "second" and told[-1] == "eggs", told


# --- what is different -------------------------------------------------------------------------------------------------


def test_another_result(world):
    events = world.record(READ, WRITE)
    for kind in ("TOOL_CALL", "TOOL_RESULT"):
        world.provider.answer_with(lambda request: text("heard: " + last_result(request)))
        run = world.one(f"c/int_001@{seq(events, kind)}", "--result", "eggs")
        assert run["answer"] == "heard: eggs" and run["first_difference"]["seq"] == seq(events, "TOOL_RESULT"), run


@pytest.mark.parametrize(("how", "said"), [("timeout", "timed out"), ("error", "failed")])
def test_a_call_that_fails(world, how, said):
    events = world.record(READ, WRITE)
    world.provider.answer_with(lambda request: text("heard: " + last_result(request)))
    run = world.one(f"c/int_001@{seq(events, 'TOOL_CALL', 1)}", "--fail", how)
    assert said in run["answer"] and run["files"] == []


def test_another_message(world):
    world.record(READ)
    world.provider.answer_with(lambda request: text("to: " + request.body["messages"][-1]["content"]))
    assert world.one("c/int_001", "--say", "stay")["answer"] == "to: stay"


def test_a_further_message(world):
    events = world.record(READ, WRITE)
    world.provider.answer_with(lambda request: text("to: " + request.body["messages"][-1]["content"]))
    for kind in ("TOOL_RESULT", "ANSWER"):
        run = world.one(f"c/int_001@{seq(events, kind)}", "--say", "and now?")
        assert run["answer"] == "to: and now?"
    assert len(world.provider.requests[-1].body["messages"]) > len(world.provider.requests[-2].body["messages"])


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_another_answer_of_a_person(make_server, provider, tmp_path, answer):
    world = World(make_server(provider), provider, tmp_path)
    provider.plan(tools(call(*WRITE, "w")), text("done"))
    stream = world.client.start("c", "go")
    asked = stream.until("approval_required")
    world.client.approve("c", "int_001", asked["approval_id"], answer == "no")
    stream.finish()
    provider.answer_with(lambda request: text("heard: " + last_result(request)))
    (world.workspace / "out.txt").unlink(missing_ok=True)
    run = world.one(f"c/int_001@{seq(world.events(), 'APPROVAL_REQUIRED')}", "--answer", answer)
    assert ("rejected" in run["answer"]) == (answer == "no") and run["files"] == (["out.txt"] if answer == "yes" else []), run


def test_another_model_prompt_and_several_runs(world):
    world.record(READ)
    prompt = world.home.path / "prompt"
    prompt.mkdir(mode=0o700)
    (prompt / "10-rules.md").write_text("You are a pirate.")
    (prompt / "10-rules.md").chmod(0o600)
    asked = len(world.provider.requests)
    world.provider.answer_with(lambda request: text("as " + request.body["model"]))
    [turn] = world.document("c", "--model", "test/one", "--model", "test/two", "--times", "3", "--prompt-dir", prompt)["turns"]
    assert [each["answer"] for each in turn["runs"]] == ["as one"] * 3 + ["as two"] * 3
    assert all("You are a pirate." in each.body["messages"][0]["content"] for each in world.provider.requests[asked:])


@pytest.mark.parametrize("words", ["{{nosuch}}", b"\xff", None])
def test_a_prompt_that_cannot_be_used_tries_nothing(world, words):
    world.record(READ)
    prompt = world.home.path / "prompt"
    prompt.mkdir(mode=0o700)
    module = prompt / "15-voice.md"
    module.write_bytes(words if isinstance(words, bytes) else (words or "fine").encode())
    module.chmod(0o600 if words else 0o666)
    asked = len(world.provider.requests)
    output, messages = world.run("c", "--prompt-dir", prompt, status=2)
    assert output == "" and "15-voice.md" in messages and len(world.provider.requests) == asked, messages


# --- what does not run -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("refused", [("http_get", {"url": "http://127.0.0.1:1/"}), ("recall", {"query": "x"}), ("research", {"question": "x"}),
                                     ("save_chat_file", {"filename": "a.txt", "content": "x"}), ("read_job", {}), ("present_plan", {"plan": "x"})])
def test_tools_that_act_elsewhere_are_refused(world, refused):
    world.record(READ)
    world.provider.plan(tools(call(*refused, "x0")), text("ok"))
    asked = len(world.provider.requests)
    assert world.one("c")["answer"] == "ok"
    assert len(world.provider.requests) == asked + 2, "a sub-agent was asked"
    told = last_result(world.provider.requests[-1])
    assert "Not run" in told or "there is no tool" in told, told
    assert not world.client.get("/chats/c/files").json["files"]


def test_a_tool_that_may_act_elsewhere(world, make_server):
    world.record(READ)
    fetch = ("http_get", {"url": "http://127.0.0.1:1/"})
    world.provider.plan(tools(call(*fetch, "x0")), text("ok"))
    world.one("c", "--allow-effects", "http_get")
    assert "Not run" not in last_result(world.provider.requests[-1])
    for name, said in (("nothing__here", "is no tool here"), ("write_file", "needs no permission"), ("ask_human", "belongs to the chat")):
        output, messages = world.run("c/int_001", "--allow-effects", name, status=2)
        assert output == "" and said in messages, messages


def test_tools_of_mcp_servers_are_refused(make_server, provider, tmp_path):
    mark = tmp_path / "mark"
    dice = server_of('{"name": "roll", "description": "Rolls.", "inputSchema": {"type": "object"}}', '[{"type": "text", "text": "A 4."}]')
    world = World(make_server(provider, config={"mcpServers": {"dice": dice}, "approval_mode": "approve_all"}), provider, tmp_path)
    eventually(lambda: world.client.get("/tools").json["servers"][0]["state"] == "ready", "the server is ready")
    world.record(("dice__roll", {}))
    provider.plan(tools(call("dice__roll", {}, "x0")), text("ok"))
    assert world.one("c")["answer"] == "ok" and "A 4." not in last_result(provider.requests[-1]) and not mark.exists()


def test_rules_that_deny_hold_and_others_do_not(world):
    world.record(READ)
    rules = world.home.path / "rules.json"
    rules.write_text(json.dumps({"tools": {"rules": [{"tool": "delete_file", "action": "deny"}, {"tool": "write_file", "action": "ask"}]}}))
    world.provider.plan(tools(call("delete_file", {"path": "notes.txt"}, "x0"), call(*WRITE, "x1")), text("ok"))
    run = world.one("c", "--rules", rules)
    denied, written = results(world.provider.requests[-1])[-2:]
    assert "rule" in denied and "out.txt" in written and run["files"] == ["out.txt"]
    rules.write_text("{}")
    world.refused("c/int_001", "--rules", rules, said="has no rules")
    world.refused("c/int_001", "--rules", world.home.path / "none.json", said="there is no file")


def test_questions_to_people_are_answered_as_on_record_or_declined(world):
    ask = ("ask_human", {"question": "Which?"})
    world.provider.plan(tools(call(*ask, "q")), text("done"))
    stream = world.client.start("c", "go")
    world.client.respond("c", "int_001", stream.until("input_required")["request_id"], "the red one")
    stream.finish()
    world.provider.plan(tools(call(*ask, "x0"), call("ask_human", {"question": "Who?"}, "x1")), text("ok"))
    world.one("c")
    known, unknown = results(world.provider.requests[-1])[-2:]
    assert "the red one" in known and "the red one" not in unknown


def test_hooks_do_not_run(make_server, provider, tmp_path):
    mark = tmp_path / "mark"
    hook = {"event": "after_tool", "command": ["/bin/sh", "-c", f"echo called >> {mark}"]}
    world = World(make_server(provider, config={"approval_mode": "approve_all", "hooks": [hook]}), provider, tmp_path)
    world.record(READ)
    before = mark.read_text()
    provider.plan(tools(call(*READ, "x0")), text("ok"))
    assert world.one("c")["answer"] == "ok" and mark.read_text() == before


def test_secrets_are_removed_from_results(make_server, provider, tmp_path):
    world = World(make_server(provider, config={"approval_mode": "approve_all"}), provider, tmp_path)
    (world.workspace / "notes.txt").write_text(f"the key is {API_KEY}\n")
    world.record(("list_files", {}))
    provider.plan(tools(call(*READ, "x0")), text("ok"))
    world.one("c")
    assert "[redacted]" in last_result(provider.requests[-1]) and API_KEY not in last_result(provider.requests[-1])


def test_max_cost(make_server, provider, tmp_path):
    prices = {"test/scripted": {"input_price_per_mtok": 1e6, "output_price_per_mtok": 1e6}}
    world = World(make_server(provider, config={"approval_mode": "approve_all", "models": prices}), provider, tmp_path)
    world.record(READ)
    provider.answer_with(lambda request: text("ok") if results(request) else tools(call(*READ, "x0")))
    asked = len(provider.requests)
    found = world.document("c", "--times", "5", "--jobs", "1", "--max-cost", "50", status=1)
    assert [each["was_made"] for each in found["turns"][0]["runs"]] == [True, False, False, False, False] and len(provider.requests) == asked + 3
    assert found["turns"][0]["runs"][0]["cost"] == 36


# --- the copy ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not sandbox_works(), reason="no sandbox here")
def test_commands_are_confined_to_the_copy(world, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("outside\n")
    (world.workspace / "link").symlink_to(outside)
    (world.workspace / "folder").symlink_to(tmp_path)
    world.record(READ)
    attacks = [("run_shell", {"command": f"echo bad > {outside}; echo bad > link; echo bad > folder/x.txt; echo bad > {world.workspace}/notes.txt; cat {world.workspace}/notes.txt"}),
               ("run_shell", {"command": "chmod 000 . notes.txt; exit 3"}),
               ("write_file", {"path": "link", "content": "bad"}), ("write_file", {"path": "folder/x.txt", "content": "bad"}),
               ("write_file", {"path": "../x.txt", "content": "bad"}), ("write_file", {"path": str(outside), "content": "bad"}),
               ("read_file", {"path": "link"}), ("run_shell", {"command": "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", %d), 2)'" % world.server.port})]
    world.provider.plan(*(tools(call(*each, f"x{number}")) for number, each in enumerate(attacks)), text("ok"))
    run = world.one("c")
    told = results(world.provider.requests[-1])[-len(attacks):]
    assert outside.read_text() == "outside\n" and not (tmp_path / "x.txt").exists()
    assert told[0].endswith("bad\n") or "bad" in told[0], "paths of the workspace lead into the copy"
    assert all("outside\n" not in each for each in told) and run["status"] == "COMPLETED"


@pytest.mark.skipif(without_bubblewrap() is None, reason="bubblewrap cannot be hidden here")
def test_without_a_sandbox_commands_are_refused(world):
    world.record(READ)
    world.provider.plan(tools(call("run_shell", {"command": "touch mark"}, "x0"), call("run_code", {"language": "shell", "code": "touch mark"}, "x1")), text("ok"))
    world.one("c", wrapper=without_bubblewrap())
    assert all("sandbox only" in each for each in results(world.provider.requests[-1])[-2:])


def test_paths_of_the_workspace_lead_into_the_copy_and_back(world):
    world.record(READ)
    path = str(world.workspace / "notes.txt")
    world.provider.plan(tools(call("write_file", {"path": path, "content": "eggs\n"}, "x0"), call("read_file", {"path": path}, "x1")), text("ok"))
    run = world.one("c")
    assert "eggs" in last_result(world.provider.requests[-1]) and run["files"] == ["notes.txt"]
    assert str(world.temporary) not in json.dumps([each.body for each in world.provider.requests[-2:]])


def test_a_workspace_that_is_too_large(world):
    world.record(READ)
    for number in range(2):
        with open(world.workspace / f"large{number}", "wb") as file:
            file.truncate(300 << 20)
    world.provider.plan(tools(call(*READ, "x0")), text("ok"))
    run = world.one("c", status=1)
    assert "too large" in run["error"] and "512 MiB" in run["error"] and run["status"] == "FAILED"


def test_a_copy_in_the_workspace_itself(world):
    world.record(READ)
    world.temporary = world.workspace / "temporary"
    world.temporary.mkdir()
    world.provider.plan(tools(call(*READ, "x0")), text("ok"))
    assert "set TMPDIR" in world.one("c", status=1)["error"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_end_in_the_middle_leaves_no_copy(world, number):
    world.record(READ)
    gate = Gate()
    world.provider.plan(tools(call(*READ, "x0")), text("An ", gate, "otter."))
    before = digest(world.workspace)
    with subprocess.Popen(world.command("c"), cwd=world.home.path, env=world.home.environment(TMPDIR=str(world.temporary)), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        gate.wait_reached()
        assert len(list(world.temporary.iterdir())) == 1
        process.send_signal(number)
        process.communicate(timeout=SOON)
    assert process.returncode == -number and digest(world.workspace) == before
    if number == signal.SIGKILL:  # the next one removes it
        [left] = world.temporary.iterdir()
        os.utime(left, (1, 1))
        world.provider.plan(tools(call(*READ, "x0")), text("ok"))
        world.one("c")
    assert not list(world.temporary.iterdir())


# --- many --------------------------------------------------------------------------------------------------------------


def test_exported_chats_with_checks_in_one_table(world, tmp_path):
    suite = tmp_path / "suite"
    suite.mkdir()
    for chat in ("a", "b"):
        world.record(READ, WRITE, chat=chat)
        status, exported, messages = reprise(world.home, "export", chat, "--data-dir", world.home.data)
        assert status == 0, messages
        (suite / f"{chat}.json").write_text(exported)
    (suite / "suite.json").write_text(json.dumps({"files": {"out.txt": {"contains": "two"}}, "calls": {"list": [{"name": "write_file"}]}}))
    (world.workspace / "out.txt").unlink()

    def answer(request):
        told = results(request)
        content = {"one": "two\n", "two": "three\n"}[request.body["model"]]
        return text("wrote it") if told else tools(call("write_file", {"path": "out.txt", "content": content}, "x0"))
    world.provider.answer_with(answer)
    found = world.document(suite, "--model", "test/one", "--model", "test/two", status=1)
    assert [[(each["model"], each["passed"]) for each in turn["runs"]] for turn in found["turns"]] == [[("test/one", True), ("test/two", False)]] * 2
    table, _ = world.run(suite, "--model", "test/one", "--model", "test/two", status=1)
    assert "TURN" in table and "2/2" in table and "0/2" in table and "2 turns, 4 runs" in table
    # Checks of a turn that is not there are no checks that pass.
    (suite / "suite.json").unlink()
    (suite / "a.checks.json").write_text('{"turns": {"77": {"answer": {"equals": "nothing"}}}}')
    asked = len(world.provider.requests)
    found = world.document(suite / "a.json", "--model", "test/one", status=1)
    assert "/turns/77: the chat has no such turn" in json.dumps(found) and len(world.provider.requests) == asked, found


def test_200_chats_with_two_models_in_one_table(world):
    first = world.record(READ)
    assert first
    for number in range(1, 200):
        world.client.post("/chats/c/fork", {"interaction_id": "int_001", "chat_id": f"c{number}"}).expect(201)
    world.provider.answer_with(lambda request: text("as " + request.body["model"]) if results(request) else tools(call(*READ, "x0")))
    asked = len(world.provider.requests)
    chats = ["c", *(f"c{number}" for number in range(1, 200))]
    found = world.document(*chats, "--model", "test/one", "--model", "test/two")
    assert len(found["turns"]) == 200 and [each["answer"] for turn in found["turns"] for each in turn["runs"]] == ["as one", "as two"] * 200
    assert len(world.provider.requests) == asked + 800 and found["asked"].startswith("800 requests")


def test_a_turn_of_an_exported_chat_goes_on_from_an_event(world, tmp_path):
    """As if it was stored; its files are those that the export has."""
    events = world.record(READ, WRITE, ("read_file", {"path": "out.txt"}))
    folder = tmp_path / "suite"
    status, _, messages = reprise(world.home, "export", "c", "-o", folder, "--data-dir", world.home.data)
    assert status == 0, messages
    (folder / "c.json").write_text(reprise(world.home, "export", "c", "--data-dir", world.home.data)[1])
    (world.workspace / "out.txt").unlink()
    for exported in (folder / "c" / "int_001", folder / "c.json" / "int_001"):
        at = seq(events, "TOOL_RESULT", 1)
        asked = len(world.provider.requests)
        world.provider.answer_with(lambda request: text("heard: " + last_result(request)))
        assert world.one(f"{exported}@{at}", "--result", "eggs")["answer"] == "heard: eggs" and len(world.provider.requests) == asked + 1
        if exported.parent.name == "c":
            world.provider.answer_with(lambda request: text("read: " + last_result(request)) if len(results(request)) > 2 else tools(call("read_file", {"path": "out.txt"}, "x0")))
            assert "one" in world.one(f"{exported}@{at}")["answer"], "the file is as it was then"
    world.refused(f"{folder}/c.json@3", said="INTERACTION@3")
    output, _ = world.run(f"{folder}/c.json/int_007", status=1)
    assert "no turn int_007" in output


# --- wrong use ---------------------------------------------------------------------------------------------------------


def test_wrong_use(world):
    events = world.record(READ, WRITE)
    answer, result = seq(events, "ANSWER"), seq(events, "TOOL_RESULT")
    used = seq(events, "USAGE")
    world.refused("c/int_001@9999", said=["no event 9999", "--mode events", str(answer), str(result)])
    world.refused("c/int_001@9999", "--result", "x", said=[f"here these are the events {seq(events, 'TOOL_CALL')}, {result}"])
    world.refused("c/int_001@0", said="the first event is 1")
    world.refused("c@3", said="c/INTERACTION@3")
    world.refused(f"c/int_001@{answer}", "--result", "x", said=["(answer)", "is neither", str(result)])
    world.refused(f"c/int_001@{used}", "--fail", "error", said=["(usage)", "is neither", str(result)])
    world.refused("c/int_001", "--result", "x", said="no event is given")
    world.refused(f"c/int_001@{result}", "--answer", "no", said=["(tool_result)", "this turn has no such event"])
    world.refused(f"c/int_001@{answer}", said="the turn ends with the answer")
    world.refused(f"c/int_001@{seq(events, 'TOOL_CALL')}", "--say", "x", said=["cannot come between", str(result)])
    world.refused(f"c/int_001@{result}", "--result", "x", "--fail", "error", said="--fail")
    world.refused("c/int_001", "--fail", "never", said="--fail")
    world.refused("c/int_001", "--answer", "perhaps", said="--answer")
    world.refused("c/int_001", "--times", "0", said="--times")
    world.refused("c/int_001", "--model", "nobody/nothing", said="nobody")
    output, messages = world.run("c/int_077", status=1)
    assert output == "" and "int_077" in messages
    output, messages = world.run("nothing-here", status=1)
    assert output == "" and "nothing-here" in messages


# --- over HTTP ---------------------------------------------------------------------------------------------------------


def stream(world, interaction="int_001", chat="c", **body):
    return world.client.stream("POST", f"/chats/{chat}/interactions/{interaction}/what_if", body, gapless=False)


def test_over_http_the_events_of_the_record_come_first(world):
    events = world.record(READ, WRITE)
    before, asked = digest(world.workspace), len(world.provider.requests)
    world.provider.plan(tools(call("write_file", {"path": "out.txt", "content": "two\n"}, "x1")), text("an ", "otter"))
    stored = world.client.get("/chats/c").json
    shown = stream(world, at=seq(events, "TOOL_RESULT"), result="eggs")
    shown.rest()
    assert shown.names(without=("usage", "text_delta")) == ["interaction_started", "tool_call", "tool_result", "tool_call", "files_changed", "tool_result", "answer", "interaction_complete"]
    assert "".join(each["content"] for each in shown.all("text_delta")) == "an otter"
    assert shown.one("answer")["content"] == "an otter" and shown.all("tool_result")[0]["tool_output"] == "eggs"
    [frame] = shown.frames
    assert frame["files"] == ["out.txt"] and "+two" in frame["diff"] and frame["first_difference"]["seq"] == seq(events, "TOOL_RESULT")
    assert len(world.provider.requests) == asked + 2 and digest(world.workspace) == before
    assert world.client.get("/chats/c").json == stored


def test_over_http_the_run_ends_when_the_client_leaves(world):
    world.record(READ)
    gate = Gate()
    world.provider.plan(text("An ", gate, "otter."))
    shown = stream(world)
    gate.wait_reached()
    shown.close()
    gate.wait_left()
    world.provider.plan(text("ok"))
    again = stream(world)
    again.rest()
    assert again.one("answer")["content"] == "ok"


def test_over_http_two_at_a_time(world):
    world.record(READ)
    gates = [Gate(), Gate()]
    world.provider.plan(*(text("An ", gate, "otter.") for gate in gates))
    streams = []
    for gate in gates:
        streams.append(stream(world))
        gate.wait_reached()
    world.client.post("/chats/c/interactions/int_001/what_if", {}).error(429, "queue_full")
    for gate, shown in zip(gates, streams, strict=True):
        gate.release()
        shown.rest()


def test_over_http_wrong_use(world):
    events = world.record(READ)
    path = "/chats/c/interactions/int_001/what_if"
    for body, code, said in (({"at": 9999}, "invalid_request", "no event 9999"), ({"at": 0}, "invalid_member", "at"), ({"at": 1.5}, "invalid_member", "at"), ({"at": "x"}, "invalid_member", "at"),
                             ({"at": seq(events, "ANSWER")}, "invalid_request", "ends with the answer"), ({"result": "x"}, "invalid_request", "no event is given"),
                             ({"say": " "}, "invalid_member", "say"), ({"answer": "perhaps"}, "invalid_member", "answer"), ({"fail": "never"}, "invalid_member", "fail"),
                             ({"allow_effects": "x"}, "invalid_member", "allow_effects"), ({"allow_effects": [1]}, "invalid_member", "allow_effects"),
                             ({"allow_effects": ["nothing"]}, "invalid_request", "is no tool"), ({"model": "nobody/nothing"}, "unknown_model", "nobody"),
                             ({"prompt_dir": "/etc"}, "unknown_member", "prompt_dir"), ({"rules": "/etc/passwd"}, "unknown_member", "rules")):
        answer = world.client.post(path, body)
        answer.error(400, code)
        assert said in answer.json["error"]["message"], answer.json
    world.client.post("/chats/c/interactions/int_009/what_if", {}).error(404)
    world.client.post("/chats/nobody/interactions/int_001/what_if", {}).error(404)
    gate = Gate()
    world.provider.plan(text("An ", gate, "otter."))
    running = world.client.start("c", "go")
    gate.wait_reached()
    world.client.post("/chats/c/interactions/int_002/what_if", {}).error(409, "not_replayable")
    gate.release()
    running.finish()


def test_over_http_limits_of_usage_hold(make_server, provider, tmp_path):
    world = World(make_server(provider, config={"approval_mode": "approve_all", "budget": {"max_tokens_per_interaction": 30}}), provider, tmp_path)
    world.record()
    provider.answer_with(lambda request: tools(call(*READ, f"x{len(results(request))}")))
    shown = stream(world)
    shown.rest()
    assert shown.one("error")["code"] == "budget_exceeded" and shown.events[-1]["status"] == "FAILED"


def test_over_http_what_is_used_counts_for_the_day(make_server, provider, tmp_path):
    world = World(make_server(provider, config={"approval_mode": "approve_all", "budget": {"max_tokens_per_day": 50}}), provider, tmp_path)
    world.record()
    provider.answer_with(lambda _: text("ok"))
    stream(world).rest()
    stream(world).rest()
    world.client.post("/chats/c/interactions/int_001/what_if", {}).error(403, "budget_exceeded")


def test_over_http_a_tool_of_an_mcp_server_may_act(make_server, provider, tmp_path):
    dice = server_of('{"name": "roll", "description": "Rolls.", "inputSchema": {"type": "object"}}', '[{"type": "text", "text": "A 4."}]')
    world = World(make_server(provider, config={"mcpServers": {"dice": dice}, "approval_mode": "approve_all"}), provider, tmp_path)
    eventually(lambda: world.client.get("/tools").json["servers"][0]["state"] == "ready", "the server is ready")
    world.record(READ)
    for allowed in (False, True):
        provider.plan(tools(call("dice__roll", {}, "x0")), text("ok"))
        stream(world, allow_effects=["dice__roll"] if allowed else []).rest()
        assert ("A 4." in last_result(provider.requests[-1])) == allowed
    status, lines, _ = reprise(world.home, "audit", "--json", "--data-dir", world.home.data)
    assert status == 0 and lines.count("dice__roll") == 2, "its beginning and its end"


def test_over_http_no_tool_may_act_on_a_server_that_refuses(make_server, provider, tmp_path):
    world = World(make_server(provider, config={"approval_mode": "deny_all"}), provider, tmp_path)
    world.record()
    world.client.post("/chats/c/interactions/int_001/what_if", {"allow_effects": ["http_get"]}).error(403, "mode_not_allowed")


def test_over_http_a_stop_of_the_server_ends_it(world):
    world.record(READ)
    gate = Gate()
    world.provider.plan(tools(call(*READ, "x0")), text("An ", gate, "otter."))
    shown = stream(world)
    gate.wait_reached()
    world.server.stop()
    shown.rest()
    assert shown.events[-1]["status"] == "CANCELLED"


# --- kept as a branch --------------------------------------------------------------------------------------------------


def kept_with(world, chat="c", interaction="int_001", **body):
    """The interaction as which a run was kept. The chat and its folder are otherwise as before."""
    before, chat_before, asked = digest(world.workspace), world.client.get(f"/chats/{chat}").json, len(world.provider.requests)
    shown = stream(world, interaction, chat, keep=True, **body)
    shown.rest()
    frame = shown.frames[0].data
    assert "not_kept" not in frame, frame
    kept = world.client.interaction(chat, frame["kept"])
    now = world.client.get(f"/chats/{chat}").json
    assert digest(world.workspace) == before and now["head"] == chat_before["head"]
    recorded = world.client.interaction(chat, interaction)
    assert kept["parent_id"] == recorded["parent_id"] and kept["edited_from"] == interaction and kept["record"]["what_if"] == body.get("at", 0)
    assert "FILES_CHANGED" not in [each["type"] for each in kept["agent_events"]]
    # Its requests are those before the event, as they were sent, and its own.
    bodies = bodies_of(world, chat, kept["id"])
    own = [each.raw for each in world.provider.requests[asked:]]
    assert own and bodies[-len(own):] == own and bodies[:-len(own)] == bodies_of(world, chat, interaction)[:len(bodies) - len(own)]
    return kept


def bodies_of(world, chat, interaction):
    path = f"/chats/{chat}/interactions/{interaction}/requests"
    sent = world.client.get(path).expect(200, "requests").json
    assert sent["on_record"] and all("response" in each for each in sent["requests"])
    return [world.client.get(f"{path}/{index}").body for index in range(len(sent["requests"]))]


def replays(world, chat, interaction):
    report = world.client.post(f"/chats/{chat}/interactions/{interaction}/replay", {"mode": "recorded"}).expect(200).json
    assert report["match"], report
    return report


def test_a_kept_run_is_a_turn_like_any(world, tmp_path):
    """Each kind of difference. It replays, verifies, is exported and imported; the next turn can follow it."""
    events = world.record(READ, WRITE)
    for body, answers in (({}, [tools(call(*READ, "x0")), text("anew")]), ({"at": seq(events, "TOOL_CALL"), "result": "eggs"}, [tools(call("write_file", {"path": "out.txt", "content": "two\n"}, "x1")), text("eggs")]),
                          ({"at": seq(events, "TOOL_RESULT", 1), "fail": "timeout"}, [text("late")]), ({"say": "hello"}, [text("hi")]),
                          ({"at": seq(events, "TOOL_CALL", 1), "model": "test/two"}, [text("two")]), ({"at": seq(events, "TOOL_RESULT", 1)}, [text("a ", "third")])):
        world.provider.plan(*answers)
        kept = kept_with(world, **body)
        assert kept["user_message"] == body.get("say", "go") and kept["status"] == "COMPLETED"
        replays(world, "c", kept["id"])
    assert (world.workspace / "out.txt").read_text() == "one\n"
    world.client.post("/chats/c/head", {"interaction_id": kept["id"]}).expect(200)
    world.provider.plan(tools(call("read_file", {"path": "out.txt"}, "n0")), text("next"))
    world.client.turn("c", "and now?")
    told = [each.get("content") for each in world.provider.requests[-1].body["messages"]]
    assert "two" in told and told[-2] is None or "one" in told[-1], told
    bodies_of(world, "c", world.client.get("/chats/c").json["head"])
    status, _, messages = reprise(world.home, "verify", "--data-dir", world.home.data)
    assert status == 0, messages
    status, output, messages = reprise(world.home, "test", "c", "--json", "--data-dir", world.home.data, "--config", "server.json", "--workspace", world.workspace)
    assert status == 0, ([each["problems"] for each in json.loads(output)["turns"]], messages)
    exported = world.client.get("/chats/c/export?format=json").json
    imported = world.client.post("/import", exported).expect(201).json["id"]
    assert world.client.interaction(imported, kept["id"])["record"]["what_if"] == seq(events, "TOOL_RESULT", 1)
    replays(world, imported, kept["id"])


def test_files_that_a_kept_run_changed_in_its_copy_count_nowhere(world):
    """Not for a restore, not for blame, not for a later what-if."""
    world.record(("write_file", {"path": "a.txt", "content": "first\n"}))
    world.provider.plan(tools(call("write_file", {"path": "a.txt", "content": "never\n"}, "x0"), call(*WRITE, "x1")), text("done"))
    kept = kept_with(world)
    world.client.post("/chats/c/head", {"interaction_id": kept["id"], "files": "restore"}).expect(200)
    assert (world.workspace / "a.txt").read_text() == "first\n" and not (world.workspace / "out.txt").exists()
    world.client.post("/chats/c/head", {"interaction_id": "int_001", "files": "restore"}).expect(200)
    assert (world.workspace / "a.txt").read_text() == "first\n"
    status, lines, _ = reprise(world.home, "blame", str(world.workspace / "a.txt"), "--data-dir", world.home.data)
    assert status == 0 and "c/int_001" in lines, lines


def test_a_persons_other_answer_is_kept_with_the_tasks_of_the_turn(make_server, provider, tmp_path):
    world = World(make_server(provider), provider, tmp_path)
    provider.plan(tools(call("manage_tasks", {"action": "add", "title": "one"}, "t")), tools(call(*WRITE, "w")), text("done"))
    shown = world.client.start("c", "go")
    world.client.approve("c", "int_001", shown.until("approval_required")["approval_id"], approved=False)
    shown.finish()
    at = seq(world.events(), "APPROVAL_REQUIRED")
    for answer in ("yes", "no"):
        provider.plan(text(answer))
        kept = kept_with(world, at=at, answer=answer)
        assert [each["title"] for each in kept["final_agent_state"]["tasks"]] == ["one"]
        replays(world, "c", kept["id"])


def test_what_is_not_kept(world):
    events = world.record(READ)
    path = "/chats/c/interactions/int_001/what_if"
    for at in ("TOOL_RESULT", "ANSWER"):
        refused = world.client.post(path, {"at": seq(events, at), "say": "and now?", "keep": True})
        refused.error(400, "invalid_request")
        assert "one message" in refused.json["error"]["message"]
    world.client.post(path, {"keep": "yes"}).error(400, "invalid_member")
    world.provider.plan(failure(400, "no such thing"))
    shown = stream(world, keep=True)
    shown.rest()
    [frame] = shown.frames
    assert frame["kept"] is None and "did not come to its end" in frame["not_kept"]
    gate = Gate()
    world.provider.plan(text("An ", gate, "otter."))
    running = world.client.start("c", "go")
    gate.wait_reached()
    world.provider.plan(text("ok"))
    shown = stream(world, keep=True)
    shown.rest()
    assert shown.frames[0]["kept"] is None, shown.frames
    gate.release()
    running.finish()
    assert [each["id"] for each in world.client.history("c", branches="all")["interactions"]] == ["int_001", "int_002"]


def test_the_command_keeps_through_the_server(world):
    events = world.record(READ)
    world.provider.plan(text("eggs"))
    run = world.one(f"c/int_001@{seq(events, 'TOOL_RESULT')}", "--result", "eggs", "--keep")
    assert run["kept"] == "int_002" and run["answer"] == "eggs" and run["first_difference"]["seq"] == seq(events, "TOOL_RESULT")
    assert world.client.get("/chats/c").json["head"] == "int_001"
    world.provider.plan(tools(call("write_file", {"path": "out.txt", "content": "x\n"}, "x0")), text("ham"))
    output, _ = world.run("c/int_001", "--keep", "--switch")
    assert "kept as c/int_003\n" in output and "+x" in output and world.client.get("/chats/c").json["head"] == "int_003"
    world.provider.plan(failure(400, "no such thing"))
    output, _ = world.run("c/int_001", "--keep", status=1)
    assert "not kept: it did not come to its end" in output
    world.refused("c/int_001", "--keep", "--times", "2", said="--times")
    world.refused("c/int_001", "--switch", said="--keep")
    world.refused("c/int_001", "--keep", "--model", "a/b", "--model", "c/d", said="one turn")
    world.refused("c", "--keep", said="CHAT/INTERACTION")
    world.refused("c/int_001@9999", "--keep", said="no event 9999")


def test_a_kept_run_says_that_it_is_one_wherever_it_is_shown(world):
    events = world.record(READ)
    world.provider.plan(text("eggs"))
    at = seq(events, "TOOL_RESULT")
    world.one(f"c/int_001@{at}", "--result", "FORGED OUTPUT", "--keep", "--switch")
    world.server.stop()
    status, bundle, messages = reprise(world.home, "prove", "c", "--data-dir", world.home.data)
    assert status == 0, messages
    turn, = [leaf for leaf in (json.loads(each["text"]) for each in json.loads(bundle)["leaves"]) if leaf["kind"] == "turn"]
    assert turn["turn"] == "int_002" and turn["what_if"] == {"turn": "int_001", "event": at}
    for command in (["show", "c"], ["export", "c", "--format", "markdown"]):
        status, output, messages = reprise(world.home, *command, "--data-dir", world.home.data)
        assert status == 0 and f"what if, from event {at} of int_001" in output and "FORGED" in output, (output, messages)
