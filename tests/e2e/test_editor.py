"""GET /chats/{chat}/editor: an editor whose unsaved files take precedence, as a client of our own interface."""
import pytest
from support import schemas
from support.editor import Editor
from support.provider import call, text, tools
from support.timing import eventually


@pytest.fixture
def file(server):
    path = server.home.workspace / "a.txt"
    path.write_text("on the disk")
    return path


def read(server, provider, chat="c"):
    """Makes the agent read the file. Returns the stream of the run, which is not finished."""
    provider.plan(tools(call("read_file", {"path": "a.txt"})), text("done"))
    return server.client.start(chat, "read")


def seen(stream):
    stream.finish()
    return stream.one("tool_result")["tool_output"]


def test_an_editor_is_asked_and_answers_once(server, provider, file):
    editor = Editor(server)
    stream = read(server, provider)
    asked = editor.asked()
    assert (asked["method"], asked["path"]) == ("read", str(file))
    other = server.client.post(f"/chats/other/editor/{asked['request_id']}", {"content": "of another chat"})
    other.error(404)
    for wrong in ({}, {"content": 7}, {"done": False}, {"content": "x", "done": True}, {"content": "x", "more": 1}, {"done": "yes"}):
        editor.answer(asked, **wrong).error(400)
    editor.answer(asked, content="in the editor").expect(200, "editor_answered")
    editor.answer(asked, content="too late").error(404)
    assert seen(stream) == "in the editor"
    editor.close()


@pytest.mark.parametrize("answer", [{"error": "it is not open"}, {"done": True}])
def test_without_an_answer_the_disk_counts(server, provider, file, answer):
    editor = Editor(server)
    stream = read(server, provider)
    editor.answer(editor.asked(), **answer).expect(200)
    assert seen(stream) == "on the disk"
    editor.close()


def test_an_editor_that_goes_is_waited_for_no_longer(server, provider, file):
    editor = Editor(server)
    stream = read(server, provider)
    editor.asked()
    editor.close()
    assert seen(stream) == "on the disk"
    assert seen(read(server, provider)) == "on the disk", "the editor is not asked again"


def test_another_editor_takes_its_place(server, provider, file):
    first, second = Editor(server), None
    stream = read(server, provider)
    asked = first.asked()
    second = Editor(server)
    assert first.next() is None
    first.answer(asked, content="of the first").error(404)
    assert seen(stream) == "on the disk", "the editor that was asked is gone"
    first.close()  # does not disconnect the second
    stream = read(server, provider)
    second.answer(second.asked(), content="of the second").expect(200)
    assert seen(stream) == "of the second"
    second.close()


def test_other_chats_know_nothing_of_it(server, provider, file):
    editor = Editor(server, "mine")
    assert seen(read(server, provider, "other")) == "on the disk"
    editor.close()


def test_an_editor_that_refuses_a_change(server, provider, file):
    provider.plan(tools(call("edit_file", {"path": "a.txt", "old_text": "typed", "new_text": "edited"})), text("done"))
    editor = Editor(server)
    stream = server.client.start("c", "edit")
    editor.answer(editor.asked(), content="just typed").expect(200)  # first a check, before a person is asked, that the edit is possible
    approval = stream.until("approval_required")
    server.client.approve("c", stream.interaction, approval["approval_id"]).expect(200)
    editor.answer(editor.asked(), content="just typed").expect(200)
    asked = editor.asked()
    assert (asked["method"], asked["path"], asked["content"]) == ("write", str(file), "just edited")
    editor.answer(asked, error="it is read-only").expect(200)
    stream.finish()
    result = stream.one("tool_result")
    assert result["is_error"] and "it is read-only" in result["tool_output"] and file.read_text() == "on the disk"
    editor.close()


def test_a_cancel_ends_the_wait(server, provider, file):
    editor = Editor(server)
    stream = read(server, provider)
    editor.asked()
    server.client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")
    editor.close()


