"""The offline model: every flow with curl alone, no network, no key."""
import re

import pytest


def results(stream):
    return [(e["tool_name"], e["tool_output"]) for e in stream.all("tool_result")]


def approve_all(client, chat, stream):
    """Reads a stream to its end and approves everything."""
    while (event := stream.next()) is not None:
        if event.name == "approval_required":
            client.approve(chat, stream.interaction, event["approval_id"]).expect(200)
    assert stream.events[-1]["status"] == "COMPLETED"
    return stream


def test_echo(offline):
    stream = offline.client.turn("c", "echo hello there")
    assert results(stream) == [("echo", "hello there")]
    assert "hello there" in stream.one("answer")["content"]


@pytest.mark.parametrize("question, answer", [("calculate 6*7", "42"), ("what is 2+2?", "4"), ("What is 2+2?", "4"), ("calculate (1+2)*3", "9")])
def test_calculate(offline, question, answer):
    stream = offline.client.turn("c", question)
    assert results(stream) == [("calculator", answer)] and answer in stream.one("answer")["content"]


def test_time(offline):
    stream = offline.client.turn("c", "time")
    assert results(stream)[0][0] == "current_time" and re.search(r"\d{4}-\d\d-\d\d", results(stream)[0][1])


def test_files(offline):
    client, workspace = offline.client, offline.home.workspace
    approve_all(client, "c", client.start("c", "write notes.txt: buy milk"))
    assert (workspace / "notes.txt").read_text().strip() == "buy milk"
    assert "notes.txt" in results(client.turn("c", "list"))[0][1]
    assert "notes.txt" in results(client.turn("c", "list ."))[0][1]
    assert "buy milk" in results(client.turn("c", "read notes.txt"))[0][1]
    approve_all(client, "c", client.start("c", "delete notes.txt"))
    assert not (workspace / "notes.txt").exists()


def test_run_asks_first(offline):
    stream = approve_all(offline.client, "c", offline.client.start("c", "run: echo from the shell"))
    assert "from the shell" in results(stream)[0][1]
    assert stream.names().index("approval_required") < stream.names().index("tool_call")


def test_fetch_asks_first_and_is_refused_for_this_machine(offline):
    stream = approve_all(offline.client, "c", offline.client.start("c", f"fetch http://127.0.0.1:{offline.port}/healthz"))
    assert stream.one("tool_result")["is_error"] is True


def test_several_lines_are_several_rounds(offline):
    stream = offline.client.turn("c", "echo one\ncalculate 1+1\necho three")
    assert results(stream) == [("echo", "one"), ("calculator", "2"), ("echo", "three")]
    assert [e["round_index"] for e in stream.all("tool_call")] == [0, 1, 2]


def test_it_says_what_it_understands(offline):
    answer = offline.client.turn("c", "make me a sandwich").one("answer")["content"]
    for word in ("echo", "calculate", "time", "list", "read", "write", "delete", "run", "fetch"):
        assert word in answer


def test_it_streams_word_by_word(offline):
    stream = offline.client.turn("c", "make me a sandwich")
    assert len(stream.all("text_delta")) > 5
    assert "".join(e["content"] for e in stream.all("text_delta")) == stream.one("answer")["content"]


def test_it_is_deterministic(offline):
    answers = {offline.client.turn(f"c{n}", "calculate 2^0.5").one("answer")["content"] for n in range(3)}
    assert len(answers) == 1


def test_a_rejection_is_told(offline):
    stream = offline.client.start("c", "run: echo no")
    asked = stream.until("approval_required")
    offline.client.approve("c", "int_001", asked["approval_id"], False).expect(200)
    stream.finish()
    assert stream.one("answer")["content"]


def test_edit_cancel_regenerate(offline):
    client = offline.client
    client.turn("c", "echo one")
    client.turn("c", "echo two")
    client.edit("c", "int_002", "echo three").finish()
    assert [i["user_message"] for i in client.history("c")["interactions"]] == ["echo one", "echo three"]
    client.stream("POST", "/chats/c/interactions/int_003/regenerate", {}).finish()
    stream = client.start("c", "run: sleep 1000")
    stream.until("approval_required")
    client.cancel("c", stream.interaction).expect(200)
    stream.finish("CANCELLED")


def test_a_provider_without_a_key_leaves_the_model_offline(offline):
    assert offline.client.get("/models").json["default"] == "offline"
