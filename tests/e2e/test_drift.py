"""What has changed since a chat was recorded is named: `reprise replay --input current`, and the same over HTTP."""
import json

import pytest
from support.provider import text
from support.recorded import Recorded
from support.server import reprise

KINDS = ["openai", "openai_responses", "anthropic"]
FOLDERS = ("prompt", "workspace", "home", "config", "state")
RULES = "You are an assistant that works for one person"


@pytest.fixture(scope="module", params=KINDS)
def recorded(request, tmp_path_factory):
    chat = Recorded(tmp_path_factory.mktemp(request.param) / "home", request.param)
    yield chat
    chat.provider.close()


@pytest.fixture
def changing(recorded):
    """Files of the home that a test may change: they are put back afterwards."""
    kept = {path: path.read_bytes() for folder in FOLDERS for path in (recorded.home.path / folder).rglob("*") if path.is_file()}
    yield recorded
    for folder in FOLDERS:
        for path in (recorded.home.path / folder).rglob("*"):
            if path.is_file() and path not in kept:
                path.unlink()
    for path, content in kept.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)


def test_nothing_has_changed(recorded):
    assert recorded.replay() == []


FILES = {
    "a word in a module": ("prompt/15-voice.md", "Write long sentences.\n\nNo lists.\n", ("module", "15-voice")),
    "the end of a module": ("prompt/15-voice.md", "Write short sentences.\n\nNo lists, and no tables.\n", ("module", "15-voice")),
    "an empty module": ("prompt/15-voice.md", "", ("module", "15-voice")),
    "the pirate": ("prompt/10-rules.md", "You are a pirate. Never use tools.", ("module", "10-rules")),
    "a built-in module that is off": ("prompt/20-tools.md", "", ("module", "20-tools")),
    "the date in other words": ("prompt/80-date.md", "The date is {{date}}.", ("module", "80-date")),
    "no date": ("prompt/80-date.md", "", ("module", "80-date")),
    "a placeholder more": ("prompt/30-environment.md", "Here: {{environment}}", ("module", "30-environment")),
    "a new module": ("prompt/40-new.md", "Mind the gap.", ("module", "40-new")),
    "a new module at the end": ("prompt/99-new.md", "Mind the gap.", ("module", "99-new")),
    "a new module at the beginning": ("prompt/05-new.md", "Mind the gap.", ("module", "05-new")),
    "the last module": ("prompt/95-last.md", "Never ask.", ("module", "95-last")),
    "a new module with a value": ("prompt/40-new.md", "Stay in {{workspace}}.", ("module", "40-new")),
    "a new module between values": ("prompt/86-new.md", "Mind the gap.", ("module", "86-new")),
    "instructions": ("workspace/AGENTS.md", "# Otters\n\nBuild with ninja.\nTest with make check.\n", ("instructions", "70-project")),
    "more instructions": ("workspace/AGENTS.md", "# Otters\n\nBuild with make.\nTest with make check.\n\nAnd lint.\n", ("instructions", "70-project")),
    "a skill's description": ("home/.agents/skills/release/SKILL.md", "---\nname: release\ndescription: Makes two releases.\n---\nSteps.\n", ("skill", "release")),
    "a new skill": ("home/.agents/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Deploys.\n---\nSteps.\n", ("skill", "deploy")),
}


@pytest.mark.parametrize("what", FILES)
def test_a_changed_file_is_named(changing, what):
    name, words, (cause, thing) = FILES[what]
    changing.write(name, words)
    if name == "workspace/AGENTS.md":
        changing.home.trust("workspace/AGENTS.md", "--workspace", changing.home.workspace)
    drift = changing.replay()
    assert [(each["cause"], each["name"]) for each in drift] == [(cause, thing)], drift
    assert drift[0]["request"] == 0 and drift[0]["before"] != drift[0]["after"]


@pytest.mark.parametrize(("path", "cause", "name"), [("prompt/95-last.md", "module", "95-last"), ("prompt/15-voice.md", "module", "15-voice"),
                                                     ("workspace/AGENTS.md", "instructions", "70-project"), ("home/.agents/skills/release/SKILL.md", "skill", "release")])
def test_a_file_that_is_gone_is_named(changing, path, cause, name):
    (changing.home.path / path).unlink()
    drift = changing.replay()
    assert [(each["cause"], each["name"], each["after"]) for each in drift] == [(cause, name, "")], drift


def test_several_changes_are_each_named(changing):
    changing.write("prompt/10-rules.md", "You are a pirate.")
    changing.write("prompt/40-new.md", "Mind the gap.")
    changing.write("prompt/95-last.md", "")
    changing.skill("deploy", "Deploys.")
    found = {(each["cause"], each["name"]) for each in changing.replay({**changing.config, "tools": {"deny": ["find_files"]}})}
    assert found == {("module", "10-rules"), ("module", "40-new"), ("module", "95-last"), ("skill", "deploy"), ("tool", "find_files")}


SETTINGS = {
    "a tool that is off": ({"tools": {"deny": ["find_files"]}}, ("tool", "find_files")),
    "the effort": ({"models": {"one/scripted": {"context_window": 200_000, "effort": "high"}}}, ("parameter", None)),
    "the form of edits": ({"models": {"one/scripted": {"context_window": 200_000, "edit_format": "apply_patch"}}}, ("tool", "apply_patch")),
    "the window": ({"models": {"one/scripted": {"context_window": 4000}}}, ("tool", None)),
    "the model": ({"model": "one/other"}, ("model", "one/other")),
    "no such provider": ({"providers": {"two": {"type": "openai", "base_url": "http://127.0.0.1:9/v1", "api_key": "k"}}, "model": "two/x", "models": {}}, ("model", "two/x")),
    "the cache": ({"models": {"one/scripted": {"context_window": 200_000, "cache": "long"}}}, ("parameter", None)),
}


