"""`reprise` without arguments: the terminal client with its own server, what it draws, and one-shot questions."""
import contextlib
import fcntl
import http.client
import http.server
import json
import os
import pathlib
import random
import re
import signal
import stat
import subprocess
import threading
import time

import pytest

from support.provider import Gate, Reply, call, text, tools
from support.server import BINARY, Home, reprise
from support.terminal import PASTE_BEGIN, PASTE_END
from support.timing import SOON, eventually

CTRL_C, CTRL_D, CLEAR = b"\x03", b"\x04", b"\x15"
COLOURED = re.compile(rb"\x1b\[[0-9;]+m")


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "user")


@pytest.fixture
def free(home):
    """A home whose server ends when the terminals have gone."""
    yield home
    eventually(lambda: not is_used(data_folder(home)), "the server has ended")


@pytest.fixture
def alone(free, open_terminal):
    """Opens terminals in an empty home without a server."""
    return lambda *arguments, columns=100, rows=40, **environment: open_terminal(free, *arguments, columns=columns, rows=rows, **environment)


@pytest.fixture
def attached(server, open_terminal):
    def make(name="c", at=server, port=None, **how):
        return open_terminal(at.home, "chat", name, "--url", f"http://127.0.0.1:{port or at.port}", **how).opened()
    return make


