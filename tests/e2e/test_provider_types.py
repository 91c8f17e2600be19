"""Requests to providers are what their own libraries would send: captured requests compile against the official SDKs' types."""
import json
import subprocess

import pytest
from support import anthropic, npm, responses
from support.provider import call, failure, text, tools
from support.server import API_KEY

COMPILER = "typescript@5.9.3"  # the last version that needs only Node
OPENAI, ANTHROPIC = "openai@7.57.0", "@anthropic-ai/sdk@1.13.0"
OPTIONS = {"noEmit": True, "strict": True, "skipLibCheck": True, "target": "es2022", "lib": ["es2022", "dom"], "module": "nodenext", "moduleResolution": "nodenext", "types": []}


def compile_as(package, header, of_type, bodies, folder):
    """The compiler's exit status and messages for these requests as literals of that type, so that unknown members are errors, too."""
    modules = npm.install(package, COMPILER)
    source = [header, *(f"export const request{n}: {of_type} = {json.dumps(body)};" for n, body in enumerate(bodies))]
    (folder / "requests.ts").write_text("\n".join(source) + "\n")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS, "files": ["requests.ts"]}))
    if not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(modules)
    done = subprocess.run(["node", modules / "typescript" / "lib" / "tsc.js"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout


def conversation(make_server, provider, kind, replies, **models):
    """Runs turns with reasoning, tools, a failing tool, a switch of models and a summary. Returns the requests' bodies."""
    url = provider.url.removesuffix("/v1") if kind == "anthropic" else provider.url
    models = {f"one/{name}": facts for name, facts in models.items()}
    server = make_server(config={"providers": {"one": {"type": kind, "base_url": url, "api_key": API_KEY}}, "model": "one/scripted", "models": models, "max_retries": 1})
    provider.plan(*replies)
    server.client.turn("c", "first")
    for name in models:
        server.client.turn("c", f"now {name}", model=name)
    server.client.stream("POST", "/chats/c/compact", {}).finish()
    server.client.turn("c", "last")
    assert not provider._replies, "all replies were used"
    return [request.body for request in provider.requests]


CALLS = [("echo", {"text": "a"}, "call_1"), ("calculator", {"expression": "1/0"}, "call_2")]


def test_chat_completions(make_server, provider, tmp_path):
    replies = [tools(*(call(*each) for each in CALLS), say="I look."), text("one"), text("two"), text("three"), text("THE SUMMARY"), text("four")]
    bodies = conversation(make_server, provider, "openai", replies, scripted={"effort": "none", "cache": "long"}, other={"effort": "high", "max_output_tokens": 500})
    assert {body.get("reasoning_effort") for body in bodies} >= {"none", "high"} and bodies[0]["prompt_cache_retention"] == "24h"
    of_type = "OpenAI.Chat.ChatCompletionCreateParams"
    assert compile_as(OPENAI, 'import OpenAI from "openai";', of_type, bodies, tmp_path) == (0, "")
    status, said = compile_as(OPENAI, 'import OpenAI from "openai";', of_type, [{**bodies[0], "no_such_member": 1}], tmp_path)
    assert status != 0 and "no_such_member" in said, "the compiler does check"


def test_responses(make_server, provider, tmp_path):
    thought = responses.reasoning("I should call it", "c2VhbGVk")
    replies = [responses.message(thought, responses.say("I look.", phase="commentary"), *(responses.use(*each, f"fc_{n}") for n, each in enumerate(CALLS))),
               responses.message(responses.reasoning("", "bW9yZQ==", "rs_2"), responses.say("one", phase="final_answer")),
               responses.message(responses.say("two")), responses.message(responses.say("three")), responses.message(responses.say("THE SUMMARY")), responses.message(responses.say("four"))]
    bodies = conversation(make_server, provider, "openai_responses", replies, scripted={"effort": "none", "cache": "long"}, other={"effort": "high", "max_output_tokens": 500})
    assert [each["type"] for each in bodies[1]["input"]] == ["message", "reasoning", "message", "function_call", "function_call", "function_call_output", "function_call_output"]
    assert compile_as(OPENAI, 'import OpenAI from "openai";', "OpenAI.Responses.ResponseCreateParams", bodies, tmp_path) == (0, "")


def test_messages(make_server, provider, tmp_path):
    said = [anthropic.thinking("I should call it", "c2ln"), anthropic.redacted("c2VhbGVk"), anthropic.say("I look."), *(anthropic.use(*each) for each in CALLS)]
    say = lambda words: anthropic.message(anthropic.say(words))  # noqa: E731
    replies = [anthropic.message(*said), say("one"), say("two"), say("three"), say("four"), say("five"), say("THE SUMMARY"), say("six")]
    bodies = conversation(make_server, provider, "anthropic", replies, scripted={"thinking": 2048, "cache": "long"}, other={"thinking": "adaptive", "effort": "low"},
                          **{"claude-sonnet-5": {"effort": "none"}, "old": {"effort": "medium"}})
    assert [body.get("thinking", {}).get("type") for body in bodies[:5]] == ["enabled", "enabled", "enabled", "adaptive", "disabled"]
    assert bodies[3]["output_config"] == {"effort": "low"} and bodies[0]["system"][-1]["cache_control"]["ttl"] == "1h"
    assert compile_as(ANTHROPIC, 'import Anthropic from "@anthropic-ai/sdk";', "Anthropic.MessageCreateParams", bodies, tmp_path) == (0, "")


@pytest.mark.parametrize("refused", ["block_binding: Extra inputs are not permitted", None])
def test_thoughts_that_are_bound_to_other_messages_are_passed_over(make_server, provider, refused, tmp_path):
    url = provider.url.removesuffix("/v1")
    server = make_server(config={"providers": {"one": {"type": "anthropic", "base_url": url, "api_key": API_KEY}}, "model": "one/claude-fable-5-1", "max_retries": 2})
    bound = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
    provider.plan(anthropic.message(anthropic.thinking("so", "c2ln"), anthropic.use("echo", {"text": "a"})), anthropic.message(anthropic.say("one")),
                  anthropic.failure(400, "invalid_request_error", bound))
    if refused:
        provider.plan(anthropic.failure(400, "invalid_request_error", refused))
    provider.plan(anthropic.message(anthropic.say("two")), anthropic.message(anthropic.say("three")))
    server.client.turn("c", "hi")
    server.client.turn("c", "and?")
    server.client.turn("c", "and so?")
    last = provider.requests[-1]
    thoughts = [block for message in last.body["messages"] for block in message["content"] if block["type"] == "thinking"]
    if refused:
        assert not thoughts and "block_binding" not in last.body["thinking"] and "anthropic-beta" not in last.headers
        return
    assert thoughts and last.body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert "thinking-binding-controls-2026-08-01" in last.headers["anthropic-beta"]
    assert compile_as(ANTHROPIC, 'import Anthropic from "@anthropic-ai/sdk";', "Anthropic.Beta.Messages.MessageCreateParams", [last.body], tmp_path) == (0, "")


def test_thinking_that_cannot_be_turned_off_is_made_short(make_server, provider):
    url = provider.url.removesuffix("/v1")
    server = make_server(config={"providers": {"one": {"type": "anthropic", "base_url": url, "api_key": API_KEY}}, "model": "one/claude-opus-5-5", "max_retries": 1,
                                 "models": {"one/claude-opus-5-5": {"effort": "none"}}})
    provider.plan(anthropic.failure(400, "invalid_request_error", "thinking.type: \"disabled\" is not supported for this model"), anthropic.message(anthropic.say("one")))
    server.client.turn("c", "hi")
    assert provider.requests[0].body["thinking"] == {"type": "disabled"}
    assert provider.requests[1].body["thinking"]["type"] == "adaptive" and provider.requests[1].body["output_config"] == {"effort": "low"}


def test_a_model_that_takes_no_budget_is_asked_for_its_effort(make_server, provider):
    url = provider.url.removesuffix("/v1")
    server = make_server(config={"providers": {"one": {"type": "anthropic", "base_url": url, "api_key": API_KEY}}, "model": "one/by-another-name", "max_retries": 1,
                                 "models": {"one/by-another-name": {"effort": "high"}}})
    provider.plan(anthropic.failure(400, "invalid_request_error", "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" instead."),
                  anthropic.message(anthropic.say("one")))
    server.client.turn("c", "hi")
    assert provider.requests[0].body["thinking"]["type"] == "enabled"
    assert provider.requests[1].body["thinking"]["type"] == "adaptive" and provider.requests[1].body["output_config"] == {"effort": "high"}


def test_an_error_is_shown_when_nothing_can_be_done(make_server, provider):
    server = make_server(provider, config={"max_retries": 1})
    provider.plan(failure(400, "prompt_cache_key is unsupported"), failure(400, "prompt_cache_key is unsupported"))
    assert server.client.turn("c", "hi", status="FAILED").one("error")["code"] == "provider_bad_request"
