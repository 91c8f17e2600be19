#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "reprise/timestamp.h"

namespace reprise {

// The codecs write members through templates whose `out` is a Json or a JsonObjectWriter, so that ToJson and AppendJson
// of a type cannot differ. These overloads cover the members for which the two differ.

// A list of a type that has both forms.
template <typename List>
void WriteList(Json& out, const char* name, const List& list) {
  Json array = Json::array();
  for (const auto& each : list) array.push_back(ToJson(each));
  out[name] = std::move(array);
}
template <typename List>
void WriteList(JsonObjectWriter& out, const char* name, const List& list) {
  std::string& text = out.Name(name);
  char before = '[';
  for (const auto& each : list) {
    text += before;
    AppendJson(text, each);
    before = ',';
  }
  text += before == '[' ? "[]" : "]";
}

// A value of a type that has both forms.
template <typename Value>
void WriteValue(Json& out, const char* name, const Value& value) {
  out[name] = ToJson(value);
}
template <typename Value>
void WriteValue(JsonObjectWriter& out, const char* name, const Value& value) {
  AppendJson(out.Name(name), value);
}

// An object; calls `write` with the `out` of its members.
template <typename Write>
void WriteObject(Json& out, const char* name, Write write) {
  Json object = Json::object();
  write(object);
  out[name] = std::move(object);
}
template <typename Write>
void WriteObject(JsonObjectWriter& out, const char* name, Write write) {
  AppendJsonObject(out.Name(name), write);
}

// Reads typed members of a stored JSON object. It remembers the first fault and returns defaults after it, so that a
// codec stays a plain list of members; check error() at the end.
class JsonReader {
 public:
  JsonReader(const Json& json, std::string_view what) : json_(json), what_(what) {
    if (!json.is_object()) Reject("is not an object");
  }

  std::string String(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr || !value->is_string()) return Reject(key), std::string();
    return value->get<std::string>();
  }
  // Absent and null are both nullopt.
  std::optional<std::string> OptionalString(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    return String(key);
  }
  std::int64_t Integer(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr || !value->is_number_integer()) return Reject(key), 0;
    return value->get<std::int64_t>();
  }
  bool Bool(const char* key, bool fallback) {
    const Json* value = Find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) return Reject(key), fallback;
    return value->get<bool>();
  }
  Timestamp Time(const char* key) {
    auto time = ParseTimestamp(String(key));
    if (!time) return Reject(key), Timestamp{};
    return *time;
  }
  std::optional<Timestamp> OptionalTime(const char* key) {
    if (!OptionalString(key)) return std::nullopt;
    return Time(key);
  }
  // Null if the member is missing or not an array.
  const Json* Array(const char* key) {
    const Json* value = Find(key);
    if (value == nullptr || !value->is_array()) return Reject(key), nullptr;
    return value;
  }
  std::vector<std::string> Strings(const char* key) {
    std::vector<std::string> strings;
    const Json* array = Array(key);
    if (array == nullptr) return strings;
    for (const Json& each : *array) {
      if (!each.is_string()) return Reject(key), strings;
      strings.push_back(each.get<std::string>());
    }
    return strings;
  }
  const Json* Find(const char* key) const {
    if (!json_.is_object()) return nullptr;
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  void Reject(std::string_view why) {
    if (!error_) {
      error_ = Refused(Reason::kIntegrityFormat, "the stored " + what_ + " is not in the expected form",
                       what_ + ": " + std::string(why));
    }
  }
  // Unwraps a nested codec's result and records its error.
  template <typename T>
  T Take(Result<T> result, T fallback) {
    if (result) return *std::move(result);
    if (!error_) error_ = result.error();
    return fallback;
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const Json& json_;
  std::string what_;
  std::optional<Error> error_;
};

}  // namespace reprise
