#pragma once

#include <functional>
#include <optional>
#include <string>

namespace reprise {

// Looks up an environment variable; nullopt if it is not set or empty (an empty one is how shells unset in passing). A
// parameter and not getenv itself, so that tests need not edit the process's environment.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

Environment ProcessEnvironment();

}  // namespace reprise
