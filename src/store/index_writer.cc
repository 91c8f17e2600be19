#include "store/index_writer.h"

#include <system_error>
#include <utility>

namespace reprise {

void IndexWriter::Schedule(std::set<ChatId>& chats, const ChatId& chat) {
  try {
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  } catch (const std::system_error&) {
    return;  // the next save tries again; until then the files say what the index does not
  }
  chats.insert(chat);
}

void IndexWriter::WriteNow(const ChatId& chat) {
  {
    const std::lock_guard lock(mutex_);
    Schedule(now_, chat);
  }
  wake_.notify_one();
}

void IndexWriter::WriteLater(const ChatId& chat) {
  {
    const std::lock_guard lock(mutex_);
    const bool gathering = !later_.empty();
    Schedule(later_, chat);
    if (gathering) return;
    later_due_ = std::chrono::steady_clock::now() + delay_;
  }
  wake_.notify_one();
}

void IndexWriter::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !now_.empty() || !later_.empty(); })) {
    // Lets a burst of turns gather; a stop ends it at once.
    static_cast<void>(wake_.wait_until(lock, stop, later_due_, [this] { return !now_.empty(); }));
    std::set<ChatId> batch = std::exchange(now_, {});
    if (stop.stop_requested() || std::chrono::steady_clock::now() >= later_due_) batch.merge(std::exchange(later_, {}));
    lock.unlock();
    for (const ChatId& chat : batch) write_(chat);
    lock.lock();
  }
}

}  // namespace reprise
