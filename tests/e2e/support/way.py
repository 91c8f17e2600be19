"""The way from a server to its database, which can be cut, fall silent, or lose the answer to one statement."""
import os
import pathlib
import re
import socket
import tempfile
import threading

from .postgres import NOBODY


class Way:
    """A socket that leads to PostgreSQL's. `url` is for the server whose way this is."""

    def __init__(self, postgres, database):
        self.target = f"{postgres.folder}/.s.PGSQL.5432"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="way"))
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        self.url = postgres.url(re.search(r"@/(\w+)", database).group(1), self.folder)
        self.lock = threading.Lock()
        self.open = threading.Event()  # what is not passes nothing on, and keeps it
        self.open.set()
        self.is_cut = False
        self.then_cut = False
        self.swallow = None  # bytes of a statement whose answer is lost, with the connection
        self.swallowed = threading.Event()
        self.rewrites = []  # (old, new): statements arrive with these words in place of those
        self.rewritten = threading.Event()
        self.pairs = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{self.folder}/.s.PGSQL.5432")
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    # --- what a test does with it
    def stall(self):
        """Nothing passes any more, and nobody is told: what is sent waits for `heal`."""
        self.open.clear()

    def cut(self):
        """Connections end, and no new one is made until `heal`."""
        with self.lock:
            self.is_cut = True
        self.drop()

    def drop(self):
        """Connections that are there end."""
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            self._close(*pair)

    def heal(self):
        with self.lock:
            self.is_cut = False
        self.open.set()

    def lose_answer(self, statement, then_cut=False):
        """The next statement that holds these bytes arrives and is answered, and the answer is lost with its connection. `then_cut`: and there is no other
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
                with self.lock:
                    if self.swallow is not None and self.swallow in data:
                        self.swallow = None
                        state["lost"] = True
                far.sendall(self._rewrite(data, state) if self.rewrites else data)
                state["begun"] = True
        except OSError:
            pass
        self._close(near, far)

    def _rewrite(self, data, state):
        """Statements come in messages of type P: a name, the text, types of parameters."""
        buffer = state.get("rest", b"") + data
        out = b""
        if "begun" not in state:  # the first message of a connection has no type
            size = int.from_bytes(buffer[:4], "big")
            if len(buffer) < size:
                state["rest"] = buffer
                return out
            out, buffer = buffer[:size], buffer[size:]
        while len(buffer) >= 5 and len(buffer) >= 1 + (size := int.from_bytes(buffer[1:5], "big")):
            message, buffer = buffer[:1 + size], buffer[1 + size:]
            for old, new in self.rewrites if message[:1] == b"P" else []:
                if old in message:
                    body = message[5:].replace(old, new)
                    message = b"P" + (len(body) + 4).to_bytes(4, "big") + body
                    self.rewritten.set()
            out += message
        state["rest"] = buffer
        return out

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
