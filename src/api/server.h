#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/system.h"
#include "people/authenticator.h"
#include "reprise/engine.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/telemetry.h"
#include "reprise/tool.h"
#include "wire/gate.h"
#include "wire/request_parser.h"

namespace reprise {

// A file of the page. The bytes live as long as the program.
struct PageAsset {
  std::string_view name;    // "5NXPGIBI.js"; "index.html" is what GET / shows
  std::string_view type;    // its Content-Type
  std::string_view digest;  // of its content, for the ETag
  std::string_view gzip;    // its content (RFC 1952)
};

// Where engines of tenants come from.
struct TenantSource {
  // The engine of a tenant, whose chats nobody else has; it has taken up what an earlier process left. Blocks while the
  // disk does. May be asked again for the same tenant when the last engine is gone.
  std::function<Result<std::shared_ptr<Engine>>(const Principal&)> open;
  // Those that have been here before. Blocks likewise.
  std::function<std::vector<Principal>()> list;
  // Those of them that may have left something to be taken up. Likewise.
  std::function<std::vector<Principal>()> left;
  // From now on the given is called, by any thread, for somebody who has left something since: at another server that
  // is gone. Null: nobody wants to know. Empty if there are no other servers.
  std::function<void(std::function<void(const Principal&)>)> watch{};
};

struct ServerOptions {
  std::string host = "127.0.0.1";              // an address; anything but loopback needs a token
  int port = 8000;                             // 0: any free one
  std::optional<std::string> token = {};       // if set, every request must show it; with `people`: the operator's
  std::shared_ptr<Authenticator> people = {};  // tells who sends a request; null: one user, whoever passes
  TenantSource tenants = {};                   // needed with `people`
  std::vector<PublicHost> public_hosts = {};   // names that clients use beside those it listens under
  std::string openapi = "{}";                  // what GET /openapi.json answers
  std::span<const PageAsset> page = {};        // what a browser is shown; empty: nothing
  HttpLimits limits;
  // A digest of what turns run with; a request that wants others (Reprise-Settings) is refused.
  std::string settings = {};
  // Whether whoever started the server for themselves has gone, so that it ends when it is not used; null: never.
  std::function<bool()> is_left = {};
  std::function<Result<void>()> ready = {};  // what GET /readyz says; null: always ready. May block for a second
  std::function<std::vector<Error>()> failing = {};  // what it says fails although it is ready; null: nothing. Likewise
  ToolServerLogins* logins = nullptr;                // at servers of tools; null: there are none
  bool files_in_bucket = false;                      // whoever asks for one may have to wait for other machines
  std::size_t max_connections = 12'000;              // less if the limit on descriptors leaves no room
  std::chrono::milliseconds header_timeout{5'000};   // for the whole head, and for a connection that stays silent
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{60'000};   // between requests
  std::chrono::milliseconds stall_timeout{30'000};  // a reader that takes nothing
  std::chrono::milliseconds heartbeat{15'000};
  std::chrono::milliseconds stop_timeout{1'000};
};

// Serves an engine over HTTP. One thread waits for all sockets, a few answer requests; streams and idle connections
// cost no thread. Thread-safe.
class HttpServer {
 public:
  // Listens; when this returns, connections are accepted. For 127.0.0.1 also on ::1 where there is one, same port.
  // kInvalidArgument: not an address, or one that needs a token; kUnavailable (reason "address_in_use"); kIo.
  // `engine` must outlive the server; with `people` it is the operator's.
  //
  // With `sockets`, which listen already, it accepts on these: `options.host` and `options.port` do not matter. They
  // must be TCP sockets on one port; those on anything but loopback need a token. Else kInvalidArgument.
  static Result<std::unique_ptr<HttpServer>> Open(Engine& engine, ServerOptions options,
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
  // Ends the runs of all tenants but the engine's that Open was given. Call it between BeginStop and Stop, which does
  // it otherwise.
  void StopTenants();
  // BeginStop, then lets streams whose log is closed send the rest, for at most `stop_timeout`, closes everything and
  // ends the threads. Call it after Engine::Stop.
  void Stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise
