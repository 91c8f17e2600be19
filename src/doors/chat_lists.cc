#include "doors/chat_lists.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/try.h"
#include "domain/codec.h"

namespace reprise {
namespace {

// A position in the list of chats, newest first. It stays valid when chats are added or deleted.
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

}  // namespace

Json ChatBody(const ChatListEntry& entry) {
  Json json = ToJson(entry.summary);
  const bool waits = entry.waiting > 0 || entry.status != InteractionStatus::kRunning;
  json["status"] = !entry.is_running() ? "idle" : waits ? "waiting" : "running";
  json["head_status"] = entry.status ? Json(ToString(*entry.status)) : Json(nullptr);
  json["waiting"] = entry.waiting;
  if (entry.jobs > 0) json["jobs"] = entry.jobs;
  json["model"] = entry.summary.model.empty() ? Json(nullptr) : Json(entry.summary.model);
  json["tokens"] = entry.summary.tokens ? Json(*entry.summary.tokens) : Json(nullptr);
  return json;
}

Result<Json> PageOfChats(Engine& engine, std::size_t limit, const std::optional<std::string>& cursor) {
  std::optional<ListPosition> after;
  if (cursor) {
    after = ListPosition::FromCursor(*cursor);
    if (!after) {
      return Fail(Reason::kInvalidParameter, "\"cursor\" is not one that this server gave");
    }
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
