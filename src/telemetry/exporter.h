#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "reprise/options.h"
#include "reprise/telemetry.h"
#include "reprise/transport.h"

namespace reprise {

// The bodies of OTLP/HTTP requests (opentelemetry-proto 1.x, binary).

// Attributes of the sender: "service.name" and the like.
using ResourceAttributes = std::vector<std::pair<std::string, std::string>>;

// An ExportTraceServiceRequest.
std::string EncodeSpans(const ResourceAttributes& resource, std::span<const SpanRecord> spans);
// An ExportMetricsServiceRequest. Sums and distributions are cumulative, since `began`.
std::string EncodeMetrics(const ResourceAttributes& resource, std::span<const Metric> metrics,
                          std::chrono::nanoseconds began, std::chrono::nanoseconds now);

// How many items the collector rejected, from its Export...ServiceResponse; 0 if that cannot be read.
std::uint64_t RejectedCount(std::string_view response);

// Sends spans and metrics to a collector, on its own thread. Thread-safe. Adding a span takes only the queue's lock.
// Spans that find no room in the queue, or that the collector does not take, are dropped and counted.
class Exporter {
 public:
  using Source = std::function<std::vector<Metric>()>;
  // The time limit of Stop.
  static constexpr std::chrono::milliseconds kStopTimeout{1000};

  // `transport` must outlive this.
  Exporter(Transport& transport, const TelemetryOptions& options, ResourceAttributes resource);
  ~Exporter() { Stop(); }
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  void Add(SpanRecord span) noexcept;
  // Sets the source of metrics, null for none. When this returns, the old source is no longer called.
  void SetSource(Source source);

  // Starts sending everything at once and takes nothing more.
  void BeginStop();
  // BeginStop, then waits until all is sent. The rest is dropped kStopTimeout after BeginStop.
  void Stop();

  struct Counts {
    std::uint64_t sent = 0, no_room = 0, not_delivered = 0;  // spans
  };
  Counts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  // The outcome of one request.
  struct Answer {
    bool taken = false;
    bool may_try_again = false;
    std::optional<std::chrono::milliseconds> pause{};  // requested by the collector before the retry
    std::uint64_t rejected = 0;
  };

  void Main();
  void SendSpans(const std::vector<SpanRecord>& batch);
  void SendMetrics();
  Answer Post(const OtlpEndpoint& endpoint, std::string body);
  void NoteHealth(std::string_view what, bool& works, bool taken, std::string_view why);

  const TelemetryOptions options_;
  const ResourceAttributes resource_;
  const std::chrono::nanoseconds began_;
  Transport& transport_;
  std::atomic<std::uint64_t> sent_{0}, no_room_{0}, not_delivered_{0};
  std::stop_source give_up_;

  // --- the thread's
  bool spans_work_ = true, metrics_work_ = true;  // as last logged

  Mutex source_mutex_;  // held while metrics are collected
  Source source_ GUARDED_BY(source_mutex_);

  mutable Mutex mutex_;
  Condition changed_;
  std::vector<SpanRecord> queue_ GUARDED_BY(mutex_);
  std::size_t queue_bytes_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Clock::time_point stop_at_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;  // the thread has ended
  std::jthread thread_;                    // last
};

}  // namespace reprise
