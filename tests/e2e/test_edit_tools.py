"""Edits of files: several in one call, patches for models that are used to them, rules, previews and rewind."""

import pytest
from support.provider import call, text, tools
from support.server import API_KEY

PATCH = """*** Begin Patch
*** Update File: a.txt
@@
 one
-two
+2
*** Add File: new/b.txt
+hello
*** Delete File: old.txt
*** End Patch
"""


def configured(provider, **more):
    return {"providers": {"one": {"type": "openai", "base_url": provider.url, "api_key": API_KEY}}, "model": "one/gpt-5.2", **more}


def names(request):
    return {tool["function"]["name"] for tool in request.body["tools"]}


def prepare(home):
    (home.workspace / "a.txt").write_text("one\ntwo\n")
    (home.workspace / "old.txt").write_text("bye\n")


@pytest.mark.parametrize("model, models, told, other", [
    ("one/gpt-5.2", {}, "apply_patch", "edit_file"), ("one/gpt-4o", {}, "edit_file", "apply_patch"),
    ("one/gpt-5.2", {"one/gpt-5.2": {"edit_format": "edit_file"}}, "edit_file", "apply_patch"),
    ("one/own", {"one/own": {"edit_format": "apply_patch"}}, "apply_patch", "edit_file")])
def test_a_model_is_told_of_the_tool_that_it_is_used_to(make_server, provider, model, models, told, other):
    server = make_server(config=configured(provider, models=models))
    provider.plan(text("ok"))
    server.client.turn("c", "hi", model=model)
    assert told in names(provider.requests[0]) and other not in names(provider.requests[0])


def test_a_patch_is_shown_made_recorded_and_taken_back(make_server, make_home, provider):
    home = make_home()
    prepare(home)
    server = make_server(home=home, config=configured(provider))
    provider.plan(tools(call("apply_patch", {"input": PATCH})), text("done"))
    stream = server.client.start("c", "patch it")
    approval = stream.until("approval_required")
    change = server.client.get(f"/approvals/{approval['approval_id']}/change").expect(200, "file_change").json
    files = {each["path"]: (each["before"], each["after"]) for each in [change, *change["more"]]}
    assert files == {"a.txt": ("one\ntwo\n", "one\n2\n"), "new/b.txt": (None, "hello\n"), "old.txt": ("bye\n", None)}
    server.client.approve("c", stream.interaction, approval["approval_id"]).expect(200)
    stream.finish()
    assert (home.workspace / "a.txt").read_text() == "one\n2\n" and (home.workspace / "new" / "b.txt").exists() and not (home.workspace / "old.txt").exists()
    changed = {each["path"] for each in stream.one("files_changed")["changes"]}
    assert {"a.txt", "new/b.txt", "old.txt"} <= changed
    provider.plan(text("again"))
    server.client.edit("c", stream.interaction, "no", files="restore").finish()
    assert (home.workspace / "a.txt").read_text() == "one\ntwo\n" and (home.workspace / "old.txt").read_text() == "bye\n"
    assert not (home.workspace / "new" / "b.txt").exists()


def test_rules_for_other_tools_hold_every_path_of_a_patch(make_server, make_home, provider):
    home = make_home()
    prepare(home)
    rules = [{"action": "deny", "tool": "edit_file", "pattern": "new/**"}]
    server = make_server(home=home, config=configured(provider, approval_mode="approve_all", tools={"rules": rules}))
    provider.plan(tools(call("apply_patch", {"input": PATCH})), text("no"))
    result = server.client.turn("c", "patch it").one("tool_result")
    assert result["is_error"] and "rule 1" in result["tool_output"] and (home.workspace / "a.txt").read_text() == "one\ntwo\n"


def test_several_edits_are_made_or_none(make_server, make_home, provider):
    home = make_home()
    prepare(home)
    server = make_server(home=home, config=configured(provider, approval_mode="approve_all"))
    edits = [{"old_text": "one", "new_text": "1"}, {"old_text": "nothing like it", "new_text": ""}]
    provider.plan(tools(call("edit_file", {"path": "a.txt", "edits": edits})), text("no"))
    result = server.client.turn("c", "edit it").one("tool_result")
    assert result["is_error"] and "edit 2 of 2" in result["tool_output"] and (home.workspace / "a.txt").read_text() == "one\ntwo\n"
    provider.plan(tools(call("edit_file", {"path": "a.txt", "edits": [edits[0], {"old_text": "two", "new_text": "2"}]})), text("yes"))
    assert not server.client.turn("c", "edit it").one("tool_result")["is_error"]
    assert (home.workspace / "a.txt").read_text() == "1\n2\n"
