#include "s3/s3_request.h"

#include <re2/re2.h>

#include <algorithm>
#include <chrono>

#include "crypto/digest.h"

namespace reprise {
namespace {

using std::chrono::seconds;

bool IsUnreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~").find(c) != std::string_view::npos;
}

// Sorted by name, each with its "=": in this form it is signed.
std::string QueryOf(std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) name = PercentEncode(name, false), value = PercentEncode(value, false);
  std::sort(query.begin(), query.end());
  std::string text;
  for (const auto& [name, value] : query) text += (text.empty() ? "?" : "&") + name + "=" + value;
  return text;
}

}  // namespace

std::string PercentEncode(std::string_view text, bool keep_slashes) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (IsUnreserved(c) || (c == '/' && keep_slashes)) {
      encoded += c;
    } else {
      encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return encoded;
}

HttpRequest MakeS3Request(const BucketOptions& bucket, S3Call call) {
  HttpRequest request;
  request.method = std::move(call.method);
  request.url = bucket.endpoint + "/" + PercentEncode(bucket.bucket, false);
  if (!call.key.empty()) request.url += "/" + PercentEncode(call.key, true);
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

}  // namespace reprise
