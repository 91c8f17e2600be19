"""Devices are told that something waits: nothing else, nobody else, and an answer counts once."""
import json
import re
import time

import pytest
from support.people import OPERATOR, api_token, as_user, token_file
from support.provider import Gate, call, text, tools
from support.push import Device, PushService, Unreadable, decode, encode
from support.server import reprise
from support.timing import at_once, eventually

PRIVATE = {"push": {"allow_private_addresses": True}}


@pytest.fixture
def service():
    made = PushService()
    yield made
    made.close()


@pytest.fixture
def phone(service):
    return Device(f"{service.url}/phone", "My phone")


@pytest.fixture
def server(make_server, provider):
    return make_server(provider, config=PRIVATE)


def pair(server, device, service=None):
    listed = server.client.get("/push/devices").expect(200, "push_devices").json
    if service:
        service.keys[device.endpoint.rsplit("/", 1)[1]] = decode(listed["public_key"])
    return server.client.post("/push/devices", device.body()).expect(200, "push_device").json


def counts(server):
    served = server.client.get("/metrics").expect(200).body.decode()
    return {name: int(count) for name, count in re.findall(r"^reprise_push_(\w+)_total (\d+)$", served, re.M) if count != "0"}


def unwatched(server):
    eventually(lambda: re.search(rb"^reprise_http_streams 0$", server.client.get("/metrics").body, re.M), "the server knows that its client left")


def writes(path="out.txt"):
    return tools(call("write_file", {"path": path, "content": "canary-text"}), say="I will write")


def ask(server, provider, chat="secret-plans", path="out.txt"):
    provider.plan(writes(path))
    stream = server.client.start(chat, "canary-message", on_disconnect="continue")
    asked = stream.until("approval_required")
    stream.close()
    return asked


def test_a_waiting_call_is_told_sealed_and_without_words(server, provider, service, phone):
    paired = pair(server, phone, service)
    assert paired["id"] == phone.id and paired["name"] == "My phone" and paired["service"] == "127.0.0.1"
    asked = ask(server, provider)
    name, headers, sealed = service.next()
    assert name == "phone" and headers["Urgency"] == "high" and len(headers["Topic"]) == 32
    told = phone.open(sealed)
    assert told == {"kind": "approval", "chat": told["chat"], "id": asked["approval_id"]} and re.fullmatch("[0-9a-f]{32}", told["chat"])
    for word in (b"canary", b"secret-plans", b"out.txt", b"write", b"approval"):
        assert word not in sealed and word not in json.dumps(headers).encode()
    with pytest.raises(Unreadable):
        Device(phone.endpoint).open(sealed)  # who has the address alone
    # The same chat again: the same topic, so that the service forgets the older message. Another chat has another one.
    second = ask(server, provider, "other")
    _, others, other = service.next()
    assert phone.open(other)["id"] == second["approval_id"] and others["Topic"] != headers["Topic"] and len(other) == len(sealed)
    provider.plan(writes("two.txt"))
    server.client.post(f"/approvals/{asked['approval_id']}", {"approved": False}).expect(200)
    _, again, sealed = service.next()
    assert phone.open(sealed)["kind"] == "approval" and again["Topic"] == headers["Topic"]
    eventually(lambda: counts(server) == {"sent": 3}, "all were taken")


def test_questions_and_ends_that_nobody_watches_are_told(server, provider, service, phone):
    pair(server, phone, service)
    provider.plan(tools(call("ask_human", {"question": "Which canary?"})), text("Blue then."))
    stream = server.client.start("c", "paint", on_disconnect="continue")
    asked = stream.until("input_required")
    told = phone.open(service.next()[2])
    assert told["kind"] == "question" and told["id"] == asked["request_id"]
    server.client.respond("c", "int_001", asked["request_id"], "blue").expect(200)
    stream.finish()  # watched to its end
    gate = Gate()
    provider.plan(text("well", gate, " done"))
    stream = server.client.start("c", "and now?", on_disconnect="continue")
    stream.until("text_delta")
    stream.close()
    unwatched(server)
    gate.release()
    name, headers, sealed = service.next()
    assert phone.open(sealed) == {"kind": "ended", "chat": told["chat"]} and headers["Urgency"] == "normal"
    provider.plan(text("never", Gate()))
    stream = server.client.start("d", "stop it", on_disconnect="continue")
    stream.until("text_delta")
    stream.close()
    unwatched(server)
    server.client.cancel("d", "int_001").expect(200)
    eventually(lambda: server.client.interaction("d", "int_001")["status"] == "CANCELLED", "its end")
    asked = ask(server, provider, "e")
    assert phone.open(service.next()[2])["id"] == asked["approval_id"], "nobody is told of an end that somebody wanted"
    eventually(lambda: counts(server) == {"sent": 3}, "no more than these were sent")


