"""Ways to make the chat of one folder act in another, each as a row of a table. None does: nothing of the other folder is read, changed or obeyed."""
import json
import os
import sys
import unicodedata

import pytest
from support.provider import Gate, Reply, call, text, tools
from support.server import processes, sandbox_works
from support.timing import eventually
from test_folder_config import own_configuration
from test_folders import World, files_in

CANARY = "canary-of-theirs-5519"
SWAPS = int(os.environ.get("REPRISE_SWAPS", "12"))  # of a folder and a link; 1,000 to be sure
PATCHER = "test/patcher"  # a model that is offered apply_patch

WAYS, CONTROLS = {}, []


def way(control=False, sandbox=False):
    """Adds a row. `control`: the same act by a chat that works in the other folder must be noticed, so the row can fail."""
    def add(act):
        WAYS[act.__name__] = (act, sandbox)
        if control:
            CONTROLS.append(act.__name__)
        return act
    return add


def tree(top, without):
    """What the files below `top` are."""
    found = {}
    for path in sorted(top.rglob("*")):
        if path == without or without in path.parents:
            continue
        status = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[str(path.relative_to(top))] = (oct(status.st_mode), None if path.is_dir() else status.st_ino, content)
    return found


class Scene:
    """Two folders side by side, and a chat in each. The chat `here` works in `mine`."""

    def __init__(self, world, name, control=False):
        self.world, self.client, self.provider = world, world.client, world.provider
        self.top = world.folder(f"ways/{name}")
        self.mine, self.theirs = world.folder(f"ways/{name}/mine"), world.folder(f"ways/{name}/theirs")
        (self.theirs / "sub").mkdir()
        (self.theirs / "secret").write_text(CANARY)
        (self.theirs / "sub" / "x").write_text("of theirs\n")
        number = list(WAYS).index(name)
        self.here, self.there, self.word = f"here-{number}", f"there-{number}", f"act-{number}-"
        world.create(self.here, self.theirs if control else self.mine).expect(201)
        world.create(self.there, self.theirs).expect(201)
        self.said, self.control = [], control

    def begin(self):
        self.before = tree(self.top, self.mine)

    def use(self, name, arguments, status="COMPLETED", **more):
        self.provider.plan(tools(call(name, arguments)), text("done"))
        result = self.client.turn(self.here, self.word, status, **more).one("tool_result")
        self.said.append(result["tool_output"])
        return result["tool_output"]

    def shell(self, command):
        return self.use("run_shell", {"command": command})

    def ask(self, method, path, body=None, **more):
        answer = self.client.request(method, path, body, **more)
        self.said.append(answer.body.decode(errors="replace"))
        return answer

    def in_mid_run(self, act, name, arguments):
        """Acts while the model is asked, which then calls a tool."""
        gate, reply = Gate(), tools(call(name, arguments))
        self.provider.plan(Reply([gate, *reply.steps]), text("done"))
        stream = self.client.start(self.here, self.word)
        gate.wait_reached()
        act()
        gate.release()
        stream.rest()
        self.said += [each["tool_output"] for each in stream.all("tool_result")]
        return stream

    def check(self):
        now = tree(self.top, self.mine)
        assert now == self.before, {path: (self.before.get(path), now.get(path)) for path in {*now, *self.before} if now.get(path) != self.before.get(path)}
        told = [request.raw.decode() for request in self.provider.requests if self.word in json.dumps(request.body.get("messages"))]
        for each in [*told, *self.said]:
            assert CANARY not in each, each[-2000:]


# --- paths of file tools -----------------------------------------------------------------------------------------------------------

def reads(scene, path):
    for name in ("read_file", "list_files"):
        scene.use(name, {"path": path})
    scene.use("search_files", {"path": path, "pattern": "canary"})
    scene.use("find_files", {"path": path, "pattern": "**"})


def changes(scene, path, old="of theirs"):
    scene.use("edit_file", {"path": path, "old_text": old, "new_text": "by mine"})
    scene.use("edit_file", {"path": path, "edits": [{"old_text": old, "new_text": "by mine"}]})
    scene.use("write_file", {"path": path, "content": "by mine"})
    scene.use("delete_file", {"path": path})


@way()
def reading_through_dots(scene):
    reads(scene, "../theirs/secret")


@way(control=True)
def reading_by_the_full_path(scene):
    reads(scene, str(scene.theirs / "secret"))


@way()
def reading_through_a_link_to_a_file(scene):
    (scene.mine / "link").symlink_to(scene.theirs / "secret")
    reads(scene, "link")


@way()
def reading_through_a_link_to_a_folder(scene):
    (scene.mine / "link").symlink_to("../theirs")
    for path in ("link", "link/secret", "link/../theirs/secret"):
        reads(scene, path)


