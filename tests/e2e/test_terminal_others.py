"""The terminal client beside other clients of its chat: whose questions its mode answers, and changes of the chat that it did not make."""
import re
import types

import pytest

from support.client import Client
from support.provider import Gate, call, text, tools
from support.timing import eventually
from test_approvals import set_mode
from test_folder_config import own_configuration

CLEAR, CTRL_D, CTRL_L, SHIFT_TAB = b"\x15", b"\x04", b"\x0c", b"\x1b[Z"


@pytest.fixture
def attached(server, open_terminal):
    def make(name="c", **how):
        return open_terminal(server.home, "chat", name, "--url", f"http://127.0.0.1:{server.port}", **{"columns": 120, "rows": 40, **how}).opened().ready()
    return make


@pytest.fixture
def greek(attached, provider):
    """A terminal at a chat of three turns."""
    chat = attached()
    for said in ("alpha", "beta", "gamma"):
        provider.plan(text("heard " + said))
        chat.say(said).until("heard " + said).ready()
    return chat


def messages(server, name="c"):
    return [i["user_message"] for i in server.client.history(name)["interactions"]]


def files(server):
    return sorted(path.name for path in server.home.workspace.iterdir())


def write(name):
    return call("write_file", {"path": name, "content": "1"}, name)


# --- folders ---------------------------------------------------------------------------------------------------------

def test_a_chat_that_moves_to_another_folder_says_so_at_once(make_home, provider, open_terminal):
    home = make_home()
    own_configuration(home, provider)
    other = home.path.parent / "other"
    other.mkdir()
    (other / "AGENTS.md").write_text("Be kind.")
    provider.plan(text("one"), text("two"))
    chat = open_terminal(home, "--chat", "c", columns=150, rows=40).opened().ready()
    chat.say("hello").until("one").ready()
    client = Client(int(re.search(r"http://127\.0\.0\.1:(\d+)", chat.text)[1]))
    client.request("PATCH", "/chats/c", {"title": "Hello"}).expect(200)
    client.request("PATCH", "/chats/c", {"workspace": str(other)}).expect(200)
    chat.until(f"(another client has moved this chat: it works in {other} now)").until("AGENTS.md is new").ready()
    assert chat.text.count("has moved this chat") == 1 and f" · {other} · " in chat.screen[-2], chat.screen
    chat.say("!echo here: $PWD").until(f"here: {other}").ready()
    client.request("PATCH", "/chats/c", {"workspace": str(home.path)}).expect(200)
    chat.until("it works in ").until(" now)").ready()
    chat.say("!echo back: $PWD").until(f"back: {home.path}").ready()


# --- modes -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["edits", "all"])
def test_a_mode_answers_for_ones_own_turns_only(attached, server, provider, mode):
    provider.plan(tools(write("theirs.txt")), text("denied"), tools(write("mine.txt")), text("done"))
    chat = attached()
    chat.say(f"/mode {mode}").until("until you leave").ready()
    stream = server.client.start("c", "theirs")
    asked = stream.until("approval_required")
    chat.until("> theirs").until("allow?")
    assert files(server) == [] and len(server.client.get("/approvals").json["approvals"]) == 1
    server.client.approve("c", stream.interaction, asked["approval_id"], approved=False).expect(200)
    stream.finish()
    chat.until("(already answered)").until("denied").ready()
    chat.say("mine").until("done").ready()
    assert files(server) == ["mine.txt"] and "allow?" not in chat.text[chat.text.rindex("> mine"):]


def test_a_mode_that_another_client_sets_ends_the_one_chosen_here(attached, server, provider):
    provider.plan(text("fine"), tools(write("a.txt")), text("done"))
    chat = attached()
    chat.say("hello").until("fine").ready().say("/mode all").until("until you leave").ready()
    set_mode(server.client, "c", "ask")
    chat.until("another client has set the mode of this chat, so /mode all holds no longer").ready()
    chat.say("write").until("allow?").answer("y").until("done").ready()


