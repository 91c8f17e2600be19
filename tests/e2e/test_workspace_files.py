"""Workspace files that a person names in a message: found by GET /workspace/files, copied into the chat by POST .../workspace/files."""
import contextlib
import json
import os
import socket
import subprocess
import threading
import time
import urllib.parse

import pytest
from support.people import OPERATOR, api_token, as_user, token_file
from support.provider import call, text, tools
from support.server import API_KEY
from support.timing import SLACK

NEEDLE = "the-vault-opens-at-nine"


def make(workspace, *paths, content="x"):
    for path in paths:
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def find(client, words="", **more):
    query = urllib.parse.urlencode({"q": words, **more})
    return client.get(f"/workspace/files?{query}").expect(200, "workspace_files").json


def found(client, words="", **more):
    return [each["path"] for each in find(client, words, **more)["files"]]


def attach(client, path, chat="c"):
    return client.post(f"/chats/{chat}/workspace/files", {"path": path})


def refused(client, path, status, code=None):
    """The error message of a refusal; asserts that nothing was stored and no chat was created."""
    error = attach(client, path).error(status, code)
    assert client.get("/chats").json["chats"] == [] and NEEDLE not in json.dumps(error)
    return error["message"]


# --- finding ----------------------------------------------------------------------------------------------------------

def test_what_is_most_likely_meant_comes_first(server):
    workspace = server.home.workspace
    make(workspace, "main.cc", "src/main.cc", "src/domain.cc", "src/Main_window.cc", "main/other.txt", "maintenance/deep/notes.txt", "\u00dcbung.txt",
         ".hidden/main.cc", "my notes.txt")
    answer = find(server.client, "main")
    # Order: the path begins with the words, the name begins with them, the name contains them, a folder does; then less deep and shorter first.
    assert [each["path"] for each in answer["files"]] == ["main.cc", "main/other.txt", "maintenance/deep/notes.txt", "src/main.cc", ".hidden/main.cc",
                                                          "src/Main_window.cc", "src/domain.cc"]
    assert answer["complete"] and answer["files"][0] == {"path": "main.cc", "size_bytes": 1}
    assert found(server.client, "MAIN_W") == ["src/Main_window.cc"], "case does not matter"
    assert found(server.client, "\u00fcb") == ["\u00dcbung.txt"]
    assert found(server.client, "./src/main.") == ["src/main.cc"]
    assert found(server.client, "my n") == ["my notes.txt"]
    assert found(server.client, "s.c") == [], "the words are no pattern"
    assert found(server.client)[0] == "main.cc" and found(server.client)[-1] == ".hidden/main.cc"
    cut = find(server.client, "main", limit=2)
    assert [each["path"] for each in cut["files"]] == ["main.cc", "main/other.txt"] and not cut["complete"]
    (workspace / "main.cc").unlink()
    make(workspace, "src/new_main.cc")
    assert "main.cc" not in found(server.client, "main") and "src/new_main.cc" in found(server.client, "main"), "the listing is not cached"


def test_what_is_ignored_is_not_found_and_can_be_named(server):
    workspace = server.home.workspace
    make(workspace, "kept.txt", "build/kept.o", "src/kept.log", "src/own/kept.tmp", "src/own/kept.md", ".git/kept", ".env")
    (workspace / ".gitignore").write_text("build/\n*.log\n.env\n")
    (workspace / "src/own/.gitignore").write_text("*.tmp\n")
    assert found(server.client, "kept") == ["kept.txt", "src/own/kept.md"] and found(server.client, ".env") == []
    for path in ("build/kept.o", "src/kept.log", ".env"):
        attach(server.client, path).expect(201, "chat_file")


def test_rules_above_a_workspace_within_a_work_tree_count(make_server, make_home):
    home = make_home()
    (home.workspace / ".git" / "info").mkdir(parents=True)
    (home.workspace / ".git" / "info" / "exclude").write_text("*.excluded\n")
    (home.workspace / ".gitignore").write_text("/inner/out/\n")
    make(home.workspace, "inner/out/a.txt", "inner/a.txt", "inner/a.excluded", "a.txt")
    server = make_server(home=home, arguments=["--workspace", home.workspace / "inner"])
    assert found(server.client) == ["a.txt"]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "limit=-1", "limit=", "q=%ff%fe", "q=%c3", "q=" + "x" * 1025])
