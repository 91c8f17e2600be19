#include "tools/files/directory_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

namespace reprise {
namespace {

struct CloseDirectory {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

bool IsDirectory(int parent, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat status {};
  return ::fstatat(parent, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

Result<DirectoryListing> ReadDirectory(const Workspace& workspace, int directory, std::size_t max_entries) {
  // The stream owns its descriptor; a fresh one also starts at the first entry.
  UniqueFd own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return Fail(WorkspaceError(errno));
  const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(own.get()));
  if (!stream) return Fail(WorkspaceError(errno));
  own.Release();

  DirectoryListing listing;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) {
      if (errno != 0) return Fail(WorkspaceError(errno));
      break;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || workspace.IsProtected(directory, name)) continue;
    if (listing.entries.size() == max_entries) {
      listing.complete = false;
      break;
    }
    listing.entries.push_back({.name = std::string(name), .is_directory = IsDirectory(directory, *entry)});
  }
  std::sort(listing.entries.begin(), listing.entries.end(),
            [](const ListedEntry& a, const ListedEntry& b) { return a.name < b.name; });
  return listing;
}

}  // namespace reprise
