"""Twenty tasks of a day in the page, walked as a person walks them. The table in docs/page.md names the steps and how many clicks and keys they take, and must
say what is done here. REPRISE_TASKS=1 writes it anew, with the seconds that the slowest step of each took on this machine."""
import os
import pathlib
import re
import time

import pytest
from support.browser import By, Keys
from support.provider import Gate, call, text, tools
from support.timing import SLACK

pytestmark = pytest.mark.limit(90)
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "page.md"
SECTION, ROW = "## Twenty tasks\n", re.compile(r"^\| (.+?) \| (.+?) \| (\d+) \| ([\d.]+) s \|$", re.MULTILINE)
WORDS = "WORDS"  # of the person's own, which are not counted
MOST_SECONDS = 2  # from a click or a key to what it shows


class Hand:
    """Clicks and presses keys, waits for what they show, and notes both."""

    def __init__(self, page, chat):
        self.page = page
        self.chat = chat
        self.done = []
        self.count = 0
        self.slowest = 0

    def _wait(self, shows):
        began = time.monotonic()
        shows(self.page)
        self.slowest = max(self.slowest, time.monotonic() - began)
        return self

    def _find(self, what):
        element = self.page.one(what) if isinstance(what, str) else self.page.until(lambda: what(self.page), "what is clicked")
        self.page.script("arguments[0].scrollIntoView({block: 'nearest'})", element)
        self.page.until(element.is_enabled, "it to be enabled")
        return element

    def click(self, what, label, shows):
        element = self._find(what)
        self.done.append(label)
        self.count += 1
        element.click()
        return self._wait(shows)

    def choose(self, name, value, label, shows):
        """Opens a list of choices, and clicks one."""
        self._find(name).find_element(By.CSS_SELECTOR, f"option[value='{value}']").click()
        self.done.append(label)
        self.count += 2
        return self._wait(shows)

    def words(self, said, shows=None):
        self.page.keys(said)
        self.done.append(WORDS)
        return self._wait(shows or (lambda page: page.until(lambda: written(page).endswith(said), "the words")))

    def press(self, keys, shows):
        self.done.append(keys)
        self.count += 1
        self.page.keys(*[getattr(Keys, {"Esc": "ESCAPE", "Ctrl": "CONTROL"}.get(key, key.upper()), key) for key in keys.split()])
        return self._wait(shows)


def written(page):
    return page.script("const e = document.activeElement; return e.value ?? e.textContent")


def there(name):
    return lambda page: page.one(name)


def gone(name):
    return lambda page: page.gone(name)


def has(name, words):
    return lambda page: page.until_text(name, words)


def nothing(page):
    pass


def idle(page):
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end of the turn")


@pytest.fixture
def day(server, provider, browse):
    """A chat that has begun, and another one."""
    provider.answer_with(lambda request: text("fine"))
    server.client.turn("other", "the other chat")
    server.client.turn("c", "the first question")
    page = browse(server, "/#c")
    page.until_text("answer", "fine")
    page.one("composer").click()
    return Hand(page, "c")


def asks(provider, hand, *calls):
    """Brings a call that asks. A key that answers it counts only after a moment."""
    provider.plan(tools(*(calls or (call("write_file", {"path": "new.txt", "content": "1\n"}, "w1"),))), text("done"))
    hand.page.say("write it")
    hand.page.one("approval-card")
    drawn = hand.page.script("return performance.now()")
    hand.page.until(lambda: hand.page.script("return performance.now()") > drawn + 600, "a moment for the card")
    return hand


def written_file(provider, hand):
    asks(provider, hand).page.press("approve")
    hand.page.until_text("answer", "done")
    idle(hand.page)
    return hand


def task_ask(hand, provider, server):
    hand.words("what is this?").press("Enter", has("user-message", "what is this?"))


def task_stop(hand, provider, server):
    provider.plan(text("half", Gate()))
    hand.page.say("go")
    hand.page.until_text("answer", "half")
    hand.press("Esc", there("note-cancelled"))


def task_edit(hand, provider, server):
    hand.click("edit-message", "*Edit*", there("edit-preview")).words(" anew").click("edit-run", "*Run again from here*", has("branch-label", "2/2"))


def task_back(hand, provider, server):
    written_file(provider, hand)
    hand.click("edit-message", "*Edit*", there("restore-files")).words(" anew").click("restore-files", "*Put the workspace's files back*", nothing)
    hand.click("edit-run", "*Run again from here*", has("branch-label", "2/2"))
    assert not (server.home.workspace / "new.txt").exists()


def task_approve(hand, provider, server):
    asks(provider, hand).press("Ctrl Alt w", nothing).press("a", has("answer", "done"))


def task_pattern(hand, provider, server):
    asks(provider, hand, call("run_shell", {"command": "echo one"}, "s1"))
    hand.choose("scope", "chat", "list: *in this chat*", there("pattern")).choose("pattern", "echo *", "list: `echo *`", has("pattern-means", "Runs `echo`"))
    hand.click("approve", "*Approve*", has("answer", "done"))


def task_deny(hand, provider, server):
    asks(provider, hand).click("feedback", "field", nothing).words("use another name").click("deny", "*Deny*", has("answer", "done"))


def task_arguments(hand, provider, server):
    asks(provider, hand).click("edit-arguments", "*Edit the arguments*", lambda page: page.until(lambda: page.css(".approval .form [name=path]"), "the form"))
    hand.click(lambda page: page.css(".approval .form [name=path]")[0], "field", nothing).words(".md").click("approve", "*Approve as changed*", has("answer", "done"))
    assert (server.home.workspace / "new.txt.md").exists()


