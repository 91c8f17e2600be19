"""What open folders cost the server, and that folders which nobody uses any more cost nothing."""
import os
import pathlib

import pytest
from support.provider import call, text, tools
from support.timing import eventually, median
from test_folders import ALL, World

SOAK = int(os.environ.get("REPRISE_FOLDER_SOAK", "200"))  # folders; 2,000 for the figure
KEPT = 32

pytestmark = pytest.mark.skipif("SAN_OPTIONS" in "".join(os.environ), reason="sanitizers keep what is freed")


class Cost:
    def __init__(self, world):
        self.world, self.pid = world, world.server.process.pid

    def descriptors(self):
        return len(list(pathlib.Path(f"/proc/{self.pid}/fd").iterdir()))

    def inotify(self):
        found = 0
        for each in pathlib.Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                found += "inotify" in os.readlink(each)
            except FileNotFoundError:
                pass
        return found

    def private_kb(self):
        """Memory that is this process's alone, without pages of files."""
        for line in pathlib.Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Private_Dirty:"):
                return int(line.split()[1])
        raise AssertionError("no Private_Dirty")


@pytest.fixture
def world(make_server, provider):
    return World(make_server(provider, config=ALL), provider)


def use(world, number):
    """A turn that opens a folder and has all that belongs to it made: history, commands, instructions."""
    folder = world.folder(f"many/{number}")
    (folder / "AGENTS.md").write_text("words")
    world.provider.plan(tools(call("write_file", {"path": "x", "content": str(number)}, "call_1"), call("run_shell", {"command": "true"}, "call_2")), text("done"))
    world.client.turn(f"chat{number}", "go", workspace=str(folder))
    return folder


@pytest.mark.limit(120 + SOAK)
def test_open_folders_cost_little_and_those_left_nothing(world, figure):
    world.server.check_records = world.server.check_files = False  # of hundreds of chats
    cost = Cost(world)
    world.call("warm", "write_file", {"path": "x", "content": "1"})
    world.call("warm", "run_shell", {"command": "true"})
    use(world, 0)
    one = (cost.private_kb(), cost.descriptors(), cost.inotify())
    for number in range(1, KEPT):
        use(world, number)
    kept = (cost.private_kb(), cost.descriptors(), cost.inotify())
    each_kb, each_fd = (kept[0] - one[0]) / (KEPT - 1), (kept[1] - one[1]) / (KEPT - 1)
    figure(f"{KEPT} open folders: {each_kb:.0f} KB and {each_fd:.1f} descriptors each")
    assert each_kb < 2048 and each_fd < 4, (one, kept)
    samples = []
    for number in range(KEPT, SOAK):
        use(world, number)
        if number % 8 == 0:
            samples.append((cost.private_kb(), cost.descriptors(), cost.inotify()))
    half = len(samples) // 2
    early, late = [[median([each[i] for each in part]) for i in range(3)] for part in (samples[:half], samples[half:])]
    per_folder = (late[0] - early[0]) / (8 * half)
    figure(f"{SOAK} folders used in turn: {late[0]} KB and {late[1]} descriptors, {per_folder:.1f} KB more for each folder left")
    assert late[1] <= early[1] + 4 and late[2] <= KEPT + 1, (early, late)
    assert per_folder < 60, "the record of a chat is all that stays"  # the index has a line for each chat
    # A folder that was let go opens again.
    assert world.call("chat1", "read_file", {"path": "x"}) == "1"


def test_a_folder_that_is_used_is_not_let_go(world, provider):
    """More folders than are kept, while one runs a job and another waits for its model."""
    from support.provider import Gate, Reply
    gate, reply = Gate(), tools(call("write_file", {"path": "late", "content": "1"}))
    provider.plan(Reply([gate, *reply.steps]))
    busy = world.folder("busy")
    stream = world.client.start("busy", "go", workspace=str(busy))
    gate.wait_reached()
    for number in range(KEPT + 4):
        use(world, number)
    provider.plan(text("done"))
    gate.release()
    stream.finish()
    assert (busy / "late").read_text() == "1"
    cost = Cost(world)
    eventually(lambda: cost.inotify() <= KEPT + 2, "the oldest are let go")
