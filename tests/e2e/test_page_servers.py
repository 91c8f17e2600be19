"""Settings that work without a restart: MCP servers and approval rules, which are added, tried and removed in the page and by HTTP."""
import json
import sys

import pytest
from support.browser import Keys
from support.mcp import server_of
from support.mcp_oauth import AuthorizationServer, ProtectedServer, open_page
from support.people import OPERATOR, api_token, as_user, token_file
from support.provider import Reply, call, text, tools
from support.timing import eventually
from test_page_connect import choose

pytestmark = pytest.mark.limit(120)

SECRET = "tok-live-0123456789abcdef"
OVER = {"X-Forwarded-For": "192.0.2.7"}  # as a proxy on this machine sends it
DICE = server_of('{"name": "roll", "description": "Rolls a die", "inputSchema": {"type": "object", "properties": {"sides": {"type": "integer"}}}}', '"4"')


@pytest.fixture
def mcp():
    """An MCP server at an address, which takes SECRET as a bearer's token, or an OAuth log-in."""
    authorization = AuthorizationServer()
    server = ProtectedServer(authorization)
    authorization.tokens[SECRET] = {"scope": "tools"}
    yield server
    server.close()
    authorization.close()


def state(server, name):
    return next((each for each in server.client.get("/tools").expect(200, "tools").json["servers"] if each["name"] == name), {})


def until_ready(server, name):
    return eventually(lambda: (found := state(server, name)).get("state") == "ready" and found, f"{name} is ready", 30)


def names(server):
    return [each["name"] for each in server.client.get("/tools/servers").expect(200, "tool_servers").json["servers"]]


def put(server, name, body, **more):
    return server.client.request("PUT", f"/tools/servers/{name}", body, **more)


def add_program(server, name, body):
    shown = put(server, name, {**body, "dry_run": True}).expect(200, "tool_server_added").json
    put(server, name, {**body, "digest": shown["digest"]}).expect(200, "tool_server_added")
    return shown


def audit(server, *events):
    return [each for each in server.client.get("/audit?limit=1000").expect(200, "audit").json["entries"] if each["event"] in events]


def settings(browse, server):
    page = browse(server)
    page.press("tab-settings")
    return page


def test_a_server_with_an_address_is_added_tested_used_and_removed(make_server, make_home, provider, browse, mcp):
    home = make_home()
    server = make_server(provider, home=home, config={"approval_mode": "approve_all"})
    page = settings(browse, server)
    page.press("add-server")
    page.type("server-name", "tickets")
    page.type("server-place", mcp.address)
    page.type("server-secrets", f"Authorization: Bearer {SECRET}")
    page.press("server-add")
    page.until_text("server[data-name=tickets]", "ready", 20)
    assert SECRET not in page.script("return document.documentElement.outerHTML")
    page.press("test-server")
    page.until_text("server-said", "has 3 tools", 20)
    shown = server.client.get("/tools/servers").expect(200, "tool_servers").json
    assert shown["is_local"] and shown["sealed"] and SECRET not in json.dumps(shown)
    assert shown["servers"][0]["headers"] == ["Authorization"] and shown["servers"][0]["url"] == mcp.address
    assert not home.find_text(SECRET) and SECRET not in server.log(), "sealed"
    provider.plan(tools(call("tickets__echo", {"text": f"at once, not {SECRET}"})), text("done"))
    said = server.client.turn("a", "use it")
    assert said.one("tool_result")["tool_output"] == "at once, not [redacted]"
    server.stop()
    again = make_server(provider, home=home, config={"approval_mode": "approve_all"})
    until_ready(again, "tickets")
    page = settings(browse, again)
    page.until_text("server[data-name=tickets]", "ready", 20)
    page.press("remove-server")
    page.gone("server[data-name=tickets]")
    assert state(again, "tickets") == {} and names(again) == []
    assert not [tool for tool in again.client.get("/tools").json["tools"] if tool["name"].startswith("tickets__")]
    again.client.request("DELETE", "/tools/servers/tickets", None).error(404, "not_found")
    assert [(each["event"], each["tool_name"], each["chat_id"]) for each in audit(again, "server_added", "server_removed")] == [
        ("server_added", "tickets", ""), ("server_removed", "tickets", "")]
    assert len({each["arguments_digest"] for each in audit(again, "server_added", "server_removed")}) == 1
    again.stop()
    assert names(make_server(home=home)) == [], "it stays away"


