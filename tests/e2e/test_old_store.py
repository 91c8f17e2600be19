"""Stores of version 0.1 stay readable, editable, replayable and verifiable: tests/data/old_store, with that version's answers."""
import functools
import json
import shutil
import subprocess

import pytest
from support.provider import text
from support.server import BINARY, ROOT
from support.store_answers import exported, interactions_of, missing, replays_of, shortened
from support.timing import SOON, eventually

SAMPLES = ROOT / "tests/data/old_store"
FRAMES = ("interaction_started", "interaction_complete")
DAMAGED = "damaged/interactions/int_002.json"


@functools.cache
def told(kind):
    """The answers of the version that wrote the store."""
    return json.loads((SAMPLES / f"{kind}.json").read_text())


class Old:
    """A copy of the store in a new home."""

    def __init__(self, kind, home, make_server, provider):
        self.kind, self.home, self.told, self.make_server, self.provider = kind, home, told(kind), make_server, provider
        shutil.copytree(SAMPLES / kind, home.data, copy_function=shutil.copyfile)
        home.keys.parent.mkdir(parents=True)
        if kind == "sealed":
            shutil.copyfile(SAMPLES / "keys.jwks", home.keys)
        for top in (home.data, home.config):
            for path in [top, *top.rglob("*")]:
                path.chmod(0o700 if path.is_dir() else 0o600)  # git does not store modes
        home.killed = True

    def serve(self):
        """Starts a server with a model that answers "new" to everything."""
        self.provider.answer_with(lambda _: text("new"))
        server = self.make_server(self.provider, home=self.home, plain=self.kind == "plain")
        server.check_files = False  # one file is damaged
        self.client = server.client
        return server

    def command(self, *arguments, status=0):
        command = [str(BINARY), *map(str, arguments), "--data-dir", str(self.home.data), *(["--plain"] if self.kind == "plain" else [])]
        done = subprocess.run(command, env=self.home.environment(), cwd=self.home.path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SOON * 2, check=False)
        assert done.returncode == status, (command, done.stdout[-1000:], done.stderr[-2000:])
        return done.stdout

    def problems(self):
        report = json.loads(self.command("verify", "--json", status=1))
        return [[p["file"], p["kind"]] for p in report["problems"]]

    def tree(self):
        return {p.relative_to(self.home.data): p.read_bytes() for p in sorted(self.home.data.rglob("*")) if p.is_file() and p.name != ".lock"}

    def state(self, chat, interaction):
        return self.told["chats"][chat]["interactions"][interaction]["final_agent_state"]

    def messages_before(self, chat, interaction):
        parent = self.told["chats"][chat]["interactions"][interaction]["parent_id"]
        return self.state(chat, parent)["messages"] if parent else []


@pytest.fixture(params=["sealed", "plain"])
def old(request, make_home, make_server, provider):
    return Old(request.param, make_home(), make_server, provider)


def sent(provider):
    """The last messages to the model, with long texts shortened as in the sample."""
    return shortened(provider.requests[-1].conversation)


def as_sent(messages, new):
    return [(m["role"], m["content"]) for m in messages] + [("user", new)]


def test_the_sample_is_what_it_should_be():
    """The sample has everything that a later format must carry over."""
    for kind in ("sealed", "plain"):
        chats = told(kind)["chats"]
        events = [e for chat in chats.values() for i in chat["interactions"].values() for e in i.get("agent_events", [])]
        assert {e["type"] for e in events} == {
            "ANSWER", "APPROVAL_REQUIRED", "APPROVED", "CANCELLED", "COMPACTED", "ERROR", "GRANTS_UPDATED", "INPUT_RECEIVED", "INPUT_REQUIRED",
            "LOOP_DETECTED", "MESSAGE", "NESTED", "PLAN_UPDATED", "REJECTED", "RETRY", "TASK_UPDATED", "THINKING", "TOOL_CALL", "TOOL_RESULT", "USAGE"}
        statuses = {i["status"] for chat in chats.values() for i in chat["interactions"].values() if "status" in i}
        assert statuses == {"COMPLETED", "FAILED", "CANCELLED"}
        assert sum("superseded" in e for e in events if e["type"] == "REJECTED") == 1
        assert [len(chat["running"]) for chat in chats.values()].count(1) == 4
        assert any(chat["forked_from"] for chat in chats.values()) and any(chat["files"] for chat in chats.values())
        assert told(kind)["grants"] and told(kind)["queue"] and told(kind)["trash"]
        assert len(list((SAMPLES / kind).glob("*/interactions/*.journal"))) == 4
    linked = json.loads((SAMPLES / "plain/long/interactions/int_009.json").read_text())["final_agent_state"]["linked"]
    assert linked["bytes"] > 65536 and linked["files"] > 1
    size = sum(f.stat().st_size for f in SAMPLES.rglob("*") if f.is_file())
    assert size < 1.5e6, "every clone of the repository carries the sample"


