"""Fork makes a branch a new chat; undo takes back the last interaction."""
from support.provider import Gate, call, text, tools
from test_edit import converse, digests, edit


def fork(client, interaction, chat="c", **more):
    return client.post(f"/chats/{chat}/fork", {"interaction_id": interaction, **more})


def test_a_branch_becomes_a_chat_of_its_own(server, provider):
    client = server.client
    converse(client, provider, 3)
    edit(client, provider, "int_002", "new")
    before = digests(server.home), server.home.checkpoint("c", "int_003")
    answer = fork(client, "int_003", chat_id="copy", title="Another way").expect(201)
    assert answer.headers["Location"] == "/chats/copy"
    made = answer.json
    assert (made["id"], made["title"], made["head"], made["head_status"]) == ("copy", "Another way", "int_003", "COMPLETED")
    assert made["forked_from"] == {"chat_id": "c", "interaction_id": "int_003"}
    assert client.get("/chats").expect(200, "chat_list").json["chats"][0] == made
    history = client.history("copy", branches="all")
    assert [(i["id"], i["chat_id"], i["superseded"]) for i in history["interactions"]] == [(f"int_00{n}", "copy", False) for n in (1, 2, 3)]
    assert history["forked_from"] == made["forked_from"]
    copy = server.home.checkpoint("copy", "int_003")
    assert copy.pop("chat_id") == "copy" and before[1].pop("chat_id") == "c" and copy == before[1]

    provider.plan(text("a4"))
    assert client.turn("copy", "q4").interaction == "int_004"
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "q2", "a2", "q3", "a3", "q4"]
    assert digests(server.home) == before[0], "the source is unchanged"
    edit(client, provider, "int_002", "elsewhere", chat="copy")
    assert client.history("c")["head"] == "int_004"


def test_the_copy_has_the_tasks_and_grants_of_its_time(make_server, provider):
    server = make_server(provider)
    client = server.client
    converse(client, provider, 1)
    client.request("PATCH", "/chats/c/tasks", {"tasks": [{"title": "early"}]}).expect(200)
    client.request("PATCH", "/chats/c/tasks", {"tasks": [{"title": "late"}]}).expect(200)
    fork(client, "int_002", chat_id="copy").expect(201)
    assert [t["title"] for t in client.get("/chats/copy/tasks").json["tasks"]] == ["early"]
    fork(client, "int_001").expect(201)


def test_it_survives_a_restart_and_the_end_of_its_source(make_server, make_home, provider):
    home = make_home()
    first = make_server(provider, home=home)
    converse(first.client, provider, 2)
    fork(first.client, "int_001", chat_id="copy").expect(201)
    first.client.request("DELETE", "/chats/c").expect(200)
    expected = first.client.history("copy")
    first.kill()
    second = make_server(provider, home=home)
    assert second.client.history("copy") == expected
    provider.plan(text("b"))
    assert second.client.turn("copy", "q2").interaction == "int_002"


def test_while_the_source_runs(client, provider):
    converse(client, provider, 1)
    gate = Gate()
    provider.plan(text("x", gate))
    stream = client.start("c", "q2")
    stream.until("text_delta")
    fork(client, "int_002").error(409, "not_finished")
    fork(client, "int_001", chat_id="copy").expect(201)
    assert [i["user_message"] for i in client.history("copy")["interactions"]] == ["q1"]
    gate.release()
    stream.finish()


def test_what_cannot_be_forked(server, provider):
    client = server.client
    converse(client, provider, 1)
    fork(client, "int_009").error(404, "not_found")
    fork(client, "int_001", chat="nobody").error(404, "not_found")
    fork(client, "int_001", chat_id="c").error(409, "chat_exists")
    for body in ({}, {"interaction_id": 1}, {"interaction_id": "x"}, {"interaction_id": "int_001", "chat_id": "../x"},
                 {"interaction_id": "int_001", "title": 5}, {"interaction_id": "int_001", "other": 1}):
        client.post("/chats/c/fork", body).error(400)
    assert [c["id"] for c in client.get("/chats").json["chats"]] == ["c"]
    assert sorted(p.name for p in server.home.data.iterdir() if p.name.startswith(".incoming")) == []


def test_a_long_chat(server, provider):
    client = server.client
    for number in range(12):
        provider.plan(text(f"{number} " + "a" * 30_000))
        client.turn("c", f"q{number}")
    fork(client, "int_011", chat_id="copy").expect(201)
    for number in (1, 6, 11):
        ours, theirs = (client.interaction(chat, f"int_{number:03}") for chat in ("copy", "c"))
        assert ours["final_agent_state"] == theirs["final_agent_state"]
    sizes = [sum(p.stat().st_size for p in server.home.checkpoints(chat)) for chat in ("copy", "c")]
    assert sizes[0] < sizes[1], "the copy's states are linked, too"


def test_undo_takes_back_the_last_one_and_loses_nothing(server, provider):
    client = server.client
    converse(client, provider, 2)
    assert client.post("/chats/c/undo").expect(200, "chat_summary").json["head"] == "int_001"
    assert [(i["id"], i["superseded"]) for i in client.history("c", branches="all")["interactions"]] == [("int_001", False), ("int_002", True)]
    client.post("/chats/c/undo").error(409, "nothing_to_undo")
    provider.plan(text("b"))
    client.turn("c", "other")
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q1", "a1", "other"]
    client.post("/chats/c/head", {"interaction_id": "int_002"}).expect(200)
    client.post("/chats/nobody/undo").error(404)
    client.post("/chats", {"id": "empty"}).expect(201)
    client.post("/chats/empty/undo").error(409, "nothing_to_undo")
    client.post("/chats/c/undo", {"x": 1}).error(400)


def test_no_undo_while_a_run_is_active(client, provider):
    converse(client, provider, 1)
    gate = Gate()
    provider.plan(text("x", gate))
    stream = client.start("c", "q2")
    stream.until("text_delta")
    client.post("/chats/c/undo").error(409, "busy")
    gate.release()
    stream.finish()
    assert client.post("/chats/c/undo").expect(200).json["head"] == "int_001"


def test_a_dry_run_names_files_and_what_failed(make_server, provider):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    provider.plan(tools(call("write_file", {"path": "x.txt", "content": "1"}, "w"), call("delete_file", {"path": "none.txt"}, "d"),
                        call("run_shell", {"command": "true"}, "s"), call("read_file", {"path": "x.txt"}, "r")), text("done"))
    server.client.turn("c", "q1")
    preview = server.client.post("/chats/c/interactions/int_001/edit", {"new_user_message": "x", "dry_run": True}).expect(200, "edit_preview").json
    assert [(s["call_id"], s["path"], s["failed"]) for s in preview["side_effects"]] == [
        ("w", "x.txt", False), ("d", "none.txt", True), ("s", None, False)]


def test_a_dry_run_leaves_out_what_was_refused(client, provider):
    provider.plan(tools(call("write_file", {"path": "x.txt", "content": "1"}, "w")), text("done"))
    stream = client.start("c", "q1")
    asked = stream.until("approval_required")
    client.approve("c", "int_001", asked["approval_id"], approved=False).expect(200)
    stream.finish()
    preview = client.post("/chats/c/interactions/int_001/edit", {"new_user_message": "x", "dry_run": True}).expect(200, "edit_preview").json
    assert (preview["superseded"], preview["side_effects"]) == (["int_001"], [])
