#pragma once

#include <charconv>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/json.h"

namespace reprise {

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
