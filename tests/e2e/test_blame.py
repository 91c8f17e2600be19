"""`reprise blame`: which turn wrote each line of a file, from what chats have recorded."""
import hashlib
import json
import os
import re
import shutil
import subprocess
import uuid

import jsonschema
import pytest
from support import schemas
from support.provider import call, text, tools
from support.server import BINARY
from support.timing import SOON

OTHERS = "you or others"


class World:
    def __init__(self, make_server, home, provider, plain=False, mode="approve_all"):
        self.home, self.provider, self.plain, self.root = home, provider, plain, home.workspace
        self.server = make_server(provider, home=home, plain=plain, config={"approval_mode": mode})
        self.client = self.server.client

    def turn(self, *calls, chat="a", **more):
        self.plan(calls)
        return self.client.turn(chat, "go", **more)

    def plan(self, calls):
        named = [call(name, arguments, f"call_{i}") for i, (name, arguments) in enumerate(calls, 1)]
        self.provider.plan(*[tools(one) for one in named], text("done"))

    def run(self, *arguments, status=0):
        command = [str(BINARY), "blame", *map(str, arguments), "--data-dir", str(self.home.data), *(["--plain"] if self.plain else [])]
        done = subprocess.run(command, cwd=self.root, env=self.home.environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=SOON, check=False)
        assert done.returncode == status, (done.returncode, done.stdout[-1000:], done.stderr[-1000:])
        return done.stdout.decode(), done.stderr.decode()

    def ranges(self, *arguments, **more):
        found = [json.loads(line) for line in self.run(*arguments, "--json", **more)[0].splitlines()]
        for each in found:
            schemas.check("blame", each)
        return found

    def origins(self, *arguments, **more):
        """For each line its turn and tool, or None."""
        lines = []
        for each in self.ranges(*arguments, **more):
            assert each["from"] == len(lines) + 1, each
            who = f"{each['chat_id']}/{each['interaction_id']} {each['tool']}" if each["by"] == "agent" else None
            lines += [who] * (each["to"] - each["from"] + 1)
        return lines


@pytest.fixture(params=["sealed", "plain"])
def world(request, make_server, make_home, provider):
    return World(make_server, make_home(), provider, plain=request.param == "plain")


def write(path, content):
    return "write_file", {"path": path, "content": content}


def shell(command):
    return "run_shell", {"command": command}


def edit(path, old, new):
    return "edit_file", {"path": path, "old_text": old, "new_text": new}


def test_every_kind_of_change_has_its_origin(world):
    file = world.root / "main.py"
    file.write_text("import os\n\ndef mine():\n    return 1\n")
    world.turn(("read_file", {"path": "main.py"}), write("main.py", file.read_text() + "\ndef first():\n    return 2\n"))
    world.turn(edit("main.py", "    return 2\n", "    return 3\n    # edited\n"))
    file.write_text(file.read_text().replace("    # edited", "    # edited by hand") + "by_hand = True\n")
    world.turn(shell("sed -i 's/return 1/return 11/' main.py"), chat="b")
    assert world.origins("main.py") == [None, None, None, "b/int_001 run_shell", "a/int_001 write_file", "a/int_001 write_file",
                                        "a/int_002 edit_file", None, None]
    # A rename by a command, and one by hand.
    world.turn(shell("mkdir lib && mv main.py lib/main.py && echo 'more = 1' >> lib/main.py"), chat="b")
    (world.root / "lib" / "main.py").rename(world.root / "final.py")
    after = [None, None, None, "b/int_001 run_shell", "a/int_001 write_file", "a/int_001 write_file", "a/int_002 edit_file", None, None,
             "b/int_002 run_shell"]
    assert world.origins("final.py") == after
    assert world.origins(str(world.root / "final.py")) == after
    # From another working directory, by a symbolic link.
    os.symlink(world.root / "final.py", world.home.path / "link")
    assert world.origins(world.home.path / "link") == after


