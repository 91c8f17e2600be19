#include <string>

#include "base/transport.h"
#include "support/test.h"

namespace reprise::retry_after_test {
namespace {

using namespace std::chrono_literals;
using Milliseconds = std::optional<std::chrono::milliseconds>;

// 1994-11-06 08:49:37 UTC, the example of RFC 9110.
const auto kNow = std::chrono::system_clock::from_time_t(784'111'777);

Milliseconds After(const std::string& text) { return RetryAfter({{"retry-after", text}}, kNow); }

TEST_CASE("RetryAfter: seconds", "[base]") {
  CHECK(After("2") == 2s);
  CHECK(After("0") == 0s);
  CHECK(After("0.5") == 500ms);
  CHECK(After("99999999999999999999") == 1'000'000'000s);
  CHECK(RetryAfter({{"retry-after", "2"}, {"retry-after-ms", "1500"}}, kNow) == 1500ms);
  CHECK(RetryAfter({{"retry-after", "2"}, {"retry-after-ms", "soon"}}, kNow) == 2s);
}

TEST_CASE("RetryAfter: a date in each of the three forms", "[base]") {
  CHECK(After("Sun, 06 Nov 1994 08:49:47 GMT") == 10s);
  CHECK(After("Sunday, 06-Nov-94 08:50:37 GMT") == 60s);
  CHECK(After("Sun Nov  6 08:49:39 1994") == 2s);
  CHECK(After("Sun, 06 Nov 1994 08:49:36 GMT") == 0s);
}

TEST_CASE("RetryAfter: the provider's own clock counts", "[base]") {
  const HttpHeaders headers{{"date", "Mon, 07 Nov 1994 08:00:00 GMT"},
                            {"retry-after", "Mon, 07 Nov 1994 08:00:03 GMT"}};
  CHECK(RetryAfter(headers, kNow) == 3s);
  CHECK(RetryAfter({{"date", "noon"}, {"retry-after", "Sun, 06 Nov 1994 08:49:38 GMT"}}, kNow) == 1s);
}

TEST_CASE("RetryAfter: nullopt for unreadable values", "[base]") {
  for (const char* text :
       {"", "-1", "soon", "2 s", "nan", "inf", "1e999", "Sun, 06 Nov 1994", "Sun, 06 Nov 1994 08:49:37 CET"}) {
    INFO(text);
    CHECK(After(text) == Milliseconds());
  }
  CHECK(RetryAfter({}, kNow) == Milliseconds());
}

}  // namespace
}  // namespace reprise::retry_after_test
