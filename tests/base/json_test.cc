#include "base/json.h"

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/test.h"

using reprise::AppendJsonEscaped;
using reprise::DumpJson;
using reprise::DuplicateMembers;
using reprise::Json;
using reprise::ParseJson;
using reprise::ParseJsonWithComments;
using reprise::RawMember;

TEST_CASE("ParseJson: 64 levels are accepted and 65 are refused", "[base]") {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(ParseJson(nested(64)));
  REQUIRE_FALSE(ParseJson(nested(65)));
  CHECK(ParseJson(nested(65)).error().reason == "too_deep");
  CHECK(ParseJson(std::string(1'000'000, '[')).error().reason == "too_deep");
  CHECK(ParseJson(R"({"a":)" + nested(64) + "}").error().reason == "too_deep");
}

TEST_CASE("ParseJson: messages do not quote the input", "[base]") {
  for (const std::string text : {"", "{", "secret", "{\"a\":1}x", "[1,]", "nul"}) {
    const auto parsed = ParseJson(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().reason == "invalid_json");
    CHECK(parsed.error().message.find("secret") == std::string::npos);
  }
  CHECK(ParseJson("\"\xC3\"").error().reason == "invalid_utf8");
  CHECK(ParseJson("1e400").error().reason == "invalid_json");
}

TEST_CASE("ParseJson: nothing stands before or behind the value, in whatever way it is read", "[base]") {
  const std::string nul(1, '\0'), mark = "\xEF\xBB\xBF";
  // A deep value, and a large one, are read by another parser than the others.
  for (const std::string& value :
       {std::string(R"({"a":1})"), std::string("7"), std::string(300, '[') + std::string(300, ']'),
        "\"" + std::string(5 << 20, 'x') + "\""}) {
    constexpr int kDepth = 1000;
    CHECK(ParseJson(value, kDepth));
    for (const std::string& text : {value + nul, value + nul + R"({"b":)", value + " " + nul, nul + value, mark + value,
                                    mark, nul, value + "\n" + value}) {
      const auto parsed = ParseJson(text, kDepth);
      REQUIRE_FALSE(parsed);
      CHECK(parsed.error().reason == "invalid_json");
    }
  }
  CHECK_FALSE(ParseJson("\"a" + nul + "b\""));
  CHECK(ParseJsonWithComments(mark + "{} // an editor's mark"));
  CHECK_FALSE(ParseJsonWithComments("{}" + nul + " // more"));
}

TEST_CASE("ParseJson: a duplicate member is refused and named, at any depth and however it is escaped", "[base]") {
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += "\"m" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  for (const std::string& text : {std::string(R"({"a":1,"b":2,"a":3})"), std::string(R"({"a":1,"\u0061":1})"),
                                  std::string(R"([{"x":{"a":1,"a":1}}])"), std::string(R"({"a":{},"a":[]})"),
                                  many + R"("a":0,"a":0})", many + R"("a":0,"\u0061":0})"}) {
    INFO(text);
    const auto parsed = ParseJson(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().reason == "duplicate_member");
    CHECK(parsed.error().message == "an object has the member \"a\" twice");
  }
  CHECK(ParseJson(many + R"("m0":0})").error().reason == "duplicate_member");
  CHECK(ParseJson(R"({"my secret":1,"my secret":2})").error().message == "an object has a member twice");
  CHECK(ParseJson(R"({"a":{"a":1},"b":[{"a":1},{"a":1}]})"));
}

TEST_CASE("ParseJson: members keep their order; on request the last duplicate wins", "[base]") {
  const auto parsed = ParseJson(R"({"z":1,"a":{"b":[1,{"c":2}],"d":null},"z":3})", 64, DuplicateMembers::kLastWins);
  REQUIRE(parsed);
  CHECK(DumpJson(*parsed) == R"({"z":3,"a":{"b":[1,{"c":2}],"d":null}})");
}

