"""Sub-agents from files: found and allowed as commands are, with their own instructions, tools, model and mode; they may write."""
import time

import pytest
from support.provider import Gate, call, text, tools
from support.timing import SLACK
from test_instructions import listed, system_of, trust

HEAD = "---\ndescription: Writes the docs\n---\n"


def agent(folder, name="docs", content=HEAD + "Write short sentences."):
    place = folder / ".reprise" / "agents"
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.md").write_text(content)
    return place / f"{name}.md"


def delegate(name="docs", question="Write a.txt", call_id="r"):
    return call("research", {"question": question, "agent": name}, call_id)


def write(path="a.txt", content="hello", call_id="w"):
    return call("write_file", {"path": path, "content": content}, call_id)


@pytest.fixture
def world(make_server, make_home, provider):
    """A server with the allowed agent "docs"."""
    def make(content=HEAD + "Write short sentences.", name="docs", **config):
        home = make_home()
        trust(home, agent(home.workspace, name, content))
        return make_server(provider, home, config=config)
    return make


def description_of(request):
    return next(t["function"]["description"] for t in request.body["tools"] if t["function"]["name"] == "research")


def test_an_agent_writes_and_a_person_is_asked(world, provider):
    server = world()
    client, workspace = server.client, server.home.workspace
    provider.plan(tools(delegate()), tools(write()), text("I wrote a.txt."), text("done"))
    stream = client.start("c", "go")
    asked = stream.until("approval_required")
    assert (asked["call_id"], asked["agent"], asked["tool_name"]) == ("r/w", "docs", "write_file")
    assert "sub-agent docs" in asked["reason"] and not (workspace / "a.txt").exists()
    waiting, = client.get("/approvals").expect(200, "approvals").json["approvals"]
    assert (waiting["agent"], waiting["call_id"], waiting["approval_id"]) == ("docs", "r/w", asked["approval_id"])
    assert client.get(f"/approvals/{asked['approval_id']}/change").expect(200).json["after"] == "hello"
    client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.finish()
    assert (workspace / "a.txt").read_text() == "hello"
    assert stream.one("approved")["call_id"] == "r/w"
    assert stream.one("tool_result")["tool_output"] == "I wrote a.txt."
    # It knows its instructions and the folder, and nothing of the conversation; the model is told of it.
    first, own, again, last = provider.requests
    assert "\n- docs: Writes the docs" in description_of(first)
    assert "Write short sentences." in system_of(own) and str(workspace) in system_of(own)
    assert own.conversation[0] == {"role": "user", "content": "Write a.txt"} and len(own.conversation) == 1
    offered = {t["function"]["name"] for t in own.body["tools"]}
    assert {"read_file", "write_file", "run_shell"} <= offered and not offered & {"research", "ask_human", "update_plan"}
    # What it changed belongs to its call, and is taken back with the turn.
    changed, = stream.all("files_changed")
    assert changed["call_id"] == "r" and [c["path"] for c in changed["changes"]] == ["a.txt"]
    assert client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]
    audited = {(e["event"], e["tool_name"], e["call_id"], e["of_call"]) for e in client.get("/audit").expect(200).json["entries"] if "of_call" in e}
    assert audited == {("approved", "write_file", "w", "r"), ("started", "write_file", "w", "r"), ("ended", "write_file", "w", "r")}
    provider.plan(text("nothing"))
    client.edit("c", "int_001", "do nothing", files="restore").finish()
    assert not (workspace / "a.txt").exists()


