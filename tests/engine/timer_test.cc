#include <condition_variable>
#include <mutex>
#include <vector>

#include "engine/elastic_pool.h"
#include "support/test.h"

using reprise::Timer;
using namespace std::chrono_literals;

TEST_CASE("Timer: calls come in the order they are due, also when a sooner one is added later", "[engine]") {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> order;
  Timer timer;
  const auto note = [&](int value) {
    return [&, value] {
      const std::lock_guard lock(mutex);
      order.push_back(value);
      changed.notify_all();
    };
  };
  timer.After(60ms, note(3));
  timer.After(1ms, note(1));
  timer.After(30ms, note(2));
  std::unique_lock lock(mutex);
  CHECK(changed.wait_for(lock, 10s, [&] { return order.size() == 3; }));
  CHECK(order == std::vector<int>{1, 2, 3});
}

TEST_CASE("Timer: what is not due is dropped with the timer", "[engine]") {
  bool called = false;
  {
    Timer timer;
    timer.After(1h, [&] { called = true; });
  }
  CHECK_FALSE(called);
}
