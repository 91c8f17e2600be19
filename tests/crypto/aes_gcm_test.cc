#include <type_traits>

#include "crypto/jwe.h"
#include "support/test.h"

namespace reprise::aes_gcm_test {
namespace {

std::string Hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

}  // namespace

static_assert(!std::is_copy_constructible_v<SecretKey> && !std::is_copy_assignable_v<SecretKey>);

TEST_CASE("AES-GCM: a vector of NIST opens (GCMVS, 256-bit key, 128-bit text, 128-bit AAD)", "[crypto]") {
  const auto key = SecretKey::FromBytes(Hex("92e11dcdaa866f5ce790fd24501f92509aacf4cb8b1339d50c9c1240935dd08b"));
  const auto plaintext = GcmOpen(*key, Hex("1e0889016f67601c8ebea4943bc23ad6"), Hex("ac93a1a6145299bde902f21a"),
                                 Hex("8995ae2e6df3dbf96fac7b7137bae67f"), Hex("eca5aa77d51d4a0a14d9c51e1da474ab"));
  REQUIRE(plaintext);
  CHECK(*plaintext == Hex("2d71bcfa914e4ac045b2aa60955fad24"));
}

TEST_CASE("AES-GCM: other associated data or another tag is refused", "[crypto]") {
  const SecretKey key = SecretKey::Random();
  const auto sealed = GcmSeal(key, "place", "text");
  REQUIRE(sealed);
  CHECK(GcmOpen(key, "place", sealed->iv, sealed->ciphertext, sealed->tag) == "text");
  CHECK(GcmOpen(key, "other", sealed->iv, sealed->ciphertext, sealed->tag).error().code == ErrorCode::kCorruption);
  CHECK_FALSE(GcmOpen(key, "place", sealed->iv, sealed->ciphertext, std::string(kGcmTagBytes, '\0')));
  CHECK_FALSE(GcmOpen(SecretKey::Random(), "place", sealed->iv, sealed->ciphertext, sealed->tag));
}

TEST_CASE("Key wrap: the vector of RFC 3394, section 4.6", "[crypto]") {
  const auto kek = SecretKey::FromBytes(Hex("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F"));
  const auto key = SecretKey::FromBytes(Hex("00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F"));
  const std::string wrapped = Hex("28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21");
  CHECK(WrapKey(*kek, *key) == wrapped);
  const auto unwrapped = UnwrapKey(*kek, wrapped);
  REQUIRE(unwrapped);
  CHECK(unwrapped->bytes() == key->bytes());
  CHECK(UnwrapKey(*key, wrapped).error().code == ErrorCode::kCorruption);
}

TEST_CASE("SecretKey: moving wipes the source, cloning does not", "[crypto]") {
  SecretKey key = SecretKey::Random();
  const SecretKey copy = key.Clone();
  CHECK(copy.bytes() == key.bytes());
  const SecretKey moved = std::move(key);
  CHECK(moved.bytes() == copy.bytes());
  CHECK(key.bytes() == std::string(SecretKey::kBytes, '\0'));  // NOLINT: looking at the wiped source is the point
  CHECK_FALSE(SecretKey::FromBytes("short"));
}

}  // namespace reprise::aes_gcm_test
