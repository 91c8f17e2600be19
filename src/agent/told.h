#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/tool.h"

namespace reprise {

// What a model is told of a tool's output, which people see as it was. Of a command it is plain text: without what a
// terminal would draw with, of a line that was written over what was written last, and of a long text the beginning and
// the end. Of other tools it is the output. Follows from the arguments alone; `output` is valid UTF-8.
std::string ToldOutput(std::string_view tool_name, std::string_view output);

// What a model with little room is told of the tools that it has: the first sentences of descriptions, and no more of
// arguments than their types.
struct ShortTools {
  std::vector<ToolSpec> specs{};
  std::vector<std::string> left_out{};  // names of those that it is not told of
};

// None if all take no more than half of `budget` as they are (tokens that a request may have; 0: there is no limit).
// Else as many as a third of it has room for: first those for files and commands, then those that are not built in. The
// order stays. What it gives follows from its arguments alone.
std::optional<ShortTools> ShortToolsWithin(const std::vector<ToolSpec>& specs, std::int64_t budget);

}  // namespace reprise
