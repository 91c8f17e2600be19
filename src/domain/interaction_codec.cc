#include <map>
#include <nlohmann/json.hpp>

#include "base/try.h"
#include "domain/codec.h"
#include "domain/json_reader.h"

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

void Write(auto& out, const Attachment& attachment) {
  out["id"] = attachment.id.str();
  out["filename"] = attachment.filename;
  out["mime_type"] = attachment.mime_type;
  out["size_bytes"] = attachment.size_bytes;
  if (!attachment.note.empty()) out["note"] = attachment.note;
}

// The usage of each round's answer, as its events tell. A summary's comes before it.
std::map<std::uint32_t, TokenUsage> UsageByRound(const std::vector<AgentEvent>& events) {
  std::map<std::uint32_t, TokenUsage> usage;
  for (const AgentEvent& each : events) {
    if (const auto* told = std::get_if<event::Usage>(&each.payload)) usage[each.round_index] = told->tokens;
  }
  return usage;
}

// Whether the usage of the response is that of its round, so that only the event has it.
bool IsOfRound(const SentRequest& request) {
  return request.purpose == SentRequest::Purpose::kTurn && request.response && request.response->error.empty();
}

// The provider's own name of the interaction's model, which its requests leave out.
std::string OwnName(const std::string& model) {
  const std::size_t slash = model.find('/');
  return slash == std::string::npos ? std::string() : model.substr(slash + 1);
}

void Write(auto& out, const RunRecord& record, const Interaction& of) {
  out["first_message"] = record.first_message;
  if (const auto& from = record.resumed_from) {
    out["resumed_from"] = Json{{"interaction_id", from->interaction.str()}, {"call_ids", from->call_ids}};
  }
  if (record.agenda_before) out["agenda_before"] = ToJson(*record.agenda_before);
  if (record.files_from) out["files_from"] = record.files_from->str();
  if (record.request) out["request"] = ToJson(*record.request);
  if (!record.traceparent.empty()) out["traceparent"] = record.traceparent;
  if (record.names_model) out["names_model"] = true;
  if (record.effort != Effort::kDefault) out["effort"] = ToString(record.effort);
  if (!record.program.empty()) out["program"] = record.program;
  if (record.redacted) out["redacted"] = true;
  if (record.what_if) out["what_if"] = *record.what_if;
  if (record.requests) {
    const auto told = UsageByRound(of.events);
    const std::string model = OwnName(of.model);
    std::vector<RecordedRequest> requests;
    for (const SentRequest& each : *record.requests) {
      const auto known = IsOfRound(each) ? told.find(each.round) : told.end();
      requests.push_back({each, &model, known != told.end() ? &known->second : nullptr});
    }
    WriteList(out, "requests", requests);
  }
}

Result<RunRecord> RecordFromJson(const Json& json, const Interaction& of) {
  JsonReader reader(json, "record");
  RunRecord record{.first_message = static_cast<std::size_t>(reader.Integer("first_message"))};
  if (reader.Integer("first_message") < 0) reader.Reject("first_message");
  if (const Json* from = reader.Find("resumed_from")) {
    JsonReader inner(*from, "record");
    const auto id = OptionalId(inner, "interaction_id");
    if (!id) inner.Reject("interaction_id");
    if (id) record.resumed_from = ResumedFrom{*id, inner.Strings("call_ids")};
    if (inner.error()) reader.Reject("resumed_from");
  }
  if (const Json* agenda = reader.Find("agenda_before")) {
    record.agenda_before = reader.Take(AgendaFromJson(*agenda), {});
  }
  if (reader.Find("files_from")) record.files_from = OptionalId(reader, "files_from");
  if (reader.Find("traceparent")) record.traceparent = reader.String("traceparent");
  record.names_model = reader.Bool("names_model", false);
  if (const auto effort = reader.OptionalString("effort")) {
    const auto known = ParseEffort(*effort);
    if (!known) reader.Reject("effort");
    record.effort = known.value_or(Effort::kDefault);
  }
  record.program = reader.OptionalString("program").value_or("");
  record.redacted = reader.Bool("redacted", false);
  if (reader.Find("what_if")) {
    const std::int64_t at = reader.Integer("what_if");
    if (at < 0) reader.Reject("what_if");
    record.what_if = static_cast<std::uint64_t>(at);
  }
  if (const Json* request = reader.Find("request")) record.request = reader.Take(ClientRequestFromJson(*request), {});
  if (reader.Find("requests") != nullptr) {
    record.requests.emplace();
    if (const Json* requests = reader.Array("requests")) {
      const auto told = UsageByRound(of.events);
      const std::string model = OwnName(of.model);
      for (const Json& each : *requests) {
        SentRequest request = TRY(SentRequestFromJson(each, model));
        if (const auto known = told.find(request.round);
            IsOfRound(request) && known != told.end() && !each["response"].contains("usage")) {
          request.response->usage = known->second;
        }
        record.requests->push_back(std::move(request));
      }
    }
  }
  if (reader.error()) return Fail(*reader.error());
  return record;
}

