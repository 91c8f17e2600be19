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

// The stored log-in at one MCP server.
struct OAuthLogin {
  std::string url;  // of the MCP server; a log-in for another URL is not used
  std::vector<OAuthRegistration> registrations;
  OAuthTokens tokens;        // without an access token: logged out
  std::string wanted_scope;  // requested by the server since the last log-in
};

// The log-ins at MCP servers, in a file of the data folder (schemas/FILES.md) that is sealed if chats are. The file is
// read each time, because another process may have logged in; writers hold a lock on its folder. Thread-safe.
class OAuthCredentials {
 public:
  // `keys` is null for a plain data folder. `file_system` must outlive the object.
  OAuthCredentials(FileSystem& file_system, std::string path, std::shared_ptr<const KeySet> keys)
      : file_system_(file_system), path_(std::move(path)), keys_(std::move(keys)) {}

  // The log-in for this server at this URL; empty if there is none. A file that cannot be read is an error and does not
  // count as empty.
  Result<OAuthLogin> Look(const std::string& server, const std::string& url);
  // Changes the log-in atomically and returns the stored result: `change` gets the current one, and no other thread or
  // process writes meanwhile (kUnavailable if one holds the lock for ten seconds). A file whose content is damaged is
  // set aside (".damaged.<random>").
  Result<OAuthLogin> Change(const std::string& server, const std::string& url,
                            const std::function<void(OAuthLogin&)>& change);
  // Removes the log-in. Returns whether there was an access token.
  Result<bool> Forget(const std::string& server);

 private:
  Result<Json> Read() REQUIRES(mutex_);
  Result<void> Write(const Json& servers) REQUIRES(mutex_);

  FileSystem& file_system_;
  const std::string path_;
  const std::shared_ptr<const KeySet> keys_;
  Mutex mutex_;
};

// Lets the user log in: shows the attempt's URL and returns the query that the browser comes back with, without its
// question mark. Blocks until then; kCancelled when `stop` is requested.
using OAuthBrowser = std::function<Result<std::string>(const OAuthAttempt& attempt, const std::stop_token& stop)>;

// OAuth tokens for one MCP server: from the stored log-in, by refresh, or, if there is a browser, from a new log-in. A
// token is bound to the server's URL, and data of an authorization server to its issuer.
class OAuthAuthorizer final : public HttpAuthorizer {
 public:
  struct Parts {  // all must outlive the object
    Transport& transport;
    OAuthCredentials& credentials;
    std::string server, url;
    OAuthClientOptions options;
    std::string redirect_uri;  // where the browser comes back to
    OAuthBrowser browser;      // empty: no log-in is possible here
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
