#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reprise/tool.h"

namespace reprise {

// What a model is told of the tools that it has.
struct ToldTools {
  std::vector<ToolSpec> specs{};
  bool is_short = false;  // the first sentences of descriptions, and no more of arguments than their types
  std::vector<std::string> left_out{};  // names of those that it is not told of
};

// All as they are if that takes no more than half of `budget` (tokens that a request may have; 0: there is no limit).
// Else shortly, and as many as a third of it has room for: first those for files and commands, then those that are not
// built in. The order stays. What it gives follows from its arguments alone.
ToldTools ToolsWithin(const std::vector<ToolSpec>& specs, std::int64_t budget);

}  // namespace reprise
