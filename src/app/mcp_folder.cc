#include "app/mcp_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/atomic_write.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "store/data_folder.h"

namespace reprise {
namespace {

// Empty if it is not set; by the XDG rule a relative path counts as not set.
std::string Directory(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value == '/' ? value : "";
}

// Whether it is a folder, not a link, that nobody else can enter.
bool IsOursAlone(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

}  // namespace

std::string McpFolder(const Options& options) {
  std::error_code failed;
  const std::filesystem::path workspace = std::filesystem::canonical(options.workspace, failed);
  if (failed) return {};
  std::vector<std::string> places;
  if (const std::string runtime = Directory("XDG_RUNTIME_DIR"); !runtime.empty() && IsOursAlone(runtime)) {
    places.push_back(runtime + "/reprise/mcp");
  }
  const std::string cache = Directory("XDG_CACHE_HOME"), home = Directory("HOME"), temporary = Directory("TMPDIR");
  if (!cache.empty()) {
    places.push_back(cache + "/reprise/mcp");
  } else if (!home.empty()) {
    places.push_back(home + "/.cache/reprise/mcp");
  }
  const std::string own = "/reprise-" + std::to_string(::getuid()) + "/mcp";
  if (!temporary.empty()) places.push_back(temporary + own);
  places.push_back("/tmp" + own);
  PosixFileSystem disk;
  for (const std::string& place : places) {
    if (LeadsInto(place, workspace) || !CheckPrivateDirectory(place)) continue;
    if (CreateDirectories(disk, place) && CheckPrivateDirectory(place) && IsOursAlone(place)) return place;
  }
  return {};
}

}  // namespace reprise
