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

// Selects interactions of a chat.
struct HistoryRange {
  bool all_branches = false;                           // else only the branch that the chat ends at
  std::optional<std::size_t> limit = std::nullopt;     // maximum number, the newest; nullopt: all
  std::optional<InteractionId> before = std::nullopt;  // only those before this one, which must be in the history

  bool is_whole() const { return !limit && !before; }
};

// A running interaction. It stands on the branch that the chat ends at.
struct RunningInteraction {
  InteractionId id;
  std::optional<InteractionId> parent_id;
};

// The interactions of a range, before their content is read.
struct ChatOutline {
  struct Entry {
    InteractionId id;
    bool superseded = false;
    std::string digest{};  // the expected digest of its record; empty: unknown
  };
  ChatSummary summary;
  // Oldest first, including damaged and missing ones. For a whole chat also those on other branches, whatever the
  // range.
  std::vector<Entry> entries{};
  bool more = false;                   // there are older ones
  bool has_before = true;              // false: HistoryRange::before is not among them
  bool has_running = false;            // the interaction named as running is stored by now
  std::shared_ptr<const void> life{};  // the store's token for the chat until it is deleted
};

// A stored interaction as JSON (schemas/interaction.schema.json).
struct InteractionJson {
  std::string text;
  bool has_state = false;
  std::optional<InteractionId> continues{};  // set: the state holds only the additions to that one's
  std::string model{};
  TokenUsage usage{};
};

// Reads the histories of chats piece by piece, so that a whole one is never in memory. Thread-safe; failures as the
// InteractionStore that owns it.
class HistorySource {
 public:
  virtual ~HistorySource() = default;

  virtual Result<ChatOutline> LoadOutline(const ChatId& chat, const HistoryRange& range,
                                          const std::optional<RunningInteraction>& running) = 0;
  enum class State { kNone, kAdded, kWhole };  // kAdded: as CheckpointStore::LoadAdded
  // One entry of an outline. Its final state is null unless requested, and if it can no longer be assembled. kNotFound:
  // the chat was deleted meanwhile.
  virtual Result<InteractionJson> LoadJson(const ChatOutline& outline, const ChatOutline::Entry& entry,
                                           State state) = 0;
};

// Bytes that an export may repeat before states hold only additions to their parent's: programs that do not know that
// form can then read a short chat.
inline constexpr std::size_t kRepeatedBytes = 32 * 1024;

// Which final states a history has. kAdded: all; after kRepeatedBytes of repetition, only the additions.
enum class HistoryStates { kNone, kHead, kAll, kAdded };

// Reads a chat's history. Not thread-safe; must not outlive the engine.
//
//   auto reader = engine.ReadHistory(chat, {.limit = 20}, reprise::HistoryStates::kNone);
//   if (!reader) return Complain(reader.error().message);
//   for (auto entry = (*reader)->Next(); entry && *entry; entry = (*reader)->Next()) Print((*entry)->json);
class HistoryReader {
 public:
  struct Entry {
    std::string json;
    bool superseded = false;
  };

  virtual ~HistoryReader() = default;
  virtual const ChatSummary& summary() const = 0;
  // The oldest of the range, if there are older ones: pass it as `before` for the previous page.
  virtual std::optional<InteractionId> previous() const = 0;
  // The next one, oldest first; nullopt: the end. A running one comes last, without its final state.
  virtual Result<std::optional<Entry>> Next() = 0;
  // Unreadable interactions, and usage on the branch: complete when Next has reached the end.
  virtual const std::vector<DamagedInteraction>& damaged() const = 0;
  virtual const UsageByModel& usage() const = 0;
};

}  // namespace reprise
