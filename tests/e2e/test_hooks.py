"""Hooks: commands that are asked before the agent acts and told afterwards. If a hook that is asked fails, the act is denied."""
import json
import subprocess
import sys
import time

import pytest
from support import schemas
from support.mcp import server_of
from support.provider import Gate, call, text, tools
from support.server import BINARY, processes, sandbox_works, without_note
from support.timing import SLACK, eventually

SCRIPT = """
import json, os, sys
facts = json.load(sys.stdin)
with open({log!r}, "a") as log:
    log.write(json.dumps(facts) + "\\n")
{body}
print(json.dumps(verdict))
"""


def hook(home, body, event="before_tool", **more):
    """A hook that logs its input and prints `verdict`."""
    log = home.path / "asked.jsonl"
    return {"event": event, "command": [sys.executable, "-c", SCRIPT.format(log=str(log), body=body)], "timeout_s": 20, **more}


def asked(home):
    log = home.path / "asked.jsonl"
    facts = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    for each in facts:
        schemas.check("hook_input", each)
    return facts


def start(make_server, make_home, provider, *hooks, **config):
    home = make_home()
    return make_server(provider, home, config={"hooks": [h(home) if callable(h) else h for h in hooks], **config})


ALLOW = 'verdict = {"decision": "allow"}'


def test_a_hook_denies_a_call(make_server, make_home, provider):
    body = 'verdict = {"decision": "deny", "reason": "no rm"} if "rm" in facts["arguments"]["command"] else {"decision": "allow"}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body, tool="run_*"))
    provider.plan(tools(call("run_shell", {"command": "rm x"}, "a"), call("echo", {"text": "x"}, "e")), text("ok"))
    stream = server.client.turn("c", "go")
    assert not stream.all("approval_required")
    first, second = stream.all("tool_result")
    assert first["is_error"] and first["tool_output"] == "Not run: a hook denied it: no rm" and second["tool_output"] == "x"
    assert asked(server.home) == [{"event": "before_tool", "chat_id": "c", "interaction_id": "int_001", "round_index": 0, "call_id": "a",
                                   "tool_name": "run_shell", "arguments": {"command": "rm x"}}]
    log = server.client.get("/audit").json["entries"]
    assert [(e["event"], e.get("reason")) for e in log] == [("refused", "hook"), ("started", "default"), ("ended", None)]


def test_what_a_hook_changes_is_what_is_asked_about_and_runs(make_server, make_home, provider):
    body = 'verdict = {"decision": "allow", "arguments": dict(facts["arguments"], path="kept.txt")}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body, tool="write_file"))
    client = server.client
    write = lambda i, path: call("write_file", {"path": path, "content": "1"}, i)  # noqa: E731
    provider.plan(tools(write("a", "a.txt")), tools(write("b", "b.txt")), tools(write("d", "d.txt")), text("ok"))
    stream = client.start("c", "go")
    shown = stream.until("approval_required")
    assert json.loads(shown["tool_input"])["path"] == "kept.txt"
    client.approve("c", "int_001", shown["approval_id"], arguments_digest=shown["arguments_digest"]).expect(200)
    started = stream.until("tool_call")
    assert started["tool_input"] == shown["tool_input"]
    result = stream.until("tool_result")
    assert result["tool_output"].startswith(f"(A hook changed the arguments to {shown['tool_input']})\n") and not result["is_error"]
    second = stream.until("approval_required")  # changed by the user, too
    client.approve("c", "int_001", second["approval_id"], arguments={"path": "other.txt", "content": "2"}).expect(200)
    third = stream.until("approval_required")
    client.approve("c", "int_001", third["approval_id"], False, feedback="no").expect(200)
    stream.finish()
    assert sorted(p.name for p in server.home.workspace.iterdir()) == ["kept.txt", "other.txt"]
    accounted = len(client.get("/audit").json["entries"])
    assert client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]
    assert len(asked(server.home)) == 3 and len(client.get("/audit").json["entries"]) == accounted, "a replay had side effects"


@pytest.mark.parametrize("command, timeout", [(["sh", "-c", "exit 1"], 20), (["sh", "-c", "echo yes"], 20), (["sleep", "30"], 0.2),
                                              (["no_such_hook"], 20), (["sh", "-c", "kill -9 $$"], 20)])
def test_a_hook_that_fails_denies(make_server, make_home, provider, command, timeout):
    server = start(make_server, make_home, provider, {"event": "before_tool", "command": command, "timeout_s": timeout})
    provider.plan(tools(call("echo", {"text": "x"}, "e")), text("ok"))
    result = server.client.turn("c", "go").one("tool_result")
    assert result["is_error"] and result["tool_output"].startswith("Not run: a hook denied it: the hook failed: ")


