"""The page in a real browser, used as a person would use it."""
import datetime
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
from support import documents, npm
from support.browser import Keys
from support.client import raw_exchange
from support.provider import Gate, Reply, call, delta, ending, failure, text, tools
from support.server import BINARY
from support.timing import eventually

pytestmark = pytest.mark.limit(90)


def answer_of(server, chat, interaction):
    return next(e["content"] for e in server.client.interaction(chat, interaction)["agent_events"] if e["type"] == "ANSWER")


# --- chat ------------------------------------------------------------------------------------------------------------

def test_a_message_makes_a_chat_and_its_answer_streams(server, provider, browse):
    gate = Gate()
    provider.plan(text("Hello ", gate, "**world**"))
    page = browse(server)
    page.say("hi there")
    page.until_text("answer", "Hello")
    assert page.one("turns").get_attribute("aria-busy") == "true"
    assert page.one("chat-item").get_attribute("data-status") == "running"
    gate.release()
    page.until(lambda: page.css("[data-testid=answer] strong"), "the bold word")
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false")
    page.until(lambda: page.one("chat-item").get_attribute("data-status") == "idle")
    assert page.text("user-message") == "hi there" and page.one("chat-item").text.startswith("hi there")
    assert "tokens" in page.text("meter")
    assert [c["title"] for c in server.client.get("/chats").json["chats"]] == ["hi there"]


def test_markdown_code_math_and_diffs(server, provider, browse):
    provider.plan(text("# Title\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\ndef f(): return 'x'\n```\n\n```diff\n+new\n-old\n```\n\nIt is $x^2$.\n"))
    page = browse(server)
    page.say("show")
    page.until(lambda: page.css(".markdown math"), "the formula as MathML")
    page.until(lambda: page.css(".code .hljs-keyword"), "coloured code")
    assert page.css(".markdown h1") and len(page.css(".markdown li")) == 2 and len(page.css(".markdown td")) == 2
    assert page.css(".code .added")[0].text == "+new" and page.css(".code .removed")[0].text == "-old"
    page.script("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    page.css(".code .copy")[0].click()
    assert page.script("return window.copied").strip() == "def f(): return 'x'"


def test_thinking_is_folded_and_timed(server, provider, browse):
    gate = Gate()
    provider.plan(Reply([delta({"reasoning_content": "First this, then that."}), gate, delta({"content": "Done."})] + ending()))
    page = browse(server)
    page.say("think")
    page.until_text("thinking", "Thinking")
    assert "First this" not in page.text("thinking")
    gate.release()
    page.until_text("answer", "Done.")
    page.until_text("thinking", "Thought")
    page.one("thinking").find_element("css selector", "button").click()
    page.until_text("thinking", "First this, then that.")


def test_tool_cards_by_kind_can_be_opened_and_hidden(server, provider, browse):
    (server.home.workspace / "a.txt").write_text("the content")
    provider.plan(tools(call("read_file", {"path": "a.txt"}, "call_1"), call("search_files", {"pattern": "content"}, "call_2")), text("read"))
    page = browse(server)
    page.say("look")
    page.until_text("answer", "read")
    cards = page.all("tool-card")
    assert [card.get_attribute("data-tool") for card in cards] == ["read_file", "search_files"]
    assert "the content" not in cards[0].text
    cards[0].find_element("css selector", "button").click()
    page.until_text("tool-card", "the content")
    page.keys(Keys.CONTROL, Keys.ALT, "t")
    page.until_text("tools-hidden", "2 tool calls")
    page.keys(Keys.CONTROL, Keys.ALT, "t")
    page.one("tool-card")


def test_an_error_says_what_to_do_next(server, provider, browse):
    provider.plan(failure(404, "no such model"))
    page = browse(server)
    page.say("fail")
    note = page.one("error-note")
    assert "There is no such model" in note.text and "Choose another model" in note.text
    provider.plan(text("now it works"))
    note.find_elements("css selector", "button")[-1].click()
    page.until_text("answer", "now it works")


def test_stop(server, provider, browse):
    gate = Gate()
    provider.plan(text("begin", gate))
    page = browse(server)
    page.say("long")
    page.until_text("answer", "begin")
    page.press("stop")
    page.one("note-cancelled")
    assert page.one("turn").get_attribute("data-status") == "CANCELLED"


def test_messages_wait_in_a_queue(server, provider, browse):
    gate = Gate()
    provider.plan(text("one", gate))
    page = browse(server)
    page.say("first")
    page.until_text("answer", "one")
    page.say("second")
    assert page.one("queue").find_element("css selector", "textarea").get_attribute("value") == "second"
    provider.plan(text("two"))
    gate.release()
    page.until_text("answer", "two")
    page.gone("queue")


def test_a_draft_is_kept_and_a_long_paste_becomes_a_file(server, provider, browse):
    provider.plan(text("ok"))
    page = browse(server)
    page.say("hello")
    page.until_text("answer", "ok")
    page.type("composer", "half a thou")
    page.driver.refresh()
    page.until(lambda: page.one("composer").get_attribute("value") == "half a thou", "the draft")
    page.script("""const data = new DataTransfer(); data.setData('text', 'x'.repeat(30000));
                   arguments[0].dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));""", page.one("composer"))
    page.until_text("attachments", "pasted.txt")


# --- people in the loop ----------------------------------------------------------------------------------------------

def test_an_approval_is_shown_as_a_diff_and_approved(server, provider, browse):
    (server.home.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    provider.plan(tools(call("edit_file", {"path": "a.txt", "old_text": "two", "new_text": "TWO"})), text("changed"))
    page = browse(server)
    page.say("change it")
    page.one("approval-card")
    page.until(lambda: [e.text for e in page.css(".approval .lines .added")] == ["+ TWO"], "the diff")
    assert page.driver.title.startswith("(1) ")
    page.press("approve")
    page.until_text("answer", "changed")
    page.gone("approval-card")
    assert (server.home.workspace / "a.txt").read_text() == "one\nTWO\nthree\n"


def test_arguments_are_changed_in_a_form_and_words_reach_the_model(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "echo one"})), text("ran"))
    page = browse(server)
    page.say("run")
    page.press("edit-arguments")
    field = page.until(lambda: page.css(".approval .form [name=command]"), "the field")[0]
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys("echo two > out.txt")
    page.type("feedback", "better so")
    page.press("approve")
    page.until_text("answer", "ran")
    assert (server.home.workspace / "out.txt").read_text() == "two\n"
    assert "better so" in json.dumps(provider.requests[-1].body)


