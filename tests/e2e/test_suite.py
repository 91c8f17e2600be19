"""`reprise test`: recorded chats test the agent of today, without a model."""
import json
import os
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
    assert [(each["cause"], each["name"], each["turn"]) for each in accepted] == [("module", "10-rules", "int_001")]
    chat.write("prompt/40-new.md", "Mind the gap.")
    status, output, _ = run(chat, suite)
    assert status == 1 and "module 40-new is new" in output and "10-rules" not in output, output
    chat.write("prompt/10-rules.md", "You are another pirate.")
    (chat.prompt / "40-new.md").unlink()
    assert "You are another pirate." in run(chat, suite)[1]
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
        pytest.skip("it is for all chats, which have different turns")
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
    assert status == 1 and "c/int_001" in output and "trip/int_001" in output and "not at hand" in output, output


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
    assert (status, messages) == (0, "") and "taken out: a key of a model provider" in output and "left out: 1 files" in output, (output, messages)
    document = (suite / "c.json").read_text()
    assert [secret for secret in [*SECRETS, "hushed", "of two lines"] if secret in document] == [] and '"redacted": true' in document
    status, output, _ = reprise(server.home, "test", suite, "--config", "server.json", "--workspace", server.home.workspace)
    assert status == 0 and "2 passed" in output, output
    status, _, messages = reprise(server.home, "test", "--record", "c", suite, "--data-dir", server.home.data, "--config", "server.json")
    assert status == 1 and "c.json" in messages
    assert reprise(server.home, "test", "--record", "c", "--force", suite, "--data-dir", server.home.data, "--config", "server.json")[0] == 0


@pytest.mark.limit(300)
def test_many_turns_take_little_time(make_server, provider, tmp_path, figure):
    """A figure, not a limit: a turn should take less than 2 ms, and 1,000 (REPRISE_SUITE_TURNS) less than 3 s."""
    turns = int(os.environ.get("REPRISE_SUITE_TURNS", "50"))
    server = make_server(provider)
    for number in range(turns):
        provider.plan(text(f"Answer {number}."))
        server.client.turn("c", f"Question {number}?")
    server.stop()
    status, exported, _ = reprise(server.home, "export", "c", "--data-dir", server.home.data)
    assert status == 0
    (tmp_path / "long.json").write_text(exported)
    status, output, messages = reprise(server.home, "test", tmp_path / "long.json", "--json", "--config", "server.json", "--workspace", server.home.workspace)
    found = json.loads(output)
    assert status == 0, (output[:2000], messages)
    figure(f"reprise test: {turns} turns in {found['seconds'] * 1000:.0f} ms, {sorted(each['ms'] for each in found['turns'])[turns // 2]:.2f} ms a turn (median)")
