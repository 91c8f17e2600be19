#include "mcp/mcp_servers.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/logging.h"
#include "base/try.h"

namespace reprise {
namespace {

// Until the log-in's page is known. Before that several documents are fetched, each with its own limit.
constexpr std::chrono::seconds kPageLimit{60};

std::vector<std::string> NamesOf(const std::vector<McpServerOptions>& servers) {
  std::vector<std::string> names;
  for (const McpServerOptions& server : servers) names.push_back(server.name);
  return names;
}

}  // namespace

McpServers::Memory::Memory(const std::vector<McpServerOptions>& servers, const Parts& parts)
    : consents(parts.file_system, parts.approvals_file, parts.keys),
      credentials(parts.file_system, parts.logins_file, parts.keys),
      eras(parts.file_system, parts.eras_file, NamesOf(servers)) {}

McpServers::McpServers(const std::vector<McpServerOptions>& servers, Parts parts, std::shared_ptr<Memory> memory)
    : transport_(parts.transport),
      workspace_(parts.workspace),
      client_version_(parts.client_version),
      memory_(memory ? std::move(memory) : std::make_shared<Memory>(servers, parts)) {
  for (const McpServerOptions& options : servers) {
    connections_.push_back(
        std::make_shared<ServerConnection>(options, ServerConnection::Parts{.transport = parts.transport,
                                                                            .consents = memory_->consents,
                                                                            .credentials = memory_->credentials,
                                                                            .eras = memory_->eras,
                                                                            .workspace = parts.workspace,
                                                                            .folders = parts.folders,
                                                                            .client_version = parts.client_version,
                                                                            .on_change = parts.on_change}));
  }
}

McpServers::~McpServers() {
  StopLogins();
  for (const auto& connection : connections_) connection->RequestStop();
  for (const auto& connection : connections_) connection->Stop();
}

void McpServers::Start() {
  for (const auto& connection : connections_) connection->Start();
}

void McpServers::StopLogins() {
  std::map<std::string, std::shared_ptr<LoginAttempt>> given_up;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  stopped_ = true;
  given_up.swap(attempts_);
  for (const auto& [name, attempt] : given_up) attempt->GiveUp();  // also wakes callers that wait for its page
}

Result<std::shared_ptr<ServerConnection>> McpServers::Find(const std::string& server) const {
  const auto found =
      std::ranges::find_if(connections_, [&](const auto& connection) { return connection->options().name == server; });
  if (found == connections_.end()) return Fail(ErrorCode::kNotFound, "no such MCP server is configured");
  return *found;
}

Result<std::string> McpServers::BeginLogin(const std::string& server) {
  const auto connection = TRY(Find(server));
  const auto log_in = [this, connection](const LoginAttempt::Show& show, const std::stop_token& stop) {
    const ServerLogin login{.transport = transport_,
                            .credentials = memory_->credentials,
                            .workspace = workspace_,
                            .client_version = client_version_};
    return LogInAtServer(connection->options(), login, show, stop);
  };
  const auto done = [connection](const Result<bool>& logged_in) {
    if (logged_in) return connection->ConnectAgain();
    if (logged_in.error().code == ErrorCode::kCancelled) return;
    LogWarning("a log-in at an MCP server failed",
               {{"server", connection->options().name}, {"error", logged_in.error().message}});
  };
  std::shared_ptr<LoginAttempt> attempt, before;  // `before` is destroyed after the lock is released
  try {
    const MutexLock lock(mutex_);
    if (stopped_) return Fail(ErrorCode::kUnavailable, "the server is stopping");
    before = std::exchange(attempts_[server], nullptr);
    attempt = attempts_[server] = std::make_shared<LoginAttempt>(log_in, done);
  } catch (const std::system_error&) {
    return Fail(ErrorCode::kUnavailable, "the system is out of threads");
  }
  return attempt->AwaitPage(kPageLimit);
}

Result<bool> McpServers::LogOut(const std::string& server) {
  const auto connection = TRY(Find(server));
  std::shared_ptr<LoginAttempt> given_up;  // destroyed after the lock is released
  {
    const MutexLock lock(mutex_);
    if (const auto found = attempts_.find(server); found != attempts_.end()) {
      given_up = std::move(found->second);
      attempts_.erase(found);
    }
  }
  given_up.reset();
  const bool was = TRY(memory_->credentials.Forget(server));
  if (was) connection->ConnectAgain();
  return was;
}

}  // namespace reprise
