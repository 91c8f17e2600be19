"""Chats of one server, each in a folder of its own: who may choose which, what a chat keeps, and that no chat acts in another's folder."""
import json
import os
import random

import pytest
from support.provider import call, text, tools
from support.server import sandbox_works

ALL = {"approval_mode": "approve_all"}


@pytest.fixture
def world(make_server, provider):
    server = make_server(provider, config=ALL)
    return World(server, provider)


class World:
    def __init__(self, server, provider):
        self.server, self.provider, self.client, self.home = server, provider, server.client, server.home

    def folder(self, name):
        path = self.home.path / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def create(self, chat, folder, **more):
        return self.client.post("/chats", {"id": chat, "workspace": str(folder), **more})

    def call(self, chat, name, arguments, status="COMPLETED", **more):
        """Lets the model call a tool, and returns the output."""
        self.provider.plan(tools(call(name, arguments)), text("done"))
        return self.client.turn(chat, "go", status, **more).one("tool_result")["tool_output"]


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# --- a chat's folder ----------------------------------------------------------------------------------------------------------

def test_each_chat_works_in_its_folder(world):
    one, two = world.folder("one"), world.folder("two")
    assert world.create("a", one).expect(201, "chat_summary").json["workspace"] == str(one)
    world.call("a", "write_file", {"path": "made", "content": "by a"})
    world.call("b", "write_file", {"path": "made", "content": "by b"}, workspace=str(two))
    world.call("c", "write_file", {"path": "made", "content": "by c"})
    assert [(folder / "made").read_text() for folder in (one, two, world.home.workspace)] == ["by a", "by b", "by c"]
    for chat, folder in (("a", one), ("b", two), ("c", world.home.workspace)):
        assert world.call(chat, "read_file", {"path": "made"}) == f"by {chat}"
        history = world.client.history(chat)
        assert history["workspace"] == str(folder) and {each["workspace"] for each in history["interactions"]} == {str(folder)}
        assert world.client.get(f"/tools?chat_id={chat}").expect(200, "tools").json["workspace"] == str(folder)
        assert world.client.get(f"/workspace/files?chat_id={chat}").expect(200, "workspace_files").json["files"] == [{"path": "made", "size_bytes": 4}]
    assert {each["id"]: each["workspace"] for each in world.client.get("/chats").expect(200, "chat_list").json["chats"]} == {
        "a": str(one), "b": str(two), "c": str(world.home.workspace)}


@pytest.mark.skipif(not sandbox_works(), reason="no sandbox")
def test_commands_see_their_folder_alone(world):
    one, two = world.folder("one"), world.folder("two")
    (two / "secret").write_text("of two")
    world.create("a", one)
    world.create("b", two)
    said = world.call("a", "run_shell", {"command": f"pwd; cat {two}/secret; echo x > {two}/y; echo z > here"})
    assert said.startswith(str(one)) and "of two" not in said and files_in(two) == ["secret"] and files_in(one) == ["here"]
    assert "of two" in world.call("b", "run_shell", {"command": "cat secret"})


@pytest.mark.parametrize("path", ["../two/x", "{two}/x", "link/x", "link", "up/two/x"])
def test_no_path_leads_into_the_folder_of_another_chat(world, path):
    one, two = world.folder("one"), world.folder("two")
    (two / "x").write_text("of two")
    (one / "link").symlink_to(two if path == "link/x" else two / "x")
    (one / "up").symlink_to("..")
    world.create("a", one)
    world.create("b", two)
    world.call("b", "read_file", {"path": "x"})  # the folder is open
    path = path.format(two=two)
    assert "of two" not in world.call("a", "read_file", {"path": path})
    for name, more in (("write_file", {"content": "by a"}), ("edit_file", {"old_text": "of two", "new_text": "by a"}), ("delete_file", {})):
        world.call("a", name, {"path": path, **more})
    assert (two / "x").read_text() == "of two"
    assert world.client.post("/chats/a/workspace/files", {"path": path}).status in (400, 403, 404)


