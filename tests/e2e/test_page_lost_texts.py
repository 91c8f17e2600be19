"""What people write is lost by nothing: not by a refusal, a slow server, another chat, another window, or a restart."""
import pytest
from support.browser import Keys
from support.provider import Gate, Reply, text
from support.timing import eventually

pytestmark = pytest.mark.limit(120)

# Requests whose method and path match `window.holding` wait until `letGo`. With an answer given, that is what the page gets in place of the server's: a status
# and a body, or null if the server cannot be reached.
HOLD = """
const ask = window.fetch, held = [];
window.holding = null;
window.fetch = async (path, options) => {
  if (!window.holding || !new RegExp(window.holding).test(`${options?.method ?? 'GET'} ${path}`)) return ask(path, options);
  const answer = await new Promise((go) => held.push(go));
  if (answer === undefined) return ask(path, options);
  if (answer === null) throw new TypeError('Failed to fetch');
  return new Response(JSON.stringify(answer[1]), {status: answer[0]});
};
window.letGo = (answer) => { window.holding = null; held.splice(0).forEach((go) => go(answer)); };
window.isHeld = () => held.length > 0;
"""
MESSAGES = "POST .*/interactions$"
FULL = [507, {"error": {"code": "storage_full", "message": "no space is left"}}]


@pytest.fixture
def page(server, provider, browse):
    """A window on chat a. There is a chat b too."""
    provider.answer_with(lambda request: text("answered"))
    server.client.turn("a", "this is a")
    server.client.turn("b", "this is b")
    return look(browse(server, "/#a", script=HOLD), "a")


def look(page, chat):
    """Opens the chat, and waits until it is shown."""
    page.open_chat(chat)
    page.until(lambda: page.all("user-message")[0].text == "this is " + chat, chat)
    return page


def written(page):
    return page.one("composer").get_attribute("value")


def until_written(page, words):
    page.until(lambda: written(page) == words, f"{words!r} in the box")


def until_held(page):
    page.until(lambda: page.script("return window.isHeld()"), "the request")


def hold(page, requests):
    page.script("window.holding = arguments[0]", requests)


def let_go(page, *answer):
    page.script("window.letGo(...arguments)", *answer)


def said(server, chat):
    return [each["user_message"] for each in server.client.get(f"/chats/{chat}").json["interactions"]]


def paste(page, name, kind="text/plain"):
    page.script("const data = new DataTransfer(); data.items.add(new File(['x'], arguments[0], {type: arguments[1]}));"
                "document.querySelector('[data-testid=composer]').dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}))", name, kind)


def sent_files(server):
    return [each["filename"] for each in server.client.get("/chats/a").json["interactions"][-1].get("attachments", [])]


def attached(page):
    return [each.text for each in page.all("attachment") if each.get_attribute("data-state") == "there"]


# --- the chat that a message goes to ----------------------------------------------------------------------------------

def test_a_message_goes_to_the_chat_that_it_was_written_in(server, page):
    hold(page, "POST .*/workspace/files")
    page.say("for a alone: ask @bob ")
    until_held(page)
    look(page, "b")
    let_go(page)
    eventually(lambda: said(server, "a") == ["this is a", "for a alone: ask @bob "], "the messages at the server")
    assert said(server, "b") == ["this is b"]
    look(page, "a")
    assert written(page) == ""


def test_a_command_waits_in_a_chat_that_is_busy_though_another_one_is_shown(server, provider, page):
    gate = Gate()
    provider.plan(text("slow ", gate, "answer"))
    page.say("a slow one")
    page.until_text("answer", "slow")
    hold(page, "POST /instructions/expand")
    page.say("/nothing of this name")
    until_held(page)
    look(page, "b")
    let_go(page)
    eventually(lambda: [each["user_message"] for each in server.client.get("/chats/a/queue").json["queue"]] == ["/nothing of this name"], "the messages at the server")
    gate.release()
    eventually(lambda: said(server, "a")[1:] == ["a slow one", "/nothing of this name"], "the messages at the server")