void Write(auto& out, const Interaction& interaction, auto write_state) {
  out["schema"] = kSchema;
  out["id"] = interaction.id.str();
  out["chat_id"] = interaction.chat_id.str();
  out["parent_id"] = OrNull(interaction.parent_id);
  out["edited_from"] = OrNull(interaction.edited_from);
  out["status"] = ToString(interaction.status);
  out["user_message"] = interaction.user_message;
  if (!interaction.attachments.empty()) WriteList(out, "attachments", interaction.attachments);
  WriteList(out, "agent_events", interaction.events);
  if (interaction.final_agent_state) {
    write_state(*interaction.final_agent_state);
  } else {
    out["final_agent_state"] = nullptr;
  }
  out["model"] = interaction.model;
  WriteObject(out, "usage", [&](auto& usage) { WriteUsage(usage, interaction.usage); });
  if (const auto& error = interaction.error) {
    WriteObject(out, "error", [&error](auto& json) {
      json["code"] = error->code;
      json["message"] = error->message;
      json["retryable"] = error->retryable;
    });
  } else {
    out["error"] = nullptr;
  }
  out["created_at"] = FormatTimestamp(interaction.created_at);
  if (interaction.completed_at) {
    out["completed_at"] = FormatTimestamp(*interaction.completed_at);
  } else {
    out["completed_at"] = nullptr;
  }
  if (interaction.record)
    WriteObject(out, "record", [&](auto& record) { Write(record, *interaction.record, interaction); });
  if (interaction.imported) out["imported"] = true;
  if (!interaction.workspace.empty()) out["workspace"] = interaction.workspace;
}

}  // namespace

Json ToJson(const ClientRequest& request) { return {{"key", request.key}, {"digest", request.digest}}; }

Result<ClientRequest> ClientRequestFromJson(const Json& json) {
  JsonReader reader(json, "request");
  ClientRequest request{.key = reader.String("key"), .digest = reader.String("digest")};
  if (reader.error()) return Fail(*reader.error());
  return request;
}

Json ToJson(const Attachment& attachment) {
  Json json = Json::object();
  Write(json, attachment);
  return json;
}

void AppendJson(std::string& out, const Attachment& attachment) {
  AppendJsonObject(out, [&](auto& object) { Write(object, attachment); });
}

Json ToJson(const std::vector<Attachment>& attachments) {
  Json list = Json::array();
  for (const Attachment& each : attachments) list.push_back(ToJson(each));
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
    std::string note = reader.OptionalString("note").value_or("");
    if (reader.error()) return Fail(*reader.error());
    attachments.push_back(
        {*id, std::move(filename), std::move(mime_type), static_cast<std::uint64_t>(size), std::move(note)});
  }
  return attachments;
}

Json ToJson(const Interaction& interaction, std::size_t first_message) {
  Json json = Json::object();
  Write(json, interaction, [&](const AgentState& state) { json["final_agent_state"] = ToJson(state, first_message); });
  return json;
}

void AppendJson(std::string& out, const Interaction& interaction, std::size_t first_message) {
  AppendJsonObject(out, [&](auto& object) {
    Write(object, interaction,
          [&](const AgentState& state) { AppendJson(object.Name("final_agent_state"), state, first_message); });
  });
}

