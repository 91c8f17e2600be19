"""`reprise rules try` and `reprise rules suggest`: what rules would have done with the calls on record."""
import json
import subprocess
import time

import pytest
from support import schemas
from support.mcp import ChangeableServer
from support.provider import call, text, tools
from support.server import BINARY
from support.timing import SLACK, SOON
from test_agents import HEAD, agent, delegate
from test_instructions import trust


def shell(command, call_id="call_1"):
    return call("run_shell", {"command": command}, call_id)


def allow(tool, pattern=None):
    return {"tool": tool, **({"pattern": pattern} if pattern else {}), "action": "allow"}


class World:
    def __init__(self, make_server, home, provider, plain=True, **config):
        self.home, self.provider, self.plain = home, provider, plain
        self.make_server = make_server
        self.restart(**config)

    def restart(self, **config):
        """Another configuration."""
        self.server = self.make_server(self.provider, self.home, plain=self.plain, config=config)
        self.client = self.server.client

    def turn(self, chat, *calls, answers=(), **more):
        """One turn with these calls; `answers` are bodies for the approvals, in their order."""
        self.provider.plan(tools(*calls), text("ok"))
        stream = self.client.start(chat, "go", **more)
        answers = list(answers)
        while (event := stream.next()) is not None:
            if event.name == "approval_required":
                answer = dict(answers.pop(0))
                self.client.approve(chat, stream.interaction, event["approval_id"], answer.pop("approved", True), **answer).expect(200)
        assert not answers and stream.events[-1]["status"] == "COMPLETED", stream.events
        return stream

    def ask(self, chat, command, **answer):
        return self.turn(chat, shell(command), answers=[answer])

    def file(self, rules, name="new.json"):
        path = self.home.workspace / name
        path.write_text(rules if isinstance(rules, str) else json.dumps(rules))
        return path

    def run(self, *arguments, status=0):
        command = [str(BINARY), "rules", *map(str, arguments), "--data-dir", str(self.home.data), "--config", str(self.home.path / "server.json"),
                   "--workspace", str(self.home.workspace), *(["--plain"] if self.plain else [])]
        done = subprocess.run(command, cwd=self.home.workspace, env=self.home.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=SOON,
                              check=False)
        assert done.returncode == status, (done.returncode, done.stdout[-1000:], done.stderr[-1000:])
        return done.stdout.decode(), done.stderr.decode()

    def report(self, rules, *arguments, **more):
        out, _ = self.run("try", self.file(rules), "--json", *arguments, **more)
        report = json.loads(out)
        schemas.check("rules_report", report)
        return report

    def suggested(self):
        found = [json.loads(line) for line in self.run("suggest", "--json")[0].splitlines()]
        for each in found:
            schemas.check("suggested_rule", each)
        return [(each["rule"], each["served"], each["chats"]) for each in found]


@pytest.fixture
def world(make_server, make_home, provider):
    return World(make_server, make_home(), provider)


@pytest.mark.parametrize("plain", [True, False])
def test_questions_saved_and_new_ones_and_refusals(make_server, make_home, provider, plain):
    world = World(make_server, make_home(), provider, plain)
    world.ask("a", "echo one")
    world.ask("a", "echo two")
    world.ask("b", "touch x")
    world.turn("b", call("read_file", {"path": "new.json"}))  # nobody is asked
    world.turn("b", call("list_files", {}))
    assert world.report([allow("run_shell", "echo *")]) | {"not_tried": []} == {
        "days": 90, "rules": 1, "chats": 2, "turns": 5, "imported_turns": 0, "calls": 5, "questions_asked": 3, "questions_saved": 2,
        "saved_and_approved": 2, "questions_kept": 1, "new_questions": 0, "new_refusals": 0, "refusals_passed": 0, "mode_refusals_passed": 0,
        "named": [], "not_tried": [], "hooks_not_tried": [], "messages_refused": [], "results_redacted": 0}
    report = world.report([{"tool": "read_file", "action": "ask"}, {"tool": "run_shell", "pattern": "touch", "action": "deny"}])
    assert (report["questions_kept"], report["new_questions"], report["new_refusals"]) == (2, 1, 1)
    refusal, question = report["named"]
    assert (refusal["kind"], refusal["chat_id"], refusal["interaction_id"], refusal["fate"], refusal["decided_by"]) == (
        "refusal", "b", "int_001", "approved", "rule 2")
    assert (question["kind"], question["tool"], question["fate"], question["decided_by"]) == ("question", "read_file", "ran", "rule 1")
    assert world.report([], "a")["questions_asked"] == 2
    out, said = world.run("try", world.file([allow("run_shell", "echo *")]))
    assert said == "" and "1 rule tried on 5 calls in 5 turns of 2 chats, from the last 90 days\n" in out
    assert "  saved                             2, of which 2 were approved as they were\n" in out


