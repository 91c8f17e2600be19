"""Menus of the terminal client, which filter as one types: commands, files, chats, models, branches, what waits."""
import json
import os
import re
import signal

import pytest

from support.provider import call, text, tools
from support.timing import eventually, halt
from test_folder_config import own_configuration

ESC, UP, DOWN, TAB, CLEAR, CTRL_C = b"\x1b", b"\x1b[A", b"\x1b[B", b"\t", b"\x15", b"\x03"
HINT = re.compile("^[0-9]+/[0-9]+ · ")


@pytest.fixture
def attached(server, open_terminal):
    def make(name="c", **how):
        terminal = open_terminal(server.home, "chat", name, "--url", f"http://127.0.0.1:{server.port}", **{"columns": 100, "rows": 30, **how})
        return terminal.opened().ready()
    return make


def messages(server, name="c"):
    return [i["user_message"] for i in server.client.history(name)["interactions"]]


def menu(chat):
    """The lines of the open menu; None if it is closed."""
    lines = chat.screen
    at = [i for i, line in enumerate(lines) if HINT.match(line)]
    return lines[at[-1] + 1:-1] if at else None


def opens(chat, *beginnings):
    """Waits for a menu whose lines begin so."""
    def is_open():
        chat.quiet(0.02)
        shown = menu(chat)
        return shown is not None and len(shown) >= len(beginnings) and all(line.startswith(b) for line, b in zip(shown, beginnings))
    try:
        eventually(is_open, "the menu is open")
    except AssertionError as failed:
        raise AssertionError(f"{failed}: {beginnings}\n" + "\n".join(chat.screen)) from None
    return chat


def closes(chat):
    eventually(lambda: chat.quiet(0.02) is not None and menu(chat) is None, "the menu is closed")
    return chat


def test_a_slash_shows_the_commands_with_words_and_filters_them(attached, server):
    chat = attached()
    opens(chat.type("/"), "› /chats", "  /new")
    assert all(len(line.split(None, 2)) >= 2 for line in menu(chat)), "each has a line of words"
    assert len(menu(chat)) <= 9, "it does not fill the screen"
    opens(chat.type("mod"), "› /model", "  /mode")
    opens(opens(chat.type(DOWN), "  /model", "› /mode").type(UP), "› /model").type(TAB)
    opens(chat.ready("/model"), "› offline", "  test/scripted  in use")
    assert server.client.get("/chats").json["chats"] == [], "nothing was sent"


def test_enter_runs_the_chosen_command_and_esc_closes_the_menu_only(attached, server, provider):
    provider.plan(text("fine"))
    chat = attached()
    opens(chat.type("/usa"), "› /usage").type("\r").until("nothing was used").ready()
    closes(opens(chat.type("/usa"), "› /usage").type(ESC)).type("\r").until("did you mean /usage?").ready("")
    chat.say("hello").until("fine").ready()
    assert messages(server) == ["hello"]


def test_a_command_typed_in_full_is_not_another_one(attached):
    """/mode is the beginning of /model as well."""
    opens(attached().type("/mode"), "› /mode").type("\r").until("here: ask").ready()


def test_keys_that_come_before_the_menu_choose_nothing(attached, server):
    chat = attached()
    chat.type("/usa\r").until("did you mean /usage?").ready()
    opens(chat.type("/mo"), "› /model").type("re\r").until("there is no such command").ready()


def is_asked(server):
    """Whether a request lies at the server that it has not read."""
    sockets = [line.split() for line in open("/proc/net/tcp")][1:]
    return any(int(local.split(":")[1], 16) == server.port and int(queues.split(":")[1], 16) > 0 for _, local, _, _, queues, *_ in sockets)


def test_enter_that_comes_while_the_menu_is_made_takes_nothing(attached, server, provider):
    provider.answer_with(lambda request: text("fine"))
    chat = attached()
    chat.say("first").until("fine").ready().say("/edit 1 other").until("fine").ready()
    opens(chat.type("/branches"), "› /branches")
    halt(server.process.pid)
    try:
        chat.type(" ")
        eventually(lambda: chat.unread() == 0 and is_asked(server), "the server is asked for the branches")
        chat.type("\r")
        eventually(lambda: chat.unread() == 1, "Enter waits")
    finally:
        os.kill(server.process.pid, signal.SIGCONT)
    opens(chat, "› 1. first", "  2. other")
    assert server.client.history("c")["head"] == "int_002", "no branch was chosen"


