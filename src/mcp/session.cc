#include "mcp/session.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/logging.h"
#include "base/text.h"
#include "mcp/mcp_tool.h"

namespace reprise {
namespace {

constexpr std::size_t kMaxPending = 256;
constexpr std::size_t kMaxProgressWaiting = 64;
constexpr std::size_t kMaxQuestions = 4;
constexpr std::size_t kMaxErrorText = 1000;
// More messages or bytes in this time than a working server sends. Beyond the first only answers are read; a server
// that sends ten times as many without an answer is ended.
constexpr std::chrono::seconds kFloodWindow{10};
constexpr std::size_t kFloodMessages = 20'000, kMaxFlood = 10 * kFloodMessages;
constexpr std::size_t kFloodBytes = 256u << 20;

// JSON-RPC 2.0, section 5.1.
constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601, kInvalidParams = -32602;
// Model Context Protocol 2025-11-25, "Elicitation": the user must open a URL first.
constexpr int kUrlElicitationRequired = -32042;
// Revision 2026-07-28.
constexpr int kHeaderMismatch = -32020, kMissingCapability = -32021, kUnsupportedVersion = -32022;

const Json& Params(const Json& message) {
  static const Json kNone = Json::object();
  const Json& params = MemberOf(message, "params");
  return params.is_object() ? params : kNone;
}

std::string TextOrJson(const Json& value) {
  return std::string(Utf8Prefix(value.is_string() ? value.get<std::string>() : DumpJson(value), kMaxErrorText));
}

// `error` is an object, as the protocol demands, or any value that some servers send instead.
Error ServerError(const Json& error) {
  const Json& code = MemberOf(error, "code");
  const Json& words = error.is_object() ? MemberOf(error, "message") : error;
  std::string text = "the server reports: " + (words.is_null() ? std::string("an error") : TextOrJson(words));
  if (code.is_number_integer()) text += " (" + code.dump() + ")";
  Error reported = Refused(Reason::kMcpError, std::move(text));
  const Json& data = MemberOf(error, "data");
  if (code == kUrlElicitationRequired && data.is_object()) reported.reason = NameOf(Reason::kMcpUrlsRequired);
  if (code == kHeaderMismatch) reported.reason = NameOf(Reason::kMcpHeaderMismatch);
  if (code == kMissingCapability) reported.reason = NameOf(Reason::kMcpMissingCapability);
  if (code == kUnsupportedVersion) reported.reason = NameOf(Reason::kMcpUnsupportedVersion);
  if (reported.Is(Reason::kMcpError)) {
    if (!data.is_null()) reported.message += ": " + TextOrJson(data);
  } else if (data.is_object()) {
    reported.details_json = DumpJson(data);
  }
  return reported;
}

// The value of the header Mcp-Name for a request; empty if its method has none.
std::string NameOf(const std::string& method, const Json& params) {
  if (method == "tools/call" || method == "prompts/get") return TextMember(params, "name");
  return method == "resources/read" ? TextMember(params, "uri") : "";
}

// Our request's id, from an answer: some servers make the number a string or add a decimal point.
std::optional<std::int64_t> RequestOf(const Json& id) {
  constexpr double kMaxExact = 9007199254740992.0;  // 2^53
  if (id.is_number_unsigned() && id.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  if (id.is_number_integer()) return id.get<std::int64_t>();
  if (id.is_number_float()) {
    const double number = id.get<double>();
    if (std::trunc(number) != number || std::abs(number) > kMaxExact) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (!id.is_string()) return std::nullopt;
  return ParseNumber<std::int64_t>(id.get_ref<const std::string&>());
}

// Whether the caller of this method accepts a result of any type.
bool IsCall(const std::string& method) { return method == "tools/call" || method == "tasks/result"; }

// Whether a member of the message itself is repeated, so that its kind or request is ambiguous. REQUIRES: `text` is a
// JSON object, except for repeated members.
bool IsEnvelopeAmbiguous(std::string_view text) {
  std::set<std::string> names;
  for (const RawJsonMember& member : RawMembers(text)) {
    const auto name = ParseJson(member.name);
    if (!name || !name->is_string() || !names.insert(name->get<std::string>()).second) return true;
  }
  return false;
}

// The message after log text on the same line; nullopt if there is none.
std::optional<Json> MessageBehindLog(std::string_view text) {
  constexpr int kMaxTries = 4;
  std::size_t at = text.find("{\"", 1);
  for (int tries = 0; tries < kMaxTries && at != std::string_view::npos; ++tries, at = text.find("{\"", at + 1)) {
    auto message = ParseJson(text.substr(at));
    if (message && message->contains("jsonrpc")) return *std::move(message);
  }
  return std::nullopt;
}

std::string NumberText(double number) {
  if (std::floor(number) == number && std::abs(number) < 1e15) return std::to_string(static_cast<std::int64_t>(number));
  return Json(number).dump();
}

// "indexing (3/10)"
std::string ProgressText(const Json& params) {
  std::string text = TextMember(params, "message");
  const Json& progress = MemberOf(params, "progress");
  const Json& total = MemberOf(params, "total");
  if (!progress.is_number()) return text;
  std::string count = NumberText(progress.get<double>());
  if (total.is_number()) count += "/" + NumberText(total.get<double>());
  return text.empty() ? count : std::string(Utf8Prefix(text, kMaxErrorText)) + " (" + count + ")";
}

// RFC 8089.
std::string FileUri(const std::string& path) { return "file://" + PercentEncoded(path, "-._~/!$&'()*+,;=:@"); }

// Begins a request's span, a child of its call's span. It has no gen_ai.operation.name, because the tool execution
// around it has that and is counted by it.
Span BeginSpan(const Span* parent, const std::string& method, std::int64_t id, const Json& params) {
  if (parent == nullptr) return {};
  const std::string_view target = method == "tools/call"    ? "gen_ai.tool.name"
                                  : method == "prompts/get" ? "gen_ai.prompt.name"
                                                            : "";
  const std::string name = target.empty() ? std::string() : TextMember(params, "name");
  Span span = parent->Child(name.empty() ? method : method + " " + name, SpanKind::kClient);
  span.Set("mcp.method.name", method);
  span.Set("jsonrpc.request.id", std::to_string(id));
  if (!name.empty()) span.Set(target, name);
  return span;
}

void DescribeEnd(Span& span, const std::string& method, const Result<Json>& result,
                 std::optional<std::int64_t> error_code) {
  if (error_code) span.Set("rpc.response.status_code", std::to_string(*error_code));
  if (!result) {
    // Without its text: that is in the call's span, redacted.
    span.Fail(error_code ? std::to_string(*error_code) : result.error().reason);
  } else if (method == "tools/call" && SaysError(*result)) {
    span.Fail("tool_error");
  }
}

}  // namespace

Error McpProtocolError(std::string message) { return Refused(Reason::kMcpProtocol, std::move(message)); }

Error McpTooLargeError() {
  return Refused(Reason::kMcpTooLarge, "the server's answer is larger than " +
                                           std::to_string(kMaxMcpMessageBytes >> 20) +
                                           " MiB, the most that is taken; what was asked for may be done");
}

Session::Session(std::unique_ptr<Channel> channel, SessionHooks hooks)
    : hooks_(std::move(hooks)), channel_(std::move(channel)) {
  channel_->Start(*this);
}

std::optional<Error> Session::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

bool Session::has_worked() const {
  const MutexLock lock(mutex_);
  return has_worked_;
}

bool Session::is_waiting() const {
  const MutexLock lock(mutex_);
  return !pending_.empty();
}

void Session::Close() {
  OnClosed(Refused(Reason::kMcpClosed, "the connection was closed"));
  channel_->Close();
}

// --- requests of ours ------------------------------------------------------------------------------------------------

Result<Json> Session::Request(const std::string& method, Json params, const RequestOptions& options) {
  auto pending = std::make_shared<Pending>();
  pending->can_ask = static_cast<bool>(options.ask);
  pending->is_call = IsCall(method);
  std::int64_t id = 0;
  std::shared_ptr<const Json> meta;
  {
    const MutexLock lock(mutex_);
    if (closed_) return Fail(*closed_);
    if (pending_.size() >= kMaxPending) return Fail(ErrorCode::kUnavailable, "too many calls wait for the server");
    id = next_id_++;
    pending_.emplace(id, pending);
    meta = request_meta_;
  }
  if (params.is_null()) params = Json::object();
  OutgoingMessage message{.json = {}, .request_id = id, .is_initialize = method == "initialize"};
  if (meta) {
    params["_meta"] = *meta;
    message.is_stateless = true;
    message.headers = {{"Mcp-Method", method}};
    if (const std::string name = NameOf(method, params); !name.empty())
      message.headers.emplace_back("Mcp-Name", HeaderText(name));
    message.headers.insert(message.headers.end(), options.headers.begin(), options.headers.end());
  }
  if (options.on_progress) params["_meta"]["progressToken"] = id;
  Span span = BeginSpan(options.span, method, id, params);
  if (span.context().is_valid()) {
    params["_meta"]["traceparent"] = FormatTraceparent(span.context());
    if (!span.context().state.empty()) params["_meta"]["tracestate"] = span.context().state;
  }
  std::string request = DumpJson({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
  // Inserts the arguments as the last member of params, which end the message. On stdio a message is one line.
  if (!options.arguments.empty()) request.insert(request.size() - 2, ",\"arguments\":" + OnOneLine(options.arguments));
  message.json = std::move(request);
  channel_->Send(std::move(message));
  auto result = Await(*pending, id, options);
  if (span) DescribeEnd(span, method, result, pending->error_code);
  return result;
}

// Waits for the response, the deadline or a stop request. Meanwhile passes on progress and questions.
Result<Json> Session::Await(Pending& pending, std::int64_t id, const RequestOptions& options) {
  auto deadline = Clock::now() + options.timeout;
  MutexLock lock(mutex_);
  for (;;) {
    pending.wake.wait_until(lock, options.stop, deadline, [&]() REQUIRES(mutex_) {
      return pending.response || !pending.progress.empty() || !pending.questions.empty();
    });
    const bool stopped = options.stop.stop_requested();
    if (!stopped && !pending.progress.empty()) {
      const std::string text = std::move(pending.progress.front());
      pending.progress.pop_front();
      lock.unlock();
      if (options.on_progress) options.on_progress(text);
      lock.lock();
      continue;
    }
    if (pending.response) break;
    if (!stopped && !pending.questions.empty()) {
      const auto question = std::move(pending.questions.front());
      pending.questions.pop_front();
      pending.asking = question;
      lock.unlock();
      const auto asked = Clock::now();
      Answer(question, options);
      deadline += Clock::now() - asked;
      lock.lock();
      pending.asking = nullptr;
      continue;
    }
    if (!stopped && Clock::now() < deadline) continue;
    pending_.erase(id);
    lock.unlock();
    Dismiss(pending.questions);
    const char* why = stopped ? "cancelled" : "timed out";
    if (options.may_cancel) Notify("notifications/cancelled", {{"requestId", id}, {"reason", why}});
    channel_->Abandon(id);
    if (stopped) return Fail(ErrorCode::kCancelled, "the call was cancelled");
    return Fail(ErrorCode::kDeadlineExceeded,
                "the server did not answer within " + std::to_string(options.timeout.count()) + " ms");
  }
  lock.unlock();
  Dismiss(pending.questions);
  if (!*pending.response) return Fail(pending.response->error());
  return std::move(***pending.response);
}

void Session::Notify(const std::string& method, Json params) {
  Json message = {{"jsonrpc", "2.0"}, {"method", method}};
  if (!params.empty()) message["params"] = std::move(params);
  channel_->Send({.json = DumpJson(message), .is_stateless = is_stateless()});
}

void Session::Tell(const std::string& method, Json params) {
  std::int64_t id = 0;
  {
    const MutexLock lock(mutex_);
    id = next_id_++;
  }
  channel_->Send(
      {.json = DumpJson({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}})});
}

void Session::Subscribe(Json notifications) {
  OutgoingMessage message{.json = {}, .is_stateless = true, .is_subscription = true};
  Json params = {{"notifications", std::move(notifications)}};
  {
    const MutexLock lock(mutex_);
    if (!request_meta_) return;
    message.request_id = next_id_++;
    params["_meta"] = *request_meta_;
  }
  static constexpr const char* kMethod = "subscriptions/listen";
  message.headers = {{"Mcp-Method", kMethod}};
  message.json =
      DumpJson({{"jsonrpc", "2.0"}, {"id", *message.request_id}, {"method", kMethod}, {"params", std::move(params)}});
  channel_->Send(std::move(message));
}

void Session::SpeakStateless(const std::string& version, const Json& client) {
  channel_->Agreed(version);
  auto meta = std::make_shared<const Json>(Json{{"io.modelcontextprotocol/protocolVersion", version},
                                                {"io.modelcontextprotocol/clientInfo", client},
                                                {"io.modelcontextprotocol/clientCapabilities", Capabilities()}});
  const MutexLock lock(mutex_);
  request_meta_ = std::move(meta);
}

void Session::SpeakWithSession() {
  channel_->Agreed("");
  const MutexLock lock(mutex_);
  request_meta_ = nullptr;
}

bool Session::is_stateless() const {
  const MutexLock lock(mutex_);
  return request_meta_ != nullptr;
}

Json Session::Capabilities() {
  return {{"roots", Json::object()}, {"elicitation", {{"form", Json::object()}, {"url", Json::object()}}}};
}

Json Session::Roots() const {
  Json roots = Json::array();
  for (const SessionRoot& root : hooks_.roots) roots.push_back({{"uri", FileUri(root.path)}, {"name", root.name}});
  return {{"roots", std::move(roots)}};
}

void Session::Settle(std::int64_t id, Result<std::shared_ptr<Json>> response, std::optional<std::int64_t> error_code) {
  std::shared_ptr<Question> asking;
  {
    const MutexLock lock(mutex_);
    const auto found = pending_.find(id);
    if (found == pending_.end()) return;  // the caller has given up, or the server invented the id
    const auto pending = found->second;
    pending_.erase(found);
    has_worked_ = has_worked_ || (pending->is_call && response);
    pending->error_code = error_code;
    pending->response = std::move(response);
    pending->wake.notify_all();
    asking = pending->asking;
  }
  if (asking) asking->over.request_stop();
}

// --- the channel's calls ---------------------------------------------------------------------------------------------

void Session::OnRequestFailed(std::int64_t id, Error error) { Settle(id, Fail(std::move(error))); }

bool Session::IsWaiting(std::int64_t id) const {
  const MutexLock lock(mutex_);
  return pending_.contains(id);
}

// Whether a tool's call waits for the response to this request.
bool Session::IsCallWaiting(std::int64_t id) const {
  const MutexLock lock(mutex_);
  const auto found = pending_.find(id);
  return found != pending_.end() && found->second->is_call;
}

void Session::OnEnding(Error why) {
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = std::move(why);
  }
  if (hooks_.on_closed) hooks_.on_closed();
}

void Session::OnClosed(Error why) {
  OnEnding(why);
  std::map<std::string, std::shared_ptr<Question>> questions;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(over_, true)) return;
    for (const auto& [id, pending] : pending_) {
      pending->response = Fail(why);
      pending->wake.notify_all();
    }
    pending_.clear();
    questions.swap(questions_);
  }
  for (const auto& [id, question] : questions) question->over.request_stop();
}

bool Session::IsFlood(std::size_t bytes) {
  const auto now = Clock::now();
  if (now - window_began_ > kFloodWindow) {
    window_began_ = now;
    window_messages_ = window_bytes_ = 0;
  }
  if (++window_messages_ == kFloodMessages + 1)
    LogWarning("an MCP server floods the connection; only its answers are read for a while");
  window_bytes_ += bytes;
  return window_messages_ > kMaxFlood || window_bytes_ > kFloodBytes;
}

void Session::OnMessage(std::string_view bytes, std::optional<std::int64_t> asked) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  {
    const MutexLock lock(mutex_);
    if (over_) return;
  }
  if (IsFlood(bytes.size())) return OnClosed(McpProtocolError("the server floods the connection with messages"));
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  std::string valid;
  if (!IsUtf8(bytes)) bytes = valid = ToValidUtf8(bytes);
  const auto mended = MendJson(bytes);
  const std::string_view text = mended ? *mended : bytes;
  auto message = ParseJson(text, kMaxMcpMessageDepth);
  if (!message && message.error().Is(Reason::kDuplicateMember)) return TakeAmbiguous(text, message.error(), asked);
  if (!message) {
    AnswerScanner scanner;
    scanner.Feed(text);
    if (const auto id = scanner.request()) {
      return Settle(*id, Fail(McpProtocolError("the server's answer cannot be read: " + message.error().message)));
    }
    // Some servers print their log to stdout.
    auto behind = MessageBehindLog(text);
    if (behind) return Dispatch(*behind, asked);
    return Log(LogLevel::kDebug, "an MCP server sent text that is no message", {{"error", message.error().message}});
  }
  if (!message->is_array()) return Dispatch(*message, asked);
  // A batch, which 2025-03-26 allowed. It may answer several requests.
  for (Json& each : *message) Dispatch(each, std::nullopt);
}

