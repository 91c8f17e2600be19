#pragma once

#include <string>
#include <thread>
#include <vector>

#include "base/system.h"
#include "mcp/oauth_authorizer.h"
#include "reprise/options.h"
#include "reprise/transport.h"

// The checks of `reprise doctor`. Each that asks another service takes some seconds at most and changes nothing there.

namespace reprise {

enum class Verdict { kOk, kWarning, kFailure };

struct Finding {
  std::string check;  // "key file"
  Verdict verdict;
  std::string words;  // one sentence; never a secret
};

// One finding per check, in the order in which a person would fix them. Only reads and probes.
std::vector<Finding> CheckHealth(const Options& options);

// One finding for each configured service: whether the database has this program's tables and holds the server's role
// to row-level security, and whether bucket, Redis and issuer accept this server. With several users, also whether the
// server can identify them and keeps them apart.
std::vector<Finding> CheckServices(const Options& options);

// One finding for each configured MCP server: starts or reaches it, initializes a session, counts its tools and ends
// the session.
std::vector<Finding> CheckMcpServers(const Options& options);
// The same for one. `folders`: where commands get a folder to start in.
Finding CheckMcpServer(const McpServerOptions& server, Transport& transport, OAuthCredentials& credentials,
                       const std::string& workspace, const std::string& folders);

// Asks all configured providers for their models at once, and waits three seconds at most: one finding for each, named
// after it. An unreachable provider or a refused key is a failure; so is a missing key of the default model's provider.
// Skips well-known providers without any configuration.
std::vector<Finding> CheckProviders(const Options& options);

// The same at the start of a server, which logs a warning for each bad finding. In a process of its own, because
// libcurl and the thirty libraries that it loads would stay in the memory of an idle server.
class ProviderCheck {
 public:
  // Forks, so call it before the first thread starts. Sends nothing yet.
  explicit ProviderCheck(const Options& options);
  ~ProviderCheck();  // ends the process
  ProviderCheck(const ProviderCheck&) = delete;
  ProviderCheck& operator=(const ProviderCheck&) = delete;

  void Begin();

 private:
  void Reap() const;

  UniqueFd process_;  // empty if there is nothing to ask
  UniqueFd go_;
  std::jthread reaper_;
};

}  // namespace reprise
