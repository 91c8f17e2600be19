"""An MCP server of revision 2026-07-28 that requires tokens, the authorization server that issues them, and a person with a browser.

Both servers are on loopback and follow the protocol, except for what a test changes: members of `metadata` and `resource`, `answer` of a path."""
import base64
import hashlib
import http.client
import http.server
import json
import secrets
import threading
import urllib.parse


class Web:
    """An HTTP server whose paths are functions of the request. It records every request: (method, path, headers, body)."""

    def __init__(self):
        self.requests, self.paths, self.open = [], {}, []
        web = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                path, _, query = self.path.partition("?")
                web.requests.append((self.command, path, {k.lower(): v for k, v in self.headers.items()}, body))
                found = web.paths.get(path)
                status, headers, answer = found(self.command, query, {k.lower(): v for k, v in self.headers.items()}, body) if found else (404, {}, "")
                data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = serve

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def asked(self, path):
        return [request for request in self.requests if request[1] == path]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def redirect(status, url):
    return lambda *_: (status, {"Location": url}, "")


class AuthorizationServer(Web):
    def __init__(self):
        super().__init__()
        self.issuer = self.url
        self.metadata = {"issuer": self.issuer, "authorization_endpoint": self.url + "/authorize", "token_endpoint": self.url + "/token",
                         "registration_endpoint": self.url + "/register", "code_challenge_methods_supported": ["S256"],
                         "token_endpoint_auth_methods_supported": ["none"], "authorization_response_iss_parameter_supported": True,
                         "scopes_supported": ["tools", "admin", "offline_access"]}
        self.iss = self.issuer  # its `iss` in answers to log-ins
        self.clients, self.codes, self.refresh_tokens, self.tokens = {}, {}, {}, {}  # tokens: what each is valid for
        self.paths = {"/.well-known/oauth-authorization-server": lambda *_: (200, {}, self.metadata), "/register": self.register,
                      "/authorize": self.authorize, "/token": self.token}

    def register(self, _, __, ___, body):
        client = "client-" + secrets.token_hex(4)
        self.clients[client] = json.loads(body)["redirect_uris"]
        return 201, {}, {**json.loads(body), "client_id": client}

    def authorize(self, _, query, __, ___):
        asked = dict(urllib.parse.parse_qsl(query))
        assert asked["redirect_uri"] in self.clients[asked["client_id"]] and asked["code_challenge_method"] == "S256" and len(asked["state"]) > 30
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        answer = {"code": code, "state": asked["state"], **({"iss": self.iss} if self.iss else {})}
        return 302, {"Location": asked["redirect_uri"] + "?" + urllib.parse.urlencode(answer)}, ""

    def token(self, _, __, ___, body):
        form = dict(urllib.parse.parse_qsl(body))
        if form["grant_type"] == "authorization_code":
            asked = self.codes.pop(form["code"])
            challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
            assert challenge == asked["code_challenge"] and form["redirect_uri"] == asked["redirect_uri"] and form["client_id"] == asked["client_id"]
            given = {"scope": asked.get("scope", ""), "resource": form["resource"]}
        else:
            given = self.refresh_tokens.pop(form["refresh_token"], None)  # valid once
            if not given:
                return 400, {}, {"error": "invalid_grant"}
        assert form["resource"] == given["resource"]
        token, refresh = "mcp-token-" + secrets.token_hex(12), "mcp-refresh-" + secrets.token_hex(12)
        self.tokens[token], self.refresh_tokens[refresh] = given, given
        return 200, {}, {"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh, "scope": given["scope"]}


TOOLS = [{"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
         {"name": "admin", "inputSchema": {"type": "object"}}, {"name": "asks", "inputSchema": {"type": "object"}}]


class ProtectedServer(Web):
    def __init__(self, authorization):
        super().__init__()
        self.authorization, self.address = authorization, self.url + "/mcp"
        self.resource = {"resource": self.address, "authorization_servers": [authorization.issuer], "scopes_supported": ["tools"]}
        self.metadata_url = self.url + "/.well-known/oauth-protected-resource/mcp"
        self.challenge = lambda: f'Bearer resource_metadata="{self.metadata_url}", scope="tools"'
        self.rounds = 0  # how often `asks` has asked
        self.paths = {"/.well-known/oauth-protected-resource/mcp": lambda *_: (200, {}, self.resource), "/mcp": self.answer}

    def answer(self, method, _, headers, body):
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if token not in self.authorization.tokens:
            return 401, {"WWW-Authenticate": self.challenge()}, ""
        if method != "POST":
            return 405, {}, ""
        request = json.loads(body)
        assert headers["mcp-protocol-version"] == "2026-07-28" and headers["mcp-method"] == request["method"]
        params, result = request["params"], {"resultType": "complete"}
        assert params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        if request["method"] == "server/discover":
            result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": {"name": "protected", "version": "1"}}
        elif request["method"] == "tools/list":
            result |= {"tools": TOOLS, "ttlMs": 60_000, "cacheScope": "private"}
        elif params["name"] == "asks":  # asks forever
            self.rounds += 1
            schema = {"type": "object", "properties": {"name": {"type": "string"}}}
            result = {"resultType": "input_required", "requestState": str(self.rounds),
                      "inputRequests": {"who": {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?", "requestedSchema": schema}}}}
        elif params["name"] == "admin" and "admin" not in self.authorization.tokens[token]["scope"].split():
            return 403, {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="admin"'}, ""
        else:
            result |= {"content": [{"type": "text", "text": params["arguments"].get("text", "done")}]}
        return 200, {}, {"jsonrpc": "2.0", "id": request["id"], "result": result}


def open_page(url):
    """Opens a page as a browser in which the person is already logged in: (status, text) of the final page."""
    for _ in range(5):
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        try:
            connection.request("GET", parts.path + ("?" + parts.query if parts.query else ""))
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        if response.status != 302:
            return response.status, text
        url = response.headers["Location"]
    raise AssertionError("too many redirects")
