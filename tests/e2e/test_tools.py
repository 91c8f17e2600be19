"""Tools, called by the scripted provider: confined, tidy and limited."""
import json
import os
import re
import subprocess
import threading

import pytest
from support.provider import call, text, tools
from support.server import API_KEY, processes, sandbox_works, without_bubblewrap, without_note
from support.timing import SLACK, eventually

SECRET = "outside-secret-7731"
sandboxed = pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")


@pytest.fixture
def server(make_server, provider):
    """A server that approves all calls, because these tests are about the most that a tool can do."""
    return make_server(provider, config={"approval_mode": "approve_all"}, environment={"CANARY_SECRET_KEY": SECRET})


class Box:
    def __init__(self, server, provider):
        self.server, self.provider, self.client = server, provider, server.client
        self.workspace = server.home.workspace
        self.turns = 0

    def run(self, tool, **arguments):
        """Makes the model call a tool. Returns the tool_result."""
        self.turns += 1
        self.provider.plan(tools(call(tool, arguments, f"call_{self.turns}")), text("done"))
        return self.client.turn("c", f"turn {self.turns}").one("tool_result")

    def ok(self, tool, **arguments):
        result = self.run(tool, **arguments)
        assert not result["is_error"], result
        return result["tool_output"]

    def refused(self, tool, **arguments):
        result = self.run(tool, **arguments)
        assert result["is_error"], result
        assert SECRET not in result["tool_output"]
        return result["tool_output"]


@pytest.fixture
def box(server, provider):
    return Box(server, provider)


def test_a_model_gets_plain_text_of_a_command_and_people_its_colours(box):
    shown = box.ok("run_shell", command=r"printf '\033[31mred\033[0m\n10 %%\r20 %%\r100 %%\ndone\n'")
    assert without_note(shown) == "\x1b[31mred\x1b[0m\n10 %\r20 %\r100 %\ndone\n"
    told = [m["content"] for m in box.provider.requests[-1].conversation if m["role"] == "tool"]
    assert [without_note(each) for each in told] == ["red\n100 %\ndone\n"]


def without_place(output):
    """Without the line that says where the whole output is kept."""
    return re.sub(r"\(the whole output, [0-9,]+ bytes, is kept in this chat: .*\)$", "", output)


def test_a_model_gets_the_beginning_and_the_end_of_what_a_command_prints(box):
    shown = without_note(without_place(box.ok("run_shell", command="seq 1 10000")))
    lines = "".join(f"{i}\n" for i in range(1, 10_001))
    assert shown == lines, "people see the whole output"
    told = without_note(without_place(box.provider.requests[-1].conversation[-1]["content"]))
    head, rest = told.split("(... ")
    note, tail = rest.split(" ...)\n")
    assert head.startswith("1\n2\n") and tail.endswith("9999\n10000\n") and len(told) < 33 << 10
    assert note.startswith(f"{len(lines) - len(head) - len(tail):,} bytes left out here")
    # The next turn sends the same text, and a replay matches.
    box.ok("run_shell", command="echo more")
    assert any(m["role"] == "tool" and without_note(without_place(m["content"])) == told for m in box.provider.requests[-1].conversation)
    assert box.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]
    # Output that the tool itself could not keep is counted, too.
    box.run("run_shell", command="head -c 5000000 /dev/zero | tr '\\0' x")
    head, rest = box.provider.requests[-1].conversation[-1]["content"].split("(... ")
    note, tail = without_note(without_place(rest)).split(" ...)\n")
    assert note.startswith(f"{5_000_000 - head.count('x') - tail.count('x'):,} bytes left out here")


@pytest.fixture
def outside(box):
    """A secret next to the workspace, and links in the workspace to it."""
    folder = box.server.home.path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    (box.workspace / "link").symlink_to(folder)
    (box.workspace / "filelink").symlink_to(folder / "secret.txt")
    (box.workspace / "dangling").symlink_to(folder / "new.txt")
    (box.workspace / "relative").symlink_to("../outside/secret.txt")
    (box.workspace / "sub").mkdir()
    (box.workspace / "sub" / "up").symlink_to("../..")
    return folder


ESCAPES = ["../outside/secret.txt", "sub/../../outside/secret.txt", "link/secret.txt", "filelink", "relative", "sub/up/outside/secret.txt",
           "/proc/self/root/etc/passwd", "/proc/self/environ", "/etc/passwd", "./../outside/secret.txt", "link/../outside/secret.txt", "//etc/passwd"]


