"""Folders that vanish, cannot be read or written, or are full, and project files that change under a run: clear errors that name the folder, and nothing is lost."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
from support.provider import Gate, Reply, call, text, tools
from support.server import BINARY, Home, sandbox_works
from test_folder_config import own_configuration
from test_folders import World, files_in

ALL = {"approval_mode": "approve_all"}
UNTIL_GONE = [("write_file", {"path": "x", "content": "2"}), ("read_file", {"path": "x"}), ("edit_file", {"path": "x", "old_text": "1", "new_text": "2"}),
              ("list_files", {}), ("find_files", {"pattern": "**"}), ("search_files", {"pattern": "1"}), ("delete_file", {"path": "x"}), ("run_shell", {"command": "true"}),
              ("run_shell", {"command": "true", "background": True}), ("run_code", {"language": "shell", "code": "true"})]


@pytest.fixture
def world(make_server, provider):
    return World(make_server(provider, config=ALL), provider)


def in_mid_run(world, chat, act, name, arguments):
    """Acts while the model is asked, which then calls a tool. Returns the run's stream, read to its end."""
    gate, reply = Gate(), tools(call(name, arguments))
    world.provider.plan(Reply([gate, *reply.steps]), text("done"))
    stream = world.client.start(chat, "go")
    gate.wait_reached()
    act()
    gate.release()
    stream.finish()
    return stream


def refused(world, chat, status, code, *words):
    message = world.client.post(f"/chats/{chat}/interactions", {"user_message": "go"}).error(status, code)["message"]
    assert all(word in message for word in words), message


# --- a folder that vanishes ---------------------------------------------------------------------------------------------------------

def test_a_folder_that_vanishes_between_turns_is_named_with_what_to_do(world):
    one = world.folder("one")
    world.create("a", one)
    for content in "01":
        world.call("a", "write_file", {"path": "x", "content": content})
    shutil.rmtree(one)
    refused(world, "a", 404, "no_such_workspace", str(one), "PATCH")
    for method, path, body in (("POST", "/chats/a/undo", {"files": "restore"}), ("POST", "/chats/a/workspace/files", {"path": "x"}), ("GET", "/workspace/files?chat_id=a", None),
                               ("GET", "/tools?chat_id=a", None), ("GET", "/instructions?chat_id=a", None)):
        assert str(one) in world.client.request(method, path, body).error(404, "no_such_workspace")["message"], path
    assert len(world.client.history("a")["interactions"]) == 2 and world.client.get("/chats/a/export").status == 200
    one.mkdir()  # it comes back
    world.call("a", "write_file", {"path": "x", "content": "2"})
    assert (one / "x").read_text() == "2"


@pytest.mark.limit(120)
@pytest.mark.parametrize("how", ["gone", "file", "link"])
def test_a_folder_that_vanishes_during_a_run(world, how):
    two = world.folder("two")
    for number, (name, arguments) in enumerate(UNTIL_GONE):
        one, away, chat = world.folder(f"one{number}"), world.home.path / f"away{number}", f"chat{number}"
        world.create(chat, one)
        world.call(chat, "write_file", {"path": "x", "content": "1"})

        def act(one=one, away=away):
            one.rename(away)
            if how == "file":
                one.write_text("a file")
            if how == "link":
                one.symlink_to(two)
        result = in_mid_run(world, chat, act, name, arguments).one("tool_result")
        assert result["is_error"] and str(one) in result["tool_output"], result
        assert files_in(away) == ["x"] and files_in(two) == [] and len(world.client.history(chat)["interactions"]) == 2
        refused(world, chat, 404, "no_such_workspace", str(one))
    # The chat goes on where the folder is now.
    world.client.request("PATCH", f"/chats/{chat}", {"workspace": str(away)}).expect(200)
    assert world.call(chat, "read_file", {"path": "x"}) == "1"


