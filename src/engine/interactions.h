#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/busy_chats.h"
#include "engine/services.h"
#include "reprise/engine.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// The ids from `leaf` back to the root of its branch, the damaged ones on it included. Stops at an interaction that is
// in neither list.
std::set<InteractionId> BranchOf(const std::vector<Interaction>& interactions,
                                 const std::vector<DamagedInteraction>& damaged, std::optional<InteractionId> leaf);

// Whether it has called a tool that is not read-only.
bool HasSideEffects(const Interaction& interaction, const ToolSet& tools);

// What an edit of `edited` would do to a chat that ends at `head`.
EditPreview PreviewOf(const Chat& chat, const Interaction& edited, const ToolSet& tools);

// Finds interactions wherever they are: running, stored, or rescued, which is that only a fallback could take them.
// Thread-safe.
class Interactions {
 public:
  Interactions(EngineServices& services, BusyChats& busy) : services_(services), busy_(busy) {}

  Result<Interaction> Find(const ChatId& chat, InteractionId id) const;
  // One that another process runs, as far as it has come. nullopt: none does (any more).
  Result<std::optional<Interaction>> FindElsewhere(const InteractionRef& ref) const;
  // The same without a look at what it waits for: as kRunning.
  Result<std::optional<Interaction>> ReadElsewhere(const InteractionRef& ref) const;
  // Of a chat that another process runs, as the store has them.
  WaitingQuestions WaitingElsewhere(const ChatId& chat) const;
  Result<Interaction> FindFinished(const ChatId& chat, InteractionId id) const;
  // The same, to be replayed: kConflict (reason "not_replayable") while it runs.
  Result<Interaction> FindReplayable(const ChatId& chat, InteractionId id) const;
  // kNotFound unless there is such a chat.
  Result<void> CheckChat(const ChatId& chat) const;

  // Keeps one in memory that could not be saved, for whoever asks before the next start.
  void Rescue(const Interaction& finished);
  // Whether a fallback folder has it, from where it is brought home at another start.
  bool IsRescued(const InteractionRef& ref);
  // Whether there is anything of the chat that only a fallback could take.
  bool HasRescued(const ChatId& chat) const;
  // What follows the head and only a fallback could take, oldest first; without what can be saved now.
  std::vector<Interaction> RescuedAfter(const ChatId& chat, std::optional<InteractionId> head);
  void Forget(const ChatId& chat);

 private:
  EngineServices& services_;
  BusyChats& busy_;
  mutable Mutex mutex_;
  std::map<std::pair<ChatId, InteractionId>, Interaction> rescued_ GUARDED_BY(mutex_);
};

}  // namespace reprise