def test_reading_cannot_leave_the_workspace(box, outside):
    for path in [*ESCAPES, str(outside / "secret.txt"), str(box.server.home.keys)]:
        output = box.refused("read_file", path=path)
        assert "root:" not in output and API_KEY not in output


def test_writing_editing_and_deleting_cannot_leave_the_workspace(box, outside):
    for path in [*ESCAPES[:6], "dangling", "../new.txt", "link/new.txt", str(outside / "new.txt"), "/tmp/reprise-escape-test.txt"]:
        box.refused("write_file", path=path, content="owned")
        box.refused("edit_file", path=path, old_text=SECRET, new_text="owned")
    for path in [*ESCAPES[:3], "sub/up/outside/secret.txt"]:
        box.refused("delete_file", path=path)
    assert (outside / "secret.txt").read_text() == SECRET
    assert os.listdir(outside) == ["secret.txt"]
    assert not os.path.exists("/tmp/reprise-escape-test.txt")
    assert sorted(os.listdir(box.server.home.path)) == sorted(set(os.listdir(box.server.home.path)) - {"new.txt"})


def test_listing_and_searching_cannot_leave_the_workspace(box, outside):
    for path in ("..", "link", "/", "/etc", "sub/up", "/proc/self/cwd/.."):
        assert "secret.txt" not in box.refused("list_files", path=path)
    for path in (None, ".", "..", "link", "sub/up"):
        arguments = {"pattern": SECRET[:12], **({"path": path} if path else {})}
        result = box.run("search_files", **arguments)
        assert SECRET not in result["tool_output"]


def test_odd_paths_are_clear_errors(box):
    for path in ("a\0b", "x" * 300, "a/" * 3000, "", "no/such/file", ".", "sub/"):
        assert box.refused("read_file", path=path)


def test_a_swapped_symlink_never_lets_a_write_escape(box, outside):
    """The folder is replaced by a link and back as fast as possible while the tool writes into it."""
    target = box.workspace / "swap"
    target.mkdir()
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            try:
                target.rename(box.workspace / "aside")
                target.symlink_to(outside)
                target.unlink()
                (box.workspace / "aside").rename(target)
            except OSError:
                pass

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(40):
            box.run("write_file", path=f"swap/{number}.txt", content="x")
    finally:
        stop.set()
        thread.join()
    assert os.listdir(outside) == ["secret.txt"]


def test_the_servers_own_files_are_out_of_reach_even_inside_the_workspace(make_server, provider, make_home):
    home = make_home()
    home.data = home.workspace / "chats"
    kept = home.workspace / "chats.plain.20260102T030405Z"  # the name that `decrypt --all --in-place` and similar commands use
    kept.mkdir()
    (kept / "chat.json").write_text("{}")
    server = make_server(provider, home=home, config={"approval_mode": "approve_all"})
    box = Box(server, provider)
    box.ok("echo", text="x")
    file = home.checkpoint_file("c", "int_001")
    before = file.read_bytes()
    inside = f"chats/c/interactions/{file.name}"
    box.refused("read_file", path=inside)
    box.refused("write_file", path=inside, content="{}")
    box.refused("delete_file", path=inside)
    box.refused("write_file", path="chats/new/chat.json", content="{}")
    box.refused("read_file", path=f"{kept.name}/chat.json")
    assert file.read_bytes() == before
    if sandbox_works():
        box.run("run_shell", command=f"rm -rf chats; echo x > {inside}; echo x > {kept.name}/chat.json")
        assert file.read_bytes() == before and (kept / "chat.json").read_text() == "{}"


