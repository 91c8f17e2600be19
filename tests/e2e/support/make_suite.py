"""Records the chats of tests/data/suite, one of every kind, with the program of today and scripted providers.

    python3 tests/e2e/support/make_suite.py            records all chats anew
    python3 tests/e2e/support/make_suite.py NAME...    records these alone
    python3 tests/e2e/support/make_suite.py --update   keeps them, and accepts what the program of today tells models otherwise

REPRISE_BIN names the program (default: build/release/reprise). Each function below that is marked with @chat records the chat of its name, so a new chat is a new
function. They are recorded in a home at a fixed place, with the configuration tests/data/suite.config.json. Checks beside a chat are written by hand and stay.
`--update` runs `reprise test --update`, which writes NAME.accepted.json beside the chats.

The chats of tests/data/suites (@public) are agents' tests that others have published, written anew: a folder each, with checks beside the chat.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import anthropic, documents, responses  # noqa: E402
from support.mcp import server_of  # noqa: E402
from support.provider import Gate, Provider, Reply, call, delta, ending, failure, text, tools  # noqa: E402
from support.server import BINARY, ROOT, Home, Server, reprise  # noqa: E402
from support.timing import eventually  # noqa: E402

SUITE = ROOT / "tests/data/suite"
SUITES = ROOT / "tests/data/suites"
CONFIG = ROOT / "tests/data/suite.config.json"
HOME = pathlib.Path(tempfile.gettempdir()) / "reprise-suite"  # recorded paths do not depend on who records
UNREACHABLE = "http://127.0.0.1:9"
CLAUDE, RESPONSES, SMALL = {"model": "claude/scripted"}, {"model": "responses/scripted"}, {"model": "chat/small"}
FREELY = {"approval_mode": "approve_all"}
LONG = "Grüße an 東京, \U0001f986 und e\u0301, \u202bשלום\u202c: \"a\\b\"\n\t\u2028 und so weiter. " * 60
FOLDERS = ("files", "attachments")  # chats whose checks or requests need what their files held
CHATS = {}
PUBLIC = {}


def chat(**config):
    """Marks the function that records the chat of its name, on a server with these settings more."""
    return lambda function: CHATS.setdefault(function.__name__, (function, config))[0]


def public(**config):
    """The same for a suite of its own."""
    return lambda function: PUBLIC.setdefault(function.__name__, (function, config))[0]


def write(path="otter.txt", content="An otter.\n", call_id="w"):
    return call("write_file", {"path": path, "content": content}, call_id)


# --- answers, and several turns ---------------------------------------------------------------------------------------

@chat()
def plain(server, provider):
    provider.plan(text("Hello."), text(LONG), text("Yes, twice."))
    for message in ("Say hello.", "Repeat this: " + LONG, "Was it long?"):
        server.client.turn("plain", message)


@chat()
def responses_turns(server, provider):
    thought = responses.reasoning("They greet me.", "c2VhbGVk")
    provider.plan(responses.message(thought, responses.say("Hello.")), responses.message(responses.say("An otter.")), responses.message(responses.say("No.")))
    for message in ("Say hello.", "Who lives in the river?", "Is that all?"):
        server.client.turn("responses_turns", message, **RESPONSES)


@chat()
def thinking(server, provider):
    thought = anthropic.thinking("A file is wanted.", "c2lnbmVk")
    provider.plan(anthropic.message(thought, anthropic.redacted("aGlkZGVu"), anthropic.use("list_files", {})),
                  anthropic.message(anthropic.thinking("It is empty.", "c2lnbmVkIHRvbw=="), anthropic.say("There is nothing.")),
                  anthropic.message(anthropic.say("Sure.")))
    for message in ("What is here?", "Are you sure?"):
        server.client.turn("thinking", message, **CLAUDE)


@chat()
def extras(server, provider):
    """Members of an answer that chat completions do not define go back to their provider."""
    details = [{"type": "reasoning.text", "text": "I think", "signature": "S", "format": "f", "index": 0}]
    one = {"index": 0, "extra_content": {"google": {"thought_signature": "c2ln"}}, **call("echo", {"text": "a"})}
    thought = {"role": "assistant", "content": None, "reasoning_content": "I think", "reasoning_details": details}
    provider.plan(Reply([delta(thought), delta({"tool_calls": [one]}), *ending("tool_calls")]), text("It said a."), text("Again."))
    for message in ("Echo a.", "And?"):
        server.client.turn("extras", message)


# --- tools ------------------------------------------------------------------------------------------------------------

STEPS = [("write_file", {"path": "notes.md", "content": "# Otters\n\nThey swim.\nThey sleep.\n"}), ("read_file", {"path": "notes.md"}),
         ("edit_file", {"path": "notes.md", "old_text": "They sleep.", "new_text": "They sleep – “much”."}), ("search_files", {"pattern": "swim"})]


@chat()
def files(server, provider):
    provider.plan(*[tools(call(name, arguments, f"call_{at}"), say="Next." if at else "") for at, (name, arguments) in enumerate(STEPS)],
                  text("It is written."))
    server.client.turn("files", "Write about otters, then find what swims.", **FREELY)


@chat()
def files_claude(server, provider):
    provider.plan(*[anthropic.message(anthropic.say("Next."), anthropic.use(name, arguments, f"toolu_{at}")) for at, (name, arguments) in enumerate(STEPS)],
                  anthropic.message(anthropic.say("It is written.")), anthropic.message(anthropic.say("Otters do.")))
    server.client.turn("files_claude", "Write about otters, then find what swims.", **FREELY, **CLAUDE)
    server.client.turn("files_claude", "So who swims?", **CLAUDE)


@chat()
def files_responses(server, provider):
    provider.plan(*[responses.message(responses.use(name, arguments, f"call_{at}", f"fc_{at}")) for at, (name, arguments) in enumerate(STEPS)],
                  responses.message(responses.say("It is written.")))
    server.client.turn("files_responses", "Write about otters, then find what swims.", **FREELY, **RESPONSES)


@chat()
def together(server, provider):
    for name in "ab":
        (server.home.workspace / f"{name}.txt").write_text(f"This is {name}.\n")
    provider.plan(tools(*[call(name, arguments, f"call_{at}") for at, (name, arguments) in enumerate(
        [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"}), ("read_file", {"path": "c.txt"}), ("list_files", {})])]), text("Two of three."))
    server.client.turn("together", "Read a, b and c.")


# --- people -----------------------------------------------------------------------------------------------------------

def asked(server, name, message="Write about an otter.", **answer):
    stream = server.client.start(name, message)
    server.client.approve(name, stream.interaction, stream.until("approval_required")["approval_id"], **answer).expect(200)
    stream.finish()


@chat()
def approved(server, provider):
    """As it is, and with other arguments."""
    provider.plan(tools(write()), text("Written."), tools(write("heron.txt", "A heron.\n")), text("Written, as you like it."))
    asked(server, "approved")
    asked(server, "approved", "And about a heron.", arguments={"path": "herons.txt", "content": "Two herons.\n"})


@chat()
def rejected(server, provider):
    provider.plan(tools(write()), text("Then not."))
    asked(server, "rejected", approved=False, feedback="Not in this folder.")


@chat()
def question(server, provider):
    provider.plan(tools(call("ask_human", {"question": "Which colour?", "options": ["red", "blue"]})), text("Painted."))
    stream = server.client.start("question", "Paint it.")
    server.client.respond("question", stream.interaction, stream.until("input_required")["request_id"], "grün").expect(200)
    stream.finish()


@chat()
def plan(server, provider):
    """A plan is presented and approved, then the work is done."""
    server.client.post("/chats", {"id": "plan"}).expect(201)
    server.client.request("PATCH", "/chats/plan", {"approval_mode": "plan"}).expect(200)
    provider.plan(tools(write()), tools(call("present_plan", {"plan": "1. Write otter.txt"}, "p")), tools(write(call_id="w2")), text("Done as planned."))
    stream = server.client.start("plan", "Write about an otter.")
    server.client.approve("plan", "int_001", stream.until("approval_required")["approval_id"], mode="auto").expect(200)
    stream.finish()


# --- failures ---------------------------------------------------------------------------------------------------------

@chat()
def retried(server, provider):
    provider.plan(failure(503, "busy"), text("Now it works."))
    server.client.turn("retried", "Hello?")


@chat()
def cut(server, provider):
    provider.plan(anthropic.message(anthropic.say("Half a sen"), stop_reason="max_tokens"), anthropic.message(anthropic.say("tence.")))
    for message in ("Tell me much.", "Go on."):
        server.client.turn("cut", message, **CLAUDE)


@chat()
def failed(server, provider):
    provider.plan(failure(400, "not like this"), text("But like that."))
    server.client.turn("failed", "Hello?", "FAILED")
    server.client.turn("failed", "And now?")


@chat()
def cancelled(server, provider):
    gate = Gate()
    provider.plan(text("Some words ", gate), text("Still here."))
    stream = server.client.start("cancelled", "Tell me much.")
    gate.wait_reached()
    stream.until("text_delta")
    server.client.cancel("cancelled", stream.interaction).expect(200)
    stream.finish("CANCELLED")
    server.client.turn("cancelled", "Are you there?")


@chat()
def resumed(server, provider):
    provider.plan(tools(call("list_files", {})), failure(400, "not now"), text("It is empty."))
    server.client.turn("resumed", "What is here?", "FAILED")
    server.client.stream("POST", "/chats/resumed/interactions/int_001/resume", {}).finish()


# --- branches ---------------------------------------------------------------------------------------------------------

@chat()
def branch(server, provider):
    provider.plan(text("An otter."), text("It swims."), text("It flies."), text("Far."))
    for message in ("Who is it?", "What does it do?"):
        server.client.turn("branch", message)
    server.client.edit("branch", "int_002", "What would it do with wings?").finish()
    server.client.turn("branch", "How far?")


@chat()
def regenerated(server, provider):
    provider.plan(text("Perhaps."), text("Certainly."), text("Yes."))
    server.client.turn("regenerated", "Is it an otter?")
    server.client.stream("POST", "/chats/regenerated/interactions/int_001/regenerate", {}).finish()
    server.client.turn("regenerated", "Really?")


# --- long chats -------------------------------------------------------------------------------------------------------

@chat()
def summary(server, provider):
    """One that a person asked for, and then those that a small window needs."""
    def answer(request):
        is_question = request.last["content"].startswith("Question")
        return text(f"Answer {len(request.messages)}: " + "a long word " * 150 if is_question else "They talked.")

    provider.answer_with(answer)
    for number in range(9):
        server.client.turn("summary", f"Question {number}: " + "what is it? " * 120, **SMALL)
        if number == 2:
            server.client.stream("POST", "/chats/summary/compact", {}).finish()


@chat()
def cleared(server, provider):
    for number in range(7):
        (server.home.workspace / f"part{number}.txt").write_text(f"A line of part {number}.\n" * 150)
        provider.plan(tools(call("read_file", {"path": f"part{number}.txt"}, f"call_{number}")), text(f"I have read part {number}."))
        server.client.turn("cleared", f"Read part {number}.", **SMALL)


# --- more than a conversation -----------------------------------------------------------------------------------------

@chat()
def sub_agents(server, provider):
    provider.plan(tools(call("research", {"question": "Which animal is it?"}, "r")), tools(call("list_files", {}, "l")), text("An otter."),
                  text("It is an otter."))
    server.client.turn("sub_agents", "Find out who lives here.", **FREELY)


@chat()
def tasks(server, provider):
    steps = [("manage_tasks", {"action": "add", "title": "Pack"}), ("manage_tasks", {"action": "add", "title": "Drive", "status": "doing"}),
             ("manage_tasks", {"action": "update", "id": "1", "status": "done"}), ("manage_tasks", {"action": "list"}),
             ("update_plan", {"steps": ["Go", "Return"]})]
    provider.plan(tools(*[call(name, arguments, f"call_{at}") for at, (name, arguments) in enumerate(steps)]), text("Planned."), text("One is left."))
    for message in ("Plan the trip.", "What is left?"):
        server.client.turn("tasks", message)


@chat()
def attachments(server, provider):
    def add(name, kind, content):
        return server.client.request("POST", f"/chats/attachments/files?name={name}", content, headers={"Content-Type": kind}).expect(201).json["id"]
    given = [add("otter.png", "image/png", documents.png()), add("notes.txt", "text/plain", "Otters – they swim.\n".encode())]
    provider.plan(text("A square, and otters."), anthropic.message(anthropic.say("As I said.")), responses.message(responses.say("Once more.")))
    server.client.turn("attachments", "What is that?", attachments=given)
    server.client.turn("attachments", "And for you?", **CLAUDE)
    server.client.turn("attachments", "And you?", **RESPONSES)


@chat()
def web_search(server, provider):
    page = anthropic.page("https://wiki.example/Otter", "Otter – an article")
    said = [anthropic.say("I found: "), anthropic.say("Otters swim.", anthropic.cites(page, "swim"))]
    provider.plan(anthropic.message(anthropic.search("otters"), anthropic.found(page), *said), anthropic.message(anthropic.say("You are welcome.")))
    for message in ("Do otters swim?", "Thanks."):
        server.client.turn("web_search", message, model="searching/scripted")


@chat()
def web_search_responses(server, provider):
    words = "Otters swim."
    provider.plan(responses.message(responses.search("otters", "https://wiki.example/Otter"),
                                    responses.say(words, annotations=[responses.cites(words, "swim", "https://wiki.example/Otter", "Otter")])),
                  responses.message(responses.say("You are welcome.")))
    for message in ("Do otters swim?", "Thanks."):
        server.client.turn("web_search_responses", message, model="seeking/scripted")


@chat()
def client(server, provider):
    """A client of OpenAI's interface with instructions of its own."""
    provider.plan(text("Arr."), text("Arr, an otter."))
    messages = [{"role": "system", "content": "Speak like a pirate."}, {"role": "user", "content": "Say hello."}]
    for more in ([], [{"role": "assistant", "content": "Arr."}, {"role": "user", "content": "Who swims there?"}]):
        messages += more
        server.client.request("POST", "/v1/chat/completions", {"model": "reprise", "messages": messages}, headers={"X-Chat-Id": "client"}).expect(200)


