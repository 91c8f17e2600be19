"""Chats in folders of their own on two servers that share a database and the folders."""
import json

import pytest
from support.provider import Gate, Reply, call, text, tools
from support.server import processes, sandbox_works
from support.timing import SLACK, eventually

LEASE = 30


@pytest.fixture
def pair(make_cluster, tmp_path):
    cluster = make_cluster(2, approval_mode="approve_all")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    return cluster


def use(provider, client, chat, name, arguments, **more):
    provider.plan(tools(call(name, arguments)), text("done"))
    return client.turn(chat, "go", **more)


@pytest.mark.limit(120)
def test_a_killed_server_s_chat_goes_on_in_its_folder_at_the_other(pair, provider, tmp_path):
    one, (first, second) = tmp_path / "one", pair.servers
    (one / "AGENTS.md").write_text("speak of apples")
    use(provider, first.client, "c", "write_file", {"path": "x", "content": "1"}, workspace=str(one))
    job, marker = None, "exec sleep 468135"
    if sandbox_works():
        job = use(provider, first.client, "c", "run_shell", {"command": marker, "background": True}).one("job_started")["job_id"]
        eventually(lambda: processes("sleep 468135"), "the job runs")
    gate, reply = Gate(), tools(call("write_file", {"path": "never", "content": "1"}))
    provider.plan(Reply([gate, *reply.steps]))
    running = first.client.start("c", "write it", on_disconnect="continue").interaction
    gate.wait_reached()
    assert second.client.get("/tools?chat_id=c").expect(200).json["workspace"] == str(one)
    second.client.post("/chats/c/interactions", {"user_message": "go", "workspace": str(tmp_path / "two")}).error(409, "works_elsewhere")
    assert second.client.request("PATCH", "/chats/c", {"workspace": str(tmp_path / "two")}).status == 409, "the other server runs a turn"
    first.kill()
    eventually(lambda: second.client.interaction("c", running)["status"] == "FAILED", "it is taken over", limit=LEASE * SLACK)
    stored = second.client.interaction("c", running)
    assert stored["error"]["code"] == "interrupted" and stored["workspace"] == str(one)
    if job:
        eventually(lambda: not processes("sleep 468135"), "the job has ended with its server")
        jobs = second.client.get("/chats/c/jobs").expect(200, "jobs").json["jobs"]
        assert [(each["id"], each["running"], each["end"]) for each in jobs] == [(job, False, "lost")]
    stream = use(provider, second.client, "c", "write_file", {"path": "x", "content": "2"})
    if job:
        assert (stream.one("job_ended")["job_id"], stream.one("job_ended")["reason"]) == (job, "lost")
        assert f"The background job {job} has ended, because its server has stopped" in json.dumps(provider.requests[-1].conversation)
    assert {path.name: path.read_text() for path in one.iterdir()} == {"AGENTS.md": "speak of apples", "x": "2"}
    assert not list((tmp_path / "two").iterdir()) and not list(pair.homes[0].workspace.iterdir())
    second.client.post("/chats/c/undo", {"files": "restore"}).expect(200)
    assert (one / "x").read_text() == "1"


@pytest.mark.limit(120)
def test_turns_at_both_servers_in_turn_keep_to_the_folder(pair, provider, tmp_path):
    clients = [each.client for each in pair.servers]
    for number in range(12):
        name = ("one", "two")[number // 2 % 2]
        use(provider, clients[number % 2], name, "write_file", {"path": f"f{number}", "content": name}, workspace=str(tmp_path / name))
        assert {client.get(f"/tools?chat_id={name}").json["workspace"] for client in clients} == {str(tmp_path / name)}
    for name in ("one", "two"):
        assert {path.read_text() for path in (tmp_path / name).iterdir()} == {name} and len(list((tmp_path / name).iterdir())) == 6
    # Moved at one server, moved at the other.
    (tmp_path / "one").rename(tmp_path / "renamed")
    assert str(tmp_path / "one") in clients[0].post("/chats/one/interactions", {"user_message": "go"}).error(404, "no_such_workspace")["message"]
    clients[0].request("PATCH", "/chats/one", {"workspace": str(tmp_path / "renamed")}).expect(200)
    use(provider, clients[1], "one", "write_file", {"path": "late", "content": "one"})
    assert (tmp_path / "renamed" / "late").exists() and not (tmp_path / "one").exists()
    first = clients[1].history("one")["interactions"][0]["id"]
    clients[1].post("/chats/one/head", {"interaction_id": first, "files": "restore"}).error(409, "workspace_moved")
