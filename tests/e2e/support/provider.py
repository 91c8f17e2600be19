"""A scripted provider on loopback: OpenAI-compatible, Anthropic's Messages API and OpenAI's Responses (see
anthropic.py and responses.py for their replies).

Each request is answered by a Reply: a status, headers and a list of steps that are played one after the other. A step is
bytes (sent in one chunk of the transfer coding), a Gate (waits until the test lets it pass) or CUT (drops the connection).
Every request is recorded and its messages are checked: a tool call without exactly one result is a defect of the server.
"""
import email
import email.policy
import http.server
import io
import json
import os
import select
import socket
import struct
import threading
import time
import wave

from . import anthropic, responses, strict
from .timing import SOON

CUT = object()
AUDIO = ("/v1/audio/transcriptions", "/v1/audio/speech")


class Gate:
    """A point in a reply. The test waits until it is `reached` and calls `release`; `left` is set if the server disconnected."""

    def __init__(self, pings=None):
        self.reached = threading.Event()
        self.left = threading.Event()
        self.pings = pings  # bytes sent repeatedly while waiting
        self._read, self._write = os.pipe()

    def release(self):
        os.write(self._write, b".")

    def wait_reached(self):
        assert self.reached.wait(SOON), "the server did not read the reply up to this point"

    def wait_left(self, limit=SOON):
        assert self.left.wait(limit), "the server still holds its connection to the provider"

    def play(self, connection, stopping):
        """True if released, False if the peer has gone or the provider stops."""
        self.reached.set()
        poll = select.poll()  # select() refuses descriptors above 1023
        for one in (self._read, connection, stopping):
            poll.register(one, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poll.poll(50 if self.pings else None)]
            if self._read in ready:
                return True
            if ready:
                self.left.set()
                return False
            connection.sendall(chunked(self.pings))

    def __del__(self):
        os.close(self._read)
        os.close(self._write)


class Reply:
    def __init__(self, steps, status=200, headers=None, content_type="text/event-stream"):
        self.steps = steps
        self.status = status
        self.headers = {"Content-Type": content_type, **(headers or {})}


def sse(data, newline="\n"):
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"data: {text}{newline}{newline}".encode()


def delta(value, finish=None, newline="\n"):
    choice = {"index": 0, "delta": value, "finish_reason": finish}
    return sse({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]}, newline)


DONE = sse("[DONE]")


