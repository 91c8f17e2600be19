"""Several servers on one PostgreSQL, with Redis, an S3 server and a balancer: used by scripts/cluster and tests/cluster.

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
# The balancer's timeouts are longer than the 15 seconds between comments of a silent stream. A stream is passed on as it comes (no-delay). A server that
# is not ready gets no new connections, and keeps those that it has.
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
    """The Debian packages that a cluster needs and that are not installed."""
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
    """A program that runs until it is stopped; its log is in `folder`."""

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
    """HAProxy in front of `ports` of this machine."""

    def __init__(self, folder, ports, port=None):
        self.port = port or free_ports(1)[0]
        self.stats = f"{folder}/stats.sock"
        servers = "\n".join(f"  server instance{number} 127.0.0.1:{each}" for number, each in enumerate(ports, 1))
        file = pathlib.Path(folder) / "haproxy.cfg"
        file.write_text(BALANCER.format(folder=folder, port=self.port, servers=servers))
        super().__init__("haproxy", [shutil.which("haproxy", path=SBIN), "-db", "-f", str(file)], folder)
        self.start(("127.0.0.1", self.port), self.stats)

    def command_to(self, text):
        """Sends a command to HAProxy's own socket. Returns the answer."""
        with socket.socket(socket.AF_UNIX) as one:
            one.settimeout(SOON)
            one.connect(self.stats)
            one.sendall(text.encode() + b"\n")
            answer = b""
            while data := one.recv(65536):
                answer += data
        return answer.decode()

    def states(self):
        """The state of each instance: UP, DOWN and so on."""
        lines = [line.split(",") for line in self.command_to("show stat").splitlines() if line]
        at = lines[0].index("status")
        return {line[1]: line[at].split()[0] for line in lines[1:] if line[1].startswith("instance")}

    def await_all(self, state="UP"):
        eventually(lambda: set(self.states().values()) == {state}, f"all instances are {state}", limit=SOON * SLACK)


def change_tables(home, url, how, binary=BINARY):
    """Runs `reprise db init` or `migrate`."""
    file = home.path / "db.json"
    file.write_text(json.dumps({"store": {"type": "postgres", "url": url}}))
    done = subprocess.run([str(binary), "db", how, "--config", str(file)], env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=20 * SLACK, check=False)
    assert done.returncode == 0, done.stderr


def join(home, homes, url, binary=BINARY):
    """Adds `home` to `homes`, whose servers use one database. It gets the keys of the first home, which makes the tables."""
    if homes:
        home.config.mkdir(mode=0o700, exist_ok=True)
        home.config.chmod(0o700)
        home.keys.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(homes[0].keys, home.keys)
    else:
        change_tables(home, url, "init", binary)
    homes.append(home)


class Cluster:
    """`make(home, config, arguments)` starts a server. `settings` apply to all instances, in addition to the database; `url` is the database's."""

    def __init__(self, folder, url, make, settings=None, workspace=None):
        self.folder = pathlib.Path(folder)
        self.url, self.make, self.workspace = url, make, workspace
        self.settings = settings or {}
        self.own = {}  # settings of single instances, by number
        self.binary = BINARY  # for instances started from now on
        self.homes, self.ports, self.servers = [], [], []
        self.balancer = None
        self.balancer_port, = free_ports(1)

    def add(self):
        """Starts one more instance, with the keys and the workspace of the first."""
        join(Home(self.folder / f"instance{len(self.homes) + 1}"), self.homes, self.url, self.binary)
        self.ports += free_ports(1)
        self.servers.append(None)
        return self.start(len(self.homes))

    def start(self, number):
        """Starts instance `number`, counted from 1, on its port."""
        names = [f"{host}:{self.balancer_port}" for host in ("127.0.0.1", "localhost")]
        config = {"store": {"type": "postgres", "url": self.url}, "public_hosts": names, "workspace_mode": "shared", **self.settings, **self.own.get(number, {})}
        arguments = ["--port", self.ports[number - 1], "--workspace", self.workspace or self.homes[0].workspace]
        self.servers[number - 1] = self.make(self.homes[number - 1], config, arguments)
        return self.servers[number - 1]

    def balance(self):
        """Starts the balancer. Returns a client of all present instances."""
        self.balancer = Balancer(self.folder, self.ports, self.balancer_port)
        self.balancer.await_all()
        return Client(self.balancer_port)

    def close(self):
        if self.balancer:
            self.balancer.stop()
