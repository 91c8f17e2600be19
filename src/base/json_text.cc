#include "base/json_text.h"

#include <algorithm>

namespace reprise {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The length of the string that `json` begins with, quotes included.
std::size_t StringLength(std::string_view json) {
  std::size_t at = 1;
  while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
  return std::min(at + 1, json.size());
}

}  // namespace

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
