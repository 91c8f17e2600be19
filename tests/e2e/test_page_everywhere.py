"""The page for everybody: by keyboard alone, on a small screen, magnified, without motion, with a screen reader, in the dark."""
import pytest
from support.browser import Keys
from support.provider import Gate, call, failure, text, tools

pytestmark = pytest.mark.limit(120)
VIEWS = ("chat", "inbox", "board", "branches", "trace", "settings")


@pytest.fixture
def lived_in(server, provider, browse):
    """A window on a chat with some of everything: a table, code, two versions, a failure, a task, a waiting call and a waiting question."""
    def make(**more):
        provider.plan(text("# Title\n\n- one\n\n```python\nprint('a rather long line of code that does not fit on a narrow screen, whatever one does about it')\n```\n\n"
                           "| a | b | c | d | e | f |\n|---|---|---|---|---|---|\n" + "| a long cell " * 6 + "|\n\n[link](https://example.org) " + "averyveryverylongword" * 20))
        server.client.turn("c", "show " + "me all of it " * 10)
        provider.plan(failure(400, "no"))
        server.client.turn("c", "fail", "FAILED")
        provider.plan(text("second version"))
        server.client.stream("POST", "/chats/c/interactions/int_002/regenerate", {}).finish()
        provider.plan(tools(call("manage_tasks", {"action": "add", "title": "Buy milk"}, "t")), text("noted"))
        server.client.turn("c", "remember")
        provider.plan(tools(call("write_file", {"path": "a.txt", "content": "one\n"}, "call_1"), call("ask_human", {"question": "Which?", "options": ["a", "b"]}, "call_2")))
        waiting = server.client.start("c", "ask", on_disconnect="continue")
        waiting.until("approval_required")
        provider.plan(tools(call("ask_human", {"question": "Which way?", "options": ["left", "right"]})))
        asking = server.client.start("q", "ask", on_disconnect="continue")
        asking.until("input_required")
        page = browse(server, "/#c", **more)
        page.one("approval-card")
        return page

    yield make
    server.client.cancel("c", "int_005")
    server.client.cancel("q", "int_001")


def show(page, view):
    page.press(f"tab-{view}")
    is_shown(page, view)


def is_shown(page, view):
    tab = page.one(f"tab-{view}")
    page.until(lambda: "true" in (tab.get_attribute("aria-selected"), tab.get_attribute("aria-current")) or tab.get_attribute("aria-current") == "page", view)
    page.one({"chat": "turns", "branches": "branch-map"}.get(view, view))


# --- keyboard --------------------------------------------------------------------------------------------------------

FOCUSED = """const e = document.activeElement;
if (!e || e === document.body || e === document.documentElement) return null;
const box = e.getBoundingClientRect(), style = getComputedStyle(e);
// A ring of its own, or one around the box that it stands in: something there looks otherwise without the focus.
const looks = () => [e, e.parentElement, e.parentElement?.parentElement].map((at) => { const s = getComputedStyle(at); return [s.outline, s.boxShadow, s.borderColor].join(); });
let ring = parseFloat(style.outlineWidth) >= 1 && !['none', 'hidden'].includes(style.outlineStyle);
if (!ring) { const now = looks(); e.blur(); ring = looks().some((look, i) => look !== now[i]); e.focus({preventScroll: true}); }
if (!e.dataset.walk) e.dataset.walk = String(window.walked = (window.walked ?? 0) + 1);
const seen = document.elementFromPoint(Math.min(innerWidth - 1, Math.max(0, box.x + box.width / 2)), Math.min(innerHeight - 1, Math.max(0, box.y + Math.min(box.height / 2, 12))));
return {id: e.dataset.walk, what: e.outerHTML.slice(0, 160), ring,
        shown: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
        hidden: !!seen && !e.contains(seen) && !seen.contains(e) ? seen.outerHTML.slice(0, 120) : ''};"""

# Elements that a mouse could press or type into.
OPERABLE = """return [...document.querySelectorAll('button, a[href], input, select, textarea, [role=button], [tabindex]')]
  .filter((e) => !e.disabled && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}) && e.getBoundingClientRect().width > 0 && !e.closest('[inert]'))
  .map((e) => [e.dataset.walk ?? '', e.outerHTML.slice(0, 160)])"""


def walk(page, keys=(Keys.TAB,), most=150):
    """Presses Tab until the focus is back where it began. Returns every place where the focus was."""
    places = []
    while True:
        page.keys(*keys)
        place = page.script(FOCUSED)
        if place is None:  # the browser's own controls; the next place is the page's first
            page.keys(*keys)
            place = page.script(FOCUSED)
            assert place, "the focus is lost"
        if any(place["id"] == each["id"] for each in places):
            return places
        places.append(place)
        assert len(places) < most, f"the walk does not end: {places[-3:]}"


