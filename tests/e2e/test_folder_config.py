"""The reprise.json of a folder: a layer of the configuration for the chats that work there, once a person has allowed it."""
import hashlib
import json
import os
import random
import re
import subprocess
import sys

import pytest
from support.provider import call, text, tools
from support.server import BINARY
from support.terminal import Terminal
from support.timing import SOON, eventually
from test_folders import World, files_in

MODES = {"one": "approve_all", "two": "deny_all", "three": "read_only"}


@pytest.fixture
def world(make_server, provider):
    return World(make_server(provider), provider)


def own_configuration(home, provider):
    """The user's file, which has the provider: without it no folder's model can be shown."""
    own = home.config / "reprise" / "reprise.json"
    own.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    own.touch(mode=0o600)
    own.write_text(json.dumps({"model": "test/usual", "providers": {"test": {"type": "openai", "base_url": provider.url, "api_key": "${TEST_API_KEY}"}}}))


def allow_as_it_is(home, file):
    """Allows a file that `reprise trust` refuses."""
    trusted = home.config / "reprise" / "trusted.json"
    listed = json.loads(trusted.read_text())
    listed["files"][str(file)] = "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()
    trusted.write_text(json.dumps(listed))


def configure(world, folder, allow=True, **settings):
    file = folder / "reprise.json"
    file.write_text(json.dumps(settings))
    own_configuration(world.home, world.provider)
    if allow:
        world.home.trust(file)
    return file


def asked(world):
    return world.provider.requests[-1].body


# --- what a folder's file may set ------------------------------------------------------------------------------------------------

def test_chats_have_the_settings_of_their_folder_alone(world):
    one, two = world.folder("one"), world.folder("two")
    (one / "prompt").mkdir()
    (one / "prompt" / "50-words.md").write_text("speak of apples")
    configure(world, one, approval_mode="approve_all", model="test/of-one", max_rounds=1, tools={"deny": ["calculator"]}, prompt_dir="prompt",
              guardrails={"input": ["forbidden"]}, budget={"max_tokens_per_interaction": 100000})
    world.home.trust(one / "prompt" / "50-words.md")
    world.provider.plan(tools(call("write_file", {"path": "x", "content": "1"})))
    assert world.client.turn("a", "go", "FAILED", workspace=str(one)).one("tool_result")["tool_output"]
    assert files_in(one) == ["prompt/50-words.md", "reprise.json", "x"], "nobody was asked, and there is no second round"
    assert asked(world)["model"] == "of-one" and "apples" in json.dumps(asked(world)["messages"])
    assert "calculator" not in [each["function"]["name"] for each in asked(world)["tools"]]
    world.client.post("/chats/a/interactions", {"user_message": "forbidden"}).error(400, "guardrail")
    there = world.client.get(f"/tools?workspace={one}").expect(200, "tools").json
    assert there["approval_mode"] == "approve_all" and "calculator" not in [each["name"] for each in there["tools"]]
    # None of it elsewhere.
    for chat, more in (("b", {"workspace": str(two)}), ("c", {})):
        world.provider.plan(tools(call("write_file", {"path": "x", "content": "1"})), text("done"))
        stream = world.client.start(chat, "forbidden", **more)
        approval = stream.until("approval_required")
        world.client.approve(chat, "int_001", approval["approval_id"]).expect(200)
        stream.finish()
        assert asked(world)["model"] != "of-one" and "apples" not in json.dumps(asked(world)["messages"])
        assert "calculator" in [each["function"]["name"] for each in asked(world)["tools"]]


def test_rules_and_hooks_of_a_folder(world):
    one, two = world.folder("one"), world.folder("two")
    configure(world, one, approval_mode="approve_all", tools={"rules": [{"tool": "write_file", "pattern": "secret", "action": "deny"}]},
              hooks=[{"event": "before_tool", "tool": "echo", "command": ["/bin/sh", "-c", "cat > heard"]}])
    configure(world, two, approval_mode="approve_all")
    assert "denies it" in world.call("a", "write_file", {"path": "secret", "content": "1"}, workspace=str(one))
    world.call("b", "write_file", {"path": "secret", "content": "1"}, workspace=str(two))
    for chat in ("a", "b"):
        world.call(chat, "echo", {"text": "hi"})
    assert files_in(one) == ["heard", "reprise.json"] and files_in(two) == ["reprise.json", "secret"]


