"""The requests of a turn in the page: what models were told, what is new in it, and what came of it."""
import hashlib
import json

import pytest
from selenium.webdriver.common.keys import Keys
from support import documents, npm
from support.editor import Editor
from support.provider import call, failure, text, tools
from support.server import API_KEY
from test_editor import TOOL, offer

pytestmark = pytest.mark.limit(180)


def retrying(make_server, provider, **config):
    return make_server(provider, arguments=["--max-retries", "2"], config=config)


def traced(browse, server, chat="c"):
    page = browse(server)
    page.open_chat(chat)
    page.press("tab-trace")
    page.one("trace")
    return page


def opened(page, index):
    """The request, opened and read."""
    line = page.until(lambda: page.all("request")[index], "the request")
    line.find_element("css selector", "summary").click()
    page.until(lambda: page.all("part", line), "its parts")
    return line


def names(page, line, section):
    return [each.text for each in line.find_elements("css selector", f"section[aria-label='{section}'] > details > summary .type")]


def test_a_turns_requests_and_what_came_of_them(make_server, provider, browse):
    server = retrying(make_server, provider)
    editor = Editor(server)
    offer(server, TOOL).expect(200)
    provider.plan(failure(503, "busy", headers={"x-request-id": "req_one"}), tools(call("echo", {"text": "heron"}, "call_1")), text("It said heron."))
    server.client.turn("c", "Say heron", approval_mode="approve_all")
    page = traced(browse, server)
    page.until(lambda: len(page.all("request")) == 3, "three requests")
    ends = [each.text for each in page.all("request-end")]
    assert ends == ["failed: provider_overloaded", "called tools", "answered"]
    lines = [each.text for each in page.all("request")]
    assert "round 0 · scripted" in lines[0] and "round 0, retry 1" in lines[1] and "round 1" in lines[2] and "18 tokens" in lines[2] and "first token after" in lines[2]
    failed = opened(page, 0)
    assert "req_one" in failed.text and "127.0.0.1" in failed.text
    last = opened(page, 2)
    stored = server.client.interaction("c", "int_001")["record"]["requests"][0]
    assert names(page, last, "System prompt") == [name for name, _ in stored["modules"]]
    assert names(page, last, "Messages") == ["user", "assistant", "tool"]
    assert [each.get_attribute("data-new") for each in last.find_elements("css selector", "section[aria-label=Messages] > details")] == ["false", "true", "true"]
    assert last.find_element("css selector", "section[aria-label=Messages] h4").text.split() == ["Messages", "3", "2", "new"]
    assert "heron" in last.find_elements("css selector", "section[aria-label=Messages] pre")[-1].text, "new messages are shown at once"
    told = {each.text.split()[0]: each.text for each in last.find_elements("css selector", "section[aria-label=Tools] summary")}
    assert "built in" in told["read_file"] and "beside the editor, by the MCP server tickets" in told["tickets__find"]
    tool = next(each for each in last.find_elements("css selector", "section[aria-label=Tools] > details") if each.text.startswith("tickets__find"))
    tool.find_element("css selector", "summary").click()
    page.until(lambda: "Finds tickets" in tool.text and '"words"' in tool.text, "the tool's description and parameters")
    assert "stream" in names(page, last, "Parameters")
    editor.close()


def test_the_body_is_copied_and_saved_byte_for_byte(make_server, provider, browse):
    server = make_server(provider)
    provider.plan(text("Yes."))
    server.client.turn("c", "Is \"it\"\n\ta heron \u2028 \U0001f986?")
    page = traced(browse, server)
    page.script("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };"
                "URL.createObjectURL = (blob) => { blob.arrayBuffer().then((bytes) => { window.saved = [...new Uint8Array(bytes)]; }); return 'data:,'; }")
    opened(page, 0)
    page.press("copy-body")
    assert page.until(lambda: page.script("return window.copied"), "the copy").encode() == provider.requests[0].raw
    page.press("save-body")
    assert bytes(page.until(lambda: page.script("return window.saved"), "the file")) == provider.requests[0].raw
    assert hashlib.sha256(provider.requests[0].raw).hexdigest() in page.text("request-open")


