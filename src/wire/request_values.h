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
// otherwise, and the message names the header or parameter.
namespace reprise {

// What the header Idempotency-Key calls this request (draft-ietf-httpapi-idempotency-key-header; the quotes of a
// structured string may be left out); nullopt without one. kInvalidArgument: it is there twice, empty, longer than 255
// characters, or has others than visible ASCII ones.
Result<std::optional<ClientRequest>> ClientRequestOf(const Request& request);

// The same of a client of another protocol, which mostly sends none: then the request is unnamed, and known by what it
// is. `is_whole`: the client waits for the whole answer.
Result<ClientRequest> ForeignRequestOf(const Request& request, bool is_whole);

// The client's span (traceparent, tracestate); not valid if there is none, or what is there cannot be one.
TraceContext TraceParentOf(const Request& request);

// ids in paths. An interaction id that cannot be one is kNotFound: no such interaction will ever be.
Result<ChatId> ChatInPath(const Request& request);
Result<InteractionId> InteractionInPath(const Request& request);
Result<InteractionRef> RunInPath(const Request& request);

// ?limit=, 1 to `most`.
Result<std::size_t> PageLimit(const Request& request, std::size_t usual, std::size_t most);
// ?q=, valid UTF-8 of a kilobyte at most; empty if there is none.
Result<std::string> WordsOf(const Request& request);
// The event after which a client wants to go on: Last-Event-ID, which a reconnecting EventSource adds to its first URL,
// or ?after_seq=; 0 if neither.
Result<std::uint64_t> EventCursor(const Request& request);
// ?after=, the number of an entry of the audit log; 0 if there is none.
Result<std::uint64_t> AuditCursor(const Request& request);

}  // namespace reprise