def test_secrets_of_a_home_that_is_the_workspace_ask(make_server, make_home, provider):
    """Reading needs no approval, except for the user's secrets, in every mode that asks."""
    home = make_home()
    home.workspace = home.user
    (home.user / ".ssh").mkdir()
    (home.user / ".ssh" / "id_rsa").write_text(SECRET)
    (home.user / "notes").write_text("open")
    box = Box(make_server(provider, home=home), provider)
    assert box.ok("read_file", path="notes") == "open"
    assert "1 file or directory where the user keeps secrets was not searched" in box.ok("search_files", pattern=SECRET)
    box.server.stop()
    read = tools(call("read_file", {"path": ".ssh/id_rsa"}))
    for mode in ("ask", "read_only"):
        server = make_server(provider, home=home, config={"approval_mode": mode})
        for number, approved in enumerate((False, True), 1):
            provider.plan(read, text("done"))
            stream = server.client.start(mode, "go")
            asked = stream.until("approval_required")
            assert asked["risk"] == "high" and "secrets" in asked["reason"]
            server.client.approve(mode, f"int_{number:03}", asked["approval_id"], approved, scope="chat").expect(200)
            stream.finish()
            assert (SECRET in stream.one("tool_result")["tool_output"]) == approved
        provider.plan(read, text("done"))  # covered by the grant for the chat
        stream = server.client.start(mode, "go")
        stream.finish()
        assert not stream.all("approval_required") and SECRET in stream.one("tool_result")["tool_output"]
        provider.plan(tools(call("read_file", {"path": ".ssh/../.ssh/id_rsa"})))  # a different call
        stream = server.client.start(mode, "go")
        stream.until("approval_required")
        server.client.post(f"/chats/{mode}/interactions/int_004/cancel").expect(200)
        stream.finish("CANCELLED")
        server.stop()


def test_a_path_approved_as_harmless_does_not_open_a_secret(make_server, make_home, provider):
    """A path that is harmless when the call is asked about, and leads to a secret when it runs."""
    home = make_home()
    home.workspace = home.user
    (home.user / ".ssh").mkdir()
    (home.user / ".ssh" / "id_rsa").write_text(SECRET)
    notes = home.user / "notes"
    config = {"tools": {"require_approval": ["read_file"]}}
    read = tools(call("read_file", {"path": "notes"}))

    def harmless():
        notes.unlink(missing_ok=True)
        notes.write_text("open")

    def swap():
        notes.unlink()
        notes.symlink_to(".ssh/id_rsa")

    def asks_anew(stream, interaction):
        asked = stream.until("approval_required")
        assert asked["risk"] == "high" and "secrets" in asked["reason"]
        client.approve(stream.chat, interaction, asked["approval_id"], False).expect(200)
        stream.finish()
        assert SECRET not in json.dumps([event.data for event in stream.events])

    server = make_server(provider, home=home, config=config)
    client = server.client
    for scope in ("chat", "always"):
        harmless()
        provider.plan(read, text("done"))
        stream = client.start(scope, "go")
        asked = stream.until("approval_required")
        assert "secrets" not in asked["reason"]
        client.approve(scope, "int_001", asked["approval_id"], scope=scope).expect(200)
        stream.finish()
        swap()
        provider.plan(read, text("done"))
        stream = client.start(scope, "go")
        stream.chat = scope
        asks_anew(stream, "int_002")
        for grant in client.get("/grants").expect(200).json["grants"]:
            client.request("DELETE", f"/grants/{grant['id']}")
    harmless()
    provider.plan(read, text("done"))
    stream = client.start("waits", "go")
    asked = stream.until("approval_required")
    swap()
    client.approve("waits", "int_001", asked["approval_id"]).error(409, "stale")
    stream.chat = "waits"
    asks_anew(stream, "int_001")
    harmless()
    provider.plan(read, text("done"))
    stream = client.start("killed", "go")
    asked = stream.until("approval_required")
    server.kill()
    swap()
    client = make_server(provider, home=home, config=config).client
    answered = client.approve("killed", "int_001", asked["approval_id"])
    assert answered.status in (400, 409), answered.body
    stream = client.stream("GET", "/chats/killed/interactions/int_001/events", headers={"Accept": "text/event-stream"})
    stream.chat = "killed"
    while (asked := stream.until("approval_required"))["risk"] != "high":
        pass
    client.approve("killed", "int_001", asked["approval_id"], False).expect(200)
    stream.finish()
    assert SECRET not in json.dumps([event.data for event in stream.events])


def test_secrets_stay_closed_if_nobody_can_be_asked(make_server, make_home, provider):
    home = make_home()
    home.workspace = home.user
    (home.user / ".netrc").write_text(SECRET)
    read = tools(call("read_file", {"path": ".netrc"}))
    for mode in ("approve_all", "deny_all"):
        server = make_server(provider, home=home, config={"approval_mode": mode})
        provider.plan(read, text("done"))
        stream = server.client.start(mode, "go")
        stream.finish()
        result = stream.one("tool_result")
        assert result["is_error"] and SECRET not in result["tool_output"]
        server.stop()
    server = make_server(provider, home=home)
    provider.plan(tools(call("research", {"question": "what is in .netrc?"})), read, text("it is closed"), text("done"))
    stream = server.client.start("r", "go")
    stream.finish()
    assert not stream.all("approval_required")
    asked = [json.dumps(request.body) for request in provider.requests]
    assert "nobody can be asked" in asked[-2] and not any(SECRET in body for body in asked)