def test_verify_names_what_is_damaged_and_nothing_else(old):
    before = old.tree()
    assert old.problems() == old.told["verify"] == [[DAMAGED, "auth"]]
    assert old.tree() == before


def test_commands_read_it_without_a_server(old):
    before = old.tree()
    listed = {c["id"]: c for c in json.loads(old.command("ls", "--json"))["chats"]}
    assert set(listed) == set(old.told["chats"])
    for chat, then in old.told["chats"].items():
        assert missing(listed[chat], {m: then[m] for m in ("title", "created_at", "head")}) is None
        for interaction, stored in then["interactions"].items():
            if "error" in stored and "id" not in stored:
                old.command("cat", f"{chat}/{interaction}", status=1)
            else:
                assert missing(shortened(json.loads(old.command("cat", f"{chat}/{interaction}"))), stored) is None
    assert "the old branch goes on" in old.command("show", "branches")
    assert old.tree() == before


@pytest.mark.limit(120)
def test_every_chat_is_as_it_was(old):
    old.serve()
    listed = {c["id"]: c for c in old.client.get("/chats?limit=500").expect(200).json["chats"]}
    assert set(listed) == set(old.told["chats"])
    for chat, then in old.told["chats"].items():
        assert missing(listed[chat], {m: then[m] for m in ("title", "created_at")}) is None
        if then["running"]:
            continue  # their runs continue
        ids = list(then["interactions"])
        assert missing(shortened(interactions_of(old.client, chat, ids)), then["interactions"]) is None, chat
        everything = old.client.get(f"/chats/{chat}?branches=all").expect(200).json
        assert missing(shortened(everything), {m: then[m] for m in ("title", "created_at", "head")}) is None
        assert everything.get("forked_from") == then["forked_from"]
        assert shortened(everything.get("damaged", [])) == then["damaged"]
        assert [i["id"] for i in everything["interactions"]] == ids
        assert [i["id"] for i in everything["interactions"] if i["superseded"]] == then["superseded"]
        for interaction in everything["interactions"]:
            stored = {m: v for m, v in then["interactions"][interaction["id"]].items() if m != "final_agent_state"}
            assert missing(shortened(interaction), stored) is None
        assert [i["id"] for i in old.client.get(f"/chats/{chat}").expect(200).json["interactions"]] == then["branch"]
        assert old.client.get(f"/chats/{chat}/files").expect(200).json["files"] == then["files"]
        if chat != "empty":
            assert missing(old.client.get(f"/chats/{chat}/tasks").expect(200).json, then["tasks"]) is None
            assert missing(old.client.get(f"/chats/{chat}/grants").expect(200).json["grants"], then["grants"]) is None
    assert missing(shortened(old.client.get("/grants").expect(200).json["grants"]), old.told["grants"]) is None
    for file, content in zip(old.told["chats"]["files"]["files"], (b"the vault opens at nine\n", bytes(range(256)))):
        assert old.client.get(f"/chats/files/files/{file['id']}").expect(200).body == content
    numbers = [entry["seq"] for entry in old.client.get("/audit?limit=500").expect(200).json["entries"]]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 50
    assert old.problems() == [[DAMAGED, "auth"]]


@pytest.mark.limit(120)
def test_every_interaction_is_replayed(old):
    old.serve()
    for chat, then in old.told["chats"].items():
        if then["running"]:
            continue
        assert missing(shortened(replays_of(old.client, chat, list(then["replays"]))), then["replays"]) is None, chat
        for interaction, stored in then["interactions"].items():
            if "agent_events" not in stored or chat == "imported":  # there a frame and an event share the first number
                continue
            stream = old.client.stream("POST", f"/chats/{chat}/interactions/{interaction}/replay", {"mode": "events"}, gapless=False)
            shown = [e.data for e in stream.rest() if e.name not in FRAMES and not e.name.endswith("_delta")]
            assert missing(shortened(shown), stored["agent_events"]) is None, (chat, interaction)
    assert not [r for r in old.provider.requests if "new" in json.dumps(r.conversation[-1])], "a replay sends no model request"


