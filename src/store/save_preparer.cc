#include "store/save_preparer.h"

#include <system_error>
#include <utility>

#include "base/logging.h"
#include "base/system.h"

namespace reprise {

SavePreparer::~SavePreparer() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
}

SavePreparation SavePreparer::Prepare(const ChatId& chat, InteractionId interaction, What what) {
  if (!what.file && !what.names) return {};
  Job job{.chat = chat, .interaction = interaction, .what = what};
  SavePreparation preparation;
  if (what.file) preparation.file = job.file.get_future();
  if (what.names) preparation.names = job.names.get_future();
  {
    const MutexLock lock(mutex_);
    try {
      if (!thread_.joinable()) thread_ = std::jthread([this] { Run(); });
    } catch (const std::system_error&) {
      return {};
    }
    jobs_.push_back(std::move(job));
  }
  wake_.notify_one();
  return preparation;
}

void SavePreparer::Run() {
  BecomeBackgroundThread();
  MutexLock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    std::vector<Job> batch = std::exchange(jobs_, {});
    lock.unlock();
    Guarded("the preparation of saves", [&] { Do(std::move(batch)); });  // after an exception, waiters see it
    lock.lock();
  }
}

// The files first, because a save begins with them and waits for the names only at its end.
void SavePreparer::Do(std::vector<Job> batch) {
  for (Job& job : batch) {
    if (job.what.file) job.file.set_value(calls_.create_file(job.chat, job.interaction));
  }
  std::erase_if(batch, [](const Job& job) { return !job.what.names; });
  if (batch.empty()) return;
  std::vector<Result<void>> results;
  results.reserve(batch.size());
  for (const Job& job : batch) results.push_back(calls_.sync_chat(job.chat));
  const Result<void> root = calls_.sync_root();
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i].names.set_value(results[i] ? root : std::move(results[i]));
}

}  // namespace reprise
