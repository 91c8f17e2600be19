"""The provider's own web search: offered, shown with its addresses, recorded, and sent back unchanged to that provider alone."""
import json
import re

import pytest
from support import anthropic as claude
from support import responses
from support.provider import CUT, Reply, delta, ending, text
from support.server import API_KEY, reprise

NEWS = claude.page("https://news.example/a", "News of today")
WIKI = claude.page("https://wiki.example/Cats?x=1", "Cats — an article")
SEARCHED = [claude.search("cats today"), claude.found(NEWS, WIKI)]
CITED = "Cats sleep – 16 hours."
ANSWER = [claude.say("I found: "), claude.say(CITED, claude.cites(WIKI, "16 hours a day")), claude.say(" That is all.")]


def config_of(provider, **search):
    claude_like = {"type": "anthropic", "base_url": provider.url.removesuffix("/v1"), "api_key": API_KEY, **search}
    openai_like = {"type": "openai_responses", "base_url": provider.url, "api_key": API_KEY, **search}
    if isinstance(search.get("web_search"), dict):
        openai_like["web_search"] = {k: v for k, v in search["web_search"].items() if k != "blocked_domains"}
    return {"config": {"model": "claude/scripted", "max_retries": 1, "providers": {
        "claude": claude_like, "second": claude_like, "open": openai_like,
        "chat": {"type": "openai", "base_url": provider.url, "api_key": API_KEY, "web_search": bool(search.get("web_search"))}}}}


@pytest.fixture
def searching(make_server, provider):
    return lambda home=None, **more: make_server(home=home, **config_of(provider, web_search=more or True))


def usage(count):
    return {"server_tool_use": {"web_search_requests": count, "web_fetch_requests": 0}}


def tool_of(request, name="web_search"):
    return [tool for tool in request.body.get("tools", []) if tool.get("name") == name or tool.get("type") == name]


def said(request, at=1):
    return [{k: v for k, v in block.items() if k != "cache_control"} for block in request.body["messages"][at]["content"]]


