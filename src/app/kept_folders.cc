#include "app/kept_folders.h"

#include <filesystem>
#include <utility>

#include "base/atomic_write.h"
#include "base/logging.h"
#include "base/posix_file_system.h"

namespace reprise {

std::vector<std::string> FoldersKeptOf(const std::string& root) {
  const std::string name = std::filesystem::path(root).filename().string();
  std::vector<std::string> kept;
  const std::string parent = ParentDirectory(root);
  const auto entries = Disk().ListDirectory(parent);
  if (!entries) {
    LogWarning("copies beside the data folder cannot be listed", {{"detail", entries.error().detail}});
    return kept;
  }
  for (const DirectoryEntry& entry : *entries) {
    for (const std::string_view mark : {kKeptPlain, kKeptSealed, kBeingMade}) {
      if (entry.name.starts_with(name + std::string(mark))) kept.push_back(parent + "/" + entry.name);
    }
  }
  return kept;
}

}  // namespace reprise