@contextlib.contextmanager
def refusing(server, refusals, of="/approve"):
    """A proxy in front of a server or port. It answers the next requests to paths that end in `of` with these refusals: (status, body)."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.command == "POST" and self.path.partition("?")[0].endswith(of):
                asked.append(self.path)
                if refusals and (refusal := refusals.pop(0)):
                    if isinstance(refusal, threading.Event):
                        return refusal.wait(SOON)  # no answer
                    self.send_response(refusal[0])
                    self.end_headers()
                    begin, end = refusal[1][:9].encode(), refusal[1][9:].encode()
                    self.wfile.write(begin)
                    time.sleep(SLOW_NETWORK)  # the stimulus, not a synchronization
                    self.wfile.write(end)
                    return
            upstream = http.client.HTTPConnection("127.0.0.1", getattr(server, "port", server), timeout=SOON)
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection", "content-length")}
            upstream.request(self.command, self.path, body or None, kept)
            answer = upstream.getresponse()
            self.send_response(answer.status)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client may disconnect first
                while part := answer.read1(65536):
                    self.wfile.write(part)

        do_GET = do_POST

        def log_message(self, *_):
            pass

    front = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    front.daemon_threads = True
    threading.Thread(target=front.serve_forever, daemon=True).start()
    try:
        yield front.server_port, asked
    finally:
        front.shutdown()
        front.server_close()


SLOW_NETWORK = 0.1  # seconds between the pieces of a refusal
STORAGE_FULL = (507, '{"error": {"code": "storage_full", "message": "the disk is full"}}')
NOT_OURS = (502, "<html>bad gateway</html>")


def data_folder(home):
    return home.user / ".local" / "share" / "reprise" / "chats"


def is_used(folder):
    try:
        with open(folder / ".lock", "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True


def test_the_first_start_says_what_a_person_has_to_know(alone, home):
    chat = alone(columns=200).until("keys.jwks").until("to a safe place").until(str(data_folder(home))).until("demo").opened().ready()
    chat.say("what is 2+2?").until("4").ready().type(CTRL_D)
    assert chat.end() == 0
    assert len(list(data_folder(home).glob("*/interactions/*.json"))) == 1
    eventually(lambda: not is_used(data_folder(home)), "the server has ended with its only client")


def test_the_next_start_says_it_no_more_and_goes_on_where_it_was(alone, home):
    first = alone().until("to a safe place").ready().say("echo hello there").until("hello there").ready().type(CTRL_D)
    first.end()
    again = alone("--continue").until("> echo hello there").until("hello there").ready()
    assert "safe place" not in again.text


def test_two_terminals_share_one_server_and_it_outlives_the_first(alone, home):
    first = alone().ready()
    second = alone().ready()
    second.say("echo one").until("one").ready()
    first.type(CTRL_D).end()
    second.say("echo two").until("two").ready()


def test_a_server_ends_with_its_client_though_a_question_waits(alone, home):
    alone("chat", "c").until("/help").ready().say("ask: which colour?").until("answer: ").answer(CTRL_D).end()
    eventually(lambda: not is_used(data_folder(home)), "the server has ended")
    alone("chat", "c").until("which colour?").until("answer: ").answer_line("blue").until("blue").ready()


def test_blank_messages_are_refused(alone, home):
    chat = alone().ready().say("   ").ready().say("/history").until("nothing")
    assert reprise(home, "-p", "  \n")[0] == 2
    chat.type(CTRL_D).end()


def test_the_server_of_a_client_has_the_programs_name_and_a_log_that_others_cannot_find(alone, home):
    state = home.user / "new" / "state"
    before = os.umask(0o022)
    chat = alone(XDG_STATE_HOME=str(state)).ready()
    os.umask(before)
    pid = int((data_folder(home) / ".lock").read_text().split()[0])
    assert pathlib.Path(f"/proc/{pid}/comm").read_text() == "reprise\n"
    chat.type(CTRL_D).end()
    log = state / "reprise" / "server.log"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (log, log.parent, state, state.parent)] == [0o600, 0o700, 0o700, 0o700]


def test_a_log_that_has_become_long_is_put_aside(alone, home):
    log = home.user / "state" / "reprise" / "server.log"
    log.parent.mkdir(parents=True)
    log.touch()
    os.truncate(log, 5 << 20)
    alone(XDG_STATE_HOME=str(home.user / "state")).ready().type(CTRL_D).end()
    assert (log.with_name("server.log.1").stat().st_size, log.stat().st_size < 1 << 20) == (5 << 20, True)


def test_a_key_under_a_passphrase_opens_once_it_is_typed(alone, home):
    passphrase = "correct horse battery"
    assert reprise(home, "keys", "init")[0] == 0
    chosen = alone("keys", "passphrase").until("New passphrase").type(f"{passphrase}\n").until("The same again").type(f"{passphrase}\n")
    assert chosen.end() == 0
    chat = alone().until("Passphrase of").type("not this one\n")
    assert chat.end() != 0 and "passphrase" in chat.text
    chat = alone().until("Passphrase of").type(f"{passphrase}\n").opened().say("echo open").until("open").ready()
    assert passphrase not in chat.text
    chat.type(CTRL_D).end()


def test_a_client_whose_server_has_gone_starts_another(alone, home):
    chat = alone().ready()
    pid = int((data_folder(home) / ".lock").read_text().split()[0])
    os.kill(pid, 9)
    chat.say("echo still here").until("still here").ready()


def test_a_killed_client_leaves_its_question_to_the_next(alone, home):
    chat = alone("chat", "c").ready().say("write a.txt: hi").until("allow?")
    chat.kill()
    again = alone("chat", "c").until("waits for you").until("write_file a.txt").until("allow?").answer("y").ready()
    eventually(lambda: (home.path / "a.txt").exists(), "the approved call has run")
    again.type(CTRL_D).end()


def test_a_question_is_asked_again_when_its_server_has_gone(alone, home):
    chat = alone().opened().ready().say("write z.txt: zed").until("allow?")
    for number in (signal.SIGTERM, signal.SIGKILL):
        os.kill(int((data_folder(home) / ".lock").read_text().split()[0]), number)
        chat.until("a turn waits for you").until("allow?")
    chat.answer("y").until("created").ready()
    assert (home.path / "z.txt").read_text() == "zed"


@pytest.mark.parametrize(("closed", "status", "told"), [("<&-", 0, ""), ("2>&-", 0, ""), (">&-", 1, "the output could not be written")])
def test_closed_standard_descriptors_do_no_harm(home, closed, status, told):
    done = subprocess.run(["sh", "-c", f'"$0" -p "echo hi" {closed}', str(BINARY)], cwd=home.path, env=home.environment(), capture_output=True,
                          timeout=SOON, check=False)
    assert done.returncode == status and told in done.stderr.decode()
    assert done.stdout == (b"hi\n" if status == 0 else b"")
    assert "level=" not in (data_folder(home) / ".lock").read_text()


def test_one_question_is_cancelled_by_ctrl_c(home):
    with subprocess.Popen([str(BINARY), "-p", "slow: " + "word " * 500], cwd=home.path, env=home.environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as asking:
        eventually(lambda: list(data_folder(home).glob("*/interactions/*.journal")), "it runs")
        asking.send_signal(signal.SIGINT)
        out, err = asking.communicate(timeout=SOON)
    assert (asking.returncode, out, err) == (1, b"", b"reprise: cancelled\n")


def test_a_terminal_that_can_only_print_gets_no_escapes(alone, home):
    chat = alone(TERM="dumb").opened().say("what is 2+2?").until("2+2 = 4").say("run: echo ran").until("allow?")
    chat.answer("y\r").until("ran").type(CTRL_D)
    chat.end()
    assert b"\x1b" not in chat.raw


def test_a_terminal_that_can_only_print_has_the_same_answers_and_commands(alone, home):
    chat = alone(TERM="dumb").opened().say("run: echo ran").until("allow?").answer("n").until("(cancelled)").until("> ")
    chat.say("/chats").until("1. chat_").until("> ").say("/mode").until("asks before: ").until("> ")
    chat.say("/model").until("/model offline").until("in use").until("> ").say("/history").until("[1] int_001").until("> ")
    chat.say("run: echo again").until("1. ").until("allow?").answer("1").until("\n  again").until("> ")
    chat.say("run: echo again").until("● run_shell echo again").until("\n  again").until("> ").say("/mode all").until("is shown and allowed").until("> ")
    chat.say("write a.txt: hi").until("+hi").until("> ").say("/diff").until("+hi").until("> ").say("/quit")
    assert chat.end() == 0 and b"\x1b" not in chat.raw


def test_a_terminal_that_can_only_print_completes_and_lists(alone, home):
    for name in ("notes.txt", "number.txt", "zebra.md"):
        (home.path / name).write_text("x")
    chat = alone(TERM="dumb").opened().say("alpha").until("tokens)\n> ")
    chat.type("see @ze\t").until("@zebra.md").type(CLEAR).type("@n\t").until("notes.txt").until("number.txt").until("> @n").type(CLEAR)
    chat.type("/exp\t").until("/export").type(CLEAR).type(b"\x12").until("shows no search").type("/usage\r").until("tokens").until("> ")
    chat.type("/quit\r")
    assert chat.end() == 0 and b"\x1b" not in chat.raw


def test_a_configuration_here_keeps_no_chats_here(home):
    (home.path / "reprise.json").write_text('{"model": "offline"}')
    home.trust("reprise.json", cwd=home.path)
    assert reprise(home, "-p", "echo hi")[1] == "hi\n"
    assert data_folder(home).is_dir() and not (home.path / "chats").exists()


# --- one question ----------------------------------------------------------------------------------------------------

def test_one_question_prints_the_answer_alone(home):
    assert reprise(home, "-p", "what is 2+2?") == (0, "2+2 = 4\n", "")
    assert reprise(home, stdin=b"echo from a pipe\n") == (0, "from a pipe\n", "")
    assert reprise(home, "-p", "help", stdin=b"and more\n")[0] == 0


def test_one_question_that_needs_an_approval_fails_and_keeps_it(home):
    status, out, err = reprise(home, "--chat", "c", "-p", "write a.txt: hi")
    assert (status, out) == (1, "") and "an approval is needed: write_file a.txt" in err and "reprise --chat c" in err
    status, out, _ = reprise(home, "ls", "--json")
    assert status == 0 and "c" in out and not (home.path / "a.txt").exists()


def test_one_question_as_events(home):
    status, out, _ = reprise(home, "--json", "-p", "echo hi")
    events = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and events[0]["type"] == "INTERACTION_STARTED" and events[-1]["status"] == "COMPLETED"


def test_one_question_in_the_newest_chat(home):
    assert reprise(home, "--chat", "old", "-p", "echo 1")[0] == 0
    assert reprise(home, "--continue", "-p", "echo 2")[0] == 0
    assert len(list(data_folder(home).glob("old/interactions/*.json"))) == 2


def test_wrong_usage_is_told(home):
    assert reprise(home)[0] == 2
    assert reprise(home, "--chat", "../x", "-p", "hi")[0] == 2
    assert reprise(home, "--chat", "x", "--continue", "-p", "hi")[0] == 2
    assert reprise(home, "-p", "hi", "--url", "http://127.0.0.1:1")[0] == 1


def test_a_failed_answer_fails(home):
    status, out, err = reprise(home, "-p", "fail: auth")
    assert status == 1 and out == "" and err.startswith("reprise: ")


# --- the screen ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("columns", [60, 120])
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}], ids=["coloured", "plain"])
def test_an_approval_shows_the_difference(attached, server, provider, columns, environment):
    (server.home.workspace / "notes.txt").write_text("one\ntwo\nthree\n")
    provider.plan(tools(call("write_file", {"path": "notes.txt", "content": "one\n2\nthree\n"}, "w1")), text("done"))
    chat = attached(columns=columns, **environment)
    chat.say("change it").until("allow?")
    screen = chat.screen
    assert any(line.startswith("write_file notes.txt") and "risk" in line for line in screen), screen
    assert any(line.startswith("   2 -two") for line in screen) and any(line.startswith("   2 +2") for line in screen), screen
    assert all(len(line) <= columns for line in screen)
    assert bool(COLOURED.search(chat.raw)) == (environment == {})
    chat.answer("y").until("done").ready()
    assert (server.home.workspace / "notes.txt").read_text() == "one\n2\nthree\n"


def test_a_number_allows_one_of_the_patterns(attached, server, provider):
    provider.plan(tools(call("run_shell", {"command": "echo one"}, "a")), text("first"))
    chat = attached(columns=100, rows=40)
    chat.say("run it").until("[1-2] more")
    screen = " ".join(chat.screen)
    assert "1. echo one 2. echo *" in " ".join(screen.split()) and "Allow for 30 days: 1 this chat, A1 every chat" in screen, screen
    assert "Runs exactly" not in screen
    chat.answer("?").until("1. echo one: Runs exactly `echo one`").until("2. echo *: Runs `echo` followed by")
    chat.answer_line("3").until("y, n, a or e").answer("2").until("first").ready()
    provider.plan(tools(call("run_shell", {"command": "echo two"}, "b")), text("second"))
    chat.say("again").until("second").ready().say("/mode").until("echo *").until("used 1 time").ready()
    grant, = server.client.get("/chats/c/grants").json["grants"]
    assert grant["pattern"] == "echo *"
    provider.plan(tools(call("run_shell", {"command": "pwd"}, "c")), text("third"))
    chat.say("and that").until("1. pwd").until("allow?").answer_line("1 always").until("third").ready()
    assert [each["pattern"] for each in server.client.get("/grants").json["grants"]] == ["pwd"]


def test_colours_can_be_read_on_light_and_dark(attached, server, provider):
    """No white, grey or black, no background, and only colours of the terminal's own palette, which the person has chosen."""
    (server.home.workspace / "a.txt").write_text("one\n")
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "two\n"}, "w1"), think="hm"),
                  text("# Title\n\n**bold** *em* `code` [a](https://b.org)\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```c\nint x;\n```\n"))
    chat = attached(columns=60)
    chat.say("go").until("allow?").answer_line("y").until("int x;").ready().say("/nonsense").until("no such command").ready()
    codes = {code for sequence in re.findall(rb"\x1b\[([0-9;]*)m", chat.raw) for code in sequence.split(b";")}
    assert codes <= {b"", b"0", b"1", b"2", b"3", b"4", b"31", b"32", b"33", b"34", b"35", b"36"} and {b"31", b"32"} <= codes, codes


