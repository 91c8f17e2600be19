#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// A line of a user's message that calls one tool.
struct OfflineCommand {
  std::string tool;
  std::string arguments;  // JSON object text
  std::string lead;       // the answer's text before the tool's output; may be empty
};

// nullopt if the line is no command. Understands the commands of OfflineHelp, in any case and with or without a colon,
// and a few spoken forms ("what is 2+2?", "what time is it?").
std::optional<OfflineCommand> ParseOfflineCommand(std::string_view line);

// The commands among a message's lines, in order.
std::vector<OfflineCommand> ParseOfflineCommands(std::string_view message);

// A message that asks the model itself to show something.
struct OfflineShow {
  std::string_view what;  // "demo", "help", "markdown", "think", "slow", "fail"
  std::string text = {};  // after the colon
};

// nullopt for any other message. "demo", "help" and "markdown" must be the whole message; the text after "think:" and
// "slow:" may have several lines. Text of attached files does not count.
std::optional<OfflineShow> ParseOfflineShow(std::string_view message);

// Describes the commands, in Markdown.
const std::string& OfflineHelp();

}  // namespace reprise
