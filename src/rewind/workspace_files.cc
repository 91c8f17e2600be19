#include "rewind/workspace_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <utility>

#include "base/try.h"
#include "crypto/digest.h"
#include "tools/files/open_beneath.h"

namespace reprise {
namespace {

constexpr std::size_t kLongestPath = 4'000;

std::int64_t Nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

// The same for one path whenever it is asked for, so that it can be found after a crash.
std::string TemporaryName(std::string_view path) {
  const std::string digest = Sha256Digest({path});
  return ".reprise-" + digest.substr(digest.find(':') + 1, 16) + ".restore.tmp";
}

Error NotReachable() { return MakeError(ErrorCode::kForbidden, "the path is out of reach"); }

}  // namespace

bool IsLeftAlone(std::string_view name) {
  const bool is_git = name.size() == 4 && ::strncasecmp(name.data(), ".git", 4) == 0;
  return is_git || (name.starts_with(".reprise-") && name.ends_with(".tmp"));
}

Result<void> CheckWorkspacePath(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath || path.find('\0') != std::string_view::npos) return Fail(NotReachable());
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (name.empty() || name == "." || name == ".." || name.size() > NAME_MAX || IsLeftAlone(name)) {
      return Fail(NotReachable());
    }
    at = end + 1;
  }
  return {};
}

ReadVersion ReadEntry(int directory, const std::string& name, const struct stat& status, std::uint64_t file_bytes) {
  ReadVersion read;
  FileVersion& version = read.version;
  version.size = static_cast<std::uint64_t>(status.st_size);
  if (S_ISLNK(status.st_mode)) {
    version.kind = FileVersion::Kind::kLink;
    std::string target(PATH_MAX, '\0');
    const ssize_t size = ::readlinkat(directory, name.c_str(), target.data(), target.size());
    if (size >= 0) {
      target.resize(static_cast<std::size_t>(size));
      version.size = target.size();
      version.digest = Sha256Digest({target});
      read.content = std::move(target);
      return read;
    }
  } else if (S_ISDIR(status.st_mode)) {
    version = {.kind = FileVersion::Kind::kDirectory, .mode = status.st_mode & 0777u};
    return read;
  } else {
    version.mode = status.st_mode & 0777u;
    UniqueFd file;
    if (version.size <= file_bytes) {
      file = UniqueFd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    }
    struct stat opened {};
    if (file && ::fstat(file.get(), &opened) == 0 && S_ISREG(opened.st_mode)) {
      if (auto content = ReadAll(file.get(), file_bytes)) {
        version.mode = opened.st_mode & 0777u;
        version.size = content->size();
        version.digest = Sha256Digest({*content});
        read.content = *std::move(content);
        return read;
      }
    }
  }
  version.modified_ns = Nanoseconds(status.st_mtim);
  return read;
}

Result<UniqueFd> WorkspaceFiles::OpenRoot() const {
  UniqueFd root(::open(workspace_.directory().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return Fail(WorkspaceError(errno));
  return root;
}

Result<std::optional<WorkspaceFiles::Target>> WorkspaceFiles::Open(const std::string& path, bool make_parents) const {
  TRY(CheckWorkspacePath(path));
  UniqueFd root = TRY(OpenRoot());
  const std::size_t slash = path.rfind('/');
  Target target{.parent = {}, .name = path.substr(slash == std::string::npos ? 0 : slash + 1)};
  if (slash == std::string::npos) {
    target.parent = std::move(root);
  } else {
    constexpr int kFlags = O_PATH | O_DIRECTORY;
    target.parent = OpenBeneath(root.get(), path.substr(0, slash), kFlags, Symlinks::kRefuse);
    if (!target.parent && errno == ENOENT && make_parents) {
      for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
        TRY(MakeDirectory(path.substr(0, at), 0777 & ~022));
      }
      target.parent = OpenBeneath(root.get(), path.substr(0, slash), kFlags, Symlinks::kRefuse);
    }
    if (!target.parent && (errno == ENOENT || errno == ENOTDIR) && !make_parents) return std::nullopt;
    if (!target.parent) return Fail(WorkspaceError(errno));
  }
  if (workspace_.IsProtected(target.parent.get(), target.name)) return Fail(NotReachable());
  return std::optional<Target>(std::move(target));
}

Result<std::optional<ReadVersion>> WorkspaceFiles::Read(const std::string& path) const {
  const auto target = TRY(Open(path, /*make_parents=*/false));
  if (!target) return std::nullopt;
  struct stat status {};
  if (::fstatat(target->parent.get(), target->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return Fail(WorkspaceError(errno));
  }
  if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument, "it is neither a file, a link nor a directory");
  }
  return ReadEntry(target->parent.get(), target->name, status, file_bytes_);
}

Result<void> WorkspaceFiles::Write(const std::string& path, const FileVersion& version,
                                   std::string_view content, bool sync) const {
  const auto target = TRY(Open(path, /*make_parents=*/true));
  const int parent = target->parent.get();
  const std::string temporary = TemporaryName(path);
  ::unlinkat(parent, temporary.c_str(), 0);
  if (version.kind == FileVersion::Kind::kLink) {
    if (::symlinkat(std::string(content).c_str(), parent, temporary.c_str()) != 0) return Fail(WorkspaceError(errno));
  } else {
    const UniqueFd file(
        ::openat(parent, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return Fail(WorkspaceError(errno));
    int failure = 0;
    while (!content.empty() && failure == 0) {
      const ssize_t written = ::write(file.get(), content.data(), content.size());
      if (written < 0 && errno != EINTR) failure = errno;
      if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
    }
    if (failure == 0 && (::fchmod(file.get(), version.mode & 0777) != 0 || (sync && ::fsync(file.get()) != 0))) {
      failure = errno;
    }
    if (failure != 0) {
      ::unlinkat(parent, temporary.c_str(), 0);
      return Fail(WorkspaceError(failure));
    }
  }
  if (::renameat(parent, temporary.c_str(), parent, target->name.c_str()) != 0) {
    const int failure = errno;
    ::unlinkat(parent, temporary.c_str(), 0);
    return Fail(WorkspaceError(failure));
  }
  return {};
}

Result<void> WorkspaceFiles::MakeDirectory(const std::string& path, std::uint32_t mode) const {
  const auto target = TRY(Open(path, /*make_parents=*/true));
  if (::mkdirat(target->parent.get(), target->name.c_str(), mode & 0777) == 0 || errno == EEXIST) return {};
  return Fail(WorkspaceError(errno));
}

Result<void> WorkspaceFiles::Remove(const std::string& path, bool directory) const {
  const auto target = TRY(Open(path, /*make_parents=*/false));
  if (!target) return {};
  if (::unlinkat(target->parent.get(), target->name.c_str(), directory ? AT_REMOVEDIR : 0) == 0) return {};
  if (errno == ENOENT || (directory && (errno == ENOTEMPTY || errno == EEXIST))) return {};
  return Fail(WorkspaceError(errno));
}

void WorkspaceFiles::RemoveLeftover(const std::string& path) const {
  const auto target = Open(path, /*make_parents=*/false);
  if (target && *target) ::unlinkat((*target)->parent.get(), TemporaryName(path).c_str(), 0);
}

std::vector<std::string> WorkspaceFiles::List(const std::string& path) const {
  std::vector<std::string> names;
  const auto root = OpenRoot();
  if (!root) return names;
  UniqueFd directory = OpenBeneath(root->get(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, Symlinks::kRefuse);
  if (!directory) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(directory.get()), ::closedir);
  if (!stream) return names;
  static_cast<void>(directory.Release());
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

}  // namespace reprise
