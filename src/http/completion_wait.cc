#include "http/completion_wait.h"

#include <utility>

namespace reprise {

CompletionWait::CompletionWait(std::shared_ptr<EventLog> log, std::function<void()> done)
    : log_(std::move(log)), done_(std::move(done)) {}

void CompletionWait::Begin() {
  log_->Subscribe(shared_from_this());
  OnPublished(1);  // it may have been closed before we listened
}

void CompletionWait::Detach() {
  {
    const MutexLock lock(mutex_);
    done_ = nullptr;
  }
  log_->Unsubscribe(this);
}

void CompletionWait::OnPublished(std::size_t /*listeners*/) noexcept {
  if (!log_->end().closed) return;
  const MutexLock lock(mutex_);
  if (auto done = std::exchange(done_, nullptr)) done();
}

}  // namespace reprise
