#include "crypto/web_push.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "crypto/public_key.h"
#include "support/test.h"

namespace reprise::web_push_test {
namespace {

// The example of RFC 8291, section 5 and appendix A.
constexpr const char* kMessage = "When I grow up, I want to be a watermelon";
constexpr const char* kReceiver =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
constexpr const char* kReceiversKey = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94";
constexpr const char* kAuth = "BTBZMqHH6r4Tts7J_aSIgg";
constexpr const char* kSendersKey = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
constexpr const char* kSender =
    "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8";
constexpr const char* kSalt = "DGv6ra1nlYgDCS1FRnbzlw";
constexpr const char* kBody =
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
    "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";

P256KeyPair KeyFrom(const char* text) {
  return P256KeyPair::FromSecret(*SecretKey::FromBytes(*DecodeBase64Url(text))).value();
}

Json JwkOf(const std::string& point) {
  return {{"kty", "EC"},
          {"crv", "P-256"},
          {"x", EncodeBase64Url(point.substr(1, 32))},
          {"y", EncodeBase64Url(point.substr(33))}};
}

}  // namespace

TEST_CASE("SealPush: the example of RFC 8291", "[crypto]") {
  const auto recipient = PushRecipient::Parse(kReceiver, kAuth);
  REQUIRE(recipient);
  const P256KeyPair sender = KeyFrom(kSendersKey);
  CHECK(EncodeBase64Url(sender.public_key()) == kSender);
  CHECK(EncodeBase64Url(KeyFrom(kReceiversKey).public_key()) == kReceiver);
  CHECK(KeyFrom(kReceiversKey).Agree(sender.public_key()) == sender.Agree(recipient->public_key));
  const auto body = SealPush(*recipient, kMessage, 0, sender, *DecodeBase64Url(kSalt));
  REQUIRE(body);
  CHECK(EncodeBase64Url(*body) == kBody);
}

TEST_CASE("SealPush: texts of all lengths look alike, and none is sealed twice in the same way", "[crypto]") {
  const auto recipient = PushRecipient::Parse(kReceiver, kAuth).value();
  const auto short_one = SealPush(recipient, "a", 200), long_one = SealPush(recipient, std::string(199, 'b'), 200);
  CHECK(short_one->size() == long_one->size());
  CHECK(*SealPush(recipient, "a", 200) != *short_one);
  CHECK(SealPush(recipient, std::string(4079, 'c'), 0));
  CHECK_FALSE(SealPush(recipient, std::string(4080, 'c'), 0));
  CHECK_FALSE(SealPush(recipient, "a", 4080));
  CHECK_FALSE(SealPush(recipient, "a", 0, P256KeyPair::Random(), "short salt"));
}

TEST_CASE("PushRecipient: takes only points of the curve and whole secrets", "[crypto]") {
  const std::string point = *DecodeBase64Url(kReceiver);
  const auto parse = [](const std::string& bytes, const std::string& auth) {
    return PushRecipient::Parse(EncodeBase64Url(bytes), EncodeBase64Url(auth)).has_value();
  };
  const std::string auth(16, 'a');
  CHECK(parse(point, auth));
  CHECK_FALSE(parse(point, std::string(15, 'a')));
  CHECK_FALSE(parse(point, std::string(17, 'a')));
  CHECK_FALSE(parse(point, ""));
  CHECK_FALSE(parse("", auth));
  CHECK_FALSE(parse(point.substr(0, 64), auth));
  CHECK_FALSE(parse(point + "x", auth));
  CHECK_FALSE(parse(std::string(1, '\0'), auth));  // the point at infinity
  std::string off = point;
  off.back() ^= 1;
  CHECK_FALSE(parse(off, auth));
  std::string compressed = point;
  compressed[0] = 2;
  CHECK_FALSE(parse(compressed, auth));
  CHECK_FALSE(PushRecipient::Parse(std::string(kReceiver) + "=", kAuth));
  CHECK_FALSE(PushRecipient::Parse(kReceiver, "no base64!"));
}

TEST_CASE("P256KeyPair: signs so that its public key verifies", "[crypto]") {
  const P256KeyPair key = P256KeyPair::Random(), other = P256KeyPair::Random();
  CHECK(key.public_key() != other.public_key());
  for (int i = 0; i < 100; ++i) {  // also numbers that begin with zeros
    const std::string message = "message " + std::to_string(i);
    const std::string signature = key.Sign(message);
    CHECK(PublicKey::FromJwk(JwkOf(key.public_key()))->Verifies(message, signature));
    CHECK_FALSE(PublicKey::FromJwk(JwkOf(other.public_key()))->Verifies(message, signature));
  }
  const auto again = P256KeyPair::FromSecret(*SecretKey::FromBytes(key.secret()));
  CHECK(again->public_key() == key.public_key());
  CHECK_FALSE(P256KeyPair::FromSecret(*SecretKey::FromBytes(std::string(32, '\0'))));
  CHECK_FALSE(P256KeyPair::FromSecret(*SecretKey::FromBytes(std::string(32, '\xff'))));
  CHECK_FALSE(key.Agree("no point"));
}

}  // namespace reprise::web_push_test
