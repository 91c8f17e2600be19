#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/result.h"

// Reads the documents in which servers describe how to log in (Model Context Protocol 2026-07-28 and 2025-11-25,
// "Authorization"; RFC 6750, 8414, 9728). They are untrusted and checked before use.
namespace reprise {

// A server's demands after it has rejected a request: the parameters of a Bearer challenge.
struct OAuthChallenge {
  std::string resource_metadata;  // a URL; empty: the usual places are tried
  std::string scope;              // separated by spaces; empty: unknown
  std::string error;              // "insufficient_scope"
  bool operator==(const OAuthChallenge&) const = default;
};
// The Bearer challenge in a WWW-Authenticate header; nullopt if it has none.
std::optional<OAuthChallenge> ParseChallenge(std::string_view www_authenticate);

// The parts of a URL. ParseUrl returns nullopt unless it is http or https with a host, without user and fragment.
struct UrlParts {
  std::string scheme, authority;  // in lower case; the authority without the scheme's own port
  std::string path, query;        // the path is never empty; the query with its question mark, if there is one
  std::string host() const;       // "[::1]", without a port
  std::string origin() const { return scheme + "://" + authority; }
};
std::optional<UrlParts> ParseUrl(std::string_view url);

// Whether a secret may be sent to this URL: over TLS, or to this machine.
bool IsSafeOAuthUrl(std::string_view url);

// The URLs where a server's metadata may be, in the order to try (RFC 9728, 3.1, and the root).
std::vector<std::string> ResourceMetadataUrls(const UrlParts& server);
// The URLs where an authorization server's metadata may be, in the order to try. `issuer` is a URL.
std::vector<std::string> ServerMetadataUrls(const std::string& issuer);

struct OAuthResource {
  std::string resource;  // the target of requested tokens; empty: the authorization server does not know resources
  std::vector<std::string> authorization_servers;
  std::string scopes;  // enough to begin with; empty: unknown
};
// kForbidden (reason "mcp_oauth") if the document describes another resource than the server, or no usable one. Only
// the document at the origin's root may claim the whole origin; if another `document_url` does, the resource is the
// server's own address instead.
Result<OAuthResource> ReadResourceMetadata(std::string_view document, const UrlParts& server,
                                           std::string_view document_url);

struct OAuthServer {
  std::string issuer, authorization_endpoint, token_endpoint, registration_endpoint;  // the last may be empty
  std::vector<std::string> token_methods;  // client authentication: "none", "client_secret_basic", ...; empty: unknown
  bool says_issuer = false;                // names itself in the answers to log-ins (RFC 9207)
  bool takes_metadata_url = false;         // accepts the URL of a client's metadata as the client's id
  bool has_offline_access = false;         // has the scope for refresh tokens
};
// kForbidden (reason "mcp_oauth") unless the document belongs to exactly this issuer, its endpoints are safe, and it
// supports PKCE with S256.
Result<OAuthServer> ReadServerMetadata(std::string_view document, const std::string& issuer);

// The defaults of revision 2025-03-26 for a server that does not describe itself. `issuer` is its origin.
OAuthServer ServerWithoutMetadata(const std::string& issuer);

// `a`, followed by the scopes of `b` that are not in it, separated by spaces.
std::string ScopeUnion(std::string_view a, std::string_view b);

// application/x-www-form-urlencoded.
std::string FormText(const std::vector<std::pair<std::string, std::string>>& members);
// The reverse. kInvalidArgument if a name is repeated or the text cannot be decoded.
Result<std::vector<std::pair<std::string, std::string>>> ParseForm(std::string_view text);

Error OAuthError(std::string message);

}  // namespace reprise
