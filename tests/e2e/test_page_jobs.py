"""Background jobs in the page: their list, output, ports and the mark on the chat."""
import pytest
from support.server import sandbox_works
from support.timing import eventually
from test_jobs import gone
from test_ports import SERVE, PortsChat, fetch

pytestmark = [pytest.mark.limit(120), pytest.mark.skipif(not sandbox_works(), reason="bubblewrap does not work on this machine")]
WATCH_REQUESTS = "const real = fetch; window.asked = []; window.fetch = (what, how) => (asked.push(String(what)), real(what, how));"


@pytest.fixture
def chat(make_server, provider):
    return PortsChat(make_server(provider, config={"approval_mode": "approve_all", "tools": {"limits": {"memory_mb": 0}}}), provider)


def jobs_asked(page):
    return page.script("return asked.filter((each) => each.includes('/jobs')).length")


def test_a_job_is_marked_listed_read_and_stopped(chat, browse):
    page = browse(chat.server, "/", script=WATCH_REQUESTS)
    job = chat.start("echo first; while [ ! -e go ]; do sleep 0.1; done; echo second; exec sleep 543219")
    page.one("chat-item[data-chat=c]")
    assert page.one("job-mark").get_attribute("aria-label") == "a background job runs"
    page.open_chat("c")
    assert jobs_asked(page) == 0, "nobody looks at jobs, so nobody asks for them"
    page.press("show-jobs")
    page.until_text("job-state", "running")
    page.press("job-output-toggle")
    page.until_text("job-output", "first")
    (chat.server.home.workspace / "go").touch()
    page.until_text("job-output", "second")
    page.press("stop-job")
    page.until_text("job-state", "stopped")
    page.gone("job-mark")
    assert chat.job(job)["end"] == "stopped"
    gone("sleep 543219")
    asked = jobs_asked(page)
    page.press("tab-chat")
    page.one("composer")
    assert jobs_asked(page) == asked


def test_a_job_that_ends_or_begins_elsewhere_is_shown_at_once(chat, browse):
    page = browse(chat.server, "/#c")
    job = chat.start("sleep 600")
    page.one("job-mark")
    page.press("tab-board")
    page.one(f"job[data-job={job}][data-running=true]")
    chat.client.post(f"{chat.path}/{job}/stop").expect(200, "job")
    page.one(f"job[data-job={job}][data-running=false]")
    page.gone("job-mark")


def test_a_hostile_and_long_output_is_text_and_bounded(chat, browse):
    job = chat.start("printf '<b>x</b><script>window.hacked = 1</script>'; head -c 3000000 /dev/zero | tr '\\0' a; echo END; exec sleep 600")
    eventually(lambda: chat.job(job)["output_bytes"] > 3_000_000, "it is written")
    page = browse(chat.server, "/#c")
    page.press("tab-board")
    page.press("job-output-toggle")
    page.until_text("job-output", "END")
    assert len(page.text("job-output")) <= 65_536 and page.script("return window.hacked") is None


def test_a_port_is_opened_and_closed_by_buttons(chat, browse):
    (chat.server.home.workspace / "index.html").write_text("from the sandbox")
    job = chat.start(SERVE.format(8765, "127.0.0.1"))
    page = browse(chat.server, "/#c")
    page.press("tab-board")
    page.one("job-port[data-state=closed]")
    assert not page.all("port-link")
    page.press("open-port")
    link = page.one("port-link")
    url = link.get_attribute("href")
    assert (link.get_attribute("target"), link.get_attribute("rel")) == ("_blank", "noopener noreferrer")
    assert fetch(url) == (200, b"from the sandbox")
    page.is_watched = False
    link.click()
    page.until(lambda: len(page.driver.window_handles) == 2, "the window")
    ours = page.driver.current_window_handle
    page.driver.switch_to.window(next(each for each in page.driver.window_handles if each != ours))
    page.until(lambda: "from the sandbox" in page.css("body")[0].text, "the page of the job")
    assert page.script("return [window.opener, document.referrer, document.cookie]") == [None, "", ""]
    page.driver.switch_to.window(ours)
    page.press("close-port")
    page.one("job-port[data-state=closed]")
    assert chat.ports(job)[8765]["state"] == "closed"
