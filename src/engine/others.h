#pragma once

#include <atomic>
#include <set>

#include "base/mutex.h"
#include "engine/answers.h"
#include "engine/busy_chats.h"
#include "engine/services.h"
#include "engine/turns.h"

namespace reprise {

// Serves other processes that use the same chats: takes up runs they left behind, ends own runs on their request,
// passes on answers given there, begins the next message when a run there has ended, and reports their changes.
// Thread-safe.
class Others {
 public:
  Others(EngineServices& services, BusyChats& busy, Turns& turns, Answers& answers)
      : services_(services), busy_(busy), turns_(turns), answers_(answers) {}

  void Watch();
  // Begins nothing more.
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
  std::atomic<int> asked_ = 0;  // requests to look since the current look began
  Mutex mutex_;
  std::set<ChatId> queues_to_look_at_ GUARDED_BY(mutex_);
};

}  // namespace reprise
