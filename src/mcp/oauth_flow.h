#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mcp/oauth_documents.h"
#include "reprise/result.h"
#include "reprise/transport.h"

// The client's side of OAuth 2.1 for MCP servers: finds the authorization server, registers with it, runs the two
// halves of a log-in before and after the user's browser, and refreshes tokens. Keeps no state; the caller does.
namespace reprise {

// The configured client.
struct OAuthClientOptions {
  std::string client_id{}, client_secret{};  // given by the authorization server's operator; empty: none
  std::string client_metadata_url{};         // of a document that describes this client; empty: none
  std::string issuer{};                      // of the authorization server to use; empty: the first
  std::string scopes{};                      // requested in addition to those that the server wants
};

// This client's identity at an authorization server.
struct OAuthRegistration {
  std::string issuer, client_id, client_secret, token_method;
  std::string redirect_uri{};  // the one it was registered with
  bool is_configured = false;  // from the configuration, so it is not stored
};

struct OAuthTokens {
  std::string issuer, resource;  // who issued them, and for which resource
  std::string access_token, refresh_token, scope;
  std::int64_t expires_at = 0;  // seconds since 1970; 0: unknown
};

// The state between the first and the second half of a log-in.
struct OAuthAttempt {
  std::string url;  // to open in a browser
  std::string state, verifier, redirect_uri, resource, scope;
  OAuthServer server;
  OAuthRegistration registration;
};

class OAuthFlow {
 public:
  // `server_url` is that of the MCP server. `transport` must outlive the object.
  OAuthFlow(Transport& transport, std::string server_url, OAuthClientOptions options)
      : transport_(transport), server_url_(std::move(server_url)), options_(std::move(options)) {}

  // The first half: finds the authorization server and the scopes, and makes the URL to open. An unconfigured client
  // registers for each log-in, because an authorization server that has forgotten it tells only the browser. `known`
  // are earlier registrations; the issuer's is used if there is no new one. `asked_before` are scopes to keep.
  // kForbidden (reason "mcp_oauth") says why no log-in is possible; kUnavailable: a server cannot be reached.
  // The browser comes back to `redirect_uri` or, if no issuer is configured, to a path below it that only this
  // authorization server uses, so that another server's answer is not mistaken for its answer.
  Result<OAuthAttempt> Begin(const OAuthChallenge& challenge, const std::string& redirect_uri,
                             const std::vector<OAuthRegistration>& known, const std::string& asked_before,
                             const std::stop_token& stop) const;
  // The second half: `query` is the query that the browser came back with, without its question mark. An answer from
  // another issuer is neither used nor shown.
  Result<OAuthTokens> Finish(const OAuthAttempt& attempt, std::string_view query, const std::stop_token& stop) const;
  // Refreshes tokens, without the user, as the client that logged in: one of the registrations `known`, or the
  // configured one. Fetches the authorization server's endpoints anew.
  Result<OAuthTokens> Refresh(const OAuthTokens& tokens, const std::vector<OAuthRegistration>& known,
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
  // nullopt: the client has to register.
  std::optional<OAuthRegistration> Configured(const OAuthServer& server) const;
  Result<OAuthRegistration> Register(const OAuthServer& server, const std::string& redirect_uri,
                                     const std::vector<OAuthRegistration>& known, const std::stop_token& stop) const;
  Result<OAuthTokens> AskForTokens(const OAuthServer& server, const OAuthRegistration& registration,
                                   std::vector<std::pair<std::string, std::string>> form, const std::string& resource,
                                   const std::stop_token& stop) const;

  Transport& transport_;
  const std::string server_url_;
  const OAuthClientOptions options_;
};

// The reason of a failed Refresh if the refresh token is no longer valid: the user must log in again.
inline constexpr const char* kOAuthGrantEnded = "mcp_grant_ended";

}  // namespace reprise
