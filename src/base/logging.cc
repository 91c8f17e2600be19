#include "base/logging.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <utility>

#include "base/log_output.h"
#include "base/try.h"

namespace reprise {
namespace {

// How long a warning or an error waits for a reader who is merely slow.
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
  } catch (const std::bad_alloc&) {  // who logs goes on without the line
  }
}

}  // namespace reprise
