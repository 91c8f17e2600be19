#pragma once

#include <string>
#include <string_view>

namespace reprise {

// True if the JSON text may hold an escaped half of a surrogate pair (a cheap test; most texts have none).
bool HasSurrogateEscape(std::string_view json);

// The JSON text with each escaped surrogate that has no partner (\ud800) replaced by \ufffd. Models that are cut
// between two tokens of an emoji write such halves, and JSON parsers refuse them or pass on bytes that are not UTF-8.
std::string MendSurrogateEscapes(std::string_view json);

// True if the JSON text may hold a NaN or an Infinity, which Python writes and JSON does not have.
bool HasNoNumber(std::string_view json);

// The JSON text with null in place of each.
std::string MendNoNumbers(std::string_view json);

}  // namespace reprise
