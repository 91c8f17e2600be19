#include "base/json.h"

#include <nlohmann/json.hpp>

#include "support/test.h"

using reprise::AppendJsonEscaped;
using reprise::DumpJson;
using reprise::Json;
using reprise::ParseJson;

TEST_CASE("ParseJson: 64 levels are accepted and 65 are refused", "[base]") {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(ParseJson(nested(64)));
  REQUIRE_FALSE(ParseJson(nested(65)));
  CHECK(ParseJson(nested(65)).error().reason == "too_deep");
  CHECK(ParseJson(std::string(1'000'000, '[')).error().reason == "too_deep");
  CHECK(ParseJson(R"({"a":)" + nested(64) + "}").error().reason == "too_deep");
}

TEST_CASE("ParseJson: what is wrong is told without quoting the input", "[base]") {
  for (const std::string text : {"", "{", "secret", "{\"a\":1}x", "[1,]", "nul"}) {
    const auto parsed = ParseJson(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().reason == "invalid_json");
    CHECK(parsed.error().message.find("secret") == std::string::npos);
  }
  CHECK(ParseJson("\"\xC3\"").error().reason == "invalid_utf8");
  CHECK(ParseJson("1e400").error().reason == "invalid_json");
}

TEST_CASE("ParseJson: members keep their order and the last of two equal ones wins", "[base]") {
  const auto parsed = ParseJson(R"({"z":1,"a":2,"z":3})");
  REQUIRE(parsed);
  CHECK(DumpJson(*parsed) == R"({"z":3,"a":2})");
}

TEST_CASE("AppendJsonEscaped: the parser reads back every character", "[base]") {
  std::string text;
  for (int c = 0; c < 0x80; ++c) text += static_cast<char>(c);
  text += "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\xE2\x80\xA8";
  std::string literal = "\"";
  AppendJsonEscaped(literal, text);
  literal += '"';
  for (const char c : literal) CHECK(static_cast<unsigned char>(c) >= 0x20);
  const auto parsed = ParseJson(literal);
  REQUIRE(parsed);
  CHECK(parsed->get<std::string>() == text);
}

TEST_CASE("DumpJson: bytes that are not UTF-8 become U+FFFD", "[base]") {
  CHECK(DumpJson(Json("a\xFF")) == "\"a\xEF\xBF\xBD\"");
}
