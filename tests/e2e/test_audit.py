"""The audit log: every tool call and its outcome, in a chain of lines without any content of chats."""
import json
import subprocess

import pytest
from support.provider import call, text, tools
from support.server import BINARY

SECRET_TEXT = "the words of the user"


def entries(client, query=""):
    return client.get(f"/audit{query}").expect(200, "audit").json["entries"]


def facts(client):
    return [(e["event"], e["tool_name"], e.get("reason")) for e in entries(client)]


def run(home, *arguments):
    return subprocess.run([str(BINARY), *arguments, "--data-dir", str(home.data)], env=home.environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=30, check=False)


def test_every_call_is_accounted_for(server, provider):
    client = server.client
    provider.plan(tools(call("echo", {"text": SECRET_TEXT}, "e"), call("no_such_" + SECRET_TEXT, {}, "n"), call("echo", {"txt": 1}, "i"),
                        call("run_shell", {"command": "exit 3"}, "s"), call("write_file", {"path": "a", "content": SECRET_TEXT}, "w")), text("ok"))
    stream = client.start("c", SECRET_TEXT)
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    asked = stream.until("approval_required")
    client.approve("c", "int_001", asked["approval_id"], False).expect(200)
    stream.finish()
    log = entries(client)
    assert [(e["event"], e["call_id"], e.get("reason")) for e in log] == [
        ("started", "e", "default"), ("ended", "e", None), ("refused", "n", "unknown_tool"), ("refused", "i", "invalid_arguments"),
        ("approved", "s", "once"), ("started", "s", "approval"), ("ended", "s", None), ("rejected", "w", None)]
    assert [e["seq"] for e in log] == list(range(1, 9)) and all(e["chat_id"] == "c" and e["interaction_id"] == "int_001" for e in log)
    assert log[6]["exit_status"] == 3 and log[6]["is_error"] and log[5]["approval_id"] == log[4]["approval_id"]
    assert log[7]["approval_id"] == asked["approval_id"] and log[7]["arguments_digest"] == asked["arguments_digest"]
    assert entries(client, "?after=6&limit=1") == [log[6]]
    assert client.get("/audit?after=6&limit=1").json["next"] == 7
    client.get("/audit?limit=0").error(400)
    client.get("/audit?after=x").error(400)
    assert not server.home.find_text(SECRET_TEXT)
    # A recorded replay runs no tool, so it adds no line.
    client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200)
    assert len(entries(client)) == 8


def test_why_a_call_may_run(make_server, provider):
    server = make_server(provider)
    write = lambda i: tools(call("write_file", {"path": "a", "content": "1"}, f"w{i}"))  # noqa: E731
    provider.plan(write(1), write(2), text("ok"))
    stream = server.client.start("c", "go")
    server.client.approve("c", "int_001", stream.until("approval_required")["approval_id"], scope="chat").expect(200)
    stream.finish()
    assert [e["reason"] for e in entries(server.client) if e["event"] == "started"] == ["approval", "grant"]
    for mode, expected in (("approve_all", ("started", "mode")), ("deny_all", ("refused", "mode"))):
        other = make_server(provider, config={"approval_mode": mode})
        provider.plan(write(1), text("ok"))
        other.client.turn("c", "go")
        log = entries(other.client)
        assert (log[0]["event"], log[0]["reason"]) == expected


def test_what_cannot_be_accounted_for_does_not_run(server, provider):
    (server.home.data / "audit.jsonl").mkdir(mode=0o700)
    provider.plan(tools(call("echo", {"text": "x"}, "e")), text("ok"))
    result = server.client.turn("c", "go").one("tool_result")
    assert result["is_error"] and result["tool_output"] == "Not run: the audit log could not be written."
    (server.home.data / "audit.jsonl").rmdir()
    provider.plan(tools(call("echo", {"text": "y"}, "e")), text("ok"))
    assert server.client.turn("c", "again").one("tool_result")["tool_output"] == "y"


