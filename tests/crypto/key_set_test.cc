#include "crypto/key_set.h"

#include <type_traits>

#include "base/text.h"
#include "support/test.h"

namespace reprise::key_set_test {
namespace {

std::string Jwk(const std::string& kid, std::size_t bytes = 32) {
  return R"({"kty":"oct","kid":")" + kid + R"(","alg":"A256KW","use":"enc","k":")" +
         EncodeBase64Url(std::string(bytes, kid.empty() ? 'x' : kid[0])) + R"("})";
}
std::string JwkSet(const std::string& keys) { return R"({"keys":[)" + keys + "]}"; }

}  // namespace

static_assert(!std::is_copy_constructible_v<KeySet>);

TEST_CASE("KeySet: the first key is current and all are found", "[crypto]") {
  const auto keys = KeySet::Parse(JwkSet(Jwk("new") + "," + Jwk("old")));
  REQUIRE(keys);
  CHECK(keys->current().kid == "new");
  REQUIRE(keys->Find("old") != nullptr);
  CHECK(keys->Find("old")->secret.bytes() == std::string(32, 'o'));
  CHECK(keys->Find("none") == nullptr);
}

TEST_CASE("KeySet: refuses other key sets without showing them", "[crypto]") {
  const std::string bad[] = {"",
                             "{}",
                             "[]",
                             JwkSet(""),
                             JwkSet("1"),
                             JwkSet(Jwk("a", 16)),
                             JwkSet(Jwk("a", 33)),
                             JwkSet(Jwk("")),
                             JwkSet(Jwk("a b")),
                             JwkSet(Jwk("a") + "," + Jwk("a")),
                             JwkSet(R"({"kty":"RSA","kid":"a","k":"AAAA"})"),
                             JwkSet(R"({"kty":"oct","kid":"a","alg":"A128KW","k":"AAAA"})"),
                             JwkSet(R"({"kty":"oct","kid":"a","k":"?SECRET?"})"),
                             JwkSet(R"({"kty":"oct","kid":"a"})"),
                             JwkSet(Jwk("a")).substr(0, 40)};
  for (const std::string& text : bad) {
    CAPTURE(text);
    const auto keys = KeySet::Parse(text);
    REQUIRE_FALSE(keys);
    CHECK(keys.error().reason == "key_file_invalid");
    CHECK(keys.error().message.find("SECRET") == std::string::npos);
  }
}

TEST_CASE("KeySet: Parse reads its own JWK Set", "[crypto]") {
  const auto keys = KeySet::Parse(JwkSet(Jwk("new") + "," + Jwk("old")));
  REQUIRE(keys);
  CHECK(View(keys->ToJwkSet()) == JwkSet(Jwk("new") + "," + Jwk("old")) + "\n");
}

TEST_CASE("KeySet: a new key comes first and the others stay", "[crypto]") {
  const KeySet first = KeySet::Generate();
  const KeySet second = first.WithNewKey(), third = second.WithNewKey();
  REQUIRE(third.keys().size() == 3);
  CHECK(third.current().kid != second.current().kid);
  CHECK(third.keys()[1].secret.bytes() == second.current().secret.bytes());
  CHECK(third.Find(first.current().kid)->secret.bytes() == first.current().secret.bytes());
  const KeySet alone = third.WithoutOldKeys();
  REQUIRE(alone.keys().size() == 1);
  CHECK(alone.current().secret.bytes() == third.current().secret.bytes());
}

}  // namespace reprise::key_set_test
