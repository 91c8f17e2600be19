"""Reads sessions of other tools by itself, to compare what `reprise import` made of them. Only the calls and results are read.

`sessions(tool, path)` gives (calls, results) of each session in a file: counts of (name, arguments) and of the results' texts.
"""
import collections
import html
import json
import pathlib
import re


UNKNOWN = "The result of this call is not known."  # of a call that has none in the source


def rows(path):
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            assert line is not found and not line.endswith("}\n")
    return found


def plain(value):
    """Arguments in one form, whether they were JSON or text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return value
    return json.dumps(value or {}, sort_keys=True)


def joined(content):
    if isinstance(content, str):
        return content
    content = [content] if isinstance(content, dict) else content or []
    return "\n".join(part if isinstance(part, str) else part["text"] for part in content if isinstance(part, str) or part.get("text"))


class Found:
    def __init__(self):
        self.calls, self.results = collections.Counter(), collections.Counter()

    def call(self, name, arguments):
        self.calls[name or "tool", plain(arguments)] += 1

    def result(self, text):
        self.results[text] += 1

    def blocks(self, content):
        for block in content if isinstance(content, list) else []:
            if block["type"].endswith("tool_use"):
                self.call(block["name"], block["input"])
            elif block["type"].endswith("tool_result"):
                self.result(joined(block.get("content")))

    def pair(self):
        return self.calls, self.results


def claude_code(path):
    found = Found()
    seen = set()
    for row in rows(path):
        if row.get("type") in ("user", "assistant") and not row.get("isMeta"):
            found.blocks(row["message"].get("content") if isinstance(row["message"], dict) else None)
        data = row["data"] if isinstance(row.get("data"), dict) else {}
        if data.get("type") == "agent_progress" and not (path.parent / path.stem / "subagents" / f"agent-{data.get('agentId')}.jsonl").exists():
            found.blocks(data["message"].get("message", {}).get("content"))
        result = row.get("toolUseResult")
        agent = result.get("agentId") if isinstance(result, dict) else None
        for beside in (path.parent / path.stem / "subagents" / f"agent-{agent}.jsonl", path.parent / f"agent-{agent}.jsonl"):
            if agent and beside.exists() and beside not in seen:
                seen.add(beside)
                for each in rows(beside):
                    found.blocks(each.get("message", {}).get("content"))
    return [found.pair()]


def codex(path):
    found = Found()
    for row in rows(path):
        item = row.get("payload") if row.get("type") == "response_item" else row
        kind = item.get("type", "")
        if kind == "custom_tool_call":
            found.call(item["name"], {"input": item["input"]})
        elif kind in ("function_call", "local_shell_call"):
            found.call(item.get("name", "local_shell"), item.get("arguments") or item.get("action"))
        elif kind.endswith("call_output"):
            output = item["output"]
            if isinstance(output, str) and output.startswith('{"output":'):
                output = json.loads(output)["output"]
            plain_object = isinstance(output, dict) and "text" not in output
            found.result(output.get("content", "") if plain_object else joined(output))
    return [found.pair()]


def goose(path):
    document = json.loads(path.read_text()) if path.suffix == ".json" else None
    found = Found()
    for message in document["conversation"] if document else rows(path):
        for part in message.get("content", []):
            if part["type"] == "toolRequest":
                call = part["toolCall"].get("value") or {}
                found.call(call.get("name"), call.get("arguments"))
            elif part["type"] == "toolResponse":
                outcome = part["toolResult"]
                value = outcome.get("value")
                found.result(joined(value["content"] if isinstance(value, dict) else value) if outcome["status"] == "success" else outcome["error"])
    return [found.pair()]


def told(response):
    return response.get("output") or response.get("error") or json.dumps(response)


def gemini(path):
    found = Found()
    document = json.loads(path.read_text()) if path.suffix == ".json" else rows(path)
    if path.name.startswith("checkpoint"):
        for content in document:
            for part in content["parts"]:
                if "functionCall" in part:
                    found.call(part["functionCall"]["name"], part["functionCall"]["args"])
                elif "functionResponse" in part:
                    found.result(told(part["functionResponse"]["response"]))
        return [found.pair()]
    for message in document["messages"] if isinstance(document, dict) else document:
        for call in message.get("toolCalls", []):
            found.call(call["name"], call["args"])
            if call.get("result") is not None or call["status"] in ("cancelled", "error"):
                found.result("\n".join(told(part["functionResponse"]["response"]) for part in call.get("result") or []))
    return [found.pair()]


def cline(path):
    found = Found()
    for message in json.loads(path.read_text()):
        found.blocks(message["content"])
        for block in message["content"] if message["role"] == "user" and isinstance(message["content"], list) else []:
            text = block.get("text", "")
            if text.startswith("[") and not text.startswith("[TASK") and "] Result:" in text:
                found.result(text.partition("] Result:")[2].strip())
            elif re.match(r"Tool \[\w+\] was not executed", text):
                found.result(text)
    return [found.pair()]


def chatgpt(path):
    all_found = []
    document = json.loads(path.read_text())
    for chat in document if isinstance(document, list) else [document]:
        found = Found()
        mapping = chat["mapping"]
        results = {}  # by the call before them

        def reached(node, seen=()):
            parent = mapping[node].get("parent")
            return parent is None or parent not in mapping or (parent not in seen and reached(parent, (*seen, node)))
        for key, node in mapping.items():
            message = node["message"]
            if not message or not reached(key) or (message.get("metadata") or {}).get("is_visually_hidden_from_conversation"):
                continue
            content = message["content"]
            text = "\n".join([part for part in content.get("parts", []) if isinstance(part, str)] or [content.get("text") or content.get("result") or ""])
            if message["author"]["role"] == "tool":
                before = node["parent"]
                while before in mapping and (mapping[before]["message"] or {}).get("author", {}).get("role") == "tool":
                    before = mapping[before]["parent"]
                results.setdefault(before, []).append(text)
            elif message["author"]["role"] == "assistant" and message.get("recipient", "all") != "all":
                found.call(message["recipient"], text if text.startswith("{") else {"input": text})
        for texts in results.values():
            found.result("\n".join(dict.fromkeys(texts)))
        if any(node["message"] and reached(key) and node["message"]["author"]["role"] != "system" for key, node in mapping.items()):
            all_found.append(found.pair())
    return all_found


def claude(path):
    all_found = []
    for chat in json.loads(path.read_text()):
        found = Found()
        for message in chat["chat_messages"]:
            found.blocks(message["content"])
        if chat["chat_messages"]:
            all_found.append(found.pair())
    return all_found


def open_webui(path):
    all_found = []
    document = json.loads(path.read_text())
    for chat in document if isinstance(document, list) else [document]:
        found = Found()
        for message in chat.get("chat", chat)["history"]["messages"].values():
            for item in message.get("output") or []:
                if item["type"] == "function_call":
                    found.call(item["name"], item["arguments"])
                elif item["type"] == "function_call_output":
                    found.result(joined(item["output"]))
            for tag in [] if message.get("output") else re.findall(r'<details type="tool_calls"[^>]*>', message["content"]):
                values = {name: html.unescape(value) for name, value in re.findall(r'(\w+)="([^"]*)"', tag)}
                found.call(values["name"], values["arguments"])
                if values.get("done") == "true":
                    result = values.get("result", "")
                    try:
                        result = json.loads(result) if isinstance(json.loads(result), str) else result
                    except ValueError:
                        pass
                    found.result(result)
        all_found.append(found.pair())
    return all_found


def librechat(path):
    found = Found()

    def take(messages):
        for message in messages:
            for part in message.get("content") or []:
                if part["type"] == "tool_call":
                    call = part["tool_call"]
                    made = call.get("function") or call
                    found.call(made["name"], made.get("args") or made.get("arguments"))
                    if made.get("output") is not None:
                        found.result(made["output"])
            take(message.get("children", []))
    document = json.loads(path.read_text())
    take(document.get("messages") or document["messagesTree"])
    return [found.pair()]


def atif(path):
    found = Found()
    document = json.loads(path.read_text())
    named = {ref.get("trajectory_id") for step in document["steps"] for result in (step.get("observation") or {}).get("results", [])
             for ref in result.get("subagent_trajectory_ref") or []}
    for trajectory in [document, *[each for each in document.get("subagent_trajectories") or [] if each.get("trajectory_id") in named]]:
        for step in trajectory["steps"]:
            for call in step.get("tool_calls") or []:
                found.call(call["function_name"], call["arguments"])
            for number, result in enumerate((step.get("observation") or {}).get("results", [])):
                if result.get("source_call_id") or number < len(step.get("tool_calls") or []):
                    found.result(joined(result.get("content")))
    return [found.pair()]


def opencode(path):
    found = Found()

    def take(parts):
        for part in parts:
            if part["type"] != "tool":
                continue
            state = part["state"]
            found.call(part["tool"], state["input"])
            if state["status"] in ("completed", "error"):
                found.result(state["output" if state["status"] == "completed" else "error"])
            child = (state.get("metadata") or {}).get("sessionId")
            if child and "messages" not in document:
                stored(child)

    def stored(session):
        for message in sorted((storage / "message" / session).glob("*.json")):
            name = json.loads(message.read_text())["id"]
            take([json.loads(each.read_text()) for each in sorted((storage / "part" / name).glob("*.json"))])
    document = json.loads(path.read_text())
    storage = path.parent.parent.parent
    if "messages" in document:
        for message in document["messages"]:
            take(message["parts"])
    else:
        stored(document["id"])
    return [found.pair()]


READERS = {"claude-code": claude_code, "codex": codex, "goose": goose, "gemini": gemini, "cline": cline, "chatgpt": chatgpt, "claude": claude,
           "open-webui": open_webui, "librechat": librechat, "atif": atif, "opencode": opencode}


def sessions(tool, path):
    return READERS[tool](pathlib.Path(path))


def of_chat(interactions):
    """The same of an imported chat. A branch repeats what leads to it, which counts once."""
    found = Found()
    calls = {}
    for interaction in interactions:
        for event in interaction["agent_events"]:
            place = event.get("call_id") or ""
            step = event["event"] if event["type"] == "NESTED" else event
            if step["type"] == "TOOL_CALL":
                calls.setdefault((place, step["id"], step["tool_name"], step["tool_input"]), [])
            elif step["type"] == "TOOL_RESULT" and step["tool_output"] != UNKNOWN:
                key = next(key for key in reversed(calls) if key[:2] == (place, step["id"]))
                if step["tool_output"] not in calls[key]:
                    calls[key].append(step["tool_output"])
    for (_, _, name, arguments), results in calls.items():
        found.call(name, arguments)
        for result in results:
            found.result(result)
    return found.pair()
