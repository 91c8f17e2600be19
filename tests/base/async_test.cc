#include "base/async.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/test.h"

namespace reprise::async_test {
namespace {

// Two threads that do jobs in any order.
class Pool {
 public:
  Executor executor() {
    return [this](std::function<void()> job) {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
      changed_.notify_one();
    };
  }

 private:
  void Work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !jobs_.empty(); })) {
      const auto job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> jobs_;  // guarded by mutex_
  std::jthread first_{[this](const std::stop_token& stop) { Work(stop); }};
  std::jthread second_{[this](const std::stop_token& stop) { Work(stop); }};
};

const Executor kAtOnce = [](const std::function<void()>& job) { job(); };

Async<int> Twice(const Executor& executor, int number) {
  FromCallback<int> told(executor, [number](std::function<void(int)> done) { done(number); });
  const int got = co_await told;
  co_return 2 * got;
}

Async<std::string> Sum(const Executor& executor, std::vector<int> numbers) {
  int sum = 0;
  for (const int number : numbers) sum += co_await Twice(executor, number);
  co_return std::to_string(sum);
}

Async<Nothing> Throws(const Executor& executor, std::shared_ptr<int> held) {
  const int got = co_await Twice(executor, *held);
  if (got > 0) throw std::runtime_error("too much");
  co_return Nothing{};
}

}  // namespace

TEST_CASE("Async: resumes with a result that arrives at once or from another thread", "[base]") {
  Pool pool;
  CHECK(WaitFor(Sum(kAtOnce, {1, 2, 3})) == "12");
  CHECK(WaitFor(Sum(pool.executor(), {1, 2, 3})) == "12");
  CHECK(WaitFor(Sum(pool.executor(), std::vector<int>(1000, 1))) == "2000");
}

TEST_CASE("Async: an exception propagates to the awaiter and releases everything held", "[base]") {
  Pool pool;
  const auto held = std::make_shared<int>(1);
  CHECK_THROWS_AS(WaitFor(Throws(kAtOnce, held)), std::runtime_error);
  CHECK_THROWS_AS(WaitFor(Throws(pool.executor(), held)), std::runtime_error);
}

TEST_CASE("Async: never awaited, it does nothing and releases its arguments", "[base]") {
  const auto held = std::make_shared<int>(1);
  { const auto never = Throws(kAtOnce, held); }
  CHECK(held.use_count() == 1);
}

TEST_CASE("FromCallback: does not resume before `begin` has returned", "[base]") {
  bool returned = false;
  const auto begin_and_look = [&]() -> Async<bool> {
    FromCallback<int> told(kAtOnce, [&](std::function<void(int)> done) {
      std::jthread([&] { done(1); }).join();  // before this returns
      returned = true;
    });
    co_await told;
    co_return returned;
  };
  CHECK(WaitFor(begin_and_look()));
}

}  // namespace reprise::async_test
