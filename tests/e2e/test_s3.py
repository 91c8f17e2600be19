"""Files of chats in a bucket, with OpenStack Swift as a real S3 server; also when it is down, slow or wrong."""
import concurrent.futures
import hashlib
import json
import re
import subprocess

import pytest
from support import schemas
from support.people import OPERATOR, api_token, as_user, token_file
from support.provider import text
from support.s3 import ACCESS_KEY, SECRET_KEY, Between, Bucket, Swift, is_installed
from support.server import BINARY, open_sealed
from support.timing import SLACK, SOON, eventually

pytestmark = [pytest.mark.limit(120), pytest.mark.skipif(not is_installed(), reason="python3-swift is not installed (scripts/deps s3)")]

NEEDLE = "the-vault-opens-at-nine"
KEY = re.compile(r"org/-/user/[0-9a-f]{16}/thread/([A-Za-z0-9_-]+)/(file_[0-9a-f]{32})\.[0-9a-f]{16}")


@pytest.fixture(scope="module")
def swift():
    server = Swift()
    yield server
    server.close()


@pytest.fixture
def bucket(swift, request):
    """A bucket with a unique name for each test."""
    return Bucket(swift, "t" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:20])


@pytest.fixture
def between(swift):
    proxy = Between(swift)
    yield proxy
    proxy.close()


@pytest.fixture
def server(make_server, provider, bucket):
    server = make_server(provider, config=bucket.settings())
    yield server
    assert SECRET_KEY not in server.log()
    assert not server.home.find_text(SECRET_KEY)


def upload(client, content, name="notes.txt", kind="text/plain", chat="c"):
    body = content.encode() if isinstance(content, str) else content
    return client.request("POST", f"/chats/{chat}/files?name={name}", body, headers={"Content-Type": kind}, limit=SOON * 4)


def stored(client, content, **more):
    return upload(client, content, **more).expect(201, "chat_file").json


def download(client, file, chat="c"):
    return client.get(f"/chats/{chat}/files/{file['id']}")


def files(client, chat="c"):
    return client.get(f"/chats/{chat}/files").expect(200, "chat_files").json["files"]


def key_of(bucket, file, chat="c"):
    found = [key for key in bucket.keys() if KEY.fullmatch(key).groups() == (chat, file["id"])]
    assert len(found) == 1, found
    return found[0]


def record(home, file, chat="c"):
    return home.data / chat / "files" / f"{file['id']}.json"


def reprise(server, *arguments, status=0, **environment):
    command, *rest = arguments
    done = subprocess.run([str(BINARY), *command.split(), *map(str, rest), "--config", str(server.home.path / "server.json"), "--data-dir",
                           str(server.home.data)], env=server.home.environment(**environment), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SOON * 4, check=False)
    assert done.returncode == status, (done.stdout[-2000:], done.stderr[-2000:])
    assert SECRET_KEY not in done.stdout + done.stderr
    return done


def again(make_server, server, **more):
    """Restarts the server with the same folders."""
    server.close()
    return make_server(home=server.home, **more)


# --- what lies where --------------------------------------------------------------------------------------------------

def test_what_is_given_comes_back_and_lies_in_the_bucket_sealed(server, bucket):
    client = server.client
    contents = [NEEDLE.encode(), b"", bytes(range(256)) * 40, bytes(range(256)) * 16 * 1024]
    given = [stored(client, content, name=f"{NEEDLE}-{i}.txt") for i, content in enumerate(contents)]
    for file, content in zip(given, contents):
        assert download(client, file).expect(200).body == content
    assert client.get(f"/chats/c/files/{given[2]['id']}", headers={"Range": "bytes=100-199"}).expect(206).body == contents[2][100:200]
    assert {f["id"] for f in files(client)} == {f["id"] for f in given}
    keys = bucket.keys()
    assert len(keys) == len(given) and all(KEY.fullmatch(key) for key in keys)
    for file, content in zip(given, contents):
        key = key_of(bucket, file)
        sealed = bucket.get(key)
        for word in (NEEDLE.encode(), file["digest"][7:].encode(), SECRET_KEY.encode()):
            assert word not in sealed
        copy = server.home.path / "object.json"
        copy.write_bytes(sealed)
        inside = open_sealed(copy, server.home.keys)
        schemas.check("file_record", inside)
        assert inside["digest"] == "sha256:" + hashlib.sha256(content).hexdigest()
        reference = open_sealed(record(server.home, file), server.home.keys)
        assert reference["object"]["key"] == key and "content" not in reference
        assert record(server.home, file).stat().st_size < 3000
    assert not server.home.find_text(NEEDLE)
    assert "all in order" in reprise(server, "verify").stdout


