#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/grammar_docs.h"

namespace reprise {

// What makes a shell ("bash", "zsh", "fish") complete the commands, flags and values of `root`, files, and chats, which
// it asks `reprise completion --chats` for. Nullopt for another shell.
std::optional<std::string> CompletionScript(std::string_view shell, const CommandDoc& root);

}  // namespace reprise