def test_an_undo_with_files_brings_the_origins_back(world):
    world.turn(write("f", "one\ntwo\nthree\n"))
    world.turn(write("f", "other\n"))
    assert world.origins("f") == ["a/int_002 write_file"]
    world.plan([shell("echo four >> f")])
    world.client.edit("a", "int_002", "again", files="restore").finish()
    assert (world.root / "f").read_text() == "one\ntwo\nthree\nfour\n"
    assert world.origins("f") == ["a/int_001 write_file"] * 3 + ["a/int_003 run_shell"]
    # What a forced restore overwrites is not the agent's.
    (world.root / "f").write_text("one\nby hand\n")
    world.client.post("/chats/a/head", {"interaction_id": "int_002", "files": "restore", "force": True}).expect(200)
    assert world.origins("f") == ["a/int_002 write_file"]
    (world.root / "f").write_text("one\nby hand\n")
    assert world.origins("f") == ["a/int_001 write_file", None]


def test_who_allowed_it_and_what_was_read(make_server, make_home, provider):
    world = World(make_server, make_home(), provider, mode="ask")
    (world.root / "notes.md").write_text("read me\n")
    world.plan([("read_file", {"path": "notes.md"}), write("f", "asked\n"), write("f", "asked\ngranted\n")])
    stream = world.client.start("a", "go")
    for scope in ("once", "chat"):
        request = stream.until("approval_required").data
        world.client.approve("a", "int_001", request["approval_id"], scope=scope).expect(200)
    stream.finish()
    asked, = [each for each in world.ranges("f") if each["from"] == 1]
    assert asked["read_before"] == ["notes.md"] and asked["model"] and asked["call_id"] == "call_2"
    assert asked["approval"]["by"] == "you" and asked["approval"]["scope"] == "once"
    arguments = json.dumps({"path": "f", "content": "asked\n"})
    assert asked["approval"]["arguments_digest"] == "sha256:" + hashlib.sha256(arguments.encode()).hexdigest()
    lines = world.run("f")[0].splitlines()
    assert re.fullmatch(r"a/int_001  write_file  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  you  1  asked", lines[0]), lines


def test_a_grant_and_a_mode_are_named(make_server, make_home, provider):
    world = World(make_server, make_home(), provider, mode="ask")
    command = shell("date +%s%N >> log")
    world.plan([command])
    stream = world.client.start("a", "go")
    request = stream.until("approval_required").data
    world.client.approve("a", "int_001", request["approval_id"], scope="chat").expect(200)
    stream.finish()
    world.turn(command)
    world.turn(command, chat="b", approval_mode="approve_all")
    by = [(each["chat_id"], each["interaction_id"], each["approval"]["by"]) for each in world.ranges("log")]
    assert by == [("a", "int_001", "you"), ("a", "int_002", "grant"), ("b", "int_001", "auto")]
    assert [each["approval"].get("reason") for each in world.ranges("log")] == [None, "grant", "mode"]


def test_ranges_notes_and_the_form_for_other_programs(world):
    world.turn(write("src/f.c", "a\nb\nc\n"))
    (world.root / "src" / "f.c").write_text("a\nmine\nb\nc\n")
    assert [(each["from"], each["to"], each["by"]) for each in world.ranges("src/f.c")] == [(1, 1, "agent"), (2, 2, "others"), (3, 4, "agent")]
    assert [(each["from"], each["to"]) for each in world.ranges("src/f.c:2-3")] == [(2, 2), (3, 3)]
    assert [(each["from"], each["to"]) for each in world.ranges("src/f.c:4")] == [(4, 4)]
    digest = hashlib.sha256(b"a\nmine\nb\nc\n").hexdigest()
    note = world.run("src/f.c", "--notes")[0].splitlines()
    assert note[0] == f"Reprise: who wrote src/f.c (sha256:{digest})" and note[2] == f"2  {OTHERS}"
    assert re.fullmatch(r"3-4  a/int_001  write_file  \S+Z  allowed by auto  \S+", note[3]), note
    record = json.loads(world.run("src/f.c", "--format", "agent-trace")[0])
    jsonschema.Draft202012Validator(TRACE_RECORD, format_checker=jsonschema.FormatChecker()).validate(record)
    assert uuid.UUID(record["id"]).version == 4 and record["version"] == "0.1.0"
    file, = record["files"]
    assert file["path"] == "src/f.c"
    ours, others = file["conversations"]
    assert ours["url"] == "reprise:a/int_001" and ours["contributor"]["type"] == "ai" and ours["contributor"]["model_id"]
    assert [(r["start_line"], r["end_line"]) for r in ours["ranges"]] == [(1, 1), (3, 4)]
    assert ours["ranges"][1]["content_hash"] == "sha256:" + hashlib.sha256(b"b\nc\n").hexdigest()
    assert others["contributor"] == {"type": "unknown"} and "url" not in others
    # Paths begin at the git work tree.
    (world.root / "src" / ".git").mkdir()
    assert json.loads(world.run("src/f.c", "--format", "agent-trace")[0])["files"][0]["path"] == "f.c"


