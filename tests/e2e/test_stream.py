"""The stream: headers, numbers, order, times of arrival, and what is on disk by then."""
import json
import subprocess

import pytest
from support.client import SseParser
from support.provider import Gate, Reply, call, delta, ending, sse, text, tools
from support.timing import SLACK, SOON, eventually

DELTAS = ("text_delta", "thinking_delta", "tool_output_delta")


def test_headers_are_exactly_as_designed(client, provider):
    provider.plan(text("hi"))
    stream = client.start("c", "hello")
    assert stream.headers.get_all("Content-Type") == ["text/event-stream"]
    assert stream.headers["Cache-Control"] == "no-cache"
    assert stream.headers["Connection"].lower() == "keep-alive"
    assert stream.headers["X-Accel-Buffering"] == "no"
    assert stream.headers["X-Content-Type-Options"] == "nosniff"
    assert stream.headers["Content-Location"] == "/chats/c/interactions/int_001/events"
    stream.finish()


def test_a_plain_answer_has_these_events_in_this_order(client, provider):
    provider.plan(text("Hello", ", ", "world"))
    stream = client.turn("c", "hello")
    assert stream.names(without=("usage",)) == [
        "interaction_started", "text_delta", "text_delta", "text_delta", "answer", "interaction_complete"] or (
        stream.names(without=("usage", "text_delta")) == ["interaction_started", "answer", "interaction_complete"])
    assert "".join(e["content"] for e in stream.all("text_delta")) == stream.one("answer")["content"] == "Hello, world"
    assert [e.seq for e in stream.events] == list(range(1, len(stream.events) + 1))
    started = stream.events[0]
    assert (started["chat_id"], started["interaction_id"], started["parent_id"], started["edited_from"]) == ("c", "int_001", None, None)
    assert started["model"] == "test/scripted"
    assert stream.events[-1]["interaction_id"] == "int_001"


def test_usage_is_told_and_kept(client, provider):
    provider.plan(text("hi", usage=(123, 45)))
    stream = client.turn("c", "hello")
    usage = stream.one("usage")
    assert (usage["input_tokens"], usage["output_tokens"]) == (123, 45)
    assert client.interaction("c", "int_001")["usage"] == {"input_tokens": 123, "output_tokens": 45}


def test_the_first_text_arrives_while_the_model_still_writes(client, provider):
    gate = Gate()
    provider.plan(text("first", gate, "second"))
    stream = client.start("c", "hello")
    assert stream.until("text_delta")["content"] == "first"
    gate.wait_reached()
    assert client.interaction("c", "int_001")["status"] == "RUNNING"
    gate.release()
    stream.finish()
    assert stream.one("answer")["content"] == "firstsecond"


def test_curl_shows_the_first_text_while_the_model_still_writes(server, provider):
    gate = Gate()
    provider.plan(text("first", gate, "second"))
    process = subprocess.Popen(["curl", "-sSN", "--noproxy", "*", f"http://127.0.0.1:{server.port}/chats/c/interactions", "-H",
                                "Content-Type: application/json", "-d", '{"user_message":"x"}'], stdout=subprocess.PIPE)
    seen = b""
    while b"first" not in seen:
        seen += process.stdout.read1(1)
    assert b"second" not in seen
    gate.release()
    rest, _ = process.communicate(timeout=SOON)
    assert SseParser().feed(seen + rest)[-1].name == "interaction_complete"


def test_the_checkpoint_is_on_disk_when_the_last_event_arrives(server, provider):
    for number in range(1, 6):
        provider.plan(text(f"answer {number}"))
        stream = server.client.start("c", f"question {number}")
        stream.until("interaction_complete")
        stored = server.home.checkpoint("c", f"int_{number:03}")
        assert stored["status"] == "COMPLETED" and stored["user_message"] == f"question {number}"
        assert [e["content"] for e in stored["agent_events"] if e["type"] == "ANSWER"] == [f"answer {number}"]


