"""A client of Reprise's MCP server that hides nothing: over HTTP or standard input and output, in either era of the protocol."""
import http.client
import itertools
import json
import queue
import subprocess
import threading

from .server import BINARY
from .timing import SOON

SESSIONS, STATELESS = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
NUMBER = itertools.count(1)


class Refused(Exception):
    def __init__(self, error, status=200):
        super().__init__(error["message"])
        self.code, self.data, self.status = error["code"], error.get("data"), status


def send_message(port, body, headers=None, method="POST"):
    """Sends a body, bytes or JSON. Returns the status and the JSON of the response; None if it has no body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SOON)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body)
    connection.request(method, "/mcp", data, {"Content-Type": "application/json", **(headers or {})})
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    return response.status, json.loads(answer) if answer else None


class HttpAnswer:
    """The messages of one response."""

    def __init__(self, client, message):
        self.connection = http.client.HTTPConnection("127.0.0.1", client.server.port, timeout=SOON)
        self.connection.request("POST", "/mcp", json.dumps(message), client.headers(message))
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.is_stream = (self.response.headers["Content-Type"] or "").startswith("text/event-stream")
        self.buffer = b""

    def next(self):
        """The next message; None at the end."""
        if not self.is_stream:
            data, self.response = self.response.read() if self.response else b"", None
            return json.loads(data) if data else None
        while b"\n\n" not in self.buffer:
            data = self.response.read1(65536)
            if not data:
                assert not self.buffer, self.buffer
                return None
            self.buffer += data
        block, self.buffer = self.buffer.split(b"\n\n", 1)
        if block.startswith(b":"):
            return self.next()
        assert block.startswith(b"data: ") and b"\n" not in block, block
        return json.loads(block[6:])

    def close(self):
        if self.connection.sock:
            self.connection.sock.close()
        if self.response:
            self.response.close()
        self.connection.close()


class HttpWay:
    def __init__(self, client):
        self.client = client

    def send(self, message):
        answer = HttpAnswer(self.client, message)
        if "method" in message and "id" in message:
            return answer
        assert answer.status == 202 and answer.next() is None, answer.status
        answer.close()
        return None

    def cancel(self, number, answer):
        if self.client.era == STATELESS:
            return answer.close()
        return self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

    def close(self):
        pass


class StdioAnswer:
    def __init__(self):
        self.status = 200
        self.messages = queue.Queue()

    def next(self):
        return self.messages.get(timeout=SOON)

    def close(self):
        pass


class StdioWay:
    """`reprise mcp-server`, and our end of the connection. The server's questions belong to the request in progress."""

    def __init__(self, client, home, *arguments):
        self.client = client
        self.answers = {}
        self.process = subprocess.Popen([str(BINARY), "mcp-server", *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(home.path / "mcp-server.log", "ab"), env=home.environment(), cwd=home.path)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            number = message["id"] if "method" not in message else message.get("params", {}).get("progressToken")
            found = self.answers.get(number) if "method" not in message else self.answers.get(number, list(self.answers.values())[-1])
            if found:
                found.messages.put(message)
        for each in self.answers.values():
            each.messages.put(None)

    def send(self, message):
        answer = StdioAnswer()
        if "method" in message and "id" in message:
            self.answers[message["id"]] = answer
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return answer

    def cancel(self, number, _):
        self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(SOON) == 0
        self.reader.join()


class Call:
    """A request until its result has arrived."""

    def __init__(self, client, method, params):
        self.client, self.method, self.params = client, method, params
        self.notes, self.withdrawn = [], []
        self.send()

    def send(self, **more):
        self.number = next(NUMBER)
        params = {**self.params, **more}
        if self.client.era == STATELESS:
            params["_meta"] = self.client.meta()
        params.setdefault("_meta", {})["progressToken"] = self.number
        self.answer = self.client.way.send({"jsonrpc": "2.0", "id": self.number, "method": self.method, "params": params})

    def next(self):
        message = self.answer.next()
        if message is None:
            return None
        if message.get("method") == "notifications/progress":
            params = message["params"]
            assert params["progressToken"] == self.number and all(params["progress"] > n["progress"] for n in self.notes if n["progressToken"] == self.number)
            self.notes.append(params)
            return self.next()
        if message.get("method") == "notifications/cancelled":
            self.withdrawn.append(message["params"]["requestId"])
            return self.next()
        return message

    def until_note(self):
        while not self.notes:
            message = self.answer.next()
            assert message["method"] == "notifications/progress", message
            self.notes.append(message["params"])
        return self.notes[0]

    def questions(self):
        """The questions to the person, as params by id."""
        message = self.next()
        if self.client.era == STATELESS:
            result = message["result"]
            assert result["resultType"] == "input_required", message
            self.state = result["requestState"]
            assert all(each["method"] == "elicitation/create" for each in result["inputRequests"].values())
            return {name: each["params"] for name, each in result["inputRequests"].items()}
        assert message["method"] == "elicitation/create", message
        return {message["id"]: message["params"]}

    def question(self):
        (asked, form), = self.questions().items()
        return asked, form

    def reply(self, asked, action="accept", **content):
        result = {"action": action, **({"content": content} if action == "accept" else {})}
        if self.client.era == STATELESS:
            self.send(requestState=self.state, inputResponses={asked: result})
        else:
            self.client.way.send({"jsonrpc": "2.0", "id": asked, "result": result})

    def result(self):
        message = self.next()
        assert message is not None, "no answer"
        assert message["id"] == self.number and "method" not in message, message
        if "error" in message:
            raise Refused(message["error"], self.answer.status)
        result = message["result"]
        if self.client.era == STATELESS:
            assert result["resultType"] == "complete" and result["_meta"][META + "serverInfo"]["name"] == "reprise"
        self.answer.close()
        return result

    def cancel(self):
        self.client.way.cancel(self.number, self.answer)

    def close(self):
        self.answer.close()


class McpClient:
    def __init__(self, server, era, home=None, elicits=True, url=None):
        self.server, self.era = server, era
        self.capabilities = {"elicitation": {}} if elicits else {}
        self.session = None
        self.way = StdioWay(self, home, "--url", url or f"http://127.0.0.1:{server.port}") if home else HttpWay(self)
        if era == SESSIONS:
            self.greet()

    def greet(self):
        self.session = None
        call = Call(self, "initialize", {"protocolVersion": SESSIONS, "capabilities": self.capabilities, "clientInfo": {"name": "test", "version": "1"}})
        if isinstance(self.way, HttpWay):
            self.session = call.answer.response.headers["Mcp-Session-Id"]
            assert self.session
        assert call.result()["protocolVersion"] == SESSIONS
        self.way.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def meta(self):
        return {META + "protocolVersion": STATELESS, META + "clientCapabilities": self.capabilities, META + "clientInfo": {"name": "test", "version": "1"}}

    def headers(self, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.era == STATELESS:
            params = message.get("params", {})
            headers |= {"MCP-Protocol-Version": STATELESS, "Mcp-Method": message["method"]}
            headers |= {"Mcp-Name": params["name"]} if "name" in params else {"Mcp-Name": params["uri"]} if "uri" in params else {}
        elif self.session:
            headers |= {"MCP-Protocol-Version": SESSIONS, "Mcp-Session-Id": self.session}
        return headers

    def start(self, tool, **arguments):
        return Call(self, "tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool, **arguments):
        return self.start(tool, **arguments).result()

    def ask(self, message, chat="c", **more):
        return self.call("ask", message=message, chat_id=chat, **more)

    def request(self, method, **params):
        return Call(self, method, params).result()

    def close(self):
        self.way.close()
