"""Messages queued in one chat at several servers: each runs once, in the order of the queue, whatever happens to the servers. (Scenario 17 has one of them.)"""
import random
import signal
import threading
import time

import pytest
from support.feed import Feed
from support.history import Follower, begin, verify_database
from support.provider import Gate, call, text, tools
from support.timing import SLACK, SOON, at_once, eventually, halt

FREE = 15


def check(cluster, history, at=0):
    history.check(cluster.servers[at].client, lambda: verify_database(cluster.homes[at], cluster.url))


def queue(client, chat="c"):
    return client.get(f"/chats/{chat}/queue").expect(200, "queue").json["queue"]


def waiting(client, chat="c"):
    return [each["user_message"] for each in queue(client, chat)]


def enqueue(client, message, chat="c", **more):
    """Queues a message. Returns its stream and its id in the queue."""
    stream = client.stream("POST", f"/chats/{chat}/interactions", {"user_message": message, "if_running": "queue", **more})
    stream.next()
    assert stream.frames[0].name == "queued", stream.frames
    return stream, stream.frames[0]["id"]


def ran(client, chat="c"):
    """The messages of the chat in the order in which they ran."""
    return [each["user_message"] for each in client.history(chat, "all")["interactions"]]


def busy(cluster, provider, history, at=0, chat="c"):
    gate = Gate()
    provider.plan(text("half ", gate, "whole"))
    run = (chat, begin(cluster.ports[at], history, chat, "first"))
    gate.wait_reached()
    return gate, run


@pytest.mark.limit(120)
def test_a_message_whose_client_goes_at_any_moment_does_not_run(make_cluster, provider, history):
    """Its server tries once a second to begin it, and a client may disconnect in the middle of an attempt."""
    cluster = make_cluster(2)
    clients = [each.client for each in cluster.servers]
    gate, run = busy(cluster, provider, history)
    provider.plan(text("yes"))
    generator = random.Random(15)
    kept, _ = enqueue(clients[1], "kept", on_disconnect="continue")
    time.sleep(1.2)
    kept.close()
    for number in range(20):
        stream, _ = enqueue(clients[1], f"left {number}")
        time.sleep(generator.uniform(0, 1.2))  # mostly long enough for an attempt
        stream.close()
        eventually(lambda: waiting(clients[1]) == waiting(clients[0]) == ["kept"], f"message {number} is gone", 3 * SOON)
    gate.release()
    Follower(cluster.ports[0], run, history).follow()
    eventually(lambda: ran(clients[0]) == ["first", "kept"], "the message that may run without its client has begun")


@pytest.mark.limit(240)
def test_two_servers_queue_50_messages_each_at_once(make_cluster, provider, history, figure):
    """Each client follows its own run to the end, and all messages form one sequence."""
    cluster = make_cluster(2)
    clients = [each.client for each in cluster.servers]
    gate, run = busy(cluster, provider, history)
    provider.answer_with(lambda r: text(f"re: {r.last['content']}"))
    streams = [[], []]

    together = threading.Barrier(2)

    def queue_50(at):
        for number in range(50):
            if number % 5 == 0:
                together.wait()  # so that neither is done before the other begins
            streams[at].append(enqueue(clients[at], f"{number} at {at}"))
    at_once([lambda at=at: queue_50(at) for at in (0, 1)])
    line = waiting(clients[0])
    assert len(line) == 100 and waiting(clients[1]) == line
    clients[1].post("/chats/c/interactions", {"user_message": "one too many", "if_running": "queue"}).error(429, "queue_full")
    for at in (0, 1):
        assert [each for each in line if each.endswith(f"at {at}")] == [f"{n} at {at}" for n in range(50)]
    since = time.monotonic()
    gate.release()
    for at in (0, 1):
        for number, (stream, _) in enumerate(streams[at]):
            stream.finish(limit=120 * SLACK)
            assert stream.one("answer")["content"] == f"re: {number} at {at}"
    took = time.monotonic() - since
    assert ran(clients[1]) == ["first", *line] == ran(clients[0])
    assert queue(clients[0]) == queue(clients[1]) == []
    switches = sum(a.split()[-1] != b.split()[-1] for a, b in zip(line, line[1:]))
    figure(f"50 messages queued at each of two servers at once: {switches} times the next was the other's, all run in {took:.1f} s")
    assert switches > 5
    Follower(cluster.ports[1], run, history).follow()
    check(cluster, history, 1)


