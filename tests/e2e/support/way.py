"""A proxy between a server and its database that can be cut, fall silent, or lose the answer to one statement."""
import os
import pathlib
import re
import socket
import tempfile
import threading

from .postgres import NOBODY


class Way:
    """A socket that leads to PostgreSQL's. `url` is for the server that uses it."""

    def __init__(self, postgres, database):
        self.target = f"{postgres.folder}/.s.PGSQL.5432"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="way"))
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        self.url = postgres.url(re.search(r"@/(\w+)", database).group(1), self.folder)
        self.lock = threading.Lock()
        self.open = threading.Event()  # while it is cleared, data is held back
        self.open.set()
        self.is_cut = False
        self.then_cut = False
        self.swallow = None  # bytes of a statement whose answer is lost together with the connection
        self.swallowed = threading.Event()
        self.rewrites = []  # (old, new): replacements in statements
        self.rewritten = threading.Event()
        self.pairs = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{self.folder}/.s.PGSQL.5432")
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    # --- faults, for tests
    def stall(self):
        """Holds all data back silently until `heal`."""
        self.open.clear()

    def cut(self):
        """Closes the connections, and refuses new ones until `heal`."""
        with self.lock:
            self.is_cut = True
        self.drop()

    def drop(self):
        """Closes the present connections."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            self._close(*pair)

    def heal(self):
        with self.lock:
            self.is_cut = False
        self.open.set()

    def lose_answer(self, statement, then_cut=False):
        """The next statement that contains these bytes is executed, but its answer is lost together with the connection. With `then_cut` there is no new
        connection until `heal`."""
        self.swallowed.clear()
        self.then_cut = then_cut
        self.swallow = statement

    def close(self):
        self.listener.close()
        self.drop()
        self.heal()
        for each in self.folder.iterdir():
            each.unlink()
        self.folder.rmdir()

    # --- the threads
    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                with self.lock:
                    if self.is_cut:
                        raise OSError
                far.connect(self.target)
            except OSError:
                self._close(near, far)
                continue
            with self.lock:
                self.pairs.append((near, far))
            state = {"lost": False}
            threading.Thread(target=self._to_database, args=(near, far, state), daemon=True).start()
            threading.Thread(target=self._to_server, args=(near, far, state), daemon=True).start()

    def _to_database(self, near, far, state):
        try:
            while data := near.recv(1 << 20):
                self.open.wait()
                far.sendall(b"".join(self._arrives(message, state) for message in self._messages(data, state)))
        except OSError:
            pass
        self._close(near, far)

    @staticmethod
    def _messages(data, state):
        """Splits data into messages. Only the first message of a connection has no type."""
        buffer = state.get("rest", b"") + data
        messages = []
        while True:
            head = 1 if "begun" in state else 0
            if len(buffer) < head + 4 or len(buffer) < (size := head + int.from_bytes(buffer[head:head + 4], "big")):
                break
            messages.append(buffer[:size])
            buffer = buffer[size:]
            state["begun"] = True
        state["rest"] = buffer
        return messages

    def _arrives(self, message, state):
        """A P message defines a statement: its name, text and parameter types. A B message binds one: portal name, statement name, values."""
        texts = state.setdefault("texts", {})
        name = text = None
        if message[:1] == b"P":
            name, text = message[5:].split(b"\0", 2)[:2]
            texts[name] = text
        elif message[:1] == b"B":
            name = message[5:].split(b"\0", 2)[1]
            text = texts.get(name, b"")
        if text is None:
            return message
        with self.lock:
            if self.swallow is not None and self.swallow in text and message[:1] == b"B":
                self.swallow = None
                state["lost"] = True
        changed = text
        for old, new in self.rewrites:
            changed = changed.replace(old, new)
        if changed == text:
            return message
        self.rewritten.set()
        typed = lambda kind, body: kind + (len(body) + 4).to_bytes(4, "big") + body
        if message[:1] == b"P":
            return typed(b"P", message[5:].replace(text, changed, 1))
        if not name:
            return message  # the text was changed when it was defined
        # It was prepared before the change: send the changed text first, as an unnamed statement.
        return typed(b"P", b"\0" + changed + b"\0\0\0") + typed(b"B", message[5:].replace(name + b"\0", b"\0", 1))

    def _to_server(self, near, far, state):
        try:
            while data := far.recv(1 << 20):
                self.open.wait()
                if state["lost"]:
                    if self.then_cut:
                        self.cut()
                    self.swallowed.set()
                    break
                near.sendall(data)
        except OSError:
            pass
        self._close(near, far)

    @staticmethod
    def _close(*sockets):
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