def test_what_was_held_back_is_named_and_fails(world):
    world.ask("a", "echo one", approved=False)
    world.ask("a", "echo two", arguments=json.dumps({"command": "echo three"}))
    world.ask("b", "echo fine")
    world.server.stop()
    world.restart(tools={"rules": [{"tool": "run_shell", "pattern": "echo", "action": "deny"}]})
    world.turn("c", shell("echo four"))
    report = world.report([allow("run_shell", "echo *")], status=1)
    assert report["refusals_passed"] == 3 and report["questions_saved"] == 3 and report["saved_and_approved"] == 1
    assert [(each["kind"], each["chat_id"], each["fate"], json.loads(each["arguments"])["command"]) for each in report["named"]] == [
        ("passed", "a", "rejected", "echo one"), ("passed", "a", "changed", "echo two"), ("passed", "c", "denied", "echo four")]
    world.report([allow("run_shell", "echo *")], "--allow")
    out, _ = world.run("try", world.file([allow("run_shell", "echo *")]), status=1)
    assert 'a/int_001  run_shell {"command": "echo one"}  (then rejected, now by rule 1)' in out
    # Narrower rules let none of them pass.
    assert world.report([allow("run_shell", "echo fine")])["questions_saved"] == 1
    # Without rules, what a rule denied would ask.
    assert world.report([])["new_questions"] == 1


def test_grants_and_modes_of_then_still_count(world):
    world.ask("a", "date +%N", scope="chat")
    world.turn("a", shell("date +%N"))
    world.turn("b", shell("touch y"), approval_mode="approve_all")
    world.turn("c", shell("touch z"), approval_mode="deny_all")
    report = world.report([])
    assert (report["questions_asked"], report["questions_kept"], report["new_questions"], report["not_tried"]) == (1, 1, 0, [])
    report = world.report([{"tool": "run_shell", "action": "ask"}])
    assert report["new_questions"] == 2 and {each["chat_id"] for each in report["named"]} == {"a", "b"}
    assert world.report([allow("run_shell", "touch *")])["mode_refusals_passed"] == 1


def test_calls_of_sub_agents_count(make_server, make_home, provider):
    home = make_home()
    trust(home, agent(home.workspace, "docs", HEAD + "Write."))
    world = World(make_server, home, provider)
    for chat, approved in (("a", True), ("b", False)):
        provider.plan(tools(delegate()), tools(call("write_file", {"path": "docs/a.txt", "content": "x"}, "w")), text("I did."), text("done"))
        stream = world.client.start(chat, "go")
        world.client.approve(chat, "int_001", stream.until("approval_required")["approval_id"], approved).expect(200)
        stream.finish()
    report = world.report([allow("write_file", "docs/**")], status=1)
    assert report["questions_asked"] == 2 and report["questions_saved"] == 2
    assert [(each["call_id"], each["tool"], each["fate"]) for each in report["named"]] == [("r/w", "write_file", "rejected")]


def test_tools_of_servers_that_do_not_run(make_server, make_home, provider):
    home = make_home()
    mcp = ChangeableServer(home.path)
    world = World(make_server, home, provider, mcpServers={"s": mcp.configuration()})
    for chat in ("a", "b"):
        for number in range(2):
            world.turn(chat, call("s__do", {"n": number}), answers=[{}])
    world.server.stop()
    started = mcp.pid_file.stat().st_mtime_ns
    report = world.report([allow("s__*")])
    # The first question was the consent, which no rule gives.
    assert (report["questions_asked"], report["questions_saved"], report["questions_kept"]) == (4, 3, 1)
    assert world.suggested() == [(allow("s__do"), 3, 2)]
    assert mcp.pid_file.stat().st_mtime_ns == started


