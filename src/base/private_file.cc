#include "base/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/atomic_write.h"
#include "base/path.h"
#include "base/posix_file_system.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {

namespace {

constexpr std::size_t kMaxTokenFile = 4096;
constexpr std::size_t kMinToken = 16;

struct OpenFile {
  UniqueFd descriptor;
  struct stat status;
};

Result<OpenFile> Open(const std::string& path) {
  // O_NONBLOCK: a fifo must be refused, not waited for.
  OpenFile file{UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), {}};
  if (file.descriptor.get() < 0 || ::fstat(file.descriptor.get(), &file.status) != 0) {
    const int error = errno;
    const ErrorCode code = error == ENOENT || error == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
    return Fail(code, "cannot read " + path + ": " + std::strerror(error));
  }
  if (!S_ISREG(file.status.st_mode)) return Fail(ErrorCode::kInvalidArgument, path + " is not a regular file");
  return file;
}

Result<std::string> ReadAll(const OpenFile& file, const std::string& path, std::size_t max_bytes) {
  std::string content;
  char buffer[16 * 1024];
  for (;;) {
    const ssize_t got = ::read(file.descriptor.get(), buffer, sizeof buffer);
    if (got == 0) return content;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrorCode::kIo, "cannot read " + path + ": " + std::strerror(errno));
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > max_bytes) return Fail(ErrorCode::kTooLarge, path + " is too large");
  }
}

}  // namespace

Result<std::string> ReadSmallFile(const std::string& path, std::size_t max_bytes) {
  const auto file = TRY(Open(path));
  return ReadAll(file, path, max_bytes);
}

Result<std::string> ReadOwnFile(const std::string& path, std::size_t max_bytes) {
  const auto file = TRY(Open(path));
  const bool own = file.status.st_uid == ::geteuid() || file.status.st_uid == 0;
  if (!own || (file.status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(ErrorCode::kForbidden, path + " can be changed by other users");
  }
  return ReadAll(file, path, max_bytes);
}

Result<std::string> ReadToken(const std::string& path) {
  const auto file = TRY(Open(path));
  if ((file.status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Fail(ErrorCode::kForbidden, "the token file " + path + " can be read by other users; run chmod 600 on it");
  }
  auto content = ReadAll(file, path, kMaxTokenFile);
  if (!content) return content;
  const std::string token(Trimmed(*content));
  const auto visible = [](char c) { return c > ' ' && c < 0x7f; };
  if (token.size() < kMinToken || !std::ranges::all_of(token, visible)) {
    return Fail(ErrorCode::kInvalidArgument,
                "the token in " + path + " must be at least 16 visible ASCII characters without a space");
  }
  return token;
}

namespace {

tl::unexpected<Error> Exists(const std::string& what) { return Fail(Reason::kFileExists, what); }

tl::unexpected<Error> IsThereAlready(const std::string& path) {
  return Exists(path + " is there already (--force replaces it)");
}

// Like ReplaceFile, but never over a file that appeared meanwhile.
Result<void> WriteNewFile(const std::string& path, std::string_view content) {
  const std::string made = TemporaryPath(path);
  const auto file = TRY(Disk().CreateFile(made));
  auto written = file->Append(content)
                     .and_then([&] { return file->Sync(); })
                     .and_then([&] { return file->Close(); })
                     .and_then([&] { return MoveToFreeName(made, path); });
  if (!written) static_cast<void>(Disk().RemoveFile(made));  // every reader ignores leftovers
  return written;
}

}  // namespace

bool LiesIn(const std::string& path, const std::string& folder) {
  const auto resolved = [](const std::string& given) {
    std::error_code failed;
    auto real = std::filesystem::absolute(given + "/", failed);
    if (!failed) real = std::filesystem::weakly_canonical(real, failed);
    return failed ? std::filesystem::path(given) : real;
  };
  const auto below = resolved(path).lexically_relative(resolved(folder));
  return !below.empty() && *below.begin() != "..";
}

Result<void> CheckNothingThere(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  return IsThereAlready(path);
}

Result<void> MoveToFreeName(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return IsThereAlready(to);
  // Not every file system can do this in one step. Other errors come up again here.
  return CheckNothingThere(to).and_then([&] { return Disk().Rename(from, to); });
}

namespace {

// Into what stands at `path`, which stays what it is. `flags`: how it is opened.
Result<void> WriteInto(const std::string& path, std::string_view content, int flags) {
  const auto failed = [&] {
    const std::string why = errno == ENXIO ? "nobody reads from it" : std::strerror(errno);
    return Fail(ErrorCode::kIo, "cannot write to " + path + ": " + why);
  };
  // O_NONBLOCK: a fifo without a reader must fail, not wait. What it cannot take at once is then waited for.
  UniqueFd file(::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
  if (file.get() < 0 || ::fcntl(file.get(), F_SETFL, flags & O_APPEND) != 0) return failed();
  while (!content.empty()) {
    const ssize_t wrote = ::write(file.get(), content.data(), content.size());
    if (wrote < 0 && errno != EINTR) return failed();
    content.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(wrote, 0)));
  }
  if (::fsync(file.get()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS) return failed();
  return ::close(file.Release()) == 0 ? Result<void>() : failed();
}

}  // namespace

std::string PlaceOfOutput(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;
  fs::path place = FullPath(path);
  std::error_code failed;
  for (int i = 0; i < kMostLinks && fs::is_symlink(place, failed); ++i) {
    place = place.parent_path() / fs::read_symlink(place, failed);
  }
  return Resolved(place).string();
}

Result<void> WriteOutputFile(const std::string& given, std::string_view content, bool replace) {
  struct stat status {};
  const bool is_there = ::stat(given.c_str(), &status) == 0;
  if (is_there && S_ISDIR(status.st_mode)) return Exists(given + " is a folder");
  // Checked before anything is written, and again in the last step.
  if (auto free = CheckNothingThere(given); !free && !replace) return free;
  std::error_code none;
  const bool is_link = std::filesystem::is_symlink(given, none);
  // A link may lead to nothing, or to a file that this process has open as /dev/stdout.
  const bool is_device = given.starts_with("/dev/") && !given.starts_with("/dev/shm/");
  const bool is_open = is_device || given.starts_with("/proc/");
  if (is_there ? !S_ISREG(status.st_mode) || is_open : is_link) {
    return WriteInto(given, content, is_open ? O_APPEND : O_CREAT | O_TRUNC);
  }
  const std::string path = is_link ? std::filesystem::canonical(given, none).string() : given;
  auto written = replace ? ReplaceFile(Disk(), path, content) : WriteNewFile(path, content);
  if (written) written = Disk().SyncDirectory(ParentDirectory(path));
  if (!written && IsNotFound(written.error())) {
    return Fail(ErrorCode::kNotFound, "there is no folder " + ParentDirectory(path));
  }
  return written;
}

}  // namespace reprise
