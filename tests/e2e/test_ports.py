"""Ports of background jobs: listed, opened by a person, and out of reach before, after and for everybody else."""
import http.client
import pathlib
import socket
import time
import urllib.parse

import pytest
from support.provider import call, text, tools
from support.server import sandbox_works, without_bubblewrap
from support.timing import eventually
from test_jobs import Chat, gone

SERVE = "python3 -u -m http.server {} --bind {}"
# Sends what it receives back; says "gone" when a connection ends.
ECHO = """import socket, threading
def serve(c):
    try:
        while data := c.recv(65536): c.sendall(data)
    except OSError: pass
    print('gone', flush=True)
    c.close()
s = socket.create_server(('127.0.0.1', 7001), backlog=512)
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()"""
SOURCE = """import socket, threading
def serve(c):
    c.recv(100)
    for _ in range(1024): c.sendall(bytes(1 << 20))
    c.close()
s = socket.create_server(('127.0.0.1', 7002))
while True: threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()"""
sandboxed = pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")


class PortsChat(Chat):
    def __init__(self, server, provider, name="c"):
        super().__init__(server, provider, name)
        self.path = f"/chats/{name}/jobs"

    def python(self, code):
        return self.start(f"cat > program.py <<'END'\n{code}\nEND\nexec python3 -u program.py")

    def ports(self, job):
        return {each["port"]: each for each in self.job(job).get("ports", [])}

    def listens(self, job, port):
        eventually(lambda: port in self.ports(job), f"{port} of {self.job(job)}")
        return self.ports(job)[port]

    def change(self, job, port, verb):
        return self.client.post(f"{self.path}/{job}/ports/{port}/{verb}")

    def open(self, job, port):
        self.listens(job, port)
        opened = self.change(job, port, "open").expect(200, "job_port").json
        assert opened["state"] == "open", opened
        return opened["url"]

    def audited(self):
        entries = self.client.get("/audit?limit=1000").expect(200, "audit").json["entries"]
        return [(e["event"], e["job_id"], e["port"]) for e in entries if e["event"].startswith("port_")]


@pytest.fixture
def chat(server, provider):
    return PortsChat(server, provider)


@pytest.fixture
def server(make_server, provider):
    return make_server(provider, config={"approval_mode": "approve_all", "tools": {"limits": {"memory_mb": 0}}})


def place(url):
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port


def fetch(url, path="/"):
    connection = http.client.HTTPConnection(*place(url), timeout=20)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.read()


def connected(url):
    connection = socket.create_connection(place(url), timeout=20)
    connection.sendall(b"hello")
    assert connection.recv(100) == b"hello"
    return connection


def closed(url):
    """Whether nothing is led in there: refused, or ended at once."""
    try:
        with socket.create_connection(place(url), timeout=20) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return connection.recv(10) == b""
    except ConnectionError:
        return True


@sandboxed
def test_a_port_is_listed_and_reached_only_while_a_person_has_opened_it(chat):
    (chat.server.home.workspace / "index.html").write_text("seen from outside")
    job = chat.start(SERVE.format(8765, "127.0.0.1"))
    assert chat.listens(job, 8765) == {"port": 8765, "addresses": ["127.0.0.1"], "state": "closed"}
    assert closed("http://127.0.0.1:8765/")
    url = chat.open(job, 8765)
    host, port = place(url)
    assert host.startswith("127.") and host != "127.0.0.1" and port == 8765
    assert fetch(url) == (200, b"seen from outside")
    assert closed("http://127.0.0.1:8765/"), "not where our cookies go"
    assert chat.open(job, 8765) == url, "twice is once"
    assert chat.listens(job, 8765)["url"] == url
    read = chat.run("read_job", job_id=job)["tool_output"]
    assert f"listens on port 8765 (the user sees it at {url})" in read
    assert chat.change(job, 8765, "close").expect(200, "job_port").json["state"] == "closed"
    assert closed(url) and chat.ports(job)[8765]["state"] == "closed"
    chat.change(job, 8765, "close").expect(200, "job_port")
    assert chat.audited() == [("port_opened", job, 8765), ("port_closed", job, 8765)]


@sandboxed
def test_a_server_that_listens_later_and_ipv6_alone(chat):
    job = chat.start("echo waits; while [ ! -e go ]; do sleep 0.1; done; exec " + SERVE.format(8080, "::1"))
    eventually(lambda: "waits" in chat.job(job)["output"], "it runs")
    assert chat.ports(job) == {}
    refused = chat.change(job, 8080, "open").error(409, "not_listening")
    assert refused["retryable"] and "8080" in refused["message"]
    (chat.server.home.workspace / "go").touch()
    assert chat.listens(job, 8080)["addresses"] == ["::1"]
    for _ in range(100):  # more than there are ways in: they are used again
        assert fetch(chat.open(job, 8080), "/go")[0] == 200


@sandboxed
def test_the_same_number_may_be_taken_and_each_job_has_an_address_of_its_own(chat, make_server, provider):
    with socket.create_server(("0.0.0.0", 0)) as taken:
        number = taken.getsockname()[1]
        first, second = (chat.start(SERVE.format(number, "0.0.0.0")) for _ in range(2))
        one, other = chat.open(first, number), chat.open(second, number)
        assert place(one)[1] != number and place(one)[0] != place(other)[0]
        assert fetch(one)[0] == fetch(other)[0] == 200


