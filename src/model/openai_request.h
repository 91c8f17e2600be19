#pragma once

#include <string>

#include "reprise/model_client.h"

namespace reprise {

// The body of a streamed POST /chat/completions. Built in one buffer of about the final size, because a conversation
// may be many megabytes long. Text that is not UTF-8 is mended on the way.
std::string BuildChatCompletionRequest(const ModelRequest& request);

}  // namespace reprise
