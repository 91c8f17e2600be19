"""Logging in at MCP servers by OAuth: from the command line and by HTTP, renewal of tokens, more rights; and servers that try to steal tokens."""
import json
import socket
import subprocess
import time
import urllib.parse

import pytest
from support.mcp_oauth import AuthorizationServer, ProtectedServer, Web, open_page, redirect
from support.provider import call, text, tools
from support.server import BINARY
from support.timing import SLACK, eventually


@pytest.fixture
def web():
    opened = []

    def make(kind, *arguments):
        opened.append(kind(*arguments))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


class Place:
    """An MCP server that requires tokens, and a server of ours that is configured with it."""

    def __init__(self, web, make_server, make_home, provider, **auth):
        self.authorization = web(AuthorizationServer)
        self.mcp = web(ProtectedServer, self.authorization)
        self.home, self.provider = make_home(), provider
        self.config = {"approval_mode": "approve_all", "mcpServers": {"tickets": {"url": self.mcp.address, "auth": {"type": "oauth", **auth}}}}
        self.make = lambda: make_server(provider, home=self.home, config=self.config)
        self.server = self.make()
        self.client, self.turns = self.server.client, 0

    def command(self, *arguments):
        return [str(BINARY), "mcp", *arguments, "--config", str(self.home.path / "server.json"), "--data-dir", str(self.home.data)]

    def run(self, *arguments, status=0):
        done = subprocess.run(self.command(*arguments), env=self.home.environment(), cwd=self.home.path, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=20 * SLACK, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def log_in(self, change=lambda url: url, status=0, open_page=open_page):
        """Runs `reprise mcp login`, and the person who opens the page; returns its output."""
        process = subprocess.Popen(self.command("login", "tickets", "--json"), env=self.home.environment(), cwd=self.home.path, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            line = process.stdout.readline()
            if line and "open" in json.loads(line):
                open_page(change(json.loads(line)["open"]))
                line = ""
            out, err = process.communicate(timeout=20 * SLACK)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == status, out + err
        return line + out + err

    def state(self):
        return self.client.get("/tools").expect(200, "tools").json["servers"][0]

    def until(self, login, state):
        return eventually(lambda: (s := self.state())["login"] == login and s["state"] == state and s, f"{login}, {state}", 20 * SLACK)

    def begin(self):
        return self.client.post("/tools/servers/tickets/login", {}).expect(200, "server_login").json["open"]

    def result(self, tool, arguments=None, answer=None):
        self.turns += 1
        self.provider.plan(tools(call(f"tickets__{tool}", arguments or {}, f"call_{self.turns}")), text("done"))
        stream = self.client.start("c", f"turn {self.turns}")
        while event := stream.next():
            if event.name == "input_required":
                self.client.respond("c", stream.interaction, event["request_id"], answer).expect(200, "respond_response")
        stream.finish()
        return stream.one("tool_result")


@pytest.fixture
def place(web, make_server, make_home, provider):
    return lambda **auth: Place(web, make_server, make_home, provider, **auth)


def is_secret_kept(it):
    """Asserts that no token of this log-in is readable in any file or in the log."""
    given = [*it.authorization.tokens, *it.authorization.refresh_tokens]
    assert given
    for token in given:
        assert not it.home.find_text(token) and token not in it.server.log()
    assert (it.home.data / ".mcp_logins").stat().st_mode & 0o777 == 0o600


def test_a_log_in_from_the_command_line_is_taken_up_and_lasts(place):
    it = place()
    assert "mcp login tickets" in it.until("logged_out", "failed")["message"]
    assert "tickets" in it.run("list") and "logged out" in it.run("list")
    assert '"logged_in"' in it.log_in()
    it.until("logged_in", "ready")
    assert it.result("echo", {"text": "hello"})["tool_output"] == "hello"
    is_secret_kept(it)
    assert json.loads(it.run("list", "--json"))["servers"][0]["login"] == "logged_in"
    assert "answers (protocol 2026-07-28)" in it.run("test", "tickets")
    it.server.stop()
    it.server = it.make()
    it.client = it.server.client
    it.until("logged_in", "ready")
    registered = len(it.authorization.clients)
    # An expired token is renewed with the refresh token, which is valid once; the person is not asked.
    for _ in range(2):
        it.authorization.tokens.clear()
        assert it.result("echo", {"text": "again"})["tool_output"] == "again"
    assert len(it.authorization.clients) == registered and len(it.authorization.asked("/authorize")) == 1
    assert "already" in it.run("login", "tickets")
    it.run("logout", "tickets")  # through the running server, which forgets the token
    it.until("logged_out", "failed")
    asked = len(it.mcp.asked("/mcp"))
    assert it.result("echo", {"text": "x"})["is_error"]
    assert not [headers for _, _, headers, _ in it.mcp.asked("/mcp")[asked:] if "authorization" in headers]
    assert "there was no log-in at tickets" in it.run("logout", "tickets")


def test_a_log_in_by_http(place):
    it = place()
    it.until("logged_out", "failed")
    page = it.begin()
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page).query))
    assert asked["resource"] == it.mcp.address and asked["code_challenge_method"] == "S256" and asked["scope"] == "tools offline_access"
    assert page.startswith(it.authorization.url + "/authorize?")
    # Forged redirects change nothing.
    back = asked["redirect_uri"]
    for query in ("code=x&state=guessed", "code=x", f"code=x&state={asked['state']}&state={asked['state']}"):
        assert open_page(back + "?" + query)[0] == 404
    assert open_page(page)[0] == 200
    it.until("logged_in", "ready")
    assert it.result("echo", {"text": "hello"})["tool_output"] == "hello"
    assert it.begin() is None
    is_secret_kept(it)
    # A second attempt replaces the first.
    assert it.client.post("/tools/servers/tickets/logout", {}).expect(200, "server_logout").json == {"was_logged_in": True}
    it.until("logged_out", "failed")
    first, second = it.begin(), it.begin()
    assert first != second
    open_page(second)
    it.until("logged_in", "ready")
    it.client.post("/tools/servers/none/login", {}).error(404, "not_found")
    it.client.post("/tools/servers/none/logout", {}).error(404, "not_found")
    it.client.post("/tools/servers/tickets/login", {"x": 1}).error(400)
    it.begin()
    assert it.server.stop() < 5 * SLACK  # a log-in that waits for a browser does not delay the stop


