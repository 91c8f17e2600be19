"""Client code that users get for free: types generated from openapi.json, and the clients in docs/examples that use them."""
import json
import keyword
import pathlib
import shutil
import subprocess
import sys
import types
import typing

import pytest
from support.npm import NEWER_NODE, install
from support.provider import call, failure, text, tools
from support.server import ROOT
from support.timing import SLACK

EXAMPLES = ROOT / "docs" / "examples"
LIBRARIES = ("ai@7.0.173", "@ai-sdk/openai@4.0.118", "@langchain/openai@1.6.0", "@langchain/core@1.4.0", "openai@7.57.0", "zod@4.6.7")
REPEATING = str(pathlib.Path(__file__).parent / "support" / "repeating_clients.mjs")
TYPESCRIPT = ("openapi-typescript@7.10.1", "typescript@5.9.3")


def plan(provider):
    provider.plan(tools(call("write_file", {"path": "a.txt", "content": "x"}), say="I write."), text("It is ", "written."))


def converse(command, server, provider):
    """Runs an example and approves what it asks about."""
    plan(provider)
    done = subprocess.run([*command, f"http://127.0.0.1:{server.port}", "c", "write"], input="y\n", capture_output=True, text=True, timeout=20 * SLACK,
                          check=False)
    assert done.returncode == 0, done.stderr
    assert "I write." in done.stdout and "May write_file run with" in done.stdout and done.stdout.endswith("It is written.\nCOMPLETED\n"), done.stdout
    assert (server.home.workspace / "a.txt").read_text() == "x"


def test_the_example_in_python(server, provider):
    converse([sys.executable, EXAMPLES / "turn.py"], server, provider)


@pytest.mark.limit(120)
def test_the_example_in_typescript_and_the_types_it_uses(server, provider, tmp_path):
    modules = install(*TYPESCRIPT)
    document, declarations = tmp_path / "openapi.json", tmp_path / "reprise.d.ts"
    document.write_bytes(server.client.get("/openapi.json").expect(200).body)

    def node(program, *arguments):
        done = subprocess.run(["node", *NEWER_NODE, modules / program, *arguments], capture_output=True, text=True, timeout=60 * SLACK, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    node("openapi-typescript/bin/cli.js", document, "-o", declarations, "--default-non-nullable=false")
    shutil.copy(EXAMPLES / "turn.ts", tmp_path)
    # Each event by its type, in both directions: an `unknown` type or a word that does not exist is an error.
    (tmp_path / "check.ts").write_text("""
import type { components, operations } from "./reprise";
type Event = Extract<components["schemas"]["event"], { type: string }>;
export const name: Extract<Event, { type: "TOOL_CALL" }>["tool_name"] = "x";
export const seq: Event["seq"] = 1;
// @ts-expect-error there is no such event
export const wrong: Event["type"] = "NOTHING";
export const delta: Extract<components["schemas"]["openai_response_event"], { type: "response.output_text.delta" }>["delta"] = "x";
export const chunk: components["schemas"]["openai_chat_completion_chunk"]["choices"][number]["delta"]["content"] = "x";
export type Asked = operations["createResponse"]["requestBody"]["content"]["application/json"]["model"];
// @ts-expect-error a model is a text
export const model: Asked = 7;
""")
    node_types(tmp_path)
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": {
        "strict": True, "target": "es2022", "module": "es2022", "moduleResolution": "bundler", "lib": ["es2022", "dom", "dom.iterable"], "types": [],
        "outDir": "out"}, "files": ["node.d.ts", "turn.ts", "check.ts"]}))
    node("typescript/bin/tsc", "--project", tmp_path)
    (tmp_path / "out" / "package.json").write_text('{"type":"module"}')
    converse(["node", tmp_path / "out" / "turn.js"], server, provider)


def node_types(folder):
    """The few types of Node that the example needs. Projects with @types/node do not need them."""
    (folder / "node.d.ts").write_text("""
declare const process: { argv: string[]; env: Record<string, string | undefined>; exit(code: number): never; stdin: unknown;
                         stdout: { write(text: string): void } };
declare module "node:readline/promises" {
  export function createInterface(options: { input: unknown; output: unknown }): { question(text: string): Promise<string>; close(): void };
}
""")


def python_name(name):
    return "".join(part.capitalize() for part in name.replace("-", "_").split("_"))


