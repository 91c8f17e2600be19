"""A proxy between a page and its server that can be cut or fall silent."""
import socket
import threading


class Wire:
    """Forwards connections to the port `target`. `port` is its own."""

    def __init__(self):
        self.target = None
        self.silent = False  # new connections transfer nothing
        self.pairs = []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            pair = Pair(near, far)
            pair.silent = self.silent
            with self.lock:
                self.pairs = [each for each in self.pairs if not each.closed] + [pair]
            pair.start()

    def cut(self):
        """Breaks every connection."""
        with self.lock:
            for pair in self.pairs:
                pair.close()

    def hush(self):
        """Keeps every present connection open but silent, as after a laptop has slept."""
        with self.lock:
            for pair in self.pairs:
                pair.silent = True

    def close(self):
        self.listener.close()
        self.cut()


class Pair:
    def __init__(self, near, far):
        self.near, self.far = near, far
        self.closed = False
        self.silent = False

    def start(self):
        for source, sink in ((self.near, self.far), (self.far, self.near)):
            threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source, sink):
        try:
            while data := source.recv(65536):
                if not self.silent:
                    sink.sendall(data)
        except OSError:
            pass
        if not self.silent:
            self.close()

    def close(self):
        self.closed = True
        for one in (self.near, self.far):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()
