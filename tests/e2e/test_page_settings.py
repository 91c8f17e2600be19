"""The page: a chat's settings (model, approval mode) and its cost."""
import pytest
from support.browser import Keys
from support.mcp_oauth import AuthorizationServer, ProtectedServer, open_page
from support.provider import DONE, Gate, Reply, call, delta, sse, text, tools

pytestmark = pytest.mark.limit(90)


def choose_model(page, name):
    page.press("model")
    page.type("model-search", name)
    page.until(lambda: name in page.all("model-option")[0].text if name else len(page.all("model-option")) > 1, "the models")
    page.type("model-search", Keys.ENTER)


def choose(page, value):
    page.press("mode")
    page.press(f"mode-option[data-value='{value}']")
    if value == "approve_all":
        page.press("mode-confirm")


def chat_of(server, chat):
    return next(c for c in server.client.get("/chats").json["chats"] if c["id"] == chat)


def test_the_mode_of_a_chat_is_chosen_and_told_to_other_windows(server, provider, browse):
    provider.plan(text("hello"))
    server.client.turn("c", "hi")
    page, other = browse(server), browse(server)
    for window in (page, other):
        window.open_chat("c")
        window.until_text("answer", "hello")
        assert window.one("mode").get_attribute("value") == "" and "Ask" in window.one("mode").text
    choose(page, "approve_all")
    other.until(lambda: other.one("mode").get_attribute("value") == "approve_all", "the mode in the other window")
    assert chat_of(server, "c")["approval_mode"] == "approve_all" and page.one("mode").get_attribute("data-mode") == "approve_all"
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"})), text("written"))
    page.say("write")
    page.until_text("answer", "written")
    assert not page.all("approval-card") and (server.home.workspace / "a.txt").exists()
    # Another chat has the server's mode.
    page.press("new-chat")
    page.until(lambda: page.one("mode").get_attribute("value") == "", "the server's mode")
    page.open_chat("c")
    page.until(lambda: page.one("mode").get_attribute("value") == "approve_all", "the chat's mode")
    choose(page, "")
    other.until(lambda: other.one("mode").get_attribute("value") == "", "the end of the mode")
    assert "approval_mode" not in chat_of(server, "c")


def test_a_mode_changed_while_the_agent_works_holds_from_its_next_call(server, provider, browse):
    gate = Gate()
    provider.plan(Reply([gate, *tools(call("write_file", {"path": "a.txt", "content": "x"})).steps]), text("refused"))
    page = browse(server)
    page.say("write")
    gate.wait_reached()
    page.until(lambda: page.one("chat-item").get_attribute("data-status") == "running")
    choose(page, "deny_all")
    page.until(lambda: chat_of(server, page.one("chat-item").get_attribute("data-chat")).get("approval_mode") == "deny_all")
    gate.release()
    page.until_text("answer", "refused")
    assert not page.all("approval-card") and not (server.home.workspace / "a.txt").exists()


def test_what_is_chosen_before_the_first_message_holds_for_it(server, provider, browse):
    page = browse(server)
    choose_model(page, "offline")
    choose(page, "deny_all")
    page.say("write a.txt: x")
    page.until_text("answer", "refuses")
    chat = server.client.get("/chats").json["chats"][0]
    assert (chat["chosen_model"], chat["approval_mode"], chat["title"]) == ("offline", "deny_all", "write a.txt: x")
    # The choice is kept, also after a reload.
    page.open("/")
    page.open_chat(chat["id"])
    page.until(lambda: "offline" in page.text("model"), "the chosen model")
    page.say("echo again")
    page.until_text("answer", "again")
    assert len(provider.requests) == 0
    choose_model(page, "")
    page.until(lambda: "chosen_model" not in chat_of(server, chat["id"]), "the default model")


def test_a_server_that_refuses_lets_no_chat_have_another_mode(make_server, provider, browse):
    page = browse(make_server(provider, config={"approval_mode": "deny_all"}))
    page.until(lambda: not page.one("mode").is_enabled(), "a disabled choice")


PRICED = {"models": {"test/scripted": {"input_price_per_mtok": 1000, "output_price_per_mtok": 2000, "cache_read_price_per_mtok": 100}}}


def used(words, prompt, completion, cached):
    tokens = {"prompt_tokens": prompt, "completion_tokens": completion, "prompt_tokens_details": {"cached_tokens": cached}}
    return Reply([delta({"content": words}), delta({}, "stop"), sse({"id": "1", "object": "chat.completion.chunk", "choices": [], "usage": tokens}), DONE])


def test_a_turn_and_a_chat_have_their_cost(make_server, provider, browse):
    server = make_server(provider, config=PRICED)
    provider.plan(used("one", 11, 7, 0), used("two", 1011, 0, 1000))
    page = browse(server)
    page.say("first")
    page.until_text("turn-cost", "0.025")
    page.until_text("cost", "0.025")
    page.say("second")
    page.until(lambda: [each.text for each in page.all("turn-cost")] == ["costs 0.025", "costs 0.11"], "the cost of the second turn")
    page.until_text("cost", "0.14")