def arrive_at(page, test_id, most=150):
    """Presses Tab until the element has the focus."""
    for _ in range(most):
        if page.script("return document.activeElement?.dataset.testid") == test_id:
            return
        page.keys(Keys.TAB)
    raise AssertionError(f"{test_id} is not reached by Tab")


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_walked_by_keyboard_alone(lived_in, view):
    page = lived_in()
    arrive_at(page, f"tab-{view}")
    page.keys(Keys.ENTER)
    is_shown(page, view)
    assert page.script("return document.activeElement?.dataset.testid") == f"tab-{view}", "the focus stays on the pressed tab"
    places = walk(page)
    bad = [place for place in places if not place["ring"] or not place["shown"] or place["hidden"]]
    assert not bad, f"{view}: {bad}"
    missed = [what for place, what in page.script(OPERABLE) if not place]
    assert not missed, f"{view}: Tab does not reach {missed}"
    back = walk(page, (Keys.SHIFT, Keys.TAB))
    assert {place["id"] for place in back} == {place["id"] for place in places}, f"{view}: the way back differs"


def has_focus(page, what):
    """Asserts that the focus is on a visible element after an element is gone."""
    place = page.until(lambda: page.script(FOCUSED), f"the focus, after {what}")
    assert place["shown"], f"after {what}: {place}"


def test_the_focus_is_never_lost(server, provider, lived_in):
    page = lived_in()
    arrive_at(page, "approve")
    page.keys(Keys.ENTER)
    page.gone("approval-card")
    has_focus(page, "an approval")
    provider.plan(text("well"))
    arrive_at(page, "input-text")
    page.keys("x")
    arrive_at(page, "input-send")
    page.keys(Keys.ENTER)
    page.gone("input-card")
    has_focus(page, "an answer")
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end")
    arrive_at(page, "edit-message")
    page.keys(Keys.ENTER)
    page.one("edit-text")
    assert page.script("return document.activeElement.dataset.testid") == "edit-text"
    page.keys(Keys.ESCAPE)
    page.gone("edit-text")
    has_focus(page, "an edit that was given up")
    arrive_at(page, "chat-menu")
    page.keys(Keys.ENTER)
    arrive_at(page, "chat-rename")
    page.keys(Keys.ENTER)
    assert page.script("return document.activeElement.dataset.testid") == "rename"
    page.keys(Keys.ESCAPE)
    page.gone("rename")
    has_focus(page, "a name that stays")
    arrive_at(page, "tab-board")
    page.keys(Keys.ENTER)
    arrive_at(page, "task")
    page.keys(Keys.TAB)
    page.keys(Keys.TAB)
    page.keys(Keys.ENTER)  # its "remove" button
    page.gone("task")
    has_focus(page, "the end of a task")
    page.gone("toast-action")  # the toast's action would restore the task
    arrive_at(page, "chat-menu")
    page.keys(Keys.ENTER)
    arrive_at(page, "chat-delete")
    page.keys(Keys.ENTER)
    page.until(lambda: len(page.all("chat-item")) == 1, "the end of a chat")
    has_focus(page, "the end of a chat")
    arrive_at(page, "toast-action")
    page.keys(Keys.ENTER)
    page.until(lambda: len(page.all("chat-item")) == 2, "the chat again")
    has_focus(page, "a chat that came back")


def test_escape_closes_what_is_open(server, provider, lived_in):
    page = lived_in()
    for key, name in ((Keys.CONTROL + "k", "palette"), ("?", "help")):
        page.script("document.querySelector('[data-testid=turns]').focus()")
        page.keys(*key)
        page.one(name)
        for _ in range(5):  # the focus does not leave it
            page.keys(Keys.TAB)
            assert page.script(f"return document.activeElement === document.body || !!document.activeElement.closest('[data-testid={name}]')")
        page.keys(Keys.ESCAPE)
        page.gone(name)
        assert page.script("return document.activeElement.dataset.testid") == "turns", "the focus returns to its old place"
    arrive_at(page, "chat-menu")
    page.keys(Keys.ENTER)
    page.one("chat-rename")
    page.keys(Keys.ESCAPE)
    page.gone("chat-rename")
    assert page.script("return document.activeElement.dataset.testid") == "chat-menu"


