"""A collector on loopback: takes OTLP over HTTP and decodes it with Google's Protocol Buffers (python3-protobuf).

The messages are described here by the field numbers of OpenTelemetry's public specification, independently of the
server under test. A field that is not described is a failure.
"""
import http.server
import threading
import time
import types

import pytest

from .timing import SOON, eventually

protobuf = pytest.importorskip("google.protobuf", reason="python3-protobuf is not installed (scripts/deps test)")
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402

Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {name: getattr(Field, "TYPE_" + name.upper()) for name in
           ("string", "bool", "int64", "double", "bytes", "fixed64", "sfixed64", "fixed32", "uint32")}
ENUMS = {"SpanKind": 6, "StatusCode": 3, "Temporality": 3}
# Message: field, number, type; "*" repeated, "|" of the message's one oneof, "?" optional.
MESSAGES = {
    "AnyValue": "string_value 1 |string, bool_value 2 |bool, int_value 3 |int64, double_value 4 |double, array_value 5 |ArrayValue",
    "ArrayValue": "values 1 *AnyValue",
    "KeyValue": "key 1 string, value 2 AnyValue",
    "Resource": "attributes 1 *KeyValue, dropped_attributes_count 2 uint32",
    "Scope": "name 1 string, version 2 string, attributes 3 *KeyValue",
    "Status": "message 2 string, code 3 StatusCode",
    "Link": "trace_id 1 bytes, span_id 2 bytes, trace_state 3 string, attributes 4 *KeyValue, flags 6 fixed32",
    "Span": "trace_id 1 bytes, span_id 2 bytes, trace_state 3 string, parent_span_id 4 bytes, name 5 string, kind 6 SpanKind, "
            "start_time_unix_nano 7 fixed64, end_time_unix_nano 8 fixed64, attributes 9 *KeyValue, links 13 *Link, status 15 Status, flags 16 fixed32",
    "ScopeSpans": "scope 1 Scope, spans 2 *Span, schema_url 3 string",
    "ResourceSpans": "resource 1 Resource, scope_spans 2 *ScopeSpans, schema_url 3 string",
    "TracesRequest": "resource_spans 1 *ResourceSpans",
    "NumberPoint": "start_time_unix_nano 2 fixed64, time_unix_nano 3 fixed64, as_double 4 |double, as_int 6 |sfixed64, attributes 7 *KeyValue",
    "HistogramPoint": "start_time_unix_nano 2 fixed64, time_unix_nano 3 fixed64, count 4 fixed64, sum 5 ?double, bucket_counts 6 *fixed64, "
                      "explicit_bounds 7 *double, attributes 9 *KeyValue",
    "Gauge": "data_points 1 *NumberPoint",
    "Sum": "data_points 1 *NumberPoint, aggregation_temporality 2 Temporality, is_monotonic 3 bool",
    "Histogram": "data_points 1 *HistogramPoint, aggregation_temporality 2 Temporality",
    "Metric": "name 1 string, description 2 string, unit 3 string, gauge 5 |Gauge, sum 7 |Sum, histogram 9 |Histogram",
    "ScopeMetrics": "scope 1 Scope, metrics 2 *Metric, schema_url 3 string",
    "ResourceMetrics": "resource 1 Resource, scope_metrics 2 *ScopeMetrics, schema_url 3 string",
    "MetricsRequest": "resource_metrics 1 *ResourceMetrics",
    "PartialSuccess": "rejected 1 int64, error_message 2 string",
    "Response": "partial_success 1 PartialSuccess",
}


def described():
    file = descriptor_pb2.FileDescriptorProto(name="otlp.proto", package="otlp", syntax="proto3")
    for name, values in ENUMS.items():
        enum = file.enum_type.add(name=name)
        for number in range(values):
            enum.value.add(name=f"{name}_{number}", number=number)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split(","):
            field_name, number, kind = text.split()
            mark, kind = (kind[0], kind[1:]) if kind[0] in "*|?" else ("", kind)
            field = message.field.add(name=field_name, number=int(number), label=Field.LABEL_REPEATED if mark == "*" else Field.LABEL_OPTIONAL)
            if kind in SCALARS:
                field.type = SCALARS[kind]
            else:
                field.type, field.type_name = (Field.TYPE_ENUM if kind in ENUMS else Field.TYPE_MESSAGE), ".otlp." + kind
            if mark in "|?" and mark:
                if mark == "?" or not message.oneof_decl:
                    message.oneof_decl.add(name="value" if mark == "|" else "_" + field_name)
                field.oneof_index = len(message.oneof_decl) - 1
                field.proto3_optional = mark == "?"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return {name: factory.GetPrototype(pool.FindMessageTypeByName("otlp." + name)) for name in MESSAGES}


