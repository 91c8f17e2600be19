"""`reprise test`: recorded chats test the agent of today, without a model."""
import hashlib
import json
import os
import xml.etree.ElementTree as xml

import pytest
from support import schemas
from support.provider import call, text, tools
from support.recorded import Recorded
from support.server import Server, reprise


@pytest.fixture(scope="module")
def chat(tmp_path_factory):
    recorded = Recorded(tmp_path_factory.mktemp("suite") / "home", "openai")
    status, exported, messages = reprise(recorded.home, "export", "c", "--data-dir", recorded.home.data)
    assert status == 0, messages
    recorded.exported = exported
    yield recorded
    recorded.provider.close()


@pytest.fixture
def suite(chat, tmp_path):
    """A folder with the chat as trip.json."""
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "trip.json").write_text(chat.exported)
    kept = {path: path.read_bytes() for path in chat.prompt.iterdir()}
    yield folder
    for path in chat.prompt.iterdir():
        path.unlink()
    for path, content in kept.items():
        path.write_bytes(content)
        path.chmod(0o600)


def run(chat, *arguments, config=None):
    status, output, messages = chat.run("test", *arguments, config=config)
    assert "terminate" not in messages and status in (0, 1, 2), (status, messages)
    return status, output, messages


def report(chat, *arguments):
    status, output, messages = run(chat, "--json", *arguments)
    found = json.loads(output)
    schemas.check("test_report", found)
    return status, found


def test_a_chat_that_is_as_it_was_passes(chat, suite):
    asked = len(chat.provider.requests)
    status, output, messages = run(chat, suite)
    assert (status, messages) == (0, "") and output.startswith("1 turn of 1 chat: 1 passed"), output
    assert run(chat, suite / "trip.json")[0] == run(chat, f"{suite}/")[0] == 0
    assert len(chat.provider.requests) == asked and sorted(path.name for path in suite.iterdir()) == ["trip.json"]


def test_the_pirate_is_named_in_three_lines(chat, suite):
    chat.write("prompt/10-rules.md", "You are a pirate. Never use tools.")
    status, output, _ = run(chat, suite)
    lines = output.splitlines()
    assert status == 1 and "module 10-rules has changed" in output and "+ You are a pirate. Never use tools." in output and len(lines) <= 6, output
    assert lines[-1].startswith("1 turn of 1 chat: 0 passed, 1 failed")


def test_what_was_accepted_is_no_failure_and_the_next_change_is_one(chat, suite):
    chat.write("prompt/10-rules.md", "You are a pirate.")
    assert run(chat, suite)[0] == 1
    assert run(chat, "--update", suite)[0] == 0 and run(chat, suite)[0] == 0
    accepted = json.loads((suite / "trip.accepted.json").read_text())["accepted"]
    assert [(each["cause"], each["name"]) for each in accepted] == [("module", "10-rules")]
    assert "pirate" not in (suite / "trip.accepted.json").read_text()  # which may be secret
    chat.write("prompt/40-new.md", "Mind the gap.")
    status, output, _ = run(chat, suite)
    assert status == 1 and "module 40-new is new" in output and "10-rules" not in output, output
    chat.write("prompt/10-rules.md", "You are another pirate.")
    (chat.prompt / "40-new.md").unlink()
    assert "You are another pirate." in run(chat, suite)[1]
    assert run(chat, "--update", suite)[0] == 0 and len(json.loads((suite / "trip.accepted.json").read_text())["accepted"]) == 1
    chat.write("prompt/10-rules.md", "You are a pirate.")
    assert "You are a pirate." in run(chat, suite)[1]  # which was accepted once
    (chat.prompt / "10-rules.md").unlink()
    assert run(chat, "--update", suite)[0] == 0 and not (suite / "trip.accepted.json").exists()
    chat.write("prompt/10-rules.md", "You are a pirate.")
    entry = {"cause": "module", "name": "10-rules", "digest": "sha256:0"}
    for words in ({}, {"accepted": ["all"]}, {"accepted": [{**entry, "cause": "modul"}]}, {"accepted": [{**entry, "note": ""}]}, {"accepted": [], "except": []}):
        (suite / "trip.accepted.json").write_text(json.dumps(words))
        status, output, _ = run(chat, suite)
        assert status == 1 and "delete it to begin anew" in output, (words, output)


