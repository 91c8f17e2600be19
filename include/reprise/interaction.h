#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/agenda.h"
#include "reprise/approval.h"
#include "reprise/event.h"
#include "reprise/ids.h"
#include "reprise/message.h"
#include "reprise/timestamp.h"

namespace reprise {

// Why an interaction FAILED, as its client sees it.
struct InteractionError {
  std::string code, message;
  bool retryable = false;
  bool operator==(const InteractionError&) const = default;
};

// Where a run began that goes on with another interaction: in that one's final state, but for what it had begun to say
// and the results of these calls, which are run again.
struct ResumedFrom {
  InteractionId interaction;
  std::vector<std::string> call_ids{};
  bool operator==(const ResumedFrom&) const = default;
};

// The name that a client gave its request (the header Idempotency-Key). A request that comes again under the same name
// begins nothing.
struct ClientRequest {
  std::string key;
  std::string digest;  // of what it asked for, "sha256:" and hexadecimal digits
  // Clients of other protocols mostly give no name. Then the key is made of what was sent, and has a blank, as none in
  // a header has. Such a request leads to an earlier run only if that must not happen twice (RepeatedRequests).
  // `is_whole`: the client waits for the whole answer.
  static ClientRequest Unnamed(std::string digest, bool is_whole) {
    return {.key = (is_whole ? "whole " : "stream ") + digest, .digest = std::move(digest)};
  }
  bool is_unnamed() const { return key.find(' ') != std::string::npos; }
  bool is_unnamed_whole() const { return key.starts_with("whole "); }
  bool operator==(const ClientRequest&) const = default;
};

// What a run knew of itself that neither its events nor its final state say. From `first_message` on each round has one
// message of the model, but for the last, which may have none. They count from 0; from 1 if calls of another
// interaction came first (resumed_from).
struct RunRecord {
  std::size_t first_message = 0;  // of the final state: those before it were there when the agent began
  std::optional<ResumedFrom> resumed_from{};
  std::optional<Agenda> agenda_before{};  // if it has changed since
  std::optional<ClientRequest> request{};
  // The interaction whose files the workspace had when it began, if that is not its parent: it was begun with files
  // kept as they were. What it changed is told from there.
  std::optional<InteractionId> files_from{};
  std::string traceparent{};  // its span; empty: nothing was traced
  bool operator==(const RunRecord&) const = default;
};

// One user message and everything the agent did about it.
struct Interaction {
  InteractionId id;
  ChatId chat_id;
  std::optional<InteractionId> parent_id{};    // nullopt: the first of its branch
  std::optional<InteractionId> edited_from{};  // set by edit and regenerate
  InteractionStatus status = InteractionStatus::kRunning;
  std::string user_message{};                     // as it was written
  std::vector<Attachment> attachments{};          // their text is in the state's message, behind what was written
  std::vector<AgentEvent> events{};               // as stored: no deltas, no frames, rising seq
  std::optional<AgentState> final_agent_state{};  // nullopt while it runs
  std::string model{};
  TokenUsage usage{};
  std::optional<InteractionError> error{};
  Timestamp created_at{};
  std::optional<Timestamp> completed_at{};
  std::optional<RunRecord> record{};  // nullopt: it runs, no run made it, or version 0.1 stored it
  bool imported = false;              // it came in from elsewhere: what it says was not seen here
  bool operator==(const Interaction&) const = default;
};

// An interaction without what its final state has from its parent's: behind so many of the parent's messages come those
// that stand here. 0: the state is whole.
struct AddedInteraction {
  Interaction interaction;
  std::size_t kept_messages = 0;
};
// Of a whole one. It is left whole if its state does not begin with this one, its parent's.
AddedInteraction AddedTo(const AgentState& parent, Interaction whole);

// A chat without its interactions.
struct ChatSummary {
  ChatId id;
  std::string title{};
  Timestamp created_at{};
  Timestamp updated_at{};
  std::optional<InteractionId> head{};             // the interaction the chat currently ends at; nullopt: empty
  std::optional<InteractionStatus> head_status{};  // that interaction's status
  std::string model{};                             // that last said something here; empty: none, or not known
  // Input and output of all its interactions, on every branch. nullopt: not known, a chat that version 0.1 made.
  std::optional<std::int64_t> tokens{};
  std::optional<InteractionRef> forked_from{};  // what it was a copy of when it was made
  std::optional<ApprovalMode> approval_mode{};  // of this chat alone; nullopt: the server's
  std::string chosen_model{};                   // for messages that name none; empty: the default
  bool operator==(const ChatSummary&) const = default;
};

// What a person sets for a chat. What is given replaces what there is.
struct ChatSettings {
  std::optional<std::string> title{};
  std::optional<std::optional<ApprovalMode>> approval_mode{};  // of nullopt: the server's again
  std::optional<std::string> model{};                          // ChatSummary::chosen_model
};

// An interaction that is stored but cannot be read; its neighbours can.
struct DamagedInteraction {
  InteractionId id;
  Error error;                               // kCorruption
  std::optional<InteractionId> parent_id{};  // what its header says, unchecked: only good for showing what hangs where
};

// A chat with all its interactions, on every branch, by rising number.
struct Chat {
  ChatSummary summary;
  std::vector<Interaction> interactions;
  std::vector<DamagedInteraction> damaged;
};

}  // namespace reprise
