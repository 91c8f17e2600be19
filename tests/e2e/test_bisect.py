"""`reprise bisect`: which difference between a turn's recorded input and today's changes its outcome."""
import json
import random
import re

import pytest
from support import schemas
from support.provider import failure, text
from support.recorded import Recorded
from support.server import Server, reprise, sandbox_works

KINDS = ("openai", "anthropic", "openai_responses")


def system_of(body):
    """The system prompt of a request, whichever interface it is for."""
    for value in (body.get("system"), body.get("instructions"), body.get("messages", [{}])[0].get("content")):
        if value:
            return value if isinstance(value, str) else "".join(part.get("text", "") for part in value)
    return ""


@pytest.fixture(params=KINDS)
def chat(request, tmp_path):
    recorded = Recorded(tmp_path / "home", request.param)
    yield recorded
    recorded.provider.close()


@pytest.fixture
def openai_chat(tmp_path):
    recorded = Recorded(tmp_path / "home", "openai")
    yield recorded
    recorded.provider.close()


def bisect(chat, *arguments, status=0, config=None):
    got, output, messages = chat.run("bisect", "c/int_001", "--json", *arguments, config=config)
    assert (got, messages) == (status, ""), (got, output, messages)
    report = json.loads(output)
    schemas.check("bisect_report", report)
    return report


def say(kind, words):
    from support import anthropic, responses
    if kind == "anthropic":
        return anthropic.message(anthropic.say(words))
    return responses.message(responses.say(words)) if kind == "openai_responses" else text(words)


def answer_by(chat, decide):
    """Answers each request with what `decide` makes of its body."""
    bodies = []

    def reply(request):
        bodies.append(request.body)
        return say(chat.kind, decide(request.body))
    chat.provider.answer_with(reply)
    return bodies


def test_a_changed_paragraph_is_found_among_others(chat):
    first = chat.provider.requests[0].raw
    chat.write("prompt/15-voice.md", "Write long sentences.\n\nNo tables.\n")
    chat.write("prompt/95-last.md", "Ask if anything is unclear.\n")
    chat.write("prompt/97-new.md", "Be kind.\n")
    chat.skill("release", "Makes a bad release.")
    bodies = answer_by(chat, lambda body: "a list" if "No tables" in system_of(body) else "an otter")
    report = bisect(chat, "--check", "otter")
    cause, = report["causes"]
    assert (cause["cause"], cause["name"], cause["before"], cause["after"]) == ("module", "15-voice", "No lists.", "No tables."), report
    assert report["differences"] == 5 and report["result"] == "found" and report["not_restored"] is None
    assert report["runs"] == report["requests"] == len(bodies) and report["error"] < 0.05
    # The first runs have the recorded input, byte for byte.
    again = [request.raw for request in chat.provider.requests[2:]]
    assert again[0] == first and again.count(first) == report["recorded"]["runs"]
    output = chat.run("bisect", "c/int_001", "--check", "otter")[1]
    assert "module 15-voice has changed" in output and "- No lists." in output and re.search(r"sure to 9\d\.\d %", output), output


def test_a_tool_a_parameter_and_the_model(openai_chat):
    chat = openai_chat
    config = {**chat.config, "tools": {"deny": ["read_file"]}, "model": "one/other", "models": {"one/other": {"context_window": 200_000}}}
    answer_by(chat, lambda body: "otter" if any(tool["function"]["name"] == "read_file" for tool in body["tools"]) else "heron")
    cause, = bisect(chat, "--check", "^otter$", config=config)["causes"]
    assert (cause["cause"], cause["name"], cause["after"]) == ("tool", "read_file", "")
    bodies = answer_by(chat, lambda body: "otter" if body["model"] == "scripted" else "heron")
    cause, = bisect(chat, "--check", "^otter$", config=config)["causes"]
    assert (cause["cause"], cause["before"], cause["after"]) == ("model", '"scripted"', '"other"')
    assert {body["model"] for body in bodies} == {"scripted", "other"}


