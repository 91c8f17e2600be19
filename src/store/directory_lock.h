#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "reprise/result.h"

namespace reprise {

// Marks a data folder as used by this process, until the object or the process ends (flock(2): a lock that its process
// has left behind blocks nobody). The file stays; it holds the process id for people to read, and a line with the URL
// of the server that has the lock, for who looks for it.
class DirectoryLock {
 public:
  // Who has the lock of a folder.
  struct Holder {
    std::string pid;  // empty: it has not said so
    std::string url;  // of the server; empty: it is none, or does not listen yet
  };
  // nullopt: nobody. kCorruption (reason "integrity_missing") if the file is a symbolic link or no file at all, kIo.
  static Result<std::optional<Holder>> FindHolder(const std::string& lock_file);

  // Wait in the kernel until whoever has the lock has said in the file whether it is a server and where, or has let go
  // of the lock. False: not by then. Two threads do not wait at the same time.
  using Clock = std::chrono::steady_clock;
  static bool AwaitSettled(const std::string& lock_file, Clock::time_point deadline);
  static bool AwaitRelease(const std::string& lock_file, Clock::time_point deadline);

  // kConflict (reason "store_locked") if another server, or another lock in this process, has it.
  static Result<std::unique_ptr<DirectoryLock>> Acquire(const std::string& lock_file);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // Where the server that has the lock listens; gone from the file when the lock is. Best effort: a full disk must not
  // keep the server from starting. `url` is http://HOST:PORT.
  void NoteUrl(std::string_view url);

 private:
  explicit DirectoryLock(UniqueFd fd) : fd_(std::move(fd)) {}
  const UniqueFd fd_;
  bool is_lock_file_ = false;  // else what it holds is not ours to replace
};

}  // namespace reprise
