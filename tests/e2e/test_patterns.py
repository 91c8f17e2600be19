"""Patterns of calls that a person allows, and standing rules of the configuration, on the real server."""
import json
import os
import pathlib
import subprocess

import pytest
from support.provider import call, text, tools
from support.server import BINARY
from support.timing import eventually

LINES = json.loads((pathlib.Path(__file__).parent.parent / "data" / "command_lines" / "lines.json").read_text())


def shell(command, call_id="call_1"):
    return call("run_shell", {"command": command}, call_id)


def asks(client, provider, chat, *calls):
    provider.plan(tools(*calls))
    stream = client.start(chat, "do it")
    return stream, stream.until("approval_required")


def allow(client, provider, chat, command, pattern, scope="chat", **more):
    stream, asked = asks(client, provider, chat, shell(command))
    assert client.get("/approvals").expect(200, "approvals").json["approvals"][0]["patterns"] == asked["patterns"]
    provider.plan(text("ok"))
    client.approve(chat, stream.interaction, asked["approval_id"], scope=scope, pattern=pattern, **more).expect(200, "approve_response")
    stream.finish()
    return stream, asked


def asked_calls(client, provider, chat, calls):
    """The calls of one turn that need approval; all of them are rejected."""
    provider.plan(tools(*calls), text("ok"))
    stream = client.start(chat, "again")
    asked = set()
    while (event := stream.next()) is not None:
        if event.name == "approval_required":
            asked.add(event["call_id"])
            client.approve(chat, stream.interaction, event["approval_id"], False).expect(200)
    assert stream.events[-1]["status"] == "COMPLETED", stream.events
    return asked


def test_a_pattern_is_offered_with_its_sentence_and_counts_in_the_chat(server, provider):
    client = server.client
    stream, asked = allow(client, provider, "c", "echo one", "echo *")
    assert [p["pattern"] for p in asked["patterns"]] == ["echo one", "echo *"]
    assert all(p["means"].startswith("Runs ") and p["means"].endswith(".") for p in asked["patterns"])
    approved = stream.one("approved")
    assert approved["pattern"] == "echo *" and approved["scope"] == "chat" and approved["grant_expires_at"] > approved["at"]
    grant, = client.get("/chats/c/grants").expect(200, "chat_grants").json["grants"]
    assert grant["pattern"] == "echo *" and grant["uses"] == 0 and "arguments_digest" not in grant
    assert grant["means"] == asked["patterns"][1]["means"] and grant["expires_at"] == approved["grant_expires_at"]

    assert asked_calls(client, provider, "c", [shell("echo two three", "a"), shell("echo 'four; five' | echo six", "b"), shell("echo x > y", "d"),
                                               shell("echo $(id)", "e"), shell("ls", "f")]) == {"d", "e", "f"}
    grant, = client.get("/chats/c/grants").json["grants"]
    assert grant["uses"] == 2 and grant["used_at"] > approved["at"]
    started = [e for e in client.get("/audit").expect(200, "audit").json["entries"] if e["event"] == "started" and e["reason"] == "grant"]
    assert [e["call_id"] for e in started] == ["a", "b"] and all(e["decided_by"] == [grant["id"]] for e in started)
    # Another chat does not have the grant.
    assert asked_calls(client, provider, "other", [shell("echo two", "a")]) == {"a"}
    # An edit restores the grants of that time.
    provider.plan(tools(shell("echo again", "z")), text("ok"))
    edited = client.edit("c", "int_001", "once more")
    question = edited.until("approval_required")
    client.approve("c", edited.interaction, question["approval_id"], False).expect(200)
    edited.finish()
    assert client.get("/chats/c/grants").json == {"grants": []}


def test_it_survives_a_restart_and_a_recorded_replay(make_server, provider):
    server = make_server(provider)
    allow(server.client, provider, "c", "echo one", "echo *")
    assert asked_calls(server.client, provider, "c", [shell("echo two", "a")]) == set()
    for number in ("int_001", "int_002"):
        report = server.client.post(f"/chats/c/interactions/{number}/replay", {"mode": "recorded"}).expect(200).json
        assert report["match"], report
    server.kill()
    server = make_server(provider, server.home)
    assert asked_calls(server.client, provider, "c", [shell("echo three", "a"), shell("pwd", "b")]) == {"b"}
    assert server.client.get("/chats/c/grants").json["grants"][0]["uses"] == 2


