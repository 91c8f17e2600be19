#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent.h"
#include "approval/decision.h"

namespace reprise {

// What an agent is in the middle of: its loop and what runs the calls of a round work on it in turn.
struct Turn {
  const AgentParts& parts;
  const AgentLimits& limits;
  const std::string& model_name;
  const std::stop_token stop;
  const ApprovalPolicy policy;
  AgentState state;
  std::shared_ptr<const ToolSet> tools;  // what the model knows of in this round
  std::uint32_t round = 0;
  TokenUsage usage{};
  TokenUsage usage_before_calls{};  // of this round
  Span span{};                      // of this round
  bool goes_round = false;          // it makes the same calls again and again, though it was told
  bool stands_still = false;        // its calls lead nowhere, though it was told
};

// Runs the tool calls of a round: reviews each when its turn comes, asks people, runs what fits together at the same
// time, and records one result for each. Holds a thread while tools run, and none while a person thinks.
class CallRunner {
 public:
  explicit CallRunner(Turn& turn) : turn_(turn) {}

  // All that the model asks for, in its order.
  Async<Nothing> Run(std::vector<ToolCall> made);
  // What an interrupted run has left of its calls. Those that were shown as waiting wait, whatever the configuration
  // says by now.
  Async<Nothing> Finish(std::vector<OpenCall> left);

 private:
  struct PreparedCall : ReviewedCall {
    bool is_reviewed = false;
    Decision decision{};
    std::optional<std::string> failure{};  // once its turn has come; an editor is asked only once what it holds
    bool is_tried = false;
  };
  struct AskedCall {
    OpenCall open;
    OfferedTool offered;
    Decision decision{};  // once it is answered
    Span span{};          // from the question to the result
    Span wait{};          // until it is answered
  };
  // A call that runs now.
  struct Execution {
    const OfferedTool& offered;
    const ToolCall& call;
    const std::string& arguments;
    Decision::Run permission;
    std::string approval_id = {};  // of the approval of this very call; empty: none was needed
    bool goes_on = false;          // it began before the process was another, and stands on account
    const Span* parent = nullptr;  // what it is a part of; null: of the round
    std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  };
  struct Batch;

  OfferedTool OfferedNow(const OfferedTool& before, const std::string& name) const;
  PreparedCall Prepare(const ToolCall& call, OfferedTool offered) const;
  void Renew(PreparedCall& call) const;
  void Review(PreparedCall& call) const;
  void DecideNow(PreparedCall& call) const { call.decision = Decide(call, turn_.state, turn_.policy); }
  // What the model is told of a call that would be asked about and must fail; nullopt: it may succeed.
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
  Async<ToolOutcome> RunAnswered(AskedCall& asked);

  // As RunTool, also for a tool that only asks.
  Async<ToolOutcome> Execute(const Execution& execution);
  ToolOutcome RunTool(const Execution& execution);
  // Why it does not run after all.
  std::optional<ToolOutcome> Begin(const Execution& execution) const;
  Span BeginSpan(const Execution& execution) const;
  // From here to EndRecording the workspace is watched; null: nobody does.
  std::unique_ptr<CallRecorder> BeginRecording(const Execution& execution) const;
  void EndRecording(const Execution& execution, std::unique_ptr<CallRecorder> recorder) const;
  ToolOutcome End(const Execution& execution, ToolOutcome outcome, Span span) const;
  ToolContext ContextOf(const Execution& execution, const Span& span);
  std::function<void(std::string_view)> LiveOutputOf(const ToolCall& call) const;
  void LookForStandstill(std::string& output);
  void RecordResult(const ToolCall& call, ToolOutcome outcome);

  event::InputRequired RequestFor(const ToolCall& call, const ToolQuestion& question) const;
  ToolAnswer TakeReply(const ToolCall& call, Result<ApprovalGate::Reply> reply) const;
  ToolAnswer AskAndWait(const ToolCall& call, const ToolQuestion& question, const std::stop_token& over) const;
  void ChangeAgenda(const ToolCall& call, const std::function<void(Agenda&)>& change);

  Result<void> Note(AuditEntry entry) const;
  void NoteRefusal(const ToolCall& call, std::string_view why, const std::vector<std::string>& decided_by = {}) const;
  // That a call runs because of what was granted.
  void CountUse(const Decision::Run& permission);
  void Emit(EventPayload payload) const { turn_.parts.observer.Emit(turn_.round, std::move(payload)); }
  bool is_stopped() const { return turn_.stop.stop_requested(); }

  Turn& turn_;
};

}  // namespace reprise
