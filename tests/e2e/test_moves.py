"""Sessions of other tools: imported by `reprise import` and POST /import, compared with what support/moves.py reads of them by itself."""
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess

import pytest
from support import anthropic, moves, responses, schemas
from support.provider import Provider, text
from support.server import API_KEY, BINARY
from support.timing import SOON

DATA = pathlib.Path(__file__).resolve().parents[1] / "data/moves"
SOURCES = {"claude-code": "projects/-home-ada-garden/*.jsonl", "codex": "sessions/*/*/*/*.jsonl", "goose": "*.json*", "gemini": "tmp/*/**/*.json*",
           "cline": "tasks/*/api_conversation_history.json", "chatgpt": "*.json", "claude": "*.json", "open-webui": "*.json", "librechat": "*.json",
           "atif": "*.json", "opencode": ["storage/session/*/ses_1.json", "export.json"]}


def files_of(tool):
    patterns = SOURCES[tool] if isinstance(SOURCES[tool], list) else [SOURCES[tool]]
    return sorted({path for pattern in patterns for path in (DATA / tool).glob(pattern)})


def reprise(home, *arguments, status=0, **environment):
    done = subprocess.run([str(BINARY), "import", *map(str, arguments), "--data-dir", str(home.data)], cwd=home.path, env=home.environment(**environment),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=3 * SOON, check=False)
    assert done.returncode == status, (done.stdout[-800:], done.stderr[-800:])
    return done


def imported(home, *arguments, status=0, **environment):
    report = json.loads(reprise(home, *arguments, "--json", status=status, **environment).stdout)
    schemas.check("import_report", report)
    return report


def interactions(client, chat):
    return client.get(f"/chats/{chat}?branches=all&state=all").expect(200).json["interactions"]


@pytest.fixture
def everything(make_home):
    """A home with all samples, imported by one command, and what it told of each chat."""
    home = make_home()
    told = imported(home, *[path for tool in SOURCES for path in files_of(tool)])
    assert told["failed"] == []
    return home, told


def of_tool(told, tool):
    return [chat for chat in told["imported"] if chat["source"].startswith(f"{DATA / tool}/")]


def test_every_call_and_result_is_there_once_and_again_nothing_is_new(everything, make_server):
    home, told = everything
    sources = [path for tool in SOURCES for path in files_of(tool)]
    again = imported(home, *sources)
    assert again["imported"] == [] and again["failed"] == [] and again["known"] == len(told["imported"])
    server = make_server(home=home)
    server.check_records = False  # no model was asked
    calls = 0
    for tool in SOURCES:
        chats = of_tool(told, tool)
        found = [moves.of_chat(interactions(server.client, chat["chat_id"])) for chat in chats]
        expected = [pair for path in files_of(tool) for pair in moves.sessions(tool, path)]
        assert found == expected, tool
        calls += sum(sum(pair[0].values()) for pair in found)
    assert calls > 40
    assert imported(home, *sources)["imported"] == [], "through the server, too"
    found = server.client.get("/search?q=asters").expect(200).json["matches"]
    assert of_tool(told, "claude-code")[0]["chat_id"] in [match["chat_id"] for match in found]
    assert "in order" in subprocess.run([str(BINARY), "verify", "--data-dir", str(home.data)], env=home.environment(), capture_output=True, text=True,
                                        check=True).stdout


def test_what_was_imported_replays_as_it_came(everything, make_server):
    """Whatever ends a turn: the last event may be a summary, or the result of a call that ends it there."""
    home, told = everything
    server = make_server(home=home)
    server.check_records = False  # no model was asked
    last = set()
    for chat in told["imported"]:
        for each in interactions(server.client, chat["chat_id"]):
            events = server.client.interaction(chat["chat_id"], each["id"])["agent_events"]
            answer = server.client.post(f"/chats/{chat['chat_id']}/interactions/{each['id']}/replay", {"mode": "recorded"}).expect(200, "replay_report")
            assert answer.json["match"], (chat, each["id"], answer.json["divergence"])
            last.add(events[-1]["type"])
    assert {"COMPACTED", "ANSWER", "USAGE", "TOOL_RESULT"} <= last, last


