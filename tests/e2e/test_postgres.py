"""Servers that keep their chats in one PostgreSQL database."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading

import pytest
from support import postgres as pg
from support.provider import Gate, call, text, tools
from support.s3 import free_ports
from support.server import BINARY
from support.timing import SLACK, eventually

pytestmark = pytest.mark.skipif(pg.programs() is None, reason="PostgreSQL is NOT INSTALLED (scripts/deps test): nothing is tested against it")

LEASE = 15  # seconds within which a dead instance is detected and its runs are taken up


def reprise(home, url, *arguments):
    config = home.path / "db.json"
    config.write_text(json.dumps({"store": {"type": "postgres", "url": url}}))
    return subprocess.run([str(BINARY), *arguments, "--config", str(config)], env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=20 * SLACK, check=False)


def raw(stream):
    return [(e.name, e.seq, e.data) for e in stream.events if e.seq is not None]


def test_the_tables_are_made_and_told_of(make_home, make_server, provider, url):
    home = make_home()
    status = reprise(home, url, "db", "status")
    assert status.returncode == 1 and "`reprise db init` makes them" in status.stderr
    assert "`reprise db init`" in reprise(home, url, "db", "migrate").stderr
    with pytest.raises(AssertionError, match="reprise db init"):
        make_server(provider, home=home, config={"store": {"type": "postgres", "url": url}})
    for _ in range(2):
        assert "up to date" in reprise(home, url, "db", "init").stdout
    assert reprise(home, url, "db", "migrate").returncode == 0
    told = json.loads(reprise(home, url, "db", "status", "--json").stdout)
    assert told["ready"] and told["schema"] == told["known"] and told["instances"] == []
    files = subprocess.run([str(BINARY), "db", "status"], env=home.environment(), cwd=home.path, capture_output=True, text=True, check=False)
    assert files.returncode == 2 and '"store"' in files.stderr


def test_a_newer_schema_is_left_alone(make_home, postgres, url):
    home = make_home()
    reprise(home, url, "db", "init")
    postgres.query(url, "insert into reprise.schema_version(version) values (999)")
    for command in ("status", "migrate"):
        done = reprise(home, url, "db", command)
        assert done.returncode == 1 and "a newer program has made it" in done.stderr


def test_turns_edits_and_a_restart(make_instance, make_server, provider, postgres, url):
    server = make_instance()
    provider.plan(text("one canary-91"), text("two"), text("two, edited"))
    server.client.turn("c", "first canary-92")
    server.client.turn("c", "second")
    server.client.edit("c", "int_002", "second, edited").finish()
    before = server.client.history("c", "all")
    assert [i["id"] for i in before["interactions"]] == ["int_001", "int_002", "int_003"]
    assert [i["superseded"] for i in before["interactions"]] == [False, True, False]
    server.stop()
    again = make_server(provider, home=server.home, config={"store": {"type": "postgres", "url": url}})
    assert again.client.history("c", "all") == before
    provider.plan(text("three"))
    again.client.turn("c", "third")
    assert [m["content"] for m in provider.requests[-1].conversation] == ["first canary-92", "one canary-91", "second, edited", "two, edited", "third"]
    dump = postgres.dump(url)
    assert "canary" not in dump and "canary".encode().hex() not in dump
    assert not list(server.home.data.glob("c")), "the data folder has no files of the chat"


def test_one_run_per_chat_and_the_same_events_everywhere(make_instance, provider):
    a, b = make_instance(), make_instance()
    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    stream = a.client.start("c", "hello", on_disconnect="continue")
    stream.until("text_delta")
    busy = b.client.post("/chats/c/interactions", {"user_message": "me too"}).error(409, "busy")
    assert busy["details"] == {"interaction_id": "int_001"}
    elsewhere = b.client.attach("c", "int_001", after=0, gapless=True)
    elsewhere.until("text_delta")
    assert b.client.interaction("c", "int_001")["status"] == "RUNNING"
    gate.release()
    stream.finish()
    elsewhere.finish()
    assert raw(elsewhere) == raw(stream)
    provider.plan(text("next"))
    b.client.turn("c", "and now")
    assert a.client.history("c")["interactions"] == b.client.history("c")["interactions"]


def test_a_run_is_cancelled_anywhere(make_instance, provider):
    a, b = make_instance(), make_instance()
    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    stream = a.client.start("c", "hello", on_disconnect="continue")
    stream.until("text_delta")
    b.client.cancel("c", "int_001").expect(200)
    stream.finish("CANCELLED")
    gate.release()


def test_an_approval_is_answered_anywhere_once(make_instance, provider):
    a, b = make_instance(), make_instance()
    provider.plan(tools(call("write_file", {"path": "out.txt", "content": "text"})), text("written"))
    stream = a.client.start("c", "do it", on_disconnect="continue")
    asked = stream.until("approval_required")
    waiting = b.client.get("/approvals").expect(200).json["approvals"]
    assert [w["approval_id"] for w in waiting] == [asked["approval_id"]]
    b.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.finish()
    assert (a.home.workspace / "out.txt").read_text() == "text"
    for server in (a, b):
        server.client.approve("c", "int_001", asked["approval_id"]).error(400, "already_processed")


def test_a_killed_instance_is_taken_over(make_instance, provider):
    a, b = make_instance(), make_instance()
    gate = Gate()
    provider.plan(text("half", gate, " whole"), tools(call("write_file", {"path": "out.txt", "content": "text"})))
    computing = a.client.start("computing", "hello", on_disconnect="continue")
    computing.until("text_delta")
    waiting = a.client.start("waiting", "do it", on_disconnect="continue")
    asked = waiting.until("approval_required")
    elsewhere = b.client.attach("computing", "int_001", after=0, gapless=True)
    elsewhere.until("text_delta")
    a.kill()
    seen = raw(elsewhere)
    eventually(lambda: b.client.interaction("computing", "int_001")["status"] == "FAILED", "it is taken over", limit=LEASE * SLACK)
    assert b.client.interaction("computing", "int_001")["error"]["code"] == "interrupted"
    elsewhere.finish("FAILED")
    assert raw(elsewhere)[:len(seen)] == seen
    provider.plan(text("written"))
    eventually(lambda: b.client.interaction("waiting", "int_001")["status"] == "WAITING_APPROVAL", "it waits again", limit=LEASE * SLACK)
    end = b.client.attach("waiting", "int_001", after=0, gapless=True)
    b.client.approve("waiting", "int_001", asked["approval_id"]).expect(200)
    end.finish()
    assert (a.home.workspace / "out.txt").read_text() == "text"
    gate.release()


def test_a_crash_of_the_database_is_a_pause(make_instance, provider, postgres):
    server = make_instance()
    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    stream = server.client.start("c", "hello", on_disconnect="continue")
    stream.until("text_delta")
    postgres.crash()
    gate.release()
    server.client.post("/chats/d/interactions", {"user_message": "now?"}, limit=20 * SLACK).error(503, "database_unavailable")
    postgres.start()
    stream.finish()
    provider.plan(text("next"))
    server.client.turn("c", "and now")


def test_an_imported_chat_and_a_fork_have_their_files(make_instance, provider, url, tmp_path):
    server = make_instance()
    client = server.client
    provider.plan(text("one"))
    client.turn("c", "first")
    file = client.request("POST", "/chats/c/files?name=a.bin", bytes(range(256)), headers={"Content-Type": "image/png"}).expect(201).json
    assert reprise(server.home, url, "export", "-o", str(tmp_path / "out")).returncode == 0
    brought = reprise(server.home, url, "import", str(tmp_path / "out/c"), "--as", "imported")
    assert brought.returncode == 0, brought.stderr
    client.post("/chats/c/fork", {"interaction_id": "int_001", "chat_id": "copy"}).expect(201)
    for chat in ("imported", "copy"):
        assert client.get(f"/chats/{chat}/files").json["files"] == [file]
        assert client.get(f"/chats/{chat}/files/{file['id']}").body == bytes(range(256))


def test_chats_go_from_a_database_to_a_folder_and_back_with_the_same_bytes(make_instance, make_home, provider, postgres, url, tmp_path):
    server = make_instance()
    provider.plan(text("one"), text("two"), text("two, edited"))
    server.client.turn("c", "first")
    server.client.turn("c", "second")
    server.client.edit("c", "int_002", "second, edited").finish()
    home = server.home

    def documents(name, *where):
        folder = tmp_path / name
        done = subprocess.run([str(BINARY), "export", "-o", str(folder), *where], env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=20 * SLACK, check=False)
        assert done.returncode == 0, done.stderr
        return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}

    def run(*arguments):
        done = subprocess.run([str(BINARY), *map(str, arguments)], env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=20 * SLACK, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    reprise(home, url, "db", "status")  # writes db.json
    exported = documents("first", "--config", str(home.path / "db.json"))
    assert sorted(exported) == ["c/chat.json", "c/interactions/int_001.json", "c/interactions/int_002.json", "c/interactions/int_003.json"]
    assert json.loads(run("verify", "--json", "--config", home.path / "db.json"))["ok"]
    assert "second, edited" in run("show", "c", "--config", home.path / "db.json")
    folder = home.path / "copy"
    run("import", tmp_path / "first", "--data-dir", folder)
    came = documents("second", "--data-dir", str(folder))

    def without_mark(files):
        """The files without the mark of imported interactions, without digests, which differ because of it, without the folder of the chat, and without
        the marks for the next request, which an import drops."""
        return {name: re.sub(rb"(sha256:)[0-9a-f]{64}|,\"workspace\":\"[^\"]*\"|,\"request\":{\"place\":[^{}]*}", rb"\1", text.replace(b'"imported":true,', b"").replace(b',"imported":true', b""))
                for name, text in files.items()}

    assert without_mark(came) == without_mark(exported)
    other = postgres.new_database()
    assert reprise(home, other, "db", "init").returncode == 0
    run("import", tmp_path / "second", "--config", home.path / "db.json", "--data-dir", home.path / "nothing")
    assert documents("third", "--config", str(home.path / "db.json")) == came


def test_a_request_that_is_sent_to_two_servers_begins_once(make_instance, provider):
    servers = [make_instance(), make_instance()]

    def send(server, chat="c"):
        return server.client.stream("POST", f"/chats/{chat}/interactions", {"user_message": "hello"}, headers={"Idempotency-Key": "k"}, gapless=False)

    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    streams = []
    for server in servers:
        streams.append(send(server))
        streams[-1].until("text_delta")
    gate.release()
    for stream in streams:
        stream.finish()
    assert raw(streams[0]) == raw(streams[1])
    for server in servers:
        send(server).finish()
    provider.plan(text("for one"))
    answers = []

    def race(server):
        body = {"user_message": "both", "stream": False}
        answers.append(server.client.post("/chats/race/interactions", body, headers={"Idempotency-Key": "race"}))

    threads = [threading.Thread(target=race, args=(server,)) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers} <= {200, 409} and 200 in [answer.status for answer in answers]
    for chat in ("c", "race"):
        assert [i["id"] for i in servers[0].client.history(chat)["interactions"]] == ["int_001"]


def certificate(folder, name):
    """A key and a self-signed certificate for localhost."""
    key, cert = folder / f"{name}.key", folder / f"{name}.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
    return key, cert


@pytest.mark.limit(90)
def test_over_tls_with_a_password(make_home, make_server, provider):
    """The database must present the trusted certificate, and no message contains the password."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tls"))
    folder.chmod(0o755)
    key, cert = certificate(folder, "server")
    other = certificate(folder, "other")[1]
    if os.geteuid() == 0:
        os.chown(key, pg.NOBODY, pg.NOBODY)
    key.chmod(0o600)
    port, = free_ports(1)
    postgres = pg.Postgres(settings=["listen_addresses=127.0.0.1", f"port={port}", "ssl=on", f"ssl_cert_file={cert}", f"ssl_key_file={key}"], port=port)
    try:
        postgres.new_database(owner="app")
        postgres.query(postgres.url("postgres"), "alter role app password 'pw-of-the-app'")
        rules = postgres.folder / "data/pg_hba.conf"
        rules.write_text("hostssl all app 127.0.0.1/32 scram-sha-256\nhost all app 127.0.0.1/32 reject\n" + rules.read_text())
        postgres.query(postgres.url("postgres"), "select pg_reload_conf()")
        url = f"postgresql://app:pw-of-the-app@localhost:{port}/test1?hostaddr=127.0.0.1&sslmode="
        home = make_home()
        refused = reprise(home, url + f"verify-full&sslrootcert={other}", "db", "init")
        assert refused.returncode != 0 and "certificate" in refused.stderr, refused.stderr
        refused = reprise(home, url + "disable", "db", "init")
        assert refused.returncode != 0 and "pg_hba" in refused.stderr, refused.stderr
        refused = reprise(home, (url + f"verify-full&sslrootcert={cert}").replace("pw-of-the-app", "pw-of-others"), "db", "init")
        assert refused.returncode != 0 and "password" in refused.stderr and "pw-of" not in refused.stderr, refused.stderr
        url += f"verify-full&sslrootcert={cert}"
        made = reprise(home, url, "db", "init")
        assert made.returncode == 0, made.stderr
        server = make_server(provider, home=home, config={"store": {"type": "postgres", "url": url}})
        provider.plan(text("yes"))
        server.client.turn("c", "over TLS?")
        used = postgres.query(postgres.url("postgres"), "select count(*) > 0 and bool_and(ssl) from pg_stat_ssl s join pg_stat_activity a using (pid) "
                                                        "where a.usename = 'app'")
        assert used == "t" and "pw-of" not in server.log()
        server.stop()
    finally:
        postgres.close()
        shutil.rmtree(folder, ignore_errors=True)


