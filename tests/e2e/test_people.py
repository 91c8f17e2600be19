"""A server for several people: access tokens of an OIDC issuer, and API tokens. Who is identified, and who is rejected."""
import concurrent.futures
import contextlib
import http.client
import json
import stat
import subprocess
import time

import pytest
from support.client import raw_exchange
from support.issuer import Issuer, Key, assemble, shared_secret
from support.people import OPERATOR, api_token, as_user, token_file, users
from support.server import BINARY
from support.timing import SLACK, SOON


@pytest.fixture
def issuer():
    scripted = Issuer()
    yield scripted
    scripted.close()


@pytest.fixture
def people(make_server, make_home, issuer):
    """A server that accepts the issuer's tokens and the operator's token."""
    home = make_home()
    server = make_server(home=home, config=issuer.config(), arguments=["--token-file", token_file(home)], token=OPERATOR)
    return server


def refused(server, token, code="invalid_token"):
    error = as_user(server, token).get("/chats").error(401, code)
    assert token[:40] not in json.dumps(error)
    return error["message"]


# --- access tokens ----------------------------------------------------------------------------------------------------------------------

def test_tokens_of_each_algorithm_let_their_user_in(people, issuer):
    for key in issuer.keys:
        as_user(people, issuer.token(key)).get("/chats").expect(200)
    assert issuer.fetched == 1


@pytest.mark.parametrize("change, words", [
    ({"iss": "https://evil.example"}, "another issuer"), ({"iss": None}, "another issuer"), ({"aud": "other"}, "another audience"),
    ({"aud": ["other", "more"]}, "another audience"), ({"aud": None}, "another audience"), ({"exp": int(time.time()) - 100}, "has expired"),
    ({"exp": None}, "does not say when"), ({"exp": "soon"}, "no time"), ({"nbf": int(time.time()) + 10_000}, "not count yet"),
    ({"sub": None}, "\"sub\""), ({"sub": ""}, "\"sub\""), ({"sub": "a\nb"}, "\"sub\""), ({"sub": "x" * 300}, "\"sub\""), ({"org": None}, "\"org\""),
    ({"org": ["acme"]}, "\"org\""), ({"typ": "ID"}, "not an access token"), ({"typ": "Refresh"}, "not an access token"),
    ({"token_use": "id"}, "not an access token"), ({"nonce": "n-1"}, "not an access token"), ({"at_hash": "x"}, "not an access token"),
    ({"azp": "reprise"}, "not an access token"), ({"client_id": "reprise"}, "not an access token")])
def test_what_a_token_says_must_fit(people, issuer, change, words):
    assert words in refused(people, issuer.token(**change))


def test_audience_in_a_list_and_clocks_that_differ_a_little(people, issuer):
    now = int(time.time())
    for change in ({"aud": ["x", "reprise"]}, {"exp": now - 5}, {"nbf": now + 10}, {"exp": now + 0.5}):
        as_user(people, issuer.token(**change)).get("/chats").expect(200)


def test_access_tokens_of_issuers_that_say_so_in_a_claim(people, issuer):
    for change in ({"typ": "Bearer", "azp": "reprise", "nonce": "n-1"}, {"token_use": "access", "client_id": "reprise"}, {"azp": "reprise", "scope": "chats"},
                   {"azp": "another"}):
        as_user(people, issuer.token(header={"typ": "JWT"}, **change)).get("/chats").expect(200)


@pytest.mark.limit(90)
@pytest.mark.parametrize("what", ["events", "chat feed", "answer", "door", "upload"])
def test_streams_end_with_their_access_token(people, issuer, what):
    """New requests may use the token some seconds longer, because clocks differ; requests begun before end with it."""
    left = min(4 * SLACK, 20)  # the server waits at most 30 s for a body
    begun = int(time.time())
    token = issuer.token(exp=begun + left)
    client = as_user(people, token)
    headers = {"Authorization": f"Bearer {token}"}
    if what == "upload":
        client.post("/chats", {"id": "c"}).expect(201)
    else:  # the run waits for a person, so its stream does not end by itself
        stream = client.start("c", "ask: now?", on_disconnect="continue")
        stream.until("input_required")
    connection = http.client.HTTPConnection("127.0.0.1", people.port, timeout=left + 30)
    if what == "events":
        connection.request("GET", "/chats/c/interactions/int_001/events", headers={**headers, "Accept": "text/event-stream"})
    elif what == "chat feed":
        connection.request("GET", "/events", headers=headers)
    elif what == "answer":
        connection.request("POST", "/chats/d/interactions", json.dumps({"user_message": "ask: when?", "stream": False}),
                           {**headers, "Content-Type": "application/json"})
    elif what == "door":
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": "reprise", "stream": True, "messages": [{"role": "user", "content": "ask: when?"}]}),
                           {**headers, "Content-Type": "application/json"})
    else:
        connection.putrequest("POST", "/chats/c/files")
        for name, value in {**headers, "Content-Type": "text/plain", "Content-Length": "1000"}.items():
            connection.putheader(name, value)
        connection.endheaders(b"some of it")
    with contextlib.suppress(ConnectionError, http.client.HTTPException):
        response = connection.getresponse()
        if what == "upload":
            assert response.status == 401 and json.load(response)["error"]["code"] == "invalid_token"
        while response.read(1):
            pass
    assert 0 <= time.time() - begun - left < 5 * SLACK, "not before the token expires, and soon afterwards"


