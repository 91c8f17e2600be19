#include "http/feed_handlers.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/try.h"
#include "http/chat_feed.h"
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

}  // namespace

void AddFeedRoutes(Router& router, const HandlerContext& context) {
  router.Add("GET", "/events", [&feed = context.feed](const Request& request) { return Events(feed, request); });
}

}  // namespace reprise