def test_secrets_of_a_folder_are_redacted_there(make_server, make_home, provider):
    home = make_home()
    world = World(make_server(provider, home, config={"approval_mode": "approve_all"}, environment={"FOLDER_SECRET": "canary-of-one-folder"}), provider)
    one = world.folder("one")
    (one / "x").write_text("it says canary-of-one-folder")
    configure_with = {"environment": {"FOLDER_SECRET": "canary-of-one-folder"}}
    (one / "reprise.json").write_text(json.dumps({"mcpServers": {"none": {"url": "http://127.0.0.1:9/", "headers": {"Authorization": "${FOLDER_SECRET}"}}}}))
    world.home.trust(one / "reprise.json", **configure_with)
    assert "canary" not in world.call("a", "read_file", {"path": "x"}, workspace=str(one))


@pytest.mark.parametrize("settings, key", [
    ({"port": 1}, "port"), ({"host": "::1"}, "host"), ({"data_dir": "x"}, "data_dir"), ({"plain": True}, "plain"), ({"key_file": "k"}, "key_file"),
    ({"token_file": "t"}, "token_file"), ({"public_hosts": ["a.example"]}, "public_hosts"), ({"workspaces": ["/srv"]}, "workspaces"),
    ({"store": {"type": "files"}}, "store"), ({"auth": {"type": "tokens"}}, "auth"), ({"telemetry": {"content": True}}, "telemetry"),
    ({"providers": {}}, "providers"), ({"budget": {"max_tokens_per_day": 5}}, "budget.max_tokens_per_day"), ({"log_level": "debug"}, "log_level"),
    ({"models": {"test/x": {"input_price_per_mtok": 1, "output_price_per_mtok": 1}}}, "models.test/x.input_price_per_mtok"),
    ({"mcpServers": {"m": {"command": "true", "shared": True}}}, "mcpServers.m.shared")])
def test_a_key_of_the_server_is_refused_by_name(world, settings, key):
    one = world.folder("one")
    file = configure(world, one)
    configure(world, one, allow=False, **settings)
    allow_as_it_is(world.home, file)
    error = world.client.post("/chats/a/interactions", {"user_message": "go", "workspace": str(one)}).error(400, "invalid_config")
    assert f'"{key}"' in error["message"] and str(file) in error["message"] and "server" in error["message"], error
    assert not world.provider.requests or "go" not in json.dumps(asked(world))
    configure(world, one, max_rounds=3)
    world.provider.plan(text("yes"))
    world.client.turn("a", "go")


# --- trust -------------------------------------------------------------------------------------------------------------------------

def test_a_file_counts_as_it_was_allowed_and_a_turn_sees_each_change(world):
    one = world.folder("one")
    refused = lambda: world.client.post("/chats/a/interactions", {"user_message": "go", "workspace": str(one)}).error(403, "untrusted")["message"]
    file = configure(world, one, allow=False, approval_mode="approve_all")
    assert re.search(rf"{file} .*`reprise trust {file} --workspace {one}`", refused())
    world.home.trust(file)
    world.call("a", "write_file", {"path": "x", "content": "1"}, workspace=str(one))
    configure(world, one, allow=False, approval_mode="approve_all", model="test/other")
    assert str(file) in refused()
    world.client.get("/tools?chat_id=a").error(403, "untrusted")
    world.home.trust(file)
    world.call("a", "write_file", {"path": "x", "content": "2"})
    assert asked(world)["model"] == "other"
    world.home.trust("--revoke", file)
    assert str(file) in refused()
    file.unlink()
    world.provider.plan(tools(call("write_file", {"path": "x", "content": "3"})), text("done"))
    stream = world.client.start("a", "go")
    stream.until("approval_required")
    stream.close()
    assert (one / "x").read_text() == "2"


@pytest.mark.parametrize("content", ["{", "[]", '{"max_rounds": "many"}', '{"no_such_key": 1}', "\xff", ""])
def test_a_file_that_is_wrong_is_refused_even_if_it_is_allowed(world, content):
    one = world.folder("one")
    file = one / "reprise.json"
    file.write_text("{}")
    world.home.trust(file)
    file.write_bytes(content.encode("latin-1"))
    world.client.post("/chats/a/interactions", {"user_message": "go", "workspace": str(one)}).error(403, "untrusted")
    allow_as_it_is(world.home, file)
    error = world.client.post("/chats/a/interactions", {"user_message": "go", "workspace": str(one)}).error(400, "invalid_config")
    assert str(file) in error["message"]
    assert not world.provider.requests


def test_the_file_of_the_server_s_own_folder_is_read_anew_too(make_server, make_home, provider):
    home = make_home()
    file = home.workspace / "reprise.json"
    file.write_text('{"approval_mode": "approve_all"}')
    own_configuration(home, provider)
    home.trust(file)
    world = World(make_server(provider, home), provider)
    world.call("a", "write_file", {"path": "x", "content": "1"})
    file.write_text('{"approval_mode": "approve_all", "model": "test/later"}')
    world.client.post("/chats/a/interactions", {"user_message": "go"}).error(403, "untrusted")
    home.trust(file)
    world.call("a", "write_file", {"path": "x", "content": "2"})
    assert asked(world)["model"] == "later"
    # The settings of this folder are no other's.
    two = world.folder("two")
    world.provider.plan(tools(call("write_file", {"path": "x", "content": "1"})), text("done"))
    stream = world.client.start("b", "go", workspace=str(two))
    stream.until("approval_required")
    stream.close()


