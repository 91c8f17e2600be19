"""Misbehaving MCP servers, made at random from a seed: over stdio (mcp_manners.py SEED INDEX) and over HTTP (MannersWeb).

Each has a tool `act` that does something (it counts) and says so in words. The servers differ in how these words reach the client. It is always clear
whether a server has answered: whatever it sends has one meaning to a tolerant reader."""
import base64
import http.server
import json
import os
import random
import sys
import threading

LARGE = 17 << 20  # more than the client accepts

SCHEMAS = [{"type": "object"}, {}, None, True, {"type": ["object", "null"]}, {"anyOf": [{"required": ["n"]}, {"required": ["m"]}]},
           {"type": "object", "properties": {"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}},
           {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}},
           {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"n": {"type": "integer"}, "note": {"type": "string"}}},
           {"type": "object", "properties": {"n": {}, "note": {"type": "string", "enum": ["a", "b"]}}, "required": ["n"]},
           {"type": "object", "properties": {"n": {"type": "integer"}, **{f"p{i}": {"type": "string", "description": "x" * 100} for i in range(200)}}},
           {"type": "object", "properties": {"n": True, "next": {"$ref": "#"}}, "additionalProperties": {"type": "string"}, "x-extra": [None]}]

SHAPES = {
    "list": lambda words: {"content": [{"type": "text", "text": words}]},
    "string": lambda words: {"content": words},
    "strings": lambda words: {"content": [words]},
    "object": lambda words: {"content": {"type": "text", "text": words}},
    "untyped": lambda words: {"content": [{"text": words}]},
    "new type": lambda words: {"content": [{"type": "note", "body": words}]},
    "array": lambda words: {"structuredContent": [words]},
    "structured": lambda words: {"content": [], "structuredContent": {"said": words}},
    "null content": lambda words: {"content": None, "structuredContent": {"said": words}, "isError": None},
    "none": lambda words: {"said": words},
    "bare": lambda words: words,
    "error": lambda words: {"content": [{"type": "text", "text": words}], "isError": True},
    "failure": lambda words: None,  # an error of JSON-RPC, with the words in its data
}
DRESSES = ["plain", "ascii", "bom", "surrogate", "nan", "huge", "bytes", "tab", "crlf", "spaces", "batch", "twice", "double member", "behind a log"]
IDS = ["plain", "text", "float"]
PAGES = ["one", "two", "circle", "endless", "broken", "numbers", "many", "odd"]
NOISES = ["other ids", "null id", "progress", "pings", "log", "lines", "cancelled"]
WAYS = ["json", "JSON", "untyped", "null id", "stream", "odd stream", "unended stream", "307", "308", "chain", "away"]


