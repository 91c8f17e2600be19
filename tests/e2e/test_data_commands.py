"""Commands that manage chats and answer approvals: through a running server, and directly in the data folder."""
import fcntl
import json
import os
import re
import signal
import socket
import subprocess

import pytest
from support import schemas
from support.provider import Reply, call, text, tools
from support.server import BINARY
from support.timing import SOON, at_once

ENTRY = r"[A-Za-z0-9_-]+\.\d{8}T\d{6}\.\d{3}Z\.[0-9a-f]{8}"
LOCAL_TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


class World:
    """A data folder with two chats, and commands that work on it while its server runs or after it has ended."""

    def __init__(self, make_server, home, provider, plain, served):
        self.make_server, self.home, self.provider, self.plain = make_server, home, provider, plain
        self.server = None
        self.serve()
        for chat, turns in (("alpha", 2), ("beta", 1)):
            for number in range(1, turns + 1):
                self.turn(chat, f"question {number} of {chat}", f"answer {number} of {chat}")
        if not served:
            self.server.close()
        self.served = served

    def serve(self):
        """The folder's server: the running one, or else a new one."""
        if self.server is None or self.server.closed or self.server.stopped:
            self.server = self.make_server(self.provider, home=self.home, plain=self.plain)
        return self.server

    def turn(self, chat, message, answer="ok"):
        self.provider.plan(text(answer))
        return self.server.client.turn(chat, message)

    def run(self, *arguments, status=0, data=True, **environment):
        plain = ["--plain"] if self.plain and arguments[0] not in ("approvals", "models") else []
        command = [str(BINARY), *map(str, arguments), *(["--data-dir", str(self.home.data), *plain] if data else [])]
        done = subprocess.run(command, cwd=self.home.path, env=self.home.environment(**environment), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=SOON, check=False)
        assert done.returncode == status, (command, done.returncode, done.stdout[-1000:], done.stderr[-1500:])
        return done

    def json(self, *arguments, **more):
        return json.loads(self.run(*arguments, "--json", **more).stdout)

    @property
    def where(self):
        return f"http://127.0.0.1:{self.server.port}" if self.served else str(self.home.data)

    def trash(self):
        return sorted(path.name for path in (self.home.data / ".trash").iterdir()) if (self.home.data / ".trash").exists() else []

    def chats(self):
        return {chat["id"] for chat in self.json("ls")["chats"]}

    def content(self, chat):
        """The bytes of a chat's numbered files."""
        return {path.name: path.read_bytes() for path in self.home.checkpoints(chat)}


@pytest.fixture(params=["served", "alone"])
def how(request):
    return request.param == "served"


@pytest.fixture(params=["sealed", "plain"])
def world(request, make_server, make_home, provider, how):
    return World(make_server, make_home(), provider, request.param == "plain", how)


@pytest.fixture
def sealed(make_server, make_home, provider, how):
    return World(make_server, make_home(), provider, False, how)


@pytest.fixture
def served(make_server, make_home, provider):
    return World(make_server, make_home(), provider, False, True)


@pytest.fixture
def alone(make_server, make_home, provider):
    return World(make_server, make_home(), provider, False, False)


# --- rm and restore


def test_what_was_removed_comes_back_as_it_was(world):
    before = world.content("alpha")
    assert world.run("rm", "alpha").stdout == "alpha is in the trash (`reprise restore alpha` brings it back)\n"
    assert world.chats() == {"beta"}
    line, = world.run("restore", TZ="UTC-9").stdout.splitlines()
    shown = re.fullmatch(rf"alpha  ({LOCAL_TIME})  (\d+(?:\.\d)? K?B) *  ({ENTRY})  question 1 of alpha", line)
    assert shown, line
    entry, = world.json("restore")["entries"]
    schemas.check("trash", {"entries": [entry]})
    assert (entry["id"], entry["chat_id"], entry["title"]) == (shown[3], "alpha", "question 1 of alpha") and [entry["id"]] == world.trash()
    assert entry["bytes"] == sum(file.stat().st_size for file in (world.home.data / ".trash" / entry["id"]).rglob("*") if file.is_file())
    assert (int(entry["deleted_at"][11:13]) + 9) % 24 == int(shown[1][11:13]), "local time for people, UTC for programs"
    assert re.fullmatch(rf"alpha is back as it was on {LOCAL_TIME}\n", world.run("restore", "alpha").stdout)
    assert world.content("alpha") == before and world.trash() == []
    assert world.run("restore").stdout == "the trash is empty\n" and world.json("restore") == {"entries": []}
    world.run("verify")

    world.serve()
    assert world.turn("alpha", "question 3").interaction == "int_003"
    asked = [message["content"] for message in world.provider.requests[-1].conversation]
    assert asked == ["question 1 of alpha", "answer 1 of alpha", "question 2 of alpha", "answer 2 of alpha", "question 3"]


