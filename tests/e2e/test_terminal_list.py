"""Several questions at once in the terminal client: one list, of which any is answered first."""
import re

import pytest

from support.provider import call, text, tools
from support.terminal import QUIET
from support.timing import eventually

UP, DOWN, CLEAR = b"\x1b[A", b"\x1b[B", b"\x15"


@pytest.fixture
def attached(server, open_terminal):
    def make(name="c", **how):
        return open_terminal(server.home, "chat", name, "--url", f"http://127.0.0.1:{server.port}", **{"columns": 120, "rows": 40, **how}).opened()
    return make


def waiting(server):
    return server.client.get("/approvals").json["approvals"]


def files(server):
    return sorted(path.name for path in server.home.workspace.iterdir())


def write(name):
    return call("write_file", {"path": name, "content": "1"}, name)


def asks(chat, name):
    """Waits until this call is the one that is asked, in full below the list."""
    chat.shows(f"write_file {name}  (risk: medium)")
    eventually(lambda: chat.quiet(0.02) is not None and chat.screen[-1].startswith("allow?"), "it is asked")
    return chat


def listed(chat):
    """The lines of the list; the asked one begins with a mark."""
    screen = chat.screen
    at = next(i for i, line in enumerate(screen) if line.endswith(" · Up and Down choose"))
    return [line for line in screen[at:at + 10] if line.startswith(("› ", "  ")) and not re.match(r" +\d", line)]


# --- the questions of a run ------------------------------------------------------------------------------------------

def test_any_of_several_questions_is_answered_first(attached, server, provider):
    provider.plan(tools(write("a.txt"), write("b.txt"), write("c.txt")), text("done"))
    chat = attached().ready()
    asks(chat.say("write"), "a.txt").shows("2 more approvals after this · Up and Down choose", "› write_file a.txt", "  write_file b.txt", "  write_file c.txt")
    asks(chat.type(DOWN), "b.txt").shows("  write_file a.txt", "› write_file b.txt", "  write_file c.txt")
    chat.answer("y").shows("1 more approval after this · Up and Down choose", "  write_file a.txt", "› write_file c.txt")
    eventually(lambda: [each["tool_input"].count("b.txt") for each in waiting(server)] == [0, 0], "b.txt alone is answered")
    asks(chat.type(UP), "a.txt").answer("y").until("write_file c.txt  (risk").until("allow?").answer("y").until("done").ready()
    assert files(server) == ["a.txt", "b.txt", "c.txt"]


def test_arrows_count_however_quickly_they_come_and_answers_only_after_a_look(attached, server, provider):
    provider.plan(tools(write("a.txt"), write("b.txt"), write("c.txt")), text("done"))
    chat = attached().ready()
    asks(chat.say("write"), "a.txt").type(DOWN + DOWN)
    asks(chat, "c.txt").type(DOWN + b"y").ready_for("y")
    chat.quiet(QUIET)
    assert len(waiting(server)) == 3 and files(server) == []
    chat.type(DOWN + b"\r").quiet(0.2)  # a line that holds text is edited
    assert listed(chat)[0] == "› write_file a.txt" and len(waiting(server)) == 3


def test_one_key_answers_all_of_one_kind(attached, server, provider):
    provider.plan(tools(write("a.txt"), call("run_shell", {"command": "touch shell.txt"}, "s"), write("b.txt")), text("done"))
    chat = attached().ready()
    chat.say("work").until("[Y]es or [N]o to all 2 write_file").answer("Y").until("Y once more").until("write_file b.txt").until("to all 2").answer("Y")
    chat.until("run_shell  (risk").until("allow?")
    eventually(lambda: [each["tool_name"] for each in waiting(server)] == ["run_shell"], "the command is still asked about")
    assert not any(" · Up and Down choose" in line for line in chat.screen[-8:]) and "shell.txt" not in files(server)
    chat.answer("y").until("done").ready()
    assert files(server) == ["a.txt", "b.txt", "shell.txt"]