def test_the_chats_go_on_at_any_provider_after_any_message(everything, make_server, provider, monkeypatch):
    home, told = everything
    monkeypatch.setattr(Provider, "strict", True)
    url = provider.url.removesuffix("/v1")
    models = ["chat/some-model", "claude/claude-sonnet-4-5", "responses/gpt-5"]
    server = make_server(home=home, config={"providers": {
        "chat": {"type": "openai", "base_url": provider.url, "api_key": API_KEY}, "claude": {"type": "anthropic", "base_url": url, "api_key": API_KEY},
        "responses": {"type": "openai_responses", "base_url": provider.url, "api_key": API_KEY}}, "model": models[0], "max_retries": 0})
    server.check_records = False
    provider.answer_with(lambda request: anthropic.message(anthropic.say("on")) if request.path == anthropic.PATH
                         else responses.message(responses.say("on")) if request.path == responses.PATH else text("on"))
    chance = random.Random(7)
    for chat in told["imported"]:
        name = chat["chat_id"]
        place = chance.choice(interactions(server.client, name))["id"]
        for model in models:
            server.client.post(f"/chats/{name}/head", {"interaction_id": place}).expect(200)
            server.client.post(f"/chats/{name}/interactions", {"user_message": "Go on.", "model": model, "stream": False}).expect(200)
    assert len(provider.requests) == 3 * len(told["imported"])


def test_a_summary_is_sent_in_place_of_what_it_replaced(make_home, make_server, provider, tmp_path):
    home, lines, last = make_home(), [], None

    def line(uuid, **more):
        nonlocal last
        lines.append({"uuid": uuid, "parentUuid": last, "sessionId": "s", **more})
        last = uuid

    for number in range(5):
        line(f"u{number}", type="user", message={"role": "user", "content": f"Question {number}."})
        line(f"a{number}", type="assistant", message={"id": f"m{number}", "role": "assistant", "content": [{"type": "text", "text": f"Answer {number}."}]})
    line("s", type="user", isCompactSummary=True, message={"role": "user", "content": "All of it in short."})
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    name = imported(home, path)["imported"][0]["chat_id"]
    server = make_server(provider, home=home)
    server.check_records = False
    provider.plan(text("ok"))
    server.client.turn(name, "Go on.")
    sent = provider.requests[-1].raw
    assert b"All of it in short." in sent and b"Question 0." in sent and b"Go on." in sent
    assert b"Question 3." not in sent and b"Answer 3." not in sent


def test_what_our_record_has_a_place_for_is_kept(everything, make_server):
    home, told = everything
    server = make_server(home=home)
    server.check_records = False
    claude = of_tool(told, "claude-code")[0]
    turns = interactions(server.client, claude["chat_id"])
    by_message = {turn["user_message"]: turn for turn in turns}
    first = by_message["Which tulips bloom in the garden list?"]
    assert first["created_at"].startswith("2026-05-") and first["model"] == "claude-sonnet-4-5-20250929" and first["imported"]
    assert first["usage"] == {"input_tokens": 230, "output_tokens": 40, "cache_read_tokens": 200, "cache_write_tokens": 10}
    assert [file["mime_type"] for file in first["attachments"]] == ["image/png"]
    answer = first["final_agent_state"]["messages"][1]
    assert len(answer["tool_calls"]) == 2 and answer["provider_extras"]["anthropic"]["blocks"][0]["signature"] == "c2lnbmF0dXJl"
    drawn = by_message["Ask a helper to draw them."]
    nested = [event["event"]["type"] for event in drawn["agent_events"] if event["type"] == "NESTED"]
    assert nested == ["TOOL_CALL", "USAGE", "TOOL_RESULT", "ANSWER", "USAGE"]
    assert drawn["final_agent_state"]["compaction"]["summary"].startswith("This session is being continued")
    asters, roses, review = by_message["And asters?"], by_message["And roses?"], by_message["/review the list"]
    assert asters["parent_id"] == roses["parent_id"] == drawn["id"] and roses["edited_from"] == asters["id"] and review["parent_id"] == roses["id"]
    assert roses["status"] == "CANCELLED" and review["status"] == "COMPLETED"
    assert any("brand-new-line" in note for note in claude["notes"]) and any("list of files" in note for note in claude["notes"])
    summary = server.client.get(f"/chats/{claude['chat_id']}").json
    assert summary["title"] == "Tulips and asters" and "workspace" not in summary, "a transcript chooses no workspace"
    grown = interactions(server.client, of_tool(told, "chatgpt")[0]["chat_id"])
    assert [(turn["user_message"], turn["edited_from"]) for turn in grown] == [
        ("Plan the beds.", None), ("Fewer.", None), ("Plan the beds.", "int_001"), ("Good.", None)]
    assert grown[0]["attachments"][0]["filename"] == "file-AbC123dEf-beds.png"


