#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "reprise/file_system.h"

namespace reprise {

// Forwards every call to another file system. Doubles override only the calls that they change.
class ForwardingFileSystem : public FileSystem {
 public:
  explicit ForwardingFileSystem(FileSystem& base) : base_(base) {}
  void Confine(const std::string& folder) override { base_.Confine(folder); }
  std::shared_ptr<const void> Expect(const std::string& folder) override { return base_.Expect(folder); }
  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override {
    return base_.ReadFile(path, max_bytes);
  }
  Result<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override { return base_.CreateFile(path); }
  Result<void> Rename(const std::string& from, const std::string& to) override { return base_.Rename(from, to); }
  Result<void> SyncDirectory(const std::string& path) override { return base_.SyncDirectory(path); }
  SyncReach sync_reach(const std::string& folder) override { return base_.sync_reach(folder); }
  bool syncs_trees() const override { return base_.syncs_trees(); }
  Result<void> SyncTree(const std::string& path) override { return base_.SyncTree(path); }
  Result<bool> CreateDirectory(const std::string& path) override { return base_.CreateDirectory(path); }
  Result<void> RemoveFile(const std::string& path) override { return base_.RemoveFile(path); }
  Result<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) override {
    return base_.ListDirectory(path);
  }

 protected:
  FileSystem& base_;
};

// Counts the reads of files.
class CountedReads final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) override {
    ++reads;
    return base_.ReadFile(path, max_bytes);
  }
  int reads = 0;
};

}  // namespace reprise