def test_a_denial_and_a_scope(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "true"})), text("no then"))
    page = browse(server)
    page.say("run")
    page.press("deny")
    page.until_text("answer", "no then")
    provider.plan(tools(call("run_shell", {"command": "true"}, "call_2")), text("yes"))
    page.say("again")
    page.one("scope").find_element("css selector", "option[value=chat]").click()
    page.press("approve")
    page.until_text("answer", "yes")
    grants = server.client.get("/chats").json["chats"][0]["id"]
    assert [g["tool_name"] for g in server.client.get(f"/chats/{grants}/grants").json["grants"]] == ["run_shell"]


def test_a_pattern_is_chosen_in_the_card_and_listed_with_its_sentence(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "echo one"})), text("first"))
    page = browse(server)
    page.say("run")
    page.one("approval-card")
    assert not page.all("pattern")
    page.one("scope").find_element("css selector", "option[value=always]").click()
    page.one("pattern").find_element("css selector", "option[value='echo *']").click()
    page.until(lambda: page.text("pattern-means").startswith("Runs `echo` followed by"), "its sentence")
    assert "30 days" in page.text("pattern-means")
    page.press("approve")
    page.until_text("answer", "first")
    provider.plan(tools(call("run_shell", {"command": "echo two three"}, "call_2")), text("second"))
    page.say("again")
    page.until_text("answer", "second")
    grant, = server.client.get("/grants").json["grants"]
    assert grant["pattern"] == "echo *" and grant["uses"] == 1
    page.press("tab-settings")
    page.until(lambda: "used once" in page.text("grant-use"), "how often it was used")


