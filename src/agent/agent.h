#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "agent/retry_policy.h"
#include "base/async.h"
#include "reprise/approval.h"
#include "reprise/audit_log.h"
#include "reprise/event.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/model_client.h"
#include "reprise/result.h"
#include "reprise/system_prompt.h"
#include "reprise/telemetry.h"
#include "reprise/tool.h"
#include "reprise/workspace_history.h"

namespace reprise {

// Stands between an agent and what it does: may refuse or change its tool calls, keeps account of them, and takes out
// of what tools say that which nobody is to see. Thread-safe; its functions block on the thread that they are called
// on.
class CallGuard {
 public:
  virtual ~CallGuard() = default;

  // True if Begin or Admit may take a while.
  virtual bool reviews_requests() const { return false; }
  // Before anything else. What fails here does not begin, and the run FAILED; likewise Admit and Heard.
  virtual Result<void> Begin(const std::stop_token& /*stop*/) { return {}; }
  // Before what is asked of the model in a round, and again when it is asked again. Gives what the model is to be told
  // with it.
  virtual Result<std::string> Admit(std::uint32_t /*round_index*/, const std::string& /*model*/,
                                    const std::stop_token& /*stop*/) {
    return std::string();
  }
  // What the model has said, before anything of it is done.
  virtual Result<void> Heard(std::uint32_t /*round_index*/, const std::string& /*model*/, const std::string& /*text*/,
                             const std::stop_token& /*stop*/) {
    return {};
  }

