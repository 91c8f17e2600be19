#include "telemetry/otlp_telemetry.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/system.h"
#include "base/text.h"

namespace reprise {
namespace {

ResourceAttributes ResourceOf(const TelemetryOptions& options) {
  ResourceAttributes resource = {
      {"service.name", options.service_name}, {"service.version", options.service_version},
      {"service.instance.id", RandomHex(16)}, {"telemetry.sdk.name", "reprise"},
      {"telemetry.sdk.language", "cpp"},      {"telemetry.sdk.version", options.service_version}};
  for (const auto& [key, value] : options.resource) {
    const auto known = std::ranges::find_if(resource, [&](const auto& each) { return each.first == key; });
    if (known == resource.end()) {
      resource.emplace_back(key, value);
    } else if (key != "service.name") {  // it is in options.service_name already
      known->second = value;
    }
  }
  return resource;
}

}  // namespace

OtlpTelemetry::OtlpTelemetry(Transport& transport, const TelemetryOptions& options)
    : options_(options), sampler_(options.sampler) {
  if (!options.traces.url.empty() || !options.metrics.url.empty()) {
    exporter_.emplace(transport, options, ResourceOf(options));
  }
}

TraceContext OtlpTelemetry::NewContext(const TraceContext& parent) {
  if (options_.traces.url.empty()) return {};
  TraceContext context;
  if (parent.is_valid()) {
    context.trace_id = parent.trace_id;
    context.state = parent.state;
  } else {
    FillRandom(context.trace_id.data(), context.trace_id.size());
  }
  FillRandom(context.span_id.data(), context.span_id.size());
  context.sampled = sampler_.Samples(parent, context.trace_id);
  return context;
}

void OtlpTelemetry::Ended(SpanRecord span) noexcept {
  try {
    metrics_.Observe(span);
  } catch (const std::bad_alloc&) {  // the span is not counted
  }
  if (exporter_ && span.context.sampled) exporter_->Add(std::move(span));
}

void OtlpTelemetry::Collect(std::vector<Metric>& metrics) const {
  metrics_.Collect(metrics);
  if (more_) more_(metrics);
  if (!exporter_) return;
  const Exporter::Counts counts = exporter_->counts();
  metrics.push_back({.name = "reprise.telemetry.spans.sent",
                     .type = Metric::Type::kCounter,
                     .unit = "{span}",
                     .help = "Spans that the collector has taken.",
                     .points = {{.value = static_cast<double>(counts.sent)}}});
  metrics.push_back(
      {.name = "reprise.telemetry.spans.dropped",
       .type = Metric::Type::kCounter,
       .unit = "{span}",
       .help = "Spans that were dropped: the queue was full, or the collector did not take them.",
       .points = {{.labels = {{"reason", "queue_full"}}, .value = static_cast<double>(counts.no_room)},
                  {.labels = {{"reason", "not_delivered"}}, .value = static_cast<double>(counts.not_delivered)}}});
}

void OtlpTelemetry::SetSource(Exporter::Source source) {
  if (exporter_) exporter_->SetSource(std::move(source));
}
void OtlpTelemetry::BeginStop() {
  if (exporter_) exporter_->BeginStop();
}
void OtlpTelemetry::Stop() {
  if (exporter_) exporter_->Stop();
}

bool Sampler::Samples(const TraceContext& parent, const decltype(TraceContext::trace_id)& trace_id) const {
  if (options_.follows_parent && parent.is_valid()) return parent.sampled;
  if (options_.ratio >= 1) return true;
  // Uses the last eight bytes of the id, which are random, as other SDKs do, so that all decide alike on a trace.
  std::uint64_t random = 0;
  for (std::size_t i = 8; i < trace_id.size(); ++i) random = random << 8 | trace_id[i];
  return static_cast<double>(random >> 1) < std::ldexp(options_.ratio, 63);
}

namespace {

constexpr std::size_t kMaxLabel = 200;  // characters

const AttributeValue* Find(const SpanRecord& span, std::string_view key) {
  const auto found = std::ranges::find(span.attributes, key, &Attribute::key);
  return found == span.attributes.end() ? nullptr : &found->value;
}

bool IsAbout(const SpanRecord& span, std::string_view operation) {
  const AttributeValue* value = Find(span, "gen_ai.operation.name");
  const auto* name = value ? std::get_if<std::string>(value) : nullptr;
  return name != nullptr && *name == operation;
}
bool IsChat(const SpanRecord& span) { return IsAbout(span, "chat"); }
bool IsAgent(const SpanRecord& span) { return IsAbout(span, "invoke_agent"); }
bool IsTool(const SpanRecord& span) { return IsAbout(span, "execute_tool"); }
bool IsMcp(const SpanRecord& span) { return Find(span, "mcp.method.name") != nullptr; }
bool IsApproval(const SpanRecord& span) { return span.name == "await_approval"; }

std::optional<double> Duration(const SpanRecord& span) {
  return std::chrono::duration<double>(span.ended - span.began).count();
}

template <const char* kKey>
std::optional<double> Value(const SpanRecord& span) {
  const AttributeValue* value = Find(span, kKey);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<std::int64_t>(value)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<double>(value)) return *number;
  return std::nullopt;
}
constexpr char kInput[] = "gen_ai.usage.input_tokens", kOutput[] = "gen_ai.usage.output_tokens";
constexpr char kCacheRead[] = "gen_ai.usage.cache_read.input_tokens";
constexpr char kCacheWrite[] = "gen_ai.usage.cache_write.input_tokens";
constexpr char kFirstChunk[] = "gen_ai.response.time_to_first_chunk";

using Keys = std::vector<std::string_view>;
const Keys kModelKeys{"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "server.address",
                      "server.port"};
const Keys kModelKeysAndError{"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model",
                              "server.address",        "server.port",          "error.type"};
const std::vector<double> kSeconds{0.01, 0.02, 0.04, 0.08,  0.16,  0.32,  0.64,
                                   1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92};
const std::vector<double> kSecondsToFirst{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                          0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10};
const std::vector<double> kSecondsOfMcp{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300};
const std::vector<double> kSecondsOfPeople{1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400};
const std::vector<double> kTokens{1,     4,     16,     64,      256,     1024,     4096,
                                  16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864};

}  // namespace