def test_bad_questions(server, query):
    assert "limit" in server.client.get(f"/workspace/files?{query}").error(400, "invalid_parameter")["message"] or query.startswith("q")


def test_strange_words_find_nothing(server):
    make(server.home.workspace, "a.txt")
    for words in ("\0", "../", "/", "/etc", "a\nb", "\u202e", "[", "(", "\\", "*", "?", ".*", "x" * 1024):
        assert found(server.client, words) == [], words


def test_only_names_that_can_be_seen_and_typed_are_found(server):
    workspace = os.fsencode(server.home.workspace)
    for name in (b"plain", b"with\nline", b"with\ttab", b"with\"quote", b"not\xffutf8",
                 *(each.encode() for each in ("flip\u202eped", "zero\u200bwidth", "combi\u0301"))):
        with open(os.path.join(workspace, name), "w"):
            pass
    os.mkdir(os.path.join(workspace, b"dir\xff"))
    with open(os.path.join(workspace, b"dir\xff", b"inner"), "w"):
        pass
    assert sorted(found(server.client)) == sorted(["plain", "combi\u0301"])


def test_links_lead_nowhere_else_and_pipes_are_left_alone(server):
    workspace = server.home.workspace
    outside = server.home.path / "outside"
    make(outside, "secret.txt", content=NEEDLE)
    make(workspace, "real/a.txt")
    (workspace / "inside.txt").symlink_to("real/a.txt")
    (workspace / "folder").symlink_to("real")
    (workspace / "out.txt").symlink_to(outside / "secret.txt")
    (workspace / "up.txt").symlink_to("../outside/secret.txt")
    (workspace / "out").symlink_to(outside)
    (workspace / "loop").symlink_to("loop")
    (workspace / "dangling").symlink_to("nothing")
    (workspace / "magic").symlink_to("/proc/self/environ")
    os.mkfifo(workspace / "pipe")
    (workspace / "to-pipe").symlink_to("pipe")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(str(workspace / "socket"))
        assert found(server.client) == ["inside.txt", "real/a.txt"]
        for path in ("out.txt", "up.txt", "out/secret.txt", "magic", "loop", "../outside/secret.txt", "real/../../outside/secret.txt",
                     str(outside / "secret.txt"), "/proc/self/environ", "/etc/passwd"):
            refused(server.client, path, 403)
        for path in ("pipe", "to-pipe", "socket", "real", "folder", ".", "real/a.txt/b", "..."):
            assert attach(server.client, path).status in (400, 404), path
        assert server.client.get("/chats").json["chats"] == []
    for path in ("inside.txt", "folder/a.txt", "real/../real/a.txt", str(workspace / "real" / "a.txt")):
        assert attach(server.client, path).expect(201, "chat_file").json["size_bytes"] == 1


# --- attaching --------------------------------------------------------------------------------------------------------

def test_a_named_file_goes_to_the_model_as_an_upload_does(server, provider):
    make(server.home.workspace, "docs/notes.txt", content="the words of the notes\n")
    client = server.client
    answer = attach(client, "docs/notes.txt").expect(201, "chat_file")
    file = answer.json
    assert file["filename"] == "notes.txt" and answer.headers["Location"] == f"/chats/c/files/{file['id']}"
    assert client.get(answer.headers["Location"]).expect(200).body == b"the words of the notes\n"
    # An upload of the same content by the terminal client is the same file.
    uploaded = client.request("POST", "/chats/c/files?name=notes.txt", b"the words of the notes\n", headers={"Content-Type": "application/octet-stream"})
    assert uploaded.expect(201, "chat_file").json["id"] == file["id"]
    provider.plan(text("read"))
    client.turn("c", "look at @docs/notes.txt", attachments=[file["id"]])
    assert client.interaction("c", "int_001")["user_message"] == "look at @docs/notes.txt"
    said = next(each["content"] for each in provider.requests[-1].conversation if each["role"] == "user")
    assert "the words of the notes" in said
    # The attached copy is unchanged; naming the file again attaches its present content.
    make(server.home.workspace, "docs/notes.txt", content="other words\n")
    assert client.get(f"/chats/c/files/{file['id']}").body == b"the words of the notes\n"
    again = attach(client, "docs/notes.txt").expect(201, "chat_file").json
    assert again["id"] != file["id"] and client.get(f"/chats/c/files/{again['id']}").body == b"other words\n"