Json ToJson(const AddedInteraction& added) {
  Json json = ToJson(added.interaction);
  if (added.kept_messages > 0) json["final_agent_state"][kKeptMessages] = added.kept_messages;
  return json;
}

void AppendJson(std::string& out, const AddedInteraction& added) {
  AppendJsonObject(out, [&](auto& object) {
    Write(object, added.interaction, [&](const AgentState& state) {
      std::string& text = object.Name("final_agent_state");
      AppendJson(text, state);
      if (added.kept_messages == 0) return;
      text.pop_back();
      text.append(",\"").append(kKeptMessages).append("\":").append(std::to_string(added.kept_messages)).append("}");
    });
  });
}

InteractionJson ToInteractionJson(const AddedInteraction& added) {
  const Interaction& interaction = added.interaction;
  InteractionJson json{.text = {},
                       .has_state = interaction.final_agent_state.has_value(),
                       .continues = added.kept_messages > 0 ? interaction.parent_id : std::nullopt,
                       .model = interaction.model,
                       .usage = interaction.usage};
  AppendJson(json.text, added);
  return json;
}

Result<Interaction> InteractionFromJson(const Json& json) {
  JsonReader reader(json, "interaction");
  if (reader.Integer("schema") != kSchema && !reader.error()) {
    return Fail(Reason::kIntegrityVersion,
                "the stored interaction has a format version that this program does not know");
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
  if (const Json* record = reader.Find("record")) {
    interaction.record = reader.Take(RecordFromJson(*record, interaction), {});
  }
  interaction.imported = reader.Bool("imported", false);
  if (reader.Find("workspace")) interaction.workspace = reader.String("workspace");
  if (reader.error()) return Fail(*reader.error());
  return interaction;
}

Json ToJson(const InteractionRef& ref) {
  return {{"chat_id", ref.chat_id.str()}, {"interaction_id", ref.interaction_id.str()}};
}

Json ToJson(const DamagedInteraction& damaged) {
  return {{"interaction_id", damaged.id.str()},
          {"error", {{"code", damaged.error.reason}, {"message", damaged.error.message}}}};
}

Json ToJson(const ChatSummary& summary) {
  Json json = {{"id", summary.id.str()},
               {"title", summary.title},
               {"created_at", FormatTimestamp(summary.created_at)},
               {"updated_at", FormatTimestamp(summary.updated_at)},
               {"head", OrNull(summary.head)}};
  if (summary.forked_from) json["forked_from"] = ToJson(*summary.forked_from);
  if (summary.approval_mode) json["approval_mode"] = ToString(*summary.approval_mode);
  if (!summary.chosen_model.empty()) json["chosen_model"] = summary.chosen_model;
  if (!summary.workspace.empty()) json["workspace"] = summary.workspace;
  if (!summary.instructions.empty()) json["instructions"] = summary.instructions;
  if (summary.effort != Effort::kDefault) json["effort"] = ToString(summary.effort);
  if (summary.shelf) json["shelf"] = ToString(*summary.shelf);
  return json;
}

Json ToJson(const TrashEntry& entry) {
  return {{"id", entry.id},
          {"chat_id", entry.chat_id.str()},
          {"title", entry.title ? Json(*entry.title) : Json(nullptr)},
          {"deleted_at", FormatTimestamp(entry.deleted_at)},
          {"bytes", entry.bytes}};
}

Json ToJson(const PendingApproval& approval) {
  const event::ApprovalRequired& request = approval.request;
  Json json = {{"chat_id", approval.chat_id.str()},
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
  if (!request.terms_digest.empty()) json["terms_digest"] = request.terms_digest;
  if (!request.agent.empty()) json["agent"] = request.agent;
  if (!request.modes.empty()) json["modes"] = request.modes;
  for (const CallPattern& each : request.patterns) {
    json["patterns"].push_back({{"pattern", each.pattern}, {"means", each.means}});
  }
  return json;
}

}  // namespace reprise
