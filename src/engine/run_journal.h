#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/attachments.h"
#include "reprise/approval.h"
#include "reprise/engine.h"
#include "reprise/event.h"
#include "reprise/event_log.h"
#include "reprise/interaction.h"
#include "reprise/journal.h"
#include "reprise/message.h"
#include "reprise/question_store.h"
#include "reprise/result.h"
#include "reprise/run_store.h"
#include "reprise/telemetry.h"

namespace reprise {

// Writes what a run has to say into its journal. A record is a row of items (schemas/FILES.md): how the interaction
// began, events as they are shown, deltas as their bare text, and what the agent's state has got. What is added gathers
// until Append. Not thread-safe.
class RunJournal {
 public:
  // `state` is what the agent goes on from, with the user's message: it need not be kept, as it follows from the
  // interaction's parent or is in the journal already. `record`: what the run has on record by then.
  RunJournal(const AgentState& state, RunRecord record)
      : messages_kept_(state.messages.size()),
        grants_(state.grants),
        agenda_(state.agenda),
        compaction_(state.compaction),
        memory_(state.memory),
        record_(std::move(record)) {}

  // What has gathered, as the journal's first record.
  std::string TakeFirst() { return std::exchange(pending_, {}); }
  // Where what is added from now on is kept. Not null.
  void KeepIn(std::shared_ptr<RunHold> hold) {
    hold_ = std::move(hold);
    is_kept_ = hold_->keeps_journal();
  }
  const std::shared_ptr<RunHold>& hold() const { return hold_; }
  bool is_kept() const { return is_kept_; }
  // For the checkpoint, when the agent has come to its end.
  const RunRecord& record() const { return record_; }

  // Of an interaction that has just begun; stands for interaction_started too.
  // `queue_id`: of the queued message that it was, or empty. `attached` goes behind the user's message.
  // `traceparent` names its span, so that what another process does of it can be told as a part of the same.
  void AddBegin(const Interaction& interaction, OnDisconnect on_disconnect, const std::string& queue_id = {},
                const Attached& attached = {}, const std::string& traceparent = {});
  void AddEvent(const AgentEvent& event);
  void AddTextDelta(std::uint32_t round_index, std::string_view text);
  void AddThinkingDelta(std::uint32_t round_index, std::string_view text);
  void AddState(const AgentState& state);
  // Of a response whose usage event follows later, if the process lives.
  void AddUsage(std::uint32_t round_index, const TokenUsage& usage);

  // Before it is shown.
  void AddAnswer(const std::string& id, const GivenAnswer& answer);

  // Whether Append would call anybody.
  bool has_something() const { return !is_kept_ || !pending_.empty(); }
  // Appends what has gathered, as one record (RunHold::Append); `done` is called at once if nothing is kept.
  // REQUIRES: KeepIn, has_something().
  void Append(Journal::Reach reach, RunHold::Done done);

 private:
  void AddItem(char type, std::string_view content);
  std::size_t BeginItem(char type);
  void EndItem(std::size_t begin);
  void AddDelta(char type, std::uint32_t round_index, std::string_view text);

  std::shared_ptr<RunHold> hold_;  // null: it has not begun
  bool is_kept_ = true;
  std::size_t messages_kept_;
  std::vector<Grant> grants_;             // the last that were added
  Agenda agenda_;                         // likewise
  std::optional<Compaction> compaction_;  // likewise
  std::vector<Entity> memory_;            // likewise
  RunRecord record_;
  std::string pending_;  // items
};

// What a journal says about a run whose process ended.
struct InterruptedRun {
  Interaction interaction;  // RUNNING, with its durable events
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
  RunRecord record{};                                            // RestoreState completes it
  std::shared_ptr<EventLog> log = std::make_shared<EventLog>();  // all that was shown, byte for byte; not published
  std::string queue_id{};                                        // of the queued message that it was, or empty
  std::uint64_t last_seq = 0;
  std::uint32_t last_round = 0;
  std::string attached_text{};                   // behind the user's message
  std::vector<MessagePart> attached_parts{};     // likewise
  TraceContext span{};                           // of the process that ended; not valid: there was none
  std::vector<Message> messages{};               // that the run added to the state it started from
  std::optional<std::vector<Grant>> grants{};    // if they have changed
  std::optional<Agenda> agenda{};                // likewise
  std::optional<Compaction> compaction{};        // likewise
  std::optional<std::vector<Entity>> memory{};   // likewise
  std::map<std::string, GivenAnswer> answers{};  // that were given, by the question's id; some were shown too
  // What the model was heard to say in the last round, as deltas that no event repeats.
  std::string thinking{}, text{};
};
// A record for people and programs that look into a journal: a line of JSON per item ({"begin":...}, {"event":name,
// "data":...}, {"text_delta":...}, {"thinking_delta":...}, {"message":...}, {"grants":...}, {"agenda":...},
// {"compaction":...}, {"answer":...}, {"memory":...}, {"usage":...}).
// kCorruption likewise.
Result<std::string> JournalRecordAsJson(std::string_view record);

// Reads a run record by record. Not thread-safe.
class RunReader {
 public:
  explicit RunReader(const InteractionRef& ref);
  // kCorruption if it is not what RunJournal writes.
  Result<void> Add(std::string_view record);
  // As far as it was read.
  const InterruptedRun& run() const { return run_; }
  InterruptedRun Take();

 private:
  InterruptedRun run_;
  std::map<std::uint32_t, TokenUsage> spent_{};  // by round: what responses have cost that no event tells
};

// nullopt: it had not begun. kCorruption if its records are not what RunJournal writes.
Result<std::optional<InterruptedRun>> ReadRun(const InteractionRef& ref, const JournalContent& content);

}  // namespace reprise