def test_suggestions_are_narrow_and_never_allow_what_was_rejected(world):
    assert "nothing to suggest: no pattern was approved at least 3 times in 2 chats" in world.run("suggest")[0]
    for chat in ("a", "b"):
        for command in ("echo same", "date +%Y", f"wc -c {chat}1", f"wc -c {chat}2", f"sort {chat}", "git push"):
            world.ask(chat, command)
    world.ask("b", "echo same")
    world.ask("b", "sort --reverse b")
    world.ask("b", "git push")
    world.ask("a", "git push --force", approved=False)
    world.ask("a", "echo other", approved=False)
    for _ in range(3):
        world.ask("a", "uname -a")  # in one chat only
    # `echo *` would have allowed a rejected call, `date` was asked twice.
    assert world.suggested() == [(allow("run_shell", "wc *"), 4, 2), (allow("run_shell", "echo same"), 3, 2), (allow("run_shell", "git push"), 3, 2),
                                 (allow("run_shell", "sort *"), 3, 2)]
    out, said = world.run("suggest")
    assert said == "" and "  // 4 questions in 2 chats, all approved. Runs `wc` followed by" in out
    # Ready to be pasted, and good for `try`.
    (world.home.workspace / "pasted.json").write_text(out)
    report = json.loads(world.run("try", world.home.workspace / "pasted.json", "--json")[0])
    assert report["questions_saved"] == 13 and report["refusals_passed"] == 0
    # What the configuration already allows is not suggested.
    world.server.stop()
    world.restart(tools={"rules": [allow("run_shell", "wc *"), {"tool": "run_shell", "pattern": "sort", "action": "ask"}]})
    assert [rule["pattern"] for rule, *_ in world.suggested()] == ["echo same", "git push"]


def test_a_whole_configuration(world):
    world.ask("a", "echo 1234")
    world.turn("a", call("list_files", {}))
    configuration = {"tools": {"rules": [allow("run_shell", "echo *")], "deny": ["list_files"]}, "hooks": [{"event": "before_tool", "command": ["/no/such/hook"]}],
                     "guardrails": {"input": ["g[o]"], "output": ["[0-9]{4}"]}}
    report = world.report(configuration)
    assert report["questions_saved"] == 1 and report["not_tried"] == [] and report["new_refusals"] == 1
    assert [(each["kind"], each["tool"], each["decided_by"]) for each in report["named"]] == [("refusal", "list_files", "tools.allow and tools.deny")]
    assert report["hooks_not_tried"] == [{"event": "before_tool", "command": ["/no/such/hook"]}]
    assert report["messages_refused"] == ["a/int_001", "a/int_002"] and report["results_redacted"] == 1
    out, _ = world.run("try", world.file(configuration))
    assert "not tried: the hook before_tool (/no/such/hook), because hooks are not run\n" in out and "guardrails would change 1 tool result\n" in out


def test_each_chat_is_tried_in_its_folder(world):
    outside = world.home.path / "outside"
    outside.mkdir()
    for chat, folder in (("a", world.home.workspace), ("b", outside)):
        world.turn(chat, call("write_file", {"path": "src/x", "content": "x"}), answers=[{}], workspace=str(folder))
    assert world.report([allow("write_file", "src/**")])["questions_saved"] == 2
    (outside / "src" / "x").unlink()
    (outside / "src").rmdir()
    outside.rmdir()
    report = world.report([allow("write_file", "src/**")])
    assert report["questions_saved"] == 1 and report["not_tried"][0]["calls"] == 1 and "there is no folder" in report["not_tried"][0]["why"]


def test_forks_and_imports_add_nothing(world):
    world.ask("a", "echo one")
    world.client.post("/chats/a/fork", {"interaction_id": "int_001", "chat_id": "0-copy"}).expect(201)
    document = world.client.get("/chats/a/export").expect(200).json
    world.client.post("/import?as=foreign", {k: v for k, v in document.items() if k != "usage"}).expect(201)
    report = world.report([allow("run_shell", "echo *")])
    assert (report["questions_saved"], report["imported_turns"]) == (1, 1)


