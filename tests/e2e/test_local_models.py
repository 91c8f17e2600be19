"""Servers of models on this machine are found and offered, and never used unasked."""
import http.server
import json
import pathlib
import re
import socket
import threading
import time

import pytest

from support.provider import Provider, Reply, text
from support.server import Home, reprise
from support.timing import SLACK

CTRL_D = b"\x04"


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "user")


def listing(*names, owner="library"):
    return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": owner} for name in names]}


def serving(provider, *names, **how):
    provider.listing = Reply([json.dumps(listing(*names, **how)).encode()], content_type="application/json")
    return provider


def port_of(provider):
    return provider.http.server_port


@pytest.fixture
def raw():
    """Servers that answer each connection by a function of the socket, which runs until the test ends."""
    listening, held = [], []

    def make(answer):
        server = socket.create_server(("127.0.0.1", 0))
        listening.append(server)

        def serve():
            while True:
                try:
                    held.append(server.accept()[0])
                    answer(held[-1])
                except OSError:
                    if server.fileno() < 0:
                        return

        threading.Thread(target=serve, daemon=True).start()
        return server.getsockname()[1]

    yield make
    for each in [*listening, *held]:
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        each.close()


def response(body, status="200 OK", headers=""):
    body = body if isinstance(body, bytes) else body.encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


def says(data):
    def answer(connection):
        connection.recv(4096)
        connection.sendall(data)
    return answer


def offers(home, *ports, command=("models",), **environment):
    """The lines that offer a server."""
    _, out, err = reprise(home, *command, REPRISE_LOCAL_PORTS=",".join(map(str, ports)), **environment)
    return [line for line in (out + err).splitlines() if "to use it, put" in line]


def test_doctor_and_models_offer_what_is_there(home, provider):
    serving(provider, "qwen3:8b", "llama3", *(f"more-{i}" for i in range(5)), "nomic-embed-text")
    vllm = serving(Provider(), "big/model", owner="vllm")
    try:
        where = home.config / "reprise" / "reprise.json"
        config = {"model": "ollama/qwen3:8b", "providers": {"ollama": {"type": "openai", "base_url": provider.url}}}
        expected = [f"Ollama at {provider.url} has qwen3:8b, llama3, more-0, more-1, more-2 and 2 more models; to use it, put "
                    f"{json.dumps(config, separators=(',', ':'))} into {where}",
                    # It listens at the usual port of another program, and says what it is.
                    f"vLLM at {vllm.url} has big/model; to use it, put "
                    + json.dumps({"model": "vllm/big/model", "providers": {"vllm": {"type": "openai", "base_url": vllm.url}}}, separators=(",", ":")) + f" into {where}"]
        ports = (port_of(provider), port_of(vllm))
        assert offers(home, *ports) == ["reprise: " + line for line in expected]
        assert offers(home, *ports, command=("doctor",)) == ["ok    models on this machine: " + line for line in expected]
        # It is no model that can be used, so standard output is as without it.
        _, listed, _ = reprise(home, "models", REPRISE_LOCAL_PORTS=",".join(map(str, ports)))
        assert [line.split()[0] for line in listed.splitlines()] == ["offline"]
        checks = json.loads(reprise(home, "doctor", "--json", REPRISE_LOCAL_PORTS=",".join(map(str, ports)))[1])["checks"]
        assert [c["message"] for c in checks if c["check"] == "models on this machine"] == expected
    finally:
        vllm.close()


def test_the_offered_line_works_and_then_it_is_offered_no_more(home, provider):
    serving(provider, 'an "odd" näme')
    line = offers(home, port_of(provider))[0]
    config, path = re.search(r"put (\{.*\}) into (\S+)$", line).groups()
    file = pathlib.Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(config)
    file.chmod(0o600)
    provider.plan(text("from this machine"))
    status, out, err = reprise(home, "-p", "hello")
    assert (status, out) == (0, "from this machine\n"), err
    assert provider.requests[0].body["model"] == 'an "odd" näme'
    assert offers(home, port_of(provider)) == [] == offers(home, port_of(provider), command=("doctor",))


def test_the_first_start_offers_it_once(home, open_terminal, provider):
    serving(provider, "qwen3:8b")
    environment = {"REPRISE_LOCAL_PORTS": str(port_of(provider))}
    first = open_terminal(home, columns=200, **environment).until("Ollama at").until("to use it, put").opened().ready()
    first.say("what is 2+2?").until("2+2 = 4").ready().type(CTRL_D)  # by the offline model
    assert first.end() == 0
    again = open_terminal(home, columns=200, **environment).opened().ready()
    assert "Ollama at" not in again.text
    assert provider.requests == [] and len(provider.listings) == 1


def test_it_is_never_used_nor_asked_by_a_run_or_a_server(home, make_server, provider):
    serving(provider, "qwen3:8b")
    environment = {"REPRISE_LOCAL_PORTS": str(port_of(provider))}
    assert reprise(home, "-p", "what is 2+2?", **environment)[1] == "2+2 = 4\n"
    server = make_server(environment=environment)
    assert [m["name"] for m in server.client.get("/models").json["models"]] == ["offline"]
    assert provider.requests == [] and provider.listings == []


