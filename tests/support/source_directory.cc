#include "support/source_directory.h"

namespace reprise {

std::string SourceDirectory() { return REPRISE_SOURCE_DIR; }

}  // namespace reprise