class Manner:
    def __init__(self, seed, index):
        luck = random.Random(f"{seed}/{index}")
        self.index, self.over_http = index, index % 2 == 1
        self.schema, self.shape, self.dress = luck.choice(SCHEMAS), luck.choice(list(SHAPES)), luck.choice(DRESSES)
        self.id, self.id_last, self.pages = luck.choice(IDS), luck.random() < 0.5, luck.choice(PAGES)
        self.size = luck.choices(["small", "text", "picture", "large"], [12, 4, 2, 2])[0]
        self.noises = luck.sample(NOISES, luck.randrange(4))
        self.way = luck.choice(WAYS) if self.over_http else "stdio"
        self.instructions = luck.choice([None, "Use act.", "x" * 100_000, 7, ["a"]])
        self.null_note = luck.random() < 0.5
        if self.way in ("untyped", "json", "JSON", "307", "308", "chain", "away", "null id") and self.dress == "behind a log":
            self.dress = "plain"
        if self.size == "large" and self.dress == "batch":  # no telling whose answer is too large
            self.dress = "plain"
        if self.way == "null id" and self.dress == "batch":  # no telling whose answer it contains
            self.dress = "plain"
        self.count, self.page = 0, 0

    def __str__(self):
        return " ".join(f"{name}={value!r:.60}" for name, value in vars(self).items())

    def words(self, n):
        return f"did {n}, {self.count} in all"

    # --- what it says, as bytes: messages without their ends

    def message(self, request, body):
        number = request["id"]
        named = {"plain": number, "text": str(number), "float": float(number)}[self.id if isinstance(number, int) else "plain"]
        if self.way == "null id":
            named = None
        whole = {"jsonrpc": "2.0", "id": named, **body}
        return dict(reversed(whole.items())) if self.id_last else whole

    def dressed(self, message):
        """The bytes of an answer to `act`, with the flaw of `self.dress`."""
        result = message.get("result")
        if isinstance(result, dict):
            result.update({"nan": {"_meta": {"ratio": float("nan"), "most": float("inf")}}, "huge": {"_meta": {"n": 10**40, "m": -10**25}}}.get(self.dress, {}))
        text = json.dumps(message, ensure_ascii=self.dress != "plain")
        data = text.encode("utf-8", "surrogatepass")
        mark = b"did "
        if self.dress == "surrogate":
            data = data.replace(mark, b"\\ud83d did ", 1)
        elif self.dress == "bytes":
            data = data.replace(mark, b"\xff\xc3 did ", 1)
        elif self.dress == "tab":
            data = data.replace(mark, b"\t\x01did ", 1)
        elif self.dress == "double member" and isinstance(result, dict):
            data = data.replace(b'"result": {', b'"result": {"_meta": 1, "_meta": 2, ', 1)
        elif self.dress == "batch":
            data = b'[{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}},' + data + b',null,7]'
        elif self.dress == "bom":
            data = b"\xef\xbb\xbf" + data
        elif self.dress == "spaces":
            data = b"  " + data + b"  "
        elif self.dress == "behind a log":
            data = b'12:00:01 [info] {took} {"ms": 3 ' + data
        return data + (b"\r" if self.dress == "crlf" and not self.over_http else b"")

    def noise(self, request):
        say = lambda **members: json.dumps({"jsonrpc": "2.0", **members}).encode()
        token = request["params"].get("_meta", {}).get("progressToken")
        wrong = SHAPES["list"]("the answer to something else")
        made = {"other ids": [say(id=other, result=wrong) for other in (request["id"] + 500, -1, [request["id"]], 0.5, 10**30, {}, True, "")],
                "null id": [say(id=None, result=wrong), say(result=wrong), say(id=None, error={"code": -32601, "message": "no such notification"})],
                "progress": [say(method="notifications/progress", params={"progressToken": each, "progress": 1, "total": None}) for each in (token, str(token), None, 10**30)],
                "pings": [say(id=each, method="ping") for each in ("a", 1, 1.5, None, -7, "ü")] + [say(id=f"p{i}", method="ping") for i in range(100)],
                "log": [say(method="notifications/message", params=each) for each in ({"level": "info", "data": "x" * 5000}, {"data": None}, None, [1])],
                "lines": [b"", b"Server running on stdio", b"{", b"}", b"[[[", b"null", b'"text"', b"\x00\xff", b"{}", b"[]"],
                "cancelled": [say(method="notifications/cancelled", params={"requestId": each}) for each in (request["id"], "x", None)]}
        return [each for noise in self.noises for each in made[noise]]

    def tools(self, request):
        act = {"name": "act", "description": "does something", "inputSchema": self.schema}
        cursor = request["params"].get("cursor")
        self.page += 1
        more = {"one": None, "two": None if cursor else "2", "circle": "same", "endless": f"c{self.page}", "broken": "broken", "many": None,
                "numbers": self.page if self.page < 4 else None, "odd": ""}[self.pages]
        if cursor == "broken":
            return {"error": {"code": -32603, "message": "no such page"}}
        listed = [act] if not cursor else [{"name": f"other{self.page}", "inputSchema": {"type": "object"}}]
        if self.pages == "many":
            listed += [{"name": f"t{i}", "inputSchema": {"type": "object"}} for i in range(10_000)]
        if self.pages == "odd":
            listed += [None, 7, {}, {"name": 7}, {"name": ""}, {"name": "x" * 5000}, {"name": "wrong", "inputSchema": {"type": "string"}}, act]
        return {"result": {"tools": listed, "nextCursor": more}}

    def act(self, request):
        self.count += 1
        n = (request["params"].get("arguments") or {}).get("n")
        words = self.words(n)
        result = SHAPES[self.shape](words)
        if result is None:
            return {"error": {"code": -32000, "message": "it went otherwise", "data": {"said": words}}}
        size = self.size if n == 1 else "small"
        if size == "large":
            return {"result": {"content": [{"type": "text", "text": words + "x" * LARGE}]}}
        if isinstance(result, dict) and isinstance(result.get("content"), list):
            if size == "text":
                result["content"].append({"type": "text", "text": "x" * 100_000})
            if size == "picture":
                result["content"].append({"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"p" * (4 << 20)).decode()})
        return {"result": result}

    def answers(self, request):
        """The messages sent in response to a request; the last one is the answer."""
        method = request.get("method")
        if "id" not in request or method is None:
            return []
        if method == "initialize":
            body = {"result": {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}, "odd": None},
                               "serverInfo": {"name": f"manners {self.index}", "version": "1"}, "instructions": self.instructions}}
        elif method == "tools/list":
            body = self.tools(request)
        elif method == "tools/call":
            message = self.dressed(self.message(request, self.act(request)))
            return [*self.noise(request), *[message] * (2 if self.dress == "twice" else 1)]
        else:
            body = {"error": {"code": -32601, "message": f"no method {method}"}}
        return [json.dumps(self.message(request, body)).encode()]

    def is_fine(self, n, count, result):
        """Whether the client reported what was done, as far as it could know."""
        output, is_error = result["tool_output"], result["is_error"]
        if self.way == "away":
            return is_error and "http://elsewhere.test:9/mcp" in output
        if self.size == "large" and n == 1 and self.shape != "failure":
            return is_error and "16 MiB" in output
        return f"did {n}, {count} in all" in output and is_error == (self.shape in ("error", "failure"))


