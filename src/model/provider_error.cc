#include "model/provider_error.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/public_address.h"
#include "base/text.h"
#include "reprise/model_client.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxAddress = 200;
constexpr std::size_t kMaxQuotedError = 300, kMaxLoggedError = 4000;
// A prefix of this length identifies the key.
constexpr std::size_t kTellingKeyPrefix = 6;
// A shorter key could match unrelated words.
constexpr std::size_t kShortestKey = 8;

struct Failure {
  Reason reason;
  std::string_view message;
  bool retryable;
};

constexpr Failure kAuth{Reason::kProviderAuth, "The model provider refused the API key", false};
constexpr Failure kNotFound{Reason::kProviderNotFound, "The model provider does not know this model or address", false};
constexpr Failure kRateLimited{Reason::kProviderRateLimited, "The model provider limits the rate of requests", true};
constexpr Failure kQuota{Reason::kProviderRateLimited, "The quota at the model provider is used up", false};
constexpr Failure kBadRequest{Reason::kProviderBadRequest, "The model provider refused the request", false};
constexpr Failure kContextLength{Reason::kProviderContextLength, "The conversation is too long for the model", false};
constexpr Failure kOverloaded{Reason::kProviderOverloaded, "The model provider is overloaded", true};
constexpr Failure kTimeout{Reason::kProviderTimeout, "The model provider took too long", true};
constexpr Failure kFailed{Reason::kProviderError, "The model provider failed", true};
constexpr Failure kRedirect{Reason::kProviderBadRequest, "The model provider's address is elsewhere (redirect)", false};

template <std::size_t kCount>
bool ContainsAny(std::string_view text, const std::array<std::string_view, kCount>& needles) {
  return std::any_of(needles.begin(), needles.end(),
                     [&](std::string_view needle) { return text.find(needle) != std::string_view::npos; });
}

// OpenAI, Azure, llama.cpp, vLLM, Ollama, OpenRouter and Mistral have no common code for this.
bool IsContextLength(const std::string& code, const std::string& message) {
  static constexpr std::array<std::string_view, 9> kPhrases{
      "context_length",     "context length",    "context window",           "context size",        "too many tokens",
      "prompt is too long", "input is too long", "maximum number of tokens", "exceed context limit"};
  return ContainsAny<9>(code, kPhrases) || ContainsAny<9>(message, kPhrases);
}

// `code`: a name or a phrase. Without a status it alone decides what is retryable.
Failure FailureOfCode(const std::string& code) {
  using Names = std::array<std::string_view, 3>;
  if (ContainsAny<3>(code, Names{"billing", "quota", "arrear"})) return kQuota;
  if (ContainsAny<3>(code, Names{"balance", "credit", "\xE4\xBD\x99\xE9\xA2\x9D"})) return kQuota;
  if (ContainsAny<3>(code, Names{"rate_limit", "too_many_requests", "ratelimit"})) return kRateLimited;
  if (ContainsAny<3>(code, Names{"rate limit", "too many requests", "throttl"})) return kRateLimited;
  if (ContainsAny<3>(code, Names{"api_key", "authentication", "permission"})) return kAuth;
  if (ContainsAny<3>(code, Names{"api key", "unauthorized", "login fail"})) return kAuth;
  if (ContainsAny<4>(code, {"overload", "unavailable", "capacity", "insufficient_system"})) return kOverloaded;
  if (ContainsAny<3>(code, Names{"not_found", "model_not", "unknown_model"})) return kNotFound;
  if (ContainsAny<3>(code, Names{"timeout", "timed_out", "deadline"})) return kTimeout;
  if (ContainsAny<3>(code, Names{"invalid_request", "bad_request", "invalid_argument"})) return kBadRequest;
  return kFailed;
}

// Status 429 needs stricter words, because "exceeded your current quota" may also mean a quota per minute.
bool IsUsedUp(const std::string& code, const std::string& message) {
  static constexpr std::array<std::string_view, 5> kPhrases{"insufficient_quota", "insufficient quota",
                                                            "credit balance", "insufficient balance",
                                                            "\xE4\xBD\x99\xE9\xA2\x9D\xE4\xB8\x8D\xE8\xB6\xB3"};
  return ContainsAny<5>(code, kPhrases) || ContainsAny<5>(message, kPhrases);
}

// Some servers put the HTTP status into error.code, as a number or a text.
int StatusInCode(const std::string& code) {
  const int status = ParseNumber<int>(code).value_or(0);
  return status >= 400 && status < 600 ? status : 0;
}

Failure FailureOf(int status, const std::string& code, const std::string& message) {
  const bool request_refused = status == 0 || status == 400 || status == 413 || status == 422;
  if (request_refused && IsContextLength(code, message)) return kContextLength;
  if (status == 0 || status == 200) {
    const Failure by_code = FailureOfCode(code);
    return by_code.reason == kFailed.reason ? FailureOfCode(message) : by_code;
  }
  if (status < 400) return kRedirect;
  switch (status) {
    case 401:
    case 403:
      return kAuth;
    case 402:
      return kQuota;
    case 404:
      return kNotFound;
    case 408:
    case 504:
      return kTimeout;
    case 429:
      return IsUsedUp(code, message) ? kQuota : kRateLimited;
    case 503:
    case 529:
      return kOverloaded;
    default:
      return status < 500 ? kBadRequest : kFailed;
  }
}