@way()
def reading_through_proc(scene):
    (scene.mine / "root").symlink_to("/proc/self/root")
    for path in (f"/proc/self/root{scene.theirs}/secret", f"/proc/self/cwd/../{scene.theirs.name}/secret", f"root{scene.theirs}/secret", "/proc/1/root/etc/passwd"):
        reads(scene, path)


@way()
def reading_by_odd_spellings(scene):
    full = str(scene.theirs / "secret")
    for path in (full.upper(), full.replace("/", "//"), f"{scene.mine}/../theirs/./secret", f"{scene.mine}/sub/../../theirs/secret", "..\\theirs\\secret",
                 "%2e%2e/theirs/secret", "\uff0e\uff0e/theirs/secret", "~/../ways", full + "\0", "file://" + full):
        scene.use("read_file", {"path": path})


@way()
def a_folder_whose_name_differs_in_unicode(scene):
    composed, decomposed = (unicodedata.normalize(form, "th\u00e9irs") for form in ("NFC", "NFD"))
    for name in (composed, decomposed):
        (scene.top / name).mkdir()
    (scene.top / decomposed / "secret").write_text(CANARY)
    scene.begin()
    scene.client.request("PATCH", f"/chats/{scene.here}", {"workspace": str(scene.top / composed)}).expect(200)
    for path in (str(scene.top / decomposed / "secret"), f"../{decomposed}/secret"):
        scene.use("read_file", {"path": path})
        scene.use("write_file", {"path": path, "content": "by mine"})


@way()
def a_folder_whose_name_begins_alike(scene):
    other = scene.top / "mine2"
    other.mkdir()
    (other / "secret").write_text(CANARY)
    (other / "x").write_text("of theirs")
    scene.begin()
    reads(scene, str(other / "secret"))
    changes(scene, str(other / "x"))


@way(control=True)
def changing_by_the_full_path(scene):
    changes(scene, str(scene.theirs / "sub" / "x"))


@way()
def changing_through_dots(scene):
    changes(scene, "../theirs/sub/x")
    changes(scene, f"{scene.mine}/../theirs/sub/x")


@way()
def changing_through_a_link_to_a_file(scene):
    (scene.mine / "link").symlink_to(scene.theirs / "sub" / "x")
    changes(scene, "link")


@way()
def changing_through_a_link_to_a_folder(scene):
    (scene.mine / "link").symlink_to(scene.theirs)
    changes(scene, "link/sub/x")
    scene.use("write_file", {"path": "link/new/y", "content": "by mine"})


@way()
def changing_through_proc(scene):
    (scene.mine / "root").symlink_to("/proc/self/root")
    changes(scene, f"root{scene.theirs}/sub/x")
    changes(scene, f"/proc/self/root{scene.theirs}/sub/x")


@way()
def changing_a_file_through_its_other_name(scene):
    """A hard link. The file tools make new files, so the other name keeps its content."""
    scene.use("echo", {"text": "x"})
    os.link(scene.theirs / "sub" / "x", scene.mine / "x")
    scene.use("edit_file", {"path": "x", "old_text": "of theirs", "new_text": "by mine"})
    (scene.mine / "x").unlink()
    os.link(scene.theirs / "sub" / "x", scene.mine / "x")
    scene.use("write_file", {"path": "x", "content": "by mine"})
    scene.ask("POST", f"/chats/{scene.here}/undo", {"files": "restore"}).expect(200)
    scene.use("delete_file", {"path": "x"})


def patch(scene, lines):
    scene.use("apply_patch", {"input": f"*** Begin Patch\n{lines}\n*** End Patch\n"}, model=PATCHER)


@way(control=True)
def a_patch_with_full_paths(scene):
    patch(scene, f"*** Update File: {scene.theirs}/sub/x\n@@\n-of theirs\n+by mine")
    patch(scene, f"*** Add File: {scene.theirs}/new\n+by mine")
    patch(scene, f"*** Delete File: {scene.theirs}/sub/x")


@way()
def a_patch_through_dots_and_links(scene):
    (scene.mine / "link").symlink_to(scene.theirs)
    for path in ("../theirs", "link"):
        patch(scene, f"*** Update File: {path}/sub/x\n@@\n-of theirs\n+by mine")
        patch(scene, f"*** Add File: {path}/new\n+by mine")
        patch(scene, f"*** Delete File: {path}/sub/x")


