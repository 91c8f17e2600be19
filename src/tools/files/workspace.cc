#include "tools/files/workspace.h"

#include <linux/openat2.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include "base/terminal_text.h"
#include "base/try.h"
#include "tools/arguments.h"
#include "tools/files/file_attributes.h"
#include "tools/files/run_by_others.h"
#include "tools/text_file.h"

namespace reprise {

namespace {

// RESOLVE_BENEATH gives EAGAIN if a concurrent rename made the check of ".." uncertain.
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
    // The kernel lacks the call, or a filter around the server does not know it (EPERM for every path).
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
    // With O_DIRECTORY a symbolic link gives "not a directory"; report it as a link.
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

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxPath = 4096;
constexpr std::size_t kMaxName = 255;

std::string EnvironmentVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  std::string text = (error ? fs::path(path) : absolute).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// The absolute path, with links resolved as far as it exists; the rest need not exist yet.
std::string Canonical(const std::string& path) {
  std::error_code error;
  const fs::path absolute = Absolute(path);
  const fs::path canonical = fs::weakly_canonical(absolute, error);
  std::string text = (error ? absolute : canonical).string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::vector<std::string> Canonical(const std::vector<std::string>& paths) {
  std::vector<std::string> canonical;
  for (const std::string& path : paths) {
    if (!path.empty()) canonical.push_back(Canonical(path));
  }
  return canonical;
}

// Whether `path` is `directory` or lies in it, by name.
bool IsWithin(std::string_view path, std::string_view directory) {
  if (!path.starts_with(directory)) return false;
  return path.size() == directory.size() || directory == "/" || path[directory.size()] == '/';
}

// The secrets in the workspace.
std::vector<std::string> SecretsIn(const std::string& workspace, std::vector<std::string> secrets) {
  std::erase_if(secrets,
                [&](const std::string& secret) { return secret == workspace || !IsWithin(secret, workspace); });
  return secrets;
}

// The current path of the open file, from the kernel; empty if unknown.
std::string RealPath(int fd) {
  std::array<char, PATH_MAX> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length <= 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(length));
}

Result<void> CheckPath(std::string_view path) {
  if (path.size() > kMaxPath) return Fail(ErrorCode::kInvalidArgument, "the path is too long");
  if (path.find('\0') != std::string_view::npos) {
    return Fail(ErrorCode::kInvalidArgument, "the path contains a NUL character");
  }
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end - at > kMaxName) return Fail(ErrorCode::kInvalidArgument, "a name in the path is too long");
    at = end + 1;
  }
  return {};
}

Error Protected() { return MakeError(ErrorCode::kForbidden, "the server's own files are out of reach"); }
Error Secret() {
  return MakeError(
      ErrorCode::kForbidden,
      "it is where the user keeps secrets (keys, logins, histories), and nobody was asked about this call");
}
Error Outside() { return WorkspaceError(EXDEV); }

