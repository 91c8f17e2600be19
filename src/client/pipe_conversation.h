#pragma once

#include <string>

#include "client/server_link.h"
#include "reprise/ids.h"
#include "terminal/terminal_input.h"

namespace reprise {

// A conversation with the agent of a running server, line by line: for a pipe, and for --json. It reads one line and
// prints all that follows from it before it reads the next. A question of the run takes the next line as its answer. At
// a terminal there is TerminalClient.
//
// With `json`, standard output gets events as lines of JSON, and questions go to standard error. An empty `model` is
// the chat's or the server's. Begins with the line `opening`, if it is not empty. Returns the exit status when the
// input ends or the person leaves. REQUIRES: `link` is reached.
int RunPipeConversation(ServerLink& link, TerminalInput& input, const ChatId& chat, std::string model, bool json,
                        const std::string& opening);

}  // namespace reprise
