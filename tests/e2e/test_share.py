"""`reprise export` for others: HTML that stands alone, ATIF, Claude Code's sessions, and what is taken out of them."""
import base64
import datetime
import hashlib
import json
import pathlib
import re
import shutil
import subprocess

import jsonschema
import pytest
from support.browser import Browser
from support.make_suite import CHATS, SUITE
from support.provider import call, failure, text, tools
from support.server import BINARY, reprise
from support.timing import SLACK, SOON

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
KEY = "ghp_" + "a1B2" * 10
HOSTILE = ["<img src=x onerror=hacked()>", "<script>hacked()</script>", "</script><script>hacked()</script>", "<!--<script>", "]]>", "javascript:hacked()",
           "<svg onload=hacked()>", "\"'><iframe src=//evil.example>", "{{data}}", "{{policy}}", "\u2028\u2029\0\u202e", "<style>*{display:none}</style>", "```<b>```",
           "<a href=//evil.example>x</a>", "<meta http-equiv=refresh content=0>", "<base href=//evil.example>", "__proto__", "constructor", "\\u003cscript>"]


class World:
    def __init__(self, make_server, home, provider):
        self.home, self.root = home, home.workspace
        self.server = make_server(provider, home=home, config={"approval_mode": "ask"})
        self.client = self.server.client
        (self.root / "old.txt").write_text("one\ntwo\nthree\n")
        provider.plan(tools(call("read_file", {"path": "old.txt"}, "call_1"), think="Where is it?"),
                      tools(call("write_file", {"path": "old.txt", "content": f"one\n2\nthree\n{KEY}\n"}, "call_2")),
                      text("Done, <b>really</b>."), text("You are welcome, Rumpelstilz."))
        stream = self.client.start("notes", "Change two. </script><script>hacked()</script>")
        asked = stream.until("approval_required")
        self.client.approve("notes", "int_001", asked["approval_id"]).expect(200)
        stream.finish()
        self.client.turn("notes", "Thanks!")

    def export(self, *arguments, status=0):
        done = subprocess.run([str(BINARY), "export", *map(str, arguments), "--data-dir", str(self.home.data)], cwd=self.root, env=self.home.environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=SOON, check=False)
        assert done.returncode == status, (done.returncode, done.stdout[-500:], done.stderr[-1000:])
        return done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def world(make_server, make_home, provider):
    return World(make_server, make_home(), provider)


@pytest.fixture
def look():
    """Opens a file in a browser without a network. Nothing may be asked for, refused or complained of."""
    windows = []

    def make(path):
        browser = Browser(0)
        browser.origin = "file://"
        windows.append((browser, path))
        browser.driver.execute_cdp_cmd("Network.enable", {})
        browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0})
        browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "window.hacked = () => { window.washacked = true; }"})
        browser.driver.get(path.as_uri())
        return browser

    yield make
    for browser, path in windows:
        assert not browser.problems()
        assert {url for url in browser.requested if url.startswith(("http", "ws", "file"))} == {path.as_uri()}
        assert not [each for each in browser.messages if each.get("level") == "SEVERE"], browser.messages
        assert not browser.script("return window.washacked")
        browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
        browser.close()


def verdict(browser):
    return browser.until(lambda: (words := browser.script("return document.getElementById('verdict').textContent")) != "checking the proof" and words, "the verdict")


def with_data(page, change):
    """The page with its data changed."""
    match = re.search(r'(?<=id="data">).*?(?=</script>)', page, re.S)
    data = json.loads(match[0])
    change(data)
    return page[:match.start()] + json.dumps(data).replace("<", "\\u003c") + page[match.end():]


