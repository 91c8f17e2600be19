"""An HTTP client that hides nothing: every response is checked against its schema, every stream against the contract."""
import http.client
import json
import socket
import subprocess
import time

from . import schemas
from .timing import SOON

# SSE names whose data carry the event's type in capitals; a few differ.
TERMINAL = "interaction_complete"
UNNUMBERED = ("queued", "stream_open", "stream_live", "what_if")


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    def expect(self, status, schema=None):
        assert self.status == status, f"{self.status} instead of {status}: {self.body[:500]!r}"
        if self.status >= 400:
            self.check_error()
        if schema:
            schemas.check(schema, self.json)
        return self

    def check_error(self):
        assert self.headers.get("Content-Type", "").startswith("application/json"), dict(self.headers)
        schemas.check("mcp_refusal" if "jsonrpc" in self.json else "error", self.json)

    def error(self, status, code=None):
        self.expect(status)
        if code:
            assert self.json["error"]["code"] == code, self.json
        return self.json["error"]


class Event:
    def __init__(self, name, data, seq, at):
        self.name = name
        self.data = data
        self.seq = seq
        self.at = at  # time.monotonic() when it was read

    def __repr__(self):
        return f"{self.seq}:{self.name} {json.dumps(self.data)[:300]}"

    def __getitem__(self, key):
        return self.data[key]


class SseParser:
    """A strict parser that accepts only what the contract allows."""

    def __init__(self):
        self.buffer = b""
        self.comments = []

    def feed(self, data):
        self.buffer += data
        events = []
        while (end := self.buffer.find(b"\n\n")) >= 0:
            block, self.buffer = self.buffer[:end], self.buffer[end + 2:]
            event = self._block(block.decode("utf-8"))
            if event:
                events.append(event)
        return events

    def _block(self, block):
        fields = {}
        for line in block.split("\n"):
            if line.startswith(":"):
                self.comments.append((line, time.monotonic()))
                continue
            name, _, value = line.partition(": ")
            assert name in ("id", "event", "data"), f"a stray line in the stream: {line!r}"
            assert name not in fields, f"{name} twice in one event: {block!r}"
            assert "\r" not in value
            fields[name] = value
        if not fields:
            return None
        assert "event" in fields and "data" in fields, block
        data = json.loads(fields["data"])
        seq = fields.get("id")  # a number in an interaction's stream, a string in the feed
        seq = int(seq) if seq and seq.isdigit() else seq
        return Event(fields["event"], data, seq, time.monotonic())


class Stream:
    """A live SSE response. Iterating or `until` checks numbers, order and schema of each event as it arrives."""

    def __init__(self, connection, response, first_seq=1, gapless=True):
        self.connection = connection
        self.response = response
        self.status = response.status
        self.headers = response.headers
        self.parser = SseParser()
        self.pending = []
        self.events = []
        self.ended = False
        self.gapless = gapless
        self.next_seq = first_seq
        self.frames = []

    # --- reading
    def _fill(self):
        data = self.response.read1(65536)
        if not data:
            assert not self.parser.buffer, f"the stream ends inside an event: {self.parser.buffer!r}"
            self.ended = True
        self.pending += self.parser.feed(data)

    def next(self, limit=None):
        """The next event, or None at the end of the stream."""
        if self.connection.sock:
            self.connection.sock.settimeout(limit or SOON)
        while not self.pending and not self.ended:
            self._fill()
        if not self.pending:
            return None
        event = self.pending.pop(0)
        self._check(event)
        return event

    def _check(self, event):
        if event.name in UNNUMBERED:
            assert event.seq is None, event
            schemas.check("event", event.data, f"{event.name}_frame")
            self.frames.append(event)
            return
        assert event.name == event["type"].lower(), event
        assert event.seq == event["seq"], event
        if self.gapless:
            assert event.seq == self.next_seq, f"expected number {self.next_seq}: {event}"
        else:
            assert event.seq >= self.next_seq, f"expected a number from {self.next_seq} on: {event}"
        self.next_seq = event.seq + 1
        schemas.check_event(event.data)
        assert not self.events or self.events[-1].name != TERMINAL, f"{event} after the terminal event"
        self.events.append(event)

    def until(self, name, limit=None, **match):
        """Reads up to the next event of that name (whose data contain `match`)."""
        while True:
            event = self.next(limit)
            assert event, f"the stream ended without {name}: {self.events}"
            if event.name == name and all(event.data.get(k) == v for k, v in match.items()):
                return event
            assert event.name != TERMINAL, f"no {name} in {self.events}"

    def rest(self, limit=None):
        """Reads to the end of the stream. Returns all its numbered events."""
        while self.next(limit):
            pass
        assert self.events and self.events[-1].name == TERMINAL, self.events
        self.connection.close()
        return self.events

    def finish(self, status="COMPLETED", limit=None):
        events = self.rest(limit)
        assert events[-1]["status"] == status, f"{[e for e in events if e.name == 'error']} {events}"
        return events

    # --- what has been read so far
    def names(self, without=()):
        return [e.name for e in self.events if e.name not in without]

    def all(self, name):
        return [e for e in self.events if e.name == name]

    def one(self, name):
        found = self.all(name)
        assert len(found) == 1, f"{name}: {found} in {self.events}"
        return found[0]

    @property
    def interaction(self):
        if not self.events:
            self.next()
        return self.events[0]["interaction_id"]

    def close(self):
        """Disconnects without notice, as a killed client does."""
        if self.connection.sock:
            self.connection.sock.close()
        self.response.close()
        self.connection.close()


