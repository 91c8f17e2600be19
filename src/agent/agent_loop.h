#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/call_guard.h"
#include "agent/context.h"
#include "agent/retry_policy.h"
#include "agent/summarizer.h"
#include "reprise/approval.h"
#include "reprise/engine.h"
#include "reprise/event.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/model_client.h"
#include "reprise/system_prompt.h"
#include "reprise/tool.h"

namespace reprise {

// Where the loop tells what happens. Called by the thread that the loop works on, the model client's and
// tools' threads; Emit by several at once while tools run together.
class AgentObserver {
 public:
  virtual ~AgentObserver() = default;
  // The event is numbered, kept and shown before this returns.
  virtual void Emit(std::uint32_t round_index, EventPayload payload) = 0;
  // Deltas gather until FlushDeltas shows them.
  virtual void AddTextDelta(std::uint32_t round_index, std::string_view text) = 0;
  virtual void AddThinkingDelta(std::uint32_t round_index, std::string_view text) = 0;
  virtual void FlushDeltas() = 0;
  // The state has grown; told before the event that shows it.
  virtual void StateGrew(const AgentState& state) = 0;
  // What a response with calls has cost; told before what it says is shown. The usage event follows when the calls have
  // ended.
  virtual void Spent(std::uint32_t /*round_index*/, const TokenUsage& /*usage*/) {}
};

// Where the loop asks a person.
class ApprovalGate {
 public:
  virtual ~ApprovalGate() = default;
  // Makes the requests answerable and shows them as approval_required (the gate fills in approval_id, created_at,
  // expires_at), all of them or, if the process ends, none. Returns their ids. Shown before them: that an earlier one
  // is `withdrawn`.
  virtual std::vector<std::string> Ask(std::uint32_t round_index, std::vector<event::ApprovalRequired> requests,
                                       std::optional<event::Rejected> withdrawn) = 0;
  // Blocks until one of these is answered or expires. When `stop` is requested first, nobody can answer them any more:
  // kCancelled.
  struct Decision {
    std::string approval_id;
    ApprovalAnswer answer;
  };
  virtual Result<Decision> AwaitAnswer(std::span<const std::string> approval_ids, const std::stop_token& stop) = 0;
  // Whether a person has allowed this call in every chat.
  virtual bool IsGranted(const Grant& call) = 0;
  // Asks what a tool asks, shown as input_required (the gate fills in request_id), and blocks as AwaitAnswer does.
  struct Reply {
    std::string request_id;
    InputAnswer answer;
  };
  virtual Result<Reply> AskInput(std::uint32_t round_index, event::InputRequired request, std::stop_token stop) = 0;
};

struct AgentLimits {
  int max_rounds = 25;
  std::chrono::milliseconds tool_timeout{60'000};
  ApprovalMode approval_mode = ApprovalMode::kAsk;
  bool nobody_to_ask = false;  // what would ask is refused
  RetryPolicy retry{};
  std::int64_t context_window = 0;              // of the model, tokens; 0: not known, and everything is sent
  std::size_t max_said = kMaxInteractionBytes;  // by the model, in all responses
  bool sum_up_first = false;                    // a person wants a summary in place of what was said before
  bool check_confirmations = true;              // false, of a replay: the record knows what was refused
};

// What holds the agent back. Null: nothing does.
struct AgentGuards {
  // Why no further request may be sent, after the run has used so much.
  std::function<std::optional<std::string>(const TokenUsage& used)> over_budget{};
  // Asked once for each call that could run, before a person is: why it may not, for the model.
  std::function<std::optional<std::string>()> refuse_call{};
};

struct AgentOutcome {
  InteractionStatus status = InteractionStatus::kFailed;  // finished
  AgentState state;                                       // well-formed for a provider, whatever happened
  TokenUsage usage;
  std::optional<Error> error;  // why it FAILED
};

// Runs a job on a thread that may block.
using Executor = std::function<void(std::function<void()>)>;
// Calls a function later, on a thread that must not be held up.
using Delay = std::function<void(std::chrono::milliseconds, std::function<void()>)>;

// The agent: asks the model, runs the tools it calls, and again, until it answers without a call. One object per run.
// It holds a thread of the executor while it works or waits for a person (more while several tools run at once), and
// none while the model writes or a request that failed waits to be sent again.
class AgentLoop {
 public:
  struct Parts {  // all must outlive the loop
    ModelClient& model;
    const ToolRegistry& tools;
    AgentObserver& observer;
    ApprovalGate& approvals;
    Executor executor;
    Delay delay{};  // null: a request that failed is not sent again
    SystemPrompt prompt{};
    AgentGuards guards{};
    FilesOfChat* files = nullptr;  // for the tools
    CallGuard* guard = nullptr;    // null: everything may be done, and nothing is kept account of
    // What the models of an interaction have said, in bytes; null: nothing yet.
    std::shared_ptr<std::atomic<std::size_t>> said{};
  };
  // `state` ends with the user's message. `model_name` is the provider's own name for the model.
  AgentLoop(Parts parts, AgentLimits limits, std::string model_name, AgentState state, std::stop_token stop);
  ~AgentLoop();
  AgentLoop(const AgentLoop&) = delete;
  AgentLoop& operator=(const AgentLoop&) = delete;

