#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// What follows a data folder's name in those that a conversion keeps beside it, or is just making.
inline constexpr std::string_view kKeptPlain = ".plain.", kKeptSealed = ".sealed.", kBeingMade = ".converting.";

// The folders beside `root` that conversions of it have kept, or left when they were ended. `root` is canonical.
std::vector<std::string> FoldersKeptOf(const std::string& root);

}  // namespace reprise
