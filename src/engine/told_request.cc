#include "engine/told_request.h"

#include <algorithm>
#include <map>

#include "base/try.h"

namespace reprise {
namespace {

// Marks for the provider's cache stand at places that depend on everything else.
void TakeCacheMarks(Json& json) {
  if (json.is_object()) json.erase("cache_control");
  if (!json.is_structured()) return;
  for (Json& each : json) TakeCacheMarks(each);
}

// Of a text, or of parts with texts.
std::string TextOf(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (content.is_array()) {
    for (const Json& part : content) text += TextMember(part, "text");
  }
  return text;
}

std::string NameOf(const Json& tool) {
  const Json& function = MemberOf(tool, "function");
  std::string name = TextMember(function.is_object() ? function : tool, "name");
  return name.empty() ? TextMember(tool, "type") : name;
}

// The modules of a prompt (JoinModules).
std::vector<ToldPart> Modules(const std::string& system, const std::vector<ToldModule>& modules) {
  constexpr std::string_view kBetween = "\n\n";
  std::vector<ToldPart> parts;
  std::size_t at = 0;
  for (const ToldModule& module : modules) {
    const bool is_first = parts.empty();
    if (!is_first && std::string_view(system).substr(at, kBetween.size()) != kBetween) break;
    if (!is_first) at += kBetween.size();
    if (!module.bytes || *module.bytes > system.size() - at) break;
    parts.push_back({.name = module.name, .text = system.substr(at, *module.bytes)});
    at += *module.bytes;
  }
  if (parts.size() == modules.size() && at == system.size()) return parts;
  return {{.text = system}};
}

// The texts of one body's parts, to find those that another one has too.
class KnownParts {
 public:
  void Add(const std::string& text) { ++count_[text]; }
  // Whether it is there, once for each time.
  bool Take(const std::string& text) {
    const auto found = count_.find(text);
    if (found == count_.end() || found->second == 0) return false;
    --found->second;
    return true;
  }
  std::size_t left() const {
    std::size_t sum = 0;
    for (const auto& [text, count] : count_) sum += count;
    return sum;
  }

 private:
  std::map<std::string, std::size_t> count_;
};

// Without marks for the provider's cache, so that they make nothing new.
std::string Compared(const ToldPart& part) { return part.name + "\n" + DumpJson(Parsed(part.text)); }

// All parts but those of the system prompt.
ToldRequest PartsBesidePrompt(const ToldBody& told) {
  ToldRequest parts;
  for (const std::string_view each : RawElements(told.tools)) {
    parts.tools.push_back({.name = NameOf(Parsed(each)), .text = std::string(each)});
  }
  for (const auto& [name, value] : told.parameters) parts.parameters.push_back({name, std::string(value)});
  for (const std::string_view each : told.messages) {
    if (!each.empty()) parts.messages.push_back({.text = std::string(each)});
  }
  return parts;
}

}  // namespace

Result<ToldRequest> InParts(const std::string& body, const std::string& before,
                            const std::vector<ToldModule>& modules) {
  const ToldBody told = TRY(ReadTold(body));
  ToldRequest parts = PartsBesidePrompt(told);
  parts.system = Modules(told.system, modules);
  const ToldBody told_before = before.empty() ? ToldBody() : TRY(ReadTold(before));
  ToldRequest earlier = PartsBesidePrompt(told_before);
  for (ToldPart& part : parts.system) {
    const std::size_t at = told_before.system.find(part.text);
    part.is_new = at == std::string::npos;
  }
  for (const auto list : {&ToldRequest::tools, &ToldRequest::parameters, &ToldRequest::messages}) {
    KnownParts known;
    for (const ToldPart& part : earlier.*list) known.Add(Compared(part));
    for (ToldPart& part : parts.*list) part.is_new = !known.Take(Compared(part));
    parts.gone += known.left();
  }
  return parts;
}

Json Parsed(std::string_view value) {
  if (value.empty()) return {};
  // An unreadable value, such as one that is too deep to be walked, is compared as text.
  Json json = ParseJson(value, kMostToldDepth).value_or(Json(std::string(value)));
  TakeCacheMarks(json);
  return json;
}

Result<ToldBody> ReadTold(const std::string& body) {
  ToldBody told;
  constexpr std::string_view kMark = R"("cache_control":)";
  if (const std::size_t mark = body.find(kMark); mark != body.npos) {
    const std::string_view value = std::string_view(body).substr(mark + kMark.size());
    told.parameters["cache_control"] = value.substr(0, value.find('}') + 1);
  }
  for (const RawJsonMember& member : RawMembers(body)) {
    const Json parsed = TRY(ParseJson(member.name));
    const std::string name = parsed.is_string() ? parsed.get<std::string>() : std::string();
    if (name == "tools") {
      told.tools = member.value;
    } else if (name == "system" || name == "instructions") {
      told.system = TextOf(Parsed(member.value));
      told.system_path = "/" + name;
    } else if (name == "messages" || name == "input") {
      told.messages = RawElements(member.value);
      told.messages_path = "/" + name;
    } else {
      told.parameters[name] = member.value;
    }
  }
  const Json first = told.messages.empty() ? Json() : Parsed(told.messages.front());
  if (const std::string role = TextMember(first, "role"); role == "system" || role == "developer") {
    told.system = TextOf(MemberOf(first, "content"));
    told.system_path = told.messages_path + "/0/content";
    told.system_role = role;
    told.messages.front() = {};  // so that the others keep their places
  }
  return told;
}

Difference FirstDifference(const Json& before, const Json& after, std::string path) {
  if (before.is_object() && after.is_object()) {
    for (const Json* side : {&before, &after}) {
      for (const auto& [name, value] : side->items()) {
        const Json& was = MemberOf(before, name);
        const Json& is = MemberOf(after, name);
        if (was != is) return FirstDifference(was, is, path + Json::json_pointer().operator/=(name).to_string());
      }
    }
  }
  if (before.is_array() && after.is_array()) {
    for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
      const Json was = i < before.size() ? before[i] : Json(), is = i < after.size() ? after[i] : Json();
      if (was != is) return FirstDifference(was, is, path + "/" + std::to_string(i));
    }
  }
  return {std::move(path), before, after};
}

std::vector<std::pair<std::string, Json>> ToolsIn(std::string_view tools) {
  std::vector<std::pair<std::string, Json>> found;
  for (const std::string_view each : RawElements(tools)) {
    Json tool = Parsed(each);
    std::string name = NameOf(tool);
    found.emplace_back(std::move(name), std::move(tool));
  }
  return found;
}

}  // namespace reprise