# The members that Agent Trace 0.1.0 describes (https://agent-trace.dev), and which of them it requires.
_CONTRIBUTOR = {"type": "object", "required": ["type"], "properties": {"type": {"enum": ["human", "ai", "mixed", "unknown"]}, "model_id": {"type": "string", "maxLength": 250}}}
_LINE = {"type": "integer", "minimum": 1}
_RANGE = {"type": "object", "required": ["start_line", "end_line"], "properties": {
    "start_line": _LINE, "end_line": _LINE, "content_hash": {"type": "string"}, "contributor": _CONTRIBUTOR}}
_CONVERSATION = {"type": "object", "required": ["ranges"], "properties": {
    "url": {"type": "string", "format": "uri"}, "contributor": _CONTRIBUTOR, "ranges": {"type": "array", "items": _RANGE}}}
_FILE = {"type": "object", "required": ["path", "conversations"], "properties": {"path": {"type": "string"}, "conversations": {"type": "array", "items": _CONVERSATION}}}
TRACE_RECORD = {"type": "object", "required": ["version", "id", "timestamp", "files"], "properties": {
    "version": {"type": "string", "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$"}, "id": {"type": "string", "format": "uuid"}, "timestamp": {"type": "string", "format": "date-time"},
    "tool": {"type": "object", "required": ["name", "version"], "properties": {"name": {"type": "string"}, "version": {"type": "string"}}},
    "files": {"type": "array", "items": _FILE}, "metadata": {"type": "object"}}}


def test_forks_and_imports_add_nothing(world):
    world.turn(write("f", "one\n"))
    world.client.post("/chats/a/fork", {"interaction_id": "int_001", "chat_id": "0-copy"}).expect(201)
    assert world.origins("f") == ["a/int_001 write_file"]
    world.turn(shell("echo two >> f"), chat="0-copy")
    assert world.origins("f") == ["a/int_001 write_file", "0-copy/int_002 run_shell"]
    document = world.client.get("/chats/a/export").expect(200).json
    world.client.post("/import?as=foreign", {k: v for k, v in document.items() if k != "usage"}).expect(201)
    world.client.request("DELETE", "/chats/a").expect(200)
    world.client.request("DELETE", "/chats/0-copy").expect(200)
    assert world.origins("f") == [None, None]


def test_chats_elsewhere_count_only_for_files_of_their_folders(world):
    inner = world.root / "inner"
    inner.mkdir()
    outside = world.home.path / "outside"
    outside.mkdir()
    world.turn(write("f", "by the inner\n"), chat="inner", workspace=str(inner))
    world.turn(shell("echo 'by the outer' >> inner/f"), chat="outer")
    world.turn(write("f", "elsewhere\n"), chat="elsewhere", workspace=str(outside))
    assert world.origins("inner/f") == ["inner/int_001 write_file", "outer/int_001 run_shell"]
    assert world.origins(outside / "f") == ["elsewhere/int_001 write_file"]
    # A chat that was moved away still counts for the folder in which it began.
    world.client.request("PATCH", "/chats/inner", {"workspace": str(outside)}).expect(200)
    assert world.origins("inner/f") == ["inner/int_001 write_file", "outer/int_001 run_shell"]


def test_what_is_hostile_is_shown_and_cannot_steer(world):
    world.turn(write("f", "\x1b[31mred\tx\r\n\u202eevil\n"))
    out, _ = world.run("f")
    assert "\x1b" not in out and "\u202e" not in out and "<U+001B>[31mred    x\n" in out and "<U+202E>evil" in out


