"""What the terminal client shows of a run: results, thoughts, differences, colours, failures; and the results of its commands."""
import re

import pytest

from support.provider import call, failure, text, tools
from support.server import reprise
from support.terminal import Terminal
from support.timing import eventually

CTRL_C, CTRL_O, CLEAR = b"\x03", b"\x0f", b"\x15"
SGR = re.compile(rb"\x1b\[([0-9;]*)m")


@pytest.fixture
def open_chat(open_terminal):
    def make(at, name="c", columns=100, rows=60, **environment):
        return open_terminal(at.home, "chat", name, "--url", f"http://127.0.0.1:{at.port}", columns=columns, rows=rows, **environment).opened()
    return make


@pytest.fixture
def allowing(make_server, provider):
    """A server that approves all calls."""
    return make_server(provider, config={"approval_mode": "approve_all"})


def shell(command, call_id="s1"):
    return tools(call("run_shell", {"command": command}, call_id))


def result_lines(screen, label):
    """The lines below a call, up to the answer."""
    at = max(i for i, line in enumerate(screen) if line.startswith("● " + label))
    rest = screen[at + 1:]
    return rest[:next(i for i, line in enumerate(rest) if not line.startswith("  "))]


# --- results, thoughts ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("lines", "hidden"), [(1, 0), (8, 0), (9, 0), (10, 2), (200, 192)])
def test_of_a_long_result_both_ends_are_shown_and_ctrl_o_shows_the_rest(open_chat, allowing, provider, lines, hidden):
    provider.plan(shell(f"for i in $(seq {lines}); do echo row $i of many; done"), text("fine"))
    chat = open_chat(allowing)
    chat.say("go").until("fine").ready()
    shown = result_lines(chat.screen, "run_shell")
    rows = [f"  row {i} of many" for i in range(1, lines + 1)]
    more = [] if not hidden else [f"  ... {hidden:,} more lines (Ctrl-O shows them)"]
    assert shown == (rows if not hidden else rows[:3] + more + rows[-5:])
    if hidden:
        chat.type(CTRL_O).until("row 4 of many").until(f"row {lines} of many").ready()


def test_the_failing_line_of_a_test_run_is_seen(open_chat, allowing, provider):
    provider.plan(shell("for i in $(seq 50); do echo test_$i ... ok; done; echo FAILED failures=1; exit 1"), text("it fails"))
    chat = open_chat(allowing)
    chat.say("go").until("it fails").ready()
    assert any("FAILED failures=1" in line for line in chat.screen), chat.screen


def test_ctrl_o_opens_the_last_and_then_all_and_the_typed_text_stays(open_chat, allowing, provider):
    thought = "first idea " * 30 + "the deep end"
    provider.plan(tools(call("run_shell", {"command": "seq 300 399"}), think=thought), text("fine"))
    chat = open_chat(allowing, rows=400)
    chat.say("go").until("fine").ready()
    assert "the deep end" not in chat.text.replace("\n", " ")[chat.text.index("fine"):]
    chat.type("half typed").type(CTRL_O).until("run_shell seq 300 399:").until("  350").until("> half typed")
    assert "thought:" not in chat.text[chat.text.index("run_shell seq 300 399:"):]
    chat.type(CTRL_O).until("thought:").until("the deep end").until("run_shell seq 300 399:").until("  350").until("> half typed")
    chat.type(CLEAR).ready()


@pytest.mark.parametrize("keys", [CTRL_O, b"\x1b[111;5u", b"\x1b[27;5;111~"], ids=["plain", "kitty", "xterm"])
def test_ctrl_o_opens_what_is_folded_while_a_question_is_open(open_chat, server, provider, keys):
    provider.plan(shell("seq 300 399"), tools(call("write_file", {"path": "f.txt", "content": "1"}, "w1")), text("done"))
    chat = open_chat(server)
    chat.say("go").until("allow?").answer("y").until("write_file f.txt").until("allow?").ready_for("more:")
    chat.type(keys).until("run_shell seq 300 399:").until("  350").until("  399").ready_for("more:")
    assert sum(line.startswith("allow?") for line in chat.screen) == 1 and not list(server.home.workspace.iterdir())
    chat.answer("y").until("done").ready()
    assert (server.home.workspace / "f.txt").read_text() == "1"


def test_with_nothing_folded_ctrl_o_says_so(open_chat, server):
    open_chat(server).ready().type(CTRL_O).until("nothing is folded").ready()


