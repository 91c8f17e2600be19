#include "store/chat_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/system.h"
#include "domain/codec.h"
#include "store/record.h"
#include "store/store_errors.h"

namespace reprise {

namespace {

constexpr int kIndexSchema = 1;

// Thrown by the reading functions below and caught only in ChatIndexFromJson: there are many members, and a defect in
// any of them has the same answer.
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

template <typename T>
T Known(const std::optional<T>& value) {
  if (!value) throw Malformed{};
  return *value;
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
    index.summary.approval_mode = Known(ParseApprovalMode(Text(json, "approval_mode")));
  }
  if (json.contains("chosen_model")) index.summary.chosen_model = Text(json, "chosen_model");
  if (json.contains("workspace")) index.summary.workspace = Text(json, "workspace");
  if (json.contains("instructions")) index.summary.instructions = Text(json, "instructions");
  if (json.contains("effort")) index.summary.effort = Known(ParseEffort(Text(json, "effort")));
  if (json.contains("shelf")) index.summary.shelf = Known(ParseChatShelf(Text(json, "shelf")));
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

ChatIndex NewIndex(const ChatId& chat) {
  const Timestamp now = Now();
  return ChatIndex{.summary = {.id = chat, .title = {}, .created_at = now, .updated_at = now, .head = std::nullopt}};
}

void ApplySettings(ChatIndex& index, const ChatSettings& settings) {
  // Where a list shows the chat is no change of the chat, and must not make it the newest.
  if (settings.shelf) index.summary.shelf = *settings.shelf;
  const ChatSummary before = index.summary;
  Apply(settings, index.summary);
  if (settings.shelf && index.summary == before) return;
  index.summary.updated_at = std::max(index.summary.updated_at, Now());
}

void SetHead(ChatIndex& index, const Interaction& head) {
  index.summary.head = head.id;
  index.summary.head_status = head.status;
  index.summary.updated_at = std::max(index.summary.updated_at, Now());
}

void TakeSummary(ChatIndex& index, ChatSummary summary) {
  summary.model = std::move(index.summary.model);
  summary.tokens = index.summary.tokens;
  index.summary = std::move(summary);
}

void AddToIndex(ChatIndex& index, const Interaction& interaction, std::string digest) {
  ChatSummary& summary = index.summary;
  if (summary.title.empty()) summary.title = TitleFromMessage(interaction.user_message);
  if (index.leaves.empty()) summary.tokens = 0;
  AddUsage(summary, interaction);
  if (!interaction.workspace.empty() && !interaction.imported) summary.workspace = interaction.workspace;
  summary.created_at = std::min(summary.created_at, interaction.created_at);
  summary.updated_at = std::max(summary.updated_at, interaction.completed_at.value_or(interaction.created_at));
  // A what-if turn that is kept stands beside the branch where the chat goes on.
  const bool is_beside = summary.head && interaction.record && interaction.record->what_if;
  if (!is_beside) {
    summary.head = interaction.id;
    summary.head_status = interaction.status;
  }
  if (interaction.parent_id) index.leaves.erase(interaction.parent_id->number());
  index.leaves.insert_or_assign(interaction.id.number(), std::move(digest));
  index.last = std::max(index.last, interaction.id.number());
}

std::string ChatIndexToJson(const ChatIndex& index) {
  const ChatSummary& summary = index.summary;
  std::string text;
  AppendJsonObject(text, [&](JsonObjectWriter& json) {
    json["schema"] = kIndexSchema;
    json["id"] = summary.id.str();
    json["title"] = summary.title;
    json["created_at"] = FormatTimestamp(summary.created_at);
    json["updated_at"] = FormatTimestamp(summary.updated_at);
    summary.head ? json["head"] = summary.head->str() : json["head"] = nullptr;
    summary.head_status ? json["head_status"] = ToString(*summary.head_status) : json["head_status"] = nullptr;
    json["last"] = index.last;
    std::string& leaves = json.Name("leaves");
    char before = '[';
    for (const auto& [number, digest] : index.leaves) {
      leaves += std::exchange(before, ',');
      AppendJsonObject(leaves, [&, id = number, of = &digest](JsonObjectWriter& leaf) {
        leaf["id"] = InteractionId::FromNumber(id).str();
        leaf["digest"] = *of;
      });
    }
    leaves += before == '[' ? "[]" : "]";
    if (!summary.model.empty()) json["model"] = summary.model;
    if (summary.tokens) json["tokens"] = *summary.tokens;
    if (summary.forked_from) json["forked_from"] = ToJson(*summary.forked_from);
    if (summary.approval_mode) json["approval_mode"] = ToString(*summary.approval_mode);
    if (!summary.chosen_model.empty()) json["chosen_model"] = summary.chosen_model;
    if (!summary.workspace.empty()) json["workspace"] = summary.workspace;
    if (!summary.instructions.empty()) json["instructions"] = summary.instructions;
    if (summary.effort != Effort::kDefault) json["effort"] = ToString(summary.effort);
    if (summary.shelf) json["shelf"] = ToString(*summary.shelf);
  });
  return text;
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

bool IndexWriter::StartThread() {
  try {
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
    return true;
  } catch (const std::system_error&) {
    return false;  // the next save tries again; until then the files have what the index lacks
  }
}

void IndexWriter::WriteLater(const ChatId& chat) {
  {
    const MutexLock lock(mutex_);
    if (!StartThread()) return;
    const bool gathering = !later_.empty();
    later_.insert(chat);
    latest_ = Clock::now();
    if (gathering) return;
    first_ = latest_;
  }
  wake_.notify_one();
}

void IndexWriter::WriteNow(const ChatId& chat) {
  {
    const MutexLock lock(mutex_);
    if (!StartThread()) return;
    later_.erase(chat);
    now_.insert(chat);
  }
  wake_.notify_one();
}

bool IndexWriter::IsLate(const std::stop_token& stop) {
  if (!stop.stop_requested()) return false;
  if (!end_) end_ = Clock::now() + at_end_;
  return Clock::now() >= *end_;
}

void IndexWriter::Run(const std::stop_token& stop) {
  BecomeBackgroundThread();
  MutexLock lock(mutex_);
  const auto due = [this]() REQUIRES(mutex_) { return std::min(first_ + delay_, latest_ + delay_ / 20); };
  while (wake_.wait(lock, stop, [this]() REQUIRES(mutex_) { return !now_.empty() || !later_.empty(); })) {
    while (now_.empty() && !stop.stop_requested() && Clock::now() < due()) {
      static_cast<void>(wake_.wait_until(lock, stop, due(), [this]() REQUIRES(mutex_) { return !now_.empty(); }));
    }
    std::set<ChatId> batch = std::exchange(now_, {});
    if (stop.stop_requested() || Clock::now() >= due()) batch.merge(std::exchange(later_, {}));
    lock.unlock();
    for (const ChatId& chat : batch) {
      if (IsLate(stop)) break;
      Guarded("the writing of an index", [&] { write_(chat); });
    }
    lock.lock();
  }
}

Result<RemovedBranch> BranchToRemove(const Chat& chat, InteractionId from) {
  std::set<InteractionId> gone;
  std::optional<InteractionId> before;
  // One pass is enough, because parents come first.
  for (const Interaction& each : chat.interactions) {
    if (each.id == from) before = each.parent_id;
    if (each.id == from || (each.parent_id && gone.contains(*each.parent_id))) gone.insert(each.id);
  }
  if (gone.empty()) return NoSuchInteraction();
  if (chat.summary.head && gone.contains(*chat.summary.head)) {
    return Fail(Reason::kOnHeadBranch, "the chat ends on this branch: go to another one first");
  }
  // A damaged interaction may continue any of them.
  for (const DamagedInteraction& each : chat.damaged) {
    if (each.parent_id && gone.contains(*each.parent_id)) {
      return Fail(Reason::kStillUsed, each.id.str() + " is damaged and continues this branch");
    }
  }
  bool goes_on = false;
  for (const Interaction& each : chat.interactions) {
    if (gone.contains(each.id)) continue;
    goes_on = goes_on || (before && each.parent_id == before);
    const bool uses = each.record && each.record->resumed_from && gone.contains(each.record->resumed_from->interaction);
    if (uses) return Fail(Reason::kStillUsed, each.id.str() + " goes on where this branch was left");
  }
  RemovedBranch removed{.interactions = {gone.begin(), gone.end()}};
  if (before && !goes_on) removed.new_leaf = before;
  return removed;
}

}  // namespace reprise