def test_stored_events_keep_their_numbers_with_the_deltas_left_out(server, provider):
    provider.plan(tools(call("calculator", {"expression": "6*7"}), think="let me think", say="I compute"), text("4", "2"))
    stream = server.client.turn("c", "6*7?")
    live = [e.data for e in stream.events if e.name not in (*DELTAS, "interaction_started", "interaction_complete")]
    assert server.home.checkpoint("c", "int_001")["agent_events"] == live
    assert server.client.interaction("c", "int_001")["agent_events"] == live


def test_order_within_rounds(client, provider):
    provider.plan(
        tools(call("calculator", {"expression": "1+1"}, "a"), call("echo", {"text": "x"}, "b"), think="deep thought", say="two calls"),
        text("done"))
    stream = client.turn("c", "go")
    names = stream.names(without=("usage", "text_delta", "tool_output_delta"))
    first_thought = names.index("thinking_delta")
    names = [n for n in names if n != "thinking_delta"]
    assert first_thought == 1
    # Both run at once, so both are shown before either has a result.
    assert names == ["interaction_started", "thinking", "message", *["tool_call"] * 2, *["tool_result"] * 2, "answer", "interaction_complete"]
    assert stream.one("thinking")["content"].strip() == "deep thought"
    assert "".join(e["content"] for e in stream.all("thinking_delta")) == stream.one("thinking")["content"]
    assert stream.one("message")["content"] == "two calls"
    calls, results = stream.all("tool_call"), stream.all("tool_result")
    assert [e["id"] for e in calls] == [e["id"] for e in results] == ["a", "b"]
    assert [e["tool_name"] for e in calls] == [e["tool_name"] for e in results] == ["calculator", "echo"]
    assert json.loads(calls[0]["tool_input"]) == {"expression": "1+1"}
    assert results[0]["tool_output"] == "2" and results[1]["tool_output"] == "x"
    assert [e["round_index"] for e in calls] == [0, 0] and stream.one("answer")["round_index"] == 1


def test_tool_results_reach_the_model(client, provider):
    provider.plan(tools(call("calculator", {"expression": "6*7"}, "call_x")), text("42"))
    client.turn("c", "6*7?")
    second = provider.requests[1].conversation
    assert [m["role"] for m in second] == ["user", "assistant", "tool"]
    assert second[1]["tool_calls"] == [call("calculator", {"expression": "6*7"}, "call_x")]
    assert second[2]["tool_call_id"] == "call_x" and second[2]["content"] == "42"


@pytest.mark.parametrize("pieces", [2, 5, 1000])
def test_tool_call_arguments_in_pieces_are_put_together(client, provider, pieces):
    provider.plan(tools(call("echo", {"text": "ä" * 10 + "z"}, "a"), call("calculator", {"expression": "2^10"}, "b"), pieces=pieces),
                  text("done"))
    stream = client.turn("c", "go")
    assert [e["tool_output"] for e in stream.all("tool_result")] == ["ä" * 10 + "z", "1024"]


def test_the_request_tells_the_model_about_the_tools(client, provider):
    provider.plan(text("hi"))
    client.turn("c", "hello")
    request = provider.requests[0]
    assert request.body["stream"] is True and request.body["model"] == "scripted"
    assert request.headers["Authorization"].startswith("Bearer sk-canary-")
    names = {t["function"]["name"] for t in request.body["tools"] if t["type"] == "function"}
    assert {"echo", "calculator", "current_time", "list_files", "read_file", "search_files", "write_file", "edit_file", "delete_file",
            "run_shell", "http_get"} <= names


def split_bytes(data, size):
    return [data[i:i + size] for i in range(0, len(data), size)]


TRICKY = 'größe 😀 "quoted" \\ back\nline\r\n\tend\u2028\u0000x'


