#include "crypto/public_key.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "people/issued_tokens.h"
#include "support/test.h"

namespace reprise::public_key_test {
namespace {

struct Signed {
  const char* jwk;
  std::string message, signature;
};
Signed Of(const char* jwk, const std::string& token) {
  const std::size_t end = token.rfind('.');
  return {jwk, token.substr(0, end), DecodeBase64Url(token.substr(end + 1)).value()};
}
Result<PublicKey> With(const char* jwk, const char* member, Json value) {
  Json json = *ParseJson(jwk);
  json[member] = std::move(value);
  return PublicKey::FromJwk(json);
}

}  // namespace

TEST_CASE("PublicKey: verifies only this message, this key and the right size", "[crypto]") {
  const Signed all[] = {Of(issued::kRs256Key, issued::kRs256Token), Of(issued::kEs256Key, issued::kEs256Token),
                        Of(issued::kEdDsaKey, issued::kEdDsaToken)};
  for (const Signed& each : all) {
    const auto key = PublicKey::FromJwk(*ParseJson(each.jwk));
    REQUIRE(key);
    CHECK(key->Verifies(each.message, each.signature));
    CHECK_FALSE(key->Verifies(each.message + "x", each.signature));
    CHECK_FALSE(key->Verifies("", each.signature));
    CHECK_FALSE(key->Verifies(each.message, ""));
    CHECK_FALSE(key->Verifies(each.message, each.signature + "x"));
    CHECK_FALSE(key->Verifies(each.message, each.signature.substr(1)));
    CHECK_FALSE(key->Verifies(each.message, std::string(each.signature.size(), '\0')));
    for (const std::size_t at : {std::size_t{0}, each.signature.size() / 2, each.signature.size() - 1}) {
      std::string other = each.signature;
      other[at] = static_cast<char>(other[at] ^ 1);
      CHECK_FALSE(key->Verifies(each.message, other));
    }
    for (const Signed& foreign : all) {
      if (&foreign != &each) CHECK_FALSE(key->Verifies(foreign.message, foreign.signature));
    }
  }
}

TEST_CASE("PublicKey: the key determines the algorithm", "[crypto]") {
  CHECK(PublicKey::FromJwk(*ParseJson(issued::kRs256Key))->algorithm() == "RS256");
  CHECK(PublicKey::FromJwk(*ParseJson(issued::kEs256Key))->algorithm() == "ES256");
  CHECK(PublicKey::FromJwk(*ParseJson(issued::kEdDsaKey))->algorithm() == "EdDSA");
  CHECK(With(issued::kRs256Key, "key_ops", Json::array({"verify"})));
  CHECK_FALSE(With(issued::kRs256Key, "alg", "RS512"));
  CHECK_FALSE(With(issued::kRs256Key, "alg", "HS256"));
  CHECK_FALSE(With(issued::kRs256Key, "use", "enc"));
  CHECK_FALSE(With(issued::kRs256Key, "key_ops", Json::array({"encrypt"})));
  CHECK_FALSE(With(issued::kEdDsaKey, "crv", "X25519"));
  CHECK_FALSE(With(issued::kEs256Key, "crv", "P-384"));
}

TEST_CASE("PublicKey: refuses invalid and weak keys", "[crypto]") {
  CHECK_FALSE(PublicKey::FromJwk(*ParseJson(issued::kShortRsaKey)));
  CHECK_FALSE(PublicKey::FromJwk(*ParseJson(R"({"kty":"oct","k":"AAAA"})")));
  CHECK_FALSE(PublicKey::FromJwk(Json()));
  CHECK_FALSE(With(issued::kRs256Key, "e", "AQ"));  // 1: everybody could sign
  CHECK_FALSE(With(issued::kRs256Key, "e", "Ag"));  // 2
  CHECK_FALSE(With(issued::kRs256Key, "e", EncodeBase64Url(std::string(8, '\xff'))));
  CHECK_FALSE(With(issued::kRs256Key, "n", ""));
  CHECK_FALSE(With(issued::kRs256Key, "n", "a b"));
  CHECK_FALSE(With(issued::kRs256Key, "n", 7));
  CHECK_FALSE(With(issued::kRs256Key, "n", EncodeBase64Url(std::string(1025, '\xff'))));
  CHECK_FALSE(With(issued::kEs256Key, "x", EncodeBase64Url(std::string(32, '\1'))));  // not on the curve
  CHECK_FALSE(With(issued::kEs256Key, "y", EncodeBase64Url(std::string(31, '\1'))));
  CHECK_FALSE(With(issued::kEdDsaKey, "x", EncodeBase64Url(std::string(31, '\1'))));
}

}  // namespace reprise::public_key_test
