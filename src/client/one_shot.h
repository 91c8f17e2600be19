#pragma once

#include <string>

#include "client/server_client.h"
#include "reprise/ids.h"
#include "terminal/console.h"

namespace reprise {

// Sends one message and prints the answer's text alone, or with `json` every event, one a line. Returns the exit
// status: failure unless it was COMPLETED. An approval or a question that comes up is not waited for: it stays open,
// and the person is told how to answer it. Ctrl-C cancels the run. `model` may be empty: the server's.
int RunOneShot(ServerClient& server, Interrupts& interrupts, const ChatId& chat, const std::string& model,
               const std::string& message, bool json);

}  // namespace reprise
