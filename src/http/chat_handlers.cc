#include "http/chat_handlers.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/json.h"
#include "domain/codec.h"
#include "engine/usage_limits.h"
#include "http/error_response.h"
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

Json ToJson(const ChatListEntry& entry) {
  Json json = reprise::ToJson(entry.summary);
  json["status"] = entry.status ? Json(ToString(*entry.status)) : Json(nullptr);
  return json;
}

Result<Outcome> ListChats(Engine& engine, const Request& request) {
  const auto limit = PageLimit(request, kUsualChats, kMostChats);
  if (!limit) return Fail(limit.error());
  std::optional<ListPosition> after;
  if (const auto cursor = request.Query("cursor")) {
    after = ListPosition::FromCursor(*cursor);
    if (!after) return BadParameter("\"cursor\" is not one that this server gave");
  }
  auto chats = engine.ListChats();
  if (!chats) return Fail(std::move(chats.error()));
  std::sort(chats->begin(), chats->end(), [](const ChatListEntry& a, const ChatListEntry& b) {
    return ListPosition::Of(a.summary).IsBefore(ListPosition::Of(b.summary));
  });
  auto first = chats->begin();
  if (after) {
    first = std::find_if(first, chats->end(),
                         [&](const ChatListEntry& entry) { return after->IsBefore(ListPosition::Of(entry.summary)); });
  }
  const auto left = static_cast<std::size_t>(chats->end() - first);
  const auto last = first + static_cast<std::ptrdiff_t>(std::min(*limit, left));
  Json page = Json::array();
  for (auto entry = first; entry != last; ++entry) page.push_back(ToJson(*entry));
  Json next = nullptr;
  if (last != chats->end()) {
    next = ListPosition::Of(std::prev(last)->summary).ToCursor();
  } else {
    // They have no time to be sorted by: behind all others, on the last page.
    const auto unreadable = engine.ListUnreadableChats();
    if (!unreadable) return Fail(unreadable.error());
    for (const UnreadableChat& one : *unreadable) {
      page.push_back({{"id", one.id.str()}, {"error", {{"code", one.error.reason}, {"message", one.error.message}}}});
    }
  }
  return JsonReply({{"chats", std::move(page)}, {"next", std::move(next)}});
}

Result<Outcome> Create(Engine& engine, const Request& request) {
  const auto body = ParseCreateChatBody(request.body);
  if (!body) return Fail(body.error());
  const auto summary = engine.CreateChat(body->id, body->title);
  if (!summary) return Fail(summary.error());
  Reply reply = JsonReply(reprise::ToJson(*summary), 201);
  reply.headers.emplace_back("Location", "/chats/" + summary->id.str());
  return reply;
}

Json ToJson(const History& history, bool all_branches, const PriceTable& prices) {
  Json json = reprise::ToJson(history.summary);
  json["usage"] = UsageBody(UsageOf(history).branch, prices);
  Json interactions = Json::array();
  for (const HistoryEntry& entry : history.entries) {
    Json interaction = reprise::ToJson(entry.interaction);
    if (all_branches) interaction["superseded"] = entry.superseded;
    interactions.push_back(std::move(interaction));
  }
  json["interactions"] = std::move(interactions);
  if (history.damaged.empty()) return json;
  Json damaged = Json::array();
  for (const DamagedInteraction& each : history.damaged) {
    damaged.push_back(
        {{"interaction_id", each.id.str()}, {"error", {{"code", each.error.reason}, {"message", each.error.message}}}});
  }
  json["damaged"] = std::move(damaged);
  return json;
}

Result<Outcome> GetChat(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  const std::string branches = request.Query("branches").value_or("head");
  if (branches != "head" && branches != "all") return BadParameter("\"branches\" must be \"head\" or \"all\"");
  const bool all = branches == "all";
  const auto history = engine.GetHistory(*chat, all);
  if (!history) return Fail(history.error());
  return JsonReply(ToJson(*history, all, engine.options().prices));
}

Result<Outcome> Usage(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  const auto usage = engine.GetUsage(*chat);
  if (!usage) return Fail(usage.error());
  const PriceTable& prices = engine.options().prices;
  return JsonReply(
      {{"chat_id", chat->str()}, {"branch", UsageBody(usage->branch, prices)}, {"all", UsageBody(usage->all, prices)}});
}

Result<Outcome> Rename(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  const auto title = ParseRenameBody(request.body);
  if (!title) return Fail(title.error());
  const auto summary = engine.RenameChat(*chat, *title);
  if (!summary) return Fail(summary.error());
  return JsonReply(reprise::ToJson(*summary));
}

Result<Outcome> DeleteChat(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  if (auto body = ParseEmptyBody(request.body); !body) return Fail(std::move(body.error()));
  if (auto deleted = engine.DeleteChat(*chat); !deleted) return Fail(std::move(deleted.error()));
  return JsonReply({{"status", "deleted"}, {"chat_id", chat->str()}});
}

Result<Outcome> Trash(Engine& engine, const Request&) {
  const auto trash = engine.ListTrash();
  if (!trash) return Fail(trash.error());
  Json entries = Json::array();
  for (const TrashEntry& entry : *trash) entries.push_back(ToJson(entry));
  return JsonReply({{"entries", std::move(entries)}});
}

