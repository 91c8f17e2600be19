#include "base/log_line.h"

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "base/hidden_characters.h"

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

// Nearly every text is: it need not be looked at character by character.
bool IsPrintableAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

// What is on one line and has nothing hidden in it needs no other escape in JSON than in logfmt.
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
  char digits[340];  // the longest double has 309 in front of its point
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

}  // namespace reprise
