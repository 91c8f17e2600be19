#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/telemetry.h"

// The bodies of OTLP/HTTP requests (opentelemetry-proto 1.x, binary).
namespace reprise {

// Attributes of the sender: "service.name" and the like.
using ResourceAttributes = std::vector<std::pair<std::string, std::string>>;

// An ExportTraceServiceRequest.
std::string EncodeSpans(const ResourceAttributes& resource, std::span<const SpanRecord> spans);
// An ExportMetricsServiceRequest. Sums and distributions are cumulative, since `began`.
std::string EncodeMetrics(const ResourceAttributes& resource, std::span<const Metric> metrics,
                          std::chrono::nanoseconds began, std::chrono::nanoseconds now);

// How many items the collector rejected, from its Export...ServiceResponse; 0 if that cannot be read.
std::uint64_t RejectedCount(std::string_view response);

}  // namespace reprise
