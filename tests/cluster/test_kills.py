"""Servers that die, sleep or lose their database, at the worst moments: scenarios 1 to 5 and 12 of the study."""
import os
import signal
import time

import pytest
from support.history import Follower, Refused, answers_at, begin, shown, verify_database
from support.provider import Gate, call, text, tools
from support.timing import SLACK, SOON, eventually, halt

FREE = 15  # seconds within which the chats of a dead server are free


def effect(path, name, more=""):
    """A tool call that can be counted, because each adds its name to a file."""
    return call("run_shell", {"command": f"echo {name} >> {path.name}{more}"}, f"call_{name}")


def effects(path):
    return sorted(path.read_text().split()) if path.exists() else []


def starts_within(port, chat, history, since, provider, limit=FREE):
    """Sends a message until the chat takes it and answers. Returns the seconds since `since`."""
    provider.plan(text("free again"))
    number = eventually(lambda: not isinstance(started := begin(port, history, chat, "are you free?"), Refused) and started, "the chat is free", limit * SLACK)
    taken = time.monotonic() - since
    Follower(port, (chat, number), history).follow()
    return taken


def check(cluster, history, at=0):
    history.check(cluster.servers[at].client, lambda: verify_database(cluster.homes[at], cluster.url))


@pytest.mark.limit(90)
def test_1_an_owner_is_killed_while_it_speaks(make_cluster, provider, history, figure):
    cluster = make_cluster(3)
    gate = Gate()
    provider.plan(text(*(f"word {n} " for n in range(50)), gate, "never said"))
    run = ("c", begin(cluster.ports[0], history, "c", "speak"))
    followers = [Follower(cluster.ports[at], run, history).start() for at in (1, 2)]
    for each in followers:
        eventually(lambda each=each: b"word 49 " in each.text(), "the other servers have shown everything")
    cluster.servers[0].kill()
    killed = time.monotonic()
    for each in followers:
        each.wait()
        assert history.ends[run] == "FAILED"
    assert followers[0].text() == followers[1].text()
    stored = cluster.servers[1].client.interaction(*run)
    assert stored["error"]["code"] == "interrupted"
    figure(f"kill -9 of an owner: its chat is free after {starts_within(cluster.ports[2], 'c', history, killed, provider):.1f} s")
    gate.release()
    check(cluster, history, 1)


@pytest.mark.limit(90)
def test_2_killed_within_a_tool_call_which_is_not_made_again(make_cluster, provider, history):
    cluster = make_cluster(2, approval_mode="approve_all")
    os.mkfifo(cluster.homes[0].workspace / "gate")
    done = cluster.homes[0].workspace / "effects"
    provider.plan(tools(effect(done, "once", " && cat gate")))
    run = ("c", begin(cluster.ports[0], history, "c", "do it"))
    follower = Follower(cluster.ports[1], run, history).start()
    follower.await_event("tool_call")
    eventually(lambda: effects(done) == ["once"], "the tool has begun")
    cluster.servers[0].kill()
    follower.wait()
    assert history.ends[run] == "FAILED"
    assert len(provider.requests) == 1
    provider.plan(text("I cannot know"))
    resumed = cluster.servers[1].client.stream("POST", f"/chats/c/interactions/{run[1]}/resume", {})
    resumed.finish()
    told = provider.requests[-1].conversation[-1]
    assert told["role"] == "tool" and "is not known" in told["content"], told
    assert effects(done) == ["once"]
    check(cluster, history, 1)


@pytest.mark.limit(90)
def test_3_killed_after_the_end_is_committed_and_before_it_knows(make_cluster, provider, history):
    cluster = make_cluster(2, ways=[1])
    way = cluster.ways[1]
    gate = Gate()
    provider.plan(text("half ", gate, "whole"))
    run = ("c", begin(cluster.ports[0], history, "c", "speak"))
    follower = Follower(cluster.ports[1], run, history).start()
    follower.await_event("text_delta")
    way.lose_answer(b"reprise.end_turn(", then_cut=True)
    gate.release()
    assert way.swallowed.wait(SOON)
    cluster.servers[0].kill()
    follower.wait()
    assert history.ends[run] == "COMPLETED" and b'"content":"half whole"' in follower.text()
    interactions = cluster.servers[1].client.history("c", "all")["interactions"]
    assert [(each["id"], each["status"]) for each in interactions] == [("int_001", "COMPLETED")]
    starts_within(cluster.ports[1], "c", history, time.monotonic(), provider)
    check(cluster, history, 1)