@pytest.mark.parametrize("plain", [False, True])
def test_for_always_it_is_listed_counted_and_revoked(make_server, provider, plain):
    server = make_server(provider, plain=plain)
    client = server.client
    allow(client, provider, "a", "echo one", "echo *", scope="always")
    grant, = client.get("/grants").expect(200, "grants").json["grants"]
    assert grant["pattern"] == "echo *" and json.loads(grant["tool_input"]) == {"command": "echo one"} and grant["means"].startswith("Runs `echo`")
    assert asked_calls(client, provider, "b", [shell("echo two", "a"), shell("echo two | wc", "b")]) == {"b"}
    assert client.get("/grants").json["grants"][0]["uses"] == 1
    server.stop()
    server = make_server(provider, server.home, plain=plain)
    client = server.client
    kept, = client.get("/grants").json["grants"]
    assert kept["uses"] == 1 and kept["id"] == grant["id"]
    assert asked_calls(client, provider, "c", [shell("echo three", "a")]) == set()
    client.request("DELETE", f"/grants/{grant['id']}").expect(200, "grant_revoked")
    assert asked_calls(client, provider, "d", [shell("echo four", "a")]) == {"a"}


def test_a_version_with_another_meaning_of_a_pattern_asks(make_server, provider):
    """The grant's file is given another version's sentence, which differs from ours."""
    server = make_server(provider, plain=True)
    _, asked = allow(server.client, provider, "c", "echo one", "echo *", scope="always")
    sentence = asked["patterns"][1]["means"]
    file = server.home.data / ".grants"
    server.stop()
    kept = json.loads(file.read_text())
    grant, = kept["grants"]
    assert grant["means"] == sentence
    grant["means"] = "Runs `echo` with one word."
    file.write_text(json.dumps(kept))

    newer = make_server(provider, server.home, plain=True)
    listed, = newer.client.get("/grants").expect(200, "grants").json["grants"]
    assert listed["means"] == "Runs `echo` with one word." and listed["outdated"] is True
    assert asked_calls(newer.client, provider, "d", [shell("echo two", "a")]) == {"a"}
    # A new approval agrees to the present meaning.
    allow(newer.client, provider, "d", "echo three", "echo *", scope="always")
    listed, = newer.client.get("/grants").expect(200, "grants").json["grants"]
    assert listed["means"] == sentence and "outdated" not in listed
    assert asked_calls(newer.client, provider, "e", [shell("echo four", "a")]) == set()
    newer.stop()
    # A grant of an older version has no sentence and stays valid.
    kept = json.loads(file.read_text())
    del kept["grants"][0]["means"]
    file.write_text(json.dumps(kept))
    older = make_server(provider, server.home, plain=True)
    assert asked_calls(older.client, provider, "f", [shell("echo five", "a")]) == set()
    listed, = older.client.get("/grants").expect(200, "grants").json["grants"]
    assert listed["means"] == sentence and "outdated" not in listed


def test_it_ends_when_it_is_said_to(server, provider):
    client = server.client
    allow(client, provider, "c", "echo one", "echo *", expires_in_s=1)
    allow(client, provider, "c", "pwd", "pwd", expires_in_s=0)
    eventually(lambda: len(client.get("/chats/c/grants").json["grants"]) == 1, "one of them has ended")
    kept, = client.get("/chats/c/grants").json["grants"]
    assert kept["pattern"] == "pwd" and "expires_at" not in kept
    assert asked_calls(client, provider, "c", [shell("echo two", "a"), shell("pwd", "b")]) == {"a"}
    allow(client, provider, "a", "echo one", "echo *", scope="always", expires_in_s=1)
    eventually(lambda: client.get("/grants").json["grants"] == [], "it has ended")
    assert asked_calls(client, provider, "b", [shell("echo two", "a")]) == {"a"}


