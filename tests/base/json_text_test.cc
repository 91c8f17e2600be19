#include "base/json_text.h"

#include "support/test.h"

namespace reprise::json_text_test {

TEST_CASE("WithoutGaps: nothing between tokens is pushed out of sight, all else stays", "[base]") {
  const std::string pretty = "{\n  \"a\": 9007199254740993,\n  \"b\": \"x   y\"\n}";
  CHECK(WithoutGaps(pretty) == pretty);
  CHECK(WithoutGaps("{" + std::string(400, '\n') + "\"a\":" + std::string(400, ' ') + "1.50}") == "{ \"a\": 1.50}");
  CHECK(WithoutGaps("{\"a\\\"" + std::string(400, '\n') + "\":\n\n1}") ==
        "{\"a\\\"" + std::string(400, '\n') + "\": 1}");
}

TEST_CASE("HasLongNumber: only of numbers, and only where a double would round", "[base]") {
  CHECK(HasLongNumber(R"({"a":[9007199254740993]})"));
  CHECK(HasLongNumber(R"({"a":-0.12345678901234567})"));
  CHECK_FALSE(HasLongNumber(R"({"a":123456789012345,"b":"9007199254740993","9007199254740993":1.5})"));
}

}  // namespace reprise::json_text_test
