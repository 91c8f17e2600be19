#include "model/provider_response.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"
#include "base/utf8.h"
#include "model/event_json.h"
#include "model/failure_words.h"
#include "model/provider_error.h"

namespace reprise {
namespace {

constexpr std::size_t kLongestWord = 64;

// "error", but not "response.failed", whose message stands elsewhere.
bool IsErrorEvent(std::string_view type) {
  return !type.empty() && !type.starts_with("response.") && TellsOfFailure(type);
}

Error NotJson() { return ProtocolError("The model provider sent an event that is not valid JSON"); }

}  // namespace

void ProviderResponse::Digest::Add(std::string_view text) {
  bytes += text.size();
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
}

ProviderResponse::Digest ProviderResponse::Digest::Of(std::string_view text) {
  Digest digest;
  digest.Add(text);
  return digest;
}

bool ProviderResponse::TakeEvent(std::string_view data, std::string_view type) {
  data = Trimmed(data);
  if (IsErrorEvent(type)) {
    Reject(MakeProviderError(ReadErrorBody(0, data), api_key()));
    return false;
  }
  if (data.empty()) return true;
  if (data == "[DONE]") {
    TakeDone();
    return false;
  }
  if (const EventJson event(data); event.valid()) {
    TakeObject(event, /*is_whole=*/false);
  } else {
    TakeNoObject(data);
  }
  return !failed() && !is_over();
}

// A line of text that keeps the connection alive, or other JSON, which is an error if it has a message.
void ProviderResponse::TakeNoObject(std::string_view data) {
  if (data.front() == '{') return Reject(NotJson());
  const std::string text = ToValidUtf8(data);
  const auto json = ParseJson(text, kMaxJsonDepth, DuplicateMembers::kLastWins);
  if (json && (json->is_structured() || json->is_string())) {
    const ProviderFault fault = FaultIn(*json, RootKind::kUnknown);
    return Reject(fault.message.empty() && fault.code.empty() ? NotJson() : MakeProviderError(fault, api_key()));
  }
  if (data.front() == '[' || data.front() == '"') return Reject(NotJson());
  if (TellsOfFailure(text)) return Reject(MakeProviderError({.message = text}, api_key()));
  LogInfo("an event of a model provider's stream was passed over: it is no JSON", {{"bytes", data.size()}});
}

void ProviderResponse::TakeDocument(std::string_view json) {
  json = Trimmed(json);
  if (const EventJson document(json); document.valid()) return TakeObject(document, /*is_whole=*/true);
  const auto wrong = ProtocolError("The model provider's answer is not valid JSON");
  if (json.starts_with('[')) {
    const auto pieces = ParseJson(ToValidUtf8(json), kMaxJsonDepth, DuplicateMembers::kLastWins);
    if (!pieces || pieces->empty()) return Reject(wrong);
    for (const Json& piece : *pieces) {
      if (!TakeEvent(DumpJson(piece))) return;
    }
    return;
  }
  for (std::size_t end = json.find('\n'); !failed(); end = json.find('\n')) {
    const std::string_view line = json.substr(0, end);
    if (!TakeEvent(line) || end == std::string_view::npos) break;
    json.remove_prefix(end + 1);
  }
}

void ProviderResponse::EndBatch() {
  if (std::exchange(handed_over_, false)) stream_.OnBatchEnd();
}

void ProviderResponse::AddText(std::string_view text) {
  if (text.empty() || !HasRoomFor(text.size())) return;
  has_text_ = true;
  handed_over_ = true;
  stream_.OnText(text);
}

bool ProviderResponse::AddThinking(std::string_view text) {
  if (text.empty()) return true;
  if (!HasRoomFor(text.size())) return false;
  has_thinking_ = true;
  handed_over_ = true;
  stream_.OnThinking(text);
  return true;
}

void ProviderResponse::Reject(Error error) {
  if (!error_) error_ = std::move(error);
}

void ProviderResponse::CheckForFailure(std::string_view json, bool is_known) {
  const auto root = ParseJson(ToValidUtf8(json), kMaxJsonDepth, DuplicateMembers::kLastWins);
  if (!root) return;
  const ProviderFault fault = FaultIn(*root, is_known ? RootKind::kKnown : RootKind::kUnknown);
  if (!fault.message.empty() || !fault.code.empty()) return Reject(MakeProviderError(fault, api_key()));
  if (!is_known) LogInfo("an event of a model provider's stream was passed over: its form is not known");
}

Result<void> ProviderResponse::CheckSaid(bool has_calls, std::string_view reason) const {
  if (has_calls || has_text() || has_thinking_) return {};
  if (reason == "content_filter") {
    return Fail(MakeProviderError({.status = 400, .message = "stopped by the content filter"}, api_key()));
  }
  if (reason == "refusal") {
    return Fail(MakeProviderError({.status = 400, .message = "the model declined to answer (refusal)"}, api_key()));
  }
  if (reason == "context_window") {
    return Fail(MakeProviderError({.status = 400, .code = "context_length_exceeded"}, api_key()));
  }
  if (reason == "length") return Fail(NothingWithinLimitError());
  const std::string word = reason.empty() ? std::string() : " (" + OwnWord(reason) + ")";
  return Fail(ProtocolError("The model provider's answer has nothing in it" + word, /*retryable=*/true));
}

std::string ProviderResponse::OwnWord(std::string_view reason) {
  std::string word = ToValidUtf8(reason);
  for (char& c : word) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return std::string(Utf8Prefix(word, kLongestWord));
}

bool ProviderResponse::HasRoomFor(std::size_t bytes) {
  if (bytes > source_.max_bytes - bytes_) {
    Reject(TooLargeError(/*of_interaction=*/source_.max_bytes < kMaxResponseBytes));
    return false;
  }
  bytes_ += bytes;
  progressed_ = progressed_ || bytes > 0;
  return true;
}

}  // namespace reprise
