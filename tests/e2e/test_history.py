"""GET /chats/{c}: in pages or whole, with the requested states, written while it is read."""
import http.client
import json
import re
import socket
import time

import pytest
from support import schemas
from support.provider import Gate, text
from support.timing import SLACK, SOON, eventually


def get(client, query="", chat="c"):
    return client.get(f"/chats/{chat}{query}").expect(200, "chat_history").json


def ids(history):
    return [i["id"] for i in history["interactions"]]


def states(history):
    return [i["id"] for i in history["interactions"] if i["final_agent_state"]]


def number(n):
    return f"int_{n:03}"


def numbers(*range_of):
    return [number(n) for n in range(*range_of)]


def say(client, provider, turns, chat="c", size=1):
    for turn in range(turns):
        provider.plan(text(f"answer {turn} " + "a" * size))
        client.turn(chat, f"question {turn}")


def pages(client, limit, more="", before=None):
    """All pages, newest first; no two may overlap."""
    found = []
    while True:
        page = get(client, f"?limit={limit}{more}" + (f"&before={before}" if before else ""))
        assert "usage" not in page and len(page["interactions"]) <= limit
        found.append(page)
        before = page["previous"]
        if before is None:
            return found
        assert before == page["interactions"][0]["id"] and len(page["interactions"]) == limit


@pytest.fixture
def branchy(client, provider):
    """int_001 to int_004, int_005 as an edit of int_003, and two after it."""
    say(client, provider, 4)
    provider.plan(text("edited"), text("on"), text("and on"))
    client.edit("c", "int_003", "other").finish()
    client.turn("c", "q6")
    client.turn("c", "q7")
    return client


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 7, 500])
@pytest.mark.parametrize("branches", ["", "&branches=all"])
def test_pages_are_the_whole_history(branchy, limit, branches):
    whole = get(branchy, "?state=none" + branches)
    assert "previous" not in whole and whole["usage"]["models"]
    found = pages(branchy, limit, "&state=none" + branches)
    assert [i for page in reversed(found) for i in page["interactions"]] == whole["interactions"]
    assert ids(whole) == (numbers(1, 8) if branches else ["int_001", "int_002", "int_005", "int_006", "int_007"])
    for page in found:
        assert {m: page[m] for m in ("id", "title", "created_at", "updated_at", "head")} == {m: whole[m] for m in ("id", "title", "created_at", "updated_at", "head")}


def test_before_alone_has_no_limit(branchy):
    page = get(branchy, "?before=int_006")
    assert ids(page) == ["int_001", "int_002", "int_005"] and page["previous"] is None and not states(page)
    assert ids(get(branchy, "?before=int_006&branches=all")) == numbers(1, 6)
    assert ids(get(branchy, "?before=int_001")) == []


def test_states_are_given_to_whom_they_were_asked_for(branchy):
    assert states(get(branchy)) == states(get(branchy, "?state=last")) == ["int_007"]
    assert states(get(branchy, "?state=none")) == []
    for branches in ("", "&branches=all"):
        every = get(branchy, "?state=all" + branches)
        assert states(every) == ids(every)
        for interaction in every["interactions"]:
            interaction.pop("superseded", None)
            assert interaction == branchy.interaction("c", interaction["id"])
    assert states(get(branchy, "?limit=2")) == ["int_007"] and states(get(branchy, "?limit=2&before=int_007")) == []
    assert states(get(branchy, "?limit=2&before=int_007&state=all")) == ["int_005", "int_006"]
    # The head is where the chat ends, not the newest interaction.
    branchy.post("/chats/c/head", {"interaction_id": "int_004"}).expect(200)
    assert states(get(branchy, "?branches=all")) == ["int_004"] and states(get(branchy)) == ["int_004"]