def test_the_sessions_of_a_tool_are_found_listed_and_chosen(make_home):
    home = make_home()
    shutil.copytree(DATA / "claude-code/projects", home.user / ".claude/projects")
    shutil.copytree(DATA / "codex", home.path / "codex-home")
    listed = imported(home, "--from", "claude-code", "--list")["sessions"]
    assert [(each["title"], each["folder"], each["imported"]) for each in listed] == [
        ("Which tulips bloom in the garden list?", "/home/ada/garden", False), ("Counting trees", "/home/ada/garden", False)]
    assert not home.data.exists(), "a list makes nothing"
    assert "garden" in reprise(home, "--from", "codex", "--list", CODEX_HOME=home.path / "codex-home").stdout
    assert len(imported(home, "--from", "codex", "--folder", "/home/ada/garden", CODEX_HOME=home.path / "codex-home")["imported"]) == 1
    old, new = sorted((home.user / ".claude/projects/-home-ada-garden").glob("*.jsonl"))
    os.utime(new, (1_600_000_000, 1_600_000_000))
    assert [chat["source"] for chat in imported(home, "--from", "claude-code", "--since", "90d")["imported"]] == [str(old)]
    with open(old, "a") as file:
        file.write(json.dumps({"type": "user", "uuid": "later", "parentUuid": "a10", "sessionId": "x", "message": {"role": "user", "content": "Later."}}) + "\n{\"type\": \"us")
    told = imported(home, "--from", "claude-code")
    assert len(told["imported"]) == 2, "the changed one comes beside the first, and the other for the first time"
    notes = next(chat["notes"] for chat in told["imported"] if chat["source"] == str(old))
    assert any("has changed since" in note for note in notes) and any("not complete" in note for note in notes)
    assert imported(home, "--from", "claude-code", "--list")["sessions"][0]["imported"]


def test_plain_chats_are_listed_too(make_home, tmp_path):
    home = make_home()
    shutil.copytree(DATA / "codex", tmp_path / "codex")
    imported(home, tmp_path / "codex")
    subprocess.run([str(BINARY), "export", "-o", str(tmp_path / "copy"), "--data-dir", str(home.data)], env=home.environment(), check=True, timeout=SOON)
    chats = sorted(path.name for path in (tmp_path / "copy").iterdir())
    listed = imported(home, tmp_path / "copy", "--list")["sessions"]
    assert sorted(each["chat_id"] for each in listed) == chats and {each["tool"] for each in listed} == {"reprise"}
    assert all(each["imported"] and each["title"] and each["bytes"] > 100 for each in listed)
    copies = imported(home, tmp_path / "copy")["imported"]
    assert [each["chat_id"] for each in copies] == [each["comes_as"] for each in listed] and not set(chats) & {each["comes_as"] for each in listed}
    both = imported(home, tmp_path / "copy" / chats[0], tmp_path / "codex", "--list")["sessions"]
    assert len(both) > len(imported(home, tmp_path / "codex", "--list")["sessions"]) > 0
    (tmp_path / "other.json").write_text("{}")
    for unfit in ("other.json", "nothere"):
        listed = imported(home, tmp_path / "copy" / chats[0], tmp_path / unfit, "--list", status=1)["sessions"]
        assert [each["chat_id"] for each in listed] == chats[:1], "what is unfit hides no other"


def test_the_summary_of_a_session_is_found(make_home, make_server, provider):
    home = make_home()
    imported(home, *files_of("codex"))
    server = make_server(provider, home=home)
    server.check_records = False
    matches = server.client.get("/search?q=list%20was%20sorted").expect(200, "search_matches").json["matches"]
    assert [each["where"] for each in matches] == ["summary"]


def test_what_codex_says_of_a_turn_is_counted_if_it_is_not_kept(make_home, tmp_path):
    home, lines = make_home(), []
    for number, (model, effort, folder) in enumerate([("gpt-a", "high", "/x"), ("gpt-b", "low", "/y")]):
        lines.append({"type": "turn_context", "payload": {"cwd": folder, "model": model, "effort": effort}})
        for role in ("user", "assistant"):
            lines.append({"type": "response_item", "payload": {"type": "message", "role": role, "content": [{"type": "input_text", "text": f"{role} {number}"}]}})
    lines.insert(0, {"type": "session_meta", "payload": {"id": "s", "cwd": "/x"}})
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps({"timestamp": "2026-05-01T10:00:00.000Z", **line}) + "\n" for line in lines))
    chat = imported(home, path, "--from", "codex")["imported"][0]
    notes = " ".join(chat["notes"])
    assert "effort of a turn" in notes and "turn in another folder (/y)" in notes, notes
    shown = subprocess.run([str(BINARY), "show", chat["chat_id"], "--json", "--data-dir", str(home.data)], env=home.environment(), capture_output=True, check=True, timeout=SOON)
    turns = json.loads(shown.stdout)["interactions"]
    assert [turn["model"] for turn in turns] == ["gpt-a", "gpt-b"]


def test_every_place_where_sessions_were_looked_for_is_named(make_home):
    home = make_home()
    said = reprise(home, "--from", "claude-code", status=1).stderr
    assert f"no folder {home.user}/.claude/projects, " in said and said.count("claude/projects") == 2
    assert "name a PATH, or a tool with --from" in reprise(home, status=2).stderr