struct SpanMetrics::Instrument {
  std::string_view name;
  Metric::Type type;
  std::string_view unit, help;
  bool (*concerns)(const SpanRecord&);
  std::optional<double> (*value)(const SpanRecord&);
  Keys labels;  // copied from the span if present
  std::vector<double> bounds{};
  std::vector<Attribute> more{};  // constant labels
};

const std::vector<SpanMetrics::Instrument>& SpanMetrics::Instruments() {
  constexpr auto kCounter = Metric::Type::kCounter, kHistogram = Metric::Type::kHistogram;
  constexpr std::string_view kToken = "{token}";
  const std::vector<Attribute> text{{"gen_ai.token.modality", "text"}};
  static const std::vector<Instrument> kAll{
      {"gen_ai.client.inference.duration", kHistogram, "s", "Requests to models.", IsChat, Duration, kModelKeysAndError,
       kSeconds},
      {"gen_ai.client.inference.time_to_first_chunk", kHistogram, "s", "Until a model begins to answer.", IsChat,
       Value<kFirstChunk>, kModelKeys, kSecondsToFirst},
      // The names of these two before version 0.1.0 of the conventions, for one version more.
      {"gen_ai.client.operation.duration", kHistogram, "s", "Requests to models.", IsChat, Duration, kModelKeysAndError,
       kSeconds},
      {"gen_ai.client.operation.time_to_first_chunk", kHistogram, "s", "Until a model begins to answer.", IsChat,
       Value<kFirstChunk>, kModelKeys, kSecondsToFirst},
      {"gen_ai.client.inference.usage.input_tokens",
       kCounter,
       kToken,
       "Input tokens, cached ones included.",
       IsChat,
       Value<kInput>,
       kModelKeys,
       {},
       text},
      {"gen_ai.client.inference.usage.output_tokens",
       kCounter,
       kToken,
       "Output tokens.",
       IsChat,
       Value<kOutput>,
       kModelKeys,
       {},
       text},
      {"gen_ai.client.inference.usage.cache_read.input_tokens",
       kCounter,
       kToken,
       "Input tokens read from the provider's cache.",
       IsChat,
       Value<kCacheRead>,
       kModelKeys,
       {},
       text},
      {"gen_ai.client.inference.usage.cache_write.input_tokens",
       kCounter,
       kToken,
       "Input tokens written to the provider's cache.",
       IsChat,
       Value<kCacheWrite>,
       kModelKeys,
       {},
       text},
      {"gen_ai.client.inference.operation.input_tokens", kHistogram, kToken, "Input tokens of a request.", IsChat,
       Value<kInput>, kModelKeysAndError, kTokens},
      {"gen_ai.client.inference.operation.output_tokens", kHistogram, kToken, "Output tokens of a request.", IsChat,
       Value<kOutput>, kModelKeysAndError, kTokens},
      {"gen_ai.invoke_agent.duration",
       kHistogram,
       "s",
       "Interactions, and those of sub-agents.",
       IsAgent,
       Duration,
       {"gen_ai.agent.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type"},
       kSeconds},
      {"gen_ai.execute_tool.duration",
       kHistogram,
       "s",
       "Tool calls, without what a person took to approve them.",
       IsTool,
       Duration,
       {"gen_ai.tool.name", "gen_ai.tool.type", "error.type"},
       kSeconds},
      {"mcp.client.operation.duration",
       kHistogram,
       "s",
       "Requests to MCP servers for tool calls.",
       IsMcp,
       Duration,
       {"mcp.method.name", "gen_ai.tool.name", "gen_ai.prompt.name", "rpc.response.status_code", "error.type"},
       kSecondsOfMcp},
      {"reprise.approval.wait.duration",
       kHistogram,
       "s",
       "How long approvals waited for an answer.",
       IsApproval,
       Duration,
       {"reprise.approval.decision"},
       kSecondsOfPeople},
  };
  return kAll;
}

