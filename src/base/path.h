#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

// Whether `path` is `directory` or lies in it, by name; both absolute and normal.
bool LiesBeneath(const std::filesystem::path& path, const std::filesystem::path& directory);

// Whether `path`, which is absolute and need not exist, is `directory` (canonical) or lies in it, by name or where its
// symbolic links lead.
bool LeadsInto(const std::filesystem::path& path, const std::filesystem::path& directory);

// Absolute and without symbolic links, as far as it exists; as it is if that cannot be told.
std::filesystem::path Resolved(const std::filesystem::path& path);

// The path from the root on, for messages; symbolic links stay.
std::string FullPath(const std::string& path);

// The names between its slashes, without empty ones and ".".
std::vector<std::string> NamesOnPath(std::string_view path);

bool IsFile(const std::string& path);
bool IsDirectory(const std::string& path);

// The folders that a PATH tells to look in, in that order; an empty one is the working directory.
std::vector<std::filesystem::path> SearchFolders(std::string_view path);

// `path`, a PATH, without its relative folders and those that lead into `directory` (canonical; empty: none do); the
// system's usual folders if nothing is left.
std::string SearchPathOutside(std::string_view path, const std::filesystem::path& directory);

}  // namespace reprise
