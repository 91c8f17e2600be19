"""POST /agui: AG-UI 1.0, for CopilotKit, assistant-ui and others."""
import base64
import json
import pathlib
import subprocess

import pytest
from support.agui import Run, Thread, resolved
from support.npm import NEWER_NODE, install
from support.provider import Gate, call, text, tools
from support.timing import SLACK, eventually

HERE = pathlib.Path(__file__).resolve().parent
WRITE = {"path": "a.txt", "content": "1"}


@pytest.fixture
def thread(server):
    return Thread(server)


def history(server, branches=""):
    return server.client.get("/chats/thread-1" + branches).json["interactions"]


@pytest.mark.limit(120)
def test_the_official_client(offline):
    packages = install("@ag-ui/client@1.0.0", "@ag-ui/core@1.0.0")
    arguments = [packages / "@ag-ui" / "client" / "dist" / "index.mjs", packages / "@ag-ui" / "core" / "dist" / "schemas.mjs", f"http://127.0.0.1:{offline.port}/agui"]
    done = subprocess.run(["node", *NEWER_NODE, str(HERE / "support" / "agui_client.mjs"), *map(str, arguments)], capture_output=True, text=True,
                          timeout=30 * SLACK, check=False, env=offline.home.environment())
    assert done.returncode == 0 and done.stdout, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert not seen["invalid"], seen["invalid"][:2]
    assert not [t for types in seen["runs"] for t in types if t.startswith("THROWN")], seen["runs"]
    think, plain, asks, ran, writes, edited, research, question, answered, failed, end = seen["runs"]
    assert "REASONING_MESSAGE_CONTENT" in think and plain.count("TOOL_CALL_RESULT") == 4 and plain.count("STATE_DELTA") == 2
    assert seen["state"]["plan"] == ["a", "b"] and seen["state"]["tasks"][0]["title"] == "first"
    assert asks[-3:] == ["MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"] and seen["interrupts"][0]["reason"] == "tool_call"
    assert "TOOL_CALL_START" not in ran and "TOOL_CALL_RESULT" in ran and "ACTIVITY_SNAPSHOT" in ran
    assert "TOOL_CALL_RESULT" in edited and "TOOL_CALL_RESULT" not in writes
    assert {"SUBAGENT_STARTED", "SUBAGENT_FINISHED"} <= set(research)
    assert question[-1] == "RUN_FINISHED" and "TOOL_CALL_RESULT" in answered
    assert failed[-1] == "RUN_ERROR" and len(seen["errors"]) == 1 and end[-1] == "RUN_FINISHED"
    assert [p.name for p in offline.home.workspace.iterdir()] == ["b.txt"]
    users = [m["content"] for m in seen["messages"] if m["role"] == "user"]
    stored = offline.client.history("sdk")["interactions"]
    assert [i["user_message"] for i in stored][:len(users)] == users, "no turn became a branch or a copy"
    eventually(lambda: offline.client.history("sdk")["interactions"][-1]["status"] == "CANCELLED", "an abort is a cancel")


def test_a_chat_with_tools(thread, provider, server):
    provider.plan(tools(call("calculator", {"expression": "6*7"}), say="I add. ", think="let me see"), text("for", "ty-two"))
    run = thread.run("6*7?")
    kinds = [e["type"] for e in run.events]
    assert kinds[:3] == ["RUN_STARTED", "STATE_SNAPSHOT", "REASONING_START"] and run.said() == "I add. forty-two"
    start, result = run.of("TOOL_CALL_START")[0], run.of("TOOL_CALL_RESULT")[0]
    assert start["toolCallName"] == "calculator" and start["parentMessageId"] == run.of("TEXT_MESSAGE_START")[0]["messageId"]
    assert result["toolCallId"] == start["toolCallId"] and result["content"] == "42"
    assert run.end["outcome"] == {"type": "success"} and run.end["usage"][0]["inputTokens"] > 0
    assert run.events[0]["threadId"] == "thread-1" and run.events[0]["metadata"]["reprise"]["interactionId"] == "int_001"
    provider.plan(text("again"))
    assert thread.run("and?").said() == "again"
    assert [i["user_message"] for i in history(server)] == ["6*7?", "and?"]


