"""Several people on one server: no user can see, find, answer or change anything of another on any route, also after restarts."""
import base64
import concurrent.futures
import contextlib
import http.client
import json
import shutil
import subprocess
import time

import pytest
from support.feed import Feed
from support.people import OPERATOR, api_token, as_user, many_tokens, token_file, users
from support.server import BINARY
from support.timing import SLACK, SOON

CANARY = "canary-7d1c"  # in all messages, names and results of Alice
CONFIG = {"auth": {"type": "tokens"}, "tools": {"require_approval": ["echo"]}, "model": "offline"}


def start(make_server, home, **more):
    """A server for several people, with the operator's token."""
    return make_server(home=home, config={**CONFIG, **more}, arguments=["--token-file", token_file(home)], token=OPERATOR)


@pytest.fixture
def home(make_home):
    return make_home()


@pytest.fixture
def server(make_server, home):
    return start(make_server, home)


def person(server, user, org="acme", *more):
    return as_user(server, api_token(server.home, user, "--org", org, *more)["token"])


def waiting(client, chat, message=f"echo {CANARY}"):
    """Starts a run that waits for an approval: (stream, approval id)."""
    stream = client.start(chat, message, on_disconnect="continue")
    return stream, stream.until("approval_required").data["approval_id"]


@pytest.fixture
def alice(server):
    """A client of Alice, who has one of everything that has an id."""
    client = person(server, "alice")
    client.turn("notes", f"calculate 1+1\n{CANARY}")
    client.turn("notes", "calculate 2+2")
    file = client.post(f"/chats/notes/files?name={CANARY}.txt", f"{CANARY} in a file", headers={"Content-Type": "text/plain"}).expect(201).json["id"]
    client.turn("gone", f"{CANARY} is deleted")
    client.request("DELETE", "/chats/gone").expect(200)
    trash = client.get("/trash").expect(200).json["entries"][0]["id"]
    stream, approval = waiting(client, "granted", "echo always")
    client.approve("granted", "int_001", approval, scope="always").expect(200)
    stream.finish()
    grant = client.get("/grants").expect(200).json["grants"][0]["id"]
    stream, approval = waiting(client, "here", "echo in this chat")
    client.approve("here", "int_001", approval, scope="chat").expect(200)
    stream.finish()
    own_grant = client.get("/chats/here/grants").expect(200).json["grants"][0]["id"]
    asks, request = client.start("asks", f"ask: {CANARY}?"), None
    request = asks.until("input_required").data["request_id"]
    writes, approval = waiting(client, "writes", f"echo {CANARY} now")
    queued = client.start("writes", f"echo {CANARY} later", if_running="queue", on_disconnect="continue")
    assert queued.next().name == "queued"
    entry = queued.frames[0]["id"]
    response = client.post("/v1/responses", {"model": "offline", "input": f"{CANARY} from another program"}).expect(200).json["id"]
    client.streams = [asks, writes, queued]
    client.ids = {"chat_id": "notes", "interaction_id": "int_001", "file_id": file, "trash_id": trash, "grant_id": grant, "approval_id": approval,
                  "request_id": request, "queue_id": entry, "job_id": "job_" + "0" * 16, "port": "8080", "own_grant": own_grant, "response_id": response,
                  "conversation_id": "notes", "item_id": "msg_notes_int_001_input"}
    return client


def body_of(path, method, ids):
    """A body that would be valid for the owner."""
    last = path.rsplit("/", 1)[-1]
    return {"approve": {"approval_id": ids["approval_id"], "approved": True}, "respond": {"request_id": ids["request_id"], "response": "yes"},
            "edit": {"new_user_message": "x"}, "replay": {"mode": "recorded"}, "head": {"interaction_id": "int_001"},
            "fork": {"interaction_id": "int_001"}, "tasks": {"tasks": []}, "{approval_id}": {"approved": True}, "{queue_id}": {"user_message": "x"}, "{request_id}": {"done": True},
            "{chat_id}": {"title": "mine now"}, "items": {"items": [{"role": "user", "content": "x"}]}, "editor": {"tools": []}}.get(last, {}) if method in ("post", "put", "patch") else None


