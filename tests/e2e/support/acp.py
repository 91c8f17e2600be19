"""A client of `reprise acp` that hides nothing. Every message of both sides is checked against the protocol's own schema, if npm can install it."""
import functools
import json
import select
import subprocess
import time

import jsonschema
import pytest

from .npm import install
from .server import BINARY
from .timing import SOON

SDK = "@agentclientprotocol/sdk@2.4.0"


@functools.lru_cache(1)
def schema():
    """The schema of ACP v1; None if it is not available (messages are not checked then)."""
    try:
        folder = install(SDK)
    except pytest.skip.Exception:
        return None
    return json.loads((folder / "@agentclientprotocol" / "sdk" / "schema" / "v1" / "schema.json").read_text())


@functools.lru_cache(None)
def validator(method, part):
    """A validator for the content of a method's "request", "response" or "notification"."""
    defs = schema()["$defs"]
    ending = {"request": "Request", "response": "Response", "notification": "Notification"}[part]
    names = [name for name, one in defs.items() if one.get("x-method") == method and name.endswith(ending)]
    assert len(names) == 1, f"{part} of {method}: {names}"
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{names[0]}", "$defs": defs})


class Checker:
    """Checks messages against the schema, in the order in which they were sent."""

    def __init__(self):
        self.methods = {}  # (who asked, id) -> method
        self.checked = 0

    def check(self, message, sender):
        assert message.get("jsonrpc") == "2.0", message
        if schema() is None:
            return
        if "method" in message:
            part = "request" if "id" in message else "notification"
            if part == "request":
                self.methods[sender, json.dumps(message["id"])] = message["method"]
            value, method = message.get("params"), message["method"]
        else:
            other = "client" if sender == "agent" else "agent"
            method = self.methods.pop((other, json.dumps(message["id"])), None)
            if "error" in message:
                jsonschema.Draft202012Validator({"$ref": "#/$defs/Error", "$defs": schema()["$defs"]}).validate(message["error"])
                return
            assert method, f"a response without a request: {message}"
            part, value = "response", message["result"]
        errors = list(validator(method, part).iter_errors(value))
        assert not errors, f"{part} of {method}: {errors[0].message} in {json.dumps(value)[:600]}"
        self.checked += 1


class Refused(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code, self.reason = error["code"], error.get("data", {}).get("code")


class Agent:
    """`reprise acp` as a process, and our end of the connection."""

    def __init__(self, home, *arguments, capabilities=None, initialize=True):
        self.process = subprocess.Popen([str(BINARY), "acp", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(home.path / "acp.log", "ab"), env=home.environment(), cwd=home.path)
        self.checker = Checker()
        self.buffer = b""
        self.next_id = 1
        self.answers = {}  # id -> message
        self.requests = []  # requests of the agent, not answered yet
        self.updates = []
        self.withdrawn = []
        if initialize:
            self.initialized = self.call("initialize", protocolVersion=1, clientCapabilities=capabilities or {})

    # --- the wire
    def send(self, message, check=True):
        message = {"jsonrpc": "2.0", **message}
        if check:
            self.checker.check(message, "client")
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self, limit=None):
        """Receives one message and files it. Returns it, or None at the end."""
        deadline = time.monotonic() + (limit or SOON)
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"nothing within {limit or SOON} s; so far {self.updates[-3:]}"
            data = self.process.stdout.read1(65536)
            if not data:
                return None
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        message = json.loads(line)
        self.checker.check(message, "agent")
        if "method" not in message:
            self.answers[message["id"]] = message
        elif "id" in message:
            self.requests.append(message)
        elif message["method"] == "$/cancel_request":
            self.withdrawn.append(message["params"]["requestId"])
        else:
            assert message["method"] == "session/update", message
            self.updates.append(message["params"]["update"])
        return message

    def until(self, condition):
        while not (found := condition()):
            assert self.receive() is not None, "the agent ended"
        return found

    # --- requests
    def ask(self, method, check=True, **params):
        number, self.next_id = self.next_id, self.next_id + 1
        self.send({"id": number, "method": method, "params": params}, check)
        return number

    def answer(self, number):
        """The agent's response to that request."""
        message = self.until(lambda: self.answers.pop(number, None))
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    def call(self, method, check=True, **params):
        return self.answer(self.ask(method, check, **params))

    def notify(self, method, **params):
        self.send({"method": method, "params": params})

    def new(self, cwd, servers=()):
        return self.call("session/new", cwd=str(cwd), mcpServers=list(servers))["sessionId"]

    def prompt(self, session, text):
        blocks = [{"type": "text", "text": text}] if isinstance(text, str) else text
        return self.ask("session/prompt", sessionId=session, prompt=blocks)

    def asked(self, method="session/request_permission"):
        """The agent's next request of this method."""
        return self.until(lambda: next((r for r in self.requests if r["method"] == method), None))

    def reply(self, request, result):
        self.requests.remove(request)
        self.checker.methods.setdefault(("agent", json.dumps(request["id"])), request["method"])
        self.send({"id": request["id"], "result": result})

    def choose(self, request, option):
        self.reply(request, {"outcome": {"outcome": "selected", "optionId": option}})

    # --- what was shown
    def kinds(self):
        return [u["sessionUpdate"] for u in self.updates]

    def said(self, kind="agent_message_chunk"):
        return "".join(u["content"]["text"] for u in self.updates if u["sessionUpdate"] == kind)

    def calls(self):
        """The tool calls, as a client has them that applies all updates."""
        calls = {}
        for update in self.updates:
            if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                assert update["sessionUpdate"] == "tool_call" or update["toolCallId"] in calls, f"an update of an unknown call: {update}"
                calls.setdefault(update["toolCallId"], {}).update(update)
        return list(calls.values())

    def close(self):
        """Ends the agent as an editor does, by closing its input."""
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(SOON)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("acp does not end with its client") from None
            assert self.process.returncode == 0
        self.process.stdout.close()