def test_a_kept_message_stays_in_its_chat_until_it_is_sent(server, page):
    hold(page, MESSAGES)
    page.say("kept for a")
    until_held(page)
    let_go(page, None)
    page.until_text("unsent", "kept for a")
    hold(page, MESSAGES)
    page.press("send-again")
    until_held(page)
    assert "kept for a" in page.script("return localStorage.getItem('unsent:a')"), "a reload would lose it"
    look(page, "b")
    let_go(page, FULL)
    page.until_text("toast", "no space")
    assert not page.all("unsent")
    look(page, "a")
    page.press("send-again")
    page.gone("unsent")
    eventually(lambda: said(server, "a")[1:] == ["kept for a"], "the messages at the server")
    assert page.script("return localStorage.getItem('unsent:a')") is None


# --- a message that is refused ----------------------------------------------------------------------------------------

def refused(page, words):
    hold(page, MESSAGES)
    page.say(words)
    until_held(page)
    until_written(page, "")


def test_a_refused_message_comes_back(page):
    refused(page, "a long message")
    let_go(page, FULL)
    until_written(page, "a long message")
    page.until_text("toast", "no space")


def test_a_refused_message_comes_back_to_its_chat(page):
    refused(page, "a long message")
    look(page, "b")
    let_go(page, FULL)
    page.until_text("toast", "no space")
    assert written(page) == ""
    look(page, "a")
    until_written(page, "a long message")


def test_a_refused_message_comes_back_to_a_box_that_was_away(page):
    refused(page, "a long message")
    page.press("tab-settings")
    page.gone("composer")
    page.press("tab-chat")
    page.one("composer")
    let_go(page, FULL)
    until_written(page, "a long message")


def test_a_message_that_is_refused_after_the_view_is_another_comes_back(page):
    refused(page, "a long message")
    page.press("tab-settings")
    page.gone("composer")
    let_go(page, FULL)
    page.until_text("toast", "no space")
    page.press("tab-chat")
    until_written(page, "a long message")


def test_a_message_that_is_refused_for_the_token_is_there_after_the_log_in(page):
    refused(page, "a long message")
    let_go(page, [401, {"error": {"code": "invalid_token", "message": "revoked"}}])
    page.one("log-in")
    page.driver.refresh()
    until_written(page, "a long message")


def test_a_refused_message_does_not_replace_the_next_one(server, page):
    refused(page, "the first")
    page.type("composer", "the second")
    let_go(page, FULL)
    page.until_text("unsent", "the first")
    assert written(page) == "the second"
    page.press("send-again")
    page.gone("unsent")
    eventually(lambda: said(server, "a")[1:] == ["the first"], "the messages at the server")
    assert written(page) == "the second"


def test_a_second_message_waits_for_the_first(server, page):
    refused(page, "the first")
    page.say("the second")
    page.until_text("toast", "still on its way")
    assert written(page) == "the second"
    let_go(page)
    eventually(lambda: said(server, "a")[1:] == ["the first"], "the messages at the server")


def test_a_file_that_is_attached_while_a_message_is_sent_stays(server, page):
    paste(page, "first.txt")
    page.until(lambda: attached(page) == ["first.txt"])
    hold(page, MESSAGES)
    page.say("look at the first")
    until_held(page)
    paste(page, "next.txt")
    page.until(lambda: attached(page) == ["first.txt", "next.txt"])
    let_go(page)
    page.until(lambda: attached(page) == ["next.txt"])
    eventually(lambda: sent_files(server) == ["first.txt"], "the message with its file")


# --- messages that wait for their turn --------------------------------------------------------------------------------

@pytest.fixture
def waiting(server, provider, page):
    """A message that waits in chat a, and the gate before its turn."""
    gate = Gate()
    provider.plan(text("slow ", gate, "answer"))
    page.say("a slow one")
    page.until_text("answer", "slow")
    page.say("it waits")
    page.one("queued")
    return gate


def queue(server):
    return server.client.get("/chats/a/queue").json["queue"]


def test_a_waiting_message_shows_what_another_window_made_of_it(server, page, waiting):
    server.client.request("PATCH", f"/chats/a/queue/{queue(server)[0]['id']}", {"user_message": "changed elsewhere"})
    page.until(lambda: page.one("queued").get_attribute("value") == "changed elsewhere")
    page.one("queued").click()
    page.one("composer").click()
    waiting.release()
    eventually(lambda: said(server, "a")[1:] == ["a slow one", "changed elsewhere"], "the messages at the server")


