"""The offline model as a demonstration: the story of `demo`, and messages that show one feature each."""
import time

import pytest
from support.timing import SLACK, at_once

OWN_START = "This file was written by a demonstration of Reprise."
RETRIES = {"max_retries": 3}


@pytest.fixture
def shown(make_server):
    return make_server(config=RETRIES)


def play(client, stream, approved=True, answer="blue", chat="c", status="COMPLETED", answered=None):
    """Reads a stream to its end and gives the same answer to everything; None declines."""
    while (event := stream.next()) is not None:
        if event.name == "approval_required" and event["approval_id"] != answered:
            client.approve(chat, stream.interaction, event["approval_id"], approved).expect(200)
        elif event.name == "input_required":
            client.respond(chat, stream.interaction, event["request_id"], answer).expect(200)
    assert stream.events[-1]["status"] == status, stream.events
    return stream


def called(stream):
    """The tools of each round."""
    rounds = {}
    for event in stream.all("tool_call"):
        rounds.setdefault(event["round_index"], []).append(event["tool_name"])
    return list(rounds.values())


def replays(client, interaction="int_001", chat="c"):
    report = client.post(f"/chats/{chat}/interactions/{interaction}/replay", {"mode": "recorded"}).expect(200).json
    assert report["match"] is True, report


WHOLE_STORY = [["update_plan", "manage_tasks", "manage_tasks"], ["list_files", "read_file"], ["manage_tasks", "write_file"], ["ask_human"],
               ["edit_file"], ["manage_tasks", "run_shell"]]


# --- the story --------------------------------------------------------------------------------------------------------

def test_the_story_shows_everything_once(shown):
    client = shown.client
    stream = client.start("c", "demo")
    begin = time.monotonic()
    play(client, stream)
    assert time.monotonic() - begin < 20 * SLACK
    assert called(stream) == WHOLE_STORY
    assert len(stream.all("thinking_delta")) > 10 and stream.all("thinking")[0].seq < stream.all("tool_call")[0].seq
    assert len(stream.one("plan_updated")["steps"]) == 6
    assert [t["status"] for t in stream.all("task_updated")[-1]["tasks"]] == ["done", "done"]
    assert [e["tool_name"] for e in stream.all("approval_required")] == ["write_file", "edit_file", "run_shell"]
    assert stream.one("input_required")["options"] == ["green", "blue", "red"]
    assert len(stream.all("tool_output_delta")) >= 3, "output is streamed as it is printed"
    retry = stream.one("retry")
    assert (retry["attempt"], retry["delay_ms"], retry["code"]) == (1, 1000, "provider_overloaded")
    answer = stream.one("answer")["content"]
    for words in ("/edit", "/branches", "reprise replay", "you said *blue*", "written: `reprise-demo.txt`"):
        assert words in answer
    text = (shown.home.workspace / "reprise-demo.txt").read_text()
    assert text.startswith(OWN_START) and text.endswith("\nColour: blue\n")
    assert [p.name for p in shown.home.workspace.iterdir()] == ["reprise-demo.txt"]
    replays(client)


def test_two_reads_run_side_by_side(shown):
    stream = play(shown.client, shown.client.start("c", "demo"))
    second = [e.name for e in stream.events if e["round_index"] == 1 and e.name in ("tool_call", "tool_result")]
    assert second == ["tool_call", "tool_call", "tool_result", "tool_result"]


def test_a_no_to_everything_is_taken_politely(shown):
    client = shown.client
    stream = play(client, client.start("c", "demo"), approved=False, answer=None)
    assert [e["tool_name"] for e in stream.all("approval_required")] == ["write_file", "run_shell"]
    assert len(stream.all("rejected")) == 2 and stream.one("input_received")["response"] is None
    assert "not allowed, so not done" in stream.one("answer")["content"]
    assert list(shown.home.workspace.iterdir()) == []
    replays(client)


def test_where_everything_is_approved_it_runs_alone(make_server):
    server = make_server(config={**RETRIES, "approval_mode": "approve_all"})
    stream = server.client.turn("c", "demo")
    assert not stream.all("approval_required") and not stream.all("input_required")
    assert called(stream) == [scene for scene in WHOLE_STORY if scene != ["ask_human"]]
    assert (server.home.workspace / "reprise-demo.txt").read_text().endswith("\nColour: green\n")


def test_where_everything_is_denied_it_comes_to_its_end(make_server):
    server = make_server(config={**RETRIES, "approval_mode": "deny_all"})
    stream = play(server.client, server.client.start("c", "demo"))
    assert not stream.all("approval_required") and "not allowed, so not done" in stream.one("answer")["content"]
    assert list(server.home.workspace.iterdir()) == []


def test_a_file_of_the_users_stays(shown):
    mine = shown.home.workspace / "reprise-demo.txt"
    mine.write_text("my own words\n")
    stream = play(shown.client, shown.client.start("c", "demo"))
    assert mine.read_text() == "my own words\n"
    assert (shown.home.workspace / "reprise-demo-2.txt").read_text().startswith(OWN_START)
    assert "written: `reprise-demo-2.txt`" in stream.one("answer")["content"]


