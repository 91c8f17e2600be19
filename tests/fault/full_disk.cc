#include "fault/full_disk.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace reprise {
namespace {

tl::unexpected<Error> Full(const std::string& path) { return Fail(ErrorCode::kStorageFull, "no room is left", path); }

}  // namespace

class FullDisk::File final : public WritableFile {
 public:
  File(FullDisk& owner, std::unique_ptr<WritableFile> base, std::string path)
      : owner_(owner), base_(std::move(base)), path_(std::move(path)) {}
  Result<void> Append(std::string_view data) override {
    const std::size_t fits = owner_.Take(data.size());
    auto written = base_->Append(data.substr(0, fits));
    if (written && fits < data.size()) return Full(path_);
    return written;
  }
  Result<void> Sync() override { return base_->Sync(); }
  Result<void> Close() override { return base_->Close(); }

 private:
  FullDisk& owner_;
  const std::unique_ptr<WritableFile> base_;
  const std::string path_;
};

std::size_t FullDisk::Take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t fits = std::min(bytes, room_);
  room_ -= fits;
  was_full_ = was_full_ || fits < bytes;
  return fits;
}

void FullDisk::MakeRoom() {
  const std::lock_guard lock(mutex_);
  room_ = std::numeric_limits<std::size_t>::max();
}

bool FullDisk::was_full() const {
  const std::lock_guard lock(mutex_);
  return was_full_;
}

Result<std::string> FullDisk::ReadFile(const std::string& path, std::uint64_t max_bytes) {
  return base_.ReadFile(path, max_bytes);
}
Result<std::unique_ptr<WritableFile>> FullDisk::CreateFile(const std::string& path) {
  if (Take(kNameBytes) < kNameBytes) return Full(path);
  auto file = base_.CreateFile(path);
  if (!file) return file;
  return std::make_unique<File>(*this, *std::move(file), path);
}
Result<void> FullDisk::Rename(const std::string& from, const std::string& to) { return base_.Rename(from, to); }
Result<void> FullDisk::SyncDirectory(const std::string& path) { return base_.SyncDirectory(path); }
Result<bool> FullDisk::CreateDirectory(const std::string& path) {
  if (base_.ListDirectory(path)) return false;
  if (Take(kNameBytes) < kNameBytes) return Full(path);
  return base_.CreateDirectory(path);
}
Result<void> FullDisk::RemoveFile(const std::string& path) { return base_.RemoveFile(path); }
Result<std::vector<DirectoryEntry>> FullDisk::ListDirectory(const std::string& path) {
  return base_.ListDirectory(path);
}

}  // namespace reprise
