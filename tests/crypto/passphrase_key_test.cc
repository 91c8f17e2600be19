#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "crypto/jwe.h"
#include "crypto/key_set.h"
#include "support/test.h"

namespace reprise::passphrase_key_test {
namespace {

Json HeaderOf(const std::string& text) { return *ReadJweHeader(text); }

// The same text with another protected header.
std::string WithHeader(const std::string& text, const Json& header) {
  Json jwe = *ParseJson(text);
  jwe["protected"] = EncodeBase64Url(DumpJson(header));
  return DumpJson(jwe);
}

}  // namespace

TEST_CASE("PassphraseKey: the key and its passphrase open a sealed set", "[crypto]") {
  const KeySet keys = KeySet::Generate().WithNewKey();
  const auto key = PassphraseKey::Derive("correct horse");
  REQUIRE(key);
  const auto text = key->Seal(keys);
  REQUIRE(text);
  const Json header = HeaderOf(*text);
  CHECK(header["typ"] == "reprise/keys");
  CHECK(header["cty"] == "jwk-set+json");
  CHECK(header["kdf"] == "scrypt");
  CHECK(header["n"] == 131072);
  CHECK(header["r"] == 8);
  CHECK(header["p"] == 1);
  CHECK(DecodeBase64Url(header["salt"].get<std::string>())->size() == 32);

  const auto again = PassphraseKey::Recover(*text, "correct horse");
  REQUIRE(again);
  const auto opened = again->Open(*text);
  REQUIRE(opened);
  CHECK(View(opened->ToJwkSet()) == View(keys.ToJwkSet()));

  // The message does not say what is wrong.
  const auto wrong = PassphraseKey::Recover(*text, "correct horsf")->Open(*text);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().reason == "passphrase_wrong");
  std::string flipped = *text;
  char& c = flipped[flipped.find("\"ciphertext\":\"") + 20];
  c = c == 'A' ? 'B' : 'A';
  const auto damaged = again->Open(flipped);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().message == wrong.error().message);
  CHECK(damaged.error().reason == wrong.error().reason);
}

TEST_CASE("PassphraseKey: refuses parameters out of range before deriving anything", "[crypto]") {
  const auto key = PassphraseKey::Derive("x");
  REQUIRE(key);
  const std::string text = *key->Seal(KeySet::Generate());
  const Json good = HeaderOf(text);
  const auto refused = [&](const char* member, const Json& value) {
    Json header = good;
    header[member] = value;
    const auto recovered = PassphraseKey::Recover(WithHeader(text, header), "x");
    return !recovered && recovered.error().reason == "key_file_invalid";
  };
  for (const Json& n : {Json(0), Json(1), Json(65536), Json(131073), Json(1 << 21), Json(1ULL << 63), Json(-131072),
                        Json("131072"), Json(131072.0), Json()}) {
    CAPTURE(DumpJson(n));
    CHECK(refused("n", n));
  }
  for (const Json& r : {Json(0), Json(7), Json(9), Json(1ULL << 40)}) CHECK(refused("r", r));
  for (const Json& p : {Json(0), Json(5), Json(1ULL << 40)}) CHECK(refused("p", p));
  for (const Json& salt : {Json(""), Json("AAAA"), Json("?"), Json(std::string(200, 'A')), Json(1)}) {
    CHECK(refused("salt", salt));
  }
  CHECK(refused("kdf", "argon2id"));
  CHECK(refused("ver", 2));
  CHECK(refused("typ", "reprise/chat"));
}

TEST_CASE("PassphraseKey: a changed header does not open", "[crypto]") {
  const auto key = PassphraseKey::Derive("x");
  const std::string text = *key->Seal(KeySet::Generate());
  Json header = HeaderOf(text);
  header["p"] = 2;
  const std::string changed = WithHeader(text, header);
  CHECK(PassphraseKey::Recover(changed, "x")->Open(changed).error().reason == "passphrase_wrong");
  CHECK(key->Open(changed).error().reason == "passphrase_wrong");
}

}  // namespace reprise::passphrase_key_test