BODY = """import json, sys
facts = json.load(sys.stdin)
print(json.dumps({"decision": "allow", "arguments": {**facts["arguments"], "path": "kept.txt"}}))"""


@chat(hooks=[{"event": "before_tool", "tool": "write_file", "command": [sys.executable, "-c", BODY], "timeout_s": 20}])
def hook(server, provider):
    """A hook changes where a file is written."""
    provider.plan(tools(write()), text("Written elsewhere."))
    server.client.turn("hook", "Write about an otter.", **FREELY)


def ready(server):
    eventually(lambda: any(each["state"] == "ready" for each in server.client.get("/tools").json["servers"]), "the MCP server is ready")


BREW = '{"name": "brew", "description": "Makes coffee.", "inputSchema": {"type": "object", "properties": {"cups": {"type": "integer"}}}}'


@chat(mcpServers={"kitchen": server_of(BREW, '"hot"')})
def mcp(server, provider):
    ready(server)
    provider.plan(tools(call("kitchen__brew", {"cups": 2}, "b")), text("It is hot."))
    server.client.turn("mcp", "Make coffee.", **FREELY)


MANY = ", ".join(f'{{"name": "t{n}", "description": "Number {n} " + "." * 300, "inputSchema": {{"type": "object"}}}}' for n in range(30))


