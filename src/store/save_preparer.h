#pragma once

#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "base/atomic_write.h"
#include "base/mutex.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// The parts of a save that are prepared before it. A result that was not requested is not valid().
struct SavePreparation {
  std::future<Result<AtomicFile>> file;  // for the interaction
  std::future<Result<void>> names;       // the names above the interactions are durable
};

// Prepares saves on a thread of its own while their turns still run. New chats that come together share the sync of the
// data folder. Thread-safe.
class SavePreparer {
 public:
  struct Calls {  // made on the preparer's thread
    std::function<Result<AtomicFile>(const ChatId&, InteractionId)> create_file;
    std::function<Result<void>(const ChatId&)> sync_chat;  // one chat's directory
    std::function<Result<void>()> sync_root;               // the data folder
  };
  explicit SavePreparer(Calls calls) : calls_(std::move(calls)) {}
  ~SavePreparer();  // completes all requests first
  SavePreparer(const SavePreparer&) = delete;
  SavePreparer& operator=(const SavePreparer&) = delete;

  struct What {
    bool file = true, names = true;
  };
  // REQUIRES: the chat's directories exist. No result is valid() if the system has no thread left.
  SavePreparation Prepare(const ChatId& chat, InteractionId interaction, What what);

 private:
  struct Job {
    ChatId chat;
    InteractionId interaction;
    What what;
    std::promise<Result<AtomicFile>> file{};
    std::promise<Result<void>> names{};
  };
  void Run();
  void Do(std::vector<Job> batch);

  const Calls calls_;
  Mutex mutex_;
  Condition wake_;
  std::vector<Job> jobs_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // started by the first job; last, so that it ends before what it uses
};

}  // namespace reprise