def test_a_change_of_a_waiting_message_is_saved_when_the_box_is_left(server, page, waiting):
    page.type("queued", Keys.END + " longer")
    page.one("composer").click()
    eventually(lambda: queue(server)[0]["user_message"] == "it waits longer", "the messages at the server")
    assert page.one("queued").get_attribute("value") == "it waits longer"
    page.press("unqueue")
    page.gone("queued")
    assert written(page) == "" and not page.all("toast")
    waiting.release()


def test_a_change_that_comes_too_late_goes_to_the_box(server, page, waiting):
    page.type("composer", "a draft")
    page.type("queued", Keys.END + " with a long change")
    waiting.release()
    page.gone("queued")
    until_written(page, "a draft\nit waits with a long change")
    page.until_text("toast", "began before your change")
    eventually(lambda: said(server, "a")[1:] == ["a slow one", "it waits"], "the messages at the server")


def test_a_change_under_way_is_saved_when_another_chat_is_shown(server, page, waiting):
    page.type("queued", Keys.END + " longer")
    page.keys(Keys.ALT, Keys.ARROW_DOWN)
    page.gone("queued")
    eventually(lambda: queue(server)[0]["user_message"] == "it waits longer", "the messages at the server")
    waiting.release()


# --- two windows on one chat ------------------------------------------------------------------------------------------

@pytest.fixture
def two(page):
    """Functions that turn to the first window, and to a second one of the same browser."""
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    second = page.driver.current_window_handle
    page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": HOLD})
    page.open("/#a")
    page.until_text("user-message", "this is a")
    return lambda: page.driver.switch_to.window(first), lambda: page.driver.switch_to.window(second)


def test_two_windows_share_a_draft(server, page, two):
    first, second = two
    first()
    page.type("composer", "a long draft")
    second()
    until_written(page, "a long draft")
    page.type("composer", "b" + Keys.BACKSPACE)
    first()
    page.driver.refresh()
    until_written(page, "a long draft")
    page.type("composer", Keys.ENTER)
    eventually(lambda: said(server, "a")[1:] == ["a long draft"], "the messages at the server")
    second()
    until_written(page, "")


def test_letters_of_another_window_that_come_at_once_are_all_shown(page):
    page.script("""for (const [before, now] of [[null, 'o'], ['o', 'of'], ['of', 'of b']])
                     dispatchEvent(new StorageEvent('storage', {key: 'draft:a', oldValue: before, newValue: now}));""")
    until_written(page, "of b")


def test_the_draft_of_another_window_is_not_removed(page, two):
    first, second = two
    second()
    page.type("composer", "of the second")
    first()
    until_written(page, "of the second")
    page.script("localStorage.setItem('draft:a', 'of a third')")  # only other windows hear of it
    page.type("composer", Keys.CONTROL + "a" + Keys.NULL + Keys.DELETE)
    until_written(page, "")
    second()
    until_written(page, "of a third")


def test_two_windows_keep_both_of_their_messages(page, two):
    first, second = two
    for turn_to, words in ((first, "kept by the first"), (second, "kept by the second")):
        turn_to()
        hold(page, MESSAGES)
        page.say(words)
        until_held(page)
        let_go(page, None)
        page.until_text("unsent", words)
    for turn_to in (first, second):
        turn_to()
        page.until(lambda: [each.text.split("\n")[0] for each in page.all("unsent")] == ["kept by the first", "kept by the second"])
    page.driver.refresh()
    page.until(lambda: len(page.all("unsent")) == 2)
    page.all("drop-unsent")[0].click()
    first()
    page.until(lambda: [each.text.split("\n")[0] for each in page.all("unsent")] == ["kept by the second"])


# --- a restart, and a reload ------------------------------------------------------------------------------------------

def test_an_edit_of_a_chat_that_is_not_shown_outlives_a_restart(make_server, provider, browse):
    provider.answer_with(lambda request: text("answered"))
    server = make_server(provider)
    server.client.turn("a", "this is a")
    server.client.turn("a", "said next")
    server.client.turn("b", "this is b")
    page = look(browse(server, "/#a", script=HOLD), "a")
    page.type("composer", Keys.ARROW_UP)
    page.type("edit-text", Keys.END + " with a long change")
    look(page, "b")
    port = server.port
    server.stop()
    page.one("offline")
    make_server(provider, home=server.home, arguments=("--port", str(port)))
    page.gone("offline")
    page.open_chat("a")
    page.until(lambda: page.one("edit-text").get_attribute("value") == "said next with a long change", "the edit")


