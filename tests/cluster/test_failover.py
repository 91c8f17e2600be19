"""The database moves to a standby: scenario 11 of the study."""
import os
import pathlib
import re
import time

import pytest
from support.history import Follower, Refused, begin, verify_database
from support.provider import Reply, delta, ending
from support.timing import SLACK, SOON, eventually

RUNS = int(os.environ.get("REPRISE_CLUSTER_RUNS", "40"))  # 100 in the study


class Slow(bytes):
    def __bool__(self):
        time.sleep(0.1)
        return True


def slow_answer(request):
    name = request.last["content"].split()[-1]
    return Reply([Slow(delta({"content": f"{name} word {n} "})) for n in range(60)] + ending())


@pytest.fixture
def pair(own_postgres):
    standby = own_postgres.make_standby()
    yield own_postgres, standby
    standby.close()


def both_hosts(cluster, primary, standby):
    """Restarts the servers with both hosts, because they started with one."""
    database = re.search(r"@/(\w+)", cluster.url).group(1)
    url = f"postgresql://reprise@/{database}?host={primary.folder},{standby.folder}"
    for number in range(1, len(cluster.ports) + 1):
        cluster.servers[number - 1].stop()
        cluster.own[number] = {"store": {"type": "postgres", "url": url}}
        cluster.start(number)
    return url


def receivers_of(standby):
    found = []
    for pid in standby.children():
        try:
            found += [pid] if b"walreceiver" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() else []
        except FileNotFoundError:
            pass  # the process has just ended
    return found


def begin_runs(cluster, history):
    runs = []
    for number in range(RUNS):
        at = number % len(cluster.ports)
        run = (f"c{number}", begin(cluster.ports[at], history, f"c{number}", f"say n{number}"))
        runs.append(Follower(cluster.ports[(at + number // 2) % len(cluster.ports)], run, history, limit=120).start())
    for each in runs:
        each.await_event("text_delta", limit=3 * SOON)
    return runs


@pytest.mark.limit(180)
def test_11_to_a_synchronous_standby_nothing_is_lost(pair, make_cluster, provider, history, figure):
    primary, standby = pair
    provider.answer_with(slow_answer)
    cluster = make_cluster(3)
    primary.query(primary.url("postgres"), "alter system set synchronous_standby_names = '*'")
    primary.query(primary.url("postgres"), "select pg_reload_conf()")
    eventually(lambda: primary.query(primary.url("postgres"), "select sync_state from pg_stat_replication") == "sync", "the standby is synchronous")
    url = both_hosts(cluster, primary, standby)
    runs = begin_runs(cluster, history)
    primary.crash()
    gone = time.monotonic()
    standby.promote()
    eventually(lambda: all(each.client.get("/readyz").status == 200 for each in cluster.servers), "the servers have found the new primary", 30 * SLACK)
    found = time.monotonic() - gone
    for each in runs:
        each.wait(120)
    assert {history.ends[each.run] for each in runs} == {"COMPLETED"}
    figure(f"failover of {len(runs)} runs to a synchronous standby: on after {found:.1f} s, all completed")
    assert found < 30 * SLACK
    history.check(cluster.servers[1].client, lambda: verify_database(cluster.homes[1], url))


@pytest.mark.limit(180)
def test_11_to_a_standby_that_lags_behind_runs_do_not_mix(pair, make_cluster, provider, history):
    """Data that had not reached the standby are lost. Each interaction stored there belongs to one run, and chats continue."""
    primary, standby = pair
    provider.answer_with(slow_answer)
    cluster = make_cluster(3)
    url = both_hosts(cluster, primary, standby)
    eventually(lambda: receivers_of(standby), "it follows")
    standby.query(standby.url("postgres"), "alter system set primary_conninfo = ''")
    standby.query(standby.url("postgres"), "select pg_reload_conf()")
    eventually(lambda: not receivers_of(standby), "the standby has stopped following")
    begin_runs(cluster, history)
    primary.crash()
    standby.promote()
    assert standby.query(url.replace(f"{primary.folder},", ""), "select count(*) from reprise.runs") == "0", "the standby has no run"
    eventually(lambda: all(each.client.get("/readyz").status == 200 for each in cluster.servers), "the servers have found the new primary", 30 * SLACK)
    started = {}

    def goes_on(number):
        answer = begin(cluster.ports[number % 3], history_after, f"c{number}", f"say m{number}")
        if not isinstance(answer, Refused):
            started[number] = answer
        return number in started

    from support.history import History
    history_after = History()
    for number in range(0, RUNS, 4):
        eventually(lambda number=number: goes_on(number), f"c{number} goes on", 30 * SLACK)
    followers = [Follower(cluster.ports[(number + 1) % 3], (f"c{number}", run), history_after, limit=60).start() for number, run in started.items()]
    for each in followers:
        each.wait()
    for number in started:
        for stored in cluster.servers[0].client.history(f"c{number}", "all")["interactions"]:
            said = "".join(event.get("content", "") for event in stored["agent_events"])
            mine, other = (f"n{number} ", f"m{number} ") if stored["user_message"] == f"say n{number}" else (f"m{number} ", f"n{number} ")
            assert other not in said and (stored["status"] != "COMPLETED" or mine in said), stored
    history_after.check(cluster.servers[1].client, lambda: verify_database(cluster.homes[1], url))
