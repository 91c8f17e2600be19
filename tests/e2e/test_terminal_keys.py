"""Typing in the terminal client: keys that answer, keys that stop, queued messages, other clients of the same chat."""
import json
import os
import random
import re
import signal
import time

import pyte
import pytest

from support.provider import Gate, call, text, tools
from support.terminal import ASKS_FOR_KEYS, PASTE_BEGIN, PASTE_END, QUIET
from support.timing import SOON, eventually
from test_folder_config import own_configuration

ESC, CTRL_C, CTRL_D, LEFT, CLEAR = b"\x1b", b"\x03", b"\x04", b"\x1b[D", b"\x15"
STOPS = pytest.mark.parametrize("stop", [ESC, CTRL_C], ids=["Esc", "Ctrl-C"])


@pytest.fixture
def attached(server, open_terminal):
    def make(name="c", idle=True, **how):
        terminal = open_terminal(server.home, "chat", name, "--url", f"http://127.0.0.1:{server.port}", **{"columns": 120, "rows": 40, **how}).opened()
        return terminal.ready() if idle else terminal
    return make


def messages(server, name="c"):
    return [i["user_message"] for i in server.client.history(name)["interactions"]]


def waiting(server):
    return server.client.get("/approvals").json["approvals"]


def queued(server):
    return [each["user_message"] for each in server.client.get("/chats/c/queue").json["queue"]]


def files(server):
    return sorted(path.name for path in server.home.workspace.iterdir())


def write(name, call_id=None):
    return call("write_file", {"path": name, "content": "1"}, call_id or name)


# --- Esc and Ctrl-C --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("after", [0, 0.2, 1], ids=["at once", "soon", "late"])
def test_esc_at_the_prompt_swallows_no_key(attached, server, provider, after):
    provider.plan(text("fine"))
    chat = attached()
    chat.type("xy").type(LEFT).ready("xy").type(ESC).quiet(after)
    chat.type("hello\r").until("fine").ready()
    assert messages(server) == ["xhelloy"]


def test_what_follows_esc_counts_while_it_runs(attached, server, provider):
    provider.plan(text("half", Gate()), text("fine"))
    chat = attached()
    chat.say("go").until("half").type(ESC).quiet(0.3)
    chat.type("hello").until("(cancelled)").ready("hello").type("\r").until("fine").ready()
    assert messages(server) == ["go", "hello"]


@STOPS
def test_what_waits_comes_back_into_the_line_when_the_run_is_stopped(attached, server, provider, stop):
    provider.plan(text("half", Gate()), text("fine"))
    chat = attached()
    chat.say("go").until("half").say("first").until("queued: first").say("second").until("queued: second")
    chat.type("third").ready_for("third").type(stop).until("(cancelled)").shows("> first", "second", "third")
    assert server.client.interaction("c", "int_001")["status"] == "CANCELLED" and queued(server) == [] and len(provider.requests) == 1
    chat.type("\r").until("fine").ready()
    assert messages(server) == ["go", "first\nsecond\nthird"]


@STOPS
def test_a_message_behind_the_run_of_another_client_is_taken_back_and_the_run_goes_on(attached, server, provider, stop):
    gate = Gate()
    provider.plan(text("half", gate, " and whole"), text("fine"))
    theirs = server.client.start("c", "theirs")
    gate.wait_reached()
    chat = attached(idle=False)
    chat.until("half").say("mine").until("queued: mine")
    eventually(lambda: queued(server) == ["mine"], "it waits")
    chat.type(stop).ready_for("> mine")
    assert queued(server) == []
    gate.release()
    theirs.finish()
    chat.until("and whole").ready("mine")
    assert messages(server) == ["theirs"] and len(provider.requests) == 1
    chat.type("\r").until("fine").ready()
    assert messages(server) == ["theirs", "mine"]


def test_a_question_of_another_client_goes_on_when_a_message_behind_it_is_taken_back(attached, server, provider):
    gate = Gate()
    reply = tools(write("a.txt"), say="thinking")
    reply.steps.insert(2, gate)
    provider.plan(reply, text("done"))
    chat = attached()
    theirs = server.client.start("c", "theirs")
    chat.until("thinking").say("mine").until("queued: mine")
    gate.release()
    chat.until("allow?").type(ESC).until("kept for later: mine")
    assert queued(server) == [] and len(waiting(server)) == 1
    chat.answer("y").until("done").ready("mine")
    theirs.finish()
    assert messages(server) == ["theirs"] and files(server) == ["a.txt"]


def test_a_message_taken_from_the_queue_elsewhere_returns_to_the_line(attached, server, provider):
    gate = Gate()
    provider.plan(text("half", gate, " and whole"))
    chat = attached()
    chat.say("go").until("half").say("later").until("queued: later")
    entry, = server.client.get("/chats/c/queue").json["queue"]
    server.client.request("DELETE", f"/chats/c/queue/{entry['id']}").expect(200)
    gate.release()
    chat.until("and whole").until("back in the input line").ready("later")
    assert messages(server) == ["go"]


# --- other clients at the same chat ----------------------------------------------------------------------------------

def test_an_idle_client_shows_what_others_say_and_hear(attached, server, provider):
    provider.plan(text("first answer"), text("second answer"), text("third answer"))
    one, two = attached(), attached()
    server.client.turn("c", "by curl")
    for chat in (one, two):
        chat.until("> by curl").until("first answer").ready()
    one.say("by one").until("second answer").ready()
    two.until("> by one").until("second answer").ready().type("half")
    one.say("by one again")
    two.until("> by one again").until("third answer").ready("half")
    one.until("third answer").ready()
    assert sum("by one again" in line for line in one.screen) == 1, one.screen