def test_what_cannot_be_read_is_named_and_leaves_nothing(make_home, tmp_path):
    home = make_home()
    good = files_of("claude-code")[0].read_text().splitlines(keepends=True)
    bad = {"middle.jsonl": "".join(good[:3]) + "{broken\n" + "".join(good[3:]), "other.jsonl": '{"a": 1}\n{"b": 2}\n',
           "cut.json": (DATA / "chatgpt/conversations.json").read_text()[:-9], "deep.json": "[" * 5000}
    for name, content in bad.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "link.jsonl").symlink_to("middle.jsonl")
    told = imported(home, *[tmp_path / name for name in bad], status=1)
    assert told["imported"] == [] or [chat["source"] for chat in told["imported"]] == [str(tmp_path / "cut.json")] * 2
    messages = {pathlib.Path(each["source"]).name: each["message"] for each in told["failed"]}
    assert "middle.jsonl, line 4: " in messages["middle.jsonl"] and messages.keys() == bad.keys()
    assert imported(home, tmp_path, "--from", "gemini", status=1)["imported"] == []
    assert "no folder" in reprise(home, "--from", "goose", status=1).stderr
    assert "export" in reprise(home, "--from", "chatgpt", status=1).stderr
    assert "--since" in reprise(home, "--from", "goose", "--since", "soon", status=2).stderr


def test_a_session_that_fails_holds_up_no_other(make_home):
    home = make_home()
    sources = files_of("claude-code") + files_of("codex")
    blocked = imported(home, sources[0], "--list")["sessions"][0]["chat_id"]
    home.data.mkdir(mode=0o700, parents=True)
    (home.data / blocked).write_text("in the way")
    told = imported(home, *sources, status=1)
    assert [each["source"] for each in told["failed"]] == [str(sources[0])] and len(told["imported"]) == len(sources) - 1
    (home.data / blocked).unlink()
    again = imported(home, *sources)
    assert [each["source"] for each in again["imported"]] == [str(sources[0])] and again["known"] == len(sources) - 1


def test_what_is_not_asked_for_is_counted(make_home, tmp_path):
    home, export = make_home(), DATA / "chatgpt/conversations.json"
    told = imported(home, "--from", "chatgpt", "--folder", "/x", export)
    assert (told["imported"], told["passed_over"], told["without_folder"]) == ([], 3, 3)
    said = reprise(home, "--from", "chatgpt", "--folder", "/x", export).stdout
    assert said == "not among those asked for: 3 sessions, of which 3 say no folder\nnothing was found to import\n"
    assert "3 sessions, of which 3 say no folder" in reprise(home, "--from", "chatgpt", "--folder", "/x", "--list", export).stderr
    assert reprise(home, "--from", "gemini", tmp_path).stdout == "nothing was found to import\n"
    assert "passed_over" not in imported(home, export)


def test_a_sub_agent_that_has_grown_is_a_change(make_home):
    home = make_home()
    shutil.copytree(DATA / "claude-code/projects", home.user / ".claude/projects")
    assert len(imported(home, "--from", "claude-code")["imported"]) == 2
    (beside,) = (home.user / ".claude/projects").rglob("agent-*.jsonl")
    with open(beside, "a") as file:
        file.write(json.dumps({"type": "assistant", "uuid": "later", "message": {"role": "assistant", "content": "The outcome."}}) + "\n")
    told = imported(home, "--from", "claude-code")
    assert len(told["imported"]) == 1 and told["known"] == 1 and any("has changed since" in note for note in told["imported"][0]["notes"])


def test_a_sub_agent_goes_out_and_comes_back(everything, make_server, tmp_path):
    home, told = everything
    name, path = of_tool(told, "claude-code")[0]["chat_id"], tmp_path / "out.jsonl"
    subprocess.run([str(BINARY), "export", name, "--format", "claude-code", "-o", str(path), "--data-dir", str(home.data)], env=home.environment(),
                   capture_output=True, check=True, timeout=SOON)
    back = imported(home, path)["imported"][0]
    assert not any("sub-agent" in note for note in back["notes"])
    server = make_server(home=home)
    server.check_records = False
    nested = [[(event["event"]["type"], event["event"].get("tool_output")) for turn in interactions(server.client, chat) for event in turn["agent_events"]
               if event["type"] == "NESTED"] for chat in (name, back["chat_id"])]
    assert len(nested[0]) >= 5 and nested[1] == nested[0]


