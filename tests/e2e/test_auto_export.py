"""`export.auto`: each finished interaction is written elsewhere, without secrets, and no turn waits for that."""
import http.server
import json
import re
import threading

import pytest
from support.provider import Gate, text
from support.server import API_KEY
from support.timing import eventually

TOKEN = "ghp_" + "a1B2" * 10


class Receiver:
    """Takes what is posted, once it may, and answers with `status`."""

    def __init__(self):
        self.got, self.status, self.may = [], 200, threading.Event()
        self.may.set()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.may.wait()
                receiver.got.append((self.path, dict(self.headers), body.decode()))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/take?dataset=a"

    def close(self):
        self.may.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


def counts(client):
    served = client.get("/metrics").expect(200).body.decode()
    return {name: int(count) for name, count in re.findall(r"^reprise_export_(\w+)_total (\d+)$", served, re.M)}


@pytest.mark.parametrize("form", ["jsonl", "atif"])
def test_each_interaction_becomes_a_private_file_without_secrets(make_server, provider, tmp_path, form):
    folder = tmp_path / "made" / "here"
    client = make_server(provider, config={"export": {"auto": str(folder), "format": form}}).client
    provider.plan(text("It is here."), text("Yes."))
    client.turn("notes", f"Where? {API_KEY} {TOKEN}")
    client.turn("notes", "Sure?")
    eventually(lambda: counts(client) == {"written": 2, "failed": 0, "dropped": 0}, "both are written")
    end = "json" if form == "atif" else "jsonl"
    assert sorted(path.name for path in folder.iterdir()) == [f"notes-int_001.{end}", f"notes-int_002.{end}"]
    first, second = (path.read_text() for path in sorted(folder.iterdir()))
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir()) and folder.stat().st_mode & 0o777 == 0o700
    assert "It is here." in first and "Where?" in first and API_KEY not in first and TOKEN not in first
    if form == "atif":
        assert [step["message"] for step in json.loads(second)["steps"]] == ["Sure?", "Yes."]
    else:
        assert [message["content"] for message in json.loads(second)["messages"]][-2:] == ["Sure?", "Yes."] and TOKEN not in second


def test_an_address_gets_them_and_failures_are_counted_and_said(make_server, provider, receiver):
    server = make_server(provider, config={"export": {"auto": receiver.url, "headers": {"X-Key": "secret-of-the-dataset"}}})
    provider.plan(text("One."), text("Two."), text("Three."))
    server.client.turn("a", "1")
    eventually(lambda: counts(server.client)["written"] == 1, "one is written")
    path, headers, body = receiver.got[0]
    assert path == "/take?dataset=a" and headers["X-Key"] == "secret-of-the-dataset" and headers["Content-Type"] == "application/jsonl"
    assert json.loads(body)["messages"][-1]["content"] == "One."
    receiver.status = 500
    server.client.turn("a", "2")
    eventually(lambda: counts(server.client)["failed"] == 1, "one has failed")
    receiver.status = 204
    server.client.turn("a", "3")
    eventually(lambda: counts(server.client)["written"] == 2, "it works again")
    said = next(line for line in server.log().splitlines() if "could not be written" in line)
    for each in ('chat="a"', 'interaction="int_002"', 'to="127.0.0.1"', 'error="the answer has the status 500"'):
        assert each in said
    assert "works again" in server.log() and "secret-of-the-dataset" not in server.log() and "dataset=a" not in server.log()


def test_a_receiver_that_hangs_holds_up_no_turn(make_server, provider, receiver):
    server = make_server(provider, config={"export": {"auto": receiver.url}})
    server.check_records = False  # so many turns take long to replay
    client = server.client
    receiver.may.clear()
    provider.answer_with(lambda request: text("ok"))
    for i in range(70):
        client.turn(f"c{i}", "go")
    assert counts(client) == {"written": 0, "failed": 0, "dropped": 6}
    server.close()  # while it hangs
    assert 'msg="export.auto: interactions were dropped" count=70' in server.log()


def files(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_nothing_is_replaced(make_server, provider, tmp_path):
    folder = tmp_path / "out"
    client = make_server(provider, config={"export": {"auto": str(folder)}}).client
    for number, answer in enumerate(("First.", "Second."), 1):
        provider.plan(text(answer))
        client.turn("notes", "Go")
        eventually(lambda count=number: counts(client)["written"] == count, "it is written")
        client.request("DELETE", "/chats/notes")
    second, first = files(folder)
    assert first == "notes-int_001.jsonl" and re.fullmatch(r"notes-int_001-\d{8}T\d{9}Z\.jsonl", second)
    assert "First." in (folder / first).read_text() and "Second." in (folder / second).read_text()


@pytest.mark.parametrize("form", ["jsonl", "atif"])
def test_the_name_of_a_chat_is_taken_out_too(make_server, provider, tmp_path, form):
    folder = tmp_path / "out"
    client = make_server(provider, config={"export": {"auto": str(folder), "format": form}}).client
    provider.plan(text("One."), text("Two."))
    for end in ("a", "b"):
        client.turn(TOKEN[:-1] + end, "Go")
    eventually(lambda: counts(client)["written"] == 2, "both are written")
    assert len(files(folder)) == 2 and all(name.startswith("x" * len(TOKEN) + "-int_001") for name in files(folder))
    assert not [path for path in folder.iterdir() if TOKEN[:-1] in path.read_text()]


def test_an_interaction_that_a_kill_cut_off_is_written_after_the_next_start(make_server, make_home, provider, tmp_path):
    folder, home, gate = tmp_path / "out", make_home(), Gate()
    config = {"export": {"auto": str(folder), "format": "atif"}}
    server = make_server(provider, home=home, config=config)
    provider.plan(text("A part ", gate, "and the rest."))
    server.client.start("notes", "Go").until("text_delta")
    server.kill()
    gate.release()
    client = make_server(provider, home=home, config=config).client
    eventually(lambda: counts(client) == {"written": 1, "failed": 0, "dropped": 0}, "it is written")
    assert files(folder) == ["notes-int_001.json"]
    assert client.interaction("notes", "int_001")["status"] == json.loads((folder / "notes-int_001.json").read_text())["steps"][-1]["message"]
