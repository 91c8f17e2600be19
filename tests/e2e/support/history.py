"""What the clients of several servers were shown, and a check at the end that all of it is stored."""
import collections
import http.client
import json
import subprocess
import threading
import time

from .client import Client
from .server import BINARY
from .timing import SLACK, SOON

TERMINAL = b"event: interaction_complete\n"
DELTAS = ("text_delta", "thinking_delta", "tool_output_delta")


class History:
    """Everything that clients were told. Contradictions are noted at once."""

    def __init__(self):
        self.lock = threading.Lock()
        self.blocks = collections.defaultdict(dict)   # (chat, interaction) -> number -> the event's bytes
        self.ends = {}                                # (chat, interaction) -> status of interaction_complete
        self.begun = {}                               # (chat, interaction) -> the message
        self.answers = collections.defaultdict(list)  # approval -> what was acknowledged
        self.problems = []

    def saw(self, run, number, block):
        with self.lock:
            before = self.blocks[run].setdefault(number, block)
            if before != block:
                self.problems.append(f"{run}: number {number} means two things: {before!r} and {block!r}")

    def ended(self, run, status):
        with self.lock:
            if self.ends.setdefault(run, status) != status:
                self.problems.append(f"{run} ended twice: {self.ends[run]} and {status}")

    def began(self, run, message):
        with self.lock:
            if self.begun.setdefault(run, message) != message:
                self.problems.append(f"{run} is the run of two messages: {self.begun[run]!r} and {message!r}")

    def answered(self, approval, what):
        with self.lock:
            self.answers[approval].append(what)

    # --- the check
    def check(self, client, verify=None, lost_tail=()):
        """Asserts that all that was seen is stored, byte for byte and in order, no number twice, and each question answered once. `client` is of any server."""
        problems = list(self.problems)
        for approval, answers in self.answers.items():
            if len(answers) > 1:
                problems.append(f"approval {approval} was taken {len(answers)} times: {answers}")
        for run, blocks in self.blocks.items():
            problems += self._check_run(client, run, blocks, run in lost_tail)
        chats = {chat: client.history(chat, "all")["interactions"] for chat in {chat for chat, _ in [*self.blocks, *self.begun]}}
        for (chat, interaction), message in self.begun.items():
            found = [each for each in chats[chat] if each["id"] == interaction]
            if len(found) != 1 or found[0]["user_message"] != message:
                problems.append(f"{chat} {interaction} was begun with {message!r} and is {found}")
        for chat, interactions in chats.items():
            numbers = [each["id"] for each in interactions]
            if len(set(numbers)) != len(numbers):
                problems.append(f"{chat}: a number twice: {numbers}")
        if verify:
            problems += verify()
        assert not problems, f"{len(problems)} problems:\n" + "\n".join(str(each)[:600] for each in problems[:20])

    def _check_run(self, client, run, blocks, may_miss):
        chat, interaction = run
        answer = client.get(f"/chats/{chat}/interactions/{interaction}")
        if answer.status != 200:
            return [f"{run} was shown, and is {answer.status} {answer.body[:200]!r}"]
        stored = answer.json
        problems = []
        if run in self.ends and stored["status"] != self.ends[run]:
            problems.append(f"{run} was said to be {self.ends[run]}, and is {stored['status']}")
        again = Follower(client.port, run, History(), reconnect=False, limit=10)
        again.follow(after=0)
        if not again.done:
            problems.append(f"{run}: a stream of it at {client.port} has no end: {again.last}")
        texts = collections.defaultdict(str)
        for number in sorted(blocks):
            name, data = parse(blocks[number])
            if name in DELTAS:
                if name == "text_delta":
                    texts[data["round_index"]] += data["content"]
                continue
            if again.blocks.get(number) != blocks[number] and not (may_miss and number > max(again.blocks, default=0)):
                problems.append(f"{run}: number {number} was {blocks[number]!r} and is {again.blocks.get(number)!r}")
        said = collections.defaultdict(str)
        for event in stored["agent_events"]:
            if event["type"] in ("MESSAGE", "ANSWER"):
                said[event["round_index"]] += event["content"]
        if not may_miss:
            for at, text in texts.items():
                if not said[at].startswith(text) and text not in said[at]:
                    problems.append(f"{run}: round {at} said {text!r}, and {said[at]!r} is stored")
        return problems


def parse(block):
    fields = dict(line.split(": ", 1) for line in block.decode().strip("\n").split("\n"))
    return fields["event"], json.loads(fields["data"])


