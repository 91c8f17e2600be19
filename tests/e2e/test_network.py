"""The network of commands: hosts by rules, and the ways around the rules."""
import http.server
import json
import random
import socket
import socketserver
import ssl
import subprocess
import threading
import time

import pytest
from support.provider import call, text, tools
from support.server import sandbox_works

pytestmark = pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")
CANARY = "canary-7731"

# For the programs below: talks to the proxy of the sandbox.
LIBRARY = r'''
import socket, ssl, struct, sys, os, subprocess, urllib.request
def say(*parts): print(*parts, flush=True)
def proxy():
    s = socket.create_connection(("127.0.0.1", 3128), 5); s.settimeout(5); return s
def rest(s):
    got = b""
    try:
        while chunk := s.recv(65536): got += chunk
    except OSError as error: got += str(error).encode()
    return got.decode("latin-1")
def raw(data):
    s = proxy(); s.sendall(data); say(rest(s))
def get(url, host=None, method="GET"):
    raw(f"{method} {url} HTTP/1.1\r\nHost: {host or url.split('/')[2]}\r\n\r\n".encode("latin-1"))
def connect(target):
    s = proxy(); s.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode("latin-1"))
    head = b""
    while b"\r\n\r\n" not in head:
        chunk = s.recv(1)
        if not chunk: break
        head += chunk
    say(head.decode("latin-1").splitlines()[0] if head else "nothing")
    return s if b" 200 " in head[:20] else None
def through(target, data=b"GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"):
    s = connect(target)
    if s: s.sendall(data % target.encode() if b"%s" in data else data); say(rest(s))
def socks(kind, host, port, command=1, data=b"GET / HTTP/1.0\r\n\r\n"):
    s = proxy(); s.sendall(b"\x05\x01\x00"); s.recv(2)
    s.sendall(bytes([5, command, 0, kind]) + host + struct.pack(">H", port)); say(s.recv(10)); s.sendall(data); say(rest(s))
def name(text): return bytes([len(text)]) + text.encode()
def tls(target, sni, port=None):
    s = connect(target)
    if not s: return
    context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    t = context.wrap_socket(s, server_hostname=sni); t.sendall(b"GET / HTTP/1.0\r\n\r\n"); say(rest(t))
'''