@pytest.mark.limit(120)
def test_messages_that_come_while_others_run_go_behind_those_that_wait(make_cluster, provider, history):
    """This holds also when the chat is free for a moment, and without connected clients."""
    cluster = make_cluster(3)
    clients = [each.client for each in cluster.servers]
    provider.answer_with(lambda r: text("yes"))
    acknowledged = [[], [], []]

    def send(at):
        for number in range(15):
            stream = clients[at].stream("POST", "/chats/c/interactions", {"user_message": f"{number} at {at}", "if_running": "queue", "on_disconnect": "continue"})
            stream.next()
            stream.close()
            acknowledged[at].append(f"{number} at {at}")
    at_once([lambda at=at: send(at) for at in range(3)])
    eventually(lambda: not queue(clients[0]) and len(ran(clients[0])) == 45, "all have run", 60 * SLACK)
    order = ran(clients[2])
    for at in range(3):
        assert [each for each in order if each.endswith(f"at {at}")] == acknowledged[at]
    eventually(lambda: all(each["status"] == "COMPLETED" for each in clients[1].history("c", "all")["interactions"]), "all have ended")
    check(cluster, history)


@pytest.mark.limit(120)
@pytest.mark.parametrize("killed", ["the owner of the run", "one that has queued"])
def test_a_server_with_queued_messages_is_killed(make_cluster, provider, history, killed, figure):
    """Its queued messages run elsewhere, in their places in the queue."""
    cluster = make_cluster(2)
    clients = [each.client for each in cluster.servers]
    gate, run = busy(cluster, provider, history)
    effects = cluster.homes[0].workspace / "effects"
    provider.answer_with(lambda r: text("done") if r.last["role"] == "tool" else tools(call("run_shell", {"command": f"echo {r.last['content']} >> effects"})))
    for server in (0, 1):
        clients[server].request("PATCH", "/chats/c", {"approval_mode": "approve_all"}).expect(200)  # the chat's first turn has not ended
    streams = [enqueue(clients[number % 2], f"m{number}", on_disconnect="continue")[0] for number in range(6)]
    line = [f"m{number}" for number in range(6)]
    victim, other = (0, 1) if killed == "the owner of the run" else (1, 0)
    cluster.servers[victim].kill()
    since = time.monotonic()
    if killed == "one that has queued":
        gate.release()
    eventually(lambda: ran(clients[other])[1:] == line and not queue(clients[other]), "all have run", (FREE + 30) * SLACK)
    eventually(lambda: all(each["status"] in ("COMPLETED", "FAILED") for each in clients[other].history("c", "all")["interactions"]), "all have ended", 2 * SOON)
    figure(f"{killed} is killed, with three messages queued at it and three elsewhere: all have run after {time.monotonic() - since:.1f} s")
    statuses = [each["status"] for each in clients[other].history("c", "all")["interactions"]]
    assert statuses == ["FAILED" if victim == 0 else "COMPLETED"] + ["COMPLETED"] * 6
    assert effects.read_text().split() == line
    gate.release()
    for each in streams:
        each.close()
    check(cluster, history, other)


@pytest.mark.limit(60)
def test_what_waits_is_changed_and_removed_at_any_server_and_all_are_told(make_cluster, provider, history):
    cluster = make_cluster(3)
    clients = [each.client for each in cluster.servers]
    feeds = [Feed(each) for each in clients]
    for feed in feeds:
        assert feed.next().name == "open"
    gate, run = busy(cluster, provider, history)
    changed, id_changed = enqueue(clients[0], "to be changed")
    removed, id_removed = enqueue(clients[1], "to be removed")
    stays, _ = enqueue(clients[1], "stays")
    for each in clients:
        assert waiting(each) == ["to be changed", "to be removed", "stays"]

    def told(action):
        before = [len(feed.frames) for feed in feeds]
        action()
        for feed, count in zip(feeds, before):
            eventually(lambda feed=feed, count=count: feed.next() and any(f.name == "queue_changed" for f in feed.frames[count:]), "everybody is told")
    told(lambda: clients[2].request("PATCH", f"/chats/c/queue/{id_changed}", {"user_message": "changed"}).expect(200))
    told(lambda: clients[2].request("DELETE", f"/chats/c/queue/{id_removed}").expect(200))
    drain(removed)
    assert [(event.name, event["code"]) for event in removed.events] == [("error", "dequeued")]
    clients[0].request("DELETE", f"/chats/c/queue/{id_removed}").error(404)
    for each in clients:
        assert waiting(each) == ["changed", "stays"]
    provider.plan(text("one"), text("two"))
    gate.release()
    changed.finish()
    stays.finish()
    assert ran(clients[2]) == ["first", "changed", "stays"]
    for feed in feeds:
        feed.close()
    check(cluster, history)