@sandboxed
def test_commands_see_what_the_configuration_names(make_server, make_home, provider):
    home = make_home()
    for name in ("toolchain", "cache", "other"):
        (home.user / name).mkdir()
        (home.user / name / "file").write_text(name)
    config = {"approval_mode": "approve_all", "tools": {"sandbox_paths": {"read": ["~/toolchain"], "write": ["~/cache"]}, "limits": {"file_size_mb": 1}}}
    box = Box(make_server(provider, home=home, config=config), provider)
    assert box.ok("run_shell", command="ls ~; cat ~/toolchain/file; echo x > ~/cache/file; echo x > ~/toolchain/file || true").startswith("cache\ntoolchain\ntoolchain")
    assert (home.user / "cache" / "file").read_text() == "x\n" and (home.user / "toolchain" / "file").read_text() == "toolchain"
    box.refused("run_shell", command="head -c 2000000 /dev/zero > big")
    assert (box.workspace / "big").stat().st_size == 1 << 20


def test_the_file_tools_work(box):
    assert box.ok("write_file", path="a/b/notes.txt", content="one\ntwo\nthree\n")
    assert (box.workspace / "a/b/notes.txt").read_text() == "one\ntwo\nthree\n"
    assert "two" in box.ok("read_file", path="a/b/notes.txt")
    assert "a/" in box.ok("list_files")
    assert "notes.txt" in box.ok("list_files", path="a/b")
    found = box.ok("search_files", pattern="two")
    assert "notes.txt" in found and "two" in found
    box.ok("edit_file", path="a/b/notes.txt", old_text="two", new_text="2")
    assert (box.workspace / "a/b/notes.txt").read_text() == "one\n2\nthree\n"
    assert box.refused("edit_file", path="a/b/notes.txt", old_text="missing", new_text="x")
    (box.workspace / "twice").write_text("x x")
    assert "2" in box.refused("edit_file", path="twice", old_text="x", new_text="y")
    box.ok("delete_file", path="a/b/notes.txt")
    assert not (box.workspace / "a/b/notes.txt").exists()


def test_the_simple_tools_work(box):
    assert box.ok("echo", text="hällo") == "hällo"
    assert box.ok("calculator", expression="2+2*3") == "8"
    assert box.ok("calculator", expression="0.1+0.2") == "0.3"
    for wrong in ("1/0", "2+", "(" * 5000, "system('x')", "9" * 400 + "^9999"):
        assert box.refused("calculator", expression=wrong)
    assert "T" in box.ok("current_time")
    assert box.ok("current_time", timezone="Europe/Madrid")
    assert box.refused("current_time", timezone="../../etc/passwd")


def test_the_shell_gets_no_secret_of_the_server(box):
    output = box.ok("run_shell", command="env; echo ---; ls -l /proc/self/fd")
    for secret in (SECRET, API_KEY, "CANARY_SECRET_KEY", "TEST_API_KEY", "XDG_CONFIG_HOME", "REPRISE_"):
        assert secret not in output, secret
    descriptors = [line.split()[-3] for line in output.split("---")[1].splitlines() if "->" in line]
    assert set(descriptors) <= {"0", "1", "2", "3"}, "3 is the folder that ls lists"


@sandboxed
def test_the_shell_cannot_fetch_a_secret_from_another_process(box):
    output = box.ok("run_shell", command="cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; true")
    for secret in (SECRET, API_KEY, "--data-dir"):
        assert secret not in output, secret


@sandboxed
def test_the_shell_cannot_read_the_keys(box):
    home = box.server.home
    result = box.run("run_shell", command=f"cat {home.keys} {home.data}/c/*/* {home.user}/../config/reprise/* 2>&1")
    key = json.loads(home.keys.read_text())["keys"][0]["k"]
    assert key not in result["tool_output"] and "ciphertext" not in result["tool_output"]


