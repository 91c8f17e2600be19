"""Hooks: commands that are asked before, and told after, what the agent does. Those before fail closed."""
import json
import sys
import time

import pytest
from support.provider import call, text, tools
from support.server import processes
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
    """A hook that keeps what it was asked and says `verdict`."""
    log = home.path / "asked.jsonl"
    return {"event": event, "command": [sys.executable, "-c", SCRIPT.format(log=str(log), body=body)], "timeout_s": 20, **more}


def asked(home):
    log = home.path / "asked.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


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
    second = stream.until("approval_required")  # changed by the user too
    client.approve("c", "int_001", second["approval_id"], arguments={"path": "other.txt", "content": "2"}).expect(200)
    third = stream.until("approval_required")
    client.approve("c", "int_001", third["approval_id"], False, feedback="no").expect(200)
    stream.finish()
    assert sorted(p.name for p in server.home.workspace.iterdir()) == ["kept.txt", "other.txt"]
    assert client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]


@pytest.mark.parametrize("command, timeout", [(["sh", "-c", "exit 1"], 20), (["sh", "-c", "echo yes"], 20), (["sleep", "30"], 0.2),
                                              (["./no_such_hook"], 20), (["sh", "-c", "kill -9 $$"], 20)])
def test_a_hook_that_fails_denies(make_server, make_home, provider, command, timeout):
    server = start(make_server, make_home, provider, {"event": "before_tool", "command": command, "timeout_s": timeout})
    provider.plan(tools(call("echo", {"text": "x"}, "e")), text("ok"))
    result = server.client.turn("c", "go").one("tool_result")
    assert result["is_error"] and result["tool_output"].startswith("Not run: a hook denied it: the hook failed: ")


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


@pytest.mark.parametrize("event", ["before_interaction", "before_model"])
def test_a_hook_stops_an_interaction(make_server, make_home, provider, event):
    server = start(make_server, make_home, provider, lambda home: hook(home, 'verdict = {"decision": "deny", "reason": "not now"}', event))
    stream = server.client.turn("c", "go", "FAILED")
    error = stream.one("error")
    assert (error["code"], error["message"], error["retryable"]) == ("hook_denied", "not now", False)
    assert not provider.requests
    assert server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]


def test_after_hooks_that_fail_change_nothing(make_server, make_home, provider):
    failing = [{"event": e, "command": ["sh", "-c", "exit 1"]} for e in ("after_tool", "after_model", "after_interaction")]
    server = start(make_server, make_home, provider, *failing)
    provider.plan(tools(call("echo", {"text": "x"}, "e")), text("done"))
    assert server.client.turn("c", "go").one("tool_result")["tool_output"] == "x"
    assert server.log().count("a hook failed") == 4


def test_cancel_does_not_wait_for_a_hook(make_server, make_home, provider):
    home = make_home()
    sign = "sleep 31.4159"
    server = make_server(provider, home, config={"hooks": [{"event": "before_tool", "command": ["sh", "-c", f"{sign}; :"], "timeout_s": 60}]})
    provider.plan(tools(call("run_shell", {"command": "true"}, "a"), call("echo", {"text": "x"}, "e")))
    stream = server.client.start("c", "go")
    eventually(lambda: processes(sign.replace(" ", "\0")), "the hook runs")
    began = time.monotonic()
    server.client.cancel("c", "int_001").expect(200)
    assert stream.until("cancelled").at - began < 0.05 * SLACK
    stream.finish("CANCELLED")
    eventually(lambda: not processes(sign.replace(" ", "\0")), "the hook is gone")


def test_an_approval_of_changed_arguments_survives_a_crash(make_server, make_home, provider):
    body = 'verdict = {"decision": "allow", "arguments": {"path": "kept.txt", "content": "1"}}'
    server = start(make_server, make_home, provider, lambda home: hook(home, body, tool="write_file"))
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"}, "a")))
    shown = server.client.start("c", "go").until("approval_required")
    server.kill()
    again = make_server(provider, server.home, config={"hooks": []})
    provider.plan(text("ok"))
    stream = again.client.attach("c", "int_001", after=shown.seq)
    again.client.approve("c", "int_001", shown["approval_id"], arguments_digest=shown["arguments_digest"]).expect(200)
    stream.finish()
    assert stream.one("tool_call")["tool_input"] == shown["tool_input"]
    assert [p.name for p in again.home.workspace.iterdir()] == ["kept.txt"]


@pytest.mark.parametrize("hooks", [{}, [1], [{"event": "before_tool"}], [{"command": ["x"]}], [{"event": "at_tool", "command": ["x"]}],
                                   [{"event": "before_tool", "command": []}], [{"event": "before_tool", "command": "x"}],
                                   [{"event": "before_tool", "command": ["x"], "timeout_s": 0}], [{"event": "before_tool", "command": ["x"], "more": 1}]])
def test_a_wrong_configuration_is_named(make_home, hooks):
    import subprocess
    from support.server import BINARY
    home = make_home()
    file = home.path / "reprise.json"
    file.write_text(json.dumps({"hooks": hooks}))
    file.chmod(0o600)
    done = subprocess.run([str(BINARY), "serve", "--port", "0", "--data-dir", str(home.data), "--config", str(file)], env=home.environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * SLACK, check=False)
    assert done.returncode != 0 and "hooks" in done.stderr


def test_guardrails(make_server, provider):
    server = make_server(provider, config={"guardrails": {"input": ["(?i)my password"], "output": ["[0-9]{4}-[0-9]{4}"]}})
    client = server.client
    client.post("/chats/c/interactions", {"user_message": "My password is x"}).error(400, "guardrail")
    assert client.get("/chats").json["chats"] == [] and not provider.requests
    provider.plan(tools(call("run_shell", {"command": "echo card 1234-5678 of mine"}, "s")), text("ok"))
    stream = client.start("c", "go")
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    assert stream.one("tool_result")["tool_output"] == "card [redacted] of mine\n" and not stream.all("tool_output_delta")
    client.post("/chats/c/interactions/int_001/edit", {"new_user_message": "and my password"}).error(400, "guardrail")
    provider.plan(text("still here"))
    client.turn("c", "go on")
