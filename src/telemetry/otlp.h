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

// Who tells: "service.name" and the like.
using ResourceAttributes = std::vector<std::pair<std::string, std::string>>;

// An ExportTraceServiceRequest.
std::string EncodeSpans(const ResourceAttributes& resource, std::span<const SpanRecord> spans);
// An ExportMetricsServiceRequest. Sums and distributions are cumulative, since `began`.
std::string EncodeMetrics(const ResourceAttributes& resource, std::span<const Metric> metrics,
                          std::chrono::nanoseconds began, std::chrono::nanoseconds now);

// How many of what was sent the response (Export...ServiceResponse) says were not taken. 0 for what cannot be read.
std::uint64_t RejectedCount(std::string_view response);

}  // namespace reprise
