"""Settings that work without a restart: providers of models, what new chats begin with, instructions and effort of a chat, saved prompts, usage."""
import json

import pytest
from support.browser import Keys
from support.provider import Reply, text
from support.timing import eventually

pytestmark = pytest.mark.limit(120)

KEY = "sk-live-0123456789abcdef"


def listing(*names):
    return Reply([json.dumps({"object": "list", "data": [{"id": name, "object": "model"} for name in names]}).encode()], content_type="application/json")


def choose(page, name, value):
    page.script("""const [field, value] = arguments; Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, "value").set.call(field, value);
      field.dispatchEvent(new Event("change", {bubbles: true}))""", page.one(name), value)


def test_a_provider_is_connected_used_and_forgotten(make_server, make_home, provider, browse):
    home = make_home()
    server = make_server(home=home)
    provider.listing = lambda: listing("scripted", "other")
    page = browse(server)
    page.press("tab-settings")
    page.press("add-provider")
    choose(page, "provider-known", "")
    page.type("provider-name", "mine")
    page.type("provider-address", "http://127.0.0.1:1/v1")
    page.type("provider-key", KEY)
    page.press("provider-connect")
    page.until(lambda: page.one("provider-said").text, "the failure")
    assert not page.all("provider[data-name=mine]") and not (home.data / ".providers").exists(), "what does not answer is not kept"
    page.type("provider-address", provider.url, clear=True)
    page.press("provider-connect")
    page.one("provider[data-name=mine]")
    assert "with a key" in page.text("provider[data-name=mine]") and KEY not in page.script("return document.documentElement.outerHTML")
    assert KEY.encode() not in (home.data / ".providers").read_bytes(), "sealed"
    assert KEY not in str(server.client.get("/providers").json)
    page.press("default-model")
    page.until(lambda: {"mine/other", "mine/scripted"} <= {each.text.split("\n")[-1] for each in page.all("model-option")}, "its models")
    page.type("default-model-search", "mine/scripted" + Keys.ENTER)
    page.press("new-chat")
    provider.plan(text("from the new provider"))
    page.say("hello")
    page.until_text("answer", "from the new provider")
    assert provider.requests[-1].headers["Authorization"] == f"Bearer {KEY}"
    server.stop()
    again = make_server(home=home)
    assert [each["name"] for each in again.client.get("/providers").json["providers"]] == ["mine"]
    provider.plan(text("after a restart"))
    again.client.turn("later", "hi", model="mine/scripted")
    again.client.request("DELETE", "/providers/mine").expect(200)
    again.client.post("/chats/more/interactions", {"user_message": "hi", "model": "mine/scripted"}).expect(400)
    assert again.client.get("/providers").json["providers"] == []


def test_what_the_configuration_says_wins(server, provider, browse):
    body = {"type": "openai", "base_url": provider.url, "api_key": KEY}
    refused = server.client.request("PUT", "/providers/test", body).expect(409).json["error"]
    assert "configuration" in refused["message"]
    for name, wrong in (("offline", {}), ("a/b", {}), ("UP", {}), ("x", {"api_key": "a b"}), ("x", {"api_key": "a\nX-Other: b"}), ("x", {"base_url": "file:///etc"}), ("x", {"type": "other"})):
        assert server.client.request("PUT", f"/providers/{name.replace('/', '%2F')}", {**body, **wrong}).status in (400, 404), (name, wrong)
    server.client.request("DELETE", "/providers/test").expect(404)
    page = browse(server)
    page.press("tab-settings")
    page.until(lambda: "configuration" in page.text("provider[data-name=test]"), "where it comes from")
    assert not page.all("disconnect")


def test_a_chat_has_instructions_and_effort_of_its_own(server, provider, browse):
    page = browse(server)
    page.press("open-options")
    page.type("chat-instructions", "Answer in one word.")
    choose(page, "chat-effort", "high")
    page.press("save-options")
    page.gone("chat-options")
    provider.plan(text("yes"))
    page.say("well?")
    page.until_text("answer", "yes")
    sent = provider.requests[-1].body
    assert sent["messages"][0]["content"].endswith("\n\nAnswer in one word.") and sent["reasoning_effort"] == "high"
    page.press("open-options")
    assert page.one("chat-instructions").get_attribute("value") == "Answer in one word."
    page.type("chat-instructions", "", clear=True)
    choose(page, "chat-effort", "")
    page.press("save-options")
    page.gone("chat-options")
    provider.plan(text("at length"))
    page.say("again")
    page.until_text("answer", "at length")
    sent = provider.requests[-1].body
    assert "one word" not in sent["messages"][0]["content"] and "reasoning_effort" not in sent


def test_prompts_are_saved_and_used_by_name(server, provider, browse):
    page = browse(server)
    page.press("open-options")
    page.type("prompt-name", "Review")
    page.type("prompt-text", "Review the last change.")
    page.press("save-prompt")
    page.until_text("use-prompt", "Review")
    page.keys(Keys.ESCAPE)
    page.gone("chat-options")
    page.type("composer", "/rev")
    page.until(lambda: "Review" in page.text("suggestions"), "the prompt")
    page.keys(Keys.ENTER)
    page.until(lambda: page.one("composer").get_attribute("value") == "Review the last change.", "its text")
    assert not provider.requests, "nothing is sent before Enter"


def test_usage_is_shown_by_day_model_and_chat(server, provider, browse):
    for chat, usage in (("a", (100, 20)), ("b", (10, 5)), ("b", (10, 5))):
        provider.plan(text("done", usage=usage))
        server.client.turn(chat, f"in {chat}")
    server.client.post("/chats/b/fork", {"interaction_id": "int_002"}).expect(201)
    found = server.client.get("/usage/days?days=1").json
    assert [sum(model["input_tokens"] for model in each["usage"]["models"]) for each in found["days"]] == [120] and found["complete"]
    assert {each["chat_id"]: each["usage"]["input_tokens"] for each in found["chats"]} == {"a": 100, "b": 20}, "a copy counts once"
    for days in ("0", "400", "x", ""):
        server.client.get(f"/usage/days?days={days}").expect(400)
    page = browse(server)
    page.press("tab-settings")
    page.one("usage-day")
    assert "150 tokens" in page.text("usage-day")
    rows = eventually(lambda: [each.text for each in page.all("usage-row")], "the tables")
    assert any(row.startswith("test/scripted") and "150" in row for row in rows) and any("in a" in row and "120" in row for row in rows)
