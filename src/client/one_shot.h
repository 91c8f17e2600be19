#pragma once

#include <string>

#include "client/server_client.h"
#include "reprise/ids.h"
#include "terminal/console.h"

namespace reprise {

// Sends one message and prints only the answer's text, or with `json` every event, one a line. Returns the exit
// status: failure unless the interaction is COMPLETED. Does not wait for an approval or a question: that stays open,
// and a warning says how to answer it. Ctrl-C cancels the run. An empty `model` is the server's.
int RunOneShot(ServerClient& server, Interrupts& interrupts, const ChatId& chat, const std::string& model,
               const std::string& message, bool json);

}  // namespace reprise
