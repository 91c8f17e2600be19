#include "people/access_token.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"

namespace reprise {
namespace {

constexpr std::array<std::string_view, 3> kAlgorithms{"RS256", "ES256", "EdDSA"};
constexpr std::array<std::string_view, 3> kTypes{"jwt", "at+jwt", "application/at+jwt"};
constexpr std::size_t kMostKidBytes = 256;
constexpr int kMostDepth = 16;
constexpr std::chrono::seconds kClocksDiffer{30};

Result<std::string> Decoded(std::string_view encoded) {
  auto text = DecodeBase64Url(encoded);
  if (!text || text->empty()) return InvalidToken("the access token is not base64url");
  return *std::move(text);
}

Result<Json> ObjectOf(std::string_view text, std::string_view what) {
  auto json = ParseJson(text, kMostDepth);
  if (!json || !json->is_object()) return InvalidToken("the access token's " + std::string(what) + " cannot be read");
  return json;
}

Result<void> CheckHeader(const Json& header) {
  const std::string algorithm = TextMember(header, "alg");
  if (std::ranges::find(kAlgorithms, algorithm) == kAlgorithms.end()) {
    return InvalidToken("access tokens must be signed with RS256, ES256 or EdDSA");
  }
  if (header.contains("crit")) return InvalidToken("the access token's header asks for an unsupported extension");
  const Json& type = MemberOf(header, "typ");
  if (!type.is_null()) {
    const std::string name = type.is_string() ? LowerCase(type.get_ref<const std::string&>()) : "";
    if (std::ranges::find(kTypes, name) == kTypes.end()) {
      return InvalidToken("the token is not an access token");
    }
  }
  const Json& kid = MemberOf(header, "kid");
  if (!kid.is_null() && (!kid.is_string() || kid.get_ref<const std::string&>().size() > kMostKidBytes)) {
    return InvalidToken("the access token's key has no usable name");
  }
  return {};
}

// A claim by its name or pointer; null if it is missing.
const Json& Claim(const Json& claims, const std::string& name) {
  static const Json none;
  if (!name.starts_with('/')) return MemberOf(claims, name);
  const Json::json_pointer pointer(name);  // the configuration was checked
  return claims.contains(pointer) ? claims.at(pointer) : none;
}

// nullopt if it is missing. An impossible time is an error.
Result<std::optional<Timestamp>> TimeClaim(const Json& claims, const char* name) {
  const Json& claim = MemberOf(claims, name);
  if (claim.is_null()) return std::optional<Timestamp>();
  constexpr double kFarAway = 1e11;  // seconds since 1970
  const double seconds = claim.is_number() ? claim.get<double>() : -1;
  if (!std::isfinite(seconds) || seconds < 0 || seconds > kFarAway) {
    return InvalidToken("the access token's \"" + std::string(name) + "\" is no time");
  }
  return std::optional(Timestamp(std::chrono::milliseconds(std::llround(seconds * 1000))));
}

bool Names(const Json& text_or_array, std::string_view wanted) {
  if (text_or_array.is_string()) return text_or_array == wanted;
  return text_or_array.is_array() &&
         std::find(text_or_array.begin(), text_or_array.end(), wanted) != text_or_array.end();
}

// Refuses other tokens signed with the same keys, above all ID tokens, which identify a user but grant no access. Some
// tokens name their kind in the header (RFC 9068) or in a claim: "typ" (Keycloak), "token_use" (Cognito). Other ID
// tokens are recognized by claims that only they have, or by having the client itself as audience.
Result<void> CheckKind(const Json& claims, std::string_view audience) {
  const auto is_no_access_token = [] { return InvalidToken("the token is not an access token"); };
  const Json& type = MemberOf(claims, "typ");
  const std::string kind = LowerCase(TextMember(claims, "typ"));
  const bool says_so = kind == "bearer" || kind == "at+jwt" || TextMember(claims, "token_use") == "access";
  if (!type.is_null() && !says_so) return is_no_access_token();
  if (!MemberOf(claims, "token_use").is_null() && !says_so) return is_no_access_token();
  for (const char* own : {"nonce", "at_hash", "c_hash", "s_hash", "events"}) {
    if (claims.contains(own) && !says_so) return is_no_access_token();
  }
  const bool has_scope = claims.contains("scope") || claims.contains("scp");
  const bool is_for_client = TextMember(claims, "azp") == audience || TextMember(claims, "client_id") == audience;
  if (is_for_client && !has_scope && !says_so) return is_no_access_token();
  return {};
}

// `roles` is a text with names between blanks, like "scope", or an array of names.
bool HasRole(const Json& roles, std::string_view wanted) {
  if (!roles.is_string()) return Names(roles, wanted);
  const std::string all = " " + roles.get_ref<const std::string&>() + " ";
  return all.find(" " + std::string(wanted) + " ") != std::string::npos;
}

Result<std::string> NameClaim(const Json& claims, const std::string& claim) {
  const Json& name = Claim(claims, claim);
  if (!name.is_string() || !IsPrincipalName(name.get_ref<const std::string&>())) {
    return InvalidToken("the access token has no usable \"" + claim + "\"");
  }
  return name.get<std::string>();
}

}  // namespace

tl::unexpected<Error> InvalidToken(std::string message) { return Fail(Reason::kInvalidToken, std::move(message)); }

Result<AccessToken> ReadAccessToken(std::string_view text) {
  if (text.size() > kMostTokenBytes) return InvalidToken("the access token is too long");
  const std::size_t first = text.find('.'), second = text.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos ||
      text.find('.', second + 1) != std::string_view::npos) {
    return InvalidToken("this is neither a token of this server nor an access token");
  }
  const auto header_text = TRY(Decoded(text.substr(0, first)));
  const auto header = TRY(ObjectOf(header_text, "header"));
  TRY(CheckHeader(header));
  auto claims = TRY(Decoded(text.substr(first + 1, second - first - 1)));
  auto signature = TRY(Decoded(text.substr(second + 1)));
  return AccessToken{.algorithm = TextMember(header, "alg"),
                     .kid = TextMember(header, "kid"),
                     .signed_part = std::string(text.substr(0, second)),
                     .signature = std::move(signature),
                     .claims = std::move(claims)};
}

