#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tools/files/workspace.h"

namespace reprise {

struct ListedEntry {
  std::string name;
  bool is_directory = false;  // a symbolic link is none, whatever it points to
};

struct DirectoryListing {
  std::vector<ListedEntry> entries;  // by name; without "." and "..", and without what is protected
  bool complete = true;              // false: there were more than `max_entries`
};

// What is in a directory that was opened by the workspace.
Result<DirectoryListing> ReadDirectory(const Workspace& workspace, int directory, std::size_t max_entries);

}  // namespace reprise
