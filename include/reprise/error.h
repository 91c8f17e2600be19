#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

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

// The default wire code ("error.code") of a kind, e.g. "not_found".
std::string_view DefaultReason(ErrorCode code);

// A failure as a value. `message` may be shown to a client and never holds a path, a secret or a stack;
// `detail` (path, errno, offset) goes to the log only.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string reason;             // machine-readable wire code, snake_case: "busy", "not_found", "integrity_auth"
  std::string message;            // one sentence for people
  std::string detail = {};        // for the log
  bool retryable = false;         // the same request may succeed later
  std::string details_json = {};  // optional JSON object for the client ("error.details")
  // The remote party's requested pause before a retry, if any.
  std::optional<std::chrono::milliseconds> retry_after = {};
};

inline bool IsNotFound(const Error& error) { return error.code == ErrorCode::kNotFound; }

// An Error with the kind's default reason.
Error MakeError(ErrorCode code, std::string message, std::string detail = {});
// One with a reason of its own.
Error Refused(ErrorCode code, std::string reason, std::string message, std::string detail = {});

}  // namespace reprise