// A tool's call has taken effect, so its result is accepted even if members within it are repeated; the last one
// counts. Any other ambiguous message only fails the request that it answers, or is rejected if it is a request.
void Session::TakeAmbiguous(std::string_view text, const Error& why, std::optional<std::int64_t> asked) {
  auto message = ParseJson(text, kMaxMcpMessageDepth, DuplicateMembers::kLastWins);
  LogWarning("an MCP server sent a message that is ambiguous", {{"error", why.message}});
  if (!message) return;
  if (message->is_array()) {
    for (const Json& each : *message) RefuseMessage(each, why, std::nullopt);
    return;
  }
  const auto id = AnsweredBy(*message, asked);
  if (id && IsCallWaiting(*id) && !message->contains("method") && !IsEnvelopeAmbiguous(text))
    return TakeResponse(*message, asked);
  RefuseMessage(*message, why, asked);
}

void Session::RefuseMessage(const Json& message, const Error& why, std::optional<std::int64_t> asked) {
  const Json& id = MemberOf(message, "id");
  if (message.contains("method")) {
    if (id.is_string() || id.is_number()) ReplyError(id, kInvalidRequest, why.message);
  } else if (const auto request = AnsweredBy(message, asked)) {
    Settle(*request, Fail(McpProtocolError("in the server's answer " + why.message)));
  }
}

