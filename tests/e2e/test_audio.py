"""Speech: recordings become text, and text becomes speech, through the provider configured for it."""
import json
import subprocess
import threading

import pytest
from support.client import curl
from support.provider import CUT, Gate, Reply, failure, text, wav
from support.server import API_KEY, BINARY
from support.timing import SOON

AUDIO = {"audio": {"transcription": "test/listens", "speech": "test/speaks", "voice": "alto"}}
HEARD = Reply([b'{"text":"Which files are here?"}'], content_type="application/json")


@pytest.fixture
def speaking(make_server, provider):
    return make_server(provider, config=AUDIO)


def form(*parts, boundary="b0undary"):
    """A body of multipart/form-data; a part is (name, bytes) or (name, bytes, filename, type)."""
    body = b""
    for name, content, *file in parts:
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode()
        body += f'; filename="{file[0]}"\r\nContent-Type: {file[1]}'.encode() if file else b""
        body += b"\r\n\r\n" + content + b"\r\n"
    return body + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def listen(client, *parts):
    body, headers = form(*parts)
    return client.request("POST", "/audio/transcriptions", body, headers=headers)


def sound(content=None, filename="said.webm", kind="audio/webm;codecs=opus"):
    return ("file", wav() if content is None else content, filename, kind)


def test_what_is_said_becomes_text(speaking, provider):
    provider.audio = HEARD
    heard = listen(speaking.client, sound(), ("language", b"en"), ("prompt", "Größe".encode())).expect(200, "transcription")
    assert heard.json == {"text": "Which files are here?"}
    request, = provider.heard
    assert request.headers["Authorization"] == f"Bearer {API_KEY}"
    assert request.body["model"][2] == b"listens" and request.body["language"][2] == b"en" and request.body["prompt"][2] == "Größe".encode()
    assert request.body["file"][0] == "audio.webm" and request.body["file"][1] == "audio/webm" and request.body["file"][2] == wav()
    assert "language" not in (listen(speaking.client, sound(), ("model", b"test/other")).expect(200), provider.heard[-1].body)[1]
    assert provider.heard[-1].body["model"][2] == b"other"
    provider.audio = Reply([b'{"text":""}'], content_type="application/json")
    assert listen(speaking.client, sound()).expect(200).json == {"text": ""}


def test_text_is_spoken(speaking, provider):
    provider.audio = Reply([wav(), b"more"], content_type="audio/mpeg")
    spoken = speaking.client.post("/audio/speech", {"text": "Two files."}).expect(200)
    assert spoken.headers["Content-Type"] == "audio/mpeg" and spoken.body == wav() + b"more"
    assert provider.heard[-1].body == {"model": "speaks", "input": "Two files.", "voice": "alto", "response_format": "mp3"}
    spoken = speaking.client.post("/audio/speech", {"text": "x", "voice": "bass", "format": "wav", "model": "test/other"}).expect(200)
    assert spoken.headers["Content-Type"] == "audio/wav"
    assert provider.heard[-1].body == {"model": "other", "input": "x", "voice": "bass", "response_format": "wav"}


def test_models_say_who_listens_and_speaks(make_server, provider):
    assert make_server(provider).client.get("/models").expect(200, "models").json["audio"] == {"transcription": None, "speech": None, "talk": None}
    server = make_server(provider, config={"audio": {"speech": "test/speaks"}})
    assert server.client.get("/models").expect(200, "models").json["audio"] == {"transcription": None, "speech": "test/speaks", "talk": None}
    assert "audio.transcription" in listen(server.client, sound()).error(404, "not_configured")["message"]
    assert not provider.heard


def test_without_a_model_the_error_names_the_setting(client, provider):
    assert "audio.transcription" in listen(client, sound()).error(404, "not_configured")["message"]
    assert "audio.speech" in client.post("/audio/speech", {"text": "x"}).error(404, "not_configured")["message"]
    assert not provider.heard


@pytest.mark.parametrize("audio, words", [({"transcription": "nobody/x"}, "nobody/x"), ({"speech": "offline/x"}, "audio.speech"),
                                          ({"speech": "whisper"}, "PROVIDER/MODEL"), ({"tts": "test/x"}, "audio.tts"), ({"voice": ""}, "audio.voice")])
def test_a_configuration_that_cannot_be_is_named(make_home, audio, words):
    home = make_home()
    (home.path / "reprise.json").write_text(json.dumps({"providers": {"test": {"type": "openai", "base_url": "http://127.0.0.1:9/v1"}}, "audio": audio}))
    done = subprocess.run([str(BINARY), "serve", "--port", "0", "--config", str(home.path / "reprise.json"), "--data-dir", str(home.data), "--workspace",
                           str(home.workspace)], env=home.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON, check=False)
    assert done.returncode != 0 and words in done.stderr


def test_bad_requests_are_named(speaking, provider):
    client = speaking.client
    client.post("/audio/transcriptions", {"file": "x"}).error(415)
    listen(client).error(400, "invalid_body")
    assert '"file"' in listen(client, ("language", b"en")).error(400, "invalid_body")["message"]
    assert "colour" in listen(client, sound(), ("colour", b"red")).error(400, "invalid_body")["message"]
    listen(client, sound(), ("prompt", b"\xff")).error(400, "invalid_body")
    listen(client, sound(), ("language", b"en"), ("language", b"de")).error(400, "invalid_body")
    listen(client, sound(b"")).error(400, "invalid_body")
    for model in (b"listens", b"nobody/x", b"test/", b"offline"):
        assert model.decode() in listen(client, sound(), ("model", model)).error(400, "unknown_model")["message"]
    for body in ({}, {"text": ""}, {"text": 1}, {"text": "x", "format": "midi"}, {"text": "x", "pitch": 2}):
        client.post("/audio/speech", body).error(400)
    client.post("/audio/speech", {"text": "x", "model": "x"}).error(400, "unknown_model")
    assert not provider.heard