Result<void> WriteAll(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Fail(WorkspaceError(errno));
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

// A new file that is removed again unless it is renamed to its place.
class TemporaryFile {
 public:
  static Result<std::unique_ptr<TemporaryFile>> Create(int directory) {
    auto file = std::unique_ptr<TemporaryFile>(new TemporaryFile(directory));
    file->fd_ =
        UniqueFd(::openat(directory, file->name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (!file->fd_) return Fail(WorkspaceError(errno));
    return file;
  }
  ~TemporaryFile() {
    if (fd_ && !renamed_) ::unlinkat(directory_, name_.c_str(), 0);  // a failure cannot be handled
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_.get(); }

  Result<void> RenameTo(const std::string& name) {
    if (::fsync(fd_.get()) != 0) return Fail(WorkspaceError(errno));
    if (::renameat(directory_, name_.c_str(), directory_, name.c_str()) != 0) return Fail(WorkspaceError(errno));
    renamed_ = true;
    return {};
  }

 private:
  explicit TemporaryFile(int directory) : directory_(directory), name_(".reprise-" + RandomHex(8) + ".tmp") {}

  const int directory_;
  const std::string name_;
  UniqueFd fd_;
  bool renamed_ = false;
};

// The status of a regular file; anything else is an error.
Result<struct stat> StatRegular(int parent, const std::string& name) {
  struct stat status {};
  if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return Fail(WorkspaceError(errno));
  if (S_ISLNK(status.st_mode)) return Fail(WorkspaceError(ELOOP));
  if (S_ISDIR(status.st_mode)) return Fail(WorkspaceError(EISDIR));
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalidArgument, "it is not a regular file");
  return status;
}

// The status of the file to be replaced.
Result<struct stat> StatReplaceable(int parent, const std::string& name) {
  auto status = StatRegular(parent, name);
  // Checked because a rename would replace even a read-only file.
  if (status && ::faccessat(parent, name.c_str(), W_OK, AT_EACCESS) != 0) return Fail(WorkspaceError(errno));
  return status;
}

}  // namespace

Error WorkspaceError(int error_number) {
  const std::string detail = std::strerror(error_number);
  switch (error_number) {
    case ENOENT:
      return MakeError(ErrorCode::kNotFound, "there is no such file or directory", detail);
    case ENOTDIR:
      return MakeError(ErrorCode::kInvalidArgument, "a part of the path is not a directory", detail);
    case EISDIR:
      return MakeError(ErrorCode::kInvalidArgument, "it is a directory", detail);
    case EXDEV:
      return MakeError(ErrorCode::kForbidden, "it is outside the workspace", detail);
    case ELOOP:
      return MakeError(ErrorCode::kForbidden, "it is or leads through a symbolic link", detail);
    case EACCES:
    case EPERM:
      return Refused(Reason::kNotReadable, "permission denied", detail);
    case ENAMETOOLONG:
      return MakeError(ErrorCode::kInvalidArgument, "a name in the path is too long", detail);
    case ENXIO:
      return MakeError(ErrorCode::kInvalidArgument, "it is not a regular file", detail);
    case EROFS:
      return MakeError(ErrorCode::kIo, "the workspace is read-only", detail);
    case ENOSPC:
    case EDQUOT:
      return MakeError(ErrorCode::kStorageFull, "there is no space left", detail);
    case EFBIG:
      return MakeError(ErrorCode::kStorageFull, "the file would be larger than the server may write (ulimit -f)",
                       detail);
    default:
      return MakeError(ErrorCode::kIo, "the operating system reports: " + detail, detail);
  }
}

Result<std::string> ReadAll(int fd, std::size_t max_bytes, std::stop_token stop) {
  constexpr std::size_t kChunk = 64 * 1024;
  std::string content;
  for (;;) {
    if (stop.stop_requested()) return Fail(ErrorCode::kCancelled, "cancelled");
    const std::size_t size = content.size();
    content.resize(size + kChunk);
    const ssize_t got = ::read(fd, content.data() + size, kChunk);
    content.resize(size + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR) return Fail(WorkspaceError(errno));
    if (got == 0) return content;
    if (content.size() > max_bytes) {
      return Fail(ErrorCode::kTooLarge, "the file is larger than " + std::to_string(max_bytes / 1024) + " KiB");
    }
  }
}

Workspace::Workspace(const std::string& directory, const std::vector<std::string>& protected_paths,
                     const std::vector<std::string>& secret_paths)
    : directory_(Canonical(directory)),
      directory_as_given_(Absolute(directory)),
      protected_paths_(Canonical(protected_paths)),
      secret_paths_(SecretsIn(directory_, secret_paths)),
      home_(HomeIn(directory_, EnvironmentVariable("HOME"))) {}

bool Workspace::IsProtected(int fd, std::string_view name) const {
  if (protected_paths_.empty()) return false;
  std::string path = RealPath(fd);
  if (path.empty()) return true;  // unknown, so treat it as protected
  if (!name.empty()) path.append(path == "/" ? "" : "/").append(name);
  return std::ranges::any_of(protected_paths_, [&](const std::string& closed) { return IsWithin(path, closed); });
}

bool Workspace::IsSecret(int fd, std::string_view name) const {
  if (secret_paths_.empty()) return false;
  std::string path = RealPath(fd);
  if (path.empty()) return true;  // unknown, so treat it as secret
  if (!name.empty()) path.append(path == "/" ? "" : "/").append(name);
  return std::ranges::any_of(secret_paths_, [&](const std::string& secret) {
    return path.size() >= secret.size() && ::strncasecmp(path.c_str(), secret.c_str(), secret.size()) == 0 &&
           (path.size() == secret.size() || path[secret.size()] == '/');
  });
}

bool Workspace::LeadsToSecret(std::string_view path) const {
  if (secret_paths_.empty()) return false;
  const auto relative = Relative(path);
  if (!relative) return false;
  // Open the part that exists; the rest may be created later.
  fs::path there = fs::path(*relative).lexically_normal();
  std::string missing;
  for (;;) {
    if (const auto opened = Open(there.empty() ? "." : there.string(), O_PATH, Secrets::kOpen)) {
      return IsSecret(opened->get(), missing);
    }
    if (there.empty()) return false;
    const std::string last = there.filename().string();
    if (!last.empty()) missing = missing.empty() ? last : last + "/" + missing;
    there = there.parent_path();
  }
}

namespace {

constexpr std::size_t kMostChanged = 8 * 1024 * 1024;  // bytes of a file
constexpr const char* kWhySecret = "it is where you keep secrets (keys, logins, histories)";

}  // namespace

std::optional<std::string> ReasonToAskFor(const Workspace& workspace, std::string_view arguments) {
  const auto path = Arguments(arguments).String("path");
  if (!path || !workspace.LeadsToSecret(*path)) return std::nullopt;
  return kWhySecret;
}

std::string Workspace::WhoRuns(std::string_view path) const {
  for (const std::string& place : PlacesOf(path)) {
    if (const auto who = reprise::WhoRuns(place, home_); !who.empty()) return std::string(who);
  }
  return {};
}

std::optional<std::string> ReasonToAskToChange(const Workspace& workspace, std::string_view arguments) {
  const auto path = Arguments(arguments).String("path");
  return path ? ReasonToAskToChangePath(workspace, *path) : std::nullopt;
}

std::optional<std::string> ReasonToAskToChangePath(const Workspace& workspace, const std::string& path) {
  if (workspace.LeadsToSecret(path)) return kWhySecret;
  const std::string who = workspace.WhoRuns(path);
  if (who.empty()) return std::nullopt;
  return who + " runs or obeys it by itself, outside of any sandbox";
}

Result<void> Workspace::Check(int fd, std::string_view name, Secrets secrets) const {
  if (IsProtected(fd, name)) return Fail(Protected());
  if (secrets == Secrets::kClosed && IsSecret(fd, name)) return Fail(Secret());
  return {};
}

Result<UniqueFd> Workspace::OpenRoot(int flags) const {
  const UniqueFd top(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const std::string below = directory_.size() > 1 ? directory_.substr(1) : ".";
  UniqueFd root = OpenBeneath(top.get(), below, flags | O_DIRECTORY, Symlinks::kRefuse);
  if (root) return root;
  const char* const what = errno == ELOOP ? " is or lies behind a symbolic link now" : " cannot be reached any more";
  return Fail(ErrorCode::kIo,
              "the workspace " + VisibleLine(directory_) + what +
                  "; tell the user, who can put it back or move this chat to another folder",
              std::strerror(errno));
}

Result<std::string> Workspace::Relative(std::string_view path) const {
  TRY(CheckPath(path));
  if (path.empty()) return Fail(ErrorCode::kInvalidArgument, "the path is empty");
  if (path.front() != '/') return std::string(path);
  const std::string absolute = fs::path(path).lexically_normal().string();
  for (const std::string& root : {directory_, directory_as_given_}) {
    if (!IsWithin(absolute, root)) continue;
    const std::size_t from = absolute.find_first_not_of('/', root.size());
    return from == std::string::npos ? std::string(".") : absolute.substr(from);
  }
  return Fail(Outside());
}

Result<UniqueFd> Workspace::Open(std::string_view path, int flags, Secrets secrets) const {
  const auto relative = TRY(Relative(path));
  const auto root = TRY(OpenRoot());
  const int how = (flags & O_PATH) != 0 ? flags : flags | O_NONBLOCK | O_NOCTTY;  // O_PATH ignores the other flags
  UniqueFd fd = OpenBeneath(root.get(), relative, how, Symlinks::kInside);
  if (!fd) return Fail(WorkspaceError(errno));
  TRY(Check(fd.get(), {}, secrets));
  return fd;
}

Result<UniqueFd> Workspace::OpenFile(std::string_view path, Secrets secrets) const {
  auto fd = TRY(Open(path, O_RDONLY, secrets));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return Fail(WorkspaceError(errno));
  if (S_ISDIR(status.st_mode)) return Fail(WorkspaceError(EISDIR));
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalidArgument, "it is not a regular file");
  return fd;
}

Result<UniqueFd> Workspace::OpenDirectory(std::string_view path, Secrets secrets) const {
  return Open(path, O_RDONLY | O_DIRECTORY, secrets);
}

Result<UniqueFd> Workspace::OpenAny(std::string_view path, Secrets secrets) const {
  auto fd = TRY(Open(path, O_RDONLY, secrets));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return Fail(WorkspaceError(errno));
  if (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)) return fd;
  return Fail(ErrorCode::kInvalidArgument, "it is neither a regular file nor a directory");
}

