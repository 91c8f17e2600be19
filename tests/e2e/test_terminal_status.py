"""The status line of the terminal client, what a waiting screen writes, and how fast it starts and draws."""
import os
import re
import statistics
from pathlib import Path

import pyte
import pytest

from support.provider import Gate, call, text, tools
from support.timing import SLACK, eventually
from test_folder_config import own_configuration
from test_plan_mode import mode_of, set_mode

CLEAR = b"\x15"
RUNNING = re.compile("[\u2800-\u28ff] ")


@pytest.fixture
def alone(make_home, provider, open_terminal):
    def make(config=None, git=None, **how):
        home = make_home()
        own_configuration(home, provider, **(config or {}))
        if git:
            (home.path / ".git").mkdir()
            (home.path / ".git" / "HEAD").write_text(git)
        return home, open_terminal(home, "--chat", "c", **{"columns": 120, "rows": 40, **how}).opened().ready()
    return make


def status(chat):
    """The line above the input, at an idle prompt."""
    lines = chat.screen
    assert lines[-1].startswith(">"), lines
    return lines[-2]


def shows(chat, words):
    eventually(lambda: chat.quiet(0.02) is not None and words in status(chat), words)
    return chat


def test_it_tells_model_folder_branch_mode_and_context(alone, provider):
    provider.plan(text("fine"))
    home, chat = alone(git="ref: refs/heads/my-branch\n", columns=200)
    shows(chat, f" · {home.path} (my-branch) · mode ask")
    shows(chat.say("/mode edits").until("until you leave").ready(), "mode edits")
    (home.path / ".git" / "HEAD").write_text("0123456789abcdef\n")
    chat.say("hello").until("fine").ready()
    shows(chat, "(01234567) · mode edits")
    shows(chat.say("/model offline").until("go to offline").ready(), "offline · ")


def test_the_mode_is_the_one_that_holds(server, open_terminal, provider):
    provider.answer_with(lambda request: text("fine"))
    server.client.turn("c", "hello")
    set_mode(server.client, "c", "approve_all")
    chat = open_terminal(server.home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}", columns=120, rows=40).opened().ready()
    shows(chat, "mode approve_all")
    shows(chat.say("/mode ask").until("is asked about").ready(), "mode ask")
    assert mode_of(server.client) == "ask"
    set_mode(server.client, "c", "auto")  # by somebody else
    shows(chat, "mode auto")
    shows(chat.say("/mode edits").until("until you leave").ready(), "mode edits")
    set_mode(server.client, "c", "approve_all")
    shows(chat, "mode approve_all")


def test_asking_holds_where_the_server_does_not_ask(make_server, open_terminal, provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "1"})), text("done"))
    server = make_server(provider, config={"approval_mode": "approve_all"})
    chat = open_terminal(server.home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}", columns=120, rows=40).opened().ready()
    shows(chat, "mode approve_all")
    shows(chat.say("/mode ask").until("is asked about").ready(), "mode ask")
    chat.say("write").until("allow?").answer("y").until("done").ready()
    shows(chat, "mode ask")


@pytest.mark.parametrize("git", ["", "ref: refs/heads/\x1b[31mred\n", "gitdir: nowhere"], ids=["empty", "hostile", "lost"])
def test_a_strange_branch_is_shown_without_harm(alone, git):
    _, chat = alone(git=git)
    assert "mode ask" in status(chat) and b"\x1b[31mred" not in chat.raw


@pytest.mark.parametrize("columns", [120, 60, 40, 24])
def test_it_is_one_row_at_any_width_and_never_leaves_out_an_unusual_mode(alone, columns):
    _, chat = alone(columns=columns, git="ref: refs/heads/a-rather-long-name-of-a-branch\n")
    chat.say("/mode all").until("/mode all").quiet(0.3)
    assert "mode all" in status(chat) and len(status(chat)) <= columns


def test_it_stays_out_of_the_scroll_back(alone, provider):
    """Read by a screen with a history, as a terminal keeps one."""
    provider.answer_with(lambda request: text("\n\n".join(f"line {n} of it" for n in range(60))))
    _, chat = alone(rows=20, columns=80)
    for _ in range(3):
        chat.say("go").until("line 59 of it").ready()
        chat.type("/mo").quiet(0.1)
        chat.type(CLEAR).ready()
    chat.say("/quit").end()
    screen = pyte.HistoryScreen(80, 20, history=5000)
    pyte.ByteStream(screen).feed(re.sub(rb"\x1b\[[<>][0-9;]*[um]", b"", chat.raw))
    above = ["".join(row[column].data for column in range(80)).rstrip() for row in screen.history.top]
    everything = [line for line in above + [line.rstrip() for line in screen.display] if line]
    assert sum("mode ask" in line for line in everything) == 1, "only the first line"
    assert not any("Esc closes" in line or line.startswith("  /mode") or RUNNING.match(line) for line in everything), everything
    assert sum(line.endswith("line 30 of it") for line in everything) == 3


def test_a_waiting_screen_writes_little(alone, provider):
    provider.plan(text("half of it", Gate()), tools(call("run_shell", {"command": "true"})))
    _, chat = alone()
    assert len(chat.quiet(2)) == 0, "an idle one writes nothing"
    chat.say("go").until("half of it").quiet(1)
    assert len(chat.quiet(4)) < 4 * 200
    chat.type(b"\x03").until("(cancelled)").ready().say("ask").until("allow?").quiet(1)
    assert len(chat.quiet(4)) < 4 * 200


def processor_time(pid):
    """In seconds, of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_first_prompt_costs_little(alone, open_terminal):
    """With a server that runs. Time of the processor, because others use it too."""
    home, _ = alone()
    times = []
    for number in range(5):
        chat = open_terminal(home, "--chat", f"n{number}", columns=100, rows=30).opened().ready()
        times.append(processor_time(chat.pid))
        chat.kill()
    assert statistics.median(times) < 0.06 * SLACK, times


def test_a_long_answer_with_code_costs_little(alone, provider):
    code = "".join(f'  if (value_{n} == "text {n}") return {n};  // number {n}\n' for n in range(10_000))
    answer = f"Here:\n\n```cpp\n{code}```\n\nThe end."
    provider.plan(text(answer))
    _, chat = alone(columns=100)
    before = processor_time(chat.pid)
    chat.say("go").until("The end.").ready()
    took = processor_time(chat.pid) - before
    assert b"\x1b[35mif" in chat.raw and b"\x1b[32m\"text 9999\"" in chat.raw
    assert took < 0.5 * SLACK, took