@way()
def a_patch_that_moves_a_file(scene):
    (scene.mine / "x").write_text("one\n")
    (scene.mine / "link").symlink_to(scene.theirs)
    for path in ("../theirs/moved", f"{scene.theirs}/moved", "link/moved"):
        patch(scene, f"*** Update File: x\n*** Move to: {path}\n@@\n-one\n+two")
    patch(scene, f"*** Update File: {scene.theirs}/sub/x\n*** Move to: stolen\n@@\n-of theirs\n+two")


@way(control=True)
def globs_that_lead_out(scene):
    (scene.mine / "link").symlink_to(scene.theirs)
    for pattern in ("../theirs/**", f"{scene.theirs}/**", "link/**", "**/secret", "../**/secret", "{../theirs,.}/**"):
        found = scene.use("find_files", {"pattern": pattern})
        assert "sub/x" not in found, (pattern, found)
    for more in ({"path": "../theirs"}, {"path": str(scene.theirs)}, {"path": "link"}, {"glob": "../theirs/**"}, {}):
        scene.use("search_files", {"pattern": "canary", **more})


# --- commands ------------------------------------------------------------------------------------------------------------------------

@way(control=True, sandbox=True)
def a_command_with_the_full_path(scene):
    scene.shell(f"cat {scene.theirs}/secret; echo by mine > {scene.theirs}/sub/x; touch {scene.theirs}/new; rm -rf {scene.theirs}/sub")


@way(sandbox=True)
def a_command_with_dots_and_links(scene):
    (scene.mine / "link").symlink_to(scene.theirs)
    scene.shell("cat ../theirs/secret link/secret; echo by mine > ../theirs/sub/x; echo by mine > link/sub/x; cp -rL link copy; ln ../theirs/secret hard; ls -R ..")


@way(sandbox=True)
def a_command_with_proc(scene):
    scene.shell(f"for p in /proc/[0-9]*; do cat $p/root{scene.theirs}/secret $p/cwd/../theirs/secret; done; cat /proc/self/root{scene.theirs}/secret")


@way(sandbox=True)
def a_command_with_mounts_and_namespaces(scene):
    scene.shell(f"unshare -Ur true; mount --bind {scene.theirs} . ; nsenter -t 1 -m cat {scene.theirs}/secret; chroot /proc/1/root cat {scene.theirs}/secret")


@way(sandbox=True)
def a_program_with_the_full_path(scene):
    scene.use("run_code", {"language": "python", "code": f"""
import os, shutil
for act in (lambda: print(open("{scene.theirs}/secret").read()), lambda: open("{scene.theirs}/sub/x", "w").write("by mine"),
            lambda: os.link("{scene.theirs}/secret", "here"), lambda: shutil.rmtree("{scene.theirs}"), lambda: os.rename("{scene.mine}", "{scene.theirs}/mine")):
    try: act()
    except OSError as error: print(error.strerror)
"""})


@way(sandbox=True)
def a_job_with_the_full_path(scene):
    scene.use("run_shell", {"command": f"cat {scene.theirs}/secret; echo by mine > {scene.theirs}/sub/x; echo over > ended", "background": True})
    eventually(lambda: (scene.mine / "ended").exists(), "the job has run")


def job_of_the_other(scene):
    scene.provider.plan(tools(call("run_shell", {"command": f"cat secret; sleep 321{len(scene.word)}", "background": True})), text("done"))
    return scene.client.turn(scene.there, "run it").one("job_started")["job_id"]


@way(sandbox=True)
def the_job_of_another_chat(scene):
    job, marker = job_of_the_other(scene), f"321{len(scene.word)}"
    for name in ("read_job", "stop_job"):
        scene.use(name, {"job_id": job})
    for method, path in (("GET", ""), ("POST", "/stop")):
        assert scene.ask(method, f"/chats/{scene.here}/jobs/{job}{path}").status == 404
    assert eventually(lambda: processes(marker), "the job goes on")
    scene.client.request("DELETE", f"/chats/{scene.there}").expect(200)


# --- files of chats, attachments -----------------------------------------------------------------------------------------------------

@way()
def the_files_of_another_chat(scene):
    kept = scene.client.post(f"/chats/{scene.there}/workspace/files", {"path": "secret"}).expect(201).json["id"]
    for name, arguments in (("read_file", {"path": kept}), ("search_files", {"path": kept, "pattern": "canary"}), ("read_chat_file", {"file_id": kept}),
                            ("delete_chat_file", {"file_id": kept}), ("list_chat_files", {})):
        scene.use(name, arguments)
    assert scene.ask("GET", f"/chats/{scene.here}/files/{kept}/content").status == 404
    assert scene.ask("POST", f"/chats/{scene.here}/interactions", {"user_message": "see", "attachments": [kept]}).status >= 400
    scene.client.get(f"/chats/{scene.there}/files/{kept}").expect(200)


