"""The page while its chats go on without it: what people are writing is neither lost, nor changed, nor sent to another chat."""
import pytest
from support.browser import Keys
from support.provider import Gate, text
from support.timing import eventually

pytestmark = pytest.mark.limit(120)


def said(server, chat):
    return [each["user_message"] for each in server.client.get(f"/chats/{chat}").json["interactions"]]


def written(page, name="composer"):
    return page.one(name).get_attribute("value")


@pytest.fixture
def page(server, provider, browse):
    """A window on chat a."""
    provider.answer_with(lambda request: text("answered"))
    server.client.turn("a", "this is a")
    page = browse(server, "/#a")
    page.until_text("answer", "answered")
    return page


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
