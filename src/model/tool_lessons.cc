#include "model/tool_lessons.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"

namespace reprise {
namespace {

constexpr std::size_t kMostModels = 64;  // models of which something is remembered
constexpr int kDeepestSchema = kMaxJsonDepth;

// --- schemas ---------------------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 7> kTypes{"object", "array", "string", "number", "integer", "boolean", "null"};

bool IsType(const Json& type) {
  return type.is_string() &&
         std::find(kTypes.begin(), kTypes.end(), type.get_ref<const std::string&>()) != kTypes.end();
}

// Other languages' names for JSON types.
Json TypeCalled(const std::string& name) {
  static const std::map<std::string, std::string, std::less<>> kOthers{
      {"int", "integer"}, {"long", "integer"}, {"float", "number"}, {"double", "number"}, {"bool", "boolean"},
      {"str", "string"},  {"text", "string"},  {"date", "string"},  {"dict", "object"},   {"map", "object"},
      {"list", "array"},  {"tuple", "array"},  {"set", "array"}};
  const std::string lower = LowerCase(name);
  if (IsType(lower)) return lower;
  const auto other = kOthers.find(lower);
  return other == kOthers.end() ? Json() : Json(other->second);
}

void CompleteType(Json& schema) {
  const auto type = schema.find("type");
  if (type == schema.end()) {
    if (schema.contains("properties")) schema["type"] = "object";
    if (schema.contains("items")) schema["type"] = "array";
    return;
  }
  if (type->is_array()) {
    Json types = Json::array();
    for (const Json& each : *type) {
      if (Json known = each.is_string() ? TypeCalled(each.get<std::string>()) : Json(); !known.is_null())
        types.push_back(known);
    }
    *type = types.size() == 1 ? types[0] : std::move(types);
  } else {
    *type = type->is_string() ? TypeCalled(type->get<std::string>()) : Json();
  }
  if (type->is_null() || type->empty()) schema.erase("type");
}

bool HasType(const Json& schema, std::string_view name) {
  const Json& type = MemberOf(schema, "type");
  if (type.is_array()) return std::find(type.begin(), type.end(), Json(std::string(name))) != type.end();
  return type.is_string() && type.get_ref<const std::string&>() == name;
}

void CompleteOne(Json& schema, int depth);

void CompleteEach(Json& schema, const char* name, int depth) {
  const auto several = schema.find(name);
  if (several == schema.end()) return;
  if (!several->is_array() || several->empty()) {
    schema.erase(name);
    return;
  }
  for (Json& each : *several) CompleteOne(each, depth + 1);
}

void CompleteNamed(Json& schema, const char* name, int depth) {
  const auto named = schema.find(name);
  if (named == schema.end()) return;
  if (!named->is_object()) *named = Json::object();
  for (auto& [key, each] : named->items()) CompleteOne(each, depth + 1);
}

void CompleteItems(Json& schema, int depth) {
  const auto items = schema.find("items");
  if (items == schema.end()) {
    schema["items"] = Json::object();
  } else if (items->is_array()) {  // one schema per position
    Json any = Json::object();
    if (items->size() == 1) any = (*items)[0];
    if (items->size() > 1) any["anyOf"] = *items;
    *items = std::move(any);
  } else if (!items->is_object()) {
    *items = Json::object();
  }
  CompleteOne(schema["items"], depth + 1);
}

// Keeps the required names that exist, once each.
void CompleteRequired(Json& schema) {
  const auto required = schema.find("required");
  if (required == schema.end()) return;
  Json known = Json::array();
  if (required->is_array()) {
    const Json& properties = MemberOf(schema, "properties");
    for (const Json& name : *required) {
      const bool is_there =
          name.is_string() && properties.is_object() && properties.contains(name.get_ref<const std::string&>());
      if (is_there && std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  }
  if (known.empty()) {
    schema.erase("required");
  } else {
    schema["required"] = std::move(known);
  }
}

void CompleteOne(Json& schema, int depth) {
  if (depth > kDeepestSchema) schema = Json::object();
  if (schema.is_string()) {  // "string" for {"type":"string"}
    const Json type = TypeCalled(schema.get<std::string>());
    schema = type.is_null() ? Json::object() : Json{{"type", type}};
  }
  if (!schema.is_object()) schema = Json::object();
  Json whole = Json::object();
  for (auto& [name, member] : schema.items()) {
    const bool is_value = name == "default" || name == "const";
    if (member.is_null() && !is_value) {
      if (name == "properties") whole[name] = Json::object();
      continue;
    }
    whole[name] = std::move(member);
  }
  schema = std::move(whole);
  CompleteType(schema);
  for (const char* name : {"properties", "patternProperties", "$defs", "definitions"})
    CompleteNamed(schema, name, depth);
  for (const char* name : {"anyOf", "oneOf", "allOf", "prefixItems"}) CompleteEach(schema, name, depth);
  if (HasType(schema, "array")) CompleteItems(schema, depth);
  if (HasType(schema, "object") && !schema.contains("properties") && depth == 0) schema["properties"] = Json::object();
  if (const auto values = schema.find("enum"); values != schema.end() && (!values->is_array() || values->empty())) {
    schema.erase("enum");
  }
  CompleteRequired(schema);
}

// Adds what `branch` allows to the schema.
void AddBranch(Json& schema, const Json& branch) {
  const Json& properties = MemberOf(branch, "properties");
  if (!properties.is_object()) return;
  Json& own = schema["properties"];
  if (!own.is_object()) own = Json::object();
  for (const auto& [name, property] : properties.items()) {
    const auto known = own.find(name);
    if (known == own.end()) {
      own[name] = property;
    } else if (*known != property) {
      Json both = known->contains("anyOf") && known->size() == 1 ? (*known)["anyOf"] : Json::array({*known});
      if (std::find(both.begin(), both.end(), property) == both.end()) both.push_back(property);
      *known = Json{{"anyOf", std::move(both)}};
    }
  }
}

std::vector<std::string> RequiredBy(const Json& schema) {
  std::vector<std::string> names;
  const Json& required = MemberOf(schema, "required");
  if (!required.is_array()) return names;
  for (const Json& name : required) {
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return names;
}

// Removes combinations at the top, which OpenAI and Anthropic reject.
void Flatten(Json& schema) {
  std::vector<std::string> required = RequiredBy(schema);
  for (const char* name : {"allOf", "anyOf", "oneOf"}) {
    const Json branches = MemberOf(schema, name);
    schema.erase(name);
    if (!branches.is_array()) continue;
    std::optional<std::vector<std::string>> by_all;
    for (Json branch : branches) {
      if (!branch.is_object()) continue;
      Flatten(branch);
      AddBranch(schema, branch);
      std::vector<std::string> names = RequiredBy(branch);
      if (!by_all) {
        by_all = std::move(names);
      } else if (std::string_view(name) == "allOf") {
        by_all->insert(by_all->end(), names.begin(), names.end());
      } else {
        std::erase_if(*by_all, [&](const std::string& each) {
          return std::find(names.begin(), names.end(), each) == names.end();
        });
      }
    }
    if (by_all) required.insert(required.end(), by_all->begin(), by_all->end());
  }
  for (const char* name : {"not", "enum", "const", "if", "then", "else", "dependentSchemas"}) schema.erase(name);
  if (!required.empty()) schema["required"] = required;
}

// --- refusals --------------------------------------------------------------------------------------------------------

bool HasWord(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !IsToolNameCharacter(text[at - 1])) && (end == text.size() || !IsToolNameCharacter(text[end])))
      return true;
  }
  return false;
}

// The number after `begin`, written as [3], .3 or 3.
std::optional<std::size_t> NumberBehind(std::string_view text, std::string_view begin) {
  for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at + 1)) {
    std::string_view rest = text.substr(at + begin.size());
    rest.remove_prefix(std::min(rest.find_first_not_of("[. '`"), rest.size()));
    std::size_t number = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), number).ec == std::errc()) return number;
  }
  return std::nullopt;
}

