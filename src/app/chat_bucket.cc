#include "app/chat_bucket.h"

#include <utility>

namespace reprise {

Result<std::unique_ptr<ChatBucket>> ChatBucket::Open(const Options& options, std::stop_token stop) {
  if (!options.bucket) return nullptr;
  if (options.bucket->access_key.empty() || options.bucket->secret_key.empty()) {
    return Fail(ErrorCode::kInvalidArgument,
                "the files of chats go to a bucket, but files.access_key and files.secret_key are not both set");
  }
  if (options.plain) {
    return Fail(ErrorCode::kInvalidArgument,
                "what goes to a bucket is sealed, but chats are stored in plain: leave out --plain, or files.type");
  }
  return std::unique_ptr<ChatBucket>(new ChatBucket(*options.bucket, std::move(stop)));
}

std::unique_ptr<ChatBucket> ChatBucket::OpenToRead(const Options& options, std::stop_token stop) {
  auto bucket = Open(options, std::move(stop));
  return bucket ? *std::move(bucket) : nullptr;
}

Result<void> ChatBucket::TakeNewFiles(const std::string& data_folder, FileSystem& file_system) {
  return ObjectPrefixOf(data_folder, file_system, /*make=*/true).map([this](std::string prefix) {
    files_.prefix = std::move(prefix);
  });
}

}  // namespace reprise