def drain(stream):
    while stream.next():
        pass


@pytest.mark.limit(60)
def test_a_client_that_goes_takes_its_message_along_for_all(make_cluster, provider, history):
    cluster = make_cluster(2)
    clients = [each.client for each in cluster.servers]
    gate, run = busy(cluster, provider, history)
    goes, _ = enqueue(clients[1], "goes")
    stays, _ = enqueue(clients[0], "stays")
    goes.close()
    eventually(lambda: waiting(clients[0]) == ["stays"], "it is gone at other servers, too")
    provider.plan(text("yes"))
    gate.release()
    stays.finish()
    assert ran(clients[1]) == ["first", "stays"]


@pytest.mark.limit(120)
def test_a_message_that_cannot_begin_delays_no_other_at_any_server(make_cluster, provider, history):
    """Only the killed server knows the message's model."""
    cluster = make_cluster(1)
    for number in (2, 3):
        cluster.own[number] = {}
        cluster.add()
    cluster.servers[0].stop()
    cluster.own[1] = {"providers": {name: {"type": "openai", "base_url": provider.url, "api_key": "x"} for name in ("test", "other")}}
    cluster.start(1)
    clients = [each.client for each in cluster.servers]
    gate, run = busy(cluster, provider, history, at=1)
    stuck, id_stuck = enqueue(clients[0], "stuck", model="other/x")
    behind, _ = enqueue(clients[2], "behind")
    cluster.servers[0].kill()
    stuck.close()
    provider.plan(text("yes"))
    gate.release()
    behind.finish(limit=(FREE + 10) * SLACK)
    assert ran(clients[1]) == ["first", "behind"]
    shown = [queue(each) for each in clients[1:]]
    assert shown[0] == shown[1] and [(each["id"], each["error"]["code"]) for each in shown[0]] == [(id_stuck, "unknown_model")], shown
    # A changed message is tried again, and it runs on a server that knows its model.
    clients[2].request("PATCH", f"/chats/c/queue/{id_stuck}", {"user_message": "still stuck"}).expect(200)
    eventually(lambda: queue(clients[1])[0]["error"], "it was tried again")
    cluster.start(1)
    provider.plan(text("yes"))
    for at in (1, 2):
        cluster.servers[at].stop()
    cluster.servers[0].client.request("PATCH", f"/chats/c/queue/{id_stuck}", {"user_message": "free"}).expect(200)
    eventually(lambda: ran(cluster.servers[0].client) == ["first", "behind", "free"], "it runs", FREE * SLACK)
    check(cluster, history)


@pytest.mark.limit(60)
def test_a_server_that_is_to_stop_leaves_its_messages_to_others(make_cluster, provider, history):
    cluster = make_cluster(2, drain_s=60)
    clients = [each.client for each in cluster.servers]
    gates = [Gate(), Gate()]
    provider.plan(text("half ", gates[0], "whole"))
    begin(cluster.ports[1], history, "c", "first")
    gates[0].wait_reached()
    provider.plan(text("half ", gates[1], "whole"))
    begin(cluster.ports[0], history, "d", "keeps it up")
    gates[1].wait_reached()
    left, _ = enqueue(clients[0], "left")
    cluster.servers[0].process.send_signal(signal.SIGTERM)
    drain(left)
    assert [(event.name, event["code"]) for event in left.events] == [("error", "stopping")]
    provider.plan(text("said elsewhere"))
    gates[0].release()
    eventually(lambda: ran(clients[1]) == ["first", "left"], "it runs elsewhere, while its server goes on with its runs")
    assert cluster.servers[0].process.poll() is None
    gates[1].release()
    assert cluster.servers[0].process.wait(3 * SOON) == 0
    cluster.servers[0].stopped = True
    cluster.servers[0].process.stdout.close()
    check(cluster, history, 1)