def test_the_model_and_its_tools_read_what_is_in_the_bucket(server, provider, bucket):
    file = stored(server.client, NEEDLE)
    provider.plan(text("seen"))
    server.client.start("c", "what is in there?", attachments=[file["id"]]).finish()
    assert NEEDLE in [m["content"] for m in provider.requests[-1].conversation if m["role"] == "user"][-1]
    assert all(NEEDLE.encode() not in bucket.get(key) for key in bucket.keys())


def test_a_deleted_file_leaves_no_object(server, bucket):
    first, second = stored(server.client, "one"), stored(server.client, "two")
    server.client.request("DELETE", f"/chats/c/files/{first['id']}").expect(200)
    assert [KEY.fullmatch(key).group(2) for key in bucket.keys()] == [second["id"]]
    download(server.client, first).error(404, "not_found")


def test_a_restart_finds_everything(make_server, server, bucket):
    file = stored(server.client, NEEDLE)
    client = again(make_server, server, config=bucket.settings()).client
    assert files(client) == [file]
    assert download(client, file).expect(200).body == NEEDLE.encode()


def test_chats_take_their_files_to_the_trash_and_back(server, bucket):
    client = server.client
    file = stored(client, NEEDLE)
    client.request("DELETE", "/chats/c").expect(200)
    assert len(bucket.keys()) == 1
    entry = client.get("/trash").json["entries"][0]["id"]
    client.post(f"/trash/{entry}/restore").expect(200)
    assert download(client, file).expect(200).body == NEEDLE.encode()


def test_a_fork_and_an_import_have_objects_of_their_own(server, provider, bucket, tmp_path):
    client = server.client
    file = stored(client, NEEDLE)
    provider.plan(text("fine"))
    client.start("c", "hello").finish()
    client.post("/chats/c/fork", {"interaction_id": "int_001", "chat_id": "copy"}).expect(201)
    assert download(client, file, chat="copy").expect(200).body == NEEDLE.encode()
    reprise(server, "export", "c", "--output", tmp_path / "out")
    assert NEEDLE in (tmp_path / "out/c/files" / f"{file['id']}.json").read_text()
    reprise(server, "import", tmp_path / "out", "--as", "back")  # through the server
    assert download(client, file, chat="back").expect(200).body == NEEDLE.encode()
    server.stop()
    reprise(server, "import", tmp_path / "out", "--as", "alone")  # without a server
    reprise(server, "fork", "alone", "--as", "alone-too")
    chats = sorted(KEY.fullmatch(key).group(1) for key in bucket.keys())
    assert chats == ["alone", "alone-too", "back", "c", "copy"]
    assert "all in order" in reprise(server, "verify").stdout
    reprise(server, "decrypt", "--all", "--output", tmp_path / "plain")
    assert NEEDLE in (tmp_path / "plain/alone-too/files" / f"{file['id']}.json").read_text()


