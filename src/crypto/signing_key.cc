#include "crypto/signing_key.h"

#include <openssl/evp.h>

#include <cstddef>
#include <cstdlib>

#include "crypto/digest.h"

namespace reprise {
namespace {

constexpr std::size_t kPublicKeyBytes = 32, kSignatureBytes = 64;

unsigned char* Writable(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

SigningKey::SigningKey(const SecretKey& seed) : public_key_(kPublicKeyBytes, '\0') {
  EVP_PKEY* const key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), SecretKey::kBytes);
  std::size_t size = kPublicKeyBytes;
  // Any 32 bytes are a key. It fails only without memory, or with a libcrypto that has no Ed25519.
  if (key == nullptr || EVP_PKEY_get_raw_public_key(key, Writable(public_key_), &size) != 1) std::abort();
  key_ = std::shared_ptr<EVP_PKEY>(key, &EVP_PKEY_free);
}

std::string SigningKey::Sign(std::string_view message) const {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  auto* const key = static_cast<EVP_PKEY*>(key_.get());
  std::string signature(kSignatureBytes, '\0');
  std::size_t size = kSignatureBytes;
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key) != 1 ||
      EVP_DigestSign(context.get(), Writable(signature), &size, reinterpret_cast<const unsigned char*>(message.data()),
                     message.size()) != 1 ||
      size != kSignatureBytes) {
    std::abort();
  }
  return signature;
}

std::string FingerprintOf(std::string_view public_key) { return Sha256Digest({public_key}); }

}  // namespace reprise
