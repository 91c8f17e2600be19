"""research: a sub-agent with its own context and only tools that read, shown as nested events of its call."""
import json
import time

import pytest
from support.provider import Gate, call, text, tools
from support.timing import SLACK


def research(question="How many files?", call_id="r"):
    return call("research", {"question": question}, call_id)


def steps(events, call_id="r"):
    """(type, round) of the nested steps of a call, without the tokens."""
    return [(e["event"]["type"], e["event"]["round_index"]) for e in events if e["call_id"] == call_id and e["event"]["type"] != "USAGE"]


def test_a_sub_agent_answers(server, provider):
    (server.home.workspace / "notes.txt").write_text("hello")
    provider.plan(tools(research()), tools(call("list_files", {}, "l"), say="I look."), text("One file."), text("There is one."))
    stream = server.client.turn("c", "count")
    nested = stream.all("nested")
    assert steps(nested) == [("MESSAGE", 0), ("TOOL_CALL", 0), ("TOOL_RESULT", 0), ("ANSWER", 1)]
    assert nested[1]["event"] == {"type": "TOOL_CALL", "round_index": 0, "id": "l", "tool_name": "list_files", "tool_input": "{}"}
    assert "notes.txt" in nested[2]["event"]["tool_output"]
    result = stream.one("tool_result")
    assert (result["id"], result["tool_output"], result["is_error"]) == ("r", "One file.", False)
    names = stream.names(without=("usage", "text_delta"))
    assert names.index("tool_call") < names.index("nested") and names[names.index("tool_result") - 1] == "nested"
    # It has its own context and tools.
    own = provider.requests[1]
    assert own.conversation == [{"role": "user", "content": "How many files?"}]
    offered = {t["function"]["name"] for t in own.body["tools"]}
    assert {"list_files", "read_file", "search_files"} <= offered
    assert not offered & {"write_file", "run_shell", "http_get", "ask_human", "manage_tasks", "update_plan", "research"}
    assert [m["role"] for m in provider.requests[3].conversation] == ["user", "assistant", "tool"]
    # Its tokens count, and its steps are stored.
    stored = server.client.interaction("c", "int_001")
    assert stored["usage"] == {"input_tokens": 44, "output_tokens": 28}
    assert steps([e for e in stored["agent_events"] if e["type"] == "NESTED"]) == steps(nested)
    assert [m["role"] for m in server.home.checkpoint("c", "int_001")["final_agent_state"]["messages"]] == ["user", "assistant", "tool", "assistant"]


def test_nothing_is_done_behind_a_persons_back(server, provider):
    provider.plan(tools(research()), tools(call("write_file", {"path": "x", "content": "1"}, "w"), call("run_shell", {"command": "touch x"}, "s"),
                                           call("ask_human", {"question": "?"}, "a"), call("research", {"question": "?"}, "n")),
                  text("I could not."), text("ok"))
    stream = server.client.turn("c", "go")
    results = [e["event"] for e in stream.all("nested") if e["event"]["type"] == "TOOL_RESULT"]
    assert [r["id"] for r in results] == ["w", "s", "a", "n"] and all(r["is_error"] for r in results)
    assert not stream.all("approval_required") and not stream.all("input_required") and not (server.home.workspace / "x").exists()


def test_a_sub_agent_that_does_not_come_to_an_answer(server, provider):
    provider.plan(tools(research()), *(tools(call("echo", {"text": str(i)}, f"e{i}")) for i in range(8)), text("a pity"))
    stream = server.client.turn("c", "go")
    result = stream.one("tool_result")
    assert result["is_error"] and "within 8 rounds" in result["tool_output"]
    last = stream.all("nested")[-1]["event"]
    assert (last["type"], last["code"], last["round_index"]) == ("ERROR", "max_rounds", 7)
    assert stream.one("answer")["content"] == "a pity" and len(provider.requests) == 10


def test_two_at_once(server, provider):
    def reply(request):
        last = request.conversation[-1]
        if last["role"] == "user" and last["content"] != "go":
            return tools(call("echo", {"text": last["content"]}, "e"))
        if last["role"] == "tool" and len(request.conversation) == 3 and request.conversation[0]["content"] != "go":
            return text("found " + last["content"])
        return text("done") if last["role"] == "tool" else tools(research("one", "r1"), research("two", "r2"))

    provider.answer_with(reply)
    stream = server.client.turn("c", "go")
    assert [(r["id"], r["tool_output"]) for r in stream.all("tool_result")] == [("r1", "found one"), ("r2", "found two")]
    for call_id in ("r1", "r2"):
        assert steps(stream.all("nested"), call_id) == [("TOOL_CALL", 0), ("TOOL_RESULT", 0), ("ANSWER", 1)]
    assert server.client.interaction("c", "int_001")["usage"]["input_tokens"] == 6 * 11


def test_cancel_ends_it_at_once(server, provider):
    gate = Gate()
    provider.plan(tools(research()), tools(call("list_files", {}, "l")), text("so ", gate))
    stream = server.client.start("c", "go")
    provider.wait_requests(3)
    gate.wait_reached()
    began = time.monotonic()
    server.client.cancel("c", "int_001").expect(200)
    assert stream.until("cancelled").at - began < 1 * SLACK  # test_cancel reports the figure
    stream.finish("CANCELLED")
    assert stream.one("tool_result")["is_error"]
    gate.wait_left()


def test_after_a_crash_its_outcome_is_unknown_and_it_may_run_again(make_server, provider):
    server, gate = make_server(provider), Gate()
    provider.plan(tools(research()), tools(call("list_files", {}, "l")), text("so ", gate))
    stream = server.client.start("c", "go")
    gate.wait_reached()
    provider.wait_requests(3)
    server.kill()
    server = make_server(provider, server.home)
    stored = server.client.interaction("c", "int_001")
    assert stored["status"] == "FAILED" and stored["error"]["code"] == "interrupted"
    assert steps([e for e in stored["agent_events"] if e["type"] == "NESTED"]) == [("TOOL_CALL", 0), ("TOOL_RESULT", 0)]
    results = [e for e in stored["agent_events"] if e["type"] == "TOOL_RESULT"]
    assert len(results) == 1 and results[0]["is_error"]
    assert stored["usage"]["input_tokens"] == 22  # the sub-agent's request, and the one that called it
    provider.plan(text("none"), text("There are none."))
    again = server.client.stream("POST", "/chats/c/interactions/int_001/resume")
    again.finish()
    assert again.one("tool_result")["tool_output"] == "none" and steps(again.all("nested")) == [("ANSWER", 0)]


@pytest.mark.parametrize("question, told", [("", "question"), (7, "question")])
def test_malformed_questions_are_reported(server, provider, question, told):
    provider.plan(tools(call("research", {"question": question}, "r")), text("ok"))
    result = server.client.turn("c", "go").one("tool_result")
    assert result["is_error"] and told in result["tool_output"] and len(provider.requests) == 2


def test_with_the_offline_model(offline):
    stream = offline.client.turn("c", "research: calculate 2+2")
    assert "4" in stream.one("tool_result")["tool_output"]
    assert ("TOOL_RESULT", 0) in steps(stream.all("nested"), "call_1")
    assert json.loads(stream.one("tool_call")["tool_input"]) == {"question": "calculate 2+2"}