def test_neither_a_named_server_nor_a_configured_one_is_offered(home, make_server, provider):
    serving(provider, "qwen3:8b")
    named = make_server()
    assert offers(home, port_of(provider), command=("models", "--url", f"http://127.0.0.1:{named.port}")) == []
    for host in ("localhost", "127.0.0.1"):
        file = home.path / "own.json"
        file.write_text(json.dumps({"providers": {"mine": {"type": "openai", "base_url": f"http://{host}:{port_of(provider)}/v1"}}, "model": "mine/qwen3:8b"}))
        file.chmod(0o600)
        assert offers(home, port_of(provider), command=("doctor", "--config", file)) == []
    other = offers(home, port_of(provider), command=("doctor", "--config", write(home, {"providers": {"far": {"type": "openai", "base_url": "http://127.0.0.1:1/v1"}}})))
    assert len(other) == 1 and other[0].endswith("own.json")


def write(home, config):
    file = home.path / "own.json"
    file.write_text(json.dumps(config))
    file.chmod(0o600)
    return file


def test_no_proxy_hears_of_it(home, provider):
    serving(provider, "qwen3:8b")
    assert len(offers(home, port_of(provider), http_proxy="http://127.0.0.1:1", HTTP_PROXY="http://127.0.0.1:1", ALL_PROXY="http://127.0.0.1:1")) == 1


def test_a_server_of_our_own_is_not_offered(home, make_server, provider):
    plain = make_server(provider)
    token = home.path / "token"
    token.write_text("secret-of-this-server-1234")
    token.chmod(0o600)
    closed = make_server(arguments=["--token-file", str(token)], token="secret-of-this-server-1234")
    assert plain.client.get("/v1/models").json["object"] == "list"
    assert offers(home, plain.port, closed.port) == []


GOOD = json.dumps(listing("good"))
HOSTILE = {
    "silence": lambda connection: connection.recv(4096),
    "closes": lambda connection: connection.close(),
    "closes after the head": lambda connection: (connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"), connection.close()),
    "cut off": says(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + GOOD.encode()),
    "HTML": says(response("<html><body>It works!</body></html>", headers="Content-Type: text/html\r\n")),
    "no HTTP": says(b"SSH-2.0-OpenSSH_9.2\r\n"),
    "10 MB": says(response(json.dumps({**listing("good"), "more": "x" * 10_000_000}))),
    "10 MB of names": says(response(json.dumps(listing(*(f"model-{i}" for i in range(120_000)))))),
    "not found": says(response(GOOD, "404 Not Found")),
    "wants a key": says(response(GOOD, "401 Unauthorized")),
    "empty": says(response("")),
    "no list": says(response(json.dumps({"object": "list", "data": {"id": "good"}}))),
    "no objects": says(response(json.dumps({"object": "list", "data": ["good", 1, None, {"id": 5}, {"id": ""}]}))),
    "an array": says(response(json.dumps([{"id": "good"}]))),
    "deep": says(response('{"object":"list","data":' + "[" * 100_000 + "]" * 100_000 + "}")),
    "not UTF-8": says(response(b'{"object":"list","data":[{"id":"\xff\xfe"}]}')),
    "none": says(response(json.dumps(listing()))),
    "only embeddings": says(response(json.dumps(listing("text-embedding-nomic", "mxbai-EMBED")))),
    "hidden characters": says(response(json.dumps(listing("a\x1b[2Jb", "a\nb", "right\u202eleft", "a\u200bb", "\u009b31m")))),
    "a variable": says(response(json.dumps(listing("${TEST_API_KEY}", "a${HOME}")))),
    "a long name": says(response(json.dumps(listing("x" * 5_000)))),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_server_of_models_is_not_offered(home, raw, kind):
    good = raw(says(response(GOOD)))
    found = offers(home, raw(HOSTILE[kind]), good)
    assert len(found) == 1 and f"127.0.0.1:{good}/v1 has good;" in found[0], found


def test_a_redirect_is_not_followed(home, raw, provider):
    serving(provider, "good")
    assert offers(home, raw(says(response("", "302 Found", f"Location: {provider.url}/models\r\n")))) == []
    assert provider.listings == []


def test_silent_and_slow_servers_cost_a_moment(home, raw, figure):
    def drips(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            connection.sendall(b" ")
            time.sleep(0.01)

    def seconds(ports):
        began = time.monotonic()
        assert offers(home, *ports) == []
        return time.monotonic() - began

    nothing = seconds([0])
    slow = seconds([raw(drips), raw(HOSTILE["silence"]), raw(drips), raw(HOSTILE["silence"]), raw(HOSTILE["silence"])])
    figure(f"local models: {nothing * 1000:.0f} ms with none to ask, {slow * 1000:.0f} ms with five that do not answer")
    assert slow - nothing < 0.6 * SLACK


@pytest.mark.parametrize("ports", [",,,", "x,y", "-1,70000,99999999999", "0", "," * 5_000, "1,2,3,4,5,6,7,8,9"])
def test_a_list_of_ports_that_makes_no_sense_finds_none(home, ports):
    status, out, err = reprise(home, "models", REPRISE_LOCAL_PORTS=ports)
    assert status == 0 and "offline" in out and "to use it" not in err, err