def test_a_person_logs_in_at_an_added_server(make_server, make_home, browse, mcp):
    home = make_home()
    server = make_server(home=home)
    page = settings(browse, server)
    page.press("add-server")
    page.type("server-name", "tickets")
    page.type("server-place", mcp.address)
    page.press("server-oauth")
    page.press("server-add")
    page.script("window.open = (url) => { window.opened = url; }")
    page.until(lambda: page.all("server-login"), "the log-in", 20)
    page.press("server-login")
    page.until(lambda: page.script("return window.opened"), "the page to be opened")
    open_page(page.script("return window.opened"))
    page.until_text("server[data-name=tickets]", "ready", 20)
    token = [each for each in mcp.authorization.tokens if each != SECRET][-1]
    assert not home.find_text(token) and token not in server.log()
    page.press("remove-server")
    page.gone("server[data-name=tickets]")
    # Whoever adds it again is not logged in.
    put(server, "tickets", {"url": mcp.address, "auth": {"type": "oauth"}}).expect(200, "tool_server_added")
    eventually(lambda: state(server, "tickets").get("login") == "logged_out" and state(server, "tickets")["state"] == "failed", "logged out", 20)


def test_a_program_runs_only_after_its_words_were_shown(make_server, make_home, browse):
    home = make_home()
    server = make_server(home=home)
    page = settings(browse, server)
    page.press("add-server")
    choose(page, "server-kind", "program")
    page.type("server-name", "dice")
    page.type("server-place", sys.executable)
    page.type("server-words", "\n".join(["-u", str(home.path / "dice it's.py")]))
    page.type("server-secrets", f"DICE_TOKEN={SECRET}")
    (home.path / "dice it's.py").write_text(DICE["args"][1])
    page.press("server-add")
    shown = page.text("shown-server")
    digest = page.text("shown-digest")
    assert f"{sys.executable} -u '{home.path}/dice it'\\''s.py'" in shown and "DICE_TOKEN" in shown and SECRET not in shown and digest.startswith("sha256:")
    assert names(server) == [] and not audit(server, "server_added"), "nothing has changed yet"
    page.type("server-words", Keys.END + "x")
    assert not page.all("server-agree"), "other words are to be shown again"
    page.type("server-words", Keys.BACKSPACE)
    page.press("server-add")
    page.until_text("shown-digest", digest)
    page.press("server-agree")
    page.until_text("server[data-name=dice]", "ready", 20)
    assert [each["arguments_digest"] for each in audit(server, "server_added")] == [digest]
    assert not home.find_text(SECRET), "sealed"
    page.press("remove-server")
    page.gone("server[data-name=dice]")


def test_what_runs_a_program_is_the_local_users_alone(make_server, make_home):
    home = make_home()
    server = make_server(home=home, arguments=["--public-hosts", "chat.example"])
    shown = put(server, "dice", {**DICE, "dry_run": True}).expect(200, "tool_server_added").json
    assert shown["command"] == [DICE["command"], *DICE["args"]] and names(server) == []
    whole = {**DICE, "digest": shown["digest"]}
    put(server, "dice", DICE).error(409, "digest_mismatch")
    put(server, "dice", {**DICE, "digest": ""}).error(409, "digest_mismatch")
    put(server, "dice", {**whole, "args": [*DICE["args"], "more"]}).error(409, "digest_mismatch")
    put(server, "dice", {**whole, "env": {"A": "1"}}).error(409, "digest_mismatch")
    far = [OVER, {"Forwarded": "for=192.0.2.7"}, {"Via": "1.1 proxy"}, {"Host": "chat.example"}, {"Host": "chat.example", "Origin": "https://chat.example"}]
    for headers in far:
        for body in (whole, {**DICE, "dry_run": True}):
            put(server, "dice", body, headers=headers).error(403, "forbidden_user")
        assert server.client.get("/tools/servers", headers=headers).expect(200, "tool_servers").json["is_local"] is False
    assert names(server) == [] and not (home.data / ".added_servers").exists()
    put(server, "dice", whole).expect(200, "tool_server_added")
    until_ready(server, "dice")
    for headers in far:
        server.client.request("DELETE", "/tools/servers/dice?digest=" + shown["digest"], None, headers=headers).error(403, "forbidden_user")
        put(server, "dice", {"url": "https://example.org/mcp"}, headers=headers).error(403, "forbidden_user")  # it would end the program
    server.client.request("DELETE", "/tools/servers/dice", None).error(409, "digest_mismatch")
    server.client.request("DELETE", "/tools/servers/dice?digest=" + "sha256:" + "0" * 64, None).error(409, "digest_mismatch")
    # An address may come from elsewhere.
    put(server, "far", {"url": "http://127.0.0.1:1/mcp"}, headers=OVER).expect(200, "tool_server_added")
    server.client.request("DELETE", "/tools/servers/far", None, headers=OVER).expect(200, "tool_server_removed")
    assert server.client.request("POST", "/tools/servers/dice/test", {}).expect(200, "tool_server_tested").json["message"].endswith("has 1 tool")
    server.stop()
    again = make_server(home=home)
    until_ready(again, "dice")
    again.client.request("DELETE", "/tools/servers/dice?digest=" + shown["digest"], None).expect(200, "tool_server_removed")
    assert state(again, "dice") == {}