def test_json_says_what_became_of_each_chat(sealed):
    assert sealed.json("rm", "alpha", "nochat", status=1) == {
        "deleted": ["alpha"], "failed": [{"chat_id": "nochat", "message": f"there is no chat nochat in {sealed.where} (`reprise ls` lists them)"}]}
    restored = sealed.json("restore", "alpha")
    schemas.check("chat_summary", restored)
    assert (restored["id"], restored["head"]) == ("alpha", "int_002")


def test_one_that_is_not_there_does_not_keep_the_others(sealed):
    done = sealed.run("rm", "alpha", "bta", "beta", status=1)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["alpha", "beta"] and sealed.chats() == set()
    assert f"there is no chat bta in {sealed.where}, did you mean beta? (`reprise ls` lists them)" in done.stderr


def test_of_several_the_last_one_comes_back_unless_another_is_named(world):
    world.run("rm", "alpha")
    world.serve()
    world.turn("alpha", "a second life")
    if not world.served:
        world.server.close()
    world.run("rm", "alpha")
    second, first = world.json("restore")["entries"]
    assert (second["title"], first["title"]) == ("a second life", "question 1 of alpha")
    assert "others of that name are still in the trash" in world.run("restore", "alpha").stdout
    assert [i["user_message"] for i in world.json("ls", "alpha")["interactions"]] == ["a second life"]

    taken = world.run("restore", first["id"], status=1).stderr
    hint = re.search(r"`reprise (fork alpha --as OTHER)` and `reprise (rm alpha)` make room for it; then `reprise (restore alpha\S+)` brings it back", taken)
    assert hint and "there is a chat alpha already" in taken
    for command in hint.groups():
        world.run(*command.split())
    assert hint[3] == f"restore {first['id']}"  # `restore alpha` would bring back the one that has made room
    assert {i["user_message"] for i in world.json("ls", "alpha")["interactions"]} == {"question 1 of alpha", "question 2 of alpha"}
    assert [i["user_message"] for i in world.json("ls", "OTHER")["interactions"]] == ["a second life"]


def test_the_server_forgets_its_cache_of_a_deleted_chat(served):
    """What the server caches of a chat is not used for another chat of the same name."""
    client = served.server.client
    file = client.request("POST", "/chats/alpha/files?name=a.txt", b"some words", headers={"Content-Type": "text/plain"}).expect(201).json["id"]
    served.run("rm", "alpha")
    served.turn("alpha", "other 1", "other answer 1")
    served.turn("alpha", "other 2", "other answer 2")
    client.request("DELETE", "/chats/alpha").expect(200)
    older = served.json("restore")["entries"][1]
    served.run("restore", older["id"])
    assert [f["id"] for f in client.get("/chats/alpha/files").json["files"]] == [file]
    assert served.turn("alpha", "question 3").interaction == "int_003"
    assert [m["content"] for m in served.provider.requests[-1].conversation][0] == "question 1 of alpha"


def test_removing_a_chat_ends_its_run(served):
    served.provider.plan(tools(call("run_shell", {"command": "true"})))
    stream = served.server.client.start("alpha", "run it")
    stream.until("approval_required")
    served.run("rm", "alpha")
    stream.finish("CANCELLED")
    served.run("restore", "alpha")
    history = served.server.client.history("alpha")["interactions"]
    assert [i["status"] for i in history] == ["COMPLETED", "COMPLETED", "CANCELLED"]


def test_an_unfinished_interaction_continues_after_a_restore(served):
    """The server is killed while the interaction waits; the chat is removed and restored without a server."""
    served.provider.plan(tools(call("run_shell", {"command": "true"})))
    stream = served.server.client.start("alpha", "run it")
    approval = stream.until("approval_required")["approval_id"]
    served.server.kill()
    stream.close()
    served.run("rm", "alpha")
    served.run("restore", "alpha")
    served.serve()
    waiting, = served.json("approvals")["approvals"]
    assert (waiting["chat_id"], waiting["approval_id"]) == ("alpha", approval)
    served.run("approvals", approval, "no")


