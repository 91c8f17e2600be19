#include "people/access_token.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "people/issued_tokens.h"
#include "support/test.h"

namespace reprise::access_token_test {
namespace {

std::string Token(std::string_view header, std::string_view claims = R"({"sub":"a"})",
                  std::string_view signature = "x") {
  return EncodeBase64Url(header) + "." + EncodeBase64Url(claims) + "." + EncodeBase64Url(signature);
}
bool IsRead(const std::string& token) {
  const auto read = ReadAccessToken(token);
  if (!read) CHECK(read.error().reason == "invalid_token");
  return read.has_value();
}

const IssuerOptions kOptions{.issuer = "https://issuer.example",
                             .audience = "reprise",
                             .org_claim = "org",
                             .roles_claim = "/realm/roles",
                             .admin_role = "boss"};
constexpr std::int64_t kNow = 1'800'000'000;  // seconds

Json Claims() {
  return {{"iss", "https://issuer.example"}, {"aud", "reprise"}, {"sub", "alice"}, {"org", "acme"}, {"exp", kNow + 60}};
}
Result<Identified> Check(const Json& claims, const IssuerOptions& options = kOptions) {
  return CheckClaims(DumpJson(claims), options, Timestamp(std::chrono::seconds(kNow)));
}
Json With(const char* name, Json value) {
  Json claims = Claims();
  claims[name] = std::move(value);
  return claims;
}
std::string Problem(const Json& claims) {
  const auto checked = Check(claims);
  if (checked) return "";
  CHECK(checked.error().code == ErrorCode::kUnauthenticated);
  CHECK(checked.error().reason == "invalid_token");
  return checked.error().message;
}

}  // namespace

TEST_CASE("ReadAccessToken: splits an issuer's token", "[people]") {
  for (const char* text : {issued::kRs256Token, issued::kEs256Token, issued::kEdDsaToken}) {
    const auto token = ReadAccessToken(text);
    REQUIRE(token);
    CHECK(std::string_view(text).starts_with(token->signed_part + "."));
    CHECK(CheckClaims(token->claims, {.issuer = "https://issuer.example", .audience = "reprise"}, Now()));
  }
}

TEST_CASE("ReadAccessToken: refuses other algorithms, unknown extensions and other tokens", "[people]") {
  CHECK(IsRead(Token(R"({"alg":"RS256"})")));
  CHECK(IsRead(Token(R"({"alg":"ES256","kid":"k","typ":"JWT"})")));
  CHECK(IsRead(Token(R"({"alg":"EdDSA","typ":"application/AT+jwt"})")));
  for (const char* header : {R"({"alg":"none"})", R"({"alg":"None"})", R"({"alg":"HS256"})", R"({"alg":"HS512"})",
                             R"({"alg":"RS512"})", R"({"alg":"PS256"})", R"({"alg":"rs256"})", R"({"alg":["RS256"]})",
                             R"({"alg":null})", R"({})", R"([])", "7", "", R"({"alg":"RS256","alg":"none"})",
                             R"({"alg":"RS256","crit":["exp"]})", R"({"alg":"RS256","typ":"dpop+jwt"})",
                             R"({"alg":"RS256","typ":7})", R"({"alg":"RS256","kid":7})", R"({"alg":"RS256")"}) {
    INFO(header);
    CHECK_FALSE(IsRead(Token(header)));
  }
  CHECK_FALSE(IsRead(Token(R"({"alg":"RS256","kid":")" + std::string(257, 'k') + "\"}")));
  const std::string good = Token(R"({"alg":"RS256"})");
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("a.b"), good + ".", good + "=", good + ".x.y",
        "." + good, good.substr(0, good.rfind('.') + 1), std::string(20, '.'),
        good.substr(0, good.find('.')) + ".." + good.substr(good.rfind('.') + 1)}) {
    INFO(text);
    CHECK_FALSE(IsRead(text));
  }
  CHECK_FALSE(IsRead(Token(R"({"alg":"RS256"})", "{}", std::string(kMostTokenBytes, 'x'))));
}

TEST_CASE("CheckClaims: issuer, audience and time must fit", "[people]") {
  CHECK(Problem(Claims()).empty());
  CHECK(Problem(With("aud", Json::array({"other", "reprise"}))).empty());
  for (const Json& issuer : {Json("https://issuer.example/"), Json("https://evil.example"), Json(), Json(7)}) {
    CHECK(Problem(With("iss", issuer)).find("issuer") != std::string::npos);
  }
  for (const Json& audience :
       {Json("other"), Json(Json::array({"other"})), Json(Json::array()), Json(), Json("reprise2")}) {
    CHECK(Problem(With("aud", audience)).find("audience") != std::string::npos);
  }
  CHECK(Problem(With("exp", kNow - 29)).empty());  // clocks differ
  CHECK(Problem(With("exp", kNow - 30)).find("expired") != std::string::npos);
  CHECK(Problem(With("exp", Json())).find("when it expires") != std::string::npos);
  for (const Json& time : {Json("1900000000"), Json(-1), Json(1e12), Json(true), Json(Json::array())}) {
    INFO(DumpJson(time));
    CHECK(Problem(With("exp", time)).find("no time") != std::string::npos);
    CHECK(Problem(With("nbf", time)).find("no time") != std::string::npos);
  }
  CHECK(Problem(With("exp", kNow + 0.5)).empty());
  CHECK(Problem(With("nbf", kNow + 30)).empty());
  CHECK(Problem(With("nbf", kNow + 31)).find("not count yet") != std::string::npos);
  CHECK(Problem(With("iat", kNow + 31)).find("not count yet") != std::string::npos);
  CHECK(Check(Claims())->until == Timestamp(std::chrono::seconds(kNow + 90)));
  CHECK_FALSE(CheckClaims("[]", kOptions, Now()));
  CHECK_FALSE(CheckClaims(std::string(1000, '['), kOptions, Now()));
}

TEST_CASE("CheckClaims: returns user, org and admin role", "[people]") {
  const auto user = Check(Claims());
  REQUIRE(user);
  CHECK(user->principal == Principal{.role = Principal::Role::kUser, .org = "acme", .user = "alice"});
  for (const Json& name : {Json(""), Json(7), Json(), Json("a\nb"), Json(std::string(256, 'a'))}) {
    CHECK(Problem(With("sub", name)).find("\"sub\"") != std::string::npos);
    CHECK(Problem(With("org", name)).find("\"org\"") != std::string::npos);
  }
  const auto role = [](Json roles) { return Check(With("realm", {{"roles", std::move(roles)}}))->principal.role; };
  CHECK(role(Json::array({"x", "boss"})) == Principal::Role::kOrgAdmin);
  CHECK(role("x boss y") == Principal::Role::kOrgAdmin);
  for (const Json& none : {Json("bossy"), Json(Json::array({"bossy"})), Json(7), Json(), Json({{"boss", true}})}) {
    CHECK(role(none) == Principal::Role::kUser);
  }
  IssuerOptions plain = kOptions;
  plain.org_claim = plain.roles_claim = plain.admin_role = "";
  CHECK(Check(Claims(), plain)->principal.org == kDefaultOrg);
  CHECK(Check(With("realm", {{"roles", "boss"}}), plain)->principal.role == Principal::Role::kUser);
}

TEST_CASE("IsClaimName: a name or a JSON pointer", "[people]") {
  for (const char* good : {"org", "https://acme.example/org", "a~b", "/a/b", "/a~0~1b", ""}) CHECK(IsClaimName(good));
  for (const char* bad : {"/a~", "/a~2"}) CHECK_FALSE(IsClaimName(bad));
}

}  // namespace reprise::access_token_test
