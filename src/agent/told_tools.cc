#include "agent/told_tools.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "agent/context.h"
#include "base/json.h"
#include "base/utf8.h"

namespace reprise {
namespace {

constexpr std::size_t kLongestSentence = 160;

// The most useful first; those that are not named here stand between the two lists.
constexpr std::string_view kFirst[] = {"read_file", "list_files",  "search_files", "write_file",
                                       "edit_file", "delete_file", "run_shell",    "ask_human"};
constexpr std::string_view kLast[] = {"calculator",     "current_time",   "http_get", "run_code",
                                      "update_plan",    "manage_tasks",   "research", "list_chat_files",
                                      "read_chat_file", "save_chat_file", "echo",     "delete_chat_file"};

template <std::size_t kCount>
std::size_t PlaceIn(const std::string_view (&names)[kCount], std::string_view name) {
  return static_cast<std::size_t>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

std::size_t Rank(std::string_view name) {
  if (const std::size_t place = PlaceIn(kFirst, name); place < std::size(kFirst)) return place;
  const std::size_t place = PlaceIn(kLast, name);
  return place < std::size(kLast) ? std::size(kFirst) + 1 + place : std::size(kFirst);
}

std::string FirstSentence(std::string_view text) {
  if (const std::size_t end = text.find_first_of("\n"); end != text.npos) text = text.substr(0, end);
  for (std::size_t dot = text.find(". "); dot != text.npos; dot = text.find(". ", dot + 1)) {
    if (dot < 4 || text.substr(dot - 3, 3) == "e.g") continue;
    text = text.substr(0, dot + 1);
    break;
  }
  return std::string(Utf8Prefix(text, kLongestSentence));
}

// Leaves what says which values are valid.
void Strip(Json& schema) {
  if (!schema.is_object()) return;
  for (const char* name : {"description", "title", "examples", "example", "default", "$comment", "$schema"}) {
    schema.erase(name);
  }
  for (const char* name : {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}) {
    const auto named = schema.find(name);
    if (named == schema.end() || !named->is_object()) continue;
    for (auto& [key, each] : named->items()) Strip(each);
  }
  for (const char* name : {"items", "additionalProperties", "not", "if", "then", "else", "contains"}) {
    if (const auto one = schema.find(name); one != schema.end()) Strip(*one);
  }
  for (const char* name : {"anyOf", "oneOf", "allOf", "prefixItems"}) {
    const auto several = schema.find(name);
    if (several == schema.end() || !several->is_array()) continue;
    for (Json& each : *several) Strip(each);
  }
}

ToolSpec Short(ToolSpec spec) {
  spec.description = FirstSentence(spec.description);
  if (auto schema = ParseJson(spec.parameters); schema && schema->is_object()) {
    Strip(*schema);
    spec.parameters = DumpJson(*schema);
  }
  return spec;
}

}  // namespace

std::optional<ShortTools> ShortToolsWithin(const std::vector<ToolSpec>& specs, std::int64_t budget) {
  if (budget <= 0 || EstimateTokens(specs) <= budget / 2) return std::nullopt;
  ShortTools told;
  for (const ToolSpec& spec : specs) told.specs.push_back(Short(spec));
  while (!told.specs.empty() && EstimateTokens(told.specs) > budget / 3) {
    // Of those that are equally useful the one that comes last.
    const auto least =
        std::max_element(told.specs.rbegin(), told.specs.rend(),
                         [](const ToolSpec& a, const ToolSpec& b) { return Rank(a.name) < Rank(b.name); });
    told.left_out.push_back(std::move(least->name));
    told.specs.erase(std::next(least).base());
  }
  return told;
}

}  // namespace reprise
