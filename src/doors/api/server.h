#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/engine.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"
#include "reprise/tool.h"
#include "wire/server.h"

namespace reprise {

// A file of the browser page. The bytes live as long as the program.
struct PageAsset {
  std::string_view name;    // such as "5NXPGIBI.js"; GET / serves "index.html"
  std::string_view type;    // its Content-Type
  std::string_view digest;  // of its content, for the ETag
  std::string_view gzip;    // its content, compressed (RFC 1952)
};

// Provides the engines of tenants.
struct TenantSource {
  // Opens the engine of a tenant, which alone has this tenant's chats and has taken up the runs that an earlier process
  // left. May wait for the disk. Called again for a tenant only after its last engine is gone.
  std::function<Result<std::shared_ptr<Engine>>(const Principal&)> open;
  // All tenants that have been here before. May wait for the disk.
  std::function<std::vector<Principal>()> list;
  // The tenants among them that may have left runs. May wait for the disk.
  std::function<std::vector<Principal>()> left;
  // Registers a callback for tenants whose runs another server left when it died; any thread calls it. Null removes the
  // callback. Empty if there are no other servers.
  std::function<void(std::function<void(const Principal&)>)> watch{};
};

// Model providers that people connect to a running server, beside those of its configuration. Thread-safe.
class ProviderConnections {
 public:
  struct Provider {
    std::string name{}, type{}, base_url{};
    bool is_configured = false;  // it cannot be changed here
    bool has_key = false;
  };
  struct Wanted {
    std::string name{}, type{}, base_url{}, api_key{};  // without a key: empty
    bool has_no_list = false;                           // it is kept though it answers 404 for its list of models
  };
  virtual ~ProviderConnections() = default;
  // Whether the keys are kept sealed; else they lie in plain text in the data folder.
  virtual bool is_sealed() const = 0;
  virtual Result<std::vector<Provider>> List() = 0;
  // Asks the provider for its models, and keeps the connection if it answers. Returns how many models it lists.
  // kInvalidArgument (reason "invalid_member"), kConflict: the configuration has a provider of this name, or the file
  // of connected providers could not be read; the failures of ModelClient::ListModels.
  virtual Result<std::size_t> Connect(const Wanted& wanted) = 0;
  // Runs that use it go on. kNotFound; kConflict as Connect.
  virtual Result<void> Disconnect(const std::string& name) = 0;
};

// The devices of people that are told when something waits (Web Push). Each user's are apart from the others'.
// Thread-safe.
class DevicePush {
 public:
  struct Device {
    std::string id{};       // the first digits of its address's digest
    std::string name{};     // for people; may be empty
    std::string service{};  // the host that takes what it is sent
    Timestamp created_at{};
  };
  struct Wanted {
    std::string endpoint{}, p256dh{}, auth{};  // as its browser gives them
    std::string name{};
  };
  virtual ~DevicePush() = default;
  // The server's key in base64url, for browsers; made at the first call. kConflict: it cannot be read, and is not
  // written over.
  virtual Result<std::string> PublicKey() = 0;
  // kConflict: the devices cannot be read, and are not written over.
  virtual Result<std::vector<Device>> List(const Principal& owner) = 0;
  // Adds one, or replaces the one of the same address. kInvalidArgument (reason "invalid_member"), kForbidden (reason
  // "address_not_allowed"), kConflict: there are too many, or as List.
  virtual Result<Device> Add(const Principal& owner, const Wanted& wanted) = 0;
  // kNotFound; kConflict as List.
  virtual Result<void> Remove(const Principal& owner, const std::string& id) = 0;
};

// The site and how it is served.
struct ServerOptions : HttpOptions {
  TenantSource tenants = {};                         // needed with `people`
  std::string openapi = "{}";                        // the answer of GET /openapi.json
  std::span<const PageAsset> page = {};              // empty: no page
  std::function<Result<void>()> ready = {};          // for GET /readyz; null: always ready. May block for a second
  std::function<std::vector<Error>()> failing = {};  // failures of a ready server; null: none. May block too
  ToolServerLogins* logins = nullptr;                // log-ins at MCP servers; null: there are none
  ProviderConnections* providers = nullptr;          // null: none can be connected
  DevicePush* push = nullptr;                        // null: no device can be told
};

// HttpServer::Open with our routes. `engine` must outlive the server; with `people` it is the operator's.
Result<std::unique_ptr<HttpServer>> OpenServer(Engine& engine, ServerOptions options,
                                               std::vector<UniqueFd> sockets = {});

}  // namespace reprise
