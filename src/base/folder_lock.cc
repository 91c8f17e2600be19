#include "base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/system_error.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{20};

// False: somebody else had it until the end.
bool Lock(int fd, std::optional<milliseconds> limit) {
  if (!limit) {
    while (::flock(fd, LOCK_EX) != 0) {
      if (errno != EINTR) return false;
    }
    return true;
  }
  // flock(2) has no time limit of its own.
  const auto end = Clock::now() + *limit;
  for (milliseconds pause{1}; ::flock(fd, LOCK_EX | LOCK_NB) != 0; pause = std::min(2 * pause, kLongestPause)) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || Clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace

Result<FolderLock> FolderLock::Take(const std::string& folder, std::optional<milliseconds> limit) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return FolderLock(UniqueFd());
  if (fd && Lock(fd.get(), limit)) return FolderLock(std::move(fd));
  if (fd && errno == EWOULDBLOCK) {
    return Fail(Error{.code = ErrorCode::kUnavailable,
                      .reason = "folder_locked",
                      .message = "another process has been changing files in this folder for too long; try again",
                      .detail = folder});
  }
  return Fail(SystemError(errno, folder, "the folder cannot be locked"));
}

}  // namespace reprise
