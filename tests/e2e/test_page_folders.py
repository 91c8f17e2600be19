"""The page: chats of several folders, the choice of one, and a folder that has moved."""
import pytest
from support.provider import call, text, tools

pytestmark = pytest.mark.limit(90)


def chat_of(server):
    return server.client.get("/chats").json["chats"][0]


def use(page, folder):
    page.type("folder", str(folder), clear=True)
    page.press("use-folder")


def test_a_new_chat_works_in_the_folder_that_is_chosen(make_server, provider, browse, tmp_path):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    page = browse(server)
    assert page.one("folder").get_attribute("value") == str(server.home.workspace)
    use(page, "/no/such/folder")
    page.until_text("folder-error", "/no/such/folder")
    use(page, server.home.data)
    page.until_text("folder-error", "not")
    (tmp_path / "site").mkdir()
    (tmp_path / "link").symlink_to("site")
    use(page, tmp_path / "link")
    page.until(lambda: page.one("folder").get_attribute("value") == str(tmp_path / "site"), "the folder without links")
    assert not page.all("folder-error") and not server.client.get("/chats").json["chats"]
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"})), text("written"))
    page.say("write")
    page.until_text("answer", "written")
    assert (tmp_path / "site" / "a.txt").read_text() == "x" and chat_of(server)["workspace"] == str(tmp_path / "site")
    assert page.text("chat-folder").endswith("site")
    page.press("new-chat")
    page.until(lambda: page.one("folder").get_attribute("value") == str(server.home.workspace), "the server's folder, for another chat")
    options = page.script("return [...document.querySelectorAll('datalist option')].map((each) => each.value)")
    assert options == [str(tmp_path / "site"), str(server.home.workspace)]


def test_the_list_is_grouped_by_folder_when_there_are_several(server, provider, browse, tmp_path):
    def group(*names):
        heads = page.css(".chat-list section")
        return [each.get_attribute("aria-label") for each in heads] == list(names)

    for name in ("one/app", "two/app", "site"):
        (tmp_path / name).mkdir(parents=True)
    server.client.post("/chats", {"id": "a"}).expect(201)
    page = browse(server)
    page.until(lambda: group("Today"), "one group")
    page.open_chat("a")
    assert not page.all("chat-folder")
    server.client.post("/chats", {"id": "b", "workspace": str(tmp_path / "site")}).expect(201)
    page.until(lambda: group("site", server.home.workspace.name), "groups by folder")
    assert page.text("chat-folder").endswith(server.home.workspace.name)
    server.client.post("/chats", {"id": "c", "workspace": str(tmp_path / "one/app")}).expect(201)
    # Chats of the same millisecond have no order by age.
    page.until(lambda: group("app", "site", server.home.workspace.name), "the newest folder first")
    server.client.post("/chats", {"id": "d", "workspace": str(tmp_path / "two/app")}).expect(201)
    page.until(lambda: group(str(tmp_path / "two/app"), str(tmp_path / "one/app"), "site", server.home.workspace.name), "full paths of folders of one name")


def test_a_folder_that_has_moved_is_pointed_to_its_new_place(make_server, provider, browse, tmp_path):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    provider.plan(text("hello"))
    server.client.turn("c", "hi", workspace=str(old))
    old.rename(new)
    page = browse(server)
    page.open_chat("c")
    page.until_text("folder-gone", str(old))
    use(page, tmp_path / "nowhere")
    page.until_text("folder-error", "nowhere")
    use(page, new)
    page.gone("folder-gone")
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"})), text("written"))
    page.say("write")
    page.until_text("answer", "written")
    assert (new / "a.txt").exists() and chat_of(server)["workspace"] == str(new)


def test_instructions_are_those_of_the_chats_folder(make_server, provider, browse, tmp_path):
    server = make_server(provider)
    for name in ("site", "shop"):
        (tmp_path / name).mkdir()
        server.client.post("/chats", {"id": name, "workspace": str(tmp_path / name)}).expect(201)
    (tmp_path / "site" / "AGENTS.md").write_text("Build with make.")
    (server.home.workspace / "AGENTS.md").write_text("The server's own.")
    page = browse(server)
    page.until_text("instructions", "AGENTS.md is new")
    page.open_chat("shop")
    page.gone("instructions")
    page.open_chat("site")
    page.press("instructions-look")
    assert page.text("instructions-text") == "Build with make."
    page.press("instructions-allow")
    page.gone("instructions")
    states = {name: server.client.get(f"/instructions?chat_id={name}").json["files"] for name in ("site", "shop")}
    assert [each["state"] for each in states["site"]] == ["used"] and states["shop"] == []
    assert [each["state"] for each in server.client.get("/instructions").json["files"]] == ["new"], "another folder's"
    page.press("new-chat")
    page.until_text("instructions", "AGENTS.md is new")
    use(page, tmp_path / "shop")
    page.gone("instructions")
    use(page, tmp_path / "site")
    (tmp_path / "site" / "AGENTS.md").write_text("Build with ninja.")
    provider.plan(text("done"))
    page.say("hello")
    page.until_text("instructions", "AGENTS.md has changed")
