#pragma once

#include <string>

#include "reprise/result.h"

namespace reprise {

// kForbidden (reason "folder_not_private") if a user other than this one and root could put something else in the place
// of `path` or of a directory above it: one that belongs to someone else, or that everybody may write to (without the
// sticky bit). What is not there passes: it is yet to be made, or belongs to a file system in memory.
Result<void> CheckPrivateDirectory(const std::string& path);

}  // namespace reprise
