#include "store/spare_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace reprise {
namespace {

// Each keeps a descriptor open.
constexpr std::size_t kMaxSpares = 32;

// As std::to_string writes it.
std::optional<std::uint64_t> ParseName(std::string_view name) {
  constexpr std::size_t kMaxDigits = 18;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = error == std::errc() && end == name.data() + name.size() && name.size() <= kMaxDigits;
  return whole && std::to_string(number) == name ? std::optional(number) : std::nullopt;
}

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
  const std::lock_guard lock(mutex_);
  for (const DirectoryEntry& entry : *entries) {
    const auto number = ParseName(entry.name);
    if (!number) continue;
    const std::string path = directory_ + "/" + entry.name;
    const bool ours = !entry.is_directory && file_system_.ReadFile(path, 0).has_value();
    if (ours && file_system_.RemoveFile(path)) continue;
    next_name_ = std::max(next_name_, *number + 1);  // what stays is not written over either
  }
}

}  // namespace reprise