bool IsBlankOrQuote(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '"' || c == '\'' || c == '`';
}

bool TellsKey(std::string_view word, std::string_view api_key) {
  return api_key.size() >= kShortestKey && word.find(api_key.substr(0, kTellingKeyPrefix)) != std::string_view::npos;
}

// One line of valid UTF-8 without control characters.
std::string OneLine(std::string_view text) {
  std::string line = ToValidUtf8(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

}  // namespace

std::string RedactKey(std::string_view text, std::string_view api_key) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto blank = [&](std::size_t i) { return IsBlankOrQuote(text[i]); };
    std::size_t end = at;
    while (end < text.size() && blank(end) == blank(at)) ++end;
    const std::string_view word = text.substr(at, end - at);
    out += TellsKey(word, api_key) ? kRedacted : word;
    at = end;
  }
  return out;
}

Error MakeProviderError(const ProviderFault& fault, std::string_view api_key) {
  const std::string code = LowerCase(fault.code);
  const int status = fault.status >= 300 ? fault.status : StatusInCode(code);
  const Failure failure = FailureOf(status, code, LowerCase(fault.message));
  std::string message(failure.message), detail;
  if (status >= 300) message += " (HTTP " + std::to_string(status) + ")";
  if (!fault.message.empty()) {
    // Redacts before cutting, because half a key is also a secret.
    const std::string quote = RedactKey(OneLine(fault.message), api_key);
    message += ": ";
    const std::string_view begin = Utf8Prefix(quote, kMaxQuotedError);
    message += begin;
    if (begin.size() < quote.size()) detail = Utf8Prefix(quote, kMaxLoggedError);
  }
  Error error = Refused(failure.reason, std::move(message), std::move(detail));
  error.retryable = failure.retryable;
  return error;
}

Error NoAnswerError(std::string_view why) {
  return Refused(kBadRequest.reason, std::string(kBadRequest.message) + ": " + std::string(why));
}

Error ProtocolError(std::string message, bool retryable) {
  Error error = Refused(Reason::kProviderProtocol, std::move(message));
  error.retryable = retryable;
  return error;
}

Error TooLargeError(bool of_interaction) {
  return Refused(Reason::kResponseTooLarge, of_interaction
                                                ? "The model provider's answers in this interaction are longer than " +
                                                      std::to_string(kMaxInteractionBytes >> 20) + " MiB together"
                                                : "The model provider's answer is longer than " +
                                                      std::to_string(kMaxResponseBytes >> 20) + " MiB");
}

Error OutputLimitError(std::string_view setting) {
  return Refused(Reason::kProviderOutputLimit,
                 "The model's answer reached its limit (max_output_tokens) in the middle of a tool call, which "
                 "was not run. " +
                     std::string(setting));
}

Error NothingWithinLimitError() {
  return Refused(Reason::kProviderOutputLimit,
                 "The model's answer reached its limit before it said anything. Raise max_output_tokens of the model, "
                 "or ask it for less effort");
}

Error FromTransportError(const Error& error, bool head_seen) {
  Error mapped = error;
  switch (error.code) {
    case ErrorCode::kDeadlineExceeded:
      mapped.reason = NameOf(Reason::kProviderTimeout);
      mapped.message = error.Is(Reason::kConnectTimeout) ? "Connecting to the model provider took too long"
                                                         : "The model provider was silent for too long";
      mapped.retryable = true;
      return mapped;
    case ErrorCode::kUnavailable:
      if (error.Is(Reason::kHeadTooLarge)) {
        mapped = ProtocolError("The model provider's response headers are too large");
        mapped.detail = error.detail;
        return mapped;
      }
      if (head_seen) {
        mapped = ProtocolError("The model provider's answer was cut off", /*retryable=*/true);
        mapped.detail = error.message + ": " + error.detail;
        return mapped;
      }
      mapped.reason = NameOf(Reason::kProviderUnreachable);
      mapped.message = "The model provider cannot be reached: " + error.message;
      return mapped;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kForbidden:
      mapped.code = ErrorCode::kUnavailable;
      mapped.reason = NameOf(Reason::kProviderUnreachable);
      mapped.message = "The model provider's configured address or key cannot be used: " + error.message;
      mapped.retryable = false;
      return mapped;
    default:
      return mapped;  // cancelled, or an internal error
  }
}

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

ProviderFault ReadErrorBody(int status, std::string_view body, const HttpHeaders& headers) {
  const auto location = std::ranges::find(headers, "location", &HttpHeaders::value_type::first);
  if (status >= 300 && status < 400 && location != headers.end()) {
    std::string address(Utf8Prefix(WithoutUser(ToValidUtf8(location->second)), kMaxAddress));
    for (const std::string_view path : {"/chat/completions", "/responses", "/messages", "/models"}) {
      if (address.ends_with(path)) address.resize(address.size() - path.size());
    }
    return {.status = status, .message = "to " + address + "; set base_url to it if that is right"};
  }
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
