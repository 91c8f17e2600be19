"""The page while something fails, or happens in another chat or tab: nothing is told that is not known, and nothing goes to another chat."""
from support.browser import Keys
from support.provider import call, text, tools

# Requests whose method and address match the pattern fail as they do without a network.
FAILING = """
window.failing = null;
const plain = window.fetch;
window.fetch = (to, how) => window.failing && new RegExp(window.failing).test(`${how?.method ?? "GET"} ${to}`) ? Promise.reject(new TypeError("failed")) : plain(to, how);
"""


def fail(page, pattern):
    page.script("window.failing = arguments[0]", pattern)


def test_options_are_saved_for_the_chat_they_were_opened_for(server, provider, browse):
    provider.answer_with(lambda request: text("ok"))
    for chat in ("alpha", "beta"):
        server.client.turn(chat, "hello")
    page = browse(server, script=FAILING)
    page.open_chat("alpha")
    page.until_text("answer", "ok")
    page.press("open-options")
    page.type("chat-instructions", "for alpha only")
    page.keys(Keys.ALT, Keys.ARROW_DOWN)
    page.keys(Keys.ALT, Keys.ARROW_UP)
    fail(page, "^PATCH ")
    page.press("save-options")
    page.until_text("toast", "cannot be reached")
    assert page.one("chat-instructions").get_attribute("value") == "for alpha only", "what could not be saved stays"
    fail(page, None)
    page.press("save-options")
    page.gone("chat-options")
    said = {each["id"]: each.get("instructions", "") for each in server.client.get("/chats").json["chats"]}
    assert said == {"alpha": "for alpha only", "beta": ""}


def test_a_selection_that_ends_outside_does_not_close_a_dialog(server, provider, browse):
    provider.answer_with(lambda request: text("ok"))
    page = browse(server)
    page.say("hello")
    page.until_text("answer", "ok")
    page.press("open-options")
    page.type("chat-instructions", "a long text")
    box = page.one("chat-instructions").rect
    for kind, x, y in (("mousePressed", box["x"] + 60, box["y"] + 15), ("mouseMoved", 5, 5), ("mouseReleased", 5, 5)):
        page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})
    assert page.one("chat-instructions").get_attribute("value") == "a long text"
    for kind in ("mousePressed", "mouseReleased"):
        page.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": 5, "y": 5, "button": "left", "clickCount": 1})
    page.gone("chat-options")


def test_chats_that_could_not_be_read_are_asked_for_again(server, provider, browse):
    provider.answer_with(lambda request: text("ok"))
    server.client.turn("c", "hello")
    page = browse(server, script="""const real = window.fetch; window.refused = 0;
        window.fetch = (to, how) => /\\/chats\\?/.test(to) && window.refused++ < 2
          ? Promise.resolve(new Response('{"error":{"code":"overloaded","message":"too much to do"}}', {status: 503, headers: {"Content-Type": "application/json"}})) : real(to, how);""")
    page.until_text("toast", "too much to do")
    page.until_text("chat-item", "hello")
    assert page.script("return window.refused") == 3
    page.until_text("model", "scripted")


def test_a_network_that_is_lost_under_a_silent_stream_is_told_of(server, provider, browse):
    provider.answer_with(lambda request: text("ok"))
    page = browse(server, script="for (const name of ['offline', 'online']) addEventListener(name, (e) => e.stopImmediatePropagation(), true)")  # not every system tells it
    page.say("hello")
    page.until_text("answer", "ok")
    page.driver.set_network_conditions(offline=True, latency=0, throughput=0)
    page.press("regenerate")
    page.one("offline")
    page.driver.delete_network_conditions()
    page.gone("offline")
    page.press("regenerate")
    page.until_text("branch-label", "2/2")


def test_grants_that_are_not_known_are_not_called_none(server, provider, browse):
    provider.plan(tools(call("write_file", {"path": "x.txt", "content": "hello"})), text("done"))
    page = browse(server, script=FAILING)
    page.say("write it")
    page.one("approval-card")
    asked = server.client.get("/approvals").json["approvals"][0]
    server.client.post(f"/approvals/{asked['approval_id']}", {"approved": True, "arguments_digest": asked["arguments_digest"], "scope": "always", "expires_in_s": 0}).expect(200)
    page.until_text("answer", "done")
    fail(page, "grants")
    page.press("tab-settings")
    page.until_text("toast", "cannot be reached")
    assert "Every call that can change something asks first" not in page.text("settings")
    page.open("/#chat_that_is_gone/settings")
    page.driver.refresh()
    page.until(lambda: page.all("grant"), "the standing grant, though the chat is not here")


def test_a_chat_that_was_deleted_elsewhere_is_not_shown_again(server, provider, browse):
    provider.answer_with(lambda request: text("ok"))
    server.client.turn("doomed", "the old words")
    page = browse(server)
    page.open_chat("doomed")
    page.until_text("answer", "ok")
    server.client.request("DELETE", "/chats/doomed").expect(200)
    page.until_text("no-such-chat", "doomed")  # not a new chat, which would get what is being typed
    assert not page.all("answer") and not page.all("welcome")
    page.press("new-chat")
    page.until(lambda: "doomed" not in page.driver.current_url, "the address of no chat")
    page.driver.back()
    page.until_text("no-such-chat", "doomed")
    assert not page.all("answer")


def test_a_search_that_fails_is_not_one_that_found_nothing(server, provider, browse):
    provider.answer_with(lambda request: text("ok"))
    server.client.turn("c", "the needle")
    page = browse(server, script=FAILING)
    fail(page, "/search")
    page.type("search", "needle in vain")
    page.until_text("toast", "cannot be reached")
    assert "Nothing found" not in page.one("sidebar").text


def test_several_are_deleted_though_one_is_gone_already(server, provider, browse):
    provider.answer_with(lambda request: text("ok"))
    for chat in ("one", "two", "three"):
        server.client.turn(chat, "hello")
    page = browse(server, script=FAILING)
    page.one("chat-item[data-chat='three']")
    page.press("select")
    for chat in ("one", "two", "three"):
        page.one(f"chat-item[data-chat='{chat}']").find_element("css selector", "[data-testid=choose]").click()
    # Another tab was faster, and its news is still on its way.
    page.script("""const real = window.fetch; let first = true;
        window.fetch = (to, how) => how?.method === "DELETE" && first ? (first = false, real(to, how).then(() => real(to, how))) : real(to, how);""")
    page.press("delete-selected")
    page.until_text("toast", "2 chats")
    assert server.client.get("/chats").json["chats"] == []
    page.press("toast-action")
    page.until(lambda: len(server.client.get("/chats").json["chats"]) == 2, "both back")


def test_an_answer_that_was_not_taken_is_said(server, provider, browse):
    provider.plan(tools(call("run_shell", {"command": "true"})), text("done"))
    page = browse(server, script=FAILING)
    page.say("go")
    page.one("approval-card")
    fail(page, "POST .*approvals")
    page.press("approve")
    page.until_text("toast", "cannot be reached")
    fail(page, None)
    page.press("approve")
    page.until_text("answer", "done")


def test_the_key_that_opens_a_list_of_choices_stays_in_the_chat(server, provider, browse):
    provider.answer_with(lambda request: text("ok"))
    for chat in ("alpha", "beta"):
        server.client.turn(chat, "hello")
    page = browse(server)
    page.open_chat("alpha")
    page.press("tab-settings")
    page.one("theme").send_keys(Keys.ALT + Keys.ARROW_DOWN)
    page.keys(Keys.ESCAPE)
    assert "alpha" in page.driver.current_url