def test_wrong_files_and_ranges_are_named(world):
    world.turn(write("f", "one\ntwo\n"))
    (world.root / "empty").write_text("")
    (world.root / "binary").write_bytes(b"a\0b\n")
    (world.root / "latin").write_bytes(b"caf\xe9\n")
    (world.root / "a:7").write_text("x\n")
    (world.root / "large").write_bytes(b"x" * (11 << 20))
    os.mkfifo(world.root / "pipe")
    outside = world.home.path / "outside.txt"
    outside.write_text("x\n")
    for arguments, status, message in [
            (["missing"], 1, "there is no file missing"), (["missing:3"], 1, "there is no file missing"), (["."], 1, "is not a regular file"),
            (["pipe"], 1, "is not a regular file"), (["binary"], 1, "is a binary file"), (["large"], 1, "more than 10 MiB"),
            ([outside], 1, "no chat in"), (["f:3"], 1, "f has only 2 lines"), (["f:1-3"], 1, "f has only 2 lines"), (["empty:1"], 1, "has only 0 lines"),
            (["f:0"], 2, "no range of lines"), (["f:2-1"], 2, "no range of lines"), (["f:-"], 2, "no range of lines"),
            (["f:99999999999999999999999"], 2, "no range of lines"), (["f:x"], 1, "there is no file f:x"), ([], 2, "FILE"),
            (["f", "--json", "--notes"], 2, "--notes"), (["f", "--format", "git"], 2, "agent-trace")]:
        out, said = world.run(*arguments, status=status)
        assert out == "" and message in said and said.count("\n") == 1, (arguments, said)
    assert world.run("empty") == ("", "") and world.origins("latin") == [None] and world.origins("a:7") == [None]
    assert "caf\ufffd" in world.run("latin")[0]


def test_a_data_folder_without_chats(make_home):
    home = make_home()
    (home.workspace / "f").write_text("x\n")
    done = subprocess.run([str(BINARY), "blame", "f", "--plain", "--data-dir", str(home.data)], cwd=home.workspace, env=home.environment(), capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and "there is no data folder" in done.stderr


def test_damage_is_named_and_the_rest_goes_on(world):
    world.server.check_files = world.server.check_records = False
    world.turn(write("f", "one\n"))
    world.turn(shell("echo two >> f"))
    world.turn(shell("echo three >> f"), chat="b")
    world.turn(shell("echo four >> f"), chat="c")
    world.server.stop()  # else it writes chat.json again
    file = world.home.checkpoint_file("b", "int_001")
    file.write_text(file.read_text()[:100])
    out, said = world.run("f", status=1)
    assert said.startswith("reprise: b/interactions/int_001.json: ") and said.count("\n") == 1
    assert world.origins("f", status=1) == ["a/int_001 write_file", "a/int_002 run_shell", None, "c/int_001 run_shell"], out
    (world.home.data / "c" / "chat.json").write_text('{"x": 1}')
    out, said = world.run("f", status=1)
    assert "reprise: c/chat.json: " in said and said.count("\n") == 2, said
    assert out.splitlines()[3].startswith(OTHERS)


def test_lost_contents_are_nobodys(world):
    world.server.check_files = world.server.check_records = False
    world.turn(write("f", "one\n"))
    world.turn(shell("echo two >> f"))
    world.turn(shell("echo three >> f"))
    blobs = [path for path in (world.home.data / "a" / "blobs").glob("*.json") if len(path.stem) == 64]
    assert len(blobs) == 3
    shutil.rmtree(world.home.data / "a" / "blobs")
    out, said = world.run("f")
    assert [line.startswith(OTHERS) for line in out.splitlines()] == [True] * 3
    assert said == "reprise: 3 recorded contents cannot be read, so lines of the agent may count as those of others\n"


def test_colours_are_for_terminals(world, open_terminal):
    world.turn(write("f", "one\n"))
    assert "\x1b" not in world.run("f")[0]
    plain = ["--plain"] if world.plain else []
    terminal = open_terminal(world.home, "blame", world.root / "f", "--data-dir", world.home.data, *plain).until("one")
    assert b"\x1b[" in terminal.raw
