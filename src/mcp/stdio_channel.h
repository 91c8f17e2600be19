#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "mcp/channel.h"
#include "process/supervised_process.h"
#include "reprise/result.h"

namespace reprise {

// What a program that has ended said of why, out of what it wrote to stderr: the lines that name an error, without the
// frames of the stack and the versions that runtimes write behind them; else its last line. On one line, bounded, valid
// UTF-8 without control characters.
std::string LastWords(std::string_view errors);

// Runs the server as a command and speaks with it in lines over its stdin and stdout. What it prints on stderr is not
// kept, but for the last line, which explains an end. When the command ends, or breaks the rules, the channel closes.
Result<std::unique_ptr<Channel>> OpenStdioChannel(const Command& command);

}  // namespace reprise
