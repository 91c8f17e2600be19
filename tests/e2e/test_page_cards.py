"""Cards of the page: how each kind of call, question, failure and version looks, and what a person can do with it."""
import json
import os
import re

import pytest
from support import anthropic as claude
from support import documents
from support.browser import By, Keys
from support.mcp import server_of
from support.provider import Gate, Reply, call, delta, ending, failure, text, tools
from support.timing import SLACK, eventually

pytestmark = pytest.mark.limit(120)


def inside(card, test_id):
    return card.find_elements(By.CSS_SELECTOR, f"[data-testid='{test_id}']")


def card_of(page, tool):
    return page.until(lambda: page.all(f"tool-card[data-tool='{tool}']")[-1], f"the card of {tool}")


def opened(page, tool):
    card = card_of(page, tool)
    head = card.find_element(By.CSS_SELECTOR, ".tool-head")
    page.script("arguments[0].scrollIntoView({block: 'center'})", head)
    if head.get_attribute("aria-expanded") == "false":
        head.click()
    return card


def idle(page):
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end")


def free(make_server, provider, **config):
    return make_server(provider, config={"approval_mode": "approve_all", **config})


# --- calls -----------------------------------------------------------------------------------------------------------

def test_a_file_is_shown_with_numbers_and_colours(server, provider, browse):
    (server.home.workspace / "a.py").write_text("".join(f"value_{n} = 'text {n}'\n" for n in range(1, 31)))
    provider.plan(tools(call("read_file", {"path": "a.py", "offset": 11, "limit": 5})), text("read"))
    page = browse(server)
    page.say("look")
    page.until_text("answer", "read")
    card = opened(page, "read_file")
    assert "a.py" in card.text and inside(card, "tool-time")
    page.until(lambda: inside(card, "file-content")[0].find_elements(By.CSS_SELECTOR, ".hljs-string"), "the colours")
    numbers = inside(card, "file-content")[0].find_element(By.CSS_SELECTOR, ".gutter").get_attribute("data-numbers").split()
    assert numbers == ["11", "12", "13", "14", "15"] and "value_11" in inside(card, "file-content")[0].text


def test_a_web_search_is_a_list_of_links(make_server, provider, browse):
    own = {"type": "anthropic", "base_url": provider.url.removesuffix("/v1"), "api_key": "k-123456", "web_search": True}
    server = make_server(config={"providers": {"claude": own}, "model": "claude/scripted"})
    good, bad = claude.page("https://wiki.example/cats?a=1&b=2", "Cats <img src=x onerror=alert(1)>"), claude.page("javascript:alert(1)", "Bad")
    provider.plan(claude.message(claude.search("cats"), claude.found(good, bad), claude.say("They sleep.", claude.cites(good, "sleep"))))
    page = browse(server)
    page.say("look")
    page.until_text("answer", "They sleep.")
    idle(page)
    search = page.until(lambda: page.one("note-web_search"), "the search")
    assert "cats (2)" in search.text
    search.find_element(By.TAG_NAME, "button").click()
    for block in (search, page.one("note-sources")):
        link, = block.find_elements(By.TAG_NAME, "a")
        assert link.text == good["title"] and link.get_attribute("href") == good["url"]
        assert link.get_attribute("target") == "_blank" and set(link.get_attribute("rel").split()) == {"noopener", "noreferrer"}


def test_an_edit_is_a_diff_with_numbers_and_counts(server, provider, browse):
    (server.home.workspace / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 21)))
    provider.plan(tools(call("edit_file", {"path": "a.txt", "old_text": "line 10\n", "new_text": "LINE 10\nand more\n"})), text("changed"))
    page = browse(server)
    page.say("change it")
    page.until(lambda: page.css(".approval .lines .added"), "the diff")
    page.press("approve")
    page.until_text("answer", "changed")
    card = opened(page, "edit_file")
    assert "+2 −1" in card.find_element(By.CSS_SELECTOR, ".change-count").text
    lines = card.find_elements(By.CSS_SELECTOR, ".lines > span")
    shown = {each.text.strip(): (each.get_attribute("data-numbers") or "").split() for each in lines}
    assert shown["− line 10"] == ["10"] and shown["+ LINE 10"] == ["10"] and shown["+ and more"] == ["11"] and shown["line 11"] == ["11", "12"]
    assert "line 2" not in shown and any(name.startswith("⋯") for name in shown), "lines far from the change are left out"


