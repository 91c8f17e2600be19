#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "reprise/result.h"

namespace reprise {

// Where log lines go, one system call each. Thread-safe.
//
// A pipe that nobody reads, or a terminal that stands still, must not hold up the threads that log: what it does not
// take is left out, and how many lines that were is told as soon as it takes some again. The same if a disk is full.
class LogOutput {
 public:
  // `fd` is not owned. `left_out` makes the line that tells how many are missing.
  LogOutput(int fd, std::function<std::string(std::uint64_t lines)> left_out);

  // From now on to this file.
  void MoveTo(UniqueFd file);

  // Writes a line (with its line feed). If there is no room for it waits so long for some, unless a line was left out
  // already: who does not read is waited for once.
  void Write(std::string_view line, std::chrono::milliseconds patience);

 private:
  bool HasRoom(std::chrono::milliseconds patience) const REQUIRES(mutex_);
  bool TellLeftOut() REQUIRES(mutex_);
  bool Put(std::string_view line) REQUIRES(mutex_);

  const std::function<std::string(std::uint64_t)> left_out_line_;

  Mutex mutex_;
  UniqueFd file_ GUARDED_BY(mutex_);
  int fd_ GUARDED_BY(mutex_);
  bool is_file_ GUARDED_BY(mutex_);                // a write to one waits for nobody
  bool cut_off_ GUARDED_BY(mutex_) = false;        // the last line has no end
  std::uint64_t left_out_ GUARDED_BY(mutex_) = 0;  // lines since the last one that was written
};

// Opens a file to append log lines to, and makes it if it is not there: a regular file of this user alone, mode 0600,
// that is no symbolic link and has no second name, so that no line ends up in another file. kForbidden otherwise; kIo.
// The message names the file, since it is for the person at the terminal.
Result<UniqueFd> OpenLogFile(const std::string& path);

}  // namespace reprise
