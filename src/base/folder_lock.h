#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "reprise/result.h"

namespace reprise {

// Held by who reads a file, changes it and writes it anew, so that of several who do so at once, in this process or in
// another, none loses what another has written (flock(2) on the file's folder: one that its process has left behind
// blocks nobody, and no file more lies about). Until the object ends.
class FolderLock {
 public:
  // Waits for whoever has it; kUnavailable when `limit` is over (nullopt: there is none). A folder that the kernel does
  // not know is one in memory, of this process alone: then nothing is held.
  static Result<FolderLock> Take(const std::string& folder, std::optional<std::chrono::milliseconds> limit);

 private:
  explicit FolderLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace reprise
