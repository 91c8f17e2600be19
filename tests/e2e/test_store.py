"""Files on disk are sealed and private, and damage is reported without affecting other files."""
import base64
import json
import os
import shutil
import stat
import subprocess

import pytest
from support import schemas
from support.provider import Gate, call, text, tools
from support.server import open_sealed, open_with_jose, unbase64
from support.timing import eventually

CANARY = "Canary-Zx81-Plaintext-Needle-Quartz"


def converse(client, provider, turns, chat="c"):
    for number in range(1, turns + 1):
        provider.plan(text(f"a{number}"))
        client.turn(chat, f"q{number}")


def test_an_independent_jose_program_opens_a_checkpoint(server, provider):
    provider.plan(text("a1"))
    stream = server.client.turn("c", "q1")
    file = server.home.checkpoint_file("c", "int_001")
    sealed = json.loads(file.read_text())
    schemas.check("jwe", sealed)
    header = json.loads(unbase64(sealed["protected"]))
    schemas.check("jwe_protected", header)
    assert (header["alg"], header["enc"], header["chat_id"], header["interaction_id"]) == ("A256KW", "A256GCM", "c", "int_001")
    stored = open_with_jose(file, server.home.keys)
    schemas.check("interaction", stored)
    assert stored["user_message"] == "q1" and stored["final_agent_state"]["messages"][-1]["content"] == "a1"
    assert stored == server.client.interaction("c", stream.interaction)


def test_another_key_does_not_open_it(server, provider, tmp_path):
    converse(server.client, provider, 1)
    wrong = json.loads(server.home.keys.read_text())
    wrong["keys"][0]["k"] = base64.urlsafe_b64encode(bytes(32)).decode().rstrip("=")
    (tmp_path / "wrong.jwks").write_text(json.dumps(wrong))
    with pytest.raises(AssertionError):
        open_sealed(server.home.checkpoint_file("c", "int_001"), tmp_path / "wrong.jwks")


def test_children_are_bound_to_their_parents(server, provider):
    converse(server.client, provider, 3)
    headers = [json.loads(unbase64(json.loads(p.read_text())["protected"])) for p in server.home.checkpoints("c")]
    assert [h["parent_id"] for h in headers] == [None, "int_001", "int_002"]
    assert headers[0]["parent_digest"] is None and len({h["parent_digest"] for h in headers}) == 3


def test_every_seal_has_fresh_keys(server, provider):
    converse(server.client, provider, 4)
    sealed = [json.loads(p.read_text()) for p in server.home.data.rglob("*.json")]
    for member in ("iv", "encrypted_key"):
        assert len({s[member] for s in sealed}) == len(sealed)


def test_no_user_text_is_anywhere_in_the_clear(make_server, provider):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    home, client = server.home, server.client
    gate = Gate()
    provider.plan(tools(call("echo", {"text": CANARY}), call("run_shell", {"command": f"echo {CANARY}"}, "s"), think=CANARY, say=CANARY),
                  text(CANARY, gate, CANARY))
    stream = client.start("c", f"{CANARY} please")
    stream.until("text_delta", round_index=1)
    assert home.find_text(CANARY) == [], "while it runs"
    assert CANARY not in server.log()
    gate.release()
    stream.finish()
    client.post("/chats/c/interactions", json.dumps({"user_message": CANARY, CANARY: 1})).error(400)
    client.request("PATCH", "/chats/c", {"title": f"title {CANARY}"}).expect(200)
    assert home.find_text(CANARY) == [], "after it ran"
    server.stop()
    assert home.find_text(CANARY) == [] and CANARY not in server.log()


