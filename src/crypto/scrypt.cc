#include "crypto/scrypt.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <memory>

namespace reprise {
namespace {

constexpr std::uint64_t kMaxMemory = 1100ULL << 20;

// libcrypto's parameters are pointers to non-const that it only reads.
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

}  // namespace reprise
