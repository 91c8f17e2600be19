#include "rewind/workspace_tracker.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/logging.h"
#include "base/posix_file_system.h"
#include "crypto/digest.h"
#include "domain/codec.h"
#include "tools/files/run_by_others.h"

namespace reprise {
namespace {

constexpr std::uint32_t kWatched = IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM |
                                   IN_MOVED_TO | IN_ONLYDIR | IN_EXCL_UNLINK;
// A file that changed less than this before we looked may change again without a new time stamp.
constexpr std::int64_t kStampNanoseconds = 50'000'000;
constexpr std::size_t kMostRunByOthers = 1'000;  // changes of files that others run, recorded beyond the limit
constexpr std::size_t kManyEntries = 20'000;     // entries added or removed between two looks

std::string Join(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : directory + "/" + std::string(name);
}

std::string ParentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string NameIn(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::int64_t CoarseNow() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return Nanoseconds(now);
}

bool IsTracked(const struct stat& status) {
  return S_ISREG(status.st_mode) || S_ISLNK(status.st_mode) || S_ISDIR(status.st_mode);
}

FileVersion::Kind KindOf(const struct stat& status) {
  return S_ISDIR(status.st_mode)   ? FileVersion::Kind::kDirectory
         : S_ISLNK(status.st_mode) ? FileVersion::Kind::kLink
                                   : FileVersion::Kind::kFile;
}

}  // namespace

WorkspaceTracker::WorkspaceTracker(const Workspace& workspace, std::string cache_folder, RewindLimits limits)
    : workspace_(workspace),
      limits_(limits),
      files_(workspace, limits.file_bytes),
      ignored_(workspace),
      cache_(std::move(cache_folder), limits.cache_bytes) {
  const std::string& root = workspace_.directory();
  for (const std::string& closed : workspace_.protected_paths()) {
    if (closed.size() > root.size() + 1 && closed.starts_with(root) && (root == "/" || closed[root.size()] == '/')) {
      closed_.insert(closed.substr(root == "/" ? 1 : root.size() + 1));
    }
  }
}

// --- ignore rules ----------------------------------------------------------------------------------------------------

WorkspaceTracker::Rules WorkspaceTracker::RulesOnDisk(const std::string& directory) const {
  Rules rules = ignored_.Above();
  std::string path;
  for (std::size_t at = 0;;) {
    if (const UniqueFd fd = OpenDirectory(path)) rules = ignored_.In(fd.get(), path, std::move(rules));
    if (path.size() == directory.size()) return rules;
    const std::size_t end = std::min(directory.find('/', at), directory.size());
    path = directory.substr(0, end);
    at = end + 1;
  }
}

bool WorkspaceTracker::IsClosed(const std::string& path) const {
  return std::ranges::any_of(closed_, [&](const std::string& closed) {
    return path.starts_with(closed) && (path.size() == closed.size() || path[closed.size()] == '/');
  });
}

bool WorkspaceTracker::IsLeftOut(const std::string& name, const std::string& path) const {
  if (path.size() > kLongestPath || IsClosed(path)) return true;
  if (!IsOfGit(path)) return IsLeftAlone(name);
  return !IsOfGit(name) && WhoRuns(path, workspace_.home()).empty();
}

bool WorkspaceTracker::IsPassedOver(const Rules& rules, bool folder_is_ignored, const std::string& path,
                                    bool is_directory) const {
  if (!folder_is_ignored && !ignored_.Name(rules, path, is_directory)) return false;
  const std::string& home = workspace_.home();
  return is_directory ? !MayHoldWhatOthersRun(path, home) : WhoRuns(path, home).empty();
}

bool WorkspaceTracker::IsIgnored(const std::string& path) const {
  if (IsClosed(path) || !CheckPathOrGits(path)) return true;
  if (!WhoRuns(path, workspace_.home()).empty()) return false;
  if (IsOfGit(path)) return true;
  for (std::size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
    const bool last = slash == std::string::npos;
    const std::string part = path.substr(0, slash);
    Rules rules;
    {
      const MutexLock lock(mutex_);
      const auto known = directories_.find(ParentOf(part));
      rules = known != directories_.end() ? known->second.rules : RulesOnDisk(ParentOf(part));
    }
    if (ignored_.Name(rules, part, !last)) return true;
    if (last) return false;
  }
}

// --- making the manifest ---------------------------------------------------------------------------------------------

WorkspaceTracker::Signature WorkspaceTracker::SignatureOf(const struct stat& status) {
  return {.inode = status.st_ino,
          .size = static_cast<std::uint64_t>(status.st_size),
          .links = status.st_nlink,
          .modified = Nanoseconds(status.st_mtim),
          .changed = Nanoseconds(status.st_ctim),
          .mode = status.st_mode};
}

UniqueFd WorkspaceTracker::OpenDirectory(const std::string& path) const {
  auto root = workspace_.OpenRoot(O_RDONLY);
  if (!root || path.empty()) return root ? *std::move(root) : UniqueFd();
  return OpenBeneath(root->get(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, Symlinks::kRefuse);
}

void WorkspaceTracker::Watch(int fd, const std::string& path, Directory& directory) {
  if (!inotify_) return;
  const std::string opened = "/proc/self/fd/" + std::to_string(fd);
  directory.watch = ::inotify_add_watch(inotify_.get(), opened.c_str(), kWatched);
  if (directory.watch >= 0) {
    watches_[directory.watch] = path;
  } else {
    StopWatching(errno == ENOSPC ? "there are too few watches (fs.inotify.max_user_watches)" : "the kernel refuses");
  }
}

void WorkspaceTracker::StopWatching(std::string_view why) {
  LogWarning("changes in the workspace are found by looking at every file", {{"reason", why}});
  inotify_.Reset();
  watches_.clear();
  for (auto& [path, directory] : directories_) directory.watch = -1;
}

void WorkspaceTracker::Drop() {
  for (const auto& [path, directory] : directories_) {
    for (const auto& [name, entry] : directory.entries) {
      if (entry.content) cache_.Forget(*entry.content);
    }
  }
  directories_.clear();
  linked_.clear();
  newly_linked_.clear();
  watches_.clear();
  inotify_.Reset();
  count_ = 0;
  built_ = missed_ = false;
}

bool WorkspaceTracker::Build(const std::stop_token& stop) {
  Drop();
  const UniqueFd root = OpenDirectory("");
  struct stat status {};
  if (!root || ::fstat(root.get(), &status) != 0) return false;
  root_inode_ = status.st_ino;
  root_device_ = status.st_dev;
  if (InotifyTellsAll(root.get())) inotify_ = UniqueFd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  looked_at_ = CoarseNow();
  if (!AddDirectory("", nullptr, stop)) {
    const bool stopped = stop.stop_requested();
    Drop();
    if (!stopped) {
      too_large_ = true;
      LogWarning("the workspace has too many files, so changes by commands are not recorded",
                 {{"most", limits_.entries}});
    }
    return false;
  }
  built_ = true;
  LogInfo("the workspace was read", {{"entries", count_}, {"watched", static_cast<bool>(inotify_)}});
  return true;
}

bool WorkspaceTracker::AddDirectory(const std::string& path, Findings* findings, const std::stop_token& stop) {
  std::vector<std::string> left{path};
  while (!left.empty()) {
    const std::string at = std::move(left.back());
    left.pop_back();
    if (stop.stop_requested() || count_ > limits_.entries) return false;
    const UniqueFd fd = OpenDirectory(at);
    if (!fd) continue;  // gone, or unreadable
    Directory& directory = directories_[at];
    Watch(fd.get(), at, directory);  // first, so that changes during the reading are reported
    const auto above = directories_.find(ParentOf(at));
    directory.rules = ignored_.In(fd.get(), at, at.empty() ? ignored_.Above() : above->second.rules);
    directory.ignored =
        !at.empty() && (above->second.ignored || ignored_.Name(above->second.rules, at, /*is_directory=*/true));
    for (const std::string& name : NamesIn(fd.get())) {
      const std::string below = Join(at, name);
      struct stat status {};
      if (IsLeftOut(name, below)) continue;
      if (::fstatat(fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !IsTracked(status)) continue;
      if (status.st_dev != root_device_) continue;
      if (IsPassedOver(directory.rules, directory.ignored, below, S_ISDIR(status.st_mode))) continue;
      if (!directory.entries.contains(name)) AddEntry(fd.get(), at, name, status, findings);
      if (S_ISDIR(status.st_mode)) left.push_back(below);
    }
  }
  return count_ <= limits_.entries;
}

// Adds the entry, but not a directory's content.
void WorkspaceTracker::AddEntry(int fd, const std::string& directory, const std::string& name,
                                const struct stat& status, Findings* findings) {
  Entry entry{.kind = KindOf(status), .signature = SignatureOf(status)};
  const std::string path = Join(directory, name);
  if (entry.kind == FileVersion::Kind::kDirectory) {
    const FileVersion version = ReadEntry(fd, name, status, 0).version;
    entry.extras = version.extras;
    if (Records(findings, path)) Note(findings, path, std::nullopt, version);
  } else {
    ReadVersion read = ReadEntry(fd, name, status, limits_.file_bytes);
    entry.extras = read.version.extras;
    if (read.version.is_kept()) {
      if (auto place = cache_.Add(read.content)) entry.content = *place;
    }
    if (status.st_nlink > 1) AddLinked(path, status.st_ino);
    if (Records(findings, path)) Note(findings, path, std::nullopt, Kept(std::move(read), findings));
  }
  if (cache_.full() && !std::exchange(told_full_, true)) {
    LogWarning("there is no more room for contents of the workspace: some changes are recorded without content",
               {{"most_bytes", limits_.cache_bytes}});
  }
  directories_[directory].entries[name] = entry;
  ++count_;
}

void WorkspaceTracker::RemoveEntry(const std::string& directory, const std::string& name, Findings* findings) {
  auto& entries = directories_[directory].entries;
  const auto found = entries.find(name);
  if (found == entries.end()) return;
  const std::string path = Join(directory, name);
  if (found->second.kind == FileVersion::Kind::kDirectory) {
    const auto below = directories_.find(path);
    if (below != directories_.end()) {
      std::vector<std::string> names;
      for (const auto& [each, entry] : below->second.entries) names.push_back(each);
      for (const std::string& each : names) RemoveEntry(path, each, findings);
      if (below->second.watch >= 0) {
        ::inotify_rm_watch(inotify_.get(), below->second.watch);
        watches_.erase(below->second.watch);
      }
      directories_.erase(path);
    }
  }
  if (Records(findings, path)) Note(findings, path, VersionOf(found->second, findings), std::nullopt);
  if (found->second.content) cache_.Forget(*found->second.content);
  linked_.erase(path);
  entries.erase(found);
  --count_;
}

// --- findings --------------------------------------------------------------------------------------------------------

bool WorkspaceTracker::Records(Findings* findings, const std::string& path) const {
  if (findings == nullptr) return false;
  const std::size_t known = findings->changes.size();
  if (known < findings->most || findings->changes.contains(path)) return true;
  // So that a git hook cannot hide behind many other files.
  if (known < findings->most + kMostRunByOthers && !WhoRuns(path, workspace_.home()).empty()) return true;
  ++findings->omitted;
  return false;
}

void WorkspaceTracker::Note(Findings* findings, const std::string& path, std::optional<FileVersion> before,
                            std::optional<FileVersion> after) {
  // For git's folders, the changes of their content say enough.
  const auto& version = after ? after : before;
  if (version && version->kind == FileVersion::Kind::kDirectory && IsOfGit(path)) return;
  const auto [found, is_new] = findings->changes.try_emplace(path);
  if (is_new) found->second = {.path = path, .before = std::move(before)};
  found->second.after = std::move(after);
}

FileVersion WorkspaceTracker::Kept(ReadVersion read, Findings* findings) {
  FileVersion& version = read.version;
  if (version.kind == FileVersion::Kind::kDirectory || version.digest.empty()) return version;
  findings->kept_bytes += version.size;
  if (findings->kept_bytes > limits_.kept_bytes) {
    findings->full = true;
    version.digest.clear();
    return version;
  }
  findings->keep(version.digest, std::move(read.content));
  return version;
}

std::optional<FileVersion> WorkspaceTracker::VersionOf(const Entry& entry, Findings* findings) {
  using Kind = FileVersion::Kind;
  const std::uint32_t bits = entry.kind == Kind::kDirectory ? kDirectoryBits
                             : entry.kind == Kind::kFile    ? kFileBits
                                                            : 0;
  ReadVersion read{.version = {.kind = entry.kind, .mode = entry.signature.mode & bits, .extras = entry.extras}};
  if (entry.kind == FileVersion::Kind::kDirectory) return read.version;
  read.version.size = entry.signature.size;
  if (entry.content) {
    if (auto content = cache_.Read(*entry.content)) {
      read.version.size = content->size();
      read.version.digest = Sha256Digest({*content});
      read.content = *std::move(content);
      return Kept(std::move(read), findings);
    }
  }
  read.version.modified_ns = entry.signature.modified;
  return read.version;
}

// --- looking again ---------------------------------------------------------------------------------------------------

bool WorkspaceTracker::Refresh(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  if (too_large_) return false;
  if (built_) Update(nullptr);  // forgets everything if the workspace is another folder than before
  return built_ || Build(stop);
}

bool WorkspaceTracker::IsKnown(const std::stop_token& stop) {
  const MutexLock lock(mutex_);
  return !too_large_ && (built_ || Build(stop));
}

WorkspaceChanges WorkspaceTracker::Collect(const Keep& keep, std::size_t most) {
  const MutexLock lock(mutex_);
  WorkspaceChanges changes;
  if (!built_) return changes;
  Findings findings{.keep = keep, .most = most};
  Update(&findings);
  for (auto& [path, change] : findings.changes) {
    if (change.before != change.after) changes.recorded.push_back(std::move(change));
  }
  changes.omitted = findings.omitted;
  if (findings.full || findings.omitted > 0) {
    LogWarning(
        "more files have changed than can be stored: some of them cannot be put back",
        {{"changes", changes.recorded.size()}, {"not_recorded", changes.omitted}, {"kept_bytes", limits_.kept_bytes}});
  }
  return changes;
}

void WorkspaceTracker::Settle(const std::vector<std::string>& paths) {
  const MutexLock lock(mutex_);
  if (!built_) return;
  for (const std::string& path : paths) {
    if (!CheckPathOrGits(path)) continue;
    // From the top down, because directories above may be new or gone.
    for (std::size_t slash = path.find('/');; slash = path.find('/', slash + 1)) {
      const std::string part = path.substr(0, slash);
      LookAt(ParentOf(part), {NameIn(part)}, /*sure=*/slash == std::string::npos, nullptr);
      if (slash == std::string::npos) break;
    }
  }
  old_rules_.clear();
}

void WorkspaceTracker::Update(Findings* findings) {
  struct stat status {};
  const std::int64_t now = CoarseNow();
  const std::size_t count_before = count_;
  auto [dirty, removed] = inotify_ ? ReadEvents() : Told{};
  const UniqueFd root = OpenDirectory("");
  if (!root || ::fstat(root.get(), &status) != 0 || status.st_ino != root_inode_ || status.st_dev != root_device_ ||
      removed.contains("")) {
    LogWarning("the workspace is another folder than before", {});
    return Drop();
  }
  for (const std::string& path : linked_) {
    if (inotify_ && !missed_) {
      // Check it as in a full scan, because it may have been changed under another name.
      const auto found = directories_.find(ParentOf(path));
      const auto entry = found->second.entries.find(NameIn(path));
      if (::fstatat(AT_FDCWD, (workspace_.directory() + "/" + path).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
          SignatureOf(status) != entry->second.signature) {
        dirty[ParentOf(path)].insert(NameIn(path));
      }
    }
  }
  if (!inotify_ || missed_) {
    missed_ = false;
    LookAtAll(findings);
  } else {
    // Handle removals first, so that a moved directory is watched under its new name.
    for (const auto& [directory, names] : dirty) {
      const auto known = directories_.find(directory);
      if (known == directories_.end()) continue;
      const UniqueFd fd = OpenDirectory(directory);
      for (const std::string& name : names) {
        const auto entry = known->second.entries.find(name);
        if (entry == known->second.entries.end() || entry->second.kind != FileVersion::Kind::kDirectory) continue;
        if (fd && ::fstatat(fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            status.st_ino == entry->second.signature.inode && !removed.contains(Join(directory, name))) {
          continue;
        }
        RemoveEntry(directory, name, findings);
        if (!directories_.contains(directory)) break;
      }
    }
    for (const auto& [directory, names] : dirty) LookAt(directory, names, /*sure=*/true, findings);
  }
  LookForOtherNames(findings);
  old_rules_.clear();
  looked_at_ = now;
  // malloc keeps the memory of such a large scan, because one small block above it pins all of it.
  if (std::max(count_, count_before) - std::min(count_, count_before) > kManyEntries) ::malloc_trim(0);
}

void WorkspaceTracker::AddLinked(const std::string& path, std::uint64_t inode) {
  if (linked_.insert(path).second && built_) newly_linked_.insert(inode);
}

// inotify reports a file with a new name only under that name, so check its other names too.
void WorkspaceTracker::LookForOtherNames(Findings* findings) {
  if (newly_linked_.empty()) return;
  const std::set<std::uint64_t> inodes = std::exchange(newly_linked_, {});
  std::map<std::string, std::set<std::string>> found;
  for (const auto& [path, directory] : directories_) {
    for (const auto& [name, entry] : directory.entries) {
      if (inodes.contains(entry.signature.inode) && !linked_.contains(Join(path, name))) found[path].insert(name);
    }
  }
  for (const auto& [directory, names] : found) LookAt(directory, names, /*sure=*/true, findings);
}

WorkspaceTracker::Told WorkspaceTracker::ReadEvents() {
  Told told;
  alignas(inotify_event) std::array<char, 64 * 1024> buffer;
  for (;;) {
    const ssize_t size = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return told;
    for (const char* at = buffer.data(); at < buffer.data() + size;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) missed_ = true;
      const auto watch = watches_.find(event->wd);
      if (watch == watches_.end()) continue;
      const std::string directory = watch->second;
      if ((event->mask & IN_IGNORED) != 0) {  // the watch is gone with its directory
        watches_.erase(watch);
        if (const auto known = directories_.find(directory); known != directories_.end()) known->second.watch = -1;
        told.removed.insert(directory);
        if (!directory.empty()) told.dirty[ParentOf(directory)].insert(NameIn(directory));
      } else if (event->len > 0) {
        told.dirty[directory].insert(event->name);
      }
    }
  }
}

void WorkspaceTracker::LookAtAll(Findings* findings) {
  std::vector<std::string> paths;
  for (const auto& [path, directory] : directories_) paths.push_back(path);
  for (const std::string& path : paths) {
    const auto known = directories_.find(path);
    if (known == directories_.end()) continue;  // gone with a directory above it
    std::set<std::string> names;
    if (const UniqueFd fd = OpenDirectory(path)) {
      // Among the events lost may be the replacement of this directory, so the new one may not be watched yet.
      const int before = known->second.watch;
      Watch(fd.get(), path, known->second);
      if (before >= 0 && before != known->second.watch) watches_.erase(before);
      for (std::string& name : NamesIn(fd.get())) names.insert(std::move(name));
    }
    for (const auto& [name, entry] : known->second.entries) names.insert(name);
    LookAt(path, names, /*sure=*/false, findings);
  }
}

void WorkspaceTracker::LookAt(const std::string& directory, const std::set<std::string>& names, bool sure,
                              Findings* findings) {
  if (!directories_.contains(directory)) return;
  const UniqueFd fd = OpenDirectory(directory);
  if (!fd) return;  // it is gone, which its parent will report
  struct stat status {};
  // Rules first, so that newly ignored entries are not reported.
  if (const auto rules = names.find(std::string(kIgnoreFile)); rules != names.end()) {
    const auto& entries = directories_[directory].entries;
    const auto entry = entries.find(*rules);
    const bool there = ::fstatat(fd.get(), rules->c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (there != (entry != entries.end()) || (there && (sure || SignatureOf(status) != entry->second.signature))) {
      NewRules(directory);
    }
  }
  for (const std::string& name : names) {
    LookAtName(fd.get(), directory, name, sure, findings);
  }
  if (old_rules_.contains(directory)) ApplyNewRules(directory);
}

void WorkspaceTracker::LookAtName(int fd, const std::string& directory, const std::string& name, bool sure,
                                  Findings* findings) {
  const std::string path = Join(directory, name);
  if (IsLeftOut(name, path)) return;
  struct stat status {};
  const bool there = ::fstatat(fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && IsTracked(status) &&
                     status.st_dev == root_device_;
  auto& entries = directories_[directory].entries;
  const auto found = entries.find(name);
  if (!there) {
    if (found != entries.end()) RemoveEntry(directory, name, findings);
    return;
  }
  const bool is_directory = S_ISDIR(status.st_mode);
  if (found == entries.end()) {
    const Directory& in = directories_[directory];
    if (IsPassedOver(in.rules, in.ignored, path, is_directory)) return;
    const auto old = old_rules_.find(directory);
    const bool was_ignored = old != old_rules_.end() && IsPassedOver(old->second, in.ignored, path, is_directory);
    Findings* const told = was_ignored ? nullptr : findings;
    AddEntry(fd, directory, name, status, told);
    if (is_directory) AddDirectory(path, told, {});
    return;
  }
  Entry& entry = found->second;
  const Signature signature = SignatureOf(status);
  const bool same_kind = entry.kind == KindOf(status);
  if (!same_kind || (is_directory && entry.signature.inode != signature.inode)) {
    RemoveEntry(directory, name, findings);
    AddEntry(fd, directory, name, status, findings);
    if (is_directory) AddDirectory(path, findings, {});
    return;
  }
  if (is_directory) {
    std::optional<FileVersion> was = VersionOf(entry, findings);
    entry.signature = signature;
    const bool is_changed = was->mode != (signature.mode & kDirectoryBits);
    if (is_changed && Records(findings, path)) Note(findings, path, was, VersionOf(entry, findings));
    return;
  }
  const std::int64_t stamped = std::max(entry.signature.modified, entry.signature.changed);
  const bool may_be_same = stamped + kStampNanoseconds < looked_at_;
  if (!sure && entry.signature == signature && may_be_same) return;
  ReadVersion read = ReadEntry(fd, name, status, limits_.file_bytes);
  std::optional<std::string> before;
  if (entry.content) {
    if (auto content = cache_.Read(*entry.content)) before = *std::move(content);
  }
  status.st_nlink > 1 ? AddLinked(path, status.st_ino) : static_cast<void>(linked_.erase(path));
  const bool same_content = before && read.version.is_kept() && *before == read.content;
  if (same_content && (entry.signature.mode & kFileBits) == (signature.mode & kFileBits)) {
    entry.signature = signature, entry.extras = read.version.extras;
    return;
  }
  if (!before && !read.version.is_kept() && entry.signature == signature) return;
  const bool records = Records(findings, path);
  std::optional<FileVersion> was;
  if (records) was = VersionOf(entry, findings);
  if (!same_content) {
    if (entry.content) cache_.Forget(*entry.content);
    entry.content.reset();
    if (read.version.is_kept()) {
      if (auto place = cache_.Add(read.content)) entry.content = *place;
    }
  }
  entry.signature = signature, entry.extras = read.version.extras;
  if (records) Note(findings, path, std::move(was), Kept(std::move(read), findings));
}

// Reloads the rules of this directory and those below, and keeps the previous ones in old_rules_.
void WorkspaceTracker::NewRules(const std::string& directory) {
  if (old_rules_.contains(directory)) return;
  const std::string below = directory.empty() ? "" : directory + "/";
  for (auto at = directories_.lower_bound(directory); at != directories_.end(); ++at) {
    const std::string& path = at->first;
    if (path != directory && !path.starts_with(below)) {
      if (path > below && !path.starts_with(directory)) break;
      continue;  // "a-b" sorts between "a" and "a/b"
    }
    old_rules_.emplace(path, at->second.rules);
    if (const UniqueFd fd = OpenDirectory(path)) {
      const Directory* const above = path.empty() ? nullptr : &directories_[ParentOf(path)];
      at->second.rules = ignored_.In(fd.get(), path, above == nullptr ? ignored_.Above() : above->rules);
      at->second.ignored = above != nullptr && (above->ignored || ignored_.Name(above->rules, path, true));
    }
  }
}

// Drops entries that are ignored now and adds those that no longer are. Neither counts as a change.
void WorkspaceTracker::ApplyNewRules(const std::string& directory) {
  const std::string below = directory.empty() ? "" : directory + "/";
  std::vector<std::string> paths;
  for (const auto& [path, each] : directories_) {
    if (path == directory || path.starts_with(below)) paths.push_back(path);
  }
  for (const std::string& path : paths) {
    const auto known = directories_.find(path);
    if (known == directories_.end()) continue;
    std::vector<std::string> ignored;
    for (const auto& [name, entry] : known->second.entries) {
      const bool is_directory = entry.kind == FileVersion::Kind::kDirectory;
      const bool passed_over = IsPassedOver(known->second.rules, known->second.ignored, Join(path, name), is_directory);
      if (passed_over) ignored.push_back(name);
    }
    for (const std::string& name : ignored) RemoveEntry(path, name, nullptr);
    const UniqueFd fd = OpenDirectory(path);
    if (!fd) continue;
    const auto old = old_rules_.find(path);
    for (const std::string& name : NamesIn(fd.get())) {
      struct stat status {};
      const std::string entry = Join(path, name);
      if (IsLeftOut(name, entry) || known->second.entries.contains(name)) continue;
      if (::fstatat(fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !IsTracked(status)) continue;
      const bool is_directory = S_ISDIR(status.st_mode);
      const bool in_ignored = known->second.ignored;
      const bool was_ignored = old != old_rules_.end() && IsPassedOver(old->second, in_ignored, entry, is_directory);
      if (!was_ignored || status.st_dev != root_device_) continue;  // it is new and reported separately
      if (IsPassedOver(known->second.rules, in_ignored, entry, is_directory)) continue;
      AddEntry(fd.get(), path, name, status, nullptr);
      if (is_directory) AddDirectory(entry, nullptr, {});
    }
  }
}

}  // namespace reprise