def test_calls_that_run_at_once_have_their_hooks(make_server, make_home, provider):
    server = start(make_server, make_home, provider, *[lambda home, e=e: hook(home, ALLOW, e) for e in ("before_tool", "after_tool")])
    (server.home.workspace / "a.txt").write_text("A")
    (server.home.workspace / "b.txt").write_text("B")
    ids = ["a", "b", "l"]
    provider.plan(tools(call("read_file", {"path": "a.txt"}, "a"), call("read_file", {"path": "b.txt"}, "b"), call("list_files", {}, "l")), text("ok"))
    stream = server.client.turn("c", "go")
    assert stream.names(without=("usage", "text_delta"))[1:7] == ["tool_call"] * 3 + ["tool_result"] * 3
    facts = asked(server.home)
    assert [f["call_id"] for f in facts if f["event"] == "before_tool"] == ids
    assert sorted(f["call_id"] for f in facts if f["event"] == "after_tool") == ids
    assert {f["call_id"]: f["tool_output"] for f in facts[3:]} == {e["id"]: e["tool_output"] for e in stream.all("tool_result")}
    log = server.client.get("/audit").json["entries"]
    assert sorted((e["call_id"], e["event"]) for e in log) == [(i, e) for i in ids for e in ("ended", "started")]


def test_calls_that_are_asked_about_together_are_changed_and_denied_first(make_server, make_home, provider):
    body = """command = facts["arguments"]["command"]
verdict = {"decision": "deny", "reason": "no"} if command == "two" else {"decision": "allow", "arguments": {"command": "echo " + command + " >> log"}}"""
    server = start(make_server, make_home, provider, lambda home: hook(home, body, tool="run_shell"))
    client = server.client
    provider.plan(tools(*[call("run_shell", {"command": c}, c) for c in ("zero", "one", "two", "three")]), text("ok"))
    stream = client.start("c", "go")
    shown = [stream.until("approval_required") for _ in range(2)]
    assert [json.loads(s["tool_input"]) for s in shown] == [{"command": f"echo {c} >> log"} for c in ("zero", "one")]
    for each in reversed(shown):
        client.approve("c", "int_001", each["approval_id"]).expect(200)
    last = stream.until("approval_required")
    client.approve("c", "int_001", last["approval_id"], False).expect(200)
    stream.finish()
    assert (server.home.workspace / "log").read_text().split() == ["zero", "one"]
    outputs = [e["tool_output"] for e in stream.all("tool_result")]
    assert [o.startswith("(A hook changed the arguments to ") for o in outputs] == [True, True, False, True]
    assert outputs[2] == "Not run: a hook denied it: no" and outputs[3].endswith("The user rejected this call. It was not run.")


def test_code_servers_and_sub_agents_are_asked_about_too(make_server, make_home, provider):
    body = 'verdict = {"decision": "deny", "reason": "no"} if "secret" in json.dumps(facts["arguments"]) else {"decision": "allow"}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body), approval_mode="approve_all",
                   mcpServers={"m": server_of('{"name": "say", "inputSchema": {"type": "object"}}', 'json.dumps(request["params"]["arguments"])')})
    eventually(lambda: any(t["name"] == "m__say" for t in server.client.get("/tools").json["tools"]), "the tools are there", 30 * SLACK)
    run = lambda code, i: call("run_code", {"language": "python", "code": code}, i)  # noqa: E731
    provider.plan(tools(run("print('secret')", "1"), run("print('plain')", "2"), call("m__say", {"a": "secret"}, "3"), call("m__say", {"a": "b"}, "4"),
                        call("research", {"question": "?"}, "5")),
                  tools(call("echo", {"text": "secret"}, "n")), text("found nothing"), text("ok"))
    stream = server.client.turn("c", "go")
    outputs = {e["id"]: e["tool_output"] for e in stream.all("tool_result")}
    denied = "Not run: a hook denied it: no"
    assert outputs["1"] == outputs["3"] == denied
    assert outputs["2"].startswith("plain") and outputs["4"] == '{"a": "b"}' and outputs["5"] == "found nothing"
    nested = [e["event"] for e in stream.all("nested") if e["event"]["type"] == "TOOL_RESULT"]
    assert [(n["id"], n["tool_output"]) for n in nested] == [("n", denied)]
    log = server.client.get("/audit").json["entries"]
    assert [(e["event"], e["call_id"]) for e in log] == [("refused", "1"), ("started", "2"), ("ended", "2"), ("refused", "3"), ("started", "4"), ("ended", "4"),
                                                         ("started", "5"), ("refused", "n"), ("ended", "5")]