def test_a_thought_of_no_time_has_none(open_chat, server, provider):
    provider.plan(text("fine"), tools(call("update_plan", {"steps": ["a"]}), think="hm"), text("end"))
    chat = open_chat(server)
    chat.say("go").until("fine").ready().say("on").until("thought: hm").until("end").ready()
    assert "for 0 s" not in chat.text


def test_an_empty_answer_is_told(open_chat, server, provider):
    provider.plan(text("  "))
    open_chat(server).say("go").until("(an empty answer)").ready()


# --- differences, noise -----------------------------------------------------------------------------------------------

ALLOWED_BY = {
    "mode of the server": ({"approval_mode": "approve_all"}, None),
    "mode of the client": ({}, "/mode all"),
    "answer": ({}, None),
    "grant": ({}, None),
}


@pytest.mark.parametrize("by", ALLOWED_BY)
@pytest.mark.parametrize("name", ["write_file", "edit_file", "run_shell"])
def test_each_call_that_changes_files_shows_the_difference_whatever_allowed_it(open_chat, make_server, provider, by, name):
    config, said = ALLOWED_BY[by]
    server = make_server(provider, config=config)
    (server.home.workspace / "a.txt").write_text("one\ntwo\n")
    calls = {"write_file": {"path": "a.txt", "content": "one\n2\n"}, "edit_file": {"path": "a.txt", "old_text": "two", "new_text": "2"},
             "run_shell": {"command": "sed -i s/two/2/ a.txt"}}
    provider.plan(tools(call(name, calls[name])), text("done"))
    chat = open_chat(server)
    if said:
        chat.say(said).until("everything").ready()
    chat.say("go")
    if by in ("answer", "grant"):
        chat.until("allow?").answer("1" if by == "grant" else "y")
    chat.until("done").ready()
    if by == "grant":
        (server.home.workspace / "a.txt").write_text("one\ntwo\n")
        provider.plan(tools(call(name, calls[name], "again")), text("once more"))
        chat.say("again").until("once more").ready()
    screen = chat.screen
    last = max(i for i, line in enumerate(screen) if line.startswith("> "  + ("again" if by == "grant" else "go")))
    assert sum(line.strip() == "2 -two" for line in screen[last:]) == 1 and sum(line.strip() == "2 +2" for line in screen[last:]) == 1, screen


@pytest.mark.parametrize("said", ["/mode all", None], ids=["mode", "grant"])
def test_an_allowed_command_is_one_line(open_chat, server, provider, said):
    chat = open_chat(server)
    if said:
        chat.say(said).until("everything").ready()
    else:
        provider.plan(shell("echo first"), text("one"))
        chat.say("run").until("allow?").answer("2").until("one").ready()
    provider.plan(shell("echo unmistakable", "s2"), text("two"))
    chat.say("go").until("two").ready()
    screen = chat.screen
    about = [line for line in screen[max(i for i, line in enumerate(screen) if line == "> go"):] if "echo unmistakable" in line]
    assert len(about) == 1 and about[0].startswith("● run_shell echo unmistakable"), about


def test_more_lines_of_a_difference_are_counted(open_chat, allowing, provider):
    provider.plan(tools(call("write_file", {"path": "long.txt", "content": "".join(f"line {n}\n" for n in range(300))})), text("done"))
    chat = open_chat(allowing, rows=400)
    chat.say("go").until("+line 0").until("more lines (Ctrl-O shows them)").until("+line 299").until("done").ready()
    chat.type(CTRL_O).until("changes by write_file long.txt:").until("+line 150").ready()


# --- what commands print ----------------------------------------------------------------------------------------------

PRINTED = {
    "colour": (r"\033[31mred\033[0m plain", "red plain"),
    "progress": (r"10%%\r50%%\r100%%", "100%"),
    "erased": (r"working...\r\033[Kdone", "done"),
    "cursor": (r"a\033[2Ab\033[10;10Hc", "abc"),
    "title": (r"x\033]0;owned\007y", "x<U+001B>]0;owned<U+0007>y"),
    "reversed": (r"a\342\200\256b", "a<U+202E>b"),
    "bell": (r"a\007b", "a<U+0007>b"),
    "256 colours": (r"\033[38;5;196mred\033[0m", "red"),
    "concealed": (r"\033[8msecret\033[0m", "secret"),
    "black on black": (r"\033[30;40mseen\033[0m", "seen"),
    "windows": (r"one\r", "one"),
}


