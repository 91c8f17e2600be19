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

// The ids from `leaf` back to the root of its branch, including damaged ones. Stops at an id that is in neither list.
std::set<InteractionId> BranchOf(const std::vector<Interaction>& interactions,
                                 const std::vector<DamagedInteraction>& damaged, std::optional<InteractionId> leaf);

// Whether the interaction has called a tool that is not read-only.
bool HasSideEffects(const Interaction& interaction, const ToolSet& tools);

// The effects of an edit of `edited` on a chat that ends at `head`.
EditPreview PreviewOf(const Chat& chat, const Interaction& edited, const ToolSet& tools);

// Finds interactions that are running, stored, or rescued: those that only a fallback folder could take. Thread-safe.
class Interactions {
 public:
  Interactions(EngineServices& services, BusyChats& busy) : services_(services), busy_(busy) {}

  Result<Interaction> Find(const ChatId& chat, InteractionId id) const;
  // An interaction that another process runs, so far; nullopt if no process runs it (any more).
  Result<std::optional<Interaction>> FindElsewhere(const InteractionRef& ref) const;
  // The same as kRunning, without checking what it waits for.
  Result<std::optional<Interaction>> ReadElsewhere(const InteractionRef& ref) const;
  // The open questions of a chat that another process runs, as the store has them.
  WaitingQuestions WaitingElsewhere(const ChatId& chat) const;
  Result<Interaction> FindFinished(const ChatId& chat, InteractionId id) const;
  // The same for a replay: kConflict (reason "not_replayable") while it runs.
  Result<Interaction> FindReplayable(const ChatId& chat, InteractionId id) const;
  // As Engine::RequestsOf, RequestBody and ToldBy.
  Result<RequestsOnRecord> RequestsOf(const ChatId& chat, InteractionId id) const;
  Result<std::string> RequestBody(const ChatId& chat, InteractionId id, std::uint64_t index) const;
  Result<ToldRequest> ToldBy(const ChatId& chat, InteractionId id, std::uint64_t index) const;
  // kNotFound unless the chat exists.
  Result<void> CheckChat(const ChatId& chat) const;

  // Keeps an interaction that could not be saved in memory, for requests before the next start.
  void Rescue(const Interaction& finished);
  // Whether a fallback folder has the interaction; the next start brings it home.
  bool IsRescued(const InteractionRef& ref);
  // Whether any interaction of the chat is only in a fallback folder.
  bool HasRescued(const ChatId& chat) const;
  // The rescued interactions after the head, oldest first; those that can be saved now are saved and left out.
  std::vector<Interaction> RescuedAfter(const ChatId& chat, std::optional<InteractionId> head);
  void Forget(const ChatId& chat);

 private:
  // One whose requests are complete.
  Result<Interaction> FindRecorded(const ChatId& chat, InteractionId id) const;

  EngineServices& services_;
  BusyChats& busy_;
  mutable Mutex mutex_;
  std::map<std::pair<ChatId, InteractionId>, Interaction> rescued_ GUARDED_BY(mutex_);
};

}  // namespace reprise