def test_a_given_name_is_for_one_chat(make_home):
    home = make_home()
    one = files_of("codex")[0]
    imported(home, one)
    roses = imported(home, one, "--as", "codex-roses")["imported"]
    assert [each["chat_id"] for each in roses] == ["codex-roses"] and not any("has changed" in note for note in roses[0]["notes"])
    chats = sorted(path.name for path in home.data.iterdir())
    empty = home.path / "two"
    empty.mkdir()
    shutil.copy(one, empty / "one.jsonl")
    (empty / "two.jsonl").write_text('{"type":"session_meta","payload":{"id":"c2","cwd":"/x"}}\n')
    for several in ([DATA / "chatgpt/conversations.json"], [DATA / "codex"], ["--from", "codex", "--list"]):
        told = reprise(home, *several, "--as", "violets", status=2, CODEX_HOME=DATA / "codex")
        assert "--as is for one chat, and there are several" in told.stderr and not told.stdout
        assert sorted(path.name for path in home.data.iterdir()) == chats, "nothing was made"
    assert [each["chat_id"] for each in imported(home, empty, "--as", "violets")["imported"]] == ["violets"], "one of the two holds no message"


@pytest.mark.parametrize("tool", ["claude-code", "codex"])
def test_what_a_person_stopped_after_a_text_replays_and_passes_as_a_test(tool, make_home, tmp_path):
    home, path = make_home(), tmp_path / "rollout-1.jsonl"
    rows = [{"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "a", "message": {"role": "user", "content": "explain"}},
            {"type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "a",
             "message": {"id": "m", "role": "assistant", "usage": {"input_tokens": 3, "output_tokens": 2}, "content": [{"type": "text", "text": "First, the"}]}},
            {"type": "user", "uuid": "3", "parentUuid": "2", "sessionId": "a", "message": {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}}]
    if tool == "codex":
        said = [{"type": "message", "role": role, "content": [{"type": "input_text", "text": words}]} for role, words in [("user", "explain"), ("assistant", "First, the")]]
        rows = [{"type": "session_meta", "payload": {"id": "c"}}, *[{"type": "response_item", "payload": each} for each in said],
                {"type": "event_msg", "payload": {"type": "turn_aborted"}}]
    replays(home, path, rows, "CANCELLED")


def test_a_turn_that_failed_elsewhere_replays_and_passes_as_a_test(make_home, tmp_path):
    rows = [{"type": "user", "uuid": "1", "parentUuid": None, "sessionId": "a", "message": {"role": "user", "content": "q"}},
            {"type": "assistant", "uuid": "2", "parentUuid": "1", "sessionId": "a",
             "message": {"id": "m", "role": "assistant", "usage": {"input_tokens": 3, "output_tokens": 2}, "content": [{"type": "text", "text": "First I"}]}},
            {"type": "assistant", "uuid": "3", "parentUuid": "2", "sessionId": "a", "isApiErrorMessage": True,
             "message": {"id": "n", "role": "assistant", "content": [{"type": "text", "text": "API Error: 529"}]}}]
    replays(make_home(), tmp_path / "alone.jsonl", [rows[0], {**rows[2], "parentUuid": "1"}], "FAILED")
    replays(make_home(), tmp_path / "after.jsonl", rows, "FAILED")


def replays(home, path, rows, status):
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    imported(home, path, "--as", "it")

    def run(*arguments):
        return subprocess.run([str(BINARY), *map(str, arguments), "--data-dir", str(home.data)], cwd=home.path, env=home.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=3 * SOON, check=True).stdout

    assert json.loads(run("cat", "it/int_001"))["status"] == status
    run("replay", "it")
    run("export", "it", "-o", home.path / "suite")
    run("test", home.path / "suite")


def test_an_export_brings_its_images_and_no_other_file(make_home, make_server, tmp_path):
    home = make_home()
    picture = (DATA / "chatgpt/file-AbC123dEf-beds.png").read_bytes()
    inside = {".ssh/id_ed25519": b"secret", ".hidden/file-hidden00.png": picture, "file-secret00.png": b"secret", "file-notes0000.txt": b"secret",
              "short/file-abc.png": picture, "images/file_good0000-tulips.JPG": picture}
    for name, content in inside.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    ids = ["id_ed25519", "file-hidden00", "file-secret00", "file-notes0000", "file-abc", "file_good0000", ""]
    parts = [{"content_type": "image_asset_pointer", "asset_pointer": f"file-service://{name}"} for name in ids]
    message = {"author": {"role": "user"}, "content": {"content_type": "multimodal_text", "parts": [*parts, "Look."]}}
    (tmp_path / "conversations.json").write_text(json.dumps([{"id": "c", "mapping": {"a": {"id": "a", "parent": None, "message": message}}}]))
    made = imported(home, tmp_path / "conversations.json")["imported"][0]
    assert made["notes"] == ["left out: 6 x attachment (image_asset_pointer)"]
    server = make_server(home=home)
    server.check_records = False
    files = interactions(server.client, made["chat_id"])[0]["attachments"]
    assert [(file["filename"], file["mime_type"]) for file in files] == [("file_good0000-tulips.JPG", "image/png")]


def test_sessions_that_name_each_other_are_read_once(make_home, tmp_path):
    def put(path, content):
        path = tmp_path / "storage" / f"{path}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))

    put("session/p/ses_a", {"id": "ses_a", "directory": "/d", "time": {"created": 1_777_777_000_000}})
    for name, others in (("a", "bbb"), ("b", "aab")):
        put(f"message/ses_{name}/msg_{name}1", {"id": f"msg_{name}1", "role": "user"})
        put(f"part/msg_{name}1/prt_1", {"type": "text", "text": "Go."})
        put(f"message/ses_{name}/msg_{name}2", {"id": f"msg_{name}2", "role": "assistant"})
        for number, other in enumerate(others):
            put(f"part/msg_{name}2/prt_{number}", {"type": "tool", "tool": "task", "callID": f"c{number}", "state": {
                "status": "completed", "output": "done", "metadata": {"sessionId": f"ses_{other}"}}})
    made = imported(make_home(), tmp_path / "storage/session/p/ses_a.json")["imported"]
    assert made[0]["notes"] == ["left out: 5 x sub-agent that is named twice"]


def test_the_page_s_way_takes_them_too(offline):
    offline.check_records = False
    client = offline.client
    lines = files_of("codex")[1].read_bytes()
    made = client.request("POST", "/import", lines, headers={"Content-Type": "application/json"}).expect(201, "imported").json
    assert made["title"].startswith("Sort the list.") and any("left out" in note for note in made["notes"])
    twice = client.request("POST", "/import", lines, headers={"Content-Type": "application/json"}).expect(409, "error").json["error"]
    assert twice["code"] == "chat_exists" and made["id"] in twice["message"]
    many = client.request("POST", "/import", (DATA / "chatgpt/conversations.json").read_bytes(), headers={"Content-Type": "application/json"}).expect(201).json
    assert "2 chats were imported; this is the last one" in many["notes"]
    client.request("POST", "/import", b'{"a": 1}\n{"b": 2}', headers={"Content-Type": "application/json"}).expect(400, "error")
    mapping = {"a": {"id": "a", "parent": None, "message": {"author": {"role": "user"}, "content": {"parts": ["Late."]}}}}
    cut = json.dumps([{"id": "late", "mapping": mapping}]).encode()[:-1] + b', {"mapping": '
    late = client.request("POST", "/import", cut, headers={"Content-Type": "application/json"}).expect(201, "imported").json
    assert late["title"].startswith("Late.") and any(note.startswith("not imported: the document") for note in late["notes"])
    chats = [{"id": name, "mapping": mapping} for name in ("before", "bad", "after")]
    chats[1]["mapping"] = 5
    made = client.request("POST", "/import", json.dumps(chats).encode(), headers={"Content-Type": "application/json"}).expect(201, "imported").json
    assert "2 chats were imported; this is the last one" in made["notes"]
    assert "not imported: the document, element 2: it is no session of ChatGPT (docs/moves.md)" in made["notes"]
    named = client.request("POST", "/import?as=violets", (DATA / "chatgpt/conversations.json").read_bytes(),
                           headers={"Content-Type": "application/json"}).expect(201, "imported").json
    assert named["id"] == "violets" and 'not imported: "as" is for one chat, and there are several' in named["notes"]


def of_goose(path):
    """A database as goose keeps it, of its sample, held open in the way of a tool at work."""
    sample = json.loads((DATA / "goose/export.json").read_text())
    path.parent.mkdir(parents=True)
    tool = sqlite3.connect(path, isolation_level=None)
    tool.executescript("PRAGMA journal_mode=WAL; CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, working_dir TEXT, created_at TIMESTAMP,"
                       "model_config_json TEXT); CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER);")
    tool.execute("INSERT INTO sessions VALUES (?, ?, '', ?, '2026-05-01 10:00:00', ?)",
                 (sample["id"], sample["name"], sample["working_dir"], json.dumps({"model_name": "gpt-5"})))
    tool.executemany("INSERT INTO messages(session_id, role, content_json, created_timestamp) VALUES (?, ?, ?, ?)",
                     [(sample["id"], each["role"], json.dumps(each["content"]), each["created"]) for each in sample["conversation"]])
    return tool


def of_opencode(path):
    storage = DATA / "opencode/storage"
    path.parent.mkdir(parents=True)
    tool = sqlite3.connect(path)
    tool.executescript("CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);"
                       "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);"
                       "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);")
    for file in storage.glob("session/*/*.json"):
        row = json.loads(file.read_text())
        tool.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)",
                     (row["id"], row.get("parentID"), row["directory"], row["title"], row["time"]["created"], row["time"]["updated"]))
    for file in storage.glob("message/*/*.json"):
        row = json.loads(file.read_text())
        tool.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (row.pop("id"), file.parent.name, row["time"]["created"], json.dumps(row)))
        for part in (storage / "part" / file.stem).glob("*.json"):
            tool.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (f"{file.stem}-{part.stem}", file.stem, file.parent.name, part.read_text()))
    tool.commit()
    return tool


