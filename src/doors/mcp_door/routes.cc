#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "domain/transcript/transcript.h"
#include "doors/chat_lists.h"
#include "doors/door.h"
#include "doors/mcp_door/ask_translator.h"
#include "doors/mcp_door/message.h"
#include "doors/mcp_door/sessions.h"
#include "doors/mcp_door/tools.h"
#include "doors/translator.h"
#include "wire/error_response.h"
#include "wire/request_values.h"

namespace reprise::mcp_door {
namespace {

constexpr const char* kSessionHeader = "mcp-session-id";
constexpr std::int64_t kUsualListed = 20, kMostListed = 100, kMostInteractions = 200, kMostPlaces = 100;
constexpr std::size_t kMostCompletions = 100;    // the most that one answer may have
constexpr std::int64_t kToolsFreshMs = 300'000;  // they change only with the program

std::optional<std::string> HeaderOf(const Request& request, const char* name) {
  const std::string* value = request.head.Find(name);
  return value == nullptr ? std::nullopt : std::optional(std::string(TrimBlanks(*value)));
}

MessageHead HeadOf(const Request& request) {
  return {.version = HeaderOf(request, "mcp-protocol-version"),
          .session = HeaderOf(request, kSessionHeader),
          .method = HeaderOf(request, "mcp-method"),
          .name = HeaderOf(request, "mcp-name")};
}

Reply ErrorTo(const Json& id, const RpcError& error) {
  return Reply{.status = error.status, .body = ErrorMessage(id, error)};
}

RpcError Unknown(const std::string& what) { return {.code = kInvalidParams, .message = what, .status = 200}; }

// A failure of the engine, for the client's model to read.
Json Refusal(const Error& error) {
  std::string text = error.message;
  if (error.Is(Reason::kBusy)) text += "; `approve` with this chat_id follows what runs there";
  return ToolResult(text, nullptr, /*is_error=*/true);
}

// One request of either era, with its client's abilities and session.
struct McpRequest {
  const Request& request;
  const RpcMessage& message;
  bool is_stateless = false;
  ClientAbilities abilities{};
  std::shared_ptr<Session> session = nullptr;
};

class McpRoute {
 public:
  explicit McpRoute(const Door& door) : door_(door) {}

  Result<Outcome> Take(const Request& request) const {
    const RpcMessage message = ReadMessage(request.body);
    if (message.problem) return ErrorTo(message.id, *message.problem);
    const MessageHead head = HeadOf(request);
    return IsStateless(message, head) ? TakeStateless(request, message, head) : TakeInSession(request, message, head);
  }

  Result<Outcome> CloseSession(const Request& request) const {
    const auto id = HeaderOf(request, kSessionHeader);
    if (!id) return NeedsSession(nullptr);
    if (!sessions_->Close(*id)) return NoSession(nullptr);
    return Reply{.status = 204, .content_type = ""};
  }

 private:
  // --- the two eras
  Result<Outcome> TakeStateless(const Request& request, const RpcMessage& message, const MessageHead& head) const {
    // Other messages are ignored: over HTTP a client cancels a request by closing its response.
    if (message.kind != RpcMessage::Kind::kRequest) return Reply{.status = 202, .content_type = ""};
    if (const auto problem = CheckStateless(message, head)) return ErrorTo(message.id, *problem);
    const McpRequest asked{
        .request = request,
        .message = message,
        .is_stateless = true,
        .abilities = AbilitiesIn(MemberOf(message.meta(), "io.modelcontextprotocol/clientCapabilities"))};
    if (message.method == "server/discover") {
      Json versions = Json::array({kStatelessVersion});
      for (const std::string_view each : kSessionVersions) versions.push_back(each);
      return Done(asked, {{"supportedVersions", std::move(versions)},
                          {"capabilities", ServerCapabilities(/*is_stateless=*/true)},
                          {"instructions", Instructions()},
                          {"ttlMs", kToolsFreshMs},
                          {"cacheScope", "private"}});
    }
    return Answer(asked);
  }

