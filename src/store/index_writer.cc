#include "store/index_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/background_thread.h"
#include "base/guarded.h"

namespace reprise {

bool IndexWriter::StartThread() {
  try {
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
    return true;
  } catch (const std::system_error&) {
    return false;  // the next save tries again; until then the files say what the index does not
  }
}

void IndexWriter::WriteLater(const ChatId& chat) {
  {
    const MutexLock lock(mutex_);
    if (!StartThread()) return;
    const bool gathering = !later_.empty();
    later_.insert(chat);
    latest_ = Clock::now();
    if (gathering) return;
    first_ = latest_;
  }
  wake_.notify_one();
}

void IndexWriter::WriteNow(const ChatId& chat) {
  {
    const MutexLock lock(mutex_);
    if (!StartThread()) return;
    later_.erase(chat);
    now_.insert(chat);
  }
  wake_.notify_one();
}

void IndexWriter::Run(const std::stop_token& stop) {
  BecomeBackgroundThread();
  MutexLock lock(mutex_);
  const auto due = [this]() REQUIRES(mutex_) { return std::min(first_ + delay_, latest_ + delay_ / 20); };
  while (wake_.wait(lock, stop, [this]() REQUIRES(mutex_) { return !now_.empty() || !later_.empty(); })) {
    while (now_.empty() && !stop.stop_requested() && Clock::now() < due()) {
      static_cast<void>(wake_.wait_until(lock, stop, due(), [this]() REQUIRES(mutex_) { return !now_.empty(); }));
    }
    std::set<ChatId> batch = std::exchange(now_, {});
    if (stop.stop_requested() || Clock::now() >= due()) batch.merge(std::exchange(later_, {}));
    lock.unlock();
    for (const ChatId& chat : batch) Guarded("the writing of an index", [&] { write_(chat); });
    lock.lock();
  }
}

}  // namespace reprise