def test_a_refusal_and_a_grant(world, provider):
    server = world()
    client = server.client
    shell = lambda call_id: call("run_shell", {"command": "echo hi"}, call_id)  # noqa: E731
    provider.plan(tools(delegate()), tools(write()), text("It was refused."), text("ok"))
    stream = client.start("c", "go")
    asked = stream.until("approval_required")
    client.approve("c", "int_001", asked["approval_id"], False, feedback="not there").expect(200)
    stream.finish()
    assert stream.one("rejected")["call_id"] == "r/w" and not (server.home.workspace / "a.txt").exists()
    assert "not there" in provider.requests[2].last["content"]
    # A grant for the chat that was given to a sub-agent holds for the chat.
    provider.plan(tools(delegate()), tools(shell("s")), text("ran"), tools(shell("t")), text("ok"))
    stream = client.start("c", "go")
    asked = stream.until("approval_required")
    client.approve("c", "int_002", asked["approval_id"], scope="chat").expect(200)
    stream.finish()
    assert len(stream.all("approval_required")) == 1 and [g["tool_name"] for g in client.get("/chats/c/grants").expect(200).json["grants"]] == ["run_shell"]


MODES = [("ask", "approve_all", True), ("read_only", "approve_all", True), ("approve_all", "ask", True), ("approve_all", "approve_all", False), ("deny_all", "approve_all", None),
         ("approve_all", "deny_all", None), ("auto", "approve_all", False), ("approve_all", "auto", False), ("approve_all", "read_only", True)]


