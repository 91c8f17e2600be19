#include "base/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/system.h"
#include "base/try.h"

namespace reprise {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> NotAFile(std::string message, const std::string& path) {
  return Fail(Reason::kIntegrityMissing, std::move(message), path);
}

tl::unexpected<Error> FailErrno(std::string_view call, const std::string& path, int error) {
  return Fail(SystemError(error, std::string(call) + " " + path));
}

// Repeats the call while a signal interrupts it. Not for close(2), which frees the descriptor even on EINTR.
template <typename Call>
auto Retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// --- paths below a confined folder -----------------------------------------------------------------------------------

int OpenWithoutLinks(const std::string& path, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.mode = mode;
  how.resolve = RESOLVE_NO_SYMLINKS;
  return static_cast<int>(Retry([&] { return ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof(how)); }));
}

// Opens one component after another. The folder itself may be a link or lie behind one.
int OpenBelow(const std::string& folder, std::string_view below, int flags, mode_t mode) {
  int at = Retry([&] { return ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); });
  while (at >= 0 && !below.empty()) {
    const UniqueFd directory(at);
    const std::size_t end = std::min(below.find('/'), below.size());
    const std::string name(below.substr(0, end));
    below.remove_prefix(std::min(below.find_first_not_of('/', end), below.size()));
    const int how = below.empty() ? flags | O_NOFOLLOW : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    at = Retry([&] { return ::openat(directory.get(), name.c_str(), how, mode); });
    if (at >= 0 || errno != ENOTDIR) continue;
    struct stat status {};  // the kernel also says ENOTDIR for a link in place of a directory
    const bool is_link =
        ::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
    errno = is_link ? ELOOP : ENOTDIR;
  }
  return at;
}

// `confined` comes from ConfinedAt. ELOOP if there is a link below the folder.
int Open(const std::string& path, std::size_t confined, int flags, mode_t mode = 0) {
  if (confined == 0) return Retry([&] { return ::open(path.c_str(), flags, mode); });
  // One call is enough unless the folder lies behind a link or the system call is missing or blocked.
  const int fd = OpenWithoutLinks(path, flags, mode);
  const bool done = fd >= 0 || (errno != ELOOP && errno != ENOSYS && errno != EPERM);
  if (done) return fd;
  const std::string_view below = std::string_view(path).substr(confined);
  return OpenBelow(path.substr(0, confined), below.substr(below.find_first_not_of('/')), flags, mode);
}

// A name in its directory, for calls that do not open it.
class NameAt {
 public:
  NameAt(const std::string& path, std::size_t confined) : path_(path) {
    if (confined == 0) return;
    const std::size_t slash = path.rfind('/');
    const std::string parent = path.substr(0, slash);
    name_ = slash + 1;
    directory_ = UniqueFd(Open(parent, parent.find_first_not_of('/', confined) == parent.npos ? 0 : confined,
                               O_PATH | O_DIRECTORY | O_CLOEXEC));
    error_ = directory_ ? 0 : errno;
  }

  bool IsInDirectoryOf(const std::string& other) const {
    return name_ > 0 && other.rfind('/') == name_ - 1 && other.compare(0, name_, path_, 0, name_) == 0;
  }
  int error() const { return error_; }  // 0 if the directory exists
  int directory() const { return name_ > 0 ? directory_.get() : AT_FDCWD; }
  const char* name() const { return path_.c_str() + name_; }

 private:
  const std::string& path_;
  std::size_t name_ = 0;  // where the name begins; 0: the whole path
  UniqueFd directory_;
  int error_ = 0;
};

class PosixWritableFile final : public WritableFile {
 public:
  PosixWritableFile(int fd, std::string path) : file_(fd), path_(std::move(path)) {}

