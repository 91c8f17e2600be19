#pragma once

#include <string>

#include "reprise/result.h"

namespace reprise {

// kForbidden (reason "folder_not_private") if a user other than this one and root could put something else in the place
// of `path` or of a directory above it: one that belongs to someone else, or that everybody may write to (without the
// sticky bit). A path that the kernel does not know passes: it belongs to a file system in memory.
Result<void> CheckPrivateDirectory(const std::string& path);

}  // namespace reprise