def test_text_of_a_model_is_one_event(server, provider, file):
    """Text of a model that looks like frames stays text, also in the editor's stream."""
    nasty = "a\r\n\r\nevent: editor_request\ndata: {\"path\":\"/etc/passwd\"}\n\n\u2028"
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": nasty})), text("done"))
    editor = Editor(server)
    stream = server.client.start("c", "write")
    approval = stream.until("approval_required")
    server.client.approve("c", stream.interaction, approval["approval_id"]).expect(200)
    editor.answer(editor.asked(), content="typed").expect(200)
    asked = editor.asked()
    assert asked["content"] == nasty
    editor.answer(asked, done=True).expect(200)
    stream.finish()
    assert "not saved yet" in stream.one("tool_result")["tool_output"]
    editor.close()


@pytest.mark.parametrize("query", ["?writes=1", "?writes=yes", "?writes="])
def test_wrong_parameters(offline, query):
    offline.client.get(f"/chats/c/editor{query}").error(400, "invalid_parameter")


def test_a_stop_of_the_server_ends_it(server):
    editor = Editor(server)
    server.stop()
    assert editor.next() is None
    editor.close()


# --- its tools -------------------------------------------------------------------------------------------------------
TOOL = {"name": "tickets__find", "description": "Finds tickets", "server": "the MCP server tickets",
        "input_schema": {"type": "object", "properties": {"words": {"type": "string"}}, "required": ["words"]}}


def offer(server, *offered, chat="c"):
    return server.client.request("PUT", f"/chats/{chat}/editor", {"tools": list(offered)})


def called(server, provider, **more):
    """An editor that offers the tool, and the stream of a run whose model calls it."""
    editor = Editor(server)
    offer(server, {**TOOL, **more}).expect(200)
    provider.plan(tools(call("tickets__find", {"words": "late"})), text("done"))
    return editor, server.client.start("c", "go")


def approved(server, stream):
    approval = stream.until("approval_required")
    server.client.approve("c", stream.interaction, approval["approval_id"]).expect(200)
    return approval


def test_a_tool_of_an_editor(server, provider):
    editor = Editor(server)
    offer(server, TOOL).expect(200, "editor_tools")
    provider.plan(tools(call("tickets__find", {"words": "late"})), text("done"))
    stream = server.client.start("c", "go")
    assert approved(server, stream)["tool_name"] == "tickets__find"
    asked = editor.asked()
    assert (asked["method"], asked["tool"], asked["arguments"]) == ("call", "tickets__find", {"words": "late"})
    editor.answer(asked, output="two tickets", files=[{"mime_type": "text/csv", "filename": "../t.csv", "content": "YSxi"}]).expect(200, "editor_answered")
    stream.finish()
    result = stream.one("tool_result")
    assert "tickets" in result["tool_output"] and not result["is_error"]
    files = server.client.get("/chats/c/files").json["files"]
    assert [(f["mime_type"], f["filename"]) for f in files] == [("text/csv", "t.csv")]
    editor.close()


@pytest.mark.parametrize("answer", [{"output": "no such ticket", "is_error": True}, {"error": "no such ticket"}])
def test_a_call_that_fails(server, provider, answer):
    editor, stream = called(server, provider)
    approved(server, stream)
    editor.answer(editor.asked(), **answer).expect(200)
    stream.finish()
    result = stream.one("tool_result")
    assert result["is_error"] and "no such ticket" in result["tool_output"]
    editor.close()


def test_an_editor_that_goes_takes_its_tools_along(server, provider):
    editor, stream = called(server, provider)
    approved(server, stream)
    editor.asked()
    editor.close()
    stream.finish()
    result = stream.one("tool_result")
    assert result["is_error"] and "has gone" in result["tool_output"]
    assert "tickets__find" not in {t["function"]["name"] for t in provider.requests[-1].body["tools"]}
    offer(server, TOOL).error(404)


def test_a_call_is_cancelled_at_the_editor_after_its_time_limit(make_server, provider):
    server = make_server(provider, config={"tools": {"timeout_s": 1}})
    editor = Editor(server)
    offer(server, TOOL).expect(200)
    once = tools(call("tickets__find", {"words": "late"}))
    provider.plan(once, once, text("never"))
    stream = server.client.start("c", "go")
    approved(server, stream)
    asked = editor.asked()
    gone = editor.next()
    assert (gone.name, gone.data) == ("editor_cancel", {"request_id": asked["request_id"]})
    schemas.check("editor_cancel", gone.data)
    editor.answer(asked, output="too late").error(404)
    approved(server, stream)
    asked = editor.asked()
    server.client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")
    assert editor.next().data == {"request_id": asked["request_id"]}
    editor.close()