def test_sixty_four_changes_and_a_model_that_is_often_wrong(tmp_path):
    chat = Recorded(tmp_path / "home", "openai")
    try:
        for number in range(0, 64, 2):
            chat.write(f"prompt/96-{number:02}.md", f"Rule {number}.\n\nRule {number + 1}.\n")
        dice = random.Random(7)
        bodies = answer_by(chat, lambda body: "heron" if ("Rule 41." in system_of(body)) == (dice.random() < 0.8) else "otter")
        report = bisect(chat, "--check", "otter", "--jobs", "1")
        assert report["result"] == "found" and report["differences"] == 64
        assert [(each["name"], each["after"]) for each in report["causes"]] == [("96-40", "Rule 41.")]
        assert len(bodies) == report["requests"] < 300
    finally:
        chat.provider.close()


def test_ends_that_do_not_differ(openai_chat):
    chat = openai_chat
    answer_by(chat, lambda body: "otter")
    assert bisect(chat, "--check", "otter", status=1)["result"] == "nothing_differs"
    assert len(chat.provider.requests) == 2
    chat.write("prompt/95-last.md", "Ask.\n")
    assert bisect(chat, "--check", "otter", status=1)["result"] == "current_passes"
    assert bisect(chat, "--check", "heron", status=1)["result"] == "recorded_fails"
    # Without a check the calls of the record must come again.
    assert bisect(chat, status=1)["result"] == "recorded_fails"
    checks = chat.home.path / "checks.json"
    checks.write_text('{"answer": {"equals": "otter"}}')
    assert bisect(chat, "--check", checks, status=1)["result"] == "current_passes"


def test_what_it_costs_is_limited_and_failures_end_it(openai_chat):
    chat = openai_chat
    chat.write("prompt/95-last.md", "Ask.\n")
    answer_by(chat, lambda body: "otter")
    priced = {**chat.config, "models": {"one/scripted": {"context_window": 200_000, "input_price_per_mtok": 1000, "output_price_per_mtok": 1000}}}
    status, output, messages = chat.run("bisect", "c/int_001", "--check", "otter", "--max-cost", "0.02", "--jobs", "1", config=priced)
    assert (status, output) == (1, "") and "--max-cost is reached" in messages and "nothing was found with 2 requests" in messages, messages
    assert chat.run("bisect", "c/int_001", "--check", "otter", "--max-cost", "1")[0] == 2  # it has no price
    chat.provider.answer_with(lambda request: failure(500))
    status, output, messages = chat.run("bisect", "c/int_001", "--check", "otter")
    assert (status, output) == (1, "") and "one/scripted" in messages, messages
    other = {**chat.config, "model": "offline"}
    status, output, messages = chat.run("bisect", "c/int_001", config=other)
    assert status in (1, 2) and "another provider" in messages, messages


def test_a_turn_of_an_exported_chat(openai_chat):
    chat = openai_chat
    document = chat.home.path / "trip.json"
    document.write_text(reprise(chat.home, "export", "c", "--data-dir", chat.home.data)[1])
    chat.write("prompt/15-voice.md", "Write short sentences.\n\nSing.\n")
    answer_by(chat, lambda body: "La la." if "Sing." in system_of(body) else "Written.")
    status, output, messages = chat.run("bisect", f"{document}/int_001", "--check", "Written", "--json")
    report = json.loads(output)
    assert (status, messages) == (0, "") and report["result"] == "found", (output, messages)
    assert [each["name"] for each in report["causes"]] == ["15-voice"] and report["turn"] == "trip/int_001"


@pytest.fixture
def two_turns(openai_chat):
    """Turn 1 says "first", and turn 2 says "otter", or "heron" since the prompt has changed."""
    chat = openai_chat
    chat.provider.plan(text("otter"))
    server = Server(chat.home, config=chat.config, arguments=["--prompt-dir", chat.prompt])
    server.client.turn("c", "Which one?")
    server.close()
    chat.write("prompt/95-last.md", "Be rude.\n")
    answer_by(chat, lambda body: "heron" if "Be rude" in system_of(body) else "otter")
    return chat


@pytest.mark.parametrize("name", ["2", "int_002"])
def test_a_file_of_checks_has_those_of_the_turn(two_turns, name):
    checks = two_turns.home.path / "checks.json"
    checks.write_text(json.dumps({"turns": {"1": {"answer": {"equals": "Written."}}, name: {"answer": {"equals": "otter"}}}}))
    status, output, messages = two_turns.run("bisect", "c/int_002", "--check", checks, "--json")
    assert (status, messages) == (0, "") and json.loads(output)["result"] == "found", (output, messages)


