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

#include "agent/agent.h"
#include "engine/attachments.h"
#include "engine/request_body.h"
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

// Writes a run's journal. A record is a row of items (schemas/FILES.md): the beginning, events as they are shown,
// deltas as plain text, and additions to the agent's state. Items gather until Append. Not thread-safe.
class RunJournal {
 public:
  // `state` is the agent's first state, with the user's message. It is not stored, because it follows from the
  // interaction's parent or is already in the journal. `record` is the run's record so far.
  RunJournal(const AgentState& state, RunRecord record)
      : messages_kept_(state.messages.size()),
        grants_(state.grants),
        agenda_(state.agenda),
        compaction_(state.compaction),
        cleared_(state.cleared),
        memory_(state.memory),
        jobs_(state.jobs),
        messages_(state.messages),
        record_(std::move(record)) {
    if (state.request) marks_.push_back({SentRequest::Purpose::kTurn, "", *state.request});
  }

  // Takes the gathered items as the journal's first record.
  std::string TakeFirst() { return std::exchange(pending_, {}); }
  // Sets where later items are stored. Not null.
  void KeepIn(std::shared_ptr<RunHold> hold) {
    hold_ = std::move(hold);
    is_kept_ = hold_->keeps_journal();
  }
  // The run is not one of a chat: only record() and marks() are wanted.
  void KeepNothing() { is_kept_ = false; }
  const std::shared_ptr<RunHold>& hold() const { return hold_; }
  bool is_kept() const { return is_kept_; }
  // For the checkpoint, when the agent has ended.
  const RunRecord& record() const { return record_; }

  // The beginning of an interaction; stands for interaction_started too. `queue_id` is the id of the queued message it
  // was, or empty. `attached` follows the user's message. `traceparent` names its span, so that spans of another
  // process join the same trace.
  void AddBegin(const Interaction& interaction, OnDisconnect on_disconnect, const std::string& queue_id = {},
                const Attached& attached = {}, const std::string& traceparent = {},
                std::optional<ApprovalMode> approval_mode = {});
  void AddEvent(const AgentEvent& event);
  void AddTextDelta(std::uint32_t round_index, std::string_view text);
  void AddThinkingDelta(std::uint32_t round_index, std::string_view text);
  void AddState(const AgentState& state);
  // The request that this one probably repeats.
  std::optional<RequestMarks> RequestBefore(const AgentObserver::Sent& sent) const;
  // Of the last state.
  const Messages& messages() const { return messages_; }
  // Puts a request of the interaction `id` on record, unless an earlier version began that. `before` is that of
  // ShortenBody.
  // Returns its index in the record.
  std::optional<std::size_t> AddRequest(InteractionId id, const AgentObserver::Sent& sent, ShortBody body,
                                        const RequestMarks* before);
  void AddResponse(std::size_t request, SentResponse response);
  // Of the last request for a turn.
  std::optional<RequestMarks> marks() const;
  // The usage of a response whose usage event follows later, if the process lives.
  void AddUsage(std::uint32_t round_index, const TokenUsage& usage);

  // Called before the answer is shown.
  void AddAnswer(const std::string& id, const GivenAnswer& answer);

  // Whether Append would call `done`.
  bool has_something() const { return !is_kept_ || !pending_.empty(); }
  // Appends the gathered items as one record (RunHold::Append); calls `done` at once if nothing is stored. REQUIRES:
  // KeepIn, has_something().
  void Append(Journal::Reach reach, RunHold::Done done);

 private:
  void AddItem(char type, std::string_view content);
  std::size_t BeginItem(char type);
  void EndItem(std::size_t begin);
  void AddDelta(char type, std::uint32_t round_index, std::string_view text);

  std::shared_ptr<RunHold> hold_;  // null until it has begun
  bool is_kept_ = true;
  std::size_t messages_kept_;
  std::vector<Grant> grants_;             // the last that were written
  Agenda agenda_;                         // likewise
  std::optional<Compaction> compaction_;  // likewise
  std::uint64_t cleared_;                 // likewise
  std::vector<Entity> memory_;            // likewise
  std::vector<StartedJob> jobs_;          // likewise
  Messages messages_;                     // of the last state
  struct Marked {
    SentRequest::Purpose purpose;
    std::string call_id;  // AgentObserver::Sent::call_id
    RequestMarks marks;
  };
  std::vector<Marked> marks_;  // of earlier requests, newest last
  RunRecord record_;
  std::string pending_;  // items
};

// The journal's account of a run whose process ended.
struct InterruptedRun {
  Interaction interaction;  // RUNNING, with its durable events
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
  std::optional<ApprovalMode> approval_mode{};                   // StartRequest::approval_mode
  RunRecord record{};                                            // RestoreState completes it
  std::shared_ptr<EventLog> log = std::make_shared<EventLog>();  // all that was shown, byte for byte; not published
  std::string queue_id{};                                        // of the queued message it was, or empty
  std::uint64_t last_seq = 0;
  std::uint32_t last_round = 0;
  std::string attached_text{};                    // after the user's message
  std::vector<MessagePart> attached_parts{};      // likewise
  TraceContext span{};                            // of the ended process; invalid if there was none
  std::vector<Message> messages{};                // added by the run to its first state
  std::optional<std::vector<Grant>> grants{};     // if they have changed
  std::optional<Agenda> agenda{};                 // likewise
  std::optional<Compaction> compaction{};         // likewise
  std::optional<std::uint64_t> cleared{};         // likewise
  std::optional<std::vector<Entity>> memory{};    // likewise
  std::optional<std::vector<StartedJob>> jobs{};  // likewise
  std::map<std::string, GivenAnswer> answers{};   // by the question's id; some were shown too
  std::optional<RequestMarks> marks{};            // of the last request for a turn
  TokenUsage unshown_usage{};                     // of the last round, counted in `interaction`
  // Text of the model in the last round, from deltas that no event repeats.
  std::string thinking{}, text{};
};
// A record for people and programs that look into a journal, with a line of JSON per item ({"begin":...},
// {"event":name, "data":...}, {"text_delta":...}, {"thinking_delta":...}, {"message":...}, {"grants":...},
// {"agenda":...}, {"compaction":...}, {"cleared":N}, {"answer":...}, {"memory":...}, {"jobs":...},
// {"usage":...}, {"request":...}, {"response":[N,...]}). kCorruption if RunJournal did not write it.
Result<std::string> JournalRecordAsJson(std::string_view record);

// Reads a run record by record. Not thread-safe.
class RunReader {
 public:
  explicit RunReader(const InteractionRef& ref);
  // kCorruption if RunJournal did not write the record.
  Result<void> Add(std::string_view record);
  // The run as far as it was read.
  const InterruptedRun& run() const { return run_; }
  InterruptedRun Take();

 private:
  InterruptedRun run_;
  std::map<std::uint32_t, TokenUsage> spent_{};  // by round: usage that no event reports
};

// nullopt if the run had not begun. kCorruption if RunJournal did not write the records.
Result<std::optional<InterruptedRun>> ReadRun(const InteractionRef& ref, const JournalContent& content);

}  // namespace reprise