def test_a_chat_that_cannot_be_read_can_be_removed_and_stays_in_the_trash(sealed):
    sealed.server.check_files = False
    if sealed.served:  # the server has read the index already and may be about to write it
        sealed.server.stop()
    index = sealed.home.data / "alpha" / "chat.json"
    index.write_text(index.read_text().replace('"tag":"', '"tag":"AA'))
    if sealed.served:
        sealed.serve().check_files = False
    sealed.run("rm", "alpha")
    entry, = sealed.json("restore")["entries"]
    assert entry["title"] is None and "(its title cannot be read)" in sealed.run("restore").stdout
    done = sealed.run("restore", "alpha", status=1)
    assert f"{entry['id']} cannot be read and stays in the trash: alpha/chat.json" in done.stderr
    assert sealed.trash() == [entry["id"]] and not (sealed.home.data / "alpha").exists()
    if sealed.served:
        assert sealed.server.client.post(f"/trash/{entry['id']}/restore").error(422, "integrity_auth")


def test_one_damaged_interaction_keeps_nothing_in_the_trash(sealed):
    sealed.server.check_files = False
    sealed.run("rm", "alpha")
    file = sealed.home.data / ".trash" / sealed.trash()[0] / "interactions" / "int_001.json"
    file.write_text(file.read_text()[:-40])
    sealed.run("restore", "alpha")
    assert "int_001" in sealed.run("verify", "alpha", status=1).stdout


def test_a_link_in_a_chats_place_is_named_by_every_command_that_takes_all_chats(sealed, tmp_path):
    sealed.server.close()
    sealed.server.check_files = False
    beta = sealed.home.data / "beta"
    beta.rename(tmp_path / "elsewhere")
    beta.symlink_to(tmp_path / "elsewhere")
    for command in (["ls"], ["search", "question"], ["export", "-o", tmp_path / "all"], ["decrypt", "--all", "-o", tmp_path / "plain"], ["verify"]):
        done = sealed.run(*command, status=1)
        assert "beta" in done.stdout + done.stderr, (command, done.stdout, done.stderr)
    assert (tmp_path / "all" / "alpha").is_dir() and not (tmp_path / "all" / "beta").exists()


def test_no_link_in_the_trash_is_followed(sealed, tmp_path):
    sealed.server.check_files = False
    sealed.run("rm", "alpha")
    entry, = sealed.trash()
    trash, mine = sealed.home.data / ".trash", tmp_path / "mine"
    (mine / "interactions").mkdir(parents=True)
    (mine / "chat.json").write_text("a secret of mine")
    (trash / ("gamma" + entry[5:])).symlink_to(mine)
    (trash / ("delta" + entry[5:])).write_text("a file")
    (trash / "notes").mkdir()
    assert [e["id"] for e in sealed.json("restore")["entries"]] == [entry], "only the deleted chat"
    for other in ("gamma", "delta", "notes"):
        assert f"there is no chat {other} in the trash of {sealed.where}" in sealed.run("restore", other, status=1).stderr

    def refused(status=1):
        done = sealed.run("restore", entry, status=status)
        assert "secret" not in done.stdout + done.stderr and not (sealed.home.data / "alpha").exists() and entry in sealed.trash()

    for name in ("chat.json", "interactions"):
        (trash / entry / name).rename(tmp_path / "kept")
        (trash / entry / name).symlink_to(mine / name)
        refused()
        (trash / entry / name).unlink()
        (tmp_path / "kept").rename(trash / entry / name)
    if sealed.served:
        sealed.server.client.post(f"/trash/gamma{entry[5:]}/restore").error(422, "integrity_missing")
    trash.rename(tmp_path / "trash")
    trash.symlink_to(tmp_path / "trash")
    for command in (["restore"], ["restore", entry]):
        assert ".trash" in sealed.run(*command, status=1).stderr
    trash.unlink()
    (tmp_path / "trash").rename(trash)
    assert (mine / "chat.json").read_text() == "a secret of mine" and list((mine / "interactions").iterdir()) == []
    sealed.run("restore", entry)
    assert "alpha" in sealed.chats()


def test_a_title_that_steers_the_terminal_is_spelled_out(sealed):
    sealed.run("mv", "alpha", "evil \x1b]0;t\x07 \u202e end")
    sealed.run("rm", "alpha")
    out = sealed.run("restore").stdout
    assert "evil <U+001B>]0;t<U+0007> <U+202E> end" in out and "\x1b" not in out


@pytest.mark.parametrize("what", ["gamma", "alpha", "alpha.20250115T100000.000Z.0a1b2c3d", "..", "../beta", "a b", "\x1b[2J"])
def test_what_is_not_in_the_trash_is_named(sealed, what):
    done = sealed.run("restore", what, status=1)
    assert "there is no chat " in done.stderr and "`reprise restore` lists it" in done.stderr and "\x1b" not in done.stderr
    assert sealed.chats() == {"alpha", "beta"}


def test_a_name_nearby_in_the_trash_is_suggested(sealed):
    sealed.run("rm", "alpha")
    assert "did you mean alpha?" in sealed.run("restore", "alpa", status=1).stderr


