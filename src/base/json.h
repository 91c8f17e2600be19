#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// Members keep the order they were given, so that files and events read as documented. (A library that wants a plain
// nlohmann::json, such as valijson's adapter, gets one by conversion.)
using Json = nlohmann::ordered_json;

// Limits of JSON that comes from outside (DESIGN section 9).
inline constexpr int kMaxJsonDepth = 64;

// Parses UTF-8 JSON no deeper than `max_depth`. Never throws. kInvalidArgument with reason "invalid_json", "too_deep"
// or "invalid_utf8"; the message holds no part of the input.
Result<Json> ParseJson(std::string_view text, int max_depth = kMaxJsonDepth);

// Compact text. Never throws: bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& value);
// The same with an indent of two, for people.
std::string DumpJsonPretty(const Json& value);

// Appends `text` to `out` as the inside of a JSON string literal (without the quotes), with the control characters,
// '"' and '\\' escaped and everything else as it is. REQUIRES: `text` is UTF-8.
void AppendJsonEscaped(std::string& out, std::string_view text);

}  // namespace reprise
