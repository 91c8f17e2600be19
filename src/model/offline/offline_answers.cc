#include "model/offline/offline_answers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "model/provider_error.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSlowPause{100}, kReadingPause{20};
constexpr milliseconds kLongestThinking{3000};
// What a provider says in Retry-After: long enough to be seen.
constexpr milliseconds kRetryAfter{1000};

constexpr std::string_view kPlayed = "the offline model plays this";

std::int64_t WordCount(std::string_view text) {
  std::int64_t words = 0;
  for (std::size_t at = 0; (at = text.find_first_not_of(" \t\r\n", at)) != std::string_view::npos; ++words) {
    at = std::min(text.find_first_of(" \t\r\n", at), text.size());
  }
  return words;
}

// --- failures --------------------------------------------------------------------------------------------------------

Error Answered(int status, std::string code) {
  return MakeProviderError({.status = status, .code = std::move(code), .message = std::string(kPlayed)}, {});
}

Error RateLimit() {
  Error error = Answered(429, "rate_limit_exceeded");
  error.retry_after = kRetryAfter;
  return error;
}
Error Overloaded() { return Answered(529, "overloaded_error"); }
Error ServerError() { return Answered(500, "server_error"); }
Error NoQuota() { return Answered(429, "insufficient_quota"); }
Error WrongKey() { return Answered(401, "invalid_api_key"); }
Error TooLong() { return Answered(400, "context_length_exceeded"); }
Error WrongRequest() { return Answered(400, "invalid_request_error"); }
Error UnknownToProvider() { return Answered(404, "model_not_found"); }
Error NoConnection() {
  return FromTransportError({.code = ErrorCode::kUnavailable,
                             .reason = "connect_failed",
                             .message = "connection refused (" + std::string(kPlayed) + ")",
                             .retryable = true},
                            /*head_seen=*/false);
}
Error Silence() {
  return FromTransportError(
      {.code = ErrorCode::kDeadlineExceeded, .reason = "idle_timeout", .message = std::string(kPlayed)},
      /*head_seen=*/false);
}
Error CutOff() {
  return FromTransportError(
      {.code = ErrorCode::kUnavailable, .reason = "connection_lost", .message = std::string(kPlayed)},
      /*head_seen=*/true);
}
Error Nonsense() {
  return ProtocolError("The model provider sent something that is no event (" + std::string(kPlayed) + ")");
}
Error OutputLimit() { return OutputLimitError("No setting changes this: " + std::string(kPlayed) + "."); }
Error TooMuchSaid() { return TooLargeError(); }

struct PlayedFailure {
  std::string_view name;
  Error (*make)();
  std::string_view said_before = {};  // what a client has seen of the answer is not asked for again
};

constexpr std::array kPlayedFailures{
    PlayedFailure{"rate_limit", RateLimit},
    PlayedFailure{"overloaded", Overloaded},
    PlayedFailure{"server_error", ServerError},
    PlayedFailure{"connection", NoConnection},
    PlayedFailure{"timeout", Silence},
    PlayedFailure{"cut_off", CutOff, "This answer ends in the middle of a "},
    PlayedFailure{"quota", NoQuota},
    PlayedFailure{"auth", WrongKey},
    PlayedFailure{"bad_request", WrongRequest},
    PlayedFailure{"not_found", UnknownToProvider},
    PlayedFailure{"context_length", TooLong},
    PlayedFailure{"output_limit", OutputLimit},
    PlayedFailure{"too_large", TooMuchSaid},
    PlayedFailure{"protocol", Nonsense},
};

// "Rate-Limit." is rate_limit.
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
  for (const PlayedFailure& each : kPlayedFailures) {
    text += "\n- `";
    text += each.name;
    text += "`: ";
    const Error error = each.make();
    text += error.reason;
    if (!each.said_before.empty()) {
      text += ", in the middle of an answer";
    } else if (error.retryable) {
      text += ", which is tried again";
    }
  }
  return text;
}

// --- attachments -----------------------------------------------------------------------------------------------------

// "[file_1: "notes.txt", text/plain, 14 bytes]" (engine/attachments).
struct AttachedFile {
  std::string_view id, name, size;
  bool is_text = true;
};

bool TakeSuffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