@sandboxed
@pytest.mark.parametrize("how", ["job", "chat", "server", "exit"])
def test_open_connections_end_with_the_job_the_chat_and_the_server(chat, how):
    job = chat.python(ECHO)
    url = chat.open(job, 7001)
    connection = connected(url)
    if how == "job":
        chat.client.post(f"{chat.path}/{job}/stop").expect(200, "job")
    elif how == "chat":
        chat.client.request("DELETE", "/chats/c").expect(200)
    elif how == "server":
        chat.server.stop()
    else:
        chat.server.kill()
    try:
        assert connection.recv(100) == b""
    except ConnectionError:
        pass
    eventually(lambda: closed(url), "the port is closed")
    gone("program.py")
    if how == "job":
        assert "ports" not in chat.job(job)
        chat.change(job, 7001, "open").error(409, "not_listening")


@sandboxed
def test_what_a_job_sent_before_it_ended_arrives(chat):
    job = chat.python("import socket\ns = socket.create_server(('127.0.0.1', 7003))\nc, _ = s.accept()\nc.recv(9)\nc.sendall(bytes(1 << 20))\nc.close()")
    with socket.create_connection(place(chat.open(job, 7003)), timeout=30) as connection:
        connection.sendall(b"now")
        got = 0
        while data := connection.recv(65536):
            got += len(data)
    assert got == 1 << 20


@sandboxed
def test_a_thousand_connections_are_bounded_and_the_port_lives_on(chat):
    job = chat.python(ECHO)
    url = chat.open(job, 7001)
    served, all_of_them = 0, []
    for _ in range(1000):
        connection = socket.create_connection(place(url), timeout=20)
        all_of_them.append(connection)
    for connection in all_of_them:
        try:
            connection.sendall(b"x")
            served += connection.recv(1) == b"x"
        except ConnectionError:
            pass
    print("served", served)
    assert 0 < served <= 16
    for connection in all_of_them:
        connection.close()
    # All of them are free again, as often as one likes.
    eventually(lambda: chat.job(job)["output"].count("gone") == served, "the ends have arrived")
    for _ in range(60):
        connected(url).close()
    assert chat.client.get("/healthz").status == 200


@sandboxed
def test_a_gigabyte_passes_in_bounded_memory(chat):
    job = chat.python(SOURCE)
    url = chat.open(job, 7002)
    before = chat.server.peak_memory_kb()
    began = time.monotonic()
    with socket.create_connection(place(url), timeout=60) as connection:
        connection.sendall(b"go")
        got, buffer = 0, bytearray(1 << 20)
        while size := connection.recv_into(buffer):
            got += size
    took = time.monotonic() - began
    used = chat.server.peak_memory_kb() - before
    print(f"1 GiB in {took:.1f} s, {got / took / 1e6:.0f} MB/s, {used} KiB of memory")
    assert got == 1 << 30 and used < 20_000


@sandboxed
def test_the_agent_can_neither_open_a_port_nor_reach_what_leads_in(chat):
    job = chat.start(SERVE.format(8765, "127.0.0.1"))
    url = chat.open(job, 8765)
    host, port = place(url)
    probe = f"""import os, socket
for place in [("127.0.0.1", {chat.server.port}), ("{host}", {port})]:
    try: socket.create_connection(place, 2); print("reached", place)
    except OSError as error: print("no", error)
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        for fd in os.listdir(f"/proc/{{pid}}/fd"):
            link = os.readlink(f"/proc/{{pid}}/fd/{{fd}}")
            if link.startswith("socket:") or "net/tcp" in link: print("holds", pid, fd, link)
    except OSError: pass
print("looked")"""
    (chat.server.home.workspace / "probe.py").write_text(probe)
    for output in (chat.run("run_shell", command="python3 probe.py")["tool_output"], inside(chat, "python3 -u probe.py")):
        assert "looked" in output and "reached" not in output and "holds" not in output, output
    names = [tool["name"] for tool in chat.client.get("/tools").json["tools"]]
    assert not any("port" in name for name in names)
    assert chat.run("read_job", job_id=job, open=8765)["is_error"], "no argument of a tool opens one"
    assert chat.audited() == [("port_opened", job, 8765)]


def inside(chat, command):
    job = chat.start(command)
    eventually(lambda: not chat.job(job)["running"], "it ends")
    return chat.job(job)["output"]