@pytest.mark.parametrize("body, code, word", [
    ({"pattern": "echo *"}, "invalid_answer", "scope"), ({"expires_in_s": 5}, "invalid_answer", "scope"),
    ({"pattern": "ls *", "scope": "chat"}, "invalid_answer", "approval_required.patterns"),
    ({"pattern": "echo *", "scope": "chat", "arguments": {"command": "echo two"}}, "invalid_answer", "arguments"),
    ({"pattern": "", "scope": "chat"}, "invalid_member", "pattern"), ({"pattern": 1, "scope": "chat"}, "invalid_member", "pattern"),
    ({"expires_in_s": -1, "scope": "chat"}, "invalid_member", "expires_in_s"), ({"expires_in_s": 1e12, "scope": "chat"}, "invalid_member", "expires_in_s")])
def test_an_answer_that_makes_no_sense_is_refused_and_the_question_waits(server, provider, body, code, word):
    client = server.client
    stream, asked = asks(client, provider, "c", shell("echo one"))
    refused = client.approve("c", stream.interaction, asked["approval_id"], **body).error(400, code)
    assert word in refused["message"], refused
    provider.plan(text("ok"))
    client.approve("c", stream.interaction, asked["approval_id"], False).expect(200)
    stream.finish()
    assert client.get("/chats/c/grants").json == {"grants": []}


def test_hostile_lines_ask_at_the_real_server(make_server, provider):
    rules = [{"tool": "run_shell", "pattern": pattern, "action": "allow"} for pattern in LINES["patterns"]]
    server = make_server(provider, config={"tools": {"rules": rules}, "approval_mode": "deny_all"})
    client = server.client
    # Calls that need approval are refused here. None of these runs.
    hostile = [line for line in LINES["hostile"][::12] if line]
    harmless = ["pwd", "true", "echo hi | wc -l", "git status; pwd"]
    calls = [shell(line, f"h{i}") for i, line in enumerate(hostile)]
    results = {}
    for start in range(0, len(calls), 10):
        provider.plan(tools(*calls[start:start + 10]), text("ok"))
        results |= {e["id"]: e["tool_output"] for e in client.turn("c", "go").all("tool_result")}
    assert len(results) == len(hostile) >= 45
    ran = [hostile[int(name[1:])] for name, output in results.items() if output != "This server refuses calls that need approval." and "NUL" not in output and "arguments were not accepted" not in output]
    assert ran == []
    provider.plan(tools(*[shell(line, f"s{i}") for i, line in enumerate(harmless)]), text("ok"))
    assert not [e for e in client.turn("c", "go").all("tool_result") if "refuses" in e["tool_output"]]


def test_a_program_of_the_workspace_does_not_stand_for_the_systems(make_server, provider, make_home):
    home = make_home()
    folder = home.workspace / "bin"
    folder.mkdir()
    rules = [{"tool": "run_shell", "pattern": pattern, "action": "allow"} for pattern in ("ls *", "make test", "git status")]
    config = {"tools": {"rules": rules}, "approval_mode": "deny_all"}
    server = make_server(provider, home, config=config, environment={"PATH": f"{folder}:{os.environ['PATH']}"})
    def ran(client, *lines):
        provider.plan(tools(*[shell(line, f"c{i}") for i, line in enumerate(lines)]), text("ok"))
        results = {e["id"]: e["tool_output"] for e in client.turn("c", "go").all("tool_result")}
        return ["refuses" not in results[f"c{i}"] for i in range(len(lines))]
    assert ran(server.client, "ls", "git status; ls") == [True, True]
    for name in ("ls", "make"):
        (folder / name).write_text("#!/bin/sh\necho mine\n")
        (folder / name).chmod(0o755)
    # The sentence for make says that files decide what it does.
    assert ran(server.client, "ls", "git status; ls", "git status", "make test") == [False, False, True, True]
    (folder / "ls").unlink()
    (folder / "ls").symlink_to("/bin/ls")
    assert ran(server.client, "ls") == [False]
    server.stop()
    server = make_server(provider, home, config=config, environment={"PATH": f"bin:{os.environ['PATH']}"})
    assert ran(server.client, "ls", "git status") == [False, False]


HANDED = ["sort -S 1b --compress-program=sh r.txt", "sort --comp sh r.txt", "rg --pre sh .", "rg --pre=./r.txt .", "git grep -Osh x", "git -c alias.p='!sh r.txt' p",
          "git config alias.p '!sh r.txt'; git p", "git p", "git bisect run sh r.txt", "tar --to-command=./r.txt -xf x", "find . -exec sh r.txt ';'", "awk -f r.txt",
          "unknown --do=sh", "npm --script-shell=./r.txt test", "cargo --config 'alias.t=\"x\"' t", "diff3 --diff-pro=./r.txt a b c"]