def test_the_states_of_a_long_chat_are_whole(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    say(server.client, provider, 12, size=10_000)
    for _ in range(2):
        client = server.client
        assert "linked" in home.checkpoint("c", "int_012")["final_agent_state"]
        last = get(client)
        assert states(last) == ["int_012"] and last["interactions"][-1] == client.interaction("c", "int_012")
        assert len(get(client, "?limit=3")["interactions"][-1]["final_agent_state"]["messages"]) == 24
        every = get(client, "?state=all")
        assert [len(i["final_agent_state"]["messages"]) for i in every["interactions"]] == list(range(2, 26, 2))
        server.stop()
        server = make_server(provider, home=home)


@pytest.mark.parametrize("query", ["limit=", "limit=0", "limit=501", "limit=99999999999999999999999", "limit=-1", "limit=x", "limit=1.5", "limit=+1", "limit=%31%", "limit",
                                   "limit=1&limit=1", "before=", "before=1", "before=int_1", "before=int_000", "before=int_0001", "before=int_9999999999", "before=x",
                                   "before=int_002&before=int_002", "before=int_099", "before=int_003", "limit=1&before=int_003", "before=int_008", "state=", "state=some",
                                   "state=all&state=all", "branches=", "branches=some", "branches=all&branches=all", "branches=all&before=int_099"])
def test_bad_values_are_told(branchy, query):
    branchy.get("/chats/c?" + query).error(400, "invalid_parameter")


def test_unknown_chats_are_404_whatever_is_asked(client):
    for query in ("", "?limit=1", "?before=int_001", "?branches=all&limit=3"):
        client.get("/chats/none" + query).error(404, "not_found")


def test_an_empty_chat_has_one_empty_page(client):
    client.post("/chats", {"id": "c", "title": "t"}).expect(201)
    for query in ("?limit=5", "?branches=all&limit=1", "?limit=5&state=all"):
        page = get(client, query)
        assert page["interactions"] == [] and page["previous"] is None
    assert get(client)["interactions"] == []
    client.get("/chats/c?before=int_001").error(400, "invalid_parameter")


def test_while_a_run_goes_on_it_is_the_newest(client, provider):
    gate = Gate()
    provider.plan(text("first ", gate))
    stream = client.start("c", "q1")
    stream.until("text_delta")
    for query in ("", "?limit=1", "?limit=5", "?branches=all&limit=1", "?state=all"):  # queries on a new chat
        page = get(client, query)
        assert [(i["id"], i["status"], i["final_agent_state"]) for i in page["interactions"]] == [("int_001", "RUNNING", None)]
        assert page["title"] == "q1" and page.get("previous") is None
    assert ids(get(client, "?before=int_001")) == []
    client.get("/chats/c?before=int_002").error(400, "invalid_parameter")
    gate.release()
    stream.finish()
    say(client, provider, 2)
    gate = Gate()
    provider.plan(text("fourth ", gate))
    stream = client.start("c", "q4")
    stream.until("text_delta")
    assert ids(get(client)) == numbers(1, 5) and states(get(client)) == ["int_003"]
    found = pages(client, 1)
    assert [ids(page) for page in found] == [["int_004"], ["int_003"], ["int_002"], ["int_001"]]
    assert [ids(page) for page in pages(client, 2, "&branches=all")] == [["int_003", "int_004"], ["int_001", "int_002"]]
    assert ids(get(client, "?before=int_004")) == numbers(1, 4)
    gate.release()
    stream.finish()
    # A running edit has its own branch.
    gate = Gate()
    provider.plan(text("edited ", gate))
    stream = client.edit("c", "int_002", "other")
    stream.until("text_delta")
    assert ids(get(client)) == ["int_001", "int_005"]
    assert [(i["id"], i["superseded"]) for i in get(client, "?branches=all")["interactions"]] == [
        ("int_001", False), ("int_002", True), ("int_003", True), ("int_004", True), ("int_005", False)]
    assert [ids(page) for page in pages(client, 1)] == [["int_005"], ["int_001"]]
    client.get("/chats/c?before=int_004").error(400, "invalid_parameter")
    assert ids(get(client, "?before=int_004&branches=all")) == numbers(1, 4)
    gate.release()
    stream.finish()
    assert states(get(client)) == ["int_005"]


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def damaged(history):
    return [(d["interaction_id"], d["error"]["code"]) for d in history.get("damaged", [])]


@pytest.mark.parametrize("restart", [False, True])
def test_what_is_damaged_is_named_on_its_page(make_server, make_home, provider, restart):
    home = make_home()
    server = make_server(provider, home=home)
    server.check_files = False
    say(server.client, provider, 9)
    if restart:
        server.stop()
    flip(home.checkpoint_file("c", "int_004"))
    if restart:
        server = make_server(provider, home=home)
        server.check_files = False
    client = server.client
    whole = get(client)
    assert damaged(whole) == [("int_004", "integrity_auth")] and ids(whole) == numbers(1, 4) + numbers(5, 10)
    assert [(ids(page), damaged(page)) for page in (get(client, q) for q in ("?limit=3", "?limit=3&before=int_007", "?limit=3&before=int_004"))] == [
        (numbers(7, 10), []), (["int_005", "int_006"], [("int_004", "integrity_auth")]), (numbers(1, 4), [])]
    assert get(client, "?limit=3&before=int_007")["previous"] == "int_004"
    home.checkpoint_file("c", "int_004").unlink()
    assert damaged(get(client)) == [("int_004", "integrity_missing")]
    page = get(client, "?limit=3&before=int_007")
    assert ids(page) == ["int_005", "int_006"] and damaged(page) == [("int_004", "integrity_missing")]
    assert damaged(get(client, "?limit=3")) == []


def test_another_version_of_a_file_does_not_belong_to_the_history(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    server.check_files = False
    say(server.client, provider, 4)
    old = {n: home.checkpoint_file("c", number(n)).read_bytes() for n in (2, 4)}
    server.client.request("DELETE", "/chats/c").expect(200)
    say(server.client, provider, 5)
    for restart in (False, True):
        if restart:
            server.stop()
            server = make_server(provider, home=home)
            server.check_files = False
        for n, content in old.items():
            home.checkpoint_file("c", number(n)).write_bytes(content)
        expected = [("int_002", "integrity_rollback"), ("int_004", "integrity_rollback")]
        assert damaged(get(server.client)) == expected and ids(get(server.client)) == ["int_001", "int_003", "int_005"]
        assert damaged(get(server.client, "?limit=5")) == expected
        assert damaged(get(server.client, "?limit=2")) == expected[1:]


def test_superseded_ones_are_checked_with_the_whole_history(branchy, server):
    server.check_files = False
    flip(server.home.checkpoint_file("c", "int_004"))
    assert damaged(get(branchy)) == damaged(get(branchy, "?branches=all")) == [("int_004", "integrity_auth")]
    assert damaged(get(branchy, "?limit=500")) == [] and damaged(get(branchy, "?limit=500&branches=all")) == [("int_004", "integrity_auth")]


def test_a_state_that_cannot_be_put_together_is_null(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    server.check_files = False
    say(server.client, provider, 12, size=10_000)
    server.stop()
    flip(home.checkpoint_file("c", "int_010"))
    server = make_server(provider, home=home)
    server.check_files = False
    for query in ("", "?limit=2"):
        history = get(server.client, query)
        assert states(history) == [] and history["interactions"][-1]["user_message"] == "question 11"
    assert states(get(server.client, "?state=all")) == numbers(1, 10)


def test_plain_chats_are_told_as_they_are_understood(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home, plain=True)
    say(server.client, provider, 9, size=10_000)
    for file in home.data.glob("c/interactions/int_00[1-5].json"):  # reformatted, as by a person
        file.write_text(json.dumps(json.loads(file.read_text()), indent=2))
    assert [i for page in reversed(pages(server.client, 4)) for i in page["interactions"]] == get(server.client)["interactions"]
    every = get(server.client, "?state=all")
    assert [len(i["final_agent_state"]["messages"]) for i in every["interactions"]] == list(range(2, 20, 2))


# --- over the wire ----------------------------------------------------------------------------------------------------

@pytest.fixture
def large(client, provider):
    """A chat that is larger than the socket's buffers."""
    say(client, provider, 24, size=400_000)
    return client


def open_raw(client, query="", version="HTTP/1.1", method="GET"):
    connection = socket.create_connection(("127.0.0.1", client.port), timeout=SOON)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)  # fixed, as the kernel would enlarge it
    connection.sendall(f"{method} /chats/c{query} {version}\r\nHost: localhost:{client.port}\r\n\r\n".encode())
    return connection


def rest_of(connection):
    received = b""
    while data := connection.recv(1 << 20):
        received += data
    return received


def test_a_short_answer_has_a_length_and_a_long_one_comes_in_chunks(large):
    short, long = large.get("/chats/c?limit=500&before=int_001"), large.get("/chats/c?limit=2")
    assert short.headers["Content-Length"] and "Transfer-Encoding" not in short.headers
    assert long.headers["Transfer-Encoding"] == "chunked" and "Content-Length" not in long.headers
    assert long.headers["Content-Type"] == "application/json" and long.headers["Cache-Control"] == "no-store" and long.headers["X-Content-Type-Options"] == "nosniff"
    connection = http.client.HTTPConnection("127.0.0.1", large.port, timeout=SOON)
    for _ in range(3):  # the connection stays usable
        connection.request("GET", "/chats/c?limit=2")
        schemas.check("chat_history", json.loads(connection.getresponse().read()))
        connection.request("HEAD", "/chats/c?limit=2")
        head = connection.getresponse()
        assert head.status == 200 and head.read() == b""
    connection.close()


def test_http_10_reads_to_the_end_of_the_connection(large):
    with open_raw(large, "?limit=3", "HTTP/1.0") as connection:
        head, _, body = rest_of(connection).partition(b"\r\n\r\n")
    assert b"chunked" not in head and b"Connection: close" in head
    assert ids(json.loads(body)) == numbers(22, 25)


@pytest.mark.large
@pytest.mark.limit(60)
def test_a_client_that_reads_slowly_costs_neither_memory_nor_a_thread(large, server, provider, figure):
    whole = large.get("/chats/c?state=none").body
    before = server.memory_kb()
    slow = [open_raw(large, "?state=none") for _ in range(16)]
    for connection in slow:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    provider.plan(text("meanwhile"))
    large.turn("other", "hi")
    assert get(large, "?limit=1&state=none")["previous"]
    grown = server.memory_kb() - before
    figure(f"16 slow readers of {len(whole) / 1e6:.0f} MB of history: {grown / 1024:.1f} MB more")
    assert grown < len(whole) / 1024 * 4, "less memory than for four whole copies"
    last = slow.pop()
    for connection in slow:
        connection.close()
    received = rest_of_chunks(last)
    assert ids(json.loads(received)) == ids(json.loads(whole))


def rest_of_chunks(connection):
    """The body of a chunked response, after some bytes of its head were read."""
    with connection.makefile("rb") as file:
        while file.readline() not in (b"\r\n", b""):
            pass
        body = b""
        while size := int(file.readline(), 16):
            body += file.read(size)
            assert file.read(2) == b"\r\n"
    connection.close()
    return body


def test_a_client_that_goes_in_the_middle_leaves_nothing_behind(large, server):
    for _ in range(20):
        connection = open_raw(large)
        connection.recv(10_000)
        connection.close()
    eventually(lambda: len([line for line in server.log().splitlines() if "/chats/*" in line and re.search(r"complete\W+false", line)]) >= 20, "the interrupted responses are logged")
    assert ids(get(large, "?state=none")) == numbers(1, 25)
    eventually(lambda: re.search(r"^reprise_http_connections 1$", large.get("/metrics").body.decode(), re.M), "their connections are closed")


def test_a_chat_that_is_deleted_in_the_middle_ends_the_answer(large, server):
    connection = open_raw(large)
    connection.recv(10_000)
    large.request("DELETE", "/chats/c").expect(200)
    assert not rest_of(connection).endswith(b"0\r\n\r\n"), "half a history must not look complete"
    connection.close()
    large.get("/chats/c").error(404)


def test_damage_that_comes_in_the_middle_is_named_at_the_end(large, server):
    server.check_files = False
    connection = open_raw(large, "?state=none")
    connection.recv(100)
    flip(server.home.checkpoint_file("c", "int_020"))
    history = json.loads(rest_of_chunks(connection))
    assert damaged(history) == [("int_020", "integrity_auth")] and len(history["interactions"]) == 23


@pytest.mark.limit(120)
def test_the_newest_page_does_not_cost_more_in_a_long_chat(client, provider, figure):
    def measure(query):
        times = []
        for _ in range(9):
            began = time.monotonic()
            client.get("/chats/c" + query).expect(200)
            times.append(time.monotonic() - began)
        return sorted(times)[4] * 1000

    taken = {}
    for turns in (60, 600):
        say(client, provider, turns - (60 if taken else 0), size=1000)
        taken[turns] = {query: measure(query) for query in ("?limit=50&state=none", "?state=none")}
    figure(f"the newest 50 turns: {taken[60]['?limit=50&state=none']:.1f} ms of 60, {taken[600]['?limit=50&state=none']:.1f} ms of 600; all 600: {taken[600]['?state=none']:.1f} ms")
    assert taken[600]["?limit=50&state=none"] < 3 * taken[60]["?limit=50&state=none"] + 5 * SLACK
