"""`reprise prove`: signed proofs of what an agent did, which others can shorten and verify."""
import hashlib
import importlib.util
import json
import random
import re
import subprocess

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from support import schemas
from support.provider import call, text, tools
from support.server import BINARY, ROOT
from support.timing import SOON

SECRET = "hunter2"


def second_verifier():
    spec = importlib.util.spec_from_file_location("verify_proof", ROOT / "docs" / "verify_proof.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


verifier = second_verifier()


class World:
    def __init__(self, make_server, home, provider, plain=False):
        self.home, self.plain, self.root = home, plain, home.workspace
        server = self.server = make_server(provider, home=home, plain=plain, config={"approval_mode": "ask"})
        provider.plan(tools(call("read_file", {"path": "pin.txt"}, "call_1"), think="Where is it?"),
                      tools(call("write_file", {"path": "new.txt", "content": SECRET}, "call_2")), text("Done."), text("You are welcome."))
        (self.root / "pin.txt").write_text(SECRET)
        stream = server.client.start("notes", "Copy the pin.")
        asked = stream.until("approval_required")
        server.client.approve("notes", "int_001", asked["approval_id"]).expect(200)
        stream.finish()
        server.client.turn("notes", "Thanks!")

    def run(self, *arguments, status=0):
        plain = ["--plain"] if self.plain else []
        done = subprocess.run([str(BINARY), "prove", *map(str, arguments), "--data-dir", str(self.home.data), *plain], cwd=self.root, env=self.home.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SOON, check=False)
        assert done.returncode == status, (done.returncode, done.stdout[-1000:], done.stderr[-1000:])
        return done.stdout.decode(), done.stderr.decode()

    def make(self, *arguments):
        return json.loads(self.run(*arguments)[0])

    def check(self, bundle, *arguments, status=0):
        """The report about a bundle, given as a value or as text."""
        path = self.root / "checked.json"
        path.write_bytes(bundle if isinstance(bundle, bytes) else json.dumps(bundle).encode())
        report = json.loads(self.run("--check", path, "--json", *arguments, status=status)[0])
        schemas.check("proof_report", report)
        assert report["ok"] == (status == 0)
        return report


@pytest.fixture
def world(make_server, make_home, provider):
    return World(make_server, make_home(), provider)


def leaves(bundle):
    return [json.loads(each["text"]) if "text" in each else None for each in bundle["leaves"]]


def kinds(bundle):
    return [each and each["kind"] for each in leaves(bundle)]


@pytest.mark.parametrize("plain", [True, False])
def test_a_bundle_says_what_was_said_told_called_and_allowed(make_server, make_home, provider, plain):
    world = World(make_server, make_home(), provider, plain)
    bundle = world.make("notes")
    schemas.check("proof", bundle)
    said = leaves(bundle)
    assert said[0] == {"kind": "chat", "chat": "notes", "title": "Copy the pin.", "at": said[0]["at"]}
    assert [each["text"] for each in said if each["kind"] == "said"] == ["Copy the pin.", "Thanks!"]
    assert [each["event"]["tool_name"] for each in said if each["kind"] == "tool_call"] == ["read_file", "write_file"]
    assert [each["event"]["content"] for each in said if each["kind"] == "answer"] == ["Done.", "You are welcome."]
    assert [(each["turn"], each["status"]) for each in said if each["kind"] == "end"] == [("int_001", "COMPLETED"), ("int_002", "COMPLETED")]
    (permission,) = [each for each in said if each["kind"] == "permission"]
    assert (permission["tool_name"], permission["call_id"], permission["reason"]) == ("read_file", "call_1", "default")
    (approved,) = [each["event"] for each in said if each["kind"] == "approved"]
    (asked,) = [each["event"] for each in said if each["kind"] == "approval_required"]
    (digest,) = [each for each in said if each["kind"] == "digest"]
    assert approved["call_id"] == "call_2" and approved["at"] >= asked["created_at"] and "arguments_digest" not in approved
    assert digest["arguments_digest"] == "sha256:" + hashlib.sha256(asked["tool_input"].encode()).hexdigest()
    requests, bodies = ([each for each in said if each["kind"] == kind] for kind in ("request", "body"))
    assert [each["number"] for each in requests] == [0, 1, 2, 0] and all(each["response"] for each in requests)
    for turn, number, body in [("int_001", 1, bodies[1]), ("int_002", 0, bodies[3])]:
        done = subprocess.run([str(BINARY), "cat", f"notes/{turn}/requests/{number}", "--data-dir", str(world.home.data), *(["--plain"] if plain else [])],
                              env=world.home.environment(), capture_output=True, timeout=SOON, check=True)
        sent = done.stdout.removesuffix(b"\n")
        assert (body["bytes"], body["digest"]) == (len(sent), "sha256:" + hashlib.sha256(sent).hexdigest())
    report = world.check(bundle)
    assert report["leaves"] == len(said) and report["left_out"] == 0 and report["time_stamp"] is None
    assert verifier.verify(json.dumps(bundle))["root"]
    one = world.make("notes/int_002")
    assert {each.get("turn") for each in leaves(one)} == {None, "int_002"}


def test_grants_that_were_given_elsewhere_are_named(make_server, make_home, provider):
    home = make_home()
    world = World(make_server, home, provider)
    world.server.stop()
    server = make_server(provider, home=home, config={"approval_mode": "ask"})
    for chat in ("first", "second"):
        provider.plan(tools(call("write_file", {"path": "g.txt", "content": "x"}, "call_1")), text("Done."))
        stream = server.client.start(chat, "Write it.")
        if chat == "first":
            asked = stream.until("approval_required")
            server.client.approve(chat, "int_001", asked["approval_id"], scope="always").expect(200)
        stream.finish()
    assert "who gave" not in world.run("first")[1] + world.run("notes")[1]
    bundle, said = world.run("second")
    (permission,) = [each for each in leaves(json.loads(bundle)) if each["kind"] == "permission"]
    assert permission["reason"] == "standing_grant" and f"who gave {permission['decided_by'][0]}, by which calls ran, is in no leaf" in said


def test_the_key_is_made_once_and_kept_from_others(world):
    first = world.run("--key")[0]
    assert world.run("--key")[0] == first
    shown = json.loads(world.run("--key", "--json")[0])
    assert shown["fingerprint"] == "sha256:" + hashlib.sha256(bytes.fromhex(shown["key"])).hexdigest()
    (file,) = world.home.path.rglob("proof.jwks")
    assert file.stat().st_mode & 0o777 == 0o600 and (file.parent / "keys.jwks").exists()
    bundle = world.make("notes")
    for who in shown.values():
        assert world.check(bundle, "--signed-by", who)["key"] == shown["key"]
    other = "sha256:" + "0" * 64
    assert "another one" in world.check(bundle, "--signed-by", other, status=1)["problem"]
    # No key is in what is given away.
    for secret in [*file.parent.glob("*.jwks")]:
        for key in json.loads(secret.read_text())["keys"]:
            assert key["k"] not in json.dumps(bundle)
    file.chmod(0o644)
    assert "chmod 600" in world.run("notes", status=1)[1]
    file.chmod(0o600)


def test_left_out_leaves_leave_nothing_to_guess_by(world):
    whole = world.make("notes")
    path = world.root / "whole.json"
    path.write_text(json.dumps(whole))
    shortened = world.make("--redact", path, "--without", "tool_result", "--without", "call_2")
    assert world.check(shortened)["left_out"] == shortened["leaves"].count({"hash": None}) + sum("text" not in each for each in shortened["leaves"])
    assert verifier.verify(json.dumps(shortened))
    visible = json.dumps(shortened)
    gone = [each for each, kept in zip(whole["leaves"], shortened["leaves"], strict=True) if "text" not in kept]
    assert {json.loads(each["text"])["kind"] for each in gone} >= {"tool_call", "tool_result", "approval_required", "approved", "body", "digest", "files_changed"}
    for each in gone:
        assert each["salt"] not in visible
    assert SECRET not in visible
    # Whoever knows all that can have been said finds no digest of it.
    arguments = json.loads(next(each for each in leaves(whole) if each["kind"] == "approval_required")["event"]["tool_input"])
    texts = [SECRET, json.dumps(arguments), json.dumps(arguments, separators=(",", ":")), *(each["text"] for each in gone)]
    for guess in texts:
        for prefix in (b"", b"\0"):
            assert hashlib.sha256(prefix + guess.encode()).hexdigest() not in visible
    # Requests, thoughts and the first call stay; so do the other turn and its end.
    assert "thinking" in kinds(shortened) and "request" in kinds(shortened) and leaves(shortened)[-1]["kind"] == "end"
    # The same in one step, and what cannot be is refused.
    assert kinds(world.make("notes", "--without", "tool_result", "--without", "call_2")) == kinds(shortened)
    assert "--without: it is empty" in world.run("--redact", path, "--without", "", status=2)[1]
    for wrong in ("0", "99", "3-2", "nothing"):
        assert f'no leaf is "{wrong}"' in world.run("--redact", path, "--without", wrong, status=2)[1]


def changed(random_, bundle):
    """A bundle as text, changed in one of many ways, or not at all."""
    bundle = json.loads(json.dumps(bundle))
    leaf = random_.choice(bundle["leaves"])
    what = random_.randrange(9)
    if what == 0:
        for member in ("salt", "text"):
            leaf.pop(member, None)  # left out: still intact
    elif what == 1:
        leaf["text"] = leaf.get("text", "") + random_.choice([" ", "\n", "x", "é", "\0"])
    elif what == 2:
        leaf["hash"] = hashlib.sha256(leaf["hash"].encode()).hexdigest()
    elif what == 3:
        bundle["leaves"].insert(random_.randrange(len(bundle["leaves"])), leaf)
    elif what == 4:
        bundle["leaves"].remove(leaf)
    elif what == 5:
        random_.shuffle(bundle["leaves"])
    elif what == 6:
        bundle["statement"] = bundle["statement"].replace(random_.choice("0123456789"), random_.choice("0123456789"))
    raw = bytearray(json.dumps(bundle, ensure_ascii=random_.random() < .5, indent=random_.choice([None, 1])).encode())
    if what == 7:
        at = random_.randrange(len(raw))
        raw[at:at + random_.randrange(3)] = bytes(random_.choices(range(256), k=random_.randrange(3)))
    return bytes(raw)


def test_both_verifiers_agree_on_200_bundles(world):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    random_ = random.Random(seed)
    bundle = world.make("notes")
    verdicts = []
    for _ in range(200):
        raw = changed(random_, bundle)
        try:
            verifier.verify(raw.decode())
            verdicts.append(True)
        except (verifier.Broken, UnicodeDecodeError):
            verdicts.append(False)
        world.check(raw, status=0 if verdicts[-1] else 1)
    assert 20 < sum(verdicts) < 120


def signed(statement):
    """A bundle of one leaf, with this statement in place of ours, signed by whoever makes it."""
    key = Ed25519PrivateKey.generate()
    leaf = {"salt": "ab" * 32, "text": "{}"}
    leaf["hash"] = hashlib.sha256(b"\0" + bytes.fromhex(leaf["salt"]) + b"{}").hexdigest()
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    text = statement.replace("ROOT", leaf["hash"]).replace("KEY", public)
    return {"statement": text, "signature": key.sign(b"reprise-proof-1\n" + text.encode()).hex(), "leaves": [leaf]}


STATEMENT = '{"type":"reprise-proof","version":1,"leaves":1,"root":"ROOT","key":"KEY","made_at":"now","program":"a test"}'
ODD = [("1,", "true,"), ("1,", "1.0,"), ("1,", "1e0,"), ('"leaves":1', '"leaves":true'), ('"leaves":1', '"leaves":1.0'), ('"leaves":1', '"leaves":"1"'),
       ('"a test"', "5"), ('"a test"', "null"), ('"a test"', '{"a":[1e999]}'), ('"a test"', '"\\ud800"'), ('"now"', '"\\udc00"'), ('"now"', "-0"),
       ("{", "\ufeff{"), ("}", "}\0{"), ('"a test"', '"\\u0000"'), ("1,", "1 ,")]


def test_both_verifiers_are_as_strict_about_what_a_statement_is(world):
    bundles = [json.dumps(signed(STATEMENT.replace(old, new, 1))).encode() for old, new in ODD]
    whole = json.dumps(signed(STATEMENT)).encode()
    behind = [b"\0", b'\0{"statement":"another"}', b" x", b"\0\xff"]
    verdicts = []
    for raw in [whole, *bundles, *[whole + each for each in behind], b"\xef\xbb\xbf" + whole]:
        try:
            verifier.verify(raw.decode())
            verdicts.append(True)
        except (verifier.Broken, UnicodeDecodeError):
            verdicts.append(False)
        world.check(raw, status=0 if verdicts[-1] else 1)
    assert verdicts == [True] + [False] * (len(ODD) - 2) + [True, True] + [False] * 5


def openssl(*arguments, cwd, text=None):
    subprocess.run(["openssl", *map(str, arguments)], cwd=cwd, input=text, capture_output=True, timeout=SOON, check=True)


def test_a_time_stamp_of_openssl_is_added_and_checked(world, tmp_path):
    for name in ("tsa", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2",
                "-subj", f"/CN={name}", "-addext", "extendedKeyUsage=critical,timeStamping", cwd=tmp_path)
    (tmp_path / "tsa.cnf").write_text("[tsa]\nserial=serial\nsigner_cert=tsa.pem\ncerts=tsa.pem\nsigner_key=tsa.key\nsigner_digest=sha256\n"
                                      "default_policy=1.2.3.4\ndigests=sha256\nordering=no\ntsa_name=no\ness_cert_id_chain=no\n")
    (tmp_path / "serial").write_text("01\n")
    bundle, query, reply, stamped = (tmp_path / name for name in ("bundle.json", "query.tsq", "reply.tsr", "stamped.json"))
    world.run("notes", "-o", bundle, "--timestamp-request", query)
    openssl("ts", "-reply", "-config", "tsa.cnf", "-section", "tsa", "-queryfile", query, "-out", reply, cwd=tmp_path)
    world.run("--stamp", bundle, "--timestamp", reply, "-o", stamped)
    whole = json.loads(stamped.read_text())
    schemas.check("proof", whole)
    assert "time_stamp" not in world.check(whole) or world.check(whole)["time_stamp"] is None
    assert re.fullmatch(r"\w{3} .\d \d\d:\d\d:\d\d \d{4} GMT", world.check(whole, "--timestamp-ca", tmp_path / "tsa.pem")["time_stamp"])
    # A shorter bundle keeps its stamp, for others too.
    short = world.make("--redact", stamped, "--without", "said")
    assert world.check(short, "--timestamp-ca", tmp_path / "tsa.pem")["time_stamp"]
    verifier.check_stamp(short, tmp_path / "tsa.pem")
    # Neither another authority nor another bundle.
    assert "not by that authority" in world.check(whole, "--timestamp-ca", tmp_path / "other.pem", status=1)["problem"]
    other = world.make("notes") | {"time_stamp": whole["time_stamp"]}
    assert "not of this bundle" in world.check(other, "--timestamp-ca", tmp_path / "tsa.pem", status=1)["problem"]
    with pytest.raises(verifier.Broken):
        verifier.check_stamp(other, tmp_path / "tsa.pem")
    assert "no time stamp" in world.check(world.make("notes"), "--timestamp-ca", tmp_path / "tsa.pem", status=1)["problem"]
    reply.write_bytes(reply.read_bytes()[:-1])
    assert "not a reply" in world.run("--stamp", bundle, "--timestamp", reply, status=1)[1]
    assert "cannot read certificates" in world.run("--check", stamped, "--timestamp-ca", tmp_path / "none.pem", status=1)[1]


def test_the_second_verifier_checks_a_certificate_as_of_the_stamp():
    stamps = ROOT / "tests" / "data" / "time_stamp"
    bundle = {"signature": "00" * 64, "time_stamp": (stamps / "expired_since.tsr").read_bytes().hex()}
    verifier.check_stamp(bundle, stamps / "authority.pem")
    for name in ("expired_before.tsr", "refused.tsr"):
        with pytest.raises(verifier.Broken):
            verifier.check_stamp(bundle | {"time_stamp": (stamps / name).read_bytes().hex()}, stamps / "authority.pem")


def test_wrong_use_is_said(world, tmp_path):
    for arguments in [(), ("notes", "--key"), ("--redact", "x", "--check", "y")]:
        assert "one of CHAT" in world.run(*arguments, status=2)[1]
    for arguments in [("--check", "x", "--without", "3"), ("--check", "x", "-o", "y"), ("--check", "x", "--timestamp-request", "q"), ("--key", "-o", "y")]:
        assert "write nothing" in world.run(*arguments, status=2)[1]
    for arguments in [("notes",), ("--stamp", "x")]:
        assert "--timestamp-ca needs" in world.run(*arguments, "--timestamp-ca", "ca.pem", status=2)[1]
    assert "int_009" in world.run("notes/int_009", status=1)[1]
    (tmp_path / "empty").write_text("")
    assert "is not JSON" in world.run("--check", tmp_path / "empty", status=1)[1]
    assert world.run("--check", tmp_path / "missing", status=1)[1]
    listed = world.run("notes", "-o", tmp_path / "p.json")[0]
    assert re.search(r"\d+ leaves, 0 of them left out", listed)
    assert "said" in world.run("--check", tmp_path / "p.json", "--list")[0]
    assert "is there already" in world.run("notes", "-o", tmp_path / "p.json", status=1)[1]
