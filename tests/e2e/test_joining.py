"""Clients of one data folder: each turn runs with the folder, mode, model and configuration of its command line, or not at all."""
import concurrent.futures
import contextlib
import fcntl
import http.server
import json
import os
import random
import re
import signal
import subprocess
import threading
import time
import uuid

import pytest
from support.server import BINARY, Home
from support.timing import SLACK, SOON, eventually, halt

CTRL_D = b"\x04"
TURNS = int(os.environ.get("REPRISE_JOINING_TURNS", "60"))
RACES = int(os.environ.get("REPRISE_JOINING_RACES", "24"))  # 1,000 for the figure
SEED = int(os.environ.get("REPRISE_JOINING_SEED", "28"))
FOLDERS, MODES = ("a", "b", "c"), (None, "ask", "approve_all", "deny_all")
CONFIGS, KEYS, MODELS = ("one", "two"), (None, "other"), (None, "p/second")
TOKEN = re.compile(r"token-[0-9a-f]{8}")


class Endless(http.server.ThreadingHTTPServer):
    """A provider that makes the agent write a file named after the message, and records by token who asked: (configuration, key, model)."""
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        last = max(i for i, m in enumerate(body["messages"]) if m["role"] == "user")
        token = TOKEN.search(json.dumps(body["messages"][last]))[0]
        who = (self.path.split("/")[1], self.headers["Authorization"].removeprefix("Bearer key-"), body["model"])
        self.server.asked.setdefault(token, set()).add(who)
        delta = {"content": "done " + token}
        if body["messages"][-1]["role"] == "user":
            write = {"name": "write_file", "arguments": json.dumps({"path": token, "content": "x"})}
            delta = {"tool_calls": [{"index": 0, "id": "call_" + uuid.uuid4().hex[:8], "type": "function", "function": write}]}
        ends = "tool_calls" if "tool_calls" in delta else "stop"
        chunks = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}, {"choices": [{"index": 0, "delta": {}, "finish_reason": ends}]}]
        data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Place:
    """A home with three workspace folders and two configurations."""

    def __init__(self, path, provider):
        self.home = Home(path / "user")
        self.provider = provider
        for name in FOLDERS:
            (self.home.path / name).mkdir()
        for name in CONFIGS:
            self.configure(name)

    def configure(self, name, **more):
        url = f"http://127.0.0.1:{self.provider.server_port}/{name}/v1"
        self.config(name).write_text(json.dumps({"providers": {"p": {"type": "openai", "base_url": url, "api_key": "${SOME_KEY}"}}, "model": "p/first", **more}))

    def config(self, name):
        return self.home.path / f"{name}.json"

    @property
    def data(self):
        return self.home.user / ".local" / "share" / "reprise" / "chats"

    def environment(self, key=None, **more):
        return self.home.environment(SOME_KEY="key-" + (key or "usual"), **more)

    def run(self, *arguments, folder="a", stdin="", key=None, **more):
        done = subprocess.run([str(BINARY), *map(str, arguments)], input=stdin, cwd=self.home.path / folder, env=self.environment(key, **more), capture_output=True,
                              text=True, timeout=SOON, check=False)
        return done.returncode, done.stdout, done.stderr

    def written(self, token):
        return sorted(path.parent.name for path in self.home.path.glob("*/" + token))

    def is_used(self):
        try:
            with open(self.data / ".lock", "r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True


@pytest.fixture
def place(tmp_path):
    provider = Endless()
    place = Place(tmp_path, provider)
    yield place
    eventually(lambda: not place.is_used(), "the server has ended")
    provider.shutdown()
    provider.server_close()


@pytest.fixture
def open_client(place, open_terminal):
    """Opens clients at a terminal that stay open."""
    def make(*arguments, folder="a", key=None, **environment):
        class Elsewhere:
            path = place.home.path / folder

            @staticmethod
            def environment(**more):
                return place.environment(key, **environment, **more)
        return open_terminal(Elsewhere, *arguments).opened()
    return make


def fresh():
    return "token-" + uuid.uuid4().hex[:8]


# --- one client after the other ---------------------------------------------------------------------------------------------------------------------------
USUAL = {"folder": "a", "mode": "approve_all", "config": "one", "key": None, "model": None}


def arguments_of(how, place):
    return ["--config", place.config(how["config"]), *(["--approval-mode", how["mode"]] if how["mode"] else [])]


@pytest.mark.parametrize("other, what", [
    ({"config": "two"}, "its configuration is .*/one.json .*and here .*/two.json"),
    ({"key": "other"}, "variable SOME_KEY is another")])
def test_what_differs_is_named_with_what_to_do_and_nothing_runs(place, open_client, other, what):
    open_client(*arguments_of(USUAL, place))
    how, token = {**USUAL, **other}, fresh()
    pid = (place.data / ".lock").read_text().split()[0]
    clients = [(["mcp-server"], mcp_call(token)), (["acp"], acp_call(place, how, token)), (["-p", token], ""), (["chat"], token + "\n")]
    for arguments, stdin in clients:
        status, out, err = place.run(*arguments, *arguments_of(how, place), folder=how["folder"], key=how["key"], stdin=stdin)
        said = out + err
        assert re.search(what, said) and f"kill {pid}" in said and "--data-dir DIR" in said and "--url http" in said, said
        assert arguments in (["mcp-server"], ["acp"]) or (status, out) == (1, "")
    assert not place.written(token) and token not in place.provider.asked
    # The suggested way out works.
    os.kill(int(pid), 15)
    status, out, err = place.run("-p", token, *arguments_of(how, place), folder=how["folder"], key=how["key"])
    check(place, how, token, status, out, err, may_refuse=False)


@pytest.mark.parametrize("other", [{"folder": "b"}, {"mode": "ask"}, {"mode": None}, {"folder": "c", "mode": "deny_all"}, {"folder": "b", "mode": "ask"}])
def test_chats_of_one_server_have_folders_and_modes_of_their_own(place, open_client, other):
    open_client(*arguments_of(USUAL, place))
    how = {**USUAL, **other}
    for name, command in (("once", ["-p"]), ("talk", ["chat"])):
        token = fresh()
        arguments, stdin = ([*command, token], "") if name == "once" else (command, token + "\n")
        check(place, how, token, *place.run(*arguments, *arguments_of(how, place), folder=how["folder"], stdin=stdin), may_refuse=False)


def test_a_client_of_mcp_works_where_it_stands(place, open_client):
    open_client(*arguments_of(USUAL, place))

    def ask(token, folder, **more):
        with subprocess.Popen([str(BINARY), "mcp-server", *map(str, arguments_of(USUAL, place))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              cwd=place.home.path / folder, env=place.environment()) as bridge:
            bridge.stdin.write(mcp_call(token, **more))
            bridge.stdin.flush()
            answer = next(said for said in map(json.loads, bridge.stdout) if said.get("id") == 2)
            bridge.stdin.close()
            return answer["result"]

    for folder in ("b", "c", "a"):
        token = fresh()
        answer = ask(token, folder, chat_id="in_" + folder)
        assert not answer.get("isError") and place.written(token) == [folder], answer
    token = fresh()
    answer = ask(token, "c", chat_id="in_b")
    assert answer["isError"] and re.search("works in .*/user/b, not in .*/user/c", answer["content"][0]["text"]) and token not in place.provider.asked, answer


def test_a_server_that_refuses_every_call_does_so_for_all(place, open_client):
    open_client(*arguments_of({**USUAL, "mode": "deny_all"}, place))
    token = fresh()
    status, out, err = place.run("-p", token, *arguments_of(USUAL, place), folder="b")
    assert (status, out) == (1, "") and "deny_all" in err and token not in place.provider.asked and not place.written(token)


def test_a_chat_is_not_taken_to_another_folder(place, open_client):
    open_client(*arguments_of(USUAL, place))
    token = fresh()
    assert place.run("-p", token, "--chat", "mine", *arguments_of(USUAL, place), folder="b")[0] == 0 and place.written(token) == ["b"]
    token = fresh()
    status, out, err = place.run("-p", token, "--chat", "mine", *arguments_of(USUAL, place), folder="c")
    assert (status, out) == (1, "") and re.search("works in .*/user/b, not in .*/user/c", err), err
    assert token not in place.provider.asked and not place.written(token)
    # --continue takes the newest chat of the folder, which is not the newest of all.
    for folder, chat in (("b", "mine"), ("c", "other")):
        token = fresh()
        assert place.run("-p", token, "--chat", chat, *arguments_of(USUAL, place), folder=folder)[0] == 0
    token = fresh()
    status, _, err = place.run("-p", token, "--continue", *arguments_of(USUAL, place), folder="b")
    assert status == 0 and place.written(token) == ["b"], err
    assert token in place.run("show", "mine")[1]


def test_a_configuration_that_was_changed_is_another(place, open_client):
    open_client(*arguments_of(USUAL, place))
    place.configure("one", max_rounds=7)
    status, _, err = place.run("-p", fresh(), *arguments_of(USUAL, place))
    assert status == 1 and "max_rounds is 25 there and 7 here" in err and "was changed after the server started" in err


def test_what_follows_from_variables_and_defaults_counts(place, open_client):
    open_client(REPRISE_CONFIG=str(place.config("one")), REPRISE_APPROVAL_MODE="approve_all")
    token = fresh()
    assert place.run("-p", token, REPRISE_CONFIG=str(place.config("one")), REPRISE_APPROVAL_MODE="approve_all")[0] == 0 and place.written(token) == ["a"]
    token = fresh()
    status, out, err = place.run("-p", token, REPRISE_CONFIG=str(place.config("one")))
    check(place, {**USUAL, "mode": None}, token, status, out, err, may_refuse=False)
    for more in ({}, {"REPRISE_CONFIG": str(place.config("one")), "REPRISE_MAX_ROUNDS": "3"}):
        status, out, err = place.run("-p", fresh(), **more)
        assert (status, out) == (1, "") and "with other settings" in err, (more, err)


@pytest.mark.parametrize("command", ["acp", "mcp-server"])
def test_a_bridge_refuses_another_configuration_in_its_answer_and_its_status(place, open_client, command):
    open_client(*arguments_of(USUAL, place))
    version = 1 if command == "acp" else "2025-06-18"
    asks = [{"method": "initialize", "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}]
    if command == "acp":
        asks.append({"method": "session/new", "params": {"cwd": str(place.home.path), "mcpServers": []}})
    lines = "".join(json.dumps({"jsonrpc": "2.0", "id": number, **each}) + "\n" for number, each in enumerate(asks))
    for more, status in (({"REPRISE_MAX_ROUNDS": "3"}, 1), ({}, 0)):
        process = subprocess.Popen([str(BINARY), command, *map(str, arguments_of(USUAL, place))], cwd=place.home.path / "a",
                                   env=place.environment(**more), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdin.write(lines)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in asks]
        process.stdin.close()
        assert (process.wait(SOON), "with other settings" in json.dumps(answers[-1])) == (status, status == 1), answers


def test_what_does_not_change_a_turn_does_not_matter(place, open_client):
    open_client(*arguments_of(USUAL, place))
    token = fresh()
    assert place.run("-p", token, *arguments_of(USUAL, place), "--workspace", ".",
                     REPRISE_PORT="1234", REPRISE_LOG_LEVEL="debug", REPRISE_MAX_ROUNDS="25")[0] == 0
    assert place.written(token) == ["a"]


def test_a_model_is_said_with_each_message(place, open_client):
    open_client(*arguments_of(USUAL, place))
    for arguments, stdin in ((["-p"], ""), (["chat"], "{}\n")):
        token = fresh()
        words = [*arguments, token] if arguments == ["-p"] else arguments
        status, _, err = place.run(*words, "--model", "p/second", *arguments_of(USUAL, place), stdin=stdin.format(token))
        assert status == 0 and place.provider.asked[token] == {("one", "usual", "second")}, err
    token = fresh()
    assert place.run("-p", token, *arguments_of(USUAL, place), REPRISE_MODEL="p/second")[0] == 0
    assert place.provider.asked[token] == {("one", "usual", "second")}


def test_a_server_that_comes_in_place_of_another_with_another_model(place, open_client):
    client = open_client(*arguments_of(USUAL, place))
    halt(client.pid)  # otherwise it starts one itself at once
    os.kill(int((place.data / ".lock").read_text().split()[0]), 9)
    eventually(lambda: not place.is_used(), "the server has ended")
    open_client(*arguments_of(USUAL, place), REPRISE_MODEL="p/second")
    assert json.loads((place.data / ".settings").read_text())["model"] == "p/second", "the new server's own"
    os.kill(client.pid, signal.SIGCONT)
    token = fresh()
    client.say(token)
    eventually(lambda: place.written(token) == ["a"], "the message has run")
    assert place.provider.asked[token] == {("one", "usual", "first")}


def test_a_server_that_is_named_takes_no_settings_of_others(place, open_client):
    open_client(*arguments_of(USUAL, place))
    url = (place.data / ".lock").read_text().split()[1]
    for flags in (["--approval-mode", "ask"], ["--workspace", "."], ["--config", "x.json"]):
        status, out, err = place.run("-p", fresh(), "--url", url, *flags, folder="b")
        assert (status, out) == (2, "") and flags[0] in err, err
    token = fresh()
    assert place.run("-p", token, "--url", url, folder="b")[0] == 0 and place.written(token) == ["a"]


def test_a_request_that_wants_other_settings_is_refused(server):
    for path in ("/healthz", "/chats"):
        refused = server.client.get(path, headers={"Reprise-Settings": "sha256:0"})
        assert refused.status == 409 and refused.json["error"]["code"] == "other_settings" and refused.json["error"]["details"] == {"is_left": False}
    refused = server.client.post("/chats/c/interactions", {"user_message": "hi"}, headers={"Reprise-Settings": "sha256:0"})
    assert refused.status == 409 and server.client.get("/chats").json["chats"] == []


def test_no_proxy_stands_between_a_client_and_this_machine(place):
    """Neither the own server nor a model at a loopback address."""
    proxies = {name: "http://127.0.0.1:1" for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY")}
    for token in (fresh(), fresh()):  # starts a server, and another client joins it
        check(place, USUAL, token, *place.run("-p", token, *arguments_of(USUAL, place), **proxies), may_refuse=False)


def test_a_server_that_is_just_ending_is_waited_for(place):
    """The server that a finished command leaves behind ends by itself, and the next client is never refused because of it."""
    for i in range(12):
        how = {**USUAL, "folder": FOLDERS[i % 3], "mode": ("approve_all", "deny_all")[i % 2], "config": CONFIGS[i % 2]}
        token = fresh()
        status, out, err = place.run("-p", token, *arguments_of(how, place), folder=how["folder"])
        check(place, how, token, status, out, err, may_refuse=False)


@pytest.mark.limit(60 + RACES * 3)
def test_a_question_races_with_the_end_of_a_server(place, open_client, figure):
    """A client begins anywhere between the last words of another folder's client and the end of its server."""
    rng, ran, refused, how_it_ends = random.Random(SEED), 0, 0, ("leaves", "leaves", "ctrl-d", "killed", "terminated")
    for i in range(RACES):
        first, second = ({"folder": FOLDERS[(i + j) % 3], "mode": mode, "config": CONFIGS[rng.randrange(2) if j else 0], "key": None, "model": None}
                         for j, mode in enumerate(rng.sample(("approve_all", "deny_all", "ask"), 2)))
        end = rng.choice(how_it_ends)
        if end == "leaves":
            other = subprocess.Popen([str(BINARY), "-p", fresh(), *map(str, arguments_of(first, place))], cwd=place.home.path / first["folder"], env=place.environment(),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            other.stdout.read(1)
        else:
            terminal = open_client(*arguments_of(first, place), folder=first["folder"])
            server = int((place.data / ".lock").read_text().split()[0])
            if end == "ctrl-d":
                terminal.type(CTRL_D)
            elif end == "killed":
                os.kill(terminal.pid, signal.SIGKILL)
            else:
                os.kill(server, signal.SIGTERM)
        time.sleep(rng.random() * 0.3)  # the stimulus
        token = fresh()
        has_run = check(place, second, token, *place.run("-p", token, *arguments_of(second, place), folder=second["folder"]))
        ran, refused = ran + has_run, refused + (not has_run)
        if end == "leaves":
            other.communicate(timeout=SOON)
        else:
            terminal.kill()
    figure(f"{RACES} questions beside the end of a server, seed {SEED}: {ran} ran as their command line said, {refused} were refused with the reason")
    assert ran > RACES / 3


def test_clients_that_start_at_once_with_the_same_settings_share_a_server(place):
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        tokens = [fresh() for _ in range(6)]
        done = list(pool.map(lambda token: place.run("-p", token, *arguments_of(USUAL, place)), tokens))
    assert all(status == 0 for status, _, _ in done), done
    assert all(place.written(token) == ["a"] for token in tokens)


# --- all at once ---------------------------------------------------------------------------------------------------------------------------------------------
def check(place, how, token, status, out, err, may_refuse=True):
    """Asserts that a message ran as its command line said, or was refused. Returns whether it ran."""
    where = place.written(token)
    # A server that was started with deny_all refuses every call, so it takes no turn that would ask.
    refused = "with other settings" in out + err or ("is deny_all, which holds in every chat" in out + err and how["mode"] != "deny_all")
    if refused and may_refuse:
        assert token not in place.provider.asked and not where, (how, err)
        return False
    asked = (how["config"], how["key"] or "usual", (how["model"] or "p/first").removeprefix("p/"))
    assert place.provider.asked.get(token) == {asked}, (how, status, out, err)
    if how["mode"] == "approve_all":
        assert status == 0 and where == [how["folder"]], (how, where, err)
    else:
        assert not where, (how, where)
        assert ("approval is needed" in err or "(risk: " in out) == (how["mode"] != "deny_all"), (how, status, out, err)
    return True


def mcp_call(token, **more):
    lines = [{"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
             {"method": "notifications/initialized"}, {"id": 2, "method": "tools/call", "params": {"name": "ask", "arguments": {"message": token, **more}}}]
    return "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)


def acp_call(place, how, _token):
    lines = [{"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}},
             {"id": 2, "method": "session/new", "params": {"cwd": str(place.home.path / how["folder"]), "mcpServers": []}}]
    return "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines)


@pytest.mark.limit(120 + TURNS * 5)
def test_a_thousand_clients_in_random_order(place, open_client):
    """Some clients stay open, most come and go, some at the same time."""
    rng = random.Random(SEED)
    print(f"seed {SEED}, {TURNS} turns")

    def any_settings():
        # Often the usual settings; otherwise nearly all turns would be refused.
        choices = {"folder": FOLDERS, "mode": MODES, "config": CONFIGS, "key": KEYS, "model": MODELS}
        return {name: rng.choice(values) if rng.random() < 0.4 else USUAL[name] for name, values in choices.items()}

    def turn(how, kind, by_variable):
        token = fresh()
        flags = arguments_of(how, place)
        more = {}
        if by_variable:
            flags = []
            more = {"REPRISE_CONFIG": str(place.config(how["config"])), **({"REPRISE_APPROVAL_MODE": how["mode"]} if how["mode"] else {})}
        if how["model"]:
            flags += ["--model", how["model"]]
        arguments, stdin = (["-p", token], "") if kind == "-p" else (["chat"], token + "\n")
        return check(place, how, token, *place.run(*arguments, *flags, folder=how["folder"], key=how["key"], stdin=stdin, **more))

    ran = refused = 0
    staying = []
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        while ran + refused < TURNS:
            if staying and rng.random() < 0.3:
                staying.pop().kill()
            elif not staying and rng.random() < 0.2:
                how = any_settings()
                with contextlib.suppress(AssertionError):  # another client was quicker
                    staying.append(open_client(*arguments_of(how, place), folder=how["folder"], key=how["key"]))
            batch = [(any_settings(), rng.choice(("-p", "-p", "chat")), rng.random() < 0.3) for _ in range(rng.choice((1, 1, 2, 3)))]
            for has_run in pool.map(lambda each: turn(*each), batch):
                ran, refused = ran + has_run, refused + (not has_run)
    print(f"{ran} ran, {refused} refused")
    assert ran > TURNS / 5 and refused > TURNS / 20
