"""Replies in the form of Anthropic's Messages API, and that API's checks of a request.

https://platform.claude.com/docs/en/build-with-claude/streaming and .../thinking
"""
import json
import re

PATH = "/v1/messages"
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")


def event(kind, **members):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members}, ensure_ascii=False)}\n\n".encode()


def start(**usage):
    counts = {"input_tokens": 11, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1, **usage}
    return event("message_start", message={"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
                                           "stop_reason": None, "stop_sequence": None, "usage": counts})


def ending(stop_reason="end_turn", output_tokens=7):
    return [event("message_delta", delta={"stop_reason": stop_reason, "stop_sequence": None}, usage={"output_tokens": output_tokens}),
            event("message_stop")]


def halves(text):
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def block(index, content):
    """The events of one block of a message; deltas are split in two."""
    begin = lambda value: event("content_block_start", index=index, content_block=value)  # noqa: E731
    change = lambda kind, **value: event("content_block_delta", index=index, delta={"type": kind, **value})  # noqa: E731
    if content["type"] == "text":
        steps = [begin({"type": "text", "text": ""}), *(change("text_delta", text=half) for half in halves(content["text"]))]
    elif content["type"] == "thinking":
        steps = [begin({"type": "thinking", "thinking": "", "signature": ""})]
        steps += [change("thinking_delta", thinking=half) for half in halves(content["thinking"])]
        steps += [change("signature_delta", signature=content["signature"])]
    elif content["type"] == "tool_use":
        raw = content["input"] if isinstance(content["input"], str) else json.dumps(content["input"])
        steps = [begin({**content, "input": {}}), change("input_json_delta", partial_json="")]
        steps += [change("input_json_delta", partial_json=half) for half in halves(raw)]
    else:
        steps = [begin(content)]
    return steps + [event("content_block_stop", index=index)]


def thinking(text, signature):
    return {"type": "thinking", "thinking": text, "signature": signature}


def redacted(data):
    return {"type": "redacted_thinking", "data": data}


def say(text):
    return {"type": "text", "text": text}


def use(name, arguments, call_id="toolu_1"):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def message(*blocks, stop_reason=None, **usage):
    """A whole answer made of these blocks, one event per step."""
    from .provider import Reply
    reason = stop_reason or ("tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn")
    steps = [start(**usage), event("ping")]
    for index, content in enumerate(blocks):
        steps += block(index, content)
    return Reply(steps + ending(reason))


def failure(status, kind, words="no", headers=None):
    from .provider import Reply
    body = json.dumps({"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}).encode()
    return Reply([body], status, headers, "application/json")


def _content_problem(place, role, blocks, open_calls):
    if not isinstance(blocks, list) or not blocks:
        return f"{place}: no content"
    results_over = False
    for content in blocks:
        kind = content.get("type")
        allowed = ("text", "tool_result", "image", "document") if role == "user" else ("text", "tool_use", "thinking", "redacted_thinking")
        if kind not in allowed:
            return f"{place}: a block of type {kind} from the {role}"
        if kind in ("image", "document"):
            results_over = True
        elif kind == "text":
            results_over = True
            if not content["text"].strip():
                return f"{place}: a text without text"
        elif kind == "tool_use":
            if not NAME.match(content["id"]) or not NAME.match(content["name"]) or not isinstance(content["input"], dict):
                return f"{place}: a call that is refused: {content}"
            open_calls.append(content["id"])
        elif kind == "tool_result":
            if results_over:
                return f"{place}: a result behind a text"
            if content["tool_use_id"] not in open_calls:
                return f"{place}: a result of no open call"
            open_calls.remove(content["tool_use_id"])
        elif kind == "thinking" and (content.get("signature") == "" or "cache_control" in content):  # some providers do not sign
            return f"{place}: thinking without its signature, or marked for the cache"
    return None


def ill_formed(body):
    """Why the API would refuse a request, or None."""
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        return "no max_tokens"
    if len(re.findall('"cache_control"', json.dumps(body))) > 4:
        return "more than four cache marks"
    for tool in body.get("tools", []):
        if not NAME.match(tool["name"]) or tool["input_schema"].get("type") != "object":
            return f"tool {tool}"
    open_calls = []
    for position, one in enumerate(body["messages"]):
        if one["role"] not in ("user", "assistant"):
            return f"message {position}: role {one['role']}"
        if position == 0 and one["role"] != "user":
            return "the first message is not the user's"
        if open_calls and one["role"] == "assistant":
            return f"message {position}: calls without a result: {open_calls}"
        problem = _content_problem(f"message {position}", one["role"], one["content"], open_calls)
        if problem:
            return problem
        if open_calls and one["role"] == "user":
            return f"message {position}: calls without a result: {open_calls}"
    return f"calls without a result at the end: {open_calls}" if open_calls else None
