#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "reprise/result.h"

// What messages over HTTP repeat in headers (Model Context Protocol 2026-07-28, "Streamable HTTP").
namespace reprise {

// A parameter of a tool whose value goes into a header too ("x-mcp-header").
struct McpHeaderParameter {
  std::string header;             // "Mcp-Param-Region"
  std::vector<std::string> path;  // of members, to the value in the arguments
  std::string type;               // "string", "integer" or "boolean"
  bool operator==(const McpHeaderParameter&) const = default;
};

// Those that a tool's schema names. kInvalidArgument says why such a tool must not be used.
Result<std::vector<McpHeaderParameter>> HeaderParameters(const Json& input_schema);

// The headers of a call. Values that are not given, or null, have none. kInvalidArgument if one is not of its type.
Result<std::vector<std::pair<std::string, std::string>>> ParameterHeaders(
    const std::vector<McpHeaderParameter>& parameters, const Json& arguments);

// `value` as a header holds it: as it is, or in Base64 and marked so if a header could not.
std::string HeaderText(std::string_view value);

}  // namespace reprise