def ending(finish="stop", usage=(11, 7)):
    parts = [delta({}, finish)]
    if usage:
        tokens = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        parts.append(sse({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": tokens}))
    return [*parts, DONE]


def text(*pieces, usage=(11, 7)):
    """An answer; a piece may be a string, a Gate or raw bytes."""
    return Reply([delta({"content": p}) if isinstance(p, str) else p for p in pieces] + ending(usage=usage))


def call(name, arguments, call_id="call_1"):
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": raw}}


def tools(*calls, say="", think="", pieces=1):
    """Asks for tool calls; their arguments arrive in that many pieces each, interleaved by index."""
    steps = [delta({"role": "assistant", "content": None})]
    if think:
        steps += [delta({"reasoning_content": word + " "}) for word in think.split()]
    if say:
        steps.append(delta({"content": say}))
    for index, one in enumerate(calls):
        first = "" if pieces > 1 else one["function"]["arguments"]
        function = {"name": one["function"]["name"], "arguments": first}
        steps.append(delta({"tool_calls": [{"index": index, "id": one["id"], "type": "function", "function": function}]}))
    if pieces > 1:
        for piece in range(pieces):
            for index, one in enumerate(calls):
                whole = one["function"]["arguments"]
                size = -(-len(whole) // pieces)
                part = whole[piece * size:(piece + 1) * size]
                steps.append(delta({"tool_calls": [{"index": index, "function": {"arguments": part}}]}))
    return Reply(steps + ending("tool_calls"))


def failure(status, message="no", code=None, kind="error", headers=None):
    body = json.dumps({"error": {"message": message, "type": kind, "code": code}}).encode()
    return Reply([body], status, headers, "application/json")


def chunked(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def is_object(text):
    """Whether it is a JSON object, because servers with templates parse the arguments."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def ill_formed(messages):
    """What is wrong with a history, or None. Every tool call needs exactly one result, right after it."""
    waiting = []
    seen = set()
    for position, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"message {position}: a result of no open call: {message.get('tool_call_id')}"
            if not isinstance(message.get("content"), str):
                return f"message {position}: a result without text"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"message {position}: calls without a result: {waiting}"
        if role == "assistant":
            for one in message.get("tool_calls") or []:
                if not one.get("id") or (one["id"], position) in seen:
                    return f"message {position}: a call without an id of its own"
                if not is_object(one["function"]["arguments"]):
                    return f"message {position}: arguments that are no JSON object: {one['function']['arguments']}"
                seen.add((one["id"], position))
                waiting.append(one["id"])
            if not message.get("tool_calls") and not isinstance(message.get("content"), str):
                return f"message {position}: neither text nor calls"
        elif role in ("user", "system", "developer"):
            if not message.get("content"):
                return f"message {position}: an empty {role} message"
        else:
            return f"message {position}: role {role!r}"
    if waiting:
        return f"calls without a result at the end: {waiting}"
    return None


def wav(seconds=0.2, rate=8000):
    """A sound: a WAV file of silence."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(b"\0\0" * int(seconds * rate))
    return out.getvalue()


def form_of(raw, headers):
    """The parts of multipart/form-data, by name: (filename or None, type, bytes)."""
    message = email.message_from_bytes(b"Content-Type: " + headers["Content-Type"].encode() + b"\r\n\r\n" + raw, policy=email.policy.HTTP)
    assert message.is_multipart() and not message.defects, message.defects
    return {part.get_param("name", header="content-disposition"): (part.get_filename(), part.get_content_type(), part.get_payload(decode=True))
            for part in message.iter_parts()}


class Request:
    def __init__(self, body, headers, path):
        self.at = 0.0  # time.monotonic() when it had arrived
        self.raw = b""
        self.body = body
        self.headers = headers
        self.path = path

    @property
    def messages(self):
        return self.body["messages"]

    @property
    def conversation(self):
        """The messages without the server's own instructions to the model."""
        return [m for m in self.messages if m["role"] not in ("system", "developer")]

    @property
    def last(self):
        return self.messages[-1]


class Provider:
    strict = False  # refuse what real providers refuse (strict.py); set for a sample of the tests
    refused = []    # unexpected refusals in this test, by all providers

    def __init__(self, port=0):
        self._closed = False
        self.requests = []
        self.violations = []
        self.lock = threading.Lock()
        self.arrived = threading.Condition(self.lock)
        self._replies = []
        self._answer = None
        self.listing = None  # the reply to GET /v1/models, or a function that returns it
        self.listings = []   # the headers of each such request
        self.audio = None    # the reply to audio requests, or a function that returns it
        self.heard = []      # the audio requests: form or JSON
        self._stopping_read, self._stopping_write = os.pipe()
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def do_GET(self):
                provider.play(self, provider.list(self.headers, self.path))

            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                take = provider.take_audio if self.path.split("?")[0] in AUDIO else provider.take
                provider.play(self, take(raw, self.headers, self.path))

        class HttpServer(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 512

            def handle_error(self, *_):
                pass  # the server under test dropped the connection

        self.http = HttpServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def plan(self, *replies):
        """Answers the next requests with these, in order."""
        with self.lock:
            self._replies += replies

    def forget_plan(self):
        with self.lock:
            self._replies.clear()

    def answer_with(self, function):
        """Answers every request without a planned reply with function(request)."""
        self._answer = function

    def take(self, raw, headers, path):
        try:
            body = json.loads(raw.decode())
            check = {anthropic.PATH: anthropic.ill_formed, responses.PATH: responses.ill_formed}.get(path)
            problem = check(body) if check else ill_formed(body["messages"])
        except (ValueError, KeyError) as error:
            body, problem = {"messages": []}, f"not a request: {error!r}"
        request = Request(body, headers, path)
        request.raw = raw
        if not problem and path.split("?")[0] not in ("/v1/chat/completions", anthropic.PATH, responses.PATH):
            problem = f"path {path}"
        if not problem and headers.get("Content-Type", "").split(";")[0] != "application/json":
            problem = f"content type {headers.get('Content-Type')}"
        with self.lock:
            request.at = time.monotonic()
            self.requests.append(request)
            if problem:
                self.violations.append(problem)
            self.arrived.notify_all()
            refusal = strict.refusal(path, body) if self.strict and not problem else None
            if refusal:
                Provider.refused.append(refusal.steps[0].decode())
                return refusal
            if self._replies:
                return self._replies.pop(0)
        if self._answer:
            return self._answer(request)
        return failure(500, "the test planned no reply to this request")

    def take_audio(self, raw, headers, path):
        body = form_of(raw, headers) if path.split("?")[0] == AUDIO[0] else json.loads(raw)
        with self.lock:
            self.heard.append(Request(body, headers, path))
            self.arrived.notify_all()
        if self.audio is None:
            return failure(404, "no such page")
        return self.audio(self.heard[-1]) if callable(self.audio) else self.audio

    def list(self, headers, path):
        with self.lock:
            self.listings.append((path, dict(headers)))
        if self.listing is None:
            return failure(404, "no such page")
        return self.listing() if callable(self.listing) else self.listing

    def wait_requests(self, count):
        with self.lock:
            assert self.arrived.wait_for(lambda: len(self.requests) >= count, SOON), (
                f"{len(self.requests)} requests came, not {count}")
            return self.requests[count - 1]

    def play(self, handler, reply):
        connection = handler.connection
        head = f"HTTP/1.1 {reply.status} scripted\r\n"
        for name, value in reply.headers.items():
            head += f"{name}: {value}\r\n"
        connection.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
        for step in reply.steps:
            if step is CUT:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
                handler.close_connection = True
                return
            if isinstance(step, Gate):
                if not step.play(connection, self._stopping_read):
                    handler.close_connection = True
                    return
            elif step:
                connection.sendall(chunked(step))
        connection.sendall(b"0\r\n\r\n")

    def close(self):
        """Stops the provider; also called earlier, to unplug it."""
        if self._closed:
            return
        self._closed = True
        os.write(self._stopping_write, b".")
        self.http.shutdown()
        self.http.server_close()
        os.close(self._stopping_write)

    def __del__(self):  # not earlier, because a thread that plays a reply may still use it
        os.close(self._stopping_read)
