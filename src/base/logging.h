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

// What a field says: a text, a number, or yes and no. It borrows the text, which so must outlive the call that logs it;
// what is made for that call's arguments does.
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

  // Appends it as logfmt and as JSON, which are the same here.
  void AppendTo(std::string& line) const;

 private:
  std::variant<std::string_view, bool, std::int64_t, std::uint64_t, double> value_;
};

// `name` is plain ASCII, and none of what every line has: time, at, level, msg, message.
struct LogField {
  std::string_view name;
  LogValue value;
};
using LogFields = std::initializer_list<LogField>;

// One line with its line feed:
//   time=2026-01-31T09:30:00.000Z level=info msg="request" method="GET" status=200
//   {"at":"2026-01-31T09:30:00.000Z","level":"info","message":"request","method":"GET","status":200}
// No text in it can forge a line or a field, nor steer the terminal that shows it: see VisibleOnOneLine.
std::string LogLine(LogFormat format, Timestamp at, LogLevel level, std::string_view message, LogFields fields);

// Where log lines go, one system call each. Thread-safe.
//
// A pipe that nobody reads, or a terminal that stands still, must not hold up the threads that log: what it does not
// take is left out, and how many lines that were is told as soon as it takes some again. The same if a disk is full.
class LogOutput {
 public:
  // `fd` is not owned. `left_out` makes the line that tells how many are missing.
  LogOutput(int fd, std::function<std::string(std::uint64_t lines)> left_out);

  // From now on to this file.
  void MoveTo(UniqueFd file);

  // Writes a line (with its line feed). If there is no room for it waits so long for some, unless a line was left out
  // already: who does not read is waited for once.
  void Write(std::string_view line, std::chrono::milliseconds patience);

 private:
  bool HasRoom(std::chrono::milliseconds patience) const REQUIRES(mutex_);
  bool TellLeftOut() REQUIRES(mutex_);
  bool Put(std::string_view line) REQUIRES(mutex_);

  const std::function<std::string(std::uint64_t)> left_out_line_;

  Mutex mutex_;
  UniqueFd file_ GUARDED_BY(mutex_);
  int fd_ GUARDED_BY(mutex_);
  bool is_file_ GUARDED_BY(mutex_);                // a write to one waits for nobody
  bool cut_off_ GUARDED_BY(mutex_) = false;        // the last line has no end
  std::uint64_t left_out_ GUARDED_BY(mutex_) = 0;  // lines since the last one that was written
};

// Opens a file to append log lines to, and makes it if it is not there: a regular file of this user alone, mode 0600,
// that is no symbolic link and has no second name, so that no line ends up in another file. kForbidden otherwise; kIo.
// The message names the file, since it is for the person at the terminal.
Result<UniqueFd> OpenLogFile(const std::string& path);

// Structured log lines, on stderr unless a file is named. Thread-safe. Never pass secrets or user text.
//
// Whoever logs writes the line itself, and waits for no reader: see LogOutput. A line that is not wanted costs a
// comparison; where its fields cost something, ask IsLogged first. One for which no memory is left is left out.
void SetLogLevel(LogLevel level);
void SetLogFormat(LogFormat format);
// From now on to the end of this file (see OpenLogFile). Again with the same path: it was renamed meanwhile, and is
// made anew. If it fails all goes on as before.
Result<void> LogToFile(const std::string& path);

// Called before each line is written; what it returns lives until that is done. For a program that draws on the
// terminal that the lines go to. Null: none, as at the start.
using LogGuard = std::shared_ptr<void> (*)();
void SetLogGuard(LogGuard guard);

bool IsLogged(LogLevel level);
void Log(LogLevel level, std::string_view message, LogFields fields = {});
inline void LogInfo(std::string_view message, LogFields fields = {}) { Log(LogLevel::kInfo, message, fields); }
inline void LogWarning(std::string_view message, LogFields fields = {}) { Log(LogLevel::kWarning, message, fields); }
inline void LogError(std::string_view message, LogFields fields = {}) { Log(LogLevel::kError, message, fields); }

// Calls foreign work from a thread that must not end with it: what is thrown, of whatever type, is logged as a fault of
// `whose` and goes no further. True: nothing was thrown.
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