# --- the routes


def test_the_routes_of_the_trash(served):
    client = served.server.client
    assert client.get("/trash").expect(200, "trash").json == {"entries": []}
    client.request("DELETE", "/chats/alpha").expect(200)
    client.request("DELETE", "/chats/beta").expect(200)
    entries = client.get("/trash").expect(200, "trash").json["entries"]
    assert [e["deleted_at"] for e in entries] == sorted((e["deleted_at"] for e in entries), reverse=True), "the latest deletion comes first"
    ids = {e["chat_id"]: e["id"] for e in entries}
    beta, alpha = ids["beta"], ids["alpha"]
    client.post(f"/trash/{beta}/restore", {"as": "gamma"}).error(400, "unknown_member")
    for unknown in ("alpha", "alpha.20250115T100000.000Z.0a1b2c3d", "%2e%2e", "..%2fbeta", "a" * 64):
        assert client.post(f"/trash/{unknown}/restore").status in (400, 404)
    assert client.post(f"/trash/{alpha}/restore").expect(200, "chat_summary").json["id"] == "alpha"
    client.post(f"/trash/{alpha}/restore").error(404, "not_found")
    client.post("/chats", {"id": "beta"}).expect(201)
    client.post(f"/trash/{beta}/restore").error(409, "chat_exists")
    client.get(f"/trash/{beta}/restore").error(405)
    client.request("DELETE", "/trash").error(405)


def test_no_run_of_the_same_name_is_disturbed(served):
    served.run("rm", "alpha")
    served.provider.plan(tools(call("run_shell", {"command": "true"})))
    stream = served.server.client.start("alpha", "run it")
    asked = stream.until("approval_required")
    assert "there is a chat alpha already" in served.run("restore", "alpha", status=1).stderr
    served.provider.plan(text("done"))
    served.server.client.approve("alpha", stream.interaction, asked["approval_id"], False)
    stream.finish()


def test_only_one_of_many_concurrent_restores_succeeds(served):
    served.run("rm", "alpha")
    entry, = served.trash()
    answers = at_once([lambda: served.server.client.post(f"/trash/{entry}/restore").status] * 8)
    assert answers.count(200) == 1 and set(answers) <= {200, 404, 409}
    assert served.turn("alpha", "question 3").interaction == "int_003"


# --- mv and fork


def test_a_chat_gets_another_title_and_keeps_its_id(world):
    assert world.run("mv", "alpha", "Plans", "für", "May").stdout == 'alpha has the title "Plans für May" now\n'
    renamed = world.json("mv", "alpha", "Plans of June")
    schemas.check("chat_summary", renamed)
    assert (renamed["id"], renamed["title"]) == ("alpha", "Plans of June")
    assert {chat["id"]: chat["title"] for chat in world.json("ls")["chats"]}["alpha"] == "Plans of June"
    assert world.serve().client.history("alpha")["title"] == "Plans of June"


@pytest.mark.parametrize("arguments, status, says", [
    (["mv", "alpha", "x" * 201], 2, '"title" is too long'), (["mv", "alpha", ""], 2, "the title is empty"), (["mv", "alpha"], 2, "TITLE"),
    (["mv", "alpha", b"\xff".decode(errors="surrogateescape")], 2, "not UTF-8"), (["mv", "no chat", "x"], 2, '"no chat" names no chat'),
    (["mv", "nochat", "x"], 1, "there is no chat nochat in "), (["fork", "nochat"], 1, "there is no chat nochat in "),
    (["fork", "alpha/int_009"], 1, "(`reprise ls alpha --all` lists its interactions)"), (["fork", "nochat/int_001"], 1, "there is no chat nochat in "),
    (["fork", "alpha/one"], 2, "an interaction id looks like int_001"), (["fork", "../alpha"], 2, "names nothing"), (["fork"], 2, "WHAT"),
    (["fork", "alpha", "--as", "a b"], 2, '--as: "a b" cannot be a chat\'s name'), (["fork", "alpha", "--as", "beta"], 1, "there is a chat beta already"),
    (["rm"], 2, "CHAT"), (["rm", "alpha", ".."], 2, '".." names no chat'), (["restore", "a", "b"], 2, "one argument too many")])
def test_bad_input_is_named_and_changes_nothing(sealed, arguments, status, says):
    before = sealed.content("alpha"), sealed.run("ls").stdout
    done = sealed.run(*arguments, status=status)
    assert says in done.stderr and done.stderr.count("\n") == 1 and done.stdout == ""
    assert (sealed.content("alpha"), sealed.run("ls").stdout) == before and sealed.trash() == []


