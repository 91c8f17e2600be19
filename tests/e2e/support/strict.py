"""Refusals of real providers, with their own words and status. The scripted provider refuses the same in the tests that are chosen.

`refusal(path, body)` gives the reply that OpenAI (chat completions, Responses) or Anthropic would give to a request that any known
strict server refuses, or None. The words are those of OpenAI, Anthropic, Mistral, Groq and DeepSeek.
"""
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess

from . import anthropic, responses

SAMPLE = 4  # one test in four; each commit draws others
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
MOST_TOOLS = 128
TYPES = {"object", "array", "string", "number", "integer", "boolean", "null"}
SUBSCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")


@functools.cache
def commit():
    root = pathlib.Path(__file__).resolve().parents[3]
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "none"


def is_chosen(test, wanted=None, of=None):
    """Whether this test runs behind the strict provider: all with REPRISE_E2E_STRICT=all, none with `none`, otherwise a sample that depends on the commit."""
    wanted = os.environ.get("REPRISE_E2E_STRICT", "") if wanted is None else wanted
    if wanted in ("all", "none"):
        return wanted == "all"
    return drawn(test, SAMPLE, of) == 0


def drawn(test, parts, of=None, byte=0):
    """Which of `parts` parts a test belongs to. The division depends on the commit."""
    return hashlib.sha256(f"{of or commit()} {test}".encode()).digest()[byte] % parts


def schema_problem(schema, place="()", top=True):
    """The fault that OpenAI and Anthropic find in the schema of a tool's arguments, or None."""
    if not isinstance(schema, dict):
        return f"In context={place}, {schema!r} is not of type 'object', 'boolean'"
    if top and schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'"
    if top and not isinstance(schema.get("properties"), dict):
        return "In context=(), object schema missing properties"
    found = [key for key in ("oneOf", "anyOf", "allOf", "enum", "not") if top and key in schema]
    if found:
        return f"schema must have type 'object' and not have '{found[0]}' at the top level"
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in TYPES:
            return f"In context={place}, {kind!r} is not valid under any of the given schemas"
    if "array" in (kinds if isinstance(kinds, list) else [kinds]) and not isinstance(schema.get("items"), dict):
        return f"In context={place}, array schema missing items"
    for key, value in schema.items():
        if value is None and key not in ("default", "const"):
            return f"In context={place}, None is not of type 'object', 'boolean' ({key})"
    if "required" in schema and (not isinstance(schema["required"], list) or not all(isinstance(each, str) for each in schema["required"])):
        return f"In context={place}, {schema['required']!r} is not of type 'array'"
    if "enum" in schema and not schema["enum"]:
        return f"In context={place}, [] should be non-empty"
    below = [(name, each) for key in ("properties", "$defs", "definitions") for name, each in schema.get(key, {}).items()]
    below += [(key, each) for key in SUBSCHEMAS for each in schema.get(key, [])]
    below += [("items", schema["items"])] if "items" in schema else []
    for name, each in below:
        if each is not True and each is not False and (problem := schema_problem(each, f"('properties', {name!r})", top=False)):
            return problem
    return None


def openai(message, param=None, code=None, status=400):
    from .provider import Reply
    body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    return Reply([json.dumps(body).encode()], status, content_type="application/json")


def of_tools(functions, place):
    """Checks tools of chat completions and Responses; `functions` are (name, schema)."""
    if len(functions) > MOST_TOOLS:
        return openai(f"Invalid 'tools': array too long. Expected an array with maximum length {MOST_TOOLS}, but got an array with length {len(functions)} instead.",
                      "tools", "array_above_max_length")
    seen = set()
    for number, (name, schema) in enumerate(functions):
        if not NAME.match(name):
            return openai(f"Invalid '{place(number)}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
                          f"{place(number)}.name", "invalid_value")
        if name in seen:
            return openai(f"Invalid request: tool names must be unique, {name} is there twice", f"{place(number)}.name")
        seen.add(name)
        if problem := schema_problem(schema):
            return openai(f"Invalid schema for function '{name}': {problem}.", f"{place(number)}.parameters", "invalid_function_parameters")
    return None


def is_object(text):
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


def is_empty(content):
    if isinstance(content, str):
        return not content.strip()
    return not content or any(part.get("type") == "text" and not part["text"].strip() for part in content)


