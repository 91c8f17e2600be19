#pragma once

#include <string>

#include "cli/grammar_docs.h"

namespace reprise {

// "reprise", "reprise-keys-init": the page's name in section 1.
std::string ManPageName(const CommandDoc& command);

// The page of `command`, which is `root` or below it, in the man macros of troff.
std::string ManPage(const CommandDoc& root, const CommandDoc& command);

}  // namespace reprise