OF_THE_WORKSPACE = {"list_files", "read_file", "find_files", "search_files", "write_file", "edit_file", "apply_patch", "delete_file", "run_shell", "run_code", "read_job", "stop_job"}


@pytest.mark.parametrize("mode", [None, "none", "shared", "local"])
def test_tools_of_the_workspace_need_workspace_mode(make_home, make_server, url, mode):
    """Otherwise a run taken up by another server would continue with other files."""
    home = make_home()
    reprise(home, url, "db", "init")
    server = make_server(home=home, config={"store": {"type": "postgres", "url": url}, "model": "offline", "mcpServers": {"local": {"command": "/bin/true"}},
                                            **({"workspace_mode": mode} if mode else {})})
    tools = server.client.get("/tools").expect(200, "tools").json
    there = {tool["name"] for tool in tools["tools"]}
    assert {"calculator", "read_chat_file"} <= there
    if mode in ("shared", "local"):
        assert OF_THE_WORKSPACE <= there and "workspace" in tools
        return
    assert not OF_THE_WORKSPACE & there and "workspace" not in tools
    assert [(each["state"], "workspace_mode" in each["message"]) for each in tools["servers"]] == [("failed", True)]
    assert "no workspace" in server.log()
    stream = server.client.turn("c", "write x.txt: y")
    assert all(event["is_error"] for event in stream.events if event.name == "tool_result")
    assert not list(home.workspace.iterdir())


