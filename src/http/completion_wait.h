#pragma once

#include <functional>
#include <memory>

#include "base/mutex.h"
#include "reprise/event_log.h"

namespace reprise {

// Calls back once when a log has been closed: how a client that wants no stream waits without a thread. Thread-safe.
class CompletionWait : public EventLogListener, public std::enable_shared_from_this<CompletionWait> {
 public:
  // `done` must not block; it is called from the thread that closes the log (or from Begin) with a lock held, and never
  // after Detach.
  CompletionWait(std::shared_ptr<EventLog> log, std::function<void()> done);

  void Begin();
  void Detach();

  void OnPublished(std::size_t listeners) noexcept override;

 private:
  const std::shared_ptr<EventLog> log_;
  Mutex mutex_;
  std::function<void()> done_ GUARDED_BY(mutex_);  // empty once called or detached
};

}  // namespace reprise
