"""Editing restores exactly the earlier state, leaves old interactions untouched and keeps both branches."""
import hashlib

import pytest
from support.provider import Gate, call, text, tools


def converse(client, provider, turns, chat="c"):
    for number in range(1, turns + 1):
        provider.plan(text(f"a{number}"))
        client.turn(chat, f"q{number}")


def digests(home, chat="c"):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in home.checkpoints(chat)}


def edit(client, provider, interaction, message, chat="c"):
    provider.plan(text(f"re: {message}"))
    stream = client.edit(chat, interaction, message)
    stream.finish()
    return stream


def test_the_provider_receives_the_state_before_plus_the_new_message(server, provider):
    provider.plan(tools(call("calculator", {"expression": "6*7"}), think="hm", say="wait"), text("42"))
    server.client.turn("c", "first")
    provider.plan(text("second answer"))
    server.client.turn("c", "second")
    before = server.home.checkpoint("c", "int_001")["final_agent_state"]["messages"]
    sent_first = provider.requests[-1].messages
    stream = edit(server.client, provider, "int_002", "other second")
    sent = provider.requests[-1].messages

    def as_sent(message):  # the provider's extras are sent back unchanged; results are identified by their ids
        extras = message.get("provider_extras", {}).get("test", {}).get("message", {})
        own = {"provider_extras"} | ({"name"} if message["role"] == "tool" else set())
        return {**{name: value for name, value in message.items() if name not in own}, **extras}

    assert [m["reasoning_content"] for m in sent if "reasoning_content" in m] == ["hm "]
    assert [m for m in sent if m["role"] not in ("system", "developer")] == [
        *[as_sent(m) for m in before if m["role"] not in ("system", "developer")], {"role": "user", "content": "other second"}]
    assert sent[:-1] == sent_first[:-1]
    started = stream.events[0]
    assert (started["interaction_id"], started["parent_id"], started["edited_from"]) == ("int_003", "int_001", "int_002")


@pytest.mark.parametrize("interaction, kept", [("int_001", []), ("int_002", ["q1", "a1"]), ("int_003", ["q1", "a1", "q2", "a2"])])
def test_first_middle_and_last(server, provider, interaction, kept):
    client = server.client
    converse(client, provider, 3)
    before = digests(server.home)
    edit(client, provider, interaction, "new")
    assert [m["content"] for m in provider.requests[-1].conversation] == [*kept, "new"]
    after = digests(server.home)
    assert {name: after[name] for name in before} == before, "old files are byte-identical"
    assert after.keys() - before.keys() == {"int_004.json"}
    assert [i["user_message"] for i in client.history("c")["interactions"]] == [*kept[::2], "new"]
    assert client.history("c")["head"] == "int_004"
    assert client.interaction("c", "int_004")["edited_from"] == interaction


def test_all_branches_show_what_was_superseded(client, provider):
    converse(client, provider, 3)
    edit(client, provider, "int_002", "new")
    everything = client.history("c", branches="all")["interactions"]
    assert [(i["id"], i["superseded"]) for i in everything] == [
        ("int_001", False), ("int_002", True), ("int_003", True), ("int_004", False)]
    assert client.interaction("c", "int_002")["user_message"] == "q2"


def test_the_chat_goes_on_from_the_new_branch(client, provider):
    converse(client, provider, 3)
    edit(client, provider, "int_002", "new")
    provider.plan(text("a5"))
    client.turn("c", "q5")
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "new", "re: new", "q5"]
    assert client.interaction("c", "int_005")["parent_id"] == "int_004"


def test_a_superseded_one_can_be_edited_and_edits_stack(client, provider):
    converse(client, provider, 2)
    edit(client, provider, "int_001", "e1")
    edit(client, provider, "int_002", "e2")
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "e2"]
    edit(client, provider, "int_004", "e3")
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "e3"]
    assert len(client.history("c", branches="all")["interactions"]) == 5


def test_the_head_can_be_switched_back(server, provider):
    client = server.client
    converse(client, provider, 3)
    edit(client, provider, "int_002", "new")
    client.post("/chats/c/head", {"interaction_id": "int_003"}).expect(200)
    assert [i["id"] for i in client.history("c")["interactions"]] == ["int_001", "int_002", "int_003"]
    assert [i["superseded"] for i in client.history("c", branches="all")["interactions"]] == [False, False, False, True]
    provider.plan(text("a5"))
    client.turn("c", "q5")
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "q2", "a2", "q3", "a3", "q5"]
    client.post("/chats/c/head", {"interaction_id": "int_099"}).error(404)
    client.post("/chats/nobody/head", {"interaction_id": "int_001"}).error(404)
    client.post("/chats/c/head", {}).error(400)


def test_head_and_branches_survive_a_restart(make_server, provider, make_home):
    home = make_home()
    first = make_server(provider, home=home)
    converse(first.client, provider, 3)
    edit(first.client, provider, "int_002", "new")
    first.client.post("/chats/c/head", {"interaction_id": "int_003"}).expect(200)
    expected = first.client.history("c"), first.client.history("c", branches="all")
    first.stop()
    second = make_server(provider, home=home)
    assert (second.client.history("c"), second.client.history("c", branches="all")) == expected
    provider.plan(text("a5"))
    assert second.client.turn("c", "q5").interaction == "int_005"


