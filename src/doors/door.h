#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "doors/conversations.h"
#include "doors/translator.h"
#include "reprise/engine.h"
#include "wire/message.h"
#include "wire/router.h"

namespace reprise {

// A file within a message of a foreign client.
struct ForeignFile {
  std::string filename, mime_type, content;
};

// Executes the plan with the files of the last message, which become files of the chat and of the message. The same
// message with other files counts as an edit. Fails like Conversations::Begin and Engine::AddFile.
Result<EventSubscription> BeginWithFiles(Engine& engine, Conversations& conversations, ConversationPlan plan,
                                         const std::vector<ForeignFile>& files, StartRequest start);

// Shared by the routes of all doors. Cheap to copy. The engine must outlive all copies.
struct Door {
  Engine& engine;
  std::shared_ptr<Conversations> conversations;  // one object, because all doors lead to the same chats
  bool has_page = false;

  // The page's address as this client reaches it; empty without a page. REQUIRES: the gate has accepted the host.
  std::string PageAddress(const Request& request) const;

  // Takes what the client's headers say (RunHeadersOf) into the request and the conversation; the model only if the
  // request names none. The failures of Engine::OpenWorkspace.
  Result<void> TakeHeaders(const Request& request, StartRequest& start, ForeignConversation& conversation) const;

  // Begins a run by the plan that `find` returns (BeginWithFiles). Calls `find` again if another client has changed the
  // chat since. Also if another client runs in a chat that was found by its text alone (not `is_named`), because
  // another chat may have that text too.
  Result<EventSubscription> Begin(const std::function<Result<ConversationPlan>()>& find, bool is_named,
                                  const std::vector<ForeignFile>& files, const StartRequest& start) const;
};

// Each adds the routes of one door, in the folder of that name.
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
// Streams a translator's output. Keeps `client` alive until the client is gone (see Conversations::NoteClient).
StreamReply StreamOf(TranslatedStream stream, HeaderList headers, std::shared_ptr<void> client = nullptr);

// The result of Engine::AnswerApproval or AnswerInput, but success if the question was answered before or has expired,
// because only the first answer counts.
template <typename T>
Result<void> UnlessSettled(Result<T> given) {
  if (given || given.error().Is(Reason::kAlreadyProcessed) || given.error().Is(Reason::kStale) ||
      given.error().Is(Reason::kExpired)) {
    return {};
  }
  return Fail(std::move(given.error()));
}

}  // namespace reprise
