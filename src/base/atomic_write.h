#pragma once

#include <string>
#include <string_view>

#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// The directory part of a path: "." for a bare name, "/" for a name in the root.
std::string ParentDirectory(const std::string& path);

enum class Durability {
  kSynced,
  kUnsynced,  // survives the process, but a power loss may leave the file empty: only for what can be made again
};

// Makes `path` a file with `content`, all or nothing: a temporary file beside it (".NAME.<random>.tmp", mode 0600) is
// written, synced and renamed over it. When this returns ok the content has reached the disk; the name is durable only
// after SyncDirectory on the parent. After a failure `path` is what it was. A crash may leave a temporary file behind.
Result<void> ReplaceFile(FileSystem& file_system, const std::string& path, std::string_view content,
                         Durability durability = Durability::kSynced);

// Creates a directory and what is missing above it, durably: when this returns ok, the whole path survives a power
// loss. False: it was there.
Result<bool> CreateDirectories(FileSystem& file_system, const std::string& path);

}  // namespace reprise
