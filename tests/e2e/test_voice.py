"""Models that talk (docs/voice.md): a spoken turn is an ordinary interaction, and its sound a file of the chat."""
import base64
import json
import socket
import subprocess
import threading

import pytest
from support.provider import CUT, Gate, Reply, text
from support.provider import wav as slow_wav
from support.realtime import Realtime, call, done, frame, samples, sound, wav, words, written
from support.server import API_KEY, BINARY
from support.timing import SOON
from test_audio import listen
from test_media import reprise

QUESTION = wav(samples(0.5))
ANSWER = samples(0.3, 2000)


@pytest.fixture
def talker():
    realtime = Realtime()
    yield realtime
    realtime.close()


def settings(provider, talker, **more):
    return {"providers": {"test": {"type": "openai", "base_url": provider.url, "api_key": "${TEST_API_KEY}"},
                          "voice": {"type": "openai_realtime", "base_url": talker.url, "api_key": "${TEST_API_KEY}"}},
            "model": "test/scripted", "audio": {"transcription": "test/listens", "talk": "voice/talks", "voice": "alto"}, **more}


@pytest.fixture
def talking(make_server, provider, talker):
    return make_server(provider, config=settings(provider, talker))


def upload(client, content=QUESTION, name="said.wav", chat="c"):
    return client.request("POST", f"/chats/{chat}/files?name={name}", content, headers={"Content-Type": "audio/wav"}).expect(201, "chat_file").json


def says(client, words_said="What do you see?", file=None, chat="c", **more):
    """A spoken turn: its recording, and the transcript as the message."""
    file = file or upload(client, chat=chat)
    return client.start(chat, words_said, attachments=[file["id"]], model="voice/talks", **more)


def spoken(stream):
    """The sound that was shown while it came."""
    return b"".join(base64.b64decode(event["content"]) for event in stream.all("sound_delta"))