def chat_of(path):
    return "writes" if "queue" in path or "approve" in path else "asks" if "respond" in path else "here" if "/grants" in path else "notes"


def operations(server):
    document = server.client.get("/openapi.json").expect(200).json
    for path, item in document["paths"].items():
        for method in ("get", "post", "put", "patch", "delete"):
            if method in item:
                yield path, method


# Operations that create their chat.
CREATING = {("/chats/{chat_id}/interactions", "post"), ("/chats/{chat_id}/files", "post"), ("/chats/{chat_id}/workspace/files", "post"),
            ("/chats/{chat_id}/editor", "get")}
OF_NOBODY = {"/", "/assets/{asset}", "/login", "/healthz", "/readyz", "/openapi.json", "/tools", "/models", "/v1/models/{model}", "/tools/servers/{server}/login",
             "/tools/servers/{server}/logout", "/tools/servers/{server}", "/tools/servers/{server}/test", "/rules/{rule}", "/providers/{name}",
             "/push/devices/{device_id}"}


@pytest.mark.limit(120)
def test_each_operation_with_anothers_ids_is_404(server, alice):
    bob, cousin = person(server, "bob"), person(server, "alice", "other-org")
    before = {chat["id"]: chat for chat in alice.get("/chats").json["chats"]}
    tried = 0
    for path, method in operations(server):
        if "{" not in path or (path, method) in CREATING or path in OF_NOBODY:
            continue
        ids = {**alice.ids, "chat_id": chat_of(path), "request": "0"}
        if path.startswith("/chats/{chat_id}/grants"):
            ids["grant_id"] = ids["own_grant"]
        target = path
        for name, value in ids.items():
            target = target.replace("{" + name + "}", value)
        assert "{" not in target, target
        target += "?path=a.txt" if path.endswith("/blame") else ""
        for other in (bob, cousin):
            answer = other.request(method.upper(), target, body_of(path, method, ids))
            assert answer.status == 404, (method, target, answer.status, answer.body[:300])
            assert CANARY.encode() not in answer.body
            tried += 1
    assert tried >= 2 * 28
    # Nothing of Alice's has changed, and her own token finds the same ids.
    assert {chat["id"]: chat for chat in alice.get("/chats").json["chats"]} == before
    alice.get(f"/chats/notes/files/{alice.ids['file_id']}").expect(200)
    alice.get("/chats/notes/interactions/int_001").expect(200)
    alice.post(f"/approvals/{alice.ids['approval_id']}", {"approved": True}).expect(200)
    alice.respond("asks", "int_001", alice.ids["request_id"], "yes").expect(200)
    alice.post(f"/trash/{alice.ids['trash_id']}/restore").expect(200)


def test_lists_show_nothing_of_another(server, alice):
    bob = person(server, "bob")
    bob.turn("mine", "calculate 40+2")
    for path in ("/chats", "/approvals", "/grants", "/trash", "/audit", f"/search?q={CANARY}", "/search?q=calculate&chat=notes"):
        answer = bob.get(path)
        assert CANARY.encode() not in answer.body and b"notes" not in answer.body and b"writes" not in answer.body, (path, answer.body)
    assert [chat["id"] for chat in bob.get("/chats").json["chats"]] == ["mine"]
    assert {line["chat_id"] for line in bob.get("/audit").json["entries"]} == {"mine"}
    assert bob.get("/approvals").json == {"approvals": [], "inputs": []}
    assert bob.get("/grants").json["grants"] == [] and bob.get("/trash").json["entries"] == []
    assert bob.get(f"/search?q={CANARY}").json["matches"] == []
    assert len(alice.get(f"/search?q={CANARY}").json["matches"]) > 0
    # The operator's own chats are separate, too.
    for path in ("/chats", "/approvals", f"/search?q={CANARY}", "/audit", "/trash", "/grants"):
        assert CANARY.encode() not in server.client.get(path).expect(200).body


