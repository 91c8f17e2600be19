"""A call runs only as approved: the tool as shown, its arguments byte for byte, the workspace, the sandbox. Any difference needs a new approval."""
import json
import subprocess

import pytest
from support.mcp import ChangeableServer
from support.provider import Gate, Reply, call, ending, text, tools
from support.server import BINARY, sandbox_works, without_bubblewrap
from support.timing import SLACK, eventually

SHELL = {"command": "echo ran >> log.txt"}


class World:
    """A home with an MCP server whose tool may change, and the changes that may happen between an approval and its use."""

    def __init__(self, make_server, make_home, provider):
        self.make_server, self.provider = make_server, provider
        self.home = make_home()
        self.mcp = ChangeableServer(self.home.path)
        self.options, self.trust, self.tools = {}, {}, {}
        self.turns = 0
        self.workspaces = [self.home.workspace]

    def start(self, **trust):
        if trust:
            self.trust = trust
        config = {"mcpServers": {"s": self.mcp.configuration(**self.trust)}, "tools": self.tools}
        self.server = self.make_server(self.provider, home=self.home, config=config, **self.options)
        self.client = self.server.client
        self.ready()

    def ready(self, which=""):
        def listed():
            servers = self.client.get("/tools" + which).expect(200, "tools").json["servers"]
            return servers[0]["state"] == "ready"
        eventually(listed, "the MCP server is ready", 30 * SLACK)

    def tool(self):
        return next((t for t in self.client.get("/tools").json["tools"] if t["name"] == "s__do"), None)

    def call(self, name, arguments, chat, gate=None):
        self.turns += 1
        reply = tools(call(name, arguments, f"call_{self.turns}"))
        if gate:
            reply = Reply([*reply.steps[:1], gate, *reply.steps[1:]])
        self.provider.plan(reply, text("done"))
        return self.client.start(chat, f"turn {self.turns}")

    def agree(self, tool, arguments, **answer):
        stream = self.call(tool, arguments, "c")
        asked = stream.until("approval_required")
        self.client.approve("c", stream.interaction, asked["approval_id"], **answer).expect(200)
        stream.finish()
        return asked

    def runs_unasked(self, tool, arguments):
        stream = self.call(tool, arguments, "c")
        if asked_or_done(stream).name == "tool_result":
            stream.finish()
            return True
        self.provider.forget_plan()
        self.client.cancel("c", stream.interaction)
        stream.finish("CANCELLED")
        return False

    def ran(self):
        log = sum((w / "log.txt").read_text().count("ran") for w in self.workspaces if (w / "log.txt").exists())
        return log + len(self.mcp.calls())

    # --- changes; each returns True if it happened while the server ran

    def announced(self, **offer):
        before = self.tool()
        self.mcp.offer(**offer)
        self.mcp.announce()
        eventually(lambda: self.tool() != before, "the tool has changed", 30 * SLACK)
        return True

    def change(self, what):
        if what == "tool":
            return self.announced(description="does something else")
        if what == "schema":
            return self.announced(properties={"n": {}, "extra": {"type": "string"}})
        if what == "workspace":
            other = self.home.path / "other"
            other.mkdir()
            self.workspaces.append(other)
            self.client.request("PATCH", "/chats/c", {"workspace": str(other)}).expect(200)
            self.ready("?chat_id=c")
            return True
        self.server.stop()
        if what == "tool, while it was away":
            self.mcp.offer(description="does something else")
        elif what == "server program":
            self.mcp.arguments = ["--other"]
        elif what == "sandbox":
            self.options["wrapper"] = without_bubblewrap()
        elif what == "folders of the sandbox":
            named = self.home.path / "named"
            named.mkdir()
            self.tools = {"sandbox_paths": {"write": [str(named)]}}
        elif what == "limits of commands":
            self.tools = {"limits": {"memory_mb": 0}}
        self.start()
        return False


@pytest.fixture
def world(make_server, make_home, provider):
    return World(make_server, make_home, provider)


def asked_or_done(stream):
    event = stream.next()
    while event.name not in ("approval_required", "tool_result"):
        event = stream.next()
    return event


MCP_CHANGES = ["tool", "schema", "tool, while it was away", "server program", "workspace"]
SHELL_CHANGES = ["workspace", "sandbox", "folders of the sandbox", "limits of commands"]
PAIRS = [("s__do", {"n": 1}, change) for change in MCP_CHANGES] + [("run_shell", SHELL, change) for change in SHELL_CHANGES]