def test_an_approval_that_the_client_answers(thread, provider, server):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    run = thread.run("go")
    interrupt = run.interrupts[0]
    assert interrupt["reason"] == "tool_call" and interrupt["toolCallId"] == run.of("TOOL_CALL_START")[0]["toolCallId"]
    assert "editedArgs" in interrupt["responseSchema"]["properties"] and not list(server.home.workspace.iterdir())
    assert [m["role"] for m in run.of("MESSAGES_SNAPSHOT")[0]["messages"]] == ["user", "assistant"]
    assert server.client.get("/approvals").json["approvals"], "the run still waits after the response has ended"
    after = thread.resume(resolved(interrupt, approved=True))
    assert not after.of("TOOL_CALL_START") and after.of("TOOL_CALL_RESULT")[0]["toolCallId"] == interrupt["toolCallId"]
    assert after.said() == "done" and after.end["outcome"]["type"] == "success" and (server.home.workspace / "a.txt").read_text() == "1"
    # Sending the same again is safe and shows the same.
    again = thread.resume(resolved(interrupt, approved=True))
    assert [e["type"] for e in again.events if e["type"] != "TEXT_MESSAGE_CONTENT"] == [e["type"] for e in after.events if e["type"] != "TEXT_MESSAGE_CONTENT"]
    assert len(provider.requests) == 2


@pytest.mark.parametrize("payload, status, file", [({"approved": False, "feedback": "no"}, "resolved", None), (None, "cancelled", None),
                                                    ({"approved": True, "editedArgs": {"path": "b.txt", "content": "2"}}, "resolved", "b.txt")])
def test_what_may_be_answered(thread, provider, server, payload, status, file):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    interrupt = thread.run("go").interrupts[0]
    run = thread.resume({"interruptId": interrupt["id"], "status": status, **({"payload": payload} if payload else {})})
    assert run.end["outcome"]["type"] == "success"
    assert [p.name for p in server.home.workspace.iterdir()] == ([file] if file else [])


def refusal(thread, *entries, **more):
    refused = thread.start(resume=list(entries), **more).finish()
    assert refused.end["type"] == "RUN_ERROR", refused.end
    return refused.end["code"]


@pytest.mark.parametrize("payload", [{"approved": True, "scope": "forever"}, {"approved": True, "scope": 5}, {"approved": True, "feedback": 5},
                                     {"approved": True, "argumentsDigest": 5}, {"approved": True, "editedArgs": {"path": 5}}])
def test_an_invalid_payload_approves_nothing(thread, provider, server, payload):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    interrupt = thread.run("go").interrupts[0]
    assert refusal(thread, resolved(interrupt, **payload)) == ("invalid_arguments" if "editedArgs" in payload else "invalid_payload")
    assert server.client.get("/approvals").json["approvals"] and not list(server.home.workspace.iterdir())
    assert thread.resume(resolved(interrupt, approved=True, scope="chat", feedback="")).said() == "done"


@pytest.mark.parametrize("other", [{"approved": False}, {"approved": True, "scope": "chat"}, None])
def test_entries_that_contradict_each_other_answer_nothing(thread, provider, server, other):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    interrupt = thread.run("go").interrupts[0]
    yes = resolved(interrupt, approved=True)
    assert refusal(thread, yes, resolved(interrupt, **other) if other else {"interruptId": interrupt["id"], "status": "cancelled"}) == "contradicting_entries"
    assert server.client.get("/approvals").json["approvals"] and not list(server.home.workspace.iterdir())
    assert thread.resume(yes, yes).said() == "done" and (server.home.workspace / "a.txt").exists(), "the same entry twice does no harm"


