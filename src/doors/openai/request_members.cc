#include "doors/openai/request_members.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "doors/openai/request.h"

namespace reprise::openai {
namespace {

constexpr std::size_t kMostNamed = 30;
constexpr std::size_t kLongestName = 40;  // characters

// Read by ParseChatCompletion and ParseResponse, for either kind of model.
constexpr std::array kRead = {"model", "messages", "stream", "stream_options", "n", "metadata", "tool_choice"};
constexpr std::array kReadOfResponses = {"input", "instructions", "text", "previous_response_id", "conversation"};
// Read for a model alone.
constexpr std::array kReadForModels = {"tools", "temperature", "top_p"};
constexpr std::array kReadOfChatsForModels = {"max_completion_tokens", "max_tokens", "stop", "response_format"};
constexpr std::array kReadOfResponsesForModels = {"max_output_tokens"};
// For the provider's own records and caches, no more than a hint, or refused unless the value is the usual one.
constexpr std::array kOfNoEffect = {"user",
                                    "store",
                                    "safety_identifier",
                                    "prompt_cache_key",
                                    "prompt_cache_retention",
                                    "prompt_cache_options",
                                    "prediction",
                                    "modalities",
                                    "function_call"};

template <typename Names>
bool Has(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool IsNumberAbove(const Json& value, int most) { return value.is_number() && value > most; }

bool HasOtherThan(const Json& list, std::string_view only) {
  return list.is_array() && std::any_of(list.begin(), list.end(), [&](const Json& each) { return each != only; });
}

// Whether the member asks for another form of answer, or for other acts, than this server gives.
bool ChangesAnswer(std::string_view name, const Json& value, Interface interface) {
  if (name == "top_logprobs") return IsNumberAbove(value, 0);
  if (interface == Interface::kResponses) {
    if (name == "prompt" || name == "max_tool_calls") return !value.is_null();
    if (name == "truncation") return !value.is_null() && value != "auto" && value != "disabled";
    return name == "include" && value.is_array() &&
           std::find(value.begin(), value.end(), Json("message.output_text.logprobs")) != value.end();
  }
  if (name == "logprobs" || name == "echo") return value == true;
  if (name == "best_of") return IsNumberAbove(value, 1);
  if (name == "functions") return value.is_array() && !value.empty();
  if (name == "function_call") return !value.is_null() && value != "none" && value != "auto";
  if (name == "modalities") return HasOtherThan(value, "text");
  if (name == "audio") return value.is_object() && !value.empty();
  return name == "suffix" && value.is_string() && value != "";
}

bool IsRead(std::string_view name, Interface interface, bool is_agent) {
  const bool of_chats = interface == Interface::kChatCompletions;
  if (Has(kRead, name) || (!of_chats && Has(kReadOfResponses, name))) return true;
  if (is_agent) return !of_chats && name == "background";  // a model alone answers at once
  return Has(kReadForModels, name) ||
         (of_chats ? Has(kReadOfChatsForModels, name) : Has(kReadOfResponsesForModels, name));
}

// Of members that this server does not read. Calls together are usual.
bool IsUsual(std::string_view name, const Json& value) {
  if (name == "parallel_tool_calls") return value.is_null() || value == true;
  if (value.is_string()) return value == "" || value == "auto" || value == "default" || value == "disabled";
  return value.is_null() || value == false || (value.is_number() && value == 0) || value.empty();
}

}  // namespace

Result<std::vector<std::string>> LeftOutMembers(const Json& body, Interface interface, bool is_agent) {
  std::vector<std::string> left_out;
  for (const auto& [name, value] : body.items()) {
    if (ChangesAnswer(name, value, interface)) {
      return Fail(Invalid("unsupported_value", "\"" + name + "\" is not supported with this value", name));
    }
    if (IsRead(name, interface, is_agent) || Has(kOfNoEffect, name) || IsUsual(name, value)) continue;
    if (left_out.size() < kMostNamed) left_out.emplace_back(Utf8Prefix(name, kLongestName));
  }
  return left_out;
}

}  // namespace reprise::openai
