"""A model that repeats itself is told so, and stopped if it continues."""
import pytest
from support.provider import call, text, tools


def repeat(provider, *arguments):
    """The model repeats these calls in turn forever."""
    count = iter(range(1000))

    def reply(_):
        number = next(count)
        return tools(call("echo", {"text": arguments[number % len(arguments)]}, f"call_{number}"))

    provider.answer_with(reply)


@pytest.mark.parametrize("arguments, rounds", [(["a"], 4), (["a", "b"], 7)])
def test_a_circle_ends_in_loop_detected(server, provider, arguments, rounds):
    repeat(provider, *arguments)
    stream = server.client.turn("c", "go", "FAILED")
    assert stream.one("error")["code"] == "loop_detected" and len(provider.requests) == rounds
    pattern = "same_call" if len(arguments) == 1 else "alternating"
    assert [(e["tool_name"], e["count"], e["pattern"]) for e in stream.all("loop_detected")] == [("echo", 3, pattern), ("echo", 4, pattern)]
    assert len(stream.all("tool_call")) == rounds - 2 and len(stream.all("tool_result")) == rounds
    told = provider.requests[-1].conversation[-1]
    assert told["role"] == "tool" and "Do not make it again" in told["content"]
    stored = server.client.interaction("c", "int_001")
    assert stored["error"]["code"] == "loop_detected"
    assert [e["type"] for e in stored["agent_events"]].count("LOOP_DETECTED") == 2


def test_a_model_that_heeds_the_warning_continues_and_the_next_turn_starts_fresh(server, provider):
    same = call("echo", {"text": "a"})
    provider.plan(tools(same), tools(same), tools(same), text("I see"))
    stream = server.client.turn("c", "go")
    assert stream.one("loop_detected")["count"] == 3 and len(stream.all("tool_call")) == 2
    provider.plan(tools(same), tools(same), text("fine"))
    assert not server.client.turn("c", "again").all("loop_detected")


def test_an_edit_restores_the_count(server, provider):
    same = call("echo", {"text": "a"})
    provider.plan(text("hello"), tools(same), tools(same), tools(same), text("I see"))
    server.client.turn("c", "hi")
    server.client.turn("c", "go").one("loop_detected")
    provider.plan(tools(same), tools(same), text("fine"))
    stream = server.client.edit("c", "int_002", "go once more")
    stream.finish()
    assert not stream.all("loop_detected") and len(stream.all("tool_call")) == 2
    assert [m["role"] for m in provider.requests[5].conversation] == ["user", "assistant", "user"]


def test_a_call_that_asks_is_not_asked_about_a_third_time(make_server, provider):
    server = make_server(provider)
    same = call("run_shell", {"command": "echo x >> ran"})
    provider.plan(tools(same), tools(same), tools(same), text("I see"))
    stream = server.client.start("c", "go")
    for _ in range(2):
        server.client.approve("c", stream.interaction, stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    assert len(stream.all("approval_required")) == 2 and (server.home.workspace / "ran").read_text() == "x\nx\n"


def rounds_of(provider, *calls):
    """Plans one round for each of these lists of calls."""
    for number, each in enumerate(calls):
        provider.plan(tools(*(call(name, arguments, f"call_{number}_{n}") for n, (name, arguments) in enumerate(each))))


def test_the_same_error_again_and_again(server, provider):
    count = iter(range(1000))
    provider.answer_with(lambda _: tools(call("calculator", {"wrong": (n := next(count))}, f"call_{n}")))
    stream = server.client.turn("c", "go", "FAILED")
    told = [(e["pattern"], e["tool_name"], e["count"]) for e in stream.all("loop_detected")]
    assert told == [("same_error", "calculator", n) for n in (4, 5, 6)] and len(provider.requests) == 6
    assert stream.one("error")["code"] == "loop_detected"
    results = [m["content"] for m in provider.requests[-1].conversation if m["role"] == "tool"]
    assert "failed in the same way" not in results[2] and "the last 4 rounds of calls failed in the same way" in results[3]
    assert server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"] is True


def test_errors_that_differ_in_what_was_asked_for_count_for_less(server, provider):
    rounds_of(provider, *[[("read_file", {"path": f"missing{n}.txt"})] for n in range(7)])
    provider.plan(text("There is none of them."))
    stream = server.client.turn("c", "go")
    assert [(e["pattern"], e["count"]) for e in stream.all("loop_detected")] == [("same_error", 6), ("same_error", 7)]


def test_no_progress_in_a_wider_circle(server, provider):
    (server.home.workspace / "a.txt").write_text("alpha")
    (server.home.workspace / "b.txt").write_text("beta")
    circle = [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"}), ("list_files", {})]
    count = iter(range(1000))
    provider.answer_with(lambda _: tools(call(*circle[(n := next(count)) % 3], f"call_{n}")))
    stream = server.client.turn("c", "go", "FAILED")
    told = [(e["pattern"], e["count"]) for e in stream.all("loop_detected")]
    assert told == [("no_progress", 4), ("no_progress", 5), ("no_progress", 6)] and len(provider.requests) == 9
    assert stream.one("error")["code"] == "loop_detected"
    assert "brought nothing new" in provider.requests[-1].last["content"]
    assert server.client.post("/chats/c/interactions/int_001/replay", {"mode": "recorded"}).expect(200).json["match"] is True


def test_normal_work_is_not_a_loop(make_server, provider):
    """Reading, a few failures, tests that keep failing while something changes, and the same short answer to different calls are no loops."""
    server = make_server(provider, config={"max_rounds": 60})
    for number in range(8):
        (server.home.workspace / f"f{number}.txt").write_text("x" * 300 if number < 2 else f"content {number}")
    fails = [("read_file", {"path": f"missing{n}.txt"}) for n in range(5)]
    reads = [("read_file", {"path": f"f{n}.txt"}) for n in range(2, 8)]
    searches = [("search_files", {"pattern": f"nowhere{n}"}) for n in range(8)]
    tested = []
    for number in range(5):
        tested += [[("echo", {"text": f"edit {number}"})], [("calculator", {"expression": "1/0"})]]
    rounds_of(provider, *[[each] for each in fails[:3]], [reads[0]], *[[each] for each in fails[3:]], *[[each] for each in reads], *[[each] for each in searches], [reads[0]],
              [reads[1]], *tested[:-1])
    provider.plan(text("done"))
    stream = server.client.turn("c", "go")
    assert not stream.all("loop_detected") and stream.one("answer")["content"] == "done"
