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
// A pattern that allows covers a command line if each of its commands is covered by one that is allowed, and nothing
// else happens in it. A pattern that holds back speaks of every command that begins so, whatever follows, and of what
// could be one.
namespace reprise {

std::vector<CallPattern> PatternsOfCommand(std::string_view command);
Result<std::string> MeaningOfCommandPattern(std::string_view pattern, PatternUse use);
std::optional<std::vector<std::size_t>> CommandCoveredBy(const std::vector<std::string>& patterns,
                                                         std::string_view command);
// Whether other words may follow the pattern's.
bool HasTail(std::string_view pattern);
// The programs of the line that are looked up in PATH, and of which sentences do not say that files decide what they
// do.
std::vector<std::string> ProgramsBelieved(std::string_view command);
Touch CommandTouches(std::string_view pattern, std::string_view command);

}  // namespace reprise
