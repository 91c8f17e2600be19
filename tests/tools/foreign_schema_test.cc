#include "support/test.h"
#include "tools/arguments.h"

namespace reprise::foreign_schema_test {

TEST_CASE("CheckablePart: types, members and limits stay", "[tools]") {
  CHECK(CheckablePart(R"({"type":"object","required":["a"],"additionalProperties":false,
        "properties":{"a":{"type":["string","null"],"maxLength":3},"b":{"enum":[1,2]},
                      "c":{"type":"array","items":{"type":"integer","minimum":-1}}}})") ==
        R"({"type":"object","properties":{"a":{"type":["string","null"],"maxLength":3},"b":{"enum":[1,2]},)"
        R"("c":{"type":"array","items":{"type":"integer","minimum":-1}}},"required":["a"],)"
        R"("additionalProperties":false})");
}

TEST_CASE("CheckablePart: null counts as an omitted optional argument", "[tools]") {
  const auto schema = ArgumentSchema::Compile(CheckablePart(
      R"({"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"enum":["x",null]},)"
      R"("d":{"type":["integer","null"]},"e":{"type":"object","properties":{"f":{"type":"string"}}}}})",
      OptionalNulls::kNotGiven));
  REQUIRE(schema.has_value());
  CHECK((*schema)->Check(R"({"a":"","b":null,"c":null,"d":null,"e":null})").has_value());
  CHECK_FALSE((*schema)->Check(R"({"a":null})").has_value());
  CHECK_FALSE((*schema)->Check(R"({"a":"","b":7})").has_value());
}

TEST_CASE("CheckablePart: omits dangerous and invalid parts, and the rest always compiles", "[tools]") {
  std::string deep = R"({"type":"object","properties":{"a":)";
  for (int i = 0; i < 25; ++i) deep += R"({"properties":{"a":)";
  deep += "{}";
  for (int i = 0; i < 25; ++i) deep += "}}";
  deep += "}}";
  for (const std::string& schema :
       {std::string(R"({"$ref":"#"})"), std::string(R"({"type":"object","properties":{"a":{"$ref":"http://x/y"}}})"),
        std::string(R"({"type":"object","properties":{"a":{"type":"string","pattern":"(a+)+$"}}})"),
        std::string(R"({"type":"object","patternProperties":{"(a+)+":{}},"additionalProperties":false})"),
        std::string(R"({"type":"object","minProperties":-1,"required":[1,"a","a"],"enum":[]})"),
        std::string(R"({"type":7,"properties":[],"items":[{}]})"), std::string("[]"), std::string("{"), deep}) {
    INFO(schema.substr(0, 100));
    const std::string checkable = CheckablePart(schema);
    CHECK(checkable.find("pattern") == std::string::npos);
    CHECK(checkable.find("$ref") == std::string::npos);
    const auto compiled = ArgumentSchema::Compile(checkable);
    REQUIRE(compiled.has_value());
    CHECK((*compiled)->Check(R"({"a":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"})").has_value());
  }
}

}  // namespace reprise::foreign_schema_test
