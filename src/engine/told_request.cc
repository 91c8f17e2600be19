#include "engine/told_request.h"

#include <algorithm>

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

}  // namespace

Json Parsed(std::string_view value) {
  if (value.empty()) return {};
  // An unreadable value, such as one that is too deep to be walked, is compared as text.
  Json json = ParseJson(value, kMostToldDepth).value_or(Json(std::string(value)));
  TakeCacheMarks(json);
  return json;
}

Result<Told> ReadTold(const std::string& body) {
  Told told;
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
