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
  std::string host = "127.0.0.1";              // an address; anything but loopback needs a token
  int port = 8000;                             // 0: any free one
  std::optional<std::string> token = {};       // if set, every request must show it; with `people`: the operator's
  std::shared_ptr<Authenticator> people = {};  // tells who sends a request; null: one user, whoever passes
  std::vector<PublicHost> public_hosts = {};   // names that clients use beside those it listens under
  HttpLimits limits;
  // A digest of what turns run with; a request that wants others (Reprise-Settings) is refused.
  std::string settings = {};
  // Whether whoever started the server for themselves has gone, so that it ends when it is not used; null: never.
  std::function<bool()> is_left = {};
  bool files_in_bucket = false;                     // whoever asks for one may have to wait for other machines
  std::size_t max_connections = 12'000;             // less if the limit on descriptors leaves no room
  std::chrono::milliseconds header_timeout{5'000};  // for the whole head, and for a connection that stays silent
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{60'000};   // between requests
  std::chrono::milliseconds stall_timeout{30'000};  // a reader that takes nothing
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

  // The routes for all who are no tenant. Tenants' routes have the same paths.
  virtual const Router& root() const = 0;
  // The tenant's routes, or root() for all others, valid while the returned pointer lives. May wait for the disk.
  // kUnavailable (Reason::kOverloaded) if too many tenants are busy.
  virtual Result<std::shared_ptr<const Router>> Enter(const Principal& principal) = 0;
  // The same, but kNotFound for a tenant that has never been here.
  virtual Result<std::shared_ptr<const Router>> EnterKnown(const Principal& principal) = 0;
  // Called once, when the server accepts requests. Resumes in the background the runs that an earlier server left.
  virtual void TakeUp() = 0;
  // Ends the runs and streams of all tenants and admits no tenant afterwards. May be called again.
  virtual void Stop() = 0;
  // What GET /metrics says.
  virtual std::vector<Metric> CollectMetrics() const = 0;
};

// Makes the site of a server. The gate and the counters outlive it.
using MakeSite = std::function<std::unique_ptr<Site>(const Gate&, const HttpMetrics&)>;

// Serves a site over HTTP. One thread waits for all sockets, a few answer requests; streams and idle connections
// cost no thread. Thread-safe.
class HttpServer {
 public:
  // Listens; when this returns, connections are accepted. For 127.0.0.1 also on ::1 where there is one, same port.
  // kInvalidArgument: not an address, or one that needs a token; kUnavailable (reason "address_in_use"); kIo.
  //
  // With `sockets`, which listen already, it accepts on these: `options.host` and `options.port` do not matter. They
  // must be TCP sockets on one port; those on anything but loopback need a token. Else kInvalidArgument.
  static Result<std::unique_ptr<HttpServer>> Open(HttpOptions options, const MakeSite& make_site,
                                                  std::vector<UniqueFd> sockets = {});
  ~HttpServer();  // Stop

  const std::string& host() const;  // the address, the first one if there are several
  int port() const;
  std::size_t connections() const;  // that are open now
  // What GET /metrics says.
  std::vector<Metric> CollectMetrics() const;

  // If nobody is connected, accepts no more connections: whoever comes later finds nobody, not a server that ends.
  // False: somebody is, or the server stops already. Not to be called while Stop is.
  bool CloseIfUnused();
  // Accepts no more connections and answers new requests 503; streams go on. Call it before Engine::Stop.
  void BeginStop();
  // Site::Stop. Call it between BeginStop and Stop, which does it otherwise.
  void StopSite();
  // BeginStop, then lets streams whose log is closed send the rest, for at most `stop_timeout`, closes everything and
  // ends the threads. Call it after Engine::Stop.
  void Stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