@pytest.mark.parametrize(("checks", "said"), [
    ({"turns": {"1": {"answer": {"equals": "Written."}}}}, "checks.json: there is no check for int_002"), ({"at_least": "1/2"}, "checks.json: there is no check for int_002"),
    ({"answer": {"equals": "otter"}, "turns": {"77": {"answer": {"equals": "otter"}}}}, "checks.json: /turns/77: the chat has no such turn")])
def test_checks_of_other_turns_cost_nothing(two_turns, checks, said):
    asked = len(two_turns.provider.requests)
    (two_turns.home.path / "checks.json").write_text(json.dumps(checks))
    status, output, messages = two_turns.run("bisect", "c/int_002", "--check", two_turns.home.path / "checks.json")
    assert (status, output) == (2, "") and said in messages and len(two_turns.provider.requests) == asked, messages


@pytest.mark.parametrize("exported", [False, True])
def test_a_command_of_the_checks_runs_in_their_folder(two_turns, exported):
    chat = two_turns
    if not sandbox_works():
        pytest.skip("no sandbox")
    chat.write("checks/is_otter.sh", "#!/bin/sh\ngrep -q '\"content\":\"otter\"'\n")
    chat.write("checks/k.json", '{"command": ["./is_otter.sh"]}')
    (chat.home.path / "checks/is_otter.sh").chmod(0o755)
    what = "c"
    if exported:
        what = chat.home.path / "suite/c"
        assert reprise(chat.home, "export", "c", "-o", what.parent, "--data-dir", chat.home.data)[0] == 0
    status, output, messages = chat.run("bisect", f"{what}/int_002", "--check", chat.home.path / "checks/k.json", "--json")
    assert (status, messages) == (0, "") and json.loads(output)["result"] == "found", (output, messages)


def test_why_the_recorded_input_does_not_pass_is_said(two_turns):
    arguments = ["bisect", "c/int_002", "--check", "^heron$"]
    report = json.loads(two_turns.run(*arguments, "--json")[1])
    schemas.check("bisect_report", report)
    assert report["result"] == "recorded_fails" and report["problem"].startswith("answer: the answer does not match"), report
    assert 'the first that does not: answer: the answer does not match "^heron$": "otter"' in two_turns.run(*arguments)[1]


def test_wrong_arguments_are_named(openai_chat):
    chat = openai_chat
    (chat.home.path / "bad.json").write_text("{")
    for arguments, status, message in [
            ([], 2, "WHAT"), (["c"], 2, "bisect takes one turn: c/INTERACTION"), (["nope/int_001"], 1, "nope"), (["c/int_009"], 1, "int_009"), (["c\x1b/int_001"], 2, "<U+001B>"),
            (["c/int_001", "--check", "("], 2, "no RE2 pattern"), (["c/int_001", "--check", "checks.jsn"], 2, "there is no file checks.jsn; the pattern would be (?:checks.jsn)"),
            (["c/int_001", "--check", chat.home.path / "checks"], 2, "there is no file"), (["c/int_009", "--check", "(?:checks.jsn)"], 1, "int_009"), (["c/int_009", "--check", "a/b|c"], 1, "int_009"), (["c/int_001", "--check", chat.home.path / "bad.json"], 2, "bad.json"),
            (["c/int_001", "--jobs", "0"], 2, "--jobs"), (["c/int_001", "--max-cost", "-1"], 2, "--max-cost")]:
        got, output, messages = chat.run("bisect", *arguments)
        assert (got, output) == (status, "") and message in messages and messages.count("\n") == 1 and "\x1b" not in messages, (arguments, got, messages)
    assert len(chat.provider.requests) == 2


def test_a_turn_without_requests(make_server, make_home):
    server = make_server(home=make_home(), plain=True)
    server.client.turn("c", "hello")
    server.stop()
    status, output, messages = reprise(server.home, "bisect", "c/int_001", "--plain", "--data-dir", server.home.data, "--workspace", server.home.workspace)
    assert (status, output) == (1, "") and "no request to a model is on record" in messages, messages
