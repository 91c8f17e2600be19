"""The agent's tasks and plan: kept in its state, shown, changed by hand, and restored with the state."""
import json

import pytest
from support.provider import Gate, call, text, tools


def task(number, title, status="todo"):
    return {"id": str(number), "title": title, "status": status}


def agenda(client, chat="c"):
    return client.get(f"/chats/{chat}/tasks").expect(200, "tasks").json


def patch(client, body, chat="c"):
    return client.request("PATCH", f"/chats/{chat}/tasks", body)


def manage(client, provider, *calls, message="go"):
    """Runs a turn in which the model calls these tools in one round."""
    provider.plan(tools(*(call(name, arguments, f"call_{i}") for i, (name, arguments) in enumerate(calls))), text("ok"))
    return client.turn("c", message)


ADD = lambda title, **more: ("manage_tasks", {"action": "add", "title": title, **more})  # noqa: E731


def test_the_agent_keeps_tasks_and_a_plan(server, provider):
    client = server.client
    stream = manage(client, provider, ADD("Pack"), ADD("Drive", status="doing"), ("manage_tasks", {"action": "update", "id": "1", "status": "done"}),
                    ("manage_tasks", {"action": "list"}), ("update_plan", {"steps": ["a", "b"]}))
    updates = stream.all("task_updated")
    assert [u["call_id"] for u in updates] == ["call_0", "call_1", "call_2"]
    assert updates[-1]["tasks"] == [task(1, "Pack", "done"), task(2, "Drive", "doing")]
    assert stream.one("plan_updated")["steps"] == ["a", "b"]
    names = stream.names(without=("usage", "text_delta"))
    assert names[1:4] == ["tool_call", "task_updated", "tool_result"]
    assert [r["tool_output"] for r in stream.all("tool_result")][3] == "1 [done] Pack\n2 [doing] Drive"
    assert agenda(client) == {"tasks": updates[-1]["tasks"], "plan": ["a", "b"]}
    state = server.home.checkpoint("c", "int_001")["final_agent_state"]
    assert state["tasks"] == updates[-1]["tasks"] and state["plan"] == ["a", "b"]
    manage(client, provider, ("manage_tasks", {"action": "remove", "id": "1"}), ("update_plan", {"steps": []}))
    assert agenda(client) == {"tasks": [task(2, "Drive", "doing")], "plan": []}


@pytest.mark.parametrize("arguments", [{"action": "add"}, {"action": "update", "id": "9", "status": "done"}, {"action": "update", "id": "1"},
                                       {"action": "remove"}, {"action": "rename", "id": "1"}, {"action": "add", "title": "x", "status": "late"}])
def test_what_is_wrong_is_told_and_changes_nothing(client, provider, arguments):
    stream = manage(client, provider, ADD("Pack"), ("manage_tasks", arguments))
    assert stream.all("tool_result")[1]["is_error"]
    assert len(stream.all("task_updated")) == 1 and agenda(client)["tasks"] == [task(1, "Pack")]


def test_an_edit_restores_tasks_plan_and_grants(server, provider):
    client = server.client
    write = ("write_file", {"path": "a", "content": "1"})
    provider.plan(tools(call(*ADD("one"), "a"), call("update_plan", {"steps": ["first"]}, "b"), call(*write, "d")), text("ok"))
    stream = client.start("c", "q1")
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"], scope="chat").expect(200)
    stream.finish()
    other = ("write_file", {"path": "b", "content": "2"})
    provider.plan(tools(call(*ADD("two"), "a"), call("manage_tasks", {"action": "remove", "id": "1"}, "e"),
                        call("update_plan", {"steps": ["second"]}, "b"), call(*other, "d")), text("ok"))
    stream = client.start("c", "q2")
    client.approve("c", "int_002", stream.until("approval_required")["approval_id"], scope="chat").expect(200)
    stream.finish()
    assert agenda(client) == {"tasks": [task(2, "two")], "plan": ["second"]}
    before = client.interaction("c", "int_001")["final_agent_state"]
    provider.plan(text("edited"))
    client.edit("c", "int_002", "q2 again").finish()
    assert agenda(client) == {"tasks": [task(1, "one")], "plan": ["first"]}
    state = client.interaction("c", "int_003")["final_agent_state"]
    assert {k: state[k] for k in ("tasks", "plan", "grants")} == {k: before[k] for k in ("tasks", "plan", "grants")}
    assert len(state["grants"]) == 1
    client.post("/chats/c/head", {"interaction_id": "int_002"}).expect(200)
    assert agenda(client) == {"tasks": [task(2, "two")], "plan": ["second"]}