  struct Verdict {
    std::optional<std::string> refusal{};    // why it does not run, for the model
    std::optional<std::string> arguments{};  // to be taken in place of the model's
  };
  // Of a call with valid arguments, before anybody is asked about it.
  virtual Verdict Review(std::uint32_t round_index, const ToolCall& call, const std::stop_token& stop) = 0;
  // Puts it on account; who and where is filled in. What fails here must not happen.
  virtual Result<void> Note(AuditEntry entry) = 0;
  // What a tool says, as it may be seen.
  virtual std::string Redacted(std::string text) const { return text; }
  // What a call has led to, as it may be seen.
  virtual ToolOutcome Passed(std::uint32_t round_index, const ToolCall& call, ToolOutcome outcome,
                             const std::stop_token& stop) = 0;
  // The same for one call's live output: takes it piece by piece, gives back what may be shown by now. Empty: all may.
  virtual std::function<std::string(std::string_view)> LiveFilter() const { return {}; }
};

// What an agent is made of, and what it says to whoever runs it.

// Where the agent tells what happens. Called by the thread that it works on, the model client's and tools' threads;
// Emit by several at once while tools run together.
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

// Where the agent asks a person. What is awaited goes on with a job of `executor`.
class ApprovalGate {
 public:
  virtual ~ApprovalGate() = default;
  // Makes the requests answerable and shows them as approval_required (the gate fills in approval_id, created_at,
  // expires_at), all of them or, if the process ends, none. Returns their ids. Shown before them: that an earlier one
  // is `withdrawn`.
  virtual std::vector<std::string> Ask(std::uint32_t round_index, std::vector<event::ApprovalRequired> requests,
                                       std::optional<event::Rejected> withdrawn) = 0;
  struct Answered {
    std::string approval_id;
    ApprovalAnswer answer;
  };
  // Until one of these is answered or expires. When `stop` is requested first, nobody can answer them any more:
  // kCancelled.
  virtual Async<Result<Answered>> AwaitAnswer(std::vector<std::string> approval_ids, std::stop_token stop,
                                              const Executor& executor) = 0;
  // What decides on this call now, as it may have been changed meanwhile. (To a record it makes a difference which call
  // it is.)
  virtual ApprovalMode ModeFor(const std::string& call_id) = 0;
  // What a person has allowed in every chat that bears on this call (GrantStore::For), and that a call ran because of
  // it.
  virtual std::vector<Grant> StandingGrants(const Grant& call) = 0;
  virtual void NoteUse(const std::vector<std::string>& grant_ids) = 0;
  struct Reply {
    std::string request_id;
    InputAnswer answer;
  };
  // Asks what a tool asks, shown as input_required (the gate fills in request_id), and waits as AwaitAnswer does.
  virtual Async<Result<Reply>> AskInput(std::uint32_t round_index, event::InputRequired request, std::stop_token stop,
                                        const Executor& executor) = 0;
};

struct AgentLimits {
  int max_rounds = 25;
  std::chrono::milliseconds tool_timeout{60'000};
  bool nobody_to_ask = false;  // what would ask is refused
  RetryPolicy retry{};
  std::int64_t context_window = 0;                       // of the model, tokens; 0: not known, and everything is sent
  ModelAbilities abilities{};                            // of the model
  PartLimits parts{};                                    // what of files goes into one request as it is
  std::size_t max_said = kMaxInteractionBytes;           // by the model, in all responses
  bool sum_up_first = false;                             // a person wants a summary in place of what was said before
  bool only_sum_up = false;                              // and nothing else
  bool check_confirmations = true;                       // false, of a replay: the record knows what was refused
  bool find_standstills = true;                          // false, of a replay whose record has none: nobody looked
  std::shared_ptr<const std::vector<ToolRule>> rules{};  // of the configuration; null: none
};

// What holds the agent back. Null: nothing does.
struct AgentGuards {
  // Why no further request may be sent, after the run has used so much.
  std::function<std::optional<std::string>(const TokenUsage& used)> over_budget{};
  // Asked once for each call that could run, before a person is: why it may not, for the model.
  std::function<std::optional<std::string>()> refuse_call{};
};

struct AgentParts {  // all must outlive the agent
  ModelClient& model;
  const ToolRegistry& tools;
  AgentObserver& observer;
  ApprovalGate& approvals;
  Executor executor;
  Delay delay{};  // null: a request that failed is not sent again
  SystemPrompt prompt{};
  AgentGuards guards{};
  FilesOfChat* files = nullptr;         // of the chat, for the tools and for parts of messages
  DocumentReader* documents = nullptr;  // likewise; null: nobody reads documents
  EditorFiles* editor = nullptr;        // likewise; null: nobody edits
  RunRecorder* recorder = nullptr;      // of what calls change in the workspace; null: nobody records it
  CallGuard* guard = nullptr;           // null: everything may be done, and nothing is kept account of
  // What the models of an interaction have said, in bytes; null: nothing yet.
  std::shared_ptr<std::atomic<std::size_t>> said{};
  const Span* span = nullptr;  // of the run, for those who watch; null: nobody does
  std::string conversation{};  // which they know the run's chat by
};

// A call that is not over, and what has been shown of it.
struct OpenCall {
  ToolCall call;
  std::string approval_id{};               // a person was asked for approval
  std::string terms_digest{};              // and was shown this
  std::vector<CallPattern> patterns{};     // and was offered these
  std::optional<ApprovalAnswer> answer{};  // and has said this
  bool has_asked = false;                  // it runs and has asked a person, who has not answered
  std::optional<ToolOutcome> outcome{};    // all that there will ever be of it
  bool was_shown() const { return !approval_id.empty() || has_asked || outcome; }
  bool waits() const { return !approval_id.empty() && !answer && !outcome; }
};

// Where an agent that was interrupted goes on: in this round, with what is left of its calls (those that were shown
// come first); without calls it asks the model.
struct Interrupted {
  std::uint32_t round_index = 0;
  std::vector<OpenCall> calls{};
};

struct AgentOutcome {
  InteractionStatus status = InteractionStatus::kFailed;  // finished
  AgentState state;                                       // well-formed for a provider, whatever happened
  TokenUsage usage;
  std::optional<Error> error;  // why it FAILED
};

// What agents tell those who watch (reprise/telemetry.h), in the words of OpenTelemetry's conventions for generative
// AI. Spans may be empty.

void DescribeAgent(Span& span, const char* agent, const ModelClient& model, const std::string& model_name);
void DescribeOutcome(Span& span, const AgentOutcome& outcome);

// Has the model respond (ModelClient::Generate), which is a span beneath `parent`. `request`, `stream` and `parent`
// must live until then.
Async<Result<ModelResponse>> AskModelClient(const AgentParts& parts, const ModelRequest& request, ModelStream& stream,
                                            std::stop_token stop, const Span& parent);

}  // namespace reprise
