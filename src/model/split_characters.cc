#include "model/split_characters.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"

namespace reprise {
namespace {

constexpr std::size_t kEscape = 6;     // the length of \ud83d
constexpr std::size_t kMostHeld = 64;  // events

// The first escaped half of a pair that has no partner.
std::size_t LoneHalf(std::string_view json) {
  if (!HasSurrogateEscape(json)) return std::string_view::npos;
  const std::string mended = MendSurrogateEscapes(json);
  const auto differs = std::ranges::mismatch(json, mended).in1;  // the first digit, behind the backslash and the u
  return differs == json.end() ? std::string_view::npos : static_cast<std::size_t>(differs - json.begin()) - 2;
}

bool IsFirstHalf(std::string_view json, std::size_t at) {
  return std::string_view("89aAbB").find(json[at + 3]) != std::string_view::npos;
}

// Where a text ends with a first half.
std::size_t FirstHalfIn(std::string_view json) {
  const std::size_t at = LoneHalf(json);
  const bool is_it =
      at != std::string_view::npos && IsFirstHalf(json, at) && json.substr(at + kEscape).starts_with('"');
  return is_it ? at : std::string_view::npos;
}

// Where a text begins with a second half.
std::size_t SecondHalfIn(std::string_view json) {
  const std::size_t at = LoneHalf(json);
  const bool is_it =
      at != std::string_view::npos && at >= 2 && !IsFirstHalf(json, at) && json[at - 1] == '"' && json[at - 2] != '\\';
  return is_it ? at : std::string_view::npos;
}

// A text within an event.
struct Place {
  std::vector<std::string> path;  // names and indices, from the root
  std::string item;               // the members along the path that say which item the text belongs to
  bool operator==(const Place&) const = default;
};

void AddMembersOfItem(const Json& value, std::string& item) {
  for (const char* name : {"index", "output_index", "content_index", "summary_index", "item_id"}) {
    if (value.is_object() && value.contains(name)) item += std::string(name) + "=" + DumpJson(value[name]) + ";";
  }
}

// The place of the text that contains `mark`.
std::optional<Place> FindText(const Json& value, std::string_view mark) {
  if (value.is_string()) {
    const bool has_it = value.get_ref<const std::string&>().find(mark) != std::string::npos;
    return has_it ? std::optional(Place()) : std::nullopt;
  }
  if (!value.is_structured()) return std::nullopt;
  for (const auto& [name, member] : value.items()) {
    auto inner = FindText(member, mark);
    if (!inner) continue;
    inner->path.insert(inner->path.begin(), name);
    AddMembersOfItem(value, inner->item);
    return inner;
  }
  return std::nullopt;
}

std::optional<Place> PlaceOfHalf(std::string json, std::size_t at) {
  json.replace(at, kEscape, "\\ufdd0");  // no character, so no text has it
  const auto root = ParseJson(MendSurrogateEscapes(json), kMaxJsonDepth, DuplicateMembers::kLastWins);
  return root ? FindText(*root, "\xEF\xB7\x90") : std::nullopt;
}

// What the event has at this place: nothing, a text of the same item, or one of another.
enum class Kin { kNone, kSame, kOther };
Kin KinOf(const std::string& json, const Place& place) {
  const auto root = ParseJson(MendSurrogateEscapes(json), kMaxJsonDepth, DuplicateMembers::kLastWins);
  if (!root) return Kin::kNone;
  std::vector<const Json*> along{&*root};
  for (const std::string& name : place.path) {
    const Json& value = *along.back();
    const bool has_it = value.is_object() ? value.contains(name) : value.is_array() && name == "0" && !value.empty();
    if (!has_it) return Kin::kNone;
    along.push_back(value.is_object() ? &value[name] : &value.front());
  }
  if (!along.back()->is_string()) return Kin::kNone;
  std::string item;
  for (auto value = along.rbegin(); value != along.rend(); ++value) AddMembersOfItem(**value, item);
  return item == place.item ? Kin::kSame : Kin::kOther;
}

}  // namespace

bool SplitCharacters::Wants(std::string_view data) const {
  return !held_.empty() || FirstHalfIn(data) != std::string_view::npos;
}

std::vector<SplitCharacters::Event> SplitCharacters::Take(Event event) {
  if (held_.empty()) {
    const bool waits = FirstHalfIn(event.data) != std::string_view::npos;
    std::vector<Event>& to = held_;
    std::vector<Event> now;
    (waits ? to : now).push_back(std::move(event));
    return now;
  }
  std::string& first = held_.front().data;
  const std::size_t at = FirstHalfIn(first);
  const auto place = PlaceOfHalf(first, at);
  const Kin kin = place ? KinOf(event.data, *place) : Kin::kNone;
  const bool is_ping = event.data.find(R"("type":"ping")") != std::string::npos || event.type == "ping";
  if ((kin == Kin::kOther || is_ping) && held_.size() < kMostHeld) {
    held_.push_back(std::move(event));
    return {};
  }
  const std::size_t second = SecondHalfIn(event.data);
  if (kin == Kin::kSame && second != std::string_view::npos && PlaceOfHalf(event.data, second) == place) {
    first.insert(at + kEscape, event.data, second, kEscape);
    event.data.erase(second, kEscape);
  }
  // The first one goes as it is. Those behind it may begin to wait again.
  std::vector<Event> held = std::exchange(held_, {}), now;
  now.push_back(std::move(held.front()));
  held.push_back(std::move(event));
  for (auto each = held.begin() + 1; each != held.end(); ++each) {
    std::ranges::move(Take(std::move(*each)), std::back_inserter(now));
  }
  return now;
}

std::vector<SplitCharacters::Event> SplitCharacters::Rest() { return std::exchange(held_, {}); }

}  // namespace reprise
