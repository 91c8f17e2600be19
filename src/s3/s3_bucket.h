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

// Requests to a bucket, and what it answers: the S3 protocol as MinIO, AWS, Ceph and Swift speak it. Addresses are
// path-style (ENDPOINT/BUCKET/KEY), which all of them take.

struct S3Call {
  std::string method = "GET";
  std::string key{};  // empty: the bucket itself
  std::vector<std::pair<std::string, std::string>> query{};
  std::string body{};
};
// Ready to be sent, and to be signed: with the body's hash, path and query as they are signed. No redirect is followed.
HttpRequest MakeS3Request(const BucketOptions& bucket, S3Call call);

// The code in an error's body ("NoSuchKey"); empty if there is none that reads like one.
std::string S3ErrorCode(std::string_view body);

// A bucket of an S3 server. A call that fails for a reason that may pass (nobody answers, 5xx, SlowDown, a body that
// did not arrive as it was sent) is tried again, up to four times in all, with growing pauses and for twenty seconds; a
// PUT is the same object each time. Where a call has just failed so, the next ones are tried once, so that who waits
// for them does not wait long. Secrets are in no message and in no line of the log.
class S3Bucket final : public ObjectStore {
 public:
  struct Limits {
    int tries = 4;
    std::chrono::milliseconds first_pause{200};  // then twice as long each time; of each a random part
    std::chrono::milliseconds in_all{20'000};    // no try begins later
    std::chrono::milliseconds hurry{5'000};      // how long after a failure there is one try only
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

  // Whether it can be used now: lists at most one object. One try.
  Result<void> Check();

 private:
  struct Answer {
    int status = 0;
    std::string body;
  };
  // A 2xx, or 404 for an object that is not there. `most`: a larger body is kTooLarge.
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
