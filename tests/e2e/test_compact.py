"""POST /chats/{chat}/compact: the conversation is summarized now, and nothing else happens."""
import json

from support.provider import Gate, failure, text


def compact(client, chat="c", **more):
    return client.stream("POST", f"/chats/{chat}/compact", more)


def talk(client, provider, turns=3):
    for n in range(turns):
        provider.plan(text(f"answer {n}"))
        client.turn("c", f"question {n}")


def test_later_requests_have_the_summary_in_place_of_the_messages(server, provider):
    client = server.client
    talk(client, provider)
    provider.plan(text("THE SUMMARY"))
    stream = compact(client)
    events = stream.finish()
    assert stream.one("compacted")["summary"].startswith("THE SUMMARY") and "answer" not in stream.names()
    made = client.interaction("c", "int_004")
    assert (made["user_message"], made["status"], made["parent_id"]) == ("", "COMPLETED", "int_003")
    assert client.get("/chats/c").json["head"] == "int_004" and events[-1]["status"] == "COMPLETED"
    state = made["final_agent_state"]
    assert [m["content"] for m in state["messages"] if m["role"] == "user"] == [f"question {n}" for n in range(3)]  # the state keeps them
    provider.plan(text("goes on"))
    client.turn("c", "question 3")
    sent = json.dumps(provider.requests[-1].body["messages"])
    assert "THE SUMMARY" in sent and "question 1" not in sent and "answer 0" not in sent and "question 2" in sent and "question 3" in sent
    report = client.post("/chats/c/interactions/int_004/replay", {"mode": "recorded"}).expect(200, "replay_report").json
    assert report["match"] is True


def test_a_summary_that_the_model_refuses_does_not_fail(client, provider):
    talk(client, provider)
    provider.plan(*[failure(400, "no")] * 3)
    compact(client).finish()
    assert client.interaction("c", "int_004")["status"] == "COMPLETED"


def test_it_can_be_stopped_and_is_not_resumed(client, provider):
    talk(client, provider)
    gate = Gate()
    provider.plan(text("half ", gate))
    stream = compact(client)
    gate.wait_reached()
    client.cancel("c", "int_004")
    stream.finish("CANCELLED")
    client.post("/chats/c/interactions/int_004/resume").error(409, "not_resumable")
    provider.plan(text("goes on"))
    client.turn("c", "next")


def test_bad_times(client, provider):
    client.post("/chats/nobody/compact").error(404)
    gate = Gate()
    provider.plan(text("one", gate))
    stream = client.start("c", "hi")
    stream.until("text_delta")
    client.post("/chats/c/compact").error(409, "busy")
    client.post("/chats/c/compact", {"user_message": "x"}).error(400)
    gate.release()
    stream.finish()
    compact(client).finish("FAILED")  # there is nothing before the last message
    assert client.interaction("c", "int_002")["error"]["code"] == "nothing_to_compact"
