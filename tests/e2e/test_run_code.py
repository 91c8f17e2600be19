"""run_code: whole programs, in Python and for the shell, in the sandbox."""
import json

import pytest
from support.provider import call, text, tools
from support.server import processes, sandbox_works, without_note
from support.timing import eventually

sandboxed = pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")
SECRET = "outside-secret-4471"


class Agent:
    def __init__(self, server, provider):
        self.server, self.provider, self.turns = server, provider, 0

    def run(self, language, code):
        """Makes the model run a program. Returns the tool_result."""
        self.turns += 1
        self.provider.plan(tools(call("run_code", {"language": language, "code": code}, f"call_{self.turns}")), text("done"))
        result = self.server.client.turn("c", f"turn {self.turns}").one("tool_result")
        return {"is_error": result["is_error"], "tool_output": without_note(result["tool_output"])}

    def prints(self, language, code):
        result = self.run(language, code)
        assert not result["is_error"], result
        return result["tool_output"]

    def fails(self, language, code):
        result = self.run(language, code)
        assert result["is_error"], result
        return result["tool_output"]


@pytest.fixture
def agent(make_server, provider):
    return Agent(make_server(provider, config={"approval_mode": "approve_all"}, environment={"CANARY_SECRET_KEY": SECRET}), provider)


def test_programs_print(agent):
    assert agent.prints("python", "for i in range(3):\n    print(i * 'ä\"\\'')\n") == "\nä\"'\nä\"'ä\"'\n"
    assert agent.prints("shell", "for i in 1 2; do\n  printf '%s\\n' \"$i'ä\"\ndone\n") == "1'ä\n2'ä\n"


def test_what_goes_wrong_is_told(agent):
    output = agent.fails("python", "def f():\n    raise ValueError('seven')\nf()\n")
    assert "ValueError: seven" in output and "line 2" in output
    assert "SyntaxError" in agent.fails("python", "def")
    assert "3" in agent.fails("shell", "echo before; exit 3")
    assert "language" in agent.fails("perl", "print 1")
    assert "code" in agent.fails("python", "")
    assert "code" in agent.fails("python", "#" * 200_001)


def test_nothing_can_be_typed_into_it_and_it_cannot_read_itself(agent):
    assert agent.prints("python", "import sys\nprint(repr(sys.stdin.read()))\n") == "''\n"
    assert agent.prints("shell", "cat; echo end") == "end\n"


def test_it_works_in_the_workspace_and_leaves_only_what_it_writes(agent):
    workspace = agent.server.home.workspace
    (workspace / "helper.py").write_text("def answer():\n    return 42\n")
    assert agent.prints("python", "import helper\nopen('out.txt', 'w').write(str(helper.answer()))\n") == "(no output)"
    assert (workspace / "out.txt").read_text() == "42"
    assert sorted(path.name for path in workspace.iterdir()) == ["helper.py", "out.txt"]


@sandboxed
@pytest.mark.parametrize("language,code", [
    ("python", "import os\nprint(os.environ)\nprint(open('/proc/self/cmdline').read())"),
    ("shell", "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; true"),
])
def test_it_sees_no_secret(agent, language, code):
    assert SECRET not in agent.prints(language, code)


@sandboxed
def test_it_is_in_the_sandbox(agent):
    port = agent.server.port
    refused = agent.fails("python", f"import urllib.request\nurllib.request.urlopen('http://127.0.0.1:{port}/healthz', timeout=2)")
    assert "URLError" in refused
    outside = agent.server.home.path / "outside.txt"
    agent.run("python", f"open({str(outside)!r}, 'w').write('x')")
    agent.run("shell", f"echo x > {outside}")
    assert not outside.exists()


def test_nothing_it_starts_outlives_it(agent):
    agent.run("python", "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '4716.5'])\n")
    eventually(lambda: not processes("4716.5"), "its child is gone")


def test_it_is_shown_while_it_runs_and_bounded(agent):
    agent.provider.plan(tools(call("run_code", {"language": "python", "code": "print('first')\nprint('second')"})), text("ok"))
    stream = agent.server.client.turn("c", "live")
    assert "".join(delta["content"] for delta in stream.all("tool_output_delta")) == "first\nsecond\n"
    assert len(agent.run("python", "print('x' * 20_000_000)")["tool_output"]) < 1_000_000


def test_it_asks_and_runs_what_was_shown(make_server, provider):
    server = make_server(provider)
    program = {"language": "python", "code": "print('approved')"}
    provider.plan(tools(call("run_code", program)), text("done"))
    stream = server.client.start("c", "go")
    asked = stream.until("approval_required")
    assert json.loads(asked["tool_input"]) == program and asked["risk"] == "high" and "runs a program" in asked["reason"]
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.finish()
    assert without_note(stream.one("tool_result")["tool_output"]) == "approved\n"


def test_cancelled_with_all_it_has_started(agent):
    agent.provider.plan(tools(call("run_code", {"language": "python", "code": "import subprocess\nprint('up')\nsubprocess.run(['sleep', '4717.5'])"})))
    stream = agent.server.client.start("c", "go")
    stream.until("tool_output_delta")
    agent.server.client.cancel("c", "int_001").expect(200)
    stream.finish("CANCELLED")
    eventually(lambda: not processes("4717.5"), "its child is gone")
