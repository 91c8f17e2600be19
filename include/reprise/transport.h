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

// The signature of a request to an S3 service (AWS Signature Version 4). The caller writes path and query in signed
// form: percent-encoded, the query sorted, each name with its "="; and sets the header x-amz-content-sha256. Secrets:
// never log or print it.
struct S3Signature {
  std::string region, access_key, secret_key;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;  // http or https only
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds idle_timeout{120'000};         // longest silence, before and after the head
  std::optional<std::chrono::milliseconds> total_timeout;  // none: no limit
  int max_redirects = 0;
  // Refuses loopback, link-local, private, multicast and reserved addresses, after each name look-up and redirect
  // (SSRF). kForbidden (reason "address_not_allowed").
  bool public_addresses_only = false;
  std::optional<S3Signature> signature{};  // none: not signed
  // Not empty: a WebSocket (RFC 6455) at this URL. These texts are sent when the server has agreed, which is reported
  // as a head of status 200; a refusal is a response like any other. Each message of the server is one OnData; one
  // of more than 4 MiB ends it with kUnavailable (reason "connection_lost").
  std::vector<std::string> messages{};
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;  // names in lower case

// Receives a response while it arrives. Called on the transport's thread, which serves all other transfers too: must
// not block. One call at a time, none after the request is done.
class HttpResponseHandler {
 public:
  virtual ~HttpResponseHandler() = default;
  // Once per final response; not for redirects that are followed.
  virtual void OnHead(int status, const HttpHeaders& headers) = 0;
  // False: ends the transfer with the result ok.
  virtual bool OnData(std::string_view bytes) = 0;
  // All data of one network read has been delivered. False as with OnData.
  virtual bool OnBatchEnd() { return true; }
};

// Sends HTTP requests. Thread-safe; connections are reused.
//
//   struct Body : reprise::HttpResponseHandler {
//     void OnHead(int status, const reprise::HttpHeaders&) override { ok = status == 200; }
//     bool OnData(std::string_view bytes) override { return text += bytes, true; }
//     bool ok = false;
//     std::string text;
//   } body;
//   auto sent = transport.Perform({.url = "https://example.org"}, body, stop);
class Transport {
 public:
  virtual ~Transport() = default;
  using Done = std::function<void(Result<void>)>;
  // Returns at once, so a long stream holds no thread. `handler` must live until `done` is called. `done` is called
  // exactly once, on the transport's thread (so it must not block) or, if the request cannot be sent at all, within
  // this call: when the response has ended, `stop` is requested (kCancelled, within milliseconds) or it fails:
  // kDeadlineExceeded (reason "connect_timeout", "idle_timeout" or "total_timeout"), kUnavailable (reason
  // "connection_failed", "connection_lost", "name_not_resolved", "tls_failed", "head_too_large"), kInvalidArgument (bad
  // URL), kForbidden.
  virtual void Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop, Done done) = 0;

  // Sends the request and waits for its end. Not for the transport's own thread.
  Result<void> Perform(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop);
};

}  // namespace reprise
