#include "remote/s3/s3_bucket.h"

#include <re2/re2.h>

#include <algorithm>
#include <cstdint>

#include "base/logging.h"
#include "base/queues.h"
#include "base/system.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/digest.h"
#include "store/record.h"

namespace reprise {

namespace {

using std::chrono::seconds;

// Sorted by name, each with "=", which is the form that is signed.
std::string QueryOf(std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) name = PercentEncoded(name), value = PercentEncoded(value);
  std::ranges::sort(query);
  std::string text;
  for (const auto& [name, value] : query) text += (text.empty() ? "?" : "&") + name + "=" + value;
  return text;
}

}  // namespace

HttpRequest MakeS3Request(const BucketOptions& bucket, S3Call call) {
  HttpRequest request;
  request.method = std::move(call.method);
  request.url = bucket.endpoint + "/" + PercentEncoded(bucket.bucket);
  if (!call.key.empty()) request.url += "/" + PercentEncoded(call.key, "-._~/");
  request.url += QueryOf(std::move(call.query));
  const std::string digest = Sha256Digest({call.body});
  request.headers = {{"x-amz-content-sha256", digest.substr(digest.find(':') + 1)}};
  if (!call.body.empty()) request.headers.emplace_back("Content-Type", "application/octet-stream");
  request.body = std::move(call.body);
  request.connect_timeout = seconds(3);
  request.idle_timeout = seconds(10);
  request.signature = S3Signature{bucket.region, bucket.access_key, bucket.secret_key};
  return request;
}

std::string S3ErrorCode(std::string_view body) {
  static const RE2 kCode("<Error>(?s:.*?)<Code>([A-Za-z0-9]{1,64})</Code>");
  std::string code;
  RE2::PartialMatch({body.data(), body.size()}, kCode, &code);
  return code;
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint64_t kMostOfAnAnswer = 4 << 20;  // a thousand objects, or an error
constexpr std::string_view kPageSize = "1000";

Error Unreachable(std::string detail) {
  return Refused(Reason::kBucketUnreachable, "the bucket of the chats' files cannot be reached", std::move(detail));
}

Error BucketRefused(std::string message) { return Refused(Reason::kBucketRefused, std::move(message)); }

// "403 SignatureDoesNotMatch"
std::string Said(int status, const std::string& code) {
  return std::to_string(status) + (code.empty() ? "" : " ") + code;
}

// Whether a retry may succeed. The last two codes mean that the body arrived damaged.
bool MayPass(int status, const std::string& code) {
  static constexpr std::string_view kCodes[] = {"SlowDown",        "InternalError", "ServiceUnavailable",
                                                "RequestTimeout",  "BadDigest",     "XAmzContentSHA256Mismatch",
                                                "OperationAborted"};
  return (status >= 500 && status != 501 && status != 507) || status == 429 || status == 408 ||
         std::ranges::find(kCodes, code) != std::end(kCodes);
}

Error FromStatus(int status, const std::string& code) {
  const std::string said = Said(status, code);
  if (status == 507 || code == "QuotaExceeded" || code == "XMinioStorageFull") {
    return Refused(Reason::kBucketFull, "the bucket of the chats' files is full (" + said + ")");
  }
  if (MayPass(status, code)) return Unreachable("the bucket answered " + said);
  if (status == 404) return BucketRefused("there is no bucket with the configured name (" + said + ")");
  if (status >= 300 && status < 400) {
    return BucketRefused("the bucket is elsewhere (" + said + "); correct files.endpoint and files.region");
  }
  if (status == 401 || status == 403) {
    return BucketRefused("the bucket of the chats' files denies access to this server (" + said +
                         "); check files.access_key, files.secret_key and the clock");
  }
  return Refused(Reason::kBucketFailed, "the bucket of the chats' files refused the request (" + said + ")");
}

Error FromTransport(const Error& error) {
  if (error.code == ErrorCode::kCancelled) return error;
  Error failed = error.Is(Reason::kTlsFailed)
                     ? BucketRefused("no secure connection to the bucket of the chats' files can be made")
                     : Unreachable(error.message);
  if (!error.detail.empty()) failed.detail = error.detail;
  if (!error.retryable) failed.retryable = false;
  return failed;
}

class AnswerReader final : public HttpResponseHandler {
 public:
  AnswerReader(int& status, std::string& body, std::uint64_t most) : status_(status), body_(body), most_(most) {}
  void OnHead(int status, const HttpHeaders&) override { status_ = status; }
  bool OnData(std::string_view bytes) override {
    too_large_ = body_.size() + bytes.size() > most_;
    if (!too_large_) body_ += bytes;
    return !too_large_;
  }
  bool too_large() const { return too_large_; }

 private:
  int& status_;
  std::string& body_;
  const std::uint64_t most_;
  bool too_large_ = false;
};

std::optional<StoredObject> ObjectFrom(const std::string& element) {
  static const RE2 kKey("<Key>([A-Za-z0-9/_.-]+)</Key>"), kSize("<Size>([0-9]{1,18})</Size>"),
      kTime("<LastModified>([0-9T:.Z-]+)</LastModified>");
  StoredObject object;
  std::string time;
  if (!RE2::PartialMatch(element, kKey, &object.key) || !RE2::PartialMatch(element, kTime, &time)) return std::nullopt;
  const auto changed = ParseTimestamp(time);
  if (!changed) return std::nullopt;
  object.changed_at = *changed;
  RE2::PartialMatch(element, kSize, &object.bytes);
  return object;
}

}  // namespace

