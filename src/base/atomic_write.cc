#include "base/atomic_write.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/try.h"

namespace reprise {

namespace {

constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::size_t kRandomBytes = 8;

}  // namespace

std::string ParentDirectory(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string TemporaryPath(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  return path.substr(0, name) + "." + path.substr(name) + "." + RandomHex(kRandomBytes) + std::string(kTemporarySuffix);
}

bool IsTemporaryName(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kTemporarySuffix)) return false;
  name.remove_suffix(kTemporarySuffix.size());
  const std::size_t random = name.rfind('.') + 1;
  return random > 2 && IsRandomHex(name.substr(random), kRandomBytes);
}

Result<AtomicFile> AtomicFile::Create(FileSystem& file_system, std::string path) {
  std::string temporary = TemporaryPath(path);
  auto file = TRY(file_system.CreateFile(temporary));
  return AtomicFile(file_system, std::move(path), std::move(temporary), std::move(file));
}

AtomicFile::~AtomicFile() {
  // A failure does not matter because every reader ignores leftovers.
  if (file_) static_cast<void>(file_system_->RemoveFile(temporary_));
}

Result<void> AtomicFile::Commit(std::string_view content, Durability durability) {
  TRY(file_->Append(content));
  if (durability == Durability::kNamedThenSynced) {
    const auto file = TRY(TakeName());
    auto synced = file->Sync().and_then([&] { return file->Close(); });
    if (!synced) static_cast<void>(file_system_->RemoveFile(path_));
    return synced;
  }
  if (durability == Durability::kSynced) TRY(file_->Sync());
  return file_->Close().and_then([&] { return TakeName(); }).map([](const auto&) {});
}

Result<std::unique_ptr<WritableFile>> AtomicFile::CommitOpen(std::string_view content) {
  TRY(file_->Append(content).and_then([&] { return file_->Sync(); }));
  return TakeName();
}

Result<std::unique_ptr<WritableFile>> AtomicFile::TakeName() {
  TRY(file_system_->Rename(temporary_, path_));
  return std::move(file_);
}

Result<void> ReplaceFile(FileSystem& file_system, const std::string& path, std::string_view content,
                         Durability durability) {
  return AtomicFile::Create(file_system, path).and_then([&](AtomicFile file) {
    return file.Commit(content, durability);
  });
}

Result<bool> CreateDirectories(FileSystem& file_system, const std::string& path) {
  const std::string parent = ParentDirectory(path);
  // Sync the names of existing directories too: their creator may have died before that. This keeps to the order from
  // the top down, so what already holds a directory of ours has a durable name, and two names are enough. The kernel
  // may refuse it for a foreign directory, which does not matter if we created nothing in it.
  static_cast<void>(file_system.SyncDirectory(ParentDirectory(parent)));
  auto created = file_system.CreateDirectory(path);
  if (!created && parent != path) {
    TRY(CreateDirectories(file_system, parent));
    created = file_system.CreateDirectory(path);
  }
  if (!created) return created;
  auto synced = file_system.SyncDirectory(parent);
  if (*created && !synced) return Fail(std::move(synced.error()));
  return created;
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLongestPause{20};

// False if another holder kept it until the time limit.
bool Lock(int fd, std::optional<milliseconds> limit) {
  if (!limit) {
    while (::flock(fd, LOCK_EX) != 0) {
      if (errno != EINTR) return false;
    }
    return true;
  }
  // flock(2) has no time limit of its own.
  const auto end = Clock::now() + *limit;
  for (milliseconds pause{1}; ::flock(fd, LOCK_EX | LOCK_NB) != 0; pause = std::min(2 * pause, kLongestPause)) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || Clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace

Result<FolderLock> FolderLock::Take(const std::string& folder, std::optional<milliseconds> limit) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT) return FolderLock(UniqueFd());
  if (fd && Lock(fd.get(), limit)) return FolderLock(std::move(fd));
  if (fd && errno == EWOULDBLOCK) {
    return Fail(Reason::kFolderLocked, "another process has been changing files in this folder for too long; try again",
                folder);
  }
  return Fail(SystemError(errno, folder, "the folder cannot be locked"));
}

}  // namespace reprise
