"""A person's way through the page in each engine: Chromium, Firefox and WebKit. All other tests of the page use Chromium alone.

`scripts/deps browsers` installs the other two; without them their part is skipped. docs/page.md names what could not be driven in them."""
import pytest
from support.browser import Browser, Keys
from support.firefox import Firefox
from support.provider import Gate, call, text, tools
from support.webkit import WebKit
from test_page import TOKEN, guarded, log_in

pytestmark = pytest.mark.limit(120)


@pytest.fixture(params=[Browser, Firefox, WebKit], ids=["chromium", "firefox", "webkit"])
def browser(request):
    return request.param


def idle(page):
    page.until(lambda: page.one("turns").get_attribute("aria-busy") == "false", "the end of the turn")


def said(page):
    return [each.text for each in page.all("user-message")]


def test_it_is_opened_with_a_token_and_answers_as_the_words_come(make_server, provider, browse, tmp_path):
    server = guarded(make_server, provider, tmp_path)
    page = browse(server)
    page.type("token", "wrong")
    page.press("log-in")
    page.until_text("login", "does not accept that token")
    log_in(page)
    gate = Gate()
    provider.plan(text("# Plan\n\nfirst **bold** ", gate, "and `the rest`, with $x^2$\n\n```python\ndef f(): return 'x'\n```\n"))
    page.say("hello there")
    page.until_text("answer", "first bold")
    assert page.one("turns").get_attribute("aria-busy") == "true" and page.one("chat-item").get_attribute("data-status") == "running"
    gate.release()
    idle(page)
    page.until(lambda: page.css(".code .hljs-keyword"), "coloured code")
    page.until(lambda: page.css(".markdown math"), "the formula")
    assert page.text("answer").startswith("Plan") and said(page) == ["hello there"]
    page.driver.refresh()
    page.until_text("answer", "and the rest")
    assert TOKEN not in str(page.script("return [document.cookie, {...localStorage}.pageKey ?? '']"))


def test_a_call_is_approved_and_denied_by_key(server, provider, browse):
    page = browse(server)
    for name, key, words in (("yes.txt", "a", "written"), ("no.txt", "d", "not written")):
        provider.plan(tools(call("write_file", {"path": name, "content": "one\n"})), text(words))
        page.say(f"write {name}")
        card = page.one("approval-card")
        drawn = page.script("return performance.now()")
        page.until(lambda drawn=drawn: page.script("return performance.now()") > drawn + 600, "a moment for the card")
        page.script("arguments[0].focus()", card)
        page.keys(key)
        page.until_text("answer", words)
        idle(page)
    assert (server.home.workspace / "yes.txt").read_text() == "one\n" and not (server.home.workspace / "no.txt").exists()


def test_an_earlier_message_is_edited(server, provider, browse):
    page = browse(server)
    for n in ("one", "two"):
        provider.plan(text(f"answer {n}"))
        page.say(f"question {n}")
        page.until_text("answer", f"answer {n}")
        idle(page)
    first = page.all("edit-message")[0]
    page.script("arguments[0].scrollIntoView({block: 'center'})", first)
    first.click()
    page.until_text("edit-preview", "2 turns will be superseded")
    page.type("edit-text", "question other", clear=True)
    provider.plan(text("answer other"))
    page.press("edit-run")
    page.until_text("answer", "answer other")
    page.until(lambda: said(page) == ["question other"], "the new branch")
    page.press("branch-prev")
    page.until(lambda: said(page) == ["question one", "question two"], "the old branch")
    page.press("tab-branches")
    page.until(lambda: len(page.css("[data-testid=branch-map] .node")) == 3, "three turns on the map")


def test_a_turn_is_stopped_and_a_message_waits(server, provider, browse):
    page = browse(server)
    gate = Gate()
    provider.plan(text("begin", gate))
    page.say("long")
    page.until_text("answer", "begin")
    page.say("the next one")
    page.one("queue")
    provider.plan(text("now the next"))
    page.press("stop")
    page.one("note-cancelled")
    page.until_text("answer", "now the next")
    idle(page)
    provider.plan(text("half", Gate()))
    page.say("again")
    page.until_text("answer", "half")
    page.keys(Keys.ESCAPE)
    page.until(lambda: [each.get_attribute("data-status") for each in page.all("turn")].count("CANCELLED") == 2, "stopped by key")