def test_how_long_a_pattern_counts_is_chosen_by_keys_alone(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "echo one"})), text("first"))
    page = browse(server)
    page.say("run")
    page.one("approval-card")
    assert not page.all("lifetime") and not page.all("pattern-means")
    page.one("feedback").click()

    def step(name, *keys):
        page.keys(Keys.TAB)
        page.until(lambda: page.script("return document.activeElement.dataset.testid") == name, f"the focus on {name}")
        for key in keys:
            page.keys(key)

    # A first arrow opens the list, and nothing is chosen before Enter.
    step("scope", Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert not page.all("pattern-means")
    page.keys(Keys.ENTER)
    page.until(lambda: page.text("pattern-means") == "Runs calls of this tool with exactly these arguments. Applies in this chat, with no expiry.", "what equal calls are")
    step("pattern", Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    page.until(lambda: page.text("pattern-means").startswith("Runs `echo` followed by"), "its sentence")
    assert page.text("pattern-means").endswith("Applies in this chat, for 30 days.")
    step("lifetime", Keys.ARROW_DOWN, Keys.HOME, Keys.ENTER)
    page.until(lambda: page.text("pattern-means").endswith("Applies in this chat, for an hour."), "the time")
    step("approve")
    means = page.script("return document.getElementById(document.activeElement.getAttribute('aria-describedby')).textContent")
    assert means.startswith("Runs `echo` followed by") and "for an hour" in means, "a screen reader reads out what the button allows"
    page.keys(Keys.ENTER)
    page.until_text("answer", "first")
    chat = server.client.get("/chats").json["chats"][0]["id"]
    grant, = server.client.get(f"/chats/{chat}/grants").expect(200, "chat_grants").json["grants"]
    left = datetime.datetime.fromisoformat(grant["expires_at"].replace("Z", "+00:00")) - datetime.datetime.now(datetime.timezone.utc)
    assert grant["pattern"] == "echo *" and 3000 < left.total_seconds() <= 3600
    page.press("tab-settings")
    page.until(lambda: page.text("grant-means").startswith("Runs `echo` followed by"), "the sentence, in the list too")
    assert ":" in page.text("grant-use"), "a grant for an hour shows a time of day"


def test_one_by_one_or_all(server, provider, browse):
    calls = [call("run_shell", {"command": f"echo {n} >> log.txt"}, f"call_{n}") for n in range(3)]
    provider.plan(tools(*calls), text("done"))
    page = browse(server)
    page.say("three")
    page.until(lambda: len(page.all("approval-card")) == 3, "three cards")
    first = page.all("deny")[0]
    page.script("arguments[0].scrollIntoView({block: 'center'})", first)
    first.click()
    page.until(lambda: len(page.all("approval-card")) == 2, "two cards")
    page.approve_all()
    page.until_text("answer", "done")
    assert (server.home.workspace / "log.txt").read_text().split() == ["1", "2"]


# The commands whose card has been in the window below the message that sticks.
SEEN = """const seen = window.seenCommands = new Set();
const look = () => {
  const frame = document.querySelector('.turns')?.getBoundingClientRect();
  for (const each of document.querySelectorAll('[data-testid=approval-card] dd pre')) {
    const box = each.getBoundingClientRect();
    if (frame && box.top >= frame.top && box.bottom <= frame.bottom) seen.add(each.textContent);
  }
  requestAnimationFrame(look);
};
look();"""


@pytest.mark.parametrize("size, count", [((500, 740), 6), ((1200, 900), 12)])
def test_what_was_not_seen_is_not_approved(server, provider, browse, size, count):
    commands = [f"echo {n} >> log.txt" for n in range(count)]
    provider.plan(tools(*[call("run_shell", {"command": each}, f"call_{n}") for n, each in enumerate(commands)]), text("done"))
    page = browse(server, size=size)
    page.driver.set_window_size(*size)
    page.script(SEEN)
    page.say("many")
    page.until(lambda: len(page.all("approval-card")) == count, "all cards")
    # The first call is read from its beginning, not the last one's end.
    first = page.all("approval-card")[0]
    page.until(lambda: page.script("const list = document.querySelector('.turns').getBoundingClientRect(), box = arguments[0].getBoundingClientRect(); return box.top >= list.top && box.top < list.bottom - 100", first),
               "the beginning of the first card")
    assert not page.one("approve-all").is_enabled()
    page.script("document.querySelector('[data-testid=approve-all]').click()")
    assert len(server.client.get("/approvals").json["approvals"]) == count, "nothing was answered"
    page.approve_all()
    assert set(page.script("return [...window.seenCommands]")) == set(commands)
    page.until_text("answer", "done")
    assert sorted((server.home.workspace / "log.txt").read_text().split()) == sorted(str(n) for n in range(count))


def test_a_card_taller_than_the_window_is_seen_when_all_of_it_was(server, provider, browse):
    long = "\n".join(f"echo line {n}" for n in range(60))
    provider.plan(tools(call("run_shell", {"command": "true"}, "a"), call("run_shell", {"command": long}, "b")), text("done"))
    page = browse(server, size=(500, 500))
    page.say("go")
    page.until(lambda: len(page.all("approval-card")) == 2, "two cards")
    presses = 0

    def unseen():
        return page.script("return [document.querySelector('[data-testid=show-unseen]') !== null, ...[...document.querySelectorAll('[data-testid=approval-card]')].map((e) => e.dataset.unseen)]")
    page.until(lambda: unseen()[1:] != [None, None], "the first look")
    while (before := unseen())[0]:
        page.script("document.querySelector('[data-testid=show-unseen]').click()")
        presses += 1
        page.until(lambda: unseen() != before, "more of it to be seen")
    assert presses >= 3, "the long one takes several looks"
    # Arguments that are being changed are not those that were seen.
    page.all("edit-arguments")[-1].click()
    page.until(lambda: not page.one("approve-all").is_enabled(), "the changed call is left out")
    page.press("keep-arguments")
    page.approve_all()
    page.until_text("answer", "done")


def test_answering_one_of_several_does_not_move_the_others_away(server, provider, browse):
    provider.plan(tools(*[call("run_shell", {"command": f"echo {n}"}, f"call_{n}") for n in range(4)]), text("done"))
    page = browse(server, size=(500, 740))
    page.say("many")
    page.until(lambda: len(page.all("approval-card")) == 4, "all cards")
    last = page.all("approval-card")[-1]
    page.script("document.querySelector('.turns').scrollTop = 1e6")
    page.until(lambda: page.script("return document.querySelector('.turns').scrollTop") > 500, "the end")
    page.script("return new Promise((done) => setTimeout(done, 300))")
    place = last.rect["y"]
    first = server.client.get("/approvals").json["approvals"][0]
    server.client.post(f"/approvals/{first['approval_id']}", {"approved": False}).expect(200)
    page.until(lambda: len(page.all("approval-card")) == 3, "one less")
    page.script("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    box = last.rect
    assert box["y"] + box["height"] > 0 and abs(box["y"] - place) < 200, "the reader stays at the last one"
    page.press("deny-all")
    page.until_text("answer", "done")


def test_what_cannot_be_seen_is_spelled_out(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "echo \u202egnp.exe\u200b"})), text("ok"))
    page = browse(server)
    page.say("run")
    card = page.one("approval-card").text
    assert "\\u{202e}" in card and "\\u{200b}" in card and "\u202e" not in card
    page.press("deny")
    page.until_text("answer", "ok")


def test_questions_as_text_and_options(server, provider, browse):
    provider.plan(tools(call("ask_human", {"question": "Which colour?", "options": ["red", "blue"]})), text("blue it is"))
    page = browse(server)
    page.say("ask me")
    assert "Which colour?" in page.text("input-card")
    next(b for b in page.all("option") if "blue" in b.text).click()
    page.until_text("answer", "blue it is")
    assert "blue" in json.dumps(provider.requests[-1].body["messages"][-1])
    provider.plan(tools(call("ask_human", {"question": "Your name?"}, "call_2")), text("hello Ann"))
    page.say("ask again")
    page.type("input-text", "Ann")
    page.press("input-send")
    page.until_text("answer", "hello Ann")


def test_the_inbox_has_what_waits_in_every_chat_and_agrees_with_curl(server, provider, browse):
    page = browse(server)
    streams = []
    for name in ("a", "b"):
        provider.plan(tools(call("run_shell", {"command": f"echo {name} >> log.txt"})))
        streams.append(server.client.start(name, f"do {name}"))
        streams[-1].until("approval_required")
    page.until(lambda: page.text("inbox-count") == "2", "two in the inbox")
    page.press("tab-inbox")
    page.until(lambda: len(page.all("approval-card")) == 2, "two cards")
    # An approval answered elsewhere disappears here.
    provider.plan(text("done a"))
    first = server.client.get("/approvals").json["approvals"][0]
    server.client.post(f"/approvals/{first['approval_id']}", {"approved": True}).expect(200)
    page.until(lambda: len(page.all("approval-card")) == 1, "one card")
    # An approval answered here is gone there.
    provider.plan(text("done b"))
    page.press("approve")
    page.gone("approval-card")
    assert server.client.get("/approvals").json["approvals"] == []
    for stream in streams:
        stream.finish()
    assert sorted((server.home.workspace / "log.txt").read_text().split()) == ["a", "b"]


