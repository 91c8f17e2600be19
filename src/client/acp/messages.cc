#include "client/acp/messages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/path.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/try.h"
#include "client/answers.h"
#include "domain/file_kind.h"
#include "terminal/question_text.h"

namespace reprise::acp {
namespace {

constexpr std::size_t kMaxName = 100;

Error Wrong(std::size_t block, const std::string& what) {
  return MakeError(ErrorCode::kInvalidArgument, "prompt[" + std::to_string(block) + "] " + what);
}

std::string Decoded(std::string_view text) { return ToValidUtf8(PercentDecoded(text).value_or(std::string(text))); }

// The path in the tools' form: relative if the file is in the workspace. Other URIs than files are returned unchanged.
std::string PlaceOf(const std::string& uri, const std::string& workspace) {
  constexpr std::string_view kFile = "file://";
  if (!uri.starts_with(kFile)) return uri;
  std::string_view rest = std::string_view(uri).substr(kFile.size());
  const std::size_t fragment = rest.find_first_of("#?");
  const std::string behind(fragment == std::string_view::npos ? "" : rest.substr(fragment));
  const std::string path = Decoded(rest.substr(0, fragment));
  if (workspace.empty() || !LiesBeneath(path, workspace) || path.size() <= workspace.size() + 1) return path + behind;
  return path.substr(workspace.size() + (workspace == "/" ? 0 : 1)) + behind;
}

std::string NameOf(const std::string& uri, const std::string& usual) {
  std::string_view path = std::string_view(uri).substr(0, uri.find_first_of("?#"));
  while (path.ends_with('/')) path.remove_suffix(1);
  std::string name = Decoded(path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1));
  std::replace_if(
      name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '/'; }, '_');
  name = std::string(Utf8Prefix(name, kMaxName));
  return name.empty() || name == "." || name == ".." ? usual : name;
}

}  // namespace

Result<Prompt> ReadPrompt(const Json& blocks, const std::string& workspace) {
  if (!blocks.is_array()) return Fail(ErrorCode::kInvalidArgument, "\"prompt\" must be an array of content blocks");
  Prompt prompt;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Json& block = blocks[i];
    const std::string type = TextMember(block, "type");
    const auto text_of = [&](const Json& object, const char* name) -> Result<std::string> {
      const Json& member = MemberOf(object, name);
      if (!member.is_string()) return Fail(Wrong(i, std::string("needs the text \"") + name + "\""));
      return member.get<std::string>();
    };
    if (type == "text") {
      prompt.text += TRY(text_of(block, "text"));
    } else if (type == "resource_link") {
      const std::string uri = TRY(text_of(block, "uri"));
      const std::string name = TRY(text_of(block, "name"));
      prompt.text += "[@" + name + "](" + PlaceOf(uri, workspace) + ")";
    } else if (type == "image" || type == "audio") {
      auto bytes = DecodeBase64(TRY(text_of(block, "data")));
      if (!bytes) return Fail(Wrong(i, "has \"data\" that is not base64"));
      const std::string usual = type + EndingOf(TRY(text_of(block, "mimeType")));
      prompt.files.push_back({NameOf(TextMember(block, "uri"), usual), *std::move(bytes)});
    } else if (type == "resource") {
      const Json& resource = MemberOf(block, "resource");
      const std::string uri = TRY(text_of(resource, "uri"));
      PromptFile file{.name = NameOf(uri, "resource.txt"), .bytes = {}};
      if (MemberOf(resource, "blob").is_string()) {
        auto bytes = DecodeBase64(TextMember(resource, "blob"));
        if (!bytes) return Fail(Wrong(i, "has a \"blob\" that is not base64"));
        file.bytes = *std::move(bytes);
      } else {
        file.bytes = TRY(text_of(resource, "text"));
      }
      prompt.text += "[@" + file.name + "](" + PlaceOf(uri, workspace) + ")";
      prompt.files.push_back(std::move(file));
    } else {
      return Fail(Wrong(i, "is of a type that is not taken here; text, image, audio, resource and resource_link are"));
    }
  }
  if (prompt.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    if (prompt.files.empty()) return Fail(ErrorCode::kInvalidArgument, "the prompt is empty");
    prompt.text = prompt.files.front().name;
  }
  return prompt;
}

