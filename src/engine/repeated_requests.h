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

// Finds the run of a request that is sent again (draft-ietf-httpapi-idempotency-key-header). The key is stored with the
// interaction, so it is found after a restart and by another server. The search covers the chat's run, its queue, and
// the newest kLooksBack interactions of its branch that are younger than kLife.
//
// A request without a key may be repeated too, because client libraries retry after failures and timeouts. It must not
// run twice if its run failed within the last kUnrepeatable after calling a tool that is not read-only. If its client
// waits for a whole answer, no person has seen any of it, so a run that still goes on, or that was cancelled because
// the client or the server left, counts as well. Thread-safe.
class RepeatedRequests {
 public:
  static constexpr std::size_t kLooksBack = 32;
  static constexpr std::chrono::hours kLife{24};
  static constexpr std::chrono::minutes kUnrepeatable{10};

  RepeatedRequests(EngineServices& services, BusyChats& busy, Interactions& interactions)
      : services_(services), busy_(busy), interactions_(interactions) {}

  // nullopt if the request is new or may be done again. kUnprocessable (reason "idempotency_key_reused") if another
  // request had the key, kConflict (reason "request_waits") if it is queued and has not begun.
  Result<std::optional<InteractionId>> Find(const ChatId& chat, const ClientRequest& request);

 private:
  // Known requests of a chat's branch: those that began its newest interactions, up to this head.
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
