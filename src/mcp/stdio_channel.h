#pragma once

#include <memory>

#include "mcp/channel.h"
#include "process/supervised_process.h"
#include "reprise/result.h"

namespace reprise {

// Runs the server as a command and speaks with it in lines over its stdin and stdout. What it prints on stderr is not
// kept, but for the last line, which explains an end. When the command ends, or breaks the rules, the channel closes.
Result<std::unique_ptr<Channel>> OpenStdioChannel(const Command& command);

}  // namespace reprise
