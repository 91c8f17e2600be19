#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/engine.h"
#include "reprise/interaction.h"
#include "reprise/journal.h"
#include "reprise/message.h"
#include "reprise/result.h"

namespace reprise {

// Writes what a run has to say into its journal. Each record is one JSON object on one line (schemas/FILES.md): the
// first has "begin", the others "frames" (the SSE bytes that were shown next) and, if the state has grown since,
// "messages" (the new ones) and "grants" (all). Not thread-safe.
class RunJournal {
 public:
  // `journal` may be null: nothing is kept then. `messages` of the run's state need not be kept, they follow from the
  // interaction's parent, or are in the journal already.
  RunJournal(std::unique_ptr<Journal> journal, std::size_t messages)
      : journal_(std::move(journal)), messages_kept_(messages) {}

  // The first record of an interaction that has just begun.
  Result<void> Begin(const Interaction& interaction, OnDisconnect on_disconnect);

  // Goes into the next record.
  void StateGrew(const AgentState& state);
  Result<void> Append(std::string_view frames, Journal::Reach reach);

 private:
  std::unique_ptr<Journal> journal_;
  std::size_t messages_kept_;
  std::string messages_, grants_;  // for the next record, as JSON; no messages: nothing has grown
};

// What a journal says about a run whose process ended.
struct InterruptedRun {
  Interaction interaction;  // RUNNING, with its durable events
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
  std::string frames{};  // as they were shown
  std::uint64_t last_seq = 0;
  std::uint32_t last_round = 0;
  std::vector<Message> messages{};             // that the run added to the state it started from
  std::optional<std::vector<Grant>> grants{};  // if they have changed
  // What the model was heard to say in the last round, as deltas that no event repeats.
  std::string thinking{}, text{};
};
// nullopt: it had not begun. kCorruption if its records are not what RunJournal writes.
Result<std::optional<InterruptedRun>> ReadRun(const InteractionRef& ref, const JournalContent& content);

}  // namespace reprise