@pytest.mark.parametrize("body", [
    b"", b"{}", b"[]", b'{"path":""}', b'{"path":7}', b'{"path":null}', b'{"path":"a.txt","more":1}', b'{"path":"\xff"}', b'{"path":"\\ud800"}',
    b'{"path":["a.txt"]}', b'{"path":"a.txt","path":"b.txt"}', b'{"path":"a.txt\\u0000.png"}',
    b'{"path":"' + b"x" * 256 + b'"}', b'{"path":"' + b"x/" * 3000 + b'"}'])
def test_bodies_that_name_no_file(server, body):
    make(server.home.workspace, "a.txt", "b.txt")
    server.client.post("/chats/c/workspace/files", body, headers={"Content-Type": "application/json"}).error(400)
    assert server.client.get("/chats").json["chats"] == []


def test_what_is_not_there_or_no_chat(server):
    make(server.home.workspace, "a.txt")
    assert "no such file" in refused(server.client, "b.txt", 404, "no_such_file")
    attach(server.client, "a.txt", chat="bad%20id").error(400)
    server.client.get("/chats/c/workspace/files").error(405)
    server.client.post("/workspace/files", {"path": "a.txt"}).error(405)


def test_too_large_files_and_chats_that_are_full(make_server):
    server = make_server(config={"files": {"max_file_bytes": 100_000, "max_chat_bytes": 150_000}})
    for name, size in (("just", 100_000), ("beyond", 100_001), ("other", 100_000)):
        (server.home.workspace / name).write_bytes(os.urandom(size))
    with open(server.home.workspace / "huge", "wb") as sparse:
        sparse.truncate(1 << 40)
    assert found(server.client, "huge") == ["huge"]
    for name in ("beyond", "huge"):
        refused(server.client, name, 413, "file_too_large")
    attach(server.client, "just").expect(201, "chat_file")
    attach(server.client, "other").error(507, "chat_files_full")


def test_a_file_that_changes_all_the_time_is_read_as_it_was_at_some_time(server):
    place = server.home.workspace / "moving.txt"
    contents = [b"a" * 300_000, b"b" * 10, b"", b"c" * 300_000]
    place.write_bytes(contents[0])
    over = threading.Event()

    def replace():
        count = 0
        while not over.is_set():
            count += 1
            new = server.home.workspace / "new.txt"
            new.write_bytes(contents[count % len(contents)])
            new.rename(place)
            if count % 7 == 0:
                place.unlink()
                place.symlink_to("/etc/passwd")
                new.symlink_to("/etc/passwd")
                new.rename(place)

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(150):
            answer = attach(server.client, "moving.txt")
            assert answer.status in (201, 403, 404), answer.body
            if answer.status == 201:
                kept = server.client.get(f"/chats/c/files/{answer.json['id']}").body
                assert kept in contents, "one complete version"
            find(server.client, "moving")
    finally:
        over.set()
        writer.join()


# --- what the agent may not read --------------------------------------------------------------------------------------

def test_secrets_of_a_home_that_is_the_workspace(make_server, make_home):
    home = make_home()
    home.workspace = home.user
    for path in (".ssh/id_rsa", ".netrc", ".aws/credentials", ".config/gh/hosts.yml"):
        make(home.user, path, content=NEEDLE)
    make(home.user, "project/.ssh/example.txt", "project/id_rsa.txt")
    (home.user / "link").symlink_to(".ssh/id_rsa")
    (home.user / "keys").symlink_to(".ssh")
    client = make_server(home=home).client
    assert sorted(found(client)) == ["project/.ssh/example.txt", "project/id_rsa.txt"], "only the place makes a file a secret"
    for path in (".ssh/id_rsa", ".SSH/id_rsa", "link", "keys/id_rsa", "./.ssh/../.ssh/id_rsa", ".netrc", str(home.user / ".netrc"), ".config/gh/hosts.yml"):
        if not (home.user / path).exists():
            continue  # the file system is case-sensitive
        assert "secrets" in refused(client, path, 403, "not_readable")
    # The error does not reveal whether the file exists.
    assert refused(client, ".ssh/id_ed25519", 403, "not_readable") == refused(client, ".ssh/id_rsa", 403, "not_readable")


