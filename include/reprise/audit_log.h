#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// An event of a tool call, a branch, a chat's settings or the server's. Holds no text of a user, a model or a tool.
struct AuditEntry {
  enum class Event {
    kStarted,      // about to run
    kEnded,        // has run
    kApproved,     // by a person
    kRejected,     // by a person, or not answered in time
    kRefused,      // by the server: it does not run
    kPruned,       // no call: a person removed a superseded branch, which began with this interaction
    kConnected,    // its command used the network
    kModeChanged,  // neither call nor interaction: a person set the chat's approval mode
    kPortOpened,   // likewise: a person opened a port of a background job
    kPortClosed,
    kInstructionsChanged,  // likewise: a person set the chat's own instructions; arguments_digest is theirs
    kProviderConnected,    // no chat: a person changed what the server uses. `tool_name` is the provider's, server's or
    kProviderDisconnected,  // rule's name, and arguments_digest of its address, its command or the rule's words
    kServerAdded,
    kServerRemoved,
    kRuleAdded,
    kRuleRemoved,
  };
  Event event = Event::kStarted;
  std::string chat_id{}, interaction_id{}, call_id{}, tool_name{};
  std::string of_call{};  // the call that a sub-agent works for, whose call this is; empty: it is the agent's own
  std::string arguments_digest{};
  // kStarted: why it may run: "default" (the tool does not ask), "mode", "grant" (of this chat), "standing_grant" (of
  // all chats), "rule" (of the configuration) or "approval". kApproved: the scope: "once", "chat" or "always".
  // kRejected: "expired", "superseded" (the request shown was outdated); empty: by a person. kRefused: why not:
  // "unknown_tool", "invalid_arguments", "confirmation", "mode", "rule", "loop", "rate", "hook" or "cancelled".
  // kModeChanged: the mode, "server" for the server's.
  std::string reason{};
  std::string approval_id{};  // empty: none
  // kStarted, kRefused: the deciding grants (by id) and rules ("rule 1" is the first).
  std::vector<std::string> decided_by{};
  std::string answered_by{};     // kApproved, kRejected, and of ports: the user; empty: the only one, or none
  bool outside_sandbox = false;  // kApproved, kStarted: a person lets this one call run outside the sandbox
  // kEnded only.
  bool is_error = false;
  std::optional<std::int64_t> duration_ms{};
  std::optional<int> exit_status{};  // of a command
  // kPortOpened, kPortClosed only.
  std::string job_id{};
  std::uint16_t port = 0;  // that the job listens on
  // "HOST:PORT". kConnected: with the bytes of the call. kPortOpened: where the port is reached.
  std::string host{};
  std::uint64_t sent_bytes = 0, received_bytes = 0;
};

// The audit log of all tool calls. Thread-safe.
class AuditLog {
 public:
  virtual ~AuditLog() = default;
  // When this returns ok, the entry survives the end of the process. kIo, kStorageFull: nothing was added.
  virtual Result<void> Append(const AuditEntry& entry) = 0;
  struct Problem {
    std::string kind;     // auth, missing, ... as in `reprise verify`
    std::string message;  // what is wrong, for people
  };
  struct Page {
    std::vector<std::string> lines{};     // JSON objects (schemas/audit.schema.json)
    std::optional<std::uint64_t> next{};  // the last line's number, if more follow
    // Defects of these lines; on the last page also of the log's end.
    std::vector<Problem> problems{};
  };
  // The entries with numbers above `after`, oldest first. kIo. A log that fails verification can still be read.
  virtual Result<Page> Read(std::uint64_t after, std::size_t limit) const = 0;
};

}  // namespace reprise