def test_without_a_price_no_cost_is_shown(server, provider, browse):
    provider.plan(text("one"))
    page = browse(server)
    page.say("first")
    page.until_text("meter", "tokens")
    page.until_text("turn-usage", "tokens")
    assert not page.all("turn-cost") and not page.all("cost")


def test_a_person_logs_in_at_an_mcp_server(make_server, provider, browse):
    authorization = AuthorizationServer()
    mcp = ProtectedServer(authorization)
    try:
        server = make_server(provider, config={"mcpServers": {"tickets": {"url": mcp.address, "auth": {"type": "oauth"}}}})
        page = browse(server)
        page.press("tab-settings")
        page.until_text("servers", "failed", 20)
        page.script("window.open = (url) => { window.opened = url; }")
        page.press("server-login")
        page.until(lambda: page.script("return window.opened"), "the page to be opened")
        open_page(page.script("return window.opened"))
        page.until_text("servers", "ready", 20)
        assert len(authorization.asked("/authorize")) == 1 and not page.all("server-login")
        page.press("server-logout")
        page.until_text("servers", "failed", 20)
        assert page.one("server-login")
    finally:
        mcp.close()
        authorization.close()


@pytest.mark.parametrize("language", ["en", "he"])
@pytest.mark.parametrize("width", [1280, 1700, 500])
def test_everything_in_the_settings_stands_in_one_column(server, browse, language, width):
    page = browse(server, size=(width, 900))
    page.script("localStorage.setItem('language', arguments[0])", language)
    page.open("/#/settings")
    page.driver.refresh()
    page.until(lambda: page.all("add-provider") and page.all("tools"), "all of it")
    edges = page.script("""const from = (e) => Math.round(document.dir === 'rtl' ? innerWidth - e.getBoundingClientRect().right : e.getBoundingClientRect().left);
      return [...document.querySelectorAll('[data-testid=settings] > :not(dialog)')].filter((e) => e.getBoundingClientRect().width > 0).map((e) => [from(e), e.outerHTML.slice(0, 80)]);""")
    assert len(edges) > 10 and max(at for at, _ in edges) - min(at for at, _ in edges) <= 1, edges
    assert page.script("return document.querySelector('[data-testid=settings]').scrollWidth <= document.querySelector('[data-testid=settings]').clientWidth")


def test_a_small_phone_has_room_for_what_waits(server, provider, browse):
    provider.plan(tools(*[call("run_shell", {"command": f"echo {n}"}, f"call_{n}") for n in range(6)]), text("done"))
    page = browse(server)
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False})
    page.say("many calls")
    page.until(lambda: len(page.all("approval-card")) == 6, "the cards")
    page.until(lambda: page.css(".turns")[0].rect["height"] >= 400, "room")
    command = page.css("[data-testid=approval-card] dd pre")[0]
    page.until(lambda: page.script("const list = document.querySelector('.turns').getBoundingClientRect(), box = arguments[0].getBoundingClientRect(); return box.top >= list.top && box.bottom <= list.bottom", command),
               "the first command")
    assert page.script("const e = document.querySelector('[data-testid=answer-all] .grow'); return e.getBoundingClientRect().height") <= 30, "one line"
    model = page.css("[data-testid=model] .title")[0]
    assert model.text == "scripted" and page.script("return arguments[0].scrollWidth <= arguments[0].clientWidth", model), "the model can be read"
    assert page.script("return document.scrollingElement.scrollWidth <= innerWidth")
    page.press("deny-all")
    page.until_text("answer", "done")


@pytest.mark.parametrize("language", ["en", "he"])
@pytest.mark.parametrize("width", [500, 1280])
def test_a_list_of_choices_is_the_pages_own(server, browse, language, width):
    page = browse(server, size=(width, 800))
    page.script("localStorage.setItem('language', arguments[0])", language)
    page.open("/#/settings")
    page.driver.refresh()
    page.one("default-mode")
    # Drawn by the page and inside its window; by a pointer or by keys, and a letter typed in it is no command.
    page.script("document.querySelector('[data-testid=default-mode]').focus()")
    page.keys(Keys.ARROW_DOWN)
    boxes = page.until(lambda: (found := page.script("return [...document.querySelectorAll('[data-testid=default-mode] option')].map((e) => { const b = e.getBoundingClientRect(); "
                                                     "return [b.left, b.right, b.top, b.bottom]; })")) and all(each[1] > each[0] for each in found) and found, "the list")
    assert all(each[0] >= 0 and each[1] <= width and each[2] >= 0 and each[3] <= 800 for each in boxes), boxes
    assert page.script("return getComputedStyle(document.querySelector('[data-testid=default-mode] option')).direction") == ("rtl" if language == "he" else "ltr")
    page.keys("?")
    assert not page.css("dialog[open]")
    page.keys(Keys.ESCAPE)
    page.until(lambda: page.script("return document.activeElement.dataset.testid") == "default-mode", "the focus on it again")
    assert page.one("default-mode").get_attribute("value") == "" and page.script("return localStorage.getItem('newChats')") is None
    page.keys(Keys.ARROW_DOWN)
    page.keys(Keys.ARROW_DOWN)
    page.keys(Keys.ENTER)
    page.until(lambda: "ask" in (page.script("return localStorage.getItem('newChats')") or ""), "the choice")
