"""Several servers on one PostgreSQL, with Redis, an S3 server and a balancer: what scripts/cluster shows and tests/cluster tries.

Everything listens on loopback or in the cluster's folder, runs unprivileged and ends with us."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess

from . import postgres as pg
from .client import Client
from .s3 import free_ports
from .server import BINARY, Home
from .timing import SLACK, SOON, eventually

SBIN = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
# The balancer's time-outs are longer than what a silent stream says every 15 seconds. A stream is passed on as it comes (no-delay); a server that says it
# is not ready gets nothing new, and keeps what it has.
BALANCER = """global
  stats socket {folder}/stats.sock mode 600 level admin
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout check 2s
  option http-no-delay
  option redispatch 1
  retries 3
  retry-on conn-failure
listen reprise
  bind 127.0.0.1:{port}
  balance leastconn
  option httpchk
  http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host 127.0.0.1:{port}
  http-check expect status 200
  default-server check inter 500ms fall 2 rise 1
{servers}
"""


def missing():
    """What is not installed of what a cluster needs: names of Debian's packages."""
    there = {"postgresql": pg.programs(), "haproxy": shutil.which("haproxy", path=SBIN)}
    return [package for package, found in there.items() if not found]


def accepts(address):
    try:
        with socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET) as one:
            one.settimeout(SOON)
            one.connect(address)
        return True
    except OSError:
        return False


class Program:
    """One that runs until it is told to end; its log is in `folder`."""

    def __init__(self, name, command, folder):
        self.name, self.command, self.folder = name, command, pathlib.Path(folder)
        self.process = None

    def start(self, *addresses):
        with open(self.folder / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen([*pg.ENDS_WITH_US, *self.command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                                            start_new_session=True)
        eventually(lambda: self.process.poll() is not None or all(accepts(each) for each in addresses), f"{self.name} listens", limit=SOON * SLACK)
        assert self.process.poll() is None, (self.folder / f"{self.name}.log").read_text()[-2000:]
        return self

    def stop(self, signal_number=signal.SIGTERM):
        if self.process is None:
            return
        self.process.send_signal(signal_number)
        self.process.wait(SOON)
        self.process = None


class Balancer(Program):
    """HAProxy before `ports` of this machine."""

    def __init__(self, folder, ports, port=None):
        self.port = port or free_ports(1)[0]
        self.stats = f"{folder}/stats.sock"
        servers = "\n".join(f"  server instance{number} 127.0.0.1:{each}" for number, each in enumerate(ports, 1))
        file = pathlib.Path(folder) / "haproxy.cfg"
        file.write_text(BALANCER.format(folder=folder, port=self.port, servers=servers))
        super().__init__("haproxy", [shutil.which("haproxy", path=SBIN), "-db", "-f", str(file)], folder)
        self.start(("127.0.0.1", self.port), self.stats)

    def command_to(self, text):
        """What HAProxy's own socket answers."""
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(SOON)
            one.connect(self.stats)
            one.sendall(text.encode() + b"\n")
            answer = b""
            while data := one.recv(65536):
                answer += data
        return answer.decode()

    def states(self):
        """UP, DOWN and so on, of each instance."""
        lines = [line.split(",") for line in self.command_to("show stat").splitlines() if line]
        at = lines[0].index("status")
        return {line[1]: line[at].split()[0] for line in lines[1:] if line[1].startswith("instance")}

    def await_all(self, state="UP"):
        eventually(lambda: set(self.states().values()) == {state}, f"all instances are {state}", limit=SOON * SLACK)


def change_tables(home, url, how, binary=BINARY):
    """`reprise db init`, or `migrate`."""
    file = home.path / "db.json"
    file.write_text(json.dumps({"store": {"type": "postgres", "url": url}}))
    done = subprocess.run([str(binary), "db", how, "--config", str(file)], env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=20 * SLACK, check=False)
    assert done.returncode == 0, done.stderr


def join(home, homes, url, binary=BINARY):
    """`home` becomes one more of `homes`, whose servers use one database: with the keys of the first, which makes the tables."""
    if homes:
        home.config.mkdir(mode=0o700, exist_ok=True)
        home.config.chmod(0o700)
        home.keys.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(homes[0].keys, home.keys)
    else:
        change_tables(home, url, "init", binary)
    homes.append(home)


class Cluster:
    """`make(home, config, arguments)` starts a server. `settings` are all instances', beside the database; `url` is the database's."""

    def __init__(self, folder, url, make, settings=None, workspace=None):
        self.folder = pathlib.Path(folder)
        self.url, self.make, self.workspace = url, make, workspace
        self.settings = settings or {}
        self.own = {}  # settings of single instances, by number
        self.binary = BINARY  # of those that are started from now on
        self.homes, self.ports, self.servers = [], [], []
        self.balancer = None
        self.balancer_port, = free_ports(1)

    def add(self):
        """One more instance, with the keys and the workspace of the first."""
        join(Home(self.folder / f"instance{len(self.homes) + 1}"), self.homes, self.url, self.binary)
        self.ports += free_ports(1)
        self.servers.append(None)
        return self.start(len(self.homes))

    def start(self, number):
        """Instance `number`, from 1, on its port."""
        names = [f"{host}:{self.balancer_port}" for host in ("127.0.0.1", "localhost")]
        config = {"store": {"type": "postgres", "url": self.url}, "public_hosts": names, "workspace_mode": "shared", **self.settings, **self.own.get(number, {})}
        arguments = ["--port", self.ports[number - 1], "--workspace", self.workspace or self.homes[0].workspace]
        self.servers[number - 1] = self.make(self.homes[number - 1], config, arguments)
        return self.servers[number - 1]

    def balance(self):
        """A client of all instances that are there."""
        self.balancer = Balancer(self.folder, self.ports, self.balancer_port)
        self.balancer.await_all()
        return Client(self.balancer_port)

    def close(self):
        if self.balancer:
            self.balancer.stop()
