"""The page while its chats go on without it: what people are writing is neither lost, nor changed, nor sent to another chat."""
import base64
import shutil
import subprocess

import pytest
from support.browser import Keys
from support.provider import Gate, call, text, tools
from support.timing import eventually

pytestmark = pytest.mark.limit(120)


def said(server, chat):
    return [each["user_message"] for each in server.client.get(f"/chats/{chat}").json["interactions"]]


def written(page, name="composer"):
    return page.one(name).get_attribute("value")


def delete(server, chat):
    server.client.request("DELETE", f"/chats/{chat}").expect(200)


def approve(server, approved=True):
    asked = server.client.get("/approvals").json["approvals"][0]
    server.client.post(f"/approvals/{asked['approval_id']}", {"approved": approved, "arguments_digest": asked["arguments_digest"]}).expect(200)


@pytest.fixture
def page(server, provider, browse):
    """A window on chat a."""
    provider.answer_with(lambda request: text("answered"))
    server.client.turn("a", "this is a")
    page = browse(server, "/#a")
    page.until_text("answer", "answered")
    return page


# --- a chat that is gone ----------------------------------------------------------------------------------------------

def test_a_chat_that_is_deleted_elsewhere_does_not_send_its_draft_to_another(server, provider, page):
    page.type("composer", "never delete ")
    delete(server, "a")
    page.until_text("toast", "“this is a” was deleted")
    page.until_text("no-such-chat", "There is no chat a here")
    asked = len(provider.requests)
    page.keys("the backups")  # the focus is where it was
    page.keys(Keys.ENTER)
    page.until_text("toast", "There is no chat a here")
    assert written(page) == "never delete the backups" and not page.one("send").is_enabled()
    assert len(provider.requests) == asked and server.client.get("/chats").json["chats"] == []
    page.driver.refresh()
    page.until_text("no-such-chat", "There is no chat a here")
    assert written(page) == "never delete the backups"
    page.press("begin-instead")
    page.one("welcome")
    page.until(lambda: written(page) == "never delete the backups", "the draft, in a new chat")
    page.type("composer", Keys.ENTER)
    page.until_text("answer", "answered")
    assert [each["id"] for each in server.client.get("/chats").json["chats"]] != ["a"]
    assert page.script("return localStorage.getItem('draft:a')") is None


def test_a_kept_message_of_a_chat_that_is_gone_goes_into_a_new_one(server, provider, page):
    page.script("window.plain = window.fetch; window.fetch = (to, how) => how?.method === 'POST' ? Promise.reject(new TypeError('failed')) : plain(to, how)")
    page.say("never delete the backups")
    page.until_text("unsent", "never delete the backups")
    page.script("window.fetch = window.plain")
    page.type("composer", "and the logs")
    delete(server, "a")
    page.until_text("no-such-chat", "There is no chat a here")
    page.until_text("unsent", "never delete the backups")
    assert not page.all("send-again"), "it would begin another chat of this name"
    page.press("begin-instead")  # beside the note that the chat was deleted
    page.until(lambda: written(page) == "never delete the backups\n\nand the logs", "both, in a new chat")
    page.type("composer", Keys.ENTER)
    page.until_text("answer", "answered")
    assert [each["id"] for each in server.client.get("/chats").json["chats"]] != ["a"]
    assert page.script("return [localStorage.getItem('draft:a'), localStorage.getItem('unsent:a')]") == [None, None]


def test_no_file_is_attached_to_a_chat_that_is_gone(server, page, tmp_path):
    delete(server, "a")
    page.one("no-such-chat")
    (tmp_path / "notes.txt").write_text("x")
    page.css("[data-testid=file]")[0].send_keys(str(tmp_path / "notes.txt"))
    page.until_text("toast", "There is no chat a here")
    assert not page.all("attachment") and server.client.get("/chats").json["chats"] == []


def test_a_chat_that_is_put_back_is_shown_again(server, page):
    page.type("composer", "a draft")
    delete(server, "a")
    page.one("no-such-chat")
    server.client.post(f"/trash/{server.client.get('/trash').json['entries'][0]['id']}/restore", {}).expect(200)
    page.until_text("answer", "answered")
    page.gone("no-such-chat")
    assert written(page) == "a draft"
    page.type("composer", Keys.ENTER)
    eventually(lambda: said(server, "a") == ["this is a", "a draft"], "the messages at the server")
    eventually(lambda: server.client.get("/chats/a").json["interactions"][-1]["status"] == "COMPLETED", "the end of the turn")
    server.client.turn("a", "from elsewhere")
    page.until_text("user-message", "from elsewhere")