def test_two_windows_show_the_same(server, provider, browse):
    provider.plan(text("first answer"))
    one = browse(server)
    one.say("hello")
    one.until_text("answer", "first answer")
    other = browse(server)
    other.open_chat(server.client.get("/chats").json["chats"][0]["id"])
    other.until_text("answer", "first answer")
    gate = Gate()
    provider.plan(text("second ", gate, "answer"))
    one.say("more")
    other.until_text("answer", "second")
    gate.release()
    for page in (one, other):
        page.until_text("answer", "second answer")
    assert [e.text for e in one.all("answer")] == [e.text for e in other.all("answer")]


# --- time ------------------------------------------------------------------------------------------------------------

def test_edit_with_a_preview_then_branches_undo_and_redo(server, provider, browse):
    page = browse(server)
    for n in ("one", "two"):
        provider.plan(text(f"answer {n}"))
        page.say(f"question {n}")
        page.until_text("answer", f"answer {n}")
    page.all("edit-message")[0].click()
    page.until_text("edit-preview", "2 turns will be superseded")
    page.type("edit-text", "question other", clear=True)
    provider.plan(text("answer other"))
    page.press("edit-run")
    page.until_text("answer", "answer other")
    page.until(lambda: [e.text for e in page.all("user-message")] == ["question other"], "the new branch")
    assert page.text("branch-label") == "2/2"
    page.press("branch-prev")
    page.until(lambda: [e.text for e in page.all("user-message")] == ["question one", "question two"], "the old branch")
    assert page.text("branch-label") == "1/2"
    page.keys(Keys.CONTROL, Keys.ALT, "z")
    page.until(lambda: [e.text for e in page.all("user-message")] == ["question one"], "the turn before")
    page.keys(Keys.CONTROL, Keys.ALT, "y")
    page.until(lambda: len(page.all("user-message")) == 2, "the turn again")
    page.press("tab-branches")
    page.until(lambda: len(page.css("[data-testid=branch-map] .node")) == 3, "three turns on the map")
    boxes = page.css("[data-testid=branch-map] input")
    boxes[1].click()
    page.css("[data-testid=branch-map] input")[2].click()
    assert "question" in page.text("comparison")
    page.press("remove-branch")
    page.until(lambda: len(page.css("[data-testid=branch-map] .node")) == 2, "the branch gone")
    assert [i["id"] for i in server.client.history(server.client.get("/chats").json["chats"][0]["id"], "all")["interactions"]] == ["int_001", "int_002"]


def test_regenerate_and_fork(server, provider, browse):
    page = browse(server)
    provider.plan(text("first try"))
    page.say("question")
    page.until_text("answer", "first try")
    provider.plan(text("second try"))
    page.press("regenerate")
    page.until_text("answer", "second try")
    assert page.text("branch-label") == "2/2"
    page.press("fork")
    page.until(lambda: len(page.all("chat-item")) == 2, "the copy")
    page.until_text("answer", "second try")


def test_the_replay_scrubber_and_its_check(server, provider, browse):
    provider.plan(tools(call("echo", {"text": "x"})), text("finished"))
    page = browse(server)
    page.say("go")
    page.until_text("answer", "finished")
    page.press("replay")
    slider = page.one("replay-position")
    slider.send_keys(Keys.HOME)
    page.until(lambda: "0/" in page.text("replay-box"), "the beginning")
    assert not page.css(".replayed [data-testid=answer]")
    page.press("replay-play")
    page.until(lambda: page.css(".replayed [data-testid=answer]"), "the answer again")
    page.press("verify")
    page.until_text("verified", "the same")


# --- chats -----------------------------------------------------------------------------------------------------------

def test_rename_delete_and_undo(server, provider, browse):
    page = browse(server)
    provider.plan(text("ok"))
    server.client.turn("c", "the title")
    page.one("chat-item[data-chat='c']")
    page.press("chat-menu")
    page.press("chat-rename")
    page.type("rename", "Other", clear=True)
    page.type("rename", Keys.ENTER)
    page.until_text("chat-item", "Other")
    page.press("chat-menu")
    page.press("chat-delete")
    page.gone("chat-item")
    page.press("toast-action")
    page.until_text("chat-item", "Other")


def test_tasks_are_moved_and_added(server, provider, browse):
    page = browse(server)
    provider.plan(tools(call("manage_tasks", {"action": "add", "title": "Buy milk"})), text("noted"))
    page.say("remember")
    page.until_text("answer", "noted")
    page.press("tab-board")
    page.one("task").send_keys(Keys.ARROW_RIGHT)
    chat = server.client.get("/chats").json["chats"][0]["id"]
    page.until(lambda: server.client.get(f"/chats/{chat}/tasks").json["tasks"][0]["status"] == "doing", "the task in its new column")
    page.type("add-task", "Second")
    page.type("add-task", Keys.ENTER)
    page.until(lambda: [task["title"] for task in server.client.get(f"/chats/{chat}/tasks").json["tasks"]] == ["Buy milk", "Second"], "the second task")


