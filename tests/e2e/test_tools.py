"""Tools, driven by the scripted provider: contained, clean, bounded."""
import json
import os
import threading

import pytest
from support.provider import call, text, tools
from support.server import API_KEY, processes, sandbox_works, without_note
from support.timing import SLACK, eventually

SECRET = "outside-secret-7731"
sandboxed = pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")


@pytest.fixture
def server(make_server, provider):
    """Nothing asks here: what a tool can do at most is what counts."""
    return make_server(provider, config={"approval_mode": "approve_all"}, environment={"CANARY_SECRET_KEY": SECRET})


class Box:
    def __init__(self, server, provider):
        self.server, self.provider, self.client = server, provider, server.client
        self.workspace = server.home.workspace
        self.turns = 0

    def run(self, tool, **arguments):
        """Lets the model call a tool: its tool_result."""
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


@pytest.fixture
def outside(box):
    """A secret next to the workspace, and links in the workspace that lead to it."""
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
    """The folder turns into a link and back as fast as it can while the tool writes into it."""
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
    kept = home.workspace / "chats.plain.20260102T030405Z"  # as `decrypt --all --in-place` and the like keep them
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
    """Reading does not ask, but for what the user keeps secret, in every mode that asks at all."""
    home = make_home()
    home.workspace = home.user
    (home.user / ".ssh").mkdir()
    (home.user / ".ssh" / "id_rsa").write_text(SECRET)
    (home.user / "notes").write_text("open")
    box = Box(make_server(provider, home=home), provider)
    assert box.ok("read_file", path="notes") == "open"
    assert "1 files or directories where the user keeps secrets were not searched" in box.ok("search_files", pattern=SECRET)
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
        provider.plan(read, text("done"))  # granted for the chat
        stream = server.client.start(mode, "go")
        stream.finish()
        assert not stream.all("approval_required") and SECRET in stream.one("tool_result")["tool_output"]
        provider.plan(tools(call("read_file", {"path": ".ssh/../.ssh/id_rsa"})))  # another call
        stream = server.client.start(mode, "go")
        stream.until("approval_required")
        server.client.post(f"/chats/{mode}/interactions/int_004/cancel").expect(200)
        stream.finish("CANCELLED")
        server.stop()


def test_what_was_agreed_to_as_no_secret_does_not_open_one(make_server, make_home, provider):
    """A path that was harmless when it was asked about, and leads to a secret when its turn comes."""
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


def test_secrets_stay_closed_where_nobody_is_asked(make_server, make_home, provider):
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
    assert set(descriptors) <= {"0", "1", "2", "3"}, "3 is the folder that ls reads"


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
        hits += 2  # the turn's own two requests
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