def test_a_chat_of_the_same_name_is_another_chat(server, alice):
    bob = person(server, "bob")
    bob.turn("notes", "calculate 5*5")
    bob.post("/chats/notes/files?name=b.txt", "of bob", headers={"Content-Type": "text/plain"}).expect(201)
    own = bob.history("notes")
    assert [entry["user_message"] for entry in own["interactions"]] == ["calculate 5*5"] and CANARY not in json.dumps(own)
    assert len(bob.get("/chats/notes/files").json["files"]) == 1
    bob.request("DELETE", "/chats/notes").expect(200)
    assert len(alice.history("notes")["interactions"]) == 2
    alice.get(f"/chats/notes/files/{alice.ids['file_id']}").expect(200)


def test_the_feed_tells_of_ones_own_chats_alone(server):
    alice, bob = person(server, "alice"), person(server, "bob")
    feed = Feed(bob, "notes")
    feed.until("open")
    alice.turn("notes", f"calculate 1+1\n{CANARY}")
    bob.post("/chats", {"id": "end-mark"}).expect(201)
    while "end-mark" not in json.dumps(feed.next().data):
        pass
    assert [frame.name for frame in feed.frames] == ["open", feed.frames[-1].name]
    feed.close()


def test_a_grant_for_always_is_ones_own(server):
    alice, bob = person(server, "alice"), person(server, "bob")
    stream, approval = waiting(alice, "a", "echo the same")
    alice.approve("a", "int_001", approval, scope="always").expect(200)
    stream.finish()
    alice.turn("b", "echo the same")
    stream, approval = waiting(bob, "a", "echo the same")
    bob.approve("a", "int_001", approval, approved=False).expect(200)
    stream.finish()


def test_who_answered_is_on_record(server):
    alice = person(server, "alice")
    for chat, approved in (("yes", True), ("no", False)):
        stream, approval = waiting(alice, chat)
        alice.approve(chat, "int_001", approval, approved=approved).expect(200)
        stream.finish()
        assert stream.one("approved" if approved else "rejected")["answered_by"] == "alice"
    asks = alice.start("asks", "ask: who?")
    request = asks.until("input_required").data["request_id"]
    alice.respond("asks", "int_001", request, "me").expect(200)
    asks.finish()
    assert asks.one("input_received")["answered_by"] == "alice"
    lines = {line["event"]: line for line in alice.get("/audit").expect(200, "audit").json["entries"]}
    assert lines["approved"]["answered_by"] == lines["rejected"]["answered_by"] == "alice"
    # A recorded replay matches.
    for chat in ("yes", "no", "asks"):
        report = alice.post(f"/chats/{chat}/interactions/int_001/replay", {"mode": "recorded"}).expect(200, "replay_report").json
        assert report["match"], report


def test_the_single_user_is_as_before(make_server):
    """Without `auth` there are no additional files, members or folders."""
    server = make_server(config={"tools": {"require_approval": ["echo"]}, "model": "offline"})
    stream, approval = waiting(server.client, "notes")
    server.client.approve("notes", "int_001", approval).expect(200)
    stream.finish()
    assert "answered_by" not in stream.one("approved").data
    assert "answered_by" not in json.dumps(server.client.get("/audit").json)
    tools = server.client.get("/tools").expect(200, "tools").json
    assert "run_shell" in json.dumps(tools) and "workspace" in tools
    server.stop()
    assert sorted(path.name for path in server.home.data.iterdir() if path.is_dir()) == ["notes"]
    assert not list(server.home.data.glob(".te*")) and not list(server.home.data.glob(".to*"))


@pytest.mark.limit(90)
def test_after_a_restart_everybodys_approvals_wait_again(make_server, home):
    server = start(make_server, home)
    tokens = {user: api_token(home, user)["token"] for user in ("alice", "bob")}
    asked = {user: waiting(as_user(server, token), f"chat-of-{user}") for user, token in tokens.items()}
    as_user(server, tokens["bob"]).turn("done", "calculate 1+1")
    for stream, _ in asked.values():
        stream.close()
    server.kill()
    again = start(make_server, home)
    for user, token in tokens.items():
        client = as_user(again, token)
        # The run is taken up by the start or by this request; either way the approval is listed.
        pending = client.get("/approvals").expect(200).json["approvals"]
        assert [entry["chat_id"] for entry in pending] == [f"chat-of-{user}"], pending
        client.approve(f"chat-of-{user}", "int_001", pending[0]["approval_id"]).expect(200)
    for user, token in tokens.items():
        attached = as_user(again, token).attach(f"chat-of-{user}", "int_001")
        attached.finish()
        assert attached.one("approved")["answered_by"] == user