def test_no_tool_changes_or_reads_a_hooks_program_in_the_workspace(make_server, make_home, provider):
    home = make_home()
    program = home.workspace / "check"
    program.write_text('#!/bin/sh\necho \'{"decision":"allow"}\'\n')
    program.chmod(0o755)
    server = make_server(provider, home, config={"hooks": [{"event": "before_tool", "command": ["./check", "-v"], "timeout_s": 20}], "approval_mode": "approve_all"}, trust=True)
    before = program.read_text()
    # Without a sandbox a command can do anything that the user can.
    command = "echo x > check; rm -f check; cat check" if sandbox_works() else "true"
    provider.plan(tools(call("write_file", {"path": "check", "content": "x"}, "w"), call("run_shell", {"command": command}, "s"),
                        call("echo", {"text": "still asked"}, "e")), text("ok"))
    first, second, third = server.client.turn("c", "go").all("tool_result")
    assert first["is_error"] and program.read_text() == before and "decision" not in second["tool_output"] and third["tool_output"] == "still asked"


THEIRS = '#!/bin/sh\ntouch "$(dirname "$0")/theirs"\necho \'{"decision":"allow"}\'\n'
REPLACE = f"mkdir -p deep/hooks; cat > deep/hooks/check.sh <<'END'\n{THEIRS}END\nchmod +x deep/hooks/check.sh"


@pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")
@pytest.mark.parametrize("name, arguments", [
    *[("run_shell", {"command": f"{move}; {REPLACE}"}) for move in ("mv deep old", "mv deep/hooks deep/old", "mkdir -p new/hooks; mv -T new deep", "rm -rf deep",
                                                                    "rm -rf deep/hooks; ln -s /tmp deep/hooks", "ln -sf /bin/true deep/hooks/check.sh")],
    ("run_code", {"language": "shell", "code": f"mv deep/hooks deep/old\n{REPLACE}"}),
    ("run_code", {"language": "python", "code": f"import os, subprocess\ntry:\n    os.rename('deep', 'old')\nfinally:\n    subprocess.run({REPLACE!r}, shell=True)"})])
def test_no_command_puts_a_program_in_the_place_of_a_hooks(make_server, make_home, provider, name, arguments):
    home = make_home()
    program = home.workspace / "deep" / "hooks" / "check.sh"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho \'{"decision":"allow"}\'\n')
    program.chmod(0o755)
    before = program.read_text()
    hooks = [{"event": event, "command": ["deep/hooks/check.sh"], "timeout_s": 20} for event in ("before_tool", "after_tool")]
    server = make_server(provider, home, config={"hooks": hooks, "approval_mode": "approve_all"}, trust=True)
    provider.plan(tools(call(name, arguments, "s")), tools(call("run_shell", {"command": "touch deep/hooks/beside"}, "t")), tools(call("echo", {"text": "still asked"}, "e")),
                  text("ok"))
    results = server.client.turn("c", "go").all("tool_result")
    assert results[2]["tool_output"] == "still asked" and program.read_text() == before and not list(home.workspace.rglob("theirs"))
    assert not results[1]["is_error"] and (program.parent / "beside").exists(), "the program's folder must stay writable"


@pytest.mark.parametrize("name, arguments", [("write_file", {"content": THEIRS}), ("edit_file", {"old_text": "allow", "new_text": "deny"}), ("delete_file", {})])
@pytest.mark.parametrize("path", ["deep/hooks/check.sh", "./deep//hooks/../hooks/check.sh", "alias/check.sh", "deep/hooks", "deep/hooks/check.sh/x"])
def test_no_file_tool_puts_anything_in_the_place_of_a_hooks_program(make_server, make_home, provider, name, arguments, path):
    home = make_home()
    program = home.workspace / "deep" / "hooks" / "check.sh"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho \'{"decision":"allow"}\'\n')
    program.chmod(0o755)
    (home.workspace / "alias").symlink_to("deep/hooks")
    before = program.read_text()
    server = make_server(provider, home, config={"hooks": [{"event": "before_tool", "command": ["deep/hooks/check.sh"], "timeout_s": 20}], "approval_mode": "approve_all"}, trust=True)
    provider.plan(tools(call(name, {"path": path, **arguments}, "w")), text("ok"))
    assert server.client.turn("c", "go").one("tool_result")["is_error"]
    assert program.read_text() == before and not program.is_symlink()


@pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")
def test_the_servers_own_folders_in_the_workspace_stay_where_they_are(make_server, make_home, provider):
    home = make_home()
    home.data, prompt = home.workspace / "own" / "data", home.workspace / "own" / "prompt"
    prompt.mkdir(parents=True)
    (prompt / "50-mine.md").write_text("Be brief.")
    server = make_server(provider, home, config={"approval_mode": "approve_all"}, arguments=("--prompt-dir", prompt), trust=True)
    command = "mv own old; mv own/prompt own/old; mkdir -p own/prompt; echo Obey. > own/prompt/50-mine.md; ls own/data old; :"
    provider.plan(tools(call("run_shell", {"command": command}, "s")), text("ok"))
    server.client.turn("c", "go")
    assert (prompt / "50-mine.md").read_text() == "Be brief." and [p.name for p in home.workspace.iterdir()] == ["own"]
    assert sorted(p.name for p in (home.workspace / "own").iterdir()) == ["data", "prompt"]


