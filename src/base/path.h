#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Whether `path` is `directory` or lies in it, by name; both absolute and normal.
bool LiesBeneath(const std::filesystem::path& path, const std::filesystem::path& directory);

// Whether `path` is `directory` (canonical) or lies in it, by name or after its symbolic links are resolved. `path` is
// absolute and need not exist.
bool LeadsInto(const std::filesystem::path& path, const std::filesystem::path& directory);

// The absolute path, with symbolic links resolved in the part that exists; `path` itself if that fails.
std::filesystem::path Resolved(const std::filesystem::path& path);

// The absolute path, for messages; symbolic links stay.
std::string FullPath(const std::string& path);

// The path's components, without empty ones and ".".
std::vector<std::string> NamesOnPath(std::string_view path);

// Whether there is anything at `path`, if only a link that leads nowhere.
bool IsThere(const std::filesystem::path& path);
// The nearest path that is there: this absolute one, or one above it.
std::string NearestThere(std::string path);
bool IsFile(const std::string& path);
bool IsDirectory(const std::string& path);

// The folders of a PATH, in order; an empty one is the working directory.
std::vector<std::filesystem::path> SearchFolders(std::string_view path);

// The PATH `path` without relative folders and folders that lead into `directory` (canonical; empty: no such check).
// The system's usual folders if none is left.
std::string SearchPathOutside(std::string_view path, const std::filesystem::path& directory);

}  // namespace reprise
