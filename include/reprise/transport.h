#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/result.h"

namespace reprise {

// How a request to a service of the S3 kind is signed (AWS Signature Version 4). Whoever sends the request writes its
// path and its query as they are signed: percent-encoded, and the query sorted, each name with its "="; and a header
// x-amz-content-sha256. Secrets: never log or print it.
struct S3Signature {
  std::string region, access_key, secret_key;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // http or https, nothing else
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds idle_timeout{120'000};         // longest silence, before and after the head
  std::optional<std::chrono::milliseconds> total_timeout;  // none: as long as it keeps talking
  int max_redirects = 0;
  // Refuse to connect to loopback, link-local, private, multicast and reserved addresses, after each name look-up and
  // redirect (SSRF). kForbidden (reason "address_not_allowed").
  bool public_addresses_only = false;
  std::optional<S3Signature> signature{};  // none: it is sent as it is
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;  // names in lower case

// Receives a response while it arrives. Called on the transport's thread, which serves every other transfer too: must
// not block. Never two calls at once, none after the request is done.
class HttpResponseHandler {
 public:
  virtual ~HttpResponseHandler() = default;
  // Once per final response (redirects that are followed are not shown).
  virtual void OnHead(int status, const HttpHeaders& headers) = 0;
  // False: enough, end the transfer (its result is then ok).
  virtual bool OnData(std::string_view bytes) = 0;
  // All that one read from the network brought has been handed over. False as with OnData.
  virtual bool OnBatchEnd() { return true; }
};

// Sends HTTP requests. Thread-safe; connections are kept and used again.
class Transport {
 public:
  virtual ~Transport() = default;
  using Done = std::function<void(Result<void>)>;
  // Returns at once: a stream that lasts holds no thread. `handler` must live until `done` is called, which happens
  // exactly once, on the transport's thread (so it must not block) or, for a request that cannot be sent at all, within
  // this call: when the response has ended, `stop` is requested (kCancelled, within milliseconds) or it fails:
  // kDeadlineExceeded (reason "connect_timeout", "idle_timeout" or "total_timeout"), kUnavailable (reason
  // "connection_failed", "connection_lost", "name_not_resolved", "tls_failed", "head_too_large"), kInvalidArgument (bad
  // URL), kForbidden.
  virtual void Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop, Done done) = 0;

  // Send, and wait for it. Not for the transport's own thread.
  Result<void> Perform(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop);
};

}  // namespace reprise
