"""Servers that do the same at once, or each a part: scenarios 6, 7, 15 to 17, 19 and 20 of the study, and texts that must never leak."""
import concurrent.futures
import os
import pathlib
import random
import time

import pytest
from support import redis as rd
from support import s3
from support.history import Follower, Refused, answers_at, begin, verify_database
from support.provider import Gate, call, text, tools
from support.timing import SLACK, SOON, at_once, eventually

ROUNDS = int(os.environ.get("REPRISE_CLUSTER_ROUNDS", "100"))  # 1,000 in the study
FAKETIME = sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))


def check(cluster, history, at=0):
    history.check(cluster.servers[at].client, lambda: verify_database(cluster.homes[at], cluster.url))


def follow(port, run, history, **more):
    return Follower(port, run, history, **more).follow()


@pytest.mark.limit(300)
def test_6_two_start_in_one_chat_at_once(make_cluster, provider, history, figure):
    cluster = make_cluster(2)
    provider.answer_with(lambda r: text("yes"))
    won = [0, 0]
    for number in range(ROUNDS):
        gate = Gate()
        provider.plan(text("half ", gate, "whole"))
        answers = at_once([lambda at=at: begin(cluster.ports[at], history, "c", f"{number} at {at}") for at in (0, 1)])
        runs = [each for each in answers if not isinstance(each, Refused)]
        refused = [each for each in answers if isinstance(each, Refused)]
        assert len(runs) == 1 and refused[0].code == "busy" and refused[0].details == {"interaction_id": runs[0]}, answers
        won[answers.index(runs[0])] += 1
        gate.release()
        follow(cluster.ports[number % 2], ("c", runs[0]), history)
    figure(f"{ROUNDS} times two servers start in one chat at once: {won[0]} and {won[1]} won, and nobody else")
    assert len(cluster.servers[0].client.history("c")["interactions"]) == ROUNDS
    check(cluster, history)


@pytest.mark.limit(180)
def test_7_a_run_begins_at_the_head_that_another_server_has_moved(make_cluster, provider, history):
    cluster = make_cluster(2)
    generator = random.Random(7)
    provider.answer_with(lambda r: text(f"re: {r.last['content']}"))
    said = []
    for number in range(40):
        at = generator.randrange(2)
        cluster.servers[at].client.turn("c", f"q{number}")
        said += [f"q{number}", f"re: q{number}"]
        assert [m["content"] for m in provider.requests[-1].conversation] == said[:-1]
        if generator.random() < 0.2:  # either server moves the head back
            back = generator.randrange(1, number + 2)
            cluster.servers[generator.randrange(2)].client.post("/chats/c/head", {"interaction_id": f"int_{back:03}"}).expect(200)
            branch = cluster.servers[0].client.history("c")["interactions"]
            said = [each for one in branch for each in (one["user_message"], f"re: {one['user_message']}")]
    histories = [each.client.history("c", "all") for each in cluster.servers]
    assert histories[0] == histories[1] and len(histories[0]["interactions"]) == 40


@pytest.mark.limit(120)
def test_16_a_reconnect_through_the_balancer_after_every_event(make_cluster, provider, history, figure):
    """The pieces together are the owner's stream, byte for byte."""
    cluster = make_cluster(3, balance=True)
    provider.plan(tools(call("calculator", {"expression": "2+2"}), think="let me see", say="one moment"),
                  text(*(f"word {n} " for n in range(40)), gate := Gate(), "end", last := Gate()))
    run = ("c", begin(cluster.ports[0], history, "c", "speak"))
    owner = Follower(cluster.ports[0], run, history).start()
    eventually(lambda: b"word 39 " in owner.text(), "the owner has said it")

    class OneByOne(Follower):
        def take(self, block):
            super().take(block)
            if block.startswith(b"id: ") and not self.done:
                raise ConnectionAbortedError

    pieces = OneByOne(cluster.balancer_port, run, history, limit=100)
    pieces.start()
    eventually(lambda: b"word 39 " in pieces.text(), "it was seen, piece by piece", limit=60)
    gate.release()
    eventually(lambda: b'"content":"end"' in pieces.text(), "it was seen, piece by piece")
    last.release()  # later events are stored, and the same from every server
    owner.wait()
    pieces.wait()
    assert [pieces.blocks[number] for number in sorted(pieces.blocks)] == [owner.blocks[number] for number in sorted(owner.blocks)]
    served = [int(line.split(",")[7]) for line in cluster.balancer.command_to("show stat").splitlines() if ",instance" in line]
    figure(f"{len(pieces.blocks)} events, each over a connection of its own through the balancer, as the owner's stream; by server: {served}")
    assert min(served) > 5
    check(cluster, history, 2)


