#include "base/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/hidden_characters.h"

namespace reprise {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto created = std::make_shared<spdlog::logger>("reprise", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
    created->flush_on(spdlog::level::trace);
    return created;
  }();
  return *logger;
}

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Quotes a logfmt value, so that no value can forge a line or a field, nor steer the terminal that shows it.
void AppendQuoted(std::string& line, std::string_view value) {
  line += '"';
  for (const char c : VisibleOnOneLine(value)) {
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  line += '"';
}

}  // namespace

void SetLogLevel(LogLevel level) { Logger().set_level(ToSpdlog(level)); }

void Log(LogLevel level, std::string_view message, LogFields fields) {
  if (!Logger().should_log(ToSpdlog(level))) return;
  std::string line = "msg=";
  AppendQuoted(line, message);
  for (const auto& [key, value] : fields) {
    line.append(" ").append(key).append("=");
    AppendQuoted(line, value);
  }
  Logger().log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace reprise
