"""Replies in the form of Anthropic's Messages API, and that API's checks of a request.

https://platform.claude.com/docs/en/build-with-claude/streaming and .../thinking; web search:
https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool and .../server-tools
"""
import hashlib
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
        steps = [begin({"type": "text", "text": "", **({"citations": []} if "citations" in content else {})})]
        steps += [change("text_delta", text=half) for half in halves(content["text"])]
        steps += [change("citations_delta", citation=citation) for citation in content.get("citations", [])]
    elif content["type"] == "thinking":
        steps = [begin({"type": "thinking", "thinking": "", "signature": ""})]
        steps += [change("thinking_delta", thinking=half) for half in halves(content["thinking"])]
        steps += [change("signature_delta", signature=content["signature"])]
    elif content["type"] in ("tool_use", "server_tool_use"):
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


def say(text, *citations):
    return {"type": "text", "text": text, **({"citations": list(citations)} if citations else {})}


def sealed(*parts):
    return hashlib.sha256("\n".join(parts).encode(errors="replace")).hexdigest()


def search(query, call_id="srvtoolu_1"):
    return {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": query}}


def page(url, title):
    return {"type": "web_search_result", "url": url, "title": title, "encrypted_content": sealed(url, title), "page_age": None}


def found(*pages, call_id="srvtoolu_1", error=None):
    content = {"type": "web_search_tool_result_error", "error_code": error} if error else list(pages)
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": content}


def cites(one, words):
    return {"type": "web_search_result_location", "url": one["url"], "title": one["title"], "encrypted_index": sealed(one["url"], words),
            "cited_text": words}


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
        allowed = ("text", "tool_result", "image", "document") if role == "user" else (
            "text", "tool_use", "thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result")
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


def _search_problem(body):
    """What the API finds wrong with its own blocks: changed ones, a call without its result, a result without its call, a citation of no result."""
    offered = any(tool.get("type") == "web_search_20250305" for tool in body.get("tools", []))
    blocks = [(at, block) for at, one in enumerate(body["messages"]) if isinstance(one["content"], list) for block in one["content"]]
    last = max((at for at, one in enumerate(body["messages"]) if one["role"] == "assistant"), default=-1)
    calls = {block["id"]: at for at, block in blocks if block["type"] == "server_tool_use"}
    results = {block["tool_use_id"]: block for _, block in blocks if block["type"] == "web_search_tool_result"}
    if (calls or results) and not offered:
        return "blocks of a web search, and no web search"
    for call, at in calls.items():
        if call not in results and at != last:
            return f"`web_search` tool use with id {call} was found without a corresponding `web_search_tool_result` block"
    known = set()
    for call, result in results.items():
        if call not in calls:
            return f"unexpected `tool_use_id` found in `web_search_tool_result` blocks: {call}"
        for one in result["content"] if isinstance(result["content"], list) else []:
            if one["encrypted_content"] != sealed(one["url"], one["title"]):
                return f"a changed web_search_result: {one}"
            known.add(one["url"])
    for at, block in blocks:
        if block["type"] == "server_tool_use" and (not isinstance(block["input"], dict) or "query" not in block["input"]):
            return f"a call that is refused: {block}"
        for one in block.get("citations", []):
            if one["encrypted_index"] != sealed(one["url"], one["cited_text"]) or one["url"] not in known:
                return f"a changed citation, or one of no result: {one}"
    return None


def ill_formed(body):
    """Why the API would refuse a request, or None."""
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        return "no max_tokens"
    if len(re.findall('"cache_control"', json.dumps(body))) > 4:
        return "more than four cache marks"
    for tool in body.get("tools", []):
        if tool.get("type") == "web_search_20250305":
            if tool["name"] != "web_search" or ("allowed_domains" in tool and "blocked_domains" in tool):
                return f"tool {tool}"
            continue
        if not NAME.match(tool["name"]) or tool["input_schema"].get("type") != "object":
            return f"tool {tool}"
    if problem := _search_problem(body):
        return problem
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
