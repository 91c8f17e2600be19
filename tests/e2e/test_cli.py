"""All commands but `serve`."""
import json
import os
import re
import stat
import subprocess

import pytest
from support import schemas
from support.provider import Reply, call, failure, text, tools
from support.server import BINARY, sandbox_works
from support.terminal import Terminal
from support.timing import SOON, eventually


@pytest.fixture
def reprise(make_home, make_server, provider):
    """Two chats on disk, and a function that runs commands with or without their server."""
    home = make_home()
    server = make_server(provider, home=home)
    for chat, turns in (("alpha", 2), ("beta", 1)):
        for number in range(1, turns + 1):
            provider.plan(text(f"answer {number} of {chat}"))
            server.client.turn(chat, f"question {number} of {chat}")

    def run(*arguments, status=0, data=True, **environment):
        command = [str(BINARY), *map(str, arguments), *(["--data-dir", str(home.data)] if data else [])]
        done = subprocess.run(command, cwd=home.path, env=home.environment(**environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=SOON, check=False, text=True)
        assert done.returncode in (status if isinstance(status, tuple) else (status,)), (command, done.returncode, done.stdout[-500:], done.stderr[-1500:])
        return done

    run.home, run.server = home, server
    return run


@pytest.mark.parametrize("command", [[], ["serve"], ["ls"], ["cat"], ["show"], ["keys"], ["keys", "init"], ["keys", "list"], ["doctor"]])
def test_help(reprise, command):
    done = reprise(*command, "--help", data=False)
    assert "reprise" in done.stdout.lower() and done.stderr == ""


@pytest.mark.parametrize("command", ["ls", "cat", "show", "search", "verify", "audit", "export", "import", "replay"])
def test_help_says_of_plain_what_it_means_there(reprise, command):
    meanings = {"serve": "store chats unencrypted", command: "the chats are stored unencrypted"}
    for about, meaning in meanings.items():
        line, = (line for line in reprise(about, "--help", data=False).stdout.splitlines() if line.lstrip().startswith("--plain "))
        assert line.split(maxsplit=1) == ["--plain", meaning]


def test_every_flag_is_what_the_end_of_the_help_says(reprise):
    ending = reprise("--help", data=False).stdout.split("\n\n")[-1]
    assert ending.splitlines()[-1] == "Exit status: 0 ok, 1 failed, not found or damaged, 2 wrong usage."
    promise = re.match(r"Every flag of `reprise serve --help` but (\S+) is also an environment variable \(--data-dir:\s+REPRISE_DATA_DIR\) and, but for (\S+), a key of the ",
                       ending)
    flags = {f[2:] for f in re.findall(r"^  (?:-h,)?(--[a-z-]+)", reprise("serve", "--help", data=False).stdout, re.M)} - {"help"}
    excepted = {flag[2:] for flag in promise.groups()}
    assert {"data-dir", "tool-timeout-s"} < flags and excepted == {"config", "new-key"} < flags
    schema = schemas.load("config")
    keys = {name.replace("_", "-") for name in schema["properties"]} | {"tool-" + name.replace("_", "-") for name in schema["properties"]["tools"]["properties"]}
    assert {flag for flag in flags if flag not in keys} == excepted
    for flag in sorted(flags - excepted):
        # A known variable is read. Its value here is no valid number, folder or mode.
        variable = "REPRISE_" + flag.upper().replace("-", "_")
        done = reprise("doctor", "--json", data=flag != "data-dir", status=(0, 1), **{variable: "\x01"})
        assert f"{variable} is no setting" not in done.stdout, variable
    assert "REPRISE_NEW_KEY is no setting" in reprise("doctor", "--json", REPRISE_NEW_KEY="1").stdout
    assert "there is no configuration file \\u0001" in reprise("doctor", "--json", status=1, REPRISE_CONFIG="\x01").stdout


@pytest.mark.parametrize("command", [["frobnicate"], ["serve", "--no-such-flag"], ["serve", "--port", "x"], ["serve", "--port", "70000"], ["cat"], ["keys", "x"]])
def test_wrong_usage_is_2(reprise, command):
    assert reprise(*command, data=False, status=2).stderr


@pytest.mark.parametrize("command, hint", [
    (["chta"], "there is no command chta, did you mean chat?"), (["serve", "--prot", "1"], "there is no flag --prot, did you mean --port?"),
    (["ls", "a", "b"], '"b" is one argument too many'), (["frobnicate"], "there is no command frobnicate ("),
    (["keys", "rewarp"], "there is no command keys rewarp, did you mean rewrap? (reprise keys --help says more)"),
    (["keys", "frob", "--json"], "there is no command keys frob (reprise keys --help says more)"),
    (["keys", "--frob"], "there is no flag --frob"),
    (["keys"], "keys needs one of its commands: init, list, rotate, rewrap, passphrase (reprise keys --help says more)"),
    (["help", "chta"], "there is no command chta, did you mean chat?"),
    (["man", "keys", "lits"], "there is no command keys lits, did you mean keys list?")])
def test_a_slip_of_the_finger_is_answered_with_what_was_meant(reprise, command, hint):
    assert hint in reprise(*command, data=False, status=2).stderr


@pytest.mark.parametrize("command", [["show"], ["ls"], ["cat"], ["replay"]])
def test_what_is_not_there_is_named_and_is_1(reprise, command):
    assert f"there is no chat nochat in {reprise.home.data} (`reprise ls` lists them)" in reprise(*command, "nochat", status=1).stderr
    assert f"there is no chat alpa in {reprise.home.data}, did you mean alpha? (`reprise ls` lists them)" in reprise(*command, "alpa", status=1).stderr


@pytest.mark.parametrize("command", ["show", "replay"])
def test_a_file_that_holds_no_finished_interaction_is_named_with_the_next_step(reprise, command):
    file = reprise.home.data / "alpha" / "chat.json"
    assert f"{file} is not a finished interaction (`reprise cat` prints what it is)" in reprise(command, file, status=1).stderr
    assert f"there is no file {file}x" in reprise(command, f"{file}x", status=1).stderr


def test_a_search_without_a_hit_is_1_as_with_grep(reprise):
    assert reprise("search", "question 2").stdout
    done = reprise("search", "no such words anywhere", status=1)
    assert done.stdout == ""
    assert json.loads(reprise("search", "no such words anywhere", "--json", status=1).stdout)["matches"] == []


@pytest.mark.parametrize("content", [None, "{", '{"no_such_key": 1}'])
@pytest.mark.parametrize("command", ["ls", "doctor", "verify"])
def test_a_configuration_that_cannot_be_followed_is_wrong_usage(reprise, command, content):
    file = reprise.home.path / "other.json"
    if content:
        file.write_text(content)
        file.chmod(0o600)
    done = reprise(command, "--config", file, status=1 if command == "doctor" else 2)
    assert (done.stdout + done.stderr).count(str(file)) == 1, "the file is named once"


def test_an_unreadable_chat_is_listed_with_the_reason_and_ls_is_1(reprise, make_server):
    file = reprise.home.data / "alpha" / "chat.json"
    reprise.server.close()
    file.write_text(file.read_text().replace('"tag":"', '"tag":"AA'))
    done = reprise("ls", status=1)
    assert "alpha  cannot be read: " in done.stdout and "question 1 of beta" in done.stdout and done.stderr == ""
    listed = json.loads(reprise("ls", "--json", status=1).stdout)["chats"]
    assert {c["id"]: c.get("error", {}).get("code") for c in listed} == {"alpha": "integrity_auth", "beta": None}
    server = make_server(home=reprise.home)
    server.check_files = False
    listed = server.client.get("/chats").expect(200, "chat_list").json["chats"]
    assert [(c["id"], c.get("error", {}).get("code")) for c in listed] == [("beta", None), ("alpha", "integrity_auth")]


def test_times_are_those_of_the_persons_clock_and_json_is_utc(reprise):
    created = reprise.server.client.get("/chats").json["chats"]
    hour = next(c for c in created if c["id"] == "beta")["updated_at"][11:16]
    shown = {zone: reprise("ls", TZ=zone).stdout for zone in ("UTC", "UTC-9")}
    assert hour in shown["UTC"] and f"{(int(hour[:2]) + 9) % 24:02}{hour[2:]}" in shown["UTC-9"]
    assert reprise("ls", "--json", TZ="UTC-9").stdout == reprise("ls", "--json", TZ="UTC").stdout


def test_an_unknown_variable_is_warned_about(reprise, make_server, make_home):
    finding = next(c for c in json.loads(reprise("doctor", "--json", REPRISE_MODLE="x").stdout)["checks"] if c["check"] == "environment")
    assert finding["verdict"] == "warn" and "REPRISE_MODLE is no setting, did you mean REPRISE_MODEL?" in finding["message"]
    server = make_server(home=make_home(), environment={"REPRISE_MODLE": "x"})
    server.close()
    assert "REPRISE_MODLE is no setting" in server.log()


@pytest.mark.parametrize("command", [["ls", "--json"], ["show", "alpha"], ["verify"], ["search", "question"], ["restore"], ["approvals"], ["chat", "alpha"],
                                     ["keys", "list"], ["trust", "--list"], ["doctor", "--json"], ["completion", "--chats"], ["man", "ls"]])
def test_a_command_warns_once_about_an_unknown_variable(reprise, command):
    with_folder = command[0] not in ("keys", "trust", "man", "chat")
    if command[0] == "chat":  # the server has other settings than this command
        command = [*command, "--url", f"http://127.0.0.1:{reprise.server.port}"]
    done = reprise(*command, data=with_folder, REPRISE_MODLE="x")
    silent = command[0] in ("doctor", "completion", "man")
    assert done.stderr.count("reprise: the variable REPRISE_MODLE is no setting, did you mean REPRISE_MODEL?\n") == (0 if silent else 1)
    assert done.stderr.count("REPRISE_MODLE") == (0 if silent else 1)
    if command[0] not in ("doctor", "verify"):  # their findings may have changed meanwhile
        assert done.stdout == reprise(*command, data=with_folder).stdout


def providers(reprise, *arguments, status):
    checks = json.loads(reprise("doctor", "--json", *arguments, status=status).stdout)["checks"]
    return {c["check"]: (c["verdict"], c["message"]) for c in checks if c["check"].startswith("provider ")}


def configuration(reprise, **of_providers):
    file = reprise.home.path / "providers.json"
    file.write_text(json.dumps({"providers": of_providers}))
    file.chmod(0o600)
    return file


def test_doctor_asks_each_provider(reprise, provider):
    provider.listing = Reply([json.dumps({"object": "list", "data": [{"id": "m1"}]}).encode()], content_type="application/json")
    file = configuration(reprise, good={"type": "openai", "base_url": provider.url}, closed={"type": "openai", "base_url": "http://127.0.0.1:1/v1", "api_key": "k12345678"},
                         nowhere={"type": "openai", "base_url": "http://no-such-host.invalid/v1"})
    found = providers(reprise, "--config", file, status=1)
    assert {name: verdict for name, (verdict, _) in found.items()} == {"provider good": "ok", "provider closed": "fail", "provider nowhere": "fail"}
    assert "lists 1 model " in found["provider good"][1]
    file = configuration(reprise, good={"type": "openai", "base_url": provider.url})
    assert providers(reprise, "--config", file, "--model", "good/m1", status=0)["provider good"][0] == "ok"
    assert providers(reprise, "--config", file, "--model", "good/other", status=0)["provider good"][0] == "warn"
    provider.listing = failure(401, "bad key sk-canary")
    assert providers(reprise, "--config", file, status=1)["provider good"][0] == "fail"
    file.write_text("{}")
    assert providers(reprise, "--config", file, "--model", "openai/gpt", status=1)["provider openai"] == (
        "fail", "the model openai/gpt needs an API key, and there is none (OPENAI_API_KEY, or api_key in the configuration)")


def test_the_log_says_at_the_start_which_provider_is_of_no_use(make_server, make_home):
    server = make_server(config={"providers": {"closed": {"type": "openai", "base_url": "http://127.0.0.1:1/v1"}}, "model": "closed/m"}, home=make_home())
    eventually(lambda: 'check="provider closed"' in server.log(), "the log names the provider")
    unkeyed = make_server(config={"model": "openai/gpt"}, home=make_home())
    eventually(lambda: "needs an API key" in unkeyed.log(), "the log reports the missing key")


def test_version(reprise):
    assert reprise("--version", data=False).stdout.strip()


def test_ls(reprise):
    out = reprise("ls").stdout
    assert "alpha" in out and "beta" in out and "question 1 of alpha" in out
    listed = json.loads(reprise("ls", "--json").stdout)
    chats = listed["chats"] if isinstance(listed, dict) else listed
    assert {c["id"] for c in chats} == {"alpha", "beta"}
    reprise.server.stop()
    assert "alpha" in reprise("ls").stdout


def test_cat_prints_the_plaintext_for_jq(reprise):
    for what in ("alpha/int_002", reprise.home.checkpoint_file("alpha", "int_002")):
        stored = json.loads(reprise("cat", what).stdout)
        schemas.check("interaction", stored)
        assert stored["user_message"] == "question 2 of alpha"
        assert stored == reprise.home.checkpoint("alpha", "int_002")
    whole = reprise("cat", "alpha").stdout
    assert "question 1 of alpha" in whole and "question 2 of alpha" in whole
    json.loads(whole)


def test_cat_of_a_copy_elsewhere(reprise, tmp_path):
    copy = tmp_path / "copy.json"
    copy.write_bytes(reprise.home.checkpoint_file("beta", "int_001").read_bytes())
    assert json.loads(reprise("cat", copy).stdout)["user_message"] == "question 1 of beta"


def test_cat_of_what_is_not_there_or_damaged_is_1(reprise):
    for what in ("nobody", "alpha/int_009", "/no/such/file.json"):
        done = reprise("cat", what, status=1)
        assert done.stdout == "" and done.stderr
    path = reprise.home.checkpoint_file("alpha", "int_001")
    path.write_text(path.read_text()[:-30])
    reprise.server.check_files = False
    assert reprise("cat", "alpha/int_001", status=1).stdout == ""


def test_show_is_for_reading(reprise):
    out = reprise("show", "alpha").stdout
    for part in ("question 1 of alpha", "answer 1 of alpha", "question 2 of alpha", "answer 2 of alpha"):
        assert part in out
    reprise("show", "nobody", status=1)


def test_show_lets_no_control_characters_through(reprise, provider):
    provider.plan(text("evil \x1b]0;title\x07 \x1b[2J \u202e end"))
    reprise.server.client.turn("evil", "x\x1b[31m")
    out = reprise("show", "evil").stdout
    assert "\x1b]0;" not in out and "\x1b[2J" not in out and "\u202e" not in out and "\x07" not in out
    assert "\x1b" not in reprise("ls").stdout


# Characters that control a terminal or change the order of text, and invisible ones: as they are, and spelled out.
STEERING = {"\u202e": "<U+202E>", "\U000e0041": "<U+E0041>", "\x1b": "<U+001B>", "\x9b": "<U+009B>"}
UNSEEN = {"\u200b": "<U+200B>", "\u00ad": "<U+00AD>"}
HIDDEN, SPELLED = "".join({**STEERING, **UNSEEN}), "".join({**STEERING, **UNSEEN}.values())
CALL = json.dumps({"command": "true tool" + HIDDEN}, ensure_ascii=False)
SPELLED_CALL = "true tool" + SPELLED.replace("<U+001B>", "\\u001b")  # JSON must escape it


@pytest.fixture
def hostile(reprise, make_server, provider):
    """A third chat, every part of which holds all of these characters."""
    reprise.server.stop()
    client = make_server(provider, home=reprise.home, config={"approval_mode": "approve_all"}).client
    provider.plan(tools(call("run_shell", CALL), say="said" + HIDDEN), text("answer" + HIDDEN + "."))
    client.turn("hostile", "message" + HIDDEN)
    client.request("PATCH", "/chats/hostile", {"title": "title" + HIDDEN}).expect(200)
    assert client.history("hostile")["interactions"][0]["user_message"] == "message" + HIDDEN
    return reprise


def shown(hostile, *arguments):
    out = hostile(*arguments).stdout
    assert not [c for c in STEERING if c in out], out
    return out


@pytest.mark.parametrize("arguments, expected", [
    (["ls"], ["title" + SPELLED]), (["ls", "hostile"], ["message" + SPELLED]), (["show", "hostile"], ["hostile  title" + SPELLED]),
    (["search", "message"], ["user  message" + SPELLED]), (["search", "answer"], ["answer  answer" + SPELLED]),
    (["search", "true tool"], ["tool_call  run_shell", SPELLED_CALL])])  # fmt: skip
def test_a_list_spells_out_whatever_cannot_be_seen(hostile, arguments, expected):
    out = shown(hostile, *arguments)
    for words in expected:
        assert words in out, out


@pytest.mark.parametrize("what", ["hostile", "hostile/int_001"])
def test_show_spells_out_all_that_cannot_be_seen(hostile, what):
    out = shown(hostile, "show", what)
    assert SPELLED_CALL in out
    for words in ("message", "said", "answer"):
        assert words + SPELLED in out, out


@pytest.mark.parametrize("arguments, where", [
    (["ls"], lambda out: next(c["title"] for c in out["chats"] if c["id"] == "hostile")), (["ls", "hostile"], lambda out: out["chat"]["title"]),
    (["ls", "hostile"], lambda out: out["interactions"][0]["user_message"]), (["show", "hostile"], lambda out: out["title"]),
    (["show", "hostile/int_001"], lambda out: out["user_message"]), (["search", "message"], lambda out: out["matches"][0]["snippet"]),
    (["show", "hostile"], lambda out: json.loads(next(e["tool_input"] for e in out["interactions"][0]["agent_events"] if e["type"] == "TOOL_CALL"))["command"]),
])  # fmt: skip
def test_json_carries_what_cannot_be_seen_as_it_is(hostile, arguments, where):
    out = hostile(*arguments, "--json").stdout
    assert where(json.loads(out)).endswith(HIDDEN) and "\x1b" not in out


def test_a_terminal_is_shown_the_same(hostile):
    for arguments in (["ls"], ["show", "hostile"], ["search", "message"]):
        terminal = Terminal(hostile.home, *arguments, "--data-dir", hostile.home.data)
        # Progress messages appear at terminals only.
        assert terminal.end() == 0 and terminal.raw.decode().replace("\r\n", "\n").startswith(shown(hostile, *arguments))


def test_keys_list_never_shows_a_key(reprise):
    key = json.loads(reprise.home.keys.read_text())["keys"][0]
    for arguments in (["keys", "list"], ["keys", "list", "--json"]):
        out = reprise(*arguments, data=False).stdout
        assert key["kid"] in out and key["k"] not in out


def test_keys_init_makes_one_and_never_overwrites(reprise, tmp_path):
    file = tmp_path / "new" / "keys.jwks"
    reprise("keys", "init", "--key-file", file, data=False)
    schemas.check("keys", json.loads(file.read_text()))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    reprise("keys", "init", "--key-file", file, data=False, status=(0, 1))
    assert file.read_bytes() == before


def test_doctor(reprise):
    out = reprise("doctor").stdout
    assert out.strip()
    json.loads(reprise("doctor", "--json").stdout)
    reprise.home.keys.chmod(0o644)
    reprise("doctor", status=1)
    reprise.home.keys.chmod(0o600)


def test_doctor_says_what_to_do_next(reprise):
    port, nowhere = reprise.server.port, reprise.home.path / "nowhere"
    reprise.home.data.chmod(0o755)
    out = reprise("doctor", "--port", port, "--workspace", nowhere, status=1).stdout
    reprise.home.data.chmod(0o700)
    for sentence in (f"127.0.0.1 port {port} is in use, perhaps by a running server; stop that, or choose another port with --port\n",
                     f"there is no folder {nowhere} to work in; --workspace DIR names another\n",
                     f"{reprise.home.data} can be entered by other users, who see the names of the chats; run chmod 700 on it\n",
                     "a server is using this folder now; stop it before you start another one\n"):
        assert sentence in out


def findings(reprise, *arguments, status, data=True):
    checks = json.loads(reprise("doctor", "--json", *arguments, status=status, data=data).stdout)["checks"]
    return {each["check"]: (each["verdict"], each["message"]) for each in checks}


def test_doctor_of_a_server_for_several_users_speaks_of_that_server(reprise):
    file = reprise.home.path / "people.json"
    file.write_text(json.dumps({"auth": {"type": "tokens"}}))
    file.chmod(0o600)
    found = findings(reprise, "--config", file, status=(0, 1))
    assert found["token"][0] == "ok" and "the token of a user" in found["token"][1] and "asks for none" not in found["token"][1]
    assert found["workspace"][0] == "ok" and found["workspace"][1].startswith("there is none")
    assert "shell commands run" not in found["sandbox"][1]
    found = findings(reprise, "--config", file, "--workspace-mode", "shared", status=(0, 1))
    assert not found["workspace"][1].startswith("there is none")


def test_doctor_names_a_data_folder_that_no_start_can_make(reprise):
    before = sorted(reprise.home.path.iterdir())
    verdict, said = findings(reprise, "--data-dir", reprise.home.path / "not" / "yet", data=False, status=(0, 1))["data folder"]
    assert verdict == "ok" and "the first start creates it" in said and sorted(reprise.home.path.iterdir()) == before
    verdict, said = findings(reprise, "--data-dir", "/proc/reprise/chats", data=False, status=1)["data folder"]
    assert verdict == "fail" and "no folder can be made in /proc" in said
    file = reprise.home.path / "afile"
    file.write_text("")
    for command in ("serve", "doctor"):
        done = reprise(command, "--data-dir", file / "chats", data=False, status=(1, 2))
        assert f"{file} is a file, so nothing can be below it" in done.stdout + done.stderr


@pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")
def test_doctor_names_toolchains_that_commands_do_not_see(reprise):
    folder = reprise.home.user / "toolchain" / "bin"
    folder.mkdir(parents=True)
    path = f"{folder}:{reprise.home.user}/absent:{os.environ['PATH']}"
    assert f"do not see {folder} of PATH" in reprise("doctor", PATH=path).stdout
    config = reprise.home.path / "named.json"
    config.write_text(json.dumps({"tools": {"sandbox_paths": {"read": ["~/toolchain"]}}}))
    config.chmod(0o600)
    assert "do not see" not in reprise("doctor", "--config", config, status=(0, 1), PATH=path).stdout


def test_nothing_is_written_by_reading(reprise):
    reprise.server.stop()
    before = {p: p.read_bytes() for p in reprise.home.data.rglob("*") if p.is_file()}
    for command in (["ls"], ["cat", "alpha"], ["show", "alpha"], ["doctor"]):
        reprise(*command)
    assert {p: p.read_bytes() for p in reprise.home.data.rglob("*") if p.is_file()} == before
    empty = reprise.home.path / "nothing-here"
    subprocess.run([str(BINARY), "ls", "--data-dir", str(empty)], cwd=reprise.home.path, env=reprise.home.environment(), stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE, timeout=SOON, check=False)
    assert not empty.exists()


@pytest.mark.parametrize("command", [["--help"], ["--version"], ["ls"]], ids=" ".join)
def test_output_that_cannot_be_written_is_told(reprise, command):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([str(BINARY), *command, *([] if command[0][0] == "-" else ["--data-dir", str(reprise.home.data)])],
                              env=reprise.home.environment(), stdout=full, stderr=subprocess.PIPE, text=True, timeout=SOON, check=False)
    assert (done.returncode, done.stderr) == (1, "reprise: the output could not be written\n")


def test_what_is_no_file_and_no_folder_is_named(reprise, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert f"{tmp_path}/pipe is not a regular file" in reprise("import", tmp_path / "pipe", status=(1, 2)).stderr
    (tmp_path / "file").write_text("")
    for command in (["serve", "--port", "0"], ["-p", "hello"], ["ls"]):
        told = reprise(*command, "--data-dir", tmp_path / "file", status=2, data=False).stderr
        assert f"{tmp_path}/file is a file; --data-dir names the folder of the chats" in told


def test_a_closed_pipe_does_not_crash(reprise):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([str(BINARY), "cat", "alpha", "--data-dir", str(reprise.home.data)], env=reprise.home.environment(), stdout=write,
                          stderr=subprocess.PIPE, timeout=SOON, check=False, cwd=reprise.home.path)
    os.close(write)
    assert done.returncode in (0, 1, 141, -13)