@way()
def attaching_by_a_path(scene):
    (scene.mine / "link").symlink_to(scene.theirs)
    for path in ("../theirs/secret", str(scene.theirs / "secret"), "link/secret", f"/proc/self/root{scene.theirs}/secret"):
        assert scene.ask("POST", f"/chats/{scene.here}/workspace/files", {"path": path}).status >= 400, path
    for words in ("../theirs", "secret", "link"):
        assert "secret" not in scene.ask("GET", f"/workspace/files?chat_id={scene.here}&text={words}").body.decode().replace("link/secret", "?")


# --- folders that move or are replaced ----------------------------------------------------------------------------------------------

@way()
def a_folder_that_became_a_link_between_turns(scene):
    scene.use("echo", {"text": "x"})
    scene.use("write_file", {"path": "x", "content": "1"})
    scene.mine.rename(scene.top / "old")
    scene.mine.symlink_to(scene.theirs)
    scene.begin()
    said = scene.ask("POST", f"/chats/{scene.here}/interactions", {"user_message": "go"}).error(404, "no_such_workspace")
    assert str(scene.mine) in said["message"] and str(scene.theirs) in said["message"]
    assert scene.ask("POST", f"/chats/{scene.here}/undo", {"files": "restore"}).status >= 400
    assert scene.ask("POST", f"/chats/{scene.here}/workspace/files", {"path": "secret"}).status >= 400
    assert scene.ask("GET", f"/workspace/files?chat_id={scene.here}").status >= 400


def replaced(scene, folder):
    def act():
        folder.rename(scene.top / "old")
        folder.symlink_to(scene.theirs)
        scene.begin()
    return act


@way()
def a_folder_that_becomes_a_link_before_a_write(scene):
    stream = scene.in_mid_run(replaced(scene, scene.mine), "write_file", {"path": "new", "content": "by mine"})
    assert str(scene.mine) in stream.one("tool_result")["tool_output"]


@way()
def a_folder_that_becomes_a_link_before_a_read(scene):
    scene.in_mid_run(replaced(scene, scene.mine), "read_file", {"path": "secret"})


@way()
def a_folder_that_becomes_a_link_before_a_search(scene):
    scene.in_mid_run(replaced(scene, scene.mine), "search_files", {"pattern": "canary"})


@way()
def a_folder_that_becomes_a_link_before_a_deletion(scene):
    scene.in_mid_run(replaced(scene, scene.mine), "delete_file", {"path": "sub/x"})


@way(sandbox=True)
def a_folder_that_becomes_a_link_before_a_command(scene):
    stream = scene.in_mid_run(replaced(scene, scene.mine), "run_shell", {"command": "cat secret; echo by mine > new"})
    assert str(scene.mine) in stream.one("tool_result")["tool_output"]


@way(sandbox=True)
def a_folder_that_becomes_a_link_before_a_job(scene):
    stream = scene.in_mid_run(replaced(scene, scene.mine), "run_shell", {"command": "cat secret; echo by mine > new", "background": True})
    assert not stream.all("job_started")


@way()
def a_folder_that_becomes_a_link_before_a_hook(scene):
    (scene.mine / "reprise.json").write_text(json.dumps({"hooks": [{"event": "before_tool", "command": ["/bin/sh", "-c", "cat > /dev/null; pwd > heard"]}]}))
    scene.world.home.trust(scene.mine / "reprise.json")
    stream = scene.in_mid_run(replaced(scene, scene.mine), "echo", {"text": "x"})
    assert str(scene.mine) in json.dumps(stream.events[-1].data) + "".join(scene.said)


@way()
def a_folder_above_that_becomes_a_link(scene):
    deep, other = scene.top / "up" / "deep", scene.theirs / "deep"
    for folder in (deep, other):
        folder.mkdir(parents=True)
    (other / "secret").write_text(CANARY)
    scene.client.request("PATCH", f"/chats/{scene.here}", {"workspace": str(deep)}).expect(200)
    stream = scene.in_mid_run(replaced(scene, scene.top / "up"), "write_file", {"path": "new", "content": "by mine"})
    assert stream.one("tool_result")["is_error"]
    scene.ask("POST", f"/chats/{scene.here}/interactions", {"user_message": "go"}).error(404, "no_such_workspace")


