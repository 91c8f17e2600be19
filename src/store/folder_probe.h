#pragma once

#include <string>

#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// Whether a file can be made in the folder, with as much in it as a short turn writes, and reaches the disk. It is gone
// afterwards. Fails as FileSystem does.
Result<void> ProbeFolder(FileSystem& file_system, const std::string& folder);

}  // namespace reprise