  // A call that is not over, and what has been shown of it.
  struct OpenCall {
    ToolCall call;
    std::string approval_id{};               // a person was asked for approval
    std::string terms_digest{};              // and was shown this
    std::optional<ApprovalAnswer> answer{};  // and has said this
    bool has_asked = false;                  // it runs and has asked a person, who has not answered
    std::optional<ToolOutcome> outcome{};    // all that there will ever be of it
    bool was_shown() const { return !approval_id.empty() || has_asked || outcome; }
  };
  // Where a loop that was interrupted goes on: in this round, with what is left of its calls (those that were shown
  // come first); without calls it asks the model.
  struct Interrupted {
    std::uint32_t round_index = 0;
    std::vector<OpenCall> calls{};
  };

  // Emits everything but the frames and the last word (error, cancelled), which are the caller's. `done` is called
  // exactly once, on a thread of the executor or within this call; until then the loop must live.
  void Start(std::function<void(AgentOutcome)> done);
  // The same, on the calling thread, from where it was interrupted.
  void Continue(const Interrupted& interrupted, std::function<void(AgentOutcome)> done);

 private:
  class StreamRelay;
  struct Batch;
  // A tool, and the set it is of.
  struct OfferedTool {
    std::shared_ptr<const ToolSet> tools;
    Tool* tool;  // null: there is no such tool
    std::string terms_digest() const;
  };
  struct PreparedCall {
    ToolCall call;  // as it may run
    OfferedTool offered;
    std::optional<std::string> refusal = {};  // why it cannot run, for the model
    std::string refused_by = {};              // the same for the account
    bool reviewed = false;
    void Refuse(std::string_view by, std::string why) {
      refused_by = by;
      refusal = std::move(why);
    }
  };

