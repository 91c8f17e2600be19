#pragma once

#include <string>
#include <utility>

#include "reprise/result.h"

namespace reprise {

// What every InteractionStore refuses in the same words.
inline tl::unexpected<Error> NoSuchInteraction() {
  return Fail(ErrorCode::kNotFound, "no such interaction in this chat");
}

inline tl::unexpected<Error> Conflict(std::string reason, std::string message) {
  return Fail(Error{.code = ErrorCode::kConflict, .reason = std::move(reason), .message = std::move(message)});
}

}  // namespace reprise