def test_the_servers_own_files_are_out_of_reach(make_server, make_home):
    home = make_home()
    home.data = home.workspace / "chats"
    server = make_server(home=home)
    server.client.turn("before", "echo hello")
    make(home.workspace, "a.txt")
    assert found(server.client) == ["a.txt"]
    own = next(each for each in home.data.rglob("int_001.json"))
    attach(server.client, str(own.relative_to(home.workspace))).error(403)
    assert [each["id"] for each in server.client.get("/chats").json["chats"]] == ["before"]


@pytest.mark.parametrize("settings, readable", [
    ({"tools": {"rules": [{"tool": "read_file", "pattern": "private/**", "action": "deny"}]}}, ["a.txt", "link.txt"]),
    ({"tools": {"rules": [{"tool": "read_file", "pattern": "private/**", "action": "ask"}]}, "approval_mode": "approve_all"}, ["a.txt", "link.txt"]),
    ({"tools": {"rules": [{"tool": "read_*", "action": "deny"}]}}, []),
    ({"tools": {"deny": ["read_file"]}}, []),
    ({"tools": {"allow": ["calculator"]}}, []),
    ({"tools": {"require_approval": ["read_file"]}}, []),
    ({"tools": {"require_approval": ["read_file"], "rules": [{"tool": "read_file", "pattern": "a.txt", "action": "allow"}]}}, ["a.txt"]),
    ({"approval_mode": "deny_all"}, ["a.txt", "link.txt", "private/in.txt", "private/to-it.txt"]),
], ids=["denied by a rule", "asked by a rule", "all denied by a rule", "tool denied", "tool not allowed", "asks", "asks but for one", "no questions"])
def test_files_that_tools_may_not_read_unasked_cannot_be_named(make_server, provider, settings, readable):
    server = make_server(provider, config=settings)
    workspace = server.home.workspace
    make(workspace, "a.txt", "private/in.txt")
    (workspace / "link.txt").symlink_to("a.txt")
    (workspace / "private" / "to-it.txt").symlink_to("in.txt")
    client = server.client
    assert found(client) == readable
    for path in ("a.txt", "link.txt", "private/in.txt", "private/to-it.txt", "private/../private/in.txt"):
        may = path in readable or "/../" in path and "private/in.txt" in readable
        assert attach(client, path, chat="c").status == (201 if may else 403), path
    # The tool itself decides the same.
    for number, path in enumerate(("a.txt", "private/in.txt")):
        provider.plan(tools(call("read_file", {"path": path}, f"call_{number}")), text("done"))
        stream = client.start(f"by_tool_{number}", "read it")
        event = stream.next()
        while event.name not in ("approval_required", "tool_result"):
            event = stream.next()
        assert (event.name == "tool_result" and not event["is_error"]) == (path in readable), (path, event)
        if event.name == "approval_required":
            client.approve(f"by_tool_{number}", stream.interaction, event["approval_id"], approved=False)
        stream.finish()


def test_a_link_into_what_is_denied_is_denied(make_server):
    server = make_server(config={"tools": {"rules": [{"tool": "read_file", "pattern": "private/**", "action": "deny"}]}})
    make(server.home.workspace, "private/in.txt", content=NEEDLE)
    (server.home.workspace / "harmless.txt").symlink_to("private/in.txt")
    (server.home.workspace / "open").symlink_to("private")
    assert found(server.client) == []
    for path in ("harmless.txt", "open/in.txt", "open/../private/in.txt"):
        refused(server.client, path, 403)


def test_keys_that_the_server_knows_are_taken_out_of_texts(server):
    make(server.home.workspace, "settings.json", content=f'{{"api_key": "{API_KEY}"}}')
    file = attach(server.client, "settings.json").expect(201, "chat_file").json
    assert server.client.get(f"/chats/c/files/{file['id']}").body == b'{"api_key": "[redacted]"}'


