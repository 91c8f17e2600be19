"""OTLP to a collector of our own, which decodes it with Google's Protocol Buffers; and the same metrics in GET /metrics."""
import json
import re
import socket
import threading

import pytest
from support.mcp import server_of
from support.otlp import TYPES, Collector
from support.provider import Gate, call, failure, text, tools
from support.server import API_KEY
from support.timing import SLACK, SOON, eventually

AGENT, CHAT = "invoke_agent reprise", "chat scripted"
QUICK = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "100"}
# Texts of people, models and tools. None of them may be sent unless that is configured.
ASKED, SAID, WROTE, ANSWERED, TOLD = "canary-asked-1", "canary-said-2", "canary-wrote-3", "canary-answered-4", "canary-told-5"
CANARIES = (ASKED, SAID, WROTE, ANSWERED, TOLD)


@pytest.fixture
def collector():
    one = Collector()
    yield one
    one.close()


@pytest.fixture
def watched(make_server, provider, collector):
    """Starts servers that export to the collector."""

    def start(environment=None, telemetry=None, config=None, **more):
        settings = {"telemetry": {"otlp_endpoint": collector.url, **(telemetry or {})}, **(config or {})}
        return make_server(provider, config=settings, environment={**QUICK, **(environment or {})}, **more)

    return start


def turn_with_two_tools_and_an_approval(client, provider, pause=0.0):
    provider.plan(tools(call("read_file", {"path": "there.txt"}, "call_read"), call("write_file", {"path": "out.txt", "content": WROTE}, "call_write"), say=SAID),
                  text(ANSWERED))
    stream = client.start("c", ASKED)
    asked = stream.until("approval_required")
    if pause:
        threading.Event().wait(pause)
    client.approve("c", "int_001", asked["approval_id"]).expect(200)
    stream.finish()


def metrics(client):
    """The metrics of GET /metrics: {name: {labels: value}}."""
    found = {}
    for line in client.get("/metrics").expect(200).body.decode().splitlines():
        if not line.startswith("#"):
            name, labels, value = re.fullmatch(r"(\w+)(\{.*\})? (\S+)", line).groups()
            found.setdefault(name, {})[labels or ""] = float(value)
    return found


def test_a_turn_with_two_tools_and_an_approval(watched, provider, collector):
    server = watched()
    (server.home.workspace / "there.txt").write_text(TOLD)
    waited = 0.3  # the person's time, to tell it from the tool's
    turn_with_two_tools_and_an_approval(server.client, provider, pause=waited)
    trace = collector.trace()
    agent = trace.one(AGENT)
    assert trace.tree(agent) == (AGENT, [
        ("round", [(CHAT, []), ("execute_tool read_file", []),
                   ("tool_call write_file", [("await_approval", []), ("execute_tool write_file", [])])]),
        ("round", [(CHAT, [])])])
    assert {span.trace for span in trace.spans} == {agent.trace} and agent.parent == ""
    trace.check_nesting()

    assert (agent.kind, agent["gen_ai.operation.name"], agent["gen_ai.agent.name"]) == ("INTERNAL", "invoke_agent", "reprise")
    assert (agent["gen_ai.conversation.id"], agent["reprise.interaction.id"]) == ("c", "int_001")
    assert (agent["gen_ai.usage.input_tokens"], agent["gen_ai.usage.output_tokens"], agent["reprise.interaction.status"]) == (22, 14, "COMPLETED")
    chats = trace.named(CHAT)
    for chat in chats:
        assert chat.kind == "CLIENT" and not chat.failed
        expected = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "scripted", "gen_ai.request.stream": True,
                    "gen_ai.response.model": "scripted",
                    "server.address": "127.0.0.1", "server.port": int(provider.url.rsplit(":", 1)[1].split("/")[0]), "gen_ai.conversation.id": "c",
                    "gen_ai.usage.input_tokens": 11, "gen_ai.usage.output_tokens": 7}
        assert expected.items() <= chat.attributes.items()
        assert 0 < chat["gen_ai.response.time_to_first_chunk"] <= chat.seconds
    assert [chat["gen_ai.response.finish_reasons"] for chat in chats] == [["tool_calls"], ["stop"]]
    for name, call_id in (("read_file", "call_read"), ("write_file", "call_write")):
        tool = trace.one("execute_tool " + name)
        assert tool.kind == "INTERNAL" and not tool.failed
        assert tool.attributes == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function",
                                   "gen_ai.tool.call.id": call_id}
    wait = trace.one("await_approval")
    assert wait["reprise.approval.decision"] == "approved" and wait.seconds >= waited
    # The tool's span does not contain the wait for the person.
    assert trace.one("execute_tool write_file").began >= wait.ended
    assert agent.of["service.name"] == "reprise" and agent.of["service.version"]

    body = b"".join(body for _, _, body in collector.requests)
    assert not [canary for canary in CANARIES if canary.encode() in body]


