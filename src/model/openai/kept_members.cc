#include "model/openai/kept_members.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/request_parts.h"

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

namespace {

constexpr std::size_t kLongestId = 64;

bool IsTextPart(const Json& part) {
  const std::string type = TextMember(part, "type");
  return type == "output_text" || type == "refusal";
}

// The member that holds a part's text.
const char* TextName(const Json& part) { return TextMember(part, "type") == "refusal" ? "refusal" : "text"; }

bool IsReplayable(const Json& reasoning) {
  // The provider does not store items, so an id without content refers to nothing.
  const auto has = [&](const char* name) {
    const auto member = reasoning.find(name);
    return member != reasoning.end() && ((member->is_string() && !member->get_ref<const std::string&>().empty()) ||
                                         (member->is_array() && !member->empty()));
  };
  return has("encrypted_content") || has("content");
}

// Servers reject ids of another form, which a server behind the same address may have made.
bool IsSentId(const Json& id, std::string_view prefix) {
  return id.is_string() && id.get_ref<const std::string&>().starts_with(prefix) &&
         id.get_ref<const std::string&>().size() <= kLongestId;
}

// The members of `kept` other than those written by the caller, and without an id that does not begin with `id_prefix`.
void AppendOthers(std::string& out, const Json& kept, std::initializer_list<std::string_view> written,
                  std::string_view id_prefix) {
  for (const auto& [name, value] : kept.items()) {
    if (std::find(written.begin(), written.end(), name) != written.end()) continue;
    if (name == "id" && !IsSentId(value, id_prefix)) continue;
    out += ',';
    AppendJsonString(out, name);
    out += ':';
    out += DumpJson(value);
  }
}

void AppendPart(std::string& out, std::string_view type, std::string_view name, std::string_view text) {
  out += R"({"type":")";
  out += type;
  out += R"(",")";
  out += name;
  out += R"(":)";
  AppendJsonString(out, text);
}

void AppendText(std::string& out, std::string_view text) {
  if (text.empty()) return;
  out += R"({"type":"message","role":"assistant","content":[)";
  AppendPart(out, "output_text", "text", text);
  out += "}]},";
}

void AppendCall(std::string& out, const ToolCall& call, const Json* kept) {
  constexpr std::size_t kLongestName = 128;
  out += R"({"type":"function_call","call_id":)";
  AppendJsonString(out, SentCallId(call.id));
  out += R"(,"name":)";
  AppendJsonString(out, SentName(call.name, kLongestName));
  out += R"(,"arguments":)";
  AppendJsonString(out, SentArguments(call.arguments));
  if (kept) AppendOthers(out, *kept, {"type", "call_id", "name", "arguments"}, "fc");
  out += "},";
}

std::size_t BytesOf(const Json& part) {
  const auto bytes = part.find("bytes");
  return bytes != part.end() && bytes->is_number_unsigned() ? bytes->get<std::size_t>() : 0;
}

// Whether the items cover the message's text and calls exactly.
bool Fit(const Json& items, const Message& message) {
  std::size_t bytes = 0, calls = 0;
  for (const Json& item : items) {
    if (!item.is_object()) return false;
    if (TextMember(item, "type") == "function_call") ++calls;
    const auto content = item.find("content");
    if (TextMember(item, "type") != "message" || content == item.end()) continue;
    for (const Json& part : *content) bytes += IsTextPart(part) ? BytesOf(part) : 0;
  }
  return bytes == message.content.value_or("").size() && calls == message.tool_calls.size();
}

void AppendKeptMessage(std::string& out, const Json& item, std::string_view& text) {
  out += R"({"type":"message","role":"assistant","content":[)";
  for (const Json& part : item.at("content")) {
    if (IsTextPart(part)) {
      const std::string_view piece = text.substr(0, BytesOf(part));
      text.remove_prefix(piece.size());
      AppendPart(out, TextMember(part, "type"), TextName(part), piece);
      AppendOthers(out, part, {"type", "bytes"}, "");
      out += "},";
    } else {
      out += DumpJson(part) + ",";
    }
  }
  if (out.back() == ',') out.pop_back();
  out += ']';
  AppendOthers(out, item, {"type", "role", "content"}, "msg");
  out += "},";
}

void AppendKept(std::string& out, const Json& items, const Message& message, bool with_reasoning) {
  const std::string content = message.content.value_or("");
  std::string_view text = content;
  std::size_t call = 0;
  // Providers reject reasoning without the item that follows it, which is missing if the answer was cut off.
  const auto is_said = [](const Json& item) { return TextMember(item, "type") != "reasoning"; };
  const auto unsaid = std::find_if(items.rbegin(), items.rend(), is_said).base();
  for (auto at = items.begin(); at != unsaid; ++at) {
    const Json& item = *at;
    const std::string type = TextMember(item, "type");
    if (type == "message") {
      AppendKeptMessage(out, item, text);
    } else if (type == "function_call") {
      AppendCall(out, message.tool_calls[call++], &item);
    } else if (type != "reasoning" || with_reasoning) {
      out += DumpJson(item) + ",";
    }
  }
}

}  // namespace

Json KeptItem(const Json& item) {
  const std::string type = TextMember(item, "type");
  if (type == "reasoning") return IsReplayable(item) ? item : Json();
  const std::string status = TextMember(item, "status");
  if (type == "web_search_call" && (status == "in_progress" || status == "searching")) return {};  // it was cut off
  Json kept = item;
  if (type == "function_call") {
    for (const char* own : {"call_id", "name", "arguments"}) kept.erase(own);
  }
  if (type == "message") {
    kept.erase("role");
    Json& content = kept["content"];
    if (!content.is_array()) content = Json::array();
    for (Json& part : content) {
      if (!IsTextPart(part)) continue;
      const std::size_t bytes = TextMember(part, TextName(part)).size();
      part.erase(TextName(part));
      part["bytes"] = bytes;
    }
  }
  return kept;
}

std::string SentCallId(const std::string& id) { return id.size() > kLongestId ? SentName(id, kLongestId) : id; }

void AppendAssistantItems(std::string& out, const Message& message, std::string_view provider, const KeptWays& ways) {
  const Json extras = ParseExtras(message);
  const Json* const kept = FindProviderExtras(extras, provider);
  const auto items = kept ? kept->find(kResponseItems) : Json::const_iterator();
  const auto is_sent = [&] {
    return ways.searches || std::none_of(items->begin(), items->end(), [](const Json& item) {
             return TextMember(item, "type") == "web_search_call";
           });
  };
  if (ways.items && kept && items != kept->end() && items->is_array() && Fit(*items, message) && is_sent()) {
    return AppendKept(out, *items, message, ways.reasoning);
  }
  AppendText(out, message.content.value_or(""));
  for (const ToolCall& call : message.tool_calls) AppendCall(out, call, nullptr);
}

}  // namespace reprise
