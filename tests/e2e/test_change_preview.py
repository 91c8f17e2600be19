"""Previews of writes that wait for an approval: shown to the person who is asked, and to no one else."""
import os

import pytest
from support.provider import call, text, tools

NEEDLE = "milk-and-bread-5521"
MEBIBYTE = 1 << 20


@pytest.fixture
def box(server, provider):
    return Box(server, provider)


class Box:
    """Makes calls one after the other and previews their changes."""

    def __init__(self, server, provider):
        self.server = server
        self.client = server.client
        self.provider = provider
        self.workspace = server.home.workspace
        self.count = 0

    def ask(self, tool, **arguments):
        """Makes a call that waits in its own chat: (stream, approval id)."""
        self.count += 1
        self.provider.plan(tools(call(tool, arguments)))
        stream = self.client.start(f"c{self.count}", "do it")
        return stream, stream.until("approval_required")["approval_id"]

    def preview(self, approval):
        return self.client.get(f"/approvals/{approval}/change")

    def change(self, tool, **arguments):
        """The change that the call would make. The call is then dropped."""
        stream, approval = self.ask(tool, **arguments)
        change = self.preview(approval).expect(200, "file_change").json
        self.drop(stream)
        assert change["exists"] == (change["before"] is not None)
        return change

    def refusal(self, tool, **arguments):
        """Why the call has no preview."""
        self.count += 1
        self.provider.plan(tools(call(tool, arguments)), text("done"))
        stream = self.client.start(f"c{self.count}", "do it")
        event = stream.next()
        while event.name not in ("approval_required", "tool_result"):
            event = stream.next()
        if event.name == "tool_result":  # the call must fail, so nobody is asked
            stream.finish()
            assert event["is_error"] and not stream.all("approval_required")
            return event["tool_output"]
        error = self.preview(event["approval_id"]).error(409, "no_change_to_show")
        assert not error["retryable"]
        self.client.approve(f"c{self.count}", stream.interaction, event["approval_id"], False).expect(200)
        stream.finish()
        return error["message"]

    def refusals(self, path):
        """The refusals of all three tools."""
        yield self.refusal("write_file", path=path, content="x")
        yield self.refusal("edit_file", path=path, old_text="e", new_text="x")
        yield self.refusal("delete_file", path=path)

    def drop(self, stream):
        self.client.cancel(f"c{self.count}", stream.interaction).expect(200)
        stream.finish("CANCELLED")


def test_a_new_file_and_one_that_is_replaced(box):
    assert box.change("write_file", path="a/new.txt", content="one\n") == {"path": "a/new.txt", "before": None, "after": "one\n", "exists": False}
    assert os.listdir(box.workspace) == []
    (box.workspace / "notes.txt").write_text("old\n")
    change = box.change("write_file", path="./a/../notes.txt", content="naïve 🙂\u202e")
    assert change == {"path": "notes.txt", "before": "old\n", "after": "naïve 🙂\u202e", "exists": True}
    assert (box.workspace / "notes.txt").read_text() == "old\n"
    (box.workspace / "empty").write_text("")
    assert box.change("write_file", path="empty", content="x")["before"] == ""


def test_an_edit_and_what_it_then_does(box):
    notes = box.workspace / "notes.txt"
    notes.write_text("one\ntwo\nthree\n")
    stream, approval = box.ask("edit_file", path=str(notes), old_text="two", new_text="2")
    change = box.preview(approval).expect(200, "file_change").json
    assert change == {"path": "notes.txt", "before": "one\ntwo\nthree\n", "after": "one\n2\nthree\n", "exists": True}
    box.provider.plan(text("done"))
    box.client.approve("c1", "int_001", approval).expect(200)
    stream.finish()
    assert notes.read_text() == change["after"]


def test_an_edit_that_does_not_match_says_so(box):
    (box.workspace / "notes.txt").write_text("one\none\n")
    assert "old_text occurs 0 times" in box.refusal("edit_file", path="notes.txt", old_text="two", new_text="2")
    assert "old_text occurs 2 times" in box.refusal("edit_file", path="notes.txt", old_text="one", new_text="1")
    assert "no such file" in box.refusal("edit_file", path="none.txt", old_text="two", new_text="2")


