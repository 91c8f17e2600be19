#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reprise/event.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"

namespace reprise {

// What somebody has seen of an interaction's stream, taken apart.
struct SeenEvents {
  explicit SeenEvents(std::string text);

  struct Frame {
    std::string name;
    std::optional<AgentEvent> event{};  // but for deltas and frames
    std::string text{};                 // of a text_delta
    std::size_t end = 0;                // offset behind it
  };
  std::string bytes;
  std::vector<Frame> frames;
  std::size_t acted_upon = 0;  // how many frames up to the last that a client or a tool acts upon
  std::optional<InteractionStatus> ended{};
  std::vector<std::string> errors{};  // the codes of its error events
};

// What clients have been told, and so must find again.
struct Promises {
  struct Run {
    std::shared_ptr<const SeenEvents> seen;
    bool answered = false;        // somebody has begun to answer the approval that was seen last, or to cancel
    std::set<std::string> ran{};  // calls whose tool has run
    std::optional<InteractionStatus> ended{};
  };
  struct Chat {
    bool exists = false;
    bool deleting = false, deleted = false;
    bool moving = false;                             // a run is under way, or its end is not known
    std::set<std::optional<InteractionId>> heads{};  // several while a change is under way; empty: anything
    std::set<std::string> titles{};                  // empty: anything
  };
  std::map<std::pair<ChatId, InteractionId>, Run> runs;
  std::map<ChatId, Chat> chats;
};

// Who was told what, and how many writes had been done by then. Thread-safe.
class Ledger {
 public:
  // `position`: the writes so far.
  explicit Ledger(std::function<std::size_t()> position) : position_(std::move(position)) {}

  using Entry = std::function<void(Promises&)>;
  void Note(Entry entry);
  std::size_t size() const;

  // Reads the ledger along with the writes.
  class Reader {
   public:
    explicit Reader(const Ledger& ledger) : ledger_(ledger) {}
    // What was promised when there were this many writes. REQUIRES: called with rising positions.
    const Promises& At(std::size_t position);
    const Promises& AtTheEnd();

   private:
    const Ledger& ledger_;
    std::size_t next_ = 0;
    Promises promises_;
  };

 private:
  const std::function<std::size_t()> position_;
  mutable std::mutex mutex_;
  std::vector<std::pair<std::size_t, Entry>> entries_;  // guarded by mutex_
};

}  // namespace reprise
