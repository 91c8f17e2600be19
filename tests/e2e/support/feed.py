"""GET /events, read strictly: changes of all chats, and events of those that are followed."""
import http.client
import json

from . import schemas
from .timing import SOON


class Frame:
    def __init__(self, cursor, name, data):
        self.id = cursor
        self.name = name
        self.data = data

    def __repr__(self):
        return f"{self.name} {json.dumps(self.data)[:300]}"

    def __getitem__(self, key):
        return self.data[key]


def check_frame(name, data):
    if name == "chat_event":
        schemas.check("chat_event", data)
        schemas.check_event(data["event"])
    elif name in ("open", "reset"):
        assert data == {}
    else:
        schemas.check("chat_change", data)


class Feed:
    """One connection. Each frame is checked against its schema as it arrives."""

    def __init__(self, client, *chats, after=None, last_event_id=None):
        query = [f"chat={chat}" for chat in chats] + ([f"after={after}"] if after else [])
        headers = client._headers(None, {"Last-Event-ID": last_event_id} if last_event_id else {})
        self.connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=SOON)
        self.connection.request("GET", "/events" + ("?" + "&".join(query) if query else ""), headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, (self.response.status, self.response.read())
        assert self.response.headers["Content-Type"] == "text/event-stream"
        self.buffer = b""
        self.frames = []

    def next(self):
        """The next frame; None at the end."""
        while (end := self.buffer.find(b"\n\n")) < 0:
            data = self.response.read1(65536)
            if not data:
                assert not self.buffer, self.buffer
                return None
            self.buffer += data
        block, self.buffer = self.buffer[:end].decode(), self.buffer[end + 2:]
        if block.startswith(":"):
            return self.next()
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        assert list(lines) == ["id", "event", "data"], block
        frame = Frame(lines["id"], lines["event"], json.loads(lines["data"]))
        check_frame(frame.name, frame.data)
        self.frames.append(frame)
        return frame

    def until(self, name, **match):
        while True:
            frame = self.next()
            assert frame, f"the feed ended without {name}: {self.frames}"
            if frame.name == name and all(frame.data.get(k) == v for k, v in match.items()):
                return frame

    def until_event(self, kind, **match):
        """The next chat_event whose event is of this type."""
        while True:
            frame = self.until("chat_event")
            if frame["event"]["type"] == kind and all(frame.data.get(k) == v for k, v in match.items()):
                return frame

    def close(self):
        self.response.close()
        self.connection.close()


def events_of(frames, chat, interaction):
    return [f["event"] for f in frames if f.name == "chat_event" and f["chat_id"] == chat and f["interaction_id"] == interaction]