@pytest.mark.parametrize(("checks", "failing"), [
    ({"calls": {"mode": "exact", "list": [{"name": "write_file", "arguments": {"path": "otter.txt"}}]}}, None),
    ({"calls": {"list": [{"name": "read_file"}]}}, "calls"), ({"never": ["write_file"]}, "never"), ({"never": ["read_file"]}, None),
    ({"answer": {"matches": "^Writ"}}, None), ({"answer": {"equals": "Nothing."}}, "answer"), ({"max": {"rounds": 2}}, None), ({"max": {"rounds": 1}}, "max"),
    ({"files": {"otter.txt": {"changed": True}}}, None), ({"files": {"heron.txt": {"changed": True}}}, "files"),
    ({"turns": {"1": {"answer": {"contains": "no such"}}}}, "answer"), ({"turns": {"7": {"answer": {"contains": "no such"}}}}, "/turns/7")])
@pytest.mark.parametrize("name", ["trip.checks.json", "suite.json"])
def test_checks(chat, suite, name, checks, failing):
    (suite / name).write_text(json.dumps(checks))
    status, output, _ = run(chat, suite)
    assert status == (1 if failing else 0) and (failing or "passed") in output, output


def test_checks_of_files_in_an_exported_folder(chat, suite):
    """A folder has what files held, a document on standard output has not."""
    status, _, messages = reprise(chat.home, "export", "c", "-o", suite, "--data-dir", chat.home.data)
    assert status == 0, messages
    (suite / "c.checks.json").write_text('{"files": {"otter.txt": {"equals": "An otter.\\n"}}}')
    assert run(chat, suite)[0] == 0
    (suite / "suite.json").write_text('{"files": {"otter.txt": {"contains": "heron"}}}')
    status, output, _ = run(chat, suite)
    assert status == 1 and "c/int_001" in output and "trip/int_001" in output and "after the turn is not on record" in output, output


def test_a_folder_may_be_named_by_a_dot(chat, suite):
    status, _, messages = reprise(chat.home, "export", "c", "-o", suite, "--data-dir", chat.home.data)
    assert status == 0, messages
    (suite / "c.checks.json").write_text('{"answer": {"equals": "Nothing."}}')
    (suite / "deeper" / "still").mkdir(parents=True)
    (suite / "deeper" / "still" / "trip.json").write_text(chat.exported)
    assert "c/int_001" in run(chat, f"{suite}/c/.")[1]
    status, output, _ = run(chat, f"{suite}/.")
    assert status == 1 and "3 turns of 3 chats: 2 passed, 1 failed" in output, output


def test_a_turn_of_which_nothing_is_compared_counts_as_skipped(chat, suite):
    gone = {"providers": {"two": {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}}, "model": "two/x"}
    status, output, _ = run(chat, suite, config=gone)
    assert status == 1 and "model two/x has changed" in output, output
    assert run(chat, "--update", suite, config=gone)[0] == 0
    status, output, _ = run(chat, suite, config=gone)
    assert status == 0 and "0 passed, 1 skipped" in output and "the model one/scripted is not configured" in output, output
    (suite / "suite.json").write_text('{"answer": {"contains": "Written"}}')
    assert "1 passed" in run(chat, suite, config=gone)[1]


