"""OpenAI's interfaces: how front ends and their libraries see a chat, and how their requests change it."""
import base64
import datetime
import http.client
import json
import os
import random
import socket
import struct
import subprocess
import urllib.parse
import zlib

import pytest
from support import anthropic, responses, schemas
from support.npm import NEWER_NODE, install
from support.provider import CUT, Gate, Reply, call, delta, ending, failure, text, tools, wav
from support.timing import SLACK, SOON, at_once, eventually

CLIENT = __file__.replace("test_openai.py", "support/openai_client.mjs")
PACKAGE = "openai@6.49.0"
EVENTS = {"response_events": "openai_response_event"}


def png(width=2, height=2):
    """A complete picture, because models do not get truncated ones."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + b"\x7f\x00\x00" * width for _ in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PICTURE = png()


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


class Sse:
    """A stream of data lines, read as they arrive."""

    def __init__(self, server, path, body=None, headers=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SOON)
        self.connection.request("POST" if body else "GET", path, body and json.dumps(body), {"Content-Type": "application/json", **(headers or {})})
        self.response = self.connection.getresponse()
        self.chat = self.response.headers.get("X-Chat-Id")
        self.chunks = []
        self.done = False

    def next(self):
        """The next data line, None at [DONE] or the end."""
        while True:
            line = self.response.readline().decode()
            if not line:
                return None
            if not line.startswith("data: "):
                assert line == "\n" or line.startswith((":", "event: ")), line
                continue
            if line == "data: [DONE]\n":
                self.done = True
                continue
            self.chunks.append(json.loads(line[6:]))
            return self.chunks[-1]

    def rest(self):
        while self.next() is not None:
            pass
        return self

    def until(self, wanted):
        while wanted not in self.text:
            assert self.next() is not None, f"the stream has ended with {self.text!r}"
        return self

    def _joined(self, member):
        return "".join(c["delta"].get(member, "") for chunk in self.chunks for c in chunk.get("choices", []))

    @property
    def text(self):
        return self._joined("content") or "".join(c["delta"] for c in self.chunks if c.get("type") == "response.output_text.delta")

    @property
    def thinking(self):
        return self._joined("reasoning_content")

    def close(self):
        self.response.close()
        self.connection.close()


def ask(server, messages, chat=None, model="reprise", **more):
    headers = {"X-Chat-Id": chat} if chat else {}
    return server.client.post("/v1/chat/completions", {"model": model, "messages": messages, **more}, headers=headers)


def stream(server, messages, chat=None, model="reprise", **more):
    return Sse(server, "/v1/chat/completions", {"model": model, "messages": messages, "stream": True, **more}, {"X-Chat-Id": chat} if chat else {})


def say(answer):
    return answer.expect(200, "openai_chat_completion").json["choices"][0]["message"]["content"]


def conversation(server, provider, turns, chat=None):
    """Plays a conversation as a front end does, with the whole history in each request. Returns the messages and the chat."""
    messages = []
    for number in range(1, turns + 1):
        provider.plan(text(f"answer {number}"))
        messages.append(user(f"question {number}"))
        answer = ask(server, messages, chat)
        messages.append(assistant(say(answer)))
        found = answer.headers["X-Chat-Id"]
        assert chat in (None, found)
        chat = found if chat else None
    return messages, found


def told(provider):
    """The last messages to the model, without the system prompt."""
    return [m["content"] for m in provider.requests[-1].conversation]


def branch(server, chat):
    return [(i["id"], i["user_message"]) for i in server.client.history(chat)["interactions"]]


# --- the official client ----------------------------------------------------------------------------------------------

def official(server, what, key="none"):
    module = install(PACKAGE) / "openai" / "index.mjs"
    done = subprocess.run(["node", *NEWER_NODE, CLIENT, str(module), f"http://127.0.0.1:{server.port}/v1", key, what], capture_output=True, text=True,
                          timeout=30 * SLACK, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.limit(90)
def test_the_official_client_chats(server, provider):
    provider.plan(text("one"), tools(call("echo", {"text": "x"}), say="I look. "), text("two ", "pieces"), text("three"))
    whole, streamed, chunks = official(server, "chat")
    assert whole == {"text": "one", "finish": "stop", "total": 18}
    assert streamed["text"] == streamed["joined"] == "I look. \n\ntwo pieces" and streamed["calls"] is None and streamed["total"] == 36
    assert chunks == {"text": "three"}


@pytest.mark.limit(90)
def test_the_official_client_asks_for_responses(server, provider):
    provider.plan(text("one"), tools(call("echo", {"text": "x"})), text("two ", "pieces"))
    first, streamed, read = official(server, "responses")
    assert first["text"] == "one" and first["status"] == "completed"
    assert streamed["text"] == "two pieces" and streamed["previous"] == first["id"] and streamed["usage"] == 36
    assert [number for _, number in streamed["events"]] == list(range(len(streamed["events"])))
    assert streamed["events"][0][0] == "response.created" and streamed["events"][-1][0] == "response.completed"
    assert read == {"text": "two pieces", "status": "completed", "previous": first["id"], "again": "two pieces"}
    assert "Be brief." in provider.requests[0].messages[0]["content"] and "Be brief." not in provider.requests[-1].messages[0]["content"]
    assert told(provider)[0] == "whole"


@pytest.mark.limit(90)
def test_the_official_client_has_conversations(server, provider):
    provider.plan(text("fine"))
    assert official(server, "conversations") == [{
        "texts": ["Hello!", "and?", "fine"], "input": ["and?"], "same": True, "added": 1, "counted": True, "topics": ["demo", "other", "other"], "told": True,
        "deleted": True}]


def test_the_official_client_waits_while_an_approval_is_answered_elsewhere(server, provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"}), say="I write."), text("It is written."))
    answer, = official(server, "approval")
    assert answer["answered"] == 200 and answer["text"].startswith("I write.\n\n**Approval needed:**") and answer["text"].endswith("\n\nIt is written.")
    assert (server.home.workspace / "a.txt").read_text() == "x"


@pytest.mark.limit(90)
def test_the_official_client_leaves_and_cancels(make_server, provider):
    server = make_server(provider, config={"disconnect_grace_s": 0})
    left, cancelled = Gate(), Gate()
    provider.plan(text("half", left), text("half", cancelled))
    half, begun, ended = official(server, "leave")
    assert half == {"text": "half"} and begun == {"begun": "in_progress", "cancelled": True} and ended == {"status": "cancelled"}
    left.wait_left()
    chats = [entry["id"] for entry in server.client.get("/chats").json["chats"]]
    assert len(chats) == 2
    eventually(lambda: all(server.client.interaction(chat, "int_001")["status"] == "CANCELLED" for chat in chats), "both are cancelled")


@pytest.mark.limit(90)
def test_the_official_client_lists_models_and_reads_errors(make_server, provider):
    server = make_server(provider, config={"max_retries": 0})
    models, = official(server, "models")
    assert models["names"][0] == "reprise" and "reprise/test/scripted" in models["names"] and models["one"].startswith("reprise/")
    provider.plan(failure(400, "no such thing"))
    unknown, empty, failed = official(server, "errors")
    assert unknown == {"status": 404, "code": "model_not_found", "type": "invalid_request_error", "param": None, "kind": "NotFoundError"}
    assert empty["status"] == 400 and empty["param"] == "messages"
    assert failed["code"] == "provider_bad_request" and "no such thing" in failed["message"]


@pytest.mark.limit(90)
def test_the_official_client_runs_tools_of_its_own_on_a_model_alone(server, provider):
    provider.plan(tools(call("get_weather", {"place": "Rome"})))
    answer, = official(server, "tools")
    assert [(name, json.loads(arguments)) for name, arguments in answer["calls"]] == [("get_weather", {"place": "Rome"})]
    assert [t["function"]["name"] for t in provider.requests[0].body["tools"]] == ["get_weather"]


@pytest.mark.limit(90)
def test_the_official_client_listens_and_speaks(make_server, provider):
    server = make_server(provider, config={"audio": {"transcription": "test/listens", "speech": "test/speaks", "voice": "alto"}})
    said = Reply([b'{"text":"Which files are here?"}'], content_type="application/json")
    provider.audio = lambda request: said if request.path.endswith("transcriptions") else Reply([wav()], content_type="audio/mpeg")
    heard, = official(server, "audio")
    assert heard == {"text": "Which files are here?", "bytes": len(wav()), "type": "audio/mpeg"}
    recording, spoken = provider.heard
    assert recording.body["model"][2] == b"listens" and spoken.body["model"] == "speaks" and spoken.body["input"] == "hello"


# --- whose chat it is -------------------------------------------------------------------------------------------------

ATTACHED = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(png()).decode()}}
# Alice's conversation, and that of Bob, who began with the same words.
BEGUN_ALIKE = {
    "she is further": ([user("hi"), assistant("hello"), user("mine"), assistant("ok")], [user("hi"), assistant("hello"), user("what else?")]),
    "she is further by two": ([user("hi"), assistant("hello"), user("and?"), assistant("ok"), user("mine"), assistant("ok")],
                              [user("hi"), assistant("hello"), user("and?"), assistant("ok"), user("what else?")]),
    "she gave a file": ([user([{"type": "text", "text": "hi"}, ATTACHED]), assistant("hello")], [user("hi"), assistant("hello"), user("what else?")]),
    "his answer ends early": ([user("hi"), assistant("hello")], [user("hi"), assistant("h"), user("what else?")]),
    "he has no answer": ([user("hi"), assistant("hello")], [user("hi"), user("what else?")]),
    "he asks as she did": ([user("hi"), assistant("hello"), user("mine"), assistant("ok")], [user("hi"), assistant("hello"), user("mine")])}


@pytest.mark.parametrize("restarted", [False, True], ids=["", "restarted"])
@pytest.mark.parametrize("case", BEGUN_ALIKE)
def test_a_client_without_the_last_answer_is_in_another_chat(make_server, make_home, provider, case, restarted):
    home = make_home()
    server = make_server(provider, home=home)
    hers, his = BEGUN_ALIKE[case]
    said = []
    for message in hers:
        said.append(message)
        if message["role"] == "user":
            provider.plan(text(hers[len(said)]["content"]))
            chat = ask(server, said).headers["X-Chat-Id"]
    if restarted:
        server.stop()
        server = make_server(provider, home=home)
    before = server.client.history(chat, branches="all")["interactions"]
    provider.plan(text("new"))
    answer = ask(server, his)
    assert say(answer) == "new" and answer.headers["X-Chat-Id"] != chat
    assert server.client.history(chat, branches="all")["interactions"] == before
    provider.plan(text("on"))
    assert ask(server, [*hers, user("on")]).headers["X-Chat-Id"] == chat, "she continues her own chat"


@pytest.mark.parametrize("chat", ["mine"])
def test_an_edit_of_message_3_of_10_is_a_branch_with_the_state_before_it(server, provider, chat):
    messages, found = conversation(server, provider, 10, chat)
    assert len(branch(server, found)) == 10, "all turns are in one chat"
    provider.plan(text("another answer"))
    edited = [*messages[:4], user("another question")]
    answer = ask(server, edited, chat)
    assert say(answer) == "another answer" and answer.headers["X-Chat-Id"] == found
    assert told(provider) == [m["content"] for m in edited]
    assert branch(server, found) == [("int_001", "question 1"), ("int_002", "question 2"), ("int_011", "another question")]
    assert server.client.interaction(found, "int_011")["edited_from"] == "int_003"
    provider.plan(text("and on"))
    ask(server, [*edited, assistant("another answer"), user("on?")], chat).expect(200)
    assert [i for i, _ in branch(server, found)] == ["int_001", "int_002", "int_011", "int_012"]
    # The front end returns to the first branch and continues at its end.
    provider.plan(text("answer 11"))
    ask(server, [*messages, user("question 11")], chat).expect(200)
    assert told(provider) == [m["content"] for m in messages] + ["question 11"]
    assert [i for i, _ in branch(server, found)] == [f"int_{n:03}" for n in range(1, 11)] + ["int_013"]


@pytest.mark.parametrize("chat", ["mine"])
def test_the_same_last_message_again_is_a_regeneration(server, provider, chat):
    messages, found = conversation(server, provider, 3, chat)
    provider.plan(text("better"))
    ask(server, messages[:-1], chat).expect(200)
    assert branch(server, found)[-1] == ("int_004", "question 3")
    assert server.client.interaction(found, "int_004")["edited_from"] == "int_003" and told(provider)[-1] == "question 3"


def test_chats_are_found_after_a_restart_and_by_what_front_ends_make_of_answers(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    messages, found = conversation(server, provider, 3)
    server.stop()
    server = make_server(provider, home=home)
    provider.plan(text("answer 4"))
    messages[1] = assistant("<details>thought</details>\n\n  answer 1  ")  # as displayed by the front end
    answer = ask(server, [*messages, user("question 4")])
    assert say(answer) == "answer 4" and answer.headers["X-Chat-Id"] == found
    assert len(branch(server, found)) == 4


def test_chats_with_another_title_than_their_first_message_are_found_after_a_restart(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    messages, found = conversation(server, provider, 2)
    server.client.request("PATCH", f"/chats/{found}", {"title": "Mine"}).expect(200)
    server.stop()
    server = make_server(provider, home=home)
    provider.plan(text("answer 3"))
    assert ask(server, [*messages, user("question 3")]).headers["X-Chat-Id"] == found and len(branch(server, found)) == 3


def test_an_answer_that_a_person_has_changed_is_a_branch(server, provider):
    messages, found = conversation(server, provider, 3, "mine")
    provider.plan(text("another"))
    changed = [*messages[:3], assistant("answer 2, and more"), user("so?")]
    assert ask(server, changed, "mine").headers["X-Chat-Id"] == found
    assert told(provider) == [m["content"] for m in changed]
    assert branch(server, found) == [("int_001", "question 1"), ("int_004", "question 2"), ("int_005", "so?")]


def test_white_space_within_a_message_is_a_change(server, provider):
    provider.plan(text("one"), text("two"), text("three"))
    for message in ("if x:\n  y()", "if x:\ny()", " if x:  \r\ny()\n"):
        ask(server, [user(message)], "c").expect(200)
        assert told(provider) == [message.replace("  y", "  y") if message[0] == "i" else "if x:\ny()"]
    stored = server.client.history("c", branches="all")["interactions"]
    assert [i["user_message"] for i in stored] == ["if x:\n  y()", "if x:\ny()", "if x:\ny()"]


def test_unanswered_messages_are_sent_with_the_next(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    provider.plan(text("one"))
    answer = ask(server, [user("a"), user("b")])
    found = answer.headers["X-Chat-Id"]
    assert told(provider) == ["a\n\nb"]
    server.stop()
    server = make_server(provider, home=home)
    provider.plan(text("two"))
    answer = ask(server, [user("a"), user("b"), assistant("one"), user("c"), user("d")])
    assert answer.headers["X-Chat-Id"] == found and told(provider) == ["a\n\nb", "one", "c\n\nd"]
    assert [i for i, _ in branch(server, found)] == ["int_001", "int_002"]


def test_two_conversations_with_the_same_words_do_not_wait_for_each_other(server, provider):
    provider.plan(text("hello"), text("hello"))
    chats = {ask(server, [user("hi")]).headers["X-Chat-Id"] for _ in range(2)}
    gate = Gate()
    provider.plan(text("half", gate), text("fine"))
    further = [user("hi"), assistant("hello"), user("how?")]
    first = stream(server, further).until("half")
    second = ask(server, further)
    assert say(second) == "fine" and len({first.chat, second.headers["X-Chat-Id"], *chats}) == 4, "the chat is ambiguous"
    gate.release()
    first.rest()
    # The same conversation many times at once, as a script might play it.
    provider.answer_with(lambda request: text("said " + "|".join(m["content"] for m in request.conversation)))

    def play():
        messages = []
        for question in ("one", "two", "three"):
            messages.append(user(question))
            answer = eventually(lambda: next((a for a in [ask(server, messages)] if a.status != 409), None), "a chat is free")
            assert say(answer) == "said " + "|".join(m["content"] for m in messages)
            messages.append(assistant(say(answer)))

    at_once([play] * 5)


@pytest.mark.limit(90)
def test_whatever_a_front_end_changes_the_model_is_told_what_it_shows(make_server, make_home, provider):
    """Conversations of few words, so that many are alike, with and without names; a restart in the middle."""
    seed, steps = int(os.environ.get("REPRISE_FOREIGN_SEED", "1")), int(os.environ.get("REPRISE_FOREIGN_STEPS", "60"))
    rng = random.Random(seed)
    home = make_home()
    server = make_server(provider, home=home)
    provider.answer_with(lambda request: text(rng.choice(["yes", "no", "well"])))
    threads = [(name, []) for name in ("a", "b", None, None)]
    for step in range(steps):
        if step == steps // 2:
            server.stop()
            server = make_server(provider, home=home)
        at = rng.randrange(len(threads))
        name, messages = threads[at]
        what = rng.choice(["on", "on", "edit", "again", "answer", "copy"]) if messages else "on"
        question = user(rng.choice(["who", "where", "why"]))
        if what == "on":
            messages = [*messages, question]
        elif what == "edit":
            messages = [*messages[:rng.randrange(0, len(messages), 2)], question]
        elif what == "again":
            messages = messages[:-1]
        elif what == "answer":
            changed = rng.randrange(1, len(messages), 2)
            messages = [*messages[:changed], assistant(rng.choice(["perhaps", "never"])), *messages[changed + 1:], question]
        else:  # the conversation continues elsewhere
            name, at = rng.choice([None, f"copy{step}"]), len(threads)
            threads.append(None)
            messages = [*messages, question]
        where = (seed, step, what, name)
        answer = ask(server, messages, name)
        shown = [m["content"] for m in messages]
        assert answer.status == 200, where
        # A front end may send only the newest turns of a named chat.
        assert told(provider) == shown or (name and len(shown) > 4 and told(provider)[-len(shown):] == shown), where
        assert name in (None, answer.headers["X-Chat-Id"]), where
        threads[at] = (name, [*messages, assistant(say(answer))])
    kept = [i for entry in server.client.get("/chats").json["chats"] for i in server.client.history(entry["id"], branches="all")["interactions"]]
    assert len(kept) >= steps and all(i["status"] == "COMPLETED" for i in kept), "no interaction is lost"


def test_what_was_said_elsewhere_is_added(server, provider):
    provider.plan(text("yes"))
    elsewhere = [{"role": "system", "content": "Speak like a pirate."}, user("a"), assistant("b"), user("c"), assistant("d")]
    answer = ask(server, [*elsewhere, user("e")])
    chat = answer.headers["X-Chat-Id"]
    assert told(provider) == ["a", "b", "c", "d", "e"] and "Speak like a pirate." in provider.requests[-1].messages[0]["content"]
    assert branch(server, chat) == [("int_001", "a"), ("int_002", "c"), ("int_003", "e")]
    schemas.check("interaction", server.client.interaction(chat, "int_001"))
    report = server.client.post(f"/chats/{chat}/interactions/int_003/replay", {"mode": "recorded"}).expect(200).json
    assert report["match"], report
    # An answer in the middle that the front end has edited.
    provider.plan(text("no"))
    ask(server, [user("a"), assistant("B, really"), user("c"), assistant("d"), user("e?")], chat).expect(200)
    assert told(provider) == ["a", "B, really", "c", "d", "e?"]
    assert branch(server, chat) == [("int_004", "a"), ("int_005", "c"), ("int_006", "e?")]
    assert server.client.interaction(chat, "int_004")["edited_from"] == "int_001"


def test_a_greeting_of_the_front_end_goes_to_the_model_and_is_not_a_turn(server, provider):
    provider.plan(text("one"), text("two"), text("three"))
    shown = [assistant("Welcome to the pond."), user("a")]
    chat = ask(server, shown).headers["X-Chat-Id"]
    assert told(provider) == ["a"] and "they were shown this message of yours:\nWelcome to the pond." in provider.requests[-1].messages[0]["content"]
    again = ask(server, [{"role": "system", "content": "Be brief."}, *shown, assistant("one"), user("b")])
    system = provider.requests[-1].messages[0]["content"]
    assert again.headers["X-Chat-Id"] == chat and "Be brief.\n\nBefore the user wrote" in system and "Welcome to the pond." in system
    assert told(provider) == ["a", "one", "b"] and branch(server, chat) == [("int_001", "a"), ("int_002", "b")]
    say(ask(server, shown, model="test/scripted"))
    assert [m["role"] for m in provider.requests[-1].messages] == ["assistant", "user"], "a model without the agent gets all messages"


def test_one_message_without_a_name_is_a_new_chat(server, provider):
    provider.plan(text("one"), text("two"))
    first, second = ask(server, [user("hi")]), ask(server, [user("hi")])
    assert first.headers["X-Chat-Id"] != second.headers["X-Chat-Id"]


@pytest.mark.parametrize("headers, more", [({"X-OpenWebUI-Chat-Id": "7c1e8a4e-9f59-4c63-a2b0-1f6d3f0c9a11"}, {}), ({"X-Conversation-Id": "a b/c"}, {}),
                                           ({}, {"metadata": {"chat_id": "named"}})], ids=["Open WebUI", "LibreChat", "metadata"])
def test_front_ends_name_their_chats(server, provider, headers, more):
    provider.plan(text("one"), text("two"))
    body = {"model": "reprise/test/scripted", **more}
    first = server.client.post("/v1/chat/completions", {**body, "messages": [user("a")]}, headers=headers).expect(200)
    second = server.client.post("/v1/chat/completions", {**body, "messages": [user("a"), assistant("one"), user("b")]}, headers=headers).expect(200)
    assert first.headers["X-Chat-Id"] == second.headers["X-Chat-Id"]
    assert [m for _, m in branch(server, first.headers["X-Chat-Id"])] == ["a", "b"]


@pytest.mark.parametrize("name", ["", "new", "{{LIBRECHAT_BODY_CONVERSATIONID}}"])
def test_a_placeholder_names_no_chat(server, provider, name):
    provider.plan(text("one"), text("two"))
    chats = {server.client.post("/v1/chat/completions", {"model": "reprise", "messages": [user("a")]}, headers={"X-Conversation-Id": name}).expect(200)
             .headers["X-Chat-Id"] for _ in range(2)}
    assert len(chats) == 2


def test_oldest_turns_that_a_front_end_leaves_out_are_still_there(server, provider):
    messages, chat = conversation(server, provider, 4, "mine")
    provider.plan(text("five"))
    ask(server, [*messages[4:], user("question 5")], "mine").expect(200)
    assert len(branch(server, chat)) == 5 and told(provider)[0] == "question 1"


def test_a_request_that_comes_again_begins_nothing(server, provider):
    provider.plan(text("once"))
    body, headers = {"model": "reprise", "messages": [user("x")]}, {"Idempotency-Key": "retry-1"}
    first, second = (server.client.post("/v1/chat/completions", body, headers=headers).expect(200) for _ in range(2))
    assert first.headers["X-Chat-Id"] == second.headers["X-Chat-Id"] and len(provider.requests) == 1
    assert first.json["choices"] == second.json["choices"]
    chat = {"X-Chat-Id": first.headers["X-Chat-Id"], **headers}
    server.client.post("/v1/chat/completions", {**body, "messages": [user("y")]}, headers=chat).error(422, "idempotency_key_reused")


# --- the turn itself --------------------------------------------------------------------------------------------------

def test_tools_run_here_and_thinking_is_reasoning(server, provider):
    provider.plan(tools(call("echo", {"text": "x"}), think="hm"), text("done"))
    answer = stream(server, [user("go")], stream_options={"include_usage": True}).rest()
    assert answer.done and answer.text == "done" and answer.thinking.startswith("hm") and "echo" in answer.thinking
    for chunk in answer.chunks:
        schemas.check("openai_chat_completion_chunk", chunk)
        assert not any("tool_calls" in choice["delta"] for choice in chunk["choices"])
    assert answer.chunks[-1]["choices"] == [] and answer.chunks[-1]["usage"]["total_tokens"] == 36
    assert answer.chunks[-2]["choices"][0]["finish_reason"] == "stop"


def test_a_response_is_a_stream_of_typed_events(server, provider):
    provider.plan(tools(call("echo", {"text": "x"}), think="hm"), text("do", "ne"))
    answer = Sse(server, "/v1/responses", {"model": "reprise", "input": "go", "stream": True}).rest()
    assert answer.done and answer.text == "done"
    for number, event in enumerate(answer.chunks):
        schemas.check("openai_response_event", event, "openai_" + event["type"].removeprefix("response.").replace(".", "_") + "_event")
        assert event["sequence_number"] == number
    kinds = [event["type"].removeprefix("response.") for event in answer.chunks]
    assert kinds[:2] == ["created", "in_progress"] and kinds[-1] == "completed"
    message = kinds[kinds.index("output_text.delta") - 2:]
    assert message == ["output_item.added", "content_part.added", "output_text.delta", "output_text.delta", "output_text.done", "content_part.done",
                       "output_item.done", "completed"]
    response = answer.chunks[-1]["response"]
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert server.client.get(f"/v1/responses/{response['id']}").expect(200, "openai_response").json["output"][-1] == response["output"][-1]


@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_is_text_with_a_link_and_is_answered_elsewhere(server, provider, approved):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "`x`"})), text("so be it"))
    answer = stream(server, [user("write")], "c").until("**Approval needed:** write_file")
    answer.until(f"http://127.0.0.1:{server.port}/#c")
    pending, = server.client.get("/approvals").expect(200, "approvals").json["approvals"]
    assert not (server.home.workspace / "a.txt").exists()
    server.client.post(f"/approvals/{pending['approval_id']}", {"approved": approved}).expect(200)
    answer.rest()
    assert answer.done and answer.text.endswith(("Approved." if approved else "Rejected.") + "\n\nso be it")
    assert (server.home.workspace / "a.txt").exists() == approved
    provider.plan(text("next"))
    ask(server, [user("write"), assistant(answer.text), user("next?")], "c").expect(200)
    assert len(branch(server, "c")) == 2, "our own text about the approval is not taken for an edit"


def test_without_a_stream_the_answer_waits_for_the_approval(server, provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"})), text("done"))

    def approve():
        pending, = eventually(lambda: server.client.get("/approvals").json["approvals"], "an approval")
        server.client.post(f"/approvals/{pending['approval_id']}", {"approved": True}).expect(200)

    answer, _ = at_once([lambda: ask(server, [user("write")], "c"), approve])
    assert say(answer).endswith("done")


def test_cancel(server, provider):
    gate = Gate()
    provider.plan(text("half", gate))
    answer = Sse(server, "/v1/responses", {"model": "reprise", "input": "x", "stream": True}, {"X-Chat-Id": "c"}).until("half")
    response = answer.chunks[0]["response"]["id"]
    server.client.request("POST", f"/v1/responses/{response}/cancel").expect(200, "openai_response")
    answer.rest()
    assert answer.chunks[-1]["type"] == "response.incomplete" and answer.done
    assert server.client.get(f"/v1/responses/{response}").expect(200, "openai_response").json["status"] == "cancelled"
    assert server.client.interaction("c", "int_001")["status"] == "CANCELLED"


def test_a_client_that_is_killed_cancels_its_run_and_its_next_message_takes_its_place(make_server, provider):
    server = make_server(provider, config={"disconnect_grace_s": 3600})  # long, so that the run still exists
    gate = Gate()
    provider.plan(text("half", gate), text("anew"))
    process = subprocess.Popen(["curl", "-sSN", "--noproxy", "*", f"http://127.0.0.1:{server.port}/v1/chat/completions", "-H", "X-Chat-Id: c", "-H",
                                "Content-Type: application/json", "-d", json.dumps({"model": "reprise", "stream": True, "messages": [user("x")]})],
                               stdout=subprocess.PIPE)
    seen = b""
    while b"half" not in seen:
        seen += process.stdout.read1(1)
    ask(server, [user("x")], "c").error(409, "busy")
    process.kill()
    process.wait()
    answer = eventually(lambda: next((a for a in [ask(server, [user("x")], "c")] if a.status != 409), None), "the chat is free")
    assert say(answer) == "anew"
    assert branch(server, "c") == [("int_002", "x")] and server.client.interaction("c", "int_001")["status"] == "CANCELLED"


def test_system_messages_count_for_their_message_alone(server, provider):
    provider.plan(text("one"), text("two"), text("three"))
    for number, (role, words) in enumerate((("system", "Speak like a pirate."), ("developer", "Speak like a judge."), ("system", ""))):
        messages = [m for n in range(number) for m in (user(f"q{n}"), assistant(("one", "two")[n]))]
        say(ask(server, [{"role": role, "content": words}, *messages, user(f"q{number}")], "c"))
        told_to = provider.requests[-1].messages[0]["content"]
        assert (not words or words in told_to) and all(other not in told_to for other in ("pirate", "judge") if other not in words)
    assert [m for _, m in branch(server, "c")] == ["q0", "q1", "q2"], "a changed system message is not an edit"


def test_a_chat_is_known_though_the_front_end_shows_results_in_it(server, provider):
    provider.plan(text("one"), text("two"))
    say(ask(server, [user("a")], "c"))
    say(ask(server, [user("a"), called("{}"), result("of the front end"), assistant("one"), user("b")], "c"))
    assert told(provider) == ["a", "one", "b"] and len(branch(server, "c")) == 2


def called(arguments, said=None, key="c1"):
    return {"role": "assistant", "content": said, "tool_calls": [{"id": key, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}]}


def result(content, key="c1"):
    return {"role": "tool", "tool_call_id": key, "content": content}


@pytest.mark.parametrize("chat", ["c", None])
@pytest.mark.parametrize("said", [None, "", "Let me look."])
def test_what_tools_of_the_front_end_have_said_is_told_as_that(make_server, make_home, provider, chat, said):
    home = make_home()
    server = make_server(provider, home=home)
    provider.plan(text("rain"), text("tomorrow too"))
    messages = [user("weather?"), called('{"city":"Paris"}', said), called('{"city":"Rome"}', None, "c2"), result("wet in Paris"), result([
        {"type": "text", "text": "dry in Rome"}], "c2")]
    answer = ask(server, messages, chat)
    found = answer.headers["X-Chat-Id"]
    assert say(answer) == "rain"
    told_first = told(provider)
    for words in ("weather?", 'get_weather {"city":"Paris"}', "wet in Paris", 'get_weather {"city":"Rome"}', "dry in Rome", *([said] if said else [])):
        assert sum(words in each for each in told_first) == 1, words
    server.stop()
    server = make_server(provider, home=home)
    answer = ask(server, [*messages, assistant("rain"), user("and tomorrow?")], chat)
    assert say(answer) == "tomorrow too" and answer.headers["X-Chat-Id"] == found
    assert told(provider) == [*told_first, "rain", "and tomorrow?"]


def test_results_of_a_front_ends_tools_go_on_after_a_response(server, provider):
    provider.plan(text("one"), text("two"))
    first = server.client.post("/v1/responses", {"model": "reprise", "input": "a", "conversation": "c"}).expect(200).json
    items = [{"type": "function_call_output", "call_id": "c1", "output": "of the front end"}]
    server.client.post("/v1/responses", {"model": "reprise", "input": items, "previous_response_id": first["id"]}).expect(200, "openai_response")
    assert told(provider)[:2] == ["a", "one"] and "of the front end" in told(provider)[2] and len(branch(server, "c")) == 2


@pytest.mark.parametrize("chat", ["c", None])
@pytest.mark.parametrize("shown", ["Once upon a time", "Once upon"])
def test_an_answer_is_continued(make_server, make_home, provider, chat, shown):
    """Open WebUI's "Continue Response", or an answer begun by the client, which shows both parts as one answer."""
    home = make_home()
    server = make_server(provider, home=home)
    provider.plan(text("Once upon a time"), text(", the end"), text(" of all"), text("Sure"), text("Again"))
    say(ask(server, [user("a tale")], chat))
    answer = ask(server, [user("a tale"), assistant(shown)], chat)
    found = answer.headers["X-Chat-Id"]
    assert say(answer) == ", the end" and told(provider)[-3:-1] == ["a tale", "Once upon a time" if chat else shown]
    known = chat is not None or shown == "Once upon a time"
    if not known:
        return  # a client without the whole answer gets another chat
    whole = shown + ", the end"
    if shown != "Once upon a time":
        whole = "Once upon a time, the end"
    assert say(ask(server, [user("a tale"), assistant(whole)], chat)) == " of all"
    server.stop()
    server = make_server(provider, home=home)
    whole += " of all"
    answer = ask(server, [user("a tale"), assistant(whole), user("another")], chat)
    assert say(answer) == "Sure" and answer.headers["X-Chat-Id"] == found
    assert [m for _, m in branch(server, found)][::3] == ["a tale", "another"] and told(provider)[-1] == "another" and len(told(provider)) == 7
    say(ask(server, [user("a tale"), assistant(whole), user("another one")], chat))
    assert told(provider)[-1] == "another one" and (len(told(provider)) == 7 or not chat), "an edit, which is a new chat if it has no name"


