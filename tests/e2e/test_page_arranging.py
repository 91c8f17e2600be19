"""The list of chats as people arrange it: pinned chats, the archive, folders, several chats at once, by pointer and by keys."""
import datetime

import pytest
from support.browser import Keys
from support.provider import Gate, text
from support.timing import eventually

pytestmark = pytest.mark.limit(90)


def groups(page):
    return page.script("""return Object.fromEntries([...document.querySelectorAll(".chat-list section")].map((each) =>
      [each.getAttribute("aria-label"), [...each.querySelectorAll("[data-testid=chat-item]")].map((item) => item.dataset.chat)]))""")


def until_groups(page, expected):
    page.until(lambda: groups(page) == expected, f"{expected}, not {groups(page)}")


def choose(page, chat, what):
    """Opens the chat's menu and presses an entry, by keys alone."""
    page.script("arguments[0].focus()", page.all("chat-menu", page.one(f"chat-item[data-chat='{chat}']"))[0])
    page.keys(Keys.ENTER)
    page.script("arguments[0].focus()", page.one(what))
    page.keys(Keys.ENTER)


def drag(page, chat, to):
    """Drags the chat onto a group, which may show itself only during the drag."""
    page.script("""window.moved = new DataTransfer();
      document.querySelector(`[data-chat="${arguments[0]}"]`).dispatchEvent(new DragEvent("dragstart", {bubbles: true, dataTransfer: window.moved}))""", chat)
    group = page.until(lambda: page.css(f".chat-list section.target[aria-label='{to}']"), to)[0]
    page.script("""for (const kind of ["dragover", "drop"]) arguments[0].dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: window.moved}))""", group)


@pytest.fixture
def three(server):
    for name in "abc":  # each newer than the one before
        made = server.client.post("/chats", {"id": name, "title": f"Chat {name}"}).expect(201).json["updated_at"]
        eventually(lambda: datetime.datetime.now(datetime.UTC) > datetime.datetime.fromisoformat(made) + datetime.timedelta(milliseconds=1), "the clock has gone on")
    return server


def shelf(server, chat):
    return next(each for each in server.client.get("/chats").json["chats"] if each["id"] == chat).get("shelf")


def test_chats_are_pinned_archived_and_taken_back(three, browse):
    page = browse(three)
    until_groups(page, {"Today": ["c", "b", "a"]})
    choose(page, "a", "chat-pin")
    until_groups(page, {"Pinned": ["a"], "Today": ["c", "b"]})
    choose(page, "b", "chat-archive")
    until_groups(page, {"Pinned": ["a"], "Today": ["c"]})
    assert (shelf(three, "a"), shelf(three, "b")) == ("pinned", "archived")
    page.press("toast-action")
    until_groups(page, {"Pinned": ["a"], "Today": ["c", "b"]})
    drag(page, "c", "Archived")
    until_groups(page, {"Pinned": ["a"], "Today": ["b"]})
    drag(page, "b", "Pinned")
    until_groups(page, {"Pinned": ["b", "a"]})
    drag(page, "a", "Today")
    until_groups(page, {"Pinned": ["b"], "Today": ["a"]})
    page.press("show-archive")
    until_groups(page, {"Pinned": ["b"], "Today": ["a"], "Archived": ["c"]})
    choose(page, "c", "chat-archive")
    until_groups(page, {"Pinned": ["b"], "Today": ["c", "a"]})


def test_what_works_is_on_top_and_an_archived_chat_is_found(three, provider, browse):
    for chat, where in (("a", "archived"), ("b", "pinned")):
        three.client.request("PATCH", "/chats/" + chat, {"shelf": where}).expect(200)
    gate = Gate()
    provider.plan(text("begun", gate, " and done"))
    stream = three.client.start("a", "work")
    page = browse(three)
    until_groups(page, {"Now": ["a"], "Pinned": ["b"], "Today": ["c"]})
    gate.release()
    stream.finish()
    until_groups(page, {"Pinned": ["b"], "Today": ["c"]})
    page.type("search", "Chat a")
    until_groups(page, {"Archived": ["a"]})


def test_several_chats_are_archived_and_deleted_at_once_and_had_back(three, browse):
    page = browse(three)
    page.press("select")
    for chat in "ab":
        page.all("choose", page.one(f"chat-item[data-chat='{chat}']"))[0].click()
    page.press("archive-selected")
    until_groups(page, {"Today": ["c"]})
    page.press("toast-action")
    until_groups(page, {"Today": ["c", "b", "a"]})
    page.press("select")
    for chat in "bc":
        page.all("choose", page.one(f"chat-item[data-chat='{chat}']"))[0].click()
    drag(page, "b", "Pinned")
    until_groups(page, {"Pinned": ["c", "b"], "Today": ["a"]})