  Result<void> Append(std::string_view data) override {
    while (!data.empty()) {
      const ssize_t written = Retry([&] { return ::write(file_.get(), data.data(), data.size()); });
      if (written < 0) return FailErrno("write", path_, errno);
      data.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  Result<void> Sync() override {
    // The kernel reports a lost page once and then marks it clean, so a failure must stick.
    if (sync_error_ != 0) return FailErrno("fsync", path_, sync_error_);
    if (Retry([&] { return ::fsync(file_.get()); }) == 0) return {};
    sync_error_ = errno;
    return FailErrno("fsync", path_, sync_error_);
  }

  Result<void> Close() override {
    const int fd = file_.Release();
    if (fd < 0 || ::close(fd) == 0 || errno == EINTR) return {};
    return FailErrno("close", path_, errno);
  }

 private:
  UniqueFd file_;
  const std::string path_;
  int sync_error_ = 0;
};

DirectoryEntry EntryOf(int parent, const dirent64& entry) {
  unsigned char type = entry.d_type;
  struct stat status {};
  if (type == DT_UNKNOWN && ::fstatat(parent, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
    type = IFTODT(status.st_mode);
  return {.name = entry.d_name, .is_directory = type == DT_DIR, .is_link = type == DT_LNK};
}

}  // namespace

void PosixFileSystem::Confine(const std::string& folder) {
  if (folder.find_first_not_of('/') == std::string::npos || ConfinedAt(folder + "/.") > 0) return;
  const MutexLock lock(mutex_);
  confined_.push_back(folder);
}

std::size_t PosixFileSystem::ConfinedAt(const std::string& path) const {
  std::size_t outermost = 0;
  const MutexLock lock(mutex_);
  for (const std::string& folder : confined_) {
    if (outermost > 0 && folder.size() >= outermost) continue;
    if (path.size() <= folder.size() || !path.starts_with(folder)) continue;
    const bool below = (path[folder.size()] == '/' || folder.back() == '/') &&
                       path.find_first_not_of('/', folder.size()) != std::string::npos;
    if (below) outermost = folder.size();
  }
  return outermost;
}

// The open descriptor keeps the number of a removed folder from being given to the one that takes its place.
struct PosixFileSystem::Expected {
  std::string folder;
  UniqueFd opened;
  struct stat status {};
};

std::shared_ptr<const void> PosixFileSystem::Expect(const std::string& folder) {
  UniqueFd opened(Retry([&] { return ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC); }));
  auto expected = std::make_shared<Expected>(folder, std::move(opened));
  if (expected->opened && ::fstat(expected->opened.get(), &expected->status) != 0) expected->opened.Reset();
  const MutexLock lock(mutex_);
  std::erase_if(expected_, [](const auto& each) { return each.expired(); });
  expected_.push_back(expected);
  return expected;
}

Result<void> PosixFileSystem::CheckExpected(std::string_view call, const std::string& path) const {
  const auto gone = [&](const char* message) {
    return Fail(Reason::kDataFolderGone, message, std::string(call) + " " + path);
  };
  const MutexLock lock(mutex_);
  for (const auto& each : expected_) {
    const auto expected = each.lock();
    if (!expected || !path.starts_with(expected->folder)) continue;
    if (path.size() > expected->folder.size() && path[expected->folder.size()] != '/') continue;
    struct stat there {};
    if (::stat(expected->folder.c_str(), &there) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) return gone("the data folder is not there");
      continue;  // the call itself says what is wrong
    }
    if (!S_ISDIR(there.st_mode)) return gone("the data folder is not there");
    const struct stat& ours = expected->status;
    if (!expected->opened || (there.st_dev == ours.st_dev && there.st_ino == ours.st_ino)) continue;
    return gone("another folder is in the place of the data folder: stop this server");
  }
  return {};
}

tl::unexpected<Error> PosixFileSystem::Failed(std::string_view call, const std::string& path, std::size_t confined,
                                              int error) const {
  if (confined > 0 && error == ELOOP)
    return NotAFile("a symbolic link is in its place or in that of its folder, and is not followed", path);
  if (error != ENOENT && error != ENOTDIR) return FailErrno(call, path, error);
  auto there = CheckExpected(call, path);
  return there ? FailErrno(call, path, error) : Fail(std::move(there.error()));
}

Result<std::string> PosixFileSystem::ReadFile(const std::string& path, std::uint64_t max_bytes) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer. Regular files ignore it.
  const std::size_t confined = ConfinedAt(path);
  const UniqueFd file(Open(path, confined, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return Failed("open", path, confined, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return FailErrno("fstat", path, errno);
  if (!S_ISREG(status.st_mode) && confined > 0) return NotAFile("something that is no file is in its place", path);
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kIo, "not a regular file", path);

  const auto too_large = [&] { return Fail(ErrorCode::kTooLarge, "the file is too large", path); };
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > max_bytes) return too_large();
  // One byte more than expected, so that growth is noticed.
  std::string content(static_cast<std::size_t>(size) + 1, '\0');
  std::size_t have = 0;
  for (;;) {
    const ssize_t got = Retry([&] { return ::read(file.get(), content.data() + have, content.size() - have); });
    if (got < 0) return FailErrno("read", path, errno);
    have += static_cast<std::size_t>(got);
    if (got == 0 || have == size) break;  // as many as there were, of more that were asked for: the end
    if (have > max_bytes) return too_large();
    if (have == content.size()) content.resize(2 * content.size());
  }
  content.resize(have);
  return content;
}

Result<std::unique_ptr<WritableFile>> PosixFileSystem::CreateFile(const std::string& path) {
  TRY(CheckExpected("create", path));
  const std::size_t confined = ConfinedAt(path);
  UniqueFd file(Open(path, confined, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.get() < 0) return Failed("create", path, confined, errno);
  if (::fchmod(file.get(), 0600) != 0) return FailErrno("fchmod", path, errno);
  return std::make_unique<PosixWritableFile>(file.Release(), path);
}

Result<void> PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  TRY(CheckExpected("rename", from));
  TRY(CheckExpected("rename", to));
  const std::size_t from_confined = ConfinedAt(from), to_confined = ConfinedAt(to);
  const NameAt old_name(from, from_confined);
  if (old_name.error() != 0) return Failed("rename", from, from_confined, old_name.error());
  if (old_name.IsInDirectoryOf(to)) {
    const char* name = to.c_str() + to.rfind('/') + 1;
    if (::renameat(old_name.directory(), old_name.name(), old_name.directory(), name) == 0) return {};
    return Failed("rename", from, from_confined, errno);
  }
  const NameAt new_name(to, to_confined);
  if (new_name.error() != 0) return Failed("rename", to, to_confined, new_name.error());
  if (::renameat(old_name.directory(), old_name.name(), new_name.directory(), new_name.name()) == 0) return {};
  return Failed("rename", from, from_confined, errno);
}

Result<void> PosixFileSystem::SyncDirectory(const std::string& path) {
  const std::size_t confined = ConfinedAt(path);
  const UniqueFd directory(Open(path, confined, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return Failed("open", path, confined, errno);
  if (Retry([&] { return ::fsync(directory.get()); }) != 0) return FailErrno("fsync", path, errno);
  return {};
}

namespace {

// Of the file system with this device number, as mounted: "ext4". Empty: not known. See proc_pid_mountinfo(5).
std::string TypeOf(const std::string& device) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string id, parent, number, word;
    words >> id >> parent >> number;
    if (number != device) continue;
    while (words >> word && word != "-") continue;
    return words >> word ? word : std::string();
  }
  return {};
}

}  // namespace

SyncReach PosixFileSystem::sync_reach(const std::string& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return SyncReach::kItself;
  const std::string device = std::to_string(major(status.st_dev)) + ":" + std::to_string(minor(status.st_dev));
  const std::string type = TypeOf(device);
  if (type == "xfs") return SyncReach::kAllNames;
  if (type != "ext4") return SyncReach::kItself;
  // The journal has a folder, named after the device and the journal's inode: /proc/fs/jbd2/sda1-8.
  std::error_code error;
  const std::string journal = fs::read_symlink("/sys/dev/block/" + device, error).filename().string() + "-";
  for (fs::directory_iterator each("/proc/fs/jbd2", error), end; !error && each != end; each.increment(error)) {
    if (each->path().filename().string().starts_with(journal)) return SyncReach::kAllNames;
  }
  return SyncReach::kNewNames;
}

// Syncs the whole file system, because syncing each file would wait for its journal each time.
Result<void> PosixFileSystem::SyncTree(const std::string& path) {
  const std::size_t confined = ConfinedAt(path);
  const UniqueFd directory(Open(path, confined, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return Failed("open", path, confined, errno);
  if (Retry([&] { return ::syncfs(directory.get()); }) != 0) return FailErrno("syncfs", path, errno);
  return {};
}

Result<bool> PosixFileSystem::CreateDirectory(const std::string& path) {
  TRY(CheckExpected("mkdir", path));
  const std::size_t confined = ConfinedAt(path);
  const NameAt at(path, confined);
  if (at.error() != 0) return Failed("mkdir", path, confined, at.error());
  if (::mkdirat(at.directory(), at.name(), 0700) != 0) {
    const int error = errno;
    struct stat status {};
    const int follow = confined > 0 ? AT_SYMLINK_NOFOLLOW : 0;
    const bool there = error == EEXIST && ::fstatat(at.directory(), at.name(), &status, follow) == 0;
    if (there && S_ISDIR(status.st_mode)) return false;
    return Failed("mkdir", path, confined, there && S_ISLNK(status.st_mode) ? ELOOP : error);
  }
  // A strict umask may have removed bits.
  if (::fchmodat(at.directory(), at.name(), 0700, 0) != 0) return FailErrno("chmod", path, errno);
  return true;
}

Result<void> PosixFileSystem::RemoveFile(const std::string& path) {
  TRY(CheckExpected("unlink", path));
  const std::size_t confined = ConfinedAt(path);
  const NameAt at(path, confined);
  if (at.error() != 0) return Failed("unlink", path, confined, at.error());
  if (::unlinkat(at.directory(), at.name(), 0) != 0) return Failed("unlink", path, confined, errno);
  return {};
}

Result<std::vector<DirectoryEntry>> PosixFileSystem::ListDirectory(const std::string& path) {
  const std::size_t confined = ConfinedAt(path);
  const UniqueFd directory(Open(path, confined, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
  if (directory.get() < 0) return Failed("opendir", path, confined, errno);
  std::vector<DirectoryEntry> entries;
  // Not readdir, which makes two calls more and a buffer of this size on the heap: most folders are small.
  alignas(dirent64) std::array<char, 32 * 1024> read;  // NOLINT(*-member-init): written by the kernel
  for (;;) {
    const ssize_t got = Retry([&] { return ::getdents64(directory.get(), read.data(), read.size()); });
    if (got < 0) return FailErrno("readdir", path, errno);
    if (got == 0) return entries;
    for (const char* at = read.data(); at < read.data() + got;) {
      const auto& entry = *reinterpret_cast<const dirent64*>(at);
      at += entry.d_reclen;
      const std::string_view name = entry.d_name;
      if (name != "." && name != "..") entries.push_back(EntryOf(directory.get(), entry));
    }
  }
}

bool InotifyTellsAll(int fd) {
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0) return false;
  constexpr std::array<unsigned long, 9> kLocal{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,      BTRFS_SUPER_MAGIC,
                                                TMPFS_MAGIC,      F2FS_SUPER_MAGIC,     OVERLAYFS_SUPER_MAGIC,
                                                RAMFS_MAGIC,      0x2fc12fc1 /* ZFS */, 0xca451a4e /* bcachefs */};
  const auto type = static_cast<unsigned long>(system.f_type) & 0xffffffffUL;
  return std::ranges::find(kLocal, type) != kLocal.end();
}

namespace {

class InotifyWatch final : public DirectoryWatch {
 public:
  explicit InotifyWatch(UniqueFd inotify) : inotify_(std::move(inotify)) {}

  std::optional<std::vector<Change>> Take() override {
    constexpr std::uint32_t kIsLost = IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;
    std::vector<Change> changes;
    alignas(inotify_event) std::array<char, 16 * 1024> buffer;
    for (;;) {
      const ssize_t size = ::read(inotify_.get(), buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) return changes;
      if (size <= 0) return std::nullopt;
      for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
        inotify_event event;
        std::memcpy(&event, buffer.data() + at, sizeof event);
        if ((event.mask & kIsLost) != 0) return std::nullopt;
        const bool is_there = (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
        if ((event.mask & IN_ISDIR) != 0) changes.push_back({buffer.data() + at + sizeof event, is_there});
        at += sizeof event + event.len;
      }
    }
  }

 private:
  const UniqueFd inotify_;
};

}  // namespace

std::unique_ptr<DirectoryWatch> PosixFileSystem::Watch(const std::string& path) {
  constexpr std::uint32_t kWatched = IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  const UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory || !InotifyTellsAll(directory.get())) return nullptr;
  UniqueFd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify || ::inotify_add_watch(inotify.get(), path.c_str(), kWatched) < 0) return nullptr;
  return std::make_unique<InotifyWatch>(std::move(inotify));
}

FileSystem& Disk() {
  static PosixFileSystem disk;  // stateless; stores refer to it
  return disk;
}

}  // namespace reprise
