#include "engine/chat_settings.h"

#include "approval/audit_lines.h"
#include "base/logging.h"
#include "base/try.h"

namespace reprise {

Result<ChatSummary> ChangeSettings(EngineServices& services, const ChatId& chat, const ChatSettings& settings) {
  const auto before = TRY(services.parts.store.LoadSummary(chat));
  auto changed = TRY(services.parts.store.ChangeChat(chat, settings));
  if (changed.approval_mode != before.approval_mode) {
    NoteChange(services, audit::ModeChanged(chat, changed.approval_mode));
  }
  if (changed.instructions != before.instructions) {
    NoteChange(services, audit::InstructionsChanged(chat, changed.instructions));
  }
  services.changes.Add(ChatChange::Kind::kChatRenamed, chat);
  return changed;
}

void NoteChange(EngineServices& services, const AuditEntry& line) {
  if (services.parts.audit == nullptr) return;
  if (auto noted = services.parts.audit->Append(line); !noted) {
    LogError("the audit log could not be written", {{"detail", noted.error().detail}});
  }
}

}  // namespace reprise