@pytest.mark.parametrize("columns", [60, 120])
def test_markdown_is_drawn_as_it_comes(attached, provider, columns):
    gate = Gate()
    provider.plan(text("# Title\n\nSome **bold** words.\n\n- a\n- b\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nlast ", gate, "words\n"))
    chat = attached(columns=columns)
    chat.say("show").until("Title").until("bold")
    gate.release()
    chat.until("last words").ready()
    screen = "\n".join(chat.screen)
    assert "**" not in screen and "• a\n• b" in screen and all(len(line) <= columns for line in chat.screen)


def test_what_is_typed_meanwhile_is_queued_and_shown(attached, server, provider):
    gate = Gate()
    provider.plan(text("half", gate, " and whole"), text("second"))
    chat = attached()
    chat.say("first").until("half")
    chat.say("and then this").until("queued: and then this")
    gate.release()
    chat.until("and whole").until("> and then this").until("second").ready()
    assert [i["user_message"] for i in server.client.history("c")["interactions"]] == ["first", "and then this"]


def test_a_half_typed_line_is_there_again_after_a_question(attached, server, provider):
    gate = Gate()
    reply = tools(call("write_file", {"path": "f.txt", "content": "1"}, "w1"), say="thinking")
    reply.steps.insert(2, gate)
    provider.plan(reply, text("done"), text("other"))
    chat = attached()
    chat.say("do it").until("thinking").type("half a mess").until("half a mess")
    gate.release()
    chat.until("allow?").answer("y").until("half a messy").type("\x7f\r").until("kept for later: half a mess")
    chat.answer_line("n use another name").until("done").ready("half a mess").type("age\r").until("other")
    assert [i["user_message"] for i in server.client.history("c")["interactions"]] == ["do it", "half a message"]
    assert any("use another name" in json.dumps(m) for m in provider.requests[1].conversation)