def test_a_spoken_turn(talking, talker):
    client = talking.client
    gate = Gate()
    talker.plan(words("A "), sound(ANSWER[:1000]), gate, words("heron."), sound(ANSWER[1000:]), done())
    recording = upload(client)
    stream = says(client, file=recording)
    stream.until("sound_delta")
    gate.release()
    stream.finish()
    assert stream.names(without=("usage",)) == ["interaction_started", "text_delta", "sound_delta", "text_delta", "sound_delta", "sound", "answer", "interaction_complete"]
    assert spoken(stream) == ANSWER and stream.one("answer")["content"] == "A heron."
    assert {key: stream.one("usage")[key] for key in ("input_tokens", "output_tokens", "cache_read_tokens")} == {"input_tokens": 11, "output_tokens": 7, "cache_read_tokens": 3}

    file, = stream.one("sound")["files"]
    assert file["filename"] == "spoken.wav" and file["mime_type"] == "audio/wav"
    assert client.get(f"/chats/c/files/{file['id']}").body == wav(ANSWER)
    interaction = client.interaction("c", stream.interaction)
    assert interaction["user_message"] == "What do you see?" and [each["id"] for each in interaction["attachments"]] == [recording["id"]]
    assert not any(event["type"] == "SOUND_DELTA" for event in interaction["agent_events"]), "the sound is a file, and stored once"

    session, = talker.sessions
    assert session.path == "/v1/realtime?model=talks" and session.headers["authorization"] == f"Bearer {API_KEY}"
    assert session.setting["type"] == "realtime" and session.setting["output_modalities"] == ["audio"]
    assert session.setting["audio"] == {"input": {"format": {"type": "audio/pcm", "rate": 24000}, "turn_detection": None},
                                        "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "alto"}}
    assert session.setting["instructions"] and any(tool["name"] == "read_file" for tool in session.setting["tools"])
    item, = session.items
    assert item["role"] == "user" and item["content"][0]["text"].startswith("What do you see?")
    assert item["content"][1] == {"type": "input_audio", "audio": base64.b64encode(samples(0.5)).decode()}
    talker.wait_left()


def test_several_talk_at_once_beside_others_that_write(talking, talker, provider):
    gates = [Gate() for _ in range(3)]
    streams = []
    for number, gate in enumerate(gates):
        talker.plan(words("Yes"), sound(ANSWER), gate, sound(ANSWER), done())
        streams.append(says(talking.client, chat=f"c{number}"))
        streams[-1].until("sound_delta")
        provider.plan(text("In writing."))
        talking.client.turn(f"w{number}", "hello")  # another connection of the same thread
    for gate, stream in zip(gates, streams):
        gate.release()
        stream.finish()
        assert spoken(stream) == 2 * ANSWER


def test_earlier_turns_are_told_as_text_and_what_is_typed_is_answered_in_writing(talking, talker):
    talker.plan(words("A heron."), sound(ANSWER), done())
    says(talking.client).finish()
    talker.plan(written("Grey."), done())
    stream = talking.client.start("c", "which colour?", model="voice/talks")
    stream.finish()
    assert stream.one("answer")["content"] == "Grey." and not spoken(stream)
    session = talker.sessions[1]
    assert session.setting["output_modalities"] == ["text"] and "input_audio" not in json.dumps(session.events)
    assert [(item["role"], item["content"][0]["type"]) for item in session.items] == [("user", "input_text"), ("assistant", "output_text"), ("user", "input_text")]
    assert session.items[0]["content"][0]["text"].startswith("What do you see?") and session.items[1]["content"][0]["text"] == "A heron."


def test_another_model_goes_on_with_what_was_said(talking, talker, provider):
    talker.plan(words("A heron."), sound(ANSWER), done())
    says(talking.client).finish()
    provider.plan(text("Grey."))
    talking.client.turn("c", "which colour?")
    said = provider.requests[0].conversation
    assert said[0]["content"].startswith("What do you see?") and said[1]["content"] == "A heron."


def test_the_names_of_the_beta_are_understood(talking, talker):
    talker.plan(sound(ANSWER, beta=True), words("Yes.", beta=True), done())
    stream = says(talking.client)
    stream.finish()
    assert spoken(stream) == ANSWER and stream.one("answer")["content"] == "Yes."


def test_words_that_come_only_at_the_end(talking, talker):
    talker.plan(sound(ANSWER), done({"type": "message", "content": [{"type": "output_audio", "transcript": "Yes."}]}))
    stream = says(talking.client)
    stream.finish()
    assert stream.one("answer")["content"] == "Yes."


def test_a_call_asks_for_approval(talking, talker):
    client = talking.client
    talker.plan(words("I write it. "), sound(ANSWER), call("write_file", {"path": "note.txt", "content": "heron"}), done())
    stream = says(client, "Write it down.")
    asked = stream.until("approval_required")
    assert asked["tool_name"] == "write_file" and not (talking.home.workspace / "note.txt").exists()
    talker.plan(words("Written."), sound(ANSWER), done())
    client.approve("c", stream.interaction, asked["approval_id"]).expect(200)
    stream.finish()
    assert (talking.home.workspace / "note.txt").read_text() == "heron"
    assert len(stream.all("sound")) == 2 and stream.one("answer")["content"] == "Written."
    later = talker.sessions[1]
    assert [item["type"] for item in later.items] == ["message", "message", "function_call", "function_call_output"]
    assert later.items[2]["call_id"] == later.items[3]["call_id"] == "call_1"
    assert later.setting["output_modalities"] == ["audio"], "the turn is still a spoken one"


def test_stop_ends_it_and_keeps_what_was_said(talking, talker):
    client = talking.client
    gate = Gate()
    talker.plan(words("A long"), sound(ANSWER), gate, done())
    stream = says(client)
    stream.until("sound_delta")
    client.cancel("c", stream.interaction)
    stream.finish("CANCELLED")
    gate.wait_left()
    talker.wait_left()
    file, = stream.one("sound")["files"]
    assert client.get(f"/chats/c/files/{file['id']}").body == wav(ANSWER)
    assert stream.one("message")["content"] == "A long"


HUGE = frame(b"x" * (5 << 20))


@pytest.mark.parametrize("steps, code, words_of_it", [
    ([CUT], "provider_protocol", ""),
    ([sound(ANSWER), CUT], "provider_protocol", ""),
    ([frame(b"", 8)], "provider_protocol", "before it was complete"),
    ([b"\x81\x85mask!"], "provider_protocol", ""),
    ([b"\xf3\x02no"], "provider_protocol", ""),
    ([HUGE], "provider_protocol", ""),
    ([frame(b"{}")], "provider_protocol", ""),
    ([{"type": "response.output_audio.delta", "delta": "?"}], "provider_protocol", "base64"),
    ([{"type": "error", "error": {"type": "invalid_request_error", "code": "invalid_value", "message": "Invalid value: 'alto'."}}], "provider_bad_request", "Invalid value"),
    ([done(status="failed", details={"type": "failed", "error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your quota."}})],
     None, "exceeded your quota"),
    ([done()], "provider_protocol", "nothing in it"),
])
def test_failures_are_named(talking, talker, steps, code, words_of_it):
    for _ in range(2):  # a request that is refused for no known reason is sent once more, without the tools that may be why
        talker.plan(*steps)
    stream = says(talking.client)
    stream.finish("FAILED")
    error = stream.one("error")
    assert words_of_it in error["message"] and (code is None or error["code"] == code), error
    talker.wait_left()


