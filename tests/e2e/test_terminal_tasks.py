"""Twenty tasks of a day at the terminal, walked key by key. The table in docs/terminal.md tells how many keys each takes, and must say what is pressed here."""
import pathlib
import re
import time

import pytest

from support.provider import Gate, call, text, tools
from support.timing import SLACK, eventually
from test_terminal_keys import attached  # noqa: F401 (a fixture)

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "terminal.md"
KEYS = {"Enter": b"\r", "Esc": b"\x1b", "Tab": b"\t", "Down": b"\x1b[B", "Shift-Tab": b"\x1b[Z",
        "Ctrl-R": b"\x12", "Ctrl-O": b"\x0f", "Ctrl-T": b"\x14", "Ctrl-G": b"\x07"}
WORDS = "WORDS"  # of the person's own, which are not counted
MOST_SECONDS = 1  # from a key to what it shows


class Hand:
    """Presses keys and waits for what they show, and notes both."""

    def __init__(self, chat):
        self.chat = chat
        self.pressed = []
        self.count = 0
        self.slowest = 0

    def _wait(self, shows):
        began = time.monotonic()
        shows(self.chat)
        self.slowest = max(self.slowest, time.monotonic() - began)
        return self

    def words(self, said, shows=None):
        self.chat.type(said)
        self.pressed.append(WORDS)
        return self._wait(shows or (lambda chat: chat.ready_for(said[-20:])))

    def write(self, typed, shows=None):
        """Characters of a command, or of an answer."""
        for key in typed:
            self.chat.type(key).quiet(0.03)  # as fast as a person types
        self.pressed.append(typed.strip())
        self.count += len(typed)
        return self._wait(shows or (lambda chat: chat.ready_for(typed.rstrip())))

    def press(self, key, shows):
        self.chat.type(KEYS.get(key, key.encode()))
        self.pressed.append(key)
        self.count += 1
        return self._wait(shows)

    def answer(self, key, shows):
        self.chat.quiet(0.6 * SLACK)  # the question is read
        return self.press(key, shows)


def until(*words):
    def waits(chat):
        for word in words:
            chat.until(word)
        chat.ready()
    return waits


def shown(word):
    return lambda chat: chat.until(word)


def in_line(typed):
    return lambda chat: chat.ready(typed)


@pytest.fixture
def day(attached, server, provider):
    """A chat that has begun: a file was written, and another chat is there."""
    provider.answer_with(lambda request: text("fine"))
    server.client.turn("other", "the other chat")
    chat = attached(rows=50, PAGER="cat", EDITOR="printf ' and more' >>")
    return Hand(chat)


def asks(provider, hand, *replies):
    """Brings the approval of a call."""
    provider.plan(*(replies or (tools(call("write_file", {"path": "new.txt", "content": "1\n"}, "w1")), text("fine"))))
    hand.chat.say("write it").until("allow?")
    return hand


def written(provider, hand, name="new.txt"):
    asks(provider, hand, tools(call("write_file", {"path": name, "content": "1\n"}, "w1")), text("written"))
    hand.chat.answer("y").until("written").ready()
    return hand


def task_ask(hand, provider, server):
    hand.words("what is this?").press("Enter", until("fine"))


def task_stop(hand, provider, server):
    provider.plan(text("half", Gate()))
    hand.chat.say("go").until("half")
    hand.press("Esc", until("(cancelled)"))


def task_back(hand, provider, server):
    written(provider, hand)
    hand.write("/edit 1").press("Enter", lambda chat: chat.ready_for("write it"))
    hand.words(" anew", lambda chat: chat.ready_for("write it anew")).press("Enter", shown("put files back?"))
    hand.answer("y", until("fine"))
    assert not (server.home.workspace / "new.txt").exists()


def task_approve(hand, provider, server):
    asks(provider, hand).answer("y", until("fine"))


def task_pattern(hand, provider, server):
    asks(provider, hand).answer("1", until("fine"))
    assert server.client.get("/chats/c/grants").json["grants"]


def task_deny(hand, provider, server):
    asks(provider, hand).chat.quiet(0.6 * SLACK)
    hand.write("n ", shown("n")).words("use another name", shown("another name")).press("Enter", until("fine"))


def task_arguments(hand, provider, server):
    asks(provider, hand).answer("e", shown('"path"'))
    hand.chat.type(b"\x15")  # what the words replace
    hand.words('{"path": "b.txt", "content": "2\\n"}', shown("b.txt")).press("Enter", shown("allow?"))
    hand.answer("y", until("fine"))
    assert (server.home.workspace / "b.txt").read_text() == "2\n"


