#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// A line of a user's message, understood as the call of one tool.
struct OfflineCommand {
  std::string tool;
  std::string arguments;  // JSON object text
  std::string lead;       // what the answer says before the tool's output; may be empty
};

// nullopt if the line is no command. Understands the words of OfflineHelp, with or without a colon behind them and in
// any case, and a few spoken forms ("what is 2+2?", "what time is it?").
std::optional<OfflineCommand> ParseOfflineCommand(std::string_view line);

// The commands among the lines of a message, in their order.
std::vector<OfflineCommand> ParseOfflineCommands(std::string_view message);

// A message that asks the model to show something itself.
struct OfflineShow {
  std::string_view what;  // "demo", "help", "markdown", "think", "slow", "fail"
  std::string text = {};  // behind the colon
};

// nullopt for any other message. "demo", "help" and "markdown" are the whole message; what "think:" and "slow:" are
// given may have several lines. Text of attached files is no part of it.
std::optional<OfflineShow> ParseOfflineShow(std::string_view message);

// Says what is understood, in Markdown.
const std::string& OfflineHelp();

}  // namespace reprise