  static Reply NeedsSession(const Json& id) {
    return ErrorTo(id, {.code = kSessionError,
                        .message = "the header Mcp-Session-Id is missing: send initialize first, or speak 2026-07-28",
                        .status = 400});
  }
  static Reply NoSession(const Json& id) {
    return ErrorTo(
        id, {.code = kSessionError, .message = "there is no such session (any more); initialize anew", .status = 404});
  }

  Result<Outcome> TakeInSession(const Request& request, const RpcMessage& message, const MessageHead& head) const {
    if (message.method == "initialize" && message.kind == RpcMessage::Kind::kRequest) return Initialize(message);
    if (head.version && !IsSessionVersion(*head.version)) {
      return ErrorTo(
          message.id,
          {.code = kInvalidRequest, .message = "this MCP-Protocol-Version has no sessions here", .status = 400});
    }
    if (!head.session) return NeedsSession(message.id);
    const auto session = sessions_->Find(*head.session);
    if (!session) return NoSession(message.id);
    if (message.kind == RpcMessage::Kind::kResponse) return TakeAnswer(request, message, *session);
    if (message.kind == RpcMessage::Kind::kNotification) {
      if (message.method == "notifications/cancelled") CancelCall(message, *session);
      return Reply{.status = 202, .content_type = ""};
    }
    const McpRequest asked{.request = request, .message = message, .abilities = session->abilities, .session = session};
    if (message.method == "ping") return Done(asked, Json::object());
    if (message.method == "logging/setLevel") {
      if (session->SetLogLevel(TextMember(message.params, "level"))) return Done(asked, Json::object());
      return ErrorTo(message.id, Unknown("there is no such level"));
    }
    return Answer(asked);
  }

  Result<Outcome> Initialize(const RpcMessage& message) const {
    const std::string wanted = TextMember(message.params, "protocolVersion");
    if (wanted.empty()) {
      return ErrorTo(
          message.id,
          {.code = kInvalidParams, .message = "initialize needs \"protocolVersion\", a text", .status = 400});
    }
    const std::string id = sessions_->Open(AbilitiesIn(MemberOf(message.params, "capabilities")));
    return Reply{.body = ResultMessage(
                     message.id,
                     {{"protocolVersion", IsSessionVersion(wanted) ? wanted : std::string(kSessionVersions.front())},
                      {"capabilities", ServerCapabilities(/*is_stateless=*/false)},
                      {"serverInfo", ServerInfo()},
                      {"instructions", Instructions()}},
                     /*is_stateless=*/false),
                 .headers = {{"Mcp-Session-Id", id}}};
  }

  // Takes the client's answer to elicitation/create. A question that was answered elsewhere stays as it is. If the
  // answer cannot be used, the client is asked again. An error counts as a dismissed question, or the call would wait
  // for ever.
  Result<Outcome> TakeAnswer(const Request& request, const RpcMessage& message, Session& session) const {
    const std::string id = message.id.is_string() ? message.id.get<std::string>() : "";
    const std::string question = QuestionOf(id);
    session.NoteAnswered(id);
    if (!message.error.is_null()) {
      const std::string said = TextMember(message.error, "message");
      return Dismiss(request, question, "the client has answered with an error" + (said.empty() ? "" : ": " + said),
                     session);
    }
    const auto given = Give(request, question, message.result, std::nullopt);
    if (!given && !session.AskAgain(question, given.error().message)) {
      return Dismiss(request, question, "the client's answers could not be used: " + given.error().message, session);
    }
    return Reply{.status = 202, .content_type = ""};
  }

  Result<Outcome> Dismiss(const Request& request, const std::string& question, const std::string& why,
                          Session& session) const {
    session.NoteUnasked(question, why);
    if (auto given = Give(request, question, {{"action", "cancel"}}, std::nullopt); !given) {
      return ErrorTo(nullptr, {.code = kInternalError, .message = given.error().message, .status = 500});
    }
    return Reply{.status = 202, .content_type = ""};
  }

  void CancelCall(const RpcMessage& message, Session& session) const {
    const auto call = session.Find(DumpJson(MemberOf(message.params, "requestId")));
    const auto run = call ? call->Cancel() : std::nullopt;
    if (run) static_cast<void>(engine_.Cancel(run->chat_id, run->interaction_id));  // harmless if the run has ended
  }

