#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "doors/conversations.h"
#include "doors/foreign_files.h"
#include "doors/translated_stream.h"
#include "reprise/engine.h"
#include "wire/message.h"
#include "wire/router.h"

namespace reprise {

// What the routes of every door share. Cheap to copy. The engine must outlive all copies.
struct Door {
  Engine& engine;
  std::shared_ptr<Conversations> conversations;  // one object, because all doors lead to the same chats
  bool has_page = false;

  // Where the page is, as this client reaches us; empty: there is none. REQUIRES: the gate has let the host pass.
  std::string PageAddress(const Request& request) const;

  // Begins a run by the plan that `find` returns (BeginWithFiles). Calls `find` again if another client has changed the
  // chat since, or runs in it and the chat was found by its text alone (not `is_named`), as another chat may have that
  // text too.
  Result<EventSubscription> Begin(const std::function<Result<ConversationPlan>()>& find, bool is_named,
                                  const std::vector<ForeignFile>& files, const StartRequest& start) const;
};

// Each adds the routes of the door in the folder of that name.
namespace ag_ui {
void AddRoutes(Router& router, const Door& door);
}
namespace mcp_door {
void AddRoutes(Router& router, const Door& door);
}
namespace openai {
void AddRoutes(Router& router, const Door& door);
}

// The Content-Location header with the address of a run's events; empty for a run that waits in the queue.
HeaderList EventsLocation(const EventSubscription& run);
// Streams the events of the run as its log holds them.
StreamReply StreamOf(EventSubscription run);
// Streams what a translator makes of the events. Keeps `client` alive until the client is gone (see
// Conversations::NoteClient).
StreamReply StreamOf(TranslatedStream stream, HeaderList headers, std::shared_ptr<void> client = nullptr);

// The result of Engine::AnswerApproval or AnswerInput, where a question that was answered before or has expired is no
// failure, because the first answer counts.
template <typename T>
Result<void> UnlessSettled(Result<T> given) {
  if (given || given.error().Is(Reason::kAlreadyProcessed) || given.error().Is(Reason::kStale) ||
      given.error().Is(Reason::kExpired)) {
    return {};
  }
  return Fail(std::move(given.error()));
}

}  // namespace reprise
