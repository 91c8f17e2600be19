"""The page in other languages: all of it, from right to left where the language runs so, in the language of the browser unless one is chosen."""
import json
import pathlib
import re
import subprocess

import pytest
from support.browser import By
from support.provider import call, text, tools

pytestmark = pytest.mark.limit(120)
PAGE = pathlib.Path(__file__).parents[2] / "src" / "page"
# Names, and words that are the same in the other language.
SAME = {"Reprise", "Markdown", "JSON", "Chat", "Chats", "Plan", "Patch", "Echo", "Pause", "Parameter", "Token", "Auto", "", "Trace", "demo", "research: list", "MCP-Server"}


def texts(tmp_path, language):
    """English and translated texts by their path; of functions: what they say about certain values."""
    script = tmp_path / "words.ts"
    script.write_text(f"""
import {{ t }} from {json.dumps(str(PAGE / 'texts.ts'))};
import {{ v }} from {json.dumps(str(PAGE / 'texts_of_views.ts'))};
import {{ page, views }} from {json.dumps(str(PAGE / 'words' / (language + '.ts')))};
const said = (value: any): any => typeof value === "function" ? [[0, 0], [1, 1], [7, 9], ["low", "once"], ["a", "b"]].map((these) => {{
  try {{ return value(...these); }} catch {{ return ""; }}
}}) : Array.isArray(value) ? value.map(said) : value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, said(each)])) : value;
console.log(JSON.stringify([said({{ ...t, ...v }}), said({{ ...page, ...views }})]));
""")
    subprocess.run(["esbuild", script, "--bundle", "--format=cjs", "--platform=node", "--log-level=error", f"--outfile={tmp_path / 'words.js'}"], check=True, timeout=60)
    return json.loads(subprocess.run(["node", tmp_path / "words.js"], capture_output=True, text=True, check=True, timeout=60).stdout)


def strings(value, path=""):
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, (list, dict)):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from strings(each, f"{path}.{name}")


@pytest.mark.parametrize("language", ["de", "he"])
def test_every_text_is_translated(tmp_path, language):
    english, other = (dict(strings(each)) for each in texts(tmp_path, language))
    assert set(english) == set(other)
    same = {path: words for path, words in english.items() if other[path] == words and any(c.isalpha() for c in words) and words not in SAME}
    # What holds no word but names, numbers and what it was given.
    plain = {".withKey", ".taskIn", ".fetched", ".helpGroups", ".connectCommands", ".branchOf", ".port", ".ofServer", ".mustBe", ".inSeconds", ".offlineExamples.2.1"}
    assert not {path: words for path, words in same.items() if not any(path.startswith(each) for each in plain)}


def spoken(page, name):
    page.until(lambda: page.script("return document.documentElement.lang") == name, name)


def sideways(page):
    return page.script("return [...document.querySelectorAll('body *')].filter((e) => getComputedStyle(e).position !== 'fixed' && e.clientWidth && document.scrollingElement.scrollWidth > innerWidth)"
                       ".map((e) => e.className).slice(0, 5)")


@pytest.mark.parametrize("language, approve, words", [("de", "Erlauben", "Was möchtest du tun?"), ("he", "אישור", "מה תרצו לעשות?")])
def test_a_person_chooses_a_language(server, provider, browse, language, approve, words):
    page = browse(server)
    page.press("tab-settings")
    page.one("language").find_element(By.CSS_SELECTOR, f"option[value={language}]").click()
    spoken(page, language)
    rtl = language == "he"
    assert page.script("return getComputedStyle(document.body).direction") == ("rtl" if rtl else "ltr")
    page.one("settings")
    page.press("tab-chat")
    page.until(lambda: words in page.css("main")[0].text, "the welcome")
    side, main = (page.css(each)[0].rect for each in (".sidebar", ".main"))
    assert (side["x"] > main["x"]) is rtl
    provider.plan(tools(call("run_shell", {"command": "true"})), text("done"))
    page.say("go")
    assert page.one("approve").text.startswith(approve)
    # Commands run from left to right in any language.
    assert page.script("return getComputedStyle(document.querySelector('.approval pre, .approval code')).direction") == "ltr"
    page.press("approve")
    page.until_text("answer", "done")
    ended = {"de": "Antwort fertig", "he": "התשובה מוכנה"}[language]
    page.until(lambda: page.script("return document.querySelector('[data-testid=said]').textContent.trim()") == ended, "what a screen reader says")
    for width in (390, 820, 1280):
        page.driver.set_window_size(width, 800)
        for view in ("chat", "board", "branches", "trace", "settings", "inbox"):
            page.press(f"tab-{view}")
            page.until(lambda: not page.css("main > p.faint"), "the view")
            assert page.script("return document.scrollingElement.scrollWidth <= innerWidth"), (width, view, sideways(page))
    page.press("tab-settings")
    page.one("language").find_element(By.CSS_SELECTOR, "option[value=en]").click()
    spoken(page, "en")
    page.until(lambda: page.one("tab-inbox").get_attribute("title") == "Inbox", "English")


