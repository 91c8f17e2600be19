#include "wire/request_values.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"

namespace reprise {
namespace {

std::string DigestOf(const Request& request) {
  return Sha256Digest({request.head.target, "\n", RunHeaderLines(request), request.body});
}

}  // namespace

Result<std::optional<ClientRequest>> ClientRequestOf(const Request& request) {
  constexpr std::size_t kLongest = 255;
  constexpr std::string_view kName = "idempotency-key";
  const std::size_t count = request.head.Count(kName);
  if (count == 0) return std::nullopt;
  std::string_view key = *request.head.Find(kName);
  if (key.size() >= 2 && key.front() == '"' && key.back() == '"') key = key.substr(1, key.size() - 2);
  const bool is_visible = std::ranges::all_of(key, [](char c) { return c > ' ' && c <= '~' && c != '"'; });
  if (count > 1 || key.empty() || key.size() > kLongest || !is_visible) {
    return Fail(Reason::kInvalidArgument, "Idempotency-Key must be there once, with 1 to 255 visible ASCII characters");
  }
  return ClientRequest{.key = std::string(key), .digest = DigestOf(request)};
}

Result<RunHeaders> RunHeadersOf(const Request& request) {
  const auto text_of = [&](const char* name) -> Result<std::string> {
    const std::string key = LowerCase(name);
    const std::size_t count = request.head.Count(key);
    if (count == 0) return std::string();
    const auto text = PercentDecoded(*request.head.Find(key));
    if (count == 1 && text && !text->empty() && IsUtf8(*text)) return *text;
    return Fail(Reason::kInvalidArgument, std::string(name) + " must be there once, as UTF-8 in percent-encoding");
  };
  RunHeaders headers;
  headers.workspace = TRY(text_of(kWorkspaceHeader));
  headers.model = TRY(text_of(kModelHeader));
  const std::string mode = TRY(text_of(kApprovalModeHeader));
  headers.approval_mode = ParseApprovalMode(mode);
  if (mode.empty() || headers.approval_mode) return headers;
  return Fail(Reason::kInvalidArgument,
              std::string(kApprovalModeHeader) + " must be ask, read_only, plan, auto, approve_all or deny_all");
}

std::string RunHeaderLines(const Request& request) {
  std::string lines;
  for (const std::string name : {kWorkspaceHeader, kApprovalModeHeader, kModelHeader}) {
    if (const std::string* said = request.head.Find(LowerCase(name))) lines += name + ": " + *said + "\n";
  }
  return lines;
}

Result<ClientRequest> ForeignRequestOf(const Request& request, bool is_whole) {
  if (auto named = TRY(ClientRequestOf(request))) return *std::move(named);
  return ClientRequest::Unnamed(DigestOf(request), is_whole);
}

TraceContext TraceParentOf(const Request& request) {
  constexpr std::size_t kMaxState = 512;  // the least that W3C Trace Context wants passed on
  if (request.head.Count("traceparent") != 1) return {};
  TraceContext parent = ParseTraceparent(*request.head.Find("traceparent")).value_or(TraceContext{});
  const std::string* const state = request.head.Find("tracestate");
  const bool is_plain = state && std::ranges::all_of(*state, [](char c) { return c >= ' ' && c <= '~'; });
  if (parent.is_valid() && is_plain && state->size() <= kMaxState) parent.state = *state;
  return parent;
}

Result<ChatId> ChatInPath(const Request& request) { return ChatId::Parse(request.captures.at(0)); }

Result<std::optional<ChatId>> ChatInQuery(const Request& request) {
  const auto id = request.Query("chat_id");
  if (!id) return std::nullopt;
  return ChatId::Parse(*id);
}

Result<InteractionId> InteractionInPath(const Request& request) {
  auto id = InteractionId::Parse(request.captures.at(1));
  if (!id) return Fail(ErrorCode::kNotFound, "there is no such interaction");
  return id;
}

Result<InteractionRef> RunInPath(const Request& request) {
  auto chat = TRY(ChatInPath(request));
  auto interaction = TRY(InteractionInPath(request));
  return InteractionRef{std::move(chat), std::move(interaction)};
}

Result<std::size_t> PageLimit(const Request& request, std::size_t usual, std::size_t most) {
  const auto text = request.Query("limit");
  if (!text) return usual;
  const auto limit = ParseNumber<std::uint64_t>(*text);
  if (limit && *limit >= 1 && *limit <= most) return static_cast<std::size_t>(*limit);
  return Fail(Reason::kInvalidParameter, "\"limit\" must be a number from 1 to " + std::to_string(most));
}

Result<std::string> WordsOf(const Request& request) {
  constexpr std::size_t kLongest = 1024;
  auto text = request.Query("q").value_or("");
  if (text.size() <= kLongest && IsUtf8(text)) return text;
  return Fail(Reason::kInvalidParameter, "\"q\" must be UTF-8 of at most " + std::to_string(kLongest) + " bytes");
}

Result<std::uint64_t> EventCursor(const Request& request) {
  const std::string* header = request.head.Find("last-event-id");
  const auto text = header != nullptr ? std::optional<std::string>(*header) : request.Query("after_seq");
  if (!text) return 0;
  if (const auto seq = ParseNumber<std::uint64_t>(*text)) return *seq;
  return Fail(Reason::kInvalidCursor, "the event number to continue after must be a whole number");
}

Result<std::uint64_t> AuditCursor(const Request& request) {
  const auto text = request.Query("after");
  if (!text) return 0;
  if (const auto number = ParseNumber<std::uint64_t>(*text)) return *number;
  return Fail(Reason::kInvalidParameter, "\"after\" must be a whole number");
}

}  // namespace reprise
