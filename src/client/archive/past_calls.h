#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "reprise/audit_log.h"
#include "reprise/event.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/message.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// A tool call on record, and what became of it.
struct PastCall {
  enum class Fate {
    kUnknown,     // nobody was asked, and the audit log does not have it
    kRan,         // without a question, for the reason `permission`
    kApproved,    // by a person
    kChanged,     // by a person, with other arguments
    kRejected,    // by a person
    kExpired,     // not answered in time
    kUnanswered,  // asked about when its run ended
    kDenied,      // by a rule
    kRefusedByMode,
    kRefused,  // before any rule counted: no such tool, invalid arguments, a hook, a loop, ...
  };
  ChatId chat;
  InteractionId interaction;
  std::string id{};         // of a sub-agent's call with that of its parent's (event::NestedCallId)
  std::string workspace{};  // as in Interaction
  Timestamp at{};
  ToolCall call{};  // as rules see it: as it was shown, else as the model asked for it. `id` is the caller's own
  Fate fate = Fate::kUnknown;
  std::string permission{};                        // AuditEntry::reason of its start; empty: unknown
  std::optional<event::ApprovalRequired> asked{};  // the last question about it
  std::string changed_to{};                        // kChanged: the arguments that ran
  bool outside_sandbox = false;                    // kApproved, kChanged: the person let it leave the sandbox
  bool refused_for_plan = false;                   // kRefusedByMode: the mode was ApprovalMode::kPlan

  std::string turn() const { return chat.str() + "/" + interaction.str(); }
  bool was_asked() const { return asked.has_value(); }
  // A person said no to the call as it was, or a rule did.
  bool was_held_back() const { return fate == Fate::kRejected || fate == Fate::kChanged || fate == Fate::kDenied; }
};

// The tool calls of chats. A fork's copies of a turn count once.
//
//   PastCalls past;
//   past.Add(chat, since);
//   TRY(past.ReadFates(AuditFile(root, nullptr, file_system)));
//   for (const PastCall& each : past.calls()) Print(each.call.name);
class PastCalls {
 public:
  // Leaves out turns before `since` and imported ones, because nobody here answered those questions.
  void Add(const Chat& chat, Timestamp since);
  // Sets the fate of the calls that nobody was asked about. Call it once, after all chats. The failures of
  // ReadAuditLines.
  Result<void> ReadFates(const AuditLog& log);

  const std::vector<PastCall>& calls() const { return calls_; }
  std::size_t turns() const { return turns_; }
  std::size_t imported() const { return imported_; }  // turns that were left out

 private:
  void Add(const Interaction& interaction);
  void DropCopies();

  std::vector<PastCall> calls_;
  std::size_t turns_ = 0, imported_ = 0;
};

}  // namespace reprise