def test_a_number_and_a_name_in_full_are_sent_as_typed(attached, server, provider):
    provider.answer_with(lambda request: text("fine"))
    server.client.turn("old", "the old one")
    server.client.turn("new", "3 plans")
    server.client.turn("third", "new things")
    chat = attached()
    chat.say("/chats all").until("3. old").ready()
    for key in "/resume 3":
        chat.type(key).quiet(0.02)
    closes(chat).type("\r").until("chat old").ready()
    opens(chat.type("/resume new"), "› new things").type("\r").until("chat new").ready()


def test_a_guessed_file_is_taken_by_tab_only(attached, files, provider):
    provider.plan(text("fine"))
    chat = attached()
    chat.type("/export src").quiet(0.1)
    assert menu(chat) is None
    opens(chat.type(CLEAR).type("ask @ntt"), "›").type("\r").until("fine").ready()
    assert messages(files) == ["ask @ntt"]


@pytest.mark.parametrize("said", ["/usr/bin/env is missing", "//help me", "mail @ noon", "a/b", "x /mode"])
def test_text_that_only_looks_like_it_opens_no_menu(attached, server, provider, said):
    provider.plan(text("fine"))
    chat = attached()
    for key in said:
        chat.type(key).quiet(0.02)
    assert menu(chat) is None
    chat.type("\r").until("fine").ready()
    assert messages(server) == [said.removeprefix("/") if said.startswith("//") else said]


def test_messages_of_the_history_open_no_menu(attached, provider):
    provider.plan(text("fine"))
    chat = attached()
    chat.say("hello").until("fine").ready().say("/mode").until("here: ask").ready()
    chat.type(UP).ready("/mode").type(UP).ready("hello").type(DOWN).ready("/mode").quiet(0.1)
    assert menu(chat) is None


def test_commands_and_skills_of_the_folder_are_in_the_menu(make_home, provider, open_terminal):
    home = make_home()
    own_configuration(home, provider)
    commands = home.path / ".reprise" / "commands"
    commands.mkdir(parents=True, exist_ok=True)
    (commands / "tidy.md").write_text("---\ndescription: tidies\u200b up\n---\nTidy $ARGUMENTS")
    chat = open_terminal(home, "--chat", "c", columns=100, rows=30).opened().ready()
    chat.say("/instructions").until("use it as instructions").answer("y").until("is used").ready()
    provider.plan(text("fine"))
    opens(chat.type("/tid"), "› /tidy  tidies<U+200B> up").type(TAB).ready("/tidy").type("all\r").until("fine").ready()
    assert provider.requests[-1].last["content"] == "Tidy all"


@pytest.fixture
def files(server):
    for name in ("notes.txt", "src/deep/render_table.py", "src/tables.py", "two words.txt", "build/out.o", "evil\x1b[31m.txt"):
        path = server.home.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"this is {name}")
    (server.home.path / ".gitignore").write_text("build/\n")
    return server


def test_files_are_found_by_their_letters_and_without_ignored_ones(attached, files, provider):
    provider.plan(text("fine"))
    chat = attached()
    opens(chat.type("see @"), "› notes.txt")
    assert not any("out.o" in line or "evil" in line for line in menu(chat)), menu(chat)
    opens(chat.type("rendtab"), "› src/deep/render_table.py").type(CLEAR)
    opens(chat.type("see @tab"), "› src/tables.py", "  src/deep/render_table.py").type("\r")
    closes(chat.ready("see @src/tables.py")).type(" and @two").ready("see @src/tables.py and @two")
    opens(chat, "› two words.txt").type(TAB).ready('see @src/tables.py and @"two words.txt"').type("\r").until("fine").ready()
    told = json.dumps(provider.requests[-1].conversation)
    assert "this is src/tables.py" in told and "this is two words.txt" in told


