#include "rewind/ignore_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/private_file.h"
#include "base/unique_fd.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxRules = 1 << 20;  // bytes of a .gitignore

}  // namespace

IgnoreFiles::IgnoreFiles(const Workspace& workspace) : workspace_(workspace) {
  namespace fs = std::filesystem;
  std::error_code failed;
  for (fs::path top = workspace_.directory();; top = top.parent_path()) {
    if (fs::exists(fs::symlink_status(top / ".git", failed))) {
      const std::string relative = fs::path(workspace_.directory()).lexically_relative(top).string();
      if (relative != ".") prefix_ = relative + "/";
      break;
    }
    if (top == top.parent_path()) break;
  }
}

IgnoreFiles::Rules IgnoreFiles::Above() const {
  std::string top = workspace_.directory();
  for (std::size_t levels = static_cast<std::size_t>(std::count(prefix_.begin(), prefix_.end(), '/')); levels > 0;
       --levels) {
    top = std::filesystem::path(top).parent_path().string();
  }
  Rules rules;
  if (const auto exclude = ReadSmallFile(top + "/.git/info/exclude", kMaxRules)) {
    rules = IgnoreRules::Parse(*exclude, "", nullptr);
  }
  std::string base;
  for (std::size_t at = 0; at < prefix_.size();) {
    if (const auto text = ReadSmallFile(top + "/" + base + std::string(kIgnoreFile), kMaxRules)) {
      rules = IgnoreRules::Parse(*text, base, std::move(rules));
    }
    const std::size_t end = prefix_.find('/', at) + 1;
    base = prefix_.substr(0, end);
    at = end;
  }
  return rules;
}

IgnoreFiles::Rules IgnoreFiles::In(int fd, const std::string& directory, Rules above) const {
  const UniqueFd file(::openat(fd, std::string(kIgnoreFile).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return above;
  const auto text = ReadAll(file.get(), kMaxRules);
  if (!text) return above;
  return IgnoreRules::Parse(*text, prefix_ + (directory.empty() ? "" : directory + "/"), std::move(above));
}

bool IgnoreFiles::Name(const Rules& rules, const std::string& path, bool is_directory) const {
  return rules && rules->Names(prefix_ + path, is_directory);
}

}  // namespace reprise
