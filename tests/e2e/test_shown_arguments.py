"""At every door a call runs exactly as shown to the person: numbers as written, and nothing pushed out of sight."""
import subprocess

import pytest

from support.acp import Agent
from support.agui import Thread
from support.mcp import server_of
from support.mcp_client import SESSIONS, McpClient
from support.provider import call, text, tools
from support.server import BINARY
from support.terminal import Terminal

LONG = "9007199254740993"  # no double has this value
GAPS = '{"n": ' + LONG + "," + "\n" * 400 + '"last": "the end"}'


@pytest.fixture
def counting(make_server, provider):
    """A server with a tool that takes a number and needs approval."""
    schema = "{'name': 'count', 'inputSchema': {'type': 'object', 'properties': {'n': {'type': 'number'}, 'last': {'type': 'string'}}}}"
    server = make_server(provider, config={"mcpServers": {"s": server_of(schema, "'counted'")}})
    provider.plan(tools(call("s__count", GAPS)), text("done"))
    return server


def test_at_the_terminal(counting):
    chat = Terminal(counting.home, "chat", "c", "--url", f"http://127.0.0.1:{counting.port}", columns=120, rows=40)
    try:
        chat.until("> ").say("go").until("n: " + LONG).until("last: the end").until("allow?").answer("y").until("done").ready().say("/quit")
        assert chat.end() == 0
    finally:
        chat.kill()


def test_in_an_editor(counting):
    agent = Agent(counting.home, "--url", f"http://127.0.0.1:{counting.port}")
    try:
        session = agent.new(counting.home.workspace)
        number = agent.prompt(session, "go")
        request = agent.asked()
        shown = request["params"]["toolCall"]["rawInput"]
        assert isinstance(shown, str) and LONG in shown, "editors read JSON numbers as doubles"
        assert "\n\n" not in str(request["params"]["toolCall"].get("content", "")).replace("\\n", "\n")
        agent.choose(request, "allow_once")
        assert agent.answer(number)["stopReason"] == "end_turn"
    finally:
        agent.close()


def test_in_a_form_of_a_client_of_mcp(counting):
    asked = McpClient(counting, SESSIONS).start("ask", message="go", chat_id="c")
    question, form = asked.question()
    assert LONG in form["message"] and "the end" in form["message"] and "\n\n" not in form["message"], form["message"]
    asked.reply(question, decision="approve")
    asked.result()


def test_at_a_front_end(counting):
    interrupt = Thread(counting).run("go").interrupts[0]
    assert LONG in interrupt["message"] and "the end" in interrupt["message"] and "\n\n" not in interrupt["message"], interrupt["message"]


def test_on_the_command_line(counting):
    stream = counting.client.start("c", "go")
    stream.until("approval_required")
    listed = subprocess.run([str(BINARY), "approvals", "--data-dir", str(counting.home.data)], capture_output=True, text=True, check=True,
                            cwd=counting.home.path, env=counting.home.environment()).stdout
    assert LONG in listed and "the end" in listed and "\n\n" not in listed.strip(), listed
    stream.close()
