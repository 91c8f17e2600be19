#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// An access token of an OIDC issuer (RFC 7519, RFC 9068) as received: trust nothing in it before its signature is
// checked.
struct AccessToken {
  std::string algorithm;  // "RS256", "ES256" or "EdDSA"
  std::string kid;        // empty if it names no key
  std::string signed_part, signature;
  std::string claims;  // JSON text
};

inline constexpr std::size_t kMostTokenBytes = 16 * 1024;

// kUnauthenticated (reason "invalid_token") unless `text` is a compact JWS with such a header and claims. Refuses
// "none", algorithms with a shared secret, and headers with critical extensions ("crit").
Result<AccessToken> ReadAccessToken(std::string_view text);

// The trusted issuer and the claims that identify a user. A claim is the name of a member or, if it begins with a
// slash, a JSON pointer ("/realm_access/roles").
struct IssuerOptions {
  std::string issuer;         // the "iss" of its tokens, and the URL of its discovery document
  std::string audience;       // this server's name in the tokens ("aud")
  std::string org_claim{};    // empty: all users belong to kDefaultOrg
  std::string roles_claim{};  // a text or an array of texts; empty: there are no org admins
  std::string admin_role{};   // the role of org admins

  bool operator==(const IssuerOptions&) const = default;
};
// Whether `name` is a name or a valid JSON pointer.
bool IsClaimName(const std::string& name);

struct Identified {
  Principal principal;
  Timestamp until;    // end of acceptance
  Timestamp expires;  // the token's own time, a little earlier
};
// The user named by claims whose signature was checked. kUnauthenticated (reason "invalid_token") if issuer, audience
// or time do not match, or if the user is missing. Clocks may differ by half a minute.
Result<Identified> CheckClaims(std::string_view claims, const IssuerOptions& options, Timestamp now);

// A 401 that says what is wrong with the token.
tl::unexpected<Error> InvalidToken(std::string message);

}  // namespace reprise
