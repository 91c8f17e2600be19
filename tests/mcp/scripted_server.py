"""An MCP server over stdio whose behaviour the test chooses: scripted_server.py MODE [ARGUMENT].

Needs only the standard library; started by the unit tests. Every mode greets properly unless it is about a bad greeting.
"""
import json
import os
import signal
import sys
import time

MODE = sys.argv[1]
ARGUMENT = sys.argv[2] if len(sys.argv) > 2 else ""

TOOLS = {
    "echo": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "crash": {"type": "object"},
    "sleep": {"type": "object"},
    "progress": {"type": "object"},
    "ask": {"type": "object"},
    "fail": {"type": "object"},
    "refuse": {"type": "object"},
    "environment": {"type": "object"},
    "roots": {"type": "object"},
    "grow": {"type": "object"},
    "wrong_ids": {"type": "object"},
    "cancelled": {"type": "object"},
    "raw": {"type": "object"},
    "open_first": {"type": "object"},
    "large": {"type": "object"},
    "count": {"type": "object"},
    "chatter": {"type": "object"},
    "given": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"enum": ["x"]}, "d": {"type": ["string", "null"]}}},
}
opened = 0
large = 0


def flood(message):
    """The same message without an end, as fast as it is read."""
    many = (json.dumps(message) + "\n").encode() * 1000
    while True:
        sys.stdout.buffer.write(many)


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def reply(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def text(request, words, **more):
    reply(request, {"content": [{"type": "text", "text": words}], **more})


def progress(token, **done):
    send({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, **done}})


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def read_answer(to):
    while True:
        message = read()
        if message.get("id") == to and "method" not in message:
            return message


def tool(name, schema):
    description = ARGUMENT if MODE == "described" else f"The tool {name}."
    return {"name": name, "description": description, "inputSchema": schema,
            "annotations": {"readOnlyHint": name == "echo", "destructiveHint": name == "crash"}}


# The next cursor of each page, by the page's own cursor; the first page has none.
PAGES = {"circle": {None: "same", "same": "same"}, "circle of two": {None: "a", "a": "b", "b": "a"}, "endless pages": None,
         "broken page": {None: "second", "second": "broken"}, "numbered pages": {None: 1, 1: 2, 2: None}}
pages = 0


def list_pages(request):
    global pages
    cursor, follow = request["params"].get("cursor"), PAGES[MODE]
    if cursor == "broken":
        return send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "no such page"}})
    reply(request, {"tools": [tool(f"p{pages}", {"type": "object"})], "nextCursor": f"c{pages}" if follow is None else follow[cursor]})
    pages += 1


def list_tools(request):
    if MODE == "many":
        reply(request, {"tools": [tool(f"t{n}", {"type": "object"}) for n in range(2000)]})
    elif MODE in PAGES:
        list_pages(request)
    elif MODE == "strange":
        reply(request, {"tools": [{"name": "", "inputSchema": {"type": "object"}}, {"name": "x" * 300, "inputSchema": {"type": "object"}},
                                  {"name": "no schema"}, {"name": "list", "inputSchema": []}, 7, None,
                                  tool("good", {"type": "object", "$ref": "#"}), tool("good", {"type": "object"}),
                                  tool("naïve tool/…", {"type": "object"})]})
    else:
        names = list(TOOLS)
        start = int(request["params"].get("cursor", "0"))
        page = {"tools": [tool(name, TOOLS[name]) for name in names[start:start + 5]]}
        if start + 5 < len(names):
            page["nextCursor"] = str(start + 5)
        reply(request, page)


