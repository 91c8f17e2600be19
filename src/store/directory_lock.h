#pragma once

#include <memory>
#include <string>

#include "reprise/result.h"

namespace reprise {

// Marks a data folder as used by this process, until the object or the process ends (flock(2): a lock that its process
// has left behind blocks nobody). The file stays; it holds the process id for people to read.
class DirectoryLock {
 public:
  // kConflict (reason "store_locked") if another server, or another lock in this process, has it.
  static Result<std::unique_ptr<DirectoryLock>> Acquire(const std::string& lock_file);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  explicit DirectoryLock(int fd) : fd_(fd) {}
  const int fd_;
};

}  // namespace reprise
