#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "net/curl_transport.h"
#include "reprise/file_system.h"
#include "reprise/options.h"
#include "s3/s3_bucket.h"
#include "store/object_store.h"

namespace reprise {

// The bucket of a configuration, where the files of its chats are, and the connections to it. These are its own: a
// large file does not hold up what models say. Thread-safe once it takes new files.
class ChatBucket {
 public:
  // Null if the configuration has none. kInvalidArgument if its keys are not set, or if chats are stored in plain: what
  // goes to a bucket is sealed. Asks nobody. When `stop` is requested, all that is under way ends.
  static Result<std::unique_ptr<ChatBucket>> Open(const Options& options, std::stop_token stop = {});
  // The same for those who may do without: null, too, where it cannot be used.
  static std::unique_ptr<ChatBucket> OpenToRead(const Options& options, std::stop_token stop = {});

  // From now on there may be new files. REQUIRES: the caller holds the folder's lock; nobody uses the bucket yet.
  Result<void> TakeNewFiles(const std::string& data_folder, FileSystem& file_system);

  const FileBucket& files() const { return files_; }
  ObjectStore& objects() { return bucket_; }
  // Whether it can be used now. Waits for an answer, ten seconds at most.
  Result<void> Check() { return bucket_.Check(); }

 private:
  ChatBucket(const BucketOptions& options, std::stop_token stop)
      : transport_(CurlTransport::kLargeReads), bucket_(options, transport_, std::move(stop)) {}

  CurlTransport transport_;
  S3Bucket bucket_;
  FileBucket files_{.objects = bucket_};
};

// For those that take a pointer: null if there is none.
inline const FileBucket* FilesOf(const std::unique_ptr<ChatBucket>& bucket) {
  return bucket ? &bucket->files() : nullptr;
}

}  // namespace reprise
