#include "mcp/header_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr const char* kAnnotation = "x-mcp-header";
constexpr std::string_view kMarkBegin = "=?base64?", kMarkEnd = "?=";
constexpr std::size_t kMaxHeaderName = 64, kMaxParameters = 32;
constexpr double kMaxSafeInteger = 9007199254740991.0;  // 2^53 - 1

// RFC 9110, 5.6.2.
bool IsToken(std::string_view text) {
  static constexpr std::string_view kOther = "!#$%&'*+-.^_`|~";
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return IsAsciiAlnum(c) || kOther.find(c) != std::string_view::npos; });
}

tl::unexpected<Error> Wrong(const std::string& what) {
  return Fail(ErrorCode::kInvalidArgument, std::string(kAnnotation) + " " + what);
}

class Collector {
 public:
  // Annotations are allowed only in schemas that are reached through "properties"; anywhere else the tool is rejected.
  Result<void> Properties(const Json& schema) {
    for (const auto& [keyword, value] : schema.items()) {
      if (keyword == kAnnotation) continue;  // the caller has checked it
      if (keyword == "properties" && value.is_object()) {
        TRY(Members(value));
      } else if (IsAnnotated(value)) {
        return Wrong("stands beneath \"" + keyword + "\", where a value cannot be found");
      }
    }
    return {};
  }

  std::vector<McpHeaderParameter> found;

 private:
  Result<void> Members(const Json& properties) {
    for (const auto& [name, schema] : properties.items()) {
      if (!schema.is_object()) continue;
      path_.push_back(name);
      if (const auto annotation = schema.find(kAnnotation); annotation != schema.end()) {
        TRY(Take(*annotation, TextMember(schema, "type")));
      }
      TRY(Properties(schema));
      path_.pop_back();
    }
    return {};
  }

  Result<void> Take(const Json& annotation, const std::string& type) {
    if (!annotation.is_string()) return Wrong("is not a text");
    const std::string name = annotation.get<std::string>();
    if (!IsToken(name) || name.size() > kMaxHeaderName) return Wrong("is not the name of a header");
    if (type != "string" && type != "integer" && type != "boolean") return Wrong("is at a parameter of another type");
    if (!names_.insert(LowerCase(name)).second) return Wrong("names the same header twice");
    if (found.size() == kMaxParameters) return Wrong("is at too many parameters");
    found.push_back({.header = "Mcp-Param-" + name, .path = path_, .type = type});
    return {};
  }

  // In a default or an enum the word has no meaning, but such a schema is so rare that its tool is rejected too.
  static bool IsAnnotated(const Json& value) {
    if (!value.is_structured()) return false;
    if (value.is_object() && value.contains(kAnnotation)) return true;
    return std::ranges::any_of(value, IsAnnotated);
  }

  std::vector<std::string> path_;
  std::set<std::string> names_;
};

Result<std::string> ValueText(const McpHeaderParameter& parameter, const Json& value) {
  if (parameter.type == "string" && value.is_string()) return value.get<std::string>();
  if (parameter.type == "boolean" && value.is_boolean()) return std::string(value.get<bool>() ? "true" : "false");
  if (parameter.type == "integer" && value.is_number()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) <= kMaxSafeInteger)
      return std::to_string(static_cast<std::int64_t>(number));
  }
  return Fail(ErrorCode::kInvalidArgument, "\"" + parameter.path.back() + "\" must be of type " + parameter.type);
}

}  // namespace

Result<std::vector<McpHeaderParameter>> HeaderParameters(const Json& input_schema) {
  Collector collector;
  if (input_schema.contains(kAnnotation)) return Wrong("is at the arguments as a whole");
  TRY(collector.Properties(input_schema));
  return std::move(collector.found);
}

Result<std::vector<std::pair<std::string, std::string>>> ParameterHeaders(
    const std::vector<McpHeaderParameter>& parameters, const Json& arguments) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (const McpHeaderParameter& parameter : parameters) {
    const Json* value = &arguments;
    for (const std::string& name : parameter.path) value = &MemberOf(*value, name);
    if (value->is_null()) continue;
    const auto text = TRY(ValueText(parameter, *value));
    headers.emplace_back(parameter.header, HeaderText(text));
  }
  return headers;
}

std::string HeaderText(std::string_view value) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  const bool is_plain = std::ranges::all_of(value, [](char c) { return c >= 0x20 && c <= 0x7e; }) &&
                        (value.empty() || (!is_blank(value.front()) && !is_blank(value.back()))) &&
                        !(value.starts_with(kMarkBegin) && value.ends_with(kMarkEnd));
  if (is_plain) return std::string(value);
  return std::string(kMarkBegin) + EncodeBase64(value) + std::string(kMarkEnd);
}

}  // namespace reprise