@pytest.mark.limit(80)
def test_its_own_file_is_replaced(shown):
    for answer in ("a colour of my own", "red"):
        play(shown.client, shown.client.start("c", "demo"), answer=answer)
        assert (shown.home.workspace / "reprise-demo.txt").read_text().endswith(f"\nColour: {answer}\n")
    assert len(list(shown.home.workspace.iterdir())) == 1


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_it_survives_a_restart_at_an_approval(make_server, make_home, end):
    home = make_home()
    server = make_server(home=home, config=RETRIES)
    stream = server.client.start("c", "demo")
    asked = stream.until("approval_required")
    assert asked["tool_name"] == "write_file"
    getattr(server, end)()
    stream.close()
    server = make_server(home=home, config=RETRIES)
    stream = server.client.attach("c", "int_001", after=0, gapless=True)
    assert stream.until("approval_required")["approval_id"] == asked["approval_id"]
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    play(server.client, stream, answer="red")
    assert called(stream) == WHOLE_STORY
    assert len(stream.all("retry")) == 1
    assert (home.workspace / "reprise-demo.txt").read_text().endswith("\nColour: red\n")
    replays(server.client)


def test_it_survives_a_restart_at_its_question(make_server, make_home):
    home = make_home()
    server = make_server(home=home, config=RETRIES)
    stream = server.client.start("c", "demo")
    approved = stream.until("approval_required")["approval_id"]
    server.client.approve("c", "int_001", approved).expect(200)
    stream.until("input_required")
    server.stop()
    stream.close()
    server = make_server(home=home, config=RETRIES)
    stream = server.client.attach("c", "int_001", after=0, gapless=True)
    play(server.client, stream, answer="green", answered=approved)
    assert called(stream) == WHOLE_STORY and len(stream.all("retry")) == 1
    assert (home.workspace / "reprise-demo.txt").read_text().endswith("\nColour: green\n")


@pytest.mark.limit(80)
def test_an_edit_of_it_plays_it_again_beside(shown):
    client = shown.client
    client.turn("c", "echo before")
    first = play(client, client.start("c", "demo"))
    again = play(client, client.edit("c", "int_002", "demo"), answer="red")
    assert called(first) == called(again) == WHOLE_STORY and len(again.all("retry")) == 1
    assert [t["status"] for t in again.all("task_updated")[-1]["tasks"]] == ["done", "done"], "the edit restores the tasks"
    assert [i["id"] for i in client.history("c")["interactions"]] == ["int_001", "int_003"]
    for interaction in ("int_002", "int_003"):
        replays(client, interaction)
    assert client.edit("c", "int_002", "echo instead").finish()[-1]["status"] == "COMPLETED"


def test_two_at_the_same_time_fail_once_each(shown):
    client = shown.client
    streams = {chat: client.start(chat, "demo") for chat in "ab"}
    at_once([lambda chat=chat: play(client, streams[chat], approved=False, chat=chat) for chat in "ab"])
    assert [len(stream.all("retry")) for stream in streams.values()] == [1, 1]


def test_without_retries_it_ends_there_and_resumes_to_its_end(make_server):
    client = make_server(config={"max_retries": 0}).client
    stream = play(client, client.start("c", "demo"), status="FAILED")
    assert stream.one("error")["code"] == "provider_overloaded" and called(stream) == WHOLE_STORY
    # A failed run may still exist when it is resumed; then the new one fails first, as a run beside it would.
    for number in range(1, 5):
        resumed = client.stream("POST", f"/chats/c/interactions/int_{number:03}/resume")
        if resumed.rest()[-1]["status"] == "COMPLETED":
            break
    assert called(resumed) == [] and "/branches" in resumed.one("answer")["content"]


def test_it_is_cancelled_while_it_speaks(shown):
    client = shown.client
    stream = client.start("c", "demo")
    stream.until("thinking_delta")
    asked = time.monotonic()
    client.cancel("c", "int_001").expect(200)
    stream.finish("CANCELLED")
    assert stream.one("cancelled").at - asked < 1 * SLACK
    assert not stream.all("tool_call")


def test_the_demonstrations_of_sub_agents_only_read(shown):
    stream = play(shown.client, shown.client.start("c", "research: demo"))
    assert not stream.all("approval_required") and not stream.all("input_required")
    assert list(shown.home.workspace.iterdir()) == []


# --- one thing each ---------------------------------------------------------------------------------------------------

def test_think(shown):
    stream = shown.client.turn("c", "think: one two three")
    assert [e["content"] for e in stream.all("thinking_delta")] == ["one ", "two ", "three"]
    assert stream.one("thinking")["content"] == "one two three" and "3 words" in stream.one("answer")["content"]