Result<UniqueFd> Workspace::OpenEntry(int directory, const std::string& name, Secrets secrets) const {
  UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) return Fail(WorkspaceError(errno));
  TRY(Check(fd.get(), {}, secrets));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return Fail(WorkspaceError(errno));
  if (S_ISDIR(status.st_mode) || S_ISREG(status.st_mode)) return fd;
  return Fail(ErrorCode::kInvalidArgument, "it is neither a regular file nor a directory");
}

Result<std::string> Workspace::ReadFile(std::string_view path, std::size_t max_bytes, Secrets secrets) const {
  const auto fd = TRY(OpenFile(path, secrets));
  return ReadAll(fd.get(), max_bytes);
}

Result<std::string> Workspace::PathInWorkspace(std::string_view path) const {
  const auto relative = TRY(Relative(path));
  const fs::path normal = fs::path(relative).lexically_normal();
  if (normal.begin() != normal.end() && *normal.begin() == "..") return Fail(Outside());
  if (!normal.has_filename() || normal == ".") return Fail(WorkspaceError(EISDIR));
  return normal.string();
}

std::vector<std::string> Workspace::PlacesOf(std::string_view path) const {
  std::vector<std::string> places;
  const auto relative = Relative(path);
  if (!relative) return places;
  const auto add = [&](const std::string& absolute) {
    if (!IsWithin(absolute, directory_)) return false;
    const std::size_t from = absolute.find_first_not_of('/', directory_.size());
    places.push_back(from == std::string::npos ? "." : absolute.substr(from));
    return true;
  };
  const std::string joined = directory_ + "/" + *relative;
  if (!add(Absolute(joined)) || !add(Canonical(joined))) places.clear();
  // Resolve links before "..", which Canonical removes first.
  std::error_code error;
  const fs::path physical = fs::weakly_canonical(joined, error);
  if (!error && !places.empty() && !add(physical.string())) places.clear();
  return places;
}