def test_a_new_message_beside_the_answers_is_refused(thread, provider, server):
    provider.plan(text("one"), tools(call("write_file", WRITE)), text("done"), text("more"))
    thread.run("first")
    before = [*thread.messages, {"id": "u2", "role": "user", "content": "go"}]
    thread.messages = list(before)
    yes = resolved(thread.run().interrupts[0], approved=True)
    for messages in ([*thread.messages, {"id": "u3", "role": "user", "content": "and more"}], [*before, {"id": "u3", "role": "user", "content": "go"}],
                     [*before[:-1], {"id": "u2", "role": "user", "content": "go, better"}]):
        thread.messages = messages
        assert refusal(thread, yes) == "message_with_resume"
        assert server.client.get("/approvals").json["approvals"] and not list(server.home.workspace.iterdir())
    # A client that keeps no messages of an interrupted run still sends the message that began it.
    thread.messages = list(before)
    assert thread.resume(yes).said() == "done" and (server.home.workspace / "a.txt").exists()
    thread.messages.append({"id": "u3", "role": "user", "content": "and more"})
    assert refusal(thread, yes) == "message_with_resume", "an old answer is refused, too"
    assert thread.run().said() == "more" and [i["user_message"] for i in history(server)] == ["first", "go", "and more"]


def test_each_run_tells_the_tokens_of_its_own_calls(thread, provider, server):
    provider.plan(tools(call("write_file", WRITE)), tools(call("write_file", {**WRITE, "path": "b.txt"}, "c2")), text("done"))
    first = thread.run("go")
    second = thread.resume(resolved(first.interrupts[0], approved=True))
    entry = resolved(second.interrupts[0], approved=True)
    watching = Thread(server).run()
    assert watching.interrupts and "usage" not in watching.end, "this run has made no model request"
    third = thread.resume(entry)
    told = [run.end["usage"][0] for run in (first, second, third)]
    assert all(each.keys() == {"provider", "model", "inputTokens", "outputTokens", "totalTokens"} for each in told), "only counts that the provider reports"
    stored = history(server)[0]["usage"]
    assert sum(each["inputTokens"] for each in told) == stored["input_tokens"] and all(each["outputTokens"] > 0 for each in told)
    assert "usage" not in thread.resume(entry).end, "a run that is shown again does not repeat its usage"


def test_all_interrupts_are_answered_together(thread, provider, server):
    provider.plan(tools(*[call("write_file", {"path": f"{n}.txt", "content": n}, n) for n in "abc"]), text("done"))
    first, second, third = thread.run("go").interrupts
    for entries, code in ((([resolved(first, approved=True)]), "resume_incomplete"), ([{"interruptId": "approval_none", "status": "cancelled"}], "unknown_interrupt"),
                          ([resolved(first, approved="yes"), resolved(second, approved=True), resolved(third, approved=True)], "invalid_payload")):
        refused = Thread(server).start(resume=entries).finish()
        assert (refused.end["type"], refused.end["code"]) == ("RUN_ERROR", code)
    assert len(server.client.get("/approvals").json["approvals"]) == 3, "nothing was answered"
    blocked = Thread(server).run("something else")
    assert (blocked.end["type"], blocked.end["code"]) == ("RUN_ERROR", "interrupts_pending")
    run = thread.resume(resolved(first, approved=True), resolved(second, approved=False), resolved(third, approved=True))
    assert run.end["outcome"]["type"] == "success" and len(run.of("TOOL_CALL_RESULT")) == 3
    assert sorted(p.name for p in server.home.workspace.iterdir()) == ["a.txt", "c.txt"]


def test_a_question(thread, provider):
    provider.plan(tools(call("ask_human", {"question": "Which?", "options": ["red", "blue"]})), text("fine"))
    interrupt = thread.run("q").interrupts[0]
    assert (interrupt["reason"], interrupt["message"], interrupt["responseSchema"]) == ("input_required", "Which?", {"type": "string"})
    run = thread.resume({"interruptId": interrupt["id"], "status": "resolved", "payload": "blue"})
    assert run.said() == "fine" and provider.requests[-1].conversation[-1]["content"] == "blue"


def test_an_approval_that_is_answered_elsewhere(thread, provider, server):
    provider.plan(tools(call("write_file", WRITE)), text("done"))
    interrupt = thread.run("go").interrupts[0]
    server.client.post(f"/approvals/{interrupt['id']}", {"approved": False}).expect(200)
    eventually(lambda: history(server)[0]["status"] == "COMPLETED", "the run went on without this client")
    late = thread.resume(resolved(interrupt, approved=True))
    assert late.said() == "done" and not list(server.home.workspace.iterdir()), "the first answer counts"


