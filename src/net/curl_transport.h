#pragma once

#include <memory>
#include <stop_token>

#include "base/mutex.h"
#include "reprise/transport.h"

namespace reprise {

class CurlLoop;

// A Transport over libcurl: one thread with one epoll loop serves all transfers. The first request loads the library
// and starts the thread, so that a server that never calls out pays for neither.
//
// Beyond the contract: if a handler returns false, the request ends at once, while a short rest of the response (a
// quarter of a second, 64 KiB) is read in the background so that the connection can be reused. While connecting,
// connect_timeout and total_timeout count, but not idle_timeout; the progress of a large upload resets idle_timeout.
// More than max_redirects is kUnavailable (reason "too_many_redirects").
class CurlTransport : public Transport {
 public:
  // The size of one read from a socket, and of libcurl's buffer for each active transfer.
  static constexpr long kSmallReads = 2 << 10;   // a thousand streams of small events
  static constexpr long kLargeReads = 64 << 10;  // one stream at full speed
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
