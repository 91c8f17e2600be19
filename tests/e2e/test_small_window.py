"""A model with a small window: it gets shorter descriptions of tools, and a conversation with files can continue indefinitely."""
import json

from support.provider import call, failure, text, tools
from support.server import API_KEY

WINDOW = 4096
TURNS = 50


def tokens(raw):
    """The least that a model would count: a token for every four bytes of the whole request."""
    return len(raw) // 4


class SmallModel:
    """Refuses requests that do not fit its window together with the answer. Works with files: each turn it lists, reads, writes or searches."""

    def __init__(self):
        self.largest, self.refused = 0, 0

    def __call__(self, request):
        size = tokens(request.raw)
        self.largest = max(self.largest, size)
        if size > WINDOW:
            self.refused += 1
            return failure(400, f"This model's maximum context length is {WINDOW} tokens, you asked for {size}", code="context_length_exceeded")
        usage = (size, 40)
        if "tools" not in request.body:
            return text("The user had files read and written.", usage=usage)
        if request.last["role"] == "tool":
            return text("Done: " + request.last["content"][:60], usage=usage)
        number = int(request.last["content"].split()[1])
        made = [call("read_file", {"path": f"notes{number % 5}.txt"}), call("write_file", {"path": f"out{number}.txt", "content": f"line {number}\n" * 20}),
                call("search_files", {"pattern": "needle"}), call("list_files", {})][number % 4]
        return tools({**made, "id": f"call_{number}"})


def test_a_conversation_of_fifty_turns_with_file_tools(make_server, make_home, provider):
    home = make_home()
    for number in range(5):
        (home.workspace / f"notes{number}.txt").write_text(f"note {number} has a needle in it. " * (20 + 40 * number))
    model = SmallModel()
    provider.answer_with(model)
    one = {"type": "openai", "base_url": provider.url, "api_key": API_KEY}
    server = make_server(home=home, config={"providers": {"one": one}, "model": "one/small", "approval_mode": "approve_all", "models": {"one/small": {"context_window": WINDOW}}})
    compacted = 0
    for number in range(TURNS):
        stream = server.client.turn("c", f"turn {number} please")
        compacted += len(stream.all("compacted"))
        assert stream.one("answer")["content"].startswith("Done: ") and not stream.all("error")
        last = stream.all("usage")[-1]
        assert last["context_window"] == WINDOW and last["context_limit"] == WINDOW * 3 // 4 and 0 < last["context_tokens"] < WINDOW
    assert model.refused == 0 and model.largest <= WINDOW and compacted > 3
    assert len(list(home.workspace.glob("out*.txt"))) == 13
    told = provider.requests[0].body["tools"]
    assert {"read_file", "list_files", "search_files", "write_file", "edit_file", "run_shell"} <= {tool["function"]["name"] for tool in told}
    assert len({json.dumps(request.body["tools"]) for request in provider.requests if "tools" in request.body}) == 1, "the tools are the same in each request"
    assert 'msg="the model has little room: it is told of its tools in short"' in server.log() and 'model="small"' in server.log()
    whole = server.client.get("/tools").json["tools"]
    assert len(json.dumps(told)) < len(json.dumps(whole)) / 2


def test_a_model_with_room_is_told_all(make_server, provider):
    server = make_server(provider, config={"models": {"test/scripted": {"context_window": 16384}}})
    provider.plan(text("hello"))
    server.client.turn("c", "hi")
    told = {tool["function"]["name"]: tool["function"]["description"] for tool in provider.requests[0].body["tools"]}
    every = {tool["name"]: tool["description"] for tool in server.client.get("/tools").json["tools"]}
    assert told == {name: description for name, description in every.items() if name not in ("apply_patch", "present_plan")}, "edit_file stands for the one, the mode plan has the other"
    assert "little room" not in server.log()


def test_how_full_the_context_is_stands_in_the_record(make_server, provider):
    server = make_server(provider, config={"models": {"test/scripted": {"context_window": 8192}}})
    provider.plan(text("hello", usage=(5000, 100)), text("hello", usage=(5200, 100)))
    told = server.client.turn("c", "hi").one("usage")
    assert (told["context_tokens"], told["context_window"], told["context_limit"]) == (5100, 8192, 6144)
    unknown = server.client.turn("c", "hi", model="test/other").one("usage")
    assert "context_tokens" not in unknown.data
    stored = server.client.interaction("c", "int_001")["agent_events"]
    assert [event["context_tokens"] for event in stored if event["type"] == "USAGE"] == [5100]
    assert server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"] is True