def test_several_calls_can_be_answered_together(attached, server, provider):
    calls = [call("write_file", {"path": f"{name}.txt", "content": "1"}, name) for name in "abc"]
    provider.plan(tools(*calls), text("done"))
    chat = attached()
    chat.say("do it").until("a.txt").until("to all 3").answer("Y").until("Y once more").until("b.txt").until("c.txt").until("to all 3").answer("Y").until("done").ready()
    assert sorted(p.name for p in server.home.workspace.iterdir()) == ["a.txt", "b.txt", "c.txt"]


def test_an_answer_from_elsewhere_takes_the_question_off_the_screen(attached, server, provider):
    provider.plan(tools(call("write_file", {"path": "f.txt", "content": "1"}, "w1")), text("done"))
    chat = attached()
    chat.say("do it").until("allow?")
    server.client.approve("c", "int_001", server.client.get("/approvals").json["approvals"][0]["approval_id"]).expect(200)
    chat.until("done").ready()
    assert not any("allow?" in line or line == "   1 +1" for line in chat.screen), chat.screen


def test_a_live_command_shows_its_output_and_the_status_line(alone, home):
    chat = alone("--approval-mode", "approve_all").ready()
    chat.say("run: echo line one; sleep 1; echo line two").until("Ctrl-C stops").until("line one").until("line two").ready()


