"""The command line beside `serve`."""
import json
import os
import stat
import subprocess

import pytest
from support import schemas
from support.provider import text
from support.server import BINARY
from support.timing import SOON


@pytest.fixture
def reprise(make_home, make_server, provider):
    """Two chats on disk and a way to run commands beside (or without) their server."""
    home = make_home()
    server = make_server(provider, home=home)
    for chat, turns in (("alpha", 2), ("beta", 1)):
        for number in range(1, turns + 1):
            provider.plan(text(f"answer {number} of {chat}"))
            server.client.turn(chat, f"question {number} of {chat}")

    def run(*arguments, status=0, data=True, **environment):
        command = [str(BINARY), *map(str, arguments), *(["--data-dir", str(home.data)] if data else [])]
        done = subprocess.run(command, cwd=home.path, env=home.environment(**environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=SOON, check=False, text=True)
        assert done.returncode in (status if isinstance(status, tuple) else (status,)), (command, done.returncode, done.stdout[-500:], done.stderr[-1500:])
        return done

    run.home, run.server = home, server
    return run


@pytest.mark.parametrize("command", [[], ["serve"], ["ls"], ["cat"], ["show"], ["keys"], ["keys", "init"], ["keys", "list"], ["doctor"]])
def test_help(reprise, command):
    done = reprise(*command, "--help", data=False)
    assert "reprise" in done.stdout.lower() and done.stderr == ""


@pytest.mark.parametrize("command", [["frobnicate"], ["serve", "--no-such-flag"], ["serve", "--port", "x"], ["serve", "--port", "70000"], ["cat"], ["keys", "x"]])
def test_wrong_usage_is_2(reprise, command):
    assert reprise(*command, data=False, status=2).stderr


def test_version(reprise):
    assert reprise("--version", data=False).stdout.strip()


def test_ls(reprise):
    out = reprise("ls").stdout
    assert "alpha" in out and "beta" in out and "question 1 of alpha" in out
    listed = json.loads(reprise("ls", "--json").stdout)
    chats = listed["chats"] if isinstance(listed, dict) else listed
    assert {c["id"] for c in chats} == {"alpha", "beta"}
    reprise.server.stop()
    assert "alpha" in reprise("ls").stdout


def test_cat_prints_the_plaintext_for_jq(reprise):
    for what in ("alpha/int_002", reprise.home.checkpoint_file("alpha", "int_002")):
        stored = json.loads(reprise("cat", what).stdout)
        schemas.check("interaction", stored)
        assert stored["user_message"] == "question 2 of alpha"
        assert stored == reprise.home.checkpoint("alpha", "int_002")
    whole = reprise("cat", "alpha").stdout
    assert "question 1 of alpha" in whole and "question 2 of alpha" in whole
    json.loads(whole)


def test_cat_of_a_copy_elsewhere(reprise, tmp_path):
    copy = tmp_path / "copy.json"
    copy.write_bytes(reprise.home.checkpoint_file("beta", "int_001").read_bytes())
    assert json.loads(reprise("cat", copy).stdout)["user_message"] == "question 1 of beta"


def test_cat_of_what_is_not_there_or_damaged_is_1(reprise):
    for what in ("nobody", "alpha/int_009", "/no/such/file.json"):
        done = reprise("cat", what, status=1)
        assert done.stdout == "" and done.stderr
    path = reprise.home.checkpoint_file("alpha", "int_001")
    path.write_text(path.read_text()[:-30])
    reprise.server.check_files = False
    assert reprise("cat", "alpha/int_001", status=1).stdout == ""


def test_show_is_for_reading(reprise):
    out = reprise("show", "alpha").stdout
    for part in ("question 1 of alpha", "answer 1 of alpha", "question 2 of alpha", "answer 2 of alpha"):
        assert part in out
    reprise("show", "nobody", status=1)


def test_show_lets_no_control_characters_through(reprise, provider):
    provider.plan(text("evil \x1b]0;title\x07 \x1b[2J \u202e end"))
    reprise.server.client.turn("evil", "x\x1b[31m")
    out = reprise("show", "evil").stdout
    assert "\x1b]0;" not in out and "\x1b[2J" not in out and "\u202e" not in out and "\x07" not in out
    assert "\x1b" not in reprise("ls").stdout


def test_keys_list_never_shows_a_key(reprise):
    key = json.loads(reprise.home.keys.read_text())["keys"][0]
    for arguments in (["keys", "list"], ["keys", "list", "--json"]):
        out = reprise(*arguments, data=False).stdout
        assert key["kid"] in out and key["k"] not in out


def test_keys_init_makes_one_and_never_overwrites(reprise, tmp_path):
    file = tmp_path / "new" / "keys.jwks"
    reprise("keys", "init", "--key-file", file, data=False)
    schemas.check("keys", json.loads(file.read_text()))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    reprise("keys", "init", "--key-file", file, data=False, status=(0, 1))
    assert file.read_bytes() == before


def test_doctor(reprise):
    out = reprise("doctor").stdout
    assert out.strip()
    json.loads(reprise("doctor", "--json").stdout)
    reprise.home.keys.chmod(0o644)
    reprise("doctor", status=1)
    reprise.home.keys.chmod(0o600)


def test_nothing_is_written_by_reading(reprise):
    reprise.server.stop()
    before = {p: p.read_bytes() for p in reprise.home.data.rglob("*") if p.is_file()}
    for command in (["ls"], ["cat", "alpha"], ["show", "alpha"], ["doctor"]):
        reprise(*command)
    assert {p: p.read_bytes() for p in reprise.home.data.rglob("*") if p.is_file()} == before
    empty = reprise.home.path / "nothing-here"
    subprocess.run([str(BINARY), "ls", "--data-dir", str(empty)], cwd=reprise.home.path, env=reprise.home.environment(), stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE, timeout=SOON, check=False)
    assert not empty.exists()


def test_a_closed_pipe_is_no_crash(reprise):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([str(BINARY), "cat", "alpha", "--data-dir", str(reprise.home.data)], env=reprise.home.environment(), stdout=write,
                          stderr=subprocess.PIPE, timeout=SOON, check=False, cwd=reprise.home.path)
    os.close(write)
    assert done.returncode in (0, 1, 141, -13)
