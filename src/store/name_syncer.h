#pragma once

#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// Makes the names of new chats durable on a thread of its own, while their first turns are still running; those that come
// together share the sync of the data folder. Thread-safe.
class NameSyncer {
 public:
  // `sync_chat` syncs one chat's directory, `sync_root` the data folder; both are called on the syncer's thread.
  NameSyncer(std::function<Result<void>(const ChatId&)> sync_chat, std::function<Result<void>()> sync_root)
      : sync_chat_(std::move(sync_chat)), sync_root_(std::move(sync_root)) {}
  ~NameSyncer() = default;  // what was scheduled is still done
  NameSyncer(const NameSyncer&) = delete;
  NameSyncer& operator=(const NameSyncer&) = delete;

  // REQUIRES: the chat's directory is there. The result comes when its name and what lies directly in it are durable.
  std::future<Result<void>> Schedule(const ChatId& chat);

 private:
  using Job = std::pair<ChatId, std::promise<Result<void>>>;
  void Run(std::stop_token stop);
  void Sync(std::vector<Job> batch);

  const std::function<Result<void>(const ChatId&)> sync_chat_;
  const std::function<Result<void>()> sync_root_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<Job> jobs_;  // guarded by mutex_
  std::jthread thread_;    // started by the first job; last, so that it ends before what it uses
};

}  // namespace reprise