def test_content_is_sent_where_it_is_asked_for_and_nowhere_a_key(watched, provider, collector):
    server = watched(telemetry={"content": True})
    (server.home.workspace / "there.txt").write_text(f"{TOLD} {API_KEY} " + "x" * 40_000)
    turn_with_two_tools_and_an_approval(server.client, provider)
    trace = collector.trace()
    assert API_KEY.encode() not in b"".join(body for _, _, body in collector.requests)
    first, second = trace.named(CHAT)
    [asked] = json.loads(first["gen_ai.input.messages"])
    assert asked == {"role": "user", "parts": [{"type": "text", "content": ASKED}]}
    [said] = json.loads(first["gen_ai.output.messages"])
    assert said["role"] == "assistant" and said["finish_reason"] == "tool_calls"
    assert said["parts"][0] == {"type": "text", "content": SAID}
    assert said["parts"][2] == {"type": "tool_call", "id": "call_write", "name": "write_file", "arguments": {"path": "out.txt", "content": WROTE}}
    history = json.loads(second["gen_ai.input.messages"])
    assert [message["role"] for message in history] == ["user", "assistant", "tool", "tool"]
    assert history[2]["parts"][0]["type"] == "tool_call_response" and TOLD in history[2]["parts"][0]["response"]
    assert json.loads(second["gen_ai.output.messages"])[0]["parts"] == [{"type": "text", "content": ANSWERED}]
    assert json.loads(first["gen_ai.system_instructions"])[0]["type"] == "text"
    assert TOLD in trace.one("execute_tool read_file")["gen_ai.tool.call.result"]
    assert json.loads(trace.one("execute_tool write_file")["gen_ai.tool.call.arguments"])["content"] == WROTE


def test_content_has_no_secret_in_failures_or_other_spellings(watched, provider, collector):
    secret = "abcd/efgh/1234567"
    client = watched(environment={"DEPLOY_TOKEN": secret}, telemetry={"content": True}).client
    provider.plan(tools(call("read_file", r'{"path":"abcd\/efgh\/\u0031234567"}', "call_1")), text("Done."), failure(400, "bad " + secret))
    client.turn("c", ASKED)
    client.start("c", "again").finish("FAILED")
    trace = collector.trace(2)
    assert [span.message for span in trace.spans if "bad [redacted]" in span.message], [span.message for span in trace.spans]
    sent = b"".join(body for _, _, body in collector.requests)
    assert not [form for form in (secret, r"abcd\/efgh", r"abcd\\/efgh", r"\u0031") if form.encode() in sent]
    assert "[redacted]" in trace.one("execute_tool read_file")["gen_ai.tool.call.arguments"]


def test_the_clients_span_is_the_parent(watched, provider, collector):
    client = watched().client
    trace_id, span_id = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"

    def turn(chat, traceparent):
        provider.plan(text("ok"))
        headers = {"traceparent": traceparent, "tracestate": "vendor=1"}
        client.stream("POST", f"/chats/{chat}/interactions", {"user_message": "x"}, headers=headers).finish()

    turn("a", f"00-{trace_id}-{span_id}-01")
    agent = collector.trace().one(AGENT)
    assert (agent.trace, agent.parent, agent.state) == (trace_id, span_id, "vendor=1")
    assert agent.flags == 0x301, "sampled, with a parent in another process"
    turn("b", f"00-{trace_id}-{span_id}-00")  # not sampled
    turn("c", f"00-{'0' * 32}-{span_id}-01")
    agents = {agent["gen_ai.conversation.id"]: agent for agent in collector.trace(2).named(AGENT)}
    assert sorted(agents) == ["a", "c"] and agents["c"].parent == "" and agents["c"].trace != trace_id


