"""Behind a proxy: the examples of docs/proxy.md, as written, in front of the real server; and the hosts that must be allowed."""
import http.client
import os
import re
import shutil
import socket
import subprocess

import pytest
from support.client import Client
from support.provider import Gate, text
from support.server import ROOT
from support.timing import SOON, eventually

NAME = "chat.example"
SBIN = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"


def example(program):
    """The configuration that docs/proxy.md shows."""
    page = (ROOT / "docs/proxy.md").read_text()
    return re.search(rf"## {program}\n```\w*\n(.*?)```", page, re.S).group(1)


def nginx_command(folder, port, end, user):
    server = example("nginx").replace("listen 443 ssl;", f"listen unix:{end};").replace(":8000", f":{port}")
    server = re.sub(r" *ssl_certificate.*\n", "", server)
    assert f"unix:{end}" in server and f":{port};" in server
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = f"user {user};\n" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(f"{user}daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
                                       f"http {{\naccess_log off;\n{temporary}{server}}}\n")
    return ["-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]


def haproxy_command(folder, port, end, user):
    config = re.sub(r"bind .*", f"bind unix@{end} mode 600", example("HAProxy")).replace(":8000", f":{port}")
    (folder / "haproxy.cfg").write_text(f"global\n  user {user}\n" * (os.geteuid() == 0) + config)
    return ["-db", "-f", str(folder / "haproxy.cfg")]


PROXIES = {"nginx": nginx_command, "haproxy": haproxy_command}


class ProxyClient(Client):
    """Talks to a proxy's Unix socket, with the host name that people would use."""

    def __init__(self, end, name=NAME, token=None):
        super().__init__(0, token)
        self.end, self.name = str(end), name

    def _connection(self, limit=None):
        connection = http.client.HTTPConnection(self.name, timeout=limit or SOON)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(limit or SOON)
        connection.sock.connect(self.end)
        return connection


def listens(end):
    """Whether a proxy listens at the socket; its file exists earlier."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(end))
            return True
    except OSError:
        return False


@pytest.fixture
def start_proxy(tmp_path):
    running = []

    def start(program, port, user="root"):
        path = shutil.which(program, path=SBIN)
        if path is None:
            pytest.skip(f"{program} is not installed")
        folder = tmp_path / program
        folder.mkdir()
        end = folder / "socket"
        process = subprocess.Popen([path, *PROXIES[program](folder, port, end, user)], stdin=subprocess.DEVNULL)
        running.append(process)
        eventually(lambda: process.poll() is not None or listens(end), f"{program} listens")
        assert process.poll() is None, f"{program} ended with {process.returncode}"
        return end

    yield start
    for process in running:
        process.terminate()
        process.wait(SOON)


@pytest.mark.parametrize("program", PROXIES)
def test_streams_come_live_through_the_proxy_of_the_manual(make_server, provider, start_proxy, program):
    server = make_server(provider, arguments=["--public-hosts", NAME])
    client = ProxyClient(start_proxy(program, server.port))
    gate = Gate()
    provider.plan(text("first", gate, "second"))
    stream = client.start("c", "hello")
    assert stream.until("text_delta")["content"] == "first"
    gate.wait_reached()
    gate.release()
    stream.finish()
    assert client.history("c")["interactions"][0]["id"] == "int_001"
    # Requests of a page served under the proxy's name.
    client.get("/chats", headers={"Origin": f"https://{NAME}", "Sec-Fetch-Site": "same-origin"}).expect(200)
    client.get("/chats", headers={"Origin": "https://evil.example"}).error(403, "forbidden_origin")
    upload = client.request("POST", "/chats/c/files?name=big.bin", b"x" * (2 << 20), headers={"Content-Type": "application/octet-stream"})
    assert upload.expect(201).json["size_bytes"] == 2 << 20


@pytest.mark.parametrize("program", PROXIES)
def test_the_proxy_passes_the_name_and_only_listed_ones_get_in(make_server, start_proxy, program):
    server = make_server(arguments=["--public-hosts", NAME])
    end = start_proxy(program, server.port)
    ProxyClient(end).get("/healthz").expect(200)
    ProxyClient(end, "evil.example").get("/healthz").error(403, "forbidden_host")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to run the proxy as somebody else")
@pytest.mark.parametrize("program", PROXIES)
def test_a_proxy_of_another_user_needs_a_token(make_server, start_proxy, tmp_path, program):
    server = make_server(arguments=["--public-hosts", NAME])
    ProxyClient(start_proxy(program, server.port, user="www-data")).get("/healthz").error(403, "forbidden_user")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to run the proxy as somebody else")
@pytest.mark.parametrize("program", PROXIES)
def test_with_a_token_a_proxy_of_another_user_serves(make_server, start_proxy, tmp_path, program):
    file = tmp_path / "token"
    file.write_text("a-token-of-many-letters")
    file.chmod(0o600)
    server = make_server(arguments=["--public-hosts", NAME, "--token-file", file], token="a-token-of-many-letters")
    end = start_proxy(program, server.port, user="www-data")
    ProxyClient(end).get("/healthz").error(401)
    ProxyClient(end, token="a-token-of-many-letters").get("/healthz").expect(200)


# --- without a proxy: tunnels and mapped ports only change the name

def test_a_tunnels_name_is_refused_until_it_is_listed(make_server, offline):
    tunnel = {"Host": "localhost:9000"}
    offline.client.get("/healthz", headers=tunnel).error(403, "forbidden_host")
    server = make_server(arguments=["--public-hosts", "localhost:9000, chat.example"])
    server.client.get("/healthz", headers=tunnel).expect(200)
    server.client.get("/healthz", headers={**tunnel, "Origin": "http://localhost:9000"}).expect(200)
    server.client.get("/healthz", headers={"Host": "chat.example:8443"}).expect(200)
    for name in ("localhost:9001", "evil.example", "chat.example.evil.example"):
        server.client.get("/healthz", headers={"Host": name}).error(403, "forbidden_host")
    server.client.get("/healthz").expect(200)


def test_headers_of_proxies_do_not_change_the_host(make_server):
    server = make_server(arguments=["--public-hosts", NAME])
    for name, value in (("X-Forwarded-Host", NAME), ("Forwarded", f"host={NAME}"), ("X-Forwarded-For", "127.0.0.1"), ("X-Real-IP", "127.0.0.1")):
        server.client.get("/healthz", headers={"Host": "evil.example", name: value}).error(403, "forbidden_host")


def test_on_every_address_the_machines_own_name_can_be_listed(make_server, tmp_path):
    file = tmp_path / "token"
    file.write_text("a-token-of-many-letters")
    file.chmod(0o600)
    server = make_server(config={"public_hosts": [socket.gethostname()]}, arguments=["--host", "0.0.0.0", "--token-file", file],
                         token="a-token-of-many-letters")
    server.client.get("/healthz", headers={"Host": f"{socket.gethostname()}:{server.port}"}).expect(200)
    server.client.get("/healthz", headers={"Host": f"other.example:{server.port}"}).error(403, "forbidden_host")


@pytest.mark.parametrize("config, words", [({"public_hosts": "chat.example"}, "an array of strings"), ({"public_hosts": ["https://chat.example"]}, "without https://"),
                                           ({"public_hosts": ["*.example"]}, "without wildcards"), ({"public_hosts": ["a,b"]}, "names or addresses"), ({"public_hosts": [7]}, "public_hosts")])
def test_an_invalid_name_stops_the_start(make_server, config, words):
    with pytest.raises(AssertionError, match=words):
        make_server(config=config)
