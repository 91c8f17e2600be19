"""README.md and docs/: their commands run as written, and their lists match the program.

A block of commands is ```sh, followed by what the test does with it:
  ```sh test            bash runs it; it exits with 0 and prints what a following ```output block shows
  ```sh test waits      the same, in the background: it waits for a person, and the next block answers
  ```sh test stopped    the same, while the server is stopped
  ```sh skip=REASON     it is not run, for this reason
In an ```output block `...` stands for anything within a line and, alone on a line, for any lines. The blocks of a page share
one user's home and one server. Only 127.0.0.1:8000 is replaced in them, by the server's address.
"""
import dataclasses
import html
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import jsonschema
import pytest

from support import schemas
from support.mcp import server_of
from support.moving_picture import MovingPicture
from support.provider import call, text, tools
from support.server import BINARY, ROOT
from support.terminal import Terminal
from support.timing import SLACK, SOON, eventually

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]
LINKED = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "src" / "README.md", *sorted((ROOT / "schemas").glob("*.md"))]
ADDRESS = "127.0.0.1:8000"
MODES = {"test", "test waits", "test stopped"}


def name_of(page):
    return str(page.relative_to(ROOT))


@dataclasses.dataclass
class Block:
    line: int  # in the page, from 1
    language: str
    how: str  # the rest of the fence's first line
    text: str


def blocks(page):
    """The fenced blocks of a page."""
    found, block = [], None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if block is not None and line == "```":
            found.append(block)
            block = None
        elif block is not None:
            block.text += line + "\n"
        elif line.startswith("```"):
            language, _, how = line[3:].partition(" ")
            block = Block(number + 1, language, how.strip(), "")
    assert block is None, f"{name_of(page)}:{block.line}: the block has no end"
    return found


def prose(page):
    """A page's lines outside of fenced blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def commands(page):
    """Each block of commands with the ```output block that follows it, or None."""
    all_blocks = blocks(page)
    for block, after in zip(all_blocks, [*all_blocks[1:], None]):
        if block.language == "sh":
            yield block, after if after is not None and after.language == "output" else None


def as_pattern(expected):
    """A regular expression for what an ```output block allows."""
    lines = []
    for line in expected.rstrip("\n").split("\n"):
        lines.append(r"(?:.*\n)*" if line == "..." else ".*".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n")
    return re.compile("".join(lines))


def matches(expected, printed):
    return as_pattern(expected).fullmatch(printed.rstrip("\n") + "\n") is not None


class Walk:
    """A reader who follows a page in their own home."""

    def __init__(self, home):
        self.home = pathlib.Path(home)
        self.folder = self.home / "project"
        programs = self.home / "programs"
        for folder in (self.folder, programs, self.home / "tmp"):
            folder.mkdir(parents=True)
        (programs / "reprise").symlink_to(BINARY)
        kept = {name: value for name, value in os.environ.items() if name == "LANG" or name.endswith("SAN_OPTIONS")}
        self.environment = {**kept, "HOME": str(self.home), "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": str(self.home / "tmp")}
        self.log = self.home / "serve.log"
        self.server = None
        self.waiting = None  # the block in the background, its process and output
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.server = subprocess.Popen([str(BINARY), "serve", "--port", "0"], cwd=self.folder, env=self.environment,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        line = first_line(self.server.stdout, SOON)
        address = re.match(r"reprise listening on http://(127\.0\.0\.1:(\d+))\n", line)
        assert address, f"{line!r}; log: {self.log.read_text()[-2000:]}"
        self.address = address[1]
        self.environment["REPRISE_PORT"] = address[2]

    def stop(self):
        self.server.terminate()
        assert self.server.wait(SOON) == 0, self.log.read_text()[-2000:]
        self.server.stdout.close()

    def bash(self, block):
        return subprocess.Popen(["bash", "-euo", "pipefail", "-c", block.text.replace(ADDRESS, self.address)], cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def run(self, where, block, output):
        """Runs one block; `output` is what it should print, or None."""
        assert block.how in MODES, f"{where}: ```sh {block.how}"
        if block.how == "test waits":
            assert self.waiting is None, f"{where}: another block still waits"
            process = self.bash(block)
            self.waiting = (where, process, output)
            self.until_it_waits()
            return
        if block.how == "test stopped":
            self.stop()
        process = self.bash(block)
        self.finish(where, process, output, *communicate(process))
        if block.how == "test stopped":
            self.start()
        self.join()

    def until_it_waits(self):
        """Reads the block's output until it asks a question."""
        where, process, output = self.waiting
        printed = b""
        deadline = time.monotonic() + SOON
        while b"_required\n" not in printed:  # event: approval_required, event: input_required
            ready, _, _ = select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"{where} asks nothing: {printed.decode()[-2000:]}"
            more = os.read(process.stdout.fileno(), 65536)
            assert more, f"{where} ends without asking: {printed.decode()[-2000:]} {communicate(process)[1].decode()[-2000:]}"
            printed += more
        self.waiting = (where, process, output, printed)

    def join(self):
        """Waits for the end of the block in the background, which has its answer now."""
        if self.waiting is not None:
            where, process, output, printed = self.waiting
            self.waiting = None
            rest, errors = communicate(process)
            self.finish(where, process, output, printed + rest, errors)

    def finish(self, where, process, output, printed, errors):
        said = f"printed:\n{printed.decode()[-4000:]}\nerrors:\n{errors.decode()[-2000:]}\nlog:\n{self.log.read_text()[-2000:]}"
        assert process.returncode == 0, f"{where}: exit status {process.returncode}\n{said}"
        if output is not None:
            assert matches(output.text, printed.decode()), f"{where} should print:\n{output.text}\n{said}"

    def close(self):
        if self.waiting is not None:
            os.killpg(self.waiting[1].pid, signal.SIGKILL)
            self.waiting[1].communicate()
        if self.server.poll() is None:
            self.stop()