def test_tab_completes_commands(attached):
    attached().type("/bra\t").until("/branches")


def test_the_editor_of_a_person_is_used(attached, server, provider, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf 'from\\nmy editor' > \"$1\"\n")
    editor.chmod(0o755)
    provider.plan(text("fine"))
    attached(EDITOR=str(editor)).type("draft").until("draft").type(b"\x18\x05").until("my editor").paste(" and\rmore").type("\r").until("fine")
    assert [i["user_message"] for i in server.client.history("c")["interactions"]] == ["from\nmy editor and\nmore"]


def test_a_text_of_several_rows_is_edited_in_its_middle(attached):
    words = "echo " + " ".join(f"{n:04}" for n in range(40))
    chat = attached(columns=60)
    chat.type(words + "\x01" + "\x1b[C" * 100 + "@@@")
    whole = "> " + words[:100] + "@@@" + words[100:]
    chat.shows(*[whole[at:at + 60].rstrip() for at in range(0, len(whole), 60)])


def test_lines_of_a_message_and_earlier_messages_are_reached_by_the_arrow_keys(attached, provider):
    provider.plan(text("one"), text("two"))
    chat = attached()
    chat.say("first").until("one").ready().type("up\x1b\rdown\x1b\rend").shows("> up", "down", "end")
    chat.type("\x1b[A\x1b[AX").shows("> upX", "down", "end").type("\x1b[A").ready("first").type("\x1b[B").shows("> upX", "down", "end")
    chat.type("\x15\x0b\x15").type("\x1b[B" * 3 + "\x15" * 3)
    chat.type("\x1b[15~\x1b[5~last\x1b[13;2uline").shows("> last", "line")


def test_a_paste_may_hold_what_the_keyboard_would_make_signals_of(attached, provider):
    provider.plan(text("got it"))
    chat = attached().ready()
    chat.paste("abc\x03y\rdef\x04\x1a\x1c").shows("> abc^Cy", "def^D^Z^\\").type("\r").until("got it")
    assert provider.requests[0].last["content"] == "abc\x03y\ndef\x04\x1a\x1c"


def test_a_paste_that_a_question_comes_into_is_one_message_and_answers_nothing(attached, server, provider):
    gate = Gate()
    provider.plan(Reply([gate, *tools(call("write_file", {"path": "a.txt", "content": "x"}, "w1")).steps]), text("not written"))
    chat = attached()
    chat.say("write").type(PASTE_BEGIN + b"abc\rdef\r")
    gate.release()
    eventually(lambda: server.client.get("/approvals").json["approvals"], "it asks")
    chat.type(b"y\rmore" + PASTE_END).until("allow?")
    assert not (server.home.workspace / "a.txt").exists()
    chat.ready_for("more").type("\r").answer("n").until("(cancelled)").shows("> abc", "def", "y", "more")
    assert not (server.home.workspace / "a.txt").exists() and len(provider.requests) == 1


def test_commands_of_a_chat(attached, server, provider):
    provider.plan(text("one"), text("two"), text("three"), text("four"))
    chat = attached()
    chat.say("first").until("one").ready().say("second").until("two").ready()
    chat.say("/edit 1 other").until("branch of their own").until("three").ready()
    chat.say("/branches").until("1. second").until("int_002").until("2. other").until("this one").until("int_003").ready("/branches")
    chat.type("1\r").until("turn 2 is the last one now: second").ready()
    chat.say("/history").until("[1] int_001").until("[2] int_002").ready()
    chat.say("/undo").until("turn 1 is the last one now").ready("second").type(CLEAR).say("/redo").until("turn 2 is the last one now: second").ready()
    chat.say("/regenerate").until("four").ready()
    chat.say("/usage").until("this branch:").ready().say("/model").until("test/scripted").until("in use").ready("/model").type(CTRL_C).ready()
    chat.say("/mode").until("here: ask").until("the server: ask").ready().say("/tasks").until("no plan and no tasks").ready()
    chat.say("/export out.md").until("written to out.md").ready()
    assert "other" in (server.home.path / "out.md").read_text() or "first" in (server.home.path / "out.md").read_text()
    chat.say("/fork copy of it").until("chat ").ready().say("/chats").until("copy of it").ready()
    chat.say("/new").until("chat ").ready().say("/resume c").until("chat c").ready().say("/help").until("/branches [N]").ready()
    chat.say("/quit")
    assert chat.end() == 0