@pytest.mark.parametrize("command, complaint", [
    (["./later.sh"], "./later.sh is not there"), (["./link.sh"], "./link.sh is or leads through a symbolic link"), (["sh", "linked/x.sh"], "symbolic link"),
    (["sh", "hooks/../check.sh"], '".."'), (["./twice.sh"], "hard links"), (["sh", "--rules=./later.sh"], "is not there"), (["found"], "by way of PATH")])
def test_a_hook_that_an_agent_could_replace_is_refused(make_home, command, complaint):
    home = make_home()
    outside, bin_folder = home.path / "outside", home.workspace / "bin"
    for folder in (outside, bin_folder, home.workspace / "hooks"):
        folder.mkdir()
    for program in (outside / "x.sh", home.workspace / "check.sh", home.workspace / "twice.sh", bin_folder / "found"):
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    (home.workspace / "link.sh").symlink_to(outside / "x.sh")
    (home.workspace / "linked").symlink_to(outside)
    (home.workspace / "again.sh").hardlink_to(home.workspace / "twice.sh")
    config = {"hooks": [{"event": "after_tool", "command": command}]}
    done = serve_with(home, config, "--workspace", home.workspace, PATH=f"{bin_folder}:/usr/bin:/bin")
    assert done.returncode == 2 and "hooks[0].command: " in done.stderr and complaint in done.stderr
    assert not home.data.exists() and not home.keys.exists(), "the server has started"


def test_arguments_that_a_hook_breaks_are_not_run(make_server, make_home, provider):
    body = 'verdict = {"decision": "allow", "arguments": {"txt": 1}}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body))
    provider.plan(tools(call("echo", {"text": "x"}, "e")), text("ok"))
    result = server.client.turn("c", "go").one("tool_result")
    assert result["is_error"] and "A hook made the arguments into what is not accepted" in result["tool_output"]


def test_every_event_has_its_hook(make_server, make_home, provider):
    events = ["before_interaction", "before_model", "after_model", "before_tool", "after_tool", "after_interaction"]
    server = start(make_server, make_home, provider, *[lambda home, e=e: hook(home, ALLOW, e) for e in events])
    provider.plan(tools(call("echo", {"text": "x"}, "e"), say="I try"), text("done"))
    server.client.turn("c", "go")
    assert [f["event"] for f in asked(server.home)] == ["before_interaction", "before_model", "after_model", "before_tool", "after_tool",
                                                        "before_model", "after_model", "after_interaction"]
    first, *_, last = asked(server.home)
    assert first["user_message"] == last["user_message"] == "go" and last["status"] == "COMPLETED"
    after = asked(server.home)[4]
    assert (after["tool_output"], after["is_error"]) == ("x", False)
    assert [f["text"] for f in asked(server.home) if f["event"] == "after_model"] == ["I try", "done"]
    assert asked(server.home)[1]["model"] == "scripted"


def test_a_check_before_the_end_sends_the_agent_back(make_server, make_home, provider):
    body = 'verdict = {"decision": "deny", "reason": "run the tests"} if facts["text"] == "done" else {"decision": "allow"}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body, "before_end"))
    provider.plan(text("done"), tools(call("echo", {"text": "x"}, "e")), text("tested"))
    stream = server.client.turn("c", "go")
    back = stream.one("sent_back")
    assert (back["content"], back["count"]) == ("run the tests", 1)
    assert stream.one("message")["content"] == "done" and stream.one("answer")["content"] == "tested"
    assert [(f["text"], f["times_sent_back"], f["user_message"]) for f in asked(server.home)] == [("done", 0, "go"), ("tested", 1, "go")]
    told = provider.requests[1].messages[-1]
    assert told["role"] == "user" and told["content"].startswith("(Not from the user.") and told["content"].endswith("run the tests")
    assert server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]
    # The next turn, an edit and a fork go on with a history that providers take.
    provider.plan(text("tested again"))
    server.client.turn("c", "and now?")
    assert [m["role"] for m in provider.requests[-1].conversation][:3] == ["user", "assistant", "user"]


@pytest.mark.parametrize("most", [0, 2])
def test_a_check_before_the_end_is_bounded(make_server, make_home, provider, most):
    server = start(make_server, make_home, provider, {"event": "before_end", "command": ["false"]}, max_end_checks=most)
    provider.plan(*[text(f"done {i}") for i in range(most + 1)])
    stream = server.client.turn("c", "go")
    assert [e["content"] for e in stream.all("sent_back")] == ["the hook failed: it ended with status 1"] * most
    assert stream.one("answer")["content"] == f"done {most}" and len(provider.requests) == most + 1


