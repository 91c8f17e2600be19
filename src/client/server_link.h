#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/options.h"
#include "base/json.h"
#include "base/system.h"
#include "client/own_server.h"
#include "client/server_access.h"
#include "client/server_client.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// A client's server: the named one, the one that uses the data folder, or one started for this client. Finds the
// server again if it no longer answers. For one thread.
class ServerLink {
 public:
  // The client sends RunOptions and folder with each message. `restarts`: a server is started at once if another
  // process's is lost, instead of waiting for that.
  ServerLink(Flags flags, Environment environment, std::optional<RunningServer> named, bool restarts)
      : flags_(std::move(flags)), environment_(std::move(environment)), named_(std::move(named)), restarts_(restarts) {}

  // Loads the options, and fails on settings that cannot be followed, before a server is needed.
  Result<void> Check();
  // REQUIRES: Check was successful. For a named server only the token file is set.
  const Options& options() const { return options_; }

  // Finds or starts the server but does not connect yet; Reach does both. A server that is started works in `cwd`
  // (absolute), unless that is empty or the settings name a folder.
  Result<void> Find(const std::string& cwd);
  Result<void> Reach(const std::string& cwd);
  // Where a chat of `folder` works, without symbolic links; empty if the server does not say. Fails as the server does:
  // "no_such_workspace", "workspace_not_allowed".
  Result<std::string> WorkspaceAt(const std::string& folder);
  bool is_reached() const { return server_ != nullptr; }
  // The server of the data folder runs with another configuration than this client.
  bool is_refused() const { return is_refused_; }

  // REQUIRES, of all below: Reach was successful.
  ServerClient& server() { return *server_; }
  // As ServerClient::Call. If no server answers, finds it again and repeats the request. A request that may have
  // arrived is repeated only if it is a GET or a PUT, which may be done twice; others fail with kConnectionLost.
  Result<Json> Call(const std::string& method, const std::string& path, const Json& body = Json(nullptr));
  // Looks for the server, which no longer answers. `may_start`: another process's server has had enough time to come
  // back, so a new one may be started.
  Result<void> FindAgain(bool may_start = false);
  // The answer of GET /models, at most a minute old if the server answers; null if it never did.
  const Json& Models();
  // Where the server's tools work, without symbolic links; empty if the server does not say.
  const std::string& workspace() const { return workspace_; }
  // --model of this program, or its settings' model if that is not the server's; else empty.
  const std::string& model() const { return model_; }
  // The mode of this client's chats.
  const std::string& approval_mode() const { return approval_mode_; }
  // Where this client's chats work, without symbolic links; empty if the server decides.
  const std::string& folder() const { return folder_; }
  // Whether a chat of GET /chats works in this client's folder.
  bool WorksHere(const Json& chat) const;
  // The members of all requests that start a run. An empty `model`: model().
  Json RunOptions(const std::string& model) const;

 private:
  Result<void> CheckAnswers();
  bool is_short_model() const;
  Result<Options> Load() const;
  Result<void> ResolveModel();
  void SetModel();
  Result<void> Connect();
  Result<void> TakeServer();

  const Flags flags_;
  const Environment environment_;
  const std::optional<RunningServer> named_;
  const bool restarts_;
  Flags start_flags_;  // with the workspace of the first session
  Options options_;
  std::unique_ptr<OwnServer> own_;
  std::optional<RunningServer> found_;  // until Connect
  bool has_started_ = false;            // whether this client ever started a server
  bool is_refused_ = false;
  std::unique_ptr<ServerClient> server_;
  std::string workspace_, approval_mode_, folder_, model_;
  std::string flag_model_;  // --model as a full name; empty: not given
  Json models_ = nullptr;
  std::chrono::steady_clock::time_point models_asked_{};
};

}  // namespace reprise
