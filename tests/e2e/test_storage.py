"""Long chats are small on disk and complete for every reader; any number of readers see the same bytes; a start does not read finished interactions."""
import json
import os
import shutil
import subprocess

import pytest
from support.provider import Gate, text
from support.server import BINARY, open_sealed
from support.timing import SLACK

SAID = 4000


def say(server, provider, chat, number):
    provider.plan(text(f"answer {number} " + "a" * (SAID * 3 // 4)))
    server.client.turn(chat, f"question {number} " + "q" * (SAID // 4))


def reprise(home, *arguments):
    done = subprocess.run([str(BINARY), *map(str, arguments), "--data-dir", str(home.data)], env=home.environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, cwd=home.workspace)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def long_chat(make_server, make_home, provider):
    """A chat of 60 turns with 240 KB of text: its home, and a server started after it was written."""
    home = make_home()
    first = make_server(provider, home=home)
    for number in range(1, 61):
        say(first, provider, "long", number)
    first.close()
    return home, make_server(provider, home=home)


def messages(state):
    return [(m["role"], m["content"]) for m in state["messages"]]


def expected(turns):
    return [m for n in range(1, turns + 1)
            for m in (("user", f"question {n} " + "q" * (SAID // 4)), ("assistant", f"answer {n} " + "a" * (SAID * 3 // 4)))]


def test_everybody_sees_the_whole_state(long_chat):
    home, server = long_chat
    file = home.checkpoint_file("long", "int_060")
    assert file.stat().st_size < 3 * SAID
    assert "linked" in open_sealed(file, home.keys)["final_agent_state"]
    whole = server.client.interaction("long", "int_060")
    assert messages(whole["final_agent_state"]) == expected(60) and "linked" not in whole["final_agent_state"]
    assert json.loads(reprise(home, "cat", file)) == whole
    assert json.loads(reprise(home, "cat", "long/int_060")) == whole
    assert json.loads(reprise(home, "verify", "--json"))["ok"]
    lines = reprise(home, "export", "long", "--format", "jsonl").splitlines()
    assert len(lines) == 1 and len(json.loads(lines[0])["messages"]) == 120
    # A short state is complete in one file.
    assert messages(open_sealed(home.checkpoint_file("long", "int_010"), home.keys)["final_agent_state"]) == expected(10)


def test_an_edit_far_back_and_a_turn_at_the_end_start_from_the_right_state(long_chat, make_server, provider):
    home, server = long_chat
    for restart in (False, True):
        if restart:
            server.stop()
            server = make_server(provider, home=home)
        provider.plan(text("edited"))
        server.client.edit("long", "int_040", "instead").finish()
        assert [(m["role"], m["content"]) for m in provider.requests[-1].conversation] == expected(39) + [("user", "instead")]
    server.client.post("/chats/long/head", {"interaction_id": "int_060"}).expect(200)
    provider.plan(text("on"))
    server.client.turn("long", "and on")
    assert [(m["role"], m["content"]) for m in provider.requests[-1].conversation] == expected(60) + [("user", "and on")]


def test_exported_and_imported_it_is_the_same(long_chat, make_home):
    home, server = long_chat
    reprise(home, "export", "long", "--output", home.path / "copy")
    other = make_home()
    other.keys.parent.mkdir(parents=True)
    shutil.copy(home.keys, other.keys)
    reprise(other, "import", home.path / "copy")
    came = json.loads(reprise(other, "cat", "long/int_060"))
    kept = json.loads(reprise(home, "cat", "long/int_060"))
    kept["final_agent_state"].pop("request")  # new turns do not repeat requests that somebody may have changed
    assert came.pop("imported") is True and came == kept
    assert sum(f.stat().st_size for f in other.data.rglob("int_*.json")) < 6 * 60 * SAID


def test_a_damaged_file_before_it_is_named_and_the_rest_can_be_read(long_chat):
    home, server = long_chat
    server.check_files = False
    file = home.checkpoint_file("long", "int_050")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    problem = server.client.get("/chats/long/interactions/int_060").error(422)
    assert problem["code"] == "integrity_auth" and "int_050" in json.dumps(problem)
    assert messages(server.client.interaction("long", "int_049")["final_agent_state"]) == expected(49)
    assert server.client.get("/chats/long/interactions/int_060/events").status in (200, 422)
    history = server.client.get("/chats/long").expect(200).json["interactions"]
    assert [i["user_message"][:12].strip() for i in history if i["id"] == "int_060"] == ["question 60"]


def raw_events(client, chat, after=0):
    """The raw response of the stream, from the event after `after`."""
    connection = client._connection()
    connection.request("GET", f"/chats/{chat}/interactions/int_001/events?after_seq={after}", headers={"Accept": "text/event-stream"})
    response = connection.getresponse()
    assert response.status == 200
    return connection, response


def numbered(content):
    return b"\n\n".join(block for block in content.split(b"\n\n") if block.startswith(b"id: "))


@pytest.mark.limit(60)
def test_a_hundred_readers_see_the_same_bytes_live_after_it_and_after_a_restart(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    gate = Gate()
    provider.plan(text(*[f"before {n} " for n in range(50)], gate, *[f"after {n} " for n in range(50)]))
    stream = server.client.start("c", "go")
    stream.until("text_delta")
    live = [raw_events(server.client, "c") for _ in range(100)]
    gate.release()
    stream.finish()
    seen = {numbered(response.read()) for _, response in live}
    assert len(seen) == 1
    assert seen.pop().count(b"event: text_delta") > 1

    def after_the_end(client, cursor):
        return {numbered(raw_events(client, "c", cursor)[1].read()) for _ in range(100)}

    recorded = after_the_end(server.client, 0)
    assert len(recorded) == 1
    numbers = [event.seq for event in stream.events]
    tails = {cursor: after_the_end(server.client, cursor) for cursor in (1, numbers[-2])}
    server.stop()
    again = make_server(provider, home=home)
    assert after_the_end(again.client, 0) == recorded
    for cursor, tail in tails.items():
        assert after_the_end(again.client, cursor) == tail and len(tail) == 1


@pytest.mark.limit(120)
def test_ten_thousand_finished_chats_do_not_slow_a_start(make_server, make_home, provider, figure):
    home = make_home()
    first = make_server(provider, home=home)
    provider.plan(text("hi"))
    first.client.turn("c", "hello")
    first.stop()
    # Hard links suffice, because a start must not read them.
    for number in range(10_000):
        chat = home.data / f"copy-{number}"
        os.mkdir(chat, 0o700)
        os.mkdir(chat / "interactions", 0o700)
        os.link(home.data / "c" / "chat.json", chat / "chat.json")
        os.link(home.data / "c" / "interactions" / "int_001.json", chat / "interactions" / "int_001.json")
    second = make_server(provider, home=home)
    second.check_files = False
    figure(f"10,000 finished chats: ready in {second.start_seconds * 1000:.0f} ms")
    assert second.start_seconds < 0.2 * SLACK
    second.client.get("/healthz").expect(200)
    second.stop()
    for number in range(10_000):
        shutil.rmtree(home.data / f"copy-{number}")
