#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// What chat.json holds: the summary, and enough of the tree of interactions to notice when one is gone or replaced. It
// may lag behind the interaction files: every file with a number above `last` is newer than it.
struct ChatIndex {
  ChatSummary summary;
  std::uint32_t last = 0;                         // the highest number it knows; 0: none
  std::map<std::uint32_t, std::string> leaves{};  // digests of the interactions that are nobody's parent
};

// The index of an empty chat.
ChatIndex NewIndex(const ChatId& chat);
// What ChatStore's functions change in the index. TakeSummary is for an imported chat, whose model and tokens come from
// its interactions.
void ApplySettings(ChatIndex& index, const ChatSettings& settings);
void SetHead(ChatIndex& index, const Interaction& head);
void TakeSummary(ChatIndex& index, ChatSummary summary);

// Puts a stored interaction on top: it becomes the head and a leaf, and its parent no longer is one. An interaction
// older than what is known keeps the time of the last change.
void AddToIndex(ChatIndex& index, const Interaction& interaction, std::string digest);

std::string ChatIndexToJson(const ChatIndex& index);
// kCorruption: reason "integrity_version" for another schema, "integrity_auth" for anything else that is wrong.
Result<ChatIndex> ChatIndexFromJson(const ChatId& chat, std::string_view text);

// Calls a function once for each chat that was scheduled, on a thread of its own: what is scheduled again before that
// costs nothing. Thread-safe. Its thread starts with the first call.
class IndexWriter {
 public:
  using Write = std::function<void(const ChatId&)>;
  // `delay` is the longest that a chat waits; a twentieth of it is a moment.
  IndexWriter(std::chrono::milliseconds delay, Write write) : delay_(delay), write_(std::move(write)) {}
  // Writes everything that is still scheduled, at once. Nothing may be scheduled any more.
  ~IndexWriter() = default;
  IndexWriter(const IndexWriter&) = delete;  // its thread refers to it
  IndexWriter& operator=(const IndexWriter&) = delete;

  // When nothing has been scheduled for a moment: it must not get in the way of turns.
  void WriteLater(const ChatId& chat);
  // As soon as the thread can.
  void WriteNow(const ChatId& chat);

 private:
  using Clock = std::chrono::steady_clock;

  bool StartThread() REQUIRES(mutex_);
  void Run(const std::stop_token& stop);

  const std::chrono::milliseconds delay_;
  const Write write_;
  Mutex mutex_;
  std::condition_variable_any wake_;
  std::set<ChatId> now_ GUARDED_BY(mutex_), later_ GUARDED_BY(mutex_);
  Clock::time_point first_ GUARDED_BY(mutex_){}, latest_ GUARDED_BY(mutex_){};  // when one was scheduled for later
  std::jthread thread_;  // last, so that it ends before what it uses
};

// What goes if an interaction is removed together with all that continue it.
struct RemovedBranch {
  std::vector<InteractionId> interactions;     // by rising number
  std::optional<InteractionId> new_leaf = {};  // the one before, if nothing else continues it
};

// The failures of ChatStore::RemoveBranch.
Result<RemovedBranch> BranchToRemove(const Chat& chat, InteractionId from);

}  // namespace reprise