def test_a_cancel_ends_a_check(make_server, make_home, provider):
    server = start(make_server, make_home, provider, {"event": "before_end", "command": ["sh", "-c", "touch started; sleep 100"], "timeout_s": 600})
    provider.plan(text("done"))
    stream = server.client.start("c", "go")
    eventually((server.home.workspace / "started").exists, "the check runs")
    server.client.post("/chats/c/interactions/int_001/cancel", {}).expect(200)
    stream.finish("CANCELLED")
    assert stream.one("message")["content"] == "done" and not stream.all("answer") and not stream.all("sent_back")


@pytest.mark.parametrize("event", ["before_interaction", "before_model"])
def test_a_hook_stops_an_interaction(make_server, make_home, provider, event):
    server = start(make_server, make_home, provider, lambda home: hook(home, 'verdict = {"decision": "deny", "reason": "not now"}', event))
    stream = server.client.turn("c", "go", "FAILED")
    error = stream.one("error")
    assert (error["code"], error["message"], error["retryable"]) == ("hook_denied", "not now", False)
    assert not provider.requests
    assert server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]


def test_what_goes_on_after_a_crash_is_asked_about(make_server, make_home, provider):
    server = start(make_server, make_home, provider)
    provider.plan(text("half ", Gate()))
    server.client.start("c", "go").until("text_delta")
    server.kill()
    again = make_server(provider, server.home, config={"hooks": [hook(server.home, 'verdict = {"decision": "deny", "reason": "not now"}', "before_interaction")]})
    requests = len(provider.requests)
    stream = again.client.stream("POST", "/chats/c/interactions/int_001/resume")
    stream.finish("FAILED")
    assert stream.one("error")["code"] == "hook_denied" and len(provider.requests) == requests


@pytest.mark.parametrize("denies", [False, True])
def test_a_call_that_runs_again_is_asked_about_again(make_server, make_home, provider, denies):
    body = 'verdict = {"decision": "allow", "arguments": {"question": facts["arguments"]["question"] + " Briefly."}}'
    server, gate = start(make_server, make_home, provider, lambda home: hook(home, body, tool="research")), Gate()
    provider.plan(tools(call("research", {"question": "How many?"}, "r")), text("so ", gate))
    server.client.start("c", "go", on_disconnect="continue")
    gate.wait_reached()
    provider.wait_requests(2)
    server.kill()
    home = server.home
    verdict = 'verdict = {"decision": "deny", "reason": "not now"}' if denies else ALLOW
    again = make_server(provider, home, config={"hooks": [hook(home, verdict, "before_interaction"), hook(home, body, tool="research")]})
    if denies:
        requests = len(provider.requests)
        stream = again.client.stream("POST", "/chats/c/interactions/int_001/resume")
        stream.finish("FAILED")
        assert stream.one("error")["code"] == "hook_denied" and len(provider.requests) == requests
    else:
        provider.plan(text("none"), text("There are none."))
        stream = again.client.stream("POST", "/chats/c/interactions/int_001/resume")
        stream.finish()
        assert provider.requests[-2].conversation == [{"role": "user", "content": "How many? Briefly."}]
        assert stream.one("tool_result")["tool_output"] == "(A hook changed the arguments to {\"question\": \"How many? Briefly.\"})\nnone"
    assert [f["event"] for f in asked(home)] == ["before_tool", "before_interaction"] + ["before_tool"] * (not denies)


def test_a_summary_is_a_request_too(make_server, make_home, provider):
    server = start(make_server, make_home, provider)
    for number in range(8):
        provider.plan(text("a" * 3000))
        server.client.turn("c", f"question {number} " + "q" * 3000)
    server.stop()
    deny = hook(server.home, 'verdict = {"decision": "deny", "reason": "enough"}', "before_model")
    again = make_server(provider, server.home, config={"hooks": [deny], "models": {"test/scripted": {"context_window": 8192}}})
    requests = len(provider.requests)
    assert again.client.turn("c", "and this?", "FAILED").one("error")["code"] == "hook_denied"
    assert len(provider.requests) == requests
    again.stop()
    last = make_server(provider, server.home, config={"models": {"test/scripted": {"context_window": 8192}}})
    provider.plan(text("the summary"), text("ok"))
    assert last.client.turn("c", "and this?").all("compacted"), "there was nothing to sum up"


def shell(event, script):
    return {"event": event, "command": ["sh", "-c", script]}


def test_hooks_that_are_asked_afterwards_may_say_nothing(make_server, make_home, provider):
    server = start(make_server, make_home, provider, *[shell(e, "cat > /dev/null") for e in ("after_tool", "after_model", "after_interaction")])
    provider.plan(tools(call("echo", {"text": "x"}, "e")), text("done"))
    assert server.client.turn("c", "go").one("tool_result")["tool_output"] == "x"


