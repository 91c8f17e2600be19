#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "net/curl_transport.h"
#include "remote/s3/s3_bucket.h"
#include "reprise/file_system.h"
#include "reprise/options.h"
#include "store/object_store.h"

namespace reprise {

// The configured bucket for the files of chats, with connections of its own, so that a large file does not hold up
// models. Thread-safe once it takes new files.
class ChatBucket {
 public:
  // Null if no bucket is configured. kInvalidArgument if its keys are not set, or if chats are stored in plain, because
  // a bucket holds sealed files only. No network access. A request of `stop` ends everything under way.
  static Result<std::unique_ptr<ChatBucket>> Open(const Options& options, std::stop_token stop = {});
  // The same for commands that work without the bucket: null, too, if it is unusable.
  static std::unique_ptr<ChatBucket> OpenToRead(const Options& options, std::stop_token stop = {});

  // New files are possible from now on. REQUIRES: the caller holds the folder's lock; nobody uses the bucket yet.
  Result<void> TakeNewFiles(const std::string& data_folder, FileSystem& file_system);

  const FileBucket& files() const { return files_; }
  ObjectStore& objects() { return bucket_; }
  // Whether the bucket works now. Blocks for ten seconds at most.
  Result<void> Check() { return bucket_.Check(); }

 private:
  ChatBucket(const BucketOptions& options, std::stop_token stop)
      : transport_(CurlTransport::kLargeReads), bucket_(options, transport_, std::move(stop)) {}

  CurlTransport transport_;
  S3Bucket bucket_;
  FileBucket files_{.objects = bucket_};
};

// For functions that take a pointer: null if there is no bucket.
inline const FileBucket* FilesOf(const std::unique_ptr<ChatBucket>& bucket) {
  return bucket ? &bucket->files() : nullptr;
}

}  // namespace reprise