@chat(mcpServers={"kitchen": server_of(f"{BREW}, {MANY}", '"hot"')})
def deferred(server, provider):
    ready(server)
    provider.plan(tools(call("search_tools", {"query": "coffee"}, "s")), tools(call("kitchen__brew", {}, "b")), text("It is hot."))
    server.client.turn("deferred", "Make coffee.", model="chat/medium", **FREELY)


# --- recording --------------------------------------------------------------------------------------------------------

def config_for(provider, more):
    """The suite's configuration, with this provider in place of the unreachable one."""
    words = CONFIG.read_text().replace(UNREACHABLE, provider.url.removesuffix("/v1"))
    return json.dumps({**json.loads(words), "mcpServers": {}, "disconnect_grace_s": 5, **more})


# --- agents' tests that others have published ---------------------------------------------------------------------------

WEATHER = '{"name": "get_weather", "description": "Weather of a city.", "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}'


@public(mcpServers={"travel": server_of(WEATHER, '"Fog, 14 degrees"')})
def trajectory(server, provider):
    """As in LangChain's agentevals: which tools an agent calls, in which order, and what it may not call."""
    ready(server)
    provider.plan(tools(call("travel__get_weather", {"city": "San Francisco"}, "w1")), tools(call("write_file", {"path": "plan.md", "content": "# Museum\n"}, "w2")),
                  text("It is foggy, so I planned a museum."))
    server.client.turn("trajectory", "Plan my day in San Francisco by the weather.", **FREELY)


