#include "doors/api/requests.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxTitle = 200, kMaxChatInstructions = 4000;  // characters
constexpr std::size_t kMaxAttachments = 20;
constexpr std::size_t kMaxEditorTools = 256;
constexpr double kLeastSpeed = 0.001, kMostSpeed = 1'000'000;

// Reads the members of a body one by one and remembers the first error. Members that remain at the end are unknown.
class BodyReader {
 public:
  explicit BodyReader(Json object) : json_(std::move(object)) {
    if (json_.is_object()) return;
    Reject(Reason::kInvalidMember, "an element must be a JSON object");
    json_ = Json::object();
  }
  // `body` must outlive this.
  explicit BodyReader(std::string_view body) : json_(Json::object()), body_(body) {
    if (body.empty()) return;
    auto parsed = ParseJson(body);
    if (!parsed) {
      error_ = std::move(parsed.error());
    } else if (!parsed->is_object()) {
      Reject(Reason::kInvalidBody, "the body must be a JSON object");
    } else {
      json_ = std::move(*parsed);
    }
  }

  std::optional<std::string> OptionalString(const char* name) {
    const Json* value = Take(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) return RejectType(name, "a string"), std::nullopt;
    return value->get<std::string>();
  }
  // The empty text is an error: it may be a variable of a script that is not set, and would stand for none.
  std::optional<std::string> OptionalText(const char* name) {
    auto text = OptionalString(name);
    if (text && text->empty()) Reject(Reason::kInvalidMember, std::string("\"") + name + "\" must not be empty");
    return text;
  }
  // For members where null is a value. Outer nullopt: absent.
  std::optional<std::optional<std::string>> NullableText(const char* name) {
    if (!json_.contains(name)) return std::nullopt;
    return OptionalText(name);
  }
  std::string Text(const char* name) {  // required, not empty
    auto text = OptionalText(name);
    if (!text) Reject(Reason::kInvalidMember, std::string("\"") + name + "\" is missing");
    return text.value_or("");
  }
  std::optional<bool> OptionalBool(const char* name) {
    const Json* value = Take(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) return RejectType(name, "true or false"), std::nullopt;
    return value->get<bool>();
  }
  std::optional<double> OptionalNumber(const char* name, double least, double most) {
    const Json* value = Take(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_number()) return RejectType(name, "a number"), std::nullopt;
    const double number = value->get<double>();
    if (number >= least && number <= most) return number;
    Reject(Reason::kInvalidMember, std::string("\"") + name + "\" is out of range");
    return std::nullopt;
  }
  // One of `choices`; the first if absent.
  std::size_t Choice(const char* name, const std::vector<std::string_view>& choices) {
    const auto text = OptionalString(name);
    if (!text) return 0;
    const auto found = std::find(choices.begin(), choices.end(), *text);
    if (found == choices.end()) {
      Reject(Reason::kInvalidMember,
             std::string("\"") + name + "\": \"" + std::string(Utf8Prefix(*text, 40)) + "\" is not supported");
      return 0;
    }
    return static_cast<std::size_t>(found - choices.begin());
  }
  // A required JSON Schema of an object, at most `most` bytes.
  std::string ObjectSchema(const char* name, std::size_t most) {
    const Json* value = Take(name);
    std::string text = value == nullptr || TextMember(*value, "type") != "object" ? std::string() : DumpJson(*value);
    if (text.empty() || text.size() > most) {
      RejectType(name, "the schema of an object, of " + std::to_string(most >> 10) + " KiB at most");
    }
    return text;
  }
  // A JSON object or its text, byte for byte. Not for elements of arrays.
  std::optional<std::string> OptionalObjectText(const char* name) {
    const Json* value = Take(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_object()) return std::string(RawMember(body_, name));
    if (value->is_string()) {
      const auto inner = ParseJson(value->get_ref<const std::string&>());
      if (inner && inner->is_object()) return value->get<std::string>();
      if (!inner && inner.error().Is(Reason::kDuplicateMember)) {
        Reject("in \"" + std::string(name) + "\" ", std::move(inner.error()));
        return std::nullopt;
      }
    }
    return RejectType(name, "a JSON object"), std::nullopt;
  }
  // Any text that is not empty, or a JSON object as its text. Not for elements of arrays.
  std::optional<std::string> OptionalTextOrObject(const char* name) {
    const Json* value = Take(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_object()) return std::string(RawMember(body_, name));
    if (value->is_string() && !value->get_ref<const std::string&>().empty()) return value->get<std::string>();
    return RejectType(name, "a text that is not empty, or a JSON object"), std::nullopt;
  }
  // Each element of an array; nullopt if absent.
  template <typename T>
  std::optional<std::vector<T>> OptionalArray(const char* name, std::size_t most, T (*read)(BodyReader&, const Json&)) {
    const Json* value = Take(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array()) return RejectType(name, "an array"), std::nullopt;
    if (value->size() > most) {
      return RejectType(name, "an array of at most " + std::to_string(most) + " elements"), std::nullopt;
    }
    std::vector<T> elements;
    for (const Json& each : *value) elements.push_back(read(*this, each));
    return elements;
  }
  // The member as it is; null if absent.
  const Json* Any(const char* name) { return Take(name); }
  void Reject(Reason reason, std::string message) { Reject("", Refused(reason, std::move(message))); }
  // The same with an error of an element, whose place stands before its words.
  void Reject(std::string_view place, Error error) {
    if (error_) return;
    error.message.insert(0, place);
    error_ = std::move(error);
  }

