#pragma once

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

// The JSON object of one event of a provider's stream. Parsed with simdjson, because a stream has an event for every
// piece of text: a typical event takes 0.3 us, and 3.8 us with nlohmann/json. Invalid UTF-8 and unpaired escaped
// surrogates become U+FFFD; NaN and Infinity become null. Valid until this thread's next EventJson.
class EventJson {
 public:
  explicit EventJson(std::string_view json);
  EventJson(const EventJson&) = delete;
  EventJson& operator=(const EventJson&) = delete;

  // Whether it is an object within the nesting limit.
  bool valid() const { return valid_; }
  simdjson::dom::element root() const { return root_; }
  std::string_view text() const { return text_; }

 private:
  std::string mended_;
  std::string_view text_;
  simdjson::dom::parser large_parser_;
  simdjson::dom::element root_;
  bool valid_ = false;
};

template <typename Value>  // element, or the result of a look-up
std::string_view StringOr(const Value& value, std::string_view fallback) {
  std::string_view text;
  return value.get(text) == simdjson::SUCCESS ? text : fallback;
}

// Null, and an empty text, list or object.
bool SaysNothing(simdjson::dom::element value);

using Member = simdjson::simdjson_result<simdjson::dom::element>;  // the result of a look-up

// A call's arguments: a text, or an object in its place, as some servers send it. Empty if there are none; nullopt if
// they have another form.
std::optional<std::string> ArgumentsIn(const Member& value);

// A word for why an answer ended: a text, or whatever stands in its place, as JSON. Empty if that says nothing.
std::string WordIn(const Member& value);

// {"error":...} if the holder, a root or a result of a look-up, has such a member; else empty.
template <typename Value>
std::string ErrorIn(const Value& holder) {
  simdjson::dom::element error;
  if (holder["error"].get(error) != simdjson::SUCCESS || error.is_null()) return {};
  return "{\"error\":" + simdjson::minify(error) + "}";
}

// Also accepts integers written as 19.0.
template <typename Value>
std::int64_t IntegerOr(const Value& value, std::int64_t fallback) {
  std::int64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  double written = 0;
  constexpr double kMost = 9e15;  // above it, doubles cannot hold every integer
  if (value.get(written) != simdjson::SUCCESS || !(std::abs(written) < kMost)) return fallback;
  return static_cast<std::int64_t>(written);
}

// For counts, such as tokens: a negative one is wrong, and so is one whose sum with others might be none.
template <typename Value>
std::int64_t CountOr(const Value& value, std::int64_t fallback) {
  constexpr std::int64_t kMost = 1'000'000'000'000;
  const std::int64_t count = IntegerOr(value, fallback);
  return count < 0 || count > kMost ? fallback : count;
}

// Counts may come repeatedly, for a part of the answer or as zero: the largest is right.
template <typename Value>
void RaiseTo(std::int64_t& count, const Value& value) {
  count = std::max(count, CountOr(value, 0));
}

// The model that answered, if the value is a valid name.
template <typename Value>
std::string NameOfModel(const Value& value) {
  constexpr std::size_t kLongest = 256;
  const std::string_view name = StringOr(value, {});
  return name.size() <= kLongest ? std::string(name) : std::string();
}

}  // namespace reprise
