#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>

#include "engine/elastic_pool.h"
#include "support/test.h"

namespace reprise::readiness_test {

using namespace std::chrono_literals;

TEST_CASE("Readiness: an answer holds for a while, and one that is wrong heals by itself", "[engine]") {
  std::atomic<int> asked = 0;
  Result<void> answer;
  Readiness readiness(
      [&] {
        ++asked;
        return answer;
      },
      {.keep = 1h, .keep_failure = 0ms, .wait = 1min});
  answer = Fail(ErrorCode::kIo, "the disk could not be read or written");
  CHECK(readiness.Check().error().code == ErrorCode::kUnavailable);
  answer = Fail(ErrorCode::kStorageFull, "no space left to store this");
  const auto full = readiness.Check();
  CHECK(full.error().code == ErrorCode::kUnavailable);
  CHECK(full.error().reason == "storage_full");
  CHECK(full.error().retryable);
  answer = {};
  CHECK(readiness.Check());
  CHECK(asked == 3);
  for (int i = 0; i < 100; ++i) CHECK(readiness.Check());
  CHECK(asked == 3);
}

TEST_CASE("Readiness: a probe that throws is a failed one, and the next one is asked", "[engine]") {
  std::atomic<int> asked = 0;
  Readiness readiness(
      [&]() -> Result<void> {
        if (++asked == 1) throw std::bad_alloc();
        return {};
      },
      {.keep = 1h, .keep_failure = 0ms, .wait = 5s});
  CHECK(readiness.Check().error().reason == "internal");
  CHECK(readiness.Check());
  CHECK(asked == 2);
}

TEST_CASE("Readiness: nobody waits for a disk that does not respond, nor asks it twice", "[engine]") {
  std::mutex mutex;
  std::condition_variable changed;
  bool responds = false;
  std::atomic<int> asked = 0;
  Readiness readiness(
      [&]() -> Result<void> {
        ++asked;
        asked.notify_all();
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return responds; });
        return {};
      },
      {.keep = 1h, .keep_failure = 0ms, .wait = 1ms});
  for (int i = 0; i < 3; ++i) CHECK(readiness.Check().error().reason == "disk_not_responding");
  asked.wait(0);  // each of the three may have given up before the first question reached the disk
  {
    const std::lock_guard lock(mutex);
    responds = true;
  }
  changed.notify_all();
  while (!readiness.Check()) {
  }
  CHECK(asked == 1);
}

}  // namespace reprise::readiness_test
