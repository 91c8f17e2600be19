#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "reprise/error.h"
#include "wire/message.h"

namespace reprise {

// The one place that maps kinds of errors to HTTP statuses.
int HttpStatus(ErrorCode code);

Reply JsonReply(const Json& json, int status = 200);

// {"error":{"code","message","retryable","details"?}}. `error.detail` goes only to the log.
Reply ErrorReply(const Error& error);
inline Reply ErrorReply(Reason reason, std::string message) { return ErrorReply(Refused(reason, std::move(message))); }

// An error whose HTTP status has no ErrorCode (408, 414, 417, 431, ...).
Reply ProtocolErrorReply(int status, std::string code, std::string message);

// 413: the body has more than `most` bytes.
Reply BodyTooLarge(std::uint64_t most);

}  // namespace reprise
