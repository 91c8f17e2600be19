"""Tools that a provider refuses, or that exceed its limit: they are left out and named, and the conversation continues."""
import pytest
from support import anthropic, responses
from support.mcp import server_of
from support.provider import Provider, failure, text
from support.timing import SLACK, eventually

ANSWERS = {"openai": lambda: text("yes"), "anthropic": lambda: anthropic.message(anthropic.say("yes")), "openai_responses": lambda: responses.message(responses.say("yes"))}


def start(make_server, provider, schemas, kind="openai", **config):
    tools = [{"name": name, "description": name, "inputSchema": schema} for name, schema in schemas.items()]
    url = provider.url.removesuffix("/v1") if kind == "anthropic" else provider.url
    one = {"type": kind, "base_url": url, "api_key": "${TEST_API_KEY}"}
    server = make_server(config={"providers": {"one": one}, "model": "one/scripted", "mcpServers": {"s": server_of(f"*{tools!r}", "'did it'")}, **config})
    eventually(lambda: server.client.get("/tools").json["servers"][0]["state"] == "ready", "the MCP server is ready", 30 * SLACK)
    return server


def told(request):
    return [tool.get("name") or tool["function"]["name"] for tool in request.body.get("tools", [])]


def left_out(server):
    return {tool["name"]: tool["left_out"] for tool in server.client.get("/tools").expect(200, "tools").json["tools"] if "left_out" in tool}


ODD = {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "object", "properties": None}, "c": {"items": {"type": "int"}}, "d": None, "e": "string"},
       "required": ["a", "gone"]}
SCHEMAS = {"odd": ODD, "nothing": {"type": "object", "properties": None},
           "either": {"type": "object", "anyOf": [{"properties": {"x": {"type": "string"}}, "required": ["x"]}, {"properties": {"y": {"type": "array"}}, "required": ["y"]}]}}


def arguments_of(schema):
    return sorted(schema.get("properties", {})), sorted(schema.get("required", []))


@pytest.mark.parametrize("kind", ANSWERS)
def test_the_model_is_told_the_arguments_of_each_tool(make_server, provider, kind):
    server = start(make_server, provider, {"plain": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}, kind)
    provider.plan(ANSWERS[kind]())
    server.client.turn("c", "hi")
    offered = {tool["name"]: arguments_of(tool["parameters"]) for tool in server.client.get("/tools").json["tools"]}
    sent = {tool.get("name") or tool["function"]["name"]: tool.get("input_schema") or tool.get("parameters") or tool["function"]["parameters"] for tool in provider.requests[0].body["tools"]}
    assert sent.keys() <= offered.keys() and {name: arguments_of(schema) for name, schema in sent.items()} == {name: offered[name] for name in sent}
    assert offered["write_file"] == (["content", "path"], ["content", "path"]) and any(arguments_of(schema) == (["a"], ["a"]) for schema in sent.values())


@pytest.mark.parametrize("kind", ANSWERS)
def test_schemas_are_completed(make_server, provider, strict_provider, kind):
    Provider.strict = True
    server = start(make_server, provider, SCHEMAS, kind)
    provider.plan(ANSWERS[kind]())
    server.client.turn("c", "hi")
    assert {"s_odd", "s_nothing", "s_either"} <= {name.replace("mcp__", "").replace("__", "_") for name in told(provider.requests[0])} and not left_out(server)


REFUSALS = {
    "openai": [lambda name, at: failure(400, f"Invalid schema for function '{name}': In context=('properties', 'a'), array schema missing items.", "invalid_function_parameters"),
               lambda name, at: failure(400, f"Invalid 'tools[{at}].function.parameters': schema is too deep"),
               lambda name, at: failure(400, f"* GenerateContentRequest.tools[0].function_declarations[{at}].parameters.properties[x].items: missing field.")],
    "anthropic": [lambda name, at: anthropic.failure(400, "invalid_request_error", f"tools.{at}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12")],
    "openai_responses": [lambda name, at: failure(400, f"Invalid schema for function '{name}': schema must have type 'object'", "invalid_function_parameters")]}


@pytest.mark.parametrize("kind, which", [(kind, n) for kind, all_of in REFUSALS.items() for n in range(len(all_of))])
def test_a_tool_that_is_refused_is_left_out_and_the_request_sent_again(make_server, provider, kind, which):
    """There are more refused tools than retries (none), because a request without a refused tool does not count as a retry."""
    server = start(make_server, provider, {f"t{n}": {"type": "object", "properties": {}} for n in range(6)}, kind)
    bad = {f"mcp__s__t{n}" for n in (1, 3, 4, 5)}

    def answer(request):
        for at, name in enumerate(told(request)):
            if name in bad:
                return REFUSALS[kind][which](name, at)
        return ANSWERS[kind]()

    provider.answer_with(answer)
    names = told_names(server)
    bad = {name for name in names if name[-2:] in ("t1", "t3", "t4", "t5")}
    assert server.client.turn("c", "hi").one("answer")["content"] == "yes"
    assert set(left_out(server)) == bad and len(provider.requests) == 5
    assert all(each[0]["model"] == "one/scripted" and each[0]["reason"] for each in left_out(server).values())
    assert all(f"tool={name}" in server.log() or f'"{name}"' in server.log() for name in bad)
    server.client.turn("d", "hi")
    assert len(provider.requests) == 6 and not bad & set(told(provider.requests[-1])), "the refusals are remembered"


def told_names(server):
    return [tool["name"] for tool in server.client.get("/tools").json["tools"] if tool["name"][-2:-1] == "t" and tool["name"][-1].isdigit()]


@pytest.mark.parametrize("kind", ["openai", "openai_responses"])
def test_no_more_tools_than_a_provider_takes(make_server, provider, strict_provider, kind):
    Provider.strict = True
    server = start(make_server, provider, {f"t{n}": {"type": "object", "properties": {}} for n in range(200)}, kind)
    provider.plan(ANSWERS[kind]())
    server.client.turn("c", "hi")
    names = told(provider.requests[0])
    every = {tool["name"] for tool in server.client.get("/tools").json["tools"]} - {"apply_patch", "present_plan"}  # edit_file stands for one, the other is for plans
    assert len(names) == 128 and {"read_file", "run_shell"} <= set(names)
    assert set(left_out(server)) == every - set(names)
    assert all(name in server.log() for name in every - set(names))


def test_a_lower_limit_is_learned(make_server, provider):
    server = start(make_server, provider, {f"t{n}": {"type": "object", "properties": {}} for n in range(60)}, "anthropic")
    provider.plan(anthropic.failure(400, "invalid_request_error", "tools: List should have at most 64 items after validation, not 80"), ANSWERS["anthropic"]())
    server.client.turn("c", "hi")
    assert len(told(provider.requests[-1])) == 64 and left_out(server)