def test_regenerate_runs_the_same_message_as_a_sibling(client, provider):
    converse(client, provider, 2)
    provider.plan(text("another answer"))
    stream = client.stream("POST", "/chats/c/interactions/int_002/regenerate", {})
    stream.finish()
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "q2"]
    again = client.interaction("c", "int_003")
    assert (again["user_message"], again["parent_id"], again["edited_from"]) == ("q2", "int_001", "int_002")
    client.post("/chats/c/interactions/int_099/regenerate", {}).error(404)


def test_regenerate_needs_no_body(client, provider):
    converse(client, provider, 1)
    provider.plan(text("again"))
    client.stream("POST", "/chats/c/interactions/int_001/regenerate").finish()


def test_dry_run_tells_what_would_be_superseded_and_what_stays_done(make_server, provider):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    converse(server.client, provider, 1)
    provider.plan(tools(call("write_file", {"path": "x.txt", "content": "1"}, "w"), call("echo", {"text": "harmless"}, "e")), text("done"))
    server.client.turn("c", "write")
    converse_more = text("a3")
    provider.plan(converse_more)
    server.client.turn("c", "q3")
    before = digests(server.home)
    answer = server.client.post("/chats/c/interactions/int_002/edit", {"new_user_message": "x", "dry_run": True}).expect(200, "edit_preview")
    assert answer.json["superseded"] == ["int_002", "int_003"]
    assert [(s["interaction_id"], s["call_id"], s["tool_name"]) for s in answer.json["side_effects"]] == [("int_002", "w", "write_file")]
    assert digests(server.home) == before and server.client.history("c")["head"] == "int_003"


def test_unknown_ones_are_404_and_leave_nothing(server, provider):
    client = server.client
    client.post("/chats/nobody/interactions/int_001/edit", {"new_user_message": "x"}).error(404)
    client.get("/chats/nobody").error(404)
    converse(client, provider, 1)
    client.post("/chats/c/interactions/int_002/edit", {"new_user_message": "x"}).error(404)
    client.post("/chats/c/interactions/int_002/edit", {"new_user_message": "x", "dry_run": True}).error(404)
    assert list(digests(server.home)) == ["int_001.json"]


def test_while_a_run_is_active_it_is_409(client, provider):
    converse(client, provider, 1)
    gate = Gate()
    provider.plan(text("x", gate))
    stream = client.start("c", "q2")
    stream.until("text_delta")
    for body in ({"new_user_message": "x"},):
        error = client.post("/chats/c/interactions/int_001/edit", body).error(409, "busy")
        assert error["details"]["interaction_id"] == "int_002"
    client.post("/chats/c/head", {"interaction_id": "int_001"}).error(409, "busy")
    gate.release()
    stream.finish()


def test_a_cancelled_or_failed_one_can_be_edited(client, provider):
    converse(client, provider, 1)
    gate = Gate()
    provider.plan(text("half", gate))
    stream = client.start("c", "q2")
    stream.until("text_delta")
    client.cancel("c", "int_002")
    stream.finish("CANCELLED")
    edit(client, provider, "int_002", "better")
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "better"]


def test_a_cancelled_edit_leaves_both_branches(client, provider):
    converse(client, provider, 2)
    gate = Gate()
    provider.plan(text("half", gate))
    stream = client.edit("c", "int_002", "new")
    stream.until("text_delta")
    client.cancel("c", "int_003").expect(200)
    stream.finish("CANCELLED")
    assert [i["id"] for i in client.history("c", branches="all")["interactions"]] == ["int_001", "int_002", "int_003"]
    client.post("/chats/c/head", {"interaction_id": "int_002"}).expect(200)
    provider.plan(text("a4"))
    client.turn("c", "q4")
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "q2", "a2", "q4"]


def test_twenty_parallel_edits_one_wins_and_none_is_lost(server, provider):
    import threading
    client = server.client
    converse(client, provider, 2)
    gate = Gate()
    provider.answer_with(lambda _: text("a", gate))
    barrier = threading.Barrier(20)
    results = []

    def one(number):
        barrier.wait()
        results.append(client.post("/chats/c/interactions/int_001/edit", {"new_user_message": f"e{number}", "stream": False}).status)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    gate.wait_reached()
    gate.release()
    for thread in threads:
        thread.join()
    winners = results.count(200)
    assert winners >= 1 and results.count(409) == 20 - winners
    assert len(client.history("c", branches="all")["interactions"]) == 2 + winners


@pytest.mark.parametrize("body", [{}, {"new_user_message": ""}, {"new_user_message": 1}, {"user_message": "x"},
                                  {"new_user_message": "x", "unknown": True}])
def test_malformed_bodies_are_400(client, provider, body):
    converse(client, provider, 1)
    client.post("/chats/c/interactions/int_001/edit", body).error(400)


def test_the_preview_of_an_edit_counts_the_turn_that_runs(client, provider):
    provider.plan(text("a1"))
    client.turn("c", "q1")
    gate = Gate()
    provider.plan(text("half", gate))
    stream = client.start("c", "q2")
    stream.until("text_delta")
    preview = client.post("/chats/c/interactions/int_001/edit", {"new_user_message": "x", "dry_run": True}).expect(200, "edit_preview").json
    assert preview["superseded"] == ["int_001", "int_002"]
    client.post("/chats/c/interactions/int_002/edit", {"new_user_message": "x", "dry_run": True}).error(409, "busy")
    gate.release()
    stream.finish()
