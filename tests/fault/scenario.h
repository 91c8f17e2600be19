#pragma once

#include "fault/life.h"
#include "store/sample.h"

namespace reprise {

inline const ChatId kMain = *ChatId::Parse("main");
inline const ChatId kOther = *ChatId::Parse("other");      // deleted again
inline const ChatId kWaiting = *ChatId::Parse("waiting");  // waits for an answer
inline const ChatId kTalking = *ChatId::Parse("talking");  // the model is in the middle of its answer

// The same keys in all lives.
std::shared_ptr<const KeySet> Keys();

// A typical use of a server. Steps whose prerequisites have failed are skipped.
//
// Two chats; turns, tools with and without approval, an edit, a cancellation, a new title, another head, a deleted
// chat. At its end one run waits for an answer, and in another the model is answering.
void FirstLife(Life& life);
// After the first life was killed: answers the waiting run, continues, and leaves another question open.
void SecondLife(Life& life);
// After the second life was killed: rejects the call and ends in an orderly way.
void ThirdLife(Life& life);

}  // namespace reprise