def test_an_answer_that_was_begun_elsewhere_is_continued(server, provider):
    provider.plan(text(' 1}'), text(' 1}'))
    for model in ("reprise", "test/scripted"):
        assert say(ask(server, [user("JSON, please"), assistant('{"a":')], model=model)) == " 1}"
        assert told(provider)[:2] == ["JSON, please", '{"a":']
    assert len(told(provider)) == 2, "a model without the agent gets nothing more"


def test_empty_turns_are_left_out(server, provider):
    provider.plan(text("one"), text("two"), text("three"))
    say(ask(server, [user(""), user("a"), assistant("")], "c"))
    assert told(provider) == ["a"]
    say(ask(server, [user(" \n"), user("a"), assistant("one"), user(""), assistant(None), user("b"), assistant(" ")], "c"))
    assert told(provider) == ["a", "one", "b"] and [m for _, m in branch(server, "c")] == ["a", "b"]
    say(ask(server, [assistant(""), user("a"), assistant("one"), user("b"), assistant("two"), user([{"type": "text", "text": ""}]), user("c")], "c"))
    assert told(provider) == ["a", "one", "b", "two", "c"]


def test_where_two_names_say_different_things_the_response_counts(server, provider):
    provider.plan(text("one"), text("other"), text("two"))
    first = server.client.post("/v1/responses", {"model": "reprise", "input": "a"}, headers={"X-Chat-Id": "c"}).expect(200).json
    say(ask(server, [user("b")], "d"))
    answer = server.client.post("/v1/responses", {"model": "reprise", "input": "c", "previous_response_id": first["id"]}, headers={"X-Chat-Id": "d"}).expect(200)
    assert answer.headers["X-Chat-Id"] == "c" and [m for _, m in branch(server, "c")] == ["a", "c"] and [m for _, m in branch(server, "d")] == ["b"]


