"""Fixtures of the end-to-end tests: servers, a scripted provider, a time limit for every test."""
import faulthandler
import os
import pathlib
import signal
import sys
import threading
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.dont_write_bytecode = sys.pycache_prefix is None  # not into the checkout
pytest.register_assert_rewrite("support.client", "support.server")

from support import postgres as pg  # noqa: E402
from support import strict  # noqa: E402
from support.cluster import join  # noqa: E402
from support.provider import Provider, ill_formed  # noqa: E402
from support.server import BINARY, Home, Server  # noqa: E402
from support.terminal import Terminal  # noqa: E402
from support.timing import SLACK  # noqa: E402

FIGURES = []


def may_set_signals():
    """Whether this is the main thread. A slow start of a pytest-xdist worker makes another thread run the tests."""
    return threading.current_thread() is threading.main_thread()


def heed(number):
    """A process started by nohup or by a script's & ignores such a signal, and so would every program that a test starts. With a handler here, these
    start with the signal's default action."""
    if signal.getsignal(number) == signal.SIG_IGN and may_set_signals():
        signal.signal(number, lambda *_: None)


heed(signal.SIGINT)
heed(signal.SIGHUP)
heed(signal.SIGQUIT)


def pytest_configure(config):
    config.addinivalue_line("markers", "limit(seconds): the time this test may take")
    config.addinivalue_line("markers", "lenient(why): what it sends is refused by real providers, and that is meant")
    config.addinivalue_line("markers", "large: moves so many megabytes that under a sanitizer it would time the sanitizer")
    if not BINARY.exists():
        pytest.exit(f"{BINARY} is not built (scripts/build, or set REPRISE_BIN)", 2)


class TookTooLong(BaseException):
    """Not a TimeoutError, which is an OSError: tests that wait for a server catch these and retry."""


def seconds_of(item):
    marker = item.get_closest_marker("limit")
    return int((marker.args[0] if marker else 40) * min(SLACK, 6))


