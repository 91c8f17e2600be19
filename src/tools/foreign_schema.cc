#include "tools/foreign_schema.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace reprise {
namespace {

constexpr int kMaxSchemaDepth = 16;

// Keywords that mean the same in every draft since 6, by the kind of value that they take.
constexpr std::array<const char*, 4> kNumbers = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
constexpr std::array<const char*, 6> kCounts = {"minItems",  "maxItems",      "minLength",
                                                "maxLength", "minProperties", "maxProperties"};
constexpr std::array<const char*, 7> kTypes = {"null", "boolean", "object", "array", "number", "string", "integer"};

bool IsType(const Json& type) {
  return type.is_string() &&
         std::find(kTypes.begin(), kTypes.end(), type.get_ref<const std::string&>()) != kTypes.end();
}

bool IsTypes(const Json& type) {
  return IsType(type) || (type.is_array() && !type.empty() && std::all_of(type.begin(), type.end(), IsType));
}

Json Checkable(const Json& schema, int depth) {
  Json kept = Json::object();
  // Beside a reference other keywords mean nothing in draft-07, and something in later ones.
  if (!schema.is_object() || depth > kMaxSchemaDepth || schema.contains("$ref")) return kept;
  if (schema.contains("type") && IsTypes(schema["type"])) kept["type"] = schema["type"];
  if (schema.contains("enum") && schema["enum"].is_array() && !schema["enum"].empty()) kept["enum"] = schema["enum"];
  for (const char* keyword : kNumbers) {
    if (schema.contains(keyword) && schema[keyword].is_number()) kept[keyword] = schema[keyword];
  }
  for (const char* keyword : kCounts) {
    if (schema.contains(keyword) && schema[keyword].is_number_unsigned()) kept[keyword] = schema[keyword];
  }
  if (schema.contains("properties") && schema["properties"].is_object()) {
    kept["properties"] = Json::object();
    for (const auto& [name, member] : schema["properties"].items())
      kept["properties"][name] = Checkable(member, depth + 1);
  }
  if (schema.contains("required") && schema["required"].is_array()) {
    Json names = Json::array();
    for (const Json& name : schema["required"]) {
      if (name.is_string() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    if (!names.empty()) kept["required"] = std::move(names);
  }
  // Beside prefixItems it is about the elements behind those.
  if (schema.contains("items") && schema["items"].is_object() && !schema.contains("prefixItems"))
    kept["items"] = Checkable(schema["items"], depth + 1);
  const bool closed = schema.contains("additionalProperties") && schema["additionalProperties"] == false;
  if (closed && !schema.contains("patternProperties")) kept["additionalProperties"] = false;
  return kept;
}

void TakeNullForOptional(Json& schema) {
  if (!schema.contains("properties")) return;
  for (auto& [name, member] : schema["properties"].items()) {
    const bool is_required =
        schema.contains("required") &&
        std::find(schema["required"].begin(), schema["required"].end(), name) != schema["required"].end();
    if (is_required) continue;
    if (member.contains("type")) {
      Json& type = member["type"];
      if (type.is_string()) type = Json::array({type});
      if (std::find(type.begin(), type.end(), "null") == type.end()) type.push_back("null");
    }
    if (member.contains("enum") &&
        std::find(member["enum"].begin(), member["enum"].end(), nullptr) == member["enum"].end())
      member["enum"].push_back(nullptr);
  }
}

}  // namespace

std::string CheckablePart(std::string_view schema, OptionalNulls nulls) {
  const auto parsed = ParseJson(schema);
  Json kept = {{"type", "object"}};
  if (parsed) kept.update(Checkable(*parsed, 0));
  kept["type"] = "object";
  if (nulls == OptionalNulls::kNotGiven) TakeNullForOptional(kept);
  return DumpJson(kept);
}

}  // namespace reprise
