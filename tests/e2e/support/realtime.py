"""A scripted model that talks: OpenAI's Realtime interface over a WebSocket on loopback.

Each session is answered by a list of steps, played when the server under test has sent `response.create`: a dict (an event),
bytes (sent as they are, so frames can be wrong), a Gate of provider.py, or CUT. It records the heads and events of all sessions.
"""
import base64
import hashlib
import json
import os
import socket
import struct
import threading

from .provider import CUT, Gate
from .timing import SOON

MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
RATE = 24_000


def frame(payload, opcode=1):
    """A frame of a server: not masked, in one piece."""
    size = len(payload)
    head = struct.pack("!BB", 0x80 | opcode, size) if size < 126 else (
        struct.pack("!BBH", 0x80 | opcode, 126, size) if size < 1 << 16 else struct.pack("!BBQ", 0x80 | opcode, 127, size))
    return head + payload


def samples(seconds, value=1000):
    return struct.pack("<h", value) * int(seconds * RATE)


def wav(pcm):
    return b"RIFF" + struct.pack("<I", 36 + len(pcm)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, RATE, 2 * RATE, 2, 16) + b"data" + struct.pack("<I", len(pcm)) + pcm


def words(text, beta=False):
    return {"type": "response.audio_transcript.delta" if beta else "response.output_audio_transcript.delta", "item_id": "i", "delta": text}


def sound(pcm, beta=False):
    return {"type": "response.audio.delta" if beta else "response.output_audio.delta", "item_id": "i", "delta": base64.b64encode(pcm).decode()}


def written(text):
    return {"type": "response.output_text.delta", "item_id": "i", "delta": text}


def call(name, arguments, call_id="call_1"):
    return {"type": "response.output_item.done", "output_index": 0,
            "item": {"type": "function_call", "id": "f", "call_id": call_id, "name": name, "arguments": json.dumps(arguments)}}


def done(*output, status="completed", details=None, usage=(11, 7)):
    tokens = {"input_tokens": usage[0], "output_tokens": usage[1], "total_tokens": sum(usage), "input_token_details": {"cached_tokens": 3}}
    return {"type": "response.done", "response": {"id": "r", "status": status, "status_details": details, "output": list(output), "usage": tokens}}


class Session:
    def __init__(self, path, headers):
        self.path = path
        self.headers = headers
        self.events = []

    @property
    def setting(self):
        return self.events[0]["session"]

    @property
    def items(self):
        return [event["item"] for event in self.events if event["type"] == "conversation.item.create"]


class Realtime:
    def __init__(self):
        self.sessions = []
        self.refusal = None  # (status, body) in place of the handshake
        self._plans = []
        self._changed = threading.Condition()
        self._stopping_read, self._stopping_write = os.pipe()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    def plan(self, *steps):
        """The next session is answered with these steps."""
        with self._changed:
            self._plans.append(steps)

    def wait_sessions(self, count):
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.sessions) >= count, SOON), f"{len(self.sessions)} sessions came, not {count}"
            return self.sessions[count - 1]

    def wait_left(self):
        """Until the server under test has closed all its connections."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._open, SOON), "the server still holds its connection to the model"

    def close(self):
        os.write(self._stopping_write, b".")
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            with connection, connection.makefile("rb") as file:
                self._talk(connection, file)
        except (OSError, EOFError):
            pass  # the server under test dropped the connection
        finally:
            with self._changed:
                self._open.discard(connection)
                self._changed.notify_all()

    def _talk(self, connection, file):
        path = file.readline().split()[1].decode()
        headers = {}
        while (line := file.readline().strip()):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        if self.refusal:
            status, body = self.refusal
            raw = json.dumps(body).encode()
            connection.sendall(f"HTTP/1.1 {status} no\r\nContent-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n".encode() + raw)
            return
        if "upgrade" not in headers:  # the list of models
            connection.sendall(b"HTTP/1.1 404 no\r\nContent-Length: 0\r\n\r\n")
            return
        assert headers["upgrade"] == "websocket" and headers["sec-websocket-version"] == "13", headers
        accept = base64.b64encode(hashlib.sha1((headers["sec-websocket-key"] + MAGIC).encode()).digest()).decode()
        connection.sendall(f"HTTP/1.1 101 go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\nX-Request-Id: req_talk\r\n\r\n".encode())
        session = Session(path, headers)
        self._send(connection, {"type": "session.created", "session": {"id": "s"}})
        while not session.events or session.events[-1]["type"] != "response.create":
            session.events.append(json.loads(self._receive(file)))
        with self._changed:
            self.sessions.append(session)
            steps = self._plans.pop(0) if self._plans else [{"type": "error", "error": {"type": "invalid_request_error", "message": "the test planned no answer"}}]
            self._changed.notify_all()
        for step in steps:
            if step is CUT:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
                return
            if isinstance(step, Gate):
                if not step.play(connection, self._stopping_read):
                    return
            elif isinstance(step, bytes):
                connection.sendall(step)
            else:
                self._send(connection, step)
        while self._receive(file) is not None:
            pass

    @staticmethod
    def _send(connection, event):
        connection.sendall(frame(json.dumps(event).encode()))

    @staticmethod
    def _receive(file):
        """A message of the client, which must be masked; None at its close."""
        payload = b""
        while True:
            head = file.read(2)
            if len(head) < 2:
                raise EOFError
            size = head[1] & 0x7f
            assert head[1] & 0x80, "a frame that is not masked"
            size = struct.unpack("!H", file.read(2))[0] if size == 126 else struct.unpack("!Q", file.read(8))[0] if size == 127 else size
            mask = file.read(4)
            data = int.from_bytes(file.read(size), "little") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "little")
            payload += data.to_bytes(size, "little")
            if head[0] & 0x0f == 8:
                return None
            if head[0] & 0x80:
                return payload
