#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// The suffixes of folders that a conversion keeps beside the data folder, or is making.
inline constexpr std::string_view kKeptPlain = ".plain.", kKeptSealed = ".sealed.", kBeingMade = ".converting.";

// The folders beside `root` that finished or interrupted conversions have left. `root` is canonical.
std::vector<std::string> FoldersKeptOf(const std::string& root);

}  // namespace reprise
