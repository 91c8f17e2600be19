"""Confirmation within the conversation: a tool requires the user's yes, which the model can pass on only after the user has spoken."""
import json
import sys

import pytest
from support.provider import call, text, tools
from support.timing import SLACK, eventually

# A server whose tool removes something once it is confirmed.
REMOVING = r"""
import json, pathlib, sys
for line in sys.stdin:
    request = json.loads(line)
    result = None
    if request.get("method") == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "r", "version": "1"}}
    elif request.get("method") == "tools/list":
        schema = {"type": "object", "properties": {"what": {"type": "string"}, "confirmed": {"type": "boolean"}}, "required": ["what"]}
        result = {"tools": [{"name": "remove", "inputSchema": schema}]}
    elif request.get("method") == "tools/call":
        given = request["params"]["arguments"]
        if given.get("confirmed"):
            with open(sys.argv[1], "a") as log:
                log.write(given["what"] + "\n")
            result = {"content": [{"type": "text", "text": "removed"}]}
        else:
            said = {"requires_confirmation": True, "message": "Remove " + given["what"] + " for ever?"}
            result = {"content": [{"type": "text", "text": json.dumps(said)}], "structuredContent": said}
    elif "id" in request:
        result = {}
    if result is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""


class World:
    def __init__(self, make_server, provider, home):
        self.make_server, self.provider, self.home = make_server, provider, home
        self.log = home.path / "removed"
        self.start()

    def start(self):
        removing = {"command": sys.executable, "args": ["-c", REMOVING, str(self.log)]}
        self.server = self.make_server(self.provider, self.home, config={"mcpServers": {"r": removing}, "approval_mode": "approve_all"})
        self.client = self.server.client

        def ready():
            return any(tool["name"] == "r__remove" for tool in self.client.get("/tools").json["tools"])

        eventually(ready, "the tool is there", 30 * SLACK)

    def turn(self, message, *rounds, edit=None):
        """Runs a turn and returns the results of its calls. A round is a list of arguments."""
        for number, calls in enumerate(rounds):
            self.provider.plan(tools(*[call("r__remove", arguments, f"call_{number}_{i}") for i, arguments in enumerate(calls)]))
        self.provider.plan(text("well"))
        stream = self.client.edit("c", edit, message) if edit else self.client.start("c", message)
        stream.finish()
        return [e["tool_output"] for e in stream.all("tool_result")]

    def removed(self):
        return self.log.read_text().split() if self.log.exists() else []


@pytest.fixture
def world(make_server, make_home, provider):
    return World(make_server, provider, make_home())


ASK, YES = {"what": "a"}, {"what": "a", "confirmed": True}


def test_the_model_asks_and_the_call_runs_after_the_users_yes(world):
    asked, = world.turn("remove a", [ASK])
    assert asked.startswith("Remove a for ever?\n") and "Ask the user" in asked and "requires_confirmation" not in asked
    assert world.removed() == []
    assert world.turn("yes", [YES]) == ["removed"]
    assert world.removed() == ["a"]


@pytest.mark.parametrize("rounds", [[[YES]], [[ASK], [YES]], [[ASK, YES]], [[YES, ASK]], [[ASK], ['{"what":"a","\\u0063onfirmed":true}']],
                                    [[ASK], ['{"confirmed":false,"what":"a","confirmed":true}']]])
def test_without_the_users_word_in_between_it_does_not_run(world, rounds):
    results = world.turn("remove a", *rounds)
    assert any("Not run" in each or "twice" in each for each in results) and "removed" not in results
    assert world.removed() == []


def test_a_yes_is_for_the_same_call_in_the_next_turn_and_once(world):
    world.turn("remove a", [ASK])
    other, first, second = world.turn("yes", [{"what": "b", "confirmed": True}, YES, {"confirmed": True, "what": "a"}])
    assert "Not run" in other and first == "removed" and "Not run" in second
    assert "Not run" in world.turn("and now?", [YES])[0]
    world.turn("remove a", [ASK])
    world.turn("let us talk of something else")
    assert "Not run" in world.turn("yes", [YES])[0]
    assert world.removed() == ["a"]


def test_a_restart_keeps_what_was_asked_and_an_edit_takes_it_back(world):
    world.turn("remove a", [ASK])
    world.server.kill()
    world.start()
    assert world.turn("yes", [YES]) == ["removed"]
    assert "Not run" in world.turn("hello", [YES], edit="int_001")[0]
    assert world.removed() == ["a"]


def test_a_confirmed_call_still_asks_for_approval(make_server, make_home, provider):
    world = World(make_server, provider, make_home())
    world.turn("remove a", [ASK])
    world.server.stop()
    removing = {"command": sys.executable, "args": ["-c", REMOVING, str(world.log)]}
    server = make_server(provider, world.home, config={"mcpServers": {"r": removing}})
    provider.plan(tools(call("r__remove", YES)), text("well"))
    stream = server.client.start("c", "yes")
    asked = stream.until("approval_required")
    assert json.loads(asked["tool_input"]) == YES and "approve_always" not in asked["allowed_decisions"]
    server.client.approve("c", "int_002", asked["approval_id"], scope="always").error(400, "invalid_member")
    assert server.client.interaction("c", "int_002")["status"] == "WAITING_APPROVAL"
    server.client.approve("c", "int_002", asked["approval_id"], False).expect(200)
    stream.finish()
    assert world.removed() == [] and server.client.get("/grants").json == {"grants": []}
