#pragma once

#include <string>

namespace reprise {

// The folder of the project's sources: where the tests find schemas, samples and scripts. No slash at its end.
std::string SourceDirectory();

}  // namespace reprise
