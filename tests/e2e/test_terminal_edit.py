"""Editing the line of the terminal client: pastes, vi's commands, the person's editor, Ctrl-Z, and characters of several code points."""
import os
import pathlib
import signal

import pytest

from support.provider import Gate, call, text, tools
from support.timing import eventually
from test_terminal_keys import alone_with, attached, messages  # noqa: F401 (fixtures)

ESC, CTRL_C, CTRL_D, CTRL_G, CTRL_T, CTRL_Z, LEFT, UP, DOWN, CLEAR = (b"\x1b", b"\x03", b"\x04", b"\x07", b"\x14", b"\x1a", b"\x1b[D", b"\x1b[A", b"\x1b[B", b"\x15")
FAMILY, FLAG, ACCENT = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "e\u0301"


@pytest.fixture
def editor(tmp_path):
    def make(script):
        path = tmp_path / "editor"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return str(path)
    return make


def quit_after(chat):
    chat.type(CLEAR).type(CTRL_D)
    assert chat.end() == 0


# --- pastes and keys -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["emacs", "vi"])
def test_a_pasted_esc_is_a_character(alone_with, provider, mode):
    provider.plan(text("fine"))
    chat = alone_with(f'{{"editing": "{mode}"}}')
    chat.paste("red: \x1b[31mX\x1b[0m").ready("red: ^[[31mX^[[0m").type("\r").until("fine").ready()
    assert provider.requests[0].last["content"] == "red: \x1b[31mX\x1b[0m"


def test_ctrl_space_and_ctrl_v_do_nothing(attached, server, provider):
    provider.plan(text("fine"), text("fine"))
    chat = attached()
    chat.type(b"\x00hello\r").until("fine").ready()
    chat.type(b"a\x16\x00b").ready("ab").type(b"\x16\r").until("fine").ready()
    assert messages(server) == ["hello", "ab"]


@pytest.mark.parametrize("keys", [b"\x1bx", b"\x1b.", b"\x1bO", b"\x1b[", b"\x1bOE"], ids=repr)
def test_alt_with_a_key_without_a_meaning_stops_no_run(attached, server, provider, keys):
    gate = Gate()
    provider.plan(text("half", gate, " and whole"))
    chat = attached()
    chat.say("go").until("half").type("ab").ready_for("ab").type(keys).quiet(0.8)  # so long the rest of a sequence is waited for
    chat.type("c").ready_for("abc")
    gate.release()
    chat.until("and whole").ready("abc")
    assert server.client.interaction("c", "int_001")["status"] == "COMPLETED"


def test_ctrl_s_does_not_stop_the_screen_and_can_be_a_key(alone_with):
    chat = alone_with('{"keys": {"mode": "ctrl-s"}}')
    chat.type("ab").ready("ab").type(b"\x13").until("before you have approved a plan").ready("ab")
    quit_after(chat)
    plain = alone_with("{}")
    plain.type(b"a\x13b\x11c").ready("abc")


# --- vi --------------------------------------------------------------------------------------------------------------

def test_commands_of_vi_for_lines_of_a_shell_do_nothing(alone_with, provider):
    chat = alone_with('{"editing": "vi"}')
    for key in "/?nN#:@_GKJ=":
        chat.type("not ready").ready("not ready").type(ESC).quiet(0.2)
        chat.type(key).quiet(0.2)
        chat.ready("not ready").type("A!").ready("not ready!").type(CTRL_C).ready()
    assert provider.requests == []


def test_v_opens_the_editor_and_sends_nothing(alone_with, provider, editor):
    chat = alone_with('{"editing": "vi"}', EDITOR=editor("printf ' and more' >> \"$1\"\n"))
    chat.type("some").ready("some").type(ESC).quiet(0.2)
    chat.type("v").ready("some and more").quiet(0.3)
    assert provider.requests == []


def test_j_and_k_go_through_the_messages(alone_with, provider):
    provider.answer_with(lambda request: text("fine"))
    chat = alone_with('{"editing": "vi"}')
    chat.say("first").until("fine").ready().say("second").until("fine").ready()
    chat.type("draft").ready("draft").type(ESC).quiet(0.2)
    chat.type("k").ready("second").type("k").ready("first").type("jj").ready("draft")


# --- the editor and the pager ----------------------------------------------------------------------------------------

