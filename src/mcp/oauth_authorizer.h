#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/mutex.h"
#include "base/serial_queue.h"
#include "mcp/http_channel.h"
#include "mcp/oauth_credentials.h"
#include "mcp/oauth_flow.h"

namespace reprise {

// Has a person log in: shows the attempt's URL and returns what the browser came back with, without its question mark.
// Blocks until then; kCancelled when `stop` is requested.
using OAuthBrowser = std::function<Result<std::string>(const OAuthAttempt& attempt, const std::stop_token& stop)>;

// The reason of a failed Renew: a person must log in, and there is nobody here.
inline constexpr const char* kMcpLoginRequired = "mcp_login_required";

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
