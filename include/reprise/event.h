#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reprise/agenda.h"
#include "reprise/message.h"
#include "reprise/timestamp.h"
#include "reprise/workspace_change.h"

namespace reprise {

enum class InteractionStatus { kRunning, kWaitingApproval, kWaitingInput, kCompleted, kFailed, kCancelled };

// "RUNNING", "WAITING_APPROVAL", ...; part of the wire and of the file format.
std::string_view ToString(InteractionStatus status);
std::optional<InteractionStatus> ParseInteractionStatus(std::string_view name);
// True for COMPLETED, FAILED and CANCELLED.
bool IsFinished(InteractionStatus status);

struct TokenUsage {
  std::int64_t input_tokens = 0;  // all, including those from the provider's cache
  std::int64_t output_tokens = 0;
  std::int64_t cache_read_tokens = 0;   // of the input tokens: read from the provider's cache
  std::int64_t cache_write_tokens = 0;  // of the input tokens: written to that cache
  std::int64_t web_searches = 0;        // by the provider
  TokenUsage& operator+=(const TokenUsage& more);
  bool operator==(const TokenUsage&) const = default;
};

// Calls that a person can allow together: the stored pattern, and one sentence that says what it covers.
struct CallPattern {
  std::string pattern, means;
  bool operator==(const CallPattern&) const = default;
};

// A page that the provider's web search has found. What a page says of itself is not to be believed: `title` is one
// line of valid UTF-8 and may be empty; `url` begins with http:// or https:// (model/web_search.h).
struct WebSource {
  std::string url, title;
  bool operator==(const WebSource&) const = default;
};

// A page that a text is based on, according to the provider.
struct Citation {
  WebSource source;
  std::int64_t start = 0, end = 0;  // the part of the text: [start, end), in Unicode characters
  bool operator==(const Citation&) const = default;
};

// The pages that citations name, each once.
std::vector<WebSource> SourcesOf(const std::vector<Citation>& citations);

// The tool_name of a question about a host that a command wants to reach while it runs. Its call_id is the command's,
// and its tool_input {"host", "port", "command"}. No tool has this name.
inline constexpr std::string_view kNetworkTool = "network";
// The decision with which a person lets one call run outside its tool's sandbox (ApprovalRequired::allowed_decisions).
inline constexpr std::string_view kApproveOutside = "approve_outside_sandbox";

// The payloads of events, one struct per type. Field names are the wire's. `kType` is the wire type (member "type"),
// `kName` the SSE event name; both are part of the wire and of the file format.
//
//   if (const auto* text = std::get_if<reprise::event::TextDelta>(&event.payload)) Print(text->content);
//   if (const auto* end = std::get_if<reprise::event::InteractionComplete>(&event.payload)) {
//     return end->status == reprise::InteractionStatus::kCompleted;
//   }
namespace event {

struct InteractionStarted {
  static constexpr std::string_view kType = "INTERACTION_STARTED", kName = "interaction_started";
  std::string interaction_id, chat_id;
  std::optional<std::string> parent_id, edited_from;
  std::string model;
  std::vector<Attachment> attachments{};  // to the user's message
  bool operator==(const InteractionStarted&) const = default;
};
struct ThinkingDelta {
  static constexpr std::string_view kType = "THINKING_DELTA", kName = "thinking_delta";
  std::string content;
  bool operator==(const ThinkingDelta&) const = default;
};
struct TextDelta {
  static constexpr std::string_view kType = "TEXT_DELTA", kName = "text_delta";
  std::string content;
  bool operator==(const TextDelta&) const = default;
};
// A piece of what the model speaks.
struct SoundDelta {
  static constexpr std::string_view kType = "SOUND_DELTA", kName = "sound_delta";
  std::string content;  // base64 of 16-bit samples, one channel, little-endian, 24,000 in a second
  bool operator==(const SoundDelta&) const = default;
};
// What the model has spoken in this round: one file of the chat.
struct Sound {
  static constexpr std::string_view kType = "SOUND", kName = "sound";
  std::vector<Attachment> files{};
  bool operator==(const Sound&) const = default;
};
struct Thinking {
  static constexpr std::string_view kType = "THINKING", kName = "thinking";
  std::string content;
  bool operator==(const Thinking&) const = default;
};
// Text beside tool calls, or the text of a truncated answer.
struct MessageText {
  static constexpr std::string_view kType = "MESSAGE", kName = "message";
  std::string content;
  std::vector<Citation> citations{};
  bool operator==(const MessageText&) const = default;
};
struct Answer {
  static constexpr std::string_view kType = "ANSWER", kName = "answer";
  std::string content;
  // Why the answer is truncated: "length" (output limit), "context_window" (the window is full), "content_filter",
  // "refusal" (by the model) or "pause" (by the provider). Empty: the answer is whole.
  std::string reason{};
  std::vector<Citation> citations{};
  bool operator==(const Answer&) const = default;
};
// The provider has searched the web for the text before this event.
struct WebSearch {
  static constexpr std::string_view kType = "WEB_SEARCH", kName = "web_search";
  std::string query;                 // or what was opened; may be empty
  std::vector<WebSource> results{};  // a limited number
  std::int64_t omitted = 0;          // further results
  std::string error{};               // the provider's word for why there are no results; empty: it did not fail
  bool operator==(const WebSearch&) const = default;
};
struct ToolCallStarted {
  static constexpr std::string_view kType = "TOOL_CALL", kName = "tool_call";
  std::string id, tool_name, tool_input;
  bool operator==(const ToolCallStarted&) const = default;
};
struct ToolOutputDelta {
  static constexpr std::string_view kType = "TOOL_OUTPUT_DELTA", kName = "tool_output_delta";
  std::string id, tool_name, content;
  bool operator==(const ToolOutputDelta&) const = default;
};
struct ToolResult {
  static constexpr std::string_view kType = "TOOL_RESULT", kName = "tool_result";
  std::string id, tool_name, tool_output;
  bool is_error = false;
  std::vector<Attachment> files{};  // files from the tool, mostly images
  bool operator==(const ToolResult&) const = default;
};
struct ApprovalRequired {
  static constexpr std::string_view kType = "APPROVAL_REQUIRED", kName = "approval_required";
  std::string approval_id, call_id, tool_name, tool_input;
  std::string arguments_digest;  // "sha256:" + hex of tool_input's bytes
  std::string terms_digest;      // likewise, of the other terms: the offered tool, and where it would run
  std::string reason;            // why the call needs approval
  std::string risk;              // "low" | "medium" | "high"
  std::vector<std::string> allowed_decisions;
  std::vector<CallPattern> patterns{};  // patterns that may be granted, the narrowest first; often none
  std::string agent{};                  // the sub-agent that makes the call; empty: the chat's agent
  std::vector<std::string> modes{};     // of a plan: those with which it may be approved
  Timestamp created_at{};
  std::optional<Timestamp> expires_at;
  bool allows(std::string_view decision) const {
    return std::find(allowed_decisions.begin(), allowed_decisions.end(), decision) != allowed_decisions.end();
  }
  bool operator==(const ApprovalRequired&) const = default;
};
struct Approved {
  static constexpr std::string_view kType = "APPROVED", kName = "approved";
  std::string approval_id, call_id, arguments_digest, scope;
  std::optional<std::string> tool_input;  // set if the answer replaced the arguments
  std::optional<std::string> feedback = std::nullopt;
  std::string answered_by{};                       // the user; empty: the only one
  std::string pattern{};                           // the offered pattern that is granted; empty: none
  std::optional<Timestamp> grant_expires_at = {};  // end of the grant; nullopt: no end, or no grant
  std::string mode{};                              // of a plan: the chat's mode from then on
  bool outside_sandbox = false;                    // this one call runs outside its tool's sandbox
  bool operator==(const Approved&) const = default;
};
struct Rejected {
  static constexpr std::string_view kType = "REJECTED", kName = "rejected";
  std::string approval_id, call_id;
  std::optional<std::string> feedback;
  bool expired = false;       // not answered in time
  bool superseded = false;    // the terms have changed; if the call is still possible, it asks again
  std::string answered_by{};  // as in Approved; empty too if not answered
  bool operator==(const Rejected&) const = default;
};
// A tool asks a person. Without `schema` and `url` any text is an answer.
struct InputRequired {
  static constexpr std::string_view kType = "INPUT_REQUIRED", kName = "input_required";
  std::string request_id, call_id, question;
  std::vector<std::string> options;   // suggested answers; any other text is accepted too
  std::optional<std::string> schema;  // JSON Schema text of the answer, a flat object
  std::optional<std::string> url;     // for the person to open
  bool operator==(const InputRequired&) const = default;
};
struct InputReceived {
  static constexpr std::string_view kType = "INPUT_RECEIVED", kName = "input_received";
  std::string request_id, call_id;
  std::optional<std::string> response;  // nullopt: declined
  std::string answered_by{};            // as in Approved
  bool operator==(const InputReceived&) const = default;
};
// The full list of tasks after a change.
struct TaskUpdated {
  static constexpr std::string_view kType = "TASK_UPDATED", kName = "task_updated";
  std::optional<std::string> call_id;  // nullopt: not changed by the agent
  std::vector<Task> tasks;
  bool operator==(const TaskUpdated&) const = default;
};
// The full plan after a change.
struct PlanUpdated {
  static constexpr std::string_view kType = "PLAN_UPDATED", kName = "plan_updated";
  std::optional<std::string> call_id;  // nullopt: not changed by the agent
  std::vector<std::string> steps;
  bool operator==(const PlanUpdated&) const = default;
};
// All of the chat's grants after a change by hand.
struct GrantsUpdated {
  static constexpr std::string_view kType = "GRANTS_UPDATED", kName = "grants_updated";
  std::vector<Grant> grants;
  bool operator==(const GrantsUpdated&) const = default;
};
struct Usage {
  static constexpr std::string_view kType = "USAGE", kName = "usage";
  TokenUsage tokens;
  // How full the model's context is with this response; 0: unknown, or not a response of the conversation.
  std::int64_t context_tokens = 0;  // with which the next request begins
  std::int64_t context_window = 0;
  std::int64_t context_limit = 0;  // above which older messages are summarized
  // A replay compares tokens only: the model's configuration is not part of the record.
  bool operator==(const Usage& other) const { return tokens == other.tokens; }
};
// A model request failed and is retried after a pause. Nothing of its response was shown.
struct Retry {
  static constexpr std::string_view kType = "RETRY", kName = "retry";
  int attempt = 0;            // retries of this request, from 1
  std::int64_t delay_ms = 0;  // the pause
  std::string code, message;  // why it failed
  bool operator==(const Retry&) const = default;
};
// The model repeats itself and is told so. A repeated call is not run.
struct LoopDetected {
  static constexpr std::string_view kType = "LOOP_DETECTED", kName = "loop_detected";
  std::string tool_name;
  int count = 0;  // times that the call was made; with "same_error" and "no_progress": rounds
  // "same_call", "alternating", "same_error" or "no_progress"; empty in files of version 0.1.
  std::string pattern = {};
  bool operator==(const LoopDetected& other) const {
    const bool is_told = !pattern.empty() && !other.pattern.empty();
    return tool_name == other.tool_name && count == other.count && (!is_told || pattern == other.pattern);
  }
};
// A before_end hook did not accept the answer (the message before this event): the agent goes on.
struct SentBack {
  static constexpr std::string_view kType = "SENT_BACK", kName = "sent_back";
  std::string content;  // why, in the hook's words
  int count = 0;        // times in this interaction, from 1
  bool operator==(const SentBack&) const = default;
};
// From here on a summary replaces older messages in requests, or (`results`) notes replace the text of old tool
// results; the agent state keeps all of it.
struct Compacted {
  static constexpr std::string_view kType = "COMPACTED", kName = "compacted";
  std::int64_t messages = 0;       // that the summary replaces; 0: there is none
  std::int64_t tokens_before = 0;  // estimates of the request, without and with the summary
  std::int64_t tokens_after = 0;
  std::int64_t budget = 0;  // a request's limit, in tokens
  std::string summary{};
  std::int64_t results = 0;  // tool results that were cleared, in place of a summary
  bool operator==(const Compacted&) const = default;
};
struct Cancelled {
  static constexpr std::string_view kType = "CANCELLED", kName = "cancelled";
  std::string reason;  // "requested" | "client_disconnected" | "server_stopping" | "chat_deleted" | "replaced"
  bool operator==(const Cancelled&) const = default;
};
struct Failed {
  static constexpr std::string_view kType = "ERROR", kName = "error";
  std::string code, message;
  bool retryable = false;
  bool operator==(const Failed&) const = default;
};
// The id in approval_required, approved and rejected of a sub-agent's call.
inline std::string NestedCallId(const std::string& call_id, const std::string& of_sub_agent) {
  return call_id + "/" + of_sub_agent;
}
// One step of a sub-agent within a tool call.
struct Nested {
  static constexpr std::string_view kType = "NESTED", kName = "nested";
  using Step = std::variant<Thinking, MessageText, Answer, WebSearch, ToolCallStarted, ToolResult, Usage, Retry,
                            LoopDetected, Compacted, Failed>;
  std::string call_id;            // of the call that the sub-agent works for
  std::uint32_t round_index = 0;  // the sub-agent's own
  Step step;
  bool operator==(const Nested&) const = default;
};
// Workspace files have changed. If one changed several times in an interaction, its first `before` and last `after`
// count.
struct FilesChanged {
  static constexpr std::string_view kType = "FILES_CHANGED", kName = "files_changed";
  std::optional<std::string> call_id;  // the call that ran meanwhile; nullopt: none, or a change by hand
  std::vector<WorkspaceChange> changes;
  std::int64_t omitted = 0;  // further changed paths, without a record
  bool unseen = false;       // what the call changed is not known
  bool operator==(const FilesChanged&) const = default;
};
// A background job has started. It may outlive the interaction.
struct JobStarted {
  static constexpr std::string_view kType = "JOB_STARTED", kName = "job_started";
  std::string call_id, job_id, command;
  bool operator==(const JobStarted&) const = default;
};
// A background job of the chat has ended, and the agent is told so: during the interaction or before it.
struct JobEnded {
  static constexpr std::string_view kType = "JOB_ENDED", kName = "job_ended";
  std::string job_id, command;
  std::string reason;                  // as in JobEnd
  std::optional<std::int64_t> status;  // likewise
  bool operator==(const JobEnded&) const = default;
};
struct InteractionComplete {
  static constexpr std::string_view kType = "INTERACTION_COMPLETE", kName = "interaction_complete";
  std::string interaction_id;
  InteractionStatus status = InteractionStatus::kCompleted;
  bool operator==(const InteractionComplete&) const = default;
};

}  // namespace event

using AnyEvent =
    std::variant<event::InteractionStarted, event::ThinkingDelta, event::TextDelta, event::SoundDelta, event::Sound,
                 event::Thinking, event::MessageText, event::Answer, event::WebSearch, event::ToolCallStarted,
                 event::ToolOutputDelta, event::ToolResult, event::ApprovalRequired, event::Approved, event::Rejected,
                 event::InputRequired, event::InputReceived, event::TaskUpdated, event::PlanUpdated,
                 event::GrantsUpdated, event::Usage, event::Retry, event::LoopDetected, event::SentBack,
                 event::Compacted, event::Nested, event::FilesChanged, event::JobStarted, event::JobEnded,
                 event::Cancelled, event::Failed, event::InteractionComplete>;

// Any event. Its copies and moves are compiled once, because inline they cost each source file seconds.
class EventPayload : public AnyEvent {
 public:
  using AnyEvent::AnyEvent;
  EventPayload();
  explicit EventPayload(AnyEvent event);
  EventPayload(const EventPayload&);
  EventPayload(EventPayload&&) noexcept;
  EventPayload& operator=(const EventPayload&);
  EventPayload& operator=(EventPayload&&) noexcept;
  ~EventPayload();
  bool operator==(const EventPayload&) const;
};

// One step of an interaction. `seq` counts from 1 without gaps on a live stream. Deltas are numbered too, but not
// stored.
struct AgentEvent {
  std::uint64_t seq = 0;
  std::uint32_t round_index = 0;
  Timestamp at{};  // not shown for deltas
  EventPayload payload;
  bool operator==(const AgentEvent&) const = default;
};

// True for deltas; the durable event after them repeats their text.
bool IsDelta(const EventPayload& payload);
// True for interaction_started and interaction_complete, which files omit because they follow from the rest.
bool IsFrame(const EventPayload& payload);

}  // namespace reprise
