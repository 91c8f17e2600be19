"""The tests can fail: faults are planted in statements on their way to the database, and the usual checks detect them. Each test runs with the fault and
without.

The eight faults of the design, and where they are detected:
  the token's check is left out          here; and tests/postgres/fencing_test.cc (whose run was taken up writes nothing any more)
  FOR KEY SHARE                          here; and fencing_test.cc (a new owner waits for an append under way)
  subscribe after read                   tests/postgres/following_test.cc (no record is lost between those that a follower reads and those that it is told), planted there
  an answer is shown before it is kept   here
  a lease by a local clock               here
  a journal's key is used again          fencing_test.cc (a new owner seals nothing at a position ...), planted there
  an end that cannot be repeated         here
  a signal is lost, and no poll follows  here
And one of the queue: a message stays in it when its run begins."""
import time

import pytest
from support.history import Follower, begin, shown
from support.provider import Gate, call, text, tools
from support.timing import SLACK, SOON, eventually

BOTH = pytest.mark.parametrize("planted", [False, True], ids=["sound", "planted"])


def plant(way, planted, *rewrites):
    # Without a fault the statements take the same path unchanged.
    way.rewrites = list(rewrites) if planted else [(b"reprise.nothing", b"reprise.nothing")]
    way.drop()


def append_slowly(postgres, url, lock):
    """Creates a function like append_record that takes three seconds and locks the run's row with `lock`."""
    sound = postgres.query(url, "select pg_get_functiondef('reprise.append_record'::regproc)")
    assert "for share;" in sound and "return true;" in sound, sound
    slow = sound.replace("reprise.append_record(", "reprise.append_slowly(").replace("for share;", f"{lock};")
    postgres.query(url, slow.replace("return true;", "perform pg_sleep(3); return true;"))


def within(condition, seconds):
    try:
        return bool(eventually(condition, "", seconds))
    except AssertionError:
        return False


@BOTH
@pytest.mark.limit(90)
def test_the_check_of_the_token_is_left_out(make_cluster, provider, history, planted):
    """With the fault a tool runs both at the old owner and at the new one. (The check that records are consecutive is left out, too, because it may also
    detect this.)"""
    cluster = make_cluster(2, ways=[1])
    plant(cluster.ways[1], planted, (b"token = $4::uuid", b"$4 = $4::uuid"), (b"token = $5::uuid", b"$5 = $5::uuid"),
          (b"where $5::int = 0 or exists", b"where true or exists"))
    done = cluster.homes[0].workspace / "effects"
    provider.answer_with(lambda r: text("done") if r.last["role"] == "tool" else tools(call("run_shell", {"command": "echo once >> effects"})))
    run = ("c", begin(cluster.ports[0], history, "c", "ask"))
    asked = eventually(lambda: cluster.servers[1].client.get("/approvals").json["approvals"], "it waits")[0]
    shown(cluster.servers[0].client, *run)
    cluster.ways[1].cut()
    eventually(lambda: "taken up" in cluster.servers[1].log(), "it is taken over", 15 * SLACK)
    cluster.ways[1].heal()
    eventually(lambda: cluster.servers[0].client.get("/readyz").status == 200, "the old owner is back")
    time.sleep(1.5)  # long enough for a poll for changes
    cluster.servers[0].client.approve(*run, asked["approval_id"]).expect(200)
    Follower(cluster.ports[1], run, history).follow()
    assert cluster.ways[1].rewritten.is_set() == planted
    twice = within(lambda: done.read_text() == "once\nonce\n", 3 if planted else 1)
    assert twice == planted


@BOTH
@pytest.mark.limit(90)
def test_for_key_share_in_place_of_for_share(make_cluster, provider, history, postgres, planted):
    """With the fault an append in progress is stored and shown after another server has taken the run up. (The claim only locks the row for an update, so
    that only the append's lock can exclude it.)"""
    cluster = make_cluster(2, ways=[1, 2])
    way = cluster.ways[1]
    plant(cluster.ways[2], True, (b"for update of r skip locked", b"for no key update of r skip locked"))
    gate = Gate()
    provider.plan(text("half ", gate, "behind", Gate()))
    run = ("c", begin(cluster.ports[0], history, "c", "speak"))
    at_owner = Follower(cluster.ports[0], run, history, reconnect=False).start()
    at_owner.await_event("text_delta")
    owner = postgres.query(cluster.url, "select owner from reprise.runs where state = 'running'")
    # The append takes a while, with the row locked and the record not yet committed.
    append_slowly(postgres, cluster.url, "for key share" if planted else "for share")
    way.rewrites = [(b"reprise.append_record(", b"reprise.append_slowly(")]
    gate.release()
    assert way.rewritten.wait(SOON)
    for _ in range(12):
        postgres.query(cluster.url, f"update reprise.instances set dead = true where id = '{owner}'")
        time.sleep(0.2)
    way.rewrites = []
    within(lambda: cluster.servers[1].client.interaction(*run)["status"] == "FAILED", 5)
    time.sleep(1.5)
    stored = str(cluster.servers[1].client.interaction(*run)["agent_events"])
    status = cluster.servers[1].client.interaction(*run)["status"]
    lost = status == "FAILED" and b"behind" in at_owner.text() and "behind" not in stored
    assert lost == planted, (status, at_owner.text(), stored)