@pytest.mark.parametrize("printed", PRINTED)
def test_what_a_command_prints_is_drawn_and_steers_nothing(open_chat, allowing, provider, printed):
    bytes_, seen = PRINTED[printed]
    (allowing.home.workspace / "out.sh").write_text(f"printf '{bytes_}\\n'\n")
    provider.plan(shell("sh out.sh"), text("fine"))
    chat = open_chat(allowing)
    chat.say("go").until("fine").ready()
    assert result_lines(chat.screen, "run_shell") == ["  " + seen]
    codes = {int(code or 0) for sequence in SGR.findall(chat.raw) for code in sequence.split(b";")}
    assert codes <= {0, 1, 2, 3, 4, 9, *range(31, 37), *range(91, 97)}, codes


def test_many_blank_lines_are_counted(open_chat, server, provider):
    """In results, questions and differences; the text after them stays visible."""
    provider.plan(shell("echo top; for i in $(seq 400); do echo; done; echo bottom"),
                  tools(call("write_file", {"path": "a.txt", "content": "top\n" + "\n" * 400 + "bottom\n"}, "w1")), text("done"))
    chat = open_chat(server)
    chat.say("go").until("allow?").answer("y").until("<400 blank lines>").until("bottom")
    chat.until("+<400 blank lines>").until("+bottom").until("allow?").answer("y").until("done").ready()
    command = "echo a" + "\n" * 400 + "rm -rf hidden"
    provider.plan(shell(command, "s2"), text("no"))
    chat.say("again").until("<399 blank lines>").until("rm -rf hidden").until("allow?").answer_line("n not this").until("no").ready()


INVISIBLE = [0xad, 0x34f, 0x61c, 0x115f, 0x180e, 0x200b, 0x200c, 0x200d, 0x200e, 0x202e, 0x2060, 0x2063, 0x2066, 0x2800, 0x3164, 0xfe0f, 0xfeff, 0xffa0,
             0xfffc, 0x1d159, 0x1d173, 0xe0041, 0xe0101]


def test_all_that_cannot_be_seen_is_spelled_out_in_a_question(open_chat, server, provider):
    provider.plan(shell("echo " + "".join(f"x{chr(code)}y " for code in INVISIBLE)), text("no"))
    chat = open_chat(server, columns=400)
    chat.say("go").until("allow?")
    assert all(f"x<U+{code:04X}>y" in chat.text for code in INVISIBLE), chat.text
    chat.answer_line("n not this").until("no").ready()


# --- failures ---------------------------------------------------------------------------------------------------------

