// Access tokens, and the keys that an issuer publishes.

#include <string>

#include "base/text.h"
#include "fuzz/driver.h"
#include "people/access_token.h"
#include "people/issued_tokens.h"
#include "people/issuer_keys.h"

namespace reprise::fuzz {
namespace {

const IssuerOptions kOptions{.issuer = "https://issuer.example",
                             .audience = "reprise",
                             .org_claim = "org",
                             .roles_claim = "/realm/roles",
                             .admin_role = "boss"};
constexpr Timestamp kNow{std::chrono::seconds(1'800'000'000)};

void CheckToken(std::string_view text) {
  const auto token = ReadAccessToken(text);
  if (!token) return Expect(token.error().reason == "invalid_token", "why a token is refused");
  Expect(text.size() <= kMostTokenBytes, "a token beyond its limit");
  Expect(token->algorithm == "RS256" || token->algorithm == "ES256" || token->algorithm == "EdDSA", "an algorithm");
  Expect(text.starts_with(token->signed_part + "."), "what is signed");
  Expect(text == token->signed_part + "." + EncodeBase64Url(token->signature), "two texts of one token");
}

void CheckClaimsOf(std::string_view claims) {
  const auto who = CheckClaims(claims, kOptions, kNow);
  if (!who) return Expect(who.error().reason == "invalid_token", "why claims are refused");
  Expect(who->until > kNow, "claims of the past");
  Expect(IsPrincipalName(who->principal.user) && IsPrincipalName(who->principal.org), "a name");
  Expect(who->principal.is_tenant(), "a role that no token gives");
}

void CheckKeys(std::string_view set) {
  const auto keys = ReadIssuerKeys(set);
  if (!keys) return;
  for (const IssuerKey& each : *keys) Expect(!each.key.Verifies(set, "x"), "a signature of anything");
}

void Run(std::string_view input) {
  CheckToken(input);
  CheckToken(EncodeBase64Url(R"({"alg":"ES256"})") + "." + EncodeBase64Url(input) + ".eA");
  CheckToken(EncodeBase64Url(input) + ".e30.eA");
  CheckClaimsOf(input);
  CheckKeys(input);
}

}  // namespace
}  // namespace reprise::fuzz

int main(int argc, char** argv) {
  using namespace reprise;
  return fuzz::Main(
      argc, argv,
      {.name = "people",
       .seeds = {issued::kRs256Token, issued::kEs256Token, issued::kEdDsaToken,
                 R"({"iss":"https://issuer.example","aud":["x","reprise"],"sub":"alice","org":"acme","exp":1800000060,)"
                 R"("nbf":1799999999.5,"iat":1,"realm":{"roles":["boss"]}})",
                 std::string(R"({"keys":[)") + issued::kRs256Key + "," + issued::kEs256Key + "," + issued::kEdDsaKey +
                     "]}",
                 R"({"alg":"RS256","kid":"k","typ":"at+jwt"})"},
       .words = {"\"alg\"", "\"none\"", "\"HS256\"", "\"crit\"", "\"exp\"", "\"aud\"", "\"kty\"", "\"OKP\"", "\"EC\"",
                 "1e400", "-1", "null", "{}", "[]", ".", "\"AQAB\"", "\\u0000"},
       .run = fuzz::Run});
}