def test_a_deny_rule_sees_through_programs_that_are_handed_others(make_server, provider):
    """Even with approve_all, a line that may run a denied command needs approval."""
    rules = [{"tool": "run_shell", "pattern": pattern, "action": "deny"} for pattern in ("touch", "git push")]
    server = make_server(provider, config={"tools": {"rules": rules}, "approval_mode": "approve_all"})
    (server.home.workspace / "r.txt").write_text("touch owned\n")
    asked = {line for i, line in enumerate(HANDED) if asked_calls(server.client, provider, f"c{i}", [shell(line)])}
    assert asked == set(HANDED) and not (server.home.workspace / "owned").exists()
    harmless = ["sort -r r.txt", "git init -q", "git config user.name me", "git status", "git log --oneline", "mkdir sh", "grep sh r.txt"]
    assert asked_calls(server.client, provider, "h", [shell(line, f"h{i}") for i, line in enumerate(harmless)]) == set()


def test_a_program_of_the_workspace_is_not_hidden_by_one_of_the_home(make_server, provider, make_home):
    """The home is empty in the sandbox, so a program that PATH finds there is skipped and the next one runs."""
    home = make_home()
    config = {"tools": {"rules": [{"tool": "run_shell", "pattern": "grep *", "action": "allow"}]}, "approval_mode": "deny_all"}
    own, planted = pathlib.Path(home.environment()["HOME"]) / "bin", home.workspace / "bin"
    for folder in (own, planted):
        folder.mkdir(parents=True)

    def ran(path):
        server = make_server(provider, home, config=config, environment={"PATH": path})
        provider.plan(tools(shell("grep x y")), text("ok"))
        output = server.client.turn("c", "go").one("tool_result")["tool_output"]
        server.stop()
        return "planted" if "PLANTED" in output else "refused" if "refuses" in output else "system"
    system = os.environ["PATH"]
    assert ran(f"{own}:{planted}:{system}") == "system"
    (own / "grep").write_text("#!/bin/sh\necho OWN\n")
    (planted / "grep").mkdir()  # a folder is not a program
    for file in (own / "grep", planted):
        file.chmod(0o755)
    assert ran(f"{own}:{planted}:{system}") == "system"
    (planted / "grep").rmdir()
    (planted / "grep").write_text("#!/bin/sh\necho PLANTED\n")
    (planted / "grep").chmod(0o755)
    assert ran(f"{own}:{planted}:{system}") == "refused"
    assert ran(f"/tmp:{planted}:{system}") == "refused"
    assert ran(f"{system}:{planted}") == "system"


def test_what_a_hostile_repository_could_run_is_said_in_the_sentence(server, provider):
    for command, words in (("git status", "hooks and configuration of the repository"), ("npm test", "files decide what that does"),
                           ("./run.sh", "files decide what that does"), ("python3 a.py", "files decide what that does")):
        stream, asked = asks(server.client, provider, "c", shell(command))
        assert asked["patterns"] and all(words in each["means"] for each in asked["patterns"]), asked
        provider.plan(text("ok"))
        server.client.approve("c", stream.interaction, asked["approval_id"], False).expect(200)
        stream.finish()