FAILURES = {
    "key": (failure(401, "bad key"), "\"api_key\" of provider test in the configuration", "/continue tries again"),
    "context": (failure(400, "too long", code="context_length_exceeded"), "/compact MESSAGE", "/undo takes the message back"),
    "model": (failure(404, "gone"), "/model lists the models", "/continue tries again"),
    "request": (failure(400, "no such thing"), "/continue tries again", ""),
    "quota": (failure(402, "pay"), "/continue tries again", ""),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failed_turn_says_what_to_do_next(open_chat, server, provider, kind):
    answer, *words = FAILURES[kind]
    provider.plan(answer, text("now it goes"))
    chat = open_chat(server, columns=200)
    chat.say("go").until("error: ")
    for each in words:
        chat.until(each)
    chat.ready()
    if "/continue tries again" in words:
        chat.say("/continue").until("now it goes").ready()


def at(server):
    return "--url", f"http://127.0.0.1:{server.port}"


def test_a_failed_single_question_says_what_to_do_next(server, provider):
    provider.plan(failure(401, "bad key"))
    status, said, told = reprise(server.home, "-p", "hi", "--chat", "x", *at(server))
    assert status == 1 and said == "" and "\"api_key\" of provider test" in told and "reprise --chat x" in told, told


def test_too_much_on_standard_input_says_the_limit_and_what_to_do(server):
    status, _, told = reprise(server.home, "-p", "sum this up", *at(server), stdin=b"x" * 4_000_000)
    assert status == 1 and "4,000," in told and "1 MiB" in told and "write it to a file in the workspace" in told, told


# --- undo, redo -------------------------------------------------------------------------------------------------------

def test_undo_brings_the_message_back_and_redo_goes_past_the_first_turn(open_chat, server, provider):
    provider.plan(text("one"), text("two"), text("three"))
    chat = open_chat(server)
    for said, answer in (("first", "one"), ("second", "two"), ("third", "three")):
        chat.say(said).until(answer).ready()
    for said in ("third", "second", "first"):
        chat.type(CLEAR).say("/undo").until("/redo").ready(said)
    chat.type(CLEAR).say("/redo").until("chat c").ready().say("/redo").until("turn 2 is the last one now").ready().say("/redo").until("turn 3 is the last one now").ready()
    assert server.client.history("c")["head"] == "int_003"
    chat.say("/redo").until("nothing to redo").ready()


def test_undo_with_files_lists_them_before_and_after(open_chat, allowing, provider):
    provider.plan(text("hello"), tools(call("write_file", {"path": "a.txt", "content": "1"}, "w1"), call("write_file", {"path": "b.txt", "content": "2"}, "w2")),
                  text("done"))
    chat = open_chat(allowing)
    chat.say("hi").until("hello").ready().say("write").until("done").ready()
    chat.say("/undo files").until("(to put back: a.txt, deleted)").until("(to put back: b.txt, deleted)").until("turn 1 is the last one now").until("put back: a.txt, b.txt").ready("write")
    assert not list(allowing.home.workspace.iterdir())


# --- names ------------------------------------------------------------------------------------------------------------

def test_a_chat_is_found_by_the_beginning_of_its_id_and_by_its_title(open_chat, server, provider):
    for name, title in (("chat_aaa111", "Holiday plans"), ("chat_aab222", "Tax return"), ("notes", "Shopping")):
        provider.plan(text("the answer in " + title))
        server.client.turn(name, "hello")
        server.client.request("PATCH", f"/chats/{name}", {"title": title}).expect(200)
    chat = open_chat(server)
    chat.say("/resume chat_aaa").until("chat chat_aaa111").until("Holiday plans").ready()
    chat.say("/resume tax return").until("chat chat_aab222").ready().say("/resume shop").until("chat notes").ready()
    chat.say("/resume chat_aa").until("means any of 2 chats").until("chat_aab222 \"Tax return\"").until("chat_aaa111 \"Holiday plans\"").ready().say("/resume nothing").until("there is no chat nothing").ready()
    folder = "--data-dir", str(server.home.data)
    for command in (["show"], ["cat"], ["ls"], ["search", "answer", "--chat"], ["replay"], ["export"]):
        name = ["chat_aaa/int_001"] if command[0] in ("show", "cat") else ["chat_aaa"]
        status, said, told = reprise(server.home, *command, *name, *folder)
        assert status == 0, (command, said, told)
    status, _, told = reprise(server.home, "show", "chat_aa", *folder)
    assert status == 1 and '"chat_aa" means any of 2 chats in ' in told and 'chat_aaa111 "Holiday plans"' in told, told
    provider.plan(text("there"))
    assert reprise(server.home, "--chat", "chat_aaa", "-p", "again", *at(server))[0] == 0
    assert [t["user_message"] for t in server.client.history("chat_aaa111")["interactions"]] == ["hello", "again"]
    status, _, told = reprise(server.home, "--chat", "chat_aa", "-p", "which?", *at(server))
    assert status == 1 and '"chat_aa" means any of 2 chats in http' in told, told
    provider.plan(text("new"))
    assert reprise(server.home, "--chat", "note", "-p", "another", *at(server))[0] == 0
    assert len(server.client.history("note")["interactions"]) == 1, "a full name of one's own starts a new chat"


def test_a_model_is_found_by_a_part_of_its_name(open_chat, make_server, provider):
    server = make_server(provider, config={"models": {"test/other-large": {}, "test/other-small": {}}})
    chat = open_chat(server)
    chat.say("/model Small").until("the next messages go to test/other-small").ready()
    chat.say("/model other").until("means any of 2 models: test/other-large, test/other-small").ready().say("/model nothing").until("no model is called nothing").ready()


# --- grants -----------------------------------------------------------------------------------------------------------

def test_grants_are_listed_and_taken_back(open_chat, server, provider):
    chat = open_chat(server)
    chat.say("/grants").until("no call is allowed without asking").ready()
    for command, answer in (("echo one", "2"), ("pwd", "1 always")):
        provider.plan(shell(command, command.replace(" ", "")), text("done " + command))
        chat.say("go").until("allow?").answer_line(answer).until("done " + command).ready()
    chat.say("/grants").until("1. allowed in this chat: run_shell echo *").until("2. allowed in every chat: run_shell pwd, used 0 times, until 2").until("revoke N").ready()
    chat.say("/grants revoke 7").until("there is no grant 7").ready().say("/grants revoke 2").until("taken back").ready()
    assert server.client.get("/grants").json["grants"] == [] and len(server.client.get("/chats/c/grants").json["grants"]) == 1
    chat.say("/grants revoke 1").until("taken back").ready()
    provider.plan(shell("echo two", "again"), text("no"))
    chat.say("go").until("allow?").answer_line("n not this").until("no").ready()


# --- arguments that are edited ------------------------------------------------------------------------------------------

def test_edited_arguments_are_lines_and_are_shown_again_before_they_run(open_chat, server, provider):
    (server.home.workspace / "a.txt").write_text("old\n")
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "one\ntwo\nthree\n"}, "w1")), text("done"))
    chat = open_chat(server)
    chat.say("write").until("allow?").answer("e").until('"content": <<END').until("three")
    assert "\\n" not in chat.text[chat.text.index("arguments: "):]
    chat.type(CLEAR).paste('"path": "a.txt"\n"content": <<END\none\n2\nEND').type("\r")
    chat.until("with the arguments as you have changed them").until("-old").until("+one").until("+2").until("allow?")
    assert (server.home.workspace / "a.txt").read_text() == "old\n", "nothing runs before it is approved"
    chat.answer("y").until("done").ready()
    assert (server.home.workspace / "a.txt").read_text() == "one\n2"