// Walks down without following links, so that the lexical form of the path holds.
Result<Workspace::Target> Workspace::OpenParent(std::string_view path, bool create, Secrets secrets) const {
  const auto place = TRY(PathInWorkspace(path));
  const fs::path normal = place;
  auto root = TRY(OpenRoot());
  Target target{.parent = std::move(root), .name = normal.filename().string()};
  for (const fs::path& part : normal.parent_path()) {
    TRY(Check(target.parent.get(), part.string(), secrets));
    if (create && ::mkdirat(target.parent.get(), part.c_str(), 0777) != 0 && errno != EEXIST) {
      return Fail(WorkspaceError(errno));
    }
    UniqueFd next = OpenBeneath(target.parent.get(), part.string(), O_RDONLY | O_DIRECTORY, Symlinks::kRefuse);
    if (!next) return Fail(WorkspaceError(errno));
    target.parent = std::move(next);
  }
  TRY(Check(target.parent.get(), target.name, secrets));
  return target;
}

Result<bool> Workspace::Replace(std::string_view path, std::string_view content, bool create, Secrets secrets) {
  auto target = TRY(OpenParent(path, create, secrets));
  const auto existing = StatReplaceable(target.parent.get(), target.name);
  if (!existing && (!IsNotFound(existing.error()) || !create)) return Fail(existing.error());
  auto temporary = TRY(TemporaryFile::Create(target.parent.get()));
  if (existing &&
      !TakeAttributes(temporary->fd(), existing->st_mode & kFileBits, target.parent.get(), target.name, &*existing)) {
    return Fail(WorkspaceError(errno));
  }
  TRY(WriteAll(temporary->fd(), content));
  TRY(temporary->RenameTo(target.name));
  return !existing;
}

Result<std::optional<std::string>> Workspace::ReadForChange(std::string_view path, std::size_t max_bytes,
                                                            Secrets secrets) const {
  // Also true below a directory that does not exist yet.
  if (secrets == Secrets::kClosed && LeadsToSecret(path)) return Fail(Secret());
  const auto none_yet = [](const Error& error) -> Result<std::optional<std::string>> {
    if (error.code == ErrorCode::kNotFound) return std::nullopt;
    return Fail(error);
  };
  const auto target = OpenParent(path, /*create=*/false, secrets);
  if (!target) return none_yet(target.error());
  // Check it before opening, because opening a device may have effects.
  const auto status = StatRegular(target->parent.get(), target->name);
  if (!status) return none_yet(status.error());
  const auto file = OpenEntry(target->parent.get(), target->name, secrets);
  if (!file) return none_yet(file.error());
  auto content = TRY(ReadAll(file->get(), max_bytes));
  return std::optional(std::move(content));
}

