"""Titles that the model makes after the first answer (`titles`: `model`)."""
import time

import pytest

from support import postgres as pg
from support.provider import Gate, failure, text
from support.timing import SOON


# A server that stops without such a pause cancels the request.
CONFIG = {"titles": "model", "drain_s": 20}


@pytest.fixture
def server(make_server, provider):
    return make_server(provider, config=CONFIG)


def title_of(server, chat="c"):
    return server.client.get(f"/chats/{chat}").expect(200).json["title"]


def eventually(server, title, chat="c"):
    deadline = time.monotonic() + SOON
    while title_of(server, chat) != title:
        assert time.monotonic() < deadline, title_of(server, chat)
        time.sleep(0.02)


def test_the_beginning_of_the_message_is_the_title_by_default(make_server, provider):
    server = make_server(provider)
    provider.plan(text("hello"))
    server.client.turn("c", "say hello")
    server.stop()
    assert len(provider.requests) == 1


def test_the_model_makes_it_once_from_a_little_text(server, provider):
    provider.plan(text("answer " + "y" * 5000), text('"A fine title"\n\nand more'), text("again"))
    server.client.turn("c", "question " + "x" * 50_000)
    eventually(server, "A fine title")
    request = provider.requests[1]
    assert len(request.raw) < 4000 and "tools" not in request.body
    told = request.conversation[-1]["content"]
    assert told.startswith("<message>\nquestion xxx") and "\n<answer>\nanswer yyy" in told and len(told) < 2200
    server.client.turn("c", "and now?")
    server.stop()
    assert len(provider.requests) == 3


def test_the_run_ends_before_the_title_is_made_and_a_persons_title_wins(make_server, make_home, provider):
    home, gate = make_home(), Gate()
    server = make_server(provider, home=home, config=CONFIG)
    provider.plan(text("hello"), text("A title ", gate, "of the model"))
    server.client.turn("c", "say hello")
    gate.wait_reached()
    assert title_of(server) == "say hello"
    server.client.request("PATCH", "/chats/c", {"title": "Mine"}).expect(200)
    gate.release()
    server.stop()
    assert "a model made no title" not in server.log()  # it was made, and left aside
    assert title_of(make_server(provider, home=home)) == "Mine"


@pytest.mark.parametrize("answer", ["", "\n \n", "a\x1b[2Jb", "right\u202eleft", "\u0000x", "***"])
def test_an_answer_that_is_no_title_changes_nothing(make_server, make_home, provider, answer):
    home = make_home()
    server = make_server(provider, home=home, config=CONFIG)
    provider.plan(text("hello"), text(answer) if answer else text())
    server.client.turn("c", "say hello")
    provider.wait_requests(2)
    server.stop()
    assert "a model made no title" in server.log()
    assert title_of(make_server(provider, home=home)) == "say hello"


def test_a_long_title_is_cut(server, provider):
    provider.plan(text("hello"), text("ü" * 20_000))
    server.client.turn("c", "say hello")
    eventually(server, "ü" * 80)


def test_a_failure_fails_nothing(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home, config=CONFIG)
    provider.plan(text("hello"), failure(500, "no title today"), text("on"))
    server.client.turn("c", "say hello")
    provider.wait_requests(2)
    server.client.turn("c", "go on")
    server.stop()
    assert title_of(make_server(provider, home=home)) == "say hello"


def test_the_offline_model_is_not_asked(make_server):
    server = make_server(config=CONFIG)
    server.client.turn("c", "what is 2+2?")
    server.stop()
    assert "a model made no title" not in server.log()


def test_a_deleted_chat_and_a_server_that_stops_need_no_title(make_server, provider):
    gates = Gate(), Gate()
    server = make_server(provider, config={"titles": "model"})
    for chat, gate in zip("ab", gates):
        provider.plan(text("hello"), text("A title ", gate))
        server.client.turn(chat, "say hello")
        gate.wait_reached()
    server.client.request("DELETE", "/chats/a").expect(200)
    gates[0].release()
    server.stop()
    gates[1].wait_left()


@pytest.mark.skipif(pg.programs() is None, reason="PostgreSQL is NOT INSTALLED (scripts/deps test): nothing is tested against it")
def test_the_same_in_a_database(make_instance, provider):
    server, gate = make_instance(**CONFIG), Gate()
    provider.plan(text("hello"), text("A fine title"), text("hello"), text("A title ", gate, "of the model"))
    server.client.turn("a", "say hello")
    eventually(server, "A fine title", "a")
    server.client.turn("b", "say hello")
    gate.wait_reached()
    server.client.request("PATCH", "/chats/b", {"title": "Mine"}).expect(200)
    gate.release()
    server.stop()
    assert "a model made no title" not in server.log()
    assert title_of(make_instance(), "b") == "Mine"
