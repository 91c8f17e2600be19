#include <string>

#include "support/test.h"
#include "tools/arguments.h"

namespace reprise::form_test {
namespace {

constexpr std::string_view kForm = R"({"type":"object","required":["name","check","kept"],"properties":{
"name":{"type":"string","minLength":2},"check":{"type":"boolean"},"kept":{"type":"integer","default":7},
"mail":{"type":"string","format":"email"},"site":{"type":"string","format":"uri"},
"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},
"one":{"type":"string","oneOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},
"old":{"type":"string","enum":["x","y"],"enumNames":["X","Y"]},
"many":{"type":"array","maxItems":2,"items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}},
"count":{"type":"integer","minimum":1,"maximum":9}}})";

// With the two required fields.
std::string Checked(const std::string& more) {
  const auto checked = CheckForm(kForm, R"({"name":"Ann","check":true)" + (more.empty() ? "" : "," + more) + "}");
  return checked ? "ok" : checked.error().reason + ": " + checked.error().message;
}

}  // namespace

TEST_CASE("CheckForm: accepts valid input, and fields with a default may be missing", "[tools]") {
  CHECK(Checked("") == "ok");
  CHECK(
      Checked(R"("kept":1,"mail":"a@b","site":"https://x.y/","day":"2024-02-29","at":"2026-01-31T23:59:60.5+02:00")") ==
      "ok");
  CHECK(Checked(R"("one":"b","old":"x","many":["r","g"],"count":9)") == "ok");
}

TEST_CASE("CheckForm: refuses missing fields, wrong types, formats and choices by name", "[tools]") {
  const auto refused = [](std::string_view response) {
    const auto checked = CheckForm(kForm, response);
    REQUIRE_FALSE(checked.has_value());
    CHECK(checked.error().code == ErrorCode::kInvalidArgument);
    CHECK(checked.error().reason == "invalid_response");
    return checked.error().message;
  };
  CHECK(refused("{}").find("name (string, required)") != std::string::npos);
  CHECK(refused(R"({"name":"Ann"})").find("check") != std::string::npos);
  CHECK(refused("[1]").find("must be a JSON object") != std::string::npos);
  CHECK(refused("{").find("cannot be used") != std::string::npos);
  CHECK(refused(R"({"name":"A","check":true})").find("\"name\"") != std::string::npos);
  CHECK(refused(R"({"name":"Ann","check":"notabool"})").find(R"("check": must be of type "boolean")") !=
        std::string::npos);
  for (const char* wrong : {R"("count":"seven")", R"("count":10)", R"("kept":null)", R"("mail":"ann")",
                            R"("site":"x.y")", R"("day":"2023-02-29")", R"("day":"2023-02-09T00:00:00Z")",
                            R"("at":"2026-01-31")", R"("at":"2026-01-31T24:00:00Z")", R"("one":"c")", R"("old":"z")",
                            R"("many":["b"])", R"("many":["r","g","r"])", R"("naem":"typing error")"}) {
    INFO(wrong);
    const std::string said = Checked(wrong);
    CHECK(said.starts_with("invalid_response: invalid response: "));
    const std::string field = std::string(wrong).substr(1, std::string(wrong).find('"', 1) - 1);
    CHECK(said.find(field) != std::string::npos);
  }
}

TEST_CASE("CheckForm: an uncheckable schema accepts everything", "[tools]") {
  CHECK(CheckForm("7", "{}").has_value());
  CHECK(CheckForm("{", "{}").has_value());
  CHECK(CheckForm(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})", R"({"a":1})").has_value());
  CHECK(CheckForm(R"({"type":"object","properties":{"a":{"pattern":"(a+)+$"}}})",
                  R"({"a":"aaaaaaaaaaaaaaaaaaaaaaaaaa!"})")
            .has_value());
}

}  // namespace reprise::form_test
