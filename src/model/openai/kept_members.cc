#include "model/openai/kept_members.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace reprise {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

constexpr std::size_t kAroundValue = 16;   // bytes of memory, at least
constexpr std::size_t kMaxMembers = 256;   // per object, because each addition searches it
constexpr std::ptrdiff_t kOpenItems = 32;  // at the end of an array; earlier items are complete

template <std::size_t kCount>
bool IsOneOf(std::string_view name, const std::array<std::string_view, kCount>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view TextOf(element value) { return value.get_string().value_unsafe(); }

void Merge(Json& kept, std::string_view name, element piece);

bool NamesAThing(std::string_view name) { return IsOneOf<4>(name, {"type", "id", "format", "name"}); }

// Whether this member allows two items to be pieces of one.
bool Agree(const Json& item, element piece, const char* name) {
  const auto known = item.find(name);
  element value;
  if (known == item.end() || piece[name].get(value) != simdjson::SUCCESS || value.is_null()) return true;
  return *known == ToJson(value);
}

void AddItem(Json& array, element piece) {
  element index;
  if (piece.is_object() && piece["index"].get(index) == simdjson::SUCCESS && index.is_number()) {
    const auto first = array.end() - std::min<std::ptrdiff_t>(kOpenItems, std::ssize(array));
    const auto same = std::find_if(first, array.end(), [&](const Json& item) {
      return item.is_object() && item.contains("index") && Agree(item, piece, "index") && Agree(item, piece, "type") &&
             Agree(item, piece, "id");
    });
    if (same != array.end()) return Merge(*same, {}, piece);
  }
  array.push_back(ToJson(piece));
}

void Merge(Json& kept, std::string_view name, element piece) {
  switch (piece.type()) {
    case element_type::STRING: {
      const std::string_view text = TextOf(piece);
      const bool again = name.ends_with("signature") && kept == text;
      if (kept.is_string() && !NamesAThing(name) && !again) {
        kept.get_ref<std::string&>() += text;
      } else {
        kept = std::string(text);
      }
      return;
    }
    case element_type::ARRAY:
      if (!kept.is_array()) kept = Json::array();
      for (const element item : simdjson::dom::array(piece)) AddItem(kept, item);
      return;
    case element_type::OBJECT:
      if (!kept.is_object()) kept = Json::object();
      for (const auto& [key, value] : simdjson::dom::object(piece)) MergeMember(kept, key, value);
      return;
    default:
      kept = ToJson(piece);
  }
}

}  // namespace

bool IsKnownMessageMember(std::string_view name) {
  static constexpr std::array<std::string_view, 20> kNames{
      "role",  "content", "refusal",     "tool_calls", "tool_call_id", "function_call",       "audio",
      "name",  "id",      "annotations", "parsed",     "index",        "finish_reason",       "logprobs",
      "usage", "object",  "stop_reason", "is_error",   "matched_stop", "native_finish_reason"};
  return IsOneOf(name, kNames);
}

bool IsKnownCallMember(std::string_view name) { return IsOneOf<4>(name, {"id", "type", "index", "function"}); }

bool IsKnownFunctionMember(std::string_view name) {
  return IsOneOf<4>(name, {"name", "arguments", "parsed_arguments", "parsed"});
}

std::size_t CostOf(element value) {
  std::size_t cost = kAroundValue;
  if (value.is_string()) {
    cost += TextOf(value).size();
  } else if (value.is_array()) {
    for (const element item : simdjson::dom::array(value)) cost += CostOf(item);
  } else if (value.is_object()) {
    const simdjson::dom::object object(value);
    if (object.size() > kMaxMembers) return kTooMuch;
    for (const auto& [key, member] : object) cost += key.size() + CostOf(member);
  }
  return std::min(cost, kTooMuch);
}

Json ToJson(element value) {
  switch (value.type()) {
    case element_type::STRING:
      return std::string(TextOf(value));
    case element_type::INT64:
      return value.get_int64().value_unsafe();
    case element_type::UINT64:
      return value.get_uint64().value_unsafe();
    case element_type::DOUBLE:
      return value.get_double().value_unsafe();
    case element_type::BOOL:
      return value.get_bool().value_unsafe();
    case element_type::ARRAY: {
      Json array = Json::array();
      for (const element item : simdjson::dom::array(value)) array.push_back(ToJson(item));
      return array;
    }
    case element_type::OBJECT: {
      Json object = Json::object();
      // By name, because an object from outside may repeat a name, which would make the stored JSON unreadable.
      for (const auto& [key, member] : simdjson::dom::object(value)) object[std::string(key)] = ToJson(member);
      return object;
    }
    case element_type::NULL_VALUE:
      break;
  }
  return nullptr;
}

void MergeMember(Json& object, std::string_view name, element value) {
  if (value.is_null()) return;
  const auto known = object.find(name);
  if (known != object.end()) return Merge(*known, name, value);
  if (object.size() == kMaxMembers) return;
  if (value.is_array() && simdjson::dom::array(value).size() == 0) return;
  Json first;
  Merge(first, name, value);
  object[std::string(name)] = std::move(first);
}

}  // namespace reprise