@pytest.mark.large
def test_a_recording_has_a_limit(speaking, provider, tmp_path):
    (tmp_path / "long.webm").write_bytes(b"x" * (26 << 20))
    _, answer = curl("-F", f"file=@{tmp_path}/long.webm", f"http://127.0.0.1:{speaking.port}/audio/transcriptions")  # curl sends `Expect: 100-continue`
    assert json.loads(answer)["error"]["code"] == "too_large" and not provider.heard
    provider.audio = HEARD
    listen(speaking.client, sound(b"x" * (25 << 20))).expect(200)
    assert len(provider.heard[-1].body["file"][2]) == 25 << 20
    provider.audio = Reply([b"x" * (1 << 20)] * 26, content_type="audio/mpeg")
    speaking.client.post("/audio/speech", {"text": "x"}).error(503, "provider_protocol")


@pytest.mark.parametrize("reply, status, code", [
    (failure(401, f"Incorrect API key provided: {API_KEY}"), 503, "provider_auth"),
    (failure(400, "Invalid file format."), 400, "provider_bad_request"),
    (failure(404, "no such model"), 503, "provider_not_found"),
    (failure(429, "slow down"), 503, "provider_rate_limited"),
    (failure(500, "oops"), 503, "provider_error"),
    (Reply([b"{\"text\":", CUT]), 503, "provider_protocol"),
    (Reply([b"<html>"]), 503, "provider_protocol"),
    (Reply([b'{"text":7}']), 503, "provider_protocol"),
])
def test_failures_of_the_provider_are_told(speaking, provider, reply, status, code):
    provider.audio = reply
    told = listen(speaking.client, sound()).error(status, None)
    assert API_KEY not in json.dumps(told)
    if reply.steps[-1] is not CUT:
        assert told["code"] == code
    if reply.status == 400:
        assert "Invalid file format." in told["message"]


@pytest.mark.parametrize("reply, code", [(Reply([b"<html>busy</html>"], content_type="text/html"), "provider_protocol"),
                                         (Reply([b'{"error":{"message":"no such voice"}}'], content_type="application/json"), "provider_error"),
                                         (Reply([b""], content_type="audio/mpeg"), "provider_protocol")], ids=["page", "error", "empty"])
def test_data_that_is_not_audio_is_not_passed_on(speaking, provider, reply, code):
    provider.audio = reply
    told = speaking.client.post("/audio/speech", {"text": "x"}).error(503, code)
    assert code != "provider_error" or "no such voice" in told["message"]


def test_a_provider_that_is_not_there_is_told(speaking, provider):
    provider.close()
    listen(speaking.client, sound()).error(503, "provider_unreachable")
    speaking.client.post("/audio/speech", {"text": "x"}).error(503, "provider_unreachable")


def test_a_client_that_goes_ends_the_request(speaking, provider):
    gate = Gate()
    provider.audio = Reply([gate])
    connection = speaking.client._connection()
    body, headers = form(sound())
    connection.request("POST", "/audio/transcriptions", body, {"Host": f"127.0.0.1:{speaking.port}", **headers})
    gate.wait_reached()
    connection.sock.close()
    gate.wait_left()


def test_waiting_recordings_delay_nothing_else(speaking, provider):
    gates = [Gate() for _ in range(4)]
    waiting = iter(gates)
    provider.audio = lambda _: Reply([next(waiting), b'{"text":"ok"}'])
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(listen(speaking.client, sound()))) for _ in gates]
    for thread in threads:
        thread.start()
    for gate in gates:
        gate.wait_reached()
    listen(speaking.client, sound()).error(503, "overloaded")
    provider.plan(text("hello"))
    speaking.client.turn("c", "hi")
    speaking.client.get("/approvals").expect(200)
    for gate in gates:
        gate.release()
    for thread in threads:
        thread.join()
    assert [a.expect(200).json["text"] for a in answers] == ["ok"] * 4
    provider.audio = HEARD
    listen(speaking.client, sound()).expect(200)


def test_a_server_that_stops_does_not_wait_for_it(speaking, provider):
    gate = Gate()
    provider.audio = Reply([gate])
    thread = threading.Thread(target=lambda: pytest.raises(Exception, listen, speaking.client, sound()))
    thread.start()
    gate.wait_reached()
    speaking.stop()
    thread.join()
    gate.wait_left()


def test_nothing_of_it_is_kept_or_logged(speaking, provider):
    provider.audio = Reply([b'{"text":"a canary sings"}'], content_type="application/json")
    listen(speaking.client, sound(b"RIFFcanary-sound"), ("prompt", b"canary-prompt")).expect(200)
    provider.audio = failure(500, "canary-words of the provider")
    speaking.client.post("/audio/speech", {"text": "canary-speech"}).error(503)
    speaking.stop()
    for words in ("canary sings", "canary-sound", "canary-prompt", "canary-speech"):
        assert not speaking.home.find_text(words) and words not in speaking.log()


def test_the_gate_stands_before_it(speaking, provider):
    body, headers = form(sound())
    speaking.client.request("POST", "/audio/transcriptions", body, headers={**headers, "Origin": "http://evil.example"}).error(403)
    speaking.client.request("POST", "/audio/speech", {"text": "x"}, headers={"Host": "evil.example"}).error(403)
    assert not provider.heard
