#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "reprise/error.h"
#include "wire/message.h"

namespace reprise {

// The one place that turns kinds of errors into HTTP statuses.
int HttpStatus(ErrorCode code);

Reply JsonReply(const Json& json, int status = 200);

// {"error":{"code","message","retryable","details"?}}. `error.detail` goes to the log and nowhere else.
Reply ErrorReply(const Error& error);
Reply ForbiddenReply(std::string code, std::string message);

// An error that HTTP itself knows a status for and ErrorCode does not (408, 414, 417, 431, ...).
Reply ProtocolErrorReply(int status, std::string code, std::string message);

// 413: a body may have so many bytes.
Reply BodyTooLarge(std::uint64_t most);

}  // namespace reprise