def test_a_question_of_another_client_is_asked_and_can_be_answered(attached, server, provider):
    provider.plan(tools(write("a.txt")), text("done"), tools(write("b.txt")), text("end"))
    one, two = attached(), attached()
    one.say("write").until("allow?")
    two.until("> write").until("write_file a.txt").until("allow?").answer("y").until("done").ready()
    one.until("(already answered)").until("done").ready()
    stream = server.client.start("c", "again")
    asked = stream.until("approval_required")
    one.until("allow?")
    two.until("allow?")
    server.client.approve("c", stream.interaction, asked["approval_id"]).expect(200)
    stream.finish()
    for chat in (one, two):
        chat.until("(already answered)").until("end").ready()
    assert files(server) == ["a.txt", "b.txt"] and messages(server) == ["write", "again"]


def test_a_letter_meant_for_a_question_is_not_sent_as_a_message(attached, server, provider):
    provider.plan(tools(write("a.txt")), text("done"))
    chat = attached()
    stream = server.client.start("c", "write", on_disconnect="continue")
    stream.until("approval_required")
    chat.until("allow?").type("y\r").until("kept for later: y")
    assert queued(server) == [] and len(waiting(server)) == 1
    chat.answer("y").until("done").ready("y")
    assert messages(server) == ["write"]
    stream.finish()


# --- questions -------------------------------------------------------------------------------------------------------

def test_a_key_answers_alone_and_not_too_soon(attached, server, provider):
    provider.plan(tools(write("a.txt")), text("done"))
    chat = attached()
    chat.say("write").until("allow?").type("y").ready_for(": y").quiet(QUIET)
    assert len(waiting(server)) == 1 and files(server) == []
    chat.type("y").ready_for(": yy")
    assert len(waiting(server)) == 1
    chat.type(CLEAR).answer("y").until("done").ready()
    assert files(server) == ["a.txt"]


def test_keys_are_text_while_the_line_holds_text(attached, server, provider):
    gate = Gate()
    reply = tools(write("a.txt"), say="thinking")
    reply.steps.insert(2, gate)
    provider.plan(reply, text("done"), text("fine"))
    chat = attached()
    chat.say("write").until("thinking").type("half").ready_for("half")
    gate.release()
    chat.until("allow?").answer("y").ready_for("halfy")
    assert len(waiting(server)) == 1
    chat.type("\x7f\r").until("kept for later: half").answer("y").until("done").ready("half")
    chat.type(" and half\r").until("fine").ready()
    assert messages(server) == ["write", "half and half"] and files(server) == ["a.txt"]


@pytest.mark.parametrize("keys", [b"yes please", b"y\rn\r", PASTE_BEGIN + b"y" + PASTE_END], ids=["words", "lines", "a paste"])
def test_pasted_text_is_not_a_key_for_a_question(attached, server, provider, keys):
    provider.plan(tools(write("a.txt")))
    chat = attached()
    chat.say("write").until("allow?").quiet(0)
    chat.type(keys).quiet(QUIET)
    assert len(waiting(server)) == 1 and files(server) == []


def test_calls_that_ask_together_are_asked_one_after_the_other(attached, server, provider):
    provider.plan(tools(write("a.txt"), write("b.txt"), write("c.txt")), text("done"))
    chat = attached()
    chat.say("write")
    for name, more in (("a.txt", "2 more approvals after this"), ("b.txt", "1 more approval after this"), ("c.txt", None)):
        chat.until(f"write_file {name}  (risk").until("allow?")
        asked = [line for line in chat.screen if line.startswith("write_file ")]
        assert asked[-1].startswith(f"write_file {name}") and len(asked) == len(set(asked)), chat.screen
        assert sum(line.startswith("allow?") for line in chat.screen) == len(asked), "each question is shown once, with its answer"
        assert more is None or any(more in line for line in chat.screen)
        chat.answer("y")
    chat.until("done").ready()
    assert files(server) == ["a.txt", "b.txt", "c.txt"]


def test_no_stops_the_run_and_waits_for_words(attached, server, provider):
    provider.plan(tools(write("a.txt"), write("b.txt")), text("fine"))
    chat = attached()
    chat.say("write").until("allow?").answer("n").until("(cancelled)").ready()
    assert len(provider.requests) == 1 and waiting(server) == []
    chat.say("use another name").until("fine").ready()
    assert messages(server) == ["write", "use another name"] and files(server) == []


def test_no_with_words_lets_the_model_read_them(attached, server, provider):
    provider.plan(tools(write("a.txt")), text("fine"))
    chat = attached()
    chat.say("write").until("allow?").answer("n use another name\r").until("fine").ready()
    assert "use another name" in json.dumps(provider.requests[-1].conversation) and messages(server) == ["write"]


def test_neither_an_unknown_number_nor_enter_alone_is_an_answer(attached, server, provider):
    ask = call("ask_human", {"question": "Which?", "options": ["red", "green", "blue"]}, "q1")
    provider.plan(tools(ask), text("fine"))
    chat = attached()
    chat.say("ask").until("answer (a number").answer("7\r").until("there is no option 7: 1 to 3").answer("\r").until("Enter alone is no answer")
    assert len(server.client.get("/approvals").json["inputs"]) == 1
    chat.answer("2").until("fine").ready()
    assert "green" in json.dumps(provider.requests[-1].conversation)


