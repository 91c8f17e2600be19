"""A network that drops packets between one server and the database: scenario 12 of the study, with a real firewall in the test's own network."""
import os
import subprocess
import time

import pytest
from support import cluster as parts
from support import postgres as pg
from support.history import Follower, begin
from support.provider import Gate, call, text, tools
from support.timing import SLACK, SOON, eventually

FREE = 15
# A user and network namespace. As nobody we may set it up, and PostgreSQL runs there, because that is not root.
NAMESPACE = ["unshare", "--user", "--net", f"--map-user={pg.NOBODY}", "--keep-caps"]


def nobody():
    return ["setpriv", "--reuid", str(pg.NOBODY), "--regid", str(pg.NOBODY), "--clear-groups"] if os.geteuid() == 0 else []


def works():
    return subprocess.run([*nobody(), *NAMESPACE, "sh", "-c", "ip link set lo up && nft add table inet t"], cwd="/", capture_output=True, check=False,
                          env={"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}).returncode == 0


@pytest.mark.limit(150)
def test_12_a_server_that_is_cut_off_from_the_database(tmp_path_factory):
    if not works():
        pytest.skip("this machine gives nobody a network of one's own, or has no nft (scripts/deps cluster)")
    base = subprocess.check_output([*nobody(), "mktemp", "-d"], text=True).strip()
    environment = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "HOME": base, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([*nobody(), *NAMESPACE, "/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", f"{base}/tests",
                           "-o", "python_functions=inside", f"{__file__}::inside"], cwd="/", env=environment, capture_output=True, text=True, timeout=140 * SLACK, check=False)
    subprocess.run(["rm", "-rf", base], check=True)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout[-6000:] + done.stderr[-2000:]


def nft(*words):
    subprocess.run(["nft", *words], check=True)


@pytest.mark.limit(130)
def inside(tmp_path, make_server, provider, history):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    postgres = pg.Postgres(settings=["listen_addresses=127.0.0.1,127.0.0.2"])  # on the usual port, which is free in the test's own network
    subprocess.run([pg.programs() / "createdb", "-h", "127.0.0.1", "-U", "reprise", "test"], check=True)
    url = "postgresql://reprise@127.0.0.1/test"
    cluster = parts.Cluster(tmp_path, url, lambda home, config, arguments: make_server(provider, home=home, config=config, arguments=arguments),
                            {"disconnect_grace_s": 0.2, "drain_s": 0})
    cluster.own[1] = {"store": {"type": "postgres", "url": url.replace("127.0.0.1", "127.0.0.2")}}
    owner, other = cluster.add(), cluster.add()
    gate, effects = Gate(), cluster.homes[0].workspace / "effects"
    provider.plan(text("half ", gate, "whole"))
    speaks = ("speaks", begin(cluster.ports[0], history, "speaks", "speak"))
    at_owner = owner.client.attach(*speaks, after=0)
    at_owner.until("text_delta")
    provider.plan(tools(call("run_shell", {"command": "echo once >> effects"})))
    waits = ("waits", begin(cluster.ports[0], history, "waits", "ask"))
    asked = eventually(lambda: other.client.get("/approvals").json["approvals"], "it waits")[0]

    nft("add", "table", "inet", "cut")
    nft("add", "chain", "inet", "cut", "input", "{ type filter hook input priority 0; }")
    for side in ("daddr", "saddr"):
        nft("add", "rule", "inet", "cut", "input", "ip", side, "127.0.0.2", "drop")
    since = time.monotonic()
    gate.release()
    eventually(lambda: owner.client.request("GET", "/readyz").status == 503, "the owner knows that it is cut off", FREE * SLACK)
    alone = time.monotonic() - since
    eventually(lambda: other.client.interaction(*speaks)["status"] == "FAILED", "it is taken over", FREE * SLACK)
    taken = time.monotonic() - since
    assert alone < taken, "the old owner stops before another server takes over"
    owner.client.post("/chats/new/interactions", {"user_message": "now?"}, limit=3 * SOON).error(503, "database_unavailable")
    provider.plan(text("done"))
    other.client.approve(*waits, asked["approval_id"]).expect(200)
    Follower(cluster.ports[1], waits, history).follow()
    assert history.ends[waits] == "COMPLETED" and effects.read_text() == "once\n"
    while time.monotonic() < since + 25:
        time.sleep(0.2)
    nft("flush", "chain", "inet", "cut", "input")
    while at_owner.next(limit=3 * SOON):
        pass
    assert "interaction_complete" not in at_owner.names() and "answer" not in at_owner.names()
    eventually(lambda: owner.client.request("GET", "/readyz").status == 200, "it is back", 3 * SOON)
    provider.answer_with(lambda r: text("yes"))
    for chat in ("speaks", "waits"):
        eventually(lambda chat=chat: isinstance(begin(cluster.ports[0], history, chat, "free?"), str), "it is free", FREE * SLACK)
    assert effects.read_text() == "once\n"
    for each in cluster.servers:
        each.stop()
    postgres.close()
