"""What the server does when resources run out: disk, folder, descriptors, memory, threads."""
import collections
import concurrent.futures
import json
import os
import pathlib
import resource
import shutil
import subprocess
import tempfile

import pytest
from support.provider import Gate, Reply, call, text, tools
from support.server import BINARY, Home
from support.timing import SLACK, SOON, at_once, eventually


def is_ready(client):
    return client.get("/readyz").status == 200


def not_ready(client):
    answer = client.get("/readyz")
    return answer.status == 503 and answer.json["error"]["code"]


def test_without_its_folder_it_is_not_ready_and_starts_nothing_until_it_is_back(offline):
    client, data = offline.client, offline.home.data
    assert is_ready(client)
    client.turn("known", "echo one")
    eventually((data / "known" / "chat.json").exists, "the index is written")
    away = data.with_name("away")
    data.rename(away)
    assert eventually(lambda: not_ready(client), "the folder is missed") == "data_folder_gone"
    refused = client.post("/chats/new/interactions", {"user_message": "echo x"})
    refused.error(503, "data_folder_gone")
    assert refused.headers["Retry-After"] and refused.json["error"]["retryable"]
    # A chat that cannot be reached is reported neither as unknown nor as damaged.
    chat = "/chats/known"
    for method, path, body in [
        ("GET", "/chats", None), ("POST", "/chats", {"id": "made"}), ("GET", chat, None), ("GET", "/chats/never", None),
        ("GET", f"{chat}/interactions/int_001", None), ("GET", f"{chat}/interactions/int_001/events", None),
        ("POST", f"{chat}/interactions", {"user_message": "echo y"}),
        ("POST", f"{chat}/interactions/int_001/edit", {"new_user_message": "echo y"}),
        ("POST", f"{chat}/fork", {"interaction_id": "int_001", "chat_id": "copy"}), ("PATCH", chat, {"title": "t"}),
        ("POST", f"{chat}/head", {"interaction_id": "int_001"}), ("GET", f"{chat}/files", None),
        ("GET", "/audit", None), ("DELETE", chat, None),
    ]:  # fmt: skip
        answer = client.request(method, path, body)
        assert (answer.status, answer.json["error"]["code"]) == (503, "data_folder_gone"), (method, path, answer.body)
    client.get("/healthz").expect(200)
    away.rename(data)
    eventually(lambda: is_ready(client), "the server recovers by itself")
    client.turn("new", "echo x")
    client.turn("known", "echo two")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_another_folder_in_the_place_of_its_own_stays_as_it_is(offline):
    client, data = offline.client, offline.home.data
    client.turn("known", "echo one")
    eventually((data / "known" / "chat.json").exists, "the index is written")
    backup = data.with_name("backup")
    shutil.copytree(data, backup)
    client.turn("known", "echo two")  # its chat.json is written after a pause, or at the stop
    data.rename(data.with_name("away"))
    backup.rename(data)
    before = contents(data)
    assert eventually(lambda: not_ready(client), "the exchange is noticed") == "data_folder_gone"
    refused = client.post("/chats/known/interactions", {"user_message": "echo three"}).error(503, "data_folder_gone")
    assert "stop this server" in refused["message"]
    client.post("/chats", {"id": "made"}).error(503, "data_folder_gone")
    client.request("DELETE", "/chats/known", None).error(503, "data_folder_gone")
    offline.stop()
    assert contents(data) == before


def test_what_is_written_to_find_out_is_not_left_behind(offline):
    for _ in range(20):
        assert is_ready(offline.client)
    assert not [p for p in offline.home.data.iterdir() if "probe" in p.name]


