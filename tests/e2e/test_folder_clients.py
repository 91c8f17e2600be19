"""Three terminals in three folders on one server, each with its own mode, model and project files, and clients of every kind in random order."""
import concurrent.futures
import json
import os
import random
import re
import subprocess
import time

import pytest
from support.client import Client
from support.provider import call, text, tools
from support.server import BINARY, sandbox_works
from support.terminal import Terminal
from support.timing import SOON
from test_folder_config import own_configuration

TURNS = int(os.environ.get("REPRISE_FOLDER_TURNS", "45"))  # 1,000 for the figure
SEED = int(os.environ.get("REPRISE_FOLDER_SEED", "30"))
MODES = {"apples": "approve_all", "pears": "deny_all", "plums": "auto"}
KINDS = ("-p", "-p", "terminal", "terminal", "http", "http", "page")
TOKEN = re.compile(r"(token-[0-9a-f]{8}) (\w+) (\S+)")


class Talk:
    """The model's side: each message says by itself what the model does, and what it was asked with is kept under the message's token."""

    def __init__(self, provider):
        self.asked, self.results = {}, {}
        provider.answer_with(self.answer)

    def answer(self, request):
        said = [m["content"] for m in request.messages if m["role"] == "user"]
        token, act, where = TOKEN.search(said[-1]).groups()
        self.asked.setdefault(token, []).append(request.body)
        if request.last["role"] == "tool":
            self.results[token] = request.last["content"]
            return text(f"done {token}")
        arguments = {"write_file": {"path": where, "content": token}, "read_file": {"path": where}, "run_shell": {"command": f"echo {token} > {where}; pwd"}}[act]
        return tools(call(act, arguments, "call_" + token))


class Folders:
    def __init__(self, home, provider):
        self.home, self.provider, self.talk = home, provider, Talk(provider)
        own_configuration(home, provider)
        self.path = {name: home.path / name for name in MODES}
        self.files = {name: {} for name in MODES}  # as they must be
        for name, path in self.path.items():
            path.mkdir()
            for file, content in (("AGENTS.md", f"word of {name}"), (".agents/skills/its/SKILL.md", f"---\nname: its\ndescription: skill of {name}\n---\n"),
                                  ("reprise.json", json.dumps({"approval_mode": MODES[name], "model": f"test/{name}"}))):
                (path / file).parent.mkdir(parents=True, exist_ok=True)
                (path / file).write_text(content)
                home.trust(path / file)
                self.files[name][file] = content

    def open(self, name):
        class There:
            path = self.path[name]
            environment = self.home.environment
        return Terminal(There).opened().ready()

    def there(self):
        """All files of the home but the program's own, by folder."""
        own = (self.home.user / ".local", self.home.config, self.home.state, self.home.temp)
        found = {name: {} for name in MODES}
        for path in sorted(self.home.path.rglob("*")):
            if path.is_dir() or any(each in path.parents for each in own):
                continue
            top, *below = path.relative_to(self.home.path).parts
            found.setdefault(top, {})["/".join(below)] = path.read_text()
        return found


class Clients:
    def __init__(self, folders, terminals, port):
        self.folders, self.terminals, self.client = folders, terminals, Client(port)
        self.count = 0

    def take(self, kind, name, message, token):
        """Runs a turn of one kind of client. Returns what it has shown."""
        folder = self.folders.path[name]
        if kind == "-p":
            done = subprocess.run([str(BINARY), "-p", message], cwd=folder, env=self.folders.home.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=SOON, check=False)
            return done.stdout + done.stderr
        if kind == "terminal":
            self.terminals[name].say(message).until(f"done {token}").ready()
            return f"done {token}"
        chat = f"{kind}-{token}"
        headers = {"Origin": f"http://127.0.0.1:{self.client.port}", "Sec-Fetch-Site": "same-origin"} if kind == "page" else {}
        body = {"user_message": message, "on_disconnect": "continue"}
        if kind == "page":
            self.client.post("/chats", {"id": chat, "workspace": str(folder)}, headers=headers).expect(201)
        else:
            body["workspace"] = str(folder)
        stream = self.client.stream("POST", f"/chats/{chat}/interactions", body, headers=headers)
        assert self.client.history(chat)["workspace"] == str(folder)
        return "".join(event["content"] for event in stream.finish() if event.name == "text_delta")


def expect(folders, kind, name, token, act, where, shown):
    """Asserts that the turn ran in its folder with its settings. Changes the files that must be there."""
    asked, files, mode = folders.talk.asked[token], folders.files[name], MODES[name]
    result = folders.talk.results.get(token, "")
    assert {body["model"] for body in asked} == {name}, (kind, name, token)
    said = json.dumps(asked)
    assert [each for each in MODES if f"word of {each}" in said] == [name] == [each for each in MODES if f"skill of {each}" in said], (kind, name, token)
    assert f"done {token}" in shown, (kind, name, shown)
    assert [each for each, path in folders.path.items() if str(path) in asked[-1]["messages"][0]["content"]] == [name], "the prompt names the folder"
    leads_out = where.startswith(("/", ".."))
    if act == "read_file":
        expected = "outside the workspace" if leads_out else files.get(where, "no such file")
        assert expected in result, (kind, name, where, result)
    elif act == "write_file" and mode != "deny_all":
        assert leads_out == ("outside the workspace" in result), (kind, name, where, result)
        if not leads_out:
            files[where] = token
    elif act == "run_shell" and mode != "deny_all":
        assert leads_out or str(folders.path[name]) in result, (kind, name, result)
        if not leads_out:
            files[where] = token + "\n"


@pytest.mark.limit(60 + TURNS)
def test_random_turns_of_three_terminals_and_their_friends(make_home, provider, figure):
    folders = Folders(make_home(), provider)
    terminals = {name: folders.open(name) for name in MODES}
    rng, count, ran = random.Random(SEED), 0, {}
    began = time.monotonic()
    try:
        ports = {re.search(r"http://127\.0\.0\.1:(\d+)", terminal.text)[1] for terminal in terminals.values()}
        assert len(ports) == 1, "one server"
        clients = Clients(folders, terminals, int(*ports))
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            while count < TURNS:
                turns = []
                for name in rng.sample(sorted(MODES), rng.choice((1, 1, 2, 3))):  # at the same time
                    token, kind, other = f"token-{rng.getrandbits(32):08x}", rng.choice(KINDS), rng.choice([each for each in MODES if each != name])
                    acts = ["write_file", "write_file", "read_file"] + ["run_shell"] * sandbox_works()
                    where = rng.choice([f"f{rng.randrange(5)}"] * 6 + ["AGENTS.md"] + [f"../{other}/f{rng.randrange(5)}", str(folders.path[other] / "AGENTS.md")])
                    act = "read_file" if where == "AGENTS.md" else rng.choice(acts)
                    turns.append((kind, name, token, act, where))
                shown = pool.map(lambda each: clients.take(each[0], each[1], " ".join(each[2:]), each[2]), turns)
                for each, what in zip(turns, shown):
                    expect(folders, *each, what)
                    ran[each[0]] = ran.get(each[0], 0) + 1
                count += len(turns)
        assert folders.there() == {**folders.files, "workspace": {}} or folders.there() == folders.files
    finally:
        for terminal in terminals.values():
            terminal.kill()
    figure(f"{count} turns in three folders on one server, seed {SEED}: {time.monotonic() - began:.0f} s; {ran}")