@pytest.mark.limit(60)
def test_17_requests_to_another_server_act_as_at_the_owner(make_cluster, provider, history):
    cluster = make_cluster(3)
    clients = [each.client for each in cluster.servers]
    gates = [Gate() for _ in range(4)]
    # cancel
    provider.plan(text("half ", gates[0]))
    run = ("cancelled", begin(cluster.ports[0], history, "cancelled", "speak"))
    clients[1].cancel(*run).expect(200)
    follow(cluster.ports[2], run, history)
    assert history.ends[run] == "CANCELLED"
    # a message that waits for another server's run
    provider.plan(text("first ", gates[1], "end"))
    run = ("queued", begin(cluster.ports[0], history, "queued", "one"))
    waiting = clients[1].stream("POST", "/chats/queued/interactions", {"user_message": "two", "if_running": "queue", "on_disconnect": "continue"})
    waiting.next()
    provider.plan(text("second"))
    gates[1].release()
    follow(cluster.ports[2], run, history)
    waiting.finish()
    assert [each["user_message"] for each in clients[2].history("queued")["interactions"]] == ["one", "two"]
    # an edit of an earlier message during another server's run: busy, with the run's id
    provider.plan(text("third ", gates[2], "end"))
    run = ("queued", begin(cluster.ports[0], history, "queued", "three"))
    busy = clients[1].post("/chats/queued/interactions/int_001/edit", {"new_user_message": "one, edited"}).error(409, "busy")
    assert busy["details"] == {"interaction_id": run[1]}
    gates[2].release()
    follow(cluster.ports[1], run, history)
    provider.plan(text("edited"))
    clients[2].edit("queued", "int_001", "one, edited").finish()
    # delete
    provider.plan(text("half ", gates[3]))
    begin(cluster.ports[0], history, "deleted", "speak")
    answer = clients[1].request("DELETE", "/chats/deleted", limit=3 * SOON)
    assert answer.status == 200 or answer.json["error"]["code"] == "busy", answer.body
    if answer.status == 200:
        for each in clients:
            each.get("/chats/deleted").error(404)


@pytest.mark.limit(60)
def test_17_a_run_that_is_followed_at_another_server_is_not_abandoned(make_cluster, provider, history):
    cluster = make_cluster(2)
    gate = Gate()
    provider.plan(text("half ", gate, "whole"))
    first = cluster.servers[0].client.start("c", "speak")
    first.until("text_delta")
    elsewhere = Follower(cluster.ports[1], ("c", first.interaction), history).start()
    elsewhere.await_event("text_delta")
    first.close()
    time.sleep(1)  # five times the grace period
    gate.release()
    elsewhere.wait()
    assert history.ends["c", first.interaction] == "COMPLETED"


@pytest.mark.limit(60)
def test_what_a_chat_has_used_at_one_server_counts_at_another(make_cluster, provider):
    cluster = make_cluster(2, budget={"max_tokens_per_chat": 50})
    provider.answer_with(lambda r: text("yes"))  # 18 tokens a turn
    for at in (0, 1, 0):
        cluster.servers[at].client.turn("c", "and?")
    for at in (1, 0):
        stream = cluster.servers[at].client.start("c", "and?")
        stream.finish("FAILED")
        assert stream.one("error")["code"] == "budget_exceeded"
    assert len(provider.requests) == 3


