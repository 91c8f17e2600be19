#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/mutex.h"
#include "base/system.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// A field's value: text, number or bool. It borrows the text, which must outlive the logging call; a temporary in that
// call's arguments does.
class LogValue {
 public:
  LogValue(std::string_view text) : value_(text) {}
  LogValue(const std::string& text) : value_(std::string_view(text)) {}
  LogValue(const char* text) : value_(std::string_view(text)) {}
  LogValue(bool value) : value_(value) {}
  template <std::signed_integral T>
  LogValue(T number) : value_(static_cast<std::int64_t>(number)) {}
  template <std::unsigned_integral T>
  LogValue(T number) : value_(static_cast<std::uint64_t>(number)) {}
  LogValue(double number) : value_(number) {}  // shown with three decimals. REQUIRES: it is finite

  // Appends it in the form that logfmt and JSON share.
  void AppendTo(std::string& line) const;

 private:
  std::variant<std::string_view, bool, std::int64_t, std::uint64_t, double> value_;
};

// `name` is plain ASCII and none of the names that every line has: time, at, level, msg, message.
struct LogField {
  std::string_view name;
  LogValue value;
};
using LogFields = std::initializer_list<LogField>;

// One line with its line feed:
//   time=2026-01-31T09:30:00.000Z level=info msg="request" method="GET" status=200
//   {"at":"2026-01-31T09:30:00.000Z","level":"info","message":"request","method":"GET","status":200}
// No text in it can forge a line or a field, or steer the terminal that shows it; see VisibleOnOneLine.
std::string LogLine(LogFormat format, Timestamp at, LogLevel level, std::string_view message, LogFields fields);

// Where log lines go, one system call each. Thread-safe.
//
// A pipe without a reader or a stopped terminal must not block the threads that log. Lines that find no room are
// dropped, and their number is logged as soon as there is room again. A full disk is treated alike.
class LogOutput {
 public:
  // `fd` is not owned. `left_out` makes the line that reports how many lines were dropped.
  LogOutput(int fd, std::function<std::string(std::uint64_t lines)> left_out);

  // Continues in this file.
  void MoveTo(UniqueFd file);

  // Writes a line (with its line feed). Waits up to `patience` for room, but not if lines have already been dropped, so
  // a stuck reader costs one wait.
  void Write(std::string_view line, std::chrono::milliseconds patience);

 private:
  bool HasRoom(std::chrono::milliseconds patience) const REQUIRES(mutex_);
  bool TellLeftOut() REQUIRES(mutex_);
  bool Put(std::string_view line) REQUIRES(mutex_);

  const std::function<std::string(std::uint64_t)> left_out_line_;

  Mutex mutex_;
  UniqueFd file_ GUARDED_BY(mutex_);
  int fd_ GUARDED_BY(mutex_);
  bool is_file_ GUARDED_BY(mutex_);                // a write to a file never blocks
  bool cut_off_ GUARDED_BY(mutex_) = false;        // the last line was written only in part
  std::uint64_t left_out_ GUARDED_BY(mutex_) = 0;  // lines dropped since the last one written
};

// Opens or creates a file to append log lines to. It must be a regular file of this user, neither a symbolic link nor
// hard-linked, so that no line ends up in another file (else kForbidden), and gets mode 0600. kIo. The message names
// the file for the person at the terminal.
Result<UniqueFd> OpenLogFile(const std::string& path);

// Structured log lines, on stderr unless a file is named. Thread-safe. Never pass secrets or user text.
//
// The logging thread writes the line itself and does not wait for a reader (see LogOutput). An unwanted line costs one
// comparison; call IsLogged first if its fields are expensive. A line is dropped if there is no memory for it.
void SetLogLevel(LogLevel level);
void SetLogFormat(LogFormat format);
// Appends to this file from now on (see OpenLogFile). A second call with the same path opens a new file after the old
// one was renamed. A failure changes nothing.
Result<void> LogToFile(const std::string& path);

// Called before each line is written; its result lives until the line is out. For a program that draws on the same
// terminal. Null, the default, is no guard.
using LogGuard = std::shared_ptr<void> (*)();
void SetLogGuard(LogGuard guard);

bool IsLogged(LogLevel level);
void Log(LogLevel level, std::string_view message, LogFields fields = {});
inline void LogInfo(std::string_view message, LogFields fields = {}) { Log(LogLevel::kInfo, message, fields); }
inline void LogWarning(std::string_view message, LogFields fields = {}) { Log(LogLevel::kWarning, message, fields); }
inline void LogError(std::string_view message, LogFields fields = {}) { Log(LogLevel::kError, message, fields); }

// Runs foreign work on a thread that must survive it: an exception of any type is logged as a fault of `whose` and
// swallowed. True if nothing was thrown.
template <typename Work>
bool Guarded(std::string_view whose, Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::exception& error) {
    LogError("an exception was thrown where none may be", {{"by", whose}, {"what", error.what()}});
  } catch (...) {
    LogError("an exception was thrown where none may be", {{"by", whose}});
  }
  return false;
}

}  // namespace reprise