def test_the_choice_is_made_at_a_glance_and_explained_on_request(attached, server, provider):
    provider.plan(tools(call("run_shell", {"command": "git log --oneline -5"}, "s")), text("fine"))
    chat = attached(columns=100)
    chat.say("look").until("allow?")
    screen = chat.screen
    at = next(i for i, line in enumerate(screen) if line.startswith("Allow for 30 days: 1 this chat, A1 every chat"))
    assert len(screen) - at <= 4 and not any("Runs" in line for line in screen), screen
    chat.answer("?").until("Runs").answer("A").until("Allow in every chat for 30 days").answer("1").until("fine").ready()
    assert len(server.client.get("/grants").json["grants"]) == 1


def test_a_command_works_while_a_question_is_open(attached, server, provider):
    provider.plan(tools(write("a.txt")), text("done"))
    chat = attached()
    chat.say("write").until("allow?").answer("/mode\r").until("here: ask").until("allow?").answer("y").until("done").ready()
    assert files(server) == ["a.txt"]


# --- what is drawn ---------------------------------------------------------------------------------------------------

def test_a_waiting_question_is_not_drawn_again(attached, server, provider):
    content = "".join(f"line {n}\n" for n in range(12))
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": content}, "w")))
    chat = attached()
    chat.say("write").until("allow?").quiet(1)
    written = chat.quiet(4)
    assert len(written) < 1000 and b"line 1" not in written and b"allow?" not in written, written


def test_only_the_status_line_is_drawn_while_nothing_else_changes(attached, provider):
    provider.plan(text("some words\n\nmore words", Gate()))
    chat = attached()
    chat.say("go").until("more words").type("typed").ready_for("typed").quiet(1)
    written = chat.quiet(2)
    assert b"typed" not in written and b"words" not in written and len(written) < 2000, written


@pytest.mark.parametrize("sizes", [[(60, 40), (120, 40)], [(140, 30), (50, 20)], [(30, 12)]], ids=["narrow", "wide", "small"])
@pytest.mark.parametrize("asks", [False, True], ids=["running", "asking"])
def test_no_dead_line_stays_after_a_resize(attached, provider, sizes, asks):
    provider.plan(tools(write("a.txt")) if asks else text("half", Gate()))
    chat = attached()
    chat.say("go").until("allow?" if asks else "half").type("typed words").ready_for("typed words").quiet(0.5)
    for columns, rows in sizes:
        chat.resize(columns, rows).quiet(1.5)
        screen = chat.screen
        alive = sum("Ctrl-C st" in line or bool(re.match("[\u2800-\u28ff] ", line)) for line in screen)
        assert alive == 1 or (alive == 0 and rows < 20), screen
        assert "".join(screen).count("typed") == 1 and sum(line.startswith("allow?") for line in screen) == int(asks), screen
        assert any(line.startswith("> go") for line in screen) or rows < 20, screen


def test_an_answer_that_goes_on_after_a_resize_is_wrapped_anew(attached, provider):
    gate = Gate()
    words = " ".join(f"word{n:02}" for n in range(14))
    provider.plan(text(words, gate, f" {words}\n\nthe end"))
    chat = attached()
    chat.say("go").until("word13").resize(60, 40).quiet(1.5)
    gate.release()
    chat.until("the end").ready()
    lines = [line for line in chat.screen if "word" in line]
    assert len(lines) == 4 and all(re.fullmatch(r"(word\d\d ?)+", line) for line in lines), chat.screen


def test_a_drag_of_the_window_is_drawn_when_it_rests(attached, provider):
    provider.plan(text("fine"))
    chat = attached()
    chat.say("hello marker").until("fine").ready()
    before = len(chat.raw)
    for columns in range(119, 79, -1):
        chat.resize(columns, 40).quiet(0.01)
    chat.quiet(1)
    assert 1 <= chat.raw.count(b"hello marker", before) < 10, "it is drawn for sizes that are gone"
    assert b"\x1b[2J" not in chat.raw, "tmux keeps a screen that is cleared at once in its history"
    before = len(chat.ready().raw)
    chat.type(b"\x0c").quiet(0.5)
    assert chat.raw.count(b"hello marker", before) == 1, "Ctrl-L draws the screen again"
    chat.ready()


# --- long texts ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("rows", [12, 40])
def test_a_text_taller_than_the_screen_is_seen_around_its_cursor(attached, server, provider, rows):
    provider.plan(text("fine"))
    chat = attached(rows=rows)
    pasted = "\n".join(f"line {n}" for n in range(5000))
    chat.paste(pasted).ready_for("line 4999")
    shown = [line for line in chat.screen if re.fullmatch(r"line \d+", line)]
    assert f"↑ {5000 - len(shown):,} more rows" in chat.screen and len(shown) >= 5 and any("ask" in line for line in chat.screen), chat.screen
    chat.type(b"\x1b[H").type("START ").shows("> START line 0", "line 1")
    assert chat.screen[-1] == f"↓ {5000 - len(shown):,} more rows"
    chat.type(b"\x1b[F").ready_for("line 4999").type("!\r").until("fine").ready()
    assert messages(server) == [f"START {pasted}!"]


