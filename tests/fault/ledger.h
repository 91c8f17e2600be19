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

// The part of an interaction's stream that a client has seen, parsed.
struct SeenEvents {
  explicit SeenEvents(std::string text);

  struct Frame {
    std::string name;
    std::optional<AgentEvent> event{};  // absent for deltas and frames
    std::string text{};                 // of a text_delta
    std::size_t end = 0;                // offset of its end
  };
  std::string bytes;
  std::vector<Frame> frames;
  std::size_t acted_upon = 0;  // number of frames up to the last one that a client or tool acts upon
  std::optional<InteractionStatus> ended{};
  std::vector<std::string> errors{};  // the codes of its error events
};

// Everything that clients were told, and so must find again.
struct Promises {
  struct Run {
    std::shared_ptr<const SeenEvents> seen;
    bool answered = false;        // an answer to the last approval seen, or a cancel, was begun
    std::set<std::string> ran{};  // calls whose tool has run
    std::optional<InteractionStatus> ended{};
  };
  struct Chat {
    bool exists = false;
    bool deleting = false, deleted = false;
    bool moving = false;                             // a run is in progress, or its end is unknown
    std::set<std::optional<InteractionId>> heads{};  // several during a change; empty: any
    std::set<std::string> titles{};                  // empty: any
  };
  std::map<std::pair<ChatId, InteractionId>, Run> runs;
  std::map<ChatId, Chat> chats;
};

// What clients were told, and after how many writes. Thread-safe.
class Ledger {
 public:
  // `position` returns the number of writes so far.
  explicit Ledger(std::function<std::size_t()> position) : position_(std::move(position)) {}

  using Entry = std::function<void(Promises&)>;
  void Note(Entry entry);
  std::size_t size() const;

  // Reads the ledger in step with the writes.
  class Reader {
   public:
    explicit Reader(const Ledger& ledger) : ledger_(ledger) {}
    // The promises after this many writes. REQUIRES: called with rising positions.
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
