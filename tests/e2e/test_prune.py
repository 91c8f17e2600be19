"""DELETE of a superseded branch: it goes to the trash, the audit log has it, and nothing else changes."""
import json
import subprocess

import pytest
from support.feed import Feed
from support.provider import Gate, failure, text
from support.server import BINARY


def remove(client, interaction, chat="c"):
    return client.request("DELETE", f"/chats/{chat}/interactions/{interaction}")


def ids(client, chat="c"):
    return [i["id"] for i in client.history(chat, "all")["interactions"]]


@pytest.fixture
def branched(server, provider):
    """int_001 - int_002 - int_003, and int_004 - int_005 as another branch after int_001, where the chat ends."""
    client = server.client
    for n in range(3):
        provider.plan(text(f"answer {n}"))
        client.turn("c", f"question {n}")
    provider.plan(text("other"))
    client.edit("c", "int_002", "another question").finish()
    provider.plan(text("and more"))
    client.turn("c", "go on")
    return server


def test_a_superseded_branch_goes_with_all_that_continues_it(branched, provider, make_server):
    client, feed = branched.client, Feed(branched.client)
    before = client.history("c")
    answer = remove(client, "int_002").expect(200, "branch_removed").json
    assert answer == {"status": "deleted", "chat_id": "c", "interactions": ["int_002", "int_003"]}
    feed.until("head_moved", chat_id="c")
    feed.close()
    assert ids(client) == ["int_001", "int_004", "int_005"]
    assert [i["id"] for i in client.history("c")["interactions"]] == [i["id"] for i in before["interactions"]]
    assert client.get("/chats/c/interactions/int_002").status == 404 and remove(client, "int_002").status == 404
    removed = [p.name for p in (branched.home.data / ".trash" / "branches").glob("c.*/*")]
    assert sorted(removed) == ["int_002.json", "int_003.json"]
    lines = client.get("/audit").expect(200, "audit").json["entries"]
    assert [(e["event"], e["chat_id"], e["interaction_id"]) for e in lines] == [("pruned", "c", "int_002")]
    # Numbers are not reused, the chat continues and is valid, after a restart, too.
    provider.plan(text("after"))
    assert client.turn("c", "next").interaction == "int_006"
    branched.stop()
    again = make_server(provider, home=branched.home)
    assert ids(again.client) == ["int_001", "int_004", "int_005", "int_006"]
    report = subprocess.run([str(BINARY), "verify", "--json", "--data-dir", str(branched.home.data)], env=branched.home.environment(), capture_output=True, check=False)
    assert report.returncode == 0 and json.loads(report.stdout)["ok"], report.stdout


def test_what_a_branch_continues_becomes_the_end_of_one(branched):
    client = branched.client
    remove(client, "int_003").expect(200)
    assert ids(client) == ["int_001", "int_002", "int_004", "int_005"]
    client.post("/chats/c/head", {"interaction_id": "int_002"}).expect(200)
    remove(client, "int_004").expect(200)
    assert ids(client) == ["int_001", "int_002"]


def test_what_is_not_superseded_stays(branched, provider):
    client = branched.client
    for interaction in ("int_001", "int_004", "int_005"):
        remove(client, interaction).error(409, "on_head_branch")
    remove(client, "int_009").error(404)
    remove(client, "int_001", "nobody").error(404)
    client.get("/chats/c/interactions/int_002").expect(200)
    gate = Gate()
    provider.plan(text("busy", gate))
    stream = client.start("c", "run")
    stream.until("text_delta")
    remove(client, "int_002").error(409, "busy")
    gate.release()
    stream.finish()
    remove(client, "int_002").expect(200)


def test_what_another_one_goes_on_from_stays(client, provider):
    provider.plan(failure(400, "no"))
    client.turn("c", "try", status="FAILED")
    provider.plan(text("now"))
    client.stream("POST", "/chats/c/interactions/int_001/resume", {}).finish()
    remove(client, "int_001").error(409, "still_used")
    assert client.history("c")["interactions"][-1]["status"] == "COMPLETED"