def task_several(hand, provider, server):
    asks(provider, hand, *[call("write_file", {"path": f"{n}.txt", "content": "1\n"}, f"w{n}") for n in (1, 2)])
    while not hand.page.one("approve-all").is_enabled():
        hand.click("show-unseen", "*Show next*", nothing)
    hand.click("approve-all", "*Approve all*", has("answer", "done"))


def task_inbox(hand, provider, server):
    provider.plan(tools(call("write_file", {"path": "b.txt", "content": "1\n"}, "w1")), text("done"))
    waiting = server.client.start("other", "write", on_disconnect="continue")
    waiting.until("approval_required")
    hand.click("tab-inbox", "*Inbox*", there("approval-card")).click("approve", "*Approve*", there("inbox-empty"))
    waiting.finish()


def task_mode(hand, provider, server):
    hand.click("mode", "mode", there("mode-option")).click(lambda page: page.all("mode-option[data-value=auto]")[0], "*Auto*", lambda page: page.one("mode[data-mode=auto]"))


def task_attach(hand, provider, server):
    (server.home.workspace / "notes.txt").write_text("x\n")
    hand.press("@", nothing).words("notes", there("suggestions")).press("Enter", has("attachments", "notes.txt"))


def task_open(hand, provider, server):
    hand.click(lambda page: page.css("[data-chat=other] .chat-title")[0], "the chat", has("user-message", "the other chat"))


def task_search(hand, provider, server):
    hand.click("search", "field", nothing).words("other", there("hit")).click("hit", "the hit", has("user-message", "the other chat"))


def task_folded(hand, provider, server):
    provider.plan(tools(call("run_shell", {"command": "seq 30"}, "l1")), text("done"))
    hand.page.say("list")
    hand.page.press("approve")
    hand.page.until_text("answer", "done")
    idle(hand.page)
    hand.click(lambda page: page.css("[data-testid=tool-card] button")[0], "the card", has("tool-card", "17"))


def task_saw(hand, provider, server):
    hand.click("tab-trace", "*Trace*", there("request")).click(lambda page: page.css("[data-testid=request] summary")[0], "the request", there("request-open"))


def task_model(hand, provider, server):
    hand.click("model", "model", there("model-search")).words("off").press("Enter", has("model", "offline"))


def task_fork(hand, provider, server):
    hand.click("fork", "*Fork*", lambda page: page.until(lambda: len(page.all("chat-item")) == 3, "the copy"))


def task_undo(hand, provider, server):
    written_file(provider, hand)
    hand.press("Ctrl Alt z", there("restore-files")).click("restore-files", "*Put the workspace's files back*", nothing).click("files-run", "*Undo the last turn*", gone("files-box"))
    hand.page.until(lambda: not (server.home.workspace / "new.txt").exists(), "the file is as it was")


def task_verify(hand, provider, server):
    hand.click("replay", "*Replay*", there("verify")).click("verify", "*Verify*", has("verified", "the same"))


TASKS = {
    "ask something": task_ask,
    "stop an answer": task_stop,
    "change an earlier message, having seen what that supersedes": task_edit,
    "go back to an earlier message, with the files of that time": task_back,
    "allow a call once, by keys": task_approve,
    "allow all calls of a pattern in this chat": task_pattern,
    "deny a call, and say what to do instead": task_deny,
    "change a call's arguments, and allow it": task_arguments,
    "allow two calls together, having seen both": task_several,
    "answer a call of another chat": task_inbox,
    "change the mode": task_mode,
    "attach a file of the folder": task_attach,
    "open another chat": task_open,
    "find what was said in any chat": task_search,
    "open a folded result": task_folded,
    "see what the model was told": task_saw,
    "change the model": task_model,
    "fork the chat": task_fork,
    "undo a turn with its files": task_undo,
    "check that a turn can be repeated": task_verify,
}


def documented():
    section = DOCS.read_text().split(SECTION)[1].split("\n## ")[0]
    return {task: (steps, int(count)) for task, steps, count, _ in ROW.findall(section)}


def write(task, steps, count, seconds):
    """Puts the task's row into the documentation."""
    before, section, after = re.fullmatch(f"(.*\n{SECTION})(.*?)(\n## .*)", DOCS.read_text(), re.DOTALL).groups()
    head, _, rest = section.partition("|---|---|---|---|\n")
    rows = {row[1]: row[0] for row in ROW.finditer(rest)} | {task: f"| {task} | {steps} | {count} | {max(seconds, 0.1):.1f} s |"}
    tail = ROW.sub("", rest).strip("\n")
    DOCS.write_text(f"{before}{head}|---|---|---|---|\n" + "\n".join(rows[each] for each in TASKS if each in rows) + f"\n\n{tail}\n{after}")


@pytest.mark.skipif("REPRISE_TASKS" in os.environ, reason="the table is being written")
def test_the_documentation_names_these_tasks():
    assert list(documented()) == list(TASKS) and len(TASKS) == 20


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.split(",")[0].replace(" ", "-"))
def test_a_task_takes_the_documented_steps(day, provider, server, task):
    TASKS[task](day, provider, server)
    steps = ", ".join(day.done)
    if "REPRISE_TASKS" in os.environ:
        write(task, steps, day.count, day.slowest)
    assert (steps, day.count) == documented()[task]
    assert day.slowest < MOST_SECONDS * SLACK, f"{day.slowest:.2f} s for one step"
