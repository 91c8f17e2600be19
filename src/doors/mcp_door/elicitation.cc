#include "doors/mcp_door/elicitation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal_text.h"
#include "base/text.h"

namespace reprise::mcp_door {
namespace {

Error Unusable(std::string why) { return Refused(Reason::kInvalidAnswer, std::move(why)); }

// "accept", "decline" or "cancel"; empty if the client could not ask.
std::string ActionOf(const Json& result) { return TextMember(result, "action"); }

}  // namespace

Json ApprovalForm(const event::ApprovalRequired& asked) {
  std::vector<std::string> decisions = asked.allowed_decisions;
  const bool can_edit = std::erase(decisions, "edit") > 0;
  Json properties = {{"decision",
                      {{"type", "string"},
                       {"title", "Decision"},
                       {"description", "approve_for_chat and approve_always are for this very call, from now on too"},
                       {"enum", std::move(decisions)}}}};
  if (can_edit) {
    properties["arguments"] = {{"type", "string"},
                               {"title", "Other arguments"},
                               {"description", "A JSON object that replaces the arguments; empty: as they are"}};
  }
  properties["feedback"] = {{"type", "string"}, {"title", "Words for the agent"}};
  return {{"message", asked.tool_name + " " + EscapeHidden(asked.tool_input) + "\n" + asked.reason +
                          " (risk: " + asked.risk + ")"},
          {"requestedSchema",
           {{"type", "object"}, {"properties", std::move(properties)}, {"required", Json::array({"decision"})}}}};
}

Json InputForm(const event::InputRequired& asked, bool can_open_urls) {
  if (asked.url) {
    if (can_open_urls) {
      return {{"mode", "url"}, {"message", asked.question}, {"url", *asked.url}, {"elicitationId", asked.request_id}};
    }
    return {{"message", asked.question + "\n" + *asked.url},
            {"requestedSchema", {{"type", "object"}, {"properties", Json::object()}}}};
  }
  if (auto schema = ParseJson(asked.schema.value_or("")); schema && schema->is_object()) {
    return {{"message", asked.question}, {"requestedSchema", *std::move(schema)}};
  }
  Json answer = {{"type", "string"}, {"title", "Answer"}};
  std::string options;
  for (const std::string& each : asked.options) options += (options.empty() ? "" : ", ") + each;
  if (!options.empty()) answer["description"] = "One of these, or another one: " + options;
  return {
      {"message", asked.question},
      {"requestedSchema",
       {{"type", "object"}, {"properties", {{"answer", std::move(answer)}}}, {"required", Json::array({"answer"})}}}};
}

Result<ApprovalAnswer> ApprovalIn(const event::ApprovalRequired& asked, const Json& result) {
  ApprovalAnswer answer;
  const std::string action = ActionOf(result);
  if (action == "decline" || action == "cancel") return answer;
  const Json& content = MemberOf(result, "content");
  const std::string decision = TextMember(content, "decision");
  const auto& allowed = asked.allowed_decisions;
  if (action != "accept" || std::find(allowed.begin(), allowed.end(), decision) == allowed.end() ||
      decision == "edit") {
    return Fail(Unusable("the answer needs a \"decision\", one of those that the form offers"));
  }
  answer.approved = decision != "reject";
  if (decision == "approve_for_chat") answer.scope = ApprovalScope::kChat;
  if (decision == "approve_always") answer.scope = ApprovalScope::kAlways;
  if (const std::string feedback = TextMember(content, "feedback"); !IsBlank(feedback)) answer.feedback = feedback;
  if (std::string arguments = TextMember(content, "arguments"); answer.approved && !IsBlank(arguments)) {
    const auto parsed = ParseJson(arguments);
    if (!parsed || !parsed->is_object()) return Fail(Unusable("the \"arguments\" must be a JSON object"));
    answer.arguments = std::move(arguments);
  }
  return answer;
}

Result<InputAnswer> InputIn(const event::InputRequired& asked, const Json& result) {
  InputAnswer answer;
  const std::string action = ActionOf(result);
  if (action == "decline" || action == "cancel") return answer;
  if (action != "accept") return Fail(Unusable("the answer needs an \"action\""));
  const Json& content = MemberOf(result, "content");
  if (asked.url) {
    answer.response = "done";
  } else if (asked.schema) {
    if (!content.is_object()) return Fail(Unusable("the answer needs \"content\", an object"));
    answer.response = DumpJson(content);
  } else {
    std::string said = TextMember(content, "answer");
    if (IsBlank(said)) return Fail(Unusable("the answer needs an \"answer\", a text"));
    answer.response = std::move(said);
  }
  return answer;
}

}  // namespace reprise::mcp_door