@sandboxed
def test_the_shell_can_write_in_the_workspace_only(box, outside):
    box.run("run_shell", command=f"echo x > inside.txt; echo owned > {outside}/secret.txt; echo owned > ../up.txt")
    assert (box.workspace / "inside.txt").read_text() == "x\n"
    assert (outside / "secret.txt").read_text() == SECRET
    assert not (box.server.home.path / "up.txt").exists()


@sandboxed
def test_the_shell_has_no_network(box):
    hits = len(box.provider.requests)
    box.run("run_shell", command=f"curl -s -m 2 http://127.0.0.1:{box.server.port}/healthz; curl -s -m 2 -d {{}} {box.provider.url}/chat/completions")
    assert len(box.provider.requests) == hits + 2


@sandboxed
def test_the_sandbox_is_used_where_there_is_one(box):
    assert "no sandbox" not in box.ok("run_shell", command="true")


def test_the_shells_result_says_how_it_went(box):
    assert sorted(without_note(box.ok("run_shell", command="echo out; echo err >&2")).split()) == ["err", "out"]
    failed = box.refused("run_shell", command="echo before; exit 3")
    assert "3" in failed and "before" in failed
    assert "ö" in box.ok("run_shell", command="printf 'ö'")
    assert "\ufffd" in box.ok("run_shell", command=r"printf '\377\376'")


def test_the_shells_output_is_shown_live_and_bounded(box):
    provider, client = box.provider, box.client
    provider.plan(tools(call("run_shell", {"command": "echo first; echo second"})), text("ok"))
    stream = client.turn("c", "go")
    live = "".join(e["content"] for e in stream.all("tool_output_delta"))
    assert "first" in live and "second" in live
    provider.plan(tools(call("run_shell", {"command": "yes x | head -c 20000000"}, "big")), text("ok"))
    stream = client.turn("c", "much")
    assert len(stream.one("tool_result")["tool_output"]) < 1 << 20


def test_a_time_limit_ends_the_shell_and_its_children(box):
    output = box.refused("run_shell", command="setsid sleep 4711.5 & sleep 4711.5", timeout_s=1)
    assert "time" in output.lower()
    eventually(lambda: not processes("4711.5"), "its processes are gone", 3 * SLACK)


def test_background_children_do_not_outlive_the_call(box):
    box.run("run_shell", command="setsid sleep 4712.5 >/dev/null 2>&1 & echo started", timeout_s=20)
    eventually(lambda: not processes("4712.5"), "its processes are gone", 3 * SLACK)


def test_children_die_with_a_killed_server(make_server, provider):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    provider.plan(tools(call("run_shell", {"command": "setsid sleep 4713.5 & sleep 4713.5", "timeout_s": 600})))
    stream = server.client.start("c", "go")
    stream.until("tool_call")
    eventually(lambda: len(processes("sleep\x004713.5")) >= 2, "the tool runs")
    server.kill()
    stream.close()
    eventually(lambda: not processes("4713.5"), "its processes are gone", 3 * SLACK)


def test_http_get_does_not_reach_this_machine(box):
    hits = len(box.provider.requests)
    port = box.server.port
    provider_port = box.provider.http.server_port
    for url in (f"http://127.0.0.1:{port}/healthz", f"http://localhost:{provider_port}/", f"http://[::1]:{port}/healthz",
                f"http://[::ffff:7f00:1]:{port}/healthz", f"http://0x7f.1:{port}/healthz", f"http://2130706433:{port}/healthz",
                f"http://0.0.0.0:{port}/healthz", "http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "file:///etc/passwd",
                "gopher://127.0.0.1/", "http://", "x", f"http://127.1:{port}/healthz"):
        output = box.refused("http_get", url=url)
        assert "root:" not in output and '"status"' not in output
        hits += 2  # the two requests of the turn itself
        assert len(box.provider.requests) == hits, url


def test_special_files_are_refused(box):
    os.mkfifo(box.workspace / "fifo")
    assert box.refused("read_file", path="fifo")
    assert box.refused("read_file", path="fifo", offset=1)
    (box.workspace / "binary").write_bytes(bytes(range(256)) * 10)
    box.run("read_file", path="binary")
    box.run("search_files", pattern="x")