def test_a_command_has_its_output_its_end_and_its_time(make_server, provider, browse):
    server = free(make_server, provider)
    provider.plan(tools(call("run_shell", {"command": "echo out; echo err >&2; exit 3"}, "a"), call("run_code", {"language": "python", "code": "print(6 * 7)"}, "b")), text("ran"))
    page = browse(server)
    page.say("run")
    page.until_text("answer", "ran")
    command = opened(page, "run_shell")
    assert inside(command, "tool-failed")[0].text == "exit status 3" and inside(command, "exit")[0].text == "exit status 3"
    assert inside(command, "command-output")[0].text == "out\nerr" and inside(command, "tool-time")
    program = opened(page, "run_code")
    assert inside(program, "language")[0].text == "python" and inside(program, "command")[0].text == "print(6 * 7)"
    assert inside(program, "command-output")[0].text == "42" and inside(program, "exit")[0].text == "exit status 0"
    page.script("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    inside(program, "copy")[0].click()
    assert page.script("return window.copied") == "print(6 * 7)"
    # The raw arguments and output, on request.
    inside(program, "raw")[0].click()
    page.until(lambda: inside(program, "raw-input"), "the arguments")
    assert json.loads(inside(program, "raw-input")[0].text) == {"language": "python", "code": "print(6 * 7)"} and inside(program, "raw-output")[0].text == "42"


def test_a_denied_call_has_not_failed_and_an_answer_stays_in_sight(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "rm x"}, "a"), call("ask_human", {"question": "Which?", "options": ["red \u202eone", "blue"]}, "b"),
                        call("ask_human", {"question": "And?"}, "c")), text("well"))
    page = browse(server)
    page.say("go")
    page.press("deny")
    page.until(lambda: page.all("option"), "the question")
    page.all("option")[0].click()
    page.until(lambda: len(page.all("input-card")) == 1, "the other one")
    page.press("input-decline")
    page.until_text("answer", "well")
    idle(page)
    for _ in range(2):
        denied = card_of(page, "run_shell")
        assert denied.get_attribute("data-state") == "denied" and not inside(denied, "tool-failed") and inside(denied, "decision")[0].text == "Denied"
        assert [each.text for each in page.all("answer-given")] == ["red \\u{202e}one", "Declined"]
        page.driver.refresh()
        page.until_text("answer", "well")


def test_live_output_scrolls_unless_the_reader_has_scrolled_back(make_server, provider, browse):
    server = free(make_server, provider)
    os.mkfifo(server.home.workspace / "go")
    provider.plan(tools(call("run_shell", {"command": "seq 200; cat go; echo; seq 201 400; cat go"})), text("ran"))
    page = browse(server)
    page.say("run")
    output = page.until(lambda: page.all("command-output")[0], "the output")
    page.until(lambda: "200" in output.text.split(), "the first part")

    def from_end():
        return page.script("const e = arguments[0]; return e.scrollHeight - e.scrollTop - e.clientHeight", output)

    page.until(lambda: from_end() < 5, "the end of it")
    page.script("arguments[0].scrollTop = 0", output)
    page.until(lambda: page.script("return arguments[0].scrollTop", output) == 0, "its beginning")
    with open(server.home.workspace / "go", "w") as pipe:
        pipe.write("more")
    page.until(lambda: "400" in output.text.split(), "the second part")
    assert page.script("return arguments[0].scrollTop", output) == 0, "the reader's place does not move"
    with open(server.home.workspace / "go", "w") as pipe:
        pipe.write("end")
    page.until_text("answer", "ran")


def test_what_was_found_stands_file_by_file(server, provider, browse):
    for name in ("a.txt", "b.txt"):
        (server.home.workspace / name).write_text("needle one\nhay\nneedle two\n")
    (server.home.workspace / "sub").mkdir()
    provider.plan(tools(call("search_files", {"pattern": "needle"}, "a"), call("list_files", {}, "b"), call("http_get", {"url": "http://127.0.0.1:9/x"}, "c")), text("done"))
    page = browse(server)
    page.say("search")
    page.press("approve")
    page.until_text("answer", "done")
    found = inside(opened(page, "search_files"), "match-file")
    assert [each.get_attribute("aria-label") for each in found] == ["a.txt", "b.txt"]
    assert [each.get_attribute("data-number") for each in found[0].find_elements(By.CSS_SELECTOR, "li")] == ["1", "3"]
    names = inside(opened(page, "list_files"), "names")[0]
    assert [each.text for each in names.find_elements(By.CSS_SELECTOR, "li")] == ["a.txt", "b.txt", "sub/"] and names.find_elements(By.CSS_SELECTOR, ".folder")
    fetched = opened(page, "http_get")
    assert "http://127.0.0.1:9/x" in fetched.text and "not on the public internet" in fetched.text and fetched.get_attribute("data-state") == "failed"


def test_an_agent_of_its_own_shows_its_steps_while_it_takes_them(server, provider, browse):
    (server.home.workspace / "a.txt").write_text("words")
    gate, last = Gate(), Gate()
    provider.plan(tools(call("research", {"question": "What is in a.txt?"})),
                  tools(call("read_file", {"path": "a.txt"}, "n1"), think="I read it.", say="I look into it."),
                  Reply([gate, *text("It says: ", "words").steps]), Reply([last, *text("found out").steps]))
    page = browse(server)
    page.say("find out")
    card = card_of(page, "research")
    gate.wait_reached()
    page.until(lambda: inside(card, "nested") and inside(card, "tool-card"), "the first steps, without a press")
    assert card.get_attribute("data-state") == "running" and "I look into it." in card.text and "What is in a.txt?" in card.text
    page.until(lambda: inside(card, "thinking"), "what it thought")
    nested = inside(card, "tool-card")[0]
    assert nested.get_attribute("data-tool") == "read_file" and not inside(nested, "file-content")
    nested.find_element(By.CSS_SELECTOR, ".tool-head").click()
    page.until(lambda: "words" in inside(nested, "file-content")[0].text, "the result of its call")
    inside(card, "thinking")[0].find_element(By.CSS_SELECTOR, "button").click()
    page.until(lambda: "I read it." in card.text, "its thoughts")
    gate.release()
    last.wait_reached()
    page.until(lambda: card.get_attribute("data-state") == "done", "the end of it")
    last.release()
    page.until_text("answer", "found out")
    # The same after a reload.
    page.driver.refresh()
    page.until_text("answer", "found out")
    card = opened(page, "research")
    page.until(lambda: inside(card, "tool-card") and "I look into it." in card.text and "It says: words" in card.text, "its steps again")


