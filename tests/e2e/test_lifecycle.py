"""Start, stop, options, resources."""
import json
import os
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.editor import Editor
from support.feed import Feed
from support.provider import Gate, call, text, tools
from support.server import BINARY
from support.timing import SLACK, SOON, eventually, median


def run(home, *arguments, **environment):
    return subprocess.run([str(BINARY), *map(str, arguments)], cwd=home.path, env=home.environment(**environment), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=SOON, check=False, text=True)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_graceful_stop_ends_every_stream_with_its_last_event(make_server, provider, figure, signal_number):
    server = make_server(provider)
    client = server.client
    provider.answer_with(lambda r: tools(call("run_shell", {"command": "true"})) if r.last["content"] == "ask" else text("a", Gate()))
    streams = [client.start(f"silent{n}", "talk") for n in range(32)] + [client.start(f"asking{n}", "ask") for n in range(32)]
    for stream in streams[:32]:
        stream.until("text_delta")
    for stream in streams[32:]:
        stream.until("approval_required")
    seconds = server.stop(signal_number)
    figure(f"stop with 64 live streams ({signal_number.name}): {seconds * 1e3:.0f} ms")
    assert seconds < 2 * SLACK
    for stream in streams[:32]:
        events = stream.finish("CANCELLED")
        assert events[-2].name == "cancelled" and events[-2]["reason"] == "server_stopping"
    for number in range(32):
        assert server.home.checkpoint(f"silent{number}", "int_001")["status"] == "CANCELLED"
    # Runs that wait for a person keep waiting in the next process.
    asked = [stream.one("approval_required") for stream in streams[32:]]
    for stream in streams[32:]:
        assert stream.next() is None and stream.names()[-1] == "approval_required"
    assert len(list(server.home.data.glob("*/interactions/int_001.json"))) == 32
    requests = len(provider.requests)
    again = make_server(provider, server.home).client
    waiting = again.get("/approvals").json["approvals"]
    assert sorted(w["approval_id"] for w in waiting) == sorted(a["approval_id"] for a in asked)
    assert len(provider.requests) == requests
    provider.answer_with(lambda r: text("then not"))
    stream = again.attach("asking7", "int_001", after=0, gapless=True)
    again.approve("asking7", "int_001", asked[7]["approval_id"], False).expect(200)
    stream.finish()


def test_a_client_that_waits_for_the_interaction_learns_of_the_stop(make_server, provider):
    server = make_server(provider)
    provider.plan(tools(call("run_shell", {"command": "true"})))
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(server.client.post, "/chats/c/interactions", {"user_message": "go", "stream": False})
        eventually(lambda: server.client.get("/approvals").json["approvals"], "it waits")
        server.stop()
        answer.result(SOON).error(503, "stopping")


def test_a_stop_ends_running_tools(make_server, provider):
    from support.server import processes
    server = make_server(provider, config={"approval_mode": "approve_all"})
    provider.plan(tools(call("run_shell", {"command": "setsid sleep 4714.5 & sleep 4714.5", "timeout_s": 600})))
    stream = server.client.start("c", "go")
    stream.until("tool_call")
    eventually(lambda: len(processes("sleep\x004714.5")) >= 2, "the tool runs")
    assert server.stop() < 2 * SLACK
    stream.finish("CANCELLED")
    eventually(lambda: not processes("4714.5"), "its processes are gone", 3 * SLACK)


def test_an_idle_server_stops_at_once(offline):
    import socket
    with socket.create_connection(("127.0.0.1", offline.port)):
        offline.client.get("/healthz").expect(200)
        assert offline.stop() < 1 * SLACK


def test_start_time_and_idle_memory(make_server, make_home, figure):
    home = make_home()
    make_server(home=home).stop()
    times = []
    for _ in range(5):
        server = make_server(home=home)
        times.append(server.start_seconds)
        server.client.get("/healthz").expect(200)
        resident, own = server.memory_kb(), server.memory_kb("RssAnon")
        server.stop()
    figure(f"start to the listening line: median {median(times) * 1e3:.0f} ms; idle: {resident / 1024:.1f} MB resident, {own / 1024:.1f} MB of it its own")
    assert median(times) < 0.5 * SLACK
    if SLACK == 1:
        assert own < 4 * 1024  # the rest is the program and its libraries, which are in the page cache
        assert resident < 20 * 1024