@pytest.mark.parametrize("lines", [60, 400])
def test_a_question_is_on_the_screen_again_after_its_arguments_were_edited(attached, server, provider, lines):
    content = "".join(f"row {n}\n" for n in range(lines))
    provider.plan(tools(call("write_file", {"path": "big.txt", "content": content}, "w")), text("fine"))
    chat = attached(rows=24)
    chat.say("write").until("allow?").answer("e").until(" more rows").quiet(0.3)
    chat.type(CTRL_C).until("write_file big.txt").until("row 0").until("allow?").ready_for("how all:")
    assert any("write_file big.txt" in line for line in chat.screen), chat.screen
    chat.answer("?").until("words behind y or n").ready_for("how all:")
    assert any("write_file big.txt" in line for line in chat.screen), chat.screen
    chat.answer("y").until("fine").ready()
    assert (server.home.workspace / "big.txt").read_text() == content


def test_a_question_taller_than_the_edited_text_leaves_room_for_is_whole_again(attached, provider):
    content = "".join(f"row {n}\n" for n in range(9))
    provider.plan(tools(call("write_file", {"path": "small.txt", "content": content}, "w")))
    chat = attached(rows=24)
    chat.say("write").until("allow?").ready_for("[1] more:")
    before = chat.screen
    chat.answer("e").until("more rows").quiet(0.3)
    chat.type(CTRL_C).ready_for("[1] more:").quiet(1)
    after = [line for line in chat.screen if not re.match("[\u2800-\u28ff] ", line)]
    assert after[0].startswith("write_file small.txt") and after == before[-len(after):], "the text pushed nothing else away"


@pytest.mark.parametrize("size", [(60, 10), (20, 8)], ids=["60x10", "20x8"])
def test_the_title_of_a_question_stays_when_the_screen_becomes_smaller(attached, server, provider, size):
    content = "".join(f"row {n}\n" for n in range(9))
    provider.plan(tools(call("write_file", {"path": "small.txt", "content": content}, "w")), text("fine"))
    chat = attached(rows=30)
    chat.say("write").until("allow?").resize(*size)
    eventually(lambda: chat.quiet(0.05) is not None and any(line.startswith("write_file") for line in chat.screen[-size[1]:]), "the title")
    chat.answer("y").until("fine").ready()
    assert (server.home.workspace / "small.txt").read_text() == content


def test_the_line_says_who_is_waited_for_at_every_question(attached, provider):
    provider.plan(tools(write("a.txt"), write("b.txt")))
    chat = attached()
    chat.say("go").until("1 more approval").answer("y").until("write_file b.txt").until("allow?").quiet(1)
    assert any("waiting for you" in line for line in chat.screen) and not any("for the model" in line for line in chat.screen), chat.screen


@pytest.mark.parametrize("stop", [b"n", ESC], ids=["n", "Esc"])
def test_a_call_that_did_not_begin_is_told_so(attached, provider, stop):
    provider.plan(tools(write("a.txt"), write("b.txt")), text("fine"))
    chat = attached()
    chat.say("go").until("allow?").answer(stop).until("Not run: the interaction was cancelled.").until("(cancelled)").ready()
    chat.say("and?").until("fine").ready()
    told = [message["content"] for message in provider.requests[-1].messages if message["role"] == "tool"]
    assert told == ["Not run: the interaction was cancelled."] * 2


def test_a_command_typed_in_place_of_an_edited_message_is_a_command(attached, server, provider):
    provider.plan(text("one"), text("two"))
    chat = attached()
    chat.say("first").until("one").ready()
    chat.type(ESC + ESC).ready_for("edit> first").type(CLEAR).ready_for("edit>").type("/tasks\r").until("no plan and no tasks").ready()
    chat.type(ESC + ESC).ready_for("edit> first").type(CLEAR).ready_for("edit>").type("/nonsense\r").until("no such command").ready()
    assert messages(server) == ["first"] and len(provider.requests) == 1
    chat.type(ESC + ESC).ready_for("edit> first").type(CLEAR).ready_for("edit>").type("//tasks\r").until("two").ready()
    assert messages(server) == ["/tasks"]
    chat.type(ESC + ESC).ready_for("edit> //tasks").type("\r").until("(not changed)").ready()
    chat.type(ESC + ESC).ready_for("edit> //tasks").type(CLEAR).ready_for("edit>").type("/quit\r")
    assert chat.end() == 0 and messages(server) == ["/tasks"]


# --- what the terminal is asked for ----------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT], ids=["end", "TERM", "SEGV", "ABRT"])
def test_the_terminal_is_asked_to_tell_keys_apart_until_the_end(attached, number):
    chat = attached()
    for ask in (b"\x1b[>1u", b"\x1b[>4;1m", b"\x1b[?2004h"):
        assert chat.raw.count(ask) == 1
    if number is None:
        chat.type(b"\x1b[100;5u")  # Ctrl-D in that keyboard protocol
        assert chat.end() == 0
    else:
        os.kill(chat.pid, number)
        assert chat.end() == -number
    for no_more in (b"\x1b[<u", b"\x1b[>4;0m", b"\x1b[?2004l"):
        assert chat.raw.count(no_more) == 1


def test_keys_of_a_terminal_that_tells_them_apart(attached, server, provider):
    provider.plan(text("half", Gate()), text("fine"))
    chat = attached()
    chat.type("one\x1b[13;2utwo\x1b[27;2;13~three").shows("> one", "two", "three").type("\r").until("half")
    chat.type(b"\x1b[99;5u").until("(cancelled)").ready().type("x\x1b[27uy\r").until("fine").ready()
    assert messages(server) == ["one\ntwo\nthree", "xy"]


