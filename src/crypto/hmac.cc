#include "crypto/hmac.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstdlib>

namespace reprise {

std::string HmacSha256(const SecretKey& key, std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text.append(part);
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned int size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  if (HMAC(EVP_sha256(), key.data(), SecretKey::kBytes, data, text.size(), mac.data(), &size) == nullptr) {
    std::abort();  // only without memory, or with a libcrypto that has no SHA-256
  }
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string named = "hmac-sha256:";
  for (unsigned int index = 0; index < size; ++index) {
    named += kHex[mac.at(index) >> 4];
    named += kHex[mac.at(index) & 15];
  }
  return named;
}

}  // namespace reprise
