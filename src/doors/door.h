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

// What the routes of every door work with; a copy is one too. The engine outlives it.
struct Door {
  Engine& engine;
  std::shared_ptr<Conversations> conversations;  // one for all doors: they lead to the same chats
  bool has_page = false;

  // Where the page is, as this client reaches us; empty: there is none. REQUIRES: the gate has let the host pass.
  std::string PageAddress(const Request& request) const;

  // Does what the plan of `find` says (BeginWithFiles). Finds another plan if somebody else has changed the chat
  // meanwhile, or is busy in a chat that was found by its words alone (not `is_named`): another may have the same.
  Result<EventSubscription> Begin(const std::function<Result<ConversationPlan>()>& find, bool is_named,
                                  const std::vector<ForeignFile>& files, const StartRequest& start) const;
};

// Each adds the routes of one door: the folder of its name.
namespace ag_ui {
void AddRoutes(Router& router, const Door& door);
}
namespace mcp_door {
void AddRoutes(Router& router, const Door& door);
}
namespace openai {
void AddRoutes(Router& router, const Door& door);
}

// The header that names a run's events (Content-Location); none for a run that waits.
HeaderList EventsLocation(const EventSubscription& run);
// The run's events, as they stand in its log.
StreamReply StreamOf(EventSubscription run);
// What a translator makes of them. `client` lives as long as the client listens (Conversations::NoteClient).
StreamReply StreamOf(TranslatedStream stream, HeaderList headers, std::shared_ptr<void> client = nullptr);

// A result of Engine::AnswerApproval or AnswerInput. Fails not for a question that was answered before, here or
// elsewhere, or has expired: the first answer counts.
template <typename T>
Result<void> UnlessSettled(Result<T> given) {
  if (given || given.error().Is(Reason::kAlreadyProcessed) || given.error().Is(Reason::kStale) ||
      given.error().Is(Reason::kExpired)) {
    return {};
  }
  return Fail(std::move(given.error()));
}

}  // namespace reprise