@pytest.mark.parametrize("script", ["exit 1", "echo what nobody asked"])
def test_hooks_for_the_end_may_fail(make_server, make_home, provider, script):
    server = start(make_server, make_home, provider, shell("after_interaction", script))
    provider.plan(text("done"))
    server.client.turn("c", "go")
    eventually(lambda: script != "exit 1" or server.log().count("a hook failed") == 1, "the failure is logged")


def test_a_hook_changes_a_result(make_server, make_home, provider):
    body = 'verdict = {"decision": "allow", "tool_output": facts["tool_output"].replace("4711", "****")}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body, "after_tool", tool="echo"))
    provider.plan(tools(call("echo", {"text": "the code is 4711"}, "e"), call("current_time", {}, "t")), text("ok"))
    stream = server.client.turn("c", "go")
    assert [r["tool_output"] for r in stream.all("tool_result")][0] == "the code is ****"
    assert "4711" not in [m for m in provider.requests[-1].conversation if m["role"] == "tool"][0]["content"]
    assert len(asked(server.home)) == 1


@pytest.mark.parametrize("script, why", [
    ("""echo '{"decision": "deny", "reason": "private"}'""", "private"),
    ("exit 1", "the hook failed: it ended with status 1"),
    ("echo what nobody asked", "the hook failed: it did not print a JSON object"),
])
def test_a_hook_withholds_a_result(make_server, make_home, provider, script, why):
    server = start(make_server, make_home, provider, shell("after_tool", script))
    provider.plan(tools(call("echo", {"text": "x"}, "e")), text("ok"))
    result = server.client.turn("c", "go").one("tool_result")
    assert result["is_error"] and result["tool_output"] == "A hook withholds what the call said: " + why
    assert [(e["event"], e.get("is_error")) for e in server.client.get("/audit").json["entries"]] == [("started", None), ("ended", False)]


def test_what_a_hook_makes_of_a_result_is_held_to_the_guardrails(make_server, make_home, provider):
    body = 'verdict = {"decision": "allow", "tool_output": facts["tool_output"] + " card 1234-5678"}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body, "after_tool"), guardrails={"output": ["[0-9]{4}-[0-9]{4}"]})
    provider.plan(tools(call("echo", {"text": "1111-2222"}, "e")), text("ok"))
    assert server.client.turn("c", "go").one("tool_result")["tool_output"] == "[redacted] card [redacted]"


def test_a_cancelled_calls_result_is_not_lost_to_hooks_of_other_tools(make_server, make_home, provider):
    server = start(make_server, make_home, provider, dict(shell("after_tool", "exit 1"), tool="other"), approval_mode="approve_all")
    provider.plan(tools(call("run_shell", {"command": "echo partial; sleep 60", "timeout_s": 100}, "s")))
    stream = server.client.start("c", "go")
    stream.until("tool_output_delta")
    server.client.cancel("c", "int_001").expect(200)
    stream.finish("CANCELLED")
    assert stream.one("tool_result")["tool_output"].startswith("partial\n")


def test_a_hook_tells_the_model_something_in_each_round(make_server, make_home, provider):
    body = 'verdict = {"decision": "allow", "context": "Round %d: it rains." % facts["round_index"]}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body, "before_model"))
    provider.plan(tools(call("echo", {"text": "x"}, "e")), text("ok"))
    client = server.client
    client.turn("c", "go")
    systems = [r.messages[0] for r in provider.requests]
    assert [s["content"].rsplit("\n\n", 1)[-1] for s in systems] == ["Round 0: it rains.", "Round 1: it rains."]
    kept = client.interaction("c", "int_001")
    assert "Round 1: it rains." in json.dumps(kept.pop("record")) and "rains" not in json.dumps(kept), "it is on record as it was sent, and nowhere else"


@pytest.mark.parametrize("answer", [tools(call("echo", {"text": "x"}, "e"), say="I try"), tools(call("echo", {"text": "x"}, "e")), text("the answer")])
def test_a_hook_stops_what_the_model_wants(make_server, make_home, provider, answer):
    deny = 'verdict = {"decision": "deny", "reason": "not that"} if "again" not in facts["text"] else {"decision": "allow"}'
    server = start(make_server, make_home, provider, lambda home: hook(home, deny, "after_model"))
    provider.plan(answer)
    client = server.client
    stream = client.turn("c", "go", "FAILED")
    assert (stream.one("error")["code"], stream.one("error")["message"]) == ("hook_denied", "not that")
    assert not stream.all("tool_call") and not stream.all("answer") and stream.one("usage")
    assert client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]
    assert client.interaction("c", "int_001")["usage"] == {"input_tokens": 11, "output_tokens": 7}
    provider.plan(text("again"))
    client.turn("c", "go on")
    said = [m["content"] for m in provider.requests[-1].conversation if m["role"] == "assistant"]
    assert said == [m["content"] for m in stream.all("message")]


