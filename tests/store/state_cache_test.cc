#include "store/linked_state.h"
#include "support/test.h"

namespace reprise::state_cache_test {
namespace {

TEST_CASE("StateCache: the last used states are kept, within the capacity", "[store]") {
  StateCache<int> cache(10);
  cache.Put("a", 1, 4);
  cache.Put("b", 2, 4);
  CHECK(cache.Find("a") == 1);
  cache.Put("c", 3, 4);  // replaces b, which was last used before a
  CHECK(cache.Find("a") == 1);
  CHECK_FALSE(cache.Find("b"));
  CHECK(cache.Find("c") == 3);
}

TEST_CASE("StateCache: a state that does not fit is not kept and evicts none", "[store]") {
  StateCache<int> cache(10);
  cache.Put("a", 1, 10);
  cache.Put("b", 2, 11);
  CHECK(cache.Find("a") == 1);
  CHECK_FALSE(cache.Find("b"));
}

TEST_CASE("StateCache: a state that is taken is gone, and its room is free", "[store]") {
  StateCache<int> cache(10);
  cache.Put("a", 1, 5);
  cache.Put("b", 2, 5);
  CHECK(cache.Take("a") == 1);
  CHECK_FALSE(cache.Take("a"));
  cache.Put("c", 3, 5);
  CHECK(cache.Find("b") == 2);
  CHECK(cache.Find("c") == 3);
}

TEST_CASE("StateCache: a state replaces the one of its name and takes its room", "[store]") {
  StateCache<int> cache(10);
  cache.Put("a", 1, 5);
  cache.Put("a", 2, 4);
  cache.Put("b", 3, 6);
  CHECK(cache.Find("a") == 2);
  CHECK(cache.Find("b") == 3);
  cache.Put("a", 4, 11);
  CHECK_FALSE(cache.Find("a"));
}

TEST_CASE("StateCache: the last used states of an owner are kept", "[store]") {
  StateCache<int> cache(100);
  cache.Put("other", 0, 1, "b");
  cache.Put("1", 1, 10, "a");
  cache.Put("2", 2, 10, "a");
  cache.Put("3", 3, 10, "a");
  CHECK(cache.Find("1") == 1);
  cache.Put("4", 4, 10, "a");
  CHECK(cache.bytes() == 31);
  CHECK(cache.Find("1") == 1);
  CHECK_FALSE(cache.Find("2"));
  CHECK(cache.Find("3") == 3);
  cache.Drop("a");
  CHECK_FALSE(cache.Find("3"));
  CHECK(cache.Find("other") == 0);
  CHECK(cache.bytes() == 1);
}

}  // namespace
}  // namespace reprise::state_cache_test