def test_huge_files_are_read_in_parts(box):
    with open(box.workspace / "huge.txt", "w") as file:
        for number in range(300_000):
            file.write(f"line {number}\n")
    before = box.server.memory_kb()
    result = box.run("read_file", path="huge.txt")
    assert len(result["tool_output"]) < 1 << 20
    assert box.server.memory_kb() - before < 64 * 1024


# --- what the user's own tools run by themselves ---------------------------------------------------------------------

# Each would make the user's own tools run something outside of the sandbox.
TRAPS = ["git config core.fsmonitor ./x.sh", "printf '[core]\\nfsmonitor=./x.sh\\n' >> .git/config", "echo ./x.sh > .git/hooks/post-checkout",
         "mv .git/hooks .git/h; mkdir .git/hooks; echo ./x.sh > .git/hooks/pre-commit", "mv .git old; cp -r old .git; echo >> .git/config",
         "rm -rf .git/config", "ln -sf ../x.sh .git/hooks/pre-push", "cp x.sh .git/config.tmp; mv .git/config.tmp .git/config", "echo >> .git/modules/sub/config",
         "echo x > .git/modules/sub/hooks/pre-commit", "echo >> sub/.git", "rm sub/.git; mkdir sub/.git", "mv sub sub2; mkdir -p sub/.git/hooks", "echo >> .envrc",
         "rm .envrc; echo x > .envrc", "echo >> .vscode/tasks.json", "echo > .vscode/settings.json", "echo >> .idea/workspace.xml", "echo >> deep/er/.vscode/tasks.json",
         "echo >> .npmrc", "echo >> .cargo/config.toml", "chmod 777 .git/config", "sed -i s/a/b/ .envrc", "python3 -c 'open(\".git/config\",\"a\").write(\"x\")'"]