# --- a random walk ---------------------------------------------------------------------------------------------------

STEPS, SEED = int(os.environ.get("REPRISE_WALK", "40")), int(os.environ.get("REPRISE_WALK_SEED", "1"))


class Walk:
    """Types random keys and tracks the expected result. No text has blanks, so that wrapped lines can be compared."""

    def __init__(self, chat, server, provider, chosen):
        self.chat, self.server, self.provider, self.chosen = chat, server, provider, chosen
        self.line = self.aside = ""  # the edited line, and messages that will return to it
        self.run = None              # (who, text) of the running message
        self.queue = []              # (who, text) of queued messages
        self.said, self.allowed = [], []
        self.gates, self.number, self.done = {}, 0, []
        self.escaped = False         # Esc again would go back to the last message
        provider.answer_with(self.reply)

    # --- the model's reply: an answer, half of one, or a call that needs approval
    @staticmethod
    def kind(message):
        return ("answers", "halts", "asks")[sum(message.encode()) % 3]

    def reply(self, request):
        if request.last["role"] == "tool":
            return text("written")
        message = request.last["content"]
        if self.kind(message) == "halts":
            return text("half", self.gates.setdefault(message, Gate()), "whole")
        if self.kind(message) == "asks":
            return tools(write(self.file_of(message), f"w{sum(message.encode())}x{len(request.messages)}"))
        return text("answer")

    @staticmethod
    def file_of(message):  # each word is sent once
        return re.match("w[0-9]+", message)[0] + ".txt"

    # --- the model of the client
    def begin(self, who, message):
        self.said.append((who, message))
        self.run = (who, message)
        if self.kind(message) == "answers":
            self.end()

    def end(self):
        self.run = None
        if not self.asks:
            self.come_back()
        if self.queue:
            self.begin(*self.queue.pop(0))

    def come_back(self):
        self.line = "\n".join(filter(None, (self.aside, self.line)))
        self.aside = ""

    @property
    def asks(self):
        return self.run is not None and self.kind(self.run[1]) == "asks"

    def take_back(self):
        mine = [message for who, message in self.queue if who == "client"]
        self.queue = [each for each in self.queue if each[0] != "client"]
        self.aside = "\n".join(filter(None, (self.aside, *mine)))
        return bool(mine)

    # --- the screen
    def shown_line(self):
        lines = self.chat.screen
        at = max((i for i, line in enumerate(lines) if line.startswith((">", "allow?"))), default=None)
        if at is None:
            return None
        return re.sub(r"^(>|allow\?(\[y\]es.*?:)?)", "", "".join(lines[at:]).replace(" ", ""), count=1)

    def settles(self):
        """Waits until the screen and the server show the expected state."""
        def is_so():
            while part := self.chat._read(0):
                self.chat.raw += part
            lines = self.chat.screen
            bottom = max((i for i, line in enumerate(lines) if line.startswith((">", "allow?"))), default=0)
            return (self.shown_line() == self.line.replace("\n", "") and lines[bottom].startswith("allow?") == self.asks and
                    any("Ctrl-C st" in line or re.match("[\u2800-\u28ff] ", line) for line in lines) == (self.run is not None) and
                    (not self.asks or len(waiting(self.server)) == 1))
        def server_says_so():
            history = self.server.client.get("/chats/c?branches=all")
            heard = [i["user_message"] for i in history.json["interactions"]] if history.status == 200 else []
            waits = queued(self.server) if history.status == 200 else []
            return (sorted(heard) == sorted(message for _, message in self.said) and waits == [message for _, message in self.queue] and
                    files(self.server) == sorted(self.allowed))
        deadline = time.monotonic() + SOON
        while not is_so() or not server_says_so():
            assert time.monotonic() < deadline, f"{self}\n" + "\n".join(self.chat.screen)
            self.chat.quiet(0.05)

    def __repr__(self):
        return (f"line {self.line!r}, aside {self.aside!r}, run {self.run and (*self.run, self.kind(self.run[1]))}, queue {self.queue}, "
                f"allowed {self.allowed}; the steps were {self.done[-12:]}")

    # --- steps; each returns False if it does not apply now
    def word(self):
        self.number += 1
        return f"w{self.number}" + "".join(self.chosen.choices("abxyzéß語", k=self.chosen.randint(1, 4)))

    def types(self):
        word = self.word()
        self.chat.type(word)
        self.line += word

    def pastes(self):
        words = "\n".join(self.word() for _ in range(self.chosen.randint(1, 3)))
        self.chat.paste(words.replace("\n", self.chosen.choice("\r\n")))
        self.line += words

    def enters(self):
        if self.asks:
            if not self.line:
                self.chat.type("\r")
                return None
            self.chat.type("\r")
            self.aside = "\n".join(filter(None, (self.aside, self.line)))
        else:
            self.chat.type("\r")
            if self.line and self.run:
                self.queue.append(("client", self.line))
            elif self.line:
                message, self.line = self.line, ""
                self.begin("client", message)
        self.line = ""
        return None

    def stops(self):
        key = self.chosen.choice([ESC, CTRL_C])
        if not self.run:
            if not self.line and (key == CTRL_C or self.escaped):
                return False  # that would end the client, or edit the last message
            self.escaped = key == ESC and not self.line
            self.chat.type(key).quiet(0.1)  # a key right after Esc would count as Alt with that key
            self.line = "" if key == CTRL_C else self.line
            return None
        self.chat.type(key).quiet(0.1)
        has_taken = self.take_back()
        if self.run[0] == "client" or not has_taken:
            self.come_back()
            self.end()
        elif not self.asks:
            self.come_back()
        return None

    def waits(self):
        if self.run is None or self.kind(self.run[1]) != "halts":
            return False
        message = self.run[1]
        eventually(lambda: message in self.gates, "the provider is asked")
        self.gates.pop(message).release()
        self.end()
        return None

    def answers(self):
        if not self.asks:
            return False
        if self.line:
            self.chat.answer("y")
            self.line += "y"
            return None
        if self.chosen.random() < 0.5:
            self.allowed.append(self.file_of(self.run[1]))
            self.chat.answer("y")
            eventually(lambda: files(self.server) == sorted(self.allowed), "the call has run")
        else:
            self.chat.answer("n")
            self.take_back()
        self.come_back()
        self.end()
        return None

    def others(self):
        message = self.word()
        self.server.client.stream("POST", "/chats/c/interactions", {"user_message": message, "if_running": "queue", "on_disconnect": "continue"}).close()
        if self.run:
            self.queue.append(("another", message))
        else:
            self.begin("another", message)

    def resizes(self):
        self.chat.resize(self.chosen.randint(60, 160), self.chosen.randint(24, 50))

    def clears(self):
        self.chat.type(CLEAR)
        self.line = ""

    def menus(self):
        """Opens a menu, moves in it, and closes it, or takes a command that changes nothing."""
        if self.line or self.asks:
            return False
        def shown():
            self.chat.quiet(0.02)
            return any(re.match("[0-9]+/[0-9]+ · ", line) for line in self.chat.screen)
        takes = self.chosen.random() < 0.5
        self.chat.type("/task" if takes else self.chosen.choice("/@"))
        eventually(shown, "the menu is open")
        for _ in range(self.chosen.randint(0, 3)):
            self.chat.type(self.chosen.choice([b"\x1b[A", b"\x1b[B"])).quiet(0.02)
        self.chat.type("\r" if takes else ESC)
        eventually(lambda: not shown(), "the menu is closed")
        if not takes:
            self.chat.type(b"\x7f")

    def step(self):
        if len(self.line) > 100:  # a longer line would hide the status line
            self.clears()
        steps = [self.types] * 5 + [self.pastes] * 2 + [self.enters] * 5 + [self.stops] * 2 + [self.waits] * 2 + [self.answers] * 4
        steps += [self.others, self.resizes] + [self.menus] * 3
        while (chosen := self.chosen.choice(steps))() is False:
            pass
        if chosen.__name__ in ("types", "pastes", "enters"):
            self.escaped = False
        self.done.append(chosen.__name__)
        self.settles()


