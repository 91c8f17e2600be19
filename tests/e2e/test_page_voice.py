"""The page: talk with a model that hears and speaks (docs/voice.md)."""
import struct

import pytest
from support.provider import Gate
from support.realtime import RATE, done, samples, sound, words
from test_page_audio import MICROPHONE, heard
from test_voice import settings, talker  # noqa: F401

pytestmark = pytest.mark.limit(90)


@pytest.fixture
def page(make_server, provider, talker, browse):  # noqa: F811
    provider.audio = heard("What do you see?")
    server = make_server(provider, config=settings(provider, talker))
    page = browse(server, flags=MICROPHONE)
    page.server = server
    page.script("""window.played = []; const start = AudioBufferSourceNode.prototype.start;
        AudioBufferSourceNode.prototype.start = function (...all) { window.played.push([this.buffer.length, this.buffer.sampleRate]); return start.apply(this, all); };
        window.ended = 0; const close = AudioContext.prototype.close;
        AudioContext.prototype.close = function () { window.ended++; return close.apply(this); };""")
    return page


def speak(page):
    page.press("talk")
    page.until(lambda: page.one("talk").get_attribute("data-state") == "recording", "the recording")
    # Chromium's microphone beeps every half second.
    page.script("window.recorded = 0; setTimeout(() => { window.recorded = 1; }, 600)")
    page.until(lambda: page.script("return window.recorded") == 1, "something to hear")
    page.press("talk")


def test_a_turn_is_spoken_and_heard(page, talker):  # noqa: F811
    gate = Gate()
    talker.plan(words("A heron."), sound(samples(0.3)), gate, sound(samples(0.2)), done())
    speak(page)
    page.until(lambda: page.script("return window.played.length") == 1, "the first sound, while the model still speaks")
    gate.release()
    page.until(lambda: page.script("return window.played") == [[int(0.3 * RATE), RATE], [int(0.2 * RATE), RATE]], "the sound")
    page.until(lambda: "A heron." in page.css("body")[0].text and "What do you see?" in page.css("body")[0].text, "the words")
    page.until(lambda: page.one("talk").get_attribute("data-state") == "idle", "the end of it")

    chat, = page.server.client.get("/chats").json["chats"]
    files = page.server.client.get(f"/chats/{chat['id']}/files").json["files"]
    assert [each["filename"] for each in files] == ["said.wav", "spoken.wav"]
    said = page.server.client.get(f"/chats/{chat['id']}/files/{files[0]['id']}").body
    assert said[:4] == b"RIFF" and struct.unpack("<HHI", said[20:28]) == (1, 1, RATE) and any(said[44:]), "what the microphone gave, as the model hears it"
    assert talker.sessions[0].items[0]["content"][1]["type"] == "input_audio"


def test_stop_ends_the_sound_too(page, talker):  # noqa: F811
    gate = Gate()
    talker.plan(words("A long"), sound(samples(20)), gate, done())
    speak(page)
    page.until(lambda: page.script("return window.played.length") == 1, "the sound")
    page.press("stop")
    gate.wait_left()
    page.until(lambda: page.script("return window.ended") == 1, "silence")


def test_without_a_model_that_talks_there_is_no_such_button(make_server, provider, browse):
    page = browse(make_server(provider, config={"audio": {"transcription": "test/listens"}}))
    page.one("microphone")
    assert not page.all("talk")
