#pragma once

#include <string>
#include <string_view>

namespace reprise {

// What a model is told of a tool's output, which people see as it was. Of a command it is plain text: without what a
// terminal would draw with, of a line that was written over what was written last, and of a long text the beginning and
// the end. Of other tools it is the output. Follows from the arguments alone; `output` is valid UTF-8.
std::string ToldOutput(std::string_view tool_name, std::string_view output);

}  // namespace reprise