@pytest.mark.parametrize("own, chat, asks", MODES)
def test_a_file_makes_nothing_looser(world, provider, own, chat, asks):
    server = world(f"---\ndescription: d\nmode: {own}\n---\nDo it.", approval_mode=chat)
    provider.plan(tools(delegate()), tools(write()), text("over"), text("ok"))
    stream = server.client.start("c", "go")
    if asks:
        server.client.approve("c", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    assert bool(stream.all("approval_required")) == bool(asks)
    assert (server.home.workspace / "a.txt").exists() == (asks is not None)


def test_its_tools_and_its_model(world, provider):
    server = world("---\ndescription: d\ntools: [read_file, 'list_*', no_such]\nmodel: test/other\n---\nLook.")
    provider.plan(tools(delegate()), tools(write()), text("looked"), text("ok"))
    stream = server.client.turn("c", "go")
    own = provider.requests[1]
    assert own.body["model"] == "other" and provider.requests[0].body["model"] == "scripted"
    assert {t["function"]["name"] for t in own.body["tools"]} == {"read_file", "list_files", "list_chat_files"}
    refused, = [e["event"] for e in stream.all("nested") if e["event"]["type"] == "TOOL_RESULT"]
    assert refused["is_error"] and not (server.home.workspace / "a.txt").exists()
    assert stream.one("tool_result")["tool_output"].endswith("(The agent names tools that it cannot have here: no_such)")


@pytest.mark.parametrize("content, told", [
    ("---\ndescription: d\nmodel: nowhere/x\n---\nGo.", "nowhere"),
    ("---\ndescription: d\nisolation: worktree\n---\nGo.", '"isolation"'),
    ("---\ndescription: d\nmode: everything\n---\nGo.", '"everything"'),
    ("---\ndescription: d\ntools: []\n---\nGo.", "tools"),
    ("---\ndescription: d\ntools: {a: b}\n---\nGo.", "tools"),
    ("---\ndescription: d\nmodel: ''\n---\nGo.", "empty model"),
    ("---\ntools: read_file\n---\nGo.", "no description"),
    ("Go.", "no description"),
    ("---\ndescription: d\n---\n \n", "no instructions"),
    ("---\ndescription: d\n", "second line ---"),
    ("---\ndescription: d\ndescription: e\n---\nGo.", "more than one"),
])
def test_what_is_not_understood_is_said(world, provider, content, told):
    server = world(content)
    provider.plan(tools(delegate()), text("ok"))
    result = server.client.turn("c", "go").one("tool_result")
    assert result["is_error"] and "docs was not started" in result["tool_output"] and told in result["tool_output"]
    assert len(provider.requests) == 2
    entry, = listed(server)
    assert entry["kind"] == "agent" and (entry["state"] == "unusable") == ("nowhere" not in content)
    assert ("\n- docs" in description_of(provider.requests[0])) == ("nowhere" in content)


def test_files_that_are_not_used(make_server, make_home, provider):
    home = make_home()
    outside = home.path / "outside.md"
    outside.write_text(HEAD + "Go.")
    new = agent(home.workspace, "new")
    large = agent(home.workspace, "large", HEAD + "x" * (64 << 10))
    binary = agent(home.workspace, "binary")
    binary.write_bytes(HEAD.encode() + b"\xff")
    link = agent(home.workspace, "link")
    link.unlink()
    link.symlink_to(outside)
    changed = agent(home.workspace, "changed")
    trust(home, changed)
    changed.write_text(HEAD + "Obey.")
    server = make_server(provider, home)
    words = {"new": f"reprise trust {new}", "changed": f"reprise trust {changed}", "large": str(large), "binary": "UTF-8", "link": "leads out", "none": "no agent none", "../docs": "no agent"}
    provider.plan(tools(*(delegate(name, call_id=f"r{i}") for i, name in enumerate(words))), text("ok"))
    results = server.client.turn("c", "go").all("tool_result")
    for result, (name, said) in zip(results, words.items(), strict=True):
        assert result["is_error"] and f"{name} was not started" in result["tool_output"] and said in result["tool_output"], result
    assert "With `agent`" not in description_of(provider.requests[0]) and len(provider.requests) == 2
    assert {e["state"] for e in listed(server)} == {"new", "changed", "unusable"}


def test_the_nearest_counts_and_ones_own_need_no_consent(make_server, make_home, provider):
    home = make_home()
    folder = home.config / "reprise" / "agents"
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(mode=0o700)
    for name in ("docs", "mine"):
        (folder / f"{name}.md").write_text("---\ndescription: my own\n---\nBe mine.")
        (folder / f"{name}.md").chmod(0o600)
    server = make_server(provider, home)
    provider.plan(tools(delegate("mine")), text("yes"), text("ok"))
    assert server.client.turn("c", "go").one("tool_result")["tool_output"] == "yes"
    assert "Be mine." in system_of(provider.requests[1]) and "- docs: my own" in description_of(provider.requests[0])
    trust(home, agent(home.workspace))
    provider.plan(tools(delegate()), text("yes"), text("ok"))
    server.client.turn("c", "go")
    assert "short sentences" in system_of(provider.requests[4]) and "- docs: Writes the docs" in description_of(provider.requests[3])
    assert "nearer" in next(e["problem"] for e in listed(server) if e["state"] == "unusable")


def test_the_list_for_the_model_is_bounded(make_server, make_home, provider):
    home = make_home()
    trust(home, *(agent(home.workspace, f"agent-{i:02}", f"---\ndescription: {'d' * 100}\n---\nGo.") for i in range(60)))
    server = make_server(provider, home)
    provider.plan(text("ok"))
    server.client.turn("c", "go")
    said = description_of(provider.requests[0])
    assert said.count("\n- agent-") == 32 and "(28 more are left out)" in said and len(said) < 5000


def test_two_write_beside_each_other(world, provider):
    server = world(approval_mode="approve_all")
    gates = {"one": Gate(), "two": Gate()}

    def reply(request):
        task = request.conversation[0]["content"]
        last = request.conversation[-1]
        if task == "go":
            return text("done") if last["role"] == "tool" else tools(delegate(question="one", call_id="r1"), delegate(question="two", call_id="r2"))
        return text("wrote " + task, gates[task]) if last["role"] == "tool" else tools(write(f"{task}.txt", task))

    provider.answer_with(reply)
    stream = server.client.start("c", "go")
    for gate in gates.values():  # both have written, and neither has answered
        gate.wait_reached()
    assert sorted(p.name for p in server.home.workspace.glob("*.txt")) == ["one.txt", "two.txt"]
    for gate in gates.values():
        gate.release()
    stream.finish()
    assert [(r["id"], r["tool_output"]) for r in stream.all("tool_result")] == [("r1", "wrote one"), ("r2", "wrote two")]
    changes = {(e["call_id"], c["path"]) for e in stream.all("files_changed") for c in e["changes"]}
    assert changes == {("r1", "one.txt"), ("r2", "two.txt")}


def test_questions_of_two_at_once_are_told_apart(world, provider):
    server = world()
    client = server.client

    def reply(request):
        task, last = request.conversation[0]["content"], request.conversation[-1]
        if task == "go":
            return text("done") if last["role"] == "tool" else tools(delegate(question="one", call_id="r1"), delegate(question="two", call_id="r2"))
        return text(last["content"][:40]) if last["role"] == "tool" else tools(write(f"{task}.txt", task))

    provider.answer_with(reply)
    stream = client.start("c", "go")
    asked = {e["call_id"]: e["approval_id"] for e in (stream.until("approval_required"), stream.until("approval_required"))}
    assert set(asked) == {"r1/w", "r2/w"}
    assert client.interaction("c", "int_001")["status"] == "WAITING_APPROVAL"
    client.approve("c", "int_001", asked["r2/w"]).expect(200)
    client.approve("c", "int_001", asked["r1/w"], False).expect(200)
    stream.finish()
    assert [p.name for p in server.home.workspace.glob("*.txt")] == ["two.txt"]
    assert client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]


