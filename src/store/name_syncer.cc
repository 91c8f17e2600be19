#include "store/name_syncer.h"

namespace reprise {

std::future<Result<void>> NameSyncer::Schedule(const ChatId& chat) {
  std::promise<Result<void>> promise;
  auto result = promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    jobs_.emplace_back(chat, std::move(promise));
    if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
  }
  wake_.notify_one();
  return result;
}

void NameSyncer::Run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return !jobs_.empty(); })) {
    std::vector<Job> batch = std::exchange(jobs_, {});
    lock.unlock();
    Sync(std::move(batch));
    lock.lock();
  }
}

void NameSyncer::Sync(std::vector<Job> batch) {
  std::vector<Result<void>> results;
  results.reserve(batch.size());
  for (const auto& [chat, promise] : batch) results.push_back(sync_chat_(chat));
  const Result<void> root = sync_root_();
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i].second.set_value(results[i] ? root : std::move(results[i]));
}

}  // namespace reprise