def of_chat_message(at, message, waiting):
    """Checks one message of a conversation; `waiting` has the ids of calls without a result."""
    role = message.get("role")
    if role == "tool":
        if message.get("tool_call_id") not in waiting:
            return openai("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", f"messages.[{at}].role")
        if is_empty(message.get("content")):
            return openai(f"Invalid content for messages[{at}]: a tool message must not be empty", f"messages.[{at}].content")
        waiting.remove(message["tool_call_id"])
        return None
    if waiting:
        return openai("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not "
                      f"have response messages: {', '.join(waiting)}", f"messages.[{at}].role")
    if role not in ("system", "developer", "user", "assistant"):
        return openai(f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", f"messages[{at}].role")
    if "tool_calls" in message and not message["tool_calls"]:
        return openai(f"Invalid 'messages[{at}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.",
                      f"messages[{at}].tool_calls", "empty_array")
    if role == "assistant" and not message.get("tool_calls") and is_empty(message.get("content")):
        return openai("Assistant message must have either content or tool_calls, but not none.", f"messages[{at}]")  # Mistral's words
    if role == "assistant" and message.get("content") == "":
        return openai(f"messages[{at}].content: text content must be non-empty", f"messages[{at}].content")
    if role != "assistant" and is_empty(message.get("content")):
        return openai(f"Invalid value for 'content': expected a non-empty string in messages[{at}].", f"messages[{at}].content")
    for number, one in enumerate(message.get("tool_calls") or []):
        place = f"messages[{at}].tool_calls[{number}]"
        if len(one["id"]) > 40:
            return openai(f"Invalid '{place}.id': string too long. Expected a string with maximum length 40, but got a string with length {len(one['id'])} instead.", place)
        if one["id"] in waiting:
            return openai(f"Duplicate tool_call_id {one['id']} in {place}", place)
        if not NAME.match(one["function"]["name"]):
            return openai(f"Invalid '{place}.function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", place)
        if not is_object(one["function"]["arguments"]):
            return openai(f"Failed to parse tool call arguments as JSON object in {place}.function.arguments", place)
        waiting.append(one["id"])
    return None


def of_chat(body):
    if not body["messages"]:
        return openai("Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.", "messages", "empty_array")
    if "tools" in body and not body["tools"]:
        return openai("[] is too short - 'tools'", "tools")
    functions = [(tool["function"]["name"], tool["function"].get("parameters", {"type": "object", "properties": {}})) for tool in body.get("tools", [])]
    if problem := of_tools(functions, lambda number: f"tools[{number}].function"):
        return problem
    waiting = []
    for at, message in enumerate(body["messages"]):
        if problem := of_chat_message(at, message, waiting):
            return problem
    if waiting:
        return openai("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not "
                      f"have response messages: {', '.join(waiting)}", "messages")
    return None


def of_responses(body):
    if problem := of_tools([(tool["name"], tool["parameters"]) for tool in body.get("tools", []) if tool["type"] == "function"], lambda number: f"tools[{number}]"):
        return problem
    open_calls, seen = {}, set()
    for at, item in enumerate(body["input"]):
        kind = item.get("type", "message")
        if kind == "function_call":
            if item["call_id"] in seen:
                return openai(f"Duplicate item found with call_id {item['call_id']}. Remove duplicate items from your input and try again.", "input")
            if len(item["call_id"]) > 64:
                return openai(f"Invalid 'input[{at}].call_id': string too long. Expected a string with maximum length 64.", f"input[{at}].call_id", "string_above_max_length")
            if not re.match(r"^[a-zA-Z0-9_-]{1,128}$", item["name"]):
                return openai(f"Invalid 'input[{at}].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", f"input[{at}].name")
            if not is_object(item["arguments"]):
                return openai(f"Invalid 'input[{at}].arguments': expected a JSON object.", f"input[{at}].arguments")
            seen.add(item["call_id"])
            open_calls[item["call_id"]] = at
        elif kind == "function_call_output":
            if item["call_id"] not in open_calls:
                return openai(f"No tool call found for function call output with call_id {item['call_id']}.", "input")
            del open_calls[item["call_id"]]
        elif kind == "message":
            if not item["content"] or any("text" in part and not part["text"].strip() for part in item["content"]):
                return openai(f"Invalid 'input[{at}].content': empty content.", f"input[{at}].content")
            if item["role"] == "assistant" and "id" in item and not item["id"].startswith("msg"):
                return openai(f"Invalid 'input[{at}].id': '{item['id']}'. Expected an ID that begins with 'msg'.", f"input[{at}].id")
        elif kind == "reasoning":
            behind = body["input"][at + 1:at + 2]
            if not behind or behind[0].get("type") == "function_call_output" or behind[0].get("role", "assistant") != "assistant":
                return openai(f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.", "input")
    if open_calls:
        return openai(f"No tool output found for function call {next(iter(open_calls))}.", "input")
    return None


def anthropic_error(words):
    return anthropic.failure(400, "invalid_request_error", words)


def of_anthropic_block(place, role, content, last_role_thinks):
    kind = content.get("type")
    if kind == "text" and not content["text"]:
        return anthropic_error("messages: text content blocks must be non-empty")
    if kind == "text" and not content["text"].strip():
        return anthropic_error("messages: text content blocks must contain non-whitespace text")
    if kind == "thinking" and not content.get("signature"):
        return anthropic_error(f"{place}.thinking.signature: Field required")
    if kind in ("thinking", "redacted_thinking", "tool_use") and role != "assistant":
        return anthropic_error(f"messages: `{kind}` blocks can only be in `assistant` messages")
    if kind in ("tool_result", "image", "document") and role != "user":
        return anthropic_error(f"messages: `{kind}` blocks can only be in `user` messages")
    if kind == "tool_use":
        for member, value in (("id", content["id"]), ("name", content["name"])):
            if not anthropic.NAME.match(value):
                return anthropic_error(f"{place}.tool_use.{member}: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not isinstance(content["input"], dict):
            return anthropic_error(f"{place}.tool_use.input: Input should be a valid dictionary")
    if "cache_control" in content and kind in ("thinking", "redacted_thinking"):
        return anthropic_error(f"{place}.thinking.cache_control: Extra inputs are not permitted")
    return None


def of_anthropic(body):
    names = set()
    for number, tool in enumerate(body.get("tools", [])):
        if not anthropic.NAME.match(tool["name"]):
            return anthropic_error(f"tools.{number}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if tool["name"] in names:
            return anthropic_error("tools: Tool names must be unique.")
        names.add(tool["name"])
        if tool.get("type") == "web_search_20250305":
            continue
        schema = tool["input_schema"]
        if schema.get("type") != "object":
            return anthropic_error(f"tools.{number}.custom.input_schema.type: Input should be 'object'")
        found = [key for key in ("oneOf", "allOf", "anyOf") if key in schema]
        if found:
            return anthropic_error(f"tools.{number}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level")
        if schema_problem(schema):
            return anthropic_error(f"tools.{number}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12")
    if not body["messages"]:
        return anthropic_error("messages: at least one message is required")
    if body["messages"][0]["role"] != "user":
        return anthropic_error("messages: first message must use the \"user\" role")
    waiting, seen = [], set()
    thinks = body.get("thinking", {}).get("type") == "enabled"
    for at, message in enumerate(body["messages"]):
        place, role = f"messages.{at}", message["role"]
        if role not in ("user", "assistant"):
            return anthropic_error(f"{place}: Input tag '{role}' found using 'role' does not match any of the expected tags: 'user', 'assistant'")
        if at > 0 and body["messages"][at - 1]["role"] == role:
            return anthropic_error("messages: roles must alternate between \"user\" and \"assistant\", but found multiple "
                                   f"\"{role}\" roles in a row")
        if not message["content"]:
            return anthropic_error(f"{place}: all messages must have non-empty content except for the optional final assistant message")
        results = [each["tool_use_id"] for each in message["content"] if each["type"] == "tool_result"]
        for call in results:
            if call not in waiting:
                return anthropic_error(f"{place}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each `tool_result` block must have a "
                                       "corresponding `tool_use` block in the previous message.")
        if set(waiting) - set(results):
            return anthropic_error(f"{place}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(waiting)}. Each `tool_use` block "
                                   "must have a corresponding `tool_result` block in the next message.")
        if len(results) != len(set(results)):
            return anthropic_error(f"{place}: each tool_use must have a single result. Found multiple `tool_result` blocks")
        waiting = []
        for number, content in enumerate(message["content"]):
            if problem := of_anthropic_block(f"{place}.content.{number}", role, content, thinks):
                return problem
            if content["type"] == "tool_use":
                if content["id"] in seen:
                    return anthropic_error("messages: `tool_use` ids must be unique")
                seen.add(content["id"])
                waiting.append(content["id"])
    if waiting:
        return anthropic_error(f"messages.{len(body['messages']) - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(waiting)}.")
    return None


def refusal(path, body):
    """The reply of a strict provider that refuses this request; None if it accepts it."""
    check = {anthropic.PATH: of_anthropic, responses.PATH: of_responses, "/v1/chat/completions": of_chat}.get(path.split("?")[0])
    return check(body) if check else None