def test_turns_without_requests_say_why(make_server, provider, browse):
    server = make_server(provider, plain=True)
    provider.plan(text("one"))
    server.client.turn("c", "first")
    server.client.turn("d", "hello", model="offline")
    server.close()
    file = next(server.home.data.glob("c/interactions/int_001*"))
    record = json.loads(file.read_text())
    del record["record"]["requests"], record["record"]["program"], record["final_agent_state"]["request"]
    file.write_text(json.dumps(record))
    again = make_server(provider, home=server.home, plain=True)
    page = traced(browse, again)
    page.until_text("no-requests", "not on record: an earlier version ran it")
    page = traced(browse, again, "d")
    page.until_text("no-requests", "Nothing was sent to a provider")


def test_a_deleted_attachment_is_named(make_server, provider, browse):
    one = {"type": "openai", "base_url": provider.url, "api_key": API_KEY}
    server = make_server(config={"providers": {"one": one}, "model": "one/scripted", "models": {"one/scripted": {"abilities": {"images": True}}}})
    picture = server.client.request("POST", "/chats/c/files?name=heron.png", documents.png(), headers={"Content-Type": "image/png"}).expect(201).json
    provider.plan(text("A heron."))
    server.client.turn("c", "What is it?", attachments=[picture["id"]])
    server.client.request("DELETE", f"/chats/c/files/{picture['id']}").expect(200)
    page = traced(browse, server)
    assert f"deleted: {picture['id']}" in opened(page, 0).text
    # The body cannot be read any more, and the page says so.
    page.press("copy-body")
    page.until_text("toast", picture["id"])


@pytest.mark.limit(300)
def test_ten_megabytes_do_not_freeze_the_page(make_server, provider, browse, figure):
    server = make_server(provider)
    size, count = 900_000, 12
    for turn in range(count):
        provider.plan(text(f"Answer {turn}."))
        server.client.turn("c", f"{turn} " + "words of a long message " * (size // 24))
    assert len(provider.requests[-1].raw) > 10_000_000
    page = traced(browse, server)
    page.script("window.longest = 0; new PerformanceObserver((list) => list.getEntries().forEach((each) => { longest = Math.max(longest, each.duration); })).observe({type: 'longtask'})")
    line = opened(page, 0)
    assert "Show all" in line.text and page.script("return arguments[0].textContent.length", line) < 200_000, "the first part of a long text is shown"
    line.find_elements("css selector", "section[aria-label=Messages] > details")[0].find_element("css selector", "summary").click()
    page.until(lambda: len(line.find_elements("css selector", "section[aria-label=Messages] pre")) == 3, "an older message beside the two new ones")
    longest = page.script("return longest")
    figure(f"a request of {len(provider.requests[-1].raw) >> 20} MB in the page: nothing took longer than {longest:.0f} ms")
    assert longest < 3_000


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_small_dark_and_by_keyboard(make_server, provider, browse, theme):
    axe = (npm.install("axe-core@4.14.1") / "axe-core" / "axe.min.js").read_text()
    server = retrying(make_server, provider)
    provider.plan(failure(503, "busy", headers={"x-request-id": "r" * 100}), text("It is a heron."))
    server.client.turn("c", "What is it?")
    page = browse(server, size=(500, 800))
    page.script("localStorage.setItem('theme', arguments[0])", theme)
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 320, "height": 700, "deviceScaleFactor": 1, "mobile": False})
    page.driver.refresh()
    page.press("menu")
    page.open_chat("c")
    page.until(lambda: page.all("tab-trace"), "the views")
    page.script("arguments[0].click()", page.all("tab-trace")[0])
    line = page.until(lambda: page.all("request")[1], "the requests")
    page.script("arguments[0].focus()", line.find_element("css selector", "summary"))
    page.keys(Keys.ENTER)
    page.until(lambda: page.all("part", line), "its parts, opened by a key")
    part = page.all("part", line)[0]
    page.script("arguments[0].focus()", part.find_element("css selector", "summary"))
    page.keys(Keys.SPACE)
    page.until(lambda: part.find_elements("css selector", "pre"), "the text of a module")
    assert page.script("return document.documentElement.scrollWidth <= innerWidth"), "wider than the window"
    page.driver.set_script_timeout(60)
    page.script(axe)
    found = page.driver.execute_async_script("const done = arguments[0]; axe.run({resultTypes: ['violations']}).then((r) => done(r.violations))")
    bad = [(v["id"], [n["html"][:160] for n in v["nodes"][:3]]) for v in found if v["impact"] in ("serious", "critical")]
    assert not bad, bad
