#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

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

}  // namespace reprise