def test_a_mode_that_denies_all_for_the_whole_server_cannot_be_loosened(make_server, provider):
    world = World(make_server(provider, config={"approval_mode": "deny_all"}), provider)
    one = world.folder("one")
    configure(world, one, approval_mode="approve_all")
    world.call("a", "write_file", {"path": "x", "content": "1"}, workspace=str(one))
    assert files_in(one) == ["reprise.json"]
    world.client.post("/chats/a/interactions", {"user_message": "go", "approval_mode": "approve_all"}).error(403, "mode_not_allowed")


# --- MCP servers -------------------------------------------------------------------------------------------------------------------

SERVER = """
import json, os, sys
print(os.getpid(), file=open(sys.argv[1], "a"), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}
    if message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": "from %d" % os.getpid()}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("shared", [False, True])
def test_a_shared_server_is_one_process_for_all_folders(make_server, make_home, provider, shared):
    home = make_home()
    program, started = home.path / "server.py", home.path / "started"
    program.write_text(SERVER)
    servers = {"m": {"command": sys.executable, "args": [str(program), str(started)], **({"shared": True} if shared else {})}}
    world = World(make_server(provider, home, config={"mcpServers": servers}), provider)
    ready = lambda folder: [each["state"] for each in world.client.get(f"/tools?workspace={folder}").expect(200).json["servers"]] == ["ready"]
    for name in ("one", "two"):
        folder = world.folder(name)
        eventually(lambda folder=folder: ready(folder), "the server is ready")
    assert len(started.read_text().split()) == (1 if shared else 3)


def test_a_server_of_a_folder_is_no_other_s(world):
    program = world.home.path / "server.py"
    program.write_text(SERVER)
    one, two = world.folder("one"), world.folder("two")
    configure(world, one, mcpServers={"m": {"command": sys.executable, "args": [str(program), str(world.home.path / "started")]}})
    configure(world, two, mcpServers={"n": {"command": sys.executable, "args": [str(program), str(world.home.path / "started")]}})
    names = lambda folder: [(each["name"], each["state"]) for each in world.client.get(f"/tools?workspace={folder}").expect(200).json["servers"]]
    eventually(lambda: names(one) == [("m", "ready")] and names(two) == [("n", "ready")], "both are ready")
    assert names(world.home.workspace) == []


# --- many folders ------------------------------------------------------------------------------------------------------------------

def test_two_hundred_random_turns_in_three_folders(make_server, provider):
    world = World(make_server(provider), provider)
    folders = {name: world.folder(name) for name in MODES}
    for name, folder in folders.items():
        (folder / "AGENTS.md").write_text("word of " + name)
        configure(world, folder, approval_mode=MODES[name], model="test/" + name)
        world.home.trust(folder / "AGENTS.md")
    dice, written = random.Random(int(os.environ.get("REPRISE_FOLDERS_SEED", "30"))), {name: {} for name in MODES}
    chats = {f"chat-{i}": name for i, name in enumerate(sorted(MODES) * 3)}
    for turn in range(200):
        chat, name = dice.choice(sorted(chats.items()))
        path = f"f{dice.randrange(6)}"
        does_write = MODES[name] != "read_only" and dice.random() < .6
        arguments = {"path": path, "content": str(turn)} if does_write else {"path": path}
        world.provider.plan(tools(call("write_file" if does_write else "read_file", arguments)), text("done"))
        said = world.client.turn(chat, "go", workspace=str(folders[name])).one("tool_result")["tool_output"]
        body, messages = asked(world), json.dumps(asked(world)["messages"])
        assert body["model"] == name and [word for word in MODES if "word of " + word in messages] == [name], (turn, name)
        if does_write and MODES[name] == "approve_all":
            written[name][path] = str(turn)
        elif not does_write and path in written[name]:
            assert written[name][path] in said, (turn, name)
    for name, folder in folders.items():
        assert {file.name: file.read_text() for file in folder.glob("f?")} == written[name]
    assert files_in(world.home.workspace) == []


# --- clients -----------------------------------------------------------------------------------------------------------------------

class Clients:
    """Clients of one user, whose own configuration has the provider."""

    def __init__(self, home, provider):
        self.home, self.provider = home, provider
        own_configuration(home, provider)

    def folder(self, name, allow=True, **settings):
        path = self.home.path / name
        path.mkdir(exist_ok=True)
        if settings:
            (path / "reprise.json").write_text(json.dumps(settings))
            if allow:
                self.home.trust(cwd=path)
        return path

    def run(self, folder, *arguments, **more):
        return subprocess.run([str(BINARY), *arguments], cwd=folder, env=self.home.environment(**more), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SOON, check=False)

    def open(self, folder):
        class There:
            path = folder
            environment = self.home.environment
        return Terminal(There).until(" · /help")  # with few columns it is not said what for

    @property
    def chats(self):
        return self.home.user / ".local" / "share" / "reprise" / "chats"


@pytest.fixture
def clients(make_home, provider):
    return Clients(make_home(), provider)


def test_clients_in_folders_of_their_own_share_a_server(clients, provider):
    first = clients.folder("first", approval_mode="deny_all", model="test/first", hooks=[])
    second = clients.folder("second", approval_mode="approve_all", model="test/second", max_rounds=7)
    terminal = clients.open(first)
    try:
        provider.plan(tools(call("write_file", {"path": "x", "content": "1"})), text("done"))
        done = clients.run(second, "-p", "go")
        assert (done.returncode, done.stdout) == (0, "done\n") and (second / "x").read_text() == "1", done
        assert provider.requests[-1].body["model"] == "second" and len(list(clients.chats.glob(".lock"))) == 1
        # What is not allowed does not run, and says what to do.
        third = clients.folder("third", allow=False, approval_mode="approve_all")
        done = clients.run(third, "-p", "go")
        assert done.returncode == 1 and "reprise trust" in done.stderr and files_in(third) == ["reprise.json"], done
        # Nor what belongs to the server and differs there.
        fourth = clients.folder("fourth", max_rounds=9, providers={"test": {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": "another"}})
        done = clients.run(fourth, "-p", "go")
        assert done.returncode == 1 and "provider test is " in done.stderr and "key of provider test is another" in done.stderr, done
        assert "approval_mode" not in done.stderr and "max_rounds" not in done.stderr
    finally:
        terminal.kill()


def test_keys_of_the_server_in_an_old_file_are_obeyed_once_more_and_named(clients, provider):
    old = clients.folder("old", providers={"mine": {"type": "openai", "base_url": provider.url, "api_key": "${TEST_API_KEY}"}}, model="mine/m", data_dir="here")
    provider.plan(text("yes"))
    done = clients.run(old, "-p", "go")
    assert (done.returncode, done.stdout) == (0, "yes\n") and (old / "here" / ".lock").exists(), done
    assert "providers" in done.stderr and "data_dir" in done.stderr and "--config" in done.stderr and "model" not in done.stderr.replace("models", ""), done


def test_a_folder_s_file_chooses_no_data_folder_and_old_chats_are_named(clients, provider):
    folder = clients.folder("project", max_rounds=3)
    provider.plan(text("yes"), text("yes"))
    assert clients.run(folder, "-p", "go", "--data-dir", "chats", "--chat", "early").returncode == 0
    done = clients.run(folder, "-p", "go", "--chat", "late")
    assert done.returncode == 0 and "--data-dir chats" in done.stderr, done
    assert "late" in clients.run(folder, "ls").stdout and "early" not in clients.run(folder, "ls").stdout
    assert "early" in clients.run(folder, "ls", "--data-dir", "chats").stdout


def test_ls_has_this_folder_s_chats_first(clients, provider):
    one, two = clients.folder("one"), clients.folder("two")
    provider.plan(text("1"), text("2"), text("3"))
    for folder, chat in ((one, "a"), (two, "b"), (one, "c")):
        assert clients.run(folder, "-p", "go", "--chat", chat).returncode == 0
    lines = [line.split() for line in clients.run(two, "ls").stdout.splitlines()]
    assert [line[0] for line in lines] == ["b", "c", "a"] and [line[-1] for line in lines] == ["go", str(one), str(one)], lines


def test_the_home_folder_is_asked_about_once(clients, provider):
    home = clients.home.user
    provider.plan(text("yes"), text("yes"))
    done = clients.run(home, "-p", "go")
    assert done.returncode == 1 and "home folder" in done.stderr and "reprise trust" in done.stderr and not provider.requests, done
    assert clients.run(home, "trust", ".").returncode == 0
    assert clients.run(home, "-p", "go").stdout == "yes\n"
    # Also at a server that works elsewhere.
    terminal = clients.open(clients.folder("one"))
    try:
        assert clients.run(home, "-p", "go").stdout == "yes\n"
        assert clients.run(home, "trust", "--revoke", ".").returncode == 0
        assert clients.run(home, "-p", "go").returncode == 1
    finally:
        terminal.kill()
