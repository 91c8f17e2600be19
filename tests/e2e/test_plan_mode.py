"""The mode "plan": nothing is changed before a person has approved a plan, with the mode in which the work then goes on."""
import pytest
from support.provider import call, text, tools
from test_approvals import set_mode


def present(plan="1. Write a.txt", call_id="p"):
    return call("present_plan", {"plan": plan}, call_id)


def write(path="a.txt", call_id="w"):
    return call("write_file", {"path": path, "content": "hello"}, call_id)


def offered(request):
    return {t["function"]["name"] for t in request.body["tools"]}


@pytest.fixture
def planning(make_server, provider):
    return make_server(provider, config={"approval_mode": "plan"})


def mode_of(client, chat="c"):
    return client.get(f"/chats/{chat}").expect(200, "chat_history").json.get("approval_mode")


@pytest.mark.parametrize("mode, asks", [(None, True), ("ask", True), ("read_only", True), ("auto", False), ("approve_all", False)])
def test_a_plan_is_approved_with_a_mode_and_the_work_goes_on(planning, provider, mode, asks):
    client, workspace = planning.client, planning.home.workspace
    (workspace / "notes.txt").write_text("notes")
    provider.plan(tools(call("read_file", {"path": "notes.txt"}, "r"), write(call_id="w1"), call("run_shell", {"command": "touch b"}, "s")), tools(present()), tools(write()), text("done"))
    stream = client.start("c", "go")
    asked = stream.until("approval_required")
    assert asked["tool_name"] == "present_plan" and asked["modes"] == ["ask", "read_only", "auto", "approve_all"]
    assert asked["allowed_decisions"] == ["approve", "edit", "reject"]
    results = {e["id"]: e for e in stream.all("tool_result")}
    assert not results["r"]["is_error"] and all("wants a plan" in results[i]["tool_output"] for i in ("w1", "s"))
    assert not list(workspace.glob("[ab]*")) and len(provider.requests) == 2 and "present_plan" in offered(provider.requests[0])
    waiting, = client.get("/approvals").expect(200, "approvals").json["approvals"]
    assert waiting["modes"] == asked["modes"]
    client.approve("c", "int_001", asked["approval_id"], **({"mode": mode} if mode else {})).expect(200)
    if asks:
        client.approve("c", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    assert len(stream.all("approval_required")) == (2 if asks else 1)
    assert stream.all("approved")[0]["mode"] == (mode or "ask") == mode_of(client)
    assert (workspace / "a.txt").read_text() == "hello"
    assert f'"{mode or "ask"}" from now on' in provider.requests[2].last["content"]
    assert "present_plan" not in offered(provider.requests[2])
    assert client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]
    audited = [(e["event"], e.get("reason")) for e in client.get("/audit").expect(200, "audit").json["entries"]]
    assert ("mode_changed", mode or "ask") in audited and ("refused", "mode") in audited


def test_a_refusal_reaches_the_model_and_the_plan_stays_wanted(planning, provider):
    client = planning.client
    provider.plan(tools(present()), tools(write()), tools(present("2. Better", "p2")), text("I wait"))
    stream = client.start("c", "go")
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"], False, feedback="Not a.txt").expect(200)
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"], False).expect(200)
    stream.finish()
    assert "Not a.txt" in provider.requests[1].last["content"] and "wants a plan" in provider.requests[2].last["content"]
    assert mode_of(client) is None and not (planning.home.workspace / "a.txt").exists()


def test_the_person_may_change_the_plan(planning, provider):
    provider.plan(tools(present()), text("ok"))
    stream = planning.client.start("c", "go")
    planning.client.approve("c", "int_001", stream.until("approval_required")["approval_id"], arguments={"plan": "Only look."}, mode="read_only").expect(200)
    stream.finish()
    assert "Only look." in provider.requests[1].last["content"] and mode_of(planning.client) == "read_only"


@pytest.mark.parametrize("answer", [{"mode": "plan"}, {"mode": "deny_all"}, {"mode": "nonsense"}, {"mode": 1}, {"scope": "chat"}, {"scope": "always"}, {"approved": False, "mode": "ask"}])
def test_wrong_answers_change_nothing(planning, provider, answer):
    provider.plan(tools(present()), text("ok"))
    stream = planning.client.start("c", "go")
    asked = stream.until("approval_required")
    body = {"approval_id": asked["approval_id"], "approved": True} | answer
    planning.client.post("/chats/c/interactions/int_001/approve", body).error(400)
    assert mode_of(planning.client) is None
    planning.client.approve("c", "int_001", asked["approval_id"], False).expect(200)
    stream.finish()


def test_a_mode_is_only_for_plans(make_server, provider):
    server = make_server(provider)
    provider.plan(tools(write()), text("ok"))
    stream = server.client.start("c", "go")
    asked = stream.until("approval_required")
    assert "modes" not in asked.data
    server.client.approve("c", "int_001", asked["approval_id"], mode="auto").error(400, "invalid_answer")
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.finish()


@pytest.mark.parametrize("server_mode", ["ask", "approve_all", "deny_all"])
def test_no_rule_and_no_mode_approves_a_plan(make_server, provider, server_mode):
    rules = {"tools": {"rules": [{"tool": "*", "action": "allow"}]}} if server_mode == "ask" else {}
    server = make_server(provider, config={"approval_mode": server_mode} | rules)
    client = server.client
    client.post("/chats", {"id": "c"}).expect(201)
    if server_mode == "deny_all":
        client.request("PATCH", "/chats/c", {"approval_mode": "plan"}).error(403, "mode_not_allowed")
        return
    set_mode(client, "c", "plan")
    provider.plan(tools(write("x.txt", "x")), tools(present()), text("done"))
    stream = client.start("c", "go")
    asked = stream.until("approval_required")
    assert asked["tool_name"] == "present_plan" and not (server.home.workspace / "x.txt").exists()
    client.approve("c", "int_001", asked["approval_id"], False).expect(200)
    stream.finish()


