#include "engine/elastic_pool.h"

#include <atomic>
#include <latch>
#include <new>
#include <stdexcept>

#include "support/test.h"

using reprise::ElasticPool;

TEST_CASE("ElasticPool: a job never waits for another one to end", "[engine]") {
  std::latch all_started(32);
  ElasticPool pool;
  // Each job waits for all the others: a pool that queued even one behind them would never finish.
  for (int i = 0; i < 32; ++i) pool.Submit([&] { all_started.arrive_and_wait(); });
  all_started.wait();
}

TEST_CASE("ElasticPool: the destructor waits for every job", "[engine]") {
  std::atomic<int> done = 0;
  {
    ElasticPool pool(std::chrono::milliseconds(0));  // threads leave at once: their ends are collected as well
    for (int i = 0; i < 500; ++i) pool.Submit([&] { ++done; });
  }
  CHECK(done == 500);
}

TEST_CASE("ElasticPool: what a job throws ends that job alone", "[engine]") {
  std::atomic<int> done = 0;
  {
    ElasticPool pool;
    for (int i = 0; i < 30; ++i) {
      pool.Submit([&done, i] {
        ++done;
        if (i % 3 == 0) throw std::runtime_error("broken");
        if (i % 3 == 1) throw 42;  // NOLINT: not a std::exception
        throw std::bad_alloc();
      });
    }
  }
  CHECK(done == 30);
}
