#pragma once

#include <charconv>
#include <cstddef>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
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

// Appends `text` as a JSON string literal. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

// Writes the members of one JSON object as text, see AppendJsonObject. They are given as to a Json object,
// `object["name"] = value`, so that a template can fill either; here each only once.
class JsonObjectWriter {
 public:
  JsonObjectWriter(const JsonObjectWriter&) = delete;
  JsonObjectWriter& operator=(const JsonObjectWriter&) = delete;

  class Member {
   public:
    explicit Member(std::string& out) : out_(out) {}
    template <typename T>
    void operator=(const T& value) {
      if constexpr (std::is_same_v<T, bool>) {
        out_ += value ? "true" : "false";
      } else if constexpr (std::is_integral_v<T>) {
        char digits[std::numeric_limits<T>::digits10 + 3];
        out_.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
      } else if constexpr (std::is_same_v<T, std::nullptr_t>) {
        out_ += "null";
      } else if constexpr (std::is_same_v<T, Json>) {
        out_ += DumpJson(value);
      } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        WriteStrings(value);
      } else {
        AppendJsonString(out_, value);
      }
    }

   private:
    void WriteStrings(const std::vector<std::string>& strings);
    std::string& out_;
  };
  Member operator[](std::string_view name) { return Member(Name(name)); }

  // Writes a member's name; the caller appends its value to the string, as JSON.
  std::string& Name(std::string_view name);

 private:
  template <typename Write>
  friend void AppendJsonObject(std::string& out, Write write);
  explicit JsonObjectWriter(std::string& out) : out_(out) {}

  std::string& out_;
  bool empty_ = true;
};

// Appends an object: `write` is called with the writer of its members, and nothing else may write to the string then.
template <typename Write>
void AppendJsonObject(std::string& out, Write write) {
  out += '{';
  JsonObjectWriter object(out);
  write(object);
  out += '}';
}

}  // namespace reprise
