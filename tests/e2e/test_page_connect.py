"""Settings that work without a restart: providers of models, what new chats begin with, instructions and effort of a chat, saved prompts, usage."""
import json

import pytest
from support.browser import Keys
from support.provider import Reply, call, text, tools
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
    assert page.text("provider-answer") == "mine: It answers and lists 2 models."
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


def test_an_address_without_a_list_of_models_is_refused_unless_it_has_none(make_server, make_home, provider, browse):
    home = make_home()
    server = make_server(home=home, plain=True)
    assert server.client.get("/providers").expect(200, "providers").json["sealed"] is False
    page = browse(server)
    page.press("tab-settings")
    page.press("add-provider")
    assert "plain text" in page.text("connect-provider")
    choose(page, "provider-known", "")
    page.type("provider-name", "mine")
    page.type("provider-address", provider.url.removesuffix("/v1"))
    page.press("provider-connect")
    page.until_text("provider-said", "It usually ends in /v1.")
    for ending in ("/v1", "/v1/"):
        page.type("provider-address", provider.url.removesuffix("/v1") + "/none" + ending, clear=True)
        page.press("provider-connect")
        page.until(lambda: page.text("provider-said") == "There is no list of models at this address.", "no advice that was followed already")
    page.type("provider-address", provider.url.removesuffix("/v1"), clear=True)
    assert not (home.data / ".providers").exists()
    page.press("provider-no-list")
    page.until_text("provider-answer", "mine: It answers.")
    body = {"type": "openai", "base_url": provider.url.removesuffix("/v1")}
    assert "/v1" in server.client.request("PUT", "/providers/other", body).error(503, "provider_not_found")["message"]
    server.client.request("PUT", "/providers/other", {**body, "has_no_list": True}).expect(200, "provider_connected")


def test_a_file_of_providers_that_cannot_be_read_is_never_written_over(make_server, make_home, provider):
    home = make_home()
    provider.listing = lambda: listing("scripted")
    body = {"type": "openai", "base_url": provider.url, "api_key": KEY}
    kept = home.data / ".providers"
    server = make_server(home=home, plain=True)
    server.client.request("PUT", "/providers/mine", body).expect(200)
    server.stop()
    whole = kept.read_text()
    for wrong in ("", "{}", whole[:-9], whole.replace('"schema":1', '"schema":2'), '{"ciphertext":"","iv":"","protected":"","tag":"","encrypted_key":"","header":{}}'):
        kept.write_text(wrong)
        server = make_server(home=home, plain=True)
        assert "cannot be read" in server.client.request("PUT", "/providers/more", body).expect(409).json["error"]["message"]
        server.client.request("DELETE", "/providers/mine").expect(409)
        assert server.client.get("/providers").json["providers"] == [] and kept.read_text() == wrong
        server.stop()
    # An entry that is not used now stays, and can be used again later.
    kept.write_text(whole)
    config = {"providers": {"mine": {"type": "openai", "base_url": provider.url}}}
    server = make_server(home=home, plain=True, config=config)
    server.client.request("PUT", "/providers/more", body).expect(200)
    server.stop()
    assert set(json.loads(kept.read_text())["providers"]) == {"mine", "more"}
    server = make_server(home=home, plain=True)
    assert [each["name"] for each in server.client.get("/providers").json["providers"]] == ["mine", "more"]
    server.client.request("DELETE", "/providers/mine").expect(200)


def test_the_key_of_a_connected_provider_is_left_out_of_texts(make_server, make_home, provider):
    home = make_home()
    provider.listing = lambda: listing("scripted")
    (home.workspace / "notes.txt").write_text(f"the key is {KEY}\n")
    body = {"type": "openai", "base_url": provider.url, "api_key": KEY}

    def reads(server, chat):
        provider.plan(tools(call("read_file", {"path": "notes.txt"})), text("done"))
        server.client.turn(chat, "read it", model="mine/scripted")
        seen = json.dumps(provider.requests[-1].body)
        assert "[redacted]" in seen and KEY not in seen
        assert server.client.get(f"/chats/{chat}/blame?path=notes.txt").expect(200, "blamed_file").json["text"] == "the key is [redacted]\n"

    server = make_server(home=home, config={"approval_mode": "approve_all"})
    server.client.request("PUT", "/providers/mine", body).expect(200)
    reads(server, "a")
    server.stop()
    reads(make_server(home=home, config={"approval_mode": "approve_all"}), "b")


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