def test_mcp_servers_and_providers_are_told_the_span(watched, provider, collector):
    tool = '{"name": "tell", "description": "d", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}'
    servers = {"s": server_of(tool, 'json.dumps(request["params"].get("_meta", {}))')}
    config = {"mcpServers": servers, "approval_mode": "approve_all"}
    server = watched(config=config, telemetry={"trace_providers": True})
    eventually(lambda: any(t["name"] == "s__tell" for t in server.client.get("/tools").json["tools"]), "the tool is there")
    provider.plan(tools(call("s__tell", {})), text("ok"))
    stream = server.client.start("c", "x")
    stream.finish()
    trace = collector.trace()
    request = trace.one("tools/call tell")
    assert trace.parent(request).name == "execute_tool s__tell"
    assert request.kind == "CLIENT" and request["mcp.method.name"] == "tools/call" and request["gen_ai.tool.name"] == "tell"
    told = json.loads(stream.one("tool_result")["tool_output"])
    assert told["traceparent"] == f"00-{request.trace}-{request.id}-01"
    assert [r.headers["traceparent"] for r in provider.requests] == [f"00-{c.trace}-{c.id}-01" for c in trace.named(CHAT)]
    assert metrics(server.client)["mcp_client_operation_duration_seconds_count"] == {'{mcp_method_name="tools/call",gen_ai_tool_name="tell"}': 1}


def test_providers_are_not_told_unless_that_is_configured(watched, provider, collector):
    client = watched().client
    provider.plan(text("ok"))
    client.turn("c", "x")
    collector.trace()
    assert "traceparent" not in provider.requests[0].headers


def test_failures_say_which_and_no_more(watched, provider, collector):
    client = watched().client
    provider.plan(failure(500, TOLD))
    client.start("c", "x").finish("FAILED")
    trace = collector.trace()
    for name in (CHAT, "round", AGENT):
        span = trace.one(name)
        assert span.failed and span.message == "" and span["error.type"].startswith("provider_"), name
    assert trace.one(AGENT)["reprise.interaction.status"] == "FAILED"
    assert TOLD.encode() not in b"".join(body for _, _, body in collector.requests)


def test_retries_and_rejections(watched, provider, collector):
    client = watched(config={"max_retries": 1}).client
    provider.plan(failure(503, headers={"Retry-After": "0"}), tools(call("write_file", {"path": "a", "content": "b"})), text("ok"))
    stream = client.start("c", "x")
    client.approve("c", "int_001", stream.until("approval_required")["approval_id"], False).expect(200)
    stream.finish()
    trace = collector.trace()
    first, *rest = trace.named("round")
    chats = [child for child in trace.children(first) if child.name == CHAT]
    assert [chat.failed for chat in chats] == [True, False] and len(rest) == 1
    assert trace.one("await_approval")["reprise.approval.decision"] == "rejected"
    assert not trace.named("execute_tool write_file"), "nothing was executed"


def test_compaction_questions_and_sub_agents(watched, provider, collector):
    client = watched().client
    provider.plan(text("one"), text("two"))
    client.turn("c", "first")
    client.turn("c", "second")
    provider.plan(text("THE SUMMARY"))
    client.stream("POST", "/chats/c/compact", {}).finish()
    provider.plan(tools(call("ask_human", {"question": "which?"}, "call_ask")), text("ok"))
    stream = client.start("c", "third")
    client.respond("c", stream.interaction, stream.until("input_required")["request_id"], "that one").expect(200)
    stream.finish()
    provider.plan(tools(call("research", {"question": "what?"}, "call_research")), text("found"), text("ok"))
    client.turn("c", "fourth")
    trace = collector.trace(5)
    compact = trace.one("compact")
    assert [child.name for child in trace.children(compact)] == [CHAT] and compact["reprise.compaction.messages"] > 0
    assert trace.parent(trace.one("await_input")).name == "execute_tool ask_human"
    research = trace.one("invoke_agent research")
    assert trace.parent(research).name == "execute_tool research" and research["gen_ai.agent.name"] == "research"
    assert trace.tree(research) == ("invoke_agent research", [("round", [(CHAT, [])])])
    trace.check_nesting()


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_run_that_is_taken_up_goes_on_in_its_trace(watched, make_home, provider, collector, end):
    home = make_home()
    first = watched(home=home)
    provider.plan(tools(call("write_file", {"path": "out.txt", "content": "text"})), text("ok"))
    stream = first.client.start("c", "do it")
    asked = stream.until("approval_required")
    eventually(lambda: any(s.name == CHAT for s in collector.spans()), "ended spans are sent")
    getattr(first, end)()
    stream.close()
    before = {span.id: span for span in collector.spans()}
    second = watched(home=home)
    second.client.approve("c", "int_001", asked["approval_id"]).expect(200)
    eventually(lambda: second.client.interaction("c", "int_001")["status"] == "COMPLETED", "it has ended")
    agent = eventually(lambda: [s for s in collector.spans() if s.name == AGENT and s.id not in before], "its span is there")[0]
    assert {span.trace for span in collector.spans()} == {agent.trace}
    if end == "stop":
        [old_round] = [span for span in before.values() if span.name == "round"]
        assert before[agent.parent]["reprise.interaction.status"] == "WAITING_APPROVAL" and old_round.parent == agent.parent
        [wait] = [span for span in before.values() if span.name == "await_approval"]
        assert wait["reprise.approval.decision"] == "none"
    assert [s.name for s in collector.spans() if s.name == "execute_tool write_file"] == ["execute_tool write_file"]