def test_a_response_says_when_it_was(server, provider):
    provider.plan(text("one"))
    made = server.client.post("/v1/responses", {"model": "reprise", "input": "a", "store": False}).expect(200, "openai_response").json
    chat, number = made["id"].removeprefix("resp_").rsplit("_int_", 1)
    kept = server.client.interaction(chat, f"int_{number}")
    read = server.client.get(f"/v1/responses/{made['id']}").expect(200, "openai_response").json
    seconds = [int(datetime.datetime.fromisoformat(kept[name].replace("Z", "+00:00")).timestamp()) for name in ("created_at", "completed_at")]
    assert [read["created_at"], read["completed_at"]] == seconds and read["store"] is True, "an agent's chat is always stored"


def test_usage_in_a_stream_is_told_when_it_is_asked_for(server, provider):
    for options, wanted in ((None, False), ({"include_usage": False}, False), ({"include_usage": True}, True)):
        for model in ("reprise", "test/scripted"):
            provider.plan(text("one"))
            chunks = stream(server, [user("x")], model=model, **({"stream_options": options} if options else {})).rest().chunks
            assert any(chunk.get("usage") for chunk in chunks) == wanted
            assert all(chunk.get("choices") for chunk in chunks[:-1]) and bool(chunks[-1]["choices"]) != wanted


def test_a_client_that_goes_while_an_approval_waits_leaves_it_waiting(make_server, provider):
    server = make_server(provider, config={"disconnect_grace_s": 0})
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"})), text("done"))
    stream(server, [user("write")], "c").until("Approval needed").close()
    pending, = server.client.get("/approvals").json["approvals"]
    ask(server, [user("write")], "c").error(409, "busy")
    server.client.post(f"/approvals/{pending['approval_id']}", {"approved": True}).expect(200)
    eventually(lambda: server.client.interaction("c", "int_001")["status"] in ("COMPLETED", "CANCELLED"), "it ends")
    assert (server.home.workspace / "a.txt").read_text() == "x"