def test_tools_of_a_server_are_called_by_its_name(make_server, provider, browse):
    tool = '{"name": "find", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}'
    server = free(make_server, provider, mcpServers={"library": server_of(tool, '"a book"')})
    eventually(lambda: any(each["name"] == "library__find" for each in server.client.get("/tools").json["tools"]), "the tool", 30 * SLACK)
    provider.plan(tools(call("library__find", {"title": "Ulysses"})), text("found"))
    page = browse(server)
    page.say("find")
    page.until_text("answer", "found")
    card = opened(page, "library__find")
    assert card.find_element(By.CSS_SELECTOR, ".tool-name").text == "library › find" and "Ulysses" in card.text and "a book" in card.text
    page.press("tab-settings")
    page.until_text("servers", "library")
    assert "ready" in page.text("servers")


def test_all_cards_are_opened_closed_and_hidden(server, provider, browse):
    provider.plan(tools(call("echo", {"text": "x"}, "a"), call("echo", {"text": "y"}, "b")), text("done"))
    page = browse(server)
    page.say("go")
    page.until_text("answer", "done")

    def states():
        return [each.get_attribute("aria-expanded") for each in page.css(".tool-head")]

    assert states() == ["false", "false"]
    page.keys(Keys.CONTROL, Keys.ALT, "e")
    page.until(lambda: states() == ["true", "true"], "all open")
    page.css(".tool-head")[0].click()
    page.until(lambda: states() == ["false", "true"], "one closed")
    page.keys(Keys.CONTROL, Keys.ALT, "e")
    page.until(lambda: states() == ["false", "false"], "all closed")
    page.keys(Keys.CONTROL, Keys.ALT, "t")
    page.until_text("tools-hidden", "2 tool calls")


# --- thinking and notices --------------------------------------------------------------------------------------------

def test_the_timer_of_thinking_runs(server, provider, browse):
    gate = Gate()
    provider.plan(Reply([delta({"reasoning_content": "First this."}), gate, delta({"content": "Done."})] + ending()))
    page = browse(server)
    page.say("think")
    first = page.text("thinking-time")
    page.until(lambda: page.text("thinking-time") != first, "another time")
    gate.release()
    page.until_text("thinking", "Thought for")
    page.gone("thinking-time")


def test_a_retry_tells_when_it_comes(make_server, provider, browse):
    server = make_server(provider, config={"max_retries": 1})
    provider.plan(failure(429, "slow down", headers={"Retry-After": "4"}), text("fine"))
    page = browse(server)
    page.say("go")
    first = page.text("countdown")
    assert re.fullmatch(r"in [1-4] s", first)
    page.until(lambda: page.all("countdown") and page.all("countdown")[0].text != first, "a shorter time")
    page.until_text("answer", "fine")
    page.gone("countdown")
    assert "provider_rate_limited" in page.text("note-retry")


def test_a_failure_is_named_and_offers_what_helps(make_server, provider, browse):
    listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in ("scripted", "other")]}
    provider.listing = Reply([json.dumps(listed).encode()], content_type="application/json")
    server = make_server(provider)
    page = browse(server)
    wanted = [(failure(401, "bad key"), "provider_auth", "rejected the API key", "next-settings"),
              (failure(429, "slow"), "provider_rate_limited", "limit was reached", "next-model"),
              (failure(400, "too long", code="context_length_exceeded"), "provider_context_length", "too long for this model", "next-compact"),
              (failure(503, "busy"), "provider_overloaded", "overloaded", "next-retry")]
    for reply, code, title, button in wanted:
        provider.plan(reply)
        page.press("new-chat")
        page.say("go")
        note = page.until(lambda code=code: page.all(f"error-note[data-code='{code}']")[0], code)
        page.until(lambda note=note, title=title, button=button: title in note.text and inside(note, button), f"{title}, {button}")
    # Resumed with another model, from the card.
    provider.plan(failure(404, "no such model"), text("by the other"))
    page.press("new-chat")
    page.say("go")
    page.press("next-model")
    page.until(lambda: page.all("model-option"), "the models")
    page.type("next-model-search", "other")
    page.type("next-model-search", Keys.ENTER)
    page.until_text("answer", "by the other")
    assert provider.requests[-1].body["model"] == "other"


# --- plan and tasks --------------------------------------------------------------------------------------------------