def test_two_servers_on_one_folder(make_server, make_home):
    home = make_home()
    first = make_server(home=home)
    second = run(home, "serve", "--port", "0", "--data-dir", home.data, "--workspace", home.workspace)
    assert second.returncode in (1, 2) and second.stdout == ""
    assert re.search(r"another|in use|lock", second.stderr), second.stderr
    first.client.get("/healthz").expect(200)


def test_a_killed_server_leaves_no_stale_lock_and_no_damage(make_server, make_home, provider):
    home = make_home()
    first = make_server(provider, home=home)
    provider.plan(text("a1"), text("half", Gate()))
    first.client.turn("c", "q1")
    stream = first.client.start("c", "q2")
    stream.until("text_delta")
    first.kill()
    stream.close()
    second = make_server(provider, home=home)
    assert second.client.interaction("c", "int_001")["status"] == "COMPLETED"
    provider.plan(text("a3"))
    second.client.turn("c", "q3")
    contents = [m["content"] for m in provider.requests[-1].conversation]
    assert contents[:2] == ["q1", "a1"] and contents[-1] == "q3"


def test_what_was_acknowledged_survives_twenty_kills(make_server, make_home, provider):
    home = make_home()
    provider.answer_with(lambda r: text(f"re: {r.last['content']}"))
    for number in range(1, 21):
        server = make_server(provider, home=home)
        server.client.turn("c", f"q{number}")
        server.kill()
    server = make_server(provider, home=home)
    assert [i["user_message"] for i in server.client.history("c")["interactions"]] == [f"q{n}" for n in range(1, 21)]


def test_a_taken_port_is_a_clear_error(make_server, make_home):
    first = make_server()
    home = make_home()
    second = run(home, "serve", "--port", first.port, "--data-dir", home.data, "--workspace", home.workspace)
    assert second.returncode in (1, 2) and second.stdout == "" and "port" in second.stderr


@pytest.mark.parametrize("config, word", [('{"colour": 1}', "colour"), ('{"tools": {"colour": 1}}', "colour"), ('{"max_rounds": "x"}', "max_rounds"),
                                          ('{"model": "nobody/x"}', "nobody"), ("{", "reprise.json"), ('{"max_rounds": 0}', "max_rounds"),
                                          ('{"approval_mode": "sometimes"}', "approval_mode")])
def test_a_wrong_configuration_is_refused_by_name(make_home, config, word):
    home = make_home()
    file = home.path / "reprise.json"
    file.write_text(config)
    file.chmod(0o600)
    done = run(home, "serve", "--port", "0", "--data-dir", home.data, "--workspace", home.workspace, "--config", file)
    assert done.returncode in (1, 2) and word in done.stderr, done.stderr
    assert not home.data.exists()


def test_comments_and_environment_in_the_configuration(make_server, provider):
    config = f'''// whose "model" comes from outside
    {{ /* a block */ "model": "test/${{MODEL_NAME}}", // "not": "this"
       "providers": {{"test": {{"type": "openai", "base_url": "{provider.url}", "api_key": "${{TEST_API_KEY}}"}}}} }}'''
    server = make_server(provider, config=config, environment={"MODEL_NAME": "from-env"})
    provider.plan(text("x"))
    assert server.client.turn("c", "x").events[0]["model"] == "test/from-env"
    assert provider.requests[0].headers["Authorization"].startswith("Bearer sk-canary-")


def test_flags_beat_environment_beats_file(make_server, provider):
    config = {"model": "test/file"}

    def model_of(**more):
        server = make_server(provider, config=config, **more)
        answer = server.client.get("/models").expect(200, "models").json["default"]
        server.stop()
        return answer

    assert model_of() == "test/file"
    assert model_of(environment={"REPRISE_MODEL": "test/environment"}) == "test/environment"
    assert model_of(environment={"REPRISE_MODEL": "test/environment"}, arguments=["--model", "test/flag"]) == "test/flag"


def test_without_any_configuration_a_key_in_the_environment_chooses_a_provider(make_server, provider):
    server = make_server(environment={"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": provider.url}, arguments=["--model", "openai/anything"])
    provider.plan(text("x"))
    server.client.turn("c", "x")
    assert provider.requests[0].headers["Authorization"] == "Bearer sk-x"


