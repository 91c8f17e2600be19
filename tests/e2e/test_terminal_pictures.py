"""Pictures in the terminal client: shown by terminals that say they can, and named by all others."""
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