bool IsClaimName(const std::string& name) {
  for (std::size_t at = name.starts_with('/') ? name.find('~') : std::string::npos; at != std::string::npos;
       at = name.find('~', at + 1)) {
    const char escaped = at + 1 < name.size() ? name[at + 1] : ' ';
    if (escaped != '0' && escaped != '1') return false;
  }
  return true;
}

Result<Identified> CheckClaims(std::string_view text, const IssuerOptions& options, Timestamp now) {
  const auto claims = TRY(ObjectOf(text, "content"));
  if (MemberOf(claims, "iss") != options.issuer) return InvalidToken("the access token is of another issuer");
  if (!Names(MemberOf(claims, "aud"), options.audience)) {
    return InvalidToken("the access token is for another audience");
  }
  TRY(CheckKind(claims, options.audience));
  const auto expires = TRY(TimeClaim(claims, "exp"));
  if (!expires) return InvalidToken("the access token does not say when it expires");
  if (*expires + kClocksDiffer <= now) return InvalidToken("the access token has expired");
  for (const char* begin : {"nbf", "iat"}) {
    const auto time = TRY(TimeClaim(claims, begin));
    if (time && *time > now + kClocksDiffer) return InvalidToken("the access token does not count yet");
  }
  Identified caller{.principal = {.role = Principal::Role::kUser, .org = std::string(kDefaultOrg)},
                    .until = *expires + kClocksDiffer,
                    .expires = *expires};
  caller.principal.user = TRY(NameClaim(claims, "sub"));
  if (!options.org_claim.empty()) caller.principal.org = TRY(NameClaim(claims, options.org_claim));
  if (!options.roles_claim.empty() && HasRole(Claim(claims, options.roles_claim), options.admin_role)) {
    caller.principal.role = Principal::Role::kOrgAdmin;
  }
  return caller;
}

}  // namespace reprise