def test_the_board_is_worked_by_keys(server, provider, browse):
    provider.plan(text("ok"))
    server.client.turn("c", "hello")
    page = browse(server, "/#c", size=(1440, 900))
    page.until_text("answer", "ok")
    page.press("tab-board")

    def tasks():
        return [(task["title"], task["status"]) for task in server.client.get("/chats/c/tasks").json["tasks"]]

    for place, title in (("add-task", "one"), ("add-task", "two"), ("add-doing", "three")):
        page.type(place, title)
        page.type(place, Keys.ENTER)
        page.until(lambda title=title: title in [name for name, _ in tasks()], title)
    page.until(lambda: len(page.all("task")) == 3, "three cards")
    page.script("document.querySelector('[data-testid=task]').focus()")
    page.keys(Keys.ARROW_DOWN)
    page.until(lambda: tasks() == [("two", "todo"), ("one", "todo"), ("three", "doing")], "the other order")
    page.until(lambda: page.script("return document.activeElement.getAttribute('aria-label')") == "one, To do", "the focus with it")
    page.keys(Keys.ARROW_RIGHT)
    page.until(lambda: ("one", "doing") in tasks(), "the next column")
    page.until(lambda: page.script("return document.activeElement.getAttribute('aria-label')") == "one, Doing", "the focus with it")
    page.keys(Keys.ENTER)
    page.until(lambda: page.script("return document.activeElement.value") == "one", "the focus in its title")
    page.keys(Keys.ESCAPE)
    page.until(lambda: page.script("return document.activeElement.getAttribute('aria-label')") == "one, Doing", "the focus back")
    page.keys(Keys.DELETE)
    page.until(lambda: len(tasks()) == 2, "the end of one")
    page.type("add-step", "Look")
    page.type("add-step", Keys.ENTER)
    page.until(lambda: server.client.get("/chats/c/tasks").json["plan"] == ["Look"], "a plan")
    page.press("tab-chat")


def test_the_plan_stands_beside_the_conversation(server, provider, browse):
    gate = Gate()
    provider.plan(tools(call("update_plan", {"steps": ["Look", "Leap"]}, "p"), call("manage_tasks", {"action": "add", "title": "Buy milk"}, "t")), text(gate, "planned"))
    page = browse(server, size=(1500, 900))
    page.say("plan")
    page.until(lambda: all(word in page.text("agenda") for word in ("Look", "Leap", "Buy milk", "0 of 1")), "plan and tasks, while it works")
    boxes = "return ['agenda', 'user-message'].map((name) => document.querySelector(`[data-testid=${name}]`).getBoundingClientRect()).map((box) => [box.left, box.right])"
    agenda, message = page.script(boxes)
    assert agenda[0] >= message[1]
    gate.release()
    page.until_text("answer", "planned")


# --- approvals -------------------------------------------------------------------------------------------------------

def focus_card(page, name="approval-card"):
    page.script("arguments[0].focus()", page.one(name))


def test_words_for_a_call_may_have_several_lines(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "true"})), text("not done"))
    page = browse(server)
    page.say("run")
    field = page.one("feedback")
    low = field.rect["height"]
    page.type("feedback", "Not so:" + Keys.ENTER + "- keep the logs" + Keys.ENTER + "- ask before you delete anything, " + "whatever it may be " * 10)
    page.until(lambda: page.one("feedback").rect["height"] > 3 * low, "room for all of it")
    assert page.script("const e = arguments[0]; return e.scrollHeight <= e.clientHeight + 2", page.one("feedback"))
    assert page.all("approval-card"), "Enter answers nothing"
    page.press("deny")
    page.until_text("answer", "not done")
    chat = server.client.get("/chats").json["chats"][0]["id"]
    told, = [each["feedback"] for each in server.client.interaction(chat, "int_001")["agent_events"] if each["type"] == "REJECTED"]
    assert told.startswith("Not so:\n- keep the logs\n- ask")


def test_a_and_d_answer_the_card_that_has_the_focus(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "echo yes >> log.txt"})), text("done"))
    page = browse(server)
    page.say("run")
    card = page.one("approval-card")
    page.script("document.activeElement.blur()")
    page.keys("a")
    assert page.all("approval-card"), "a key without a focused card answers nothing"
    # Neither does a key that was pressed before the card appeared.
    page.script("const e = new KeyboardEvent('keydown', {key: 'a', bubbles: true}); Object.defineProperty(e, 'timeStamp', {value: 1});"
                "arguments[0].focus(); arguments[0].dispatchEvent(e)", card)
    page.type("feedback", "add")
    assert page.all("approval-card") and page.one("feedback").get_attribute("value") == "add"
    assert not (server.home.workspace / "log.txt").exists()
    page.until(lambda: page.script("return performance.now() > 2000"), "a moment for the card")
    focus_card(page)
    page.keys("a")
    page.until_text("answer", "done")
    assert (server.home.workspace / "log.txt").read_text() == "yes\n"
    provider.plan(tools(call("run_shell", {"command": "echo no >> log.txt"}, "b")), text("not done"))
    page.say("again")
    card = page.one("approval-card")
    drawn = page.script("return performance.now()")
    page.until(lambda: page.script("return performance.now()") > drawn + 600, "a moment for the card")
    focus_card(page)
    page.keys("d")
    page.until_text("answer", "not done")
    assert (server.home.workspace / "log.txt").read_text() == "yes\n"


def test_a_card_tells_terms_and_how_long_it_waits(make_server, provider, browse):
    server = make_server(provider, config={"approval_expiry_s": 600})
    provider.plan(tools(call("run_shell", {"command": "true"})), text("done"))
    page = browse(server)
    page.say("run")
    page.one("approval-card")
    assert "runs a shell command" in page.text("terms") and str(server.home.workspace) in page.text("terms")
    first = page.text("expiry")
    assert re.match(r"expires in 9 min \d+ s|expires in 10 min", first)
    page.until(lambda: page.text("expiry") != first, "less time")
    page.press("deny")
    page.until_text("answer", "done")


