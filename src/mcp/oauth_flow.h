#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mcp/oauth_documents.h"
#include "reprise/result.h"
#include "reprise/transport.h"

// OAuth 2.1 as a client of MCP servers has it: finding the authorization server, being known to it, the two halves of a
// log-in around the person's browser, and new tokens for old. No state: what must be remembered is handed out.
namespace reprise {

// What the configuration says of the client that logs in.
struct OAuthClientOptions {
  std::string client_id{}, client_secret{};  // as the authorization server's operator has given them; empty: none
  std::string client_metadata_url{};         // of a document that describes this client; empty: none
  std::string issuer{};                      // of the authorization server that must be asked; empty: the first
  std::string scopes{};                      // asked for beside those that the server wants
};

// By what an authorization server knows this client.
struct OAuthRegistration {
  std::string issuer, client_id, client_secret, token_method;
  std::string redirect_uri{};  // that it was registered with
  bool is_configured = false;  // by the configuration: not to be kept
};

struct OAuthTokens {
  std::string issuer, resource;  // whose, and for what
  std::string access_token, refresh_token, scope;
  std::int64_t expires_at = 0;  // seconds since 1970; 0: not said
};

// What a log-in needs from its first half to its second.
struct OAuthAttempt {
  std::string url;  // to be opened in a browser
  std::string state, verifier, redirect_uri, resource, scope;
  OAuthServer server;
  OAuthRegistration registration;
};

class OAuthFlow {
 public:
  // `server_url` is that of the MCP server. `transport` must outlive the object.
  OAuthFlow(Transport& transport, std::string server_url, OAuthClientOptions options)
      : transport_(transport), server_url_(std::move(server_url)), options_(std::move(options)) {}

  // The first half: whom to ask, for what, and where the person goes. A client that registers by itself does so for
  // each log-in: an authorization server that has forgotten it tells the browser alone. `known` are the registrations
  // of earlier times, of which that of the issuer is used if there is no new one. `asked_before` are scopes that shall
  // not be lost. kForbidden (reason "mcp_oauth"): it cannot be done, and why; kUnavailable: somebody cannot be reached.
  // The browser comes back to `redirect_uri` or, where the configuration names no issuer, to a path below it that is
  // the authorization server's alone: what another one answers is not taken for its answer.
  Result<OAuthAttempt> Begin(const OAuthChallenge& challenge, const std::string& redirect_uri,
                             const std::vector<OAuthRegistration>& known, const std::string& asked_before,
                             const std::stop_token& stop) const;
  // The second half: `query` is what the browser came back with, without its question mark. Nothing of an answer that
  // is not the issuer's is used or shown.
  Result<OAuthTokens> Finish(const OAuthAttempt& attempt, std::string_view query, const std::stop_token& stop) const;
  // New tokens for old ones, without a person. The authorization server is asked anew what its endpoints are.
  Result<OAuthTokens> Refresh(const OAuthTokens& tokens, const OAuthRegistration& registration,
                              const std::stop_token& stop) const;

 private:
  struct Answer {
    int status = 0;
    std::string body;
  };
  Result<Answer> Send(HttpRequest request, const std::stop_token& stop) const;
  Result<Answer> Get(const std::string& url, const std::stop_token& stop) const;
  Result<OAuthResource> FindResource(const OAuthChallenge& challenge, const std::stop_token& stop) const;
  Result<OAuthServer> FindServer(const std::string& issuer, const std::stop_token& stop) const;
  bool IsOwnOrigin(const std::string& issuer) const;
  Result<OAuthRegistration> Register(const OAuthServer& server, const std::string& redirect_uri,
                                     const std::vector<OAuthRegistration>& known, const std::stop_token& stop) const;
  Result<OAuthTokens> AskForTokens(const OAuthServer& server, const OAuthRegistration& registration,
                                   std::vector<std::pair<std::string, std::string>> form, const std::string& resource,
                                   const std::stop_token& stop) const;

  Transport& transport_;
  const std::string server_url_;
  const OAuthClientOptions options_;
};

// The reason of a failed Refresh when the refresh token counts no more: the person must log in again.
inline constexpr const char* kOAuthGrantEnded = "mcp_grant_ended";

}  // namespace reprise