def test_modes_under_umask_000(server, provider):
    converse(server.client, provider, 2)
    home = server.home
    assert stat.S_IMODE(home.keys.stat().st_mode) == 0o600 and stat.S_IMODE(home.keys.parent.stat().st_mode) == 0o700
    seen = 0
    for path in [home.data, *home.data.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        seen += 1
    assert seen >= 6
    schemas.check("keys", json.loads(home.keys.read_text()))


@pytest.mark.parametrize("umask", ["000", "022", "027", "077"])
def test_what_goes_into_the_workspace_has_the_modes_of_touch_and_mkdir_and_the_rest_is_private(make_server, provider, make_home, umask):
    home = make_home()
    for name, mode in (("kept.sh", 0o755), ("secret.txt", 0o600), ("gone.sh", 0o750)):
        (home.workspace / name).write_text("old\n")
        (home.workspace / name).chmod(mode)
    server = make_server(provider, home, config={"approval_mode": "approve_all"}, arguments=["--log-file", str(home.path / "logs" / "server.log")],
                         wrapper=["/bin/sh", "-c", f'umask {umask}; mkdir -p "$LOGS"; exec "$0" "$@"'], environment={"LOGS": str(home.path / "logs")})
    subprocess.run(["/bin/sh", "-c", f"umask {umask}; touch file; mkdir folder"], cwd=home.path, check=True)
    file, folder = (stat.S_IMODE((home.path / name).stat().st_mode) for name in ("file", "folder"))
    code = "import os; open('code.txt', 'w'); os.makedirs('code/below')"
    calls = [call("write_file", {"path": "new/below/w.txt", "content": "x"}, "a"), call("write_file", {"path": "kept.sh", "content": "new"}, "b"),
             call("edit_file", {"path": "secret.txt", "old_text": "old", "new_text": "new"}, "c"),
             call("run_shell", {"command": "touch shell.txt; mkdir -p shell/below; rm gone.sh; umask > umask.txt"}, "d"),
             call("run_code", {"language": "python", "code": code}, "e"), call("run_code", {"language": "shell", "code": ": > code.sh"}, "f"),
             call("save_chat_file", {"filename": "f.txt", "content": "x"}, "g")]
    provider.plan(text("hello"), *[tools(each) for each in calls], text("ok"))
    server.client.turn("c", "hello")
    stream = server.client.turn("c", "go")
    assert not [e for e in stream.all("tool_result") if e["is_error"]], stream.events

    def modes():
        return {str(path.relative_to(home.workspace)): stat.S_IMODE(path.stat().st_mode) for path in home.workspace.rglob("*")}
    made = {"new/below/w.txt": file, "new": folder, "new/below": folder, "shell.txt": file, "shell": folder, "shell/below": folder, "umask.txt": file,
            "code.txt": file, "code.sh": file, "code": folder, "code/below": folder, "kept.sh": 0o755, "secret.txt": 0o600}
    assert modes() == made and int((home.workspace / "umask.txt").read_text(), 8) == int(umask, 8)
    # Restored files have their former modes.
    server.client.post("/chats/c/undo", {"files": "restore"}).expect(200)
    assert modes() == {"kept.sh": 0o755, "secret.txt": 0o600, "gone.sh": 0o750}
    server.client.post("/chats/c/head", {"interaction_id": "int_002", "files": "restore"}).expect(200)
    assert modes() == made
    # The program's own files are private, whatever the umask.
    private = [home.data, home.keys.parent, home.path / "logs" / "server.log"]
    seen = [path for top in private for path in [top, *top.rglob("*")]]
    wide = [(str(path), oct(path.lstat().st_mode)) for path in seen if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert wide == [] and len(seen) > 8


@pytest.mark.parametrize("umask", ["000", "022", "027", "077"])
def test_patches_jobs_and_sub_agents_make_files_likewise(make_server, provider, make_home, umask):
    home = make_home()
    (home.workspace / "kept.sh").write_text("old\n")
    (home.workspace / "kept.sh").chmod(0o755)
    agent = home.workspace / ".reprise" / "agents" / "docs.md"
    agent.parent.mkdir(parents=True)
    agent.write_text("---\ndescription: Writes the docs\n---\nWrite.\n")
    home.trust(agent)
    server = make_server(provider, home, config={"approval_mode": "approve_all", "models": {"test/patcher": {"edit_format": "apply_patch"}}},
                         wrapper=["/bin/sh", "-c", f'umask {umask}; exec "$0" "$@"'])
    subprocess.run(["/bin/sh", "-c", f"umask {umask}; touch file; mkdir folder"], cwd=home.path, check=True)
    file, folder = (stat.S_IMODE((home.path / name).stat().st_mode) for name in ("file", "folder"))
    patch = "*** Begin Patch\n*** Add File: patched/p.txt\n+x\n*** Update File: kept.sh\n@@\n-old\n+new\n*** End Patch\n"
    provider.plan(tools(call("apply_patch", {"input": patch}, "a")), tools(call("run_shell", {"command": "touch job.txt; mkdir job", "background": True}, "b")),
                  tools(call("research", {"question": "write", "agent": "docs"}, "c")), tools(call("write_file", {"path": "docs/d.txt", "content": "x"}, "d")),
                  text("written"), text("ok"))
    stream = server.client.turn("c", "go", model="test/patcher")
    assert not [e for e in stream.all("tool_result") if e["is_error"]], stream.events
    made = {"patched": folder, "patched/p.txt": file, "job.txt": file, "job": folder, "docs": folder, "docs/d.txt": file, "kept.sh": 0o755}
    eventually(lambda: (home.workspace / "job").exists(), "the job has run")
    assert {path: stat.S_IMODE((home.workspace / path).stat().st_mode) for path in made} == made


def test_plain_stores_the_specifications_json(make_server, provider):
    server = make_server(provider, plain=True)
    converse(server.client, provider, 2)
    stored = json.loads(server.home.checkpoint_file("c", "int_002").read_text())
    schemas.check("interaction", stored)
    assert {"id", "status", "user_message", "agent_events", "final_agent_state", "created_at", "completed_at"} <= stored.keys()
    assert [m["content"] for m in stored["final_agent_state"]["messages"] if m["role"] != "system"] == ["q1", "a1", "q2", "a2"]
    server.stop()  # until then the index may lag behind the checkpoints
    schemas.check("chat", json.loads((server.home.data / "c" / "chat.json").read_text()))


def test_the_chat_file_is_as_its_schema_says(server, provider, make_server):
    converse(server.client, provider, 2)
    server.stop()
    chat = open_sealed(server.home.data / "c" / "chat.json", server.home.keys)
    schemas.check("chat", chat)
    assert chat["title"] == "q1" and chat["head"] == "int_002"


def test_a_title_is_fifty_whole_characters(client, provider):
    provider.plan(text("x"))
    client.turn("c", "ü😀" * 40)
    assert client.history("c")["title"].startswith("ü😀" * 24) and len(client.history("c")["title"]) <= 51


class Damaged:
    """Two chats on disk. A test changes a file of the first while no server runs."""

    def __init__(self, make_server, provider, home, plain=False):
        self.make_server, self.provider, self.home, self.plain = make_server, provider, home, plain
        server = make_server(provider, home=home, plain=plain)
        converse(server.client, provider, 3)
        converse(server.client, provider, 1, "other")
        server.close()

    def restart(self, *arguments):
        server = self.make_server(self.provider, home=self.home, plain=self.plain, arguments=arguments)
        server.check_files = False
        return server

    def expect(self, kind, interaction="int_002"):
        """Asserts that the interaction is an integrity error of this kind, everything else works, and nothing is rewritten."""
        before = {p: p.read_bytes() for p in self.home.checkpoints("c")}
        server = self.restart()
        client = server.client
        kinds = kind if isinstance(kind, tuple) else (kind,)
        error = client.get(f"/chats/c/interactions/{interaction}").error(422)
        assert error["code"] in [f"integrity_{k}" for k in kinds], error
        assert str(self.home.path) not in json.dumps(error), "an error body must not contain paths"
        for other in {"int_001", "int_002", "int_003"} - {interaction}:
            client.interaction("c", other)
        history = client.history("c", branches="all")
        assert [d["interaction_id"] for d in history["damaged"]] == [interaction]
        assert client.history("other")["interactions"][0]["user_message"] == "q1"
        assert {c["id"] for c in client.get("/chats").json["chats"]} == {"c", "other"}
        self.provider.plan(text("fine"))
        client.turn("other", "go on")
        self.provider.plan(text("fine"))
        client.turn("third", "a new chat")
        assert {p: p.read_bytes() for p in before} == before, "damaged files are not rewritten"


@pytest.fixture
def damaged(make_server, provider, make_home):
    return Damaged(make_server, provider, make_home())


def change(path, function):
    sealed = json.loads(path.read_text())
    function(sealed)
    path.write_text(json.dumps(sealed))


@pytest.mark.parametrize("member", ["ciphertext", "tag", "iv", "encrypted_key", "protected"])
def test_a_flipped_bit_anywhere_is_found(damaged, member):
    def flip(sealed):
        value = sealed[member]
        middle = len(value) // 2
        sealed[member] = value[:middle] + ("A" if value[middle] != "A" else "B") + value[middle + 1:]

    change(damaged.home.checkpoint_file("c", "int_002"), flip)
    damaged.expect(("auth", "swap", "version"))


@pytest.mark.parametrize("keep", [0, 1, 100, -1, -3])
def test_a_truncated_file_is_found(damaged, keep):
    path = damaged.home.checkpoint_file("c", "int_002")
    path.write_bytes(path.read_bytes().rstrip()[:keep])
    damaged.expect("auth")


def test_zeros_are_found(damaged):
    path = damaged.home.checkpoint_file("c", "int_002")
    path.write_bytes(bytes(path.stat().st_size))
    damaged.expect("auth")


def test_a_swapped_file_is_found(damaged):
    shutil.copy(damaged.home.checkpoint_file("c", "int_001"), damaged.home.checkpoint_file("c", "int_002"))
    damaged.expect("swap")


def test_a_file_from_another_chat_is_found(damaged):
    shutil.copy(damaged.home.checkpoint_file("other", "int_001"), damaged.home.checkpoint_file("c", "int_001"))
    damaged.expect("swap", "int_001")


def test_plain_json_among_sealed_files_is_found(damaged):
    path = damaged.home.checkpoint_file("c", "int_002")
    path.write_text(json.dumps(open_sealed(path, damaged.home.keys)))
    damaged.expect("plain")


def test_a_parent_replaced_by_another_genuine_file_of_its_place_is_found(make_server, provider, make_home):
    """The file is sealed with the same key for the same place, so only the parent's digest in the child reveals it."""
    home = make_home()
    first = make_server(provider, home=home)
    converse(first.client, provider, 2)
    first.stop()
    real = home.data.rename(home.path / "real")
    second = make_server(provider, home=home)
    first.check_records = second.check_records = False
    provider.plan(text("forged"))
    second.client.turn("c", "another past")
    second.stop()
    shutil.copy(home.checkpoint_file("c", "int_001"), real / "c" / "interactions" / "int_001.json")
    shutil.rmtree(home.data)
    real.rename(home.data)
    server = make_server(provider, home=home)
    server.check_files = False
    answers = [server.client.get("/chats/c"), server.client.get("/chats/c/interactions/int_002"), server.client.get("/chats/c/interactions/int_001")]
    codes = [a.json["error"]["code"] for a in answers if a.status == 422]
    codes += [d["error"]["code"] for a in answers[:1] if a.status == 200 for d in a.json.get("damaged", [])]
    assert codes and all(code.startswith("integrity_") for code in codes), "a replaced parent goes unnoticed"


def test_a_missing_file_is_told(damaged):
    damaged.home.checkpoint_file("c", "int_002").unlink()
    server = damaged.restart()
    answer = server.client.get("/chats/c/interactions/int_002")
    assert answer.status in (404, 422), answer.body
    server.client.interaction("c", "int_001")
    server.client.interaction("c", "int_003")
    server.client.history("other")


def test_a_lost_index_is_rebuilt_from_the_checkpoints(damaged):
    (damaged.home.data / "c" / "chat.json").unlink()
    server = damaged.restart()
    history = server.client.history("c")
    assert [i["user_message"] for i in history["interactions"]] == ["q1", "q2", "q3"] and history["title"] == "q1"
    damaged.provider.plan(text("a4"))
    assert server.client.turn("c", "q4").interaction == "int_004"


def test_a_sealed_folder_opened_with_plain_says_so_and_changes_nothing(damaged):
    before = {p: p.read_bytes() for p in damaged.home.data.rglob("*.json")}
    damaged.plain = True
    with pytest.raises(AssertionError, match="2 chats in .* are sealed: leave --plain out"):
        damaged.restart()
    assert {p: p.read_bytes() for p in before} == before


def test_with_another_key_nothing_opens_and_nothing_changes(damaged):
    before = {p: p.read_bytes() for p in damaged.home.data.rglob("*.json")}
    damaged.home.keys.unlink()
    server = damaged.restart("--new-key")
    assert server.client.get("/chats/c/interactions/int_001").error(422)["code"].startswith("integrity_")
    damaged.provider.plan(text("fine"))
    server.client.turn("new", "go")
    assert {p: p.read_bytes() for p in before} == before


def test_a_new_turn_on_a_damaged_head_is_refused_but_an_edit_before_it_works(damaged):
    path = damaged.home.checkpoint_file("c", "int_003")
    path.write_bytes(path.read_bytes()[:-20])
    server = damaged.restart()
    error = server.client.post("/chats/c/interactions", {"user_message": "x"}).error(422)
    assert error["code"].startswith("integrity_")
    damaged.provider.plan(text("ok"))
    server.client.edit("c", "int_002", "again").finish()
    assert [m["content"] for m in damaged.provider.requests[-1].conversation] == ["q1", "a1", "again"]


def test_foreign_files_are_left_alone(damaged):
    strange = [damaged.home.data / "notes.txt", damaged.home.data / "c" / "interactions" / "int_002.json.tmp~", damaged.home.data / "c" / "x.json"]
    for path in strange:
        path.write_text("mine")
    (damaged.home.data / "not a chat!").mkdir()
    server = damaged.restart()
    assert len(server.client.history("c")["interactions"]) == 3
    assert len(server.client.get("/chats").json["chats"]) == 2
    assert [p.read_text() for p in strange] == ["mine"] * 3


def test_a_loose_key_file_is_refused(make_server, provider, damaged):
    damaged.home.keys.chmod(0o644)
    with pytest.raises(AssertionError, match="the server ended with [12]"):
        damaged.restart()


def test_when_the_data_folder_becomes_unwritable_the_run_is_saved_elsewhere_and_comes_home(make_server, provider, make_home):
    """Replaces the chat's folder by a file during the run, so that even root cannot write there."""
    home = make_home()
    server = make_server(provider, home=home)
    converse(server.client, provider, 1)
    gate = Gate()
    provider.plan(text("precious", gate))
    stream = server.client.start("c", "q2")
    stream.until("text_delta")
    folder = home.data / "c" / "interactions"
    aside = folder.rename(home.data / "aside")
    folder.write_text("in the way")
    gate.release()
    events = stream.rest()
    server.check_files = False
    server.stop()
    folder.unlink()
    aside.rename(folder)
    again = make_server(provider, home=home)
    again.check_files = False
    stored = again.client.interaction("c", "int_002")
    assert stored["user_message"] == "q2" and "precious" in json.dumps(stored)
    assert events[-1]["status"] == stored["status"]


def test_disk_use_is_linear(server, provider):
    sizes = []
    for number in range(1, 13):
        provider.plan(text("x" * 1000))
        server.client.turn("c", "y" * 1000)
        sizes.append(sum(p.stat().st_size for p in server.home.checkpoints("c")))
    growth = [b - a for a, b in zip(sizes, sizes[1:])]
    per_state = growth[-1] - growth[0]
    assert per_state < 20 * 4000, "a checkpoint holds one state, not all earlier ones"
    assert os.path.getsize(server.home.checkpoint_file("c", "int_012")) < 12 * 2 * 1000 * 1.34 * 2


def test_a_start_touches_nothing_behind_links_in_the_data_folder(make_server, make_home, provider):
    home = make_home()
    own = home.path / "own"
    (own / "interactions").mkdir(parents=True)
    for name in ("thesis.txt", "0", "chat.json", "interactions/int_001.json", "interactions/.int_001.json.0123456789abcdef.tmp", "empty"):
        (own / name).write_text("" if name == "empty" else f"mine: {name}")
    before = {str(p): p.is_file() and p.read_bytes() for p in sorted(own.rglob("*"))}
    home.data.mkdir(mode=0o700)
    for name in (".spare", ".trash", ".incoming.0123456789abcdef", "planted"):
        (home.data / name).symlink_to(own)
    server = make_server(provider, home=home)
    server.check_files = False
    provider.plan(text("a1"))
    server.client.turn("c", "q1")
    server.client.post("/chats/planted/interactions", {"user_message": "q"}).error(422, "integrity_missing")
    server.client.get("/chats/planted").error(422, "integrity_missing")
    server.stop()
    make_server(provider, home=home).check_files = False
    assert {str(p): p.is_file() and p.read_bytes() for p in sorted(own.rglob("*"))} == before


def test_a_newest_interaction_that_was_put_back_is_not_gone_on_from(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    server.check_files = False
    converse(server.client, provider, 3)
    file = home.checkpoint_file("c", "int_003")
    old = file.read_bytes()
    server.client.request("DELETE", "/chats/c").expect(200)
    for turn in (1, 2, 3):
        provider.plan(text(f"b{turn}"))
        server.client.turn("c", f"second life {turn}")
    server.stop()
    file.write_bytes(old)
    again = make_server(provider, home=home)
    again.check_files = False
    client, asked = again.client, len(provider.requests)
    for answer in (client.get("/chats/c/interactions/int_003"),
                   client.post("/chats/c/interactions", {"user_message": "q4"}),
                   client.post("/chats/c/interactions/int_003/edit", {"new_user_message": "other"}),
                   client.post("/chats/c/interactions/int_003/regenerate"),
                   client.post("/chats/c/fork", {"interaction_id": "int_003", "chat_id": "copy"})):
        answer.error(422, "integrity_rollback")
        assert answer.json["error"]["details"]["file"] == "c/interactions/int_003.json"
    assert len(provider.requests) == asked
    file.unlink()
    file.mkdir()
    client.get("/chats/c/interactions/int_003").error(422, "integrity_missing")
    client.get("/chats/c/interactions/int_002").expect(200)
