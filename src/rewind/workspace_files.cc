#include "rewind/workspace_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <tuple>
#include <utility>

#include "base/terminal_text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "domain/codec.h"
#include "tools/files/file_attributes.h"

namespace reprise {
namespace {

using Clock = std::chrono::steady_clock;

// Whether "@NAME" or "@"NAME"" in a message can name this path.
bool CanBeTyped(std::string_view name) {
  return name.find('"') == std::string_view::npos && VisibleOnOneLine(name) == name;
}

// A matching path and its rank; the least is the best.
struct Candidate {
  int place = 0;  // place of the match: start of the path, start of the name, in the name, before the name
  std::size_t depth = 0;
  std::string path{};
  bool operator<(const Candidate& other) const {
    return std::tuple(place, depth, path.size(), std::string_view(path)) <
           std::tuple(other.place, other.depth, other.path.size(), std::string_view(other.path));
  }
};

// The best matches, up to a limit.
class Best {
 public:
  Best(std::string_view words, std::size_t most)
      : words_(re2::StringPiece(words.data(), words.size()), Literally()), empty_(words.empty()), most_(most) {}

  void Offer(std::string path) {
    const auto place = PlaceIn(path);
    if (!place) return;
    const auto depth = static_cast<std::size_t>(std::ranges::count(path, '/'));
    Candidate candidate{*place, depth, std::move(path)};
    if (heap_.size() == most_) {
      complete_ = false;
      if (!(candidate < heap_.front())) return;
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    heap_.push_back(std::move(candidate));
    std::push_heap(heap_.begin(), heap_.end());
  }
  std::vector<Candidate> Taken() {
    std::sort_heap(heap_.begin(), heap_.end());
    return std::move(heap_);
  }
  bool complete() const { return complete_; }

 private:
  static RE2::Options Literally() {
    RE2::Options options;
    options.set_literal(true);
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    return options;
  }
  std::optional<int> PlaceIn(std::string_view path) const {
    if (empty_) return path.starts_with('.') || path.find("/.") != std::string_view::npos ? 1 : 0;
    const std::size_t name = path.rfind('/') + 1;
    const auto is_at = [&](std::size_t from, RE2::Anchor anchor) {
      return words_.Match({path.data(), path.size()}, from, path.size(), anchor, nullptr, 0);
    };
    if (!is_at(0, RE2::UNANCHORED)) return std::nullopt;
    if (is_at(0, RE2::ANCHOR_START)) return 0;
    if (is_at(name, RE2::ANCHOR_START)) return 1;
    return is_at(name, RE2::UNANCHORED) ? 2 : 3;
  }

  const RE2 words_;
  const bool empty_;
  const std::size_t most_;
  std::vector<Candidate> heap_;  // the worst first
  bool complete_ = true;
};

}  // namespace

Result<WorkspaceReader::Listing> LocalWorkspaceReader::Find(const Query& query) const {
  std::string_view words = query.text;
  while (words.starts_with("./")) words.remove_prefix(2);
  Best best(words, std::max(limits_.candidates, query.limit + 1));
  WorkspaceWalk walk(workspace_, ignored_,
                     {.most_entries = limits_.entries, .until = Clock::now() + limits_.time, .accepts = CanBeTyped});
  TRY(walk.Through(".", Secrets::kClosed, [&](std::string path, int, const char*) { best.Offer(std::move(path)); }));
  Listing listing{.files = {}, .complete = walk.complete() && best.complete()};
  for (const Candidate& candidate : best.Taken()) {
    // When the time is up, still return some of the matches found.
    if (listing.files.size() == query.limit || (!listing.files.empty() && walk.is_over())) {
      listing.complete = false;
      break;
    }
    if (query.accepts && !query.accepts(candidate.path)) continue;
    const auto file = workspace_.OpenFile(candidate.path);
    struct stat status {};
    if (!file || ::fstat(file->get(), &status) != 0) continue;
    listing.files.push_back({candidate.path, static_cast<std::uint64_t>(status.st_size)});
  }
  return listing;
}

Result<std::string> LocalWorkspaceReader::Read(std::string_view path) const {
  return workspace_.ReadFile(path, limits_.file_bytes);
}

namespace {

constexpr std::string_view kStagingEnd = ".restore.tmp";

// The name in the staging folder.
std::string StagedName(std::string_view path) {
  const std::string digest = Sha256Digest({path});
  return digest.substr(digest.find(':') + 1);
}

bool IsStaging(std::string_view name) {
  return IsLeftAlone(name) && name.ends_with(kStagingEnd) && name.find('/') == std::string_view::npos;
}

Error NotReachable() { return MakeError(ErrorCode::kForbidden, "the path is out of reach"); }

}  // namespace

Result<void> CheckWorkspacePath(std::string_view path) {
  if (IsOfGit(path)) return Fail(NotReachable());
  return CheckPathOrGits(path);
}

Result<void> CheckPathOrGits(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath || path.find('\0') != std::string_view::npos)
    return Fail(NotReachable());
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (name.empty() || name == "." || name == ".." || name.size() > NAME_MAX ||
        (IsLeftAlone(name) && !IsOfGit(name))) {
      return Fail(NotReachable());
    }
    at = end + 1;
  }
  return {};
}

