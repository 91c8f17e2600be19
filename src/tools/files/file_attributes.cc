#include "tools/files/file_attributes.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

namespace reprise {

namespace {

constexpr const char* kAccessList = "system.posix_acl_access";
constexpr std::size_t kAttributeBytes = 64 << 10;  // the kernel's limit, of the names and of a value

// Those of the owner. The others are the system's: it sets them itself, or takes them away when a file is written.
bool IsOwners(std::string_view name) { return name.starts_with("user.") || name.starts_with("system.posix_acl_"); }

std::string EntryPath(int directory, const std::string& name) {
  return "/proc/self/fd/" + std::to_string(directory) + "/" + name;
}

std::vector<std::string> NamesOf(std::string_view list) {
  std::vector<std::string> names;
  for (std::size_t at = 0, end = 0; at < list.size(); at = end + 1) {
    end = std::min(list.find('\0', at), list.size());
    if (IsOwners(list.substr(at, end - at))) names.emplace_back(list.substr(at, end - at));
  }
  return names;
}

}  // namespace

bool TakeAttributes(int file, mode_t mode, int directory, const std::string& name, const struct stat* like) {
  ::fremovexattr(file, kAccessList);
  if (like != nullptr) {
    static_cast<void>(::fchown(file, static_cast<uid_t>(-1), like->st_gid) == 0);
    const std::string path = EntryPath(directory, name);
    std::string list(kAttributeBytes, '\0'), value(kAttributeBytes, '\0');
    const ssize_t size = ::llistxattr(path.c_str(), list.data(), list.size());
    for (const std::string& each : NamesOf(std::string_view(list).substr(0, size < 0 ? 0 : size))) {
      const ssize_t bytes = ::lgetxattr(path.c_str(), each.c_str(), value.data(), value.size());
      if (bytes >= 0) ::fsetxattr(file, each.c_str(), value.data(), bytes, 0);
    }
  }
  return ::fchmod(file, mode) == 0;  // last, because the group's bits are also the limit of an access list
}

FileExtras ExtrasOf(int directory, const std::string& name, const struct stat& status, int file) {
  if (S_ISLNK(status.st_mode)) return {};
  FileExtras extras;
  struct stat folder {};
  const bool inherits = ::fstat(directory, &folder) == 0 && (folder.st_mode & S_ISGID) != 0;
  extras.group = status.st_gid != (inherits ? folder.st_gid : ::getegid());
  extras.set_id = S_ISREG(status.st_mode) && (status.st_mode & (S_ISUID | S_ISGID)) != 0;
  extras.hard_links = S_ISREG(status.st_mode) && status.st_nlink > 1;
  std::array<char, 4096> list;
  ssize_t size = file >= 0 ? ::flistxattr(file, list.data(), list.size())
                           : ::llistxattr(EntryPath(directory, name).c_str(), list.data(), list.size());
  if (size < 0 && errno == ERANGE) extras.attributes = true;
  if (size > 0) extras.attributes = !NamesOf(std::string_view(list.data(), size)).empty();
  return extras;
}

}  // namespace reprise