def test_more_rights_are_asked_for_when_they_are_needed(place):
    it = place()
    it.log_in()
    it.until("logged_in", "ready")
    refused = it.result("admin")
    assert refused["is_error"] and "more rights" in refused["tool_output"]
    it.log_in()
    assert set(it.authorization.tokens[list(it.authorization.tokens)[-1]]["scope"].split()) == {"tools", "admin", "offline_access"}
    assert it.result("admin")["tool_output"] == "done"


def test_a_server_that_does_not_stop_asking_is_left(place):
    it = place()
    it.log_in()
    it.until("logged_in", "ready")
    result = it.result("asks", answer={"name": "Ann"})
    assert result["is_error"] and "does not stop asking" in result["tool_output"]
    assert it.mcp.rounds == 10


def test_a_log_in_before_the_first_start(place, make_home):
    it = place()
    it.server.stop()
    it.home = make_home()  # a new home without a data folder
    (it.home.path / "server.json").write_text(json.dumps(it.config))
    (it.home.path / "server.json").chmod(0o600)
    assert not it.home.data.exists()
    assert "there was no log-in at tickets" in it.run("logout", "tickets") and "logged out" in it.run("list")
    assert '"logged_in"' in it.log_in()
    assert "logged in" in it.run("list") and "already" in it.run("login", "tickets")
    it.server = it.make()  # uses the folder and the key that the commands made
    it.client = it.server.client
    it.until("logged_in", "ready")
    assert it.result("echo", {"text": "hello"})["tool_output"] == "hello"


def test_a_forgotten_client_registers_again(place):
    it = place()
    it.log_in()
    it.until("logged_in", "ready")
    token = it.authorization.paths["/token"]

    def knows_clients(method, query, headers, body):
        known = dict(urllib.parse.parse_qsl(body))["client_id"] in it.authorization.clients
        return token(method, query, headers, body) if known else (401, {}, {"error": "invalid_client"})

    it.authorization.paths["/token"] = knows_clients
    it.authorization.clients.clear()
    it.authorization.tokens.clear()
    assert "mcp login" in it.result("echo", {"text": "x"})["tool_output"]
    assert '"logged_in"' in it.log_in()
    it.until("logged_in", "ready")
    assert it.result("echo", {"text": "hello"})["tool_output"] == "hello"
    assert len(it.authorization.clients) == 1


@pytest.mark.parametrize("described", [True, False])
def test_a_server_of_the_first_authorization_revision(place, described):
    """The MCP server has no metadata: the authorization server is at its root, with or without metadata of its own."""
    it = place()
    authorization = it.authorization
    authorization.metadata = {**{name: value.replace(authorization.url, it.mcp.url) if isinstance(value, str) else value
                                 for name, value in authorization.metadata.items()}}
    authorization.iss = it.mcp.url
    inner = authorization.paths
    del it.mcp.paths["/.well-known/oauth-protected-resource/mcp"]
    it.mcp.challenge = lambda: "Bearer"
    for path in ("/register", "/authorize", *(["/.well-known/oauth-authorization-server"] if described else [])):
        it.mcp.paths[path] = inner[path]
    asked = []

    def token(method, query, headers, body):
        asked.append(body)
        assert "resource=" not in body
        authorization.codes = {code: {**each, "resource": "none"} for code, each in authorization.codes.items()}
        return inner["/token"](method, query, headers, body + "&resource=none")

    it.mcp.paths["/token"] = token
    it.log_in()
    assert asked and not it.authorization.requests
    it.until("logged_in", "ready")
    assert it.result("echo", {"text": "hello"})["tool_output"] == "hello"