@pytest.mark.limit(3600)
def test_a_random_walk_over_the_keys_loses_none_and_runs_nothing_unasked(attached, server, provider):
    """`REPRISE_WALK=500 REPRISE_WALK_SEED=7` takes 500 steps with the seed 7."""
    chosen = random.Random(SEED)
    walk = Walk(attached(), server, provider, chosen)
    for _ in range(STEPS):
        walk.step()


# --- keys with an effect outside of the line ------------------------------------------------------------------------------

SHIFT_TAB, CTRL_T = b"\x1b[Z", b"\x14"


@pytest.mark.parametrize("key", [SHIFT_TAB, b"\x1b[9;2u"], ids=["as usual", "kitty"])
def test_shift_tab_goes_through_the_modes_but_not_to_all(attached, server, provider, key):
    provider.plan(tools(write("a.txt")), text("done"))
    chat = attached()
    chat.type("wr").type(key).until("nothing is changed before you have approved a plan").ready("wr")
    chat.type(key).until("allowed and shown until you leave").type(key).until("/undo can restore").type(key).until("is asked about").ready("wr")
    chat.type(key).type(key).until("allowed and shown until you leave").ready("wr")
    chat.type("ite\r").until("done").ready()
    assert messages(server) == ["write"] and files(server) == ["a.txt"], "the text stayed, and the mode held"


def test_esc_twice_goes_back_to_the_last_message(attached, server, provider):
    provider.plan(text("one"), text("two"))
    chat = attached()
    chat.type(ESC + ESC).until("no message to edit yet").ready()
    chat.say("first").until("one").ready()
    chat.type("x").type(ESC + ESC).quiet(0.3)
    chat.ready("x").type(CLEAR).ready()  # a text is never lost to it
    chat.type(ESC).quiet(0.1)
    chat.type(ESC).ready_for("edit> first").type(" again\r").until("two").ready()
    assert messages(server) == ["first again"]
    for key in (ESC, "\r", ESC, "\r"):
        chat.type(key).quiet(0.1)
    assert chat.screen[-1] == ">", "not twice in a row"
    chat.type(ESC + ESC).ready_for("edit> first again").type(ESC).until("(not changed)").ready()
    assert messages(server) == ["first again"]


@pytest.fixture
def alone(make_home, provider, open_terminal):
    """A client with a server of its own, which works in the client's folder."""
    home = make_home()
    own_configuration(home, provider)

    def make(**how):
        return home, open_terminal(home, "--chat", "c", **{"columns": 120, "rows": 40, **how}).opened().ready()
    return make


