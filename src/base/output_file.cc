#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/atomic_write.h"
#include "base/posix_file_system.h"

namespace reprise {
namespace {

tl::unexpected<Error> Exists(const std::string& what) {
  return Fail(Error{.code = ErrorCode::kConflict, .reason = "file_exists", .message = what});
}

tl::unexpected<Error> IsThereAlready(const std::string& path) {
  return Exists(path + " is there already (--force replaces it)");
}

// As ReplaceFile does, but never over what somebody has put there meanwhile.
Result<void> WriteNewFile(const std::string& path, std::string_view content) {
  const std::string made = TemporaryPath(path);
  const auto file = Disk().CreateFile(made);
  if (!file) return Fail(file.error());
  auto written = (*file)
                     ->Append(content)
                     .and_then([&] { return (*file)->Sync(); })
                     .and_then([&] { return (*file)->Close(); })
                     .and_then([&] { return MoveToFreeName(made, path); });
  if (!written) static_cast<void>(Disk().RemoveFile(made));  // a leftover is ignored by every reader
  return written;
}

}  // namespace

bool LiesIn(const std::string& path, const std::string& folder) {
  const auto resolved = [](const std::string& given) {
    std::error_code failed;
    auto real = std::filesystem::weakly_canonical(std::filesystem::absolute(given + "/"), failed);
    return failed ? std::filesystem::path(given) : real;
  };
  const auto below = resolved(path).lexically_relative(resolved(folder));
  return !below.empty() && *below.begin() != "..";
}

Result<void> CheckNothingThere(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return IsThereAlready(path);
}

Result<void> MoveToFreeName(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return IsThereAlready(to);
  // Not every file system can do it in one step. What else is wrong, this finds too.
  return CheckNothingThere(to).and_then([&] { return Disk().Rename(from, to); });
}

Result<void> WriteOutputFile(const std::string& path, std::string_view content, bool replace) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return Exists(path + " is a folder");
  // Before anything is written. Whether it is still so is looked at in the last step.
  if (auto free = CheckNothingThere(path); !free && !replace) return free;
  auto written = replace ? ReplaceFile(Disk(), path, content) : WriteNewFile(path, content);
  if (written) written = Disk().SyncDirectory(ParentDirectory(path));
  if (!written && written.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "there is no folder " + ParentDirectory(path));
  }
  return written;
}

}  // namespace reprise
