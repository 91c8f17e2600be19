"""An editor, as a client of GET /chats/{chat}/editor."""
import http.client

from support import schemas
from support.client import SseParser
from support.timing import SOON


class Editor:
    def __init__(self, server, chat="c", writes=True):
        self.server, self.chat = server, chat
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SOON)
        self.connection.request("GET", f"/chats/{chat}/editor?writes={'true' if writes else 'false'}")
        self.response = self.connection.getresponse()
        assert self.response.status == 200 and self.response.headers["Content-Type"] == "text/event-stream"
        self.parser, self.events = SseParser(), []
        opened = self.next()
        assert (opened.name, opened.data) == ("editor_open", {"chat_id": chat})

    def next(self):
        """The next event; None at the end of the stream."""
        while not self.events:
            try:
                data = self.response.read1(65536)
            except http.client.IncompleteRead:
                return None
            if not data:
                return None
            self.events += self.parser.feed(data)
        return self.events.pop(0)

    def asked(self):
        event = self.next()
        assert event.name == "editor_request"
        schemas.check("editor_request", event.data)
        return event.data

    def answer(self, request, **body):
        return self.server.client.post(f"/chats/{self.chat}/editor/{request['request_id']}", body)

    def close(self):
        self.connection.sock.close() if self.connection.sock else None
        self.response.close()
        self.connection.close()
