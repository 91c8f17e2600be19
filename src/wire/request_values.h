#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"
#include "reprise/telemetry.h"
#include "wire/message.h"

// Reads headers, paths and query parameters as types. Each function fails with kInvalidArgument unless it says
// otherwise. The message says what was expected.
namespace reprise {

// The name that the header Idempotency-Key gives this request (draft-ietf-httpapi-idempotency-key-header; the quotes of
// a structured string may be missing); nullopt without the header. kInvalidArgument if it occurs twice, is empty, is
// longer than 255 characters, or has other than visible ASCII characters. Its digest is of target, RunHeaderLines and
// body.
Result<std::optional<ClientRequest>> ClientRequestOf(const Request& request);

// The same for clients of other protocols, which mostly send no name: then the request is known by a digest of its
// target, RunHeaderLines and body. `is_whole`: the client waits for the whole answer.
Result<ClientRequest> ForeignRequestOf(const Request& request, bool is_whole);

// What the settings of such a client say about its runs in headers, because its protocol has no members for that. The
// values are percent-encoded (RFC 3986, 2.1).
inline constexpr const char *kWorkspaceHeader = "Reprise-Workspace", *kApprovalModeHeader = "Reprise-Approval-Mode",
                            *kModelHeader = "Reprise-Model";
struct RunHeaders {
  std::string workspace{};  // empty: none
  std::optional<ApprovalMode> approval_mode{};
  std::string model{};  // empty: none
};
Result<RunHeaders> RunHeadersOf(const Request& request);
// These headers as they came, a line each; empty without any. Requests with others are others.
std::string RunHeaderLines(const Request& request);

// The client's span (traceparent, tracestate); not valid if there is none or it is malformed.
TraceContext TraceParentOf(const Request& request);

// Ids in paths. A malformed interaction id is kNotFound, because no such interaction can exist.
Result<ChatId> ChatInPath(const Request& request);
Result<InteractionId> InteractionInPath(const Request& request);
Result<InteractionRef> RunInPath(const Request& request);
// ?chat_id=, nullopt without it.
Result<std::optional<ChatId>> ChatInQuery(const Request& request);

// ?limit=, from 1 to `most`; `usual` without it.
Result<std::size_t> PageLimit(const Request& request, std::size_t usual, std::size_t most);
// ?q=, valid UTF-8 of at most a kilobyte; empty without it.
Result<std::string> WordsOf(const Request& request);
// The event after which a client continues: Last-Event-ID, which a reconnecting EventSource adds to its first URL, or
// ?after_seq=; 0 without either.
Result<std::uint64_t> EventCursor(const Request& request);
// ?after=, the number of an audit log entry; 0 without it.
Result<std::uint64_t> AuditCursor(const Request& request);

}  // namespace reprise