def test_a_branch_is_copied(world):
    assert world.run("fork", "alpha", "--as", "copy").stdout == "copy is a copy of alpha up to int_002\n"
    early = world.json("fork", "alpha/int_001")
    schemas.check("chat_list", {"chats": [early], "next": None})
    assert re.fullmatch(r"chat_[0-9a-f]{24}", early["id"]) and (early["head"], early["head_status"]) == ("int_001", "COMPLETED")
    assert early["forked_from"] == {"chat_id": "alpha", "interaction_id": "int_001"}
    assert [i["id"] for i in world.json("ls", early["id"])["interactions"]] == ["int_001"]
    world.serve()
    assert world.turn("copy", "question 3").interaction == "int_003"
    assert [m["content"] for m in world.provider.requests[-1].conversation][-2:] == ["answer 2 of alpha", "question 3"]


def test_an_empty_chat_has_nothing_to_fork(served):
    served.server.client.post("/chats", {"id": "empty"}).expect(201)
    for _ in range(2):
        assert "the chat empty has no interaction yet: there is nothing to fork" in served.run("fork", "empty", status=1).stderr
        served.server.close()


def test_what_still_runs_is_not_copied(served):
    served.provider.plan(tools(call("run_shell", {"command": "true"})))
    stream = served.server.client.start("beta", "run it")
    asked = stream.until("approval_required")
    assert "(CHAT/INTERACTION names an earlier one" in served.run("fork", "beta/int_002", status=1).stderr
    served.run("fork", "beta", "--as", "copy")
    served.provider.plan(text("done"))
    served.server.client.approve("beta", stream.interaction, asked["approval_id"], False)
    stream.finish()


# --- approvals


def ask(world, chat, arguments, name="run_shell"):
    world.provider.plan(tools(call(name, arguments)))
    stream = world.server.client.start(chat, "do it", on_disconnect="continue")
    return stream, stream.until("input_required" if name == "ask_human" else "approval_required")


def test_what_waits_is_listed_and_answered(served):
    assert served.run("approvals").stdout == "nothing waits for you\n"
    first, asked = ask(served, "alpha", '{"command": "echo a\u202eb\u200bc > new.txt"}')
    second, other = ask(served, "beta", {"command": "false"})
    third, question = ask(served, "gamma", {"question": "Which\x1b[2J one?"}, "ask_human")
    listed = served.json("approvals")
    schemas.check("approvals", listed)
    assert [a["approval_id"] for a in listed["approvals"]] == [asked["approval_id"], other["approval_id"]]
    out = served.run("approvals").stdout
    for part in (f"{asked['approval_id']}  alpha/int_003  since ", "run_shell  (risk: ", "echo a<U+202E>b<U+200B>c > new.txt",
                 f"answer: reprise approvals {asked['approval_id']} yes|no", f"{question['request_id']}  gamma/int_001", "answer: reprise chat gamma"):
        assert part in out
    assert "\x1b" not in out and "\u202e" not in out

    served.provider.plan(text("ok"))
    assert served.run("approvals", asked["approval_id"], "yes").stdout == "approved: run_shell in alpha/int_003\n"
    first.finish()
    assert first.one("approved") and [p.name for p in served.home.workspace.iterdir()] == ["new.txt"]
    again = served.run("approvals", asked["approval_id"], "no", status=1).stderr
    assert f"{asked['approval_id']} was answered before, or its interaction has ended" in again

    served.provider.plan(text("ok"))
    answered = served.json("approvals", other["approval_id"], "no", "--feedback", "too dangerous")
    schemas.check("approve_response", answered)
    second.finish()
    assert second.one("rejected")["feedback"] == "too dangerous"

    assert "is a question, not an approval: `reprise chat gamma` answers it" in served.run("approvals", question["request_id"], "yes", status=2).stderr
    served.provider.plan(text("ok"))
    served.server.client.respond("gamma", third.interaction, question["request_id"], "this")
    third.finish()


def test_a_yes_may_be_for_equal_calls_too(served):
    stream, asked = ask(served, "alpha", {"command": "true"})
    served.provider.plan(text("ok"))
    served.run("approvals", asked["approval_id"], "yes", "--scope", "chat")
    stream.finish()
    served.provider.plan(tools(call("run_shell", {"command": "true"}, "call_2")), text("ok"))
    assert "approval_required" not in served.server.client.turn("alpha", "again").names()


@pytest.mark.parametrize("arguments, status, says", [
    (["approval_" + "0" * 32, "yes"], 1, "(`reprise approvals` lists what waits)"), (["../chats", "yes"], 1, "there is no approval ../chats at http://"),
    (["approval_" + "0" * 32], 2, "yes or no is missing"), (["approval_" + "0" * 32, "maybe"], 2, "maybe"), (["--feedback", "x"], 2, "go with an answer"),
    (["approval_" + "0" * 32, "no", "--scope", "chat"], 2, "--scope goes with yes"), (["x", "yes", "--scope", "ever"], 2, "--scope")])