@way(sandbox=True)
def a_folder_that_another_chat_swaps_all_the_time(scene):
    """A chat of the folder above puts a link in its place and takes it away again, while the other chat's tools run."""
    above = f"above-{scene.here}"
    outside = scene.world.folder("outside-" + scene.here)
    (outside / "secret").write_text(CANARY)
    scene.world.create(above, scene.top).expect(201)
    swap = f"ln -s {outside} link; while :; do mv mine aside; mv link mine; mv mine link; mv aside mine; done"
    scene.provider.plan(tools(call("run_shell", {"command": swap, "background": True})), text("done"))
    job = scene.client.turn(above, "swap them").one("job_started")["job_id"]
    before = tree(outside, scene.mine)
    for turn in range(SWAPS):
        arguments = {"run_shell": {"command": "cat secret; echo by mine > new"}, "write_file": {"path": f"new{turn}", "content": "by mine"}, "read_file": {"path": "secret"}}
        name = sorted(arguments)[turn % 3]
        scene.provider.plan(tools(call(name, arguments[name])), text("done"))
        try:
            stream = scene.client.start(scene.here, scene.word)
        except AssertionError as refused:
            assert "no_such_workspace" in str(refused) or "workspace_not_allowed" in str(refused)  # gone, or another one now
            scene.provider.forget_plan()
            continue
        while event := stream.next():
            if event.name == "approval_required":  # it looked at the folder when it was a link
                scene.client.approve(scene.here, stream.interaction, event["approval_id"], approved=False)
        scene.said += [json.dumps(each.data) for each in stream.events]
    scene.client.post(f"/chats/{above}/jobs/{job}/stop").expect(200)
    assert tree(outside, scene.mine) == before
    scene.begin()


@way()
def folders_that_change_places_and_a_rewind(scene):
    """A rewind puts back what the chat has changed, and nothing in a folder that has come in its place."""
    scene.use("echo", {"text": "x"})
    (scene.mine / "sub").mkdir()
    (scene.mine / "sub" / "x").write_text("first\n")
    scene.use("write_file", {"path": "sub/x", "content": "second\n"})
    scene.mine.rename(scene.top / "aside")
    scene.theirs.rename(scene.mine)
    (scene.top / "aside").rename(scene.theirs)
    scene.ask("POST", f"/chats/{scene.here}/undo", {"files": "restore"}).error(409, "workspace_conflict")
    scene.theirs.rename(scene.top / "aside")
    scene.mine.rename(scene.theirs)
    (scene.top / "aside").rename(scene.mine)


@way()
def a_rewind_through_a_link(scene):
    scene.use("echo", {"text": "x"})
    (scene.mine / "sub").mkdir()
    (scene.mine / "sub" / "x").write_text("first\n")
    scene.use("write_file", {"path": "sub/x", "content": "of theirs\n"})
    (scene.mine / "sub" / "x").unlink()
    (scene.mine / "sub").rmdir()
    (scene.mine / "sub").symlink_to(scene.theirs / "sub")
    for body in ({"files": "restore"}, {"files": "force"}):
        scene.ask("POST", f"/chats/{scene.here}/undo", body)


@way()
def a_chat_that_moves_and_a_rewind(scene):
    scene.use("write_file", {"path": "sub/x", "content": "by mine\n"})
    scene.use("write_file", {"path": "sub/x", "content": "of theirs\n"})  # as it is there
    first = scene.client.history(scene.here)["interactions"][0]["id"]
    scene.ask("PATCH", f"/chats/{scene.here}", {"workspace": str(scene.theirs)}).expect(200)
    chat = f"/chats/{scene.here}"
    for path, body in ((f"{chat}/interactions/{first}/edit", {"new_user_message": "again"}), (f"{chat}/head", {"interaction_id": first}), (f"{chat}/undo", {}),
                       (f"{chat}/fork", {"interaction_id": first, "chat_id": f"fork-{scene.here}"})):
        scene.ask("POST", path, {**body, "files": "restore"}).error(409, "workspace_moved")


@way()
def a_chat_that_is_moved_while_it_runs(scene):
    moved = []
    stream = scene.in_mid_run(lambda: moved.append(scene.ask("PATCH", f"/chats/{scene.here}", {"workspace": str(scene.theirs)})), "write_file",
                              {"path": "new", "content": "by mine"})
    assert moved[0].status == 409 and not stream.one("tool_result")["is_error"] and files_in(scene.mine) == ["new"]


@way()
def a_message_that_waits_and_names_another_folder(scene):
    refused = []

    def act():
        body = {"user_message": "later", "workspace": str(scene.theirs), "if_running": "queue"}
        refused.append(scene.ask("POST", f"/chats/{scene.here}/interactions", body))
    scene.in_mid_run(act, "echo", {"text": "x"})
    refused[0].error(409, "works_elsewhere")
    assert len(scene.client.history(scene.here)["interactions"]) == 1


# --- nested folders -----------------------------------------------------------------------------------------------------------------

