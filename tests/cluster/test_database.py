"""A database that crashes, stops, falls silent or loses its answers: scenarios 3, 8, 9 and 10 of the study."""
import os
import random
import signal
import threading
import time

import pytest
from support.client import Client
from support.history import Follower, Refused, begin, verify_database
from support.provider import Gate, call, text, tools
from support.timing import SLACK, SOON, eventually, halt

FREE = 15
AWAY = float(os.environ.get("REPRISE_CLUSTER_AWAY", "12"))  # seconds; 60 in the study


def check(cluster, history, at=0):
    history.check(cluster.servers[at].client, lambda: verify_database(cluster.homes[at], cluster.url))


def turn(port, history, chat, message, limit=FREE * SLACK):
    """Sends a message and follows its run to the end. Retries while the chat is busy or the server answers 503."""
    def started():
        answer = begin(port, history, chat, message)
        if isinstance(answer, Refused):
            assert (answer.status, answer.code) in ((409, "busy"), (503, "database_unavailable")), answer
            return None
        return answer
    number = eventually(started, f"{chat} takes a message", limit)
    follower = Follower(port, (chat, number), history).follow()
    assert follower.done, (chat, number, follower.blocks)
    return number


# Bytes that identify each statement.
LOST = {"begin": b"reprise.begin_turn_at(", "append": b"reprise.append_record(", "question": b"insert into reprise.questions", "answer": b"set answer = $3",
        "finish": b"reprise.end_turn("}


@pytest.mark.limit(120)
@pytest.mark.parametrize("which", LOST)
@pytest.mark.parametrize("fault", ["once", "and is away"])
def test_9_the_answer_to_a_commit_is_lost(make_cluster, provider, history, which, fault):
    """This holds also if the database is then away for longer than any request waits."""
    cluster = make_cluster(2, ways=[1])
    way = cluster.ways[1]
    done = cluster.homes[0].workspace / "effects"
    provider.answer_with(lambda r: text("written ", "and done") if r.last["role"] == "tool" else text("yes ", "it ", "is") if "free" in r.last["content"] else tools(
        call("run_shell", {"command": "echo once >> effects"}), say="I will"))
    way.lose_answer(LOST[which], then_cut=fault != "once")

    def healed():
        if fault != "once" and way.swallowed.wait(SOON):
            time.sleep(7)  # longer than a request waits (five seconds)
            way.heal()
    healing = threading.Thread(target=healed)
    healing.start()
    first = begin(cluster.ports[0], history, "c", "do it", limit=3 * SOON)
    if not isinstance(first, Refused):
        run = ("c", first)
        follower = Follower(cluster.ports[1], run, history).start()
        asked = follower.await_event("approval_required", limit=3 * SOON)
        taken = [cluster.servers[0].client.approve(*run, asked["approval_id"])]
        if taken[0].status == 503:
            healing.join()
            taken.append(cluster.servers[1].client.approve(*run, asked["approval_id"]))
        assert any(answer.status == 200 or answer.json["error"]["code"] == "already_processed" for answer in taken), [answer.body for answer in taken]
        follower.wait()
        assert history.ends[run] == "COMPLETED" and done.read_text() == "once\n"
    else:
        assert fault != "once" and which == "begin" and first.code == "database_unavailable", first
    healing.join()
    assert way.swallowed.is_set()
    turn(cluster.ports[0], history, "c", "are you free?")
    turn(cluster.ports[1], history, "c", "are you free?")
    interactions = cluster.servers[1].client.history("c", "all")["interactions"]
    assert [each["id"] for each in interactions] == [f"int_{n:03}" for n in range(1, len(interactions) + 1)], "no number is missing or duplicate"
    check(cluster, history)


@pytest.mark.limit(120)
@pytest.mark.parametrize("fault", ["once", "and is away"])
def test_9_the_answer_to_a_claim_is_lost(make_cluster, provider, history, fault):
    cluster = make_cluster(2, ways=[2])
    way = cluster.ways[2]
    gate = Gate()
    provider.plan(text("half ", gate, "whole"))
    run = ("c", begin(cluster.ports[0], history, "c", "speak"))
    Follower(cluster.ports[1], run, history, reconnect=False).start().await_event("text_delta")
    way.lose_answer(b"for update of r skip locked", then_cut=fault != "once")
    cluster.servers[0].kill()
    assert way.swallowed.wait(FREE * SLACK)
    if fault != "once":
        time.sleep(7)
        way.heal()
    Follower(cluster.ports[1], run, history).start().wait(2 * FREE)
    assert history.ends[run] == "FAILED"
    provider.plan(text("yes"))
    turn(cluster.ports[1], history, "c", "are you free?")
    check(cluster, history, 1)