void Session::Dispatch(Json& message, std::optional<std::int64_t> asked) {
  if (!message.is_object()) return;
  const auto method = message.find("method");
  if (method == message.end()) return TakeResponse(message, asked);
  if (!method->is_string()) return;
  if (window_messages_ > kFloodMessages) {
    static const Error kWhy = McpProtocolError("the server floods the connection: this request is not read");
    return RefuseMessage(message, kWhy, asked);  // or whoever waits for its answer would wait in vain
  }
  const auto& name = method->get_ref<const std::string&>();
  message.contains("id") ? TakeRequest(name, message) : TakeNotification(name, message);
}

// The waiting request, if there is exactly one.
std::optional<std::int64_t> Session::OnlyRequest() const {
  const MutexLock lock(mutex_);
  return pending_.size() == 1 ? std::optional(pending_.begin()->first) : std::nullopt;
}

// A server that could not read a request does not know its id (JSON-RPC 2.0, 5). No other message without an id is
// assigned to a waiting request, because some servers answer notifications like that.
std::optional<std::int64_t> Session::AnsweredBy(const Json& message, std::optional<std::int64_t> asked) {
  const Json& named = MemberOf(message, "id");
  const Json& error = MemberOf(message, "error");
  const Json& code = MemberOf(error, "code");
  if (const auto id = RequestOf(named); id || !named.is_null()) return id;
  if (asked && (message.contains("result") || !error.is_null())) return asked;
  return code == kParseError || code == kInvalidRequest ? OnlyRequest() : std::nullopt;
}

