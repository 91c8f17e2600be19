#include "store/spare_files.h"

#include <optional>
#include <utility>

namespace reprise {
namespace {

// Each keeps a descriptor open.
constexpr std::size_t kMaxSpares = 32;

}  // namespace

SpareFiles::~SpareFiles() {
  for (const Spare& spare : spares_) static_cast<void>(file_system_.RemoveFile(spare.path));
}

Result<std::unique_ptr<WritableFile>> SpareFiles::Take(const std::string& path) {
  std::optional<Spare> spare;
  {
    const std::lock_guard lock(mutex_);
    if (!spares_.empty()) {
      spare = std::move(spares_.back());
      spares_.pop_back();
    }
  }
  if (spare && file_system_.Rename(spare->path, path)) return std::move(spare->file);
  return file_system_.CreateFile(path);
}

Result<void> SpareFiles::Give(const std::string& path, std::unique_ptr<WritableFile> file) {
  if (file && file->Clear() && Keep(path, std::move(file))) return {};
  return file_system_.RemoveFile(path);
}

bool SpareFiles::Keep(const std::string& path, std::unique_ptr<WritableFile> file) {
  const std::lock_guard lock(mutex_);
  if (spares_.size() >= kMaxSpares) return false;
  if (!directory_made_ && !file_system_.CreateDirectory(directory_)) return false;
  directory_made_ = true;
  std::string name = directory_ + "/" + std::to_string(next_name_++);
  if (!file_system_.Rename(path, name)) {
    directory_made_ = false;  // somebody may have removed it
    return false;
  }
  spares_.push_back({.path = std::move(name), .file = std::move(file)});
  return true;
}

void SpareFiles::RemoveLeftovers() {
  const auto entries = file_system_.ListDirectory(directory_);
  if (!entries) return;
  for (const DirectoryEntry& entry : *entries) {
    static_cast<void>(file_system_.RemoveFile(directory_ + "/" + entry.name));
  }
}

}  // namespace reprise
