"""Imports into a running server: by POST /import, and by `reprise import`, which uses that route."""
import json
import subprocess

import pytest
from support import documents
from support.server import BINARY
from support.timing import SLACK, SOON, eventually

NEEDLE = "the-vault-opens-at-nine"


def reprise(home, *arguments, status=0, **environment):
    command = [str(BINARY), *map(str, arguments), "--data-dir", str(home.data)]
    done = subprocess.run(command, cwd=home.path, env=home.environment(**environment), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=3 * SOON, check=False)
    assert done.returncode == status, (done.stdout[-800:], done.stderr[-800:])
    return done


def imported(home, *arguments, status=0):
    told = json.loads(reprise(home, "import", *arguments, "--json", status=status).stdout)
    return [(chat["chat_id"], chat["interactions"], chat["notes"]) for chat in told["imported"]], told["failed"]


def turns(client, chat, *messages):
    for message in messages:
        client.post(f"/chats/{chat}/interactions", {"user_message": message, "stream": False}).expect(200)


def content(client, chat):
    """All content of a chat, without its id."""
    history = client.get(f"/chats/{chat}?branches=all").expect(200).json
    history.pop("id")
    history.pop("workspace", None)  # an imported chat chooses none
    for interaction in history["interactions"]:
        full = client.get(f"/chats/{chat}/interactions/{interaction['id']}").expect(200).json
        interaction.update(full)
        assert interaction.pop("chat_id") == chat
        interaction.pop("imported", None)
    return history


def document(text="Where to?", **more):
    return {"id": "trip", "title": "A trip", "interactions": [
        {"id": "int_001", "status": "COMPLETED", "user_message": text, "agent_events": [{"type": "ANSWER", "content": "To Rome."}]}], **more}


def chats(client):
    return sorted(chat["id"] for chat in client.get("/chats?limit=500").json["chats"])


def leftovers(home):
    return [path.name for path in home.data.iterdir() if path.name.startswith(".incoming")]


# --- the command ------------------------------------------------------------------------------------------------------

def test_an_export_comes_in_beside_the_server_as_the_same_chat(offline):
    home, client = offline.home, offline.client
    turns(client, "alpha", f"echo {NEEDLE}", "calculate 6*7", "task: Buy milk")
    client.edit("alpha", "int_002", "calculate 1+2").finish()
    file = client.request("POST", "/chats/alpha/files?name=a.bin", bytes(range(256)), headers={"Content-Type": "image/png"}).expect(201).json
    turns(client, "beta", "echo hello")
    out = home.path / "out"
    reprise(home, "export", "-o", out)
    before = content(client, "alpha")
    assert imported(home, out) == ([("alpha-2", 4, []), ("beta-2", 1, [])], [])
    assert content(client, "alpha-2") == before and content(client, "beta-2") == content(client, "beta")
    assert client.get("/chats/alpha-2/files").json["files"] == [file]
    assert client.get(f"/chats/alpha-2/files/{file['id']}").body == bytes(range(256))
    assert content(client, "alpha") == before, "the other chats are unchanged"
    turns(client, "alpha-2", "echo goes on")
    assert "in order" in reprise(home, "verify").stdout
    assert not home.find_text(NEEDLE), "sealed, like everything that the server stores"


def test_a_document_comes_in_beside_the_server(offline, tmp_path):
    path = tmp_path / "trip.json"
    path.write_text(json.dumps(document()))
    note = "int_001 had no state; it was made from its events"
    assert imported(offline.home, path) == ([("trip", 1, [note])], [])
    assert reprise(offline.home, "import", path).stdout == f"trip-2  1 interaction from {path}\n  {note}\n"
    assert imported(offline.home, path, "--as", "named")[0] == [("named", 1, [note])]
    taken = reprise(offline.home, "import", path, "--as", "named", status=1)
    assert "there is a chat named already" in taken.stderr and taken.stdout == ""
    assert chats(offline.client) == ["named", "trip", "trip-2"]
    offline.check_records = False  # the imported interaction has no records of model requests