def test_a_search_is_shown_recorded_and_sent_back(searching, provider, make_home):
    home = make_home()
    server = searching(home, max_uses=3, blocked_domains=["spam.example"])
    provider.plan(claude.message(*SEARCHED, *ANSWER, **usage(1)))
    stream = server.client.turn("c", "how long do cats sleep?")
    assert tool_of(provider.requests[0]) == [{"type": "web_search_20250305", "name": "web_search", "max_uses": 3, "blocked_domains": ["spam.example"]}]
    answer = stream.one("answer")
    assert answer["content"] == "".join(e["content"] for e in stream.all("text_delta")) == f"I found: {CITED} That is all."
    citation, = answer["citations"]
    assert (citation["url"], citation["title"]) == (WIKI["url"], WIKI["title"])
    assert answer["content"][citation["start"]:citation["end"]] == CITED
    event = stream.one("web_search").data
    assert event["query"] == "cats today" and event["results"] == [{"url": one["url"], "title": one["title"]} for one in (NEWS, WIKI)]
    assert stream.one("usage")["web_searches"] == 1
    interaction = server.client.interaction("c", stream.interaction)
    assert interaction["usage"]["web_searches"] == 1
    assert [e["type"] for e in interaction["agent_events"]] == ["ANSWER", "WEB_SEARCH", "USAGE"]
    assert server.client.get("/chats/c/usage").expect(200, "chat_usage").json["branch"]["web_searches"] == 1
    assert "encrypted_content" not in json.dumps(interaction["agent_events"])

    provider.plan(claude.message(claude.say("Bye.")))
    server.client.turn("c", "thanks")
    assert said(provider.requests[1]) == SEARCHED + ANSWER
    server.stop()
    server = searching(home)
    provider.plan(claude.message(claude.say("Really.")), claude.message(claude.say("In a fork.")))
    server.client.edit("c", "int_002", "thanks a lot").finish()
    assert said(provider.requests[2]) == SEARCHED + ANSWER, "after a restart, in an edit"
    fork = server.client.post("/chats/c/fork", {"interaction_id": "int_001"}).expect(201).json["id"]
    server.client.turn(fork, "go on")
    assert said(provider.requests[3]) == SEARCHED + ANSWER
    for chat in ("c", fork):
        assert server.client.post(f"/chats/{chat}/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]


def test_export_and_import_keep_what_the_provider_wants_back(searching, provider, make_home):
    home = make_home()
    server = searching(home)
    provider.plan(claude.message(*SEARCHED, *ANSWER))
    server.client.turn("c", "cats?")
    assert reprise(home, "export", "-o", home.path / "out", "--data-dir", home.data)[0] == 0
    assert reprise(home, "import", home.path / "out", "--data-dir", home.data)[0] == 0
    provider.plan(claude.message(claude.say("ok")))
    server.client.turn("c-2", "go on")
    assert said(provider.requests[1]) == SEARCHED + ANSWER
    markdown = reprise(home, "export", "c", "--format", "markdown", "--data-dir", home.data)[1]
    assert "*Searched the web:* `cats today`" in markdown and f"- `{WIKI['url']}`: `{WIKI['title']}`" in markdown
    shown = reprise(home, "show", "c", "--data-dir", home.data)[1]
    assert "web search" in shown and f"{NEWS['url']} ({NEWS['title']})" in shown and "sources" in shown
    plain = json.loads(reprise(home, "export", "c", "--format", "jsonl", "--data-dir", home.data)[1])["messages"]
    assert plain[1] == {"role": "assistant", "content": f"I found: {CITED} That is all."}, "for other programs, without the provider's blocks"


def test_another_provider_gets_the_text_alone(searching, provider):
    server = searching()
    provider.plan(claude.message(*SEARCHED, *ANSWER))
    server.client.turn("c", "cats?")
    plain = f"I found: {CITED} That is all."
    provider.plan(claude.message(claude.say("two")), responses.message(responses.say("three")), text("four"), claude.message(claude.say("five")))
    server.client.turn("c", "go on", model="second/scripted")
    assert said(provider.requests[1]) == [{"type": "text", "text": plain}]
    server.client.turn("c", "go on", model="open/scripted")
    assert [part["text"] for item in provider.requests[2].body["input"] if item.get("role") == "assistant" for part in item["content"]] == [plain, "two"]
    server.client.turn("c", "go on", model="chat/scripted")
    assert provider.requests[3].conversation[1] == {"role": "assistant", "content": plain}
    for request in provider.requests[1:]:
        assert "encrypted" not in json.dumps([request.body.get("messages"), [i for i in request.body.get("input", []) if i["type"] != "reasoning"]])
    server.client.turn("c", "go on", model="claude/scripted")
    assert said(provider.requests[4])[:len(SEARCHED + ANSWER)] == SEARCHED + ANSWER, "it is back"


def test_a_search_beside_calls_of_ours_is_run_by_the_next_request(searching, provider):
    server = searching()
    call = claude.use("echo", {"text": "a"})
    provider.plan(claude.message(claude.say("Both."), claude.search("cats"), call, stop_reason="tool_use"),
                  claude.message(claude.found(WIKI), claude.say("Done.", claude.cites(WIKI, "Done"))), claude.message(claude.say("ok")))
    stream = server.client.turn("c", "go")
    assert said(provider.requests[1]) == [claude.say("Both."), claude.search("cats"), call]
    assert [e["url"] for e in stream.one("web_search")["results"]] == [WIKI["url"]]
    server.client.turn("c", "and?")
    assert said(provider.requests[2]) == [claude.say("Both."), claude.search("cats"), call]
    assert said(provider.requests[2], 3) == [claude.found(WIKI), claude.say("Done.", claude.cites(WIKI, "Done"))]


def test_a_pause_goes_on(searching, provider):
    server = searching()
    paused = [claude.say("I search."), claude.search("cats", "srvtoolu_1"), claude.found(NEWS, call_id="srvtoolu_1"), claude.search("dogs", "srvtoolu_2")]
    silent = [claude.found(error="unavailable", call_id="srvtoolu_2"), claude.search("birds", "srvtoolu_3")]
    last = [claude.found(WIKI, call_id="srvtoolu_3"), claude.say("Birds.", claude.cites(WIKI, "Birds"))]
    provider.plan(claude.message(*paused, stop_reason="pause_turn"), claude.message(*silent, stop_reason="pause_turn"), claude.message(*last))
    stream = server.client.turn("c", "go")
    assert [(e.name, e.data.get("content")) for e in stream.all("message") + stream.all("answer")] == [("message", "I search."), ("answer", "Birds.")]
    assert "truncated" not in stream.one("answer").data
    assert [(e["query"], len(e["results"]), e.data.get("error")) for e in stream.all("web_search")] == [
        ("cats", 1, None), ("", 0, "unavailable"), ("", 1, None)]
    assert said(provider.requests[1]) == paused and provider.requests[1].body["messages"][-1]["role"] == "assistant"
    assert said(provider.requests[2]) == paused + silent
    provider.plan(claude.message(claude.say("ok")))
    server.client.turn("c", "and?")
    assert said(provider.requests[3]) == paused + silent + last and len(provider.requests[3].body["messages"]) == 3
    report = server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json
    assert report["match"], report


def test_pauses_have_an_end_that_does_not_look_like_an_answer(searching, provider):
    server = searching()

    def paused(_):
        at = len(provider.requests)
        found = [claude.found(NEWS, call_id=f"srvtoolu_{at - 1}"), claude.say("Still.")] if at > 1 else []
        return claude.message(*found, claude.search("x", f"srvtoolu_{at}"), stop_reason="pause_turn")

    provider.answer_with(paused)
    stream = server.client.turn("c", "go")
    assert 10 < len(provider.requests) < 25
    assert stream.one("answer")["reason"] == "pause" and stream.one("answer")["truncated"] is True


def test_errors_of_a_search_and_an_answer_without_text(searching, provider):
    server = searching()
    provider.plan(claude.message(claude.search("x"), claude.found(error="max_uses_exceeded"), claude.say("I could not.")))
    event = server.client.turn("c", "go").one("web_search").data
    assert event["error"] == "max_uses_exceeded" and event["results"] == []
    provider.plan(claude.message(*SEARCHED), claude.message(*SEARCHED, claude.say("now")))
    stream = server.client.turn("d", "go")
    assert stream.one("retry")["code"] == "provider_protocol" and stream.one("answer")["content"] == "now"


def test_a_stream_that_ends_within_a_search(searching, provider):
    server = searching()
    steps = claude.message(*SEARCHED, *ANSWER).steps
    begins = next(at for at, step in enumerate(steps) if b"server_tool_use" in step)
    for cut in (begins + 1, begins + 3, begins + 5):
        provider.plan(Reply(steps[:cut] + [CUT]), claude.message(*SEARCHED, *ANSWER))
        stream = server.client.turn(f"c{cut}", "go")
        assert len(stream.all("web_search")) == 1 and stream.one("retry")
    # Cut off by its own limit: a call without its result is not sent back.
    open_call = claude.search("more", "srvtoolu_2")
    provider.plan(claude.message(*SEARCHED, claude.say("Then"), open_call, stop_reason="max_tokens"), claude.message(claude.say("ok")))
    assert server.client.turn("d", "go").one("answer")["reason"] == "length"
    server.client.turn("d", "go on")
    assert said(provider.requests[-1]) == SEARCHED + [claude.say("Then")]


HOSTILE = [("javascript:alert(1)", "x"), ("https://ok.example/1", "\x1b]0;owned\x07\x1b[2Jtitle\u202e\u0000"), ("https://ok.example/2", "T" * 1_000_000),
           ("https://user@evil.example/", "user"), ("https://bank.example\" onclick=\"x", "quote"), ("data:text/html,x", ""), ("https://" + "a" * 5000, "long"),
           ("https://ok.example/<script>", "tag"), ("HTTPS://ok.example/3", "[x](javascript:alert(1)) <img src=x onerror=alert(1)>"),
           ("https://ok.example/\u202egpj.exe", "direction"), (7, ["no", "text"]), ("", "empty")]


def test_hostile_results_are_harmless(searching, provider, make_home):
    home = make_home()
    server = searching(home)
    pages = [{"type": "web_search_result", "url": url, "title": title, "encrypted_content": "x"} for url, title in HOSTILE]
    reply = claude.message(claude.search("q\x1b[31m" + "w" * 100_000), {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": pages},
                           claude.say("Hm.", {"type": "web_search_result_location", "url": "javascript:x", "title": "t", "encrypted_index": "", "cited_text": ""}))
    bad = [step.replace(b'"title": "long"', b'"title": "\xff\xfe\xc0"') for step in reply.steps]
    provider.plan(Reply(bad))
    stream = server.client.turn("c", "go")
    event = stream.one("web_search").data
    assert [one["url"] for one in event["results"]] == ["https://ok.example/1", "https://ok.example/2", "HTTPS://ok.example/3"]
    assert event["omitted"] == len(HOSTILE) - 3 and "citations" not in stream.one("answer").data
    assert all(len(one["title"]) <= 200 and not re.search("[\x00-\x1f\x7f\u202e]", one["title"]) for one in event["results"])
    assert len(event["query"]) <= 500 and "\x1b" not in event["query"]
    server.stop()
    markdown = reprise(home, "export", "c", "--format", "markdown", "--data-dir", home.data)[1]
    assert "`[x](javascript:alert(1)) <img src=x onerror=alert(1)>`" in markdown and "\x1b" not in markdown
    assert "\x1b" not in reprise(home, "show", "c", "--data-dir", home.data)[1]


def test_many_results_are_bounded(searching, provider):
    server = searching()
    pages = [claude.page(f"https://many.example/{n}", f"page {n}") for n in range(500)]
    blocks = [block for n in range(60) for block in (claude.search(f"q{n}", f"srvtoolu_{n}"), claude.found(*pages[:30], call_id=f"srvtoolu_{n}"))]
    provider.plan(claude.message(*blocks, claude.say("ok")))
    events = server.client.turn("c", "go").all("web_search")
    assert len(events) == 32 and all(len(e["results"]) == 20 and e["omitted"] == 10 for e in events)


def test_off_by_default_and_in_modes(make_server, searching, provider):
    provider.answer_with(lambda _: claude.message(claude.say("ok")))
    plain = make_server(**config_of(provider))
    plain.client.turn("c", "go")
    assert not tool_of(provider.requests[-1])
    server = searching()
    for mode in ("read_only", "plan", "auto", "ask", "approve_all"):
        server.client.turn(f"c-{mode}", "go", approval_mode=mode)
        assert tool_of(provider.requests[-1]), mode
    provider.plan(claude.message(*SEARCHED, *ANSWER))
    server.client.turn("d", "go")
    server.client.turn("d", "go on", approval_mode="deny_all")
    assert not tool_of(provider.requests[-1])
    assert said(provider.requests[-1]) == [{k: v for k, v in block.items() if k != "citations"} for block in ANSWER]


@pytest.mark.parametrize("tools", [{"deny": ["web_*"]}, {"allow": ["echo"]}, {"require_approval": ["web_search"]}])
def test_tools_settings_hold_for_it(make_server, provider, tools):
    config = config_of(provider, web_search=True)
    config["config"]["tools"] = tools
    server = make_server(**config)
    provider.plan(claude.message(claude.say("ok")))
    server.client.turn("c", "go")
    assert not tool_of(provider.requests[-1])


@pytest.mark.lenient("the provider refuses the tool")
@pytest.mark.parametrize("model, done, words", [
    ("claude/scripted", claude.message(claude.say("ok")), "'scripted' does not support web search."),
    ("open/scripted", responses.message(responses.say("ok")), "Hosted tool 'web_search' is not supported with scripted."),
    ("chat/scripted", text("ok"), "Unrecognized request argument supplied: web_search_options")])
def test_a_model_that_has_none(searching, provider, model, done, words):
    server = searching()
    refusal = claude.failure(400, "invalid_request_error", words)
    provider.plan(refusal, done, done)
    stream = server.client.turn("c", "go", model=model)
    assert stream.one("answer")["content"] == "ok" and not stream.all("retry")
    server.client.turn("c", "go", model=model)
    assert [bool(tool_of(request)) or "web_search_options" in request.body for request in provider.requests] == [True, False, False]
    assert server.log().count("refuses its web search") == 1 and words in server.log()


def test_blocks_that_the_provider_no_longer_takes(searching, provider):
    server = searching()
    provider.plan(claude.message(*SEARCHED, *ANSWER),
                  claude.failure(400, "invalid_request_error", "messages.1.content.1.web_search_tool_result.content.0.encrypted_content: Invalid"),
                  claude.message(claude.say("ok")))
    server.client.turn("c", "go")
    assert server.client.turn("c", "go on").one("answer")["content"] == "ok"
    assert said(provider.requests[-1]) == [{k: v for k, v in block.items() if k != "citations"} for block in ANSWER]
    assert tool_of(provider.requests[-1])


def test_a_summary_takes_the_searches_with_it(searching, provider):
    server = searching()
    provider.plan(claude.message(*SEARCHED, *ANSWER), claude.message(claude.say("two")))
    server.client.turn("c", "one")
    server.client.turn("c", "two")
    provider.plan(claude.message(claude.say("A summary.")), claude.message(claude.say("three")))
    server.client.stream("POST", "/chats/c/compact", {}).finish()
    server.client.turn("c", "three")
    assert "srvtoolu" not in json.dumps(provider.requests[-1].body["messages"])


# --- OpenAI's Responses ------------------------------------------------------------------------------------------------

OPEN_ANSWER = "Cats sleep – 16 hours (wiki)."
OPEN = [responses.reasoning("I search", "c2VhbGVk"), responses.search("cats", "https://wiki.example/cats", "https://news.example/b"),
        responses.search(None, type="open_page", url="https://wiki.example/cats"),
        responses.say(OPEN_ANSWER, annotations=[responses.cites(OPEN_ANSWER, "16 hours", "https://wiki.example/cats", "Cats")])]


def test_searches_of_responses(searching, provider, make_home):
    home = make_home()
    server = searching(home, max_uses=4, allowed_domains=["wiki.example"])
    provider.plan(responses.message(*OPEN))
    stream = server.client.turn("c", "cats?", model="open/scripted")
    body = provider.requests[0].body
    assert tool_of(provider.requests[0]) == [{"type": "web_search", "filters": {"allowed_domains": ["wiki.example"]}}]
    assert body["max_tool_calls"] == 4 and body["include"] == ["reasoning.encrypted_content", "web_search_call.action.sources"]
    assert [(e["query"], [r["url"] for r in e["results"]]) for e in stream.all("web_search")] == [
        ("cats", ["https://wiki.example/cats", "https://news.example/b"]), ("", ["https://wiki.example/cats"])]
    citation, = stream.one("answer")["citations"]
    assert OPEN_ANSWER[citation["start"]:citation["end"]] == "16 hours" and citation["title"] == "Cats"
    assert stream.one("usage")["web_searches"] == 1
    server.stop()
    server = searching(home)
    provider.plan(responses.message(responses.say("two")), claude.message(claude.say("three")), responses.message(responses.say("four")))
    server.client.turn("c", "and?", model="open/scripted")
    assert provider.requests[1].body["input"][1:5] == OPEN
    server.client.turn("c", "and?", model="claude/scripted")
    assert said(provider.requests[2]) == [{"type": "text", "text": OPEN_ANSWER}]
    server.client.turn("c", "and?", model="open/scripted")
    assert provider.requests[3].body["input"][1:5] == OPEN
    assert server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"]


def test_a_search_of_responses_that_fails_or_is_cut_off(searching, provider):
    server = searching()
    provider.plan(responses.message(responses.search("x", status="failed"), responses.say("No.")))
    assert server.client.turn("c", "go", model="open/scripted").one("web_search")["error"] == "failed"
    whole = responses.message(*OPEN)
    begins = next(at for at, step in enumerate(whole.steps) if b"web_search_call.searching" in step)
    provider.plan(Reply(whole.steps[:begins + 1] + [CUT]))
    stream = server.client.turn("d", "go", status="FAILED", model="open/scripted")
    assert not stream.all("web_search") and not stream.all("answer"), "it had begun to think"
    whole = responses.message(*OPEN[1:])
    begins = next(at for at, step in enumerate(whole.steps) if b"web_search_call.searching" in step)
    provider.plan(Reply(whole.steps[:begins + 1] + [CUT]), whole)
    stream = server.client.turn("e", "go", model="open/scripted")
    assert stream.one("retry") and len(stream.all("web_search")) == 2


@pytest.mark.parametrize("words", ["Item with id 'ws_1' not found. Items are not persisted when `store` is set to false.",
                                   "Unsupported item type: web_search_call"])
def test_items_that_the_provider_does_not_take_back(searching, provider, words):
    server = searching()
    provider.plan(responses.message(*OPEN), claude.failure(404 if "found" in words else 400, "invalid_request_error", words),
                  responses.message(responses.say("ok")))
    server.client.turn("c", "go", model="open/scripted")
    assert server.client.turn("c", "on", model="open/scripted").one("answer")["content"] == "ok"
    assert [item["type"] for item in provider.requests[-1].body["input"]] == ["message", "message", "message"]


# --- chat completions --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("searches", [True, False])
def test_citations_of_chat_completions(make_server, provider, searches):
    server = make_server(**config_of(provider, **({"web_search": True} if searches else {})))
    note = {"type": "url_citation", "url_citation": {"url": "https://wiki.example/cats", "title": "Cats", "start_index": 0, "end_index": 4}}
    bad = {"type": "url_citation", "url_citation": {"url": "javascript:x", "title": "x"}}
    provider.plan(Reply([delta({"content": "Cats."}), delta({"annotations": [note, bad]}), *ending()]), text("ok"), text("ok"))
    answer = server.client.turn("c", "go", model="chat/scripted").one("answer")
    assert answer["citations"] == [{"url": "https://wiki.example/cats", "title": "Cats", "start": 0, "end": 4}]
    server.client.turn("c", "on", model="chat/scripted")
    assert provider.requests[-1].conversation[1] == {"role": "assistant", "content": "Cats."}
    assert [request.body.get("web_search_options") for request in provider.requests] == [{} if searches else None] * 2
    server.client.turn("d", "go", model="chat/scripted", approval_mode="deny_all")
    assert "web_search_options" not in provider.requests[-1].body


def test_doors_show_citations(searching, provider):
    server = searching()
    provider.answer_with(lambda _: claude.message(*SEARCHED, *ANSWER))
    whole = f"I found: {CITED} That is all."
    ask = {"model": "reprise", "messages": [{"role": "user", "content": "cats?"}]}
    message = server.client.post("/v1/chat/completions", ask).expect(200).json["choices"][0]["message"]
    citation = message["annotations"][0]["url_citation"]
    assert citation["url"] == WIKI["url"] and message["content"][citation["start_index"]:citation["end_index"]] == CITED
    response = server.client.post("/v1/responses", {"model": "reprise", "input": "cats?", "stream": False}).expect(200).json
    part = [part for item in response["output"] if item["type"] == "message" for part in item["content"]][0]
    note, = part["annotations"]
    assert part["text"] == whole and part["text"][note["start_index"]:note["end_index"]] == CITED and note["type"] == "url_citation"


# --- settings ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind, search, words", [
    ("openai", {"max_uses": 1}, "web_search\" must be true for the type openai,"),
    ("openai", {"allowed_domains": ["a.example"]}, "web_search\" must be true for the type openai,"),
    ("openai_responses", {"blocked_domains": ["a.example"]}, "blocked_domains\" is not for the type openai_responses"),
    ("anthropic", {"allowed_domains": ["a.example"], "blocked_domains": ["b.example"]}, "must have either allowed_domains or blocked_domains"),
    ("anthropic", {"allowed_domains": ["https://a.example"]}, "must be a domain such as example.org"),
    ("anthropic", {"max_uses": 0}, "max_uses\" must be an integer from 1 to 1000"),
    ("anthropic", {"uses": 1}, "unknown key"),
    ("anthropic", "yes", "web_search\" must be")])
def test_wrong_settings(make_home, provider, kind, search, words):
    home = make_home()
    file = home.path / "bad.json"
    file.write_text(json.dumps({"model": "offline", "providers": {"x": {"type": kind, "base_url": provider.url, "web_search": search}}}))
    status, out, errors = reprise(home, "doctor", "--config", file)
    assert status != 0 and words in out + errors


def test_the_question_of_trust_names_it(make_home, provider):
    home = make_home()
    file = home.path / "reprise.json"
    search = {"max_uses": 2, "allowed_domains": ["a.example"]}
    file.write_text(json.dumps({"model": "offline", "providers": {"x": {"type": "anthropic", "base_url": provider.url, "web_search": search}}}))
    _, out, errors = reprise(home, "trust", file, "--workspace", home.path, stdin=b"n\n")
    assert "lets it search the web, at most 2 times a response, only on a.example" in out + errors
