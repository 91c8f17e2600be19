#include "cli/output_file.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/atomic_write.h"
#include "cli/chat_reader.h"

namespace reprise {
namespace {

tl::unexpected<Error> Exists(const std::string& what) {
  return Fail(Error{.code = ErrorCode::kConflict, .reason = "file_exists", .message = what});
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
  return Exists(path + " is there already (--force replaces it)");
}

Result<void> WriteOutputFile(const std::string& path, std::string_view content, bool replace) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return Exists(path + " is a folder");
  if (auto free = CheckNothingThere(path); !free && !replace) return free;
  auto written =
      ReplaceFile(Disk(), path, content).and_then([&] { return Disk().SyncDirectory(ParentDirectory(path)); });
  if (!written && written.error().code == ErrorCode::kNotFound) {
    return Fail(ErrorCode::kNotFound, "there is no folder " + ParentDirectory(path));
  }
  return written;
}

}  // namespace reprise
