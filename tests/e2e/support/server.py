"""Starts and stops the real binary, and checks what it leaves on disk."""
import base64
import json
import os
import pathlib
import re
import select
import signal
import stat
import subprocess
import time

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap

from . import schemas
from .client import Client
from .timing import SLACK, SOON

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = pathlib.Path(os.environ.get("REPRISE_BIN", ROOT / "build/release/reprise"))
# Checks the files that a server under test has left; a sanitizer would only slow that down.
CHECK_BINARY = pathlib.Path(os.environ.get("REPRISE_CHECK_BIN", BINARY))
# The provider's key in the server's environment. It must not turn up anywhere.
API_KEY = "sk-canary-6f1d0b7c9e"


def sandbox_works():
    """Whether bubblewrap works on this machine; otherwise the server runs without it."""
    try:
        return subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"], stderr=subprocess.DEVNULL,
                              check=False).returncode == 0
    except OSError:
        return False


def without_note(output):
    """A command's output without its last line about a missing sandbox."""
    at = output.find("(no sandbox on this machine: ")
    if at < 0:
        return output
    assert "\n" not in output[at:], "the note is one line"
    return output[:at].replace("(no output)\n", "(no output)")


HIDE = 'for program in /usr/bin/bwrap /bin/bwrap /usr/local/bin/bwrap; do [ ! -e $program ] || mount --bind /dev/null $program || exit 1; done; exec "$@"'


