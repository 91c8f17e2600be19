"""Keys: rotation, rewrapping of files, passphrases. No key is lost when a command is killed at any moment."""
import base64
import hashlib
import json
import os
import pty
import random
import re
import select
import shutil
import signal
import subprocess
import termios
import time

import pytest
from support import schemas
from support.provider import call, text, tools
from support.server import BINARY, open_sealed, open_with_jose, unbase64
from support.timing import SLACK, SOON

PASSPHRASE, OTHER = "correct horse battery", "wrong horse battery!"


class Keys:
    """One user's home, and the commands run in it."""

    def __init__(self, home, make_server, provider):
        self.home, self.make_server, self.provider = home, make_server, provider

    def command(self, *arguments):
        return [str(BINARY), *map(str, arguments)]

    def start(self, *arguments, environment=None, **options):
        # A session of its own, so that there is no terminal to ask at.
        return subprocess.Popen(self.command(*arguments), cwd=self.home.path, env=self.home.environment(**(environment or {})), text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **options)

    def run(self, *arguments, status=0, environment=None, **options):
        process = self.start(*arguments, environment=environment, **options)
        out, err = process.communicate(timeout=4 * SOON)
        assert process.returncode == status, (arguments, process.returncode, out, err)
        process.out, process.err = out, err
        return process

    def rewrap(self, *arguments, **options):
        return json.loads(self.run("keys", *arguments, "--json", "--data-dir", self.home.data, **options).out)

    def converse(self, server, turns, chat="c"):
        for _ in range(turns):
            self.provider.plan(text("an answer"))
            server.client.turn(chat, "a question")

    def fill(self, chats=2, turns=2):
        server = self.make_server(self.provider, home=self.home)
        for number in range(chats):
            self.converse(server, turns, f"chat{number}")
        server.close()

    def server(self, **options):
        return self.make_server(self.provider, home=self.home, **options)

    def sealed(self):
        return {p: json.loads(p.read_text()) for p in sorted(self.home.data.rglob("*.json")) if not p.name.startswith(".")}

    def kids(self):
        return [k["kid"] for k in json.loads(self.home.keys.read_text())["keys"]]

    def secret(self, name, content):
        file = self.home.path / name
        file.write_text(content + "\n")
        file.chmod(0o600)
        return file

    def protect(self, passphrase=PASSPHRASE):
        """Sets a passphrase; returns the environment that opens the key file with it."""
        file = self.secret("passphrase", passphrase)
        self.run("keys", "passphrase", "--new-passphrase-file", file)
        return {"REPRISE_PASSPHRASE_FILE": str(file)}


@pytest.fixture
def keys(make_home, make_server, provider):
    return Keys(make_home(), make_server, provider)


def test_a_rotated_key_seals_from_the_next_start_and_old_files_stay_readable(keys):
    server = keys.server()
    keys.converse(server, 1)
    old = keys.kids()
    listed = json.loads(keys.run("keys", "rotate", "--json").out)
    assert [k["current"] for k in listed["keys"]] == [True, False] and listed["keys"][1]["kid"] == old[0]
    schemas.check("keys", json.loads(keys.home.keys.read_text()))
    assert keys.home.keys.stat().st_mode & 0o777 == 0o600
    keys.converse(server, 1)  # the running server does not know of the new key, and loses nothing
    server.close()
    server = keys.server()
    keys.converse(server, 1)
    kids = [json.loads(p.read_text())["header"]["kid"] for p in keys.home.checkpoints("c")]
    assert kids == [old[0], old[0], keys.kids()[0]]
    assert len(server.client.history("c")["interactions"]) == 3
    for path in keys.home.checkpoints("c"):
        open_sealed(path, keys.home.keys)


def test_files_are_not_rewrapped_under_a_running_server(keys):
    server = keys.server()
    keys.converse(server, 1)
    before = keys.home.keys.read_bytes()
    for command in (["rotate", "--rewrap"], ["rewrap"]):
        done = keys.run("keys", *command, "--data-dir", keys.home.data, status=1)
        assert f"process {server.process.pid}" in done.err and "stop it first" in done.err
    assert keys.home.keys.read_bytes() == before


