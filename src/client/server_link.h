#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "app/options.h"
#include "base/environment.h"
#include "base/json.h"
#include "client/own_server.h"
#include "client/server_access.h"
#include "client/server_client.h"
#include "reprise/options.h"
#include "reprise/result.h"

namespace reprise {

// The server that answers a client on standard input and output: the one that was named, the one that uses the data
// folder, or one that is started for this. It is looked for when the client says where it works, and again when it does
// not answer any more. For one thread.
class ServerLink {
 public:
  // `says_model`: the client says with each message which model it is for, if it was told one; else the server is to.
  ServerLink(Flags flags, Environment environment, std::optional<RunningServer> named, bool says_model)
      : flags_(std::move(flags)),
        environment_(std::move(environment)),
        named_(std::move(named)),
        says_model_(says_model) {}

  // Settings that cannot be followed, before anybody asks for a server.
  Result<void> Check();

  // For a session that works in `cwd` (absolute), or for none if it is empty. kInvalidArgument (reason
  // "other_workspace"): there is a server, and it works elsewhere.
  Result<void> Reach(const std::string& cwd);
  bool is_reached() const { return server_ != nullptr; }

  // REQUIRES, of all below: Reach was successful.
  ServerClient& server() { return *server_; }
  // As ServerClient::Call. If nobody answers, the server is looked for once more.
  Result<Json> Call(const std::string& method, const std::string& path, const Json& body = Json(nullptr));
  // Looks for the server, which does not answer any more. A server that somebody else had started is given time to come
  // back: `may_start` says that it had enough.
  Result<void> FindAgain(bool may_start);
  // What GET /models says, as it was a minute ago at the earliest; null if the server does not say.
  const Json& Models();
  // Where the server's tools work, without symbolic links; empty: it does not say.
  const std::string& workspace() const { return workspace_; }
  // What was said at the start of this program; empty: nothing.
  std::string model() const {
    const auto flag = flags_.find("model");
    return flag == flags_.end() ? "" : flag->second;
  }
  const std::string& approval_mode() const { return approval_mode_; }

 private:
  Result<void> Learn();
  Result<void> CheckWorkspace(const std::string& cwd) const;

  const Flags flags_;
  const Environment environment_;
  const std::optional<RunningServer> named_;
  const bool says_model_;
  Flags start_flags_;  // with the workspace of the first session
  Options options_;
  std::unique_ptr<OwnServer> own_;
  bool has_started_ = false;  // a server, once
  std::unique_ptr<ServerClient> server_;
  std::string workspace_, approval_mode_;
  Json models_ = nullptr;
  std::chrono::steady_clock::time_point models_asked_{};
};

}  // namespace reprise
