#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "doors/conversations.h"
#include "doors/door.h"
#include "reprise/approval.h"
#include "reprise/result.h"

// The request of an AG-UI 1.0 client (docs.ag-ui.com): a RunAgentInput.
namespace reprise::ag_ui {

// A person's answer to an interrupt.
struct ResumeEntry {
  std::string interrupt_id;
  bool cancelled = false;
  Json payload = nullptr;
};

struct RunInput {
  std::string thread_id, run_id, parent_run_id;
  bool is_current = false;  // the client speaks 1.0, so it knows sub-agents and cancelled runs
  Json messages = Json::array();
  std::vector<ResumeEntry> resume;

  // True if the last message is a person's, which begins a run. Otherwise the client asks for the current state.
  bool has_message = false;
  ForeignConversation conversation;  // its chat is the thread's
  std::vector<ForeignFile> files;    // of the last message
  std::string instructions;          // system and developer messages, and the context of the page
  std::string model;                 // forwardedProps.model; empty: the chat's
};

// kInvalidArgument (reasons of ParseJson, "invalid_body", "invalid_member"); the message names the member.
Result<RunInput> ParseRunInput(std::string_view body);

// Gives the messages in `shown` that the client has too the client's ids, and replaces those of a person by the
// client's. Both lists are in the order of the conversation.
void KeepMessagesOf(const Json& client, Json& shown);

// An interrupt for which two entries have different answers.
std::optional<std::string> ContradictedInterrupt(const std::vector<ResumeEntry>& entries);

// The answer in an entry's payload. kInvalidArgument (reason "invalid_payload").
Result<ApprovalAnswer> ApprovalOf(const ResumeEntry& entry);
Result<InputAnswer> InputOf(const ResumeEntry& entry, const event::InputRequired& asked);

}  // namespace reprise::ag_ui