def serve(home, url, *arguments):
    return reprise(home, url, "serve", "--port", "0", "--data-dir", home.path / "other data", *arguments)


def findings(home, url, *arguments):
    return {each["check"]: each for each in json.loads(reprise(home, url, "doctor", "--json", *arguments).stdout)["checks"]}


def key_id(file):
    return json.loads(file.read_text())["keys"][0]["kid"]


def test_a_server_without_the_key_of_the_chats_does_not_start(make_instance, make_home, provider, postgres, url):
    """As with a data folder: the server makes no key, and writes nothing that the other servers could not open."""
    provider.plan(text("a"))
    first = make_instance()
    first.client.turn("c", "q")
    kid = key_id(first.home.keys)
    none, other = make_home(), make_home()
    assert reprise(other, url, "keys", "init").returncode == 0
    for home in (none, other):
        done = serve(home, url)
        assert done.returncode == 1 and f"sealed with {kid}, which is not in {home.keys}" in done.stderr and "--new-key" in done.stderr, done.stderr
        found = findings(home, url)["key file"]
        assert found["verdict"] == "fail" and kid in found["message"]
    chat = none.path / "chat.json"
    chat.write_text(json.dumps({"chat_id": "b", "interactions": []}))
    refused = reprise(none, url, "import", chat)
    assert refused.returncode == 1 and kid in refused.stderr
    assert not none.keys.exists()
    assert postgres.query(url, "select count(*) from reprise.chats") == "1"
    assert findings(first.home, url)["key file"]["verdict"] == "ok"


