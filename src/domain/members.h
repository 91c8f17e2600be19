#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/json_writer.h"

// The codecs write the members of an object through templates whose `out` is a Json or a JsonObjectWriter, so that the
// two forms of a type, ToJson and AppendJson, cannot differ. These are the members that the two take differently.
namespace reprise {

// A list of what has both forms.
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

// An object; `write` is called with the `out` of its members.
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

}  // namespace reprise