namespace {

constexpr const char* kDecline = "decline";
constexpr const char* kAnswer = "answer";
constexpr const char* kOther = "other";
constexpr const char* kOutsideOption = "allow_outside";
const std::string kModeOption = "mode:";

// The arguments without what asks to leave the sandbox.
std::string WithoutOutside(const std::string& arguments) {
  Json inside = ParseJson(arguments).value_or(Json::object());
  inside.erase("outside_sandbox");
  return DumpJson(inside);
}

Json Option(const std::string& id, const std::string& name, const char* kind) {
  return {{"optionId", id}, {"name", name}, {"kind", kind}};
}

// A member of a form in ACP's terms, which has "oneOf" for titles of choices instead of "enumNames".
Json FormProperty(const Json& property) {
  static constexpr const char* kKnown[] = {"type",    "title",   "description", "default",   "enum",
                                           "oneOf",   "format",  "minLength",   "maxLength", "pattern",
                                           "minimum", "maximum", "items",       "minItems",  "maxItems"};
  Json form = Json::object();
  for (const char* name : kKnown) {
    if (property.contains(name)) form[name] = property[name];
  }
  const Json& values = MemberOf(property, "enum");
  const Json& names = MemberOf(property, "enumNames");
  if (values.is_array() && names.is_array() && names.size() == values.size()) {
    Json choices = Json::array();
    for (std::size_t i = 0; i < values.size(); ++i) choices.push_back({{"const", values[i]}, {"title", names[i]}});
    form.erase("enum");
    form["oneOf"] = std::move(choices);
  }
  return form;
}

std::optional<Json> FormSchema(const std::string& text) {
  const auto schema = ParseJson(text);
  if (!schema || TextMember(*schema, "type") != "object" || !MemberOf(*schema, "properties").is_object()) {
    return std::nullopt;
  }
  Json form = {{"type", "object"}, {"properties", Json::object()}};
  for (const char* name : {"title", "description", "required"}) {
    if (schema->contains(name)) form[name] = (*schema)[name];
  }
  for (const auto& [name, property] : (*schema)["properties"].items()) {
    static constexpr std::string_view kTypes[] = {"string", "number", "integer", "boolean", "array"};
    const std::string type = TextMember(property, "type");
    if (std::ranges::find(kTypes, type) == std::end(kTypes)) return std::nullopt;
    form["properties"][name] = FormProperty(property);
  }
  return form;
}

}  // namespace

Json PermissionOptions(const event::ApprovalRequired& asked) {
  Json options = Json::array();
  // First, because editors that allow everything by themselves choose the first.
  const char* const how = asked.allows("approve") ? "Allow once" : "Allow once, in the sandbox";
  if (asked.modes.empty()) options.push_back(Option("allow_once", how, "allow_once"));
  for (const std::string& mode : asked.modes) {
    options.push_back(Option(kModeOption + mode, "Approve; then the mode is " + VisibleLine(mode), "allow_once"));
  }
  if (asked.allows("approve_for_chat")) {
    options.push_back(Option("allow_chat", "Allow this very call in this chat from now on", "allow_always"));
  }
  if (asked.allows("approve_always")) {
    options.push_back(Option("allow_always", "Allow this very call in every chat from now on", "allow_always"));
  }
  for (std::size_t i = 0; i < asked.patterns.size(); ++i) {
    const auto& [pattern, means] = asked.patterns[i];
    const std::string what = VisibleLine(means.empty() ? pattern : means);
    const std::string number = std::to_string(i);
    if (asked.allows("approve_for_chat")) {
      options.push_back(Option("allow_chat:" + number, "Allow in this chat: " + what, "allow_always"));
    }
    if (asked.allows("approve_always")) {
      options.push_back(Option("allow_always:" + number, "Allow in every chat: " + what, "allow_always"));
    }
  }
  if (asked.allows(kApproveOutside)) {
    options.push_back(Option(
        kOutsideOption, "Allow once OUTSIDE the sandbox: all your files, the network and your secrets are reachable",
        "allow_once"));
  }
  options.push_back(Option("reject_once", "Reject", "reject_once"));
  return options;
}

std::optional<Json> ApprovalAnswer(const event::ApprovalRequired& asked, const std::string& option_id) {
  const Json offered = PermissionOptions(asked);
  if (std::ranges::none_of(offered, [&](const Json& each) { return TextMember(each, "optionId") == option_id; })) {
    return std::nullopt;
  }
  Json body = AnswerTo(asked, option_id != "reject_once");
  if (option_id.starts_with("allow_chat")) body["scope"] = "chat";
  if (option_id.starts_with("allow_always")) body["scope"] = "always";
  if (option_id == kOutsideOption) body["outside_sandbox"] = true;
  if (option_id == "allow_once" && !asked.allows("approve")) body["arguments"] = WithoutOutside(asked.tool_input);
  if (option_id.starts_with(kModeOption)) {
    body["mode"] = option_id.substr(kModeOption.size());
  } else if (const std::size_t colon = option_id.find(':'); colon != std::string::npos) {
    const std::size_t index = std::stoul(option_id.substr(colon + 1));  // valid, because it was offered
    body["pattern"] = asked.patterns[index].pattern;
  }
  return body;
}