def test_trace_and_settings(server, provider, browse):
    page = browse(server)
    provider.plan(tools(call("echo", {"text": "x"})), text("traced"))
    page.say("go")
    page.until_text("answer", "traced")
    page.press("tab-trace")
    trace = page.text("trace")
    assert "TOOL_CALL" in trace and "INTERACTION_COMPLETE" in trace and page.css(".waterfall rect")
    page.until_text("trace", "arguments_digest")
    page.press("tab-settings")
    assert str(server.home.workspace) in page.text("settings") and "run_shell" in page.text("settings")
    page.one("theme").find_element("css selector", "option[value=dark]").click()
    page.until(lambda: page.script("return getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)", "the dark theme")


def test_keys(server, provider, browse):
    page = browse(server)
    provider.plan(text("x"))
    server.client.turn("c", "find me")
    page.until_text("chat-item", "find me")
    page.keys(Keys.CONTROL, "k")
    page.one("palette").find_element("css selector", "input").send_keys("find me", Keys.ENTER)
    page.until_text("user-message", "find me")
    page.script("document.activeElement.blur()")
    page.keys("?")
    assert "Ctrl K" in page.text("help")
    page.keys(Keys.ESCAPE)
    page.gone("help")


@pytest.mark.parametrize("size", [(400, 800), (640, 480)])
def test_small_windows(server, provider, browse, size):
    provider.plan(text("fits " * 50))
    page = browse(server, size=size)
    page.say("hello")
    page.until_text("answer", "fits")
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    assert not page.one("composer").get_attribute("hidden")


# --- trust -----------------------------------------------------------------------------------------------------------

HOSTILE = """<script>window.hit = 1</script><img src=x onerror="window.hit=2"><svg onload="window.hit=3"></svg>
[a](javascript:window.hit=4) [b](data:text/html,<script>window.hit=5</script>) ![remote](http://192.0.2.1/x.png)
<iframe srcdoc="<script>parent.hit=6</script>"></iframe><style>body{display:none}</style><a href="x" onclick="window.hit=7">c</a>
\u001b[31mred\u001b[0m \u202eevil\u202c <form action="http://192.0.2.1"><button>go</button></form>
"""


def test_what_a_model_says_does_nothing(server, provider, browse):
    provider.plan(text(HOSTILE), text(">" * 100_000 + " deep"), text("[" * 50_000), text("```\n" + HOSTILE))
    page = browse(server)
    for n in range(4):
        page.say(f"say {n}")
        page.until(lambda n=n: page.all("turn")[-1].get_attribute("aria-posinset") == str(n + 1) and page.all("answer", page.all("turn")[-1])
                   and page.one("turns").get_attribute("aria-busy") == "false", f"answer {n}")
        for link in page.css("[data-testid=answer] a"):
            assert link.get_attribute("href").startswith(("http://", "https://", "mailto:"))
        assert not page.css("[data-testid=answer] :is(img, iframe, style, script, form, svg, [onclick], [onerror])")
    assert page.script("return window.hit") is None and page.one("composer").is_displayed()


TOKEN = "t0ken-of-this-server"


def guarded(make_server, provider, folder, *arguments, **more):
    file = folder / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    return make_server(provider, arguments=["--token-file", file, *arguments], token=TOKEN, **more)


def log_in(page):
    page.type("token", TOKEN, clear=True)
    page.press("log-in")
    page.one("composer")


def test_it_asks_for_the_token_once(make_server, provider, browse, tmp_path):
    server = guarded(make_server, provider, tmp_path)
    page = browse(server)
    for wrong in ("wrong", "wr\u00f6ng \u20ac"):
        page.type("token", wrong, clear=True)
        page.press("log-in")
        page.until_text("login", "does not accept that token")
    log_in(page)
    gate = Gate()
    provider.plan(text("ins", gate, "ide"))
    page.say("hello")
    page.until_text("answer", "ins")
    gate.release()
    page.until_text("answer", "inside")
    # Neither the cookie nor the key holds the token, and neither is valid without the other.
    cookie, = page.driver.get_cookies()
    key = page.script("return localStorage.getItem('pageKey')")
    assert page.script("return document.cookie") == "" and cookie["httpOnly"] and TOKEN not in cookie["value"] + key
    pair = f"Cookie: {cookie['name']}={cookie['value']}"
    for headers, status in ([pair], 401), ([f"Reprise-Page-Key: {key}"], 401), ([pair, f"Reprise-Page-Key: {key}"], 200):
        assert ask(server.port, "GET", "/chats", *headers).startswith(b"HTTP/1.1 %d" % status), headers
    page.driver.refresh()
    page.until_text("chat-item", "hello")
    # The log-in holds in another tab and after a restart, until a log-out, which ends it in both tabs.
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.open()
    page.until_text("chat-item", "hello")
    port = server.port
    server.stop()
    page.one("offline")
    guarded(make_server, provider, tmp_path, "--port", str(port), home=server.home)
    page.gone("offline")
    page.open_chat(server.client.get("/chats").json["chats"][0]["id"])
    page.until_text("answer", "inside")
    page.press("tab-settings")
    page.press("log-out")
    page.one("login")
    page.driver.switch_to.window(first)
    page.one("login")
    assert not page.all("chat-item") and page.script("return localStorage.getItem('pageKey')") is None


def test_with_a_token_files_come_too(make_server, provider, browse, tmp_path):
    server = guarded(make_server, provider, tmp_path)
    (tmp_path / "heron.png").write_bytes(documents.png(20, 10))
    saved = tmp_path / "saved"
    page = browse(server)
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(saved)})
    log_in(page)
    page.all("file")[0].send_keys(str(tmp_path / "heron.png"))
    page.until(lambda: page.all("attachment[data-state=there]"), "the upload")
    provider.plan(text("A heron."))
    page.say("what is it?")
    page.until_text("answer", "A heron.")
    page.until(lambda: page.script("return document.querySelector('.attachments.sent img')?.naturalWidth") == 20, "the picture")
    page.css(".attachments.sent a")[0].click()
    eventually(lambda: (saved / "heron.png").exists(), "the file, saved")
    assert (saved / "heron.png").read_bytes() == documents.png(20, 10)
    chat = server.client.get("/chats").json["chats"][0]["id"]
    page.press("chat-menu")
    page.css(".menu a")[0].click()
    eventually(lambda: (saved / f"{chat}.md").exists(), "the chat, saved")
    assert "A heron." in (saved / f"{chat}.md").read_text()
    page.keys(Keys.CONTROL, "k")
    page.one("palette").find_element("css selector", "input").send_keys("json lines", Keys.ENTER)
    eventually(lambda: (saved / f"{chat}.jsonl").exists(), "the chat, saved by the palette")
    (saved / "heron.png").unlink()
    page.press("tab-board")
    page.one("chat-file").find_element("css selector", "a").click()
    eventually(lambda: (saved / "heron.png").exists(), "the file, saved from the board")