def test_rewrapping_changes_only_the_wrapping(keys):
    keys.fill()
    old, before = keys.kids()[0], keys.sealed()
    report = keys.rewrap("rotate", "--rewrap")
    assert (report["rewrapped"], report["already_current"], report["left"], report["old_keys_removed"]) == (len(before), 0, [], False)
    new, after = keys.kids()[0], keys.sealed()
    assert keys.kids() == [new, old] and new != old
    assert after.keys() == before.keys()
    for path, sealed in after.items():
        schemas.check("jwe", sealed)
        assert sealed["header"] == {"kid": new} and sealed["encrypted_key"] != before[path]["encrypted_key"]
        for member in ("protected", "iv", "ciphertext", "tag"):
            assert sealed[member] == before[path][member]
        assert path.stat().st_mode & 0o777 == 0o600
    report = keys.rewrap("rewrap", "--remove-old")
    assert (report["rewrapped"], report["already_current"], report["old_keys_removed"]) == (0, len(before), True)
    assert keys.kids() == [new]
    server = keys.server()
    assert len(server.client.history("chat1", branches="all")["interactions"]) == 2
    keys.provider.plan(text("edited"))
    server.client.edit("chat1", "int_001", "again")


def test_the_old_key_stays_while_a_file_needs_it(keys):
    keys.fill()
    damaged = keys.home.checkpoint_file("chat0", "int_001")
    damaged.write_text(damaged.read_text()[:-40])
    before = damaged.read_bytes()
    done = keys.run("keys", "rotate", "--rewrap", "--remove-old", "--json", "--data-dir", keys.home.data, status=1)
    report = json.loads(done.out)
    assert [l["file"] for l in report["left"]] == [str(damaged)] and not report["old_keys_removed"]
    assert len(keys.kids()) == 2 and damaged.read_bytes() == before
    assert str(damaged) in done.err and "the old keys are kept" in done.err


def test_a_journal_that_waits_is_wrapped_with_the_rest(keys):
    server = keys.server()
    keys.provider.plan(tools(call("write_file", {"path": "out.txt", "content": "text"})))
    asked = server.client.start("c", "write").until("approval_required")
    server.kill()
    keys.rewrap("rotate", "--rewrap", "--remove-old")
    assert len(keys.kids()) == 1
    server = keys.server()
    keys.provider.plan(text("written"))
    stream = server.client.attach("c", "int_001", after=0, gapless=True)
    server.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.finish()
    assert (keys.home.workspace / "out.txt").read_text() == "text"


@pytest.mark.limit(120)
def test_wrapping_that_is_killed_is_finished_by_the_next(keys, figure):
    keys.fill(chats=1, turns=4)
    for number in range(30):  # more files to rewrap; that they are not valid under these names does not matter
        shutil.copytree(keys.home.data / "chat0", keys.home.data / f"copy{number}")
    before = keys.sealed()
    started = time.monotonic()
    keys.rewrap("rotate", "--rewrap")
    whole = time.monotonic() - started
    keys.run("keys", "rotate")
    old, new = keys.kids()[1], keys.kids()[0]
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance, kills, between = random.Random(seed), 0, 0
    while kills < 25:
        started = keys.start("keys", "rewrap", "--data-dir", keys.home.data)
        try:
            started.wait(chance.uniform(0, whole))
        except subprocess.TimeoutExpired:
            started.kill()
        started.communicate()
        kills += 1
        now = keys.sealed()
        assert now.keys() == before.keys()
        kids = {sealed["header"]["kid"] for sealed in now.values()}
        assert kids <= {old, new}
        between += len(kids) == 2
        for path, sealed in now.items():
            assert all(sealed[m] == before[path][m] for m in ("protected", "iv", "ciphertext", "tag"))
        if kids == {new}:  # all done: start over
            keys.run("keys", "rotate")
            old, new = new, keys.kids()[0]
    keys.rewrap("rewrap", "--remove-old")
    assert keys.kids() == [new]
    for path in keys.home.checkpoints("chat0"):
        open_sealed(path, keys.home.keys)
    server = keys.server()
    server.check_files = False  # the copies count as damage, and temporary files stay until their chat is written again
    assert len(server.client.history("chat0")["interactions"]) == 4
    figure(f"rewrap: {kills} kills, {between} of them between the first file and the last")
    assert between > 0