@pytest.mark.parametrize("end", ["kill", "cancel", "failure"])
def test_a_run_that_resumes_another_has_a_link_to_it(watched, make_home, provider, collector, end):
    """Its span is in a trace of its own, or in that of the client that resumes it."""
    home = make_home()
    server = watched(home=home)
    gate = Gate()
    provider.plan(failure(400, "bad request") if end == "failure" else text("half ", gate))
    stream = server.client.start("c", "do it")
    if end == "failure":
        stream.finish("FAILED")
    else:
        gate.wait_reached()
    if end == "cancel":
        server.client.cancel("c", "int_001").expect(200)
        stream.finish("CANCELLED")
    resumes_nothing = set()
    if end == "kill":
        # Open spans are lost with the process; the run's journal has the id of its span.
        record = server.client.interaction("c", "int_001").get("record")
        assert record is None  # still running
        server.kill()
        stream.close()
        server = watched(home=home)
        assert server.client.interaction("c", "int_001")["status"] == "FAILED"
    else:
        resumes_nothing = {span.id for span in collector.trace().named(AGENT)}
    traceparent = server.client.interaction("c", "int_001")["record"]["traceparent"]
    trace_id, span_id = re.fullmatch("00-([0-9a-f]{32})-([0-9a-f]{16})-01", traceparent).groups()
    provider.plan(text("whole"))
    server.client.stream("POST", "/chats/c/interactions/int_001/resume", {}).finish()
    resumed = eventually(lambda: [s for s in collector.spans() if s.name == AGENT and s["reprise.interaction.id"] == "int_002"], "its span is there")[0]
    assert [link[:2] for link in resumed.links] == [(trace_id, span_id)]
    assert resumed.trace != trace_id and resumed.parent == ""
    assert not [span for span in collector.spans() if span.links and span.id != resumed.id]
    if resumes_nothing:
        assert resumes_nothing == {span_id}


def test_the_model_that_has_answered_is_the_one_that_the_provider_names(watched, provider, collector):
    server = watched()
    reply = text("yes")
    reply.steps = [step.replace(b'"model": "scripted"', b'"model": "scripted-2026-11-01"') if isinstance(step, bytes) else step for step in reply.steps]
    provider.plan(reply)
    server.client.turn("c", "which are you?")
    [chat] = collector.trace().named(CHAT)
    assert (chat["gen_ai.request.model"], chat["gen_ai.response.model"]) == ("scripted", "scripted-2026-11-01")