def test_every_key_of_the_help_does_what_it_says(server, provider, browse):
    page = browse(server)
    for n in ("one", "two"):
        provider.plan(text(f"answer {n}"))
        page.say(f"question {n}")
        page.until_text("answer", f"answer {n}")
    provider.plan(text("elsewhere"))
    server.client.turn("d", "another chat")
    page.until_text("chat-item", "another chat")
    page.script("document.querySelector('[data-testid=turns]').focus()")
    page.keys("?")
    listed = [row.text for row in page.one("help").find_elements("css selector", "kbd")]
    assert {"Ctrl K", "?", "Ctrl Alt N", "Ctrl Alt I", "Enter", "Shift Enter", "Esc", "Alt ↑", "Alt ↓", "Ctrl Alt Z", "Ctrl Alt Y", "Ctrl Alt T"} <= set(listed)
    page.keys(Keys.ESCAPE)
    page.gone("help")
    page.keys(Keys.CONTROL, Keys.ALT, "i")
    page.one("inbox")
    page.keys(Keys.ALT, Keys.ARROW_UP)
    page.until(lambda: [e.text for e in page.all("user-message")] == ["another chat"], "the chat above")
    page.keys(Keys.ALT, Keys.ARROW_DOWN)
    page.until(lambda: len(page.all("user-message")) == 2, "the chat below")
    page.keys(Keys.CONTROL, Keys.ALT, "z")
    page.until(lambda: [e.text for e in page.all("user-message")] == ["question one"], "one turn less")
    page.keys(Keys.CONTROL, Keys.ALT, "y")
    page.until(lambda: len(page.all("user-message")) == 2, "the turn again")
    page.keys(Keys.CONTROL, Keys.ALT, "n")
    page.until(lambda: not page.all("user-message"), "a new chat")
    page.one("composer")
    page.until(lambda: page.script("return document.activeElement.dataset.testid") == "composer", "the focus to write")
    gate = Gate()
    provider.plan(text("long", gate))
    page.keys("one")
    page.keys(Keys.SHIFT, Keys.ENTER)
    page.keys("two")
    page.keys(Keys.ENTER)
    page.until_text("answer", "long")
    assert provider.requests[-1].conversation[-1]["content"] == "one\ntwo"
    page.keys(Keys.ESCAPE)
    page.one("note-cancelled")


# --- size ------------------------------------------------------------------------------------------------------------

SIZES = {"phone": (360, 740, 3), "200 %": (640, 400, 2), "400 %": (320, 256, 4)}


def resize(page, size):
    width, height, scale = SIZES[size]
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": size == "phone"})
    page.until(lambda: page.script("return innerWidth") == width, "the size")


BEYOND = """const beyond = [];
for (const e of document.querySelectorAll('button, input, select, textarea, h1, h2, h3, p, [data-testid]')) {
  const box = e.getBoundingClientRect();
  if (box.width === 0 || !e.checkVisibility({visibilityProperty: true}) || e.closest('.sr-only')) continue;
  let scrolls = false;
  for (let at = e.parentElement; at; at = at.parentElement) if (at.scrollWidth > at.clientWidth && ['auto', 'scroll'].includes(getComputedStyle(at).overflowX)) scrolls = true;
  if (!scrolls && (box.right > innerWidth + 1 || box.left < -1)) beyond.push(e.outerHTML.slice(0, 120));
}
return beyond"""


@pytest.mark.parametrize("size", SIZES)
def test_every_view_fits(server, provider, lived_in, size):
    page = lived_in()
    resize(page, size)
    for view in VIEWS:
        show(page, view)
        assert page.script("return document.documentElement.scrollWidth <= innerWidth"), f"{view} is wider than the window"
        beyond = page.script(BEYOND)
        assert not beyond, f"{view}: {beyond}"
    show(page, "chat")
    # Reading, writing and answering are possible there.
    room, box = page.one("turns").rect["height"], page.one("composer").rect
    assert room >= {"phone": 300, "200 %": 120, "400 %": 40}[size] and box["y"] + box["height"] <= SIZES[size][1], (room, box)
    provider.plan(text("from a small window"))
    page.press("approve")
    page.gone("approval-card")
    page.press("input-decline")
    # The window is so small that the answer appears below it, so press End.
    page.until(lambda: page.one("turns").send_keys(Keys.END) or any("from a small window" in each.text for each in page.all("answer")), "the answer")
    # The chats are behind a button.
    assert not page.one("turns").get_attribute("hidden") and not page.all("sidebar")[0].is_displayed()
    assert page.one("menu").get_attribute("aria-expanded") == "false"
    page.press("menu")
    page.one("sidebar")
    assert page.one("menu").get_attribute("aria-expanded") == "true"
    page.open_chat("c")
    page.until(lambda: not page.all("sidebar")[0].is_displayed(), "the chats to make room")


def test_the_window_may_shrink_and_grow(lived_in):
    """The draft and the views are kept."""
    page = lived_in()
    page.type("composer", "half a thought")
    for size in SIZES:
        resize(page, size)
        assert page.one("composer").get_attribute("value") == "half a thought"
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.until(lambda: page.all("sidebar")[0].is_displayed(), "the chats")


# --- motion and colour -----------------------------------------------------------------------------------------------

def emulate(page, **features):
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]})


