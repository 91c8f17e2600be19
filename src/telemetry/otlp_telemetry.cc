#include "telemetry/otlp_telemetry.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <utility>

#include "base/system.h"

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

}  // namespace reprise
