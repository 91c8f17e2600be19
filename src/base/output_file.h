#pragma once

#include <string>
#include <string_view>

#include "reprise/result.h"

namespace reprise {

// Writes a file of mode 0600, all at once and durably. kConflict (reason "file_exists") if there is one and not
// `replace`; a folder is never replaced. The message names the path, since it is for the person at the terminal.
Result<void> WriteOutputFile(const std::string& path, std::string_view content, bool replace);

// Whether a path, there or not, is this folder or lies in it, symbolic links followed.
bool LiesIn(const std::string& path, const std::string& folder);

// kConflict (reason "file_exists") if there is anything at `path`.
Result<void> CheckNothingThere(const std::string& path);

// Renames a file or a folder, but not over anything: the same failure, even if it came at this moment (where the file
// system can tell in one step).
Result<void> MoveToFreeName(const std::string& from, const std::string& to);

}  // namespace reprise