def task_mode(hand, provider, server):
    hand.press("Shift-Tab", shown("before you have approved a plan"))


def task_attach(hand, provider, server):
    (server.home.path / "notes.txt").write_text("x\n")
    hand.write("@", lambda chat: chat.ready_for("@")).words("no", shown("notes.txt")).press("Tab", in_line("@notes.txt"))


def task_command(hand, provider, server):
    hand.write("!").words("echo of my own").press("Enter", until("of my own"))


def task_resume(hand, provider, server):
    hand.write("/resume").press("Enter", shown("› the other chat")).press("Enter", until("chat other"))


def task_search(hand, provider, server):
    hand.chat.say("the first question").until("fine").ready().say("another").until("fine").ready()
    hand.press("Ctrl-R", shown("the first question")).words("first", shown("first")).press("Enter", in_line("the first question"))


def task_open(hand, provider, server):
    provider.plan(tools(call("list_files", {"path": "."}, "l1")), text("fine"))
    for number in range(30):
        (server.home.workspace / f"file{number:02}.txt").write_text("x")
    hand.chat.say("list").until("fine").ready()
    hand.press("Ctrl-O", shown("file15.txt"))


def task_transcript(hand, provider, server):
    hand.chat.say("the first question").until("fine").ready()
    hand.press("Ctrl-T", until("the first question"))


def task_editor(hand, provider, server):
    hand.words("some").press("Ctrl-G", in_line("some and more"))


def task_queue(hand, provider, server):
    provider.plan(text("half", Gate()))
    hand.chat.say("go").until("half")
    hand.words("and then").press("Enter", shown("queued: and then")).press("Esc", in_line("and then"))


def task_grants(hand, provider, server):
    asks(provider, hand).chat.answer("1").until("fine").ready()
    hand.write("/grants").press("Enter", until("1. ")).write("/grants revoke 1").press("Enter", until("is taken back"))


def task_model(hand, provider, server):
    hand.write("/model").press("Enter", shown("› offline")).press("Enter", until("the next messages go to"))


def task_fork(hand, provider, server):
    hand.chat.say("hello").until("fine").ready()
    hand.write("/fork").press("Enter", until("> hello"))


def task_rewind(hand, provider, server):
    written(provider, hand)
    hand.write("/undo files").press("Enter", shown("new.txt"))
    eventually(lambda: not (server.home.workspace / "new.txt").exists(), "the file is as it was")


def task_cost(hand, provider, server):
    hand.chat.say("hello").until("fine").ready()
    hand.write("/usage").press("Enter", until("tokens"))


def task_export(hand, provider, server):
    hand.chat.say("hello").until("fine").ready()
    hand.write("/export ").words("chat.md").press("Enter", until("written to"))
    assert "hello" in (server.home.path / "chat.md").read_text()


TASKS = {
    "ask something": task_ask,
    "stop a run": task_stop,
    "go back to an earlier message, with the files of that time": task_back,
    "allow a call once (`a`: in this chat)": task_approve,
    "allow all calls of a pattern": task_pattern,
    "deny a call, and say what to do instead": task_deny,
    "change a call's arguments, and allow it": task_arguments,
    "change the mode": task_mode,
    "attach a file": task_attach,
    "run a command of your own": task_command,
    "open another chat": task_resume,
    "find an earlier message": task_search,
    "open a folded result": task_open,
    "read the whole chat in the pager": task_transcript,
    "write the message in your editor": task_editor,
    "queue a message, and take it back": task_queue,
    "see the grants, and revoke one": task_grants,
    "change the model": task_model,
    "fork the chat": task_fork,
    "undo a turn with its files": task_rewind,
    "see tokens and cost": task_cost,
    "export the chat": task_export,
}


def documented():
    section = DOCS.read_text().split("## Twenty-two tasks\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (\d+) \|$", section, re.MULTILINE)
    return {task: (keys.replace("`", ""), int(count)) for task, keys, count in rows}


def test_the_documentation_names_these_tasks():
    assert list(documented()) == list(TASKS) and len(TASKS) >= 20


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.split("(")[0].strip().replace(" ", "-"))
def test_a_task_takes_the_documented_keys(day, provider, server, task):
    TASKS[task](day, provider, server)
    assert (" ".join(day.pressed), day.count) == documented()[task]
    assert day.slowest < MOST_SECONDS * SLACK, f"{day.slowest:.2f} s for one key"