def test_commands_and_a_changed_line(make_server, provider):
    server = make_server(provider)
    for number in range(3):
        provider.plan(tools(call("echo", {"text": str(number)}, "e")), text("ok"))
        server.client.turn("c", "go")
    shown = run(server.home, "audit")
    assert shown.returncode == 0 and len(shown.stdout.splitlines()) == 6 and "c/int_001  started   echo (e): default" in shown.stdout
    lines = [json.loads(line) for line in run(server.home, "audit", "--json").stdout.splitlines()]
    assert lines == entries(server.client)
    assert run(server.home, "verify").returncode == 0
    server.stop()
    file = server.home.data / "audit.jsonl"
    whole = file.read_text()
    file.write_text(whole.replace('"int_002"', '"int_001"', 1))
    found = run(server.home, "verify", "--json")
    problems = json.loads(found.stdout)["problems"]
    assert found.returncode == 1 and [(p["file"], p["kind"]) for p in problems] == [("audit.jsonl", "auth")]
    file.write_text("".join(whole.splitlines(True)[1:]))
    assert json.loads(run(server.home, "verify", "--json").stdout)["problems"][0]["kind"] == "missing"
    file.write_text(whole)
    # The chain continues after a restart.
    again = make_server(provider, server.home)
    provider.plan(tools(call("echo", {"text": "more"}, "e")), text("ok"))
    again.client.turn("c", "go")
    assert [e["seq"] for e in entries(again.client)] == list(range(1, 9)) and run(server.home, "verify").returncode == 0


@pytest.mark.parametrize("plain", [False, True])
def test_the_route_says_whether_what_it_shows_verifies(make_server, provider, plain):
    server = make_server(provider, plain=plain)
    for number in range(3):
        provider.plan(tools(call("echo", {"text": str(number)}, "e")), text("ok"))
        server.client.turn("c", "go")
    server.stop()
    file = server.home.data / "audit.jsonl"
    whole = file.read_text()
    lines = whole.splitlines(True)
    found = {}
    for what, now in {"whole": whole, "changed": whole.replace('"int_002"', '"int_001"', 1), "gone": "".join(lines[:2] + lines[3:]),
                      "cut": "".join(lines[:5]), "nothing": ""}.items():
        file.write_text(now)
        again = make_server(provider, server.home, plain=plain)
        again.check_files = False
        pages, after = [], 0
        while after is not None:
            pages.append(again.client.get(f"/audit?limit=2&after={after}").expect(200, "audit").json)
            after = pages[-1]["next"]
        found[what] = [[problem["kind"] for problem in page["problems"]] for page in pages]
        assert all(page["ok"] == (not page["problems"]) for page in pages)
        together = again.client.get("/audit").json
        assert together["ok"] == (what == "whole") and bool(together["problems"]) == (what != "whole")
        again.stop()
    # A change is found in its own line, or by the digest in the next one.
    assert found["whole"] == [[], [], []] and found["changed"] in ([[], ["auth"], []], [[], ["auth"], ["auth"]])
    assert found["gone"][0] == [] and found["gone"][1] == ["missing"]
    assert found["cut"] == [[], [], ["missing"]] and found["nothing"] == [["missing"]]


def test_a_sub_agents_calls_are_in_it(server, provider):
    provider.plan(tools(call("research", {"question": "?"}, "r")), tools(call("echo", {"text": "x"}, "e")), text("x"), text("ok"))
    server.client.turn("c", "go")
    assert [(e["event"], e["call_id"]) for e in entries(server.client)] == [("started", "r"), ("started", "e"), ("ended", "e"), ("ended", "r")]