def test_files_move_to_the_bucket_and_back(make_server, bucket, provider):
    server = make_server(provider)
    file, trashed = stored(server.client, NEEDLE), stored(server.client, "two", chat="gone")
    server.client.request("DELETE", "/chats/gone").expect(200)
    server.close()
    before = record(server.home, file).read_bytes()
    server = make_server(provider, home=server.home, config=bucket.settings())
    assert download(server.client, file).expect(200).body == NEEDLE.encode(), "the file is read from the data folder"
    assert "stop it first" in reprise(server, "files push", status=1).stderr
    server.close()
    assert "2 files moved to the bucket" in reprise(server, "files push").stdout
    assert bucket.get(key_of(bucket, file)) == before, "the same record, byte for byte"
    assert json.loads(reprise(server, "files push", "--json").stdout)["already_there"] == 2
    server = make_server(provider, home=server.home, config=bucket.settings())
    assert download(server.client, file).expect(200).body == NEEDLE.encode()
    server.close()
    assert "2 files moved to the data folder" in reprise(server, "files pull").stdout
    assert bucket.keys() == [] and record(server.home, file).read_bytes() == before
    server = make_server(provider, home=server.home)
    entry = server.client.get("/trash").json["entries"][0]["id"]
    server.client.post(f"/trash/{entry}/restore").expect(200)
    assert download(server.client, trashed, chat="gone").expect(200).body == b"two"


def test_a_new_key_wraps_the_objects_too(make_server, server, bucket):
    file = stored(server.client, NEEDLE)
    before = bucket.get(key_of(bucket, file))
    server.close()
    reprise(server, "keys rotate", "--rewrap", "--remove-old")
    assert bucket.get(key_of(bucket, file)) != before
    client = make_server(home=server.home, config=bucket.settings()).client
    assert download(client, file).expect(200).body == NEEDLE.encode()


# --- what goes wrong --------------------------------------------------------------------------------------------------

def test_with_a_wrong_secret_chats_go_on_and_everybody_says_so(make_server, bucket, provider):
    server = make_server(provider, config=bucket.settings(secret_key="wrong-secret"))
    error = upload(server.client, "x").error(503, "bucket_refused")
    assert "SignatureDoesNotMatch" in error["message"] and "files.secret_key" in error["message"]
    provider.plan(text("fine"))
    server.client.start("c", "hello").finish()
    ready = server.client.get("/readyz").expect(200, "health").json
    assert ready["status"] == "ready" and [f["code"] for f in ready["failing"]] == ["bucket_refused"]
    doctor = reprise(server, "doctor", status=1).stdout
    assert re.search(r"fail +bucket: .*SignatureDoesNotMatch", doctor)
    for words in (doctor, server.log()):
        assert "wrong-secret" not in words and ACCESS_KEY not in words
    assert bucket.keys() == []


def test_what_is_away_is_named_and_chats_go_on_until_it_is_back(server, provider, bucket, swift):
    client = server.client
    file, other = stored(client, NEEDLE), stored(client, "other")
    assert client.get("/readyz").expect(200, "health").json == {"status": "ready"}
    swift.stop()
    try:
        error = upload(client, "x").error(503, "bucket_unreachable")
        assert error["retryable"]
        provider.plan(text("fine"))
        client.start("c", "hello").finish()
        download(client, file).error(503, "bucket_unreachable")
        client.post("/chats/c/interactions", {"user_message": "and this?", "attachments": [file["id"]]}).error(503, "bucket_unreachable")
        assert {f["id"] for f in files(client)} == {file["id"], other["id"]}
        ready = eventually(lambda: client.get("/readyz").expect(200, "health").json.get("failing"), "/readyz names it")
        assert ready[0]["code"] == "bucket_unreachable" and "bucket" in ready[0]["message"]
        client.request("DELETE", f"/chats/c/files/{other['id']}").expect(200)
        assert "bucket" in reprise(server, "verify", status=1).stderr
        assert re.search(r"fail +bucket: ", reprise(server, "doctor", status=1).stdout)
    finally:
        swift.start()
    assert stored(client, "after")
    assert download(client, file).expect(200).body == NEEDLE.encode()
    eventually(lambda: "failing" not in client.get("/readyz").json, "/readyz forgets it")
    assert "all in order" in reprise(server, "verify").stdout
    assert key_of(bucket, other), "the object is left for a sweep"


