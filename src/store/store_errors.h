#pragma once

#include <optional>
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

inline tl::unexpected<Error> NoneWaits() { return Fail(ErrorCode::kNotFound, "no such message waits in this chat"); }

inline tl::unexpected<Error> Dequeued() {
  return Fail(Reason::kDequeued, "the message was removed from the queue");
}

inline Error MissingFile(const ChatId& chat, InteractionId id) {
  return IntegrityError("missing", {.chat = chat, .interaction = id}, "the file is gone");
}

// What every RunStore says of a chat that has a run, or will have one in a moment (nullopt).
inline Error RunsAlready(const std::optional<InteractionId>& id) {
  return Error{.code = ErrorCode::kConflict,
               .reason = "busy",
               .message = "an interaction is running in this chat",
               .retryable = true,
               .details_json = id ? R"({"interaction_id":")" + id->str() + R"("})" : std::string()};
}

inline tl::unexpected<Error> HeadMoved() {
  return Fail(Reason::kHeadMoved, "the chat has gone on meanwhile");
}

}  // namespace reprise