def communicate(process):
    try:
        return process.communicate(timeout=20 * SLACK)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, errors = process.communicate()
        raise AssertionError(f"does not end: {printed.decode()[-2000:]} {errors.decode()[-2000:]}") from None


def first_line(pipe, limit):
    deadline, line = time.monotonic() + limit, b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([pipe], [], [], max(0, deadline - time.monotonic()))
        byte = os.read(pipe.fileno(), 1) if ready else b""
        if not byte:
            break
        line += byte
    return line.decode()


@pytest.fixture
def walk(tmp_path):
    reader = Walk(tmp_path / "home")
    yield reader
    reader.close()


@pytest.mark.limit(120)
@pytest.mark.parametrize("page", [page for page in PAGES if any(block.how.startswith("test") for block, _ in commands(page))], ids=name_of)
def test_the_commands_of_a_page_do_what_it_says(page, walk):
    for block, output in commands(page):
        if not block.how.startswith("skip="):
            walk.run(f"{name_of(page)}:{block.line}", block, output)
    assert walk.waiting is None, f"{walk.waiting[0]}: no block answers it"


def test_things_to_try_in_the_shell_work(walk):
    """Runs the shell commands of the README's table. Commands of the client are looked up in its help."""
    tried = []
    for _, line in prose(README):
        row = re.fullmatch(r"\| [^|]+ \| `((?:reprise|curl) (?:\\\||[^|`])+)` \|", line)
        if row:
            tried.append(row[1])
            block = Block(0, "sh", "test", row[1].replace("\\|", "|"))
            walk.run(f"README.md: {row[1]}", block, None)
    assert tried


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_block_of_commands_is_run_or_says_why_not(page):
    for block in blocks(page):
        where = f"{name_of(page)}:{block.line}"
        if block.language == "sh":
            assert block.how in MODES or re.fullmatch(r"skip=\S.{5,}", block.how), f"{where}: ```sh {block.how}"
        else:
            assert block.language, f"{where}: the block has no language"
            assert block.language not in ("bash", "shell", "console"), f"{where}: blocks of commands are ```sh"
            hidden = re.search(r"^(?:\$ |curl |reprise |scripts/)", block.text, re.M) if block.language != "output" else None
            assert not hidden, f"{where}: blocks of commands that are run are ```sh"
    after_blank = True
    for number, line in prose(page):
        assert not (after_blank and line.startswith("    ")), f"{name_of(page)}:{number}: a block without a fence has no language"
        after_blank = line == ""


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_output_belongs_to_commands(page):
    all_blocks = blocks(page)
    for before, block in zip([None, *all_blocks], all_blocks):
        if block.language == "output":
            assert before is not None and before.language == "sh", f"{name_of(page)}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_fit_a_screen(page):
    long = [f"{name_of(page)}:{number}" for number, line in enumerate(page.read_text().splitlines(), 1) if len(line) > 160]
    assert not long


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 150


