"""What stands beside the chat: files with who wrote their lines, a map of the chat, long outputs, and previews that can do nothing."""
import socket

import pytest
from support.browser import Keys
from support.provider import call, text, tools

pytestmark = pytest.mark.limit(120)


@pytest.fixture
def worked(make_server, provider):
    """A chat that has written two files; a person has changed one of them."""
    server = make_server(provider, config={"approval_mode": "approve_all"})
    (server.home.workspace / "list.txt").write_text("milk\nbread\n")
    provider.plan(tools(call("run_shell", {"command": "echo rice >> list.txt"})), tools(call("write_file", {"path": "page.html", "content": "<h1>Hi</h1>"})), text("done"))
    server.client.turn("a", "write both")
    (server.home.workspace / "list.txt").write_text("milk\nrye bread\nrice\n")
    return server


def ranges(page):
    return [(each.get_attribute("data-by"), int(each.get_attribute("data-from")), int(each.get_attribute("data-to"))) for each in page.all("blamed-lines")]


def test_the_files_of_a_chat_say_who_wrote_each_line(worked, browse):
    page = browse(worked, "/#a")
    page.until_text("answer", "done")
    page.press("open-beside")
    page.until(lambda: {each.get_attribute("data-path") for each in page.all("file-line", page.one("changed-files"))} == {"list.txt", "page.html"}, "the changed files")
    page.type("find-file", "list")
    page.until(lambda: [each.get_attribute("data-path") for each in page.all("file-line", page.one("workspace-files"))] == ["list.txt"], "the file found")
    page.all("file-line", page.one("workspace-files"))[0].click()
    page.until(lambda: ranges(page) == [("others", 1, 2), ("agent", 3, 3)], "the lines and who wrote them")
    assert "nobody was asked" in page.all("blamed-lines")[1].text and "rice" in page.all("blamed-lines")[1].text
    (worked.home.workspace / "list.txt").write_text("milk\n")
    page.press("reread-file")
    page.until(lambda: ranges(page) == [("others", 1, 1)], "the file as it is now")
    (worked.home.workspace / "list.txt").unlink()
    page.press("reread-file")
    page.one("file-problem")
    page.keys(Keys.ESCAPE)
    page.gone("beside")


def test_a_line_leads_to_its_turn_and_to_what_the_model_saw(worked, browse, provider):
    provider.plan(text("and on"))
    worked.client.turn("a", "go on")
    page = browse(worked, "/#a")
    page.until_text("answer", "and on")
    page.press("open-beside")
    page.press("file-line[data-path='list.txt']")
    page.press("blamed-turn")
    page.until(lambda: page.css(".turn.found[data-interaction=int_001]"), "the turn")
    page.press("blamed-request")
    page.until(lambda: page.one("trace-turn").get_attribute("value") == "int_001", "the trace of that turn")
    assert page.all("requests")


HOSTILE = """<html><head><meta http-equiv="refresh" content="0;url=https://evil.example/refresh"><base href="https://evil.example/">
<link rel="dns-prefetch" href="//evil.example"><link rel="stylesheet" href="https://evil.example/a.css">
<style>@import url(https://evil.example/b.css); body { background: url(https://evil.example/c.png); color: rgb(1, 2, 3); }</style></head>
<body onload="parent.document.title='owned'"><h1 style="color: rgb(4, 5, 6)">Hello</h1><script>top.document.title = "owned"; fetch("/chats");</script>
<img src="https://evil.example/d.png" onerror="top.document.title='owned'"><iframe src="https://evil.example/e"></iframe>
<form action="/chats" method="post"><button>Send</button></form><a href="https://evil.example/f">away</a><a href="javascript:top.document.title='owned'">run</a>
<svg><script>top.document.title = "owned"</script><image href="https://evil.example/g.svg"/><use href="https://evil.example/h.svg#x"/></svg>
<object data="https://evil.example/i"></object><embed src="https://evil.example/j"><video src="https://evil.example/k" autoplay></video></body></html>"""