@pytest.mark.parametrize(("tool", "place", "made", "sample"), [("goose", "goose/sessions/sessions.db", of_goose, "goose/export.json"),
                                                               ("opencode", "opencode/opencode.db", of_opencode, "opencode/storage/session/*/ses_1.json")])
def test_a_database_is_read_like_the_files_of_its_tool(make_home, make_server, tmp_path, tool, place, made, sample):
    file, = DATA.glob(sample)
    home, database = make_home(), tmp_path / place
    at_work = made(database)
    before = database.read_bytes()
    (tmp_path / place).with_name("old.jsonl").write_text("not read, because the database is there")
    told = imported(home, "--from", tool, XDG_DATA_HOME=str(tmp_path))
    assert [chat["source"] for chat in told["imported"]] == [str(database)] and database.read_bytes() == before
    assert imported(home, database)["known"] == 1
    of_file = make_home()
    imported(of_file, file)
    server, other = make_server(home=home), make_server(home=of_file)
    server.check_records = other.check_records = False
    turns = interactions(server.client, told["imported"][0]["chat_id"])
    same = interactions(other.client, other.client.get("/chats").expect(200).json["chats"][0]["id"])
    assert [moves.of_chat(turns)] == moves.sessions(tool, file)
    assert [(turn["user_message"], [event["type"] for event in turn["agent_events"]]) for turn in turns] == \
        [(turn["user_message"], [event["type"] for event in turn["agent_events"]]) for turn in same]
    assert tool != "goose" or turns[0]["model"] == "gpt-5"
    at_work.close()
    assert imported(make_home(), database)["imported"][0]["chat_id"] == told["imported"][0]["chat_id"], "without the tool's log, too"


