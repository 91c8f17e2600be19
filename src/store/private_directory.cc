#include "store/private_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/atomic_write.h"
#include "base/system_error.h"

namespace reprise {
namespace {

bool IsSafe(const struct stat& status) {
  const bool ours = status.st_uid == ::geteuid() || status.st_uid == 0;
  const bool open_to_all =
      S_ISDIR(status.st_mode) && (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
  return ours && !open_to_all;
}

}  // namespace

Result<void> CheckPrivateDirectory(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT && ParentDirectory(path) != path) return CheckPrivateDirectory(ParentDirectory(path));
    return Fail(SystemError(errno, path, "the folder cannot be looked at"));
  }
  if (!IsSafe(status)) {
    return Fail(Error{.code = ErrorCode::kForbidden,
                      .reason = "folder_not_private",
                      .message = "another user could change what is stored there",
                      .detail = path});
  }
  const std::string parent = ParentDirectory(path);
  if (parent == path || parent == ".") return {};
  return CheckPrivateDirectory(parent);
}

}  // namespace reprise