def needs(change):
    if change == "sandbox" and not (sandbox_works() and without_bubblewrap()):
        pytest.skip("bubblewrap cannot be used, or not be hidden, on this machine")


@pytest.mark.parametrize("tool,arguments,change", [pair for pair in PAIRS if pair[2] != "workspace"])  # it does not change while a call waits
def test_an_approval_is_not_spent_on_what_was_not_shown(world, tool, arguments, change):
    needs(change)
    world.start()
    stream = world.call(tool, arguments, "c")
    asked = stream.until("approval_required")
    interaction = stream.interaction
    if not world.change(change):
        stream.close()
        stream = world.client.attach("c", interaction)
    # The change is noticed when the server starts, when the answer comes, or when the MCP server is back.
    world.client.approve("c", interaction, asked["approval_id"], arguments_digest=asked["arguments_digest"])
    again = stream.until("approval_required")
    while again["approval_id"] == asked["approval_id"]:
        again = stream.until("approval_required")
    assert world.ran() == 0
    assert again["arguments_digest"] == asked["arguments_digest"] and again["terms_digest"] != asked["terms_digest"]
    withdrawn = next(e for e in stream.events if e.name == "rejected")
    assert withdrawn["approval_id"] == asked["approval_id"] and withdrawn["superseded"] is True
    waiting, = world.client.get("/approvals").expect(200, "approvals").json["approvals"]
    assert (waiting["approval_id"], waiting["terms_digest"]) == (again["approval_id"], again["terms_digest"])
    assert change != "sandbox" or "WITHOUT a sandbox" in again["reason"]
    world.client.approve("c", interaction, asked["approval_id"]).error(400, "already_processed")
    world.client.approve("c", interaction, again["approval_id"]).expect(200)
    stream.finish()
    assert world.ran() == 1


def test_an_answer_on_outdated_terms_is_refused_as_stale(world):
    world.start()
    stream = world.call("s__do", {"n": 1}, "c")
    asked = stream.until("approval_required")
    world.change("tool")
    answer = {"approved": True, "scope": "always"}
    refused = world.client.post(f"/approvals/{asked['approval_id']}", answer).error(409, "stale")
    assert "asked about again" in refused["message"]
    again = stream.until("approval_required")
    assert world.client.get("/grants").json == {"grants": []}
    # A rejection does not depend on the terms.
    world.change("schema")
    world.client.approve("c", stream.interaction, again["approval_id"], approved=False).expect(200)
    stream.finish()
    assert world.ran() == 0 and stream.one("tool_result")["is_error"]


def test_a_call_that_does_not_fit_the_tool_any_more_ends(world):
    world.start()
    stream = world.call("s__do", {"n": 1}, "c")
    asked = stream.until("approval_required")
    world.announced(properties={"n": {"type": "string"}})
    world.client.approve("c", stream.interaction, asked["approval_id"]).error(409, "stale")
    stream.finish()
    assert "does not fit it any more" in stream.one("tool_result")["tool_output"] and world.ran() == 0


def test_a_tool_that_returns_unchanged_is_the_tool_that_was_shown(world):
    world.start()
    stream = world.call("s__do", {"n": 1}, "c")
    asked = stream.until("approval_required")
    world.announced(there=False)
    world.announced()
    world.client.approve("c", stream.interaction, asked["approval_id"]).expect(200)
    stream.finish()
    assert world.ran() == 1


@pytest.mark.parametrize("scope", ["chat", "always"])
@pytest.mark.parametrize("tool,arguments,change", PAIRS)
def test_a_grant_covers_no_call_on_other_terms(world, tool, arguments, change, scope):
    needs(change)
    world.start()
    if tool == "s__do":  # the tool needs consent first
        world.agree(tool, {"n": 0})
    asked = world.agree(tool, arguments, scope=scope)
    ran = world.ran()
    assert world.runs_unasked(tool, arguments)  # the grant covers the approved call
    world.change(change)
    assert not world.runs_unasked(tool, arguments)
    assert world.ran() == ran + 1
    if scope == "always":
        grant, = world.client.get("/grants").expect(200, "grants").json["grants"]
        assert grant["terms_digest"] == asked["terms_digest"]


@pytest.mark.parametrize("change", MCP_CHANGES)
def test_a_consent_is_for_the_tool_as_it_was(world, change):
    world.start(trust_annotations=True)
    world.agree("s__do", {"n": 0})
    assert world.runs_unasked("s__do", {"n": 1})
    ran = world.ran()
    world.change(change)
    assert not world.runs_unasked("s__do", {"n": 1})
    assert world.ran() == ran