# --- several people ---------------------------------------------------------------------------------------------------

def people(make_server, home, **more):
    config = {"auth": {"type": "tokens"}, "model": "offline", **more}
    server = make_server(home=home, config=config, arguments=["--token-file", token_file(home)], token=OPERATOR)
    return server, *(as_user(server, api_token(home, user, "--org", "acme")["token"]) for user in ("alice", "bob"))


def test_without_a_workspace_there_is_nothing_to_name(make_server, make_home):
    home = make_home()
    make(home.workspace, "a.txt")
    server, alice, _ = people(make_server, home)
    for client in (alice, server.client):
        assert "no workspace" in client.get("/workspace/files").error(404, "no_workspace")["message"]
        attach(client, "a.txt").error(404, "no_workspace")
        assert client.get("/chats").json["chats"] == []


def test_everyone_can_name_files_of_a_shared_workspace_and_copies_stay_private(make_server, make_home):
    home = make_home()
    make(home.workspace, "a.txt", content="shared words")
    _, alice, bob = people(make_server, home, workspace_mode="shared")
    assert found(alice) == found(bob) == ["a.txt"]
    file = attach(alice, "a.txt").expect(201, "chat_file").json
    assert alice.get(f"/chats/c/files/{file['id']}").body == b"shared words"
    bob.get(f"/chats/c/files/{file['id']}").error(404)
    assert bob.get("/chats").json["chats"] == []


# --- large work trees -------------------------------------------------------------------------------------------------

def build_tree(root, folders, files):
    """Builds the tree in a separate program, which is ten times as fast."""
    script = """import os, sys
root, folders, files = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for n in range(folders):
    folder = f"{root}/part{n % 40}/module{n}"
    os.makedirs(folder)
    for k in range(files):
        os.close(os.open(f"{folder}/file{k}.txt", os.O_CREAT | os.O_WRONLY))
"""
    subprocess.run(["python3", "-c", script, str(root), str(folders), str(files)], check=True)


@pytest.mark.limit(120)
def test_a_work_tree_of_100000_files_is_looked_through_in_a_second(make_server, figure):
    server = make_server(config={"workspace_history": False})
    workspace = server.home.workspace
    build_tree(workspace, 2500, 40)
    make(workspace, "part3/module43/needle.txt")
    (workspace / ".gitignore").write_text("*.o\n/out/\n!keep.o\n")
    over = threading.Event()
    slowest = 0.0

    def look():
        nonlocal slowest
        while not over.is_set():
            begun = time.monotonic()
            server.client.get("/healthz").expect(200)
            slowest = max(slowest, time.monotonic() - begun)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        times = []
        for words in ("needle", "file3", "", "no such file"):
            begun = time.monotonic()
            answer = find(server.client, words)
            times.append(time.monotonic() - begun)
            assert times[-1] < 2 * SLACK, "the time is bounded"
            if words == "needle" and answer["complete"]:
                assert [each["path"] for each in answer["files"]] == ["part3/module43/needle.txt"]
            if words == "file3":
                assert not answer["complete"]
                assert len(answer["files"]) == 20 or times[-1] > 0.9, "fewer only if a busy machine used up the second"
    finally:
        over.set()
        watcher.join()
    figure(f"naming a file among 100,000: {', '.join(f'{t * 1000:.0f}' for t in times)} ms; the slowest other answer meanwhile {slowest * 1000:.0f} ms")
    assert slowest < 0.5 * SLACK, "other requests do not wait for it"


def test_folders_without_an_end(server):
    """Folders nested deeper than the longest path, and a folder that contains itself through a link."""
    place = os.open(server.home.workspace, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d" * 50, dir_fd=place)
        below = os.open("d" * 50, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.symlink("/" + "../" * 3, "up", dir_fd=place)
    os.close(os.open("lost.txt", os.O_CREAT | os.O_WRONLY, dir_fd=place))
    os.close(place)
    make(server.home.workspace, "a.txt")
    assert found(server.client, ".txt") == ["a.txt"]
    subprocess.run(["rm", "-rf", str(server.home.workspace / ("d" * 50))], check=True)
