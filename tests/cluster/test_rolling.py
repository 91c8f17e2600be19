"""Servers that are restarted one after the other while people use them: scenario 18 of the study. And a short form of the kill run."""
import http.client
import os
import signal
import subprocess
import threading
import time

import pytest
from support.client import Client
from support.cluster import change_tables
from support.history import Follower, Refused, begin, verify_database
from support.provider import Gate, Reply, call, delta, ending, text, tools
from support.server import BINARY, ROOT
from support.timing import SLACK, SOON, eventually

EVERYTHING_SOON = 3 * SOON


def ended(server, limit=EVERYTHING_SOON):
    assert server.process.wait(limit) == 0, server.log()[-2000:]
    server.stopped = True
    server.process.stdout.close()


@pytest.mark.limit(90)
def test_a_server_that_is_to_stop_lets_runs_end_and_gives_up_those_that_wait(make_cluster, provider, history):
    cluster = make_cluster(2, balance=True, drain_s=60)
    leaving, staying = cluster.servers
    gate, written = Gate(), cluster.homes[0].workspace / "out"
    provider.plan(text("half ", gate, "whole"))
    speaks = ("speaks", begin(cluster.ports[0], history, "speaks", "speak"))
    follower = Follower(cluster.ports[0], speaks, history).start()
    follower.await_event("text_delta")
    provider.plan(tools(call("write_file", {"path": "out", "content": "text"})))
    waits = ("waits", begin(cluster.ports[0], history, "waits", "ask"))
    asked = eventually(lambda: staying.client.get("/approvals").json["approvals"], "it waits")[0]
    leaving.process.send_signal(signal.SIGTERM)
    eventually(lambda: leaving.client.get("/readyz").status == 503, "it is not ready any more")
    assert leaving.client.get("/readyz").json["error"]["code"] == "stopping"
    leaving.client.post("/chats/new/interactions", {"user_message": "now?"}).error(503, "stopping")
    assert leaving.client.interaction(*speaks)["status"] == "RUNNING"
    eventually(lambda: cluster.balancer.states() == {"instance1": "DOWN", "instance2": "UP"}, "the balancer knows")
    provider.plan(text("done"))
    staying.client.approve(*waits, asked["approval_id"]).expect(200)
    Follower(cluster.ports[1], waits, history).follow()
    assert history.ends[waits] == "COMPLETED" and written.read_text() == "text"
    assert leaving.process.poll() is None
    gate.release()
    follower.wait()
    assert history.ends[speaks] == "COMPLETED"
    ended(leaving)
    history.check(staying.client, lambda: verify_database(cluster.homes[1], cluster.url))


@pytest.mark.limit(60)
def test_after_its_time_a_run_is_cancelled_and_a_second_signal_ends_the_server_at_once(make_cluster, provider, history):
    cluster = make_cluster(2, drain_s=1)
    provider.answer_with(lambda r: text("half ", Gate()))
    run = ("c", begin(cluster.ports[0], history, "c", "speak"))
    started = time.monotonic()
    cluster.servers[0].process.send_signal(signal.SIGTERM)
    Follower(cluster.ports[1], run, history).follow()
    assert history.ends[run] == "CANCELLED" and time.monotonic() - started > 0.9
    ended(cluster.servers[0])
    cluster.own[1] = {"drain_s": 600}
    again = cluster.start(1)
    run = ("d", begin(cluster.ports[0], history, "d", "speak"))
    again.process.send_signal(signal.SIGTERM)
    eventually(lambda: again.client.get("/readyz").status == 503, "it is not ready any more")
    again.process.send_signal(signal.SIGTERM)
    assert again.process.wait(SOON) == 128 + signal.SIGTERM
    again.stopped = True
    again.process.stdout.close()
    Follower(cluster.ports[1], run, history).follow()
    assert history.ends[run] == "FAILED"
    cluster.start(1)


class Slow(bytes):
    def __bool__(self):
        time.sleep(0.05)
        return True


# An update if there is an older program (REPRISE_OLDER_BIN), which then makes the tables; otherwise the same program.
@pytest.mark.limit(240)
@pytest.mark.parametrize("older", sorted({str(BINARY), os.environ.get("REPRISE_OLDER_BIN", str(BINARY))}), ids=lambda binary: "again" if binary == str(BINARY) else "update")
def test_18_a_rolling_restart(make_cluster, provider, history, figure, older):
    """Clients of the balancer are served or told to retry: no request fails, and no data are lost."""
    cluster = make_cluster(3, balance=True, drain_s=30, binary=older)
    provider.answer_with(lambda r: text("done") if r.last["role"] == "tool" else tools(
        call("run_shell", {"command": f"echo {r.last['content'].split()[1]} >> effects"})) if r.last["content"].startswith("ask") else Reply(
            [Slow(delta({"content": f"word {n} "})) for n in range(40)] + ending()))
    waiting = [(f"w{n}", begin(cluster.balancer_port, history, f"w{n}", f"ask {n}")) for n in range(20)]
    eventually(lambda: len(cluster.servers[0].client.get("/approvals").json["approvals"]) == 20, "20 wait")
    stop, refused, runs, lock = threading.Event(), [], [], threading.Lock()

    def client(number):
        count = 0
        while not stop.is_set():
            count += 1
            try:
                started = begin(cluster.balancer_port, history, f"c{number}x{count}", f"say {count}")
            except (OSError, http.client.HTTPException) as error:
                refused.append(repr(error))
                continue
            if isinstance(started, Refused):
                refused.append(repr(started))
                continue
            follower = Follower(cluster.balancer_port, (f"c{number}x{count}", started), history).follow()
            with lock:
                runs.append(follower)

    threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(8)]
    for each in threads:
        each.start()
    change_tables(cluster.homes[0], cluster.url, "migrate")
    cluster.binary = BINARY
    for number in (1, 2, 3):
        server = cluster.servers[number - 1]
        server.process.send_signal(signal.SIGTERM)
        ended(server, 40 * SLACK)
        cluster.start(number)
        cluster.balancer.await_all()
    stop.set()
    for each in threads:
        each.join()
    assert all(each.done for each in runs)
    assert {history.ends[each.run] for each in runs} == {"COMPLETED"}
    assert set(refused) <= {"503 stopping None"}, set(refused)
    for asked in Client(cluster.balancer_port).get("/approvals").json["approvals"]:
        cluster.client.approve(asked["chat_id"], asked["interaction_id"], asked["approval_id"]).expect(200)
        history.answered(asked["approval_id"], "taken")
    for run in waiting:
        Follower(cluster.balancer_port, run, history).follow()
        assert history.ends[run] == "COMPLETED"
    done = (cluster.homes[0].workspace / "effects").read_text().split()
    assert sorted(done) == sorted(str(n) for n in range(20))
    figure(f"a rolling restart of 3: {len(runs)} runs completed, 20 that waited went on, {len(refused)} told to come again (503)")
    history.check(cluster.client, lambda: verify_database(cluster.homes[0], cluster.url))


@pytest.mark.limit(400)
def test_kills_at_random_under_load(figure):
    done = subprocess.run([ROOT / "tests/cluster/kills", "--count", "25", "--seed", "25", "--clients", "8"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in done.stdout.splitlines()[1:]:
        figure(line)