  // The first error, including unknown members.
  std::optional<Error> Finish() {
    for (const auto& [name, value] : json_.items()) {
      if (std::find(taken_.begin(), taken_.end(), name) != taken_.end()) continue;
      Reject(Reason::kUnknownMember, "unknown member \"" + std::string(Utf8Prefix(name, 40)) + "\"");
    }
    return std::move(error_);
  }

 private:
  const Json* Take(const char* name) {
    taken_.emplace_back(name);
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  void RejectType(const char* name, std::string_view wanted) {
    Reject(Reason::kInvalidMember, std::string("\"") + name + "\" must be " + std::string(wanted));
  }

  Json json_;
  std::string_view body_;
  std::vector<std::string> taken_;
  std::optional<Error> error_;
};

bool IsLonger(const std::string& text, std::size_t characters) {
  return Utf8Prefix(text, characters).size() < text.size();
}

// The value with this name; nullopt for null, and for a name that `parse` does not know, which is rejected.
template <typename T>
std::optional<T> ReadNamed(BodyReader& reader, const char* member, const std::optional<std::string>& name,
                           std::optional<T> (*parse)(std::string_view)) {
  if (!name) return std::nullopt;
  const auto value = parse(*name);
  if (!value) {
    const std::string known(Utf8Prefix(*name, 40));
    reader.Reject(Reason::kInvalidMember, "\"" + std::string(member) + "\": \"" + known + "\" is not supported");
  }
  return value;
}

std::optional<ApprovalMode> ReadMode(BodyReader& reader, const char* member, const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  const auto mode = ParseApprovalMode(*name);
  if (!mode) {
    reader.Reject(Reason::kInvalidMember,
                  "\"" + std::string(member) + "\" must be ask, read_only, plan, auto, approve_all, deny_all or null");
  }
  return mode;
}

void ReadRunOptions(BodyReader& reader, RunBody& body, bool may_queue = false) {
  body.request.approval_mode = ReadMode(reader, "approval_mode", reader.OptionalString("approval_mode"));
  body.request.model = reader.OptionalText("model").value_or("");
  body.stream = reader.OptionalBool("stream").value_or(true);
  body.request.on_disconnect =
      reader.Choice("on_disconnect", {"cancel", "continue"}) == 0 ? OnDisconnect::kCancel : OnDisconnect::kContinue;
  static constexpr IfRunning kChoices[] = {IfRunning::kReject, IfRunning::kCancel, IfRunning::kQueue};
  std::vector<std::string_view> names = {"reject", "cancel"};
  if (may_queue) names.push_back("queue");
  body.request.if_running = kChoices[reader.Choice("if_running", names)];
}

FilesChoice ReadFilesChoice(BodyReader& reader, bool may_stay = false) {
  FilesChoice files;
  std::vector<std::string_view> names = {"keep", "restore"};
  if (may_stay) names.push_back("only");
  const std::size_t choice = reader.Choice("files", names);
  files.restore = choice > 0;
  files.only = choice > 1;
  files.force = reader.OptionalBool("force").value_or(false);
  files.allow_imported = reader.OptionalBool("allow_imported").value_or(false);
  return files;
}

template <typename T>
Result<T> FinishReading(BodyReader& reader, T value) {
  if (auto error = reader.Finish()) return Fail(std::move(*error));
  return value;
}

std::string ReadTaskText(BodyReader& reader, const Json& json) {
  const auto* text = json.get_ptr<const std::string*>();
  if (text == nullptr || text->empty() || Utf8Prefix(*text, kMaxTaskText).size() < text->size()) {
    reader.Reject(Reason::kInvalidMember,
                  "a title or a step must be a text of 1 to " + std::to_string(kMaxTaskText) + " characters");
  }
  return text == nullptr ? std::string() : *text;
}

FileId ReadFileId(BodyReader& reader, const Json& json) {
  const auto* text = json.get_ptr<const std::string*>();
  auto id = text == nullptr ? Fail(ErrorCode::kInvalidArgument, "") : FileId::Parse(*text);
  if (id) return *std::move(id);
  reader.Reject(Reason::kInvalidMember,
                "\"attachments\" must be ids of files, as POST /chats/{chat_id}/files gives them");
  return FileId::Random();  // unused, because the request is refused
}

ToolFile ReadToolFile(BodyReader& reader, const Json& json) {
  BodyReader of_file(json);
  ToolFile file{.mime_type = of_file.Text("mime_type"), .filename = of_file.OptionalString("filename").value_or("")};
  const auto bytes = DecodeBase64Url(of_file.Text("content"));
  if (!bytes) of_file.Reject(Reason::kInvalidMember, "\"content\" must be base64url without padding");
  if (const auto error = of_file.Finish()) reader.Reject("in \"files\" ", *error);
  file.content = bytes.value_or("");
  return file;
}

// A name that every provider accepts.
bool IsToolName(std::string_view name) {
  constexpr std::size_t kMost = 64;
  return !name.empty() && name.size() <= kMost && std::all_of(name.begin(), name.end(), IsToolNameCharacter);
}

EditorTool ReadEditorTool(BodyReader& reader, const Json& json) {
  constexpr std::size_t kMostServer = 100, kMostDescription = 4096;     // characters
  constexpr std::size_t kMostSchema = 64 << 10, kMostTerms = 16 << 10;  // bytes
  BodyReader of_tool(json);
  EditorTool tool{.spec = {.name = of_tool.Text("name"),
                           .description = of_tool.OptionalString("description").value_or(""),
                           .parameters = of_tool.ObjectSchema("input_schema", kMostSchema)},
                  .server = of_tool.Text("server"),
                  .terms = of_tool.OptionalString("terms").value_or(""),
                  .any_arguments = of_tool.OptionalBool("any_arguments").value_or(true)};
  if (tool.terms.size() > kMostTerms) of_tool.Reject(Reason::kInvalidMember, "\"terms\" is too long");
  const bool is_plain =
      std::all_of(tool.server.begin(), tool.server.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (!is_plain || tool.server.size() > kMostServer) {
    of_tool.Reject(Reason::kInvalidMember, "\"server\" must be at most 100 printable characters of ASCII");
  }
  if (!IsToolName(tool.spec.name)) {
    of_tool.Reject(Reason::kInvalidMember, "\"name\" must be 1 to 64 letters, digits, _ and -");
  }
  tool.spec.description.resize(Utf8Prefix(tool.spec.description, kMostDescription).size());
  if (const auto error = of_tool.Finish()) reader.Reject("in \"tools\" ", *error);
  return tool;
}

Task ReadTask(BodyReader& reader, const Json& json) {
  static constexpr std::size_t kMaxId = 64;  // bytes
  static const std::vector<std::string_view> kStatuses = {"todo", "doing", "done"};
  BodyReader members(json);
  Task task{.id = members.OptionalString("id").value_or(""), .title = ReadTaskText(reader, members.Text("title"))};
  task.status = kStatuses[members.Choice("status", kStatuses)];
  if (task.id.size() > kMaxId) members.Reject(Reason::kInvalidMember, "\"id\" is too long");
  if (auto error = members.Finish()) reader.Reject("a task: ", *std::move(error));
  return task;
}

}  // namespace

Result<RunBody> ParseStartBody(std::string_view text) {
  BodyReader reader(text);
  RunBody body;
  body.request.user_message = reader.Text("user_message");
  body.request.attachments = reader.OptionalArray<FileId>("attachments", kMaxAttachments, ReadFileId);
  body.request.compact = reader.OptionalBool("compact").value_or(false);
  body.request.workspace = reader.OptionalText("workspace").value_or("");
  ReadRunOptions(reader, body, /*may_queue=*/true);
  return FinishReading(reader, std::move(body));
}

Result<RunBody> ParseEditBody(std::string_view text) {
  BodyReader reader(text);
  RunBody body;
  body.request.user_message = reader.Text("new_user_message");
  body.dry_run = reader.OptionalBool("dry_run").value_or(false);
  body.request.files = ReadFilesChoice(reader);
  body.request.attachments = reader.OptionalArray<FileId>("attachments", kMaxAttachments, ReadFileId);
  ReadRunOptions(reader, body);
  return FinishReading(reader, std::move(body));
}

Result<RunBody> ParseRegenerateBody(std::string_view text, bool with_files) {
  BodyReader reader(text);
  RunBody body;
  if (with_files) body.request.files = ReadFilesChoice(reader);
  ReadRunOptions(reader, body);
  return FinishReading(reader, std::move(body));
}

Result<ReplayBody> ParseReplayBody(std::string_view text) {
  BodyReader reader(text);
  ReplayBody body;
  const auto mode = reader.OptionalString("mode");
  if (!mode) reader.Reject(Reason::kInvalidMember, "\"mode\" is missing");
  if (mode == "recorded") {
    body.mode = ReplayMode::kRecorded;
  } else if (mode == "live") {
    body.mode = ReplayMode::kLive;
  } else if (mode && *mode != "events") {
    reader.Reject(Reason::kInvalidMember, "\"mode\" must be events, recorded or live");
  }
  const auto speed = reader.OptionalNumber("speed", 0, kMostSpeed);
  if (speed && body.mode != ReplayMode::kEvents) {
    reader.Reject(Reason::kInvalidMember, "\"speed\" is for mode events only");
  }
  const auto input = reader.OptionalString("input");
  if (input == "current") {
    body.input = ReplayInput::kCurrent;
  } else if (input && *input != "recorded") {
    reader.Reject(Reason::kInvalidMember, "\"input\" must be recorded or current");
  }
  if (input && body.mode != ReplayMode::kRecorded) {
    reader.Reject(Reason::kInvalidMember, "\"input\" is for mode recorded only");
  }
  body.speed = speed.value_or(0);
  if (body.speed > 0) body.speed = std::max(body.speed, kLeastSpeed);
  return FinishReading(reader, std::move(body));
}

Result<WhatIfChanges> ParseWhatIfBody(std::string_view text) {
  constexpr double kMostEvents = 1e15;
  constexpr std::size_t kMostTools = 100;
  BodyReader reader(text);
  WhatIfChanges changes{.model = reader.OptionalText("model").value_or(""),
                        .say = reader.OptionalString("say"),
                        .result = reader.OptionalString("result")};
  if (const auto at = reader.OptionalNumber("at", 1, kMostEvents)) {
    if (std::floor(*at) != *at) reader.Reject(Reason::kInvalidMember, "\"at\" must be the number of an event");
    changes.at = static_cast<std::uint64_t>(*at);
  }
  if (changes.say && IsBlank(*changes.say)) {
    reader.Reject(Reason::kInvalidMember, "\"say\" must be a text that is not empty");
  }
  if (const auto answer = reader.OptionalString("answer")) {
    if (*answer != "yes" && *answer != "no") reader.Reject(Reason::kInvalidMember, "\"answer\" must be yes or no");
    changes.answer = *answer == "yes";
  }
  if (const auto fail = reader.OptionalString("fail")) {
    if (*fail != "timeout" && *fail != "error") {
      reader.Reject(Reason::kInvalidMember, "\"fail\" must be timeout or error");
    }
    changes.fail = *fail == "timeout" ? WhatIfChanges::Failure::kTimeout : WhatIfChanges::Failure::kError;
  }
  const auto read_name = +[](BodyReader& of, const Json& each) -> std::string {
    if (!each.is_string()) of.Reject(Reason::kInvalidMember, "\"allow_effects\" must be names of tools");
    return each.is_string() ? each.get<std::string>() : std::string();
  };
  changes.allow_effects =
      reader.OptionalArray<std::string>("allow_effects", kMostTools, read_name).value_or(std::vector<std::string>());
  changes.keep = reader.OptionalBool("keep").value_or(false);
  return FinishReading(reader, std::move(changes));
}

Result<ApprovalBody> ParseApprovalBody(std::string_view text, std::optional<std::string> approval_id_in_path) {
  BodyReader reader(text);
  ApprovalBody body;
  if (approval_id_in_path) {
    body.approval_id = std::move(*approval_id_in_path);
    const auto repeated = reader.OptionalString("approval_id");
    if (repeated && *repeated != body.approval_id) {
      reader.Reject(Reason::kInvalidMember, "\"approval_id\" is not the one in the path");
    }
  } else {
    body.approval_id = reader.Text("approval_id");
  }
  const auto approved = reader.OptionalBool("approved");
  if (!approved) reader.Reject(Reason::kInvalidMember, "\"approved\" is missing");
  body.answer.approved = approved.value_or(false);
  body.answer.arguments = reader.OptionalObjectText("arguments");
  body.answer.feedback = reader.OptionalString("feedback");
  constexpr std::array kScopes{ApprovalScope::kOnce, ApprovalScope::kChat, ApprovalScope::kAlways};
  body.answer.scope = kScopes[reader.Choice("scope", {"once", "chat", "always"})];
  body.answer.arguments_digest = reader.OptionalString("arguments_digest");
  body.answer.pattern = reader.OptionalString("pattern");
  body.answer.mode = ReadMode(reader, "mode", reader.OptionalString("mode"));
  body.answer.outside_sandbox = reader.OptionalBool("outside_sandbox").value_or(false);
  if (body.answer.pattern && body.answer.pattern->empty())
    reader.Reject(Reason::kInvalidMember, "\"pattern\" is empty");
  if (const auto seconds = reader.OptionalNumber("expires_in_s", 0, static_cast<double>(kMaxGrantLifetime.count()))) {
    body.answer.lifetime = std::chrono::seconds(std::llround(std::ceil(*seconds)));
  }
  if (body.answer.lifetime && body.answer.scope == ApprovalScope::kOnce) {
    reader.Reject(Reason::kInvalidAnswer, "\"expires_in_s\" needs the \"scope\" \"chat\" or \"always\"");
  }
  return FinishReading(reader, std::move(body));
}

Result<RespondBody> ParseRespondBody(std::string_view text) {
  BodyReader reader(text);
  RespondBody body;
  body.request_id = reader.Text("request_id");
  body.answer.response = reader.OptionalTextOrObject("response");
  const bool declined = reader.OptionalBool("declined").value_or(false);
  if (declined && body.answer.response)
    reader.Reject(Reason::kInvalidMember, "\"response\" does not go with \"declined\"");
  if (!declined && !body.answer.response) reader.Reject(Reason::kInvalidMember, "\"response\" is missing");
  return FinishReading(reader, std::move(body));
}

Result<AgendaChange> ParseAgendaBody(std::string_view text) {
  BodyReader reader(text);
  AgendaChange change;
  change.tasks = reader.OptionalArray<Task>("tasks", kMaxTasks, ReadTask);
  change.plan = reader.OptionalArray<std::string>("plan", kMaxPlanSteps, ReadTaskText);
  if (!change.tasks && !change.plan) reader.Reject(Reason::kInvalidMember, "\"tasks\" is missing");
  return FinishReading(reader, std::move(change));
}

namespace {

bool HasAny(const ChatSettings& settings) {
  return settings.title || settings.approval_mode || settings.model || settings.workspace || settings.instructions ||
         settings.effort || settings.shelf;
}

ChatSettings ReadChatSettings(BodyReader& reader) {
  ChatSettings settings{.title = reader.OptionalString("title")};
  if (settings.title && IsLonger(*settings.title, kMaxTitle)) {
    reader.Reject(Reason::kInvalidMember, "\"title\" is too long");
  }
  if (const auto mode = reader.NullableText("approval_mode"))
    settings.approval_mode.emplace(ReadMode(reader, "approval_mode", *mode));
  if (const auto model = reader.NullableText("model")) settings.model = model->value_or("");
  if (const auto workspace = reader.NullableText("workspace")) settings.workspace = workspace->value_or("");
  settings.instructions = reader.OptionalString("instructions");
  if (settings.instructions && IsLonger(*settings.instructions, kMaxChatInstructions)) {
    reader.Reject(Reason::kInvalidMember, "\"instructions\" is too long");
  }
  if (const auto effort = reader.NullableText("effort")) {
    settings.effort = ReadNamed(reader, "effort", *effort, ParseEffort).value_or(Effort::kDefault);
  }
  if (const auto shelf = reader.NullableText("shelf")) {
    settings.shelf.emplace(ReadNamed(reader, "shelf", *shelf, ParseChatShelf));
  }
  return settings;
}

}  // namespace

Result<CreateChatBody> ParseCreateChatBody(std::string_view text) {
  BodyReader reader(text);
  const auto id_text = reader.OptionalString("id");
  ChatSettings settings = ReadChatSettings(reader);
  if (auto error = reader.Finish()) return Fail(std::move(*error));
  auto id = TRY(id_text ? ChatId::Parse(*id_text) : Result<ChatId>(ChatId::Random()));
  return CreateChatBody{.id = std::move(id), .settings = std::move(settings)};
}

Result<ChatSettings> ParseChatSettings(std::string_view text) {
  BodyReader reader(text);
  ChatSettings settings = ReadChatSettings(reader);
  if (settings.title && settings.title->empty()) reader.Reject(Reason::kInvalidMember, "\"title\" must not be empty");
  if (!HasAny(settings)) {
    reader.Reject(Reason::kInvalidMember,
                  "one of \"title\", \"approval_mode\", \"model\", \"workspace\", \"instructions\", \"effort\" and "
                  "\"shelf\" must be given");
  }
  return FinishReading(reader, std::move(settings));
}

Result<ProviderConnections::Wanted> ParseProviderBody(std::string_view text) {
  BodyReader reader(text);
  ProviderConnections::Wanted wanted{.type = reader.Text("type"),
                                     .base_url = reader.Text("base_url"),
                                     .api_key = reader.OptionalString("api_key").value_or(""),
                                     .has_no_list = reader.OptionalBool("has_no_list").value_or(false)};
  return FinishReading(reader, std::move(wanted));
}

Result<DevicePush::Wanted> ParseDeviceBody(std::string_view text) {
  BodyReader reader(text);
  DevicePush::Wanted wanted{.endpoint = reader.Text("endpoint"),
                            .p256dh = reader.Text("p256dh"),
                            .auth = reader.Text("auth"),
                            .name = reader.OptionalString("name").value_or("")};
  return FinishReading(reader, std::move(wanted));
}

// Its members are checked by the rules of the configuration.
Result<ToolServerSettings::Wanted> ParseToolServerBody(std::string_view text) {
  BodyReader reader(text);
  ToolServerSettings::Wanted wanted{.dry_run = reader.OptionalBool("dry_run").value_or(false),
                                    .consent = {.digest = reader.OptionalString("digest")}};
  Json members = Json::object();
  for (const char* const name : {"url", "headers", "auth", "command", "args", "env", "cwd", "roots"}) {
    if (const Json* const value = reader.Any(name)) members[name] = *value;
  }
  wanted.members = DumpJson(members);
  return FinishReading(reader, std::move(wanted));
}

Result<RuleSettings::Wanted> ParseRuleBody(std::string_view text) {
  BodyReader reader(text);
  RuleSettings::Wanted wanted{.rule = {.tool = reader.Text("tool"), .pattern = reader.OptionalString("pattern")},
                              .dry_run = reader.OptionalBool("dry_run").value_or(false),
                              .consent = {.digest = reader.OptionalString("digest")}};
  const auto action = ParseRuleAction(reader.Text("action"));
  if (!action) reader.Reject(Reason::kInvalidMember, "\"action\" must be allow, ask or deny");
  if (action) wanted.rule.action = *action;
  return FinishReading(reader, std::move(wanted));
}

Result<std::string> ParseLoginBody(std::string_view text) {
  BodyReader reader(text);
  std::string token = reader.Text("token");
  return FinishReading(reader, std::move(token));
}

Result<HeadBody> ParseHeadBody(std::string_view text) {
  BodyReader reader(text);
  const std::string id = reader.Text("interaction_id");
  const FilesChoice files = ReadFilesChoice(reader);
  const bool dry_run = reader.OptionalBool("dry_run").value_or(false);
  if (auto error = reader.Finish()) return Fail(std::move(*error));
  return HeadBody{.interaction = TRY(InteractionId::Parse(id)), .files = files, .dry_run = dry_run};
}

Result<UndoBody> ParseUndoBody(std::string_view text) {
  BodyReader reader(text);
  UndoBody body;
  body.files = ReadFilesChoice(reader, /*may_stay=*/true);
  body.dry_run = reader.OptionalBool("dry_run").value_or(false);
  return FinishReading(reader, body);
}

Result<SpeechBody> ParseSpeechBody(std::string_view text) {
  std::vector<std::string_view> formats;
  for (const SpeechFormat& format : kSpeechFormats) formats.push_back(format.name);
  BodyReader reader(text);
  SpeechRequest request{.text = reader.Text("text"),
                        .voice = reader.OptionalString("voice").value_or(""),
                        .model = reader.OptionalText("model").value_or("")};
  const SpeechFormat& format = kSpeechFormats.at(reader.Choice("format", formats));
  return FinishReading(reader, SpeechBody{.request = std::move(request), .format = &format});
}

Result<EditorAnswer> ParseEditorAnswer(std::string_view text) {
  BodyReader reader(text);
  EditorAnswer answer{.content = reader.OptionalString("content")};
  const auto error = reader.OptionalString("error"), output = reader.OptionalString("output");
  const bool done = reader.OptionalBool("done").value_or(false);
  if ((answer.content ? 1 : 0) + (error ? 1 : 0) + (done ? 1 : 0) + (output ? 1 : 0) != 1) {
    reader.Reject(Reason::kInvalidMember, "one of \"content\", \"error\", \"done\" and \"output\" must be there");
  }
  if (error) answer.error = error->empty() ? "no reason" : *error;
  const bool is_error = reader.OptionalBool("is_error").value_or(false);
  auto files = reader.OptionalArray("files", kMaxAttachments, ReadToolFile);
  if (!output && (is_error || files)) {
    reader.Reject(Reason::kInvalidMember, "\"is_error\" and \"files\" belong to \"output\"");
  }
  if (output) {
    answer.outcome = {.output = ToValidUtf8(*output),
                      .is_error = is_error,
                      .files = std::move(files).value_or(std::vector<ToolFile>())};
  }
  return FinishReading(reader, std::move(answer));
}

Result<std::vector<EditorTool>> ParseEditorTools(std::string_view text) {
  BodyReader reader(text);
  auto tools = reader.OptionalArray("tools", kMaxEditorTools, ReadEditorTool);
  if (!tools) reader.Reject(Reason::kInvalidMember, "\"tools\" is missing");
  return FinishReading(reader, std::move(tools).value_or(std::vector<EditorTool>()));
}

Result<std::string> ParseQueuedBody(std::string_view text) {
  BodyReader reader(text);
  std::string user_message = reader.Text("user_message");
  return FinishReading(reader, std::move(user_message));
}

Result<ForkBody> ParseForkBody(std::string_view text) {
  BodyReader reader(text);
  const std::string interaction_text = reader.Text("interaction_id");
  const auto chat_text = reader.OptionalString("chat_id");
  auto title = reader.OptionalString("title");
  if (title && IsLonger(*title, kMaxTitle)) {
    reader.Reject(Reason::kInvalidMember, "\"title\" is too long");
  }
  const FilesChoice files = ReadFilesChoice(reader);
  const bool dry_run = reader.OptionalBool("dry_run").value_or(false);
  if (auto error = reader.Finish()) return Fail(std::move(*error));
  const auto interaction = TRY(InteractionId::Parse(interaction_text));
  auto chat = TRY(chat_text ? ChatId::Parse(*chat_text) : Result<ChatId>(ChatId::Random()));
  return ForkBody{.interaction = interaction,
                  .chat = std::move(chat),
                  .title = std::move(title),
                  .files = files,
                  .dry_run = dry_run};
}

Result<TrustInstructionsBody> ParseTrustInstructionsBody(std::string_view text) {
  BodyReader reader(text);
  TrustInstructionsBody body{.path = reader.Text("path"), .digest = reader.Text("digest")};
  if (auto error = reader.Finish()) return Fail(std::move(*error));
  return body;
}

Result<ExpandCommandBody> ParseExpandCommandBody(std::string_view text) {
  BodyReader reader(text);
  ExpandCommandBody body{.command = reader.Text("command"),
                         .arguments = reader.OptionalString("arguments").value_or("")};
  if (auto error = reader.Finish()) return Fail(std::move(*error));
  return body;
}

Result<std::string> ParseWorkspaceFileBody(std::string_view text) {
  BodyReader reader(text);
  std::string path = reader.Text("path");
  return FinishReading(reader, std::move(path));
}

Result<void> ParseEmptyBody(std::string_view text) {
  BodyReader reader(text);
  if (auto error = reader.Finish()) return Fail(std::move(*error));
  return {};
}

}  // namespace reprise
