#include <nlohmann/json.hpp>

#include "domain/codec.h"
#include "domain/json_reader.h"
#include "domain/usage_codec.h"

namespace reprise {
namespace {

constexpr int kSchema = 1;

Json OrNull(const std::optional<InteractionId>& id) { return id ? Json(id->str()) : Json(nullptr); }

std::optional<InteractionId> OptionalId(JsonReader& reader, const char* key) {
  const auto text = reader.OptionalString(key);
  if (!text) return std::nullopt;
  auto id = InteractionId::Parse(*text);
  if (!id) return reader.Reject(key), std::nullopt;
  return *id;
}

TokenUsage UsageFromJson(JsonReader& reader) {
  const Json* usage = reader.Find("usage");
  if (usage == nullptr) return {};
  JsonReader inner(*usage, "usage");
  TokenUsage tokens = ReadUsage(inner);
  if (inner.error()) reader.Reject("usage");
  return tokens;
}

std::optional<InteractionError> ErrorFromJson(JsonReader& reader) {
  const Json* error = reader.Find("error");
  if (error == nullptr || error->is_null()) return std::nullopt;
  JsonReader inner(*error, "error");
  InteractionError read{inner.String("code"), inner.String("message"), inner.Bool("retryable", false)};
  if (inner.error()) reader.Reject("error");
  return read;
}

}  // namespace

Json ToJson(const std::vector<Attachment>& attachments) {
  Json list = Json::array();
  for (const Attachment& each : attachments) {
    list.push_back({{"id", each.id.str()},
                    {"filename", each.filename},
                    {"mime_type", each.mime_type},
                    {"size_bytes", each.size_bytes}});
  }
  return list;
}

Result<std::vector<Attachment>> AttachmentsFromJson(const Json& json) {
  std::vector<Attachment> attachments;
  for (const Json& each : json.is_array() ? json : Json::array({json})) {
    JsonReader reader(each, "attachment");
    const auto id = FileId::Parse(reader.String("id"));
    if (!id) reader.Reject("id");
    std::string filename = reader.String("filename"), mime_type = reader.String("mime_type");
    const std::int64_t size = reader.Integer("size_bytes");
    if (reader.error()) return Fail(*reader.error());
    attachments.push_back({*id, std::move(filename), std::move(mime_type), static_cast<std::uint64_t>(size)});
  }
  return attachments;
}

Json ToJson(const Interaction& interaction, std::size_t first_message) {
  Json events = Json::array();
  for (const AgentEvent& event : interaction.events) events.push_back(ToJson(event));
  Json json = {{"schema", kSchema},
               {"id", interaction.id.str()},
               {"chat_id", interaction.chat_id.str()},
               {"parent_id", OrNull(interaction.parent_id)},
               {"edited_from", OrNull(interaction.edited_from)},
               {"status", ToString(interaction.status)},
               {"user_message", interaction.user_message}};
  if (!interaction.attachments.empty()) json["attachments"] = ToJson(interaction.attachments);
  json["agent_events"] = std::move(events);
  json["final_agent_state"] =
      interaction.final_agent_state ? ToJson(*interaction.final_agent_state, first_message) : Json(nullptr);
  json["model"] = interaction.model;
  json["usage"] = Json::object();
  WriteUsage(json["usage"], interaction.usage);
  json["error"] = nullptr;
  if (interaction.error) {
    json["error"] = {{"code", interaction.error->code},
                     {"message", interaction.error->message},
                     {"retryable", interaction.error->retryable}};
  }
  json["created_at"] = FormatTimestamp(interaction.created_at);
  json["completed_at"] = interaction.completed_at ? Json(FormatTimestamp(*interaction.completed_at)) : Json(nullptr);
  return json;
}

Result<Interaction> InteractionFromJson(const Json& json) {
  JsonReader reader(json, "interaction");
  if (reader.Integer("schema") != kSchema && !reader.error()) {
    return Fail(Error{.code = ErrorCode::kCorruption,
                      .reason = "integrity_version",
                      .message = "the stored interaction has a format version that this program does not know"});
  }
  const auto id = InteractionId::Parse(reader.String("id"));
  if (!id) reader.Reject("id");
  const auto chat = ChatId::Parse(reader.String("chat_id"));
  if (!chat) reader.Reject("chat_id");
  const auto status = ParseInteractionStatus(reader.String("status"));
  if (!status) reader.Reject("status");
  if (reader.error()) return Fail(*reader.error());

  Interaction interaction{.id = *id, .chat_id = *chat};
  interaction.status = *status;
  interaction.parent_id = OptionalId(reader, "parent_id");
  interaction.edited_from = OptionalId(reader, "edited_from");
  interaction.user_message = reader.String("user_message");
  if (const Json* attachments = reader.Find("attachments")) {
    interaction.attachments = reader.Take(AttachmentsFromJson(*attachments), {});
  }
  if (const Json* events = reader.Array("agent_events")) {
    interaction.events.reserve(events->size());
    for (const Json& event : *events)
      interaction.events.push_back(reader.Take(AgentEventFromJson(event), AgentEvent{}));
  }
  if (const Json* state = reader.Find("final_agent_state"); state != nullptr && !state->is_null()) {
    interaction.final_agent_state = reader.Take(AgentStateFromJson(*state), AgentState{});
  }
  interaction.model = reader.OptionalString("model").value_or("");
  interaction.usage = UsageFromJson(reader);
  interaction.error = ErrorFromJson(reader);
  interaction.created_at = reader.Time("created_at");
  interaction.completed_at = reader.OptionalTime("completed_at");
  if (reader.error()) return Fail(*reader.error());
  return interaction;
}

Json ToJson(const InteractionRef& ref) {
  return {{"chat_id", ref.chat_id.str()}, {"interaction_id", ref.interaction_id.str()}};
}

Json ToJson(const ChatSummary& summary) {
  Json json = {{"id", summary.id.str()},
               {"title", summary.title},
               {"created_at", FormatTimestamp(summary.created_at)},
               {"updated_at", FormatTimestamp(summary.updated_at)},
               {"head", OrNull(summary.head)}};
  if (summary.forked_from) json["forked_from"] = ToJson(*summary.forked_from);
  return json;
}

Json ToJson(const PendingApproval& approval) {
  const event::ApprovalRequired& request = approval.request;
  return {{"chat_id", approval.chat_id.str()},
          {"interaction_id", approval.interaction_id.str()},
          {"approval_id", request.approval_id},
          {"call_id", request.call_id},
          {"tool_name", request.tool_name},
          {"tool_input", request.tool_input},
          {"arguments_digest", request.arguments_digest},
          {"reason", request.reason},
          {"risk", request.risk},
          {"allowed_decisions", request.allowed_decisions},
          {"created_at", FormatTimestamp(request.created_at)},
          {"expires_at", request.expires_at ? Json(FormatTimestamp(*request.expires_at)) : Json(nullptr)}};
}

}  // namespace reprise