def test_files_that_are_pasted_at_once_make_one_chat(server, page):
    page.press("new-chat")
    page.until(lambda: page.one("welcome"))
    hold(page, "POST /chats$")
    paste(page, "one.png", "image/png")
    paste(page, "two.png", "image/png")
    until_held(page)
    let_go(page)
    page.until(lambda: attached(page) == ["one.png", "two.png"], "both files")
    assert len(server.client.get("/chats").json["chats"]) == 3


def test_the_files_of_a_draft_outlive_a_reload(server, page):
    paste(page, "first.txt")
    page.until(lambda: attached(page) == ["first.txt"])
    paste(page, "next.txt")
    page.until(lambda: attached(page) == ["first.txt", "next.txt"])
    page.type("composer", "look at these")
    page.driver.refresh()
    page.until(lambda: attached(page) == ["first.txt", "next.txt"])
    page.all("attachment")[0].find_elements("css selector", "button")[-1].click()
    page.driver.refresh()
    page.until(lambda: attached(page) == ["next.txt"])
    page.type("composer", Keys.ENTER)
    eventually(lambda: sent_files(server) == ["next.txt"], "the message with its file")
    page.gone("attachment")
    page.driver.refresh()
    page.until_text("user-message", "look at these")
    assert not page.all("attachment")


# --- texts that the page itself writes into the box -------------------------------------------------------------------

def test_an_example_replaces_no_draft(page):
    page.press("new-chat")
    page.all("example")[0].click()
    page.until(lambda: written(page) != "")
    first = written(page)
    page.all("example")[1].click()
    page.until(lambda: written(page) not in ("", first))
    second = written(page)
    page.type("composer", " and my own words")
    page.all("example")[0].click()
    until_written(page, f"{second} and my own words {first}")


def test_a_prompt_is_written_at_the_caret(page):
    page.script("localStorage.setItem('prompts', JSON.stringify([{name: 'mine', text: 'the prompt'}]))")
    page.driver.refresh()
    page.until_text("user-message", "this is a")
    page.type("composer", "before after" + Keys.ARROW_LEFT * 6)
    page.press("open-options")
    page.press("use-prompt")
    until_written(page, "before the prompt after")


def test_dictation_keeps_what_is_typed_meanwhile(make_server, provider, browse):
    provider.audio = Reply([b'{"text": "spoken words"}'], content_type="application/json")
    server = make_server(provider, config={"audio": {"transcription": "test/listens"}})
    page = browse(server, flags=("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"))
    page.type("composer", "start")
    page.press("microphone")
    page.until(lambda: page.one("microphone").get_attribute("data-state") == "recording")
    page.type("composer", " typed meanwhile")
    page.press("microphone")
    until_written(page, "start typed meanwhile spoken words")


# --- what is done while the server is slow, or fails ------------------------------------------------------------------

def to_board(page, chat):
    """The board by the chat's address, as by Back and Forward."""
    page.script("location.hash = arguments[0]", f"#{chat}/board")
    page.until(lambda: page.script("return location.hash") == f"#{chat}/board" and page.all("board"))


def tasks(server, chat):
    return [each["title"] for each in server.client.get(f"/chats/{chat}/tasks").json["tasks"]]


def test_the_board_keeps_the_tasks_of_each_chat_apart(server, page):
    to_board(page, "b")
    page.type("add-task", "of b" + Keys.ENTER)
    eventually(lambda: tasks(server, "b") == ["of b"], "the task")
    to_board(page, "a")
    page.type("add-task", "of a" + Keys.ENTER)
    page.until(lambda: page.all("task"), "the task")
    hold(page, "GET .*/b/tasks$")
    to_board(page, "b")
    until_held(page)
    assert not page.all("task") and not page.all("add-task"), "what b has is not known yet"
    let_go(page, FULL)
    page.until_text("toast", "no space")
    assert not page.all("add-task")
    page.press("read-tasks")
    page.type("add-task", "more of b" + Keys.ENTER)
    eventually(lambda: tasks(server, "b") == ["of b", "more of b"], "both tasks")
    assert tasks(server, "a") == ["of a"]