def annotation(schema, refs):
    """The Python type of a schema, as generators write it. Adds the names of other schemas to `refs`."""
    if "$ref" in schema:
        refs.add(schema["$ref"].rsplit("/", 1)[1])
        return repr(python_name(schema["$ref"].rsplit("/", 1)[1]))
    if "const" in schema:
        return f"typing.Literal[{schema['const']!r}]"
    if "enum" in schema:
        return f"typing.Literal[{', '.join(map(repr, schema['enum']))}]"
    for choice in ("oneOf", "anyOf"):
        if choice in schema and "properties" not in schema:
            return f"typing.Union[{', '.join(annotation(one, refs) for one in schema[choice])}]"
    kind = schema.get("type")
    if isinstance(kind, list):
        return f"typing.Union[{', '.join(annotation({**schema, 'type': one}, refs) for one in kind)}]"
    if kind == "array":
        return f"typing.List[{annotation(schema.get('items', {}), refs)}]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "typing.Dict[str, typing.Any]"}.get(kind, "typing.Any")


def test_every_schema_is_a_type_of_python(offline, monkeypatch):
    """What openapi-python-client needs: each schema is a class with a unique name, each reference is one of these, each operation is a function."""
    document = offline.client.get("/openapi.json").expect(200).json
    schemas, refs = document["components"]["schemas"], set()
    assert len({python_name(name) for name in schemas}) == len(schemas)
    source = "import typing\n"
    for name, schema in schemas.items():
        if schema.get("properties"):
            members = ", ".join(f"{member!r}: {annotation(text, refs)}" for member, text in schema["properties"].items())
            source += f"{python_name(name)} = typing.TypedDict({python_name(name)!r}, {{{members}}}, total=False)\n"
        else:
            source += f"{python_name(name)} = {annotation(schema, refs)}\n"
    assert refs <= set(schemas)
    written = types.ModuleType("reprise_types")
    monkeypatch.setitem(sys.modules, written.__name__, written)  # typing looks names up there
    module = vars(written)
    exec(compile(source, written.__name__, "exec"), module)  # pylint: disable=exec-used
    for name, schema in schemas.items():
        if schema.get("properties"):
            assert set(typing.get_type_hints(module[python_name(name)], module)) == set(schema["properties"])
    members = [typing.get_type_hints(module[one.__forward_arg__], module) for one in typing.get_args(module["Event"]) if one.__forward_arg__.endswith("Event")]
    events = [typing.get_args(each["type"])[0] for each in members]
    assert {"TEXT_DELTA", "APPROVAL_REQUIRED", "INTERACTION_COMPLETE"} <= set(events) and len(set(events)) == len(events)
    for item in document["paths"].values():
        for operation in (value for key, value in item.items() if key in ("get", "post", "put", "patch", "delete")):
            assert operation["operationId"].isidentifier() and not keyword.iskeyword(operation["operationId"])
            for status, answer in operation["responses"].items():
                for kind, media in answer.get("content", {}).items():
                    assert media.get("schema"), (operation["operationId"], status, kind)


# --- what a library repeats by itself ---------------------------------------------------------------------------------

def counts(server):
    """The number of times the command ran."""
    file = server.home.workspace / "ran.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


def counting(request):
    """A model that runs a command, and whose provider then fails."""
    if request.messages[-1]["role"] == "tool":
        return failure(500, "broken")
    return tools(call("run_shell", {"command": "echo once >> ran.txt"}))


def ask_by(library, server, *more):
    modules = install(*LIBRARIES)
    done = subprocess.run(["node", *NEWER_NODE, REPEATING, str(modules), f"http://127.0.0.1:{server.port}/v1", library, *more], capture_output=True, text=True,
                          timeout=60 * SLACK, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.limit(120)
@pytest.mark.parametrize("library", [f"{name}/{mode}" for name in ("ai", "ai-responses", "langchain", "langchain-responses", "openai", "responses")
                                     for mode in ("whole", "stream")])
def test_no_library_repeats_a_run_that_has_failed(make_server, provider, library):
    server = make_server(provider, config={"max_retries": 0, "approval_mode": "approve_all"})
    provider.answer_with(counting)
    answer = ask_by(library, server)
    assert counts(server) == 1, answer
    assert not answer["ok"] or library == "langchain-responses/stream", "only that library ignores response.failed"
    assert len(server.client.get("/chats").json["chats"]) == 1
