"""Several people on servers that keep their chats in one PostgreSQL database: the same as with folders, on any server, with row-level security in addition."""
import concurrent.futures
import hashlib
import json
import pathlib
import re
import secrets
import subprocess

import pytest
import test_tenants
from support import postgres as pg
from support.cluster import join
from support.people import OPERATOR, api_token, as_user, token_file, users
from support.server import BINARY
from support.timing import SLACK, eventually
# These tests run with a database here, because they use this file's fixture `server`.
from test_tenants import (CANARY, CONFIG, alice, person,  # noqa: F401
                          test_a_chat_of_the_same_name_is_another_chat, test_a_grant_for_always_is_ones_own,
                          test_an_org_admin_sees_use_and_not_content, test_each_operation_with_anothers_ids_is_404,
                          test_lists_show_nothing_of_another, test_the_feed_tells_of_ones_own_chats_alone,
                          test_users_see_no_figures_of_the_whole_server, test_who_answered_is_on_record, waiting)

pytestmark = pytest.mark.skipif(pg.programs() is None, reason="PostgreSQL is NOT INSTALLED (scripts/deps test): nothing is tested against it")

TAKEN_UP = 20 * SLACK  # seconds within which the runs of a dead server are taken up


@pytest.fixture
def url(postgres):
    return postgres.new_database(owner="app")


@pytest.fixture
def make_instance(make_server, make_home, url):
    """Starts servers with the same keys and tokens, each with its own data folder."""
    homes = []

    def make(**more):
        home = make_home()
        join(home, homes, url)
        return make_server(home=home, config={**CONFIG, "store": {"type": "postgres", "url": url}, **more},
                           arguments=["--token-file", token_file(home)], token=OPERATOR)

    return make


@pytest.fixture
def server(make_instance):
    return make_instance()


def at(server, token):
    return as_user(server, token["token"])


def tenant_of(postgres, url, user, org="acme"):
    return postgres.query(postgres.as_superuser(url), f"select tenant from reprise.tenants where org = '{org}' and name = '{user}'")


def many_rows(postgres, url, count):
    """Writes tokens of user-0, user-1, ... into the database, because the program would have to be started a hundred times for them."""
    tokens = ["reprise_" + secrets.token_urlsafe(32) for _ in range(count)]
    sha256 = lambda text: hashlib.sha256(text.encode()).hexdigest()  # noqa: E731
    rows = ",".join(f"('token_{number:012x}', '', 'acme', 'user-{number}', 'user', 'sha256:{sha256(token)}', "
                    f"'sha256:{sha256(sha256('reprise cookie' + chr(10) + token))}', now())" for number, token in enumerate(tokens))
    postgres.query(url, f"insert into reprise.api_tokens(id, name, org, user_name, role, digest, cookie_digest, created_at) values {rows}")
    return tokens


def test_any_server_serves_any_user(make_instance):
    one, two = make_instance(), make_instance()
    token = api_token(one.home, "alice")
    at(one, token).turn("notes", f"calculate 1+1\n{CANARY}")
    assert len(at(two, token).history("notes")["interactions"]) == 1
    stream, approval = waiting(at(one, token), "asks")
    assert [each["approval_id"] for each in at(two, token).get("/approvals").json["approvals"]] == [approval]
    at(two, token).approve("asks", "int_001", approval, scope="always").expect(200)
    stream.finish()
    assert stream.one("approved")["answered_by"] == "alice"
    at(two, token).turn("again", f"echo {CANARY}")  # a grant for always holds at the other server
    assert at(one, token).get("/usage").json["tokens"] == at(two, token).get("/usage").json["tokens"] > 0
    assert [line["seq"] for line in at(two, token).get("/audit").expect(200, "audit").json["entries"]] == list(range(1, 8))
    assert {entry["user"] for entry in two.client.get("/users").expect(200, "users").json["users"]} == {"alice"}


