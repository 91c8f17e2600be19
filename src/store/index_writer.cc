#include "store/index_writer.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/background_thread.h"

namespace reprise {

void IndexWriter::Schedule(const ChatId& chat) {
  const auto now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    try {
      if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
    } catch (const std::system_error&) {
      return;  // the next save tries again; until then the files say what the index does not
    }
    const bool gathering = !scheduled_.empty();
    scheduled_.insert(chat);
    latest_ = now;
    if (gathering) return;
    first_ = now;
  }
  wake_.notify_one();
}

void IndexWriter::Run(const std::stop_token& stop) {
  BecomeBackgroundThread();
  std::unique_lock lock(mutex_);
  const auto due = [&] { return std::min(first_ + delay_, latest_ + delay_ / 20); };
  while (wake_.wait(lock, stop, [this] { return !scheduled_.empty(); })) {
    while (!stop.stop_requested() && Clock::now() < due()) {
      static_cast<void>(wake_.wait_until(lock, stop, due(), [] { return false; }));
    }
    const std::set<ChatId> batch = std::exchange(scheduled_, {});
    lock.unlock();
    for (const ChatId& chat : batch) write_(chat);
    lock.lock();
  }
}

}  // namespace reprise
