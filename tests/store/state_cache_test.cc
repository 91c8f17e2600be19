#include "store/state_cache.h"

#include "support/test.h"

namespace reprise {
namespace {

TEST_CASE("StateCache: what was used last is kept, within the capacity", "[store]") {
  StateCache<int> cache(10);
  cache.Put("a", 1, 4);
  cache.Put("b", 2, 4);
  CHECK(cache.Find("a") == 1);
  cache.Put("c", 3, 4);  // in the place of b, which was used before a
  CHECK(cache.Find("a") == 1);
  CHECK_FALSE(cache.Find("b"));
  CHECK(cache.Find("c") == 3);
}

TEST_CASE("StateCache: what does not fit is not kept and puts nothing out", "[store]") {
  StateCache<int> cache(10);
  cache.Put("a", 1, 10);
  cache.Put("b", 2, 11);
  CHECK(cache.Find("a") == 1);
  CHECK_FALSE(cache.Find("b"));
}

TEST_CASE("StateCache: what is taken is there no more, and its room is free", "[store]") {
  StateCache<int> cache(10);
  cache.Put("a", 1, 5);
  cache.Put("b", 2, 5);
  CHECK(cache.Take("a") == 1);
  CHECK_FALSE(cache.Take("a"));
  cache.Put("c", 3, 5);
  CHECK(cache.Find("b") == 2);
  CHECK(cache.Find("c") == 3);
}

TEST_CASE("StateCache: a state takes the place and the room of the one before it", "[store]") {
  StateCache<int> cache(10);
  cache.Put("a", 1, 5);
  cache.Put("a", 2, 4);
  cache.Put("b", 3, 6);
  CHECK(cache.Find("a") == 2);
  CHECK(cache.Find("b") == 3);
  cache.Put("a", 4, 11);
  CHECK_FALSE(cache.Find("a"));
}

}  // namespace
}  // namespace reprise