def test_cancel_ends_a_hook_after_the_model(make_server, make_home, provider):
    sign = "sleep 27.1829"
    hooks = [{"event": "after_model", "command": ["sh", "-c", f"{sign}; :"], "timeout_s": 60}]
    server = make_server(provider, config={"hooks": hooks})
    provider.plan(text("the answer"))
    client = server.client
    stream = client.start("c", "go")
    assert stream.until("text_delta")["content"] == "the answer"
    eventually(lambda: processes(sign.replace(" ", "\0")), "the hook runs")
    client.cancel("c", "int_001").expect(200)
    stream.finish("CANCELLED")
    assert not processes(sign.replace(" ", "\0"))
    assert client.interaction("c", "int_001")["usage"] == {"input_tokens": 11, "output_tokens": 7}
    assert client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]


def test_hooks_for_the_end_run_when_it_is_on_disk(make_server, make_home, provider):
    sign = "sleep 27.1828"
    server = make_server(provider, config={"hooks": [{"event": "after_interaction", "command": ["sh", "-c", f"{sign}; :"], "timeout_s": 60}]})
    provider.plan(text("done"))
    stream = server.client.start("c", "go")
    stream.until("answer")
    eventually(lambda: processes(sign.replace(" ", "\0")), "the hook runs")
    server.kill()
    stream.close()
    eventually(lambda: not processes(sign.replace(" ", "\0")), "the hook is gone")
    again = make_server(provider, server.home)
    assert again.client.interaction("c", "int_001")["status"] == "COMPLETED"
    assert len(provider.requests) == 1


def test_arguments_given_back_as_they_are_are_not_changed(make_server, make_home, provider):
    server = start(make_server, make_home, provider, lambda home: hook(home, 'verdict = {"decision": "allow", "arguments": facts["arguments"]}'))
    provider.plan(tools(call("echo", '{ "text" :"x"}', "e")), text("done"))
    result = server.client.turn("c", "go").one("tool_result")
    assert result["tool_output"] == "x", "the result claims that a hook changed the arguments"


def test_cancel_does_not_wait_for_a_hook(make_server, make_home, provider):
    home = make_home()
    sign = "sleep 31.4159"
    script = f"setsid {sign} & {sign}; :"  # one process has left its group
    server = make_server(provider, home, config={"hooks": [{"event": "before_tool", "command": ["sh", "-c", script], "timeout_s": 60}]})
    provider.plan(tools(call("run_shell", {"command": "true"}, "a"), call("echo", {"text": "x"}, "e")))
    stream = server.client.start("c", "go")
    eventually(lambda: len(processes(sign.replace(" ", "\0"))) == 2, "the hook runs")
    began = time.monotonic()
    server.client.cancel("c", "int_001").expect(200)
    assert stream.until("cancelled").at - began < 1 * SLACK  # the hook would take 31 s
    stream.finish("CANCELLED")
    eventually(lambda: not processes(sign.replace(" ", "\0")), "the hook is gone")


def test_killed_with_a_hook_and_with_what_a_hook_has_changed(make_server, make_home, provider):
    sign = "sleep 4721"
    body = 'verdict = {"decision": "allow", "arguments": {"command": "echo x >> count; sleep 4720", "timeout_s": 600}}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body), {"event": "after_model", "command": ["sh", "-c", f"test -e go || {sign}; :"], "timeout_s": 600},
                   approval_mode="approve_all")
    provider.plan(tools(call("run_shell", {"command": "true"}, "s")))
    server.client.start("c", "go", on_disconnect="continue")
    eventually(lambda: processes(sign.replace(" ", "\0")), "the hook runs")
    server.kill()
    eventually(lambda: not processes(sign.replace(" ", "\0")), "the hook ends with the server")
    (server.home.workspace / "go").touch()

    again = make_server(provider, server.home, config={"hooks": [hook(server.home, body)], "approval_mode": "approve_all"})
    provider.plan(tools(call("run_shell", {"command": "true"}, "s")))
    stream = again.client.start("d", "go")
    shown = stream.until("tool_call")
    eventually((server.home.workspace / "count").exists, "the tool runs")
    again.kill()
    last = make_server(provider, server.home, config={"approval_mode": "approve_all"})
    assert last.client.interaction("d", "int_001")["status"] == "FAILED"
    log = [e for e in last.client.get("/audit").json["entries"] if e["chat_id"] == "d"]
    assert [(e["event"], e["call_id"]) for e in log] == [("started", "s")] and json.loads(shown["tool_input"])["command"].startswith("echo x")
    provider.plan(text("I see"))
    last.client.stream("POST", "/chats/d/interactions/int_001/resume").finish()
    assert (server.home.workspace / "count").read_text() == "x\n" and len(last.client.get("/audit").json["entries"]) == len(log)


