#pragma once

#include "engine/services.h"
#include "reprise/audit_log.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// Changes the chat's settings, which have been checked, and tells the audit log and the clients. The failures of
// InteractionStore::ChangeChat.
Result<ChatSummary> ChangeSettings(EngineServices& services, const ChatId& chat, const ChatSettings& settings);

// Writes an audit line for an act of a person that is no call. A failure is logged only.
void NoteChange(EngineServices& services, const AuditEntry& line);

}  // namespace reprise