// The rejected tool: "Invalid schema for function 'x'", "tools.14.custom.input_schema: Field required",
// "tools[0].function_declarations[5].parameters...".
const ToolSpec* RefusedIn(std::string_view words, const std::vector<ToolSpec>& sent) {
  const std::string lower = LowerCase(words);
  const auto says = [&](std::string_view word) { return lower.find(word) != lower.npos; };
  if (says("messages.") || says("messages[")) return nullptr;  // about the conversation
  if (says("schema") || says("function") || says("tool") || says("parameters")) {
    const ToolSpec* longest = nullptr;
    for (const ToolSpec& tool : sent) {
      if (HasWord(words, tool.name) && (!longest || tool.name.size() > longest->name.size())) longest = &tool;
    }
    if (longest != nullptr) return longest;
  }
  for (const char* begin : {"function_declarations", "functiondeclarations", "tools", "functions"}) {
    const auto number = NumberBehind(lower, begin);
    if (number && *number < sent.size()) return &sent[*number];
  }
  return nullptr;
}

// The maximum in "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with
// length 141 instead." or "tools: List should have at most 64 items": 128, 64. Zero if the error names none.
std::size_t MostAllowed(std::string_view words, std::size_t sent) {
  const std::string lower = LowerCase(words);
  if (lower.find("tools") == lower.npos && lower.find("functions") == lower.npos) return 0;
  if (lower.find("character") != lower.npos) return 0;  // the limit of a name
  for (const char* begin : {"maximum length", "at most", "maximum of", "up to", "maximum number of tools is",
                            "limit of", "limit is", "no more than", "maximum is", "exceeds the maximum", "max "}) {
    const auto number = NumberBehind(lower, begin);
    if (number && *number > 0 && *number < sent) return *number;
  }
  return 0;
}

}  // namespace

