#include "tools/files/open_beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace reprise {
namespace {

// RESOLVE_BENEATH gives EAGAIN when a rename elsewhere made the check of ".." uncertain.
constexpr int kMaxAttempts = 64;

}  // namespace

UniqueFd OpenBeneath(int root, const std::string& path, int flags, Symlinks symlinks) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (symlinks == Symlinks::kRefuse) how.resolve |= RESOLVE_NO_SYMLINKS;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const auto fd = static_cast<int>(::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how));
    if (fd >= 0) return UniqueFd(fd);
    // A kernel without the call, or a filter around the server that does not know it (EPERM for every path).
    if (errno == ENOSYS || errno == EPERM) return OpenBeneathByWalk(root, path, flags);
    if (errno != EAGAIN && errno != EINTR) break;
  }
  return UniqueFd();
}

UniqueFd OpenBeneathByWalk(int root, const std::string& path, int flags) {
  if (path.empty() || path.front() == '/') {
    errno = path.empty() ? ENOENT : EXDEV;
    return UniqueFd();
  }
  UniqueFd directory;
  for (std::size_t at = 0;;) {
    const std::size_t end = path.find('/', at);
    const bool last = path.find_first_not_of('/', end == std::string::npos ? path.size() : end) == std::string::npos;
    const std::string name = path.substr(at, end == std::string::npos ? end : end - at);
    if (name == "..") {
      errno = EXDEV;
      return UniqueFd();
    }
    const int from = directory ? directory.get() : root;
    const int how = last ? flags : O_PATH | O_DIRECTORY;
    UniqueFd next(::openat(from, name.c_str(), how | O_NOFOLLOW | O_CLOEXEC));
    // With O_DIRECTORY a symbolic link is "not a directory"; say what it is.
    if (!next && errno == ENOTDIR) {
      UniqueFd found(::openat(from, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      char target = 0;
      errno = found && ::readlinkat(found.get(), "", &target, 1) >= 0 ? ELOOP : ENOTDIR;
    }
    if (last || !next) return next;
    directory = std::move(next);
    at = path.find_first_not_of('/', end);
  }
}

}  // namespace reprise