def test_metrics_are_the_same_to_the_collector_and_to_prometheus(watched, provider, collector):
    server = watched()
    (server.home.workspace / "there.txt").write_text(TOLD)
    turn_with_two_tools_and_an_approval(server.client, provider)
    collector.trace()
    eventually(lambda: "reprise.approval.wait.duration" in collector.metrics() and
               [point.count for point in collector.metrics()["gen_ai.client.inference.duration"].histogram.data_points] == [2], "the metrics are there")
    sent, served = collector.metrics(), metrics(server.client)
    about = f'gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="scripted",server_address="127.0.0.1",server_port="{provider.url.split(":")[2].split("/")[0]}"'
    duration = sent["gen_ai.client.inference.duration"]
    assert duration.unit == "s" and duration.histogram.aggregation_temporality == 2
    [point] = duration.histogram.data_points
    assert point.count == 2 == sum(point.bucket_counts) and len(point.bucket_counts) == len(point.explicit_bounds) + 1 and point.sum > 0
    for when in ("inference", "operation"):  # the old name, for one version more
        assert served[f"gen_ai_client_{when}_duration_seconds_count"] == {"{" + about + "}": 2}
    assert served["gen_ai_client_inference_duration_seconds_bucket"]["{" + about + ',le="+Inf"}'] == 2
    tokens = sent["gen_ai.client.inference.usage.input_tokens"]
    assert tokens.unit == "{token}" and tokens.sum.is_monotonic and tokens.sum.data_points[0].as_int == 22
    assert served["gen_ai_client_inference_usage_input_tokens_total"] == {'{gen_ai_token_modality="text",' + about + "}": 22}
    assert {labels for labels in served["gen_ai_execute_tool_duration_seconds_count"]} == {
        '{gen_ai_tool_name="read_file",gen_ai_tool_type="function"}', '{gen_ai_tool_name="write_file",gen_ai_tool_type="function"}'}
    assert served["reprise_approval_wait_duration_seconds_count"] == {'{reprise_approval_decision="approved"}': 1}
    assert sent["reprise.runs.started"].sum.data_points[0].as_int == served["reprise_runs_started_total"][""] == 1
    assert sent["reprise.active_runs"].WhichOneof("value") == "gauge"
    assert not [canary for canary in CANARIES if canary in server.client.get("/metrics").body.decode()]
    # In the text format each name is introduced once, before its samples.
    introduced = re.findall(r"^# TYPE (\S+)", server.client.get("/metrics").body.decode(), re.M)
    assert len(introduced) == len(set(introduced))


