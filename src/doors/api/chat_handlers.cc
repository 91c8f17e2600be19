#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "domain/transcript/other_formats.h"
#include "domain/transcript/transcript.h"
#include "doors/api/bodies.h"
#include "doors/api/chat_feed.h"
#include "doors/api/requests.h"
#include "doors/api/routes.h"
#include "doors/chat_lists.h"
#include "engine/history.h"
#include "wire/error_response.h"
#include "wire/request_values.h"

namespace reprise {

namespace {

constexpr std::size_t kUsualChats = 50, kMostChats = 500;

Result<Outcome> ListChats(Engine& engine, const Request& request) {
  const auto limit = TRY(PageLimit(request, kUsualChats, kMostChats));
  return JsonReply(TRY(PageOfChats(engine, limit, request.Query("cursor"))));
}

Result<Outcome> Create(Engine& engine, const Request& request) {
  const auto body = TRY(ParseCreateChatBody(request.body));
  const auto summary = TRY(engine.CreateChat(body.id, body.settings));
  Reply reply = JsonReply(reprise::ToJson(summary), 201);
  reply.headers.emplace_back("Location", "/chats/" + summary.id.str());
  return reply;
}

Result<Outcome> Usage(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto usage = TRY(engine.GetUsage(chat));
  const PriceTable& prices = engine.options().prices;
  return JsonReply(
      {{"chat_id", chat.str()}, {"branch", UsageBody(usage.branch, prices)}, {"all", UsageBody(usage.all, prices)}});
}

Result<Outcome> ChangeChat(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  auto settings = TRY(ParseChatSettings(request.body));
  const auto summary = TRY(engine.ChangeChat(chat, std::move(settings)));
  return JsonReply(reprise::ToJson(summary));
}

Result<Outcome> DeleteChat(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  TRY(ParseEmptyBody(request.body));
  TRY(engine.DeleteChat(chat));
  return JsonReply({{"status", "deleted"}, {"chat_id", chat.str()}});
}

Result<Outcome> Trash(Engine& engine, const Request&) {
  const auto trash = TRY(engine.ListTrash());
  Json entries = Json::array();
  for (const TrashEntry& entry : trash) entries.push_back(ToJson(entry));
  return JsonReply({{"entries", std::move(entries)}});
}

Result<Outcome> Restore(Engine& engine, const Request& request) {
  TRY(ParseEmptyBody(request.body));
  const auto summary = TRY(engine.RestoreChat(request.captures.at(0)));
  return JsonReply(reprise::ToJson(summary));
}

Result<Outcome> RemoveBranch(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto interaction = TRY(InteractionInPath(request));
  TRY(ParseEmptyBody(request.body));
  const auto removed = TRY(engine.RemoveBranch(chat, interaction));
  Json ids = Json::array();
  for (const InteractionId id : removed) ids.push_back(id.str());
  return JsonReply({{"status", "deleted"}, {"chat_id", chat.str()}, {"interactions", std::move(ids)}});
}

Reply Preview(const FilesPreview& preview) {
  Json body = {{"dry_run", true}};
  AddTo(body, preview);
  return JsonReply(body);
}

Result<Outcome> MoveHead(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto body = TRY(ParseHeadBody(request.body));
  if (body.dry_run) return Preview(TRY(engine.PreviewFiles(chat, body.interaction)));
  const auto summary = TRY(engine.MoveHead(chat, body.interaction, body.files));
  return JsonReply(reprise::ToJson(summary));
}

Result<Outcome> Undo(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto body = TRY(ParseUndoBody(request.body));
  if (body.dry_run) return Preview(TRY(engine.PreviewFiles(chat, std::nullopt, body.files)));
  const auto summary = TRY(engine.Undo(chat, body.files));
  return JsonReply(reprise::ToJson(summary));
}

Result<Outcome> Fork(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto body = TRY(ParseForkBody(request.body));
  if (body.dry_run) return Preview(TRY(engine.PreviewFiles(chat, body.interaction)));
  const auto copy = TRY(engine.ForkChat(chat, body.interaction, body.chat, body.title, body.files));
  Reply reply = JsonReply(ChatBody(copy), 201);
  reply.headers.emplace_back("Location", "/chats/" + copy.summary.id.str());
  return reply;
}

Json ToJson(const QueueEntry& entry) {
  Json json = reprise::ToJson(entry.message);
  json.erase("request");  // private to its client
  json["error"] = Json(nullptr);
  if (entry.error) json["error"] = {{"code", entry.error->reason}, {"message", entry.error->message}};
  return json;
}

Result<Outcome> Queue(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto entries = TRY(engine.GetQueue(chat));
  Json queue = Json::array();
  for (const QueueEntry& entry : entries) queue.push_back(ToJson(entry));
  return JsonReply({{"queue", std::move(queue)}});
}

Result<Outcome> ChangeQueued(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const auto message = TRY(ParseQueuedBody(request.body));
  const auto changed = TRY(engine.ChangeQueued(chat, request.captures.at(1), message));
  return JsonReply(ToJson(changed));
}

Result<Outcome> RemoveQueued(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  TRY(ParseEmptyBody(request.body));
  TRY(engine.RemoveQueued(chat, request.captures.at(1)));
  return JsonReply({{"status", "removed"}, {"id", request.captures.at(1)}});
}

Result<Outcome> Tasks(Engine& engine, const Request& request) {
  auto chat = TRY(ChatInPath(request));
  auto agenda = TRY(engine.GetAgenda(chat));
  return Reply{.body = DumpJson(ToJson(agenda))};
}

Result<Outcome> ChangeTasks(Engine& engine, const Request& request) {
  auto chat = TRY(ChatInPath(request));
  auto change = TRY(ParseAgendaBody(request.body));
  auto agenda = TRY(engine.ChangeAgenda(chat, std::move(change)));
  return Reply{.body = DumpJson(ToJson(agenda))};
}

constexpr std::size_t kMostOnPage = 500;
// The least size of a piece. An interaction is never split.
constexpr std::size_t kPieceBytes = 128 * 1024;

tl::unexpected<Error> Unfit(std::string message) { return Fail(Reason::kInvalidParameter, std::move(message)); }

Result<HistoryRange> ParseRange(const Request& request) {
  HistoryRange range;
  const std::string branches = request.Query("branches").value_or("head");
  if (branches != "head" && branches != "all") return Unfit("\"branches\" must be \"head\" or \"all\"");
  range.all_branches = branches == "all";
  if (request.Query("limit")) range.limit = TRY(PageLimit(request, kMostOnPage, kMostOnPage));
  if (const auto before = request.Query("before")) {
    const auto id = InteractionId::Parse(*before);
    if (!id) return Unfit("\"before\" must be an interaction's id");
    range.before = *id;
  }
  return range;
}

Result<HistoryStates> ParseStates(const Request& request) {
  const std::string state = request.Query("state").value_or("last");
  if (state == "last") return HistoryStates::kHead;
  if (state == "none") return HistoryStates::kNone;
  if (state == "all") return HistoryStates::kAll;
  return Unfit("\"state\" must be \"last\", \"none\" or \"all\"");
}

Result<Outcome> ReplyWith(Engine& engine, const ChatId& chat, const HistoryRange& range, HistoryStates states) {
  auto reader = TRY(engine.ReadHistory(chat, range, states));
  const HistoryReader& read = *reader;
  const auto body = std::make_shared<HistoryDocument>(
      std::move(reader), range.all_branches, [range, &read, &prices = engine.options().prices](Json& end) {
        if (range.is_whole()) {
          end["usage"] = UsageBody(read.usage(), prices);
        } else {
          const auto previous = read.previous();
          end["previous"] = previous ? Json(previous->str()) : Json(nullptr);
        }
      });
  auto first = TRY(body->Next(kPieceBytes));
  if (body->ended()) return Reply{.body = *std::move(first)};
  return PiecewiseReply{.first = *std::move(first), .next = [body] { return body->Next(kPieceBytes); }};
}

Result<Outcome> GetHistory(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  for (const char* name : {"branches", "limit", "before", "state"}) {
    if (request.QueryCount(name) > 1) return Unfit("\"" + std::string(name) + "\" is there more than once");
  }
  const auto range = TRY(ParseRange(request));
  const auto states = TRY(ParseStates(request));
  return ReplyWith(engine, chat, range, states);
}

// The same text that `reprise export` prints.
Result<Outcome> Export(Engine& engine, const Request& request) {
  const auto chat = TRY(ChatInPath(request));
  const std::string format = request.Query("format").value_or("json");
  if (format == "json") return ReplyWith(engine, chat, {.all_branches = true}, HistoryStates::kAdded);
  const History history = TRY(engine.GetHistory(chat, /*all_branches=*/false));
  if (format == "markdown") {
    std::vector<MarkdownTurn> turns;
    for (const HistoryEntry& entry : history.entries) turns.push_back({&entry.interaction, entry.superseded});
    return Reply{.body = FormatMarkdown(history.summary, turns), .content_type = "text/markdown; charset=utf-8"};
  }
  if (format == "atif" || format == "claude-code") {
    std::vector<AddedInteraction> turns;
    std::optional<AgentState> before;
    for (const HistoryEntry& entry : history.entries) {
      Interaction whole = TRY(engine.GetInteraction(chat, entry.interaction.id));
      auto state = whole.final_agent_state;
      turns.push_back(before ? AddedTo(*before, std::move(whole)) : AddedInteraction{.interaction = std::move(whole)});
      if (state) before = std::move(state);
    }
    if (format == "atif") return Reply{.body = FormatAtif(history.summary, turns)};
    return Reply{.body = FormatClaudeCode(history.summary, turns), .content_type = "application/jsonl"};
  }
  if (format != "jsonl") return Unfit("\"format\" must be json, jsonl, markdown, atif or claude-code");
  Reply reply{.content_type = "application/jsonl"};
  for (auto entry = history.entries.rbegin(); entry != history.entries.rend() && reply.body.empty(); ++entry) {
    const auto whole = TRY(engine.GetInteraction(chat, entry->interaction.id));
    if (whole.final_agent_state) reply.body = ConversationLine(*whole.final_agent_state);
  }
  return reply;
}

}  // namespace

void AddChatRoutes(Router& router, const HandlerContext& context) {
  const auto with = HandlersOf(context.engine);
  router.Add("GET", "/chats", with(ListChats));
  router.Add("POST", "/chats", with(Create));
  router.Add("GET", "/chats/*", with(GetHistory));
  router.Add("PATCH", "/chats/*", with(ChangeChat));
  router.Add("DELETE", "/chats/*", with(DeleteChat), Lane::kLong, BodyKind::kJson, Access::kTenantOrAdmin);
  router.Add("DELETE", "/chats/*/interactions/*", with(RemoveBranch));
  router.Add("GET", "/trash", with(Trash));
  router.Add("POST", "/trash/*/restore", with(Restore), Lane::kLong);
  router.Add("POST", "/chats/*/head", with(MoveHead));
  router.Add("POST", "/chats/*/undo", with(Undo));
  router.Add("POST", "/chats/*/fork", with(Fork), Lane::kLong);
  router.Add("GET", "/chats/*/usage", with(Usage), Lane::kLong, BodyKind::kJson, Access::kTenantOrAdmin);
  router.Add("GET", "/chats/*/export", with(Export), Lane::kLong);
  router.Add("GET", "/chats/*/queue", with(Queue));
  router.Add("PATCH", "/chats/*/queue/*", with(ChangeQueued));
  router.Add("DELETE", "/chats/*/queue/*", with(RemoveQueued));
  router.Add("GET", "/chats/*/tasks", with(Tasks));
  router.Add("PATCH", "/chats/*/tasks", with(ChangeTasks));
}

namespace {

// A browser sends the last cursor as a header; `after` is for clients that cannot.
Result<Outcome> Events(ChatFeed& feed, const Request& request) {
  std::optional<std::string> cursor = request.Query("after");
  if (const std::string* last = request.head.Find("last-event-id"); last && !last->empty()) cursor = *last;
  std::vector<ChatId> chats;
  for (const std::string& name : request.QueryAll("chat")) {
    const auto chat = ChatId::Parse(name);
    if (!chat) {
      return Fail(Reason::kInvalidParameter, "\"chat\" must be a chat's id");
    }
    if (std::find(chats.begin(), chats.end(), *chat) == chats.end()) chats.push_back(*chat);
  }
  auto reply = TRY(feed.Open(std::move(cursor), chats));
  return reply;
}

constexpr std::size_t kUsualMatches = 20, kMostMatches = 200;

Result<Outcome> Search(Engine& engine, const Request& request) {
  const auto limit = TRY(PageLimit(request, kUsualMatches, kMostMatches));
  std::optional<ChatId> chat;
  if (const auto name = request.Query("chat")) chat = TRY(ChatId::Parse(*name));
  return JsonReply(TRY(SearchResultOf(engine, request.Query("q").value_or(""), chat, limit)));
}

}  // namespace

void AddFeedRoutes(Router& router, const HandlerContext& context) {
  router.Add(
      "GET", "/search", [&engine = context.engine](const Request& request) { return Search(engine, request); },
      Lane::kLong);
  router.Add("GET", "/events", [&feed = context.feed](const Request& request) { return Events(feed, request); });
}

}  // namespace reprise
