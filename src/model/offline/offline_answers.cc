#include "model/offline/offline_answers.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "model/provider_error.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSlowestThinking{40};  // between two words
constexpr milliseconds kLongestThinking{3000};
// A provider's Retry-After, long enough to be visible.
constexpr milliseconds kRetryAfter{1000};

constexpr std::string_view kPlayed = "the offline model plays this";

// A failure from data.json: a provider's response, a transport's error, or one with its own function.
Error PlayedFailure(const std::string& name, const Json& how) {
  const std::string played(kPlayed);
  if (how.contains("status")) {
    Error error = MakeProviderError({.status = how["status"], .code = how["code"], .message = played}, {});
    if (how.contains("retry_after_ms")) error.retry_after = milliseconds(how["retry_after_ms"].get<int>());
    return error;
  }
  if (how.contains("transport")) {
    const std::string reason = how["transport"];
    return FromTransportError(
        {.code = reason == "idle_timeout" ? ErrorCode::kDeadlineExceeded : ErrorCode::kUnavailable,
         .reason = reason,
         .message = reason == "connect_failed" ? "connection refused (" + played + ")" : played,
         .retryable = reason == "connect_failed"},
        /*head_seen=*/how.contains("said_before"));
  }
  if (name == "output_limit") return OutputLimitError("No setting changes this: " + played + ".");
  if (name == "too_large") return TooLargeError();
  return ProtocolError("The model provider sent something that is no event (" + played + ")");
}

// Turns "Rate-Limit." into rate_limit.
std::string ReasonName(std::string_view text) {
  std::string name = LowerCase(text.substr(0, text.find_first_of("\r\n")));
  name.erase(name.find_last_not_of(" \t.!?") + 1);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == ' '; }, '_');
  return name;
}

std::string FailureNames() {
  std::string text =
      "`fail: REASON` ends an answer as a model provider might. The reasons:\n"
      "- `once`: the first attempt fails and the second does not";
  for (const auto& [name, how] : OfflineData().at("failures").items()) {
    const Error error = PlayedFailure(name, how);
    text += "\n- `" + name + "`: " + error.reason;
    if (how.contains("said_before")) {
      text += ", in the middle of an answer";
    } else if (error.retryable) {
      text += ", which is tried again";
    }
  }
  return text;
}

}  // namespace

std::string OfflineText(std::string_view name) {
  std::string text;
  for (const Json& line : OfflineData().at(name)) text += (text.empty() ? "" : "\n") + line.get<std::string>();
  return text;
}

OfflineResponse ThinkAbout(std::string text) {
  const std::int64_t words = std::max<std::int64_t>(CountWords(text), 1);
  OfflineResponse response;
  response.text = "Those were my thoughts, in " + std::to_string(words) + (words == 1 ? " word" : " words") +
                  ". This is the answer.";
  response.thinking = std::move(text);
  response.pause = std::clamp(kLongestThinking / words, milliseconds(1), kSlowestThinking);
  return response;
}

Error FailedOnce(std::string message) {
  Error error = MakeProviderError({.status = 529, .code = "overloaded_error", .message = std::move(message)}, {});
  error.retry_after = kRetryAfter;
  return error;
}

OfflineResponse FailFor(std::string_view reason) {
  const std::string name = ReasonName(reason);
  if (name == "once") {
    return {.text = "The first attempt failed, as you asked. This is the second.",
            .failure = FailedOnce(std::string(kPlayed)),
            .fails_first_attempt = true};
  }
  const Json& failures = OfflineData().at("failures");
  if (const auto how = failures.find(name); how != failures.end()) {
    return {.text = how->value("said_before", ""), .failure = PlayedFailure(name, *how)};
  }
  return {.text = (name.empty() ? "" : "I cannot fail for this reason. ") + FailureNames()};
}

std::string TellAttachments(std::string_view message) {
  // "[file_1: "notes.txt", text/plain, 14 bytes]" (engine/attachments).
  static const RE2 heading(R"re(\[(\S+): "(.*)", [^"]*, (\d+) bytes(, not text)?\])re", RE2::Latin1);
  message.remove_prefix(std::min(message.find(kAttachedFiles), message.size()));
  std::string told;
  int files = 0;
  while (!message.empty()) {
    const std::string line(message.substr(0, message.find('\n')));
    message.remove_prefix(std::min(line.size() + 1, message.size()));
    std::string id, name, size, not_text;
    if (!RE2::FullMatch(line, heading, &id, &name, &size, &not_text)) continue;
    ++files;
    told += "\n- \"" + name + "\" (" + size + (size == "1" ? " byte" : " bytes") + not_text + ")";
    // Skips the file's content.
    if (not_text.empty()) {
      message.remove_prefix(std::min(message.find("----- end " + id + " -----\n"), message.size()));
    }
  }
  if (files == 0) return {};
  return "I was given " + (files == 1 ? "a file" : std::to_string(files) + " files") +
         " with your message, and do not look into " + (files == 1 ? "it" : "them") + ":" + told;
}

std::int64_t CountWords(std::string_view text) {
  std::int64_t words = 0;
  for (std::size_t at = 0; (at = text.find_first_not_of(" \t\r\n", at)) != std::string_view::npos; ++words) {
    at = std::min(text.find_first_of(" \t\r\n", at), text.size());
  }
  return words;
}

}  // namespace reprise