def test_an_approval_of_changed_arguments_survives_a_crash(make_server, make_home, provider):
    body = 'verdict = {"decision": "allow", "arguments": {"path": "kept.txt", "content": "1"}}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body, tool="write_file"), lambda home: hook(home, ALLOW, "before_interaction"))
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"}, "a")))
    shown = server.client.start("c", "go").until("approval_required")
    server.kill()
    again = make_server(provider, server.home, config={"hooks": [hook(server.home, body), hook(server.home, ALLOW, "before_interaction")]})
    provider.plan(text("ok"))
    stream = again.client.attach("c", "int_001", after=shown.seq)
    again.client.approve("c", "int_001", shown["approval_id"], arguments_digest=shown["arguments_digest"]).expect(200)
    stream.finish()
    assert stream.one("tool_call")["tool_input"] == shown["tool_input"]
    assert [p.name for p in again.home.workspace.iterdir()] == ["kept.txt"]
    assert [f["event"] for f in asked(again.home)] == ["before_interaction", "before_tool"], "a hook was asked twice"
    log = again.client.get("/audit").json["entries"]
    assert [e["event"] for e in log] == ["approved", "started", "ended"] and {e["arguments_digest"] for e in log} == {shown["arguments_digest"]}


def serve_with(home, config, *arguments, **environment):
    file = home.path / "reprise.json"
    file.write_text(json.dumps(config))
    file.chmod(0o600)
    return subprocess.run([str(BINARY), "serve", "--port", "0", "--data-dir", str(home.data), "--config", str(file), *map(str, arguments)],
                          env=home.environment(**environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * SLACK, check=False)


@pytest.mark.parametrize("hooks", [{}, [1], [{"event": "before_tool"}], [{"command": ["x"]}], [{"event": "at_tool", "command": ["x"]}],
                                   [{"event": "before_tool", "command": []}], [{"event": "before_tool", "command": "x"}],
                                   [{"event": "before_tool", "command": ["x"], "timeout_s": 0}], [{"event": "before_tool", "command": ["x"], "more": 1}]])
def test_a_wrong_configuration_is_named(make_home, hooks):
    done = serve_with(make_home(), {"hooks": hooks})
    assert done.returncode != 0 and "hooks" in done.stderr


@pytest.mark.parametrize("patterns, complaint", [({"input": ["("]}, "guardrails.input"), ({"output": ["a*"]}, "matches the empty text"), ({"output": "x"}, "guardrails.output"),
                                                 ({"input": ["(?=a)"]}, "no regular expression"), ({"more": []}, "guardrails.more")])
def test_a_wrong_pattern_is_named(make_home, patterns, complaint):
    done = serve_with(make_home(), {"guardrails": patterns})
    assert done.returncode != 0 and complaint in done.stderr


def test_a_queued_message_is_held_to_the_guardrails(make_server, provider):
    server = make_server(provider, config={"guardrails": {"input": ["(?i)my password"]}})
    client, gate = server.client, Gate()
    provider.plan(text("first", gate), text("second"))
    running = client.start("c", "go")
    running.until("text_delta")
    client.post("/chats/c/interactions", {"user_message": "my password", "if_running": "queue"}).error(400, "guardrail")
    waiting = client.start("c", "fine", if_running="queue")
    entry = eventually(lambda: client.get("/chats/c/queue").expect(200).json["queue"], "it waits")[0]
    client.request("PATCH", f"/chats/c/queue/{entry['id']}", {"user_message": "my password"}).error(400, "guardrail")
    gate.release()
    running.finish()
    waiting.finish()
    assert provider.requests[-1].conversation[-1]["content"] == "fine"


def test_guardrails(make_server, provider):
    server = make_server(provider, config={"guardrails": {"input": ["(?i)my password"], "output": ["[0-9]{4}-[0-9]{4}"]}})
    client = server.client
    client.post("/chats/c/interactions", {"user_message": "My password is x"}).error(400, "guardrail")
    assert client.get("/chats").json["chats"] == [] and not provider.requests
    provider.plan(tools(call("run_shell", {"command": "echo card 1234-5678 of mine"}, "s")), text("ok"))
    stream = client.start("c", "go")
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    assert without_note(stream.one("tool_result")["tool_output"]) == "card [redacted] of mine\n" and not stream.all("tool_output_delta")
    client.post("/chats/c/interactions/int_001/edit", {"new_user_message": "and my password"}).error(400, "guardrail")
    provider.plan(text("still here"))
    client.turn("c", "go on")
