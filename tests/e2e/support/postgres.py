"""A real PostgreSQL for the tests: unprivileged, on a socket of its own, with a database for each test."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from .timing import SLACK

NOBODY = 65534


def programs():
    """Where the newest PostgreSQL that Debian has installed keeps its programs; None without one."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


def as_nobody(*command):
    """PostgreSQL does not run as root."""
    return (["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"] if os.geteuid() == 0 else []) + [str(c) for c in command]


class Postgres:
    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pg"))  # the path of a socket must be short
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        self.count = 0
        self._run("initdb", "-D", self.folder / "data", "-A", "trust", "--no-sync", "-U", "reprise", "-E", "UTF8", "--locale=C", "--wal-segsize=1")
        self.start()

    def _run(self, program, *arguments):
        done = subprocess.run(as_nobody(programs() / program, *arguments), cwd="/", capture_output=True, text=True, timeout=60 * SLACK, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self):
        self.process = subprocess.Popen(as_nobody(programs() / "postgres", "-D", self.folder / "data", "-c", "listen_addresses=", "-c",
                                                  f"unix_socket_directories={self.folder}", "-c", "shared_buffers=32MB"), cwd="/",
                                        stdout=subprocess.DEVNULL, stderr=open(self.folder / "log", "ab"))
        deadline = time.monotonic() + 30 * SLACK
        while subprocess.run(as_nobody(programs() / "pg_isready", "-q", "-h", self.folder), cwd="/", check=False).returncode != 0:
            assert time.monotonic() < deadline and self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.02)

    def crash(self):
        self.process.kill()
        self.process.wait()
        (self.folder / "data/postmaster.pid").unlink(missing_ok=True)

    def new_database(self):
        """The URL of an empty one."""
        self.count += 1
        self._run("createdb", "-h", self.folder, "-U", "reprise", f"test{self.count}")
        return f"postgresql://reprise@/test{self.count}?host={self.folder}"

    def dump(self, url):
        return self._run("pg_dump", "--data-only", url)

    def query(self, url, sql):
        return self._run("psql", "-X", "-A", "-t", "-q", "-c", sql, url).strip()

    def close(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30 * SLACK)
        shutil.rmtree(self.folder, ignore_errors=True)
