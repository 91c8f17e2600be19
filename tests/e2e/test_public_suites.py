"""Three agents' tests that others have published, written anew as suites (tests/data/suites): docs/testing.md says what of each can be checked.

- trajectory: LangChain's agentevals compares the calls of an agent with those of a reference.
- flag: Inspect's capture-the-flag tasks look for a flag in the answer, with a limit of messages, in several epochs.
- support: promptfoo's examples assert JSON, words, cost and time of an answer, by a program, and by a model.
"""
import json

import pytest
from support.make_suite import PUBLIC, SUITES, UNREACHABLE, command
from support.provider import call, text, tools
from support.server import Home, reprise, sandbox_works

GOOD = {
    "trajectory": [("travel__get_weather", {"city": "San Francisco"}), ("write_file", {"path": "plan.md", "content": "# Museum\n"}), "Fog, so a museum."],
    "flag": [("search_files", {"pattern": "flag\\{"}), "It is flag{herons-eat-fish}."],
    "support": [("calculator", {"expression": "3 * 19.90"}), '{"order": 17, "total": 59.7, "reply": "Sorry. 59.70 it is."}'],
}
BAD = {
    "calls in another order": ("trajectory", [GOOD["trajectory"][1], GOOD["trajectory"][0], "Fog."], "calls:"),
    "a call too many": ("trajectory", [*GOOD["trajectory"][:2], ("list_files", {}), "Fog."], "max: the turn took 3 calls"),
    "a call that must not be": ("trajectory", [*GOOD["trajectory"][:2], ("run_shell", {"command": "ls"}), "Fog."], "never: the turn"),
    "another argument": ("trajectory", [("travel__get_weather", {"city": "Boston"}), GOOD["trajectory"][1], "Fog."], "calls:"),
    "no flag": ("flag", ["There is none."], "answer: the answer does not contain"),
    "too many messages": ("flag", [("find_files", {"pattern": "**/*"}), GOOD["flag"][0], ("list_files", {}), "flag{herons-eat-fish}"], "max: the turn took 4 rounds"),
    "no JSON": ("support", [GOOD["support"][0], "59.70"], "answer:"),
    "another total": ("support", [GOOD["support"][0], '{"order": 17, "total": 60, "reply": "Sorry."}'], "command: python3 exits with 1: the total is 60"),
    "a word that must not occur": ("support", [GOOD["support"][0], '{"order": 17, "total": 59.7, "reply": "Sorry, as an AI I cannot."}'], "a word that must not occur"),
    "the judge says no": ("support", [GOOD["support"][0], '{"order": 17, "total": 59.7, "reply": "59.70."}'], "judge: chat/judge says"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return Home(tmp_path_factory.mktemp("public") / "home")


def answer_by(steps):
    """Makes these calls, then gives the answer; the judge wants an apology."""
    def answer(request):
        if request.body["model"] == "judge":
            return text("yes" if "Sorry" in request.last["content"] else "no, it does not")
        told = sum(each["role"] == "tool" for each in request.body["messages"])
        step = steps[min(told, len(steps) - 1)]
        return text(step) if isinstance(step, str) else tools(call(*step, f"call_{told}"))
    return answer


def run(home, name, *arguments, base=UNREACHABLE):
    status, output, messages = reprise(home, *command(home, SUITES / name, "--json", *arguments, base=base)[1:])
    assert messages == "", messages
    [turn] = json.loads(output)["turns"]
    assert (turn["state"] == "failed") == (status == 1), (status, turn)
    return turn


def test_each_has_a_suite():
    assert {path.name for path in SUITES.iterdir()} == set(PUBLIC) == set(GOOD)


@pytest.mark.parametrize("name", GOOD)
def test_the_record_passes_without_a_model(home, name):
    turn = run(home, name)
    assert turn["state"] == "passed", turn["problems"] + ["if this is meant: python3 tests/e2e/support/make_suite.py --update"]


@pytest.mark.skipif(not sandbox_works(), reason="no sandbox here")
@pytest.mark.parametrize("name", GOOD)
def test_a_good_agent_passes(home, provider, name):
    provider.answer_with(answer_by(GOOD[name]))
    turn = run(home, name, "--live", "2", base=provider.url.removesuffix("/v1"))
    assert turn["state"] == "passed" and turn["notes"][0].startswith("2 of 2 runs passed"), turn


@pytest.mark.skipif(not sandbox_works(), reason="no sandbox here")
@pytest.mark.parametrize("what", BAD)
def test_a_bad_agent_fails_and_the_report_says_why(home, provider, what):
    name, steps, said = BAD[what]
    provider.answer_with(answer_by(steps))
    turn = run(home, name, "--live", "2", base=provider.url.removesuffix("/v1"))
    assert turn["state"] == "failed" and said in turn["problems"][1], turn["problems"]
