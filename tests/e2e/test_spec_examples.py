"""The specification's own curl commands (sections 3.1 and 8.1), as written; only the port differs."""
import json
import re
import shlex
import subprocess

from support.client import SseParser
from support.timing import SOON

BASIC = """curl -N http://localhost:8000/chats/test_chat/interactions \\
  -H "Content-Type: application/json" \\
  -d '{"user_message": "Hello"}'"""
START = """curl -N -X POST http://localhost:8000/chats/chat_123/interactions \\
  -H "Content-Type: application/json" \\
  -d '{"user_message": "Search for latest AI news"}'"""
CANCEL = "curl -X POST http://localhost:8000/chats/test_chat/interactions/int_123/cancel"
APPROVE = """curl -X POST http://localhost:8000/chats/test_chat/interactions/int_123/approve \\
  -H "Content-Type: application/json" \\
  -d '{"approval_id": "approval_abc", "approved": true}'"""


def words(command, server):
    return [*shlex.split(command.replace("\\\n", " ").replace("localhost:8000", f"localhost:{server.port}")), "-sS", "--noproxy", "*"]


def run(command, server):
    return subprocess.run(words(command, server), stdout=subprocess.PIPE, timeout=SOON, check=True).stdout


class LiveCurl:
    """`curl -N` as in its own terminal; reads events as they appear."""

    def __init__(self, command, server):
        self.process = subprocess.Popen(words(command, server), stdout=subprocess.PIPE)
        self.parser = SseParser()
        self.events = []

    def until(self, name):
        while not (self.events and self.events[-1].name == name):
            data = self.process.stdout.read1(1)
            assert data, f"curl ended before {name}: {self.events}"
            self.events += self.parser.feed(data)
        return self.events[-1]

    def finish(self):
        self.events += self.parser.feed(self.process.stdout.read())
        assert self.process.wait(SOON) == 0
        self.process.stdout.close()
        return [e.name for e in self.events]


def test_basic_streaming_into_a_chat_that_did_not_exist(offline):
    events = SseParser().feed(run(BASIC, offline))
    assert events[0].name == "interaction_started"
    assert events[-1].name == "interaction_complete" and events[-1]["status"] == "COMPLETED"
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert [e.name for e in events].count("answer") == 1
    assert run("curl http://localhost:8000/chats/test_chat", offline)


def test_start_with_an_explicit_post(offline):
    events = SseParser().feed(run(START, offline))
    assert events[-1]["status"] == "COMPLETED"


def test_cancel_from_a_second_terminal(offline):
    first = LiveCurl(BASIC.replace("Hello", "run: sleep 1000"), offline)
    first.until("approval_required")
    interaction = first.events[0]["interaction_id"]
    answer = json.loads(run(CANCEL.replace("int_123", interaction), offline))
    assert answer["status"] == "cancelling" and answer["interaction_id"] == interaction and answer["message"]
    assert first.finish()[-2:] == ["cancelled", "interaction_complete"]


def test_approve_from_a_second_terminal(offline):
    first = LiveCurl(BASIC.replace("Hello", "run: printf done > proof.txt"), offline)
    asked = first.until("approval_required")
    command = APPROVE.replace("int_123", first.events[0]["interaction_id"]).replace("approval_abc", asked["approval_id"])
    answer = json.loads(run(command, offline))
    assert answer == {"status": "processed", "approval_id": asked["approval_id"], "approved": True}
    names = first.finish()
    assert names[names.index("approved"):][:2] == ["approved", "tool_call"]
    assert (offline.home.workspace / "proof.txt").read_text() == "done"


def test_the_examples_ids_do_not_exist(offline):
    run(BASIC, offline)
    for command in (CANCEL, APPROVE):
        status = run(command + " -o /dev/null -w '%{http_code}'", offline)
        assert status == b"404"


def test_chat_history_has_the_specified_fields(offline):
    run(BASIC, offline)
    chat = json.loads(run("curl http://localhost:8000/chats/test_chat", offline))
    assert {"id", "interactions", "created_at"} <= chat.keys()
    assert {"id", "status", "user_message", "agent_events", "final_agent_state", "created_at", "completed_at"} <= chat["interactions"][0].keys()
    assert chat["interactions"][0]["user_message"] == "Hello"
    assert re.fullmatch(r"int_\d{3,}", chat["interactions"][0]["id"])


def test_edit_with_curl(offline):
    run(BASIC, offline)
    edited = run("""curl -N -X POST http://localhost:8000/chats/test_chat/interactions/int_001/edit \\
      -H "Content-Type: application/json" -d '{"new_user_message": "echo Madrid"}'""", offline)
    events = SseParser().feed(edited)
    assert events[0]["edited_from"] == "int_001" and events[-1]["status"] == "COMPLETED"
