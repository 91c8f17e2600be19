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
  return Fail(Refused(ErrorCode::kGone, "dequeued", "the message was removed from the queue"));
}

inline Error MissingFile(const ChatId& chat, InteractionId id) {
  return IntegrityError("missing", {.chat = chat, .interaction = id}, "the file is gone");
}

inline tl::unexpected<Error> Conflict(std::string reason, std::string message) {
  return Fail(Refused(ErrorCode::kConflict, std::move(reason), std::move(message)));
}

inline tl::unexpected<Error> ChatExists() { return Conflict("chat_exists", "there is a chat of this name already"); }

inline tl::unexpected<Error> ChatIsFull() { return Conflict("chat_full", "the chat has too many interactions"); }

inline tl::unexpected<Error> NoSuchParent() {
  return Fail(ErrorCode::kNotFound, "the parent interaction is not in this chat");
}

inline tl::unexpected<Error> NotInTrash() { return Fail(ErrorCode::kNotFound, "there is no such chat in the trash"); }

inline tl::unexpected<Error> NoSuchGrant() { return Fail(ErrorCode::kNotFound, "there is no such grant"); }

inline tl::unexpected<Error> TooManyGrants() {
  return Fail(ErrorCode::kTooLarge, "there are too many grants for always");
}

// What every RunStore says of a chat that has a run, or will have one in a moment (nullopt).
inline Error RunsAlready(const std::optional<InteractionId>& id) {
  return Error{.code = ErrorCode::kConflict,
               .reason = "busy",
               .message = "an interaction is running in this chat",
               .retryable = true,
               .details_json = id ? R"({"interaction_id":")" + id->str() + R"("})" : std::string()};
}

// Of a run whose right to write somebody else has taken.
inline Error Fenced() {
  return Refused(ErrorCode::kConflict, "fenced", "another server has taken up this interaction");
}

inline tl::unexpected<Error> HeadMoved() {
  return Fail(Error{.code = ErrorCode::kConflict,
                    .reason = "head_moved",
                    .message = "the chat has gone on meanwhile",
                    .retryable = true});
}

}  // namespace reprise
