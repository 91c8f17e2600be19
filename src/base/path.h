#pragma once

#include <filesystem>

namespace reprise {

// Whether `path` is `directory` or lies in it, by name; both absolute and normal.
bool LiesBeneath(const std::filesystem::path& path, const std::filesystem::path& directory);

// Whether `path`, which is absolute and need not exist, is `directory` (canonical) or lies in it, by name or where its
// symbolic links lead.
bool LeadsInto(const std::filesystem::path& path, const std::filesystem::path& directory);

}  // namespace reprise