@pytest.mark.parametrize("taps", ["one", "two", "other"])
def test_a_tap_after_kill_9_answers_once(make_server, make_home, provider, service, phone, taps):
    home = make_home()
    first = make_server(provider, home=home, config=PRIVATE)
    pair(first, phone, service)
    asked = ask(first, provider)
    told = phone.open(service.next()[2])
    first.kill()

    second = make_server(provider, home=home, config=PRIVATE)
    assert phone.open(service.next()[2]) == told, "it waits again, under the same name"
    waiting, = second.client.get("/approvals").expect(200).json["approvals"]
    assert waiting["approval_id"] == told["id"] and waiting["arguments_digest"] == asked["arguments_digest"]
    provider.plan(text("written"))
    tap = {"approved": True, "arguments_digest": asked["arguments_digest"]}
    path = f"/approvals/{told['id']}"
    stale = second.client.post(path, {**tap, "arguments_digest": "sha256:" + "0" * 64}).error(409, "digest_mismatch")
    assert "retryable" not in stale or not stale["retryable"]
    assert not (home.workspace / "out.txt").exists()
    if taps == "one":
        second.client.post(path, tap).expect(200)
    else:
        answers = at_once([lambda: second.client.post(path, tap), lambda: second.client.post(path, tap if taps == "two" else {**tap, "approved": False})])
        assert sorted(each.status for each in answers)[0] == 200 and all(each.status == 200 or each.json["error"]["code"] == "already_processed" for each in answers)
    eventually(lambda: second.client.interaction("secret-plans", "int_001")["status"] == "COMPLETED", "the turn ends")
    events = second.client.get("/chats/secret-plans/interactions/int_001/events").expect(200, "events_page").json["events"]
    results = [each for each in events if each["type"] == "TOOL_RESULT"]
    assert len(results) == 1 and sum(each["type"] in ("APPROVED", "REJECTED") for each in events) == 1
    second.client.post(path, {**tap, "approved": False, "feedback": "too late"}).error(400, "already_processed")
    second.client.request("DELETE", "/chats/secret-plans").expect(200)
    assert second.client.post(path, tap).status in (400, 404)


def test_addresses_that_are_not_public_https_are_refused(make_server, provider, service):
    server = make_server(provider)
    good = Device("https://push.example.org/a")
    for endpoint in ("http://push.example.org/a", "ftp://push.example.org/", "https://", "push.example.org", "https://user@push.example.org/", f"{service.url}/phone",
                     "https://push.example.org/\n", "https://push.example.org/#a", "https://push.example.org/" + "x" * 2000, "", 7, None, ["https://push.example.org/"]):
        assert server.client.post("/push/devices", good.body(endpoint=endpoint)).error(400), endpoint
    for host in ("127.0.0.1", "localhost", "LOCALHOST:8443", "a.localhost", "10.0.0.1", "192.168.1.1:444", "169.254.169.254", "[::1]", "[fd00::1]", "[::ffff:10.0.0.1]", "[zz]"):
        server.client.post("/push/devices", good.body(endpoint=f"https://{host}/a")).error(403, "address_not_allowed")
    for wrong in ({"p256dh": encode(b"\x04" + b"1" * 64)}, {"p256dh": ""}, {"p256dh": good.body()["p256dh"] + "="}, {"auth": encode(b"short")}, {"auth": "x" * 100_000},
                  {"name": "x" * 101}, {"name": "a\nb"}, {"more": 1}):
        assert server.client.post("/push/devices", good.body(**wrong)).error(400), wrong
    server.client.request("DELETE", f"/push/devices/{good.id}").error(404, "not_found")
    assert server.client.get("/push/devices").json["devices"] == []
    # A name is looked up when something is sent, and this one is this machine.
    pair(server, Device(f"https://127.1:{service.server.server_port}/phone"))
    ask(server, provider)
    eventually(lambda: counts(server) == {"failed": 1}, "it is not reached")
    assert "address_not_allowed" in server.log() and not service.arrived


def test_redirects_are_not_followed(server, provider, service, phone):
    pair(server, phone, service)
    service.status["phone"], service.location = 307, f"{service.url}/elsewhere"
    ask(server, provider)
    service.next()
    eventually(lambda: counts(server) == {"failed": 1}, "it is not taken")
    assert service.arrived == ["phone"] and len(server.client.get("/push/devices").json["devices"]) == 1


@pytest.mark.parametrize("status", [404, 410])
def test_an_ended_subscription_is_removed(server, provider, service, phone, status):
    pair(server, phone, service)
    pair(server, Device(f"{service.url}/tablet"), service)
    service.status["phone"] = status
    ask(server, provider)
    assert {service.next()[0], service.next()[0]} == {"phone", "tablet"}
    eventually(lambda: counts(server) == {"sent": 1, "failed": 1, "ended": 1}, "it is removed")
    assert [each["id"] for each in server.client.get("/push/devices").json["devices"]] == [Device(f"{service.url}/tablet").id]
    service.status["tablet"] = 500
    ask(server, provider, "other")
    assert service.next()[0] == "tablet"
    eventually(lambda: counts(server)["failed"] == 2, "a failure alone removes nothing")
    assert len(server.client.get("/push/devices").json["devices"]) == 1


