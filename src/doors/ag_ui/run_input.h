#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "doors/conversations.h"
#include "doors/foreign_files.h"
#include "reprise/approval.h"
#include "reprise/result.h"

// What a client of AG-UI 1.0 asks for (docs.ag-ui.com): a RunAgentInput.
namespace reprise::ag_ui {

// What a person says to an interrupt.
struct ResumeEntry {
  std::string interrupt_id;
  bool cancelled = false;
  Json payload = nullptr;
};

struct RunInput {
  std::string thread_id, run_id, parent_run_id;
  bool is_current = false;  // the client speaks 1.0: it knows sub-agents and that a run can be cancelled
  Json messages = Json::array();
  std::vector<ResumeEntry> resume;

  // The last message is a person's: it begins a run. Otherwise the client asks what there is.
  bool has_message = false;
  ForeignConversation conversation;  // its chat is that of the thread
  std::vector<ForeignFile> files;    // of the last message
  std::string instructions;          // system and developer messages, and the context of the page
  std::string model;                 // forwardedProps.model; empty: the chat's
};

// kInvalidArgument (reasons of ParseJson, "invalid_body", "invalid_member"); the message names the member.
Result<RunInput> ParseRunInput(std::string_view body);

// Messages of the chat that the client has too are known by its ids, and a person's stay as the client has them. Both
// are in the order of the conversation.
void KeepMessagesOf(const Json& client, Json& shown);

// An interrupt that two entries answer differently.
std::optional<std::string> ContradictedInterrupt(const std::vector<ResumeEntry>& entries);

// What the payload of an entry answers. kInvalidArgument (reason "invalid_payload").
Result<ApprovalAnswer> ApprovalOf(const ResumeEntry& entry);
Result<InputAnswer> InputOf(const ResumeEntry& entry, const event::InputRequired& asked);

}  // namespace reprise::ag_ui