def test_what_is_answered_elsewhere_leaves_the_list(attached, server, provider):
    provider.plan(tools(write("a.txt"), write("b.txt"), write("c.txt")), text("done"))
    chat = attached().ready()
    asks(chat.say("write"), "a.txt")
    second = next(each for each in waiting(server) if "b.txt" in each["tool_input"])
    server.client.approve("c", "int_001", second["approval_id"]).expect(200)
    chat.shows("1 more approval after this · Up and Down choose", "› write_file a.txt", "  write_file c.txt")
    chat.answer("n").until("(cancelled)").ready()


def test_edited_arguments_are_still_there_when_one_comes_back(attached, server, provider):
    provider.plan(tools(write("a.txt"), write("b.txt")), text("done"))
    chat = attached().ready()
    asks(chat.say("write"), "a.txt").answer("e").until("arguments: ")
    chat.type(CLEAR + b'{"path": "other.txt", "content": "2"}\r').until("as you have changed them").until("allow?")
    asks(chat.type(DOWN), "b.txt")
    chat.type(DOWN).until("as you have changed them").until("other.txt").until("allow?").answer("y").until("b.txt  (risk").until("allow?").answer("y").until("done").ready()
    assert files(server) == ["b.txt", "other.txt"]


@pytest.mark.parametrize("size", [(60, 24), (30, 12)], ids=str)
def test_a_long_list_leaves_room_for_its_question(attached, server, provider, size):
    provider.plan(tools(*[write(f"file{n:02}.txt") for n in range(20)]), text("done"))
    chat = attached(columns=size[0], rows=size[1]).ready()
    chat.say("write").until("allow?").quiet(0.3)
    for _ in range(14):
        chat.type(DOWN)
    chat.shows("› write_file file14.txt")
    screen = chat.screen
    assert max(map(len, screen)) <= size[0] and any(line.startswith("write_file file14.txt") for line in screen) and screen[-1].startswith("allow?"), screen


def test_a_terminal_that_can_only_print_goes_on_by_a_letter(attached, server, provider):
    provider.plan(tools(write("a.txt"), write("b.txt")), text("done"))
    chat = attached(TERM="dumb")
    chat.say("write").until("1 more approval after this (l goes on to it)").until("write_file a.txt").until("[l]ater: ").answer("l")
    chat.until("write_file b.txt").until("[l]ater: ").answer("y").until("write_file a.txt").until("allow?").answer("y").until("done")
    assert files(server) == ["a.txt", "b.txt"] and b"\x1b" not in chat.raw


# --- those of every chat ---------------------------------------------------------------------------------------------

def test_what_waits_in_every_chat_is_one_list(attached, server, provider):
    provider.answer_with(lambda request: tools(write(request.last["content"] + ".txt")) if request.last["role"] == "user" else text("done"))
    for name in ("one", "two", "three"):
        server.client.start(name, name).until("approval_required")
    chat = attached().ready()
    chat.say("/approvals").until("write_file one.txt  (risk").until("allow?")
    assert {tuple(line[2:].split()) for line in listed(chat)} == {("write_file", f"{name}.txt", name) for name in ("one", "two", "three")}
    while "› write_file two.txt" not in str(listed(chat)):
        chat.type(DOWN).until("allow?")
    chat.answer("y")
    eventually(lambda: files(server) == ["two.txt"], "that one has run")
    chat.until("1 more approval").until("to all 2").answer("Y").until("Y once more").until("to all 2").answer("Y").ready()
    eventually(lambda: files(server) == ["one.txt", "three.txt", "two.txt"], "the others have run")
    chat.say("/approvals").until("nothing waits")


def test_questions_of_tools_are_in_the_same_list(attached, server, provider):
    ask = call("ask_human", {"question": "Which colour?", "options": ["red", "green"]}, "q")
    provider.answer_with(lambda request: text("done") if request.last["role"] != "user" else tools(ask if request.last["content"] == "ask" else write("a.txt")))
    server.client.start("write", "write").until("approval_required")
    server.client.start("ask", "ask").until("input_required")
    chat = attached().ready()
    chat.say("/approvals").shows("1 more question after this · Up and Down choose")
    if "› Which colour?" not in str(listed(chat)):
        chat.type(DOWN)
    chat.shows("Which colour?", "  1. red", "  2. green")
    chat.answer("2")
    asks(chat, "a.txt").answer("y").ready()
    eventually(lambda: files(server) == ["a.txt"], "it has run")
    assert any("green" in str(request.conversation) for request in provider.requests)