def header(answer, name):
    found = re.search(rb"(?im)^" + name.encode() + rb": (.*)\r$", answer)
    return found and found.group(1).decode()


def ask(port, method, path, *headers, body=b""):
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close", *headers, *([f"Content-Length: {len(body)}"] if body else [])]
    return raw_exchange(port, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def test_the_gate_holds_for_the_page_too(make_server, provider, tmp_path):
    server = guarded(make_server, provider, tmp_path)
    index = ask(server.port, "GET", "/")
    assert index.startswith(b"HTTP/1.1 200")
    policy = header(index, "Content-Security-Policy")
    assert policy == ("default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; frame-src 'self'; "
                      "manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
    assert header(index, "Cache-Control") == "no-cache" and header(index, "X-Content-Type-Options") == "nosniff"
    assert ask(server.port, "GET", "/", f"If-None-Match: {header(index, 'ETag')}").startswith(b"HTTP/1.1 304")
    asset = re.search(rb"/assets/[A-Z0-9]+\.js", index).group().decode()
    packed = ask(server.port, "GET", asset, "Accept-Encoding: gzip, br")
    assert header(packed, "Content-Encoding") == "gzip" and "immutable" in header(packed, "Cache-Control")
    assert ask(server.port, "GET", "/assets/index.html").startswith(b"HTTP/1.1 404")
    assert ask(server.port, "GET", "/assets/..%2f..%2fetc%2fpasswd").startswith(b"HTTP/1.1 404")
    # Another host or origin gets nothing.
    assert ask(server.port, "GET", "/", "Origin: http://evil.example").startswith(b"HTTP/1.1 403")
    assert raw_exchange(server.port, b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 403")
    # Both halves together stand for the token, at this server only.
    body = b'{"token":"t0ken-of-this-server"}'
    assert ask(server.port, "POST", "/login", "Content-Type: application/json", "Origin: http://evil.example", body=body).startswith(b"HTTP/1.1 403")
    logged_in = ask(server.port, "POST", "/login", "Content-Type: application/json", body=body)
    cookie = header(logged_in, "Set-Cookie")
    assert logged_in.startswith(b"HTTP/1.1 204") and "HttpOnly" in cookie and "SameSite=Strict" in cookie
    pair, key = cookie.split(";")[0], f"Reprise-Page-Key: {header(logged_in, 'Reprise-Page-Key')}"
    other = ask(server.port, "POST", "/login", "Content-Type: application/json", body=body)
    others_key = f"Reprise-Page-Key: {header(other, 'Reprise-Page-Key')}"
    name = pair.split("=")[0]
    assert ask(server.port, "GET", "/chats", f"Cookie: other=1; {name}=x; {pair}", key).startswith(b"HTTP/1.1 200")
    for headers in ([f"Cookie: {pair}"], [key], [f"Cookie: {pair}x", key], [f"Cookie: {pair}", key + "x"], [f"Cookie: {pair}", others_key],
                    [f"Cookie: {pair}", "Reprise-Page-Key: "], [f"Cookie: {name}=", key]):
        assert ask(server.port, "GET", "/chats", *headers).startswith(b"HTTP/1.1 401"), headers
    assert ask(server.port, "GET", "/chats", f"Cookie: {pair}", key, "Sec-Fetch-Site: cross-site").startswith(b"HTTP/1.1 403")
    wrong = ask(server.port, "POST", "/login", "Content-Type: application/json", body=b'{"token":"x"}')
    assert wrong.startswith(b"HTTP/1.1 401") and header(wrong, "Set-Cookie") is None and header(wrong, "Reprise-Page-Key") is None
    # Cookies of earlier versions are not accepted.
    was = hashlib.sha256(f"reprise cookie\n{TOKEN}".encode()).hexdigest()
    for headers in ([], [f"Cookie: reprise_{server.port}={was}"], [f"Cookie: reprise_{server.port}={TOKEN}; token={TOKEN}"], [f"Authorization: Bearer {was}"]):
        for path in ("/chats", "/events", "/chats/c/export?format=json"):
            assert ask(server.port, "GET", path, *headers).startswith(b"HTTP/1.1 401"), (path, headers)
    assert ask(server.port, "GET", "/", f"Cookie: reprise_{server.port}={was}").startswith(b"HTTP/1.1 200")


def test_the_page_goes_on_by_itself_after_kill_9(make_server, provider, browse):
    server, gate = make_server(provider), Gate()
    provider.plan(text("before ", gate))
    page = browse(server)
    page.say("hello")
    page.until_text("answer", "before")
    port = server.port
    server.kill()
    page.one("offline")
    again = make_server(provider, home=server.home, arguments=("--port", str(port)))
    assert again.port == port
    page.gone("offline")
    page.until(lambda: page.one("turn").get_attribute("data-status") == "FAILED", "the interrupted turn")
    provider.plan(text("and after"))
    page.press("resume")
    page.until_text("answer", "and after")
    chat = again.client.get("/chats").json["chats"][0]["id"]
    assert page.all("answer")[-1].text == answer_of(again, chat, again.client.get("/chats").json["chats"][0]["head"])


# --- how it is made --------------------------------------------------------------------------------------------------

ROOT = BINARY.parents[2]


def test_its_types_are_right():
    for command in (["scripts/page-types"], ["tsc", "-p", "src/page"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_hundred_chats_of_which_twenty_stream_at_once(server, provider, browse, figure):
    for n in range(80):
        server.client.post("/chats", {"id": f"old{n}", "title": f"Old chat {n}"}).expect(201)
    gate = Gate()
    provider.plan(*[text("begin ", gate, *[f"word{k} " for k in range(50)]) for _ in range(20)])
    streams = [server.client.start(f"live{n}", f"live chat {n}") for n in range(20)]
    for stream in streams:
        stream.until("text_delta")
    page = browse(server, "/#live7")
    page.until_text("answer", "begin")
    page.until(lambda: {item.get_attribute("aria-setsize") for item in page.all("chat-item")} == {"20", "80"}, "the working chats and all others")
    assert len(page.all("chat-item[data-status=running]")) == 20
    for _ in range(20):
        gate.release()
    for stream in streams:
        stream.finish()
    page.until(lambda: not page.all("chat-item[data-status=running]"), "the end of all")
    page.until_text("answer", "word49")
    assert page.all("answer")[-1].text.split() == answer_of(server, "live7", "int_001").split()
    page.driver.set_script_timeout(60)
    worst = page.driver.execute_async_script(
        "const done = arguments[0]; const box = document.querySelector('.chat-list'); let last = performance.now(), worst = 0, n = 0;"
        "const step = (now) => { worst = Math.max(worst, now - last); last = now; box.scrollTop = (n * 97) % box.scrollHeight;"
        "if (++n < 60) requestAnimationFrame(step); else done(worst); }; requestAnimationFrame(step);")
    figure(f"scrolling a list of 100 chats: the longest frame took {worst:.0f} ms")


DOCS = ROOT / "docs"
PICTURES = re.compile(r"!\[[^\]]+\]\(((?:docs/)?pictures/[^)]+)\)")
NOTES = "# Notes\n\nThe wifi password is on the fridge.\nBuy milk.\nCall Ann.\n"
REPORT = """Here is what I found:

1. `notes.md` names **three** things to do
2. One of them is done

```python
def is_done(line):
    return line.startswith("[x]")
```
"""


def take_picture(page, name):
    """Takes a picture for the docs. It is written only with REPRISE_PICTURES, but taken in every run."""
    page.until(lambda: page.script("return document.fonts.status === 'loaded' && !document.querySelector('[data-testid=toast]')"), "a quiet page")
    picture = page.driver.get_screenshot_as_png()
    assert len(picture) > 5000, "the picture is not empty"
    if "REPRISE_PICTURES" not in os.environ:
        return
    file = DOCS / "pictures" / f"{name}.png"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(picture)
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--ext", ".png", "64", str(file)], check=True)


def resized(page, width, height, dark=False):
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
    features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}]
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    page.until(lambda: page.script("return innerWidth") == width, "the size")


@pytest.mark.limit(150)
def test_pictures(make_server, provider, browse):
    with tempfile.TemporaryDirectory(prefix="reprise-") as folder:
        pictures(make_server(provider, arguments=["--workspace", folder]), provider, browse, pathlib.Path(folder))


def pictures(server, provider, browse, workspace):
    (workspace / "notes.md").write_text(NOTES)
    for name, words in (("Holiday plans", "Three places in reach by train"), ("Why is the build slow?", "The linker takes half of it")):
        provider.plan(text(words))
        server.client.turn(name.split()[0], name)
    page = browse(server)
    resized(page, 1280, 800)
    provider.plan(tools(call("update_plan", {"steps": ["Read the notes", "Tick what is done", "Say what is left"]}, "p"),
                        call("manage_tasks", {"action": "add", "title": "Tick what is done"}, "t"),
                        call("read_file", {"path": "notes.md"}, "r"), think="The notes are a list. I read them first."), text(REPORT))
    page.say("What is in my notes?")
    page.until(lambda: page.css(".code .hljs-keyword"), "coloured code")
    listed = "[x] Buy milk\n[ ] Call Ann\n[ ] Change the wifi password"
    provider.plan(tools(call("edit_file", {"path": "notes.md", "old_text": "Buy milk.\nCall Ann.", "new_text": listed}), say="I turn them into a list."))
    page.say("Make a list of what is to be done, with boxes to tick")
    page.until(lambda: page.css(".approval .lines .added"), "the diff")
    take_picture(page, "approval")
    resized(page, 390, 844, dark=True)
    page.script("document.querySelector('.approval').scrollIntoView({block: 'center'})")
    take_picture(page, "phone")
    resized(page, 1280, 800)
    provider.plan(tools(call("ask_human", {"question": "Which hostel shall I book?", "options": ["The one by the lake", "The one at the station"]})))
    waiting = server.client.start("Holiday", "Book a bed", on_disconnect="continue")
    waiting.until("input_required")
    page.press("tab-inbox")
    page.one("input-card")
    take_picture(page, "inbox")
    page.press("tab-chat")
    provider.plan(text("The list stands in `notes.md`. Two things are left."))
    page.press("approve")
    page.until_text("answer", "Two things are left")
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end")
    provider.plan(text("The list stands in `notes.md`. Ann and the password are left."))
    page.press("regenerate")
    page.until_text("answer", "Ann and the password")
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end")
    page.press("replay")
    page.press("verify")
    page.until_text("verified", "the same")
    page.script("document.querySelector('[data-testid=replay-box]').scrollIntoView({block: 'end'})")
    take_picture(page, "replay")
    page.press("tab-branches")
    page.until(lambda: len(page.css("[data-testid=branch-map] input")) == 3, "the map")
    for box in page.css("[data-testid=branch-map] input")[1:3]:
        box.click()
    page.one("comparison")
    take_picture(page, "branches")
    page.press("tab-chat")
    resized(page, 1280, 800, dark=True)
    page.script("document.querySelector('[data-testid=turns]').scrollTop = 0")
    take_picture(page, "dark")
    server.client.cancel("Holiday", "int_002")
    waiting.finish("CANCELLED")


def test_every_picture_of_the_docs_is_there():
    shown = [(page, page.parent / name) for page in (ROOT / "README.md", DOCS / "page.md") for name in PICTURES.findall(page.read_text())]
    assert len({file for _, file in shown}) >= 6 and any(page.name == "README.md" for page, _ in shown)
    assert [str(file) for _, file in shown if not file.exists()] == []
    files = list((DOCS / "pictures").iterdir())
    assert {file.resolve() for file in files} == {file.resolve() for _, file in shown}, "each picture is used"
    assert sum(file.stat().st_size for file in files) < 1_000_000 and all(file.read_bytes().startswith((b"\x89PNG", b"<svg ")) for file in files)


@pytest.mark.limit(240)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_view(server, provider, browse, theme):
    axe = (npm.install("axe-core@4.14.1") / "axe-core" / "axe.min.js").read_text()
    provider.plan(text("# Title\n\n- one\n\n```python\nprint('x')\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[link](https://example.org) and $x^2$"))
    page = browse(server)
    page.script("localStorage.setItem('theme', arguments[0])", theme)
    page.driver.refresh()
    page.say("show")
    page.until(lambda: page.css(".markdown math"), "the formula")
    provider.plan(failure(400, "no"))
    page.say("fail")
    page.one("error-note")
    provider.plan(text("second version"))
    page.press("regenerate")
    page.until_text("answer", "second version")
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "one\n"}, "call_1"), call("ask_human", {"question": "Which?", "options": ["a", "b"]}, "call_2")))
    page.say("ask")
    page.one("approval-card")
    page.driver.set_script_timeout(60)

    def check(view):
        page.script(axe)
        found = page.driver.execute_async_script("const done = arguments[0]; axe.run({resultTypes: ['violations']}).then((r) => done(r.violations))")
        bad = [(v["id"], [n["html"][:160] for n in v["nodes"][:3]], [n["failureSummary"][:200] for n in v["nodes"][:1]]) for v in found
               if v["impact"] in ("serious", "critical")]
        assert not bad, f"{view}, {theme}: {bad}"

    page.script("document.body.insertAdjacentHTML('beforeend', '<img id=bare src=\"data:,\">')")
    with pytest.raises(AssertionError, match="image-alt"):
        check("a picture without a description")
    page.script("document.getElementById('bare').remove()")
    for view in ("chat", "inbox", "board", "branches", "trace", "settings"):
        page.press(f"tab-{view}")
        check(view)
    page.press("tab-chat")
    page.press("edit-arguments")
    check("the form of arguments")
    first = page.all("edit-message")[0]
    page.script("arguments[0].scrollIntoView({block: 'center'})", first)  # otherwise another turn's question covers it
    first.click()
    page.one("edit-preview")
    check("an edit")
    page.keys(Keys.CONTROL, "k")
    page.one("palette")
    check("palette")
    page.keys(Keys.ESCAPE)
    page.keys(Keys.TAB)
    server.client.cancel(server.client.get("/chats").json["chats"][0]["id"], "int_004")


