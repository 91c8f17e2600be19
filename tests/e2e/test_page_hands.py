"""The page in use: where the view and the focus are after each step, what one key or press can do, and what is never hidden from the person who decides."""
import json

import pytest
from support.browser import By, Keys, webdriver
from support.mcp import server_of
from support.provider import Gate, call, failure, text, tools
from support.timing import SLACK, eventually

pytestmark = pytest.mark.limit(120)

LONG = "\n\n".join(f"paragraph {n} " + "of many words " * 12 for n in range(14))


def focused(page):
    return page.script("return document.activeElement?.dataset.testid ?? null")


def in_sight(page, element):
    return page.script("const b = arguments[0].getBoundingClientRect(), s = document.querySelector('.turns').getBoundingClientRect();"
                       "return b.height > 0 && b.bottom > s.top && b.top < s.bottom", element)


def idle(page):
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end")


def tap(page, element):
    """Taps the element with a finger, as the browser sees it."""
    box = page.script("const b = arguments[0].getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]", element)
    for kind, points in (("touchStart", [{"x": box[0], "y": box[1]}]), ("touchEnd", [])):
        page.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def hold_over(page, element, files, kind="drop"):
    box = element.rect
    data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
    for each in ("dragEnter", "dragOver", kind):
        page.driver.execute_cdp_cmd("Input.dispatchDragEvent", {"type": each, "x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2, "data": data})


# --- where the view and the focus are ----------------------------------------------------------------------------------

@pytest.fixture
def long_chat(server, provider, browse):
    for n in range(3):
        provider.plan(text(f"answer {n}\n\n{LONG}"))
        server.client.turn("c", f"question {n}")
    page = browse(server, "/#c")
    page.until_text("answer", "answer 2")
    return page


def last_turn(page):
    return page.all("turn")[-1]


@pytest.mark.parametrize("by", ["mouse", "keys"])
@pytest.mark.parametrize("how", ["regenerate", "edit"])
def test_a_regenerated_answer_is_in_view(long_chat, provider, how, by):
    page = long_chat
    gate = Gate()
    provider.plan(text(f"another answer\n\n{LONG}", gate, "\n\nthe end of it"))

    def press(element):
        page.script("arguments[0].scrollIntoView({block: 'center'})", element)
        page.script("arguments[0].focus({preventScroll: true})", element) if by == "keys" else webdriver.ActionChains(page.driver).move_to_element(element).click().perform()
        if by == "keys":
            page.keys(Keys.ENTER)
    if how == "regenerate":
        press(page.all("regenerate", last_turn(page))[0])
    else:
        press(page.all("edit-message", last_turn(page))[0])
        page.one("edit-text")
        page.keys(" again")
        press(page.one("edit-run"))
    page.until(lambda: last_turn(page).get_attribute("data-interaction") == "int_004" and "another answer" in last_turn(page).text, "the new turn")
    assert focused(page) in ("composer", "branch-prev"), "the focus is where the person continues"
    gate.release()
    idle(page)
    page.until(lambda: "the end of it" in last_turn(page).text and in_sight(page, page.all("regenerate", last_turn(page))[0]), "the end of the new answer in sight")
    assert focused(page) in ("composer", "branch-prev")
    assert not page.all("edit-text")


def test_versions_are_leafed_through_by_one_key(long_chat, provider, server):
    page = long_chat
    for n in (4, 5):
        provider.plan(text(f"version {n}\n\n{LONG}"))
        server.client.stream("POST", "/chats/c/interactions/int_003/regenerate", {}).finish()
    page.until_text("answer", "version 5")
    arrow = page.all("branch-prev", last_turn(page))[0]
    page.script("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus({preventScroll: true})", arrow)
    for shown in ("int_004", "int_003"):
        page.keys(Keys.ENTER)
        page.until(lambda shown=shown: last_turn(page).get_attribute("data-interaction") == shown and focused(page) in ("branch-prev", "branch-next"), shown)
        assert in_sight(page, page.script("return document.activeElement"))
        assert page.script("return document.activeElement.closest('.turn').dataset.interaction") == shown
    assert page.all("branch-label", last_turn(page))[0].text == "1/3"


@pytest.mark.parametrize("by", ["keys", "mouse", "slash"])
def test_find_gets_what_is_typed_after_it_was_chosen(long_chat, provider, by):
    page = long_chat
    asked = len(provider.requests)
    if by == "slash":
        page.type("composer", "/find" + Keys.ENTER)
    else:
        page.keys(Keys.CONTROL, "k")
        page.one("palette")
        page.keys("find in")
        page.until(lambda: "Find" in page.all("palette-option")[0].text, "the action")
        page.keys(Keys.ENTER) if by == "keys" else page.all("palette-option")[0].click()
    page.one("find-words")
    page.until(lambda: focused(page) == "find-words", "the focus in the field")
    page.keys("paragraph 3")
    page.keys(Keys.ENTER)
    page.until(lambda: " of " in page.text("find-count"), "hits")
    assert page.one("find-words").get_attribute("value") == "paragraph 3" and page.one("composer").get_attribute("value") == ""
    assert len(provider.requests) == asked and len(page.all("unsent")) == 0


def test_the_message_that_is_edited_has_the_focus(long_chat):
    page = long_chat
    page.keys(Keys.CONTROL, "k")
    page.one("palette")
    page.keys("edit the last")
    page.keys(Keys.ENTER)
    page.one("edit-text")
    page.until(lambda: focused(page) == "edit-text", "the focus in the message")
    page.keys(" and more")
    assert page.one("edit-text").get_attribute("value") == "question 2 and more"


@pytest.mark.parametrize("size", [(1280, 720), (500, 844)])
def test_the_beginning_is_seen_from_its_top(offline, browse, size):
    page = browse(offline, size=size)
    page.one("connect")
    page.until(lambda: page.css(".welcome h1"), "the heading")
    assert page.script("return document.querySelector('.turns').scrollTop") == 0
    assert in_sight(page, page.css(".welcome h1")[0])


def test_a_list_that_has_become_shorter_is_at_its_end(long_chat):
    page = long_chat
    page.script("document.querySelector('.turns').focus()")
    page.keys(Keys.PAGE_UP)
    page.one("jump")
    page.script("document.querySelector('.turns').scrollTop -= 200")
    page.keys(Keys.CONTROL, Keys.ALT, "z")
    page.until_text("toast", "Undone")
    page.until(lambda: len(page.all("user-message")) >= 1 and page.script("const t = document.querySelector('.turns'); return t.scrollHeight - t.scrollTop - t.clientHeight") < 1, "the end")
    page.gone("jump")


# --- what one key or press can do ----------------------------------------------------------------------------------------

def test_a_file_of_the_chat_goes_only_after_a_question(server, provider, browse, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    page = browse(server, "/#c")
    page.all("file")[0].send_keys(str(tmp_path / "notes.txt"))
    page.until(lambda: page.all("attachment") and page.all("attachment")[0].get_attribute("data-state") == "there", "the file")
    page.press("tab-board")
    page.press("remove-file")
    page.one("remove-file-sure")
    assert focused(page) == "keep-file", "a single Enter deletes nothing"
    assert len(server.client.get("/chats/c/files").json["files"]) == 1
    page.keys(Keys.ENTER)
    page.gone("remove-file-sure")
    page.press("remove-file")
    page.press("remove-file-sure")
    page.gone("chat-file")
    assert server.client.get("/chats/c/files").json["files"] == []


@pytest.mark.parametrize("by", ["mouse", "keys"])
def test_what_is_removed_from_the_board_can_be_put_back(server, provider, browse, by):
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    server.client.request("PATCH", "/chats/c/tasks", {"tasks": [{"title": each} for each in ("one", "two", "three")], "plan": ["first", "second"]})
    page = browse(server, "/#c")
    page.press("tab-board")
    page.until(lambda: len(page.all("task")) == 3, "the tasks")
    if by == "mouse":
        page.all("remove-task")[1].click()
    else:
        page.all("task")[1].send_keys(Keys.DELETE)

    def tasks():
        return [task["title"] for task in server.client.get("/chats/c/tasks").json["tasks"]]
    page.until(lambda: tasks() == ["one", "three"], "one task less")
    page.press("toast-action")
    page.until(lambda: tasks() == ["one", "two", "three"], "the task again, in its place")
    page.css("[data-testid=plan] button")[0].click()
    page.until(lambda: server.client.get("/chats/c/tasks").json["plan"] == ["second"], "a step less")
    page.press("toast-action")
    page.until(lambda: server.client.get("/chats/c/tasks").json["plan"] == ["first", "second"], "the step again")


def mode_of(server, chat="c"):
    return next(each for each in server.client.get("/chats").json["chats"] if each["id"] == chat).get("approval_mode")


@pytest.mark.parametrize("by", ["keys", "mouse"])
def test_arrow_keys_let_nothing_run(server, provider, browse, by):
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    page = browse(server, "/#c")
    page.until_text("answer", "ok")
    page.script("document.querySelector('[data-testid=mode]').focus()")
    for _ in range(6):  # to "approve all", the sixth of seven
        page.keys(Keys.ARROW_DOWN)
    assert mode_of(server) is None
    if by == "mouse":
        page.one("mode-option[data-value=approve_all]").click()
    else:
        page.until(lambda: page.script("return document.activeElement.dataset.value") == "approve_all", "that choice")
        page.keys(Keys.ENTER)
    page.one("mode-sure")
    assert focused(page) == "mode-cancel" and mode_of(server) is None
    page.keys(Keys.ENTER)
    page.gone("mode-sure")
    assert mode_of(server) is None
    page.press("mode")
    page.one("mode-option[data-value=approve_all]").click()
    page.press("mode-confirm")
    page.until(lambda: mode_of(server) == "approve_all", "the mode")
    page.until(lambda: page.one("mode").get_attribute("data-mode") == "approve_all", "it shown")
    # A stricter mode needs no confirmation.
    page.press("mode")
    page.one("mode-option[data-value=ask]").click()
    page.until(lambda: mode_of(server) == "ask", "the other mode")


@pytest.mark.parametrize("where", ["turns", "board", "inbox", "tab-chat"])
def test_a_file_is_dropped_wherever_one_is(server, provider, browse, tmp_path, where):
    (tmp_path / "notes.txt").write_text("the words of the notes")
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    page = browse(server, "/#c")
    page.until_text("answer", "ok")
    if where in ("board", "inbox"):
        page.press(f"tab-{where}")
    hold_over(page, page.one(where), [tmp_path / "notes.txt"])
    page.until_text("attachments", "notes.txt")
    assert len(page.driver.window_handles) == 1 and page.driver.current_url.startswith(page.origin)


def test_a_failed_upload_is_not_left_out(make_server, provider, browse, tmp_path):
    server = make_server(provider, config={"files": {"max_file_bytes": 1000}})
    (tmp_path / "huge.bin").write_bytes(b"x" * 5000)
    page = browse(server)
    page.all("file")[0].send_keys(str(tmp_path / "huge.bin"))
    page.until(lambda: page.all("attachment") and page.all("attachment")[0].get_attribute("data-state") == "failed", "the failure")
    assert not page.all("retry-upload"), "a retry would fail again"
    assert page.all("attachment")[0].text.endswith("The file is too large: at most 1000 bytes.")
    page.say("look at it")
    page.until_text("toast", "could not be attached")
    assert page.one("composer").get_attribute("value") == "look at it" and not provider.requests and page.all("attachment")
    page.css("[data-testid=attachment] button")[-1].click()
    page.gone("attachment")
    provider.plan(text("without it"))
    page.one("composer").send_keys(Keys.ENTER)
    page.until_text("answer", "without it")


def test_the_name_of_a_file_hides_nothing(server, provider, browse, tmp_path):
    name = "safe\u202etxt.exe"
    (tmp_path / name).write_text("x")
    page = browse(server)
    page.all("file")[0].send_keys(str(tmp_path / name))
    page.until(lambda: page.all("attachment[data-state=there]"), "the upload")
    # The server keeps the name without the character, and the page shows the name that is kept.
    assert page.one("look-at").text == "safetxt.exe"
    chat = server.client.get("/chats").json["chats"][0]["id"]
    assert [each["filename"] for each in server.client.get(f"/chats/{chat}/files").json["files"]] == ["safetxt.exe"]


# --- what is never hidden from who decides ---------------------------------------------------------------------------------

def test_the_card_shows_what_ran(server, provider, browse):
    (server.home.workspace / "a.txt").write_text("one\ntwo\nthree\n")
    provider.plan(tools(call("edit_file", {"path": "a.txt", "old_text": "two", "new_text": "TWO"})), text("changed"))
    page = browse(server)
    page.say("change it")
    page.until(lambda: [each.text for each in page.css(".approval .lines .added")] == ["+ TWO"], "the proposal")
    page.press("edit-arguments")
    field = page.until(lambda: page.css(".approval .form [name=new_text]"), "the field")[0]
    field.send_keys(Keys.END, Keys.ENTER, "and more")
    page.until(lambda: [each.text for each in page.css(".approval .lines .added")] == ["+ TWO", "+ and more"], "the present preview")
    page.press("approve")
    page.until_text("answer", "changed")
    assert (server.home.workspace / "a.txt").read_text() == "one\nTWO\nand more\nthree\n"

    def shown():
        return page.one("changed-arguments").text, page.css(".tool .change-count")[0].text
    assert shown() == ("edited by a person", "+2 −1")
    page.css(".tool-head")[0].click()
    page.until(lambda: [each.text for each in page.css(".tool-body .lines .added")] == ["+ TWO", "+ and more"], "what ran")
    page.driver.refresh()
    page.until_text("answer", "changed")
    assert page.one("changed-arguments").text == "edited by a person"


def any_tool(make_server, provider):
    """A server with a tool that accepts any arguments and needs approval."""
    server = make_server(provider, config={"mcpServers": {"s": server_of('{"name": "take", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}', 'json.dumps(request["params"]["arguments"])')}})
    eventually(lambda: any(each["name"] == "s__take" for each in server.client.get("/tools").json["tools"]), "the tool", 30 * SLACK)
    return server


@pytest.mark.parametrize("arguments", [r'{"a\u2066b":"c"}', r'{"deep":[{"x":["\u200d"]}]}', r'{"x":{"\u00ad":1}}'])
def test_hidden_characters_are_warned_of_wherever_they_are(make_server, provider, browse, arguments):
    server = any_tool(make_server, provider)
    provider.plan(tools(call("s__take", arguments)), text("ok"))
    page = browse(server)
    page.say("run")
    assert "cannot be seen" in page.one("approval-card").text
    assert r"\u{" in page.one("approval-card").text
    page.press("deny")
    page.until_text("answer", "ok")


@pytest.mark.parametrize("command", [r'{"command":"echo safe\u202e\u200b"}', '{"command":"echo \u2800 braille"}',
                                     r'{"command":"rm\u3000x"}', r'{"command":"echo \ud834\udd59"}', r'{"command":"a\u0007\u0085\u2028"}'])
def test_hidden_characters_are_warned_of_however_they_are_written(server, provider, browse, command):
    provider.plan(tools(call("run_shell", command)), text("ok"))
    page = browse(server)
    page.say("run")
    page.one("approval-card")
    assert "cannot be seen" in page.one("approval-card").text
    assert r"\u{" in page.one("approval-card").text
    page.press("deny")
    page.until_text("answer", "ok")


def test_an_escaped_backslash_does_not_count_as_hidden(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": r"echo safe\u{202e}"})), text("ok"))
    page = browse(server)
    page.say("run")
    assert "cannot be seen" not in page.one("approval-card").text and r"safe\u{202e}" in page.one("approval-card").text
    page.press("deny")
    page.until_text("answer", "ok")


@pytest.mark.parametrize("tool", ["run_shell", "write_file", "edit_file"])
def test_the_end_is_not_hidden_behind_emptiness(server, provider, browse, tool):
    hidden = "echo good\n" + "\n" * 400 + "rm -rf everything" + " " * 3000 + "; touch this too"
    (server.home.workspace / "a.txt").write_text("old\n")
    arguments = {"run_shell": {"command": hidden}, "write_file": {"path": "b.txt", "content": hidden}, "edit_file": {"path": "a.txt", "old_text": "old", "new_text": hidden}}[tool]
    provider.plan(tools(call(tool, arguments)), text("ok"))
    page = browse(server)
    page.say("run")
    page.one("approval-card")
    page.until(lambda: any("empty lines" in each.text for each in page.all("gap")), "the lines that are left out")
    card = page.one("approval-card").text
    assert "400 empty lines" in card or "401 empty lines" in card, card
    assert "3,000 spaces" in card and "touch this too" in card
    assert page.script("const p = document.querySelector('[data-testid=approval-card] pre:last-of-type'); return [...document.querySelectorAll('[data-testid=approval-card] pre')]"
                       ".every((each) => each.scrollHeight <= each.clientHeight + 2)"), "the whole text is visible at once"
    page.press("deny")
    page.until_text("answer", "ok")


NUMBERS = '{"n":9007199254740993,"exact":[1.0,0.1000,-0,12345678901234567890123]}'


def test_a_number_is_shown_and_sent_as_it_was_written(make_server, provider, browse):
    server = any_tool(make_server, provider)
    provider.plan(tools(call("s__take", NUMBERS)), text("ok"))
    page = browse(server)
    page.say("run")
    card = page.one("approval-card").text
    for digits in ("9007199254740993", "1.0", "0.1000", "-0", "12345678901234567890123"):
        assert digits in card, card
    page.press("deny")
    page.until_text("answer", "ok")
    page.css(".tool-head")[0].click()
    page.press("raw")
    page.until(lambda: "9007199254740993" in page.text("raw-input") and "12345678901234567890123" in page.text("raw-input"), "the raw arguments")
    # A form keeps the number, and sends what is typed exactly as typed.
    provider.plan(tools(call("s__take", '{"n":9007199254740993}', "call_2")), text("took it"))
    page.say("again")
    page.press("edit-arguments")
    field = page.until(lambda: page.css(".approval .form [name=n]"), "the field")[0]
    assert field.get_attribute("value") == "9007199254740993"
    field.send_keys(Keys.END, Keys.BACKSPACE, "5")
    page.press("approve")
    page.until_text("answer", "took it")
    assert "9007199254740995" in provider.requests[-1].body["messages"][-1]["content"]


def test_an_edit_that_must_fail_says_so(server, provider, browse):
    """A call that must fail is reported to the model, and nobody is asked. A call that can only fail by now says so in its card."""
    file, gone = server.home.workspace / "a.txt", server.home.workspace / "gone.txt"
    file.write_text("one\n")
    provider.plan(tools(call("edit_file", {"path": "a.txt", "old_text": "not there", "new_text": "x"})),
                  tools(call("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "x"}, "call_2")), text("ok"))
    page = browse(server)
    page.say("change it")
    page.until(lambda: [each.text for each in page.css(".approval .lines .added")] == ["+ x"], "the second call alone")
    assert len(page.all("approval-card")) == 1 and "old_text occurs 0 times" in json.dumps(provider.requests[-1].body)
    file.write_text("two\n")
    page.driver.refresh()
    page.until_text("no-preview", "old_text occurs 0 times")
    page.press("deny")
    page.until_text("answer", "ok")
    gone.write_text("there yet\n")
    provider.plan(tools(call("delete_file", {"path": "gone.txt"}, "call_3")), text("well"))
    page.say("delete it")
    page.one("approval-card")
    gone.unlink()
    page.driver.refresh()
    page.until_text("no-preview", "there is no such file")
    page.press("deny")
    page.until_text("answer", "well")


COLOURED = "for n in 1 2 3; do printf '%s%%\\r' $n; done; printf '\\033[32mok\\033[0m \\033[1;31mbad\\033[0m\\n'"


def test_output_looks_as_in_a_terminal(make_server, provider, browse):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    long = "i=0; while [ $i -lt 3000 ]; do echo line $i is here; i=$((i+1)); done; echo the reason; exit 3"
    provider.plan(tools(call("run_shell", {"command": COLOURED}, "a"), call("run_shell", {"command": long}, "b")), text("ran"))
    page = browse(server)
    page.say("run")
    page.until_text("answer", "ran")
    for card in page.all("tool-card"):
        head = card.find_element(By.CSS_SELECTOR, ".tool-head")
        if head.get_attribute("aria-expanded") == "false":
            head.click()
    first, second = page.until(lambda: len(page.all("command-output")) == 2 and page.all("command-output"), "both")
    assert first.text == "ok bad"
    assert [each.text for each in first.find_elements(By.CSS_SELECTOR, ".ansi-green")] == ["ok"]
    assert [each.text for each in first.find_elements(By.CSS_SELECTOR, ".ansi-red.ansi-bold")] == ["bad"]
    assert second.text.startswith("line 0 is here") and second.text.count("the reason\n") == 1 and "left out" in second.text


def test_effects_left_by_an_edit_are_shown(make_server, provider, browse):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    (server.home.workspace / "app.py").write_text("one\n")
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    provider.plan(tools(call("edit_file", {"path": "app.py", "old_text": "one", "new_text": "two"}, "a"), call("write_file", {"path": "brief.txt", "content": "x"}, "b"),
                        call("delete_file", {"path": "brief.txt"}, "d"), call("run_shell", {"command": "true"}, "e")), text("done"))
    server.client.turn("c", "change it")
    page = browse(server, "/#c")
    page.until_text("answer", "done")
    page.all("edit-message")[-1].click()
    page.one("restore-files")

    def staying():
        return [each.text for each in page.css("[data-testid=side-effects] li")]
    page.until(lambda: staying() == ["Edit app.py", "Command true"], "without the file that came and went")
    page.press("restore-files")
    page.until(lambda: staying() == ["Command true"], "without the file that goes back")
    page.press("restore-files")
    page.until(lambda: staying() == ["Edit app.py", "Command true"], "it stays again")


@pytest.mark.parametrize("narrow", [False, True])
def test_what_works_or_waits_is_on_top_of_the_list(server, provider, browse, narrow):
    for n in range(60):
        server.client.post("/chats", {"id": f"old{n}", "title": f"Old chat {n}"}).expect(201)
    page = browse(server, size=(500, 844) if narrow else (1200, 900))
    if narrow:
        page.press("menu")
    page.one("chat-item")
    assert page.script("return document.querySelector('.chat-list').scrollTop") == 0, "the list starts at its top"
    provider.plan(tools(call("run_shell", {"command": "true"})), text("ok"))
    waiting = server.client.start("old3", "run", on_disconnect="continue")
    approval = waiting.until("approval_required")["approval_id"]
    for n in range(4, 8):  # other chats are newer
        server.client.request("PATCH", f"/chats/old{n}", {"title": f"Renamed {n}"})
    page.until(lambda: page.all("chat-item")[0].get_attribute("data-chat") == "old3", "the one that waits on top")
    server.client.post(f"/approvals/{approval}", {"approved": False}).expect(200)
    page.until(lambda: page.all("chat-item[data-chat=old3]")[0].get_attribute("data-status") == "idle", "its end")


def test_the_open_chat_is_seen_in_the_list(server, browse):
    for n in range(60):
        server.client.post("/chats", {"id": f"old{n}", "title": f"Old chat {n}"}).expect(201)
    page = browse(server, "/#old5")
    page.until(lambda: page.all("chat-item[data-chat=old5]"), "its line in the list")
    page.until(lambda: page.script("const b = document.querySelector('[data-chat=old5]').getBoundingClientRect(), l = document.querySelector('.chat-list').getBoundingClientRect();"
                                   "return b.top >= l.top && b.bottom <= l.bottom"), "it in sight")


def test_what_a_chat_allows_is_said(server, provider, browse):
    (server.home.workspace / "a.txt").write_text("one\n")
    provider.plan(tools(call("edit_file", {"path": "a.txt", "old_text": "one", "new_text": "two"})), text("ok"))
    page = browse(server)
    page.say("change it")
    page.one("scope").find_element(By.CSS_SELECTOR, "option[value=chat]").click()
    page.press("approve")
    page.until_text("answer", "ok")
    page.press("tab-settings")
    page.until(lambda: all(word in page.text("grant") for word in ("edit_file", '"old_text": "one"', "in this chat")), "the arguments")
    assert "exactly these arguments" in page.text("grant-means")


def test_a_turn_from_the_disk_has_its_beginning_and_its_end(server, provider, browse):
    provider.plan(tools(call("echo", {"text": "x"})), text("finished"))
    page = browse(server)
    page.say("go")
    page.until_text("answer", "finished")
    idle(page)

    def told():
        page.press("tab-trace")
        page.one("event")
        return page.text("event-count"), [each.text for each in page.css("[data-testid=event] .type")]
    live = told()
    page.driver.refresh()
    page.press("tab-chat")
    page.until_text("answer", "finished")
    stored = told()
    assert stored == live and stored[1][0] == "INTERACTION_STARTED" and stored[1][-1] == "INTERACTION_COMPLETE"


def test_a_chat_from_elsewhere_has_all_that_was_said(server, browse):
    server.check_records = False  # the chat was recorded elsewhere
    said = {"id": "int_001", "status": "COMPLETED", "user_message": "hi", "agent_events": [{"type": "ANSWER", "content": "the only words"}],
            "final_agent_state": {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "the only words"}]}}
    server.client.post("/import?as=c", {"id": "c", "title": "Elsewhere", "interactions": [said]}).expect(201)
    page = browse(server, "/#c")
    page.until_text("answer", "the only words")
    page.press("tab-trace")
    page.until(lambda: [each.text for each in page.css("[data-testid=event] .type")] == ["INTERACTION_STARTED", "ANSWER", "INTERACTION_COMPLETE"], "its events")


def test_a_replay_at_an_approval_waits(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "true"})), text("finished"))
    page = browse(server)
    page.say("go")
    page.press("approve")
    page.until_text("answer", "finished")
    idle(page)
    page.press("replay")
    page.one("replay-position").send_keys(Keys.HOME)
    for _ in range(20):
        if "APPROVAL_REQUIRED" in page.text("replay-state"):
            break
        page.press("replay-on")
    card = page.until(lambda: page.css(".replayed [data-testid=tool-card]"), "the card")[0]
    assert "waiting for you" in card.text and "did not run" not in card.text


def test_documents_that_are_not_chats_are_not_imported(server, browse, tmp_path):
    (tmp_path / "other.json").write_text("once upon a time")
    page = browse(server)
    page.one("composer")
    page.all("import-file")[0].send_keys(str(tmp_path / "other.json"))
    page.until_text("toast", "JSON")


def test_another_model_is_offered_where_it_may_help(server, provider, browse):
    provider.plan(failure(400, "no"))
    page = browse(server)
    page.say("go")
    page.one("error-note")
    page.one("next-model")
    assert not [each for each in page.driver.get_log("browser") if "404" in each["message"]], "a new chat is not requested before it exists"


@pytest.mark.parametrize("what", ["quotes", "code", "backticks", "table"])
def test_nothing_that_is_said_stops_the_page(server, provider, browse, what):
    words = {"quotes": ">" * 1040, "code": "```cpp\n" + "R\"(" * 33_000 + "\n```", "backticks": "`" + "a`` ``` " * 12_000, "table": "|" * 98_000}[what]
    provider.plan(text(words), text("well"))
    page = browse(server)
    page.say("go")
    page.until(lambda: page.all("answer"), "something of it")
    page.script("window.longest = 0; let last = performance.now(); const beat = () => { const now = performance.now(); window.longest = Math.max(window.longest, now - last);"
                "last = now; setTimeout(beat, 10); }; beat();")
    idle(page)
    page.say("and")
    # textContent, because the driver's visible text takes longer than all else here.
    page.until(lambda: page.script("return [...document.querySelectorAll('[data-testid=answer]')].pop().textContent.trim()") == "well", "the next answer")
    assert page.script("return window.longest") < 1500 * SLACK


def test_colours_that_take_for_ever_are_left_out(server, provider, browse):
    (server.home.workspace / "a.md").write_text("[" * 49_000 + "](" * 24_500)
    provider.plan(tools(call("read_file", {"path": "a.md"})), text("```python\nprint('after it')\n```"))
    page = browse(server)
    page.say("look")
    page.until(lambda: page.css(".hljs-string"), "the colours of short code")
    page.css(".tool-head")[0].click()
    page.one("file-content")
    began = page.script("return performance.now()")
    page.css("[data-testid=file-content] + button") and page.css("[data-testid=file-content] + button")[0].click()
    assert page.script("return performance.now()") - began < 3000 * SLACK


@pytest.mark.parametrize("size", [(1440, 900), (1280, 720), (500, 844)])
def test_what_is_told_covers_nothing_that_is_used(server, provider, browse, size):
    for n in range(2):
        provider.plan(text(f"answer {n}"))
        server.client.turn("c", f"question {n}")
    page = browse(server, "/#c", size=size)
    page.until_text("answer", "answer 1")
    page.type("composer", "the next words")
    page.script("document.querySelector('.turns').focus()")
    page.keys(Keys.CONTROL, Keys.ALT, "z")
    page.one("toast")
    for name in ("send", "composer", "mode", "attach", "tab-chat"):
        assert page.script("const b = arguments[0].getBoundingClientRect(); return document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2)?.closest('.toast') === null", page.one(name)), name


def test_a_comparison_is_seen_below_a_map_of_any_length(server, provider, browse):
    for n in range(22):
        provider.plan(text(f"answer {n}"))
        server.client.turn("c", f"question {n}")
    page = browse(server, "/#c", size=(1280, 720))
    page.press("tab-branches")
    boxes = page.until(lambda: len(page.css("[data-testid=branch-map] input")) == 22 and page.css("[data-testid=branch-map] input"), "the map")
    boxes[0].click()
    boxes[1].click()
    page.one("comparison")
    page.until(lambda: page.script("const b = document.querySelector('[data-testid=comparison]').getBoundingClientRect(); return b.top < innerHeight - 40"), "it in sight")


@pytest.mark.parametrize("size", [(1280, 720), (500, 844)])
def test_a_replay_is_seen_where_it_opens(server, provider, browse, size):
    provider.plan(text(LONG))
    server.client.turn("c", "question")
    page = browse(server, "/#c", size=size)
    page.until_text("answer", "paragraph 13")
    page.press("replay")
    for name in ("replay-position", "verify"):  # its content may be longer than the window
        page.until(lambda name=name: page.script("const b = arguments[0].getBoundingClientRect(), s = document.querySelector('.turns').getBoundingClientRect();"
                                                 "return b.top >= s.top && b.bottom <= s.bottom + 1", page.one(name)), f"{name} in sight")