def test_after_kill_9_the_approval_waits_and_the_conversation_goes_on(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    messages, chat = conversation(server, provider, 2, "c")
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"}), say="I write."))
    answer = stream(server, [*messages, user("write")], "c").until("Approval needed")
    server.kill()
    answer.rest()
    assert not answer.done
    server = make_server(provider, home=home)
    pending, = server.client.get("/approvals").json["approvals"]
    provider.plan(text("written"))
    server.client.post(f"/approvals/{pending['approval_id']}", {"approved": True}).expect(200)
    eventually(lambda: server.client.interaction("c", "int_003")["status"] == "COMPLETED", "it goes on")
    provider.plan(text("more"))
    answer = ask(server, [*messages, user("write"), assistant(answer.text), user("more?")], "c")
    assert say(answer) == "more" and [i for i, _ in branch(server, "c")] == ["int_001", "int_002", "int_003", "int_004"]
    read = server.client.get("/v1/responses/resp_c_int_003").expect(200, "openai_response").json
    assert "written" in json.dumps(read["output"]) and "I write." in json.dumps(read["output"])


def test_a_stop_of_the_server_does_not_end_the_answer(server, provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"})))
    answer = stream(server, [user("write")], "c").until("Approval needed")
    server.stop()
    answer.rest()
    assert not answer.done and answer.chunks[-1]["error"]["code"] == "stopping"


def test_two_doors_on_one_chat_are_never_mixed(server, provider):
    gate = Gate()
    provider.plan(text("from the page", gate), text("from the front end"))
    native = server.client.start("c", "one")
    native.until("text_delta")
    busy = ask(server, [user("two")], "c")
    assert busy.error(409, "busy")["details"] == {"interaction_id": "int_001"} and busy.json["error"]["type"] == "invalid_request_error"
    gate.release()
    native.finish()
    assert say(ask(server, [user("one"), assistant("from the page"), user("two")], "c")) == "from the front end"
    assert branch(server, "c") == [("int_001", "one"), ("int_002", "two")]
    # Many at once through both interfaces: each turn is complete and follows another.
    provider.answer_with(lambda request: text("to " + request.conversation[-1]["content"]))
    calls = [lambda n=n: ask(server, [user(f"foreign {n}")], "many") for n in range(6)]
    calls += [lambda n=n: server.client.post("/chats/many/interactions", {"user_message": f"native {n}", "stream": False}) for n in range(6)]
    answers = at_once(calls)
    assert {a.status for a in answers} <= {200, 409} and any(a.status == 200 for a in answers)
    for interaction in server.client.history("many", branches="all")["interactions"]:
        answer, = [e["content"] for e in interaction["agent_events"] if e["type"] == "ANSWER"]
        assert answer == "to " + interaction["user_message"]


def test_a_failure_is_an_error_that_no_client_repeats(make_server, provider):
    server = make_server(provider, config={"max_retries": 0})
    provider.plan(failure(500, "broken"))
    answer = ask(server, [user("x")], "c")
    assert answer.status == 400 and answer.json["error"]["type"] == "server_error" and not answer.json["error"]["retryable"]
    provider.plan(failure(500, "broken"))
    events = Sse(server, "/v1/responses", {"model": "reprise", "input": "x", "stream": True}).rest().chunks
    assert events[-1]["type"] == "response.failed" and events[-1]["response"]["error"]["code"].startswith("provider_")


def runs(server):
    """The number of times the command of `counting` ran."""
    file = server.home.workspace / "ran.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def counting(request):
    """A model that runs a command for "count", and whose provider then fails."""
    if request.conversation[-1]["role"] == "tool":
        return failure(500, "broken")
    return tools(call("run_shell", {"command": "echo x >> ran.txt"})) if "count" in request.conversation[-1]["content"] else text("fine")


def counts(make_server, provider, home=None, **config):
    provider.answer_with(counting)
    return make_server(provider, home=home, config={"max_retries": 0, "approval_mode": "approve_all", **config})


SPOKEN = [user("hi"), assistant("fine"), user("count")]
REPEATED = {"first message": ("chat/completions", {"messages": [user("count")]}, {}), "named": ("chat/completions", {"messages": [user("count")]}, {"X-Chat-Id": "c"}),
            "later": ("chat/completions", {"messages": SPOKEN}, {}), "named, later": ("chat/completions", {"messages": SPOKEN}, {"X-Chat-Id": "c"}),
            "response": ("responses", {"input": "count"}, {}), "at the end of a chat": ("responses", {"input": "count", "conversation": "c"}, {}),
            "told elsewhere": ("responses", {"input": [user("a"), assistant("b"), user("count")], "conversation": "c"}, {})}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("which", REPEATED)
def test_what_a_failed_run_has_done_is_not_done_again(make_server, make_home, provider, which, streamed):
    home = make_home()
    server = counts(make_server, provider, home)
    path, body, headers = REPEATED[which]
    body = {"model": "reprise", "stream": streamed, **body}
    if which in ("later", "named, later"):
        ask(server, [user("hi")], headers.get("X-Chat-Id")).expect(200)

    def again(changed=None, **more):
        answer = server.client.post(f"/v1/{path}", {**body, **(changed or {})}, headers={**headers, **more})
        assert streamed or answer.error(400, "provider_error")["type"] == "server_error"
        return answer.headers["X-Chat-Id"], answer.body.decode()

    chat, _ = again()
    assert runs(server) == 1
    assert again()[0] == chat and runs(server) == 1, "the answer is about the earlier run"
    told_again = again()[1]
    assert "begun a run before" in told_again and "Idempotency-Key" in told_again
    server.kill()
    server = counts(make_server, provider, home)
    assert again()[0] == chat and runs(server) == 1, "after a restart, too"
    again(**{"Idempotency-Key": "mine"})
    assert runs(server) == 2, "another Idempotency-Key starts a new run"
    again({"metadata": {"try": "2"}})
    assert runs(server) == 3, "another body starts a new run"


def test_what_has_done_nothing_is_done_again(make_server, provider):
    server = counts(make_server, provider)
    asked = []

    def only_reads(request):
        if request.conversation[-1]["role"] == "tool":
            return failure(500, "broken") if len(asked) == 1 else text("done")
        asked.append(request)
        return tools(call("list_files", {}))

    provider.answer_with(only_reads)
    ask(server, [user("x")], "c").error(400, "provider_error")
    assert say(ask(server, [user("x")], "c")) == "done" and len(asked) == 2


def left(server, body, headers=None):
    """Sends a request without reading the answer; the caller closes the connection."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json", **(headers or {})})
    return connection


def connections(server):
    return next(line for line in server.client.get("/metrics").body.decode().splitlines() if line.startswith("reprise_http_connections "))


@pytest.mark.parametrize("chat", ["c", None], ids=["named", "found"])
def test_a_client_that_retries_too_early_finds_the_running_run(make_server, provider, chat):
    server = counts(make_server, provider, disconnect_grace_s=60)
    gate = Gate()
    provider.answer_with(lambda request: text("done", gate) if request.conversation[-1]["role"] == "tool" else counting(request))
    body, headers = {"model": "reprise", "messages": [user("count")]}, {"X-Chat-Id": chat} if chat else {}
    before = connections(server)
    connection = left(server, body, headers)
    gate.wait_reached()
    connection.close()
    found = server.client.get("/chats").json["chats"][0]["id"]
    eventually(lambda: connections(server) == before, "the server has seen that the client is gone")
    again = left(server, body, headers)
    eventually(lambda: connections(server) != before, "the second connection is there")
    gate.release()
    assert json.load(again.getresponse())["choices"][0]["message"]["content"] == "done"
    assert runs(server) == 1 and [entry["id"] for entry in server.client.get("/chats").json["chats"]] == [found]


def test_what_was_cancelled_as_its_client_left_is_not_done_again(make_server, provider):
    server = counts(make_server, provider, disconnect_grace_s=0)
    gate = Gate()
    provider.answer_with(lambda request: text("done", gate) if request.conversation[-1]["role"] == "tool" else counting(request))
    body = {"model": "reprise", "messages": [user("count")]}
    connection = left(server, body)
    gate.wait_reached()
    connection.close()
    gate.wait_left()
    found = server.client.get("/chats").json["chats"][0]["id"]
    eventually(lambda: server.client.interaction(found, "int_001")["status"] == "CANCELLED", "it is cancelled")
    assert "Idempotency-Key" in ask(server, body["messages"]).error(400, "cancelled")["message"] and runs(server) == 1


@pytest.mark.parametrize("model, retryable", [("reprise", False), ("test/scripted", True)])
def test_a_stream_that_fails_ends_with_an_error_line(make_server, provider, model, retryable):
    server = make_server(provider, config={"max_retries": 0})
    provider.plan(failure(503, "busy"))
    answer = stream(server, [user("x")], model=model).rest()
    for chunk in answer.chunks[:-1]:
        schemas.check("openai_chat_completion_chunk", chunk)
    schemas.check("openai_stream_error", answer.chunks[-1])
    error = answer.chunks[-1]["error"]
    assert not answer.done and error["code"] == "provider_overloaded" and error["retryable"] is retryable, "only a request without the agent may be retried"


@pytest.mark.parametrize("status, headers, told_as, again", [(401, {}, 400, None), (403, {}, 400, None), (429, {"Retry-After": "7"}, 503, "7"),
                                                             (503, {"Retry-After": "7"}, 503, "7"), (503, {}, 503, "1"), (400, {}, 400, None)])
def test_a_failure_of_a_model_alone_says_whether_to_ask_again(make_server, provider, status, headers, told_as, again):
    server = make_server(provider, config={"max_retries": 0})
    provider.plan(failure(status, "no", headers=headers))
    answer = ask(server, [user("x")], model="test/scripted")
    error = answer.error(told_as)
    assert answer.headers.get("Retry-After") == again and error["retryable"] is bool(again)


def test_files_of_the_last_message_are_files_of_the_chat(server, provider):
    provider.plan(text("I see"), text("again"), text("I see that"), text("other"))
    data = base64.b64encode(b"the text of the file").decode()
    parts = [{"type": "text", "text": "look"}, {"type": "file", "file": {"filename": "note.txt", "file_data": f"data:text/plain;base64,{data}"}},
             {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
    ask(server, [user(parts)], "c").expect(200)
    assert "the text of the file" in json.dumps(provider.requests[-1].body)
    file, = server.client.get("/chats/c/files").json["files"]
    assert (file["filename"], file["mime_type"], file["size_bytes"]) == ("note.txt", "text/plain", 20)
    ask(server, [user(parts)], "c").expect(200)
    assert len(server.client.get("/chats/c/files").json["files"]) == 1, "a repeated turn keeps its files"
    other = base64.b64encode(b"another text").decode()
    ask(server, [user([parts[0], {"type": "file", "file": {"filename": "note.txt", "file_data": f"data:text/plain;base64,{other}"}}, parts[2]])], "c").expect(200)
    assert "another text" in json.dumps(provider.requests[-1].body) and "the text of the file" not in json.dumps(provider.requests[-1].body)
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(30)).decode()
    answer = server.client.post("/v1/responses", {"model": "reprise", "input": [{"role": "user", "content": [
        {"type": "input_image", "image_url": f"data:image/png;base64,{picture}"}]}]}).expect(200, "openai_response")
    chat = answer.headers["X-Chat-Id"]
    assert [f["mime_type"] for f in server.client.get(f"/chats/{chat}/files").json["files"]] == ["image/png"]


def test_a_model_alone_has_no_chat_and_no_tools_of_ours(server, provider):
    provider.plan(text("A title"), text("Tags"))
    answer = ask(server, [{"role": "system", "content": "Make a title."}, user("a"), assistant("b"), user("Title?")], "c", model="test/scripted")
    assert say(answer) == "A title" and "X-Chat-Id" not in answer.headers
    asked = provider.requests[-1]
    assert "tools" not in asked.body and [m["content"] for m in asked.messages] == ["Make a title.", "a", "b", "Title?"]
    assert stream(server, [user("Tags?")], model="test/scripted").rest().text == "Tags"
    assert server.client.get("/chats").json["chats"] == []


WISHES = {"temperature": 0.2, "top_p": 0.5, "max_completion_tokens": 50, "stop": ["END", "\n\n"], "response_format": {"type": "json_schema", "json_schema": {
    "name": "title", "strict": True, "schema": {"type": "object", "properties": {"title": {"type": "string"}}}}}}


def test_a_model_alone_is_told_what_is_wished_of_its_answer(server, provider):
    provider.plan(text("one"), text("two"), text("three"), text("four"), text("five"))
    say(ask(server, [user("x")], model="test/scripted", **WISHES, seed=7, unknown={"a": 1}))
    body = provider.requests[-1].body
    assert (body["temperature"], body["top_p"], body["max_tokens"], body["stop"]) == (0.2, 0.5, 50, ["END", "\n\n"])
    assert body["response_format"] == WISHES["response_format"] and "seed" not in body and "unknown" not in body
    say(ask(server, [user("x")], model="test/scripted", response_format={"type": "json_object"}, stop="END"))
    assert provider.requests[-1].body["response_format"] == {"type": "json_object"} and provider.requests[-1].body["stop"] == ["END"]
    weather = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    say(ask(server, [user("x")], model="test/scripted", tools=[weather], tool_choice={"type": "function", "function": {"name": "get_weather"}}))
    assert provider.requests[-1].body["tool_choice"] == {"type": "function", "function": {"name": "get_weather"}}
    answer = server.client.post("/v1/responses", {"model": "test/scripted", "input": "x", "temperature": 0.5, "max_output_tokens": 9, "text": {"format": {
        "type": "json_schema", "name": "t", "schema": {"type": "object"}}}}).expect(200, "openai_response").json
    assert (answer["temperature"], answer["store"]) == (0.5, False)
    assert provider.requests[-1].body["max_tokens"] == 9 and provider.requests[-1].body["response_format"]["json_schema"]["name"] == "t"
    # They do not apply to an agent, which makes many requests.
    say(ask(server, [user("x")], "c", **WISHES))
    assert not {"temperature", "top_p", "max_tokens", "stop", "response_format"} & set(provider.requests[-1].body)


def test_wishes_are_said_in_the_words_of_the_providers_interface(make_server, provider):
    one = {"base_url": provider.url, "api_key": "${TEST_API_KEY}"}
    server = make_server(config={"providers": {"claude": {**one, "type": "anthropic", "base_url": provider.url.removesuffix("/v1")},
                                               "newer": {**one, "type": "openai_responses"}}, "model": "claude/scripted",
                                 "models": {"claude/scripted": {"abilities": {"images": True}}}})
    weather = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    provider.plan(anthropic.message(anthropic.say("one")), anthropic.message(anthropic.say("two")))
    say(ask(server, [user("x")], model="claude/scripted", **{**WISHES, "temperature": 1.5}, tools=[weather], tool_choice="required"))
    body = provider.requests[-1].body
    assert (body["temperature"], body["max_tokens"], body["stop_sequences"], body["tool_choice"]) == (1.0, 50, ["END"], {"type": "any"})
    assert "top_p" not in body and "response_format" not in body
    say(ask(server, [user([{"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(PICTURE).decode()}}])], model="claude/scripted"))
    assert provider.requests[-1].body["messages"][0]["content"][0]["type"] == "image"
    provider.plan(responses.message(responses.say("three")), failure(400, "Unsupported parameter: 'temperature' is not supported with this model."),
                  responses.message(responses.say("four")))
    say(ask(server, [user("x")], model="newer/scripted", **WISHES, tools=[weather], tool_choice={"type": "function", "function": {"name": "get_weather"}}))
    body = provider.requests[-1].body
    assert (body["temperature"], body["top_p"], body["max_output_tokens"], body["tool_choice"]) == (0.2, 0.5, 50, {"type": "function", "name": "get_weather"})
    assert body["text"]["format"] == {"type": "json_schema", **WISHES["response_format"]["json_schema"]} and "stop" not in body
    assert say(ask(server, [user("x")], model="newer/scripted", **WISHES)) == "four" and "temperature" not in provider.requests[-1].body


STRICT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def function(path, name, **more):
    members = {"name": name, **more}
    return {"type": "function", "function": members} if path == "/v1/chat/completions" else {"type": "function", **members}


def allowed(path, mode, *names):
    inner = {"mode": mode, "tools": [function(path, name) for name in names]}
    return {"type": "allowed_tools", **({"allowed_tools": inner} if path == "/v1/chat/completions" else inner)}


@pytest.fixture
def three(make_server, provider):
    """A server with a provider of each type; `ask(path, type, **members)` answers with what the client and the provider got."""
    one = {"base_url": provider.url, "api_key": "${TEST_API_KEY}"}
    types = {"openai": lambda: text("fine"), "anthropic": lambda: anthropic.message(anthropic.say("fine")), "openai_responses": lambda: responses.message(responses.say("fine"))}
    server = make_server(config={"providers": {kind: {**one, "type": kind, "base_url": provider.url.removesuffix("/v1") if kind == "anthropic" else provider.url} for kind in types},
                                 "model": "openai/m", "models": {"anthropic/thinker": {"thinking": 2000}}})

    def asked(path, kind, model="m", **members):
        provider.requests.clear()
        provider.answer_with(lambda _: types[kind]())
        answer = server.client.post(path, asked_by(path, f"{kind}/{model}", **members))
        return answer, provider.requests[-1].body if provider.requests else None
    asked.types, asked.server = list(types), server
    return asked


def names_of(tools):
    return [(tool.get("function") or tool)["name"] for tool in tools or []]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_a_choice_of_tools_means_what_it_says(three, provider, path):
    both = [function(path, "read", parameters=STRICT), function(path, "delete", parameters=STRICT)]
    forced = {"openai": "required", "openai_responses": "required", "anthropic": {"type": "any"}}
    for kind in three.types:
        for choice, offered, must in (("auto", ["read", "delete"], None), ("none", [], None), ("required", ["read", "delete"], forced[kind]),
                                      (allowed(path, "auto", "read"), ["read"], None), (allowed(path, "required", "read"), ["read"], forced[kind]),
                                      (allowed(path, "auto"), [], None)):
            answer, sent = three(path, kind, tools=both, tool_choice=choice)
            assert answer.expect(200) and "X-Left-Out-Parameters" not in answer.headers
            assert (names_of(sent.get("tools")), sent.get("tool_choice")) == (offered, must), (kind, choice)
            if path == "/v1/responses":
                assert answer.json["tool_choice"] == choice and names_of(answer.json["tools"]) == offered
    wrong = ["bogus", {"type": "bogus"}, {"type": "function"}, {}, 7, ["auto"], function(path, "other"), allowed(path, "auto", "other"), allowed(path, "any", "read"),
             {"type": "allowed_tools"}, allowed(path, "required")]
    for choice in wrong:
        answer, sent = three(path, "openai", tools=both, tool_choice=choice)
        assert sent is None and answer.error(400)["param"] == "tool_choice", choice
    provider.answer_with(lambda _: text("fine"))
    for choice, header in (("auto", "tools"), (allowed(path, "auto", "read"), "tool_choice, tools"), ("none", "tool_choice, tools")):
        answer = three.server.client.post(path, asked_by(path, "reprise", tools=both, tool_choice=choice)).expect(200)
        assert ", ".join(sorted(answer.headers["X-Left-Out-Parameters"].split(", "))) == header
    for choice in ("required", function(path, "read"), allowed(path, "required", "read"), "bogus", {"type": "bogus"}):
        assert three.server.client.post(path, asked_by(path, "reprise", tools=both, tool_choice=choice)).error(400)["param"] == "tool_choice"


def test_what_a_type_of_provider_does_not_do_is_named_or_refused(three, provider):
    """A row for each wish: what the provider is sent, and what the client is told, by type."""
    schema = {"type": "json_schema", "name": "o", "strict": True, "schema": STRICT}
    formats = {CHATS: {"response_format": {"type": "json_schema", "json_schema": {k: v for k, v in schema.items() if k != "type"}}}, RESPONSES: {"text": {"format": schema}}}
    for path, members in formats.items():
        assert three(path, "openai", **members)[1]["response_format"]["json_schema"]["schema"] == STRICT
        assert three(path, "openai_responses", **members)[1]["text"]["format"] == schema
        assert three(path, "anthropic", **members)[1]["output_config"] == {"format": {"type": "json_schema", "schema": STRICT}}
        answer, sent = three(path, "anthropic", **({"response_format": {"type": "json_object"}} if path == CHATS else {"text": {"format": {"type": "json_object"}}}))
        assert sent is None and answer.error(400, "unsupported_value")["param"] == ("response_format" if path == CHATS else "text")
        for kind in three.types:
            answer, sent = three(path, kind, tools=[function(path, "f", parameters=STRICT, strict=True), function(path, "g", parameters=STRICT)])
            assert [(tool.get("function") or tool).get("strict", False) for tool in sent["tools"]] == [True, False], kind
            if path == RESPONSES:
                assert [tool["strict"] for tool in answer.expect(200).json["tools"]] == [True, False]

    def left_out(kind, path=CHATS, **members):
        answer, sent = three(path, kind, **members)
        return answer.expect(200).headers.get("X-Left-Out-Parameters"), sent
    assert left_out("openai", stop=["END"])[0] is None and left_out("anthropic", stop=["END"])[0] is None
    assert left_out("openai_responses", stop=["END"])[0] == "stop"
    named, sent = left_out("anthropic", stop=["END", " \n"])
    assert named == "stop" and sent["stop_sequences"] == ["END"]
    assert left_out("anthropic", temperature=0.3, top_p=0.4)[0] == "top_p"
    thinker = {"model": "thinker", "tools": [function(CHATS, "f", parameters=STRICT)]}
    assert left_out("anthropic", **thinker, temperature=0.3, max_tokens=50)[0] == "temperature, max_completion_tokens"
    named, sent = left_out("anthropic", **thinker, tool_choice="required")
    assert named is None and sent["tool_choice"] == {"type": "any"} and "thinking" not in sent, "a forced call and thinking exclude each other"
    for kind in three.types:
        assert left_out(kind, web_search_options={})[0] == "web_search_options"
        assert left_out(kind, seed=0, enable_thinking=False)[0] == "seed, enable_thinking"
        assert left_out(kind, RESPONSES, text={"verbosity": "low"})[0] == "text.verbosity"
        assert left_out(kind, RESPONSES, text={"verbosity": "medium"})[0] is None
    provider.answer_with(lambda _: text("fine"))
    for members, named in (({"text": {"format": schema, "verbosity": "low"}}, "text.format, text.verbosity"), ({"text": {"format": {"type": "text"}}}, None),
                           ({"temperature": 0}, "temperature")):
        answer = three.server.client.post(RESPONSES, asked_by(RESPONSES, "reprise", **members)).expect(200)
        assert answer.headers.get("X-Left-Out-Parameters") == named
    provider.answer_with(lambda _: failure(400, "Unsupported parameter: 'response_format' is not supported with this model."))
    for _ in range(2):
        error = three.server.client.post(CHATS, asked_by(CHATS, "openai/m", **formats[CHATS])).error(400, "provider_bad_request")
        assert "response_format" in error["message"], "prose would not be what was asked for"


def test_a_refusal_is_one(server, provider):
    def refuses():
        return Reply([delta({"refusal": "I "}), delta({"refusal": "refuse"}), *ending()])
    provider.plan(refuses(), refuses(), refuses(), refuses(), refuses())
    choice = ask(server, [user("x")], model="test/scripted").expect(200, "openai_chat_completion").json["choices"][0]
    assert (choice["message"]["refusal"], choice["message"]["content"], choice["finish_reason"]) == ("I refuse", None, "stop")
    told = stream(server, [user("x")], model="test/scripted").rest()
    assert told._joined("refusal") == "I refuse" and told.text == "" and told.chunks[-1]["choices"][0]["finish_reason"] == "stop"
    answer = server.client.post("/v1/responses", {"model": "test/scripted", "input": "x"}).expect(200, "openai_response").json
    assert answer["status"] == "completed" and answer["output"][0]["content"] == [{"type": "refusal", "refusal": "I refuse"}]
    events = Sse(server, "/v1/responses", {"model": "test/scripted", "input": "x", "stream": True}).rest().chunks
    for event in events:
        schemas.check("openai_response_event", event, "openai_" + event["type"].removeprefix("response.").replace(".", "_") + "_event")
    assert [event.get("delta") or event["refusal"] for event in events if "refusal" in event["type"]] == ["I ", "refuse", "I refuse"]
    # An agent's text is a stream before its end is known: the end says what it was.
    choice = ask(server, [user("x")]).expect(200, "openai_chat_completion").json["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("I refuse", "content_filter")


def test_refused_parameters_are_left_out_or_renamed(server, provider):
    provider.plan(failure(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."), text("one"), text("two"))
    for wanted in ("one", "two"):
        assert say(ask(server, [user("x")], model="test/scripted", max_tokens=50)) == wanted
        assert provider.requests[-1].body["max_completion_tokens"] == 50 and "max_tokens" not in provider.requests[-1].body
    assert len(provider.requests) == 3
    provider.plan(failure(400, "no such thing"))
    ask(server, [user("x")], model="test/scripted").error(400)
    assert len(provider.requests) == 4, "other errors are not retried"


def test_a_model_alone_sees_files(make_server, provider):
    server = make_server(provider, config={"models": {"test/scripted": {"abilities": {"images": True}}, "test/blind": {"abilities": {"images": False}}}})
    provider.plan(text("a cat"), text("seen"), text("nothing"))
    picture = base64.b64encode(PICTURE).decode()
    note = base64.b64encode(b"the text of the file").decode()
    look = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
            {"type": "file", "file": {"filename": "note.txt", "file_data": f"data:text/plain;base64,{note}"}}]
    say(ask(server, [user(look), assistant("a dog"), user("no")], model="test/scripted"))
    first, _, last = provider.requests[-1].body["messages"]
    assert [part["type"] for part in first["content"]] == ["text", "image_url"] and first["content"][1]["image_url"]["url"] == f"data:image/png;base64,{picture}"
    assert first["content"][0]["text"].startswith("what?") and "the text of the file" in first["content"][0]["text"] and last["content"] == "no"
    server.client.post("/v1/responses", {"model": "test/scripted", "input": [{"role": "user", "content": [
        {"type": "input_image", "image_url": f"data:image/png;base64,{picture}"}]}]}).expect(200, "openai_response")
    assert [part["type"] for part in provider.requests[-1].body["messages"][0]["content"]] == ["image_url"]
    say(ask(server, [user(look)], model="test/blind"))
    assert "the model takes no images" in provider.requests[-1].body["messages"][0]["content"]
    assert server.client.get("/chats").json["chats"] == []


@pytest.mark.parametrize("model", ["reprise", "test/scripted"])
def test_nothing_is_fetched_for_a_client(server, provider, model):
    provider.plan(text("ok"), text("ok"))
    with socket.create_server(("127.0.0.1", 0)) as web:
        url = f"http://127.0.0.1:{web.getsockname()[1]}/picture.png"
        say(ask(server, [user([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}])], model=model))
        server.client.post("/v1/responses", {"model": model, "input": [{"role": "user", "content": [
            {"type": "input_image", "image_url": url}, {"type": "input_file", "file_url": url}]}]}).expect(200, "openai_response")
        assert all(url in json.dumps(request.body) for request in provider.requests)
        web.settimeout(0)
        with pytest.raises(BlockingIOError):
            web.accept()


def test_a_model_alone_ends_with_its_client(server, provider):
    gate = Gate()
    provider.plan(text("half", gate))
    stream(server, [user("x")], model="test/scripted").until("half").close()
    gate.wait_left()


def test_a_model_alone_counts_for_the_day(make_server, provider):
    server = make_server(provider, config={"budget": {"max_tokens_per_day": 20}})
    provider.plan(text("one"), text("two"))
    say(ask(server, [user("x")], model="test/scripted"))
    say(ask(server, [user("x")], model="test/scripted"))
    assert server.client.get("/usage").json["tokens"] == 36
    assert ask(server, [user("x")], model="test/scripted").error(403, "budget_exceeded")
    assert len(provider.requests) == 2


def test_where_a_response_goes_on(server, provider):
    provider.plan(text("one"), text("two"), text("other"), text("two again"), text("three"))
    client = server.client

    def respond(text_, **more):
        return client.post("/v1/responses", {"model": "reprise", "input": text_, **more}).expect(200, "openai_response").json

    first = respond("a", metadata={"chat_id": "c"})
    assert first["id"] == "resp_c_int_001" and first["metadata"] == {"chat_id": "c"}
    second = respond("b", previous_response_id=first["id"])
    assert respond("B", previous_response_id=first["id"])["id"] == "resp_c_int_003", "this is an edit"
    assert respond("b", previous_response_id=first["id"])["id"] == "resp_c_int_004", "this is a regeneration"
    assert respond("c", conversation={"id": "c"})["id"] == "resp_c_int_005"
    assert [m for _, m in branch(server, "c")] == ["a", "b", "c"] and told(provider) == ["a", "one", "b", "two again", "c"]
    client.request("DELETE", f"/v1/responses/{first['id']}").error(409)
    assert client.request("DELETE", f"/v1/responses/{second['id']}").expect(200, "openai_response_deleted").json["deleted"] is True
    client.get(f"/v1/responses/{second['id']}").error(404)
    for unknown in ("resp_c_int_099", "resp_nobody_int_001", "nothing"):
        client.post("/v1/responses", {"model": "reprise", "input": "x", "previous_response_id": unknown}).error(404, "previous_response_not_found")


@pytest.mark.parametrize("where", ["previous_response_id", "conversation"])
def test_turns_that_a_response_brings_along_are_added_first(server, provider, where):
    provider.plan(text("one"), text("two"), text("other"))
    first = server.client.post("/v1/responses", {"model": "reprise", "input": "a", "conversation": "c"}).expect(200).json
    goes_on = {where: first["id"] if where == "previous_response_id" else "c"}

    def respond(items, key):
        return server.client.post("/v1/responses", {"model": "reprise", "input": items, **goes_on}, headers={"Idempotency-Key": key}).expect(200).json["id"]

    items = [user("b"), assistant("said elsewhere"), user("c"), user("d")]
    assert respond(items, "k1") == respond(items, "k1") == "resp_c_int_003", "the repeated request adds nothing"
    assert told(provider) == ["a", "one", "b", "said elsewhere", "c\n\nd"]
    assert branch(server, "c") == [("int_001", "a"), ("int_002", "b"), ("int_003", "c\n\nd")]
    respond([assistant("by the way"), user("e")], "k2")
    assert told(provider)[-1] == "e" and "by the way" in provider.requests[-1].messages[0]["content"]


def test_items_of_a_response_do_not_begin_a_conversation(server, provider):
    provider.plan(text("one"), text("hello"), text("fine"))
    first = server.client.post("/v1/responses", {"model": "reprise", "input": "a"}).expect(200).json
    server.client.post("/v1/responses", {"model": "reprise", "input": "hi", "previous_response_id": first["id"]}).expect(200)
    say(ask(server, [user("hi"), assistant("hello"), user("how?")]))
    assert told(provider) == ["hi", "hello", "how?"]


def test_a_response_that_is_read_again_says_what_its_request_said(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home=home)
    provider.plan(text("one"))
    body = {"model": "reprise", "input": "a", "background": True, "instructions": "Be brief.", "metadata": {"job": "7"}}
    made = server.client.post("/v1/responses", body).expect(200, "openai_response").json

    def read():
        return server.client.get(f"/v1/responses/{made['id']}").expect(200, "openai_response").json

    said = ("model", "background", "instructions", "metadata")
    done = eventually(lambda: next((r for r in [read()] if r["status"] == "completed"), None), "it ends")
    assert [done[name] for name in said] == [made[name] for name in said] == ["reprise", True, "Be brief.", {"job": "7"}]
    server.stop()
    server = make_server(provider, home=home)
    assert [read()[name] for name in said] == ["reprise/test/scripted", False, None, {}], "responses of a model without the agent are not stored"


def test_an_item_of_an_answer_that_is_not_whole_says_so(make_server, provider):
    server = make_server(provider, config={"max_retries": 0})
    client, gate = server.client, Gate()

    def statuses(response):
        answer = client.get(f"/v1/responses/{response}").expect(200, "openai_response").json
        return answer["status"], [(item["status"], item["content"][0]["text"]) for item in answer["output"]]

    provider.plan(text("half", gate), Reply([delta({"content": "half"}), *ending("length")]), Reply([delta({"content": "half"}), CUT]))
    running = client.post("/v1/responses", {"model": "reprise", "input": "x", "background": True}).expect(200, "openai_response").json["id"]
    gate.wait_reached()
    assert eventually(lambda: statuses(running)[1] and statuses(running), "it is shown") == ("in_progress", [("in_progress", "half")])
    client.request("POST", f"/v1/responses/{running}/cancel").expect(200)
    cancelled = eventually(lambda: next((s for s in [statuses(running)] if s[0] == "cancelled"), None), "it is cancelled")
    gate.release()  # not earlier, because an answer that is complete before the cancel counts as completed
    assert [status for status, _ in cancelled[1]] == ["incomplete"]
    cut = client.post("/v1/responses", {"model": "reprise", "input": "x"}).expect(200, "openai_response").json
    assert cut["status"] == "incomplete" and [item["status"] for item in cut["output"]] == ["incomplete"]
    assert statuses(cut["id"]) == ("incomplete", [("incomplete", "half")])
    events = Sse(server, "/v1/responses", {"model": "reprise", "input": "x", "stream": True}).rest().chunks
    for event in events:
        schemas.check("openai_response_event", event)
    done, = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done["status"] == "incomplete" and events[-1]["response"]["output"] == [done] and events[-1]["type"] == "response.failed"


def test_in_the_background(server, provider):
    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    begun = server.client.post("/v1/responses", {"model": "reprise", "input": "x", "background": True}).expect(200, "openai_response").json
    assert begun["status"] == "in_progress" and begun["background"] is True
    gate.release()
    done = eventually(lambda: next((r for r in [server.client.get(f"/v1/responses/{begun['id']}").json] if r["status"] != "in_progress"), None), "it ends")
    assert done["status"] == "completed" and done["output"][-1]["content"][0]["text"] == "half whole"


def test_a_response_is_read_as_a_stream_from_any_event_on(server, provider):
    """While it runs, each event is the same as for its first client. Its record has the same text in fewer events."""
    def again(**query):
        return Sse(server, f"/v1/responses/{name}?{urllib.parse.urlencode({'stream': 'true', **query})}")

    def same(events):
        return [{**event, "response": event["response"]["output"]} if "response" in event else event for event in events]

    gate = Gate()
    provider.plan(text("one ", "two ", gate, "three"))
    live = Sse(server, "/v1/responses", {"model": "reprise", "input": "x", "background": True, "stream": True}).until("one two ")
    name = live.chunks[0]["response"]["id"]
    others = {after: again(**({} if after < 0 else {"starting_after": after})) for after in (-1, 0, 2, 5)}
    live.close()  # the run continues in the background
    gate.release()
    for after, other in others.items():
        assert other.rest().done and [event["sequence_number"] for event in other.chunks] == list(range(after + 1, len(others[-1].chunks)))
        assert same(other.chunks) == same(others[-1].chunks[after + 1:])
    assert others[-1].text == "one two three" and same(live.chunks) == same(others[-1].chunks[:len(live.chunks)])
    record = again().rest()
    for event in record.chunks:
        schemas.check("openai_response_event", event, "openai_" + event["type"].removeprefix("response.").replace(".", "_") + "_event")
    assert record.done and record.text == "one two three"
    for after in (0, len(record.chunks) - 1, len(others[-1].chunks), 10**6):
        rest = again(starting_after=after).rest()
        assert rest.chunks[-1]["type"] == "response.completed" and rest.chunks[-1]["response"]["output"] == record.chunks[-1]["response"]["output"]
        assert all(event["sequence_number"] > after for event in rest.chunks)
    for query in ("stream=yes", "stream=true&starting_after=-1", "stream=true&starting_after=x", f"stream=true&starting_after={2**64 - 1}"):
        server.client.get(f"/v1/responses/{name}?{query}").error(400, "invalid_parameter")


def test_from_any_event_of_a_record_on_no_item_begins_in_its_middle(server, provider):
    provider.plan(tools(call("echo", {"text": "x"}), think="so"), tools(call("echo", {"text": "y"}), think="and"), text("one"))
    name = server.client.post("/v1/responses", {"model": "reprise", "input": "x"}).expect(200).json["id"]
    whole = Sse(server, f"/v1/responses/{name}?stream=true").rest().chunks
    assert len(whole[-1]["response"]["output"]) > 1
    for after in range(len(whole)):
        told = Sse(server, f"/v1/responses/{name}?stream=true&starting_after={after}").rest().chunks
        begun = [event["output_index"] for event in told if event["type"] == "response.output_item.added"]
        assert {event["output_index"] for event in told if "output_index" in event} == set(begun), after
        assert told[-1] == {**whole[-1], "sequence_number": told[-1]["sequence_number"]}


def test_whoever_reads_on_after_the_end_misses_nothing(server, provider):
    """From each event on, of the live stream and of the record."""
    gate = Gate()
    provider.plan(tools(call("echo", {"text": "x"}), think="so ", say="first "), tools(call("echo", {"text": "y"}), say="second "), text(gate, *"one two three"))
    live = Sse(server, "/v1/responses", {"model": "reprise", "input": "x", "background": True, "stream": True})
    name = live.next()["response"]["id"]
    gate.wait_reached()
    gate.release()
    live.rest()
    record = Sse(server, f"/v1/responses/{name}?stream=true").rest()
    output = record.chunks[-1]["response"]["output"]
    assert output == live.chunks[-1]["response"]["output"] and len(live.chunks) > len(record.chunks)
    assert all(event["sequence_number"] > live.chunks[-1]["sequence_number"] for event in record.chunks), "clients that compare numbers themselves miss nothing"
    for events in (live.chunks, record.chunks):
        for at, last in enumerate(events):
            rest = Sse(server, f"/v1/responses/{name}?stream=true&starting_after={last['sequence_number']}").rest().chunks
            numbers = [event["sequence_number"] for event in rest]
            assert numbers == sorted(set(numbers)) and numbers[0] > last["sequence_number"] and rest[-1]["response"]["output"] == output
            if events is record.chunks:
                assert rest[:-1] == record.chunks[at + 1:-1], "a record goes on where it was left"
                continue
            whole = {event["output_index"] for event in events[:at + 1] if event["type"] == "response.output_item.done"}
            told = {event["output_index"]: event["item"] for event in rest if event["type"] == "response.output_item.done"}
            begun = [event["output_index"] for event in rest if event["type"] == "response.output_item.added"]
            assert whole | set(told) == set(range(len(output))) and all(output[index] == item for index, item in told.items()), (at, last)
            assert {event["output_index"] for event in rest if "output_index" in event} == set(begun), "no item begins in its middle"


@pytest.mark.limit(120)
def test_much_that_was_said_before_is_read_as_a_whole(server, provider):
    gate = Gate()
    provider.plan(*[tools(call("echo", {"text": f"{n}"}), say="x" * 1_000_000) for n in range(10)], text(gate, "end"))
    live = Sse(server, "/v1/responses", {"model": "reprise", "input": "x", "background": True, "stream": True})
    name = live.next()["response"]["id"]
    gate.wait_reached()
    live.close()
    late = Sse(server, f"/v1/responses/{name}?stream=true")
    while len(late.text) < 10 * 1_000_000:
        assert late.next() is not None
    gate.release()
    assert late.rest().done and late.text.endswith("end")
    assert late.chunks[-1]["type"] == "response.completed", late.chunks[-1]["response"]["error"]


def test_what_runs_in_the_background_is_not_stopped_for_the_next_request(server, provider):
    gate = Gate()
    provider.plan(text("half", gate, " whole"))
    begun = Sse(server, "/v1/responses", {"model": "reprise", "input": "x", "background": True, "stream": True, "conversation": "c"}).until("half")
    begun.close()
    for _ in range(5):
        server.client.post("/v1/responses", {"model": "reprise", "input": "y", "conversation": "c"}).error(409)
    gate.release()
    done = Sse(server, f"/v1/responses/{begun.chunks[0]['response']['id']}?stream=true").rest()
    assert done.chunks[-1]["response"]["status"] == "completed" and done.text == "half whole"


@pytest.mark.parametrize("path, body, param", [
    ("/v1/chat/completions", {}, "model"), ("/v1/chat/completions", {"model": "reprise"}, "messages"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [assistant("x")]}, "messages"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user("")]}, "messages"),
    ("/v1/chat/completions", {"model": "reprise", "messages": ["x"]}, "messages"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [{"role": "boss", "content": "x"}]}, "messages"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user([{"type": "video"}])]}, "content"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,%%"}}])]}, "content"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user("x")], "n": 2}, "n"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user("x")], "tool_choice": "required"}, "tool_choice"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user("x")], "stream": "yes"}, "stream"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user(" \n ")]}, "messages"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user([{"type": "image_url"}])]}, "content"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user([{"type": "image_url", "image_url": {"url": ""}}])]}, "content"),
    ("/v1/chat/completions", {"model": "reprise", "messages": [user([{"type": "file", "file": {"file_id": "file-1"}}])]}, "content"),
    ("/v1/responses", {"model": "reprise", "input": [{"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}]}, "content"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "temperature": "hot"}, "temperature"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "temperature": 2.1}, "temperature"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "top_p": -0.1}, "top_p"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "max_tokens": 0}, "max_tokens"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "max_completion_tokens": 1.5}, "max_completion_tokens"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "max_tokens": 1 << 64}, "max_tokens"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "stop": [1]}, "stop"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "response_format": {"type": "xml"}}, "response_format"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "response_format": {"type": "json_schema"}}, "response_format"),
    ("/v1/chat/completions", {"model": "offline", "messages": [user("x")], "tool_choice": "required"}, "tool_choice"),
    ("/v1/responses", {"model": "offline", "input": "x", "max_output_tokens": -1}, "max_output_tokens"),
    ("/v1/responses", {"model": "offline", "input": "x", "text": {"format": {"type": "json_schema", "name": "n"}}}, "text"),
    ("/v1/responses", {"model": "reprise"}, "input"), ("/v1/responses", {"model": "reprise", "input": 17}, "input"),
    ("/v1/responses", {"model": "offline", "input": "x", "previous_response_id": "resp_c_int_001"}, "previous_response_id"),
    ("/v1/audio/speech", {"model": "tts-1"}, "input"), ("/v1/audio/speech", {"model": "tts-1", "input": "x", "response_format": "zz"}, "response_format")])
def test_what_is_wrong_is_named(offline, path, body, param):
    error = offline.client.post(path, body).error(400)
    assert error["param"] == param and error["type"] == "invalid_request_error" and error["message"]
    assert offline.client.get("/chats").json["chats"] == []


def test_a_long_history_is_taken_and_an_endless_one_refused(server, provider):
    provider.plan(text("long"))
    messages = [m for n in range(300) for m in (user(f"question {n} " + "x" * 5000), assistant("y" * 5000))]
    assert say(ask(server, [*messages, user("and?")])) == "long"
    head = b"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    from support.client import raw_exchange
    assert b" 413 " in raw_exchange(server.port, head % (server.port, 33 << 20))[:20]


def test_markup_of_a_model_cannot_break_the_stream(server, provider):
    nasty = "a\r\n\r\ndata: [DONE]\n\nevent: x\u2028\"}\\"
    provider.plan(text(nasty))
    answer = stream(server, [user("x")]).rest()
    assert answer.text == nasty and answer.done


# --- Open Responses ---------------------------------------------------------------------------------------------------
# The specification's own suite is in no registry. These are its seven checks, with the agent and with a model alone.

@pytest.fixture(params=["reprise", "test/scripted"])
def respond(request, server, provider):
    def make(body):
        provider.plan(text("Hello, how are you?"))
        return server.client.post("/v1/responses", {"model": request.param, **body}).expect(200, "openai_response").json
    make.model = request.param
    return make


def said(response):
    assert response["status"] == "completed" and response["output"]
    return response["output"][-1]["content"][0]["text"]


def test_open_responses_basic_text(respond):
    assert said(respond({"input": [{"type": "message", "role": "user", "content": "Say hello in exactly 3 words."}]}))


def test_open_responses_streaming(respond, server, provider):
    provider.plan(text("1 ", "2"))
    events = Sse(server, "/v1/responses", {"model": respond.model, "stream": True, "input": [{"type": "message", "role": "user", "content": "Count."}]}).rest()
    assert events.done and events.chunks[-1]["type"] == "response.completed" and said(events.chunks[-1]["response"]) == "1 2"


def test_open_responses_system_prompt(respond, provider):
    respond({"input": [{"type": "message", "role": "system", "content": "You are a pirate."}, {"type": "message", "role": "user", "content": "Say hello."}]})
    assert "You are a pirate." in provider.requests[-1].messages[0]["content"]


def test_open_responses_tool_calling(server, provider):
    """The agent runs its own tools; the client's tools go to a model alone."""
    provider.plan(tools(call("get_weather", {"location": "San Francisco, CA"})), text("Sunny."))
    weather = {"type": "function", "name": "get_weather", "description": "the weather", "parameters": {"type": "object", "properties": {"location": {"type": "string"}}}}
    question = {"type": "message", "role": "user", "content": "What's the weather like in San Francisco?"}
    answer = server.client.post("/v1/responses", {"model": "test/scripted", "input": [question], "tools": [weather]}).expect(200, "openai_response").json
    item, = answer["output"]
    assert item["type"] == "function_call" and item["name"] == "get_weather" and answer["tools"][0]["name"] == "get_weather"
    output = {"type": "function_call_output", "call_id": item["call_id"], "output": "sunny"}
    server.client.post("/v1/responses", {"model": "test/scripted", "input": [question, item, output], "tools": [weather]}).expect(200, "openai_response")
    assert [m["role"] for m in provider.requests[-1].messages] == ["user", "assistant", "tool"]
    provider.plan(tools(call("get_weather", {"location": "San Francisco, CA"})))
    events = Sse(server, "/v1/responses", {"model": "test/scripted", "input": [question], "tools": [weather], "stream": True}).rest().chunks
    calls = [e["type"].removeprefix("response.") for e in events if e.get("item", item)["type"] == "function_call"]
    assert calls == ["created", "in_progress", "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done", "completed"]


WEATHER = {"type": "function", "name": "get_weather", "description": "the weather", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize("model", ["test/scripted", "reprise"])
def test_tools_that_only_openai_has_are_left_out_and_named(server, provider, model):
    provider.plan(text("fine"))
    hosted = [{"type": "web_search"}, {"type": "image_generation", "quality": "low"}, {"type": "custom", "name": "apply_patch"}, {"type": "a\r\nb"}]
    answer = server.client.post("/v1/responses", {"model": model, "input": "x", "tools": [*hosted, WEATHER]}).expect(200, "openai_response")
    assert provider.requests[-1].body["messages"]
    if model == "reprise":
        return  # the agent has its own tools
    assert answer.headers["X-Left-Out-Tools"] == "web_search, image_generation, custom, a??b"
    assert [t["name"] for t in answer.json["tools"]] == ["get_weather"] == [t["function"]["name"] for t in provider.requests[-1].body["tools"]]
    for choice in ("required", {"type": "web_search"}):
        error = server.client.post("/v1/responses", {"model": model, "input": "x", "tools": hosted, "tool_choice": choice}).error(400)
        assert error["param"] == "tool_choice"


CHATS, RESPONSES = "/v1/chat/completions", "/v1/responses"
# What would change the answer's form, or what is done: (path, member, value).
REFUSED = [(CHATS, "n", 2), (CHATS, "logprobs", True), (CHATS, "top_logprobs", 3), (CHATS, "functions", [{"name": "f"}]), (CHATS, "function_call", {"name": "f"}),
           (CHATS, "modalities", ["text", "audio"]), (CHATS, "audio", {"voice": "alto"}), (CHATS, "best_of", 2), (CHATS, "suffix", "x"), (CHATS, "echo", True),
           (RESPONSES, "prompt", {"id": "pmpt_1"}), (RESPONSES, "max_tool_calls", 1), (RESPONSES, "truncation", "bogus"), (RESPONSES, "top_logprobs", 3),
           (RESPONSES, "include", ["message.output_text.logprobs"])]


def asked_by(path, model, **members):
    return {"model": model, **({"messages": [user("x")]} if path == CHATS else {"input": "x"}), **members}


@pytest.mark.parametrize("path, name, value", REFUSED)
def test_what_would_change_the_answer_is_refused(server, path, name, value):
    for model in ("test/scripted", "reprise"):
        assert server.client.post(path, asked_by(path, model, **{name: value})).error(400, "unsupported_value")["param"] == name
    assert server.client.get("/chats").json["chats"] == []


def test_members_without_effect_are_named_and_usual_values_are_not(server, provider):
    provider.answer_with(lambda _: text("fine"))
    usual = {"frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {}, "seed": None, "user": "u", "store": True, "metadata": {"a": "b"}, "parallel_tool_calls": True,
             "service_tier": "auto", "logprobs": False, "modalities": ["text"], "functions": [], "n": 1, "top_logprobs": 0, "function_call": "auto"}
    of_responses = {"include": [], "truncation": "disabled", "background": False, "prompt_cache_key": "k", "store": False, "parallel_tool_calls": True, "service_tier": "auto"}
    for path, members in ((CHATS, usual), (RESPONSES, of_responses)):
        for model in ("test/scripted", "reprise"):
            assert "X-Left-Out-Parameters" not in server.client.post(path, asked_by(path, model, **members)).expect(200).headers, (path, model)
    named = {"seed": 4, "logit_bias": {"5": -100}, "frequency_penalty": 1, "parallel_tool_calls": False, "reasoning_effort": "high", "bogus\r\n": 1}
    answer = server.client.post(CHATS, asked_by(CHATS, "test/scripted", **named, temperature=0.5)).expect(200)
    assert sorted(answer.headers["X-Left-Out-Parameters"].split(", ")) == ["bogus??", "frequency_penalty", "logit_bias", "parallel_tool_calls", "reasoning_effort", "seed"]
    answer = server.client.post(RESPONSES, asked_by(RESPONSES, "reprise", temperature=0.5, include=["reasoning.encrypted_content"])).expect(200)
    assert sorted(answer.headers["X-Left-Out-Parameters"].split(", ")) == ["include", "temperature"]


def test_an_answer_with_files_and_a_reference_to_an_item_are_refused(server):
    png = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    for model in ("test/scripted", "reprise"):
        body = {"model": model, "messages": [user("a"), {"role": "assistant", "content": [png]}, user("b")]}
        assert "assistant" in server.client.post(CHATS, body).error(400, "unsupported_value")["message"]
        body = {"model": model, "input": [user("a"), {"type": "item_reference", "id": "msg_1"}]}
        assert "item_reference" in server.client.post(RESPONSES, body).error(400, "unsupported_value")["message"]


def test_tools_of_a_namespace(server, provider):
    """Codex sends the tools of MCP servers like this."""
    tools_of = {"type": "namespace", "name": "mcp__sky", "description": "the sky", "tools": [WEATHER]}
    provider.plan(tools(call("mcp__sky__get_weather", {"location": "x"})), text("Sunny."))
    body = {"model": "test/scripted", "input": [{"role": "user", "content": "?"}], "tools": [tools_of, {**WEATHER, "name": "other"}]}
    answer = server.client.post("/v1/responses", body).expect(200, "openai_response").json
    assert [t["function"]["name"] for t in provider.requests[-1].body["tools"]] == ["mcp__sky__get_weather", "other"]
    item, = answer["output"]
    assert (item["namespace"], item["name"]) == ("mcp__sky", "get_weather") and [t["name"] for t in answer["tools"]] == ["mcp__sky", "other"]
    body["input"] += [item, {"type": "function_call_output", "call_id": item["call_id"], "output": "sunny"}]
    assert said(server.client.post("/v1/responses", body).expect(200, "openai_response").json) == "Sunny."
    assert provider.requests[-1].messages[1]["tool_calls"][0]["function"]["name"] == "mcp__sky__get_weather"


def test_what_is_obeyed_is_told(server, provider):
    provider.plan(text("{}"), tools(call("get_weather", {})))
    schema = {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True}
    wishes = {"temperature": 0.5, "top_p": 0.25, "max_output_tokens": 77, "text": {"format": schema}}
    answer = server.client.post("/v1/responses", {"model": "test/scripted", "input": "x", **wishes}).expect(200, "openai_response").json
    assert {name: answer[name] for name in wishes} == wishes and answer["tool_choice"] == "auto"
    choice = {"type": "function", "name": "get_weather"}
    answer = server.client.post("/v1/responses", {"model": "test/scripted", "input": "x", "tools": [WEATHER], "tool_choice": choice}).expect(200).json
    assert answer["tool_choice"] == choice and answer["text"] == {"format": {"type": "text"}} and answer["max_output_tokens"] is None


def test_open_responses_image_input(respond):
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(30)).decode()
    assert said(respond({"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is this?"}, {
        "type": "input_image", "image_url": f"data:image/png;base64,{picture}"}]}]}))