def test_a_client_that_comes_back(thread, provider, server):
    gate = Gate()
    provider.plan(text("one"), text("two ", gate, "three"))
    thread.run("first")
    run = thread.start("second")
    gate.wait_reached()
    run.until("TEXT_MESSAGE_CONTENT")
    fresh = Thread(server)
    back = fresh.start()  # it has no messages, so it gets all of them
    assert [m["content"] for m in back.until("MESSAGES_SNAPSHOT")["messages"]] == ["first", "one", "second"]
    run.close()
    gate.release()
    back.finish()
    fresh.keep(back)
    assert back.said() == "two three" and [m["content"] for m in fresh.messages] == ["first", "one", "second", "two three"]
    assert [m["content"] for m in Thread(server).run().of("MESSAGES_SNAPSHOT")[0]["messages"]] == ["first", "one", "second", "two three"]
    assert Thread(server, "nobody").run().of("MESSAGES_SNAPSHOT")[0]["messages"] == []


def test_a_client_that_has_its_messages_keeps_their_ids(thread, provider):
    """A message with a changed id is a new message to a client."""
    provider.plan(text("one"), text("two"))
    thread.run("first")
    files = [{"type": "text", "text": "again"}, part(b"of the cat")]
    thread.messages.append({"id": "u2", "role": "user", "content": files})
    thread.run()
    own = [{**message, "id": f"own-{number}"} for number, message in enumerate(thread.messages)]
    for messages in (list(thread.messages), own):
        thread.messages = list(messages)
        assert thread.run().of("MESSAGES_SNAPSHOT")[0]["messages"] == messages
    # Messages that only one side knows do not change the ids of the others.
    thread.messages = [{"id": "x", "role": "user", "content": "unheard of"}, own[0], own[2], {"id": "y", "role": "assistant", "content": "two"}]
    shown = thread.run().of("MESSAGES_SNAPSHOT")[0]["messages"]
    assert [m["id"] for m in shown] == ["own-0", "int_001-message-0", "own-2", "y"] and shown[2]["content"] == files


def test_a_client_that_is_gone_in_mid_stream(thread, provider, server):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    run = thread.start("go")
    gate.wait_reached()
    run.until("TEXT_MESSAGE_CONTENT")
    run.close()
    eventually(lambda: history(server)[0]["status"] == "CANCELLED", "the run is cancelled as after any disconnect")
    provider.plan(text("back"))
    assert thread.run("still there?").said() == "back"


def test_a_cancel_by_others(thread, provider, server):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    run = thread.start("go")
    gate.wait_reached()
    server.client.post("/chats/thread-1/interactions/int_001/cancel", {}).expect(200)
    assert run.finish().end["outcome"] == {"type": "cancelled"}


def test_kill_9_while_it_waits(thread, provider, server, make_server):
    provider.plan(tools(call("write_file", WRITE)))
    interrupt = thread.run("go").interrupts[0]
    server.process.kill()
    server.process.wait()
    server.stopped = server.home.killed = True
    provider.plan(text("done"))
    thread.server = make_server(provider, home=server.home)
    assert Thread(thread.server).run().interrupts[0]["id"] == interrupt["id"], "the interrupt is the same"
    run = thread.resume(resolved(interrupt, approved=True))
    assert run.said() == "done" and (server.home.workspace / "a.txt").exists()


def test_kill_9_in_mid_stream(thread, provider, server, make_server):
    gate = Gate()
    provider.plan(text("zero"), text("one ", gate, "two"))
    thread.run("before")
    run = thread.start("go")
    gate.wait_reached()
    run.until("TEXT_MESSAGE_CONTENT")
    server.process.kill()
    server.process.wait()
    server.stopped = server.home.killed = True
    provider.plan(text("went on"))
    thread.server = make_server(provider, home=server.home)
    assert thread.run().said() == "went on", "the same messages again: the last one runs again"
    assert [i["user_message"] for i in history(thread.server)] == ["before", "go"]


