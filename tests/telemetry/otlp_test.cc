#include <string>
#include <vector>

#include "support/test.h"
#include "telemetry/exporter.h"

// Whole requests are decoded by Google's Protocol Buffers in tests/e2e/test_telemetry.py.
namespace reprise::otlp_test {
namespace {

TEST_CASE("EncodeSpans: an empty list stays a list", "[telemetry]") {
  SpanRecord span;
  span.name = "chat";
  const auto encoded = [&](AttributeValue value) {
    span.attributes = {{"key", std::move(value)}};
    return EncodeSpans({{"service.name", "test"}}, std::vector{span});
  };
  // AnyValue.array_value, with nothing in it, and with one text.
  CHECK(encoded(std::vector<std::string>{}).find(std::string("\x0A\x03key\x12\x02\x2A\0", 9)) != std::string::npos);
  CHECK(encoded(std::vector<std::string>{"a"})
            .find(std::string("\x0A\x03key\x12\x07\x2A\x05\x0A\x03\x0A\x01"
                              "a",
                              14)) != std::string::npos);
}

TEST_CASE("RejectedCount: only of a partial success", "[telemetry]") {
  CHECK(RejectedCount("") == 0);
  CHECK(RejectedCount(std::string("\x0A\x03\x08\xAC\x02", 5)) == 300);
  CHECK(RejectedCount(std::string("\x0A\x04\x12\x02no", 6)) == 0);
  CHECK(RejectedCount("{}") == 0);
  CHECK(RejectedCount("\x0A\x7F") == 0);
  CHECK(RejectedCount(std::string(100, '\xFF')) == 0);
}

}  // namespace
}  // namespace reprise::otlp_test