def test_without_the_mode_there_is_no_plan_to_approve(server, provider):
    provider.plan(tools(present()), text("ok"))
    stream = server.client.turn("c", "go")
    assert "present_plan" not in offered(provider.requests[0]) and not stream.all("approval_required")
    assert "no plan is wanted" in stream.one("tool_result")["tool_output"]


def test_a_sub_agent_changes_nothing_either(make_server, make_home, provider):
    from test_agents import HEAD, agent, delegate, trust
    home = make_home()
    trust(home, agent(home.workspace, "docs", HEAD.replace("---\n", "---\nmode: approve_all\n", 1) + "Go."))
    server = make_server(provider, home, config={"approval_mode": "plan"})
    provider.plan(tools(delegate()), tools(write(), present()), text("over"), text("ok"))
    stream = server.client.turn("c", "go")
    results = [e["event"]["tool_output"] for e in stream.all("nested") if e["event"]["type"] == "TOOL_RESULT"]
    assert "wants a plan" in results[0] and "no tool named" in results[1] and not stream.all("approval_required")
    assert not (home.workspace / "a.txt").exists()


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_plan_waits_across_a_restart(make_server, provider, end):
    server = make_server(provider, config={"approval_mode": "plan"})
    provider.plan(tools(present()), text("done"))
    asked = server.client.start("c", "go").until("approval_required")
    getattr(server, end)()
    server = make_server(provider, server.home, config={"approval_mode": "plan"})
    server.client.approve("c", "int_001", asked["approval_id"], mode="auto").expect(200)
    server.client.attach("c", "int_001").finish()
    assert mode_of(server.client) == "auto"


def test_rewinding_leaves_the_mode_as_it_is(planning, provider):
    client = planning.client
    provider.plan(tools(present()), text("done"), tools(write()), text("ok"))
    stream = client.start("c", "go")
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"], mode="approve_all").expect(200)
    stream.finish()
    client.edit("c", "int_001", "go, otherwise").finish()
    assert mode_of(client) == "approve_all" and (planning.home.workspace / "a.txt").exists()


# --- clients ---------------------------------------------------------------------------------------------------------
def test_at_a_terminal(server, provider, open_terminal):
    client = server.client
    provider.plan(tools(present("1. Write b.txt", "p1")), tools(present()), tools(write()), text("end"), text("fine"), tools(present("2. More", "p3")), text("stop"))
    chat = open_terminal(server.home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}").opened()
    chat.say("/mode plan").until("approved a plan").ready().say("work").until("Write b.txt").until("3. auto").until("allow?")
    chat.answer_line("n not b.txt").until("Write a.txt").until("allow?").answer("3").until("end").ready()
    assert "not b.txt" in provider.requests[1].last["content"] and (server.home.workspace / "a.txt").exists()
    assert mode_of(client) == "auto" and " · mode auto" in chat.screen[-2], "the line above the input tells it"
    # The messages after it have the chat's mode, until another one is chosen. What allows all does not approve a plan.
    chat.say("more").until("fine").ready()
    assert "present_plan" not in offered(provider.requests[4])
    chat.say("/mode plan").until("approved a plan").ready()
    assert mode_of(client) == "plan"
    chat.say("/mode all").until("everything").ready()
    set_mode(client, "c", "plan")
    chat.say("again").until("2. More").until("allow?").answer("n").until("(cancelled)").ready()
    assert mode_of(client) == "plan"


def test_on_the_page(planning, provider, browse):
    provider.plan(tools(present()), tools(write()), text("done"))
    page = browse(planning)
    page.say("work")
    card = page.one("approval-card")
    assert "1. Write a.txt" in card.text
    choice = page.one("mode-after")
    assert [each.get_attribute("value") for each in choice.find_elements("css selector", "option")] == ["ask", "read_only", "auto", "approve_all"]
    choice.find_element("css selector", "option[value=auto]").click()
    page.press("approve")
    page.until_text("answer", "done")
    page.until(lambda: page.one("mode").get_attribute("value") == "auto", "the chat's new mode")
    assert (planning.home.workspace / "a.txt").exists()


def test_in_an_editor(planning, provider):
    from support.acp import Agent
    agent = Agent(planning.home, "--url", f"http://127.0.0.1:{planning.port}")
    try:
        session = agent.new(planning.home.workspace)
        provider.plan(tools(present()), tools(write()), text("done"))
        number = agent.prompt(session, "work")
        request = agent.asked()
        assert [o["optionId"] for o in request["params"]["options"]] == ["mode:ask", "mode:read_only", "mode:auto", "mode:approve_all", "reject_once"]
        agent.choose(request, "mode:auto")
        assert agent.answer(number)["stopReason"] == "end_turn"
        assert "auto" in [u["currentModeId"] for u in agent.updates if u["sessionUpdate"] == "current_mode_update"]
        assert (planning.home.workspace / "a.txt").exists() and mode_of(planning.client, session) == "auto"
    finally:
        agent.close()


def test_the_audit_log_says_that_a_chat_plans(make_server, provider):
    client = make_server(provider).client
    client.post("/chats", {"id": "c", "approval_mode": "plan"}).expect(201)
    assert [(each["event"], each["reason"]) for each in client.get("/audit").expect(200, "audit").json["entries"]] == [("mode_changed", "plan")]
