#include "telemetry/exporter.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "support/test.h"

namespace reprise::exporter_test {
namespace {

// Answers with statuses in their order, and with 200 after that; holds its answers back while it is `held`.
class Collector final : public Transport {
 public:
  explicit Collector(std::deque<int> given = {}, bool is_held = false) : statuses(std::move(given)), held(is_held) {}

  void Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop, Done done) override {
    std::unique_lock lock(mutex);
    bodies.push_back(std::move(request.body));
    int status = 200;
    if (!statuses.empty()) status = statuses.front(), statuses.pop_front();
    changed.notify_all();
    changed.wait(lock, stop, [this] { return !held; });
    lock.unlock();
    if (stop.stop_requested()) return done(Fail(ErrorCode::kCancelled, "stopped"));
    handler.OnHead(status, {{"retry-after", "0"}});
    done({});
  }

  void WaitForRequests(std::size_t count) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return bodies.size() >= count; });
  }
  void Release() {
    const std::lock_guard lock(mutex);
    held = false;
    changed.notify_all();
  }

  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<int> statuses;
  bool held;
  std::vector<std::string> bodies;
};

TelemetryOptions Options() {
  TelemetryOptions options;
  options.traces.url = "http://collector/v1/traces";
  options.max_queue = 4;
  options.max_batch = 2;
  options.schedule_delay = std::chrono::hours(1);
  return options;
}

SpanRecord Named(std::string name) {
  SpanRecord span;
  span.name = std::move(name);
  return span;
}

TEST_CASE("Exporter: sends when a batch is full, and the rest when it stops", "[telemetry]") {
  Collector collector;
  Exporter exporter(collector, Options(), {{"service.name", "x"}});
  for (const char* name : {"one", "two", "three"}) exporter.Add(Named(name));
  collector.WaitForRequests(1);
  exporter.Stop();
  REQUIRE(collector.bodies.size() == 2);
  CHECK(collector.bodies[0].find("two") != std::string::npos);
  CHECK(collector.bodies[1].find("three") != std::string::npos);
  CHECK(exporter.counts().sent == 3);
  exporter.Add(Named("late"));
  CHECK(exporter.counts().no_room == 1);
}

TEST_CASE("Exporter: a full queue drops spans, and a stop ends a hanging request", "[telemetry]") {
  Collector collector({}, /*is_held=*/true);
  Exporter exporter(collector, Options(), {});
  for (int i = 0; i < 2; ++i) exporter.Add(Named("sent"));
  collector.WaitForRequests(1);
  for (int i = 0; i < 5; ++i) exporter.Add(Named("waits"));
  CHECK(exporter.counts().no_room == 1);
  const auto began = std::chrono::steady_clock::now();
  exporter.Stop();
  CHECK(std::chrono::steady_clock::now() - began >= Exporter::kStopTimeout);
  CHECK(exporter.counts().sent == 0);
  CHECK(exporter.counts().not_delivered == 6);
}

TEST_CASE("Exporter: a few large spans fill the queue too", "[telemetry]") {
  Collector collector({}, /*is_held=*/true);
  TelemetryOptions options = Options();
  options.max_queue = options.max_batch = 1000;
  Exporter exporter(collector, options, {});
  SpanRecord span = Named("large");
  span.attributes = {{"gen_ai.input.messages", std::string(1 << 20, 'x')}};
  for (int i = 0; i < 40; ++i) exporter.Add(span);
  CHECK(exporter.counts().no_room == 9);  // 32 MiB, and what the records take besides
  collector.Release();
}

TEST_CASE("Exporter: retries only retryable failures, byte for byte", "[telemetry]") {
  struct Case {
    int status;
    std::size_t requests, sent;
  };
  for (const Case& each : {Case{503, 2, 2}, Case{429, 2, 2}, Case{500, 1, 0}, Case{401, 1, 0}}) {
    CAPTURE(each.status);
    Collector collector({each.status});
    Exporter exporter(collector, Options(), {});
    exporter.Add(Named("one"));
    exporter.Add(Named("two"));
    collector.WaitForRequests(each.requests);
    exporter.Stop();
    CHECK(collector.bodies.size() == each.requests);
    CHECK(collector.bodies.front() == collector.bodies.back());
    CHECK(exporter.counts().sent == each.sent);
    CHECK(exporter.counts().not_delivered == 2 - each.sent);
  }
}

TEST_CASE("Exporter: metrics are asked for when they are due, and once more at the end", "[telemetry]") {
  Collector collector;
  TelemetryOptions options = Options();
  options.metrics.url = "http://collector/v1/metrics";
  Exporter exporter(collector, options, {});
  exporter.SetSource(
      [] { return std::vector<Metric>{{.name = "reprise.runs.started", .help = "Runs.", .points = {{.value = 3}}}}; });
  exporter.Stop();
  REQUIRE(collector.bodies.size() == 1);
  CHECK(collector.bodies[0].find("reprise.runs.started") != std::string::npos);
}

}  // namespace
}  // namespace reprise::exporter_test
