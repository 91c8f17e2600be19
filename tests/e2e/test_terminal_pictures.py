"""Pictures in the terminal client: shown by terminals that say they can, and named by all others."""
import json
import os

import pytest

from support import documents
from support.provider import text


@pytest.fixture
def attached(server, open_terminal):
    def make(**how):
        return open_terminal(server.home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}", **{"columns": 120, "rows": 40, **how}).opened()
    return make


ATTRIBUTES = b"\x1b[?62;c"
KITTY, WEZTERM, XTERM = b"\x1b_Gi=31;OK\x1b\\\x1bP>|kitty(0.35.2)\x1b\\", b"\x1bP>|WezTerm 20240203\x1b\\", b"\x1bP>|XTerm(390)\x1b\\"


@pytest.mark.parametrize("says, begins", [(KITTY, b"\x1b_Ga=T,U=1,q=2,f=100,"), (WEZTERM, b"\x1b]1337;File=inline=1;"), (XTERM, None), (b"", None)], ids=["kitty", "WezTerm", "xterm", "others"])
def test_a_picture_is_shown_to_a_terminal_that_says_it_can(attached, server, provider, says, begins):
    (server.home.path / "heron.png").write_bytes(documents.png(40, 40))
    provider.plan(text("a heron"))
    chat = attached().ready()
    chat.say("see @heron.png").has_written(b"\x1b[c").type(says + b"typed" + ATTRIBUTES).until("a heron").ready("typed")
    assert any("[heron.png, " in line for line in chat.screen)
    assert ("\U0010eeee" in chat.text) == (says == KITTY)
    assert begins in chat.raw if begins else b"f=100" not in chat.raw and b"1337" not in chat.raw


@pytest.mark.parametrize("within", [{"TMUX": "/tmp/tmux-0/default,1,0"}, {"TERM": "screen-256color"}, {"TERM": "linux"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_that_would_print_the_request_is_not_asked(attached, server, provider, within):
    (server.home.path / "heron.png").write_bytes(documents.png(40, 40))
    provider.plan(text("a heron"))
    chat = attached(**within)
    chat.say("see @heron.png").until("[heron.png, ").until("a heron")
    assert b"\x1b_" not in chat.raw and b"\x1b[c" not in chat.raw and b"1337" not in chat.raw


# --- dropped and pasted

@pytest.mark.parametrize("quoted", [
    lambda path: path.replace(" ", "\\ "), lambda path: f"'{path}'", lambda path: f'"{path}"', lambda path: "file://" + path.replace(" ", "%20") + "\r\n",
], ids=["backslash", "apostrophes", "quotes", "uri"])
def test_a_dropped_picture_goes_with_the_message(attached, server, provider, quoted):
    there = server.home.path / "a heron.png"
    there.write_bytes(documents.png(40, 40))
    provider.plan(text("a heron"))
    chat = attached().ready()
    chat.type("what is ").paste(quoted(str(there))).ready_for(f'what is @"{there}"')
    chat.type("\r").until("(with a heron.png)").until("a heron").ready()
    assert "image" in json.dumps(provider.requests[0].conversation)


def test_several_dropped_files_are_named_and_can_be_taken_back(attached, server, provider):
    names = ["one.png", "two.pdf"]
    for name in names:
        (server.home.path / name).write_bytes(documents.png(8, 8) if name.endswith("png") else b"%PDF-1.4\n")
    chat = attached(columns=300).ready()
    chat.type("see").paste(" ".join(str(server.home.path / name) for name in names)).ready_for(f"see @{server.home.path}/one.png @{server.home.path}/two.pdf")
    provider.plan(text("nothing goes"))
    chat.type("\x15hello\r").until("nothing goes").ready()
    assert provider.requests[0].last["content"] == "hello"


def test_other_pasted_text_stays_as_it_is(attached, server, provider):
    (server.home.path / "notes.txt").write_text("notes")
    (server.home.path / "a.png").write_bytes(documents.png(8, 8))
    (server.home.path / "folder.png").mkdir()
    at = server.home.path
    chat = attached().ready()
    pasted = [f"{at}/notes.txt", f"{at}/none.png", f"{at}/folder.png", f"see {at}/a.png", "a.png", f"'{at}/a.png", "it's", f"file://elsewhere{at}/a.png", "file:///%zz.png", f"{at}/a.png\\"]
    for words in pasted:
        provider.plan(text("as it is"))
        chat.paste(words).ready_for(words).type("\r").until("as it is").ready()
        assert provider.requests[-1].last["content"] == words
    chat.type("/attach ").paste(f"{at}/a.png").type("\r").until("1 file with the next message")


def test_a_picture_in_the_clipboard_goes_with_the_message(attached, server, provider):
    """Programs stand in for wl-paste and xclip: there is no display here."""
    programs = server.home.path / "programs"
    programs.mkdir()
    (programs / "shown.png").write_bytes(documents.png(40, 40))
    (programs / "xclip").write_text(f"#!/bin/sh\n[ \"$4\" = image/png ] && cat {programs}/shown.png\n")
    (programs / "wl-paste").write_text("#!/bin/sh\necho no clipboard >&2\nexit 1\n")
    for name in ("xclip", "wl-paste"):
        (programs / name).chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    provider.plan(text("a heron"))
    chat = attached(PATH=path).ready()
    chat.type("what is this").type("\x16").until("(with picture.png)").ready_for("what is this").type("\r").until("a heron").ready()
    assert "image" in json.dumps(provider.requests[0].conversation)
    chat = attached(PATH=path, WAYLAND_DISPLAY="wayland-0").ready()
    chat.type("\x16").until("there is no picture in the clipboard").ready()
