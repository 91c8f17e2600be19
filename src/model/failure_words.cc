#include "model/failure_words.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "base/utf8.h"

namespace reprise {
namespace {

constexpr int kDeepest = 8;  // levels of messages within messages

// Normalizes names: "errorMessage" and "error_message" are equal.
std::string Plain(std::string_view name) {
  std::string plain = LowerCase(name);
  std::erase_if(plain, [](char c) { return c == '_' || c == '-'; });
  return plain;
}

template <std::size_t kCount>
bool IsAmong(std::string_view text, const std::array<std::string_view, kCount>& all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

// Members that are empty in a successful answer.
bool IsForErrors(std::string_view plain) {
  return plain.find("error") != plain.npos || plain.find("fault") != plain.npos ||
         plain.find("exception") != plain.npos || plain == "baseresp" || plain == "errmsg" || plain == "failure";
}

// Members that hold an error's message; a successful answer has none of them at the root.
bool IsForWords(std::string_view plain) {
  static constexpr std::array<std::string_view, 10> kNames{"message",       "msg",        "detail", "details",
                                                           "statusmsg",     "reason",     "title",  "description",
                                                           "statusmessage", "faultstring"};
  return IsAmong(plain, kNames);
}

// Members that say what an object is, not what happened.
bool IsForNames(std::string_view plain) {
  static constexpr std::array<std::string_view, 17> kNames{
      "id",   "object",    "type",      "event",   "status",   "state", "model",   "created", "createdat",
      "code", "requestid", "timestamp", "version", "provider", "path",  "traceid", "param"};
  return IsAmong(plain, kNames) || plain.ends_with("id") || plain.ends_with("code");
}

std::string WordsIn(const Json& value, int depth = 0);

// The text in the first member that `wanted` accepts and that holds any, at any depth.
template <typename Wanted>
std::string WordsOfMembers(const Json& object, int depth, Wanted wanted) {
  for (const auto& [name, member] : object.items()) {
    if (!wanted(Plain(name))) continue;
    if (std::string words = WordsIn(member, depth + 1); !words.empty()) return words;
  }
  return {};
}

// The place in the request that a complaint is about (FastAPI).
std::string PlaceOf(const Json& object) {
  std::string where;
  const Json& location = MemberOf(object, "loc");
  if (!location.is_array()) return where;
  for (const Json& step : location) {
    where += (where.empty() ? "" : ".") + (step.is_string() ? step.get<std::string>() : DumpJson(step));
  }
  return where;
}

std::string WordsOfObject(const Json& object, int depth) {
  const std::string where = PlaceOf(object);
  // Takes the best description; uses other members only if there is none.
  std::string words =
      WordsOfMembers(object, depth, [](std::string_view name) { return name == "message" || name == "msg"; });
  if (words.empty()) words = WordsOfMembers(object, depth, IsForErrors);
  if (words.empty()) words = WordsOfMembers(object, depth, IsForWords);
  // A router quotes the error of the provider behind it here.
  const auto is_raw = [](std::string_view name) { return name == "raw"; };
  if (const Json& metadata = MemberOf(object, "metadata"); metadata.is_object()) {
    const std::string raw = WordsOfMembers(metadata, depth, is_raw);
    if (!raw.empty() && words.find(raw) == std::string::npos) words += (words.empty() ? "" : ": ") + raw;
  }
  if (where.empty()) return words;
  return words.empty() ? where : where + ": " + words;
}

std::string WordsIn(const Json& value, int depth) {
  if (depth > kDeepest) return {};
  if (value.is_object()) return WordsOfObject(value, depth);
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string::npos) return {};
    if (text[begin] == '{' || text[begin] == '[') {
      const auto within = ParseJson(text, kMaxJsonDepth, DuplicateMembers::kLastWins);
      if (std::string words = within ? WordsIn(*within, depth + 1) : std::string(); !words.empty()) return words;
    }
    return text;
  }
  std::string words;
  if (!value.is_array()) return words;
  for (const Json& item : value) {
    if (std::string more = WordsIn(item, depth + 1); !more.empty()) words += (words.empty() ? "" : "; ") + more;
  }
  return words;
}

// The first text in a value of unknown form.
std::string AnyWords(const Json& value, int depth = 0) {
  if (value.is_string()) return WordsIn(value, depth);
  if (depth > kDeepest || !value.is_structured()) return {};
  for (const auto& [name, member] : value.items()) {
    if (value.is_object() && IsForNames(Plain(name))) continue;
    if (std::string words = AnyWords(member, depth + 1); !words.empty()) return words;
  }
  return {};
}

std::string CodeText(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return DumpJson(value);
  return {};
}

bool IsGood(const std::string& code) {
  const std::string plain = LowerCase(code);
  return plain.empty() || plain == "0" || plain == "200" || plain == "ok" || plain == "success" || plain == "succeeded";
}

// The failure's code.
std::string CodeOf(const Json& object) {
  for (const char* name :
       {"code", "error_code", "errorCode", "status_code", "statusCode", "errcode", "type", "status"}) {
    const std::string code = CodeText(MemberOf(object, name));
    if (!IsGood(code)) return code;
  }
  return {};
}

// The object that describes the failure, without the objects and arrays around it.
const Json& Described(const Json& root) {
  const Json* at = &root;
  for (int depth = 0; depth < kDeepest; ++depth) {
    const Json* inner = nullptr;
    if (at->is_array() && !at->empty()) inner = &at->front();
    for (const char* name : {"error", "errors", "base_resp", "fault", "response"}) {
      const Json& member = MemberOf(*at, name);
      if (inner == nullptr && member.is_structured() && !member.empty()) inner = &member;
    }
    if (inner == nullptr || !inner->is_structured()) break;
    at = inner;
  }
  return *at;
}

bool IsErrorByName(const Json& root) {
  for (const char* name : {"object", "type", "event", "status", "state"}) {
    if (TellsOfFailure(TextMember(root, name))) return true;
  }
  for (const char* name : {"code", "status", "status_code", "statusCode", "error_code"}) {
    const Json& number = MemberOf(root, name);
    if (number.is_number_integer() && number >= 400) return true;
  }
  return MemberOf(root, "success") == false || MemberOf(root, "ok") == false;
}

// A root that belongs to an answer: its non-empty error members.
ProviderFault FaultOfMembers(const Json& root) {
  ProviderFault fault;
  for (const auto& [name, member] : root.items()) {
    const std::string plain = Plain(name);
    if (!IsForErrors(plain) && !IsForWords(plain)) continue;
    const Json& described = member.is_structured() ? Described(member) : member;
    const Json& status = plain == "baseresp" ? MemberOf(member, "status_code") : MemberOf(root, "");
    if (status.is_number_integer() && status == 0) continue;  // "success"
    fault.message = WordsIn(member);
    fault.code = described.is_object() ? CodeOf(described) : std::string();
    if (member == true || (member.is_number_integer() && member != 0)) fault.code = CodeText(member);
    if (member == true) fault.code = "error";
    if (!fault.message.empty() || !fault.code.empty()) return fault;
  }
  return {};
}

}  // namespace

