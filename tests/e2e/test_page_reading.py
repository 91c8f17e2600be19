"""Reading a chat: diffs in one column or two, with colours and marks; calls that only read in one line; what waits by one key; the page installed."""
import json

import pytest
from support.browser import Keys
from support.provider import call, text, tools

pytestmark = pytest.mark.limit(120)

OLD = "import os\n\n" + "".join(f"value_{n} = {n}\n" for n in range(30)) + "\ndef total(a, b):\n    return a + b\n"
NEW = OLD.replace("return a + b", "return a - b")


@pytest.fixture
def changing(server, provider, browse):
    (server.home.workspace / "sum.py").write_text(OLD)
    provider.plan(tools(call("write_file", {"path": "sum.py", "content": NEW})), text("changed"))
    server.client.start("a", "change it").until("approval_required")
    page = browse(server, "/#a")
    page.one("approval-card")
    page.until(lambda: page.css(".change .lines"), "the diff")
    return page


def test_a_diff_has_colours_marks_and_lines_that_open(changing):
    page = changing
    page.until(lambda: page.css(".change .lines .hljs-keyword"), "the colours of the language")
    assert [each.text.strip() for each in page.css(".change .differs")] == ["+", "-"]
    assert "value_3 = 3" not in page.css(".change .lines")[0].text
    page.press("open-gap")
    page.until(lambda: "value_3 = 3" in page.css(".change .lines")[0].text, "the hidden lines")
    shown = page.script("return [...document.querySelectorAll('.change .lines > span')].map((each) => each.textContent.slice(2)).join('')")
    assert shown == OLD.replace("    return a + b\n", "    return a + b\n    return a - b\n")


def test_a_diff_stands_side_by_side(changing):
    page = changing
    page.press("split-diff")
    pairs = page.until(lambda: page.script("return [...document.querySelectorAll('.change .pair')].map((each) => [...each.children].map((side) => side.textContent.trim()))"), "two columns")
    assert ["return a + b", "return a - b"] in pairs and all(len(each) == 2 for each in pairs)
    page.press("split-diff")
    page.until(lambda: not page.css(".change .pair"), "one column")


def test_calls_that_only_read_are_one_line(make_server, provider, browse):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    (server.home.workspace / "a.txt").write_text("needle\n")
    provider.plan(tools(call("read_file", {"path": "a.txt"}, "1"), call("read_file", {"path": "gone.txt"}, "2"), call("list_files", {}, "3"), call("search_files", {"pattern": "needle"}, "4")),
                  tools(call("write_file", {"path": "b.txt", "content": "x"})), text("done"))
    server.client.turn("a", "look")
    page = browse(server, "/#a")
    page.until_text("answer", "done")
    assert "Read 2 files, searched once, listed 1" in page.text("reads") and "1 failed" in page.text("reads")
    assert [each.get_attribute("data-tool") for each in page.all("tool-card")] == ["write_file"]
    page.one("reads").find_element("css selector", "button").click()
    page.until(lambda: len(page.all("tool-card")) == 5, "the cards")
    page.one("reads").find_element("css selector", "button").click()
    page.until(lambda: len(page.all("tool-card")) == 1, "one line again")
    page.type("composer", "/find" + Keys.ENTER)
    page.type("find-words", "needle")
    page.until(lambda: " of " in page.text("find-count"), "hits in what was folded")
    page.until(lambda: len(page.all("tool-card")) == 5, "all cards while something is looked for")


def test_one_key_goes_from_one_thing_that_waits_to_the_next(server, provider, browse):
    streams = []
    for chat in "ab":
        provider.plan(tools(call("run_shell", {"command": f"echo {chat}"})))
        streams.append(server.client.start(chat, "run it"))
        streams[-1].until("approval_required")
    provider.plan(text("done"))
    page = browse(server)
    seen = []
    for _ in range(2):
        page.keys(Keys.CONTROL, Keys.ALT, "w")
        page.until(lambda: page.script("return document.activeElement.dataset.testid") == "approval-card" and page.script("return location.hash") not in seen, "the next card")
        seen.append(page.script("return location.hash"))
    assert sorted(seen) == ["#a", "#b"]
    # A card takes no key in its first moments.
    page.until(lambda: page.keys("d") or page.one("turn").get_attribute("data-status") == "COMPLETED", "the answer by its key")


def test_the_page_can_be_installed_and_keeps_nothing(server, browse):
    page = browse(server)
    page.one("composer")
    manifest = json.loads(server.client.get("/page.webmanifest").body)
    assert manifest["display"] == "standalone" and server.client.get(manifest["icons"][0]["src"]).headers["Content-Type"] == "image/svg+xml"
    page.until(lambda: page.script("return navigator.serviceWorker.getRegistration().then((found) => found?.active?.state === 'activated')"), "the worker")
    assert page.script("return caches.keys()") == []
    server.kill()
    page.driver.refresh()
    page.until(lambda: "cannot be reached" in page.css("body")[0].text, "that the server is away")


def test_on_a_phone_people_read_answer_stop_and_ask_with_a_thumb(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "echo hi"})), text("done"))
    page = browse(server, size=(500, 844))
    page.say("run it")
    page.one("approval-card")
    for name in ("approve", "deny", "send", "stop"):
        box = page.one(name).rect
        assert box["width"] >= 34 and box["height"] >= 34, (name, box)
        assert 0 <= box["x"] and box["x"] + box["width"] <= 500
    page.press("approve")
    page.until_text("answer", "done")
    page.press("open-beside")
    page.one("beside")
    assert page.script("return getComputedStyle(document.querySelector('.conversation')).display") == "none", "the whole window"
    page.press("close-beside")
    page.one("composer")
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("view", ["settings", "board", "trace", "inbox", "branches"])
def test_back_and_reload_stay_where_one_is(server, provider, browse, view):
    provider.plan(text("one"), text("two"))
    server.client.turn("c1", "first")
    server.client.turn("c2", "second")
    page = browse(server)
    page.open_chat("c1")
    page.until_text("answer", "one")
    page.open_chat("c2")
    page.until_text("answer", "two")
    name = {"branches": "branch-map"}.get(view, view)
    page.press(f"tab-{view}")
    page.one(name)
    page.driver.refresh()
    page.one(name)
    assert page.text("title") == "second"
    page.driver.back()
    page.until_text("answer", "two")
    assert page.text("title") == "second" and not page.all(name)
    page.driver.back()
    page.until_text("answer", "one")
    page.driver.forward()
    page.until_text("answer", "two")
    page.driver.forward()
    page.one(name)
    page.open("/#/" + view)
    page.driver.refresh()
    page.one(f"tab-{view}[aria-current=page]")
    assert page.all("title") == []
