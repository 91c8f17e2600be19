#include "app/bucket_checks.h"

#include <string>

#include "app/chat_bucket.h"

namespace reprise {

Finding CheckBucket(const Options& options) {
  const std::string name = options.bucket->bucket + " at " + options.bucket->endpoint;
  const auto bucket = ChatBucket::Open(options);
  if (!bucket) return {"bucket", Verdict::kFailure, bucket.error().message};
  const auto checked = (*bucket)->Check();
  if (checked) return {"bucket", Verdict::kOk, name + " lets this server in"};
  const std::string& detail = checked.error().detail;
  return {"bucket", Verdict::kFailure,
          name + ": " + checked.error().message + (detail.empty() ? "" : " (" + detail + ")")};
}

}  // namespace reprise
