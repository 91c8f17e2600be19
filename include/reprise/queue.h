#pragma once

#include <string>

#include "reprise/timestamp.h"

namespace reprise {

// What becomes of a run when its last client has gone.
enum class OnDisconnect { kCancel, kContinue };

// A message that waits for the runs before it in its chat.
struct QueuedMessage {
  std::string id;  // "queued_" and 128 random bits
  std::string user_message;
  std::string model{};  // empty: the default, when it starts
  OnDisconnect on_disconnect = OnDisconnect::kCancel;
  Timestamp created_at{};
  bool operator==(const QueuedMessage&) const = default;
};

}  // namespace reprise
