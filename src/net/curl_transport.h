#pragma once

#include <memory>
#include <stop_token>

#include "base/mutex.h"
#include "reprise/transport.h"

namespace reprise {

class CurlLoop;

// A Transport over libcurl: one thread with one epoll loop serves every transfer. Library and thread are loaded and
// started by the first request, so that a server that never calls out pays for neither.
//
// Beyond the contract: a handler that answers false is done at once, while the rest of a response that is
// about to end (a quarter of a second, 64 KiB) is read in the background so that the connection can be used again.
// While a connection is being made, connect_timeout and total_timeout count, idle_timeout does not; the progress of a
// large upload counts as life. More than max_redirects is kUnavailable (reason "too_many_redirects").
class CurlTransport : public Transport {
 public:
  // What is taken from a socket in one read, and what libcurl allocates for each transfer under way.
  static constexpr long kSmallReads = 2 << 10;   // a thousand streams of small events
  static constexpr long kLargeReads = 64 << 10;  // one stream, as quickly as it comes
  explicit CurlTransport(long receive_bytes = kSmallReads);
  // REQUIRES: no request is under way.
  ~CurlTransport() override;
  CurlTransport(const CurlTransport&) = delete;
  CurlTransport& operator=(const CurlTransport&) = delete;

  void Send(HttpRequest request, HttpResponseHandler& handler, std::stop_token stop, Done done) override;

 private:
  Result<CurlLoop*> StartedLoop();

  const long receive_bytes_;
  Mutex mutex_;
  std::unique_ptr<CurlLoop> loop_ GUARDED_BY(mutex_);
};

}  // namespace reprise