@pytest.mark.limit(120)
def test_100_approvals_raced_from_three_servers(make_cluster, provider, history, figure):
    cluster = make_cluster(3, balance=True)
    effects = cluster.homes[0].workspace / "effects"
    provider.answer_with(lambda r: text("done") if r.last["role"] == "tool" else tools(
        call("run_shell", {"command": f"echo {r.last['content']} >> effects"}, "call_1")))
    runs = {f"c{n}": begin(cluster.ports[n % 3], history, f"c{n}", f"e{n}") for n in range(100)}
    waiting = eventually(lambda: len(found := cluster.servers[1].client.get("/approvals").json["approvals"]) == 100 and found, "100 wait", 3 * SOON)
    won = [0, 0, 0]
    for asked in waiting:
        answers = answers_at(cluster.ports, asked["chat_id"], asked["interaction_id"], asked["approval_id"], approved=True)
        taken = [at for at, answer in enumerate(answers) if answer.status == 200]
        assert len(taken) == 1, [answer.body for answer in answers]
        assert all(answer.status == 200 or answer.json["error"]["code"] == "already_processed" for answer in answers)
        won[taken[0]] += 1
        history.answered(asked["approval_id"], taken[0])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda run: follow(cluster.balancer_port, run, history), runs.items()))
    assert all(history.ends[run] == "COMPLETED" for run in runs.items())
    assert sorted(effects.read_text().split()) == sorted(f"e{n}" for n in range(100))
    figure(f"100 approvals raced from three servers: one answer each; by server: {won}")
    check(cluster, history)


@pytest.mark.limit(120)
@pytest.mark.skipif(not s3.is_installed() or not rd.PROGRAM.exists(), reason="python3-swift or Redis is NOT INSTALLED")
def test_what_is_said_is_in_no_dump_in_no_bucket_and_not_at_redis(make_cluster, provider, history, postgres):
    swift, redis = s3.Swift(), rd.Redis()
    try:
        bucket, monitor = s3.Bucket(swift, "canary"), redis.monitor()
        cluster = make_cluster(2, redis={"url": redis.url}, **bucket.settings())
        clients = [each.client for each in cluster.servers]
        words = [f"canary-{n}-7f3a" for n in range(10)]
        gate = Gate()
        provider.plan(tools(call("write_file", {"path": "out.txt", "content": words[0]}), say=words[1], think=words[2]), text(words[3], gate, words[4]))
        uploaded = clients[0].request("POST", f"/chats/c/files?name={words[5]}.txt", words[6].encode(), headers={"Content-Type": "text/plain"}).expect(201).json
        run = ("c", begin(cluster.ports[0], history, "c", words[7], attachments=[uploaded["id"]]))
        elsewhere = Follower(cluster.ports[1], run, history).start()
        asked = elsewhere.await_event("approval_required")

        def look(what):
            dump = postgres.dump(cluster.url)
            objects = b"".join(key.encode() + bucket.get(key) for key in bucket.keys())
            for word in words:
                for kept, name in ((dump, "the database"), (objects.decode("latin-1"), "the bucket")):
                    assert word not in kept and word.encode().hex() not in kept, f"{word} is in {name} while {what}"
        look("an approval waits")
        queued = [clients[at].stream("POST", "/chats/c/interactions", {"user_message": words[8 + at], "if_running": "queue"}) for at in (0, 1)]
        eventually(lambda: len(clients[0].get("/chats/c/queue").json["queue"]) == 2, "two messages wait")
        look("messages wait")
        provider.answer_with(lambda r: text(f"re: {r.last['content']}"))
        clients[1].approve(*run, asked["approval_id"]).expect(200)
        elsewhere.await_event("text_delta")
        look("an answer is said")
        gate.release()
        elsewhere.wait()
        for each in queued:
            each.finish()
        look("nothing runs")
        heard = monitor.stop()
        assert heard.count(b"PUBLISH") + heard.count(b'"publish"') > 3, heard[:2000]
        assert not [word for word in words if word.encode() in heard]
        assert uploaded["id"] in str(bucket.keys())
        history.check(clients[1])
    finally:
        redis.close()
        swift.close()


