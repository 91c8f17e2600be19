#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// What became of a tool call, of a branch or of a chat's approval mode. No text of a user, a model or a tool.
struct AuditEntry {
  enum class Event {
    kStarted,      // it is about to run
    kEnded,        // it has run
    kApproved,     // by a person
    kRejected,     // by a person, or nobody has answered in time
    kRefused,      // by the server: it does not run
    kPruned,       // no call: a person has removed a superseded branch, which began with this interaction
    kModeChanged,  // neither call nor interaction: a person has set the chat's approval mode
  };
  Event event = Event::kStarted;
  std::string chat_id{}, interaction_id{}, call_id{}, tool_name{};
  std::string arguments_digest{};
  // kStarted: why it may run: "default" (the tool does not ask), "mode", "grant" (of this chat), "standing_grant" (of
  // all chats), "rule" (of the configuration) or "approval". kApproved: for how long: "once", "chat" or "always".
  // kRejected: "expired", "superseded" (what was shown is not so any more); empty: a person did. kRefused: why not:
  // "unknown_tool", "invalid_arguments", "confirmation", "mode", "rule", "loop", "rate", "hook" or "cancelled".
  // kModeChanged: the mode, "server" for the server's.
  std::string reason{};
  std::string approval_id{};  // empty: none
  // Of kStarted and kRefused: the grants (their ids) and rules ("rule 1" is the first) that decided it.
  std::vector<std::string> decided_by{};
  std::string answered_by{};  // of kApproved and kRejected: the user; empty: the only one, or nobody
  // Of kEnded.
  bool is_error = false;
  std::optional<std::int64_t> duration_ms{};
  std::optional<int> exit_status{};  // of a command
};

// The account of all tool calls. Thread-safe.
class AuditLog {
 public:
  virtual ~AuditLog() = default;
  // When this returns ok, the entry survives the end of the process. kIo, kStorageFull: nothing was added.
  virtual Result<void> Append(const AuditEntry& entry) = 0;
  struct Problem {
    std::string kind;     // auth, missing, ... as `reprise verify` names them
    std::string message;  // what is wrong, for people
  };
  struct Page {
    std::vector<std::string> lines{};     // JSON objects (schemas/audit.schema.json)
    std::optional<std::uint64_t> next{};  // the number of the last of them, if there are more
    // What is wrong with these lines, and on the last page with the log's end.
    std::vector<Problem> problems{};
  };
  // The entries with numbers above `after`, oldest first. kIo. A log that does not verify is read all the same.
  virtual Result<Page> Read(std::uint64_t after, std::size_t limit) const = 0;
};

}  // namespace reprise
