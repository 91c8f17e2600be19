#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/result.h"
#include "reprise/tool.h"

// The language of patterns of run_shell (docs/approvals.md):
//
//   git status          exactly these words
//   git log *           these words, and any others after them that the sentence names
//   cd web && npm test  the same in a folder
//   git log *; head *   each of these
//
// Patterns that allow cover a command line if each of its commands is covered by one of them and the line does nothing
// else. A pattern that holds back applies to every command that begins like it, and to any that might.
namespace reprise {

std::vector<CallPattern> PatternsOfCommand(std::string_view command);
Result<std::string> MeaningOfCommandPattern(std::string_view pattern, PatternUse use);
std::optional<std::vector<std::size_t>> CommandCoveredBy(const std::vector<std::string>& patterns,
                                                         std::string_view command);
// Whether other words may follow those of the pattern.
bool HasTail(std::string_view pattern);
// The programs of the line that are looked up in PATH and whose pattern's sentence does not warn that files decide what
// they do.
std::vector<std::string> ProgramsBelieved(std::string_view command);
Touch CommandTouches(std::string_view pattern, std::string_view command);

}  // namespace reprise