def test_an_object_that_is_gone_is_missing_by_name(server, provider, bucket, tmp_path):
    client = server.client
    file, other = stored(client, NEEDLE), stored(client, "other")
    bucket.delete(key_of(bucket, file))
    name = f"c/files/{file['id']}.json"
    error = download(client, file).error(422, "integrity_missing")
    assert name in error["message"] and error["details"] == {"file": name}
    client.post("/chats/c/interactions", {"user_message": "x", "attachments": [file["id"]]}).error(422, "integrity_missing")
    provider.plan(text("fine"))
    client.start("c", "hello", attachments=[other["id"]]).finish()
    client.post("/chats/c/fork", {"interaction_id": "int_001", "chat_id": "copy"}).expect(201)
    assert [f["id"] for f in files(client, "copy")] == [other["id"]]
    report = json.loads(reprise(server, "verify", "--json", status=1).stdout)
    assert [(p["file"], p["kind"]) for p in report["problems"]] == [(name, "missing")]
    done = reprise(server, "export", "c", "--output", tmp_path / "out", status=1)
    assert name in done.stderr
    assert [f.name for f in (tmp_path / "out/c/files").iterdir()] == [f"{other['id']}.json"]


def test_an_object_that_was_changed_is_noticed(server, bucket):
    file, other = stored(server.client, NEEDLE), stored(server.client, "other")
    key, whole = key_of(bucket, file), bucket.get(key_of(bucket, file))
    letter = b"B" if whole[-40:-39] == b"A" else b"A"
    for content, kind in ((whole[:-40] + letter + whole[-39:], "auth"), (whole[:100], "auth"), (bucket.get(key_of(bucket, other)), "swap")):
        bucket.put(key, content)
        download(server.client, file).error(422, f"integrity_{kind}")
    bucket.put(key, whole)
    assert download(server.client, file).expect(200).body == NEEDLE.encode()


def once(action, usual):
    """A hook that runs `action` for the first PUT and `usual` otherwise."""
    done = []

    def hook(method, *more):
        if method != "PUT" or done:
            return usual(method, *more)
        done.append(method)
        return action(method, *more)
    return hook


def test_a_put_whose_answer_is_lost_is_one_file(make_server, bucket, between):
    server = make_server(config=bucket.settings(endpoint=between.endpoint))
    between.keep = once(lambda method: True, lambda method: False)
    file = stored(server.client, NEEDLE)
    assert between.seen.count("PUT") == 2
    assert len(bucket.keys()) == 1 and files(server.client) == [file]
    assert download(server.client, file).expect(200).body == NEEDLE.encode()


def test_a_body_unlike_its_hash_is_refused_and_sent_again(make_server, bucket, between):
    server = make_server(config=bucket.settings(endpoint=between.endpoint))
    between.spoil = once(lambda method, body: body[:-9] + b"x" + body[-8:], lambda method, body: body)
    file = stored(server.client, NEEDLE * 5000)
    assert between.seen.count("PUT") == 2
    assert len(bucket.keys()) == 1
    assert download(server.client, file).expect(200).body == (NEEDLE * 5000).encode()
    between.spoil = lambda method, body: body[:-9] + b"x" + body[-8:] if method == "PUT" else body
    upload(server.client, "x").error(503, "bucket_unreachable")
    assert len(bucket.keys()) == 1


def test_a_bucket_that_says_nothing_holds_up_neither_chats_nor_the_stop(make_server, bucket, between, provider):
    server = make_server(provider, config=bucket.settings(endpoint=between.endpoint))
    between.spoil = lambda method, body: None if method == "PUT" else body
    with concurrent.futures.ThreadPoolExecutor() as pool:
        given = [pool.submit(upload, server.client, "x") for _ in range(6)]
        eventually(lambda: between.seen.count("PUT") >= 4, "all threads for files wait for the bucket")
        provider.plan(text("fine"))
        server.client.start("other", "hello").finish()
        assert server.stop() < 3 * SLACK
        for each in given:
            assert each.exception() or each.result().status in (409, 503)