def test_instructions_are_those_of_the_folder(world):
    one, two = world.folder("one"), world.folder("two")
    for folder, words in ((one, "speak of apples"), (two, "speak of pears")):
        (folder / "AGENTS.md").write_text(words)
        found = world.client.get(f"/instructions?workspace={folder}").expect(200, "instructions").json["files"]
        assert [(each["path"], each["state"]) for each in found] == [(str(folder / "AGENTS.md"), "new")]
        world.client.post(f"/instructions/trust?workspace={folder}", {"path": found[0]["path"], "digest": found[0]["digest"]}).expect(200, "instructions")
    for chat, folder, words, others in (("a", one, "apples", "pears"), ("b", two, "pears", "apples"), ("c", None, None, None)):
        world.provider.plan(text("yes"))
        world.client.turn(chat, "hello", **({"workspace": str(folder)} if folder else {}))
        told = json.dumps(world.provider.requests[-1].body["messages"])
        assert (words is None or words in told) and (others or "apples") not in told and (others or "pears") not in told


def test_a_grant_for_always_names_its_folder(make_server, provider):
    world = World(make_server(provider), provider)
    one, two = world.folder("one"), world.folder("two")
    write = tools(call("write_file", {"path": "x", "content": "1"}))
    provider.plan(write, text("done"))
    stream = world.client.start("a", "go", workspace=str(one))
    asked = stream.until("approval_required")
    world.client.approve("a", "int_001", asked["approval_id"], scope="always").expect(200)
    stream.finish()
    provider.plan(write, text("done"))
    world.client.turn("b", "go", workspace=str(one))  # without a question
    provider.plan(write, text("done"))
    stream = world.client.start("c", "go", workspace=str(two))
    stream.until("approval_required")
    stream.close()
    assert files_in(two) == []


def test_files_go_back_in_their_folder(world):
    one, two = world.folder("one"), world.folder("two")
    for chat, folder in (("a", one), ("b", two)):
        world.create(chat, folder)
        for content in ("first", "second"):
            world.call(chat, "write_file", {"path": "x", "content": content})
    world.client.post("/chats/a/undo", {"files": "restore"}).expect(200)
    assert ((one / "x").read_text(), (two / "x").read_text()) == ("first", "second")
    last = world.client.history("b")["interactions"][-1]["id"]
    assert b"+second" in world.client.get(f"/chats/b/interactions/{last}/diff").expect(200).body


# --- a chat that moves -----------------------------------------------------------------------------------------------------------

def test_a_chat_is_moved_and_edits_do_not_cross_the_move(world):
    one, two = world.folder("one"), world.folder("two")
    world.create("a", one)
    world.call("a", "write_file", {"path": "x", "content": "in one"})
    moved = world.client.request("PATCH", "/chats/a", {"workspace": str(two)}).expect(200, "chat_summary").json
    assert moved["workspace"] == str(two)
    world.call("a", "write_file", {"path": "x", "content": "in two"})
    assert ((one / "x").read_text(), (two / "x").read_text()) == ("in one", "in two")
    first = world.client.history("a")["interactions"][0]["id"]
    error = world.client.post(f"/chats/a/interactions/{first}/edit", {"new_user_message": "again", "files": "restore"}).error(409, "workspace_moved")
    assert str(one) in error["message"] and str(two) in error["message"]
    assert ((one / "x").read_text(), (two / "x").read_text()) == ("in one", "in two")
    world.client.post("/chats/a/undo", {"files": "restore"}).expect(200)
    assert files_in(two) == [] and (one / "x").read_text() == "in one"
    # null: the server's.
    assert "workspace" not in world.client.request("PATCH", "/chats/a", {"workspace": None}).expect(200, "chat_summary").json


def test_a_folder_that_is_gone_or_became_a_link_is_named(world):
    one, two = world.folder("one"), world.folder("two")
    world.create("a", one)
    world.call("a", "write_file", {"path": "x", "content": "1"})
    one.rename(world.home.path / "renamed")
    error = world.client.post("/chats/a/interactions", {"user_message": "go"}).error(404, "no_such_workspace")
    assert str(one) in error["message"]
    one.symlink_to(two)
    error = world.client.post("/chats/a/interactions", {"user_message": "go"}).error(404, "no_such_workspace")
    assert str(two) in error["message"] and files_in(two) == []
    assert len(world.client.history("a")["interactions"]) == 1, "the chat can still be read"
    world.client.request("PATCH", "/chats/a", {"workspace": str(world.home.path / "renamed")}).expect(200)
    assert world.call("a", "read_file", {"path": "x"}) == "1"