def test_a_program_that_tools_could_replace_is_not_added(make_server, make_home):
    home = make_home()
    server = make_server(home=home)
    script = home.workspace / "dice.py"
    script.write_text(DICE["args"][1])
    body = {"command": sys.executable, "args": [str(script)]}
    assert str(script) in put(server, "dice", {**body, "dry_run": True}).error(403, "untrusted")["message"]
    outside = home.path / "dice.py"
    outside.write_text(DICE["args"][1])
    add_program(server, "dice", {"command": sys.executable, "args": [str(outside)]})
    until_ready(server, "dice")
    server.stop()
    # Where chats work is chosen again.
    moved = make_server(home=home, arguments=["--workspace", str(home.path)])
    found = moved.client.get("/tools/servers").expect(200, "tool_servers").json["servers"]
    assert [each["name"] for each in found] == ["dice"] and "could be replaced" in found[0]["problem"] and state(moved, "dice") == {}


def test_what_the_configuration_says_wins(make_server, make_home, browse):
    home = make_home()
    server = make_server(home=home)
    add_program(server, "dice", DICE)
    server.stop()
    config = {"mcpServers": {"dice": {"url": "http://127.0.0.1:1/mcp"}}, "tools": {"rules": [{"tool": "run_shell", "pattern": "git push", "action": "deny"}]}}
    server = make_server(home=home, config=config)
    found = server.client.get("/tools/servers").expect(200, "tool_servers").json["servers"]
    assert [(each["name"], each["is_configured"], "problem" in each) for each in found] == [("dice", True, False), ("dice", False, True)]
    assert found[0]["source"].endswith("server.json") and "digest" not in found[0]
    put(server, "dice", {"url": "https://example.org/mcp"}).error(409, "conflict")
    page = settings(browse, server)
    page.until(lambda: "server.json" in page.text("servers") and "server.json" in page.text("rule"), "where they stand")
    assert len(page.all("remove-server")) == 1 and not page.all("remove-rule")
    assert "git push" in page.text("rule") and page.text("rule-means")


@pytest.mark.parametrize("name, body", [
    ("UP/x", {"url": "https://example.org"}), ("_x", {"url": "https://example.org"}), ("x" * 65, {"url": "https://example.org"}), ("x", {}),
    ("x", {"url": "file:///etc/passwd"}), ("x", {"url": "https://example.org", "command": "sh"}), ("x", {"url": ""}), ("x", {"command": ""}),
    ("x", {"url": "https://example.org", "headers": {"A": "b\r\nX-Other: c"}}), ("x", {"url": "https://example.org", "headers": {"A b": "c"}}),
    ("x", {"url": "https://example.org", "headers": {"A": "${TEST_API_KEY}"}}), ("x", {"url": "https://example.org", "headers": ["A"]}),
    ("x", {"url": "http://example.org", "auth": {"type": "oauth"}}), ("x", {"url": "https://example.org", "trust_annotations": True}),
    ("x", {"command": "/no/such/program"}), ("x", {"command": "sh", "shared": True}), ("x", {"command": "sh", "args": "x"}), ("x", {"url": "https://example.org", "digest": 1}),
    ("x", {"url": "https://example.org/" + "a" * 20_000}), ("x", {"url": "https://example.org", "dry_run": "yes"}), ("x", [])])
def test_a_server_that_is_no_server_is_refused(server, name, body):
    answer = put(server, name.replace("/", "%2F"), body)
    assert answer.status in (400, 404, 413), answer.body
    assert names(server) == []


