#include "http/chat_body.h"

#include <nlohmann/json.hpp>

#include "domain/codec.h"

namespace reprise {

Json ChatBody(const ChatListEntry& entry) {
  Json json = ToJson(entry.summary);
  const bool waits = entry.waiting > 0 || entry.status != InteractionStatus::kRunning;
  json["status"] = !entry.is_running() ? "idle" : waits ? "waiting" : "running";
  json["head_status"] = entry.status ? Json(ToString(*entry.status)) : Json(nullptr);
  json["waiting"] = entry.waiting;
  json["model"] = entry.summary.model.empty() ? Json(nullptr) : Json(entry.summary.model);
  json["tokens"] = entry.summary.tokens ? Json(*entry.summary.tokens) : Json(nullptr);
  return json;
}

}  // namespace reprise
