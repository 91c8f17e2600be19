#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace reprise {

// True if the JSON text may hold an escaped half of a surrogate pair (a cheap test; most texts have none).
bool HasSurrogateEscape(std::string_view json);

// The JSON text with each escaped surrogate that has no partner (\ud800) replaced by \ufffd. Models that are cut
// between two tokens of an emoji write such halves, and JSON parsers refuse them or pass on bytes that are not UTF-8.
std::string MendSurrogateEscapes(std::string_view json);

// What programs write that is almost JSON, as JSON; nullopt if there is nothing to mend. Halves of surrogate pairs
// become U+FFFD, control characters in strings are escaped, NaN and Infinity become null, and a number that no number
// of ours can hold becomes a string with its digits.
std::optional<std::string> MendJson(std::string_view json);

// JSON text without much white space between its tokens: what is more than a line end and an indent becomes one space,
// so that nothing is pushed out of sight. All else stays as it is, numbers too. REQUIRES: `json` is JSON.
std::string WithoutGaps(std::string_view json);
// Whether a number in it has more digits than readers keep who read numbers as IEEE doubles. REQUIRES: `json` is JSON.
bool HasLongNumber(std::string_view json);

}  // namespace reprise
