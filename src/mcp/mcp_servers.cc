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
    : parts_(std::move(parts)), memory_(memory ? std::move(memory) : std::make_shared<Memory>(servers, parts_)) {
  const MutexLock lock(mutex_);
  for (const McpServerOptions& options : servers) connections_.push_back(Make(options, parts_.folders));
}

std::shared_ptr<ServerConnection> McpServers::Make(const McpServerOptions& server, const std::string& folders) const {
  return std::make_shared<ServerConnection>(server, ServerConnection::Parts{.transport = parts_.transport,
                                                                            .consents = memory_->consents,
                                                                            .credentials = memory_->credentials,
                                                                            .eras = memory_->eras,
                                                                            .workspace = parts_.workspace,
                                                                            .folders = folders,
                                                                            .client_version = parts_.client_version,
                                                                            .on_change = parts_.on_change});
}

McpServers::~McpServers() {
  StopLogins();
  std::vector<std::shared_ptr<ServerConnection>> all;
  {
    const MutexLock lock(mutex_);
    all.swap(connections_);
  }
  for (const auto& connection : all) connection->RequestStop();
  for (const auto& connection : all) connection->Stop();
}

void McpServers::Start() {
  std::vector<std::shared_ptr<ServerConnection>> all;
  {
    const MutexLock lock(mutex_);
    all = connections_;
  }
  for (const auto& connection : all) connection->Start();  // calls on_change
}

Result<void> McpServers::Add(const McpServerOptions& server, const std::string& folders) {
  auto connection = Make(server, folders);
  {
    const MutexLock lock(mutex_);
    if (stopped_) return Fail(ErrorCode::kUnavailable, "the server is stopping");
    connections_.push_back(connection);
  }
  connection->Start();
  return {};
}

void McpServers::Remove(const std::string& server) {
  std::shared_ptr<ServerConnection> removed;
  {
    const MutexLock lock(mutex_);
    const auto found = std::ranges::find_if(
        connections_, [&](const auto& connection) { return connection->options().name == server; });
    if (found == connections_.end()) return;
    removed = *found;
    connections_.erase(found);
  }
  EndLogin(server);
  removed->Stop();
  memory_->eras.Forget(server);
  const auto forget = [&]() -> Result<void> {
    TRY(memory_->credentials.Forget(server));
    return memory_->consents.Forget(server);
  };
  if (auto forgotten = forget(); !forgotten) {
    LogWarning("the log-in or the approvals of a removed MCP server are still stored",
               {{"server", server}, {"error", forgotten.error().message}});
  }
}

void McpServers::StopLogins() {
  std::map<std::string, std::shared_ptr<LoginAttempt>> given_up;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  stopped_ = true;
  given_up.swap(attempts_);
  for (const auto& [name, attempt] : given_up) attempt->GiveUp();  // also wakes callers that wait for its page
}

Result<std::shared_ptr<ServerConnection>> McpServers::Find(const std::string& server) const {
  const MutexLock lock(mutex_);
  const auto found =
      std::ranges::find_if(connections_, [&](const auto& connection) { return connection->options().name == server; });
  if (found == connections_.end()) return Fail(ErrorCode::kNotFound, "there is no such MCP server");
  return *found;
}

Result<std::string> McpServers::BeginLogin(const std::string& server) {
  const auto connection = TRY(Find(server));
  const auto log_in = [this, connection](const LoginAttempt::Show& show, const std::stop_token& stop) {
    const ServerLogin login{.transport = parts_.transport,
                            .credentials = memory_->credentials,
                            .workspace = parts_.workspace,
                            .client_version = parts_.client_version};
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
    if (!std::ranges::count(connections_, connection)) return Fail(ErrorCode::kConflict, "the server was just removed");
    attempt = std::make_shared<LoginAttempt>(log_in, done);
    before = std::exchange(attempts_[server], attempt);
  } catch (const std::system_error&) {
    return Fail(ErrorCode::kUnavailable, "the system is out of threads");
  }
  return attempt->AwaitPage(kPageLimit);
}

void McpServers::EndLogin(const std::string& server) {
  std::shared_ptr<LoginAttempt> given_up;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  if (const auto found = attempts_.find(server); found != attempts_.end()) {
    given_up = std::move(found->second);
    attempts_.erase(found);
  }
}

Result<bool> McpServers::LogOut(const std::string& server) {
  const auto connection = TRY(Find(server));
  EndLogin(server);
  const bool was = TRY(memory_->credentials.Forget(server));
  if (was) connection->ConnectAgain();
  return was;
}

}  // namespace reprise
