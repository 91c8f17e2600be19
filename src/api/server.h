#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/engine.h"
#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/tool.h"
#include "wire/server.h"

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

// What is served, and how.
struct ServerOptions : HttpOptions {
  TenantSource tenants = {};                 // needed with `people`
  std::string openapi = "{}";                // the answer of GET /openapi.json
  std::span<const PageAsset> page = {};      // shown to browsers; empty: nothing
  std::function<Result<void>()> ready = {};  // the answer of GET /readyz; null: always ready. May block for a second
  std::function<std::vector<Error>()> failing = {};  // what fails although it is ready; null: nothing. Likewise
  ToolServerLogins* logins = nullptr;                // at servers of tools; null: there are none
};

// HttpServer::Open with our routes. `engine` must outlive the server; with `people` it is the operator's.
Result<std::unique_ptr<HttpServer>> OpenServer(Engine& engine, ServerOptions options,
                                               std::vector<UniqueFd> sockets = {});

}  // namespace reprise