def test_a_chat_is_exported_and_imported(server, provider, browse, tmp_path):
    provider.plan(text("the answer"))
    server.client.turn("c", "the question")
    document = server.client.get("/chats/c/export").json
    document.pop("usage")
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(document))
    page = browse(server)
    page.press("chat-menu")
    links = [a.get_attribute("href") for a in page.css(".menu a")]
    assert [link.rsplit("/", 1)[-1] for link in links] == [f"export?format={format}" for format in ("markdown", "json", "jsonl")]
    page.all("import-file")[0].send_keys(str(file))
    page.until_text("answer", "the answer")
    page.until(lambda: len(page.all("chat-item")) == 2, "the copy")
    file.write_text("{}")
    page.all("import-file")[0].send_keys(str(file))
    page.one("toast")


def test_what_was_said_is_found(server, provider, browse):
    provider.plan(text("a needle in the answer"))
    server.client.turn("c", "first")
    provider.plan(text("nothing"))
    server.client.turn("d", "second")
    page = browse(server)
    page.type("search", "needle")
    page.until_text("hits", "a needle in the answer")
    page.one("hits").find_element("css selector", "button").click()
    page.until_text("answer", "a needle in the answer")


def test_notifications_only_when_hidden_and_without_content(server, provider, browse):
    page = browse(server)
    page.one("composer")
    page.script("window.shown = []; window.Notification = class { constructor(title, more) { window.shown.push([title, more.body]); } };"
                "window.Notification.permission = 'granted'; window.Notification.requestPermission = () => Promise.resolve('granted');")
    page.press("tab-settings")
    page.until(lambda: page.css("[data-testid=settings] input[type=checkbox]")[0], "the choice").click()
    page.until(lambda: page.script("return localStorage.getItem('notify')") == "on", "the choice")
    provider.plan(text("seen"))
    server.client.turn("c", "secret words")
    page.until(lambda: page.all("chat-item[data-status=idle]"), "the chat")
    assert page.script("return window.shown") == []  # the window was visible
    page.script("Object.defineProperty(document, 'hidden', {get: () => true})")
    provider.plan(tools(call("run_shell", {"command": "echo secret"})))
    stream = server.client.start("c", "more secret words")
    stream.until("approval_required")
    page.until(lambda: page.script("return window.shown"), "a notification")
    server.client.cancel("c", "int_002")
    stream.finish("CANCELLED")
    page.until(lambda: len(page.script("return window.shown")) == 2, "two notifications")
    assert page.script("return window.shown") == [["Reprise", "An approval is needed"], ["Reprise", "An answer is complete"]]