@pytest.mark.limit(120)
def test_runs_of_a_server_that_died_are_taken_up_for_their_users(make_instance):
    """The other server has not seen these users and opens them when it must."""
    one, two = make_instance(), make_instance()
    tokens = {user: api_token(one.home, user) for user in ("alice", "bob")}
    approvals = {}
    for user, token in tokens.items():
        stream, approvals[user] = waiting(at(one, token), f"of-{user}")
        stream.close()
    one.kill()
    eventually(lambda: b"reprise_waiting_approvals 2" in two.client.get("/metrics").body, "both runs wait at the other server", TAKEN_UP)
    for user, token in tokens.items():
        client = at(two, token)
        assert [each["chat_id"] for each in client.get("/approvals").json["approvals"]] == [f"of-{user}"]
        client.approve(f"of-{user}", "int_001", approvals[user]).expect(200)
        attached = client.attach(f"of-{user}", "int_001")
        attached.finish()
        assert attached.one("approved")["answered_by"] == user


def test_a_revoked_token_is_refused_at_every_server(make_instance):
    one, two = make_instance(), make_instance()
    made = api_token(one.home, "alice")
    listening = test_tenants.Feed(at(two, made))
    listening.until("open")
    at(one, made).get("/chats").expect(200)
    users(one.home, "revoke", made["id"])
    for server in (one, two):
        eventually(lambda: at(server, made).get("/chats").status == 401, "the token counts no more", 5 * SLACK)  # noqa: B023
    with test_tenants.contextlib.suppress(ConnectionError, test_tenants.http.client.HTTPException):
        while listening.next():
            pass
    listed = json.loads(users(one.home, "list", "--json").stdout)["tokens"]
    assert listed == []
    assert users(one.home, "revoke", "token_000000000000", status=1)


def test_row_level_security_is_on_all_that_tenants_have(postgres, server, url):
    """This holds whichever migration made the table."""
    every = postgres.query(url, "select count(*) from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relnamespace = 'reprise'::regnamespace "
                                "and c.relkind = 'r' and a.attname = 'tenant' and not a.attisdropped")
    locked = postgres.query(url, "select count(*) from pg_class c join pg_policy p on p.polrelid = c.oid and p.polname = 'tenant' "
                                 "where c.relnamespace = 'reprise'::regnamespace and c.relrowsecurity and c.relforcerowsecurity")
    assert every == locked and int(every) >= 13


def test_a_statement_of_the_wrong_tenant_sees_nothing(postgres, server, alice, url):  # noqa: F811
    person(server, "bob").turn("notes", "calculate 2+2")
    tenants = {user: tenant_of(postgres, url, user) for user in ("alice", "bob")}
    assert len(set(tenants.values())) == 2 and "" not in tenants.values()

    def ask(tenant, sql):
        return postgres.query(url, f"begin; set local reprise.tenant = '{tenant}'; {sql}; commit").splitlines()

    tables = postgres.query(postgres.as_superuser(url), "select relname from pg_policy p join pg_class c on c.oid = p.polrelid").splitlines()
    seen = set()
    for table in tables:
        count = f"select count(*) from reprise.{table} where tenant = '{tenants['alice']}'"
        there = postgres.query(postgres.as_superuser(url), count)
        assert ask(tenants["alice"], count) == ask("*", count) == [there]
        for wrong in (tenants["bob"], "", "nobody"):
            assert ask(wrong, count) == ["0"], (table, wrong)
            assert ask(wrong, f"with d as (delete from reprise.{table} where tenant = '{tenants['alice']}' returning 1) select count(*) from d") == ["0"]
        assert postgres.query(url, count) == "0"  # a statement that sets no tenant
        seen.update([table] if there != "0" else [])
    assert seen >= {"chats", "interactions", "runs", "journal", "queued", "questions", "files", "folder_files", "trash", "grants", "audit", "day_usage"}
    with pytest.raises(AssertionError, match="row-level security"):
        ask(tenants["bob"], f"insert into reprise.chats(tenant, id) values ('{tenants['alice']}', 'planted')")


