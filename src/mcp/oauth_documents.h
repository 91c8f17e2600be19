#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/result.h"

// What servers say about how to log in, as a client must read it (Model Context Protocol 2026-07-28 and 2025-11-25,
// "Authorization"; RFC 6750, 8414, 9728). Everything here comes from others: it is checked before it is used.
namespace reprise {

// What a server wants of whoever it has refused: the parameters of a Bearer challenge.
struct OAuthChallenge {
  std::string resource_metadata;  // a URL; empty: it is looked for
  std::string scope;              // separated by spaces; empty: not said
  std::string error;              // "insufficient_scope"
  bool operator==(const OAuthChallenge&) const = default;
};
// The Bearer challenge of a header WWW-Authenticate; nullopt if it has none.
std::optional<OAuthChallenge> ParseChallenge(std::string_view www_authenticate);

// A URL as far as it matters here. nullopt unless it is http or https with a host, without user and fragment.
struct UrlParts {
  std::string scheme, authority;  // in lower case; the authority without the scheme's own port
  std::string path, query;        // the path is never empty; the query with its question mark, if there is one
  std::string host() const;       // "[::1]", without a port
  std::string origin() const { return scheme + "://" + authority; }
};
std::optional<UrlParts> ParseUrl(std::string_view url);

// Whether a secret may go there: by TLS, or to this machine.
bool IsSafeOAuthUrl(std::string_view url);
bool IsThisMachine(const UrlParts& url);

// Where a server's metadata may be, in the order in which they are asked (RFC 9728, 3.1, and the root).
std::vector<std::string> ResourceMetadataUrls(const UrlParts& server);
// Where an authorization server's metadata may be, in the order in which they are asked. `issuer` is a URL.
std::vector<std::string> ServerMetadataUrls(const std::string& issuer);

struct OAuthResource {
  std::string resource;  // what tokens are asked for; empty: the authorization server knows of no resources
  std::vector<std::string> authorization_servers;
  std::string scopes;  // those that are enough for the start; empty: not said
};
// kForbidden (reason "mcp_oauth") if it speaks of another resource than the server, or of none that can be used. Only
// the document at the origin's root, `document_url`, may claim the whole origin; in any other the resource is then the
// server's own address.
Result<OAuthResource> ReadResourceMetadata(std::string_view document, const UrlParts& server,
                                           std::string_view document_url);

struct OAuthServer {
  std::string issuer, authorization_endpoint, token_endpoint, registration_endpoint;  // the last may be empty
  std::vector<std::string> token_methods;  // how it knows clients: "none", "client_secret_basic", ...; empty: not said
  bool says_issuer = false;                // it names itself in what it answers to log-ins (RFC 9207)
  bool takes_metadata_url = false;         // of a client, as its id
  bool has_offline_access = false;         // a scope for refresh tokens
};
// kForbidden (reason "mcp_oauth") unless the document is exactly this issuer's, its endpoints may be used, and it has
// PKCE with S256.
Result<OAuthServer> ReadServerMetadata(std::string_view document, const std::string& issuer);

// Of one that does not describe itself, as revision 2025-03-26 has it. `issuer` is its origin.
OAuthServer ServerWithoutMetadata(const std::string& issuer);

// `a` and what of `b` is not in it, separated by spaces.
std::string ScopeUnion(std::string_view a, std::string_view b);

// application/x-www-form-urlencoded.
std::string FormText(const std::vector<std::pair<std::string, std::string>>& members);
// The same, back. kInvalidArgument if a name comes twice or it cannot be decoded.
Result<std::vector<std::pair<std::string, std::string>>> ParseForm(std::string_view text);

Error OAuthError(std::string message);

}  // namespace reprise
