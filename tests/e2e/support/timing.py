"""Time limits. A wait ends as soon as its condition holds; the limit only bounds it."""
import concurrent.futures
import os
import pathlib
import signal
import threading
import time

# Sanitizer builds are several times slower: scripts/test widens every limit and figure by this factor.
SLACK = float(os.environ.get("REPRISE_E2E_SLACK", "1"))
# How long anything may take that should happen "at once".
SOON = 10 * min(SLACK, 3)


def eventually(condition, what, limit=SOON):
    """Polls for the few outside conditions without a notification: a process is gone, a file appears."""
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {limit:.0f} s: {what}"
        time.sleep(0.005)


def halt(pid):
    """Stops a process until SIGCONT. The signal alone leaves its threads running for a moment, longer on a busy machine."""
    def is_stopped():
        states = [task.read_text().rsplit(")", 1)[1].split()[0] for task in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
        return states and all(state == "T" for state in states)
    os.kill(pid, signal.SIGSTOP)
    eventually(is_stopped, f"process {pid} has stopped")


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def at_once(calls):
    """Makes the calls at the same moment, each on its own thread. Returns their results in this order."""
    barrier = threading.Barrier(len(calls))

    def make(call):
        barrier.wait()
        return call()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(make, calls))