def git(folder, *arguments):
    return subprocess.run(["git", "-c", "user.name=u", "-c", "user.email=u@x", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def repository(box):
    git(box.workspace, "init", "-q", "-b", "main")
    for name in (".envrc", ".vscode/tasks.json", ".idea/workspace.xml", "deep/er/.vscode/tasks.json", ".npmrc", ".cargo/config.toml", ".git/modules/sub/config",
                 ".git/modules/sub/hooks/x", "x.sh"):
        file = box.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("as it was\n")
    (box.workspace / "sub").mkdir()
    (box.workspace / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")
    return box


def obeyed(root):
    """The present content of files that other programs run by themselves."""
    places = [".git/config", ".git/hooks", ".git/modules/sub", "sub/.git", ".envrc", ".vscode", ".idea", "deep/er/.vscode", ".npmrc", ".cargo/config.toml"]
    return {str(file.relative_to(root)): (file.lstat().st_mode, file.is_symlink(), file.read_bytes())
            for place in places for file in [root / place, *(root / place).rglob("*")] if not file.is_dir()}


@sandboxed
def test_files_that_other_programs_run_are_read_only_in_the_sandbox(repository):
    box = repository
    before = obeyed(box.workspace)
    assert len(before) > 20
    for line in TRAPS:
        box.run("run_shell", command=line)
        assert obeyed(box.workspace) == before, line
    box.run("run_code", language="python", code="open('.git/hooks/pre-commit', 'w')")
    assert obeyed(box.workspace) == before


@sandboxed
def test_git_works_in_the_sandbox_all_the_same(repository):
    box = repository
    (box.workspace / "a.txt").write_text("one\n")
    me = "git -c user.name=u -c user.email=u@x"
    for line in (f"git add a.txt && {me} commit -qm one", "git checkout -q -b other", "echo two >> a.txt", f"{me} commit -qam two", "git checkout -q main",
                 f"{me} merge -q other", "git branch -d other", f"{me} tag -a v1 -m x", "git gc -q", f"{me} stash -q || true", "git worktree add -q ../w || git worktree add -q w",
                 "mkdir new && cd new && git init -q && git status", "git mv a.txt b.txt", "mv x.sh deep/er/y.sh"):
        box.ok("run_shell", command=line)
    assert git(box.workspace, "log", "--format=%s") == "two\none\n" and (box.workspace / "b.txt").exists()
    assert (box.workspace / "new" / ".git" / "config").exists()


def test_new_files_that_other_programs_run_are_shown(box):
    """Files that do not exist cannot be protected, so new ones are named in the result, recorded and shown, whatever .gitignore says."""
    git(box.workspace, "init", "-q")
    (box.workspace / ".gitignore").write_text(".envrc\n.vscode/\n*.toml\nnode_modules/\n")
    (box.workspace / ".git" / "hooks").rename(box.workspace / ".git" / "no-hooks")
    output = box.ok("run_shell", command="mkdir -p .git/hooks .vscode node_modules/x .cargo/registry; echo x > .git/hooks/pre-commit; echo x > .envrc; echo x > .vscode/tasks.json;"
                                         "echo x > node_modules/x/y; echo x > .cargo/config.toml; echo x > .cargo/other.toml; echo x > .git/objects/x; echo x > .git/ORIG_HEAD")
    for name in (".git/hooks", ".envrc", ".vscode"):
        assert name in output, output
    box.ok("write_file", path=".git/hooks/pre-push", content="x")
    box.ok("write_file", path="package.json", content='{"scripts": {"test": "x"}}')
    shown = {path for e in box.client.get("/chats/c/interactions/int_001/events?limit=1000").json["events"] if e["type"] == "FILES_CHANGED" for path in e["paths"]}
    assert shown == {".git/hooks/pre-commit", ".envrc", ".vscode/tasks.json", ".cargo/config.toml"} | ({".cargo/registry/"} & shown)
    diff = box.client.get("/chats/c/interactions/int_001/diff").body.decode()
    assert "# git runs or obeys this by itself\ndiff --git a/.git/hooks/pre-commit" in diff and "# direnv runs or obeys this by itself\ndiff --git a/.envrc" in diff
    changed = box.client.get("/chats/c/interactions/int_002/events?limit=1000").json["events"]
    assert [e["paths"] for e in changed if e["type"] == "FILES_CHANGED"] == [[".git/hooks/pre-push"]]
    assert "# the scripts that npm runs have changed\n" in box.client.get("/chats/c/interactions/int_003/diff").body.decode()
    # Files within .git are never restored; others are.
    box.client.post("/chats/c/head", {"interaction_id": "int_001", "files": "restore"}).expect(200)
    assert (box.workspace / ".git" / "hooks" / "pre-push").exists() and not (box.workspace / "package.json").exists()


ASKED = [".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".git/modules/s/config", "sub/.git", ".gitmodules", ".gitattributes", ".envrc", "sub/.envrc",
         ".vscode/tasks.json", "sub/.vscode/settings.json", ".idea/x.xml", ".devcontainer/devcontainer.json", ".husky/pre-commit", ".npmrc", "x.code-workspace", ".mcp.json",
         ".VSCode/tasks.json", "sub/../.envrc", "./.git/config"]


def test_file_tools_ask_despite_grants_about_files_that_others_run(make_server, provider):
    """This holds whatever a rule or grant allows; only approve_all does not ask."""
    rules = [{"tool": name, "action": "allow"} for name in ("write_file", "edit_file", "delete_file")]
    server = make_server(provider, config={"tools": {"rules": rules}})
    (server.home.workspace / "sub").mkdir()
    for i, path in enumerate(ASKED):
        provider.plan(tools(call("write_file", {"path": path, "content": "x"})), text("ok"))
        stream = server.client.start(f"c{i}", "go")
        asked = stream.until("approval_required")
        assert "runs or obeys it by itself" in asked["reason"] and asked["risk"] == "high" and "patterns" not in asked.data, asked
        server.client.approve(f"c{i}", stream.interaction, asked["approval_id"], False).expect(200)
        stream.finish()
        assert not (server.home.workspace / path).exists()
    for path in ("a.txt", "src/config", "docs/hooks/x", "package.json", ".gitignore", ".bashrc"):
        provider.plan(tools(call("write_file", {"path": path, "content": "x"})), text("ok"))
        assert not server.client.turn("d", "go").all("approval_required"), path
    server.stop()
    server = make_server(provider, server.home, config={"approval_mode": "approve_all"})
    provider.plan(tools(call("write_file", {"path": ".envrc", "content": "x"})), text("ok"))
    assert not server.client.turn("e", "go").one("tool_result")["is_error"]


@sandboxed
def test_in_a_home_what_the_shell_reads_is_closed_too(make_server, make_home, provider):
    home = make_home()
    home.workspace = home.user
    for name in (".bashrc", ".profile", "bin/tool", ".config/git/config", ".local/bin/x"):
        (home.user / name).parent.mkdir(parents=True, exist_ok=True)
        (home.user / name).write_text("as it was\n")
    server = make_server(provider, home, config={"approval_mode": "approve_all"})
    box = Box(server, provider)
    for name in (".bashrc", ".profile", "bin/tool", ".config/git/config", ".local/bin/x"):
        box.run("run_shell", command=f"echo x >> {name}; rm -f {name}; mv {name} y")
        assert (home.user / name).read_text() == "as it was\n", name
    assert ".inputrc" in box.ok("run_shell", command="echo x > .inputrc")


# --- never less sandbox than was promised ------------------------------------------------------------------------------

NO_SANDBOX = pytest.mark.skipif(not (sandbox_works() and without_bubblewrap()), reason="bubblewrap cannot be used, or not be hidden, on this machine")


@NO_SANDBOX
@pytest.mark.parametrize("config", [{"approval_mode": "approve_all"}, {"tools": {"rules": [{"tool": "run_*", "action": "allow"}]}},
                                    {"tools": {"rules": [{"tool": "run_shell", "pattern": "echo *", "action": "allow"}]}, "approval_mode": "approve_all"}])
def test_without_the_sandbox_a_command_is_asked_about_whatever_mode_or_rule(make_server, provider, config):
    server = make_server(provider, config=config, wrapper=without_bubblewrap())
    client = server.client
    for i, each in enumerate([call("run_shell", {"command": "echo x > made"}), call("run_shell", {"command": "echo x"}), call("run_code", {"language": "shell", "code": "echo x"})]):
        provider.plan(tools(each), text("ok"))
        stream = client.start(f"c{i}", "go")
        asked = stream.until("approval_required")
        assert "WITHOUT a sandbox (bubblewrap is not installed)" in asked["reason"]
        assert asked["allowed_decisions"] == ["approve", "edit", "reject"] and "patterns" not in asked.data
        client.approve(f"c{i}", stream.interaction, asked["approval_id"], scope="always").error(400, "invalid_answer")
        client.approve(f"c{i}", stream.interaction, asked["approval_id"]).expect(200)
        stream.finish()
        assert "(no sandbox on this machine: bubblewrap is not installed)" in stream.one("tool_result")["tool_output"]
    listed = {t["name"]: t for t in client.get("/tools").expect(200, "tools").json["tools"]}
    for name in ("run_shell", "run_code"):
        assert listed[name]["lacks"] == "bubblewrap is not installed" and listed[name]["requires_approval"] is True
    assert "lacks" not in listed["write_file"]
    assert "the sandbox for commands is not whole" in server.log() and "bubblewrap is not installed" in server.log()


@NO_SANDBOX
def test_a_sandbox_that_comes_to_work_is_found(make_server, provider, tmp_path):
    """The server looks again for a missing sandbox, not only at its start."""
    marker = tmp_path / "mounted"
    hide = 'mount --bind /dev/null /usr/bin/bwrap; (while [ ! -e "$MARKER" ]; do sleep 0.1; done; umount /usr/bin/bwrap; rm "$MARKER") & exec "$@"'
    server = make_server(provider, config={"approval_mode": "approve_all"}, wrapper=["unshare", "-m", "sh", "-c", hide, "sh"], environment={"MARKER": str(marker)})

    def lacks():
        return next(t for t in server.client.get("/tools").json["tools"] if t["name"] == "run_shell").get("lacks")
    assert lacks() == "bubblewrap is not installed"
    marker.touch()
    eventually(lambda: not marker.exists(), "bubblewrap is there again")
    eventually(lambda: lacks() is None, "the sandbox is found", 60)
    provider.plan(tools(call("run_shell", {"command": "ls /home /root 2>&1; id -u"})), text("ok"))
    assert "no sandbox" not in server.client.turn("c", "go").one("tool_result")["tool_output"]


@sandboxed
@pytest.mark.skipif(os.getuid() != 0, reason="only root may become somebody else")
def test_a_small_limit_of_processes_takes_no_part_of_the_sandbox_away(make_server, provider):
    server = make_server(provider, config={"approval_mode": "approve_all"}, wrapper=["/usr/bin/prlimit", "--nproc=500:500", "--"])
    provider.plan(tools(call("run_shell", {"command": "grep processes /proc/self/limits"})), text("ok"))
    output = server.client.turn("c", "go").one("tool_result")["tool_output"]
    assert "no sandbox" not in output and output.split()[2:4] == ["500", "500"], output
