#include "doors/openai/request_members.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "doors/openai/request.h"

namespace reprise::openai {
namespace {

constexpr std::size_t kMostNamed = 30;
constexpr std::size_t kLongestName = 40;  // characters

// Read by ParseChatCompletion and ParseResponse, for either kind of model.
constexpr std::array kRead = {"model", "messages", "stream", "stream_options", "n", "metadata", "tool_choice"};
constexpr std::array kReadOfResponses = {"input", "instructions", "previous_response_id", "conversation"};
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
// Zero and false leave these off; an empty object says nothing in them. Elsewhere each of them may be a wish.
constexpr std::array kUsuallyOff = {
    "frequency_penalty", "presence_penalty", "top_logprobs", "top_k", "min_p", "logprobs", "echo", "background"};
constexpr std::array kUsuallyEmpty = {"logit_bias", "reasoning", "audio"};

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
  if (value.is_null() || value == "" || (value.is_array() && value.empty())) return true;
  if (name == "parallel_tool_calls") return value == true;
  if (name == "service_tier") return value == "auto" || value == "default";
  if (name == "truncation") return value == "auto" || value == "disabled";
  if (name == "verbosity") return value == "medium";
  if (name == "best_of") return value == 1;
  if (Has(kUsuallyEmpty, name)) return value.is_object() && value.empty();
  return Has(kUsuallyOff, name) && (value == false || value == 0);
}

// Collects the names of what is left out.
class Names {
 public:
  void Add(std::string_view name) {
    if (names_.size() < kMostNamed) names_.emplace_back(Utf8Prefix(name, kLongestName));
  }
  std::vector<std::string> Take() { return std::move(names_); }

 private:
  std::vector<std::string> names_;
};

// "text" of Responses. A model's format is read.
void AddOfText(const Json& text, bool is_agent, Names& names) {
  if (!text.is_object()) return;
  for (const auto& [name, value] : text.items()) {
    const bool is_usual =
        name == "format" ? !is_agent || value.is_null() || TextMember(value, "type") == "text" : IsUsual(name, value);
    if (!is_usual) names.Add("text." + name);
  }
}

}  // namespace

std::string_view NameOf(Wish wish, Interface interface) {
  const bool of_chats = interface == Interface::kChatCompletions;
  switch (wish) {
    case Wish::kTemperature:
      return "temperature";
    case Wish::kTopP:
      return "top_p";
    case Wish::kMaxOutputTokens:
      return of_chats ? "max_completion_tokens" : "max_output_tokens";
    case Wish::kStop:
      return "stop";
    case Wish::kFormat:
      return of_chats ? "response_format" : "text";
    case Wish::kForcedCall:
      return "tool_choice";
  }
  return {};
}

Result<std::vector<std::string>> LeftOutMembers(const Json& body, Interface interface, bool is_agent) {
  Names left_out;
  for (const auto& [name, value] : body.items()) {
    if (ChangesAnswer(name, value, interface)) {
      return Fail(Invalid("unsupported_value", "\"" + name + "\" is not supported with this value", name));
    }
    if (name == "text" && interface == Interface::kResponses) {
      AddOfText(value, is_agent, left_out);
      continue;
    }
    // An agent has its own tools, from which no client chooses.
    const bool chooses = name == "tool_choice" && is_agent && !value.is_null() && value != "auto";
    if (chooses) left_out.Add(name);
    if (IsRead(name, interface, is_agent) || Has(kOfNoEffect, name) || IsUsual(name, value)) continue;
    left_out.Add(name);
  }
  return left_out.Take();
}

}  // namespace reprise::openai
