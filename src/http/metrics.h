#pragma once

#include <atomic>
#include <cstdint>

namespace reprise {

// What the HTTP layer counts. Thread-safe.
struct HttpMetrics {
  std::atomic<std::uint64_t> connections_total{0}, requests_total{0};
  std::atomic<std::uint64_t> responses_2xx{0}, responses_4xx{0}, responses_5xx{0};
  std::atomic<std::uint64_t> streams_total{0}, streams_failed{0};
  std::atomic<std::int64_t> connections{0}, streams{0};
};

}  // namespace reprise