def test_edited_arguments_that_are_rejected_do_not_run(open_chat, server, provider):
    provider.plan(shell("echo one"), text("fine"))
    chat = open_chat(server)
    chat.say("run").until("allow?").answer("e").until("arguments: {").type(CLEAR).say('{"command": "echo two > f"}')
    chat.until("as you have changed them").until("command: echo two > f").until("allow?").answer_line("n not this").until("fine").ready()
    assert not list(server.home.workspace.iterdir())


def test_patterns_of_the_first_arguments_are_not_explained_for_edited_ones(open_chat, server, provider):
    provider.plan(shell("echo one"), text("fine"))
    chat = open_chat(server)
    chat.say("run").until("allow?").answer("?").until("Runs").until("allow?").answer("e").until("arguments: {").type(CLEAR).say('{"command": "pwd"}')
    chat.until("as you have changed them").until("allow?")
    edited = len(chat.text)
    chat.answer("?").until("A line answers too").answer("y").until("fine").ready()
    assert "Runs" not in chat.text[edited:]


# --- modes, reading beside a server --------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["ask", "read_only", "approve_all", "deny_all"])
def test_a_client_says_the_mode_of_its_server(tmp_path, make_home, mode):
    home = make_home()
    chat = Terminal(home, "--approval-mode", mode, "--data-dir", str(home.data), columns=200)
    try:
        chat.opened()
        assert f" · mode {mode}: " in chat.text if mode != "ask" else " · mode ask · " in chat.text, chat.text
        chat.ready().say("/quit")
        assert chat.end() == 0
    finally:
        chat.kill()


def test_commands_that_read_say_nothing_of_a_servers_index(server, provider):
    """The server writes an index in its own time, so commands that read must not complain that it is missing."""
    folder = "--data-dir", str(server.home.data)
    provider.plan(text("needle"))
    server.client.turn("c", "hello")
    index, turn = server.home.data / "c" / "chat.json", server.home.data / "c" / "interactions" / "int_001.json"
    eventually(lambda: index.exists() and index.stat().st_mtime_ns > turn.stat().st_mtime_ns, "the server has written its index after the turn")
    index.unlink()
    for command in (["ls"], ["ls", "c"], ["show", "c"], ["search", "needle"], ["cat", "c"], ["export", "c"], ["verify"]):
        status, said, told = reprise(server.home, *command, *folder)
        assert "level=" not in told + said, (command, told)
        if command[0] != "verify":
            assert status == 0 and not index.exists(), (command, told)


def test_lists_that_are_empty_say_so(make_home):
    home = make_home()
    for command in (["trust", "--list"], ["mcp", "list"], ["users", "token", "list"]):
        status, said, told = reprise(home, *command)
        assert status == 0 and said == "" and told.startswith("reprise: "), (command, told)