std::optional<AttachedFile> ParseHeading(std::string_view line) {
  AttachedFile file;
  if (!line.starts_with('[') || !TakeSuffix(line, "]")) return std::nullopt;
  line.remove_prefix(1);
  file.is_text = !TakeSuffix(line, ", not text");
  const std::size_t colon = line.find(": \""), size = line.rfind(", ");
  if (colon == std::string_view::npos || size == std::string_view::npos || !TakeSuffix(line, " bytes")) {
    return std::nullopt;
  }
  file.size = line.substr(size + 2);
  const std::size_t name = colon + 3, name_end = line.rfind("\", ", size);
  if (name_end == std::string_view::npos || name_end < name) return std::nullopt;
  file.id = line.substr(0, colon);
  file.name = line.substr(name, name_end - name);
  return file;
}

// The files that are told of in `text`, which goes on behind kAttachedFiles. What stands within a file is passed over.
std::vector<AttachedFile> ParseAttachments(std::string_view text) {
  std::vector<AttachedFile> files;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto file = ParseHeading(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!file) continue;
    files.push_back(*file);
    if (!file->is_text) continue;
    const std::string last_line = "----- end " + std::string(file->id) + " -----\n";
    text.remove_prefix(std::min(text.find(last_line), text.size()));
  }
  return files;
}

}  // namespace

OfflineResponse ThinkAbout(std::string text) {
  const std::int64_t words = std::max<std::int64_t>(WordCount(text), 1);
  OfflineResponse response;
  response.text = "Those were my thoughts, in " + std::to_string(words) + (words == 1 ? " word" : " words") +
                  ". This is the answer.";
  response.thinking = std::move(text);
  response.pause = std::clamp(kLongestThinking / words, milliseconds(1), kReadingPause * 2);
  return response;
}

OfflineResponse SaySlowly(std::string text) { return {.text = std::move(text), .pause = kSlowPause}; }

OfflineResponse ShowMarkdown() {
  return {
      .text =
          "# Markdown\n"
          "This is **bold**, this is *italic*, ~~this is gone~~, and `this is code`. A [link](https://example.com/) "
          "has a text and an address.\n"
          "\n"
          "## Lists\n"
          "1. One\n"
          "2. Two\n"
          "   - an item within\n"
          "   - and another, with `code` in it\n"
          "     - and one below that\n"
          "3. Three\n"
          "\n"
          "- [x] done\n"
          "- [ ] to do\n"
          "\n"
          "## A table\n"
          "| language | greeting | characters |\n"
          "|:---|:---:|---:|\n"
          "| English | Hello | 5 |\n"
          "| Greek | Γειά σου | 8 |\n"
          "| Japanese | こんにちは | 5 |\n"
          "| Chinese | 你好 | 2 |\n"
          "| Arabic | مرحبا | 5 |\n"
          "| none | 🙂👍🏽 | 2 |\n"
          "\n"
          "## Code\n"
          "```python\n"
          "def greet(name):\n"
          "    # Indents stay, and so does | and *this*.\n"
          "    return f\"Hello, {name}\"\n"
          "```\n"
          "\n"
          "> A quote may have several lines.\n"
          ">\n"
          "> > And one within.\n"
          "\n"
          "---\n"
          "That was all.",
      .pause = kReadingPause};
}

OfflineResponse FailFor(std::string_view reason) {
  const std::string name = ReasonName(reason);
  if (name == "once") {
    Error error = Overloaded();
    error.retry_after = kRetryAfter;
    return {.text = "The first attempt failed, as you asked. This is the second.",
            .failure = std::move(error),
            .fails_first_attempt = true};
  }
  const auto found = std::find_if(kPlayedFailures.begin(), kPlayedFailures.end(),
                                  [&](const PlayedFailure& each) { return each.name == name; });
  if (found != kPlayedFailures.end()) return {.text = std::string(found->said_before), .failure = found->make()};
  return {.text = (name.empty() ? "" : "I cannot fail for this reason. ") + FailureNames()};
}

std::string TellAttachments(std::string_view message) {
  const std::size_t at = message.find(kAttachedFiles);
  if (at == std::string_view::npos) return {};
  const std::vector<AttachedFile> files = ParseAttachments(message.substr(at + kAttachedFiles.size()));
  if (files.empty()) return {};
  std::string text = "I was given " + (files.size() == 1 ? "a file" : std::to_string(files.size()) + " files") +
                     " with your message, and do not look into " + (files.size() == 1 ? "it" : "them") + ":";
  for (const AttachedFile& file : files) {
    text += "\n- \"";
    text += file.name;
    text += "\" (";
    text += file.size;
    text += file.size == "1" ? " byte" : " bytes";
    text += file.is_text ? ")" : ", not text)";
  }
  return text;
}

}  // namespace reprise