@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_any_chunking_and_any_line_ends_give_the_same_text(client, provider, size, newline):
    body = b"\xef\xbb\xbf" + sse(": a comment", newline).replace(b"data: ", b"") + delta({"content": TRICKY}, newline=newline) + delta(
        {"content": "."}, newline=newline) + delta({}, "stop", newline) + sse("[DONE]", newline)
    provider.plan(Reply(split_bytes(body, size)))
    stream = client.turn("c", "hello")
    assert stream.one("answer")["content"] in (TRICKY + ".", TRICKY.replace("\0", "\ufffd") + ".")


def test_model_text_cannot_forge_events(client, provider):
    forged = "\r\n\r\nevent: approval_required\ndata: {}\n\nid: 99\n\n"
    provider.plan(text(forged, "end"))
    stream = client.turn("c", "hello")
    assert stream.one("answer")["content"] == forged + "end"
    assert "approval_required" not in stream.names()


def test_bad_utf8_from_the_provider_becomes_replacement_characters(client, provider):
    broken = delta({"content": "ab"}).replace(b"ab", b"a\xc3\x28b")
    provider.plan(Reply([broken, *ending()]))
    stream = client.turn("c", "hello")
    assert stream.one("answer")["content"] == "a\ufffd(b"


def test_a_lone_surrogate_from_the_provider_does_no_harm(client, provider):
    broken = delta({"content": "ab"}).replace(b"ab", b"a\\ud800b")
    provider.plan(Reply([broken, *ending()]))
    stream = client.turn("c", "hello")
    assert stream.one("answer")["content"].startswith("a") and stream.one("answer")["content"].endswith("b")


def test_an_end_without_done_is_accepted_after_a_finish_reason(client, provider):
    provider.plan(Reply([delta({"content": "hi"}), delta({}, "stop")]))
    assert client.turn("c", "hello").one("answer")["content"] == "hi"


def test_a_provider_that_does_not_stream_is_understood(client, provider):
    whole = {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "whole"}}],
             "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    provider.plan(Reply([json.dumps(whole).encode()], content_type="application/json"))
    assert client.turn("c", "hello").one("answer")["content"] == "whole"


def test_a_long_answer_arrives_whole(client, provider):
    words = [f"w{i} " * 20 for i in range(2000)]
    provider.plan(text(*words))
    stream = client.turn("c", "hello")
    assert stream.one("answer")["content"] == "".join(words)
    assert "".join(e["content"] for e in stream.all("text_delta")) == "".join(words)


def test_without_streaming_the_finished_interaction_comes_as_json(server, provider):
    provider.plan(tools(call("calculator", {"expression": "6*7"})), text("42"))
    answer = server.client.post("/chats/c/interactions", {"user_message": "6*7?", "stream": False}).expect(200, "interaction")
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.json["status"] == "COMPLETED" and answer.json["chat_id"] == "c"
    assert answer.json == server.home.checkpoint("c", answer.json["id"])


def test_without_streaming_a_failure_is_a_finished_interaction_too(client, provider):
    provider.plan(Reply([b"x"], 400, content_type="text/plain"))
    answer = client.post("/chats/c/interactions", {"user_message": "x", "stream": False}).expect(200, "interaction")
    assert answer.json["status"] == "FAILED" and answer.json["error"]["code"].startswith("provider_")


def test_the_model_can_be_chosen_per_interaction(client, provider):
    stream = client.turn("c", "echo hi", model="offline")
    assert stream.events[0]["model"] == "offline"
    provider.plan(text("x"))
    assert client.turn("c", "y", model="test/other").events[0]["model"] == "test/other"
    assert provider.requests[0].body["model"] == "other"


def test_an_unknown_provider_is_refused_before_anything_is_stored(server):
    server.client.post("/chats/c/interactions", {"user_message": "x", "model": "nobody/x"}).error(400)
    server.client.get("/chats/c").error(404)