def test_what_was_answered_elsewhere_says_how(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "true"})), text("done"))
    page = browse(server)
    page.say("run")
    page.one("approval-card")
    approval = server.client.get("/approvals").json["approvals"][0]["approval_id"]
    server.client.post(f"/approvals/{approval}", {"approved": True, "scope": "chat"}).expect(200)
    page.until_text("answer", "done")
    page.until_text("decision", "Approved in this chat elsewhere")
    page.press("tab-inbox")
    page.until_text("closed", "Approved in this chat")
    page.one("inbox-empty")


ALL_KINDS = {
    "type": "object", "required": ["name", "count", "mode", "where", "target"],
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 20}, "content": {"type": "string"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "share": {"type": "number"}, "quick": {"type": "boolean"}, "mode": {"type": "string", "enum": ["slow", "fast"]},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 1}},
        "where": {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}}},
        "target": {"oneOf": [{"title": "a file", "type": "object", "required": ["path"], "properties": {"path": {"type": "string", "minLength": 1}}},
                             {"title": "an address", "type": "string", "format": "uri"}]},
    },
}


def test_arguments_of_every_kind_have_fields_and_are_checked(make_server, provider, browse):
    tool = repr({"name": "make", "inputSchema": ALL_KINDS})
    server = make_server(provider, config={"mcpServers": {"w": server_of(tool, "json.dumps(request['params']['arguments'])")}})
    eventually(lambda: any(each["name"] == "w__make" for each in server.client.get("/tools").json["tools"]), "the tool", 30 * SLACK)
    given = {"name": "box", "count": 3, "mode": "slow", "tags": ["a"], "where": {"city": "Bonn"}, "target": {"path": "x"}, "share": 0.5, "quick": False, "content": "some\nlines"}
    provider.plan(tools(call("w__make", given)), text("made"))
    page = browse(server)
    page.say("make")
    page.press("edit-arguments")
    form = page.until(lambda: page.css(".approval .form")[0], "the form")

    def field(name):
        return form.find_element(By.CSS_SELECTOR, f"[name='{name}']")

    assert field("content").tag_name == "textarea" and field("count").get_attribute("type") == "number" and field("quick").get_attribute("type") == "checkbox"
    assert field("city").get_attribute("value") == "Bonn" and field("path").get_attribute("value") == "x"
    # Errors are shown beside the field, and nothing is sent.
    for name, words in (("name", "b"), ("count", "12"), ("zip", "12")):
        field(name).send_keys(Keys.CONTROL, "a")
        field(name).send_keys(words)
    inside(form, "add-item")[0].click()
    page.press("approve")
    page.until(lambda: {each.get_attribute("data-at") for each in page.all("problem")} == {"/name", "/count", "/where/zip", "/tags/1"}, "four problems")
    assert field("name").get_attribute("aria-invalid") == "true" and page.script("return document.activeElement.name") == "name"
    assert "At least 2 characters." in form.text and "Must be at most 9." in form.text
    for name, words in (("name", "crate"), ("count", "4"), ("zip", "53111"), ("tags 2", "b")):
        field(name).send_keys(Keys.CONTROL, "a")
        field(name).send_keys(words)
    page.until(lambda: not page.all("problem"), "the end of the problems")
    next(each for each in field("mode").find_elements(By.CSS_SELECTOR, "option") if each.text == "fast").click()
    field("quick").click()
    inside(form, "kind")[0].find_element(By.CSS_SELECTOR, "option[value='1']").click()
    field("an address").send_keys("https://example.org/")
    page.press("approve")
    page.until_text("answer", "made")
    sent = json.loads(re.search(r"\{.*\}", provider.requests[-1].conversation[-1]["content"])[0])
    assert sent == {**given, "name": "crate", "count": 4, "mode": "fast", "quick": True, "tags": ["a", "b"],
                    "where": {"city": "Bonn", "zip": "53111"}, "target": "https://example.org/"}


# --- questions and the inbox -----------------------------------------------------------------------------------------

def test_a_number_picks_an_option(server, provider, browse):
    provider.plan(tools(call("ask_human", {"question": "Which colour?", "options": ["red", "blue"]})), text("well chosen"))
    page = browse(server)
    page.say("ask")
    page.one("input-card")
    drawn = page.script("return performance.now()")
    page.type("input-text", "2")
    assert page.one("input-text").get_attribute("value") == "2", "a number typed into the field stays text"
    page.until(lambda: page.script("return performance.now()") > drawn + 600, "a moment for the card")
    focus_card(page, "input-card")
    page.keys("2")
    page.until_text("answer", "well chosen")
    assert provider.requests[-1].conversation[-1]["content"].endswith("blue")


def test_the_inbox_is_grouped_by_chat_with_its_age(server, provider, browse):
    page = browse(server)
    streams = []
    for name in ("a", "b"):
        provider.plan(tools(call("run_shell", {"command": f"echo {name}1"}, "1"), call("run_shell", {"command": f"echo {name}2"}, "2")))
        streams.append(server.client.start(name, f"do {name}", on_disconnect="continue"))
        streams[-1].until("approval_required")
    page.press("tab-inbox")
    page.until(lambda: len(page.all("approval-card")) == 4, "four cards")
    groups = page.all("inbox-group")
    assert [each.get_attribute("data-chat") for each in groups] == ["a", "b"] and all(len(inside(each, "approval-card")) == 2 for each in groups)
    assert "do a" in groups[0].text and re.search(r"for \d+ (s|min)", inside(groups[0], "age")[0].text)
    inside(groups[1], "go-to-chat")[0].click()
    page.until_text("user-message", "do b")
    for name in ("a", "b"):
        server.client.cancel(name, "int_001")