def test_without_motion_where_that_is_wished(server, provider, browse):
    gate = Gate()
    provider.plan(text(gate, "answer"))
    page = browse(server)
    page.say("wait")
    gate.wait_reached()
    moving = "return document.getAnimations().filter((each) => each.playState === 'running').length"
    page.until(lambda: page.script(moving) > 0, "motion with the usual setting")
    emulate(page, prefers_reduced_motion="reduce")
    page.until(lambda: page.script(moving) == 0, "that nothing moves")
    gate.release()
    page.until_text("answer", "answer")
    assert page.script(moving) == 0


def test_dark_and_light_follow_the_system_or_the_choice(server, browse):
    page = browse(server)
    page.one("composer")

    def is_dark():
        red, green, blue = page.script("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")[:3]
        return red + green + blue < 3 * 128

    for scheme in ("dark", "light"):
        emulate(page, prefers_color_scheme=scheme)
        page.until(lambda scheme=scheme: is_dark() == (scheme == "dark"), scheme)
    page.press("tab-settings")
    page.one("theme").find_element("css selector", "option[value=dark]").click()
    page.until(is_dark, "the choice")
    page.driver.refresh()
    page.one("settings")
    assert is_dark(), "the choice is kept"
    emulate(page, prefers_color_scheme="dark")
    page.one("theme").find_element("css selector", "option[value=light]").click()
    page.until(lambda: not is_dark(), "light on a dark system")
    page.one("theme").find_element("css selector", "option[value=system]").click()
    page.until(is_dark, "as the system")


# --- read aloud ------------------------------------------------------------------------------------------------------

def accessible(page):
    """What a screen reader gets: role, name and properties of everything that it does not skip."""
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    return [(node["role"]["value"], node.get("name", {}).get("value", ""), {p["name"]: p["value"].get("value") for p in node.get("properties", [])})
            for node in nodes if not node["ignored"]]


NAMED = ("button", "link", "textbox", "searchbox", "combobox", "checkbox", "slider", "tab", "tablist", "log", "navigation", "dialog", "listbox", "option", "img", "image",
         "spinbutton", "radio", "switch")


def test_everything_has_a_name_and_a_role(server, lived_in):
    page = lived_in()
    for view in VIEWS:
        show(page, view)
        tree = accessible(page)
        nameless = [(role, properties) for role, name, properties in tree if role in NAMED and not name.strip()]
        assert not nameless, f"{view}: {nameless}"
        roles = [role for role, _, _ in tree]
        assert "main" in roles and "navigation" in roles, f"{view}: {sorted(set(roles))}"
    show(page, "chat")
    assert "log" in [role for role, _, _ in accessible(page)]
    page.keys(Keys.CONTROL, "k")
    page.one("palette")
    assert "listbox" in [role for role, _, _ in accessible(page)]


LISTEN = """window.heard = []; const said = document.querySelector('[data-testid=said]');
new MutationObserver(() => window.heard.push(said.textContent.trim())).observe(said, {childList: true, characterData: true, subtree: true});"""


def test_what_a_screen_reader_says(server, provider, browse):
    """The log is silent while it grows. One polite live region announces what matters, also when it repeats."""
    page = browse(server)
    page.one("composer")
    log, line = page.one("turns"), page.until(lambda: page.all("said")[0], "the line")
    assert log.get_attribute("role") == "log" and line.get_attribute("aria-live") == "polite"
    assert not page.css("[aria-live=assertive]")
    page.script(LISTEN)
    for n in range(2):
        gate = Gate()
        provider.plan(text("some ", gate, f"words {n}"))
        page.say("hello")
        page.until(lambda n=n: len(page.all("answer")) == n + 1, "the beginning")
        assert page.one("turns").get_attribute("aria-busy") == "true"
        gate.release()
        page.until(lambda n=n: page.one("turns").get_attribute("aria-busy") == "false" and len(page.script("return window.heard.filter((each) => each)")) == n + 1, f"word {n}")
    heard = page.script("return window.heard.filter((each) => each)")
    assert heard == ["Answer complete: completed"] * 2
    page.script("window.heard = []")
    provider.plan(tools(call("run_shell", {"command": "true"}, "a")), tools(call("run_shell", {"command": "true"}, "b")), text("done"))
    page.say("run")
    for n in range(2):
        page.until(lambda n=n: len(page.script("return window.heard.filter((each) => each.startsWith('run_shell'))")) == n + 1, f"request {n}")
        page.press("approve")
    page.until_text("answer", "done")


def test_errors_and_toasts_are_announced(server, provider, browse):
    page = browse(server)
    provider.plan(failure(400, "no"))
    page.say("fail")
    assert page.one("error-note").get_attribute("role") == "alert"
    page.press("chat-menu")
    page.press("chat-delete")
    toast = page.one("toast")
    assert page.script("return !!arguments[0].closest('[role=status], [role=alert], [aria-live]')", toast)
