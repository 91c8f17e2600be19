#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/call_runner.h"
#include "agent/context.h"
#include "agent/history.h"
#include "agent/told.h"

namespace reprise {

// The agent: asks the model, runs the tools it calls, and asks again, until the model answers without a call. One
// object per run. It holds a thread of the executor while it works (more while tools run together), and none while it
// waits for the model, a person, or a retry.
class AgentLoop {
 public:
  // `state` ends with the user's message. `model_name` is the provider's own name for the model.
  AgentLoop(AgentParts parts, AgentLimits limits, std::string model_name, AgentState state, std::stop_token stop);
  ~AgentLoop();
  AgentLoop(const AgentLoop&) = delete;
  AgentLoop& operator=(const AgentLoop&) = delete;

  // Emits all events except the first and last ones (start, completion, error, cancellation), which the caller emits.
  // Begins on the calling thread, unless hooks or tools come first. `done` is called exactly once, on a thread of the
  // executor or within this call; until then the loop must live.
  void Start(std::function<void(AgentOutcome)> done, Interrupted where = {});

 private:
  class StreamRelay;

  Detached Run(Interrupted where, std::function<void(AgentOutcome)> done);
  // Fails with the reason why the interaction did not complete; kCancelled if it was stopped.
  Async<Result<Nothing>> TakeTurn(Interrupted where);
  void BeginRound();
  Async<Result<ModelResponse>> AskModel();
  Result<void> MayAsk();
  void ComposeSystemPrompt();
  const std::vector<ToolSpec>& ToldSpecs();
  void ShowMemory();
  Async<Result<Nothing>> OnlySumUp();
  Async<Nothing> ShowParts();
  // The state for requests: its messages' parts have the form that this model gets.
  const AgentState& Sent() const { return shown_ ? *shown_ : turn_.state; }
  Async<Result<Nothing>> FitContext();
  bool ClearResults();
  void ShowCleared();
  // Why the answer is not accepted yet, if a check says so.
  Result<std::optional<std::string>> SentBack(const ModelResponse& response);
  std::optional<Compaction> CompactionDue();
  Async<Result<Nothing>> SumUp(Compaction next);
  Async<Result<ModelResponse>> SendRequest();
  // Whether to send the failed request again, with files as text.
  bool SendsNoParts(const Error& failure, int retries);
  // Whether to send the failed request again; returns after the pause.
  Async<bool> PauseToRetry(Error failure, int retries);
  Result<void> Admitted(Result<void> admitted) const;
  void RecordThinking();
  void RecordSound();
  void RecordPartial();
  // `sent_back`: the response is not the answer, for this reason.
  void RecordResponse(const ModelResponse& response, const std::optional<std::string>& sent_back);
  void ShowUsage(const TokenUsage& usage, bool of_conversation = false);

  const AgentParts parts_;
  const AgentLimits limits_;
  const std::string model_name_;
  Turn turn_;
  CallRunner calls_;
  Context context_;
  MessageParts message_parts_;
  std::optional<AgentState> shown_;  // see Sent
  ToldTools::Of told_of_;
  std::shared_ptr<const ToldTools> told_;   // the tools described to the model
  std::optional<ShortTools> told_shortly_;  // their short descriptions, if the model has little room
  bool is_planning_ = false;                // the chat's mode is kPlan
  std::string sub_agents_;                  // those that the model is told of
  std::string memory_;                      // the memory in the prompt; see ShowMemory
  std::string system_;                      // the prompt of the request under way
  RequestSources sources_;                  // its modules, and the tools
  std::string told_by_guard_;               // the guard's part of it
  int times_sent_back_ = 0;
  int times_paused_ = 0;               // by the provider, which then went on
  std::int64_t estimate_ = 0;          // of the request under way
  std::unique_ptr<StreamRelay> said_;  // the model's output in this round
};

}  // namespace reprise