def test_chats_whose_key_is_gone_are_given_up_once_for_all_servers(make_instance, make_home, make_server, provider, url):
    provider.plan(text("a"), text("b"))
    first = make_instance()
    first.client.turn("c", "q")
    first.stop()
    home = make_home()
    made = make_server(provider, home, config={"store": {"type": "postgres", "url": url}}, arguments=["--new-key"])
    made.client.turn("d", "q")
    made.stop()
    again = make_server(provider, home, config={"store": {"type": "postgres", "url": url}})
    assert again.client.history("d")["interactions"]


def test_plain_and_sealed_chats_do_not_come_together_in_a_database(make_instance, make_home, make_server, provider, postgres, url):
    provider.plan(text("a"), text("b"))
    sealed = make_instance()
    sealed.client.turn("c", "q")
    done = serve(sealed.home, url, "--plain")
    assert done.returncode == 1 and "the chats in the database are sealed: leave --plain out" in done.stderr, done.stderr
    assert findings(sealed.home, url, "--plain")["key file"]["verdict"] == "fail"
    other = postgres.new_database()
    reprise(sealed.home, other, "db", "init")
    plain = make_server(provider, make_home(), config={"store": {"type": "postgres", "url": other}, "plain": True})
    plain.client.turn("c", "q")
    home = make_home()
    done = serve(home, other)
    assert done.returncode == 1 and "stored unencrypted: give --plain" in done.stderr and not home.keys.exists(), done.stderr


