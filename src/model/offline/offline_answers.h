#pragma once

#include <string>
#include <string_view>

#include "model/offline/offline_response.h"

namespace reprise {

// The lines that data.json has under this name.
std::string OfflineText(std::string_view name);

// What the offline model shows without a tool; see OfflineHelp.

OfflineResponse ThinkAbout(std::string text);

// Ends as `reason` says: "once" fails the first attempt alone, others play a failure of a provider, every time. What is
// no reason is answered with those there are.
OfflineResponse FailFor(std::string_view reason);

// The first attempt of a request is answered with this; the second may pass.
Error FailedOnce(std::string message);

// Behind the answer to a message with attached files: their names and sizes. Empty if it has none.
std::string TellAttachments(std::string_view message);

// How many words a text has: the offline model counts tokens so.
std::int64_t CountWords(std::string_view text);

}  // namespace reprise