TEST_CASE("ParseJson: reads an object of 100,000 members in linear time", "[base]") {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":" + std::to_string(i);
  const auto parsed = ParseJson(text + "}");  // looking through all members for each takes minutes
  REQUIRE(parsed);
  CHECK(parsed->size() == 100'000);
  CHECK(DumpJson(*parsed) == text + "}");
  CHECK(ParseJson(text + R"(,"\u0030":1})").error().reason == "duplicate_member");
}

TEST_CASE("ParseJson: reads every value as nlohmann's parser does, without a mark before it", "[base]") {
  for (const char* text : {"0",
                           "-0",
                           "-0.0",
                           "1",
                           "-1",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "0.1",
                           "1E5",
                           "1e308",
                           "5e-324",
                           "2.2250738585072011e-308",
                           "-1.5e-7",
                           "true",
                           "null",
                           R"("")",
                           R"("\u0000\ud83d\ude00\"\\\/\b\f\n\r\t")",
                           R"({"":[],"a":{},"b":[{},[]]})",
                           " [ 1 , 2 ] ",
                           "123456789012345678901234567890"}) {
    INFO(text);
    const auto parsed = ParseJson(text);
    REQUIRE(parsed);
    const Json expected = Json::parse(text);
    CHECK(parsed->dump() == expected.dump());
    CHECK(*parsed == expected);
  }
  for (const char* text : {R"("\ud83d")", R"("\udc00\ud83d")", "01", "1.", ".5", "+1", "-", "1e", "\"\t\"", "[1 2]",
                           "NaN", "1e309", "\"a", "tru", "{\"a\"}", "{1:2}"}) {
    INFO(text);
    CHECK_FALSE(ParseJson(text));
    CHECK_FALSE(Json::accept(text));
  }
}

TEST_CASE("RawMember: returns the value as written", "[base]") {
  const std::string object = " { \"a\" : [1, \"}\\\"\", {\"b\":1}] ,\"\\u0062\":\n1e2, \"c\":{\"b\":2} } ";
  CHECK(RawMember(object, "a") == R"([1, "}\"", {"b":1}])");
  CHECK(RawMember(object, "b") == "1e2");
  CHECK(RawMember(object, "c") == R"({"b":2})");
  CHECK(RawMember(object, "d").empty());
  CHECK(RawMember("{}", "a").empty());
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

TEST_CASE("DumpJson: writes what the library's own dump writes", "[base]") {
  std::mt19937 random(7);
  const auto below = [&random](unsigned end) { return static_cast<int>(random() % end); };
  const std::vector<std::string> pieces{"\"",       "\\",           "/",
                                        "\n",       "\r",           "\t",
                                        "\b",       "\f",           std::string(1, '\0'),
                                        "\x1f",     "\x7f",         "plain",
                                        "\xC3\xA9", "\xE2\x80\xA8", "\xF0\x9F\xA6\xA6",
                                        "\xFF",     "\xE2\x80",     "\xED\xA0\x80"};
  const auto text = [&] {
    std::string made;
    for (int i = below(6); i > 0; --i)
      made += pieces[static_cast<std::size_t>(below(static_cast<unsigned>(pieces.size())))];
    return made;
  };
  const std::function<Json(int)> value = [&](int depth) -> Json {
    Json made;
    switch (below(depth == 0 ? 7 : 9)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return std::numeric_limits<std::int64_t>::min() + below(9);
      case 3:
        return std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(below(9));
      case 4:
        return below(1000) / 7.0;
      case 5:
      case 6:
        return text();
      case 7:
        made = Json::array();
        for (int i = below(5); i > 0; --i) made.push_back(value(depth - 1));
        return made;
      default:
        made = Json::object();
        for (int i = below(5); i > 0; --i) made[text()] = value(depth - 1);
        return made;
    }
  };
  for (int i = 0; i < 3000; ++i) {
    const Json made = value(4);
    REQUIRE(DumpJson(made) == made.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  CHECK(DumpJson(Json(std::nan(""))) == "null");
}

TEST_CASE("DumpJson: bytes that are not UTF-8 become U+FFFD", "[base]") {
  CHECK(DumpJson(Json("a\xFF")) == "\"a\xEF\xBF\xBD\"");
}
