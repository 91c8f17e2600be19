#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "reprise/principal.h"
#include "reprise/result.h"
#include "reprise/timestamp.h"

namespace reprise {

// An access token of an OIDC issuer (RFC 7519, RFC 9068) as it came: nothing in it is so before its signature is
// checked.
struct AccessToken {
  std::string algorithm;  // "RS256", "ES256" or "EdDSA"
  std::string kid;        // empty: it names no key
  std::string signed_part, signature;
  std::string claims;  // JSON text
};

inline constexpr std::size_t kMostTokenBytes = 16 * 1024;

// kUnauthenticated (reason "invalid_token") unless `text` is a JWS in compact form with such a header and claims. Never
// "none" and no algorithm with a shared secret; a header that asks for more than is understood here ("crit") is
// refused.
Result<AccessToken> ReadAccessToken(std::string_view text);

// Whose tokens count, and what says who somebody is. A claim is the name of a member, or, beginning with a slash, a
// JSON pointer ("/realm_access/roles").
struct IssuerOptions {
  std::string issuer;         // as its tokens say it ("iss"), and where its discovery document is
  std::string audience;       // this server's name in them ("aud")
  std::string org_claim{};    // empty: everybody is of kDefaultOrg
  std::string roles_claim{};  // a text, or an array of them; empty: nobody is an org admin
  std::string admin_role{};   // which of these is one

  bool operator==(const IssuerOptions&) const = default;
};
// Whether a claim can be called so: any name, or a JSON pointer that is one.
bool IsClaimName(const std::string& name);

struct Identified {
  Principal principal;
  Timestamp until;    // it counts
  Timestamp expires;  // as it says itself, which is a little earlier
};
// Whom claims with a right signature name. kUnauthenticated (reason "invalid_token") if they are not of this issuer,
// for this audience and of this time, or do not say who it is. Clocks may differ by half a minute.
Result<Identified> CheckClaims(std::string_view claims, const IssuerOptions& options, Timestamp now);

// A 401 that says what is wrong with the token.
tl::unexpected<Error> InvalidToken(std::string message);

}  // namespace reprise
