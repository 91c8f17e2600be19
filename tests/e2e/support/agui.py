"""A client of POST /agui. Every stream must obey the rules that @ag-ui/client checks: order, open items, endings."""
import http.client
import itertools
import json

from .timing import SOON

NUMBER = itertools.count(1)


class Checker:
    """Checks the order of events required by AG-UI 1.0."""

    def __init__(self):
        self.events = []
        self.open = {"text": set(), "call": set(), "thought": set(), "span": set(), "agent": set()}
        self.is_over = False

    def check(self, event):
        kind = event["type"]
        assert not self.is_over, f"{event} after the end"
        assert self.events or kind == "RUN_STARTED", f"the first event is {event}"
        self.events.append(event)
        name = event.get("messageId")
        for start, content, end, what in (("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "text"),
                                          ("REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_END", "thought"),
                                          ("REASONING_START", None, "REASONING_END", "span"), ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "call"),
                                          ("SUBAGENT_STARTED", None, ("SUBAGENT_FINISHED", "SUBAGENT_ERROR"), "agent")):
            key = event.get("toolCallId") if what == "call" else event.get("subagentRunId") if what == "agent" else name
            if kind == start:
                assert key not in self.open[what], event
                self.open[what].add(key)
            elif kind == content:
                assert key in self.open[what] and event["delta"], event
            elif kind == end or kind in (end if isinstance(end, tuple) else ()):
                self.open[what].remove(key)
        if kind == "RUN_FINISHED":
            assert not any(self.open.values()), f"open at the end: {self.open}"
        self.is_over = kind in ("RUN_FINISHED", "RUN_ERROR")


class Run:
    """The stream of one run."""

    def __init__(self, server, body, headers=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SOON)
        self.connection.request("POST", "/agui", json.dumps(body), {"Content-Type": "application/json", **(headers or {})})
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.checker = Checker()
        self.buffer = b""
        if self.status == 200:
            assert self.response.headers["Content-Type"].startswith("text/event-stream")

    def next(self):
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
        event = json.loads(block[6:])
        self.checker.check(event)
        return event

    def until(self, kind):
        while (event := self.next())["type"] != kind:
            pass
        return event

    def finish(self):
        while self.next():
            pass
        self.connection.close()
        assert self.checker.is_over, self.checker.events[-3:]
        return self

    def close(self):
        self.connection.sock.close() if self.connection.sock else None
        self.response.close()
        self.connection.close()

    @property
    def events(self):
        return self.checker.events

    @property
    def end(self):
        return self.events[-1]

    @property
    def interrupts(self):
        assert self.end["type"] == "RUN_FINISHED" and self.end["outcome"]["type"] == "interrupt", self.end
        return self.end["outcome"]["interrupts"]

    def of(self, kind):
        return [e for e in self.events if e["type"] == kind]

    def said(self):
        return "".join(e["delta"] for e in self.of("TEXT_MESSAGE_CONTENT") if "subagentRunId" not in e)


class Thread:
    """A thread as a front end keeps it: each run sends all messages."""

    def __init__(self, server, thread="thread-1"):
        self.server, self.thread = server, thread
        self.messages = []

    def body(self, **more):
        return {"threadId": self.thread, "runId": f"run-{next(NUMBER)}", "protocolVersion": "1.0", "messages": self.messages, "tools": [], "context": [], "state": {}, **more}

    def start(self, text=None, **more):
        if text is not None:
            self.messages.append({"id": f"user-{next(NUMBER)}", "role": "user", "content": text})
        return Run(self.server, self.body(**more))

    def run(self, text=None, **more):
        run = self.start(text, **more).finish()
        self.keep(run)
        return run

    def resume(self, *entries, **more):
        run = self.start(resume=list(entries), **more).finish()
        self.keep(run)
        return run

    def keep(self, run):
        """Applies the events to the messages, as a client does."""
        for event in run.events:
            kind = event["type"]
            if kind == "MESSAGES_SNAPSHOT":
                self.messages = list(event["messages"])
            elif kind == "TEXT_MESSAGE_START":
                self.messages.append({"id": event["messageId"], "role": "assistant", "content": ""})
            elif kind == "TEXT_MESSAGE_CONTENT":
                next(m for m in self.messages if m["id"] == event["messageId"])["content"] += event["delta"]
            elif kind == "TOOL_CALL_RESULT":
                self.messages.append({"id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"], "content": event["content"]})


def resolved(interrupt, **payload):
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
