#include "store/index_writer.h"

#include <utility>

namespace reprise {

void IndexWriter::Schedule(const ChatId& chat) {
  {
    const std::lock_guard lock(mutex_);
    const bool gathering = !scheduled_.empty();
    scheduled_.insert(chat);
    if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
    if (gathering) return;
  }
  wake_.notify_one();
}

void IndexWriter::Run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !scheduled_.empty(); })) {
    // Lets a burst of turns gather; a stop ends it at once.
    static_cast<void>(wake_.wait_for(lock, stop, delay_, [] { return false; }));
    const std::set<ChatId> batch = std::exchange(scheduled_, {});
    lock.unlock();
    for (const ChatId& chat : batch) write_(chat);
    lock.lock();
  }
}

}  // namespace reprise