# --- time ------------------------------------------------------------------------------------------------------------

def two_versions(server, provider, page):
    provider.plan(text("the first answer stands here"))
    page.say("question one")
    page.until_text("answer", "first answer")
    for answer in ("the second answer stands here", "the third answer lies here"):
        provider.plan(text(answer))
        if "third" in answer:
            page.press("regenerate")
        else:
            page.say("question two")
        page.until_text("answer", answer)
    idle(page)


def test_undo_and_redo_tell_and_can_be_taken_back(server, provider, browse):
    page = browse(server)
    two_versions(server, provider, page)
    page.keys(Keys.CONTROL, Keys.ALT, "z")
    page.until_text("toast", "Undone: question two")
    page.until(lambda: len(page.all("user-message")) == 1, "one turn less")
    page.press("toast-action")
    page.until(lambda: len(page.all("user-message")) == 2, "the turn again")


def test_branches_are_a_tree_and_compared_side_by_side(server, provider, browse):
    page = browse(server)
    two_versions(server, provider, page)
    page.press("tab-branches")
    page.until(lambda: len(page.css(".tree-dot")) == 3, "three dots")
    assert len(page.css(".tree-edge")) == 2 and len(page.css(".tree-edge.shown")) == 1
    across = {dot.get_attribute("cx") for dot in page.css(".tree-dot")}
    assert len(across) == 2, "the other version has its own lane"
    for box in page.css("[data-testid=branch-map] input")[1:3]:
        box.click()
    left, right = page.one("left"), page.one("right")
    page.until(lambda: [each.text.strip() for each in left.find_elements(By.CSS_SELECTOR, "del")] == ["second", "stands"], "the words that differ, when both are read")
    assert [each.text.strip() for each in right.find_elements(By.CSS_SELECTOR, "ins")] == ["third", "lies"]
    assert "The first turn is the same." in page.text("comparison") and "first answer" not in page.text("comparison")
    page.all("tree-turn")[1].click()
    page.until(lambda: len(page.css(".tree-edge.shown")) == 1 and "shown" in page.css(".node")[1].get_attribute("class"), "the other version")


def test_a_replay_is_stepped_through(server, provider, browse):
    provider.plan(tools(call("echo", {"text": "x"})), text("finished"))
    page = browse(server)
    page.say("go")
    page.until_text("answer", "finished")
    idle(page)
    page.press("replay")
    count = int(page.text("replay-state").split("/")[0])
    page.press("replay-back")
    page.until(lambda: page.text("replay-state").startswith(f"{count - 1}/{count}"), "one event back")
    slider = page.one("replay-position")
    slider.send_keys(Keys.HOME)
    page.until(lambda: page.text("replay-state").startswith("0/"), "the beginning")
    slider.send_keys(Keys.ARROW_RIGHT)
    page.until(lambda: page.text("replay-state").startswith("1/") and "INTERACTION_STARTED" in page.text("replay-state"), "the first event")
    page.one("replay-speed").find_element(By.CSS_SELECTOR, "option[value='4']").click()
    slider.send_keys(" ")
    page.until(lambda: page.text("replay-state").startswith(f"{count}/{count}"), "the end again")


# --- chats -----------------------------------------------------------------------------------------------------------

def test_a_hit_is_marked_and_leads_to_its_turn(server, provider, browse):
    for n in range(30):
        provider.plan(text(f"answer {n} " + ("with a needle in it" if n == 3 else "of hay ") + "\n\nmore" * 20))
        server.client.turn("c", f"question {n}")
    page = browse(server)
    page.type("search", "needle")
    page.until_text("hits", "needle")
    assert [each.text for each in page.css("[data-testid=hits] mark")] == ["needle"]
    page.press("hit")

    def where():
        return page.script("const t = document.querySelector('[data-interaction=int_004]'), log = document.querySelector('[data-testid=turns]');"
                           "return t && t.getBoundingClientRect().top - log.getBoundingClientRect().top")

    page.until(lambda: (top := where()) is not None and -40 < top < 120, "the turn in sight")


def test_chats_are_picked_deleted_and_brought_back(server, provider, browse):
    for name in ("a", "b", "c"):
        provider.plan(text("ok"))
        server.client.turn(name, f"chat {name}")
    page = browse(server)
    page.until(lambda: len(page.all("chat-item")) == 3, "three chats")
    page.press("select")
    boxes = {each.get_attribute("data-chat"): inside(each, "choose")[0] for each in page.all("chat-item")}
    boxes["a"].click()
    boxes["b"].click()
    page.until_text("select-bar", "2 selected")
    page.press("delete-selected")
    page.until(lambda: [each.get_attribute("data-chat") for each in page.all("chat-item")] == ["c"], "one chat")
    assert "2 chats were deleted" in page.text("toast")
    page.press("open-trash")
    page.until(lambda: {each.get_attribute("data-chat") for each in page.all("trash-entry")} == {"a", "b"}, "two in the trash")
    inside(page.all("trash-entry[data-chat='b']")[0], "restore")[0].click()
    page.until(lambda: page.all("chat-item[data-chat='b']"), "one of them again")
    page.until(lambda: [each.get_attribute("data-chat") for each in page.all("trash-entry")] == ["a"], "one in the trash")