def test_a_page_stands_alone_and_checks_itself(world, look):
    path = world.root / "notes.html"
    world.export("notes", "--format", "html", "-o", path)
    page = path.read_text()
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    assert "unsafe" not in policy and policy.startswith("default-src 'none'")
    for kind in ("style", "script"):
        (inside,) = re.findall(f"<{kind}>(.*?)</{kind}>", page, re.S)
        assert f"{kind}-src 'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'" in policy
    for secret in world.home.path.rglob("*.jwks"):
        for key in json.loads(secret.read_text())["keys"]:
            assert key["k"] not in page
    browser = look(path)
    words = verdict(browser)
    assert words.startswith("Intact: ") or "has no Ed25519" in words
    seen = browser.script("return document.body.innerText")
    for each in ("Change two. </script><script>hacked()</script>", "Done, <b>really</b>.", "You are welcome, Rumpelstilz.", "approved by", "-two", "+2", "nobody was asked about read_file"):
        assert each in seen, each
    # What the model was told, folded, is what was sent.
    (box,) = [box for box in browser.css("details") if "what the model was told" in box.text][1:2]
    browser.script("arguments[0].open = true", box)
    browser.until(lambda: "its digest is that on record" in box.text, "the body")
    assert "Change two." in box.text
    # It plays from the beginning to the end.
    browser.script("document.getElementById('speed').value = '100'; document.getElementById('play').click()")
    browser.until(lambda: browser.script("return document.querySelectorAll('.entry:not([hidden])').length") > 3, "the beginning")
    browser.until(lambda: browser.script("return document.getElementById('play').textContent === 'Play' && !document.querySelector('.entry[hidden]')"), "the end")


def test_a_changed_page_says_so(world, look):
    page = world.export("notes", "--format", "html")[0]

    def forge(data):
        data["bundle"] = data["bundle"].replace("Rumpelstilz", "Rapunzel")
    path = world.root / "forged.html"
    path.write_text(with_data(page, forge))
    assert re.match(r"NOT intact: leaf \d+ was changed", verdict(look(path)))


def test_a_page_shows_no_other_content_of_a_file(world, look):
    page = world.export("notes", "--format", "html")[0]

    def forge(data):
        data["contents"] = {digest: content.replace("2", "forged") for digest, content in data["contents"].items()}
    path = world.root / "forged.html"
    path.write_text(with_data(page, forge))
    browser = look(path)
    assert "NOT" not in verdict(browser)
    seen = browser.script("return document.body.innerText")
    assert "its digest is another one" in seen and "+forged" not in seen


@pytest.mark.parametrize("change", ["longer salt", "shorter salt", "no salt", "another member of a leaf", "another member", "capital digits", "no text", "time stamp",
                                    "time stamp of half a byte"])
def test_a_bundle_of_another_form_is_not_intact(world, look, change):
    """What is hashed, salt and text, can be divided elsewhere without the key."""
    def forge(data):
        bundle = json.loads(data["bundle"])
        leaf = next(leaf for leaf in bundle["leaves"] if "Rumpelstilz" in leaf["text"])
        at = leaf["text"].index("Rumpelstilz")
        if change == "longer salt":
            leaf.update(salt=leaf["salt"] + leaf["text"][:at].encode().hex(), text=leaf["text"][at:])
        elif change == "shorter salt":
            leaf = next(leaf for leaf in bundle["leaves"] if int(leaf["salt"][-2:], 16) in range(32, 127))
            leaf.update(salt=leaf["salt"][:-2], text=bytes.fromhex(leaf["salt"][-2:]).decode() + leaf["text"])
        elif change in ("no salt", "no text"):
            del leaf[change[3:]]
        elif change == "capital digits":
            leaf["hash"] = leaf["hash"].upper()
        else:
            {"another member of a leaf": leaf}.get(change, bundle)["time_stamp" if "stamp" in change else "note"] = "0" if "half" in change else "zz"
        data["bundle"] = json.dumps(bundle)
    path = world.root / "forged.html"
    path.write_text(with_data(world.export("notes", "--format", "html")[0], forge))
    assert verdict(look(path)).startswith("NOT intact: ")


def test_half_a_character_is_not_the_one_that_was_hashed(world, look):
    page, path = world.export("notes", "--format", "html")[0], world.root / "half.html"
    bundle = bundle_of([json.dumps({"kind": "said", "text": "\ufffd"}, ensure_ascii=False)])
    path.write_text(with_data(page, lambda data: data.update(bundle=bundle.replace("\\ufffd", "\\ud800"), bodies=[], contents={})))
    assert verdict(look(path)) == "NOT intact: leaf 1 has another form."


def test_a_withdrawn_question_is_nobodys_rejection(world, look):
    page = world.export("notes", "--format", "html")[0]
    leaves = [json.dumps({"kind": "rejected", "turn": "int_001", "event": {"call_id": "call_1", "at": "2026-01-01T00:00:00.000Z", "superseded": True}})]
    path = world.root / "withdrawn.html"
    path.write_text(with_data(page, lambda data: data.update(bundle=bundle_of(leaves), bodies=[], contents={})))
    browser = look(path)
    verdict(browser)
    seen = browser.script("return document.body.innerText")
    assert "withdrawn: the call has changed" in seen and "rejected by" not in seen