def test_a_mode_allows_without_asking_and_shows_it(attached, server, provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "one\n"}, "w1")), text("written"),
                  tools(call("run_shell", {"command": "echo ran"}, "s1")),
                  tools(call("run_shell", {"command": "echo ran > b.txt"}, "s2")), text("has run"),
                  tools(call("write_file", {"path": "a.txt", "content": "two\n"}, "w2")), text("end"))
    chat = attached()
    chat.say("/mode edit").until("did you mean edits?").ready()
    chat.say("/mode edits").until("file edits here are allowed").ready().say("write").until("+one").until("allowed").until("written").ready()
    assert "allow?" not in chat.text and (server.home.workspace / "a.txt").read_text() == "one\n"
    chat.say("run").until("allow?").answer("n").until("(cancelled)").ready()
    chat.say("/mode all").until("everything").ready().say("run").until("echo ran > b.txt").until("has run").ready()
    assert (server.home.workspace / "b.txt").read_text() == "ran\n"
    chat.say("/new").until("chat chat_").ready().say("write").until("allow?").answer(CTRL_C).ready()
    assert (server.home.workspace / "a.txt").read_text() == "one\n", "the call in another chat needs approval"


def test_only_harmless_edits_with_a_preview_are_allowed_unasked(attached, make_server, make_home, provider):
    home = make_home()
    home.workspace = home.user
    (home.user / "picture.png").write_bytes(b"\xff\xfe\x00")
    (home.user / ".ssh").mkdir()
    chat = attached(at=make_server(provider, home=home))
    chat.say("/mode edits").until("file edits here are allowed").ready()
    for path, asked in [(".ssh/authorized_keys", "risk: high"), ("picture.png", "risk: medium")]:
        provider.plan(tools(call("write_file", {"path": path, "content": "one\n"}, path[-1])))
        chat.say("write").until(asked).until("allow?").answer("n").until("(cancelled)").ready()
    provider.plan(tools(call("write_file", {"path": "plain.txt", "content": "one\n"}, "p")), text("end"))
    chat.say("write").until("write_file plain.txt  ✓ allowed").until("end").ready()
    assert not (home.user / ".ssh" / "authorized_keys").exists() and (home.user / "picture.png").read_bytes() == b"\xff\xfe\x00"


@pytest.mark.parametrize("refusal", [STORAGE_FULL, NOT_OURS], ids=["full", "broken"])
def test_what_a_mode_cannot_allow_is_asked(attached, server, provider, refusal):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "one\n"}, "w1")), text("end"))
    with refusing(server, [refusal, refusal]) as (port, asked):
        chat = attached(port=port)
        chat.say("/mode edits").until("file edits here are allowed").ready()
        chat.say("write").until("reprise: ").until("allow?")
        assert len(asked) == 1, "the refused answer is not sent again"
        chat.answer("y").until("reprise: ").until("allow?").answer("y").until("end").ready()
    assert len(asked) == 3 and (server.home.workspace / "a.txt").exists()


def test_of_several_those_whose_answer_is_refused_are_asked_again(attached, server, provider):
    provider.plan(tools(*[call("write_file", {"path": f"{name}.txt", "content": "1"}, name) for name in "abc"]), text("end"))
    with refusing(server, [None, STORAGE_FULL, None]) as (port, asked):
        chat = attached(port=port)
        chat.say("write").until("to all 3").answer("Y").until("Y once more").answer("Y").until("the disk is full").until("allow?")
        assert [each["tool_input"].count("b.txt") for each in server.client.get("/approvals").json["approvals"]] == [1]
        assert any(line.startswith("write_file b.txt") for line in chat.screen), chat.screen
        chat.answer("y").until("end").ready()
    assert len(asked) == 4 and sorted(p.name for p in server.home.workspace.iterdir()) == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize("columns", [70, 120])
