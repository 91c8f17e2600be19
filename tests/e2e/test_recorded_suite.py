"""The chats of tests/data/suite, one of every kind: the program of today tells models the same, and a fault of it is seen.

The faults are planted in the requests on record, with the right digest: what the program sends then differs from them as it would if the fault was its own.
"""
import hashlib
import json
import shutil

import pytest
from support.make_suite import CHATS, SUITE, command, update
from support.server import Home, reprise


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home in which the suite's documents are stored chats."""
    made = Home(tmp_path_factory.mktemp("recorded") / "home")
    status, _, messages = reprise(made, "import", *sorted(SUITE / f"{name}.json" for name in CHATS if not (SUITE / name).is_dir()), "--data-dir", made.data)
    assert status == 0, messages
    return made


def report(home, suite=SUITE, **more):
    status, output, messages = reprise(home, *command(home, suite, "--json", **more)[1:])
    assert messages == "", messages
    return status, json.loads(output)


def content(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_program_of_today_tells_models_the_same(home, provider):
    before = content(SUITE)
    status, found = report(home, base=provider.url.removesuffix("/v1"))
    assert not provider.requests and not provider.listings, "nothing is asked of any server"
    changed = [f"{each['chat']}/{each['turn']}: {problem}" for each in found["turns"] for problem in each["problems"]]
    assert status == 0, "\n".join(["if this is meant: python3 tests/e2e/support/make_suite.py --update", *changed])
    assert {each["chat"] for each in found["turns"]} == set(CHATS) and len(CHATS) == 30, "make_suite.py NAME records one that is missing"
    assert not [each for each in found["turns"] if each["notes"]], "all is on record, and all is checked"
    assert content(SUITE) == before and sum(map(len, before.values())) < 1_500_000
    assert not [path for path, words in before.items() if b"sk-canary" in words or b"/root" in words or b"/home/" in words]


# --- planted faults ---------------------------------------------------------------------------------------------------

def tool(body, name):
    """The tool's own members, whichever interface the request is for."""
    found = next(each for each in body["tools"] if name in (each.get("name"), each.get("function", {}).get("name")))
    return found.get("function", found)


def schema(body, name):
    one = tool(body, name)
    return one.get("parameters") or one["input_schema"]


def drop_tool(body, name):
    body["tools"] = [each for each in body["tools"] if name not in (each.get("name"), each.get("function", {}).get("name"))]


def swap(several, at, other):
    several[at], several[other] = several[other], several[at]


def unmark(value):
    """Removes all marks for the provider's cache."""
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        unmark(each)
    if isinstance(value, dict):
        value.pop("cache_control", None)


def said(body, role, at=-1):
    """The message of that role, counted among its like."""
    return [each for each in body.get("messages") or body["input"] if each.get("role") == role][at]


def replace(holder, member, old, new):
    assert old in holder[member], holder
    holder[member] = holder[member].replace(old, new)


def having(several, member, words=""):
    return next(each for each in several if each.get(member) and words in str(each[member]))


def block(body, kind):
    return next(each for message in body["messages"] for each in message["content"] if each["type"] == kind)


FAULTS = {
    "another word in a tool's description": ("files_claude", lambda body: replace(tool(body, "read_file"), "description", "workspace", "folder")),
    "a tool is missing": ("files_responses", lambda body: drop_tool(body, "search_files")),
    "a tool too many": ("rejected", lambda body: body["tools"].append({"type": "function", "function": {"name": "more", "description": "More."}})),
    "a tool has another name": ("tasks", lambda body: tool(body, "manage_tasks").update(name="tasks")),
    "a tool has another parameter": ("plain", lambda body: schema(body, "write_file")["properties"].update(mode={"type": "string"})),
    "tools in another order": ("together", lambda body: swap(body["tools"], 2, 3)),
    "another limit of an answer": ("thinking", lambda body: body.update(max_tokens=4096)),
    "another effort": ("responses_turns", lambda body: body["reasoning"].update(effort="high")),
    "a parameter too many": ("regenerated", lambda body: body.update(temperature=0.5)),
    "no marks for the cache": ("cut", unmark),
    "another word in the instructions": ("failed", lambda body: replace(body["messages"][0], "content", "accurate", "quick")),
    "more instructions": ("mcp", lambda body: body["messages"][0].update(content=body["messages"][0]["content"] + "\n\nNever stop.")),
    "messages in another order": ("branch", lambda body: swap(body["messages"], 1, 2)),
    "a message too many": ("cancelled", lambda body: body["messages"].insert(1, {"role": "user", "content": "Hello?"})),
    "messages are missing": ("resumed", lambda body: body["messages"].__delitem__(slice(2, 4))),
    "a result is cut by one byte": ("question", lambda body: said(body, "tool").update(content=said(body, "tool")["content"][:-1])),
    "a call with other arguments": ("hook", lambda body: replace(said(body, "assistant")["tool_calls"][0]["function"], "arguments", "otter", "heron")),
    "the call that was made, not the one that was approved": ("approved", lambda body: replace(said(body, "tool"), "content", "herons.txt", "heron.txt")),
    "another summary": ("summary", lambda body: replace(having(body["messages"], "content", "They talked."), "content", "They talked.", "They sang.")),
    "a cleared result is sent": ("cleared", lambda body: said(body, "tool", 0).update(content="A line of part 0.\n" * 150)),
    "thinking without its signature": ("thinking", lambda body: block(body, "thinking").update(signature="")),
    "a provider's own members are lost": ("extras", lambda body: having(body["messages"], "reasoning_details").pop("reasoning_details")),
    "a search comes back changed": ("web_search", lambda body: block(body, "web_search_tool_result")["content"][0].update(title="A heron")),
    "a sub-agent's answer is another": ("sub_agents", lambda body: replace(said(body, "tool"), "content", "otter", "heron")),
}


def plant(home, suite, name, change):
    """Changes the last request of a chat in the suite, and stores it with the right digest."""
    file = suite / f"{name}.json"
    document = json.loads(file.read_text())
    turn = document["interactions"][-1]
    sent = turn["record"]["requests"][-1]
    status, told, messages = reprise(home, "cat", f"{name}/{turn['id']}/requests/{len(turn['record']['requests']) - 1}", "--data-dir", home.data)
    assert status == 0, messages
    body = json.loads(told)
    change(body)
    text = json.dumps(body, ensure_ascii=False)
    sent.update(body=[text], bytes=len(text.encode()), digest="sha256:" + hashlib.sha256(text.encode()).hexdigest())
    file.write_text(json.dumps(document))
    return file


@pytest.fixture
def suite(tmp_path):
    return shutil.copytree(SUITE, tmp_path / "suite")


@pytest.mark.parametrize("what", FAULTS)
def test_a_planted_fault_is_seen(home, suite, what):
    name, change = FAULTS[what]
    file = plant(home, suite, name, change)
    status, found = report(home, suite)
    failed = [each for each in found["turns"] if each["state"] == "failed"]
    assert status == 1 and [each["chat"] for each in failed] == [name], [(each["chat"], each["problems"]) for each in failed]
    assert not [each for each in failed[0]["problems"] if "add up" in each or "differs at event" in each], "the record is whole: what it says is another"
    # The events alone do not show it.
    planted = f"planted-{list(FAULTS).index(what)}"
    assert reprise(home, "import", file, "--as", planted, "--data-dir", home.data)[0] == 0
    status, output, messages = reprise(home, "replay", planted, "--data-dir", home.data)
    assert status == 0, (output, messages)


def test_a_request_that_is_stored_in_another_form_is_no_fault(home, suite):
    for name in sorted({name for name, _ in FAULTS.values()}):
        plant(home, suite, name, lambda body: None)
    assert report(home, suite)[0] == 0


def test_a_change_that_is_meant_is_accepted_and_another_one_is_not(home, suite):
    plant(home, suite, *FAULTS["another word in a tool's description"])
    assert update(suite) == 0 and report(home, suite)[0] == 0
    assert {path.name for path in suite.glob("*.accepted.json")} == {"files_claude.accepted.json", *(path.name for path in SUITE.glob("*.accepted.json"))}
    plant(home, suite, "files_claude", lambda body: drop_tool(body, "read_file"))
    assert report(home, suite)[0] == 1
