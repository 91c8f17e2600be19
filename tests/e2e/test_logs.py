"""The server's log: a line for each request and each run, as text and as JSON, on standard error or in a file."""
import json
import os
import re
import select
import signal
import socket
import stat
import subprocess

import pytest
from support.client import Client, raw_exchange
from support.provider import Gate, call, failure, text, tools
from support.server import BINARY
from support.timing import SOON, eventually

AT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
FIELD = re.compile(r' (?P<name>\w+)=(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<bare>[^ "]+))')
LEVELS = ("debug", "info", "warning", "error")


def parse_text(line):
    """Parses one logfmt line, strictly, into its JSON form."""
    head = re.match(r"time=(\S+) level=(\w+)", line)
    assert head and AT.fullmatch(head[1]) and head[2] in LEVELS, line
    said, end = {"at": head[1], "level": head[2]}, head.end()
    while end < len(line):
        field = FIELD.match(line, end)
        assert field, line[end:]
        value = json.loads(field["bare"]) if field["text"] is None else re.sub(r"\\(.)", r"\1", field["text"])
        assert field["name"] not in said, line
        said["message" if field["name"] == "msg" else field["name"]] = value
        end = field.end()
    return said


def parse_json(line):
    def once(members):
        assert len(members) == len(dict(members)), line
        return dict(members)

    said = json.loads(line, object_pairs_hook=once)
    assert list(said)[:3] == ["at", "level", "message"] and AT.fullmatch(said["at"]) and said["level"] in LEVELS, line
    return said


class Log:
    """A server's log, read anew each time. Every line must be well-formed."""

    def __init__(self, read, form="text"):
        self.read = read
        self.form = form

    def lines(self, message=None):
        whole = self.read()
        parse = parse_json if self.form == "json" else parse_text
        said = [parse(line) for line in whole[:whole.rfind("\n") + 1].splitlines()]
        return [line for line in said if message in (None, line["message"])]

    def requests(self, route=None):
        return [line for line in self.lines("request") if route in (None, line["route"])]

    def await_requests(self, count, route=None):
        """Waits for the lines, which are written after the last byte of the response."""
        eventually(lambda: len(self.requests(route)) >= count, f"{count} lines of {route}")
        found = self.requests(route)
        assert len(found) == count, found
        return found

    def await_runs(self, count):
        eventually(lambda: len(self.lines("run ended")) >= count, f"{count} runs")
        found = self.lines("run ended")
        assert len(found) == count, found
        return found


def serve(home, *arguments, **environment):
    """Runs a start that must fail."""
    return subprocess.run([str(BINARY), "serve", "--port", "0", "--data-dir", str(home.data), "--workspace", str(home.workspace), *map(str, arguments)],
                          cwd=home.path, env=home.environment(**environment), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON,
                          check=False)


@pytest.fixture(params=["text", "json"])
def form(request):
    return request.param


@pytest.fixture
def logged(make_server, provider, form):
    """A server and its log, in either format."""
    server = make_server(provider, arguments=["--log-format", form])
    return server, Log(server.log, form)


def test_each_request_has_one_line(logged):
    server, log = logged
    body = server.client.get("/chats").expect(200).body
    server.client.get("/chats/nobody").error(404)
    server.client.post("/chats", {"id": "made"}).expect(201)
    listed, missing, made = log.await_requests(3)
    for line in (listed, missing, made):
        assert list(line) == ["at", "level", "message", "id", "method", "route", "status", "ms", "bytes", "complete"]
        assert line["level"] == "info" and line["complete"] is True and 0 <= line["ms"] < SOON * 1000
    assert (listed["method"], listed["route"], listed["status"]) == ("GET", "/chats", 200)
    assert len(body) < listed["bytes"] < len(body) + 1000, "the head is counted, too"
    assert (missing["method"], missing["route"], missing["status"]) == ("GET", "/chats/*", 404)
    assert (made["method"], made["route"], made["status"]) == ("POST", "/chats", 201)


