#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/options.h"
#include "reprise/transport.h"

// Requests to a bucket, and what it answers: the S3 protocol as MinIO, AWS, Ceph and Swift speak it. Addresses are
// path-style (ENDPOINT/BUCKET/KEY), which all of them take.
namespace reprise {

// RFC 3986, section 2.3: everything but A-Z a-z 0-9 - . _ ~ is written as %XX. A slash too, unless `keep_slashes`.
std::string PercentEncode(std::string_view text, bool keep_slashes);

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

}  // namespace reprise