def test_tasks_survive_kill_9_in_the_middle_of_a_turn(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    manage(server.client, provider, ADD("one"), ("update_plan", {"steps": ["first"]}))
    provider.plan(tools(call(*ADD("two"), "a"), call("manage_tasks", {"action": "remove", "id": "1"}, "b")), text("half", Gate()))
    stream = server.client.start("c", "go on")
    stream.until("text_delta")
    expected = {"tasks": [task(2, "two")], "plan": ["first"]}
    assert agenda(server.client) == expected  # those of the running interaction
    server.kill()
    stream.close()
    server = make_server(provider, home=home)
    assert server.client.interaction("c", "int_002")["status"] == "FAILED"
    assert agenda(server.client) == expected
    provider.plan(text("whole"))
    server.client.stream("POST", "/chats/c/interactions/int_002/resume").finish()
    assert agenda(server.client) == expected


def test_tasks_are_kept_while_a_question_waits_across_restarts(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    provider.plan(tools(call(*ADD("one"), "a"), call("ask_human", {"question": "Which?"}, "b"), call("manage_tasks", {"action": "remove", "id": "1"}, "d"),
                        call("ask_human", {"question": "Sure?"}, "e")))
    stream = server.client.start("c", "go")
    first = stream.until("input_required")
    for asked, tasks in ((first, [task(1, "one")]), (None, [])):
        server.kill()
        stream.close()
        server = make_server(provider, home=home)
        assert agenda(server.client)["tasks"] == tasks
        stream = server.client.attach("c", "int_001", after=0, gapless=True)
        if asked:
            stream.until("input_required")
            server.client.respond("c", "int_001", asked["request_id"], "x").expect(200)
            stream.until("input_required")
    provider.plan(text("done"))
    waiting = server.client.get("/approvals").json["inputs"][0]
    server.client.respond("c", "int_001", waiting["request_id"], "y").expect(200)
    stream.finish()
    assert agenda(server.client)["tasks"] == [] and "tasks" not in home.checkpoint("c", "int_001")["final_agent_state"]


def test_tasks_are_changed_by_hand(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    client = server.client
    manage(client, provider, ADD("one"))
    changed = patch(client, {"tasks": [task(1, "one", "done"), {"title": "two"}], "plan": ["x"]}).expect(200, "tasks").json
    assert changed == {"tasks": [task(1, "one", "done"), task(2, "two")], "plan": ["x"]}
    assert patch(client, {"plan": ["x"]}).expect(200, "tasks").json == changed
    history = client.history("c")["interactions"]
    assert [(i["id"], i["user_message"], i["status"]) for i in history] == [("int_001", "go", "COMPLETED"), ("int_002", "", "COMPLETED")]
    assert [e["type"] for e in history[1]["agent_events"]] == ["TASK_UPDATED", "PLAN_UPDATED"]
    server.kill()
    client = make_server(provider, home=home).client
    assert agenda(client) == changed
    provider.plan(text("ok"))
    client.turn("c", "and now")
    assert [m["content"] for m in provider.requests[-1].conversation][-2:] == ["ok", "and now"]
    assert agenda(client) == changed
    client.post("/chats/c/interactions/int_002/regenerate").error(409, "no_message")
    client.attach("c", "int_002", after=0).finish()
    provider.plan(text("edited"))
    client.edit("c", "int_002", "instead").finish()
    assert agenda(client) == {"tasks": [task(1, "one")], "plan": []}


@pytest.mark.parametrize("body", [{}, [], {"tasks": {}}, {"tasks": [1]}, {"tasks": [{}]}, {"tasks": [{"title": ""}]}, {"tasks": [{"title": "x", "status": "late"}]},
                                  {"tasks": [{"title": "x", "more": 1}]}, {"tasks": [task(1, "a"), task(1, "b")]}, {"plan": [""]}, {"plan": "x"},
                                  {"tasks": [{"title": "x" * 501}]}, {"tasks": [{"title": "x"}] * 201}, {"plan": [], "surplus": 1}])
def test_malformed_changes_are_400_and_change_nothing(client, provider, body):
    client.post("/chats", {"id": "c"}).expect(201)
    patch(client, json.dumps(body)).error(400)
    assert agenda(client) == {"tasks": [], "plan": []} and client.history("c")["interactions"] == []


def test_no_change_while_a_run_goes_on_and_none_of_unknown_chats(client, provider):
    client.get("/chats/nothing/tasks").error(404)
    patch(client, {"tasks": []}, chat="nothing").error(404)
    provider.plan(tools(call("ask_human", {"question": "Which?"})))
    stream = client.start("c", "go")
    stream.until("input_required")
    patch(client, {"tasks": [{"title": "x"}]}).error(409, "busy")
    client.cancel("c", "int_001")
    stream.finish("CANCELLED")
    patch(client, {"tasks": [{"title": "x"}]}).expect(200)
    assert agenda(client)["tasks"] == [task(1, "x")]


def test_the_offline_model_keeps_tasks(make_server):
    client = make_server().client
    client.turn("c", "task: Buy milk\nplan: go; pay")
    assert agenda(client) == {"tasks": [task(1, "Buy milk")], "plan": ["go", "pay"]}
