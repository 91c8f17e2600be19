#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "crypto/jwe.h"
#include "crypto/key_set.h"

namespace reprise {

namespace {

constexpr std::uint64_t kMaxMemory = 1100ULL << 20;

// libcrypto takes pointers to non-const, but only reads them.
OSSL_PARAM Octets(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}
OSSL_PARAM Number(const char* name, const std::uint64_t& value) {
  return OSSL_PARAM_construct_uint64(name, const_cast<std::uint64_t*>(&value));
}

}  // namespace

Result<SecretKey> ScryptKey(std::string_view passphrase, const ScryptParameters& parameters) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> scrypt(EVP_KDF_fetch(nullptr, "SCRYPT", nullptr),
                                                                 &EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(scrypt.get()),
                                                                          &EVP_KDF_CTX_free);
  const OSSL_PARAM params[] = {Octets(OSSL_KDF_PARAM_PASSWORD, passphrase),
                               Octets(OSSL_KDF_PARAM_SALT, parameters.salt),
                               Number(OSSL_KDF_PARAM_SCRYPT_N, parameters.n),
                               Number(OSSL_KDF_PARAM_SCRYPT_R, parameters.r),
                               Number(OSSL_KDF_PARAM_SCRYPT_P, parameters.p),
                               Number(OSSL_KDF_PARAM_SCRYPT_MAXMEM, kMaxMemory),
                               OSSL_PARAM_construct_end()};
  std::array<unsigned char, SecretKey::kBytes> bytes{};
  const bool ok = context && EVP_KDF_derive(context.get(), bytes.data(), bytes.size(), params) == 1;
  auto key = SecretKey::FromBytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  WipeBytes(bytes.data(), bytes.size());
  if (ok) return *std::move(key);
  ERR_clear_error();
  return Fail(ErrorCode::kInternal, "no key could be derived from the passphrase (128 MiB of memory are needed)");
}

namespace {

constexpr int kVersion = 1;
constexpr std::string_view kType = "reprise/keys";
constexpr std::string_view kKid = "passphrase";
constexpr std::size_t kSaltBytes = 32;
// An attacker who can write the key file must not make guesses cheap or exhaust the machine's memory.
constexpr std::uint64_t kMinN = 1 << 17, kMaxN = 1 << 20, kR = 8, kMaxP = 4;
constexpr std::size_t kMinSaltBytes = 16, kMaxSaltBytes = 64;

tl::unexpected<Error> InvalidKeyFile(std::string_view what) {
  return Fail(Reason::kKeyFileInvalid, "the key file cannot be used: " + std::string(what));
}

std::uint64_t NumberIn(const Json& header, const char* name) {
  const auto member = header.find(name);
  return member != header.end() && member->is_number_unsigned() ? member->get<std::uint64_t>() : 0;
}
Result<ScryptParameters> ParametersFrom(std::string_view text) {
  const auto header = ReadJweHeader(text);
  if (!header) return InvalidKeyFile(header.error().message);
  if (TextMember(*header, "typ") != kType) return InvalidKeyFile("it is a sealed record of another type");
  if (NumberIn(*header, "ver") != kVersion || TextMember(*header, "kdf") != "scrypt") {
    return InvalidKeyFile("it was written by a version of this program that is not known here");
  }
  auto salt = DecodeBase64Url(TextMember(*header, "salt"));
  ScryptParameters found{.salt = std::move(salt).value_or(""),
                         .n = NumberIn(*header, "n"),
                         .r = NumberIn(*header, "r"),
                         .p = NumberIn(*header, "p")};
  const bool power_of_two = found.n != 0 && (found.n & (found.n - 1)) == 0;
  const bool in_range = found.n >= kMinN && found.n <= kMaxN && found.r == kR && found.p >= 1 && found.p <= kMaxP &&
                        found.salt.size() >= kMinSaltBytes && found.salt.size() <= kMaxSaltBytes;
  if (!power_of_two || !in_range) return InvalidKeyFile("its scrypt parameters are out of range");
  return found;
}

std::string RandomSalt() {
  const SecretKey random = SecretKey::Random();
  static_assert(kSaltBytes == SecretKey::kBytes);
  return std::string(random.bytes());
}

}  // namespace

PassphraseKey::PassphraseKey(SecretKey key, ScryptParameters parameters)
    : key_(KeySet::Of({.kid = std::string(kKid), .secret = std::move(key)})), parameters_(std::move(parameters)) {}

Result<PassphraseKey> PassphraseKey::Derive(std::string_view passphrase) {
  ScryptParameters parameters{.salt = RandomSalt()};
  return ScryptKey(passphrase, parameters).map([&](SecretKey key) {
    return PassphraseKey(std::move(key), std::move(parameters));
  });
}

Result<PassphraseKey> PassphraseKey::Recover(std::string_view text, std::string_view passphrase) {
  auto parameters = TRY(ParametersFrom(text));
  return ScryptKey(passphrase, parameters).map([&](SecretKey key) {
    return PassphraseKey(std::move(key), std::move(parameters));
  });
}

Result<std::string> PassphraseKey::Seal(const KeySet& keys) const {
  const Json header = {
      {"typ", kType},       {"ver", kVersion},    {"cty", "jwk-set+json"}, {"kdf", "scrypt"},
      {"n", parameters_.n}, {"r", parameters_.r}, {"p", parameters_.p},    {"salt", EncodeBase64Url(parameters_.salt)}};
  const SecretText jwk_set = keys.ToJwkSet();
  return SealJwe(header, View(jwk_set), key_).map([](std::string text) { return text + "\n"; });
}

Result<KeySet> PassphraseKey::Open(std::string_view text) const {
  auto opened = OpenJwe(text, key_);
  if (!opened) {
    return Fail(Reason::kPassphraseWrong, "the passphrase does not open the key file");
  }
  auto keys = KeySet::Parse(opened->plaintext);
  WipeBytes(opened->plaintext.data(), opened->plaintext.size());
  return keys;
}

}  // namespace reprise