void Session::TakeResponse(Json& message, std::optional<std::int64_t> asked) {
  const Json& error = MemberOf(message, "error");
  const Json& code = MemberOf(error, "code");
  const auto id = AnsweredBy(message, asked);
  if (!id) {
    return LogWarning("an MCP server sent an answer without the id of a request",
                      {{"id", TextOrJson(MemberOf(message, "id"))}});
  }
  if (IsWaiting(*id)) window_messages_ = std::min(window_messages_, kFloodMessages + 1);
  if (!error.is_null()) {
    return Settle(*id, Fail(ServerError(error)),
                  code.is_number_integer() ? std::optional(code.get<std::int64_t>()) : std::nullopt);
  }
  const auto result = message.find("result");
  if (result == message.end() || !(result->is_object() || IsCallWaiting(*id))) {
    return Settle(*id, Fail(McpProtocolError("the server's answer has no result")));
  }
  Settle(*id, std::make_shared<Json>(std::move(*result)));
}

void Session::TakeRequest(const std::string& method, const Json& message) {
  const Json& id = message["id"];
  if (!id.is_string() && !id.is_number()) return;  // there is no way to answer it
  if (is_stateless()) return;                      // such a server asks only in its results
  if (method == "ping") return Reply(id, Json::object());
  if (method == "roots/list") return Reply(id, Roots());
  if (method == "elicitation/create") return TakeQuestion(id, Params(message));
  ReplyError(id, kMethodNotFound, "this client does not have the method");
}