@pytest.mark.limit(180)
@pytest.mark.parametrize("seed", [1, 2])
def test_8_a_crash_under_load(own_postgres, make_cluster, provider, history, seed, figure):
    """Everything that any server has shown is stored, and no number has two meanings."""
    cluster = make_cluster(3)
    generator = random.Random(seed)
    done = cluster.homes[0].workspace / "effects"
    provider.answer_with(lambda r: text(*[f"{r.last['content'][:20]} {n} " for n in range(20)]))
    stop = time.monotonic() + 12
    followers, lock = [], threading.Lock()

    def client(number):
        own = random.Random(seed * 100 + number)
        count = 0
        while time.monotonic() < stop:
            port, chat = own.choice(cluster.ports), f"c{number}"
            try:
                started = begin(port, history, chat, f"{chat} message {count}")
            except OSError:
                continue
            if isinstance(started, Refused):
                assert (started.status, started.code) in ((409, "busy"), (503, "database_unavailable")), started
                continue
            count += 1
            follower = Follower(lambda: own.choice(cluster.ports), (chat, started), history)
            with lock:
                followers.append(follower)
            follower.follow()

    threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(8)]
    for each in threads:
        each.start()
    crashes = 0
    while time.monotonic() < stop - 3:
        time.sleep(generator.uniform(0.5, 1.5))
        own_postgres.crash()
        time.sleep(generator.uniform(0, 0.5))
        own_postgres.start()
        crashes += 1
    for each in threads:
        each.join()
    assert all(each.done for each in followers), [each.run for each in followers if not each.done]
    assert {history.ends[each.run] for each in followers} == {"COMPLETED"}
    figure(f"{crashes} crashes of PostgreSQL under load: {len(followers)} turns, all as they were shown")
    assert not done.exists()
    check(cluster, history)


@pytest.mark.limit(240)
@pytest.mark.parametrize("fault", ["shut down", "paused"])
def test_10_the_database_is_away_for_long(own_postgres, make_cluster, provider, history, fault):
    """Everything pauses: no run fails, no tool starts, new requests get 503. Afterwards all continues."""
    cluster = make_cluster(2, approval_mode="approve_all")
    done = cluster.homes[0].workspace / "effects"
    gates = [Gate(), Gate()]
    provider.plan(text("half ", gates[0], "whole"))
    speaks = ("speaks", begin(cluster.ports[0], history, "speaks", "speak"))
    gates[0].wait_reached()
    acting = tools(call("run_shell", {"command": "echo once >> effects"}), say="I will")
    acting.steps.insert(2, gates[1])
    provider.plan(acting)
    acts = ("acts", begin(cluster.ports[0], history, "acts", "act"))
    followers = [Follower(cluster.ports[1], run, history, limit=120).start() for run in (speaks, acts)]
    for each in followers:
        each.await_event("text_delta")
    if fault == "shut down":
        own_postgres.crash()
    else:
        everyone = [own_postgres.process.pid, *own_postgres.children()]
        for pid in everyone:
            halt(pid)
    since = time.monotonic()
    provider.plan(text("done"))
    for gate in gates:
        gate.release()
    refused = cluster.servers[0].client.post("/chats/new/interactions", {"user_message": "now?"}, limit=3 * SOON)
    refused.error(503, "database_unavailable")
    eventually(lambda: Client(cluster.ports[0]).get("/readyz").status == 503, "it says that it is not ready", limit=3 * SOON)
    shown = [each.last for each in followers]
    while time.monotonic() < since + AWAY:
        time.sleep(0.2)
        assert not done.exists() and [each.last for each in followers] == shown
    if fault == "shut down":
        own_postgres.start()
    else:
        for pid in reversed(everyone):
            os.kill(pid, signal.SIGCONT)
    for each in followers:
        each.wait()
    ends = {each.run[0]: history.ends[each.run] for each in followers}
    assert ends == {"speaks": "COMPLETED", "acts": "COMPLETED"}
    assert done.read_text() == "once\n"
    provider.plan(text("yes"))
    turn(cluster.ports[1], history, "new", "now?")
    check(cluster, history)


@pytest.mark.limit(60)
def test_a_server_whose_database_is_away_ends_when_it_is_told_to(own_postgres, make_cluster, provider, history):
    cluster = make_cluster(1)
    gate = Gate()
    provider.plan(text("half ", gate, "whole"))
    begin(cluster.ports[0], history, "c", "speak")
    own_postgres.crash()
    started = time.monotonic()
    cluster.servers[0].process.send_signal(signal.SIGTERM)
    assert cluster.servers[0].process.wait(15 * SLACK) == 0
    cluster.servers[0].stopped = True
    cluster.servers[0].process.stdout.close()
    assert time.monotonic() - started < 6 * SLACK
    own_postgres.start()


@pytest.mark.limit(120)
def test_an_answer_while_the_database_is_away_is_refused_soon_and_can_be_given_later(own_postgres, make_cluster, provider):
    """This holds at the server that asks, also after its lease has ended."""
    cluster = make_cluster(1)
    client = cluster.servers[0].client
    provider.plan(tools(call("write_file", {"path": "a", "content": "x"})), text("written"))
    waits = client.start("c", "write", on_disconnect="continue")
    asked = waits.until("approval_required")["approval_id"]
    own_postgres.crash()
    away_until = time.monotonic() + 12
    while time.monotonic() < away_until:
        started = time.monotonic()
        client.post(f"/approvals/{asked}", {"approved": True}, limit=60).error(503, "database_unavailable")
        assert time.monotonic() - started < 8 * SLACK
    own_postgres.start()
    eventually(lambda: client.get("/readyz").status == 200, "it is ready again", limit=3 * SOON)
    if waiting := client.get("/approvals").json["approvals"]:
        assert [each["approval_id"] for each in waiting] == [asked]
        client.post(f"/approvals/{asked}", {"approved": True}).expect(200)
    waits.finish()
    assert (cluster.homes[0].workspace / "a").read_text() == "x"
