#include "mcp/header_parameters.h"

#include <nlohmann/json.hpp>

#include "support/test.h"

namespace reprise::header_parameters_test {
namespace {

Result<std::vector<McpHeaderParameter>> Of(const std::string& schema) { return HeaderParameters(*ParseJson(schema)); }

}  // namespace

TEST_CASE("HeaderParameters: are found below properties, at any depth", "[mcp]") {
  const auto found = Of(R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},
      "at":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}},"q":{"type":"number"}}})");
  REQUIRE(found.has_value());
  CHECK(*found == std::vector<McpHeaderParameter>{{"Mcp-Param-Region", {"region"}, "string"},
                                                  {"Mcp-Param-N", {"at", "n"}, "integer"}});
  CHECK(Of(R"({"type":"object"})")->empty());
}

TEST_CASE("HeaderParameters: invalid ones are rejected", "[mcp]") {
  for (const std::string member :
       {R"({"type":"string","x-mcp-header":""})", R"({"type":"string","x-mcp-header":"A b"})",
        R"({"type":"string","x-mcp-header":"A\r\nX"})", R"({"type":"string","x-mcp-header":"Ä"})",
        R"({"type":"string","x-mcp-header":7})", R"({"type":"number","x-mcp-header":"A"})",
        R"({"type":"object","x-mcp-header":"A"})", R"({"x-mcp-header":"A"})",
        R"({"type":["string","null"],"x-mcp-header":"A"})",
        R"({"type":"array","items":{"type":"string","x-mcp-header":"A"}})",
        R"({"anyOf":[{"type":"string","x-mcp-header":"A"}]})",
        R"({"type":"object","properties":{"b":{"not":{"type":"string","x-mcp-header":"A"}}}})"}) {
    INFO(member);
    CHECK_FALSE(Of(R"({"type":"object","properties":{"a":)" + member + "}}").has_value());
  }
  CHECK_FALSE(Of(R"({"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},
                                                    "b":{"type":"string","x-mcp-header":"a"}}})")
                  .has_value());
}

TEST_CASE("ParameterHeaders: values in the form of headers, none for missing ones", "[mcp]") {
  const std::vector<McpHeaderParameter> parameters{
      {"Mcp-Param-S", {"s"}, "string"}, {"Mcp-Param-I", {"o", "i"}, "integer"}, {"Mcp-Param-B", {"b"}, "boolean"}};
  const auto headers = ParameterHeaders(parameters, *ParseJson(R"({"s":"x","o":{"i":42.0},"b":false})"));
  REQUIRE(headers.has_value());
  CHECK(*headers == std::vector<std::pair<std::string, std::string>>{
                        {"Mcp-Param-S", "x"}, {"Mcp-Param-I", "42"}, {"Mcp-Param-B", "false"}});
  CHECK(ParameterHeaders(parameters, *ParseJson(R"({"s":null,"o":7})"))->empty());
  CHECK_FALSE(ParameterHeaders(parameters, *ParseJson(R"({"s":7})")).has_value());
  CHECK_FALSE(ParameterHeaders(parameters, *ParseJson(R"({"o":{"i":9007199254740992}})")).has_value());
}

TEST_CASE("HeaderText: text that a header cannot hold is encoded and marked", "[mcp]") {
  CHECK(HeaderText("us west 1") == "us west 1");
  CHECK(HeaderText("") == "");
  CHECK(HeaderText("Hello, 世界") == "=?base64?SGVsbG8sIOS4lueVjA==?=");
  CHECK(HeaderText(" padded ") == "=?base64?IHBhZGRlZCA=?=");
  CHECK(HeaderText("line1\nline2") == "=?base64?bGluZTEKbGluZTI=?=");
  CHECK(HeaderText("=?base64?literal?=") == "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
}

}  // namespace reprise::header_parameters_test