@pytest.mark.parametrize(("url", "why"), [
    ("postgress://u:s3cr3tpw@h/x", "begins neither"), ("postgresql//u:s3cr3tpw@h/x", "begins neither"), ("postgresql://u:s3cr3tpw%zz@h/x", "%"),
    ("postgresql://u:s3cr3tpw/x", "the port is a number"), ("postgresql://u:s3cr3tpw@h/x?nothing=1", "?"), ("postgresql://u:s3cr3tpw@[::1/x", "[")])
@pytest.mark.parametrize("member", ["url", "listen_url"])
def test_an_address_that_cannot_be_used_is_not_shown(make_home, member, url, why):
    home = make_home()
    config = home.path / "wrong.json"
    config.write_text(json.dumps({"store": {"type": "postgres", "url": "postgresql://u@h/x", member: url}}))
    for command, status in ((["serve"], 2), (["doctor"], 1), (["db", "status"], 2)):
        done = subprocess.run([str(BINARY), *command, "--config", str(config)], env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=20 * SLACK, check=False)
        told = done.stdout + done.stderr
        assert done.returncode == status and f"store.{member}" in told and why in told and "s3cr3t" not in told, told


def test_doctor_looks_at_the_database(make_home, postgres, url):
    home = make_home()
    assert "`reprise db init`" in findings(home, url)["database"]["message"]
    away = findings(home, "postgresql://reprise@127.0.0.1:1/x")["database"]
    assert away["verdict"] == "fail" and "cannot be reached" in away["message"]
    reprise(home, url, "db", "init")
    there = findings(home, url)
    assert (there["database"]["verdict"], there["row-level security"]["verdict"]) == ("ok", "warn")
    other = postgres.new_database(owner="app")
    reprise(home, other, "db", "init")
    assert findings(home, other)["row-level security"]["verdict"] == "ok"
    assert "database" not in {each["check"] for each in json.loads(subprocess.run([str(BINARY), "doctor", "--json"], env=home.environment(), cwd=home.path,
                                                                                  capture_output=True, text=True, check=False).stdout)["checks"]}