def test_a_call_that_must_fail_is_not_asked_about(box):
    """The failure goes to the model, which corrects the call. A call that an earlier one can still make valid is asked about after that one."""
    (box.workspace / "notes.txt").write_text("one\none\n")
    (box.workspace / "folder").mkdir()
    (box.workspace / "link").symlink_to("notes.txt")
    edit = {"path": "notes.txt", "old_text": "two", "new_text": "2"}
    failing = [("edit_file", edit, "occurs 0 times"), ("edit_file", {**edit, "old_text": "one"}, "occurs 2 times"), ("edit_file", {**edit, "path": "none"}, "no such file"),
               ("edit_file", {**edit, "path": "folder"}, "directory"), ("delete_file", {"path": "none"}, "no such file"), ("delete_file", {"path": "folder"}, "directory"),
               ("write_file", {"path": "folder", "content": ""}, "directory"), ("write_file", {"path": "../x", "content": ""}, "outside"),
               ("write_file", {"path": "link", "content": ""}, "symbolic link"), ("write_file", {"path": "notes.txt/x", "content": ""}, "not a directory"),
               ("delete_file", {"path": "notes.txt/x"}, "not a directory")]
    for tool, arguments, words in failing:
        box.count += 1
        box.provider.plan(tools(call(tool, arguments)), text("done"))
        stream = box.client.turn(f"c{box.count}", "do it")
        result = stream.one("tool_result")
        assert not stream.all("approval_required") and result["is_error"] and words in result["tool_output"], (tool, arguments, result)
        report = box.client.post(f"/chats/c{box.count}/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json
        assert report["match"], report
    refused = [e for e in box.client.get("/audit").expect(200, "audit").json["entries"] if e["event"] == "refused"]
    assert [e["reason"] for e in refused] == ["would_fail"] * len(failing)
    # The edited file is created by the call before it.
    box.provider.plan(tools(call("write_file", {"path": "made.txt", "content": "a"}, "w"), call("edit_file", {"path": "made.txt", "old_text": "a", "new_text": "b"}, "e")),
                      text("done"))
    stream = box.client.start("both", "do it")
    for call_id in ("w", "e"):
        asked = stream.until("approval_required")
        assert asked["call_id"] == call_id
        box.client.approve("both", stream.interaction, asked["approval_id"]).expect(200)
    stream.finish()
    assert (box.workspace / "made.txt").read_text() == "b"


def test_a_deletion(box):
    (box.workspace / "notes.txt").write_text("gone soon\n")
    assert box.change("delete_file", path="notes.txt") == {"path": "notes.txt", "before": "gone soon\n", "after": None, "exists": True}
    assert "no such file" in box.refusal("delete_file", path="none.txt")


def test_it_is_the_file_as_it_is_now(box):
    notes = box.workspace / "notes.txt"
    stream, approval = box.ask("write_file", path="notes.txt", content="new")
    for before in (None, "first", "second"):
        if before:
            notes.write_text(before)
        assert box.preview(approval).expect(200, "file_change").json["before"] == before
    notes.unlink()
    notes.mkdir()
    assert "directory" in box.preview(approval).error(409, "no_change_to_show")["message"]
    box.drop(stream)


def test_secrets_are_not_opened_before_an_approval(make_server, make_home, provider):
    home = make_home()
    home.workspace = home.user
    (home.user / ".ssh").mkdir()
    (home.user / ".ssh" / "config").write_text(NEEDLE)
    (home.user / "sub").mkdir()
    (home.user / "sub" / "config").write_text("harmless")
    box = Box(make_server(provider, home=home), provider)
    for path in (".ssh/config", ".ssh/new", "sub/../.ssh/config"):
        for message in box.refusals(path):
            assert "secrets" in message and "agreed" in message
    # The path was harmless when the call was asked about.
    stream, approval = box.ask("delete_file", path="sub/config")
    box.preview(approval).expect(200, "file_change")
    (home.user / "sub").rename(home.user / "aside")
    (home.user / "sub").symlink_to(".ssh")
    answer = box.preview(approval)
    assert NEEDLE not in answer.body.decode()
    answer.error(409, "no_change_to_show")
    box.drop(stream)


def test_nothing_outside_or_behind_a_link(box):
    outside = box.workspace.parent / "outside"
    outside.mkdir()
    (outside / "notes.txt").write_text(NEEDLE)
    (box.workspace / "real.txt").write_text("here")
    (box.workspace / "link").symlink_to(outside)
    (box.workspace / "filelink").symlink_to(outside / "notes.txt")
    (box.workspace / "alias").symlink_to("real.txt")
    for path in ("../outside/notes.txt", str(outside / "notes.txt"), "/etc/passwd", "link/notes.txt", "link/new.txt", "filelink", "alias"):
        for message in box.refusals(path):
            assert "outside" in message or "symbolic link" in message, (path, message)
            assert NEEDLE not in message


def test_the_servers_own_files_stay_closed(make_server, make_home, provider):
    home = make_home()
    home.data = home.workspace / "chats"
    box = Box(make_server(provider, home=home, plain=True), provider)
    box.change("write_file", path="x", content=NEEDLE)  # so that there is a record
    path = f"chats/c1/interactions/{home.checkpoint_file('c1', 'int_001').name}"
    assert (box.workspace / path).is_file()
    for message in box.refusals(path):
        assert "out of reach" in message and NEEDLE not in message


def test_only_text_of_up_to_a_mebibyte(box):
    (box.workspace / "fits").write_bytes(b"a" * MEBIBYTE)
    (box.workspace / "huge").write_bytes(b"e" + b"a" * MEBIBYTE)
    with open(box.workspace / "hole", "wb") as sparse:
        sparse.truncate(1 << 33)
    (box.workspace / "binary").write_bytes(b"\x7fELF\0e")
    (box.workspace / "latin1").write_bytes(b"caf\xe9 e")
    os.mkfifo(box.workspace / "pipe")
    assert len(box.change("delete_file", path="fits")["before"]) == MEBIBYTE
    for path, why in (("huge", "larger"), ("hole", "larger"), ("binary", "UTF-8"), ("latin1", "UTF-8"), ("pipe", "regular file")):
        for message in box.refusals(path):
            assert why in message or (path == "binary" and "is a binary file" in message)


def test_other_tools_have_nothing_to_show(box):
    (box.workspace / "notes.txt").write_text("old")
    assert box.refusal("run_shell", command="echo x > notes.txt")


def test_what_does_not_wait_is_404(box):
    unknown = "approval_" + "0" * 32
    for approval in (unknown, "x", "..%2F..%2Fetc"):
        assert box.preview(approval).status in (400, 404)
    box.preview(unknown).error(404, "not_found")
    for approved in (True, False):
        stream, approval = box.ask("write_file", path="notes.txt", content="x")
        box.preview(approval).expect(200)
        box.provider.plan(text("done"))
        box.client.approve(f"c{box.count}", "int_001", approval, approved).expect(200)
        box.preview(approval).error(404, "not_found")
        stream.finish()
        box.preview(approval).error(404, "not_found")
    stream, approval = box.ask("write_file", path="notes.txt", content="x")
    box.drop(stream)
    box.preview(approval).error(404, "not_found")
    box.client.post(f"/approvals/{approval}/change", {}).error(405)


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_after_a_restart(make_server, make_home, provider, end):
    home = make_home()
    box = Box(make_server(provider, home=home), provider)
    (box.workspace / "notes.txt").write_text("before\n")
    stream, approval = box.ask("write_file", path="notes.txt", content="after\n")
    getattr(box.server, end)()
    stream.close()
    (box.workspace / "notes.txt").write_text("meanwhile\n")
    client = make_server(provider, home=home).client
    change = client.get(f"/approvals/{approval}/change").expect(200, "file_change").json
    assert change == {"path": "notes.txt", "before": "meanwhile\n", "after": "after\n", "exists": True}
    client.cancel("c1", "int_001").expect(200)


def test_after_a_restart_in_another_workspace(make_server, make_home, provider):
    """The chat keeps its folder: the same question waits, and shows nothing of the other one."""
    home = make_home()
    box = Box(make_server(provider, home=home), provider)
    stream, approval = box.ask("write_file", path="notes.txt", content="after\n")
    box.server.stop()
    stream.close()
    home.workspace = home.path / "another"
    home.workspace.mkdir()
    (home.workspace / "notes.txt").write_text("here\n")
    client = make_server(provider, home=home).client
    assert client.get(f"/approvals/{approval}/change").expect(200, "file_change").json["exists"] is False
    provider.plan(text("done"))
    client.approve("c1", "int_001", approval).expect(200)
    client.attach("c1", "int_001", after=0).finish()
    assert (home.workspace / "notes.txt").read_text() == "here\n" and (home.path / "workspace" / "notes.txt").read_text() == "after\n"


def test_none_of_it_is_kept(make_server, make_home, provider):
    """The preview is not in the records, the log, the events or the model's requests."""
    home = make_home()
    box = Box(make_server(provider, home=home, plain=True), provider)
    (box.workspace / "notes.txt").write_text(NEEDLE)
    (box.workspace / "huge").write_text(NEEDLE * 100_000)
    stream, approval = box.ask("write_file", path="notes.txt", content="new")
    for _ in range(3):
        assert box.preview(approval).expect(200).json["before"] == NEEDLE
    assert not home.find_text(NEEDLE)  # while it runs
    box.provider.plan(text("I see"))
    box.client.approve("c1", "int_001", approval, False).expect(200)
    stream.finish()
    box.refusal("delete_file", path="huge")
    assert NEEDLE not in str([event.data for event in stream.events])
    box.server.stop()
    assert not home.find_text(NEEDLE) and NEEDLE not in box.server.log()
    assert all(NEEDLE not in str(request.conversation) for request in provider.requests)
