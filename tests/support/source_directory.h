#pragma once

#include <string>

namespace reprise {

// The folder of the project's sources, with schemas, samples and scripts. Has no final slash.
std::string SourceDirectory();

}  // namespace reprise
