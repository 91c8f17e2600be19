"""scripts/cluster: what it starts, and that it leaves nothing behind."""
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import pytest
from support import s3
from support.client import Client
from support.server import BINARY, ROOT
from support.timing import SLACK, SOON, eventually


class Script:
    def __init__(self, *arguments):
        environment = {**os.environ, "REPRISE_BIN": str(BINARY), "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen([ROOT / "scripts/cluster", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
                                        stdin=subprocess.DEVNULL, start_new_session=True)
        self.said = b""
        deadline = time.monotonic() + 6 * SOON
        while b"Ctrl-C ends all" not in self.said:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            more = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            assert more, self.said.decode()
            self.said += more
        text = self.said.decode()
        self.port = int(re.search(r"servers after .* s: http://127\.0\.0\.1:(\d+)", text).group(1))
        self.each = [int(port) for port in re.findall(r":(\d+)", re.search(r"each by itself: (.*)", text).group(1))]
        self.logs = pathlib.Path(re.search(r"logs: (.*)", text).group(1))
        self.client = Client(self.port)

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        assert self.process.wait(3 * SOON) == 0, self.process.stdout.read()
        self.process.stdout.close()


def processes_in(folder):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


@pytest.mark.limit(120)
def test_it_starts_all_of_it_in_seconds_and_leaves_nothing(figure):
    script = Script(2, *([] if s3.is_installed() else ["--no-s3"]))
    folder = script.logs.parent
    figure("scripts/cluster: " + script.said.decode().splitlines()[0])
    assert len(script.each) == 2 and {path.name for path in script.logs.iterdir()} >= {"instance1.log", "instance2.log", "redis.log"}
    for pid in processes_in(folder):
        assert os.stat(f"/proc/{pid}").st_uid != 0, pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    script.client.turn("c", "what is 2+2?")
    if s3.is_installed():
        uploaded = script.client.request("POST", "/chats/c/files?name=a.txt", b"text", headers={"Content-Type": "text/plain"}).expect(201).json
        assert Client(script.each[1]).get(f"/chats/c/files/{uploaded['id']}").body == b"text"
    histories = [Client(port).history("c") for port in (script.port, *script.each)]
    assert histories[0] == histories[1] == histories[2] and len(histories[0]["interactions"]) == 1
    script.stop(signal.SIGINT)
    assert not folder.exists()
    eventually(lambda: not processes_in(folder), "all have ended")


@pytest.mark.limit(120)
def test_with_a_folder_chats_are_there_again_and_a_killed_script_leaves_no_process():
    folder = pathlib.Path(subprocess.check_output(["mktemp", "-d", "/tmp/reprise-kept-XXXXXX"], text=True).strip())
    try:
        script = Script(1, "--no-s3", "--no-redis", "--dir", folder)
        script.client.turn("c", "what is 2+2?")
        script.process.kill()
        script.process.wait()
        eventually(lambda: not processes_in(folder), "all have ended", limit=SOON * SLACK)
        again = Script(1, "--no-s3", "--no-redis", "--dir", folder)
        assert len(again.client.history("c")["interactions"]) == 1
        again.stop()
        assert (folder / "pg").exists() and not processes_in(folder)
    finally:
        subprocess.run(["rm", "-rf", folder], check=True)