TYPES = described()


def known(message):
    """Fails for a field that is not described."""
    assert not list(message.UnknownFields()), f"unknown fields in a {message.DESCRIPTOR.name}"
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if field.label == Field.LABEL_REPEATED else [value]:
                known(each)
    return message


def decode(name, body):
    return known(TYPES[name].FromString(body))


def value(any_value):
    kind = any_value.WhichOneof("value")
    assert kind, "a value without a type"
    return [value(each) for each in any_value.array_value.values] if kind == "array_value" else getattr(any_value, kind)


def attributes(pairs):
    found = {pair.key: value(pair.value) for pair in pairs}
    assert len(found) == len(pairs), "a duplicate key"
    return found


class Span(types.SimpleNamespace):
    """One span; `of` are the attributes of its resource."""

    def __init__(self, span, resource):
        super().__init__(trace=span.trace_id.hex(), id=span.span_id.hex(), parent=span.parent_span_id.hex(), name=span.name, state=span.trace_state,
                         kind={1: "INTERNAL", 3: "CLIENT"}[span.kind], began=span.start_time_unix_nano, ended=span.end_time_unix_nano,
                         attributes=attributes(span.attributes), failed=span.status.code == 2, message=span.status.message, flags=span.flags, of=resource,
                         links=[(link.trace_id.hex(), link.span_id.hex(), link.flags) for link in span.links])

    def __getitem__(self, key):
        return self.attributes[key]

    @property
    def seconds(self):
        return (self.ended - self.began) / 1e9


OK = (200, {}, b"")


class Collector:
    """`behave(path)` gives status, headers and body of the next response; it may block."""

    def __init__(self, behave=lambda path: OK, port=0):
        self.requests = []  # (path, headers, body) of every request
        self.behave = behave
        self.lock = threading.Lock()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with collector.lock:
                    collector.requests.append((self.path, self.headers, body))
                status, headers, answer = collector.behave(self.path)
                self.send_response(status)
                for name, text in {"Content-Type": "application/x-protobuf", "Content-Length": str(len(answer)), **headers}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(answer)

        class HttpServer(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.http = HttpServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def taken(self, path):
        with self.lock:
            return [(headers, body) for at, headers, body in self.requests if at == path]

    def spans(self):
        found = []
        for headers, body in self.taken("/v1/traces"):
            assert headers["Content-Type"] == "application/x-protobuf"
            for resource in decode("TracesRequest", body).resource_spans:
                about = attributes(resource.resource.attributes)
                found += [Span(span, about) for scope in resource.scope_spans for span in scope.spans]
        return found

    def metrics(self):
        """The metrics of the last request, by name."""
        taken = self.taken("/v1/metrics")
        if not taken:
            return {}
        decoded = decode("MetricsRequest", taken[-1][1])
        return {metric.name: metric for resource in decoded.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics}

    def trace(self, interactions=1):
        """Waits until that many interactions have ended. Returns all spans."""
        eventually(lambda: sum(s.name == "invoke_agent reprise" for s in self.spans()) >= interactions, "the collector has the interaction's span", 2 * SOON)
        return Trace(self.spans())


class Trace:
    def __init__(self, spans):
        self.spans = spans
        self.by_id = {span.id: span for span in spans}
        assert len(self.by_id) == len(spans), "a duplicate span"

    def named(self, name):
        return sorted((s for s in self.spans if s.name == name), key=lambda s: s.began)

    def one(self, name):
        found = self.named(name)
        assert len(found) == 1, f"{len(found)} spans named {name}: {sorted(s.name for s in self.spans)}"
        return found[0]

    def parent(self, span):
        return self.by_id[span.parent]

    def children(self, span):
        return sorted((s for s in self.spans if s.parent == span.id), key=lambda s: s.began)

    def tree(self, span):
        """(name, [children])"""
        return span.name, [self.tree(child) for child in self.children(span)]

    def check_nesting(self):
        for span in self.spans:
            assert 0 < span.began <= span.ended, span.name
            assert abs(span.ended / 1e9 - time.time()) < 3600, "times are wall-clock times"
            parent = self.by_id.get(span.parent)
            if parent:
                assert parent.trace == span.trace
                assert parent.began <= span.began and span.ended <= parent.ended, f"{span.name} is not within {parent.name}"
