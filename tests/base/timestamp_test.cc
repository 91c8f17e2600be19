#include "reprise/timestamp.h"

#include "support/test.h"

using reprise::FormatTimestamp;
using reprise::ParseTimestamp;
using reprise::Timestamp;

TEST_CASE("Timestamp: a round trip changes nothing", "[base]") {
  for (const std::string text : {"2025-01-15T10:00:00.000Z", "1970-01-01T00:00:00.001Z", "2024-02-29T23:59:59.999Z"}) {
    const auto parsed = ParseTimestamp(text);
    REQUIRE(parsed);
    CHECK(FormatTimestamp(*parsed) == text);
  }
  CHECK(FormatTimestamp(*ParseTimestamp("2025-01-15T10:00:05Z")) == "2025-01-15T10:00:05.000Z");
}

TEST_CASE("Timestamp: other forms and impossible dates are refused", "[base]") {
  for (const std::string text : {"", "2025-01-15", "2025-02-30T10:00:00.000Z", "2025-01-15T24:00:00.000Z",
                                 "2025-01-15T10:00:00.000", "2025-01-15 10:00:00.000Z", "2025-01-15T10:00:00.00aZ"}) {
    CHECK_FALSE(ParseTimestamp(text));
  }
}