def settled(answers, limit, *others):
    """Asserts that every request was completed or may be retried, and that some met this limit. Returns how many were completed."""
    codes = collections.Counter()
    for status, body in answers:
        assert status in (200, 503), (status, body[:300])
        events = [json.loads(line.removeprefix(b"data: ")) for line in body.splitlines() if line.startswith(b"data: ")]
        errors = [json.loads(body)["error"]] if status == 503 else [e for e in events if e["type"] == "ERROR"]
        assert errors or events[-1]["status"] == "COMPLETED", body[-300:]
        assert all(error["retryable"] for error in errors), body[-600:]
        codes[errors[0]["code"] if errors else "done"] += 1
    assert codes.keys() <= {"done", "overloaded", limit, *others} and codes[limit], codes
    return codes["done"]


def many_turns(client, count):
    def turn(number):
        answer = client.post(f"/chats/many{number}/interactions", {"user_message": "echo x"}, limit=60)
        return answer.status, answer.body

    return at_once([lambda number=number: turn(number) for number in range(count)])


@pytest.mark.limit(90)
def test_few_descriptors_mean_come_back_later_and_never_a_broken_disk(offline):
    process = offline.process.pid
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (48, before[1]))  # about fifteen are in use; only root may count them
    settled(many_turns(offline.client, 120), "too_many_files", "save_failed")  # a run that found no descriptor for its save is in the fallback folder
    # Of so many at once perhaps none completes, but a single one that retries does.
    alone = {"user_message": "echo x"}
    eventually(lambda: b'"status":"COMPLETED"' in offline.client.post("/chats/alone/interactions", alone).body, "one alone is done")
    resource.prlimit(process, resource.RLIMIT_NOFILE, before)
    offline.home.killed = True  # without a descriptor temporary files cannot be removed either; the next start does that
    assert "the disk could not be read" not in offline.log()
    offline.client.turn("after", "echo x")


@pytest.mark.skipif("SAN_OPTIONS" in "".join(os.environ), reason="a sanitizer ends the program when memory is refused")
@pytest.mark.limit(90)
def test_little_memory_means_come_back_later_and_not_the_end(offline):
    process = offline.process.pid
    offline.client.turn("before", "echo x")
    pages = int(open(f"/proc/{process}/statm").read().split()[0])
    before = resource.prlimit(process, resource.RLIMIT_AS)
    # Room for what must stay free beside the memory reserve, and for a few threads.
    resource.prlimit(process, resource.RLIMIT_AS, (pages * resource.getpagesize() + (40 << 20), before[1]))
    assert settled(many_turns(offline.client, 200), "overloaded")
    assert offline.process.poll() is None, offline.log()[-2000:]
    resource.prlimit(process, resource.RLIMIT_AS, before)
    offline.client.turn("after", "echo x")


SOMEBODY = 54321


@pytest.fixture
def counted_home(make_home):
    """A home, and a prefix that runs commands in it as a user whose threads the kernel counts. Root's are not counted, so root becomes another user."""
    if os.getuid() != 0:
        yield make_home(), []
        return
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folder is closed to other users
        os.chmod(folder, 0o711)
        home = Home(pathlib.Path(folder) / "user")
        run = 'chown -R "$1:$1" "$2" && user=$1 && shift 2 && exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"'
        yield home, ["sh", "-c", run, "sh", str(SOMEBODY), str(home.path)]


def counts_threads(run):
    """Whether the prefix works, may run the program, and cannot start a thread beyond the limit."""
    starve = "import resource, threading; resource.setrlimit(resource.RLIMIT_NPROC, (1, 1)); threading.Thread(target=print).start()"
    try:
        return (subprocess.run([*run, str(BINARY), "--version"], capture_output=True, check=False).returncode == 0
                and b"can't start new thread" in subprocess.run([*run, "/usr/bin/python3", "-c", starve], capture_output=True, check=False).stderr)
    except OSError:
        return False