@pytest.mark.limit(150)
def test_4_killed_while_64_approvals_wait_and_answers_race(make_cluster, provider, history):
    """Each approval is answered at both other servers at the same moment, before and after the take-over."""
    cluster = make_cluster(3)
    done = cluster.homes[0].workspace / "effects"
    provider.answer_with(lambda r: text("done") if r.last["role"] == "tool" else tools(effect(done, r.last["content"])))
    runs = {}
    for number in range(64):
        chat = f"c{number}"
        runs[chat] = begin(cluster.ports[0], history, chat, f"e{number}")
    waiting = eventually(lambda: len(found := cluster.servers[1].client.get("/approvals").json["approvals"]) == 64 and found, "64 wait", SOON * SLACK)
    for run in runs.items():
        shown(cluster.servers[0].client, *run)
    cluster.servers[0].kill()
    for asked in waiting:
        for ports in ((cluster.ports[1], cluster.ports[2]) * 2, (cluster.ports[2],) * 2):
            for answer in answers_at(ports, asked["chat_id"], asked["interaction_id"], asked["approval_id"]):
                if answer.status == 200:
                    history.answered(asked["approval_id"], answer.json)
                else:
                    assert answer.json["error"]["code"] == "already_processed", answer.body
    assert all(len(history.answers[asked["approval_id"]]) == 1 for asked in waiting)
    for chat, number in runs.items():
        Follower(cluster.ports[1], (chat, number), history).follow()
        assert history.ends[chat, number] == "COMPLETED"
    assert effects(done) == sorted(f"e{n}" for n in range(64))
    check(cluster, history, 2)


@pytest.mark.limit(120)
@pytest.mark.parametrize("fault", ["paused", "cut off", "silent"])
def test_5_and_12_an_owner_that_is_away_for_long_comes_back(make_cluster, provider, history, fault):
    """The owner is stopped by a signal, or loses its database. It no longer touches runs that others have taken up."""
    cluster = make_cluster(2, ways=[1])
    owner, other = cluster.servers
    done = cluster.homes[0].workspace / "effects"
    gate = Gate()
    provider.plan(text("half ", gate, "whole"))
    speaks = ("speaks", begin(cluster.ports[0], history, "speaks", "speak"))
    Follower(cluster.ports[0], speaks, history, reconnect=False).start().await_event("text_delta")
    at_owner = owner.client.attach(*speaks, after=0)
    at_owner.until("text_delta")
    provider.plan(tools(effect(done, "asked")))
    waits = ("waits", begin(cluster.ports[0], history, "waits", "ask me"))
    asked = eventually(lambda: other.client.get("/approvals").json["approvals"], "it waits")[0]
    shown(owner.client, *waits)
    away = time.monotonic()
    if fault == "paused":
        halt(owner.process.pid)
    elif fault == "cut off":
        cluster.ways[1].cut()
    else:
        cluster.ways[1].stall()
    if fault != "paused":
        gate.release()
    eventually(lambda: other.client.interaction(*speaks)["status"] == "FAILED", "it is taken over", FREE * SLACK)
    provider.plan(text("done"))
    other.client.approve(*waits, asked["approval_id"]).expect(200)
    history.answered(asked["approval_id"], "at the other")
    Follower(cluster.ports[1], waits, history).follow()
    assert history.ends[waits] == "COMPLETED" and effects(done) == ["asked"]
    if fault != "paused":
        eventually(lambda: owner.client.request("GET", "/readyz").status == 503, "the owner knows that it is cut off")
        assert time.monotonic() - away < 30 * SLACK
    if fault == "paused":
        owner.process.send_signal(signal.SIGCONT)
        gate.release()
    else:
        cluster.ways[1].heal()
    # Its own stream breaks off, without an end and without more text than others have read.
    while at_owner.next():
        pass
    assert "interaction_complete" not in at_owner.names() and "answer" not in at_owner.names()
    assert owner.client.approve(*waits, asked["approval_id"]).status == 400
    for chat in ("speaks", "waits"):
        starts_within(cluster.ports[0], chat, history, time.monotonic(), provider)
    assert effects(done) == ["asked"]
    check(cluster, history)
    check(cluster, history, 1)