class Follower:
    """A client of one run that reads its stream. If that breaks off, it continues on another server after the last event. `port` is a number or a function."""

    def __init__(self, port, run, history, reconnect=True, limit=60):
        self.port = port if callable(port) else lambda: port
        self.run, self.history, self.reconnect = run, history, reconnect
        self.deadline = time.monotonic() + limit * SLACK
        self.blocks, self.comments = {}, 0
        self.last, self.done, self.error = 0, False, None
        self.times = []  # time.monotonic() of each event
        self.breaks = 0
        self.changed = threading.Condition()

    def follow(self, after=None):
        self.last = self.last if after is None else after
        while not self.done and time.monotonic() < self.deadline:
            try:
                self._read(self._connect())
            except (OSError, http.client.HTTPException):
                pass
            if self.done or not self.reconnect:
                break
            self.breaks += 1
            time.sleep(0.02)
        return self

    def _connect(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port(), timeout=SOON * 2)
        connection.request("GET", f"/chats/{self.run[0]}/interactions/{self.run[1]}/events", headers={"Accept": "text/event-stream",
                                                                                                  "Last-Event-ID": str(self.last)})
        answer = connection.getresponse()
        if answer.status != 200:
            body = answer.read()
            connection.close()
            raise http.client.HTTPException(f"{answer.status} {body[:200]!r}")
        return answer

    def _read(self, answer):
        buffer = b""
        while data := answer.read1(65536):
            if time.monotonic() > self.deadline:
                raise http.client.HTTPException("too late")
            buffer += data
            while (end := buffer.find(b"\n\n")) >= 0:
                block, buffer = buffer[:end + 2], buffer[end + 2:]
                self.take(block)

    def take(self, block):
        if not block.startswith(b"id: "):
            self.comments += 1
            return
        number = int(block[4:block.index(b"\n")])
        with self.changed:
            if number <= self.last:
                self.history.problems.append(f"{self.run}: number {number} after {self.last}")
            self.last = number
            self.blocks[number] = block
            self.times.append(time.monotonic())
            self.history.saw(self.run, number, block)
            if TERMINAL in block:
                self.done = True
                self.history.ended(self.run, parse(block)[1]["status"])
            self.changed.notify_all()

    def start(self, after=None):
        self.thread = threading.Thread(target=self._guarded, args=(after,), daemon=True)
        self.thread.start()
        return self

    def _guarded(self, after):
        try:
            self.follow(after)
        except Exception as error:  # reported by `wait`
            self.error = error

    def wait(self, limit=60):
        self.thread.join(limit * SLACK)
        assert self.done and self.error is None, f"{self.run}: no end after {self.last}: {self.error} {list(self.blocks.values())[-2:]}"
        return self

    def await_event(self, name, limit=SOON):
        """Waits for the first event of that name. Returns its data."""
        with self.changed:
            def found():
                return next((data for each in self.blocks.values() if (data := parse(each))[0] == name), None)
            assert self.changed.wait_for(found, limit), f"{self.run}: no {name} in {list(self.blocks.values())[-3:]}"
            return found()[1]

    def text(self):
        return b"".join(self.blocks[number] for number in sorted(self.blocks))


def begin(port, history, chat, message, limit=SOON, **more):
    """Starts a run and disconnects. Returns its id, or the refusal."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=limit)
    try:
        connection.request("POST", f"/chats/{chat}/interactions", json.dumps({"user_message": message, "on_disconnect": "continue", **more}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            return Refused(answer.status, json.loads(answer.read()))
        buffer = b""
        while b"\n\n" not in buffer:
            data = answer.read1(65536)
            if not data:
                raise http.client.HTTPException("the stream ended before its first event")
            buffer += data
    finally:
        connection.close()
    number = parse(buffer[:buffer.index(b"\n\n") + 2])[1]["interaction_id"]
    history.saw((chat, number), 1, buffer[:buffer.index(b"\n\n") + 2])
    history.began((chat, number), message)
    return number


class Refused:
    def __init__(self, status, body):
        self.status, self.code, self.details = status, body["error"]["code"], body["error"].get("details")

    def __repr__(self):
        return f"{self.status} {self.code} {self.details}"


def verify_database(home, url):
    """The report of `reprise verify` about all records."""
    file = home.path / "db.json"
    file.write_text(json.dumps({"store": {"type": "postgres", "url": url}}))
    done = subprocess.run([str(BINARY), "verify", "--json", "--config", str(file)], env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60 * SLACK, check=False)
    return [] if done.returncode == 0 and json.loads(done.stdout)["ok"] else [f"verify: {done.stdout[-1500:]} {done.stderr[-500:]}"]


def answers_at(ports, chat, interaction, approval, approved=True):
    """Gives the answer to all these servers at the same moment. Returns the responses."""
    from .timing import at_once
    return at_once([lambda port=port: Client(port).approve(chat, interaction, approval, approved) for port in ports])


def shown(client, chat, interaction):
    """Waits until the server of the run has shown its question. Others list it a moment earlier, but only then does it outlive that server."""
    stream = client.attach(chat, interaction, after=0)
    stream.until("approval_required")
    stream.close()