def test_readers_do_not_notice_the_rewrapping(keys):
    keys.fill(chats=3, turns=4)
    first = keys.run("cat", "chat0", "--data-dir", keys.home.data).out
    read = 0
    while read < 20:
        keys.run("keys", "rotate")  # before the reading starts, because a process that has loaded the keys must restart
        wrapping = keys.start("keys", "rewrap", "--data-dir", keys.home.data)
        while wrapping.poll() is None:
            assert keys.run("cat", "chat0", "--data-dir", keys.home.data).out == first
            read += 1
        assert wrapping.returncode == 0, wrapping.communicate()


def test_of_rotations_at_once_none_loses_a_key(keys):
    keys.run("keys", "init")
    first = keys.kids()
    started = [keys.start("keys", "rotate") for _ in range(8)]
    for process in started:
        process.communicate(timeout=SOON)
        assert process.returncode == 0
    assert len(set(keys.kids())) == 9 and keys.kids()[-1] == first[0]


@pytest.mark.limit(120)
def test_a_key_file_survives_kill_at_any_moment(keys):
    keys.run("keys", "init")
    known = set(keys.kids())
    chance = random.Random(7)
    for _ in range(40):
        process = keys.start("keys", "rotate")
        try:
            process.wait(chance.uniform(0, 0.03 * SLACK))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        now = set(keys.kids())
        assert known <= now and len(now) <= len(known) + 1
        known = now
    keys.run("keys", "rotate")
    assert [p.name for p in keys.home.keys.parent.iterdir()] == ["keys.jwks"], "the next change removes leftover files"


def derived_key(sealed, passphrase):
    """Derives the key of the key file, as any other program could."""
    header = json.loads(unbase64(sealed["protected"]))
    schemas.check("protected_keys", header)
    return hashlib.scrypt(passphrase.encode(), salt=unbase64(header["salt"]), n=header["n"], r=header["r"], p=header["p"], maxmem=1 << 28, dklen=32)


def open_key_file(keys, passphrase, path):
    """Decrypts the key file into `path` with hashlib and Debian's jose."""
    sealed = json.loads(keys.home.keys.read_text())
    schemas.check("jwe", sealed)
    secret = base64.urlsafe_b64encode(derived_key(sealed, passphrase)).decode().rstrip("=")
    (path / "derived.jwk").write_text(json.dumps({"kty": "oct", "alg": "A256KW", "k": secret}))
    opened = open_with_jose(keys.home.keys, path / "derived.jwk")
    schemas.check("keys", opened)
    (path / "opened.jwks").write_text(json.dumps(opened))
    return path / "opened.jwks"


def test_a_passphrase_protects_the_keys_and_jose_opens_them_with_it(keys, tmp_path):
    keys.fill(1, 1)
    plain = json.loads(keys.home.keys.read_text())
    opened = keys.protect()
    assert keys.home.keys.stat().st_mode & 0o777 == 0o600
    assert all(key["k"] not in keys.home.keys.read_text() for key in plain["keys"])
    keys.run("keys", "rotate", environment=opened)
    file = open_key_file(keys, PASSPHRASE, tmp_path)
    assert json.loads(file.read_text())["keys"][1:] == plain["keys"]

    server = keys.server(environment=opened)
    server.check_files = False
    keys.converse(server, 1, "chat0")
    assert len(server.client.history("chat0")["interactions"]) == 2
    for path in keys.home.checkpoints("chat0"):
        open_with_jose(path, file)
    assert server.memory_kb() < 24_000 * SLACK, "scrypt's memory is freed"
    for command in (["ls"], ["cat", "chat0/int_001"], ["show", "chat0"]):
        assert "question" in keys.run(*command, "--data-dir", keys.home.data, environment=opened).out
    listed = json.loads(keys.run("keys", "list", "--json", environment=opened).out)
    assert listed["passphrase"] is True and len(listed["keys"]) == 2
    server.close()

    report = keys.rewrap("rewrap", "--remove-old", environment=opened)
    assert report["old_keys_removed"]
    keys.run("keys", "passphrase", "--remove", environment=opened)
    assert len(json.loads(keys.home.keys.read_text())["keys"]) == 1
    keys.server().client.history("chat0")


