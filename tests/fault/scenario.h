#pragma once

#include "fault/life.h"
#include "store/sample.h"

namespace reprise {

inline const ChatId kMain = *ChatId::Parse("main");
inline const ChatId kOther = *ChatId::Parse("other");      // deleted again
inline const ChatId kWaiting = *ChatId::Parse("waiting");  // for an answer
inline const ChatId kTalking = *ChatId::Parse("talking");  // the model, in the middle of its answer

// One and the same set in all lives.
std::shared_ptr<const KeySet> Keys();

// What people do with a server. Each step is left out when what it builds on has failed.
//
// Two chats; turns, tools that ask and tools that do not, an edit, a cancellation, a new title, another head, a chat
// deleted. At its end one run waits for an answer and one listens to the model.
void FirstLife(Life& life);
// After the first was killed: answers what waits, goes on, and leaves another question open.
void SecondLife(Life& life);
// After the second was killed: says no, and ends in an orderly way.
void ThirdLife(Life& life);

}  // namespace reprise