def serve_stdio(manner):
    for line in sys.stdin.buffer:
        for answer in manner.answers(json.loads(line)):
            data = answer + b"\n"
            while data:
                data = data[os.write(1, data):]


class MannersWeb:
    """All servers of the HTTP kind, each below its own path."""

    def __init__(self, manners):
        web = {str(manner.index): manner for manner in manners}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                _, index, *rest = self.path.split("?")[0].split("/")
                manner, step = web[index], "/".join(rest)
                is_call = request.get("method") == "tools/call"
                to = {"307": {"mcp": "/there"}, "308": {"mcp": "/there/"}, "chain": {"mcp": "/a", "a": "b?x=1", "b": f"http://127.0.0.1:{port}/{index}/c"},
                      "away": {"mcp": "http://elsewhere.test:9/mcp"} if is_call else {}}.get(manner.way, {}).get(step)
                if to:
                    return self.moved(301 if manner.way == "chain" and step == "a" else int(manner.way) if manner.way.isdigit() else 308, f"/{index}{to}" if to[0] == "/" else to)
                answers = manner.answers(request)
                if not answers:
                    return self.reply(202, {}, b"")
                if manner.way.endswith("stream"):
                    return self.stream(manner.way, answers)
                kind = {"JSON": "Application/JSON; Charset=UTF-8", "untyped": None}.get(manner.way, "application/json")
                self.reply(200, {"Content-Type": kind} if kind else {}, answers[-1])

            def do_GET(self):
                self.reply(405, {}, b"")

            do_DELETE = do_GET

            def reply(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def moved(self, status, to):
                self.send_response(status)
                self.send_header("Location", to)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"5\r\nmoved\r\n0\r\n\r\n")

            def stream(self, way, answers):
                odd = way == "odd stream"
                self.send_response(200)
                self.send_header("Content-Type", "Text/Event-Stream;charset=utf-8" if odd else "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                end = b"\r\n" if odd else b"\n"
                if odd:
                    self.wfile.write(b"\xef\xbb\xbf: hello\r\n\r\nretry: soon\r\nid\r\nevent: ping\r\ndata\r\n\r\nfoo: bar\r\nevent: answer\r\n")
                for answer in answers:
                    last = answer is answers[-1] and way == "unended stream"
                    self.wfile.write(b"data:" + answer.replace(b"\n", b" ").replace(b"\r", b" ") + (b"" if last else end + end))
                self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client that gives up closes its connection
        port = self.server.server_address[1]
        self.address = lambda manner: f"http://127.0.0.1:{port}/{manner.index}/mcp"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    serve_stdio(Manner(sys.argv[1], int(sys.argv[2])))