def test_without_or_with_a_wrong_passphrase_nothing_opens(keys):
    keys.fill(1, 1)
    opened = keys.protect()
    before = keys.home.keys.read_bytes()
    needed = keys.run("keys", "list", status=1)
    assert "--passphrase-file" in needed.err and needed.out == ""
    wrong = {"REPRISE_PASSPHRASE_FILE": str(keys.secret("wrong", OTHER))}
    complaints = set()
    for command in (["keys", "list"], ["keys", "rotate"], ["keys", "passphrase", "--remove"], ["ls", "--data-dir", keys.home.data],
                    ["serve", "--port", "0", "--data-dir", keys.home.data]):
        complaints.add(keys.run(*command, status=1, environment=wrong).err)
    for near in (PASSPHRASE[:-1], PASSPHRASE + "x", PASSPHRASE.upper(), "x"):
        complaints.add(keys.run("keys", "list", status=1, environment={"REPRISE_PASSPHRASE_FILE": str(keys.secret("near", near))}).err)
    sealed = json.loads(keys.home.keys.read_text())
    sealed["tag"] = "A" * len(sealed["tag"])
    keys.home.keys.write_text(json.dumps(sealed))
    complaints.add(keys.run("keys", "list", status=1, environment=opened).err)  # a damaged file gets the same message
    keys.home.keys.write_bytes(before)
    assert complaints == {f"reprise: the passphrase does not open the key file ({keys.home.keys})\n"}
    keys.run("keys", "list", environment=opened)


def test_a_wrong_passphrase_takes_as_long_as_the_right_one(keys, figure):
    keys.run("keys", "init")
    opened = keys.protect()
    wrong = {"REPRISE_PASSPHRASE_FILE": str(keys.secret("wrong", OTHER))}

    def seconds(environment, status):
        times = []
        for _ in range(3):
            started = time.monotonic()
            keys.run("keys", "list", status=status, environment=environment)
            times.append(time.monotonic() - started)
        return min(times)

    right, refused = seconds(opened, 0), seconds(wrong, 1)
    figure(f"passphrase: opens in {right:.2f} s, refused in {refused:.2f} s")
    assert 0.5 < refused / right < 2


def test_weaker_parameters_are_refused_at_once(keys):
    keys.run("keys", "init")
    opened = keys.protect()
    sealed = json.loads(keys.home.keys.read_text())
    header = json.loads(unbase64(sealed["protected"]))
    for change in ({"n": 1024}, {"n": 1 << 30}, {"r": 1 << 20}, {"p": 1 << 20}, {"salt": "AAAA"}):
        sealed["protected"] = base64.urlsafe_b64encode(json.dumps({**header, **change}).encode()).decode().rstrip("=")
        keys.home.keys.write_text(json.dumps(sealed))
        assert "scrypt parameters" in keys.run("keys", "list", status=1, environment=opened).err


def test_where_a_passphrase_may_come_from(keys):
    keys.run("keys", "init")
    opened = keys.protect()
    read, write = os.pipe()
    os.write(write, PASSPHRASE.encode() + b"\r\nsecond line")
    os.close(write)
    keys.run("keys", "list", "--passphrase-file", f"/dev/fd/{read}", pass_fds=[read])
    os.close(read)
    file = keys.secret("loose", PASSPHRASE)
    file.chmod(0o640)
    assert "chmod 600" in keys.run("keys", "list", "--passphrase-file", file, status=1).err
    assert "is empty" in keys.run("keys", "list", "--passphrase-file", keys.secret("empty", ""), status=1).err
    keys.run("keys", "list", "--passphrase-file", keys.home.path / "none", status=1)
    assert "8 characters" in keys.run("keys", "passphrase", "--new-passphrase-file", keys.secret("short", "short"), status=1,
                                      environment=opened).err
    keys.run("keys", "passphrase", "--remove", "--new-passphrase-file", file, status=2)
    assert "is protected by a passphrase" in keys.run("doctor", "--data-dir", keys.home.data).out
    assert "holds 1 key, and only its owner can read it" in keys.run("doctor", "--data-dir", keys.home.data, environment=opened).out
    inside = keys.home.data / "passphrase"
    keys.home.data.mkdir(exist_ok=True)
    inside.write_text(PASSPHRASE)
    inside.chmod(0o600)
    assert "must not lie in the data folder" in keys.run("serve", "--port", "0", "--data-dir", keys.home.data, "--passphrase-file", inside, status=1).err


