"""Progress of long commands: one changing line at a terminal, only the result on a pipe; and nothing half-made is left when they are stopped."""
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time

import pytest
from support.server import BINARY, Home
from support.terminal import Terminal
from support.timing import SLACK, SOON, eventually

INTERACTIONS = 3000
FILES = f"{INTERACTIONS + 1:,}"  # including chat.json
DRAWN = re.compile(r"\r([^\r\n\x1b]+)\x1b\[K")
TIME = "2025-01-15T10:00:00.000Z"


def write_chat(folder, count, text):
    """Writes the files of a plain chat as in a data folder, because importing so many would take a minute."""
    (folder / "interactions").mkdir(parents=True)
    for number in range(1, count + 1):
        question, answer = f"question {number} {text}", f"answer {number}"
        (folder / "interactions" / f"int_{number:03}.json").write_text(json.dumps({
            "schema": 1, "id": f"int_{number:03}", "chat_id": folder.name, "parent_id": f"int_{number - 1:03}" if number > 1 else None, "edited_from": None,
            "status": "COMPLETED", "user_message": question, "agent_events": [{"type": "ANSWER", "seq": 1, "round_index": 0, "at": TIME, "content": answer}],
            "final_agent_state": {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]},
            "model": "offline", "usage": {"input_tokens": 0, "output_tokens": 0}, "error": None, "created_at": TIME, "completed_at": TIME}))
    last = f"int_{count:03}"
    (folder / "chat.json").write_text(json.dumps({
        "schema": 1, "id": folder.name, "title": "A long chat", "created_at": TIME, "updated_at": TIME, "head": last, "head_status": "COMPLETED",
        "last": count, "leaves": [{"id": last, "digest": "sha256:" + "0" * 64}]}))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a plain data folder and one chat of 3,000 interactions, which take some time to read. No test may change it."""
    long = Home(tmp_path_factory.mktemp("long") / "user")
    write_chat(long.data / "long", INTERACTIONS, "many words " * 1700)
    return long


def command(home, *arguments, **how):
    return subprocess.Popen([str(BINARY), *map(str, arguments), "--data-dir", str(home.data)], cwd=home.path, env=home.environment(TERM="xterm"),
                            stdin=subprocess.DEVNULL, text=True, **how)


def result(home, *arguments, status=0):
    done = command(home, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = done.communicate(timeout=10 * SOON)
    assert done.returncode == status, (out[-800:], err[-800:])
    return out, err


def at_terminal(home, *arguments, columns=100, **environment):
    return Terminal(home, *arguments, "--data-dir", home.data, columns=columns, **environment)


def screen(raw):
    """The lines that a terminal shows after these bytes."""
    lines, column = [""], 0
    for part in re.findall(r"\r|\n|\x1b\[K|[^\r\n\x1b]+", raw.decode()):
        if part == "\r":
            column = 0
        elif part == "\n":
            lines.append("")
            column = 0
        elif part == "\x1b[K":
            lines[-1] = lines[-1][:column]
        else:
            lines[-1] = lines[-1][:column].ljust(column) + part + lines[-1][column + len(part):]
            column += len(part)
    return lines


def counts(raw):
    return [int(found.replace(",", "")) for found in re.findall(r"(?:checking|searching) ([\d,]+) ", raw.decode())]


# --- the line ---------------------------------------------------------------------------------------------------------

def test_at_a_terminal_a_line_moves_and_is_gone_at_the_end(home):
    begun = time.monotonic()
    terminal = at_terminal(home, "verify", "--plain")
    assert terminal.end() == 0
    seconds = time.monotonic() - begun
    drawn = DRAWN.findall(terminal.raw.decode())
    assert all(re.fullmatch(rf"checking [\d,]+ of {FILES} files(, [\d,.]+/s)?(, \d+ (s|min) left)?", line) for line in drawn), drawn
    assert any(line.endswith(" left") for line in drawn)
    seen = counts(terminal.raw)
    assert len(set(seen)) >= 3 and seen == sorted(seen), seen
    assert len(drawn) <= 31 * seconds + 1
    assert screen(terminal.raw) == [f"{INTERACTIONS + 1} files checked, all in order", ""]


def test_on_a_narrow_terminal_the_line_does_not_wrap(home):
    terminal = at_terminal(home, "verify", "--plain", columns=40)
    assert terminal.end() == 0
    drawn = DRAWN.findall(terminal.raw.decode())
    assert drawn and max(map(len, drawn)) < 40, drawn
    assert screen(terminal.raw) == [f"{INTERACTIONS + 1} files checked, all in order", ""]


def test_on_a_pipe_there_is_nothing_but_the_result(home):
    assert result(home, "verify", "--plain") == (f"{INTERACTIONS + 1} files checked, all in order\n", "")
    assert json.loads(result(home, "verify", "--plain", "--json")[0]) == {"ok": True, "checked": INTERACTIONS + 1, "problems": []}


def test_a_dumb_terminal_shows_the_result_alone(home):
    terminal = at_terminal(home, "verify", "--plain", TERM="dumb")
    assert terminal.end() == 0
    assert terminal.raw.decode() == f"{INTERACTIONS + 1} files checked, all in order\r\n"


def test_the_line_goes_to_the_terminal_while_the_result_goes_to_a_pipe(home):
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 100, 0, 0))
    done = command(home, "verify", "--plain", "--json", stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    raw = b""
    try:
        while part := os.read(ours, 65536):
            raw += part
    except OSError:  # the other end is closed
        pass
    out = done.communicate(timeout=SOON)[0]
    os.close(ours)
    assert done.returncode == 0 and json.loads(out)["checked"] == INTERACTIONS + 1
    assert len(set(counts(raw))) >= 3 and screen(raw) == [""]


def test_search_shows_what_it_looks_through(home):
    terminal = at_terminal(home, "search", "question 2999 ", "--plain", columns=200)
    assert terminal.end() == 0
    assert len(set(counts(terminal.raw))) >= 2
    found, summary, rest = screen(terminal.raw)
    assert found.startswith("long/int_2999  user  ") and summary == f"1 match in {INTERACTIONS} turns" and rest == ""
    out, err = result(home, "search", "question 2999 ", "--plain")
    assert out.count("\n") == 1 and err == ""


# --- what they say at the end ------------------------------------------------------------------------------------------

def test_a_line_at_the_end_says_what_was_done(tmp_path):
    home = Home(tmp_path / "user")
    write_chat(home.path / "in" / "one", 2, "")
    write_chat(home.path / "in" / "two", 1, "")
    assert result(home, "import", home.path / "in")[0].splitlines()[-1] == "2 chats imported, with 3 interactions"
    assert result(home, "import", home.path / "in" / "one")[0].count("\n") == 1
    out = home.path / "out"
    assert result(home, "export", "-o", out)[0] == f"5 interactions of 3 chats written to {out}\n"
    assert result(home, "export", "two", "--format", "markdown", "-o", home.path / "two.md")[0] == f"1 interaction of 1 chat written to {home.path / 'two.md'}\n"
    assert json.loads(result(home, "export", "-o", out, "--force", "--json")[0])["ok"]
    file = home.checkpoint_file("two", "int_001")
    assert result(home, "decrypt", file, "-o", home.path / "plain.json")[0] == f"{file} in plain in {home.path / 'plain.json'}\n"
    assert result(home, "decrypt", "--all", "-o", home.path / "plain")[0] == f"3 chats in plain in {home.path / 'plain'}\n"


# --- stopping them -----------------------------------------------------------------------------------------------------

def test_ctrl_c_leaves_a_clean_line(home):
    terminal = at_terminal(home, "verify", "--plain").until("checking ")
    terminal.type("\x03")
    assert terminal.end() == -signal.SIGINT
    assert screen(terminal.raw) == [""]


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def stop_in_the_middle(process, is_under_way, number):
    eventually(is_under_way, "the work is under way", 5 * SOON)
    process.send_signal(number)
    out, err = process.communicate(timeout=SOON)
    assert process.returncode == -number, (process.returncode, out, err)
    assert out == "" and "Traceback" not in err
    return err


@pytest.mark.limit(60 + 20 * SLACK)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_import_leaves_nothing_half_made(tmp_path, number):
    home = Home(tmp_path / "user")
    write_chat(home.path / "in" / "small", 1, "")
    write_chat(home.path / "in" / "zlong", 2000, "")
    result(home, "import", home.path / "in" / "small")
    process = command(home, "import", home.path / "in" / "zlong", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stop_in_the_middle(process, lambda: len(list(home.data.glob(".incoming.*/zlong/interactions/*.json"))) > 5, number)
    assert [name for name in names(home.data) if not name.startswith(".")] == ["small"]
    assert not [name for name in names(home.data) if name.startswith(".incoming")]
    assert result(home, "verify")[0] == "2 files checked, all in order\n"


@pytest.mark.limit(60 + 20 * SLACK)
def test_a_stopped_export_leaves_nothing_half_made(home, tmp_path):
    out = tmp_path / "out"
    process = command(home, "export", "-o", out, "--plain", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    err = stop_in_the_middle(process, lambda: len(list(out.glob(".*/long/interactions/*.json"))) > 5, signal.SIGINT)
    assert err == "" and names(out) == []


@pytest.mark.limit(60 + 20 * SLACK)
def test_a_stopped_conversion_leaves_the_folder_as_it_was(home):
    before = names(home.data), names(home.data / "long" / "interactions")
    process = command(home, "encrypt", "--all", "--in-place", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    copies = f"{home.data.name}.converting.*/.incoming.*/long/interactions/*.json"
    stop_in_the_middle(process, lambda: len(list(home.path.glob(copies))) > 5, signal.SIGINT)
    assert [name for name in names(home.path) if name.startswith(home.data.name)] == [home.data.name]
    after = [name for name in names(home.data) if not name.startswith(".")], names(home.data / "long" / "interactions")
    assert after == ([name for name in before[0] if not name.startswith(".")], before[1])
    assert result(home, "verify", "--plain")[0] == f"{INTERACTIONS + 1} files checked, all in order\n"


@pytest.mark.limit(60 + 20 * SLACK)
def test_stopped_copies_to_another_folder_are_whole_or_not_there(home, tmp_path):
    out = tmp_path / "sealed"
    process = command(home, "encrypt", "--all", "-o", out, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stop_in_the_middle(process, lambda: len(list(out.glob(".incoming.*/long/interactions/*.json"))) > 5, signal.SIGTERM)
    assert [name for name in names(out) if not name == ".lock"] == []


def test_a_second_signal_ends_a_command_at_once(home):
    """After the first signal the command would finish its present step, but it blocks on a pipe that is not read."""
    read, write = os.pipe()
    process = command(home, "export", "--format", "markdown", "--plain", stdout=write, stderr=subprocess.DEVNULL)
    os.close(write)
    try:
        full = fcntl.fcntl(read, fcntl.F_GETPIPE_SZ)

        def is_full():
            return struct.unpack("i", fcntl.ioctl(read, termios.FIONREAD, b"\0" * 4))[0] == full
        eventually(is_full, "the pipe is full", 5 * SOON)
        process.send_signal(signal.SIGINT)
        # Wait until the signal is delivered; otherwise the second would merge with it.
        eventually(lambda: not is_pending(process.pid, signal.SIGINT), "the signal is taken")
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) == -signal.SIGINT
    finally:
        os.close(read)


def is_pending(pid, number):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        pending = next(int(line.split()[1], 16) for line in status if line.startswith("ShdPnd:"))
    return bool(pending >> (number - 1) & 1)
