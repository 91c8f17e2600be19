#pragma once

#include <string>

#include "base/json.h"
#include "cli/server_client.h"
#include "reprise/ids.h"

namespace reprise {

// Sends one message and prints the answer's text alone, or with `json` every event, one a line. Returns the exit
// status: failure unless it was COMPLETED. An approval or a question that comes up is not waited for: it stays open,
// and the person is told how to answer it. `model` may be empty: the server's.
int RunOneShot(ServerClient& server, const ChatId& chat, const std::string& model, const std::string& message,
               bool json);

}  // namespace reprise
