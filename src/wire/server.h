#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system.h"
#include "people/authenticator.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/telemetry.h"
#include "wire/gate.h"
#include "wire/request_parser.h"
#include "wire/router.h"

namespace reprise {

struct HttpOptions {
  std::string host = "127.0.0.1";              // an IP address or "localhost"; all but loopback need a token
  int port = 8000;                             // 0: any free port
  std::optional<std::string> token = {};       // every request must show it; with `people`: the operator's
  std::shared_ptr<Authenticator> people = {};  // identifies users; null: all who pass are one user
  std::vector<PublicHost> public_hosts = {};   // further names by which clients reach the server
  HttpLimits limits;
  // Digests of the settings of turns: of all, and of those that chats cannot have of their own. A request that expects
  // neither (Reprise-Settings) is refused.
  std::string settings = {}, settings_of_all_chats = {};
  // True if the client that started this server for itself is gone, so the server ends when it is unused; null: never.
  std::function<bool()> is_left = {};
  bool files_in_bucket = false;                     // a request for a file may wait for other machines
  std::size_t max_connections = 12'000;             // fewer if the limit on descriptors is low
  std::chrono::milliseconds header_timeout{5'000};  // for the whole head, also if none comes
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{60'000};   // between requests
  std::chrono::milliseconds stall_timeout{30'000};  // for a client that reads nothing
  std::chrono::milliseconds heartbeat{15'000};
  std::chrono::milliseconds stop_timeout{1'000};
};

// Counters of all connections. Thread-safe.
struct HttpMetrics {
  std::atomic<std::uint64_t> connections_total{0}, requests_total{0};
  std::atomic<std::uint64_t> responses_2xx{0}, responses_4xx{0}, responses_5xx{0};
  std::atomic<std::uint64_t> streams_total{0}, streams_failed{0};
  std::atomic<std::int64_t> connections{0}, streams{0};
};

// The routes that a server serves; each tenant may have its own. Thread-safe.
class Site {
 public:
  virtual ~Site() = default;

  // The routes for principals that are no tenants. Tenants' routes have the same paths.
  virtual const Router& root() const = 0;
  // The tenant's routes, or root() for all others, valid while the returned pointer lives. May wait for the disk.
  // kUnavailable if too many tenants are busy (Reason::kOverloaded) or the server is stopping (Reason::kStopping).
  virtual Result<std::shared_ptr<const Router>> Enter(const Principal& principal) = 0;
  // The same, but kNotFound for a tenant that has never been here.
  virtual Result<std::shared_ptr<const Router>> EnterKnown(const Principal& principal) = 0;
  // Called once, when the server accepts requests. Resumes in the background the runs that an earlier server left.
  virtual void TakeUp() = 0;
  // Ends the runs and streams of all tenants and admits no tenant afterwards. May be called again.
  virtual void Stop() = 0;
  // The metrics of GET /metrics.
  virtual std::vector<Metric> CollectMetrics() const = 0;
};

// Makes the site of a server. The gate and the counters outlive it.
using MakeSite = std::function<std::unique_ptr<Site>(const Gate&, const HttpMetrics&)>;

// Serves a site over HTTP. One thread waits for all sockets, and a few threads run handlers; streams and idle
// connections need no thread. Thread-safe.
class HttpServer {
 public:
  // Begins to accept connections before it returns. For 127.0.0.1 it also listens on ::1, if that exists, on the same
  // port. kInvalidArgument: a wrong host or port, or no token where one is needed; kUnavailable (reason
  // "address_in_use"); kIo.
  //
  // With `sockets`, which listen already, `options.host` and `options.port` are ignored. All must be TCP sockets on one
  // port, and any but loopback needs a token; otherwise kInvalidArgument.
  static Result<std::unique_ptr<HttpServer>> Open(HttpOptions options, const MakeSite& make_site,
                                                  std::vector<UniqueFd> sockets = {});
  ~HttpServer();  // calls Stop

  const std::string& host() const;  // the first address if there are several
  int port() const;
  std::size_t connections() const;  // those open now
  // The metrics of GET /metrics.
  std::vector<Metric> CollectMetrics() const;

  // Stops accepting connections if there are none, so that a later client is refused and never meets a server that is
  // about to end. False if a client is connected or the server is stopping. Do not call it during Stop.
  bool CloseIfUnused();
  // Accepts no more connections and answers new requests with 503; streams continue. Call it before Engine::Stop.
  void BeginStop();
  // Calls Site::Stop. Call it between BeginStop and Stop, or Stop does it.
  void StopSite();
  // Calls BeginStop and Site::Stop, lets the streams of closed logs send the rest for at most `stop_timeout`, then
  // closes everything and ends the threads. Call it after Engine::Stop.
  void Stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