Result<Outcome> Restore(Engine& engine, const Request& request) {
  if (auto body = ParseEmptyBody(request.body); !body) return Fail(std::move(body.error()));
  const auto summary = engine.RestoreChat(request.captures.at(0));
  if (!summary) return Fail(summary.error());
  return JsonReply(reprise::ToJson(*summary));
}

Result<Outcome> MoveHead(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  const auto interaction = ParseHeadBody(request.body);
  if (!interaction) return Fail(interaction.error());
  const auto summary = engine.MoveHead(*chat, *interaction);
  if (!summary) return Fail(summary.error());
  return JsonReply(reprise::ToJson(*summary));
}

Result<Outcome> Undo(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  if (auto body = ParseEmptyBody(request.body); !body) return Fail(std::move(body.error()));
  const auto summary = engine.Undo(*chat);
  if (!summary) return Fail(summary.error());
  return JsonReply(reprise::ToJson(*summary));
}

Result<Outcome> Fork(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  const auto body = ParseForkBody(request.body);
  if (!body) return Fail(body.error());
  const auto copy = engine.ForkChat(*chat, body->interaction, body->chat, body->title);
  if (!copy) return Fail(copy.error());
  Reply reply = JsonReply(ToJson(*copy), 201);
  reply.headers.emplace_back("Location", "/chats/" + copy->summary.id.str());
  return reply;
}

Json ToJson(const QueueEntry& entry) {
  Json json = reprise::ToJson(entry.message);
  json["error"] = Json(nullptr);
  if (entry.error) json["error"] = {{"code", entry.error->reason}, {"message", entry.error->message}};
  return json;
}

Result<Outcome> Queue(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  const auto entries = engine.GetQueue(*chat);
  if (!entries) return Fail(entries.error());
  Json queue = Json::array();
  for (const QueueEntry& entry : *entries) queue.push_back(ToJson(entry));
  return JsonReply({{"queue", std::move(queue)}});
}

Result<Outcome> ChangeQueued(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  const auto message = ParseQueuedBody(request.body);
  if (!message) return Fail(message.error());
  const auto changed = engine.ChangeQueued(*chat, request.captures.at(1), *message);
  if (!changed) return Fail(changed.error());
  return JsonReply(ToJson(*changed));
}

Result<Outcome> RemoveQueued(Engine& engine, const Request& request) {
  const auto chat = ChatInPath(request);
  if (!chat) return Fail(chat.error());
  if (auto body = ParseEmptyBody(request.body); !body) return Fail(std::move(body.error()));
  if (auto removed = engine.RemoveQueued(*chat, request.captures.at(1)); !removed) return Fail(removed.error());
  return JsonReply({{"status", "removed"}, {"id", request.captures.at(1)}});
}

Result<Outcome> Tasks(Engine& engine, const Request& request) {
  auto chat = ChatInPath(request);
  if (!chat) return Fail(std::move(chat.error()));
  auto agenda = engine.GetAgenda(*chat);
  if (!agenda) return Fail(std::move(agenda.error()));
  return Reply{.body = DumpJson(ToJson(*agenda))};
}

Result<Outcome> ChangeTasks(Engine& engine, const Request& request) {
  auto chat = ChatInPath(request);
  if (!chat) return Fail(std::move(chat.error()));
  auto change = ParseAgendaBody(request.body);
  if (!change) return Fail(std::move(change.error()));
  auto agenda = engine.ChangeAgenda(*chat, std::move(*change));
  if (!agenda) return Fail(std::move(agenda.error()));
  return Reply{.body = DumpJson(ToJson(*agenda))};
}

}  // namespace

void AddChatRoutes(Router& router, const HandlerContext& context) {
  const auto with = [&engine = context.engine](Result<Outcome> (*handler)(Engine&, const Request&)) {
    return [&engine, handler](const Request& request) { return handler(engine, request); };
  };
  router.Add("GET", "/chats", with(ListChats));
  router.Add("POST", "/chats", with(Create));
  router.Add("GET", "/chats/*", with(GetChat));
  router.Add("PATCH", "/chats/*", with(Rename));
  router.Add("DELETE", "/chats/*", with(DeleteChat));
  router.Add("GET", "/trash", with(Trash));
  router.Add("POST", "/trash/*/restore", with(Restore));
  router.Add("POST", "/chats/*/head", with(MoveHead));
  router.Add("POST", "/chats/*/undo", with(Undo));
  router.Add("POST", "/chats/*/fork", with(Fork));
  router.Add("GET", "/chats/*/usage", with(Usage));
  router.Add("GET", "/chats/*/queue", with(Queue));
  router.Add("PATCH", "/chats/*/queue/*", with(ChangeQueued));
  router.Add("DELETE", "/chats/*/queue/*", with(RemoveQueued));
  router.Add("GET", "/chats/*/tasks", with(Tasks));
  router.Add("PATCH", "/chats/*/tasks", with(ChangeTasks));
}

}  // namespace reprise