def test_a_task_that_was_not_taken_stays_typed(server, page):
    to_board(page, "a")
    hold(page, "PATCH .*/tasks$")
    page.type("add-task", "a long task" + Keys.ENTER)
    until_held(page)
    let_go(page, None)
    page.until_text("toast", "cannot be reached")
    assert page.one("add-task").get_attribute("value") == "a long task"
    page.type("add-task", Keys.ENTER)
    eventually(lambda: tasks(server, "a") == ["a long task"], "the task")
    page.until(lambda: page.one("add-task").get_attribute("value") == "")


def test_files_that_could_not_be_read_stay_on_the_board(page):
    paste(page, "first.txt")
    page.until(lambda: attached(page) == ["first.txt"])
    to_board(page, "a")
    page.until_text("chat-file", "first.txt")
    hold(page, "GET .*/files$")
    page.press("remove-file")
    page.press("remove-file-sure")
    until_held(page)
    let_go(page, FULL)
    page.until_text("toast", "no space")
    page.until_text("chat-file", "first.txt")


def test_a_file_that_is_named_is_not_left_out_because_the_files_could_not_be_read(server, page):
    hold(page, "GET .*/files$")
    page.say("look at @old.txt ")
    until_held(page)
    let_go(page, FULL)
    page.until_text("toast", "no space")
    until_written(page, "look at @old.txt ")
    assert said(server, "a") == ["this is a"]


def test_messages_that_wait_are_shown_though_they_could_not_be_read_again(page, waiting):
    look(page, "b")
    hold(page, "GET .*/queue$")
    page.open_chat("a")
    until_held(page)
    let_go(page, FULL)
    page.until_text("toast", "no space")
    assert page.one("queued").get_attribute("value") == "it waits"
    waiting.release()


def test_a_chat_that_is_made_for_files_does_not_replace_the_one_that_is_looked_at(server, page):
    page.press("new-chat")
    page.one("welcome")
    hold(page, "POST /chats$")
    paste(page, "first.txt")
    until_held(page)
    look(page, "b")
    page.type("composer", "for b ")
    let_go(page)
    page.until_text("toast", "New chat")
    page.type("composer", "alone" + Keys.ENTER)
    eventually(lambda: said(server, "b") == ["this is b", "for b alone"], "the message")
    page.press("toast-action")
    page.until(lambda: attached(page) == ["first.txt"])


def test_the_first_message_goes_to_its_own_chat_though_another_one_is_shown(server, page):
    page.press("new-chat")
    page.press("open-options")
    page.type("chat-instructions", "be short")
    page.press("save-options")
    page.gone("chat-options")
    hold(page, "POST /chats$")
    page.say("the first message")
    until_held(page)
    look(page, "b")
    let_go(page)
    eventually(lambda: sorted(sum((said(server, each["id"]) for each in server.client.get("/chats").json["chats"]), [])) == ["the first message", "this is a", "this is b"], "the message")
    assert page.script("return location.hash") == "#b" and written(page) == ""


def test_a_slow_fork_does_not_replace_the_chat_that_is_looked_at(page):
    hold(page, "POST .*/fork$")
    page.press("fork")
    until_held(page)
    look(page, "b")
    let_go(page)
    page.press("toast-action")
    page.until(lambda: page.script("return location.hash") != "#b" and page.all("user-message")[0].text == "this is a", "the fork")


def test_a_removed_branch_is_taken_from_its_own_chat(page):
    page.press("regenerate")
    page.until_text("branch-label", "2/2")
    page.press("tab-branches")
    hold(page, "DELETE ")
    page.press("remove-branch")
    until_held(page)
    look(page, "b")
    let_go(page)
    page.until_text("toast", "moved to the trash")
    assert page.all("user-message")[0].text == "this is b"


def test_a_turn_that_begins_in_another_chat_does_not_move_this_one(server, page):
    for number in range(8):
        server.client.turn("b", f"more {number} " + "of b\n" * 30)
    hold(page, "POST .*/regenerate$")
    page.press("regenerate")
    until_held(page)
    look_at = "return document.querySelector('.turns').scrollTop"
    page.open_chat("b")
    page.until(lambda: page.script(look_at) > 500, "the end of b")
    page.script("document.querySelector('.turns').scrollTop = 0")
    page.until_text("user-message", "this is b")
    let_go(page)
    eventually(lambda: len(server.client.get("/chats/a?branches=all").json["interactions"]) == 2, "the other answer")
    # The view would move with the next frames.
    page.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(arguments[0])))")
    assert page.script(look_at) == 0


