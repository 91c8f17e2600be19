#include "doors/openai/request_tools.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/text.h"
#include "base/try.h"

namespace reprise::openai {
namespace {

constexpr const char* kChoice = "tool_choice";

// Members of a function stand in "function" (Chat Completions) or beside the type (Responses).
const Json& FunctionOf(const Json& tool) { return tool.contains("function") ? MemberOf(tool, "function") : tool; }

// Tools of other types are left out, because only OpenAI's own provider could run them.
Result<void> TakeTool(const Json& tool, const std::string& name_space, OpenAiRequest& request) {
  const std::string type = TextMember(tool, "type");
  const Json& inner = MemberOf(tool, "tools");
  if (type == "namespace" && name_space.empty() && inner.is_array()) {
    const std::string name = TextMember(tool, "name");
    if (name.empty()) return Fail(Invalid("invalid_member", "a namespace must have a \"name\"", "tools"));
    for (const Json& each : inner) TRY(TakeTool(each, name, request));
    request.namespaces.push_back(DumpJson(tool));
    return {};
  }
  if (type != "function") {
    request.left_out_tools.emplace_back(Utf8Prefix(type, kMostOfAType));
    return {};
  }
  const Json& function = FunctionOf(tool);
  const std::string name = TextMember(function, "name");
  if (name.empty()) return Fail(Invalid("invalid_member", "a tool must have a \"name\"", "tools"));
  const Json& parameters = MemberOf(function, "parameters");
  request.tools.push_back(
      {.name = JoinedName(name_space, name),
       .description = TextMember(function, "description"),
       .parameters = parameters.is_object() ? DumpJson(parameters) : R"({"type":"object","properties":{}})",
       .strict = MemberOf(function, "strict") == true});
  if (!name_space.empty()) request.namespaced[request.tools.back().name] = {name_space, name};
  return {};
}

// What "tool_choice" asks for.
struct Choice {
  enum class Kind { kAuto, kNone, kRequired, kFunction, kAllowed };
  Kind kind = Kind::kAuto;
  bool must_call = false;
  const Json* allowed = nullptr;  // kAllowed: references to tools
};

Result<Choice> ReadAllowed(const Json& choice) {
  const Json& allowed = choice.contains("allowed_tools") ? MemberOf(choice, "allowed_tools") : choice;
  const Json& mode = MemberOf(allowed, "mode");
  const Json& tools = MemberOf(allowed, "tools");
  const bool are_objects =
      tools.is_array() && std::all_of(tools.begin(), tools.end(), [](const Json& each) { return each.is_object(); });
  if ((mode != "auto" && mode != "required") || !are_objects) {
    return Fail(Invalid("invalid_member", "allowed_tools need a \"mode\" (auto or required) and \"tools\"", kChoice));
  }
  return Choice{Choice::Kind::kAllowed, mode == "required", &tools};
}

Result<Choice> ReadChoice(const Json& body) {
  const Json& choice = MemberOf(body, kChoice);
  if (choice.is_null() || choice == "auto") return Choice{};
  if (choice == "none") return Choice{Choice::Kind::kNone};
  if (choice == "required") return Choice{Choice::Kind::kRequired, true};
  const std::string type = TextMember(choice, "type");
  if (type == "allowed_tools") return ReadAllowed(choice);
  if (type == "function" && !TextMember(FunctionOf(choice), "name").empty()) {
    return Choice{Choice::Kind::kFunction, true};
  }
  const Json& tools = MemberOf(body, "tools");
  const bool is_of_a_tool =
      tools.is_array() && !type.empty() && type != "function" &&
      std::any_of(tools.begin(), tools.end(), [&](const Json& tool) { return TextMember(tool, "type") == type; });
  if (is_of_a_tool) {
    return Fail(Invalid("unsupported_value",
                        "tools of the type \"" + std::string(Utf8Prefix(type, kMostOfAType)) + "\" are not supported",
                        kChoice));
  }
  return Fail(WrongType(kChoice, "none, auto, required, or an object of the type function or allowed_tools"));
}

// The name of the offered function that a choice refers to.
Result<std::string> NameIn(const Json& reference, const OpenAiRequest& request) {
  const Json& function = FunctionOf(reference);
  const std::string name = JoinedName(TextMember(function, "namespace"), TextMember(function, "name"));
  const bool is_offered =
      std::any_of(request.tools.begin(), request.tools.end(), [&](const ToolSpec& tool) { return tool.name == name; });
  if (is_offered) return name;
  return Fail(Invalid(
      "invalid_member",
      "\"tool_choice\" names a function that is not in \"tools\": " + std::string(Utf8Prefix(name, kMostOfAType)),
      kChoice));
}

Result<void> KeepAllowed(const Json& references, OpenAiRequest& request) {
  std::set<std::string> names;
  for (const Json& each : references) {
    if (TextMember(each, "type") == "function") names.insert(TRY(NameIn(each, request)));
  }
  std::erase_if(request.tools, [&](const ToolSpec& tool) { return !names.contains(tool.name); });
  return {};
}

}  // namespace

std::string JoinedName(const std::string& name_space, const std::string& name) {
  if (name_space.empty()) return name;
  return name_space + (name_space.ends_with("__") ? "" : "__") + name;
}

Result<void> ReadTools(const Json& body, OpenAiRequest& request) {
  const Choice choice = TRY(ReadChoice(body));
  if (request.is_agent && choice.must_call) {
    return Fail(Invalid("unsupported_value", "an agent chooses its tools itself; ask the model alone to force a call",
                        kChoice));
  }
  const Json& tools = MemberOf(body, "tools");
  if (tools.is_null()) {
    if (choice.must_call || (choice.kind == Choice::Kind::kAllowed && !request.is_agent)) {
      return Fail(Invalid("invalid_member", "\"tool_choice\" needs \"tools\" to choose from", kChoice));
    }
    return {};
  }
  const bool are_objects =
      tools.is_array() && std::all_of(tools.begin(), tools.end(), [](const Json& each) { return each.is_object(); });
  if (!are_objects) return Fail(WrongType("tools", "an array of objects"));
  if (request.is_agent) return {};
  if (choice.kind != Choice::Kind::kAuto) request.tool_choice = DumpJson(MemberOf(body, kChoice));
  if (choice.kind == Choice::Kind::kNone) return {};
  for (const Json& each : tools) TRY(TakeTool(each, "", request));
  request.wishes.must_call = choice.must_call;
  if (choice.kind == Choice::Kind::kAllowed) TRY(KeepAllowed(*choice.allowed, request));
  if (choice.must_call && request.tools.empty()) {
    return Fail(Invalid("unsupported_value", "\"tool_choice\" has no function to choose from", kChoice));
  }
  if (choice.kind == Choice::Kind::kFunction) {
    request.wishes.must_call_tool = TRY(NameIn(MemberOf(body, kChoice), request));
  }
  return {};
}

}  // namespace reprise::openai
