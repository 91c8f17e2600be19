#pragma once

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

#include "agent/agent.h"
#include "approval/decision.h"
#include "base/mutex.h"

namespace reprise {

// The state of a turn, shared by AgentLoop and CallRunner, which use it in alternation.
struct Turn {
  const AgentParts& parts;
  const AgentLimits& limits;
  const std::string& model_name;
  const std::stop_token stop;
  const ApprovalPolicy policy;
  AgentState state;
  std::shared_ptr<const ToolSet> tools;  // the model's tools in this round
  std::uint32_t round = 0;
  TokenUsage usage{};
  TokenUsage usage_before_calls{};  // of this round
  std::vector<Grant> grants{};      // the state's, as of the calls that run now; for their threads
  Span span{};                      // of this round
  bool goes_round = false;          // the model repeats the same calls despite a warning
  bool stands_still = false;        // its calls make no progress despite a warning
};

// Runs the tool calls of a round: reviews each when its turn comes, asks people, runs compatible calls concurrently,
// and records one result for each. Holds a thread while tools run, and none while it waits for a person.
class CallRunner {
 public:
  explicit CallRunner(Turn& turn);

  // Runs all calls of a response, in order.
  Async<Nothing> Run(std::vector<ToolCall> made);
  // Runs the remaining calls of an interrupted run. Those that were shown as waiting still wait, whatever the current
  // configuration says.
  Async<Nothing> Finish(std::vector<OpenCall> left);

 private:
  struct PreparedCall : ReviewedCall {
    bool is_reviewed = false;
    Decision decision{};
    std::optional<std::string> failure{};  // see FailureOf; set when its turn comes
    bool is_tried = false;                 // whether it is set; computed once, because it may ask an editor
  };
  struct AskedCall {
    OpenCall open;
    OfferedTool offered;
    Decision decision{};  // set when it is answered
    Span span{};          // from the question to the result
    Span wait{};          // until the answer
  };
  // A call that runs now.
  struct Execution {
    const OfferedTool& offered;
    const ToolCall& call;
    const std::string& arguments;
    Decision::Run permission;
    ApprovalMode mode_after = ApprovalMode::kAsk;  // in the answer to a plan
    std::string approval_id = {};                  // of this call's own approval; empty: none was needed
    bool goes_on = false;                          // it began in an earlier process and is already in the audit log
    const Span* parent = nullptr;                  // null: the round's span
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  };
  struct Batch;

  OfferedTool OfferedNow(const OfferedTool& before, const std::string& name) const;
  PreparedCall Prepare(const ToolCall& call, OfferedTool offered) const;
  void Renew(PreparedCall& call) const;
  void Review(PreparedCall& call) const;
  void DecideNow(PreparedCall& call) const { call.decision = Decide(call, turn_.state, turn_.policy); }
  // The result of a call that would be asked about but cannot succeed; nullopt if it may succeed.
  std::optional<std::string> FailureOf(const PreparedCall& call) const;

  using Calls = std::span<PreparedCall>;
  template <typename Fits>
  Calls TakeWhile(Calls calls, const Fits& fits) const;
  Calls ThatRunTogether(Calls calls) const;
  Calls ThatAskTogether(Calls calls) const;

  Async<Nothing> RunTogether(Calls calls);
  void WorkOn(Batch& batch);
  Async<Nothing> RunAlone(const PreparedCall& prepared, const ToolCall& made);

  Async<Nothing> Ask(Calls calls);
  Async<Nothing> RunAsked(std::vector<AskedCall> calls);
  Async<Nothing> TakeAnswer(std::vector<AskedCall>& calls);
  bool AsksAnew(AskedCall& asked);
  void BeginCallSpans(AskedCall& asked) const;
  void RecordAnswer(const OpenCall& asked);
  void ShowAnswer(const OpenCall& asked) const;
  Async<ToolOutcome> RunAnswered(AskedCall& asked);

  // Like RunTool, but also for a tool that only asks.
  Async<ToolOutcome> Execute(const Execution& execution);
  ToolOutcome RunTool(const Execution& execution);
  // The result of a call that does not run after all; nullopt if it runs.
  std::optional<ToolOutcome> Begin(const Execution& execution) const;
  Span BeginSpan(const Execution& execution) const;
  // Records workspace changes until EndRecording; null if they are not recorded.
  std::unique_ptr<CallRecorder> BeginRecording(const Execution& execution) const;
  void EndRecording(const Execution& execution, std::unique_ptr<CallRecorder> recorder, ToolOutcome& outcome) const;
  ToolOutcome End(const Execution& execution, ToolOutcome outcome, Span span) const;
  ToolContext ContextOf(const Execution& execution, const Span& span);
  std::function<void(std::string_view)> LiveOutputOf(const ToolCall& call) const;
  void LookForStandstill(std::string& output);
  void RecordResult(const ToolCall& call, ToolOutcome outcome);

  event::InputRequired RequestFor(const ToolCall& call, const ToolQuestion& question) const;
  ToolAnswer TakeReply(const ToolCall& call, Result<ApprovalGate::Reply> reply) const;
  ToolAnswer AskAndWait(const ToolCall& call, const ToolQuestion& question, const std::stop_token& over) const;
  // ToolContext::may_reach.
  std::string MayReach(const Execution& execution, const std::string& place, const std::stop_token& over);
  std::optional<ApprovalAnswer> AskAboutHost(const OpenCall& open, const std::string& place,
                                             const std::stop_token& over) const;
  // The hosts that people have allowed in the chat during this call.
  std::vector<Grant> TakeNewHosts(const std::string& call_id);
  void ChangeAgenda(const ToolCall& call, const std::function<void(Agenda&)>& change);

  Result<void> Note(AuditEntry entry) const;
  void NoteRefusal(const ToolCall& call, std::string_view why, const std::vector<std::string>& decided_by = {}) const;
  // Counts the use of the grants that let a call run.
  void CountUse(const Decision::Run& permission);
  void Emit(EventPayload payload) const { turn_.parts.observer.Emit(turn_.round, std::move(payload)); }
  bool is_stopped() const { return turn_.stop.stop_requested(); }

  Turn& turn_;
  // Calls run beside each other, and their questions about hosts do not come on the turn's thread.
  Mutex hosts_mutex_;
  std::vector<Grant> hosts_ GUARDED_BY(hosts_mutex_);  // grants of kNetworkTool in this chat
  std::vector<std::pair<std::string, Grant>> new_hosts_ GUARDED_BY(hosts_mutex_);  // by call, not in turn_.state yet
};

}  // namespace reprise