MetricPoint& SpanMetrics::SeriesOf(std::size_t instrument, std::vector<Attribute> labels) {
  auto& series = series_[instrument];
  const auto known = series.find(labels);
  if (known != series.end()) return known->second;
  if (series.size() >= kMaxSeries) labels = {{"otel.metric.overflow", true}};
  MetricPoint& point = series[labels];
  if (point.labels.empty()) {
    point.labels = std::move(labels);
    const std::size_t bounds = Instruments()[instrument].bounds.size();
    if (bounds > 0) point.buckets.resize(bounds + 1);
  }
  return point;
}

// Whether these are the labels of the span, with nothing cut off.
bool SpanMetrics::HasLabels(const MetricPoint& point, const Instrument& instrument, const SpanRecord& span) {
  const auto& more = instrument.more;
  if (!std::equal(more.begin(), more.end(), point.labels.begin(),
                  point.labels.begin() + std::min(more.size(), point.labels.size())))
    return false;
  auto label = point.labels.begin() + static_cast<std::ptrdiff_t>(more.size());
  for (const std::string_view key : instrument.labels) {
    const AttributeValue* found = Find(span, key);
    if (found == nullptr) continue;
    if (label == point.labels.end() || label->key != key || label->value != *found) return false;
    ++label;
  }
  return label == point.labels.end();
}

void SpanMetrics::Observe(const SpanRecord& span) {
  const std::vector<Instrument>& instruments = Instruments();
  const MutexLock lock(mutex_);
  last_.resize(instruments.size());
  for (std::size_t i = 0; i < instruments.size(); ++i) {
    const Instrument& instrument = instruments[i];
    if (!instrument.concerns(span)) continue;
    const auto value = instrument.value(span);
    if (!value) continue;
    if (last_[i] == nullptr || !HasLabels(*last_[i], instrument, span)) {
      std::vector<Attribute> labels = instrument.more;
      for (const std::string_view key : instrument.labels) {
        const AttributeValue* found = Find(span, key);
        if (found == nullptr) continue;
        labels.push_back({key, *found});
        auto* const text = std::get_if<std::string>(&labels.back().value);
        if (text != nullptr) text->resize(Utf8Prefix(*text, kMaxLabel).size());
      }
      last_[i] = &SeriesOf(i, std::move(labels));
    }
    MetricPoint& point = *last_[i];
    point.value += *value;
    ++point.count;
    if (instrument.bounds.empty()) continue;
    // A bound belongs to the bucket below it.
    const auto bound = std::lower_bound(instrument.bounds.begin(), instrument.bounds.end(), *value);
    ++point.buckets[static_cast<std::size_t>(bound - instrument.bounds.begin())];
  }
}

void SpanMetrics::Collect(std::vector<Metric>& metrics) const {
  const MutexLock lock(mutex_);
  for (const auto& [index, series] : series_) {
    const Instrument& instrument = Instruments()[index];
    Metric& metric = metrics.emplace_back(Metric{.name = instrument.name,
                                                 .type = instrument.type,
                                                 .unit = instrument.unit,
                                                 .help = instrument.help,
                                                 .bounds = instrument.bounds});
    for (const auto& [labels, point] : series) metric.points.push_back(point);
  }
}

}  // namespace reprise
