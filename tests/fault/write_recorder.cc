#include "fault/write_recorder.h"

#include <utility>

namespace reprise {

using Kind = DiskWrite::Kind;

class WriteRecorder::File final : public WritableFile {
 public:
  File(WriteRecorder& owner, std::unique_ptr<WritableFile> base, std::size_t number)
      : owner_(owner), base_(std::move(base)), number_(number) {}

  Result<void> Append(std::string_view data) override {
    const std::lock_guard lock(owner_.mutex_);
    auto done = base_->Append(data);
    if (done) owner_.writes_.push_back({.kind = Kind::kAppend, .data = std::string(data), .file = number_});
    return done;
  }
  Result<void> Sync() override {
    const std::lock_guard lock(owner_.mutex_);
    auto done = base_->Sync();
    if (done) owner_.writes_.push_back({.kind = Kind::kSync, .file = number_});
    return done;
  }
  Result<void> Close() override { return base_->Close(); }

 private:
  WriteRecorder& owner_;
  const std::unique_ptr<WritableFile> base_;
  const std::size_t number_;
};

std::size_t WriteRecorder::position() const {
  const std::lock_guard lock(mutex_);
  return writes_.size();
}

std::vector<DiskWrite> WriteRecorder::writes() const {
  const std::lock_guard lock(mutex_);
  return writes_;
}

Result<std::string> WriteRecorder::ReadFile(const std::string& path, std::uint64_t max_bytes) {
  return base_.ReadFile(path, max_bytes);
}

Result<std::unique_ptr<WritableFile>> WriteRecorder::CreateFile(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto file = base_.CreateFile(path);
  if (!file) return file;
  const std::size_t number = files_++;
  writes_.push_back({.kind = Kind::kCreate, .path = path, .file = number});
  return std::make_unique<File>(*this, *std::move(file), number);
}

Result<void> WriteRecorder::Rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  auto done = base_.Rename(from, to);
  if (done) writes_.push_back({.kind = Kind::kRename, .path = from, .to = to});
  return done;
}

Result<void> WriteRecorder::SyncDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto done = base_.SyncDirectory(path);
  if (done) writes_.push_back({.kind = Kind::kSyncDirectory, .path = path});
  return done;
}

Result<bool> WriteRecorder::CreateDirectory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto created = base_.CreateDirectory(path);
  if (created && *created) writes_.push_back({.kind = Kind::kCreateDirectory, .path = path});
  return created;
}

Result<void> WriteRecorder::RemoveFile(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto done = base_.RemoveFile(path);
  if (done) writes_.push_back({.kind = Kind::kRemove, .path = path});
  return done;
}

Result<std::vector<DirectoryEntry>> WriteRecorder::ListDirectory(const std::string& path) {
  return base_.ListDirectory(path);
}

}  // namespace reprise