def test_alg_none_and_shared_secrets_are_rejected(people, issuer):
    """The classic forgeries: no signature, and the issuer's public key used as a shared secret."""
    claims = issuer.claims()
    rsa, curve = issuer.keys[0], issuer.keys[1]
    forged = [assemble({"alg": name, "typ": "JWT"}, claims, lambda message: b"") for name in ("none", "None", "NONE", "nOnE")]
    forged += [assemble({"alg": name, "kid": rsa.kid}, claims, lambda message: b"x") for name in ("none", "HS256")]
    for secret in (rsa.pem(), json.dumps(rsa.jwk()).encode(), rsa.jwk()["n"].encode(), b"", curve.pem()):
        for algorithm in ("HS256", "HS384", "HS512"):
            forged.append(assemble({"alg": algorithm, "kid": rsa.kid}, claims, shared_secret(secret)))
        for algorithm, key in (("RS256", rsa), ("ES256", curve)):
            forged.append(assemble({"alg": algorithm, "kid": key.kid}, claims, shared_secret(secret)))
    for token in forged:
        refused(people, token)


def test_a_key_signs_by_its_own_algorithm_only_and_tokens_cannot_bring_keys(people, issuer):
    mine = Key("RS256", "mine")
    rsa, curve, edwards = issuer.keys
    refused(people, issuer.token(mine))
    refused(people, issuer.token(mine, header={"kid": rsa.kid}))
    refused(people, issuer.token(mine, header={"kid": rsa.kid, "jwk": mine.jwk()}))
    refused(people, issuer.token(mine, header={"kid": rsa.kid, "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/"}))
    for key, other in ((rsa, curve), (curve, rsa), (edwards, curve), (rsa, edwards)):
        refused(people, issuer.token(key, header={"alg": other.algorithm}))
        refused(people, issuer.token(key, header={"kid": other.kid}))
        refused(people, issuer.token(key, header={"alg": other.algorithm, "kid": other.kid}))
    refused(people, issuer.token(rsa, header={"alg": "RS512"}))
    refused(people, issuer.token(rsa, header={"crit": ["exp"]}))
    refused(people, issuer.token(Key("RS256", "short", bits=1024)))


def test_garbage_and_huge_tokens_cost_nothing(people, issuer):
    good = issuer.token()
    head, body, signature = good.split(".")
    before = people.memory_kb()
    for token in ("x", "..", "a.b.c", "." + good, good + ".", good + ".x", good + "=", good[:-3], head + "." + body + ".", f"{head}..{signature}",
                  f"{body}.{head}.{signature}", "A" * 12_000 + ".B.C", head + "." + "e" * 12_000 + "." + signature, "%00"):
        refused(people, token)
    huge = raw_exchange(people.port, b"GET /chats HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n\r\n" % (people.port, b"a.b." + b"c" * 200_000))
    assert huge.startswith(b"HTTP/1.1 431") or huge.startswith(b"HTTP/1.1 401"), huge[:100]
    deep = assemble({"alg": "RS256", "kid": "rsa-1"}, {"a": json.loads("[" * 60 + "]" * 60)}, lambda message: b"x")
    refused(people, deep)
    assert people.memory_kb() - before < 16 * 1024
    as_user(people, good).get("/chats").expect(200)


def test_the_body_of_an_unauthenticated_request_is_never_read(people):
    """A megabyte is announced and not sent, and still there is a response."""
    head = (f"POST /chats/x/interactions HTTP/1.1\r\nHost: 127.0.0.1:{people.port}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n"
            "Authorization: Bearer a.b.c\r\n\r\n")
    answer = raw_exchange(people.port, head.encode())
    assert answer.startswith(b"HTTP/1.1 401"), answer[:200]
    assert b"WWW-Authenticate: Bearer" in answer and b"Connection: close" in answer


# --- the issuer's keys ------------------------------------------------------------------------------------------------------------------