@pytest.mark.limit(120)
def test_every_chat_goes_on_after_an_edit(old):
    """The model gets the state before the edited interaction."""
    old.serve()
    for chat, then in old.told["chats"].items():
        whole = [i for i in then["branch"] if then["interactions"][i]["user_message"]]
        if then["running"] or not whole:
            continue
        for place in (whole[-1], whole[0]):
            parent = then["interactions"][place]["parent_id"]
            if parent and parent not in then["branch"]:
                continue  # its state was in the damaged file
            before = old.messages_before(chat, place)
            attached = then["interactions"][place].get("attachments")
            edited = old.client.edit(chat, place, f"instead of {place}", model="test/scripted")
            edited.finish()
            if not any("compaction" in (old.state(chat, i) or {}) for i in whole) and not attached:
                assert [(m["role"], m.get("content")) for m in sent(old.provider)] == as_sent(before, f"instead of {place}"), (chat, place)
            state = shortened(old.client.interaction(chat, edited.interaction)["final_agent_state"])
            assert missing(state["messages"][:len(before)], before) is None, (chat, place)
            assert len(state["messages"]) == len(before) + 2
            old.client.turn(chat, "and on")
            state = shortened(old.client.interaction(chat, old.client.history(chat)["head"])["final_agent_state"])
            assert [m["content"] for m in state["messages"][len(before) + 1:]] == ["new", "and on", "new"]
    old.client.post("/chats/damaged/interactions/int_003/edit", {"new_user_message": "x"}).error(422)
    assert old.problems() == [[DAMAGED, "auth"]]


def test_what_was_cut_off_is_taken_up(old):
    old.serve()
    for chat in ("streaming", "working"):
        interaction, = old.told["chats"][chat]["running"]
        stored = old.client.interaction(chat, interaction)
        assert (stored["status"], stored["error"]["code"]) == ("FAILED", "interrupted")
    assert [e["content"] for e in old.client.interaction("streaming", "int_002")["agent_events"] if e["type"] == "MESSAGE"] == ["half an "]
    result, = [e for e in old.client.interaction("working", "int_002")["agent_events"] if e["type"] == "TOOL_RESULT"]
    assert result["is_error"] and "not known" in result["tool_output"]
    for chat in ("streaming", "working"):
        old.client.stream("POST", f"/chats/{chat}/interactions/int_002/resume").finish()
        assert old.client.history(chat)["interactions"][-1]["status"] == "COMPLETED"

    waiting, = [a for a in old.client.get("/approvals").expect(200, "approvals").json["approvals"] if a["chat_id"] == "waiting"]
    then = old.told["waiting"]["approvals"][0]
    assert {m: waiting[m] for m in ("tool_name", "tool_input", "arguments_digest")} == {m: then[m] for m in ("tool_name", "tool_input", "arguments_digest")}
    assert [m["user_message"] for m in old.client.get("/chats/waiting/queue").expect(200, "queue").json["queue"]] == old.told["queue"]
    assert not (old.home.workspace / "waited.txt").exists()
    old.client.approve("waiting", "int_002", waiting["approval_id"]).expect(200)

    def heads():
        return [(i["user_message"], i["status"]) for i in old.client.history("waiting")["interactions"]]

    expected = [(m, "COMPLETED") for m in ("before", "write it", *old.told["queue"])]
    eventually(lambda: heads() == expected, "the queue runs after the answer")
    assert (old.home.workspace / "waited.txt").read_text() == "waited"

    asked, = old.client.get("/approvals").json["inputs"]
    assert (asked["chat_id"], asked["question"]) == ("asking", "Still there?")
    old.client.respond("asking", "int_002", asked["request_id"], "Yes.").expect(200)
    eventually(lambda: old.client.interaction("asking", "int_002")["status"] == "COMPLETED", "the answer counts")
    for chat in ("streaming", "working", "waiting", "asking"):
        then = old.told["chats"][chat]
        assert missing(interactions_of(old.client, chat, list(then["interactions"])), then["interactions"]) is None
    assert old.problems() == [[DAMAGED, "auth"]]


def test_a_deleted_chat_comes_back(old):
    old.serve()
    entry, = old.client.get("/trash").expect(200, "trash").json["entries"]
    assert missing(entry, {m: old.told["trash"][0][m] for m in ("id", "chat_id", "title", "deleted_at")}) is None
    old.client.post(f"/trash/{entry['id']}/restore").expect(200)
    assert missing(interactions_of(old.client, "trashed", list(old.told["trashed"])), old.told["trashed"]) is None
    old.client.turn("trashed", "welcome back")
    assert [m["content"] for m in old.provider.requests[-1].conversation] == ["to be thrown away", "oh no", "really?", "so it seems", "welcome back"]


@pytest.mark.limit(120)
def test_it_is_exported_and_converted_and_forked(old):
    target = old.home.path / "exported"
    for chat, then in old.told["chats"].items():
        old.command("export", chat, "--output", target, status=1 if chat == "damaged" else 0)
        if chat == "damaged":
            continue
        whole = exported(target / chat)
        for interaction, stored in then["interactions"].items():
            assert missing(shortened(whole[interaction]), stored) is None, chat
    old.serve()
    for chat, then in old.told["chats"].items():
        if then["running"] or not then["branch"] or chat == "damaged":
            continue
        copy = old.client.post(f"/chats/{chat}/fork", {"interaction_id": then["branch"][-1]}).expect(201).json["id"]
        for interaction in then["branch"]:
            stored = {m: v for m, v in then["interactions"][interaction].items() if m != "chat_id"}
            assert missing(shortened(old.client.interaction(copy, interaction)), stored) is None, chat
