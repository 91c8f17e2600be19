"""A real PostgreSQL for the tests: unprivileged, on its own socket, with a database for each test."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from .timing import SLACK, halt

NOBODY = 65534
# A prefix for a program that must end with us, however we end.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "INT")  # PostgreSQL then closes its connections; other programs just end


def programs():
    """The folder with the programs of the newest PostgreSQL from Debian; None without one."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


def as_nobody(*command):
    """The command as user nobody, because PostgreSQL does not run as root."""
    return (["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"] if os.geteuid() == 0 else []) + [str(c) for c in command]


class Postgres:
    """Runs in a new folder, or in `folder`, which keeps its data. `settings` are those of postgresql.conf."""

    def __init__(self, folder=None, settings=(), port=5432):
        self.keeps = folder is not None
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="pg"))  # a socket's path must be short
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.port = port
        self.settings = [word for setting in settings for word in ("-c", setting)]
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        self.count = 0
        if not (self.folder / "data").exists():
            self._run("initdb", "-D", self.folder / "data", "-A", "trust", "--no-sync", "-U", "reprise", "-E", "UTF8", "--locale=C", "--wal-segsize=1")
        self.start()

    def _run(self, program, *arguments):
        done = subprocess.run(as_nobody(programs() / program, *arguments), cwd="/", capture_output=True, text=True, timeout=60 * SLACK, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(as_nobody(*ENDS_WITH_US, programs() / "postgres", "-D", self.folder / "data", "-c", "listen_addresses=", "-c",
                                                      f"unix_socket_directories={self.folder}", "-c", "shared_buffers=32MB", *self.settings), cwd="/",
                                            stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 30 * SLACK
        while subprocess.run(as_nobody(programs() / "pg_isready", "-q", "-h", self.folder, "-p", self.port), cwd="/", check=False).returncode != 0:
            assert time.monotonic() < deadline and self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.02)

    def children(self):
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False).stdout
        return [int(pid) for pid in listed.split()]

    def crash(self):
        """Kills all its processes at once. The main process is stopped first, so that it starts no others."""
        halt(self.process.pid)
        children = self.children()
        self.process.kill()
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        deadline = time.monotonic() + 30 * SLACK
        while any(os.path.exists(f"/proc/{pid}") for pid in children):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        (self.folder / "data/postmaster.pid").unlink(missing_ok=True)

    def make_standby(self):
        """A standby of this server. It can be read at once, and written to after `promote`."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pg"))
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        self._run("pg_basebackup", "-h", self.folder, "-U", "reprise", "-D", folder / "data", "-R", "--checkpoint=fast", "--no-sync")
        standby = Postgres(folder)
        standby.keeps = False
        return standby

    def promote(self):
        self._run("pg_ctl", "promote", "-w", "-D", self.folder / "data")

    def new_database(self, owner="reprise"):
        """The URL of a new database. The usual owner is a superuser, who bypasses row-level security; other owners are not."""
        self.count += 1
        if owner != "reprise":
            self.query(self.url("postgres"), f"do $$ begin create role {owner} login; exception when duplicate_object then null; end $$")
        self._run("createdb", "-h", self.folder, "-p", self.port, "-U", "reprise", "-O", owner, f"test{self.count}")
        return self.url(f"test{self.count}", owner=owner)

    def url(self, database, folder=None, owner="reprise"):
        """`folder` is that of another socket that leads here."""
        port = "" if self.port == 5432 else f"&port={self.port}"
        return f"postgresql://{owner}@/{database}?host={folder or self.folder}{port}"

    def as_superuser(self, url):
        return url.replace(url[len("postgresql://"):url.index("@")], "reprise", 1)

    def dump(self, url):
        return self._run("pg_dump", "--data-only", url)

    def query(self, url, sql):
        return self._run("psql", "-X", "-A", "-t", "-q", "-c", sql, url).strip()

    def close(self):
        self.process.send_signal(signal.SIGINT if self.keeps else signal.SIGQUIT)  # data to be deleted needs no clean shutdown
        self.process.wait(30 * SLACK)
        if self.keeps:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