  // --- requests of both eras
  static Reply Done(const McpRequest& asked, Json result) {
    return Reply{.body = ResultMessage(asked.message.id, std::move(result), asked.is_stateless)};
  }
  static Reply DoneForNow(const McpRequest& asked, Json result, std::int64_t fresh_ms) {
    if (asked.is_stateless) result.update({{"ttlMs", fresh_ms}, {"cacheScope", "private"}});
    return Done(asked, std::move(result));
  }

  Result<Outcome> Answer(const McpRequest& asked) const {
    const std::string& method = asked.message.method;
    if (method == "resources/list") return ListResources(asked);
    if (method.ends_with("/list") && !MemberOf(asked.message.params, "cursor").is_null()) {
      return ErrorTo(asked.message.id, Unknown("there is no such page: the first has all"));
    }
    if (method == "tools/list") return DoneForNow(asked, {{"tools", ToolList()}}, kToolsFreshMs);
    if (method == "tools/call") return CallTool(asked);
    if (method == "resources/templates/list") {
      return DoneForNow(asked, {{"resourceTemplates", ResourceTemplates()}}, kToolsFreshMs);
    }
    if (method == "resources/read") return ReadResource(asked);
    if (method == "prompts/list") return DoneForNow(asked, {{"prompts", PromptList()}}, kToolsFreshMs);
    if (method == "prompts/get") return GetPrompt(asked);
    if (method == "completion/complete") return Complete(asked);
    return ErrorTo(
        asked.message.id,
        {.code = kMethodNotFound, .message = "there is no such method", .status = asked.is_stateless ? 404 : 200});
  }

  Result<Outcome> CallTool(const McpRequest& asked) const {
    const std::string name = TextMember(asked.message.params, "name");
    Json arguments = MemberOf(asked.message.params, "arguments");
    if (arguments.is_null()) arguments = Json::object();
    if (!arguments.is_object()) {
      return ErrorTo(asked.message.id, Unknown("\"arguments\" must be an object"));
    }
    if (const auto known = CheckNames(name, arguments); !known) return Done(asked, Refusal(known.error()));
    if (name == "ask") return Ask(asked, arguments);
    if (name == "approve") return Approve(asked, arguments);
    const auto result = name == "list_chats"  ? ListChats(arguments)
                        : name == "read_chat" ? ReadChat(arguments)
                        : name == "search"    ? Search(arguments)
                                              : Result<Json>(Json());
    if (result && result->is_null()) return ErrorTo(asked.message.id, Unknown("there is no such tool"));
    return Done(asked, result ? *result : Refusal(result.error()));
  }

  // --- reading
  Result<Json> ListChats(const Json& arguments) const {
    const auto limit = TRY(NumberIn(arguments, "limit", kUsualListed, kMostListed));
    const auto cursor = TRY(TextIn(arguments, "cursor"));
    Json page = TRY(PageOfChats(engine_, static_cast<std::size_t>(limit), cursor));
    Json chats = Json::array();
    for (const Json& each : page["chats"]) {
      Json chat = Json::object();
      for (const char* member : {"id", "title", "status", "waiting", "updated_at", "error"}) {
        if (each.contains(member)) chat[member] = each[member];
      }
      chats.push_back(std::move(chat));
    }
    Json found = {{"chats", std::move(chats)}, {"next", page["next"]}};
    return ToolResult(DumpJson(found), found);
  }

  Result<std::string> Transcript(const ChatId& chat, std::size_t limit) const {
    const History history = TRY(engine_.GetHistory(chat, /*all_branches=*/false));
    std::vector<MarkdownTurn> turns;
    for (const HistoryEntry& entry : history.entries) turns.push_back({&entry.interaction, entry.superseded});
    if (turns.size() > limit) turns.erase(turns.begin(), turns.end() - static_cast<std::ptrdiff_t>(limit));
    return FormatMarkdown(history.summary, turns);
  }

  Result<Json> ReadChat(const Json& arguments) const {
    const auto chat = TRY(ChatId::Parse(TRY(NeededText(arguments, "chat_id"))));
    const auto limit = TRY(NumberIn(arguments, "limit", kUsualListed, kMostInteractions));
    return ToolResult(TRY(Transcript(chat, static_cast<std::size_t>(limit))), nullptr);
  }