def test_an_answer_of_another_authorization_server_is_rejected(place, web):
    """Mix-up attack: a server names a thief's authorization server, which redirects the browser to an honest one that sends no `iss`."""
    it = place()
    it.server.stop()
    honest, thief = it.authorization, web(AuthorizationServer)
    honest.iss = thief.iss = ""
    del honest.metadata["authorization_response_iss_parameter_supported"], thief.metadata["authorization_response_iss_parameter_supported"]
    it.log_in()  # registers the client and its redirect URI at the honest server
    (client, (back,)), = honest.clients.items()
    honest.tokens.clear()
    honest.refresh_tokens.clear()
    it.mcp.resource["authorization_servers"] = [thief.issuer]
    stolen, seen = [], []

    def takes_code(_, __, ___, body):
        stolen.append(dict(urllib.parse.parse_qsl(body)).get("code"))
        return 400, {}, {"error": "invalid_grant"}

    def sends_on(_, query, __, ___):
        seen.append(dict(urllib.parse.parse_qsl(query)))
        return 302, {"Location": f"{honest.url}/authorize?" + urllib.parse.urlencode({**seen[-1], "client_id": client, "redirect_uri": back})}, ""

    thief.paths.update({"/token": takes_code, "/authorize": sends_on})

    def person(url):
        if open_page(url)[0] == 404:  # the honest server's code came to an address where none is awaited
            open_page(seen[0]["redirect_uri"] + "?" + urllib.parse.urlencode({"error": "access_denied", "state": seen[0]["state"]}))

    assert "access_denied" in it.log_in(status=1, open_page=person)
    assert honest.codes and not stolen


def test_connections_that_say_nothing_hold_no_log_in_up(place):
    it = place()
    it.server.stop()
    silent = []

    def person(url):
        back = urllib.parse.urlsplit(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))["redirect_uri"])
        for _ in range(40):
            silent.append(socket.create_connection((back.hostname, back.port)))
        silent[-1].sendall(b"GET /mcp/callback?state=x HTTP/1.1\r\n")
        began = time.monotonic()
        assert open_page(url)[0] == 200
        assert time.monotonic() - began < 4 * SLACK  # each connection may be silent for five seconds

    try:
        assert '"logged_in"' in it.log_in(open_page=person)
    finally:
        for each in silent:
            each.close()


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"])
def test_only_metadata_at_the_root_may_claim_the_origin(place, path):
    """Only metadata at the origin's root may claim the whole origin. Other metadata yields a token for the server's own address."""
    it = place()
    it.server.stop()
    it.mcp.resource["resource"] = it.mcp.url
    it.mcp.paths = {path: lambda *_: (200, {}, it.mcp.resource), "/mcp": it.mcp.answer}
    it.mcp.metadata_url = it.mcp.url + path
    it.log_in()
    assert [given["resource"] for given in it.authorization.tokens.values()] == [it.mcp.address if path.endswith("/mcp") else it.mcp.url]


def lies(thief):
    """What servers try to get tokens or codes, each with the words of the error."""
    def other_issuer(it):
        it.authorization.iss = thief.url
    def no_issuer(it):
        it.authorization.iss = ""
    def metadata_of_another(it):
        it.authorization.metadata["issuer"] = thief.url
    def no_pkce(it):
        del it.authorization.metadata["code_challenge_methods_supported"]
    def plain_endpoint(it):
        it.authorization.metadata["token_endpoint"] = "http://example.org/token"
    def resource_elsewhere(it):
        it.mcp.resource["resource"] = thief.url + "/mcp"
    def metadata_elsewhere(it):
        it.mcp.metadata_url = thief.url + "/.well-known/oauth-protected-resource"
    def huge(it):
        it.mcp.resource["x"] = "x" * 400_000
    def deep(it):
        it.authorization.paths["/.well-known/oauth-authorization-server"] = lambda *_: (200, {}, "[" * 5000 + "]" * 5000)
    def metadata_redirected(it):
        it.authorization.paths["/.well-known/oauth-authorization-server"] = redirect(302, thief.url + "/metadata")
    def token_redirected(it):
        it.authorization.paths["/token"] = redirect(307, thief.url + "/token")
    def wrong_token(it):
        it.authorization.paths["/token"] = lambda *_: (200, {}, {"access_token": "a\r\nHost: b", "token_type": "Bearer"})
    return {other_issuer: "not that of the authorization server", no_issuer: "not that of the authorization server",
            metadata_of_another: "of another issuer", no_pkce: "PKCE", plain_endpoint: "not https", resource_elsewhere: "another resource",
            metadata_elsewhere: "another server", huge: "too large", deep: "nested deeper", metadata_redirected: "does not describe itself", token_redirected: "HTTP status 307",
            wrong_token: "cannot be used"}