def test_a_missing_passphrase_is_not_blamed_on_the_key_file(keys):
    """The key file is named only in messages about a fault of its own."""
    keys.run("keys", "init")
    opened = keys.protect()
    loose = keys.secret("loose", PASSPHRASE)
    loose.chmod(0o644)
    for file, fault in ((keys.home.path / "none", "No such file"), (keys.secret("empty", ""), "is empty"), (loose, "chmod 600"), (keys.secret("long", "x" * 2000), "1024 bytes")):
        for command in (["list"], ["rotate"], ["passphrase", "--remove"]):
            told = keys.run("keys", *command, "--passphrase-file", file, status=1).err
            assert fault in told and str(keys.home.keys) not in told and told.count("\n") == 1, told
    terminal = Terminal(keys, "keys", "list")
    terminal.until(b"Passphrase of ")
    terminal.type(b"\x04")
    assert terminal.end() == 1 and b"reprise: no passphrase was given\r\n" in terminal.shown
    assert f"({keys.home.keys})" in keys.run("keys", "list", status=1).err
    keys.home.keys.chmod(0o644)
    assert f"({keys.home.keys})" in keys.run("keys", "list", status=1, environment=opened).err
    keys.home.keys.chmod(0o600)
    keys.home.keys.write_text("{}")
    assert f"({keys.home.keys})" in keys.run("keys", "list", status=1).err


@pytest.mark.parametrize("protected", [False, True])
def test_a_key_file_that_others_may_replace_is_warned_of(keys, protected):
    keys.run("keys", "init")
    environment = keys.protect() if protected else {}
    folder = keys.home.keys.parent

    def told():
        """Whether `doctor` warns, which needs no passphrase, and whether a start does."""
        finding, = (c for c in json.loads(keys.run("doctor", "--json", "--data-dir", keys.home.data).out)["checks"] if c["check"] == "key file")
        warns = f"other users may replace {keys.home.keys}" in finding["message"]
        assert finding["verdict"] == ("warn" if warns else "ok")
        server = keys.server(environment=environment)
        server.check_files = False  # the folder's mode is wrong on purpose
        server.close()
        logged = "other users may replace the key file" in server.log()
        server.log_path.unlink()
        return warns, logged

    for mode, open_to_others in ((0o700, False), (0o755, False), (0o770, True), (0o707, True), (0o1777, False), (0o700, False)):
        folder.chmod(mode)
        assert told() == (open_to_others, open_to_others), f"{mode:o}"
    if os.getuid() == 0:  # only root can change an owner
        os.chown(folder, 12345, 12345)
        assert told() == (True, True)
        os.chown(folder, 0, 0)


class Terminal:
    """A command with its own terminal."""

    def __init__(self, keys, *arguments):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests in the background inherit it as ignored
            os.chdir(keys.home.path)
            os.execve(str(BINARY), keys.command(*arguments), keys.home.environment())
        self.shown, self.seen = b"", 0

    def _read(self):
        ready, _, _ = select.select([self.fd], [], [], SOON)
        assert ready, f"nothing more on the terminal after {self.shown!r}"
        try:
            return os.read(self.fd, 4096)
        except OSError:  # the other end is closed
            return b""

    def until(self, words):
        """Waits for these words after those of earlier waits."""
        while (at := self.shown.find(words, self.seen)) < 0:
            part = self._read()
            assert part, f"the command ended; it showed {self.shown!r}"
            self.shown += part
        self.seen = at + len(words)

    def type(self, line):
        os.write(self.fd, line)

    def end(self):
        while part := self._read():
            self.shown += part
        status = os.waitpid(self.pid, 0)[1]
        assert termios.tcgetattr(self.fd)[3] & termios.ECHO, "echo is on again"
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


