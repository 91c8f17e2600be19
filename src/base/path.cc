#include "base/path.h"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>

namespace reprise {

namespace fs = std::filesystem;

bool LiesBeneath(const fs::path& path, const fs::path& directory) {
  return std::mismatch(directory.begin(), directory.end(), path.begin(), path.end()).first == directory.end();
}

bool LeadsInto(const fs::path& path, const fs::path& directory) {
  std::error_code failed;
  return LiesBeneath(path.lexically_normal(), directory) || LiesBeneath(fs::weakly_canonical(path, failed), directory);
}

fs::path Resolved(const fs::path& path) {
  std::error_code failed;
  fs::path resolved = fs::absolute(path, failed);  // a relative path of which nothing exists would stay relative
  if (!failed) resolved = fs::weakly_canonical(resolved, failed);
  return failed ? path : resolved;
}

std::string FullPath(const std::string& path) {
  std::error_code failed;
  const auto full = fs::absolute(path, failed);
  return failed ? path : full.lexically_normal().string();
}

std::vector<std::string> NamesOnPath(std::string_view path) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at && path.substr(at, end - at) != ".") names.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

bool IsThere(const fs::path& path) {
  std::error_code failed;
  return fs::exists(fs::symlink_status(path, failed));
}

std::string NearestThere(std::string path) {
  while (!IsThere(path) && path != "/") path = ParentDirectory(path);
  return path;
}

bool IsFile(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::vector<fs::path> SearchFolders(std::string_view path) {
  std::vector<fs::path> folders;
  for (;;) {
    const std::size_t end = std::min(path.find(':'), path.size());
    folders.emplace_back(path.substr(0, end));
    if (end == path.size()) return folders;
    path.remove_prefix(end + 1);
  }
}

std::string SearchPathOutside(std::string_view path, const fs::path& directory) {
  std::string outside;
  for (const fs::path& folder : SearchFolders(path)) {
    if (folder.is_relative() || (!directory.empty() && LeadsInto(folder, directory))) continue;
    outside.append(outside.empty() ? "" : ":").append(folder.string());
  }
  return outside.empty() ? "/usr/local/bin:/usr/bin:/bin" : outside;
}

}  // namespace reprise
