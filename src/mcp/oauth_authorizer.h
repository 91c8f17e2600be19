#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "base/queues.h"
#include "crypto/key_set.h"
#include "mcp/http_channel.h"
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

// Has a person log in: shows the attempt's URL and returns what the browser came back with, without its question mark.
// Blocks until then; kCancelled when `stop` is requested.
using OAuthBrowser = std::function<Result<std::string>(const OAuthAttempt& attempt, const std::stop_token& stop)>;

// The reason of a failed Renew: a person must log in, and there is nobody here.

// Tokens for one MCP server by OAuth: those that are kept, new ones for old ones, and, where there is a browser, those
// of a person who logs in. A token is bound to the server's URL, and what belongs to an authorization server to its
// issuer.
class OAuthAuthorizer final : public HttpAuthorizer {
 public:
  struct Parts {  // all must outlive the object
    Transport& transport;
    OAuthCredentials& credentials;
    std::string server, url;
    OAuthClientOptions options;
    std::string redirect_uri;  // where a browser comes back to
    OAuthBrowser browser;      // empty: nobody can log in here
  };
  explicit OAuthAuthorizer(Parts parts);
  ~OAuthAuthorizer() override;

  std::string Token() const override;
  void Renew(const OAuthChallenge& challenge, const std::string& refused, bool is_second,
             std::function<void(Result<void>)> done) override;

 private:
  Result<void> RenewNow(const OAuthChallenge& challenge, const std::string& refused, bool is_second);
  Result<void> RefreshNow(OAuthLogin& login);
  Result<void> LogIn(const OAuthChallenge& challenge, OAuthLogin& login);
  bool StepsUp(const OAuthLogin& login) const;
  void Use(const OAuthTokens& tokens);

  const Parts parts_;
  const OAuthFlow flow_;
  std::stop_source stop_;
  mutable Mutex mutex_;
  std::string token_ GUARDED_BY(mutex_);
  SerialQueue queue_;  // last: ends before what it uses is gone
};

}  // namespace reprise
