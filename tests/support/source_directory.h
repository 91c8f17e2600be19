#pragma once

#include <string>

namespace reprise {

// The root of the project's sources, where tests find schemas, samples and scripts. Without a slash at the end.
std::string SourceDirectory();

}  // namespace reprise