  Result<Json> Search(const Json& arguments) const {
    const std::string query = TRY(NeededText(arguments, "query"));
    const auto limit = TRY(NumberIn(arguments, "limit", kUsualListed, kMostPlaces));
    std::optional<ChatId> chat;
    if (const auto name = TRY(TextIn(arguments, "chat_id"))) chat = TRY(ChatId::Parse(*name));
    Json found = TRY(SearchResultOf(engine_, query, chat, static_cast<std::size_t>(limit)));
    return ToolResult(DumpJson(found), found);
  }

  Result<Outcome> ListResources(const McpRequest& asked) const {
    std::optional<std::string> cursor;
    if (const Json& said = MemberOf(asked.message.params, "cursor"); said.is_string()) cursor = said.get<std::string>();
    const auto page = PageOfChats(engine_, kMostListed, cursor);
    if (!page) return ErrorTo(asked.message.id, Unknown(page.error().message));
    Json resources = Json::array();
    for (const Json& each : (*page)["chats"]) {
      if (each.contains("error")) continue;
      const std::string id = TextMember(each, "id"), title = TextMember(each, "title");
      resources.push_back(
          {{"uri", ChatUri(id)}, {"name", id}, {"title", title.empty() ? id : title}, {"mimeType", "text/markdown"}});
    }
    Json result = {{"resources", std::move(resources)}};
    if ((*page)["next"].is_string()) result["nextCursor"] = (*page)["next"];
    return DoneForNow(asked, std::move(result), 0);
  }

  Result<Outcome> ReadResource(const McpRequest& asked) const {
    const std::string uri = TextMember(asked.message.params, "uri");
    const auto name = ChatInUri(uri);
    const auto chat = name ? ChatId::Parse(*name) : Fail(MakeError(ErrorCode::kNotFound, "it is no address of a chat"));
    const auto text = chat ? Transcript(*chat, kMostInteractions) : Fail(chat.error());
    if (text) {
      Json content = {{"uri", uri}, {"mimeType", "text/markdown"}, {"text", *text}};
      return DoneForNow(asked, {{"contents", Json::array({std::move(content)})}}, 0);
    }
    RpcError error = Unknown("there is no such resource: " + text.error().message);
    if (!asked.is_stateless) error.code = kResourceNotFound;
    error.data = {{"uri", uri}};
    return ErrorTo(asked.message.id, error);
  }

  Result<Outcome> GetPrompt(const McpRequest& asked) const {
    if (TextMember(asked.message.params, "name") != kChatPrompt) {
      return ErrorTo(asked.message.id, Unknown("there is no such prompt"));
    }
    const Json& arguments = MemberOf(asked.message.params, "arguments");
    for (const auto& [name, value] : arguments.items()) {
      if (name != "chat_id") return ErrorTo(asked.message.id, Unknown("the prompt has only the argument chat_id"));
    }
    const auto chat = ChatId::Parse(TextMember(arguments, "chat_id"));
    const auto text = chat ? Transcript(*chat, kMostInteractions) : Fail(chat.error());
    if (!text) return ErrorTo(asked.message.id, Unknown(text.error().message));
    Json said = {{"role", "user"}, {"content", {{"type", "text"}, {"text", *text}}}};
    return Done(asked, {{"messages", Json::array({std::move(said)})}});
  }

  // Completes ids of chats, for the prompt and for the address of a chat.
  Result<Outcome> Complete(const McpRequest& asked) const {
    const Json& reference = MemberOf(asked.message.params, "ref");
    const Json& argument = MemberOf(asked.message.params, "argument");
    const bool is_known = TextMember(reference, "name") == kChatPrompt ||
                          TextMember(reference, "uri") == TextMember(ResourceTemplates().front(), "uriTemplate");
    if (!is_known) return ErrorTo(asked.message.id, Unknown("there is nothing of this name to complete"));
    const auto chats = engine_.ListChats();
    if (!chats) return ErrorTo(asked.message.id, Unknown(chats.error().message));
    const bool names_chat = TextMember(argument, "name") == "chat_id";
    const std::string begun = TextMember(argument, "value");
    Json values = Json::array();
    std::size_t total = 0;
    for (const ChatListEntry& each : *chats) {
      if (!names_chat || !each.summary.id.str().starts_with(begun)) continue;
      if (++total <= kMostCompletions) values.push_back(each.summary.id.str());
    }
    const bool has_more = total > values.size();
    return Done(asked, {{"completion", {{"values", std::move(values)}, {"total", total}, {"hasMore", has_more}}}});
  }

