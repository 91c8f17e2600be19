#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/approval.h"
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

// What a person has agreed to, for changes that only the local user may make.
struct Consent {
  bool is_local = false;                // Request::is_local
  std::optional<std::string> digest{};  // as it was shown
};

// The MCP servers of a running server: those of its configuration, and those that the operator adds. Thread-safe.
class ToolServerSettings {
 public:
  struct Server {
    std::string name{};
    std::string url{};                                // without secrets; empty: it is a command
    std::vector<std::string> command{};               // with its arguments
    std::vector<std::string> headers{}, variables{};  // their names
    std::string cwd{};                                // empty: a folder of its own
    bool has_auth = false;                            // people log in there
    bool is_configured = false;                       // it cannot be changed here
    std::string source{};                             // the configuration's file, if known
    std::string digest{};                             // of all that runs or is reached; empty: not known
    std::string problem{};                            // why it is not used
  };
  struct Wanted {
    std::string name{};
    std::string members{};  // a JSON object, as in the configuration
    bool dry_run = false;   // only says what it would be
    Consent consent{};
  };
  virtual ~ToolServerSettings() = default;
  // Whether headers and other secrets are kept sealed; else they lie in plain text in the data folder.
  virtual bool is_sealed() const = 0;
  virtual Result<std::vector<Server>> List() = 0;
  // Adds a server or replaces an added one, and connects to it in the background. One that runs a program, or replaces
  // such a one, needs the consent of the local user: kForbidden (reason "forbidden_user"), kConflict
  // ("digest_mismatch": it is not what was shown, or nothing was). kInvalidArgument (reason "invalid_member"),
  // kForbidden ("untrusted": its program lies where tools could replace it); kConflict: the configuration has one of
  // this name, or the list of added servers could not be read.
  virtual Result<Server> Add(const Wanted& wanted) = 0;
  // Ends it and forgets its log-in and the approvals of its tools. Fails as Add; kNotFound.
  virtual Result<void> Remove(const std::string& name, const Consent& consent) = 0;
  // Reaches or starts it once more, and returns what it says of itself. kNotFound, kUnavailable.
  virtual Result<std::string> Test(const std::string& name) = 0;
};

// The approval rules of a running server: those of its configuration, and those that the operator adds for the own
// chats. Thread-safe.
class RuleSettings {
 public:
  struct Rule {
    std::string name{};  // as in the audit log: "rule 1"
    std::string id{};    // of an added one; empty: it cannot be changed here
    ToolRule rule{};
    std::string means{};    // a sentence
    std::string source{};   // the configuration's file, if known; empty for an added one
    std::string digest{};   // of the words of an added one and of what they mean
    std::string problem{};  // why it does not hold
  };
  struct Wanted {
    ToolRule rule{};
    bool dry_run = false;  // only says what it would be
    Consent consent{};
  };
  virtual ~RuleSettings() = default;
  // Those that hold in this folder. The failures of Workspaces::Open.
  virtual Result<std::vector<Rule>> List(const std::string& workspace) = 0;
  // One that allows calls needs the consent of the local user; fails as ToolServerSettings::Add. Also kConflict if
  // there is the same rule. Holds from the next call on, in runs that are under way, too.
  virtual Result<Rule> Add(const Wanted& wanted) = 0;
  // Needs that consent for every rule, because one that holds calls back lets them run when it is gone. kNotFound.
  virtual Result<void> Remove(const std::string& id, const Consent& consent) = 0;
};

// The site and how it is served.
struct ServerOptions : HttpOptions {
  TenantSource tenants = {};                         // needed with `people`
  std::string_view openapi = "{}";                   // the answer of GET /openapi.json; lives as long as the program
  std::span<const PageAsset> page = {};              // empty: no page
  std::function<Result<void>()> ready = {};          // for GET /readyz; null: always ready. May block for a second
  std::function<std::vector<Error>()> failing = {};  // failures of a ready server; null: none. May block too
  ToolServerLogins* logins = nullptr;                // log-ins at MCP servers; null: there are none
  ProviderConnections* providers = nullptr;          // null: none can be connected
  DevicePush* push = nullptr;                        // null: no device can be told
  ToolServerSettings* tool_servers = nullptr;        // null: none can be added
  RuleSettings* rules = nullptr;                     // null: none can be added
};

// HttpServer::Open with our routes. `engine` must outlive the server; with `people` it is the operator's.
Result<std::unique_ptr<HttpServer>> OpenServer(Engine& engine, ServerOptions options,
                                               std::vector<UniqueFd> sockets = {});

}  // namespace reprise