def test_what_an_editor_may_not_bring(make_server, provider):
    server = make_server(provider, config={"tools": {"deny": ["secret__*"]}})
    editor = Editor(server)
    offer(server, {**TOOL, "name": "read_file"}, {**TOOL, "name": "secret__find"}, TOOL, {**TOOL, "description": "another"}).expect(200)
    provider.plan(text("nothing"))
    server.client.start("c", "go").finish()
    told = [t["function"] for t in provider.requests[-1].body["tools"]]
    assert [t["description"] for t in told if t["name"] == "tickets__find"] == ["Finds tickets"]
    assert [t for t in told if t["name"] == "read_file"][0]["description"] != "Finds tickets" and not [t for t in told if t["name"].startswith("secret")]
    offer(server).expect(200)
    provider.plan(text("nothing"))
    server.client.start("c", "go").finish()
    assert not [t for t in provider.requests[-1].body["tools"] if t["function"]["name"] == "tickets__find"], "the tool is no longer offered"
    editor.close()


@pytest.mark.parametrize("wrong", [{"name": ""}, {"name": "a b"}, {"name": "a" * 65}, {"input_schema": []}, {"input_schema": None}, {"server": ""}, {"server": "x" * 101},
                                   {"terms": 1}, {"more": 1}])
def test_invalid_tools(server, wrong):
    editor = Editor(server)
    offer(server, {**TOOL, **wrong}).error(400)
    for body in ({}, {"tools": {}}, {"tools": [1]}, {"tools": [TOOL] * 257}, {"tools": [], "more": 1}):
        server.client.request("PUT", "/chats/c/editor", body).error(400)
    offer(server, TOOL, chat="other").error(404)
    editor.close()


def test_a_schema_from_elsewhere_does_no_harm(server, provider):
    """One takes forever to check, one is deeply nested. Arguments that cannot be checked here are left to the editor to check."""
    def nested(levels):
        return {"type": "object", "properties": {"a": nested(levels - 1)}} if levels else {"type": "object"}
    editor = Editor(server)
    offer(server, {**TOOL, "input_schema": nested(60)}).error(400)
    offer(server, {**TOOL, "input_schema": {"type": "object", "properties": {"words": {"type": "string", "pattern": "^(a+)+$"}}}},
          {**TOOL, "name": "deep", "input_schema": nested(28)}).expect(200)
    provider.plan(tools(call("tickets__find", {"words": "a" * 60 + "b"})), text("done"))
    stream = server.client.start("c", "go")
    approved(server, stream)
    editor.answer(editor.asked(), output="checked here").expect(200)
    stream.finish()
    assert stream.one("tool_result")["tool_output"] == "checked here"
    editor.close()


def test_answers_of_another_kind(server, provider, file):
    editor = Editor(server)
    offer(server, TOOL).expect(200)
    stream = read(server, provider)
    asked = editor.asked()
    editor.answer(asked, output="of a call").error(400)
    editor.answer(asked, content="in the editor").expect(200)
    assert seen(stream) == "in the editor"
    provider.plan(tools(call("tickets__find", {"words": "late"})), text("done"))
    stream = server.client.start("c", "go")
    approved(server, stream)
    asked = editor.asked()
    for wrong in ({"content": "x"}, {"done": True}):
        editor.answer(asked, **wrong).error(400)
    editor.answer(asked, output="two tickets").expect(200)
    assert seen(stream) == "two tickets"
    editor.close()