@way()
def a_nested_folder_and_the_one_around_it(scene):
    inner = scene.theirs / "inner"
    inner.mkdir()
    scene.client.request("PATCH", f"/chats/{scene.here}", {"workspace": str(inner)}).expect(200)
    for path in ("../secret", str(scene.theirs / "secret")):
        reads(scene, path)
    scene.begin()
    for path in ("../sub/x", str(scene.theirs / "sub" / "x")):
        changes(scene, path)


@way()
def the_settings_of_the_folder_around_it(scene):
    inner = scene.theirs / "inner"
    inner.mkdir()
    (scene.theirs / "reprise.json").write_text(json.dumps({"model": "test/of-theirs", "max_rounds": 1}))
    scene.world.home.trust(scene.theirs / "reprise.json")
    scene.client.request("PATCH", f"/chats/{scene.here}", {"workspace": str(inner)}).expect(200)
    scene.begin()
    scene.use("echo", {"text": "x"})
    assert scene.provider.requests[-1].body["model"] == "scripted"


# --- grants, settings, instructions -------------------------------------------------------------------------------------------------

@way()
def a_grant_for_always_of_another_folder(scene):
    write, mode = tools(call("write_file", {"path": "x", "content": "1"})), {"approval_mode": "ask"}
    scene.provider.plan(write, text("done"))
    stream = scene.client.start(scene.there, "go", **mode)
    scene.client.approve(scene.there, stream.interaction, stream.until("approval_required")["approval_id"], scope="always").expect(200)
    stream.finish()
    scene.begin()
    scene.provider.plan(write, text("done"))
    stream = scene.client.start(scene.here, scene.word, **mode)
    asked = stream.until("approval_required")
    assert files_in(scene.mine) == []
    scene.client.approve(scene.here, stream.interaction, asked["approval_id"], approved=False)
    stream.rest()


@way()
def an_approval_of_a_chat_that_moves(scene):
    """A chat with an open question is not idle, so its approved call cannot run elsewhere."""
    scene.provider.plan(tools(call("write_file", {"path": "x", "content": "1"})), text("done"))
    stream = scene.client.start(scene.here, scene.word, approval_mode="ask")
    asked = stream.until("approval_required")
    assert scene.ask("PATCH", f"/chats/{scene.here}", {"workspace": str(scene.theirs)}).status == 409
    scene.client.approve(scene.here, stream.interaction, asked["approval_id"]).expect(200)
    stream.finish()
    assert files_in(scene.mine) == ["x"]


@way()
def includes_and_links_of_instructions(scene):
    """AGENTS.md has no includes, and a link that leads out of the folder is not followed."""
    (scene.theirs / "AGENTS.md").write_text(CANARY)
    (scene.mine / "AGENTS.md").write_text(f"@../theirs/secret\n@{scene.theirs}/secret\n@import ../theirs/secret\n[x](../theirs/secret)\n{{{{include ../theirs/secret}}}}\n")
    (scene.mine / "CLAUDE.md").symlink_to(scene.theirs / "AGENTS.md")
    for path in (".agents/skills/their/SKILL.md", ".reprise/agents/their.md", ".reprise/commands/their.md"):
        (scene.mine / path).parent.mkdir(parents=True)
        (scene.mine / path).symlink_to(scene.theirs / "AGENTS.md")
    scene.begin()
    for each in scene.client.get(f"/instructions?workspace={scene.mine}").expect(200).json["files"]:
        if each.get("digest"):
            scene.ask("POST", f"/instructions/trust?workspace={scene.mine}", {"path": each["path"], "digest": each["digest"]})
    scene.use("echo", {"text": "x"})
    scene.ask("POST", "/instructions/expand", {"command": "their", "workspace": str(scene.mine)})
    scene.use("research", {"question": "what is there?", "agent": "their"})


@way()
def instructions_skills_commands_and_agents_of_another_folder(scene):
    head = f"---\nname: their\ndescription: {CANARY}\n---\n{CANARY}\n"
    for path in ("AGENTS.md", ".agents/skills/their/SKILL.md", ".reprise/agents/their.md", ".reprise/commands/their.md"):
        (scene.theirs / path).parent.mkdir(parents=True, exist_ok=True)
        (scene.theirs / path).write_text(head)
        scene.world.home.trust(scene.theirs / path)
    scene.begin()
    scene.use("echo", {"text": "x"})
    assert "there is no agent" in scene.use("research", {"question": "do it", "agent": "their"})
    scene.ask("POST", f"/instructions/expand?workspace={scene.mine}", {"command": "their"}).error(404, "no_such_command")


