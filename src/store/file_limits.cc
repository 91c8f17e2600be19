#include "store/file_limits.h"

#include <algorithm>
#include <tuple>

namespace reprise {

Result<void> CheckLimits(const FileLimits& limits, const FileListing& present, const StoredFile& file, bool there) {
  if (file.content.size() > limits.file_bytes) {
    return Fail(Error{.code = ErrorCode::kTooLarge,
                      .reason = "file_too_large",
                      .message = "a file may have " + std::to_string(limits.file_bytes) + " bytes"});
  }
  if (there) {
    return Fail(
        Error{.code = ErrorCode::kConflict, .reason = "file_exists", .message = "there is a file of this id already"});
  }
  std::uint64_t bytes = file.content.size();
  for (const FileInfo& other : present.files) bytes += other.size_bytes;
  if (bytes > limits.chat_bytes || present.files.size() + present.damaged.size() >= limits.files) {
    return Fail(Error{.code = ErrorCode::kStorageFull,
                      .reason = "chat_files_full",
                      .message = "the files of a chat may be " + std::to_string(limits.files) + ", with " +
                                 std::to_string(limits.chat_bytes) + " bytes together; delete some"});
  }
  return {};
}

void SortListing(FileListing& listing) {
  std::sort(listing.files.begin(), listing.files.end(), [](const FileInfo& a, const FileInfo& b) {
    return std::tie(a.created_at, a.id) < std::tie(b.created_at, b.id);
  });
  std::sort(listing.damaged.begin(), listing.damaged.end(),
            [](const DamagedFile& a, const DamagedFile& b) { return a.id < b.id; });
}

}  // namespace reprise
