"""A real Redis for the tests: unprivileged, on loopback, keeping nothing."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from .postgres import ENDS_WITH_US, NOBODY, as_nobody
from .s3 import free_ports
from .timing import SLACK

PROGRAM = pathlib.Path("/usr/bin/redis-server")


class Redis:
    def __init__(self, log=os.devnull):
        self.log = log
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="redis"))
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        self.port, = free_ports(1)
        self.url = f"redis://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(as_nobody(*ENDS_WITH_US, PROGRAM, "--bind", "127.0.0.1", "--port", self.port, "--save", "", "--dir", self.folder),
                                            cwd="/", stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 30 * SLACK
        while True:
            assert time.monotonic() < deadline and self.process.poll() is None
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.01)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def command(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True, timeout=20 * SLACK, check=True).stdout

    def monitor(self):
        """What every client says from now on, until `stop` gives it."""
        return Monitor(self.port)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Monitor:
    def __init__(self, port):
        self.process = subprocess.Popen(["redis-cli", "-p", str(port), "monitor"], stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"OK\n"

    def stop(self):
        self.process.terminate()
        return self.process.communicate(timeout=20 * SLACK)[0]