def test_a_row_of_one_tenant_is_not_opened_for_another(postgres, make_instance, url):
    """An administrator of the database copies records of one user to another."""
    server = make_instance()
    clients = {user: person(server, user) for user in ("alice", "bob")}
    for client in clients.values():
        client.turn("notes", f"calculate 1+1\n{CANARY}")
        stream, approval = waiting(client, "granted", f"echo {CANARY}")
        client.approve("granted", "int_001", approval, scope="always").expect(200)
        stream.finish()
    file = clients["alice"].post("/chats/notes/files?name=a.txt", CANARY, headers={"Content-Type": "text/plain"}).expect(201).json["id"]
    alice_, bob_ = (tenant_of(postgres, url, user) for user in ("alice", "bob"))
    admin = postgres.as_superuser(url)
    for table, columns in (("interactions", "record = o.record, digest = o.digest"), ("chats", "index_record = o.index_record")):
        key = "t.chat = o.chat and t.number = o.number" if table == "interactions" else "t.id = o.id"
        postgres.query(admin, f"update reprise.{table} t set {columns} from reprise.{table} o where {key} and t.tenant = '{bob_}' and o.tenant = '{alice_}'")
    postgres.query(admin, f"insert into reprise.files select '{bob_}', chat, id, record from reprise.files where tenant = '{alice_}'")
    postgres.query(admin, f"delete from reprise.grants where tenant = '{bob_}'; insert into reprise.grants select '{bob_}', id, record from reprise.grants "
                          f"where tenant = '{alice_}'")
    server.stop()
    server = make_instance()
    bob = person(server, "bob")
    bob.get("/chats/notes").error(422, "integrity_swap")
    bob.get("/chats/notes/interactions/int_001").error(422, "integrity_swap")
    bob.get(f"/chats/notes/files/{file}").error(422, "integrity_swap")
    assert bob.get("/grants").error(422)["code"].startswith("integrity_")
    stream, approval = waiting(bob, "asks", f"echo {CANARY}")  # the copied grants have no effect
    bob.approve("asks", "int_001", approval, approved=False).expect(200)
    stream.finish()
    assert len(person(server, "alice").history("notes")["interactions"]) == 1


@pytest.mark.limit(180)
def test_anothers_ids_are_404_at_another_server_too(make_instance, server, alice):  # noqa: F811
    """This server runs nothing for Alice; all her data is in the database."""
    test_tenants.test_each_operation_with_anothers_ids_is_404(make_instance(), alice)


def test_the_database_holds_no_word_of_anybody(postgres, server, alice, url):  # noqa: F811
    assert CANARY not in postgres.dump(postgres.as_superuser(url))
    assert alice.ids["file_id"] in postgres.dump(postgres.as_superuser(url))
    assert not list(server.home.data.glob(".tenants")) and not list(server.home.data.glob("audit*"))


@pytest.mark.limit(180)
def test_a_hundred_users_at_two_servers(make_instance, postgres, url):
    """All users work at once, each on both servers. No user waits for another or finds anything of another."""
    servers = [make_instance(), make_instance()]
    tokens = many_rows(postgres, url, 100)

    def turns(number):
        for server in servers:
            as_user(server, tokens[number]).turn("notes", f"calculate {number}+0")
        for server in servers:
            entries = as_user(server, tokens[number]).history("notes")["interactions"]
            assert [entry["user_message"] for entry in entries] == [f"calculate {number}+0"] * 2, number

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(turns, range(len(tokens))))
    assert len(servers[0].client.get("/users").json["users"]) == 100
    chats = postgres.query(postgres.as_superuser(url), "select count(*), count(distinct tenant) from reprise.chats")
    assert chats == "100|100"


def test_the_operators_audit_log_is_in_the_database_and_is_checked(make_instance, postgres, url):
    server = make_instance()
    server.client.turn("own", "calculate 1+1")

    def audit():
        return subprocess.run([str(BINARY), "audit", "--config", server.home.path / "server.json"], env=server.home.environment(), cwd=server.home.path,
                              capture_output=True, text=True, check=False)

    assert audit().returncode == 0 and "calculator" in audit().stdout
    postgres.query(postgres.as_superuser(url), "update reprise.audit set line = replace(line, 'own', 'not')")
    assert audit().returncode == 1 and "audit.jsonl: auth" in audit().stderr


@pytest.mark.parametrize("change, kind", [("update reprise.audit set line = replace(line, 'calculator', 'calculated') where tenant = '{}'", "auth"),
                                          ("delete from reprise.audit where tenant = '{}' and seq = 1", "missing")])