class Client:
    def __init__(self, port, token=None):
        self.port = port
        self.token = token

    def _connection(self, limit=None):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit or SOON)

    def _headers(self, body, headers):
        all_headers = {}
        if body is not None:
            all_headers["Content-Type"] = "application/json"
        if self.token:
            all_headers["Authorization"] = f"Bearer {self.token}"
        all_headers.update(headers or {})
        return {k: v for k, v in all_headers.items() if v is not None}

    @staticmethod
    def _encode(body):
        return body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)

    def request(self, method, path, body=None, headers=None, limit=None):
        connection = self._connection(limit)
        try:
            connection.request(method, path, self._encode(body), self._headers(body, headers))
            response = connection.getresponse()
            answer = Response(response.status, response.headers, response.read())
        finally:
            connection.close()
        if answer.status >= 400 and method != "HEAD":
            answer.check_error()
        return answer

    def get(self, path, **kw):
        return self.request("GET", path, **kw)

    def post(self, path, body=None, **kw):
        return self.request("POST", path, body, **kw)

    def stream(self, method, path, body=None, headers=None, first_seq=1, gapless=True):
        connection = self._connection()
        connection.request(method, path, self._encode(body), self._headers(body, headers))
        response = connection.getresponse()
        if response.status != 200 or response.headers.get("Content-Type") != "text/event-stream":
            answer = response.read()
            connection.close()
            raise AssertionError(f"no stream but {response.status} {response.headers.get('Content-Type')}: {answer[:500]!r}")
        return Stream(connection, response, first_seq, gapless)

    # --- the routes
    def start(self, chat, message, **more):
        return self.stream("POST", f"/chats/{chat}/interactions", {"user_message": message, **more})

    def turn(self, chat, message, status="COMPLETED", **more):
        """Runs a whole turn. Returns its stream, read to the end."""
        stream = self.start(chat, message, **more)
        stream.finish(status)
        return stream

    def edit(self, chat, interaction, message, **more):
        return self.stream("POST", f"/chats/{chat}/interactions/{interaction}/edit", {"new_user_message": message, **more})

    def approve(self, chat, interaction, approval, approved=True, **more):
        body = {"approval_id": approval, "approved": approved, **more}
        return self.post(f"/chats/{chat}/interactions/{interaction}/approve", body)

    def respond(self, chat, interaction, request, response=None):
        """Answers a question; None declines it."""
        body = {"request_id": request, **({"declined": True} if response is None else {"response": response})}
        return self.post(f"/chats/{chat}/interactions/{interaction}/respond", body)

    def cancel(self, chat, interaction):
        return self.post(f"/chats/{chat}/interactions/{interaction}/cancel")

    def interaction(self, chat, interaction):
        return self.get(f"/chats/{chat}/interactions/{interaction}").expect(200, "interaction").json

    def history(self, chat, branches=None):
        return self.get(f"/chats/{chat}" + (f"?branches={branches}" if branches else "")).expect(200, "chat_history").json

    def attach(self, chat, interaction, after=None, last_event_id=None, gapless=False, first_seq=None):
        path = f"/chats/{chat}/interactions/{interaction}/events"
        headers = {"Accept": "text/event-stream"}
        if after is not None:
            path += f"?after_seq={after}"
        if last_event_id is not None:
            headers["Last-Event-ID"] = str(last_event_id)
        seen = after if after is not None else last_event_id or 0
        return self.stream("GET", path, headers=headers, first_seq=first_seq or seen + 1, gapless=gapless)


def raw_exchange(port, *segments, host="127.0.0.1", limit=None, wait_between=True):
    """Sends raw bytes. Returns everything received until the server closes (or is silent for the limit).

    Waits for an answer between two segments, so that they really are separate segments.
    """
    with socket.create_connection((host, port), timeout=limit or SOON) as connection:
        received = b""
        for number, segment in enumerate(segments):
            try:
                connection.sendall(segment)
            except (BrokenPipeError, ConnectionResetError):
                break
            if wait_between and number + 1 < len(segments):
                try:
                    received += connection.recv(65536)
                except ConnectionResetError:
                    break
        try:
            while data := connection.recv(65536):
                received += data
        except (TimeoutError, ConnectionResetError):
            pass
        return received


def curl(*arguments, user=None, stdin=None):
    """Runs the real curl to its end: (exit status, stdout)."""
    done = subprocess.run(["curl", "-sS", "--noproxy", "*", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SOON * 2,
                          check=False, user=user, input=stdin)
    return done.returncode, done.stdout