@BOTH
@pytest.mark.limit(60)
def test_an_answer_is_told_before_it_is_committed(make_cluster, provider, history, planted):
    cluster = make_cluster(2, ways=[2])
    plant(cluster.ways[2], planted, (b"set answer = $3 where", b"set kind = kind where"))
    provider.answer_with(lambda r: text("done") if r.last["role"] == "tool" else tools(call("calculator", {"expression": "1"}), call(
        "run_shell", {"command": "echo once >> effects"}, "call_2")))
    run = ("c", begin(cluster.ports[0], history, "c", "ask"))
    other = cluster.servers[1].client
    asked = eventually(lambda: other.get("/approvals").json["approvals"], "it waits")[0]
    taken = [other.approve(*run, asked["approval_id"]).status for _ in range(2)]
    assert (taken == [200, 200]) == planted, taken
    done = within(lambda: cluster.servers[1].client.interaction(*run)["status"] == "COMPLETED", 5)
    assert done != planted


@BOTH
@pytest.mark.limit(60)
def test_a_lease_by_a_clock_that_is_six_hours_late(make_cluster, provider, history, planted):
    cluster = make_cluster(2, ways=[1])
    plant(cluster.ways[1], planted, (b"clock_timestamp() + $2::interval", b"clock_timestamp() - interval '6 hours' + $2::interval"))
    gate = Gate()
    provider.plan(text("half ", gate, "whole"))
    run = ("c", begin(cluster.ports[0], history, "c", "speak"))
    taken = within(lambda: cluster.servers[1].client.interaction(*run)["status"] == "FAILED", 8)  # two renewals of the lease
    gate.release()
    Follower(cluster.ports[1], run, history).follow()
    assert taken == planted and history.ends[run] == ("FAILED" if planted else "COMPLETED")


@BOTH
@pytest.mark.limit(60)
def test_an_end_that_cannot_be_said_twice(make_cluster, provider, history, planted):
    """The end was committed although its answer was lost, and the owner must find out."""
    cluster = make_cluster(2, ways=[1])
    way = cluster.ways[1]
    plant(way, planted, (b"select digest from", b"select 'x' || digest from"))
    gate = Gate()
    provider.plan(text("half ", gate, "whole"))
    run = ("c", begin(cluster.ports[0], history, "c", "speak"))
    at_owner = Follower(cluster.ports[0], run, history, reconnect=False).start()
    at_owner.await_event("text_delta")
    way.lose_answer(b"reprise.end_turn(")
    gate.release()
    at_owner.thread.join(SOON)
    assert way.swallowed.is_set()
    assert at_owner.done != planted, at_owner.text()


@pytest.mark.limit(60)
@pytest.mark.parametrize("lost", ["nothing", "notifications", "notifications and polls"])
def test_a_signal_is_lost(make_cluster, provider, history, lost, figure):
    """With polls a lost signal costs a second, without them the answer never arrives."""
    cluster = make_cluster(2, ways=[1, 2])
    plant(cluster.ways[2], lost != "nothing", (b"pg_notify(channel, payload)", b"channel || payload"))
    plant(cluster.ways[1], lost.endswith("polls"), (b"union select tenant from reprise.runs r where owner", b"union select tenant from reprise.runs r where false and owner"))
    provider.answer_with(lambda r: text("done") if r.last["role"] == "tool" else tools(call("run_shell", {"command": "echo once >> effects"})))
    run = ("c", begin(cluster.ports[0], history, "c", "ask"))
    at_owner = Follower(cluster.ports[0], run, history, reconnect=False, limit=8).start()
    asked = at_owner.await_event("approval_required")
    time.sleep(0.1)
    told = time.monotonic()
    cluster.servers[1].client.approve(*run, asked["approval_id"]).expect(200)
    done = within(lambda: b"event: approved" in at_owner.text(), 4)
    figure(f"an answer at another server, with {lost} lost: " + (f"taken after {(time.monotonic() - told) * 1e3:.0f} ms" if done else "not taken"))
    assert done == (not lost.endswith("polls"))
    cluster.servers[0].client.cancel(*run)


@BOTH
@pytest.mark.limit(60)
def test_a_message_stays_in_the_queue_when_it_begins(make_cluster, provider, history, postgres, planted):
    """With the fault the message begins again."""
    cluster = make_cluster(2)
    sound = postgres.query(cluster.url, "select pg_get_functiondef('reprise.begin_queued_turn'::regproc)")
    taking = "set taken = _number, taken_at = clock_timestamp(), record = '', failure = null"
    assert taking in sound, sound
    if planted:
        postgres.query(cluster.url, sound.replace(taking, "set failure = failure"))
    gate = Gate()
    provider.plan(text("half ", gate, "whole"))
    begin(cluster.ports[0], history, "c", "first")
    gate.wait_reached()
    provider.answer_with(lambda r: text(f"re: {r.last['content']}"))
    waiting = cluster.servers[1].client.stream("POST", "/chats/c/interactions", {"user_message": "second", "if_running": "queue"})
    assert waiting.next().name == "queued"
    gate.release()
    waiting.finish()
    twice = within(lambda: [each["user_message"] for each in cluster.servers[0].client.history("c", "all")["interactions"]].count("second") > 1, 6 if planted else 3)
    assert twice == planted
