"""Chats by their title or the beginning of a name, and models by a part of theirs, wherever the command line takes one."""
import json

import pytest

from support.provider import Reply, text
from support.server import reprise

TITLES = {"chat_aaa111": "Holiday plans", "chat_aab222": "Tax return / 2026", "notes": "Shopping", "note": "Tidy up"}


def fill(server, provider, titles=None):
    for name, title in (titles or TITLES).items():
        provider.plan(text("the answer in " + title))
        server.client.turn(name, "hello")
        server.client.request("PATCH", f"/chats/{name}", {"title": title}).expect(200)


def folder(server):
    return "--data-dir", str(server.home.data)


@pytest.fixture(params=["served", "stored"])
def chats(request, server, provider):
    """Runs commands beside the server, and without one."""
    fill(server, provider)
    if request.param == "stored":
        server.stop()

    def run(*arguments, status=0):
        done, said, told = reprise(server.home, *arguments, *folder(server))
        assert done == status, (arguments, done, said, told)
        return said + told

    return run


@pytest.mark.parametrize("name, chat", [("chat_aaa", "chat_aaa111"), ("holiday plans", "chat_aaa111"), ("Hol", "chat_aaa111"), ("Tax return / 2026", "chat_aab222"),
                                        ("tax return /", "chat_aab222"), ("note", "note"), ("notes", "notes"), ("shop", "notes")])
def test_every_command_takes_a_title_or_a_beginning(chats, name, chat):
    for command in ("show", "cat", "export"):
        assert "the answer in " + TITLES[chat] in chats(command, name), command
        assert "the answer in " + TITLES[chat] in chats(command, name + "/int_001"), command
    assert "hello" in chats("ls", name)
    assert chat in chats("search", "answer", "--chat", name)
    assert "1" in chats("replay", name)
    assert f"is a copy of {chat} up to int_001" in chats("fork", name, "--as", "zz-copy")
    assert "zz-copy has the title" in chats("mv", "zz-c", "not that")  # it had the same
    assert f"{chat} is in the trash" in chats("rm", name)
    assert f"{chat} is back" in chats("restore", name)
    assert f'{chat} has the title "A new one" now' in chats("mv", name, "A", "new", "one")
    assert f"{chat} is in the trash" in chats("rm", "a NEW")


@pytest.mark.parametrize("command", [["show"], ["cat"], ["ls"], ["search", "x", "--chat"], ["replay"], ["export"], ["rm"], ["fork"], ["verify"], ["decrypt"]])
def test_an_ambiguous_name_lists_the_matches_and_changes_nothing(chats, server, command):
    titled = command[0] not in ("verify", "decrypt")  # these read no titles
    told = chats(*command, "chat_a", *(["--output", server.home.path / "out"] if command[0] == "decrypt" else []), status=1)
    assert '"chat_a" means any of 2 chats' in told and "chat_aaa111" in told and "chat_aab222" in told, told
    assert ("Holiday plans" in told) == titled, told
    assert len(json.loads(chats("ls", "--json"))["chats"]) == 4


def test_mv_is_as_careful(chats):
    assert '"T" means any of 2 chats' in chats("mv", "T", "another title", status=1)
    assert "another title" not in chats("ls")


def test_rm_looks_up_every_name_before_it_removes_one(chats):
    # Without chat_aaa111 the second name would be that of one chat.
    assert "means any of 2 chats" in chats("rm", "chat_aaa111", "chat_aa", status=1)
    assert "names no chat" in chats("rm", "notes", "no such title", status=2)
    assert len(json.loads(chats("ls", "--json"))["chats"]) == 4
    assert "there is no chat gone" in chats("rm", "shop", "gone", status=1)  # a missing chat does not stop the others
    assert "notes" not in [c["id"] for c in json.loads(chats("ls", "--json"))["chats"]]


def test_a_damaged_chat_is_still_named_by_its_beginning(server, provider):
    fill(server, provider)
    server.stop()
    server.check_files = False
    (server.home.data / "chat_aaa111" / "chat.json").write_text("{}")
    status, _, told = reprise(server.home, "rm", "chat_aaa", *folder(server))
    assert status == 0, told
    status, _, told = reprise(server.home, "show", "chat_aab", *folder(server))
    assert status == 0, told


def test_a_file_beats_a_beginning_but_not_an_exact_id(chats, server):
    (server.home.path / "not").write_text("no record")
    (server.home.path / "notes").write_text("no record")
    assert "neither a sealed record nor a JSON object" in chats("show", "not", status=1)
    assert "the answer in Shopping" in chats("show", "notes")
    assert "the answer in Shopping" in chats("show", "shop")


def test_verify_and_decrypt_take_the_beginning_of_an_id(chats, server):
    assert "all in order" in chats("verify", "chat_aaa") and "all in order" in chats("verify", "chat_aaa/int_001")
    out = server.home.path / "plain"
    chats("decrypt", "chat_aab", "--output", out)
    assert (out / "chat_aab222" / "chat.json").exists()


def test_the_client_goes_on_in_a_chat_of_a_title(server, provider):
    fill(server, provider)
    provider.plan(text("there"))
    status, said, told = reprise(server.home, "--chat", "holiday plans", "-p", "again", "--url", f"http://127.0.0.1:{server.port}")
    assert (status, said) == (0, "there\n"), told
    assert [t["user_message"] for t in server.client.history("chat_aaa111")["interactions"]] == ["hello", "again"]
    status, _, told = reprise(server.home, "--chat", "no such title", "-p", "again", "--url", f"http://127.0.0.1:{server.port}")
    assert status == 2 and '"no such title" names no chat' in told, told
    # A text that can be an id is one, because it may be that of a new chat.
    provider.plan(text("new"))
    assert reprise(server.home, "--chat", "Shopping", "-p", "another", "--url", f"http://127.0.0.1:{server.port}")[0] == 0
    assert len(server.client.history("Shopping")["interactions"]) == 1 == len(server.client.history("notes")["interactions"])


# --- models -------------------------------------------------------------------------------------------------------------

def test_a_part_of_a_models_name_will_do_on_the_command_line(make_server, provider):
    server = make_server(provider, config={"models": {"test/other-large": {}, "test/other-small": {}}})
    at = "--url", f"http://127.0.0.1:{server.port}"
    provider.plan(text("small"))
    assert reprise(server.home, "-p", "hi", "--model", "SMALL", *at)[:2] == (0, "small\n")
    assert provider.requests[-1].body["model"] == "other-small"
    status, _, told = reprise(server.home, "-p", "hi", "--model", "other", *at)
    assert status == 1 and '"other" means any of 2 models: test/other-large, test/other-small (`reprise models` lists them)' in told, told
    status, _, told = reprise(server.home, "-p", "hi", "--model", "nothing", *at)
    assert status == 1 and "no model is called nothing" in told, told
    assert len(provider.requests) == 1


def test_a_full_name_needs_no_list_and_may_be_unlisted(make_server, make_home, provider):
    provider.listing = Reply([json.dumps({"data": [{"id": "big-model-large"}]}).encode()], content_type="application/json")
    home = make_home()
    config = home.path / "reprise-own.json"
    config.write_text(json.dumps({"model": "test/big-model-large", "providers": {"test": {"type": "openai", "base_url": provider.url}}}))
    config.chmod(0o600)
    for name in ("test/big", "large"):
        provider.plan(text("answer"))
        status, said, told = reprise(home, "-p", "hi", "--model", name, "--config", config)
        assert (status, said) == (0, "answer\n"), told
    assert [r.body["model"] for r in provider.requests] == ["big", "big-model-large"]
