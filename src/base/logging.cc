#include "base/logging.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "base/terminal_text.h"
#include "base/try.h"

namespace reprise {

namespace {

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

// True for nearly every text, which saves the slow path.
bool IsPrintableAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

// A text on one line without hidden characters needs the same escapes in JSON and logfmt.
void AppendQuoted(std::string& line, std::string_view text) {
  line += '"';
  const std::string visible = IsPrintableAscii(text) ? std::string() : VisibleOnOneLine(text);
  for (const char c : visible.empty() ? text : std::string_view(visible)) {
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  line += '"';
}

template <typename... Format>
void AppendNumber(std::string& line, Format... number) {
  char digits[340];  // the longest double has 309 before its point
  line.append(digits, std::to_chars(digits, digits + sizeof digits, number...).ptr);
}

}  // namespace

void LogValue::AppendTo(std::string& line) const {
  const auto append = [&line](auto value) {
    using T = decltype(value);
    if constexpr (std::is_same_v<T, std::string_view>) {
      AppendQuoted(line, value);
    } else if constexpr (std::is_same_v<T, bool>) {
      line += value ? "true" : "false";
    } else if constexpr (std::is_same_v<T, double>) {
      AppendNumber(line, value, std::chars_format::fixed, /*decimals=*/3);
    } else {
      AppendNumber(line, value);
    }
  };
  std::visit(append, value_);
}

std::string LogLine(LogFormat format, Timestamp at, LogLevel level, std::string_view message, LogFields fields) {
  const bool json = format == LogFormat::kJson;
  std::string line;
  line.reserve(256);
  line.append(json ? R"({"at":")" : "time=").append(FormatTimestamp(at));
  line.append(json ? R"(","level":")" : " level=").append(LevelName(level));
  line += json ? R"(","message":)" : " msg=";
  AppendQuoted(line, message);
  for (const LogField& field : fields) {
    line.append(json ? ",\"" : " ").append(field.name).append(json ? "\":" : "=");
    field.value.AppendTo(line);
  }
  line += json ? "}\n" : "\n";
  return line;
}

namespace {

bool IsRegularFile(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

LogOutput::LogOutput(int fd, std::function<std::string(std::uint64_t)> left_out)
    : left_out_line_(std::move(left_out)), fd_(fd), is_file_(IsRegularFile(fd)) {}

void LogOutput::MoveTo(UniqueFd file) {
  const MutexLock lock(mutex_);
  file_ = std::move(file);
  fd_ = file_.get();
  is_file_ = IsRegularFile(fd_);
  cut_off_ = false;
}

void LogOutput::Write(std::string_view line, std::chrono::milliseconds patience) {
  const MutexLock lock(mutex_);
  const bool written = HasRoom(left_out_ > 0 ? std::chrono::milliseconds(0) : patience) && TellLeftOut() && Put(line);
  if (!written) ++left_out_;
}

// A descriptor that polls as writable takes PIPE_BUF bytes without blocking, unless another process fills it first. A
// failed poll counts as room because the write will report the error.
bool LogOutput::HasRoom(std::chrono::milliseconds patience) const {
  if (is_file_) return true;
  pollfd wanted{.fd = fd_, .events = POLLOUT, .revents = 0};
  return ::poll(&wanted, 1, static_cast<int>(patience.count())) > 0;
}

// Returns whether there is room for more.
bool LogOutput::TellLeftOut() {
  if (left_out_ == 0) return true;
  if (!Put(left_out_line_(left_out_))) return false;
  left_out_ = 0;
  return HasRoom(std::chrono::milliseconds(0));
}

bool LogOutput::Put(std::string_view line) {
  const std::string rest_of_last = cut_off_ ? "\n" + std::string(line) : std::string();
  if (cut_off_) line = rest_of_last;
  // In a file a line is one write, so that two servers can append to the same.
  const std::size_t most = is_file_ ? line.size() : PIPE_BUF;
  for (std::size_t done = 0; done < line.size();) {
    if (done > 0 && !HasRoom(std::chrono::milliseconds(0))) return cut_off_ = true, false;
    const ssize_t put = ::write(fd_, line.data() + done, std::min(line.size() - done, most));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return cut_off_ = cut_off_ || done > 0, false;
    done += static_cast<std::size_t>(put);
  }
  cut_off_ = false;
  return true;
}

Result<UniqueFd> OpenLogFile(const std::string& path) {
  const auto refuse = [&path](ErrorCode code, const std::string& why) {
    return Fail(code, "the log file " + path + " " + why);
  };
  // O_NONBLOCK: a fifo must be refused, not waited for.
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  UniqueFd file(::open(path.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (!file && errno == ELOOP) {
    return refuse(ErrorCode::kForbidden, "is a symbolic link; name the file that it leads to");
  }
  if (!file && errno == ENXIO) return refuse(ErrorCode::kForbidden, "is not a regular file");
  if (!file) return refuse(ErrorCode::kIo, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    return refuse(ErrorCode::kIo, std::string("cannot be opened: ") + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) return refuse(ErrorCode::kForbidden, "is not a regular file");
  if (status.st_uid != ::geteuid()) return refuse(ErrorCode::kForbidden, "belongs to another user");
  if (status.st_nlink > 1) return refuse(ErrorCode::kForbidden, "has a second name (a hard link); name another file");
  if (::fchmod(file.get(), S_IRUSR | S_IWUSR) != 0) {
    return refuse(ErrorCode::kIo, std::string("cannot be made private: ") + std::strerror(errno));
  }
  return file;
}

namespace {

// How long a warning or an error waits for a slow reader.
constexpr std::chrono::milliseconds kPatience{100};

std::atomic<LogLevel> lowest_level{LogLevel::kInfo};
std::atomic<LogFormat> line_format{LogFormat::kText};
std::atomic<LogGuard> line_guard{nullptr};

std::string LeftOutLine(std::uint64_t lines) {
  return LogLine(line_format.load(), Now(), LogLevel::kWarning, "log lines were left out: nobody took them",
                 {{"lines", lines}});
}

LogOutput& Output() {
  static auto* const output = new LogOutput(STDERR_FILENO, LeftOutLine);  // never destroyed: threads may log to the end
  return *output;
}

}  // namespace

void SetLogLevel(LogLevel level) { lowest_level.store(level); }
void SetLogFormat(LogFormat format) { line_format.store(format); }
void SetLogGuard(LogGuard guard) { line_guard.store(guard); }

Result<void> LogToFile(const std::string& path) {
  auto file = TRY(OpenLogFile(path));
  Output().MoveTo(std::move(file));
  return {};
}

bool IsLogged(LogLevel level) { return level >= lowest_level.load(std::memory_order_relaxed); }

void Log(LogLevel level, std::string_view message, LogFields fields) {
  if (!IsLogged(level)) return;
  const auto patience = level >= LogLevel::kWarning ? kPatience : std::chrono::milliseconds(0);
  const LogGuard guard = line_guard.load(std::memory_order_relaxed);
  try {
    const std::shared_ptr<void> held = guard == nullptr ? nullptr : guard();
    Output().Write(LogLine(line_format.load(std::memory_order_relaxed), Now(), level, message, fields), patience);
  } catch (const std::bad_alloc&) {  // the caller goes on without the line
  }
}

}  // namespace reprise