def test_a_consent_under_another_key_does_not_count(world):
    world.start(trust_annotations=True)
    world.agree("s__do", {"n": 0})
    assert world.runs_unasked("s__do", {"n": 1})
    ran = world.ran()
    world.server.stop()
    world.server.check_files = False
    world.home.keys.rename(world.home.keys.with_suffix(".lost"))
    world.options["arguments"] = ["--new-key"]
    world.start(trust_annotations=True)
    world.server.check_files = False
    stream = world.call("s__do", {"n": 1}, "other")
    assert asked_or_done(stream).name == "approval_required"
    world.client.cancel("other", stream.interaction)
    stream.finish("CANCELLED")
    assert world.ran() == ran


@pytest.mark.parametrize("change", ["tool", "schema"])
@pytest.mark.parametrize("why", ["consent", "chat", "always"])
def test_what_changes_while_the_model_speaks_asks(world, why, change):
    world.start(trust_annotations=why == "consent")
    world.agree("s__do", {"n": 0})
    if why != "consent":
        world.agree("s__do", {"n": 1}, scope=why)
    assert world.runs_unasked("s__do", {"n": 1})
    ran = world.ran()
    gate = Gate()
    stream = world.call("s__do", {"n": 1}, "c", gate)
    gate.wait_reached()  # the model has the tools and is writing
    world.change(change)
    gate.release()
    asked = asked_or_done(stream)
    assert asked.name == "approval_required" and "HAS CHANGED" in asked["reason"]
    world.client.approve("c", stream.interaction, asked["approval_id"]).expect(200)
    stream.finish()
    assert world.ran() == ran + 1


class Keys:
    """Takes the key of a stopped world away and puts it back. Meanwhile another key is in its place."""

    def __init__(self, world):
        self.world, self.file = world, world.home.keys
        self.kept = self.file.with_suffix(".kept")
        self.kid = json.loads(self.file.read_text())["keys"][0]["kid"]

    def refused(self):
        """The message of a start that is refused."""
        with pytest.raises(AssertionError, match="the server ended with 1") as refusal:
            self.world.start()
        return str(refusal.value)

    def exchange(self):
        """The server starts neither without a key nor with another one, but it does with --new-key."""
        self.file.rename(self.kept)
        for _ in range(2):
            assert f"sealed with {self.kid}, which is not in {self.file}" in self.refused()
            if not self.file.exists():
                subprocess.run([str(BINARY), "keys", "init"], env=self.world.home.environment(), cwd=self.world.home.path, check=True, capture_output=True)
        self.world.options["arguments"] = ["--new-key"]
        self.start()

    def put_back(self):
        """Deletes the chat sealed meanwhile, because the start would miss its key."""
        self.world.client.request("DELETE", "/chats/d").expect(200)
        self.world.server.stop()
        self.kept.rename(self.file)
        del self.world.options["arguments"]
        self.start()

    def start(self):
        self.world.start()
        self.world.server.check_files = False  # files of both keys exist


def asks_anew(world, tool, arguments):
    stream = world.call(tool, arguments, "d")
    asked = asked_or_done(stream)
    world.provider.forget_plan()
    world.client.cancel("d", stream.interaction)
    stream.finish("CANCELLED")
    assert asked.name == "approval_required", asked
    return asked