class Place(socketserver.ThreadingTCPServer):
    """A web server that counts its connections."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, word, address="127.0.0.2", port=0, context=None):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.hits, self.context = 0, context
        place = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(f"{word} {self.headers.get('Host')}".encode())

            do_POST = do_GET

            def log_message(self, *_):
                pass

        super().__init__((address, port), Handler)
        self.port = self.server_address[1]
        self.place = place
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        connection, address = super().get_request()
        self.hits += 1
        if self.context:
            connection = self.context.wrap_socket(connection, server_side=True)
        return connection, address

    def handle_error(self, *_):
        pass


class Agent:
    def __init__(self, server, provider):
        self.server, self.provider, self.turns = server, provider, 0

    def run(self, tool, arguments):
        self.turns += 1
        self.provider.plan(tools(call(tool, arguments, f"call_{self.turns}")), text("done"))
        return self.server.client.turn("c", f"turn {self.turns}").one("tool_result")["tool_output"]

    def python(self, code):
        return self.run("run_code", {"language": "python", "code": LIBRARY + code})

    def shell(self, command):
        return self.run("run_shell", {"command": command, "timeout_s": 60})


@pytest.fixture
def make_agent(make_server, provider):
    def make(network, arguments=(), **config):
        limits = {"memory_mb": 0}  # for sanitizers
        return Agent(make_server(provider, config={"approval_mode": "approve_all", "tools": {"network": network, "limits": limits}} | config, arguments=arguments), provider)

    return make


@pytest.fixture
def certificate(tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=open.localhost", "-keyout", tmp_path / "key", "-out", tmp_path / "cert"],
                   check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    return context


def test_allowed_hosts_are_reached_and_their_bytes_counted(make_agent, certificate):
    place, secure = Place("reached"), Place("reached", "127.0.0.1", context=certificate)
    agent = make_agent({"allow": [f"127.0.0.2:{place.port}", f"open.localhost:{secure.port}", f"localhost:{secure.port}"]})
    assert "reached" in agent.shell(f"curl -s http://127.0.0.2:{place.port}/")
    assert "reached" in agent.shell(f"curl -s -x socks5h://127.0.0.1:3128 http://127.0.0.2:{place.port}/")
    assert "reached" in agent.python(f"through('127.0.0.2:{place.port}')")
    assert "reached" in agent.python(f"tls('open.localhost:{secure.port}', 'open.localhost')")
    assert "reached" in agent.python(f"tls('OPEN.localhost.:{secure.port}', 'Open.Localhost')")
    assert "reached" in agent.shell(f"curl -sk https://localhost:{secure.port}/")  # at the same place as outside
    lines = [line for line in agent.server.client.get("/audit").expect(200, "audit").json["entries"] if line["event"] == "connected"]
    assert [line["host"] for line in lines] == [f"127.0.0.2:{place.port}"] * 3 + [f"open.localhost:{secure.port}"] * 2 + [f"localhost:{secure.port}"]
    assert all(line["sent_bytes"] > 20 and line["received_bytes"] > 20 and line["tool_name"] in ("run_shell", "run_code") for line in lines)


def test_a_refusal_names_the_host_and_the_setting(make_agent):
    agent = make_agent({"allow": ["packages.example"], "deny": ["bad.example"]})
    output = agent.shell("curl -sS http://other.example/ http://bad.example/; curl -sS https://other.example:8443/")
    assert 'other.example:80 cannot be reached from this command: tools.network.allow does not name it; the user can add "other.example:80"' in output
    assert "bad.example:80 cannot be reached from this command: tools.network.deny names it" in output
    assert "(the network refused other.example:8443: tools.network.allow does not name it" in output


def test_without_rules_there_is_no_network_at_all(make_agent):
    agent = make_agent({})
    output = agent.shell("env | grep -i _proxy; curl -sS http://127.0.0.1:3128/ 2>&1").lower()
    assert ("couldn't connect" in output or "could not connect" in output) and "_proxy" not in output, output


# Programs for the sandbox, none of which may reach {S}, a server that no rule allows, {P}, the server of Reprise, or {R}, the same as {S} under a rule that
# does not allow its address. {A} is a port of an allowed host, {T} that of an allowed host with TLS.
AROUND = {
    "a raw socket": "socket.create_connection(('127.0.0.1', {S}), 3)",
    "a raw socket to another loopback address": "socket.create_connection(('127.0.0.2', {S}), 3)",
    "a raw socket to the allowed host": "say(socket.create_connection(('127.0.0.2', {A}), 3))",
    "IPv6": "socket.create_connection(('::1', {S}), 3)",
    "mapped IPv6": "socket.create_connection(('::ffff:127.0.0.1', {S}), 3)",
    "UDP": "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', {S})); s.settimeout(1); say(s.recv(9))",
    "UDP over IPv6": "s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.sendto(b'x', ('::1', {S})); s.settimeout(1); say(s.recv(9))",
    "DNS": "say(socket.getaddrinfo('example.com', 80))",
    "a raw IP socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "a packet socket": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "a vsock": "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
    "/dev/tcp": "subprocess.run(['bash', '-c', 'exec 3<>/dev/tcp/127.0.0.1/{S}; echo >&3; cat <&3'])",
    "/dev/udp": "subprocess.run(['bash', '-c', 'echo x > /dev/udp/127.0.0.1/{S}'])",
    "an abstract socket": "s = socket.socket(socket.AF_UNIX); s.connect('\\0reprise-test-{S}'); say(rest(s))",
    "a Unix socket": "s = socket.socket(socket.AF_UNIX); s.connect('{U}'); say(rest(s))",
    "inherited descriptors": "[say(fd, os.readlink(f'/proc/self/fd/{{fd}}')) for fd in map(int, os.listdir('/proc/self/fd')) if fd > 3 and os.path.exists(f'/proc/self/fd/{{fd}}')]; [socket.socket(fileno=fd).send(b'x') for fd in range(4, 64)]",
    "the namespace of the first process": "os.setns(os.open('/proc/1/ns/net', 0), 0); socket.create_connection(('127.0.0.1', {S}), 3)",
    "a new namespace": "os.unshare(0x10000000)",
    "another proxy's environment": "urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open('http://127.0.0.2:{S}/', timeout=3)",
    "plain HTTP": "get('http://127.0.0.1:{S}/')",
    "plain HTTP to a name": "get('http://localhost:{S}/')",
    "plain HTTP with the allowed host as Host": "get('http://127.0.0.1:{S}/', '127.0.0.2:{A}')",
    "plain HTTP with another Host": "get('http://127.0.0.2:{A}/', '127.0.0.1:{S}')",
    "two Hosts": "raw(b'GET http://127.0.0.2:{A}/ HTTP/1.1\\r\\nHost: 127.0.0.2:{A}\\r\\nHost: evil\\r\\n\\r\\n')",
    "a folded Host": "raw(b'GET http://127.0.0.2:{A}/ HTTP/1.1\\r\\nX: y\\r\\n Host: evil\\r\\n\\r\\n')",
    "a bare line feed": "raw(b'GET http://127.0.0.2:{A}/ HTTP/1.1\\r\\nX: y\\nHost: evil\\r\\n\\r\\n')",
    "a space before the colon": "raw(b'GET http://127.0.0.2:{A}/ HTTP/1.1\\r\\nHost : evil\\r\\n\\r\\n')",
    "a second request behind the first": "raw(b'GET http://127.0.0.2:{A}/ HTTP/1.1\\r\\nHost: 127.0.0.2:{A}\\r\\n\\r\\nGET http://127.0.0.1:{S}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{S}\\r\\n\\r\\n')",
    "no address, only Host": "raw(b'GET / HTTP/1.1\\r\\nHost: 127.0.0.1:{S}\\r\\n\\r\\n')",
    "https without CONNECT": "get('https://127.0.0.1:{S}/')",
    "another scheme": "get('ftp://127.0.0.1:{S}/')",
    "a backslash": "get('http://127.0.0.1:{S}\\\\@127.0.0.2:{A}/', '127.0.0.2:{A}')",
    "userinfo": "get('http://127.0.0.2:{A}@127.0.0.1:{S}/', '127.0.0.1:{S}')",
    "userinfo in CONNECT": "through('127.0.0.2:{A}@127.0.0.1:{S}')",
    "CONNECT to an address": "through('127.0.0.1:{S}')",
    "CONNECT to another port of the allowed host": "through('127.0.0.2:{S}')",
    "CONNECT to a name": "through('localhost:{S}')",
    "CONNECT without a port": "through('127.0.0.1')",
    "CONNECT with port 0": "through('127.0.0.2:0')",
    "CONNECT with a port too large": "through('127.0.0.2:{BIG}')",
    "CONNECT with a sign": "through('127.0.0.1:+{S}')",
    "CONNECT to IPv6": "through('[::1]:{S}')",
    "CONNECT to mapped IPv6": "through('[::ffff:127.0.0.1]:{S}')",
    "CONNECT to mapped IPv6 in hexadecimal": "through('[::ffff:7f00:1]:{S}')",
    "CONNECT to compatible IPv6": "through('[::127.0.0.1]:{S}')",
    "CONNECT to IPv6 with a zone": "through('[::1%25lo]:{S}')",
    "a decimal address": "through('2130706433:{S}')",
    "a hexadecimal address": "through('0x7f000001:{S}')",
    "an octal address": "through('0177.0.0.1:{S}')",
    "an octal address with many zeros": "through('00000177.0.0.1:{S}')",
    "a short address": "through('127.1:{S}')",
    "a mixed address": "through('127.0.0x0.1:{S}')",
    "an address with a dot at its end": "through('127.0.0.1.:{S}')",
    "zero": "through('0:{S}')",
    "all zeros": "through('0.0.0.0:{S}')",
    "all zeros of IPv6": "through('[::]:{S}')",
    "broadcast": "through('255.255.255.255:{S}')",
    "a trailing dot": "through('localhost.:{S}')",
    "upper case": "through('LOCALHOST:{S}')",
    "full-width digits": "raw('CONNECT １２７.0.0.1:{S} HTTP/1.1\\r\\n\\r\\n'.encode())",
    "an ideographic dot": "raw('CONNECT 127。0。0。1:{S} HTTP/1.1\\r\\n\\r\\n'.encode())",
    "percent signs": "through('%31%32%37.0.0.1:{S}')",
    "NUL in the name": "through('127.0.0.2\\0.evil:{S}')",
    "a new line in the name": "raw(b'CONNECT 127.0.0.2:{A}\\r\\nX HTTP/1.1\\r\\nHost: 127.0.0.1:{S}\\r\\n\\r\\n')",
    "a name below the allowed one": "through('x.open.localhost:{S}')",
    "a name that ends like the allowed one": "through('notopen.localhost:{T}')",
    "a name with a private address behind a wildcard": "through('x.wild.localhost:{R}')",
    "the wildcard for an address": "through('127.0.0.1:{R}')",
    "SOCKS by address": "socks(1, socket.inet_aton('127.0.0.1'), {S})",
    "SOCKS by IPv6 address": "socks(4, socket.inet_pton(socket.AF_INET6, '::1'), {S})",
    "SOCKS by mapped address": "socks(4, socket.inet_pton(socket.AF_INET6, '::ffff:127.0.0.1'), {S})",
    "SOCKS by name": "socks(3, name('localhost'), {S})",
    "SOCKS by a decimal name": "socks(3, name('2130706433'), {S})",
    "SOCKS by a short name": "socks(3, name('127.1'), {S})",
    "SOCKS with an empty name": "socks(3, name(''), {S})",
    "SOCKS BIND": "socks(1, socket.inet_aton('127.0.0.2'), {A}, command=2)",
    "SOCKS UDP": "socks(1, socket.inet_aton('127.0.0.2'), {A}, command=3)",
    "SOCKS4": "raw(b'\\x04\\x01' + struct.pack('>H', {S}) + socket.inet_aton('127.0.0.1') + b'\\0')",
    "TLS with another name": "tls('open.localhost:{T}', 'evil.example')",
    "TLS with a name below": "tls('open.localhost:{T}', 'x.open.localhost')",
    "TLS without a name": "tls('open.localhost:{T}', None)",
    "TLS to an address with a name": "tls('127.0.0.2:{T}', 'evil.example')",
    "another Host in a tunnel": "through('127.0.0.2:{A}', b'GET / HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n')",
    "an empty line before it": "through('127.0.0.2:{A}', b'\\r\\nGET / HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n')",
    "lower case before it": "through('127.0.0.2:{A}', b'get / HTTP/1.1\\r\\nhost: evil.example\\r\\n\\r\\n')",
    "HTTP/2 without TLS": "through('127.0.0.2:{A}', b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')",
    "Reprise by name": "through('localhost:{P}')",
    "Reprise by address": "get('http://127.0.0.1:{P}/health')",
    "Reprise by another address": "through('127.0.0.2:{P}')",
    "Reprise by mapped IPv6": "through('[::ffff:127.0.0.1]:{P}')",
    "Reprise at its own place": "socket.create_connection(('127.0.0.1', {P}), 3).sendall(b'GET /health HTTP/1.0\\r\\n\\r\\n')",
    "Reprise by SOCKS": "socks(1, socket.inet_aton('127.0.0.1'), {P}, data=b'GET /health HTTP/1.0\\r\\n\\r\\n')",
}


def port_apart():
    """A free port that no other test is given by the kernel, so that each connection to it comes from a program above."""
    first = int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])
    for port in random.sample(range(first // 2, first), 100):
        with socket.socket() as free, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            try:
                free.bind(("0.0.0.0", port))
                datagrams.bind(("0.0.0.0", port))
                return port
            except OSError:
                pass
    raise AssertionError("no free port")


def test_there_are_enough_ways_around():
    assert len(AROUND) >= 60


@pytest.mark.limit(90)
def test_no_way_around_the_rules(make_agent, make_home, provider, make_server, certificate, tmp_path):
    secret, open_place = Place(CANARY, "0.0.0.0", port_apart()), Place("wide open")
    also_secret = [Place(CANARY, "::1", secret.port)] if socket.has_ipv6 else []
    secure = Place(CANARY, "127.0.0.1", context=certificate)
    Place(CANARY, "127.0.0.2", secure.port, context=certificate)
    behind = Place(CANARY, "0.0.0.0", port_apart())
    unix, abstract, udp = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    unix.bind(str(tmp_path / "unix"))
    abstract.bind(f"\0reprise-test-{secret.port}")
    udp.bind(("0.0.0.0", secret.port))
    for each in (unix, abstract):
        each.listen()
    for each in (unix, abstract, udp):
        each.settimeout(0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    allow = [f"127.0.0.2:{open_place.port}", f"open.localhost:{secure.port}", f"127.0.0.2:{secure.port}", f"*.wild.localhost:{behind.port}", f"*:{behind.port}",
             f"localhost:{port}", f"127.0.0.1:{port}", f"127.0.0.2:{port}"]
    agent = make_agent({"allow": allow}, arguments=["--port", port])
    values = {"S": secret.port, "A": open_place.port, "T": secure.port, "R": behind.port, "P": port, "U": tmp_path / "unix", "BIG": 65536 + secret.port}
    assert "wide open" in agent.python("through('127.0.0.2:{A}')".format(**values))
    passed = {}
    for name, program in AROUND.items():
        output = agent.python(program.format(**values))
        hits = secret.hits + behind.hits + sum(each.hits for each in also_secret)
        answered = CANARY in output or "<socket.socket" in output or '"status"' in output or "wide open evil" in output
        if hits or answered or ("wide open " in output and name != "a second request behind the first"):
            passed[name] = output
            secret.hits = behind.hits = 0
            for each in also_secret:
                each.hits = 0
    for each in (unix, abstract):
        with pytest.raises(BlockingIOError):
            each.accept()
    with pytest.raises(BlockingIOError):
        udp.recv(1)
    assert not passed, json.dumps(passed, indent=1)


def test_a_cancelled_command_leaves_no_connection(make_agent, provider):
    silent = socket.create_server(("127.0.0.2", 0))
    agent = make_agent({"allow": [f"127.0.0.2:{silent.getsockname()[1]}"]})
    provider.plan(tools(call("run_shell", {"command": f"curl -s http://127.0.0.2:{silent.getsockname()[1]}/"})))
    stream = agent.server.client.start("c", "go")
    connection, _ = silent.accept()
    assert connection.recv(10)
    agent.server.client.cancel("c", "int_001").expect(200)
    stream.finish("CANCELLED")
    connection.settimeout(5)
    while connection.recv(4096):  # up to its end
        pass


# --- hosts that no rule names ----------------------------------------------------------------------------------------

ASKS = {"ask": True}


def reach(agent, place, scope="once", chat="c", **answer):
    """Lets the agent fetch from the place, answers the question about it, and returns the question and the result."""
    agent.turns += 1
    agent.provider.plan(tools(call("run_shell", {"command": f"curl -s http://127.0.0.2:{place.port}/; curl -s http://127.0.0.2:{place.port}/"}, f"call_{agent.turns}")), text("done"))
    stream = agent.server.client.start(chat, f"turn {agent.turns}")
    asked = stream.until("approval_required")
    assert place.hits == 0, "before the answer"
    agent.server.client.approve(chat, stream.interaction, asked["approval_id"], **({"approved": True, "scope": scope} | answer)).expect(200)
    events = stream.finish()
    assert [each.name for each in events].count("approval_required") == 1, "one question for two connections"
    return asked, next(each for each in events if each.name == "tool_result")["tool_output"], events


def test_a_host_without_a_rule_is_asked_about(make_agent):
    agent, place = make_agent(ASKS), Place("reached")
    asked, output, events = reach(agent, place)
    assert asked["tool_name"] == "network" and asked["call_id"] == "call_1"
    said = json.loads(asked["tool_input"])
    assert (said["host"], said["port"]) == ("127.0.0.2", place.port) and said["command"].startswith("curl")
    assert output.count("reached") == 2
    names = [each.name for each in events]
    assert names.index("tool_call") < names.index("approval_required") < names.index("approved") < names.index("tool_result")
    entries = agent.server.client.get("/audit").json["entries"]
    assert [line["event"] for line in entries if line["tool_name"] == "network"] == ["approved"]
    place.hits = 0
    _, output, _ = reach(agent, place, approved=False, scope=None, feedback="not there")
    assert place.hits == 0 and "not there" in output and "the user refused it" in output


@pytest.mark.parametrize("scope, pattern", [("chat", True), ("chat", False), ("always", True)])
def test_an_answer_holds_for_what_it_says(make_agent, scope, pattern):
    agent, place = make_agent(ASKS), Place("reached")
    reach(agent, place, scope, **({"pattern": f"127.0.0.2:{place.port}"} if pattern else {}))
    assert "reached" in agent.shell(f"curl -s http://127.0.0.2:{place.port}/; curl -s http://127.0.0.2:{place.port}/")  # in the same chat
    if scope == "always":
        agent.provider.plan(tools(call("run_shell", {"command": f"curl -s http://127.0.0.2:{place.port}/x"})), text("done"))
        assert "reached" in agent.server.client.turn("d", "there").one("tool_result")["tool_output"]
    else:
        place.hits = 0
        reach(agent, place, chat="d")


def test_a_person_may_think_longer_than_the_command_may_run(make_agent):
    agent, place = make_agent(ASKS), Place("reached")
    agent.provider.plan(tools(call("run_shell", {"command": f"curl -s http://127.0.0.2:{place.port}/", "timeout_s": 1})), text("done"))
    stream = agent.server.client.start("c", "go")
    asked = stream.until("approval_required")
    began = time.monotonic()
    while time.monotonic() < began + 2.5:  # longer than the command's own time
        assert agent.server.client.get("/approvals").json["approvals"], "the question waits"
    agent.server.client.approve("c", stream.interaction, asked["approval_id"], approved=True).expect(200)
    assert "reached" in next(each for each in stream.finish() if each.name == "tool_result")["tool_output"]


def test_a_question_ends_with_its_command(make_agent):
    agent, place = make_agent(ASKS), Place("reached")
    agent.provider.plan(tools(call("run_shell", {"command": f"curl -s http://127.0.0.2:{place.port}/ & until grep -q x go; do :; done; kill %1"})), text("done"))
    stream = agent.server.client.start("c", "go")
    asked = stream.until("approval_required")
    (agent.server.home.workspace / "go").write_text("x")
    events = stream.finish()
    assert next(each for each in events if each.name == "rejected")["approval_id"] == asked["approval_id"]
    assert not agent.server.client.get("/approvals").json["approvals"] and place.hits == 0
    agent.server.client.approve("c", stream.interaction, asked["approval_id"], approved=True).error(400, "already_processed")


def test_what_would_be_refused_anyway_is_not_asked_about(make_agent):
    agent = make_agent(ASKS | {"deny": ["bad.example"]})
    port = agent.server.port
    output = agent.shell(f"curl -sS --noproxy none http://bad.example/ http://127.0.0.1:{port}/health http://0.0.0.0:1/ 2>&1")
    assert "tools.network.deny names it" in output and "a server of Reprise is there" in output and "no address of one host" in output
    assert not [line for line in agent.server.client.get("/audit").json["entries"] if line["tool_name"] == "network"]


def test_a_name_is_not_looked_up_before_the_answer(make_agent):
    agent = make_agent(ASKS)
    agent.provider.plan(tools(call("run_shell", {"command": "curl -sS http://secret-7731.invalid/"})), text("done"))
    stream = agent.server.client.start("c", "go")
    asked = stream.until("approval_required")
    assert json.loads(asked["tool_input"])["host"] == "secret-7731.invalid"
    agent.server.client.approve("c", stream.interaction, asked["approval_id"], approved=False).expect(200)
    assert "the user refused it" in next(each for each in stream.finish() if each.name == "tool_result")["tool_output"]


def test_commands_beside_each_other_ask_and_a_replay_shows_the_same(make_agent):
    agent, places = make_agent(ASKS), [Place("one"), Place("two")]
    agent.provider.plan(tools(*(call("run_shell", {"command": f"curl -s http://127.0.0.2:{each.port}/"}, f"call_{each.port}") for each in places)), text("done"))
    stream = agent.server.client.start("c", "go")
    for _ in places:
        asked = stream.until("approval_required")
        agent.server.client.approve("c", stream.interaction, asked["approval_id"], approved=True, scope="chat").expect(200)
    stream.finish()
    replayed = agent.server.client.post(f"/chats/c/interactions/{stream.interaction}/replay", {"mode": "recorded"})
    assert replayed.expect(200, "replay_report").json["match"], replayed.json


def test_a_server_that_dies_with_a_question_leaves_no_answer_behind(make_agent, make_server):
    agent, place = make_agent(ASKS), Place("reached")
    agent.provider.plan(tools(call("run_shell", {"command": f"curl -s http://127.0.0.2:{place.port}/"})), text("done"))
    stream = agent.server.client.start("c", "go")
    stream.until("approval_required")
    agent.server.kill()
    again = make_server(agent.provider, home=agent.server.home, config={"approval_mode": "approve_all", "tools": {"network": ASKS}})
    assert not again.client.get("/approvals").json["approvals"]
    ended = again.client.get(f"/chats/c/interactions/{stream.interaction}").json
    assert ended["status"] in ("FAILED", "COMPLETED") and place.hits == 0