@pytest.mark.parametrize("language", ["en", "de", "he"])
def test_the_foot_of_the_list_fits(three, browse, language):
    page = browse(three, size=(1280, 800))
    page.script("localStorage.setItem('language', arguments[0])", language)
    page.driver.refresh()
    page.one("select")

    def lines(selector):
        return page.script("return [...document.querySelectorAll(arguments[0])].map((e) => Math.round(e.getBoundingClientRect().top / 12))", selector)

    assert len({round(page.one(name).rect["y"] / 8) for name in ("select", "open-trash", "open-help")}) == 1, "one row"
    page.press("select")
    bar = page.one("select-bar")
    assert bar.rect["height"] <= 90 and len(set(lines("[data-testid=select-bar] > span.faint"))) == 1
    assert page.script("const bar = arguments[0].getBoundingClientRect(); return [...arguments[0].querySelectorAll('button, span.faint')].every((e) => { const b = e.getBoundingClientRect(); "
                       "return b.left >= bar.left - 1 && b.right <= bar.right + 1 && b.height <= 42; })", bar)


def test_a_chat_goes_to_another_folder_by_dragging_or_by_its_menu(make_server, provider, browse, tmp_path):
    server = make_server(provider)
    (tmp_path / "site").mkdir()
    own = server.home.workspace.name
    server.client.post("/chats", {"id": "a", "title": "A"}).expect(201)
    server.client.post("/chats", {"id": "b", "title": "B", "workspace": str(tmp_path / "site")}).expect(201)
    page = browse(server)
    until_groups(page, {"site": ["b"], own: ["a"]})
    drag(page, "a", "site")
    until_groups(page, {"site": ["a", "b"]})
    assert {each["id"]: each.get("workspace") for each in server.client.get("/chats").json["chats"]} == dict.fromkeys("ab", str(tmp_path / "site"))
    page.press("toast-action")
    until_groups(page, {own: ["a"], "site": ["b"]})
    choose(page, "b", "chat-move")
    until_groups(page, {"Today": ["b", "a"]})


def test_shelves_and_settings_that_are_none(three):
    for body in ({"shelf": "top"}, {"shelf": 1}, {"effort": "default"}, {"instructions": None}, {"instructions": "x" * 4001}, {}):
        three.client.request("PATCH", "/chats/a", body).expect(400)
    kept = three.client.request("PATCH", "/chats/a", {"shelf": "pinned", "effort": "low", "instructions": "Be short."}).expect(200).json
    assert (kept["shelf"], kept["effort"], kept["instructions"]) == ("pinned", "low", "Be short.")
    before = three.client.get("/chats").json["chats"]
    moved = three.client.request("PATCH", "/chats/a", {"shelf": "archived"}).expect(200).json
    assert moved["updated_at"] == next(each["updated_at"] for each in before if each["id"] == "a"), "a place in the list is no change of the chat"
    again = three.client.request("PATCH", "/chats/a", {"shelf": "archived"}).expect(200).json
    assert again["updated_at"] == moved["updated_at"], "nor is the place that it has"
    none = three.client.request("PATCH", "/chats/a", {"shelf": None, "effort": None, "instructions": ""}).expect(200).json
    assert not {"shelf", "effort", "instructions"} & set(none)


def test_where_a_chat_stands_survives_a_restart_and_is_not_copied(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    provider.plan(text("hello"))
    server.client.turn("a", "hi")
    server.client.request("PATCH", "/chats/a", {"shelf": "pinned", "effort": "high", "instructions": "Be short."}).expect(200)
    copy = server.client.post("/chats/a/fork", {"interaction_id": "int_001"}).expect(201).json
    assert (copy.get("shelf"), copy["effort"], copy["instructions"]) == (None, "high", "Be short.")
    server.stop()
    again = make_server(provider, home=home)
    kept = next(each for each in again.client.get("/chats").json["chats"] if each["id"] == "a")
    assert (kept["shelf"], kept["effort"], kept["instructions"]) == ("pinned", "high", "Be short.")
    provider.plan(text("short"))
    again.client.turn("a", "go on")
    sent = provider.requests[-1].body
    assert sent["messages"][0]["content"].endswith("\n\nBe short.") and sent["reasoning_effort"] == "high"