ProviderFault FaultIn(const Json& root, RootKind kind) {
  if (!root.is_object() && kind != RootKind::kError) {
    ProviderFault fault{.message = WordsIn(root)};
    if (const Json& described = Described(root); described.is_object()) fault.code = CodeOf(described);
    return fault;
  }
  const bool is_error = kind == RootKind::kError || IsErrorByName(root);
  if (!is_error) {
    ProviderFault fault = FaultOfMembers(root);
    if (kind == RootKind::kUnknown && fault.message.empty() && fault.code.empty()) fault.message = AnyWords(root);
    return fault;
  }
  ProviderFault fault;
  const Json& described = Described(root);
  if (described.is_object()) fault.code = CodeOf(described);
  if (fault.code.empty()) fault.code = CodeOf(root);
  fault.message = WordsIn(root);
  const std::string parameter = TextMember(described, "param");
  if (!parameter.empty() && fault.message.find(parameter) == std::string::npos) {
    fault.message += (fault.message.empty() ? "" : " ") + ("(" + parameter + ")");
  }
  if (fault.message.empty()) fault.message = AnyWords(root);
  if (fault.code.empty() && fault.message.empty() && kind != RootKind::kError) fault.code = "error";
  return fault;
}

ProviderFault ReadErrorBody(int status, std::string_view body) {
  const std::string text = ToValidUtf8(body);
  const auto json = ParseJson(text, kMaxJsonDepth, DuplicateMembers::kLastWins);
  ProviderFault fault;
  if (json) {
    fault = FaultIn(*json, RootKind::kError);
  } else if (status == 0) {
    fault.message = text;
  }
  fault.status = status;
  return fault;
}

bool TellsOfFailure(std::string_view text) {
  static constexpr std::array<std::string_view, 14> kWords{
      "error",     "fail",     "abort",       "exception", "malformed", "cancel",     "timeout",
      "timed out", "overload", "unavailable", "invalid",   "interrupt", "unexpected", "refused"};
  const std::string lower = LowerCase(text);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace reprise
