"""Commands for the data folder: verify, export, import, search, encrypt, decrypt, cat, with a running server and without."""
import json
import pathlib
import shutil
import stat
import subprocess
import threading

import pytest
from support import schemas
from support.provider import call, text, tools
from support.server import BINARY, open_sealed
from support.timing import SOON

SPEC_EVENTS = [{"type": "THINKING", "content": "hm"},
               {"type": "TOOL_CALL", "id": "call_1", "tool_name": "search", "tool_input": "{\"query\": \"weather\"}"},
               {"type": "TOOL_RESULT", "id": "call_1", "tool_name": "search", "tool_output": "sunny"},
               {"type": "ANSWER", "content": "It is sunny."}]
SPEC_MESSAGES = [{"role": "user", "content": "Weather?"},
                 {"role": "assistant", "content": None, "function_call": None,
                  "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{\"query\": \"weather\"}"}}]},
                 {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
                 {"role": "assistant", "content": "It is sunny.", "tool_calls": None, "function_call": None}]


class Commands:
    """Runs commands in one user's home."""

    def __init__(self, home):
        self.home = home

    def __call__(self, *arguments, status=0, data=None, **environment):
        command = [str(BINARY), *map(str, arguments), "--data-dir", str(data or self.home.data)]
        done = subprocess.run(command, cwd=self.home.path, env=self.home.environment(**environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=SOON, check=False, text=True, umask=0)
        assert done.returncode == status, (command, done.returncode, done.stdout[-800:], done.stderr[-1500:])
        return done

    def json(self, *arguments, **how):
        return json.loads(self(*arguments, "--json", **how).stdout)

    def verify(self, *arguments, **how):
        """What was checked, and the kinds of problems by file. The exit status must agree."""
        command = [str(BINARY), "verify", "--json", *map(str, arguments), "--data-dir", str(how.get("data", self.home.data))]
        done = subprocess.run(command, cwd=self.home.path, env=self.home.environment(), stdout=subprocess.PIPE, timeout=SOON, check=False)
        report = json.loads(done.stdout)
        schemas.check("verify_report", report)
        assert report["ok"] == (not report["problems"]) and done.returncode == (0 if report["ok"] else 1)
        return report["checked"], {p["file"]: p["kind"] for p in report["problems"]}


@pytest.fixture
def folder(make_home, make_server, provider):
    """Commands in a home with the chats alpha (an edit, a tool) and beta. The server runs until the test stops it."""
    home = make_home()
    server = make_server(provider, home=home)
    client = server.client
    for number in (1, 2):
        provider.plan(text(f"answer {number}"))
        client.turn("alpha", f"question {number}")
    provider.plan(tools(call("calculator", {"expression": "6*7"})), text("Über 42"))
    client.edit("alpha", "int_002", "changed question").finish()
    provider.plan(text("beta says"))
    client.turn("beta", "Hello beta")
    commands = Commands(home)
    commands.server, commands.provider, commands.make_server = server, provider, make_server
    server.check_files = False  # tests damage the files
    return commands


def index_is_written(folder):
    folder.server.stop()  # chat.json may lag behind until then


def tree(path):
    return {p.relative_to(path): p.read_bytes() for p in sorted(pathlib.Path(path).rglob("*")) if p.is_file()}


@pytest.mark.parametrize("command", ["verify", "export", "import", "search", "encrypt", "decrypt"])
def test_help_and_wrong_usage(folder, command):
    assert f"reprise {command}" in folder(command, "--help").stdout
    assert folder(command, "--no-such-flag", status=2).stderr.count("\n") == 1


# --- verify ------------------------------------------------------------------------------------------------------------

def test_verify_says_that_all_is_well(folder):
    assert folder.verify()[1] == {}
    index_is_written(folder)
    assert folder.verify() == (6, {})
    assert folder.verify("alpha") == (4, {}) and folder.verify("alpha/int_002", "beta") == (3, {})
    assert folder.verify(folder.home.data / "beta") == (2, {})
    assert "6 files checked, all in order" in folder("verify").stdout
    assert folder("verify", "nobody", status=1).stdout == ""
    assert folder("verify", data=folder.home.path / "none", status=1).stdout == ""


def test_verify_names_what_is_wrong_and_where(folder):
    index_is_written(folder)
    home = folder.home
    home_files = {n: home.checkpoint_file("alpha", n) for n in ("int_001", "int_002", "int_003")}
    names = {n: f"alpha/interactions/{n}.json" for n in home_files}
    good = tree(home.data)

    def damaged(expected):
        assert folder.verify()[1] == expected
        assert folder.verify("beta")[1] == {}, "other chats are unaffected"
        assert json.loads(folder("cat", "beta").stdout)["interactions"]
        for path, content in good.items():
            (home.data / path).write_bytes(content)

    content = bytearray(home_files["int_001"].read_bytes())
    content[len(content) // 2] ^= 1
    home_files["int_001"].write_bytes(content)
    damaged({names["int_001"]: "auth"})
    home_files["int_003"].write_bytes(home_files["int_003"].read_bytes()[:-1])
    damaged({names["int_003"]: "auth"})
    shutil.copy(home_files["int_001"], home_files["int_003"])
    damaged({names["int_003"]: "swap"})
    shutil.copy(home.checkpoint_file("beta", "int_001"), home_files["int_001"])
    damaged({names["int_001"]: "swap"})
    home_files["int_001"].unlink()
    damaged({names["int_001"]: "missing"})
    home_files["int_003"].unlink()
    damaged({names["int_003"]: "missing"})
    home_files["int_002"].write_text(json.dumps(open_sealed(home_files["int_002"], home.keys)))
    damaged({names["int_002"]: "plain"})
    (home.data / "alpha" / "chat.json").unlink()
    damaged({"alpha/chat.json": "missing"})
    (home.data / "alpha" / "chat.json").write_bytes(b"")
    damaged({"alpha/chat.json": "auth"})
    home_files["int_002"].write_bytes(b"\0" * 100)
    done = folder("verify", "alpha", status=1)
    assert f"{names['int_002']}: auth: " in done.stdout and "1 problem" in done.stdout


def test_verify_finds_another_version_of_a_file(make_home, make_server, provider):
    home = make_home()
    versions = []
    for life in ("one", "two"):
        server = make_server(provider, home=home)
        for number in (1, 2):
            provider.plan(text(f"{life} {number}"))
            server.client.turn("c", f"{life} {number}")
        server.close()
        versions.append(home.data.rename(home.path / life))
    for name, kind in (("int_001", "rollback"), ("int_002", "rollback")):
        shutil.copytree(versions[0], home.data)
        shutil.copy(versions[1] / "c" / "interactions" / f"{name}.json", home.checkpoint_file("c", name))
        assert Commands(home).verify()[1] == {f"c/interactions/{name}.json": kind}
        shutil.rmtree(home.data)


def test_verify_of_lone_files(folder, tmp_path):
    index_is_written(folder)
    copy = tmp_path / "some.json"
    shutil.copy(folder.home.checkpoint_file("alpha", "int_002"), copy)
    assert folder.verify(copy) == (1, {})
    copy.write_bytes(copy.read_bytes()[:-40])
    assert folder.verify(copy) == (1, {str(copy): "auth"})
    copy.write_text("not ours")
    assert folder.verify(copy) == (1, {str(copy): "auth"})
    gone = folder.home.checkpoint_file("alpha", "int_003")
    gone.unlink()
    assert folder.verify(gone) == (0, {"alpha/interactions/int_003.json": "missing"})


def test_verify_raises_no_false_alarm_beside_a_busy_server(folder):
    stop, failures, looks = threading.Event(), [], 0

    def talk(name):
        try:
            for number in range(1, 200):
                if stop.is_set():
                    return
                folder.server.client.post(f"/chats/{name}-{number // 10}/interactions", {"user_message": f"echo {number}", "stream": False,
                                                                                        "model": "offline"}).expect(200)
                if number % 13 == 0:
                    folder.server.client.request("DELETE", f"/chats/{name}-{number // 10 - 1}")
        except Exception as error:  # noqa: BLE001 - shown by the test
            failures.append(error)

    talkers = [threading.Thread(target=talk, args=(f"busy{n}",)) for n in range(2)]
    for talker in talkers:
        talker.start()
    while any(t.is_alive() for t in talkers) and looks < 40:
        assert folder.verify()[1] == {}
        looks += 1
    stop.set()
    for talker in talkers:
        talker.join()
    assert not failures and looks >= 3


def test_a_journal_is_verified_and_read_while_its_interaction_waits(folder):
    folder.provider.plan(tools(call("write_file", {"path": "w.txt", "content": "x"})))
    stream = folder.server.client.start("gamma", "write it", on_disconnect="continue")
    stream.until("approval_required")
    stream.close()
    journal = folder.home.data / "gamma" / "interactions" / "int_001.journal"
    checked, problems = folder.verify("gamma")
    assert checked >= 1 and problems == {}
    records = [json.loads(line) for line in folder("cat", journal).stdout.splitlines()]
    assert records[0]["begin"]["user_message"] == "write it" and any(r.get("event") == "approval_required" for r in records)
    jq = subprocess.run(["jq", "-r", "select(.begin) | .begin.user_message"], input=folder("cat", journal).stdout, stdout=subprocess.PIPE, text=True, check=True)
    assert jq.stdout == "write it\n"
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 1
    copy = folder.home.path / "copy.journal"
    copy.write_bytes(content)
    assert folder.verify(copy)[1] == {str(copy): "auth"}
    folder("cat", copy, status=1)


def test_cat_reads_every_file_of_a_store(folder):
    index_is_written(folder)
    plain = folder.home.path / "plain"
    folder("decrypt", "--all", "--output", plain)
    for root in (folder.home.data, plain):
        files = [p for p in root.rglob("*.json")]
        assert len(files) == 6
        for path in files:
            jq = subprocess.run(["jq", "-e", ".schema == 1"], input=folder("cat", path).stdout, stdout=subprocess.PIPE, text=True, check=False)
            assert jq.returncode == 0, path
    assert "question 1" in folder("show", folder.home.checkpoint_file("alpha", "int_001")).stdout


# --- export ------------------------------------------------------------------------------------------------------------

def test_export_json_is_a_plain_folder_that_serves(folder):
    target = folder.home.path / "out"
    told = folder.json("export", "--output", target)
    assert told["ok"] and sorted(told["exported"]) == [str(target / "alpha"), str(target / "beta")]
    stored = json.loads((target / "alpha" / "interactions" / "int_003.json").read_text())
    schemas.check("interaction", stored)
    schemas.check("chat", json.loads((target / "alpha" / "chat.json").read_text()))
    assert stored == folder.server.client.interaction("alpha", "int_003")
    for path in [target, *target.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert [p.name for p in target.iterdir() if p.name.startswith(".")] == []
    before = tree(target)
    assert "--force" in folder("export", "alpha", "--output", target, status=1).stderr
    assert tree(target) == before
    folder("export", "alpha", "--output", target, "--force")
    assert tree(target) == before
    assert folder("verify", "--plain", data=target).stdout.startswith("6 files checked, all in order")


def test_an_export_that_is_replaced_is_there_at_every_moment(folder):
    target = folder.home.path / "out"
    folder("export", "--output", target)
    missing, replaced = [], threading.Event()

    def look():
        while not replaced.is_set():
            if not (target / "alpha" / "chat.json").exists():
                missing.append(sorted(path.name for path in target.iterdir()))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(20):
            folder("export", "alpha", "--output", target, "--force")
    finally:
        replaced.set()
        looking.join()
    assert not missing


def test_export_to_stdout_and_of_one_interaction(folder):
    one = json.loads(folder("export", "alpha/int_001").stdout)
    schemas.check("interaction", one)
    chat = json.loads(folder("export", "alpha").stdout)
    assert [i["id"] for i in chat["interactions"]] == ["int_001", "int_002", "int_003"]
    assert [i["id"] for i in json.loads(folder("export", "alpha", "--branches", "head").stdout)["interactions"]] == ["int_001", "int_003"]
    folder("export", status=2)
    file = folder.home.path / "one.json"
    folder("export", "alpha/int_001", "--output", file)
    assert json.loads(file.read_text()) == one and stat.S_IMODE(file.stat().st_mode) == 0o600
    folder("export", "alpha/int_001", "--output", file, status=1)
    folder("export", "nobody", status=1)
    folder("export", "../beta", status=2)
    index_is_written(folder)
    before = tree(folder.home.data)
    for inside in (folder.home.data, folder.home.data / "alpha" / "x", folder.home.path / "data" / ".." / "data"):
        folder("export", "--output", inside, "--force", status=2)
        folder("decrypt", "--all", "--output", inside, status=2)
    assert tree(folder.home.data) == before


def test_export_jsonl_is_what_training_tools_read(folder):
    lines = [json.loads(line) for line in folder("export", "--format", "jsonl").stdout.splitlines()]
    assert len(lines) == 2 and all(list(line) == ["messages"] for line in lines)
    alpha = [m for m in lines[0]["messages"] if m["role"] != "system"]
    assert [m["role"] for m in alpha] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert alpha[3]["tool_calls"][0]["function"]["name"] == "calculator" and alpha[4]["content"] == "42"
    assert {key for line in lines for m in line["messages"] for key in m} <= {"role", "content", "tool_calls", "tool_call_id", "name"}
    all_branches = folder("export", "alpha", "--format", "jsonl", "--branches", "all").stdout.splitlines()
    assert len(all_branches) == 2
    target = folder.home.path / "train.jsonl"
    folder("export", "--format", "jsonl", "--output", target)
    assert len(target.read_text().splitlines()) == 2


def test_export_markdown_is_for_people_and_hostile_text_stays_text(folder):
    folder.provider.plan(text("evil \x1b]0;title\x07 ```` # end"))
    folder.server.client.turn("evil", "x\x1b[31m\n# a heading\n---")
    done = folder("export", "evil", "alpha", "--format", "markdown")
    assert "\x1b" not in done.stdout and "> # a heading" in done.stdout
    assert "changed question" in done.stdout and "question 2" not in done.stdout.replace("changed question", "")
    assert "question 2" in folder("export", "alpha", "--format", "markdown", "--branches", "all").stdout
    target = folder.home.path / "md"
    folder("export", "--format", "markdown", "--output", target)
    assert sorted(p.name for p in target.iterdir()) == ["alpha.md", "beta.md", "evil.md"]


def test_export_takes_out_what_can_be_read(folder):
    index_is_written(folder)
    path = folder.home.checkpoint_file("alpha", "int_002")
    path.write_bytes(path.read_bytes()[:-20])
    target = folder.home.path / "out"
    done = folder("export", "--output", target, status=1)
    assert "int_002" in done.stderr
    assert sorted(p.name for p in (target / "alpha" / "interactions").iterdir()) == ["int_001.json", "int_003.json"]
    assert (target / "beta" / "chat.json").exists()


# --- import ------------------------------------------------------------------------------------------------------------

def test_import_of_an_export_is_the_same_chat(folder):
    target, document = folder.home.path / "out", folder.home.path / "doc.json"
    folder("export", "--output", target)
    folder("export", "alpha", "--output", target / "x" / "..", "--force")
    document.write_text(folder("export", "alpha").stdout)
    before = folder.server.client.history("alpha", branches="all")
    for interaction in before["interactions"]:  # what the next turn may repeat of it, which an import drops
        (interaction["final_agent_state"] or {}).pop("request", None)
    index_is_written(folder)
    told = folder.json("import", target, document)
    assert [i["chat_id"] for i in told["imported"]] == ["alpha-2", "beta-2", "alpha-3"] and told["failed"] == []
    assert all(not i["notes"] for i in told["imported"])
    assert folder.verify() == (16, {})
    server = folder.make_server(folder.provider, home=folder.home)
    for copy in ("alpha-2", "alpha-3"):
        after = server.client.history(copy, branches="all")
        for interaction in after["interactions"]:
            interaction["chat_id"] = "alpha"
            assert interaction.pop("imported") is True
        assert after["interactions"] == before["interactions"]
        assert [after[k] for k in ("title", "created_at", "updated_at", "head")] == [before[k] for k in ("title", "created_at", "updated_at", "head")]
    folder.provider.plan(text("goes on"))
    server.client.turn("alpha-2", "and then?")
    assert [m["content"] for m in folder.provider.requests[-1].conversation if m["role"] == "user"] == ["question 1", "changed question", "and then?"]


def test_import_of_the_specifications_folder(folder, tmp_path):
    index_is_written(folder)
    chat = tmp_path / "chat_abc123"
    (chat / "interactions").mkdir(parents=True)
    (chat / "chat.json").write_text(json.dumps({"id": "chat_abc123", "created_at": "2025-01-15T10:00:00Z"}))
    first = {"id": "int_001", "status": "COMPLETED", "user_message": "Weather?", "agent_events": SPEC_EVENTS,
             "final_agent_state": {"messages": SPEC_MESSAGES}, "created_at": "2025-01-15T10:00:00Z", "completed_at": "2025-01-15T10:00:05.123456+01:00"}
    second = {"id": "int_002", "status": "RUNNING", "user_message": "And tomorrow?", "agent_events": [{"type": "ANSWER", "content": "Rain."}],
              "final_agent_state": None, "created_at": "2025-01-15 10:01:00.5", "completed_at": None}
    for document in (first, second):
        (chat / "interactions" / f"{document['id']}.json").write_text(json.dumps(document))
    told = folder.json("import", tmp_path)
    assert told["imported"][0]["chat_id"] == "chat_abc123" and len(told["imported"][0]["notes"]) == 2
    one, two = (json.loads(folder("cat", f"chat_abc123/int_00{n}").stdout) for n in (1, 2))
    for stored in (one, two):
        schemas.check("interaction", stored)
    assert [(e["type"], e["seq"], e["round_index"]) for e in one["agent_events"]] == [("THINKING", 1, 0), ("TOOL_CALL", 2, 0), ("TOOL_RESULT", 3, 0), ("ANSWER", 4, 1)]
    assert one["completed_at"] == "2025-01-15T09:00:05.123Z" and one["parent_id"] is None
    assert [m["content"] for m in one["final_agent_state"]["messages"]] == ["Weather?", None, "sunny", "It is sunny."]
    assert two["status"] == "FAILED" and two["parent_id"] == "int_001" and two["created_at"] == "2025-01-15T10:01:00.500Z"
    assert [m["content"] for m in two["final_agent_state"]["messages"]][-2:] == ["And tomorrow?", "Rain."]
    replayed = [folder("replay", f"chat_abc123/int_00{n}", status=n - 1) for n in (1, 2)]
    assert "match" in replayed[0].stdout and "was not recorded here" in replayed[1].stderr and replayed[1].stdout == ""
    server = folder.make_server(folder.provider, home=folder.home)
    server.check_records = folder.server.check_records = False  # one imported interaction has no end
    folder.provider.plan(text("Snow."))
    server.client.turn("chat_abc123", "And then?")
    assert [m["role"] for m in folder.provider.requests[-1].conversation] == ["user", "assistant", "tool", "assistant", "user", "assistant", "user"]


def test_import_renumbers_only_what_has_no_number(folder, tmp_path):
    index_is_written(folder)
    chat = tmp_path / "old"
    (chat / "interactions").mkdir(parents=True)
    for name, when, message in (("int_zzz", "10:00", "first"), ("int_aaa", "10:05", "second")):
        (chat / "interactions" / f"{name}.json").write_text(json.dumps({
            "id": name, "status": "COMPLETED", "user_message": message, "agent_events": [], "final_agent_state": None,
            "created_at": f"2025-01-15T{when}:00Z", "completed_at": None}))
    folder("import", chat, "--as", "renamed")
    assert [i["user_message"] for i in json.loads(folder("cat", "renamed").stdout)["interactions"]] == ["first", "second"]


@pytest.mark.parametrize("break_it", [
    lambda d: d.pop("user_message"), lambda d: d.update(status="DONE"), lambda d: d.update(agent_events="no"), lambda d: d.update(created_at="yesterday"),
    lambda d: d["agent_events"].append({"type": "SURPRISE"}), lambda d: d.update(final_agent_state={"messages": [{"role": "ghost"}]}),
    lambda d: d.update(schema=99), lambda d: d.update(parent_id="int_001")])
def test_import_of_what_is_broken_is_all_or_nothing(folder, break_it):
    target = folder.home.path / "out"
    folder("export", "--output", target)
    index_is_written(folder)
    file = target / "alpha" / "interactions" / "int_001.json"
    document = json.loads(file.read_text())
    break_it(document)
    file.write_text(json.dumps(document))
    before = tree(folder.home.data)
    told = folder.json("import", target / "alpha", status=1)
    assert told["imported"] == [] and "int_001" in told["failed"][0]["message"]
    after = tree(folder.home.data)
    assert after == before or {p for p in after if after.get(p) != before.get(p)} <= {pathlib.Path(".lock")}
    assert [i["chat_id"] for i in folder.json("import", target, status=1)["imported"]] == ["beta-2"], "the others are imported"
    assert not [p for p in folder.home.data.iterdir() if p.name.startswith(".incoming")]


def test_import_refuses_what_it_cannot_use(folder, tmp_path):
    index_is_written(folder)
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "chat.json").write_text(json.dumps({"id": "../../x", "created_at": "2025-01-15T10:00:00Z"}))
    assert "--as" in folder("import", tmp_path / "evil", status=1).stderr
    assert "sealed" in folder("import", folder.home.data / "beta", status=1).stderr
    (tmp_path / "x.json").write_text("[" * 10000)
    folder("import", tmp_path / "x.json", status=1)
    folder("import", tmp_path / "none", status=1)
    folder("import", tmp_path / "evil", "--as", "a/b", status=2)
    folder("import", folder.home.workspace, status=1)
    folder("import", tmp_path / "evil", "--as", "alpha", status=1)


# --- search ------------------------------------------------------------------------------------------------------------

def test_search(folder):
    found = folder.json("search", "ÜBER")["matches"]
    assert [(m["chat_id"], m["interaction_id"], m["where"]) for m in found] == [("alpha", "int_003", "answer")]
    assert folder.json("search", "ÜBER", "--case-sensitive", status=1)["matches"] == []
    assert {m["where"] for m in folder.json("search", "6*7")["matches"]} == {"tool_call"}
    assert [m["superseded"] for m in folder.json("search", "question 2")["matches"]] == [True]
    assert len(folder.json("search", "question [12]", "--regex")["matches"]) == 2
    assert folder.json("search", "question", "--limit", 1)["truncated"]
    assert folder.json("search", "Hello", "--chat", "alpha", status=1)["matches"] == []
    assert "beta/int_001  user  Hello beta" in folder("search", "hello").stdout
    folder("search", "(", "--regex", status=2)
    folder("search", "x", "--chat", "nobody", status=1)
    index_is_written(folder)
    path = folder.home.checkpoint_file("alpha", "int_002")
    path.write_bytes(path.read_bytes()[:-20])
    done = folder("search", "question", status=1)
    assert "int_002" in done.stderr and "alpha/int_001" in done.stdout


# --- encrypt, decrypt --------------------------------------------------------------------------------------------------

def test_decrypt_and_encrypt_of_chats_and_files(folder):
    plain, sealed = folder.home.path / "plain", folder.home.path / "sealed"
    before = tree(folder.home.data / "alpha" / "interactions")
    folder("decrypt", "alpha", status=2)
    folder("decrypt", "alpha", "--output", plain)
    assert json.loads((plain / "alpha" / "interactions" / "int_003.json").read_text()) == folder.server.client.interaction("alpha", "int_003")
    assert "already" in folder("decrypt", "alpha", "--output", plain, status=1).stderr
    folder("encrypt", "alpha", "--output", sealed, data=plain)
    assert open_sealed(sealed / "alpha" / "interactions" / "int_003.json", folder.home.keys) == folder.server.client.interaction("alpha", "int_003")
    assert folder.verify(data=sealed) == (4, {})
    assert tree(folder.home.data / "alpha" / "interactions") == before
    one = plain / "alpha" / "interactions" / "int_001.json"
    lone = folder.home.path / "lone.json"
    folder("encrypt", one, "--output", lone)
    assert open_sealed(lone, folder.home.keys) == json.loads(one.read_text())
    assert json.loads(folder("decrypt", lone).stdout) == json.loads(one.read_text())
    folder("encrypt", lone, status=1)
    folder("encrypt", plain / "alpha" / "chat.json", status=1)


def test_a_copied_chat_keeps_the_contents_of_changed_files(folder):
    folder.provider.plan(tools(call("write_file", {"path": "w.txt", "content": "one"})), text("ok"))
    folder.server.client.turn("gamma", "write it", approval_mode="approve_all")
    index_is_written(folder)
    plain, sealed = folder.home.path / "plain", folder.home.path / "sealed"
    folder("decrypt", "gamma", "--output", plain)
    folder("encrypt", "gamma", "--output", sealed, data=plain)
    kept = list((folder.home.data / "gamma" / "blobs").iterdir())
    assert kept
    for copy in (plain, sealed):
        assert len(list((copy / "gamma" / "blobs").iterdir())) == len(kept)
    assert folder.verify(data=sealed)[1] == {}


def test_a_damaged_chat_is_not_converted_and_the_others_are(folder):
    index_is_written(folder)
    path = folder.home.checkpoint_file("alpha", "int_002")
    path.write_bytes(path.read_bytes()[:-20])
    told = folder.json("decrypt", "--all", "--output", folder.home.path / "plain", status=1)
    assert told["chats"] == ["beta"] and told["failed"][0]["chat_id"] == "alpha"
    before = tree(folder.home.data)
    assert "int_002" in folder("decrypt", "--all", "--in-place", status=1).stderr
    after = tree(folder.home.data)
    assert {p: c for p, c in after.items() if p.name != ".lock"} == {p: c for p, c in before.items() if p.name != ".lock"}


def test_a_store_is_switched_to_plain_and_back_with_a_waiting_approval(folder):
    home = folder.home
    folder.provider.plan(tools(call("write_file", {"path": "w.txt", "content": "x"})))
    stream = folder.server.client.start("gamma", "write it", on_disconnect="continue")
    approval = stream.until("approval_required")["approval_id"]
    folder.provider.plan(tools(call("write_file", {"path": "v.txt", "content": "x"})), text("ok"))
    granting = folder.server.client.start("delta", "write it")
    folder.server.client.approve("delta", "int_001", granting.until("approval_required")["approval_id"], scope="always").expect(200)
    granting.finish()
    grants = folder.server.client.get("/grants").json
    assert len(grants["grants"]) == 1
    assert "server" in folder("decrypt", "--all", "--in-place", status=1).stderr, "refused while a server holds the folder"
    histories = {c: folder.server.client.history(c, branches="all") for c in ("alpha", "beta")}
    folder.server.kill()
    stream.close()
    kept = folder.json("decrypt", "--all", "--in-place")["kept"]
    assert pathlib.Path(kept).is_dir() and json.loads(home.checkpoint_file("alpha", "int_001").read_text())["user_message"] == "question 1"
    assert stat.S_IMODE(home.data.stat().st_mode) == 0o700
    folder("verify", "--plain")
    plain = folder.make_server(folder.provider, home=home, plain=True)
    plain.check_files = False  # the test seals the files again
    assert {c: plain.client.history(c, branches="all") for c in histories} == histories
    assert [a["approval_id"] for a in plain.client.get("/approvals").json["approvals"]] == [approval]
    assert plain.client.get("/grants").json == grants
    connection = {"type": "openai", "base_url": folder.provider.url, "api_key": "sk-of-the-page-0123", "has_no_list": True}
    plain.client.request("PUT", "/providers/mine", connection).expect(200)
    assert b"sk-of-the-page" in (home.data / ".providers").read_bytes()
    headers = {"X-Api-Key": "tok-of-the-page-0123"}
    plain.client.request("PUT", "/tools/servers/far", {"url": "http://127.0.0.1:1/mcp", "headers": headers}).expect(200)
    plain.client.post("/rules", {"tool": "run_code", "action": "deny"}).expect(200)
    plain.stop()
    folder("verify", "--plain")
    told = folder.json("encrypt", "--all", "--in-place")
    assert sorted(told["chats"]) == ["alpha", "beta", "delta", "gamma"]
    assert folder.verify()[1] == {}
    sealed = folder.make_server(folder.provider, home=home)
    assert sealed.client.get("/grants").json == grants
    assert "mine" in [each["name"] for each in sealed.client.get("/providers").json["providers"]]
    assert b"sk-of-the-page" not in (home.data / ".providers").read_bytes()
    assert [each["headers"] for each in sealed.client.get("/tools/servers").json["servers"]] == [["X-Api-Key"]]
    assert [each["tool"] for each in sealed.client.get("/rules").json["rules"]] == ["run_code"]
    assert b"tok-of-the-page" not in (home.data / ".added_servers").read_bytes()
    assert {c: sealed.client.history(c, branches="all") for c in histories} == histories


def test_kill_9_in_the_middle_of_a_conversion_leaves_one_folder_or_the_other(folder):
    index_is_written(folder)
    home = folder.home
    document = folder.home.path / "doc.json"
    document.write_text(folder("export", "alpha").stdout)
    for _ in range(15):
        folder("import", document)
    whole, chats = folder.verify()
    assert chats == {}
    plain, killed = False, 0
    for milliseconds in [*range(1, 60, 4), 10_000]:
        direction = "encrypt" if plain else "decrypt"
        process = subprocess.Popen([str(BINARY), direction, "--all", "--in-place", "--data-dir", str(home.data)], cwd=home.path, env=home.environment(),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(milliseconds / 1000)
        except subprocess.TimeoutExpired:
            process.kill()
            killed += process.wait() != 0
        plain = "ciphertext" not in json.loads(home.checkpoint_file("alpha", "int_001").read_text())
        assert folder.verify(*(["--plain"] if plain else [])) == (whole, {})
    assert killed > 0 and process.returncode == 0
