#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "reprise/options.h"
#include "reprise/transport.h"
#include "store/object_store.h"

namespace reprise {

// The S3 protocol of MinIO, AWS, Ceph and Swift. Addresses are path-style (ENDPOINT/BUCKET/KEY), which all of them
// accept.

struct S3Call {
  std::string method = "GET";
  std::string key{};  // empty: the bucket itself
  std::vector<std::pair<std::string, std::string>> query{};
  std::string body{};
};
// A request ready to be signed and sent: it has the body's hash, and path and query in the form that is signed. Follows
// no redirects.
HttpRequest MakeS3Request(const BucketOptions& bucket, S3Call call);

// The code in an error's body ("NoSuchKey"); empty if there is no valid one.
std::string S3ErrorCode(std::string_view body);

// A bucket of an S3 server. A call with a transient failure (no answer, 5xx, SlowDown, a body damaged on the way) is
// retried, up to four tries in twenty seconds with growing pauses; a PUT sends the same object each time. Shortly after
// such a failure, calls get one try, so that callers do not wait long. Messages and log lines contain no secrets.
class S3Bucket final : public ObjectStore {
 public:
  struct Limits {
    int tries = 4;
    std::chrono::milliseconds first_pause{200};  // doubles each time; a random part of it is used
    std::chrono::milliseconds in_all{20'000};    // no try begins later
    std::chrono::milliseconds hurry{5'000};      // time after a failure in which calls get one try
  };
  // `transport` must outlive the object. When `stop` is requested all calls end, as kCancelled.
  S3Bucket(BucketOptions options, Transport& transport, std::stop_token stop)
      : S3Bucket(std::move(options), transport, std::move(stop), Limits()) {}
  S3Bucket(BucketOptions options, Transport& transport, std::stop_token stop, Limits limits)
      : options_(std::move(options)), transport_(transport), stop_(std::move(stop)), limits_(limits) {}

  Result<void> Put(const std::string& key, const std::string& content) override;
  Result<std::string> Get(const std::string& key) override;
  Result<void> Delete(const std::string& key) override;
  Result<ObjectPage> List(const std::string& prefix, const std::string& after) override;

  // Checks that the bucket can be used now by listing at most one object. One try.
  Result<void> Check();

 private:
  struct Answer {
    int status = 0;
    std::string body;
  };
  // Returns a 2xx response, or 404 for a missing object. A body larger than `most` is kTooLarge.
  Result<Answer> Call(const S3Call& call, std::uint64_t most, int tries);
  Result<Answer> TryOnce(const S3Call& call, std::uint64_t most);
  Result<void> Pause(std::chrono::milliseconds pause) const;
  int TriesNow();
  void NoteOutcome(bool ok);

  const BucketOptions options_;
  Transport& transport_;
  const std::stop_token stop_;
  const Limits limits_;
  Mutex mutex_;
  std::optional<std::chrono::steady_clock::time_point> failed_at_ GUARDED_BY(mutex_);
};

}  // namespace reprise
