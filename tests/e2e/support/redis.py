"""A real Redis for the tests: unprivileged, on loopback, without persistence."""
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from .postgres import ENDS_WITH_US, NOBODY, as_nobody
from .s3 import free_ports
from .timing import SLACK, halt

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
        halt(self.process.pid)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def command(self, *words):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True, timeout=20 * SLACK, check=True).stdout

    def monitor(self):
        """Records the commands of all clients from now on; `stop` returns them."""
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


class LossyWay:
    """A proxy to Redis that randomly loses published messages."""

    def __init__(self, redis, seed, chance):
        self.target, self.chance = redis.port, chance
        self.random = random.Random(seed)
        self.lost = self.passed = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:  # Redis is down, and so is the proxy
                near.close()
                continue
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pass, args=(near, far), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, True), daemon=True).start()

    def _pass(self, source, target, is_lossy=False):
        rest = b""
        try:
            while data := source.recv(65536):
                if not is_lossy:
                    target.sendall(data)
                    continue
                rest += data
                while size := self._value(rest, 0):
                    value, rest = rest[:size], rest[size:]
                    is_message = value.startswith(b"*3\r\n$7\r\nmessage\r\n")
                    if is_message and self.random.random() < self.chance:
                        self.lost += 1
                        continue
                    self.passed += is_message
                    target.sendall(value)
        except OSError:
            pass
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    @classmethod
    def _value(cls, data, start):
        """The end of the value that begins there; 0 if it is not complete."""
        line = data.find(b"\r\n", start)
        if line < 0:
            return 0
        kind, end = data[start:start + 1], line + 2
        if kind == b"$" and (size := int(data[start + 1:line])) >= 0:
            return end + size + 2 if len(data) >= end + size + 2 else 0
        if kind == b"*":
            for _ in range(int(data[start + 1:line])):
                end = cls._value(data, end)
                if not end:
                    return 0
        return end

    def close(self):
        self.listener.close()
