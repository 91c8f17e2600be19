"""openapi.json against the server: thousands of generated requests, valid and broken, must get the answers that it documents.

Requests for each operation are made from the document's own schemas, most of them changed in one way: ids, bodies, queries, headers,
methods. An answer must have a status that the document lists for that operation, with a body of the type and schema listed for that
status. If a request is wrong in an obvious way (a body twice too long, a duplicate member), only the matching status is right.

  REPRISE_CONTRACT_REQUESTS=100000 REPRISE_CONTRACT_SEED=7     more requests, and others
"""
import collections
import http.client
import json
import os
import random
import re
import socket

import jsonschema
import pytest
from support import schemas
from support.client import UNNUMBERED, SseParser
from support.feed import check_frame
from support.timing import SOON, eventually

REQUESTS = int(os.environ.get("REPRISE_CONTRACT_REQUESTS", "3000"))
SEED = int(os.environ.get("REPRISE_CONTRACT_SEED", "20261122"))
METHODS = ("get", "post", "put", "patch", "delete")
MESSAGES = ["echo hello", "calculate 1+2", "time", "list", "task: Buy milk", "hello", "naïve 🙂 text", "echo a\necho b", "x" * 3000]
WORDS = ["", "a", "Trip", "naïve 🙂", "x" * 199, "x" * 200, "\u202e\u0000", "null", "-1"]
# Chats in which a run waits for a person, or would again. A request that waits for the end of such a run might never be answered.
ASKING = ("asks", "asked", "writes", "queued", "granted", "works")
# Cannot succeed here: no run is interrupted, no provider can speak or listen, and no editor stays connected.
OUT_OF_REACH = {"resume", "answerEditorRequest", "offerEditorTools", "speak", "transcribe", "createSpeech", "createTranscription", "readRequest", "endMcpSession",
                "loginAtServer", "logoutAtServer", "blameFile", "connectProvider", "disconnectProvider",
                "removeToolServer", "testToolServer", "removeRule", "addDevice", "removeDevice"}
# The codes that a body outside its schema must get.
WORKS_ON = "8765"  # the port of a job
REFUSED_BY_FORM = {"invalid_body", "invalid_member", "unknown_member", "missing_required_parameter", "unsupported_value"}
# Checking these takes long, because their schemas allow thirty kinds of event; so only some are checked.
SLOW = {"chat_history", "interaction", "events_page"}


class Contract:
    """The document; checks answers against it."""

    def __init__(self, document):
        self.document = document
        self.operations = [(path, method, item[method]) for path, item in document["paths"].items() for method in METHODS if method in item]
        self.validators = {}
        self.checked = collections.Counter()

    def resolve(self, node):
        while "$ref" in node:
            reference, node = node["$ref"], self.document
            for step in reference[2:].split("/"):
                node = node[step]
        return node

    def parameters(self, operation, place):
        return [p for p in map(self.resolve, operation.get("parameters", [])) if p["in"] == place]

    def complaint(self, schema, value):
        """Why a value does not satisfy the schema, or None."""
        key = json.dumps(schema, sort_keys=True)
        if key not in self.validators:
            self.validators[key] = jsonschema.Draft202012Validator({**schema, "components": self.document["components"]})
        error = next(self.validators[key].iter_errors(value), None)
        return error and f"{list(error.absolute_path)}: {error.message[:200]}"

    def problem(self, operation, answer):
        """How this answer differs from the document, or None."""
        listed = operation["responses"].get(str(answer.status))
        if listed is None:
            return f"status {answer.status} is not listed"
        content = self.resolve(listed).get("content", {})
        kind = (answer.type or "").split(";")[0]
        if not content:
            return f"a body where none is listed: {answer.body[:80]!r}" if answer.body else None
        if kind not in content and "*/*" not in content:
            return f"{answer.status} is {kind or 'of no type'}, not {list(content)}"
        if answer.head or kind != "application/json" or kind not in content:
            return None
        schema = content[kind]["schema"]
        name = schema.get("$ref", "").rsplit("/", 1)[-1]
        self.checked[name] += 1
        if name in SLOW and self.checked[name] > 40 and self.checked[name] % 10:
            return None
        wrong = self.complaint(schema, json.loads(answer.body))
        return wrong and f"{answer.status}: {wrong}"


