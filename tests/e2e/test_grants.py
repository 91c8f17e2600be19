"""Standing grants, for a chat and for always: listed, taken back, and never wider than shown."""
import json
import subprocess

import pytest
from support.mcp import server_of
from support.provider import call, text, tools
from support.server import BINARY
from support.timing import SLACK, at_once, eventually

LOG = {"command": "echo x >> log.txt"}


def asks(client, provider, chat, arguments=LOG, tool="run_shell", call_id="call_1"):
    provider.plan(tools(call(tool, arguments, call_id)))
    stream = client.start(chat, "do it")
    return stream, stream.until("approval_required")


def answer(client, provider, stream, asked, chat, **more):
    provider.plan(text("ok"))
    client.approve(chat, stream.interaction, asked["approval_id"], **more).expect(200, "approve_response")
    stream.finish()


def runs_unasked(client, provider, chat, arguments=LOG, call_id="call_9"):
    provider.plan(tools(call("run_shell", arguments, call_id)), text("ok"))
    return "approval_required" not in client.turn(chat, "again").names()


def lines(server):
    log = server.home.workspace / "log.txt"
    return log.read_text().count("x") if log.exists() else 0


@pytest.mark.parametrize("plain", [False, True])
def test_always_counts_in_every_chat_and_after_a_restart_until_it_is_revoked(make_server, provider, plain):
    server = make_server(provider, plain=plain)
    client = server.client
    assert client.get("/grants").expect(200, "grants").json == {"grants": []}
    stream, asked = asks(client, provider, "a")
    assert "approve_always" in asked["allowed_decisions"]
    answer(client, provider, stream, asked, "a", scope="always")
    assert stream.one("approved")["scope"] == "always"
    assert client.interaction("a", "int_001")["final_agent_state"]["grants"] == []
    grant, = client.get("/grants").expect(200, "grants").json["grants"]
    assert (grant["tool_name"], grant["arguments_digest"]) == ("run_shell", asked["arguments_digest"])
    assert json.loads(grant["tool_input"]) == LOG
    assert runs_unasked(client, provider, "b")
    file = server.home.data / ".grants"
    assert (b"echo x" in file.read_bytes()) == plain

    server.kill()
    server = make_server(provider, server.home, plain=plain)
    client = server.client
    kept, = client.get("/grants").json["grants"]
    assert {**kept, "uses": 0, "used_at": None} == {**grant, "used_at": None}  # the count of uses is kept, too
    assert runs_unasked(client, provider, "c")
    assert lines(server) == 3
    # Only equal calls are covered: another blank or another tool makes a different call.
    stream, asked = asks(client, provider, "d", '{"command":  "echo x >> log.txt"}')
    client.cancel("d", stream.interaction)
    stream.finish("CANCELLED")
    # An edit restores the chat's grants; a grant for always never was one of them.
    provider.plan(tools(call("run_shell", LOG, "call_5")), text("ok"))
    edited = client.edit("c", "int_001", "once more")
    edited.finish()
    assert "approval_required" not in edited.names()

    revoked = client.request("DELETE", f"/grants/{grant['id']}").expect(200, "grant_revoked").json
    assert revoked == {"status": "revoked", "grant_id": grant["id"]}
    client.request("DELETE", f"/grants/{grant['id']}").error(404)
    assert client.get("/grants").json == {"grants": []}
    stream, asked = asks(client, provider, "e")
    client.cancel("e", stream.interaction)
    stream.finish("CANCELLED")
    server.stop()
    again = make_server(provider, server.home, plain=plain)
    assert again.client.get("/grants").json == {"grants": []}


def test_edited_arguments_are_what_is_granted(client, provider, server):
    stream, asked = asks(client, provider, "a", {"command": "echo nothing"})
    answer(client, provider, stream, asked, "a", scope="always", arguments=json.dumps(LOG))
    assert runs_unasked(client, provider, "b")
    stream, asked = asks(client, provider, "c", {"command": "echo nothing"})
    client.cancel("c", stream.interaction)
    stream.finish("CANCELLED")
    assert lines(server) == 2


def test_a_rejection_grants_nothing(client, provider):
    stream, asked = asks(client, provider, "a")
    provider.plan(text("ok"))
    client.approve("a", "int_001", asked["approval_id"], False, scope="always").expect(200)
    stream.finish()
    assert client.get("/grants").json == {"grants": []}


@pytest.mark.parametrize("grant_id", ["grant_" + "0" * 32, "x", "..", "%00", "grant_" + "0" * 500])
def test_unknown_grants_are_404(client, provider, grant_id):
    provider.plan(text("ok"))
    client.turn("a", "hello")
    for path in (f"/grants/{grant_id}", f"/chats/a/grants/{grant_id}"):
        assert client.request("DELETE", path).status in (400, 404)
    client.request("DELETE", "/chats/nowhere/grants/x").error(404)
    client.get("/chats/nowhere/grants").error(404)
    client.request("DELETE", "/grants/x", "[]", headers={"Content-Type": "application/json"}).error(400)
    client.post("/grants", {}).error(405)


def test_fifty_answers_at_once_grant_once(client, provider, server):
    stream, asked = asks(client, provider, "a")
    provider.plan(text("ok"))
    statuses = at_once([lambda: client.approve("a", "int_001", asked["approval_id"], scope="always").status] * 50)
    assert sorted(statuses) == [200] + [400] * 49
    stream.finish()
    assert lines(server) == 1 and len(client.get("/grants").json["grants"]) == 1