def test_a_start_takes_up_what_users_left_without_any_request(make_server, home):
    server = start(make_server, home)
    token = api_token(home, "alice")["token"]
    waiting(as_user(server, token), "notes")[0].close()
    server.kill()
    again = start(make_server, home)
    deadline = time.monotonic() + SOON
    while b"reprise_waiting_approvals 1" not in (metrics := again.client.get("/metrics").expect(200)).body:
        assert time.monotonic() < deadline, metrics.body


STRANGE = ["..", ".", "../../bob", "a/b", "%2E%2E", "~" + "0" * 64, "Alice", "alice ", "ÄÖ🙂", "a" * 255, "a" * 254 + "b", "con", "x\\y", "*"]


def test_strange_names_are_people_too_and_stay_apart(server):
    """Each name is a user of its own, with its own folder below the data folder."""
    clients = [person(server, "alice"), *(person(server, name) for name in STRANGE), *(person(server, "alice", org) for org in STRANGE)]
    for number, client in enumerate(clients):
        client.turn("notes", f"calculate {number}+0")
    for number, client in enumerate(clients):
        entries = client.history("notes")["interactions"]
        assert [entry["user_message"] for entry in entries] == [f"calculate {number}+0"]
    folders = [path.parent for path in server.home.data.glob(".tenants/*/*/.tenant")]
    assert len(folders) == len(clients)
    assert not list(server.home.data.glob("notes"))


def test_a_folder_that_is_anothers_is_not_opened(make_server, home):
    server = start(make_server, home)
    tokens = {user: api_token(home, user)["token"] for user in ("alice", "bob")}
    for token in tokens.values():
        as_user(server, token).turn("notes", f"calculate 1+1\n{CANARY}")
    server.stop()
    org = home.data / ".tenants" / "default"
    (org / "bob").rename(org / "carol")
    (org / "alice").rename(org / "bob")
    again = start(make_server, home)
    again.check_files = False
    as_user(again, tokens["bob"]).get("/chats").error(422, "integrity_swap")
    as_user(again, tokens["alice"]).get("/chats").expect(200)
    again.client.get("/chats").expect(200)


@pytest.mark.limit(240)
def test_many_people_take_turns_in_bounded_space(server, figure):
    """There are more users than may stay open. Idle ones are closed for others, and find everything when they return."""
    clients = [as_user(server, token) for token in many_tokens(server.home, 90)]
    kept, approval = waiting(clients[0], "waits")
    for number, client in enumerate(clients):
        client.turn("notes", f"calculate {number}+0")
    threads = int(next(line for line in open(f"/proc/{server.process.pid}/status") if line.startswith("Threads:")).split()[1])
    figure(f"people: 90 users had a turn, {threads} threads, {server.memory_kb() // 1024} MB")
    assert threads < 70 * 8
    for number, client in enumerate(clients):
        assert [entry["user_message"] for entry in client.history("notes")["interactions"]] == [f"calculate {number}+0"]
    clients[0].approve("waits", "int_001", approval).expect(200)  # a user with a waiting run is not closed
    kept.finish()
    assert b"reprise_runs_started_total 91" in server.client.get("/metrics").body


def test_users_see_no_figures_of_the_whole_server(server):
    error = person(server, "alice").get("/metrics").error(403, "operator_only")
    assert "operator" in error["message"]


# --- the workspace ----------------------------------------------------------------------------------------------------------------------

OFF = {"list_files", "read_file", "find_files", "search_files", "write_file", "edit_file", "apply_patch", "delete_file", "run_shell", "run_code", "read_job", "stop_job"}


