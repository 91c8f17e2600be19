"""GET /chats/{chat}/editor: an editor whose unsaved files count, as a client of the plain interface."""
import pytest
from support.editor import Editor
from support.provider import call, text, tools


@pytest.fixture
def file(server):
    path = server.home.workspace / "a.txt"
    path.write_text("on the disk")
    return path


def read(server, provider, chat="c"):
    """Has the agent read the file; its stream, which goes on."""
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
    assert seen(read(server, provider)) == "on the disk", "and not asked again"


def test_another_editor_takes_its_place(server, provider, file):
    first, second = Editor(server), None
    stream = read(server, provider)
    asked = first.asked()
    second = Editor(server)
    assert first.next() is None
    first.answer(asked, content="of the first").error(404)
    assert seen(stream) == "on the disk", "who was asked has gone"
    first.close()  # which does not take the second with it
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


def test_what_a_model_writes_is_one_event(server, provider, file):
    """Frames in the mouth of a model are its words, also on their way to the editor."""
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
