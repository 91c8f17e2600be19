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

// Members keep their order, so that files and events read as documented. (Convert it for libraries that want a plain
// nlohmann::json, such as valijson's adapter.)
using Json = nlohmann::ordered_json;

// Limits of JSON that comes from outside (DESIGN section 9).
inline constexpr int kMaxJsonDepth = 64;

// How to treat a duplicate member (perhaps with its name written in two ways, such as "a" and "\u0061"). Readers differ
// in which one counts, so a person might see one while a program obeys the other.
enum class DuplicateMembers {
  kRefused,
  kLastWins,  // for responses of providers, which only we read, and to find the sender of a refused message
};

// Parses UTF-8 JSON no deeper than `max_depth`, in time that grows linearly with the text. Never throws.
// kInvalidArgument with reason "invalid_json", "too_deep", "invalid_utf8" or "duplicate_member"; the message quotes
// nothing of the input but the name of a duplicate member, if that is short and plain.
Result<Json> ParseJson(std::string_view text, int max_depth = kMaxJsonDepth,
                       DuplicateMembers duplicates = DuplicateMembers::kRefused);
// The same for text written by people, which may have comments. The message is a predicate: "is not valid JSON (line
// 3)".
Result<Json> ParseJsonWithComments(std::string_view text);

// The text of a member's value in `object`, whichever way its name is escaped; empty if there is none. REQUIRES:
// ParseJson accepts `object` as an object without duplicates.
std::string_view RawMember(std::string_view object, std::string_view name);

// All members in their order, with their names as written, in quotes.
struct RawJsonMember {
  std::string_view name, value;
};
std::vector<RawJsonMember> RawMembers(std::string_view object);
// The elements as written. REQUIRES: ParseJson accepts `array` as an array.
std::vector<std::string_view> RawElements(std::string_view array);

// A member's value; null if it is missing or `object` is not an object.
const Json& MemberOf(const Json& object, std::string_view name);
// A member's text; empty if it is not a string.
std::string TextMember(const Json& object, std::string_view name);

// Equality that ignores the order of members, which the == of Json does not.
bool IsSameInAnyOrder(const Json& a, const Json& b);

// Compact text. Never throws: bytes that are not UTF-8 become U+FFFD.
std::string DumpJson(const Json& value);
// The same with an indent of two, for people.
std::string DumpJsonPretty(const Json& value);

// JSON text without line breaks: those between tokens become spaces (strings cannot hold any). Everything else stays as
// written, numbers too. REQUIRES: `json` is JSON.
std::string OnOneLine(std::string_view json);

// Appends `text` to `out` as the inside of a JSON string literal (without the quotes), with the control characters,
// '"' and '\\' escaped and everything else as it is. REQUIRES: `text` is UTF-8.
void AppendJsonEscaped(std::string& out, std::string_view text);

// True if the JSON text may hold an escaped half of a surrogate pair (a cheap test; most texts have none).
bool HasSurrogateEscape(std::string_view json);

// The JSON text with each escaped surrogate that has no partner (\ud800) replaced by \ufffd. Models that stop between
// two tokens of an emoji write such halves; JSON parsers reject them or emit invalid UTF-8.
std::string MendSurrogateEscapes(std::string_view json);

// Turns almost-JSON from other programs into JSON; nullopt if nothing needs mending. Half surrogate pairs become
// U+FFFD, control characters in strings are escaped, NaN and Infinity become null, and a number out of our range
// becomes a string with its digits.
std::optional<std::string> MendJson(std::string_view json);

// JSON text without wide gaps between tokens: white space beyond a line end and an indent becomes one space, so that no
// text is pushed out of sight. Everything else stays as written, numbers too. REQUIRES: `json` is JSON.
std::string WithoutGaps(std::string_view json);
// Whether it holds a number with more digits than an IEEE double keeps. REQUIRES: `json` is JSON.
bool HasLongNumber(std::string_view json);

// Appends `text` as a JSON string literal. Bytes that are not UTF-8 become U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

// Writes the members of one JSON object as text; see AppendJsonObject. The syntax is that of Json, `object["name"] =
// value`, so that a template can fill either. Assign each member only once.
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
  Member operator[](const char* name) { return Member(Name(name)); }
  Member operator[](std::string_view name) { return Member(Name(name)); }

  // Writes a member's name; the caller appends its value to the string, as JSON.
  std::string& Name(const char* name);  // one without anything to escape
  std::string& Name(std::string_view name);

 private:
  template <typename Write>
  friend void AppendJsonObject(std::string& out, Write write);
  explicit JsonObjectWriter(std::string& out) : out_(out) {}

  std::string& out_;
  bool empty_ = true;
};

// Appends an object: calls `write` with a writer for its members. Nothing else may write to the string meanwhile.
template <typename Write>
void AppendJsonObject(std::string& out, Write write) {
  out += '{';
  JsonObjectWriter object(out);
  write(object);
  out += '}';
}

}  // namespace reprise
