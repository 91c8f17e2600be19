"""Replies in the form of OpenAI's Responses API, and that API's checks of a request without storage.

https://platform.openai.com/docs/api-reference/responses and .../responses-streaming; web search:
https://platform.openai.com/docs/guides/tools-web-search
"""
import hashlib
import json

PATH = "/v1/responses"


def event(kind, **members):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members}, ensure_ascii=False)}\n\n".encode()


def reasoning(summary, sealed, item_id="rs_1"):
    parts = [{"type": "summary_text", "text": summary}] if summary else []
    return {"type": "reasoning", "id": item_id, "summary": parts, "encrypted_content": sealed}


def sealed(action):
    return "ws_" + hashlib.sha256(json.dumps(action, sort_keys=True).encode()).hexdigest()[:16]


def search(query, *urls, status="completed", **action):
    """A search, or with `type` another action. The id tells whether it comes back unchanged."""
    action = {"type": "search", "query": query, **action}
    if urls:
        action["sources"] = [{"type": "url", "url": url} for url in urls]
    return {"type": "web_search_call", "id": sealed(action), "status": status, "action": action}


def cites(text, words, url, title):
    start = text.index(words)
    return {"type": "url_citation", "start_index": start, "end_index": start + len(words), "url": url, "title": title}


def say(text, item_id="msg_1", annotations=(), **more):
    part = {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}
    return {"type": "message", "id": item_id, "status": "completed", "role": "assistant", "content": [part], **more}


def use(name, arguments, call_id="call_1", item_id="fc_1"):
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"type": "function_call", "id": item_id, "call_id": call_id, "name": name, "arguments": raw, "status": "completed"}


def halves(text):
    middle = len(text) // 2
    return [text[:middle], text[middle:]]


def item(place, content, done=True):
    """The events of one item; deltas are split in two."""
    about = {"output_index": place, "item_id": content["id"]}
    if content["type"] == "message":
        steps = [event("response.output_item.added", output_index=place, item={**content, "content": [], "status": "in_progress"}),
                 event("response.content_part.added", **about, content_index=0, part={"type": "output_text", "text": "", "annotations": []})]
        steps += [event("response.output_text.delta", **about, content_index=0, delta=half) for half in halves(content["content"][0]["text"])]
        steps += [event("response.output_text.annotation.added", **about, content_index=0, annotation_index=index, annotation=each)
                  for index, each in enumerate(content["content"][0]["annotations"])]
        steps += [event("response.output_text.done", **about, content_index=0, text=content["content"][0]["text"])]
    elif content["type"] == "web_search_call":
        steps = [event("response.output_item.added", output_index=place, item={**content, "action": None, "status": "in_progress"})]
        steps += [event(f"response.web_search_call.{step}", **about) for step in ("in_progress", "searching", "completed")]
    elif content["type"] == "reasoning":
        steps = [event("response.output_item.added", output_index=place, item={**content, "summary": [], "encrypted_content": ""})]
        for index, part in enumerate(content["summary"]):
            steps += [event("response.reasoning_summary_text.delta", **about, summary_index=index, delta=half) for half in halves(part["text"])]
    else:
        steps = [event("response.output_item.added", output_index=place, item={**content, "arguments": "", "status": "in_progress"})]
        steps += [event("response.function_call_arguments.delta", **about, delta=half) for half in halves(content["arguments"])]
    return steps + ([event("response.output_item.done", output_index=place, item=content)] if done else [])


def ending(items, status="completed", usage=(11, 7), cached=3, **more):
    tokens = {"input_tokens": usage[0], "input_tokens_details": {"cached_tokens": cached}, "output_tokens": usage[1],
              "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": sum(usage)}
    response = {"id": "resp_1", "object": "response", "status": status, "output": list(items), "usage": tokens, "error": None, **more}
    return event(f"response.{status}", response=response)


def message(*items, status="completed", cut=False, **more):
    """A whole answer made of these items; with `cut` the last one is not finished."""
    from .provider import Reply
    steps = [event("response.created", response={"id": "resp_1", "object": "response", "status": "in_progress", "output": []})]
    for place, content in enumerate(items):
        steps += item(place, content, done=not (cut and place == len(items) - 1))
    whole = [*items[:-1], {**items[-1], "status": "incomplete"}] if cut else items
    return Reply([*steps, ending(whole, status, **more)])


def ill_formed(body):
    """What is wrong with a request, or None."""
    if body.get("store") is not False or body.get("stream") is not True:
        return "it is stored, or not streamed"
    waiting, seen = [], set()
    for position, one in enumerate(body["input"]):
        kind = one.get("type")
        if kind == "function_call":
            if not one.get("call_id") or one["call_id"] in seen:
                return f"item {position}: a call without an id of its own"
            json.loads(one["arguments"])
            seen.add(one["call_id"])
            waiting.append(one["call_id"])
        elif kind == "function_call_output":
            output = one.get("output")
            parts = isinstance(output, list) and output and all(part["type"] in ("input_text", "input_image", "input_file") for part in output)
            if one.get("call_id") not in waiting or not (isinstance(output, str) or parts):
                return f"item {position}: a result of no open call"
            waiting.remove(one["call_id"])
        elif kind == "message":
            if waiting and one["role"] == "user":
                return f"item {position}: calls without a result: {waiting}"
            kinds = ("output_text", "refusal") if one["role"] == "assistant" else ("input_text", "input_image", "input_file", "input_audio")
            if not one["content"] or any(part["type"] not in kinds for part in one["content"]):
                return f"item {position}: its content is {one['content']}"
        elif kind == "reasoning":
            behind = body["input"][position + 1:position + 2]
            if not one.get("encrypted_content"):
                return f"item {position}: reasoning that is stored nowhere"
            if not behind or behind[0]["type"] not in ("function_call", "message", "reasoning", "web_search_call") or behind[0].get("role", "assistant") != "assistant":
                return f"item {position}: reasoning without what follows it"
        elif kind == "web_search_call":
            if one.get("status") not in ("completed", "failed") or one.get("id") != sealed(one.get("action")):
                return f"item {position}: a web search that was changed, or is not over: {one}"
        else:
            return f"item {position}: type {kind!r}"
    return f"calls without a result at the end: {waiting}" if waiting else None
