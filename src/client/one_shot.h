#pragma once

#include <string>

#include "client/server_link.h"
#include "reprise/ids.h"
#include "terminal/console.h"

namespace reprise {

// Sends one message and prints only the answer's text, or with `json` every event, one a line. Returns the exit
// status: failure unless the interaction is COMPLETED. Does not wait for an approval or a question: that stays open,
// and a warning says how to answer it. Ctrl-C cancels the run. Fails if the chat works in another folder.
int RunOneShot(ServerLink& link, Interrupts& interrupts, const ChatId& chat, const std::string& message, bool json);

}  // namespace reprise