def test_the_messages_are_those_that_the_command_gives_by_itself(make_server, tmp_path):
    server = make_server()
    broken = document()
    broken["interactions"].append({"id": "int_002", "status": "DONE", "user_message": "And then?"})
    nameless = document(id="../x")
    (tmp_path / "sealed.json").write_text(json.dumps({"ciphertext": "x", "protected": "x", "iv": "x", "tag": "x"}))
    paths = [tmp_path / "sealed.json", tmp_path / "none.json"]
    for name, value in (("broken", broken), ("nameless", nameless), ("other", {"a": 1})):
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(value))
    beside = reprise(server.home, "import", *paths, status=1)
    assert chats(server.client) == [] and beside.stdout == ""
    server.stop()
    alone = reprise(server.home, "import", *paths, status=1)
    assert alone.stderr == beside.stderr and beside.stderr.count("\n") == len(paths), beside.stderr


def test_a_large_file_is_loaded_only_if_it_begins_like_a_chat(make_home, tmp_path):
    home, large = make_home(), " " * (17 << 20)
    for name, content in (("chat", json.dumps(document()) + large), ("other", json.dumps({"a": 1}) + large), ("lines", '{"a": 1}\n' * (2 << 20)),
                          ("few lines", '{"type": "session"}\n{"type": "message"}\n'),
                          ("text", "interactions" + large)):
        (tmp_path / f"{name}.json").write_text(content)
    made, failed = imported(home, *sorted(tmp_path.glob("*.json")), status=1)
    assert [chat for chat, _, _ in made] == ["trip"]
    assert {each["source"]: each["message"] for each in failed} == {
        str(path): f"{path}: it is neither a chat nor a session of a tool that is known here; if it is one, name the tool with --from (docs/moves.md)"
        for path in tmp_path.glob("*.json") if path.stem != "chat"}


def linear(turns):
    """A chat of `turns` turns in the form of an export, with linked states."""
    interactions = []
    for n in range(1, turns + 1):
        question, answer = f"question {n} " + "q" * 400, f"answer {n} " + "a" * 900
        interactions.append({
            "id": f"int_{n:03}", "parent_id": f"int_{n - 1:03}" if n > 1 else None, "status": "COMPLETED", "user_message": question,
            "agent_events": [{"type": "ANSWER", "content": answer}],
            "final_agent_state": {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}], "kept_messages": 2 * n - 2}})
    interactions[0]["final_agent_state"].pop("kept_messages")
    return {"id": "long", "title": "Long", "interactions": interactions}


def said_and_done(client, chat):
    """The size of all events and of all messages, each counted once."""
    size, length = 0, {None: 0}
    for interaction in client.get(f"/chats/{chat}?branches=all&state=all").expect(200).json["interactions"]:
        messages = interaction["final_agent_state"]["messages"]
        length[interaction["id"]] = len(messages)
        size += len(json.dumps(interaction["agent_events"])) + len(json.dumps(messages[length[interaction["parent_id"]]:]))
    return size


def some(client, chat):
    """A sample of the chat's interactions in full, and its other members."""
    history = client.get(f"/chats/{chat}?branches=all").expect(200).json
    ids = [i["id"] for i in history["interactions"]]
    whole = {i: client.get(f"/chats/{chat}/interactions/{i}").expect(200).json for i in [*ids[::17], *ids[-8:]]}
    for interaction in whole.values():
        assert interaction.pop("chat_id") == chat
        interaction.pop("imported", None)
    return ids, history["head"], history["title"], whole