def test_a_chat_that_is_deleted_here_leads_to_a_new_one(server, page):
    page.one("chat-item[data-chat='a']").find_element("css selector", "[data-testid=chat-menu]").click()
    page.press("chat-delete")
    page.one("welcome")
    page.until_text("toast", "was deleted")
    assert not page.all("no-such-chat")


def test_a_restore_whose_name_is_taken_says_what_to_do(server, page):
    delete(server, "a")
    server.client.turn("a", "another of this name")
    page.press("open-trash")
    page.press("restore")
    page.until_text("toast", "stays in the trash")
    page.until_text("toast", "restore this one again")


# --- a chat that goes on ----------------------------------------------------------------------------------------------

def test_the_preview_of_an_edit_follows_the_chat(server, page):
    page.press("edit-message")
    page.until_text("edit-preview", "1 turn will")
    server.client.turn("a", "from elsewhere")
    page.until_text("edit-preview", "2 turns will")
    page.type("edit-text", " edited")
    page.press("edit-run")
    eventually(lambda: said(server, "a") == ["this is a edited"], "the new branch")


def test_an_edit_that_would_supersede_more_than_was_seen_is_shown_first(server, page):
    page.press("edit-message")
    page.until_text("edit-preview", "1 turn will")
    # The next preview is as if another client had been faster than the feed.
    page.script("""const ask = window.fetch; let first = true;
        window.fetch = async (path, how) => {
          const is = first && /\\/edit$/.test(path), answer = await ask(path, how);
          if (!is) return answer;
          first = false;
          const found = await answer.json();
          return new Response(JSON.stringify({...found, superseded: [...found.superseded, "int_002"]}), {status: 200});
        };""")
    page.type("edit-text", " edited")
    page.press("edit-run")
    page.until_text("toast", "The chat has moved on")
    page.until_text("edit-preview", "2 turns will")
    assert said(server, "a") == ["this is a"]


def test_an_edit_in_a_chat_that_is_at_work_names_the_next_step(server, provider, page):
    gate = Gate()
    provider.plan(text("slow ", gate, "answer"))
    page.say("a slow one")
    page.until_text("answer", "slow")
    page.css("[data-testid=edit-message]")[0].click()
    page.type("edit-text", " edited")
    page.press("edit-run")
    page.until_text("toast", "Wait until it is done, or stop it first")
    assert written(page, "edit-text") == "this is a edited"
    gate.release()
    page.until_text("edit-preview", "2 turns will")


# --- words that are not sent yet --------------------------------------------------------------------------------------

def test_a_queued_message_keeps_its_lines(server, provider, page):
    gate = Gate()
    provider.plan(text("slow ", gate, "answer"))
    page.say("a slow one")
    page.until_text("answer", "slow")
    page.type("composer", "one")
    page.keys(Keys.SHIFT, Keys.ENTER)
    page.say("  two")
    box = page.one("queued")
    assert box.get_attribute("value") == "one\n  two" and box.rect["height"] > 40
    box.send_keys(Keys.CONTROL, Keys.END)
    box.send_keys(Keys.SHIFT, Keys.ENTER)
    box.send_keys("three" + Keys.ENTER)
    eventually(lambda: server.client.get("/chats/a/queue").json["queue"][0]["user_message"] == "one\n  two\nthree", "the change")
    gate.release()


def test_a_step_of_several_lines_is_not_changed_by_looking_at_it(server, page):
    server.client.request("PATCH", "/chats/a/tasks", {"plan": ["look\nand leap", "rest"]}).expect(200)
    page.press("tab-board")
    step = page.until(lambda: page.css("[data-testid=plan] textarea")[0], "the plan")
    assert step.get_attribute("value") == "look\nand leap"
    step.click()
    page.css("[data-testid=plan] textarea")[1].send_keys(" well" + Keys.ENTER)
    eventually(lambda: server.client.get("/chats/a/tasks").json["plan"] == ["look\nand leap", "rest well"], "the plan at the server")


