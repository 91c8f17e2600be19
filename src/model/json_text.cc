#include "model/json_text.h"

#include <charconv>

namespace reprise {
namespace {

constexpr std::size_t kEscapeLength = 6;  // \uXXXX

// The code unit of a \uXXXX at `at`, or -1.
int CodeUnitAt(std::string_view json, std::size_t at) {
  if (at + kEscapeLength > json.size() || json[at] != '\\' || json[at + 1] != 'u') return -1;
  int unit = 0;
  const char* const first = json.data() + at + 2;
  const auto [end, error] = std::from_chars(first, first + 4, unit, 16);
  return error == std::errc() && end == first + 4 ? unit : -1;
}

bool IsHighSurrogate(int unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowSurrogate(int unit) { return unit >= 0xDC00 && unit < 0xE000; }

}  // namespace

bool HasSurrogateEscape(std::string_view json) {
  for (std::size_t at = json.find('\\'); at != std::string_view::npos && at + 2 < json.size();
       at = json.find('\\', at + 2)) {
    if (json[at + 1] == 'u' && (json[at + 2] == 'd' || json[at + 2] == 'D')) return true;
  }
  return false;
}

std::string MendSurrogateEscapes(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  std::size_t from = 0;
  std::size_t at = json.find('\\');
  while (at != std::string_view::npos) {
    std::size_t next = at + 2;  // over a simple escape, \\ included
    const int unit = CodeUnitAt(json, at);
    if (unit >= 0) next = at + kEscapeLength;
    if (IsHighSurrogate(unit) && IsLowSurrogate(CodeUnitAt(json, next))) {
      next += kEscapeLength;
    } else if (IsHighSurrogate(unit) || IsLowSurrogate(unit)) {
      out += json.substr(from, at - from);
      out += "\\ufffd";
      from = next;
    }
    at = json.find('\\', next);
  }
  out += json.substr(from);
  return out;
}

bool HasNoNumber(std::string_view json) {
  return json.find("NaN") != std::string_view::npos || json.find("Infinity") != std::string_view::npos;
}

std::string MendNoNumbers(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  bool in_string = false;
  for (std::size_t at = 0; at < json.size();) {
    std::size_t length = 0;
    for (const std::string_view word : {"NaN", "-Infinity", "Infinity"}) {
      if (!in_string && json.substr(at).starts_with(word)) length = word.size();
    }
    if (length > 0) {
      out += "null";
      at += length;
      continue;
    }
    const std::size_t size = in_string && json[at] == '\\' ? 2 : 1;
    if (json[at] == '"') in_string = !in_string;
    out += json.substr(at, size);
    at += size;
  }
  return out;
}

}  // namespace reprise