def test_a_rotated_key_is_accepted_at_its_first_use(make_server, issuer):
    server = make_server(config=issuer.config())
    old = issuer.token()
    as_user(server, old).get("/chats").expect(200)
    issuer.keys = [Key("RS256", "rsa-2")]
    deadline = time.monotonic() + 15 * SLACK
    # The keys are not fetched again at once; then the new key is known.
    while (status := as_user(server, issuer.token()).get("/chats").status) != 200:
        assert status == 401 and time.monotonic() < deadline
    assert issuer.fetched == 2
    assert "not one of its issuer" in refused(server, issuer.token(Key("RS256", "rsa-1"), sub="somebody"))


def test_a_hundred_unknown_keys_are_a_few_questions_at_most(people, issuer):
    as_user(people, issuer.token()).get("/chats").expect(200)
    key = Key("EdDSA", "x")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda i: as_user(people, issuer.token(key, header={"kid": f"unknown-{i}"})).get("/chats").status, range(100)))
    assert set(answers) == {401}
    assert issuer.fetched <= 3


def test_while_the_issuer_is_down_known_keys_work_and_others_get_503(make_server, issuer):
    issuer.down = True
    server = make_server(config=issuer.config())
    error = as_user(server, issuer.token()).get("/chats").error(503, "issuer_unreachable")
    assert error["retryable"]
    issuer.down = False
    deadline = time.monotonic() + 15 * SLACK
    while as_user(server, issuer.token()).get("/chats").status != 200:
        assert time.monotonic() < deadline
    issuer.down = True
    as_user(server, issuer.token(sub="another")).get("/chats").expect(200)
    api = api_token(server.home)
    as_user(server, api["token"]).get("/chats").expect(200)


def test_a_silent_issuer_delays_only_requests_with_unknown_keys(people, issuer, figure):
    """One request waits for the keys, while a hundred others, by known people and rejected ones, are answered."""
    known = api_token(people.home)["token"]
    as_user(people, known).get("/chats").expect(200)
    issuer.talks.clear()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: as_user(people, issuer.token()).get("/chats"))
        assert issuer.asked.wait(SOON)
        worst = 0
        for _ in range(50):
            started = time.monotonic()
            as_user(people, known).get("/chats").expect(200)
            refused(people, "a.b.c")
            as_user(people, None).get("/healthz").expect(200)
            worst = max(worst, time.monotonic() - started)
        assert not waiting.done()
        issuer.talks.set()
        waiting.result(SOON).expect(200)
    figure(f"people: three requests while the issuer is silent, worst of 50: {worst * 1000:.0f} ms")
    assert worst < 1 * SLACK


def test_a_stop_does_not_wait_for_the_issuer(make_server, issuer):
    server = make_server(config=issuer.config())
    issuer.talks.clear()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: raw_exchange(server.port, f"GET /chats HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {issuer.token()}\r\n\r\n".encode()))
        assert issuer.asked.wait(SOON)
        assert server.stop() < 3 * SLACK
        issuer.talks.set()
        waiting.result(SOON)


# --- API tokens -------------------------------------------------------------------------------------------------------------------------

@pytest.fixture
def scripts(make_server):
    """A server that accepts API tokens only."""
    return make_server(config={"auth": {"type": "tokens"}})


def test_a_token_is_shown_once_kept_as_digests_and_counts_at_once(scripts):
    home = scripts.home
    made = api_token(home, "alice", "--org", "acme", "--name", "backup of mine")
    token = made["token"]
    assert token.startswith("reprise_") and made["org"] == "acme" and made["last_used_at"] is None
    file = home.config / "reprise" / "tokens.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    as_user(scripts, token).get("/chats").expect(200)
    assert not home.find_text(token) and not home.find_text(token[8:])
    listed = users(home, "list").stdout
    assert made["id"] in listed and "acme/alice" in listed and "backup of mine" in listed and token not in listed
    scripts.stop()
    used = json.loads(users(home, "list", "--json").stdout)["tokens"][0]
    assert used["last_used_at"] is not None
    assert token not in scripts.log() and token[8:] not in scripts.log()


def test_a_revoked_token_is_refused_by_the_running_server_at_once(scripts):
    first, second = api_token(scripts.home), api_token(scripts.home)
    for made in (first, second):
        as_user(scripts, made["token"]).get("/chats").expect(200)
    assert first["id"] in users(scripts.home, "revoke", first["id"]).stdout
    assert "revoked" in refused(scripts, first["token"])
    as_user(scripts, second["token"]).get("/chats").expect(200)
    assert "there is no token" in users(scripts.home, "revoke", first["id"], status=1).stderr


