#pragma once

#include <functional>
#include <optional>
#include <string>

namespace reprise {

// Looks up an environment variable; nullopt if it is not set or empty (shells unset a variable for one command by
// emptying it). Passed as a parameter so that tests need not edit the process's environment.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment ProcessEnvironment();

}  // namespace reprise
