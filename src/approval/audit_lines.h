#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "approval/decision.h"
#include "reprise/approval.h"
#include "reprise/audit_log.h"
#include "reprise/message.h"
#include "reprise/tool.h"

// What the audit log says: each line is made here. Chat and interaction of a call are filled in by who writes it.
namespace reprise::audit {

// About to run with these arguments. `approval_id` is empty if nobody was asked.
AuditEntry Started(const ToolCall& call, const std::string& arguments, const Decision::Run& permission,
                   const std::string& approval_id);
AuditEntry Ended(const ToolCall& call, const std::string& arguments, const ToolOutcome& outcome,
                 std::chrono::steady_clock::duration taken, const std::string& approval_id);
// A person has approved or rejected it, or nobody has answered in time.
AuditEntry Answered(const ToolCall& call, const std::string& approval_id, const ApprovalAnswer& answer);
// What was shown is not so any more.
AuditEntry Superseded(const ToolCall& call, const std::string& approval_id);
// It does not run. `why` is one of AuditEntry::reason.
AuditEntry Refused(const ToolCall& call, std::string_view why, const std::vector<std::string>& decided_by = {});
// No call: a person has removed the superseded branch that began with this interaction.
AuditEntry Pruned(const ChatId& chat, InteractionId from);
// Likewise has set how the chat's calls are decided on. nullopt: as the server's.
AuditEntry ModeChanged(const ChatId& chat, std::optional<ApprovalMode> mode);

}  // namespace reprise::audit
