#pragma once

#include <string>
#include <vector>

namespace reprise {

// One sentence for each variable of `environment` ("NAME=value", ended by a null) that is called like a setting and is
// none. Values are not in it.
std::vector<std::string> UnknownVariables(const char* const* environment);

}  // namespace reprise
