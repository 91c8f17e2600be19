"""The page with large content: chats of any length, answers of any size, many chats at once, a feed that breaks."""
import json
import re

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from support.browser import Keys
from support.provider import Gate, call, text, tools
from support.timing import SLACK
from support.wire import Wire

pytestmark = pytest.mark.limit(120)

MOST_ROWS = 200  # in the document, however many the chat has
FRAME = 50  # milliseconds


# --- chats as they are after years -----------------------------------------------------------------------------------

def bring_in(server, chat, interactions, title="A long chat"):
    server.check_records = False  # the chat was recorded elsewhere
    server.client.post(f"/import?as={chat}", {"id": chat, "title": title, "interactions": interactions}, limit=60 * SLACK).expect(201)


def turn(number, answer, calls=()):
    events = []
    for n, (name, value, output) in enumerate(calls):
        events += [{"type": "TOOL_CALL", "id": f"call_{n}", "tool_name": name, "tool_input": json.dumps(value), "round_index": n},
                   {"type": "TOOL_RESULT", "id": f"call_{n}", "tool_name": name, "tool_output": output, "is_error": False, "round_index": n}]
    events.append({"type": "ANSWER", "content": answer, "round_index": len(calls)})
    return {"id": f"int_{number:03d}", "status": "COMPLETED", "user_message": f"question {number}", "agent_events": events,
            "final_agent_state": {"messages": [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": "said"}], "grants": []},
            "parent_id": f"int_{number - 1:03d}" if number > 1 else None}


def many_calls(count):
    return turn(1, "all done", [("echo", {"text": f"call number {n}"}, f"output number {n} " + "x" * (n % 7 * 40)) for n in range(count)])


def many_turns(count, words=40):
    more = "\n\n- one\n- two\n\n```python\nprint(1)\n```\n"
    return [turn(n, f"answer {n}: " + f"word{n} " * words + (more if n % 5 == 0 else "")) for n in range(1, count + 1)]


# --- what a person does ----------------------------------------------------------------------------------------------

def wheel(page, by, times=1):
    box = page.one("turns")
    chain = ActionChains(page.driver, duration=0)
    for _ in range(times):
        chain.scroll_from_origin(ScrollOrigin.from_element(box), 0, by)
    chain.perform()


def drag_bar(page, end):
    """Drags the scroll bar's thumb with the mouse to another place."""
    x, top, height, begin = page.script(
        "const e = document.querySelector('.turns'), b = e.getBoundingClientRect(), track = b.height - 32;"
        "const thumb = Math.max(17, track * e.clientHeight / e.scrollHeight);"
        "return [b.right - 7, b.top + 16 + thumb / 2, track - thumb, e.scrollTop / (e.scrollHeight - e.clientHeight)]")
    chain = ActionChains(page.driver, duration=20)
    chain.w3c_actions.pointer_action.move_to_location(int(x), int(top + height * begin))
    chain.w3c_actions.pointer_action.pointer_down()
    for n in range(1, 11):
        chain.w3c_actions.pointer_action.move_to_location(int(x), int(top + height * (begin + (end - begin) * n / 10)))
    chain.w3c_actions.pointer_action.pointer_up()
    chain.perform()


def to_the_first(page):
    """Presses Home until nothing earlier is left."""
    page.script("document.querySelector('.turns').focus()")

    def is_there():
        page.keys(Keys.HOME)
        return not page.all("earlier") and page.script("return document.querySelector('.turns').scrollTop") == 0

    page.until(is_there, "the beginning", limit=60)


ROWS = "return document.querySelectorAll('.turns [data-row]').length"
BLOCKS = "return document.querySelectorAll('.turns :is([data-row], p, li, pre, tr, article)').length"
AT = """const box = document.querySelector('.turns'), top = box.getBoundingClientRect().top;
return [...box.querySelectorAll('[data-row]')].filter((e) => e.dataset.lead === undefined).map((e) => [e.dataset.row, e.getBoundingClientRect()])
  .filter(([, r]) => r.bottom > top + 120 && r.height > 0).map(([key, r]) => [key, r.top - top])[0]"""
WATCH = """window.worst = 0; window.most = 0; let last = performance.now();
const step = (now) => { window.worst = Math.max(window.worst, now - last); last = now;
  window.most = Math.max(window.most, document.querySelectorAll('.turns [data-row]').length);
  if (window.watching) requestAnimationFrame(step); }; window.watching = true; requestAnimationFrame((now) => { last = now; requestAnimationFrame(step); });"""


def at_top(page):
    """The first visible row and its distance from the upper edge."""
    return page.script(AT)


def watch(page):
    page.script(WATCH)


def watched(page):
    """The longest frame and the largest number of rows."""
    return page.script("window.watching = false; return [window.worst, window.most]")


def metric(page, name):
    return next(m["value"] for m in page.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"] if m["name"] == name)


def busiest(page, *steps):
    """Does each step and the frames that follow. Returns the processor time of the costliest step in milliseconds (an upper bound for a frame in it, also
    on a busy machine), the longest frame by the clock, and the largest number of rows. Of ten or more steps the two costliest are left out, because of
    garbage collection, and of other programs that use the processor's cache."""
    watch(page)
    costs = []
    for step in steps:
        before = metric(page, "TaskDuration")
        step()
        page.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
        costs.append(1000 * (metric(page, "TaskDuration") - before))
    return [sorted(costs)[-3 if len(costs) >= 10 else -1], *watched(page)]


def heap(page):
    page.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return metric(page, "JSHeapUsedSize") / 1e6


def metered(browse, *where):
    page = browse(*where)
    page.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    return page


def still(page):
    """Waits until nothing moves: several frames in a row are alike."""
    return page.driver.execute_async_script(
        "const done = arguments[0]; let before = '', same = 0; const look = () => { const box = document.querySelector('.turns');"
        "const now = box.scrollTop + '/' + box.scrollHeight; same = now === before ? same + 1 : 0; before = now;"
        "same > 5 ? done(true) : requestAnimationFrame(look); }; look();")


# --- one turn of ten thousand events ---------------------------------------------------------------------------------

def test_ten_thousand_events_in_one_turn(server, browse, figure):
    bring_in(server, "big", [many_calls(5000)])
    page = metered(browse, server, "/#big")
    page.until_text("answer", "all done", limit=30)
    still(page)
    assert int(page.one("turns").get_attribute("data-rows")) > 5000
    assert page.script(ROWS) <= MOST_ROWS and page.script(BLOCKS) <= 3 * MOST_ROWS
    # With the wheel.
    work, frame, most = busiest(page, *[lambda: wheel(page, -900)] * 20)
    still(page)
    key, top = at_top(page)
    assert key.startswith("int_001/") and most <= MOST_ROWS
    figure(f"a turn of 10,000 events: {most} rows in the document at most; "
           f"the busiest turn of the wheel took {work:.0f} ms of work, the longest frame {frame:.0f} ms")
    assert work < FRAME * SLACK
    # With the scroll bar.
    work, frame, most = busiest(page, lambda: drag_bar(page, 0.3))
    still(page)
    there = page.script("const b = document.querySelector('.turns'); return b.scrollTop / b.scrollHeight")
    assert 0.1 < there < 0.6 and most <= MOST_ROWS, there
    figure(f"a turn of 10,000 events: the scroll bar dragged through most of it took {work:.0f} ms of work, the longest frame {frame:.0f} ms")
    assert work < 10 * FRAME * SLACK  # ten mouse moves
    # The turn's own question stays at the upper edge all the time.
    assert page.text("user-message") == "question 1"
    # With keys.
    page.script("document.querySelector('.turns').focus()")
    page.keys(Keys.HOME)
    page.until(lambda: "call number 0" in page.all("tool-card")[0].text, "the first call")
    page.keys(Keys.END)
    page.until_text("answer", "all done")
    assert page.script(ROWS) <= MOST_ROWS
    used = heap(page)
    figure(f"a chat of 10,000 events: the page's heap is {used:.0f} MB")
    assert used < 60
    # All raw events.
    page.press("tab-trace")
    page.until(lambda: len(page.css(".events [data-row]")) > 10, "events")
    assert len(page.css("[data-testid=trace] [data-row]")) <= 2 * MOST_ROWS
    box = page.one("trace")
    ActionChains(page.driver, duration=0).scroll_from_origin(ScrollOrigin.from_element(box), 0, 60_000).perform()
    page.until(lambda: page.script("return document.querySelector('.panel').scrollTop") > 1000, "the place further down")
    assert len(page.css("[data-testid=trace] [data-row]")) <= 2 * MOST_ROWS
    page.until(lambda: page.script("const p = document.querySelector('.panel'); p.scrollTop = p.scrollHeight;"
                                   "return [...document.querySelectorAll('.events details')].some((e) => e.textContent.includes('ANSWER'))"), "the last event")


def test_six_hundred_turns_are_read_as_they_are_reached(server, browse, figure):
    bring_in(server, "long", many_turns(600))
    page = metered(browse, server, "/#long")
    page.until_text("answer", "answer 600", limit=30)
    still(page)
    first = page.one("turn").get_attribute("aria-setsize")
    assert first == "-1" and page.one("turns").get_attribute("role") == "log"  # the number of turns is not known yet
    # The reading place is kept while earlier turns are loaded.
    page.script("document.querySelector('.turns').focus()")
    before = page.one("turns").get_attribute("data-rows")
    watch(page)
    page.keys(Keys.HOME)
    page.until(lambda: page.one("turns").get_attribute("data-rows") != before, "earlier turns")
    still(page)
    key, top = at_top(page)
    assert key.startswith("int_541") and abs(top) < 200, (key, top)
    watched(page)
    # All the way up, as a person would.
    watch(page)
    to_the_first(page)
    page.until(lambda: "question 1" in [e.text for e in page.all("user-message")], "the first question", limit=30)
    still(page)
    frame, most = watched(page)
    figure(f"600 turns, read up to the first: {most} rows in the document at most, the longest frame took {frame:.0f} ms")
    assert most <= MOST_ROWS
    assert page.all("turn")[0].get_attribute("aria-setsize") == "600" and page.all("turn")[0].get_attribute("aria-posinset") == "1"
    used = heap(page)
    figure(f"a chat of 600 turns, all of them seen: the page's heap is {used:.0f} MB")
    assert used < 60
    page.keys(Keys.END)
    page.until_text("answer", "answer 600")


def test_what_is_above_is_let_go_and_read_again(server, browse, figure):
    bring_in(server, "wide", [turn(n, f"answer {n}: " + "some words " * 40_000) for n in range(1, 31)])  # 13 MB
    page = metered(browse, server, "/#wide")
    page.until_text("answer", "words", limit=60)
    still(page)
    to_the_first(page)
    page.until(lambda: page.all("user-message") and page.all("user-message")[0].text == "question 1", "the first question", limit=60)
    page.until_text("answer", "answer 1:", limit=30)
    figure(f"a chat of 13 MB, all of it seen: the page's heap is {heap(page):.0f} MB")
    assert heap(page) < 60
    page.keys(Keys.END)
    page.until(lambda: page.all("turn")[-1].get_attribute("data-interaction") == "int_030", "the last turn")
    page.until_text("answer", "some words", limit=60)
    still(page)
    assert not page.css(".gone")


# --- one answer of a megabyte ----------------------------------------------------------------------------------------

def test_an_answer_of_a_megabyte(server, provider, browse, figure):
    paragraphs = [f"Paragraph {n}: " + "some words " * 20 for n in range(4500)]
    long = "\n\n".join(paragraphs)
    gate = Gate()
    parts = [long[at:at + 4096] for at in range(0, len(long), 4096)]
    provider.plan(text(*parts[:-1], gate, parts[-1]))
    page = metered(browse, server)
    page.one("composer")
    begun = metric(page, "TaskDuration")
    watch(page)
    page.say("long")
    page.until_text("answer", "Paragraph 44", limit=60)
    frame, most = watched(page)
    work = 1000 * (metric(page, "TaskDuration") - begun)
    figure(f"an answer of 1 MB, as fast as it can be read: {work:.0f} ms of work in all, {most} rows at most, the longest frame took {frame:.0f} ms")
    assert most <= MOST_ROWS and work < 3000 * SLACK
    steps = [lambda: wheel(page, -900), lambda: wheel(page, 700), lambda: page.type("composer", "typed")] * 8
    work, frame, most = busiest(page, *steps)
    figure(f"an answer of 1 MB: the busiest turn of the wheel or typed word took {work:.0f} ms of work, the longest frame {frame:.0f} ms")
    assert work < FRAME * SLACK and most <= MOST_ROWS
    gate.release()
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end", limit=30)
    # The whole text is there, from beginning to end.
    seen = {}
    page.script("document.querySelector('.turns').focus()")
    page.keys(Keys.HOME)
    page.until(lambda: at_top(page)[0].endswith("/0/0"), "the beginning")
    page.script("""window.seen = {}; window.done = false; const box = document.querySelector('.turns');
      const note = () => { for (const row of box.querySelectorAll('[data-kind=text]')) window.seen[row.dataset.row] = row.textContent.trim(); };
      const step = () => { note(); if (box.scrollTop + box.clientHeight >= box.scrollHeight - 2) { window.done = true; return; }
        box.scrollTop += 1200; requestAnimationFrame(step); }; step();""")
    page.until(lambda: page.script("return window.done"), "the end of the way", limit=60)
    seen = page.script("return window.seen")
    shown = [seen[key] for key in sorted(seen, key=lambda key: int(key.rsplit("/", 1)[1]))]
    assert " ".join(shown).split() == long.split()


@pytest.mark.parametrize("kind", ["fence", "list", "table", "paragraph"])
def test_a_block_of_any_length_is_cut_and_stays_what_it_is(server, provider, browse, kind):
    lines = {"fence": ["```python", *[f"line_{n} = '{n}'" for n in range(3000)], "```"],
             "list": [f"{n}. item {n} of the list" for n in range(1, 2001)],
             "table": ["| left | right |", "|:--|--:|", *[f"| cell {n} | {n * n} |" for n in range(2000)]],
             "paragraph": [" ".join(f"word{n}" for n in range(9000))]}[kind]
    provider.plan(text("Before.\n\n", *["\n".join(lines)[at:at + 2000] for at in range(0, len("\n".join(lines)), 2000)], "\n\nAfter."))
    page = browse(server)
    page.script("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    page.say("go")
    page.until_text("answer", "After.", limit=30)
    still(page)
    assert page.script(ROWS) <= MOST_ROWS
    page.script("document.querySelector('.turns').focus()")
    page.keys(Keys.HOME)
    page.until_text("answer", "Before.")
    wanted = {"fence": "code .hljs-string", "list": "ol li", "table": "table td", "paragraph": "p"}[kind]
    page.until(lambda: page.css(f"[data-testid=answer] {wanted}"), wanted)
    if kind == "fence":
        page.css(".code .copy")[0].click()
        page.until(lambda: page.script("return window.copied"), "the copy")
        assert page.script("return window.copied").split("\n") == lines[1:-1]
    if kind == "list":
        page.keys(Keys.END)
        page.until(lambda: int(page.css("[data-testid=answer] ol")[-1].get_attribute("start")) > 1500, "the numbers go on")
    if kind == "table":
        page.keys(Keys.END)
        page.until(lambda: "cell 1999" in page.css("[data-testid=answer] table")[-1].text, "the last row, in a table")
        assert page.css("[data-testid=answer] table")[-1].find_elements("css selector", "th")[0].text == "left"


# --- the reader's place ----------------------------------------------------------------------------------------------

def test_it_follows_the_end_only_if_the_reader_is_there(server, provider, browse):
    gates = [Gate() for _ in range(4)]
    part = lambda n: "\n\n".join(f"part {n} line {k}" for k in range(40)) + "\n\n"
    provider.plan(text(part(0), gates[0], part(1), gates[1], part(2), gates[2], part(3), gates[3], "the end"))
    page = browse(server)
    page.say("go")
    page.until_text("answer", "part 0 line 39")
    distance = "const b = document.querySelector('.turns'); return b.scrollHeight - b.scrollTop - b.clientHeight"
    still(page)
    assert page.script(distance) <= 2 and not page.all("jump")
    gates[0].release()
    page.until_text("answer", "part 1 line 39")
    still(page)
    assert page.script(distance) <= 2
    wheel(page, -500)
    still(page)
    key, top = at_top(page)
    page.one("jump")
    gates[1].release()
    page.until(lambda: page.script(distance) > 1200, "more below")
    still(page)
    assert at_top(page) == [key, pytest.approx(top, abs=1.5)]
    page.press("jump")
    page.until_text("answer", "part 2 line 39")
    page.until(lambda: page.script(distance) <= 2, "the end")
    page.gone("jump")
    gates[2].release()
    page.until_text("answer", "part 3 line 39")
    still(page)
    assert page.script(distance) <= 2
    gates[3].release()
    page.until_text("answer", "the end")


def test_a_card_that_is_opened_stays_open_and_in_its_place(server, browse):
    bring_in(server, "cards", [turn(1, "done " * 50, [("http_get", {"url": f"http://localhost/file{n}"}, f"content {n}\n" * 60) for n in range(300)])])
    page = browse(server, "/#cards")
    page.until_text("answer", "done", limit=30)
    still(page)
    # At the end of the chat, opening the last card does not move it.
    card = page.all("tool-card")[-1]
    page.script("arguments[0].scrollIntoView({block: 'center'})", card)
    still(page)
    before = card.rect["y"]
    top = page.script("return arguments[0].getBoundingClientRect().top", card)
    card.find_element("css selector", "button").click()
    page.until(lambda: "content 299" in card.text, "its content")
    still(page)
    assert page.script("return arguments[0].getBoundingClientRect().top", card) == pytest.approx(top, abs=1.5), before
    row = page.script("return arguments[0].closest('[data-row]').dataset.row", card)
    # Focus and selection are kept, however far the page is scrolled.
    page.script("const p = arguments[0].querySelector('pre.output'); getSelection().selectAllChildren(p)", card)
    chosen = page.script("return getSelection().toString().length")
    assert chosen > 500
    for _ in range(8):
        wheel(page, -2000)
    still(page)
    assert row.split("/")[1] != at_top(page)[0].split("/")[1]
    assert page.script("return document.activeElement.closest('[data-row]')?.dataset.row") == row
    assert page.script("return getSelection().toString().length") == chosen
    assert page.script(ROWS) <= MOST_ROWS
    # A selection is copied as a whole, although most of it is not in the document.
    copied = page.script(
        "const rows = [...document.querySelectorAll('.turns [data-kind=tool]')], first = rows[0], last = rows[rows.length - 1];"
        "getSelection().setBaseAndExtent(first, 0, last, last.childNodes.length);"
        "const data = new DataTransfer(); first.dispatchEvent(new ClipboardEvent('copy', {clipboardData: data, bubbles: true, cancelable: true}));"
        "return [data.getData('text/plain'), Number(first.dataset.row.split('/')[1])]")
    assert [f"content {n}\n" in copied[0] for n in range(copied[1] + 1, 299)] == [True] * (298 - copied[1]) and copied[1] < 250
    # Without the focus in it, the card leaves the document, and is open again when it returns.
    page.script("getSelection().removeAllRanges(); document.querySelector('.turns').focus()")
    wheel(page, 1500, 2)
    page.until(lambda: not page.css(f"[data-row='{row}']"), "the card out of the document")
    page.keys(Keys.END)
    page.until(lambda: page.css(f"[data-row='{row}'] .tool-body"), "the card, open")


def test_the_question_at_the_upper_edge_is_the_turns_own(server, browse):
    bring_in(server, "s", [turn(n, "\n\n".join(f"answer {n} paragraph {k} " + "word " * 30 for k in range(60))) for n in range(1, 6)])
    page = browse(server, "/#s")
    page.until_text("answer", "answer 5", limit=30)
    still(page)
    sticky = ("const box = document.querySelector('.turns').getBoundingClientRect();"
              "const e = document.elementFromPoint(box.left + box.width / 2, box.top + 20);"
              "return e.closest('article')?.querySelector('[data-testid=user-message]')?.textContent")
    seen = []
    for _ in range(60):
        still(page)
        said = page.script(sticky)
        key = at_top(page)[0]
        if said and (not seen or seen[-1] != said):
            seen.append(said)
        number = int(re.match(r"int_0*(\d+)", key).group(1))
        assert said is None or said in (f"question {number}", f"question {number - 1}", f"question {number + 1}")
        if page.script("return document.querySelector('.turns').scrollTop") == 0:
            break
        wheel(page, -700)
    assert seen == [f"question {n}" for n in (5, 4, 3, 2, 1)]
    # The question can be edited where it stands, far from the beginning of its turn.
    wheel(page, 1500)
    still(page)
    key, _ = at_top(page)
    page.css(".turns article [data-testid=edit-message]")[0].click()
    page.one("edit-text").send_keys(Keys.CONTROL + Keys.END + Keys.NULL, " and more")
    assert page.one("edit-text").get_attribute("value") == "question 1 and more"
    page.one("edit-text").send_keys(Keys.ESCAPE)
    page.gone("edit-text")
    assert at_top(page)[0].split("/")[0] == key.split("/")[0]


def test_words_are_found_wherever_they_are_in_the_chat(server, browse):
    turns = many_turns(400)
    turns[2]["agent_events"][-1]["content"] += " a needle here"
    turns[200]["agent_events"].insert(0, {"type": "TOOL_CALL", "id": "call_9", "tool_name": "read_file", "tool_input": "{\"path\": \"hay\"}", "round_index": 0})
    turns[200]["agent_events"].insert(1, {"type": "TOOL_RESULT", "id": "call_9", "tool_name": "read_file", "tool_output": "hay hay NEEDLE hay",
                                          "is_error": False, "round_index": 0})
    turns[390]["user_message"] = "Where is the Needle, and is it a needle?"
    bring_in(server, "hay", turns)
    page = browse(server, "/#hay")
    page.until_text("answer", "answer 400", limit=30)
    page.keys(Keys.CONTROL, "k")
    page.one("palette").find_element("css selector", "input").send_keys("find in", Keys.ENTER)
    page.type("find-words", "needle")
    page.until_text("find-count", "1 of 4", limit=60)

    def visible(words):
        return page.script("const box = document.querySelector('.turns').getBoundingClientRect();"
                           "return [...CSS.highlights.get('found-now') ?? []].some((range) => { const r = range.getBoundingClientRect();"
                           "return range.toString().toLowerCase() === arguments[0] && r.top >= box.top && r.bottom <= box.bottom; })", words)

    place = []
    for n in range(1, 5):
        page.until_text("find-count", f"{n} of 4")
        page.until(lambda: visible("needle"), f"hit {n} in the window")
        place.append(page.script("const found = [...CSS.highlights.get('found-now')][0].startContainer.parentElement;"
                                 "return found.closest('[data-interaction]').dataset.interaction"))
        page.type("find-words", Keys.ENTER)
    assert place == ["int_003", "int_201", "int_391", "int_391"]
    page.until_text("find-count", "1 of 4")
    page.type("find-words", "s and more")
    page.until_text("find-count", "Not found")
    page.type("find-words", Keys.ESCAPE)
    page.gone("find")


# --- while it is written ---------------------------------------------------------------------------------------------

GROWS = ("# Plan\n\nThis is **very bold text** with `code in it` and [a link](https://example.org/with/a/long/path) in it.\n\n"
         "| name | value |\n|------|------:|\n| one | 1 |\n| two | 2 |\n\n- first\n- second with *stress*\n- third\n\n"
         "```python\ndef f(x):\n    return '**' + x\n```\n\n1. one\n2. two\n\nAnd the end ~~of it~~.")
# Observes the growing text at each change: visible raw marks, and removed nodes.
OBSERVE = """window.raw = []; window.removed = []; window.states = 0;
const look = () => { const box = document.querySelector('[data-testid=answer]'); if (!box) return;
  const text = [...box.querySelectorAll('[data-kind=text]')].map((e) => e.textContent).join(' '); window.states++;
  if (/\\*\\*|\\]\\(|https:|\\|--|~~|`/.test(text)) window.raw.push(text.slice(-80)); };
new MutationObserver((changes) => { for (const change of changes) for (const node of change.removedNodes) {
  if (change.target.closest?.('[data-testid=answer]') && node.nodeType === 1 && node.textContent.trim() !== '') window.removed.push(node.outerHTML.slice(0, 80)); }
  look(); })
  .observe(document.body, {childList: true, subtree: true, characterData: true});"""


def test_what_grows_looks_as_it_will_look(server, provider, browse):
    gates = [Gate() for _ in range(len(GROWS) // 2)]
    steps = []
    for n, gate in enumerate(gates):
        steps += [GROWS[2 * n:2 * n + 2], gate]
    provider.plan(text(*steps, GROWS[2 * len(gates):]))
    page = browse(server)
    page.script(OBSERVE)
    page.say("write")
    for n, gate in enumerate(gates):
        gate.wait_reached()
        page.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")
        gate.release()
    page.until_text("answer", "And the end of it.")
    assert page.script("return window.states") > 50
    assert page.script("return window.raw") == []
    assert page.script("return window.removed") == []
    assert [e.tag_name for e in page.css("[data-testid=answer] :is(h1, strong, a, table, ul, ol, del)")] == ["h1", "strong", "a", "table", "ul", "ol", "del"]


def test_a_word_that_is_chosen_in_what_grows_stays_chosen(server, provider, browse):
    gate = Gate()
    provider.plan(text("one two three ", gate, "four five **six** seven"))
    page = browse(server)
    page.say("write")
    page.until_text("answer", "three")
    page.script("const node = document.createTreeWalker(document.querySelector('[data-testid=answer]'), NodeFilter.SHOW_TEXT).nextNode();"
                "getSelection().setBaseAndExtent(node, 4, node, 7)")
    gate.release()
    page.until_text("answer", "seven")
    assert page.script("return getSelection().toString()") == "two"


# --- many chats ------------------------------------------------------------------------------------------------------

# Which of the elements React has drawn since the last call: an element that is drawn gets new properties.
DRAWN = """const drawn = [], key = Object.keys(document.querySelector('.turns')).find((each) => each.startsWith('__reactFiber$'));
window.propertiesOf ??= new Map();
for (const name of arguments[0]) {
  const fiber = document.querySelector(name)[key], now = [fiber.memoizedProps, fiber.alternate?.memoizedProps];
  if (now.some((each) => each && !window.propertiesOf.get(name)?.includes(each))) drawn.push(name);
  window.propertiesOf.set(name, now);
}
return drawn;"""


def test_a_word_that_comes_draws_its_turn_and_not_the_page(server, provider, browse):
    parts = [".sidebar", ".bar", ".composer", ".meter", ".turns", ".turn:not(.running)", ".turn.running"]
    first, second = Gate(), Gate()
    provider.plan(text("the first"), text("begin ", first, "and go on ", second, "to the end"))
    page = browse(server)
    page.say("one")
    page.until_text("turn-usage", "tokens")
    page.say("two")
    page.until(lambda: "begin" in page.all("answer")[-1].text, "its begin")
    assert page.script(DRAWN, parts) == parts
    page.until(lambda: page.script(DRAWN, parts) == [], "rest")
    first.release()
    page.until(lambda: "go on" in page.all("answer")[-1].text, "more of it")
    assert page.script(DRAWN, parts) == [".turn.running"]
    second.release()
    page.until(lambda: "the end" in page.all("answer")[-1].text, "all of it")


def test_a_thousand_chats_in_the_sidebar(server, browse, figure):
    for n in range(1000):
        server.client.post("/chats", {"id": f"chat{n}", "title": f"Chat number {n}"}).expect(201)
    page = metered(browse, server)
    page.until(lambda: len(page.all("chat-item")) > 10, "chats", limit=30)
    assert len(page.all("chat-item")) <= 100
    assert page.all("chat-item")[0].get_attribute("aria-setsize") == "1000"
    box = page.css(".chat-list")[0]
    most = 0

    def turn_the_wheel():
        nonlocal most
        ActionChains(page.driver, duration=0).scroll_from_origin(ScrollOrigin.from_element(box), 0, 2000).perform()
        most = max(most, len(page.all("chat-item")))

    work, frame, _ = busiest(page, *[turn_the_wheel] * 12)
    figure(f"a sidebar of 1,000 chats: {most} of them in the document; "
           f"the busiest turn of the wheel took {work:.0f} ms of work, the longest frame {frame:.0f} ms")
    assert most <= 100 and work < FRAME * SLACK
    page.script("const b = document.querySelector('.chat-list'); b.scrollTop = b.scrollHeight")
    page.until_text("chat-item", "Chat number 0")
    page.type("search", "number 777")
    page.until(lambda: [e.text.split("\n")[0] for e in page.all("chat-item")] == ["Chat number 777"], "the chat that is searched for")


def test_memory_stays_bounded_when_a_hundred_chats_are_looked_at(server, browse, figure):
    for n in range(100):
        turns = [turn(k, f"chat {n} answer {k} " + "some words " * 4000 + f"end {n}") for k in range(1, 11)]  # 0.4 MB
        bring_in(server, f"c{n}", turns, title=f"Chat {n}")
    page = metered(browse, server, "/#c0")
    page.until_text("answer", "end 0", limit=30)
    start = heap(page)
    for n in range(1, 100):
        page.script("location.hash = arguments[0]", f"#c{n}")
        page.until(lambda n=n: page.script("return [...document.querySelectorAll('[data-testid=answer]')]"
                                           ".some((e) => e.textContent.trim().endsWith(arguments[0]))", f"end {n}"), f"chat {n}", limit=30)
    used = heap(page)
    figure(f"after a walk through 100 chats of 0.4 MB: the page's heap is {used:.0f} MB (with the first one {start:.0f} MB)")
    assert used < 90
    page.script("location.hash = '#c0'")
    page.until_text("answer", "end 0", limit=30)


def test_twenty_streams_in_the_background(server, provider, browse, figure):
    gate = Gate()
    provider.plan(*[text("begin ", gate, *[f"word{k} " * 20 for k in range(200)]) for _ in range(21)])
    streams = [server.client.start(f"live{n}", f"live chat {n}") for n in range(21)]
    for stream in streams:
        stream.until("text_delta")
    page = metered(browse, server, "/#live0")
    page.until_text("answer", "begin")
    for _ in range(21):
        gate.release()
    work, frame, most = busiest(page, *[lambda: wheel(page, -600), lambda: page.type("composer", "typed"), lambda: wheel(page, 900)] * 5)
    for stream in streams:
        stream.finish()
    page.until_text("answer", "word199", limit=30)
    figure(f"while 21 chats stream: the busiest turn of the wheel or typed word took {work:.0f} ms of work, the longest frame {frame:.0f} ms")
    assert work < 3 * FRAME * SLACK and most <= MOST_ROWS  # spans several frames, each with new text


# --- the feed --------------------------------------------------------------------------------------------------------

# Records what the page reads of GET /events, frame by frame.
COUNT = """window.frames = []; window.streams = 0;
const pipe = ReadableStream.prototype.pipeThrough;
ReadableStream.prototype.pipeThrough = function (...all) { const out = pipe.apply(this, all); window.streams++; const get = out.getReader;
  out.getReader = function (...more) { const reader = get.apply(out, more), read = reader.read; let rest = '';
    reader.read = async () => { const part = await read.call(reader); if (!part.done) { const all = (rest + part.value).split('\\n\\n'); rest = all.pop();
      for (const frame of all) { const data = /^data: (.*)$/m.exec(frame)?.[1], event = /^event: (.*)$/m.exec(frame)?.[1];
        if (data) window.frames.push([event, JSON.parse(data)]); } } return part; };
    return reader; }; return out; };"""


def events_read(page):
    return [(data["chat_id"], data["interaction_id"], data["event"]["seq"]) for name, data in page.script("return window.frames") if name == "chat_event"]


def test_each_event_is_sent_once_however_often_the_chat_is_changed(server, provider, browse):
    gates = [Gate() for _ in range(3)]
    provider.plan(*[text(*[f"{name}{k} " for k in range(30)], gate, *[f"{name}{k} " for k in range(30, 60)]) for name, gate in zip("abc", gates)])
    streams = []
    for name in "abc":
        streams.append(server.client.start(f"chat-{name}", f"go {name}"))
        streams[-1].until("text_delta")
    page = browse(server, "/#chat-a", script=COUNT)
    page.until_text("answer", "a29")
    for name in "bcabcbacab":
        page.script("location.hash = arguments[0]", f"#chat-{name}")
        page.until_text("answer", f"{name}29")
    for gate in gates:
        gate.release()
    for stream in streams:
        stream.finish()
    for name in "cab":
        page.script("location.hash = arguments[0]", f"#chat-{name}")
        page.until_text("answer", f"{name}59")
    read = events_read(page)
    assert len(read) == len(set(read)), sorted(key for key in set(read) if read.count(key) > 1)[:10]
    for name, stream in zip("abc", streams):
        numbers = [seq for chat, _, seq in read if chat == f"chat-{name}"]
        assert numbers == [event.seq for event in stream.events], "all events, in order"


def test_nothing_is_lost_when_the_connection_breaks(make_server, provider, browse, request):
    wire = Wire()
    request.addfinalizer(wire.close)
    wire.target = make_server(provider, config={"public_hosts": [f"127.0.0.1:{wire.port}"]}).port
    gates = [Gate() for _ in range(3)]
    provider.plan(text("one ", gates[0], "two ", gates[1], "three ", gates[2], "four"))
    page = browse(wire, script=COUNT)
    page.say("count")
    page.until_text("answer", "one")
    for gate, word in zip(gates, ("two", "three", "four")):
        before = page.script("return window.streams")
        wire.cut()
        page.until(lambda: page.script("return window.streams") > before, "the feed again")
        gate.release()
        page.until_text("answer", word)
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end")
    assert page.all("answer")[-1].text == "one two three four"
    read = events_read(page)
    assert len(read) == len(set(read))
    seqs = [seq for _, _, seq in read]
    assert seqs == list(range(1, len(seqs) + 1))


# Shortens waits of 20 seconds and more to one second.
HURRY = "const wait = window.setTimeout; window.setTimeout = (call, ms, ...all) => wait(call, ms >= 20000 ? 1000 : ms, ...all);"


def test_a_connection_that_has_died_in_silence_is_left(make_server, provider, browse, request):
    wire = Wire()
    request.addfinalizer(wire.close)
    wire.target = make_server(provider, config={"public_hosts": [f"127.0.0.1:{wire.port}"]}).port
    gate = Gate()
    provider.plan(text("before ", gate, "after"))
    page = browse(wire, script=COUNT + HURRY)
    page.say("sleep")
    page.until_text("answer", "before")
    wire.hush()
    gate.release()
    page.until_text("answer", "before after", limit=30)
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end")
    read = events_read(page)
    assert len(read) == len(set(read))


def test_killed_in_mid_answer_it_goes_on_and_two_windows_agree(make_server, provider, browse):
    server, gate = make_server(provider), Gate()
    provider.plan(tools(call("echo", {"text": "x"}), say="First I look. "), text("before ", gate))
    pages = [browse(server)]
    pages[0].say("hello")
    pages[0].until_text("answer", "before")
    chat = server.client.get("/chats").json["chats"][0]["id"]
    pages.append(browse(server, f"/#{chat}"))
    pages[1].until_text("answer", "before")
    port = server.port
    server.kill()
    for page in pages:
        page.one("offline")
    again = make_server(provider, home=server.home, arguments=("--port", str(port)))
    for page in pages:
        page.gone("offline")
        page.until(lambda: page.one("turn").get_attribute("data-status") == "FAILED", "the interrupted turn")
        page.one("error-note")
    provider.plan(text("and after, **bold** to the end"))
    pages[0].press("resume")
    for page in pages:
        page.until_text("answer", "bold to the end")
        page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end")
    stored = again.client.get(f"/chats/{chat}").json["interactions"]
    said = [e["content"].replace("**", "").strip() for i in stored for e in i["agent_events"] if e["type"] in ("MESSAGE", "ANSWER")]
    for page in pages:
        assert [e.text for e in page.all("answer")] == said


def test_what_was_typed_without_a_server_is_kept_and_sent_again(make_server, provider, browse):
    server = make_server(provider)
    provider.plan(text("first answer"))
    page = browse(server)
    page.say("first")
    page.until_text("answer", "first answer")
    port = server.port
    server.stop()
    page.one("offline")
    page.say("said to nobody")
    page.until_text("unsent", "said to nobody")
    assert page.one("composer").get_attribute("value") == ""
    again = make_server(provider, home=server.home, arguments=("--port", str(port)))
    page.gone("offline")
    page.driver.refresh()  # the message survives a reload
    page.until_text("unsent", "said to nobody")
    provider.plan(text("now somebody listens"))
    page.press("send-again")
    page.until_text("answer", "now somebody listens")
    page.gone("unsent")
    chat = again.client.get("/chats").json["chats"][0]["id"]
    assert [i["user_message"] for i in again.client.get(f"/chats/{chat}").json["interactions"]] == ["first", "said to nobody"]