def test_a_sweep_takes_what_no_file_names(make_server, server, bucket, between):
    client = server.client
    kept, deleted = stored(client, NEEDLE), stored(client, "x", chat="gone")
    client.request("DELETE", "/chats/gone").expect(200)
    prefix = key_of(bucket, kept).split("c/file_")[0]
    orphan = f"{prefix}c/file_{'0' * 32}.{'1' * 16}"
    foreign = f"org/-/user/{'0' * 16}/thread/c/file_{'0' * 32}.{'1' * 16}"
    for key in (orphan, foreign, prefix + "by-hand.txt"):
        bucket.put(key, b"x")
    assert json.loads(reprise(server, "files sweep", "--json").stdout) == {"objects": 4, "young": 1, "taken": [], "dry_run": False}
    # The bucket now reports objects older than an hour.
    between.change = lambda body: re.sub(rb"<LastModified>\d{4}", b"<LastModified>2001", body)
    server.close()
    later = make_server(home=server.home, config=bucket.settings(endpoint=between.endpoint))
    said = json.loads(reprise(later, "files sweep", "--dry-run", "--json").stdout)
    assert [o["key"] for o in said["taken"]] == [orphan] and said["dry_run"] and orphan in bucket.keys()
    assert "1 deleted" in reprise(later, "files sweep").stdout
    assert orphan not in bucket.keys() and len(bucket.keys()) == 4
    assert download(later.client, kept).expect(200).body == NEEDLE.encode()
    # Chats in the trash keep their objects; once it is emptied, these are swept.
    entry = next(e for e in (later.home.data / ".trash").iterdir() if e.name.startswith("gone."))
    subprocess.run(["rm", "-r", str(entry)], check=True)
    assert [KEY.fullmatch(o["key"]).group(2) for o in json.loads(reprise(later, "files sweep", "--json").stdout)["taken"]] == [deleted["id"]]


def test_a_bucket_asks_for_keys_and_for_sealed_chats(server, bucket, make_home):
    assert "files.secret_key" in refused(make_home(), bucket.settings(secret_key="${NO_SUCH_VARIABLE}"))
    assert "sealed" in refused(make_home(), bucket.settings(), "--plain")
    bare = bucket.settings()
    del bare["files"]["bucket"]
    assert '"files" must have bucket' in refused(make_home(), bare)
    assert "endpoint" in refused(make_home(), bucket.settings(endpoint="ftp://somewhere"))
    assert '"type": "s3"' in refused(make_home(), {"files": {"bucket": "chats"}})
    # Commands that only read need no bucket.
    stored(server.client, NEEDLE)
    (server.home.path / "server.json").write_text(json.dumps(bucket.settings(secret_key="${NO_SUCH_VARIABLE}")))
    assert "c" in reprise(server, "ls").stdout
    assert "names none that can be used" in reprise(server, "verify", status=1).stderr


def refused(home, settings, *arguments):
    config = home.path / "bad.json"
    config.write_text(json.dumps(settings))
    done = subprocess.run([str(BINARY), "serve", "--port", "0", "--data-dir", str(home.data), "--workspace", str(home.workspace), "--config", str(config),
                           *arguments], env=home.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON, check=False)
    assert done.returncode != 0 and done.stdout == ""
    return done.stderr


# --- several people -------------------------------------------------------------------------------------------------------------------

