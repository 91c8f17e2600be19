#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/log_line.h"
#include "reprise/result.h"

namespace reprise {

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

}  // namespace reprise