def test_the_letters_that_answer_stand_above_a_prompt_that_has_no_room_for_them(attached, server, provider, columns):
    path = "a-folder/" * 12 + "a.txt"
    provider.plan(tools(call("write_file", {"path": path, "content": "1"}, "w1")), text("end"))
    chat = attached(columns=columns, rows=40)
    chat.say("write").until("allow? ").answer("n use").until("n use")
    screen = chat.screen
    legend = "[y]es, [n]o, [a]lways in this chat, [e]dit the arguments, [1-3] more"
    if columns == 70:
        assert screen[-2:] == [legend, "allow? n use"], screen
    else:
        assert screen[-1] == f"allow? {legend}: n use", screen
    chat.type(" another name\r").until("end").ready()
    assert "use another name" in json.dumps(provider.requests[-1].conversation)
    assert "write_file" in chat.screen and sum("[y]es" in line for line in chat.screen) == 1, chat.screen


def test_tabs_below_the_text_are_drawn_once(attached, provider):
    gate = Gate()
    provider.plan(text("half", gate, " and whole"), *[text("second")] * 2)
    chat = attached(columns=60, rows=20)
    chat.say("first").until("half").paste("x\ty" * 18).type("\r").until("queued: ").type("more").until("more").type("\x15")
    gate.release()
    chat.until("and whole").until("second").ready()
    assert not any("queued: " in line for line in chat.screen), chat.screen


def test_what_was_said_is_summed_up_on_request(attached, provider):
    provider.answer_with(lambda request: text("in short" if "sum up" in request.messages[0]["content"] else "fine"))
    chat = attached()
    chat.say("/compact").until("nothing to summarise yet").ready()
    chat.say("first").until("fine").ready().say("/compact").until("only the model gets the summary").ready()
    chat.say("second").until("are summarised from now on").until("fine").ready().say("/compact third").until("are summarised from now on").ready()
    assert any("in short" in m["content"] for m in provider.requests[-1].messages)


def test_names_that_are_not_files_stay_text(attached, server, provider):
    (server.home.path / "two words.txt").write_text("quoted")
    (server.home.path / "folder").mkdir()
    provider.plan(*[text("fine")] * 4)
    chat = attached()
    chat.say("look at @folder and @somebody").until("fine").ready()
    chat.say("and @none.txt").until("there is no file none.txt here").until("fine").ready()
    chat.type("read @two\t").shows('> read @"two words.txt"').type("\r").until("with two words.txt").until("fine").ready()
    assert "quoted" in provider.requests[-1].last["content"]
    chat.say("/attach folder").until("is a folder").ready().say("/undo 3").until("\"files\" or \"force\"").ready().say("/regenerate 3").until("/regenerate takes no argument").ready()
    chat.say("/export two words.txt").until("already; choose another name").ready().say("/model nowhere/x").until("the providers are: offline, test").ready()
    chat.say("/exit")
    assert chat.end() == 0


def test_arguments_are_edited_until_they_are_right(attached, server, provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "one"}, "w1")), text("done"))
    chat = attached()
    chat.say("write").until("allow?").answer("e").until("arguments: {").type("\x7f\r").until("e edits them again").until("allow?")
    chat.answer("e").until("arguments: {").type(CTRL_C).until("allow?").answer("e").until("arguments: {").type("}\r").until("as you have changed them").until("allow?").answer("y").until("done").ready()
    assert (server.home.workspace / "a.txt").read_text() == "one"


def test_a_question_longer_than_the_screen_is_drawn_once(attached, provider):
    options = [f"{n} " + "word " * 100 for n in range(6)]
    provider.plan(tools(call("ask_human", {"question": "Which?", "options": options}, "q1")), text("fine"))
    chat = attached(columns=80, rows=24)
    chat.say("ask").until("answer (a number").answer_line("2").until("fine").ready()
    assert chat.text.count("1. 0 word") <= 2


def test_files_go_with_a_message(attached, server, provider):
    (server.home.path / "notes.txt").write_text("what the file says")
    provider.plan(text("read"), text("read again"))
    chat = attached()
    chat.say("see @notes.txt please").until("(with notes.txt)").until("read").ready()
    assert "what the file says" in json.dumps(provider.requests[0].conversation)
    chat.say("/attach notes.txt").until("1 file with the next message").say("and again").until("read again")


def test_a_message_with_files_that_is_not_taken_is_there_again(attached, server, provider):
    (server.home.path / "notes.txt").write_text("what the file says")
    gate = Gate()
    provider.plan(text("half", gate, " and whole"), text("read"))
    with refusing(server, [STORAGE_FULL], of="/files") as (port, asked):
        chat = attached(port=port)
        chat.say("first").until("half").say("see @notes.txt please").until("wait until this has ended")
        gate.release()
        chat.until("and whole").ready("see @notes.txt please")
        assert not asked, "files are uploaded only when the message can be sent"
        chat.type("\r").until("the disk is full").ready("see @notes.txt please").type("\r").until("read").ready()
    assert json.dumps(provider.requests[-1].conversation).count("what the file says") == 1


