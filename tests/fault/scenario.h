#pragma once

#include "fault/life.h"
#include "store/sample.h"

namespace reprise {

inline const ChatId kMain = *ChatId::Parse("main");
inline const ChatId kOther = *ChatId::Parse("other");      // is deleted again
inline const ChatId kWaiting = *ChatId::Parse("waiting");  // waits for an answer
inline const ChatId kTalking = *ChatId::Parse("talking");  // the model is in the middle of its answer

// The same set of keys in all lives.
std::shared_ptr<const KeySet> Keys();

// The actions of people with a server. A step is skipped if an earlier one that it needs has failed.
//
// Two chats with turns, tools that ask and tools that do not, an edit, a cancellation, a new title, another head, and a
// deleted chat. At the end one run waits for an answer and one listens to the model.
void FirstLife(Life& life);
// After the first was killed: answers the open question, goes on, and leaves another question open.
void SecondLife(Life& life);
// After the second was killed: answers no, and ends in an orderly way.
void ThirdLife(Life& life);

}  // namespace reprise
