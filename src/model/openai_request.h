#pragma once

#include <string>

#include "reprise/model_client.h"

namespace reprise {

// The body of a streamed POST /chat/completions. Built in one buffer of about the final size, because a conversation
// may be many megabytes long. Text that is not UTF-8 is mended on the way. Thinking goes back only behind the last user
// message: servers that know it want it for as long as the turn lasts and no longer, and others may refuse it.
std::string BuildChatCompletionRequest(const ModelRequest& request);

}  // namespace reprise
