#include "doors/chat_lists.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/try.h"
#include "domain/codec.h"

namespace reprise {
namespace {

// A cursor stays valid when chats are added or deleted.
std::string CursorOf(const ChatPlace& place) {
  return std::to_string(place.updated_at.time_since_epoch().count()) + "." + place.id.str();
}

std::optional<ChatPlace> PlaceFromCursor(std::string_view cursor) {
  const std::size_t dot = std::min(cursor.find('.'), cursor.size());
  const auto updated_ms = ParseNumber<std::int64_t>(cursor.substr(0, dot));
  const auto chat = ChatId::Parse(std::string(cursor.substr(std::min(dot + 1, cursor.size()))));
  if (!updated_ms || !chat) return std::nullopt;
  return ChatPlace{.updated_at = Timestamp(std::chrono::milliseconds(*updated_ms)), .id = *chat};
}

}  // namespace

Json ChatBody(const ChatListEntry& entry) {
  Json json = ToJson(entry.summary);
  const bool waits = entry.waiting > 0 || entry.status != InteractionStatus::kRunning;
  json["status"] = !entry.is_running() ? "idle" : waits ? "waiting" : "running";
  json["head_status"] = entry.status ? Json(ToString(*entry.status)) : Json(nullptr);
  json["waiting"] = entry.waiting;
  if (entry.jobs > 0) json["jobs"] = entry.jobs;
  if (entry.damaged) json["damaged"] = true;
  json["model"] = entry.summary.model.empty() ? Json(nullptr) : Json(entry.summary.model);
  json["tokens"] = entry.summary.tokens ? Json(*entry.summary.tokens) : Json(nullptr);
  return json;
}

Result<Json> PageOfChats(Engine& engine, std::size_t limit, const std::optional<std::string>& cursor) {
  std::optional<ChatPlace> after;
  if (cursor) {
    after = PlaceFromCursor(*cursor);
    if (!after) {
      return Fail(Reason::kInvalidParameter, "\"cursor\" is not one that this server gave");
    }
  }
  const auto listed = TRY(engine.ListPage(after, limit));
  Json page = Json::array();
  for (const ChatListEntry& entry : listed.chats) page.push_back(ChatBody(entry));
  Json next = nullptr;
  if (listed.next) {
    next = CursorOf(*listed.next);
  } else {
    // Unreadable chats have no time to sort by, so they end the last page.
    const auto unreadable = TRY(engine.ListUnreadableChats());
    for (const UnreadableChat& one : unreadable) {
      page.push_back({{"id", one.id.str()}, {"error", {{"code", one.error.reason}, {"message", one.error.message}}}});
    }
  }
  return Json{{"chats", std::move(page)}, {"next", std::move(next)}};
}

Result<Json> SearchResultOf(Engine& engine, const std::string& text, const std::optional<ChatId>& chat,
                            std::size_t limit) {
  const auto result = TRY(engine.Search(text, chat, limit));
  Json matches = Json::array();
  for (const SearchMatch& match : result.matches) {
    matches.push_back({{"chat_id", match.chat_id.str()},
                       {"title", match.title},
                       {"interaction_id", match.interaction_id.str()},
                       {"where", match.where},
                       {"superseded", match.superseded},
                       {"snippet", match.snippet}});
  }
  return Json{{"matches", std::move(matches)}, {"truncated", result.truncated}};
}

}  // namespace reprise