def test_a_command_of_ones_own(alone, provider):
    home, chat = alone()
    chat.say("!echo from $PWD; printf half").until(f"from {home.path}").until("half").ready()
    chat.say("!exit 3").until("(exit status 3)").ready()
    chat.say("!kill -9 $$").until("(ended by signal 9)").ready()
    chat.say("!echo asks; read line; echo got $line").until("\nasks\n").say("typed").until("got typed").ready()
    chat.type("!sleep 100; echo not this\r").until("! sleep 100").quiet(0.3)
    chat.type(CTRL_C).until("(ended by signal 2)").ready()
    assert "not this\r\n" not in chat.text and provider.requests == []
    assert "half" in chat.screen[[i for i, line in enumerate(chat.screen) if line.startswith("from ")][0] + 1], "the prompt stands below it"


def test_what_a_command_has_printed_is_still_there_after_a_resize(alone):
    _, chat = alone()
    chat.say("!seq -f out-%g 3").until("out-3").ready()
    before = len(chat.raw)
    chat.resize(110, 45).until("(what it printed is further up)").ready()
    chat.resize(120, 50).quiet(0.5)
    screen = pyte.HistoryScreen(120, 40, history=500)
    stream = pyte.ByteStream(screen)
    stream.feed(ASKS_FOR_KEYS.sub(b"", chat.raw[:before]))
    screen.resize(45, 110)
    stream.feed(ASKS_FOR_KEYS.sub(b"", chat.raw[before:]))
    above = ["".join(line[column].data for column in range(110)).rstrip() for line in screen.history.top]
    at = above.index("out-1")
    assert above[at - 1:at + 3] == ["! seq -f out-%g 3", "out-1", "out-2", "out-3"] and above.count("out-1") == 1


def test_a_commands_output_for_the_model(alone, provider):
    provider.plan(text("fine"))
    _, chat = alone()
    chat.say("!!echo seven; echo eight >&2; false").until("eight")
    chat.until("$ echo seven; echo eight >&2; false").until("eight").type("What is this?\r").until("fine").ready()
    assert provider.requests[0].last["content"] == "$ echo seven; echo eight >&2; false\nseven\neight\n\nWhat is this?"


def test_the_status_of_a_command_whose_output_is_told(alone):
    _, chat = alone()
    chat.say("!!echo seven; exit 5").until("seven").until("(exit status 5)").until("$ echo seven; exit 5")


def test_a_stopped_program_does_not_take_the_terminal(alone):
    """The client stops with it, as by Ctrl-Z; whoever continues the group continues both."""
    _, chat = alone()
    chat.say("!kill -STOP $$; echo asks; read line; echo got $line")
    eventually(lambda: os.waitid(os.P_PID, chat.pid, os.WSTOPPED | os.WNOHANG), "the client has stopped")
    os.killpg(os.getpgid(chat.pid), signal.SIGCONT)
    chat.until("\nasks\n").say("typed").until("got typed").ready()


def test_ctrl_c_in_the_pager_is_the_pagers(attached, server, provider):
    gate = Gate()
    provider.plan(text("half", gate, " done"))
    chat = attached(PAGER="sh -c 'trap \"echo left; exit\" INT; echo pages; while :; do sleep 0.1; done' --")
    chat.say("go").until("half").type(CTRL_T).until("pages").type(CTRL_C).until("left").ready_for(">")
    gate.release()
    chat.until("done").ready()
    assert server.client.history("c")["interactions"][0]["status"] == "COMPLETED"


def test_a_message_of_the_command_line_runs_no_command(make_home, provider, open_terminal):
    home = make_home()
    own_configuration(home, provider)
    provider.plan(text("fine"))
    open_terminal(home, "!touch ran here").until("fine").ready()
    assert not (home.path / "ran").exists() and provider.requests[0].last["content"] == "!touch ran here"


def test_no_command_runs_where_the_folder_is_not(attached):
    attached().say("!true").until("the folder is not on this machine").ready()


@pytest.mark.parametrize("said", ["!= is an operator", "! no", "!!! wow", "!"])
def test_what_only_begins_with_an_exclamation_mark_is_a_message(attached, server, provider, said):
    provider.plan(text("fine"), text("fine"))
    chat = attached()
    chat.say(said).until("fine").ready()
    chat.paste("!touch a\n!touch b").type("\r").until("fine").ready()
    assert messages(server) == [said, "!touch a\n!touch b"] and files(server) == []


def test_the_transcript_in_the_pager(attached, server, provider, open_terminal):
    provider.plan(text("the answer\x1b[31m"))
    chat = attached(PAGER="sed 's/^/page: /'")
    chat.say("hello").until("the answer").ready()
    chat.type("typ").type(CTRL_T).until("page: > the answer").ready_for("typ")
    chat.type("ing\r").quiet(0.1)
    assert "\x1b[31m" not in chat.raw.decode(errors="replace").split("page: ", 1)[1].split("typ")[0]
    eventually(lambda: messages(server) == ["hello", "typing"], "the message")


