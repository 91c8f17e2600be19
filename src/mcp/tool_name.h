#pragma once

#include <string>
#include <string_view>

namespace reprise {

// The name under which a model knows a server's tool: "files__read_file". It matches ^[a-zA-Z0-9_-]{1,64}$, as
// providers demand, depends on nothing but the two names, and differs for different ones: a name that had to be changed
// or could be read in two ways ends in a piece of a digest.
std::string McpToolName(std::string_view server, std::string_view tool);

}  // namespace reprise
