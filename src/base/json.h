#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// Members keep the order they were given, so that files and events read as documented. (A library that wants a plain
// nlohmann::json, such as valijson's adapter, gets one by conversion.)
using Json = nlohmann::ordered_json;

// Limits of JSON that comes from outside (DESIGN section 9).
inline constexpr int kMaxJsonDepth = 64;

// What a member is that an object has twice (its name may be written in two ways, such as "a" and "\u0061"). Readers
// differ in which of the two counts, so that a person may be shown one and the other be obeyed.
enum class DuplicateMembers {
  kRefused,
  kLastWins,  // of what a provider says, which nobody but us reads, and to find out whose message was refused
};

// Parses UTF-8 JSON no deeper than `max_depth`, in time that grows linearly with the text. Never throws.
// kInvalidArgument with reason "invalid_json", "too_deep", "invalid_utf8" or "duplicate_member"; the message holds no
// part of the input but the name of a member that comes twice, if that is a short plain one.
Result<Json> ParseJson(std::string_view text, int max_depth = kMaxJsonDepth,
                       DuplicateMembers duplicates = DuplicateMembers::kRefused);
// The same for a text that people write, which may have comments. The message says what the text is ("is not valid JSON
// (line 3)").
Result<Json> ParseJsonWithComments(std::string_view text);

// The value of a member as it is written in `object`, with the name `name` written in any way; empty if there is none.
// REQUIRES: ParseJson takes `object` as an object, and refuses duplicates.
std::string_view RawMember(std::string_view object, std::string_view name);

// The same for all members in their order, with their names as they are written, in quotes.
struct RawJsonMember {
  std::string_view name, value;
};
std::vector<RawJsonMember> RawMembers(std::string_view object);

// A member's value; null if there is none, or `object` is no object.
const Json& MemberOf(const Json& object, std::string_view name);
// The same of a text; empty if it is none.
std::string TextMember(const Json& object, std::string_view name);

// Whether they are the same but for the order of members. (The == of Json minds it.)
bool IsSameInAnyOrder(const Json& a, const Json& b);

// Compact text. Never throws: bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& value);
// The same with an indent of two, for people.
std::string DumpJsonPretty(const Json& value);

// JSON text without line breaks: those between its tokens become spaces, and there are no others. All else stays as it
// is, numbers too. REQUIRES: `json` is JSON.
std::string OnOneLine(std::string_view json);

// Appends `text` to `out` as the inside of a JSON string literal (without the quotes), with the control characters,
// '"' and '\\' escaped and everything else as it is. REQUIRES: `text` is UTF-8.
void AppendJsonEscaped(std::string& out, std::string_view text);

}  // namespace reprise