@pytest.mark.parametrize("width", [320, 360])
def test_a_page_fits_a_narrow_window(world, look, width):
    path = world.root / "notes.html"
    world.export("notes", "--format", "html", "-o", path)
    browser = look(path)
    verdict(browser)
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 700, "deviceScaleFactor": 1, "mobile": True})
    whole, seen, place = browser.script("const page = document.documentElement; return [page.scrollWidth, page.clientWidth, document.getElementById('place').clientWidth]")
    assert whole <= seen == width and place >= 100


def test_a_key_that_is_none_is_not_blamed_on_the_browser(world, look):
    def forge(data):
        bundle = json.loads(data["bundle"])
        statement = json.loads(bundle["statement"])
        statement["key"] = statement["key"][2:]
        data["bundle"] = json.dumps(bundle | {"statement": json.dumps(statement)})
    path = world.root / "forged.html"
    path.write_text(with_data(world.export("notes", "--format", "html")[0], forge))
    assert verdict(look(path)) == "NOT intact: the key does not have 32 bytes."


def test_a_damaged_chat_has_no_page(world):
    world.server.check_files = world.server.check_records = False
    world.server.stop()
    file = world.home.checkpoint_file("notes", "int_001")
    file.write_text(file.read_text()[:100])
    out = world.root / "notes.html"
    written, said = world.export("notes", "--format", "html", "-o", out, status=1)
    assert "the chat is damaged (`reprise verify notes`" in said and "written" not in written and not out.exists()
    written, said = world.export("--format", "html", "-o", f"{world.root}/all/", status=1)
    assert "written" not in written and not list((world.root / "all").iterdir())


def bundle_of(texts):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    key = Ed25519PrivateKey.generate()
    leaves = []
    for index, each in enumerate(texts):
        salt = hashlib.sha256(str(index).encode()).digest()
        leaves.append({"hash": hashlib.sha256(b"\0" + salt + each.encode()).hexdigest(), "salt": salt.hex(), "text": each})

    def root(hashes):
        if len(hashes) == 1:
            return hashes[0]
        left = 1 << (len(hashes) - 1).bit_length() - 1
        return hashlib.sha256(b"\1" + root(hashes[:left]) + root(hashes[left:])).digest()
    statement = json.dumps({"type": "reprise-proof", "version": 1, "leaves": len(leaves), "root": root([bytes.fromhex(each["hash"]) for each in leaves]).hex(),
                            "key": key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex(), "made_at": "now", "program": "a test"})
    return json.dumps({"statement": statement, "signature": key.sign(b"reprise-proof-1\n" + statement.encode()).hex(), "leaves": leaves})