def test_defaults_work_in_any_folder(make_home):
    """With the port alone: data goes to the user's data folder, the workspace is `.`, the model is offline."""
    home = make_home()
    process = subprocess.Popen([str(BINARY), "serve", "--port", "0"], cwd=home.workspace, env=home.environment(), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    try:
        port = int(process.stdout.readline().decode().rsplit(":", 1)[1])
        from support.client import Client
        (home.workspace / "hello.txt").write_text("hi")
        stream = Client(port).turn("c", "list")
        assert "hello.txt" in stream.one("tool_result")["tool_output"]
        assert (home.user / ".local/share/reprise/chats/c/interactions/int_001.json").exists()
        assert not (home.workspace / "chats").exists()
    finally:
        process.terminate()
        assert process.wait(SOON) == 0
        process.stdout.close()


def test_logs_are_structured_and_on_stderr(server, provider):
    provider.plan(text("x"))
    server.client.turn("c", "x")
    server.stop()
    lines = server.log().splitlines()
    assert lines and all(re.match(r"time=\d{4}-\d\d-\d\dT\S+Z level=\w+ msg=\"", line) for line in lines), lines[:3]


def test_descriptors_and_threads_do_not_leak(server, provider):
    client = server.client
    provider.answer_with(lambda _: text("x"))
    for number in range(5):
        client.turn("c", "warm up")

    def counts():
        pid = server.process.pid
        return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))

    before = counts()
    for number in range(50):
        client.turn(f"c{number}", "x")
        client.get("/chats").expect(200)
    eventually(lambda: counts()[0] <= before[0] + 8 and counts()[1] <= before[1] + 8, f"no more than {before} and a few: {counts()}")


@pytest.mark.limit(90)
def test_two_hundred_streams_at_once(server, provider, figure):
    gates = [Gate() for _ in range(200)]
    waiting = iter(gates)
    provider.answer_with(lambda _: text("a", next(waiting), "b"))
    before = server.memory_kb()
    streams = [server.client.start(f"c{n}", "x") for n in range(200)]
    for stream in streams:
        stream.until("text_delta")
    during = server.memory_kb()
    server.client.get("/healthz").expect(200)
    for gate in gates:
        gate.release()
    for stream in streams:
        stream.finish()
    figure(f"200 open streams: {(during - before) / 200:.0f} KB each")


def test_metrics_count(client, provider):
    provider.plan(text("x"))
    client.turn("c", "x")
    body = client.get("/metrics").expect(200).body.decode()
    assert re.search(r"^# TYPE \S+ (counter|gauge)$", body, re.M)
    assert re.search(r"^reprise_\S*completed\S* 1$", body, re.M) or re.search(r'^reprise_\S*\{[^}]*(COMPLETED|completed)[^}]*\} 1$', body, re.M), body


def test_health_and_readiness(client):
    for path in ("/healthz", "/readyz"):
        client.get(path).expect(200, "health")


def test_openapi_describes_what_is_there(client):
    document = client.get("/openapi.json").expect(200).json
    assert document["openapi"].startswith("3.")
    assert {"/chats/{chat_id}/interactions", "/approvals", "/healthz"} <= document["paths"].keys()
    # Every described route exists: it answers neither 404 for the path nor 405.
    for path, operations in document["paths"].items():
        real = path.replace("{chat_id}", "nobody").replace("{interaction_id}", "int_001").replace("{approval_id}", "approval_" + "0" * 32)
        for method in (m for m in operations if m != "parameters"):
            if path == "/events":
                Feed(client).close()  # it never ends
            elif path == "/chats/{chat_id}/editor":
                Editor(client, "nobody").close()  # likewise
            elif method in ("get", "post", "patch", "delete", "put"):
                answer = client.request(method.upper(), real, {} if method in ("post", "patch") else None)
                assert answer.status != 405, (method, path)
                if answer.status == 404:
                    assert "{" in path, (method, path)
                    assert answer.json["error"]["code"] != "no_such_route"


def test_tools_and_models_are_listed(client):
    listed = client.get("/tools").expect(200, "tools").json
    by_name = {t["name"]: t for t in listed["tools"]}
    assert {"echo", "calculator", "current_time", "list_files", "read_file", "search_files", "write_file", "edit_file", "delete_file", "run_shell",
            "http_get"} <= by_name.keys()
    for name in ("write_file", "edit_file", "delete_file", "run_shell", "http_get"):
        assert by_name[name]["requires_approval"] is True
    for name in ("echo", "calculator", "read_file", "list_files"):
        assert by_name[name]["requires_approval"] is False and name in listed["read_only"]
    assert {"write_file", "edit_file", "delete_file", "run_shell"} <= set(listed["read_write"])
    models = client.get("/models").expect(200, "models").json
    assert models["default"] == "test/scripted" and "offline" in [m["name"] for m in models["models"]]
    json.dumps(models)
