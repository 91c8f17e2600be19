#pragma once

#include <sys/types.h>

#include <string>

#include "base/system.h"

namespace reprise {

enum class Symlinks {
  kInside,  // followed as long as they stay beneath
  kRefuse,
};

// Opens `path` beneath the directory `root`: neither "..", an absolute path, a symbolic link nor a magic link in /proc
// leads out of it, also not while somebody renames what lies on the way. On failure the descriptor is empty and errno
// says why: EXDEV (leads out), ELOOP (a symbolic link that may not be followed), else as openat(2). Uses openat2(2), or
// OpenBeneathByWalk where the kernel has none. Thread-safe.
UniqueFd OpenBeneath(int root, const std::string& path, int flags, Symlinks symlinks);

// The same with nothing but openat(2), component by component. Refuses every symbolic link and every "..".
UniqueFd OpenBeneathByWalk(int root, const std::string& path, int flags);

}  // namespace reprise