def limited(item):
    """Limits one phase of a test. Setup and teardown start and stop servers and browsers, which can hang, too."""
    seconds = seconds_of(item)

    def expired(*_):
        faulthandler.dump_traceback(file=sys.__stderr__)
        raise TookTooLong(f"the test takes longer than {seconds} s")

    if not may_set_signals():
        yield
        return
    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds, 10)  # repeated, in case something swallows it
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    if time.time() > float(os.environ.get("REPRISE_TEST_UNTIL", "inf")):  # set by scripts/test
        pytest.skip("OUT OF TIME: this machine was too slow for it (REPRISE_TEST_UNTIL)")
    yield from limited(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    yield from limited(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item):
    yield from limited(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """The last resort ends a process that no signal interrupts. Then pytest-xdist names the test and starts another process."""
    faulthandler.dump_traceback_later(3 * seconds_of(item) + 60, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(config, items):
    """REPRISE_E2E_CASES=8 keeps eight cases of each test that has more. REPRISE_E2E_PART=1/3 keeps the second third of the tests. Which ones they are depends
    on the commit (by other bytes than the strict sample)."""
    part, parts = map(int, os.environ.get("REPRISE_E2E_PART", "0/1").split("/"))
    cases = {}
    for item in items:
        cases.setdefault((item.path, item.originalname), []).append(item.nodeid)
    most = int(os.environ.get("REPRISE_E2E_CASES", len(items) or 1))
    chosen = {each for ids in cases.values() for each in sorted(ids, key=lambda each: strict.drawn(each, 256, byte=3))[:most]}
    kept, left = [], []
    for item in items:
        (kept if item.nodeid in chosen and strict.drawn(item.nodeid, parts, byte=1) == part else left).append(item)
    config.hook.pytest_deselected(items=left)
    # If time may run out, another commit's tests are left out than those of the last one. Those of several servers stay first, because they wait the most.
    if "REPRISE_TEST_UNTIL" in os.environ:
        kept.sort(key=lambda item: "cluster" not in item.path.parts and 1 + strict.drawn(item.path.name, 1000, byte=2))
    items[:] = kept


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    report = (yield).get_result()
    if report.failed:
        item.has_failed = True


def pytest_sessionfinish(session):
    if browser := sys.modules.get("support.browser"):
        browser.end_idle()
    if hasattr(session.config, "workeroutput"):  # a worker of pytest-xdist
        session.config.workeroutput["figures"] = FIGURES


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    FIGURES.extend(getattr(node, "workeroutput", {}).get("figures", []))


def pytest_terminal_summary(terminalreporter):
    for line in FIGURES:
        terminalreporter.write_line(line)


@pytest.fixture
def figure():
    """Records a measured figure; all are printed at the end of the run."""
    return FIGURES.append


@pytest.fixture(autouse=True)
def strict_provider(request):
    """Makes a sample of the tests (all with REPRISE_E2E_STRICT=all) use providers that refuse what real ones refuse."""
    Provider.strict = strict.is_chosen(request.node.nodeid) and not request.node.get_closest_marker("lenient")
    Provider.refused.clear()
    yield
    refused = list(Provider.refused)
    assert not refused, f"refused by a strict provider: {refused}"


@pytest.fixture
def provider():
    scripted = Provider()
    yield scripted
    scripted.close()
    assert not scripted.violations, f"histories that a provider would refuse: {scripted.violations}"


@pytest.fixture
def make_home(tmp_path):
    count = 0

    def make():
        nonlocal count
        count += 1
        return Home(tmp_path / f"user{count}")

    return make


@pytest.fixture
def make_server(make_home):
    """Starts servers with any options; each is stopped and its files are checked at the end."""
    servers = []

    def make(provider=None, home=None, **options):
        server = Server(home or make_home(), provider, **options)
        servers.append(server)
        return server

    yield make
    problems = []
    for server in reversed(servers):
        try:
            server.close()
        except AssertionError as error:
            problems.append(error)
    if problems:
        raise problems[0]


@pytest.fixture
def server(make_server, provider):
    """A server whose model is the scripted provider."""
    return make_server(provider)


@pytest.fixture
def client(server):
    return server.client


@pytest.fixture
def offline(make_server):
    """A server with the built-in offline model."""
    return make_server()


@pytest.fixture
def open_terminal():
    """Opens terminals, as Terminal does; each is killed at the end."""
    opened = []

    def make(*arguments, **how):
        opened.append(Terminal(*arguments, **how))
        return opened[-1]

    yield make
    for terminal in opened:
        terminal.kill()


@pytest.fixture
def browser():
    """The browser that `browse` opens."""
    from support.browser import Browser  # imported late, because selenium may be missing
    return Browser


@pytest.fixture
def browse(request, browser):
    """Opens windows on a server's page. A picture of each is kept if the test fails or the page did something forbidden."""
    windows = []

    def make(server, path="/", script=None, **more):
        window = browser(server.port, **more)
        windows.append(window)
        if script:  # runs before the page's own
            window.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        return window.open(path)

    yield make
    problems = []
    for number, window in enumerate(windows):
        try:
            window.close(failed=getattr(request.node, "has_failed", False), name=f"{request.node.name}-{number}".replace("/", "_"))
        except AssertionError as error:
            problems.append(error)
    if problems:
        raise problems[0]


@pytest.fixture(scope="module")
def postgres():
    server = pg.Postgres()
    yield server
    server.close()


@pytest.fixture
def url(postgres):
    return postgres.new_database()


@pytest.fixture
def make_instance(make_server, make_home, provider, url):
    """Starts servers on one database, with the same keys and workspace, each with its own data folder."""
    homes = []

    def make(**config):
        join(make_home(), homes, url)
        return make_server(provider, home=homes[-1], config={"store": {"type": "postgres", "url": url}, "workspace_mode": "shared", **config}, arguments=["--workspace", homes[0].workspace])

    return make
