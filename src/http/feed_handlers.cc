#include "http/feed_handlers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/try.h"
#include "http/chat_feed.h"
#include "http/error_response.h"
#include "http/requests.h"

namespace reprise {
namespace {

// A browser says by header what it has seen last; `after` is for those that cannot.
Result<Outcome> Events(ChatFeed& feed, const Request& request) {
  std::optional<std::string> cursor = request.Query("after");
  if (const std::string* last = request.head.Find("last-event-id"); last && !last->empty()) cursor = *last;
  std::vector<ChatId> chats;
  for (const std::string& name : request.QueryAll("chat")) {
    const auto chat = ChatId::Parse(name);
    if (!chat) {
      return Fail(Error{.code = ErrorCode::kInvalidArgument,
                        .reason = "invalid_parameter",
                        .message = "\"chat\" must be a chat's id"});
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

void AddFeedRoutes(Router& router, const HandlerContext& context) {
  router.Add(
      "GET", "/search", [&engine = context.engine](const Request& request) { return Search(engine, request); },
      Lane::kLong);
  router.Add("GET", "/events", [&feed = context.feed](const Request& request) { return Events(feed, request); });
}

}  // namespace reprise
