#include "crypto/digest.h"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>
#include <memory>

namespace reprise {

std::string Sha256Digest(std::initializer_list<std::string_view> parts) {
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  bool ok = context && EVP_DigestInit_ex2(context.get(), sha256, nullptr) == 1;
  for (const std::string_view part : parts) {
    ok = ok && EVP_DigestUpdate(context.get(), part.data(), part.size()) == 1;
  }
  std::array<unsigned char, 32> digest{};
  unsigned int size = 0;
  if (!ok || EVP_DigestFinal_ex(context.get(), digest.data(), &size) != 1 || size != digest.size()) {
    std::abort();  // only without memory, or with a libcrypto that has no SHA-256
  }
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "sha256:";
  for (const unsigned char byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

}  // namespace reprise
