#include "base/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/random.h"

namespace reprise {
namespace {

ErrorCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EEXIST:
    case ENOTEMPTY:
      return ErrorCode::kConflict;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kStorageFull;
    default:
      return ErrorCode::kIo;
  }
}

std::string_view MessageFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
      return "no such file or directory";
    case ErrorCode::kConflict:
      return "the file exists already";
    case ErrorCode::kStorageFull:
      return "no space left to store this";
    default:
      return "the disk could not be read or written";
  }
}

tl::unexpected<Error> FailErrno(std::string_view call, const std::string& path, int error) {
  const ErrorCode code = CodeOf(error);
  return Fail(code, std::string(MessageFor(code)),
              std::string(call) + " " + path + ": " + std::generic_category().message(error));
}

// Calls again as long as a signal interrupts it. Not for close(2): there the descriptor is gone even after EINTR.
template <typename Call>
auto Retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
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
    // The kernel reports a lost page once and then calls it clean: a failure must stick.
    if (sync_error_ != 0) return FailErrno("fsync", path_, sync_error_);
    if (Retry([&] { return ::fsync(file_.get()); }) == 0) return {};
    sync_error_ = errno;
    return FailErrno("fsync", path_, sync_error_);
  }

  Result<void> Clear() override {
    if (Retry([&] { return ::ftruncate(file_.get(), 0); }) == 0 && ::lseek(file_.get(), 0, SEEK_SET) == 0) return {};
    return FailErrno("ftruncate", path_, errno);
  }

  Result<void> Close() override {
    const int fd = file_.Release();
    if (fd < 0 || ::close(fd) == 0 || errno == EINTR) return {};
    return FailErrno("close", path_, errno);
  }

 private:
  Descriptor file_;
  const std::string path_;
  int sync_error_ = 0;
};

bool IsDirectory(const std::string& parent, const dirent& entry) {
  if (entry.d_type != DT_UNKNOWN) return entry.d_type == DT_DIR;
  struct stat status {};
  return ::lstat((parent + "/" + entry.d_name).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// A directory that ext4 takes for a top of the hierarchy.
bool MakeTopDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) return false;
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int flags = 0;
  if (directory.get() < 0 || ::ioctl(directory.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags |= FS_TOPDIR_FL;
  return ::ioctl(directory.get(), FS_IOC_SETFLAGS, &flags) == 0;
}

// How much longer it takes to make a file in a directory than to remove it: about 1.5 where no inode has to be looked
// for.
double CostOfFile(FileSystem& disk, const std::string& directory) {
  const std::string file = directory + "/probe";
  const auto start = std::chrono::steady_clock::now();
  if (!disk.CreateFile(file)) return std::numeric_limits<double>::infinity();
  const auto made = std::chrono::steady_clock::now();
  (void)disk.RemoveFile(file);
  const auto removed = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(made - start) / (removed - made);
}

// Makes directories below `top` and leaves one of those in which files are made quickly, any one: ext4 offers first the
// groups that had been emptied last, and an inode looks free to it for a second before it counts as lately removed.
// Empty: none could be made.
std::string MakeQuickDirectory(FileSystem& disk, const std::string& top) {
  constexpr int kChoice = 24;
  constexpr double kQuick = 2.5;
  std::set<std::string> made;  // in the order of their random names
  for (int index = 0; index < kChoice; ++index) {
    const std::string path = top + "/" + RandomHex(8);
    if (!disk.CreateDirectory(path)) break;
    made.insert(path);
  }
  std::string best;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& directory : made) {
    const double cost = std::min(CostOfFile(disk, directory), CostOfFile(disk, directory));
    if (cost < least) best = directory;
    least = std::min(least, cost);
    if (least < kQuick) break;
  }
  for (const std::string& directory : made) {
    if (directory != best) ::rmdir(directory.c_str());
  }
  return best;
}

}  // namespace

Result<std::string> PosixFileSystem::ReadFile(const std::string& path, std::uint64_t max_bytes) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer; it means nothing for regular files.
  const Descriptor file(Retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  if (file.get() < 0) return FailErrno("open", path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return FailErrno("fstat", path, errno);
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kIo, "not a regular file", path);

  const auto too_large = [&] { return Fail(ErrorCode::kTooLarge, "the file is too large", path); };
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > max_bytes) return too_large();
  // One byte more than there should be: the read that returns 0 then needs no second buffer, and growth is noticed.
  std::string content(static_cast<std::size_t>(size) + 1, '\0');
  std::size_t have = 0;
  for (;;) {
    const ssize_t got = Retry([&] { return ::read(file.get(), content.data() + have, content.size() - have); });
    if (got < 0) return FailErrno("read", path, errno);
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
    if (have > max_bytes) return too_large();
    if (have == content.size()) content.resize(2 * content.size());
  }
  content.resize(have);
  return content;
}

Result<std::unique_ptr<WritableFile>> PosixFileSystem::CreateFile(const std::string& path) {
  Descriptor file(
      Retry([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600); }));
  if (file.get() < 0) return FailErrno("create", path, errno);
  if (::fchmod(file.get(), 0600) != 0) return FailErrno("fchmod", path, errno);
  return std::make_unique<PosixWritableFile>(file.Release(), path);
}

Result<void> PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return FailErrno("rename", from, errno);
  return {};
}

Result<void> PosixFileSystem::SyncDirectory(const std::string& path) {
  const Descriptor directory(Retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (directory.get() < 0) return FailErrno("open", path, errno);
  if (Retry([&] { return ::fsync(directory.get()); }) != 0) return FailErrno("fsync", path, errno);
  return {};
}

Result<bool> PosixFileSystem::CreateDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) {
    const int error = errno;
    struct stat status {};
    if (error == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return false;
    return FailErrno("mkdir", path, error);
  }
  if (::chmod(path.c_str(), 0700) != 0) return FailErrno("chmod", path, errno);  // a strict umask takes bits from mkdir
  return true;
}

// ext4 puts a directory, and what will be in it, near its parent: among the inodes of all that was lately made and
// removed there, each of which it looks at again for every new file when it has no journal. Below a directory that
// counts as a top of the hierarchy (chattr +T) it takes a group of blocks with few directories instead, but these may
// have been removed a moment ago. So there is made a choice of them, and a quick one is moved.
Result<bool> PosixFileSystem::CreateDirectoryApart(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return CreateDirectory(path);
  const std::string top = path + "." + RandomHex(8) + ".tmp";
  const bool moved = MakeTopDirectory(top) && [&] {
    const std::string quickest = MakeQuickDirectory(*this, top);
    if (quickest.empty()) return false;
    const bool in_place = ::renameat2(AT_FDCWD, quickest.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0;
    if (!in_place) ::rmdir(quickest.c_str());
    return in_place;
  }();
  ::rmdir(top.c_str());
  if (moved) return true;
  return CreateDirectory(path);
}

Result<void> PosixFileSystem::RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return FailErrno("unlink", path, errno);
  return {};
}

Result<std::vector<DirectoryEntry>> PosixFileSystem::ListDirectory(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);  // close-on-exec by itself
  if (!directory) return FailErrno("opendir", path, errno);
  std::vector<DirectoryEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    entries.push_back({.name = std::string(name), .is_directory = IsDirectory(path, *entry)});
  }
  if (errno != 0) return FailErrno("readdir", path, errno);
  return entries;
}

}  // namespace reprise
