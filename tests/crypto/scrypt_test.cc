#include "crypto/key_set.h"
#include "support/test.h"

namespace reprise::scrypt_test {
namespace {

std::string Hex(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kHex[static_cast<unsigned char>(c) >> 4];
    text += kHex[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

}  // namespace

// RFC 7914, section 12: the first halves, since the last step of scrypt makes 32 bytes at a time.
TEST_CASE("ScryptKey: the vectors of RFC 7914", "[crypto]") {
  const auto first = ScryptKey("password", {.salt = "NaCl", .n = 1024, .r = 8, .p = 16});
  REQUIRE(first);
  CHECK(Hex(first->bytes()) == "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162");
  const auto second = ScryptKey("pleaseletmein", {.salt = "SodiumChloride", .n = 16384, .r = 8, .p = 1});
  REQUIRE(second);
  CHECK(Hex(second->bytes()) == "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2");
  const auto empty = ScryptKey("", {.salt = "", .n = 16, .r = 1, .p = 1});
  REQUIRE(empty);
  CHECK(Hex(empty->bytes()) == "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442");
}

TEST_CASE("ScryptKey: refuses impossible parameters", "[crypto]") {
  CHECK(ScryptKey("p", {.salt = "s", .n = 1000, .r = 8, .p = 1}).error().code == ErrorCode::kInternal);
  CHECK(ScryptKey("p", {.salt = "s", .n = 0, .r = 8, .p = 1}).error().code == ErrorCode::kInternal);
  CHECK(ScryptKey("p", {.salt = "s", .n = 1ULL << 40, .r = 8, .p = 1}).error().code == ErrorCode::kInternal);
}

}  // namespace reprise::scrypt_test
