"""A command at a pseudo-terminal, as a person uses it: the screen and the keys."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

import pyte

from .server import BINARY
from .timing import SOON

PASTE_BEGIN, PASTE_END = b"\x1b[200~", b"\x1b[201~"
# Sequences that move the cursor, switch modes or colours, or set the title; and the bell.
ESCAPES = re.compile(rb"\x1b\][^\x07]*\x07|\x07|\x1b\[[0-9;?<>]*[A-Za-z]|\x1b[=>()][0-9A-B]?|\x1b[78]|\r")
# Sequences unknown to pyte, which would draw their last letter or underline, and control strings (pictures).
ASKS_FOR_KEYS = re.compile(rb"\x1b\[[<>][0-9;]*[umq]|\x1b[_P][^\x1b]*\x1b\\|\x1b\]1337;[^\x07]*\x07")
TIOCGPTPEER = 0x5441  # the program's side of a pseudo-terminal; no constant of Python's
QUIET = 0.6  # seconds; a key pressed sooner after a question appeared does not answer it


class Terminal:
    def __init__(self, home, *arguments, program=BINARY, columns=200, rows=50, **environment):
        self.pid, self.fd = pty.fork()
        size = struct.pack("HHHH", rows, columns, 0, 0)
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, size)
            os.chdir(home.path)
            os.execve(str(program), [os.path.basename(program), *map(str, arguments)], home.environment(**{"TERM": "xterm", "LC_ALL": "C.UTF-8", **environment}))
        self.columns, self.rows = columns, rows
        self.first_size = (rows, columns)
        self.resized = []  # (bytes before it, new size)
        self.raw = b""
        self.seen = 0  # characters of the text up to the end of what `until` found
        self.said = 0  # bytes before the last line was sent
        self.status = None

    @property
    def text(self):
        return ESCAPES.sub(b"", self.raw).decode(errors="replace")

    def has_written(self, sequence):
        """Waits until the program has written these bytes."""
        deadline = time.monotonic() + SOON
        while sequence not in self.raw:
            part = self._read(deadline)
            assert part, f"{sequence!r} is not written: {self.raw!r}"
            self.raw += part
        return self

    def _read(self, deadline):
        ready, _, _ = select.select([self.fd], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            return None
        try:
            return os.read(self.fd, 65536)
        except OSError:  # the other end is closed
            return b""

    def until(self, words):
        """Waits until these words are shown after those of earlier waits."""
        deadline = time.monotonic() + SOON
        while (at := self.text.find(words, self.seen)) < 0:
            part = self._read(deadline)
            assert part, f"{words!r} is not shown ({'the end' if part == b'' else 'nothing more'}): {self.text[self.seen:]!r}"
            self.raw += part
        self.seen = at + len(words)
        return self

    @property
    def screen(self):
        """The visible lines of the screen, without empty ones at its end."""
        rows, columns = self.first_size
        screen = pyte.Screen(columns, rows)
        stream = pyte.ByteStream(screen)
        at = 0
        for until, size in self.resized:
            stream.feed(ASKS_FOR_KEYS.sub(b"", self.raw[at:until]))
            screen.resize(*size)
            at = until
        stream.feed(ASKS_FOR_KEYS.sub(b"", self.raw[at:]))
        lines = [line.rstrip() for line in screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def shows(self, *lines):
        """Waits until these lines are on the screen, one below the other."""
        deadline = time.monotonic() + SOON
        wanted = list(lines)
        while not any(self.screen[i:i + len(wanted)] == wanted for i in range(len(self.screen))):
            part = self._read(deadline)
            assert part, f"{wanted} is not shown ({'the end' if part == b'' else 'nothing more'}): {self.screen}"
            self.raw += part
        self.seen = len(self.text)
        return self

    def opened(self):
        """Waits for the line that the client begins with."""
        return self.until(" · mode ").until("\n")

    def ready(self, typed=""):
        """Waits until what was said is above the line, nothing runs and a message can be typed; `typed` is the line's present text."""
        deadline = time.monotonic() + SOON
        while b"\n" not in self.raw[self.said:] or not ((lines := self.screen) and lines[-1] == f"> {typed}".rstrip() and not any("Ctrl-C stops" in line for line in lines)):
            part = self._read(deadline)
            assert part, f"it is not ready: {self.screen}"
            self.raw += part
        self.seen = len(self.text)
        return self

    def ready_for(self, typed):
        """Waits until the edited line ends with `typed`."""
        deadline = time.monotonic() + SOON
        while not ((lines := self.screen) and lines[-1].endswith(typed)):
            part = self._read(deadline)
            assert part, f"{typed!r} is not in the line: {self.screen}"
            self.raw += part
        return self

    def type(self, keys):
        keys = keys.encode() if isinstance(keys, str) else keys
        while keys:
            keys = keys[os.write(self.fd, keys):]
            while (part := self._read(0)):
                self.raw += part
        return self

    def unread(self):
        """How many bytes of what was typed the program has not read."""
        terminal = fcntl.ioctl(self.fd, TIOCGPTPEER, os.O_RDONLY | os.O_NOCTTY)
        try:
            return struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)))[0]
        finally:
            os.close(terminal)

    def resize(self, columns, rows):
        while (part := self._read(0)):
            self.raw += part
        self.columns, self.rows = columns, rows
        self.resized.append((len(self.raw), (rows, columns)))
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        return self

    def answer(self, keys):
        """Presses keys after a pause, as a person who has read the question."""
        time.sleep(QUIET)  # the stimulus, not a synchronization
        return self.type(keys)

    def answer_line(self, line):
        return self.answer(line + "\r")

    def quiet(self, seconds):
        """The output within this time."""
        written = b""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if part := self._read(deadline):
                written += part
        self.raw += written
        return written

    def say(self, line):
        self.said = len(self.raw)
        return self.type(line + "\r")

    def paste(self, text):
        return self.type(PASTE_BEGIN + text.encode() + PASTE_END)

    def end(self):
        """Waits for the command's end. Returns the exit status, or the negative signal number. The terminal must echo again."""
        deadline = time.monotonic() + SOON
        while part := self._read(deadline):
            self.raw += part
        assert part == b"", f"it does not end: {self.text[self.seen:]!r}"
        usual = termios.ECHO | termios.ICANON
        assert termios.tcgetattr(self.fd)[3] & usual == usual, "the terminal is not as it was"
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return self.status

    def kill(self):
        if self.status is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
            os.close(self.fd)
            self.status = -9
