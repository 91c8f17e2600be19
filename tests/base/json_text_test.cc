#include "base/json.h"
#include "support/test.h"

namespace reprise::json_text_test {
namespace {

TEST_CASE("JSON text: a surrogate escape without its partner becomes U+FFFD", "[model]") {
  CHECK(MendSurrogateEscapes(R"("a\ud800b")") == R"("a\ufffdb")");
  CHECK(MendSurrogateEscapes(R"("\uDC00")") == R"("\ufffd")");
  CHECK(MendSurrogateEscapes(R"("\ud83d\ud83d\ude00")") == R"("\ufffd\ud83d\ude00")");
  CHECK(MendSurrogateEscapes(R"("\ud83d\n")") == R"("\ufffd\n")");
  CHECK(MendSurrogateEscapes(R"("\ud83d)") == R"("\ufffd)");
}

TEST_CASE("JSON text: whole pairs and escaped backslashes stay as they are", "[model]") {
  for (const char* text : {R"("\ud83d\ude00")", R"("\\ud800")", R"("\u00e9 \" \\")", R"("\ud8)", R"("\)", ""}) {
    CHECK(MendSurrogateEscapes(text) == text);
  }
  CHECK(MendSurrogateEscapes(R"("\\\ud800")") == R"("\\\ufffd")");
}

TEST_CASE("JSON text: the cheap test finds texts that need mending", "[model]") {
  CHECK(HasSurrogateEscape(R"("x\ud800")"));
  CHECK(HasSurrogateEscape(R"("\\\uD800")"));
  CHECK_FALSE(HasSurrogateEscape(R"("\\ud800")"));
  CHECK_FALSE(HasSurrogateEscape(R"("\u00e9")"));
}

TEST_CASE("JSON text: almost-JSON becomes JSON, and JSON stays as it is", "[base]") {
  CHECK(MendJson(R"({"a":NaN,"b":-Infinity})") == R"({"a":null,"b":null})");
  CHECK(MendJson(R"([18446744073709551616,-9223372036854775809,1e999,-1E+400])") ==
        R"(["18446744073709551616","-9223372036854775809","1e999","-1E+400"])");
  CHECK(MendJson("[\"a\tb\x01\",\"\\\"NaN\"]") == R"(["a\u0009b\u0001","\"NaN"])");
  CHECK(MendJson(R"(["\ud800",NaN])") == R"(["\ufffd",null])");
  for (const char* json : {R"({"a":[18446744073709551615,-9223372036854775808,1.5e300,true,false,null,-0.0]})",
                           R"("NaN 1e999 \" Infinity")", R"("\ud83d\ude00")", "", "[", "\"", "\"\\", "-"}) {
    INFO(json);
    CHECK_FALSE(MendJson(json).has_value());
  }
}

TEST_CASE("WithoutGaps: shortens wide gaps between tokens and changes nothing else", "[base]") {
  const std::string pretty = "{\n  \"a\": 9007199254740993,\n  \"b\": \"x   y\"\n}";
  CHECK(WithoutGaps(pretty) == pretty);
  CHECK(WithoutGaps("{" + std::string(400, '\n') + "\"a\":" + std::string(400, ' ') + "1.50}") == "{ \"a\": 1.50}");
  CHECK(WithoutGaps("{\"a\\\"" + std::string(400, '\n') + "\":\n\n1}") ==
        "{\"a\\\"" + std::string(400, '\n') + "\": 1}");
}

TEST_CASE("HasLongNumber: only for numbers that a double would round", "[base]") {
  CHECK(HasLongNumber(R"({"a":[9007199254740993]})"));
  CHECK(HasLongNumber(R"({"a":-0.12345678901234567})"));
  CHECK_FALSE(HasLongNumber(R"({"a":123456789012345,"b":"9007199254740993","9007199254740993":1.5})"));
}

}  // namespace
}  // namespace reprise::json_text_test