def test_a_file_is_taken_in_the_middle_of_a_text(attached, files, provider):
    provider.plan(text("fine"))
    chat = attached()
    chat.type("see  please" + "\x1b[D" * 7).ready("see  please")
    opens(chat.type("@note"), "› notes.txt").type("\r").ready("see @notes.txt please").type("\r").until("fine").ready()
    assert messages(files) == ["see @notes.txt please"]


def test_folders_outside_are_completed_name_by_name(attached, files):
    folder = files.home.path
    chat = attached()
    opens(chat.type(f"@{folder}/sr"), "› src/").type(TAB).ready(f"@{folder}/src/")
    opens(chat, "› deep/", "  tables.py")


def test_chats_to_resume_have_title_age_and_folder(attached, server, provider):
    provider.answer_with(lambda request: text("fine"))
    server.client.turn("one", "plan the holiday in Wales")
    server.client.turn("two", "taxes of last year")
    chat = attached()
    opens(chat.say("/resume"), "› taxes of last year").ready("/resume")
    assert all("now" in line for line in menu(chat)), menu(chat)
    opens(chat.type("wales"), "› plan the holiday").type("\r").until("chat one").until("> plan the holiday").ready()
    opens(chat.say("/resume"), "›").type(ESC).quiet(0.2)
    closes(chat).type(CTRL_C).ready()


def test_branches_and_models_are_chosen(attached, server, provider):
    provider.answer_with(lambda request: text("fine"))
    chat = attached()
    chat.say("first").until("fine").ready().say("/edit 1 other").until("fine").ready()
    opens(chat.say("/branches"), "› 1. first", "  2. other").type("\r").until("turn 1 is the last one now").ready()
    opens(chat.say("/model"), "›").type("scri").quiet(0.1)
    chat.type("\r").until("the next messages go to test/scripted").ready()


def test_one_of_several_questions_is_chosen(attached, server, provider):
    provider.answer_with(lambda request: tools(call("write_file", {"path": request.last["content"] + ".txt", "content": "1"}))
                         if request.last["role"] == "user" else text("done"))
    for name in ("one", "two"):
        server.client.start(name, name).until("approval_required")
    chat = attached()
    chat.say("/approvals").shows("1 more approval after this · Up and Down choose", "› write_file one.txt  one", "  write_file two.txt  two")
    chat.type(b"\x1b[B").until("write_file two.txt  (risk").until("allow?").answer("y").quiet(0.1)
    eventually(lambda: [p.name for p in server.home.workspace.iterdir()] == ["two.txt"], "it has run")
    assert len(server.client.get("/approvals").json["approvals"]) == 1


@pytest.mark.parametrize("size", [(60, 24), (24, 10)], ids=str)
def test_a_menu_fits_narrow_and_low_screens_and_leaves_nothing_behind(attached, server, provider, size):
    provider.answer_with(lambda request: text("fine"))
    server.client.turn("one", "語" * 80)
    chat = attached(columns=120)
    chat.say("hello").until("fine").ready().resize(*size).quiet(0.3)
    chat.type("/").quiet(0.2)
    assert menu(chat) is not None and len(chat.screen) <= size[1] and max(map(len, chat.screen)) <= size[0]
    chat.type(CLEAR)
    closes(chat).say("/resume").quiet(0.3)
    assert any("語" in line for line in menu(chat))
    chat.type(CTRL_C)
    closes(chat).ready()
    assert "".join(chat.screen).count("/chats") == 0 and sum(line.startswith("> hello") for line in chat.screen) <= 1


def test_without_colours_the_choice_is_still_marked(attached):
    chat = attached(NO_COLOR="1")
    opens(chat.type("/"), "› /chats")
    assert not re.search(rb"\x1b\[[0-9;]+m", chat.raw)


def test_a_search_ends_with_its_line(attached, server, provider):
    provider.answer_with(lambda request: text("fine"))
    chat = attached()
    chat.say("hello").until("fine").ready()
    opens(chat.type(b"\x12"), "› hello").type(CTRL_C)
    closes(chat).ready().type("hello")
    assert menu(chat.ready("hello")) is None
    chat.type("\r").until("fine").ready()
    assert menu(chat) is None and messages(server) == ["hello", "hello"]
