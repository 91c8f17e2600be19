#pragma once

#include <atomic>
#include <set>

#include "base/mutex.h"
#include "engine/answers.h"
#include "engine/busy_chats.h"
#include "engine/services.h"
#include "engine/turns.h"

namespace reprise {

// What other processes that use the same chats want of this one: it takes up runs that they have left, ends its own
// when somebody asks for that elsewhere, gives them the answers that were given elsewhere, begins what waits here when
// a run there has ended, and tells of what changes there. Thread-safe.
class Others {
 public:
  Others(EngineServices& services, BusyChats& busy, Turns& turns, Answers& answers)
      : services_(services), busy_(busy), turns_(turns), answers_(answers) {}

  void Watch();
  // Nothing more is begun.
  void Stop();

 private:
  void LookSoon();
  void LookAtQueueSoon(const ChatId& chat);
  void Look();
  void StopWhatIsAsked();

  EngineServices& services_;
  BusyChats& busy_;
  Turns& turns_;
  Answers& answers_;
  std::atomic<int> asked_ = 0;  // how often it was to look since somebody began to
  Mutex mutex_;
  std::set<ChatId> queues_to_look_at_ GUARDED_BY(mutex_);
};

}  // namespace reprise
