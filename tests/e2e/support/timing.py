"""Time limits. A wait ends as soon as its condition holds; the limit only bounds it."""
import concurrent.futures
import os
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
