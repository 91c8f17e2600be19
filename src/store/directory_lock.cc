#include "store/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/system_error.h"

namespace reprise {
namespace {

tl::unexpected<Error> FailErrno(const std::string& path) {
  return Fail(SystemError(errno, path, "the data folder cannot be locked"));
}

std::string OwnerPid(int fd) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  const auto end = text.begin() + std::max<ssize_t>(size, 0);
  return {text.begin(), std::find_if(text.begin(), end, [](char c) { return c < '0' || c > '9'; })};
}

Error Locked(int fd, const std::string& path) {
  const std::string pid = OwnerPid(fd);
  return Error{.code = ErrorCode::kConflict,
               .reason = "store_locked",
               .message = "another server" + (pid.empty() ? "" : " (process " + pid + ")") + " uses this data folder",
               .detail = path};
}

// Whether this is a lock file, and no other file that has got its name (a hard link, perhaps): what it holds would be
// lost.
bool IsLockFile(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) return false;
  std::array<char, 16> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  return size >= 0 && size == status.st_size &&
         std::all_of(text.begin(), text.begin() + size, [](char c) { return (c >= '0' && c <= '9') || c == '\n'; });
}

// For people only: the lock does not depend on it, so a full disk must not keep the server from starting.
void WritePid(int fd) {
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] const ssize_t written = ::pwrite(fd, pid.data(), pid.size(), 0);
}

}  // namespace

Result<std::unique_ptr<DirectoryLock>> DirectoryLock::Acquire(const std::string& lock_file) {
  const int fd = ::open(lock_file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (fd < 0) return FailErrno(lock_file);
  std::unique_ptr<DirectoryLock> lock(new DirectoryLock(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Fail(Locked(fd, lock_file));
    return FailErrno(lock_file);
  }
  if (!IsLockFile(fd)) return lock;
  if (::fchmod(fd, 0600) != 0) return FailErrno(lock_file);
  WritePid(fd);
  return lock;
}

DirectoryLock::~DirectoryLock() { ::close(fd_); }

}  // namespace reprise
