#include "telemetry/otlp.h"

#define PROTOZERO_USE_VIEW std::string_view
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>
#include <variant>

namespace reprise {
namespace {

using protozero::pbf_writer;

constexpr std::string_view kScope = "reprise";
constexpr int kCumulative = 2;  // AggregationTemporality
// The semantic conventions that the names follow.
constexpr std::string_view kSchemaUrl = "https://opentelemetry.io/schemas/gen-ai/1.42.0";

template <typename Array>
std::string_view BytesOf(const Array& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// AnyValue
void WriteValue(pbf_writer out, const AttributeValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return out.add_string(1, *text);
  if (const auto* flag = std::get_if<bool>(&value)) return out.add_bool(2, *flag);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return out.add_int64(3, *number);
  if (const auto* number = std::get_if<double>(&value)) return out.add_double(4, *number);
  std::string array;  // ArrayValue, which may be empty
  pbf_writer texts(array);
  for (const std::string& text : std::get<std::vector<std::string>>(value)) pbf_writer(texts, 1).add_string(1, text);
  out.add_message(5, array);
}

// KeyValue
void WriteAttribute(pbf_writer out, std::string_view key, const AttributeValue& value) {
  out.add_string(1, key);
  WriteValue(pbf_writer(out, 2), value);
}

std::uint64_t Nanoseconds(std::chrono::nanoseconds time) { return static_cast<std::uint64_t>(time.count()); }

void WriteSpan(pbf_writer out, const SpanRecord& span) {
  constexpr std::uint32_t kSampled = 1, kKnowsRemote = 0x100, kIsRemote = 0x200;  // SpanFlags
  constexpr int kInternal = 1, kClient = 3;                                       // SpanKind
  constexpr int kError = 2;                                                       // StatusCode
  out.add_bytes(1, BytesOf(span.context.trace_id));
  out.add_bytes(2, BytesOf(span.context.span_id));
  if (!span.context.state.empty()) out.add_string(3, span.context.state);
  if (span.parent_id != decltype(span.parent_id){}) out.add_bytes(4, BytesOf(span.parent_id));
  out.add_string(5, span.name);
  out.add_enum(6, span.kind == SpanKind::kClient ? kClient : kInternal);
  out.add_fixed64(7, Nanoseconds(span.began));
  out.add_fixed64(8, Nanoseconds(span.ended));
  for (const Attribute& attribute : span.attributes) WriteAttribute({out, 9}, attribute.key, attribute.value);
  for (const TraceContext& linked : span.links) {
    pbf_writer link(out, 13);
    link.add_bytes(1, BytesOf(linked.trace_id));
    link.add_bytes(2, BytesOf(linked.span_id));
    if (!linked.state.empty()) link.add_string(3, linked.state);
    link.add_fixed32(6, (linked.sampled ? kSampled : 0) | kKnowsRemote | kIsRemote);
  }
  if (span.failed) {
    pbf_writer status(out, 15);
    if (!span.failure_text.empty()) status.add_string(2, span.failure_text);
    status.add_enum(3, kError);
  }
  out.add_fixed32(16, kSampled | kKnowsRemote | (span.parent_is_remote ? kIsRemote : 0));
}

// NumberDataPoint
void WriteNumber(pbf_writer out, const MetricPoint& point) {
  out.add_sfixed64(6, static_cast<std::int64_t>(point.value));
  for (const Attribute& label : point.labels) WriteAttribute({out, 7}, label.key, label.value);
}

// HistogramDataPoint
void WriteDistribution(pbf_writer out, const Metric& metric, const MetricPoint& point) {
  out.add_fixed64(4, point.count);
  out.add_double(5, point.value);
  out.add_packed_fixed64(6, point.buckets.begin(), point.buckets.end());
  out.add_packed_double(7, metric.bounds.begin(), metric.bounds.end());
  for (const Attribute& label : point.labels) WriteAttribute({out, 9}, label.key, label.value);
}

void WriteMetric(pbf_writer out, const Metric& metric, std::chrono::nanoseconds began, std::chrono::nanoseconds now) {
  constexpr std::uint32_t kGauge = 5, kSum = 7, kHistogram = 9;
  out.add_string(1, metric.name);
  out.add_string(2, metric.help);
  if (!metric.unit.empty()) out.add_string(3, metric.unit);
  const bool is_histogram = metric.type == Metric::Type::kHistogram;
  const std::uint32_t field = is_histogram ? kHistogram : metric.type == Metric::Type::kCounter ? kSum : kGauge;
  pbf_writer data(out, field);
  for (const MetricPoint& each : metric.points) {
    pbf_writer point(data, 1);
    point.add_fixed64(2, Nanoseconds(began));
    point.add_fixed64(3, Nanoseconds(now));
    is_histogram ? WriteDistribution(std::move(point), metric, each) : WriteNumber(std::move(point), each);
  }
  if (field != kGauge) data.add_enum(2, kCumulative);
  if (field == kSum) data.add_bool(3, true);  // is_monotonic
}

// An Export...ServiceRequest with one Resource... that holds one Scope...
template <typename Write>
std::string Encode(const ResourceAttributes& resource, const Write& write) {
  std::string text;
  pbf_writer out(text), all(out, 1);
  {
    pbf_writer told(all, 1);  // Resource
    for (const auto& [key, value] : resource) WriteAttribute({told, 1}, key, value);
  }
  {
    pbf_writer scope(all, 2);
    pbf_writer(scope, 1).add_string(1, kScope);
    write(scope);
    scope.add_string(3, kSchemaUrl);
  }
  all.commit();
  return text;
}

}  // namespace

std::string EncodeSpans(const ResourceAttributes& resource, std::span<const SpanRecord> spans) {
  return Encode(resource, [&](pbf_writer& out) {
    for (const SpanRecord& span : spans) WriteSpan({out, 2}, span);
  });
}

std::string EncodeMetrics(const ResourceAttributes& resource, std::span<const Metric> metrics,
                          std::chrono::nanoseconds began, std::chrono::nanoseconds now) {
  return Encode(resource, [&](pbf_writer& out) {
    for (const Metric& metric : metrics) {
      if (!metric.points.empty()) WriteMetric({out, 2}, metric, began, now);
    }
  });
}

std::uint64_t RejectedCount(std::string_view response) try {
  protozero::pbf_reader answer(response);
  if (!answer.next(1, protozero::pbf_wire_type::length_delimited)) return 0;
  protozero::pbf_reader partial_success = answer.get_message();
  return partial_success.next(1, protozero::pbf_wire_type::varint) ? partial_success.get_uint64() : 0;
} catch (const protozero::exception&) {  // not protobuf
  return 0;
}

}  // namespace reprise
