"""Independent calls of one round run at once, and the output of a long tool is shown as it is printed."""
import json
import sys
import time

import pytest
from support.provider import call, text, tools
from support.timing import SLACK, SOON, eventually

# A server with slow tools that only read. It answers in the order in which they finish.
WAITING = r"""
import json, sys, threading, time
lock = threading.Lock()
def say(message):
    with lock:
        print(json.dumps(message), flush=True)
def wait(request):
    began = time.monotonic()
    time.sleep(request["params"]["arguments"]["seconds"])
    say({"jsonrpc": "2.0", "id": request["id"], "result": {"content": [{"type": "text", "text": f"{began} {time.monotonic()}"}]}})
for line in sys.stdin:
    request = json.loads(line)
    result = None
    if request.get("method") == "initialize":
        result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}}
    elif request.get("method") == "tools/list":
        schema = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}
        result = {"tools": [{"name": "wait", "inputSchema": schema, "annotations": {"readOnlyHint": True}},
                            {"name": "change", "inputSchema": schema, "annotations": {"readOnlyHint": False}}]}
    elif request.get("method") == "tools/call":
        threading.Thread(target=wait, args=(request,), daemon=True).start()
    elif "id" in request:
        result = {}
    if result is not None:
        say({"jsonrpc": "2.0", "id": request["id"], "result": result})
"""


@pytest.fixture
def server(make_server, provider):
    waiting = {"command": sys.executable, "args": ["-c", WAITING], "trust_annotations": True}
    server = make_server(provider, config={"mcpServers": {"w": waiting}, "approval_mode": "approve_all"})

    def ready():
        return any(tool["name"] == "w__wait" for tool in server.client.get("/tools").json["tools"])

    eventually(ready, "the tools are there", 30 * SLACK)
    return server


def times(stream):
    return [tuple(map(float, e["tool_output"].split())) for e in stream.all("tool_result")]


def test_two_one_second_tools_take_one_second(server, provider, figure):
    provider.plan(tools(call("w__wait", {"seconds": 1}, "a"), call("w__wait", {"seconds": 1.0}, "b")), text("done"))
    began = time.monotonic()
    stream = server.client.turn("c", "go")
    took = time.monotonic() - began
    figure(f"two one-second tools in one round: {took:.2f} s")
    assert 1 <= took < 1.4 + 0.1 * (SLACK - 1)
    assert sorted(e["id"] for e in stream.all("tool_call")) == [e["id"] for e in stream.all("tool_result")] == ["a", "b"]


def test_results_keep_the_order_of_the_calls(server, provider):
    seconds = [0.6, 0.05, 0.3]
    provider.plan(tools(*[call("w__wait", {"seconds": s}, f"call_{n}") for n, s in enumerate(seconds)]), text("done"))
    stream = server.client.turn("c", "go")
    assert [e["id"] for e in stream.all("tool_result")] == ["call_0", "call_1", "call_2"]
    ends = [end for _, end in times(stream)]
    assert ends[1] < ends[2] < ends[0]
    assert [m["tool_call_id"] for m in provider.requests[1].conversation[-3:]] == ["call_0", "call_1", "call_2"]
    names = stream.names(without=("text_delta", "usage"))
    assert names == ["interaction_started", *["tool_call"] * 3, *["tool_result"] * 3, "answer", "interaction_complete"]


def test_what_changes_something_runs_alone(server, provider):
    calls = [("w__wait", 0.2), ("w__change", 0.1), ("w__change", 0.15), ("w__wait", 0.1)]
    provider.plan(tools(*[call(name, {"seconds": s}, f"call_{n}") for n, (name, s) in enumerate(calls)]), text("done"))
    spans = times(server.client.turn("c", "go"))
    assert all(before[1] <= after[0] for before, after in zip(spans, spans[1:]))


def test_cancel_ends_all_of_them(server, provider):
    provider.plan(tools(*[call("w__wait", {"seconds": 30 + n}, f"call_{n}") for n in range(3)]))
    stream = server.client.start("c", "go")
    for _ in range(3):
        stream.until("tool_call")
    began = time.monotonic()
    server.client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")
    assert time.monotonic() - began < 2 * SLACK
    assert [e["id"] for e in stream.all("tool_result")] == ["call_0", "call_1", "call_2"] and all(e["is_error"] for e in stream.all("tool_result"))


def test_killed_while_several_run(make_server, server, provider):
    provider.plan(tools(*[call("w__wait", {"seconds": 30 + n}, f"call_{n}") for n in range(2)]))
    stream = server.client.start("c", "go", on_disconnect="continue")
    for _ in range(2):
        stream.until("tool_call")
    server.kill()
    again = make_server(provider, server.home, config={"approval_mode": "approve_all"})
    stored = again.client.interaction("c", "int_001")
    assert [m["tool_call_id"] for m in stored["final_agent_state"]["messages"][2:]] == ["call_0", "call_1"]
    assert stored["error"]["code"] == "interrupted"


def test_each_line_is_seen_when_it_is_printed(make_server, provider, figure):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    script = "import time\nfor n in range(4): print(time.monotonic(), flush=True); time.sleep(0.25)"
    provider.plan(tools(call("run_shell", {"command": f"python3 -c {json.dumps(script)}".replace("\\n", "\n")})), text("done"))
    stream = server.client.start("c", "go")
    late = []
    for _ in range(4):
        delta = stream.until("tool_output_delta")
        late.append(delta.at - float(delta["content"]))
    stream.finish()
    figure(f"a printed line is seen after {1000 * max(late):.1f} ms")
    assert max(late) < 0.1 * SLACK
