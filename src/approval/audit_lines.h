#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "approval/decision.h"
#include "reprise/approval.h"
#include "reprise/audit_log.h"
#include "reprise/jobs.h"
#include "reprise/message.h"
#include "reprise/tool.h"

// Makes all lines of the audit log. The writer fills in the chat and interaction of a call.
namespace reprise::audit {

// The call is about to run with these arguments. `approval_id` is empty if no approval was asked for.
AuditEntry Started(const ToolCall& call, const std::string& arguments, const Decision::Run& permission,
                   const std::string& approval_id);
AuditEntry Ended(const ToolCall& call, const std::string& arguments, const ToolOutcome& outcome,
                 std::chrono::steady_clock::duration taken, const std::string& approval_id);
// The call's command has used the network.
AuditEntry Connected(const ToolCall& call, const std::string& arguments, const NetworkUse& use);
// A person approved or rejected the call, or the request expired.
AuditEntry Answered(const ToolCall& call, const std::string& approval_id, const ApprovalAnswer& answer);
// The call's terms changed after it was shown.
AuditEntry Superseded(const ToolCall& call, const std::string& approval_id);
// The call does not run. `why` is one of AuditEntry::reason.
AuditEntry Refused(const ToolCall& call, std::string_view why, const std::vector<std::string>& decided_by = {});
// Not about a call: a person removed the superseded branch that began with this interaction.
AuditEntry Pruned(const ChatId& chat, InteractionId from);
// Likewise: a person set the chat's approval mode. nullopt is the server's mode.
AuditEntry ModeChanged(const ChatId& chat, std::optional<ApprovalMode> mode);
// Likewise: a person set the chat's own instructions.
AuditEntry InstructionsChanged(const ChatId& chat, const std::string& instructions);
// About no chat: a person changed what the server uses; see AuditEntry. `digest` is of what was changed.
AuditEntry ServerChanged(AuditEntry::Event event, const std::string& name, const std::string& digest);
// Of a chat again: a person opened the port of a background job, or closed it (its state says which).
AuditEntry PortChanged(const ChatId& chat, const std::string& job, const JobPort& port, const std::string& by);

}  // namespace reprise::audit
