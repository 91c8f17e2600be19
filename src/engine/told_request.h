#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "reprise/engine.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

// The bodies of requests to models, taken apart for comparisons.
namespace reprise {

// A body taken apart, whichever of the three interfaces it is for. Values are as written, because most are the same in
// both bodies. The body must outlive it.
struct ToldBody {
  std::string system, system_path, system_role;  // the role is that of a message
  std::string_view tools = "[]";
  std::map<std::string, std::string_view> parameters{};
  std::vector<std::string_view> messages{};  // the first is empty if it was the system prompt
  std::string messages_path;
};

// Values that are nested deeper are not parsed: an imported body may be of any depth.
inline constexpr int kMostToldDepth = 256;

// kInvalidArgument if the body is no JSON.
Result<ToldBody> ReadTold(const std::string& body);
// A value of it, without marks for the provider's cache; null if it is no JSON.
Json Parsed(std::string_view value);
// The tools by name, from ToldBody::tools.
std::vector<std::pair<std::string, Json>> ToolsIn(std::string_view tools);

// The parts of a body. `before` is the body that it follows; empty: none. `modules`: of its system prompt, which stays
// one part if they do not add up to it. kInvalidArgument if the body is no JSON.
Result<ToldRequest> InParts(const std::string& body, const std::string& before, const std::vector<ToldModule>& modules);

// The first place where they differ.
struct Difference {
  std::string path;
  Json before, after;  // null: not there
};
// `path`: of both values.
Difference FirstDifference(const Json& before, const Json& after, std::string path);

}  // namespace reprise