def test_an_answer_that_cannot_be_given(served, arguments, status, says):
    assert says in served.run("approvals", *arguments, status=status).stderr


def test_without_a_server_nothing_waits(alone):
    for arguments in ([], ["approval_" + "0" * 32, "yes"]):
        done = alone.run("approvals", *arguments, status=1).stderr
        assert f"no server uses the data folder {alone.home.data}" in done and "`reprise serve`" in done


# --- models


def test_models_are_listed_with_and_without_a_server(served):
    listed = served.json("models")
    schemas.check("models", listed)
    assert listed == served.server.client.get("/models").json
    assert re.search(r"^test/scripted +\(default\)$", served.run("models").stdout, re.M)
    served.server.close()
    config = ["--config", served.home.path / "server.json"]
    alone = served.json("models", *config)
    schemas.check("models", alone)
    assert alone["default"] == "test/scripted" and {m["name"] for m in alone["models"]} >= {"offline", "test/scripted"}
    assert "offline" in served.run("models").stdout


def test_models_asks_the_providers_when_no_server_does(alone):
    alone.provider.listing = Reply([json.dumps({"object": "list", "data": [{"id": "listed", "context_window": 4096}]}).encode()], content_type="application/json")
    assert "test/listed" in {m["name"] for m in alone.json("models", "--config", alone.home.path / "server.json")["models"]}


