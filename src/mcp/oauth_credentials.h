#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "crypto/key_set.h"
#include "mcp/oauth_flow.h"
#include "reprise/file_system.h"
#include "reprise/result.h"

namespace reprise {

// What there is of log-ins at one MCP server.
struct OAuthLogin {
  std::string url;  // of the MCP server: what belongs to another one is not used
  std::vector<OAuthRegistration> registrations;
  OAuthTokens tokens;        // no access token: nobody is logged in
  std::string wanted_scope;  // that the server has asked for since
};

// The log-ins at MCP servers, in a file of the data folder (schemas/FILES.md): sealed like chats, if those are. The
// file is read each time, as another process may have logged in; who writes it holds a lock on its folder. Thread-safe.
class OAuthCredentials {
 public:
  // `keys` is null for a plain data folder. `file_system` must outlive the object.
  OAuthCredentials(FileSystem& file_system, std::string path, std::shared_ptr<const KeySet> keys)
      : file_system_(file_system), path_(std::move(path)), keys_(std::move(keys)) {}

  // An empty one if there is none for this server at this address. A file that cannot be read is an error: it is not
  // taken for one that holds nothing.
  Result<OAuthLogin> Look(const std::string& server, const std::string& url);
  // Changes it in one step, and returns it as it is kept: `change` gets it as it is then, and no other thread or
  // process writes meanwhile (kUnavailable if one does for ten seconds). A file that cannot be read is set aside
  // (".damaged.<random>").
  Result<OAuthLogin> Change(const std::string& server, const std::string& url,
                            const std::function<void(OAuthLogin&)>& change);
  // Whether somebody was logged in.
  Result<bool> Forget(const std::string& server);

 private:
  Result<Json> Read() REQUIRES(mutex_);
  Result<void> Write(const Json& servers) REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string path_;
  const std::shared_ptr<const KeySet> keys_;
  Mutex mutex_;
};

}  // namespace reprise
