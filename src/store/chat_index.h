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

// The content of chat.json: the summary, and enough of the tree of interactions to notice a missing or replaced one. It
// may lag behind the interaction files: every file with a number above `last` is newer.
struct ChatIndex {
  ChatSummary summary;
  std::uint32_t last = 0;                         // the highest number it knows; 0: none
  std::map<std::uint32_t, std::string> leaves{};  // digests of the interactions without children
};

// The index of an empty chat.
ChatIndex NewIndex(const ChatId& chat);
// The changes that ChatStore's functions make to the index. TakeSummary is for an imported chat, whose model and tokens
// come from its interactions.
void ApplySettings(ChatIndex& index, const ChatSettings& settings);
void SetHead(ChatIndex& index, const Interaction& head);
void TakeSummary(ChatIndex& index, ChatSummary summary);

// Adds a stored interaction: it becomes the head and a leaf, and its parent is no longer a leaf. An older one does not
// move the time of the last change back.
void AddToIndex(ChatIndex& index, const Interaction& interaction, std::string digest);

std::string ChatIndexToJson(const ChatIndex& index);
// kCorruption: reason "integrity_version" for another schema, "integrity_swap" for another chat, else "integrity_auth".
Result<ChatIndex> ChatIndexFromJson(const ChatId& chat, std::string_view text);

// Calls a function for each scheduled chat, on a thread of its own. Scheduling a chat again before its call costs
// nothing. Thread-safe. The thread starts with the first chat.
class IndexWriter {
 public:
  using Write = std::function<void(const ChatId&)>;
  // `delay`: the longest time that a chat waits. `at_end`: the longest time that the destructor takes.
  IndexWriter(std::chrono::milliseconds delay, Write write, std::chrono::milliseconds at_end = std::chrono::seconds(5))
      : delay_(delay), at_end_(at_end), write_(std::move(write)) {}
  // Writes what is still scheduled, at once. After `at_end` the rest is left out, because the interactions have it too.
  // REQUIRES: nothing more is scheduled.
  ~IndexWriter() = default;
  IndexWriter(const IndexWriter&) = delete;  // its thread refers to it
  IndexWriter& operator=(const IndexWriter&) = delete;

  // Writes when no chat was scheduled for a twentieth of the delay, so that it does not get in the way of turns.
  void WriteLater(const ChatId& chat);
  // Writes as soon as the thread can.
  void WriteNow(const ChatId& chat);

 private:
  using Clock = std::chrono::steady_clock;

  bool StartThread() REQUIRES(mutex_);
  void Run(const std::stop_token& stop);
  // Whether the end takes too long.
  bool IsLate(const std::stop_token& stop);

  const std::chrono::milliseconds delay_, at_end_;
  const Write write_;
  Mutex mutex_;
  std::condition_variable_any wake_;
  std::set<ChatId> now_ GUARDED_BY(mutex_), later_ GUARDED_BY(mutex_);
  Clock::time_point first_ GUARDED_BY(mutex_){}, latest_ GUARDED_BY(mutex_){};  // when a chat was scheduled for later
  std::optional<Clock::time_point> end_;                                        // of the thread alone
  std::jthread thread_;  // last, so that it ends before what it uses
};

// The effect of removing an interaction with all its descendants.
struct RemovedBranch {
  std::vector<InteractionId> interactions;     // in ascending order
  std::optional<InteractionId> new_leaf = {};  // the parent, if nothing else continues it
};

// Fails as ChatStore::RemoveBranch.
Result<RemovedBranch> BranchToRemove(const Chat& chat, InteractionId from);

}  // namespace reprise
