#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "approval/consents.h"
#include "base/mutex.h"
#include "mcp/oauth_authorizer.h"
#include "mcp/server_connection.h"
#include "mcp/server_eras.h"
#include "mcp/server_login.h"
#include "reprise/file_system.h"
#include "reprise/options.h"

namespace reprise {

// The servers of the Model Context Protocol: the configured ones, and those that are added later. Each has a thread
// that connects in the background; without servers this costs nothing. The resulting tools handle questions to the user
// and the user's approvals themselves.
class McpServers final : public ToolServerLogins {
 public:
  struct Parts {  // all must outlive the object
    Transport& transport;
    FileSystem& file_system;
    std::string approvals_file, logins_file, eras_file;
    std::shared_ptr<const KeySet> keys;  // null: a plain data folder
    std::string workspace;
    std::string folders;  // parent of the folders that commands start in (ServerFolder)
    std::string client_version;
    // Receives a server's current tools. Called on the servers' threads and on those that tools run on, never two calls
    // at once for one server; the first call for each comes before its Start returns.
    ServerConnection::OnChange on_change;
  };
  // What is known of servers, wherever they run.
  struct Memory {
    Memory(const std::vector<McpServerOptions>& servers, const Parts& parts);
    Consents consents;
    OAuthCredentials credentials;
    ServerEras eras;
  };
  // With `memory`, that of other servers, whose files are not read again.
  McpServers(const std::vector<McpServerOptions>& servers, Parts parts, std::shared_ptr<Memory> memory = nullptr);
  // Ends all servers, which takes at most a second.
  ~McpServers() override;
  McpServers(const McpServers&) = delete;
  McpServers& operator=(const McpServers&) = delete;

  const std::shared_ptr<Memory>& memory() const { return memory_; }
  void Start();
  // Starts one more; `folders` as in Parts. REQUIRES: there is none of this name, and Start was called. kUnavailable
  // after StopLogins.
  Result<void> Add(const McpServerOptions& server, const std::string& folders);
  // Ends the server, which takes at most a second, and forgets its log-in and the approvals of its tools. Its tools are
  // no longer announced, but a run may still have them. No effect if there is none of this name.
  void Remove(const std::string& server);
  // Cancels the log-ins under way; later ones are rejected.
  void StopLogins();

  Result<std::string> BeginLogin(const std::string& server) override;
  Result<bool> LogOut(const std::string& server) override;

 private:
  std::shared_ptr<ServerConnection> Make(const McpServerOptions& server, const std::string& folders) const;
  Result<std::shared_ptr<ServerConnection>> Find(const std::string& server) const;
  void EndLogin(const std::string& server);

  const Parts parts_;
  const std::shared_ptr<Memory> memory_;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<ServerConnection>> connections_ GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<LoginAttempt>> attempts_ GUARDED_BY(mutex_);  // by the server's name
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace reprise
