"""Recorded turns of every kind: each is replayed exactly, and each body that a provider received is rebuilt from the record, byte for byte.

The chats are those of the recorded suite (support/make_suite.py), recorded anew under other names. REPRISE_RECORDED_ROUNDS=18 records more than 1,000 turns; one
round has more than 50.
"""
import json
import os
import re
import shutil
import subprocess

import pytest
from support.make_suite import CHATS, CONFIG, SUITE, UNREACHABLE, command
from support.provider import text
from support.server import BINARY, reprise
from support.timing import SLACK, SOON

ROUNDS = int(os.environ.get("REPRISE_RECORDED_ROUNDS", "1"))


class Renamed:
    """An object whose functions get another name of the chat."""

    def __init__(self, inner, old, new):
        self.inner, self.old, self.new = inner, old, new

    def __getattr__(self, name):
        member = getattr(self.inner, name)
        if name == "client":
            return Renamed(member, self.old, self.new)
        if not callable(member):
            return member
        return lambda *args, **more: member(*[self.rename(each) for each in args], **{key: self.rename(each) for key, each in more.items()})

    def rename(self, value):
        if isinstance(value, dict):
            return {key: self.rename(each) if key in ("id", "chat_id", "X-Chat-Id") else each for key, each in value.items()}
        if not isinstance(value, str):
            return value
        return self.new if value == self.old else re.sub(f"^/chats/{self.old}(?=/|$)", f"/chats/{self.new}", value)


def recorded(make_server, provider):
    """The chats, each with its server."""
    base = provider.url.removesuffix("/v1")
    config = json.loads(CONFIG.read_text().replace(UNREACHABLE, base))
    config.pop("mcpServers")
    together = make_server(config=config)
    for number in range(ROUNDS):
        for name, (function, more) in CHATS.items():
            server = together if not more else make_server(config={**config, **more}, trust=True)
            shutil.rmtree(server.home.workspace)
            server.home.workspace.mkdir()
            provider.forget_plan()
            provider.answer_with(None)
            function(Renamed(server, name, f"{name}-{number}"), provider)
            yield server, f"{name}-{number}"


@pytest.mark.limit(60 + 60 * ROUNDS)
@pytest.mark.lenient("the chats of the suite send what strict providers refuse")
def test_every_turn_is_replayed_and_every_body_is_rebuilt(make_server, provider, figure):
    turns, rebuilt = 0, []
    for server, chat in list(recorded(make_server, provider)):
        server.check_records = False  # done here, for all branches
        for turn in server.client.history(chat, branches="all")["interactions"]:
            path = f"/chats/{chat}/interactions/{turn['id']}"
            report = server.client.post(f"{path}/replay", {"mode": "recorded"}).expect(200).json
            assert report["match"], (chat, turn["id"], report)
            turns += 1
            sent = server.client.get(f"{path}/requests").json
            assert sent["on_record"] or not turn["user_message"], (chat, turn["id"])
            rebuilt += [server.client.get(f"{path}/requests/{index}").body for index in range(len(sent["requests"]))]
    assert turns >= 50 * ROUNDS
    assert sorted(rebuilt) == sorted(each.raw for each in provider.requests), "a body is another, or one is missing"
    figure(f"{turns} recorded turns: {turns} replayed exactly, and all {len(rebuilt)} bodies that providers received rebuilt byte for byte")


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
def test_without_a_model_nothing_is_connected_to_and_no_program_is_run(make_home, tmp_path):
    """Only documents are read again by a program, in its sandbox; the chat with some is left out."""
    home = make_home()
    suite = shutil.copytree(SUITE, tmp_path / "suite", ignore=shutil.ignore_patterns("attachments*"))
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-f", "-qq", "-e", "trace=connect,execve", "-o", str(trace), *map(str, command(home, suite))], env=home.environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10 * SOON, check=False)
    if "ptrace" in done.stderr:
        pytest.skip("this machine does not let strace trace")
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])
    calls = [line.split(maxsplit=1)[1] for line in trace.read_text().splitlines() if "connect(" in line or "execve(" in line]
    # The prompt says whether commands run in a sandbox, which is found out by one that ends at once.
    trial = ('execve("/usr/bin/bwrap"', 'execve("/bin/sh", ["/bin/sh", "-c", "if [ ', 'execve("/bin/sh", ["/bin/sh", "-c", "exit 0"]')
    begun = re.compile(r'execve\("/proc/self/fd/\d+", \[.*"/bin/sh", "-c", "exit 0"\]')  # by reprise-start, in the sandbox
    others = [each for each in calls if not each.startswith(trial) and not begun.match(each) and "sa_family=AF_UNIX" not in each]
    assert len(others) == 1 and others[0].startswith(f'execve("{BINARY}"'), others
    assert sum("bwrap" in each for each in calls) <= 2, calls


def test_a_thousand_turns_take_little_time(make_server, provider, tmp_path, figure):
    """A figure for CI, and a limit where REPRISE_RECORDED_ROUNDS is set: 3 s for 1,000 turns, 2 ms for a short one."""
    server = make_server(provider)
    for number in range(20):
        provider.plan(text(f"Answer {number}."))
        server.client.turn("c", f"Question {number}?")
    exported = reprise(server.home, "export", "c", "--data-dir", server.home.data)[1]
    suite = tmp_path / "suite"
    suite.mkdir()
    for number in range(50 if ROUNDS > 1 else 5):
        (suite / f"c{number}.json").write_text(exported)
    status, output, messages = reprise(server.home, "test", suite, "--json", "--config", "server.json", "--workspace", server.home.workspace)
    assert status == 0, (output[:3000], messages)
    found = json.loads(output)
    each = sorted(turn["ms"] for turn in found["turns"])[len(found["turns"]) // 2]
    figure(f"reprise test: {len(found['turns'])} short turns in {found['seconds']:.2f} s, {each:.2f} ms a turn (median)")
    if ROUNDS > 1:
        assert len(found["turns"]) == 1000 and found["seconds"] < 3 * SLACK and each < 2 * SLACK