def test_prometheus_counts_without_a_collector(make_server, provider):
    client = make_server(provider).client
    provider.plan(text("ok"))
    client.turn("c", "x")
    served = metrics(client)
    assert list(served["gen_ai_invoke_agent_duration_seconds_count"].values()) == [1]
    assert "reprise_telemetry_spans_sent_total" not in served
    disabled = make_server(provider, environment={"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}).client
    provider.plan(text("ok"))
    disabled.turn("c", "x")
    assert not [name for name in metrics(disabled) if name.startswith("gen_ai")]


def dropped(client, reason):
    return metrics(client)["reprise_telemetry_spans_dropped_total"]['{reason="' + reason + '"}']


def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def turns(client, provider, count):
    for number in range(count):
        provider.plan(text("ok"))
        client.turn("c", f"turn {number}")


def test_a_dead_collector_does_no_harm_and_lost_data_are_counted(make_server, provider):
    server = make_server(provider, environment={**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{closed_port()}", "OTEL_BSP_EXPORT_TIMEOUT": "100"})
    turns(server.client, provider, 3)
    eventually(lambda: dropped(server.client, "not_delivered") >= 9, "all is counted")
    assert server.log().count("the telemetry collector does not take what it is sent") in (1, 2), "one line for spans and one for metrics"


@pytest.mark.parametrize("status, tries", [(500, 1), (400, 1), (503, 2), (429, 2)])
def test_what_a_collector_refuses_is_tried_again_only_if_it_says_so(make_server, provider, status, tries):
    answers = [(status, {"Retry-After": "0"}, b"")]
    collector = Collector(lambda path: answers.pop() if answers and path == "/v1/traces" else (200, {}, b""))
    server = make_server(provider, environment={**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url})
    turns(server.client, provider, 1)
    if tries == 1:
        eventually(lambda: dropped(server.client, "not_delivered") > 0, "it is counted")
    else:
        eventually(lambda: len(collector.taken("/v1/traces")) >= tries and metrics(server.client)["reprise_telemetry_spans_sent_total"][""] >= 3, "it is sent again")
        bodies = [body for _, body in collector.taken("/v1/traces")]
        assert bodies[0] == bodies[1] and dropped(server.client, "not_delivered") == 0
    collector.close()


def test_what_a_collector_takes_only_in_part_is_counted(make_server, provider):
    answer = TYPES["Response"](partial_success=TYPES["PartialSuccess"](rejected=2, error_message="no")).SerializeToString()
    collector = Collector(lambda path: (200, {}, answer))
    server = make_server(provider, environment={**QUICK, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.url + "/v1/traces"})
    turns(server.client, provider, 1)
    eventually(lambda: dropped(server.client, "not_delivered") == 2, "it is counted")
    assert collector.taken("/v1/metrics") == []
    collector.close()


@pytest.mark.limit(60)
def test_a_hanging_collector_holds_up_nothing_and_the_queue_has_an_end(make_server, provider):
    hang = threading.Event()
    collector = Collector(lambda path: hang.wait(60) and (200, {}, b""))
    environment = {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_MAX_QUEUE_SIZE": "4", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2"}
    server = make_server(provider, environment=environment)
    turns(server.client, provider, 1)
    eventually(lambda: collector.taken("/v1/traces"), "a request hangs")
    turns(server.client, provider, 4)
    eventually(lambda: dropped(server.client, "queue_full") > 0, "dropped spans are counted")
    # One second for the remaining spans, and the usual time of a stop.
    assert server.stop() < 2 * SLACK
    hang.set()
    collector.close()


def test_a_stop_sends_what_is_left(watched, provider, collector):
    server = watched(environment={"OTEL_BSP_SCHEDULE_DELAY": "600000", "OTEL_METRIC_EXPORT_INTERVAL": "600000"})
    turns(server.client, provider, 2)
    assert collector.requests == []
    assert server.stop() < 2 * SLACK
    assert len(collector.trace(2).named(AGENT)) == 2
    assert collector.metrics()["reprise.runs.finished"].sum.data_points[0].as_int == 2


def test_variables(make_server, provider, collector):
    environment = {**QUICK, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": collector.url + "/own/traces", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url + "/base/",
                   "OTEL_EXPORTER_OTLP_HEADERS": "x-team=a%20b, authorization=Basic%20canary-key-99", "OTEL_SERVICE_NAME": "mine",
                   "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test,service.name=not-this"}
    server = make_server(provider, environment=environment)
    turns(server.client, provider, 1)
    eventually(lambda: collector.taken("/own/traces") and collector.taken("/base/v1/metrics"), "both are sent")
    headers, body = collector.taken("/own/traces")[0]
    assert headers["x-team"] == "a b" and headers["authorization"] == "Basic canary-key-99"
    assert b"mine" in body and b"not-this" not in body and b"deployment.environment.name" in body
    assert "canary-key-99" not in server.log()


@pytest.mark.parametrize("environment, words", [
    ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf"),
    ({"OTEL_TRACES_SAMPLER": "sometimes"}, "OTEL_TRACES_SAMPLER must be"),
    ({"OTEL_BSP_MAX_QUEUE_SIZE": "many"}, "OTEL_BSP_MAX_QUEUE_SIZE must be a whole number"),
    ({"OTEL_EXPORTER_OTLP_HEADERS": "no"}, "OTEL_EXPORTER_OTLP_HEADERS must be"),
    ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector:4317"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be a URL"),
])
def test_variables_that_cannot_be_taken_are_named_in_the_log(watched, environment, words):
    assert words in watched(environment=environment).log()


def test_sampling(watched, provider, collector):
    client = watched(environment={"OTEL_TRACES_SAMPLER": "always_off"}).client
    turns(client, provider, 1)
    eventually(lambda: collector.metrics().get("gen_ai.invoke_agent.duration"), "metrics count unsampled runs")
    assert collector.spans() == []


@pytest.mark.parametrize("telemetry, words", [
    ({"otlp_endpoint": "collector:4318"}, 'key "telemetry.otlp_endpoint" must begin with http:// or https://'),
    ({"endpoint": "http://x"}, 'unknown key "telemetry.endpoint"'),
    ({"content": "yes"}, 'key "telemetry.content" must be true or false'),
    ({"headers": {"Content-Type": "x"}}, 'key "telemetry.headers.Content-Type" is not a usable name'),
])
def test_a_configuration_that_is_wrong_is_said_to_be(make_server, telemetry, words):
    with pytest.raises(AssertionError, match="ended with 2") as failed:
        make_server(config={"telemetry": telemetry})
    assert words in str(failed.value)
