#include "model/provider_response.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/logging.h"
#include "base/text.h"
#include "base/transport.h"
#include "model/event_json.h"
#include "model/tool_call_assembler.h"

namespace reprise {
namespace {

constexpr std::size_t kLongestWord = 64;

// "error", but not "response.failed", whose message stands elsewhere.
bool IsErrorEvent(std::string_view type) {
  return !type.empty() && !type.starts_with("response.") && TellsOfFailure(type);
}

// A proxy's, whose server was lost.
Error PageError() {
  return ProtocolError("The model provider sent a page in the middle of its answer", /*retryable=*/true);
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
  if (!split_.Wants(data)) return TakeWhole(data, type);
  return TakeEach(split_.Take({std::string(data), std::string(type)}));
}

void ProviderResponse::TakeHeld() { TakeEach(split_.Rest()); }

bool ProviderResponse::TakeEach(const std::vector<SplitCharacters::Event>& events) {
  return std::ranges::all_of(events, [&](const auto& event) { return TakeWhole(event.data, event.type); });
}

bool ProviderResponse::TakeWhole(std::string_view data, std::string_view type) {
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
  if (data.front() == '<') return Reject(PageError());
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

void ProviderResponse::TellRequestId(const HttpHeaders& headers) {
  const auto is_visible = [](char c) { return c > ' ' && c < 0x7f; };
  for (const std::string_view name : {"x-request-id", "request-id"}) {
    const auto found = std::ranges::find(headers, name, &HttpHeaders::value_type::first);
    if (found == headers.end() || found->second.empty()) continue;
    const std::string_view id = std::string_view(found->second).substr(0, kMaxRequestId);
    if (std::ranges::all_of(id, is_visible)) return stream_.OnRequestId(id);
  }
}

void ProviderResponse::EndBatch() {
  if (progressed_ && !std::exchange(has_content_, true)) stream_.OnContent();
  if (std::exchange(handed_over_, false)) stream_.OnBatchEnd();
}

void ProviderResponse::AddText(std::string_view text) {
  if (text.empty() || !HasRoomFor(text.size())) return;
  has_text_ = true;
  handed_over_ = true;
  stream_.OnText(text);
}

void ProviderResponse::AddRefusal(std::string_view text) {
  if (text.empty() || !HasRoomFor(text.size())) return;
  has_text_ = has_refusal_ = true;
  handed_over_ = true;
  stream_.OnRefusal(text);
}

void ProviderResponse::AddSound(std::string_view samples) {
  if (samples.empty()) return;
  if (samples.size() > kMaxSoundBytes - sound_bytes_) return Reject(TooLargeError());
  sound_bytes_ += samples.size();
  has_text_ = progressed_ = handed_over_ = true;
  stream_.OnSound(samples);
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
  if (json.empty()) return;
  const auto root = ParseJson(ToValidUtf8(json), kMaxJsonDepth, DuplicateMembers::kLastWins);
  if (!root) return;
  const ProviderFault fault = FaultIn(*root, is_known ? RootKind::kKnown : RootKind::kUnknown);
  if (!fault.message.empty() || !fault.code.empty()) return Reject(MakeProviderError(fault, api_key()));
  if (!is_known) LogInfo("an event of a model provider's stream was passed over: its form is not known");
}

std::optional<Error> ProviderResponse::StoppedBy(std::string_view truncated) {
  if (truncated == "content_filter") return NoAnswerError("stopped by the content filter");
  if (truncated == "refusal") return NoAnswerError("the model declined to answer (refusal)");
  return std::nullopt;
}

int ProviderResponse::AlarmOf(std::string_view truncated) {
  if (truncated.empty()) return 0;
  if (truncated == "pause") return 1;
  if (truncated == "length" || truncated == "context_window") return 2;
  return truncated == "content_filter" || truncated == "refusal" ? 3 : 4;
}

Result<std::vector<ToolCall>> ProviderResponse::TakeCalls(ToolCallAssembler& calls, const End& end) const {
  if (calls.empty()) return std::vector<ToolCall>();
  if (auto stopped = StoppedBy(end.truncated)) return Fail(*std::move(stopped));
  auto taken = calls.Take(/*must_be_whole=*/!end.by_itself, used_call_ids());
  const bool by_limit = end.truncated == "length" || end.truncated == "context_window";
  if (!taken && by_limit && calls.cut_off()) return Fail(OutputLimitError(end.setting));
  if (!taken || by_limit || end.truncated.empty() || end.truncated == "pause") return taken;
  return Fail(ProtocolError("The model's answer ended in the middle of its tool calls (" + OwnWord(end.word) + ")",
                            /*retryable=*/true));
}

Result<void> ProviderResponse::CheckSaid(bool has_calls, std::string_view reason) const {
  if (has_calls || has_text() || has_thinking_) return {};
  if (auto stopped = StoppedBy(reason)) return Fail(*std::move(stopped));
  if (reason == "context_window") {
    return Fail(MakeProviderError({.code = "context_length_exceeded"}, api_key()));
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

namespace {

constexpr std::size_t kMaxErrorBytes = 64 * 1024;
constexpr std::size_t kMaxDocumentBytes = 2 * kMaxResponseBytes;  // includes the JSON around the answer

constexpr std::size_t kLongestWords = 2048;  // of a text that is neither JSON nor an event stream

constexpr std::string_view kBlankBytes = " \t\r\n";

// Whether this may be the begin of an event stream, and not a text in its place.
bool LooksLikeEvents(std::string_view body) {
  body.remove_prefix(std::min(body.find_first_not_of("\xEF\xBB\xBF \t\r\n"), body.size()));
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && kBlankBytes.find(c) == kBlankBytes.npos;
  };
  if (std::ranges::any_of(body, is_control)) return true;  // no text either
  return std::ranges::any_of(
      std::array<std::string_view, 5>{":", "data:", "event:", "id:", "retry:"},
      [&](std::string_view field) { return body.starts_with(field) || field.starts_with(body); });
}

}  // namespace

ResponseReader::ResponseReader(std::unique_ptr<ProviderResponse> response, std::string_view api_key,
                               std::chrono::milliseconds idle_timeout)
    : response_(std::move(response)), api_key_(api_key), idle_timeout_(idle_timeout), parser_(kMaxDocumentBytes) {}

void ResponseReader::OnHead(int status, const HttpHeaders& headers) {
  status_ = status;
  last_progress_ = Clock::now();
  response_->TellRequestId(headers);
  if (status < 200 || status >= 300) {
    kind_ = Kind::kError;
    error_headers_ = headers;
    return;
  }
  kind_ = Kind::kUnknown;
}

// Content types are often wrong, so the data decides: JSON begins with a bracket, a page with '<', and an event stream
// with neither. Waits for more while only whitespace and a byte order mark have arrived.
void ResponseReader::FindKind(std::string_view bytes) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  for (const char c : bytes) {
    if (kBlankBytes.find(c) != std::string_view::npos || kByteOrderMark.find(c) != std::string_view::npos) continue;
    if (c == '<') error_ = ProtocolError("The model provider answered with a page instead of an event stream");
    kind_ = c == '{' || c == '[' ? Kind::kDocument : Kind::kEvents;
    return;
  }
}

bool ResponseReader::OnData(std::string_view bytes) {
  if (error_) return false;
  switch (kind_) {
    case Kind::kUnknown: {
      body_ += bytes;
      FindKind(body_);
      if (kind_ == Kind::kUnknown && body_.size() > kMaxErrorBytes) {
        error_ = ProtocolError("The model provider sent nothing but blanks");
      }
      if (kind_ == Kind::kUnknown || error_) return !error_;
      const std::string begin = std::exchange(body_, {});
      return OnData(begin);
    }
    case Kind::kEvents:
      return TakeEvents(bytes);
    case Kind::kDocument:
      return Append(bytes, kMaxDocumentBytes);
    case Kind::kError:
      return Append(bytes, kMaxErrorBytes);
  }
  return false;
}

// The transport's own timer restarts with every byte, pings included; this one only with real progress. It is checked
// here, after all data from the socket has been processed.
bool ResponseReader::OnBatchEnd() {
  response_->EndBatch();
  const auto now = Clock::now();
  const bool progressed = response_->TakeProgress();
  if (std::exchange(any_body_, false) || progressed) {
    last_progress_ = now;
  } else if (response_->complete() && now - last_progress_ >= std::min<Clock::duration>(kUsageWait, idle_timeout_)) {
    return false;  // later data is not worth the wait
  } else if (now - last_progress_ >= idle_timeout_ && !error_) {
    error_ = FromTransportError(MakeError(ErrorCode::kDeadlineExceeded, {}), /*head_seen=*/true);
  }
  return !error_;
}

Result<ModelResponse> ResponseReader::Take(const Result<void>& transported) {
  if (!transported && transported.error().code == ErrorCode::kCancelled) return Fail(transported.error());
  if (error_) return Fail(*error_);
  if (kind_ == Kind::kError && status_ != 0) {
    Error error = MakeProviderError(ReadErrorBody(status_, body_, error_headers_), api_key_);
    error.retry_after = RetryAfter(error_headers_, std::chrono::system_clock::now());
    return Fail(std::move(error));
  }
  response_->TakeHeld();
  if (response_->failed()) return response_->Take();
  // The events after the answer's end (the usage, [DONE]) are optional.
  if (!transported && !response_->complete()) return Fail(FromTransportError(transported.error(), status_ != 0));
  if (kind_ == Kind::kDocument && transported) response_->TakeDocument(body_);
  if (kind_ == Kind::kEvents) TakeUnfinishedEvent();
  if (kind_ == Kind::kEvents && !any_event_ && !LooksLikeEvents(body_)) {
    return Fail(MakeProviderError({.message = std::move(body_)}, api_key_));
  }
  response_->TakeHeld();
  response_->EndBatch();
  return response_->Take();
}

// Whether a line of an event stream begins a page; no field's name begins like that.
bool ResponseReader::HasPage(std::string_view bytes) {
  const bool begins = (last_byte_ == '\n' || last_byte_ == '\r') && bytes.starts_with('<');
  if (!bytes.empty()) last_byte_ = bytes.back();
  return begins || bytes.find("\n<") != std::string_view::npos;
}

bool ResponseReader::TakeEvents(std::string_view bytes) {
  const bool has_page = HasPage(bytes);
  if (!any_event_) body_ += bytes.substr(0, kLongestWords - body_.size());
  parser_.Feed(bytes);
  bool wants_more = true;
  while (const auto event = wants_more ? parser_.Next() : std::nullopt) {
    any_event_ = true;
    wants_more = response_->TakeEvent(event->data, event->type);
  }
  if (parser_.overflowed()) {
    error_ = TooLargeError();
  } else if (has_page && !response_->failed()) {
    error_ = PageError();
  }
  return wants_more && !error_;
}

bool ResponseReader::Append(std::string_view bytes, std::size_t limit) {
  if (kind_ == Kind::kDocument && body_.size() + bytes.size() > limit) {
    error_ = TooLargeError();
    return false;
  }
  any_body_ = any_body_ || bytes.find_first_not_of(" \t\r\n") != std::string_view::npos;
  body_ += bytes.substr(0, limit - body_.size());
  return body_.size() < limit;
}

// Accepts an event without its final blank line if its JSON is complete.
void ResponseReader::TakeUnfinishedEvent() {
  if (response_->complete()) return;
  const auto event = parser_.Finish();
  const auto is_whole = [](std::string_view data) {
    return data == "[DONE]" || ParseJson(ToValidUtf8(data), kMaxJsonDepth, DuplicateMembers::kLastWins);
  };
  if (event) any_event_ = true;
  if (event && is_whole(event->data)) response_->TakeEvent(event->data, event->type);
}

bool ShowsDraft(const ModelRequest& request, std::string_view body, const ModelClient::Done& done) {
  if (request.sent) request.sent(body);
  if (request.is_draft) done(Fail(ErrorCode::kCancelled, "a draft is not sent"));
  return request.is_draft;
}

void SendModelRequest(Transport& transport, HttpRequest http, std::shared_ptr<ResponseReader> reader,
                      std::stop_token stop, std::function<bool(const Error&)> learns, ModelClient::Done done) {
  ResponseReader& handler = *reader;
  transport.Send(std::move(http), handler, std::move(stop),
                 [reader = std::move(reader), learns = std::move(learns),
                  done = std::move(done)](const Result<void>& transported) {
                   auto response = reader->Take(transported);
                   if (!response && learns(response.error())) {
                     response.error().retryable = true;
                     response.error().retry_after = kAskAgainAtOnce;
                   }
                   done(std::move(response));
                 });
}

}  // namespace reprise
