#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reprise/file_system.h"

namespace reprise {

// The real disk. Stateless and thread-safe. Every descriptor is close-on-exec; nothing but regular files is read, so
// that a FIFO or a device in a data folder cannot block its reader.
class PosixFileSystem final : public FileSystem {
 public:
  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override;
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  Result<void> Rename(const std::string& from, const std::string& to) override;
  Result<void> SyncDirectory(const std::string& path) override;
  Result<bool> CreateDirectory(const std::string& path) override;
  Result<bool> CreateDirectoryApart(const std::string& path) override;
  Result<void> RemoveFile(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override;
};

}  // namespace reprise