def test_a_foreign_edit_of_message_3_of_10(thread, provider, server):
    for number in range(10):
        provider.plan(text(f"answer {number}") if number != 2 else tools(call("manage_tasks", {"action": "add", "title": "late"})), *([text("answer 2")] if number == 2 else []))
        thread.run(f"message {number}")
    third = next(i for i, m in enumerate(thread.messages) if m.get("content") == "message 2")
    del thread.messages[third:]
    provider.plan(text("another"))
    run = thread.run("message 2, better")
    assert run.said() == "another" and run.of("STATE_SNAPSHOT")[0]["snapshot"]["tasks"] == [], "the edit restores the state before it"
    assert run.events[0]["parentRunId"] == "int_003"
    assert [i["user_message"] for i in history(server)] == ["message 0", "message 1", "message 2, better"]
    assert len(history(server, "?branches=all")) == 11 and len(server.client.get("/chats").json["chats"]) == 1
    assert [m["content"] for m in provider.requests[-1].conversation if m["role"] == "user"][-1] == "message 2, better"


def test_two_doors_on_one_chat(thread, provider, server):
    gate = Gate()
    provider.plan(text("one ", gate, "two"))
    run = thread.start("go")
    gate.wait_reached()
    server.client.post("/chats/thread-1/interactions", {"user_message": "me too"}).error(409, "busy")
    other = Thread(server)
    other.messages = list(thread.messages)
    refused = other.start("me too")
    assert refused.status == 409 and json.loads(refused.response.read())["error"]["code"] == "busy"
    gate.release()
    assert run.finish().said() == "one two" and len(history(server)) == 1


def test_a_greeting_is_told_and_a_key_is_for_one_request(provider, server):
    def run(*messages, key=None):
        body = {"threadId": "t", "runId": "r", "messages": [{"id": f"m{n}", **message} for n, message in enumerate(messages)]}
        return server.client.post("/agui", body, headers={"Idempotency-Key": key} if key else {})

    provider.plan(text("fine"))
    run({"role": "assistant", "content": "Welcome to the pond."}, {"role": "user", "content": "a"}, key="k").expect(200)
    assert [m["content"] for m in provider.requests[-1].conversation] == ["a"]
    assert "they were shown this message of yours:\nWelcome to the pond." in provider.requests[-1].messages[0]["content"]
    run({"role": "user", "content": "b"}, key="k").error(422, "idempotency_key_reused")


def test_older_clients_are_told_nothing_new(provider, server):
    provider.plan(tools(call("research", {"question": "why"})), text("found"), text("done"))
    run = Run(server, {"threadId": "old", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "go"}]}).finish()
    assert not [e for e in run.events if e["type"].startswith("SUBAGENT") or "subagentRunId" in e] and run.said() == "done"


def test_files_context_and_model(provider, server):
    provider.plan(text("seen"))
    parts = [{"type": "text", "text": "look"}, {"type": "document", "source": {"type": "data", "value": "aGVsbG8gd29ybGQ=", "mimeType": "text/plain"}},
             {"type": "image", "source": {"type": "url", "value": "http://example.org/x.png"}}]
    run = Run(server, {"threadId": "t", "runId": "r", "messages": [{"id": "s", "role": "system", "content": "Be brief."}, {"id": "u", "role": "user", "content": parts}],
                       "context": [{"description": "page", "value": "invoices"}]}).finish()
    assert run.said() == "seen"
    request = json.dumps(provider.requests[-1].body)
    assert "hello world" in request and "http://example.org/x.png" in request and "Be brief." in request and "page: invoices" in request
    body = {"threadId": "t2", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "echo offline"}], "forwardedProps": {"model": "offline"}}
    assert "offline" in Run(server, body).finish().said()
    body["threadId"], body["forwardedProps"] = "t3", {"model": "no/such"}
    assert Run(server, body).status == 400


def part(data):
    return {"type": "document", "source": {"type": "data", "value": base64.b64encode(data).decode(), "mimeType": "text/plain"}}


