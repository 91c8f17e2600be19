#pragma once

#include <string>
#include <string_view>

#include "model/offline/offline_response.h"

namespace reprise {

// What the offline model shows without a tool; see OfflineHelp.

OfflineResponse ThinkAbout(std::string text);
OfflineResponse SaySlowly(std::string text);
OfflineResponse ShowMarkdown();

// Ends as `reason` says: "once" fails the first attempt alone, others play a failure of a provider, every time. What is
// no reason is answered with those there are.
OfflineResponse FailFor(std::string_view reason);

// Behind the answer to a message with attached files: their names and sizes. Empty if it has none.
std::string TellAttachments(std::string_view message);

}  // namespace reprise
