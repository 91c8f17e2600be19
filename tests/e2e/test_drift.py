"""What has changed since a chat was recorded is named: `reprise replay --input current`, and the same over HTTP.

The tables have more than 50 kinds of changes that must be named by their cause, and more than 50 that change no request and must not be named. The first ones are
tried with each provider's interface; the MORE_ ones, which do not depend on it, with one.
"""
import json

import pytest
from support import documents
from support.mcp import server_of
from support.provider import text
from support.recorded import Recorded
from support.server import API_KEY, reprise
from support.timing import eventually

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


def check_named(changing, name, words, named):
    changing.write(name, words)
    if name == "workspace/AGENTS.md":
        changing.home.trust("workspace/AGENTS.md", "--workspace", changing.home.workspace)
    drift = changing.replay()
    assert [(each["cause"], each["name"]) for each in drift] == [named], drift
    assert drift[0]["request"] == 0 and drift[0]["before"] != drift[0]["after"]


@pytest.mark.parametrize("what", FILES)
def test_a_changed_file_is_named(changing, what):
    check_named(changing, *FILES[what])


BESIDE_VALUES = {
    "a rule before the environment": ("You must ask before every deletion. {{environment}}\n", "{{environment}}\n"),
    "a rule behind the environment": ("{{environment}} You must ask before every deletion.\n", "{{environment}}\n"),
    "words before the date": ("Never use tools on {{date}}.\n", "{{date}}.\n"),
    "all words, for the date": ("Be careful with money.\n", "{{date}}\n"),
    "all words, for the memory": ("Be careful with money.\n", "{{memory}}\n"),
    "all words, for the tools": ("Be careful with money.\n", "{{tools}}\n"),
    "words behind the folder": ("Stay in {{workspace}} and be careful.\n", "Stay in {{workspace}}\n"),
}