def test_a_hanging_service_holds_up_nothing(server, provider, service, phone):
    service.hangs.add("slow")
    pair(server, Device(f"{service.url}/slow"), service)
    pair(server, phone, service)
    for chat in ("a", "b", "c"):
        asked = ask(server, provider, chat)
        name, _, sealed = service.next()
        assert name == "phone" and phone.open(sealed)["id"] == asked["approval_id"]
    provider.plan(text("quick"))
    server.client.turn("d", "and others work")
    eventually(lambda: service.arrived.count("slow") == 3, "they are on their way")
    started = time.monotonic()
    server.stop()
    assert time.monotonic() - started < 8, "it is given up"


def test_there_are_few_devices_and_each_counts_once(server, service, phone):
    first = pair(server, phone)
    new_keys = Device(phone.endpoint, "Same phone, new keys")
    again = pair(server, new_keys)
    assert again["id"] == first["id"] and [each["name"] for each in server.client.get("/push/devices").json["devices"]] == ["Same phone, new keys"]
    for number in range(9):
        pair(server, Device(f"{service.url}/{number}"))
    server.client.post("/push/devices", Device(f"{service.url}/10").body()).error(409, "conflict")
    pair(server, new_keys)
    server.client.request("DELETE", f"/push/devices/{phone.id}").expect(200, "push_device_removed")
    server.client.request("DELETE", f"/push/devices/{phone.id}").error(404, "not_found")
    pair(server, Device(f"{service.url}/10"))


def test_users_have_devices_of_their_own(make_server, make_home, provider, service):
    home = make_home()
    server = make_server(provider, home=home, config={**PRIVATE, "auth": {"type": "tokens"}}, token=OPERATOR, arguments=("--token-file", token_file(home)))
    alice, bob = (as_user(server, api_token(home, each)["token"]) for each in ("alice", "bob"))
    hers, his = Device(f"{service.url}/hers"), Device(f"{service.url}/his")
    alice.post("/push/devices", hers.body()).expect(200)
    bob.post("/push/devices", his.body()).expect(200)
    assert [each["id"] for each in alice.get("/push/devices").json["devices"]] == [hers.id]
    assert server.client.get("/push/devices").json["devices"] == []
    bob.request("DELETE", f"/push/devices/{hers.id}").error(404, "not_found")
    server.client.request("DELETE", f"/push/devices/{hers.id}").error(404, "not_found")
    provider.plan(tools(call("ask_human", {"question": "Which?"})))
    stream = bob.start("c", "ask", on_disconnect="continue")
    stream.until("input_required")
    name, _, sealed = service.next()
    assert name == "his" and his.open(sealed)["kind"] == "question" and service.arrived == ["his"]
    stream.close()


def test_key_and_devices_are_kept_sealed_and_never_written_over(make_server, make_home, provider, service, phone):
    home = make_home()
    server = make_server(provider, home=home, config=PRIVATE)
    pair(server, phone, service)
    key = server.client.get("/push/devices").json["public_key"]
    assert not home.find_text(phone.endpoint) and not home.find_text(phone.body()["auth"]), "who gives an address could be told things"
    assert all((home.data / name).stat().st_mode & 0o777 == 0o600 for name in (".push_key", ".push_devices"))
    server.stop()
    for command in ("decrypt", "encrypt"):
        status, _, said = reprise(home, command, "--all", "--in-place", "--data-dir", home.data)
        assert status == 0, said
    server = make_server(provider, home=home, config=PRIVATE)
    listed = server.client.get("/push/devices").expect(200).json
    assert listed["public_key"] == key and [each["id"] for each in listed["devices"]] == [phone.id]
    server.stop()
    for times, name in enumerate((".push_devices", ".push_key"), 1):
        file = home.data / name
        whole = file.read_bytes()
        damaged = whole[:-20] + (b"y" if whole[-20:-19] == b"x" else b"x") + whole[-19:]
        file.write_bytes(damaged)
        server = make_server(provider, home=home, config=PRIVATE)
        server.client.get("/push/devices").error(409, "conflict")
        if name == ".push_devices":
            server.client.post("/push/devices", phone.body()).error(409, "conflict")
        ask(server, provider, name.strip(".").replace("_", "-"))
        eventually(lambda at=server, least=times: at.log().count("devices cannot be told") >= least, "the log says so")
        server.stop()
        assert file.read_bytes() == damaged
        file.write_bytes(whole)
    assert not service.arrived
