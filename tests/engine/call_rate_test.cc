#include "engine/run_guard.h"
#include "support/test.h"

namespace reprise::call_rate_test {

using namespace std::chrono_literals;

TEST_CASE("CallRate: so many in any minute, for each chat", "[engine]") {
  CallRate rate;
  const ChatId a = *ChatId::Parse("a"), b = *ChatId::Parse("b");
  const CallRate::Clock::time_point start{};
  CHECK_FALSE(rate.Take(a, 2, start));
  CHECK_FALSE(rate.Take(a, 2, start + 30s));
  CHECK(rate.Take(a, 2, start + 30s) == 30s);
  CHECK(rate.Take(a, 2, start + 59500ms) == 1s);
  CHECK_FALSE(rate.Take(b, 2, start + 59s));
  CHECK_FALSE(rate.Take(a, 2, start + 60s));  // a refused call did not count
  CHECK(rate.Take(a, 2, start + 61s) == 29s);
  CHECK_FALSE(rate.Take(a, 2, start + 10min));
}

}  // namespace reprise::call_rate_test