def test_a_provider_that_says_nothing_is_not_waited_for(alone, tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        file = tmp_path / "silent.json"
        file.write_text(json.dumps({"providers": {"mute": {"type": "openai", "base_url": f"http://127.0.0.1:{silent.getsockname()[1]}/v1"}}, "model": "mute/one"}))
        file.chmod(0o600)
        assert "mute/one" in alone.run("models", "--config", file).stdout


# --- finding the server


def test_the_lock_file_says_where_the_server_listens(served):
    lock = served.home.data / ".lock"
    assert lock.read_text() == f"{served.server.process.pid}\nhttp://127.0.0.1:{served.server.port}\n"
    served.server.close()
    assert re.fullmatch(r"\d+\n", lock.read_text()), "no server listens there any more"


def test_a_server_that_was_killed_is_not_looked_for(served):
    served.server.kill()
    assert "http://" in (served.home.data / ".lock").read_text()
    served.run("rm", "beta")
    assert served.chats() == {"alpha"}


@pytest.mark.parametrize("name", ["--url", "REPRISE_URL"])
def test_a_server_can_be_named(served, make_server, make_home, name):
    other = make_server(home=make_home())
    other.client.post("/chats", {"id": "alpha", "title": "elsewhere"}).expect(201)
    url = f"http://127.0.0.1:{other.port}/"
    arguments, environment = (["--url", url], {}) if name == "--url" else ([], {"REPRISE_URL": url})
    served.run("mv", "alpha", "changed", *arguments, **environment)
    assert other.client.history("alpha")["title"] == "changed" and served.server.client.history("alpha")["title"] != "changed"
    for wrong in ("127.0.0.1:8000", "ftp://x", "http://", "http://a b", "http://x/?y"):
        arguments, environment = (["--url", wrong], {}) if name == "--url" else ([], {"REPRISE_URL": wrong})
        assert f"{name} must be the URL of a server" in served.run("rm", "alpha", *arguments, status=2, **environment).stderr
    assert "is no setting" not in served.run("doctor", "--config", served.home.path / "server.json", REPRISE_URL=url, status=0).stdout


@pytest.mark.parametrize("arguments", [["rm", "alpha"], ["restore"], ["mv", "alpha", "x"], ["fork", "alpha"], ["approvals"], ["models"]])
def test_an_unreachable_server_is_named_with_the_next_step(alone, arguments):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        done = alone.run(*arguments, "--url", url, status=1)
    assert f"no Reprise server answers at {url} (`reprise serve` starts one)" in done.stderr and done.stderr.count("\n") == 1
    assert "alpha" in alone.chats()


def test_a_server_that_wants_a_token_gets_the_configured_one(make_server, make_home, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-many-letters\n")
    token.chmod(0o600)
    server = make_server(home=make_home(), arguments=["--host", "0.0.0.0", "--token-file", token], token="a-token-of-many-letters")
    assert (server.home.data / ".lock").read_text().endswith(f"\nhttp://127.0.0.1:{server.port}\n"), "the lock names an address that is reachable locally"
    server.client.post("/chats", {"id": "alpha"}).expect(201)
    command = [str(BINARY), "mv", "alpha", "x", "--data-dir", str(server.home.data)]

    def run(*arguments, **environment):
        return subprocess.run([*command, *map(str, arguments)], env=server.home.environment(**environment), capture_output=True, text=True, timeout=SOON, check=False)

    refused = run()
    assert refused.returncode == 1 and f"http://127.0.0.1:{server.port} wants a token (--token-file names the file that has it)" in refused.stderr
    assert run("--token-file", token).returncode == 0 and run(REPRISE_TOKEN_FILE=str(token)).returncode == 0
    assert run("--token-file", tmp_path / "none").returncode == 1


def test_a_folder_that_something_else_has_is_left_alone(alone):
    lock = os.open(alone.home.data / ".lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"4711\n", 0)
    for arguments in (["rm", "alpha"], ["restore"], ["approvals"]):
        done = alone.run(*arguments, status=1).stderr
        assert f"process 4711 uses the data folder {alone.home.data} and takes no requests yet; try again when it is ready or has ended" in done
    alone.run("models")  # needs no data folder
    os.close(lock)
    alone.run("rm", "alpha")


def test_a_lock_file_that_is_a_link_is_not_followed(alone, tmp_path):
    (tmp_path / "mine").write_text("1\nhttp://127.0.0.1:1\n")
    (alone.home.data / ".lock").unlink()
    (alone.home.data / ".lock").symlink_to(tmp_path / "mine")
    alone.server.check_files = False
    assert "in the place of the data folder's lock" in alone.run("rm", "alpha", status=1).stderr
    assert (tmp_path / "mine").read_text() == "1\nhttp://127.0.0.1:1\n"


def test_a_server_that_hangs_up_is_a_failure(alone):
    with socket.socket() as rude:
        rude.bind(("127.0.0.1", 0))
        rude.listen()
        command = [str(BINARY), "rm", "alpha", "--url", f"http://127.0.0.1:{rude.getsockname()[1]}", "--data-dir", str(alone.home.data)]
        process = subprocess.Popen(command, env=alone.home.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        connection, _ = rude.accept()
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        connection.close()
        out, errors = process.communicate(timeout=SOON)
    assert process.returncode == 1 and out == b"" and b"not a Reprise server" in errors


@pytest.mark.parametrize("arguments", [["rm", "alpha"], ["restore"], ["mv", "alpha", "x"], ["fork", "alpha"], ["models"], ["import", "alpha.json"]],
                         ids=lambda arguments: arguments[0])
def test_a_server_that_is_ending_is_waited_for(alone, arguments):
    (alone.home.path / "alpha.json").write_text(alone.run("export", "alpha").stdout)
    lock = os.open(alone.home.data / ".lock", os.O_RDWR)
    with socket.socket() as ending:
        ending.bind(("127.0.0.1", 0))
        ending.listen()
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"4711\nhttp://127.0.0.1:{ending.getsockname()[1]}\n".encode(), 0)
        process = subprocess.Popen([str(BINARY), *arguments, "--data-dir", str(alone.home.data)], cwd=alone.home.path, env=alone.home.environment(),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        connection, _ = ending.accept()
        connection.recv(65536)
        said = json.dumps({"error": {"code": "stopping", "message": "the server is stopping", "retryable": True}}).encode()
        connection.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                           % (len(said), said))
        connection.close()
    os.close(lock)
    assert (process.wait(SOON), process.stderr.read()) == (0, b"")


def test_without_a_data_folder_there_is_nothing_to_change(make_home):
    home = make_home()
    for arguments in (["rm", "alpha"], ["restore"], ["mv", "alpha", "x"], ["fork", "alpha"]):
        done = subprocess.run([str(BINARY), *arguments, "--data-dir", "none"], cwd=home.path, env=home.environment(), capture_output=True, text=True,
                              timeout=SOON, check=False)
        assert done.returncode == 1
        assert f"there is no data folder {home.path}/none (--data-dir names another one, `reprise serve` makes one)" in done.stderr
    assert not (home.path / "none").exists() and not home.keys.exists()


def test_without_the_keys_nothing_is_changed(alone):
    keys = alone.home.keys.read_bytes()
    alone.home.keys.unlink()
    before = alone.content("alpha")
    for arguments in (["rm", "alpha"], ["mv", "alpha", "x"], ["fork", "alpha"]):
        assert "there is no key file" in alone.run(*arguments, status=1).stderr
    assert not alone.home.keys.exists(), "no key file is made"
    alone.home.keys.write_bytes(keys)
    alone.home.keys.chmod(0o600)
    assert alone.content("alpha") == before
    alone.run("rm", "alpha")


def test_a_name_that_is_not_there_does_not_stop_the_others(alone):
    """What was found in the others is told, and the exit status is 1."""
    alone.home.checkpoints("beta")[0].write_bytes(b"x")
    missing = "there is no chat nochat in "
    for names in (["beta", "nochat"], ["nochat", "beta"], ["alpha", "nochat", "beta"]):
        done = alone.run("verify", *names, status=1)
        assert "beta/interactions/int_001.json: auth: " in done.stdout and missing in done.stderr, done
    told = json.loads(alone.run("verify", "alpha", "nochat", "--json", status=1).stdout)
    assert not told["ok"] and told["problems"] == [] and told["checked"] > 1
    for command in ("test", "what-if"):
        done = alone.run(command, "nochat", "alpha", status=1)
        assert "alpha" in done.stdout and missing in done.stderr, done


# --- the exit statuses of all commands (docs/command-line.md)

STATUSES = {
    0: [["ls"], ["ls", "alpha"], ["show", "alpha"], ["cat", "alpha/int_001"], ["replay", "alpha"], ["verify"], ["verify", "alpha"], ["audit"], ["export", "alpha"],
        ["search", "question"], ["restore"], ["models"], ["keys", "list"]],
    1: [["ls", "nochat"], ["show", "nochat"], ["cat", "nochat"], ["replay", "nochat"], ["verify", "nochat"], ["export", "nochat"], ["search", "x", "--chat", "nochat"],
        ["search", "no such words"], ["rm", "nochat"], ["restore", "nochat"], ["mv", "nochat", "x"], ["fork", "nochat"], ["approvals"], ["import", "none"],
        ["encrypt", "nochat", "-o", "out"], ["show", "./none.json"], ["cat", "./none.json"], ["replay", "./none.json"], ["verify", "./none.json"],
        ["show", "alpha/int_009"], ["cat", "alpha/int_009"], ["replay", "alpha/int_009"], ["export", "alpha/int_009"], ["fork", "alpha/int_009"]],
    2: [["ls", "a b"], ["export", "a b"], ["search", "x", "--chat", "a b"], ["search", ""], ["search", "--regex", "("], ["rm", "a b"], ["mv", "a b", "x"], ["fork", "a b"],
        ["ls", "--no-such-flag"], ["show"], ["cat"], ["replay"], ["import"], ["rm"], ["mv"], ["fork"], ["nocommand"], ["replay", "alpha", "--mode", "x"],
        ["ls", "--config", "none.json"], ["rm", "alpha", "--config", "none.json"], ["models", "--config", "none.json"]],
}


@pytest.mark.parametrize("status, arguments", [(status, line) for status, lines in STATUSES.items() for line in lines], ids=lambda x: " ".join(x) if isinstance(x, list) else str(x))
def test_every_command_keeps_the_table_of_exit_statuses(one_folder, status, arguments):
    data = not arguments[0].startswith(("keys", "nocommand"))
    done = one_folder.run(*arguments, status=status, data=data)
    if status == 0:
        assert done.stderr == ""
    elif arguments != ["search", "no such words"]:
        assert done.stderr.startswith("reprise: ") and done.stderr.count("\n") == 1, done.stderr
    if "nochat" in arguments and arguments[0] != "encrypt":
        assert "there is no chat nochat in " in done.stderr and str(one_folder.home.data) in done.stderr


@pytest.fixture(scope="module")
def one_folder(tmp_path_factory):
    """A shared data folder, without a server, for commands that change nothing."""
    from support.provider import Provider
    from support.server import Home, Server
    provider = Provider()
    servers = []

    def make(provider, home, plain):
        servers.append(Server(home, provider, plain=plain))
        return servers[-1]

    yield World(make, Home(tmp_path_factory.mktemp("statuses") / "user"), provider, False, False)
    for server in servers:
        server.close()
    provider.close()


def test_signals_leave_no_half_of_a_chat(alone):
    """A restore that is killed at any moment leaves the chat in the trash or in its place."""
    alone.run("rm", "alpha")
    entry, = alone.trash()
    before = {file.name: file.read_bytes() for file in (alone.home.data / ".trash" / entry / "interactions").iterdir()}
    for _ in range(10):
        process = subprocess.Popen([str(BINARY), "restore", "alpha", "--data-dir", str(alone.home.data)], env=alone.home.environment(), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        process.send_signal(signal.SIGKILL)
        process.wait(SOON)
        there = (alone.home.data / "alpha").exists()
        assert there != (entry in alone.trash())
        if there:
            break
    alone.home.killed = True
    if entry in alone.trash():
        alone.run("restore", "alpha")
    assert alone.content("alpha") == before
    alone.run("verify")
