#pragma once

#include <string_view>

#include "reprise/tool.h"

namespace reprise {

// Runs a tool, and again after a pause, twice at most, if it only reads, may run twice and failed for a reason that may
// pass (ToolOutcome::transient). Says so in its live output and in the outcome. A stop ends the pause.
ToolOutcome RunWithRetries(Tool& tool, std::string_view arguments, const ToolContext& context);

}  // namespace reprise