def test_a_cancel_while_it_asks(world, provider):
    server = world()
    provider.plan(tools(delegate()), tools(write()))
    stream = server.client.start("c", "go")
    stream.until("approval_required")
    began = time.monotonic()
    server.client.cancel("c", "int_001").expect(200)
    assert stream.until("cancelled").at - began < 1 * SLACK
    stream.finish("CANCELLED")
    assert not server.client.get("/approvals").expect(200).json["approvals"] and not (server.home.workspace / "a.txt").exists()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_server_that_ends_while_it_asks(world, make_server, provider, end):
    server = world()
    client = server.client
    provider.plan(tools(delegate()), tools(write()))
    stream = client.start("c", "go")
    asked = stream.until("approval_required")
    getattr(server, end)()
    server = make_server(provider, server.home)
    stored = server.client.interaction("c", "int_001")
    assert stored["status"] == {"stop": "CANCELLED", "kill": "FAILED"}[end]
    assert not server.client.get("/approvals").expect(200).json["approvals"]
    server.client.approve("c", "int_001", asked["approval_id"]).error(400, "already_processed")
    # It may have changed something, so it does not run again by itself.
    if end == "kill":
        provider.plan(text("I shall see."))
        server.client.stream("POST", "/chats/c/interactions/int_001/resume").finish()
        assert "not known" in provider.requests[-1].last["content"]
    assert not (server.home.workspace / "a.txt").exists()


# --- clients ---------------------------------------------------------------------------------------------------------
def test_on_the_page(world, provider, browse):
    server = world()
    provider.plan(tools(delegate()), tools(write()), text("I wrote it."), text("done"))
    page = browse(server)
    page.say("go")
    assert "sub-agent docs" in page.one("approval-card").text
    page.press("approve")
    page.until_text("answer", "done")
    states = {card.get_attribute("data-tool"): card.get_attribute("data-state") for card in page.all("tool-card")}
    assert states["research"] == states["write_file"] == "done"
    assert (server.home.workspace / "a.txt").exists()


def test_in_an_editor(world, provider):
    from support.acp import Agent
    server = world()
    agent = Agent(server.home, "--url", f"http://127.0.0.1:{server.port}")
    try:
        session = agent.new(server.home.workspace)
        provider.plan(tools(delegate()), tools(write()), text("I wrote it."), text("done"))
        number = agent.prompt(session, "go")
        request = agent.asked()
        call_id = request["params"]["toolCall"]["toolCallId"]
        agent.choose(request, "allow_once")
        assert agent.answer(number)["stopReason"] == "end_turn"
        states = [u["status"] for u in agent.updates if u.get("toolCallId") == call_id and "status" in u]
        assert states[-1] == "completed" and "in_progress" in states
    finally:
        agent.close()
