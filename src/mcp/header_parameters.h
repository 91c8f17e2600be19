#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "reprise/result.h"

// Parts of messages over HTTP that headers repeat (Model Context Protocol 2026-07-28, "Streamable HTTP").
namespace reprise {

// A tool's parameter whose value is also sent in a header ("x-mcp-header").
struct McpHeaderParameter {
  std::string header;             // "Mcp-Param-Region"
  std::vector<std::string> path;  // member names that lead to the value in the arguments
  std::string type;               // "string", "integer" or "boolean"
  bool operator==(const McpHeaderParameter&) const = default;
};

// The header parameters in a tool's schema. kInvalidArgument says why such a tool must not be used.
Result<std::vector<McpHeaderParameter>> HeaderParameters(const Json& input_schema);

// The headers of a call. Missing and null values have none. kInvalidArgument if a value has another type.
Result<std::vector<std::pair<std::string, std::string>>> ParameterHeaders(
    const std::vector<McpHeaderParameter>& parameters, const Json& arguments);

// `value` in a form that a header can hold: unchanged, or in marked Base64.
std::string HeaderText(std::string_view value);

}  // namespace reprise
