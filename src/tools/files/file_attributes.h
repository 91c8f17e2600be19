#pragma once

#include <sys/stat.h>

#include <string>

#include "reprise/workspace_change.h"

namespace reprise {

// Gives a new file the permissions `mode`, and of the file at `name` that it replaces (`like`) the group and the
// extended attributes, its access list among them, as far as the system allows that. Without `like` it gets no access
// list: not even the one that its folder gave it. False: the permissions could not be set.
bool TakeAttributes(int file, mode_t mode, int directory, const std::string& name, const struct stat* like);

// Of an entry of an opened directory; `file` is the entry, if it is open, and otherwise -1.
FileExtras ExtrasOf(int directory, const std::string& name, const struct stat& status, int file);

}  // namespace reprise