def test_a_chat_is_imported_by_dropping_it_and_named_in_the_header(server, provider, browse, tmp_path):
    provider.plan(text("the answer"))
    server.client.turn("c", "the question")
    document = server.client.get("/chats/c/export").json
    document.pop("usage")
    (tmp_path / "chat.json").write_text(json.dumps(document))
    page = browse(server)
    page.one("chat-item")
    data = {"items": [], "files": [str(tmp_path / "chat.json")], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        page.driver.execute_cdp_cmd("Input.dispatchDragEvent", {"type": kind, "x": 100, "y": 300, "data": data})
    page.until(lambda: len(page.all("chat-item")) == 2, "the copy")
    page.until_text("answer", "the answer")
    page.press("title")
    page.type("title-input", "A better name", clear=True)
    page.type("title-input", Keys.ENTER)
    page.until_text("chat-item", "A better name")
    assert "A better name" in [each["title"] for each in server.client.get("/chats").json["chats"]]


def test_a_large_list_of_chats_is_imported_in_parts(server, browse, tmp_path):
    def chat(number):
        said = [{"uuid": f"{number}-{i}", "sender": sender, "created_at": "2026-05-01T10:00:00Z", "content": [{"type": "text", "text": words}]}
                for i, (sender, words) in enumerate((("human", f'Say "[{{" {number}, \\'), ("assistant", "],} " * (800 << 10))))]
        return {"uuid": f"chat-{number}", "name": f"Chat {number}", "created_at": "2026-05-01T10:00:00Z", "updated_at": "2026-05-01T10:00:00Z", "chat_messages": said}

    file = tmp_path / "conversations.json"
    file.write_text("\n " + json.dumps([chat(number) for number in range(4)], indent=1) + "\n")
    page = browse(server)
    page.script("""const real = window.fetch; let parts = 0;
      window.fetch = (path, ...rest) => path === "/import" && ++parts === 2 ? Promise.reject(new TypeError("cut off")) : real(path, ...rest)""")
    page.all("import-file")[0].send_keys(str(file))
    page.until_text("toast", "1 of 2 parts of the file are imported")
    assert {each["title"] for each in server.client.get("/chats").json["chats"]} == {"Chat 0", "Chat 1"}
    page = browse(server)
    page.all("import-file")[0].send_keys(str(file))
    page.until(lambda: len(page.all("chat-item")) == 4, "all of them")
    assert {each["title"] for each in server.client.get("/chats").json["chats"]} == {f"Chat {number}" for number in range(4)}
    assert page.script("return performance.getEntriesByType('resource').filter((each) => each.name.endsWith('/import')).length") == 2, "two in each part"
    page.all("import-file")[0].send_keys(str(file))
    page.until_text("toast", "imported earlier")


# --- writing ---------------------------------------------------------------------------------------------------------

def test_files_are_attached_before_there_is_a_chat(server, provider, browse, tmp_path):
    (tmp_path / "notes.txt").write_text("the words of the notes")
    page = browse(server)
    page.type("composer", "what is in it?")
    page.all("file")[0].send_keys(str(tmp_path / "notes.txt"))
    page.until(lambda: page.all("attachment[data-state=there]"), "the file")
    assert page.one("composer").get_attribute("value") == "what is in it?", "the draft is kept"
    page.type("composer", " Tell me")
    assert page.one("composer").get_attribute("value") == "what is in it? Tell me", "typing continues at its end"
    provider.plan(text("words"))
    page.type("composer", Keys.ENTER)
    page.until_text("answer", "words")
    assert "the words of the notes" in json.dumps(provider.requests[-1].body)
    # Later, by its name.
    page.type("composer", "and again @not")
    page.until_text("suggestions", "notes.txt")
    page.type("composer", Keys.ENTER)
    page.until(lambda: page.one("composer").get_attribute("value") == "and again @notes.txt ", "its name")
    page.until(lambda: page.all("attachment[data-state=there]"), "the file with it")
    provider.plan(text("words again"))
    page.type("composer", Keys.ENTER)
    page.until_text("answer", "words again")
    chat = server.client.get("/chats").json["chats"][0]["id"]
    assert [each["filename"] for each in server.client.interaction(chat, "int_002")["attachments"]] == ["notes.txt"]


def test_pictures_are_seen_and_what_the_model_does_not_get_is_told(make_server, make_home, provider, browse, tmp_path):
    home = make_home()
    (home.workspace / "pond.png").write_bytes(documents.png(40, 30))
    (tmp_path / "heron.png").write_bytes(documents.png(20, 10))
    (tmp_path / "cut.png").write_bytes(documents.png()[:-20])
    server = make_server(provider, home=home, config={"models": {"test/scripted": {"abilities": {"images": True}}}})
    page = browse(server)
    page.one("composer")
    page.all("file")[0].send_keys(f"{tmp_path / 'heron.png'}\n{tmp_path / 'cut.png'}")
    page.until(lambda: len(page.all("attachment[data-state=there]")) == 2, "the files")

    def width(inside):
        return page.script("const image = document.querySelector(arguments[0] + ' img'); return image && image.complete ? image.naturalWidth : 0", inside)

    page.until(lambda: width("[data-testid=attachment]") == 20, "a preview")
    provider.plan(tools(call("read_file", {"path": "pond.png"})), text("A heron at a pond."))
    page.type("composer", "what do you see?")
    page.type("composer", Keys.ENTER)
    page.until_text("answer", "A heron at a pond.")
    page.until(lambda: width(".attachments.sent") == 20, "the picture that was attached")
    page.until_text("file-note", "it is cut short")
    page.until(lambda: width("[data-tool=read_file] .attachments.made") == 40, "what the tool gave, with its card closed")
    page.driver.refresh()
    page.until_text("answer", "A heron at a pond.")
    page.until(lambda: width("[data-tool=read_file] .attachments.made") == 40 and width(".attachments.sent") == 20, "both, of a chat that is read again")


def test_a_file_that_cannot_be_sent_says_why(make_server, provider, browse, tmp_path):
    server = make_server(provider, config={"files": {"max_file_bytes": 1000}})
    (tmp_path / "large.bin").write_bytes(b"x" * 5000)
    page = browse(server)
    page.one("composer")
    page.all("file")[0].send_keys(str(tmp_path / "large.bin"))
    failed = page.until(lambda: page.all("attachment[data-state=failed]")[0], "the failure")
    assert failed.find_element(By.CSS_SELECTOR, "[role=alert]").text
    inside(failed, "retry-upload")
    failed.find_elements(By.CSS_SELECTOR, "button")[-1].click()
    page.gone("attachment")


def test_a_slash_does_what_the_palette_does(server, provider, browse):
    provider.plan(text("ok"))
    page = browse(server)
    page.say("hello")
    page.until_text("answer", "ok")
    page.type("composer", "/boa")
    page.until_text("suggestions", "/board")
    page.type("composer", Keys.ENTER)
    page.one("board")


def test_escape_stops_and_up_edits(server, provider, browse):
    gate = Gate()
    provider.plan(text("begin", gate))
    page = browse(server)
    page.say("long")
    page.until_text("answer", "begin")
    page.type("composer", Keys.ESCAPE)
    page.one("note-cancelled")
    idle(page)
    page.type("composer", Keys.ARROW_UP)
    assert page.one("edit-text").get_attribute("value") == "long"
    page.type("edit-text", "short", clear=True)
    provider.plan(text("brief"))
    page.type("edit-text", Keys.CONTROL + Keys.ENTER)
    page.until_text("answer", "brief")


def test_models_are_grouped_by_provider_with_their_context(make_server, provider, browse):
    server = make_server(provider, config={"models": {"test/scripted": {"context_window": 128000}}})
    page = browse(server)
    page.press("model")
    option = page.until(lambda: next((each for each in page.all("model-option") if "test/scripted" in each.text and "128 K" in each.text), None), "the model with its context")
    assert option.find_element(By.CSS_SELECTOR, ".group").text == "test"
    page.type("model-search", "nosuch")
    page.until(lambda: not page.all("model-option"), "nothing")
    page.keys(Keys.ESCAPE)
    page.gone("model-search")


# --- what can be seen of it ------------------------------------------------------------------------------------------

def test_the_meter_is_a_bar(make_server, provider, browse):
    server = make_server(provider, config={"models": {"test/scripted": {"context_window": 10000}}})
    provider.plan(text("hello", usage=(2500, 100)))
    page = browse(server)
    page.say("hi")
    page.until_text("answer", "hello")
    bar = page.one("context-bar")
    assert bar.get_attribute("role") == "meter" and bar.get_attribute("aria-valuenow") == "26"
    assert page.one("meter").get_attribute("title") == "2,500 tokens in, 100 out"
    assert re.search(r"\d+ m?s · 2,600 tokens · test/scripted", page.text("turn-usage"))


def test_events_are_filtered(server, provider, browse):
    provider.plan(tools(call("echo", {"text": "x"})), text("traced"))
    page = browse(server)
    page.say("go")
    page.until_text("answer", "traced")
    idle(page)
    page.press("tab-trace")
    every = page.until(lambda: len(page.all("event")), "the view, which is fetched when it is wanted")
    page.type("filter-events", "tool_call")
    page.until(lambda: len(page.all("event")) == 1 and page.text("event-count") == f"1/{every}", "one of them")
    page.until_text("audit", "Echo")


def test_the_beginning_shows_what_to_say(make_server, browse):
    server = make_server()
    page = browse(server)
    assert "No model is connected" in page.text("connect") and page.one("folder").get_attribute("value") == str(server.home.workspace)
    next(each for each in page.all("example") if "demo" in each.text).click()
    page.until(lambda: page.one("composer").get_attribute("value") == "demo", "the example")
    page.type("composer", Keys.ENTER)
    page.one("approval-card", limit=30)
    page.type("composer", Keys.ESCAPE)
    page.one("note-cancelled")


def test_text_from_right_to_left(server, provider, browse):
    provider.plan(text("שלום עולם\n\nand English"))
    page = browse(server)
    page.say("שלום")
    page.until_text("answer", "English")
    assert page.script("return getComputedStyle(document.querySelector('[data-testid=user-message]')).direction") == "rtl"
    page.script("document.documentElement.dir = 'rtl'")
    assert page.script("return document.documentElement.scrollWidth <= innerWidth")
    side, turns = page.one("sidebar").rect, page.one("turns").rect
    assert side["x"] > turns["x"], "the chats are on the right"
