#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reprise/model_client.h"

namespace reprise {

// A request to a model that talks, as the messages of a Realtime session
// (https://platform.openai.com/docs/api-reference/realtime-client-events).
struct RealtimeRequest {
  std::vector<std::string> messages;
  // The same as one JSON object, {"model", "session", "input"}, for the record. In it the name of its file stands for
  // what was recorded.
  std::string body;
};

// The recordings of the person's last message are sent as sound, if they are WAV files of 24 kHz (base/wav.h). The
// model then speaks; otherwise it writes. Earlier recordings are only named, because their words are in the text.
RealtimeRequest BuildRealtimeRequest(const ModelRequest& request, const ModelFacts& facts, std::string_view voice);

}  // namespace reprise