def test_a_list_that_cannot_be_read_is_never_written_over(make_server, make_home):
    home = make_home()
    server = make_server(home=home, plain=True)
    put(server, "far", {"url": "http://127.0.0.1:1/mcp?key=" + SECRET, "headers": {"X-Api-Key": SECRET}}).expect(200, "tool_server_added")
    shown = server.client.get("/tools/servers").expect(200, "tool_servers").json
    assert SECRET not in json.dumps(shown) and shown["sealed"] is False
    server.client.post("/rules", {"tool": "run_shell", "action": "ask"}).expect(200, "rule_added")
    server.stop()
    for file, route, body in ((".added_servers", "PUT /tools/servers/more", {"url": "http://127.0.0.1:1/mcp"}), (".added_rules", "POST /rules", {"tool": "echo", "action": "ask"})):
        whole = (home.data / file).read_text()
        for wrong in ("", "{}", whole[:-9], whole.replace('"schema":1', '"schema":2')):
            (home.data / file).write_text(wrong)
            server = make_server(home=home, plain=True)
            assert "cannot be read" in server.client.request(*route.split(), body).error(409, "conflict")["message"]
            assert (home.data / file).read_text() == wrong
            server.stop()
        (home.data / file).write_text(whole)
    server = make_server(home=home, plain=True)
    assert names(server) == ["far"] and len(server.client.get("/rules").expect(200, "rules").json["rules"]) == 1


def test_lists_of_the_operator_are_no_tenants(make_server, make_home):
    home = make_home()
    config = {"auth": {"type": "tokens"}, "model": "offline", "workspace_mode": "shared", "approval_mode": "approve_all"}
    server = make_server(home=home, config=config, arguments=["--token-file", token_file(home)], token=OPERATOR)
    add_program(server, "dice", DICE)
    until_ready(server, "dice")
    server.client.post("/rules", {"tool": "calculator", "action": "deny"}).expect(200, "rule_added")
    assert server.client.turn("mine", 'call dice__roll {"sides": 6}').one("tool_result")["tool_output"] == "4"
    alice = as_user(server, api_token(home, "alice")["token"])
    for method, path, body in (("GET", "/tools/servers", None), ("PUT", "/tools/servers/x", {"url": "https://example.org"}), ("DELETE", "/tools/servers/dice", None),
                               ("POST", "/tools/servers/dice/test", {}), ("GET", "/rules", None), ("POST", "/rules", {"tool": "echo", "action": "allow"}),
                               ("DELETE", "/rules/r00000000", None)):
        alice.request(method, path, body).error(403, "operator_only")
    seen = alice.get("/tools").expect(200, "tools").json
    assert seen["servers"] == [] and not [each for each in seen["tools"] if each["name"].startswith("dice__") or each.get("rules")]
    assert "4" in alice.turn("hers", "calculate 2+2").one("tool_result")["tool_output"], "the operator's rule is not hers"
    assert not [each for each in alice.get("/audit").json["entries"] if each["event"] == "rule_added"]
    refused = server.client.turn("mine", "calculate 2+2").one("tool_result")
    assert refused["is_error"] and "denies" in refused["tool_output"]


def test_a_rule_is_added_holds_in_mid_run_and_is_removed(make_server, make_home, provider, browse):
    home = make_home()
    server = make_server(provider, home=home)
    page = settings(browse, server)
    page.press("add-rule")
    page.type("rule-tool", "run_shell")
    page.type("rule-pattern", "git push")
    page.press("rule-look")
    page.until_text("shown-rule", "deny run_shell: git push")
    assert "git push" in page.text("shown-rule") and server.client.get("/rules").expect(200, "rules").json["rules"] == []
    # It holds in a run that waits already.
    provider.plan(tools(call("run_shell", {"command": "git push"}, "one")), text("refused"))
    stream = server.client.start("a", "push")
    approval = stream.until("approval_required").data["approval_id"]
    page.press("rule-agree")
    page.until(lambda: "git push" in page.text("rule"), "the rule")
    server.client.post(f"/approvals/{approval}", {"approved": True}).error(409, "denied_by_rule")
    server.client.post(f"/approvals/{approval}", {"approved": False}).expect(200)
    stream.finish()
    provider.plan(tools(call("run_shell", {"command": "git push"}, "two")), text("refused"))
    assert "rule 1 of this server denies it" in server.client.turn("a", "push again").one("tool_result")["tool_output"]
    assert [each["decided_by"] for each in audit(server, "refused")] == [["rule 1"]]
    server.client.post("/rules", {"tool": "run_shell", "pattern": "git push", "action": "deny"}).error(409, "conflict")
    server.stop()
    again = make_server(provider, home=home)
    provider.plan(tools(call("run_shell", {"command": "git push"}, "three")), text("refused"))
    assert "rule 1" in again.client.turn("b", "and after a restart").one("tool_result")["tool_output"]
    page = settings(browse, again)
    page.press("remove-rule")
    page.gone("rule")
    assert again.client.get("/rules").expect(200, "rules").json["rules"] == []
    lines = audit(again, "rule_added", "rule_removed")
    assert [each["event"] for each in lines] == ["rule_added", "rule_removed"] and len({(each["tool_name"], each["arguments_digest"]) for each in lines}) == 1


