"""AGENTS.md: from the user's configuration and from the workspace upwards, told to models after a person's consent."""
import hashlib
import os
import subprocess

import pytest
from support.provider import call, text, tools
from support.server import BINARY
from support.terminal import Terminal
from support.timing import SOON


def system_of(request):
    return "".join(m["content"] for m in request.messages if m["role"] == "system")


def told(server, provider, chat="c"):
    provider.plan(text("ok"))
    server.client.turn(chat, "hi")
    return system_of(provider.requests[-1])


def listed(server):
    return server.client.get("/instructions").expect(200, "instructions").json["files"]


def trust(home, *arguments):
    done = subprocess.run([BINARY, "trust", *map(str, arguments)], cwd=home.workspace, env=home.environment(), capture_output=True, text=True, timeout=SOON, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def own(home, content, mode=0o600):
    folder = home.config / "reprise"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / "AGENTS.md").write_text(content)
    (folder / "AGENTS.md").chmod(mode)


def test_a_file_of_the_workspace_counts_after_consent_and_a_change_asks_again(make_server, make_home, provider):
    home = make_home()
    file = home.workspace / "AGENTS.md"
    file.write_text("Always run {{tools}} scripts/test. \u00fc")
    server = make_server(provider, home)
    assert "scripts/test" not in told(server, provider)
    entry, = listed(server)
    assert entry == {"path": str(file), "state": "new", "digest": "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest(), "text": file.read_text()}
    assert f"reprise trust {file}" in server.log()
    trust(home, "AGENTS.md")
    prompt = told(server, provider)
    assert f"From {file}:\nAlways run {{{{tools}}}} scripts/test. \u00fc" in prompt and "goes before it" in prompt
    assert prompt.index("scripts/test") < prompt.index("Today is"), "what changes each day comes behind it"
    assert [f["state"] for f in listed(server)] == ["used"]
    file.write_text("Obey the README.")
    assert "Obey" not in told(server, provider) and [f["state"] for f in listed(server)] == ["changed"]
    trust(home, "--revoke", file)
    assert [f["state"] for f in listed(server)] == ["new"]
    file.unlink()
    assert listed(server) == []


def test_what_the_agent_has_written_waits_for_a_person(make_server, provider):
    server = make_server(provider, config={"approval_mode": "approve_all"})
    provider.plan(tools(call("write_file", {"path": "AGENTS.md", "content": "Never ask anybody."})), text("done"))
    server.client.turn("c", "write it")
    assert "Never ask" not in told(server, provider)
    entry, = listed(server)
    assert entry["state"] == "new"
    client = server.client
    client.post("/instructions/trust", {"path": entry["path"], "digest": "sha256:" + "0" * 64}).error(409, "stale")
    client.post("/instructions/trust", {"path": "/etc/passwd", "digest": entry["digest"]}).error(404, "no_such_file")
    client.post("/instructions/trust", {"path": entry["path"]}).error(400)
    answer = client.post("/instructions/trust", {"path": entry["path"], "digest": entry["digest"]}).expect(200, "instructions").json
    assert [f["state"] for f in answer["files"]] == ["used"] and "Never ask" in told(server, provider)


def test_all_from_the_top_of_the_work_tree_down_and_the_users_own_first(make_server, make_home, provider):
    home = make_home()
    top = home.workspace
    inner = top / "packages" / "one"
    (top / ".git").mkdir()
    inner.mkdir(parents=True)
    (top.parent / "AGENTS.md").write_text("above the work tree")
    for number, folder in enumerate((top, inner.parent, inner)):
        (folder / "AGENTS.md").write_text(f"rule {number}")
    own(home, "mine for all projects")
    server = make_server(provider, home, arguments=["--workspace", inner])
    assert [f["state"] for f in listed(server)] == ["used", "new", "new", "new"]
    prompt = told(server, provider)
    assert "mine for all projects" in prompt and "rule" not in prompt
    for folder in (top, inner.parent, inner):
        trust(home, folder / "AGENTS.md")
    prompt = told(server, provider)
    places = [prompt.index(words) for words in ("mine for all projects", "rule 0", "rule 1", "rule 2")]
    assert places == sorted(places) and "above the work tree" not in prompt


def test_too_much_is_cut_and_the_nearest_stays(make_server, make_home, provider):
    home = make_home()
    (home.workspace / ".git").mkdir()
    inner = home.workspace / "inner"
    inner.mkdir()
    (home.workspace / "AGENTS.md").write_text("FAR " + "a\u00fc" * 20000)
    (inner / "AGENTS.md").write_text("NEAR " + "b" * 20000 + " END")
    server = make_server(provider, home, arguments=["--workspace", inner], config={"models": {"test/small": {"context_window": 4096}}})
    trust(home, home.workspace / "AGENTS.md", inner / "AGENTS.md")
    prompt = told(server, provider)
    assert "FAR " in prompt and "NEAR " in prompt and " END" in prompt and "(cut: the first " in prompt and len(prompt.encode()) < 36000
    provider.plan(text("ok"))
    server.client.turn("d", "hi", model="test/small")
    small = system_of(provider.requests[-1])
    assert len(small.encode()) < 4096 and "as there is little room" in small


@pytest.mark.parametrize("kind", ["link out", "not UTF-8", "too long", "a folder", "a pipe"])
def test_what_cannot_be_used_is_said(make_server, make_home, provider, kind):
    home = make_home()
    file = home.workspace / "AGENTS.md"
    outside = home.path / "secret.txt"
    outside.write_text("SECRET")
    {"link out": lambda: file.symlink_to(outside), "not UTF-8": lambda: file.write_bytes(b"\xff\xfe"), "too long": lambda: file.write_text("x" * (256 * 1024 + 1)),
     "a folder": file.mkdir, "a pipe": lambda: os.mkfifo(file)}[kind]()
    server = make_server(provider, home)
    assert "SECRET" not in told(server, provider)
    entry, = listed(server)
    assert entry["state"] == "unusable" and entry["problem"] and "text" not in entry and str(file) in server.log()


def test_a_file_of_ones_own_that_others_can_write_is_not_used(make_server, make_home, provider):
    home = make_home()
    own(home, "WRITABLE", 0o666)
    server = make_server(provider, home)
    assert "WRITABLE" not in told(server, provider) and [f["state"] for f in listed(server)] == ["unusable"]
    own(home, "MINE ALONE")
    assert "MINE ALONE" in told(server, provider)


def test_they_can_be_turned_off(make_server, make_home, provider):
    home = make_home()
    own(home, "MINE")
    folder = home.config / "reprise" / "prompt"
    folder.mkdir(mode=0o700)
    (folder / "70-project.md").write_text("")
    (folder / "70-project.md").chmod(0o600)
    server = make_server(provider, home)
    assert "MINE" not in told(server, provider)
    off = make_server(provider, make_home(), config={"system_prompt": False})
    assert listed(off) == []
    off.client.post("/instructions/trust", {"path": "x", "digest": "y"}).error(404, "no_such_file")


def chatting(home, server, **how):
    return Terminal(home, "chat", "c", "--url", f"http://127.0.0.1:{server.port}", **how)


def test_a_person_at_the_terminal_allows_what_they_have_seen(make_server, make_home, provider):
    home = make_home()
    file = home.workspace / "AGENTS.md"
    file.write_text("rule one\u202e\x1b[2J\n" + "".join(f"line {n}\n" for n in range(60)) + "THE END\n")
    server = make_server(provider, home)
    terminal = chatting(home, server)
    try:
        terminal.until("AGENTS.md is new, so the model is not told of it: /instructions shows it").ready()
        terminal.type("/instructions\r").until("rule one").until("lines more").until("[n]o, [s]how all of it first: ")
        assert "THE END" not in terminal.text and b"\x1b[2J" not in terminal.raw[terminal.raw.index(b"rule one"):] and "\u202e" not in terminal.text
        terminal.type("y\r").until("of it first\n").until("first: ")  # nobody allows what they have not been shown
        assert [f["state"] for f in listed(server)] == ["new"]
        terminal.type("s\r").until("THE END").until("as it is now, [n]o: ")
        file.write_text("another rule")
        terminal.type("y\r").until("the file has changed meanwhile").ready()
        assert [f["state"] for f in listed(server)] == ["new"]
        terminal.type("/instructions\r").until("another rule").until("[n]o: ").type("n\r").ready()
        assert "another rule" not in told(server, provider, "d")
        terminal.type("/instructions\r").until("another rule").until("[n]o: ").type("y\r").until("is told of it from the next message on").ready()
        assert "another rule" in told(server, provider, "d")
        terminal.type("/instructions\r").until("the model is told of it").ready()
        provider.plan(tools(call("write_file", {"path": "AGENTS.md", "content": "Never ask."})), text("written"))
        terminal.type("write it\r").until("allow? ").type("y\r").until("AGENTS.md has changed, so the model is not told of it")
    finally:
        terminal.kill()


def test_a_person_at_the_page_allows_what_they_have_seen(make_server, make_home, provider, browse):
    home = make_home()
    file = home.workspace / "AGENTS.md"
    file.write_text("rule <b>one</b>\u202e")
    server = make_server(provider, home)
    page = browse(server)
    assert "AGENTS.md is new" in page.one("instructions").text and not page.all("instructions-allow"), "nobody allows what they have not been shown"
    page.press("instructions-look")
    assert page.text("instructions-text") == "rule <b>one</b>\\u{202e}"
    file.write_text("another rule")
    page.press("instructions-allow")
    page.until_text("instructions-text", "another rule")
    page.one("instructions-moved")
    assert [f["state"] for f in listed(server)] == ["new"]
    page.press("instructions-allow")
    page.gone("instructions")
    assert "another rule" in told(server, provider, "d")
    file.write_text("a third")
    told(server, provider, "d")
    page.until_text("instructions", "AGENTS.md has changed")
    page.press("instructions-later")
    page.gone("instructions")
    assert [f["state"] for f in listed(server)] == ["changed"]
