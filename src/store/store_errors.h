#pragma once

#include <optional>

#include "reprise/ids.h"
#include "reprise/result.h"
#include "store/record.h"

namespace reprise {

// The refusals that all InteractionStores share.
inline tl::unexpected<Error> NoSuchInteraction() {
  return Fail(ErrorCode::kNotFound, "no such interaction in this chat");
}

inline tl::unexpected<Error> NoSuchChat() { return Fail(ErrorCode::kNotFound, "no such chat"); }

inline tl::unexpected<Error> ReadOnly() {
  return Fail(ErrorCode::kForbidden, "the data folder was opened for reading");
}

inline tl::unexpected<Error> NoneWaits() { return Fail(ErrorCode::kNotFound, "no such message waits in this chat"); }

inline tl::unexpected<Error> Dequeued() { return Fail(Reason::kDequeued, "the message was removed from the queue"); }

inline Error MissingFile(const ChatId& chat, InteractionId id) {
  return IntegrityError("missing", {.chat = chat, .interaction = id}, "the file is gone");
}

inline Error NotLastVersion(const ChatId& chat, InteractionId id) {
  return IntegrityError("rollback", {.chat = chat, .interaction = id}, "it is not the version that was stored last");
}

inline tl::unexpected<Error> ChatExists() { return Fail(Reason::kChatExists, "there is a chat of this name already"); }

inline tl::unexpected<Error> ChatIsFull() { return Fail(Reason::kChatFull, "the chat has too many interactions"); }

inline tl::unexpected<Error> NoSuchParent() {
  return Fail(ErrorCode::kNotFound, "the parent interaction is not in this chat");
}

inline tl::unexpected<Error> NotInTrash() { return Fail(ErrorCode::kNotFound, "there is no such chat in the trash"); }

inline tl::unexpected<Error> NoSuchGrant() { return Fail(ErrorCode::kNotFound, "there is no such grant"); }

inline tl::unexpected<Error> TooManyGrants() {
  return Fail(ErrorCode::kTooLarge, "there are too many grants for always");
}

// The answer of every RunStore for a chat that has a run, or is about to have one (nullopt).
inline Error RunsAlready(const std::optional<InteractionId>& id) {
  Error error = Refused(Reason::kBusy, "an interaction is running in this chat");
  if (id) error.details_json = R"({"interaction_id":")" + id->str() + R"("})";
  return error;
}

// For a run that another server has taken up.
inline Error Fenced() { return Refused(Reason::kFenced, "another server has taken up this interaction"); }

inline tl::unexpected<Error> HeadMoved() { return Fail(Reason::kHeadMoved, "the chat has gone on meanwhile"); }

}  // namespace reprise