def test_the_title_and_the_bell(attached, server, provider):
    gate = Gate()
    provider.plan(text("slow", gate), tools(call("run_shell", {"command": "true"})), text("done"))
    chat = attached()
    folder = "reprise"  # it is the server's
    chat.say("one").until("slow")
    assert f"\x1b]2;● {folder}\a".encode() in chat.raw and b"\x1b]9;" not in chat.raw
    gate.release()
    chat.ready().say("two").until("run_shell")
    chat.answer("y").until("done").ready()
    assert chat.raw.count(f"\a\x1b]9;Reprise waits for you in {folder}\a".encode()) == 1
    assert chat.raw.rindex(f"\x1b]2;{folder}\a".encode()) > chat.raw.rindex(f"\x1b]2;? {folder}\a".encode())
    chat.say("/quit")
    assert chat.end() == 0 and chat.raw.endswith(b"\x1b[23;2t") or b"\x1b[23;2t" in chat.raw[-200:]


# --- the table of keys, and terminal.json -------------------------------------------------------------------------------

CTRL_G, CTRL_R, UP = b"\x07", b"\x12", b"\x1b[A"


def with_settings(home, text):
    path = home.config / "reprise" / "terminal.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return home


def test_a_question_mark_shows_every_key(attached, server, provider):
    provider.plan(text("fine"), text("fine"))
    chat = attached()
    chat.type("?").until("sends the message").until("goes on to the next mode").until("opens the message in your editor").until("until `fg`").ready()
    chat.type("what?\r").until("fine").ready().type("?x\r").until("fine").ready()
    assert messages(server) == ["what?", "?x"]


def test_keys_are_changed_by_a_file(alone_with, provider, tmp_path):
    provider.plan(text("fine"))
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf edited > \"$1\"\n")
    editor.chmod(0o755)
    chat = alone_with('{"keys": {"editor": ["ctrl-x", "ctrl-f"], "mode": "ctrl-g"}}  // mine\n', EDITOR=str(editor))
    chat.type("w").type(CTRL_G).until("before you have approved a plan").ready("w")
    chat.type(SHIFT_TAB).quiet(0.2)
    chat.ready("w").type(b"\x06").ready("edited").type(CLEAR).type("?").until("Ctrl-X, Ctrl-F").ready()


@pytest.mark.parametrize(("settings", "error"), [
    ('{\n  "keys": {\n    "editr": "ctrl-e"\n  }\n}', "line 3: editr is no action, did you mean editor?"),
    ('{"keys": {"editor": "ctrl-c"}}', "line 1: editor cannot have ctrl-c, which always does the same"),
    ('{"keys": {"editor": "super-e"}}', "line 1: editor cannot have super-e: keys are ctrl- and a letter"),
    ('{"keys": {"editor": 7}}', "line 1: editor must be a key or an array of keys"),
    ('{"keys": {"editor": "ctrl-r", "search": "ctrl-r"}}', "ctrl-r has two actions"),
    ('{"keys": {"editor": "ctrl-m"}}', "editor cannot have ctrl-m, which always does the same"),
    ('{"keys": {"send": "ctrl-r"}}', "send cannot have other keys"),
    ('{"keys": []}', "keys must be an object"),
    ('{\n"theme": "drak"}', "line 2: theme must be terminal, dark, light or none"),
    ('{"thme": "dark"}', "line 1: thme is not a setting of the terminal, did you mean theme?"),
    ('{"editing": true}', "editing must be emacs or vi"),
    ('{"theme": ', "is not valid JSON (line 1)"),
    ("[]", "must be an object")], ids=str)
def test_a_wrong_file_is_an_error_that_names_line_and_key(make_home, open_terminal, settings, error):
    chat = open_terminal(with_settings(make_home(), settings), columns=200)
    chat.until("terminal.json").until(error)
    assert chat.end() == 2


@pytest.fixture
def alone_with(make_home, provider, open_terminal):
    def make(settings, **how):
        home = with_settings(make_home(), settings)
        own_configuration(home, provider)
        return open_terminal(home, "--chat", "c", **{"columns": 120, "rows": 40, **how}).opened().ready()
    return make


def test_vi_keys(alone_with, provider):
    provider.plan(text("fine"))
    chat = alone_with('{"editing": "vi"}')
    assert "ind" not in chat.text.split("test/scripted")[0], "the library says nothing"
    chat.type("one two three").ready("one two three").type(ESC).quiet(0.2)
    chat.type("0dwA!").ready("two three!").type(ESC).quiet(0.2)
    chat.type("k-j+").quiet(0.1)
    chat.type("\r").until("fine").ready().type(UP).ready("two three!").type(CTRL_C).ready()
    assert provider.requests[0].last["content"] == "two three!"


def test_earlier_messages_of_all_chats_of_the_folder(attached, server, provider):
    provider.answer_with(lambda request: text("fine"))
    server.client.turn("older", "the oldest one")
    server.client.turn("old", "an old one")
    chat = attached()
    chat.say("mine").until("fine").ready()
    for shown in ("mine", "an old one", "the oldest one"):
        chat.type(UP).ready(shown)
    chat.type(CLEAR).ready().type(CTRL_R).until("› mine").type("oldest").until("› the oldest one").type("\r").ready("the oldest one")
    chat.type(" again\r").until("fine").ready()
    assert messages(server)[-1] == "the oldest one again"


def test_ctrl_g_opens_the_editor(attached, server, provider, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf ' and more' >> \"$1\"\n")
    editor.chmod(0o755)
    provider.plan(text("fine"))
    attached(EDITOR=str(editor)).type("some").ready("some").type(CTRL_G).ready("some and more").type("\r").until("fine").ready()
    assert messages(server) == ["some and more"]