@sandboxed
def test_who_may_not_open_and_what_is_no_port(chat, make_server, provider):
    job = chat.start(SERVE.format(8765, "127.0.0.1"))
    chat.listens(job, 8765)
    for number in ("0", "65536", "-1", "80x", "%20"):
        chat.change(job, number, "open").error(400, "invalid_parameter")
    chat.change("job_0000000000000000", 8765, "open").error(404, "no_such_job")
    chat.client.post(f"/chats/none/jobs/{job}/ports/8765/open").error(404)
    chat.client.request("POST", f"{chat.path}/{job}/ports/8765/open", b"{}", headers={"Content-Type": "application/json", "Origin": "http://127.84.1.2:8765"}).error(403, "forbidden_origin")
    for number in range(8001, 8010):
        chat.python("import socket, time\ns = [socket.create_server(('127.0.0.1', 8000 + n)) for n in range(1, 10)]\ntime.sleep(600)") if number == 8001 else None
        job = chat.jobs()[-1]["id"]
        chat.listens(job, number)
        if number < 8009:
            chat.open(job, number)
        else:
            chat.change(job, number, "open").error(503, "too_many_ports")


@sandboxed
def test_with_a_token_nobody_is_known_to_be_at_this_machine(make_server, provider, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-many-letters-0123456789")
    token.chmod(0o600)
    chat = PortsChat(make_server(provider, config={"approval_mode": "approve_all", "tools": {"limits": {"memory_mb": 0}}}, arguments=["--token-file", str(token)], token=token.read_text()), provider)
    job = chat.start(SERVE.format(8765, "127.0.0.1"))
    assert chat.listens(job, 8765)["state"] == "closed"
    assert "token" in chat.change(job, 8765, "open").error(403, "ports_not_allowed")["message"]
    chat.change(job, 8765, "close").error(403, "ports_not_allowed")


@pytest.mark.skipif(not without_bubblewrap(), reason="bubblewrap cannot be hidden on this machine")
def test_without_a_sandbox_the_list_says_where_the_job_listens(make_server, provider):
    chat = PortsChat(make_server(provider, wrapper=without_bubblewrap()), provider)
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    provider.plan(tools(call("run_shell", {"command": "(" + SERVE.format(number, "127.0.0.1") + ") & wait", "background": True}, "call_1")), text("done"))
    run = chat.client.start("c", "go")
    chat.client.approve("c", run.interaction, run.until("approval_required")["approval_id"]).expect(200)
    run.finish()
    job = chat.jobs()[0]["id"]
    url = f"http://127.0.0.1:{number}/"
    assert chat.listens(job, number) == {"port": number, "addresses": ["127.0.0.1"], "state": "outside"}, "no link leads to where our cookies go"
    assert chat.change(job, number, "open").expect(200, "job_port").json["state"] == "outside"
    eventually(lambda: not closed(url), "it answers")
    assert fetch(url)[0] == 200 and chat.audited() == []
    assert list(chat.ports(job)) == [number], "nothing of other programs"


@sandboxed
def test_a_browser_sees_it_without_our_cookies_and_its_page_cannot_read_us(chat, browse):
    (chat.server.home.workspace / "index.html").write_text(
        f"<p id=said>page</p><script>fetch('http://127.0.0.1:{chat.server.port}/chats', {{credentials: 'include'}}).then((r) => r.text()).then((t) => said.textContent = 'read ' + t,"
        " (e) => said.textContent = 'cannot read')</script>")
    heads = "import http.server\nclass H(http.server.SimpleHTTPRequestHandler):\n def do_GET(s):\n  print('COOKIES', s.headers.get('Cookie'), flush=True)\n  super().do_GET()\nhttp.server.HTTPServer(('127.0.0.1', 8765), H).serve_forever()"
    job = chat.python(heads)
    url = chat.open(job, 8765)
    page = browse(chat.server, "/")
    page.script("document.cookie = 'ours=secret; path=/'")
    page.driver.get_log("performance")
    page.is_watched = False
    page.driver.get(url)
    page.until(lambda: page.css("#said")[0].text == "cannot read", "the refusal")
    eventually(lambda: "COOKIES None" in chat.job(job)["output"], "the request")
    assert "secret" not in chat.job(job)["output"]


@sandboxed
def test_the_client_lists_opens_and_closes_a_port(chat, open_terminal):
    job = chat.start(SERVE.format(8765, "127.0.0.1"))
    chat.listens(job, 8765)
    terminal = open_terminal(chat.server.home, "chat", "c", "--url", f"http://127.0.0.1:{chat.server.port}").opened()
    terminal.say("/jobs").until("listens on port 8765: /jobs open ID PORT").ready()
    terminal.say(f"/jobs open {job} 8765").until("http://127.").ready()
    url = chat.ports(job)[8765]["url"]
    terminal.say("/jobs").until(f"listens on port 8765: {url}").ready()
    terminal.say(f"/jobs close {job} 8765").until("port 8765 is closed").ready()
    terminal.say(f"/jobs open {job} 9999").until("does not listen on port 9999").ready()
    terminal.say(f"/jobs open {job}").until("takes ID and PORT").ready()
    assert chat.ports(job)[8765]["state"] == "closed"


@sandboxed
def test_an_ended_job_keeps_no_descriptor(chat):
    def count():
        return len(list(pathlib.Path(f"/proc/{chat.server.process.pid}/fd").iterdir()))

    def run():
        job = chat.start("true")
        eventually(lambda: not chat.job(job)["running"], "the job ends")
    run()
    before = count()
    for _ in range(5):
        run()
    eventually(lambda: count() <= before, "the descriptors of ended jobs")
