#include "engine/past_files.h"

#include <algorithm>
#include <variant>

namespace reprise {

Timestamp MomentOf(const Interaction& interaction, std::uint64_t seq) {
  const auto found = std::ranges::find(interaction.events, seq, &AgentEvent::seq);
  return found == interaction.events.end() ? interaction.created_at : found->at;
}

void RecordedChanges::Add(const Interaction& interaction) {
  const bool is_here = interaction.workspace.empty() ? is_home_ : interaction.workspace == workspace_;
  if (!is_here) return;
  for (const AgentEvent& event : interaction.events) {
    const auto* const changed = std::get_if<event::FilesChanged>(&event.payload);
    if (changed == nullptr) continue;
    for (const WorkspaceChange& each : changed->changes) {
      changes_[each.path].push_back({.at = event.at,
                                     .of = {interaction.chat_id, interaction.id},
                                     .seq = event.seq,
                                     .before = each.before,
                                     .after = each.after});
      for (const auto& version : {each.before, each.after}) {
        if (!version || version->digest.empty()) continue;
        auto& chats = kept_[version->digest];
        if (std::ranges::find(chats, interaction.chat_id) == chats.end()) chats.push_back(interaction.chat_id);
      }
    }
  }
}

// The first change after the moment tells for certain what was there. Otherwise the last change before it does, unless
// the present file is as old.
PastFiles RecordedChanges::At(const Interaction& interaction, std::uint64_t seq) const {
  PastFiles then{.at = MomentOf(interaction, seq)};
  const InteractionRef own{interaction.chat_id, interaction.id};
  const auto is_past = [&](const Change& change) {
    return change.of == own ? change.seq <= seq : change.at <= then.at;
  };
  for (const auto& [path, changes] : changes_) {
    const Change *last = nullptr, *next = nullptr;
    for (const Change& each : changes) {
      if (is_past(each)) {
        if (last == nullptr || each.at >= last->at) last = &each;
      } else if (next == nullptr || each.at < next->at) {
        next = &each;
      }
    }
    if (next != nullptr) {
      then.files.push_back({.path = path, .version = next->before});
    } else if (last != nullptr) {
      then.files.push_back({.path = path, .version = last->after, .is_certain = false});
    }
  }
  return then;
}

std::vector<ChatId> RecordedChanges::ChatsWith(const std::string& digest) const {
  const auto found = kept_.find(digest);
  return found == kept_.end() ? std::vector<ChatId>() : found->second;
}

}  // namespace reprise