def test_a_damaged_file_grants_nothing_and_is_named(make_server, provider):
    server = make_server(provider)
    stream, asked = asks(server.client, provider, "a")
    answer(server.client, provider, stream, asked, "a", scope="always")
    server.stop()
    file = server.home.data / ".grants"
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    again = make_server(provider, server.home)
    again.client.get("/grants").error(422, "integrity_auth")
    stream, asked = asks(again.client, provider, "b")
    answer(again.client, provider, stream, asked, "b", scope="always")
    assert len(again.client.get("/grants").json["grants"]) == 1
    aside, = server.home.data.glob(".grants.damaged.*")
    assert aside.read_bytes() == damaged


def test_grants_of_a_chat_are_listed_and_taken_back_and_an_edit_brings_them_back(client, provider, server):
    stream, asked = asks(client, provider, "a")
    assert client.get("/chats/a/grants").expect(200, "chat_grants").json == {"grants": []}
    answer(client, provider, stream, asked, "a", scope="chat")
    grant, = client.get("/chats/a/grants").expect(200, "chat_grants").json["grants"]
    assert grant["arguments_digest"] == asked["arguments_digest"]

    stream, asked = asks(client, provider, "a", {"command": "echo other"}, call_id="call_2")
    assert client.get("/chats/a/grants").json["grants"] == [grant]
    client.request("DELETE", f"/chats/a/grants/{grant['id']}").error(409, "busy")
    client.cancel("a", stream.interaction)
    stream.finish("CANCELLED")

    client.request("DELETE", f"/grants/{grant['id']}").error(404)
    client.request("DELETE", f"/chats/a/grants/{grant['id']}").expect(200, "grant_revoked")
    client.request("DELETE", f"/chats/a/grants/{grant['id']}").error(404)
    assert client.get("/chats/a/grants").json == {"grants": []}
    change = client.interaction("a", "int_003")
    assert (change["user_message"], change["status"]) == ("", "COMPLETED")
    event, = change["agent_events"]
    assert (event["type"], event["grants"]) == ("GRANTS_UPDATED", [])
    stream, asked = asks(client, provider, "a", call_id="call_3")
    client.cancel("a", stream.interaction)
    stream.finish("CANCELLED")

    # The grant existed before it was removed by hand.
    provider.plan(tools(call("run_shell", LOG, "call_4")), text("ok"))
    edited = client.edit("a", "int_002", "with the grant")
    edited.finish()
    assert "approval_required" not in edited.names() and lines(server) == 2
    again, = client.get("/chats/a/grants").json["grants"]
    assert again["id"] == grant["id"] and again["uses"] == 1


def test_a_grant_outlives_a_kill_right_after_it_was_given(make_server, provider):
    server = make_server(provider)
    stream, asked = asks(server.client, provider, "a", {"command": "sleep 30"})
    server.client.approve("a", "int_001", asked["approval_id"], scope="always").expect(200)
    server.kill()
    again = make_server(provider, server.home)
    assert len(again.client.get("/grants").json["grants"]) == 1


def test_a_tool_that_has_changed_asks_whatever_was_granted_and_consent_does_not_bring_it_back(make_server, make_home, provider):
    home = make_home()
    description = home.path / "description"

    def serve(text_of_it):
        description.write_text(text_of_it)
        server = make_server(provider, home, config={"mcpServers": {"f": server_of('{"name": "act", "description": open(' + repr(str(description)) + ').read(), "inputSchema": {"type": "object"}}', '"done"')}})
        eventually(lambda: any(t["name"] == "f__act" for t in server.client.get("/tools").json["tools"]), "the tool is there", 30 * SLACK)
        return server

    def approval_of(server, chat, **more):
        stream, asked = asks(server.client, provider, chat, {}, "f__act")
        answer(server.client, provider, stream, asked, chat, **more)
        return asked

    server = serve("does this")
    assert "approve_always" not in approval_of(server, "a")["allowed_decisions"]  # asks for consent
    assert "approve_always" in approval_of(server, "b", scope="always")["allowed_decisions"]
    provider.plan(tools(call("f__act", {})), text("ok"))
    assert "approval_required" not in server.client.turn("c", "again").names()
    server.stop()
    server = serve("does something else")
    assert len(server.client.get("/grants").json["grants"]) == 1
    approval_of(server, "d")  # asked about, and consented to
    assert server.client.get("/grants").json == {"grants": []}
    approval_of(server, "e")


@pytest.mark.parametrize("plain", [False, True])
def test_a_file_of_an_earlier_time_brings_nothing_back(make_server, provider, plain):
    server = make_server(provider, plain=plain)
    stream, asked = asks(server.client, provider, "a")
    answer(server.client, provider, stream, asked, "a", scope="always")
    file = server.home.data / ".grants"
    before = file.read_bytes()
    grant, = server.client.get("/grants").json["grants"]
    server.client.request("DELETE", f"/grants/{grant['id']}").expect(200)
    server.stop()
    file.write_bytes(before)
    found = subprocess.run([str(BINARY), "verify", "--json", "--data-dir", str(server.home.data), *(["--plain"] if plain else [])],
                           env=server.home.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False)
    assert [(p["file"], p["kind"]) for p in json.loads(found.stdout)["problems"]] == [(".grants", "rollback")]
    server = make_server(provider, server.home, plain=plain)
    server.check_files = False
    assert ".grants: it is not the version that was stored last" in server.log()
    stream, asked = asks(server.client, provider, "b")
    server.client.cancel("b", stream.interaction)
    stream.finish("CANCELLED")