def test_an_edit_outlives_the_page(server, page):
    page.press("edit-message")
    page.type("edit-text", " and new words")
    page.driver.refresh()
    page.until_text("answer", "answered")
    page.press("edit-message")
    assert written(page, "edit-text") == "this is a and new words"
    page.press("edit-run")
    eventually(lambda: said(server, "a") == ["this is a and new words"], "the new branch")
    page.gone("edit-text")
    page.until(lambda: page.script("return localStorage.getItem('words')") is None, "nothing to be kept")


@pytest.fixture
def asked(provider, page):
    """A call of chat a that waits."""
    provider.plan(tools(call("write_file", {"path": "f.txt", "content": "one\r\ntwo\r\n"})), text("written"))
    page.say("write it")
    page.one("approval-card")
    return page


def test_words_for_a_call_outlive_the_page_and_go_with_the_answer(server, asked):
    asked.type("feedback", "use a better name")
    asked.driver.refresh()
    asked.one("approval-card")
    assert written(asked, "feedback") == "use a better name"
    asked.press("deny")
    asked.until_text("answer", "written")
    assert written(asked) == "" and asked.script("return localStorage.getItem('words')") is None
    assert "use a better name" in str(server.client.get("/chats/a").json)


def test_words_for_a_call_that_is_answered_elsewhere_go_to_the_box(server, asked):
    asked.type("composer", "a draft")
    asked.type("feedback", "use a better name")
    approve(server)
    asked.until_text("toast", "no longer waits")
    asked.until(lambda: written(asked) == "a draft\nuse a better name", "the words, in the box")


def test_words_for_a_call_that_is_answered_while_the_page_is_closed_go_to_the_box(server, asked):
    asked.type("feedback", "use a better name")
    asked.open("/worker.js")
    approve(server)
    asked.open("/#a")
    asked.until(lambda: written(asked) == "use a better name", "the words, in the box")


def test_edited_arguments_outlive_the_page_and_keep_their_line_breaks(server, asked):
    asked.press("edit-arguments")
    field = "[data-testid=approval-card] .form textarea"
    area = asked.until(lambda: asked.css(field)[0], "the field")
    area.send_keys(Keys.CONTROL, Keys.END)
    area.send_keys("three")
    asked.driver.refresh()
    area = asked.until(lambda: asked.css(field)[0], "the field")
    assert area.get_attribute("value") == "one\ntwo\nthree"
    asked.press("approve")
    asked.until_text("answer", "written")
    assert (server.home.workspace / "f.txt").read_bytes() == b"one\r\ntwo\r\nthree"


def test_an_answer_that_is_being_written_outlives_the_page(provider, page):
    provider.plan(tools(call("ask_human", {"question": "Which colour?"})), text("painted"))
    page.say("paint it")
    page.type("input-text", "a dark ")
    page.driver.refresh()
    page.type("input-text", Keys.END + "red")
    page.press("input-send")
    page.until_text("answer", "painted")
    page.until_text("answer-given", "a dark red")


# --- on paper ---------------------------------------------------------------------------------------------------------

@pytest.mark.skipif(not shutil.which("pdftotext"), reason="poppler-utils is not installed")
def test_all_of_a_chat_is_printed_and_the_place_stays(server, provider, browse, tmp_path):
    provider.answer_with(lambda request: text(f"reply to {request.conversation[-1]['content']}"))
    for i in range(30):
        server.client.turn("long", f"question {i}.")
    page = browse(server, "/#long")
    page.until_text("answer", "reply to question 29.")
    assert not any("question 3." in each.text for each in page.all("answer")), "only what is near the window is drawn"
    (tmp_path / "page.pdf").write_bytes(base64.b64decode(page.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]))
    printed = subprocess.run(["pdftotext", str(tmp_path / "page.pdf"), "-"], capture_output=True, text=True, check=True).stdout
    assert all(f"reply to question {i}." in printed for i in range(30))
    assert "Write a message" not in printed and "Export" not in printed
    page.until(lambda: not any("question 3." in each.text for each in page.all("answer")), "the rows near the window alone")
    assert "reply to question 29." in page.all("answer")[-1].text and not page.all("jump")


def test_a_part_of_a_chat_is_printed_as_such(server, provider, browse):
    provider.answer_with(lambda request: text("ok"))
    for i in range(62):
        server.client.turn("long", f"question {i}.")
    page = browse(server, "/#long")
    page.until_text("user-message", "question 61.")
    assert page.css(".only-print")[0].get_attribute("textContent").startswith("This is a part of the chat")