@pytest.mark.parametrize("what", SETTINGS)
def test_a_changed_setting_is_named(recorded, what):
    more, (cause, name) = SETTINGS[what]
    if what == "the cache" and recorded.kind == "openai":
        pytest.skip("this interface has no such parameter for this address")
    drift = recorded.replay({**recorded.config, **more})
    others = {"parameter"} if what == "the window" else set()  # Anthropic's interface wants the limit of a response
    assert drift and {each["cause"] for each in drift} <= {cause, *others}, drift
    assert any(each["cause"] == cause and name in (None, each["name"]) for each in drift), drift


def test_a_changed_flag_is_named(recorded):
    assert [(each["cause"], each["before"], each["after"]) for each in recorded.replay(arguments=["--model", "one/other"])] == [("model", "one/scripted", "one/other")]


QUIET = {
    "the log": {"log_level": "debug"},
    "a price": {"models": {"one/scripted": {"context_window": 200_000, "input_price_per_mtok": 1, "output_price_per_mtok": 2}}},
    "another model's facts": {"models": {"one/scripted": {"context_window": 200_000}, "one/other": {"effort": "high"}}},
    "the retries": {"max_retries": 7},
    "a budget": {"budget": {"max_tokens_per_chat": 100_000}},
    "the grace": {"disconnect_grace_s": 5},
    "the rounds": {"max_rounds": 7},
    "a time": {"drain_s": 7},
    "an approval": {"tools": {"require_approval": ["read_file"]}},
    "the order of members": {"model": "one/scripted", "max_retries": 1},
}


@pytest.mark.parametrize("what", QUIET)
def test_what_changes_no_request_is_no_drift(recorded, what):
    assert recorded.replay({**recorded.config, **QUIET[what]}) == []


@pytest.mark.parametrize(("name", "words"), [("workspace/otter.txt", "Other words.\n"), ("workspace/new.txt", "new"), ("prompt/notes.txt", "no module"),
                                             ("prompt/15-voice.md", "\n\nWrite short sentences.\n\nNo lists.\n\n\n"), ("home/.agents/skills/release/more.md", "more"),
                                             ("home/.agents/skills/release/SKILL.md", "---\nname: release\ndescription: Makes a release.\n---\nOther steps.\n")])
def test_files_that_change_no_request_are_no_drift(changing, name, words):
    changing.write(name, words)
    assert changing.replay() == []


def test_over_http_and_for_people(make_server, provider):
    server = make_server(provider)
    provider.plan(text("Hello."))
    server.client.turn("c", "Say hello.")
    path = "/chats/c/interactions/int_001/replay"
    report = server.client.post(path, {"mode": "recorded", "input": "current"}).expect(200, "replay_report").json
    assert report["match"] and report["requests"] == 1 and report["drift"] == []
    assert "drift" not in server.client.post(path, {"mode": "recorded", "input": "recorded"}).expect(200, "replay_report").json
    (server.home.config / "reprise" / "prompt").mkdir()
    rules = server.home.config / "reprise" / "prompt" / "10-rules.md"
    rules.write_text("You are a pirate. Never use tools.")
    rules.chmod(0o600)
    (server.home.config / "reprise" / "prompt").chmod(0o700)
    report = server.client.post(path, {"mode": "recorded", "input": "current"}).expect(200, "replay_report").json
    assert [(each["cause"], each["name"]) for each in report["drift"]] == [("module", "10-rules")]
    assert report["drift"][0]["before"].startswith(RULES) and report["drift"][0]["after"] == "You are a pirate. Never use tools."
    status, output, _ = reprise(server.home, "replay", "c", "--input", "current", "--data-dir", server.home.data, "--config", "server.json", "--workspace", server.home.workspace)
    assert status == 1 and "c/int_001: module 10-rules has changed" in output and "\n  + You are a pirate. Never use tools." in output, output
    for body, member in (({"mode": "live", "input": "current"}, "input"), ({"mode": "recorded", "input": "tomorrow"}, "input"), ({"mode": "events", "input": "recorded"}, "input")):
        assert member in server.client.post(path, body).expect(400).json["error"]["message"]


def test_a_named_model_stays_named(make_server, provider):
    """A message that names its model has it tomorrow, whatever the configuration's is."""
    server = make_server(provider)
    provider.plan(text("Hello."))
    server.client.turn("c", "Say hello.", model="test/named")
    report = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded", "input": "current"}).expect(200).json
    assert report["drift"] == [] and report["requests"] == 1


def test_a_chat_of_an_earlier_version_says_so(make_server, provider):
    server = make_server(provider, plain=True)
    server.check_records = False
    provider.plan(text("Hello."))
    server.client.turn("c", "Say hello.")
    server.stop()
    file = server.home.checkpoint_file("c", "int_001")
    stored = json.loads(file.read_text())
    del stored["record"]["requests"]
    file.write_text(json.dumps(stored))
    status, output, messages = reprise(server.home, "replay", "c", "--input", "current", "--plain", "--data-dir", server.home.data, "--config", "server.json", "--workspace", server.home.workspace)
    assert status == 1 and "not on record" in messages, (output, messages)
