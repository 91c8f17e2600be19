"""A disk that fills up while the server works. It is a small file system, which only root can mount. And a limit on the size of files."""
import subprocess

import pytest
from support.provider import Gate, call, text, tools
from support.timing import eventually


@pytest.fixture
def small_disk(make_home):
    """A home whose data folder is a file system of half a megabyte."""
    home = make_home()
    home.data.mkdir(mode=0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k,mode=700", "tmpfs", str(home.data)], stderr=subprocess.PIPE, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a file system: {mounted.stderr.decode().strip()}")
    yield home
    subprocess.run(["umount", "-l", str(home.data)], check=True)


def fill(home):
    with open(home.data / "fill", "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 1024)
        except OSError:
            pass


def free(home):
    (home.data / "fill").unlink()


def test_full_in_mid_run_fails_it_by_name_and_heals_without_a_restart(make_server, small_disk, provider):
    server = make_server(provider, home=small_disk)
    server.check_files = False
    provider.plan(text("a1"))
    server.client.turn("c", "q1")
    before = small_disk.checkpoint_file("c", "int_001").read_bytes()

    gate = Gate()
    provider.plan(text("half ", gate, "x" * 8192))
    stream = server.client.start("c", "q2")
    stream.until("text_delta")
    fill(small_disk)
    gate.release()
    stream.finish("FAILED")
    assert stream.all("error")[0]["code"] == "storage_full"
    assert small_disk.checkpoint_file("c", "int_001").read_bytes() == before
    assert server.client.interaction("c", "int_002")["status"] == "FAILED"

    asked = len(provider.requests)
    server.client.post("/chats/c/interactions", {"user_message": "q3"}).error(507, "storage_full")
    server.client.post("/chats/new/interactions", {"user_message": "q3"}).error(507, "storage_full")
    assert len(provider.requests) == asked, "the model was asked although the answer could not be stored"
    assert [chat["id"] for chat in server.client.get("/chats").json["chats"]] == ["c"]
    server.client.get("/chats/new").error(404, "not_found")

    free(small_disk)
    provider.plan(text("a4"), text("a5"))
    server.client.turn("c", "q4")
    server.client.turn("new", "q5")


def test_a_tool_does_not_run_when_its_call_cannot_be_put_on_record(make_server, small_disk, provider):
    server = make_server(provider, home=small_disk)
    server.check_files = False
    provider.plan(tools(call("write_file", {"path": "out.txt", "content": "x" * 9000})))
    stream = server.client.start("c", "q1")
    asked = stream.until("approval_required")
    fill(small_disk)
    # Longer than the free part of the journal's last block can be.
    changed = {"path": "out.txt", "content": "y" * 9000}
    server.client.approve("c", "int_001", asked["approval_id"], arguments=changed).error(507, "storage_full")
    stream.finish("FAILED")
    assert [e["code"] for e in stream.all("error")] == ["storage_full"]
    assert not (small_disk.workspace / "out.txt").exists()


def test_a_fork_that_does_not_fit_is_not_there_at_all(make_server, small_disk, provider):
    server = make_server(provider, home=small_disk)
    server.check_files = False
    client = server.client
    provider.plan(text("a1"))
    client.turn("c", "q1")
    for n in range(6):
        body = bytes([65 + n]) * 40_000
        client.request("POST", f"/chats/c/files?name={n}.txt", body, headers={"Content-Type": "text/plain"}).expect(201)
    client.post("/chats/c/fork", {"interaction_id": "int_001", "chat_id": "copy"}).error(507, "storage_full")
    client.get("/chats/copy").error(404, "not_found")
    assert not (small_disk.data / "copy").exists()
    assert not list(small_disk.data.glob(".incoming.*"))
    for file in client.get("/chats/c/files").expect(200).json["files"][:3]:
        client.request("DELETE", f"/chats/c/files/{file['id']}").expect(200)
    client.post("/chats/c/fork", {"interaction_id": "int_001", "chat_id": "copy"}).expect(201)
    assert len(client.get("/chats/copy/files").expect(200).json["files"]) == 3


def test_a_full_disk_is_not_ready_and_heals(make_server, small_disk, provider):
    server = make_server(provider, home=small_disk)
    client = server.client
    client.get("/readyz").expect(200)
    fill(small_disk)

    def answer():
        got = client.get("/readyz")
        return got.status == 503 and got

    refused = eventually(answer, "it is not ready")
    refused.error(503, "storage_full")
    assert refused.headers["Retry-After"]
    client.get("/healthz").expect(200)
    free(small_disk)
    eventually(lambda: client.get("/readyz").status == 200, "it is ready again")


def test_a_limit_on_files_fails_a_turn_and_not_the_server(make_server, provider):
    server = make_server(provider, wrapper=["/usr/bin/prlimit", "--fsize=200000:200000", "--"])
    server.check_files = False
    provider.plan(text(*["x" * 50_000] * 10))
    stream = server.client.start("c", "q1")
    stream.finish("FAILED")
    assert len(stream.all("error")) == 1 and server.process.poll() is None, stream.all("error")
    provider.plan(text("a2"))
    server.client.turn("d", "q2")
