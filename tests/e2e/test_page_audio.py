"""The page: dictation, and reading answers aloud."""
import pytest
from support.browser import Keys
from support.provider import Gate, Reply, failure, text, wav

pytestmark = pytest.mark.limit(90)

AUDIO = {"audio": {"transcription": "test/listens", "speech": "test/speaks"}}
MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


@pytest.fixture
def speaking(make_server, provider):
    return make_server(provider, config=AUDIO)


def heard(words):
    return Reply([b'{"text":"' + words.encode() + b'"}'], content_type="application/json")


def state(page):
    return page.one("microphone").get_attribute("data-state")


def record(page):
    page.press("microphone")
    page.until(lambda: state(page) == "recording", "the recording")
    page.script("window.recorded = 0; setTimeout(() => { window.recorded = 1; }, 300)")
    page.until(lambda: page.script("return window.recorded") == 1, "something to hear")


def test_what_is_said_goes_where_the_cursor_is(speaking, provider, browse):
    provider.audio = heard("and three")
    page = browse(speaking, flags=MICROPHONE)
    page.type("composer", "one two four")
    page.type("composer", Keys.ARROW_LEFT * len(" four"))
    record(page)
    page.press("microphone")
    page.until(lambda: page.one("composer").get_attribute("value") == "one two and three four", "the words")
    page.until(lambda: state(page) == "idle", "the end of it")
    filename, kind, sound = provider.heard[0].body["file"]
    assert filename == "audio.webm" and kind == "audio/webm" and len(sound) > 100
    assert page.script("return document.activeElement.dataset.testid") == "composer"


def test_escape_drops_a_recording(speaking, provider, browse):
    gate = Gate()
    provider.audio = Reply([gate])
    page = browse(speaking, flags=MICROPHONE)
    record(page)
    page.keys(Keys.ESCAPE)
    page.until(lambda: state(page) == "idle", "the end of it")
    assert not provider.heard
    record(page)
    page.press("microphone")
    gate.wait_reached()
    page.keys(Keys.ESCAPE)
    gate.wait_left()
    page.until(lambda: state(page) == "idle", "the end of it")
    assert page.one("composer").get_attribute("value") == "" and not page.all("toast")


def test_a_microphone_that_is_refused_is_told(speaking, provider, browse):
    page = browse(speaking, flags=("--use-fake-device-for-media-stream", "--deny-permission-prompts"))
    page.press("microphone")
    page.until(lambda: "The microphone cannot be used" in page.css("body")[0].text, "the words")
    page.until(lambda: state(page) == "idle", "the end of it")
    assert not provider.heard


def test_a_failure_of_the_provider_is_told(speaking, provider, browse):
    provider.audio = failure(429, "slow down")
    page = browse(speaking, flags=MICROPHONE)
    record(page)
    page.press("microphone")
    page.until(lambda: "slow down" in page.css("body")[0].text, "the words")
    page.until(lambda: state(page) == "idle", "the end of it")


def test_an_answer_is_read_aloud_and_stopped(speaking, provider, browse):
    provider.plan(text("**Two** files:\n\n```sh\nls\n```\n\n- [a](http://x/) and b"))
    provider.audio = Reply([wav(0.2)], content_type="audio/wav")
    page = browse(speaking)
    page.script("""window.starts = 0; const start = AudioBufferSourceNode.prototype.start;
        AudioBufferSourceNode.prototype.start = function (...all) { window.starts++; return start.apply(this, all); };""")
    page.say("which files?")
    page.press("read-aloud")
    page.until(lambda: page.script("return window.starts") == 1, "the sound")
    page.one("read-aloud")
    spoken = provider.heard[0].body
    assert spoken["model"] == "speaks" and spoken["input"].split() == ["Two", "files:", "a", "and", "b"]
    provider.audio = Reply([wav(60)], content_type="audio/wav")
    page.press("read-aloud")
    page.until(lambda: page.script("return window.starts") == 2, "the sound")
    page.press("stop-reading")
    page.one("read-aloud")
    gate = Gate()
    provider.audio = Reply([gate])
    page.press("read-aloud")
    gate.wait_reached()
    page.press("stop-reading")
    gate.wait_left()
    assert not page.all("toast")


def test_a_long_answer_is_read_in_pieces(speaking, provider, browse):
    provider.plan(text("This is a sentence. " * 500))
    provider.audio = Reply([wav(0.1)], content_type="audio/wav")
    page = browse(speaking)
    page.say("talk")
    page.press("read-aloud")
    page.until(lambda: len(provider.heard) == 3, "all pieces")
    page.one("read-aloud")
    pieces = [request.body["input"] for request in provider.heard]
    assert all(len(piece) <= 4000 and piece.endswith("sentence.") for piece in pieces)
    assert " ".join(pieces) == ("This is a sentence. " * 500).strip()


@pytest.mark.parametrize("kind, words", [("text/html", "is no sound but text"), ("audio/wav", "did not send audio")])
def test_data_that_is_not_audio_is_reported(speaking, provider, browse, kind, words):
    """The server reports it if it can; otherwise the page does."""
    provider.plan(text("hello"))
    provider.audio = Reply([b"<html>"], content_type=kind)
    page = browse(speaking)
    page.say("hi")
    page.press("read-aloud")
    page.until_text("toast", words)
    page.one("read-aloud")


def test_without_models_there_is_neither_microphone_nor_voice(server, provider, browse):
    provider.plan(text("hello"))
    page = browse(server)
    page.say("hi")
    page.until_text("turn-usage", "tokens")
    page.until_text("model", "scripted")
    assert not page.all("microphone") and not page.all("read-aloud")
