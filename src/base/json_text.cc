#include "base/json_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

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

bool IsWordCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' || c == '.';
}

template <typename Number>
bool IsOutOfRange(std::string_view text) {
  Number number{};
  return std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc::result_out_of_range;
}

// What stands for a number or a name outside of strings; empty: it is fine, or past mending.
std::string MendedWord(std::string_view word) {
  static constexpr std::array<std::string_view, 8> kNoNumbers = {"NaN",       "-NaN", "nan",  "Infinity",
                                                                 "-Infinity", "inf",  "-inf", "undefined"};
  if (std::find(kNoNumbers.begin(), kNoNumbers.end(), word) != kNoNumbers.end()) return "null";
  const bool is_negative = word.front() == '-';
  const std::string_view digits = word.substr(is_negative ? 1 : 0);
  const bool is_whole = digits.find_first_not_of("0123456789") == std::string_view::npos;
  const bool is_too_large = !is_whole     ? IsOutOfRange<double>(word)
                            : is_negative ? IsOutOfRange<std::int64_t>(word)
                                          : IsOutOfRange<std::uint64_t>(word);
  return is_too_large ? '"' + std::string(word) + '"' : "";
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The length of the string that `json` begins with, quotes included.
std::size_t StringLength(std::string_view json) {
  std::size_t at = 1;
  while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
  return std::min(at + 1, json.size());
}

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

std::optional<std::string> MendJson(std::string_view json) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string halves_mended;
  if (HasSurrogateEscape(json)) halves_mended = MendSurrogateEscapes(json);
  const bool has_halves = !halves_mended.empty() && halves_mended != json;
  if (has_halves) json = halves_mended;
  std::string out;
  std::size_t from = 0;
  const auto replace = [&](std::size_t begin, std::size_t end, std::string_view by) {
    out += json.substr(from, begin - from);
    out += by;
    from = end;
  };
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (json[at] == '"') {
      for (++at; at < json.size() && json[at] != '"'; ++at) {
        const auto byte = static_cast<unsigned char>(json[at]);
        if (byte == '\\') ++at;
        if (byte < 0x20) replace(at, at + 1, std::string("\\u00") + kHex[byte >> 4] + kHex[byte & 15]);
      }
    } else if (IsWordCharacter(json[at])) {
      const std::size_t begin = at;
      while (at < json.size() && IsWordCharacter(json[at])) ++at;
      if (const std::string mended = MendedWord(json.substr(begin, at - begin)); !mended.empty()) {
        replace(begin, at, mended);
      }
      --at;  // what ended the word is looked at by itself
    }
  }
  if (from == 0) return has_halves ? std::optional(std::move(halves_mended)) : std::nullopt;
  out += json.substr(from);
  return out;
}

std::string WithoutGaps(std::string_view json) {
  constexpr std::ptrdiff_t kLongest = 80;
  std::string out;
  while (!json.empty()) {
    std::size_t length = 1;
    if (json[0] == '"') {
      length = StringLength(json);
      out += json.substr(0, length);
    } else if (IsSpace(json[0])) {
      const auto end = std::find_if_not(json.begin(), json.end(), IsSpace);
      length = static_cast<std::size_t>(end - json.begin());
      const bool is_gap = end - json.begin() > kLongest || std::count(json.begin(), end, '\n') > 1;
      is_gap ? void(out += ' ') : void(out.append(json.begin(), end));
    } else {
      out += json[0];
    }
    json.remove_prefix(length);
  }
  return out;
}

bool HasLongNumber(std::string_view json) {
  constexpr std::ptrdiff_t kExactDigits = 15;  // of a double
  while (!json.empty()) {
    const auto end =
        std::find_if_not(json.begin(), json.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
    if (std::count_if(json.begin(), end, [](char c) { return c != '.'; }) > kExactDigits) return true;
    const auto length = static_cast<std::size_t>(end - json.begin());
    json.remove_prefix(length > 0 ? length : json[0] == '"' ? StringLength(json) : 1);
  }
  return false;
}

}  // namespace reprise
