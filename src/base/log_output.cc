#include "base/log_output.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace reprise {
namespace {

bool IsRegularFile(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

LogOutput::LogOutput(int fd, std::function<std::string(std::uint64_t)> left_out)
    : left_out_line_(std::move(left_out)), fd_(fd), is_file_(IsRegularFile(fd)) {}

void LogOutput::MoveTo(UniqueFd file) {
  const MutexLock lock(mutex_);
  file_ = std::move(file);
  fd_ = file_.get();
  is_file_ = IsRegularFile(fd_);
  cut_off_ = false;
}

void LogOutput::Write(std::string_view line, std::chrono::milliseconds patience) {
  const MutexLock lock(mutex_);
  const bool written = HasRoom(left_out_ > 0 ? std::chrono::milliseconds(0) : patience) && TellLeftOut() && Put(line);
  if (!written) ++left_out_;
}

// What polls as writable takes PIPE_BUF bytes without waiting, unless another process fills it in between. A failure
// counts as room: the write tells.
bool LogOutput::HasRoom(std::chrono::milliseconds patience) const {
  if (is_file_) return true;
  pollfd wanted{.fd = fd_, .events = POLLOUT, .revents = 0};
  return ::poll(&wanted, 1, static_cast<int>(patience.count())) > 0;
}

// True: there is room for more.
bool LogOutput::TellLeftOut() {
  if (left_out_ == 0) return true;
  if (!Put(left_out_line_(left_out_))) return false;
  left_out_ = 0;
  return HasRoom(std::chrono::milliseconds(0));
}

bool LogOutput::Put(std::string_view line) {
  const std::string rest_of_last = cut_off_ ? "\n" + std::string(line) : std::string();
  if (cut_off_) line = rest_of_last;
  // In a file a line is one write, so that two servers can append to the same.
  const std::size_t most = is_file_ ? line.size() : PIPE_BUF;
  for (std::size_t done = 0; done < line.size();) {
    if (done > 0 && !HasRoom(std::chrono::milliseconds(0))) return cut_off_ = true, false;
    const ssize_t put = ::write(fd_, line.data() + done, std::min(line.size() - done, most));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return cut_off_ = cut_off_ || done > 0, false;
    done += static_cast<std::size_t>(put);
  }
  cut_off_ = false;
  return true;
}

Result<UniqueFd> OpenLogFile(const std::string& path) {
  const auto refuse = [&path](ErrorCode code, const std::string& why) {
    return Fail(code, "the log file " + path + " " + why);
  };
  // O_NONBLOCK: a fifo must be refused, not waited for.
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  UniqueFd file(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (!file && errno == ELOOP) {
    return refuse(ErrorCode::kForbidden, "is a symbolic link; name the file that it leads to");
  }
  if (!file && errno == ENXIO) return refuse(ErrorCode::kForbidden, "is not a regular file");
  if (!file) return refuse(ErrorCode::kIo, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    return refuse(ErrorCode::kIo, std::string("cannot be opened: ") + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return refuse(ErrorCode::kForbidden, "is not a regular file");
  if (status.st_uid != ::geteuid()) return refuse(ErrorCode::kForbidden, "belongs to another user");
  if (status.st_nlink > 1) return refuse(ErrorCode::kForbidden, "has a second name (a hard link); name another file");
  if (::fchmod(file.get(), S_IRUSR | S_IWUSR) != 0) {
    return refuse(ErrorCode::kIo, std::string("cannot be made private: ") + std::strerror(errno));
  }
  return file;
}

}  // namespace reprise