def test_a_passphrase_is_asked_for_at_the_terminal_without_echo(keys):
    keys.run("keys", "init")
    terminal = Terminal(keys, "keys", "passphrase")
    terminal.until(b"New passphrase (8 characters or more): ")
    terminal.type(PASSPHRASE.encode() + b"\n")
    terminal.until(b"The same again: ")
    terminal.type(PASSPHRASE.encode() + b"\n")
    assert terminal.end() == 0 and PASSPHRASE.encode() not in terminal.shown

    for typed, status in ((PASSPHRASE, 0), (OTHER, 1)):
        terminal = Terminal(keys, "keys", "list")
        terminal.until(b"Passphrase of ")
        terminal.type(typed.encode() + b"\n")
        assert terminal.end() == status and typed.encode() not in terminal.shown
    terminal = Terminal(keys, "keys", "passphrase")
    terminal.until(b"Passphrase of ")
    terminal.type(PASSPHRASE.encode() + b"\n")
    for first, second, problem in (("one passphrase", "another passphrase", b"differ"), ("short", None, b"at least 8"), ("one more", "one less", b"differ")):
        terminal.until(b"New passphrase (8 characters or more): ")
        terminal.type(first.encode() + b"\n")
        if second:
            terminal.until(b"The same again: ")
            terminal.type(second.encode() + b"\n")
        terminal.until(problem)
    assert terminal.end() == 1, "the third try was the last"


@pytest.mark.parametrize("typed, status", [(b"\x03", -signal.SIGINT), (b"\x04", 1)])
def test_a_question_at_the_terminal_can_be_left(keys, typed, status):
    keys.run("keys", "init")
    keys.protect()
    terminal = Terminal(keys, "keys", "list")
    terminal.until(b"Passphrase of ")
    terminal.type(typed)
    assert terminal.end() == status


def test_a_server_asks_at_its_terminal(keys):
    keys.run("keys", "init")
    keys.protect()
    serve = ("serve", "--port", "0", "--data-dir", keys.home.data, "--workspace", keys.home.workspace)
    terminal = Terminal(keys, *serve)
    terminal.until(b"Passphrase of ")
    terminal.type(PASSPHRASE.encode() + b"\n")
    terminal.until(b"reprise listening on ")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.end() == 0
    terminal = Terminal(keys, *serve)
    terminal.until(b"Passphrase of ")
    terminal.type(b"\x03")
    assert terminal.end() in (1, -signal.SIGINT)


@pytest.mark.parametrize("command", ["rotate", "rewrap", "passphrase"])
def test_help(keys, command):
    assert f"reprise keys {command}" in keys.run("keys", command, "--help").out


def test_no_command_that_holds_keys_dumps_core(keys):
    server = keys.server()
    assert core_limit(server.process.pid) == ("0", "0")
    server.close()
    fifo = keys.home.path / "fifo"
    os.mkfifo(fifo)
    keys.protect()
    waiting = keys.start("keys", "list", "--passphrase-file", fifo)
    with open(fifo, "w") as writer:  # returns when the command has opened the other end
        assert core_limit(waiting.pid) == ("0", "0")
        writer.write(PASSPHRASE + "\n")
    waiting.communicate(timeout=SOON)
    assert waiting.returncode == 0


def core_limit(pid):
    return re.search(r"Max core file size +(\S+) +(\S+)", open(f"/proc/{pid}/limits").read()).groups()


def count_in_memory(pid, needles):
    """How often each needle occurs in the writable memory of a process."""
    found = [0] * len(needles)
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, access = line.split()[:2]
            if not access.startswith("rw"):
                continue
            begin, end = (int(part, 16) for part in span.split("-"))
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except (OSError, OverflowError):
                continue
            found = [count + content.count(needle) for count, needle in zip(found, needles)]
    return found


@pytest.mark.skipif("SAN_OPTIONS" in "".join(os.environ), reason="sanitizers keep what is freed")
def test_a_server_holds_its_key_once_and_no_passphrase(keys, tmp_path):
    keys.run("keys", "init")
    key = json.loads(keys.home.keys.read_text())["keys"][0]["k"]
    server = keys.server(environment=keys.protect())
    server.check_files = False
    keys.converse(server, 2)
    derived = derived_key(json.loads(keys.home.keys.read_text()), PASSPHRASE)
    try:
        found = count_in_memory(server.process.pid, [unbase64(key), key.encode(), PASSPHRASE.encode(), derived])
    except PermissionError:
        pytest.skip("only root may look into a process that is not dumpable")
    assert found == [1, 0, 0, 0]
