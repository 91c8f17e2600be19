#include "mcp/elicitation.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/utf8.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxQuestion = 4000;

Json WithDefaults(const Json& schema, const Json& given) {
  Json content = Json::object();
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return content;
  for (const auto& [name, field] : properties->items()) {
    if (given.contains(name)) {
      content[name] = given[name];
    } else if (field.is_object() && field.contains("default")) {
      content[name] = field["default"];
    }
  }
  return content;
}

bool HasRequired(const Json& schema, const Json& content) {
  const auto required = schema.find("required");
  if (required == schema.end() || !required->is_array()) return true;
  for (const Json& name : *required) {
    if (name.is_string() && !content.contains(name.get<std::string>())) return false;
  }
  return true;
}

}  // namespace

Result<ToolQuestion> ParseQuestion(const Json& params) {
  ToolQuestion question{
      .text = std::string(Utf8Prefix(TextMember(params, "message"), kMaxQuestion)), .schema = {}, .url = {}};
  if (TextMember(params, "mode") == "url") {
    question.url = TextMember(params, "url");
    const bool usable = question.url.starts_with("https://") || question.url.starts_with("http://");
    if (!usable) return Fail(ErrorCode::kInvalidArgument, "the url must be http or https");
    return question;
  }
  const auto schema = params.find("requestedSchema");
  if (schema == params.end() || !schema->is_object())
    return Fail(ErrorCode::kInvalidArgument, "requestedSchema is missing");
  question.schema = DumpJson(*schema);
  return question;
}

Json AnswerToJson(const ToolQuestion& question, const ToolAnswer& answer) {
  if (answer.action == ToolAnswer::Action::kDecline) return {{"action", "decline"}};
  if (answer.action == ToolAnswer::Action::kCancel) return {{"action", "cancel"}};
  if (question.schema.empty()) return {{"action", "accept"}};
  const auto given = ParseJson(answer.content.empty() ? "{}" : answer.content);
  const auto schema = ParseJson(question.schema);
  if (!given || !given->is_object() || !schema) return {{"action", "cancel"}};
  Json content = WithDefaults(*schema, *given);
  if (!HasRequired(*schema, content)) return {{"action", "cancel"}};
  return {{"action", "accept"}, {"content", std::move(content)}};
}

}  // namespace reprise