def busy(browser):
    """Seconds that the page's thread has worked."""
    return next(each["value"] for each in browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"] if each["name"] == "TaskDuration")


FRAMES = """
const done = arguments[arguments.length - 1], frames = [];
let last = performance.now();
document.getElementById('speed').value = '100';
document.getElementById('play').click();
const tick = now => {
  frames.push(now - last); last = now;
  if (document.getElementById('play').textContent === 'Play') return done(frames.slice(1));
  requestAnimationFrame(tick);
};
requestAnimationFrame(tick);
"""


def test_5000_events_with_hostile_texts_play_smoothly_and_do_nothing(world, look):
    page = world.export("notes", "--format", "html")[0]
    begin = datetime.datetime(2026, 1, 1)
    kinds = ["said", "thinking", "answer", "tool_call", "tool_result", "approved", "rejected", "files_changed", "approval_required", "input_required", "strange", "request"]
    texts = []
    for i in range(5000):
        kind, one, two = kinds[i % len(kinds)], HOSTILE[i % len(HOSTILE)] + str(i), HOSTILE[(i * 7 + 3) % len(HOSTILE)]
        event = {"at": (begin + datetime.timedelta(milliseconds=80 * i)).isoformat(timespec="milliseconds") + "Z", "id": two + str(i // 12), "tool_name": two,
                 "tool_input": one, "tool_output": one, "content": one, "answered_by": two, "scope": one, "feedback": one, "reason": two, "question": one,
                 "changes": [{"path": one, "before": {"digest": two}, "after": {"digest": "sha256:x"}}]}
        texts.append(json.dumps({"kind": kind, "turn": "int_001", "text": one, "title": two, "model": two, "address": one, "event": event}, ensure_ascii=i % 2 == 0))
    path = world.root / "hostile.html"
    path.write_text(with_data(page, lambda data: data.update(bundle=bundle_of(texts), bodies=[], contents={"sha256:x": HOSTILE[1]})))
    browser = look(path)
    words = verdict(browser)
    assert "5000 leaves" in words and "NOT" not in words
    assert browser.script("return document.querySelectorAll('main img, main script, main svg, main iframe, main a, main style, main meta, main base, main b:not(.card > b)').length") == 0
    assert browser.script("return document.querySelectorAll('.entry').length") >= 5000
    browser.script("for (const box of [...document.querySelectorAll('details')].slice(0, 50)) box.open = true")
    hidden, named = browser.script("const words = document.getElementById('main').textContent; return [/[\\0\\u2028\\u2029\\u202e]/.test(words), words.includes('<U+202E>')]")
    assert named and not hidden, "what cannot be seen, or turns what can, is named"
    browser.driver.set_script_timeout(60 * SLACK)
    # The page's own time, because a busy machine draws fewer frames.
    browser.driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    before = busy(browser)
    frames = sorted(browser.driver.execute_async_script(FRAMES))
    worked = busy(browser) - before
    print(f"{worked:.1f} s of work for {len(frames)} frames; median {frames[len(frames) // 2]:.0f} ms, 95 of 100 within {frames[len(frames) * 95 // 100]:.0f} ms, longest {frames[-1]:.0f} ms")
    assert worked < 4 * SLACK  # seconds that it plays
    # Any place is reached at once.
    took = browser.script("const place = document.getElementById('place'), from = performance.now();"
                          "for (const at of [0, 5000, 2500, 1, 4999]) { place.value = at; place.dispatchEvent(new Event('input')); document.body.offsetHeight; }"
                          "return (performance.now() - from) / 5")
    print(f"{took:.0f} ms to any place")
    assert took < 200 * SLACK


# --- ATIF 1.7, as its RFC (Harbor, 0001-trajectory-format) says

ATIF = jsonschema.Draft7Validator(json.loads((DATA / "atif-1.7.schema.json").read_text()))


def check_atif(trajectory):
    """By the schema, and by what it cannot say."""
    assert [error.message for error in ATIF.iter_errors(trajectory)] == []
    below = [each["trajectory_id"] for each in trajectory.get("subagent_trajectories", [])]
    assert len(set(below)) == len(below)
    for number, step in enumerate(trajectory["steps"], 1):
        assert step["step_id"] == number
        datetime.datetime.fromisoformat(step["timestamp"].replace("Z", "+00:00"))
        ids = [each["tool_call_id"] for each in step.get("tool_calls", [])]
        assert len(set(ids)) == len(ids)
        for result in step.get("observation", {"results": []})["results"]:
            assert result.get("source_call_id") in {*ids, None}
            assert {ref["trajectory_id"] for ref in result.get("subagent_trajectory_ref", [])} <= set(below)
    for each in trajectory.get("subagent_trajectories", []):
        check_atif(each)


def taken_out(trajectory, *members):
    """The trajectory without members of these names, wherever they are, and without what is empty then."""
    if isinstance(trajectory, list):
        return [taken_out(each, *members) for each in trajectory]
    if not isinstance(trajectory, dict):
        return trajectory
    kept = {name: taken_out(value, *members) for name, value in trajectory.items() if name not in members}
    return {name: value for name, value in kept.items() if value != {} or trajectory[name] == {}}


def test_atif_is_what_its_specification_says(world):
    trajectory = json.loads(world.export("notes", "--format", "atif")[0])
    check_atif(trajectory)
    steps = trajectory["steps"]
    assert [step["source"] for step in steps] == ["user", "agent", "agent", "agent", "user", "agent"]
    assert [each["function_name"] for step in steps for each in step.get("tool_calls", [])] == ["read_file", "write_file"]
    assert steps[2]["tool_calls"][0]["extra"]["approval"]["decision"] == "approved" and steps[1]["reasoning_content"].strip() == "Where is it?"
    assert all("content" in each for step in steps for each in step.get("observation", {"results": []})["results"])
    assert steps[-1]["message"] == "You are welcome, Rumpelstilz." and steps[-1]["metrics"] == {"prompt_tokens": 11, "completion_tokens": 7}
    assert world.client.get("/chats/notes/export?format=atif").expect(200).json == trajectory
    world.export("--format", "atif", "-o", f"{world.root}/all/")
    assert json.loads((world.root / "all" / "notes.json").read_text()) == trajectory
    assert "one branch" in world.export("notes", "--format", "atif", "--branches", "all", status=2)[1]


def test_atif_of_every_kind_of_chat_is_what_its_specification_says(make_home, tmp_path):
    """Of the recorded chats of every kind, of sessions of other tools, and of version 0.1, whose chats have every status and one has no message."""
    home = make_home()
    recorded = [SUITE / f"{name}.json" for name in CHATS if not (SUITE / name).is_dir()]
    sessions = sorted({path for path in (DATA / "moves").iterdir() if path.is_dir()})
    for paths in (recorded, *([path] for path in sessions)):
        assert reprise(home, "import", *paths, "--data-dir", home.data)[0] == 0, paths
    shutil.copytree(DATA / "old_store/plain", tmp_path / "old")
    for folder, more in ((home.data, []), (home.data, ["--redact", "--redact-word", "the"]), (tmp_path / "old", ["--plain"])):
        reprise(home, "export", "--format", "atif", "-o", f"{tmp_path}/out/", "--force", "--data-dir", folder, *more)
        made = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "out").iterdir()}
        for trajectory in made.values():
            check_atif(trajectory)
    assert len(made) > len(CHATS) + len(sessions) + 20
    assert [step["source"] for step in made["empty"]["steps"]] == ["system"]


