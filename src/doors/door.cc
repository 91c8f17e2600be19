#include "doors/door.h"

#include <utility>

#include "base/try.h"

namespace reprise {

std::string Door::PageAddress(const Request& request) const {
  const std::string* host = request.head.Find("host");
  if (!has_page || host == nullptr) return {};
  const std::string* scheme = request.head.Find("x-forwarded-proto");
  return (scheme != nullptr && *scheme == "https" ? "https://" : "http://") + *host + "/";
}

Result<EventSubscription> Door::Begin(const std::function<Result<ConversationPlan>()>& find, bool is_named,
                                      const std::vector<ForeignFile>& files, const StartRequest& start) const {
  constexpr int kMostTries = 5;
  std::optional<ChatId> busy;
  for (int tries = 1;; ++tries) {
    const auto plan = TRY(find());
    auto started = BeginWithFiles(engine, *conversations, plan, files, start);
    if (started || tries == kMostTries) return started;
    if (started.error().Is(Reason::kBusy) && !is_named && busy != plan.chat) {
      busy = plan.chat;
    } else if (!started.error().Is(Reason::kStale)) {
      return started;
    }
  }
}

HeaderList EventsLocation(const EventSubscription& run) {
  if (!run.interaction_id) return {};
  return {
      {"Content-Location", "/chats/" + run.chat_id.str() + "/interactions/" + run.interaction_id->str() + "/events"}};
}

StreamReply StreamOf(EventSubscription run) {
  StreamReply reply{.log = run.log, .hold = nullptr, .headers = EventsLocation(run)};
  reply.hold = std::make_shared<EventSubscription>(std::move(run));
  return reply;
}

StreamReply StreamOf(TranslatedStream stream, HeaderList headers, std::shared_ptr<void> client) {
  using Held = std::pair<std::shared_ptr<void>, std::shared_ptr<void>>;
  return {.log = std::move(stream.log),
          .hold = std::make_shared<Held>(std::move(stream.hold), std::move(client)),
          .headers = std::move(headers),
          .forgets = true};
}

}  // namespace reprise
