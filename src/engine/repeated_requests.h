#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "engine/busy_chats.h"
#include "engine/interactions.h"
#include "engine/services.h"
#include "reprise/ids.h"
#include "reprise/interaction.h"
#include "reprise/result.h"

namespace reprise {

// Finds what a request has begun that is sent again (draft-ietf-httpapi-idempotency-key-header). The key is on record
// with the interaction, so that it is found after a restart and at another server. What is looked at: the run of the
// chat, what waits in it, and the newest kLooksBack interactions of its branch that are younger than kLife.
//
// A request without a key may come again too: client libraries repeat what has failed, or what took them too long. What
// it began must not happen twice if a tool that is not read-only was called and the run has failed within the last
// kUnrepeatable. If its client waits for a whole answer, no person has seen anything of it: then the run that goes on,
// and the one that was cancelled as its client or the server left, count as well. Thread-safe.
class RepeatedRequests {
 public:
  static constexpr std::size_t kLooksBack = 32;
  static constexpr std::chrono::hours kLife{24};
  static constexpr std::chrono::minutes kUnrepeatable{10};

  RepeatedRequests(EngineServices& services, BusyChats& busy, Interactions& interactions)
      : services_(services), busy_(busy), interactions_(interactions) {}

  // nullopt: it comes for the first time, or may be done again. kUnprocessable (reason "idempotency_key_reused": the
  // key was another request's). kConflict (reason "request_waits": it is in the queue and has not begun).
  Result<std::optional<InteractionId>> Find(const ChatId& chat, const ClientRequest& request);

 private:
  // What is known of a chat's branch: which requests have begun its newest interactions, up to this head.
  struct Seen {
    InteractionId head;
    std::map<std::string, std::pair<ClientRequest, InteractionId>> by_key{};
  };
  using Found = std::optional<std::pair<ClientRequest, InteractionId>>;
  Result<Found> FindRunning(const ChatId& chat, const std::string& key);
  Result<Found> FindStored(const ChatId& chat, const std::string& key);
  Result<std::optional<InteractionId>> FindUnrepeatable(const ChatId& chat, const ClientRequest& request);
  void Remember(const ChatId& chat, Seen seen);

  EngineServices& services_;
  BusyChats& busy_;
  Interactions& interactions_;
  Mutex mutex_;
  std::unordered_map<ChatId, Seen> seen_ GUARDED_BY(mutex_);
};

}  // namespace reprise