def test_something_is_found_in_the_chat_and_in_all_chats(server, provider, browse):
    for n in range(12):
        provider.plan(text(f"paragraph {n}\n\n" + "words " * 300 + ("the needle" if n == 1 else "")))
        server.client.turn("c", f"question {n}")
    page = browse(server, "/#c")
    page.until_text("answer", "paragraph 11")
    page.keys(Keys.CONTROL, "k")
    page.one("palette")
    page.keys("find in")
    page.until(lambda: "Find" in page.all("palette-option")[0].text, "the action")
    page.keys(Keys.ENTER)
    page.type("find-words", "needle")
    page.until_text("find-count", "1 of 1", limit=60)
    page.until(lambda: "needle" in "".join(each.text for each in page.all("answer")), "the hit")
    page.type("search", "needle")
    page.until_text("hits", "needle")


def test_settings_are_kept_and_light_is_changed_to_dark(server, browse):
    page = browse(server, "/#/settings")

    def is_dark():
        return sum(page.script("return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")[:3]) < 3 * 128

    for theme, dark in (("dark", True), ("light", False), ("dark", True)):
        choose(page, "theme", theme)
        page.until(lambda dark=dark: is_dark() == dark, theme)
    page.driver.refresh()
    page.one("settings")
    assert is_dark(), "the choice is kept"


def choose(page, name, value):
    """As the browser itself draws the list: by its keys, which leave the change to it."""
    page.one(name)
    page.script("const [e, value] = arguments; e.value = value; e.dispatchEvent(new Event('change', {bubbles: true}))", page.one(name), value)


def test_files_are_attached_and_pasted(server, provider, browse, tmp_path):
    (tmp_path / "notes.txt").write_text("the words of the notes")
    page = browse(server)
    page.one("composer")
    page.all("file")[0].send_keys(str(tmp_path / "notes.txt"))
    page.until_text("attachments", "notes.txt")
    page.script("const e = document.createElement('textarea'); e.id = 'long'; e.value = 'x'.repeat(30000); document.body.append(e); e.select();")
    page.keys(Keys.CONTROL, "c")
    page.script("document.getElementById('long').remove(); arguments[0].focus()", page.one("composer"))
    page.keys(Keys.CONTROL, "v")
    page.until_text("attachments", "pasted.txt")
    provider.plan(text("read"))
    page.say("look at these")
    page.until_text("answer", "read")
    chat = server.client.get("/chats").json["chats"][0]["id"]
    assert [each["filename"] for each in server.client.interaction(chat, "int_001")["attachments"]] == ["notes.txt", "pasted.txt"]
    assert "the words of the notes" in str(provider.requests[-1].body)


def test_a_reload_in_the_midst_loses_nothing(server, provider, browse):
    gate = Gate()
    provider.plan(text(*[f"word{n} " for n in range(100)], gate, "the end"))
    page = browse(server)
    page.say("go")
    page.until_text("answer", "word99")
    page.type("composer", "half a thou")
    page.driver.refresh()
    page.until(lambda: page.text("answer").split()[:100] == [f"word{n}" for n in range(100)], "all that was said before")
    page.until(lambda: page.one("composer").get_attribute("value") == "half a thou", "the draft")
    gate.release()
    idle(page)
    assert page.text("answer").split() == [*[f"word{n}" for n in range(100)], "the", "end"]


def test_a_phone_has_all_of_it_in_its_width(server, provider, browse):
    provider.plan(text("| a | b | c |\n|---|---|---|\n" + "| a long cell of words " * 3 + "|\n\n```\n" + "code " * 60 + "\n```\n" + "averyveryverylongword" * 20))
    server.client.turn("c", "show")
    page = browse(server, "/#c", size=(390, 800))
    page.until_text("answer", "averyvery")

    def fits():
        return page.script("return document.documentElement.scrollWidth <= innerWidth")

    for view in ("chat", "inbox", "board", "branches", "trace", "settings"):
        page.press(f"tab-{view}")
        page.until(fits, f"{view} in the width")
    page.press("menu")
    page.open_chat("c")
    page.until(lambda: not page.one("tab-settings").get_attribute("aria-current"), "the chat")
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "one " * 100})), text("written"))
    page.press("tab-chat")
    page.say("write")
    page.one("approval-card")
    assert fits()
    page.press("approve")
    page.until_text("answer", "written")


def test_it_goes_on_by_itself_when_the_server_is_back(make_server, provider, browse):
    server, gate = make_server(provider), Gate()
    provider.plan(text("before ", gate))
    page = browse(server)
    page.say("hello")
    page.until_text("answer", "before")
    port = server.port
    server.kill()
    page.one("offline")
    page.type("composer", "written meanwhile")
    make_server(provider, home=server.home, arguments=("--port", str(port)))
    page.gone("offline")
    page.until(lambda: page.one("turn").get_attribute("data-status") == "FAILED", "the interrupted turn")
    assert page.one("composer").get_attribute("value") == "written meanwhile"
    provider.plan(text("and after"))
    page.press("resume")
    page.until_text("answer", "and after")