def test_a_refused_message_is_there_again_and_its_files_are_not_given_twice(attached, server, provider):
    (server.home.path / "notes.txt").write_text("what the file says")
    provider.plan(text("read"))
    with refusing(server, [STORAGE_FULL], of="/interactions") as (port, asked), refusing(port, [], of="/files") as (outer, given):
        chat = attached(port=outer)
        chat.say("see @notes.txt please").until("the disk is full").ready("see @notes.txt please").type("\r").until("read").ready()
    assert (len(asked), len(given)) == (2, 1)
    assert json.dumps(provider.requests[-1].conversation).count("what the file says") == 1


def test_ctrl_c_gives_up_a_message_that_the_server_does_not_answer(attached, server, provider):
    provider.plan(text("fine"))
    late = threading.Event()
    with refusing(server, [late], of="/interactions") as (port, asked):
        chat = attached(port=port).say("hello there")
        eventually(lambda: asked, "it was sent")
        chat.type(CTRL_C).until("stopped waiting").ready("hello there").type("\r").until("fine").ready()
        late.set()


def test_the_answer_to_a_question_is_told_once(attached, provider):
    provider.plan(tools(call("ask_human", {"question": "Which?", "options": ["red", "blue"]}, "q1")), text("fine"),
                  tools(call("ask_human", {"question": "And now?"}, "q2")), text("end"))
    chat = attached()
    chat.say("ask").until("answer (a number").answer_line("2").until("fine").ready()
    assert sum("blue" in line for line in chat.screen) == 2, chat.screen  # the option, and the answer
    chat.say("ask").until("answer: ").answer("\r").until("Enter alone is no answer").answer_line("/decline").until("end").ready()
    assert sum("declined" in line for line in chat.screen) == 1, chat.screen
    chat.say("/history").until("[2] int_002").until("end").ready()
    assert sum("blue" in line for line in chat.screen) == 3, chat.screen


@pytest.mark.parametrize(("lines", "shown", "more"), [(40, 40, None), (41, 20, "  ... 21 more lines")])
def test_of_a_long_message_the_beginning_is_shown(attached, provider, lines, shown, more):
    provider.plan(text("fine"))
    chat = attached(rows=120)
    chat.paste("\n".join(f"line {n}" for n in range(lines))).until(f"line {lines - 1}").type("\r").until("fine").ready()
    assert sum(line[2:].startswith("line ") for line in chat.screen) == shown
    assert more is None or more in chat.screen


SEQUENCES = int(os.environ.get("REPRISE_TYPE_AHEAD", "40"))


@pytest.mark.limit(900)
def test_nothing_that_came_before_a_question_answers_it(attached, server, provider):
    """Random keys, lines and pastes while the model writes. `REPRISE_TYPE_AHEAD=500` makes 500 attempts."""
    chat = attached()
    chosen = random.Random(12)
    pieces = [b"y", b"y\r", b"a\r", b"Y\r", b"yes\r", b"e\r", b"\r", b"n", b" ", b"always\r", b"\x1b[A", b"\t", b"\x7f", b"\x15",
              PASTE_BEGIN + b"y\na\n" + PASTE_END, PASTE_BEGIN + b"y\r" + PASTE_END + b"\r", PASTE_BEGIN + b"y\ry\r"]
    for number in range(SEQUENCES):
        keys = b"".join(chosen.choices(pieces, k=chosen.randint(1, 8)))
        gate = Gate()
        reply = tools(call("write_file", {"path": f"f{number}.txt", "content": "1"}, f"w{number}"), say=f"speaks {number}.")
        reply.steps.insert(2, gate)
        provider.forget_plan()
        provider.plan(reply, *[text(f"end {number}.")] * 12)
        chat.type(b"\x15").say(f"go {number}").until(f"speaks {number}.").type(keys)
        gate.release()
        chat.until("allow?")
        if keys.rfind(PASTE_BEGIN) > keys.rfind(PASTE_END):
            chat.type(b"y\ra\r" + PASTE_END)  # the rest of the paste comes late
        assert len(server.client.get("/approvals").json["approvals"]) == 1, keys
        assert not list(server.home.workspace.iterdir()), keys
        chat.type(b"\x15").answer("n").until("(cancelled)")
        eventually(lambda: not server.client.get("/chats/c/queue").json["queue"] and
                   server.client.get("/chats/c").json["interactions"][-1]["status"] == "CANCELLED", "it has stopped")
    assert not list(server.home.workspace.iterdir())