@pytest.mark.limit(90)
def test_no_more_threads_mean_come_back_later_and_not_the_end(counted_home, make_server):
    home, run = counted_home
    if not counts_threads(run):
        pytest.skip("nobody's threads are counted here: no setpriv, no other user who may run the program, or no such limit")
    server = make_server(home=home, wrapper=run)
    process = str(server.process.pid)

    def limit(threads):
        subprocess.run([*run, "prlimit", "--pid", process, f"--nproc={threads}:"], check=True)

    server.client.turn("before", "echo x")
    limits = pathlib.Path(f"/proc/{process}/limits").read_text().splitlines()
    before, = (line.split()[2] for line in limits if line.startswith("Max processes"))
    limit(1)
    assert settled(many_turns(server.client, 120), "overloaded")
    server.client.turn("alone", "echo x")
    assert server.process.poll() is None, server.log()[-2000:]
    limit(before)
    assert {status for status, _ in many_turns(server.client, 8)} == {200}
    server.stop()
    if run:  # the checks afterwards expect root's files
        subprocess.run(["chown", "-R", "0:0", str(home.path)], check=True)


@pytest.mark.limit(90)
def test_a_start_without_threads_ends_with_the_reason(counted_home):
    home, run = counted_home
    if not counts_threads(run):
        pytest.skip("nobody's threads are counted here: no setpriv, no other user who may run the program, or no such limit")
    refused = 0
    for threads in range(1, 40):
        started = subprocess.Popen([*run, "prlimit", f"--nproc={threads}:{threads}", str(BINARY), "serve", "--port", "0", "--data-dir", str(home.data)],
                                   env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if started.stdout.readline():  # it listens
            started.terminate()
            started.communicate(timeout=20 * SLACK)
            break
        said = started.communicate(timeout=20 * SLACK)[1]
        assert started.returncode == 1 and "no thread left" in said, (threads, started.returncode, said)
        refused += 1
    assert refused > 2 and started.returncode == 0, refused


@pytest.mark.limit(120)
def test_a_chat_can_be_deleted_at_any_moment_of_a_start(make_server, provider):
    server = make_server(provider, config={"disconnect_grace_s": 30})
    client = server.client
    server.check_records = False
    for number in range(300):
        chat = f"c{number}"
        provider.plan(tools(call("write_file", {"path": "a", "content": "1"}, "w")), text("ok"))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            started = pool.submit(client.post, f"/chats/{chat}/interactions", {"user_message": "x"}, limit=20)
            deleted = pool.submit(client.request, "DELETE", f"/chats/{chat}", limit=20)
            assert deleted.result().status in (200, 404)
            if deleted.result().status == 404:  # the DELETE came before the chat existed
                eventually(lambda chat=chat: client.request("DELETE", f"/chats/{chat}", limit=20).status == 200, "deleted")
            assert started.result().status in (200, 409)
        provider.forget_plan()


@pytest.mark.skipif("SAN_OPTIONS" in "".join(os.environ), reason="a sanitizer makes nothing of mlock")
def test_keys_stay_in_memory_where_that_is_allowed(offline):
    limit, _ = resource.prlimit(offline.process.pid, resource.RLIMIT_MEMLOCK)
    locked = next(int(line.split()[1]) for line in open(f"/proc/{offline.process.pid}/status") if line.startswith("VmLck:"))
    assert locked > 0 or (limit != resource.RLIM_INFINITY and limit < resource.getpagesize())


def test_a_key_file_of_another_user_stops_the_start(make_home, make_server):
    home = make_home()
    make_server(home=home).stop()
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(home.keys, 12345, 12345)
    with pytest.raises(AssertionError, match="belongs to another user"):
        make_server(home=home)
    os.chown(home.keys, 0, 0)


def test_silent_providers_hold_up_nothing_but_their_lists(make_server, provider):
    silent = Gate()
    provider.listing = Reply([silent], content_type="application/json")
    server = make_server(provider)
    client = server.client
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        lists = [pool.submit(client.get, "/models", limit=60) for _ in range(40)]
        silent.wait_reached()
        provider.plan(text("ok"))
        answer = client.post("/chats/c/interactions", {"user_message": "x"}, limit=SOON)
        assert answer.status == 200 and b"COMPLETED" in answer.body
        assert all(one.result().status == 200 for one in lists)
    silent.release()