def test_audit_rows_of_every_user_are_verified(make_instance, postgres, url, change, kind):
    server = make_instance()
    person(server, "alice").turn("own", "calculate 1+1")
    person(server, "alice").turn("own", "calculate 2+2")

    def verify():
        done = subprocess.run([str(BINARY), "verify", "--json", "--config", server.home.path / "server.json"], env=server.home.environment(),
                              cwd=server.home.path, capture_output=True, text=True, check=False)
        return done.returncode, json.loads(done.stdout)["problems"]

    def shown():
        pages = [person(server, "alice").get(f"/audit?limit=1000&after={after}").expect(200).json for after in (0, 1)]
        return [[problem["kind"] for problem in page["problems"]] for page in pages]

    assert verify() == (0, []) and shown() == [[], []]
    postgres.query(postgres.as_superuser(url), change.format(tenant_of(postgres, url, "alice")))
    assert shown()[0][0] == kind and (kind == "auth") == bool(shown()[1])
    status, problems = verify()
    assert status == 1 and {(each["file"], each["kind"]) for each in problems} >= {("acme/alice/audit.jsonl", kind)}, problems


def test_a_key_of_an_org_that_is_gone_is_an_error_and_not_a_new_key(make_instance, postgres, url):
    server = make_instance()
    person(server, "alice").turn("own", "calculate 1+1")
    server.stop()
    admin = postgres.as_superuser(url)
    postgres.query(admin, "create table public.kept as select * from reprise.org_keys; delete from reprise.org_keys")
    again = make_instance()
    again.check_files = False
    person(again, "alice").get("/chats").error(422, "integrity_missing")
    assert postgres.query(admin, "select count(*) from reprise.org_keys") == "0"
    postgres.query(admin, "insert into reprise.org_keys select * from public.kept")
    person(again, "alice").history("own")


def test_a_deleted_org_is_gone_with_its_key(make_instance, postgres, url):
    server = make_instance()
    home = server.home
    for user, org in (("alice", "acme"), ("carol", "other")):
        person(server, user, org).turn("notes", f"calculate 1+1\n{CANARY}")
    assert "stop them first" in test_tenants.org_delete(home, "acme", "--yes").stderr
    server.stop()
    admin = postgres.as_superuser(url)
    postgres.query(admin, "create table public.copy_i as select * from reprise.interactions; create table public.copy_c as select * from reprise.chats")
    deleted = test_tenants.org_delete(home, "acme", "--yes")
    assert deleted.returncode == 0, deleted.stderr
    assert json.loads(deleted.stdout) == {"org": "acme", "users": 1, "tokens": 1}
    assert postgres.query(admin, "select count(*), count(distinct tenant) from reprise.interactions") == "1|1"
    assert postgres.query(admin, "select org from reprise.org_keys") == postgres.query(admin, "select org from reprise.tenants") == "other"
    again = make_instance()
    alice = person(again, "alice")
    assert alice.get("/chats").expect(200).json["chats"] == []
    postgres.query(admin, "insert into reprise.interactions select c.* from public.copy_i c join reprise.tenants t on t.tenant = c.tenant and t.org = 'acme'; "
                          "insert into reprise.chats select c.* from public.copy_c c join reprise.tenants t on t.tenant = c.tenant and t.org = 'acme'")
    assert alice.get("/chats/notes/interactions/int_001").error(422)["code"].startswith("integrity_")
    person(again, "carol", "other").history("notes")