def test_ones_own_changes_of_the_mode_are_nobody_elses(attached, server, provider):
    provider.plan(text("fine"), text("again"))
    chat = attached()
    chat.say("hello").until("fine").ready()
    set_mode(server.client, "c", "auto")
    chat.type(SHIFT_TAB * 3).until("from the next message on, changes").ready()
    chat.say("more").until("again").ready()
    assert "another client" not in chat.text and "mode auto" in chat.screen[-2]


# --- the chat's end --------------------------------------------------------------------------------------------------

def test_it_is_told_when_another_client_moves_the_chats_end(greek, server, provider):
    server.client.request("POST", "/chats/c/undo").expect(200)
    greek.until("(another client has moved this chat: turn 2 is the last one now: beta)").ready()
    server.client.request("POST", "/chats/c/head", {"interaction_id": "int_003"}).expect(200)
    greek.until("(another client has moved this chat: turn 3 is the last one now: gamma)").ready()
    server.client.request("POST", "/chats/c/head", {"interaction_id": "int_001"}).expect(200)
    greek.until("turn 1 is the last one now: alpha)").ready()
    provider.plan(text("fine"))
    greek.say("and now?").until("fine").ready()
    assert messages(server) == ["alpha", "and now?"] and greek.text.count("another client") == 3


def test_it_is_told_when_another_client_goes_on_from_an_earlier_turn(greek, server, provider):
    for number, said, told in ((3, "GAMMA", "this turn follows turn 2: beta)"), (1, "ALPHA", "this turn is its first)")):
        provider.plan(text("heard " + said))
        server.client.request("POST", f"/chats/c/interactions/int_00{number}/edit", {"new_user_message": said, "stream": False}).expect(200)
        greek.until("(another client has moved this chat: " + told).until("> " + said).until("heard " + said).ready()
    provider.plan(text("fine"))
    greek.say("more").until("fine").ready()
    assert messages(server) == ["ALPHA", "more"] and greek.text.count("another client") == 2


def test_ones_own_moves_and_what_others_add_are_no_moves_of_others(greek, server, provider):
    greek.say("/undo").until("turn 2 is the last one now").ready("gamma").type(CLEAR).say("/redo").until("turn 3 is the last one now").ready()
    provider.plan(text("heard GAMMA"), text("heard it again"), text("theirs, heard"), text("end"))
    greek.say("/edit 3 GAMMA").until("heard GAMMA").ready().say("/regenerate").until("heard it again").ready()
    greek.say("/branches 1").until("is the last one now").ready()
    server.client.request("PUT", "/chats/c/tasks", {"tasks": [{"title": "one"}]})
    server.client.turn("c", "theirs")
    greek.until("theirs, heard").ready().say("more").until("end").ready()
    assert "another client" not in greek.text


# --- the whole chat --------------------------------------------------------------------------------------------------

def test_a_chat_that_another_client_deletes_is_left_with_the_typed_text(greek, server, provider):
    greek.type("what now")
    server.client.request("DELETE", "/chats/c").expect(200)
    greek.until("another client has deleted this chat: `reprise restore c` brings it back").until("chat chat_").ready("what now")
    provider.plan(text("hello"))
    greek.type("\r").until("hello").ready()
    assert [m["content"] for m in provider.requests[-1].conversation] == ["what now"]
    server.client.get("/chats/c").expect(404)
    entry, = server.client.get("/trash").json["entries"]
    server.client.request("POST", f"/trash/{entry['id']}/restore").expect(200)
    greek.say("/resume c").until("> gamma").ready()
    assert messages(server) == ["alpha", "beta", "gamma"]


def test_a_chat_that_is_deleted_while_it_runs_is_left_after_its_run(attached, server, provider):
    gate = Gate()
    provider.plan(text("half", gate))
    chat = attached()
    chat.say("go").until("half").say("later").until("queued: later")
    server.client.request("DELETE", "/chats/c").expect(200)
    chat.until("has deleted this chat").until("chat chat_").ready("later")