def test_rules_deny_before_they_ask_before_they_allow(make_server, provider):
    rules = [{"tool": "run_shell", "pattern": "echo *", "action": "allow"}, {"tool": "run_shell", "pattern": "echo ask", "action": "ask"},
             {"tool": "run_shell", "pattern": "rm", "action": "deny"}, {"tool": "http_get", "action": "deny"}, {"tool": "write_file", "pattern": "src/**", "action": "allow"}]
    server = make_server(provider, config={"tools": {"rules": rules}, "approval_mode": "approve_all"})
    client = server.client
    (server.home.workspace / "kept").write_text("x")
    calls = [shell("echo one", "a"), shell("echo one; rm kept", "b"), shell("env rm kept", "c"), shell("echo ask", "d"), shell("$x kept", "e"), shell("pwd", "f"),
             call("http_get", {"url": "https://example.com/"}, "g"), call("write_file", {"path": "src/a", "content": "1"}, "h")]
    assert asked_calls(client, provider, "c", calls) == {"d", "e"}
    results = {e["id"]: e["tool_output"] for e in client.get("/chats/c/interactions/int_001/events?limit=1000").json["events"] if e["type"] == "TOOL_RESULT"}
    assert "rule 3" in results["b"] and "rule 3" in results["c"] and "rule 4" in results["g"]
    assert (server.home.workspace / "kept").exists() and (server.home.workspace / "src" / "a").read_text() == "1"
    lines = {e["call_id"]: (e["event"], e["reason"], e.get("decided_by")) for e in client.get("/audit").json["entries"] if e["event"] in ("started", "refused")}
    assert lines["b"] == ("refused", "rule", ["rule 3"]) and lines["f"] == ("started", "mode", None)
    assert lines["a"] == ("started", "rule", ["rule 1"])
    report = client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json
    assert report["match"], report

    # A call that a rule asks about cannot be granted, and a denied call is not asked about.
    stream, asked = asks(client, provider, "d", shell("echo ask"))
    assert [d for d in asked["allowed_decisions"] if d != "approve_outside_sandbox"] == ["approve", "edit", "reject"] and "rule 2" in asked["reason"] and "patterns" not in asked.data
    client.approve("d", "int_001", asked["approval_id"], scope="chat").error(400, "invalid_answer")
    client.approve("d", "int_001", asked["approval_id"], arguments={"command": "rm kept"}).error(409, "denied_by_rule")
    provider.plan(text("ok"))
    client.approve("d", "int_001", asked["approval_id"]).expect(200)
    stream.finish()

    listed = {t["name"]: t.get("rules", []) for t in client.get("/tools").expect(200, "tools").json["tools"]}
    assert [(r["rule"], r["action"], r.get("pattern")) for r in listed["run_shell"]] == [
        ("rule 1", "allow", "echo *"), ("rule 2", "ask", "echo ask"), ("rule 3", "deny", "rm")]
    assert listed["http_get"][0]["means"] == "Every call of http_get." and listed["read_file"] == []


def test_a_sub_agent_is_held_back_too(make_server, provider):
    server = make_server(provider, config={"tools": {"rules": [{"tool": "read_file", "pattern": "secret/**", "action": "deny"}]}})
    (server.home.workspace / "secret").mkdir()
    (server.home.workspace / "secret" / "a").write_text("the word")
    provider.plan(tools(call("research", {"question": "what"}, "r")), tools(call("read_file", {"path": "secret/a"}, "x")), text("nothing"), text("ok"))
    stream = server.client.turn("c", "look")
    assert "the word" not in str([e.data for e in stream.events])


@pytest.mark.parametrize("rules, words", [
    ([{"tool": "run_shell", "pattern": "env *", "action": "allow"}], "rule 1"), ([{"tool": "run_shel", "action": "deny"}], "run_shel"),
    ([{"tool": "run_shell", "action": "maybe"}], "tools.rules[0].action"), ([{"tool": "run_shell"}], "tools.rules[0]"), ([{"tool": "*", "action": "ask"}, {"tool": "run_shell", "pattern": "$(x)", "action": "deny"}], "rule 2"),
    ({"tool": "*"}, "tools.rules"), ([{"tool": "run_shell", "action": "deny", "pattrn": "x"}], "tools.rules[0].pattrn")])
def test_a_rule_that_cannot_be_is_named_at_the_start(make_home, rules, words):
    home = make_home()
    file = home.path / "rules.json"
    file.write_text(json.dumps({"tools": {"rules": rules}}))
    for command in ("serve", "doctor"):
        done = subprocess.run([str(BINARY), command, "--config", str(file), "--data-dir", str(home.data), *(["--port", "0"] if command == "serve" else [])],
                              env=home.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode in (1, 2) and words in done.stdout + done.stderr, (command, done)


def test_an_imported_chat_brings_no_patterns(server, provider):
    client = server.client
    allow(client, provider, "c", "echo one", "echo *")
    document = client.get("/chats/c/export?format=json").json
    client.request("DELETE", "/chats/c").expect(200)
    imported = client.post("/import", document).expect(201).json
    name = imported["id"]
    assert client.get(f"/chats/{name}/grants").json == {"grants": []}
    assert asked_calls(client, provider, name, [shell("echo two", "a")]) == {"a"}