def test_no_tool_repeats_a_secret_of_the_server(make_server, provider):
    # TEST_API_KEY, the provider's key, is also searched for on disk at the end of every test.
    from support.server import API_KEY
    server = make_server(provider, environment={"MY_PRIVATE_KEY": "MIIEvQIBADANBg", "PASSWORD_STORE_DIR": "/home/me/.password-store"})
    (server.home.workspace / "other.txt").write_text("MIIEvQIBADANBg in /home/me/.password-store\n")
    provider.plan(tools(call("read_file", {"path": "other.txt"}, "o")), text("ok"))
    assert "[redacted] in /home/me/.password-store" in server.client.turn("o", "go").one("tool_result")["tool_output"]
    (server.home.workspace / "leak.txt").write_text(f"key: {API_KEY}\n")
    provider.plan(tools(call("read_file", {"path": "leak.txt"}, "r"), call("run_shell", {"command": "cat leak.txt; cat leak.txt"}, "s")), text("ok"))
    stream = server.client.start("c", "go")
    server.client.approve("c", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    events = stream.finish()
    assert API_KEY not in "".join(str(e.data) for e in events)
    results = stream.all("tool_result")
    assert "key: [redacted]" in results[0]["tool_output"] and results[1]["tool_output"].count("[redacted]") == 2
    assert API_KEY not in json.dumps(provider.requests[-1].body)


@pytest.mark.parametrize("plain", [False, True])
def test_an_end_that_is_gone_is_found_and_stays_so(make_server, provider, plain):
    server = make_server(provider, plain=plain)
    for number in range(3):
        provider.plan(tools(call("echo", {"text": str(number)}, "e")), text("ok"))
        server.client.turn("c", "go")
    server.stop()
    flags = ["--plain"] if plain else []
    assert run(server.home, "audit", *flags).returncode == 0 and run(server.home, "verify", *flags).returncode == 0
    file = server.home.data / "audit.jsonl"
    whole = file.read_text()
    lines = whole.splitlines(True)
    changed_last = "".join(lines[:-1]) + lines[-1].replace('"echo"', '"eche"')
    for text_now, kind in (("".join(lines[:4]), "missing"), ("", "missing"), (changed_last, "auth")):
        file.write_text(text_now)
        found = run(server.home, "audit", *flags)
        assert found.returncode == 1 and f"audit.jsonl: {kind}" in found.stderr
        assert [p["kind"] for p in json.loads(run(server.home, "verify", "--json", *flags).stdout)["problems"]] == [kind]
    # A server reports the damage, continues, and does not hide it.
    file.write_text("".join(lines[:4]))
    again = make_server(provider, server.home, plain=plain)
    again.check_files = False
    assert "the audit log is not as it was left" in again.log()
    provider.plan(tools(call("echo", {"text": "more"}, "e")), text("ok"))
    again.client.turn("c", "go")
    again.stop()
    assert "audit.jsonl: missing" in run(server.home, "audit", *flags).stderr


def test_lines_stay_in_order_through_a_change_of_the_key(make_server, provider):
    server = make_server(provider)
    provider.plan(tools(call("echo", {"text": "1"}, "e")), text("ok"))
    server.client.turn("c", "go")
    server.stop()
    assert run(server.home, "keys", "rotate", "--rewrap", "--remove-old").returncode == 0
    assert run(server.home, "audit").returncode == 0 and run(server.home, "verify").returncode == 0
    again = make_server(provider, server.home)
    provider.plan(tools(call("echo", {"text": "2"}, "e")), text("ok"))
    again.client.turn("c", "go")
    again.stop()
    assert run(server.home, "verify").returncode == 0


def test_after_a_crash_all_lines_are_in_order_and_none_can_be_changed(make_server, provider):
    server = make_server(provider)
    for number in range(2):
        provider.plan(tools(call("echo", {"text": str(number)}, "e")), text("ok"))
        server.client.turn("c", "go")
    server.kill()
    assert run(server.home, "audit").returncode == 0
    file = server.home.data / "audit.jsonl"
    file.write_text(file.read_text().replace('"ended"', '"rejected"'))
    assert run(server.home, "audit").returncode == 1