def test_what_servers_tell_each_other_is_of_one_user(make_instance):
    """Two users have chats of the same name, which run on one server and are followed on the other."""
    one, two = make_instance(), make_instance()
    tokens = {user: api_token(one.home, user) for user in ("alice", "bob")}
    feeds = {user: test_tenants.Feed(at(two, token), "notes") for user, token in tokens.items()}
    for feed in feeds.values():
        feed.until("open")
    runs = {user: waiting(at(one, token), "notes", f"echo {CANARY} of {user}") for user, token in tokens.items()}
    followed = {user: at(two, token).attach("notes", "int_001") for user, token in tokens.items()}
    for user, token in tokens.items():
        pending = at(two, token).get("/approvals").json["approvals"]
        assert [each["approval_id"] for each in pending] == [runs[user][1]]
        followed[user].until("approval_required")
    at(two, tokens["alice"]).approve("notes", "int_001", runs["alice"][1]).expect(200)
    followed["alice"].finish()
    runs["alice"][0].finish()
    at(one, tokens["alice"]).post("/chats", {"id": "only-of-alice"}).expect(201)
    at(one, tokens["bob"]).post("/chats", {"id": "end-mark"}).expect(201)
    while "end-mark" not in json.dumps(feeds["bob"].next().data):
        pass
    told = json.dumps([frame.data for frame in feeds["bob"].frames])
    assert "only-of-alice" not in told and "of alice" not in told
    assert at(one, tokens["bob"]).interaction("notes", "int_001")["status"] == "WAITING_APPROVAL"
    at(one, tokens["bob"]).approve("notes", "int_001", runs["bob"][1], approved=False).expect(200)
    followed["bob"].finish()
    runs["bob"][0].finish()
    assert "of alice" not in json.dumps([event.data for event in followed["bob"].events])
    assert "of alice" in json.dumps([event.data for event in followed["alice"].events])
    for feed in feeds.values():
        feed.close()


def test_the_tables_of_the_first_version_are_brought_up_to_date(make_home, postgres, url):
    """The single user's data stays theirs, and every table gets row-level security."""
    source = (pathlib.Path(__file__).parents[2] / "src" / "remote" / "postgres" / "schema.cc").read_text()
    first = re.search(r'kVersion1 = R"\((.*?)\)";', source, re.S).group(1)
    postgres.query(url, "create schema reprise; create table reprise.schema_version(version int primary key, applied_at timestamptz not null default now()); "
                        + first)
    postgres.query(url, "insert into reprise.chats(tenant, id) values ('', 'mine'), ('somebody', 'theirs')")
    home = make_home()
    (home.path / "db.json").write_text(json.dumps({"store": {"type": "postgres", "url": url}}))

    def db(command):
        return subprocess.run([str(BINARY), "db", command, "--json", "--config", home.path / "db.json"], env=home.environment(), cwd=home.path,
                              capture_output=True, text=True, check=False)

    assert json.loads(db("status").stdout)["ready"] is False
    assert db("migrate").returncode == 0
    assert json.loads(db("status").stdout)["ready"] is True
    test_row_level_security_is_on_all_that_tenants_have(postgres, None, url)
    assert postgres.query(url, "select id from reprise.chats") == "mine"


def test_no_key_is_removed_that_rows_need(make_instance):
    server = make_instance()
    token = api_token(server.home, "alice")
    at(server, token).turn("notes", "calculate 1+1")
    server.stop()
    before = server.home.keys.read_text()
    for arguments in (["keys", "rewrap", "--remove-old"], ["keys", "rotate", "--rewrap"]):
        done = subprocess.run([str(BINARY), *arguments, "--config", server.home.path / "server.json", "--data-dir", server.home.data],
                              env=server.home.environment(), cwd=server.home.path, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and "keep the old keys" in done.stderr, done.stderr
        assert server.home.keys.read_text() == before


def test_a_server_that_cannot_open_the_keys_of_the_orgs_does_not_start(make_instance, make_home, url):
    """Users' data is sealed with the key of their org, and that key with the operator's. So the key is needed even if the operator has no chats."""
    server = make_instance()
    person(server, "alice").turn("notes", "calculate 1+1")
    kid = json.loads(server.home.keys.read_text())["keys"][0]["kid"]
    home = make_home()
    config = home.path / "other.json"
    config.write_text(json.dumps({"store": {"type": "postgres", "url": url}}))
    for more, why in (([], f"sealed with {kid}, which is not in {home.keys}"), (["--plain"], "sealed: leave --plain out")):
        done = subprocess.run([str(BINARY), "serve", "--port", "0", "--config", str(config), *more], env=home.environment(), cwd=home.path,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20 * SLACK, check=False)
        assert done.returncode == 1 and why in done.stderr, done.stderr
    assert not home.keys.exists()