void Session::TakeNotification(const std::string& method, const Json& message) {
  const Json& params = Params(message);
  if (method == "notifications/progress") return TakeProgress(params);
  // A second acknowledgement means that the subscription was sent again.
  const bool again = method == "notifications/subscriptions/acknowledged" && std::exchange(acknowledged_, true);
  if ((again || method == "notifications/tools/list_changed") && hooks_.on_tools_changed)
    return hooks_.on_tools_changed();
  if (method == "notifications/message" && hooks_.on_log) {
    const Json& data = MemberOf(params, "data");
    const std::string text = data.is_string() ? data.get<std::string>() : params.contains("data") ? DumpJson(data) : "";
    return hooks_.on_log(TextMember(params, "level"), Utf8Prefix(text, kMaxErrorText));
  }
  if (method == "notifications/cancelled" && params.contains("requestId")) {
    const MutexLock lock(mutex_);
    const auto found = questions_.find(params["requestId"].dump());
    if (found != questions_.end()) found->second->over.request_stop();
  }
}

void Session::TakeProgress(const Json& params) {
  const auto token = RequestOf(MemberOf(params, "progressToken"));
  if (!token) return;
  const MutexLock lock(mutex_);
  const auto found = pending_.find(*token);
  if (found == pending_.end() || found->second->progress.size() >= kMaxProgressWaiting) return;
  found->second->progress.push_back(ProgressText(params));
  found->second->wake.notify_all();
}