def test_tools_of_the_workspace_are_off_and_it_is_said(make_server, home):
    server = start(make_server, home, mcpServers={"local": {"command": "/bin/true"}})
    alice = person(server, "alice")
    for client in (alice, server.client):
        tools = client.get("/tools").expect(200, "tools").json
        assert not OFF & {tool["name"] for tool in tools["tools"]}
        assert {"calculator", "http_get", "read_chat_file"} <= {tool["name"] for tool in tools["tools"]}
        assert "workspace" not in tools
        assert [(each["state"], "workspace_mode" in each["message"]) for each in tools["servers"]] == [("failed", True)]
    assert "no workspace" in server.log()
    stream = alice.turn("notes", "run: touch was-here\nwrite x.txt: y\nread server.json")
    assert all(event["is_error"] for event in stream.events if event.name == "tool_result")
    assert not list(home.workspace.iterdir())


def test_a_workspace_that_is_shared_is_shared(make_server, home):
    server = start(make_server, home, workspace_mode="shared")
    tools = person(server, "alice").get("/tools").expect(200, "tools").json
    assert OFF <= {tool["name"] for tool in tools["tools"]} and "workspace" in tools


def test_a_local_workspace_is_for_one_user(make_server, home):
    with pytest.raises(AssertionError, match="workspace_mode local is for one user"):
        start(make_server, home, workspace_mode="local")


# --- what is sealed, counted and administered -------------------------------------------------------------------------------------------

def test_a_file_of_one_user_is_not_opened_for_another(make_server, home):
    """An attacker who can write to the disk copies a chat, or one interaction, from one user's folder to another's."""
    server = start(make_server, home)
    tokens = {user: api_token(home, user)["token"] for user in ("alice", "bob")}
    for token in tokens.values():
        as_user(server, token).turn("notes", f"calculate 1+1\n{CANARY}")
    server.stop()
    org = home.data / ".tenants" / "default"
    alices = json.loads((org / "alice" / "notes" / "interactions" / "int_001.json").read_text())
    assert json.loads(base64.urlsafe_b64decode(alices["protected"] + "=="))["tenant"].startswith("sha256:")
    shutil.copytree(org / "alice" / "notes", org / "bob" / "stolen")
    shutil.copy(org / "alice" / "notes" / "interactions" / "int_001.json", org / "bob" / "notes" / "interactions" / "int_001.json")
    again = start(make_server, home)
    again.check_files = False
    bob = as_user(again, tokens["bob"])
    for path in ("/chats/stolen", "/chats/notes/interactions/int_001", "/chats/stolen/interactions/int_001"):
        answer = bob.get(path)
        assert CANARY.encode() not in answer.body, path
        if answer.status == 200:  # a history names the interactions that cannot be read
            assert "integrity_" in answer.body.decode(), answer.body
        else:
            assert answer.error(422)["code"] in ("integrity_swap", "integrity_rollback")
    bob.get("/chats/stolen/interactions/int_001").error(422, "integrity_swap")
    assert CANARY.encode() not in bob.get(f"/search?q={CANARY}").body
    as_user(again, tokens["alice"]).history("notes")


