"""How a conversation begins: its first line, and a message on the command line."""
import json
import re

import pytest

from support.provider import call, tools
from support.server import Home, reprise

CTRL_D = b"\x04"


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "user")


@pytest.fixture
def begin(home, open_terminal):
    return lambda *arguments, at=home, **how: open_terminal(at, *arguments, **how)


def first_line(terminal):
    return next(line for line in terminal.screen if " · " in line or line.startswith("offline"))


def test_the_first_line_tells_model_folder_mode_and_address(begin, home):
    line = first_line(begin().opened().ready())
    assert re.fullmatch(rf"offline · {re.escape(str(home.path))} · mode ask · http://127\.0\.0\.1:\d+ · /help lists the commands", line), line


@pytest.mark.parametrize("columns, parts", [
    (200, ["offline", "FOLDER", "mode ask", "ADDRESS", "/help lists the commands"]), (74, ["offline", "…/user", "mode ask", "ADDRESS", "/help"]),
    (56, ["offline", "…/user", "mode ask", "ADDRESS"]), (30, ["offline", "…/user", "mode ask"]), (20, ["offline", "mode ask"])])
def test_what_is_least_important_is_left_out_of_a_narrow_terminal(begin, home, columns, parts):
    terminal = begin(columns=columns).until("mode ask").ready()
    line = re.sub(r"http://127\.0\.0\.1:\d+", "ADDRESS", first_line(terminal)).replace(str(home.path), "FOLDER")
    assert line == " · ".join(parts), terminal.screen


def test_a_mode_that_does_not_ask_is_told_however_narrow_the_terminal(begin):
    for columns in (200, 40, 24):
        line = first_line(begin("--approval-mode", "approve_all", columns=columns).until("approve_all").ready())
        assert "approve_all" in line and len(line) <= columns, line


def test_the_first_line_tells_what_waits_in_other_chats(begin, server, provider):
    home, url = server.home, f"http://127.0.0.1:{server.port}"
    one = begin("chat", "one", "--url", url, at=home).opened().ready()
    assert "asks" not in one.text and "wait in other" not in one.text
    provider.plan(tools(call("run_shell", {"command": "make it"})), tools(call("run_shell", {"command": "make it again"})))
    one.say("go").until("allow?")
    two = begin("chat", "two", "--url", url, at=home).until("another chat asks: run_shell make it (/approvals)").ready()
    two.say("go").until("allow?")
    three = begin("chat", "three", "--url", url, at=home).until("2 questions wait in other chats (/approvals)").ready()
    three.kill()
    again = begin("chat", "two", "--url", url, at=home).until("another chat asks: run_shell make it (/approvals)")  # not its own
    again.until("allow?")


def test_a_pipe_gets_the_line_without_colours_and_with_the_chats_id(home):
    status, told, _ = reprise(home, "chat", "notes", "--color", "always", stdin=b"/quit\n")
    assert status == 0
    assert re.search(rf"^offline · {re.escape(str(home.path))} · mode ask · http://127\.0\.0\.1:\d+ · chat notes · /help lists the commands$", told, re.M), told
    assert "\x1b" not in told


# --- a first message on the command line --------------------------------------------------------------------------

def test_a_conversation_begins_with_the_message_of_the_command_line(begin):
    chat = begin("what is 2+2?").opened().until("> what is 2+2?").until("2+2 = 4").ready()
    chat.say("what is 6*7?").until("6*7 = 42").ready()
    chat.type(b"\x1b[A\x1b[A").ready_for("what is 2+2?")  # it is in the history


def test_a_first_message_may_run_a_command_of_the_client(begin):
    begin("/mode edits").opened().until("mode edits").ready()
    begin("//mode is a word").opened().until("> /mode is a word").ready()


@pytest.mark.parametrize("arguments", [["--", "hello"], ["--", "ls"], ["--", "-x means?"], ["2+2?"], ["größe"]])
def test_words_after_a_separator_and_what_is_no_plain_word_are_messages(begin, arguments):
    begin(*arguments).opened().until(f"> {arguments[-1]}").ready()


def test_a_first_message_goes_to_the_chat_that_is_named_or_was_last(begin):
    begin("--chat", "notes", "echo one").opened().until("one").ready().type(CTRL_D).end()
    chat = begin("--continue", "echo two").opened().until("> echo one").until("> echo two").until("two").ready()
    chat.say("/history").until("[2]").ready()


def test_a_first_message_waits_for_what_runs_and_does_not_answer_its_question(begin):
    first = begin("--chat", "notes", "write a.txt: hi").opened().until("allow?")
    second = begin("--chat", "notes", "--", "y").opened().until("allow?")
    assert not any("created" in line for line in second.screen)
    first.answer("y").until("created").ready()
    second.until("> y").ready()


def test_piped_input_and_a_first_message_are_one_question(home):
    status, answer, told = reprise(home, "echo these words:", stdin=b"and those\n")
    assert (status, told) == (0, ""), told
    assert answer.startswith("these words:")
    assert json.dumps("echo these words:\n\nand those") in reprise(home, "export", "--format", "jsonl")[1]


def test_a_message_that_is_not_utf_8_is_refused(home):
    for arguments, stdin in ((["-p", "echo caf\udce9"], b""), (["-p", "echo this"], b"a\xff"), (["-p", "caf\udce9", "--json"], b"")):
        status, out, err = reprise(home, *arguments, stdin=stdin)
        assert (status, out, err) == (2, "", "reprise: the message is not UTF-8\n")
    assert not home.keys.exists(), "nothing has begun"


@pytest.mark.parametrize("arguments, told", [
    (["srve"], "there is no command srve, did you mean serve? (reprise --help says more; to begin with a message: reprise -- srve)"),
    (["Serve"], "there is no command Serve, did you mean serve?"), (["hello"], "there is no command hello (reprise --help says more; to begin with"),
    (["srve", "--port", "1"], "there is no command srve, did you mean serve?"),
    (["fix", "the", "bug"], 'there is no command fix (reprise --help says more; to begin with a message: reprise "fix ...")'),
    (["hello there", "ls"], '"hello there" is one argument too many'), (["-x means?"], "a message that begins with - goes after --"),
    ([""], "the message is empty"), (["--", " \t\n"], "the message is empty"), (["-p", "a b", "c d"], "-p takes one message"),
    (["a b", "c d"], '"c d" is one argument too many')])
def test_what_may_be_a_mistyped_command_is_no_message(home, arguments, told):
    status, out, err = reprise(home, *arguments)
    assert (status, out) == (2, "") and told in err, err
    assert not home.keys.exists(), "nothing has begun"