Result<void> Workspace::CheckChange(std::string_view path, bool must_exist) const {
  const auto ok_if_missing = [&](const Error& error) -> Result<void> {
    if (error.code == ErrorCode::kNotFound && !must_exist) return {};
    return Fail(error);
  };
  const auto target = OpenParent(path, /*create=*/false, Secrets::kOpen);
  if (!target) return ok_if_missing(target.error());
  const auto status = StatReplaceable(target->parent.get(), target->name);
  return status ? Result<void>() : ok_if_missing(status.error());
}

Result<bool> Workspace::WriteFile(std::string_view path, std::string_view content, Secrets secrets) {
  const MutexLock lock(change_mutex_);
  return Replace(path, content, /*create=*/true, secrets);
}

Result<void> Workspace::ChangeFile(std::string_view path, std::size_t max_bytes,
                                   const std::function<Result<std::string>(std::string)>& change, Secrets secrets) {
  const MutexLock lock(change_mutex_);
  auto content = TRY(ReadFile(path, max_bytes, secrets));
  const auto changed = TRY(change(std::move(content)));
  TRY(Replace(path, changed, /*create=*/false, secrets));
  return {};
}

Result<void> Workspace::ChangeFiles(const std::vector<Change>& changes, Secrets secrets) {
  struct Staged {
    Target target;
    std::unique_ptr<TemporaryFile> content;  // null: the file is to be deleted
  };
  const auto about = [](const Change& change, Error error) {
    error.message = QuotedPath(change.path) + ": " + error.message;
    return Fail(std::move(error));
  };
  const auto stage = [&](const Change& change) -> Result<Staged> {
    const auto now = TRY(ReadForChange(change.path, kMostChanged, secrets));
    if (now != change.before) return Fail(ErrorCode::kConflict, "it has changed meanwhile");
    Staged ready{TRY(OpenParent(change.path, /*create=*/change.after.has_value(), secrets)), nullptr};
    const auto existing = StatReplaceable(ready.target.parent.get(), ready.target.name);
    if (!existing && (change.before || !IsNotFound(existing.error()))) return Fail(existing.error());
    if (!change.after) return ready;
    ready.content = TRY(TemporaryFile::Create(ready.target.parent.get()));
    const auto from = TRY(OpenParent(change.moved_from.empty() ? change.path : change.moved_from, false, secrets));
    const auto like = StatRegular(from.parent.get(), from.name);
    if (like && !TakeAttributes(ready.content->fd(), like->st_mode & kFileBits, from.parent.get(), from.name, &*like)) {
      return Fail(WorkspaceError(errno));
    }
    TRY(WriteAll(ready.content->fd(), *change.after));
    return ready;
  };
  const MutexLock lock(change_mutex_);
  // All that may fail for want of space or permission comes first.
  std::vector<Staged> staged;
  for (const Change& change : changes) {
    auto ready = stage(change);
    if (!ready) return about(change, ready.error());
    staged.push_back(*std::move(ready));
  }
  std::vector<const Change*> done;
  // Deletions last: what has been replaced can be put back with its permissions.
  for (const bool deletes : {false, true}) {
    for (std::size_t i = 0; i < staged.size(); ++i) {
      const auto& [target, content] = staged[i];
      if (deletes != (content == nullptr)) continue;
      Result<void> made;
      if (content) made = content->RenameTo(target.name);
      if (!content && ::unlinkat(target.parent.get(), target.name.c_str(), 0) != 0) made = Fail(WorkspaceError(errno));
      if (made) {
        done.push_back(&changes[i]);
        continue;
      }
      bool undone = true;
      for (auto each = done.rbegin(); each != done.rend(); ++each) {
        undone = ((*each)->before ? Replace((*each)->path, *(*each)->before, /*create=*/true, secrets).has_value()
                                  : Unlink((*each)->path, secrets).has_value()) &&
                 undone;
      }
      if (!undone) made.error().message += "; some of the other files are changed already";
      return about(changes[i], made.error());
    }
  }
  return {};
}

Result<void> Workspace::DeleteFile(std::string_view path, Secrets secrets) {
  const MutexLock lock(change_mutex_);
  return Unlink(path, secrets);
}

Result<void> Workspace::Unlink(std::string_view path, Secrets secrets) {
  const auto target = TRY(OpenParent(path, /*create=*/false, secrets));
  struct stat status {};
  if (::fstatat(target.parent.get(), target.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return Fail(WorkspaceError(errno));
  }
  if (S_ISDIR(status.st_mode)) return Fail(WorkspaceError(EISDIR));
  if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument, "it is not a regular file");
  }
  if (::unlinkat(target.parent.get(), target.name.c_str(), 0) != 0) return Fail(WorkspaceError(errno));
  return {};
}

}  // namespace reprise