def test_a_rule_that_allows_is_the_local_users_alone(make_server, make_home):
    home = make_home()
    server = make_server(home=home)
    rule = {"tool": "write_file", "pattern": "notes/**", "action": "allow"}
    shown = server.client.post("/rules", {**rule, "dry_run": True}).expect(200, "rule_added").json
    assert "notes" in shown["means"] and "id" not in shown
    server.client.post("/rules", rule).error(409, "digest_mismatch")
    server.client.post("/rules", {**rule, "pattern": "**", "digest": shown["digest"]}).error(409, "digest_mismatch")
    server.client.post("/rules", {**rule, "digest": shown["digest"]}, headers=OVER).error(403, "forbidden_user")
    asks = server.client.start("a", "write notes/x: hello")
    asks.until("approval_required")
    server.client.post("/rules", {**rule, "digest": shown["digest"]}).expect(200, "rule_added")
    assert server.client.turn("b", "write notes/y: hello").one("tool_result")["is_error"] is False, "nobody was asked"
    found = server.client.get("/rules").expect(200, "rules").json["rules"][0]
    assert found["rule"] == "rule 1" and found["digest"] == shown["digest"]
    server.client.request("DELETE", f"/rules/{found['id']}?digest={found['digest']}", None, headers=OVER).error(403, "forbidden_user")
    server.client.request("DELETE", f"/rules/{found['id']}", None).error(409, "digest_mismatch")
    # One that holds back may come from elsewhere, but its removal lets calls run.
    held = server.client.post("/rules", {"tool": "run_*", "action": "deny"}, headers=OVER).expect(200, "rule_added").json
    server.client.request("DELETE", f"/rules/{held['id']}?digest={held['digest']}", None, headers=OVER).error(403, "forbidden_user")
    server.client.request("DELETE", f"/rules/{found['id']}?digest={found['digest']}", None).expect(200, "rule_removed")
    server.client.request("DELETE", f"/rules/{found['id']}?digest={found['digest']}", None).error(404, "not_found")
    server.client.start("c", "write notes/z: hello").until("approval_required")


@pytest.mark.parametrize("body", [
    {}, {"tool": "write_file"}, {"tool": "", "action": "deny"}, {"tool": "no_such_tool", "action": "deny"}, {"tool": "run_*", "pattern": "git", "action": "deny"},
    {"tool": "run_shell", "pattern": "bash *", "action": "allow"}, {"tool": "run_shell", "action": "sometimes"}, {"tool": "x" * 5000, "action": "deny"},
    {"tool": "run_shell", "action": "deny", "more": 1}, {"tool": 1, "action": "deny"}])
def test_a_rule_that_is_none_is_refused(server, body):
    assert server.client.post("/rules", body).status == 400
    assert server.client.get("/rules").expect(200, "rules").json["rules"] == []


def test_changes_of_providers_and_instructions_are_in_the_audit_log(make_server, make_home, provider):
    server = make_server(home=make_home())
    provider.listing = lambda: Reply([json.dumps({"object": "list", "data": []}).encode()], content_type="application/json")
    server.client.request("PUT", "/providers/mine", {"type": "openai", "base_url": provider.url, "api_key": SECRET}).expect(200)
    server.client.request("DELETE", "/providers/mine").expect(200)
    server.client.post("/chats", {"id": "a"}).expect(201)
    for instructions in ("Be brief.", "Be brief.", ""):
        server.client.request("PATCH", "/chats/a", {"instructions": instructions}).expect(200)
    server.client.post("/chats", {"id": "b", "instructions": "Be brief."})
    lines = server.client.get("/audit").expect(200, "audit").json
    seen = [(each["event"], each["chat_id"], each["tool_name"]) for each in lines["entries"]]
    assert lines["ok"] and seen[:4] == [("provider_connected", "", "mine"), ("provider_disconnected", "", "mine"), ("instructions_changed", "a", ""), ("instructions_changed", "a", "")]
    assert SECRET not in json.dumps(lines) and "brief" not in json.dumps(lines)