@pytest.mark.limit(120)
def test_a_long_chat_is_as_long_as_what_was_said_and_comes_back_by_every_way(make_server, make_home, tmp_path):
    server = make_server()
    home, client = server.home, server.client
    client.post("/import", linear(240)).expect(201)
    turns(client, "long", "task: Buy milk", f"echo {NEEDLE}")
    client.post("/chats/long/compact", {"stream": False}).expect(200)
    client.edit("long", "int_200", "echo other").finish()
    turns(client, "long", "calculate 6*7")
    file = client.request("POST", "/chats/long/files?name=a.bin", bytes(range(256)), headers={"Content-Type": "image/png"}).expect(201).json
    before, most = some(client, "long"), 1.5 * said_and_done(client, "long")

    exported = client.get("/chats/long/export").expect(200, "chat_history")
    (tmp_path / "http.json").write_bytes(exported.body)
    (tmp_path / "command.json").write_text(reprise(home, "export", "long").stdout)
    reprise(home, "export", "long", "-o", tmp_path / "out")
    folder = sum(path.stat().st_size for path in (tmp_path / "out").rglob("int_*.json"))
    for size in (len(exported.body), (tmp_path / "command.json").stat().st_size, folder):
        assert size <= most

    alone = make_home()
    for number, source in enumerate([tmp_path / "http.json", tmp_path / "command.json", tmp_path / "out/long"]):
        assert imported(home, source, "--as", f"copy-{number}") == ([(f"copy-{number}", len(before[0]), [])], [])
        assert imported(alone, source, "--as", f"copy-{number}") == ([(f"copy-{number}", len(before[0]), [])], [])
    client.post("/import?as=copy-3", exported.json).expect(201)
    client.post("/chats/long/fork", {"interaction_id": before[1], "chat_id": "fork"}).expect(201)
    for number in range(4):
        assert some(client, f"copy-{number}") == before
    assert client.get("/chats/copy-2/files").json["files"] == [file]
    fork = some(client, "fork")
    assert fork[1] == before[1] and {i: before[3][i] for i in fork[3] if i in before[3]} == {i: fork[3][i] for i in fork[3] if i in before[3]}
    assert "in order" in reprise(home, "verify").stdout
    assert client.post("/chats/copy-0/interactions/int_241/replay", {"mode": "recorded"}).expect(200).json["match"]
    client.edit("copy-1", "int_150", "echo again").finish()
    edited = client.interaction("copy-1", client.history("copy-1")["head"])["final_agent_state"]["messages"]
    assert edited[:298] == client.interaction("long", "int_149")["final_agent_state"]["messages"]

    other = make_server(home=alone)
    for number in range(3):
        assert some(other.client, f"copy-{number}") == before
    assert "in order" in reprise(alone, "verify").stdout
    plain = make_home()
    (tmp_path / "out").rename(plain.data)
    served = make_server(home=plain, plain=True)
    assert some(served.client, "long") == before
    turns(served.client, "long", "echo goes on")


def test_an_export_without_a_damaged_interaction_has_no_state_that_continues_it(make_server, tmp_path):
    server = make_server()
    server.check_files = False
    home, client = server.home, server.client
    client.post("/import", linear(120)).expect(201)
    file = home.checkpoint_file("long", "int_110")
    file.write_bytes(file.read_bytes()[:-20])
    server.stop()
    (tmp_path / "command.json").write_text(reprise(home, "export", "long", status=1).stdout)
    reprise(home, "export", "long", "-o", tmp_path / "out", status=1)
    for source in (tmp_path / "command.json", tmp_path / "out/long"):
        other = make_server()
        (told,), failed = imported(other.home, source)
        assert failed == [] and told[:2] == ("long", 119) and any("int_110" in note or "int_111" in note for note in told[2])
        assert len(other.client.interaction("long", "int_109")["final_agent_state"]["messages"]) == 218
        assert other.client.interaction("long", "int_120")["final_agent_state"]["messages"][-2]["content"].startswith("question 120")


def test_a_server_that_wants_a_token_gets_it(make_server, tmp_path):
    token = tmp_path / "token"
    token.write_text("t" * 40)
    token.chmod(0o600)
    server = make_server(arguments=["--token-file", token], token="t" * 40)
    server.check_records = False
    path = tmp_path / "trip.json"
    path.write_text(json.dumps(document()))
    refused = reprise(server.home, "import", path, status=1)
    assert "token" in refused.stderr
    assert imported(server.home, path, "--token-file", token)[0][0][0] == "trip"
    # A server with another data folder.
    other = server.home.path / "elsewhere"
    done = subprocess.run([str(BINARY), "import", str(path), "--data-dir", str(other), "--token-file", str(token), "--url", f"http://127.0.0.1:{server.port}"],
                          env=server.home.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON, check=False)
    assert done.returncode == 0 and done.stdout.startswith("trip-2 "), (done.stdout, done.stderr)
    assert not other.exists()


# --- the route --------------------------------------------------------------------------------------------------------