@pytest.mark.limit(120)
@pytest.mark.skipif(not FAKETIME, reason="faketime is NOT INSTALLED (scripts/deps cluster)")
@pytest.mark.parametrize("hours", [6, -6])
def test_15_clocks_that_are_wrong_by_hours(make_cluster, provider, history, hours):
    """Leases, expiry and order depend on the database's clock."""
    cluster = make_cluster(2, environments={1: {"LD_PRELOAD": str(FAKETIME[-1]), "FAKETIME": f"{hours:+}h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}},
                           approval_expiry_s=600)
    wrong, right = cluster.servers
    provider.answer_with(lambda r: text("done") if r.last["role"] == "tool" else tools(call("write_file", {"path": f"{r.last['content']}", "content": "x"})))
    begun = {"at_wrong": begin(cluster.ports[0], history, "at_wrong", "one"), "at_right": begin(cluster.ports[1], history, "at_right", "two")}
    time.sleep(4)  # long enough to renew the leases with these clocks
    for at in (0, 1):
        listed = eventually(lambda at=at: len(found := cluster.servers[at].client.get("/approvals").json["approvals"]) == 2 and found, "both wait everywhere")
        assert {each["chat_id"] for each in listed} == set(begun)
    for chat, number in begun.items():
        asked = [each for each in listed if each["chat_id"] == chat][0]
        other = right if chat == "at_wrong" else wrong
        other.client.approve(chat, number, asked["approval_id"]).expect(200)
        follow(cluster.ports[0], (chat, number), history)
        assert history.ends[chat, number] == "COMPLETED"
    provider.answer_with(lambda r: text("done"))
    for at in (0, 1, 1, 0):
        cluster.servers[at].client.turn("at_wrong", f"order {at}")
    assert [each["id"] for each in right.client.history("at_wrong")["interactions"]] == [f"int_{n:03}" for n in range(1, 6)]
    wrong.kill()
    gate_free = time.monotonic()
    cluster.servers[1].client.turn("at_wrong", "after")
    assert time.monotonic() - gate_free < 15 * SLACK
    check(cluster, history, 1)


@pytest.mark.limit(120)
@pytest.mark.skipif(not s3.is_installed(), reason="python3-swift is NOT INSTALLED")
def test_19_a_bucket_that_loses_an_answer_is_down_or_lacks_an_object(make_cluster, provider, history):
    swift = s3.Swift()
    between = s3.Between(swift)
    try:
        bucket = s3.Bucket(swift, "files")
        cluster = make_cluster(2, **bucket.settings(endpoint=between.endpoint))
        clients = [each.client for each in cluster.servers]
        provider.answer_with(lambda r: text("yes"))
        lost = iter([True])
        between.keep = lambda method: method == "PUT" and next(lost, False)
        plain = {"Content-Type": "text/plain"}
        uploaded = clients[0].request("POST", "/chats/c/files?name=a.txt", b"text", headers=plain, limit=3 * SOON).expect(201).json
        assert len(clients[1].get("/chats/c/files").json["files"]) == 1 and len(bucket.keys()) == 1
        assert clients[1].get(f"/chats/c/files/{uploaded['id']}").body == b"text"
        swift.stop()
        clients[0].request("POST", "/chats/c/files?name=b.txt", b"text", headers=plain, limit=5 * SOON).error(503, "bucket_unreachable")
        clients[1].turn("c", "without a bucket")
        swift.start()
        bucket.delete(bucket.keys()[0])
        missing = clients[1].get(f"/chats/c/files/{uploaded['id']}").error(422, "integrity_missing")
        assert uploaded["id"] in missing["message"]
        clients[0].turn("c", "without that file")
        check_of = verify_database(cluster.homes[0], cluster.url)
        assert not check_of or uploaded["id"] in check_of[0]
    finally:
        between.close()
        swift.close()


@pytest.mark.limit(60)
def test_20_a_row_copied_to_another_chat_is_detected(make_cluster, provider, postgres):
    cluster = make_cluster(2)
    provider.answer_with(lambda r: text(f"re: {r.last['content']}"))
    for chat in ("a", "b"):
        cluster.servers[0].client.turn(chat, f"of {chat}")
    postgres.query(cluster.url, "update reprise.interactions b set record = a.record, digest = a.digest from reprise.interactions a "
                                "where a.chat = 'a' and b.chat = 'b' and a.number = 1 and b.number = 1")
    for each in cluster.servers:
        each.client.get("/chats/b/interactions/int_001").error(422, "integrity_swap")
        each.client.turn("a", "still here")


@pytest.mark.limit(60)
def test_a_chat_whose_first_turn_runs_is_shown_at_another_server_as_at_its_own(make_cluster, provider):
    cluster = make_cluster(2)
    clients = [each.client for each in cluster.servers]
    gate = Gate()
    provider.plan(text("half ", gate, "whole"), tools(call("run_shell", {"command": "true"}, "call_1")), text("done"))
    first = clients[0].start("c", "speak")
    first.until("text_delta")

    def seen(at, path):
        shown = clients[at].get(path).expect(200).json
        if "chats" not in shown:
            running = shown.get("interactions", [shown])[-1]
            assert running["status"] == status and running.pop("usage")  # the usage is shown at the end
        return shown

    for turn, status in ((1, "RUNNING"), (2, "WAITING_APPROVAL")):
        for path in ("/chats/c", "/chats/c?branches=all", "/chats/c?limit=1", f"/chats/c/interactions/int_{turn:03}", "/chats"):
            eventually(lambda path=path: seen(0, path) == seen(1, path), f"{path} is the same at both, as both have what is kept")
        listed = clients[1].get("/chats").json["chats"]
        assert [(each["id"], each["title"]) for each in listed] == [("c", "speak")]
        if turn == 1:
            gate.release()
            first.finish()
            second = clients[0].start("c", "and act")
            second.until("approval_required")
    clients[1].approve("c", "int_002", second.one("approval_required")["approval_id"]).expect(200)
    second.finish()


@pytest.mark.limit(60)
def test_changes_of_another_servers_run_are_refused_as_busy(make_cluster, provider):
    """The error makes libraries retry, through every door; and a new message can interrupt the run."""
    cluster = make_cluster(2)
    clients = [each.client for each in cluster.servers]
    gate = Gate()
    provider.plan(text("one"), text("half ", gate, "whole"))
    clients[0].turn("c", "first")
    running = clients[0].start("c", "second")
    running.until("text_delta")
    messages = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "one"}, {"role": "user", "content": "other"}]
    for at in (0, 1):
        for path, body in (("/chats/c/interactions/int_002/edit", {"new_user_message": "other"}), ("/chats/c/interactions/int_002/regenerate", {}),
                           ("/chats/c/interactions/int_002/resume", {}), ("/chats/c/interactions", {"user_message": "other"})):
            error = clients[at].post(path, body).error(409, "busy")
            assert error["details"] == {"interaction_id": "int_002"}, (at, path, error)
        answer = clients[at].post("/v1/chat/completions", {"model": "reprise", "messages": messages}, headers={"X-Chat-Id": "c"})
        assert answer.status == 409 and answer.json["error"]["code"] == "busy", answer.body
        answer = clients[at].post("/v1/responses", {"model": "reprise", "input": "other", "previous_response_id": "resp_c_int_001"})
        assert answer.status == 409, answer.body
    provider.plan(text("in its place"))
    taken = clients[1].stream("POST", "/chats/c/interactions/int_002/edit", {"new_user_message": "other", "if_running": "cancel"})
    running.finish("CANCELLED")
    taken.finish()
    assert [(each["user_message"], each["edited_from"]) for each in clients[0].history("c")["interactions"]] == [("first", None), ("other", "int_002")]