def test_each_first_step_is_linked_and_takes_less_than_a_minute():
    """At 200 words a minute, commands and tables included. The README links to each step after the first."""
    page = ROOT / "docs" / "first-steps.md"
    for step in re.split(r"(?m)^## ", page.read_text())[1:]:
        words = re.sub(r"```\S*(?: .*)?|\]\([^)]*\)", " ", step).split()
        assert len(words) <= 200, step.splitlines()[0]
    linked = re.findall(r"\(docs/first-steps\.md#([^)]+)\)", README.read_text())
    assert linked == [anchor for anchor in anchors(page) if anchor[0].isdigit() and int(anchor[0]) > 2]


def anchors(page):
    """The anchors that a viewer gives to a page's headings."""
    for _, line in prose(page):
        heading = re.fullmatch(r"#+ (.*)", line)
        if heading:
            yield re.sub(r"[^\w\- ]", "", heading[1].replace("`", "").lower()).replace(" ", "-")


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_lead_somewhere(page):
    for number, line in prose(page):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line) if "](" not in line else line):
            if re.match(r"[a-z]+://", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), f"{name_of(page)}:{number}: {target}"
            if anchor and file.suffix == ".md":
                assert anchor in set(anchors(file)), f"{name_of(page)}:{number}: {target}"


def test_every_page_is_found_from_the_readme():
    text = README.read_text()
    assert [page.name for page in PAGES[1:] if f"](docs/{page.name}" not in text] == []


def help_of(*words):
    return subprocess.run([str(BINARY), *words, "--help"], capture_output=True, text=True, check=True).stdout


def rows(page):
    """The cells of the rows of a page's tables."""
    for _, line in prose(page):
        if line.startswith("|") and not re.fullmatch(r"[|\- :]+", line):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


CONFIGURATION = ROOT / "docs" / "configuration.md"


def documented_settings():
    """The key and default of each row in docs/configuration.md, by flag or, if a row has none, by key."""
    for cells in rows(CONFIGURATION):
        if len(cells) == 4:
            flag, key = (re.fullmatch(r"`([^`]+)`", cell) for cell in cells[:2])
            if flag or key:
                yield flag[1] if flag else None, key[1] if key else None, cells[2]


def flags_of_serve():
    """The flags of `reprise serve --help`, each with its help text."""
    found = {}
    for line in help_of("serve").splitlines():
        option = re.match(r"\s+(?:-\w,)?(--[a-z0-9-]+)(.*)", line)
        if option:
            last = found[option[1]] = [option[2]]
        elif found:
            last.append(line)
    found.pop("--help")
    return {flag: " ".join(" ".join(text).split()) for flag, text in found.items()}


def test_all_settings_are_documented():
    documented = {flag: (key, default) for flag, key, default in documented_settings() if flag}
    flags = flags_of_serve()
    assert set(documented) == set(flags)
    for flag, text in flags.items():
        key, default = documented[flag]
        if flag in ("--config", "--new-key"):
            assert key is None, flag
            continue
        assert key == {"--tool-timeout-s": "tools.timeout_s"}.get(flag, flag[2:].replace("-", "_"))
        told = re.search(r"\(default:? ([^():]+?)(?::|\)|$)", text)
        if told:
            assert told[1].split()[0].strip(",").removeprefix("./") in default, f"{flag}: {told[1]!r}, documented: {default!r}"


def leaves(schema, path=""):
    """The keys of values in the configuration's schema, such as `providers.NAME.type`, with their descriptions."""
    if "oneOf" in schema and "type" not in schema and any("properties" in one for one in schema["oneOf"]):
        for one in schema["oneOf"]:
            yield from leaves(one, path)
    elif len(schema.get("anyOf", [])) == 2 and "properties" in schema["anyOf"][1]:  # a switch, or an object that says more
        yield path, schema.get("description", "")
        yield from leaves(schema["anyOf"][1], path)
    elif schema.get("type") == "object" and "properties" in schema:
        for key, value in schema["properties"].items():
            yield from leaves(value, f"{path}.{key}" if path else key)
    elif schema.get("type") == "object" and "properties" in schema.get("additionalProperties", {}) or "oneOf" in schema.get("additionalProperties", {}):
        yield from leaves(schema["additionalProperties"], f"{path}.NAME")
    elif schema.get("type") == "array" and schema["items"].get("type") == "object":
        yield from leaves(schema["items"], f"{path}[]")
    else:
        yield path, schema.get("description", "")