def test_wrong_files_and_arguments_are_named(world):
    world.ask("a", "echo \x1b[31mred\u202e\n", approved=False)
    good = world.file([allow("run_shell", "echo *")])
    nested = "[" * 5000
    for content, status, message in [
            ("{", 2, "is not valid JSON"), (nested, 2, "bad.json"), ("7", 2, "neither an array of rules nor a configuration"), ("", 2, "is not valid JSON"),
            ('[{"tool":"x"}]', 2, "tools.rules[0]"), ('[{"tool":"nope","action":"allow"}]', 2, "rule 1 (allow nope) can never match"),
            ('[{"tool":"run_shell","pattern":"sh *","action":"allow"}]', 2, 'rule 1 (allow run_shell) has the pattern "sh *"'),
            ('{"rules":[],"x":1}', 2, "unknown key"), ('[{"tool":"a","tool":"b","action":"allow"}]', 2, "tool"), ("x" * (2 << 20), 2, "more than 1 MiB"),
            ('[{"tool":"a\\u001b\\n","action":"deny"}]', 2, "<U+001B>")]:
        out, said = world.run("try", world.file(content, "bad.json"), status=status)
        assert out == "" and message in said and said.count("\n") == 1 and "\x1b" not in said, (content[:50], said)
    (world.home.workspace / "latin.json").write_bytes(b'["\xff"]')
    for arguments, status, message in [
            (["try"], 2, "FILE"), (["try", "missing.json"], 1, "there is no file missing.json"), (["try", "mis\x1bsing"], 1, "<U+001B>"), (["try", "."], 1, "regular file"),
            (["try", "latin.json"], 2, "latin.json"), (["try", good, "no-such-chat"], 1, "no-such-chat"), (["try", good, "a/int_001"], 2, "a/int_001"),
            (["try", good, "x\ny"], 2, "x y"), (["try", good, "--days", "0"], 2, "--days"), (["suggest", "--allow"], 2, "--allow")]:
        out, said = world.run(*arguments, status=status)
        assert out == "" and message in said and said.count("\n") == 1, (arguments, said)
    out, _ = world.run("try", world.file([{"tool": "run_shell", "action": "deny"}]), "a")
    assert "\x1b" not in out and "\u202e" not in out


def test_a_data_folder_without_chats(make_home):
    home = make_home()
    (home.workspace / "new.json").write_text("[]")
    def run():
        return subprocess.run([str(BINARY), "rules", "try", "new.json", "--plain", "--data-dir", str(home.data)], cwd=home.workspace, env=home.environment(),
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=SOON)
    done = run()
    assert done.returncode == 1 and "there is no data folder" in done.stderr
    home.data.mkdir(parents=True, exist_ok=True)
    done = run()
    assert done.returncode == 0 and done.stdout.startswith("0 rules tried on 0 calls in 0 turns of 0 chats")


def test_damage_is_named_and_the_rest_counts(world):
    world.server.check_files = world.server.check_records = False
    world.ask("a", "echo one")
    world.ask("b", "echo two")
    world.server.stop()
    file = world.home.checkpoint_file("b", "int_001")
    file.write_text(file.read_text()[:100])
    out, said = world.run("try", world.file([allow("run_shell", "echo *")]), "--json", status=1)
    assert said.startswith("reprise: b/interactions/int_001.json: ") and said.count("\n") == 1
    assert json.loads(out)["questions_saved"] == 1
    world.run("suggest", status=1)


def test_two_thousand_calls_take_two_seconds(world):
    for chat in range(20):
        world.turn(f"c{chat}", *[shell(f"git log -{chat * 100 + i} -- src", f"call_{i}") for i in range(100)], approval_mode="deny_all")
    rules = [allow("run_shell", "git log *"), allow("run_shell", "head *"), {"tool": "run_shell", "pattern": "git push", "action": "deny"}]
    started = time.monotonic()
    report = world.report(rules)
    assert report["calls"] == 2000 and report["mode_refusals_passed"] == 2000
    assert time.monotonic() - started < 2 * SLACK
    started = time.monotonic()
    assert world.suggested() == []
    assert time.monotonic() - started < 2 * SLACK