def test_a_message_for_another_folder_is_refused(world):
    one, two = world.folder("one"), world.folder("two")
    world.create("a", one)
    world.client.post("/chats/a/interactions", {"user_message": "go", "workspace": str(two)}).error(409, "works_elsewhere")
    world.client.post("/chats/b/interactions", {"user_message": "go", "workspace": str(two), "model": "nobody/x"}).error(400, "unknown_model")
    assert [each["id"] for each in world.client.get("/chats").json["chats"]] == ["a"], "a refused message makes no chat"


def test_forks_keep_the_folder_and_imports_do_not(world):
    one = world.folder("one")
    world.create("a", one)
    world.call("a", "write_file", {"path": "x", "content": "1"})
    last = world.client.history("a")["interactions"][-1]["id"]
    forked = world.client.post("/chats/a/fork", {"interaction_id": last, "chat_id": "b"}).expect(201).json
    assert forked["workspace"] == str(one)
    exported = world.client.get("/chats/a/export?format=json").expect(200).json
    imported = world.client.post("/import", exported).expect(201, "imported").json["id"]
    assert "workspace" not in world.client.history(imported)


# --- who may choose -----------------------------------------------------------------------------------------------------------------

def test_which_folders_may_be_chosen(world):
    closed = world.folder("closed")
    (world.home.path / "plain").write_text("")
    refused = {"relative": 400, "": 400, "/no/such/folder": 404, str(world.home.path / "plain"): 404, "/": 403, str(world.home.data): 403,
               str(world.home.path): 403, str(world.home.path / "closed" / ".." / "closed"): 201, str(world.home.data / ".."): 403}
    for path, status in refused.items():
        said = world.client.post("/chats", {"id": f"c{len(path)}x{status}", "workspace": path})
        assert said.status == status, (path, said.json)
        if status != 201:
            assert said.json["error"]["code"] == {400: "invalid_member", 404: "no_such_workspace", 403: "workspace_not_allowed"}[status]
    assert files_in(closed) == []


def test_no_folder_whose_programs_the_server_runs(make_server, make_home, provider):
    home = make_home()
    tools_of = home.path / "project" / "bin"
    tools_of.mkdir(parents=True)
    server = make_server(provider, home=home, environment={"PATH": os.environ["PATH"] + f":{tools_of}"})
    said = server.client.post("/chats", {"workspace": str(tools_of.parent)}).error(403, "workspace_not_allowed")
    assert "PATH" in said["message"]


def test_with_a_token_only_listed_folders(make_server, provider, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret-token-of-the-server\n")
    token.chmod(0o600)
    listed, other = tmp_path / "listed", tmp_path / "other"
    for path in (listed / "below", other):
        path.mkdir(parents=True)
    server = make_server(provider, config={"token_file": str(token), "workspaces": [str(listed)]}, token="secret-token-of-the-server")
    for path, status in ((listed, 201), (listed / "below", 201), (other, 403), (tmp_path, 403), (server.home.workspace, 201)):
        assert server.client.post("/chats", {"workspace": str(path)}).status == status, path


# --- many ----------------------------------------------------------------------------------------------------------------------------

def test_many_folders_at_once_and_no_file_elsewhere(world):
    """More folders than the server keeps open, in random order, some at the same time."""
    folders = [world.folder(f"many/{i}") for i in range(40)]
    rng = random.Random(30)
    for i, folder in enumerate(folders):
        world.create(f"m{i}", folder)
    for turn in range(80):
        i = rng.randrange(len(folders))
        world.call(f"m{i}", "write_file", {"path": f"turn{turn}", "content": str(i)})
    for i, folder in enumerate(folders):
        assert all(path.read_text() == str(i) for path in folder.iterdir())
    assert sum(len(files_in(folder)) for folder in folders) == 80 and files_in(world.home.workspace) == []


def test_a_run_that_waits_for_a_person_goes_on_in_its_folder_after_a_restart(make_server, make_home, provider):
    home = make_home()
    world = World(make_server(provider, home=home), provider)
    one = world.folder("one")
    provider.plan(tools(call("write_file", {"path": "x", "content": "1"})), text("done"))
    stream = world.client.start("a", "go", workspace=str(one))
    approval = stream.until("approval_required")["approval_id"]
    world.server.stop()
    world = World(make_server(provider, home=home), provider)
    world.client.post(f"/approvals/{approval}", {"approved": True}).expect(200)
    assert world.client.attach("a", "int_001").finish() is not None
    assert (one / "x").read_text() == "1" and files_in(home.workspace) == []