def test_another_folder_is_no_change(chat, suite, tmp_path):
    """A server for CI has the files elsewhere."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "AGENTS.md").write_text((chat.home.workspace / "AGENTS.md").read_text())
    status, _, messages = reprise(chat.home, "trust", place / "AGENTS.md", "--workspace", place)
    assert status == 0, messages
    chat.write("now.json", json.dumps(chat.config))
    command = ["test", suite, "--workspace", place, "--config", "now.json", "--prompt-dir", chat.prompt]
    status, output, messages = reprise(chat.home, *command)
    assert status == 0, (output, messages)
    (place / "AGENTS.md").write_text("# Otters\n\nBuild with ninja.\n")
    status, output, messages = reprise(chat.home, *command)
    assert status == 1 and "instructions 70-project is gone" in output and "reprise trust" in messages, (output, messages)


def test_a_prompt_file_that_cannot_be_used_is_named(chat, suite):
    chat.write("prompt/40-new.md", "Mind {{nothing}}.")
    status, _, messages = run(chat, suite)
    assert status == 0 and "40-new.md" in messages and "nothing" in messages, messages


def test_checks_for_a_model_are_named(chat, suite):
    (suite / "suite.json").write_text('{"judge": {"model": "one/scripted", "question": "Is it polite?"}}')
    status, found = report(chat, suite)
    assert status == 0 and found["turns"][0]["notes"] == ["judge is not checked without a model"]


BAD = {
    "bad checks": ("trip.checks.json", '{"anwser": {"equals": "x"}}', "anwser"),
    "checks that are no JSON": ("trip.checks.json", "{", "not valid JSON"),
    "no chat": ("other.json", '{"a": 1}', "other"),
    "a cut chat": ("other.json", None, "other"),
    "a sealed file": ("other.json", '{"protected": "e30", "ciphertext": "x", "iv": "y", "tag": "z", "encrypted_key": "k"}', "other"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_cannot_be_read_fails_by_its_name(chat, suite, what):
    name, words, said = BAD[what]
    (suite / name).write_text(chat.exported[:2000] if words is None else words)
    status, output, messages = run(chat, suite)
    assert status == 1 and said in output + messages, (output, messages)


def test_a_changed_record_is_found(chat, suite):
    changed = json.loads(chat.exported)
    turn = changed["interactions"][0]
    event = next(each for each in turn["agent_events"] if each["type"] == "TOOL_RESULT")
    event["tool_output"] = "something else"
    (suite / "trip.json").write_text(json.dumps(changed))
    status, output, _ = run(chat, suite)
    assert status == 1 and "differs at event" in output, output
    changed = json.loads(chat.exported)
    changed["interactions"][0]["record"]["requests"][0]["body"][0] = "{"
    (suite / "trip.json").write_text(json.dumps(changed))
    status, output, _ = run(chat, suite)
    assert status == 1 and "request 0" in output, output


def test_a_turn_of_an_earlier_version_is_replayed_with_a_note(chat, suite):
    changed = json.loads(chat.exported)
    del changed["interactions"][0]["record"]["requests"]
    (suite / "trip.json").write_text(json.dumps(changed))
    status, found = report(chat, suite)
    assert status == 0 and "not on record" in found["turns"][0]["notes"][0]


def test_reports(chat, suite):
    chat.write("prompt/10-rules.md", "You are a <pirate> & no ]]> `more`.")
    files = [suite / name for name in ("report.xml", "report.md", "report.html")]
    status, _, messages = run(chat, suite, "--junit", files[0], "--markdown", files[1], "--html", files[2])
    assert status == 1 and messages == ""
    case = xml.fromstring(files[0].read_text()).find(".//testcase")
    assert case.get("name") == "int_001" and "<pirate> & no ]]> `more`." in case.find("failure").text
    assert "10-rules" in files[1].read_text() and "<pirate>" not in files[2].read_text() and "&#60;pirate&#62;" in files[2].read_text()
    assert run(chat, suite, "--junit", "/nowhere/x.xml")[0] == 2


@pytest.mark.parametrize(("arguments", "said"), [(["nothing-there"], "nothing-there"), ([], "WHAT"), (["--update", "c"], "--update"), (["c/int_009"], "int_009")])
def test_wrong_use(chat, arguments, said):
    status, output, messages = run(chat, *arguments)
    assert status in (1, 2) and said in messages and output == "", (status, output, messages)


def test_an_empty_folder_is_no_success(chat, tmp_path):
    status, _, messages = run(chat, tmp_path)
    assert status == 2 and "no chat" in messages


def test_stored_chats(chat):
    assert run(chat, "c")[0] == run(chat, "c/int_001")[0] == 0
    chat.write("prompt/41-more.md", "More.")
    try:
        status, output, _ = run(chat, "c", "c/int_001")
        assert status == 1 and output.count("module 41-more is new") == 2, output
    finally:
        (chat.prompt / "41-more.md").unlink()


SECRETS = ["sk-proj-abcDEF0123456789abcDEF0123456789", "ghp_0123456789abcdefghijABCDEFGHIJ012345", "AKIAIOSFODNN7EXAMPLE"]


def test_recording_takes_secrets_out(make_server, provider, tmp_path):
    server = make_server(provider)
    server.check_records = False
    key = "a \"hushed\" secret\nof two lines"
    provider.plan(tools(call("write_file", {"path": "keys.txt", "content": f"{SECRETS[1]}\n"}, "call_1")), text(f"Written: {SECRETS[0]}."), text("Nothing else."))
    server.client.turn("c", f"My key is {SECRETS[0]}, keep {key} too.", approval_mode="approve_all")
    server.client.turn("c", f"And {SECRETS[2]}?")
    server.stop()
    suite = tmp_path / "suite"
    status, output, messages = reprise(server.home, "test", "--record", "c", suite, "--data-dir", server.home.data, "--config", "server.json", MY_SECRET=key)
    assert (status, messages) == (0, "") and "taken out: a key of a model provider" in output and "left out: 1 file or content" in output, (output, messages)
    document = (suite / "c.json").read_text()
    assert [secret for secret in [*SECRETS, "hushed", "of two lines"] if secret in document] == [] and '"redacted": true' in document
    status, output, _ = reprise(server.home, "test", suite, "--config", "server.json", "--workspace", server.home.workspace)
    assert status == 0 and "2 passed" in output, output
    status, _, messages = reprise(server.home, "test", "--record", "c", suite, "--data-dir", server.home.data, "--config", "server.json")
    assert status == 1 and "c.json" in messages
    assert reprise(server.home, "test", "--record", "c", "--force", suite, "--data-dir", server.home.data, "--config", "server.json")[0] == 0


def test_a_recording_without_secrets_has_whole_arguments_and_approvals(make_server, provider, tmp_path):
    server = make_server(provider)
    server.check_records = False
    key = "hushed\nsecret \\new \u2028 words"
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": f"<{key}>"}, "call_1")), tools(call("run_shell", {"command": f"echo {SECRETS[0]}"}, "call_2")), text("Done."))
    stream = server.client.start("c", "Write it.")
    for answer in (True, False):
        asked = stream.until("approval_required")
        server.client.post(f"/approvals/{asked['approval_id']}", {"approved": answer}).expect(200)
    stream.until("interaction_complete")
    server.stop()
    suite = tmp_path / "suite"
    status, output, messages = reprise(server.home, "test", "--record", "c", suite, "--data-dir", server.home.data, "--config", "server.json", MY_SECRET=key)
    assert (status, messages) == (0, ""), (output, messages)
    turn = json.loads((suite / "c.json").read_text())["interactions"][0]
    for event in turn["agent_events"]:
        if "tool_input" in event:
            assert "hushed" not in event["tool_input"] and SECRETS[0] not in event["tool_input"] and json.loads(event["tool_input"]), event
    asked = [event for event in turn["agent_events"] if event["type"] == "APPROVAL_REQUIRED"]
    assert len(asked) == 2 and all(event["arguments_digest"] == "sha256:" + hashlib.sha256(event["tool_input"].encode()).hexdigest() for event in asked), asked
    status, output, _ = reprise(server.home, "test", suite, "--config", "server.json", "--workspace", server.home.workspace)
    assert status == 0, output
    (suite / "c.checks.json").write_text('{"never": ["run_shell"]}')  # which was refused
    status, output, _ = reprise(server.home, "test", suite, "--config", "server.json", "--workspace", server.home.workspace)
    assert status == 1 and "never: the turn wanted to call run_shell" in output, output
    (suite / "c.checks.json").write_text('{"calls": {"mode": "exact", "list": [{"name": "write_file"}]}, "max": {"calls": 1}}')
    assert reprise(server.home, "test", suite, "--config", "server.json", "--workspace", server.home.workspace)[0] == 0


def test_a_body_of_any_depth_is_compared(chat, suite):
    """Whoever sends a suite sends the bodies."""
    deep = "[" * 300_000 + "]" * 300_000
    for place in ("tools", "messages", "metadata"):
        changed = json.loads(chat.exported)
        sent = changed["interactions"][0]["record"]["requests"]
        body = json.dumps({"model": "scripted", "messages": [], place: "DEEP"}).replace('"DEEP"', deep)
        sent[0].update(body=[body], bytes=len(body), digest="sha256:" + hashlib.sha256(body.encode()).hexdigest())
        sent[0].pop("before", None)
        del sent[1:]
        (suite / "trip.json").write_text(json.dumps(changed))
        status, output, messages = run(chat, suite)
        assert status == 1 and "trip" in output, (place, output[-2000:], messages)


# --- what must not pass ------------------------------------------------------------------------------------------------

@pytest.fixture
def long(make_server, provider, tmp_path):
    """A chat of three turns, as a folder and as a document: `run(suite)` tests it, and `folder` and `document` are copies."""
    server = make_server(provider)
    server.check_records = False
    for number in range(3):
        provider.plan(text(f"Answer {number}."))
        server.client.turn("c", f"Question {number}?")
    server.stop()

    class Long:
        home = server.home
        suite = tmp_path / "suite"

        def run(self, *arguments):
            return reprise(self.home, "test", *(arguments or [self.suite]), "--data-dir", self.home.data, "--config", "server.json", "--workspace", self.home.workspace)

        def export(self, *more):
            assert reprise(self.home, "export", "c", "-o", self.suite, "--data-dir", self.home.data, *more)[0] == 0
            return self.suite / "c"
    return Long()


def without_turn(number):
    return lambda folder: (folder / "interactions" / f"int_{number:03}.json").unlink()


def with_head(head):
    def change(folder):
        about = json.loads((folder / "chat.json").read_text())
        (folder / "chat.json").write_text(json.dumps({**about, "head": head}))
    return change


@pytest.mark.parametrize(("damage", "said"), [(without_turn(1), "int_001"), (without_turn(2), "int_002"), (without_turn(3), "int_003"), (with_head("int_077"), "int_077")])
def test_an_exported_chat_that_lacks_a_turn_fails(long, damage, said):
    folder = long.export()
    assert "3 passed" in long.run()[1]
    damage(folder)
    status, output, _ = long.run()
    assert status == 1 and f"{said}, " in output and "is not here" in output, output


def test_a_document_that_lacks_a_turn_or_a_request_fails(long):
    status, output, messages = reprise(long.home, "export", "c", "--data-dir", long.home.data)
    assert status == 0, messages
    whole = json.loads(output)
    long.suite.mkdir()

    def fails_by(words, change):
        changed = json.loads(json.dumps(whole))
        change(changed["interactions"])
        (long.suite / "trip.json").write_text(json.dumps(changed))
        status, output, _ = long.run()
        assert status == 1 and words in output, output
    fails_by("int_002, which int_003 continues", lambda turns: turns.pop(1))
    fails_by("int_003, where the chat ends", lambda turns: turns.pop())
    fails_by("request of round 0 is missing", lambda turns: turns[2]["record"]["requests"].pop())


def test_a_damaged_chat_is_not_recorded(long):
    long.home.checkpoint_file("c", "int_002").unlink()
    status, _, messages = long.run("--record", "c", long.suite)
    assert status == 1 and "int_002" in messages and not (long.suite / "c.json").exists(), messages


def a_link(path):
    path.symlink_to("/nonexistent")


@pytest.mark.parametrize("name", ["c.checks.json", "suite.json", "c.accepted.json"])
@pytest.mark.parametrize("make", [a_link, os.mkdir, os.mkfifo])
def test_what_cannot_be_checks_is_named(long, make, name):
    long.export()
    make(long.suite / name)
    status, output, _ = long.run()
    assert status == 1 and name in output and "0 passed" in output, output


def test_checks_without_a_chat_fail(long):
    long.export()
    (long.suite / "d.checks.json").write_text('{"answer": {"equals": "nope"}}')
    status, output, _ = long.run()
    assert status == 1 and "d.checks.json" in output and "no chat for these checks" in output and "3 passed, 1 failed" in output, output


@pytest.mark.parametrize("words", ['{"answer": {"equals": "nope"}}', "no JSON at all"])
@pytest.mark.parametrize("place", [".", "lonely"])
def test_checks_for_all_chats_of_a_folder_that_has_none_fail(long, place, words):
    """Those in folders below it have checks of their own."""
    long.export().rename(long.suite / "below")
    (long.suite / "sub").mkdir()
    (long.suite / "below").rename(long.suite / "sub/below")
    (long.suite / place).mkdir(exist_ok=True)
    (long.suite / place / "suite.json").write_text(words)
    status, output, _ = long.run()
    assert status == 1 and "there is no chat for these checks in this folder" in output and "3 passed, 1 failed" in output, output


def test_turns_in_checks_for_all_chats_are_those_of_one_of_them(long):
    folder = long.export()
    (long.suite / "suite.json").write_text('{"turns": {"3": {"answer": {"contains": "2"}}}}')
    assert long.run()[0] == 0
    short = json.loads(reprise(long.home, "export", "c", "--data-dir", long.home.data)[1])
    short["interactions"] = short["interactions"][:1]
    short["head"] = "int_001"
    (long.suite / "a.json").write_text(json.dumps(short))
    (long.suite / "z.json").write_text(json.dumps(short))
    status, output, _ = long.run()
    assert status == 0 and "5 passed" in output, output  # c has such a turn
    assert long.run(long.suite / "a.json")[0] == 0
    (long.suite / "suite.json").write_text('{"turns": {"3": {"answer": {"contains": "2"}}, "99": {"answer": {"contains": "2"}}}}')
    status, output, _ = long.run()
    assert status == 1 and "/turns/99: no chat of this folder has such a turn" in output and "5 passed, 1 failed" in output, output
    first = json.loads(long.run("--json", long.suite)[1])["turns"][0]
    assert first["file"].endswith("suite.json") and first["state"] == "failed", "told before the chats are tested"
    status, output, messages = long.run("--live", "1", long.suite)
    assert (status, output) == (2, "") and "/turns/99" in messages, "no run is paid for such a suite"
    # One turn that is named alone has the checks of the others beside it.
    (long.suite / "suite.json").unlink()
    (long.suite / "c.checks.json").write_text('{"turns": {"3": {"answer": {"contains": "2"}}}}')
    assert long.run(f"{folder}/int_001")[0] == 0


def test_chats_at_any_depth_and_behind_links_are_tested(long):
    folder = long.export()
    outside = folder.rename(long.home.path / "elsewhere")
    deep = long.suite.joinpath(*"abcdefghijkl")
    deep.mkdir(parents=True)
    (deep / "far").symlink_to(outside)
    (deep / "again").symlink_to(long.suite)  # which leads round in a circle
    status, output, _ = long.run()
    assert status == 0 and "3 turns of 1 chat: 3 passed" in output, output
    (long.suite / "far.checks.json").write_text('{"answer": {"equals": "nope"}}')
    assert long.run()[0] == 1, "which are for no chat of this folder"


def test_chats_of_any_name_hide_no_others(chat, suite):
    assert reprise(chat.home, "export", "c", "-o", suite, "--data-dir", chat.home.data)[0] == 0
    (suite / "c").rename(suite / "interactions")
    (suite / "chat.json").write_text(chat.exported)
    status, output, _ = run(chat, suite)
    assert status == 0 and output.startswith("3 turns of 3 chats: 3 passed"), output
    (suite / "suite.json").write_text('{"never": ["write_file"]}')
    assert run(chat, suite)[1].count("never: ") == 3


@pytest.mark.parametrize("name", ["chat", "suite"])
def test_a_recording_replaces_no_other_file_of_the_suite(make_server, provider, tmp_path, name):
    server = make_server(provider)
    provider.plan(text("Hello."))
    server.client.turn(name, "Say hello.")
    server.stop()
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "suite.json").write_text('{"answer": {"contains": "Hello"}}')
    status, _, messages = reprise(server.home, "test", "--record", name, "--force", suite, "--data-dir", server.home.data, "--config", "server.json")
    assert status == 2 and "reprise export" in messages, messages
    assert [path.read_text() for path in suite.iterdir()] == ['{"answer": {"contains": "Hello"}}']


def test_what_a_chat_had_chosen_counts_for_the_turns_that_were_sent_with_it(make_server, provider, tmp_path):
    """Its effort, its model and its instructions, however it is named and whatever was chosen since."""
    server = make_server(provider)
    client = server.client
    def choose(**settings):
        client.request("PATCH", "/chats/c", settings).expect(200)
    client.post("/chats", {"id": "c", "instructions": "Be a pirate.", "effort": "high", "model": "test/other"}).expect(201)
    provider.plan(text("Arr."), text("Hello."), text("Bye."))
    client.turn("c", "one")
    choose(instructions="Be a poet.", effort="low", model="test/third")
    client.turn("c", "two")
    choose(instructions="", effort=None, model=None)
    client.turn("c", "three")
    def sent_with(requests):
        return [(each.body["model"], each.body.get("reasoning_effort"), [word for word in ("pirate", "poet") if word in each.raw.decode()]) for each in requests]
    then = sent_with(provider.requests)
    assert then[0] == ("other", "high", ["pirate"]) and then[1] == ("third", "low", ["poet"]) and then[2][1:] == (None, [])
    replayed = [client.post(f"/chats/c/interactions/int_00{turn}/replay", {"mode": "recorded", "input": "current"}).expect(200, "replay_report").json["drift"] for turn in (1, 2, 3)]
    assert replayed == [[], [], []]
    server.stop()
    here = ["--data-dir", server.home.data, "--config", "server.json", "--workspace", server.home.workspace]
    assert reprise(server.home, "export", "c", "-o", tmp_path, "--data-dir", server.home.data)[0] == 0
    assert reprise(server.home, "replay", "c", "--input", "current", *here)[0] == 0
    provider.answer_with(lambda _: text("Ahoy."))
    for what in ("c", tmp_path / "c"):
        status, output, _ = reprise(server.home, "test", what, *here)
        assert status == 0 and "3 passed" in output, output
        for command in (["test", "--live", 1, "--jobs", 1], ["what-if", "--jobs", 1]):
            asked = len(provider.requests)
            assert reprise(server.home, *command, what, *here)[0] == 0
            assert sent_with(provider.requests[asked:]) == then, (what, command)
    status, output, _ = reprise(server.home, "import", tmp_path / "c", "--as", "again", "--data-dir", server.home.data)
    assert status == 0, output


@pytest.mark.parametrize("names", ["*", "write_*", "write_file ", "write file", "write.file"])
def test_a_check_names_tools_that_can_be(chat, suite, names):
    for checks in ({"never": [names]}, {"never": [{"name": names}]}, {"calls": {"mode": "subset", "list": [{"name": names}]}}):
        (suite / "suite.json").write_text(json.dumps(checks))
        status, output, _ = run(chat, suite)
        assert status == 1 and "is the name of no tool" in output, (checks, output)


def test_a_file_that_cannot_be_read_is_named(chat, suite):
    assert reprise(chat.home, "export", "c", "-o", suite, "--data-dir", chat.home.data)[0] == 0
    about = suite / "c" / "chat.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "schema": 99}))
    status, output, _ = run(chat, suite / "c")
    assert status == 1 and "c/chat.json: its schema is not known here" in output, output
    assert reprise(chat.home, "import", suite / "c", "--data-dir", chat.home.data)[0] == 1
    about.unlink()
    turn = suite / "c" / "interactions" / "int_001.json"
    turn.unlink()
    os.mkfifo(turn)
    status, output, _ = run(chat, suite / "c")
    assert status == 1 and "c/interactions/int_001.json: " in output, output


def test_update_keeps_what_it_did_not_compare(chat, suite):
    accepted = suite / "trip.accepted.json"
    chat.write("prompt/10-rules.md", "You are a pirate.")
    assert run(chat, "--update", suite)[0] == 0
    before = accepted.read_bytes()
    gone = {"providers": {"two": {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}}, "model": "one/scripted", "models": {}}
    run(chat, "--update", suite, config=gone)
    assert json.loads(before)["accepted"][0] in json.loads(accepted.read_text())["accepted"]
    accepted.write_bytes(before)
    damaged = json.loads(chat.exported)
    damaged["interactions"][0]["record"]["requests"][0]["body"][0] = "{"
    (suite / "trip.json").write_text(json.dumps(damaged))
    assert run(chat, "--update", suite)[0] == 1 and accepted.read_bytes() == before
    (suite / "trip.json").write_text(chat.exported)
    (chat.prompt / "10-rules.md").unlink()
    assert run(chat, "--update", f"{suite}/trip/int_001")[0] == 2  # no such path
    assert run(chat, "--update", suite / "trip.json" / "int_001")[0] == 0 and accepted.read_bytes() == before, "other turns may need it"
    assert run(chat, "--update", suite)[0] == 0 and not accepted.exists()


def test_what_is_accepted_of_a_folder_and_a_document_of_one_name_is_kept(tmp_path):
    """Both have c.accepted.json, whichever is named, and however."""
    chat, suite = Recorded(tmp_path / "home", "openai"), tmp_path / "suite"
    try:
        assert chat.run("test", "--record", "c", suite)[0] == 0
        chat.provider.plan(text("Two."))
        low = {**chat.config, "models": {"one/scripted": {"context_window": 200_000, "effort": "low"}}}
        server = Server(chat.home, config=low, arguments=["--prompt-dir", chat.prompt])
        server.client.turn("c", "two")
        server.close()
        assert reprise(chat.home, "export", "c", "-o", suite, "--data-dir", chat.home.data)[0] == 0
        assert sorted(path.name for path in suite.iterdir()) == ["c", "c.json"] and run(chat, suite)[0] == 1
        for named in ([suite], [suite / "c.json"], [suite / "c", f"{suite}/./c.json"], [suite / "c/int_001"]):
            assert run(chat, "--update", suite)[0] == run(chat, "--update", *named)[0] == 0
            status, output, _ = run(chat, suite)
            assert status == 0, (named, output)
    finally:
        chat.provider.close()


def test_what_was_accepted_hides_no_other_change(chat, suite):
    small = {**chat.config, "models": {"one/scripted": {"context_window": 9000}}}
    status, output, _ = run(chat, suite, config=small)
    assert status == 1 and "parameter context_window has changed" in output and "  tool " not in output, output
    assert run(chat, "--update", suite, config=small)[0] == run(chat, suite, config=small)[0] == 0
    status, output, _ = run(chat, suite, config={**small, "tools": {"deny": ["find_files"]}})
    assert status == 1 and "tool find_files is gone" in output, output


def test_a_larger_window_is_named_also_if_no_usage_was_reported(tmp_path):
    chat = Recorded(tmp_path / "home", "openai")
    try:
        chat.provider.plan(text("Two.", usage=None))
        small = {**chat.config, "models": {"one/scripted": {"context_window": 9000}}}
        server = Server(chat.home, config=small, arguments=["--prompt-dir", chat.prompt])
        server.client.turn("d", "two")
        server.close()
        for config in (chat.config, {**chat.config, "models": {}}):
            drift = json.loads(chat.run("replay", "d", "--input", "current", "--json", config=config)[1])["drift"]
            assert [(each["name"], each["before"]) for each in drift if each["cause"] in ("tool", "parameter")] == [("context_window", "(smaller)")], drift
    finally:
        chat.provider.close()


def test_a_rule_that_denies_a_recorded_call_is_named(chat, suite):
    denied = {**chat.config, "tools": {"rules": [{"tool": "run_shell", "action": "deny"}, {"tool": "write_file", "action": "deny"}]}}
    status, output, _ = run(chat, suite, config=denied)
    assert status == 1 and "rule write_file" in output and "rule 2 denies it" in output, output
    assert run(chat, "--update", suite, config=denied)[0] == run(chat, suite, config=denied)[0] == 0
    denied["tools"]["rules"][1]["pattern"] = "otter.txt"
    assert run(chat, suite, config=denied)[0] == 1, "another rule"


def test_reports_that_cannot_be_written_are_wrong_use(chat, suite, tmp_path):
    for arguments in (["--junit", tmp_path], ["--junit", tmp_path / "no" / "a.xml"], ["--junit", tmp_path / "a", "--html", tmp_path / "a"]):
        status, output, messages = run(chat, *arguments, suite)
        assert (status, output) == (2, "") and messages, arguments


@pytest.mark.parametrize("name", ["trip.json", "trip.checks.json", "new.json", "c/chat.json", "c/interactions/int_001.html"])
def test_a_report_replaces_no_part_of_the_suite(chat, suite, name):
    assert reprise(chat.home, "export", "c", "-o", suite, "--data-dir", chat.home.data)[0] == 0
    before = {path: path.read_bytes() for path in suite.rglob("*") if path.is_file()}
    status, output, messages = run(chat, suite, "--html", suite / name)
    assert (status, output) == (2, "") and "part of the suite" in messages, messages
    (suite.parent / "link").symlink_to(suite / "trip.json")
    assert run(chat, suite / "trip.json", "--junit", suite.parent / "link")[0] == 2
    (suite.parent / "to nothing").symlink_to("suite/suite.json")
    for alone in (suite, suite / "c", suite / "c" / "int_001"):
        for place in (suite / "c.checks.json", suite / "c.accepted.json", suite / "suite.json", suite.parent / "to nothing"):
            assert run(chat, alone, "--markdown", place)[0] == 2, (alone, place)
    assert {path: path.read_bytes() for path in suite.rglob("*") if path.is_file()} == before


def test_an_untrusted_configuration_is_wrong_use(chat, suite, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    (place / "reprise.json").write_text("{}")
    status, _, messages = reprise(chat.home, "test", suite, "--workspace", place)
    assert status == 2 and "reprise trust" in messages, messages


def test_what_is_left_out_of_the_prompt_is_named_by_each_command(chat, suite):
    chat.write("prompt/15-voice.md", "Write {{nosuch}} sentences.")
    for command, *arguments in (["test", suite], ["replay", "c", "--input", "current"], ["bisect", "c/int_001", "--max-cost", "0.01"], ["what-if", "c"]):
        messages = chat.run(command, *arguments)[2]
        assert messages.count("15-voice.md has the placeholder {{nosuch}}") == 1, (command, messages)
        assert messages.count("\n") <= 2, messages


def test_a_prompt_folder_that_is_not_there_is_wrong_use(chat, suite):
    chat.write("now.json", json.dumps(chat.config))
    for command in (["test", suite], ["replay", "c", "--input", "current"], ["what-if", "c/int_001"], ["bisect", "c/int_001"]):
        status, output, messages = reprise(chat.home, *command, "--data-dir", chat.home.data, "--config", "now.json", "--prompt-dir", "./pirte")
        assert status in (1, 2) and "pirte" in messages and output == "", (command, output, messages)


def test_a_recording_has_no_secret_in_what_tools_have_named(make_server, provider, tmp_path):
    server = make_server(provider)
    server.check_records = False
    provider.plan(tools(call("write_file", {"path": f"{SECRETS[1]}.txt", "content": "x"})), text("Written."))
    server.client.turn("c", "Write.", approval_mode="approve_all")
    server.stop()
    suite = tmp_path / "suite"
    assert reprise(server.home, "test", "--record", "c", suite, "--data-dir", server.home.data, "--config", "server.json")[0] == 0
    assert SECRETS[1] not in (suite / "c.json").read_text()
    assert reprise(server.home, "test", suite, "--config", "server.json", "--workspace", server.home.workspace)[0] == 0


def test_a_recording_has_no_secret_in_the_name_of_a_file(make_server, provider, tmp_path):
    server = make_server(provider)
    server.check_records = False
    provider.plan(text("Read."))
    server.client.post("/chats", {"id": "c"})
    file = server.client.request("POST", f"/chats/c/files?name={SECRETS[1]}.txt", b"Nothing secret.", headers={"Content-Type": "text/plain"}).expect(201).json
    server.client.turn("c", "Read it.", attachments=[file["id"]])
    server.stop()
    suite = tmp_path / "suite"
    status, output, messages = reprise(server.home, "test", "--record", "c", suite, "--data-dir", server.home.data, "--config", "server.json")
    assert status == 0 and "taken out: " in output, (output, messages)
    assert SECRETS[1] not in (suite / "c.json").read_text()
    assert reprise(server.home, "test", suite, "--config", "server.json", "--workspace", server.home.workspace)[0] == 0


def test_no_chat_is_recorded_into_a_data_folder(chat, tmp_path):
    data = chat.home.data
    (tmp_path / "link").symlink_to(data)
    for folder in (data, data / "suite", f"{data}/../{data.name}/suite", tmp_path / "link", tmp_path / "link/suite"):
        before = sorted(data.rglob("*"))
        status, _, messages = chat.run("test", "--record", "c", folder)
        assert status == 2 and "--record takes no folder in the data folder" in messages, (folder, messages)
        assert sorted(data.rglob("*")) == before, folder