class Answer:
    def __init__(self, response, method):
        self.status = response.status
        self.type = response.headers.get("Content-Type")
        self.headers = response.headers
        self.head = method == "HEAD"
        self.stream = self.type == "text/event-stream"
        self.body = b"" if self.stream else response.read()

    @property
    def code(self):
        return json.loads(self.body)["error"]["code"] if self.status >= 400 else None


def send(port, method, target, headers, body, version="HTTP/1.1"):
    """Sends one request, byte for byte, on its own connection. None if no answer came."""
    lines = [f"{method} {target} {version}", *(f"{name}: {value}" for name, value in headers)]
    with socket.create_connection(("127.0.0.1", port), timeout=SOON) as connection:
        try:
            connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before it was complete; there may be an answer all the same
        response = http.client.HTTPResponse(connection, method=method)
        try:
            response.begin()
            answer = Answer(response, method)
            if answer.stream and not target.startswith(("/v1/", "/agui")) and "/editor" not in target:
                check_first_event(connection, response)
            return answer
        except (OSError, http.client.HTTPException):
            return None


def check_first_event(connection, response):
    """Checks the first event of a stream, if it comes at once."""
    connection.settimeout(0.02)
    parser, events = SseParser(), []
    try:
        while not events and (data := response.read1(65536)):
            events += parser.feed(data)
    except TimeoutError:
        pass
    for event in events:
        if isinstance(event.seq, str):
            check_frame(event.name, event.data)
        elif event.name not in UNNUMBERED:
            schemas.check_event(event.data)