@pytest.mark.parametrize("what", BESIDE_VALUES)
def test_words_beside_a_placeholder_are_no_part_of_its_value(make_server, provider, what):
    was, now = BESIDE_VALUES[what]
    server = make_server(provider)
    folder = server.home.config / "reprise" / "prompt"
    folder.mkdir(mode=0o700)
    module = folder / "16-more.md"
    module.write_text(was)
    module.chmod(0o600)
    provider.plan(text("Hello."))
    server.client.turn("c", "Say hello.")
    compare = lambda: [(each["cause"], each["name"]) for each in
                       server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded", "input": "current"}).expect(200, "replay_report").json["drift"]]
    assert compare() == []
    module.write_text(now)
    assert compare() == [("module", "16-more")]


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
    "the window": ({"models": {"one/scripted": {"context_window": 4000}}}, ("parameter", "context_window")),
    "a rule that denies": ({"tools": {"rules": [{"tool": "write_file", "action": "deny"}]}}, ("rule", "write_file")),
    "a rule that denies this path": ({"tools": {"rules": [{"tool": "write_file", "pattern": "otter.txt", "action": "deny"}]}}, ("rule", "write_file")),
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
    assert drift and {each["cause"] for each in drift} == {cause}, drift
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


# --- more of both kinds -----------------------------------------------------------------------------------------------

VOICE = "Write short sentences.\n\nNo lists.\n"
AGENTS = "# Otters\n\nBuild with make.\nTest with make check.\n"
SKILL = "home/.agents/skills/release/SKILL.md"
MORE_FILES = {
    "the case of a letter": ("prompt/15-voice.md", VOICE.replace("Write", "write"), ("module", "15-voice")),
    "a space": ("prompt/15-voice.md", VOICE.replace("short ", "short  "), ("module", "15-voice")),
    "a line end": ("prompt/15-voice.md", VOICE.replace("short ", "short\n"), ("module", "15-voice")),
    "paragraphs in another order": ("prompt/15-voice.md", "No lists.\n\nWrite short sentences.\n", ("module", "15-voice")),
    "a paragraph twice": ("prompt/15-voice.md", VOICE + "\nNo lists.\n", ("module", "15-voice")),
    "a letter with an accent": ("prompt/15-voice.md", VOICE.replace("sentences", "séntences"), ("module", "15-voice")),
    "an invisible character": ("prompt/15-voice.md", VOICE.replace("No", "No\u200b"), ("module", "15-voice")),
    "another language": ("prompt/15-voice.md", "Schreib kurze Sätze.\n", ("module", "15-voice")),
    "a value in a module": ("prompt/15-voice.md", VOICE + "\nHere: {{workspace}}\n", ("module", "15-voice")),
    "a built-in module in other words": ("prompt/20-tools.md", "Use tools.\n", ("module", "20-tools")),
    "no environment": ("prompt/30-environment.md", "", ("module", "30-environment")),
    "a heading of the instructions": ("workspace/AGENTS.md", AGENTS.replace("# Otters", "## Otters"), ("instructions", "70-project")),
    "instructions in another order": ("workspace/AGENTS.md", "# Otters\n\nTest with make check.\nBuild with make.\n", ("instructions", "70-project")),
    "instructions with a line less": ("workspace/AGENTS.md", AGENTS.replace("Build with make.\n", ""), ("instructions", "70-project")),
    "the case of a skill's description": (SKILL, "---\nname: release\ndescription: makes a release.\n---\nSteps.\n", ("skill", "release")),
    "a longer description of a skill": (SKILL, "---\nname: release\ndescription: Makes a release. Asks first.\n---\nSteps.\n", ("skill", "release")),
}


@pytest.mark.parametrize("recorded", ["openai"], indirect=True)
@pytest.mark.parametrize("what", MORE_FILES)
def test_more_changed_files_are_named(changing, what):
    check_named(changing, *MORE_FILES[what])


def model(**facts):
    return {"models": {"one/scripted": {"context_window": 200_000, **facts}}}


MORE_SETTINGS = {
    "no effort": ("openai", model(effort="none"), {("parameter", "reasoning_effort")}),
    "a search of the web": ("openai", {"web_search": True}, {("parameter", "web_search_options")}),
    "tools for commands are off": ("openai", {"tools": {"deny": ["run_shell", "run_code"]}}, {("tool", "run_shell"), ("tool", "run_code")}),
    "another limit of an answer": ("anthropic", model(max_output_tokens=777), {("parameter", "max_tokens")}),
    "a smaller window": ("anthropic", model(context_window=40_000), {("parameter", "max_tokens")}),
    "tokens for thinking": ("anthropic", model(thinking=2000), {("parameter", "thinking")}),
    "thinking as the model likes": ("anthropic", model(thinking="adaptive"), {("parameter", "thinking")}),
    "no key of the cache": ("openai", model(cache="none"), {("parameter", "prompt_cache_key")}),
    "no key of the other cache": ("openai_responses", model(cache="none"), {("parameter", "prompt_cache_key")}),
    "no cache": ("anthropic", model(cache="none"), {("parameter", "cache_control")}),
    "a search of the web as a tool": ("anthropic", {"web_search": True}, {("tool", "web_search")}),
    "a limit of an answer": ("openai_responses", model(max_output_tokens=777), {("parameter", "max_output_tokens")}),
}


def of_provider(recorded, more):
    """The configuration with these settings; those of the provider are put there."""
    mine = {name: more[name] for name in ("web_search", "headers", "query", "api_key", "base_url") if name in more}
    others = {name: value for name, value in more.items() if name not in mine}
    return {**recorded.config, "providers": {"one": {**recorded.config["providers"]["one"], **mine}}, **others}


@pytest.mark.parametrize(("recorded", "what"), [(kind, what) for what, (kind, _, _) in MORE_SETTINGS.items()], indirect=["recorded"])
def test_more_changed_settings_are_named(recorded, what):
    _, more, named = MORE_SETTINGS[what]
    assert {(each["cause"], each["name"]) for each in recorded.replay(of_provider(recorded, more))} == named


PRICES = {"input_price_per_mtok": 1, "output_price_per_mtok": 2}
MORE_QUIET = {
    "the form of the log": {"log_format": "json"},
    "the log's file": {"log_file": "some.log"},
    "an expiry": {"approval_expiry_s": 9},
    "a rate of calls": {"max_tool_calls_per_minute": 9},
    "checks of the end": {"max_end_checks": 1},
    "the silence of a model": {"provider_idle_timeout_s": 9},
    "the time of a call": {"tools": {"timeout_s": 9}},
    "the address": {"host": "127.0.0.2"},
    "the port": {"port": 9999},
    "names of the server": {"public_hosts": ["a.example"]},
    "reads ask nobody": {"approval_mode": "read_only"},
    "the sandbox decides": {"approval_mode": "auto"},
    "nothing asks": {"approval_mode": "approve_all"},
    "what asks is rejected": {"approval_mode": "deny_all"},
    "a rule that allows": {"tools": {"rules": [{"tool": "write_file", "action": "allow"}]}},
    "a rule that denies other calls": {"tools": {"rules": [{"tool": "write_file", "pattern": "heron.txt", "action": "deny"}, {"tool": "run_shell", "action": "deny"}]}},
    "a rule that asks": {"tools": {"rules": [{"tool": "read_file", "action": "ask"}]}},
    "a budget of the day": {"budget": {"max_tokens_per_day": 99_999}},
    "a budget of a turn": {"budget": {"max_tokens_per_interaction": 99_999}},
    "a price of the cache": model(**PRICES, cache_read_price_per_mtok=1),
    "a price of writing to the cache": model(**PRICES, cache_write_price_per_mtok=1),
    "a price of searches": model(**PRICES, search_price_per_thousand=1),
    "texts in traces": {"telemetry": {"content": True}},
    "another key": {"api_key": "other"},
    "another address of the provider": {"base_url": "http://127.0.0.1:9/v1"},
    "another header": {"headers": {"X-A": "b"}},
    "another query": {"query": {"a": "b"}},
    "a hook": {"hooks": [{"event": "after_tool", "command": ["/bin/true"]}]},
    "it takes pictures": model(abilities={"images": True}),
    "it takes PDF": model(abilities={"pdf": True}),
    "thinking of another interface": model(thinking=2000),
    "a larger window": model(context_window=1_000_000),
    "no history of the workspace": {"workspace_history": False},
    "a mode of the workspace": {"workspace_mode": "local"},
}


@pytest.mark.parametrize("recorded", ["openai"], indirect=True)
@pytest.mark.parametrize("what", MORE_QUIET)
def test_more_of_what_is_no_drift(recorded, what):
    config = of_provider(recorded, MORE_QUIET[what])
    assert recorded.replay(dict(reversed(config.items()))) == []


def test_the_tables_are_as_long_as_they_should_be():
    assert len(FILES) + len(SETTINGS) + len(MORE_FILES) + len(MORE_SETTINGS) + 4 >= 50
    assert len(QUIET) + len(MORE_QUIET) + 6 >= 50


def tools_of(drift):
    return {(each["cause"], each["name"], each["before"], each["after"]) for each in drift if each["path"].startswith("/tools")}


@pytest.mark.parametrize("window", [8500, 9500, 12_000, 200_000, None])
def test_another_window_is_one_change_and_no_changed_tools(make_server, make_home, provider, window):
    """A model with little room gets short descriptions, and not of all tools."""
    one = {"type": "openai", "base_url": provider.url, "api_key": API_KEY}
    def config(window, **more):
        return {"providers": {"one": one}, "model": "one/small", "models": {"one/small": {"context_window": window} if window else {}}, **more}
    home = make_home()
    server = make_server(home=home, config=config(9000))
    provider.plan(text("Hello."))
    server.client.turn("c", "hello")
    server.stop()
    def drift(config):
        server = make_server(home=home, config=config)
        found = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded", "input": "current"}).expect(200, "replay_report").json["drift"]
        server.stop()
        return tools_of(found)
    assert drift(config(9000)) == set()
    assert drift(config(window)) == {("parameter", "context_window", "9000", str(window or "(unlimited)"))}
    less = drift(config(window, tools={"deny": ["read_file"]}))
    assert {each[:2] for each in less} >= {("parameter", "context_window"), ("tool", "read_file")}, less


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


def test_what_is_not_compared_of_mcp_servers_is_said(make_server, provider):
    """A server that is away is named; one of another version, and tools that are denied, are drift."""
    bell = server_of('{"name": "ring", "description": "Rings.", "inputSchema": {"type": "object"}}', '"ding"')
    server = make_server(provider, config={"mcpServers": {"bell": bell}})
    def compare(state):
        eventually(lambda: [each["state"] for each in server.client.get("/tools").json["servers"]] == [state], state)
        report = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded", "input": "current"}).expect(200, "replay_report").json
        return [(each["cause"], each["name"], each["before"], each["after"]) for each in report["drift"]], report.get("not_compared", [])
    eventually(lambda: [each["state"] for each in server.client.get("/tools").json["servers"]] == ["ready"], "ready")
    provider.plan(text("Hello."))
    server.client.turn("c", "Say hello.")
    assert compare("ready") == ([], [])
    server.stop()
    newer = {**bell, "args": [each.replace('"version": "1"', '"version": "2"') for each in bell["args"]]}
    server = make_server(provider, home=server.home, config={"mcpServers": {"bell": newer}})
    assert compare("ready") == ([("tool", "bell", "version s 1", "version s 2")], [])
    server.stop()
    server = make_server(provider, home=server.home, config={"mcpServers": {"bell": {"command": "/bin/false"}}})
    drift, [said] = compare("failed")
    assert drift == [] and "MCP server bell" in said
    server.stop()
    arguments = ["replay", "c", "--input", "current", "--data-dir", server.home.data, "--config", "server.json", "--workspace", server.home.workspace]
    status, output, _ = reprise(server.home, *arguments)
    assert status == 0 and "1 request is that of today, as far as they are compared" in output and "not compared: tools and words of the MCP server bell" in output, output
    config = server.home.path / "server.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "tools": {"deny": ["bell__*"]}}))
    status, output, _ = reprise(server.home, *arguments)
    assert status == 1 and "tool bell__ring is gone" in output, output


@pytest.mark.parametrize("changed", [{"models": {"test/scripted": {"context_window": 200_000, "abilities": {"images": False}}}}, {"files": {"max_image_bytes": 10}}])
def test_a_picture_that_is_not_sent_any_more_is_a_setting(make_server, provider, changed):
    config = {"models": {"test/scripted": {"context_window": 200_000, "abilities": {"images": True}}}}
    server = make_server(provider, config=config)
    picture = server.client.request("POST", "/chats/c/files?name=a.png", documents.png(), headers={"Content-Type": "image/png"}).json["id"]
    provider.plan(text("Nice."))
    server.client.turn("c", "Look.", attachments=[picture])
    server.stop()
    server = make_server(provider, home=server.home, config={**config, **changed})
    report = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded", "input": "current"}).expect(200, "replay_report").json
    assert [(each["cause"], each["name"]) for each in report["drift"]] == [("parameter", "attachments")]


def test_a_cache_key_that_is_new_is_named(make_server, provider):
    server = make_server(provider, config={"models": {"test/scripted": {"context_window": 200_000, "cache": "none"}}})
    provider.plan(text("Hello."))
    server.client.turn("c", "Say hello.")
    server.stop()
    server = make_server(provider, home=server.home, config={"models": {"test/scripted": {"context_window": 200_000}}})
    report = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded", "input": "current"}).expect(200, "replay_report").json
    assert [(each["cause"], each["name"], each["before"], each["after"]) for each in report["drift"]] == [("parameter", "prompt_cache_key", "", "(set)")]


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