def test_a_refused_key(talking, talker):
    talker.refusal = (401, {"error": {"message": f"Incorrect API key provided: {API_KEY}", "code": "invalid_api_key"}})
    stream = says(talking.client)
    stream.finish("FAILED")
    assert stream.one("error")["code"] == "provider_auth" and API_KEY not in json.dumps([event.data for event in stream.events])


def test_silence_has_an_end(make_server, provider, talker):
    server = make_server(provider, config=settings(provider, talker, provider_idle_timeout_s=1))
    gate = Gate()
    talker.plan(words("Hm"), sound(ANSWER), gate)
    stream = says(server.client)
    stream.finish("FAILED")
    assert stream.one("error")["code"] == "provider_timeout"
    gate.wait_left()


def test_sound_has_a_limit(talking, talker):
    piece = sound(bytes(2 << 20))
    talker.plan(*[piece] * 9)
    stream = says(talking.client)
    stream.finish("FAILED")
    assert stream.one("error")["code"] == "response_too_large"


def test_an_answer_that_is_cut_off_says_so(talking, talker):
    talker.plan(words("Once upon"), sound(ANSWER), done(status="incomplete", details={"type": "incomplete", "reason": "max_output_tokens"}))
    stream = says(talking.client)
    stream.finish()
    assert stream.one("answer")["reason"] == "length"


def test_a_recording_of_another_form_is_not_sent(talking, talker):
    talker.plan(words("I cannot hear it."), done())
    says(talking.client, file=upload(talking.client, slow_wav(), "slow.wav")).finish()
    content = talker.sessions[0].items[0]["content"]
    assert [part["type"] for part in content] == ["input_text", "input_text"] and "24 kHz" in content[1]["text"]