@pytest.mark.limit(60)
def test_a_chat_that_was_created_empty_takes_tasks_and_turns(make_cluster, provider):
    client, other = (each.client for each in make_cluster(2).servers)
    for chat in ("tasks", "turns", "new"):
        client.post("/chats", {"id": chat}).expect(201)
    assert client.request("PATCH", "/chats/tasks/tasks", {"tasks": [{"title": "think"}]}).expect(200).json["tasks"]
    assert other.get("/chats/tasks/tasks").json["tasks"][0]["title"] == "think"
    provider.answer_with(lambda r: text(f"re: {r.last['content']}"))
    told = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "told elsewhere"}, {"role": "user", "content": "b"}]
    client.post("/v1/chat/completions", {"model": "reprise", "messages": told}, headers={"X-Chat-Id": "turns"}).expect(200)
    assert [each["user_message"] for each in other.history("turns")["interactions"]] == ["a", "b"]
    other.turn("new", "hello")
    client.turn("tasks", "and?")


@pytest.mark.limit(90)
@pytest.mark.parametrize("turns", [0, 1])
@pytest.mark.parametrize("waits", [False, True])
def test_a_chat_whose_server_has_just_died_is_deleted_at_another_one(make_cluster, provider, turns, waits):
    """It takes as long as the lease. Then the chat is in the trash, with everything that its run had stored."""
    cluster = make_cluster(2)
    first, second = cluster.servers
    for _ in range(turns):
        provider.plan(text("one"))
        first.client.turn("c", "first")
    gate = Gate()
    provider.plan(tools(call("write_file", {"path": "a", "content": "x"})) if waits else text("half ", gate, "whole"))
    running = first.client.start("c", "last", on_disconnect="continue")
    running.until("approval_required" if waits else "text_delta")
    first.kill()
    second.client.request("DELETE", "/chats/c", limit=60).expect(200)
    gate.release()
    second.client.get("/chats/c").error(404)
    assert second.client.get("/approvals").json["approvals"] == []
    entry, = second.client.get("/trash").json["entries"]
    assert entry["bytes"] > 1000
    second.client.post(f"/trash/{entry['id']}/restore", {}).expect(200)
    assert [each["user_message"] for each in second.client.history("c")["interactions"]] == ["first"] * turns + ["last"]


@pytest.mark.limit(60)
@pytest.mark.parametrize("turns", [0, 2])
def test_commands_that_rearrange_a_chat_see_another_servers_run(make_cluster, provider, turns):
    cluster = make_cluster(2)
    gate = Gate()
    for _ in range(turns):
        provider.plan(text("one"))
        cluster.servers[0].client.turn("c", "first")
    provider.plan(text("half ", gate, "whole"))
    running = cluster.servers[0].client.start("c", "last")
    running.until("text_delta")
    run = running.interaction
    for client in (each.client for each in cluster.servers):
        for method, path, body in (("POST", "/chats/c/undo", {}), ("POST", "/chats/c/head", {"interaction_id": run}), ("POST", "/chats/c/compact", {}),
                                   ("DELETE", f"/chats/c/interactions/{run}", None)):
            assert client.request(method, path, body).error(409, "busy")["details"] == {"interaction_id": run}, path
        client.post("/chats/c/fork", {"interaction_id": run}).error(409, "not_finished")
        client.post(f"/chats/c/interactions/{run}/replay", {"mode": "events"}).error(409, "not_replayable")
    gate.release()
    running.finish()
