#include "store/directory_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/system_error.h"
#include "base/unique_fd.h"

namespace reprise {
namespace {

tl::unexpected<Error> FailErrno(const std::string& path) {
  return Fail(SystemError(errno, path, "the data folder cannot be locked"));
}

// "PID\nURL\n" or a part of it; a URL of ours is far shorter.
constexpr std::size_t kMaxText = 512;

std::string ReadText(int fd) {
  std::array<char, kMaxText> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string PidIn(const std::string& text) {
  return {text.begin(), std::find_if_not(text.begin(), text.end(), IsDigit)};
}

// Empty if there is no whole line of one.
std::string UrlIn(const std::string& text) {
  const std::size_t begin = PidIn(text).size() + 1;
  const std::size_t end = text.find('\n', std::min(begin, text.size()));
  if (begin > text.size() || text[begin - 1] != '\n' || end == std::string::npos) return {};
  std::string url = text.substr(begin, end - begin);
  const bool plain = std::all_of(url.begin(), url.end(), [](char c) { return c > ' ' && c <= '~'; });
  return plain && url.starts_with("http://") ? url : std::string();
}

Error Locked(int fd, const std::string& path) {
  const std::string pid = PidIn(ReadText(fd));
  return Error{.code = ErrorCode::kConflict,
               .reason = "store_locked",
               .message = "another server" + (pid.empty() ? "" : " (process " + pid + ")") + " uses this data folder",
               .detail = path};
}

// Whether this is a lock file, and no other file that has got its name (a hard link, perhaps): what it holds would be
// lost.
bool IsLockFile(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != 1) return false;
  const std::string text = ReadText(fd);
  if (static_cast<off_t>(text.size()) != status.st_size) return false;
  const std::string url = UrlIn(text);
  const std::string rest = text.substr(0, text.size() - (url.empty() ? 0 : url.size() + 1));
  return std::all_of(rest.begin(), rest.end(), [](char c) { return IsDigit(c) || c == '\n'; });
}

// For people and clients only: the lock does not depend on it, so a full disk must not keep the server from starting.
void WriteText(int fd, const std::string& text) {
  const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
  [[maybe_unused]] const int cut = ::ftruncate(fd, std::max<ssize_t>(written, 0));
}

std::string OwnPid() { return std::to_string(::getpid()) + "\n"; }

// Also if somebody only asks at this moment whether the lock is held (FindHolder), which takes it for that long
// together with others who ask. On a busy machine whoever asks may be kept from going on for a while.
bool TakeLock(int fd) {
  constexpr std::chrono::seconds kPatience{2};
  constexpr std::chrono::microseconds kPause{100};
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK || ::flock(fd, LOCK_SH | LOCK_NB) != 0) return false;
    ::flock(fd, LOCK_UN);
    if (std::chrono::steady_clock::now() > until) break;
    std::this_thread::sleep_for(kPause);
  }
  errno = EWOULDBLOCK;
  return false;
}

// Beside the lock itself: a lock on one byte, held while the file does not say whether there is a server and where.
// What asks may hold it for a moment; then the change is not told, and who waits finds the old text.
constexpr off_t kSettling = 0;

int ByteLock(int fd, int command, short type) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = kSettling;
  range.l_len = 1;
  return ::fcntl(fd, command, &range);
}

extern "C" void NothingAtAll(int) {}

// Calls `lock`, which waits in the kernel without a limit, until it is done (true) or the time is up: a signal to this
// thread ends the call.
template <typename Lock>
bool DoneBy(DirectoryLock::Clock::time_point deadline, Lock lock) {
  struct sigaction act {
  }, before{};
  act.sa_handler = NothingAtAll;  // without SA_RESTART
  ::sigaction(SIGALRM, &act, &before);
  sigset_t alarm, mask;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  ::pthread_sigmask(SIG_UNBLOCK, &alarm, &mask);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGALRM;
  event._sigev_un._tid = ::gettid();
  timer_t timer{};
  bool done = false;
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) {
    const auto left =
        std::max(std::chrono::nanoseconds(1),
                 std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - DirectoryLock::Clock::now()));
    // Again and again: the first may come before the call has begun.
    const itimerspec times{
        .it_interval = {.tv_sec = 0, .tv_nsec = 10'000'000},
        .it_value = {.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000}};
    ::timer_settime(timer, 0, &times, nullptr);
    int failed = 0;
    do {
      failed = lock();
    } while (failed != 0 && errno == EINTR && DirectoryLock::Clock::now() < deadline);
    done = failed == 0;
    ::timer_delete(timer);
  }
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  return done;
}

UniqueFd OpenToAsk(const std::string& lock_file) {
  return UniqueFd(::open(lock_file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace

bool DirectoryLock::AwaitSettled(const std::string& lock_file, Clock::time_point deadline) {
  const UniqueFd file = OpenToAsk(lock_file);
  return !file || DoneBy(deadline, [&] { return ByteLock(file.get(), F_OFD_SETLKW, F_RDLCK); });
}

bool DirectoryLock::AwaitRelease(const std::string& lock_file, Clock::time_point deadline) {
  const UniqueFd file = OpenToAsk(lock_file);
  return !file || DoneBy(deadline, [&] { return ::flock(file.get(), LOCK_SH); });
}

Result<std::unique_ptr<DirectoryLock>> DirectoryLock::Acquire(const std::string& lock_file) {
  UniqueFd file(::open(lock_file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!file) return FailErrno(lock_file);
  const int fd = file.get();
  std::unique_ptr<DirectoryLock> lock(new DirectoryLock(std::move(file)));
  if (!TakeLock(fd)) {
    if (errno == EWOULDBLOCK) return Fail(Locked(fd, lock_file));
    return FailErrno(lock_file);
  }
  if (!IsLockFile(fd)) return lock;
  lock->is_lock_file_ = true;
  if (::fchmod(fd, 0600) != 0) return FailErrno(lock_file);
  ByteLock(fd, F_OFD_SETLK, F_WRLCK);
  WriteText(fd, OwnPid());
  return lock;
}

Result<std::optional<DirectoryLock::Holder>> DirectoryLock::FindHolder(const std::string& lock_file) {
  const UniqueFd file = OpenToAsk(lock_file);
  if (file.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
  struct stat status {};
  if (file.get() < 0 && errno != ELOOP) return FailErrno(lock_file);
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Fail(Error{.code = ErrorCode::kCorruption,
                      .reason = "integrity_missing",
                      .message = "something that is no file is in the place of the data folder's lock",
                      .detail = lock_file});
  }
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  if (errno != EWOULDBLOCK) return FailErrno(lock_file);
  const std::string text = ReadText(file.get());
  return Holder{.pid = PidIn(text), .url = UrlIn(text)};
}

void DirectoryLock::NoteUrl(std::string_view url) {
  if (!is_lock_file_) return;
  WriteText(fd_.get(), OwnPid() + std::string(url) + "\n");
  ByteLock(fd_.get(), F_OFD_SETLK, F_UNLCK);
}

DirectoryLock::~DirectoryLock() {
  if (!is_lock_file_) return;
  ByteLock(fd_.get(), F_OFD_SETLK, F_WRLCK);
  WriteText(fd_.get(), OwnPid());  // nobody listens there any more
}

}  // namespace reprise
