#pragma once

#include <string>
#include <utility>

#include "reprise/ids.h"
#include "reprise/result.h"
#include "store/record.h"

namespace reprise {

// What every InteractionStore refuses in the same words.
inline tl::unexpected<Error> NoSuchInteraction() {
  return Fail(ErrorCode::kNotFound, "no such interaction in this chat");
}

inline tl::unexpected<Error> NoSuchChat() { return Fail(ErrorCode::kNotFound, "no such chat"); }

inline Error MissingFile(const ChatId& chat, InteractionId id) {
  return IntegrityError("missing", {.chat = chat, .interaction = id}, "the file is gone");
}

inline tl::unexpected<Error> Conflict(std::string reason, std::string message) {
  return Fail(Error{.code = ErrorCode::kConflict, .reason = std::move(reason), .message = std::move(message)});
}

}  // namespace reprise
