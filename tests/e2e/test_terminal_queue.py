"""Messages that wait in the terminal client while the server dies, stops, or the person leaves: none runs twice, and none is lost."""
import os
import signal

import pytest

from support.provider import Gate, text
from support.server import Home
from support.timing import eventually

CTRL_D, ESC = b"\x04", b"\x1b"
DEATHS = [signal.SIGKILL, signal.SIGTERM]


@pytest.fixture
def home(tmp_path, provider):
    home = Home(tmp_path / "user")
    settings = home.config / "reprise" / "reprise.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"max_retries": 0, "disconnect_grace_s": 0.2, "model": "test/scripted", "providers": {"test": '
                        f'{{"type": "openai", "base_url": "{provider.url}", "api_key": "sk-of-the-test"}}}}}}')
    settings.chmod(0o600)
    return home


@pytest.fixture
def chat(home, open_terminal):
    """A terminal with a server of its own."""
    return open_terminal(home, columns=100, rows=40).opened().ready()


@pytest.fixture
def attached(server, open_terminal):
    return lambda **how: open_terminal(server.home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}", **{"columns": 100, "rows": 40, **how}).opened()


def server_of(home):
    return int((home.user / ".local/share/reprise/chats/.lock").read_text().split()[0])


def queued(chat):
    return [line for line in chat.screen if "queued: " in line]


def said(provider):
    """All that the model was ever told by the person, at its last request."""
    return "\n".join(m["content"] for m in provider.requests[-1].messages if m["role"] == "user")


@pytest.mark.parametrize("death", DEATHS, ids=["killed", "stopped"])
def test_a_message_that_waited_when_the_server_went_runs_once(home, chat, provider, death):
    provider.plan(text("half", Gate()))
    provider.answer_with(lambda request: text("answered"))
    chat.say("begin").until("half").say("first waits").until("queued: first waits").say("second waits").until("queued: second waits")
    chat.type("half a line").ready_for("half a line")
    os.kill(server_of(home), death)
    # Each is either run by the server that starts again, or in the line, which Enter sends.
    eventually(lambda: chat.quiet(0.1) is not None and not queued(chat) and chat.screen[-1].endswith("half a line"), "none waits")
    chat.type("\r")
    eventually(lambda: "half a line" in said(provider), "the line was sent")
    chat.until("answered").ready()
    for waited in ("first waits", "second waits", "half a line"):
        assert said(provider).count(waited) == 1, said(provider)
    assert not queued(chat), chat.screen


@pytest.mark.parametrize("death", DEATHS, ids=["killed", "stopped"])
def test_what_waited_and_began_meanwhile_is_shown_as_a_run(home, chat, provider, death):
    provider.plan(text("half", Gate()))
    provider.answer_with(lambda request: text("it has run"))
    chat.say("begin").until("half").say("waits").until("queued: waits")
    os.kill(server_of(home), death)
    eventually(lambda: chat.quiet(0.1) is not None and not queued(chat) and any("> waits" in line for line in chat.screen), "it is shown, or in the line")
    if chat.screen[-1] != ">":
        chat.type("\r")
    chat.until("it has run").ready()
    assert said(provider).count("waits") == 1


def test_leaving_takes_back_what_waits_and_prints_it(attached, server, provider):
    gate = Gate()
    provider.plan(text("half", gate, " and whole"))
    chat = attached()
    long = "second " + "word " * 40 + "end"
    chat.say("begin").until("half").say("first waits").until("queued: first waits").say(long).until("queued: second").type(CTRL_D)
    chat.until("not sent").until("first waits").until("second word").until("end").until("the run is cancelled")
    assert chat.end() == 0
    assert server.client.get("/chats/c/queue").json["queue"] == []
    eventually(lambda: server.client.interaction("c", "int_001")["status"] == "CANCELLED", "it is cancelled")
    assert [i["user_message"] for i in server.client.history("c")["interactions"]] == ["begin"]


def test_leaving_another_clients_run_cancels_nothing(attached, server, provider):
    gate = Gate()
    provider.plan(text("half", gate, " and whole"))
    server.client.stream("POST", "/chats/c/interactions", {"user_message": "theirs", "on_disconnect": "continue"}).close()
    chat = attached()
    chat.until("half").say("mine").until("queued: mine").type(CTRL_D).until("not sent").until("mine")
    assert chat.end() == 0 and "cancelled" not in chat.text
    gate.release()
    eventually(lambda: server.client.interaction("c", "int_001")["status"] == "COMPLETED", "it goes on")