def test_a_title_that_was_refused_stays_typed(server, page):
    page.press("title")
    hold(page, "PATCH ")
    page.type("title-input", "carefully chosen", clear=True)
    page.type("title-input", Keys.ENTER)
    until_held(page)
    let_go(page, FULL)
    page.until_text("toast", "no space")
    assert page.one("title-input").get_attribute("value") == "carefully chosen"
    page.type("title-input", Keys.ENTER)
    page.until_text("title", "carefully chosen")


# --- keys of an input method, other windows, and a browser without room -----------------------------------------------

def compose(page, words, key, code):
    """Letters that an input method holds, and a key for it. Returns what the field has then."""
    page.driver.execute_cdp_cmd("Input.imeSetComposition", {"text": words, "selectionStart": len(words), "selectionEnd": len(words)})
    for kind in ("rawKeyDown", "keyUp"):
        page.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code})
    taken = page.script("return document.activeElement?.value")
    page.driver.execute_cdp_cmd("Input.insertText", {"text": words})  # ends the word
    return taken


def test_the_keys_of_an_input_method_do_nothing_else(page):
    page.press("edit-message")
    page.type("edit-text", " changed ")
    assert compose(page, "にほん", "Escape", 27) == "this is a changed にほん"
    page.type("edit-text", Keys.ESCAPE)
    page.gone("edit-text")
    page.press("title")
    page.type("title-input", Keys.CONTROL + "a")
    assert compose(page, "にほん", "Enter", 13) == "にほん"
    page.type("title-input", Keys.ESCAPE)
    page.keys(Keys.CONTROL, "k")
    page.one("palette")
    assert compose(page, "new", "Enter", 13) == "new"
    assert page.all("palette") and page.script("return location.hash") == "#a"


def test_the_key_that_ends_a_word_in_safari_sends_nothing(server, page):
    page.type("composer", "half a sentence")
    page.script("""arguments[0].dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', keyCode: 229, bubbles: true, cancelable: true}))""", page.one("composer"))
    page.type("composer", " and the rest" + Keys.ENTER)
    eventually(lambda: said(server, "a")[1:] == ["half a sentence and the rest"], "the message, whole")


def test_two_windows_keep_both_of_their_prompts(page, two):
    for turn_to, name in zip(two, ("of the first", "of the second")):
        turn_to()
        page.press("open-options")
        page.type("prompt-name", name)
        page.type("prompt-text", "words")
        page.press("save-prompt")
    for turn_to in two:
        turn_to()
        page.until(lambda: [each.text for each in page.all("use-prompt")] == ["of the first", "of the second"])


def test_a_prompt_that_is_being_written_outlives_the_dialog(page):
    page.press("open-options")
    page.type("prompt-name", "mine")
    page.type("prompt-text", "a long prompt")
    page.press("save-options")
    page.gone("chat-options")
    page.press("open-options")
    assert [page.one(each).get_attribute("value") for each in ("prompt-name", "prompt-text")] == ["mine", "a long prompt"]


def test_people_write_on_though_the_browser_has_no_room(server, page):
    page.script("for (const n of [1 << 20, 1000, 1]) try { for (let i = 0; ; i++) localStorage.setItem(`fill${n}/${i}`, 'x'.repeat(n)) } catch {}")
    page.type("composer", "written ")
    page.until_text("toast", "no more room")
    look(page, "b")
    look(page, "a")
    until_written(page, "written ")
    refused(page, "on")
    page.type("composer", "the next")
    let_go(page, FULL)
    page.until_text("unsent", "written on")
    paste(page, "first.txt")
    page.until(lambda: attached(page) == ["first.txt"])
    page.press("send-again")
    page.gone("unsent")
    page.type("composer", Keys.ENTER)
    eventually(lambda: said(server, "a")[1:] == ["written on", "the next"], "the messages")
    page.until(lambda: written(page) == "")