def test_a_turn_that_is_too_large_is_named_with_its_file(make_home, tmp_path):
    path = tmp_path / "endless.jsonl"
    lines = [{"type": "user", "uuid": "0", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "Go on for ever."}}]
    lines += [{"type": "assistant", "uuid": str(i + 1), "parentUuid": str(i), "sessionId": "s",
               "message": {"id": f"m{i}", "role": "assistant", "content": [{"type": "text", "text": "x" * (1 << 20)}]}} for i in range(65)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert f'{path}: the turn that begins with "Go on for ever." is larger than 64 MiB' in reprise(make_home(), path, status=1).stderr


def test_compressed_sessions_of_codex_are_named(make_home):
    home = make_home()
    folder = home.user / ".codex/sessions/2026/06/01"
    folder.mkdir(parents=True)
    (plain,) = [path for path in files_of("codex") if path.name.startswith("rollout-")][:1]
    shutil.copy(plain, folder)
    packed = folder / "rollout-2026-06-01T00-00-00-old.jsonl.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(40))
    told = imported(home, "--from", "codex", status=1)
    assert len(told["imported"]) == 1
    assert [(each["source"], "zstd -d" in each["message"]) for each in told["failed"]] == [(str(packed), True)]
    assert "zstd -d" in reprise(home, packed, status=1).stderr
    alone = home.path / "alone"
    alone.mkdir()
    shutil.copy(packed, alone)
    assert "zstd -d" in reprise(home, alone, status=1).stderr
    archive = home.path / "export.zip"
    archive.write_bytes(b"PK\x03\x04" + bytes(40))
    assert "unpack it" in reprise(home, archive, status=1).stderr
    shutil.copy(plain, packed.with_suffix(""))  # unpacked
    assert imported(home, "--from", "codex")["failed"] == []


def test_a_hostile_database_is_refused(make_home, tmp_path):
    home, path = make_home(), tmp_path / "sessions.db"
    with sqlite3.connect(path) as hostile:
        hostile.executescript("CREATE VIEW sessions AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id FROM n; CREATE TABLE messages (id);")
    assert "it is no session of goose" in reprise(home, path, "--from", "goose", status=1).stderr
    hostile.close()
    path.unlink()
    with sqlite3.connect(path) as hostile:
        hostile.executescript("CREATE TABLE sessions (id, created_at, name); CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)"
                              "SELECT id, 'x' AS session_id, 'user' AS role, id AS created_timestamp, '[]' AS content_json FROM n; INSERT INTO sessions VALUES ('x', 1, x'00ff');")
    hostile.close()
    assert "sessions.db" in reprise(home, path, status=1).stderr
    path.write_bytes(b"SQLite format 3\0" + os.urandom(8000))
    assert "sessions.db" in reprise(home, path, status=1).stderr
    with_large = tmp_path / "large.db"
    with sqlite3.connect(with_large) as hostile:
        hostile.executescript("CREATE TABLE sessions (id, created_at); CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id, role, created_timestamp, content_json);"
                              "INSERT INTO sessions VALUES ('x', 1), ('y', 2);")
        hostile.execute("INSERT INTO messages(session_id, role, created_timestamp, content_json) VALUES ('x', 'user', 1, ?)",
                        (json.dumps([{"type": "text", "text": "x" * (64 << 20)}]),))
        hostile.execute("INSERT INTO messages(session_id, role, created_timestamp, content_json) VALUES ('y', 'user', 1, ?)",
                        (json.dumps([{"type": "text", "text": "Go."}]),))
        hostile.execute("INSERT INTO sessions VALUES ('z', 3)")
        hostile.executemany("INSERT INTO messages(session_id, role, created_timestamp, content_json) VALUES ('z', 'user', 1, ?)",
                            [(json.dumps([{"type": "text", "text": "x" * (20 << 20)}]),)] * 4)
    hostile.close()
    told = imported(home, with_large, status=1)
    assert ["session x: a message is larger than 64 MiB" in each["message"] for each in told["failed"]] == [True]
    assert [each["interactions"] for each in told["imported"]] == [1, 4], "it holds up no other, of any size"


def goose_of(path, sessions, made=", made AS (printf('%.*c', 100000000, 'x'))"):
    """A database of goose: for each session its id, type and parent. `made`: a column that makes up its content."""
    with sqlite3.connect(path) as tool:
        tool.executescript(f"CREATE TABLE sessions (id TEXT PRIMARY KEY, created_at, session_type, parent_session_id{made});"
                           f"CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id, role, created_timestamp, content_json{made});")
        for session in sessions:
            tool.execute("INSERT INTO sessions VALUES (?, 1, ?, ?)", session)
            tool.execute("INSERT INTO messages(session_id, role, created_timestamp, content_json) VALUES (?, 'user', 1, ?)",
                         (session[0], json.dumps([{"type": "text", "text": session[0]}])))
    tool.close()


def test_every_session_of_a_database_is_imported_or_counted(make_home, tmp_path):
    home, goose, opencode = make_home(), tmp_path / "goose.db", tmp_path / "opencode.db"
    # Columns that make up their content are not read.
    goose_of(goose, [("root", "user", None), ("below", "sub_agent", "root"), ("deeper", "sub_agent", "below"), ("orphan", "sub_agent", "gone")])
    names = {each["chat_id"]: each["title"] for each in imported(home, goose, "--list")["sessions"]}
    told = imported(home, goose)
    assert {names[each["chat_id"]]: each["notes"] for each in told["imported"]} == {
        "root": ["left out: 2 x sub-agent in a session of its own (below, deeper)"], "orphan": []} and told["failed"] == []
    parents = {"root": None, "one": "root", "two": "one", "three": "two", "four": "three", "five": "four", "orphan": "gone", "ring": "round", "round": "ring",
               "self": "self"}
    with sqlite3.connect(opencode) as tool:
        tool.executescript("CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER);"
                           "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);"
                           "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);")
        for number, (name, parent) in enumerate(parents.items()):
            tool.execute("INSERT INTO session VALUES (?, ?, '/d', ?, ?, 1)", (name, parent, name, number))
            tool.execute("INSERT INTO message VALUES (?, ?, 1, ?)", (f"m-{name}", name, json.dumps({"role": "user"})))
            tool.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (f"p-{name}", f"m-{name}", name, json.dumps({"type": "text", "text": "Go."})))
    tool.close()
    names = {each["chat_id"]: each["title"] for each in imported(home, opencode, "--list")["sessions"]}
    told = imported(home, opencode)
    assert {names[each["chat_id"]]: each["notes"] for each in told["imported"]} == {
        "root": ["left out: 5 x sub-agent that no call names (one, two, three, four, five)"], "orphan": [],
        "ring": ["left out: 1 x sub-agent that no call names (round)"], "self": []} and told["failed"] == []


def test_a_database_within_a_change_is_not_read(make_home, tmp_path):
    home, path, left = make_home(), tmp_path / "sessions.db", tmp_path / "left"
    goose_of(path, [(f"{number}-{'x' * 500}", "user", None) for number in range(100)], made="")
    left.mkdir()
    tool = sqlite3.connect(path, isolation_level=None)
    tool.execute("PRAGMA cache_size=1")
    tool.execute("BEGIN EXCLUSIVE")
    tool.execute("UPDATE messages SET role = 'y' || content_json")  # more than the cache holds, so some of it is written already
    told = imported(home, path, "--from", "goose", status=1)
    assert told["imported"] == [] and ["is in use: close the tool" in each["message"] for each in told["failed"]] == [True]
    for file in (path, path.with_name("sessions.db-journal")):
        shutil.copy(file, left)
    told = imported(home, left / path.name, "--from", "goose", status=1)
    assert told["imported"] == [] and ["was left within a change: start the tool" in each["message"] for each in told["failed"]] == [True]
    tool.close()