class World:
    """The ids that a request can name. Restored from time to time, because requests change and delete them."""

    def __init__(self, client, rng):
        self.client = client
        self.rng = rng
        self.count = 0
        self.asked = {}  # by chat: the interaction that waits, and the id of its approval or question

    def refresh(self):
        for entry in self.client.get("/chats?limit=500").json["chats"]:
            if entry["id"] not in ("talk", *ASKING):
                self.client.request("DELETE", f"/chats/{entry['id']}")
        self.chats = {}
        self._talk()
        self._ask("asks", "run: true #{}", "approval_required")
        self._ask("asked", "ask: Which {}?", "input_required")
        self._ask("writes", "write notes.txt: text {}", "approval_required")
        self._ask("queued", "run: true #{}", "approval_required")
        in_chat = self.client.get("/chats/granted/grants")
        self._grant("granted", "chat", in_chat.status == 200 and in_chat.json["grants"])
        self._grant("granted", "always", self.client.get("/grants").json["grants"])
        self._work("works")
        if len(self.client.get("/chats/queued/queue").json["queue"]) < 2:
            stream = self.client.start("queued", "echo later", if_running="queue", on_disconnect="continue")
            stream.next()
            stream.close()
        for chat in self.chats:
            self.chats[chat] = {
                "interaction_id": [i["id"] for i in self.client.get(f"/chats/{chat}?branches=all").json["interactions"]],
                "file_id": [f["id"] for f in self.client.get(f"/chats/{chat}/files").json["files"]],
                "job_id": [j["id"] for j in self.client.get(f"/chats/{chat}/jobs").json["jobs"]][-1:],
                "queue_id": [q["id"] for q in self.client.get(f"/chats/{chat}/queue").json["queue"]],
                "grant_id": [g["id"] for g in self.client.get(f"/chats/{chat}/grants").json["grants"]]}
        self.instructions = self.client.get("/instructions").json["files"]
        self.workspace = self.client.get("/tools").json["workspace"]
        self.approvals = [a["approval_id"] for a in self.client.get("/approvals").json["approvals"]]
        self.grants = [g["id"] for g in self.client.get("/grants").json["grants"]]
        self.trash = [entry["id"] for entry in self.client.get("/trash").json["entries"] if entry["chat_id"] not in ("talk", *ASKING)][:30]

    def _talk(self):
        self.chats["talk"] = {}
        history = self.client.get("/chats/talk")
        if history.status == 200 and len(history.json["interactions"]) > 25:
            self.client.request("DELETE", "/chats/talk")
            history = None
        if history is None or history.status != 200 or len(history.json["interactions"]) < 3:
            for message in MESSAGES[:3]:
                self.client.post("/chats/talk/interactions", {"user_message": message, "stream": False, "if_running": "cancel"})
        if len(self.client.get("/chats/talk/files").json["files"]) < 2:
            self.client.request("POST", "/chats/talk/files?name=a.txt", b"some words", headers={"Content-Type": "text/plain"})

    def _ask(self, chat, message, until):
        self.chats[chat] = {}
        waiting = self.client.get(f"/chats/{chat}")
        if waiting.status == 200 and len(waiting.json["interactions"]) > 25:
            self.client.request("DELETE", f"/chats/{chat}")
        elif waiting.status == 200 and any(i["status"].startswith("WAITING") for i in waiting.json["interactions"]):
            return
        self.count += 1
        stream = self.client.start(chat, message.format(self.count), if_running="cancel", on_disconnect="continue")
        event = stream.until(until)
        self.asked[chat] = (stream.interaction, event[until.replace("approval_required", "approval_id").replace("input_required", "request_id")])
        stream.close()

    def _grant(self, chat, scope, granted):
        self.chats[chat] = {}
        if granted:
            return
        self.count += 1
        stream = self.client.start(chat, f"run: true #{self.count}", if_running="cancel")
        approval = stream.until("approval_required")
        self.client.approve(chat, stream.interaction, approval["approval_id"], scope=scope).expect(200)
        stream.finish()

    def _work(self, chat):
        """A chat with a background job that listens on a port."""
        self.chats[chat] = {}
        jobs = self.client.get(f"/chats/{chat}/jobs")
        if jobs.status == 200 and any(job["running"] for job in jobs.json["jobs"]):
            return
        self.client.request("DELETE", f"/chats/{chat}")  # what waits there would answer first
        stream = self.client.start(chat, 'call run_shell {"command": "exec python3 -m http.server ' + WORKS_ON + '", "background": true}', if_running="cancel")
        self.client.approve(chat, stream.interaction, stream.until("approval_required")["approval_id"]).expect(200)
        stream.finish()
        eventually(lambda: all(job["ports"] for job in self.client.get(f"/chats/{chat}/jobs").json["jobs"] if job["running"]), "the job listens")

    def pick(self, name, chat):
        if name == "response_id":
            return f"resp_{chat}_{self.pick('interaction_id', chat)}"
        if name == "item_id":
            return f"msg_{chat}_{self.pick('interaction_id', chat)}_input"
        if name == "model":
            return "offline"
        known = {"approval_id": self.approvals, "chat_id": [chat], "conversation_id": [chat], "port": [WORKS_ON], "trash_id": self.trash, "grant_id": self.chats[chat]["grant_id"] + self.grants}.get(name)
        if name == "asset":
            known = re.findall(r"/assets/([^\"]+)", self.client.get("/").expect(200).body.decode())
        known = self.chats[chat].get(name, []) if known is None else known
        return self.rng.choice(known) if known else self.unknown(name)

    @staticmethod
    def unknown(name):
        return {"chat_id": "nobody", "interaction_id": "int_987"}.get(name, f"{name.removesuffix('_id')}_{'0' * 32}")


def bad_id(rng):
    return rng.choice(["%20", "a%2Fb", "..%2f..", "%00", "a" * 65, "a" * 1500, "int_", "%F0%9F%99%82", "-", "file_", ".hidden", "INT_001", "'", "int_1e3"])