def test_curl_brings_a_chat_in(make_server):
    server = make_server()
    server.check_records = False
    made = server.client.post("/import", document()).expect(201, "imported").json
    assert made["id"] == "trip" and made["head"] == "int_001" and made["status"] == "COMPLETED" and len(made["notes"]) == 1
    assert server.client.post("/import", document()).expect(201, "imported").json["id"] == "trip-2"
    assert server.client.post("/import?as=trip", document()).expect(409, "error").json["error"]["code"] == "chat_exists"
    broken = server.client.post("/import", document(interactions=[{"user_message": "x", "status": "COMPLETED", "created_at": "soon"}])).expect(400, "error")
    assert broken.json["error"]["message"] == "the document, interaction 1: created_at is no time"
    assert chats(server.client) == ["trip", "trip-2"]
    history = server.client.get("/chats/trip").json
    again = server.client.post("/import?as=copy", history).expect(201, "imported").json
    assert again["notes"] == [], "a history from the server can be imported"
    assert content(server.client, "copy") == content(server.client, "trip")
    attached = server.client.request("POST", "/chats/trip/files?name=a.png", documents.png(), headers={"Content-Type": "image/png"}).json["id"]
    server.client.turn("trip", "look", attachments=[attached])
    lacking = server.client.post("/import?as=lacking", server.client.get("/chats/trip/export").json).expect(201, "imported").json["notes"]
    assert [note for note in lacking if "1 attached file is not in the export" in note], lacking


def test_what_was_chosen_for_a_chat_is_left_out_and_named(make_server, tmp_path):
    """A document from anywhere puts no words into the prompt and chooses no model."""
    server = make_server()
    server.check_records = False
    chosen = {"instructions": "Be a pirate.", "effort": "high", "chosen_model": "test/other"}
    made = server.client.post("/import", document(**chosen)).expect(201, "imported").json
    said = "left out: the model, the effort, the instructions that were chosen for the chat"
    assert said in made["notes"], made
    summary = next(chat for chat in server.client.get("/chats").json["chats"] if chat["id"] == made["id"])
    assert [summary.get(name) for name in chosen] == [None, None, None] or not any(summary.get(name) for name in chosen), summary
    (tmp_path / "chat.json").write_text(json.dumps(document(**chosen)))
    assert said in reprise(server.home, "import", tmp_path / "chat.json").stdout


@pytest.mark.limit(60 + 20 * SLACK)
def test_a_server_that_is_killed_meanwhile_has_the_whole_chat_or_nothing(make_server):
    server = make_server()
    home = server.home
    turns(server.client, "kept", "echo hello")
    path = home.path / "long.json"
    path.write_text(json.dumps(document(id="long", interactions=[
        {"id": f"int_{n:03}", "status": "COMPLETED", "user_message": f"question {n}", "agent_events": [{"type": "ANSWER", "content": "yes"}]} for n in range(1, 401)])))
    process = subprocess.Popen([str(BINARY), "import", str(path), "--data-dir", str(home.data)], env=home.environment(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: len(list(home.data.glob(".incoming.*/long/interactions/*.json"))) > 5, "the import is in progress", 5 * SOON)
    server.client.get("/chats/kept").expect(200)
    turns(server.client, "kept", "echo meanwhile")
    server.kill()
    out, err = process.communicate(timeout=3 * SOON)
    assert process.returncode == 1 and out == "" and err.count("\n") == 1, (out, err)
    again = make_server(home=home)
    again.check_records = False
    assert chats(again.client) == ["kept"]
    assert imported(home, path)[0][0][:2] == ("long", 400)
    assert leftovers(home) == []
    assert "in order" in reprise(home, "verify").stdout


def test_a_folder_of_documents_and_folders_comes_in_whole_and_the_rest_is_named(offline, tmp_path):
    home = offline.home
    turns(offline.client, "known", "echo one")
    folder = tmp_path / "several"
    reprise(home, "export", "known", "-o", folder)
    (folder / "trip.json").write_text(json.dumps(document()))
    (folder / "notes.txt").write_text("mine")
    done = reprise(home, "import", folder, "--json")
    told = json.loads(done.stdout)
    assert sorted(chat["chat_id"] for chat in told["imported"]) == ["known-2", "trip"] and told["failed"] == []
    assert "notes.txt" in done.stderr
    only = tmp_path / "documents"
    only.mkdir()
    (only / "trip.json").write_text(json.dumps(document()))
    (only / "broken.json").write_text("{}")
    done = reprise(home, "import", only, "--json", status=1)
    told = json.loads(done.stdout)
    assert [chat["chat_id"] for chat in told["imported"]] == ["trip-2"]
    assert "broken.json" in json.dumps(told["failed"])