  // --- runs
  static std::string DigestOf(const McpRequest& asked, std::string_view headers = {}) {
    return Sha256Digest({TextMember(asked.message.params, "name"), "\n",
                         DumpJson(MemberOf(asked.message.params, "arguments")), headers});
  }

  Result<Outcome> Ask(const McpRequest& asked, const Json& arguments) const {
    if (IsSentAgain(asked)) return GoOn(asked);
    auto message = NeededText(arguments, "message");
    if (!message) return Done(asked, Refusal(message.error()));
    auto started = Start(asked, arguments, *std::move(message));
    if (!started) return Done(asked, Refusal(started.error()));
    engine_.Listen(*started);
    const InteractionRef run{started->chat_id, *started->interaction_id};
    const bool is_repeated = started->is_repeated;
    const auto call = asked.session ? asked.session->Begin(DumpJson(asked.message.id)) : nullptr;
    if (call && call->Began(run)) static_cast<void>(engine_.Cancel(run.chat_id, run.interaction_id));
    return Follow(asked, *std::move(started), run, {}, 0, call, is_repeated);
  }

  // A repeated call has a new id, so it is recognized by its content.
  Result<EventSubscription> Start(const McpRequest& asked, const Json& arguments, std::string message) const {
    const auto name = TRY(TextIn(arguments, "chat_id"));
    const auto model = TRY(TextIn(arguments, "model"));
    StartRequest start{.model = model.value_or(""), .trace_parent = TraceParentOf(asked.request)};
    ForeignConversation conversation{.message = std::move(message)};
    TRY(door_.TakeHeaders(asked.request, start, conversation));
    const auto plan = name ? door_.conversations->AtEndOf(TRY(ChatId::Parse(*name)), conversation)
                           : TRY(door_.conversations->Find(conversation));
    auto named = TRY(ClientRequestOf(asked.request));
    const std::string digest = DigestOf(asked, RunHeaderLines(asked.request));
    if (named) named->digest = digest;
    start.request = named ? *named : ClientRequest::Unnamed(digest, /*is_whole=*/true);
    if (auto before = TRY(door_.conversations->FollowRepeated(plan, *start.request))) return *std::move(before);
    start.user_message = plan.message;
    return engine_.Start(plan.chat, std::move(start));
  }

  Result<Outcome> Approve(const McpRequest& asked, const Json& arguments) const {
    if (IsSentAgain(asked)) return GoOn(asked);
    const auto name = NeededText(arguments, "chat_id");
    const auto chat = name ? ChatId::Parse(*name) : Fail(name.error());
    if (!chat) return Done(asked, Refusal(chat.error()));
    const auto running = engine_.RunningIn(*chat);
    if (!running) return Done(asked, ToolResult("nothing runs or waits in this chat", nullptr, /*is_error=*/true));
    auto attached = engine_.Attach(*chat, *running, 0);
    if (!attached) return Done(asked, Refusal(attached.error()));
    engine_.Listen(attached->subscription);
    return Follow(asked, std::move(attached->subscription), {*chat, *running}, {}, 0, nullptr);
  }

