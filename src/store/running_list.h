#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "reprise/file_system.h"
#include "reprise/ids.h"
#include "reprise/result.h"

namespace reprise {

// The unfinished interactions, in one file of a data folder ("+chat int_001" and "-chat int_001" lines), so that the
// next start finds them without a look into every chat. Thread-safe.
class RunningList {
 public:
  using Entry = std::pair<ChatId, InteractionId>;

  // `file_system` must outlive the list.
  RunningList(FileSystem& file_system, std::string path) : file_system_(file_system), path_(std::move(path)) {}

  // The interactions that the last process left. nullopt: unknown, because the list is missing or cannot be read
  // from its beginning to its end. Call it before the first Begin.
  std::optional<std::set<Entry>> ReadLast();

  // Sets the unfinished interactions, found in the folder, when ReadLast did not know them or was wrong. Unless `all`
  // were found, the next start has to search again.
  void Adopt(const std::vector<Entry>& found, bool all);

  // Reports an unfinished interaction that was found in its chat. True if the list did not have it; the next start
  // takes it up. Before ReadLast: always false, and ReadLast returns nullopt if the list does not have it.
  bool Notice(const ChatId& chat, InteractionId interaction);

  // The number of unfinished interactions that are known.
  std::size_t count();

  // When this returns ok, the line is in the file; after a power loss only if Sync was called.
  Result<void> Begin(const ChatId& chat, InteractionId interaction);
  Result<void> Sync();
  // A failure does no harm: the next start looks for the journal in vain.
  void End(const ChatId& chat, InteractionId interaction);

 private:
  Result<void> Write(const std::string& lines) REQUIRES(mutex_);
  Result<void> StartFile() REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string path_;
  Mutex mutex_;
  std::set<Entry> running_ GUARDED_BY(mutex_);
  std::unique_ptr<WritableFile> file_ GUARDED_BY(mutex_);  // null before the first line and after a failure
  std::set<Entry> noticed_ GUARDED_BY(mutex_);             // before ReadLast
  bool was_read_ GUARDED_BY(mutex_) = false;
  bool complete_ GUARDED_BY(mutex_) = true;   // running_ has all unfinished interactions
  std::size_t lines_ GUARDED_BY(mutex_) = 0;  // in the file
  bool name_durable_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
