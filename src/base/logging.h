#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace reprise {

// Structured log lines on stderr: time, level, message and key=value fields (logfmt). Thread-safe. Never pass secrets
// or user text.
enum class LogLevel { kDebug, kInfo, kWarning, kError };
using LogFields = std::initializer_list<std::pair<std::string_view, std::string>>;

void SetLogLevel(LogLevel level);
void Log(LogLevel level, std::string_view message, LogFields fields = {});
inline void LogInfo(std::string_view message, LogFields fields = {}) { Log(LogLevel::kInfo, message, fields); }
inline void LogWarning(std::string_view message, LogFields fields = {}) { Log(LogLevel::kWarning, message, fields); }
inline void LogError(std::string_view message, LogFields fields = {}) { Log(LogLevel::kError, message, fields); }

}  // namespace reprise
