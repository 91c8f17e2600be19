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
#include "base/mutex.h"
#include "reprise/approval.h"
#include "reprise/audit_log.h"
#include "reprise/event.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/model_client.h"
#include "reprise/project_instructions.h"
#include "reprise/result.h"
#include "reprise/system_prompt.h"
#include "reprise/telemetry.h"
#include "reprise/tool.h"
#include "reprise/workspace_history.h"

namespace reprise {

// Stands between an agent and its acts: may reject or change its tool calls, writes them to the audit log, and redacts
// tool output. Thread-safe; its functions block the calling thread.
class CallGuard {
 public:
  virtual ~CallGuard() = default;

  // True if Begin or Admit may take a while.
  virtual bool reviews_requests() const { return false; }
  // Called before anything else. If it fails, the run does not begin and is FAILED; Admit and Heard fail the run too.
  virtual Result<void> Begin(const std::stop_token& /*stop*/) { return {}; }
  // Called before each request to the model in a round, retries included. Returns text to add to the prompt.
  virtual Result<std::string> Admit(std::uint32_t /*round_index*/, const std::string& /*model*/,
                                    const std::stop_token& /*stop*/) {
    return std::string();
  }
  // Gets the model's response before any of its calls run.
  virtual Result<void> Heard(std::uint32_t /*round_index*/, const std::string& /*model*/, const std::string& /*text*/,
                             const std::stop_token& /*stop*/) {
    return {};
  }

  // Checks an answer. Why the agent must go on, for the model; nullopt: the interaction may end.
  virtual std::optional<std::string> CheckAnswer(std::uint32_t /*round_index*/, int /*times_sent_back*/,
                                                 const std::string& /*text*/, const std::stop_token& /*stop*/) {
    return std::nullopt;
  }

