"""`reprise test`: recorded chats test the agent of today, without a model."""
import hashlib
import json
import xml.etree.ElementTree as xml

import pytest
from support import schemas
from support.provider import call, text, tools
from support.recorded import Recorded
from support.server import reprise


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
    (suite / "trip.accepted.json").write_text("{}")
    status, output, _ = run(chat, suite)
    assert status == 1 and "delete it to begin anew" in output


@pytest.mark.parametrize(("checks", "failing"), [
    ({"calls": {"mode": "exact", "list": [{"name": "write_file", "arguments": {"path": "otter.txt"}}]}}, None),
    ({"calls": {"list": [{"name": "read_file"}]}}, "calls"), ({"never": ["write_file"]}, "never"), ({"never": ["read_file"]}, None),
    ({"answer": {"matches": "^Writ"}}, None), ({"answer": {"equals": "Nothing."}}, "answer"), ({"max": {"rounds": 2}}, None), ({"max": {"rounds": 1}}, "max"),
    ({"files": {"otter.txt": {"changed": True}}}, None), ({"files": {"heron.txt": {"changed": True}}}, "files"),
    ({"turns": {"1": {"answer": {"contains": "no such"}}}}, "answer"), ({"turns": {"7": {"answer": {"contains": "no such"}}}}, "/turns/7")])
@pytest.mark.parametrize("name", ["trip.checks.json", "suite.json"])
def test_checks(chat, suite, name, checks, failing):
    if failing == "/turns/7" and name == "suite.json":
        failing = None  # it is for all chats, which have different turns
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
    assert run(chat, suite, "--junit", "/nowhere/x.xml")[0] == 1


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