std::optional<Json> Elicitation(const event::InputRequired& asked, FormAbilities abilities) {
  Json request = {{"message", asked.question}};
  if (asked.url) {
    if (!abilities.url) return std::nullopt;
    request["mode"] = "url";
    request["elicitationId"] = asked.request_id;
    request["url"] = *asked.url;
    return request;
  }
  if (!abilities.form) return std::nullopt;
  request["mode"] = "form";
  if (asked.schema) {
    auto form = FormSchema(*asked.schema);
    if (!form) return std::nullopt;
    request["requestedSchema"] = *std::move(form);
    return request;
  }
  const auto& options = asked.options;
  Json properties = Json::object();
  properties[kAnswer] = {{"type", "string"}, {"title", "Answer"}};
  if (options.empty()) {
    request["requestedSchema"] = {{"type", "object"}, {"properties", properties}, {"required", Json::array({kAnswer})}};
    return request;
  }
  properties[kAnswer]["enum"] = options;
  properties[kOther] = {{"type", "string"}, {"title", "Another answer"}};
  request["requestedSchema"] = {{"type", "object"}, {"properties", properties}};
  return request;
}

Json InputAnswer(const event::InputRequired& asked, const Json& result) {
  if (TextMember(result, "action") != "accept") return AnswerTo(asked, std::nullopt);
  const Json& content = MemberOf(result, "content");
  if (asked.url) return AnswerTo(asked, "done");
  if (asked.schema) return AnswerTo(asked, content.is_object() ? content : Json::object());
  const std::string other = TextMember(content, kOther), said = other.empty() ? TextMember(content, kAnswer) : other;
  return AnswerTo(asked, said.empty() ? std::nullopt : std::optional<Json>(said));
}

Json ChoiceOptions(const event::InputRequired& asked) {
  Json choices = Json::array();
  if (asked.schema) return choices;
  for (std::size_t i = 0; i < asked.options.size() && !asked.url; ++i) {
    choices.push_back(Option("option:" + std::to_string(i), VisibleLine(asked.options[i]), "allow_once"));
  }
  if (asked.url) choices.push_back(Option("option:done", "Done", "allow_once"));
  if (!choices.empty()) choices.push_back(Option(kDecline, "No answer", "reject_once"));
  return choices;
}

std::optional<Json> ChoiceAnswer(const event::InputRequired& asked, const std::string& option_id) {
  if (option_id == kDecline) return AnswerTo(asked, std::nullopt);
  if (option_id == "option:done" && asked.url) return AnswerTo(asked, "done");
  for (std::size_t i = 0; i < asked.options.size(); ++i) {
    if (option_id == "option:" + std::to_string(i)) return AnswerTo(asked, asked.options[i]);
  }
  return std::nullopt;
}

std::string QuestionText(const event::InputRequired& asked) {
  std::string text = VisibleText(asked.question, "");
  if (asked.url) text += "\n\n" + VisibleLine(*asked.url);
  if (!asked.schema) return text + "\n\n(Your next message is the answer.)";
  const auto fields = FieldsOf(*asked.schema);
  if (fields.size() == 1) {
    return text + "\n\n" + VisibleLine(fields[0].name) + ": " + fields[0].hint +
           "\n\n(Your next message is the answer.)";
  }
  for (const FormField& field : fields) text += "\n- " + VisibleLine(field.name) + ": " + field.hint;
  return text + "\n\n(Your next message is the answer: a JSON object with these members.)";
}

Result<Json> TextAnswer(const event::InputRequired& asked, const std::string& text) {
  if (!asked.schema) return AnswerTo(asked, asked.url ? "done" : text);
  const auto fields = FieldsOf(*asked.schema);
  auto object = ParseJson(text);
  if (object && object->is_object()) return AnswerTo(asked, *std::move(object));
  if (fields.size() != 1) {
    return Fail(ErrorCode::kInvalidArgument, "the answer must be a JSON object with the members that were named");
  }
  auto value = TRY(fields[0].ParseLine(text));
  Json response = Json::object();
  if (value) response[fields[0].name] = *std::move(value);
  return AnswerTo(asked, std::move(response));
}

}  // namespace reprise::acp
