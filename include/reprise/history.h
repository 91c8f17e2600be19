#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/accounting.h"
#include "reprise/event.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// Which interactions of a chat are meant.
struct HistoryRange {
  bool all_branches = false;                           // else those on the branch that the chat ends at
  std::optional<std::size_t> limit = std::nullopt;     // so many at most, the newest; nullopt: all
  std::optional<InteractionId> before = std::nullopt;  // only those before this one, which must be one of them

  bool is_whole() const { return !limit && !before; }
};

// An interaction that runs. The branch that the chat ends at is its own.
struct RunningInteraction {
  InteractionId id;
  std::optional<InteractionId> parent_id;
};

// Which interactions a range has; nothing has been read of what is in them.
struct ChatOutline {
  struct Entry {
    InteractionId id;
    bool superseded = false;
    std::string digest{};  // that its record has to have; empty: nobody says so
  };
  ChatSummary summary;
  // Oldest first, damaged and missing ones too. Of a whole chat those on other branches as well, whichever are meant.
  std::vector<Entry> entries{};
  bool more = false;                   // there are older ones
  bool has_before = true;              // false: HistoryRange::before is none of them
  bool has_running = false;            // the interaction that was said to run is stored by now
  std::shared_ptr<const void> life{};  // what the store knows the chat by, until it is deleted
};

// A stored interaction as JSON (schemas/interaction.schema.json).
struct InteractionJson {
  std::string text;
  bool has_state = false;
  std::optional<InteractionId> continues{};  // set: the state is what it adds to that one's
  std::string model{};
  TokenUsage usage{};
};

// Reads the histories of chats piece by piece, so that nobody holds one as a whole. Thread-safe; fails as the
// InteractionStore does that gives it.
class HistorySource {
 public:
  virtual ~HistorySource() = default;

  virtual Result<ChatOutline> LoadOutline(const ChatId& chat, const HistoryRange& range,
                                          const std::optional<RunningInteraction>& running) = 0;
  enum class State { kNone, kAdded, kWhole };  // kAdded: as CheckpointStore::LoadAdded has it
  // One entry of an outline. Its final state is null unless it is asked for, and if it can be put together no more.
  // kNotFound: the chat was deleted meanwhile.
  virtual Result<InteractionJson> LoadJson(const ChatOutline& outline, const ChatOutline::Entry& entry,
                                           State state) = 0;
};

// What an export repeats, in bytes, before it says of each state what that adds to its parent's: a short chat is then
// as programs read it that know nothing of that.
inline constexpr std::size_t kRepeatedBytes = 32 * 1024;

// Whose final states a history has. kAdded: all; once kRepeatedBytes are repeated, each as what it adds.
enum class HistoryStates { kNone, kHead, kAll, kAdded };

// A chat's history while it is read. Not thread-safe; must not outlive the engine.
class HistoryReader {
 public:
  struct Entry {
    std::string json;
    bool superseded = false;
  };

  virtual ~HistoryReader() = default;
  virtual const ChatSummary& summary() const = 0;
  // The oldest of the range, if there are older ones: those before it are the page before this one.
  virtual std::optional<InteractionId> previous() const = 0;
  // The next one, oldest first; nullopt: that was all. One that runs comes last, without its final state.
  virtual Result<std::optional<Entry>> Next() = 0;
  // Which could not be read, and what those on the branch have used: known when Next has come to the end.
  virtual const std::vector<DamagedInteraction>& damaged() const = 0;
  virtual const UsageByModel& usage() const = 0;
};

}  // namespace reprise