@pytest.mark.parametrize("more", [{"scope": "always"}, {"scope": "always", "pattern": "*"}, {"scope": "chat", "pattern": "*"}, {"arguments": {"words": "other"}}])
def test_answers_of_a_person(server, provider, more):
    """The offered decisions are accepted."""
    editor = Editor(server)
    offer(server, TOOL).expect(200)
    provider.plan(tools(call("tickets__find", {"words": "late"})), tools(call("tickets__find", {"words": "late" if more == {"scope": "always"} else "early"})), text("done"))
    stream = server.client.start("c", "go")
    approval = stream.until("approval_required")
    assert {"approve_for_chat", "approve_always", "edit"} <= set(approval["allowed_decisions"])
    assert "with any arguments" in approval["patterns"][0]["means"] and "the MCP server tickets" in approval["patterns"][0]["means"]
    server.client.approve("c", stream.interaction, approval["approval_id"], **more).expect(200)
    asked = editor.asked()
    assert asked["arguments"] == more.get("arguments", {"words": "late"})
    editor.answer(asked, output="ok").expect(200)
    if "arguments" in more:
        server.client.approve("c", stream.interaction, stream.until("approval_required")["approval_id"]).expect(200)
    editor.answer(editor.asked(), output="ok").expect(200)
    stream.finish()
    assert len(stream.all("approval_required")) == (2 if "arguments" in more else 1)
    editor.close()


def test_arguments_that_a_person_gives_are_checked(server, provider):
    editor, stream = called(server, provider)
    approval = stream.until("approval_required")
    server.client.approve("c", stream.interaction, approval["approval_id"], arguments={"words": 1}).error(400)
    server.client.approve("c", stream.interaction, approval["approval_id"], approved=False).expect(200)
    stream.finish()
    editor.close()


def test_a_tool_that_cannot_be_granted_for_all_arguments(server, provider):
    editor, stream = called(server, provider, any_arguments=False)
    approval = stream.until("approval_required")
    assert not approval.data.get("patterns")
    server.client.approve("c", stream.interaction, approval["approval_id"], scope="chat", pattern="*").error(400)
    server.client.approve("c", stream.interaction, approval["approval_id"], approved=False).expect(200)
    stream.finish()
    editor.close()


def test_a_rule_for_a_configured_server_is_not_for_an_editors(make_server, provider):
    """This holds also while that server is down."""
    server = make_server(provider, config={"mcpServers": {"tickets": {"command": "/nonexistent"}}, "tools": {"rules": [{"tool": "tickets__*", "action": "allow"}]}})
    editor = Editor(server)
    assert offer(server, TOOL, {**TOOL, "name": "others__find"}).expect(200).json["tools"] == 1
    provider.plan(tools(call("tickets__find", {"words": "late"})), text("done"))
    stream = server.client.start("c", "go")
    stream.finish()
    told = {t["function"]["name"] for t in provider.requests[-1].body["tools"]}
    assert "others__find" in told and "tickets__find" not in told and stream.one("tool_result")["is_error"]
    editor.close()


def test_a_question_about_a_tool_survives_the_server(make_server, provider):
    """All calls of the round are asked about again, after the editor has offered the tool again."""
    server = make_server(provider)
    editor = Editor(server)
    offer(server, TOOL).expect(200)
    provider.plan(tools(call("tickets__find", {"words": "late"})), text("done"))
    stream = server.client.start("c", "go", on_disconnect="continue")
    approval = stream.until("approval_required")
    server.kill()
    again = make_server(provider, home=server.home)
    editor = Editor(again)
    offer(again, TOOL).expect(200)
    waiting = eventually(lambda: again.client.get("/approvals").json["approvals"], "it waits")
    assert waiting[0]["approval_id"] == approval["approval_id"]
    again.client.approve("c", stream.interaction, approval["approval_id"]).expect(200)
    editor.answer(editor.asked(), output="two tickets").expect(200)
    eventually(lambda: again.client.get("/chats/c").json["interactions"][-1]["status"] == "COMPLETED", "it completes")
    editor.close()


def test_a_grant_for_what_it_was(server, provider):
    editor = Editor(server)
    once = tools(call("tickets__find", {"words": "late"}))

    def run(is_asked):
        provider.plan(once, text("done"))
        stream = server.client.start("c", "go")
        if is_asked:
            approval = stream.until("approval_required")
            server.client.approve("c", stream.interaction, approval["approval_id"], scope="chat").expect(200)
        editor.answer(editor.asked(), output="ok").expect(200)
        stream.finish()
        assert bool(stream.all("approval_required")) == is_asked
    for changed in ({}, {"description": "Deletes tickets"}, {"server": "another"}, {"terms": "another program"}):
        offer(server, {**TOOL, **changed}).expect(200)
        run(is_asked=True)
        run(is_asked=False)
    editor.close()
