"""What a start, `import` and `doctor` say when the data folder and the key file do not match."""
import json
import shutil

import pytest

from support.provider import call, text, tools
from support.server import reprise


@pytest.fixture
def home(make_home, make_server, provider):
    """One chat, sealed, and no server."""
    home = make_home()
    server = make_server(provider, home)
    provider.plan(text("a"))
    server.client.turn("first", "q")
    server.close()
    return home


def serve(home, *arguments):
    return reprise(home, "serve", "--port", "0", "--data-dir", home.data, *arguments)


def key_id(file):
    return json.loads(file.read_text())["keys"][0]["kid"]


def test_a_lost_key_file_stops_the_start_and_is_not_replaced(home, make_server, provider):
    kid = key_id(home.keys)
    kept = home.path / "kept.jwks"
    shutil.move(home.keys, kept)
    for _ in range(2):
        status, out, err = serve(home)
        assert (status, out) == (1, "") and f"1 chat in {home.data} is sealed with {kid}, which is not in {home.keys}" in err and "--new-key" in err
        assert not home.keys.exists()
    status, out, err = reprise(home, "doctor", "--data-dir", home.data, "--json")
    assert status == 1 and [c["message"] for c in json.loads(out)["checks"] if c["verdict"] == "fail" and kid in c["message"]]
    (home.path / "chat.json").write_text(json.dumps({"chat_id": "b", "interactions": []}))
    assert reprise(home, "import", "chat.json", "--data-dir", home.data)[0] == 1 and not home.keys.exists()

    shutil.move(kept, home.keys)
    server = make_server(provider, home)
    assert [c["id"] for c in server.client.get("/chats").json["chats"]] == ["first"]


def test_a_wrong_key_file_stops_the_start_and_doctor_says_so(home):
    kid = key_id(home.keys)
    home.keys.unlink()
    assert reprise(home, "keys", "init")[0] == 0
    status, _, err = serve(home)
    assert status == 1 and kid in err
    assert reprise(home, "doctor", "--data-dir", home.data)[0] == 1


def test_new_key_continues_without_the_chats_that_cannot_be_opened(home, make_server, provider):
    home.keys.unlink()
    server = make_server(provider, home, arguments=["--new-key"])
    server.check_files = False
    provider.plan(text("a"))
    server.client.turn("second", "q")
    server.close()
    again = make_server(provider, home)  # no further --new-key is needed
    again.check_files = False
    assert again.client.get("/chats/second/interactions/int_001").status == 200


def test_new_key_gives_up_a_chat_that_has_only_an_interaction_that_waits(make_home, make_server, provider):
    """The chat has no checkpoint and no chat.json yet; its journal is sealed with the lost key."""
    home = make_home()
    server = make_server(provider, home)
    provider.plan(tools(call("run_shell", {"command": "true"})))
    asked = server.client.start("c", "q").until("approval_required")
    server.kill()
    home.keys.rename(home.path / "kept.jwks")
    server = make_server(provider, home, arguments=["--new-key"])
    server.check_files = False
    before = sorted((home.data / "c" / "interactions").glob("int_*"))
    assert before == [home.data / "c" / "interactions" / "int_001.journal"]
    server.client.get("/chats/c").error(422, "integrity_auth")
    server.client.post("/chats/c/interactions", {"user_message": "q"}).error(422, "integrity_auth")
    assert sorted((home.data / "c" / "interactions").glob("int_*")) == before
    server.close()
    (home.path / "kept.jwks").replace(home.keys)
    server = make_server(provider, home)
    waiting, = server.client.get("/approvals").expect(200, "approvals").json["approvals"]
    assert waiting["approval_id"] == asked["approval_id"]


def test_plain_and_sealed_mixed_up(home, make_home, make_server, provider):
    status, _, err = serve(home, "--plain")
    assert status == 1 and "is sealed: leave --plain out" in err
    assert reprise(home, "doctor", "--data-dir", home.data, "--plain")[0] == 1
    plain = make_home()
    server = make_server(provider, plain, plain=True)
    provider.plan(text("a"))
    server.client.turn("c", "q")
    server.close()
    status, _, err = serve(plain)
    assert status == 1 and "is stored unencrypted: give --plain" in err and not plain.keys.exists()
    assert reprise(plain, "doctor", "--data-dir", plain.data)[0] == 1


def test_the_first_start_says_where_the_key_is_and_that_it_needs_a_copy(make_home, make_server):
    home = make_home()
    server = make_server(None, home)
    server.close()
    assert "a new key was made; keep a copy" in server.log() and f'key_file="{home.keys}"' in server.log()
    before = len(server.log())
    make_server(None, home).close()
    assert "new key" not in server.log()[before:]