@pytest.mark.limit(60)
def test_log_ins_that_cannot_be_trusted_are_refused(place, web):
    it, thief = place(), web(Web)
    it.until("logged_out", "failed")
    metadata, resource, challenge, iss = dict(it.authorization.metadata), dict(it.mcp.resource), it.mcp.metadata_url, it.authorization.iss
    paths = dict(it.authorization.paths)
    for lie, words in lies(thief).items():
        it.authorization.metadata, it.mcp.resource, it.mcp.metadata_url, it.authorization.iss = dict(metadata), dict(resource), challenge, iss
        it.authorization.paths = dict(paths)
        lie(it)
        said = it.log_in(status=1)
        assert words in said, (lie.__name__, said)
        assert not it.authorization.tokens and not thief.requests, lie.__name__
    assert json.loads(it.run("list", "--json"))["servers"][0]["login"] == "logged_out"


def test_a_token_goes_to_its_server_alone(place, web):
    it, thief = place(client_id="known"), web(Web)
    it.authorization.clients["known"] = type("Any", (), {"__contains__": lambda *_: True})()
    it.log_in()
    it.until("logged_in", "ready")
    # The server redirects its requests ...
    answer = it.mcp.paths["/mcp"]
    it.mcp.paths["/mcp"] = redirect(307, thief.url + "/mcp")
    assert it.result("echo", {"text": "x"})["is_error"]
    it.mcp.paths["/mcp"] = answer
    assert not thief.requests
    # ... names another authorization server although a client id is configured ...
    other = web(AuthorizationServer)
    it.mcp.resource["authorization_servers"] = [other.issuer]
    it.authorization.tokens.clear()
    it.authorization.refresh_tokens.clear()
    assert "auth.issuer" in it.log_in(status=1)
    assert not other.asked("/authorize") and not other.asked("/token")
    # ... or another server has its name in the configuration.
    it.server.stop()
    config = json.loads((it.home.path / "server.json").read_text())
    config["mcpServers"]["tickets"]["url"] = thief.url + "/mcp"
    (it.home.path / "server.json").write_text(json.dumps(config))
    assert json.loads(it.run("list", "--json"))["servers"][0]["login"] == "logged_out"
    it.run("test", "tickets", status=1)
    assert thief.requests and not any("authorization" in headers for _, _, headers, _ in thief.requests)


def test_a_damaged_file_of_log_ins_is_set_aside(place):
    it = place()
    it.log_in()
    it.until("logged_in", "ready")
    it.server.stop()
    file = it.home.data / ".mcp_logins"
    file.write_text("{}")
    assert "cannot be read" in it.run("list")
    it.log_in()
    assert "logged in" in it.run("list") and list(it.home.data.glob(".mcp_logins.damaged.*"))


def test_a_server_is_added_to_the_configuration(make_home):
    home = make_home()
    file = home.path / "reprise.json"

    def run(*arguments, status=0):
        done = subprocess.run([str(BINARY), "mcp", *arguments], env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=20 * SLACK, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    own = home.config / "reprise" / "reprise.json"
    assert str(own) in run("add", "tickets", "--url", "https://example.org/mcp", "--client-id", "abc")
    run("add", "local", "--", "python3", "server.py", "--flag")
    assert json.loads(own.read_text()) == {"mcpServers": {"tickets": {"url": "https://example.org/mcp", "auth": {"type": "oauth", "client_id": "abc"}},
                                                          "local": {"command": "python3", "args": ["server.py", "--flag"]}}}
    assert "--force" in run("add", "local", "--", "other", status=2)
    assert "https" in run("add", "bad", "--url", "http://example.org/mcp", "--oauth", status=2)
    run("add", "both", "--url", "https://example.org/mcp", "--", "x", status=2)
    run("add", "none", status=2)
    assert "no MCP server nobody" in run("login", "nobody", status=1)
    assert "nobody logs in" in run("login", "local", status=2)
    own.write_text('{ // mine\n "mcpServers": {} }')
    before = own.read_text()
    assert "has comments" in run("add", "third", "--url", "https://example.org/mcp", status=1)
    assert own.read_text() == before
    assert file.exists() is False