@way()
def a_sub_agent_and_its_files(scene):
    agent = scene.mine / ".reprise" / "agents" / "own.md"
    agent.parent.mkdir(parents=True)
    agent.write_text("---\ndescription: writes\n---\nWrite.\n")
    scene.world.home.trust(agent)
    (scene.mine / "link").symlink_to(scene.theirs)
    calls = [call("write_file", {"path": path, "content": "by mine"}, f"w{i}") for i, path in enumerate(("../theirs/new", str(scene.theirs / "new"), "link/new", "made"))]
    scene.provider.plan(tools(call("research", {"question": scene.word, "agent": "own"}, "r")), tools(*calls, call("read_file", {"path": "link/secret"}, "r1")),
                        text("done"), text("done"))
    scene.client.turn(scene.here, scene.word)
    assert (scene.mine / "made").exists()


SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        if message.get("id") == "r": print(json.dumps(message), file=open(sys.argv[1] + "/roots", "w"), flush=True)
        continue
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if message["method"] == "tools/list":
        print(json.dumps({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}), flush=True)
        result = {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}
    if message["method"] == "tools/call":
        open(sys.argv[1] + "/called", "w").close()
        result = {"content": [{"type": "text", "text": "called"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def with_server(scene, folder, name):
    program = scene.world.home.path / "server.py"
    program.write_text(SERVER)
    file = folder / "reprise.json"
    file.write_text(json.dumps({"mcpServers": {name: {"command": sys.executable, "args": [str(program), str(folder)]}}}))
    scene.world.home.trust(file)
    servers = lambda: scene.client.get(f"/tools?workspace={folder}").expect(200).json["servers"]  # noqa: E731
    eventually(lambda: [(each["name"], each["state"]) for each in servers()] == [(name, "ready")], "the server is ready")


@way()
def the_mcp_server_of_another_folder(scene):
    with_server(scene, scene.theirs, "their")
    eventually(lambda: (scene.theirs / "roots").exists(), "it has got its roots")
    scene.begin()
    scene.use("their__hello", {})


@way()
def the_roots_and_the_folder_of_an_mcp_server(scene):
    with_server(scene, scene.mine, "own")
    eventually(lambda: (scene.mine / "roots").exists() and (scene.mine / "roots").read_text().endswith("\n"), "it has got its roots")
    roots = json.loads((scene.mine / "roots").read_text())["result"]["roots"]
    assert [each["uri"] for each in roots] == [f"file://{scene.mine}"]


@way()
def the_hooks_of_another_folder(scene):
    for folder in (scene.mine, scene.theirs):
        (folder / "reprise.json").write_text(json.dumps({"hooks": [{"event": "before_tool", "command": ["/bin/sh", "-c", "cat > /dev/null; pwd > heard"]}]}))
        scene.world.home.trust(folder / "reprise.json")
    scene.begin()
    scene.use("echo", {"text": "x"})
    assert (scene.mine / "heard").read_text() == f"{scene.mine}\n"


@way()
def the_memory_of_another_folder_s_chats(scene):
    scene.provider.plan(text(CANARY))
    scene.client.turn(scene.there, "say it")
    for everywhere in (False, True):
        scene.use("recall", {"query": "canary theirs", "everywhere": everywhere})


# --- chats that are copied, repeated requests ---------------------------------------------------------------------------------------

@way()
def a_fork_with_another_folder(scene):
    scene.use("write_file", {"path": "x", "content": "1"})
    last = scene.client.history(scene.here)["interactions"][-1]["id"]
    body = {"interaction_id": last, "chat_id": f"fork-{scene.here}"}
    if scene.ask("POST", f"/chats/{scene.here}/fork", {**body, "workspace": str(scene.theirs)}).status >= 400:
        scene.ask("POST", f"/chats/{scene.here}/fork", body).expect(201)
    scene.here = body["chat_id"]
    assert scene.client.history(scene.here)["workspace"] == str(scene.mine)
    scene.use("write_file", {"path": "y", "content": "1"})
    assert files_in(scene.mine) == ["x", "y"]


@way()
def an_imported_chat_that_names_another_folder(scene):
    scene.use("echo", {"text": "x"})
    scene.use("write_file", {"path": "imported", "content": "1"})
    exported = scene.client.get(f"/chats/{scene.here}/export?format=json").expect(200).body.decode()
    document = json.loads(exported.replace(str(scene.mine), str(scene.theirs)))
    document["workspace"] = str(scene.theirs)
    for turn in document["interactions"]:
        turn["record"].pop("requests")  # the model was told of the other folder, so they would not add up to their digests
    answer = scene.client.post("/import", document)
    if answer.status >= 400:
        document.pop("workspace")
        answer = scene.client.post("/import", document)
    scene.here = answer.expect(201).json["id"]
    for body in ({"files": "restore"}, {"files": "force"}):
        scene.ask("POST", f"/chats/{scene.here}/undo", body)
    scene.use("write_file", {"path": "imported", "content": "2"})
    assert (scene.world.home.workspace / "imported").read_text() == "2"


@way()
def a_request_that_is_sent_again_for_another_folder(scene):
    key, body = {"Idempotency-Key": "k-" + scene.here}, {"user_message": scene.word, "on_disconnect": "continue"}
    scene.provider.plan(tools(call("write_file", {"path": "x", "content": "1"})), text("done"))
    scene.ask("POST", f"/chats/{scene.here}/interactions", {**body, "workspace": str(scene.mine)}, headers=key).expect(200)
    asked = len(scene.provider.requests)
    assert scene.ask("POST", f"/chats/{scene.here}/interactions", {**body, "workspace": str(scene.theirs)}, headers=key).status >= 400
    scene.ask("POST", f"/chats/{scene.here}/interactions", {**body, "workspace": str(scene.mine)}, headers=key).expect(200)
    assert len(scene.provider.requests) == asked and files_in(scene.mine) == ["x"]


# --- folders that nobody may work in ------------------------------------------------------------------------------------------------

@way()
def the_server_s_own_folders(scene):
    home = scene.world.home
    chat = home.data / scene.here
    for name, to in (("link", home.data), ("up", home.path)):
        (scene.mine / name).symlink_to(to)
    for path in (home.data, chat, home.path, home.keys.parent, scene.mine / "link", scene.mine / "link" / scene.here, scene.mine / "up", f"/proc/self/root{home.data}",
                 f"{home.data}/", f"{home.data}/../data", "/", "//", "/proc", "/proc/self", "/proc/self/fd", "/proc/1", "/sys", "/dev", "/dev/fd"):
        for method, to, body in (("POST", "/chats", {"id": "none"}), ("PATCH", f"/chats/{scene.here}", {}), ("POST", "/chats/none/interactions", {"user_message": "go"})):
            answer = scene.ask(method, to, {**body, "workspace": str(path)})
            assert answer.status in (403, 404), (method, path, answer.status, answer.body)
    assert scene.client.get("/chats/none").status == 404


@way()
def folders_that_are_none(scene):
    for path in ("mine", "./mine", "../theirs", " ", str(scene.theirs / "secret"), str(scene.top / "none"), str(scene.theirs) + "\n", "~", "$HOME", "file:///tmp",
                 "/" + "x" * 5000, "/" + "x/" * 5000, 7, True, [str(scene.theirs)], {"path": str(scene.theirs)}):
        answer = scene.ask("POST", f"/chats/{scene.here}/interactions", {"user_message": "go", "workspace": path})
        assert answer.status in (400, 404, 409), (path, answer.status)
    assert not scene.client.history(scene.here)["interactions"]


@way()
def the_list_of_tools_and_files_of_a_folder_that_is_not_allowed(scene):
    for path in (scene.world.home.data, "/", "/proc"):
        for route in ("/tools", "/instructions"):
            assert scene.ask("GET", f"{route}?workspace={path}").status == 403, (route, path)


# --- the table runs -----------------------------------------------------------------------------------------------------------------

@pytest.fixture
def world(make_server, provider):
    models = {PATCHER: {"edit_format": "apply_patch"}}
    world = World(make_server(provider, config={"approval_mode": "approve_all", "models": models}), provider)
    own_configuration(world.home, provider)  # `reprise trust` reads it
    return world


def test_there_are_enough_ways():
    assert len(WAYS) >= 40, len(WAYS)


PARTS = 6


@pytest.mark.lenient("calls tools that were not offered")
@pytest.mark.limit(120 + SWAPS)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_chat_acts_in_another_folder(world, part):
    failed = {}
    for name, (act, sandbox) in list(WAYS.items())[part::PARTS]:
        if sandbox and not sandbox_works():
            continue
        scene = Scene(world, name)
        scene.begin()
        try:
            act(scene)
            scene.check()
        except AssertionError as error:
            failed[name] = str(error)
            world.provider.forget_plan()
    assert not failed, "\n\n".join(f"--- {name}: {why}" for name, why in failed.items())


@pytest.mark.parametrize("name", CONTROLS)
def test_a_crossing_would_be_noticed(world, name):
    """The same act, where nothing holds it back."""
    if WAYS[name][1] and not sandbox_works():
        pytest.skip("no sandbox")
    scene = Scene(world, name, control=True)
    scene.begin()
    with pytest.raises(AssertionError):
        WAYS[name][0](scene)
        scene.check()