def test_slow_takes_its_time_and_delays_nothing_else(shown):
    client = shown.client
    begin = time.monotonic()
    stream = client.start("c", "slow: " + "word " * 2000)
    for _ in range(6):
        stream.until("text_delta")
    assert time.monotonic() - begin >= 0.5, "five pauses"
    assert client.turn("d", "echo quick").one("answer")["content"] == "quick"
    assert client.interaction("c", "int_001")["status"] == "RUNNING"
    asked = time.monotonic()
    client.cancel("c", "int_001").expect(200)
    stream.finish("CANCELLED")
    assert stream.one("cancelled").at - asked < 1 * SLACK, "the cancel does not wait for the command"
    said = client.interaction("c", "int_001")["final_agent_state"]["messages"][-1]["content"]
    assert said.startswith("word word ") and len(said) < 1000, "the text so far is kept"


def test_slow_says_all_of_it(shown):
    stream = shown.client.turn("c", "slow: naïve 你好\nand a second line")
    assert stream.one("answer")["content"] == "naïve 你好\nand a second line"
    assert [e["content"] for e in stream.all("text_delta")] == ["naïve ", "你好\n", "and ", "a ", "second ", "line"]


def test_markdown(shown):
    answer = shown.client.turn("c", "markdown").one("answer")["content"]
    assert "```python" in answer and "\n|:---|" in answer and "你好" in answer


def test_fail_once(shown):
    stream = shown.client.turn("c", "fail: once")
    retry = stream.one("retry")
    assert (retry["attempt"], retry["delay_ms"], retry["code"]) == (1, 1000, "provider_overloaded")
    assert "second" in stream.one("answer")["content"]
    replays(shown.client)
    assert len(shown.client.turn("c", "fail: once").all("retry")) == 1, "it fails once every time"


@pytest.mark.parametrize("name, code, retryable", [
    ("rate_limit", "provider_rate_limited", True), ("overloaded", "provider_overloaded", True), ("server_error", "provider_error", True),
    ("connection", "provider_unreachable", True), ("timeout", "provider_timeout", True), ("quota", "provider_rate_limited", False),
    ("auth", "provider_auth", False), ("bad_request", "provider_bad_request", False), ("not_found", "provider_not_found", False),
    ("context_length", "provider_context_length", False), ("output_limit", "provider_output_limit", False),
    ("too_large", "response_too_large", False), ("protocol", "provider_protocol", False)])
def test_fail_for_a_reason(make_server, name, code, retryable):
    client = make_server(config={"max_retries": 1}).client
    stream = client.turn("c", f"fail: {name}", "FAILED")
    assert [e["code"] for e in stream.all("retry")] == ([code] if retryable else [])
    error = stream.one("error")
    assert (error["code"], error["retryable"]) == (code, retryable) and error["message"]
    assert not stream.all("text_delta")


def test_fail_in_the_middle_of_an_answer(shown):
    stream = shown.client.turn("c", "fail: cut_off", "FAILED")
    assert stream.one("error")["code"] == "provider_protocol" and not stream.all("retry"), "no retry after text was shown"
    assert "".join(e["content"] for e in stream.all("text_delta")) == stream.one("message")["content"] == "This answer ends in the middle of a "


def test_an_unknown_reason_is_told_those_there_are(shown):
    answer = shown.client.turn("c", "fail: because").one("answer")["content"]
    assert all(f"`{name}`" in answer for name in ("once", "rate_limit", "overloaded", "auth", "context_length", "connection"))


def test_help_is_told_once_in_a_chat(shown):
    client = shown.client
    full = client.turn("c", "what can you do?").one("answer")["content"]
    assert "`demo`" in full and "`echo TEXT`" in full
    hint = client.turn("c", "and what else?").one("answer")["content"]
    assert "\n" not in hint and "`demo`" in hint and "`help`" in hint
    assert client.turn("c", "help").one("answer")["content"] == full
    assert client.turn("other", "what can you do?").one("answer")["content"] == full
    edited = client.edit("c", "int_001", "what can you do now?")
    edited.finish()
    assert edited.one("answer")["content"] == full, "this branch is new"


def test_attached_files_are_told_of(shown):
    client = shown.client

    def upload(content, name, kind):
        return client.post(f"/chats/c/files?name={name}", content, headers={"Content-Type": kind}).expect(201).json["id"]

    files = [upload("[x: \"y\", z, 3 bytes]\n", "notes.txt", "text/plain"), upload(b"\0\1", "a.png", "image/png")]
    answer = client.turn("c", "what is this?", attachments=files).one("answer")["content"]
    assert answer.endswith('I was given 2 files with your message, and do not look into them:\n- "notes.txt" (21 bytes)\n- "a.png" (2 bytes, not text)')
    answer = client.turn("c", "echo hi", attachments=files[:1]).one("answer")["content"]
    assert answer == 'hi\n\nI was given a file with your message, and do not look into it:\n- "notes.txt" (21 bytes)'