  struct Verdict {
    std::optional<std::string> refusal{};    // why the call does not run, for the model
    std::optional<std::string> arguments{};  // replace the model's
  };
  // Reviews a call with valid arguments, before any person is asked about it.
  virtual Verdict Review(std::uint32_t round_index, const ToolCall& call, const std::stop_token& stop) = 0;
  // Writes an audit entry; the guard fills in the user and the place. If it fails, the act must not happen.
  virtual Result<void> Note(AuditEntry entry) = 0;
  // Does the same for what happens after this guard is gone, and logs a failure. Empty: there is no audit log.
  virtual std::function<void(AuditEntry)> Noter() const { return {}; }
  // `text` without secrets.
  virtual std::string Redacted(std::string text) const { return text; }
  // A call's outcome after redaction and hooks.
  virtual ToolOutcome Passed(std::uint32_t round_index, const ToolCall& call, ToolOutcome outcome,
                             const std::stop_token& stop) = 0;
  // A filter for one call's live output: takes pieces, and returns the text that may be shown so far. Empty: no filter.
  virtual std::function<std::string(std::string_view)> LiveFilter() const { return {}; }
  // Likewise for output that is stored: only without secrets.
  virtual std::function<std::string(std::string_view)> StoredFilter() const { return {}; }
};

// What a request is made of, beside its messages.
struct RequestSources {
  std::vector<ToldModule> modules{};  // of the system prompt, in their order
  std::vector<ToldTool> tools{};      // that are not built in
};

// The parts of an agent, and its interfaces to its caller.

// Receives the agent's events. Called on the agent's thread and on the threads of the model client and tools; Emit is
// called concurrently while tools run together.
class AgentObserver {
 public:
  virtual ~AgentObserver() = default;
  // Numbers, stores and shows the event before it returns.
  virtual void Emit(std::uint32_t round_index, EventPayload payload) = 0;
  // Deltas gather until FlushDeltas shows them.
  virtual void AddTextDelta(std::uint32_t round_index, std::string_view text) = 0;
  virtual void AddThinkingDelta(std::uint32_t round_index, std::string_view text) = 0;
  virtual void FlushDeltas() = 0;
  // The state has changed. Called before the event that shows this.
  virtual void StateGrew(const AgentState& state) = 0;
  // A request to the model, as it is sent. Called before its response; concurrently by sub-agents.
  struct Sent {
    SentRequest::Purpose purpose;
    std::uint32_t round_index;
    const std::string& model;  // the provider's own name
    std::string address;       // host of the provider's API; empty: none
    std::string_view body;
    const RequestSources* sources = nullptr;  // null: it has neither modules nor tools
    std::string call_id = {};                 // of the sub-agent's call
  };
  // Returns its index in the record of the interaction; nullopt: it is not on record.
  virtual std::optional<std::size_t> Requested(const Sent& /*sent*/) { return std::nullopt; }
  // What came of the request with this index. Called once, before what follows from it is shown.
  virtual void Responded(std::size_t /*request*/, SentResponse /*response*/) {}
  // The cost of a response with calls. Called before the response is shown; the usage event follows when the calls have
  // ended.
  virtual void Spent(std::uint32_t /*round_index*/, const TokenUsage& /*usage*/) {}
};

// Asks a person for the agent. Waiting coroutines resume as jobs of `executor`.
class ApprovalGate {
 public:
  virtual ~ApprovalGate() = default;
  // Makes the requests answerable and shows them as approval_required (the gate fills in approval_id, created_at,
  // expires_at): all of them or, if the process ends, none. Returns their ids. The event of an earlier request that is
  // `withdrawn` is shown first.
  virtual std::vector<std::string> Ask(std::uint32_t round_index, std::vector<event::ApprovalRequired> requests,
                                       std::optional<event::Rejected> withdrawn) = 0;
  struct Answered {
    std::string approval_id;
    ApprovalAnswer answer;
  };
  // Waits until one of these is answered or expires. kCancelled if `stop` is requested first; then they can no longer
  // be answered.
  virtual Async<Result<Answered>> AwaitAnswer(std::vector<std::string> approval_ids, std::stop_token stop,
                                              const Executor& executor) = 0;
  // The current mode, which may change during a run. (A recorded replay has a mode for each call.)
  virtual ApprovalMode ModeFor(const std::string& call_id) = 0;
  // Sets the chat's mode, as a person has chosen it with an answer.
  virtual Result<void> SetMode(ApprovalMode /*mode*/) {
    return Fail(ErrorCode::kUnavailable, "the mode cannot be set here");
  }
  // The grants for all chats that concern this call (GrantStore::For), and a note that a call ran because of some.
  virtual std::vector<Grant> StandingGrants(const Grant& call) = 0;
  virtual void NoteUse(const std::vector<std::string>& grant_ids) = 0;
  struct Reply {
    std::string request_id;
    InputAnswer answer;
  };
  // Asks a tool's question, shown as input_required (the gate fills in request_id), and waits like AwaitAnswer.
  virtual Async<Result<Reply>> AskInput(std::uint32_t round_index, event::InputRequired request, std::stop_token stop,
                                        const Executor& executor) = 0;
};

struct AgentLimits {
  int max_rounds = 25;
  std::chrono::milliseconds tool_timeout{60'000};
  bool nobody_to_ask = false;               // calls that need an answer are rejected
  std::optional<ApprovalMode> also_mode{};  // holds beside the chat's mode
  RetryPolicy retry{};
  std::int64_t context_window = 0;                       // of the model, tokens; 0: unknown, so everything is sent
  ModelAbilities abilities{};                            // of the model
  EditFormat edit_format = EditFormat::kDefault;         // likewise: which of the two tools for edits it is told of
  PartLimits parts{};                                    // of files that one request sends as they are
  std::size_t told_bytes = 16 << 10;                     // of each end of a command's output
  std::uint64_t kept_bytes = 0;                          // of outputs that the chat keeps together; 0: none
  Effort effort = Effort::kDefault;                      // that the chat asks of its models
  std::size_t max_said = kMaxInteractionBytes;           // of the model's responses together
  bool sum_up_first = false;                             // a person wants a summary of the earlier messages
  bool only_sum_up = false;                              // and nothing else
  int max_sent_back = 0;                                 // times that a check may reject the answer
  bool check_confirmations = true;                       // false in a replay: the record knows the rejected calls
  bool find_standstills = true;                          // false in a replay of a record without any
  bool fits_context = true;                              // false: the state says what is summed up and cleared
  std::shared_ptr<const std::vector<ToolRule>> rules{};  // from the configuration; null: none
  std::function<std::shared_ptr<const std::vector<ToolRule>>()> added_rules{};  // Engine::Parts
};

// Limits that end a run or reject a call. Null: no limit.
struct AgentGuards {
  // The reason why no further request may be sent after this usage.
  std::function<std::optional<std::string>(const TokenUsage& used)> over_budget{};
  // Called once for each call that could run, before a person is asked. Returns why it must not run, for the model.
  std::function<std::optional<std::string>()> refuse_call{};
};

struct AgentParts {  // all must outlive the agent
  ModelClient& model;
  const ToolRegistry& tools;
  AgentObserver& observer;
  ApprovalGate& approvals;
  Executor executor;
  Delay delay{};  // null: failed requests are not retried
  SystemPrompt prompt{};
  AgentGuards guards{};
  std::function<ToolOutcome(const std::string& query, bool everywhere)> recall{};  // ToolContext::recall
  FilesOfChat* files = nullptr;         // of the chat, for the tools and for parts of messages
  JobsOfChat* jobs = nullptr;           // background jobs of the chat; null: none
  DocumentReader* documents = nullptr;  // likewise; null: documents cannot be read
  EditorFiles* editor = nullptr;        // likewise; null: no editor is connected
  RunRecorder* recorder = nullptr;      // of the calls' changes in the workspace; null: they are not recorded
  CallGuard* guard = nullptr;           // null: no hooks, no redaction and no audit log
  std::string of_call{};                // that this agent works for, as a sub-agent; empty: it is none
  const ProjectInstructions* instructions = nullptr;  // for sub-agents of people; null: none
  const ModelDirectory* models = nullptr;             // likewise: models that those name
  // Held by calls that may not run beside others, because sub-agents run beside each other; null: made by the agent.
  std::shared_ptr<Mutex> alone{};
  // Bytes of all model responses of the interaction, shared with sub-agents; null: starts at zero.
  std::shared_ptr<std::atomic<std::size_t>> said{};
  const Span* span = nullptr;  // the run's span; null: no tracing
  std::string conversation{};  // the chat's id in traces
};

// A call that has not ended, and the parts of it that were shown.
struct OpenCall {
  ToolCall call;
  std::string approval_id{};               // a person was asked for approval
  std::string terms_digest{};              // and saw these terms
  std::vector<CallPattern> patterns{};     // and was offered these
  std::optional<ApprovalAnswer> answer{};  // and gave this answer
  bool has_asked = false;                  // it is running and waits for an answer to its own question
  std::optional<ToolOutcome> outcome{};    // its final result, without running (again)
  bool was_shown() const { return !approval_id.empty() || has_asked || outcome; }
  bool waits() const { return !approval_id.empty() && !answer && !outcome; }
};

// Where an interrupted agent resumes: in this round, with its remaining calls (those that were shown come first). If
// there are none, it asks the model.
struct Interrupted {
  std::uint32_t round_index = 0;
  std::vector<OpenCall> calls{};
  TokenUsage usage{};  // of its response, if it is not shown yet
};

struct AgentOutcome {
  InteractionStatus status = InteractionStatus::kFailed;  // finished
  AgentState state;                                       // always well-formed for a provider
  TokenUsage usage;
  std::optional<Error> error;  // why it FAILED
};

// Spans of agents (reprise/telemetry.h), with the names of OpenTelemetry's conventions for generative AI. Spans may be
// empty.

void DescribeAgent(Span& span, const char* agent, const ModelClient& model, const std::string& model_name);
void DescribeOutcome(Span& span, const AgentOutcome& outcome, const CallGuard* guard);
// A call's arguments for a span, without secrets however JSON spells them.
std::string RedactedArguments(const CallGuard* guard, const std::string& arguments);
// Lets the span fail with the error's text, which is redacted.
void FailSpan(Span& span, const Error& error, const CallGuard* guard);

// Why a request is sent, and in which round of the agent.
struct RequestReason {
  SentRequest::Purpose purpose = SentRequest::Purpose::kTurn;
  std::uint32_t round_index = 0;
  const RequestSources* sources = nullptr;  // AgentObserver::Sent::sources
};
// Sends a request to the model (ModelClient::Generate) in a child span of `parent`, and has it and its response put on
// record. What `request` refers to, `stream` and `parent` must live until the response.
Async<Result<ModelResponse>> AskModelClient(const AgentParts& parts, ModelRequest request, ModelStream& stream,
                                            std::stop_token stop, const Span& parent, RequestReason why);

}  // namespace reprise