def test_a_preview_shows_a_page_and_lets_it_do_nothing(make_server, provider, browse):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    (server.home.workspace / "evil.html").write_text(HOSTILE)
    (server.home.workspace / "drawing.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="90" height="30" onload="top.document.title=1"><text y="20">drawn</text></svg>')
    provider.plan(text("```html\n<p id=x style='color: rgb(7, 8, 9)'>from the answer</p><script>top.document.title='owned'</script>\n```\n"))
    server.client.turn("a", "hi")
    page = browse(server, "/#a")

    def within(script):
        """Runs in the innermost frame, as the test's driver may and the page may not."""
        page.driver.switch_to.frame(page.one("preview-frame"))
        page.until(lambda: page.css("iframe"), "the inner frame")
        page.driver.switch_to.frame(page.css("iframe")[0])
        try:
            return page.until(lambda: page.script(script), script)
        finally:
            page.driver.switch_to.default_content()
    page.press("preview-code")
    assert within("return document.body?.innerText.trim()") == "from the answer"
    assert within("return getComputedStyle(document.querySelector('p')).color") == "rgb(7, 8, 9)"
    page.press("beside-files")
    page.press("file-line[data-path='evil.html']")
    page.press("preview-file")
    assert "Hello" in within("return document.body?.innerText.includes('Hello') && document.body.innerText")
    assert within("return getComputedStyle(document.querySelector('h1')).color") == "rgb(4, 5, 6)"
    assert within("return JSON.stringify([...document.querySelectorAll('script, link, meta, base, iframe, form, object, embed, video')].length)") == "0"
    assert within("return String([...document.querySelectorAll('*')].some((e) => [...e.attributes].some((a) => /^on|evil|javascript/.test(a.name + a.value))))") == "false"
    page.press("beside-files")
    page.press("file-line[data-path='drawing.svg']")
    page.press("preview-file")
    assert within("return document.body?.textContent.trim()") == "drawn"
    assert "owned" not in page.driver.title
    page.is_watched = False  # handlers that are taken away are in the log
    page._read_logs()
    assert not [url for url in page.requested if "evil.example" in url]


def test_the_policy_alone_holds_what_the_frame_would_have_taken_away(server, browse):
    """The same hostile page, put into the inner frame as it is: the policy keeps it from every host, and from the page around it."""
    with socket.create_server(("127.0.0.1", 0)) as evil:
        page = browse(server, hosts={"evil.example": f"127.0.0.1:{evil.getsockname()[1]}"})
        page.one("composer")
        page.is_watched = False  # what is refused is in the log
        page.script("""const frame = document.createElement("iframe");
          Object.assign(frame, {src: "/preview"}).setAttribute("sandbox", "allow-scripts");
          frame.dataset.testid = "frame";
          document.body.append(frame);""")
        page.driver.switch_to.frame(page.one("frame"))
        inner = page.until(lambda: page.css("iframe"), "the inner frame")[0]
        page.script("arguments[0].srcdoc = arguments[1]", inner, HOSTILE)
        page.driver.switch_to.frame(inner)
        page.until(lambda: page.css("h1"), "the page")
        page.script("document.querySelector('a').click()")
        page.driver.switch_to.default_content()
        assert "owned" not in page.driver.title
        evil.settimeout(1)
        with pytest.raises(TimeoutError):
            evil.accept()
    head = server.client.get("/preview").headers
    assert "default-src 'none'" in head["Content-Security-Policy"] and "sandbox allow-scripts" in head["Content-Security-Policy"]


def test_a_long_output_is_read_beside_the_chat(make_server, provider, browse):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    provider.plan(tools(call("run_shell", {"command": "seq 1 9000"})), text("counted"))
    server.client.turn("a", "count")
    page = browse(server, "/#a")
    page.until_text("answer", "counted")
    page.all("tool-card")[0].find_element("css selector", ".tool-head").click()
    page.press("read-beside")
    page.until(lambda: "1\n2\n3" in page.one("beside").text, "its beginning")
    assert page.script("return document.querySelectorAll('.beside [data-row]').length") < 60, "only a part of it is drawn"
    page.script("const b = document.querySelector('.beside-body'); b.scrollTop = b.scrollHeight")
    page.until(lambda: "9000" in page.one("beside").text, "its end")


def test_the_map_leads_to_any_message(make_server, provider, browse):
    server = make_server(provider)
    for n in range(4):
        provider.plan(text(f"answer {n} " + "word " * 400))
        server.client.turn("a", f"question {n}")
    page = browse(server, "/#a")
    page.until_text("answer", "answer 3")
    page.press("open-beside")
    page.press("beside-map")
    page.until(lambda: [each.text.split("\n")[0] for each in page.all("map-turn")] == [f"question {n}" for n in range(4)], "the map")
    page.all("map-turn")[1].click()
    page.until(lambda: page.css(".turn.found[data-interaction=int_002]"), "the turn")
    page.press("close-beside")
    page.gone("beside")


def test_files_are_looked_at_before_and_after_they_are_sent(server, provider, browse, tmp_path):
    (tmp_path / "notes.py").write_text("print('looked at')\n")
    page = browse(server)
    page.driver.find_element("css selector", "[data-testid=file]").send_keys(str(tmp_path / "notes.py"))
    page.until(lambda: page.one("attachment").get_attribute("data-state") == "there", "the upload")
    page.press("look-at")
    page.until_text("given-text", "looked at")
    page.press("close-beside")
    provider.plan(text("read"))
    page.say("read it")
    page.until_text("answer", "read")
    page.press("look-at-given")
    page.until_text("given-text", "looked at")
