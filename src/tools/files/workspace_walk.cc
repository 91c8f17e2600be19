#include "tools/files/workspace_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/try.h"
#include "domain/codec.h"

namespace reprise {
namespace {

constexpr std::size_t kBetweenLooks = 64;  // at the clock

struct CloseWalked {
  void operator()(DIR* stream) const { ::closedir(stream); }
};

enum class EntryKind { kFile, kDirectory, kOther };

// A link counts as a file. Pipes and devices, which may block, are never opened.
EntryKind KindOfEntry(int directory, const dirent& entry) {
  switch (entry.d_type) {
    case DT_DIR:
      return EntryKind::kDirectory;
    case DT_REG:
    case DT_LNK:
      return EntryKind::kFile;
    case DT_UNKNOWN:
      break;
    default:
      return EntryKind::kOther;
  }
  struct stat status {};
  if (::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return EntryKind::kOther;
  if (S_ISDIR(status.st_mode)) return EntryKind::kDirectory;
  return S_ISREG(status.st_mode) || S_ISLNK(status.st_mode) ? EntryKind::kFile : EntryKind::kOther;
}

}  // namespace

namespace {

// Without the trailing slash, as tools take it.
std::string Opened(const std::string& folder) { return folder.empty() ? "." : folder.substr(0, folder.size() - 1); }

}  // namespace

bool IsLeftAlone(std::string_view name) {
  return IsOfGit(name) || (name.starts_with(".reprise-") && name.ends_with(".tmp"));
}

bool IsUnreadable(const Error& error) { return error.code == ErrorCode::kIo || error.Is(Reason::kNotReadable); }

bool WorkspaceWalk::is_over() const {
  return std::chrono::steady_clock::now() > rules_.until || rules_.stop.stop_requested();
}

Result<void> WorkspaceWalk::Through(const std::string& start, Secrets secrets, const Found& found) {
  auto opened = TRY(workspace_.OpenDirectory(start, secrets));
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0) return Fail(WorkspaceError(errno));
  device_ = status.st_dev;
  Folder folder{"", rules_.with_ignored ? nullptr : ignored_.Above()};
  if (start != ".") {
    // The rules of the directories above hold too.
    const std::string place = TRY(workspace_.PathInWorkspace(start));
    for (std::size_t at = 0; at < place.size();) {
      if (const auto above = workspace_.OpenDirectory(Opened(folder.path), secrets); above && !rules_.with_ignored) {
        folder.rules_above = ignored_.In(above->get(), place.substr(0, at - (at == 0 ? 0 : 1)), folder.rules_above);
      }
      at = std::min(place.find('/', at), place.size()) + 1;
      folder.path = place.substr(0, at - 1) + "/";
    }
  }
  Look(folder, std::move(opened), found);
  while (!folders_.empty() && complete_) {
    if (is_over()) complete_ = false;
    const Folder next = std::move(folders_.front());
    folders_.pop_front();
    auto directory = workspace_.OpenDirectory(Opened(next.path), secrets);
    if (directory) Look(next, *std::move(directory), found);
    if (!directory && IsUnreadable(directory.error())) ++unread_;
  }
  return {};
}

bool WorkspaceWalk::IsWanted(const std::string& path, std::string_view name, bool is_directory,
                             const IgnoreFiles::Rules& rules) const {
  if (IsLeftAlone(name) || (!rules_.with_hidden && name.starts_with('.'))) return false;
  if (path.size() > kLongestPath || (rules_.accepts && !rules_.accepts(name))) return false;
  return !ignored_.Name(rules, path, is_directory);
}

void WorkspaceWalk::Look(const Folder& folder, UniqueFd opened, const Found& found) {
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0 || status.st_dev != device_) return;
  const std::string path = folder.path.substr(0, folder.path.size() - (folder.path.empty() ? 0 : 1));
  const auto rules = rules_.with_ignored ? nullptr : ignored_.In(opened.get(), path, folder.rules_above);
  const std::unique_ptr<DIR, CloseWalked> stream(::fdopendir(opened.get()));
  if (!stream) return;
  const int directory = opened.Release();  // the stream owns it now
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (++looked_at_ > rules_.most_entries || (looked_at_ % kBetweenLooks == 0 && is_over())) {
      complete_ = false;
      return;
    }
    const EntryKind kind = KindOfEntry(directory, *entry);
    std::string below = folder.path + std::string(name);
    if (kind == EntryKind::kOther || !IsWanted(below, name, kind == EntryKind::kDirectory, rules)) continue;
    if (kind == EntryKind::kFile) {
      found(std::move(below), directory, entry->d_name);
    } else {
      folders_.push_back({below + "/", rules});
    }
  }
}

}  // namespace reprise
