#include "support/faulty_file_system.h"

namespace reprise {

class FaultyFileSystem::File final : public WritableFile {
 public:
  File(FaultyFileSystem& owner, std::unique_ptr<WritableFile> base, std::string path)
      : owner_(owner), base_(std::move(base)), path_(std::move(path)) {}

  Result<void> Append(std::string_view data) override {
    auto counted = owner_.Count(path_);
    if (counted) return base_->Append(data);
    if (owner_.fault_.short_write) static_cast<void>(base_->Append(data.substr(0, data.size() / 2)));
    return counted;
  }
  Result<void> Sync() override {
    if (sync_failed_) ++owner_.repeated_syncs_;
    auto counted = owner_.Count(path_);
    sync_failed_ = sync_failed_ || !counted;
    return counted && !owner_.ignore_file_syncs_ ? base_->Sync() : counted;
  }
  Result<void> Close() override {
    return owner_.Count(path_).and_then([&] { return base_->Close(); });
  }

 private:
  FaultyFileSystem& owner_;
  const std::unique_ptr<WritableFile> base_;
  const std::string path_;
  bool sync_failed_ = false;
};

Result<void> FaultyFileSystem::Count(const std::string& path) {
  const std::size_t call = ++calls_;
  const bool fails = fault_.at != 0 && (fault_.from_then_on ? call >= fault_.at : call == fault_.at);
  if (!fails) return {};
  fired_ = true;
  return Fail(fault_.code, "injected fault", path);
}

Result<std::string> FaultyFileSystem::ReadFile(const std::string& path, std::uint64_t max_bytes) {
  return CountRead(path).and_then([&] { return base_.ReadFile(path, max_bytes); });
}

Result<std::unique_ptr<WritableFile>> FaultyFileSystem::CreateFile(const std::string& path) {
  if (auto counted = Count(path); !counted) return Fail(counted.error());
  auto file = base_.CreateFile(path);
  if (!file) return file;
  return std::make_unique<File>(*this, *std::move(file), path);
}

Result<void> FaultyFileSystem::Rename(const std::string& from, const std::string& to) {
  return Count(from).and_then([&] { return base_.Rename(from, to); });
}

Result<void> FaultyFileSystem::SyncDirectory(const std::string& path) {
  auto counted = Count(path);
  return counted && !ignore_directory_syncs_ ? base_.SyncDirectory(path) : counted;
}

Result<void> FaultyFileSystem::SyncTree(const std::string& path) {
  auto counted = Count(path);
  return counted && !ignore_directory_syncs_ ? base_.SyncTree(path) : counted;
}

Result<bool> FaultyFileSystem::CreateDirectory(const std::string& path) {
  return Count(path).and_then([&] { return base_.CreateDirectory(path); });
}

Result<void> FaultyFileSystem::RemoveFile(const std::string& path) {
  return Count(path).and_then([&] { return base_.RemoveFile(path); });
}

Result<std::vector<DirectoryEntry>> FaultyFileSystem::ListDirectory(const std::string& path) {
  return CountRead(path).and_then([&] { return base_.ListDirectory(path); });
}

}  // namespace reprise