def test_a_chat_that_cannot_come_back_names_the_one_in_the_way(server, provider):
    provider.plan(text("one"), text("two"))
    for said in ("first", "second"):
        server.client.turn("c", said)
        if said == "first":
            server.client.request("DELETE", "/chats/c").expect(200)
    entry, = server.client.get("/trash").json["entries"]
    refused = server.client.request("POST", f"/trash/{entry['id']}/restore").error(409)
    assert "a chat c already" in str(refused) and "fork" in str(refused)


def test_a_chat_of_another_folder_has_its_branch_and_runs_commands_there(make_home, provider, open_terminal, tmp_path):
    provider.plan(text("fine"))
    home = make_home()
    own_configuration(home, provider)
    other = tmp_path / "other"
    other.mkdir()
    for folder, branch in ((home.path, "feature-one"), (other, "release-two")):
        (folder / ".git").mkdir()
        (folder / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
    first = open_terminal(home, "--chat", "c", columns=120, rows=40).opened().ready().say("hello").until("fine").ready()
    there = types.SimpleNamespace(path=other, environment=home.environment)
    chat = open_terminal(there, columns=120, rows=40).opened().ready()
    assert "(release-two)" in chat.screen[-2]
    chat.say("/resume c").until("> hello").ready()
    assert "(feature-one)" in chat.screen[-2], chat.screen
    chat.say("!touch made-here").until("made-here").ready()
    eventually(lambda: (home.path / "made-here").exists(), "the command has run where the chat works")
    assert not (other / "made-here").exists() and "(feature-one)" in chat.screen[-2]
    chat.say("/new").ready()
    assert "(release-two)" in chat.screen[-2]
    for each in (chat, first):
        each.type(CTRL_D).end()


# --- commands --------------------------------------------------------------------------------------------------------

def test_a_command_behind_the_text_of_an_undone_turn_is_a_command(greek, server, provider):
    greek.say("/undo").until("turn 2 is the last one now").ready("gamma").say("/undo").until("turn 1 is the last one now").ready("beta")
    greek.say(" /usage").until("all branches").ready("beta").say("/redo").until("turn 2 is the last one now").ready().say("/redo").until("turn 3").ready()
    assert messages(server) == ["alpha", "beta", "gamma"] and len(provider.requests) == 3
    provider.plan(text("heard"))
    greek.say("/undo").until("turn 2").ready("gamma").type(" and delta\r").until("heard").ready()
    assert messages(server) == ["alpha", "beta", "gamma and delta"]


def test_an_undone_message_that_looks_like_a_command_is_a_message_again(attached, server, provider):
    provider.plan(text("one"), text("two"), text("three"))
    chat = attached()
    chat.say("hello").until("one").ready().say("//undo is a word").until("two").ready()
    chat.say("/undo").until("turn 1").ready("//undo is a word").type("\r").until("three").ready()
    assert messages(server) == ["hello", "/undo is a word"]


@pytest.mark.parametrize("command", ["/undo", "/redo", "/branches 1"])
def test_nothing_moves_while_a_turn_runs_and_it_says_what_to_do(attached, provider, command):
    gate = Gate()
    provider.plan(text("first"), text("half", gate, " and whole"))
    chat = attached()
    chat.say("one").until("first").ready().say("two").until("half")
    chat.say(command).until("this chat is running: wait, or cancel it by Ctrl-C")
    gate.release()
    chat.until("and whole").ready()


def test_what_a_search_has_found_stays_on_the_screen(greek):
    greek.say("/search beta").until("(/resume CHAT goes to one)").ready()
    greek.type(CTRL_L).resize(100, 30)
    eventually(lambda: greek.quiet(0.05) is not None and len(greek.screen[0]) <= 100, "it is drawn again")
    greek.ready()
    assert {"c/int_002  user  beta", "c/int_002  answer  heard beta"} <= set(greek.screen), greek.screen
    greek.say("/search no such words").until("no chat has this text").ready()