  Result<Outcome> Follow(const McpRequest& asked, EventSubscription run, const InteractionRef& ref,
                         std::set<std::string> answered, std::uint64_t after_seq, std::shared_ptr<Call> call,
                         bool is_repeated = false) const {
    using Asking = AskTranslator::Asking;
    const bool streams = asked.request.Accepts("text/event-stream");
    const bool can_ask = asked.abilities.forms && (asked.is_stateless || streams);
    const std::string page = door_.PageAddress(asked.request);
    auto translator = std::make_unique<AskTranslator>(AskTranslator::Options{
        .id = asked.message.id,
        .is_stateless = asked.is_stateless,
        .streams = streams,
        .asking = !can_ask             ? Asking::kNowhere
                  : asked.is_stateless ? Asking::kInResult
                                       : Asking::kInStream,
        .can_open_urls = asked.abilities.urls,
        .progress_token = MemberOf(asked.message.meta(), "progressToken"),
        .run = ref,
        .is_repeated = is_repeated,
        .call_digest = DigestOf(asked),
        .where = page.empty() ? "with `reprise approvals`"
                              : "at " + page + "#" + ref.chat_id.str() + " or with `reprise approvals`",
        .after_seq = after_seq,
        .answered = std::move(answered),
        .session = asked.session,
        .call = call});
    auto stream = Translate(std::move(run), std::move(translator));
    if (asked.session) asked.session->AddStream(stream.translation);
    door_.conversations->NoteClient(ref.chat_id, ref.interaction_id, stream.hold);
    if (streams) return StreamOf(std::move(stream), {});
    return DeferredReply{.log = stream.log, .hold = stream.hold, .finish = [log = stream.log]() -> Result<Reply> {
                           return Reply{.body = std::string(log->Read(0).bytes)};
                         }};
  }

  // --- a repeated call, with answers
  static bool IsSentAgain(const McpRequest& asked) {
    return asked.is_stateless && MemberOf(asked.message.params, "requestState").is_string();
  }

  Result<Outcome> GoOn(const McpRequest& asked) const {
    const auto state = ReadRequestState(TextMember(asked.message.params, "requestState"));
    const auto refuse = [&](const char* why) { return ErrorTo(asked.message.id, Unknown(why)); };
    if (!state || state->call_digest != DigestOf(asked)) {
      return refuse("\"requestState\" is none that this call was given");
    }
    auto attached = engine_.Attach(state->run.chat_id, state->run.interaction_id, 0);
    if (!attached) return refuse("\"requestState\" is of a run that is not there (any more)");
    engine_.Listen(attached->subscription);
    std::set<std::string> answered;
    for (const auto& [id, response] : MemberOf(asked.message.params, "inputResponses").items()) {
      auto given = Give(asked.request, id, response, state->run);
      if (given) {
        answered.insert(id);
      } else if (given.error().code != ErrorCode::kInvalidArgument) {
        return Done(asked, Refusal(given.error()));
      }  // otherwise the answer cannot be used, and the question is asked again
    }
    return Follow(asked, std::move(attached->subscription), state->run, std::move(answered), state->last_question,
                  nullptr);
  }

  // Answers an open question. Succeeds too if the question is settled or unknown.
  Result<void> Give(const Request& request, const std::string& id, const Json& response,
                    const std::optional<InteractionRef>& within) const {
    const auto unless_gone = [](Result<void> given) {
      return !given && IsNotFound(given.error()) ? Result<void>() : given;
    };
    if (const auto pending = engine_.FindApproval(id)) {
      auto answer = TRY(ApprovalIn(pending->request, response));
      answer.answered_by = request.principal.user;
      return unless_gone(UnlessSettled(engine_.AnswerApproval(id, std::move(answer), within)));
    }
    for (const PendingInput& each : engine_.PendingInputs()) {
      if (each.request.request_id != id) continue;
      auto answer = TRY(InputIn(each.request, response));
      answer.answered_by = request.principal.user;
      return unless_gone(UnlessSettled(engine_.AnswerInput(id, std::move(answer), within)));
    }
    return {};
  }

  const Door door_;
  Engine& engine_ = door_.engine;
  const std::shared_ptr<Sessions> sessions_ = std::make_shared<Sessions>();
};

}  // namespace

void AddRoutes(Router& router, const Door& door) {
  const auto route = std::make_shared<McpRoute>(door);
  router.Add("POST", "/mcp", [route](const Request& request) { return route->Take(request); });
  router.Add("DELETE", "/mcp", [route](const Request& request) { return route->CloseSession(request); });
}

}  // namespace reprise::mcp_door
