"""Redis stops and starts while runs are followed at another server: no event is missing, and none comes twice."""
import random
import threading
import time

import pytest
from support import redis as rd
from support.history import Follower, begin
from support.provider import Reply, delta, ending
from support.timing import SLACK, eventually

pytestmark = pytest.mark.skipif(not rd.PROGRAM.exists(), reason="Redis is NOT INSTALLED (scripts/deps test): nothing is tested with it")


@pytest.fixture
def redis():
    server = rd.Redis()
    yield server
    server.close()


def words(count):
    return [f"word {n} " for n in range(count)]


def follow_many(cluster, history, streams, while_they_run):
    """Starts `streams` runs. Each is followed at a server other than its own, and again at its own after its end."""
    servers = len(cluster.ports)
    runs = [(f"c{n}", begin(cluster.ports[n % servers], history, f"c{n}", "speak")) for n in range(streams)]
    elsewhere = [Follower(cluster.ports[(n + 1) % servers], run, history).start() for n, run in enumerate(runs)]
    while_they_run()
    for each in elsewhere:
        each.wait(60 * SLACK)
    for n, run in enumerate(runs):
        assert history.ends[run] == "COMPLETED", run
        assert Follower(cluster.ports[n % servers], run, history).follow().done


@pytest.mark.limit(150)
@pytest.mark.parametrize("seed", [13])
def test_13_redis_is_killed_flushed_and_restarted_in_a_loop(make_cluster, provider, history, redis, seed, figure):
    cluster = make_cluster(2, redis={"url": redis.url})
    chance = random.Random(seed)
    done = threading.Event()
    provider.answer_with(lambda r: paced(100, done))
    faults = []

    def nemesis():
        until = time.monotonic() + 8
        while time.monotonic() < until:
            fault = chance.choice(["kill", "flushall", "freeze"])
            faults.append(fault)
            if fault == "flushall":
                redis.command("flushall")
            elif fault == "kill":
                redis.kill()
                time.sleep(chance.uniform(0, 0.6))
                redis.start()
            else:
                redis.freeze()
                time.sleep(chance.uniform(0, 0.6))
                redis.thaw()
            time.sleep(chance.uniform(0, 0.3))
        done.set()

    follow_many(cluster, history, 100, nemesis)
    figure(f"100 followed runs while Redis had {len(faults)} faults: all as they were shown")
    history.check(cluster.servers[0].client)


def paced(count, done):
    """Words, one every tenth of a second, until `done`."""
    class Words(list):
        def __iter__(self):
            for word in words(count):
                yield delta({"content": word})
                done.wait(0.1)
            yield from ending()
    return Reply(Words())


@pytest.mark.limit(90)
def test_14_redis_is_there_for_one_server_and_not_for_the_other(make_cluster, provider, history, redis, figure):
    """Signals without a listener are not lost either, because the other server reads the database."""
    cluster = make_cluster(1, redis={"url": redis.url})
    cluster.own[2] = {"redis": {"url": "redis://127.0.0.1:1"}}
    cluster.add()
    done = threading.Event()
    provider.answer_with(lambda r: paced(30, done))
    eventually(lambda: cluster.servers[1].client.get("/readyz").json.get("failing"), "it says that Redis is away")
    assert cluster.servers[1].client.get("/readyz").status == 200, "the server without Redis works"
    follow_many(cluster, history, 20, lambda: None)
    figure("20 followed runs with Redis for one server alone: all as they were shown")
    history.check(cluster.servers[0].client)


@pytest.mark.limit(120)
@pytest.mark.parametrize("seed", [14])
def test_14_what_is_published_is_lost_at_random(make_cluster, provider, history, redis, seed, figure):
    """Followers miss no event: a later signal or a poll finds it."""
    cluster = make_cluster(1, redis={"url": redis.url})
    way = rd.LossyWay(redis, seed, chance=0.4)
    try:
        cluster.own[2] = {"redis": {"url": way.url}}
        cluster.add()
        done = threading.Event()
        provider.answer_with(lambda r: paced(30, done))
        follow_many(cluster, history, 20, lambda: None)
        figure(f"20 followed runs, {way.lost} messages of Redis lost and {way.passed} not: all as they were shown")
        assert way.lost > 100 and way.passed > 100
        history.check(cluster.servers[1].client)
    finally:
        way.close()
