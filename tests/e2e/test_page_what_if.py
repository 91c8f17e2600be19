"""What if, at the events of the replay scrubber: another answer or result, both sides beside each other, and a branch of it."""
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from support import npm
from support.provider import Gate, call, text, tools

pytestmark = pytest.mark.limit(180)

READ = ("read_file", {"path": "notes.txt"})


@pytest.fixture
def page(make_server, provider, browse):
    """A turn with a call, opened in the replay."""
    server = make_server(provider, config={"approval_mode": "approve_all"})
    (server.home.workspace / "notes.txt").write_text("milk\n")
    provider.plan(tools(call(*READ, "r0")), text("You need milk."))
    server.client.turn("c", "What do I need?")
    page = browse(server)
    page.server = server
    page.open_chat("c")
    page.press("replay")
    page.press("what-if")
    page.one("what-if-box")
    return page


def go_to(page, kind):
    """Moves the scrubber, by keys, to the first event of this kind."""
    slider = page.one("replay-position")
    slider.send_keys(Keys.HOME)
    page.until(lambda: "0/" in page.text("replay-state"), "the beginning")
    for _ in range(20):
        if kind in page.text("replay-state"):
            return
        slider.send_keys(Keys.ARROW_RIGHT)
    raise AssertionError(page.text("replay-state"))


def choose(page, change):
    Select(page.one("what-if-change")).select_by_value(change)


def offered(page):
    return [each.get_attribute("value") for each in page.one("what-if-change").find_elements(By.TAG_NAME, "option")]


def test_another_result_is_tried_and_kept(page, provider):
    go_to(page, "TOOL_RESULT")
    assert offered(page) == ["none", "result", "timeout", "error", "say"]
    choose(page, "result")
    page.one("what-if-text").send_keys("eggs")
    page.one("what-if-keep").click()
    gate = Gate()
    provider.plan(text("You need ", gate, "eggs."))
    asked = len(provider.requests)
    page.press("what-if-start")
    gate.wait_reached()
    page.until(lambda: "You need" in page.text("what-if-made"), "what is streamed")
    assert "You need milk." in page.text("what-if-recorded") and page.all("what-if-stop")
    gate.release()
    page.until_text("what-if-state", "Kept as int_002")
    assert "You need eggs." in page.text("what-if-made") and len(provider.requests) == asked + 1
    page.until(lambda: page.all("branch-label"), "the arrows at the message")
    assert page.text("branch-label") == "1/2" and page.server.client.get("/chats/c").json["head"] == "int_001"
    assert not page.all("kept-what-if"), "the recorded turn is none"
    page.press("branch-next")
    page.until(lambda: "You need eggs." in page.text("answer"), "the kept branch")
    mark = page.one("kept-what-if")
    event = page.server.client.interaction("c", "int_002")["record"]["what_if"]
    assert mark.text == "What if" and f"from event {event} of" in mark.get_attribute("title")
    page.driver.refresh()
    page.until(lambda: page.all("kept-what-if"), "the mark after a reload")
    page.press("tab-branches")
    page.until(lambda: [len(each.find_elements(By.CSS_SELECTOR, "[data-testid=kept-what-if]")) for each in page.css(".node")] == [0, 1], "the mark in the tree")


def test_the_turn_begins_anew_with_another_message(page, provider):
    go_to(page, "INTERACTION_STARTED")
    assert offered(page) == ["none", "say"]
    choose(page, "say")
    assert not page.one("what-if-start").is_enabled()
    page.one("what-if-text").send_keys("What else?")
    provider.plan(tools(call("write_file", {"path": "new.txt", "content": "tea\n"}, "x0")), text("Tea."))
    page.press("what-if-start")
    page.until_text("what-if-state", "first difference")
    assert "new.txt" in page.text("what-if-files") and "+tea" in page.text("what-if-files")
    assert not (page.server.home.workspace / "new.txt").exists() and len(page.server.client.history("c", branches="all")["interactions"]) == 1


def test_what_does_not_fit_is_said_and_a_run_can_be_stopped(page, provider):
    go_to(page, "TOOL_CALL")
    assert "say" not in offered(page)
    gate = Gate()
    provider.plan(text("You need ", gate, "eggs."))
    choose(page, "timeout")
    page.press("what-if-start")
    gate.wait_reached()
    page.press("what-if-stop")
    gate.wait_left()
    page.until_text("what-if-state", "interrupted")
    go_to(page, "ANSWER")
    assert offered(page) == ["say"] and not page.all("what-if-keep"), "a turn has one message"


def test_small_and_by_keyboard_without_faults_of_access(page, provider):
    axe = (npm.install("axe-core@4.14.1") / "axe-core" / "axe.min.js").read_text()
    go_to(page, "TOOL_RESULT")
    provider.plan(text("You need nothing."))
    page.script("arguments[0].focus()", page.one("what-if-start"))
    page.keys(Keys.ENTER)
    page.until_text("what-if-state", "first difference")
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 320, "height": 700, "deviceScaleFactor": 1, "mobile": False})
    page.until(lambda: page.script("return document.documentElement.scrollWidth <= innerWidth"), "no wider than the window")
    page.driver.set_script_timeout(60)
    page.script(axe)
    found = page.driver.execute_async_script("const done = arguments[0]; axe.run({resultTypes: ['violations']}).then((r) => done(r.violations))")
    bad = [(v["id"], [n["html"][:160] for n in v["nodes"][:3]]) for v in found if v["impact"] in ("serious", "critical")]
    assert not bad, bad


def test_a_run_goes_on_while_people_look_at_something_else(page, provider):
    provider.plan(text("ok"))
    page.server.client.turn("other", "Another chat")
    go_to(page, "INTERACTION_STARTED")
    choose(page, "say")
    page.one("what-if-text").send_keys("What else?")
    page.one("what-if-keep").click()
    gate = Gate()
    provider.plan(text("Also ", gate, "tea."))
    page.press("what-if-start")
    gate.wait_reached()
    page.until(lambda: "Also" in page.text("what-if-made"), "what is streamed")
    page.open_chat("other")
    page.gone("what-if-box")
    page.open_chat("c")
    page.until_text("what-if-made", "Also")
    assert page.one("what-if-text").get_attribute("value") == "What else?" and page.one("what-if-keep").is_selected() and page.all("what-if-stop")
    page.open_chat("other")
    page.gone("what-if-box")
    gate.release()
    page.until(lambda: len(page.server.client.get("/chats/c?branches=all").json["interactions"]) == 2, "the kept branch")
    page.open_chat("c")
    page.until_text("what-if-state", "Kept as int_002")
    page.until_text("what-if-made", "Also tea.")