def test_open_responses_multi_turn(respond, provider):
    respond({"input": [{"type": "message", "role": "user", "content": "My name is Alice."}, {"type": "message", "role": "assistant", "content": "Hello Alice!"},
                       {"type": "message", "role": "user", "content": "What is my name?"}]})
    assert told(provider) == ["My name is Alice.", "Hello Alice!", "What is my name?"]


# --- conversations ----------------------------------------------------------------------------------------------------

def words(items):
    return [(item.get("role", item["type"]), item["content"][0]["text"]) for item in items]


def test_conversations(server, provider):
    client = server.client
    made = client.post("/v1/conversations", {"metadata": {"topic": "demo"}, "items": [
        {"type": "message", "role": "user", "content": "a"}, {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Hello!"}]}]}).expect(200, "openai_conversation").json
    path = f"/v1/conversations/{made['id']}"
    assert made["object"] == "conversation" and made["metadata"] == {"topic": "demo"} and client.get(path).expect(200).json == made
    assert client.post(path, {"metadata": {"topic": "other"}}).expect(200, "openai_conversation").json == {**made, "metadata": {"topic": "other"}}
    items = client.get(path + "/items?order=asc").expect(200, "openai_items").json
    assert words(items["data"]) == [("user", "a"), ("assistant", "b"), ("user", "Hello!")] and not items["has_more"]
    provider.plan(Reply([delta({"reasoning_content": "Well."}), delta({"content": "fine"}), *ending()]))
    answer = client.post("/v1/responses", {"model": "reprise", "input": "c", "conversation": made["id"]}).expect(200, "openai_response").json
    assert answer["conversation"] == {"id": made["id"]} and told(provider)[:2] == ["a", "b"] and "Hello!" in told(provider)[2] and told(provider)[-1].endswith("c")
    assert client.get(f"/v1/responses/{answer['id']}").expect(200, "openai_response").json["conversation"] == {"id": made["id"]}
    assert words(client.get(f"/v1/responses/{answer['id']}/input_items").expect(200, "openai_items").json["data"]) == [("user", "c")]
    added = client.post(path + "/items", {"items": [user("d"), assistant("e")]}).expect(200, "openai_items").json
    assert words(added["data"]) == [("user", "d"), ("assistant", "e")]
    whole = [("user", "a"), ("assistant", "b"), ("user", "Hello!"), ("user", "c"), ("reasoning", "Well."), ("assistant", "fine"), ("user", "d"), ("assistant", "e")]
    # Pages of different sizes, in both directions.
    for order, limit in (("asc", 1), ("desc", 1), ("asc", 3), ("desc", 3), ("desc", 100)):
        read, more = [], {"has_more": True, "last_id": None}
        while more["has_more"]:
            after = f"&after={more['last_id']}" if more["last_id"] else ""
            more = client.get(f"{path}/items?order={order}&limit={limit}{after}").expect(200, "openai_items").json
            assert 0 < len(more["data"]) <= limit and more["first_id"] == more["data"][0]["id"] and more["last_id"] == more["data"][-1]["id"]
            read += more["data"]
        assert words(read) == (whole if order == "asc" else whole[::-1]), (order, limit)
    for item in read:
        assert client.get(f"{path}/items/{item['id']}").expect(200, "openai_item").json == item
    for wrong in (f"{path}/items/msg_nobody_int_001_0", f"{path}/items/nothing", f"{path}/items?after=nothing", "/v1/conversations/nobody", "/v1/conversations/nobody/items"):
        client.get(wrong).error(404)
    for wrong in ("order=up", "limit=0", "limit=101"):
        client.get(f"{path}/items?{wrong}").error(400)
    for wrong in ({}, {"items": []}, {"items": "x"}, {"items": [{"role": "system", "content": "x"}]}, {"items": [{"type": "nothing"}]}):
        client.post(path + "/items", wrong).error(400)
    assert client.request("DELETE", path).expect(200, "openai_conversation_deleted").json["deleted"] is True
    client.get(path).error(404)


def test_a_chat_is_a_conversation_and_an_empty_one_a_chat(server, provider):
    provider.plan(text("one"))
    empty = server.client.post("/v1/conversations", {}).expect(200).json
    assert server.client.get(f"/v1/conversations/{empty['id']}/items").expect(200).json["data"] == [] and empty["metadata"] == {}
    say(ask(server, [user("a")], "c"))
    assert words(server.client.get("/v1/conversations/c/items?order=asc").expect(200, "openai_items").json["data"]) == [("user", "a"), ("assistant", "one")]


def test_input_tokens_are_estimated(server, provider):
    def count(**body):
        return server.client.post("/v1/responses/input_tokens", {"input": "x", **body}).expect(200, "openai_input_tokens").json["input_tokens"]

    alone = count(model="test/scripted")
    assert 0 < alone < 50 < count(model="test/scripted", input="many words " * 100)
    assert count(model="test/scripted", tools=[{"type": "function", "name": "f", "description": "d" * 300, "parameters": {}}]) > alone + 50
    provider.plan(text("y" * 3000))
    first = server.client.post("/v1/responses", {"model": "reprise", "input": "a"}).expect(200).json
    assert count(model="reprise", previous_response_id=first["id"]) > count(model="reprise") + 500
    server.client.post("/v1/responses/input_tokens", {"model": "reprise"}).error(400)
    assert len(provider.requests) == 1, "the provider is not asked"


# --- what libraries look for ------------------------------------------------------------------------------------------

def test_thinking_and_calls_are_the_summary_of_a_reasoning_item_too(server, provider):
    provider.plan(tools(call("echo", {"text": "x"}), think="Let me see."), text("done"))
    answer = Sse(server, "/v1/responses", {"model": "reprise", "input": "x", "stream": True}).rest()
    for event in answer.chunks:
        schemas.check("openai_response_event", event)
    parts = {}
    for event in answer.chunks:
        if event["type"].startswith("response.reasoning_summary_"):
            parts.setdefault((event["item_id"], event["summary_index"]), []).append(event)
    assert parts
    items = {item["id"]: item for item in answer.chunks[-1]["response"]["output"]}
    for (item, index), events in parts.items():
        kinds = [event["type"].removeprefix("response.reasoning_summary_") for event in events]
        assert kinds[0] == "part.added" and kinds[-2:] == ["text.done", "part.done"] and set(kinds[1:-2]) == {"text.delta"}
        whole = "".join(event["delta"] for event in events if "delta" in event)
        assert whole == events[-2]["text"] == events[-1]["part"]["text"] == items[item]["summary"][index]["text"] == items[item]["content"][0]["text"]
    assert "Let me see." in str(items) and "echo" in str(parts)


def test_a_model_is_found_by_its_whole_name(server):
    for name in ("reprise", "reprise/test/scripted", "test/scripted", "test%2Fscripted"):
        assert server.client.get(f"/v1/models/{name}").expect(200).json["id"] == urllib.parse.unquote(name)
    server.client.get("/v1/models/test/nothing/at/all").error(404)
    server.client.get("/v1/models/").error(404)
    server.client.get("/v1/models/test/").error(404)


def test_each_answer_has_an_id_of_its_own_that_the_log_has_too(server, provider):
    provider.plan(text("one"), text("two"))
    answers = [ask(server, [user("x")]), server.client.get("/nothing"), server.client.get("/v1/models"), server.client.post("/chats", {"wrong": 1})]
    ids = [answer.headers["X-Request-Id"] for answer in answers] + [stream(server, [user("x")]).rest().response.headers["X-Request-Id"]]
    assert len(set(ids)) == 5 and all(ids)
    eventually(lambda: all(one in server.log() for one in ids), "they are in the log")