def test_other_tokens_are_refused(scripts):
    api_token(scripts.home)
    for token in ("reprise_" + "A" * 43, "reprise_", "x.y.z", OPERATOR):
        refused(scripts, token)
    scripts.client.get("/chats").error(401, "unauthenticated")
    as_user(scripts, None).get("/metrics").error(401, "unauthenticated")
    for open_to_all in ("/healthz", "/readyz", "/"):
        as_user(scripts, None).get(open_to_all).expect(200)
    for method, path in (("POST", "/healthz"), ("GET", "/healthz/"), ("GET", "/healthz?x=1"), ("GET", "/assets"), ("DELETE", "/")):
        assert as_user(scripts, None).request(method, path).status == 401, (method, path)


def test_a_token_logs_a_browser_in_until_it_is_revoked(scripts, browse):
    made = api_token(scripts.home, "alice", "--expires-days", "2")
    as_user(scripts, None).post("/login", {"token": "reprise_nobody"}).error(401, "unauthenticated")
    age = int(as_user(scripts, None).post("/login", {"token": made["token"]}).expect(204).headers["Set-Cookie"].split("Max-Age=")[1].split(";")[0])
    assert 2 * 86400 - 60 < age <= 2 * 86400
    page = browse(scripts)
    page.type("token", "reprise_nobody")
    page.press("log-in")
    page.until_text("login", "does not accept that token")
    page.type("token", made["token"], clear=True)
    page.press("log-in")
    page.one("composer")
    users(scripts.home, "revoke", made["id"])
    page.until_text("login", "was revoked")


def test_the_operators_token_is_as_it_was(people, issuer):
    people.client.get("/chats").expect(200)
    people.client.get("/metrics").expect(200)
    answer = as_user(people, None).post("/login", {"token": OPERATOR}).expect(204)
    halves = {"Cookie": answer.headers["Set-Cookie"].split(";")[0], "Reprise-Page-Key": answer.headers["Reprise-Page-Key"]}
    as_user(people, None).get("/metrics", headers=halves).expect(200)


def test_another_address_than_loopback_needs_people_or_a_token(make_server):
    make_server(config={"auth": {"type": "tokens"}, "public_hosts": ["chat.example"]}, arguments=["--host", "0.0.0.0"])


@pytest.mark.parametrize("auth, words", [
    ({"type": "basic"}, "auth.type"), ({"type": "oidc", "issuer": "http://issuer.example", "audience": "x"}, "must be a URL with https"),
    ({"type": "oidc", "issuer": "https://issuer.example"}, "auth.audience"), ({"type": "tokens", "issuer": "https://a"}, "auth.issuer")])
def test_a_configuration_that_is_wrong_is_named(make_home, auth, words):
    home = make_home()
    file = home.path / "server.json"
    file.write_text(json.dumps({"auth": auth}))
    done = subprocess.run([str(BINARY), "serve", "--port", "0", "--config", str(file), "--data-dir", str(home.data)], env=home.environment(), cwd=home.path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10 * SLACK, check=False)
    assert done.returncode == 2 and words in done.stderr, done.stderr


# --- doctor -----------------------------------------------------------------------------------------------------------------------------

def doctor(home, config, status):
    (home.path / "doctor.json").write_text(json.dumps({"model": "offline", **config}))
    done = subprocess.run([str(BINARY), "doctor", "--json", "--config", "doctor.json", "--data-dir", home.data], env=home.environment(), cwd=home.path,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30 * SLACK, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return {each["check"]: (each["verdict"], each["message"]) for each in json.loads(done.stdout)["checks"]}


def test_doctor_looks_whether_anybody_could_come_in(people, issuer):
    home = people.home
    people.stop()
    found = doctor(home, issuer.config(), 0)
    assert found["issuer"] == ("ok", f"{issuer.config()['auth']['issuer']}, {len(issuer.keys)} keys") and found["API tokens"] == ("ok", "0 that count")
    tokens_only = {"auth": {"type": "tokens"}, "workspace_mode": "shared"}
    found = doctor(home, tokens_only, 0)
    assert found["API tokens"][0] == "warn" and "reprise users token add" in found["API tokens"][1] and "issuer" not in found
    assert found["workspace"][0] == "warn" or "shared" in json.dumps(found)
    api_token(home)
    assert doctor(home, tokens_only, 0)["API tokens"] == ("ok", "1 that count")
    (home.config / "reprise" / "tokens.json").chmod(0o666)
    assert doctor(home, tokens_only, 1)["API tokens"][0] == "fail"
    (home.config / "reprise" / "tokens.json").chmod(0o600)
    issuer.close()
    assert doctor(home, issuer.config(), 1)["issuer"][0] == "fail"
    assert "issuer" not in doctor(home, {}, 0) and "API tokens" not in doctor(home, {}, 0)