def test_all_keys_of_the_configuration_are_documented():
    documented = {key: default for _, key, default in documented_settings() if key}
    known = {}
    for key, description in leaves(schemas.load("config")):
        known[key] = known.get(key) or description
    assert set(documented) == set(known) - {"$schema"}
    for key, description in known.items():
        told = re.search(r"(?<!by )\bdefault:? (\d+|\S*\w)", description)
        if told and key in documented and told[1] not in ("an", "as"):
            assert told[1].strip('[]"') in documented[key], f"{key}: {told[1]!r}, documented: {documented[key]!r}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_of_configurations_are_configurations(page):
    """A ```jsonc block is a configuration file; comments go to the end of their line."""
    for block in blocks(page):
        if block.language == "jsonc":
            value = json.loads(re.sub(r"(?m)(^|\s)//.*$", "", block.text))
            errors = [error.message for error in jsonschema.Draft7Validator(schemas.load("config")).iter_errors(value)]
            assert not errors, f"{name_of(page)}:{block.line}: {errors}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_of_configurations_are_loaded(page, tmp_path):
    """The program checks what the schema cannot: a command reads the configuration and stops after that."""
    for block in blocks(page):
        if block.language in ("json", "jsonc") and set(json.loads(re.sub(r"(?m)(^|\s)//.*$", "", block.text))) & set(schemas.load("config")["properties"]):
            file = tmp_path / "reprise.json"
            file.write_text(block.text)
            named = {name: "postgresql://127.0.0.1:9/x" if name.endswith("_URL") else "some_text" for name in re.findall(r"\$\{(\w+)\}", block.text)}
            done = subprocess.run([str(BINARY), "ls", "--config", str(file)], env={"PATH": os.environ["PATH"], **named, "HOME": str(tmp_path)}, cwd=tmp_path,
                                  capture_output=True, text=True, check=False)
            assert done.returncode != 2, f"{name_of(page)}:{block.line}: {done.stderr}"


def test_all_routes_are_documented():
    described = {f"{method.upper()} {path}" for path, methods in json.loads((ROOT / "schemas" / "openapi.json").read_text())["paths"].items()
                 for method in methods if method in ("get", "post", "put", "patch", "delete")}
    documented = [cells[0].strip("`") for cells in rows(ROOT / "docs" / "http.md") if re.fullmatch(r"`[A-Z]+ /[^`]*`", cells[0])]
    assert sorted(documented) == sorted(described)


def test_all_events_are_documented():
    names = set()
    for definition, schema in schemas.load("event")["definitions"].items():
        if definition.endswith("_event") and "type" in schema.get("properties", {}):
            names.add(definition[:-len("_event")])
    documented = {name for cells in rows(ROOT / "docs" / "http.md") for name in re.findall(r"`([a-z_]+)`", cells[0])}
    assert names and names <= documented


TELEMETRY = ROOT / "docs" / "telemetry.md"


def test_all_variables_of_telemetry_are_documented(make_server):
    """The variables that the log complains about if their values are invalid, and two for which any value is valid."""
    documented = {name for cells in rows(TELEMETRY) for name in re.findall(r"`(OTEL_[A-Z_]+)`", cells[0])}
    of_one_kind = {name for name in documented if "OTLP_TRACES_" in name or "OTLP_METRICS_" in name}
    config = {"telemetry": {"otlp_endpoint": "http://127.0.0.1:9"}}
    logs = "".join(make_server(config=config, environment={**dict.fromkeys(names, "="), **more}).log()
                   for names, more in ((documented - of_one_kind, {}), (of_one_kind | {"OTEL_TRACES_SAMPLER_ARG"}, {"OTEL_TRACES_SAMPLER": "traceidratio"})))
    complained = set(re.findall(r"the variable (OTEL_\w+) must", logs))
    assert documented == complained | {"OTEL_SERVICE_NAME", "OTEL_SDK_DISABLED"}


