#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "base/mutex.h"

namespace reprise {

// The state of the git work tree that holds `folder`, in words: branch, commit, what is in progress, how many tracked
// files differ from the index by size or time. Empty if there is none. Reads git's files itself and runs nothing,
// because a repository's configuration can name programs that git would run (core.fsmonitor, filters, hooks). Names of
// files are left out, because a stranger may have chosen them. Takes little more than `time`: then the number is a
// lower bound.
std::string DescribeGit(const std::string& folder, std::chrono::milliseconds time = std::chrono::milliseconds(20));

// The state at the beginning of each conversation, the same for all of its turns. It is read again when a chat has
// had no turn for so long that the provider has dropped what it had cached of the conversation. Thread-safe.
class GitSnapshots {
 public:
  using Clock = std::chrono::steady_clock;
  explicit GitSnapshots(std::string folder, std::chrono::minutes kept = std::chrono::minutes(60))
      : folder_(std::move(folder)), kept_(kept) {}

  std::string Of(std::string_view chat);

 private:
  struct Snapshot {
    std::string text;
    Clock::time_point used_at;
  };

  const std::string folder_;
  const std::chrono::minutes kept_;
  Mutex mutex_;
  std::map<std::string, Snapshot, std::less<>> of_ GUARDED_BY(mutex_);  // by chat
};

}  // namespace reprise