def moved(world, trajectory):
    """A trajectory that was imported and exported again."""
    (world.root / "moved.json").write_text(json.dumps(trajectory))
    done = subprocess.run([str(BINARY), "import", "moved.json", "--json", "--data-dir", str(world.home.data)], cwd=world.root, env=world.home.environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SOON, check=True)
    again = json.loads(world.export(json.loads(done.stdout)["imported"][0]["chat_id"], "--format", "atif")[0])
    check_atif(again)
    return again


def test_atif_comes_back_as_it_went_but_for_what_the_documentation_names(world, provider):
    provider.plan(tools(call("read_file", {"path": "none"}, "call_1")), text("There is none."))
    world.client.turn("notes", "And none?")
    ours = json.loads(world.export("notes", "--format", "atif")[0])
    again = moved(world, ours)
    assert [each["extra"]["is_error"] for step in again["steps"] for each in step.get("observation", {"results": []})["results"] if "extra" in each] == [True]
    assert taken_out(again, "trajectory_id") == taken_out(ours, "trajectory_id", "approval", "files")
    theirs = json.loads((DATA / "moves/atif/trajectory.json").read_text())
    again = moved(world, theirs)
    lost = ("session_id", "trajectory_id", "trajectory_path", "agent", "schema_version", "step_id", "timestamp", "cost_usd", "model_name", "extra", "final_metrics")
    spoken = [step for step in theirs["steps"] if step["source"] != "system"]
    assert taken_out(again["steps"], *lost) == plain_text(taken_out(spoken, *lost))
    assert taken_out(again["subagent_trajectories"][0]["steps"], *lost) == taken_out(theirs["subagent_trajectories"][0]["steps"][1:], *lost)