def instance(contract, rng, schema, name, make_known):
    """A random value that satisfies the schema, for the keywords that our schemas use."""
    known = make_known(name)
    if known is not None:
        return known
    schema = contract.resolve(schema)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kinds = schema.get("type", "object")
    kind = rng.choice(kinds) if isinstance(kinds, list) else kinds
    if kind == "null":
        return None
    if kind == "object":
        required = schema.get("required", [])
        members = [m for m in schema.get("properties", {}) if m in required or rng.random() < 0.4]
        if schema.get("minProperties") and not members:
            members = [rng.choice(list(schema["properties"]))]
        return {m: instance(contract, rng, schema["properties"][m], m, make_known) for m in members}
    if kind == "array":
        return [instance(contract, rng, schema.get("items", {}), name, make_known) for _ in range(rng.choice([0, 1, 2]))]
    if kind == "boolean":
        return rng.random() < 0.5
    if kind in ("integer", "number"):
        low = schema.get("minimum", 0)
        return rng.choice([low, low + 1, schema.get("maximum", 100)])
    fitting = [w for w in WORDS if schema.get("minLength", 0) <= len(w) <= schema.get("maxLength", 10**9)]
    return rng.choice(fitting or ["A" * schema.get("minLength", 0)])


class Generator:
    def __init__(self, contract, world, rng, port):
        self.contract, self.world, self.rng, self.port = contract, world, rng, port
        self.wanting = [operation for operation in contract.operations if operation[2]["operationId"] not in OUT_OF_REACH]  # operations that have not succeeded yet

    def known(self, chat, path_ids):
        """Makes members whose values have a meaning, or could do what a test must not."""
        def make(name):
            rng, world = self.rng, self.world
            if name in ("user_message", "new_user_message"):
                return rng.choice(MESSAGES)
            if name == "model":
                return "offline"
            if name == "attachments":
                return rng.sample(world.chats[chat]["file_id"], k=min(len(world.chats[chat]["file_id"]), rng.choice([0, 1])))
            if name == "arguments":
                return rng.choice([{"command": "true"}, '{"command": "true"}', {}])
            if name == "arguments_digest":
                return "sha256:" + "0" * 64
            if name == "approval_id":
                return path_ids.get(name) or (self.asked_of(chat, path_ids) if chat != "asked" else None) or world.pick(name, chat)
            if name == "request_id":
                return (self.asked_of(chat, path_ids) if chat == "asked" else None) or "request_" + "0" * 32
            if name == "interaction_id":
                return world.pick(name, chat)
            if name == "workspace":
                return rng.choice([world.workspace, "/no/such/folder", "/"])
            if name == "roots":
                return []
            if name == "base_url":
                return "http://127.0.0.1:9/v1"  # nobody listens there
            if name in ("chat_id", "id"):
                return f"made_{rng.randrange(30)}"
            return None
        return make

    def asked_of(self, chat, path_ids):
        """The id of the open approval or question of the interaction in the path, or None."""
        interaction, asked = self.world.asked.get(chat, (None, None))
        return asked if interaction == path_ids.get("interaction_id") else None

    def body(self, path, operation, chat, path_ids):
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        value = instance(self.contract, self.rng, schema, "", self.known(chat, path_ids))
        # Conditions that the schemas cannot express.
        if chat in ASKING and path.endswith(("/interactions", "/edit", "/regenerate", "/resume")):
            value["stream"] = True
        if value.get("if_running") == "queue":
            value.pop("attachments", None)
            value.pop("compact", None)
        whole = self.rng.random() < 0.7  # otherwise the body may be invalid, and is then refused
        if path == "/v1/chat/completions" and whole:
            value["messages"] = [{"role": "user", "content": self.rng.choice(MESSAGES)}]
        if path == "/agui":
            value["messages"] = [{"id": "m", "role": "user", "content": self.rng.choice(MESSAGES)}]
        if "items" in value and path.startswith("/v1/conversations"):
            value["items"] = [{"role": "user", "content": self.rng.choice(MESSAGES)}]
        if path in ("/v1/responses", "/v1/responses/input_tokens") and whole:
            value = {m: v for m, v in value.items() if m not in ("previous_response_id", "conversation")} | {"input": self.rng.choice(MESSAGES)}
        if path.startswith("/v1/") and whole:
            value.pop("tools", None)
        if operation["operationId"] == "addToolServer":  # nobody listens there, and no program runs
            value = {m: v for m, v in value.items() if m not in ("auth", "command", "args", "env", "cwd")} | {"url": "http://127.0.0.1:9/mcp"}
            if whole:
                value.pop("headers", None)
        if operation["operationId"] == "addRule":  # of a tool that nothing here needs
            value = {"tool": "stop_job", "action": self.rng.choice(["ask", "deny"] if whole else ["allow"])}
        if path == "/instructions/trust":
            value = self.rng.choice([{m: each[m] for m in value} for each in self.world.instructions])
        if path == "/instructions/expand" and whole:
            value["command"] = self.rng.choice(["say", "none"])
        if path.endswith("/workspace/files"):
            value = {"path": self.rng.choice(["AGENTS.md", "./AGENTS.md", "none.txt", "..", "."])}
        if path.endswith("/replay"):
            value["mode"] = "recorded" if chat in ASKING and value["mode"] == "live" else value["mode"]
            if value["mode"] != "events" and whole:
                value.pop("speed", None)
        if path.endswith("/respond") and whole:
            value.pop(self.rng.choice(["response", "declined"]), None)
            if not value.get("declined"):
                value.pop("declined", None)
                value["response"] = value.get("response") or "blue"
        if (path.endswith("/approve") or path.startswith("/approvals/")) and whole:
            value.pop("outside_sandbox", None)  # is only for calls that offer it
        if path.endswith("/tasks"):
            for task in value.get("tasks", []):
                task.pop("id", None)  # must differ
        return schema, value

    def request(self):
        """(operation, what was changed, request, statuses it must have or None)"""
        rng = self.rng
        wanted = self.wanting and rng.random() < 0.1
        path, method, operation = rng.choice(self.wanting if wanted else self.contract.operations)
        chat = rng.choice(list(self.world.chats))
        if method == "delete" and path in ("/chats/{chat_id}", "/v1/conversations/{conversation_id}") and rng.random() < 0.8:
            chat = rng.choice(["talk", "nobody", "made_1"])
            if chat not in self.world.chats:
                self.world.chats[chat] = collections.defaultdict(list)
        if path.endswith(("/approve", "/respond")) and rng.random() < 0.7:
            chat = "asked" if path.endswith("/respond") else rng.choice(["asks", "queued"])
        if "{queue_id}" in path and rng.random() < 0.7:
            chat = "queued"
        if "{chat_id}/grants" in path and rng.random() < 0.7:
            chat = "granted"
        ids = {p["name"]: self.world.pick(p["name"], chat) for p in self.contract.parameters(operation, "path")}
        if path.endswith(("/approve", "/respond")) and chat in self.world.asked and rng.random() < 0.7:
            ids["interaction_id"] = self.world.asked[chat][0]
        headers = [("Host", f"127.0.0.1:{self.port}")]
        verb, expected, valid = method.upper(), None, True
        query = {}
        for parameter in self.contract.parameters(operation, "query"):
            if rng.random() < 0.3:
                query[parameter["name"]] = instance(self.contract, rng, parameter["schema"], "", lambda _, of=parameter["name"]: self.world.workspace if of == "workspace" else None)
        if path == "/chats" and "cursor" in query:
            query.pop("cursor")
        for parameter in self.contract.parameters(operation, "header"):
            if rng.random() < 0.2:
                meant = {"Reprise-Workspace": self.world.workspace, "Reprise-Approval-Mode": "ask", "Reprise-Model": "offline"}
                headers.append((parameter["name"], meant.get(parameter["name"]) or str(rng.choice([0, 1, 3]))))
        takes_json = "application/json" in operation.get("requestBody", {}).get("content", {})
        takes_file = "requestBody" in operation and not takes_json
        schema, value, body = None, None, None
        if takes_json:
            schema, value = self.body(path, operation, chat, ids)
            body = json.dumps(value, ensure_ascii=rng.random() < 0.5).encode()
        elif takes_file:
            body = rng.randbytes(rng.choice([0, 1, 3000]))
        kind = "application/json" if takes_json else "text/plain" if takes_file else None

        # Changes that affect every operation alike are drawn less often than those of an operation's own input.
        general = ["method", "host", "origin", "long_target", "long_header", "many_headers", "percent", "folded", "version", "get_body"]
        ways = ["valid", "valid", "valid", "valid", rng.choice(general), rng.choice(general), "accept", "query"]
        names_new = operation["operationId"] in ("connectProvider", "addToolServer")  # any name is one of what is to be connected
        ways += ["unknown_id", "bad_id"] if ids and not names_new else []
        ways += ["type", "member", "extra", "missing", "text", "duplicate", "utf8", "deep", "huge", "kind", "encoding", "expect", "null",
                 "framing"] if takes_json else []
        ways += ["huge_file", "encoding", "form"] if takes_file else []
        if path in ("/import", "/v1/chat/completions", "/v1/responses", "/v1/responses/input_tokens", "/v1/conversations", "/agui") or path.endswith("/items") or "/editor" in path:  # their limit on bodies is higher
            ways = [way for way in ways if way not in ("huge", "framing")]
        if path.endswith("/audio/transcriptions"):  # a recording may be larger than a file
            ways.remove("huge_file")
        way = "valid" if wanted else rng.choice(ways)
        if way == "unknown_id":
            name = rng.choice(list(ids))
            ids[name] = self.world.unknown(name)
        elif way == "bad_id":
            name = rng.choice(list(ids))
            ids[name] = bad_id(rng)
            if name != "chat_id" or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", ids[name]):
                expected = {400, 404, 409}  # 409: the chat is busy
        elif way == "method":
            documented = {m.upper() for m in self.contract.document["paths"][path] if m in METHODS}
            verb = rng.choice([v for v in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD") if v not in documented])
            body = None
            if verb != "HEAD" or "GET" not in documented:
                expected = {405}
            if verb == "HEAD" and "GET" in documented:
                operation = self.contract.document["paths"][path]["get"]
        elif way == "accept":
            headers.append(("Accept", rng.choice(["text/event-stream", "application/json", "text/html", "*/*", "text/event-stream;q=0", ",;,", "x"])))
        elif way == "host":
            headers[0], expected = ("Host", rng.choice(["evil.example", f"evil.example:{self.port}", "127.0.0.1:1", ""])), {403}
        elif way == "origin":
            headers.append(rng.choice([("Origin", "https://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")]))
            expected = {403}
        elif way == "long_target":
            query["x"], expected = "y" * 3000, {414}
        elif way == "long_header":
            headers.append(("X-Long", "y" * 20000))
            expected = {431}
        elif way == "many_headers":
            headers += [("X-Many", "y")] * 101
            expected = {431}
        elif way == "folded":
            headers.append(("X-Folded", "a\r\n b"))
            expected = {400}
        elif way == "get_body" and method == "get":
            body, kind = rng.choice([(b"{}", "application/json"), (b"x" * (2 << 20), "application/json"), (b"{}", "text/plain"), (b"{", "application/json")])
        elif way == "query":
            parameters = self.contract.parameters(operation, "query") or [{"name": "nothing"}]
            query[rng.choice(parameters)["name"]] = rng.choice(["", "-1", "0", "x", "%zz", "9" * 30, "1.5", "%00", "a&a=b"])
        elif way in ("type", "member"):
            target = rng.choice(list(value) or ["extra"])
            value[target] = rng.choice([None, True, 17, -1.5, "text", [], {}, [[]], {"a": 1}]) if way == "member" else {"nested": [target]}
            body = json.dumps(value).encode()
        elif way == "extra":
            value["no_such_member"] = 1
            body = json.dumps(value).encode()
        elif way == "missing" and value:
            value.pop(rng.choice(list(value)))
            body = json.dumps(value).encode()
        elif way == "text":
            body, value = rng.choice([b"{", b"nothing", b"[]", b'"text"', b"17", b"{}{}", b'{"a":1,}', b"{'a':1}", b'{"a":01}', b"{\x00}"]), None
            expected = {400}
        elif way == "duplicate":
            name = rng.choice(list(value) or ["x"])
            body = body[:-1] + (b", " if value else b"") + json.dumps(name).encode() + b": " + json.dumps(value.get(name, 1)).encode() + b"}"
            if value:
                value, expected = None, {400}
        elif way == "utf8":
            body, value, expected = b'{"user_message": "a\xc3"}', None, {400}
        elif way == "deep":
            depth = rng.choice([65, 500, 100000])
            body, value, expected = b'{"a":' * depth + b"1" + b"}" * depth, None, {400}
        elif way == "huge":
            body, value, expected = b'{"user_message": "' + b"x" * (1 << 20) + b'"}', None, {413}
        elif way == "huge_file":
            body, expected = b"x" * (11 << 20), {413}
        elif way == "kind":
            kind, expected = rng.choice([None, "text/plain", "application/xml", "application/x-www-form-urlencoded", "json", ""]), {415}
        elif way == "encoding" and body:
            headers.append(("Content-Encoding", rng.choice(["gzip", "br", "x"])))
            expected = {415}
        elif way == "expect":
            headers.append(("Expect", "something"))
            expected = {417}
        elif way == "form":
            body = rng.choice([b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n--b--\r\n", b"--b\r\n\r\n--b--", b"", b"--b--"])
            kind = rng.choice(["multipart/form-data; boundary=b", "multipart/form-data", "multipart/form-data; boundary=\"b"])
        elif way == "null":
            optional = [m for m in value if m not in self.contract.resolve(schema).get("required", [])]
            if optional:
                value[rng.choice(optional)] = None
            body, value = json.dumps(value).encode(), None

        target = path
        for name, text in ids.items():
            target = target.replace("{" + name + "}", text)
        if way == "percent":
            target, expected = target + "%zz", {400}
        if "user" in query and way == "bad_id" and expected:
            expected = {*expected, 403}  # only admins of an org may name a user
        if query:
            target += "?" + "&".join(f"{k}={str(v).replace(' ', '%20').encode('ascii', 'ignore').decode()}" if way == "query" else f"{k}={quote(v)}"
                                     for k, v in query.items())
        if body is not None:
            if kind is not None:
                headers.append(("Content-Type", kind))
            if way == "framing":
                bad, expected = rng.choice([(b"5;x=y\r\nhello\r\n0\r\n\r\n", {400}), (b"0\r\nX-Late: 1\r\n\r\n", {400}), (b"2\n{}\n0\n\n", {400}),
                                            (b"2\r\n{}\r\n0\r\n\r\n", None), (b"200000\r\n", {413})])
                headers.append(("Transfer-Encoding", "chunked"))
                body, value = bad, None
            else:
                headers.append(("Content-Length", str(len(body))))
        if value is not None:
            optional = {m: v for m, v in value.items() if v is not None}  # null counts as absent, or has a meaning of its own
            valid = self.contract.complaint(schema, optional) is None or self.contract.complaint(schema, value) is None
        version = "HTTP/1.1"
        if way == "version":
            version, expected = rng.choice(["HTTP/2.0", "HTTP/3", "HTTP/0.9"]), {505}
        return operation, path, way, (verb, target, headers, body, version), expected, valid


def quote(value):
    return "".join(chr(b) if chr(b).isalnum() and b < 128 else f"%{b:02X}" for b in str(value).encode("utf-8", "surrogatepass"))


@pytest.mark.limit(120 + REQUESTS // 10)
def test_every_answer_is_one_that_the_document_lists(make_server, figure):
    server = make_server(config={"disconnect_grace_s": 0, "tools": {"limits": {"memory_mb": 0}}})
    server.check_records = False  # broken requests leave odd chats, and other tests check records
    rng = random.Random(SEED)
    document = server.client.get("/openapi.json").json
    contract = Contract(document)
    (server.home.workspace / "AGENTS.md").write_text("Answer in one short sentence.")
    commands = server.home.config / "reprise" / "commands"
    commands.mkdir(parents=True, exist_ok=True, mode=0o700)
    (commands / "say.md").write_text("say $ARGUMENTS")
    (commands / "say.md").chmod(0o600)
    world = World(server.client, rng)
    generator = Generator(contract, world, rng, server.port)
    problems, seen = collections.OrderedDict(), collections.Counter()
    for number in range(REQUESTS):
        if number % 60 == 0:
            world.refresh()
        operation, path, way, request, expected, valid = generator.request()
        answer = send(server.port, *request)
        wrong = None
        if answer is None:
            wrong = "no answer"
        elif expected == {405}:
            allowed = {m.strip() for m in answer.headers.get("Allow", "").split(",")}
            documented = {m.upper() for m in document["paths"][path] if m in METHODS}
            if answer.status != 405 or allowed - {"HEAD"} != documented:
                wrong = f"{answer.status} with Allow {allowed} where {documented} are documented"
        else:
            seen[(operation["operationId"], answer.status)] += 1
            if answer.status < 300:
                generator.wanting = [each for each in generator.wanting if each[2] is not operation]
            wrong = contract.problem(operation, answer)
            if not wrong and expected and answer.status not in expected:
                wrong = f"{answer.status} instead of {expected}"
            if not wrong and not valid and answer.status < 400:
                wrong = f"{answer.status} for a body that the document does not allow"
            if not wrong and valid and way == "valid" and answer.status == 400 and answer.code in REFUSED_BY_FORM:
                wrong = f"400 {answer.body[:200]!r} for a body that the document allows"
            if not wrong and not answer.headers.get("X-Request-Id"):
                wrong = "no X-Request-Id"
            if answer.head and answer.body:
                wrong = "a body for HEAD"
        if wrong:
            verb, target, headers, body, _ = request
            problems.setdefault((operation["operationId"], way, wrong[:60]), f"{verb} {target[:200]} {headers[1:5]!r:.300} {body!r:.300}\n    {wrong}")
    server.client.get("/healthz").expect(200)
    figure(f"contract: {REQUESTS} requests, seed {SEED}, {len(seen)} pairs of operation and status")
    listing = "\n".join(f"{operation} ({way}): {text}" for (operation, way, _), text in problems.items())
    assert not problems, f"{len(problems)} kinds of problem, seed {SEED}:\n{listing[:20000]}"
    operations = {operation["operationId"] for _, _, operation in contract.operations}
    succeeded = {operation for operation, status in seen if status < 300}
    assert REQUESTS < 3000 or operations - succeeded <= OUT_OF_REACH, sorted(operations - succeeded - OUT_OF_REACH)


def test_the_document_is_one_that_generators_can_use(offline):
    """Problems that validators and code generators of OpenAPI stumble over."""
    document = offline.client.get("/openapi.json").expect(200).json
    assert [s["url"] for s in document["servers"]] == ["/"]  # relative, because ports and names differ
    contract = Contract(document)
    names = [operation["operationId"] for _, _, operation in contract.operations]
    assert len(names) == len(set(names))
    tags = {tag["name"] for tag in document["tags"]}
    for path, method, operation in contract.operations:
        place = f"{method} {path}"
        assert set(operation["tags"]) <= tags, place
        in_path = {part[1:-1] for part in path.split("/") if part.startswith("{")}
        parameters = [contract.resolve(p) for p in operation.get("parameters", [])]
        assert {p["name"] for p in parameters if p["in"] == "path"} == in_path, place
        assert all(p["required"] for p in parameters if p["in"] == "path"), place
        assert len({(p["name"], p["in"]) for p in parameters}) == len(parameters), place
        assert method not in ("get", "delete") or "requestBody" not in operation, place
        assert any(status.startswith("2") for status in operation["responses"]), place
        for status, response in operation["responses"].items():
            response = contract.resolve(response)
            assert response["description"], (place, status)
            for kind, media in response.get("content", {}).items():
                if "example" in media and kind == "application/json":
                    assert contract.complaint(media["schema"], media["example"]) is None, (place, status)
        for media in operation.get("requestBody", {}).get("content", {}).values():
            if "example" in media:
                assert contract.complaint(media["schema"], media["example"]) is None, place
