#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

namespace reprise {
namespace {

constexpr std::array<std::pair<Role, std::string_view>, 4> kRoleNames{
    {{Role::kSystem, "system"}, {Role::kUser, "user"}, {Role::kAssistant, "assistant"}, {Role::kTool, "tool"}}};

}  // namespace

std::string_view RoleName(Role role) {
  for (const auto& [value, name] : kRoleNames) {
    if (value == role) return name;
  }
  return "user";
}

namespace {

void Write(auto& out, const ToolCall& call) {
  out["id"] = call.id;
  out["type"] = "function";
  WriteObject(out, "function", [&call](auto& function) {
    function["name"] = call.name;
    function["arguments"] = call.arguments;
  });
}

constexpr std::array<std::pair<MessagePart::Kind, std::string_view>, 3> kPartNames{
    {{MessagePart::Kind::kImage, "image"},
     {MessagePart::Kind::kDocument, "document"},
     {MessagePart::Kind::kAudio, "audio"}}};

void Write(auto& out, const MessagePart& part) {
  for (const auto& [kind, name] : kPartNames) {
    if (kind == part.kind) out["type"] = name;
  }
  out["file_id"] = part.file_id.str();
  out["mime_type"] = part.mime_type;
  out["filename"] = part.filename;
  out["size_bytes"] = part.size_bytes;
  out["tokens"] = part.tokens;
}

// Content in parts, the text first if there is any.
Json ContentInParts(const Message& message) {
  Json content = Json::array();
  if (message.content) content.push_back({{"type", "text"}, {"text", *message.content}});
  for (const MessagePart& part : message.parts) content.push_back(ToJson(part));
  return content;
}
void WriteContentInParts(Json& out, const Message& message) { out["content"] = ContentInParts(message); }
void WriteContentInParts(JsonObjectWriter& out, const Message& message) {
  out.Name("content") += DumpJson(ContentInParts(message));
}

// Omits the extras.
void Write(auto& out, const Message& message) {
  out["role"] = RoleName(message.role);
  if (!message.parts.empty()) {
    WriteContentInParts(out, message);
  } else if (message.content) {
    out["content"] = *message.content;
  } else {
    out["content"] = nullptr;
  }
  if (!message.tool_calls.empty()) WriteList(out, "tool_calls", message.tool_calls);
  if (message.role == Role::kTool) out["tool_call_id"] = message.tool_call_id;
  if (!message.name.empty()) out["name"] = message.name;
  if (message.is_error) out["is_error"] = true;
}

void WriteMembers(auto& out, const Grant& grant) {
  out["tool_name"] = grant.tool_name;
  if (grant.pattern.empty()) out["arguments_digest"] = grant.arguments_digest;
  if (!grant.terms_digest.empty()) out["terms_digest"] = grant.terms_digest;
  if (!grant.pattern.empty()) out["pattern"] = grant.pattern;
  if (!grant.means.empty()) out["means"] = grant.means;
  if (grant.expires_at) out["expires_at"] = FormatTimestamp(*grant.expires_at);
  if (grant.uses > 0) out["uses"] = grant.uses;
  if (grant.used_at) out["used_at"] = FormatTimestamp(*grant.used_at);
}

void Write(auto& out, const Grant& grant) {
  out["id"] = GrantId(grant);
  WriteMembers(out, grant);
}

void Write(auto& out, const AgentState& state, std::size_t first) {
  WriteList(out, "messages",
            std::ranges::subrange(
                state.messages.begin() + static_cast<std::ptrdiff_t>(std::min(first, state.messages.size())),
                state.messages.end()));
  Json grants = Json::array();
  for (const Grant& grant : state.grants) {
    WriteMembers(grants.emplace_back(Json::object()), grant);
  }
  out["grants"] = std::move(grants);
  if (!state.agenda.tasks.empty()) WriteList(out, "tasks", state.agenda.tasks);
  if (!state.agenda.plan.empty()) out["plan"] = state.agenda.plan;
  if (const auto& compaction = state.compaction) {
    WriteObject(out, "compaction", [&compaction](auto& json) {
      json["first"] = compaction->first;
      json["end"] = compaction->end;
      json["summary"] = compaction->summary;
      if (compaction->requested) json["requested"] = true;
    });
  }
  if (!state.jobs.empty()) out["jobs"] = ToJson(state.jobs);
  if (state.cleared > 0) out["cleared"] = state.cleared;
  if (!state.memory.empty()) out["memory"] = ToJson(state.memory);
  if (state.request) WriteValue(out, "request", *state.request);
}

Result<ToolCall> ToolCallFromJson(const Json& json) {
  JsonReader reader(json, "tool call");
  ToolCall call{.id = reader.String("id"), .name = {}, .arguments = {}};
  if (const Json* function = reader.Find("function")) {
    JsonReader inner(*function, "tool call");
    call.name = inner.String("name");
    call.arguments = inner.String("arguments");
    if (inner.error()) return Fail(*inner.error());
  } else {
    reader.Reject("function");
  }
  if (reader.error()) return Fail(*reader.error());
  return call;
}

// Whether ContentInParts wrote this content. Imported content in parts may have any shape.
bool IsOurContent(const Json& content) {
  if (!content.is_array() || content.empty()) return false;
  const auto is_ours = [](const Json& part) { return part.is_object() && part.contains("file_id"); };
  return std::all_of(content.begin() + (TextMember(content.front(), "type") == "text" ? 1 : 0), content.end(),
                     is_ours) &&
         is_ours(content.back());
}

Result<MessagePart> PartFromJson(const Json& json) {
  JsonReader reader(json, "message part");
  const std::string type = reader.String("type");
  const auto id = FileId::Parse(reader.String("file_id"));
  if (!id) reader.Reject("file_id");
  MessagePart::Kind kind{};
  bool known = false;
  for (const auto& [value, name] : kPartNames) {
    if (name == type) kind = value, known = true;
  }
  if (!known) reader.Reject("type");
  std::string mime_type = reader.OptionalString("mime_type").value_or(""),
              filename = reader.OptionalString("filename").value_or("");
  const std::int64_t size = reader.Find("size_bytes") ? reader.Integer("size_bytes") : 0;
  const std::int64_t tokens = reader.Find("tokens") ? reader.Integer("tokens") : 0;
  if (size < 0) reader.Reject("size_bytes");
  if (tokens < 0 || tokens > kMaxPartTokens) reader.Reject("tokens");
  if (reader.error()) return Fail(*reader.error());
  return MessagePart{kind, *id, std::move(mime_type), std::move(filename), static_cast<std::uint64_t>(size), tokens};
}

bool IsOwnMember(std::string_view key) {
  return key == "role" || key == "content" || key == "tool_calls" || key == "tool_call_id" || key == "name" ||
         key == "is_error";
}

}  // namespace

Json ToJson(const ToolCall& call) {
  Json json = Json::object();
  Write(json, call);
  return json;
}

void AppendJson(std::string& out, const ToolCall& call) {
  AppendJsonObject(out, [&](auto& object) { Write(object, call); });
}

Json ToJson(const MessagePart& part) {
  Json json = Json::object();
  Write(json, part);
  return json;
}

Json ToJson(const std::vector<MessagePart>& parts) {
  Json list = Json::array();
  for (const MessagePart& part : parts) list.push_back(ToJson(part));
  return list;
}

Result<std::vector<MessagePart>> MessagePartsFromJson(const Json& json) {
  std::vector<MessagePart> parts;
  for (const Json& each : json.is_array() ? json : Json::array({json})) {
    auto part = TRY(PartFromJson(each));
    parts.push_back(std::move(part));
  }
  return parts;
}

Json ToJson(const Message& message) {
  Json json = Json::object();
  Write(json, message);
  if (!message.extras.empty()) {
    if (auto extras = ParseJson(message.extras, 2 * kMaxJsonDepth); extras && extras->is_object()) {
      for (auto& [key, value] : extras->items()) json[key] = std::move(value);
    }
  }
  return json;
}

void AppendJson(std::string& out, const Message& message) {
  if (!message.extras.empty()) {  // these may override other members
    out += DumpJson(ToJson(message));
    return;
  }
  AppendJsonObject(out, [&](auto& object) { Write(object, message); });
}

Result<Message> MessageFromJson(const Json& json) {
  JsonReader reader(json, "message");
  Message message;
  const std::string role = reader.String("role");
  bool known = false;
  for (const auto& [value, name] : kRoleNames) {
    if (name == role) message.role = value, known = true;
  }
  if (!known) reader.Reject("role");
  Json extras = Json::object();
  if (const Json* content = reader.Find("content"); content != nullptr && !content->is_null()) {
    // Imported content in parts is an extra, which goes back to the provider as it is.
    if (content->is_string()) {
      message.content = content->get<std::string>();
    } else if (IsOurContent(*content)) {
      for (const Json& part : *content) {
        if (TextMember(part, "type") == "text") {
          message.content = TextMember(part, "text");
        } else if (auto read = PartFromJson(part)) {
          message.parts.push_back(*std::move(read));
        } else {
          return Fail(std::move(read.error()));
        }
      }
    } else {
      extras["content"] = *content;
    }
  }
  if (reader.Find("tool_calls") != nullptr) {
    if (const Json* calls = reader.Array("tool_calls")) {
      for (const Json& call : *calls) message.tool_calls.push_back(reader.Take(ToolCallFromJson(call), ToolCall{}));
    }
  }
  if (message.role == Role::kTool) message.tool_call_id = reader.String("tool_call_id");
  message.name = reader.OptionalString("name").value_or("");
  message.is_error = message.role == Role::kTool && reader.Bool("is_error", false);
  if (reader.error()) return Fail(*reader.error());
  for (const auto& [key, value] : json.items()) {
    if (!IsOwnMember(key)) extras[key] = value;
  }
  if (!extras.empty()) message.extras = DumpJson(extras);
  return message;
}

Json ToJson(const std::vector<Entity>& memory) {
  Json entities = Json::array();
  for (const Entity& entity : memory) {
    Json& json = entities.emplace_back(Json{{"type", entity.type}, {"id", entity.id}});
    if (!entity.name.empty()) json["name"] = entity.name;
  }
  return entities;
}

Result<std::vector<Entity>> MemoryFromJson(const Json& json) {
  std::vector<Entity> memory;
  if (!json.is_array()) {
    JsonReader reader(json, "working memory");
    reader.Reject("is not an array");
    return Fail(*reader.error());
  }
  for (const Json& each : json) {
    JsonReader reader(each, "working memory");
    memory.push_back({reader.String("type"), reader.String("id"), reader.OptionalString("name").value_or("")});
    if (reader.error()) return Fail(*reader.error());
  }
  return memory;
}

Json ToJson(const std::vector<StartedJob>& jobs) {
  Json list = Json::array();
  for (const StartedJob& job : jobs) list.push_back({{"id", job.id}, {"command", job.command}});
  return list;
}

Result<std::vector<StartedJob>> JobsFromJson(const Json& json) {
  if (!json.is_array()) return Fail(ErrorCode::kInvalidArgument, "\"jobs\" must be a list");
  std::vector<StartedJob> jobs;
  for (const Json& each : json) {
    JsonReader reader(each, "job");
    jobs.push_back({.id = reader.String("id"), .command = reader.String("command")});
    if (reader.error()) return Fail(*reader.error());
  }
  return jobs;
}

Json ToJson(const AgentState& state, std::size_t first) {
  Json json = Json::object();
  Write(json, state, first);
  return json;
}

void AppendJson(std::string& out, const AgentState& state, std::size_t first) {
  AppendJsonObject(out, [&](auto& object) { Write(object, state, first); });
}

Result<AgentState> AgentStateFromJson(const Json& json) {
  JsonReader reader(json, "agent state");
  AgentState state;
  if (const Json* messages = reader.Array("messages")) {
    for (const Json& message : *messages) state.messages.push_back(reader.Take(MessageFromJson(message), Message{}));
  }
  if (reader.Find("grants") != nullptr) {  // folders written by other implementations of the specification have none
    if (const Json* grants = reader.Array("grants")) {
      for (const Json& grant : *grants) {
        JsonReader inner(grant, "grant");
        state.grants.push_back(ReadGrant(inner));
        if (inner.error()) return Fail(*inner.error());
      }
    }
  }
  state.agenda = reader.Take(AgendaFromJson(json), Agenda{});
  if (const Json* compaction = reader.Find("compaction")) {
    JsonReader inner(*compaction, "compaction");
    state.compaction = Compaction{.first = static_cast<std::uint64_t>(inner.Integer("first")),
                                  .end = static_cast<std::uint64_t>(inner.Integer("end")),
                                  .summary = inner.String("summary"),
                                  .requested = inner.Bool("requested", false)};
    if (inner.error()) return Fail(*inner.error());
  }
  if (const Json* jobs = reader.Find("jobs")) state.jobs = reader.Take(JobsFromJson(*jobs), {});
  if (reader.Find("cleared") != nullptr) state.cleared = static_cast<std::uint64_t>(reader.Integer("cleared"));
  if (const Json* memory = reader.Find("memory")) state.memory = reader.Take(MemoryFromJson(*memory), {});
  if (const Json* request = reader.Find("request")) {
    if (auto marks = RequestMarksFromJson(*request)) state.request = *std::move(marks);
  }
  if (reader.error()) return Fail(*reader.error());
  return state;
}

std::string ArgumentsDigest(std::string_view arguments) {
  std::array<unsigned char, 32> hash{};
  EVP_Digest(arguments.data(), arguments.size(), hash.data(), nullptr, EVP_sha256(), nullptr);
  return "sha256:" + EncodeHex(hash);
}

std::string TermsDigest(const ToolTraits& traits, const std::optional<std::string>& reason_to_ask) {
  if (!traits.terms) return "";
  const ToolSpec& spec = traits.spec;
  Json terms = {spec.name, spec.description, spec.parameters, *traits.terms};
  if (reason_to_ask) terms.push_back(*reason_to_ask);
  return ArgumentsDigest(DumpJson(terms));
}

namespace {

constexpr std::size_t kPrefix = std::string_view("sha256:").size(), kGrantPrefix = std::string_view("grant_").size();
constexpr std::size_t kDigits = 32, kPatternKeyDigits = 12;

}  // namespace

std::string GrantId(const Grant& grant) {
  if (!grant.pattern.empty()) {
    const std::string key = PatternGrantPrefix(grant);
    const std::string digest = ArgumentsDigest(DumpJson({grant.tool_name, grant.terms_digest, grant.pattern}));
    return key + digest.substr(kPrefix, kGrantPrefix + kDigits - key.size());
  }
  std::string content = grant.tool_name + "\n" + grant.arguments_digest;
  if (!grant.terms_digest.empty()) content += "\n" + grant.terms_digest;
  return "grant_" + ArgumentsDigest(content).substr(kPrefix, kDigits);
}

std::string PatternGrantPrefix(const Grant& call) {
  return "grant_" + ArgumentsDigest(DumpJson({call.tool_name, call.terms_digest})).substr(kPrefix, kPatternKeyDigits);
}

bool BearsOn(const Grant& grant, const Grant& call, Timestamp now) {
  if (call.terms_digest.empty() || grant.has_expired(now)) return false;
  return grant.tool_name == call.tool_name && grant.terms_digest == call.terms_digest &&
         (!grant.pattern.empty() || grant.arguments_digest == call.arguments_digest);
}

Grant ReadGrant(JsonReader& reader) {
  Grant grant{.tool_name = reader.String("tool_name"), .arguments_digest = {}};
  grant.pattern = reader.OptionalString("pattern").value_or("");
  if (grant.pattern.empty()) grant.arguments_digest = reader.String("arguments_digest");
  grant.means = reader.OptionalString("means").value_or("");
  grant.terms_digest = reader.OptionalString("terms_digest").value_or("");
  // A grant without terms covers nothing. Patterns always had terms.
  if (!grant.pattern.empty() && grant.terms_digest.empty()) reader.Reject("terms_digest");
  grant.expires_at = reader.OptionalTime("expires_at");
  if (reader.Find("uses") != nullptr) grant.uses = static_cast<std::uint64_t>(reader.Integer("uses"));
  grant.used_at = reader.OptionalTime("used_at");
  return grant;
}

namespace {

void WriteSource(auto& out, const WebSource& source) {
  out["url"] = source.url;
  if (!source.title.empty()) out["title"] = source.title;
}

void WriteCitation(auto& out, const Citation& citation) {
  WriteSource(out, citation.source);
  out["start"] = citation.start;
  out["end"] = citation.end;
}

}  // namespace

Json ToJson(const WebSource& source) {
  Json json = Json::object();
  WriteSource(json, source);
  return json;
}

void AppendJson(std::string& out, const WebSource& source) {
  AppendJsonObject(out, [&](auto& object) { WriteSource(object, source); });
}

Json ToJson(const Citation& citation) {
  Json json = Json::object();
  WriteCitation(json, citation);
  return json;
}

void AppendJson(std::string& out, const Citation& citation) {
  AppendJsonObject(out, [&](auto& object) { WriteCitation(object, citation); });
}

Json ToJson(const CallPattern& pattern) { return {{"pattern", pattern.pattern}, {"means", pattern.means}}; }

void AppendJson(std::string& out, const CallPattern& pattern) {
  AppendJsonObject(out, [&](auto& object) {
    object["pattern"] = pattern.pattern;
    object["means"] = pattern.means;
  });
}

Json ToJson(const Grant& grant) {
  Json json = Json::object();
  Write(json, grant);
  return json;
}

void AppendJson(std::string& out, const Grant& grant) {
  AppendJsonObject(out, [&](auto& object) { Write(object, grant); });
}

Json ToJson(const StandingGrant& grant) {
  Json json = ToJson(grant.grant);
  json["tool_input"] = grant.tool_input;
  json["created_at"] = FormatTimestamp(grant.created_at);
  return json;
}

std::string TitleFromMessage(std::string_view user_message) {
  std::string line;
  for (const char c : user_message) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (!control) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  return std::string(Utf8Prefix(line, 50));
}

void AddUsage(ChatSummary& summary, const Interaction& interaction) {
  if (!interaction.model.empty()) summary.model = interaction.model;
  if (summary.tokens) *summary.tokens += interaction.usage.input_tokens + interaction.usage.output_tokens;
}

std::string_view ToString(ChatShelf shelf) { return shelf == ChatShelf::kPinned ? "pinned" : "archived"; }

std::optional<ChatShelf> ParseChatShelf(std::string_view name) {
  for (const ChatShelf shelf : {ChatShelf::kPinned, ChatShelf::kArchived}) {
    if (name == ToString(shelf)) return shelf;
  }
  return std::nullopt;
}

void Apply(const ChatSettings& settings, ChatSummary& summary) {
  const bool is_replaced = !settings.replaces_title || summary.title == *settings.replaces_title;
  if (settings.title && is_replaced) summary.title = *settings.title;
  if (settings.approval_mode) summary.approval_mode = *settings.approval_mode;
  if (settings.model) summary.chosen_model = *settings.model;
  if (settings.workspace) summary.workspace = *settings.workspace;
  if (settings.instructions) summary.instructions = *settings.instructions;
  if (settings.effort) summary.effort = *settings.effort;
  if (settings.shelf) summary.shelf = *settings.shelf;
}

void TakeSettings(const ChatSummary& original, ChatSummary& copy) {
  if (original.approval_mode != ApprovalMode::kApproveAll) copy.approval_mode = original.approval_mode;
  copy.chosen_model = original.chosen_model;
  copy.workspace = original.workspace;
  copy.instructions = original.instructions;
  copy.effort = original.effort;
}

void FillFromBegun(ChatSummary& summary, const Interaction& begun) {
  if (summary.title.empty()) summary.title = TitleFromMessage(begun.user_message);
  if (summary.created_at == Timestamp{}) summary.created_at = begun.created_at;
  if (summary.updated_at == Timestamp{}) summary.updated_at = begun.created_at;
  if (summary.workspace.empty()) summary.workspace = begun.workspace;
}

}  // namespace reprise
