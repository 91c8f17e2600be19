"""Fixtures of the tests with several servers on one database: those of the end-to-end tests, and clusters."""
import importlib.util
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
E2E = HERE.parent / "e2e"
sys.path.insert(0, str(HERE))
_spec = importlib.util.spec_from_file_location("e2e_conftest", E2E / "conftest.py")
sys.modules["e2e_conftest"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules["e2e_conftest"])
from e2e_conftest import *  # noqa: E402, F403
from support import cluster as parts  # noqa: E402
from support import postgres as pg  # noqa: E402
from support.history import History  # noqa: E402
from support.way import Way  # noqa: E402

MUST_RUN = "cluster" in os.environ.get("REPRISE_MUST_RUN", "").split(",")


def pytest_collection_modifyitems(items):
    # If the tests must run, a missing program is a failure. The hook below does the same for skips of single tests.
    if parts.missing() and MUST_RUN:
        raise pytest.UsageError(f"{', '.join(parts.missing())} not installed, and the tests with several servers must run (REPRISE_MUST_RUN)")
    if parts.missing():
        skip = pytest.mark.skip(reason=f"{', '.join(parts.missing())} NOT INSTALLED (scripts/deps cluster): nothing is tested with several servers")
        for item in items:  # of the whole run, including other folders
            if HERE in item.path.parents:
                item.add_marker(skip)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Replaces the hook of the end-to-end tests and includes its work."""
    report = (yield).get_result()
    if MUST_RUN and report.skipped and "NOT INSTALLED" in str(report.longrepr):
        report.outcome, report.longrepr = "failed", f"it must run (REPRISE_MUST_RUN): {report.longrepr[2]}"
    if report.failed:
        item.has_failed = True


@pytest.fixture(scope="session")
def postgres():
    server = pg.Postgres(settings=["max_connections=200"])
    yield server
    server.close()


@pytest.fixture
def own_postgres():
    """A PostgreSQL of its own for tests that stop it or make it crash."""
    server = pg.Postgres()
    yield server
    server.close()


@pytest.fixture
def make_way():
    """Makes proxies to a database that a test can cut, each for one server."""
    ways = []

    def make(postgres, url):
        ways.append(Way(postgres, url))
        return ways[-1]

    yield make
    for each in ways:
        each.close()


@pytest.fixture
def history():
    return History()


@pytest.fixture
def make_cluster(tmp_path, make_way, make_server, provider, request):
    """Starts `count` servers on a new database, in the suite's PostgreSQL unless the test uses `own_postgres`. The instances in `ways` connect to it
    through proxies of their own: cluster.ways."""
    clusters = []

    def make(count=3, balance=False, ways=(), environments=None, binary=None, **settings):
        server = request.getfixturevalue("own_postgres" if "own_postgres" in request.fixturenames else "postgres")
        environments = environments or {}

        def start(home, config, arguments):
            number = int(home.path.name.removeprefix("instance"))
            return make_server(provider, home=home, config=config, arguments=arguments, environment=environments.get(number),
                               binary=cluster.binary)

        cluster = parts.Cluster(tmp_path, server.new_database(), start, {"disconnect_grace_s": 0.2, "drain_s": 0, **settings})
        clusters.append(cluster)
        cluster.binary = binary or cluster.binary
        cluster.postgres, cluster.ways = server, {}
        for number in range(1, count + 1):
            if number in ways:
                cluster.ways[number] = make_way(server, cluster.url)
                cluster.own[number] = {"store": {"type": "postgres", "url": cluster.ways[number].url}}
            cluster.add()
        if balance:
            cluster.client = cluster.balance()
        return cluster

    yield make
    for each in clusters:  # before their database goes away
        each.close()
        for server in each.servers:
            if server and not server.stopped and server.process.poll() is None:
                server.stop()