std::string CompleteSchema(std::string_view schema) {
  auto json = ParseJson(schema, 2 * kMaxJsonDepth, DuplicateMembers::kLastWins);
  Json root = json && json->is_object() ? *std::move(json) : Json::object();
  CompleteOne(root, 0);
  root["type"] = "object";
  Flatten(root);
  if (!MemberOf(root, "properties").is_object()) root["properties"] = Json::object();
  CompleteRequired(root);
  return DumpJson(root);
}

std::size_t ToolLessons::MostOf(const Model& model) const { return model.most > 0 ? model.most : most_; }

ToolLessons::Tools ToolLessons::TakenBy(const std::string& model, const std::vector<ToolSpec>& tools) {
  static const auto kNone = std::make_shared<const std::vector<ToolSpec>>();
  if (tools.empty()) return kNone;
  const MutexLock lock(mutex_);
  if (models_.size() >= kMostModels && !models_.contains(model)) models_.erase(models_.begin());
  Model& known = models_[model];
  if (known.taken && known.told == tools) return known.taken;
  auto taken = std::make_shared<std::vector<ToolSpec>>();
  std::vector<std::string> beyond;
  const std::size_t most = MostOf(known);
  for (const ToolSpec& tool : tools) {
    if (known.refused.contains(tool.name)) continue;
    if (most > 0 && taken->size() == most) {
      beyond.push_back(tool.name);
      continue;
    }
    taken->push_back({tool.name, tool.description, CompleteSchema(tool.parameters), tool.strict});
  }
  if (!beyond.empty() && beyond != known.beyond) {
    LogWarning("the model provider takes no more tools in a request: the others are left out",
               {{"model", model}, {"most", most}, {"left_out", Joined(beyond, " ")}});
  }
  known.beyond = std::move(beyond);
  known.told = tools;
  known.taken = std::move(taken);
  return known.taken;
}

bool ToolLessons::Learn(const std::string& model, const std::vector<ToolSpec>& sent, const Error& error) {
  if (!error.Is(Reason::kProviderBadRequest) || sent.empty()) return false;
  constexpr std::size_t kLongestReason = 300;
  const std::string& words = error.detail.size() > error.message.size() ? error.detail : error.message;
  const MutexLock lock(mutex_);
  Model& known = models_[model];
  if (const std::size_t most = MostAllowed(words, sent.size()); most > 0) {
    known.most = most;
    known.taken = nullptr;
    return true;
  }
  const ToolSpec* refused = RefusedIn(words, sent);
  // Whoever wants a tool strictly is told that it is refused.
  if (refused == nullptr || refused->strict) return false;
  LogWarning("the model provider refuses a tool's definition: the tool is left out",
             {{"model", model}, {"tool", refused->name}, {"detail", words}});
  known.refused.emplace(refused->name, Utf8Prefix(error.message, kLongestReason));
  known.taken = nullptr;
  return true;
}

bool ToolLessons::OffersSearch(const WebSearchOptions& search, const ModelRequest& request) const {
  const auto is_of_that_name = [](const ToolSpec& tool) { return tool.name == kWebSearchName; };
  if (!search.is_on || !request.may_search) return false;
  if (std::any_of(request.tools.begin(), request.tools.end(), is_of_that_name)) return false;
  const MutexLock lock(mutex_);
  const auto known = models_.find(request.model);
  return known == models_.end() || !known->second.refused.contains(kWebSearchName);
}

bool ToolLessons::LearnSearch(const std::string& model, const Error& error) {
  if (!error.Is(Reason::kProviderBadRequest)) return false;
  constexpr std::size_t kLongestReason = 300;
  const std::string words = LowerCase(error.message + error.detail);
  if (words.find("web_search") == words.npos && words.find("web search") == words.npos) return false;
  LogWarning("the model provider refuses its web search: it is left out",
             {{"model", model}, {"detail", error.message}});
  const MutexLock lock(mutex_);
  return models_[model].refused.emplace(kWebSearchName, Utf8Prefix(error.message, kLongestReason)).second;
}

std::vector<LeftOutTool> ToolLessons::LeftOut() const {
  std::vector<LeftOutTool> all;
  const MutexLock lock(mutex_);
  for (const auto& [name, model] : models_) {
    for (const auto& [tool, why] : model.refused) all.push_back({tool, name, why});
    const std::string why = "the provider takes " + std::to_string(MostOf(model)) + " tools in a request";
    for (const std::string& tool : model.beyond) all.push_back({tool, name, why});
  }
  return all;
}

ModelRequest WithHistoryAndTools(const ModelRequest& request, const Messages& messages,
                                 const std::vector<ToolSpec>& tools) {
  return {.model = request.model,
          .messages = messages,
          .tools = tools,
          .system = request.system,
          .max_response_bytes = request.max_response_bytes,
          .traceparent = request.traceparent,
          .files = request.files,
          .wishes = request.wishes,
          .effort = request.effort,
          .used_call_ids = request.used_call_ids,
          .may_search = request.may_search};
}

}  // namespace reprise