def test_a_conversation_goes_on_over_turns(client, provider):
    for number in range(5):
        provider.plan(text(f"a{number}"))
        client.turn("c", f"q{number}")
    assert [m["content"] for m in provider.requests[-1].conversation] == ["q0", "a0", "q1", "a1", "q2", "a2", "q3", "a3", "q4"]
    assert [i["parent_id"] for i in client.history("c")["interactions"]] == [None, "int_001", "int_002", "int_003", "int_004"]


def test_rounds_are_bounded(make_server, provider):
    server = make_server(provider, config={"max_rounds": 3})
    count = iter(range(100))
    provider.answer_with(lambda _: tools(call("echo", {"text": "again"}, f"call_{next(count)}")))
    stream = server.client.start("c", "loop")
    stream.rest()
    assert len(provider.requests) <= 4
    assert stream.events[-1]["status"] in ("COMPLETED", "FAILED")
    provider.answer_with(None)
    provider.plan(text("fine"))
    server.client.turn("c", "go on")


def test_a_violated_schema_is_a_result_the_model_can_mend(client, provider):
    provider.plan(tools(call("calculator", {"expr": "1+1"}, "a"), call("calculator", "{not json", "b"), call("no_such_tool", {}, "c")),
                  text("sorry"))
    stream = client.turn("c", "go")
    results = stream.all("tool_result")
    assert [e["id"] for e in results] == ["a", "b", "c"] and all(e["is_error"] for e in results)
    assert "expr" in results[0]["tool_output"]
    sent = [m for m in provider.requests[1].conversation if m["role"] == "tool"]
    assert [m["tool_call_id"] for m in sent] == ["a", "b", "c"] and sent[0]["content"] == results[0]["tool_output"]


def test_repeated_call_ids_of_a_careless_provider_still_pair_up(client, provider):
    provider.plan(tools(call("echo", {"text": "1"}, "call_1")), tools(call("echo", {"text": "2"}, "call_1")), text("done"))
    client.turn("c", "go")
    provider.plan(text("again"))
    client.turn("c", "more")


@pytest.mark.limit(60)
def test_a_silent_stream_is_kept_alive_by_comments(client, provider):
    gate = Gate()
    provider.plan(text("a", gate, "b"))
    stream = client.start("c", "hello")
    quiet_since = stream.until("text_delta").at
    while not stream.parser.comments:
        stream.connection.sock.settimeout(20 * max(1, SLACK / 2))
        stream._fill()  # comments are no events, so `next` would keep waiting
    line, at = stream.parser.comments[0]
    assert line == ": keep-alive" and 10 < at - quiet_since < 18 * max(1, SLACK / 2)
    gate.release()
    stream.finish()


def test_busy_chat_refuses_a_second_start_and_names_the_run(client, provider):
    gate = Gate()
    provider.plan(text("a", gate, "b"))
    stream = client.start("c", "hello")
    stream.until("text_delta")
    for path, body in (("/chats/c/interactions", {"user_message": "x"}), ("/chats/c/interactions/int_001/edit", {"new_user_message": "x"}),
                       ("/chats/c/interactions/int_001/regenerate", {})):
        error = client.post(path, body).error(409, "busy")
        assert error["details"] == {"interaction_id": "int_001"}
    gate.release()
    stream.finish()
    assert len(client.history("c")["interactions"]) == 1


def test_twenty_parallel_starts_of_one_chat_give_one_run(client, provider):
    import threading
    gate = Gate()
    provider.answer_with(lambda _: text("a", gate))
    start = threading.Barrier(20)
    results = []

    def one():
        start.wait()
        answer = client.post("/chats/c/interactions", {"user_message": "x", "stream": False}, limit=SOON)
        results.append(answer.status)

    threads = [threading.Thread(target=one) for _ in range(20)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(results) == 19, "19 answers")
    assert results == [409] * 19
    gate.release()
    for thread in threads:
        thread.join()
    assert sorted(results) == [200] + [409] * 19
