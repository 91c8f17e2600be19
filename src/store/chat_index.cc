#include "store/chat_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "domain/codec.h"
#include "store/record.h"

namespace reprise {
namespace {

constexpr int kIndexSchema = 1;

// Thrown by the reading functions below and caught in ChatIndexFromJson, nowhere else: the members are many and each
// has the same one answer.
struct Malformed {};

const std::string& Text(const Json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_string()) throw Malformed{};
  return member->get_ref<const std::string&>();
}

Timestamp Time(const Json& object, const char* name) {
  const auto time = ParseTimestamp(Text(object, name));
  if (!time) throw Malformed{};
  return *time;
}

InteractionId Id(const std::string& text) {
  const auto id = InteractionId::Parse(text);
  if (!id) throw Malformed{};
  return *id;
}

std::optional<InteractionId> IdOrNull(const Json& object, const char* name) {
  const auto member = object.find(name);
  if (member != object.end() && member->is_null()) return std::nullopt;
  return Id(Text(object, name));
}

ChatIndex ReadIndex(const ChatId& chat, const Json& json) {
  ChatIndex index{.summary = {.id = chat,
                              .title = Text(json, "title"),
                              .created_at = Time(json, "created_at"),
                              .updated_at = Time(json, "updated_at"),
                              .head = IdOrNull(json, "head")}};
  if (const auto status = json.find("head_status"); status == json.end()) {
    throw Malformed{};
  } else if (!status->is_null()) {
    index.summary.head_status = ParseInteractionStatus(Text(json, "head_status"));
    if (!index.summary.head_status) throw Malformed{};
  }
  if (json.contains("model")) index.summary.model = Text(json, "model");
  if (const auto tokens = json.find("tokens"); tokens != json.end()) {
    if (!tokens->is_number_integer() || *tokens < 0) throw Malformed{};
    index.summary.tokens = tokens->get<std::int64_t>();
  }
  if (json.contains("approval_mode")) {
    index.summary.approval_mode = ParseApprovalMode(Text(json, "approval_mode"));
    if (!index.summary.approval_mode) throw Malformed{};
  }
  if (json.contains("chosen_model")) index.summary.chosen_model = Text(json, "chosen_model");
  const auto last = json.find("last");
  if (last == json.end() || !last->is_number_unsigned() || *last > InteractionId::kMaxNumber) throw Malformed{};
  index.last = last->get<std::uint32_t>();
  if (const auto fork = json.find("forked_from"); fork != json.end()) {
    if (!fork->is_object()) throw Malformed{};
    const auto source = ChatId::Parse(Text(*fork, "chat_id"));
    if (!source) throw Malformed{};
    index.summary.forked_from = InteractionRef{*source, Id(Text(*fork, "interaction_id"))};
  }
  const auto leaves = json.find("leaves");
  if (leaves == json.end() || !leaves->is_array()) throw Malformed{};
  for (const Json& leaf : *leaves) {
    if (!leaf.is_object()) throw Malformed{};
    index.leaves.emplace(Id(Text(leaf, "id")).number(), Text(leaf, "digest"));
  }
  return index;
}

}  // namespace

void AddToIndex(ChatIndex& index, const Interaction& interaction, std::string digest) {
  ChatSummary& summary = index.summary;
  if (summary.title.empty()) summary.title = TitleFromMessage(interaction.user_message);
  if (index.leaves.empty()) summary.tokens = 0;
  AddUsage(summary, interaction);
  summary.created_at = std::min(summary.created_at, interaction.created_at);
  summary.updated_at = std::max(summary.updated_at, interaction.completed_at.value_or(interaction.created_at));
  summary.head = interaction.id;
  summary.head_status = interaction.status;
  if (interaction.parent_id) index.leaves.erase(interaction.parent_id->number());
  index.leaves.insert_or_assign(interaction.id.number(), std::move(digest));
  index.last = std::max(index.last, interaction.id.number());
}

std::string ChatIndexToJson(const ChatIndex& index) {
  const ChatSummary& summary = index.summary;
  Json leaves = Json::array();
  for (const auto& [number, digest] : index.leaves) {
    leaves.push_back({{"id", InteractionId::FromNumber(number).str()}, {"digest", digest}});
  }
  Json json = {{"schema", kIndexSchema},
               {"id", summary.id.str()},
               {"title", summary.title},
               {"created_at", FormatTimestamp(summary.created_at)},
               {"updated_at", FormatTimestamp(summary.updated_at)},
               {"head", summary.head ? Json(summary.head->str()) : Json()},
               {"head_status", summary.head_status ? Json(ToString(*summary.head_status)) : Json()},
               {"last", index.last},
               {"leaves", std::move(leaves)}};
  if (!summary.model.empty()) json["model"] = summary.model;
  if (summary.tokens) json["tokens"] = *summary.tokens;
  if (summary.forked_from) json["forked_from"] = ToJson(*summary.forked_from);
  if (summary.approval_mode) json["approval_mode"] = ToString(*summary.approval_mode);
  if (!summary.chosen_model.empty()) json["chosen_model"] = summary.chosen_model;
  return DumpJson(json);
}

Result<ChatIndex> ChatIndexFromJson(const ChatId& chat, std::string_view text) {
  const RecordPlace place{.chat = chat, .interaction = std::nullopt};
  const auto json = ParseJson(text);
  if (!json || !json->is_object()) return Fail(IntegrityError("auth", place, "its content is not what it should be"));
  const auto schema = json->find("schema");
  if (schema == json->end() || *schema != kIndexSchema) {
    return Fail(IntegrityError("version", place, "its schema is not known to this version"));
  }
  try {
    if (Text(*json, "id") != chat.str()) return Fail(IntegrityError("swap", place, "it describes another chat"));
    return ReadIndex(chat, *json);
  } catch (const Malformed&) {
    return Fail(IntegrityError("auth", place, "its content is not what it should be"));
  }
}

}  // namespace reprise
