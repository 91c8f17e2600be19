#include <string>

#include "support/test.h"
#include "tools/arguments.h"

namespace reprise::argument_schema_test {
namespace {

constexpr std::string_view kSchema = R"({"type":"object","additionalProperties":false,"required":["path"],
"properties":{"path":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1},
"mode":{"enum":["fast","slow"]},"steps":{"type":"array","items":{"type":"string"}}}})";

std::string MessageFor(std::string_view arguments) {
  const auto schema = ArgumentSchema::Compile(kSchema);
  REQUIRE(schema.has_value());
  const auto checked = (*schema)->Check(arguments);
  return checked ? "ok" : checked.error().message;
}

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("ArgumentSchema: valid arguments pass, and 1.0 is an integer", "[tools]") {
  CHECK(MessageFor(R"({"path":"a"})") == "ok");
  CHECK(MessageFor(R"({"path":"a","limit":1.0,"mode":"slow","steps":["x"]})") == "ok");
}

TEST_CASE("ArgumentSchema: refuses a duplicate member by name", "[tools]") {
  for (const char* arguments :
       {R"({"path":7,"path":"a"})", R"({"path":"a","path":"a"})", R"({"path":"a","p\u0061th":"b"})"}) {
    INFO(arguments);
    CHECK(MessageFor(arguments) == R"(the arguments cannot be used: an object has the member "path" twice)");
  }
}

TEST_CASE("ArgumentSchema: each message names the member at fault", "[tools]") {
  CHECK(Has(MessageFor(""), "'path'"));
  CHECK(Has(MessageFor("{}"), "path (string, required)"));
  CHECK(Has(MessageFor(R"({"path":1})"), R"("path": must be of type "string")"));
  CHECK(Has(MessageFor(R"({"path":"a","limit":1.5})"), R"("limit": must be of type "integer")"));
  CHECK(Has(MessageFor(R"({"path":"a","limit":0})"), R"("limit": Expected number greater than or equal to 1)"));
  CHECK(Has(MessageFor(R"({"path":"a","mode":"x"})"), R"("mode": must be one of ["fast","slow"])"));
  CHECK(Has(MessageFor(R"({"path":"a","steps":["x",2]})"), R"("steps[1]": must be of type "string")"));
  CHECK(Has(MessageFor(R"({"path":"a","colour":"x"})"), "there is no argument 'colour'"));
}

TEST_CASE("ArgumentSchema: reports only the innermost fault", "[tools]") {
  CHECK_FALSE(Has(MessageFor(R"({"path":"a","steps":[2]})"), "Failed to validate"));
}

TEST_CASE("ArgumentSchema: refuses anything but an object", "[tools]") {
  for (const char* text : {"[1]", "\"x\"", "1", "null", "{", "{}x", "\xff", "{\"path\":1e400}"}) {
    INFO(text);
    CHECK(MessageFor(text) != "ok");
  }
  CHECK(Has(MessageFor("[1]"), "must be a JSON object"));
}

TEST_CASE("ArgumentSchema: depth and size are bounded", "[tools]") {
  CHECK(Has(MessageFor(R"({"path":)" + std::string(100'000, '[')), "nested deeper than 64"));
  CHECK(Has(MessageFor(R"({"path":")" + std::string(1024 * 1024, 'x') + "\"}"), "larger than 1 MiB"));
}

TEST_CASE("ArgumentSchema: an answer may be any JSON value", "[tools]") {
  const auto message = [](std::string_view schema, std::string_view answer) {
    const auto compiled = ArgumentSchema::Compile(schema, SchemaSubject::kAnswer);
    REQUIRE(compiled.has_value());
    const auto checked = (*compiled)->Check(answer);
    return checked ? "ok" : checked.error().message;
  };
  CHECK(message(R"({"type":"array"})", "[1]") == "ok");
  CHECK(message(R"({"type":"integer"})", "3.0") == "ok");
  CHECK(message(R"({"type":"integer"})", "\"3\"") == "invalid answer: must be of type \"integer\".");
  CHECK(Has(message("{}", ""), "the answer cannot be used"));
  // The library fails these without a word.
  CHECK(message(R"({"propertyNames":{"maxLength":2}})", R"({"long":1})") ==
        "invalid answer: the schema does not allow it.");
  CHECK(Has(message(R"({"anyOf":[{"type":"string"},{"type":"null"}]})", "5"), "'type' constraint"));
}

TEST_CASE("ArgumentSchema: a hundred thousand wrong elements are told of at once", "[tools]") {
  std::string steps = "1";
  for (int i = 0; i < 100'000; ++i) steps += ",1";
  CHECK(Has(MessageFor(R"({"path":"a","steps":[)" + steps + "]}"), R"("steps[0]": must be of type "string")"));
}

TEST_CASE("ArgumentSchema: a bad schema is an error, not the end of the process", "[tools]") {
  CHECK_FALSE(ArgumentSchema::Compile(R"({"type":7})").has_value());
  CHECK_FALSE(ArgumentSchema::Compile("[]").has_value());
  CHECK_FALSE(ArgumentSchema::Compile("{").has_value());
}

}  // namespace reprise::argument_schema_test