def call(request):
    name = request["params"]["name"]
    token = request["params"].get("_meta", {}).get("progressToken")
    if name == "echo":
        text(request, request["params"]["arguments"]["text"])
    elif name == "crash":
        sys.stderr.write("first words\nlast words\n")
        sys.stderr.flush()
        os._exit(7)
    elif name == "sleep":
        if token is not None:
            progress(token, progress=1, message="asleep")
        # never answers
    elif name == "progress":
        for step in (1, 2):
            progress(token, progress=step, total=2, message=f"step {step}")
        progress(999999, progress=1)
        text(request, "done")
    elif name == "ask":
        send({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create",
              "params": {"message": "Your name?", "requestedSchema": {
                  "type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 30}}, "required": ["name"]}}})
        result = read_answer("q1")["result"]
        if not request["params"].get("arguments", {}).get("ends_silent"):
            text(request, json.dumps(result))
    elif name == "fail":
        text(request, "it went wrong", isError=True)
    elif name == "refuse":
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32050, "message": "not today"}})
    elif name == "environment":
        text(request, json.dumps({"environment": dict(os.environ), "descriptors": sorted(os.listdir("/proc/self/fd"), key=int),
                                  "directory": os.getcwd(), "group": os.getpgid(0) == os.getpid()}))
    elif name == "roots":
        send({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        send({"jsonrpc": "2.0", "id": 3, "method": "sampling/createMessage", "params": {}})
        text(request, json.dumps([read_answer(n).get("result", "error") for n in (1, 2, 3)]))
    elif name == "grow":
        TOOLS["grown"] = {"type": "object"}
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        text(request, "grown")
    elif name == "wrong_ids":
        for wrong in (request["id"] + 1000, None, [request["id"]], 1.5, {"id": request["id"]}, "", "x", True, 1e30, 10**40):
            send({"jsonrpc": "2.0", "id": wrong, "result": {"content": [{"type": "text", "text": "wrong"}]}})
        text(request, "right")
        text(request, "twice")
    elif name == "raw":
        # Raw bytes, with the request's id in place of ID.
        line = bytes.fromhex(request["params"]["arguments"]["hex"]).replace(b"ID", str(request["id"]).encode())
        os.write(1, line + b"\n")
    elif name == "large":
        global large
        large += 1
        asked = request["params"]["arguments"]
        block = {"type": "image", "mimeType": "image/png", "data": "A" * asked["bytes"]} if asked.get("type") == "image" else \
                {"type": "text", "text": "x" * asked["bytes"]}
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": [block]}}
        send(answer if asked["id"] == "first" else dict(reversed(answer.items())))
    elif name == "chatter":
        notice = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}) + "\n"
        sys.stdout.write(notice * 25000)
        if request["params"]["arguments"].get("asks"):
            send({"jsonrpc": "2.0", "id": "late", "method": "roots/list"})
            return text(request, "refused" if "error" in read_answer("late") else "answered")
        text(request, "done")
    elif name == "given":
        text(request, json.dumps(request["params"]["arguments"]))
    elif name == "count":
        text(request, str(large))
    elif name == "open_first":
        global opened
        opened += 1
        if opened > 1:
            text(request, f"opened, call {opened}")
        else:
            send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32042, "message": "log in first", "data": {
                "elicitations": [{"mode": "url", "elicitationId": "e1", "url": "https://login.example/x", "message": "Log in"}]}}})
    elif name == "cancelled":
        # Waits for a cancellation. The tool's title then tells whether it named this request.
        message = read()
        while message.get("method") != "notifications/cancelled":
            message = read()
        TOOLS["cancelled"]["title"] = f"{message['params']['requestId'] == request['id']}"
    else:
        send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "unknown tool"}})


RESOURCES = {"demo://1": "one", "demo://2": "two"}


def more(request):
    """Handles resources, prompts and logging. False if the method is unknown."""
    method, params = request["method"], request.get("params", {})
    if method == "resources/list":
        reply(request, {"resources": [{"uri": uri, "name": uri[-1], "mimeType": "text/plain"} for uri in RESOURCES]})
    elif method == "resources/templates/list":
        reply(request, {"resourceTemplates": [{"uriTemplate": "demo://{n}", "name": "any"}]})
    elif method == "resources/read" and params["uri"] in RESOURCES:
        reply(request, {"contents": [{"uri": params["uri"], "text": RESOURCES[params["uri"]]}]})
    elif method == "prompts/list":
        reply(request, {"prompts": [{"name": "greet", "description": "Greets", "arguments": [{"name": "who", "required": True}]}]})
    elif method == "prompts/get":
        reply(request, {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello " + params["arguments"]["who"]}}]})
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": {"now": "greets"}}})
    else:
        return False
    return True


def main():
    if MODE == "exit":
        sys.stderr.write("no configuration\n")
        sys.exit(3)
    if MODE == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if MODE == "endless":
        while True:
            os.write(1, b"x" * 65536)
    if MODE == "garbage":
        sys.stdout.write("Starting...\n\x00\xff{\n[]\n[[[[\n\"text\"\n" + "[" * 100000 + "\n")
        sys.stdout.flush()
    while True:
        message = read()
        method = message.get("method")
        if method == "initialize":
            version = ARGUMENT if MODE == "version" else message["params"]["protocolVersion"]
            capabilities = {"tools": {"listChanged": True}}
            if MODE == "more":
                capabilities.update(resources={"subscribe": True}, prompts={}, logging={})
            reply(message, {"protocolVersion": version, "capabilities": capabilities,
                            "serverInfo": {"name": "scripted", "version": "1"}, **({"instructions": ARGUMENT} if MODE == "instructions" else {})})
        elif method == "notifications/initialized":
            if MODE == "flood":
                flood({"jsonrpc": "2.0", "id": 5, "method": "ping"})
            if MODE == "notices":
                flood({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
        elif method == "tools/list":
            list_tools(message)
        elif method == "tools/call":
            call(message)
        elif method == "ping":
            reply(message, {})
        elif "id" in message and method and MODE == "more" and more(message):
            pass
        elif "id" in message and method:
            send({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})


main()