@pytest.mark.parametrize("runs", [False, True], ids=["no server", "a server runs"])
def test_one_message_in_a_folder_that_cannot_be_used_says_so_and_works_in_no_other(tmp_path, runs):
    home = Home(tmp_path / "user")
    work, gone = home.path / "work", home.path / "gone"
    bad, other = (pathlib.Path(os.fsdecode(os.fsencode(home.path) + name)) for name in (b"/bad\xff", b"/bad\xef\xbf\xbd"))
    for folder in (work, bad, other):
        folder.mkdir()
    flags = ["--approval-mode", "approve_all"]
    server = None
    if runs:
        server = subprocess.Popen([str(BINARY), "serve", "--port", "0", *flags], cwd=work, env=home.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert b"listening" in server.stdout.readline()

    def complaint(cwd, *arguments, command=("-p", "write x: 1"), **variables):
        done = subprocess.run([str(BINARY), *command, *flags, *arguments], cwd=cwd, env=home.environment(**variables), stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert done.returncode == 1 and b"--workspace DIR names another" in done.stderr, done
        return done.stderr
    try:
        for said in (complaint(bad), complaint(work, "--workspace", bad), complaint(work, REPRISE_WORKSPACE=bad), complaint(bad, command=["serve", "--port", "0"])):
            assert b"is not UTF-8" in said
        assert b"there is no folder nope to work in" in complaint(work, "--workspace", "nope")
        assert bytes(gone) in complaint(work, "--workspace", gone)
        inside = lambda: (gone.mkdir(), os.chdir(gone), gone.rmdir())  # noqa: E731
        done = subprocess.run([str(BINARY), "-p", "write x: 1", *flags], preexec_fn=inside, env=home.environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert done.returncode == 1 and b"the current folder has been deleted or moved; --workspace DIR names another" in done.stderr, done
        for folder in (work, bad, other):
            assert files_in(folder) == []
    finally:
        if server:
            server.terminate()
            server.communicate()


# --- what cannot be read or written -------------------------------------------------------------------------------------------------

@pytest.fixture
def nobody(make_server, provider):
    """A server of a user who is not root."""
    if os.getuid() != 0:
        yield World(make_server(provider, config=ALL), provider)
        return
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folder is closed to other users
        os.chmod(folder, 0o711)
        home, user = Home(pathlib.Path(folder) / "user"), "65534"
        run = 'chown -R "$1:$1" "$2" && user=$1 && shift 2 && exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"'
        wrapper = ["/bin/sh", "-c", run, "sh", user, str(home.path)]
        if subprocess.run([*wrapper, str(BINARY), "--version"], capture_output=True, check=False).returncode != 0:
            pytest.skip("no other user may run the program here")
        world = World(make_server(provider, home, config=ALL, wrapper=wrapper), provider)
        world.server.check_records = False  # whose key is not root's
        yield world
        world.server.close()


def as_theirs(world, *paths):
    if os.getuid() == 0:
        for path in paths:
            shutil.chown(path, 65534, 65534)


def test_a_folder_that_cannot_be_read(nobody):
    one = nobody.folder("one")
    as_theirs(nobody, one)
    one.chmod(0)
    said = nobody.create("a", one).error(403, "workspace_not_allowed")["message"]
    assert str(one) in said and "read" in said
    one.chmod(0o755)
    nobody.create("a", one).expect(201)
    nobody.call("a", "write_file", {"path": "x", "content": "1"})
    one.chmod(0)
    refused(nobody, "a", 403, "workspace_not_allowed", str(one), "read")
    one.chmod(0o755)
    result = in_mid_run(nobody, "a", lambda: one.chmod(0), "write_file", {"path": "x", "content": "2"}).one("tool_result")
    assert result["is_error"] and "permission denied" in result["tool_output"], result
    one.chmod(0o755)
    assert nobody.call("a", "read_file", {"path": "x"}) == "1"


def test_a_folder_that_cannot_be_written(nobody):
    one = nobody.folder("one")
    (one / "x").write_text("1")
    as_theirs(nobody, one, one / "x")
    one.chmod(0o555)
    nobody.create("a", one).expect(201)
    assert nobody.call("a", "read_file", {"path": "x"}) == "1"
    for name, arguments in (("write_file", {"path": "y", "content": "2"}), ("edit_file", {"path": "x", "old_text": "1", "new_text": "2"}), ("delete_file", {"path": "x"})):
        assert "permission denied" in nobody.call("a", name, arguments)
    if sandbox_works():
        assert "ermission denied" in nobody.call("a", "run_shell", {"command": "touch y"})
    assert files_in(one) == ["x"] and (one / "x").read_text() == "1"
    one.chmod(0o755)


def test_what_cannot_be_read_in_a_folder_is_named_by_searches(nobody):
    one = nobody.folder("one")
    (one / "closed").mkdir()
    (one / "file").write_text("needle")
    as_theirs(nobody, one, one / "closed", one / "file")
    nobody.create("a", one).expect(201)
    (one / "closed").chmod(0)
    (one / "file").chmod(0)
    for path in ({}, {"path": "."}):
        assert nobody.call("a", "search_files", {"pattern": "needle", **path}) == '(no line matches)\n(not searched, because they cannot be read: "closed" and 1 more)'
    assert "(incomplete: 1 directory cannot be read)" in nobody.call("a", "find_files", {"pattern": "**/x"})
    (one / "closed").chmod(0o755)


@pytest.fixture
def mounted(world):
    """Mounts a small file system as a folder of chats."""
    mounts = []

    def make(name, options):
        path = world.folder(name)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            pytest.skip(f"cannot mount a file system: {done.stderr.decode().strip()}")
        mounts.append(path)
        return path
    yield make
    for path in mounts:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_folder_on_a_full_disk(world, mounted):
    one = mounted("one", "size=256k,mode=755")
    world.create("a", one)
    world.call("a", "write_file", {"path": "x", "content": "one\n" * 100})
    world.call("a", "write_file", {"path": "y", "content": "two\n"})
    large = "z" * 200_000
    for name, arguments in (("write_file", {"path": "x", "content": large * 2}), ("write_file", {"path": "new", "content": large * 2}),
                            ("edit_file", {"path": "y", "old_text": "two", "new_text": large * 2})):
        said = world.call("a", name, arguments)
        assert "no space left" in said, said
    assert (one / "x").read_text() == "one\n" * 100 and (one / "y").read_text() == "two\n" and files_in(one) == ["x", "y"], "nothing is half written or left behind"
    if sandbox_works():
        assert "No space left" in world.call("a", "run_shell", {"command": "head -c 400000 /dev/zero > big"})
        world.call("a", "run_shell", {"command": "rm big"})
    world.call("a", "write_file", {"path": "y", "content": "three\n"})
    world.client.post("/chats/a/undo", {"files": "restore"}).expect(200)
    assert (one / "y").read_text() == "two\n"


def test_a_folder_on_a_read_only_disk(world, mounted):
    one = mounted("one", "size=256k,mode=755")
    (one / "x").write_text("1")
    world.create("a", one)
    world.call("a", "read_file", {"path": "x"})
    world.call("a", "write_file", {"path": "x", "content": "2"})
    subprocess.run(["mount", "-o", "remount,ro", str(one)], check=True)
    for name, arguments in (("write_file", {"path": "y", "content": "2"}), ("edit_file", {"path": "x", "old_text": "2", "new_text": "3"}), ("delete_file", {"path": "x"})):
        said = world.call("a", name, arguments)
        assert "read-only" in said, said
    if sandbox_works():
        assert "Read-only" in world.call("a", "run_shell", {"command": "touch y"})
    assert world.call("a", "read_file", {"path": "x"}) == "2"
    subprocess.run(["mount", "-o", "remount,rw", str(one)], check=True)
    world.client.post("/chats/a/head", {"interaction_id": "int_001", "files": "restore"}).expect(200)
    assert (one / "x").read_text() == "1"


# --- project files that change under a run ------------------------------------------------------------------------------------------

def test_project_files_that_change_under_a_run(make_server, provider):
    world = World(make_server(provider, config=ALL), provider)
    own_configuration(world.home, provider)
    one = world.folder("one")
    settings, instructions = one / "reprise.json", one / "AGENTS.md"
    settings.write_text(json.dumps({"model": "test/first", "max_rounds": 5}))
    instructions.write_text("speak of apples")
    world.home.trust(settings)
    world.home.trust(instructions)
    world.create("a", one)

    def act():
        settings.write_text(json.dumps({"model": "test/second", "max_rounds": 1, "tools": {"deny": ["write_file"]}}))
        instructions.write_text("speak of pears")
    stream = in_mid_run(world, "a", act, "write_file", {"path": "x", "content": "1"})
    assert not stream.one("tool_result")["is_error"] and (one / "x").read_text() == "1"
    assert [request.body["model"] for request in provider.requests] == ["first", "first"], "a run keeps what it began with"
    assert "pears" not in json.dumps(provider.requests[-1].messages)
    refused(world, "a", 403, "untrusted", str(settings), "reprise trust")
    world.home.trust(settings)
    provider.plan(text("yes"))
    world.client.turn("a", "again")
    assert provider.requests[-1].body["model"] == "second" and not re.search("apples|pears", json.dumps(provider.requests[-1].messages[0]))


@pytest.mark.parametrize("content", ["{", "", "[]", '{"max_rounds": "x"}', None])
def test_a_file_that_breaks_under_a_run(world, content):
    one = world.folder("one")
    file = one / "reprise.json"
    file.write_text(json.dumps({"max_rounds": 5}))
    own_configuration(world.home, world.provider)
    world.home.trust(file)
    world.create("a", one)
    act = file.unlink if content is None else lambda: file.write_text(content)
    assert not in_mid_run(world, "a", act, "write_file", {"path": "x", "content": "1"}).one("tool_result")["is_error"]
    if content is None:
        world.call("a", "write_file", {"path": "x", "content": "2"})
    else:
        refused(world, "a", 403, "untrusted", str(file))
    assert len(world.client.history("a")["interactions"]) == (2 if content is None else 1)
