"""A real S3 server for the tests: OpenStack Swift with its S3 interface (Debian's python3-swift), on loopback and as user nobody.

It checks signatures and the hashes of bodies, which small stand-ins do not. It takes five seconds to start, so all tests of a run share one; each test has
its own bucket."""
import datetime
import hashlib
import hmac
import http.client
import http.server
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import urllib.parse

from .postgres import ENDS_WITH_US
from .timing import SOON, eventually

PYTHON = "/usr/bin/python3"  # the one with Debian's packages
WORKER = pathlib.Path(__file__).with_name("swift_worker.py")
REGION = "us-east-1"
ACCESS_KEY, SECRET_KEY = "test:tester", "s3-canary-secret-41c7"

PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
swift_dir = {folder}
log_name = proxy
[pipeline:main]
pipeline = catch_errors cache listing_formats s3api tempauth proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = {region}
s3_acl = false
[filter:tempauth]
use = egg:swift#tempauth
user_{user} = {secret} .admin
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
error_suppression_limit = 1000000
"""
# Long timeouts, because Swift would give up on a slow node, and there is only one copy.
PATIENT = "conn_timeout = 20\nnode_timeout = 60\ncontainer_update_timeout = 60\n"
STORAGE = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
devices = {folder}/devices
mount_check = false
swift_dir = {folder}
disable_fallocate = true
recon_cache_path = {folder}/recon
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
KINDS = ("account", "container", "object")


def is_installed():
    look = "import importlib.util as u, sys; sys.exit(not (u.find_spec('swift') and u.find_spec('swift.common.middleware.s3api')))"
    return subprocess.run([PYTHON, "-c", look], stderr=subprocess.DEVNULL, check=False).returncode == 0


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Swift:
    """Runs in a new folder, or in `folder`, which keeps its data."""

    def __init__(self, folder=None):
        self.keeps = folder is not None
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="reprise-swift-"))
        self.processes = []
        if (self.folder / "proxy_port").exists():
            self.ports = [int(port) for name in ("proxy_port", "ports") for port in (self.folder / name).read_text().split()]
            self.port = self.ports[0]
        else:
            self._make()
        self.start()

    def _make(self):
        self.ports = free_ports(1 + len(KINDS))
        self.port, *storage = self.ports
        (self.folder / "devices/disk").mkdir(parents=True)
        (self.folder / "recon").mkdir()
        (self.folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = tests\n[storage-policy:0]\nname = all\ndefault = yes\n")
        (self.folder / "ports").write_text(" ".join(map(str, storage)))
        user = ACCESS_KEY.replace(":", "_")
        (self.folder / "proxy.conf").write_text(PROXY.format(port=self.port, folder=self.folder, region=REGION, user=user, secret=SECRET_KEY) + PATIENT)
        for kind, port in zip(KINDS, storage):
            (self.folder / f"{kind}.conf").write_text(STORAGE.format(port=port, folder=self.folder, kind=kind) + PATIENT)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "nobody:", str(self.folder)], check=True)
        assert self._start("rings").wait(SOON) == 0, self.log()
        self.processes.clear()
        (self.folder / "proxy_port").write_text(str(self.port))

    def _start(self, name):
        somebody = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"] if os.geteuid() == 0 else []
        with open(self.folder / "log", "ab") as log:
            environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
            process = subprocess.Popen([*somebody, *ENDS_WITH_US, PYTHON, str(WORKER), str(self.folder), name], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, cwd=self.folder, start_new_session=True, env=environment)
        self.processes.append(process)
        return process

    def start(self):
        for name in (*KINDS, "proxy"):
            self._start(name)

        def serves():
            gone = [each.args[-1] for each in self.processes if each.poll() is not None]
            assert not gone, f"Swift's {gone} ended: {self.log()}"
            try:
                return all(socket.create_connection(("127.0.0.1", port), SOON).close() is None for port in self.ports) and self.call("GET", "/")[0] == 200
            except OSError:
                return False
        eventually(serves, "Swift answers", limit=6 * SOON)

    def stop(self):
        """Stops it like a machine that is gone: connections are refused."""
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.processes.clear()

    def close(self):
        self.stop()
        if not self.keeps:
            shutil.rmtree(self.folder)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")[-3000:]

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def call(self, method, path, query=None, body=b""):
        """Makes a signed request without any of the program's own code: (status, body)."""
        host = f"127.0.0.1:{self.port}"
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(body).hexdigest()
        arguments = urllib.parse.urlencode(sorted((query or {}).items()), quote_via=urllib.parse.quote, safe="")
        names = "host;x-amz-content-sha256;x-amz-date"
        canonical = f"{method}\n{path}\n{arguments}\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n\n{names}\n{digest}"
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = b"AWS4" + SECRET_KEY.encode()
        for part in (*scope.split("/"), text):
            key = hmac.digest(key, part.encode(), "sha256")
        connection = http.client.HTTPConnection(host, timeout=SOON)
        try:
            connection.request(method, path + ("?" + arguments if arguments else ""), body, {
                "Host": host, "x-amz-date": now, "x-amz-content-sha256": digest,
                "Authorization": f"AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={names}, Signature={key.hex()}"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


class Bucket:
    """One bucket, accessed by a test."""

    def __init__(self, swift, name):
        self.swift, self.name = swift, name
        status, answer = swift.call("PUT", f"/{name}")
        assert status == 200, answer

    def settings(self, **more):
        """Settings for a server's configuration."""
        return {"files": {"type": "s3", "endpoint": self.swift.endpoint, "bucket": self.name, "access_key": ACCESS_KEY, "secret_key": SECRET_KEY, **more}}

    def keys(self):
        status, answer = self.swift.call("GET", f"/{self.name}", {"list-type": "2"})
        assert status == 200, answer
        return re.findall(r"<Key>(.*?)</Key>", answer.decode())

    def get(self, key):
        status, answer = self.swift.call("GET", f"/{self.name}/{key}")
        assert status == 200, answer
        return answer

    def put(self, key, content):
        assert self.swift.call("PUT", f"/{self.name}/{key}", body=content)[0] == 200

    def delete(self, key):
        assert self.swift.call("DELETE", f"/{self.name}/{key}")[0] == 204


class Between:
    """A proxy between a server and Swift. It passes every request on unchanged unless a test changes that.

    `spoil(method, body)` returns the body to pass on, or None for a request that is lost and never answered; `keep(method)` is whether to withhold the
    response and cut the connection; `change(body)` returns the changed response."""

    def __init__(self, swift):
        self.swift = swift
        self.spoil = lambda method, body: body
        self.keep = lambda method: False
        self.change = lambda body: body
        self.seen = []  # methods of the requests
        self.closing = threading.Event()
        between = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                between.seen.append(self.command)
                body = between.spoil(self.command, self.rfile.read(int(self.headers.get("Content-Length", 0))))
                if body is None:
                    between.closing.wait()
                    self.close_connection = True
                    return
                onward = http.client.HTTPConnection("127.0.0.1", between.swift.port, timeout=SOON)
                try:
                    onward.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        if name.lower() not in ("content-length", "connection"):
                            onward.putheader(name, value)
                    onward.putheader("Content-Length", str(len(body)))
                    onward.endheaders(body)
                    answer = onward.getresponse()
                    content = answer.read()
                except OSError:
                    self.close_connection = True
                    return
                finally:
                    onward.close()
                if between.keep(self.command):
                    self.close_connection = True
                    return
                content = between.change(content)
                self.send_response_only(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_PUT = do_DELETE = do_HEAD = pass_on

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.closing.set()
        self.server.shutdown()
        self.server.server_close()