def test_the_same_message_with_another_file_is_an_edit(provider, server):
    def run(*messages):
        messages = [{"id": f"m{n}", "role": role, "content": content} for n, (role, content) in enumerate(messages)]
        return Run(server, {"threadId": "t", "runId": f"r{len(provider.requests)}", "messages": messages}).finish()

    def look(data):
        return ("user", [{"type": "text", "text": "look"}, part(data)])

    def told():
        return json.dumps(provider.requests[-1].conversation)

    provider.answer_with(lambda _: text("seen"))
    run(look(b"of the cat"))
    run(look(b"of the cat"))
    assert "of the cat" in told() and len(server.client.get("/chats/t/files").json["files"]) == 1
    run(look(b"of the dog"))
    assert "of the dog" in told() and "of the cat" not in told()
    stored = server.client.get("/chats/t?branches=all").json["interactions"]
    assert len(stored) == 3 and stored[0]["edited_from"] is None and all(each["edited_from"] for each in stored[1:])
    # A file that the chat already has can be attached to a later message.
    assert run(look(b"of the dog"), ("assistant", "seen"), look(b"of the cat")).said() == "seen"
    assert "of the cat" in json.dumps(provider.requests[-1].conversation[-1]) and len(server.client.get("/chats/t/files").json["files"]) == 2


@pytest.mark.parametrize("body, word", [([], "object"), ({}, "threadId"), ({"threadId": "t"}, "runId"), ({"threadId": "t", "runId": "r", "messages": {}}, "messages"),
                                        ({"threadId": "t", "runId": "r", "messages": [1]}, "messages[0]"), ({"threadId": "t", "runId": "r", "messages": [{"role": "boss"}]}, "role"),
                                        ({"threadId": "t", "runId": "r", "messages": [{"role": "user", "content": " "}]}, "empty"),
                                        ({"threadId": "t", "runId": "r", "resume": [{"interruptId": "x"}]}, "status"), ({"threadId": "t", "runId": "r", "resume": 1}, "resume")])
def test_invalid_inputs(offline, body, word):
    error = offline.client.post("/agui", body).error(400)
    assert word in error["message"] and offline.client.get("/chats").json["chats"] == []


@pytest.mark.parametrize("part", [{"type": "hologram", "x": 1}, {"type": "image"}, {"type": "binary", "mimeType": "image/png", "id": "abc"}, {"type": "text"}, {}, 1])
def test_a_part_that_is_not_understood_is_refused(offline, part):
    """Reported: it was dropped, and the run succeeded."""
    message = {"id": "u", "role": "user", "content": [{"type": "text", "text": "look at this"}, part]}
    error = offline.client.post("/agui", {"threadId": "t", "runId": "r", "messages": [message]}).error(400)
    assert "messages[0]" in error["message"] and offline.client.get("/chats").json["chats"] == []


def test_a_result_of_a_tool_that_was_not_called_here_is_refused(thread, provider, server):
    """Reported: the run succeeded with nothing."""
    messages = [{"id": "u", "role": "user", "content": "hi"},
                {"id": "a", "role": "assistant", "content": "", "toolCalls": [{"id": "z", "type": "function", "function": {"name": "front", "arguments": "{}"}}]},
                {"id": "t", "role": "tool", "toolCallId": "z", "content": "42"}]
    for thread_id in ("new", "thread-1"):
        run = Run(server, {"threadId": thread_id, "runId": "r", "messages": messages}).finish()
        assert run.events[-1]["type"] == "RUN_ERROR" and run.events[-1]["code"] == "unknown_tool_call"
        if thread_id == "new":
            provider.plan(text("hello"))
            assert thread.run("hi").said() == "hello"


def test_a_thread_of_any_name(offline):
    thread = Thread(offline, "Ein Faden / mit Sonderzeichen: äöü")
    assert "hi" in thread.run("echo hi").said() and "again" in thread.run("echo again").said()
    chats = offline.client.get("/chats").json["chats"]
    assert len(chats) == 1 and len(offline.client.history(chats[0]["id"])["interactions"]) == 2