def test_the_commands_read_a_users_folder_like_any_other(make_server, home):
    server = start(make_server, home)
    person(server, "alice").turn("notes", f"calculate 1+1\n{CANARY}")
    server.stop()
    folder = home.data / ".tenants" / "acme" / "alice"
    for arguments in (["cat", "notes/int_001"], ["show", "notes"], ["search", CANARY]):
        done = subprocess.run([str(BINARY), *arguments, "--data-dir", str(folder)], env=home.environment(), cwd=home.path, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=10 * SLACK, check=False)
        assert done.returncode == 0 and CANARY in done.stdout, done.stdout + done.stderr
    for arguments in (["verify"], ["replay", "notes"]):
        done = subprocess.run([str(BINARY), *arguments, "--data-dir", str(folder)], env=home.environment(), cwd=home.path, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=10 * SLACK, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_quota_is_each_users_own_and_outlives_chats_and_restarts(make_server, home):
    server = start(make_server, home, budget={"max_tokens_per_day": 40})
    tokens = {user: api_token(home, user)["token"] for user in ("alice", "bob")}
    alice = as_user(server, tokens["alice"])
    used = alice.get("/usage").expect(200, "day_usage").json
    assert (used["tokens"], used["limit"]) == (0, 40)
    alice.turn("notes", "think: " + "word " * 50)
    after = alice.get("/usage").expect(200, "day_usage").json["tokens"]
    assert after >= 40
    stream = alice.start("more", "calculate 1+1")
    stream.finish("FAILED")
    assert "today" in stream.one("error")["message"]
    alice.request("DELETE", "/chats/notes").expect(200)
    as_user(server, tokens["bob"]).turn("notes", "hello")
    server.stop()
    again = start(make_server, home, budget={"max_tokens_per_day": 40})
    alice = as_user(again, tokens["alice"])
    assert alice.get("/usage").json["tokens"] >= after
    alice.start("more", "calculate 1+1").finish("FAILED")


def test_an_org_admin_sees_use_and_not_content(server, alice):
    boss, foreign = person(server, "boss", "acme", "--org-admin"), person(server, "boss", "other-org", "--org-admin")
    assert {entry["user"] for entry in boss.get("/users").expect(200, "users").json["users"]} == {"alice", "boss"}
    assert foreign.get("/users").json["users"] == [{"org": "other-org", "user": "boss"}]
    boss.turn("mine", "calculate 1+1")
    entries = boss.get("/audit?user=alice").expect(200, "audit").json["entries"]
    assert {"granted", "here"} <= {entry["chat_id"] for entry in entries} and CANARY not in json.dumps(entries)
    assert boss.get("/usage?user=alice").expect(200, "day_usage").json["tokens"] == alice.get("/usage").json["tokens"] > 0
    assert boss.get("/chats/notes/usage?user=alice").expect(200, "chat_usage").json == alice.get("/chats/notes/usage").json
    by_day = boss.get("/usage/days?user=alice").expect(200, "usage_by_day").json
    assert by_day["days"] == alice.get("/usage/days").json["days"] != [] and by_day["chats"] == [], "titles are content"
    assert alice.get("/usage/days").json["chats"] and boss.get("/usage/days").json["chats"]
    # No other route accepts `user`.
    boss.get("/chats/notes?user=alice").error(404)
    assert [chat["id"] for chat in boss.get("/chats?user=alice").json["chats"]] == ["mine"]
    boss.get("/approvals/" + alice.ids["approval_id"] + "/change?user=alice").error(404)
    for path in ("/audit?user=nobody", "/usage?user=nobody", "/usage?user=..", "/usage?user="):
        boss.get(path).error(404)
    assert not (server.home.data / ".tenants" / "acme" / "nobody").exists()
    for path in ("/audit?user=alice", "/usage?user=alice", "/usage/days?user=alice", "/chats/notes/usage?user=alice"):
        foreign.get(path).error(404)
        person(server, "bob").get(path).error(403, "org_admin_only")
    foreign.request("DELETE", "/chats/notes?user=alice").error(404)
    # The operator has no org. A request for another user's chat does not reach the operator's chat of the same name.
    server.client.turn("notes", "calculate 1+1")
    for method, path in (("DELETE", "/chats/notes"), ("GET", "/chats/notes/usage"), ("GET", "/usage"), ("GET", "/audit")):
        server.client.request(method, f"{path}?user=alice").error(403, "org_admin_only")
    assert "notes" in [chat["id"] for chat in server.client.get("/chats").json["chats"]]
    person(server, "bob").get("/users").error(403, "org_admin_only")
    boss.request("DELETE", "/chats/here?user=alice").expect(200)
    assert "here" not in [chat["id"] for chat in alice.get("/chats").json["chats"]]
    assert "here" in [entry["chat_id"] for entry in alice.get("/trash").json["entries"]]
    assert {entry["user"] for entry in server.client.get("/users").expect(200, "users").json["users"]} >= {"alice", "boss"}


def test_a_revoked_token_ends_what_it_listens_to(server):
    made = api_token(server.home, "alice")
    kept = as_user(server, api_token(server.home, "alice")["token"])
    client = as_user(server, made["token"])
    feed, own = Feed(client), Feed(kept)
    feed.until("open"), own.until("open")
    users(server.home, "revoke", made["id"])
    with contextlib.suppress(ConnectionError, http.client.HTTPException):
        while feed.next():
            pass
    kept.post("/chats", {"id": "after"}).expect(201)
    while "after" not in json.dumps(own.next().data):
        pass
    own.close()


@pytest.mark.limit(120)
def test_one_users_long_work_delays_no_other_user(server):
    """One user makes more imports at once than a user has threads."""
    busy, other = person(server, "busy"), person(server, "other")
    other.turn("notes", "calculate 1+1")
    interactions = [{"id": f"int_{number:03}", "status": "COMPLETED", "user_message": f"question {number}", "agent_events": [{"type": "ANSWER", "content": "x"}]}
                    for number in range(1, 200)]
    chat = {"id": "long", "title": "long", "interactions": interactions}
    waits = []
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        imports = [pool.submit(busy.post, "/import", chat, limit=100) for _ in range(12)]
        while not all(each.done() for each in imports):
            begun = time.monotonic()
            other.get("/chats").expect(200)
            other.get("/search?q=calculate").expect(200)
            waits.append(time.monotonic() - begun)
    assert all(each.result().status == 201 for each in imports), imports[0].result().body[:300]
    assert len(waits) > 3 and max(waits) < 2 * SLACK, waits


def test_keys_are_changed_for_all_users_at_once(make_server, home):
    """Files are rewrapped and the old key is removed; no user loses anything."""
    server = start(make_server, home)
    tokens = {user: api_token(home, user)["token"] for user in ("alice", "bob")}
    for token in tokens.values():
        as_user(server, token).turn("notes", "calculate 1+1")
    server.client.turn("own", "calculate 1+1")
    server.stop()
    for arguments in (["keys", "rotate", "--rewrap"], ["keys", "rewrap", "--remove-old"]):
        done = subprocess.run([str(BINARY), *arguments, "--data-dir", str(home.data), "--config", str(home.path / "server.json")], env=home.environment(),
                              cwd=home.path, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=10 * SLACK, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(home.keys.read_text())["keys"]) == 1
    again = start(make_server, home)
    for token in tokens.values():
        assert len(as_user(again, token).history("notes")["interactions"]) == 1
    assert len(again.client.history("own")["interactions"]) == 1
    again.stop()
    done = subprocess.run([str(BINARY), "decrypt", "--all", "--in-place", "--data-dir", str(home.data)], env=home.environment(), cwd=home.path,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=10 * SLACK, check=False)
    assert done.returncode == 1 and "several users" in done.stderr, done.stderr


# --- the key of an org ------------------------------------------------------------------------------------------------------------------

def kid_of(path):
    return json.loads(path.read_text())["header"]["kid"]


def org_delete(home, *arguments):
    return subprocess.run([str(BINARY), "users", "org", "delete", *arguments, "--json", "--config", str(home.path / "server.json"), "--data-dir",
                           str(home.data)], env=home.environment(), cwd=home.path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=10 * SLACK, check=False)


def test_an_org_has_a_key_of_its_own(make_server, home):
    server = start(make_server, home)
    tokens = {name: api_token(home, *name)["token"] for name in (("alice", "--org", "acme"), ("bob", "--org", "acme"), ("carol", "--org", "other"))}
    for token in tokens.values():
        as_user(server, token).turn("notes", f"calculate 1+1\n{CANARY}")
    server.stop()
    tenants = home.data / ".tenants"
    alice, bob, carol = (kid_of(tenants / place / "notes" / "interactions" / "int_001.json") for place in ("acme/alice", "acme/bob", "other/carol"))
    operators = [key["kid"] for key in json.loads(home.keys.read_text())["keys"]]
    assert alice == bob != carol and not {alice, carol} & set(operators)
    assert [kid_of(tenants / org / ".org_key") for org in ("acme", "other")] == operators * 2
    shutil.copy(tenants / "other" / ".org_key", tenants / "acme" / ".org_key")
    again = start(make_server, home)
    again.check_files = False
    as_user(again, tokens[("alice", "--org", "acme")]).get("/chats").error(422, "integrity_swap")
    as_user(again, tokens[("carol", "--org", "other")]).history("notes")


def test_a_key_of_an_org_that_is_gone_is_an_error_and_not_a_new_key(make_server, home):
    server = start(make_server, home)
    token = api_token(home, "alice", "--org", "acme")["token"]
    as_user(server, token).turn("notes", "calculate 1+1")
    server.stop()
    key = home.data / ".tenants" / "acme" / ".org_key"
    kept = key.read_bytes()
    key.unlink()
    again = start(make_server, home)
    again.check_files = False
    error = as_user(again, token).get("/chats").error(422, "integrity_missing")
    assert "backup" in error["message"] and not key.exists()
    key.write_bytes(kept)
    key.chmod(0o600)
    as_user(again, token).history("notes")


def test_an_org_that_has_tokens_but_no_chats_is_deleted_too(make_server, home):
    """So it is when the command was cut off after the chats, and is run again."""
    server = start(make_server, home)
    kept = api_token(home, "carol", "--org", "other")["token"]
    token = api_token(home, "alice", "--org", "acme")["token"]
    server.stop()
    for folder in (home.data / ".tenants", home.data / ".tenants" / "acme"):
        folder.mkdir(mode=0o700, exist_ok=True)  # what was left of them
    deleted = org_delete(home, "acme", "--yes")
    assert deleted.returncode == 0 and json.loads(deleted.stdout) == {"org": "acme", "users": 0, "tokens": 1}, deleted.stderr
    assert not (home.data / ".tenants" / "acme").exists()
    again = org_delete(home, "acme", "--yes")
    assert again.returncode == 1 and "no organization acme" in again.stderr
    server = start(make_server, home)
    as_user(server, token).get("/chats").error(401, "invalid_token")
    as_user(server, kept).get("/chats").expect(200)


def test_what_an_earlier_deletion_left_of_an_org_is_deleted(make_server, home):
    start(make_server, home).stop()
    left = home.data / ".tenants" / "acme"
    for folder in (left.parent, left):
        folder.mkdir(mode=0o700, exist_ok=True)
    deleted = org_delete(home, "acme", "--yes")
    assert deleted.returncode == 0 and json.loads(deleted.stdout) == {"org": "acme", "users": 0, "tokens": 0}, deleted.stderr
    assert not left.exists() and (home.data / ".tenants").exists()
    assert org_delete(home, "acme", "--yes").returncode == 1
    empty = org_delete(home, "", "--yes")
    assert empty.returncode == 2 and "empty" in empty.stderr and (home.data / ".tenants").exists()


def test_a_deleted_org_cannot_be_read_from_copies_either(make_server, home, tmp_path):
    server = start(make_server, home)
    alice, carol = (api_token(home, user, "--org", org)["token"] for user, org in (("alice", "acme"), ("carol", "other")))
    for token in (alice, carol):
        as_user(server, token).turn("notes", f"calculate 1+1\n{CANARY}")
    running = org_delete(home, "acme", "--yes")
    assert running.returncode == 1 and "stop it first" in running.stderr, running.stderr
    as_user(server, alice).history("notes")
    server.stop()
    tenants = home.data / ".tenants"
    shutil.copytree(tenants / "acme" / "alice", tmp_path / "copy")
    assert org_delete(home, "acme").returncode == 2 and org_delete(home, "nobody", "--yes").returncode == 1
    deleted = org_delete(home, "acme", "--yes")
    assert json.loads(deleted.stdout) == {"org": "acme", "users": 1, "tokens": 1}, deleted.stderr
    assert sorted(path.name for path in tenants.iterdir()) == ["other"]
    (tenants / "acme").mkdir(mode=0o700)
    shutil.copytree(tmp_path / "copy", tenants / "acme" / "alice")
    done = subprocess.run([str(BINARY), "cat", "notes/int_001", "--data-dir", str(tenants / "acme" / "alice")], env=home.environment(), cwd=home.path,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=10 * SLACK, check=False)
    assert done.returncode != 0 and CANARY not in done.stdout
    again = start(make_server, home)
    again.check_files = False
    as_user(again, alice).get("/chats").error(401, "invalid_token")
    anew = as_user(again, api_token(home, "alice", "--org", "acme")["token"])
    assert anew.get("/chats/notes/interactions/int_001").error(422)["code"].startswith("integrity_")
    as_user(again, carol).history("notes")
