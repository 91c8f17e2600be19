#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/agenda.h"
#include "reprise/approval.h"
#include "reprise/effort.h"
#include "reprise/event.h"
#include "reprise/ids.h"
#include "reprise/message.h"
#include "reprise/timestamp.h"
#include "reprise/tool.h"

namespace reprise {

// Why an interaction FAILED, as its client sees it.
struct InteractionError {
  std::string code, message;
  bool retryable = false;
  bool operator==(const InteractionError&) const = default;
};

// Where a resumed run began: at that interaction's final state, without its unfinished message and without the results
// of these calls, which run again.
struct ResumedFrom {
  InteractionId interaction;
  std::vector<std::string> call_ids{};
  bool operator==(const ResumedFrom&) const = default;
};

// The name that a client gave its request (header Idempotency-Key). A repeated request with the same name starts
// nothing.
struct ClientRequest {
  std::string key;
  std::string digest;  // of the request's content, "sha256:" and hexadecimal digits
  // The key for clients of other protocols, which rarely give a name: it is made of the request, and its blank keeps it
  // apart from any header value. Such a request returns an earlier run only if that must not run twice
  // (RepeatedRequests). `is_whole`: the client waits for the whole answer.
  static ClientRequest Unnamed(std::string digest, bool is_whole) {
    return {.key = (is_whole ? "whole " : "stream ") + digest, .digest = std::move(digest)};
  }
  bool is_unnamed() const { return key.find(' ') != std::string::npos; }
  bool is_unnamed_whole() const { return key.starts_with("whole "); }
  bool operator==(const ClientRequest&) const = default;
};

// Text that does not change. Its copies share memory.
class SharedText {
 public:
  SharedText() = default;
  SharedText(const char* text) : SharedText(std::string(text)) {}
  SharedText(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  // `literal`: the same as the JSON that a stored request has for it, if somebody has that.
  SharedText(std::shared_ptr<const std::string> text, std::shared_ptr<const std::string> literal = nullptr)
      : text_(std::move(text)), literal_(std::move(literal)) {}
  std::string_view view() const { return text_ ? *text_ : std::string_view(); }
  // Empty if nobody has it.
  std::string_view literal() const { return literal_ ? *literal_ : std::string_view(); }
  std::string str() const { return std::string(view()); }
  bool operator==(const SharedText& other) const { return view() == other.view(); }

 private:
  std::shared_ptr<const std::string> text_, literal_;
};

// A part of a body. Numbers are unsigned; indices of messages are those of the interaction's final state.
struct BodyPiece {
  enum class Kind {
    kText,       // `text` itself
    kHead,       // the first `first` bytes of the body before
    kTail,       // the last `first` bytes of the body before
    kContent,    // message `first`: its content, as inside a JSON string
    kArguments,  // message `first`, call `second`: its arguments as they are
    kQuoted,     // the same, as inside a JSON string
    kFile,       // the chat's file `text` in base64
  };
  Kind kind = Kind::kText;
  SharedText text{};
  std::uint64_t first = 0, second = 0;
  bool operator==(const BodyPiece&) const = default;
};

// The body of a request, as what is new in it (engine/request_body).
struct SentBody {
  std::string digest{};  // of the body: "sha256:" and hexadecimal digits
  std::uint64_t bytes = 0;
  std::optional<RequestPlace> before{};  // the request whose body kHead and kTail repeat
  std::vector<BodyPiece> pieces{};
  bool operator==(const SentBody&) const = default;
};

// What came of a request to a model.
struct SentResponse {
  // Why the response ended; by name: "stop", "tool_calls", "length", "context_window", "content_filter", "refusal",
  // "pause", "other".
  enum class Finish { kStop, kToolCalls, kLength, kContextWindow, kContentFilter, kRefusal, kPause, kOther };
  Finish finish = Finish::kStop;                 // of a response that came
  std::string error{};                           // the reason of the failure; empty: a response came
  std::string model{};                           // that answered, according to the provider; empty: not stated
  TokenUsage usage{};                            // zero: not stated
  std::optional<std::int64_t> first_token_ms{};  // from the sending to the first content; nullopt: none came
  std::int64_t ms = 0;                           // from the sending to the end
  std::string request_id{};                      // the provider's (ModelStream::OnRequestId); empty: not stated
  bool operator==(const SentResponse&) const = default;
};

// A tool that a request told the model of.
struct ToldTool {
  std::string name;
  ToolOrigin origin;
  bool operator==(const ToldTool&) const = default;
};

// A module of a system prompt, without its text.
struct ToldModule {
  std::string name;
  std::optional<std::uint64_t> bytes{};  // of its text; nullopt: not on record
  bool operator==(const ToldModule&) const = default;
};

// A request to a model that was sent. Repetitions of a refused or failed one are requests of their own.
struct SentRequest {
  enum class Purpose { kTurn, kSummary, kSubAgent };  // by name: "turn", "summary", "sub_agent"
  std::uint32_t round = 0;
  Purpose purpose = Purpose::kTurn;
  Timestamp at{};
  std::string model{};    // the provider's own name
  std::string address{};  // host of the provider's API; empty: none
  std::string call_id{};  // of the call that the sub-agent works for; empty: no sub-agent, or not on record
  // The modules of its system prompt; nullopt: those of the request body.before.
  std::optional<std::vector<ToldModule>> modules{};
  // Its tools that are not built in. Set if `modules` is and there are any (RunRecord::program).
  std::vector<ToldTool> tools{};
  SentBody body{};
  std::optional<SentResponse> response{};  // nullopt: not on record, as the process ended before it came
  bool operator==(const SentRequest&) const = default;
};

// Facts about a run that are in neither its events nor its final state. From `first_message` on each round has one
// message of the model, except that the last may have none. Rounds count from 0, or from 1 if calls of another
// interaction ran first (resumed_from).
struct RunRecord {
  std::size_t first_message = 0;  // in the final state: earlier messages existed when the agent began
  std::optional<ResumedFrom> resumed_from{};
  std::optional<Agenda> agenda_before{};  // set if it has changed since
  std::optional<ClientRequest> request{};
  // The interaction whose files the workspace had at the start, if not the parent: the run kept the files as they were.
  // Its changes are relative to that interaction.
  std::optional<InteractionId> files_from{};
  std::string traceparent{};         // the run's span; empty: not traced
  bool names_model = false;          // the client or the chat named the model; else it is that of the configuration
  Effort effort = Effort::kDefault;  // chosen for the chat; kDefault: none, so it is that of the configuration
  std::string program{};             // the version that began the run; empty: one that kept no responses and origins
  bool redacted = false;             // secrets were replaced in all texts, and the requests' digests made anew
  // Set if it went on from this event of the interaction `edited_from` (reprise/what_if.h); 0: from its beginning. It
  // worked in a copy of the workspace, so it shows no changes of files.
  std::optional<std::uint64_t> what_if{};
  // In the order in which they were sent. nullopt: not on record, as in turns of earlier versions.
  std::optional<std::vector<SentRequest>> requests{};
  bool operator==(const RunRecord&) const = default;
};

// One user message and everything the agent did about it.
//
//   for (const reprise::AgentEvent& each : interaction.events) {
//     if (const auto* call = std::get_if<reprise::event::ToolCallStarted>(&each.payload)) Print(call->tool_name);
//   }
//   if (interaction.error) Print(interaction.error->message);
struct Interaction {
  InteractionId id;
  ChatId chat_id;
  std::optional<InteractionId> parent_id{};    // nullopt: the first of its branch
  std::optional<InteractionId> edited_from{};  // set by edit and regenerate
  InteractionStatus status = InteractionStatus::kRunning;
  std::string user_message{};                     // as it was written
  std::vector<Attachment> attachments{};          // their text follows user_message in the state's message
  std::vector<AgentEvent> events{};               // as stored: no deltas, no frames, rising seq
  std::optional<AgentState> final_agent_state{};  // nullopt while it runs
  std::string model{};
  TokenUsage usage{};
  std::optional<InteractionError> error{};
  Timestamp created_at{};
  std::optional<Timestamp> completed_at{};
  std::optional<RunRecord> record{};  // nullopt: it runs, no run made it, or version 0.1 stored it
  bool imported = false;              // it comes from an import; this server did not run it
  std::string workspace{};            // the folder that its tools worked in; empty: none, or version 0.1 stored it
  bool operator==(const Interaction&) const = default;
};

// An interaction whose final state lacks its parent's first `kept_messages` messages. 0: the state is whole.
struct AddedInteraction {
  Interaction interaction;
  std::size_t kept_messages = 0;
};
// Shortens `whole` to that form. It stays whole if its state does not begin with `parent`, its parent's state.
AddedInteraction AddedTo(const AgentState& parent, Interaction whole);

// Where lists of chats show a chat. By name: "pinned" (first) and "archived" (apart from the others).
enum class ChatShelf { kPinned, kArchived };

// A chat without its interactions.
struct ChatSummary {
  ChatId id;
  std::string title{};
  Timestamp created_at{};
  Timestamp updated_at{};
  std::optional<InteractionId> head{};             // the interaction that the chat ends at; nullopt: empty
  std::optional<InteractionStatus> head_status{};  // that interaction's status
  std::string model{};                             // the last model that answered; empty: none, or unknown
  // Input and output tokens of all interactions, on every branch. nullopt: unknown (a chat of version 0.1).
  std::optional<std::int64_t> tokens{};
  std::optional<InteractionRef> forked_from{};  // the origin of a copied chat
  std::optional<ApprovalMode> approval_mode{};  // of this chat alone; nullopt: the server's
  std::string chosen_model{};                   // for messages without a model; empty: the default
  std::string workspace{};                      // the folder that its agent works in; empty: the server's
  std::string instructions{};                   // for its agent, after the system prompt; verbatim
  Effort effort = Effort::kDefault;             // of its models; kDefault: as configured
  std::optional<ChatShelf> shelf{};             // nullopt: among the others
  bool operator==(const ChatSummary&) const = default;
};

// Settings of a chat. Each member that is set replaces the present value.
struct ChatSettings {
  std::optional<std::string> title{};
  std::optional<std::string> replaces_title{};                 // `title` is set only in place of this one
  std::optional<std::optional<ApprovalMode>> approval_mode{};  // inner nullopt: the server's mode
  std::optional<std::string> model{};                          // ChatSummary::chosen_model
  std::optional<std::string> workspace{};                      // ChatSummary::workspace
  std::optional<std::string> instructions{};                   // ChatSummary::instructions
  std::optional<Effort> effort{};                              // ChatSummary::effort
  std::optional<std::optional<ChatShelf>> shelf{};             // ChatSummary::shelf
};

// An unreadable stored interaction; its neighbours are readable.
struct DamagedInteraction {
  InteractionId id;
  Error error;                               // kCorruption
  std::optional<InteractionId> parent_id{};  // from its unchecked header: only for display of the tree
};

// A chat with all its interactions, on every branch, by rising number.
struct Chat {
  ChatSummary summary;
  std::vector<Interaction> interactions;
  std::vector<DamagedInteraction> damaged;
};

}  // namespace reprise