// --- questions for a person ------------------------------------------------------------------------------------------

// The protocol does not say which call a question belongs to, so the newest waiting call asks it.
void Session::TakeQuestion(const Json& id, const Json& params) {
  auto parsed = ParseQuestion(params);
  if (!parsed) return ReplyError(id, kInvalidParams, parsed.error().message);
  auto question = std::make_shared<Question>();
  question->id = id.dump();
  question->question = *std::move(parsed);
  const char* refusal = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto asker = std::find_if(pending_.rbegin(), pending_.rend(),
                                    [](const auto& candidate) { return candidate.second->can_ask; });
    if (questions_.contains(question->id)) {
      refusal = "the id is in use";
    } else if (questions_.size() >= kMaxQuestions) {
      refusal = "too many questions";
    } else if (asker != pending_.rend()) {
      questions_.emplace(question->id, question);
      asker->second->questions.push_back(question);
      asker->second->wake.notify_all();
      return;
    }
  }
  if (refusal != nullptr) return ReplyError(id, kInvalidRequest, refusal);
  Reply(id, {{"action", "decline"}});
}

// Runs on the waiting call's thread.
void Session::Answer(const std::shared_ptr<Question>& question, const RequestOptions& options) {
  const std::stop_callback stopped(options.stop, [&] { question->over.request_stop(); });
  const ToolAnswer answer = options.ask(question->question, question->over.get_token());
  {
    const MutexLock lock(mutex_);
    if (questions_.erase(question->id) == 0) return;  // the connection has ended
  }
  if (question->over.stop_requested() && !options.stop.stop_requested()) return;  // withdrawn by the server
  const auto id = ParseJson(question->id);
  if (id) Reply(*id, AnswerToJson(question->question, answer));
}

// Cancels questions that were never shown because their call has ended. Only the caller holds these questions.
void Session::Dismiss(const std::deque<std::shared_ptr<Question>>& questions) {
  for (const auto& question : questions) {
    {
      const MutexLock lock(mutex_);
      if (questions_.erase(question->id) == 0) continue;
    }
    if (const auto id = ParseJson(question->id)) Reply(*id, {{"action", "cancel"}});
  }
}

// Stateless servers get no responses.
void Session::Reply(const Json& id, Json result) {
  if (is_stateless()) return;
  channel_->Send({.json = DumpJson({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}})});
}

void Session::ReplyError(const Json& id, int code, const std::string& message) {
  if (is_stateless()) return;
  channel_->Send(
      {.json = DumpJson({{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}})});
}

}  // namespace reprise