def plain_text(value):
    """Content of one text part as the text itself."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) and value[0].get("type") == "text":
        return value[0]["text"]
    if isinstance(value, list):
        return [plain_text(each) for each in value]
    return {name: plain_text(each) for name, each in value.items()} if isinstance(value, dict) else value


def test_a_session_of_claude_code_has_every_message_and_branch(world, provider):
    provider.plan(text("Another way."))
    world.client.edit("notes", "int_002", "No thanks!").finish()
    lines = [json.loads(line) for line in world.export("notes", "--format", "claude-code")[0].splitlines()]
    by_id = {line["uuid"]: line for line in lines}
    assert len(by_id) == len(lines) and all(line["parentUuid"] is None or line["parentUuid"] in by_id for line in lines)
    calls = [block for line in lines if line["type"] == "assistant" for block in line["message"]["content"] if block["type"] == "tool_use"]
    results = [block for line in lines if line["type"] == "user" and isinstance(line["message"]["content"], list) for block in line["message"]["content"]]
    assert [each["id"] for each in calls] == [each["tool_use_id"] for each in results] == ["call_1", "call_2"]
    first, second = ([line for line in lines if line["message"]["content"] == words] for words in ("Thanks!", "No thanks!"))
    assert first[0]["parentUuid"] == second[0]["parentUuid"] is not None
    head = world.client.get("/chats/notes/export?format=claude-code").expect(200).body.decode().splitlines()
    assert len(head) == len(lines) - 2 and "No thanks!" in head[-2]


@pytest.mark.parametrize("form", ["json", "html", "markdown", "jsonl", "atif", "claude-code"])
def test_secrets_and_names_are_taken_out_of_every_format(world, provider, form):
    out = world.root / "out"
    said = world.export("notes", "--format", form, "--redact-word", "Rumpelstilz", "--dry-run")
    assert not list(world.home.path.rglob("proof.jwks")), "a dry run writes nothing"
    assert said[0] == "" and "would be taken out: a token of GitHub" in said[1] and "would be taken out: the text \"Rumpelstilz\"" in said[1]
    written, said = world.export("notes", "--format", form, "--redact-word", "Rumpelstilz")
    assert "taken out: a token of GitHub" in said and KEY not in said
    assert KEY not in written and "Rumpelstilz" not in written and base64.b64encode(KEY.encode()).decode()[4:-4] not in written
    assert "Change two." in written
    assert not out.exists()
    provider.plan(text("Hello."))
    world.client.turn("clean", "Hi")
    assert "nothing to take out" in world.export("clean", "--format", form, "--redact")[1]
    assert "three characters" in world.export("notes", "--redact-word", "ab", status=2)[1]


@pytest.mark.parametrize("form", ["json", "html", "markdown", "jsonl", "atif", "claude-code"])
def test_the_preview_counts_what_goes(world, provider, form):
    provider.plan(text("Zanzibar? Zanzibar!"))
    world.client.turn("isles", "To Zanzibar.")
    flags = ["--format", form, "--redact-word", "Zanzibar"]
    preview = world.export("isles", *flags, "--dry-run")[1]
    counted = int(re.search(r'the text "Zanzibar", (\d+) time', preview).group(1))
    for target in ([], ["-o", f"{world.root}/folder/"]):
        written, said = world.export("isles", *flags, *target)
        assert said.replace("taken out", "would be taken out") == preview
        whole = written + "".join(path.read_text() for path in (world.root / "folder").glob("*") if target)
        assert form == "html" or len(re.findall("x{8}", whole)) == counted, whole


@pytest.mark.parametrize("form", ["json", "html", "markdown", "jsonl", "atif", "claude-code"])
def test_texts_that_json_spells_in_another_way_are_taken_out(world, provider, look, form):
    arguments = r'{"path":"abcd\/efgh\/1234567","who":"Jos\u00E9 Kr\u00FCger","token":"\u0067hp_' + KEY[4:] + '"}'
    provider.plan(tools(call("read_file", arguments, "call_1")), text("Done."))
    world.client.turn("spelled", "Go on.")
    words = ["--redact-word", "abcd/efgh/1234567", "--redact-word", "José Krüger"]
    written, said = world.export("spelled", "--format", form, *words)
    assert "a token of GitHub" in said and "José" in said
    gone = re.compile(r"abcd[\\/]|efgh|Jos[é\\]|" + KEY[4:])
    assert not gone.search(written), gone.search(written)
    if form == "html":
        path = world.root / "spelled.html"
        path.write_text(written)
        browser = look(path)
        verdict(browser)
        assert not gone.search(browser.script("return document.body.innerText"))


@pytest.mark.parametrize("what", ["pins", "pins/int_001"])
@pytest.mark.parametrize("form", ["json", "markdown", "jsonl", "atif", "claude-code"])
def test_digests_are_of_what_is_left(world, provider, form, what):
    arguments = [json.dumps({"path": "pin.txt", "content": "pin z4711"}), json.dumps({"path": "other.txt", "content": "other"})]
    provider.plan(tools(call("write_file", arguments[0], "call_1")), tools(call("write_file", arguments[1], "call_2")), text("Done."))
    stream = world.client.start("pins", "Save it.")
    for scope in ("chat", "once"):
        world.client.approve("pins", "int_001", stream.until("approval_required")["approval_id"], scope=scope).expect(200)
    stream.finish()
    secret, other, content, kept = (hashlib.sha256(each.encode()).hexdigest() for each in (*arguments, "pin z4711", "other"))
    plain, taken = world.export(what, "--format", form)[0], world.export(what, "--format", form, "--redact-word", "z4711")[0]
    assert secret not in taken and content not in taken and "z4711" not in taken
    for digest in (other, kept):
        assert (digest in taken) == (digest in plain)


def test_no_digest_is_left_to_guess_a_text_by(world, provider):
    (world.root / "pin").write_text("z4711")  # no digits of a digest
    provider.plan(tools(call("run_shell", {"command": "printf 'pin=%s' $(cat pin) > out.cfg; printf fine > other.cfg"}, "call_1")), text("Done."))
    stream = world.client.start("pins", "Run it.")
    world.client.approve("pins", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    digests = [f"sha256:{hashlib.sha256(f'pin=z{pin}'.encode()).hexdigest()}" for pin in (4711, 4712)]
    page = world.export("pins", "--format", "html")[0]
    assert digests[0] in page and digests[1] not in page
    page, said = world.export("pins", "--format", "html", "--redact-word", "z4711")
    assert digests[0] not in page and "z4711" not in page and 'the text "z4711"' in said
    bundle = json.loads(json.loads(re.search(r'(?<=id="data">).*?(?=</script>)', page, re.S)[0])["bundle"])
    kept = {json.loads(leaf["text"])["kind"] for leaf in bundle["leaves"] if "text" in leaf}
    assert kept >= {"said", "tool_call", "answer"} and "files_changed" not in kept


def test_the_name_of_a_chat_is_taken_out_too(world, provider):
    provider.plan(text("Rumpelstilz is fine, RUMPELSTILZ too."))
    world.client.turn("x-Rumpelstilz-1", "Hello.")
    for form in ("json", "html", "markdown", "jsonl", "atif", "claude-code"):
        world.export("x-Rumpelstilz-1", "--format", form, "--redact-word", "Rumpelstilz", "-o", f"{world.root}/{form}/")
        (file,) = (world.root / form).iterdir()
        assert file.stem == "x-xxxxxxxxxxx-1" and "Rumpelstilz" not in file.read_text() and ("RUMPELSTILZ too" in file.read_text()) == (form != "html"), form
    assert "three characters" in world.export("notes", "--redact-word", "äö", status=2)[1]


def test_files_that_are_left_out_are_counted(world, provider):
    provider.plan(text("Thanks."))
    file = world.client.request("POST", "/chats/plans/files?name=plan.txt", b"the plan of acme", headers={"Content-Type": "text/plain"}).expect(201).json["id"]
    world.client.turn("plans", "Here it is.", attachments=[file])
    flags, said = ["plans", "--redact-word", "acme"], "left out: 1 file or content of a file that holds such a text\n"
    assert said.replace("left", "would be left") in world.export(*flags, "--dry-run")[1]
    written, told = world.export(*flags)
    assert f"reprise: {said}" in told and not json.loads(written).get("files")

    write = call("write_file", {"path": "pin.txt", "content": "pin z4711"}, "call_1")
    provider.plan(tools(write), text("Done."))
    stream = world.client.start("pins", "Save it.")
    world.client.approve("pins", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    for what in ("pins", "pins/int_001"):
        assert said in world.export(what, "--redact-word", "z4711")[1], what
        assert "left out" not in world.export(what, "--redact-word", "Save it")[1], what


def test_a_file_in_place_of_the_folder_is_named(world):
    there = world.root / "there.json"
    there.write_text("mine")
    for more in ([], ["--force"]):
        said = world.export("notes", "-o", there, *more, status=2)[1]
        assert f"{there} is a file; " in said and "mkdir" not in said
    assert there.read_text() == "mine"


@pytest.mark.parametrize("form", ["markdown", "atif", "jsonl"])
def test_words_in_names_and_titles_leave_no_turn_as_it_was(world, provider, form):
    provider.plan(tools(call("list_files", {})), failure(400, "not now"), text("An interior of Rumpelstilz."))
    world.client.turn("resumed", "Rumpelstilz, what is here?", "FAILED")
    world.client.stream("POST", "/chats/resumed/interactions/int_001/resume", {}).finish()
    written = world.export("resumed", "--format", form, "--redact-word", "Rumpelstilz", "--redact-word", "int")[0]
    assert "Rumpelstilz" not in written and "interior" not in written and "xxxerior" in written