def test_edit_replay_export_and_fork(talking, talker, make_server, provider):
    client = talking.client
    talker.plan(words("A heron."), sound(ANSWER), done())
    stream = says(client)
    first = stream.finish() and stream.interaction
    file, = stream.one("sound")["files"]

    replay = client.post(f"/chats/c/interactions/{first}/replay", {"mode": "recorded"}).expect(200, "replay_report").json
    assert replay["divergence"] is None, replay
    markdown = client.get("/chats/c/export?format=markdown").body.decode()
    assert "What do you see?" in markdown and "A heron." in markdown and "spoken.wav" in markdown
    assert "spoken.wav" in reprise(talking.home, "show", "c")

    talker.plan(words("A stork."), sound(ANSWER), done())
    edited = client.edit("c", first, "What do you hear?")
    edited.finish()
    item = talker.sessions[-1].items[0]
    assert item["content"][0]["text"].startswith("What do you hear?") and item["content"][1]["type"] == "input_audio"

    fork = client.post("/chats/c/fork", {"interaction_id": first}).expect(201).json["id"]
    assert client.get(f"/chats/{fork}/files/{file['id']}").body == wav(ANSWER)
    out = talking.home.path / "out"
    reprise(talking.home, "export", "-o", out)
    other = make_server(provider, config=settings(provider, talker))
    reprise(other.home, "import", out)
    assert other.client.get(f"/chats/c/files/{file['id']}").body == wav(ANSWER)

    requests = client.get(f"/chats/c/interactions/{first}/requests").expect(200).json
    assert base64.b64encode(samples(0.5)).decode()[:100] not in json.dumps(requests), "the record names the recording's file"


def test_a_killed_server_keeps_what_was_heard(talking, talker, make_server, provider):
    gate = Gate()
    talker.plan(words("Half"), sound(ANSWER), gate)
    stream = says(talking.client, on_disconnect="continue")
    stream.until("sound_delta")
    talking.process.kill()
    talking.process.wait(SOON)
    talking.stopped = True
    again = make_server(provider, home=talking.home, config=settings(provider, talker))
    interaction = again.client.interaction("c", stream.interaction)
    assert interaction["status"] == "FAILED" and [event["content"] for event in interaction["agent_events"] if event["type"] == "MESSAGE"] == ["Half"]


def test_a_proxy_is_asked_for_a_tunnel(make_server, provider, talker):
    """Addresses of this machine are reached without one, so the model has a name that only the proxy knows."""
    asked = []
    listener = socket.create_server(("127.0.0.1", 0))

    def refuse():
        while True:
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(4096).split(b"\r\n")[0])
                connection.sendall(b"HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n")

    threading.Thread(target=refuse, daemon=True).start()
    config = settings(provider, talker)
    config["providers"]["voice"]["base_url"] = "https://talks.example/v1"
    server = make_server(provider, config=config, environment={"https_proxy": f"http://127.0.0.1:{listener.getsockname()[1]}"})
    server.client.get("/models").expect(200)  # asks the provider, so that it has been asked before
    before = len(asked)
    says(server.client).finish("FAILED")
    # The list of models may be asked for once more meanwhile.
    assert asked[before:] and set(asked) == {b"CONNECT talks.example:443 HTTP/1.1"}


def test_models_say_who_talks(talking, provider, make_server):
    assert talking.client.get("/models").expect(200, "models").json["audio"]["talk"] == "voice/talks"
    assert make_server(provider).client.get("/models").expect(200, "models").json["audio"]["talk"] is None


@pytest.mark.parametrize("talk", ["test/x", "nobody/x", "voice"])
def test_who_talks_must_be_able_to(make_home, provider, talker, talk):
    home = make_home()
    config = settings(provider, talker, audio={"talk": talk})
    (home.path / "reprise.json").write_text(json.dumps(config))
    ended = subprocess.run([str(BINARY), "serve", "--port", "0", "--config", str(home.path / "reprise.json"), "--data-dir", str(home.data), "--workspace",
                            str(home.workspace)], env=home.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON, check=False)
    assert ended.returncode != 0 and "audio.talk" in ended.stderr


def test_the_transcript_comes_from_the_model_that_listens(talking, provider):
    provider.audio = Reply([b'{"text":"What do you see?"}'], content_type="application/json")
    assert listen(talking.client, ("file", QUESTION, "said.wav", "audio/wav")).expect(200).json == {"text": "What do you see?"}