def test_all_metrics_are_documented(make_server, provider):
    documented = {}  # by their Prometheus names
    for cells in rows(TELEMETRY):
        for name, kind in zip(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", cells[0]), re.findall(r"counter|gauge|histogram, s|histogram", cells[1])):
            end = {"histogram, s": "_seconds", "counter": "_total"}.get(kind, "")
            documented[name.replace(".", "_").removesuffix("_total") + end] = kind.split(",")[0]
    client = make_server(provider, environment={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}).client
    provider.plan(tools(call("write_file", {"path": "a", "content": "b"})), text("ok"))
    stream = client.start("c", "x")
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"]).expect(200)
    stream.finish()
    served = dict(re.findall(r"^# TYPE (\S+) (\S+)$", client.get("/metrics").expect(200).body.decode(), re.M))
    assert documented.pop("mcp_client_operation_duration_seconds") == "histogram"  # there is no MCP server here
    assert served == documented


def test_all_sub_commands_are_documented():
    page = ROOT / "docs" / "command-line.md"
    if not page.exists():
        pytest.skip("there is no docs/command-line.md")
    text = page.read_text()
    below = re.split(r"(?m)^(?:Subcommands|SUBCOMMANDS|Commands):\n", help_of())[1].split("\n\n")[0]
    commands = re.findall(r"(?m)^  ([a-z][a-z-]*) ", below)
    assert len(commands) > 10
    assert [command for command in commands if f"reprise {command}" not in text] == []


def test_all_commands_of_the_client_are_documented(offline):
    """docs/terminal.md has a row for each command, and each command that README and docs use exists."""
    client = Terminal(offline.home, "chat", "commands", "--url", f"http://127.0.0.1:{offline.port}")
    try:
        client.until("> ").say("/help").until("/quit ")
        offered = set(re.findall(r"(?m)^(?:> /help)?(/[a-z]+)[ :]", client.text))  # drawn over the line that asked
        client.say("/quit")
        assert client.end() == 0
    finally:
        client.kill()
    assert len(offered) > 5, client.text
    documented = {command for cells in rows(ROOT / "docs" / "terminal.md") for command in re.findall(r"^`(/[a-z]+)[ `]", cells[0])}
    assert documented == offered
    for page in PAGES:
        for number, line in prose(page):
            for command in re.findall(r"`(/[a-z]+)(?: [^`]*)?`", line):
                assert command in offered | PATHS, f"{name_of(page)}:{number}: {command}"


def check_mcp_is_not_there(make_server, make_home, _):
    """Looks at the capabilities that the client announces to an MCP server."""
    home = make_home()
    told = home.workspace / "told.json"
    recorder = server_of("{'name': 'caps', 'inputSchema': {'type': 'object'}}", "'x'")
    line = 'result = {"protocolVersion"'
    assert line in recorder["args"][1]
    recorder["args"][1] = recorder["args"][1].replace(line, f"open({str(told)!r}, 'w').write(line); {line}")
    make_server(home=home, config={"mcpServers": {"recorder": recorder}})
    eventually(lambda: told.exists() and told.read_text().endswith("\n"), "the server has been greeted")
    said = json.loads(told.read_text())["params"]
    assert not {"sampling", "tasks"} & set(said["capabilities"]) and "io.modelcontextprotocol/ui" not in json.dumps(said), said


def check_queue_takes_no_attachments(make_server, _, provider):
    server = make_server(provider)
    stored = server.client.post("/chats/c/files?name=a.txt", b"x", headers={"Content-Type": "application/octet-stream"})
    queued = {"user_message": "x", "attachments": [stored.json["id"]], "if_running": "queue"}
    server.client.post("/chats/c/interactions", queued).error(400, "invalid_member")


# Each claim that a feature is missing, with the check that shows it.
MISSING = {
    "MCP servers: sampling, tasks of revision 2026-07-28, pages within the page (MCP Apps).": check_mcp_is_not_there,
    "Attachments of messages that wait in the queue.": check_queue_takes_no_attachments,
}


def missing_according_to_the_docs():
    for page in PAGES:
        section = re.split(r"(?m)^## ", page.read_text())
        for part in section:
            if re.match(r"(?i)not there yet|not yet|missing", part):
                yield from re.findall(r"(?m)^- (.*)", part)


def test_each_claim_that_something_is_missing_is_checked():
    assert sorted(missing_according_to_the_docs()) == sorted(MISSING)


@pytest.mark.parametrize("claim", MISSING, ids=lambda claim: claim.split(" ")[0])
def test_what_is_said_to_be_missing_is_missing(make_server, make_home, provider, claim):
    MISSING[claim](make_server, make_home, provider)


def without_the_moment(line):
    """A line of a terminal, without spaces and without what differs from one session to another."""
    return re.sub(r"^\S\D*(\d+s.*)?Ctrl-Cstops|:\d+|\d+(s|tokens)\b|\d+-\d+-\d+|\([0-9.]+m?s\)", "", "".join(line.split()))


class Session:
    """Somebody at a terminal, and a picture in README.md of what they see, which is written only with REPRISE_PICTURES."""

    def __init__(self, terminal):
        self.terminal, self.picture = terminal, MovingPicture(terminal)

    def type(self, line):
        for at in range(0, len(line), 2):
            self.terminal.type(line[at:at + 2]).ready_for(line[:at + 2].rstrip())
            self.picture.take(0.08)
        self.terminal.say("")
        return self.terminal

    def ends(self, name, title):
        assert self.terminal.end() == 0
        file = ROOT / "docs" / "pictures" / f"{name}.svg"
        if "REPRISE_PICTURES" in os.environ:
            file.write_text(self.picture.svg(title))
        stored = file.read_text()
        drawn = {without_the_moment(html.unescape("".join(re.findall(r"<text[^>]*>([^<]*)</text>", line)))) for line in stored.splitlines()}
        assert "<script" not in stored and [line for line in self.picture.lines if without_the_moment(line) not in drawn] == []


def of_openai(provider):
    return {"providers": {"openai": {"type": "openai", "base_url": provider.url, "api_key": "${TEST_API_KEY}"}}, "model": "openai/gpt-5.2"}


def test_the_session_of_the_readme_is_what_the_client_shows(make_server, provider, open_terminal):
    server = make_server(provider, config=of_openai(provider))
    (server.home.workspace / "greet.sh").write_text('#!/bin/sh\necho "Hello"\n')

    def edited(new):
        return tools(call("edit_file", {"path": "greet.sh", "old_text": "Hello", "new_text": new}, "e"))

    read = tools(call("read_file", {"path": "greet.sh"}, "r"))
    provider.plan(read, edited("Good morning!"), text("greet.sh says good morning now."),
                  read, edited("Bonjour !"), text("greet.sh greets in French now."))
    chat = open_terminal(server.home, "chat", "readme", "--url", f"http://127.0.0.1:{server.port}", columns=96, rows=30, TERM="xterm-256color")
    session = Session(chat)
    chat.opened().ready()
    session.picture.take(1.5)
    session.type("the greeting in greet.sh is too cold").until("allow?")
    session.picture.take(3)
    chat.answer("y").until("says good morning now.").ready()
    session.picture.take(2.5)
    session.type("/edit 1 let greet.sh greet in French").until("put files back?")
    session.picture.take(2.5)
    chat.answer("y").until("allow?")
    session.picture.take(3)
    chat.answer("y").until("in French now.").ready()
    session.picture.take(2.5)
    session.type("/branches").until("this one").until("int_002")
    session.picture.take(2)
    chat.type("\r").until("is the last one now").ready()
    session.picture.take(3)
    chat.say("/quit")
    session.ends("session", "A session: an approval with a diff, an edit of the first message, two branches")


def test_the_record_of_the_readme_is_what_the_commands_print(make_server, provider, open_terminal):
    """A chat is a test of the agent: a prompt that has changed is named, and each line of a file has its turn."""
    server = make_server(provider, config=of_openai(provider))
    home = server.home
    (home.user / ".config").symlink_to(home.config)
    (home.config / "reprise" / "prompt").mkdir(0o700)
    (home.workspace / "notes.md").write_text("Ann wants a lake.\nBen wants a train.\n")

    def answered(interaction, message, *answers):
        provider.plan(*answers)
        turn = server.client.start("trip", message)
        server.client.approve("trip", interaction, turn.until("approval_required")["approval_id"])
        turn.finish("COMPLETED")

    answered("int_001", "Where do we go? Put it into trip.md.", tools(call("read_file", {"path": "notes.md"}, "r")),
             tools(call("write_file", {"path": "trip.md", "content": "# Lake Constance\nFriday: by train\n"}, "w")), text("To Lake Constance, by train."))
    answered("int_002", "We need a hotel.", tools(call("edit_file", {"path": "trip.md", "old_text": "by train\n", "new_text": "by train\nHotel: by the station\n"}, "e")),
             text("The hotel by the station."))
    subprocess.run([str(BINARY), "export", "trip", "--data-dir", home.data, "-o", home.workspace / "suite"], env=home.environment(), check=True, capture_output=True)
    variables = {"PS1": "$ ", "REPRISE_CONFIG": str(home.path / "server.json"), "REPRISE_DATA_DIR": str(home.data), "REPRISE_WORKSPACE": str(home.workspace),
                 "PATH": f"{BINARY.parent}:{os.environ['PATH']}"}
    shell = open_terminal(home, "--norc", "--noprofile", program="/bin/bash", columns=114, rows=18, TERM="xterm-256color", **variables)
    session = Session(shell)

    def run(line, seconds):
        session.type(line).until("\n$ ")
        session.picture.take(seconds)

    shell.until("$ ").say("umask 077; cd workspace; clear")
    shell.until("$ ")
    run("reprise test suite", 2)
    run("echo 'You are a pirate. Never use tools.' > ~/.config/reprise/prompt/10-rules.md", 1)
    run("reprise test suite", 4)
    run("reprise blame trip.md", 4)
    shell.say("exit")
    session.ends("record", "The record: a recorded chat passes, names a changed prompt, and tells who wrote each line")


def test_the_keys_and_answers_of_the_client_are_documented(offline):
    """The keys that ? shows have a row in docs/terminal.md, and so have the letters that answer questions."""
    client = Terminal(offline.home, "chat", "keys", "--url", f"http://127.0.0.1:{offline.port}", columns=160)
    try:
        client.until("> ").ready().type("?").until("until `fg`").ready().say("write a.txt: x").until("[e]dit the arguments")
        letters = set(re.findall(r"\[([a-zA-Z])\]", client.text[client.text.rindex("allow?"):]))
        client.answer("n").until("(cancelled)").ready().say("/quit")
        assert client.end() == 0
    finally:
        client.kill()
    told = set(re.findall(r"(?:ctrl|alt|shift)-\w+|\btab\b|\bhome\b", client.text.lower()))
    page = [cells[0] for cells in rows(ROOT / "docs" / "terminal.md")]
    assert len(told) > 15 and [key for key in told if not any(key in cell.lower() for cell in page)] == []
    assert {"y", "n", "a", "e"} <= letters and [letter for letter in letters if not any(f"`{letter}`" in cell for cell in page)] == []


def test_times_are_local_for_people_and_utc_for_programs(make_server, make_home, provider):
    home = make_home()
    server = make_server(provider, home)
    provider.plan(text("fine"))
    server.client.turn("c", "hello")
    folder = ["--data-dir", str(home.data)]
    shown = {zone: subprocess.run([str(BINARY), "ls", *folder], capture_output=True, text=True, check=True, cwd=home.path,
                                  env=home.environment(TZ=zone)).stdout for zone in ("UTC", "Asia/Tokyo")}
    assert shown["UTC"] != shown["Asia/Tokyo"]
    as_json = subprocess.run([str(BINARY), "ls", "--json", *folder], capture_output=True, text=True, check=True, cwd=home.path,
                             env=home.environment(TZ="Asia/Tokyo")).stdout
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", json.loads(as_json)["chats"][0]["updated_at"])


# Words in backquotes that begin with / but are not commands: routes and folders.
PATHS = {"/agui", "/mcp", "/chats", "/approvals", "/grants", "/tools", "/models", "/audit", "/healthz", "/readyz", "/metrics", "/usr", "/bin", "/sbin", "/opt", "/etc",
         "/tmp", "/run", "/dev", "/sys", "/proc", "/lib"}