@pytest.mark.parametrize(("script", "told"), [
    ("exit 3\n", "the editor ended with status 3: $VISUAL or $EDITOR names another; your text is unchanged"),
    ("kill -9 $$\n", "the editor ended with status 137"),
    (None, "the editor ended with status 127")], ids=["fails", "killed", "missing"])
def test_an_editor_that_fails_says_so(attached, provider, editor, script, told):
    chat = attached(EDITOR=editor(script) if script else "/no/such/editor")
    chat.type("my text").ready("my text").type(CTRL_G).until(told).ready("my text")


def test_an_editor_that_prints_leaves_the_line_as_it_is(attached, editor):
    chat = attached(EDITOR=editor("echo 'Waiting for Emacs...'\n"))
    chat.type("my text").ready("my text").type(CTRL_G).quiet(0.5)
    chat.ready("my text")
    assert len([line for line in chat.screen if "my text" in line]) == 1, chat.screen


def test_a_nul_of_the_editor_cuts_nothing(attached, server, provider, editor):
    provider.plan(text("fine"))
    chat = attached(EDITOR=editor("printf 'one\\000two' > \"$1\"\n"))
    chat.type("x").ready("x").type(CTRL_G).ready("onetwo").type("\r").until("fine").ready()
    assert messages(server) == ["onetwo"]


def test_without_a_folder_for_temporary_files_the_folder_is_named(attached, provider, editor):
    provider.plan(text("fine"))
    chat = attached(EDITOR=editor("true\n"), TMPDIR="/no/such/folder")
    chat.say("hi").until("fine").ready()
    for key in (CTRL_T, CTRL_G):
        chat.type("my text").ready("my text").type(key).until("no temporary file can be made in /no/such/folder").ready("my text").type(CLEAR).ready()


# --- Ctrl-Z ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("asks", [True, False], ids=["question", "run"])
def test_after_ctrl_z_and_fg_the_screen_is_whole(attached, provider, asks):
    reply = tools(call("write_file", {"path": "x.txt", "content": "a"}, "w1")) if asks else text("half", Gate())
    provider.plan(reply, text("done"))
    chat = attached()
    chat.say("go").until("allow?" if asks else "half")
    chat.type("some text").ready_for("some text").quiet(0.5)
    before = chat.screen
    chat.type(CTRL_Z)
    eventually(lambda: os.waitid(os.P_PID, chat.pid, os.WSTOPPED | os.WNOHANG), "the client has stopped")
    chat.raw += b"\r\n[1]+  Stopped   reprise\r\n$ fg\r\nreprise\r\n"  # what a shell writes
    os.kill(chat.pid, signal.SIGCONT)
    chat.type("!").ready_for("some text!").quiet(0.5)
    after = chat.screen
    assert not any("Stopped" in line for line in after[-6:]), after
    kept = [line for line in before if "allow?" in line or "write_file x.txt" in line or "mode ask" in line]
    for line in kept:
        assert sum(line.rstrip("!") in each for each in after) == before.count(line), (before, after)


# --- history and characters ------------------------------------------------------------------------------------------

def test_what_was_changed_of_an_earlier_message_stays_until_the_line_is_entered(attached, server, provider):
    provider.answer_with(lambda request: text("fine"))
    chat = attached()
    chat.say("first").until("fine").ready().say("second").until("fine").ready()
    chat.type("draft").ready("draft").type(UP).ready("second").type(" changed").ready("second changed").type(UP).ready("first")
    chat.type(DOWN).ready("second changed").type(DOWN).ready("draft").type(UP).ready("second changed").type("\r").until("fine").ready()
    assert messages(server)[-1] == "second changed"
    chat.type(UP).ready("second changed").type(UP).ready("second").type(UP).ready("first")


@pytest.mark.parametrize("cluster", [FAMILY, FLAG, ACCENT, "\U0001f44d\U0001f3fd", "\u2764\ufe0f"], ids=ascii)
def test_a_character_of_several_code_points_is_deleted_as_one(attached, server, provider, cluster):
    provider.answer_with(lambda request: text("fine"))
    chat = attached()
    for keys in (b"\x7f", LEFT + b"\x1b[3~", b"\x02\x04"):
        chat.type("a" + cluster).type(keys).type("b\r").until("fine").ready()
    assert messages(server) == ["ab"] * 3


# --- a message that is edited ----------------------------------------------------------------------------------------

def files_of(provider):
    """What the model was given of files with the last message."""
    return {name for name in ("one", "ONE", "two", "three") if f"content of {name}" in str(provider.requests[-1].messages[-1])}