  // False: the guard or a stop has ended the loop.
  bool Admitted(const Result<void>& admitted);
  void FinishByGuard(const Error& why);
  // Ends the loop after a response that the guard does not let through.
  void Unheard(const TokenUsage& usage, const Error& why);
  void ShowUsage(const TokenUsage& usage) const;
  void Begin();
  // On a thread of the executor.
  void Later(std::function<void()> step);
  // A step for which there is no memory ends the run.
  void Step(const std::function<void()>& step);
  void AskModel();
  void ComposeSystemPrompt();
  void ShowMemory();
  void SendRequest();
  std::size_t MaySay() const;
  void SumUp(Compaction next);
  void TakeSummary(Compaction next, const TokenUsage& usage);
  void TakeResponse(const Result<ModelResponse>& response);
  bool RetryLater(const Error& error);
  void RecordResponse(const ModelResponse& response);
  void RecordPartial();
  void RunCalls(const std::vector<ToolCall>& calls);
  struct AskedCall {
    OpenCall open;
    OfferedTool offered;
    bool knows_secrets = false;  // who agreed to it: as ToolContext says
    bool waits() const { return !open.approval_id.empty() && !open.answer && !open.outcome; }
  };
  bool AsksFirst(const PreparedCall& prepared) const;
  static bool HasEqual(std::span<const PreparedCall> calls, const PreparedCall& prepared);
  static event::ApprovalRequired RequestFor(const PreparedCall& prepared);
  void AskAll(std::span<const PreparedCall> calls);
  void RunAsked(std::vector<AskedCall> calls);
  void TakeAnswer(std::vector<AskedCall>& calls);
  bool AsksAnew(AskedCall& asked);
  void RecordAnswer(const OpenCall& call);
  ToolOutcome RunAnswered(AskedCall& asked);
  void RecordResult(const ToolCall& call, ToolOutcome outcome);
  OfferedTool Offered(const std::string& name) const;
  OfferedTool OfferedNow(const OfferedTool& before, const std::string& name) const;
  PreparedCall Prepare(const ToolCall& call, OfferedTool offered) const;
  void Renew(PreparedCall& prepared) const;
  void Review(PreparedCall& prepared) const;
  bool RunsBeside(const PreparedCall& prepared) const;
  void RunTogether(std::span<const PreparedCall> calls);
  static void WorkOn(AgentLoop& loop, Batch& batch);
  void NextRound();
  ToolOutcome RunCall(const PreparedCall& prepared);
  bool CanAsk() const { return !limits_.nobody_to_ask && limits_.approval_mode != ApprovalMode::kDenyAll; }
  // `approval_id`: of the approval of this very call; empty: none was needed. `goes_on`: it began before the process
  // was another, and stands on account.
  ToolOutcome RunTool(const OfferedTool& offered, const ToolCall& call, const std::string& arguments,
                      const std::string& approval_id, bool knows_secrets = false, bool goes_on = false);
  Result<void> Note(AuditEntry entry) const;
  void NoteRefusal(const ToolCall& call, std::string_view by) const;
  void ChangeAgenda(const ToolCall& call, const std::function<void(Agenda&)>& change);
  ToolAnswer AskPerson(const ToolCall& call, const ToolQuestion& question, const std::stop_token& over);
  // Whether a call may run without a person being asked for this very one, and why (as the audit log names it).
  struct Permission {
    bool must_ask;
    std::string_view reason;
    bool agreed = false;         // somebody has agreed to it: this one, or all that are equal
    bool knows_secrets = false;  // and knew, as ToolContext says
  };
  Permission PermissionFor(const OfferedTool& offered, const std::string& arguments) const;
  bool MustAsk(const PreparedCall& prepared) const {
    return PermissionFor(prepared.offered, prepared.call.arguments).must_ask;
  }
  void Finish(InteractionStatus status, std::optional<Error> error = std::nullopt);

  const Parts parts_;
  const AgentLimits limits_;
  const std::string model_name_;
  const std::stop_token stop_;
  std::shared_ptr<const ToolSet> tools_;  // what the model knows of in this round
  AgentState state_;
  Context context_;
  std::string memory_;                    // as the model is told it; see ShowMemory
  std::string system_;                    // prompt of the request under way
  std::string told_by_guard_;             // part of it
  std::optional<Summarizer> summarizer_;  // of the summary under way
  std::int64_t estimate_ = 0;             // of the request under way
  TokenUsage usage_;
  TokenUsage usage_before_calls_;  // usage_ when the calls of this round began
  std::uint32_t round_ = 0;
  int retries_ = 0;                    // of this round's request
  bool goes_round_ = false;            // though it was told
  std::unique_ptr<StreamRelay> said_;  // by the model, in this round
  // Ends a pause or a summary when the run is stopped.
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
  std::function<void(AgentOutcome)> done_;
};

}  // namespace reprise
