#include <chrono>
#include <numeric>
#include <string>

#include "support/test.h"
#include "telemetry/otlp_telemetry.h"

namespace reprise::span_metrics_test {
namespace {

SpanRecord Chat(std::string model, std::chrono::milliseconds taken) {
  SpanRecord span;
  span.began = std::chrono::seconds(100);
  span.ended = span.began + taken;
  span.attributes = {{"gen_ai.operation.name", "chat"},
                     {"gen_ai.provider.name", "openai"},
                     {"gen_ai.request.model", std::move(model)},
                     {"gen_ai.usage.input_tokens", std::int64_t{5}}};
  return span;
}

Metric Find(const SpanMetrics& metrics, std::string_view name) {
  std::vector<Metric> all;
  metrics.Collect(all);
  for (const Metric& metric : all) {
    if (metric.name == name) return metric;
  }
  return {};
}

TEST_CASE("SpanMetrics: durations fall into buckets that include their upper bound", "[telemetry]") {
  SpanMetrics metrics;
  for (const int taken : {1, 10, 11, 1'000'000}) metrics.Observe(Chat("m", std::chrono::milliseconds(taken)));
  const Metric duration = Find(metrics, "gen_ai.client.inference.duration");
  REQUIRE(duration.points.size() == 1);
  const MetricPoint& point = duration.points[0];
  CHECK(duration.bounds.front() == 0.01);
  CHECK(point.buckets.size() == duration.bounds.size() + 1);
  CHECK(point.buckets[0] == 2);
  CHECK(point.buckets[1] == 1);
  CHECK(point.buckets.back() == 1);
  CHECK(point.count == 4);
  CHECK(point.value > 1000.0);
}

TEST_CASE("SpanMetrics: missing attributes are not counted", "[telemetry]") {
  SpanMetrics metrics;
  metrics.Observe(Chat("m", std::chrono::milliseconds(1)));
  CHECK(Find(metrics, "gen_ai.client.inference.usage.input_tokens").points[0].value == 5);
  CHECK(Find(metrics, "gen_ai.client.inference.usage.output_tokens").points.empty());
  CHECK(Find(metrics, "gen_ai.execute_tool.duration").points.empty());
}

TEST_CASE("SpanMetrics: made-up names do not make it grow without limit", "[telemetry]") {
  SpanMetrics metrics;
  constexpr std::size_t kMore = 50;
  for (std::size_t i = 0; i < SpanMetrics::kMaxSeries + kMore; ++i) {
    metrics.Observe(Chat("model-" + std::to_string(i) + std::string(1000, 'x'), std::chrono::milliseconds(1)));
  }
  const Metric duration = Find(metrics, "gen_ai.client.inference.duration");
  CHECK(duration.points.size() == SpanMetrics::kMaxSeries + 1);
  std::uint64_t overflow = 0, all = 0;
  for (const MetricPoint& point : duration.points) {
    all += point.count;
    if (point.labels == std::vector<Attribute>{{"otel.metric.overflow", true}}) overflow = point.count;
  }
  CHECK(overflow == kMore);
  CHECK(all == SpanMetrics::kMaxSeries + kMore);
}

}  // namespace
}  // namespace reprise::span_metrics_test