@public()
def flag(server, provider):
    """As in the capture-the-flag examples of Inspect: an agent looks for a flag in files, within some messages, several times."""
    (server.home.workspace / "notes").mkdir()
    (server.home.workspace / "notes" / "old.txt").write_text("nothing here\n")
    (server.home.workspace / "notes" / "backup.txt").write_text("flag{herons-eat-fish}\n")
    provider.plan(tools(call("find_files", {"pattern": "**/*"}, "f1")), tools(call("search_files", {"pattern": "flag\\{"}, "f2")), text("The flag is flag{herons-eat-fish}."))
    server.client.turn("flag", "Find the flag in this folder and say it.", **FREELY)


@public()
def support(server, provider):
    """As in promptfoo's examples: an answer in JSON, without words that must not occur, cheap, judged by a program."""
    provider.plan(tools(call("calculator", {"expression": "3 * 19.90"}, "c1")), text('{"order": 17, "total": 59.7, "reply": "Sorry for the delay. Your total is 59.70."}'))
    server.client.turn("support", "Order 17 has three cups at 19.90. Answer as JSON with order, total and reply.")


def record(name):
    """Records the chat into the suite: as a document, or as a folder if its files matter."""
    HOME.mkdir()  # not where somebody else records
    provider = Provider()
    try:
        function, more = {**CHATS, **PUBLIC}[name]
        folder = SUITE if name in CHATS else SUITES / name
        server = Server(Home(HOME), config=config_for(provider, more))
        function(server, provider)
        server.close()
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(SUITE / name, ignore_errors=True)
        status, document, messages = reprise(server.home, "export", name, *(["-o", folder] if name in FOLDERS else []), "--data-dir", server.home.data)
        assert status == 0 and not provider.violations, (messages, provider.violations)
        if name not in FOLDERS:
            (folder / f"{name}.json").write_text(document)
    finally:
        provider.close()
        shutil.rmtree(HOME)


def command(home, *arguments, base=UNREACHABLE):
    """`reprise test` with the suite's configuration and none of this machine's. `base` is the address of its model providers."""
    config = home.path / "suite.config.json"
    config.write_text(CONFIG.read_text().replace(UNREACHABLE, base))
    config.chmod(0o600)
    return [BINARY, "test", *arguments, "--config", config, "--workspace", home.workspace]


def update(suite=SUITE):
    """Accepts what has changed in requests. Returns the program's exit status."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(folder)
        return subprocess.run(command(home, "--update", suite), env=home.environment(), check=False).returncode


def main(names):
    if names == ["--update"]:
        return update() or max(update(SUITES / name) for name in PUBLIC)
    for name in names or [*CHATS, *PUBLIC]:
        record(name)
        for folder in (SUITE, SUITES / name):
            (folder / f"{name}.accepted.json").unlink(missing_ok=True)
        print(name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