def without_bubblewrap():
    """The prefix that hides bubblewrap from a command; None if this machine does not allow that."""
    for unshare in (["unshare", "-m"], ["unshare", "-rm"]):
        wrapper = [*unshare, "sh", "-c", HIDE, "sh"]
        try:
            if subprocess.run([*wrapper, "test", "!", "-x", "/usr/bin/bwrap"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return wrapper
        except OSError:
            pass
    return None


def reprise(home, *arguments, stdin=b"", **environment):
    """Runs a command in a home's folder. Returns its status, output and messages."""
    done = subprocess.run([str(BINARY), *map(str, arguments)], input=stdin, cwd=home.path, env=home.environment(**environment), capture_output=True,
                          timeout=SOON, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Home:
    """The folders of one user. Servers may be started in them repeatedly."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.data = self.path / "data"
        self.workspace = self.path / "workspace"
        self.config = self.path / "config"
        self.state = self.path / "state"
        self.temp = self.path / "tmp"
        self.user = self.path / "home"
        for folder in (self.workspace, self.temp, self.user):
            folder.mkdir(parents=True, exist_ok=True)
        self.keys = self.config / "reprise" / "keys.jwks"
        self.killed = False  # with kill -9, at least once
        self.servers = 0  # that were started here

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG") or k.endswith("SAN_OPTIONS")}
        return {**kept, "HOME": str(self.user), "XDG_CONFIG_HOME": str(self.config), "XDG_STATE_HOME": str(self.state),
                "TMPDIR": str(self.temp), "TEST_API_KEY": API_KEY,
                "REPRISE_LOCAL_PORTS": "0", **more}  # not asked, whatever listens on this machine

    def trust(self, *arguments, cwd=None, environment=None):
        """Runs `reprise trust`, as a person who has looked at the file."""
        done = subprocess.run([str(BINARY), "trust", *map(str, arguments)], env=self.environment(**(environment or {})), cwd=cwd or self.path,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10 * SLACK, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def checkpoint_file(self, chat, interaction):
        return self.data / chat / "interactions" / f"{interaction}.json"

    def checkpoint(self, chat, interaction):
        return open_sealed(self.checkpoint_file(chat, interaction), self.keys)

    def checkpoints(self, chat):
        return sorted((self.data / chat / "interactions").glob("*.json"))

    def own_files(self):
        """Everything below the server's own folders."""
        for folder in (self.data, self.state, self.temp, self.config):
            yield from (p for p in folder.rglob("*"))

    def find_text(self, text):
        """Files of the server that contain this text, plain or in base64."""
        needles = [text.encode()]
        for shift in range(3):  # base64 looks different at each of the three alignments
            coded = base64.b64encode(b"\0" * shift + text.encode())
            needles += [coded[4 if shift else 0:-4], coded[4 if shift else 0:-4].replace(b"+", b"-").replace(b"/", b"_")]
        found = []
        for path in self.own_files():
            if path.is_file():
                content = path.read_bytes()
                found += [str(path) for needle in needles if needle in content]
        return found


def open_with_jose(path, keys):
    """Opens a checkpoint with an independent program: Debian's `jose`."""
    done = subprocess.run(["jose", "jwe", "dec", "-i", str(path), "-k", str(keys)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, f"jose cannot open {path}: {done.stderr.decode()} {path.read_bytes()[:300]!r}"
    return json.loads(done.stdout)


def unbase64(text):
    return base64.urlsafe_b64decode(text + "==")


def open_sealed(path, keys):
    """The same with Python's `cryptography` (RFC 7516, section 5.2), because every test opens its server's files, and a process for each takes too long."""
    sealed, known = json.loads(path.read_text()), json.loads(keys.read_text())
    header = json.loads(unbase64(sealed["protected"]))
    assert (header["alg"], header["enc"]) == ("A256KW", "A256GCM") and "zip" not in header and "crit" not in header, header
    for key in known.get("keys", [known]):
        try:
            content_key = aes_key_unwrap(unbase64(key["k"]), unbase64(sealed["encrypted_key"]))
        except InvalidUnwrap:
            continue
        more = "." + sealed["aad"] if "aad" in sealed else ""
        return json.loads(AESGCM(content_key).decrypt(unbase64(sealed["iv"]), unbase64(sealed["ciphertext"]) + unbase64(sealed["tag"]),
                                                      (sealed["protected"] + more).encode()))
    raise AssertionError(f"no key of {keys} opens {path}: {path.read_bytes()[:300]!r}")


class Server:
    def __init__(self, home, provider=None, config=None, arguments=(), environment=None, plain=False, token=None, trust=False, wrapper=(), binary=BINARY):
        self.home = home
        self.home.servers += 1
        self.plain = plain
        self.stopped = False
        self.closed = False
        self.check_files = True  # turned off by tests that damage files
        self.check_records = True  # turned off by tests with records made elsewhere
        file = home.path / "server.json"
        file.write_text(config if isinstance(config, str) else self._settings(provider, config or {}))
        file.chmod(0o600)
        self.arguments = [*wrapper, str(binary), "serve", *([] if "--port" in arguments else ["--port", "0"]), "--data-dir", str(home.data),
                          *([] if "--workspace" in arguments else ["--workspace", str(home.workspace)]), "--config", str(file), *(["--plain"] if plain else []), *map(str, arguments)]
        if trust:  # files of the workspace that the configuration names
            home.trust(file, "--workspace", home.workspace, *arguments, environment=environment)
        self.log_path = home.path / "stderr.log"
        started = time.monotonic()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, umask=0,
                                            cwd=home.path, env=home.environment(**(environment or {})))
        line = self._first_line()
        self.start_seconds = time.monotonic() - started
        match = re.fullmatch(r"reprise listening on http://(127\.0\.0\.1|\[::1\]|localhost|[0-9.]+):(\d+)\n", line)
        assert match, f"the first line on stdout is {line!r}; log: {self.log()[-2000:]}"
        self.port = int(match.group(2))
        self.client = Client(self.port, token)

    @staticmethod
    def _settings(provider, more):
        # No retries: tests of failures want the first one, and tests of retries set a number.
        settings = {"disconnect_grace_s": 0.2, "max_retries": 0, **more}
        if provider:
            settings.setdefault("providers", {
                "test": {"type": "openai", "base_url": provider.url, "api_key": "${TEST_API_KEY}"}})
            settings.setdefault("model", "test/scripted")
        return json.dumps(settings)

    def _first_line(self):
        line = b""
        deadline = time.monotonic() + SOON
        while not line.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"the server says nothing; log: {self.log()[-2000:]}"
            byte = os.read(self.process.stdout.fileno(), 1)
            if not byte:
                self.process.wait(SOON)
                self.stopped = True
                raise AssertionError(f"the server ended with {self.process.returncode}; log: {self.log()[-2000:]}")
            line += byte
        return line.decode()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def memory_kb(self, field="VmRSS"):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise AssertionError("no " + field)

    def peak_memory_kb(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
        raise AssertionError("no VmHWM")

    def stop(self, signal_number=signal.SIGTERM):
        """Signals the server to end and checks that it does so cleanly. Returns the seconds taken."""
        if self.stopped:
            return 0.0
        self.stopped = True
        started = time.monotonic()
        self.process.send_signal(signal_number)
        try:
            self.process.wait(5 * SLACK)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"does not end when told to; log: {self.log()[-2000:]}") from None
        seconds = time.monotonic() - started
        more = self.process.stdout.read()
        self.process.stdout.close()
        assert self.process.returncode == 0, f"exit status {self.process.returncode}; log: {self.log()[-3000:]}"
        assert more == b"", f"more than one line on stdout: {more!r}"
        return seconds

    def kill(self):
        """kill -9"""
        self.stopped = self.home.killed = True
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def _same_agent(self):
        """What makes `reprise replay` compare with the requests of today; nothing if the agent may have changed since."""
        if self.home.servers > 1 or not os.environ.get("REPRISE_E2E_DRIFT"):
            return []
        flags = [each for flag in ("--model", "--prompt-dir", "--workspace", "--config") if flag in self.arguments for each in (flag, self.arguments[self.arguments.index(flag) + 1])]
        return ["--input", "current", *flags]

    def close(self):
        """Stops the server if it still runs, and checks what it leaves."""
        if self.closed:
            return
        self.closed = True
        if not self.stopped and self.process.poll() is not None:
            self.stopped = True
            raise AssertionError(f"the server died: {self.process.returncode}; log: {self.log()[-3000:]}")
        self.stop()
        log = self.log()
        assert "Sanitizer" not in log and "runtime error:" not in log, log[-6000:]
        assert API_KEY not in log
        if self.check_files:
            check_disk(self.home, self.plain)
            if self.check_records:
                check_replay(self.home, self.plain, self._same_agent())


def check_replay(home, plain=False, same_agent=()):
    """Replays every recorded chat: on its record the agent must emit the same events again, and with `same_agent` send the same requests."""
    for chat in sorted(file.parent.name for file in home.data.glob("*/chat.json")):
        done = subprocess.run([str(CHECK_BINARY), "replay", chat, "--data-dir", str(home.data), *(["--plain"] if plain else []), *same_agent], env=home.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10 * SLACK, check=False)
        assert done.returncode == 0, f"replay of {chat}: {done.stdout[-3000:]} {done.stderr[-2000:]}"


def check_disk(home, plain=False):
    """Checks modes, sealing and schemas of everything that a server has left."""
    for path in home.own_files():
        mode = stat.S_IMODE(path.lstat().st_mode)
        if path == home.config:
            continue  # $XDG_CONFIG_HOME itself is not the server's
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path} has mode {mode:o}"
        # Files are written under a temporary name. A killed server leaves it, and the next use of the chat removes it.
        assert ".tmp" not in path.name or home.killed, f"{path} was left behind"
    assert not home.find_text(API_KEY)
    for file in home.data.glob("*/files/file_*.json"):
        record = json.loads(file.read_text()) if plain else open_sealed(file, home.keys)
        schemas.check("file_record", record)
        if not plain:
            header = json.loads(unbase64(json.loads(file.read_text())["protected"]))
            schemas.check("jwe_protected", header)
        assert (record["id"], record["chat_id"]) == (file.stem, file.parts[-3])
    for file in home.data.glob("*/blobs/*.json"):
        record = json.loads(file.read_text()) if plain else open_sealed(file, home.keys)
        schemas.check("blob", record)
        assert record["chat_id"] == file.parts[-3]
        if not plain:
            header = json.loads(unbase64(json.loads(file.read_text())["protected"]))
            schemas.check("jwe_protected", header)
            assert header["blob"] == file.stem
    for file in home.data.glob("*/interactions/int_*.json"):
        assert file.name != "chat.json"
        if plain:
            stored = json.loads(file.read_text())
        else:
            sealed = json.loads(file.read_text())
            schemas.check("jwe", sealed)
            header = json.loads(unbase64(sealed["protected"]))
            schemas.check("jwe_protected", header)
            stored = open_sealed(file, home.keys)
            assert (header["chat_id"], header["interaction_id"]) == (stored["chat_id"], stored["id"])
            assert header["parent_id"] == stored["parent_id"]
        schemas.check("interaction", stored)
        assert stored["id"] == file.stem and stored["chat_id"] == file.parts[-3]
        assert stored["status"] in ("COMPLETED", "FAILED", "CANCELLED")
        assert stored["final_agent_state"] is not None
        numbers = [e["seq"] for e in stored["agent_events"]]
        assert numbers == sorted(set(numbers))


def processes(marker):
    """Ids of running processes with this text in their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes() and "Z" not in (entry / "stat").read_text().rsplit(")", 1)[1][:3]:
                    found.append(int(entry.name))
            except OSError:
                pass
    return found
