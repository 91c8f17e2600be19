"""The path of docs/testing.md, walked by a new user in an empty home: each step takes less than a minute."""
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as xml

import pytest
from support.provider import call, text, tools
from support.server import API_KEY, BINARY, ROOT, Home

DOCS = (ROOT / "docs/testing.md").read_text()


class Walk:
    """Commands of a user in the folder of a project. No step may take a minute."""

    def __init__(self, home, folder):
        self.home, self.folder = home, folder

    def step(self, *arguments, status=0):
        begun = time.monotonic()
        done = subprocess.run([str(BINARY), *map(str, arguments)], cwd=self.folder, env=self.home.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode == status, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        assert time.monotonic() - begun < 60
        return done.stdout


def commands_of(section, language):
    """The commands of the program in a block of docs/testing.md."""
    [block] = [each for each in re.findall(rf"```{language}\n(.*?)```", DOCS, re.S) if section in each]
    return re.findall(r"- (?:run: )?(reprise .*)", block)


@pytest.fixture
def walk(tmp_path, provider):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("# Trips\n\nWrite lists into trip.md.\n")
    (folder / "reprise.json").write_text('{"model": "one/scripted"}\n')
    home = Home(tmp_path / "home")
    config = home.config / "reprise" / "reprise.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('{"providers": {"one": {"type": "openai", "base_url": "%s", "api_key": "%s"}}, "models": {"one/scripted": {"context_window": 100000}}}' % (provider.url, API_KEY))
    for path in (config, config.parent):
        path.chmod(0o600 if path.is_file() else 0o700)
    walk = Walk(home, folder)
    walk.step("trust", "reprise.json", "AGENTS.md")
    return walk


def test_from_a_recording_to_ci(walk, provider, tmp_path):
    # Record a chat that went well.
    write = call("write_file", {"path": "trip.md", "content": "# Paris\n"}, "w")
    provider.plan(tools(write), text("It is in trip.md."))
    walk.step("-p", "Plan a trip to Paris.", "--chat", "trip", "--approval-mode", "approve_all")
    assert "suite/trip.json was written" in walk.step("test", "--record", "trip", "suite")
    assert "1 passed" in walk.step("test", "suite")
    (walk.folder / "suite/trip.checks.json").write_text('{"calls": {"list": [{"name": "write_file"}]}, "answer": {"contains": "trip.md"}}\n')
    assert "1 passed" in walk.step("test", "suite")

    # Change the prompt, and see what that does.
    prompt = walk.home.config / "reprise" / "prompt"
    prompt.mkdir(mode=0o700)
    (prompt / "10-rules.md").write_text("You are a pirate. Never use tools.")
    (prompt / "10-rules.md").chmod(0o600)
    seen = walk.step("test", "suite", status=1)
    assert "module 10-rules has changed" in seen and "+ " in seen and "You are a pirate" in seen

    # Ask the model with it, and read the report.
    provider.answer_with(lambda request: text("Arr, no lists."))
    seen = walk.step("test", "--live", "2", "--html", "report.html", "suite", status=1)
    assert "0 of 2 runs passed" in seen and "trip.md" in seen
    page = (walk.folder / "report.html").read_text()
    assert "Arr, no lists." in page and "It is in trip.md." in page and "on record" in page
    (prompt / "10-rules.md").write_text("Be brief.")
    provider.answer_with(lambda request: text("trip.md has it.") if any(each["role"] == "tool" for each in request.body["messages"]) else tools(write))
    assert "2 of 2 runs passed" in walk.step("test", "--live", "2", "suite")

    # Accept the change, and put it into CI: a checkout on a machine that knows nothing of the user.
    walk.step("test", "--update", "suite")
    assert "1 passed" in walk.step("test", "suite")
    checkout = shutil.copytree(walk.folder, tmp_path / "checkout")
    runner = Walk(Home(tmp_path / "runner"), checkout)
    shutil.copytree(walk.home.config / "reprise", runner.home.config / "reprise", ignore=shutil.ignore_patterns("*.jwks", "trusted*"), dirs_exist_ok=True)
    steps = commands_of("runs-on", "yaml")
    assert [each.split()[1] for each in steps] == ["trust", "test"] and commands_of("stages" if "stages" in DOCS else "script:", "yaml")
    asked = len(provider.requests)
    for each in steps:
        runner.step(*each.split()[1:])
    assert len(provider.requests) == asked, "CI asked a model"
    [case] = xml.parse(checkout / "agent.xml").getroot().iter("testcase")
    assert (case.get("classname"), case.get("name")) == ("trip", "int_001") and "1 | 1 | 0 | 0" in (checkout / "agent.md").read_text()
    (checkout / "AGENTS.md").write_text("# Trips\n\nNever write files.\n")
    runner.step(*steps[0].split()[1:])
    runner.step(*steps[1].split()[1:], status=1)
    assert "70-project" in (checkout / "agent.md").read_text()