def test_another_language_leaves_what_was_typed(server, browse):
    page = browse(server)
    page.press("tab-settings")
    page.press("add-provider")
    page.type("provider-key", "sk-half-typed")
    for language, connect in (("de", "Testen und verbinden"), ("he", "בדיקה וחיבור"), ("en", "Test and connect")):
        page.one("language").find_element(By.CSS_SELECTOR, f"option[value={language}]").click()
        spoken(page, language)
        page.until(lambda: page.one("provider-connect").text == connect, "the words")
        assert page.script("return document.documentElement.dir") == ("rtl" if language == "he" else "ltr")
        assert page.one("provider-key").get_attribute("value") == "sk-half-typed"
    page.press("tab-chat")
    page.until(lambda: page.one("composer").get_attribute("placeholder") == "Write a message", "the chat, in English again")


def served(tmp_path, language, *reasons):
    """What the page makes of these reasons of the server."""
    script = tmp_path / "served.ts"
    script.write_text(f"""
import {{ inWords, translate }} from {json.dumps(str(PAGE / 'language.ts'))};
Object.assign(globalThis, {{ localStorage: {{ getItem: () => {json.dumps(language)} }}, document: {{ documentElement: {{}} }} }});
translate().then(() => console.log(JSON.stringify({json.dumps(reasons)}.map(inWords))));
""")
    subprocess.run(["esbuild", script, "--bundle", "--format=cjs", "--platform=node", "--log-level=error", f"--outfile={tmp_path / 'served.js'}"], check=True, timeout=60)
    return json.loads(subprocess.run(["node", tmp_path / "served.js"], capture_output=True, text=True, check=True, timeout=60).stdout)


# Whole reasons of the server's tools, as the sources have them.
REASONS = sorted({found for file in (PAGE.parent / "tools").rglob("*.cc")
                  for found in re.findall(r'approval_reason = "([^"]+)"|Risk::k\w+, "([^"]+)"', file.read_text()) for found in found if found})


@pytest.mark.parametrize("language", ["de", "he"])
def test_reasons_of_the_server_are_translated(tmp_path, language):
    sandbox = ["runs a shell command in a sandbox: no network, only the workspace can be written; the sandbox lacks memory limits",
               "runs a program in a sandbox: the network only to example.org, only the workspace and /data can be written, /opt can be read as well",
               "calls the MCP server things; this tool has not been approved before; rule 3 of this server wants each such call asked about"]
    assert len(REASONS) > 20
    for reason, words in zip(REASONS + sandbox, served(tmp_path, language, *REASONS, *sandbox)):
        left = {each for each in re.findall(r"[a-z]{3,}", words) if each in re.findall(r"[a-z]{3,}", reason)}
        assert words != reason and left <= {"in", "memory", "limits", "example", "org", "data", "opt", "things", "plan", "chat", "server", "workspace"}, (reason, words)
    strange = "does 1; what nobody: has, said $& {} (here"
    assert served(tmp_path, language, strange) == [strange]
    assert served(tmp_path, "en", *REASONS) == REASONS


@pytest.mark.parametrize("language", ["de", "he"])
def test_every_tool_of_the_server_says_what_it_does(server, browse, tmp_path, language):
    known = {path.removeprefix(".toolDoes.") for path, _ in strings(texts(tmp_path, language)[1]) if path.startswith(".toolDoes.")}
    assert {tool["name"] for tool in server.client.get("/tools").json["tools"]} <= known
    page = browse(server)
    page.script("localStorage.setItem('language', arguments[0])", language)
    page.open("/#/settings")
    page.driver.refresh()
    spoken(page, language)
    page.until(lambda: page.all("tools"), "the tools")
    assert "Runs a" not in page.text("tools") and "workspace" not in page.text("tools")


@pytest.mark.parametrize("accepted, language", [("de-AT,en;q=0.5", "de"), ("fr,he;q=0.8,de;q=0.5", "he"), ("fr,ja", "en"), ("en-GB,de", "en")])
def test_the_browsers_language_is_taken(server, browse, accepted, language):
    page = browse(server)
    page.driver.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": "somebody's", "acceptLanguage": accepted})
    page.driver.refresh()
    spoken(page, language)
    page.one("composer")
