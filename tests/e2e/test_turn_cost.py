"""What a turn costs that does not depend on the machine's speed: instructions, allocations, syncs, changes of names, writes, bytes on disk and wire. (How often it looks at files depends
on how deep the folder lies, and is only told.) The thread that writes chat.json does so after a pause between turns, thus more often on a slow machine:
it is counted by itself, and may write once a turn.

A turn may cost 5 % more than the figures here; who makes it cheaper lowers them. Processor time belongs to scripts/bench.
"""
import collections
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.provider import text
from support.timing import SOON, eventually

TURNS = 20
KINDS = {
    "syncs": ("fsync", "fdatasync"),
    "names": ("rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat"),
    "looks": ("stat", "newfstatat", "statx", "openat", "openat2", "access", "readlink", "getdents64"),
    "writes": ("write", "pwrite64"),
}
MOST = {"new chat": {"names": 4, "writes": 9, "bytes": 10_040}, "same chat": {"names": 2, "writes": 9, "bytes": 3_500}}
# By what a sync makes durable besides (SyncReach in include/reprise/file_system.h).
# Of a turn in the mean of as many in new chats as in one chat; the bytes are those of the last turn in that chat.
MOST_INSIDE = {"instructions": 1_600_000, "allocations": 930, "bytes to the client": 753, "bytes to the model": 16_190}
SYNCS = {"all names": {"new chat": 1, "same chat": 1}, "new names": {"new chat": 2, "same chat": 2}, "itself": {"new chat": 4, "same chat": 2}}


def reach_of(folder):
    """What a sync reaches on this folder's file system, found in another way than the program's."""
    found = subprocess.run(["findmnt", "-n", "-o", "FSTYPE,MAJ:MIN", "--target", str(folder)], capture_output=True, text=True, check=True)
    kind, device = found.stdout.split()[:2]
    name = Path(f"/sys/dev/block/{device}").resolve().name
    if kind == "xfs" or (kind == "ext4" and list(Path("/proc/fs/jbd2").glob(f"{name}-*"))):
        return "all names"
    return "new names" if kind == "ext4" else "itself"


def bytes_below(folder):
    return sum(os.lstat(Path(where) / name).st_size for where, _, names in os.walk(folder) for name in names)


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
@pytest.mark.parametrize("kind", ["new chat", "same chat"])
def test_a_turn_costs_no_more_than_before(make_server, provider, tmp_path, kind, figure):
    provider.answer_with(lambda request: text("ok"))
    server = make_server(provider)
    for name in ("c", "c", "other"):  # what is done once
        server.client.turn(name, "hello")
    chats, pid, trace = server.home.data, server.process.pid, tmp_path / "trace"
    before = bytes_below(chats)
    calls = ",".join(f"?{call}" for kinds in KINDS.values() for call in kinds)
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-e", f"trace={calls}", "-o", str(trace), "-p", str(pid)], stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: tracer.poll() is not None or "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text(), "strace traces or ends")
        if tracer.poll() is not None:
            pytest.skip("this machine does not let strace trace")
        for number in range(TURNS):
            server.client.turn(f"c{number}" if kind == "new chat" else "c", "hello")
    finally:
        tracer.terminate()
        tracer.wait(SOON)
    told = trace.read_text(errors="replace")
    indexes = re.findall(r'^(\d+)\s+rename\w*\(.*"chat\.json"', told, re.MULTILINE)
    assert len(indexes) <= TURNS + 2, f"chat.json was written {len(indexes)} times in {TURNS} turns"  # the first three turns may still wait for it
    made = collections.Counter(call for thread, call in re.findall(r"^(\d+)\s+(\w+)\(", told, re.MULTILINE) if thread not in indexes)
    cost = {name: sum(made[call] for call in kinds) / TURNS for name, kinds in KINDS.items()}
    reach = reach_of(chats)
    server.stop()  # writes what is written after a pause, so that the bytes do not depend on the machine's speed
    cost["bytes"] = (bytes_below(chats) - before) / TURNS
    most = {**MOST[kind], "syncs": SYNCS[reach][kind]}
    figure(f"a turn in {'a new' if kind == 'new chat' else 'the same'} chat, a sync reaches {reach}: " + ", ".join(f"{value:.1f} {name}" for name, value in cost.items()))
    dearer = {name: (value, most[name]) for name, value in cost.items() if name in most and value > 1.05 * most[name]}
    assert not dearer, dearer


def run_turns(make_server, provider, home, turns, **options):
    """The log of a server after so many turns, and the bytes of the last one on the wire: to the client, to the model."""
    server = make_server(provider, home, **options)
    for name in ("c", "c", "other"):  # what is done once
        server.client.turn(name, "hello")
    for number in range(turns // 2):
        server.client.turn(f"c{number}", "hello")
        answer = server.client.request("POST", "/chats/c/interactions", {"user_message": "hello"}).expect(200).body
    server.stop()
    return re.sub(r"\x1b\[[0-9;]*m", "", server.log()), (len(answer), len(provider.requests[-1].raw)) if turns else ()


def instructions(log):
    """The program checks itself in a short process before it serves."""
    return max(int(each.replace(",", "")) for each in re.findall(r"I\s+refs:\s+([\d,]+)", log))


def allocations(log):
    return sum(map(int, re.findall(r"(?:malloc|realloc|calloc)\|\s+(\d+)", log)))


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind here")
@pytest.mark.skipif(any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")), reason="a sanitizer allocates by itself")
def test_a_turn_needs_no_more_instructions_and_allocations_than_before(make_server, make_home, provider, figure):
    provider.answer_with(lambda request: text("ok"))
    # Each extra thread or connection allocates once, so many turns share that.
    measures = {
        "instructions": (instructions, 2 * TURNS, {"wrapper": ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")}),
        "allocations": (allocations, 20 * TURNS, {"environment": {"LD_PRELOAD": "libmemusage.so"}}),  # memusage(1), of libc6
    }
    cost, wire = {}, ()
    for name, (read, turns, options) in measures.items():
        idle, _ = run_turns(make_server, provider, make_home(), 0, **options)
        busy, sent = run_turns(make_server, provider, make_home(), turns, **options)
        cost[name] = (read(busy) - read(idle)) / turns
        wire = wire or sent
    cost["bytes to the client"], cost["bytes to the model"] = wire
    assert min(cost.values()) > 100, cost  # each was counted
    figure("a turn: " + ", ".join(f"{value:,.0f} {name}" for name, value in cost.items()))
    dearer = {name: (value, MOST_INSIDE[name]) for name, value in cost.items() if value > 1.05 * MOST_INSIDE[name]}
    assert not dearer, dearer