def test_what_is_refused_has_a_line_too_which_does_not_repeat_it(logged):
    server, log = logged
    port = server.port
    for request, status in [
            (b"GET /chats HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 403),
            (b"GET /canary?canary=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 404),
            (b"CANARY /chats HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 405),
            (b"canary canary canary\r\n\r\n", 400),
            (b"\r\n" * 20, 400),
            (b"GET /chats HTTP/1.1\r\nHost: 127.0.0.1\r\nCanary: " + b"canary" * 10_000 + b"\r\n\r\n", 431)]:
        before = len(log.requests())
        assert raw_exchange(port, request).startswith(b"HTTP/1.1 %d " % status), request[:100]
        line = log.await_requests(before + 1)[-1]
        assert (line["level"], line["route"], line["status"], line["complete"]) == ("info", "-", status, True), line
        assert line["method"] == ("GET" if request.startswith(b"GET") and status != 431 else "-")
    assert "canary" not in server.log().lower() and "evil" not in server.log()


def test_a_body_that_does_not_fit_is_told_with_its_route(logged):
    server, log = logged
    server.client.post("/chats/c/interactions", "canary").error(400)
    server.client.post("/chats/c/interactions", b"x" * (2 << 20)).error(413)
    bad, large = log.await_requests(2)
    assert (bad["route"], bad["status"]) == (large["route"], 400) == ("/chats/*/interactions", 400)
    assert large["status"] == 413
    assert "canary" not in server.log()


def test_requests_on_one_connection_have_a_line_each(logged):
    server, log = logged
    one = b"GET /chats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    head = b"HEAD /tools HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    last = b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    answer = raw_exchange(server.port, one + head + one + last)
    lines = log.await_requests(4)
    assert [(line["method"], line["route"], line["status"]) for line in lines] == [
        ("GET", "/chats", 200), ("HEAD", "/tools", 200), ("GET", "/chats", 200), ("GET", "-", 404)]
    assert sum(line["bytes"] for line in lines) == len(answer), "each byte counts once"


def test_a_stream_has_its_line_when_it_ends(logged, provider):
    server, log = logged
    gate = Gate()
    provider.plan(text("half", gate, "whole", usage=(31, 17)))
    stream = server.client.start("c", "go")
    stream.until("text_delta")
    server.client.get("/chats").expect(200)
    log.await_requests(1, "/chats")
    assert log.requests("/chats/*/interactions") == [] and log.lines("run ended") == [], "the run has not ended"
    gate.release()
    stream.finish()
    line, = log.await_requests(1, "/chats/*/interactions")
    assert (line["method"], line["status"], line["complete"]) == ("POST", 200, True)
    assert line["bytes"] > 500 and line["ms"] > 0


def test_a_client_that_leaves_is_told_of(logged, provider):
    server, log = logged
    provider.plan(text("half", Gate()), text("half", Gate()))
    stream = server.client.start("c", "go")
    stream.until("text_delta")
    stream.close()
    line, = log.await_requests(1, "/chats/*/interactions")
    assert (line["status"], line["complete"]) == (200, False) and line["bytes"] > 0
    # A client that waits for the whole interaction disconnects before there is a status.
    body = b'{"user_message":"go","stream":false}'
    with socket.create_connection(("127.0.0.1", server.port), timeout=SOON) as connection:
        connection.sendall(b"POST /chats/d/interactions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body)
        provider.wait_requests(2)
    line = log.await_requests(2, "/chats/*/interactions")[-1]
    assert (line["status"], line["bytes"], line["complete"]) == (0, 0, False)


def test_each_run_has_one_line(logged, provider):
    server, log = logged
    provider.plan(tools(call("echo", {"text": "x"})), text("done", usage=(31, 17)))
    stream = server.client.start("c", "go")
    stream.finish()
    line, = log.await_runs(1)
    assert list(line) == ["at", "level", "message", "chat", "interaction", "status", "rounds", "input_tokens", "output_tokens", "ms", "model"]
    stored = server.client.interaction("c", "int_001")
    assert line["level"] == "info" and line["rounds"] == 2 and line["ms"] >= 0
    assert (line["chat"], line["interaction"], line["status"], line["model"]) == ("c", "int_001", "COMPLETED", stored["model"])
    assert {name: line[name] for name in ("input_tokens", "output_tokens")} == {
        name: stored["usage"][name] for name in ("input_tokens", "output_tokens")}
    assert line["input_tokens"] >= 31 and line["output_tokens"] >= 17


def test_runs_that_fail_or_are_cancelled_have_their_line(logged, provider):
    server, log = logged
    provider.plan(failure(400, "no"), text("half", Gate()))
    server.client.turn("c", "go", status="FAILED")
    stream = server.client.start("c", "go")
    stream.until("text_delta")
    server.client.cancel("c", "int_002")
    stream.finish("CANCELLED")
    failed, cancelled = log.await_runs(2)
    assert (failed["interaction"], failed["status"], failed["level"]) == ("int_001", "FAILED", "info")
    assert (cancelled["interaction"], cancelled["status"], cancelled["level"]) == ("int_002", "CANCELLED", "info")


def test_a_run_that_waits_for_a_person_ends_in_the_process_that_ends_it(make_server, make_home, provider):
    home = make_home()
    first = make_server(provider, home)
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"})))
    stream = first.client.start("c", "go")
    asked = stream.until("approval_required")
    first.stop()
    stream.close()
    log = Log(first.log)
    assert log.lines("run ended") == [] and log.lines("stopped")
    second = make_server(provider, home)
    provider.plan(text("done"))
    second.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    line, = log.await_runs(1)
    assert (line["status"], line["rounds"]) == ("COMPLETED", 2)


PROBES = ("/healthz", "/readyz", "/metrics")


def test_probes_are_quiet(make_server, form):
    quiet = make_server(arguments=["--log-format", form])
    for _ in range(3):
        for probe in PROBES:
            quiet.client.get(probe).expect(200)
    quiet.client.get("/chats").expect(200)
    assert [line["route"] for line in Log(quiet.log, form).await_requests(1)] == ["/chats"]
    loud = make_server(arguments=["--log-format", form, "--log-level", "debug"])
    for probe in PROBES:
        loud.client.get(probe).expect(200)
    assert [(line["route"], line["level"]) for line in Log(loud.log, form).await_requests(3)] == [(probe, "debug") for probe in PROBES]


@pytest.mark.parametrize("level", ["warning", "error"])
def test_a_higher_level_leaves_them_out(make_server, provider, level, form):
    server = make_server(provider, arguments=["--log-level", level, "--log-format", form])
    provider.plan(text("a"), failure(400, "no"))
    server.client.turn("c", "go")
    server.client.turn("c", "go", status="FAILED")
    server.client.get("/nowhere").error(404)
    server.stop()
    levels = {line["level"] for line in Log(server.log, form).lines()}
    assert levels == ({"warning"} if level == "warning" else set())


def test_no_secret_and_nothing_that_was_said(make_server, provider, tmp_path, form):
    token = "s3cret-token-canary-0123456789"
    file = tmp_path / "token"
    file.write_text(token + "\n")
    file.chmod(0o600)
    server = make_server(provider, arguments=["--token-file", file, "--log-level", "debug", "--log-format", form], token=token,
                         config={"approval_mode": "approve_all"})
    provider.plan(tools(call("echo", {"text": "canary"}), think="canary", say="canary"), text("canary"))
    client = server.client
    client.turn("c", "canary please")
    paged = client.get("/chats?cursor=canary").status
    client.get("/chats/canary").error(404)
    client.request("PATCH", "/chats/c", {"title": "canary"}).expect(200)
    client.request("GET", "/chats", headers={"X-Canary": "canary", "User-Agent": "canary", "Referer": "http://canary"}).expect(200)
    Client(server.port, token[:-1] + "canary").get("/chats?token=canary").error(401)
    server.stop()
    log = Log(server.log, form)
    assert sorted(line["status"] for line in log.requests()) == sorted([200, paged, 404, 200, 200, 401])
    assert "canary" not in server.log().lower()


def test_a_models_name_forges_no_line_and_steers_no_terminal(logged, provider):
    server, log = logged
    provider.plan(text("a"))
    server.client.turn("c", "go", model="test/\x1b[2J\u202e\u200bx\nlevel=error \"quoted\"\\" + "y" * 10_000)
    line, = log.await_runs(1)
    shown = "test/<U+001B>[2J<U+202E><U+200B>x level=error \"quoted\"\\"
    assert line["model"].startswith(shown + "yyy") and len(line["model"]) < 300


# --- in a file -------------------------------------------------------------------------------------------------------


def test_a_log_file_is_private_and_appended_to(make_server, make_home, provider, form):
    home = make_home()
    file = home.path / "server.log"
    log = Log(file.read_text, form)
    for number in (1, 2):
        server = make_server(provider, home, arguments=["--log-file", file, "--log-format", form])  # under umask 0
        provider.plan(text("a"))
        server.client.turn("c", "go")
        server.stop()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert len(log.lines("ready")) == len(log.lines("stopped")) == len(log.requests()) == len(log.lines("run ended")) == number
        file.chmod(0o644)  # the next start corrects the mode
    assert server.log() == "", "standard error stays empty"


def test_it_can_be_configured_as_every_setting(make_server, make_home):
    home = make_home()
    configured = home.path / "configured.log"
    make_server(home=home).stop()  # the first start logs that it made a key
    server = make_server(home=home, config={"log_file": str(configured), "log_format": "json", "log_level": "warning"})
    server.stop()
    assert configured.read_text() == ""
    named = home.path / "named.log"
    server = make_server(home=home, config={"log_file": str(configured), "log_format": "json"}, environment={"REPRISE_LOG_FILE": str(named),
                                                                                                         "REPRISE_LOG_FORMAT": "text"})
    server.stop()
    assert configured.read_text() == "" and Log(named.read_text).lines("ready")


def test_unknown_formats_are_refused(make_home):
    done = serve(make_home(), "--log-format", "xml")
    assert done.returncode == 2 and done.stdout == "" and "--log-format must be text or json" in done.stderr


@pytest.mark.parametrize("kind, why", [("link", "symbolic link"), ("dangling", "symbolic link"), ("second name", "second name"), ("fifo", "not a regular file"),
                                       ("folder", "directory"), ("in no folder", "No such file")])
def test_a_file_that_cannot_be_the_log_stops_the_start(make_home, kind, why):
    home = make_home()
    file = home.path / "log"
    other = home.path / "other"
    other.write_text("mine\n")
    if kind == "link":
        file.symlink_to(other)
    elif kind == "dangling":
        file.symlink_to(home.path / "made")
    elif kind == "second name":
        os.link(other, file)
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file = home.path / "none" / "log"
    done = serve(home, "--log-file", file)
    assert done.returncode == 1 and done.stdout == "", (done.stdout, done.stderr)
    assert done.stderr.count("\n") == 1 and str(file) in done.stderr and why.lower() in done.stderr.lower(), done.stderr
    assert other.read_text() == "mine\n" and not (home.path / "made").exists()
    assert not home.data.exists(), "the server did not start"


def test_a_rotated_file_is_reopened_on_sighup(make_server, make_home, provider):
    home = make_home()
    file, rotated = home.path / "server.log", home.path / "server.log.1"
    server = make_server(provider, home, arguments=["--log-file", file, "--log-format", "json"])
    old, new = Log(rotated.read_text, "json"), Log(file.read_text, "json")
    gate = Gate()
    provider.plan(text("half", gate, "whole"))
    stream = server.client.start("c", "go")
    stream.until("text_delta")
    file.rename(rotated)
    server.client.get("/chats").expect(200)
    old.await_requests(1, "/chats")
    server.process.send_signal(signal.SIGHUP)
    eventually(lambda: file.exists() and new.lines("the log file was opened again"), "the new file has the first line")
    gate.release()
    stream.finish()
    new.await_requests(1, "/chats/*/interactions")
    new.await_runs(1)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert old.lines("ready") and not old.lines("run ended") and not new.lines("ready")


def test_a_file_that_cannot_be_opened_again_leaves_the_old_one(make_server, make_home):
    home = make_home()
    file, rotated = home.path / "server.log", home.path / "server.log.1"
    server = make_server(home=home, arguments=["--log-file", file])
    log = Log(rotated.read_text)
    file.rename(rotated)
    file.symlink_to(home.path / "elsewhere")
    server.process.send_signal(signal.SIGHUP)
    refused, = eventually(lambda: log.lines("the log file cannot be opened again; the log goes on in the old one"), "it is told")
    assert refused["level"] == "error" and "symbolic link" in refused["error"]
    server.client.get("/chats").expect(200)
    log.await_requests(1)
    assert not (home.path / "elsewhere").exists()


def test_without_a_file_sighup_ends_the_server_as_ever(make_home):
    home = make_home()
    process = subprocess.Popen([str(BINARY), "serve", "--port", "0", "--data-dir", str(home.data), "--workspace", str(home.workspace)], cwd=home.path,
                               env=home.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # in case these tests run under nohup
    try:
        assert process.stdout.readline().startswith(b"reprise listening on ")
        process.send_signal(signal.SIGHUP)
        assert process.wait(SOON) == -signal.SIGHUP
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# --- nobody reads it -------------------------------------------------------------------------------------------------


def test_an_unread_log_delays_nothing(make_home):
    home = make_home()
    process = subprocess.Popen([str(BINARY), "serve", "--port", "0", "--data-dir", str(home.data), "--workspace", str(home.workspace)], cwd=home.path,
                               env=home.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        port = int(process.stdout.readline().rsplit(b":", 1)[1])
        count = 3000  # several times a pipe's capacity
        one = b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        last = b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        for _ in range(count // 100):
            answers = raw_exchange(port, one * 99 + last)
            assert answers.count(b"HTTP/1.1 404 ") == 100
        client = Client(port)
        client.turn("c", "echo hello")
        # Once the log is read, the next line says how many are missing.
        read = os.read(process.stderr.fileno(), 1 << 20)
        client.get("/chats").expect(200)
        while b'route="/chats"' not in read or not read.endswith(b"\n"):
            assert select.select([process.stderr], [], [], SOON)[0], read[-1000:]
            read += os.read(process.stderr.fileno(), 1 << 20)
        log = Log(read.decode)
        missing, = log.lines("log lines were left out: nobody took them")
        written = log.requests("-") + log.requests("/chats/*/interactions") + log.lines("run ended")
        assert missing["level"] == "warning" and missing["lines"] > 100
        assert len(written) + missing["lines"] == count + 2, "each line was written or counted; the turn logs two"
        process.terminate()
        assert process.wait(SOON) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