@pytest.mark.parametrize("agreed", ["approval", "chat", "always", "consent"])
def test_nothing_that_was_sealed_under_another_key_is_obeyed(world, agreed):
    tool, arguments = ("s__do", {"n": 1}) if agreed == "consent" else ("run_shell", SHELL)
    world.start(**({"trust_annotations": True} if agreed == "consent" else {}))
    world.provider.plan(text("hello"))
    world.client.turn("c", "hello")
    stream = world.call(tool, arguments, "c")
    asked = stream.until("approval_required")
    interaction = stream.interaction
    world.server.check_files = False
    if agreed == "approval":
        world.provider.forget_plan()
        world.server.kill()
        stream.close()
    else:
        scope = {} if agreed == "consent" else {"scope": agreed}
        world.client.approve("c", interaction, asked["approval_id"], **scope).expect(200)
        stream.finish()
        assert world.runs_unasked(tool, arguments)
        world.server.stop()
    ran = world.ran()
    assert ran == (0 if agreed == "approval" else 2)

    keys = Keys(world)
    keys.exchange()
    # The chat with the approval cannot be continued, and its waiting call is not listed.
    assert world.client.get("/approvals").expect(200, "approvals").json["approvals"] == []
    world.client.post(f"/approvals/{asked['approval_id']}", {"approved": True}).error(404)
    world.client.approve("c", interaction, asked["approval_id"]).check_error()
    world.client.post("/chats/c/interactions", {"user_message": "again"}).error(422, "integrity_auth")
    anew = asks_anew(world, tool, arguments)
    assert anew["approval_id"] != asked["approval_id"] and anew["arguments_digest"] == asked["arguments_digest"]
    if agreed == "always":  # the grants exist but cannot be opened
        world.client.get("/grants").error(422, "integrity_auth")
    else:
        assert world.client.get("/grants").expect(200, "grants").json == {"grants": []}
    assert world.ran() == ran

    keys.put_back()
    if agreed == "approval":
        waiting, = world.client.get("/approvals").expect(200, "approvals").json["approvals"]
        assert waiting["approval_id"] == asked["approval_id"]
        world.provider.plan(text("done"))
        stream = world.client.attach("c", interaction)
        world.client.approve("c", interaction, asked["approval_id"], arguments_digest=asked["arguments_digest"]).expect(200)
        stream.finish()
    else:
        assert world.runs_unasked(tool, arguments)
    assert world.ran() == ran + 1


def test_arguments_reach_the_server_as_the_bytes_that_were_shown(world):
    world.start()
    shown = '{"n":[18446744073709551617, 1e2,\n 1.0, -0, "\\u00e4\\/"]}'
    stream = world.call("s__do", shown, "c")
    asked = stream.until("approval_required")
    assert asked["tool_input"] == shown
    world.client.approve("c", stream.interaction, asked["approval_id"]).expect(200)
    stream.finish()
    sent, = world.mcp.calls()
    assert shown.replace("\n", " ") in sent  # a message is a single line


def test_an_answers_arguments_are_taken_as_they_are_written(world):
    world.start()
    stream = world.call("s__do", {"n": 1}, "c")
    asked = stream.until("approval_required")
    written = '{"n": 1e2, "m": 18446744073709551617}'
    body = '{"approval_id":"%s","approved":true,"arguments": %s }' % (asked["approval_id"], written)
    world.client.request("POST", f"/chats/c/interactions/{stream.interaction}/approve", body.encode()).expect(200)
    stream.finish()
    assert stream.one("approved")["tool_input"] == written
    assert written in world.mcp.calls()[0]


TWICE = ['{"path":"harmless.txt","content":"x","path":"evil.txt"}', r'{"path":"harmless.txt","content":"x","p\u0061th":"evil.txt"}']


@pytest.mark.parametrize("arguments", TWICE)
def test_a_member_that_comes_twice_is_refused_in_arguments(client, provider, server, arguments):
    provider.plan(tools(call("write_file", arguments)), text("I see"))
    stream = client.turn("c", "write")
    assert "approval_required" not in stream.names()
    result = stream.one("tool_result")
    assert result["is_error"] and 'the member "path" twice' in result["tool_output"]
    assert not list(server.home.workspace.iterdir())


def test_a_member_that_comes_twice_is_refused_in_an_answer(client, provider, server):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"})), text("ok"))
    stream = client.start("c", "write")
    asked = stream.until("approval_required")
    path = f"/approvals/{asked['approval_id']}"
    for body in ('{"approved":false,"approved":true}', '{"approved":true,"arguments":{"path":"a","content":"x","path":"b"}}',
                 r'{"approved":true,"\u0061pproved":true}', json.dumps({"approved": True, "arguments": TWICE[0]})):
        client.request("POST", path, body.encode()).error(400, "duplicate_member")
    assert client.get("/approvals").json["approvals"]
    client.post(path, {"approved": True}).expect(200)
    stream.finish()
    assert [f.name for f in server.home.workspace.iterdir()] == ["a.txt"]


def test_a_member_that_comes_twice_is_refused_in_every_body(client):
    for method, path, body in [("POST", "/chats/c/interactions", '{"user_message":"a","user_message":"b"}'), ("POST", "/chats", '{"id":"a","id":"b"}'),
                               ("POST", "/chats/c/interactions/int_001/edit", '{"new_user_message":"a","new_user_message":"b"}')]:
        client.request(method, path, body.encode()).error(400, "duplicate_member")
