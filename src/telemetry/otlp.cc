#include "telemetry/otlp.h"

#include <optional>
#include <variant>

#include "telemetry/protobuf_writer.h"

namespace reprise {
namespace {

constexpr std::string_view kScope = "reprise";
constexpr std::uint64_t kCumulative = 2;  // AggregationTemporality
// The conventions that names follow.
constexpr std::string_view kSchemaUrl = "https://opentelemetry.io/schemas/gen-ai/1.42.0";

template <typename Array>
std::string_view BytesOf(const Array& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// AnyValue
void WriteValue(ProtobufWriter& out, const AttributeValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return out.Bytes(1, *text);
  if (const auto* flag = std::get_if<bool>(&value)) return out.Varint(2, *flag ? 1 : 0);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return out.Varint(3, static_cast<std::uint64_t>(*number));
  if (const auto* number = std::get_if<double>(&value)) return out.Double(4, *number);
  out.Message(5, [&] {  // ArrayValue
    for (const std::string& text : std::get<std::vector<std::string>>(value)) {
      out.Message(1, [&] { out.Bytes(1, text); });
    }
  });
}

// KeyValue
void WriteAttribute(ProtobufWriter& out, std::uint32_t field, std::string_view key, const AttributeValue& value) {
  out.Message(field, [&] {
    out.Bytes(1, key);
    out.Message(2, [&] { WriteValue(out, value); });
  });
}

void WriteResource(ProtobufWriter& out, const ResourceAttributes& resource) {
  out.Message(1, [&] {
    for (const auto& [key, value] : resource) WriteAttribute(out, 1, key, value);
  });
}

void WriteScope(ProtobufWriter& out) {
  out.Message(1, [&] { out.Bytes(1, kScope); });
}

std::uint64_t Nanoseconds(std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }

void WriteSpan(ProtobufWriter& out, const SpanRecord& span) {
  constexpr std::uint32_t kSampled = 1, kKnowsRemote = 0x100, kIsRemote = 0x200;  // SpanFlags
  constexpr std::uint64_t kInternal = 1, kClient = 3;                             // SpanKind
  constexpr std::uint64_t kError = 2;                                             // StatusCode
  out.Bytes(1, BytesOf(span.context.trace_id));
  out.Bytes(2, BytesOf(span.context.span_id));
  if (!span.context.state.empty()) out.Bytes(3, span.context.state);
  if (span.parent_id != decltype(span.parent_id){}) out.Bytes(4, BytesOf(span.parent_id));
  out.Bytes(5, span.name);
  out.Varint(6, span.kind == SpanKind::kClient ? kClient : kInternal);
  out.Fixed64(7, Nanoseconds(span.began));
  out.Fixed64(8, Nanoseconds(span.ended));
  for (const Attribute& attribute : span.attributes) WriteAttribute(out, 9, attribute.key, attribute.value);
  for (const TraceContext& link : span.links) {
    out.Message(13, [&] {
      out.Bytes(1, BytesOf(link.trace_id));
      out.Bytes(2, BytesOf(link.span_id));
      if (!link.state.empty()) out.Bytes(3, link.state);
      out.Fixed32(6, (link.sampled ? kSampled : 0) | kKnowsRemote | kIsRemote);
    });
  }
  if (span.failed) {
    out.Message(15, [&] {
      if (!span.failure_text.empty()) out.Bytes(2, span.failure_text);
      out.Varint(3, kError);
    });
  }
  out.Fixed32(16, kSampled | kKnowsRemote | (span.parent_is_remote ? kIsRemote : 0));
}

// NumberDataPoint
void WriteNumber(ProtobufWriter& out, const MetricPoint& point, std::chrono::nanoseconds began,
                 std::chrono::nanoseconds now) {
  out.Fixed64(2, Nanoseconds(began));
  out.Fixed64(3, Nanoseconds(now));
  out.Fixed64(6, static_cast<std::uint64_t>(static_cast<std::int64_t>(point.value)));
  for (const Attribute& label : point.labels) WriteAttribute(out, 7, label.key, label.value);
}

// HistogramDataPoint
void WriteDistribution(ProtobufWriter& out, const Metric& metric, const MetricPoint& point,
                       std::chrono::nanoseconds began, std::chrono::nanoseconds now) {
  out.Fixed64(2, Nanoseconds(began));
  out.Fixed64(3, Nanoseconds(now));
  out.Fixed64(4, point.count);
  out.Double(5, point.value);
  out.PackedFixed64(6, point.buckets);
  out.PackedDoubles(7, metric.bounds);
  for (const Attribute& label : point.labels) WriteAttribute(out, 9, label.key, label.value);
}

void WriteMetric(ProtobufWriter& out, const Metric& metric, std::chrono::nanoseconds began,
                 std::chrono::nanoseconds now) {
  constexpr std::uint32_t kGauge = 5, kSum = 7, kHistogram = 9;
  out.Bytes(1, metric.name);
  out.Bytes(2, metric.help);
  if (!metric.unit.empty()) out.Bytes(3, metric.unit);
  const bool is_histogram = metric.type == Metric::Type::kHistogram;
  const std::uint32_t field = is_histogram ? kHistogram : metric.type == Metric::Type::kCounter ? kSum : kGauge;
  out.Message(field, [&] {
    for (const MetricPoint& point : metric.points) {
      out.Message(1, [&] {
        is_histogram ? WriteDistribution(out, metric, point, began, now) : WriteNumber(out, point, began, now);
      });
    }
    if (field != kGauge) out.Varint(2, kCumulative);
    if (field == kSum) out.Varint(3, 1);  // is_monotonic
  });
}

// What an Export...ServiceRequest consists of: one Resource..., with one Scope... in it.
template <typename Write>
std::string Encode(const ResourceAttributes& resource, const Write& write) {
  ProtobufWriter out;
  out.Message(1, [&] {
    WriteResource(out, resource);
    out.Message(2, [&] {
      WriteScope(out);
      write(out);
      out.Bytes(3, kSchemaUrl);
    });
  });
  return out.Take();
}

std::optional<std::uint64_t> TakeVarint(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string EncodeSpans(const ResourceAttributes& resource, std::span<const SpanRecord> spans) {
  return Encode(resource, [&](ProtobufWriter& out) {
    for (const SpanRecord& span : spans) out.Message(2, [&] { WriteSpan(out, span); });
  });
}

std::string EncodeMetrics(const ResourceAttributes& resource, std::span<const Metric> metrics,
                          std::chrono::nanoseconds began, std::chrono::nanoseconds now) {
  return Encode(resource, [&](ProtobufWriter& out) {
    for (const Metric& metric : metrics) {
      if (!metric.points.empty()) out.Message(2, [&] { WriteMetric(out, metric, began, now); });
    }
  });
}

std::uint64_t RejectedCount(std::string_view response) {
  constexpr std::uint64_t kPartialSuccess = 1 << 3 | 2, kRejected = 1 << 3;
  if (TakeVarint(response) != kPartialSuccess) return 0;
  const auto size = TakeVarint(response);
  if (!size || *size > response.size()) return 0;
  response = response.substr(0, *size);
  return TakeVarint(response) == kRejected ? TakeVarint(response).value_or(0) : 0;
}

}  // namespace reprise
