#include "http/chat_handlers.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/try.h"
#include "domain/codec.h"
#include "http/chat_body.h"
#include "http/error_response.h"
#include "http/file_preview_body.h"
#include "http/history_handler.h"
#include "http/requests.h"
#include "http/usage_body.h"

namespace reprise {
namespace {

constexpr std::size_t kUsualChats = 50, kMostChats = 500;

tl::unexpected<Error> BadParameter(std::string message) {
  return Fail(Error{.code = ErrorCode::kInvalidArgument, .reason = "invalid_parameter", .message = std::move(message)});
}

// A place in the list of chats, newest first. It stays right when chats are added or go.
struct ListPosition {
  std::int64_t updated_ms;
  std::string chat;

  static ListPosition Of(const ChatSummary& summary) {
    return {summary.updated_at.time_since_epoch().count(), summary.id.str()};
  }
  bool IsBefore(const ListPosition& other) const {
    return updated_ms != other.updated_ms ? updated_ms > other.updated_ms : chat < other.chat;
  }
  std::string ToCursor() const { return std::to_string(updated_ms) + "." + chat; }
  static std::optional<ListPosition> FromCursor(std::string_view cursor) {
    ListPosition position{};
    const auto [end, failure] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), position.updated_ms);
    const auto used = static_cast<std::size_t>(end - cursor.data());
    if (failure != std::errc() || used >= cursor.size() || cursor[used] != '.') return std::nullopt;
    position.chat = cursor.substr(used + 1);
    if (!ChatId::Parse(position.chat)) return std::nullopt;
    return position;
  }
};

Result<Outcome> ListChats(Engine& engine, const Request& request) {
  const auto limit = TRY(PageLimit(request, kUsualChats, kMostChats));
  return JsonReply(TRY(PageOfChats(engine, limit, request.Query("cursor"))));
}

Result<Outcome> Create(Engine& engine, const Request& request) {
  const auto body = TRY(ParseCreateChatBody(request.body));
  const auto summary = TRY(engine.CreateChat(body.id, body.title));
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
  json.erase("request");  // its client's own
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

}  // namespace

Result<Json> PageOfChats(Engine& engine, std::size_t limit, const std::optional<std::string>& cursor) {
  std::optional<ListPosition> after;
  if (cursor) {
    after = ListPosition::FromCursor(*cursor);
    if (!after) return BadParameter("\"cursor\" is not one that this server gave");
  }
  auto chats = TRY(engine.ListChats());
  std::sort(chats.begin(), chats.end(), [](const ChatListEntry& a, const ChatListEntry& b) {
    return ListPosition::Of(a.summary).IsBefore(ListPosition::Of(b.summary));
  });
  auto first = chats.begin();
  if (after) {
    first = std::find_if(first, chats.end(),
                         [&](const ChatListEntry& entry) { return after->IsBefore(ListPosition::Of(entry.summary)); });
  }
  const auto left = static_cast<std::size_t>(chats.end() - first);
  const auto last = first + static_cast<std::ptrdiff_t>(std::min(limit, left));
  Json page = Json::array();
  for (auto entry = first; entry != last; ++entry) page.push_back(ChatBody(*entry));
  Json next = nullptr;
  if (last != chats.end()) {
    next = ListPosition::Of(std::prev(last)->summary).ToCursor();
  } else {
    // They have no time to be sorted by: behind all others, on the last page.
    const auto unreadable = TRY(engine.ListUnreadableChats());
    for (const UnreadableChat& one : unreadable) {
      page.push_back({{"id", one.id.str()}, {"error", {{"code", one.error.reason}, {"message", one.error.message}}}});
    }
  }
  return Json{{"chats", std::move(page)}, {"next", std::move(next)}};
}

void AddChatRoutes(Router& router, const HandlerContext& context) {
  const auto with = [&engine = context.engine](Result<Outcome> (*handler)(Engine&, const Request&)) {
    return [&engine, handler](const Request& request) { return handler(engine, request); };
  };
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

}  // namespace reprise