@pytest.fixture
def in_folder(alone_with, provider):
    provider.answer_with(lambda request: text("fine"))
    chat = alone_with("{}")
    folder = pathlib.Path(os.readlink(f"/proc/{chat.pid}/cwd"))
    for name in ("one", "two", "three"):
        (folder / f"{name}.txt").write_text(f"content of {name}")
    return chat, folder


def test_an_edit_sends_the_files_that_its_words_name(in_folder, provider):
    chat, folder = in_folder
    chat.say("look at @one.txt").until("fine").ready()
    assert files_of(provider) == {"one"}
    (folder / "one.txt").write_text("content of ONE")
    for words, files in (("look at @one.txt again", {"ONE"}), ("look at @two.txt", {"two"}), ("look", set()), ("look at @one.txt @two.txt", {"ONE", "two"})):
        chat.say("/edit 1 " + words).until("fine").ready()
        assert files_of(provider) == files, words
    (folder / "one.txt").unlink()
    chat.say("/edit 1 look once more at @one.txt").until("fine").ready()
    assert files_of(provider) == {"ONE"}, "it is no longer here"


def test_an_edit_keeps_and_takes_attached_files(in_folder, provider):
    chat, _ = in_folder
    chat.say("/attach one.txt").until("one.txt").ready().say("look").until("fine").ready()
    chat.say("/edit 1 look again").until("fine").ready()
    assert files_of(provider) == {"one"}
    chat.say("/attach two.txt").until("two.txt").ready().say("/edit 1 look at @three.txt").until("fine").ready()
    assert files_of(provider) == {"one", "two", "three"}
    chat.say("/attach two.txt").until("two.txt").ready().say("/regenerate").until("fine").ready().say("next").until("fine").ready()
    assert files_of(provider) == {"two"}, "it waited for a message"


def test_a_summary_that_was_asked_for_is_made_with_the_next_message(in_folder, provider):
    chat, _ = in_folder
    chat.say("one").until("fine").ready().say("two").until("fine").ready()
    chat.say("/compact").until("next message").ready().say("/edit 2 two again").until("fine").ready()
    before = len(provider.requests)
    chat.say("three").until("fine").ready()
    assert len(provider.requests) == before + 2


def test_an_edit_that_is_refused_returns_as_an_edit(make_server, provider, open_terminal):
    provider.answer_with(lambda request: text("fine"))
    server = make_server(provider, config={"guardrails": {"input": ["forbidden"]}})
    chat = open_terminal(server.home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}", columns=100, rows=30).opened().ready()
    chat.say("one").until("fine").ready().say("/edit 1 a forbidden word").ready("/edit 1 a forbidden word")
    chat.type(b"\x17" * 2 + b"good word\r").until("fine").ready()
    assert messages(server) == ["a good word"]


@pytest.mark.parametrize("key", [ESC, CTRL_C], ids=["esc", "ctrl-c"])
def test_what_was_written_for_an_edit_is_remembered(attached, provider, key):
    provider.answer_with(lambda request: text("fine"))
    chat = attached()
    chat.say("one").until("fine").ready().say("/edit").ready_for("edit> one").type(" and a half").ready_for("edit> one and a half")
    chat.type(key).until("not changed").ready().type(UP).ready("/edit 1 one and a half").type(CTRL_C)


# --- the menu of files and the queue ---------------------------------------------------------------------------------

def test_the_menu_offers_names_with_emoji_and_blanks(alone_with, provider, make_home):
    chat = alone_with("{}")
    folder = os.readlink(f"/proc/{chat.pid}/cwd")
    for name in (f"{FAMILY} photo.txt", "two words.txt", "twofold.txt"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("x")
    chat.type("@photo").until("photo.txt").type("\t").until('photo.txt"').type(CLEAR).ready()
    chat.type("@two w").ready_for("@two w").type(CLEAR)
    chat.type("@wor").until("› two words.txt").type("\t").ready('@"two words.txt"')


def test_many_queued_messages_leave_the_run_in_sight(attached, provider):
    provider.plan(text("half", Gate()))
    chat = attached(columns=30, rows=10)
    chat.say("go").until("half")
    for i in range(8):
        chat.say(f"wait {i}").until("queued:").quiet(0.2)
    chat.until("queued: 6 more").quiet(0.5)
    shown = chat.screen
    assert any("Ctrl-C" in line for line in shown) and any("queued: wait 0" in line for line in shown), shown
