#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "reprise/reasons.h"

namespace reprise {

// The kind of an Error. One table (src/wire/error_response.cc) maps kinds to HTTP statuses.
enum class ErrorCode {
  kInvalidArgument,  // malformed or out of contract; the caller must change the request
  kUnauthenticated,  // a token is missing or wrong
  kForbidden,        // the caller, its address or this action is not allowed
  kNotFound,
  kConflict,       // busy, stale, or existing already
  kUnprocessable,  // well-formed, but its key belongs to another request: never succeeds
  kGone,           // existed, but no longer does
  kTooLarge,
  kUnsupportedType,  // media type
  kCorruption,       // stored data fails its integrity check; `reason` is integrity_<kind>
  kIo,               // the disk failed
  kStorageFull,      // no space or quota left
  kCancelled,
  kDeadlineExceeded,
  kUnavailable,  // overloaded, stopping, or a remote party cannot be reached
  kProvider,     // a model provider refused the request or broke its protocol
  kInternal,     // a defect of Reprise
};

// Why something failed; code that depends on it asks Error::Is. The table is in reprise/reasons.h.
enum class Reason : std::uint8_t {
#define REPRISE_REASON(name, wire, kind, retryable) name,
  REPRISE_REASONS(REPRISE_REASON)
#undef REPRISE_REASON
};

// The name on the wire ("error.code"), e.g. "not_found".
std::string_view NameOf(Reason reason);
// The name that an error of this kind has if it has no reason of its own.
std::string_view DefaultReason(ErrorCode code);

// A failure as a value. `message` may be shown to a client and never holds a path, a secret or a stack; `detail` (path,
// errno, offset) goes to the log only.
//
//   auto summary = store.LoadSummary(chat);
//   if (!summary && reprise::IsNotFound(summary.error())) return Create(chat);
//   if (!summary) return reprise::Fail(summary.error());  // reprise/result.h
//   if (summary->head) return reprise::Fail(reprise::ErrorCode::kConflict, "the chat is not empty");
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string reason;             // the name of a Reason, or another one, from a newer server or a plug-in
  std::string message;            // one sentence for people
  std::string detail = {};        // for the log
  bool retryable = false;         // the same request may succeed later
  std::string details_json = {};  // optional JSON object for the client ("error.details")
  // The remote party's requested pause before a retry, if any.
  std::optional<std::chrono::milliseconds> retry_after = {};

  bool Is(Reason other) const { return reason == NameOf(other); }
};

inline bool IsNotFound(const Error& error) { return error.code == ErrorCode::kNotFound; }

// Makes an Error with the kind's default reason.
Error MakeError(ErrorCode code, std::string message, std::string detail = {});
// Makes an Error with a reason of the table, which has its kind and whether it is retryable:
//
//   return Fail(Refused(Reason::kBusy, "an interaction is running in this chat"));
Error Refused(Reason reason, std::string message, std::string detail = {});

}  // namespace reprise