Result<void> S3Bucket::Put(const std::string& key, const std::string& content) {
  return Call({.method = "PUT", .key = key, .body = content}, kMostOfAnAnswer, TriesNow()).map([](const Answer&) {});
}

Result<std::string> S3Bucket::Get(const std::string& key) {
  auto answer = TRY(Call({.key = key}, kMaxRecordBytes, TriesNow()));
  if (answer.status == 404) return Fail(ErrorCode::kNotFound, "there is no such object");
  return std::move(answer.body);
}

Result<void> S3Bucket::Delete(const std::string& key) {
  return Call({.method = "DELETE", .key = key}, kMostOfAnAnswer, TriesNow()).map([](const Answer&) {});
}

Result<ObjectPage> S3Bucket::List(const std::string& prefix, const std::string& after) {
  S3Call call{.query = {{"list-type", "2"}, {"max-keys", std::string(kPageSize)}, {"prefix", prefix}}};
  if (!after.empty()) call.query.emplace_back("start-after", after);
  const auto answer = TRY(Call(call, kMostOfAnAnswer, TriesNow()));
  static const RE2 kObject("(?s)<Contents>(.*?)</Contents>");
  ObjectPage page;
  re2::StringPiece rest(answer.body);
  std::string element;
  while (RE2::FindAndConsume(&rest, kObject, &element)) {
    if (auto object = ObjectFrom(element)) page.objects.push_back(*std::move(object));
  }
  page.has_more = answer.body.find("<IsTruncated>true</IsTruncated>") != std::string::npos;
  if (answer.body.find("<ListBucketResult") == std::string::npos || (page.objects.empty() && page.has_more)) {
    return Fail(Reason::kBucketFailed, "the bucket of the chats' files sent no valid list of objects");
  }
  return page;
}

Result<void> S3Bucket::Check() {
  return Call({.query = {{"list-type", "2"}, {"max-keys", "1"}}}, kMostOfAnAnswer, /*tries=*/1).map([](const Answer&) {
  });
}

Result<S3Bucket::Answer> S3Bucket::Call(const S3Call& call, std::uint64_t most, int tries) {
  const Clock::time_point began = Clock::now();
  milliseconds pause = limits_.first_pause;
  for (int tried = 1;; ++tried, pause *= 2) {
    auto answer = TryOnce(call, most);
    if (answer) {
      NoteOutcome(true);
      return answer;
    }
    const Error& error = answer.error();
    if (!error.Is(Reason::kBucketUnreachable) || !error.retryable) return answer;
    if (tried >= tries || Clock::now() - began >= limits_.in_all) {
      NoteOutcome(false);
      return answer;
    }
    LogInfo("the request to the bucket is retried", {{"method", call.method}, {"detail", error.detail}});
    // Random, so that not all calls retry at the same moment.
    TRY(Pause(
        milliseconds(static_cast<std::int64_t>(static_cast<double>(pause.count()) * (1 + RandomFraction()) / 2))));
  }
}

Result<S3Bucket::Answer> S3Bucket::TryOnce(const S3Call& call, std::uint64_t most) {
  Answer answer;
  AnswerReader reader(answer.status, answer.body, most);
  if (const auto sent = transport_.Perform(MakeS3Request(options_, call), reader, stop_); !sent) {
    return Fail(FromTransport(sent.error()));
  }
  if (reader.too_large()) return Fail(ErrorCode::kTooLarge, "the bucket's response is too large");
  if (answer.status >= 200 && answer.status < 300) return answer;
  const std::string code = S3ErrorCode(answer.body);
  // Only a missing object, not a missing bucket or a server without buckets.
  if (answer.status == 404 && code == "NoSuchKey" && call.method != "PUT") return answer;
  return Fail(FromStatus(answer.status, code));
}

Result<void> S3Bucket::Pause(milliseconds pause) const {
  if (!reprise::Pause(pause, stop_)) return Fail(ErrorCode::kCancelled, "the request was cancelled");
  return {};
}

int S3Bucket::TriesNow() {
  const MutexLock lock(mutex_);
  const bool hurry = failed_at_ && Clock::now() - *failed_at_ < limits_.hurry;
  return hurry ? 1 : limits_.tries;
}

void S3Bucket::NoteOutcome(bool ok) {
  const MutexLock lock(mutex_);
  failed_at_ = ok ? std::nullopt : std::optional(Clock::now());
}

}  // namespace reprise