std::vector<std::string> NamesIn(int fd) {
  std::vector<std::string> names;
  const int own = ::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = own < 0 ? nullptr : ::fdopendir(own);
  if (stream == nullptr) {
    if (own >= 0) ::close(own);
    return names;
  }
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(stream);
  return names;
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
    version = {.kind = FileVersion::Kind::kDirectory, .mode = status.st_mode & kDirectoryBits};
    version.extras = ExtrasOf(directory, name, status, -1);
    return read;
  } else {
    version.mode = status.st_mode & kFileBits;
    UniqueFd file;
    if (version.size <= file_bytes) {
      file = UniqueFd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    }
    version.extras = ExtrasOf(directory, name, status, file ? file.get() : -1);
    struct stat opened {};
    if (file && ::fstat(file.get(), &opened) == 0 && S_ISREG(opened.st_mode)) {
      if (auto content = ReadAll(file.get(), file_bytes)) {
        version.mode = opened.st_mode & kFileBits;
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

Result<std::optional<WorkspaceFiles::Target>> WorkspaceFiles::Open(const std::string& path, bool make_parents) const {
  TRY(CheckWorkspacePath(path));
  return OpenChecked(path, make_parents);
}

Result<std::optional<WorkspaceFiles::Target>> WorkspaceFiles::OpenChecked(const std::string& path,
                                                                          bool make_parents) const {
  UniqueFd root = TRY(workspace_.OpenRoot());
  const std::size_t slash = path.rfind('/');
  Target target{.parent = {}, .name = path.substr(slash == std::string::npos ? 0 : slash + 1)};
  if (slash == std::string::npos) {
    target.parent = std::move(root);
  } else {
    constexpr int kFlags = O_PATH | O_DIRECTORY;
    target.parent = OpenBeneath(root.get(), path.substr(0, slash), kFlags, Symlinks::kRefuse);
    if (!target.parent && errno == ENOENT && make_parents) {
      for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
        TRY(MakeDirectory(path.substr(0, at), 0777));
      }
      target.parent = OpenBeneath(root.get(), path.substr(0, slash), kFlags, Symlinks::kRefuse);
    }
    if (!target.parent && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) && !make_parents) {
      return std::nullopt;
    }
    if (!target.parent) return Fail(WorkspaceError(errno));
  }
  if (workspace_.IsProtected(target.parent.get(), target.name)) return Fail(NotReachable());
  return std::optional<Target>(std::move(target));
}

namespace {

FileStamp StampOf(const struct stat& status) {
  return {.inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .modified = Nanoseconds(status.st_mtim),
          .changed = status.st_nlink > 1 ? 0 : Nanoseconds(status.st_ctim)};
}

}  // namespace

Result<std::optional<ReadVersion>> WorkspaceFiles::Read(const std::string& path) const {
  TRY(CheckPathOrGits(path));
  const auto target = TRY(OpenChecked(path, /*make_parents=*/false));
  if (!target) return std::nullopt;
  struct stat status {};
  if (::fstatat(target->parent.get(), target->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return Fail(WorkspaceError(errno));
  }
  if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return Fail(ErrorCode::kInvalidArgument, "it is neither a file, a link nor a directory");
  }
  ReadVersion read = ReadEntry(target->parent.get(), target->name, status, file_bytes_);
  read.stamp = StampOf(status);
  return read;
}

bool WorkspaceFiles::IsAsRead(const std::string& path, const std::optional<FileStamp>& stamp) const {
  const auto target = Open(path, /*make_parents=*/false);
  if (!target) return false;
  struct stat status {};
  const bool there =
      *target && ::fstatat((*target)->parent.get(), (*target)->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (!there || !stamp) return !there && !stamp;
  FileStamp now = StampOf(status);
  if (stamp->changed == 0) now.changed = 0;
  return now == *stamp;
}

std::string WorkspaceFiles::NewStaging() { return ".reprise-" + RandomHex(8) + std::string(kStagingEnd); }

Result<UniqueFd> WorkspaceFiles::OpenStaging(const std::string& staging, bool make) const {
  if (!IsStaging(staging)) return Fail(NotReachable());
  const UniqueFd root = TRY(workspace_.OpenRoot());
  if (make && ::mkdirat(root.get(), staging.c_str(), 0700) != 0 && errno != EEXIST) return Fail(WorkspaceError(errno));
  UniqueFd directory(::openat(root.get(), staging.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return Fail(WorkspaceError(errno));
  return directory;
}

Result<void> WorkspaceFiles::Stage(const std::string& staging, const std::string& path, const FileVersion& version,
                                   std::string_view content, bool sync) const {
  const UniqueFd directory = TRY(OpenStaging(staging, /*make=*/true));
  const std::string name = StagedName(path);
  ::unlinkat(directory.get(), name.c_str(), 0);
  if (version.kind == FileVersion::Kind::kLink) {
    if (::symlinkat(std::string(content).c_str(), directory.get(), name.c_str()) == 0) return {};
    return Fail(WorkspaceError(errno));
  }
  const UniqueFd file(
      ::openat(directory.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return Fail(WorkspaceError(errno));
  while (!content.empty()) {
    const ssize_t written = ::write(file.get(), content.data(), content.size());
    if (written < 0 && errno != EINTR) return Fail(WorkspaceError(errno));
    if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
  }
  // A deleted file gets the group of new files.
  const auto target = TRY(Open(path, /*make_parents=*/false));
  const int parent = target ? target->parent.get() : -1;
  struct stat status {};
  const bool is_there = target && ::fstatat(parent, target->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  const bool replaces_file = is_there && S_ISREG(status.st_mode);
  if (!TakeAttributes(file.get(), version.mode & kFileBits, parent, target ? target->name : "",
                      replaces_file ? &status : nullptr)) {
    return Fail(WorkspaceError(errno));
  }
  if (sync && ::fsync(file.get()) != 0) return Fail(WorkspaceError(errno));
  return {};
}

Result<void> WorkspaceFiles::Place(const std::string& staging, const std::string& path) const {
  const UniqueFd directory = TRY(OpenStaging(staging, /*make=*/false));
  const auto target = TRY(Open(path, /*make_parents=*/true));
  const std::string name = StagedName(path);
  if (::renameat(directory.get(), name.c_str(), target->parent.get(), target->name.c_str()) == 0) return {};
  return Fail(WorkspaceError(errno));
}

void WorkspaceFiles::RemoveStaging(const std::string& staging) const {
  const auto root = workspace_.OpenRoot();
  const auto directory = OpenStaging(staging, /*make=*/false);
  if (!root || !directory) return;
  for (const std::string& name : NamesIn(directory->get())) ::unlinkat(directory->get(), name.c_str(), 0);
  ::unlinkat(root->get(), staging.c_str(), AT_REMOVEDIR);
}

Result<void> WorkspaceFiles::MakeDirectory(const std::string& path, std::uint32_t mode) const {
  const auto target = TRY(Open(path, /*make_parents=*/true));
  if (::mkdirat(target->parent.get(), target->name.c_str(), mode & kFileBits) == 0 || errno == EEXIST) return {};
  return Fail(WorkspaceError(errno));
}

Result<void> WorkspaceFiles::SetMode(const std::string& path, std::uint32_t mode, SpecialBits bits) const {
  const auto target = TRY(Open(path, /*make_parents=*/false));
  if (!target) return Fail(WorkspaceError(ENOENT));
  // An unreadable directory can be opened only with O_PATH, so chmod needs its name in /proc.
  const UniqueFd directory(
      ::openat(target->parent.get(), target->name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!directory || ::fstat(directory.get(), &status) != 0) return Fail(WorkspaceError(errno));
  const std::string opened = "/proc/self/fd/" + std::to_string(directory.get());
  const mode_t kept = status.st_mode & 07000 & (bits == SpecialBits::kKeep ? 07777 : ~kDirectoryBits);
  if (::chmod(opened.c_str(), kept | (mode & kDirectoryBits)) != 0) return Fail(WorkspaceError(errno));
  return {};
}

Result<void> WorkspaceFiles::Remove(const std::string& path, bool directory) const {
  const auto target = TRY(Open(path, /*make_parents=*/false));
  if (!target) return {};
  if (::unlinkat(target->parent.get(), target->name.c_str(), directory ? AT_REMOVEDIR : 0) == 0) return {};
  if (errno == ENOENT || (directory && (errno == ENOTEMPTY || errno == EEXIST))) return {};
  return Fail(WorkspaceError(errno));
}

std::vector<std::string> WorkspaceFiles::List(const std::string& path) const {
  const auto root = workspace_.OpenRoot();
  if (!root) return {};
  const UniqueFd directory = OpenBeneath(root->get(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, Symlinks::kRefuse);
  return directory ? NamesIn(directory.get()) : std::vector<std::string>();
}

}  // namespace reprise