def test_files_of_users_are_under_their_names_and_each_sweep_meets_its_own(make_server, make_home, bucket, between):
    home = make_home()
    server = make_server(home=home, config={**bucket.settings(), "auth": {"type": "tokens"}, "model": "offline"},
                         arguments=["--token-file", token_file(home)], token=OPERATOR)
    people = {(user, org): as_user(server, api_token(home, user, "--org", org)["token"]) for user, org in (("ann@x.org", "acme"), ("bob", "acme"), ("bob", "b/c"))}
    given = {}
    for who, client in people.items():
        client.turn("c", "calculate 1+1")
        given[who] = stored(client, f"{NEEDLE} of {who}")
    server.client.turn("c", "calculate 1+1")
    own = stored(server.client, "of the operator")
    folders = {key.split("/thread/")[0] for key in bucket.keys()}
    assert [re.sub(r"[0-9a-f]{16}$", "#", folder) for folder in sorted(folders)] == ["org/-/user/#", "org/acme/user/ann.40x.2Eorg.#", "org/acme/user/bob.#",
                                                                                     "org/b.2Fc/user/bob.#"]
    # Someone with access to the bucket replaces one user's object by another's.
    keys = {who: next(key for key in bucket.keys() if given[who]["id"] in key) for who in given}
    mine, other = ("ann@x.org", "acme"), ("bob", "acme")
    kept = bucket.get(keys[other])
    bucket.put(keys[other], bucket.get(keys[mine]))
    answer = download(people[other], given[other])
    assert NEEDLE.encode() not in answer.body and answer.error(422)["code"].startswith("integrity_")
    bucket.put(keys[other], kept)
    for who, client in people.items():
        assert download(client, given[who]).expect(200).body == f"{NEEDLE} of {who}".encode()
    # A user's orphans are removed only by that user's own sweep.
    before = set(bucket.keys())
    orphans = {folder: f"{folder}/thread/c/file_{'0' * 32}.{'1' * 16}" for folder in folders}
    for key in orphans.values():
        bucket.put(key, b"x")
    server.stop()
    between.change = lambda body: re.sub(rb"<LastModified>\d{4}", b"<LastModified>2001", body)
    (home.path / "sweep.json").write_text(json.dumps(bucket.settings(endpoint=between.endpoint)))
    for folder, prefix in ((home.data, "org/-/"), (home.data / ".tenants" / "acme" / "bob", "org/acme/user/bob.")):
        done = subprocess.run([str(BINARY), "files", "sweep", "--json", "--config", str(home.path / "sweep.json"), "--data-dir", str(folder)],
                              env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON * 4, check=False)
        assert done.returncode == 0, done.stderr
        assert [each["key"] for each in json.loads(done.stdout)["taken"]] == [key for place, key in orphans.items() if place.startswith(prefix)]
    assert set(bucket.keys()) - before == {key for key in orphans.values() if not key.startswith(("org/-/", "org/acme/user/bob."))}
    assert before < set(bucket.keys()) and any(own["id"] in key for key in before)


def test_each_finished_interaction_is_exported_to_another_bucket(make_server, provider, swift, bucket):
    dataset = Bucket(swift, bucket.name + "d")
    server = make_server(provider, config=bucket.settings() | {"export": {"auto": f"s3://{dataset.name}/chats/of-today", "format": "atif"}})
    provider.plan(text("It is here."))
    server.client.turn("notes", f"Where? {SECRET_KEY}")
    eventually(lambda: dataset.keys() == ["chats/of-today/notes-int_001.json"], "it is written")
    steps = json.loads(dataset.get("chats/of-today/notes-int_001.json"))["steps"]
    assert [step["message"] for step in steps] == ["Where? " + "x" * len(SECRET_KEY), "It is here."] and bucket.keys() == []
    assert "reprise_export_written_total 1" in server.client.get("/metrics").expect(200).body.decode()


def test_a_bucket_to_export_to_needs_a_server(make_home):
    home = make_home()
    (home.path / "server.json").write_text(json.dumps({"export": {"auto": "s3://dataset/x"}}))
    done = subprocess.run([str(BINARY), "serve", "--config", str(home.path / "server.json"), "--data-dir", str(home.data), "--port", "0"], env=home.environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON * 4, check=False)
    assert done.returncode != 0 and "no S3 server is configured" in done.stderr, done.stderr