@pytest.mark.limit(90)
def test_a_server_that_slept_tells_its_clients_what_became_of_their_messages(make_cluster, provider, history):
    cluster = make_cluster(2)
    clients = [each.client for each in cluster.servers]
    gate, run = busy(cluster, provider, history, at=1)
    provider.answer_with(lambda r: text(f"re: {r.last['content']}"))
    asleep, _ = enqueue(clients[0], "of the sleeper")
    halt(cluster.servers[0].process.pid)
    gate.release()
    eventually(lambda: ran(clients[1]) == ["first", "of the sleeper"], "it runs elsewhere", FREE * SLACK)
    cluster.servers[0].process.send_signal(signal.SIGCONT)
    drain(asleep)
    [event] = asleep.events
    assert (event.name, event["code"]) == ("error", "begun_elsewhere") and "int_002" in event["message"]
    assert ran(clients[0]) == ["first", "of the sleeper"]
    check(cluster, history)


@pytest.mark.limit(60)
def test_a_request_that_waits_at_one_server_is_known_at_another(make_cluster, provider, history):
    cluster = make_cluster(2)
    clients = [each.client for each in cluster.servers]
    gate, _ = busy(cluster, provider, history)
    body = {"user_message": "once", "if_running": "queue"}
    first = clients[0].stream("POST", "/chats/c/interactions", body, headers={"Idempotency-Key": "k1"})
    first.next()
    clients[1].post("/chats/c/interactions", body, headers={"Idempotency-Key": "k1"}).error(409, "request_waits")
    clients[1].post("/chats/c/interactions", {**body, "user_message": "other"}, headers={"Idempotency-Key": "k1"}).error(422, "idempotency_key_reused")
    provider.plan(text("yes"))
    gate.release()
    first.finish()
    assert ran(clients[1]) == ["first", "once"]


@pytest.mark.limit(60)
def test_a_deleted_chat_has_no_queue_anywhere(make_cluster, provider, history):
    cluster = make_cluster(2)
    clients = [each.client for each in cluster.servers]
    gate, _ = busy(cluster, provider, history)
    gone, _ = enqueue(clients[1], "gone")
    clients[0].request("DELETE", "/chats/c", limit=3 * SOON).expect(200)
    drain(gone)
    assert [(event.name, event["code"]) for event in gone.events] == [("error", "dequeued")]
    clients[1].get("/chats/c/queue").error(404)
    provider.plan(text("yes"))
    clients[1].turn("c", "again")
    assert ran(clients[0]) == ["again"]
    gate.release()


@pytest.mark.limit(120)
@pytest.mark.parametrize("fault", ["once", "and is away"])
@pytest.mark.parametrize("which", [b"reprise.add_queued(", b"reprise.begin_queued_turn("], ids=["add", "begin"])
def test_an_answer_about_a_queued_message_is_lost(make_cluster, provider, history, which, fault):
    """The message runs once, or its client was told that it will not run, and it does not."""
    cluster = make_cluster(2, ways=[2])
    clients = [each.client for each in cluster.servers]
    way = cluster.ways[2]
    gate, _ = busy(cluster, provider, history)
    provider.answer_with(lambda r: text("yes"))

    def healed():
        if fault != "once" and way.swallowed.wait(2 * SOON):
            time.sleep(7)  # longer than a request waits (five seconds)
            way.heal()
    healing = threading.Thread(target=healed)
    answer = {}

    def send():
        connection = clients[1]
        answer["is"] = connection.request("POST", "/chats/c/interactions", {"user_message": "once", "if_running": "queue", "on_disconnect": "continue"}, limit=60)
    sending = threading.Thread(target=send)
    if which == b"reprise.add_queued(":
        way.lose_answer(which, then_cut=fault != "once")
        healing.start()
        sending.start()
        assert way.swallowed.wait(SOON)
    else:
        sending.start()
        eventually(lambda: waiting(clients[0]) == ["once"], "it waits")
        way.lose_answer(which, then_cut=fault != "once")
        healing.start()
    gate.release()
    sending.join()
    healing.join()
    assert way.swallowed.is_set()
    eventually(lambda: not queue(clients[0]), "nothing waits", FREE * SLACK)
    refused = answer["is"].status != 200
    if refused:
        assert fault != "once" and which == b"reprise.add_queued(" and answer["is"].json["error"]["code"] == "database_unavailable", answer["is"].body
    assert ran(clients[0]) == (["first"] if refused else ["first", "once"])
    check(cluster, history)

